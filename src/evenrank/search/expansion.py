"""Query expansion: with words of the first documents (RM3), and with word vectors.

RM3: Lavrenko and Croft, SIGIR 2001, "Relevance-based language models" (RM1); Abdul-Jaleel et al., TREC 2004 (mixed with
the query's own words).
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank import options as opt
from evenrank.files import EvenrankError, as_queries
from evenrank.files.arguments import checked
from evenrank.files.types import Array
from evenrank.models.vectors import Vectors, read_vectors

from .analysis import NLTK, read_stop_words, stop_list

Ints = NDArray[np.integer[Any]]


@checked
@dataclass(frozen=True, slots=True)
class RM3:
    """``fb_docs`` feedback documents, ``fb_terms`` of their terms, ``original_weight`` of the query's own terms.

    Raises EvenrankError for a number out of range.
    """

    fb_docs: Annotated[
        int, opt.Option("RM3: number of feedback documents.", needs=("rm3",), range=opt.COUNT, rare=True)
    ] = 10
    fb_terms: Annotated[
        int, opt.Option("RM3: number of feedback terms.", needs=("rm3",), range=opt.COUNT, rare=True)
    ] = 10
    original_weight: Annotated[
        float, opt.Option("RM3: weight of the original query (0 to 1).", needs=("rm3",), range=opt.SHARE, rare=True)
    ] = 0.5


@dataclass(frozen=True, slots=True)
class Forward:
    """The terms of each document: ``terms`` and ``tf`` [postings] by document, ``starts`` [documents + 1]."""

    starts: Ints
    terms: Ints
    tf: Ints

    def rows(self, documents: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """For each posting of ``documents`` [n]: the row of the document, the term, and tf / |d|.

        Raises ValueError for arrays that do not fit each other, as those of a damaged file.
        """
        sizes = self.starts[documents + 1] - self.starts[documents]
        if (sizes < 0).any() or (self.starts[documents] < 0).any() or (self.starts[documents + 1] > len(self.tf)).any():
            raise ValueError("the terms of a document are not in the index")
        row = np.repeat(np.arange(len(documents)), sizes)
        place = np.arange(len(row)) + (self.starts[documents] - (np.cumsum(sizes) - sizes))[row]
        tf = self.tf[place].astype(np.float64)
        length = np.bincount(row, weights=tf, minlength=len(documents))
        # Frequencies of 0 are those of a damaged file: the search refuses the scores.
        with np.errstate(divide="ignore", invalid="ignore"):
            return row, self.terms[place], tf / length[row]


def relevance_model(
    queries: pl.DataFrame, feedback: pl.DataFrame, forward: Forward, order: Ints, settings: RM3
) -> pl.DataFrame:
    """The expanded queries: ``query``, ``term``, ``weight``, sorted; the weights of a query sum to 1.

    ``queries``: ``query``, ``term``, ``weight``, each query's weights summing to 1. ``feedback``: ``query``,
    ``document``, ``score``, in rank order; the first ``fb_docs`` of each query are used. ``order`` [terms]: the
    position of each term among the sorted terms, which breaks ties.

    p(w|R) ∝ Σ_d (tf(w,d) / |d|) · score(d) over the feedback documents, cut to the first ``fb_terms`` and renormalised;
    p'(w) = original_weight · p(w|q) + (1 − original_weight) · p(w|R). A query without feedback is unchanged.
    """
    first = feedback.filter(pl.int_range(pl.len()).over("query") < settings.fb_docs)
    row, term, share = forward.rows(first["document"].to_numpy())
    if ((term < 0) | (term >= len(order))).any():
        raise ValueError("a document has a term without a number")
    weight = share * first["score"].to_numpy().astype(np.float64)[row]
    terms = _summed(first["query"].to_numpy()[row], term, weight)
    # Documents with score 0 add no words.
    terms = terms.filter(pl.col("weight") > 0)
    terms = terms.with_columns(pl.Series("order", order[terms["term"].to_numpy()]))
    terms = terms.sort(["query", "weight", "order"], descending=[False, True, False])
    terms = terms.filter(pl.int_range(pl.len()).over("query") < settings.fb_terms)
    terms = terms.with_columns(pl.col("weight") / pl.col("weight").sum().over("query"))
    alone = ~queries["query"].is_in(terms["query"].unique().implode())
    own = pl.when(alone).then(1.0).otherwise(settings.original_weight)
    both = pl.concat(
        [
            queries.select("query", "term", pl.col("weight") * own),
            terms.select("query", "term", pl.col("weight") * (1 - settings.original_weight)),
        ]
    )
    return _summed(both["query"].to_numpy(), both["term"].to_numpy(), both["weight"].to_numpy())


def _summed(query: Ints, term: Ints, weight: NDArray[np.float64]) -> pl.DataFrame:
    """The sum of the weights of each (query, term), added in their order, sorted."""
    packed = (query.astype(np.int64) << 32) | term
    order = np.argsort(packed, kind="stable")
    packed = packed[order]
    starts = np.flatnonzero(np.diff(packed, prepend=-1))
    sums = np.add.reduceat(weight[order], starts) if len(starts) else np.empty(0)
    once = packed[starts]
    return pl.DataFrame(
        {"query": (once >> 32).astype(np.int32), "term": (once & 0xFFFFFFFF).astype(np.int32), "weight": sums}
    )


Similarity = Literal["cosine", "dot"]
Floats = NDArray[np.float32]
_BLOCK = 1 << 12


def nearest_rows(matrix: Floats, points: Floats, count: int, form: Similarity) -> tuple[Array, Array, Array]:
    """Query, row and score of the first ``count`` rows of ``matrix`` [V, D] for each of ``points`` [Q, D], by query.

    The score is the product, divided by the row's length if ``form`` is cosine. Ties: the earlier row.
    """
    best_query = best_row = np.empty(0, np.int64)
    best_score = np.empty(0, np.float32)
    lowest = np.full(len(points), -np.inf, np.float32)
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK]
        scores = points @ block.T
        if form == "cosine":
            scores *= 1 / lengths(block)
        if start == 0 and count < scores.shape[1]:
            lowest = np.partition(scores, -count, axis=1)[:, -count]
        # Only rows that can still be among the first are sorted.
        query, row = np.nonzero(scores >= lowest[:, None])
        best_query = np.concatenate([best_query, query])
        best_row = np.concatenate([best_row, row + start])
        best_score = np.concatenate([best_score, scores[query, row]])
        order = np.lexsort((best_row, -best_score, best_query))
        best_query, best_row, best_score = best_query[order], best_row[order], best_score[order]
        first = np.searchsorted(best_query, np.arange(len(points)))
        place = np.arange(len(best_query)) - first[best_query]
        keep = place < count
        best_query, best_row, best_score, place = best_query[keep], best_row[keep], best_score[keep], place[keep]
        last = place == count - 1
        lowest[best_query[last]] = best_score[last]
    return best_query, best_row, best_score


def lengths(vectors: Floats) -> Floats:
    """The lengths of rows, 1 for zero rows."""
    length: Floats = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    length[length == 0] = 1
    return length


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_QUERIES = 1 << 12


def query_words(text: str, stopwords: Container[str] | None = None) -> list[str]:
    """A query's words in lower case, without stop words (None: NLTK's list). Apostrophes within words are kept."""
    words = (word.lower().replace("’", "'") for word in _WORD.findall(text))
    stopwords = stop_list(NLTK) if stopwords is None else stopwords
    return [word for word in words if word not in stopwords]


@dataclass(frozen=True, slots=True)
class Expansion:
    """Expanded queries.

    ``queries``: ``query_id``, ``text``, as given. ``words``: ``query_id``, ``rank`` (from 1), ``word``, ``score``: the
    expansion words of each query, best first; none for a query whose words have no vectors. ``own``: ``query_id``,
    ``word``, ``known``: the words of each query, and whether they have a vector.
    """

    queries: pl.DataFrame
    words: pl.DataFrame
    own: pl.DataFrame

    @property
    def missing(self) -> pl.DataFrame:
        """``word``, ``queries``: words of queries without a vector, and in how many; the most frequent first."""
        lacking = self.own.filter(~pl.col("known")).unique(["query_id", "word"])
        counted = lacking.group_by("word").agg(pl.len().alias("queries"))
        return counted.sort(["queries", "word"], descending=[True, False])

    @property
    def unexpanded(self) -> pl.Series:
        """The ids of the queries that are not expanded, because none of their words has a vector."""
        expanded = self.words["query_id"].unique()
        return self.queries["query_id"].filter(~self.queries["query_id"].is_in(expanded.implode()))

    def expanded(self) -> pl.DataFrame:
        """``query_id``, ``text``: only the expansion words, best first, with underscores as spaces."""
        text = pl.col("word").str.replace_all("_", " ").str.join(" ").alias("expanded")
        return self._texts(self.words.group_by("query_id", maintain_order=True).agg(text))

    @checked
    def language_model(self, weight: Annotated[float, opt.SHARE]) -> pl.DataFrame:
        """``query_id``, ``text``: weighted words (``word^0.3``) of p'(w) = weight · p_q(w) + (1 − weight) · p_exp(w).

        p_q: the share of each of the query's own words; p_exp: the expansion words' scores, those below 0 as 0, scaled
        to sum to 1 (equal where none is above 0). The parts of a word with an underscore share its weight. Raises
        EvenrankError for a weight outside 0 to 1.
        """
        expanded = self.words.with_columns(pl.col("score").clip(0).alias("p"))
        total = pl.col("p").sum().over("query_id")
        share = pl.when(total > 0).then(pl.col("p") / total).otherwise(1 / pl.len().over("query_id"))
        parts = pl.col("word").str.replace_all("_", " ").str.strip_chars().str.split(" ")
        expanded = expanded.select("query_id", parts, ((1 - weight) * share).alias("p"))
        expanded = expanded.with_columns(pl.col("p") / pl.col("word").list.len()).explode("word")
        own = self.own.filter(pl.col("query_id").is_in(self.words["query_id"].unique().implode()))
        own = own.select("query_id", "word", (weight / pl.len().over("query_id")).alias("p"))
        model = pl.concat([own, expanded]).group_by("query_id", "word", maintain_order=True).agg(pl.col("p").sum())
        weighted = pl.format("{}^{}", pl.col("word"), pl.col("p").round(6)).str.join(" ").alias("expanded")
        model = model.filter((pl.col("p") > 0) & (pl.col("word") != ""))
        return self._texts(model.group_by("query_id", maintain_order=True).agg(weighted))

    def _texts(self, table: pl.DataFrame) -> pl.DataFrame:
        joined = self.queries.join(table, on="query_id", how="left", maintain_order="left")
        return joined.select("query_id", pl.coalesce("expanded", "text").alias("text"))

    def changes(self, other: Expansion) -> pl.DataFrame:
        """``query_id``, ``before``, ``after`` (lists): the queries that ``other`` expands with different words."""
        sets = [expansion.words.group_by("query_id").agg(pl.col("word")) for expansion in (self, other)]
        both = self.queries.select("query_id")
        for name, table in zip(("before", "after"), sets, strict=True):
            both = both.join(table.rename({"word": name}), on="query_id", how="left", maintain_order="left")
        both = both.with_columns(pl.col("before", "after").fill_null(pl.lit([], dtype=pl.List(pl.String))))
        return both.filter(pl.col("before").list.sort() != pl.col("after").list.sort())


@checked
def expand(
    queries: opt.TheQueries,
    *,
    vectors: Annotated[opt.File | Vectors, opt.Option(opt.VECTORS, reads=True)],
    k: Annotated[int, opt.Option("Words per query.", range=opt.COUNT)] = 5,
    form: Annotated[Literal["cosine", "dot"], opt.Option("cosine, or dot (Diaz et al.).")] = "cosine",
    stopwords: Annotated[
        str | Container[str],
        opt.Option(
            f"nltk (English), or as for retrieve: {opt.STOP_WORDS}",
            metavar="NAME|FILE",
            typed=str,
            reads=True,
            panel="Method",
            rare=True,
        ),
    ] = "nltk",
) -> Expansion:
    """Replace each query with its nearest words in a vector space.

    The ``k`` words of the vocabulary nearest to each query (``query_id``, ``text``), without its own words.

    ``form``: "cosine", nearest by cosine to the mean of the unit vectors of the query's words; or "dot", the largest of
    U Uᵀ q, with q the query's word counts. Only the exact lower-case words of the query are left out, so that ``He``
    can expand ``he``. Ties: the earlier word of the vocabulary. ``stopwords``: left out of queries (None: NLTK's
    English list). Raises EvenrankError for a setting out of range, and if no word of any query has a vector.
    """
    queries, vectors = as_queries(queries), vectors if isinstance(vectors, Vectors) else read_vectors(vectors)
    stopwords = read_stop_words(stopwords, nltk=True) if isinstance(stopwords, str) else stopwords
    words = [query_words(text, stopwords) for text in queries["text"]]
    wanted = {word for own in words for word in own}
    row_of = {word: row for row, word in enumerate(vectors.words) if word in wanted}
    own = pl.DataFrame(
        [
            (query, word, word in row_of)
            for query, terms in zip(queries["query_id"], words, strict=True)
            for word in terms
        ],
        {"query_id": pl.String, "word": pl.String, "known": pl.Boolean},
        orient="row",
    )
    rows = [[row_of[word] for word in terms if word in row_of] for terms in words]
    numbers = [number for number, known in enumerate(rows) if known]
    if not numbers:
        raise EvenrankError("no word of any query has a vector")
    points = np.stack([_point(vectors.matrix[rows[number]], form) for number in numbers])
    most = max(len(set(known)) for known in rows)
    wide = min(k + most, len(vectors.words))
    blocks = range(0, len(points), _QUERIES)
    parts = [nearest_rows(vectors.matrix, points[start : start + _QUERIES], wide, form) for start in blocks]
    query = np.concatenate([part[0] + start for start, part in zip(blocks, parts, strict=True)])
    row, score = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    self_pairs = np.array(
        [n * len(vectors.words) + row for n, number in enumerate(numbers) for row in set(rows[number])]
    )
    keep = ~np.isin(query * len(vectors.words) + row, self_pairs)
    nearest = pl.DataFrame(
        {
            "query_id": queries["query_id"].gather(np.array(numbers)[query[keep]]),
            "word": [vectors.words[i] for i in row[keep]],
            "score": score[keep].astype(np.float64),
        },
        schema_overrides={"word": pl.String},
    )
    rank = pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
    nearest = nearest.with_columns(rank).filter(pl.col("rank") <= k).select("query_id", "rank", "word", "score")
    return Expansion(queries.select("query_id", "text"), nearest, own)


def _point(vectors: Floats, form: Similarity) -> Floats:
    if form == "dot":
        total: Floats = vectors.sum(axis=0, dtype=np.float64).astype(np.float32)
        return total
    mean = (vectors / lengths(vectors)[:, None]).mean(axis=0, dtype=np.float64)
    length = np.linalg.norm(mean)
    point: Floats = (mean / length if length else mean).astype(np.float32)
    return point
