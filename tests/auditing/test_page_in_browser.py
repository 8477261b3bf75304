"""The page in a browser: what is seen first, what opens, and that it asks for nothing and runs no text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evenrank
from page_parts import SCREENS, TALLEST, Opened

NASTY = "<script>window.x=1</script>"
QUERIES = {"q1": "who runs", "q2": f"a {NASTY} query", "q10": "where to run"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on two runs: ``new`` turns q1 around, leaves q2 as it is, and has two tied documents for q10."""
    kinds = {"he": "He met his brother.", "it": f"It said {NASTY}.", "she": "She is a woman."}
    old = {query: {f"{query}-{kind}": 3.0 - place for place, kind in enumerate(kinds)} for query in QUERIES}
    new = {
        **old,
        "q1": {doc: -score for doc, score in old["q1"].items()},
        "q10": {doc: max(score, 2.0) for doc, score in old["q10"].items()},
    }
    path = tmp_path_factory.mktemp("report") / "report.html"
    evenrank.audit(
        {"old": old, "new": new},
        collection={f"{query}-{kind}": text for query in QUERIES for kind, text in kinds.items()},
        queries=QUERIES,
        qrels={query: {f"{query}-it": 1} for query in QUERIES},
        baseline="old",
    ).report(path)
    return path


@pytest.fixture(scope="module")
def opened(browser: Any, written: Path) -> Iterator[Opened]:
    """The page with all its parts open: each test puts back what others start from."""
    opened = Opened(browser, written)
    opened.open()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def of_six_groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on three runs with labels of six groups, whose names are long, as are those of the runs."""
    groups = [f"domain of several words {n}" for n in range(5)] + ["supercalifragilistic-group"]
    docs = {f"q{q}": [f"q{q}-{i}" for i in range(12)] for q in range(20)}
    labels = {doc: groups[(q * 5 + i * 7) % 6] for q, found in enumerate(docs.values()) for i, doc in enumerate(found)}
    names = [f"bert-base-uncased.msmarco-passage.run-{n}" for n in range(3)]
    runs = {
        name: {q: {doc: float(i * (n + 1) * 5 % 12) for i, doc in enumerate(found)} for q, found in docs.items()}
        for n, name in enumerate(names)
    }
    qrels = {query: {found[3]: 1} for query, found in docs.items()}
    path = tmp_path_factory.mktemp("report") / "report.html"
    evenrank.audit(runs, labels=labels, qrels=qrels, baseline=names[0]).report(path)
    return path


@pytest.mark.parametrize(("report", "screen"), [("written", "desktop"), ("of_six_groups", "phone")])
def test_the_first_screen(browser: Any, request: pytest.FixtureRequest, report: str, screen: str) -> None:
    """The sentence, the verdicts, the plot and what to do next stand on it, and what is below is not long."""
    opened = Opened(browser, request.getfixturevalue(report), screen)
    opened.page.wait_for_selector(".plot svg.marks")
    bottoms = [opened.bottom(one) for one in ("h1", ".verdicts", ".plot svg.marks", ".next")]
    assert max(bottoms) <= SCREENS[screen]["height"]
    beside, height = opened.size()
    assert beside == 0
    assert height <= TALLEST
    assert opened.page.locator("details[open]").count() == 0
    opened.close()


def test_each_part_draws_its_chart_when_it_is_opened(browser: Any, written: Path) -> None:
    opened = Opened(browser, written, "phone")
    assert opened.page.locator(".chart svg.marks").count() == 0
    charts = {"origins": 1, "differences": 1}
    for name in opened.page.locator("details.part").evaluate_all("all => all.map(one => one.id)"):
        opened.open(name)
        drawn = opened.page.locator(f"#{name} .chart svg.marks")
        assert drawn.count() == charts.get(name, 0)
        for chart in drawn.all():
            assert chart.locator("[role=graphics-symbol]").count() > 2, name
        assert opened.size()[0] == 0, name
    opened.close()


def test_charts_say_what_they_show_and_what_colours_mean(opened: Opened) -> None:
    page = opened.page
    for chart in ("origins-chart", "queries-chart"):
        assert "new" in (page.locator(f"#{chart}").get_attribute("aria-label") or ""), chart
    legend = "#queries-legend > span"
    assert opened.texts(legend) == [
        "above 0: new leans more towards male-worded passages than old",
        "below 0: new leans more towards female-worded passages than old",
    ]
    page.select_option("#queries-measure", label="NFaiRR@10")
    assert opened.texts(legend) == ["above 0: new is more neutral than old", "below 0: new is less neutral than old"]
    # The legend has the bars' colours: q2 has none, so both bars lie below 0.
    page.select_option("#queries-measure", label="ARaB@10")
    sign = page.locator("#queries-legend .sign[data-sign=below]")
    wanted = sign.evaluate("one => getComputedStyle(one).backgroundColor")
    bars = page.locator("#queries-chart .mark-rect path")
    page.wait_for_function("() => document.querySelectorAll('#queries-chart .mark-rect path').length === 3")
    assert bars.last.evaluate("one => getComputedStyle(one).fill") == wanted
    # A bar leads to its query.
    bars.last.click()
    assert opened.texts("#detail h3") == [QUERIES["q1"]]
    # Other runs are drawn anew.
    page.select_option("#queries-first", label="old (baseline)")
    page.select_option("#queries-second", label="new")
    said = "old minus new, ARaB@10: 2 of 3 queries above 0, 1 equal, 0 below."
    page.wait_for_function(f"() => document.querySelector('#queries-chart').ariaLabel.includes('{said}')")
    page.select_option("#queries-first", label="new")
    page.select_option("#queries-second", label="old (baseline)")


def test_sorting_searching_and_ordering(opened: Opened) -> None:
    def means() -> Any:
        cells = opened.page.locator("#table tbody tr td:nth-child(3)")
        return cells.evaluate_all("all => all.map(cell => cell.dataset.sort)")

    heading, before = opened.page.locator("#table th", has_text="Mean").first, means()
    rising = sorted(before, key=float)
    for sort, values in {"ascending": rising, "descending": rising[::-1], "none": before}.items():
        heading.locator("button").click()
        assert (heading.get_attribute("aria-sort"), means()) == (sort, values)

    def names() -> Any:
        return opened.page.locator("#list button").evaluate_all("all => all.map(one => one.dataset.query)")

    found = {"RUN": ["q1", "q10"], "run where": ["q10"], "q2": ["q2"], "": ["q1", "q10", "q2"]}
    for text, queries in found.items():
        opened.page.fill("#search", text)
        assert (names(), opened.texts("#list-count")) == (queries, [f"{len(queries)} of 3 queries"])
    for order, queries in {"id": ["q1", "q2", "q10"], "falling": ["q2", "q10", "q1"]}.items():
        opened.page.select_option("#order", order)
        assert names() == queries


def test_a_query_shows_the_rankings_of_all_runs_and_runs_no_text(opened: Opened) -> None:
    opened.page.click("#list button[data-query=q1]")
    assert opened.texts("#detail h3") == ["who runs"]
    assert opened.texts(".rankings h4") == ["old (baseline)", "new", "neutral-first (reference)"]
    first, second = (opened.page.locator(".rankings > div").nth(place) for place in (0, 1))
    for ranking, kinds in ((first, ("he", "it", "she")), (second, ("she", "it", "he"))):
        shown = [text.split()[1] for text in ranking.locator(".meta").all_inner_texts()]
        assert shown == [f"q1-{kind}" for kind in kinds]
    card = first.locator("li").nth(0)
    marked = [" ".join(text.split()) for text in card.locator(".passage mark").all_inner_texts()]
    assert marked == ["Hem", "hism", "brotherm"]
    assert "male 3" in card.inner_text()
    assert "not judged" in card.inner_text()
    assert "relevant (1)" in first.locator("li").nth(1).inner_text()
    opened.page.click("#list button[data-query=q10]")
    assert opened.page.locator(".rankings > div").nth(1).locator("li", has_text="tied").count() == 2
    # Texts are shown and not run.
    opened.page.click("#list button[data-query=q2]")
    assert opened.texts("#detail h3") == [QUERIES["q2"]]
    assert f"It said {NASTY}." in opened.texts(".rankings .passage")
    assert opened.page.evaluate("typeof window.x") == "undefined"
    # Nor could a script that found its way in run: it is not among those the policy names.
    script = "Object.assign(document.createElement('script'), {textContent: 'window.x = 1'})"
    opened.page.evaluate(f"document.body.append({script})")
    assert opened.page.evaluate("typeof window.x") == "undefined"
    assert ["Content Security Policy" in text for text in opened.said] == [True]
    opened.said.clear()


def test_light_and_dark(browser: Any, written: Path) -> None:
    def brightness(what: str, element: str) -> float:
        colour = opened.page.locator(element).first.evaluate(f"one => getComputedStyle(one).{what}")
        return sum(float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3]) / 3

    def looks() -> str:
        paper, ink = brightness("backgroundColor", "body"), brightness("color", "body")
        for axis in (".plot .role-axis-title text", "#queries-chart .role-axis-title text"):
            assert abs(ink - brightness("fill", axis)) < 1
        assert abs(paper - ink) > 150
        return "light" if paper > ink else "dark"

    opened = Opened(browser, written, color_scheme="dark")
    opened.open("differences")
    assert looks() == "dark"
    opened.page.click("#theme")
    assert looks() == "light"
    opened.close()


def test_a_click_on_a_word_shows_its_passages(opened: Opened) -> None:
    opened.page.evaluate("document.getElementById('queries').open = false")
    opened.page.click("#words [data-run='0'] >> text=woman")
    assert opened.page.inner_text("#detail h3") == "“woman” in the first ranks of old"
    cards = opened.page.locator("#detail ol.passages > li")
    assert cards.count() == 3
    assert [text.split(" ")[0] for text in opened.texts("#detail ol.passages mark.hit")] == ["womanf"] * 3
    # From a passage on to its query's rankings.
    query = cards.nth(1).locator("button").first
    text = query.inner_text()
    assert text in QUERIES.values()
    query.click()
    assert opened.page.locator("#detail h3").inner_text() == text
