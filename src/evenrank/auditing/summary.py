"""The first screen of an audit: one table of what was asked, and verdicts at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ir_measures import Measure
from rich.cells import cell_len

from evenrank.files.types import EQUAL
from evenrank.measures import is_bias, resolve
from evenrank.measures.exposure import Share
from evenrank.measures.impact import ImpactRatio
from evenrank.results.finding import Finding
from evenrank.results.page import Chip, Verdicts
from evenrank.results.table import TEXT, Column, Table, fitted, short, short_intervals, shorts

from .data import RANDOM, RELEVANCE_FIRST, SHOWN_AS, AuditFigures, GroupShare, MetricValue, RunAudit, shown_name
from .findings import RunFindings
from .poles import Poles, group_label, groups, pole, poles, side
from .run_names import cut_name, in_short, letters_of, short_names
from .selected_measures import shown_lean, target_shares, utility_measures

UP, DOWN, APART, TIED, MORE, LESS = "▲", "▼", "●", "~", "↑", "↓"
_RAISED = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲ"
_LONGEST_HEADING = 10
SCREEN = 80
_FIGURE = shorts(3)
_ENDS = short_intervals(2)


def shown_runs(result: AuditFigures) -> list[RunAudit]:
    """The runs, then the candidates and the ideal order of them, where something is known of these."""
    shown, references = known_measures(result), (run for run in result.runs if run.name in SHOWN_AS)
    return [*result.given, *(run for run in references if any(run[m].mean is not None for m in shown))]


def screen_table(result: AuditFigures) -> Table:
    """A row for each ranking and a column for each measure; of shares of groups a row for each group."""
    rows = shown_runs(result)
    if any(_is_share(measure) for measure in result.measures):
        turned = [_turned(result, rows, suffix) for suffix in (" (share)", "")]
        return next((table for table in turned if table.fits(SCREEN)), turned[-1])
    tables = [_by_run(result, rows, with_interval) for with_interval in (True, False)]
    return next((table for table in tables if table.fits(SCREEN)), tables[-1])


def _by_run(result: AuditFigures, rows: list[RunAudit], with_interval: bool) -> Table:
    """A row for each ranking; ``with_interval``: of effectiveness too."""
    columns = [Column("run", TEXT, "", lambda run: _name(result, run))]
    for measure in known_measures(result):
        ends = resolve(measure).signed or (with_interval and measure in _with_interval(result))
        columns += _measure_columns(result, measure, ends)
    return Table("Figures", tuple(columns), rows, kind=lambda run: "reference" if run.reference else "")


def _with_interval(result: AuditFigures) -> list[Measure]:
    """The measures of effectiveness that are shown with an interval: the first, and all that are estimated."""
    measures = utility_measures(result)
    estimated = (m for m in measures if any(run.measures[str(m)].from_labels is not None for run in result.given))
    return [*measures[:1], *estimated]


def known_measures(result: AuditFigures) -> list[Measure]:
    """The measures of which some run has a figure, or bounds."""
    figures = {measure: [run.measures[str(measure)] for run in result.given] for measure in result.measures}
    return [m for m, of in figures.items() if any(f.mean is not None or f.bounds is not None for f in of)]


def _name(result: AuditFigures, run: RunAudit) -> str:
    letter = letters_of(result).get(run.name)
    return f"{letter}\xa0{run.name}" if letter else SHOWN_AS.get(run.name, run.name)


def _same_candidates(result: AuditFigures) -> bool:
    """Whether the runs rank the same documents, as far as their random orders have the same figures."""
    for measure in map(str, result.measures):
        effects = [run.measures[measure].vs_random_order for run in result.given]
        means = [effect.reference for effect in effects if effect is not None]
        if means and max(means) - min(means) > EQUAL:
            return False
    return True


def _is_share(measure: Measure) -> bool:
    return type(measure) is type(Share)


def _measure_columns(result: AuditFigures, measure: Measure, with_interval: bool) -> Iterator[Column]:
    key, heading = str(measure), _heading(result, measure)
    marks = {run.name: _marks(result, run, measure) for run in shown_runs(result)}
    size = max(map(len, marks.values()))
    yield Column(
        key,
        _FIGURE,
        heading,
        lambda run: _value(run.measures[key]),
        mark=(lambda run: marks[run.name].ljust(size)) if size else None,
    )
    if with_interval and not resolve(measure).whole_run and any(_ends(run, key) for run in result.given):
        ends = (f"{key} low", f"{key} high")
        yield Column(ends, _ENDS, "", lambda run: _ends(run, key) or "")


def _heading(result: AuditFigures, measure: Measure) -> str:
    """A measure's name, of a signed one with the group that positive values are towards."""
    pair, name = poles(result, measure), shown_name(measure)
    if isinstance(measure, type(ImpactRatio)) and result.impact:
        # Sentences and their table are about all queries together.
        return f"{name} by query"
    return f"{name} (+ {pole(pair, 1.0)})" if resolve(measure).signed and pair is not None else name


def _ends(run: RunAudit, key: str) -> tuple[float, float] | None:
    """The interval of a run; of a figure over unknown labels its bounds. References are there to compare with."""
    figure = run.measures[key]
    return None if run.reference else figure.ci95


def _value(figure: MetricValue) -> object:
    """The figure, or the bounds of one that is not known."""
    if figure.mean is None and figure.bounds is not None:
        return " to ".join(short(end, 2) for end in figure.bounds)
    return figure.mean


def _marks(result: AuditFigures, run: RunAudit, measure: Measure) -> str:
    """What differs: from which other runs, from the baseline, from 0, and whether ties decide."""
    if run.reference:
        return ""
    figure = run.measures[str(measure)]
    compared, lean = figure.vs_baseline, figure.lean
    marks = ""
    shown = compared is not None and compared.significant and not result.pairs
    if shown and compared is not None and compared.difference is not None:
        marks += UP if compared.difference > 0 else DOWN
    if lean is not None and lean.shown:
        marks += APART
    if figure.tie_sensitive:
        marks += TIED
    raised = "".join(_RAISED[place] for place in _differs_from(result, run.name, str(measure)))
    return f"{raised} {marks}" if marks else raised


def _differs_from(result: AuditFigures, name: str, measure: str) -> list[int]:
    """The places of the runs that a run differs from, among those with a letter."""
    places = {run: place for place, run in enumerate(letters_of(result))}
    others = [
        pair.second if pair.first == name else pair.first
        for pair in result.pairs
        if pair.measure == measure and pair.test.shown and name in (pair.first, pair.second)
    ]
    return sorted(places[other] for other in others if other in places)


# --- groups against runs ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """A measure, or a group's share, of every ranking."""

    name: str
    key: str
    of: Measure


def _turned(result: AuditFigures, rows: list[RunAudit], suffix: str) -> Table:
    """A line for each measure and then for each group, the largest first; a column for each ranking.

    ``suffix``: what stands behind the groups' names.
    """
    names = groups(result)
    first = [m for m in known_measures(result) if not _is_share(m)]
    largest = sorted(
        (m for m in known_measures(result) if _is_share(m)),
        key=lambda m: -max((run.measures[str(m)].mean or 0.0 for run in rows), default=0.0),
    )
    lines = [_Line(_heading(result, m), str(m), m) for m in first]
    lines += [_Line(group_label(str(m["group"]), names) + suffix, str(m), m) for m in largest]
    shares = {(share.run, share.group): share for share in result.shares}
    columns = (
        Column("", TEXT, "", "name"),
        *(_run_column(result, run, lines, shares, _name(result, run)) for run in rows),
    )
    return Table("Figures", columns, lines)


def _run_column(
    result: AuditFigures, run: RunAudit, lines: list[_Line], shares: Mapping[tuple[str, str], GroupShare], heading: str
) -> Column:
    marks = {line.key: _share_mark(result, run, line, shares) for line in lines}
    size = max(map(len, marks.values()))
    return Column(
        run.name,
        _FIGURE,
        heading,
        lambda line: _value(run.measures[line.key]),
        mark=(lambda line: marks[line.key].ljust(size)) if size else None,
        short=SHOWN_AS.get(run.name) or fitted(heading, min(cell_len(heading), _LONGEST_HEADING)),
    )


def _share_mark(result: AuditFigures, run: RunAudit, line: _Line, shares: Mapping[tuple[str, str], GroupShare]) -> str:
    if not _is_share(line.of):
        return _marks(result, run, line.of)
    share = shares.get((run.name, str(line.of["group"])))
    if share is None or not share.test.shown or share.test.mean is None:
        return ""
    return " " + (MORE if share.test.mean > 0 else LESS)


def legend(result: AuditFigures, table: Table) -> tuple[str, ...]:
    """What the marks, the measures and the last rows of the table mean, and what groups are from."""
    drawn = {letter for column in table.columns if column.mark for row in table.rows for letter in column.mark(row)}
    marks = {
        UP + DOWN: f"above, below {'' if result.baseline is None else in_short(result.baseline, 'the baseline')}",
        MORE + LESS: "more, less than own candidates",
        _RAISED[: len(result.given)]: "differs from that run",
        APART: "differs from 0",
    }
    meanings = [f"{mark} {meaning}" for mark, meaning in marks.items() if drawn & set(mark)]
    if meanings:
        # A mark's part stays where the words of the table are left out.
        meanings[-1] += f" (p < .05{', differences corrected' * (len(meanings) > (APART in drawn))})"
    shown = [run.name for run in shown_runs(result)]
    glosses = (f"{shown_name(m)}: {gloss}" for m in known_measures(result) if (gloss := _gloss(m)) is not None)
    return (
        *meanings,
        f"{TIED} the order of ties decides",
        *(["[ ] 95% interval"] if any(isinstance(column.key, tuple) for column in table.columns) else []),
        *glosses,
        *_source(result),
        *([_of_candidates(result)] if RANDOM in shown else []),
        *(["ideal: these by relevance"] if RELEVANCE_FIRST in shown else []),
    )


_GLOSSES = {
    "nDCG": "quality (1: best)",
    "R": "relevant documents found (1: all)",
    "ARaB": "lean (0: none)",
    "NFaiRR": "neutral wording (1: most)",
}


def _of_candidates(result: AuditFigures) -> str:
    if _same_candidates(result):
        return "candidates: in random order"
    whose = in_short(str(result.settings.get("background")), "the background")
    return f"candidates: {whose}'s, in random order"


def _gloss(measure: Measure) -> str | None:
    if measure.NAME == "AWRF":
        return f"nearness to {target_shares(measure)} (1: same)"
    return _GLOSSES.get(measure.NAME)


def _source(result: AuditFigures) -> tuple[str, ...]:
    if "labels" in result.settings:
        only_known = result.partly_labelled and result.settings.get("unknown") == "skip"
        return ("groups: labels, figures of the labelled documents alone" if only_known else "groups: labels",)
    lexicon = result.settings.get("lexicon")
    return (f"words: {lexicon}",) if lexicon not in (None, "unknown") else ()


# --- verdicts at a glance --------------------------------------------------------------------------------------------


def verdicts(result: AuditFigures, by_run: Mapping[str, RunFindings]) -> Verdicts:
    """Each run as chips: better or worse than the baseline, towards whom it leans, and whose lean it is.

    ``by_run``: see :func:`evenrank.auditing.findings.run_findings`.
    """
    utility, lean = utility_measures(result)[:1], shown_lean(result)
    compared, biased = result.baseline is not None and len(result.given) > 1, any(map(is_bias, result.measures))
    headings = [str(measure) for measure in utility] if compared or result.pairs else []
    headings += ["lean", "whose lean"] if lean is not None else []
    headings += ["shares"] if result.shares and lean is None else []
    headings += [f"against {in_short(str(result.baseline), 'the baseline')}"] if compared and biased else []

    def chips(run: RunAudit) -> Iterator[Chip]:
        own = by_run[run.name]
        if result.pairs:
            yield from (_among(result, run, measure) for measure in utility)
        elif compared and utility:
            yield Chip("baseline") if own.effectiveness is None else _EFFECTIVE.get(own.effectiveness.key, _UNKNOWN)
        if lean is not None and own.lean is not None:
            yield from _leaning(own.lean, run[lean].mean, poles(result, lean))
        elif result.shares:
            yield _shares(result, run)
        if compared and biased:
            yield Chip("baseline") if run.name == result.baseline else _different(own.differences)

    rows = tuple((cut_name(run.name), tuple(chips(run))) for run in result.given)
    return Verdicts(("", *headings), rows)


def _among(result: AuditFigures, run: RunAudit, measure: Measure) -> Chip:
    """Against all other runs."""
    key = str(measure)
    pairs = [
        pair
        for pair in result.pairs
        if pair.measure == key and pair.test.shown and run.name in (pair.first, pair.second)
    ]
    others = [pair.first if pair.second == run.name else pair.second for pair in pairs]
    own = run.measures[key].mean or 0.0
    above = [name for name in others if (result[name].measures[key].mean or 0.0) > own]
    if above:
        return Chip(
            f"worse than {short_names(result)[above[0]]}" if len(above) == 1 else f"worse than {len(above)} runs", "bad"
        )
    return Chip("none shown to be better", "good") if others else Chip("not shown to differ")


_EFFECTIVE = {
    "better": Chip("better", "good"),
    "worse": Chip("worse", "bad"),
    "not_significant": Chip("not significant"),
    "not_significant_corrected": Chip("not significant"),
    "equally_good": Chip("same in every query"),
}
_DIFFERENT = {
    "leans_less_than": Chip("leans less", "good"),
    "leans_more_than": Chip("leans more", "bad"),
    "lean_differs": Chip("differs in lean"),
    "more_neutral": Chip("more neutral"),
    "less_neutral": Chip("less neutral"),
    "nearer_target": Chip("nearer to the target", "good"),
    "farther_from_target": Chip("farther from the target", "bad"),
}
_CANDIDATES, _ORDER = "candidates", "order"
_WHOSE = {
    "leans_as_candidates": Chip(_CANDIDATES),
    "leans_more": Chip(f"{_CANDIDATES} and {_ORDER}"),
    "leans_less": Chip(f"{_CANDIDATES} and {_ORDER}"),
    "leans_by_order": Chip(_ORDER),
    "leans_turned": Chip(_ORDER),
    "leans_whose": Chip("not shown", "unknown"),
}
_UNKNOWN, _NONE = Chip("cannot be told", "unknown"), Chip("–", "unknown")


def _leaning(found: Finding, mean: float | None, pair: Poles | None) -> Iterator[Chip]:
    if found.level == "shown" and pair is not None and mean is not None:
        yield Chip(f"leans {side(pair, mean)}", "bad")
    else:
        yield Chip("no lean shown") if found.level == "no difference shown" else _UNKNOWN
    yield _WHOSE.get(found.key, _NONE)


def _different(differences: Sequence[Finding]) -> Chip:
    """How a run differs from the baseline in bias."""
    shown = [finding for finding in differences if finding.level == "shown"]
    if not shown:
        alike = any(finding.level == "no difference shown" for finding in differences)
        return Chip("not shown to differ") if alike else _UNKNOWN
    chips = [_DIFFERENT.get(finding.key, Chip("differs")) for finding in shown]
    tones = {chip.tone for chip in chips}
    return Chip(", ".join(dict.fromkeys(chip.text for chip in chips)), tones.pop() if len(tones) == 1 else "same")


def _shares(result: AuditFigures, run: RunAudit) -> Chip:
    """The groups' shares against those of the candidates."""
    tests = [share.test for share in result.shares if share.run == run.name]
    if any(test.shown for test in tests):
        return Chip("not those of the candidates", "bad")
    return Chip("not shown to differ" if any(test.p is not None for test in tests) else "cannot be told", "unknown")
