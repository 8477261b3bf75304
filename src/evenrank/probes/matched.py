"""Pairs whose passage and variant are alike in length and in overlap with the query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.groups.tokens import APOSTROPHES, CLITICS

from .content_words import content_words
from .effects import Floats, Ints

TOLERANCE = 0.1
_WORD = rf"[\p{{L}}\p{{M}}\p{{N}}]+(?:[{APOSTROPHES}][\p{{L}}\p{{M}}\p{{N}}]+)*"
_CLITIC = f"'(?:{'|'.join(CLITICS)})$"


def lengths(texts: Sequence[str]) -> Ints:
    """The words [T] of texts.

    >>> lengths(["She, the woman's friend", ""]).tolist()
    [4, 0]
    """
    return pl.Series(texts, dtype=pl.String).str.count_matches(_WORD).cast(pl.Int64).to_numpy()


def overlaps(queries: Sequence[str], texts: Sequence[str], query: Ints, text: Ints) -> Floats:
    """The share [N] of a query's distinct content words that are in a text, for pairs of ``queries[query[i]]`` and
    ``texts[text[i]]``; NaN for a query without content words.

    >>> import numpy as np
    >>> overlaps(["the old tower", "the"], ["A tower, a tower", "An old one"], np.array([0, 0, 1]), np.array([0, 1, 1]))
    array([0.5, 0.5, nan])
    """
    wanted = [(number, word) for number, one in enumerate(queries) for word in content_words(one)]
    sought = pl.DataFrame(wanted, {"query": pl.Int64, "word": pl.String}, orient="row")
    # Only words that some query has matter.
    found = text_words(texts).filter(pl.col("word").is_in(sought["word"].unique().implode())).unique()
    pairs = pl.DataFrame({"pair": np.arange(len(query)), "query": query, "text": text})
    hits = pairs.join(sought, on="query").join(found, on=["text", "word"], how="semi")["pair"].to_numpy()
    size = np.bincount(sought["query"].to_numpy(), minlength=len(queries))[query]
    shares: Floats = np.full(len(query), np.nan)
    return np.divide(np.bincount(hits, minlength=len(query)), size, out=shares, where=size > 0)


def text_words(texts: Sequence[str]) -> pl.DataFrame:
    """The words of texts, in order, as rows of ``text`` (its number) and ``word``, as :func:`.tokens.tokenize` has
    them; but faster, with small letters in place of folded ones."""
    folded = pl.Series("word", texts, pl.String).str.to_lowercase().str.replace_all("[\u2019\u02bc\uff07]", "'")
    words = folded.str.extract_all(_WORD).to_frame().with_row_index("text").explode("word").drop_nulls()
    return words.with_columns(pl.col("text").cast(pl.Int64), pl.col("word").str.replace(_CLITIC, ""))


def matched(
    lengths: NDArray[np.number], variant_lengths: NDArray[np.number], overlaps: Floats, variant_overlaps: Floats
) -> NDArray[np.bool_]:
    """Whether [N] passage and variant differ by at most 10% of the larger value, in length and in query overlap.

    Of the larger, so that it does not matter which of two texts is the variant. Overlaps that are both undefined, as
    the query has no content words, do not differ.

    >>> import numpy as np
    >>> matched(np.array([100, 100]), np.array([90, 89]), np.array([0.5, 0.5]), np.array([0.5, 0.5])).tolist()
    [True, False]
    """
    undefined = np.isnan(overlaps) & np.isnan(variant_overlaps)
    return _near(lengths, variant_lengths) & (undefined | _near(overlaps, variant_overlaps))


def _near(first: NDArray[np.number], second: NDArray[np.number]) -> NDArray[np.bool_]:
    # 1e-9: shares such as .9 and 1 differ by .1 but for rounding.
    near: NDArray[np.bool_] = np.abs(first - second) <= TOLERANCE * np.maximum(first, second) + 1e-9
    return near
