"""Positions of answers in their passages [POS §2, Fig. 1]: the call, the figures, the page.

[POS] Hofstätter et al., ECIR 2021, "Mitigating the position bias of transformer models in passage re-ranking".
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.files import EvenrankError, InputError, Provenance, irds, read_texts
from evenrank.files.arguments import checked
from evenrank.files.errors import quoted
from evenrank.files.json_values import INLINE
from evenrank.files.squad import AnswerAlignment, list_answers, load_squad, match_answers, read_question_answers
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.results.finding import phrases
from evenrank.results.page import Drawing, Page, Section, histogram
from evenrank.results.result import Result
from evenrank.results.table import COUNT, Column, Table, digits, number

__all__ = ["AnswersResult", "load_answer_positions", "position_answers"]

# Words as str.split() separates them, as a regular expression of polars.
_WORD = r"[^\s\x1c-\x1f]+"
BINS = 20
"""Bins of the relative histogram."""
BUCKET = 10
"""Words in a bin of the absolute histogram."""


@dataclass(frozen=True, slots=True)
class AnswerPositions:
    """Positions of answers in their passages.

    table: one row per match: ``query_id``, ``doc_id``, ``answer``, ``answer_start``, ``answer_end`` (characters),
    ``token`` (the word in which the answer begins, from 0; words are separated by white space), ``tokens`` (words of
    the passage), ``position`` = token / tokens, in [0, 1). A pair with several matches has several rows.
    unmatched: ``query_id``, ``doc_id``, ``answer`` of answers without a match, which no figure includes.
    alignment: how the answers of a SQuAD file were aligned to their passages; None for other answers.

    When it misleads: it describes the passages, not a ranker: early answers in a collection become a bias only if a
    ranker learns from them. Every match counts, so a short answer ("he", "1990") also matches where it answers
    nothing; ``annotated`` counts the annotated span only. Short passages pull relative positions towards 0: compare
    with :meth:`uniform`, not with 1/2.

    Worked example: the answer is the third of four words, so its position is 2/4.

    >>> import polars as pl
    >>> from evenrank.probes.answers import answer_positions
    >>> spans = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "answer": ["tea"],
    ...                       "answer_start": [9], "answer_end": [12]})
    >>> found = answer_positions(spans, pl.DataFrame({"doc_id": ["d"], "text": ["we drank tea there"]}))
    >>> found.mean, found.first_third
    (0.5, 0.0)
    """

    table: pl.DataFrame
    unmatched: pl.DataFrame
    alignment: AnswerAlignment | None = None

    @property
    def pairs(self) -> int:
        """The number of pairs of a query and a passage with a match."""
        return self.table.select("query_id", "doc_id").unique().height

    @property
    def position(self) -> Array:
        """Relative positions [n]."""
        return self.table["position"].to_numpy()

    @property
    def mean(self) -> float:
        """The mean relative position."""
        return _mean(self.position)

    @property
    def mean_token(self) -> float:
        """The mean absolute position, in words from 0."""
        return _mean(self.table["token"].to_numpy())

    @property
    def median_token(self) -> float:
        """The median absolute position, in words from 0."""
        return float(np.median(self.table["token"].to_numpy())) if self.table.height else float("nan")

    @property
    def mean_tokens(self) -> float:
        """The mean length in words of the passages with a located answer, each passage counted once."""
        return _mean(self.table.unique("doc_id", maintain_order=True)["tokens"].to_numpy())

    @property
    def first_third(self) -> float:
        """The share of answers whose relative position is below 1/3."""
        return _mean(self.position < 1 / 3)

    @property
    def ks(self) -> float:
        """The Kolmogorov–Smirnov distance of the relative positions to the uniform distribution on [0, 1]."""
        from scipy import stats

        return float(stats.kstest(self.position, "uniform").statistic) if self.table.height else float("nan")

    def uniform(self) -> dict[str, float]:
        """Expected ``mean`` and ``first_third`` if answers were equally likely to begin at each word."""
        tokens = self.table["tokens"].to_numpy()
        # Words w with w / n < 1/3: ⌈n/3⌉ of n.
        return {
            "mean": _mean((tokens - 1) / (2 * np.maximum(tokens, 1))),
            "first_third": _mean(-(-tokens // 3) / tokens),
        }

    def relative_histogram(self, bins: int = BINS) -> list[dict[str, float]]:
        """``low``, ``high``, ``count``, ``share`` of ``bins`` equal, half-open bins of [0, 1)."""
        # In whole numbers, so that rounding moves no position across an edge.
        token, tokens = self.table["token"].to_numpy(), self.table["tokens"].to_numpy()
        counts = np.bincount(token * bins // np.maximum(tokens, 1), minlength=bins)
        return _shares([i / bins for i in range(bins + 1)], counts)

    def absolute_histogram(self, bucket: int = BUCKET) -> list[dict[str, float]]:
        """``low``, ``high``, ``count``, ``share`` of half-open bins of ``bucket`` words, up to the last answer."""
        counts = np.bincount(self.table["token"].to_numpy() // bucket)
        return _shares([float(i * bucket) for i in range(len(counts) + 1)], counts)

    def to_dict(self) -> dict[str, object]:
        """Figures and histograms as JSON values."""
        figures = ("pairs", "mean", "first_third", "ks", "mean_token", "median_token", "mean_tokens")
        return {
            "matches": self.table.height,
            "queries": self.table["query_id"].n_unique(),
            "passages": self.table["doc_id"].n_unique(),
            "unmatched": self.unmatched.height,
            "answer_places": self.alignment,
            **{name: getattr(self, name) for name in figures},
            "uniform": self.uniform() if self.table.height else {"mean": None, "first_third": None},
            "relative": self.relative_histogram(),
            "absolute": self.absolute_histogram(),
        }


def _mean(values: Array) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _shares(edges: Sequence[float], counts: Array) -> list[dict[str, float]]:
    total = max(int(counts.sum()), 1)
    return [
        {"low": low, "high": high, "count": int(count), "share": int(count) / total}
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]


def answer_positions(
    spans: pl.DataFrame, passages: pl.DataFrame, unmatched: pl.DataFrame | None = None
) -> AnswerPositions:
    """The positions of answer spans, in words.

    ``spans``: columns as in :meth:`evenrank.files.squad.Squad.answers`; duplicates count once. ``passages``:
    ``doc_id``, ``text``. Raises EvenrankError for a span outside its passage or whose passage is missing.
    """
    rows = spans.unique(["query_id", "doc_id", "answer_start", "answer_end"], keep="first", maintain_order=True)
    rows = rows.join(passages, on="doc_id", how="left", maintain_order="left")
    inside = (pl.col("answer_start") >= 0) & (pl.col("answer_end") <= pl.col("text").str.len_chars())
    wrong = rows.filter(~(inside & (pl.col("answer_start") < pl.col("answer_end"))).fill_null(False))
    if wrong.height:
        raise EvenrankError(
            f"{wrong.height} answers are outside their passages: question {quoted(wrong['query_id'][0])}"
        )
    before = pl.col("text").str.head(pl.col("answer_start"))
    # An answer that starts within a word begins in that word.
    token = before.str.count_matches(_WORD).cast(pl.Int64) - before.str.contains(_WORD + r"\z").cast(pl.Int64)
    rows = rows.with_columns(token=token, tokens=pl.col("text").str.count_matches(_WORD).cast(pl.Int64))
    rows = rows.filter(pl.col("token") < pl.col("tokens")).drop("text")
    empty = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "answer": pl.String})
    return AnswerPositions(
        rows.with_columns(position=pl.col("token") / pl.col("tokens")), empty if unmatched is None else unmatched
    )


_SOURCE = "Answer positions as in Hofstätter et al., ECIR 2021 (Fig. 1)"


@dataclass(frozen=True, slots=True, repr=False)
class AnswersResult(Result):
    """Result of :func:`evenrank.position_answers`; ``name``: the file or data set."""

    name: str
    positions: AnswerPositions = field(metadata=INLINE)
    settings: Mapping[str, object]

    def page(self) -> Page:
        """The figures and histograms as a page."""
        positions = self.positions
        facts = (
            ("answers located", f"{positions.table.height:,}"),
            ("pairs of question and passage", f"{positions.pairs:,}"),
            ("questions", f"{positions.table['query_id'].n_unique():,}"),
            ("passages with a located answer", f"{positions.table['doc_id'].n_unique():,}"),
            ("answers not found", f"{positions.unmatched.height:,}"),
        )
        uniform = positions.uniform()
        values = {"mean": positions.mean, "third": positions.first_third}
        values |= {"uniform": uniform["mean"], "uniform_third": uniform["first_third"]}
        finding = phrases("position").finding("answers", self.name, "shown", None, "answer", **values)
        return Page(
            "position answers",
            f"Answer positions of {self.name}",
            (finding,),
            _figures(positions),
            aside=counted(positions.table.height, "answer"),
            sections=(Section("By tenths of the passage", (_tenths(positions),), lambda: _charts(positions)),),
            facts=facts,
            source=_SOURCE,
            notes=self._notes(),
            provenance=self.provenance,
        )

    def _notes(self) -> tuple[str, ...]:
        positions = self.positions
        counts = "annotated span" if self.settings["annotated"] else "match of an answer's text in its passage"
        unmatched = positions.unmatched.select("query_id", "doc_id", "answer").rows()
        return (
            f"Every {counts} counts, so a question may count several times for a passage.",
            "Words are separated by white space; the relative position is the number of words before the answer divided"
            " by the number of words of the passage.",
            "Uniform: expected for the same passages if answers were equally likely to begin at each word.",
            *(() if positions.alignment is None else replace(positions.alignment, left_out=[]).notes()),
            f"Answers not found in their passage: {len(unmatched):,}, left out of every figure"
            + (f": {list_answers(unmatched)}." if unmatched else "."),
        )


def _figures(found: AnswerPositions) -> Table:
    uniform = found.uniform()
    rows = (
        ("mean relative position", found.mean, uniform["mean"]),
        ("share in the first third", found.first_third, uniform["first_third"]),
        ("Kolmogorov–Smirnov distance to uniform", found.ks, 0.0),
        ("mean position in words, from 0", number(found.mean_token, 1), None),
        ("median position in words, from 0", number(found.median_token, 1), None),
        ("mean length of these passages in words, each once", number(found.mean_tokens, 1), None),
    )
    return Table(
        "Answer positions", (Column("figure"), Column("measured", digits(4)), Column("uniform", digits(4))), rows
    )


def _tenths(found: AnswerPositions) -> Table:
    columns = (Column("from", digits(1)), Column("to", digits(1)), Column("answers", COUNT), Column("share", digits(3)))
    rows = [(row["low"], row["high"], int(row["count"]), row["share"]) for row in found.relative_histogram(10)]
    return Table("By tenths of the passage", columns, rows)


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


@checked
def position_answers(
    squad: Annotated[
        opt.File,
        opt.Option("Answers in SQuAD's format, or irds:NAME (irds:msmarco-qna/dev).", metavar="SQUAD.json", reads=True),
    ],
    *,
    collection: Annotated[
        opt.File | Sequence[opt.File],
        opt.Option("Take the passages from here: TSV, CSV, JSONL, Parquet or irds:NAME.", typed=list, reads=True),
    ] = (),
    annotated: Annotated[
        bool, opt.Option("Count only the annotated position, not every match of the answer.", panel="Statistics")
    ] = False,
) -> AnswersResult:
    """Measure where answers appear in their passages. The table has mean, first third and distance to uniform.

    [Hofstätter et al., ECIR 2021, §2]. The arguments and the errors are those of :func:`load_answer_positions`.
    """
    collection = [collection] if isinstance(collection, str | os.PathLike) else collection
    provenance = Provenance("evenrank.position_answers").add("answers", squad)
    for source in collection:
        provenance.add("collection", source)
    provenance.ahead()
    positions, name = load_answer_positions(squad, collection, annotated=annotated), os.fspath(squad)
    settings = {"answers": name, "collections": [os.fspath(source) for source in collection], "annotated": annotated}
    return AnswersResult(
        name if irds.is_identifier(name) else Path(name).name, positions, settings, provenance=provenance
    )


def load_answer_positions(
    source: str | os.PathLike[str], collections: Sequence[str | os.PathLike[str]] = (), *, annotated: bool = False
) -> AnswerPositions:
    """Answer positions of a SQuAD file, or of an ir_datasets data set with answers (``irds:msmarco-qna/dev``).

    Every match of an answer's text in its passage counts, and the annotated span too (aligned by
    :func:`evenrank.files.squad.load_squad`). ``annotated``: count the annotated spans only. ``collections``: take the
    passages' texts from here, by document id, instead of the file; answers are then matched there and annotated spans
    do not apply. Raises EvenrankError for ``annotated`` without annotated spans; InputError if no answer is found.
    """
    if annotated and collections:
        raise EvenrankError("annotated spans refer to the file's own texts, not to those of a collection")
    if irds.is_identifier(source):
        if annotated:
            raise EvenrankError(f"{source}: the answers of a data set have no annotated spans")
        wanted, passages = read_question_answers(os.fspath(source))
        spans = alignment = None
    else:
        squad = load_squad(source)
        spans, passages, alignment = squad.answers(), squad.passages(), squad.alignment
        columns = dict.fromkeys(("query_id", "doc_id", "answer"), pl.String)
        left_out = pl.DataFrame(alignment.left_out, columns, orient="row")
        wanted = pl.concat([spans.select(left_out.columns), left_out])
    if collections:
        passages, spans, alignment = _texts(collections, wanted["doc_id"]), None, None
    if annotated and spans is not None:
        positions = answer_positions(spans, passages, left_out)
    else:
        matches, unmatched = match_answers(wanted, passages)
        if spans is not None:
            # Annotated answers are never unmatched, even if their span splits a word.
            unmatched = unmatched.join(spans, on=unmatched.columns, how="anti", maintain_order="left")
            matches = pl.concat([spans, matches])
        positions = answer_positions(matches, passages, unmatched)
    if not positions.table.height:
        raise InputError(source, f"no answer was found in its passage ({wanted.height} searched)")
    return replace(positions, alignment=alignment)


def _texts(collections: Sequence[str | os.PathLike[str]], ids: pl.Series) -> pl.DataFrame:
    """The passages ``ids`` of one or more collections. Raises InputError for an id that two of them contain."""
    parts = []
    for collection in collections:
        parts.append(read_texts(collection, ids))
        repeated = pl.concat(parts).filter(pl.col("doc_id").is_duplicated())["doc_id"]
        if len(repeated):
            raise InputError(collection, f"the document {quoted(repeated[0])} is in another collection too")
    return pl.concat(parts)
