"""Position sensitivity as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenrank.io import Provenance
from evenrank.reports.result import Result

from .buckets import Buckets
from .curves import PositionCurve
from .resampling import Ints

if TYPE_CHECKING:
    from evenrank.reports.page import Page

MEASURE = "nDCG@10"


@dataclass(frozen=True, slots=True)
class RotationCurves:
    """Scores and ranks of the same passages, rotated so that the answer begins at each position.

    ``score`` and ``rank`` (among the query's other candidates, from 1): over all queries; ``kept_score`` and
    ``kept_rank``: over those whose answer is read whole at every position. ``cut`` [P]: queries whose answer extends
    beyond what the ranker reads (None: unknown).
    """

    score: PositionCurve
    rank: PositionCurve
    kept_score: PositionCurve
    kept_rank: PositionCurve
    cut: Ints | None

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "score": self.score.to_dict(),
            "rank": self.rank.to_dict(),
            "kept_score": self.kept_score.to_dict(),
            "kept_rank": self.kept_rank.to_dict(),
            "cut": None if self.cut is None else self.cut.tolist(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class SensitivityResult(Result):
    """The result of :func:`evenrank.position_sensitivity`.

    ``value``: mean effectiveness; ``tokens``, ``relative``: effectiveness by the position of the answer, in words and
    relative to the passage; ``moved``: the same passages with their answers at each position, None for a run without a
    model. ``cut``: answers that the ranker does not read to the end in the original passage (None: unknown).
    ``added``: relevant passages added to the candidates; ``without_candidates``: queries left out for lack of other
    candidates; ``absent``: queries missing from the run, which count as 0; ``sampled_from``: the number of queries that
    the sample was drawn from (None: no sample).
    """

    name: str
    queries: int
    passages: int
    without_answer: int
    value: float
    tokens: Buckets
    relative: Buckets
    moved: RotationCurves | None
    cut: int | None
    settings: Mapping[str, object]
    added: int = 0
    without_candidates: int = 0
    absent: int = 0
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
            "absent": self.absent,
            "added": self.added,
            "mean": self.value,
            "cut": self.cut,
            "tokens": self.tokens.to_dict(),
            "relative": self.relative.to_dict(),
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
