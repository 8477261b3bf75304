"""What a probe found: as JSON, in sentences, as tables and as a page."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from evenrank.auditing.poles import group_label
from evenrank.files.errors import UnknownNameError, quoted
from evenrank.files.json_values import LEFT_OUT, named
from evenrank.files.types import NEAR_ZERO
from evenrank.files.wording import counted
from evenrank.results.finding import Finding, Level, phrases
from evenrank.results.page import COLOURS, Drawing, Page, Section, specification
from evenrank.results.result import Result
from evenrank.results.table import (
    COUNT,
    TEXT,
    Column,
    P,
    Table,
    differences,
    digits,
    intervals,
    mark,
    percents,
    short_intervals,
    shorts,
    with_interval,
)
from evenrank.stats.compare import Comparison
from evenrank.stats.estimate import Estimate

from .variant_figures import DEPTH, UTILITY, Example, RunFigure, VariantFigures
from .variants import WITH_PLACEBO

_PHRASES = phrases("probe")


@dataclass(frozen=True, slots=True, repr=False)
class ProbeResult(Result):
    """Result of :func:`evenrank.probe`; ``result["swap"]`` has the figures of a variant.

    ``name``: the ranker's; ``listed``: the run or the judgements whose ``pairs`` of so many ``queries`` and
    ``passages`` were probed; ``still``: queries left out as their scores do not vary. ``original``: the figures of the
    list as the ranker orders it, without nDCG@10 where there are no judgements.
    """

    name: str
    listed: str = field(metadata=named("list"))
    pairs: int
    queries: int
    passages: int
    still: int
    original: Mapping[str, RunFigure]
    variants: tuple[VariantFigures, ...] = field(metadata=LEFT_OUT)
    settings: Mapping[str, object]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> VariantFigures:
        """The figures of a variant. Raises UnknownNameError if there is none of this name."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        known = ", ".join(variant.name for variant in self.variants)
        raise UnknownNameError(f"no variant {quoted(name)} (the variants are {known})")

    def _beside(self) -> Mapping[str, object]:
        return {"variants": {variant.name: variant for variant in self.variants}}

    def page(self) -> Page:
        """The probe as a page: findings, tables and charts."""
        return probe_page(self)


_PREFERENCES: dict[str | None, tuple[str, str]] = {
    "swap": ("the swapped wording", "the original wording"),
    "neutral": ("the neutral wording", "the wording that names a group"),
    "placebo": ("the placebo's wording", "the original wording"),
    "rotate": ("the rotated text", "the original order"),
}
"""By kind: what an effect above 0 prefers, and what one below."""


def probe_findings(result: ProbeResult) -> Iterator[Finding]:
    """The answer, how effective the ranker is, and a finding for each variant."""
    several = len(result.variants) > 1
    if several:
        shown = [variant.name for variant in result.variants if variant.finding.shown]
        values: dict[str, Any] = {
            "total": len(result.variants),
            "shown": len(shown),
            "names": shown,
        }
        untold = all(variant.finding.verdict == "cannot be told" for variant in result.variants)
        key, level = ("some_move", "shown") if shown else ("none_moves", "no difference shown")
        level = "cannot be told" if untold else level
        yield _PHRASES.finding(key, result.name, cast("Level", level), None, "answer", name=result.name, **values)
    own = result.original.get(UTILITY)
    if own is None:
        yield _PHRASES.finding("unknown", level="cannot be told", place="warning")
    for variant in result.variants:
        finding = variant_finding(result.name, variant)
        yield finding if several else replace(finding, place="answer")
    if own is not None:
        figure = Estimate(own.mean, own.ci95, result.queries)
        yield _PHRASES.finding("effectiveness", result.name, "shown", figure, name=result.name)


def variant_finding(name: str, variant: VariantFigures) -> Finding:
    """A variant's finding: shown, no difference shown, or cannot be told."""
    test = variant.finding
    key = _template(variant)
    above, below = preferred(variant)
    estimate: Estimate = test
    if key.startswith("prefers") and (test.mean or 0.0) < 0:
        above, below, estimate = below, above, test.negated()
    over = counted(variant.counts.compared, "pair")
    values: dict[str, Any] = {"name": name, "above": above, "below": below, "noticed": test.mde, "over": over}
    why = _why_none(variant) if not test.n else test.reason
    return _PHRASES.finding(key, variant.name, test.verdict, estimate, why=why, **values)


def _template(variant: VariantFigures) -> str:
    test = variant.finding
    if not test.n:
        return "no_pairs"
    if test.verdict == "cannot be told":
        return "untold"
    if test.shown:
        return "prefers_any_edit" if _lacks_placebo(variant) else "prefers"
    if _changes_nothing(test):
        return "unchanged"
    return "no_preference_any_edit" if test.mde is None else "no_preference"


def _changes_nothing(test: Comparison) -> bool:
    """Whether no score changed, so that there is nothing that could have been noticed."""
    return test.mde is not None and max(abs(test.mean or 0.0), test.mde) < NEAR_ZERO


def _mde(variant: VariantFigures) -> float | None:
    return None if _changes_nothing(variant.finding) else variant.finding.mde


def preferred(variant: VariantFigures) -> tuple[str, str]:
    """What an effect of the variant above 0 prefers, and what one below 0."""
    if variant.poles is not None:
        first, second = (_wording(pole, variant.poles) for pole in variant.poles)
        return first, second
    return _PREFERENCES.get(variant.kind, (f"the variant {variant.name}", "the original"))


def _wording(pole: str, poles: tuple[str, str]) -> str:
    label = group_label(pole, list(poles))
    if label != pole:
        return f"the {label} wording"
    return "the wording of the other groups" if pole == "rest" else f"the wording of the group {pole}"


def _lacks_placebo(variant: VariantFigures) -> bool:
    """Whether a placebo is missing where there could be one."""
    if variant.means.beyond_placebo or variant.poles is not None:
        return False
    return variant.placebo is not None or variant.kind in WITH_PLACEBO


def _why_none(variant: VariantFigures) -> str:
    counts = variant.counts
    reasons = {
        "unchanged": counts.unchanged,
        "of queries whose scores do not vary": counts.still,
        "of unchanged lean": counts.unoriented,
    }
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)


_SOURCE = "Probe: the same passages with one thing changed; intervals over queries and passages"
_ENDS = short_intervals(3, sign=True)
_EFFECT, _PLACEBO, _FINDING = "effect", "placebo", "finding"
_WORDS = 14
"""Words shown before the first change of an example, and after the last."""
_LONGEST = 60
"""Words shown of an example."""


def probe_page(result: ProbeResult) -> Page:
    """All figures of a result as a page."""
    figures = [_counts(result), _ranks(result)]
    if any(variant.replaced for variant in result.variants):
        figures.append(_replaced(result))
    sections = [Section("Effects", (_effects(result),), lambda: _charts(result))]
    sections.append(Section("Pairs and ranks", tuple(figures)))
    if any(variant.examples for variant in result.variants):
        sections.append(Section("Which passages change most", (_examples(result),)))
    return Page(
        "probe",
        f"Probe of {result.name}",
        tuple(probe_findings(result)),
        _short(result),
        (
            "● shown (p < .05, corrected)",
            "in standard deviations of the query's scores",
            *(
                ("finding: beyond a placebo, an edit that should not matter",)
                * any(variant.placebo for variant in result.variants)
            ),
        ),
        counted(result.pairs, "pair"),
        sections=tuple(sections),
        facts=_facts(result),
        source=_SOURCE,
        notes=(*_notes(result), *result.notes),
        provenance=result.provenance,
    )


def _short(result: ProbeResult) -> Table:
    """The effects in short."""
    placebo = [Column("placebo", shorts(3, sign=True), of="means.placebo.mean")]
    finding = [
        Column("finding", shorts(3, sign=True), of="finding.mean", mark=lambda one: mark(one.finding.shown)),
        Column(("finding_low", "finding_high"), _ENDS, "", "finding.ci95"),
    ]
    columns = (
        Column("name", TEXT, ""),
        Column("pairs", COUNT, of="counts.compared"),
        Column("effect", shorts(3, sign=True), of="means.effect.mean"),
        *(placebo if any(variant.placebo for variant in result.variants) else ()),
        *finding,
    )
    noticed = [Column("mde", shorts(3), "detects from", _mde)]
    # Where no score changes there is nothing to notice.
    columns += tuple(noticed) if any(_mde(variant) is not None for variant in result.variants) else ()
    return Table("Effects", columns, result.variants)


def _facts(result: ProbeResult) -> tuple[tuple[str, str], ...]:
    still = (("queries whose scores do not vary, left out", f"{result.still:,}"),) if result.still else ()
    total = result.settings.get("sampled_from")
    drawn = f" of {total:,}" if isinstance(total, int) else ""
    return (
        ("pairs", f"{result.pairs:,}"),
        ("queries", f"{result.queries:,}{drawn}"),
        ("passages", f"{result.passages:,}"),
        *still,
    )


def _notes(result: ProbeResult) -> Iterator[str]:
    yield (
        "Effect: mean over the changed pairs of (score of the variant − score of the passage) / standard deviation of"
        " the query's scores. Finding: the same less what a placebo does, an edit of as many places that should not"
        " matter, at equal changes of length; the verdict speaks of it. Intervals and p: clustered by query and by"
        " passage, whichever error is larger. Holm p: corrected over the variants. Noticeable: an effect of this size"
        " or more would have been found in eight of ten such samples (p < .05 / number of variants)."
    )
    if any(variant.means.swap and variant.means.swap.placebo for variant in result.variants):
        yield (
            "Finding of a swap: ½ [(a₊ − a₋) − κ (c₊ − c₋)], with the mean changes a by the swap and c by its placebo,"
            " towards the first pole (+) and away from it (−), and κ = (a₊ + a₋)/(c₊ + c₋), how many times as much the"
            " swap damages (1 where no damage shows)."
        )
    for variant in result.variants:
        if variant.poles is not None:
            above, below = preferred(variant)
            yield f"{variant.name}: above 0, {above} scores higher; below 0, {below}."
    if result.original and "nDCG@10" in result.original and result.settings.get("depth") is None:
        yield "The lists are the judged passages alone: nDCG@10 here is of their order, not of a search."


# --- tables -----------------------------------------------------------------------------------------------------------


def _effects(result: ProbeResult) -> Table:
    columns = (
        Column("name", TEXT, "variant"),
        *with_interval("effect", "means.effect", heading="effect (sd)", sign=True),
        Column("placebo", differences(3), of="means.placebo.mean"),
        *with_interval("finding", "finding", sign=True),
        Column("p", P, of="finding.p"),
        Column("holm_p", P, "Holm p", "finding.holm_p"),
        Column("mde", digits(3), of=_mde),
    )
    note = "Placebo: over those of the compared pairs that it changes. Finding: the effect beyond the placebo."
    return Table(
        "Effects", columns, result.variants, (note,) if any(variant.placebo for variant in result.variants) else ()
    )


def _counts(result: ProbeResult) -> Table:
    columns = (
        Column("name", TEXT, "variant"),
        Column("kind", of=lambda one: one.kind or "own"),
        Column("placebo", of=lambda one: one.placebo or "none"),
        Column("compared", COUNT, of="counts.compared"),
        Column("with_placebo", COUNT, "with placebo", "counts.placebo"),
        Column("unchanged", COUNT, of="counts.unchanged"),
        Column("still", COUNT, "list tied", "counts.still"),
        Column("unoriented", COUNT, "lean unchanged", "counts.unoriented"),
    )
    notes = (
        "Compared: pairs that the variant changes, but for the last two; with placebo: those of them that the placebo"
        " changes too.",
        "List tied: all passages of the query's list have the same score. Lean unchanged: the passage leans towards a"
        " group as much as before, so the change has no direction.",
    )
    return Table("Pairs", columns, result.variants, notes)


def _ranks(result: ProbeResult) -> Table:
    columns = (
        Column("name", TEXT, "variant"),
        Column("shift", differences(2), "places up", "shift.mean"),
        Column(("shift_low", "shift_high"), intervals(2), "95%", "shift.ci95"),
        Column("enters", percents(1), f"enter the first {DEPTH}"),
        Column("leaves", percents(1), f"leave the first {DEPTH}"),
    )
    note = "Places that a passage would rise or fall if its variant stood in for it, all else as it was."
    oriented = " Of oriented variants: that the wording of the first pole stands higher."
    notes = (note + oriented * any(variant.poles for variant in result.variants),)
    return Table("Ranks", columns, result.variants, notes)


def _replaced(result: ProbeResult) -> Table:
    rows = [
        (variant.name, measure, result.original[measure], figure)
        for variant in result.variants
        for measure, figure in variant.replaced.items()
    ]
    columns = (
        Column("variant"),
        Column("measure"),
        *with_interval("original", "2", heading="original run"),
        *with_interval("replaced", "3", heading="replaced run"),
    )
    note = "The run with every passage replaced by its variant."
    return Table("Replaced run", columns, rows, (note,))


# --- examples ---------------------------------------------------------------------------------------------------------


def _examples(result: ProbeResult) -> Table:
    rows = [
        (variant.name, example.query, *side_by_side(example), example.delta)
        for variant in result.variants
        for example in variant.examples
    ]
    columns = (
        Column("variant"),
        Column("query"),
        Column("original"),
        Column("text", TEXT, "variant's text"),
        Column("change", differences(3), "change (sd)"),
    )
    note = "The pairs whose score changes most, of different passages; «…» marks what differs."
    return Table("Examples", columns, rows, (note,))


def side_by_side(example: Example) -> tuple[str, str]:
    """Original and variant, cut to where they differ, with the differing words in «…».

    >>> side_by_side(Example("q", "d", "who", "She wrote it.", "He wrote it.", 0.5))
    ('«She» wrote it.', '«He» wrote it.')
    """
    before, after = (re.findall(r"\S+", text) for text in (example.original, example.variant))
    if max(len(before), len(after)) > 2000:
        return _cut(before, [], 0), _cut(after, [], 0)
    opcodes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    changes = [(a, b, c, d) for tag, a, b, c, d in opcodes if tag != "equal"]
    first = [(a, b) for a, b, _, _ in changes if b > a]
    second = [(c, d) for _, _, c, d in changes if d > c]
    start, begin = (changes[0][0], changes[0][2]) if changes else (0, 0)
    return _cut(before, first, start), _cut(after, second, begin)


def _cut(words: list[str], spans: list[tuple[int, int]], first: int) -> str:
    """The words from a little before the word ``first``, with the spans marked."""
    marked = list(words)
    for start, end in spans:
        marked[start] = f"«{marked[start]}"
        marked[end - 1] = f"{marked[end - 1]}»"
    low = max(0, first - _WORDS) if len(words) > _LONGEST else 0
    shown = " ".join(marked[low : low + _LONGEST])
    return f"{'… ' * (low > 0)}{shown}{' …' * (low + _LONGEST < len(words))}"


# --- charts -----------------------------------------------------------------------------------------------------------


def _charts(result: ProbeResult) -> list[Drawing]:
    rows: list[dict[str, float | str]] = []
    for variant in result.variants:
        means = variant.means
        for name, estimate in ((_EFFECT, means.effect), (_PLACEBO, means.placebo), (_FINDING, means.finding)):
            rows += _point(variant.name, name, estimate)
    if not rows:
        return []
    title = "Change of the score (in standard deviations of the query's scores)"
    hint = "95% intervals over queries and passages; 0 is no preference."
    return [Drawing("Effects", title, _forest(rows), hint)]


def _point(row: str, series: str, found: Estimate | None) -> list[dict[str, float | str]]:
    if found is None or found.mean is None or found.ci95 is None:
        return []
    ends = {"low": found.ci95[0], "high": found.ci95[1]}
    return [{"row": row, "series": series, "value": found.mean, **ends, "n": found.n}]


def _forest(rows: Sequence[Mapping[str, float | str]]) -> dict[str, object]:
    """A point with its interval for each row and series."""
    import altair as alt

    data = alt.Chart(alt.Data(values=[dict(row) for row in rows]))
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    # Names may be long; the tables have them whole.
    down = alt.Y("row:N", title=None, sort=None, axis=alt.Axis(labelLimit=110))
    across = alt.X("value:Q", title="sd")
    tips = [alt.Tooltip("row:N", title="variant"), alt.Tooltip("series:N"), alt.Tooltip("value:Q", format=".4f")]
    tips += [alt.Tooltip("low:Q", format=".4f"), alt.Tooltip("high:Q", format=".4f"), alt.Tooltip("n:Q", title="pairs")]
    bars = data.mark_rule(strokeWidth=2, color=COLOURS[0]).encode(x=alt.X("low:Q", title="sd"), x2="high:Q", y=down)
    points = data.mark_point(filled=True, size=60, color=COLOURS[0]).encode(x=across, y=down, tooltip=tips)
    zero = data.mark_rule(color=COLOURS[-1], strokeDash=[4, 4]).encode(x=alt.datum(0))
    most = max(len({row["row"] for row in rows if row["series"] == name}) for name in names)
    # One line below the other for the series of a variant.
    offset = alt.YOffset("series:N", sort=names)
    scale = alt.Scale(domain=names, range=COLOURS[: len(names)])
    colour = alt.Color("series:N", title=None, sort=names, scale=scale)
    bars, points = (marks.encode(yOffset=offset, color=colour) for marks in (bars, points))
    height = max(120, 24 * len(names) * most)
    return specification(alt.layer(zero, bars, points).properties(width=640, height=height))
