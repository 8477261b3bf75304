"""The page in a browser: it draws, sorts, searches and shows rankings, asks for nothing and runs no text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenrank

NASTY = "<script>window.x=1</script>"
QUERIES = {"q1": "who runs", "q2": f"a {NASTY} query", "q10": "where to run"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report on two runs: ``new`` turns q1 around, leaves q2 as it is, and has two tied documents for q10."""
    kinds = {"he": "He met his brother.", "it": f"It said {NASTY}.", "she": "She is a woman."}
    texts = [(f"{query}-{kind}", text) for query in QUERIES for kind, text in kinds.items()]
    old = [(query, f"{query}-{kind}", 3.0 - place) for query in QUERIES for place, kind in enumerate(kinds)]
    new = [(q, d, {"q1": -score, "q10": max(score, 2.0)}.get(q, score)) for q, d, score in old]
    columns = ["query_id", "doc_id", "score"]
    result = evenrank.audit(
        {name: pl.DataFrame(rows, schema=columns, orient="row") for name, rows in (("old", old), ("new", new))},
        collection=pl.DataFrame(texts, schema=["doc_id", "text"], orient="row"),
        queries=pl.DataFrame({"query_id": list(QUERIES), "text": list(QUERIES.values())}),
        qrels=pl.DataFrame({"query_id": list(QUERIES), "doc_id": [f"{q}-it" for q in QUERIES], "relevance": [1, 1, 1]}),
        baseline="old",
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    result.report(path)
    return path.as_uri()


class Opened:
    """An open page, with what it wrote to the console and asked for."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)
        self.page.wait_for_function("document.querySelectorAll('.chart svg.marks').length >= 4 + 6")

    def texts(self, selector: str) -> list[str]:
        return [" ".join(text.split()) for text in self.page.locator(selector).all_text_contents()]


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Opened]:
    opened = Opened(browser, address)
    yield opened
    opened.context.close()


def test_opens_without_a_word_and_asks_for_nothing(opened: Opened, address: str) -> None:
    opened.page.select_option("#plane-y", label="NFaiRR@10")
    opened.page.select_option("#queries-measure", label="nDCG@10")
    opened.page.wait_for_timeout(300)
    assert opened.said == []
    assert opened.asked == [address]


def test_charts_hold_marks_and_a_description(opened: Opened) -> None:
    for chart in ("plane-chart", "queries-chart", "depth-neutrality", "depth-magnitude", "ties-0"):
        holder = opened.page.locator(f"#{chart}")
        assert holder.locator("svg.marks").count() == 1
        assert holder.locator("[role=graphics-symbol]").count() > 2, chart
        assert "new" in (holder.get_attribute("aria-label") or "")
    labels = " ".join(opened.texts("#plane-chart svg text"))
    assert all(name in labels for name in ("old", "new", "random", "neutral-first", "relevance-first"))
    shapes = opened.page.locator("#plane-chart .mark-symbol path").evaluate_all(
        "all => all.map(one => one.getAttribute('d'))"
    )
    assert len(set(shapes)) == 5
    assert "3 queries" in opened.page.inner_text("#queries-count")
    assert opened.page.inner_text("#ties-6") == "No run has a value for this chart."


def test_choosing_runs_redraws_the_differences(opened: Opened) -> None:
    def description() -> str:
        return opened.page.locator("#queries-chart").get_attribute("aria-label") or ""

    assert "new minus old, ARaB@10: 0 of 3 queries above 0" in description()
    opened.page.select_option("#queries-first", label="old (baseline)")
    opened.page.select_option("#queries-second", label="new")
    opened.page.wait_for_function(
        "document.querySelector('#queries-chart').getAttribute('aria-label').includes('old minus new')"
    )
    assert "old minus new, ARaB@10: 2 of 3 queries above 0, 1 equal, 0 below." in description()


def test_colours_and_directions_are_explained(opened: Opened) -> None:
    legend = "#queries-legend > span"
    assert opened.texts(legend) == [
        "above 0: new leans more towards male-worded passages than old",
        "below 0: new leans more towards female-worded passages than old",
    ]
    opened.page.select_option("#queries-measure", label="NFaiRR@10")
    assert opened.texts(legend) == ["above 0: new is more neutral than old", "below 0: new is less neutral than old"]
    # The legend has the bars' colours: q2 has none, so both bars lie below 0.
    opened.page.select_option("#queries-measure", label="ARaB@10")
    sign = opened.page.locator("#queries-legend .sign[data-sign=below]")
    wanted = sign.evaluate("one => getComputedStyle(one).backgroundColor")
    bars = opened.page.locator("#queries-chart .mark-rect path")
    opened.page.wait_for_function("document.querySelectorAll('#queries-chart .mark-rect path').length === 3")
    assert bars.last.evaluate("one => getComputedStyle(one).fill") == wanted
    # Each chart in colours has a legend or says in words what they are.
    for chart, words in (("plane", "new"), ("depth", "new"), ("ties", "95% interval over queries")):
        assert words in opened.page.inner_text(f"#{chart} .legend")


def test_a_single_run_is_set_against_the_random_order(browser: Any, tmp_path: Path) -> None:
    """And its long passages show the words that count, wherever they stand."""
    filler = " ".join(["stone"] * 200)
    texts = {"early": f"He {filler}", "late": f"{filler} and his {filler} for her {filler}", "none": filler}
    result = evenrank.audit(
        {"r": pl.DataFrame({"query_id": ["q"] * 3, "doc_id": list(texts), "score": [3.0, 2.0, 1.0]})},
        collection=pl.DataFrame({"doc_id": list(texts), "text": list(texts.values())}),
        threshold=0,
    )
    result.report(tmp_path / "report.html")
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    count = page.locator("#queries-count")
    assert count.inner_text().startswith("r minus random, ")
    # He stands first and the random order sets it lower: towards men, so the bar points up.
    assert "1 of 1 query above 0" in count.inner_text()
    assert page.inner_text("#queries-legend").startswith(
        "above 0: r leans more towards male-worded passages than random"
    )

    def shown(doc: str) -> tuple[str, list[str]]:
        card = page.locator(".rankings > div").first.locator("li", has=page.locator(f"b:text-is('{doc}')"))
        passage = card.locator(".passage")
        assert len(passage.inner_text()) < 500
        return " ".join(passage.inner_text().split()), [
            one.split("\n")[0] for one in passage.locator("mark").all_inner_texts()
        ]

    text, words = shown("early")
    assert (words, text.endswith("…")) == (["Hem"], True)
    text, words = shown("late")
    assert words == ["hism", "herf"]
    assert text.startswith("… stone")
    assert " … " in text
    assert text.endswith("stone …")
    text, words = shown("none")
    assert (words, text.startswith("stone"), text.endswith("…")) == ([], True, True)
    late = page.locator(".rankings > div").first.locator("li", has=page.locator("b:text-is('late')"))
    late.locator(".more").click()
    assert len(late.locator(".passage").inner_text()) > 3 * len(filler)
    assert late.locator(".more").get_attribute("aria-expanded") == "true"
    late.locator(".more").click()
    assert len(late.locator(".passage").inner_text()) < 500
    page.close()


def test_sorting_by_a_column(opened: Opened) -> None:
    def means() -> list[str]:
        cells = opened.page.locator("#table tbody tr td:nth-child(3)")
        return cells.evaluate_all("all => all.map(cell => cell.dataset.sort)")  # type: ignore[no-any-return]

    def rising(values: list[str]) -> list[str]:
        return sorted(filter(None, values), key=float)

    heading = opened.page.locator("#table th", has_text="Mean").first
    before = means()
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    # DeltaAPRF has no value here: none of the relevant passages speaks of a group.
    assert means() == [*rising(before), *[""] * 5]
    heading.locator("button").click()
    assert means() == [*rising(before)[::-1], *[""] * 5]
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "none"
    assert means() == before
    opened.page.locator("#table th", has_text="Holm p").locator("button").click()
    cells = opened.texts("#table tbody tr td:nth-child(8)")
    # The references and the baseline have none: they stand last.
    known = [cell for cell in cells if cell not in ("", "–")]
    assert cells[: len(known)] == known


def test_searching_and_ordering_the_queries(opened: Opened) -> None:
    names = "#list button"
    assert opened.texts("#list-count") == ["3 of 3 queries"]
    assert opened.page.locator(names).evaluate_all("all => all.map(one => one.dataset.query)") == ["q1", "q10", "q2"]
    opened.page.fill("#search", "RUN")
    assert opened.texts("#list-count") == ["2 of 3 queries"]
    opened.page.fill("#search", "run where")
    assert opened.page.locator(names).evaluate_all("all => all.map(one => one.dataset.query)") == ["q10"]
    opened.page.fill("#search", "q2")
    assert opened.texts("#list-count") == ["1 of 3 queries"]
    opened.page.fill("#search", "")
    opened.page.select_option("#order", "id")
    assert opened.page.locator(names).evaluate_all("all => all.map(one => one.dataset.query)") == ["q1", "q2", "q10"]
    opened.page.select_option("#order", "falling")
    assert opened.page.locator(names).evaluate_all("all => all.map(one => one.dataset.query)") == ["q2", "q10", "q1"]


def test_a_query_shows_the_rankings_of_all_runs(opened: Opened) -> None:
    opened.page.click("#list button[data-query=q1]")
    assert opened.texts("#detail h3") == ["who runs"]
    assert opened.texts(".rankings h4") == ["old (baseline)", "new", "neutral-first (reference)"]
    first = opened.page.locator(".rankings > div").nth(0)
    assert [text.split()[1] for text in first.locator(".meta").all_inner_texts()] == ["q1-he", "q1-it", "q1-she"]
    second = opened.page.locator(".rankings > div").nth(1)
    assert [text.split()[1] for text in second.locator(".meta").all_inner_texts()] == ["q1-she", "q1-it", "q1-he"]
    card = first.locator("li").nth(0)
    assert [" ".join(text.split()) for text in card.locator(".passage mark").all_inner_texts()] == [
        "Hem",
        "hism",
        "brotherm",
    ]
    assert "male 3" in card.inner_text()
    assert "not judged" in card.inner_text()
    assert "relevant (1)" in first.locator("li").nth(1).inner_text()
    styles = opened.page.locator(".rankings mark").evaluate_all(
        "all => all.map(one => getComputedStyle(one).textDecorationStyle)"
    )
    assert set(styles) == {"solid", "dotted"}
    opened.page.click("#list button[data-query=q10]")
    assert opened.page.locator(".rankings > div").nth(1).locator("li", has_text="tied").count() == 2


def test_texts_are_shown_and_not_run(opened: Opened) -> None:
    opened.page.click("#list button[data-query=q2]")
    assert opened.texts("#detail h3") == [QUERIES["q2"]]
    assert f"It said {NASTY}." in opened.texts(".rankings .passage")
    assert opened.page.evaluate("typeof window.x") == "undefined"
    # Nor could a script that found its way in run: it is not among those the policy names.
    opened.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.x = 1'}))"
    )
    assert opened.page.evaluate("typeof window.x") == "undefined"


def test_a_bar_leads_to_its_query(opened: Opened) -> None:
    opened.page.click("#list button[data-query=q2]")
    opened.page.locator("#queries-chart .mark-rect path").last.click()
    assert opened.texts("#detail h3") == [QUERIES["q1"]]


@pytest.mark.parametrize(("scheme", "other"), [("light", "dark"), ("dark", "light")])
def test_light_and_dark(browser: Any, address: str, scheme: str, other: str) -> None:
    def brightness(opened: Opened, what: str, element: str) -> float:
        colour = opened.page.locator(element).first.evaluate(f"one => getComputedStyle(one).{what}")
        return sum(float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3]) / 3

    def looks() -> str:
        paper, ink = brightness(opened, "backgroundColor", "body"), brightness(opened, "color", "body")
        axis = brightness(opened, "fill", "#plane-chart .role-axis-title text")
        assert abs(ink - axis) < 1
        assert abs(paper - ink) > 150
        return "light" if paper > ink else "dark"

    opened = Opened(browser, address, color_scheme=scheme)
    assert looks() == scheme
    opened.page.click("#theme")
    opened.page.wait_for_timeout(400)
    assert looks() == other
    opened.context.close()


def test_narrow_screens_do_not_scroll_sideways(browser: Any, address: str) -> None:
    opened = Opened(browser, address, viewport={"width": 360, "height": 700})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 360
    opened.context.close()


def test_readable_without_scripts(browser: Any, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert "need JavaScript" in page.inner_text("main")
    assert "Effectiveness of old, the baseline" in page.inner_text("#summary")
    assert page.locator("#table tbody tr").count() == 5 * 7
    context.close()


def test_without_qrels_the_page_says_so_first(browser: Any, tmp_path: Path) -> None:
    table = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    result = evenrank.audit({"r": table}, collection=pl.DataFrame({"doc_id": ["a", "b"], "text": ["he", "it"]}))
    path = tmp_path / "report.html"
    result.report(path)
    context = browser.new_context()
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_function("document.querySelectorAll('.chart svg.marks').length >= 3")
    assert page.inner_text(".warning").startswith("Effectiveness is unknown")
    assert page.locator("#plane-chart").count() == 0
    assert page.locator(".rankings li").count() == 4
    assert said == []
    context.close()


def test_a_click_on_a_word_shows_its_passages(opened: Opened) -> None:
    assert "Words in the first 10 ranks of old" in opened.texts("#words caption")
    opened.page.click("#words [data-run='0'] >> text=woman")
    assert opened.page.inner_text("#detail h3") == "“woman” in the first ranks of old"
    assert opened.texts("#detail .hint")[0] == "3 passages of the queries on this page."
    cards = opened.page.locator("#detail ol.passages > li")
    assert cards.count() == 3
    assert [text.split(" ")[0] for text in opened.texts("#detail ol.passages mark.hit")] == ["womanf"] * 3
    # From a passage on to its query's rankings.
    query = cards.nth(1).locator("button").first
    text = query.inner_text()
    assert text in QUERIES.values()
    query.click()
    assert opened.page.locator("#detail h3").inner_text() == text
    assert opened.said == []
