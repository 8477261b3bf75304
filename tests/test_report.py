"""The audit as a table of text, as sentences, and as a page: figures by hand, wording, and what must be escaped."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import polars as pl
import pytest

import evenrank
from evenrank.audit import AuditResult, Comparison
from evenrank.audit.report import data
from evenrank.audit.report.data import mark, most_telling
from evenrank.audit.report.page import render_page
from evenrank.audit.report.summary import summarise
from evenrank.audit.report.text import render_text
from evenrank.groups import Lexicon, load_lexicon

QUERIES = ["q1", "q2", "q3"]
# One man's word gives the magnitude ln 2; its passage first, ARaB is (ln 2 + ln 2 / 2) / 2, second, half of ln 2 / 2.
FIRST, SECOND = 0.75 * math.log(2), 0.25 * math.log(2)


def run(order: list[str], score: float = 2.0) -> pl.DataFrame:
    rows = [(query, f"{query}{doc}", score - place) for query in QUERIES for place, doc in enumerate(order)]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")


def small_audit(**options: Any) -> AuditResult:
    """Three equal queries, each with a passage of one man's word, and one relevant without; two runs, both orders."""
    texts = [(f"{query}he", "He runs.") for query in QUERIES] + [(f"{query}it", "It runs.") for query in QUERIES]
    settings: dict[str, Any] = {
        "collection": pl.DataFrame(texts, schema=["doc_id", "text"], orient="row"),
        "qrels": pl.DataFrame({"query_id": QUERIES, "doc_id": [f"{q}it" for q in QUERIES], "relevance": [1, 1, 1]}),
        "queries": pl.DataFrame({"query_id": QUERIES, "text": ["who runs", "what runs", "where"]}),
        "baseline": "old",
        "threshold": 0,
        "measures": "nDCG@10 NFaiRR@10 ARaB@10",
    }
    runs = {"old": run(["he", "it"]), "new": run(["it", "he"])}
    return evenrank.audit(runs, **{**settings, **options})


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return small_audit()


@pytest.fixture(scope="module")
def page(result: AuditResult) -> str:
    return render_page(result)


def changed(result: AuditResult, name: str, measure: str, **changes: Any) -> AuditResult:
    """The audit with other values in one figure; ``vs`` changes its comparison."""
    vs = changes.pop("vs", None)
    figure = dataclasses.replace(result[name].figures[measure], **changes)
    if vs is not None:
        figure = dataclasses.replace(
            figure, vs_baseline=dataclasses.replace(figure.vs_baseline or Comparison(0.0), **vs)
        )
    runs = [
        dataclasses.replace(run, figures={**run.figures, measure: figure}) if run.name == name else run
        for run in result.runs
    ]
    return dataclasses.replace(result, runs=tuple(runs))


# --- text ------------------------------------------------------------------------------------------------------------


def line_of(table: str, measure: str, name: str) -> str:
    lines = table.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(measure))
    return next(line for line in lines[start:] if line.strip().startswith(name))


def test_table_by_hand(result: AuditResult) -> None:
    table = render_text(result, 120)
    assert table.startswith("evenrank audit: 2 runs, 3 queries, baseline old\n")
    assert line_of(table, "ARaB@10", "old").split() == [
        "old", f"{FIRST:.4f}", f"[{FIRST:.4f},", f"{FIRST:.4f}]", f"{FIRST:.4f}", f"[{FIRST:.4f},", f"{FIRST:.4f}]",
        "baseline",
    ]  # fmt: skip
    new = line_of(table, "ARaB@10", "new").split()
    assert new[1] == f"{SECOND:.4f}"
    assert new[-4:] == [f"{SECOND - FIRST:.4f}", "3/0/0", "–", "–"]  # all differ by the same: no t-test
    assert line_of(table, "nDCG@10", "old").split()[1] == f"{1 / math.log2(3):.4f}"
    assert line_of(table, "ARaB@10", "(random)").split()[1] == f"{math.log(2) / 2:.4f}"
    assert line_of(table, "ARaB@10", "(neutral-first)").split()[1] == f"{SECOND:.4f}"
    assert table.index("nDCG@10 (utility") < table.index("NFaiRR@10 (bias") < table.index("ARaB@10 (bias")
    assert "Holm p: corrected over the runs compared" in " ".join(table.split())
    assert "not corrected" in " ".join(table.split())
    assert table.index("Notes\n") < table.index("In words\n")


@pytest.mark.parametrize("width", [76, 80, 100, 120, 200])
def test_table_fits_its_width(result: AuditResult, width: int) -> None:
    table = render_text(result, width)
    assert max(map(len, table.split("\n"))) <= width
    assert "(random)" in table
    assert f"{SECOND - FIRST:.4f}" in table


def test_first_line_without_qrels() -> None:
    table = small_audit(qrels=None, baseline=None, measures=None).table()
    first, second = table.split("\n")[:2]
    assert first.startswith("Effectiveness is unknown")
    assert second == "evenrank audit: 2 runs, 3 queries, no baseline"
    assert table.count("Effectiveness is unknown: there are no qrels") == 1
    assert "(neutral-first)" in table


def test_ties_are_marked() -> None:
    tied = run(["he", "it"]).with_columns(score=1.0)
    table = small_audit(baseline=None).table()
    assert "~" not in line_of(table, "ARaB@10", "old")
    runs = {"tied": tied}
    audit = evenrank.audit(
        runs,
        collection=pl.DataFrame({"doc_id": tied["doc_id"], "text": ["He runs.", "It runs."] * 3}),
        measures="ARaB@10",
    )
    assert line_of(audit.table(), "ARaB@10", "tied").endswith(f"[{SECOND:.4f}, {FIRST:.4f}]~")
    assert "the order of its tied documents alone can move ARaB@10 from 0.173 to 0.520" in " ".join(summarise(audit))


def test_control_characters_do_not_reach_the_terminal() -> None:
    table = evenrank.audit(
        {"a\x1b[31m\u202eb": run(["he", "it"])},
        collection=pl.DataFrame({"doc_id": run(["he", "it"])["doc_id"], "text": ["he", "it"] * 3}),
        measures="ARaB@10",
    ).table()
    assert "\x1b" not in table
    assert "\u202e" not in table


# --- sentences -------------------------------------------------------------------------------------------------------


def sentence(result: AuditResult, words: str) -> str:
    found = [text for text in summarise(result) if words in text]
    assert len(found) == 1, summarise(result)
    return found[0]


def test_lean_towards_a_group(result: AuditResult) -> None:
    audit = changed(result, "old", "ARaB@10", mean=0.12, ci95=(0.05, 0.2))
    text = sentence(audit, "ranks of old lean")
    assert text.startswith("The first 10 ranks of old lean towards male-worded passages (ARaB@10 0.120, 95% interval")
    assert "0.050 to 0.200); a random order of the candidates gives 0.347." in text
    audit = changed(result, "old", "ARaB@10", mean=-0.12, ci95=(-0.2, -0.05))
    assert "towards female-worded passages" in sentence(audit, "ranks of old lean")


def test_no_clear_lean(result: AuditResult) -> None:
    text = sentence(changed(result, "old", "ARaB@10", mean=0.02, ci95=(-0.1, 0.14)), "no clear lean")
    assert "ranks of old show no clear lean between male-worded and female-worded passages" in text
    assert "lean in opposite ways cancel in ARaB@10" in text


def test_difference_significant_or_not(result: AuditResult) -> None:
    audit = changed(result, "new", "ARaB@10", vs={"holm_p": 0.003})
    text = sentence(audit, "ranks of new lean")
    assert "Its difference to old in ARaB@10 (-0.347) is significant (Holm p = 0.003): its mean is nearer to 0." in text
    text = sentence(changed(result, "new", "ARaB@10", vs={"holm_p": 0.4}), "ranks of new lean")
    assert "is not significant (Holm p = 0.400)." in text
    text = sentence(changed(result, "new", "ARaB@10", vs={"holm_p": None}), "ranks of new lean")
    assert "could not be tested" in text


def test_loss_is_ruled_out_only_by_non_inferiority(result: AuditResult) -> None:
    def words(**vs: Any) -> str:
        return " ".join(summarise(changed(result, "new", "nDCG@10", vs=vs)))

    assert "no loss shown, within 5% of old or better: nDCG@10" in words(holm_p=0.3, non_inferior=True)
    for unproven in (False, None):
        text = words(difference=-0.01, holm_p=0.3, non_inferior=unproven)
        assert "a loss against old cannot be ruled out: nDCG@10" in text
        assert "no loss" not in text
    worse = words(difference=-0.2, holm_p=0.001, non_inferior=False)
    assert "new is less effective than old" in worse
    assert "within 5%" not in worse
    assert "but within 5%" in words(difference=-0.01, holm_p=0.001, non_inferior=True)
    assert "new is more effective than old" in words(difference=0.2, holm_p=0.001, non_inferior=True)
    assert "cannot be compared with old" in words(difference=None, holm_p=None)


def test_effectiveness_unknown_and_untested() -> None:
    assert summarise(small_audit(qrels=None, measures="ARaB@10"))[0].startswith("Effectiveness is unknown")
    assert "no difference is tested" in summarise(small_audit(baseline=None))[0]


def test_neutrality_beside_the_references(result: AuditResult) -> None:
    text = sentence(result, "Neutrality of the first 10 ranks of new")
    assert "a random order of the candidates has" in text
    assert "the most neutral order 1.000." in text


def test_other_groups_by_name() -> None:
    lexicon = Lexicon("pets", ("cat", "dog"), (("cat", "cat"), ("dog", "dog")), (0.5, 0.5), ("dog", "cat"))
    table = run(["a", "b"])
    audit = evenrank.audit(
        {"r": table},
        collection=pl.DataFrame({"doc_id": table["doc_id"], "text": ["dog dog", "no pet"] * 3}),
        lexicon=lexicon,
        measures="ARaB@10",
    )
    assert "lean towards passages of group dog" in " ".join(summarise(audit))


# --- page ------------------------------------------------------------------------------------------------------------


class Elements(HTMLParser):
    """The page's elements, and the content of its scripts."""

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

    def blocks(self) -> dict[str, Any]:
        scripts = [attrs for tag, attrs in self.tags if tag == "script"]
        pairs = zip(scripts, self.scripts, strict=True)
        return {str(attrs["id"]): json.loads(text) for attrs, text in pairs if attrs.get("type") == "application/json"}


def test_page_loads_nothing(page: str) -> None:
    elements = Elements(page)
    addresses = [attrs.get(name) for _, attrs in elements.tags for name in ("src", "href", "action", "srcset", "data")]
    assert all(address.startswith(("#", "data:,")) for address in addresses if address is not None)
    assert "@import" not in page
    policy = next(
        attrs["content"] for _, attrs in elements.tags if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy
    scripts = [attrs for tag, attrs in elements.tags if tag == "script"]
    own = [text for attrs, text in zip(scripts, elements.scripts, strict=True) if "type" not in attrs]
    assert len(own) == 2
    for text in own:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy


def test_page_holds_the_figures(page: str) -> None:
    elements = Elements(page)
    text = " ".join(" ".join(elements.text).split())
    for figure in (f"{FIRST:.4f}", f"{SECOND:.4f}", f"−{FIRST - SECOND:.4f}", f"{1 / math.log2(3):.4f}"):
        assert figure in text
    assert text.count("neutral-first") > 3
    blocks = elements.blocks()
    assert set(blocks) == {"data-figures", "data-values", "data-queries", "data-charts"}
    assert [run["name"] for run in blocks["data-figures"]["runs"]] == ["old", "new", "random", "neutral-first"]
    first = blocks["data-queries"]["queries"][0]
    assert [len(ranking) for ranking in first["rankings"]] == [2, 2, 2]
    number, score, tied, grade = first["rankings"][0][0]
    document = blocks["data-queries"]["documents"][number]
    assert (document["id"], score, tied, grade) == (f"{first['id']}he", 2.0, 0, None)
    assert document["text"] == [[1, "He"], " runs."]
    assert document["counts"] == [0, 1]


def test_page_is_the_same_every_time(page: str) -> None:
    assert render_page(small_audit()) == page


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
    assert [tag for tag, _ in elements.tags].count("script") == 6
    assert "img" not in {tag for tag, _ in elements.tags}
    assert all(not name.startswith("on") for _, attrs in elements.tags for name in attrs)
    blocks = elements.blocks()
    shown = blocks["data-queries"]["queries"][0]
    assert (shown["id"], shown["text"]) == (query, NASTY)
    assert blocks["data-queries"]["documents"][0]["id"] == doc
    assert blocks["data-figures"]["runs"][0]["name"] == name
    assert name in "".join(elements.text)
    for text in elements.scripts:
        assert "<!--" not in text
    assert "<script>window" not in page


def test_page_without_texts_queries_or_judgements() -> None:
    texts = pl.DataFrame({"doc_id": [f"{q}{d}" for q in QUERIES for d in ("he", "it")], "text": ["he", "it"] * 3})
    scores = evenrank.io.Scores.of(evenrank.groups.score_texts(texts, evenrank.Scoring(load_lexicon())))
    audit = evenrank.audit({"r": run(["he", "it"])}, scores=scores, measures="ARaB@10")
    page = render_page(audit)
    assert "Effectiveness is unknown" in page
    browser = Elements(page).blocks()["data-queries"]
    assert (browser["texts"], browser["queryTexts"], browser["marked"]) == (False, False, False)
    assert "text" not in browser["documents"][0]


def test_measures_of_the_whole_run_alone() -> None:
    page = render_page(small_audit(qrels=None, measures=["|ARaB|@10"]))
    assert "None of the measures has a value for single queries." in page


def test_most_telling_queries_first(monkeypatch: pytest.MonkeyPatch) -> None:
    old = run(["he", "it"])
    swapped = pl.when(pl.col("query_id") == "q2").then(-pl.col("score")).otherwise(pl.col("score"))
    texts = pl.DataFrame({"doc_id": old["doc_id"], "text": ["he", "it"] * 3})
    audit = evenrank.audit(
        {"old": old, "new": old.with_columns(score=swapped)}, collection=texts, baseline="old", measures="ARaB@10"
    )
    assert audit.queries[most_telling(audit, 1).tolist()].to_list() == ["q2"]
    monkeypatch.setattr(data, "QUERY_CAP", 2)
    monkeypatch.setattr(data, "VALUE_CAP", 2)
    blocks = Elements(render_page(audit)).blocks()
    assert [query["id"] for query in blocks["data-queries"]["queries"]] == ["q2", "q1"]
    assert blocks["data-queries"]["total"] == 3
    # The first and the last query speak for all; the one that is shown as well follows.
    assert blocks["data-values"]["ids"] == ["q1", "q3", "q2"]
    assert blocks["data-values"]["sampled"] == 2
    assert blocks["data-charts"]["chosenBy"] == "difference to old in ARaB@10"


@pytest.mark.parametrize(
    ("names", "baseline", "wanted"),
    [
        (["old"], None, ("old", "random")),
        (["old"], "old", ("old", "random")),
        (["old", "new"], "old", ("new", "old")),
        (["old", "new"], "new", ("old", "new")),
        (["old", "new"], None, ("new", "old")),
    ],
)
def test_what_is_compared_at_first(names: list[str], baseline: str | None, wanted: tuple[str, str]) -> None:
    orders = {"old": ["he", "it"], "new": ["it", "he"]}
    texts = pl.DataFrame({"doc_id": run(["he", "it"])["doc_id"], "text": ["he", "it"] * 3})
    audit = evenrank.audit(
        {name: run(orders[name]) for name in names}, collection=texts, baseline=baseline, measures="ARaB@10"
    )
    blocks = Elements(render_page(audit)).blocks()
    first, second = (blocks["data-figures"]["runs"][place]["name"] for place in blocks["data-charts"]["compared"])
    assert (first, second) == wanted


def test_what_a_bars_direction_says() -> None:
    page = render_page(small_audit(measures="nDCG@10 NFaiRR@10 ARaB@10 AbsARaB@10"))
    signs = {measure["name"]: measure["signs"] for measure in Elements(page).blocks()["data-figures"]["measures"]}
    assert signs == {
        "nDCG@10": ["is better", "is worse"],
        "NFaiRR@10": ["is more neutral", "is less neutral"],
        "ARaB@10": ["leans more towards male-worded passages", "leans more towards female-worded passages"],
        "AbsARaB@10": ["leans further", "leans less"],
    }


def test_a_long_text_is_cut_around_its_marked_words() -> None:
    def joined(pieces: list[Any]) -> str:
        return "".join(piece if isinstance(piece, str) else f"<{piece[1]}>" for piece in pieces)

    early = ["a" * 50, [0, "he"], "b" * 50, [1, "she"], "c" * 500]
    assert data.excerpt(early, 1000) == (early, 0)
    pieces, start = data.excerpt(early, 200)
    assert (joined(pieces), start) == ("a" * 50 + "<he>" + "b" * 50 + "<she>" + "c" * 95, 0)
    late = ["a" * 500, [0, "he"], "b" * 400, [1, "she"], " and ", [1, "her"], "c" * 50]
    pieces, start = data.excerpt(late, 200)
    # 902 is where "she" begins; 50 characters (a quarter of 200) stand before it, and the text's end is 53 + 8 further.
    assert (joined(pieces), start) == ("b" * (200 - 3 - 5 - 3 - 50) + "<she> and <her>" + "c" * 50, 763)
    pieces, start = data.excerpt(["a" * 500, [0, "he"], "b" * 400], 100)
    assert (joined(pieces), start) == ("a" * 25 + "<he>" + "b" * 73, 475)
    assert data.excerpt(["a" * 500], 100) == (["a" * 100], 0)
    # A word that the cut goes through is not marked: half of it counts for nothing.
    pieces, start = data.excerpt([[0, "he"], "a" * 7, [0, "woman"], "b"], 12)
    assert (joined(pieces), start) == ("<he>aaaaaaawom", 0)


def test_long_texts_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "TEXT_MOST", 4)
    monkeypatch.setattr(data, "TEXT_LEAST", 4)
    document = Elements(render_page(small_audit())).blocks()["data-queries"]["documents"][0]
    assert document["text"] == [[1, "He"], " r"]
    assert document["length"] == len("He runs.")


def test_marking() -> None:
    lexicon = load_lexicon()
    assert mark("👩 Her, the woman's.", lexicon, ["f", "m"]) == ["👩 ", [0, "Her"], ", the ", [0, "woman"], "'s."]
    assert mark("He is.", None, ["f", "m"]) == ["He is."]
    assert mark("", lexicon, ["f", "m"]) == []


def test_heavy_imports_wait() -> None:
    code = (
        "import sys, evenrank.audit, evenrank.audit.report.page;"
        "print([name for name in ('altair', 'vl_convert', 'jinja2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
