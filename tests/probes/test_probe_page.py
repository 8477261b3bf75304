"""What a probe says: sentences, tables and the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

import evenrank
from evenrank.measures.inference import Comparison, untold
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


FOUND = Comparison(0.08, (0.05, 0.11), 702, "pairs", 0.0004, 0.001, 0.043)
NONE = Comparison(0.004, (-0.02, 0.03), 702, "pairs", 0.71, 0.9, 0.039)
SIZE = "702 pairs, 117 queries, 650 passages"


@pytest.fixture(scope="module")
def one() -> VariantFigures:
    found = probed()["swap"]
    return replace(found, counts=replace(found.counts, compared=702, queries=117, passages=650))


def of(one: VariantFigures, found: Comparison, *, beyond: bool = True, **changes: object) -> str:
    means = Means(NONE, NONE if beyond else None, found, beyond)
    return verdict(replace(one, means=means, **changes))  # type: ignore[arg-type]


def test_what_is_shown(one: VariantFigures) -> None:
    measured = f"+0.080 sd [0.050, 0.110] beyond the placebo (Holm p = 0.001; {SIZE})."
    assert of(one, FOUND) == f"prefers the male wording: {measured}"
    below = replace(FOUND, mean=-0.08, ci95=(-0.11, -0.05))
    assert of(one, below).startswith("prefers the female wording: -0.080 sd [-0.110, -0.050] beyond the placebo")
    assert of(one, FOUND, poles=("a", "b")).startswith("prefers the wording of the group a: ")
    assert of(one, below, poles=("a", "rest")).startswith("prefers the wording of the other groups: ")


def test_where_no_difference_is_shown(one: VariantFigures) -> None:
    assert of(one, NONE) == (
        f"no preference shown: +0.004 sd [-0.020, 0.030] beyond the placebo (Holm p = 0.900; {SIZE})."
        " 0.039 sd or more would have been noticed."
    )
    # p < .05 alone is not enough.
    assert of(one, replace(FOUND, holm_p=0.06)).startswith("no preference shown: ")
    still = Comparison(0.0, None, 702, "pairs", 1.0, 1.0, 0.0)
    assert of(one, still) == f"no preference shown, as no pair's score changes ({SIZE})."
    bare = replace(NONE, noticeable=None)
    assert of(one, bare, beyond=False).endswith(
        "Without a placebo, only a preference that outweighs what any edit does would show."
    )


def test_what_cannot_be_told(one: VariantFigures) -> None:
    few = untold(0.5, 3, "only 3 queries say anything, where 15 are needed", "pairs", (-1.0, 2.0))
    reason = "cannot be told, as only 3 queries say anything, where 15 are needed"
    assert of(one, few) == f"{reason}: +0.500 sd [-1.000, 2.000] beyond the placebo ({SIZE})."
    assert of(one, replace(few, mean=None, ci95=None)) == f"{reason} ({SIZE})."
    counts = replace(one.counts, changed=5, unchanged=2, absent=0, still=5, compared=0)
    lost = untold(None, 0, "no pair is left to compare", "pairs")
    assert of(one, lost, beyond=False, counts=counts) == (
        "cannot be told: no pair is left to compare (2 unchanged, 5 of queries whose scores do not vary)."
    )


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
    assert of(one, FOUND, **changes).startswith(f"prefers {above}: ")  # type: ignore[arg-type]
    assert of(one, other, **changes).startswith(f"prefers {below}: ")  # type: ignore[arg-type]


def test_a_placebo_that_is_missing(one: VariantFigures) -> None:
    text = of(one, FOUND, beyond=False, kind="neutral", poles=None)
    assert text.endswith(f"{SIZE}). Without a placebo, any edit of this size may do as much.")
    assert " beyond " not in text
    # There is one, but it changes other passages.
    text = of(one, FOUND, beyond=False, kind="neutral", poles=None, placebo="p")
    assert text.endswith(f"{SIZE}). As its placebo changes none of these pairs, any edit of this size may do as much.")
    # These kinds have none.
    assert of(one, FOUND, beyond=False, kind="brief", poles=None).endswith(f"{SIZE}).")


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
    assert [column.title.replace(" ", "_") for column in pairs.columns] == wanted.split()
    assert pairs.frame().row(0)[3:] == (18, 18, 0, 0, 0, 0)
    assert next(table for table in probed().page().tables if table.title == "Pairs").frame()["with_placebo"][0] is None
    # The terminal has no examples to be seen.
    said = "Which passages change most: see the examples."
    assert found.page().summary[-1] == said
    assert said not in found.table()
