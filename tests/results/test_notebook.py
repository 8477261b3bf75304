"""Results as an interpreter and a notebook show them, and names that are asked for in brackets."""

from __future__ import annotations

from typing import Any

import pytest

import evenrank
from evenrank.files.errors import UnknownNameError

TEXTS = {f"d{number}": "she and her" if number % 2 else "he said he" for number in range(40)}
RUNS = {
    "<b>plain": {f"q{q}": {f"d{d}": 40.0 - (d * (q + 3)) % 41 for d in range(40)} for q in range(30)},
    "other\x1b[2J": {f"q{q}": {f"d{d}": float(d) for d in range(40)} for q in range(30)},
}
QRELS = {f"q{q}": {f"d{q}": 1} for q in range(30)}


@pytest.fixture(scope="module")
def audited() -> evenrank.AuditResult:
    return evenrank.audit(RUNS, collection=TEXTS, qrels=QRELS, baseline="<b>plain", measures="nDCG@10 ARaB@10")


def test_an_audit_in_the_interpreter_is_its_screen(audited: evenrank.AuditResult) -> None:
    assert repr(audited) == str(audited) == audited.table()
    assert max(map(len, repr(audited).splitlines())) <= 80
    assert "\x1b" not in repr(audited)
    without = evenrank.audit(RUNS["<b>plain"], collection=TEXTS)
    assert repr(without).startswith("Effectiveness is unknown: there are no qrels.")
    assert without._repr_html_().startswith("<div><p><b>Effectiveness is unknown: there are no qrels.")


def test_figures_in_a_line(audited: evenrank.AuditResult) -> None:
    run, figure = audited["<b>plain"], audited["<b>plain"]["nDCG@10"]
    interval = "[{:.4f}, {:.4f}]".format(*figure.ci95 or ())
    assert repr(figure) == f"MetricValue(nDCG@10: {figure.mean:.4f} {interval}, 30 queries)"
    other: Any = audited["other\x1b[2J", "ARaB@10"]
    compared = other.vs_baseline
    counts = f"{compared.better}/{compared.equal}/{compared.worse} better/equal/worse"
    assert repr(compared).startswith(f"RunComparison({compared.difference:+.4f}, {counts}, Holm p ")
    assert repr(compared).endswith(", 30 queries)")
    assert repr(other).endswith(f", 30 queries, {compared.difference:+.4f} vs baseline)")
    bias = run["ARaB@10"].mean
    assert repr(run) == f"RunAudit(<b>plain: 30 queries, nDCG@10 {figure.mean:.4f}, ARaB@10 {bias:.4f})"


def test_an_audit_is_a_collection_of_runs_with_names_in_brackets(audited: evenrank.AuditResult) -> None:
    assert list(audited) == ["<b>plain", "other\x1b[2J", "random", "neutral-first", "relevance-first"]
    assert len(audited) == 5
    assert [name in audited for name in ("random", "nope", 5)] == [True, False, False]
    assert [audited[name].name for name in audited] == list(audited)
    assert audited["random"].reference
    assert audited["<b>plain", "ARaB@10"] is audited["<b>plain"].measures["ARaB@10"]
    assert audited["<b>plain"]["ARaB(magnitude='tf')@10"] is audited["<b>plain"].measures["ARaB@10"]
    with pytest.raises(UnknownNameError) as caught:
        audited["nope"]
    runs = "<b>plain, other\\x1b[2J, random, neutral-first, relevance-first"
    assert str(caught.value) == f"no run 'nope' (the runs are {runs})"
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, evenrank.EvenrankError)
    for measure in ("P@3", "nothing", ""):
        with pytest.raises(KeyError) as caught_measure:
            audited["random", measure]
        assert str(caught_measure.value) == f"no measure {measure!r} (the measures are nDCG@10, ARaB@10)"
