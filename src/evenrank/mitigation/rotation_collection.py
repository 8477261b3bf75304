"""Rotation of a table or a whole collection, with the answers that belong to it."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack

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
from evenrank.io.types import Array

from .rotated_answers import Rotated, RotatedAnswers
from .rotation_cut import ABBREVIATIONS, MODES, Mode, mixed_seed


@functools.cache
def _abbreviation_hashes() -> Array:
    return np.array(sorted(fnv(word.encode()) for word in ABBREVIATIONS), dtype=np.uint64)


def rotate_texts(table: pl.DataFrame, seed: int = 0, mode: Mode = "word") -> tuple[pl.Series, Array, Array]:
    """The rotated texts of ``doc_id``, ``text``; the number of words moved to the end and of all words [N] int32.

    The cut depends on the seed and the document's id alone, so it is the same on any machine and for any batch. Raises
    EvenrankError for an unknown mode and a negative seed.
    """
    import pyarrow as pa

    from . import _rotating as _kernel

    _check(seed, mode)
    ids, id_starts = text_bytes(table["doc_id"])
    data, starts = text_bytes(table["text"])
    out, out_starts, moved, words = _kernel.rotate_bytes(
        ids, id_starts, data, starts, np.uint64(mixed_seed(seed)), mode == "sentence", _abbreviation_hashes()
    )
    array = pa.LargeStringArray.from_buffers(len(words), pa.py_buffer(out_starts), pa.py_buffer(out))
    texts = pl.from_arrow(array)
    assert isinstance(texts, pl.Series)
    return texts.alias("text"), moved, words


def _check(seed: int, mode: str) -> None:
    if mode not in MODES:
        raise EvenrankError(f"`mode`: expected word or sentence, found {quoted(mode)}")
    check_ranges(seed=seed)


def _rotate_batch(batch: pl.DataFrame, seed: int, mode: Mode) -> tuple[pl.DataFrame, Array, Array]:
    texts, moved, words = rotate_texts(batch, seed, mode)
    return batch.with_columns(texts), moved, words


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
            batches = scan_collection(collection)
            done = _rotate_into(out, form, batches, seed, mode, workers, advance, spans)
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


def _as_tsv(table: pl.DataFrame, words: Array, out: str | os.PathLike[str]) -> pl.DataFrame:
    """``table`` as lines can represent it; ``words``: how many its texts have [N]."""
    check_tsv_ids(table["doc_id"], out)
    if words.all():
        return table
    # Only a text of white space alone can still contain what ends a field or a line.
    return table.with_columns(pl.col("text").str.replace_all(r"[\t\r\n]", " "))


def _rotate_into(
    out: str | os.PathLike[str],
    form: Form,
    batches: Iterable[pl.DataFrame],
    seed: int,
    mode: Mode,
    workers: int | None,
    advance: Callable[[int], None],
    spans: RotatedAnswers | None,
) -> Rotated:
    unmoved = total = 0
    with atomic_path(out) as part, TableWriter(part, form) as writer:

        def work(batch: pl.DataFrame) -> tuple[pl.DataFrame, object, int, int]:
            table, moved, words = _rotate_batch(batch, seed, mode)
            held = _as_tsv(table, words, out) if form == "tsv" else table
            return table, writer.encode(held), int((moved == 0).sum()), int(words.sum())

        for table, encoded, whole, words in in_order(work, batches, workers):
            writer.append(encoded, table.height)
            if spans is not None:
                spans.check(table)
            unmoved += whole
            total += words
            advance(table.height)
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
    done = _rotate_into(path, form, shard_batches(shard), seed, mode, 1, lambda _: None, None)
    return {"rows": done.documents, "unmoved": done.unmoved, "words": done.words}
