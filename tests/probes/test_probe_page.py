"""What a probe says: sentences, tables and the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

import evenrank
from evenrank.probes.probe_result import ProbeResult, probe_page, side_by_side, variant_finding
from evenrank.probes.variant_figures import Example, Means, VariantFigures
from evenrank.results.finding import Finding
from evenrank.stats.compare import Comparison, undecidable

TEXTS = {f"d{i}": f"{'he' if i % 2 else 'she'} <b>wrote</b> it {'long ' * i}" for i in range(6)}
SWAP = {doc: text.replace("she", "x").replace("he ", "she ").replace("x", "he") for doc, text in TEXTS.items()}
RUN = {query: dict.fromkeys(TEXTS, 1.0) for query in ("q", "r", "s")}
QUERIES = {"q": "<script>who", "r": "long", "s": "it"}


def by_length(query: str, passages: list[str]) -> list[float]:
    return [len(passage) + ((3.0 + len(query)) if "he" in passage.split() else 0.0) for passage in passages]


def probed(**options: object) -> ProbeResult:
    given = {"variants": {"swap": SWAP}, "collection": TEXTS, "queries": QUERIES, "run": RUN}
    return evenrank.probe(by_length, **{**given, **options})  # type: ignore[arg-type]


FOUND = Comparison(0.08, (0.05, 0.11), 702, "pairs", 0.0004, 0.001, 0.043)
NONE = Comparison(0.004, (-0.02, 0.03), 702, "pairs", 0.71, 0.9, 0.039)


@pytest.fixture(scope="module")
def one() -> VariantFigures:
    found = probed()["swap"]
    return replace(found, counts=replace(found.counts, compared=702, queries=117, passages=650))


def of(one: VariantFigures, found: Comparison, *, beyond: bool = True, **changes: object) -> Finding:
    means = Means(NONE, NONE if beyond else None, found, beyond)
    return variant_finding("r", replace(one, means=means, **changes))  # type: ignore[arg-type]


def test_what_is_shown(one: VariantFigures) -> None:
    above = of(one, FOUND)
    assert (above.key, above.subject, above.level, above.estimate) == ("prefers", "swap", "shown", FOUND)
    assert above.text == "r prefers the male wording: +.080 [+.050, +.110] sd, 702 pairs."
    below = replace(FOUND, mean=-0.08, ci95=(-0.11, -0.05))
    assert of(one, below).text.startswith("r prefers the female wording: +.080 [+.050, +.110] sd")
    assert of(one, FOUND, poles=("a", "b")).text.startswith("r prefers the wording of the group a: ")
    assert of(one, below, poles=("a", "rest")).text.startswith("r prefers the wording of the other groups: ")


def test_where_no_difference_is_shown(one: VariantFigures) -> None:
    none = of(one, NONE)
    assert (none.key, none.level, none.estimate) == ("no_preference", "no difference shown", NONE)
    assert none.text.endswith("; true preferences below .039 are missed in at least one of five such samples.")
    # p < .05 alone is not enough.
    assert of(one, replace(FOUND, holm_p=0.06)).key == "no_preference"
    still = Comparison(0.0, None, 702, "pairs", p=1.0, holm_p=1.0, mde=0.0)
    assert of(one, still).key == "unchanged"
    # Figures that all read .000 are none, and neither is what would be noticed.
    assert of(one, replace(still, mean=1e-9, mde=1e-8)).key == "unchanged"
    bare = replace(NONE, mde=None)
    assert of(one, bare, beyond=False).key == "no_preference_any_edit"


def test_what_cannot_be_told(one: VariantFigures) -> None:
    why = "only 3 queries differ from 0, where 15 are needed"
    few = of(one, undecidable(0.5, 3, why, "pairs", (-1.0, 2.0)))
    assert (few.key, few.level, few.text) == ("untold", "cannot be told", f"Cannot be told: {why}.")
    counts = replace(one.counts, changed=5, unchanged=2, still=5, compared=0)
    lost = of(one, undecidable(None, 0, "no pair is left to compare", "pairs"), beyond=False, counts=counts)
    assert (lost.key, lost.level) == ("no_pairs", "cannot be told")
    assert "(2 unchanged, 5 of queries whose scores do not vary)" in lost.text


@pytest.mark.parametrize(
    ("kind", "above", "below"),
    [
        ("neutral", "the neutral wording", "the wording that names a group"),
        ("rotate", "the rotated text", "the original order"),
        (None, "the variant swap", "the original"),
    ],
)
def test_what_other_kinds_prefer(one: VariantFigures, kind: str | None, above: str, below: str) -> None:
    changes = {"kind": kind, "poles": None}
    other = replace(FOUND, mean=-0.08)
    assert of(one, FOUND, **changes).text.startswith(f"r prefers {above}: ")  # type: ignore[arg-type]
    assert of(one, other, **changes).text.startswith(f"r prefers {below}: ")  # type: ignore[arg-type]


def test_a_placebo_that_is_missing(one: VariantFigures) -> None:
    assert of(one, FOUND, beyond=False, kind="neutral", poles=None).key == "prefers_any_edit"
    # There is one, but it changes other passages.
    assert of(one, FOUND, beyond=False, kind="neutral", poles=None, placebo="p").key == "prefers_any_edit"
    # This kind has none.
    assert of(one, FOUND, beyond=False, kind="rotate", poles=None).key == "prefers"


def test_several_variants_are_counted_first(one: VariantFigures) -> None:
    def answer(*found: Comparison) -> Finding:
        variants = tuple(replace(one, name=f"v{n}", means=Means(f, f, f, True)) for n, f in enumerate(found))
        return replace(probed(), variants=variants).findings[0]

    some = answer(FOUND, NONE, FOUND)
    assert (some.key, some.level, some.place) == ("some_move", "shown", "answer")
    assert some.text == "2 of 3 changes are shown to move the scores of by_length: v0 and v2."
    few = undecidable(0.5, 3, "few", "pairs")
    assert [(one.key, one.level) for one in (answer(NONE, few), answer(few, few))] == [
        ("none_moves", "no difference shown"), ("none_moves", "cannot be told"),
    ]  # fmt: skip


def test_effectiveness_is_never_missing() -> None:
    unknown = next(one for one in probed().findings if one.place == "warning")
    assert (unknown.key, unknown.level) == ("unknown", "cannot be told")
    found = probed(qrels={"q": {"d0": 1}})
    said = next(one for one in found.findings if one.key == "effectiveness")
    assert said.estimate is not None
    assert said.estimate.mean == found.original["nDCG@10"].mean
    assert not [one for one in found.findings if one.place == "warning"]


def test_the_page_escapes_its_texts() -> None:
    page = probed().html()
    assert "<script>who" not in page
    assert "&lt;script&gt;who" in page
    assert "&lt;b&gt;wrote&lt;/b&gt;" in page
    assert "<b>wrote" not in page
    assert "«she»" in page or "«he»" in page


def test_the_screen_has_no_texts() -> None:
    found = probed()
    assert "wrote" not in found.table()
    assert any(table.title == "Examples" for table in found.page().tables)
    drawn = {section.title: [one.name for one in section.draw()] for section in probe_page(found).sections}
    assert {title: names for title, names in drawn.items() if names} == {"Effects": ["Effects"]}
    assert "ProbeResult(name='by_length'" in repr(found)
    assert "swap" in found._repr_html_()
    with pytest.raises(evenrank.EvenrankError, match=r"^no variant 'x' \(the variants are swap\)$"):
        _ = found["x"]


def test_examples_are_cut_to_what_differs() -> None:
    words = [f"w{i}" for i in range(200)]
    other = [*words[:100], "new", *words[101:]]
    shown = side_by_side(Example("q", "d", "who", " ".join(words), " ".join(other), 0.5))
    assert [text.split()[0] for text in shown] == ["…", "…"]
    assert [text.split()[-1] for text in shown] == ["…", "…"]
    assert "«w100»" in shown[0]
    assert "«new»" in shown[1]
    assert max(len(text.split()) for text in shown) == 62
    # An insertion leaves the original without a mark.
    assert side_by_side(Example("q", "d", "who", "a b", "a c b", 0.5)) == ("a b", "a «c» b")
    assert side_by_side(Example("q", "d", "who", "a  b", "a b", 0.5)) == ("a b", "a b")
    long = side_by_side(Example("q", "d", "who", "a " * 3000, "b " * 3000, 0.5))
    assert long[0].endswith("…")
    assert "«" not in long[0]


def test_headings_that_are_understood() -> None:
    found = probed(placebos={"swap": {doc: text.replace("it", "this") for doc, text in list(TEXTS.items())}})
    pairs = next(table for table in found.page().tables if table.title == "Pairs")
    wanted = "variant kind placebo compared with_placebo unchanged list_tied lean_unchanged"
    assert [column.title.replace(" ", "_") for column in pairs.columns] == wanted.split()
    assert pairs.frame().row(0)[3:] == (18, 18, 0, 0, 0)
    assert next(table for table in probed().page().tables if table.title == "Pairs").frame()["with_placebo"][0] is None
