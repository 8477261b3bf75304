"""An audit summarised in sentences that claim no more than its figures show."""

from __future__ import annotations

import numpy as np
from ir_measures import Measure

from evenrank.measures import ARaB, DeltaAPRF, FaiRR, NeutralityMeasure, NFaiRR, RaB, resolve
from evenrank.measures.statistics import EQUAL, SIGNIFICANT
from evenrank.reports.format import equation, number

from .findings import NEUTRAL_FIRST, RANDOM, Comparison, Figure, Findings, RunAudit
from .origin_words import origin_sentences
from .phrases import both, common_queries, order_words, passages, pick, poles, utility_measures
from .stage_steps import same_verdict

UNKNOWN = "Effectiveness is unknown"


def summarise(result: Findings) -> list[str]:
    """Effectiveness first, then each run's lean, neutrality, pairwise fairness and sensitivity to ties.

    Each item is one or more sentences.
    """
    sentences = _effectiveness(result)
    lean = pick(result, ARaB, RaB)
    neutral = pick(result, NFaiRR, FaiRR)
    pairs = pick(result, DeltaAPRF)
    for run in result.given:
        if lean is not None:
            sentences.append(" ".join([*_lean(result, run, lean), *origin_sentences(run, lean)]))
        if neutral is not None:
            own = [] if result.all_neutral else origin_sentences(run, neutral)
            sentences.append(" ".join([*_neutrality(result, run, neutral), *own]))
        if pairs is not None:
            sentences.append(" ".join(_pairs(result, run, pairs)))
        sentences += _ties(run)
    if result.stages is not None:
        sentences += result.stages.sentences(lean, neutral)
    return sentences


# --- effectiveness ---------------------------------------------------------------------------------------------------


def _effectiveness(result: Findings) -> list[str]:
    if not result.judged:
        return [f"{UNKNOWN}: without qrels, this audit cannot tell whether a ranking is any good."]
    measures = utility_measures(result)
    if result.baseline is None:
        measures = [measure for measure in measures if str(measure) not in result.unequal_depth]
        values = "; ".join(
            f"{run.name} " + ", ".join(f"{m} {number(run.figures[str(m)].mean)}" for m in measures)
            for run in result.given
        )
        untested = " There is no baseline, so no difference is tested." if len(result.given) > 1 else ""
        return [f"Effectiveness: {values}.{untested}"] if measures else []
    base = result[result.baseline]
    sentences = [
        f"Effectiveness of {base.name}, the baseline: "
        + ", ".join(f"{m} {number(base.figures[str(m)].mean)}" for m in measures)
        + "."
    ]
    for run in result.given:
        if run.name != base.name:
            sentences += _against(result, run, base, measures)
    return sentences


def _against(result: Findings, run: RunAudit, base: RunAudit, measures: list[Measure]) -> list[str]:
    """How effective a run is compared with the baseline, one sentence per verdict.

    Measures that are decided by the depth of the lists are left out: they show nothing about the rankers.
    """
    verdicts: dict[str, list[str]] = {}
    for measure in measures:
        figure, other = run.figures[str(measure)], base.figures[str(measure)]
        compared = figure.vs_baseline
        values = f"{measure} {number(figure.mean)} against {number(other.mean)}"
        if compared is not None and compared.unequal_depth:
            continue
        if figure.order_sensitive or other.order_sensitive:
            ordered = ", ".join(order_words(one) for one in (figure, other) if one.order_sensitive)
            verdicts.setdefault("order", []).append(f"{values} ({ordered})")
            continue
        if compared is not None and compared.partial:
            means = f"{number(compared.mean)} against {number(compared.baseline_mean)}"
            values = f"{measure} {means} on the {common_queries(result, figure)}"
        if compared is None or compared.difference is None:
            verdicts.setdefault("cannot be compared with", []).append(str(measure))
        elif compared.significant:
            verdict = "is more effective than" if compared.difference > 0 else "is less effective than"
            small = compared.difference < 0 and compared.non_inferior
            p = equation("Holm p", compared.holm_p)
            verdicts.setdefault(verdict, []).append(f"{values} ({p}{', but within 5%' if small else ''})")
        elif compared.non_inferior:
            verdicts.setdefault("no loss", []).append(values)
        else:
            verdicts.setdefault("a loss", []).append(f"{values} ({_not_significant(compared)})")
    if measures and not verdicts:
        return [f"{run.name} is not compared with {base.name}: their unequal depths decide every measure."]
    sentences = []
    for verdict, comparisons in verdicts.items():
        listed = ", ".join(comparisons)
        if verdict == "order":
            sentences.append(
                f"Whether {run.name} is more effective than {base.name} depends on the order in which a ranker was"
                f" given the passages: {listed}."
            )
        elif verdict == "no loss":
            sentences.append(f"{run.name}: no loss shown, within 5% of {base.name} or better: {listed}.")
        elif verdict == "a loss":
            sentences.append(f"{run.name}: a loss compared with {base.name} cannot be ruled out: {listed}.")
        else:
            sentences.append(f"{run.name} {verdict} {base.name}: {listed}.")
    return sentences


def _not_significant(compared: Comparison) -> str:
    if compared.holm_p is None:
        return "no test was possible"
    return f"not significant, {equation('Holm p', compared.holm_p)}"


# --- bias ------------------------------------------------------------------------------------------------------------


def _lean(result: Findings, run: RunAudit, measure: Measure) -> list[str]:
    """Towards which group's passages the first ranks lean."""
    figure, pair = run.figures[str(measure)], poles(result, measure)
    if figure.mean is None or pair is None:
        return [_without_mean(run, figure)]
    ranks = f"The first {measure.params['cutoff']} ranks of {run.name}"
    numbers = _numbers(figure)
    clear = figure.ci95 is not None and not figure.ci95[0] <= 0 <= figure.ci95[1]
    if clear:
        text = f"{ranks} lean towards {passages(pair[0] if figure.mean > 0 else pair[1], pair)} {numbers}"
    else:
        text = f"{ranks} show no clear lean between {both(pair)} {numbers}"
    if figure.added is None:
        text += f"; a random order of the candidates has {number(result[RANDOM].figures[str(measure)].mean)}"
    sentences = [f"{text}."]
    if figure.tie_sensitive:
        sentences.append(f"Averaged over the orders of its tied documents, {measure} is {number(figure.tie_mean)}.")
    if figure.order_sensitive:
        sentences.append(f"That is in the run's order of passages: {order_words(figure)}.")
    compared = figure.vs_baseline
    if compared is not None and result.baseline is not None:
        sentences += _difference(result, run, measure, compared)
    nearer = compared is not None and compared.significant and not compared.unequal_depth and not _further(compared)
    if not clear or nearer:
        sentences += _unsigned(result, run, measure)
    return sentences


def _without_mean(run: RunAudit, figure: Figure) -> str:
    if figure.bounds is not None:
        low, high = map(number, figure.bounds)
        return f"{figure.measure} of {run.name} is between {low} and {high}, whatever the unknown labels are."
    if figure.known is not None and not figure.undefined:
        return f"{figure.measure} of {run.name} is not known: it has no exact bounds over unknown labels."
    return f"{figure.measure} of {run.name} is undefined for every query."


def _numbers(figure: Figure) -> str:
    if figure.ci95 is None:
        return f"({figure.measure} {number(figure.mean)}, no interval)"
    low, high = figure.ci95
    return f"({figure.measure} {number(figure.mean)}, 95% interval {number(low)} to {number(high)})"


def _further(compared: Comparison) -> bool:
    """Whether a run's mean is further from 0 than the baseline's, over the queries where both have a value."""
    return compared.baseline_mean is None or compared.mean is None or abs(compared.mean) > abs(compared.baseline_mean)


def _difference(result: Findings, run: RunAudit, measure: Measure, compared: Comparison) -> list[str]:
    if compared.difference is None or compared.unequal_depth:
        return []
    towards = _more_or_less_neutral(measure, compared.difference)
    start = f"Its difference from {result.baseline} in {measure} ({number(compared.difference)}{towards})"
    if compared.partial:
        start = (
            f"Its difference from {result.baseline} in {measure} on the"
            f" {common_queries(result, run.figures[str(measure)])} ({number(compared.difference)}:"
            f" {number(compared.mean)} against {number(compared.baseline_mean)}{towards})"
        )
    if compared.holm_p is None:
        text = f"{start} could not be tested"
    elif compared.significant:
        text = f"{start} is significant ({equation('Holm p', compared.holm_p)})"
        if resolve(measure).better == "nearer zero":
            further = _further(compared)
            text += f": its mean is {'further from' if further else 'nearer to'} 0"
    else:
        text = f"{start} is not significant ({equation('Holm p', compared.holm_p)})"
    tied = [name for name in (run.name, result.baseline) if name and result[name].figures[str(measure)].tie_sensitive]
    if not tied:
        return [text + "."]
    ties = f"tied documents in {' and '.join(tied)}"
    if compared.tie_p is None or compared.tie_difference is None:
        return [f"{text}, but it depends on the order of {ties}."]
    # The mean over the orders of tied documents does not depend on how ties are broken.
    p = f"{equation('p', compared.tie_p)}, uncorrected"
    verdict = "significant" if compared.tie_p < SIGNIFICANT else "not significant"
    stays = same_verdict(
        compared.difference,
        compared.tie_difference,
        shown=compared.significant,
        tied_shown=compared.tie_p < SIGNIFICANT,
    )
    if compared.holm_p is not None and stays:
        averaged = f"{verdict} averaged over the orders of {ties} ({number(compared.tie_difference)}, {p})"
        return [f"{text}, and remains {averaged}."]
    return [
        f"{text}, but it depends on the order of {ties}. Averaged over those orders, the difference is"
        f" {number(compared.tie_difference)} and {verdict} ({p})."
    ]


def _more_or_less_neutral(measure: Measure, difference: float) -> str:
    """What a difference from the baseline means for a measure of neutrality; nothing for other measures."""
    if not isinstance(measure, NeutralityMeasure) or abs(difference) < EQUAL:
        return ""
    return ", more neutral" if difference > 0 else ", less neutral"


def _unsigned(result: Findings, run: RunAudit, lean: Measure) -> list[str]:
    """The mean size of the lean, since a mean near 0 can hide queries that lean in opposite directions."""
    known = [name for name in (run.name, result.baseline) if name and result[name].figures[str(lean)].mean is not None]
    names = list(dict.fromkeys(known))
    sizes = np.abs(np.stack([result[name].figures[str(lean)].values for name in names]))
    figure = run.figures[str(lean)]
    on = ""
    if figure.vs_baseline is not None and figure.vs_baseline.partial and len(names) > 1:
        sizes = sizes[:, ~np.isnan(sizes).any(axis=0)]
        if not sizes.size:
            return []
        on = f" over the {common_queries(result, figure)}"
    values = [f"{number(float(np.nanmean(size)))} in {name}" for size, name in zip(sizes, names, strict=True)]
    return [
        f"Queries that lean in opposite directions cancel out in {lean}; ignoring the sign, the mean lean of a query"
        f" is {', '.join(values)}{on}."
    ]


def _neutrality(result: Findings, run: RunAudit, measure: Measure) -> list[str]:
    figure = run.figures[str(measure)]
    if figure.mean is None:
        return [_without_mean(run, figure)]
    if result.all_neutral:
        return [f"{measure} tells nothing about {run.name}: every document of the background counts as neutral."]
    random, ideal = (number(result[name].figures[str(measure)].mean) for name in (RANDOM, NEUTRAL_FIRST))
    of_any = "" if figure.added is not None else f"a random order of the candidates has {random}, "
    sentences = [
        f"Neutrality of the first {measure.params['cutoff']} ranks of {run.name}: {number(figure.mean)}"
        f" {_numbers_of(figure)}; {of_any}the {_ideal_order(result, run)} has {ideal}."
    ]
    if figure.vs_baseline is not None:
        sentences += _difference(result, run, measure, figure.vs_baseline)
    return sentences


def _ideal_order(result: Findings, run: RunAudit) -> str:
    background = result.settings["background"]
    candidates = "its candidates" if run.name == background else f"{background}'s candidates"
    return f"most neutral order of {candidates}"


def _numbers_of(figure: Figure) -> str:
    if figure.ci95 is None:
        return f"({figure.measure})"
    return f"({figure.measure}, 95% interval {number(figure.ci95[0])} to {number(figure.ci95[1])})"


def _pairs(result: Findings, run: RunAudit, measure: Measure) -> list[str]:
    """Which group's relevant passages are ranked above non-relevant ones more often."""
    figure, pair = run.figures[str(measure)], poles(result, measure)
    if figure.mean is None and figure.known is not None and not figure.undefined:
        return [_without_mean(run, figure)]
    if figure.mean is None or pair is None:
        return [f"{measure} of {run.name} is undefined: a group has no relevant passage."]
    first, second = passages(pair[0], pair), passages(pair[1], pair)
    if figure.ci95 is None or figure.ci95[0] <= 0 <= figure.ci95[1]:
        text = f"no clear difference between {both(pair)}"
    elif figure.mean > 0:
        text = f"{first} win more often than {second}"
    else:
        text = f"{second} win more often than {first}"
    sentences = [f"Relevant passages ranked above others in {run.name}: {text} {_numbers(figure)}."]
    compared = figure.vs_baseline
    if compared is not None and compared.significant:
        sentences += _difference(result, run, measure, compared)
    return sentences


def _ties(run: RunAudit) -> list[str]:
    """What moves a run's figures besides its queries: the order of tied documents, and that of a ranker's passages."""
    figures = run.figures.values()
    ties = [(f.measure, f.tie_range) for f in figures if f.tie_sensitive and f.tie_range is not None]
    orders = [(f.measure, f.order_range) for f in figures if f.order_sensitive and f.order_range is not None]
    causes = (
        ("the order of its tied documents", ties),
        ("the order in which its ranker was given the passages", orders),
    )
    return [
        f"Read {run.name} with care: {cause} alone can move "
        + ", ".join(f"{measure} from {number(low)} to {number(high)}" for measure, (low, high) in moved)
        + "."
        for cause, moved in causes
        if moved
    ]
