"""Position sensitivity as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenrank.io import Provenance
from evenrank.probes.effects import Effect
from evenrank.reports.result import Result

from .curves import PositionCurve
from .resampling import Ints

if TYPE_CHECKING:
    from evenrank.reports.page import Page

MEASURE = "nDCG@10"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A curve of the answer's sentence, that of the control, and answer − control, paired within queries."""

    answer: PositionCurve
    control: PositionCurve
    difference: PositionCurve

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "answer": self.answer.to_dict(),
            "control": self.control.to_dict(),
            "difference": self.difference.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class MovedAnswers:
    """The same passages with the answer's sentence moved, beside the moves of another sentence (the control).

    ``score``: change from the passage as it is, in standard deviations of the query's candidates; ``rank`` among the
    query's other candidates, from 1; ``value``: nDCG@10 with the moved text in the passage's stead, with the Position
    Sensitivity Index (of the difference: at the control's mean level). ``kept``: the score where the answer is read
    whole at every place. ``early``, ``late``: what moving the sentence first and last does to the score beyond the
    control's move, where both move. ``cut`` [P]: queries whose answer extends beyond what the ranker reads (None:
    unknown). ``queries`` that were moved, of so many ``passages``; ``left`` out, for fewer than two other sentences;
    ``unvaried``: queries whose candidates all have one score, without a value of ``score``.
    """

    score: Comparison
    rank: Comparison
    value: Comparison
    kept: Comparison
    early: Effect
    late: Effect
    cut: Ints | None
    queries: int
    passages: int
    left: int
    unvaried: int

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "queries": self.queries,
            "passages": self.passages,
            "unvaried": self.unvaried,
            "score": self.score.to_dict(),
            "rank": self.rank.to_dict(),
            MEASURE: self.value.to_dict(),
            "kept_score": self.kept.to_dict(),
            "early": self.early.to_dict(),
            "late": self.late.to_dict(),
            "cut": None if self.cut is None else self.cut.tolist(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class SensitivityResult(Result):
    """The result of :func:`evenrank.position_sensitivity`.

    ``value``: mean effectiveness; ``moved``: the same passages with their answers moved, None where no answer can be
    moved. ``cut``: answers that the ranker does not read to the end in the original passage (None: unknown).
    ``added``: relevant passages added to the candidates; ``without_candidates``: queries left out for lack of other
    candidates; ``unmovable``: queries whose passage has fewer than two sentences besides the answer's;
    ``sampled_from``: the number of queries that the sample was drawn from (None: no sample).
    """

    name: str
    queries: int
    passages: int
    without_answer: int
    value: float
    moved: MovedAnswers | None
    cut: int | None
    settings: Mapping[str, object]
    added: int = 0
    without_candidates: int = 0
    unmovable: int = 0
    sampled_from: int | None = None
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {
            "settings": self.settings,
            "name": self.name,
            "measure": MEASURE,
            "summary": list(self.summary()),
            "queries": self.queries,
            "sampled_from": self.sampled_from,
            "passages": self.passages,
            "unit": "passage",
            "without_answer": self.without_answer,
            "without_candidates": self.without_candidates,
            "unmovable": self.unmovable,
            "added": self.added,
            "mean": self.value,
            "cut": self.cut,
            "moved": None if self.moved is None else self.moved.to_dict(),
            "notes": list(self.notes),
        }

    def summary(self) -> tuple[str, ...]:
        """The findings, in sentences."""
        from .sensitivity_summary import summary

        return summary(self)

    def page(self) -> Page:
        """The figures as a page."""
        from .sensitivity_page import sensitivity_page

        return sensitivity_page(self)
