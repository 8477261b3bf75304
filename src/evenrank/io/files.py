"""Files as they are read: text in blocks of whole lines, Parquet, gzip, URLs."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol

from .errors import EvenrankError, InputError, MissingExtraError, reason_of, shown

if TYPE_CHECKING:
    import polars as pl
    import pyarrow.parquet as pq

BLOCK_BYTES = 1 << 24
LINE_BYTES = 1 << 26
LINE_LIMIT_VARIABLE = "EVENRANK_MAX_LINE_BYTES"
_GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a text file: UTF-8, ended by ``\\n``, without a byte-order mark or ``\\r``."""

    data: bytes
    first_line: int
    """Number in the file of the block's first line, counted from 1."""
    lines: int


def line_limit() -> int:
    """The most bytes that a line may have: EVENRANK_MAX_LINE_BYTES, else 64 MiB."""
    text = os.environ.get(LINE_LIMIT_VARIABLE)
    if text is None:
        return LINE_BYTES
    if not (text.isascii() and text.isdigit() and int(text[:20])):
        raise EvenrankError(f"{LINE_LIMIT_VARIABLE}: expected a number of bytes, found {shown(text)}")
    return int(text[:20])


def line_blocks(
    path: str | os.PathLike[str],
    *,
    block_bytes: int = BLOCK_BYTES,
    span: tuple[int, int] | None = None,
    stream: Readable | None = None,
) -> Iterator[Block]:
    """The lines of a plain or gzip text file, in blocks of about ``block_bytes``.

    ``span``: only the whole lines between two places (bytes) of a plain file; lines are then counted from the first of
    them, as 1 where that is the file's first and as 2 where it is not. ``stream``: the file where it is open already.
    Raises InputError for a missing, empty or damaged file, for bytes that are not UTF-8 and for a line longer than
    :func:`line_limit`: a small gzip file can hold one that fills the memory.
    """
    if stream is None:
        with open_binary(path) as opened:
            if span is not None:
                opened.seek(span[0])
            yield from line_blocks(path, block_bytes=block_bytes, span=span, stream=opened)
        return
    line = 1 if span is None or span[0] == 0 else 2
    limit = line_limit()
    try:
        for data in _raw_blocks(path, stream, block_bytes, None if span is None else span[1] - span[0], limit):
            if line == 1 and data.startswith(BOM):
                data = data[len(BOM) :]
            if line == 1 and (data.startswith(_UTF16) or b"\0" in data[:2]):
                raise InputError(path, "expected UTF-8, found what looks like UTF-16", line=1)
            if limit < len(data):
                for number, content in enumerate(data.split(b"\n")):
                    if len(content) > limit:
                        line += number
                        raise _TooLongError
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n")
            if not data.isascii():
                _check_utf8(path, data, line)
            lines = data.count(b"\n")
            yield Block(data, line, lines)
            line += lines
    except _TooLongError:
        message = f"expected lines of at most {limit} bytes ({LINE_LIMIT_VARIABLE} sets it), found a longer one"
        raise InputError(path, message, line=line) from None


class _TooLongError(Exception):
    pass


def _raw_blocks(
    path: str | os.PathLike[str], stream: Readable, block_bytes: int, left: int | None, limit: int
) -> Iterator[bytes]:
    rest: list[bytes] = []
    held = 0
    empty = True
    while True:
        data = read_bytes(path, stream, block_bytes if left is None else min(block_bytes, left))
        if not data:
            break
        empty = False
        left = None if left is None else left - len(data)
        end = data.rfind(b"\n") + 1
        if end == 0:
            rest.append(data)
            held += len(data)
            if held > limit:
                raise _TooLongError
            continue
        yield b"".join([*rest, data[:end]])
        rest = [data[end:]] if end < len(data) else []
        held = len(data) - end
    if empty:
        raise InputError(path, "the file is empty")
    if rest:
        yield b"".join([*rest, b"\n"])


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes."""


class Headed:
    """An open file of which the first bytes have been read, from its beginning: a pipe cannot go back."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head, self._rest = head, rest

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes (1 or more)."""
        if not self._head:
            return self._rest.read(size)
        part, self._head = self._head[:size], self._head[size:]
        return part

    def first_line(self) -> bytes:
        """What of the first bytes stands before their first line end, which is read too."""
        line, _, self._head = self._head.partition(b"\n")
        return line


def read_bytes(path: str | os.PathLike[str], stream: Readable, size: int) -> bytes:
    """Up to ``size`` bytes of an open file. Raises InputError where it is damaged or cannot be read."""
    try:
        return stream.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(path, f"damaged gzip file ({error})") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {reason_of(error)}") from None


def file_system(path: str | os.PathLike[str]) -> tuple[Any, str] | None:
    """The fsspec file system of a URL (``s3://bucket/file``) and the path in it; None for a path of this machine.

    Raises MissingExtraError without fsspec, and InputError for a URL that it cannot open.
    """
    if "://" not in os.fspath(path):
        return None
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError(f"{os.fspath(path)}: reading or writing a URL", "ray") from None
    try:
        found: tuple[Any, str] = url_to_fs(os.fspath(path))
    except (ImportError, ValueError, OSError) as error:
        raise InputError(path, str(error).splitlines()[0]) from None
    return found


@contextmanager
def open_raw(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """The bytes of a file or a URL as they are."""
    elsewhere = file_system(path)
    try:
        stream = open(path, "rb") if elsewhere is None else elsewhere[0].open(elsewhere[1], "rb")  # noqa: SIM115
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise InputError(path, "no such file" if missing else reason_of(error)) from None
    with stream:
        try:
            yield stream
        except OSError as error:
            raise InputError(path, f"cannot be read: {reason_of(error)}") from None


def refuse_pipe(path: str | os.PathLike[str]) -> None:
    """Raises InputError for a pipe, where a file is read more than once or not from its beginning to its end."""
    if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        raise InputError(path, "expected a file, found a pipe: it may be read more than once")


@contextmanager
def open_parquet(path: str | os.PathLike[str], problem: str = "damaged Parquet file") -> Iterator[pq.ParquetFile]:
    """A Parquet file or URL. Raises InputError for one that is not there.

    And for whatever the engines raise in the block, which is to be reading: see :func:`reading_parquet`.
    """
    import pyarrow.parquet as pq

    if file_system(path) is None and not os.path.exists(path):
        raise InputError(path, "no such file")
    refuse_pipe(path)
    with reading_parquet(path, problem), ExitStack() as stack:
        # By its path a file is read without going through Python; pyarrow takes names in UTF-8 alone.
        by_path = file_system(path) is None and is_utf8(os.fspath(path))
        source = path if by_path else stack.enter_context(open_raw(path))
        try:
            file = stack.enter_context(pq.ParquetFile(source))
            str(file.schema_arrow)  # decodes all names, nested ones too
        except UnicodeDecodeError:
            raise InputError(path, f"{problem} (the name of a column is not UTF-8)") from None
        yield file


@contextmanager
def reading_parquet(path: str | os.PathLike[str], problem: str = "damaged Parquet file") -> Iterator[None]:
    """Whatever pyarrow and polars raise in the block becomes an InputError that names the file.

    A damaged file can bring about any error of theirs: polars' panics, which are no ``Exception``, too.
    """
    try:
        yield
    except EvenrankError:
        raise
    except MemoryError:
        raise InputError(path, f"{problem}, or one that needs more memory than there is") from None
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(path, f"{problem} ({reason})") from None


def polars_table(path: str | os.PathLike[str], data: Any) -> pl.DataFrame:
    """A pyarrow table or batch as polars has it. Raises InputError for a type that polars takes for no column of ours.

    What a damaged file says of its columns beside their types stays behind: polars would panic.
    """
    import polars as pl
    import pyarrow as pa

    # Parquet says which columns are UTF-8, pyarrow and polars believe it.
    data.validate(full=True)
    for field in data.schema:
        if not _is_taken(field.type):
            raise InputError(path, f"expected texts, numbers or lists of them in {field.name}, found {field.type}")
    return pl.DataFrame(pa.Table.from_arrays(list(data.columns), names=data.schema.names))


def _is_taken(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind) or types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_taken(kind.value_type)
    if types.is_struct(kind):
        return all(_is_taken(field.type) for field in kind)
    if types.is_decimal256(kind) or types.is_float16(kind):
        return False
    texts = "string large_string string_view binary large_binary binary_view"
    names = f"{texts} null boolean integer floating decimal".split()
    return any(getattr(types, f"is_{name}")(kind) for name in names)


def is_panic(error: BaseException) -> bool:
    """Whether an error is a panic of a library in Rust, as polars raises it."""
    return type(error).__module__ == "pyo3_runtime"


def is_utf8(name: str) -> bool:
    """Whether the name of a file is UTF-8: the engines take no other."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def open_binary(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file's bytes, unpacked when they are gzip (told by its first bytes, not by its name)."""
    with open_raw(path) as plain:
        if is_gzip(plain):
            with gzip.open(plain, "rb") as unpacked:
                yield unpacked  # type: ignore[misc]
        else:
            yield plain


def is_gzip(stream: IO[bytes]) -> bool:
    """Whether gzip's first bytes stand at the beginning of an opened file, which stays there."""
    if isinstance(stream, io.BufferedReader):
        # Peeked, not read: a pipe cannot go back.
        return stream.peek(2)[:2] == _GZIP_MAGIC
    head = stream.read(2)
    stream.seek(0)
    return head == _GZIP_MAGIC


def _check_utf8(path: str | os.PathLike[str], data: bytes, first_line: int) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise InputError(path, f"expected UTF-8, found the byte 0x{data[error.start]:02x}", line=line) from None
