"""Rotation while training: which texts a data set gives, epoch by epoch, and that resuming gives the same weights."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank.files import Run
from evenrank.files.sentences import sentence_starts
from evenrank.mitigation.rotation import cut_of, mixed_seed, rotated
from evenrank.training.lists import TrainingLists, build_lists

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
PASSAGES = ["one two three four five", "She is here. He left. It rained", "six  seven\teight", "", " ", "nine"]
JUDGED = pl.DataFrame({"query_id": ["q"], "doc_id": ["0"], "relevance": [1]})
ROWS = [("q", str(i), float(9 - i)) for i in range(len(PASSAGES))]


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    run = Run.from_table(pl.DataFrame(ROWS, ["query_id", "doc_id", "score"], orient="row"), "run")
    collection = pl.DataFrame({"doc_id": [str(i) for i in range(len(PASSAGES))], "text": PASSAGES})
    queries = pl.DataFrame({"query_id": ["q"], "text": ["what is it"]})
    build_lists(run, JUDGED, collection, queries, tmp_path / "g")
    return tmp_path / "g"


def lists(groups: Path, epoch: int, seed: int = 0, rotate: str | None = "word") -> TrainingLists:
    items = TrainingLists(groups, negatives=9, sampling="first", seed=seed, rotate=rotate)  # type: ignore[arg-type]
    items.set_epoch(epoch)
    return items


def seen(*given: Any, **named: Any) -> list[str]:
    return lists(*given, **named)[0].passages


def test_positives_and_negatives_are_turned_round_anew_each_epoch(groups: Path) -> None:
    assert seen(groups, 0, rotate=None) == PASSAGES
    drawn = set()
    for epoch in range(12):
        found = seen(groups, epoch)
        drawn.add(tuple(found))
        expected = [rotated(t, cut_of(t, str(i), mixed_seed(0, epoch))) for i, t in enumerate(PASSAGES)]
        assert found == expected == seen(groups, epoch)
        assert [sorted(text.split()) for text in found] == [sorted(text.split()) for text in PASSAGES]
        assert found[3:] == PASSAGES[3:]
        # What a data-loading process is given.
        assert pickle.loads(pickle.dumps(lists(groups, epoch)))[0].passages == found
    assert len(drawn) > 6
    assert {texts[0].split()[0] for texts in drawn} > {"one", "two"}
    assert {texts[2].split()[0] for texts in drawn} == {"six", "seven", "eight"}
    assert seen(groups, 1, seed=1) != seen(groups, 1)


def test_at_sentences_alone(groups: Path) -> None:
    starts = {seen(groups, epoch, rotate="sentence")[1] for epoch in range(20)}
    assert starts == {
        "She is here. He left. It rained",
        "He left. It rained She is here.",
        "It rained She is here. He left.",
    }
    assert sentence_starts(PASSAGES[1].split()) == [0, 3, 5]
