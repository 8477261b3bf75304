"""What else is planted in the built-in collection: the decoys' places, and the kinds of things it is about."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from evenrank.files import EvenrankError
from evenrank.files.synthetic import SyntheticConfig, generate, templates


def decoy_places(config: SyntheticConfig) -> list[float]:
    """Where each decoy stands among the sentences other than the fact, 0 to 1, found by its own words."""
    known = templates()
    patterns = [
        re.compile(
            "".join(re.escape(piece) if i % 2 == 0 else r"[\w ]+?" for i, piece in enumerate(known.all[n].pieces))
        )
        for n in known.tease.ravel()
    ]
    made = generate(config)
    places = []
    rows = made.collection.join(made.truth.filter("decoy"), on="doc_id", how="inner")
    for text, fact in rows.select("text", "answer_sentence").iter_rows():
        sentences = [one for i, one in enumerate(re.split(r"(?<=\.) ", text)) if i != fact]
        at = next(i for i, one in enumerate(sentences) if any(pattern.fullmatch(one) for pattern in patterns))
        places.append(at / (len(sentences) - 1))
    return places


@pytest.mark.parametrize(
    ("position", "low", "high"), [("uniform", 0.4, 0.6), ("early", 0.05, 0.35), ("late", 0.65, 0.95)]
)
def test_decoys_stand_where_they_are_planted(position: str, low: float, high: float) -> None:
    config = SyntheticConfig(passages=400, decoy_rate=1.0, sentences=6, decoy_position=position)  # type: ignore[arg-type]
    assert low < np.mean(decoy_places(config)) < high


def test_a_collection_of_some_kinds_is_about_nothing_else() -> None:
    known = templates()
    made = generate(SyntheticConfig(passages=400, kinds=("ship", "dish")))
    wanted = {topic.noun for topic in known.topics if known.kinds[topic.kind] in ("ship", "dish")}
    assert set(made.truth["topic"]) <= wanted
    every = generate(SyntheticConfig(passages=2_000))
    assert set(every.truth["topic"]) > wanted


def test_places_and_kinds_are_read_back(tmp_path: Path) -> None:
    config = SyntheticConfig(passages=400, kinds=("ship", "dish"), decoy_position="late")
    written = generate(config).write(tmp_path) / "planted.json"
    assert SyntheticConfig(**json.loads(written.read_text(encoding="utf-8"))) == config


@pytest.mark.parametrize("kinds", [("boat",), ("ship", "ship")])
def test_kinds_are_checked(kinds: tuple[str, ...]) -> None:
    with pytest.raises(EvenrankError, match="`kinds`: expected some of craft, building"):
        SyntheticConfig(kinds=kinds)


def test_a_decoys_place_is_checked() -> None:
    with pytest.raises(EvenrankError, match="`decoy_position`: expected uniform, early, late or a number"):
        SyntheticConfig(decoy_position=0.95)
