"""Files as they are read: text in blocks of whole lines, Parquet, gzip, URLs."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from .errors import InputError, MissingExtraError, reason_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BLOCK_BYTES = 1 << 24
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


def line_blocks(
    path: str | os.PathLike[str], *, block_bytes: int = BLOCK_BYTES, span: tuple[int, int] | None = None
) -> Iterator[Block]:
    """The lines of a plain or gzip text file, in blocks of about ``block_bytes``.

    ``span``: only the whole lines between two places (bytes) of a plain file; lines are then counted from the first of
    them, as 1 where that is the file's first and as 2 where it is not. Raises InputError for a missing, empty or
    damaged file and for bytes that are not UTF-8.
    """
    line = 1 if span is None or span[0] == 0 else 2
    with open_binary(path) as stream:
        if span is not None:
            stream.seek(span[0])
        for data in _raw_blocks(path, stream, block_bytes, None if span is None else span[1] - span[0]):
            if line == 1 and data.startswith(BOM):
                data = data[len(BOM) :]
            if line == 1 and (data.startswith(_UTF16) or b"\0" in data[:2]):
                raise InputError(path, "expected UTF-8, found what looks like UTF-16", line=1)
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n")
            if not data.isascii():
                _check_utf8(path, data, line)
            lines = data.count(b"\n")
            yield Block(data, line, lines)
            line += lines


def _raw_blocks(path: str | os.PathLike[str], stream: IO[bytes], block_bytes: int, left: int | None) -> Iterator[bytes]:
    rest: list[bytes] = []
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
            continue
        yield b"".join([*rest, data[:end]])
        rest = [data[end:]] if end < len(data) else []
    if empty:
        raise InputError(path, "the file is empty")
    if rest:
        yield b"".join([*rest, b"\n"])


def read_bytes(path: str | os.PathLike[str], stream: IO[bytes], size: int) -> bytes:
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
        yield stream


@contextmanager
def open_parquet(path: str | os.PathLike[str]) -> Iterator[pq.ParquetFile]:
    """A Parquet file or URL. Raises InputError for one that is not there, or whose columns' names are no UTF-8.

    Other errors are pyarrow's own.
    """
    import pyarrow.parquet as pq

    if file_system(path) is None and not os.path.exists(path):
        raise InputError(path, "no such file")

    # By its path a file is read without going through Python.
    with ExitStack() as stack:
        source = path if file_system(path) is None else stack.enter_context(open_raw(path))
        try:
            file = stack.enter_context(pq.ParquetFile(source))
            str(file.schema_arrow)  # decodes all names, nested ones too
        except UnicodeDecodeError:
            raise InputError(path, "damaged Parquet file (the name of a column is not UTF-8)") from None
        yield file


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
