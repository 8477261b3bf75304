"""Rotation: a passage's words turned round at a random place, so that where its answer stands says nothing.

Hofstätter et al., ECIR 2021, "Mitigating the position bias of transformer models in passage re-ranking" [POS], eq. 7:
n words (white-space separated), r uniform in 1 … n, the result words[r−1:] + words[:r−1], joined by single spaces.

When it misleads: a sentence that is cut in two reads badly, and a ranker trained on rotated text has learnt from text
that it will not meet (``--mode sentence`` cuts between sentences; its places are not quite uniform). An answer that the
cut splits is left out. It does not help where the answer is lost because the ranker reads too few words; and where
early answers are a fact of the texts that people ask about, a ranker without the preference may be the less effective
one.

Worked example: five words, cut before the third (r = 3, two words move to the end).

>>> from evenrank.mitigation.rotation import moved_span, rotated
>>> rotated("we drank tea there today", 2)
'tea there today we drank'
>>> moved_span("we drank tea there today", 9, 12, 2)
(0, 3)
"""

from __future__ import annotations

import functools
import io
import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl

from evenrank import __version__
from evenrank.io import EvenrankError, InputError, atomic_path, scan_collection
from evenrank.io.errors import shown
from evenrank.io.progress import progress
from evenrank.io.ray_engine import Cluster, Engine, check_engine, write_parts
from evenrank.io.shards import Shard, shard_batches, shards_of
from evenrank.io.squad import load_squad, paragraphs

Mode = Literal["word", "sentence"]
Done = TypeVar("Done")
Array = np.ndarray[Any, Any]
MODES = ("word", "sentence")
_OFFSET, _PRIME, _ALL = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
_WORD = re.compile(r"\S+")
_CLOSERS = "\"')]”’»"
_OPENERS = "\"'(["
ABBREVIATIONS = frozenset(
    (  # noqa: SIM905 - read more easily
        "mr mrs ms dr prof rev gen col capt lt sgt st jr sr inc ltd co corp vs etc e.g i.e cf al no nos vol pp fig figs"
        " eq approx est jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k u.n a.m p.m d.c ph.d"
    ).split(" ")
)
"""Words whose full stop ends no sentence."""


def mixed_seed(*parts: int) -> int:
    """A 64-bit seed from whole numbers from 0 (a seed; a seed and an epoch)."""
    value = 0
    for part in parts:
        value = _mix((value + part + 0x9E3779B97F4A7C15) & _ALL)
    return value


def _mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _ALL
    return value ^ (value >> 31)


def _fnv(data: bytes, value: int = _OFFSET) -> int:
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _ALL
    return value


def draw(doc_id: str, choices: int, seed: int) -> int:
    """A whole number from 0 to ``choices`` − 1, from the passage's id and a mixed seed alone."""
    return (_mix(_fnv(doc_id.encode(), _OFFSET ^ seed)) * choices) >> 64


def sentence_starts(words: Sequence[str]) -> list[int]:
    """The numbers of the words that begin a sentence, 0 first.

    A word ends a sentence with ``.``, ``!`` or ``?``, closing quotes and brackets aside; not an initial and none of
    ABBREVIATIONS. The next word begins one unless its first character is a small ASCII letter.
    """
    starts = [0]
    for number in range(1, len(words)):
        word = words[number - 1]
        while len(word.encode()) > 3 and word[-1] in _CLOSERS:
            word = word[:-1]
        if "a" <= words[number][0] <= "z" or word[-1] not in ".!?":
            continue
        if word[-1] == ".":
            stem = word[:-1].lstrip(_OPENERS)
            stem = "".join(c.lower() if c.isascii() else c for c in stem)
            if len(stem.encode()) <= 1 or stem in ABBREVIATIONS:
                continue
        starts.append(number)
    return starts


def cut_of(text: str, doc_id: str, seed: int, mode: Mode = "word") -> int:
    """How many words of a passage are moved to its end, 0 to n − 1 (r − 1 in eq. 7). ``seed``: a mixed one."""
    words = text.split()
    if not words:
        return 0
    if mode == "word":
        return draw(doc_id, len(words), seed)
    starts = sentence_starts(words)
    return starts[draw(doc_id, len(starts), seed)]


def rotated(text: str, cut: int) -> str:
    """words[cut:] + words[:cut], joined by single spaces; a text of white space alone stays as it is."""
    words = text.split()
    return " ".join([*words[cut:], *words[:cut]]) if words else text


def moved_span(text: str, start: int, end: int, cut: int) -> tuple[int, int] | None:
    """Where text[start:end] stands after :func:`rotated` (characters, end excluded); None where the cut splits it.

    White space inside the span becomes single spaces, that at its ends is left out. Raises ValueError for a span of
    white space alone.
    """
    inner = text[start:end]
    start += len(inner) - len(inner.lstrip())
    end -= len(inner) - len(inner.rstrip())
    if start >= end:
        raise ValueError("a span of white space alone")
    spans = [match.span() for match in _WORD.finditer(text)]
    first = next(i for i, (_, stop) in enumerate(spans) if stop > start)
    last = next(i for i, (_, stop) in enumerate(spans) if stop >= end)
    if first < cut <= last:
        return None
    order = [*range(cut, len(spans)), *range(cut)]
    place, places = 0, {}
    for number in order:
        places[number] = place
        place += spans[number][1] - spans[number][0] + 1
    return places[first] + start - spans[first][0], places[last] + end - spans[last][0]


# --- tables and collections ------------------------------------------------------------------------------------------


@functools.cache
def _abbreviation_hashes() -> Array:
    return np.array(sorted(_fnv(word.encode()) for word in ABBREVIATIONS), dtype=np.uint64)


def rotate_texts(table: pl.DataFrame, seed: int = 0, mode: Mode = "word") -> tuple[pl.Series, Array, Array]:
    """The texts of ``doc_id``, ``text`` rotated; with the words moved to the end [N] and the words [N], int32.

    The cut depends on the seed and the document's id alone, so the same on any machine and for any batch. Raises
    EvenrankError for an unknown mode and a negative seed.
    """
    import pyarrow as pa

    from . import _rotation_kernel

    _check(seed, mode)
    ids, id_starts = _bytes(table["doc_id"])
    data, starts = _bytes(table["text"])
    out, out_starts, moved, words = _rotation_kernel.rotate_bytes(
        ids, id_starts, data, starts, np.uint64(mixed_seed(seed)), mode == "sentence", _abbreviation_hashes()
    )
    array = pa.LargeStringArray.from_buffers(len(words), pa.py_buffer(out_starts), pa.py_buffer(out))
    texts = pl.from_arrow(array)
    assert isinstance(texts, pl.Series)
    return texts.alias("text"), moved, words


def _bytes(texts: pl.Series) -> tuple[Array, Array]:
    """UTF-8 bytes, and where each text starts and the last one ends [N + 1]."""
    import pyarrow as pa

    column = texts.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_string())
    _, offsets, data = column.buffers()
    starts = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, dtype=np.uint8), starts


def _check(seed: int, mode: str) -> None:
    if mode not in MODES:
        raise EvenrankError(f"mode: expected word or sentence, found {shown(mode)}")
    if seed < 0:
        raise EvenrankError(f"seed: expected a whole number from 0, found {seed}")


def rotate_batches(
    batches: Iterable[pl.DataFrame], seed: int = 0, mode: Mode = "word", *, workers: int | None = None
) -> Iterator[tuple[pl.DataFrame, Array, Array]]:
    """Batches of ``doc_id``, ``text`` rotated, in order, on ``workers`` threads (default: one a core); each with the
    words moved to the end and the words of its documents."""
    _check(seed, mode)
    return _in_order(lambda batch: _rotate_batch(batch, seed, mode), batches, workers)


def _rotate_batch(batch: pl.DataFrame, seed: int, mode: Mode) -> tuple[pl.DataFrame, Array, Array]:
    texts, moved, words = rotate_texts(batch, seed, mode)
    return batch.with_columns(texts), moved, words


def _in_order(
    work: Callable[[pl.DataFrame], Done], batches: Iterable[pl.DataFrame], workers: int | None
) -> Iterator[Done]:
    """What ``work`` makes of each batch, in order, on ``workers`` threads."""
    workers = workers or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Done]] = deque()
        for batch in batches:
            waiting.append(pool.submit(work, batch))
            # Bounded: the reader must not run ahead of the rotation.
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@dataclass(frozen=True, slots=True)
class Rotated:
    """What a rotation did: documents, those that stay as they are (cut before the first word, or empty), words; and of
    the answers, where there are any, those that moved along and those that the cut split, which are left out.

    split_answers: the question and the passage of each answer that was split.
    """

    documents: int
    unmoved: int
    words: int
    answers: int | None = None
    split: int | None = None
    split_answers: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


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
    file whose paragraphs are documents of the collection; its contexts and answer spans move along into
    ``answers_out``, without the answers that a cut splits. ``OUT.manifest.json`` says what was done, and which answers
    were split. Files appear whole or not at all.

    ``engine="ray"``: on a Ray cluster (``cluster`` says how much of it); ``out`` is then a folder of parts with the
    same rows, ids are not compared over the whole collection, and a second call goes on where the first was stopped.

    Raises EvenrankError for a setting, InputError for input that cannot
    be read, for an answer's paragraph that is not the collection's, and for an id that a TSV cannot hold.
    """
    _check(seed, mode)
    if (answers is None) != (answers_out is None):
        raise EvenrankError("answers are read from one file and written to another: name both")
    if os.fspath(out).endswith(".gz"):
        raise EvenrankError(f"{os.fspath(out)}: expected a TSV, .jsonl or .parquet to write, found .gz")
    _apart(collection, out, answers, answers_out)
    spans = None if answers is None else _Spans(answers, seed, mode)
    if engine == "ray":
        done = _rotated_on_ray(collection, out, spans, mode, seed, cluster or Cluster(), quiet)
    else:
        check_engine(engine)
        with progress("documents", quiet=quiet) as advance:
            batches = scan_collection(collection)
            done = _rotate_into(out, _form(out), batches, seed, mode, workers, advance, spans)
    with atomic_path(f"{os.fspath(out)}.manifest.json") as manifest, ExitStack() as stack:
        if spans is not None and answers_out is not None:
            done = replace(done, answers=spans.moved, split=len(spans.split), split_answers=tuple(spans.split))
            file = stack.enter_context(atomic_path(answers_out))
            file.write_text(json.dumps(spans.data, ensure_ascii=False), encoding="utf-8")
        named = {
            "collection": os.fspath(collection),
            "answers_file": None if answers is None else os.fspath(answers),
        }
        settings = {"evenrank": __version__, **named, "mode": mode, "seed": seed}
        manifest.write_text(json.dumps({**settings, **done.to_dict()}, indent=1) + "\n", encoding="utf-8")
    return done


def _form(out: str | os.PathLike[str]) -> str:
    return next((form for form in ("jsonl", "parquet") if os.fspath(out).rstrip("/").endswith(f".{form}")), "tsv")


def _rotate_into(
    out: str | os.PathLike[str],
    form: str,
    batches: Iterable[pl.DataFrame],
    seed: int,
    mode: Mode,
    workers: int | None,
    advance: Callable[[int], None],
    spans: _Spans | None,
) -> Rotated:
    documents = unmoved = total = 0
    with atomic_path(out) as part, _Writer(os.fspath(out), form, part) as writer:

        def work(batch: pl.DataFrame) -> tuple[pl.DataFrame, Any, int, int]:
            table, moved, words = _rotate_batch(batch, seed, mode)
            return table, writer.encode(table, words), int((moved == 0).sum()), int(words.sum())

        for table, encoded, whole, words in _in_order(work, batches, workers):
            writer.write(encoded)
            if spans is not None:
                spans.check(table)
            documents += table.height
            unmoved += whole
            total += words
            advance(table.height)
        if spans is not None:
            spans.complete()
    return Rotated(documents, unmoved, total)


def _rotated_on_ray(
    collection: str | os.PathLike[str],
    out: str | os.PathLike[str],
    spans: _Spans | None,
    mode: Mode,
    seed: int,
    cluster: Cluster,
    quiet: bool,
) -> Rotated:
    form = _form(out)
    settings = {"command": "rotate", "mode": mode, "seed": seed, "form": form}
    write = functools.partial(_rotate_shard, seed=seed, mode=mode, form=form)
    told = write_parts(shards_of(collection), out, form, settings, write, cluster, quiet=quiet)
    if spans is not None:
        for batch in scan_collection(out, unique=False):
            spans.check(batch)
        spans.complete()
    return Rotated(*(sum(one[name] for one in told) for name in ("rows", "unmoved", "words")))


def _rotate_shard(shard: Shard, path: str, seed: int, mode: Mode, form: str) -> dict[str, int]:
    done = _rotate_into(path, form, shard_batches(shard), seed, mode, 1, lambda _: None, None)
    return {"rows": done.documents, "unmoved": done.unmoved, "words": done.words}


def _apart(
    collection: str | os.PathLike[str],
    out: str | os.PathLike[str],
    answers: str | os.PathLike[str] | None,
    answers_out: str | os.PathLike[str] | None,
) -> None:
    """Raises EvenrankError where a file would be written over one of another kind; over its own input it may."""

    def place(path: str | os.PathLike[str]) -> str:
        return os.path.realpath(os.fspath(path))

    manifest = f"{os.fspath(out)}.manifest.json"
    kept = [(path, what) for path, what in ((collection, "the collection"), (answers, "the answers")) if path]
    pairs = [(out, path, what) for path, what in kept[1:]] + [(manifest, path, what) for path, what in kept]
    if answers_out is not None:
        others = (kept[0], (out, "the rotated collection"), (manifest, "the manifest"))
        pairs += [(answers_out, path, what) for path, what in others]
    for path, other, what in pairs:
        if place(path) == place(other):
            raise EvenrankError(f"{os.fspath(path)}: expected another file than that of {what}, found the same")


class _Spans:
    """A SQuAD file whose contexts are rotated as the documents of a collection are."""

    def __init__(self, path: str | os.PathLike[str], seed: int, mode: Mode) -> None:
        self.path = path
        self.data = load_squad(path)
        self.moved = 0
        self.split: list[tuple[str, str]] = []
        self._texts: dict[str, str] = {}
        self._met: set[str] = set()
        mixed = mixed_seed(seed)
        for doc_id, paragraph in paragraphs(self.data):
            context = paragraph["context"]
            cut = cut_of(context, doc_id, mixed, mode)
            text = rotated(context, cut)
            if self._texts.setdefault(doc_id, text) != text:
                raise InputError(path, f"two paragraphs have the document id {shown(doc_id)} and different texts")
            for question in paragraph["qas"]:
                query_id = str(question.get("query_id", question.get("id")))
                kept = self._answers(context, text, question["answers"], cut)
                self.moved += len(kept)
                self.split += [(query_id, doc_id)] * (len(question["answers"]) - len(kept))
                question["answers"] = kept
                # What SQuAD 2.0 has beside a question without an answer: moved, but no answer to count.
                if "plausible_answers" in question:
                    question["plausible_answers"] = self._answers(context, text, question["plausible_answers"], cut)
            paragraph["context"] = text
            paragraph["doc_id"] = doc_id
        self._wanted = pl.Series(list(self._texts), dtype=pl.String)

    def _answers(self, context: str, text: str, answers: list[dict[str, Any]], cut: int) -> list[dict[str, Any]]:
        kept = []
        for answer in answers:
            start = int(answer["answer_start"])
            end = start + len(answer["text"])
            if not answer["text"].strip() or context[start:end] != answer["text"]:
                found = shown(context[start:end])
                raise InputError(self.path, f"expected the answer {shown(answer['text'])} in its place, found {found}")
            span = moved_span(context, start, end, cut)
            if span is not None:
                kept.append({**answer, "text": text[span[0] : span[1]], "answer_start": span[0]})
        return kept

    def check(self, table: pl.DataFrame) -> None:
        """Compares a rotated batch with the paragraphs that are in it."""
        for doc_id, text in table.filter(pl.col("doc_id").is_in(self._wanted.implode())).iter_rows():
            if self._texts[doc_id] != text:
                raise InputError(self.path, f"the paragraph {shown(doc_id)} has another text in the collection")
            self._met.add(doc_id)

    def complete(self) -> None:
        """Raises InputError where the collection lacks a paragraph."""
        absent = [doc_id for doc_id in self._texts if doc_id not in self._met]
        if absent:
            first = ", ".join(map(shown, absent[:5]))
            raise InputError(self.path, f"{len(absent)} paragraphs are not in the collection: {first}")


class _Writer:
    """Writes batches of documents in the form that a file's name says; all but the writing itself on any thread."""

    def __init__(self, name: str, form: str, path: Path) -> None:
        self.name, self.form, self.path = name, form, path
        self._parquet: Any = None

    def __enter__(self) -> _Writer:
        if self.form != "parquet":
            self._stream = self.path.open("wb")
        return self

    def encode(self, table: pl.DataFrame, words: Array) -> Any:
        """A batch as bytes (Parquet: as a table); ``words``: how many its texts have [N]."""
        if self.form == "parquet":
            return table.to_arrow(compat_level=pl.CompatLevel.oldest())
        stream = io.BytesIO()
        if self.form == "jsonl":
            table.write_ndjson(stream)
        else:
            bad = table.filter(pl.col("doc_id").str.contains(r"[\t\r\n]"))["doc_id"]
            if len(bad):
                raise InputError(self.name, f"a TSV cannot hold the id {shown(bad[0])}: write .jsonl or .parquet")
            if not words.all():
                # Only a text of white space alone can still hold what ends a field or a line.
                table = table.with_columns(pl.col("text").str.replace_all(r"[\t\r\n]", " "))
            table.write_csv(stream, include_header=False, separator="\t", quote_style="never")
        return stream.getbuffer()

    def write(self, encoded: Any) -> None:
        """Writes what :meth:`encode` made."""
        if self.form != "parquet":
            self._stream.write(encoded)
            return
        import pyarrow.parquet as pq

        if self._parquet is None:
            self._parquet = pq.ParquetWriter(self.path, encoded.schema, compression="zstd")
        self._parquet.write_table(encoded)

    def __exit__(self, *_: object) -> None:
        if self.form != "parquet":
            self._stream.close()
        elif self._parquet is not None:
            self._parquet.close()
