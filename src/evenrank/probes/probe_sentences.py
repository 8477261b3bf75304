"""The findings of a probe, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank.auditing.phrases import group_label
from evenrank.io.wording import counted
from evenrank.measures.statistics import SIGNIFICANT
from evenrank.reports.format import equation, interval, number

from .replaced_runs import UTILITY, RunFigure
from .variant_kinds import KINDS

if TYPE_CHECKING:
    from .effects import Effect
    from .probe_result import ProbeResult
    from .variant_figures import VariantFigures

_PREFERENCES: dict[str | None, tuple[str, str]] = {
    "swap": ("the swapped wording", "the original wording"),
    "neutral": ("the neutral wording", "the wording that names a group"),
    "placebo": ("the placebo's wording", "the original wording"),
    "rotate": ("the rotated text", "the original order"),
    "padded": ("the longer text", "the shorter text"),
    "brief": ("the answer's sentence alone", "the whole passage"),
    "early": ("the answer's sentence first", "the answer's sentence in its own place"),
    "late": ("the answer's sentence last", "the answer's sentence in its own place"),
    "foil": ("the passage without its answer", "the passage with its answer"),
    "repeated": ("the passage that repeats the query's words", "the passage that does not"),
}
"""By kind: what an effect above 0 prefers, and what one below."""


def signed(value: float | None, digits: int = 3) -> str:
    """A number with its sign.

    >>> signed(0.08), signed(-0.0004), signed(0.0), signed(None)
    ('+0.080', '-0.0004', '0.000', '–')
    """
    text = number(value, digits)
    return f"+{text}" if value is not None and value >= 1e-9 else text


def summary(result: ProbeResult) -> tuple[str, ...]:
    """Effectiveness first, then a sentence for each variant."""
    tests = sum(one.means.verdict.p is not None for one in result.variants)
    return (_effectiveness(result), *(f"{one.name}: {verdict(one, tests)}" for one in result.variants))


def _effectiveness(result: ProbeResult) -> str:
    own = result.original.get(UTILITY)
    if own is None:
        return "Effectiveness is unknown: there are no qrels. A ranker that prefers nothing may still rank nonsense."
    line = f"{UTILITY} of {result.name} on the list as it is: {_figure(own)}"
    replaced = [(one.name, one.replaced[UTILITY]) for one in result.variants if UTILITY in one.replaced]
    if not replaced:
        return f"{line}."
    every = ", ".join(f"{_figure(found)} by {name}" for name, found in replaced)
    return f"{line}; with every passage replaced: {every}."


def _figure(found: RunFigure) -> str:
    return f"{number(found.mean)} {interval(found.ci95)}" if found.ci95 else number(found.mean)


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


def verdict(variant: VariantFigures, tests: int = 1) -> str:
    """A variant's finding, in one sentence; ``tests``: over how many variants its p is corrected."""
    found, beyond = variant.means.verdict, variant.means.beyond_placebo
    over = f"{counted(found.n, 'pair')}, {counted(found.queries, 'query')}, {counted(found.passages, 'passage')}"
    if not found.n:
        return f"nothing can be said: no pair is left to compare ({_why_none(variant)})."
    against = " beyond the placebo" if beyond else ""
    mean = f"{signed(found.mean)} sd"
    if found.p is None or found.ci95 is None or variant.holm_p is None:
        return f"{mean}{against} ({over}): {_too_few(found)}, so nothing can be said of others."
    measured = f"{mean} {interval(found.ci95)}{against} ({equation('Holm p', variant.holm_p)}; {over})"
    if not (found.se or found.mean):
        return f"no pair's score changes{against} ({over})."
    if variant.holm_p < SIGNIFICANT:
        text = f"prefers {preferred(variant)[found.mean < 0]}: {measured}"
    else:
        seen = f"an effect of {number(found.detectable_among(tests))} sd or more would have been seen"
        text = f"no preference shown; {seen}: {measured}"
    kind = KINDS.get(variant.kind or "")
    if beyond or (variant.placebo is None and (kind is None or not kind.placebo)):
        return f"{text}."
    why = "Without a placebo" if variant.placebo is None else "As its placebo changes none of these pairs"
    return f"{text}. {why}, any edit of this size may do as much."


def _too_few(found: Effect) -> str:
    """What a mean without an interval lacks."""
    for count, noun in ((found.queries, "query"), (found.passages, "passage")):
        if count < 2:
            return f"one {noun} only"
    return "too few queries or passages"


def _why_none(variant: VariantFigures) -> str:
    counts = variant.counts
    reasons = {
        "unchanged": counts.unchanged,
        "not in the variant": counts.absent,
        "of queries whose scores do not vary": counts.still,
        "of unchanged lean": counts.unoriented,
    }
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
