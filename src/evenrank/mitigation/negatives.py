"""Bias-aware negative sampling: negatives that mention a group, so that a ranker learns not to prefer them.

Bigdeli et al., the paper cited as [BAS]: of the N negatives of a query, a share λ are the unjudged documents of its
first-stage list with the largest bias β, the others are drawn at random from the rest.

When it misleads: β has no side: if the first stage finds mostly passages of one group, mostly that group is pushed
down, which can reverse a lean rather than remove it. An unjudged document may well be relevant; choosing it for its
words teaches the ranker that it is not. If a list has too few gendered documents, they do not fill the share (the
manifest counts such queries; ``gendered_only`` then draws the rest at random).

Worked example: of four unjudged documents with β 0, ln 3, 0 and ln 2, two negatives are taken, half of them by bias:
the one with ln 3, and one of the other three, by the seed.

>>> import polars as pl
>>> from evenrank.mitigation.negatives import sample
>>> table = pl.DataFrame({"query_id": ["q"] * 4, "doc_id": ["a", "b", "c", "d"], "beta": [0.0, 1.0986, 0.0, 0.6931]})
>>> drawn = sample(table, n=2, share=0.5)
>>> drawn.filter("biased")["doc_id"].to_list(), drawn.height
(['b'], 2)
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack, get_args

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank._version import __version__
from evenrank.files import (
    EvenrankError,
    Provenance,
    as_collection,
    as_qrels,
    as_queries,
    as_run,
    atomic_path,
    check_outputs,
    scan_collection,
    write_text,
)
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, quoted, require_fast
from evenrank.files.json_values import json_text
from evenrank.files.progress import progress
from evenrank.files.streams import Form, TableWriter
from evenrank.files.tables import IdIndex, pick, text_bytes
from evenrank.files.tokens import Tokens
from evenrank.files.types import Array
from evenrank.files.wording import percent
from evenrank.groups import GroupSource, GroupTable, Lexicon, Magnitude, score_batches, sides

if TYPE_CHECKING:
    import pyarrow as pa

Beta = Literal["abs_tf", "count", "one_minus_neutrality"]
_PART = 1 << 19


def beta(scores: GroupTable, measure: Beta = "abs_tf") -> Array:
    """The bias β ≥ 0 of each document [D] of a group table [BAS].

    ``abs_tf``: |mag_a − mag_b| under ``tf``, a and b the poles; ``count``: the number of words of any group;
    ``one_minus_neutrality``: 1 − neutrality. Of labels, whose magnitude is their weight, ``abs_tf`` is |w_a − w_b| and
    ``count`` the sum of all weights. Rounded to nine digits, so that ln 6 − ln 3 and ln 2 are the same bias.
    Raises EvenrankError for an unknown measure, and for ``abs_tf`` without poles.
    """
    if measure == "abs_tf":
        value = np.abs(scores.signed_magnitude(scores.usual_kind))
    elif measure == "count":
        value = np.sum([scores.magnitude("count", group) for group in scores.groups], axis=0)
    elif measure == "one_minus_neutrality":
        value = 1 - scores.table["neutrality"].to_numpy()
    else:
        raise EvenrankError(f"{arg.beta}: expected one of {', '.join(get_args(Beta))}, found {quoted(measure)}")
    rounded: Array = np.round(value, 9)
    return rounded


def candidates(run: pl.DataFrame, qrels: pl.DataFrame, depth: int = 1000) -> pl.DataFrame:
    """D_q: the rows of a run's first ``depth`` ranks whose document is not judged for the query [BAS].

    ``run``: ``query_id``, ``doc_id``, ``rank``, in rank order, as ``Run.table``; ``qrels``: ``query_id``, ``doc_id``.
    """
    top = run.filter(pl.col("rank") <= depth)
    return top.join(qrels, on=["query_id", "doc_id"], how="anti", maintain_order="left")


def sample(
    table: pl.DataFrame, *, n: int = 20, share: float = 0.6, gendered_only: bool = False, seed: int = 0
) -> pl.DataFrame:
    """Draws up to ``n`` negatives for each query from its candidates [BAS].

    ``table``: ``query_id``, ``doc_id`` (each document once a query) and ``beta`` (≥ 0; null: unknown), the rows of a
    query together and in first-stage order. Returns the rows drawn, with ``biased``: a query's biased part first, the
    ⌊share · n⌋ rows of largest β, ties by position; then its random part, uniform without replacement from all others.
    Of at most ``n`` rows, all are drawn. With ``gendered_only`` rows with β = 0 are left to the random part; those of
    unknown β always are.

    Rows are drawn by a random key of the seed, the query's id and the document's id alone: the negatives of a query do
    not depend on other queries, and what ``share`` 0.6 draws at random, 0.4 draws too.

    Raises EvenrankError for a setting out of range, a β below 0 or not finite, and a query whose rows are not
    together.
    """
    settings = Settings(n, share, gendered_only, seed)
    values = table["beta"].cast(pl.Float64).to_numpy()
    if not (np.isfinite(values) & (values >= 0) | table["beta"].is_null().to_numpy()).all():
        raise EvenrankError("expected finite numbers from 0 as beta")
    query = table["query_id"].cast(pl.String)
    starts = _spell_starts(query)
    if query.gather(starts[:-1]).n_unique() < len(starts) - 1:
        raise EvenrankError("the rows of a query are not together: sort the table by query_id")
    rows, biased = draw(query, table["doc_id"].cast(pl.String), starts, values, settings)
    return table[rows].with_columns(pl.Series("biased", biased))


def _spell_starts(query: pl.Series) -> Array:
    """The start of each stretch of equal values, and the total length at the end [Q + 1]."""
    number = query.rle_id().to_numpy().astype(np.int64)
    return np.append(np.flatnonzero(np.diff(number, prepend=-1)), len(query))


def whole_queries(table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The table of a run in parts of whole queries, each of about half a million rows."""
    starts = _spell_starts(table["query_id"])
    cuts = starts[np.unique(np.searchsorted(starts, np.arange(0, table.height, _PART)))]
    for start, end in itertools.pairwise([*cuts.tolist(), table.height]):
        if end > start:
            yield table[start:end]


@checked
@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of :func:`sample`. Raises EvenrankError for one out of range."""

    n: Annotated[int, opt.COUNT]
    share: Annotated[float, opt.SHARE]
    gendered_only: bool
    seed: Annotated[int, opt.SEED]
    depth: Annotated[int, opt.COUNT] = 1

    @property
    def quota(self) -> int:
        """⌊λN + 1e-9⌋, the size of the biased part."""
        return math.floor(self.share * self.n + 1e-9)

    @property
    def notes(self) -> list[str]:
        """That a share cannot be had of so few negatives, if so."""
        if abs(self.quota - self.share * self.n) < 1e-6:
            return []
        had = f"{self.quota} of {self.n} ({percent(self.quota / self.n)})"
        return [f"a share of {self.share:g} is rounded down to {had} of a query's negatives"]


def draw(query: pl.Series, doc: pl.Series, starts: Array, values: Array, settings: Settings) -> tuple[Array, Array]:
    """The rows drawn [T], and whether each is in the biased part [T]; query q has the rows from ``starts[q]``.

    ``values``: β of each row, NaN if it is unknown.
    """
    # The compiler takes half a second to import.
    from evenrank.files.compiled import unwritable

    from . import _drawing as _kernel

    ids = unwritable(*text_bytes(doc), *text_bytes(query.gather(starts[:-1])))
    keys = _kernel.random_keys(*ids, starts, np.uint64(settings.seed))
    (values,) = unwritable(values)
    drawn: tuple[Array, Array] = _kernel.draw(starts, values, keys, settings.n, settings.quota, settings.gendered_only)
    return drawn


def candidate_totals(starts: Array, values: Array) -> tuple[Array, Array, Array]:
    """Of each query's candidates [Q]: how many have a β above 0, how many a known one, and the sum of those."""
    from . import _drawing as _kernel

    found: tuple[Array, Array, Array] = _kernel.totals(starts, values)
    return found


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
    return Documents(IdIndex(names), np.concatenate(values), all_sides, scoring.describe(), _named(collection))


def _labelled(labels: GroupTable, measure: Beta, collection: PathLike | pl.DataFrame | None) -> Documents:
    """The documents of the collection with their labels, or without one those that the labels know."""
    index, values, settings = IdIndex([labels.table["doc_id"]]), beta(labels, measure), labels.settings
    found = None if labels.poles is None else sides(labels.signed_magnitude(labels.usual_kind))
    if measure == "abs_tf":
        settings = {**settings, "magnitude": labels.usual_kind}
    if collection is None:
        return Documents(index, values, found, settings, labels.source, labelled=True, whole=False)
    ids = list(map(_ids, texts_of(collection)))
    row = np.concatenate([index.places(part) for part in ids]) if ids else np.zeros(0, np.int64)
    return Documents(
        IdIndex(ids),
        np.where(row >= 0, values[row], np.nan),
        None if found is None else np.where(row >= 0, found[row], 0).astype(np.int8),
        settings,
        _named(collection),
        labelled=True,
    )


def _named(collection: PathLike | pl.DataFrame) -> str:
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


def manifest_of(sampler: Sampler, settings: dict[str, object], rows: int) -> dict[str, object]:
    """Versions, settings, and the counts over all queries; ``rows``: how many were written."""
    table, left_out = sampler.per_query(), dict(sampler.left_out)
    if settings["format"] == "n-tuple":
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


def _totals(table: pl.DataFrame, settings: Settings) -> dict[str, object]:
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


__all__ = ["Beta", "Format", "beta", "candidates", "sample", "write_negatives"]


class TextFile:
    """Texts of some documents in an unnamed file, which the system may cache in memory."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed on leaving
        self._slot = np.zeros(0, np.int32)
        self._texts: pa.Array | None = None

    def __enter__(self) -> TextFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._texts = None
        self._file.close()

    def fill(self, places: list[Array], index: IdIndex, collection: PathLike | pl.DataFrame) -> None:
        """Writes the texts of the documents at ``places`` of the index. Raises EvenrankError if some are missing."""
        import mmap

        import pyarrow as pa

        wanted = np.zeros(max((int(part.max()) for part in places if len(part)), default=-1) + 1, dtype=bool)
        for part in places:
            wanted[part] = True
        self._slot = np.full(len(wanted), -1, np.int32)
        lengths, count = [np.zeros(1, np.int64)], 0
        for batch in texts_of(collection):
            place = index.places(batch["doc_id"])
            chosen = np.flatnonzero((place >= 0) & (place < len(wanted)))
            chosen = chosen[wanted[place[chosen]]]
            data, begins = text_bytes(batch["text"].gather(chosen))
            self._file.write(data[begins[0] : begins[-1]].tobytes())
            self._slot[place[chosen]] = np.arange(count, count + len(chosen))
            count += len(chosen)
            lengths.append(np.diff(begins))
        lacking = int((wanted & (self._slot < 0)).sum())
        if lacking:
            source = "the collection" if isinstance(collection, pl.DataFrame) else os.fspath(collection)
            raise EvenrankError(f"{lacking} of the scored documents are not in {source}")
        self._file.flush()
        offsets = np.cumsum(np.concatenate(lengths))
        stored = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) if offsets[-1] else b""
        self._texts = pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(stored))

    def take(self, places: Array) -> pa.Array:
        """The texts of the documents at ``places``, as a pyarrow column."""
        import pyarrow as pa

        assert self._texts is not None
        return self._texts.take(pa.array(self._slot[places])).cast(pa.string())


_TEXTS = 1 << 15


def id_table(lists: SampledLists, documents: Documents) -> pa.Table:
    """The format ``groups``; the group of a document without a label is null."""
    import pyarrow as pa

    values = {"doc_id": _arrow(lists.doc_id), "label": _numbers(lists.relevance.astype(np.int32, copy=False))}
    if documents.sides is not None:
        sides = pl.Series(documents.sides[lists.place].astype(np.int8, copy=False))
        if documents.labelled:
            sides = sides.set(pl.Series(np.isnan(documents.bias(lists.place))), None)
        values["group"] = sides.to_arrow()
    starts = _numbers(lists.starts.astype(np.int32))
    columns = {name: pa.ListArray.from_arrays(starts, column) for name, column in values.items()}
    return pa.table({"query_id": _arrow(lists.query_id), **columns})


def _arrow(texts: pl.Series) -> pa.Array:
    import pyarrow as pa

    return texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())


def _numbers(values: Array) -> pa.Array:
    # By way of polars: pyarrow.array would import pandas.
    return pl.Series(values).to_arrow()


def write_texts(
    lists: list[SampledLists], writer: TableWriter, format: str, n: int, texts: TextFile, queries: pl.DataFrame
) -> None:
    """The formats that contain texts."""
    import pyarrow as pa

    known = IdIndex([queries["query_id"].cast(pl.String)])
    query_texts = queries["text"]
    for chunk in lists:
        asked = query_texts.gather(known.places(chunk.query_id))
        # Parts of whole queries with some ten thousand texts.
        cuts = np.unique(np.searchsorted(chunk.starts, np.arange(0, chunk.starts[-1] + _TEXTS, _TEXTS)))
        cuts = cuts.clip(max=len(chunk.query_id))
        for start, end in itertools.pairwise(np.unique(np.append(0, cuts)).tolist()):
            first, last = chunk.starts[start], chunk.starts[end]
            starts, place = chunk.starts[start : end + 1] - first, chunk.place[first:last]
            relevance, query = chunk.relevance[first:last], _arrow(asked[start:end])
            if format == "labeled-list":
                offsets = pa.array(starts, pa.int32())
                docs = pa.ListArray.from_arrays(offsets, texts.take(place))
                labels = pa.ListArray.from_arrays(offsets, pa.array(relevance, pa.int32()))
                writer.write(pa.table({"query": query, "docs": docs, "labels": labels}))
            elif format == "labeled-pair":
                of_query = np.repeat(np.arange(end - start), np.diff(starts))
                relevant = pa.array((relevance >= 1).astype(np.float32), pa.float32())
                columns = {"query": query.take(pa.array(of_query)), "passage": texts.take(place), "label": relevant}
                writer.write(pa.table(columns))
            else:
                writer.write(_tuples(query, starts, chunk.positives[start:end], place, n, texts))


def _tuples(query: pa.Array, starts: Array, positives: Array, place: Array, n: int, texts: TextFile) -> pa.Table:
    import pyarrow as pa

    enough = np.flatnonzero(np.diff(starts) - positives == n)
    of_query = np.repeat(enough, positives[enough])
    begins = np.cumsum(positives[enough]) - positives[enough]
    nth = np.arange(len(of_query)) - np.repeat(begins, positives[enough])
    columns = {"anchor": query.take(pa.array(of_query)), "positive": texts.take(place[starts[of_query] + nth])}
    first = starts[of_query] + positives[of_query]
    for number in range(n):
        columns[f"negative_{number + 1}"] = texts.take(place[first + number])
    return pa.table(columns)


Format = Literal["groups", "labeled-list", "labeled-pair", "n-tuple"]


@checked
def write_negatives(
    run: Annotated[
        object,
        opt.Option("The first-stage run, with each query's lines together.", metavar="RUN", reads=True),
    ],
    *,
    qrels: Annotated[object, opt.Option("Qrels or irds:NAME.", reads=True)],
    out: Annotated[PathLike, opt.Option("The file to write: .parquet or .jsonl.", panel="Output")],
    collection: opt.MaybeCollection = None,
    queries: opt.MaybeQueries = None,
    n: Annotated[int, opt.Option("Negatives per query.", range=opt.COUNT)] = 20,
    share: Annotated[float, opt.Option("Share of them chosen by bias; 0: all at random.", range=opt.SHARE)] = 0.6,
    beta: Annotated[
        Literal["abs_tf", "count", "one_minus_neutrality"],
        opt.Option("How bias is measured.", metavar="HOW", rare=True),
    ] = "abs_tf",
    depth: Annotated[int, opt.Option("Documents of each query to sample from.", range=opt.COUNT, rare=True)] = 1000,
    gendered_only: Annotated[
        bool, opt.Option("Choose no document without bias as a biased negative.", rare=True)
    ] = False,
    seed: Annotated[int, opt.Option("Seed of the random negatives.", range=opt.SEED, rare=True)] = 0,
    format: Annotated[
        Literal["groups", "labeled-list", "labeled-pair", "n-tuple"],
        opt.Option(
            "groups: for evenrank train; the others: for sentence-transformers.", metavar="FORM", panel="Output"
        ),
    ] = "groups",
    quiet: bool = True,
    **groups: Unpack[opt.GroupOptions],
) -> dict[str, Any]:
    """Sample negatives by their bias and at random. OUT.manifest.json and .parquet count them.

    The training lists have the judged relevant documents first.

    ``out`` ends in ``.parquet`` or ``.jsonl``. ``format``:

    - ``groups``: ``query_id``, ``doc_id`` (list), ``label`` (list), which ``evenrank train`` takes as ``data.groups``;
      and ``group`` (list), the side of each document (+1, −1, 0) by ``tf_words``, if poles and ``tf_words`` are known,
      or by its label (null without one);
    - ``labeled-list``: ``query``, ``docs`` (list), ``labels`` (list): :func:`evenrank.train`, LambdaLoss and the other
      list losses of sentence-transformers' CrossEncoderTrainer;
    - ``labeled-pair``: ``query``, ``passage``, ``label`` (1 or 0): its BinaryCrossEntropyLoss;
    - ``n-tuple``: ``anchor``, ``positive``, ``negative_1`` … ``negative_n``, a row for each relevant document:
      MultipleNegativesRankingLoss; queries with fewer than ``n`` negatives are left out.

    Positives come first, labelled by their grade, then the biased part, then the random part (see :func:`sample`).
    ``groups``: as :func:`evenrank.audit` takes them (:class:`evenrank.options.GroupOptions`). With a group table, only
    the last three formats need the collection's texts; they need ``queries`` too. Of labels, ``abs_tf`` is the
    difference of their weights; a document without a label is unknown: it is never chosen for its bias, may be drawn at
    random, and the manifest counts it.

    Writes ``.manifest.json``, which is returned, and ``.manifest.parquet``, a row for each query, beside ``out``: all
    files or none.

    Raises InputError for bad files; EvenrankError for a setting out of range, documents that are not in the collection,
    queries without a text, labels beside ``scores`` or what counts words, labels that know no candidate, and if no
    query is left.
    """
    require_fast("a sample of negatives")
    settings = Settings(n, share, gendered_only, seed, depth)
    form = _form(out)
    source = GroupSource(collection, **groups)
    _check_given(source, queries, format)
    outputs = [Path(out), Path(f"{os.fspath(out)}.manifest.json"), Path(f"{os.fspath(out)}.manifest.parquet")]
    check_outputs(outputs, (run, queries, qrels, collection, source.scores, source.labels, source.lexicon))
    made = Provenance("evenrank.mitigation.negatives.write_negatives")
    made.add("run", run).add("queries", queries).add("qrels", qrels)
    source.note(made)
    made.ahead(True)
    judged = as_qrels(qrels)
    texts = None if queries is None else as_queries(queries)
    documents_in = None if collection is None else as_collection(collection)
    source = replace(source, collection=documents_in)
    first_stage = as_run(run)
    documents = documents_of(source, beta, quiet)
    sampler = Sampler(judged, documents, settings, texts, first_stage.described)
    # Each file's errors in its own context; no file gets its name before all are written.
    with atomic_path(outputs[0]) as data:
        with progress("queries", quiet=quiet) as advance, TableWriter(data, form) as writer:
            lists = _counted(map(sampler.lists, whole_queries(first_stage.table)), advance)
            if format == "groups":
                for chunk in lists:
                    writer.write(id_table(chunk, documents))
                sampler.check()
            else:
                assert texts is not None
                assert documents_in is not None
                # Their ids are not needed again.
                compact = [replace(chunk, doc_id=pl.Series(dtype=pl.String)) for chunk in lists]
                sampler.check()
                with TextFile(outputs[0].parent) as stored:
                    stored.fill([chunk.place for chunk in compact], documents.index, documents_in)
                    write_texts(compact, writer, format, n, stored, texts)
        if not writer.rows:
            raise EvenrankError(
                f"{arg('format', 'n-tuple')}: no query has {n} negatives; {arg.n} sets how many are drawn"
            )
        settings_used = {
            "run": first_stage.name,
            "format": format,
            "beta": beta,
            **asdict(settings),
            **documents.settings,
        }
        manifest = manifest_of(sampler, settings_used, writer.rows) | {"provenance": made.to_dict()}
        with atomic_path(outputs[1]) as manifest_json:
            manifest_json.write_text(json_text(manifest) + "\n", encoding="utf-8")
            with atomic_path(outputs[2]) as manifest_table:
                sampler.per_query().write_parquet(manifest_table)
    return manifest


def _check_given(source: GroupSource, queries: object, format: str) -> None:
    """Raises EvenrankError if the texts, scores or labels that a format needs are missing."""
    if source.collection is None and format != "groups":
        raise EvenrankError(f"{arg('format', format)}: the documents' texts are needed: give {arg.collection}")
    if source.collection is None and not source.described:
        raise EvenrankError(
            f"the documents' texts, scores or labels are needed: give {arg.collection}, {arg.scores} or {arg.labels}"
        )
    if queries is None and format != "groups":
        raise EvenrankError(f"{arg('format', format)}: the queries' texts are needed: give {arg.queries}")


def _form(out: PathLike) -> Form:
    suffix = Path(out).suffix
    if suffix == ".parquet":
        return "parquet"
    if suffix == ".jsonl":
        return "jsonl"
    raise EvenrankError(f"{arg.out}: expected a name that ends in .parquet or .jsonl, found {quoted(os.fspath(out))}")


def _counted(lists: Iterable[SampledLists], advance: Callable[[int], None]) -> Iterator[SampledLists]:
    for chunk in lists:
        advance(len(chunk.query_id))
        yield chunk


def stream_negatives(
    chunks: Iterable[pl.DataFrame],
    samples: Mapping[Path, Settings],
    *,
    collection: str,
    qrels: pl.DataFrame,
    name: str = "bm25",
    lexicon: Lexicon | None = None,
    tokens: Tokens | None = None,
) -> None:
    """Writes a file of training lists (Parquet, format ``groups``) for each of ``samples``, by its settings.

    ``chunks``: the table of a run in parts of whole queries; the files are those that :func:`write_negatives` makes of
    that run, with ``lexicon`` and ``tokens``. ``name``: that of the run.

    Raises EvenrankError for documents that are not in the collection, and if no query is left.
    """
    require_fast("a sample of negatives")
    documents = documents_of(GroupSource(collection, lexicon=lexicon, tokens=tokens), "abs_tf", True)
    # The files get their names when all are whole.
    with ExitStack() as files:
        open_: list[tuple[Path, Sampler, TableWriter]] = []
        for out, settings in samples.items():
            writer = files.enter_context(TableWriter(files.enter_context(atomic_path(out)), "parquet"))
            open_.append((out, Sampler(qrels, documents, settings, None, name), writer))
        for chunk in chunks:
            for _, sampler, writer in open_:
                writer.write(id_table(sampler.lists(chunk), documents))
        for out, sampler, writer in open_:
            sampler.check()
            used = {"run": name, "format": "groups", "beta": "abs_tf", **asdict(sampler.settings), **documents.settings}
            manifest = manifest_of(sampler, used, writer.rows)
            write_text(Path(f"{out}.manifest.json"), json_text(manifest) + "\n")
