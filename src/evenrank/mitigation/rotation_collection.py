"""Rotation of a table or a whole collection, with the answers that belong to it."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evenrank._version import __version__
from evenrank.engines.hashing import fnv
from evenrank.engines.progress import progress
from evenrank.engines.ray import Cluster, Engine, check_engine, write_parts
from evenrank.engines.shards import Shard, shard_batches, shards_of
from evenrank.engines.streams import Form, TableWriter, check_tsv_ids, form_of, in_order
from evenrank.io import EvenrankError, Provenance, atomic_path, check_apart, check_outputs, scan_collection
from evenrank.io.errors import quoted
from evenrank.io.ranges import check_ranges
from evenrank.io.tables import text_bytes
from evenrank.io.texts import map_passages
from evenrank.io.types import Array

from .rotated_answers import Rotated, RotatedAnswers
from .rotation_cut import ABBREVIATIONS, MODES, Mode, mixed_seed

if TYPE_CHECKING:
    import pyarrow as pa


@functools.cache
def _abbreviation_hashes() -> Array:
    return np.array(sorted(fnv(word.encode()) for word in ABBREVIATIONS), dtype=np.uint64)


def rotate_texts(table: pl.DataFrame, seed: int = 0, mode: Mode = "word") -> tuple[pl.Series, Array, Array]:
    """The rotated texts of ``doc_id``, ``text``; the number of words moved to the end and of all words [N] int32.

    The cut depends on the seed and the document's id alone, so it is the same on any machine and for any batch. Raises
    EvenrankError for an unknown mode and a negative seed.
    """
    _check(seed, mode)
    data, starts, moved, words = _rotated(table, seed, mode, lines=False)
    return _column(data, starts), moved, words


def _rotated(table: pl.DataFrame, seed: int, mode: Mode, *, lines: bool) -> tuple[Array, Array, Array, Array]:
    """The rotated texts, or ``lines`` of them, as bytes [B] and their starts [N + 1]; words moved, words [N] int32."""
    # The compiler takes half a second to import.
    from . import _rotating as _kernel

    ids, id_starts = text_bytes(table["doc_id"])
    data, starts = text_bytes(table["text"])
    return _kernel.rotate_bytes(
        ids,
        id_starts,
        data,
        starts[:-1],
        starts[1:],
        np.uint64(mixed_seed(seed)),
        mode == "sentence",
        _abbreviation_hashes(),
        lines,
    )


def _column(data: Array, starts: Array) -> pl.Series:
    import pyarrow as pa

    texts = pl.from_arrow(pa.LargeStringArray.from_buffers(len(starts) - 1, pa.py_buffer(starts), pa.py_buffer(data)))
    assert isinstance(texts, pl.Series)
    return texts.alias("text")


def _check(seed: int, mode: str) -> None:
    if mode not in MODES:
        raise EvenrankError(f"`mode`: expected word or sentence, found {quoted(mode)}")
    check_ranges(seed=seed)


# parameters, long: those of `evenrank rotate`, each described.
def rotate_collection(
    collection: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    answers: str | os.PathLike[str] | None = None,
    answers_out: str | os.PathLike[str] | None = None,
    mode: Mode = "word",
    seed: int = 0,
    workers: int | None = None,
    engine: Engine = "local",
    cluster: Cluster | None = None,
    quiet: bool = True,
) -> Rotated:
    """Rotates every document of a collection in one streaming pass; the same bytes for any number of ``workers``.

    ``out``: TSV, JSONL or Parquet, by its name (TSV unless it ends in ``.jsonl`` or ``.parquet``). ``answers``: a SQuAD
    file whose paragraphs are documents of the collection; its contexts and answer spans (realigned first, see
    :func:`evenrank.io.squad.load_squad`) move along into ``answers_out``, without the answers that a cut splits.
    ``OUT.manifest.json`` records the settings, the counts, and which answers were split. Files appear whole or not at
    all.

    ``engine="ray"``: on a Ray cluster (``cluster`` sets its size); ``out`` is then a folder of parts with the same
    rows, ids are not compared over the whole collection, and a second call resumes an interrupted one.

    Raises EvenrankError for a setting out of range, InputError for input that cannot be read, for a paragraph that the
    collection lacks, and for an id that a TSV cannot represent.
    """
    _check(seed, mode)
    if (answers is None) != (answers_out is None):
        raise EvenrankError("answers are read from one file and written to another: name both")
    form = form_of(out)
    files = [f"{os.fspath(out)}.manifest.json", answers_out]
    check_apart([out, *files], [collection, answers])
    check_outputs(files if engine == "ray" else [out, *files])
    made = Provenance("evenrank.mitigation.rotation.rotate_collection")
    made.add("collection", collection).add("answers", answers).ahead(True)
    spans = None if answers is None else RotatedAnswers(answers, seed, mode)
    if engine == "ray":
        done = _rotated_on_ray(collection, out, spans, mode, seed, cluster or Cluster(), quiet)
    else:
        check_engine(engine)
        with progress("documents", quiet=quiet) as advance:
            run = functools.partial(map_passages, collection, workers=workers)
            done = _rotate_into(out, form, run, seed, mode, advance, spans)
    sources = {"collection": os.fspath(collection), "answers_file": None if answers is None else os.fspath(answers)}
    settings = {"evenrank": __version__, **sources, "mode": mode, "seed": seed}
    with atomic_path(f"{os.fspath(out)}.manifest.json") as manifest, ExitStack() as stack:
        if spans is not None and answers_out is not None:
            done = spans.noted(done)
            file = stack.enter_context(atomic_path(answers_out))
            file.write_text(json.dumps(spans.data, ensure_ascii=False), encoding="utf-8")
        values = {**settings, **done.to_dict(), "provenance": made.to_dict()}
        manifest.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    return done


@dataclass(frozen=True, slots=True)
class _Batch:
    """A rotated batch as its file will hold it, with its numbers of documents, of those that stay, and of words."""

    encoded: pa.Table | memoryview
    documents: int
    unmoved: int
    words: int
    table: pl.DataFrame | None


Run = Callable[[Callable[[pl.DataFrame], _Batch]], Iterator[_Batch]]
"""Applies a function to each batch of a collection."""


def _rotate_into(
    out: str | os.PathLike[str],
    form: Form,
    run: Run,
    seed: int,
    mode: Mode,
    advance: Callable[[int], None],
    spans: RotatedAnswers | None,
) -> Rotated:
    unmoved = total = 0
    with atomic_path(out) as part, TableWriter(part, form) as writer:

        def work(batch: pl.DataFrame) -> _Batch:
            table = None
            if form != "tsv" or spans is not None:
                data, starts, moved, words = _rotated(batch, seed, mode, lines=False)
                table = pl.DataFrame([batch["doc_id"], _column(data, starts)])
            if form == "tsv":
                check_tsv_ids(batch["doc_id"], out)
                data, _, moved, words = _rotated(batch, seed, mode, lines=True)
                encoded: pa.Table | memoryview = data.data
            else:
                assert table is not None
                encoded = writer.encode(table)
            kept = table if spans is not None else None
            return _Batch(encoded, batch.height, int((moved == 0).sum()), int(words.sum()), kept)

        def write(batch: _Batch) -> _Batch:
            writer.append(batch.encoded, batch.documents)
            return batch

        # Written beside the reading of the next ones.
        for batch in in_order(write, run(work), 1):
            if spans is not None and batch.table is not None:
                spans.check(batch.table)
            unmoved += batch.unmoved
            total += batch.words
            advance(batch.documents)
        if spans is not None:
            spans.complete()
    return Rotated(writer.rows, unmoved, total)


def _rotated_on_ray(
    collection: str | os.PathLike[str],
    out: str | os.PathLike[str],
    spans: RotatedAnswers | None,
    mode: Mode,
    seed: int,
    cluster: Cluster,
    quiet: bool,
) -> Rotated:
    form = form_of(out)
    settings = {"command": "rotate", "mode": mode, "seed": seed, "form": form}
    write = functools.partial(_rotate_shard, seed=seed, mode=mode, form=form)
    counts = write_parts(shards_of(collection), out, form, settings, write, cluster, quiet=quiet)
    if spans is not None:
        for batch in scan_collection(out, unique=False):
            spans.check(batch)
        spans.complete()
    return Rotated(*(sum(one[name] for one in counts) for name in ("rows", "unmoved", "words")))


def _rotate_shard(shard: Shard, path: str, seed: int, mode: Mode, form: Form) -> dict[str, int]:
    def run(work: Callable[[pl.DataFrame], _Batch]) -> Iterator[_Batch]:
        return map(work, shard_batches(shard))

    done = _rotate_into(path, form, run, seed, mode, lambda _: None, None)
    return {"rows": done.documents, "unmoved": done.unmoved, "words": done.words}
