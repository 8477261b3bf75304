"""Checks of output files before any work: they can be written, and replace neither an input nor one another."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TypeGuard

from .atomic import check_writable, is_stream
from .errors import InputError

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


def _is_path(value: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(value, str | os.PathLike) and not os.fspath(value).startswith("irds:")


def _local(name: str) -> str:
    """A local path without its ``file://``."""
    return name.removeprefix("file://")


def _identity(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Device and inode of a file or folder; None if it does not exist, or for a pipe or a device."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    kept = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return (found.st_dev, found.st_ino) if kept else None


def _existing(name: str) -> list[FileId]:
    """The identities of the existing files and folders that a path or a pattern names."""
    if "://" in name and not name.startswith("file://"):
        return [name]
    name = _local(name)
    files = [name] if os.path.lexists(name) or not glob.has_magic(name) else glob.glob(name)
    return [found for file in files if (found := _identity(file)) is not None]


def _location(name: str) -> FileId:
    """The folder and the name of a file that may not exist yet."""
    real = os.path.realpath(_local(name))
    folder, base = os.path.split(real)
    return (_identity(folder) or folder, base)
