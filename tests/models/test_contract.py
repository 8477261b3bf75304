"""What every ranker promises, whatever its kind: the cases stand in ``ranker_factories``."""

from __future__ import annotations

import pytest

from ranker_factories import CASES, Case
from tiny_models import WORDS

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from evenrank.models.protocol import Ranker
from evenrank.testing import check_ranker


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def ranker(case: Case) -> Ranker:
    return case.make(0).eval()


def test_every_kind_keeps_to_the_contract(case: Case) -> None:
    check_ranker(case.make, WORDS)


def test_what_is_read_and_which_answers_are_lost(case: Case, ranker: Ranker) -> None:
    words = [WORDS[i % len(WORDS)] for i in range(case.passage_words + 5)]
    long, short = " ".join(words), " ".join(words[:3])
    kept = " ".join(words[: case.passage_words])
    queries = [" ".join(WORDS[:2])] * 2
    assert ranker.reads_to(queries, [long, short]) == [len(kept), len(short)]
    # An answer that ends with the last word that is read is kept; one that goes on is lost.
    assert ranker.lost_spans(queries, [long, long], [len(kept), len(kept) + 1]) == 1
    assert ranker.lost_spans(queries[:1], [short], [len(short)]) == 0
