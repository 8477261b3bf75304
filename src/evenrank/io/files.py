"""Text files in blocks of whole lines, and files written beside and then renamed."""

from __future__ import annotations

import gzip
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .errors import InputError

BLOCK_BYTES = 1 << 24
_GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a text file: UTF-8, ended by ``\\n``, without a byte-order mark or ``\\r``."""

    data: bytes
    first_line: int
    """Number in the file of the block's first line, counted from 1."""
    lines: int


def line_blocks(path: str | os.PathLike[str], *, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """The lines of a plain or gzip text file, in blocks of about ``block_bytes``.

    Raises InputError for a missing, empty or damaged file and for bytes that are not UTF-8.
    """
    line = 1
    with open_binary(path) as stream:
        for data in _raw_blocks(path, stream, block_bytes):
            if line == 1 and data.startswith(_BOM):
                data = data[len(_BOM) :]
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n")
            if not data.isascii():
                _check_utf8(path, data, line)
            lines = data.count(b"\n")
            yield Block(data, line, lines)
            line += lines


def _raw_blocks(path: str | os.PathLike[str], stream: IO[bytes], block_bytes: int) -> Iterator[bytes]:
    rest: list[bytes] = []
    empty = True
    while True:
        data = read_bytes(path, stream, block_bytes)
        if not data:
            break
        empty = False
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
        raise InputError(path, f"cannot be read: {_reason(error)}") from None


@contextmanager
def open_binary(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file's bytes, unpacked when they are gzip (told by its first bytes, not by its name)."""
    try:
        plain = open(path, "rb")  # noqa: SIM115 - closed below, on every way out
    except OSError as error:
        raise InputError(
            path, "no such file" if isinstance(error, FileNotFoundError) else str(error.strerror)
        ) from None
    with plain:
        # Peeked, not read: a pipe cannot go back.
        if plain.peek(2)[:2] == _GZIP_MAGIC:
            with gzip.open(plain, "rb") as unpacked:
                yield unpacked  # type: ignore[misc]
        else:
            yield plain


def _check_utf8(path: str | os.PathLike[str], data: bytes, first_line: int) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise InputError(path, f"expected UTF-8, found the byte 0x{data[error.start]:02x}", line=line) from None


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its name when the block ends without an error.

    On any error, a full disk and an interrupt included, the temporary file goes and ``path`` stays as it was.
    """
    part, target = _beside(path)
    try:
        yield part
        # mkstemp makes a private file; a result gets the rights of any new file.
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(target)
    except OSError as error:
        raise InputError(path, f"cannot be written: {_reason(error)}") from None
    finally:
        part.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises InputError where a file could not be written: to be asked before work that would be lost."""
    _beside(path)[0].unlink()


def _beside(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """A new file beside ``path``, and what it is to replace."""
    # A link keeps pointing to its file, and a device (/dev/null) is not replaced by a file.
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise InputError(path, "cannot be written: Is a directory")
        if target.exists() and not target.is_file():
            raise InputError(path, "cannot be written: it is no regular file")
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise InputError(path, f"cannot be written: {_reason(error)}") from None
    os.close(handle)
    return Path(name), target


def _reason(error: OSError) -> str:
    """The system's own words: pyarrow puts its own before them, polars a number behind them."""
    return os.strerror(error.errno) if error.errno else re.sub(r" \(os error \d+\)$", "", str(error))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes ``text`` as UTF-8, whole or not at all."""
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8")
