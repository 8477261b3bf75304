"""Answer positions as a table and a page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evenrank.io import EvenrankError, Provenance
from evenrank.io.squad import named_answers
from evenrank.measures.answers import AnswerPositions, positions_of

from .report._format import NONE, number
from .report.plain import PlainPage, PlainResult, PlainTable, histogram

_SOURCE = "Answer positions as in Hofstätter et al., ECIR 2021 (Fig. 1)"


@dataclass(frozen=True, slots=True, repr=False)
class AnswersResult(PlainResult):
    """Where answers stand, as :func:`position_answers` found it; ``name`` says whose they are."""

    name: str
    positions: AnswerPositions
    settings: dict[str, Any]
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {"settings": self.settings, **self.positions.to_dict()}

    def page(self) -> PlainPage:
        """The figures and histograms as a page."""
        values = self.positions.to_dict()
        uniform = values["uniform"]
        relative, absolute = values["relative"], values["absolute"]
        rows = (
            ("mean relative position", number(values["mean"], 4), number(uniform["mean"], 4)),
            ("share in the first third", number(values["first_third"], 4), number(uniform["first_third"], 4)),
            ("Kolmogorov–Smirnov distance to uniform", number(values["ks"], 4), number(0.0, 4)),
            ("mean position in words, from 0", number(values["mean_token"], 1), NONE),
            ("median position in words, from 0", number(values["median_token"], 1), NONE),
            ("mean length of these passages in words, each once", number(values["mean_tokens"], 1), NONE),
        )
        figures = PlainTable("Where the answers stand", ("figure", "measured", "uniform"), rows)
        tenths = self.positions.relative_histogram(10)
        shares = PlainTable(
            "By tenths of the passage",
            ("from", "to", "answers", "share"),
            tuple(
                (f"{row['low']:.1f}", f"{row['high']:.1f}", f"{row['count']:,}", f"{row['share']:.3f}")
                for row in tenths
            ),
            left=0,
        )
        drawings = (
            histogram(
                "Relative",
                "Where in its passage an answer begins (word / words of the passage)",
                relative,
                "relative position",
                "Orange line: every place as likely.",
                expected=1 / len(relative),
            ),
            histogram("Absolute", "The word that an answer begins in", absolute, "words before it"),
        )
        what = "annotated place" if self.settings["annotated"] else "place where an answer's text stands in its passage"
        lost = self.positions.unmatched.select("query_id", "doc_id", "answer").rows()
        notes = (
            f"Every {what} counts, so a question with a passage may count several times.",
            "Words are separated by white space; the relative position is the number of words before the answer divided"
            " by those of the passage.",
            "Uniform: what the same passages would give if an answer could begin at each of their words alike.",
            *(() if self.positions.placed is None else replace(self.positions.placed, left_out=[]).notes()),
            f"Answers that stand nowhere in their passage: {values['unmatched']:,}, left out of every figure"
            + (f": {named_answers(lost)}." if lost else "."),
        )
        facts = (
            ("answers in place", f"{values['matches']:,}"),
            ("pairs of question and passage", f"{values['pairs']:,}"),
            ("questions", f"{values['queries']:,}"),
            ("passages with an answer in place", f"{values['passages']:,}"),
            ("answers not found", f"{values['unmatched']:,}"),
        )
        return PlainPage(
            "position answers", f"Answer positions of {self.name}", _SOURCE, facts, (figures, shares), drawings, notes
        )


def position_answers(
    source: str | os.PathLike[str], collections: Sequence[str | os.PathLike[str]] = (), *, annotated: bool = False
) -> AnswersResult:
    """Where in their passages answers stand; see :func:`evenrank.measures.answers.positions_of`."""
    if not isinstance(source, str | os.PathLike):
        raise EvenrankError(f"`source`: expected a SQuAD file or irds:NAME, found a {type(source).__name__}")
    made = Provenance("evenrank.position_answers").add("answers", source)
    for collection in collections:
        made.add("collection", collection)
    made.ahead()
    found, name = positions_of(source, collections, annotated=annotated), os.fspath(source)
    settings = {"answers": name, "collections": [os.fspath(one) for one in collections], "annotated": annotated}
    return AnswersResult(name if name.startswith("irds:") else Path(name).name, found, settings, made)
