"""Files written whole or not at all: beside their place, locked, and then renamed."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import EvenrankError, InputError, readable, reason_of
from .files import file_system, is_utf8

if TYPE_CHECKING:
    import polars as pl

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its name when the block ends without an error.

    On any error, a full disk and an interrupt included, the temporary file goes and ``path`` stays as it was; that of a
    process that was killed goes when ``path`` is written again on the same machine. A file that is replaced leaves its
    rights to the new one. For a URL, a pipe, a device, and a place whose name is not UTF-8 (which the engines cannot
    write), the temporary file is elsewhere on this machine, and is put there whole.
    """
    elsewhere = file_system(path)
    if elsewhere is None and not is_stream(path) and is_utf8(os.path.realpath(path)):
        with _beside(path) as (part, target), _blamed(path, part):
            yield part
            _take_place(part, target)
        return
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part"
        # Beside a file too there is one before anything is written.
        part.touch()
        with _blamed(path, part):
            yield part
            if elsewhere is not None:
                elsewhere[0].put_file(str(part), elsewhere[1])
            elif is_stream(path):
                with part.open("rb") as source, open(path, "wb") as stream:
                    shutil.copyfileobj(source, stream)
            else:
                with _beside(path) as (beside, target), _blamed(path, beside):
                    shutil.copyfile(part, beside)
                    _take_place(beside, target)


@contextmanager
def _blamed(path: str | os.PathLike[str], part: Path) -> Iterator[None]:
    """Errors of writing ``part`` name ``path``; those of another file that the system names, that one."""
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


def _take_place(part: Path, target: Path) -> None:
    """Gives a finished file its name, with the rights of the file that it replaces, or of any new one."""
    part.chmod(usual_mode(target))
    part.replace(target)


def usual_mode(target: Path, new: int = 0o666) -> int:
    """The rights that a file gets at a place: those of the file that is there, or of any ``new`` one."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        # mkstemp, and safetensors, make private files.
        mask = os.umask(0)
        os.umask(mask)
        return new & ~mask


def make_folder(path: str | os.PathLike[str]) -> Path:
    """The folder ``path``, made where there is none yet. Raises InputError where it cannot be made."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(path, f"the folder cannot be made: {reason_of(error)}") from None
    return folder


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises InputError where a file could not be written: to be asked before work that would be lost."""
    if file_system(path) is None and not is_stream(path):
        with _beside(path):
            pass


def check_outputs(outputs: Iterable[Any], inputs: Iterable[Any] = ()) -> None:
    """Raises InputError where a file could not be written, or only over an input or another output (`check_apart`).

    To be asked before any work.
    """
    files = [path for path in outputs if _is_path(path)]
    check_apart(files, inputs)
    for path in files:
        check_writable(path)


def check_apart(outputs: Iterable[Any], inputs: Iterable[Any] = ()) -> None:
    """Raises InputError for an output that is an input or another output, or that lies in a folder that is an input.

    Inputs: files, folders, patterns; what is no path (None, a table, ``irds:NAME``) is passed over, and so are names
    that no file has, pipes and devices. Files are told by their identity, so through links too.
    """
    read = [(os.fspath(path), found) for path in inputs if _is_path(path) for found in _found(os.fspath(path))]
    seen: dict[Any, str] = {}
    for path in outputs:
        if not _is_path(path) or is_stream(path):
            continue
        name = os.fspath(path)
        local = _local(name)
        # Written to is what the path comes to, also over a folder that is not there and back.
        real = os.path.realpath(local)
        own = [_place(name), *_found(name), *([] if "://" in local else _found(real))]
        above = {_identity(parent) for start in (local, real) for parent in Path(start).parents if parent.is_dir()}
        for source, found in read:
            of = "" if source == name else f" ({source})"
            if found in own:
                raise InputError(path, f"cannot be written: it is an input{of}")
            if found in above:
                raise InputError(path, f"cannot be written: it lies in an input{of}")
        for found in own:
            if found in seen:
                of = "" if seen[found] == name else f" ({seen[found]})"
                raise InputError(path, f"cannot be written: it is another output too{of}")
        seen.update(dict.fromkeys(own, name))


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike) and not os.fspath(value).startswith("irds:")


def _local(name: str) -> str:
    """A path of this machine without the ``file://`` that it may have."""
    return name.removeprefix("file://")


def _identity(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """The device and the number of a file or folder, None where there is none, or where it is a pipe or a device."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    kept = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return (found.st_dev, found.st_ino) if kept else None


def _found(name: str) -> list[Any]:
    """What tells the files and folders that a path or a pattern names; none where there are none."""
    if "://" in name and not name.startswith("file://"):
        return [name]
    name = _local(name)
    files = [name] if os.path.lexists(name) or not glob.has_magic(name) else glob.glob(name)
    return [found for file in files if (found := _identity(file)) is not None]


def _place(name: str) -> Any:
    """What tells a file that may not be there yet: its folder and its name."""
    real = os.path.realpath(_local(name))
    folder, base = os.path.split(real)
    return (_identity(folder) or folder, base)


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether what is written to ``path`` goes on to another process, a terminal or a device."""
    name = os.path.abspath(path)
    # Where standard output is a file, this is no name to put another file under.
    if name in ("/dev/stdout", "/dev/stderr") or name.startswith(("/dev/fd/", "/proc/")):
        return True
    try:
        mode = os.stat(name).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def _beside(path: str | os.PathLike[str]) -> Iterator[tuple[Path, Path]]:
    """A new file beside ``path``, locked while its process lives and then removed; and what it is to replace."""
    # A link keeps pointing to its file.
    target = Path(os.path.realpath(path))
    # A name can be as long as the file system allows: what is put around it must not make it longer.
    prefix = f".{target.name[:50]}.{_HOST}-"
    try:
        if target.is_dir():
            raise InputError(path, "cannot be written: Is a directory")
        _remove_forsaken(target.parent, prefix)
        handle, name = _locked(lambda: tempfile.mkstemp(prefix=prefix, suffix=".part", dir=target.parent))
    except OSError as error:
        raise InputError(path, f"cannot be written: {reason_of(error)}") from None
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
    while True:
        made = tempfile.mkdtemp(prefix=prefix, suffix=".part", dir=parent)
        if fcntl is None:
            return None, made
        # Another process may have taken it for a forsaken one already.
        with suppress(FileNotFoundError):
            return os.open(made, os.O_RDONLY), made


def _locked(make: Callable[[], tuple[int | None, str]]) -> tuple[int | None, str]:
    """What ``make`` made, an opened file and its name, with a lock; no opened file where the system has no locks."""
    while True:
        handle, name = make()
        if handle is None or fcntl is None:
            if handle is not None:
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
        return reason_of(error)
    number = re.search(r"\(os error (\d+)\)", str(error))
    if number is not None:
        return os.strerror(int(number[1]))
    torch_writer = any(name in str(error) for name in ("PytorchStreamWriter", "inline_container"))
    return "the file could not be written whole" if torch_writer else None


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes ``text`` as UTF-8, whole or not at all."""
    # A name that is not UTF-8 gets into texts too.
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")


def for_spreadsheets(table: pl.DataFrame) -> pl.DataFrame:
    """A table whose texts no spreadsheet takes for formulas: an apostrophe before those that begin like one.

    That is, with ``=``, ``+``, ``-``, ``@``, a tab or a line end, and are no number [OWASP, CSV Injection].
    """
    import polars as pl

    text = pl.col(pl.String)
    formula = text.str.contains(r"^[=+\-@\t\r\n＝＋－＠]") & text.cast(pl.Float64, strict=False).is_null()
    return table.with_columns(pl.when(formula).then("'" + text).otherwise(text).name.keep())


def json_text(value: Any, *, lines: bool = True) -> str:
    """``value`` as JSON: what is not finite as null, numpy's numbers as numbers; on one line without ``lines``."""
    return readable(json.dumps(_plain(value), indent=1 if lines else None, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
