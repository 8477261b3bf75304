"""Files written whole or not at all: beside their place, locked, and then renamed."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from .errors import EvenrankError, InputError, reason_of
from .files import file_system

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]


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
            part = Path(folder) / "part"
            # Beside a file too there is one before anything is written.
            part.touch()
            yield part
            try:
                elsewhere[0].put_file(str(part), elsewhere[1])
            except OSError as error:
                raise InputError(path, f"cannot be written: {reason_of(error)}") from None
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
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8")


def json_text(value: Any, *, lines: bool = True) -> str:
    """``value`` as JSON: what is not finite as null, numpy's numbers as numbers; on one line without ``lines``."""
    return json.dumps(_plain(value), indent=1 if lines else None, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
