"""Texts that try to be more than text, on every page evenrank writes, in a browser: they show, and nothing runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank
from evenrank.groups import load_lexicon
from evenrank.papers.figures import Figures
from evenrank.papers.report import Chart
from evenrank.results.finding import Finding
from evenrank.results.page import Chip, Drawing, Page, Section, Verdicts, curve, histogram
from evenrank.results.table import Column, Table
from page_parts import Opened
from small_reports import small_experiment

EVIL = (
    "<script>window.evil=1</script>",
    "</script><script>window.evil=1</script>",
    "</style></title></textarea><script>window.evil=1</script>",
    '"><img src=x onerror="window.evil=1">',
    "'><svg/onload='window.evil=1'>",
    "' onmouseover='window.evil=1' autofocus onfocus='window.evil=1",
    "`${window.evil=1}`",
    "javascript:window.evil=1",
    "[a](javascript:window.evil=1)",
    "{{ 7 * 7 }}{% if %}{# #}",
    "<!--<script>",
    "]]><b>bold</b>",
    "\u2028window.evil=1;\u2029//",
    "&lt;b&gt;&amp;#39;&#x3c;",
    '{"expr": "window.evil=1"}',
    "datum.evil ? toString.constructor('window.evil=1')() : 1",
    "\\u003cscript\\u003ewindow.evil=1\\u003c/script\\u003e",
    "\u202eevil\u202c",
    "__proto__",
    "constructor",
    "hasOwnProperty",
)
ALL = " | ".join(EVIL)


def open_page(browser: Any, path: Path) -> Opened:
    """The page with all its parts open."""
    opened = Opened(browser, path)
    opened.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    opened.page.wait_for_function(
        "() => [...document.querySelectorAll('.chart')].every(c => c.querySelector('svg.marks, .chart'))"
    )
    return opened


def shown(opened: Opened) -> str:
    return flat(opened.page.evaluate("document.body.textContent"))


def check(opened: Opened) -> None:
    """Nothing ran that is not the page's own, and nothing was asked for."""
    # Whatever waits for the mouse or the focus gets it.
    opened.page.evaluate(
        "document.querySelectorAll('*').forEach(one => ['mouseover', 'focus', 'click', 'error', 'load']"
        ".forEach(name => one.getAttribute('on' + name) && one.dispatchEvent(new Event(name))))"
    )
    assert opened.page.evaluate("typeof window.evil") == "undefined"
    assert opened.page.evaluate("({}).evil") is None
    attributes = "all => all.flatMap(one => one.getAttributeNames()).filter(name => name.startsWith('on'))"
    assert opened.page.locator("*").evaluate_all(attributes) == []
    links = opened.page.locator("[href]").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert [link for link in links if link.startswith("javascript:")] == []
    opened.close()


def flat(text: str) -> str:
    return " ".join(text.split())


def readable(text: str) -> str:
    """A text as a page's source shows it: without what turns the direction of letters."""
    return flat(re.sub("[\u202a-\u202e]", "\ufffd", text))


def lexicon(folder: Path) -> Path:
    """A lexicon whose groups and words are as bad as the rest."""
    groups = {"m": ["he", *EVIL[:3]], "f": ["she", "window.evil"], "<img src=x onerror=window.evil=1>": ["it"]}
    lines = [f"{json.dumps(group)} = {json.dumps(words)}" for group, words in groups.items()]
    path = folder / "own.toml"
    path.write_text(f"name = {json.dumps(EVIL[1])}\n[words]\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


WITHOUT_GROUPS = """all => all.map(one => {
    const copy = one.cloneNode(true);
    copy.querySelectorAll("mark > *").forEach(group => group.remove());
    return copy.textContent;
})"""


def test_audit(browser: Any, tmp_path: Path) -> None:
    documents = {f"{evil} {kind}": f"{who} said {evil}" for evil in EVIL for kind, who in (("1", "he"), ("2", "she"))}
    names = [EVIL[0], EVIL[3], EVIL[15], "__proto__"]
    of_query = {query: [doc for doc in documents if doc.startswith(query)] for query in EVIL}
    runs = {
        name: {query: {doc: float((i + n) % 2) for i, doc in enumerate(docs)} for query, docs in of_query.items()}
        for n, name in enumerate(names)
    }
    result = evenrank.audit(
        runs,
        collection=documents,
        queries={query: f"text {query}" for query in EVIL},
        qrels={query: {f"{query} 1": 1} for query in EVIL},
        baseline=EVIL[0],
        lexicon=load_lexicon(lexicon(tmp_path)),
    )
    result.report(tmp_path / "report.html")
    opened = open_page(browser, tmp_path / "report.html")
    found = shown(opened)
    assert [name for name in names if flat(name) not in found] == []
    assert opened.page.locator("#list button").count() == len(EVIL)
    for number in range(len(EVIL)):
        button = opened.page.locator("#list button").nth(number)
        query = button.evaluate("one => one.dataset.query")
        button.click()
        assert flat(opened.page.inner_text("#detail h3")) == flat(f"text {query}")
        ids = opened.page.locator(".rankings .meta").all_text_contents()
        assert any(flat(f"{query} 1") in flat(text) for text in ids)
        passages = opened.page.locator(".rankings .passage").evaluate_all(WITHOUT_GROUPS)
        assert flat(f"he said {query}") in map(flat, passages)
    opened.page.fill("#search", EVIL[4])
    assert opened.page.locator("#list button").count() >= 1
    check(opened)


def drawings() -> tuple[Drawing, ...]:
    """One of each kind. The names of axes are evenrank's own; all else may come from a file."""
    rows = [{"x": i, "measure": evil, "value": 1.0, "low": 0.5, "high": 2.0} for i, evil in enumerate(EVIL[:6])]
    heights = [{"low": 0.0, "high": 0.5, "share": 1.0, "count": 3}]
    figures = Figures(True)
    for i, evil in enumerate(EVIL):
        for name in ("MRR", "bias"):
            figures.add(name, evil, 0, ["q1", "q2"], np.array([0.1 * i, 0.2]))
    return (
        curve(ALL, ALL, rows, "words", ALL),
        histogram(ALL, ALL, heights, "words", ALL, expected=0.5),
        *Chart(ALL, EVIL, "MRR", "bias", hint=ALL).drawings(figures, []),
    )


def plain_page() -> Page:
    """The page of the position commands and of the audit of word vectors."""
    columns = tuple(Column(f"{place}", heading=evil) for place, evil in enumerate(EVIL))
    tables = (Table(ALL, columns, (EVIL, EVIL), (ALL,)),)
    said = tuple(Finding(ALL, evil, "shown", None, evil, place) for evil in EVIL for place in ("answer", "finding"))
    verdicts = Verdicts(EVIL, ((ALL, tuple(Chip(evil) for evil in EVIL)),))
    return Page(
        ALL, ALL, said, tables[0], EVIL, ALL, tuple((evil, evil) for evil in EVIL), verdicts,
        sections=(Section(ALL, tables, drawings, ALL),), facts=tuple(zip(EVIL, EVIL, strict=True)), notes=EVIL,
    )  # fmt: skip


@pytest.mark.parametrize("make", [plain_page, lambda: small_experiment(ALL, drawings()).page()], ids=["plain", "study"])
def test_pages(browser: Any, tmp_path: Path, make: Callable[[], Page]) -> None:
    make().write(tmp_path / "p.html")
    opened = open_page(browser, tmp_path / "p.html")
    found = shown(opened)
    assert [evil for evil in EVIL if found.count(readable(evil)) < 5] == []
    check(opened)
