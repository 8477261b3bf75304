"""Every number of every page can be reached: on a phone, a tablet, a desktop and on paper.

The pages of studies and of word vectors are checked where they are made.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank
from evenrank.papers.claims import Claim, Decided, Effect, Verdict
from evenrank.papers.figures import Figures
from evenrank.papers.report import Chart, ExperimentPage, Layout, Row
from evenrank.results.finding import Finding
from evenrank.results.page import Page, Section, curve, histogram, make_foldable
from evenrank.results.table import Column, digits
from evenrank.results.table import Table as PageTable
from evenrank.stats.estimate import Estimate
from reaching import unreachable

QUERIES = 3
LONG = "x" * 90


def many_runs() -> Any:
    """An audit of runs with long names, each with another order of the same passages, whose ids are long too."""
    names = [f"bert-base-uncased.msmarco-passage.run-{i}.{'long-' * 4}name" for i in range(9)]
    queries = {f"q{q}{LONG}": [f"q{q}{LONG}-{i}" for i in range(4)] for q in range(QUERIES)}
    texts = [f"{word} {LONG} {i}" for i, word in enumerate(("he", "she", "it", "stone"))]
    runs = {
        name: {query: {doc: float((7 * i + 3 * n * (i + 1)) % 5) for i, doc in enumerate(docs)}
               for query, docs in queries.items()}
        for n, name in enumerate(names)
    }  # fmt: skip
    qrels = {query: {f"{query}-1": 1} for query in queries}
    collection = {doc: text for docs in queries.values() for doc, text in zip(docs, texts, strict=True)}
    return evenrank.audit(runs, collection=collection, qrels=qrels, baseline=names[0])


def any_table(folder: Path) -> Any:
    """Many columns with long headings, long names, long values, and nothing that names a row."""
    columns = tuple(Column(f"heading {i} of many", digits(0)) for i in range(17))
    rows = (tuple(f"[−{i}.1234, {i}.5678]" for i in range(17)), (LONG, *("1,234,567",) * 16))
    table = PageTable(LONG, columns, rows, (LONG,))
    places = ("answer", "warning", "finding", "note")
    said = tuple(Finding("key", LONG, "shown", None, f"{LONG} {LONG}", place) for place in places)  # type: ignore[arg-type]
    sections = (Section(LONG, (table, table), hint=LONG),)
    return Page("kind", LONG, said, None, sections=sections, facts=((LONG, "1"),), notes=(LONG,), next=((LONG, LONG),))


def experiment(folder: Path) -> Any:
    """What the pages of experiments have: long names, figures with intervals, changes and published ones, charts."""
    names = tuple(f"{name} on {part}" for name, part in product(["nDCG@10", "|ARaB@10|"], "abcde"))
    value = Estimate(-0.1234, (-0.1334, -0.1134), 1234, "queries")
    published, changed = dict.fromkeys(names, 0.12), dict.fromkeys(names, (-0.1234, 0.01))
    systems = [f"BERT-base bias-aware {i}" for i in range(6)]
    rows = tuple(Row(one, f"MiniLM {LONG}", dict.fromkeys(names, value), published, changed, LONG) for one in systems)
    layout = Layout("Table 1", "What it costs", names, digits=4, notes=(LONG,))
    figures = Figures(True)
    for (place, one), name in product(enumerate(systems), ("nDCG@10", "bias")):
        figures.add(name, one, 0, ["q1", "q2", "q3"], np.array([0.1, 0.2, 0.4]) * place)
    around = {"value": 0.5, "low": 0.4, "high": 0.6}
    shares = [{"x": x / 5, "measure": f"measure {m}", **around} for x, m in product(range(5), range(4))]
    drawings = (
        curve("Figure 1", "Over the share", shares, "share λ"),
        *Chart("Effectiveness against position bias", tuple(systems), "nDCG@10", "bias").drawings(figures, []),
        histogram("Figure 3", "Where answers begin", [{"low": 0.0, "high": 0.5, "share": 1.0, "count": 3}], "position"),
    )
    claim = Decided(Claim("position", "key", LONG, LONG, LONG), Verdict("undecided", (LONG,)), (Effect(LONG, value),))
    laid = ((layout, rows),)
    return ExperimentPage("position", LONG, LONG, "tiny", (0,), {LONG: LONG}, {}, (claim,), laid, (), drawings, (LONG,))


Made = Callable[[Path], Any]
PAGES: dict[str, Made] = {
    "many runs with long names": lambda _: many_runs(),
    "any table": any_table,
    "an experiment": experiment,
}


def write(made: Any, path: Path) -> str:
    if isinstance(made, Page):
        path.write_text(made.html(), encoding="utf-8")
    else:
        made.report(path)
    return path.as_uri()


@pytest.mark.parametrize("kind", PAGES)
def test_every_number_can_be_reached(browser: Any, kind: str, tmp_path: Path) -> None:
    page = browser.new_page()
    page.goto(write(PAGES[kind](tmp_path), tmp_path / "page.html"))
    assert unreachable(page) == []
    page.close()


def html_table(head: list[str], *rows: str) -> str:
    heads = "".join(f"<th>{one}</th>" for one in head)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table class="plain"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def test_each_figure_says_its_heading() -> None:
    page = make_foldable(html_table(["Run", "b &amp; &#34;c&#34;"], '<th scope="row">old</th><td>1</td>'))
    assert '<th role="rowheader" scope="row">old</th>' in page
    assert '<td role="cell" data-label="b &amp; &quot;c&quot;">1</td>' in page
    assert page.count('role="columnheader"') == 2
    # A row that is named by a number says what it is a number of.
    page = make_foldable(html_table(["from", "n"], "<th>0.2</th><td>1</td>"))
    assert '<th role="rowheader" data-label="from">0.2</th>' in page
