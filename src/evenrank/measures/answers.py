"""Where answers stand in their passages [POS §2, Fig. 1].

[POS] Hofstätter et al., ECIR 2021, "Mitigating the position bias of transformer models in passage re-ranking".
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from evenrank.io import EvenrankError, InputError, irds, read_texts
from evenrank.io.answers import match_answers, read_question_answers
from evenrank.io.errors import shown
from evenrank.io.squad import Placed, load_squad

Array = np.ndarray[Any, Any]
# What str.split() calls white space, as a class of the table engine's regular expressions.
_WORD = r"[^\s\x1c-\x1f]+"
BINS = 20
BUCKET = 10
"""Words in a bucket of the absolute histogram."""


@dataclass(frozen=True, slots=True)
class AnswerPositions:
    """The places of answers in their passages.

    table: a row for each match: ``query_id``, ``doc_id``, ``answer``, ``answer_start``, ``answer_end`` (characters),
    ``token`` (the word that the answer begins in, from 0; words are separated by white space), ``tokens`` (the
    passage's words), ``position`` = token / tokens, in [0, 1). Several matches of a pair are several rows.
    unmatched: ``query_id``, ``doc_id``, ``answer`` without a match, which no figure contains.
    placed: what was done to the answers of a SQuAD file that do not stand where it says; None for other answers.

    When it misleads: it describes the passages, not a ranker: early answers in a collection become a bias only where a
    ranker learns from them. Every match counts, so a short answer ("he", "1990") is found at places that answer
    nothing; ``annotated`` takes the annotated place alone. Short passages pull relative starts towards 0: compare
    with :meth:`uniform`, not with 1/2.

    Worked example: the answer is the third of four words, so its place is 2/4.

    >>> import polars as pl
    >>> from evenrank.measures.answers import answer_positions
    >>> spans = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "answer": ["tea"],
    ...                       "answer_start": [9], "answer_end": [12]})
    >>> found = answer_positions(spans, pl.DataFrame({"doc_id": ["d"], "text": ["we drank tea there"]}))
    >>> found.mean, found.first_third
    (0.5, 0.0)
    """

    table: pl.DataFrame
    unmatched: pl.DataFrame
    placed: Placed | None = None

    @property
    def pairs(self) -> int:
        """How many pairs of a query and a passage have a match."""
        return self.table.select("query_id", "doc_id").unique().height

    @property
    def position(self) -> Array:
        """Relative starts [n]."""
        return self.table["position"].to_numpy()

    @property
    def mean(self) -> float:
        """The mean relative start."""
        return _mean(self.position)

    @property
    def mean_token(self) -> float:
        """The mean absolute start, in words from 0."""
        return _mean(self.table["token"].to_numpy())

    @property
    def mean_tokens(self) -> float:
        """The mean length in words of the passages that have an answer in place, each passage once."""
        return _mean(self.table.unique("doc_id", maintain_order=True)["tokens"].to_numpy())

    @property
    def first_third(self) -> float:
        """The share of answers whose relative start lies below 1/3."""
        return _mean(self.position < 1 / 3)

    @property
    def ks(self) -> float:
        """The Kolmogorov–Smirnov distance of the relative starts to the uniform distribution on [0, 1]."""
        from scipy import stats

        return float(stats.kstest(self.position, "uniform").statistic) if self.table.height else float("nan")

    def uniform(self) -> dict[str, float]:
        """``mean`` and ``first_third`` as they would be were every word of these passages as likely a start."""
        tokens = self.table["tokens"].to_numpy()
        # Words w with w / n < 1/3: ⌈n/3⌉ of n.
        return {
            "mean": _mean((tokens - 1) / (2 * np.maximum(tokens, 1))),
            "first_third": _mean(-(-tokens // 3) / tokens),
        }

    def relative_histogram(self, bins: int = BINS) -> list[dict[str, float]]:
        """``low``, ``high``, ``count``, ``share`` of each of ``bins`` equal parts of [0, 1), half-open."""
        # By whole numbers, so that a start on an edge is not moved by rounding.
        token, tokens = self.table["token"].to_numpy(), self.table["tokens"].to_numpy()
        counts = np.bincount(token * bins // np.maximum(tokens, 1), minlength=bins)
        return _shares([i / bins for i in range(bins + 1)], counts)

    def absolute_histogram(self, bucket: int = BUCKET) -> list[dict[str, float]]:
        """``low``, ``high``, ``count``, ``share`` of each ``bucket`` of words, half-open, to the last that has some."""
        counts = np.bincount(self.table["token"].to_numpy() // bucket)
        return _shares([float(i * bucket) for i in range(len(counts) + 1)], counts)

    def to_dict(self) -> dict[str, Any]:
        """Figures and histograms as JSON values."""
        uniform = self.uniform() if self.table.height else {"mean": None, "first_third": None}
        figures = {"mean": self.mean, "first_third": self.first_third, "ks": self.ks, "mean_token": self.mean_token}
        return {
            "matches": self.table.height,
            "pairs": self.pairs,
            "queries": self.table["query_id"].n_unique(),
            "passages": self.table["doc_id"].n_unique(),
            "unmatched": self.unmatched.height,
            "answer_places": None if self.placed is None else self.placed.to_dict(),
            **{name: _known(value) for name, value in figures.items()},
            "median_token": _known(float(np.median(self.table["token"].to_numpy())) if self.table.height else np.nan),
            "mean_tokens": _known(self.mean_tokens),
            "uniform": uniform,
            "relative": self.relative_histogram(),
            "absolute": self.absolute_histogram(),
        }


def _mean(values: Array) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _shares(edges: Sequence[float], counts: Array) -> list[dict[str, float]]:
    total = max(int(counts.sum()), 1)
    return [
        {"low": low, "high": high, "count": int(count), "share": int(count) / total}
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]


def answer_positions(
    spans: pl.DataFrame, passages: pl.DataFrame, unmatched: pl.DataFrame | None = None
) -> AnswerPositions:
    """The places of answer spans in words.

    ``spans``: as :func:`evenrank.io.squad.read_answers` gives them, each different one counted once; ``passages``:
    ``doc_id``, ``text``. Raises EvenrankError for a span whose passage is not there or that lies outside its text.
    """
    rows = spans.unique(["query_id", "doc_id", "answer_start", "answer_end"], keep="first", maintain_order=True)
    rows = rows.join(passages, on="doc_id", how="left", maintain_order="left")
    inside = (pl.col("answer_start") >= 0) & (pl.col("answer_end") <= pl.col("text").str.len_chars())
    wrong = rows.filter(~(inside & (pl.col("answer_start") < pl.col("answer_end"))).fill_null(False))
    if wrong.height:
        raise EvenrankError(f"{wrong.height} answers lie in no passage: question {shown(wrong['query_id'][0])}")
    before = pl.col("text").str.head(pl.col("answer_start"))
    # Within a word, that word is the one that the answer begins in.
    token = before.str.count_matches(_WORD).cast(pl.Int64) - before.str.contains(_WORD + r"\z").cast(pl.Int64)
    rows = rows.with_columns(token=token, tokens=pl.col("text").str.count_matches(_WORD).cast(pl.Int64))
    rows = rows.filter(pl.col("token") < pl.col("tokens")).drop("text")
    empty = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "answer": pl.String})
    return AnswerPositions(
        rows.with_columns(position=pl.col("token") / pl.col("tokens")), empty if unmatched is None else unmatched
    )


def positions_of(
    source: str | os.PathLike[str], collections: Sequence[str | os.PathLike[str]] = (), *, annotated: bool = False
) -> AnswerPositions:
    """Answer positions of a SQuAD file, or of an ir_datasets data set with answers (``irds:msmarco-qna/dev``).

    Every match of an answer's text in its passage counts [POS], and the annotated place, whatever it is (put right
    where the text is not there, see :func:`evenrank.io.squad.load_squad`); ``annotated``: that alone. ``collections``:
    where the passages' texts come from instead of the file itself (by document id): the answers are matched there, and
    the annotated places say nothing. Raises EvenrankError where no answer stands in its passage.
    """
    if annotated and collections:
        raise EvenrankError("annotated places are places in the file's own texts, not in a collection's")
    if irds.is_identifier(source):
        if annotated:
            raise EvenrankError(f"{source}: the answers of a data set have no annotated places")
        wanted, passages = read_question_answers(os.fspath(source))
        spans = placed = None
    else:
        found = load_squad(source)
        spans, passages, placed = found.answers(), found.passages(), found.placed
        lost = pl.DataFrame(placed.left_out, dict.fromkeys(("query_id", "doc_id", "answer"), pl.String), orient="row")
        wanted = pl.concat([spans.select(lost.columns), lost])
    if collections:
        passages, spans, placed = _texts(collections, wanted["doc_id"]), None, None
    if annotated and spans is not None:
        positions = answer_positions(spans, passages, lost)
    else:
        matches, unmatched = match_answers(wanted, passages)
        if spans is not None:
            # Nothing annotated is unmatched, though its place may cut a word.
            unmatched = unmatched.join(spans, on=unmatched.columns, how="anti", maintain_order="left")
            matches = pl.concat([spans, matches])
        positions = answer_positions(matches, passages, unmatched)
    if not positions.table.height:
        raise InputError(source, f"no answer stands in its passage ({wanted.height} were looked for)")
    return replace(positions, placed=placed)


def _texts(collections: Sequence[str | os.PathLike[str]], ids: pl.Series) -> pl.DataFrame:
    """The passages ``ids`` of one or more collections. Raises InputError for an id that two of them hold."""
    parts = []
    for collection in collections:
        parts.append(read_texts(collection, ids))
        repeated = pl.concat(parts).filter(pl.col("doc_id").is_duplicated())["doc_id"]
        if len(repeated):
            raise InputError(collection, f"the document {shown(repeated[0])} stands in another collection too")
    return pl.concat(parts)
