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


BELOW = replace(FOUND, mean=-0.08, ci95=(-0.11, -0.05))
STILL = Comparison(0.0, None, 702, "pairs", p=1.0, holm_p=1.0, mde=0.0)
FEW = undecidable(0.5, 3, "only 3 queries differ from 0, where 15 are needed", "pairs", (-1.0, 2.0))
CASES: list[tuple[Comparison, dict[str, object], str]] = [
    (FOUND, {}, "prefers"),
    (BELOW, {}, "prefers"),
    (FOUND, {"poles": ("a", "b")}, "prefers"),
    (BELOW, {"poles": ("a", "rest")}, "prefers"),
    *(
        (found, {"kind": kind, "poles": None}, "prefers")
        for kind in ("neutral", "rotate", None)
        for found in (FOUND, BELOW)
    ),
    # Without a placebo, or with one that changes other passages; of this kind there is none.
    (FOUND, {"beyond": False, "kind": "neutral", "poles": None}, "prefers_any_edit"),
    (FOUND, {"beyond": False, "kind": "neutral", "poles": None, "placebo": "p"}, "prefers_any_edit"),
    (FOUND, {"beyond": False, "kind": "rotate", "poles": None}, "prefers"),
    (NONE, {}, "no_preference"),
    # p < .05 alone is not enough.
    (replace(FOUND, holm_p=0.06), {}, "no_preference"),
    (replace(NONE, mde=None), {"beyond": False}, "no_preference_any_edit"),
    (STILL, {}, "unchanged"),
    # Figures that all read .000 are none, and neither is what would be noticed.
    (replace(STILL, mean=1e-9, mde=1e-8), {}, "unchanged"),
    (FEW, {}, "untold"),
    (undecidable(None, 0, "no pair is left to compare", "pairs"), {"beyond": False}, "no_pairs"),
]


def test_what_is_said(one: VariantFigures, snapshot) -> None:
    """One sentence each; what is preferred is the variant where the mean is above 0."""
    lost = replace(one, counts=replace(one.counts, changed=5, unchanged=2, still=5, compared=0))
    findings = [of(lost if key == "no_pairs" else one, found, **options) for found, options, key in CASES]
    assert [finding.key for finding in findings] == [key for *_, key in CASES]
    assert [findings[case].estimate for case in (0, 1, 13)] == [FOUND, FOUND, NONE]
    assert findings[0].text == "r prefers the male wording: +.080 [+.050, +.110] sd, 702 pairs."
    assert {finding.subject for finding in findings} == {"swap"}
    assert [f"{finding.level}: {finding.text}" for finding in findings] == snapshot


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


def test_the_page_escapes_its_texts_and_the_screen_has_none() -> None:
    found = probed()
    page = found.html()
    assert not [text for text in ("<script>who", "<b>wrote") if text in page]
    assert all(text in page for text in ("&lt;script&gt;who", "&lt;b&gt;wrote&lt;/b&gt;", "«she»"))
    assert "wrote" not in found.table()
    assert any(table.title == "Examples" for table in found.page().tables)
    drawn = {
        section.title: [one.name for one in section.draw()] for section in probe_page(found).sections if section.draw
    }
    assert {title: names for title, names in drawn.items() if names} == {"Effects": ["Effects"]}
    assert "ProbeResult(name='by_length'" in repr(found)
    assert "swap" in found._repr_html_()
    with pytest.raises(evenrank.EvenrankError, match=r"^no variant 'x' \(the variants are swap\)$"):
        _ = found["x"]


def test_examples_are_cut_to_what_differs() -> None:
    words = [f"w{i}" for i in range(200)]
    other = [*words[:100], "new", *words[101:]]
    shown = side_by_side(Example("q", "d", "who", " ".join(words), " ".join(other), 0.5))
    assert [(text.split()[0], text.split()[-1]) for text in shown] == [("…", "…")] * 2
    assert ("«w100»" in shown[0], "«new»" in shown[1]) == (True, True)
    assert max(len(text.split()) for text in shown) == 62
    # An insertion leaves the original without a mark.
    assert side_by_side(Example("q", "d", "who", "a b", "a c b", 0.5)) == ("a b", "a «c» b")
    assert side_by_side(Example("q", "d", "who", "a  b", "a b", 0.5)) == ("a b", "a b")
    long = side_by_side(Example("q", "d", "who", "a " * 3000, "b " * 3000, 0.5))
    assert long[0].endswith("…")
    assert "«" not in long[0]
