"""Answer positions as JSON, as tables and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from evenrank.io import Provenance
from evenrank.io.squad import list_answers
from evenrank.reports.format import NONE, number
from evenrank.reports.page import Drawing, Page, Table, histogram
from evenrank.reports.result import Result

from .answer_positions import AnswerPositions

_SOURCE = "Answer positions as in Hofstätter et al., ECIR 2021 (Fig. 1)"


@dataclass(frozen=True, slots=True, repr=False)
class AnswersResult(Result):
    """The result of :func:`evenrank.position_answers`; ``name`` is that of the file or data set."""

    name: str
    positions: AnswerPositions
    settings: Mapping[str, object]
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {"settings": self.settings, **self.positions.to_dict()}

    def page(self) -> Page:
        """The figures and histograms as a page."""
        found = self.positions
        facts = (
            ("answers located", f"{found.table.height:,}"),
            ("pairs of question and passage", f"{found.pairs:,}"),
            ("questions", f"{found.table['query_id'].n_unique():,}"),
            ("passages with a located answer", f"{found.table['doc_id'].n_unique():,}"),
            ("answers not found", f"{found.unmatched.height:,}"),
        )
        tables = (_figures(found), _tenths(found))
        title = f"Answer positions of {self.name}"
        return Page("position answers", title, _SOURCE, facts, tables, _charts(found), self._notes())

    def _notes(self) -> tuple[str, ...]:
        found = self.positions
        counted = "annotated span" if self.settings["annotated"] else "match of an answer's text in its passage"
        unmatched = found.unmatched.select("query_id", "doc_id", "answer").rows()
        return (
            f"Every {counted} counts, so a question may count several times for a passage.",
            "Words are separated by white space; the relative position is the number of words before the answer divided"
            " by the number of words of the passage.",
            "Uniform: expected for the same passages if answers were equally likely to begin at each word.",
            *(() if found.alignment is None else replace(found.alignment, left_out=[]).notes()),
            f"Answers not found in their passage: {len(unmatched):,}, left out of every figure"
            + (f": {list_answers(unmatched)}." if unmatched else "."),
        )


def _figures(found: AnswerPositions) -> Table:
    uniform = found.uniform()
    rows = (
        ("mean relative position", number(found.mean, 4), number(uniform["mean"], 4)),
        ("share in the first third", number(found.first_third, 4), number(uniform["first_third"], 4)),
        ("Kolmogorov–Smirnov distance to uniform", number(found.ks, 4), number(0.0, 4)),
        ("mean position in words, from 0", number(found.mean_token, 1), NONE),
        ("median position in words, from 0", number(found.median_token, 1), NONE),
        ("mean length of these passages in words, each once", number(found.mean_tokens, 1), NONE),
    )
    return Table("Answer positions", ("figure", "measured", "uniform"), rows)


def _tenths(found: AnswerPositions) -> Table:
    rows = tuple(
        (f"{row['low']:.1f}", f"{row['high']:.1f}", f"{row['count']:,}", f"{row['share']:.3f}")
        for row in found.relative_histogram(10)
    )
    return Table("By tenths of the passage", ("from", "to", "answers", "share"), rows, left=0)


def _charts(found: AnswerPositions) -> tuple[Drawing, ...]:
    relative = found.relative_histogram()
    return (
        histogram(
            "Relative",
            "Relative position of answers (words before the answer / words of the passage)",
            relative,
            "relative position",
            "Orange line: all positions equally likely.",
            expected=1 / len(relative),
        ),
        histogram("Absolute", "The word in which an answer begins", found.absolute_histogram(), "words before it"),
    )
