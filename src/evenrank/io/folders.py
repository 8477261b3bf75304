"""Folders of files that are read as one collection, local or at a URL."""

from __future__ import annotations

import glob
import os
from contextlib import suppress
from pathlib import Path

from .errors import InputError, reason_of
from .files import file_system

UNFINISHED = "_unfinished.json"
"""The file that marks a folder of parts as unfinished; it is removed when all parts are written."""
INDEX, UNFINISHED_INDEX = "index.json", "unfinished.json"
"""The file that describes an index, and the one that marks a folder as an unfinished index."""
INDEX_FORMAT = "evenrank index"


def is_index(path: object) -> bool:
    """Whether a path is the folder of an index, finished or not; damaged ones are told by their files."""
    if not isinstance(path, str | os.PathLike) or file_system(path) is not None:
        return False
    for name in (INDEX, UNFINISHED_INDEX):
        with suppress(OSError, ValueError), open(Path(path) / name, "rb") as stream:
            # A collection can have a part of that name.
            if INDEX_FORMAT.encode() in stream.read(200) or (Path(path) / "ids-text.bin").is_file():
                return True
    return False


def files_of(path: str | os.PathLike[str]) -> list[str]:
    """The files that a path names: the file itself, or those in a folder or matching a pattern, sorted by name.

    Names starting with ``.`` or ``_`` and manifests are left out. Raises InputError if no file is left, and for a
    folder of parts that is unfinished or of an index.
    """
    name = os.fspath(path)
    elsewhere = file_system(name)
    if elsewhere is None:
        if is_index(name):
            raise InputError(name, "is an index; expected a collection")
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
        raise InputError(name, "unfinished: run the command that writes it again")
    kept = [file for file in inside if not os.path.basename(file).startswith((".", "_"))]
    kept = [file for file in kept if not file.endswith(".manifest.json")]
    if not kept:
        raise InputError(name, "contains no files")
    return kept


def part_name(number: int, form: str) -> str:
    """The file name of a part: ``part-000012.parquet``."""
    return f"part-{number:06d}.{form}"


def joined(folder: str | os.PathLike[str], name: str) -> str:
    """The path of a file in a folder, local or at a URL."""
    text = os.fspath(folder)
    return f"{text.rstrip('/')}/{name}" if "://" in text else str(Path(text) / name)
