"""The training lists of a run, chunk by chunk: positives, then the negatives drawn; and the manifest's rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted
from evenrank.io.tables import IdIndex, pick
from evenrank.io.types import Array

from .negative_documents import Documents
from .negative_sampling import Settings, candidate_totals, draw

_MANY = 1 << 19


@dataclass(frozen=True, slots=True)
class SampledLists:
    """The lists of a chunk: positives first, then negatives, query by query."""

    query_id: pl.Series
    starts: Array
    """[Q + 1]: where the documents of each query begin."""
    positives: Array
    """[Q]: how many of them are positives."""
    place: Array
    """[T]: the number of each document in the collection, −1 for one that labels alone do not know."""
    relevance: Array
    """[T]: the grade, 0 for a negative."""
    doc_id: pl.Series


class Sampler:
    """Samples chunk by chunk, and keeps the manifest's rows. ``run``: its name and file, for messages."""

    def __init__(
        self,
        qrels: pl.DataFrame,
        documents: Documents,
        settings: Settings,
        queries: pl.DataFrame | None,
        run: str,
    ) -> None:
        self.qrels = qrels.select(pl.col("query_id", "doc_id").cast(pl.String), pl.col("relevance").cast(pl.Int32))
        self.qrels = self.qrels.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
        self.documents = documents
        self.settings = settings
        self.run = run
        self.known = None if queries is None else IdIndex([queries["query_id"].cast(pl.String)])
        self.left_out = {"without_relevant": 0, "without_candidate": 0}
        self.parts: list[pl.DataFrame] = []
        self.without_text = _Absent(f"queries of the {run} have no text")
        self.not_found = _Absent(f"documents of the {run} are not in {documents.source}")
        self.relevant_not_found = _Absent(f"judged relevant documents are not in {documents.source}")

    def lists(self, chunk: pl.DataFrame) -> SampledLists:
        """The lists of some complete queries of a ranked run."""
        names = chunk["query_id"].filter(chunk["rank"] == 1)
        if self.known is not None:
            self.without_text.note(names, self.known.places(names))
        numbered = names.to_frame().with_row_index("query")
        judged = self.qrels.join(numbered, on="query_id", how="inner", maintain_order="left")
        rest, hashes, of_candidate = self._candidates(chunk, judged)
        relevant = judged.filter(pl.col("relevance") >= 1)
        positives = np.bincount(relevant["query"].to_numpy(), minlength=len(names))
        found = np.bincount(of_candidate, minlength=len(names))
        kept = (positives > 0) & (found > 0)
        self.left_out["without_relevant"] += int((positives == 0).sum())
        self.left_out["without_candidate"] += int(((positives > 0) & (found == 0)).sum())
        if not kept.all():
            relevant = relevant.filter(pl.Series(kept[relevant["query"].to_numpy()]))
            wanted = pl.Series(kept[of_candidate])
            rest, hashes = rest.filter(wanted), hashes.filter(wanted)
        # A copy: a long id may keep its whole chunk in memory.
        names = pl.Series("query_id", names.filter(pl.Series(kept)).to_list(), dtype=pl.String)
        positives, found = positives[kept], found[kept]

        index = self.documents.index
        places, of_relevant = index.hashed_places(hashes), index.places(relevant["doc_id"])
        if self.documents.whole:
            self.not_found.note(rest["doc_id"], places)
            self.relevant_not_found.note(relevant["doc_id"], of_relevant)
        values = self.documents.bias(places)
        starts = np.append(0, np.cumsum(found))
        rows, biased = draw(rest["query_id"], rest["doc_id"], starts, values, self.settings)
        taken = np.minimum(found, self.settings.n)
        number = np.repeat(np.arange(len(names)), taken)
        self._note(names, starts, values, rows, biased, number)

        # In one stable sort by query the positives come first.
        of_positive = np.unique(relevant["query"].to_numpy(), return_inverse=True)[1] if relevant.height else number[:0]
        order = np.argsort(np.concatenate([of_positive, number]), kind="stable")
        return SampledLists(
            names,
            np.append(0, np.cumsum(positives + taken)),
            positives,
            np.concatenate([of_relevant, places[rows]])[order],
            np.concatenate([relevant["relevance"].to_numpy(), np.zeros(len(rows), np.int32)])[order],
            pl.concat([relevant["doc_id"], rest["doc_id"].gather(rows)]).gather(order),
        )

    def _candidates(self, chunk: pl.DataFrame, judged: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series, Array]:
        """D_q, as :func:`candidates` has it: its rows, their documents' hashes, and their queries' numbers [M]."""
        ranks = chunk["rank"].to_numpy()
        query = np.cumsum(ranks == 1, dtype=np.uint32) - np.uint32(1)
        table, hashes = chunk.select("query_id", "doc_id"), chunk["doc_id"].hash()
        kept = ranks <= self.settings.depth
        # Few documents are judged: the join need not see the others.
        perhaps = np.flatnonzero(IdIndex([judged["doc_id"]]).hashed_places(hashes) >= 0)
        few = pl.DataFrame({"query": query[perhaps], "doc_id": pick(table["doc_id"], perhaps), "row": perhaps})
        kept[few.join(judged, on=["query", "doc_id"], how="semi")["row"].to_numpy()] = False
        if not kept.all():
            mask = pl.Series(kept)
            table, hashes, query = table.filter(mask), hashes.filter(mask), query[kept]
        return table, hashes, query

    def _note(self, names: pl.Series, starts: Array, values: Array, rows: Array, biased: Array, of_row: Array) -> None:
        def count(query: Array) -> Array:
            return np.bincount(query, minlength=len(names))

        def mean(query: Array, value: Array) -> Array:
            """Over the documents whose β is known."""
            known = ~np.isnan(value)
            with np.errstate(invalid="ignore"):
                result: Array = np.bincount(query[known], value[known], minlength=len(names)) / count(query[known])
            return result

        found = np.diff(starts)
        gendered, known, total = candidate_totals(starts, values)
        parts = {"biased": biased, "random": ~biased}
        counts = {part: count(of_row[mask]) for part, mask in parts.items()}
        means = {part: mean(of_row[mask], values[rows[mask]]) for part, mask in parts.items()}
        columns = {
            "query_id": names,
            "candidates": found,
            **counts,
            "short": self.settings.n - np.minimum(found, self.settings.n),
            "gendered": gendered,
        }
        if self.documents.labelled:
            columns["unknown"] = found - known
            columns["unknown_random"] = count(of_row[np.isnan(values[rows])])
        table = pl.DataFrame(columns).with_columns(pl.exclude("query_id").cast(pl.Int32))
        with np.errstate(invalid="ignore"):
            of_all = total / known
        self.parts.append(
            table.with_columns(
                pl.Series("beta_biased", means["biased"], dtype=pl.Float64),
                pl.Series("beta_random", means["random"], dtype=pl.Float64),
                pl.Series("beta_candidates", of_all, dtype=pl.Float64),
            )
        )

    def per_query(self) -> pl.DataFrame:
        """One row for each query with negatives, in the run's order."""
        return pl.concat(self.parts)

    def check(self) -> None:
        """Raises EvenrankError for what the chunks lacked, and if every query was left out."""
        for absent in (self.without_text, self.not_found, self.relevant_not_found):
            absent.refuse()
        table = self.per_query()
        if self.documents.labelled and table.height and bool((table["unknown"] == table["candidates"]).all()):
            raise EvenrankError(f"{self.run}: the labels know none of its {table['candidates'].sum():,} candidates")
        if not table.height:
            message = (
                f"no query has both a judged relevant document and an unjudged one in its first {self.settings.depth}"
            )
            raise EvenrankError(f"{self.run}: {message}")


class _Absent:
    """Ids that were looked up and not found, each once."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._ids = [pl.Series(dtype=pl.String)]
        self._once = 0

    def note(self, ids: pl.Series, places: Array) -> None:
        """Keeps those of ``ids`` whose place is −1."""
        if (places < 0).any():
            self._ids.append(ids.filter(pl.Series(places < 0)).unique(maintain_order=True))
            if sum(map(len, self._ids)) > 2 * self._once + _MANY:
                self._unite()

    def _unite(self) -> pl.Series:
        ids = pl.concat(self._ids).unique(maintain_order=True)
        self._ids, self._once = [ids], len(ids)
        return ids

    def refuse(self) -> None:
        """Raises EvenrankError if there are any."""
        ids = self._unite()
        if len(ids):
            raise EvenrankError(f"{len(ids)} {self.what}: {', '.join(map(quoted, ids[:5]))}")
