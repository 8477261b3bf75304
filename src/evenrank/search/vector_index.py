"""An index of a model's vectors, or of its weights of terms: built, opened and searched."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix

from evenrank import options as opt
from evenrank.files import EvenrankError, InputError, Run, as_batches, as_queries
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, quoted
from evenrank.files.progress import progress
from evenrank.files.wording import counted
from evenrank.models.load import Prompts
from evenrank.models.stored import downloaded_model
from evenrank.models.text_encoders import Encoded, StoredEncoder, TextEncoder, find_encoder, given_encoder

from .encoded_windows import BATCHES, LARGEST_HALF, EncodingJob, read_rows, write_windows
from .exact_search import Floats, Halves, Ints, search_exact
from .expansion import RM3
from .index_folder import (
    Encoding,
    IndexWriter,
    Manifest,
    begin_digest,
    changed_collection,
    check_files,
    truncation_notes,
)
from .mapped import Texts, read_turns
from .postings import Batch, Gathered, Postings, new_postings

LIBRARIES = ("numpy", "sentence-transformers", "transformers", "torch")
"""Libraries whose version can change a vector."""


@dataclass
class _Found:
    """What a search found: ``documents`` and ``scores`` [Q, k], the first ``count`` [Q] of each row."""

    documents: Ints
    scores: Floats
    count: NDArray[np.int64]
    notes: list[str]


class VectorIndex:
    """An index of vectors ("dense") or of weights of terms ("sparse"), its files mapped; see :func:`open_index`."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self._ids = Texts(manifest, "ids", manifest.documents)
        self._model: Mapping[str, object] = manifest.model or {}
        self._encoder: tuple[object, TextEncoder] | None = None
        self._searcher = _Dense(self) if manifest.kind == "dense" else _Sparse(self)

    @classmethod
    def open(cls, manifest: Manifest) -> VectorIndex:
        """The index of a manifest. Raises InputError if its files do not fit each other."""
        return cls(manifest)

    def encoder(self, model: object = None, encoding: Encoding | None = None) -> TextEncoder:
        """The model that the index was made with, loaded; see :meth:`search`."""
        return self._loaded(model, encoding or Encoding())

    @checked
    def search(
        self,
        queries: object,
        k: Annotated[int, opt.COUNT] = 1000,
        *,
        rm3: RM3 | None = None,
        weighted: bool = False,
        name: str | None = None,
        quiet: bool = False,
        model: object = None,
        encoding: Encoding | None = None,
    ) -> Run:
        """The first ``k`` documents of each query by the model's similarity, as a run.

        The model is loaded from where it was when the index was made, or from ``model`` (a folder, a name on the hub;
        a loaded model for an index of one), and must have the same digest. ``encoding``: how queries are encoded
        (``batch_size``, ``device``; ``precision``, ``query_prompt``: in place of the index's). Ties are broken by
        descending document id, also at rank ``k``. The run's notes and card name the model and the prompts.

        Raises EvenrankError for a setting that is BM25's; InputError for a model that has changed, and for an index
        that is damaged or was cut since.
        """
        for option, given in (("rm3", rm3 is not None), ("weighted", weighted)):
            if given:
                raise EvenrankError(
                    f"{arg(option)}: only for BM25, and {self.manifest.path} is a {self.manifest.kind} index"
                )
        how = encoding or Encoding()
        table = as_queries(queries)
        encoder = self._loaded(model, how)
        name = name or encoder.name
        with progress("encoding queries", table.height, quiet=quiet) as advance:
            rows = encoder.queries(table["text"].to_list())
            advance(table.height)
        _check_queries(rows, encoder.name)
        check_files(self.manifest)
        found = self._searcher.search(rows, k, quiet)
        check_files(self.manifest)
        prompt = encoder.query_prompt
        empty = int((table["text"].str.strip_chars() == "").sum())
        if empty:
            found.notes.append(f"{counted(empty, 'query')} without a word, ranked by the vector of an empty text")
        others = (*self._other_versions(), *self._other_precision(encoder), *self._changed)
        notes = [f"{name}: {note}" for note in (*found.notes, *others)]
        notes += truncation_notes(self._model, name)
        if prompt:
            notes.append(f"{name}: each query is put after the prompt {quoted(prompt)}")
        if self._prompt("document"):
            notes.append(f"{name}: each document was put after the prompt {quoted(self._prompt('document'))}")
        card = {
            "stage": "retrieve",
            "index": self.manifest.card(),
            "depth": k,
            "query_encoder": encoder.facts(),
        }
        return Run(name, self._table(table, found), tuple(notes), card=card)

    def _table(self, queries: pl.DataFrame, found: _Found) -> pl.DataFrame:
        wide = found.documents.shape[1]
        rank = np.broadcast_to(np.arange(1, wide + 1, dtype=np.uint32), found.documents.shape)
        present = rank <= found.count[:, None]
        if not np.isfinite(found.scores[present]).all():
            raise EvenrankError("the scores of a query are not finite: the numbers of its vector are too large")
        # Rows are already grouped by query and ranked, without repeated documents.
        return pl.DataFrame(
            [
                queries["query_id"].gather(np.repeat(np.arange(queries.height), found.count)).cast(pl.String),
                self._ids.gather(pl.Series(found.documents[present])).alias("doc_id"),
                pl.Series("score", found.scores[present]).cast(pl.Float64),
                pl.Series("rank", rank[present]),
            ]
        )

    def _loaded(self, model: object, how: Encoding) -> TextEncoder:
        """The encoder of the queries. Raises InputError unless it is the one that the index was made with."""
        wanted = (model, how.batch_size, how.device, how.precision, how.query_prompt)
        if self._encoder is None or self._encoder[0] != wanted:
            self._encoder = (wanted, self._load(model, how))
        return self._encoder[1]

    def _load(self, model: object, how: Encoding) -> TextEncoder:
        folder, recorded = self.manifest.path, self._model.get("sha256")
        query = self._prompt("query") if how.query_prompt is None else how.query_prompt
        prompts = Prompts(query, self._prompt("document"))
        if model is not None and not isinstance(model, str | os.PathLike):
            if recorded is not None:
                raise EvenrankError(
                    f"{arg.model}: expected the folder or the name of the index's model, found a loaded one"
                )
            encoder = given_encoder(model, how.batch_size, prompts)
        else:
            stored = self._stored(model, how, prompts)
            if stored.sha256 != recorded:
                raise InputError(
                    folder, f"the model {stored.path} is not the one that the index was made with, or has changed since"
                )
            encoder = stored.load(how.batch_size)
        if encoder.sparse != (self.manifest.kind == "sparse"):
            raise InputError(folder, f"the model {encoder.name} does not fit an index of the kind {self.manifest.kind}")
        return encoder

    def _stored(self, model: str | os.PathLike[str] | None, how: Encoding, prompts: Prompts) -> StoredEncoder:
        folder = self.manifest.path
        place = model if model is not None else self._model.get("path")
        if not isinstance(place, str | os.PathLike):
            raise InputError(folder, f"the index was made with a loaded model: give that as {arg.model}")
        if model is None and os.path.isabs(place) and not Path(place).is_dir():
            raise InputError(folder, f"its model is no longer in {os.fspath(place)}: give its folder as {arg.model}")
        if model is None and not Path(place).is_dir() and downloaded_model(str(place)) is None:
            # What an index from elsewhere names is not downloaded unasked.
            raise InputError(
                folder, f"its model {place} was not downloaded: give that name as {arg.model} to download it"
            )
        kind = "sparse" if self.manifest.kind == "sparse" else "bi"
        precision = how.precision
        if precision is None and self._model.get("precision") in ("float32", "bfloat16"):
            precision = str(self._model["precision"])
        return find_encoder(place, kind, device=how.device, precision=precision, prompts=prompts)

    def _prompt(self, which: str) -> str:
        """The prompt that the index was made with."""
        return str(self._model.get(f"{which}_prompt") or "")

    @cached_property
    def _changed(self) -> list[str]:
        return changed_collection(self.manifest)

    def _other_precision(self, encoder: TextEncoder) -> list[str]:
        """A note if queries are encoded in another precision than documents were."""
        own, now = self._model.get("precision"), encoder.facts().get("precision")
        return [] if own in (None, now) else [f"the index was made in {own}, and the queries are encoded in {now}"]

    def _other_versions(self) -> list[str]:
        """A note if a library has another version than when the index was made."""
        made = self.manifest.versions
        changed = [
            f"{name} {made[name]} (now {now})" for name in LIBRARIES if made.get(name, now := version(name)) != now
        ]
        return [f"the index was made with {', '.join(changed)}"] if changed else []


class _Dense:
    """Searches vectors."""

    def __init__(self, index: VectorIndex) -> None:
        manifest = index.manifest
        self._index = index
        self._turns = read_turns(manifest)
        self.vectors: Halves = manifest.array("vectors.npy", np.float16, manifest.documents)

    def search(self, queries: Encoded, k: Annotated[int, opt.COUNT], quiet: bool) -> _Found:
        """The first ``k`` of each query."""
        width = self.vectors.shape[1]
        if queries.shape[1] != width:
            raise InputError(
                self._index.manifest.path, f"its vectors have {width} numbers, and the queries' {queries.shape[1]}"
            )
        index = self._index
        with progress("searching", len(queries), quiet=quiet) as advance:
            try:
                documents, scores = search_exact(self.vectors, *self._turns, queries, k, advance)
            except ValueError:
                raise InputError(
                    index.manifest.path, "the index is damaged: its vectors or their order cannot be used"
                ) from None
        full = np.full(len(queries), documents.shape[1], np.int64)
        return _Found(documents, scores, full, [f"exact search, vectors of {width} numbers in float16"])


class _Sparse:
    """Searches weights of terms."""

    def __init__(self, index: VectorIndex) -> None:
        self._index = index
        self._postings = Postings.open(index.manifest)

    def search(self, queries: Encoded, k: Annotated[int, opt.COUNT], quiet: bool) -> _Found:
        """The first ``k`` of each query; documents without one of its terms are left out."""
        index = self._index
        assert isinstance(queries, csr_matrix)
        if queries.shape[1] != self._postings.terms:
            raise InputError(
                index.manifest.path,
                f"its documents have weights of {self._postings.terms} terms, and the queries of {queries.shape[1]}",
            )

        def search_some(own: slice) -> tuple[Ints, Floats, NDArray[np.int64]]:
            some = queries[own]
            return self._postings.search(some.indices, some.data, some.indptr.astype(np.int64), k)

        parts = []
        with progress("searching", queries.shape[0], quiet=quiet) as advance:
            for part in self._postings.in_threads(queries.shape[0], k, search_some):
                parts.append(part)
                advance(len(part[0]))
        documents, scores, count = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        notes = [f"weights of {self._postings.terms} terms"]
        empty = int((count == 0).sum())
        if empty:
            has = "has" if empty == 1 else "have"
            notes.append(f"{counted(empty, 'query')} {has} no term of a document and no documents")
        if empty == queries.shape[0]:
            raise EvenrankError(f"none of the {empty} queries has a term of a document")
        return _Found(documents, scores, count, notes)


def _check_queries(rows: Encoded, name: str) -> None:
    values = rows if isinstance(rows, np.ndarray) else rows.data
    largest = float(np.abs(values).max(initial=0.0))
    if not largest <= LARGEST_HALF:
        raise EvenrankError(
            f"{name}: the vector of a query has numbers that are not finite or beyond {LARGEST_HALF:.0f}"
        )
    if not isinstance(rows, np.ndarray) and float(values.min(initial=0.0)) < 0:
        raise EvenrankError(f"{name}: expected weights of terms from 0, found a negative one")


def build_vector_index(
    collection: object,
    out: str | os.PathLike[str],
    model: object,
    encoding: Encoding,
    *,
    quiet: bool = False,
) -> Manifest:
    """Builds an index of the vectors of ``model`` in the folder ``out``; see :func:`evenrank.build_index`.

    Of a collection in files and a model in a folder, an interrupted build goes on where it stopped, and writes the same
    bytes; no window of texts is encoded twice. Raises EvenrankError for vectors that are not finite or beyond float16;
    InputError for a model that cannot be used; MissingExtraError without the extras that are needed.
    """
    digest = begin_digest(collection)
    encoder = _encoder(model, encoding)
    window = BATCHES * encoding.batch_size
    settings: dict[str, object] = {
        "batch_size": encoding.batch_size,
        "window": window,
        "precision": encoding.precision or "auto",
        "query_prompt": encoding.query_prompt,
        "document_prompt": encoding.document_prompt,
    }
    versions = {name: version(name) for name in LIBRARIES}
    found = digest()
    made_from = None
    if isinstance(model, str | os.PathLike) and found["sha256"] is not None:
        made_from = {"collection": found, "model": encoder.facts(), "versions": versions}
    kind = "sparse" if encoder.sparse else "dense"
    with IndexWriter(out, kind, settings, made_from=made_from) as writer:
        sizes = write_windows(as_batches(collection), writer, window, quiet=quiet)
        facts = EncodingJob(encoder, writer.folder.absolute(), sizes).run(writer.work, quiet=quiet)
        width = writer.work.done[0]["width"]
        rows = (read_rows(writer.folder, number, width) for number in range(len(sizes)))
        if encoder.sparse:
            _write_weights(writer, rows, width, encoder.name)
        else:
            vectors = writer.new_array("vectors.npy", np.float16, sum(sizes), width)
            for number, part in enumerate(rows):
                vectors[number * sizes[0] : number * sizes[0] + sizes[number]] = part
        # Again: it must not have changed since.
        return writer.finish(sum(sizes), digest(), model=facts, versions=versions)


def _encoder(model: object, encoding: Encoding) -> TextEncoder:
    """What encodes, loaded."""
    prompts = Prompts(encoding.query_prompt, encoding.document_prompt)
    if not isinstance(model, str | os.PathLike):
        given = [arg(name) for name in ("device", "precision", "kind") if getattr(encoding, name) is not None]
        if given:
            raise EvenrankError(f"{', '.join(given)}: only for a model given by its folder or its name on the hub")
        return given_encoder(model, encoding.batch_size, prompts)
    settings = {"device": encoding.device, "precision": encoding.precision}
    return find_encoder(model, encoding.kind, **settings, prompts=prompts).load(encoding.batch_size)


def _write_weights(writer: IndexWriter, rows: Iterator[Encoded], terms: int, name: str) -> None:
    """Writes the postings of all windows. Raises EvenrankError, which names the model, for a negative weight."""
    with Gathered(writer.file("postings.part")) as gathered:
        start = 0
        for part in rows:
            # By term, and then by document.
            columns = csc_matrix(part)
            if (columns.data < 0).any():
                raise EvenrankError(f"{name}: expected weights of terms from 0, found a negative one")
            term = np.repeat(np.arange(terms, dtype=np.int32), np.diff(columns.indptr))
            gathered.gather(Batch(term, columns.indices + np.int32(start), columns.data))
            start += columns.shape[0]
        starts = gathered.starts(terms)
        if not starts[-1]:
            raise EvenrankError(f"{name}: no document has a term with a weight")
        gathered.by_term(starts, *new_postings(writer, starts))
