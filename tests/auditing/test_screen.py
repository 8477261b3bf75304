"""The audit's screen: how long and wide it is, and what its first lines say."""

from __future__ import annotations

import math
from typing import Any

import pytest

import evenrank
from evenrank.auditing import AuditResult
from small_audits import DOCS, QRELS, random_run
from small_reports import FIRST, SECOND, small_audit

LINES = {1: 22, 2: 22, 5: 30}
"""The most lines, by the number of runs; the command adds two: where there is more, and what comes next."""
GROUPS = ("movies", "restaurants", "books", "hotels", "travel", "sports")
LABELS = {doc: GROUPS[place % 6] for place, doc in enumerate(DOCS)}
LONG = {doc: f"the rather long name of the group of {group}" for doc, group in LABELS.items()}
LEANING = {doc: GROUPS[2 + place % 4 if place % 4 else place // 4 % 2] for place, doc in enumerate(DOCS)}
SOME = {doc: group for doc, group in LABELS.items() if int(doc[1:]) % 3}


def audited(count: int, name: str = "run-{}", *, baseline: bool = True, **given: Any) -> AuditResult:
    """An audit of so many runs; what is not of a run is of the audit."""
    options = {key: given.pop(key) for key in ("queries", "ties") if key in given}
    runs = {
        name.format("abcde"[place]): random_run(place, lean=0.4 * place, good=place % 3, **options)
        for place in range(count)
    }
    settings: dict[str, Any] = {"collection": DOCS, "qrels": QRELS, **given}
    return evenrank.audit(runs, baseline=next(iter(runs)) if baseline else None, **settings)


of_labels: dict[str, Any] = {"collection": None, "labels": LABELS}
LONG_NAME = "a-run-with-a-very-long-name-that-says-how-it-was-made-{}"
SCREENS: dict[str, tuple[int, dict[str, Any]]] = {
    "one run": (1, {}),
    "one run without qrels": (1, {"qrels": None}),
    "one run of labels": (1, of_labels),
    "two runs": (2, {}),
    "two runs without a baseline": (2, {"baseline": False}),
    "two runs without qrels": (2, {"qrels": None}),
    "two runs with all of it": (2, {"name": "a-run-with-a-rather-long-name-{}", "ties": True, "queries": 30}),
    "two runs of ten queries": (2, {"queries": 10}),
    "two runs of labels of some documents": (2, {**of_labels, "labels": SOME}),
    "two runs of long labels": (2, {**of_labels, "labels": LONG, "name": LONG_NAME}),
    "five runs without a baseline": (5, {"baseline": False}),
    "five runs with all of it": (5, {"name": LONG_NAME, "ties": True, "queries": 30}),
    "five runs of labels that lean": (5, {**of_labels, "labels": LEANING}),
    "five runs of labels that lean, with all of it": (
        5,
        {**of_labels, "labels": LEANING, "name": LONG_NAME, "ties": True, "queries": 30},
    ),
}


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_short_and_narrow(name: str, snapshot: Any) -> None:
    count, given = SCREENS[name]
    screen = audited(count, **given).table()
    assert screen == snapshot
    assert len(screen.splitlines()) <= LINES[count]
    assert max(map(len, screen.splitlines())) <= 80


def test_few_queries_are_said_above_the_table() -> None:
    runs = {"old": random_run(0, queries=5), "new": random_run(1, queries=5, lean=2.0)}
    qrels = {query: QRELS[query] for query in runs["old"]}
    found = evenrank.audit(runs, collection=DOCS, qrels=qrels, baseline="old")
    assert [one.key for one in found.findings if one.place == "warning"] == ["unjudged_documents", "few"]
    assert "Only 5 queries" in found.table().split("\n\n")[0]
    others = {query: {f"x{doc}": grade for doc, grade in of.items()} for query, of in qrels.items()}
    said = evenrank.audit(runs, collection=DOCS, qrels=others).misleading[0].text
    assert said.endswith("not relevant; check that the judgements have the runs' document ids).")
    assert {one.level for one in found.findings if one.place == "finding"} == {"cannot be told"}


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return small_audit()


def all_figures(result: AuditResult, width: int) -> str:
    """What `--full` adds to the screen, from the table of figures on."""
    return result.table(full=True, width=width).partition("All figures of all runs")[2]


def line_of(table: str, measure: str, name: str) -> str:
    lines = table.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(measure))
    return next(line for line in lines[start:] if line.strip().startswith(name))


def test_table_by_hand(result: AuditResult, snapshot: Any) -> None:
    table = all_figures(result, 120)
    assert line_of(table, "ARaB@10", "old").split()[:6] == [
        "old", f"{FIRST:.4f}", "–", f"{FIRST:.4f}", f"[{FIRST:.4f},", f"{FIRST:.4f}]",
    ]  # fmt: skip
    new = line_of(table, "ARaB@10", "new").split()
    assert new[1] == f"{SECOND:.4f}"
    assert new[6:10] == [f"{SECOND - FIRST:.4f}", "–", "–", "3/0/0"]  # too few for a test
    assert line_of(table, "nDCG@10", "old").split()[1] == f"{1 / math.log2(3):.4f}"
    assert line_of(table, "ARaB@10", "(random)").split()[1] == f"{math.log(2) / 2:.4f}"
    assert line_of(table, "ARaB@10", "(neutral-first)").split()[1] == f"{SECOND:.4f}"
    signed = small_audit(measures="nDCG@10 NFaiRR@10 ARaB@10 DeltaAPRF")
    alone = small_audit(qrels=None, baseline=None, measures=None)
    assert [one.table(full=True, width=120) for one in (result, signed, alone)] == snapshot
