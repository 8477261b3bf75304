"""An audit summarised in sentences that claim no more than its figures show.

They say where the bias of a run comes from: what its order adds, and what it has beyond relevance. What a perfect
ranking of a run's own candidates would add is what the run adds minus what it has beyond relevance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from ir_measures import Measure

from evenrank.io.wording import counted
from evenrank.measures import AbsARaB, ARaB, DeltaAPRF, FaiRR, NeutralityMeasure, NFaiRR, RaB, is_bias, resolve
from evenrank.measures.inference import EQUAL, MARGIN, one_in, outcome, queries_to_hold
from evenrank.measures.inference import Comparison as Tested
from evenrank.results.format import equation, interval, number, signed, signed_interval

from .comparison import PARTLY
from .findings import (
    ALL_ZERO,
    NEUTRAL_FIRST,
    RANDOM,
    Comparison,
    Excess,
    Figure,
    Findings,
    RunAudit,
    same_verdict,
)

_DIGITS = 4
_WORDS = 3
_GONE, _STILL, _STILL_NOT = "is not shown", "is still shown", "is still not shown"
_OF_CANDIDATES = {
    "adds": "The ranker adds to the lean of its candidates.",
    "reduces": "The candidates lean; the ranker reduces it.",
    "turns": "The candidates lean; the ranker turns it to the other side.",
}
_NO_DIFFERENCE = "no query differs"


def with_origins(result: Findings) -> list[Measure]:
    """The measures that are known to be the sum of what candidates hold and what their order adds."""
    return [m for m in result.measures if any(run.figures[str(m)].added is not None for run in result.given)]


def perfect(figure: Figure) -> float | None:
    """What a perfect ranking of the candidates would add to a figure, over the queries where that is defined."""
    if figure.added is None or figure.beyond_relevance is None:
        return None
    by_query = figure.added.values - figure.beyond_relevance.values
    defined = by_query[~np.isnan(by_query)]
    return float(defined.mean()) if len(defined) else None


def origins_title(result: Findings) -> str:
    """What the terminal's table of them shows."""
    known = any(run.figures[str(m)].beyond_relevance is not None for m in with_origins(result) for run in result.given)
    beyond = ", and what it has beyond a perfect ranking of them, by falling grade"
    grades = "equal grades in any order; "
    tied = any(
        of is not None and of.tie_sensitive
        for m in with_origins(result)
        for run in result.given
        for of in (run.figures[str(m)].added, run.figures[str(m)].beyond_relevance)
    )
    mark = "; ~ here: ties decide, since the tie mean lies outside the interval or has another significance"
    return (
        "Origin of the bias: what each run's order adds to its own candidates in random order"
        f"{beyond * known} ({grades * known}p: t and Hall's t, uncorrected; tie mean: averaged over the orders of tied"
        f" documents{mark * tied})"
    )


def origin_sentences(run: RunAudit, measure: Measure) -> list[str]:
    """Whose lean it is, and what a run's order adds beside what a perfect ranking of the same candidates would add."""
    figure = run.figures[str(measure)]
    added, beyond = figure.added, figure.beyond_relevance
    if added is None:
        return []
    text = f"Its own candidates in random order have {number(added.reference)}; its order {_moved(added, measure)}"
    would = perfect(figure)
    if beyond is not None and would is not None:
        text += f", where a perfect ranking would {_would(would, measure)}; "
        shown = beyond.shown()
        text += f"the difference, {_size(beyond)} ({_p(beyond)}), is" if shown else "nothing is shown to be"
        text += " beyond relevance" + ("" if shown else f" ({_tested(beyond)})")
    return [*_whose(figure, added, measure), f"{text}.", *_over_ties(added, beyond)]


def _has_sides(measure: Measure) -> bool:
    """Whether a measure says to which side something leans."""
    how = resolve(measure)
    return how.signed and how.better == "nearer zero"


def _change(added: Excess) -> str:
    """What an order does to the lean of its candidates: "adds", "reduces" or "turns"."""
    run = added.reference + added.mean
    if abs(added.reference) <= EQUAL or (run * added.reference < 0 and not added.leans.shown):
        return "adds"
    if run * added.reference < 0 and abs(run) > EQUAL:
        return "turns"
    return "reduces" if abs(run) < abs(added.reference) else "adds"


def _moved(added: Excess, measure: Measure) -> str:
    """What the order does to the figure of its candidates, with interval and p."""
    if _has_sides(measure):
        if not added.shown():
            return f"is not shown to add anything ({_tested(added)})"
        change = _change(added)
        if change == "reduces":
            return f"reduces the lean of its candidates by {_without_sign(added)} ({_p(added)})"
        if change == "turns":
            return f"turns their lean to the other side: {_size(added)} ({_p(added)})"
        return f"adds {_size(added)} ({_p(added)})"
    if resolve(measure).better == "higher":
        if not added.shown():
            return f"is not shown to be more or less neutral ({_tested(added)})"
        more = "more" if added.mean > 0 else "less"
        return f"is {more} neutral than its candidates by {_without_sign(added)} ({_p(added)})"
    return f"adds {_size(added)} ({_p(added)})" if added.shown() else f"is not shown to add anything ({_tested(added)})"


def _would(would: float, measure: Measure) -> str:
    if resolve(measure).better != "higher":
        return f"add {signed(would, _WORDS)}"
    return f"be {'less' if would < 0 else 'more'} neutral by {number(abs(would), _WORDS)}"


def _without_sign(of: Excess) -> str:
    """The size of a difference, whose side is said in words, and its interval."""
    if of.ci95 is None:
        return number(abs(of.mean), _WORDS)
    ends = of.ci95 if of.mean > 0 else (-of.ci95[1], -of.ci95[0])
    return f"{number(abs(of.mean), _WORDS)} {interval(ends, _WORDS)}"


def _whose(figure: Figure, added: Excess, measure: Measure) -> list[str]:
    """One sentence on whose lean it is: that of the candidates, or of their order."""
    if not _has_sides(measure) or added.leans.p is None:
        return []
    if added.tie_sensitive and _after_ties(added) not in (_STILL, _STILL_NOT):
        start = "The candidates lean" if added.leans.shown else "Its candidates are not shown to lean"
        return [f"{start}; what its ranker does to that depends on the order of tied documents."]
    shown = added.shown()
    if added.leans.shown:
        if not shown:
            return ["The candidates lean; the ranker is not shown to add to it."]
        return [_OF_CANDIDATES[_change(added)]]
    if shown:
        if _change(added) == "reduces":
            return ["Its candidates are not shown to lean, and its order leans less than they do."]
        return ["Its candidates are not shown to lean; the ranker adds a lean."]
    if figure.lean is not None and figure.lean.shown:
        return ["Whose lean that is, is not shown: neither that its candidates lean nor that its order adds to it."]
    return ["Neither its candidates nor its order are shown to lean."]


def _tested(of: Excess) -> str:
    return f"{_size(of)}, {_p(of)}"


def _p(of: Excess) -> str:
    if of.test.p is not None:
        return equation("p", of.test.p)
    return _NO_DIFFERENCE if of.test.why == ALL_ZERO else "too few queries for a test"


def _size(of: Excess) -> str:
    return signed(of.mean, _WORDS) + ("" if of.ci95 is None else f" {signed_interval(of.ci95, _WORDS)}")


def _over_ties(added: Excess, beyond: Excess | None) -> list[str]:
    """What becomes of the differences averaged over the orders of tied documents, where that decides."""
    decided = {}
    if added.tie_sensitive:
        decided[f"it adds {_on_average(added)}"] = _after_ties(added)
    if beyond is not None and beyond.tie_sensitive:
        decided[f"{_on_average(beyond)} is beyond relevance"] = _after_ties(beyond)
    if not decided:
        return []
    start = "Averaged over the orders of its tied documents, "
    verdicts = set(decided.values())
    if len(decided) == 2 and verdicts in ({_GONE}, {_STILL}):
        return [
            f"{start}{'neither is shown' if verdicts == {_GONE} else 'both are still shown'}: {', and '.join(decided)}."
        ]
    return [start + "; ".join(f"{what}, which {verdict}" for what, verdict in decided.items()) + "."]


def _on_average(of: Excess) -> str:
    return signed(of.tie_mean, _WORDS) + ("" if (p := _tie_p(of)) is None else f" ({equation('p', p)})")


def _tie_p(of: Excess) -> float | None:
    return None if of.tied is None else of.tied.p


def _after_ties(of: Excess) -> str:
    """The verdict on a difference averaged over the orders of tied documents, beside that without."""
    if _tie_p(of) is None and not (of.tied is not None and of.tied.why == ALL_ZERO):
        return "has no test"
    shown = of.shown(tied=True)
    if same_verdict(of.mean, of.tie_mean or 0.0, shown=of.shown(), tied_shown=shown):
        return _STILL if shown else _STILL_NOT
    if shown and of.shown():
        return "is shown, but the other way round"
    return "is shown" if shown else _GONE


class Poles(NamedTuple):
    """The groups of a signed measure, the positive one first; ``labelled``: from labels rather than words."""

    first: str
    second: str
    labelled: bool = False

    @property
    def worded(self) -> bool:
        """Whether they are the words of men and women."""
        return {self.first, self.second} <= {"m", "f"} and not self.labelled


def direction(measure: Measure) -> str:
    """Which values of a measure are better."""
    if resolve(measure).undirected:
        return "no value is better by itself"
    return "nearer 0 is better" if resolve(measure).better == "nearer zero" else "higher is better"


def has_scores(result: Findings) -> bool:
    """Whether the documents were scored; an audit of effectiveness alone needs no texts."""
    return bool(groups(result))


def groups(result: Findings) -> list[str]:
    """The groups whose words were counted."""
    return [name.removeprefix("count_") for name in result.rankings.columns if name.startswith("count_")]


def labelled(result: Findings) -> bool:
    """Whether groups are from labels, of which some may be unknown."""
    return "labels" in result.settings


def poles(result: Findings, measure: Measure | None = None) -> Poles | None:
    """The groups of a signed measure, the positive one first."""
    own = measure.params.get("poles") if measure is not None else None
    named = [part.strip() for part in own.split(",")] if own else result.settings.get("poles")
    if not named and {"m", "f"} <= set(groups(result)):
        # The default of a group table without settings.
        named = ["m", "f"]
    return Poles(named[0], named[1], labelled(result)) if named else None


def passages(group: str, pair: Poles) -> str:
    """A phrase for a group's passages, such as ``male-worded passages``."""
    if pair.worded:
        return {"m": "male-worded", "f": "female-worded"}[group] + " passages"
    return "passages of the other groups" if group == "rest" else f"passages of group {group}"


def group_label(group: str, names: list[str]) -> str:
    """A group's label: ``female`` if the groups are f and m."""
    return {"m": "male", "f": "female"}[group] if set(names) <= {"m", "f"} else group


def both(pair: Poles) -> str:
    """A phrase for the passages of both poles."""
    if pair.worded:
        return "male-worded and female-worded passages" if pair[0] == "m" else "female-worded and male-worded passages"
    return " and ".join(passages(group, pair) for group in pair[:2])


def positive(pair: Poles | None) -> str:
    """What the sign of a lean means."""
    if pair is None:
        return ""
    return f"positive: towards {passages(pair[0], pair)}, negative: towards {passages(pair[1], pair)}"


def on_common(result: Findings, figure: Figure) -> str:
    """A comparison's means, if it is over fewer queries than the figures; otherwise nothing."""
    compared = figure.vs_baseline
    if compared is None or not compared.partial:
        return ""
    if compared.mean is None and compared.test.why == PARTLY:
        return ""
    if compared.mean is None:
        return "no difference: estimated over other queries" if compared.n else "no common queries"
    means = f"{number(compared.mean, 4)} against {number(compared.baseline_mean, 4)}"
    return f"{common_queries(result, figure)}: {means}"


def common_queries(result: Findings, figure: Figure) -> str:
    """The number of queries behind a comparison: ``19 common queries``, for ΔA-PRF also by pole."""
    compared = figure.vs_baseline
    assert compared is not None
    of_both = counted(compared.n or 0, "common query")
    if compared.n_poles is None:
        return of_both
    pair = poles(result, figure.measure) or Poles("the first pole", "the second")
    return f"{of_both} ({', '.join(f'{n:,} of {pole}' for n, pole in zip(compared.n_poles, pair[:2], strict=True))})"


def pick(result: Findings, *wanted: Measure) -> Measure | None:
    """The first measure that is one of ``wanted``, whatever its parameters; those in order of preference."""
    return next((m for one in wanted for m in result.measures if type(m) is type(one)), None)


def lean_measure(result: Findings) -> Measure | None:
    """The measure of bias that is shown first: a lean if there is one."""
    return pick(result, ARaB, RaB, AbsARaB, NFaiRR) or next(filter(is_bias, result.measures), None)


def signed_measures(result: Findings) -> list[str]:
    """The measures of single queries whose sign is a direction: there, a better value is one nearer to 0."""
    return [
        name
        for name, figure in result.runs[0].figures.items()
        if resolve(figure.measure).signed and not figure.whole_run
    ]


def utility_measures(result: Findings) -> list[Measure]:
    """The measures of effectiveness."""
    return [measure for measure in result.measures if not is_bias(measure)]


def order_words(figure: Figure) -> str:
    """A listwise run's figure over all orders, for a sentence."""
    low, high = figure.order_range or (None, None)
    return f"over all orders {number(figure.order_mean)} on average, {number(low)} to {number(high)}"


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
            small = compared.difference < 0 and compared.no_loss
            p = equation("Holm p", compared.holm_p)
            verdicts.setdefault(verdict, []).append(f"{values} ({p}{', but within 5%' if small else ''})")
        elif compared.loss is not None and outcome(compared.loss, compared.loss.p_broken()) == "broken":
            verdicts.setdefault("a sure loss", []).append(f"{values} ({equation('p', compared.loss.p_broken())})")
        elif compared.no_loss:
            verdicts.setdefault("no loss", []).append(values)
        else:
            verdicts.setdefault("a loss", []).append(f"{values} ({_not_ruled_out(compared)})")
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
            sure = ", whatever the values" * bool(result.settings.get("guaranteed"))
            sentences.append(f"{run.name}: no loss shown, within 5% of {base.name} or better{sure}: {listed}.")
        elif verdict == "a sure loss":
            sentences.append(f"{run.name} loses more than 5% of the effectiveness of {base.name}: {listed}.")
        elif verdict == "a loss":
            sentences.append(f"{run.name}: a loss compared with {base.name} cannot be ruled out: {listed}.")
        else:
            sentences.append(f"{run.name} {verdict} {base.name}: {listed}.")
    return sentences


def _not_ruled_out(compared: Comparison) -> str:
    """Why a loss is possible: what is known of the difference, and how few ruined queries would be a loss of 5%."""
    said = _why(compared.test) or f"not significant, {equation('Holm p', compared.holm_p)}"
    if compared.loss is None or compared.baseline_mean is None:
        return said
    few = max(1, round(one_in(MARGIN, compared.baseline_mean, compared.loss.loss / (1 - MARGIN))))
    least = queries_to_hold(MARGIN * compared.baseline_mean, 0.0, compared.loss.loss)
    needed = "" if least is None or least <= compared.n else f", and fewer than {least} queries cannot rule that out"
    return f"{said}; one query in {few} that loses everything would be a loss of 5%{needed}"


def _why(test: Tested) -> str | None:
    """Why a difference was not tested."""
    return _NO_DIFFERENCE if test.why == ALL_ZERO else test.why


# --- bias ------------------------------------------------------------------------------------------------------------


def _lean(result: Findings, run: RunAudit, measure: Measure) -> list[str]:
    """Towards which group's passages the first ranks lean."""
    figure, pair = run.figures[str(measure)], poles(result, measure)
    if figure.mean is None or pair is None:
        return [_without_mean(run, figure)]
    ranks = f"The first {measure.params['cutoff']} ranks of {run.name}"
    numbers = _numbers(figure)
    clear = figure.lean is not None and figure.lean.shown
    flat = figure.lean is not None and figure.lean.why == ALL_ZERO
    if flat:
        text = f"{ranks} lean in no query {numbers}"
    elif figure.lean is not None and figure.lean.why is not None:
        why = figure.lean.why if figure.lean.n > 1 else "there is only one query"
        text = f"It cannot be told whether the {ranks[4:]} lean: {why} {numbers}"
    elif clear:
        text = f"{ranks} lean towards {passages(pair[0] if figure.mean > 0 else pair[1], pair)} {numbers}"
    else:
        text = f"{ranks} show no clear lean between {both(pair)} {numbers}{_noticed('lean', figure.lean)}"
    sentences = [f"{text}{_of_random(result, figure)}."]
    if figure.tie_sensitive:
        sentences.append(f"Averaged over the orders of its tied documents, {measure} is {number(figure.tie_mean)}.")
    if figure.order_sensitive:
        sentences.append(f"That is in the run's order of passages: {order_words(figure)}.")
    compared = figure.vs_baseline
    if compared is not None and result.baseline is not None:
        sentences += _difference(result, run, measure, compared)
    nearer = compared is not None and compared.significant and not compared.unequal_depth and not _further(compared)
    if (not clear or nearer) and not flat and not figure.partly_labelled:
        sentences += _unsigned(result, run, measure)
    return sentences


def _noticed(what: str, test: Tested | None) -> str:
    """What would have been noticed: ``; a lean of .13 would have been noticed in 8 of 10 such samples``."""
    if test is None or test.noticeable is None:
        return ""
    return f"; a {what} of {number(test.noticeable)} would have been noticed in 8 of 10 such samples"


def _of_random(result: Findings, figure: Figure) -> str:
    """What stands beside a figure where it is not known what its order adds."""
    if figure.added is not None:
        return ""
    if result.partly_labelled:
        return "; what its order adds is not known, as some candidates have no label"
    of_random = result[RANDOM].figures[str(figure.measure)].mean
    return "" if of_random is None else f"; a random order of the candidates has {number(of_random)}"


def _without_mean(run: RunAudit, figure: Figure) -> str:
    if figure.bounds is not None:
        low, high = map(number, figure.bounds)
        return f"{figure.measure} of {run.name} is between {low} and {high}, whatever the unknown labels are."
    if figure.known is not None and figure.known[0] == 0:
        return f"{figure.measure} of {run.name} is not known: no document that it looks at has a label."
    if figure.known is not None and not figure.undefined:
        return f"{figure.measure} of {run.name} is not known: it has no exact bounds over unknown labels."
    which = "labelled document" if figure.partly_labelled else "document"
    why = f", as no {which} of the background is neutral" if type(figure.measure) is type(NFaiRR) else ""
    return f"{figure.measure} of {run.name} is undefined for every query{why}."


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
    if compared.test.why == ALL_ZERO and not compared.partial:
        return [f"In {measure} it differs from {result.baseline} in no query."]
    if compared.holm_p is None:
        text = f"{start} could not be tested ({_why(compared.test)})"
    elif compared.significant:
        text = f"{start} is significant ({equation('Holm p', compared.holm_p)})"
        sizes = compared.sizes
        if sizes is not None and sizes.shown:
            text += f": its mean is {'further from' if (sizes.mean or 0.0) > 0 else 'nearer to'} 0"
    else:
        text = (
            f"{start} is not significant ({equation('Holm p', compared.holm_p)}{_noticed('difference', compared.test)})"
        )
    tied = [name for name in (run.name, result.baseline) if name and result[name].figures[str(measure)].tie_sensitive]
    if not tied:
        return [text + "."]
    ties = f"tied documents in {' and '.join(tied)}"
    if compared.tied is not None and compared.tied.why == ALL_ZERO:
        return [f"{text}, but it depends on the order of {ties}. Averaged over those orders, no query differs."]
    if compared.tied is None or compared.tied.p is None or compared.tied.mean is None:
        return [f"{text}, but it depends on the order of {ties}."]
    # The mean over the orders of tied documents does not depend on how ties are broken.
    p = f"{equation('p', compared.tied.p)}, uncorrected"
    verdict = "significant" if compared.tied.shown else "not significant"
    stays = same_verdict(
        compared.difference,
        compared.tied.mean,
        shown=compared.significant,
        tied_shown=compared.tied.shown,
    )
    if compared.holm_p is not None and stays:
        averaged = f"{verdict} averaged over the orders of {ties} ({number(compared.tied.mean)}, {p})"
        return [f"{text}, and remains {averaged}."]
    return [
        f"{text}, but it depends on the order of {ties}. Averaged over those orders, the difference is"
        f" {number(compared.tied.mean)} and {verdict} ({p})."
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
    ideal = result[NEUTRAL_FIRST].figures[str(measure)]
    of_ideal = (
        ""
        if ideal.mean is None or ideal.partly_labelled
        else f"; the {_ideal_order(result, run)} has {number(ideal.mean)}"
    )
    sentences = [
        f"Neutrality of the first {measure.params['cutoff']} ranks of {run.name}: {number(figure.mean)}"
        f" {_numbers_of(figure)}{_of_random(result, figure)}{of_ideal}."
    ]
    if figure.vs_baseline is not None:
        sentences += _difference(result, run, measure, figure.vs_baseline)
    return sentences


def _ideal_order(result: Findings, run: RunAudit) -> str:
    background = result.settings["background"]
    candidates = "its candidates" if run.name == background else f"{background}'s candidates"
    return f"most neutral order of {candidates}"


def _numbers_of(figure: Figure) -> str:
    if figure.partly_labelled:
        return f"({figure.measure}, no interval: documents without a label could change it)"
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
    if figure.lean is not None and figure.lean.why is not None:
        text = f"it cannot be told whether {both(pair)} differ: {figure.lean.why}"
    elif figure.lean is None or not figure.lean.shown:
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
