"""Audits of labels: the same figures from every form, and what is said of documents without a label."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import evenrank
from small_audits import judged, run, text_of, words

Weights = dict[str, dict[str, float]]
MEASURES = (
    "nDCG@10 NFaiRR@4 ARaB(magnitude='count')@4 |ARaB|(magnitude='count')@4 Share(group='f')@4 ExposureGap@4 AWRF@4"
    " DeltaAPRF"
)


def lists(seed: int) -> dict[str, list[str]]:
    draw = random.Random(seed)
    return {f"q{i}": draw.sample([f"d{n}" for n in range(40)], draw.randint(6, 12)) for i in range(12)}


def tied(of: dict[str, list[str]]) -> pl.DataFrame:
    """A run in which pairs of documents are tied."""
    rows = [(query, doc, float(-(place // 2))) for query, docs in of.items() for place, doc in enumerate(docs)]
    return pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")


def labelled(seed: int, *, share: float = 1.0) -> Weights:
    draw = random.Random(seed)
    ways = [(1.0, 0.0), (0.0, 1.0), (0.5, 0.5), (0.0, 0.0), (0.25, 0.5)]
    weights = {f"d{i}": dict(zip("mf", draw.choice(ways), strict=True)) for i in range(40)}
    return {doc: of for doc, of in weights.items() if draw.random() < share}


QRELS = judged({query: docs[2] for query, docs in lists(1).items()})
RUNS = {"A": tied(lists(1)), "B": run(lists(2)), "C": run(lists(3))}


def same(one: evenrank.AuditResult, other: evenrank.AuditResult) -> None:
    """Figures say the same of the documents themselves, without intervals and tests."""
    kept = ("run", "measure", "mean", "tie_mean", "tie_low", "tie_high")
    assert_frame_equal(one.to_polars().select(kept), other.to_polars().select(kept), abs_tol=1e-12, rel_tol=0)
    assert_frame_equal(one.per_query(), other.per_query(), abs_tol=1e-12, rel_tol=0)


# --- what is known ---------------------------------------------------------------------------------------------------


def test_the_counts_of_the_given_labels(shared_data: Path) -> None:
    folder = shared_data / "labels"
    expected = json.loads((folder / "expected.json").read_text())["top10"]
    runs = {name: shared_data / "runs" / name for name in expected}
    found = evenrank.audit(
        runs, labels=folder / "msmarco_gender.csv", neutral=["N"], order="file", unknown="bounds", measures="ARaB@10"
    )
    for name, counts in expected.items():
        labels = found[name].labels
        assert labels is not None
        assert {"rows": labels.rows, "N": labels.neutral, **labels.groups} == counts
        assert labels.known == counts["M"] + counts["F"] + counts["N"]
        assert found[name, "ARaB@10"].known == (labels.known, labels.rows)
    assert found.settings["poles"] == ["M", "F"]


# --- what is unknown -------------------------------------------------------------------------------------------------


def test_skip_is_the_run_without_these_documents() -> None:
    known = labelled(6, share=0.7)
    options: dict[str, Any] = {"labels": known, "baseline": "A"}
    options["measures"] = " ".join(m for m in MEASURES.split() if m not in ("nDCG@10", "DeltaAPRF"))
    skipped = evenrank.audit(RUNS, unknown="skip", **options)
    fewer = {name: table.filter(pl.col("doc_id").is_in(list(known))) for name, table in RUNS.items()}
    same(skipped, evenrank.audit(fewer, **options))
    assert "they are left out, and lists close up over them" in skipped.warnings[1]
    # Utility is of the whole run.
    whole = evenrank.audit(RUNS, labels=known, unknown="skip", qrels=QRELS, measures="nDCG@10 ARaB@4")
    assert whole["A", "nDCG@10"].mean == evenrank.audit(RUNS, qrels=QRELS, measures="nDCG@10")["A", "nDCG@10"].mean


def test_neutral_is_a_label_of_no_group() -> None:
    known = labelled(7, share=0.6)
    every = {doc: known.get(doc, {"m": 0.0, "f": 0.0}) for doc in labelled(7)}
    options: dict[str, Any] = {"qrels": QRELS, "baseline": "A", "measures": MEASURES}
    counted = evenrank.audit(RUNS, labels=known, unknown="neutral", **options)
    same(counted, evenrank.audit(RUNS, labels=every, **options))
    assert "they count as of no group" in " ".join(counted.warnings)


@pytest.mark.parametrize("unknown", ["bounds", "skip"])
def test_a_run_beside_itself_differs_by_nothing(unknown: Any) -> None:
    runs = {"A": RUNS["A"], "again": RUNS["A"], "C": RUNS["C"]}
    options: dict[str, Any] = {"qrels": QRELS, "baseline": "A", "measures": MEASURES}
    found = evenrank.audit(runs, labels=labelled(9, share=0.4), unknown=unknown, **options)
    for key, figure in found["again"].measures.items():
        compared = figure.vs_baseline
        assert (figure.mean, figure.bounds) == (found["A", key].mean, found["A", key].bounds)
        if figure.mean is not None:
            assert (compared.difference, compared.ci95, compared.holm_p) == (0, None, None)
    lean = "ARaB(magnitude='count')@4"
    assert found["C", lean].vs_baseline.difference != 0
    assert (found["A", lean].mean is None) == (unknown == "bounds")


def test_an_unknown_document_of_the_background_is_not_silently_neutral() -> None:
    known = {"a": "m", "b": "f", "c": "none", "d": "none"}
    runs = {"known": run({"1": ["a", "c"], "2": ["b", "d"]}), "base": run({"1": ["u", "a", "c"], "2": ["b", "v", "a"]})}
    options: dict[str, Any] = {"labels": known, "neutral": ["none"], "baseline": "base"}
    found = evenrank.audit(runs, measures="NFaiRR@2 ARaB@2", **options)
    # What it is normalised by is unknown, its own lean is known.
    assert found["known", "NFaiRR@2"].mean is None
    assert found["known", "ARaB@2"].mean is not None
    assert found["known", "ARaB@2"].bounds == (found["known", "ARaB@2"].mean,) * 2
    # Without unknown documents in its background, the run is as it would be alone.
    own = evenrank.audit(runs, measures="NFaiRR@2 ARaB@2", background="known", labels=known, neutral=["none"])
    assert own["known", "NFaiRR@2"].mean is not None
    assert own["base", "NFaiRR@2"].mean is None


def test_equally_neutral_documents_stay_in_order() -> None:
    # The thirds of three groups are not the same number in each group's formula. What is unknown counts as neutral.
    labels = {"z": "z", "x": "x", "y": "y", "n": "none", "u": None}
    found = evenrank.audit({"r": run({"1": ["z", "u", "x", "n", "y"]})}, labels=labels, neutral="none")
    shown = found.rankings.filter(pl.col("run") == "neutral-first")["doc_id"].to_list()
    assert shown == ["u", "n", "z", "x", "y"]


# --- what labels of some documents do not say -------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", ["bounds", "skip", "neutral"])
def test_labels_of_the_first_ranks_say_nothing_of_the_candidates(unknown: Any) -> None:
    """Only what is ranked first is labelled: what a random order of all candidates holds is not known."""
    of = {f"q{q}": [f"{q}-{place}" for place in range(6)] for q in range(20)}
    labels = {doc: "mf"[n % 4 == q % 3] for q, docs in enumerate(of.values()) for n, doc in enumerate(docs[:4])}
    second = {query: [*docs[:4][::-1], *docs[4:]] for query, docs in of.items()}
    found = evenrank.audit(
        {"a": run(of), "b": run(second)}, labels=labels, poles="m,f", unknown=unknown, baseline="a",
        qrels=judged({query: docs[1] for query, docs in of.items()}), measures="nDCG@4 NFaiRR@4 ARaB@4",
    )  # fmt: skip
    for one in found.runs:
        for key in ("NFaiRR@4", "ARaB@4"):
            figure = one[key]
            assert figure.vs_random_order is figure.vs_ideal_order is None
            # The lean of all that is ranked first is known, its neutrality beside that of other candidates is not.
            whole = key == "ARaB@4" and not one.reference
            assert (figure.partly_labelled, figure.ci95 is None) == (not whole, not whole), (one.name, key)
    assert found["a", "ARaB@4"].lean.shown
    said = words(found)
    assert said.count("What its order adds is not known, as some candidates have no label.") == 2
    for claim in ("beyond relevance", "random order", "most neutral order", "candidates lean"):
        assert claim not in said, claim
    page = " ".join(text_of(found.html()).split())
    assert "Some candidates have no label: what their random order would hold is not known" in page


@pytest.mark.parametrize(
    ("unknown", "why"), [("skip", "the figures are of the labelled"), ("neutral", "documents without a label could")]
)
def test_labels_of_some_queries_show_nothing(unknown: Any, why: str) -> None:
    """Eighteen of 40 queries have labels, all of m first: of what the others hold nothing is known."""
    of = {f"q{q}": [f"{q}-{place}" for place in range(3)] for q in range(40)}
    labels = {doc: "mf"[n == 2] for q, docs in enumerate(of.values()) for n, doc in enumerate(docs) if q < 18}
    runs = {"a": run(of), "b": run({query: docs[::-1] for query, docs in of.items()})}
    measures = "ARaB@2 Share(group='m')@2 |ARaB|@2"
    found = evenrank.audit(runs, labels=labels, poles="m,f", unknown=unknown, baseline="a", measures=measures)
    for figure in (figure for one in found.given for figure in one.measures.values()):
        assert (figure.n, figure.ci95, figure.vs_random_order, figure.partly_labelled) == (18, None, None, True)
        if (compared := figure.vs_baseline) is not None:
            assert (compared.n, compared.p, compared.tied, compared.significant) == (18, None, None, False)
    lean = found["a", "ARaB@2"].lean
    assert (lean.verdict, lean.n, lean.p) == ("cannot be told", 18, None)
    assert f"differs from a in ARaB@2 cannot be told: {why}" in words(found)


@pytest.mark.parametrize("unknown", ["skip", "neutral"])
def test_of_no_labelled_document_there_is_no_figure(unknown: Any) -> None:
    of = {f"q{q}": [f"u{q}", f"d{q}"] for q in range(20)}
    labels = {f"d{q}": "mf"[q % 2] for q in range(20)}
    found = evenrank.audit(
        {"a": run(of), "b": run({query: docs[::-1] for query, docs in of.items()})},
        labels=labels, poles="m,f", unknown=unknown, measures="ARaB@1 |ARaB|@1 NFaiRR@1 Share(group='m')@1",
    )  # fmt: skip
    for key, figure in found["a"].measures.items():
        assert figure.known == (0, 20), key
        assert (figure.mean, figure.n, figure.ci95, figure.tie_mean) == (None, 0, None, None), key
        assert np.isnan(figure.values).all()
    assert "a has no ARaB@1: no document that it looks at has a label." in words(found)
    assert found["b", "Share(group='m')@1"].mean == 0.5


# --- what is said ----------------------------------------------------------------------------------------------------


def test_default_measures() -> None:
    lists, labels = run({"1": ["a", "u", "b"], "2": ["c", "a"]}), {"a": "x", "b": "y", "c": "z"}
    without_poles = ["AWRF(target='candidates')@10", *(f"Share(group='{group}')@10" for group in "xyz")]
    assert [str(one) for one in evenrank.audit(lists, labels=labels).measures] == without_poles
    found = evenrank.audit(lists, labels=labels, poles="z,rest", qrels=judged({"1": "a"}))
    assert [str(one) for one in found.measures] == ["nDCG@10", "ARaB@10", *without_poles]
    two = evenrank.audit(run({"1": ["a", "b"]}), labels={"a": "x", "b": "y"})
    assert "Bias is x minus y: no poles were named, so the file's order decided (set `poles`)." in two.notes


# --- odd runs --------------------------------------------------------------------------------------------------------


def test_a_target_of_relevant_documents_knows_those_that_no_run_retrieved() -> None:
    texts = {"a": "he and him", "b": "she and her", "c": "her and hers"}
    options: dict[str, Any] = {"qrels": {"q": {"a": 1, "c": 1}}, "measures": "AWRF@2", "target": "relevant"}
    for groups in ({"collection": texts, "threshold": 0}, {"labels": {"a": "m", "b": "f", "c": "f"}}):
        found = evenrank.audit({"one": {"q": {"a": 2.0, "b": 1.0}}}, **groups, **options)
        # The relevant documents are one of each group: exposures 1 and .6309 against ½, ½.
        assert found["one", "AWRF@2"].mean == pytest.approx(0.99353, abs=1e-4)
