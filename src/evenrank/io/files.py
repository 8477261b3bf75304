"""Text files in blocks of whole lines, and files written beside and then renamed."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import platform
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .errors import EvenrankError, InputError, MissingExtraError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BLOCK_BYTES = 1 << 24
_GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
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
        raise InputError(path, f"cannot be read: {_reason(error)}") from None


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
        raise InputError(path, "no such file" if missing else _reason(error)) from None
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


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its name when the block ends without an error.

    On any error, a full disk and an interrupt included, the temporary file goes and ``path`` stays as it was; that of a
    process that was killed goes when ``path`` is written again on the same machine. For a URL the temporary file is of
    this machine, and is put there whole.
    """
    elsewhere = file_system(path)
    if elsewhere is not None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "part"
            try:
                elsewhere[0].put_file(str(Path(folder) / "part"), elsewhere[1])
            except OSError as error:
                raise InputError(path, f"cannot be written: {_reason(error)}") from None
        return
    with _beside(path) as (part, target):
        try:
            yield part
            # mkstemp makes a private file; a result gets the rights of any new file.
            mask = os.umask(0)
            os.umask(mask)
            part.chmod(0o666 & ~mask)
            part.replace(target)
        except Exception as error:
            reason = why_unwritten(error)
            if reason is None:
                raise
            raise InputError(path, f"cannot be written: {reason}") from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises InputError where a file could not be written: to be asked before work that would be lost."""
    if file_system(path) is None:
        with _beside(path):
            pass


@contextmanager
def _beside(path: str | os.PathLike[str]) -> Iterator[tuple[Path, Path]]:
    """A new file beside ``path``, locked while its process lives and then removed; and what it is to replace."""
    # A link keeps pointing to its file, and a device (/dev/null) is not replaced by a file.
    target = Path(os.path.realpath(path))
    # A name can be as long as the file system allows: what is put around it must not make it longer.
    prefix = f".{target.name[:50]}.{_HOST}-"
    try:
        if target.is_dir():
            raise InputError(path, "cannot be written: Is a directory")
        if target.exists() and not target.is_file():
            raise InputError(path, "cannot be written: it is no regular file")
        _remove_forsaken(target.parent, prefix)
        handle, name = _locked(lambda: tempfile.mkstemp(prefix=prefix, suffix=".part", dir=target.parent))
    except OSError as error:
        raise InputError(path, f"cannot be written: {_reason(error)}") from None
    try:
        yield Path(name), target
    finally:
        Path(name).unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


@contextmanager
def folder_within(parent: Path, name: str) -> Iterator[Path]:
    """A new folder in ``parent``, locked while its process lives and then removed, unless it got another name.

    That of a process that was killed goes when one of the same ``name`` is made. Raises OSError.
    """
    prefix = f".{name}.{_HOST}-"
    _remove_forsaken(parent, prefix)
    handle, made = _locked(lambda: _new_folder(prefix, parent))
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _new_folder(prefix: str, parent: Path) -> tuple[int | None, str]:
    made = tempfile.mkdtemp(prefix=prefix, suffix=".part", dir=parent)
    return None if fcntl is None else os.open(made, os.O_RDONLY), made


def _locked(make: Callable[[], tuple[int | None, str]]) -> tuple[int | None, str]:
    """What ``make`` made, an opened file and its name, with a lock; no file where the system has no locks."""
    while True:
        handle, name = make()
        if handle is None:
            return None, name
        if fcntl is None:
            os.close(handle)
            return None, name
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        # Before the lock another process may have taken it for a forsaken one.
        if os.path.exists(name):
            return handle, name
        os.close(handle)


def _remove_forsaken(folder: Path, prefix: str) -> None:
    """Removes the temporary files and folders that killed processes of this machine left: those without a lock."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(prefix) and re.fullmatch(r"\w{8}\.part", name[len(prefix) :]):
                remove_unlocked(folder / name)


def remove_unlocked(path: Path) -> None:
    """Removes a temporary file or folder unless a process of this machine still writes it."""
    if fcntl is None:
        return
    with suppress(OSError):
        folder = path.is_dir()
        handle = os.open(path, (os.O_RDONLY if folder else os.O_RDWR) | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if folder:
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        finally:
            os.close(handle)


def why_unwritten(error: Exception) -> str | None:
    """What the system says where a file could not be written; None for another error.

    Polars, safetensors and PyTorch have errors of their own around that of the system, or instead of it.
    """
    if isinstance(error, EvenrankError):
        return None
    if isinstance(error, OSError):
        return _reason(error)
    number = re.search(r"\(os error (\d+)\)", str(error))
    if number is not None:
        return os.strerror(int(number[1]))
    torch_writer = any(name in str(error) for name in ("PytorchStreamWriter", "inline_container"))
    return "the file could not be written whole" if torch_writer else None


def _reason(error: OSError) -> str:
    """The system's own words: pyarrow puts its own before them, polars a number behind them."""
    return os.strerror(error.errno) if error.errno else re.sub(r" \(os error \d+\)$", "", str(error))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes ``text`` as UTF-8, whole or not at all."""
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8")
