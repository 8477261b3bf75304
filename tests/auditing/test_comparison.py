"""Differences between runs: over which queries and to which depth they are."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import evenrank
from evenrank.auditing.audit_page import render_page
from evenrank.files import Run
from small_audits import TEXTS, collection, judged, run, text_of

# --- common queries --------------------------------------------------------------------------------------------------


def test_a_difference_says_which_queries_it_is_over() -> None:
    first = run({str(q): ["m", "n", "f"] for q in range(4)})
    second = run({str(q): ["n", "m", "f"] if q < 6 else ["f", "m", "n"] for q in range(2, 8)})
    everything = pl.concat([first, second.filter(pl.col("query_id").cast(int) > 3)])
    found = evenrank.audit(
        {"first": first, "second": second}, collection=collection(TEXTS), baseline="first",
        background=evenrank.Run.from_table(everything, "all"),
        measures="RaB(magnitude='count')@1 |ARaB(magnitude='count')|@1",
    )  # fmt: skip
    figure = found["second"].measures["RaB(magnitude='count')@1"]
    # Four queries start with n, two with f (3 words): its mean is -1. On the common queries 2 and 3 it is 0, against 3.
    assert figure.mean == pytest.approx(-1)
    compared = figure.vs_baseline
    assert (compared.n, compared.mean, compared.baseline_mean, compared.difference) == (2, 0, 3, -3)
    whole = json.loads(found.to_json())["runs"]["second"]["measures"]["|ARaB|(magnitude='count')@1"]
    assert (whole["mean"], whole["vs_baseline"]["mean"], whole["vs_baseline"]["n"]) == (pytest.approx(1), 0, 2)
    assert "    on the 2 common queries: 0.0000 against 3.0000\n" in found.table(full=True, width=76)
    assert text_of(render_page(found)).count("2 common queries: 0.0000 against 3.0000") == 2


def test_the_queries_of_each_pole_are_counted() -> None:
    both = {str(q): ["m", "n", "f"] for q in range(6)}
    relevant = {str(q): "m" if q < 3 else "f" for q in range(6)}
    found = evenrank.audit(
        {"old": run(both), "new": run({q: docs for q, docs in both.items() if q != "0"})},
        collection=collection(TEXTS), qrels=judged(relevant), baseline="old", measures="DeltaAPRF",
    )  # fmt: skip
    compared = json.loads(found.to_json())["runs"]["new"]["measures"]["DeltaAPRF"]["vs_baseline"]
    # m beats both others, f none.
    assert (compared["n"], compared["mean"], compared["baseline_mean"]) == (5, 1, 1)
    assert "    on the 5 common queries: 1.0000 against 1.0000\n" in found.table(full=True, width=120)


# --- unequal depths --------------------------------------------------------------------------------------------------


def test_a_drawn_reference_is_not_compared_over_other_queries():
    docs = {f"d{i}": ("he and his father", "she and her mother", "a bridge")[i % 3] for i in range(6)}
    back = {"q1": ["d0", "d1", "d2"], "q2": ["d3", "d4", "d5"]}
    settings = {"background": Run.from_table(run(back), "back"), "collection": collection(docs), "measures": "|ARaB|@3"}
    found = evenrank.audit({"r": run({"q1": back["q1"]})}, baseline="r", **settings)
    compared = found["random", "|ARaB|@3"].vs_baseline
    assert (compared.difference, compared.mean, compared.n, compared.partial) == (None, None, 1, True)
    assert "no difference: estimated over other queries" in found.table(full=True, width=120)


def test_what_depth_decides_is_noted_and_left_out_of_the_words() -> None:
    docs = {f"d{i}": ("he and his father", "she and her mother", "a bridge")[i % 3] for i in range(20)}
    deep = {str(q): list(docs) for q in range(24)}
    options: dict[str, Any] = {
        "collection": collection(docs),
        "qrels": judged({str(q): f"d{12 + q % 4}" if q < 18 else "d1" for q in range(24)}),
        "measures": "nDCG@5 RR AP R@5 R@1000 NFaiRR@3 ARaB@10 DeltaAPRF",
    }
    # A single short list is no other depth.
    runs = {"deep": run(deep), "shallow": run({q: list(docs)[:5] for q in deep}), "one": run({**deep, "7": ["d1"]})}
    found = evenrank.audit(runs, baseline="deep", **options)
    compared = {name: figure.vs_baseline for name, figure in found["shallow"].measures.items()}
    decided = [name for name, one in compared.items() if one is not None and one.unequal_depth]
    assert decided == ["RR", "AP", "R@1000", "ARaB@10", "DeltaAPRF"]
    assert not any(one.vs_baseline.unequal_depth for one in found["one"].measures.values())
    assert (compared["R@1000"].significant, compared["R@1000"].test.reason) == (False, "the lists differ in length")
    note = "shallow has 5 documents per query, deep 20 (means over the queries of both); depth may decide RR, AP, R@"
    assert any(one.startswith(note) for one in found.notes)
    # Depth decides the lean: nothing is said of its difference.
    assert not any("ARaB@10" in one.text for one in found.findings if one.subject == "shallow" and "differ" in one.text)
    del runs["one"]
    only = evenrank.audit(runs, baseline="deep", **{**options, "measures": "R@1000"}).findings[0]
    assert (only.key, only.level, only.estimate.p) == ("depth", "cannot be told", None)
