"""Scorers that cannot see places, on the same moved passages: what a change of neighbours alone does.

Whatever sentence is moved gets other neighbours, and words of the query on both sides of a seam come together or part.
No move holds this fixed, so what a ranker shows is compared with what such scorers show. They count the query's words
in the best window. How wide a window a ranker resembles is unknown, and wider ones show other contrasts: there are
four.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.io import Run
from evenrank.probes.content_words import content_words
from evenrank.probes.matched import text_words

from .curves import PositionCurve
from .place_values import DEPTH, ranks_and_values
from .resampling import Floats, Ints
from .sentence_moves import SentenceMoves

WINDOWS = (8, 16, 32, 64)
"""Words in the windows of the scorers."""
_TEXTS = 8192
"""Texts whose words are in memory at once."""


@dataclass(frozen=True, slots=True)
class PlaceBlind:
    """What a scorer that cannot see places shows on the same texts, the control's moves subtracted.

    Its score is the number of distinct content words of the query in the best ``window`` of so many words. ``score``:
    in standard deviations of its own scores of the query's candidates; ``value``: nDCG@10. ``beyond_score``,
    ``beyond_value``: the ranker's curve minus this one, paired within queries. ``left``: queries left out of all four,
    as their candidates have one score. Scorer and comparison are ours.
    """

    window: int
    score: PositionCurve
    value: PositionCurve
    beyond_score: PositionCurve
    beyond_value: PositionCurve
    left: int

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "window": self.window,
            "left": self.left,
            "score": self.score.to_dict(),
            f"nDCG@{DEPTH}": self.value.to_dict(),
            "beyond_score": self.beyond_score.to_dict(),
            f"beyond_nDCG@{DEPTH}": self.beyond_value.to_dict(),
        }


def window_scores(
    queries: Sequence[str], texts: Sequence[str], query: Ints, text: Ints, windows: Sequence[int] = WINDOWS
) -> Floats:
    """The most distinct content words of a query in so many words on end of a text [windows, N], for pairs of
    ``queries[query[i]]`` and ``texts[text[i]]``.

    >>> import numpy as np
    >>> texts = ["The tower was old", "A tower, and eight or so words behind it one that is old"]
    >>> window_scores(["how old is the tower"], texts, np.array([0, 0]), np.array([0, 1]), [8, 16]).tolist()
    [[2.0, 1.0], [2.0, 2.0]]
    """
    wanted = [(number, word) for number, one in enumerate(queries) for word in content_words(one)]
    sought = pl.DataFrame(wanted, {"query": pl.Int64, "word": pl.String}, orient="row")
    scores = np.zeros((len(windows), len(query)))
    order = np.argsort(text, kind="stable")
    starts = range(0, len(texts), _TEXTS)
    ends = np.searchsorted(text[order], [start + _TEXTS for start in starts])
    for start, first, end in zip(starts, [0, *ends[:-1]], ends, strict=True):
        rows = order[first:end]
        words = text_words(texts[start : start + _TEXTS])
        words = words.with_columns(pl.int_range(pl.len()).over("text").alias("place"))
        words = words.filter(pl.col("word").is_in(sought["word"].unique().implode()))
        pairs = pl.DataFrame({"pair": rows, "query": query[rows], "text": text[rows] - start})
        hits = pairs.join(sought, on="query").join(words, on=["text", "word"]).sort("pair", "place")
        # The hit before this one of the same word in the same text.
        before = hits.with_row_index("hit").select(
            pl.col("hit").cast(pl.Int64).shift(1).over("pair", "word").fill_null(-1)
        )
        pair, place = hits["pair"].to_numpy(), hits["place"].to_numpy()
        distinct = _distinct(pair, place, before["hit"].to_numpy(), np.array(windows))
        for row, counts in zip(scores, distinct, strict=True):
            np.maximum.at(row, pair, counts)
    return scores


def _distinct(pair: Ints, place: Ints, before: Ints, windows: Ints) -> Ints:
    """The distinct words [W, hits] in the windows that begin with each of the hits, which are ordered by pair and
    place."""
    counts = np.ones((len(windows), len(pair)), np.int64)
    hits = np.arange(len(pair))
    for step in range(1, min(int(windows.max()), len(pair))):
        gap = place[step:] - place[:-step]
        near = np.flatnonzero((pair[step:] == pair[:-step]) & (gap < windows.max()))
        if not len(near):
            break
        # A word counts at its first hit in the window.
        near = near[before[near + step] < hits[near]]
        counts[:, near] += gap[near] < windows[:, None]
    return counts


# parameters: the moves, where their texts and queries are, and how curves are made of values
def place_blind(
    moves: SentenceMoves,
    moved: pl.DataFrame,
    ranked: Run,
    judged: pl.DataFrame,
    asked: pl.DataFrame,
    texts: pl.DataFrame,
    differences: tuple[Floats, Floats],
    curve: Callable[[Floats, float | None], PositionCurve],
) -> tuple[PlaceBlind, ...]:
    """The scorers, by their WINDOWS, on the moves of the passages ``moved`` and on the candidates ``ranked``.

    ``texts``: ``doc_id``, ``text`` of the candidates.

    ``differences``: the ranker's scores (in standard deviations) and nDCG@10 [M, K], the answer's moves minus the
    control's. ``curve``: of such values, with the level of their index (None: no index).
    """
    pairs = ranked.table.select("query_id", "doc_id").join(moved, on="query_id", how="semi")
    both = np.concatenate([moves.answer, moves.control], axis=1)
    rows, columns = np.nonzero(both >= 0)
    queries, candidates = _numbers(pairs["query_id"], asked["query_id"]), _numbers(pairs["doc_id"], texts["doc_id"])
    scores = window_scores(
        asked["text"].to_list(),
        [*texts["text"], *moves.texts["text"]],
        np.concatenate([queries, _numbers(moved["query_id"], asked["query_id"])[rows]]),
        np.concatenate([candidates, len(texts) + both[rows, columns]]),
    )
    return tuple(
        _one(window, moves, moved, judged, pairs, found, differences, curve)
        for window, found in zip(WINDOWS, scores, strict=True)
    )


def _numbers(ids: pl.Series, of: pl.Series) -> Ints:
    """Where each id is in ``of``."""
    found: Ints = ids.replace_strict(of, range(len(of)), return_dtype=pl.Int64).to_numpy()
    return found


# parameters: see place_blind
def _one(
    window: int,
    moves: SentenceMoves,
    moved: pl.DataFrame,
    judged: pl.DataFrame,
    pairs: pl.DataFrame,
    scores: Floats,
    differences: tuple[Floats, Floats],
    curve: Callable[[Floats, float | None], PositionCurve],
) -> PlaceBlind:
    """``scores``: of the ``pairs`` of queries and candidates, then of the moves."""
    table = pairs.with_columns(pl.Series("score", scores[: len(pairs)]))
    spread = table.group_by("query_id").agg(pl.col("score").std(ddof=0).alias("sd"))
    own = moved.select("query_id", "doc_id")
    own = own.join(table, on=["query_id", "doc_id"], how="left", maintain_order="left")
    sd = own.join(spread, on="query_id", how="left", maintain_order="left")["sd"].to_numpy()
    sd = np.where(sd > 0, sd, np.nan)[:, None]
    both = np.concatenate([moves.answer, moves.control], axis=1)
    versions = np.where(both == -1, own["score"].to_numpy()[:, None], np.nan)
    versions[both >= 0] = scores[len(pairs) :]
    run = Run.from_table(table, "place-blind")
    # Queries that have no score in standard deviations are left out of all.
    answer, control = (one + 0 * sd for one in np.split(versions, 2, axis=1))
    values = [ranks_and_values(one, own, run, judged)[1] for one in (answer, control)]
    score, value = (answer - control) / sd, values[0] - values[1]
    at = moves.of(values[1]).at_places()
    level = float("nan") if np.isnan(at).all() else float(np.nanmean(at))
    return PlaceBlind(
        window,
        curve(score, None),
        curve(value, level),
        curve(differences[0] - score, None),
        curve(differences[1] - value, level),
        int(np.isnan(sd).sum()),
    )
