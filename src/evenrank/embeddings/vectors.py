"""Word vectors in memory and in files, taken from a transformer or trained on a collection."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.io import EvenrankError, InputError, MissingExtraError, atomic_path, scan_collection
from evenrank.io.errors import quoted
from evenrank.io.files import Headed, open_binary, read_bytes
from evenrank.io.ranges import check_ranges, seed_32

from . import _text

Floats = NDArray[np.float32]
_WEIGHTS, _WORDS = FILES = "vectors.safetensors", "words.json"
# A pickle (protocol 2 and later), and the first bytes of fastText's own format.
_PICKLE, _FASTTEXT = b"\x80", b"\xba\x16\x4f\x2f"
# gensim ignores words of a text beyond this number.
_GENSIM_WORDS = 10_000
_BLOCK = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Distinct words and their vectors: ``matrix`` [V, D] float32, finite.

    Raises EvenrankError if their numbers differ, for an empty word and for a number that is not finite.
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

        home, made = Path(folder), False
        try:
            made = not home.exists()
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
            if made and home.is_dir() and not any(home.iterdir()):
                home.rmdir()

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, mmap: bool = False) -> Vectors:
        """Reads what :meth:`save` wrote. Raises InputError if a file is missing or damaged.

        ``mmap``: keep the matrix on disk until it is used; it is read-only.
        """
        try:
            from safetensors import SafetensorError
            from safetensors.numpy import load_file
        except ModuleNotFoundError:
            raise MissingExtraError("a folder of word vectors", "embeddings") from None

        try:
            words = json.loads((Path(folder) / _WORDS).read_text(encoding="utf-8"))
            matrix = _mapped(Path(folder) / _WEIGHTS) if mmap else load_file(Path(folder) / _WEIGHTS)["vectors"]
            if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
                raise InputError(folder, f"{_WORDS}: expected a list of words")
            if len(set(words)) < len(words):
                raise InputError(folder, f"{_WORDS}: a word is repeated")
            "".join(words).encode()  # half a surrogate pair is a ValueError
            return cls(tuple(words), matrix)
        except InputError:
            raise
        except EvenrankError as error:
            raise InputError(folder, str(error).removeprefix("vectors: ")) from None
        except (OSError, ValueError, KeyError, RecursionError, SafetensorError) as error:
            raise InputError(folder, f"the folder contains no word vectors ({str(error).splitlines()[0]})") from None


def _mapped(file: Path) -> Floats:
    """The table ``vectors`` of a safetensors file, memory-mapped."""
    from safetensors import safe_open

    with safe_open(file, "np") as weights:  # checks the header
        dtype, shape = (lambda found: (found.get_dtype(), found.get_shape()))(weights.get_slice("vectors"))
    if dtype != "F32":
        raise EvenrankError(f"expected float32, found {dtype}")
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        start = json.loads(stream.read(size))["vectors"]["data_offsets"][0]
    return np.asarray(np.memmap(file, np.dtype("<f4"), "r", 8 + size + start, tuple(shape)))


def read_vectors(
    path: str | os.PathLike[str],
    *,
    limit: int | None = None,
    keep: Collection[str] | None = None,
    mmap: bool = False,
) -> Vectors:
    """Reads word vectors from a file or a folder; the format is detected from the content.

    Files, plain or gzip: word2vec (text or binary) and fastText ``.vec`` (with a first line of the numbers of words and
    dimensions), GloVe (without). Folders: of :meth:`Vectors.save`, or a transformer's (:func:`from_transformer`).
    ``limit``: only the first words of the file (usually the most frequent); ``keep``: only these words, so that a large
    file needs little memory; ``mmap``: keep the matrix of a folder of :meth:`Vectors.save` on disk until it is used; it
    is read-only. fastText's ``.bin`` is not supported, as it does not contain the words' vectors themselves.

    Raises InputError, with the line, for a line that is not a word followed by as many finite numbers as in the first
    line, for a repeated word and for a truncated file; also for formats that would have to be unpickled.
    """
    if Path(path).is_dir():
        vectors = Vectors.load(path, mmap=mmap) if (Path(path) / _WEIGHTS).exists() else from_transformer(path)
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
        read = _text.read_binary if _text.is_binary(head) else _text.read_lines
        words, matrix = read(path, Headed(head, stream), limit, wanted)
    if not len(words):
        raise InputError(
            path, "the file contains none of the words requested" if keep else "the file contains no vectors"
        )
    return Vectors(tuple(words.to_list()), matrix)


def from_keyed_vectors(vectors: Any) -> Vectors:
    """The words and vectors of a gensim ``KeyedVectors``. Raises EvenrankError for numbers that are not finite."""
    return Vectors(tuple(vectors.index_to_key), np.array(vectors.vectors, dtype=np.float32))


def from_transformer(folder: str | os.PathLike[str]) -> Vectors:
    """The whole words of a transformer's input embedding table, without ``##`` pieces and special tokens.

    Reads ``*.safetensors`` and the WordPiece vocabulary (``tokenizer.json``, else ``vocab.txt``) of a checkpoint; no
    model is built. Raises InputError if one is missing, damaged or of another type.
    """
    try:
        from safetensors import SafetensorError, safe_open
    except ModuleNotFoundError:
        raise MissingExtraError("reading a transformer's vectors", "neural") from None

    ids = _word_pieces(Path(folder))
    tables = []
    for file in sorted(Path(folder).glob("*.safetensors")):
        try:
            with safe_open(file, "pt") as weights:
                found = [name for name in weights.keys() if name.endswith("word_embeddings.weight")]  # noqa: SIM118
                tables += [weights.get_tensor(name).float().numpy() for name in found]
        except (OSError, SafetensorError, ModuleNotFoundError) as error:
            raise InputError(file, f"the weights cannot be read ({error})") from None
    if len(tables) != 1 or tables[0].ndim != 2:
        raise InputError(folder, f"expected one table of word embeddings in *.safetensors, found {len(tables)}")
    words = [word for word in ids if word and not word.startswith("##") and not re.fullmatch(r"\[.+\]", word)]
    rows = [ids[word] for word in words]
    if not rows or min(rows) < 0 or max(rows) >= len(tables[0]):
        raise InputError(folder, f"the vocabulary does not fit the {len(tables[0])} word embeddings")
    try:
        return Vectors(tuple(words), np.ascontiguousarray(tables[0][rows], dtype=np.float32))
    except EvenrankError as error:
        raise InputError(folder, str(error).removeprefix("vectors: ")) from None


def _word_pieces(folder: Path) -> dict[str, int]:
    """Word piece → row of the embedding table, without tokens declared special."""
    file = folder / "tokenizer.json"
    try:
        if not file.is_file():
            file = folder / "vocab.txt"
            return {word: row for row, word in enumerate(file.read_text(encoding="utf-8").splitlines())}
        content = json.loads(file.read_text(encoding="utf-8"))
        model = content["model"]
        # Older files state no type.
        if "merges" in model or model.get("type", "WordPiece") != "WordPiece":
            raise InputError(file, "expected a WordPiece vocabulary: other kinds do not mark whole words")
        special = {token["content"] for token in content.get("added_tokens") or () if token.get("special")}
        "".join(model["vocab"]).encode()  # half a surrogate pair is a ValueError
        return {word: int(row) for word, row in model["vocab"].items() if word not in special}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(folder, f"the vocabulary cannot be read ({type(error).__name__}: {error})") from None


def train_vectors(
    collection: str | os.PathLike[str] | pl.DataFrame,
    tokenize: Callable[[str], list[str]],
    *,
    dimensions: int = 300,
    window: int = 5,
    min_count: int = 5,
    epochs: int = 5,
    seed: int = 0,
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

    check_ranges(dimensions=dimensions, window=window, min_count=min_count, epochs=epochs, seed=seed)
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
