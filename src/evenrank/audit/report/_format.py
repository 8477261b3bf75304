"""Figures as people read them, the same in the terminal and on the page."""

from __future__ import annotations

from ir_measures import Measure

from evenrank._wording import counted
from evenrank.audit.findings import Figure, Findings, Interval
from evenrank.measures import is_bias

NONE = "–"


def number(value: float | None, digits: int = 3) -> str:
    """``digits`` decimals; what would be rounded to 0 keeps its first digit, so that no figure seems to be exactly 0.

    >>> number(-0.0616), number(-0.00003), number(0.0), number(None)
    ('-0.062', '-3e-05', '0.000', '–')
    """
    if value is None:
        return NONE
    if abs(value) < 1e-9:
        value = 0.0
    if 0 < abs(value) < 0.5 * 10**-digits:
        fixed = f"{value:.{digits + 1}f}"
        return fixed if float(fixed) else f"{value:.0e}"
    return f"{value:.{digits}f}"


def interval(ends: Interval | None, digits: int = 3) -> str:
    """An interval in brackets, as tables show it."""
    return NONE if ends is None else f"[{number(ends[0], digits)}, {number(ends[1], digits)}]"


def p_value(p: float | None) -> str:
    """A p-value with three decimals, or that it is below .001.

    >>> p_value(0.04211), p_value(1e-9), p_value(None)
    ('0.042', '<0.001', '–')
    """
    if p is None:
        return NONE
    return "<0.001" if p < 0.0005 else f"{p:.3f}"


def equation(name: str, p: float | None) -> str:
    """A p-value in a sentence: ``Holm p = 0.042``."""
    if p is None:
        return f"no {name}"
    return f"{name} {p_value(p).replace('<', '< ') if p < 0.0005 else '= ' + p_value(p)}"


def direction(measure: Measure) -> str:
    """Which way a measure's values are good."""
    return "nearer 0 is better" if getattr(measure, "better", "higher") == "nearer zero" else "higher is better"


def has_scores(result: Findings) -> bool:
    """Whether anything is known of the documents: an audit of effectiveness alone needs no texts."""
    return bool(groups(result))


def groups(result: Findings) -> list[str]:
    """The groups that documents were counted for."""
    return [name.removeprefix("count_") for name in result.rankings.columns if name.startswith("count_")]


def poles(result: Findings, measure: Measure | None = None) -> tuple[str, str] | None:
    """The groups of a signed measure, the positive one first."""
    own = measure.params.get("poles") if measure is not None else None
    named = [part.strip() for part in own.split(",")] if own else result.settings.get("poles")
    if not named and {"m", "f"} <= set(groups(result)):
        # A score table without settings: io.Scores takes these.
        named = ["m", "f"]
    return (named[0], named[1]) if named else None


def passages(group: str, pair: tuple[str, str]) -> str:
    """The passages of a group, in words: ``male-worded passages`` for the gender poles."""
    if set(pair) <= {"m", "f"}:
        return {"m": "male-worded", "f": "female-worded"}[group] + " passages"
    return "passages of the other groups" if group == "rest" else f"passages of group {group}"


def group_label(group: str, names: list[str]) -> str:
    """A group in a word: ``female``, where the groups are f and m."""
    return {"m": "male", "f": "female"}[group] if set(names) <= {"m", "f"} else group


def both(pair: tuple[str, str]) -> str:
    """The passages of the two poles, in words."""
    if set(pair) <= {"m", "f"}:
        return "male-worded and female-worded passages" if pair[0] == "m" else "female-worded and male-worded passages"
    return " and ".join(passages(group, pair) for group in pair)


def positive(pair: tuple[str, str] | None) -> str:
    """What the sign of a lean means."""
    if pair is None:
        return ""
    return f"positive: towards {passages(pair[0], pair)}, negative: towards {passages(pair[1], pair)}"


def on_common(result: Findings, figure: Figure) -> str:
    """A comparison's means and their queries, where these are not all that the figures are over; else nothing."""
    compared = figure.vs_baseline
    if compared is None or not compared.partial:
        return ""
    if compared.mean is None:
        return "no difference: drawn over other queries" if compared.n else "no common queries"
    means = f"{number(compared.mean, 4)} against {number(compared.baseline_mean, 4)}"
    return f"{common_queries(result, figure)}: {means}"


def common_queries(result: Findings, figure: Figure) -> str:
    """How many queries a comparison is over: ``19 common queries``, with those of each pole for ΔA-PRF."""
    compared = figure.vs_baseline
    assert compared is not None
    of_both = counted(compared.n or 0, "common query")
    if compared.n_poles is None:
        return of_both
    pair = poles(result, figure.measure) or ("the first pole", "the second")
    return f"{of_both} ({', '.join(f'{n:,} of {pole}' for n, pole in zip(compared.n_poles, pair, strict=True))})"


def pick(result: Findings, *names: str) -> Measure | None:
    """The first measure with one of these names, the names in order of preference."""
    return next((m for name in names for m in result.measures if name == m.NAME), None)


def utility_measures(result: Findings) -> list[Measure]:
    """The measures of effectiveness."""
    return [measure for measure in result.measures if not is_bias(measure)]
