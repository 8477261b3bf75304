"""Training lists of a run: each query's relevant documents and its sampled negatives, and what is counted of them."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from evenrank._version import __version__
from evenrank.files import (
    EvenrankError,
    scan_collection,
)
from evenrank.files.errors import quoted
from evenrank.files.progress import progress
from evenrank.files.tables import IdIndex
from evenrank.files.types import Array
from evenrank.groups import GroupSource, GroupTable, Magnitude, score_batches, sides

from .negative_sampling import Beta, NegativeSettings, beta, candidates, draw

PathLike = str | os.PathLike[str]

_BATCH = 1 << 15
_LABELS: Magnitude = "tf_words"


@dataclass(frozen=True, slots=True)
class Documents:
    """β [D] and sides [D] of documents, found by id.

    ``labelled``: β and sides are from labels. The documents that labels do not know have NaN and 0; if labels are all
    that is known (``whole`` is False), documents may be missing from the index, and these are unknown too.
    """

    index: IdIndex
    beta: Array
    sides: Array | None
    settings: dict[str, Any]
    source: str
    labelled: bool = False
    whole: bool = True

    def bias(self, places: Array) -> Array:
        """β [N] of the documents at ``places`` of the index, NaN where it is unknown (at place −1 too)."""
        if self.whole:
            return self.beta[places]
        return np.where(places >= 0, self.beta[places], np.nan)


def documents_of(source: GroupSource, measure: Beta, quiet: bool) -> Documents:
    """The documents of a group table or of labels, or of the collection, scored.

    Of labels, all documents of the collection if there is one. Raises EvenrankError if the group table was made with
    other settings.
    """
    collection = source.collection
    assert collection is None or isinstance(collection, str | os.PathLike | pl.DataFrame)
    if source.described:
        known = source.known()
        if known.labelled:
            return _labelled(known, measure, collection)
        place = os.fspath(source.scores) if isinstance(source.scores, str | os.PathLike) else "the scores"
        return Documents(IdIndex([known.table["doc_id"]]), beta(known, measure), _sides(known), known.settings, place)
    assert collection is not None
    scoring = replace(source.scoring(), magnitudes=(_LABELS,))
    names, values, sides = [], [], []
    with progress("documents", quiet=quiet) as advance:
        for table in score_batches(texts_of(collection), scoring):
            part = GroupTable.of(table, scoring.describe())
            names.append(_ids(table))
            values.append(beta(part, measure))
            sides.append(_sides(part))
            advance(table.height)
    if not names:
        raise EvenrankError("the collection is empty")
    all_sides = None if scoring.lexicon.poles is None else np.concatenate([part for part in sides if part is not None])
    return Documents(IdIndex(names), np.concatenate(values), all_sides, scoring.describe(), source_of(collection))


def _labelled(labels: GroupTable, measure: Beta, collection: PathLike | pl.DataFrame | None) -> Documents:
    """The documents of the collection with their labels, or without one those that the labels know."""
    index, values, settings = IdIndex([labels.table["doc_id"]]), beta(labels, measure), labels.settings
    signs = None if labels.poles is None else sides(labels.signed_magnitude(labels.usual_kind))
    if measure == "abs_tf":
        settings = {**settings, "magnitude": labels.usual_kind}
    if collection is None:
        return Documents(index, values, signs, settings, labels.source, labelled=True, whole=False)
    ids = list(map(_ids, texts_of(collection)))
    row = np.concatenate([index.places(part) for part in ids]) if ids else np.zeros(0, np.int64)
    return Documents(
        IdIndex(ids),
        np.where(row >= 0, values[row], np.nan),
        None if signs is None else np.where(row >= 0, signs[row], 0).astype(np.int8),
        settings,
        source_of(collection),
        labelled=True,
    )


def source_of(collection: PathLike | pl.DataFrame) -> str:
    return "the collection" if isinstance(collection, pl.DataFrame) else os.fspath(collection)


def _ids(batch: pl.DataFrame) -> pl.Series:
    # A copy: a long id may keep the text beside it in memory.
    return pl.Series("doc_id", batch["doc_id"].to_arrow(compat_level=pl.CompatLevel.oldest()))


def _sides(scores: GroupTable) -> Array | None:
    """The side of each document, if the table has what it depends on."""
    has_words = all(f"magnitude_{_LABELS}_{group}" in scores.table.columns for group in scores.groups)
    return sides(scores.signed_magnitude(_LABELS)) if scores.poles and has_words else None


def texts_of(collection: PathLike | pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The documents of a collection, in batches."""
    if isinstance(collection, pl.DataFrame):
        return collection.select(pl.col("doc_id", "text").cast(pl.String)).iter_slices(_BATCH)
    return scan_collection(collection)


class Sampler:
    """Samples chunk by chunk, and keeps the manifest's rows. ``run``: its name and file, for messages."""

    def __init__(
        self,
        qrels: pl.DataFrame,
        documents: Documents,
        settings: NegativeSettings,
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

    def lists(self, chunk: pl.DataFrame) -> pl.DataFrame:
        """The lists of some complete queries of a ranked run, query by query, positives first, then negatives.

        ``query_id``, ``doc_id``, ``relevance`` (the grade, 0 for a negative) and ``place``, the number of the document
        in the collection, −1 for one that labels alone do not know.
        """
        names = chunk["query_id"].filter(chunk["rank"] == 1)
        if self.known is not None:
            self.without_text.note(names, self.known.places(names))
        numbered = names.to_frame().with_row_index("query")
        judged = self.qrels.join(numbered, on="query_id", how="inner", maintain_order="left")
        of_query = chunk.with_columns(query=(pl.col("rank") == 1).cum_sum() - 1)
        rest = candidates(of_query, judged, self.settings.depth)
        relevant = judged.filter(pl.col("relevance") >= 1)
        positives, pool = (np.bincount(part["query"].to_numpy(), minlength=len(names)) for part in (relevant, rest))
        usable = (positives > 0) & (pool > 0)
        self.left_out["without_relevant"] += int((positives == 0).sum())
        self.left_out["without_candidate"] += int(((positives > 0) & (pool == 0)).sum())
        if not usable.all():
            relevant, rest = (part.filter(pl.Series(usable[part["query"].to_numpy()])) for part in (relevant, rest))
        # A copy: a long id may keep its whole chunk in memory.
        names = pl.Series("query_id", names.filter(pl.Series(usable)).to_list(), dtype=pl.String)

        index = self.documents.index
        places, of_relevant = index.places(rest["doc_id"]), index.places(relevant["doc_id"])
        if self.documents.whole:
            self.not_found.note(rest["doc_id"], places)
            self.relevant_not_found.note(relevant["doc_id"], of_relevant)
        values = self.documents.bias(places)
        starts = np.append(0, np.cumsum(pool[usable]))
        rows, biased = draw(rest["query_id"], rest["doc_id"], starts, values, self.settings)
        self._note(names, starts, values, rows, biased)

        columns = ("query", "query_id", "doc_id")
        drawn = rest.select(columns)[rows].with_columns(relevance=pl.lit(0, pl.Int32), place=places[rows])
        lists = pl.concat([relevant.select(*columns, "relevance", place=of_relevant), drawn])
        return lists.sort("query", maintain_order=True).drop("query")

    def _note(self, names: pl.Series, starts: Array, values: Array, rows: Array, biased: Array) -> None:
        sizes = np.diff(starts)
        query = np.repeat(np.arange(len(names)), sizes)
        drawn = {"biased": rows[biased], "random": rows[~biased]}

        def count(chosen: Array) -> Array:
            """Of the candidates at these rows, or where this is true, the number of each query."""
            return np.bincount(query[chosen], minlength=len(names)).astype(np.int32)

        def mean(chosen: Array) -> Array:
            """Over those whose β is known."""
            chosen = chosen[~np.isnan(values[chosen])]
            with np.errstate(invalid="ignore"):
                result: Array = np.bincount(query[chosen], values[chosen], len(names)) / count(chosen)
            return result

        columns = {
            "query_id": names,
            "candidates": sizes.astype(np.int32),
            **{part: count(chosen) for part, chosen in drawn.items()},
            "short": self.settings.n - np.minimum(sizes, self.settings.n).astype(np.int32),
            "gendered": count(values > 0),
        }
        if self.documents.labelled:
            columns["unknown"] = count(np.isnan(values))
            columns["unknown_random"] = count(rows[np.isnan(values[rows])])
        means = {f"beta_{part}": mean(chosen) for part, chosen in drawn.items()}
        self.parts.append(pl.DataFrame({**columns, **means, "beta_candidates": mean(np.arange(len(values)))}))

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
        self._ids: dict[str, None] = {}

    def note(self, ids: pl.Series, places: Array) -> None:
        """Keeps those of ``ids`` whose place is −1."""
        if (places < 0).any():
            self._ids |= dict.fromkeys(ids.filter(pl.Series(places < 0)).unique(maintain_order=True))

    def refuse(self) -> None:
        """Raises EvenrankError if there are any."""
        if self._ids:
            raise EvenrankError(f"{len(self._ids)} {self.what}: {', '.join(map(quoted, list(self._ids)[:5]))}")


def manifest_of(sampler: Sampler, run: str, format: str, measure: Beta, rows: int) -> dict[str, object]:
    """Versions, settings, and the counts over all queries; ``rows``: how many were written."""
    table, left_out = sampler.per_query(), dict(sampler.left_out)
    settings = {"run": run, "format": format, "beta": measure, **asdict(sampler.settings), **sampler.documents.settings}
    if format == "n-tuple":
        left_out["too_few_for_n_tuple"] = int((table["short"] > 0).sum())
    return {
        "evenrank": __version__,
        "versions": {"python": platform.python_version(), "polars": pl.__version__, "numpy": np.__version__},
        "settings": settings,
        **_totals(table, sampler.settings),
        "left_out": left_out,
        "rows": rows,
        "notes": sampler.settings.notes,
    }


def _totals(table: pl.DataFrame, settings: NegativeSettings) -> dict[str, object]:
    """The sums over queries; the mean β of all documents of each part whose β is known (None if there is none)."""

    def mean(column: str, counts: Array) -> float | None:
        number = int(counts.sum())
        # Summed as one array: a sum by parts may differ in the last digit.
        return float(np.nansum(table[column].to_numpy() * counts)) / number if number else None

    biased, random = int(table["biased"].sum()), int(table["random"].sum())
    counts = {name: table[name].to_numpy() for name in ("biased", "random", "candidates")}
    unknown = {}
    if "unknown" in table.columns:
        of_query, drawn = table["unknown"].to_numpy(), table["unknown_random"].to_numpy()
        counts |= {"random": counts["random"] - drawn, "candidates": counts["candidates"] - of_query}
        unknown = {
            "candidates": int(table["candidates"].sum()),
            "unknown": {
                "queries": int((of_query > 0).sum()),
                "candidates": int(of_query.sum()),
                "negatives": int(drawn.sum()),
            },
        }
    lacking = (settings.quota - table["gendered"].cast(pl.Int64)).clip(lower_bound=0)
    return {
        "queries": table.height,
        "negatives": biased + random,
        "biased": biased,
        "random": random,
        "short": {"queries": int((table["short"] > 0).sum()), "negatives": int(table["short"].sum())},
        "short_of_gendered": {"queries": int((lacking > 0).sum()), "negatives": int(lacking.sum())},
        **unknown,
        "mean_beta": {part: mean(f"beta_{part}", known) for part, known in counts.items()},
    }
