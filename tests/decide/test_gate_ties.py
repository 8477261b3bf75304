"""What ties or missing queries decide is not shown by a gate either."""

from __future__ import annotations

import pytest

import evenrank

QUERIES = [f"q{n}" for n in range(60)]
RULE = {"measure": "nDCG@10", "against": "baseline", "at_least": "-5%"}


def gated(old: dict[str, dict[str, float]], new: dict[str, dict[str, float]], relevant: str) -> evenrank.GateResult:
    qrels = {query: {relevant: 1} for query in QUERIES}
    audit = evenrank.audit(
        {"old": old, "new": new}, qrels=qrels, baseline="old", measures="nDCG@10", query_clusters="none"
    )
    result = evenrank.gate(audit, budget={"rule": [RULE]})
    assert evenrank.gate(audit.to_dict(values=True), budget={"rule": [RULE]}).outcome == result.outcome
    return result


@pytest.mark.parametrize(("relevant", "alone"), [("z", "holds"), ("a", "violated")])
def test_the_names_of_tied_documents_decide_nothing(relevant: str, alone: str) -> None:
    """The new run gives ten documents one score: ties are broken by falling id, so z is first and a last."""
    docs = "abcdefghiz"
    third = {query: {doc: float(doc == relevant) - 0.1 * place for place, doc in enumerate(docs)} for query in QUERIES}
    old = {query: {**scores, "x": 2.0, "y": 3.0} for query, scores in third.items()}
    tied = {query: dict.fromkeys(docs, 1.0) for query in QUERIES}
    result = gated(old, tied, relevant)
    assert (result.outcome, result.status()) == ("not shown", 3)
    assert result.findings[1].text == "It depends on the order of tied documents."
    # The same order without ties is decided.
    apart = {query: {doc: float(place) for place, doc in enumerate(docs)} for query in QUERIES}
    assert gated(old, apart, relevant).outcome == alone


def test_queries_that_a_run_lacks_decide_nothing() -> None:
    old = {query: {"r": 2.0, "d": 1.0} for query in QUERIES}
    new = {query: old[query] for query in QUERIES[:42]}
    result = gated(old, new, "r")
    assert result.outcome == "not shown"
    assert result.findings[1].text == "It depends on the queries that one of the runs lacks."
