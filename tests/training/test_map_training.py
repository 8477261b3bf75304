"""Trainings behind a frozen encoder, and what trainings from Python start from."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import evenrank
from evenrank.files import EvenrankError, InputError
from evenrank.groups import Scoring, load_lexicon
from evenrank.mitigation.ibbr import IBBR, FunctionTerm, Pairwise
from evenrank.models.protocol import Ranker
from evenrank.models.word_rankers import WordRanker
from evenrank.training.lists import as_lists, collate
from evenrank.training.recipes import RankerRecipe, load_recipe
from evenrank.training.run import train_recipe
from tiny_models import WORDS
from training_runs import fair, logged

LISTS = [
    {"query": "a nurse", "passages": [f"she is a nurse {word}", f"he runs home {word}"], "relevance": [1, 0]}
    for word in WORDS
]


def gap(ranker: Ranker, lists: list[dict[str, Any]]) -> float:
    """|ΔA-PRF| of the scores of lists."""
    found = as_lists(lists, [Scoring(load_lexicon("gender-en"))])
    batch = collate([found[i] for i in range(len(found))])
    with torch.no_grad():
        scores = ranker(**ranker.encode(batch))
    assert batch.relevance is not None
    assert batch.sides is not None
    pairs = Pairwise.of(scores, batch.relevance, batch.sides[0], batch.mask)
    first, second = (pairs.prf[side][pairs.defined[side]].mean() for side in (0, 1))
    return abs(float(first - second))


def planted(count: int) -> list[dict[str, Any]]:
    """Lists whose clicked passage is male-worded in three of four, and whose other passages are female-worded."""
    words = [word for word in WORDS if word not in ("she", "he")]
    made = []
    for i in range(count):
        query, other = words[i % 12], words[(i // 12 + i + 1) % 12]
        clicked, left = ("he", "she") if i % 4 else ("she", "he")
        passages = [f"{clicked} {query}", f"{left} {query}", f"{left} {other}", f"{clicked} {other}"]
        made.append({"query": f"{query} {other}", "passages": passages, "relevance": [1, 0, 0, 0]})
    return made


def test_a_recipe_trains_a_map_and_resumes_it(home: Path, tmp_path: Path) -> None:
    settings = ["ranker.map=true", "ranker.freeze=encoder", f'ranker.kept="{tmp_path / "kept"}"', "validation.depths="]
    done = fair(home / "r.toml", tmp_path / "a", *settings)
    assert (done / "model" / "modules.json").is_file()

    def maps() -> list[bytes]:
        files = [next((done / "model").rglob(f"{of}_0_Dense/model.safetensors")) for of in ("query", "document")]
        return [file.read_bytes() for file in files]

    # Without the last checkpoint, resumed: to the same bytes, as the vectors are the same ones.
    before = maps(), logged(done)
    for gone in ("checkpoints/checkpoint-12", "model"):
        shutil.rmtree(done / gone)
    (done / "result.json").unlink()
    train_recipe(load_recipe(home / "r.toml", [f'out="{done}"', *settings]), resume=True)
    assert (maps(), logged(done)) == before


MAP = ["ranker.map=true", "ranker.freeze=encoder"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["ranker.map=true", "ranker.dimensions=8"], "ranker: map: not beside dimensions, whose projection is a map"),
        (["ranker.kind=cat", "ranker.map=true"], "ranker: map: a cat ranker has no vectors of a text alone"),
        (["ranker.kept=here"], 'ranker: kept: needs freeze = "encoder"'),
        ([*MAP, "data.rotate=word"], "data.rotate: not with ranker.freeze, which encodes each text once"),
        ([*MAP, "training.cached=4"], "training.cached: not with ranker.freeze, whose encoder needs no gradients"),
    ],
)
def test_recipes_that_are_refused(home: Path, settings: list[str], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        load_recipe(home / "r.toml", settings)


def test_a_frozen_encoder_with_nothing_behind_it_is_refused(home: Path, tmp_path: Path) -> None:
    with pytest.raises(EvenrankError, match=r"^ranker\.freeze: only the encoder has weights .*: add ranker\.map or"):
        fair(home / "r.toml", tmp_path / "run", "ranker.freeze=encoder")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", ["tk", "knrm"])
def test_word_vectors_from_python(tmp_path: Path, kind: str) -> None:
    rows = [f"{word} " + " ".join(str(i % 7 - j) for j in range(16)) for i, word in enumerate([*WORDS, "unread"])]
    (tmp_path / "v.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    # The words of the lists alone.
    read = {word for one in LISTS for text in (one["query"], *one["passages"]) for word in text.split()}
    ranker = evenrank.train(RankerRecipe(kind=kind, vectors=str(tmp_path / "v.txt")), LISTS, max_steps=2).ranker
    assert isinstance(ranker, WordRanker)
    assert set(ranker.vocabulary) == read
    pytest.importorskip("gensim", reason="needs the extra [embeddings]")
    trained = evenrank.train(RankerRecipe(kind=kind, vector_size=8), LISTS, max_steps=2).ranker
    assert isinstance(trained, WordRanker)
    assert set(trained.vocabulary) <= read


def test_the_term_narrows_the_gap_and_its_negative_does_not(checkpoint: str) -> None:
    lists = planted(48)
    model = RankerRecipe(kind="dot", model=checkpoint, pooling="mean", map=True, freeze="encoder")
    settings: dict[str, Any] = {"batch": 48, "max_steps": 40, "learning_rate": 0.02}

    def negated(scores: Any, relevance: Any, sides: Any, mask: Any) -> Any:
        return -IBBR("ibbr-pd")(scores, relevance, sides, mask)

    none, fair, worse = (
        gap(evenrank.train(model, lists, fairness=term, **settings).ranker, lists)
        for term in (None, IBBR("ibbr-pd", weight=20.0), FunctionTerm(negated, weight=20.0))
    )
    assert none > 0.3
    assert fair < none / 2
    assert worse > none
