"""Which of an audit's measures its views show, with unknown labels too, and what stands beside a comparison."""

from __future__ import annotations

from ir_measures import Measure

from evenrank.files.wording import counted
from evenrank.measures import is_bias, resolve
from evenrank.measures.base import mean_of
from evenrank.measures.neutrality import NFaiRR
from evenrank.measures.rank_bias import AbsARaB, ARaB, RaB
from evenrank.results.table import number

from .data import AuditFigures, MetricValue
from .poles import poles
from .values import PARTLY


def with_origins(result: AuditFigures) -> list[Measure]:
    """The measures that are known to be the sum of what candidates hold and what their order adds."""
    return [m for m in result.measures if any(run.measures[str(m)].vs_random_order is not None for run in result.given)]


def ideal_adds(figure: MetricValue) -> float | None:
    """What an ideal ranking of the candidates would add to a figure, over the queries where that is defined."""
    if figure.vs_random_order is None or figure.vs_ideal_order is None:
        return None
    return mean_of(figure.vs_random_order.values - figure.vs_ideal_order.values)


def direction(measure: Measure) -> str:
    """Which values of a measure are better."""
    if resolve(measure).undirected:
        return "no value is better by itself"
    return "nearer 0 is better" if resolve(measure).better == "nearer zero" else "higher is better"


def target_shares(measure: Measure) -> str:
    """The shares of exposure that a measure compares with, in words."""
    named = {"candidates": "the candidates' shares", "uniform": "equal shares", None: "equal shares"}
    return named.get(measure.params.get("target"), "the target shares")


def estimated(result: AuditFigures) -> bool:
    """Whether figures are estimated from labels that were drawn."""
    return any(figure.from_labels is not None for run in result.given for figure in run.measures.values())


def on_common(figure: MetricValue) -> str:
    """A comparison's means, if it is over fewer queries than the figures; otherwise nothing."""
    compared = figure.vs_baseline
    if compared is None or not compared.partial:
        return ""
    if compared.mean is None and compared.test.reason == PARTLY:
        return ""
    if compared.mean is None:
        return "no difference: estimated over other queries" if compared.n else "no common queries"
    means = f"{number(compared.mean, 4)} against {number(compared.baseline_mean, 4)}"
    return f"{counted(compared.n, 'common query')}: {means}"


def pick(result: AuditFigures, *wanted: Measure) -> Measure | None:
    """The first measure that is one of ``wanted``, whatever its parameters; those in order of preference."""
    return next((m for kind in wanted for m in result.measures if type(m) is type(kind)), None)


def lean_measure(result: AuditFigures) -> Measure | None:
    """The measure of bias that is shown first: a lean if there is one."""
    return pick(result, ARaB, RaB, AbsARaB, NFaiRR) or next(filter(is_bias, result.measures), None)


def shown_lean(result: AuditFigures) -> Measure | None:
    """The measure that says towards whom a run leans; None where none does."""
    signed = [
        measure
        for measure in result.measures
        if is_bias(measure) and resolve(measure).signed and not resolve(measure).whole_run
    ]
    measure = pick(result, ARaB, RaB) or next(iter(signed), None)
    return measure if measure is not None and poles(result, measure) is not None else None


def signed_measures(result: AuditFigures) -> list[str]:
    """The measures of single queries whose sign is a direction: there, a better value is one nearer to 0."""
    return [
        name
        for name, figure in result.runs[0].measures.items()
        if resolve(figure.measure).signed and not figure.whole_run
    ]


def utility_measures(result: AuditFigures) -> list[Measure]:
    """The measures of effectiveness."""
    return [measure for measure in result.measures if not is_bias(measure)]


def only_bounds(result: AuditFigures) -> bool:
    """Whether measures of bias that look at an unknown document have bounds alone."""
    return result.partly_labelled and result.settings.get("unknown") == "bounds" and not estimated(result)


def plane_bias(result: AuditFigures) -> Measure | None:
    """The measure of bias that the plot shows first: of those with a value or bounds, if any has."""
    usual = lean_measure(result)
    wanted = [measure for measure in (usual, *result.measures) if measure is not None and is_bias(measure)]
    figures = {measure: [run.measures[str(measure)] for run in result.runs] for measure in wanted}
    shown = (m for m in wanted if any(f.mean is not None or f.bounds is not None for f in figures[m]))
    return next(shown, usual)


def shows_queries(result: AuditFigures, figure: MetricValue) -> bool:
    """Whether a figure has values of single queries."""
    alone = figure.from_labels is not None or (only_bounds(result) and is_bias(figure.measure))
    return not (figure.whole_run or alone)
