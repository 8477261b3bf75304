"""The audit as a page: what it holds, what it loads, and what must be escaped."""

from __future__ import annotations

import base64
import hashlib
from html.parser import HTMLParser

import polars as pl
import pytest

import evenrank
from evenrank.auditing import AuditResult, page_data
from evenrank.auditing.audit_page import render_page
from evenrank.auditing.page_data import mark, most_telling
from evenrank.groups import load_lexicon
from page_parts import data, unpacked
from small_reports import QUERIES, run, small_audit


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return small_audit()


@pytest.fixture(scope="module")
def page(result: AuditResult) -> str:
    return render_page(result)


class Elements(HTMLParser):
    """The page's elements, the content of its scripts, and all other text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self.inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] += data
        else:
            self.text.append(data)


def test_page_loads_nothing(page: str) -> None:
    elements = Elements(page)
    addresses = [attrs.get(name) for _, attrs in elements.tags for name in ("src", "href", "action", "srcset", "data")]
    assert all(address.startswith(("#", "data:,")) for address in addresses if address is not None)
    assert "@import" not in page
    policy = next(
        attrs["content"] for _, attrs in elements.tags if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy
    assert [attrs.get("type") for tag, attrs in elements.tags if tag == "script"] == [
        "text/plain",
        "text/plain",
        "text/plain",
        None,
    ]
    # Its own script, and the packed libraries that this one runs.
    for code in (elements.scripts[-1], unpacked(page, "libraries")):
        assert base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() in policy
    assert policy.count("sha256-") == 2


NASTY = "<script>window.x=1</script>"


def test_page_escapes_everything() -> None:
    query, doc, name = 'q"</script><!--\u2028', "<img src=x onerror=alert(1)>&amp;", f"run '\"{NASTY}"
    table = pl.DataFrame({"query_id": [query, query], "doc_id": [doc, "d2"], "score": [2.0, 1.0]})
    audit = evenrank.audit(
        {name: table},
        collection=pl.DataFrame({"doc_id": [doc, "d2"], "text": [f"She said {NASTY} <!-- </script> to him", NASTY]}),
        queries=pl.DataFrame({"query_id": [query], "text": [NASTY]}),
        measures="ARaB@10",
    )
    page = render_page(audit)
    elements = Elements(page)
    assert [tag for tag, _ in elements.tags].count("script") == 3
    assert "img" not in {tag for tag, _ in elements.tags}
    assert all(not name.startswith("on") for _, attrs in elements.tags for name in attrs)
    held = data(page)
    shown = held["queries"]["queries"][0]
    assert (shown["id"], shown["text"]) == (query, NASTY)
    assert held["queries"]["documents"][0]["id"] == doc
    assert held["audit"]["runs"][0]["name"] == name
    assert name in "".join(elements.text)
    for text in elements.scripts:
        assert "<!--" not in text
    assert "<script>window" not in page


def test_page_without_texts_queries_or_judgements() -> None:
    texts = pl.DataFrame({"doc_id": [f"{q}{d}" for q in QUERIES for d in ("he", "it")], "text": ["he", "it"] * 3})
    scores = evenrank.GroupTable.of(evenrank.groups.score_texts(texts, evenrank.Scoring(load_lexicon())))
    page = render_page(evenrank.audit({"r\x1b[31m\u202eb": run(["he", "it"])}, scores=scores, measures="ARaB@10"))
    browser = data(page)["queries"]
    assert (browser["texts"], browser["queryTexts"], browser["marked"]) == (False, False, False)
    assert "text" not in browser["documents"][0]
    # No name steers the terminal that shows a page.
    assert "\x1b" not in page
    assert "r�[31m�b" in "".join(Elements(page).text)


def test_most_telling_queries_first(monkeypatch: pytest.MonkeyPatch) -> None:
    old = run(["he", "it"])
    swapped = pl.when(pl.col("query_id") == "q2").then(-pl.col("score")).otherwise(pl.col("score"))
    runs, texts = {"old": old, "new": old.with_columns(score=swapped)}, {doc: doc[2:] for doc in old["doc_id"]}
    audit = evenrank.audit(runs, collection=texts, baseline="old", measures="ARaB@10")
    assert audit.queries[most_telling(audit, 1).tolist()].to_list() == ["q2"]
    # Two queries of two documents in three rankings; the random order has none.
    monkeypatch.setattr(page_data, "ENTRY_CAP", 2 * 3 * 2 + 1)
    monkeypatch.setattr(page_data, "VALUE_CAP", 2)
    held = data(render_page(audit))
    assert [query["id"] for query in held["queries"]["queries"]] == ["q2", "q1"]
    # The first and the last query speak for all; the one that is shown as well follows.
    assert held["values"]["ids"] == ["q1", "q3", "q2"]
    assert held["values"]["sampled"] == 2
    assert held["charts"]["chosenBy"] == "difference from old in ARaB@10"


def test_a_long_text_is_cut_around_its_marked_words() -> None:
    early = ["a" * 50, (0, "he"), "b" * 50, (1, "she"), "c" * 500]
    assert page_data.excerpt(early, 1000) == (early, 0)
    assert page_data.excerpt(early, 200) == ([*early[:4], "c" * 95], 0)
    late = ["a" * 500, (0, "he"), "b" * 400, (1, "she"), " and ", (1, "her"), "c" * 50]
    # 902 is where "she" begins; 50 characters (a quarter of 200) stand before it, and the text's end is 53 + 8 further.
    assert page_data.excerpt(late, 200) == (["b" * (200 - 3 - 5 - 3 - 50), *late[3:]], 763)
    assert page_data.excerpt(["a" * 500, (0, "he"), "b" * 400], 100) == (["a" * 25, (0, "he"), "b" * 73], 475)
    assert page_data.excerpt(["a" * 500], 100) == (["a" * 100], 0)
    # A word that the cut goes through is not marked: half of it counts for nothing.
    assert page_data.excerpt([(0, "he"), "a" * 7, (0, "woman"), "b"], 12) == ([(0, "he"), "a" * 7, "wom"], 0)


def test_long_texts_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_data, "TEXT_MOST", 4)
    monkeypatch.setattr(page_data, "TEXT_LEAST", 4)
    document = data(render_page(small_audit()))["queries"]["documents"][0]
    assert document["text"] == [[1, "He"], " r"]
    assert document["length"] == len("He runs.")


def test_marking() -> None:
    lexicon = load_lexicon()
    assert mark("👩 Her, the woman's.", lexicon, ["f", "m"]) == ["👩 ", (0, "Her"), ", the ", (0, "woman"), "'s."]
    assert mark("He is.", None, ["f", "m"]) == ["He is."]
    assert mark("", lexicon, ["f", "m"]) == []
