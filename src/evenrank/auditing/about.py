"""What an audit is about: its groups and poles in words, its measures, and which of them can be taken apart."""

from __future__ import annotations

from typing import NamedTuple

from ir_measures import Measure
from rich.cells import cell_len

from evenrank.files.errors import plain
from evenrank.files.wording import counted
from evenrank.measures import is_bias, resolve
from evenrank.measures.base import mean_of
from evenrank.measures.neutrality import NFaiRR
from evenrank.measures.rank_bias import AbsARaB, ARaB, RaB
from evenrank.results.table import fitted, number

from .data import AuditFigures, MetricValue
from .values import PARTLY


def with_origins(result: AuditFigures) -> list[Measure]:
    """The measures that are known to be the sum of what candidates hold and what their order adds."""
    return [m for m in result.measures if any(run.measures[str(m)].vs_random_order is not None for run in result.given)]


def perfect(figure: MetricValue) -> float | None:
    """What a perfect ranking of the candidates would add to a figure, over the queries where that is defined."""
    if figure.vs_random_order is None or figure.vs_ideal_order is None:
        return None
    return mean_of(figure.vs_random_order.values - figure.vs_ideal_order.values)


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


def has_scores(result: AuditFigures) -> bool:
    """Whether the documents were scored; an audit of effectiveness alone needs no texts."""
    return bool(groups(result))


def groups(result: AuditFigures) -> list[str]:
    """The groups whose words were counted."""
    return [name.removeprefix("count_") for name in result.rankings.columns if name.startswith("count_")]


def estimated(result: AuditFigures) -> bool:
    """Whether figures are estimated from labels that were drawn."""
    return any(figure.from_labels is not None for run in result.given for figure in run.measures.values())


def labelled(result: AuditFigures) -> bool:
    """Whether groups are from labels, of which some may be unknown."""
    return "labels" in result.settings


def poles(result: AuditFigures, measure: Measure | None = None) -> Poles | None:
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


def on_common(result: AuditFigures, figure: MetricValue) -> str:
    """A comparison's means, if it is over fewer queries than the figures; otherwise nothing."""
    compared = figure.vs_baseline
    if compared is None or not compared.partial:
        return ""
    if compared.mean is None and compared.test.reason == PARTLY:
        return ""
    if compared.mean is None:
        return "no difference: estimated over other queries" if compared.n else "no common queries"
    means = f"{number(compared.mean, 4)} against {number(compared.baseline_mean, 4)}"
    return f"{common_queries(result, figure)}: {means}"


def common_queries(result: AuditFigures, figure: MetricValue) -> str:
    """The number of queries behind a comparison: ``19 common queries``, for ΔA-PRF also by pole."""
    compared = figure.vs_baseline
    assert compared is not None
    of_both = counted(compared.n or 0, "common query")
    if compared.n_poles is None:
        return of_both
    pair = poles(result, figure.measure) or Poles("the first pole", "the second")
    return f"{of_both} ({', '.join(f'{n:,} of {pole}' for n, pole in zip(compared.n_poles, pair[:2], strict=True))})"


def pick(result: AuditFigures, *wanted: Measure) -> Measure | None:
    """The first measure that is one of ``wanted``, whatever its parameters; those in order of preference."""
    return next((m for one in wanted for m in result.measures if type(m) is type(one)), None)


def lean_measure(result: AuditFigures) -> Measure | None:
    """The measure of bias that is shown first: a lean if there is one."""
    return pick(result, ARaB, RaB, AbsARaB, NFaiRR) or next(filter(is_bias, result.measures), None)


def shown_lean(result: AuditFigures) -> Measure | None:
    """The measure that says towards whom a run leans; None where none does."""
    signed = [one for one in result.measures if is_bias(one) and resolve(one).signed and not resolve(one).whole_run]
    found = pick(result, ARaB, RaB) or next(iter(signed), None)
    return found if found is not None and poles(result, found) is not None else None


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


_LETTERS = "abcdefghij"
_LONG = 20
"""Characters of a run's name from which on sentences call it otherwise where they can."""


def in_short(name: str, instead: str) -> str:
    """A run's name, or what is said instead of a long one."""
    return name if len(name) <= _LONG else instead


def letters_of(result: AuditFigures) -> dict[str, str]:
    """A letter for each of several runs, by which the others say that they differ from it; none of more than ten."""
    if not result.pairs or len(result.given) > len(_LETTERS):
        return {}
    return dict(zip((run.name for run in result.given), _LETTERS, strict=False))


def short_names(result: AuditFigures) -> dict[str, str]:
    """What runs are called where several are named: where a name is long, by their letters, or cut if that tells."""
    names = [run.name for run in result.given]
    cut = {name: fitted(plain(name), min(cell_len(plain(name)), _LONG)) for name in names}
    if all(in_short(name, "") for name in names):
        return {name: name for name in names}
    return letters_of(result) or (cut if len(set(cut.values())) == len(cut) else {name: name for name in names})
