"""Folders of files that are read as one, on this machine or at a URL."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from .errors import InputError, reason_of
from .files import file_system

UNFINISHED = "_unfinished.json"
"""In a folder that a command is writing parts into; it goes when all are there."""


def files_of(path: str | os.PathLike[str]) -> list[str]:
    """The files that a path names: itself, those of a folder, or those that match a pattern, in the order of names.

    In a folder names that begin with ``.`` or ``_`` are left out, and manifests. Raises InputError for a folder that
    holds none, or that a command has not finished.
    """
    name = os.fspath(path)
    elsewhere = file_system(name)
    if elsewhere is None:
        if os.path.isdir(name):
            try:
                with os.scandir(name) as entries:
                    inside = sorted(entry.path for entry in entries if entry.is_file())
            except OSError as error:
                raise InputError(error.filename or name, f"cannot be read: {reason_of(error)}") from None
        elif os.path.lexists(name) or not glob.has_magic(name):
            return [name]
        else:
            inside = sorted(file for file in glob.glob(name) if os.path.isfile(file))
    else:
        system, place = elsewhere
        if glob.has_magic(place):
            inside = sorted(system.unstrip_protocol(file) for file in system.glob(place))
        elif system.isdir(place):
            inside = sorted(system.unstrip_protocol(file) for file in system.ls(place, detail=False))
        else:
            return [name]
    if any(os.path.basename(file) == UNFINISHED for file in inside):
        raise InputError(name, "unfinished: the command that writes it has to be run again")
    kept = [file for file in inside if not os.path.basename(file).startswith((".", "_"))]
    kept = [file for file in kept if not file.endswith(".manifest.json")]
    if not kept:
        raise InputError(name, "no file in it")
    return kept


def part_name(number: int, form: str) -> str:
    """The name of a part: ``part-000012.parquet``."""
    return f"part-{number:06d}.{form}"


def joined(folder: str | os.PathLike[str], name: str) -> str:
    """A file in a folder, of this machine or a URL."""
    text = os.fspath(folder)
    return f"{text.rstrip('/')}/{name}" if "://" in text else str(Path(text) / name)
