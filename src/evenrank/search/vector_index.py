"""An index of a model's vectors, or of its weights of terms: built, opened and searched."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix

from evenrank.files import EvenrankError, InputError, Run, as_batches
from evenrank.files.errors import arg, quoted
from evenrank.files.progress import progress
from evenrank.files.wording import counted
from evenrank.models.load import downloaded_model
from evenrank.models.scorers import Truncation
from evenrank.models.text_encoders import Encoded, StoredEncoder, TextEncoder, find_encoder, given_encoder

from .encoded_windows import BATCHES, check_rows, encode_windows, read_rows
from .exact_search import Floats, Halves, Ints, search_exact
from .index_folder import Encoding, FirstStage, HowToSearch, IndexWriter, Manifest, begin_digest
from .mapped import Texts, read_turns
from .postings import Batch, Gathered, Postings, found_rows, new_postings, run_table

LIBRARIES = ("numpy", "sentence-transformers", "transformers", "torch")
"""Libraries whose version can change a vector."""


class VectorIndex(FirstStage):
    """An index of vectors or of weights of terms, in a folder.

    The model is loaded from where it was when the index was made, or from ``model`` (a folder, a name on the hub; a
    loaded model for an index of one), and must have the same digest. ``encoding``: how queries are encoded
    (``batch_size``, ``device``; ``precision``, ``query_prompt``: in place of the index's). Ties are broken by
    descending document id, also at rank ``k``. A run's notes and card name the model and the prompts.
    """

    manifest: Manifest

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest)
        self._ids = Texts(manifest, "ids", manifest.documents)
        self._model: Mapping[str, object] = manifest.model or {}
        self._encoder: tuple[object, TextEncoder] | None = None

    @abstractmethod
    def _first(self, queries: Encoded, k: int, quiet: bool) -> tuple[pl.DataFrame, list[str]]:
        """The first ``k`` of each query (:func:`.postings.found_rows`), and notes."""

    def encoder(self, model: object = None, encoding: Encoding | None = None) -> TextEncoder:
        """The encoder of the queries. Raises InputError unless it is the one that the index was made with."""
        how = encoding or Encoding()
        wanted = (model, how.batch_size, how.device, how.precision, how.query_prompt)
        if self._encoder is None or self._encoder[0] != wanted:
            self._encoder = (wanted, self._load(model, how))
        return self._encoder[1]

    def _search(self, queries: pl.DataFrame, k: int, how: HowToSearch) -> Run:
        for option, is_set in (("rm3", how.rm3 is not None), ("weighted", how.weighted)):
            if is_set:
                raise EvenrankError(
                    f"{arg(option)}: only for BM25, and {self.manifest.path} is a {self.manifest.kind} index"
                )
        encoder = self.encoder(how.model, how.encoding)
        name = how.name or encoder.name
        with progress("encoding queries", queries.height, quiet=how.quiet) as advance:
            rows = encoder.queries(queries["text"].to_list())
            advance(queries.height)
        check_rows(rows, encoder.name, lambda _: "a query")
        if encoder.sparse:
            _check_weights(rows, encoder.name)
        hits, own = self._first(rows, k, how.quiet)
        prompt = encoder.query_prompt
        empty = int((queries["text"].str.strip_chars() == "").sum())
        if empty:
            own.append(f"{counted(empty, 'query')} without a word, ranked by the vector of an empty text")
        notes = [f"{name}: {note}" for note in (*own, *self._other_versions(), *self._other_precision(encoder))]
        truncated = self._model.get("truncated")
        notes += Truncation(**truncated).notes(name) if isinstance(truncated, dict) else ()
        if prompt:
            notes.append(f"{name}: each query is put after the prompt {quoted(prompt)}")
        if self._prompt("document"):
            notes.append(f"{name}: each document was put after the prompt {quoted(self._prompt('document'))}")
        index = {"kind": self.manifest.kind}
        card = {"stage": "retrieve", "index": index, "depth": k, "query_encoder": encoder.facts()}
        return Run(name, run_table(hits, queries["query_id"], self._ids), tuple(notes), card=card)

    def _load(self, model: object, how: Encoding) -> TextEncoder:
        folder, recorded = self.manifest.path, self._model.get("sha256")
        query = self._prompt("query") if how.query_prompt is None else how.query_prompt
        prompts = {"query_prompt": query, "document_prompt": self._prompt("document")}
        if model is not None and not isinstance(model, str | os.PathLike):
            if recorded is not None:
                raise EvenrankError(
                    f"{arg.model}: expected the folder or the name of the index's model, found a loaded one"
                )
            encoder = given_encoder(model, how.batch_size, **prompts)
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

    def _stored(self, model: str | os.PathLike[str] | None, how: Encoding, prompts: Mapping[str, str]) -> StoredEncoder:
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
        return find_encoder(place, kind, device=how.device, precision=precision, **prompts)

    def _prompt(self, which: str) -> str:
        """The prompt that the index was made with."""
        return str(self._model.get(f"{which}_prompt") or "")

    def _other_precision(self, encoder: TextEncoder) -> list[str]:
        """A note if queries are encoded in another precision than documents were."""
        own, now = self._model.get("precision"), encoder.facts().get("precision")
        return [] if own in (None, now) else [f"the index was made in {own}, and the queries are encoded in {now}"]

    def _other_versions(self) -> list[str]:
        """A note if a library has another version than when the index was made."""
        old = self.manifest.versions
        changed = [
            f"{name} {old[name]} (now {now})" for name in LIBRARIES if old.get(name, now := version(name)) != now
        ]
        return [f"the index was made with {', '.join(changed)}"] if changed else []


class DenseIndex(VectorIndex):
    """An index of vectors."""

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest)
        self._turns = read_turns(manifest)
        self._vectors: Halves = manifest.array("vectors.npy", np.float16, manifest.documents)

    def _first(self, queries: Encoded, k: int, quiet: bool) -> tuple[pl.DataFrame, list[str]]:
        width = self._vectors.shape[1]
        if queries.shape[1] != width:
            raise InputError(
                self.manifest.path, f"its vectors have {width} numbers, and the queries' {queries.shape[1]}"
            )
        with progress("searching", len(queries), quiet=quiet) as advance:
            documents, scores = search_exact(self._vectors, *self._turns, queries, k, advance)
        count = np.full(len(queries), documents.shape[1], np.int64)
        notes = [f"exact search, vectors of {width} numbers in float16"]
        return found_rows(documents, scores, count, "the numbers of its vector"), notes


class SparseIndex(VectorIndex):
    """An index of weights of terms; documents without a term of a query are left out."""

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest)
        self._postings = Postings.open(manifest)

    def _first(self, queries: Encoded, k: int, quiet: bool) -> tuple[pl.DataFrame, list[str]]:
        assert isinstance(queries, csr_matrix)
        if queries.shape[1] != self._postings.terms:
            raise InputError(
                self.manifest.path,
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
        return found_rows(documents, scores, count, "the numbers of its vector"), notes


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
    record = digest()
    made_from = None
    if isinstance(model, str | os.PathLike) and record["sha256"] is not None:
        made_from = {"collection": record, "model": encoder.facts(), "versions": versions}
    total = None
    if not isinstance(collection, Iterator):
        # Read to its end first: an error in it should not come after hours.
        total = sum(batch.height for batch in as_batches(collection))
    kind = "sparse" if encoder.sparse else "dense"
    with IndexWriter(out, kind, settings, made_from=made_from) as writer:
        batches = as_batches(collection)
        facts, sizes = encode_windows(batches, encoder, writer, window, total=total, quiet=quiet)
        width = writer.work.done[0]["width"]
        rows = (read_rows(writer.folder, number) for number in range(len(sizes)))
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
    prompts = {"query_prompt": encoding.query_prompt, "document_prompt": encoding.document_prompt}
    if not isinstance(model, str | os.PathLike):
        arguments = [arg(name) for name in ("device", "precision", "kind") if getattr(encoding, name) is not None]
        if arguments:
            raise EvenrankError(f"{', '.join(arguments)}: only for a model given by its folder or its name on the hub")
        return given_encoder(model, encoding.batch_size, **prompts)
    settings = {"device": encoding.device, "precision": encoding.precision}
    return find_encoder(model, encoding.kind, **settings, **prompts).load(encoding.batch_size)


def _check_weights(rows: Encoded, name: str) -> None:
    if rows.min() < 0:
        raise EvenrankError(f"{name}: expected weights of terms from 0, found a negative one")


def _write_weights(writer: IndexWriter, rows: Iterator[Encoded], terms: int, name: str) -> None:
    """Writes the postings of all windows. Raises EvenrankError, which names the model, for a negative weight."""
    with Gathered(writer.file("postings.part")) as gathered:
        start = 0
        for part in rows:
            _check_weights(part, name)
            # By term, and then by document.
            columns = csc_matrix(part)
            term = np.repeat(np.arange(terms, dtype=np.int32), np.diff(columns.indptr))
            gathered.gather(Batch(term, columns.indices + np.int32(start), columns.data))
            start += columns.shape[0]
        starts = gathered.starts(terms)
        if not starts[-1]:
            raise EvenrankError(f"{name}: no document has a term with a weight")
        gathered.by_term(starts, *new_postings(writer, starts))
