"""Reading files: text in blocks of whole lines, Parquet, gzip, zst, URLs, and folders read as one collection."""

from __future__ import annotations

import glob
import gzip
import io
import logging
import os
import re
import shutil
import stat
import sys
import tempfile
import urllib.parse
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Protocol

import polars as pl

from .errors import AS_UTF8, EvenrankError, InputError, MissingExtraError, arg, quoted, reason_of
from .markdown import is_text_folder, text_files

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BLOCK_BYTES = 1 << 24
LINE_BYTES = 1 << 26
"""The maximum length of a line."""
_GZIP_MAGIC, _ZST_MAGIC = b"\x1f\x8b", (b"\x28\xb5\x2f\xfd", *(bytes([n]) + b"\x2a\x4d\x18" for n in range(80, 96)))
"""The first bytes of packed files; of zst also those of a frame to skip."""
BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a text file: UTF-8, ending in ``\\n``, without a byte-order mark or ``\\r``."""

    data: bytes
    first_line: int
    """The block's first line in the file, counted from 1."""
    lines: int


def line_blocks(
    path: str | os.PathLike[str],
    *,
    block_bytes: int = BLOCK_BYTES,
    stream: Readable | None = None,
    limit: int | None = None,
) -> Iterator[Block]:
    """The lines of a plain, gzip or zst text file, in blocks of about ``block_bytes``.

    ``stream``: the file, if it is already open. Raises InputError for a missing, empty or damaged file, for bytes that
    are not UTF-8 and for a line longer than ``limit`` (by default LINE_BYTES): a small gzip file can contain
    one that fills the memory.
    """
    if stream is None:
        with open_binary(path) as opened:
            yield from line_blocks(path, block_bytes=block_bytes, stream=opened, limit=limit)
        return
    line = 1
    limit = LINE_BYTES if limit is None else limit
    try:
        for data in _raw_blocks(path, stream, block_bytes, limit):
            if line == 1 and data.startswith(BOM):
                data = data[len(BOM) :]
            if line == 1 and (data.startswith(_UTF16) or b"\0" in data[:2]):
                raise InputError(path, f"expected UTF-8, found what looks like UTF-16{AS_UTF8}", line=1)
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
        raise InputError(path, f"expected lines of at most {limit} bytes, found a longer one", line=line) from None


class _TooLongError(Exception):
    pass


def _check_utf8(path: str | os.PathLike[str], data: bytes, first_line: int) -> None:
    """Raises InputError, with the line, for bytes that are not UTF-8."""
    with suppress(pl.exceptions.ComputeError):
        # Much faster than to decode them, which says where they are not.
        pl.Series([data], dtype=pl.Binary).cast(pl.String)
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        message = f"expected UTF-8, found the byte 0x{data[error.start]:02x}"
        raise InputError(path, message + AS_UTF8, line=line) from None


def _raw_blocks(path: str | os.PathLike[str], stream: Readable, block_bytes: int, limit: int) -> Iterator[bytes]:
    rest: list[bytes] = []
    rest_size = 0
    empty = True
    while True:
        data = read_bytes(path, stream, block_bytes)
        if not data:
            break
        empty = False
        end = data.rfind(b"\n") + 1
        if end == 0:
            rest.append(data)
            rest_size += len(data)
            if rest_size > limit:
                raise _TooLongError
            continue
        yield b"".join([*rest, data[:end]])
        rest = [data[end:]] if end < len(data) else []
        rest_size = len(data) - end
    if empty:
        raise InputError(path, "the file is empty")
    if rest:
        yield b"".join([*rest, b"\n"])


class Readable(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes."""


class Headed:
    """An open file from its start, although its first bytes were already read: a pipe cannot be rewound."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head, self.rest = head, rest

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes (1 or more)."""
        if not self._head:
            return self.rest.read(size)
        part, self._head = self._head[:size], self._head[size:]
        return part

    def first_line(self) -> bytes:
        """The first line of the bytes that were already read; its line end is read too."""
        line, _, self._head = self._head.partition(b"\n")
        return line


def read_bytes(path: str | os.PathLike[str], stream: Readable, size: int) -> bytes:
    """Up to ``size`` bytes of an open file. Raises InputError if it is damaged or cannot be read."""
    try:
        return stream.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile, zstd.ZstdError) as error:
        form = "zst" if isinstance(getattr(stream, "rest", stream), zstd.ZstdFile) else "gzip"
        raise InputError(path, f"damaged {form} file ({error})") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {reason_of(error)}") from None


def file_system(path: str | os.PathLike[str]) -> tuple[Any, str] | None:
    """The fsspec file system of a URL (``s3://bucket/file``) and the path in it; None for a local path.

    Raises MissingExtraError without fsspec, and InputError for a URL that it cannot open.
    """
    if "://" not in os.fspath(path):
        return None
    # It logs whole tracebacks of what it then raises.
    logging.getLogger("gcsfs").setLevel(logging.CRITICAL)
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError(f"{os.fspath(path)}: reading or writing a URL", "remote") from None
    name = os.fspath(path)
    try:
        web = {scheme: _web_settings(LONGEST, SILENCE) for scheme in ("http", "https") if f"{scheme}://" in name}
        location: tuple[Any, str] = url_to_fs(name, **web)
    except ImportError:
        raise MissingExtraError(f"{os.fspath(path)}: reading or writing a URL", "remote") from None
    except (ValueError, OSError) as error:
        raise InputError(path, str(error).splitlines()[0]) from None
    except Exception as error:
        raise InputError(path, f"cannot be reached: {first_line(error)}") from None
    return location


LONGEST, SILENCE = 600.0, 30.0
"""Seconds for a whole answer of ``http://``, and seconds in which something of it must come."""


@cache
def _web_settings(longest: float, silence: float) -> dict[str, object]:
    """How fsspec asks a server of the web: with deadlines, and without following it to another one."""
    import aiohttp

    async def refuse_others(_: object, __: object, redirect: aiohttp.TraceRequestRedirectParams) -> None:
        target = urllib.parse.urljoin(str(redirect.url), redirect.response.headers.get("Location", ""))
        _refuse_redirect(str(redirect.url), target)

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(refuse_others)
    timeout = aiohttp.ClientTimeout(longest, sock_connect=silence, sock_read=silence)
    return {"client_kwargs": {"timeout": timeout, "trace_configs": [trace]}}


class _RedirectedError(Exception):
    """An answer that leads to another server."""


def _refuse_redirect(url: str, target: str) -> None:
    """Raises _RedirectedError for an address that leads to another server, or from https to http."""
    before, after = urllib.parse.urlsplit(url), urllib.parse.urlsplit(target)
    if _server(target) != _server(url):
        place = after.netloc.rpartition("@")[2]
        raise _RedirectedError(f"redirected to {quoted(place)}, which is not followed")
    if before.scheme == "https" and after.scheme != "https":
        raise _RedirectedError("redirected from https to http, which is not followed")


def _server(url: str) -> tuple[str, int | None]:
    """The host of an address, and its port unless it is the usual one."""
    parts = urllib.parse.urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.hostname or "", None if parts.port in (None, usual) else parts.port


@contextmanager
def reaching(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns what the libraries behind a URL raise in the block, each errors of its own, into an InputError."""
    try:
        yield
    except FileNotFoundError as error:
        # fsspec says the same of a server that it cannot reach.
        cause = error.__cause__
        absent = isinstance(cause, FileNotFoundError) or getattr(cause, "status", None) == 404
        if isinstance(cause, Exception) and not absent:
            raise InputError(path, f"cannot be reached: {first_line(cause)}") from None
        raise InputError(path, "no such file") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {first_line(error)}") from None
    except EvenrankError:
        raise
    except Exception as error:
        if "://" not in os.fspath(path):
            raise
        raise InputError(path, f"cannot be reached: {first_line(error)}") from None


_LONGEST_REASON = 200
"""Characters of what other libraries say."""


def first_line(error: Exception) -> str:
    """The beginning of what an error says, on one line."""
    message = reason_of(error) if isinstance(error, OSError) else str(error)
    nothing = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
    text = next(iter(message.strip().splitlines()), nothing)
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"


@contextmanager
def open_raw(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """The raw bytes of a file or a URL."""
    elsewhere = file_system(path)
    try:
        if elsewhere is None:
            stream: IO[bytes] = open(path, "rb")  # noqa: SIM115
        else:
            with reaching(path):
                stream = elsewhere[0].open(elsewhere[1], "rb")
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise InputError(path, "no such file" if missing else reason_of(error)) from None
    with stream, reaching(path):
        yield stream


def refuse_pipe(path: str | os.PathLike[str]) -> None:
    """Raises InputError for a pipe: for files that are read more than once, or not from start to end."""
    if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        raise InputError(path, "expected a file, found a pipe: it may be read more than once")


class ParquetFile:
    """A Parquet file whose rows are read when they are asked for; see :func:`open_parquet`."""

    def __init__(self, path: str) -> None:
        import polars as pl

        # Neither a pattern nor part of a folder: whoever calls has chosen the file.
        self._rows = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        self.schema = self._rows.collect_schema()
        self.height = int(self._rows.select(pl.len()).collect().item())
        self.metadata = {key: value for key, value in pl.read_parquet_metadata(path).items() if key != "ARROW:schema"}

    def batches(self, size: int, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """The rows in tables of ``size`` rows; the last may be shorter."""
        rows = self._rows if columns is None else self._rows.select(columns)
        left = self.height
        for table in rows.collect_batches(chunk_size=size):
            left -= table.height
            yield table
        # Where polars panics, its batches end without an error.
        if left:
            raise ValueError("its pages do not hold the rows that it says it has")

    def read(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """All rows as one table."""
        rows = self._rows if columns is None else self._rows.select(columns)
        return rows.collect()


@contextmanager
def open_parquet(path: str | os.PathLike[str], problem: str = "damaged Parquet file") -> Iterator[ParquetFile]:
    """A Parquet file or URL. Raises InputError if it does not exist.

    Errors of polars in the block, which should only read, become InputError: see :func:`reading_parquet`.
    """
    if file_system(path) is None and not os.path.exists(path):
        raise InputError(path, "no such file")
    refuse_pipe(path)
    with reading_parquet(path, problem), ExitStack() as stack:
        yield ParquetFile(_local(path, stack))


def _local(path: str | os.PathLike[str], stack: ExitStack) -> str:
    """A UTF-8 name of a file on this machine, which polars reads without Python; what is elsewhere is copied."""
    if file_system(path) is None and is_utf8(os.fspath(path)):
        return os.fspath(path)
    part = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), "part")
    if file_system(path) is None:
        os.symlink(os.path.abspath(path), part)
    else:
        with open_raw(path) as source, open(part, "wb") as copy:
            shutil.copyfileobj(source, copy)
    return part


@contextmanager
def reading_parquet(path: str | os.PathLike[str], problem: str = "damaged Parquet file") -> Iterator[None]:
    """Turns whatever polars raises in the block into an InputError that names the file.

    A damaged file can cause any of its errors, including panics, which are not an ``Exception``.
    """
    try:
        yield
    except EvenrankError:
        raise
    except MemoryError:
        raise InputError(path, f"{problem}, or one that needs more memory than is available") from None
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(path, f"{problem} ({reason})") from None


def is_panic(error: BaseException) -> bool:
    """Whether an error is a panic of a Rust library such as polars."""
    return type(error).__module__ == "pyo3_runtime"


def is_utf8(name: str) -> bool:
    """Whether a file name is UTF-8: polars accepts no other."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def open_binary(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file's bytes, unpacked if they are gzip or zst (detected by content, not by name)."""
    with open_raw(path) as plain:
        # Peeked at, not read: neither a pipe nor every URL can be rewound.
        stream = plain if hasattr(plain, "peek") else io.BufferedReader(plain)  # type: ignore[type-var]
        head = stream.peek(4)
        if head.startswith(_GZIP_MAGIC):
            with gzip.open(stream, "rb") as unpacked:
                yield unpacked  # type: ignore[misc]
        elif head.startswith(_ZST_MAGIC):
            with zstd.open(stream, "rb") as unpacked:
                yield unpacked  # type: ignore[misc]
        else:
            yield stream


UNFINISHED = "_unfinished.json"
"""The file that marks a folder as unfinished and says what it is made from; it is removed when all is written."""
INDEX = "index.json"
"""The file that describes an index."""
INDEX_FORMAT = "evenrank index"


def is_index(path: object) -> bool:
    """Whether a path is the folder of an index, finished or not; damaged ones are told by their files."""
    if not isinstance(path, str | os.PathLike) or file_system(path) is not None:
        return False
    for name in (INDEX, UNFINISHED):
        with suppress(OSError, ValueError), open(Path(path) / name, "rb") as stream:
            # A collection can have a part of that name.
            if INDEX_FORMAT.encode() in stream.read(200) or (Path(path) / "ids-starts.npy").is_file():
                return True
    return False


def files_of(path: str | os.PathLike[str]) -> list[str]:
    """The files that a path names: the file itself, or those in a folder or matching a pattern, sorted by name.

    Of a folder's subfolders, those of its partitions (``year=2025``), and the shards in ``data`` of a data set of the
    Hub (``data/train-00000-of-00001.parquet``); of a folder of Markdown, all. Names starting with ``.`` or ``_``,
    manifests and what stands beside shards are left out. Raises InputError if no file is left, and for a folder of
    parts that is unfinished or of an index.
    """
    name = os.fspath(path)
    elsewhere = file_system(name)
    if elsewhere is None:
        if is_index(name):
            raise InputError(name, "is an index; expected a collection")
        if is_text_folder(name):
            return text_files(name)
        if os.path.isdir(name):
            try:
                inside = sorted(_in_folder(name))
            except OSError as error:
                raise InputError(error.filename or name, f"cannot be read: {reason_of(error)}") from None
        elif os.path.lexists(name) or not glob.has_magic(name):
            return [name]
        else:
            inside = sorted(file for file in glob.glob(name) if os.path.isfile(file))
    else:
        system, place = elsewhere
        with reaching(name):
            if glob.has_magic(place) and not name.startswith("http"):
                inside = sorted(system.unstrip_protocol(file) for file in system.glob(place))
            # A page of the web is read to the end to find out whether it lists others.
            elif not name.startswith("http") and system.isdir(place):
                start = len(place.rstrip("/")) + 1
                paths = [file for file in system.find(place) if _is_part(file[start:])]
                inside = sorted(map(system.unstrip_protocol, paths))
            else:
                return [name]
    if any(os.path.basename(file) == UNFINISHED for file in inside):
        raise InputError(name, "unfinished: run the command that writes it again")
    files = [file for file in inside if not os.path.basename(file).startswith((".", "_"))]
    files = [file for file in files if not file.endswith(".manifest.json")]
    files = list(filter(SHARD.search, files)) or files
    if not files:
        raise InputError(name, "contains no files")
    parts = {os.path.basename(file).partition(".")[0]: file for file in files}
    if {"corpus", "queries"} <= parts.keys():
        hint = f"a folder in BEIR's form is given as {arg.beir}"
        raise InputError(name, f"expected files of one kind, found corpus and queries: {hint}, or its parts by name")
    return files


def _in_folder(name: str) -> Iterator[str]:
    """The files in a folder and in its partitions."""
    with os.scandir(name) as entries:
        for entry in entries:
            if entry.is_file():
                yield entry.path
            elif "=" in entry.name and not entry.name.startswith((".", "_")) and entry.is_dir():
                yield from _in_folder(entry.path)
            elif entry.name == "data" and entry.is_dir():
                yield from filter(SHARD.search, _in_folder(entry.path))


def _is_part(path: str) -> bool:
    """Whether a file below a folder is one of its own, of its partitions or of the Hub's shards."""
    *folders, _ = path.split("/")
    return all("=" in folder for folder in folders) or (folders == ["data"] and bool(SHARD.search(path)))


SHARD = re.compile(r"-\d{5}-of-\d{5}\.[^/]*$")
"""How the names of a data set's shards on the Hub end."""


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether a file or folder exists, local or at a URL."""
    elsewhere = file_system(path)
    if elsewhere is None:
        return os.path.exists(path)
    with reaching(path):
        return bool(elsewhere[0].exists(elsewhere[1]))


def joined(folder: str | os.PathLike[str], name: str) -> str:
    """The path of a file in a folder, local or at a URL."""
    text = os.fspath(folder)
    return f"{text.rstrip('/')}/{name}" if "://" in text else str(Path(text) / name)
