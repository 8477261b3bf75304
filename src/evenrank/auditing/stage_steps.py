"""What each stage of a pipeline adds to the bias of its candidates: the figures, as JSON, text and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ir_measures import Measure
from rich.cells import cell_len, set_cell_size

from evenrank.io.errors import plain
from evenrank.io.wording import are, counted
from evenrank.measures.statistics import SIGNIFICANT
from evenrank.reports.format import NONE, Interval, equation, interval, number, p_value

_DIGITS = 4
_WORDS = 3
_LONGEST_NAME = 30
TITLE = (
    "Stages: what the collection and the first one's candidates hold in random order, and what each stage adds (on the"
    " queries that all stages have; p: paired test, uncorrected; tie mean: added on average over the orders of tied"
    " documents)"
)


@dataclass(frozen=True, slots=True)
class Step:
    """What a stage adds.

    Attributes:
        added: The stage's figure minus that of what it was given: of the candidates in random order for the first
            stage, of the stage before for any other. ``ci95`` and ``p`` (two-sided, paired, uncorrected) belong to it.
        figure: The figure of the stage's run, on the queries that all stages have.
        tie_added, tie_p: The same between expectations over the orders of tied documents; None where there are none.
    """

    stage: str
    added: float
    ci95: Interval | None
    p: float | None
    figure: float
    tie_added: float | None = None
    tie_p: float | None = None

    @property
    def tie_sensitive(self) -> bool:
        """Whether ties decide what is added: their mean lies outside the interval, or has another significance."""
        return ties_decide(self.ci95, self.p, self.tie_added, self.tie_p)

    def shown(self, tied: bool) -> bool:
        """Whether the stage is shown to add anything; ``tied``: averaged over the orders of tied documents."""
        return shows(self.ci95, self.p, self.tie_p, tied=tied)

    def to_dict(self) -> dict[str, object]:
        """The step as JSON values."""
        names = ("stage", "added", "ci95", "p", "figure", "tie_added", "tie_p")
        return {name: getattr(self, name) for name in names}


def ties_decide(ci95: Interval | None, p: float | None, tie_mean: float | None, tie_p: float | None) -> bool:
    """Whether a difference averaged over ties lies outside its own interval, or has another significance."""
    if tie_mean is None:
        return False
    outside = ci95 is not None and not ci95[0] <= tie_mean <= ci95[1]
    return outside or (p is not None and tie_p is not None and (p < SIGNIFICANT) != (tie_p < SIGNIFICANT))


def same_verdict(difference: float, of_ties: float, *, shown: bool, tied_shown: bool) -> bool:
    """Whether a difference averaged over ties says the same: shown or not as before and, where shown, on its side."""
    return shown == tied_shown and (not shown or difference * of_ties > 0)


def shows(ci95: Interval | None, p: float | None, tie_p: float | None, *, tied: bool) -> bool:
    """Whether a difference is shown; ``tied``: averaged over the orders of tied documents."""
    if tied:
        return tie_p is not None and tie_p < SIGNIFICANT
    if p is not None:
        return p < SIGNIFICANT
    return ci95 is not None and not ci95[0] <= 0 <= ci95[1]


@dataclass(frozen=True, slots=True)
class Decomposition:
    """One measure of the last stage, as the sum of what the candidates hold and what each step adds.

    ``n``: the number of queries with a value in every stage; ``candidates``: the expectation over random orders of the
    first stage's documents, with its interval. ``collection``: the expectation over random orders of the whole
    collection, with lists as long as the first stage's, where its documents are known; ``retrieval``: the candidates
    minus that, a step whose figure is ``candidates``.
    """

    measure: Measure
    n: int
    candidates: float
    ci95: Interval | None
    steps: tuple[Step, ...]
    collection: float | None = None
    retrieval: Step | None = None

    @property
    def total(self) -> float:
        """The figure of the last stage."""
        return self.steps[-1].figure

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        step = self.retrieval
        candidates = {
            **{"figure": self.candidates, "ci95": self.ci95},
            "added": None if step is None else {"mean": step.added, "ci95": step.ci95, "p": step.p},
        }
        return {
            "n": self.n,
            "collection": None if self.collection is None else {"figure": self.collection},
            "candidates": candidates,
            "steps": [step.to_dict() for step in self.steps],
            "total": self.total,
        }

    def sentence(self) -> str:
        """The sum in words, which stages are shown to change it, and what ties have to do with it if they decide."""
        parts = [_with_interval(step) for step in self.steps]
        tied = any(step.tie_sensitive for step in self.steps)
        shown = [step.stage for step in self.steps if step.shown(tied)]
        first = f"the candidates of {self.steps[0].stage}"
        held = f"in random order {first} have {number(self.candidates)}"
        if self.collection is not None and self.retrieval is not None:
            held = (
                f"in random order the collection has {number(self.collection)} and {first} {number(self.candidates)}"
                f" (retrieval adds {_with_interval(self.retrieval)})"
            )
            # Neither of the two has an order.
            shown = ["retrieval"] * self.retrieval.shown(tied=False) + shown
        verdict = (
            f"{' and '.join(shown)} {are(len(shown))} shown to change it" if shown else "no stage is shown to change it"
        )
        text = f"{self.measure} of {self.steps[-1].stage} is {number(self.total)}: {held}, {self._listed(parts)}"
        if not tied:
            return f"{text}; {verdict}."
        averaged = self._listed([_on_average(step) for step in self.steps])
        return f"{text}. Averaged over the orders of tied documents, {averaged}, and {verdict}."

    def _listed(self, parts: Sequence[str]) -> str:
        """What each stage adds, one after the other."""
        named = [
            f"{s.stage}{' adds' * (not n)} {part}" for n, (s, part) in enumerate(zip(self.steps, parts, strict=True))
        ]
        return f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]


def _with_interval(step: Step) -> str:
    return signed(step.added, _WORDS) + ("" if step.ci95 is None else f" {signed_interval(step.ci95, _WORDS)}")


def _on_average(step: Step) -> str:
    """What a stage adds averaged over the orders of tied documents."""
    if step.tie_added is None:
        return "an unknown amount"
    return signed(step.tie_added, _WORDS) + ("" if step.tie_p is None else f" ({equation('p', step.tie_p)})")


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a pipeline by name, in order, and each bias measure taken apart, by its text.

    ``documents``: how many documents of the collection are behind its figures; None if they are not known.
    """

    names: tuple[str, ...]
    measures: dict[str, Decomposition]
    documents: int | None = None

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        measures = {key: of.to_dict() for key, of in self.measures.items()}
        return {"names": list(self.names), "documents": self.documents, "measures": measures}

    def sentences(self, *measures: Measure | None) -> list[str]:
        """The sums of these measures, or of the first, in words."""
        wanted = [str(measure) for measure in measures if str(measure) in self.measures]
        return [self.measures[key].sentence() for key in wanted or list(self.measures)[:1]]

    def text(self) -> str:
        """A table for the terminal, to go below :data:`TITLE`: each measure's sum, a line for each step."""
        rows: list[tuple[str, ...]] = [("", "adds", "95% interval", "p", "sum", "tie mean")]
        for key, of in self.measures.items():
            rows.append((f"{key} (n = {counted(of.n, 'query')})", "", "", "", "", ""))
            if of.collection is not None and of.retrieval is not None:
                rows += [
                    _level("(collection)", of.collection, None),
                    _line("(candidates)", replace(of.retrieval, tie_added=None)),
                ]
            else:
                rows.append(_level("(candidates)", of.candidates, of.ci95))
            rows += [_line(plain(step.stage), step) for step in of.steps]
        return aligned(rows)


def fitted(name: str) -> str:
    """A name, cut to what a table has room for."""
    return name if cell_len(name) <= _LONGEST_NAME else set_cell_size(name, _LONGEST_NAME - 1) + "…"


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows of a name and right-aligned cells as lines of text; a row of a name alone is a heading."""
    filled = [row for row in rows if any(row[1:])]
    widths = [max(cell_len(row[column]) for row in filled) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [" " * (width - cell_len(cell)) + cell for cell, width in zip(row[1:], widths[1:], strict=True)]
        name = row[0] if row not in filled else f"  {row[0]}{' ' * (widths[0] - cell_len(row[0]))}"
        lines.append("  ".join([name, *cells]).rstrip())
    return "\n".join(lines)


def _level(name: str, value: float, ends: Interval | None) -> tuple[str, ...]:
    """A figure of its own, which is no difference."""
    return name, number(value, _DIGITS), interval(ends, _DIGITS), "", number(value, _DIGITS), ""


def _line(name: str, step: Step) -> tuple[str, ...]:
    p, ties = "" if step.p is None else p_value(step.p), "" if step.tie_added is None else signed(step.tie_added)
    return fitted(name), signed(step.added), signed_interval(step.ci95), p, number(step.figure, _DIGITS), ties


def signed(value: float | None, digits: int = _DIGITS) -> str:
    """A difference with its sign: ``+0.0612``."""
    text = number(value, digits)
    return f"+{text}" if value is not None and value >= 1e-9 else text


def signed_interval(ends: Interval | None, digits: int = _DIGITS) -> str:
    """The interval of a difference, its ends with their signs."""
    return NONE if ends is None else f"[{signed(ends[0], digits)}, {signed(ends[1], digits)}]"
