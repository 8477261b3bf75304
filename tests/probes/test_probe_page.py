"""What a probe says: sentences, tables and the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

import evenrank
from evenrank.probes.effects import Effect
from evenrank.probes.probe_result import ProbeResult, probe_page, side_by_side, verdict
from evenrank.probes.variant_figures import Example, Means, VariantFigures

TEXTS = {f"d{i}": f"{'he' if i % 2 else 'she'} <b>wrote</b> it {'long ' * i}" for i in range(6)}
SWAP = {doc: text.replace("she", "x").replace("he ", "she ").replace("x", "he") for doc, text in TEXTS.items()}
RUN = {query: dict.fromkeys(TEXTS, 1.0) for query in ("q", "r", "s")}
QUERIES = {"q": "<script>who", "r": "long", "s": "it"}


def by_length(query: str, passages: list[str]) -> list[float]:
    return [len(passage) + ((3.0 + len(query)) if "he" in passage.split() else 0.0) for passage in passages]


def probed(**options: object) -> ProbeResult:
    given = {"variants": {"swap": SWAP}, "collection": TEXTS, "queries": QUERIES, "run": RUN}
    return evenrank.probe(by_length, **{**given, **options})  # type: ignore[arg-type]


FOUND = Effect(0.08, (0.05, 0.11), 0.0004, 0.015, 702, 117, 650, 0.05, 116.0)
NONE = Effect(0.004, (-0.02, 0.03), 0.71, 0.012, 702, 117, 650, 0.03, 116.0)
SIZE = "702 pairs, 117 queries, 650 passages"


@pytest.fixture(scope="module")
def one() -> VariantFigures:
    return probed()["swap"]


def of(
    one: VariantFigures, found: Effect, holm_p: float | None, *, beyond: bool = True, tests: int = 1, **changes: object
) -> str:
    means = Means(NONE, NONE, found) if beyond else Means(found, None, None)
    return verdict(replace(one, means=means, holm_p=holm_p, **changes), tests)  # type: ignore[arg-type]


def test_verdicts(one: VariantFigures) -> None:
    measured = f"+0.080 sd [0.050, 0.110] beyond the placebo (Holm p = 0.001; {SIZE})."
    assert of(one, FOUND, 0.001) == f"prefers the male wording: {measured}"
    below = replace(FOUND, mean=-0.08, ci95=(-0.11, -0.05))
    assert of(one, below, 0.001).startswith("prefers the female wording: -0.080 sd [-0.110, -0.050] beyond the placebo")
    assert of(one, FOUND, 0.001, poles=("a", "b")).startswith("prefers the wording of the group a: ")
    assert of(one, below, 0.001, poles=("a", "rest")).startswith("prefers the wording of the other groups: ")
    assert of(one, NONE, 0.9) == (
        "no preference shown; an effect of 0.039 sd or more would have been seen: +0.004 sd [-0.020, 0.030] beyond the"
        f" placebo (Holm p = 0.900; {SIZE})."
    )
    # Of three variants, the effect that would be found with the smallest of the corrected thresholds.
    assert of(one, NONE, 0.9, tests=3).startswith("no preference shown; an effect of 0.045 sd or more would have been")
    # p < .05 alone is not enough.
    assert of(one, FOUND, 0.06).startswith("no preference shown; ")


@pytest.mark.parametrize(
    ("kind", "above", "below"),
    [
        ("brief", "the answer's sentence alone", "the whole passage"),
        ("padded", "the longer text", "the shorter text"),
        ("foil", "the passage without its answer", "the passage with its answer"),
        (None, "the variant swap", "the original"),
    ],
)
def test_verdicts_of_other_kinds(one: VariantFigures, kind: str | None, above: str, below: str) -> None:
    changes = {"kind": kind, "poles": None}
    other = replace(FOUND, mean=-0.08)
    assert of(one, FOUND, 0.01, **changes).startswith(f"prefers {above}: ")  # type: ignore[arg-type]
    assert of(one, other, 0.01, **changes).startswith(f"prefers {below}: ")  # type: ignore[arg-type]


def test_verdicts_that_cannot_be_given(one: VariantFigures) -> None:
    text = of(one, FOUND, 0.01, beyond=False)
    assert text.endswith(f"{SIZE}). Without a placebo, any edit of this size may do as much.")
    assert " beyond " not in text
    # There is one, but it changes other passages.
    text = of(one, FOUND, 0.01, beyond=False, placebo="p")
    assert text.endswith(f"{SIZE}). As its placebo changes none of these pairs, any edit of this size may do as much.")
    # These kinds have none.
    assert of(one, FOUND, 0.01, beyond=False, kind="brief", poles=None).endswith(f"{SIZE}).")
    alone = Effect(0.5, None, None, None, 3, 1, 3, None)
    wanted = "+0.500 sd beyond the placebo (3 pairs, "
    so = "so nothing can be said of others."
    assert of(one, alone, None) == f"{wanted}1 query, 3 passages): one query only, {so}"
    assert of(one, replace(alone, queries=3, passages=1), None).endswith(
        f"3 queries, 1 passage): one passage only, {so}"
    )
    equal = replace(alone, queries=3, p=0.25, se=0.0)
    assert of(one, equal, 0.25) == f"{wanted}3 queries, 3 passages): too few queries or passages, {so}"
    lost = Effect(float("nan"), None, None, None, 0, 0, 0, None)
    counts = replace(one.counts, changed=5, unchanged=2, absent=0, still=5, compared=0)
    assert of(one, lost, None, beyond=False, counts=counts) == (
        "nothing can be said: no pair is left to compare (2 unchanged, 5 of queries whose scores do not vary)."
    )


def test_effectiveness_is_never_missing() -> None:
    unknown = probed().summary()[0]
    assert unknown.startswith("Effectiveness is unknown: there are no qrels.")
    found = probed(qrels={"q": {"d0": 1}})
    own, replaced = found.original["nDCG@10"].mean, found["swap"].replaced["nDCG@10"].mean
    first = (
        f"nDCG@10 of by_length on the list as it is: {own:.3f}; with every passage replaced: {replaced:.3f} by swap."
    )
    assert found.summary()[0] == first
    assert found.table().index(first) < found.table().index("Effects")


def test_the_page_escapes_its_texts() -> None:
    page = probed().html()
    assert "<script>who" not in page
    assert "&lt;script&gt;who" in page
    assert "&lt;b&gt;wrote&lt;/b&gt;" in page
    assert "<b>wrote" not in page
    assert "«she»" in page or "«he»" in page


def test_the_terminal_has_no_texts() -> None:
    found = probed()
    assert "wrote" not in found.table()
    assert any(table.title == "Examples" for table in found.page().tables)
    kinds = [drawing.name for drawing in probe_page(found).drawings]
    assert kinds == ["Effects"]
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
    wanted = "variant kind placebo compared with_placebo unchanged no_text list_tied lean_unchanged"
    assert [heading.replace(" ", "_") for heading in pairs.headings] == wanted.split()
    assert pairs.rows[0][3:] == ("18", "18", "0", "0", "0", "0")
    assert next(table for table in probed().page().tables if table.title == "Pairs").rows[0][4] == "–"
    # The terminal has no examples to be seen.
    said = "Which passages change most: see the examples."
    assert found.page().summary[-1] == said
    assert said not in found.table()
