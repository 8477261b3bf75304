"""Output files: checked before any work, then written under a temporary, locked name and renamed."""

from __future__ import annotations

import glob
import hashlib
import os
import platform
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from evenrank import _command

from .errors import STEERING, EvenrankError, InputError, reason_of
from .reading import file_system, first_line, is_utf8

if TYPE_CHECKING:
    import polars as pl

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

PARTS = ".parts"
"""The ending of a folder beside a temporary file, of what it is made from."""
_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path next to ``path`` that is renamed to ``path`` when the block ends without an error.

    On any error, including a full disk and an interrupt, the temporary file is removed and ``path`` stays as it was;
    that of a killed process is removed when ``path`` is next written on the same machine. A replaced file passes its
    permissions on. For a URL, a pipe, a device, and a path that is not UTF-8 (which the engines cannot write), the
    temporary file is elsewhere on this machine and is copied when it is complete.
    """
    elsewhere = file_system(path)
    if elsewhere is None and not is_stream(path) and is_utf8(os.path.realpath(path)):
        with _sibling(path) as (part, target), errors_naming(path, part):
            yield part
            _move_into_place(part, target)
        return
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part"
        # It exists before anything is written, as the sibling of a local file does.
        part.touch()
        with errors_naming(path, part):
            yield part
            if elsewhere is not None:
                _upload(path, part, *elsewhere)
            elif is_stream(path):
                with part.open("rb") as source, open(path, "wb") as stream:
                    shutil.copyfileobj(source, stream)
            else:
                with _sibling(path) as (copy, target), errors_naming(path, copy):
                    shutil.copyfile(part, copy)
                    _move_into_place(copy, target)


def _upload(path: str | os.PathLike[str], part: Path, system: Any, place: str) -> None:
    """Copies a finished file to a URL; the libraries behind it raise errors of their own."""
    try:
        system.put_file(str(part), place)
    except FileNotFoundError:
        raise InputError(path, "cannot be written: no such place") from None
    except Exception as error:
        raise InputError(path, f"cannot be written: {first_line(error)}") from None


@contextmanager
def errors_naming(path: str | os.PathLike[str], part: Path) -> Iterator[None]:
    """Errors from writing ``part`` name ``path`` instead; errors of another file name that file."""
    try:
        yield
    except Exception as error:
        reason = why_unwritten(error)
        if reason is None:
            raise
        named = getattr(error, "filename", None)
        if isinstance(named, str) and not os.path.abspath(named).startswith((str(part), os.path.abspath(path))):
            raise InputError(named, reason) from None
        raise InputError(path, f"cannot be written: {reason}") from None


def _move_into_place(part: Path, target: Path) -> None:
    """Renames a finished file, with the permissions of the file that it replaces, or those of a new file."""
    part.chmod(usual_mode(target))
    part.replace(target)


def usual_mode(target: Path) -> int:
    """The permissions for a file at ``target``: those of the file that exists there, else the usual ones."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        # mkstemp and safetensors create private files.
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Creates the folder ``path`` if it does not exist. Raises InputError if it cannot be created."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(path, f"the folder cannot be made: {reason_of(error)}") from None
    return folder


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises InputError if a file cannot be written: to be called before work that would be lost."""
    if file_system(path) is None and not is_stream(path):
        with _sibling(path):
            pass


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` leads to another process, a terminal or a device rather than to a file."""
    name = os.path.abspath(path)
    # Even if standard output is a file, this name cannot be replaced by another file.
    if name in ("/dev/stdout", "/dev/stderr") or name.startswith(("/dev/fd/", "/proc/")):
        return True
    try:
        mode = os.stat(name).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def _sibling(path: str | os.PathLike[str]) -> Iterator[tuple[Path, Path]]:
    """A new file next to ``path``, locked while its process lives and then removed; and the file it is to replace."""
    # Links are kept: the file that they point to is replaced.
    target = Path(os.path.realpath(path))
    # Cut, because the name may already be as long as the file system allows.
    prefix = f".{target.name[:50]}.{_HOST}-"
    try:
        if target.is_dir():
            raise InputError(path, "cannot be written: Is a directory")
        _remove_orphans(target.parent, prefix)
        handle, name = _locked_file(prefix, target.parent)
    except OSError as error:
        raise InputError(path, f"cannot be written: {reason_of(error)}") from None
    try:
        yield Path(name), target
    finally:
        Path(name).unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def _locked_file(prefix: str, folder: Path) -> tuple[int | None, str]:
    """A new file, open and locked, and its name; None in place of the open file if the platform has no locks."""
    while True:
        handle, name = tempfile.mkstemp(prefix=prefix, suffix=".part", dir=folder)
        if fcntl is None:
            os.close(handle)
            return None, name
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        # Before it was locked, another process may have taken it for an orphan and removed it.
        if os.path.exists(name):
            return handle, name
        os.close(handle)


def _remove_orphans(folder: Path, prefix: str) -> None:
    """Removes the temporary files of killed processes of this machine: those that are not locked."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(prefix) and re.fullmatch(r"\w{8}\.part", name[len(prefix) :]):
                remove_unlocked(folder / name)


def remove_unlocked(path: Path) -> None:
    """Removes a temporary file unless a process of this machine is still writing it."""
    if fcntl is None:
        return
    with suppress(OSError):
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
            shutil.rmtree(f"{path}{PARTS}", ignore_errors=True)
        finally:
            os.close(handle)


def why_unwritten(error: Exception) -> str | None:
    """The system's reason why a file could not be written; None for any other error.

    Polars, safetensors and PyTorch wrap the system's error in their own, or replace it.
    """
    if isinstance(error, EvenrankError):
        return None
    if isinstance(error, OSError):
        return reason_of(error)
    number = re.search(r"\(os error (\d+)\)", str(error))
    if number is not None:
        return os.strerror(int(number[1]))
    torch_writer = any(name in str(error) for name in ("PytorchStreamWriter", "inline_container"))
    return "the file could not be written whole" if torch_writer else None


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes ``text`` as UTF-8, whole or not at all."""
    # Texts can contain file names that are not UTF-8.
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextmanager
def exclusive(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within the block no other process of this machine is in such a block for a file of the same folder."""
    if fcntl is None:
        yield
        return
    handle = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


_FORMULA = r"[=+\-@\t\r\n＝＋－＠]"


def ids_for_spreadsheets(ids: pl.Series) -> pl.Series:
    """Ids with an apostrophe before each that a spreadsheet would take for a formula."""
    formula = ids.str.contains(f"^{_FORMULA}") & ids.str.to_decimal().is_null()
    return ("'" + ids).zip_with(formula, ids).alias(ids.name)


def ids_from_spreadsheets(ids: pl.Series) -> pl.Series:
    """What :func:`ids_for_spreadsheets` was given."""
    return ids.str.replace(f"^'({_FORMULA})", "$1")


def for_spreadsheets(table: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before every text that a spreadsheet would take for a formula, and without
    characters that steer a terminal.

    Formulas begin with ``=``, ``+``, ``-``, ``@``, a tab or a line end, and are not numbers [OWASP, CSV Injection].
    """
    import polars as pl

    text = pl.col(pl.String)
    shown = text.str.replace_all(STEERING.pattern, "�")
    formula = text.str.contains(f"^{_FORMULA}") & text.cast(pl.Float64, strict=False).is_null()
    return table.with_columns(pl.when(formula).then("'" + shown).otherwise(shown).name.keep())


FileId = str | tuple[int, int] | tuple[str | tuple[int, int], str]
"""What identifies a file or folder: device and inode, a URL, or its folder and name if it does not exist yet."""


def check_outputs(outputs: Iterable[object], inputs: Iterable[object] = ()) -> None:
    """Raises InputError for an output that cannot be written, or that would replace a file (see :func:`check_apart`).

    To be called before any work.
    """
    files = [path for path in outputs if _is_path(path)]
    check_apart(files, inputs)
    for path in files:
        check_writable(path)
        _command.note_output(os.fspath(path))


def check_csv(*paths: str | None) -> None:
    """Raises InputError for an output whose name says another format than CSV, which it is written in."""
    for path in paths:
        if path is not None and Path(path).suffix.lower() in (".json", ".jsonl", ".parquet", ".tsv"):
            raise InputError(path, "cannot be written: expected a name that ends in .csv")


def check_apart(outputs: Iterable[object], inputs: Iterable[object] = ()) -> None:
    """Raises InputError for an output that is an input or another output, or that is inside a folder that is an input.

    Inputs can be files, folders and patterns. Whatever is not a path (None, a table, ``irds:NAME``) is ignored, and so
    are names of files that do not exist, pipes and devices. Files are compared by identity, so links are followed.
    """
    read = [(os.fspath(path), source) for path in inputs if _is_path(path) for source in _existing(os.fspath(path))]
    seen: dict[FileId, str] = {}
    for path in outputs:
        if not _is_path(path) or is_stream(path):
            continue
        name = os.fspath(path)
        local = _local(name)
        # The path that is written to in the end, even if it leads through a folder that does not exist and back.
        real = os.path.realpath(local)
        own = [_location(name), *_existing(name), *([] if "://" in local else _existing(real))]
        above = {_identity(parent) for start in (local, real) for parent in Path(start).parents if parent.is_dir()}
        for source, file_id in read:
            of = "" if source == name else f" ({source})"
            if file_id in own:
                raise InputError(path, f"cannot be written: it is an input{of}")
            if file_id in above:
                raise InputError(path, f"cannot be written: it lies in an input{of}")
        for file_id in own:
            if file_id in seen:
                of = "" if seen[file_id] == name else f" ({seen[file_id]})"
                raise InputError(path, f"cannot be written: it is another output too{of}")
        seen.update(dict.fromkeys(own, name))


def _is_path(value: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(value, str | os.PathLike) and not os.fspath(value).startswith("irds:")


def _local(name: str) -> str:
    """A local path without its ``file://``."""
    return name.removeprefix("file://")


def _identity(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Device and inode of a file or folder; None if it does not exist, or for a pipe or a device."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    has_identity = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return (status.st_dev, status.st_ino) if has_identity else None


def _existing(name: str) -> list[FileId]:
    """The identities of the existing files and folders that a path or a pattern names."""
    if "://" in name and not name.startswith("file://"):
        return [name]
    name = _local(name)
    files = [name] if os.path.lexists(name) or not glob.has_magic(name) else glob.glob(name)
    return [file_id for file in files if (file_id := _identity(file)) is not None]


def _location(name: str) -> FileId:
    """The folder and the name of a file that may not exist yet."""
    real = os.path.realpath(_local(name))
    folder, base = os.path.split(real)
    return (_identity(folder) or folder, base)
