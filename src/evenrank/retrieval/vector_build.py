"""Building an index of a model's vectors, or of its weights of terms."""

from __future__ import annotations

import os
from importlib.metadata import version

import numpy as np
import polars as pl

from evenrank.io import EvenrankError, as_batches
from evenrank.io.ranges import check_ranges
from evenrank.rankers.load import Prompts
from evenrank.rankers.text_encoders import StoredEncoder, TextEncoder, find_encoder, given_encoder

from .bm25 import turns
from .encoded_windows import BATCHES, DenseRows, EncodingJob, SparseRows, write_windows
from .encoding import Encoding
from .index_folder import IndexWriter, Manifest, begin_digest
from .mapped import DocIds, write_array
from .sparse_postings import write_postings
from .vector_index import LIBRARIES


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
    check_ranges(batch_size=encoding.batch_size)
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
    resume = None
    if isinstance(model, str | os.PathLike) and found["sha256"] is not None:
        resume = {"collection": found, "model": _identity(encoder, encoding), "versions": versions}
    kind = "sparse" if encoder.sparse else "dense"
    with IndexWriter(out, kind, settings, resume=resume) as writer:
        sizes = write_windows(as_batches(collection), writer, window, quiet=quiet)
        files = SparseRows() if encoder.sparse else DenseRows()
        job = EncodingJob(encoder, writer.folder.absolute(), sizes, files, encoding.batch_size)
        if not encoder.sparse:
            writer.file("vectors.bin").touch()
        facts = job.run(encoding.cluster if encoding.engine == "ray" else None, quiet=quiet)
        count = sum(sizes)
        turn, by_turn = turns(_ids(writer, count))
        write_array(writer.file("turn.bin"), turn, np.int32)
        write_array(writer.file("by-turn.bin"), by_turn, np.int32)
        if encoder.sparse:
            write_postings(writer, sizes, job.width(), encoder.name)
        # Again: it must not have changed since.
        return writer.finish(count, digest(), model=facts, versions=versions)


def _encoder(model: object, encoding: Encoding) -> StoredEncoder | TextEncoder:
    """What encodes: loaded here, or found for the workers of a cluster to load."""
    prompts = Prompts(encoding.query_prompt, encoding.document_prompt)
    if not isinstance(model, str | os.PathLike):
        if encoding.engine == "ray":
            raise EvenrankError(
                "`engine='ray'`: expected a folder or a name on the hub as `model`, found a loaded model"
            )
        given = [f"`{name}`" for name in ("device", "precision", "kind") if getattr(encoding, name) is not None]
        if given:
            raise EvenrankError(f"{', '.join(given)}: only for a model given by its folder or its name on the hub")
        return given_encoder(model, encoding.batch_size, prompts)
    settings = {"device": encoding.device, "precision": encoding.precision}
    stored = find_encoder(model, encoding.kind, **settings, prompts=prompts)
    return stored if encoding.engine == "ray" else stored.load(encoding.batch_size)


def _identity(encoder: StoredEncoder | TextEncoder, encoding: Encoding) -> dict[str, object]:
    """What an unfinished index says of the model, and of where it computes."""
    if isinstance(encoder, StoredEncoder):
        where = f"ray {encoder.ranker.device} {bool(encoding.cluster.gpus)}"
        return {"sha256": encoder.sha256, "precision": encoder.ranker.precision, "device": where}
    return encoder.facts()


def _ids(writer: IndexWriter, count: int) -> pl.Series:
    """The ids that :func:`write_windows` wrote."""
    files: dict[str, dict[str, object]] = {"ids-offsets.bin": {}, "ids-text.bin": {}}
    unfinished = Manifest(writer.kind, count, {}, {}, None, {}, files, writer.folder)
    return DocIds(unfinished)[np.arange(count)]
