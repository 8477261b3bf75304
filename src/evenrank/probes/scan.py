"""Scan: what search loses of a collection, the largest loss first, without a judgement.

Read the passages and make queries of them, ask a retriever and BM25, find losses by the rules of
:mod:`evenrank.probes.losses`; :mod:`evenrank.probes.scan_page` shows them.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, cast

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.files import EvenrankError, Provenance, Run, as_collection, as_queries
from evenrank.files.arguments import checked
from evenrank.files.convert import Strings, is_path
from evenrank.files.errors import arg, quoted
from evenrank.files.json_values import LEFT_OUT
from evenrank.files.markdown import section_lines
from evenrank.files.reading import is_index
from evenrank.files.types import Array
from evenrank.groups.labels import as_labels
from evenrank.groups.table import largest_groups
from evenrank.models.endpoints import note_model
from evenrank.results.finding import phrases
from evenrank.results.page import Page
from evenrank.results.result import Result
from evenrank.search.index_folder import Encoding

from .known_items import LONG_SENTENCE, KnownItems
from .losses import Documents, Loss, Results, find_losses, rank_to_find
from .passages import PART, Passages
from .retrieving import BM25, Searching, SearchResults

__all__ = ["Found", "Loss", "ScanResult", "scan", "scan_queries"]

SAMPLE = 600
LONG = 200
"""More words than most models of passages read."""
_EXCERPTS = 50
"""Passages of a loss whose text a page shows."""
_FEWEST_WORDS = 20
"""The shortest passages that are advised."""


@dataclass(frozen=True, slots=True)
class Found:
    """How many sentences bring their own passage back.

    Attributes:
        share: Of the sentences, with BM25's (``bm25``); found is among the first ``rank``.
        sentences: How many were asked for, of ``of`` in the drawn passages, of which ``without_query`` have no query.
        undivided: The drawn passages that are a single sentence of more than 60 words.
        words: The share of the queries of rare words that do, with BM25's (``bm25_words``); None for a log.
    """

    share: float
    bm25: float
    rank: int
    sentences: int
    of: int
    without_query: int
    undivided: int
    words: float | None
    bm25_words: float | None


@dataclass(frozen=True, slots=True)
class Other:
    """The retriever that a scan is against.

    Attributes:
        losses, found: As of :class:`ScanResult`.
        lost: Passages that it finds by a sentence and the scanned one by none; ``gained``: the reverse.
    """

    name: str
    losses: tuple[Loss, ...]
    found: Found | None
    lost: tuple[str, ...]
    gained: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ScanResult(Result):
    """The result of :func:`evenrank.scan`.

    Attributes:
        name: The retriever.
        losses: What is lost, by cause, in order of share; those that are not ``named`` are within chance, or small.
        found: What is found; None where a log was asked alone.
        documents: Of the collection, of which ``passages`` were drawn; ``queries``: how many were asked, ``unlisted``:
            of how many the retriever has no list.
        k: The length of the lists.
        by_file: How many ids of the retriever were matched with files, as they are no ids of passages; 0: none.
        log: Whether the places are those of a log of queries.
        against: The other retriever.
        asked: The queries with the rank of each retriever, ``rank_NAME``, null beyond k.
        texts: Beginnings of documents that the page shows; ``lines``: where sections stand, ``path:line`` by id.
    """

    name: str
    losses: tuple[Loss, ...]
    found: Found | None
    documents: int
    passages: int
    queries: int
    unlisted: int
    k: int
    by_file: int = 0
    log: bool = False
    against: Other | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    asked: pl.DataFrame = field(default_factory=pl.DataFrame, metadata=LEFT_OUT, compare=False)
    texts: Mapping[str, str] = field(default_factory=dict, metadata=LEFT_OUT, compare=False)
    lines: Mapping[str, str] = field(default_factory=dict, metadata=LEFT_OUT, compare=False)

    @property
    def named(self) -> tuple[Loss, ...]:
        """The losses that are shown, the largest first."""
        return tuple(loss for loss in self.losses if loss.named)

    def lost_ids(self) -> pl.DataFrame:
        """The documents of all named losses: ``cause``, ``doc_id``."""
        rows = [(loss.cause, doc_id) for loss in self.named for doc_id in loss.documents]
        return pl.DataFrame(rows, {"cause": pl.String, "doc_id": pl.String}, orient="row")

    def page(self) -> Page:
        """The scan as a page: losses and tables."""
        from .scan_page import scan_page

        return scan_page(self)


# --- read and ask -----------------------------------------------------------------------------------------------------


@checked
def scan_queries(
    collection: object,
    *,
    sample: Annotated[int, opt.COUNT] = SAMPLE,
    seed: Annotated[int, opt.SEED] = 0,
) -> pl.DataFrame:
    """The queries of a scan: ``query_id``, ``text``, ``doc_id``, ``start``, ``end``, ``place``, ``word`` and ``whole``.

    For a search that is not here: ask them there, and scan the ``run`` that it gives, with the same settings; see
    :func:`evenrank.scan`.

    Raises EvenrankError for a setting out of range, and if no sentence has a query.
    """
    return Passages.of(as_collection(collection)).items(sample, seed).queries


def describe_collection(collection: object, sample: int, seed: int, out: str) -> tuple[pl.DataFrame, str]:
    """The queries of a scan, and what is known of a collection before anything is searched; ``out``: their file."""
    passages = Passages.of(as_collection(collection))
    items = passages.items(sample, seed)
    path = shlex.quote(os.fspath(collection)) if is_path(collection) else "COLLECTION"
    counts = {
        "passages": len(passages.ids),
        "repeats": len(passages.ids) - passages.texts.n_unique(),
        "long": int((passages.lengths > LONG).sum()),
        "words": LONG,
        "queries": items.queries.height,
        "drawn": items.passages,
    }
    values = {"collection": path, "out": out, **counts}
    texts = phrases("scan").text("described", **values), phrases("scan").text("asked", **values)
    return items.queries, "\n".join(texts)


def stand_in_ranks(lists: Array, own: Array, sentences: Sequence[str], passages: Passages) -> tuple[Array, Array]:
    """The rank of each query's own passage [Q], or of the first that holds its sentence or is alike; else infinite.
    And whether the passage itself, or one that is alike, is in the list [Q].

    ``lists`` [Q, k]: numbers of passages; ``own`` [Q]; ``sentences``: what each query asks for, as it stands.
    """
    size, positions = len(passages.ids), np.arange(1, lists.shape[1] + 1)
    ranks = np.where(lists == own[:, None], positions, np.inf).min(axis=1, initial=np.inf)
    query, at = np.nonzero((positions < ranks[:, None]) & (lists >= 0) & (lists < size))
    documents = lists[query, at]
    stands = passages.alike(own[query], documents)
    copies = np.isfinite(ranks)
    copies[query[stands]] = True
    texts = dict(zip(documents.tolist(), passages.texts.gather(documents), strict=True))
    for row in np.flatnonzero(~stands).tolist():
        stands[row] = sentences[int(query[row])] in texts[int(documents[row])]
    np.minimum.at(ranks, query[stands], at[stands] + 1.0)
    return ranks, copies


@dataclass(frozen=True, slots=True)
class _Scan:
    """What has been read: the passages (or whole files, with each query's own), queries, and groups by id."""

    passages: Passages
    items: KnownItems
    log: pl.DataFrame | None
    groups: pl.DataFrame
    drawn: Passages
    """The passages that queries are made of, whatever the lists are of."""

    @property
    def asked(self) -> pl.DataFrame:
        """All queries, those of the log behind the others: ``query_id``, ``text``."""
        both = (self.items.queries, self.log)
        return pl.concat([table.select("query_id", "text") for table in both if table is not None])

    def documents(self, lists: Array, ids: pl.Series, found: SearchResults) -> Documents:
        """The collection beside the numbered lists [Q, k] and the ``ids`` behind the numbers."""
        own = self.passages.ids
        size = len(own)
        table = own.alias("doc_id").to_frame().join(self.groups, on="doc_id", how="left", maintain_order="left")
        number = table["group"].rank("dense").cast(pl.Int64) - 1
        # Zero vectors and missing ids are certain where an index is at hand.
        missing, zero = (np.zeros(size, np.bool_) for _ in range(2))
        if found.indexed is not None:
            missing = ~own.is_in(found.indexed.implode()).to_numpy()
            zero = own.is_in(found.zero.implode()).to_numpy()
        seen = np.unique(lists[(lists >= 0) & (lists < size)])
        return Documents(
            ids,
            self.passages.lengths,
            number.fill_null(-1).to_numpy(),
            tuple(table["group"].drop_nulls().unique().sort().to_list()),
            self.passages.alike,
            self.passages.have_query,
            missing,
            zero,
            np.isin(np.arange(size), seen),
        )

    def numbered(self, found: SearchResults, k: int) -> tuple[Array, pl.Series]:
        """The lists of all queries [Q, k] in numbers, and the ids behind them: passages, then what is none."""
        queries = self.asked.select("query_id")
        rows = found.lists.filter(pl.col("rank") <= k).join(queries.with_row_index("query"), on="query_id", how="inner")
        others = rows.join(self.passages.numbers, on="doc_id", how="anti")["doc_id"].unique(maintain_order=True)
        ids = pl.concat([self.passages.ids, others])
        number = pl.DataFrame({"doc_id": ids}).with_row_index("number")
        rows = rows.join(number, on="doc_id", how="left")
        lists = np.full((queries.height, k), -1, np.int64)
        lists[rows["query"].to_numpy(), rows["rank"].to_numpy().astype(np.int64) - 1] = rows["number"].to_numpy()
        return lists, ids


def _by_file(found: SearchResults, passages: Passages) -> tuple[SearchResults, int]:
    """Lists of files in place of lists of ids that are paths of files, or their ends; and how many ids are.

    Raises EvenrankError where fewer than half of them are files either.
    """
    files = dict.fromkeys(passages.files)
    ends: dict[str, str | None] = {}
    for file in files:
        for end in _ends(file):
            ends[end] = None if end in ends else file
    matched: dict[str, str] = {}
    ids = found.lists["doc_id"].unique(maintain_order=True).to_list()
    for doc_id in ids:
        own, *others = _ends(doc_id.replace("\\", "/"))
        # A whole path behind whatever precedes it, or the end of one that no other file has.
        file = next((end for end in (own, *others) if end in files), ends.get(own))
        if file is not None:
            matched[doc_id] = file
    if 2 * len(matched) < len(ids) or not matched:
        three = [", ".join(map(quoted, some[:3])) for some in (ids, passages.ids.head(3).to_list())]
        raise EvenrankError(
            f"{found.name}: {len(ids) - len(matched):,} of its {len(ids):,} ids are neither passages nor files of the"
            f" collection: {three[0]}; the collection has {three[1]}"
        )
    lists = found.lists.with_columns(pl.col("doc_id").replace(matched))
    lists = lists.sort("query_id", "rank").unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    return replace(found, lists=lists.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id"))), len(matched)


def _ends(path: str) -> list[str]:
    """A path, and what is left of it without its first folders."""
    parts = path.split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]


def _with_files(read: _Scan) -> _Scan:
    """The same with whole files in place of passages."""
    own = read.drawn.ids.to_frame("doc_id").with_columns(file=read.drawn.files)
    queries = read.items.queries.join(own, on="doc_id", how="left", maintain_order="left")
    groups = read.groups.join(own, on="doc_id", how="inner").unique("file", keep="first", maintain_order=True)
    return replace(
        read,
        passages=read.passages.by_file(),
        items=replace(read.items, queries=queries.with_columns(doc_id="file").drop("file")),
        groups=groups.select(doc_id="file", group="group"),
    )


def _groups(ids: pl.Series, labels: object, column: Strings | None, neutral: Strings | None) -> pl.DataFrame:
    """``doc_id`` and ``group`` of each: its label, or without labels the first folder of its id."""
    if labels is None:
        # The first folder before the part.
        table = pl.DataFrame({"doc_id": ids, "group": ids.str.extract(rf"^([^{PART}/]*)/")})
    else:
        groups = as_labels(labels, [ids], group_column=column, neutral=neutral)
        largest = largest_groups(groups)
        names = [groups.groups[number] if number >= 0 else None for number in largest.tolist()]
        table = pl.DataFrame({"doc_id": groups.table["doc_id"], "group": pl.Series(names, dtype=pl.String)})
    return table.drop_nulls("group")


# --- find -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Measured:
    """What a retriever loses and finds, with the ranks of the known items [Q] and BM25's."""

    losses: tuple[Loss, ...]
    found: Found | None
    ranks: Array
    bm25: Array
    unlisted: int
    by_file: int
    read: _Scan


def _measure(found: SearchResults, read: _Scan, k: int) -> _Measured:
    """The losses of a retriever's lists."""
    ids = found.lists["doc_id"].unique()
    matched = 0
    if 2 * ids.is_in(read.passages.ids.implode()).sum() < len(ids):
        found, matched = _by_file(found, read.passages)
        read = _with_files(read)
    queries, passages = read.items.queries, read.passages
    lists, all_ids = read.numbered(found, k)
    bm25 = lists if found.name == BM25 and not matched else passages.search(read.asked["text"], k)
    own = queries.select("doc_id").join(passages.numbers, on="doc_id", how="left", maintain_order="left")["number"]
    number, whole = own.to_numpy(), queries["whole"].to_numpy()
    reads, sentences = None, queries["text"].to_list()
    if not matched:
        texts = dict(zip(read.drawn.ids, read.drawn.texts, strict=True))
        spans = queries.select("doc_id", "start", "end").iter_rows()
        sentences = [texts[doc_id][start:end] for doc_id, start, end in spans]
        reads = _read(found, queries.filter("whole"), texts)
    items = slice(0, queries.height)
    ranks, copies = stand_in_ranks(lists[items], number, sentences, passages)
    bm25_ranks, bm25_copies = (
        (ranks, copies) if bm25 is lists else stand_in_ranks(bm25[items], number, sentences, passages)
    )
    place = queries["place"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    word = queries["word"].to_numpy()
    every = Results(number, lists[items], bm25[items], ranks, bm25_ranks, copies, bm25_copies, place=place, word=word)
    answers = replace(every.part(whole), read=reads)
    places = every.part(~whole)
    if read.log is not None:
        rest = slice(queries.height, None)
        unknown, none = np.full(read.log.height, np.nan), np.full(read.log.height, -1)
        places = Results(none, lists[rest], bm25[rest], unknown, unknown, unknown, unknown, place=unknown, word=none)
    listed = found.lists["query_id"].unique()
    unlisted = len(lists) - len(listed)
    # A run of a log alone says nothing of answers.
    any_listed = queries["query_id"].is_in(listed.implode()).any()
    t = min(rank_to_find(len(passages.ids)), k)
    documents = read.documents(lists, all_ids, found)
    losses, share = find_losses(documents, answers if any_listed else None, places, k)
    if not any_listed:
        unlisted -= queries.height
    summary = None
    if share is not None:
        words = bm25_words = None
        if read.log is None and len(places.own):
            words, bm25_words = (float((r <= t).mean()) for r in (places.ranks, places.bm25_ranks))
        alone = pl.col("whole") & pl.col("place").is_null()
        undivided = queries.filter(alone & (pl.col("text").str.count_matches(" ") >= LONG_SENTENCE)).height
        counts = t, int(whole.sum()), read.items.sentences, read.items.without, undivided
        summary = Found(share, float((answers.bm25_ranks <= t).mean()), *counts, words, bm25_words)
    return _Measured(losses, summary, ranks, bm25_ranks, unlisted, matched, read)


def _read(found: SearchResults, queries: pl.DataFrame, texts: Mapping[str, str]) -> Array | None:
    """Whether a retriever reads each query's sentence to its end [Q]; None where that is unknown."""
    ids = queries["doc_id"].unique(maintain_order=True).to_list()
    to = found.reads_to([texts[doc_id] for doc_id in ids])
    if to is None:
        return None
    until = dict(zip(ids, to, strict=True))
    return queries["end"].to_numpy() <= np.array([until[doc_id] for doc_id in queries["doc_id"]])


# --- the call ---------------------------------------------------------------------------------------------------------


@checked
def scan(
    collection: opt.TheCollection,
    *,
    model: Annotated[
        object,
        opt.Option(
            "As for evenrank index or rerank, or bm25.",
            metavar="MODEL",
            panel="Model",
        ),
    ] = None,
    index: Annotated[
        object,
        opt.Option(
            "An index of the collection (evenrank index); with --model, made there.",
            metavar="DIR",
            reads=True,
            panel="Input",
        ),
    ] = None,
    run: Annotated[
        object,
        opt.Option(
            "What another search found for --save-queries.",
            reads=True,
            excludes=("model", "index", "url"),
            panel="Input",
        ),
    ] = None,
    queries: Annotated[
        object,
        opt.Option("A log of queries: who fills their lists, in place of rare words.", reads=True, panel="Input"),
    ] = None,
    against: Annotated[
        object,
        opt.Option("Another model, index or run: what is lost, gained.", metavar="OTHER", reads=True, panel="Input"),
    ] = None,
    labels: opt.Labels = None,
    group_column: opt.GroupColumn = None,
    neutral: opt.Neutral = None,
    k: Annotated[int, opt.Option("Passages per query.", range=opt.Range(10), rare=True)] = 100,
    sample: Annotated[
        int,
        opt.Option(
            "Passages to draw, whose sentences are asked for.", range=opt.COUNT, metavar="N", panel="Statistics"
        ),
    ] = 600,
    kind: opt.Kind = None,
    query_prompt: opt.QueryPrompt = None,
    document_prompt: opt.DocumentPrompt = None,
    batch_size: opt.BatchSize = 32,
    device: opt.Device = None,
    seed: Annotated[int, opt.Option("Seed of the sample.", range=opt.SEED, panel="Statistics", rare=True)] = 0,
    quiet: bool = True,
) -> ScanResult:
    """Find what search loses of a collection, the largest loss first. It needs no judgements.

    Of ``sample`` passages three sentences are asked for, as they stand: each should bring its passage back, or one that
    holds the sentence or shares nine tenths of the words. The same sentences are asked by their rarest words, to see
    who fills the first ten places of lists. BM25 over the same passages stands beside it, and shows what is the
    queries' own. The causes are tried in order, each on what the ones before it have left: another id, not in the
    index, late or cut off, a group, and otherwise; of places: ids of no document, repeats, hubs, short passages. One is
    named where its lower 99% limit is beyond 1% of the sentences or places.

    When it misleads: sentences of documents are no questions; a passage that says the same in other words does not
    stand for another.

    Args:
        collection: As for :func:`evenrank.retrieve`; also a folder of Markdown or text files.
        model: A folder, a name on the hub, a loaded model, a retriever of LangChain or LlamaIndex, or ``"bm25"``. A
            model that cannot search (a cross-encoder, an ``Endpoint``, a function) ranks BM25's first ``k``.
        index: An index of the collection, open or by its folder, in place of a model; with ``model``, the folder of its
            index, which is made if it is not there: an interrupted scan goes on, a later one finds the vectors.
        run: What another search found, in place of both, for the queries of :func:`evenrank.scan_queries` with the same
            ``sample`` and ``seed``, for those of the log ``queries``, or for all.
        queries: A log of queries, which need no judgements.
        against: Another model, index or run, for the same queries.
        labels: Groups of passages, as :func:`evenrank.audit` takes them; by default the first folder of their ids.

    Raises:
        EvenrankError: For a setting out of range; for none or several of ``model``, ``index`` and ``run``; if no
            sentence has a query; for a run of other queries, or of ids most of which are not the collection's.
    """
    sources = {name: value for name, value in (("model", model), ("index", index), ("run", run)) if value is not None}
    if not sources:
        raise EvenrankError(
            f"expected {arg.model}, {arg.index} or {arg.run} (a search elsewhere is asked evenrank.scan_queries)"
        )
    provenance = Provenance("evenrank.scan")
    role, retriever = next(iter(sources.items()))
    provenance.add("collection", collection)
    for name, value in ((role, retriever), ("against", against)):
        _note(provenance, name, value)
    for name, value in (("queries", queries), ("labels", labels)):
        if value is not None:
            provenance.add(name, value)
    provenance.ahead()
    passages = Passages.of(as_collection(collection))
    items = passages.items(sample, seed)
    log = None if queries is None else as_queries(queries)
    read = _Scan(passages, items, log, _groups(passages.ids, labels, group_column, neutral), passages)
    encoding = Encoding(
        batch_size=batch_size,
        device=device,
        kind=kind if kind in ("bi", "sparse") else None,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
    )
    search = Searching(as_collection(collection), passages, read.asked, k, encoding, kind, quiet)
    folder = cast("str | None", index) if len(sources) > 1 else None
    searched = [search.of_model(model, folder) if folder is not None else search.with_any(retriever, role)]
    if against is not None:
        searched.append(search.with_any(against, "against"))
    # Longer lists would show more than those that are cut.
    k = min(k, *(s.depth for s in searched), len(passages.ids))
    if k < 1:
        raise EvenrankError(f"{searched[0].name}: has no list of the queries that are asked")
    measured = [_measure(s, read, k) for s in searched]
    named = {"collection": collection if is_path(collection) else None, **sources, "against": against}
    settings: dict[str, object] = {
        name: os.fspath(value) if is_path(value) else type(value).__name__
        for name, value in named.items()
        if value is not None
    }
    settings |= {"sample": sample, "seed": seed, "k": k}
    subject = measured[0]
    losses = tuple(_with_command(loss, settings, searched[0], subject) for loss in subject.losses)
    other = None
    if against is not None:
        gone, gained = _changes(items.queries, measured)
        other = Other(searched[1].name, measured[1].losses, measured[1].found, gone, gained)
    shown = {doc_id for loss in losses if loss.named for doc_id in loss.documents[:_EXCERPTS]}
    ids = subject.read.passages.ids
    within = subject.read.passages.texts.filter(ids.is_in(list(shown)))
    return ScanResult(
        searched[0].name,
        losses,
        subject.found,
        len(passages.ids),
        items.passages,
        search.queries.height,
        subject.unlisted,
        k,
        subject.by_file,
        log is not None,
        other,
        settings,
        tuple(note for s in searched for note in s.notes),
        _asked(items.queries, searched, measured, read),
        dict(zip(ids.filter(ids.is_in(list(shown))), within, strict=True)),
        section_lines(collection, shown),
        provenance=provenance,
    )


def _note(made: Provenance, role: str, given: object) -> None:
    """Records a retriever among the inputs."""
    if given is None or (isinstance(given, str) and given == BM25):
        return
    if is_path(given) and (os.path.isfile(given) or is_index(given)):
        made.add(role, given, tree=is_index(given))
    elif isinstance(given, Run | pl.DataFrame | Mapping):
        made.add(role, given)
    else:
        note_model(made, role, given)


def _changes(queries: pl.DataFrame, measured: Sequence[_Measured]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Passages that the second finds by a sentence and the first by none, and the reverse."""
    t = rank_to_find(len(measured[0].read.passages.ids))
    table = queries.select("doc_id", "whole").with_columns(
        first=pl.Series(measured[0].ranks <= t), second=pl.Series(measured[1].ranks <= t)
    )
    by_passage = table.filter("whole").group_by("doc_id", maintain_order=True).agg(pl.col("first", "second").any())
    sides = (pl.col("second") & ~pl.col("first"), pl.col("first") & ~pl.col("second"))
    lost, gained = (tuple(by_passage.filter(side)["doc_id"].to_list()) for side in sides)
    return lost, gained


def _asked(
    queries: pl.DataFrame, searched: Sequence[SearchResults], measured: Sequence[_Measured], read: _Scan
) -> pl.DataFrame:
    """The queries with the rank of each retriever, and BM25's; ``length`` and ``group`` of their passages."""
    lengths = pl.DataFrame({"doc_id": read.drawn.ids, "length": read.drawn.lengths})
    queries = queries.join(lengths, on="doc_id", how="left", maintain_order="left")
    queries = queries.join(read.groups, on="doc_id", how="left", maintain_order="left")
    ranks = {s.name: measure.ranks for s, measure in zip(searched, measured, strict=True)}
    ranks = {**ranks, BM25: measured[0].bm25}
    columns = [
        pl.Series(f"rank_{name}", [None if np.isinf(rank) else int(rank) for rank in values], pl.Int64)
        for name, values in ranks.items()
    ]
    return queries.with_columns(columns)


def _with_command(loss: Loss, settings: Mapping[str, object], found: SearchResults, measured: _Measured) -> Loss:
    """A loss with what mends it, where a command here does."""
    collection = shlex.quote(str(settings.get("collection", "COLLECTION")))
    # Passages that are cut already are cut anew of their documents.
    path = str(settings.get("collection", ""))
    cut = path != "" and os.path.isfile(os.path.join(os.path.dirname(path), "documents.csv"))
    source = "DOCUMENTS" if cut else collection
    model = settings.get("model")
    command = None
    if loss.cause in ("another id", "not in the index", "wrong vector") and "run" not in settings:
        of_model = f" --model {shlex.quote(str(model))}" if model not in (None, BM25) else ""
        command = f"evenrank index {collection}{of_model} --out DIR"
    elif loss.cause in ("late", "cut off"):
        loss = replace(loss, evidence={**loss.evidence, "reads": found.reads})
        if found.reads is not None and loss.cause == "cut off" and isinstance(model, str):
            command = f"evenrank passages {source} --model {shlex.quote(model)} --out DIR"
        else:
            words = loss.evidence["edge"] or int(np.median(measured.read.drawn.lengths)) // 3
            command = f"evenrank passages {source} --tokens {max(_FEWEST_WORDS, words)} --out DIR"
    elif loss.cause in ("not found otherwise", "group"):
        command = "evenrank fuse"
    return replace(loss, command=command)
