"""Where the bias of a run comes from, for the terminal: what its order adds, and what it has beyond relevance.

What a perfect ranking of a run's own candidates would add is what the run adds minus what it has beyond relevance.
"""

from __future__ import annotations

import numpy as np
from ir_measures import Measure

from evenrank.io.errors import plain
from evenrank.measures import resolve
from evenrank.measures.statistics import EQUAL
from evenrank.reports.format import NONE, equation, interval, number, p_value

from .excess import Excess
from .findings import Figure, Findings, RunAudit
from .stage_steps import aligned, fitted, same_verdict, signed, signed_interval

_DIGITS = 4
_WORDS = 3
_GONE, _STILL, _STILL_NOT = "is not shown", "is still shown", "is still not shown"
_OF_CANDIDATES = {
    "adds": "The ranker adds to the lean of its candidates.",
    "reduces": "The candidates lean; the ranker reduces it.",
    "turns": "The candidates lean; the ranker turns it to the other side.",
}
_FIELDS = ("added", "beyond_relevance")
_ADDED, _BEYOND = "added to its candidates", "beyond a perfect ranking"


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
    """What :func:`origins_text` shows."""
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
        f"{beyond * known} ({grades * known}p: paired t-test, uncorrected; tie mean: averaged over the orders of tied"
        f" documents{mark * tied})"
    )


def origins_text(result: Findings) -> str:
    """The two differences as a table for the terminal: by measure, a line for each run; "" where none is known."""
    rows: list[tuple[str, ...]] = [("", "differ.", "95% interval", "p", "tie mean ", "reference")]
    for measure in with_origins(result):
        for field, what in zip(_FIELDS, (_ADDED, _BEYOND), strict=True):
            found = [(run.name, of) for run in result.given if (of := _excess(run, measure, field)) is not None]
            if found:
                rows.append((f"{measure}, {what} ({_queries([of.n for _, of in found])})", *[""] * 5))
                rows += [_line(name, of) for name, of in found]
    return aligned(rows) if len(rows) > 1 else ""


def _excess(run: RunAudit, measure: Measure, field: str) -> Excess | None:
    figure = run.figures[str(measure)]
    return figure.added if field == "added" else figure.beyond_relevance


def _queries(counts: list[int]) -> str:
    least, most = min(counts), max(counts)
    return f"n = {least} {'query' if most == 1 else 'queries'}" if least == most else f"n = {least} to {most} queries"


def _line(name: str, of: Excess) -> tuple[str, ...]:
    ties = NONE if of.tie_mean is None else signed(of.tie_mean)
    return (
        fitted(plain(name)),
        signed(of.mean),
        signed_interval(of.ci95),
        p_value(of.t_p),
        ties + ("~" if of.tie_sensitive else " "),
        number(of.reference, _DIGITS),
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
    if abs(added.reference) <= EQUAL or (run * added.reference < 0 and added.leans is False):
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
    if not _has_sides(measure) or added.leans is None:
        return []
    if added.tie_sensitive and _after_ties(added) not in (_STILL, _STILL_NOT):
        start = "The candidates lean" if added.leans else "Its candidates are not shown to lean"
        return [f"{start}; what its ranker does to that depends on the order of tied documents."]
    shown = added.shown()
    if added.leans:
        if not shown:
            return ["The candidates lean; the ranker is not shown to add to it."]
        return [_OF_CANDIDATES[_change(added)]]
    if shown:
        if _change(added) == "reduces":
            return ["Its candidates are not shown to lean, and its order leans less than they do."]
        return ["Its candidates are not shown to lean; the ranker adds a lean."]
    leans = figure.ci95 is not None and not figure.ci95[0] <= 0 <= figure.ci95[1]
    if leans:
        return ["Whose lean that is, is not shown: neither that its candidates lean nor that its order adds to it."]
    return ["Neither its candidates nor its order are shown to lean."]


def _tested(of: Excess) -> str:
    return f"{_size(of)}, {_p(of)}"


def _p(of: Excess) -> str:
    return "without a test" if of.t_p is None else equation("p", of.t_p)


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
    return signed(of.tie_mean, _WORDS) + ("" if of.tie_p is None else f" ({equation('p', of.tie_p)})")


def _after_ties(of: Excess) -> str:
    """The verdict on a difference averaged over the orders of tied documents, beside that without."""
    if of.tie_p is None or of.tie_mean is None:
        return "has no test"
    shown = of.shown(tied=True)
    if same_verdict(of.mean, of.tie_mean, shown=of.shown(), tied_shown=shown):
        return _STILL if shown else _STILL_NOT
    if shown and of.shown():
        return "is shown, but the other way round"
    return "is shown" if shown else _GONE
