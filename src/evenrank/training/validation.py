"""Validation as the ranker will be used: a run is re-ranked, and measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.groups import GroupTable, Scoring, score_texts
from evenrank.io import EvenrankError, Run
from evenrank.io.errors import quoted
from evenrank.io.threads import in_order
from evenrank.measures import DeltaAPRF, Evaluation, Missing, parse_measure
from evenrank.measures.inference import compare
from evenrank.mitigation.attributes import Attribute, rows_of
from evenrank.mitigation.blind import mask_texts
from evenrank.rankers.protocol import Ranker


@dataclass(frozen=True)
class Validation:
    """A run to re-rank, with the texts that a ranker reads: the first ``depth`` passages of every judged query.

    Bias is measured over all passages of the rankings; their group table is made while the texts are read.
    """

    run: Run
    qrels: pl.DataFrame
    pairs: pl.DataFrame
    """``query_id``, ``doc_id``, ``rank``, ``query`` and ``text`` of each pair to score."""
    measure: str
    attributes: Mapping[str, GroupTable] = field(default_factory=dict)
    """The group table of the run's passages, for each attribute whose ΔA-PRF is measured; of labels, of those that have
    one: a clicked passage without a label is of neither group."""
    masked: Scoring | None = None
    """Its words are masked in what the ranker reads."""
    target: GroupTable | None = None
    """The labels of an adversary's target."""

    @classmethod
    def of(
        cls,
        run: Run,
        qrels: pl.DataFrame,
        queries: pl.DataFrame,
        texts: pl.DataFrame | Iterable[pl.DataFrame],
        *,
        measure: str,
        depth: int,
        attributes: Mapping[str, Attribute] | None = None,
        sources: tuple[str, str] = ("the validation queries", "the collection"),
    ) -> Validation:
        """``texts``: a table or its batches, of which those that a ranker reads are kept. ``sources``: names of the
        queries and the texts for messages.

        Raises EvenrankError if a query or a passage (those below ``depth`` included) has no text, no query of the run
        is judged, or labels know no passage of the run.
        """
        judged = run.table.join(qrels.select("query_id").unique(), on="query_id", how="semi", maintain_order="left")
        if not judged.height:
            raise EvenrankError("validation: no query of the run is judged")
        labels = {name: one for name, one in (attributes or {}).items() if isinstance(one, GroupTable)}
        scorings = {name: one for name, one in (attributes or {}).items() if isinstance(one, Scoring)}
        ids = judged.select("doc_id").unique(maintain_order=True)
        pairs = judged.filter(pl.col("rank") <= depth)
        kept, found, tables = _taken(texts, ids, pairs["doc_id"].unique(), list(scorings.values()))
        lacking = {
            ("queries are", sources[0]): pairs.join(queries, on="query_id", how="anti", maintain_order="left")[
                "query_id"
            ].unique(),
            ("documents are", sources[1]): ids.join(found, on="doc_id", how="anti", maintain_order="left")["doc_id"],
        }
        for (noun, where), missing in lacking.items():
            if len(missing):
                names = ", ".join(map(quoted, missing[:5])) + (", …" if len(missing) > 5 else "")
                raise EvenrankError(
                    f"validation: {run.described}: {len(missing)} of its {noun} not in {where}: {names}"
                )
        pairs = pairs.join(queries.rename({"text": "query"}), on="query_id", how="left", maintain_order="left").join(
            kept, on="doc_id", how="left", maintain_order="left"
        )
        scored = dict(zip(scorings, tables, strict=True))
        scored |= {name: _labelled(one, ids["doc_id"]) for name, one in labels.items()}
        return cls(
            Run.from_table(judged, run.name), qrels, pairs, measure, {name: scored[name] for name in attributes or {}}
        )

    @property
    def depth(self) -> int:
        """How much of each list is re-ranked."""
        return int(self.pairs["rank"].max() or 1)  # type: ignore[arg-type]

    @property
    def read(self) -> tuple[list[str], list[str]]:
        """The queries and the passages [pairs] as the ranker reads them."""
        texts = self.pairs["query"], self.pairs["text"]
        queries, passages = texts if self.masked is None else (mask_texts(text, scoring=self.masked) for text in texts)
        return queries.to_list(), passages.to_list()

    def scores(self, ranker: Ranker, batch_size: int = 64) -> NDArray[np.float64]:
        """The ranker's scores [pairs]."""
        return np.asarray(ranker.score(*self.read, batch_size).double().numpy(), np.float64)

    def reranked(self, scores: NDArray[np.float64], depth: int, name: str) -> Run:
        """The run with its first ``depth`` passages in the order of the scores [pairs], then the others."""
        scored = self.pairs.select("query_id", "doc_id", "rank").with_columns(pl.Series("new", scores))
        table = self.run.table.join(
            scored.select("query_id", "doc_id", "new"), on=["query_id", "doc_id"], how="left", maintain_order="left"
        )
        lowest = float(np.min(scores, initial=0.0)) - 1.0
        score = (
            pl.when((pl.col("rank") <= depth) & pl.col("new").is_not_null())
            .then(pl.col("new"))
            .otherwise(lowest - pl.col("rank").cast(pl.Float64))
        )
        return Run.from_table(table.select("query_id", "doc_id", score.alias("score")), name)

    def value(self, run: Run) -> float:
        """The validation measure of a run, mean over its judged queries."""
        judged = self.qrels.join(self.run.queries.to_frame(), on="query_id", how="semi")
        return Evaluation(run, qrels=judged).figure(parse_measure(self.measure))

    def tested(self, run: Run) -> tuple[int, float | None]:
        """The number of queries of a paired test of a run against the first stage on the measure, and its p.

        None where fewer than 15 queries differ.
        """
        judged = self.qrels.join(self.run.queries.to_frame(), on="query_id", how="semi")
        measure = parse_measure(self.measure)
        own, first = (Evaluation(one, qrels=judged).values(measure) for one in (run, self.run))
        found = compare(own - first)
        return found.n, found.p

    def delta_aprf(self, run: Run) -> dict[str, float]:
        """ΔA-PRF of a run for each attribute (NaN if a pole has no clicked passage)."""
        judged = self.qrels.join(self.run.queries.to_frame(), on="query_id", how="semi")
        found = {}
        for name, scores in self.attributes.items():
            missing: Missing = "skip" if scores.labelled else "error"
            found[name] = Evaluation(run, scores, judged, missing=missing).figure(DeltaAPRF)
        return found

    def best_depth(self, scores: NDArray[np.float64], depths: Sequence[int]) -> tuple[int, float]:
        """The re-ranking depth with the highest measure (the smallest of equal ones), and that measure."""
        values = [(self.value(self.reranked(scores, depth, "validation")), -depth) for depth in depths]
        value, depth = max(values)
        return -depth, value


def _labelled(labels: GroupTable, ids: pl.Series) -> GroupTable:
    """The labels of these documents. Raises EvenrankError if none has one."""
    rows = rows_of(labels, ids, "validated passage")
    return replace(labels, table=labels.table[rows[rows >= 0]])


def _taken(
    texts: pl.DataFrame | Iterable[pl.DataFrame], ids: pl.DataFrame, wanted: pl.Series, scorings: Sequence[Scoring]
) -> tuple[pl.DataFrame, pl.DataFrame, list[GroupTable]]:
    """In one pass: the texts of the ``wanted`` documents; for all in ``ids``, the ids found and their group tables."""
    marked = ids.with_columns(wanted=ids["doc_id"].is_in(wanted.implode()))

    def take(batch: pl.DataFrame) -> list[pl.DataFrame]:
        found = batch.join(marked, on="doc_id", how="inner", maintain_order="left")
        kept = found.filter("wanted").select("doc_id", "text")
        return [kept, found.select("doc_id"), *(score_texts(found, one) for one in scorings)]

    batches = texts.iter_slices(1 << 15) if isinstance(texts, pl.DataFrame) else texts
    parts = list(in_order(take, batches)) or [take(pl.DataFrame(schema={"doc_id": pl.String, "text": pl.String}))]
    kept, found, *tables = (pl.concat(part) for part in zip(*parts, strict=True))
    return kept, found, [GroupTable.of(table, one.describe()) for table, one in zip(tables, scorings, strict=True)]
