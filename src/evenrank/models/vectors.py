"""Word vectors in memory and in files, or trained on a collection."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank import options as opt
from evenrank.files import EvenrankError, InputError, MissingExtraError, atomic_path, scan_collection
from evenrank.files.arguments import checked, seed_32
from evenrank.files.errors import quoted
from evenrank.files.reading import LINE_BYTES, Block, Headed, line_blocks, open_binary, read_bytes
from evenrank.files.tables import csv_drops
from evenrank.files.tokens import tokenize
from evenrank.files.types import Array

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Rows = tuple[int, ...]
Sets = tuple[tuple[str, ...], ...]


def unit_rows(rows: Array) -> Doubles:
    """Rows [N, D] scaled to length 1, in float64; zero rows stay zero."""
    matrix = np.asarray(rows, dtype=np.float64)
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    length[length == 0] = 1
    divided: Doubles = matrix / length
    return divided


def row_numbers(words: Sequence[str], wanted: Iterable[str]) -> dict[str, int]:
    """The row number of each of the ``wanted`` words that is in ``words``."""
    wanted_words = frozenset(wanted)
    return {word: row for row, word in enumerate(words) if word in wanted_words}


def words_of(sets: Sets) -> list[str]:
    """The distinct words of sets, in their order."""
    return list(dict.fromkeys(word for of in sets for word in of))


def first_words(words: Sequence[str], count: int = 5) -> str:
    """The first words, for a message."""
    return ", ".join(words[:count]) + (", …" if len(words) > count else "")


def one_blas_thread() -> AbstractContextManager[object]:
    """Restricts matrix products to the calling thread if threadpoolctl (of scikit-learn) is installed."""
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpool_limits(1, "blas")
    return limits


Lines = NDArray[np.int64]
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\r")
_BLOCK_BYTES = 1 << 24
_MOST_DIMENSIONS = 1 << 16


def is_binary(head: bytes) -> bool:
    """Whether the first bytes of a file are in word2vec's binary format: counts, then a word and floats."""
    first, _, rest = head.partition(b"\n")
    counts = _header(first)
    if counts is None:
        return False
    floats = rest.partition(b" ")[2][: 4 * counts[1]]
    if _CONTROL & set(floats):
        return True
    try:
        # The last character may be cut.
        floats[: len(floats) - 4].decode()
    except UnicodeDecodeError as error:
        return error.end < len(floats) - 4
    return False


def _header(line: bytes) -> tuple[int, int] | None:
    """The numbers of words and of dimensions if the first line consists of these two; else None."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() and len(field) < 10 for field in fields) and int(fields[1]) > 0:
        return int(fields[0]), int(fields[1])
    return None


def read_lines(
    path: str | os.PathLike[str], stream: Headed, limit: int | None, keep: pl.Series | None
) -> tuple[pl.Series, Floats]:
    """Words [V] and vectors [V, D] of a text file: a word and D numbers per line, separated by single spaces."""
    header = None
    dimensions = rows = 0
    parts: list[tuple[pl.Series, Floats, Lines]] = []
    for block in line_blocks(path, block_bytes=_BLOCK_BYTES, stream=stream):
        if not dimensions:
            first, _, rest = block.data.partition(b"\n")
            header = _header(first)
            dimensions = header[1] if header else len(first.split()) - 1
            if dimensions < 1:
                raise InputError(path, f"expected a word and numbers, found {_cut(first)}", line=1)
            if dimensions > _MOST_DIMENSIONS:
                raise InputError(path, f"expected at most {_MOST_DIMENSIONS} numbers, found {dimensions}", line=1)
            if header:
                block = Block(rest, 2, block.lines - 1)
        words, matrix, lines = _parse(path, block, dimensions)
        rows += len(words)
        taken = None if limit is None else len(words) - max(0, rows - limit)
        if taken is not None:
            words, matrix, lines = words[:taken], matrix[:taken], lines[:taken]
        if keep is not None:
            mask = words.is_in(keep.implode()).to_numpy()
            words, matrix, lines = words.filter(mask), matrix[mask], lines[mask]
        parts.append((words, matrix, lines))
        if limit is not None and rows >= limit:
            break
    if header and rows != header[0] and (limit is None or rows < limit):
        raise InputError(path, f"expected {header[0]} words, as stated in the first line, found {rows}")
    words = pl.concat([part[0] for part in parts])
    lines = np.concatenate([part[2] for part in parts])
    repeated = words.is_duplicated().to_numpy() & ~words.is_first_distinct().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        raise InputError(path, f"the word {quoted(words[row])} is repeated", line=int(lines[row]))
    return words, np.concatenate([part[1] for part in parts])


def _parse(path: str | os.PathLike[str], block: Block, dimensions: int) -> tuple[pl.Series, Floats, Lines]:
    """Words, vectors and line numbers of a block."""
    # word2vec and fastText end each line with a space.
    data = block.data.replace(b" \n", b"\n")
    names = [f"{column}" for column in range(dimensions)]
    try:
        table = pl.read_csv(
            data,
            separator=" ",
            has_header=False,
            quote_char=None,
            empty_string_is_null=False,
            schema={"word": pl.String, **dict.fromkeys(names, pl.Float32)},
        )
        words = table["word"]
        matrix = np.ascontiguousarray(table.select(names).to_numpy(), dtype=np.float32)
        if (
            not csv_drops(data)
            and len(words) == block.lines
            and np.isfinite(matrix).all()
            and (words.str.len_bytes() > 0).all()
        ):
            return words, matrix, block.first_line + np.arange(len(words))
    except pl.exceptions.PolarsError:
        pass  # some line is malformed: the slow parser finds it
    return _parse_slowly(path, data, block.first_line, dimensions)


def _parse_slowly(
    path: str | os.PathLike[str], data: bytes, first_line: int, dimensions: int
) -> tuple[pl.Series, Floats, Lines]:
    """As ``_parse``, line by line: reports errors, skips empty lines, and reads words that contain spaces."""
    words, rows, lines = [], [], []
    for line, content in enumerate(data.decode().split("\n"), first_line):
        if not content:
            continue
        fields = content.split(" ")
        count = len(fields) - 1
        # Public vectors contain a few words with spaces (". . ."): the surplus fields then are not numbers.
        if count < dimensions or any(map(_is_number, fields[1 : count - dimensions + 1])):
            raise InputError(path, f"expected a word and {dimensions} numbers, found {count}", line=line)
        numbers = fields[count - dimensions + 1 :]
        bad = next((field for field in numbers if not _is_number(field)), None)
        if bad is not None:
            raise InputError(path, f"expected a finite number, found {quoted(bad)}", line=line)
        word = " ".join(fields[: count - dimensions + 1])
        if not word:
            raise InputError(path, "expected a word before the numbers, found none", line=line)
        words.append(word)
        rows.append(np.array(numbers, dtype=np.float32))
        lines.append(line)
    matrix = np.array(rows, dtype=np.float32).reshape(-1, dimensions)
    return pl.Series("word", words, dtype=pl.String), matrix, np.array(lines, dtype=np.int64)


def _is_number(field: str) -> bool:
    try:
        with np.errstate(over="ignore"):
            return (
                field.isascii()
                and field == field.strip()
                and "_" not in field
                and bool(np.isfinite(np.float32(float(field))))
            )
    except ValueError:
        return False


def read_binary(
    path: str | os.PathLike[str], stream: Headed, limit: int | None, keep: pl.Series | None
) -> tuple[pl.Series, Floats]:
    """Words [V] and vectors [V, D] of word2vec's binary format: each word, a space, D little-endian floats."""
    wanted = None if keep is None else frozenset(keep)
    words: list[str] = []
    parts: list[Floats] = []
    header = _header(stream.first_line())
    assert header is not None
    total, dimensions = header
    if dimensions > _MOST_DIMENSIONS:
        raise InputError(path, f"expected at most {_MOST_DIMENSIONS} numbers, found {dimensions}", line=1)
    wanted_total = total if limit is None else min(limit, total)
    read, rest = 0, b""
    while read < wanted_total:
        block = read_bytes(path, stream, _BLOCK_BYTES)
        if not block:
            raise InputError(path, f"expected {total} words, as stated in the first line, found {read}")
        rest += block
        starts: list[int] = []
        place = 0
        while read < wanted_total:
            space = rest.find(b" ", place)
            end = space + 1 + 4 * dimensions
            if space < 0 or end > len(rest):
                break
            read += 1
            word = _decode(path, rest[place:space].lstrip(b"\n"), read)
            if wanted is None or word in wanted:
                words.append(word)
                starts.append(space + 1)
            place = end
        if starts:
            windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(rest, np.uint8), 4 * dimensions)
            parts.append(windows[starts].view("<f4").astype(np.float32, copy=False))
        rest = rest[place:]
        if read < wanted_total and len(rest) > LINE_BYTES + 4 * dimensions:
            raise InputError(path, f"word {read + 1}: expected a word and a space, found {_cut(rest)}")
    matrix = np.concatenate(parts) if parts else np.empty((0, dimensions), np.float32)
    return pl.Series("word", words, dtype=pl.String), matrix


def _decode(path: str | os.PathLike[str], word: bytes, number: int) -> str:
    try:
        text = word.decode()
    except UnicodeDecodeError:
        text = ""
    if not text:
        raise InputError(path, f"word {number}: expected a word in UTF-8, found {_cut(word)}")
    return text


def _cut(data: bytes) -> str:
    return quoted(data[:80].decode(errors="replace"))


_WEIGHTS, _WORDS = FILES = "vectors.safetensors", "words.json"
# A pickle (protocol 2 and later), and the first bytes of fastText's own format.
_PICKLE, _FASTTEXT = b"\x80", b"\xba\x16\x4f\x2f"
# gensim ignores words of a text beyond this number.
_GENSIM_WORDS = 10_000
_BLOCK = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Distinct words and their vectors: ``matrix`` [V, D] float32, finite.

    Raises EvenrankError if their numbers differ, for an empty or repeated word and a number that is not finite.
    """

    words: tuple[str, ...]
    matrix: Floats

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or len(self.words) != len(self.matrix) or not self.matrix.size:
            shape = "x".join(map(str, self.matrix.shape))
            raise EvenrankError(f"vectors: expected one for each of {len(self.words)} words, found {shape}")
        if self.matrix.dtype != np.float32:
            raise EvenrankError(f"vectors: expected float32, found {self.matrix.dtype}")
        if "" in self.words:
            raise EvenrankError(f"vectors: word {self.words.index('') + 1} is empty")
        if len(set(self.words)) < len(self.words):
            repeated = next(word for word, count in Counter(self.words).items() if count > 1)
            raise EvenrankError(f"vectors: the word {quoted(repeated)} is repeated")
        for start in range(0, len(self.matrix), _BLOCK):
            fine = np.isfinite(self.matrix[start : start + _BLOCK]).all(axis=1)
            if not fine.all():
                word = self.words[start + int(fine.argmin())]
                raise EvenrankError(
                    f"vectors: the vector of the word {quoted(word)} contains a number that is not finite"
                )

    def __repr__(self) -> str:
        return f"Vectors({len(self.words):,} words, {self.dimensions} dimensions)"

    @property
    def dimensions(self) -> int:
        """The number of dimensions, D."""
        return int(self.matrix.shape[1])

    def keep(self, words: Collection[str]) -> Vectors:
        """The vectors of ``words`` only, in their present order. Raises EvenrankError if there are none."""
        wanted = frozenset(words)
        rows = [row for row, word in enumerate(self.words) if word in wanted]
        return Vectors(tuple(self.words[row] for row in rows), self.matrix[rows])

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes ``vectors.safetensors`` and ``words.json`` into a folder, both or neither.

        Raises EvenrankError for an empty word and a number that is not finite, which could not be read again;
        InputError if they cannot be written; MissingExtraError without safetensors.
        """
        try:
            from safetensors import SafetensorError
            from safetensors.numpy import save_file
        except ModuleNotFoundError:
            raise MissingExtraError("a folder of word vectors", "embeddings") from None

        home, is_new = Path(folder), False
        try:
            is_new = not home.exists()
            home.mkdir(parents=True, exist_ok=True)
            with atomic_path(home / _WEIGHTS) as weights, atomic_path(home / _WORDS) as words:
                words.write_text(json.dumps(self.words, ensure_ascii=False, indent=0), encoding="utf-8")
                save_file({"vectors": np.ascontiguousarray(self.matrix)}, weights)
        except SafetensorError as error:
            # Only the message of the operating system.
            reason = re.sub(r" \(os error \d+\)$", "", str(error).splitlines()[0]).rpartition(": ")[2]
            raise InputError(home / _WEIGHTS, f"cannot be written: {reason}") from None
        except OSError as error:
            raise InputError(folder, f"cannot be written: {error.strerror}") from None
        finally:
            if is_new and home.is_dir() and not any(home.iterdir()):
                home.rmdir()

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Vectors:
        """Reads what :meth:`save` wrote. Raises InputError if a file is missing or damaged."""
        try:
            from safetensors import SafetensorError
            from safetensors.numpy import load_file
        except ModuleNotFoundError:
            raise MissingExtraError("a folder of word vectors", "embeddings") from None

        try:
            words = json.loads((Path(folder) / _WORDS).read_text(encoding="utf-8"))
            matrix = load_file(Path(folder) / _WEIGHTS)["vectors"]
            if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
                raise InputError(folder, f"{_WORDS}: expected a list of words")
            "".join(words).encode()  # half a surrogate pair is a ValueError
            return _of_file(folder, words, matrix)
        except (OSError, ValueError, KeyError, RecursionError, SafetensorError) as error:
            raise InputError(folder, f"the folder contains no word vectors ({str(error).splitlines()[0]})") from None


@checked
def read_vectors(
    path: str | os.PathLike[str],
    *,
    limit: Annotated[int | None, opt.COUNT] = None,
    keep: Collection[str] | None = None,
) -> Vectors:
    """Reads word vectors from a file or a folder; the format is detected from the content.

    Files, plain or gzip: word2vec (text or binary) and fastText ``.vec`` (with a first line of the numbers of words and
    dimensions), GloVe (without). Folders: of :meth:`Vectors.save`.
    ``limit``: only the first words of the file (usually the most frequent); ``keep``: only these words, so that a large
    file needs little memory. fastText's ``.bin`` is not supported, as it does not contain the words' vectors
    themselves.

    Raises InputError, with the line, for a line that is not a word followed by as many finite numbers as in the first
    line, for a repeated word and for a truncated file; also for formats that would have to be unpickled.
    """
    if Path(path).is_dir():
        vectors = Vectors.load(path)
        vectors = vectors if limit is None else Vectors(vectors.words[:limit], vectors.matrix[:limit])
        return vectors if keep is None else vectors.keep(keep)
    with open_binary(path) as stream:
        head = read_bytes(path, stream, 1 << 16)
        if not head:
            raise InputError(path, "the file is empty")
        if head.startswith(_PICKLE):
            raise InputError(
                path, "this file is a pickle, which is not opened as it can run code: save it with save_word2vec_format"
            )
        if head.startswith(_FASTTEXT):
            raise InputError(path, "fastText's .bin is not supported: use the .vec file of the same vectors")
        wanted = None if keep is None else pl.Series("word", sorted(keep), dtype=pl.String)
        read = read_binary if is_binary(head) else read_lines
        words, matrix = read(path, Headed(head, stream), limit, wanted)
    if not len(words):
        raise InputError(
            path, "the file contains none of the words requested" if keep else "the file contains no vectors"
        )
    return _of_file(path, words.to_list(), matrix)


def _of_file(path: str | os.PathLike[str], words: Iterable[str], matrix: Floats) -> Vectors:
    """The vectors of a file, which an error names."""
    try:
        return Vectors(tuple(words), matrix)
    except EvenrankError as error:
        raise InputError(path, str(error).removeprefix("vectors: ")) from None


def from_keyed_vectors(vectors: Any) -> Vectors:
    """The words and vectors of a gensim ``KeyedVectors``. Raises EvenrankError for numbers that are not finite."""
    return Vectors(tuple(vectors.index_to_key), np.array(vectors.vectors, dtype=np.float32))


@checked
def train_vectors(
    collection: Annotated[opt.File | pl.DataFrame, opt.Option(opt.TEXTS, metavar="COLLECTION", reads=True)],
    *,
    tokenize: Callable[[str], list[str]] = tokenize,
    dimensions: Annotated[int, opt.Option("Dimensions.", range=opt.SIZE, flag="--size")] = 300,
    window: Annotated[int, opt.Option("Context words on either side.", range=opt.Range(1, 10_000))] = 5,
    epochs: Annotated[int, opt.Option("Passes over the collection.", range=opt.COUNT)] = 5,
    min_count: Annotated[int, opt.Option("Ignore words that occur less often.", range=opt.COUNT)] = 5,
    seed: Annotated[int, opt.Option("Seed: the same gives the same vectors.", range=opt.SEED, rare=True)] = 0,
) -> Vectors:
    """Trains word vectors on a collection: word2vec (skip-gram, 5 negatives), with gensim, on one thread.

    ``collection``: a path that ``scan_collection`` reads (once for the vocabulary and once an epoch), or a table with
    ``text``; ``tokenize``: text → words. The same input and ``seed`` give the same vectors. Words are sorted by
    descending frequency. Raises EvenrankError if no word occurs ``min_count`` times; MissingExtraError without gensim.
    """
    try:
        from gensim.models import Word2Vec
    except ModuleNotFoundError:
        raise MissingExtraError("training word vectors", "embeddings") from None

    texts = _Texts(collection, tokenize)
    # With several threads the order of updates would change from run to run.
    model = Word2Vec(
        vector_size=dimensions, window=window, min_count=min_count, sg=1, negative=5, seed=seed_32(seed), workers=1
    )
    model.build_vocab(texts)
    if not len(model.wv):
        raise EvenrankError(f"word vectors: no word occurs {min_count} times or more in {quoted(texts)}")
    model.train(texts, total_examples=model.corpus_count, epochs=epochs)
    return from_keyed_vectors(model.wv)


class _Texts:
    """The words of each text; can be iterated repeatedly, as gensim does."""

    def __init__(self, collection: str | os.PathLike[str] | pl.DataFrame, tokenize: Callable[[str], list[str]]) -> None:
        self._collection, self._tokenize = collection, tokenize

    def __str__(self) -> str:
        return "the table" if isinstance(self._collection, pl.DataFrame) else os.fspath(self._collection)

    def __iter__(self) -> Iterator[list[str]]:
        table = self._collection
        for batch in [table] if isinstance(table, pl.DataFrame) else scan_collection(table, unique=False):
            for text in batch["text"]:
                words = self._tokenize(text)
                for start in range(0, len(words), _GENSIM_WORDS):
                    yield words[start : start + _GENSIM_WORDS]


# White space, which separates words in the formats of word2vec.
_SPACE = r"[\s\x00\x1c-\x1f\x85]"


def format_of(path: str | os.PathLike[str]) -> str:
    """``binary`` (``.bin``), ``text`` (``.txt``, ``.vec``) or ``folder`` (no suffix); else EvenrankError."""
    suffix = Path(path).suffix.lower()
    formats = {".bin": "binary", ".txt": "text", ".vec": "text", "": "folder"}
    if suffix not in formats:
        raise EvenrankError(
            f"{os.fspath(path)}: expected .bin (word2vec, binary), .txt or .vec (word2vec, text), or a folder's name "
            f"without a suffix (safetensors), found {quoted(suffix)}"
        )
    if formats[suffix] == "folder" and Path(path).exists() and not Path(path).is_dir():
        raise EvenrankError(f"{os.fspath(path)}: expected a folder, found a file")
    return formats[suffix]


def vector_files(path: str | os.PathLike[str]) -> list[Path]:
    """The files that :func:`write_vectors` writes. Raises EvenrankError for another suffix."""
    return [Path(path) / name for name in FILES] if format_of(path) == "folder" else [Path(path)]


@checked
def write_vectors(vectors: Vectors, path: str | os.PathLike[str]) -> None:
    """Writes word2vec's binary (``.bin``) or text format (``.txt``, ``.vec``), else the folder of :meth:`Vectors.save`.

    Numbers in text are the shortest that round to the same float32. Raises EvenrankError for another suffix, and for a
    word with white space, which word2vec's formats do not allow; InputError if the file cannot be written.
    """
    form = format_of(path)
    if form == "folder":
        vectors.save(path)
        return
    words = pl.Series("word", vectors.words, dtype=pl.String)
    bad = words.filter(words.str.contains(_SPACE) | (words == ""))
    if len(bad):
        raise EvenrankError(
            f"{os.fspath(path)}: the word {quoted(bad[0])} contains white space, which word2vec's formats do not allow:"
            " write a folder (a name without a suffix)"
        )
    with atomic_path(path) as part, part.open("wb") as stream:
        stream.write(f"{len(words)} {vectors.dimensions}\n".encode())
        for start in range(0, len(words), _BLOCK):
            rows = vectors.matrix[start : start + _BLOCK]
            if form == "binary":
                of = vectors.words[start : start + _BLOCK]
                data = np.ascontiguousarray(rows, "<f4")
                stream.write(
                    b"".join(w.encode() + b" " + row.tobytes() + b"\n" for w, row in zip(of, data, strict=True))
                )
            else:
                table = pl.from_numpy(rows, [f"{d}" for d in range(vectors.dimensions)])
                table.insert_column(0, words[start : start + _BLOCK]).write_csv(
                    stream, include_header=False, separator=" ", quote_style="never"
                )
