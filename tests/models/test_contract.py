"""What every ranker promises, whatever its kind: the cases stand in ``ranker_factories``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ranker_factories import CASES, Case
from tiny_models import WORDS

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from evenrank.models.protocol import CandidateLists, Ranker
from evenrank.testing import check_ranker


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def ranker(case: Case) -> Ranker:
    return case.make(0).eval()


def test_every_kind_keeps_to_the_contract(case: Case) -> None:
    check_ranker(case.make, WORDS)


def cut(inputs: dict[str, Any]) -> int:
    """How many texts were too long."""
    return sum(int(value.sum()) for name, value in inputs.items() if name.endswith("cut"))


def test_what_is_too_long_is_cut_and_counted(case: Case, ranker: Ranker) -> None:
    kept = " ".join(WORDS[i % 7] for i in range(case.passage_words))
    assert cut(ranker.encode(CandidateLists(["night software"], [[kept, f"{kept} software"]]))) == 1
    if case.query_words is not None:
        query = " ".join(WORDS[i % 7] for i in range(case.query_words))
        assert cut(ranker.encode(CandidateLists([query, f"{query} software"], [["by night"]] * 2))) == 1


def test_the_folder_says_what_it_holds(ranker: Ranker, tmp_path: Path) -> None:
    ranker.save(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names & {"evenrank.json", "config.json", "modules.json"}
    if "evenrank.json" in names:
        assert json.loads((tmp_path / "evenrank.json").read_text())["kind"] == ranker.kind


def test_what_is_read_and_which_answers_are_lost(case: Case, ranker: Ranker) -> None:
    words = [WORDS[i % len(WORDS)] for i in range(case.passage_words + 5)]
    long, short = " ".join(words), " ".join(words[:3])
    kept = " ".join(words[: case.passage_words])
    queries = [" ".join(WORDS[:2])] * 2
    assert ranker.reads_to(queries, [long, short]) == [len(kept), len(short)]
    # An answer that ends with the last word that is read is kept; one that goes on is lost.
    assert ranker.lost_spans(queries, [long, long], [len(kept), len(kept) + 1]) == 1
    assert ranker.lost_spans(queries[:1], [short], [len(short)]) == 0
