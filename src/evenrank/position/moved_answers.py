"""Scores of the same passages with the answer's sentence moved, and what the moves do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evenrank.engines.progress import progress
from evenrank.io import Run
from evenrank.io.types import Array
from evenrank.probes.effects import Effect, effect

from .curves import PositionCurve, position_curve
from .place_values import ranks_and_values
from .resampling import Floats, Ints
from .sensitivity_data import Sources, passage_ids
from .sensitivity_result import Comparison, MovedAnswers
from .sentence_moves import SentenceMoves, sentence_moves

if TYPE_CHECKING:
    from evenrank.rankers.scorers import Scorer

_READ = 256
"""Texts whose reading ends are reported at once."""


class Reader:
    """The characters of texts that a model reads, given their queries."""

    def __init__(self, scorer: Scorer, asked: pl.DataFrame, quiet: bool) -> None:
        self.scorer, self.asked, self.quiet = scorer, asked, quiet

    def __call__(self, query_ids: pl.Series, texts: pl.Series) -> Array | None:
        """Characters read of each text, given its query [pairs]; None if unknown."""
        table = pl.DataFrame({"query_id": query_ids})
        queries = table.join(self.asked, on="query_id", how="left", maintain_order="left")["text"].to_list()
        ends: list[int] = []
        with progress("how far texts are read", len(texts), quiet=self.quiet) as advance:
            for start in range(0, len(texts), _READ):
                part = texts[start : start + _READ].to_list()
                read = self.scorer.reads_to(queries[start : start + _READ], part)
                if read is None:
                    return None
                ends += read
                advance(len(part))
        return np.array(ends)


# parameters: those of the call that it is a part of
def moved_answers(
    reader: Reader,
    table: pl.DataFrame,
    ranked: Run,
    sources: Sources,
    places: int,
    batch_size: int,
    seed: int,
) -> MovedAnswers | None:
    """The answers of ``table`` moved; None if none can be.

    ``ranked``: the candidates of the queries, ranked by the model, the passages themselves among them; ``sources``:
    their texts and judgements.
    """
    moves = sentence_moves(table, places, seed)
    if not len(moves.rows):
        return None
    moved = table[moves.rows]
    clusters = passage_ids(moved)
    own = moved.select("query_id", "doc_id").join(
        ranked.table, on=["query_id", "doc_id"], how="left", maintain_order="left"
    )
    before = own["score"].to_numpy()
    answer, control = _scores(reader, moves, moved, before, batch_size)
    sd = _spread(ranked, own)
    sides = [(one - before[:, None]) / sd[:, None] for one in (answer, control)]
    (rank, value), (control_rank, control_value) = (
        ranks_and_values(one, own, ranked, sources.qrels) for one in (answer, control)
    )
    lost = _lost(reader, moves, moved)
    whole = np.flatnonzero(~lost.any(axis=1)) if lost is not None else np.arange(len(moves.rows))

    def curve(values: Floats, level: float | None = None, rows: Ints | slice = slice(None)) -> PositionCurve:
        return position_curve(moves.of(values).of(values, rows), level=level, clusters=clusters[rows], seed=seed)

    ends = (0, np.array([int(np.flatnonzero(one.any(axis=0))[-1]) for one in moves.weights])[moves.shape])
    early, late = (_effect_at(moves, sides, column, clusters) for column in ends)
    return MovedAnswers(
        _compared(curve, *sides),
        _compared(curve, rank, control_rank),
        _compared(curve, value, control_value, float(np.nanmean(moves.of(control_value).at_places()))),
        _compared(lambda values, level: curve(values, level, whole), *sides),
        early,
        late,
        None if lost is None else lost.sum(axis=0),
        len(moves.rows),
        int(clusters.max()) + 1,
        table.height - len(moves.rows),
        int(np.isnan(sd).sum()),
    )


def _spread(ranked: Run, own: pl.DataFrame) -> Floats:
    """The standard deviation of the scores of each query's candidates [M]; NaN where they do not vary."""
    spreads = ranked.table.group_by("query_id").agg(pl.col("score").std(ddof=0).alias("sd"))
    sd = own.join(spreads, on="query_id", how="left", maintain_order="left")["sd"].to_numpy()
    return np.where(sd > 0, sd, np.nan)


def _compared(
    curve: Callable[[Floats, float | None], PositionCurve], one: Floats, other: Floats, level: float | None = None
) -> Comparison:
    """The curves of two values and of their difference; ``level``: of the difference's index (None: no indexes)."""
    own = None if level is None else 0.0
    return Comparison(curve(one, own), curve(other, own), curve(one - other, level))


def _scores(
    reader: Reader, moves: SentenceMoves, moved: pl.DataFrame, before: Floats, batch_size: int
) -> tuple[Floats, Floats]:
    """Scores [M, K] of the answer's and of the control's versions; NaN beyond a passage's versions."""
    from evenrank.rankers.rerank import rerank

    both = np.concatenate([moves.answer, moves.control], axis=1)
    rows, columns = np.nonzero(both >= 0)
    pairs = pl.DataFrame({"query_id": moved["query_id"].gather(rows), "doc_id": both[rows, columns].astype(str)})
    run = Run.from_table(pairs.unique(maintain_order=True).with_columns(pl.lit(0.0).alias("score")), "moved")
    depth = int(run.table["rank"].to_numpy().max())
    scored = rerank(run, reader.scorer, moves.texts, reader.asked, depth, batch_size=batch_size, quiet=reader.quiet)
    found = pairs.join(scored.table, on=["query_id", "doc_id"], how="left", maintain_order="left")
    # The passage as it is has its score among the candidates.
    scores = np.where(both == -1, before[:, None], np.nan)
    scores[rows, columns] = found["score"].to_numpy()
    size = moves.answer.shape[1]
    return scores[:, :size], scores[:, size:]


def _lost(reader: Reader, moves: SentenceMoves, moved: pl.DataFrame) -> Array | None:
    """Whether the model does not read the answer to its end, at each place [M, P]; None if unknown."""
    rows, columns = np.nonzero(moves.answer != -2)
    number = moves.answer[rows, columns]
    texts = pl.concat([moves.texts["text"], moved["text"]])
    of = np.where(number >= 0, number, len(moves.texts) + rows)
    reads = reader(moved["query_id"].gather(rows), texts.gather(of))
    if reads is None:
        return None
    lost = np.zeros(moves.answer.shape, bool)
    lost[rows, columns] = moves.ends[rows, columns] > reads
    return np.asarray((lost[:, None, :] & (moves.weights[moves.shape] > 0)).any(axis=2))


def _effect_at(moves: SentenceMoves, sides: list[Floats], column: int | Ints, clusters: Ints) -> Effect:
    """What moving the answer's sentence to one place does beyond moving the control there, where both do move."""
    rows = np.arange(len(moves.rows))
    both = (moves.answer[rows, column] != -1) & (moves.control[rows, column] != -1)
    values = sides[0][rows, column] - sides[1][rows, column]
    return effect(np.where(both, values, np.nan), rows, clusters)
