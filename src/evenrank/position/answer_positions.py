"""Positions of answers in their passages [POS §2, Fig. 1].

[POS] Hofstätter et al., ECIR 2021, "Mitigating the position bias of transformer models in passage re-ranking".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted
from evenrank.io.squad import AnswerAlignment
from evenrank.io.types import Array

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
    >>> from evenrank.position.answer_positions import answer_positions
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
        figures = {
            "mean": self.mean,
            "first_third": self.first_third,
            "ks": self.ks,
            "mean_token": self.mean_token,
            "median_token": self.median_token,
            "mean_tokens": self.mean_tokens,
        }
        return {
            "matches": self.table.height,
            "pairs": self.pairs,
            "queries": self.table["query_id"].n_unique(),
            "passages": self.table["doc_id"].n_unique(),
            "unmatched": self.unmatched.height,
            "answer_places": None if self.alignment is None else self.alignment.to_dict(),
            **{name: None if np.isnan(value) else value for name, value in figures.items()},
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

    ``spans``: columns as in :func:`evenrank.io.squad.read_answers`; duplicates count once. ``passages``: ``doc_id``,
    ``text``. Raises EvenrankError for a span outside its passage or whose passage is missing.
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
