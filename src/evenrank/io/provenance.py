"""How a result was made: the command, the time, the versions, and the files with their digests."""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import sys
import threading
from collections.abc import Iterable, Sized
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evenrank import __version__, _command

from .errors import EvenrankError, InputError, shown
from .folders import files_of
from .irds import is_identifier

_LIBRARIES = (
    "numpy", "polars", "pyarrow", "scipy", "ir_measures", "ir_datasets", "bm25s", "numba", "gensim", "torch",
    "transformers", "sentence-transformers", "accelerate", "safetensors", "onnxruntime", "openvino", "ray",
)  # fmt: skip
"""Those whose version can change a figure; listed where something has imported them."""


@dataclass(slots=True)
class _Entry:
    """Something that was read. ``files``: name in the list, path, size and time of change of each."""

    role: str
    path: str | None
    note: str | None = None
    rows: int | None = None
    files: list[tuple[str, str, int, int]] = field(default_factory=list)
    several: bool = False
    hub: bool = False
    digests: list[str | None] | None = None

    def digest(self) -> None:
        """Reads the files, the first time."""
        if self.digests is None:
            self.digests = [_digest(path) for _, path, _, _ in self.files]

    def finish(self) -> dict[str, Any]:
        """The entry as JSON values: without a digest where a file is not the one any more that was noted."""
        self.digest()
        values: dict[str, Any] = {"role": self.role, "path": self.path}
        if self.rows is not None:
            values["rows"] = self.rows
        if self.files:
            digests = [digest for digest in self.digests or [] if digest is not None]
            if self.several:
                values["files"] = len(self.files)
            values |= {"bytes": sum(size for _, _, size, _ in self.files), "sha256": None}
            if len(digests) < len(self.files) or not all(_as_noted(*file) for file in self.files):
                values["changed"] = True
            elif self.several:
                lines = (f"{digest}  {file[0]}\n" for digest, file in zip(digests, self.files, strict=True))
                values["sha256"] = hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()
            else:
                values["sha256"] = digests[0]
        if self.hub:
            values["commit"] = _commit(self.path or "")
        if self.note is not None:
            values["note"] = self.note
        return values


class Provenance:
    """How a result was made, begun before its files are read.

    ``function``: the Python function that was called, which stands for the command where none was typed. The time is
    that of this object, or ``SOURCE_DATE_EPOCH`` (seconds), with which the same input gives the same bytes.
    Raises EvenrankError where that is no number of seconds.
    """

    def __init__(self, function: str) -> None:
        self.command = _command.typed.get() or function
        self.date = _now()
        self._entries: list[_Entry] = []
        self._files: list[dict[str, Any]] | None = None
        self._versions: dict[str, str] | None = None
        self._worker: threading.Thread | None = None

    def add(self, role: str, source: Any, *, tree: bool = False) -> Provenance:
        """Notes what is to be read: a file, a folder (``tree``: with all in it), a name, or a table in memory.

        To be called before it is read: a file that is another one when its digest is made is said to have changed.
        """
        if source is None:
            return self
        self._entries.append(_entry(role, source, tree))
        return self

    def add_files(self, role: str, path: str, files: Iterable[str | os.PathLike[str]]) -> Provenance:
        """Notes several files as one entry, under names relative to the folder ``path``."""
        entry = _Entry(role, path, several=True)
        entry.files = [_file(os.path.relpath(file, path).replace(os.sep, "/"), os.fspath(file)) for file in files]
        if entry.files:
            self._entries.append(entry)
        return self

    def add_model(self, role: str, model: str | os.PathLike[str] | None) -> Provenance:
        """Notes a model: its folder with all files in it, or its name on the hub with the commit that was fetched."""
        if model is None or os.path.isdir(model):
            return self.add(role, model, tree=True)
        self._entries.append(_Entry(role, os.fspath(model), "on the hub, by name", hub=True))
        return self

    def name(self, role: str, path: str, note: str) -> Provenance:
        """Notes what is known by its name alone."""
        self._entries.append(_Entry(role, path, note))
        return self

    def ahead(self, wanted: bool | None = None) -> Provenance:
        """Begins with the digests beside the reading, where they will be ``wanted`` (None: as the command says)."""
        if (_command.writes.get() if wanted is None else wanted) and self._worker is None:
            # A daemon: a command that fails does not wait for the digest of a large collection. Digests are made
            # without the interpreter's lock.
            self._worker = threading.Thread(target=self._digest_all, args=(list(self._entries),), daemon=True)
            self._worker.start()
        return self

    @staticmethod
    def _digest_all(entries: list[_Entry]) -> None:
        for entry in entries:
            entry.digest()

    def finish(self) -> list[dict[str, Any]]:
        """What was read, with its digests, which are made now: before a command writes over what it has read."""
        if self._files is None:
            if self._worker is not None:
                self._worker.join()
            self._files = [entry.finish() for entry in self._entries]
        return self._files

    def to_dict(self) -> dict[str, Any]:
        """As JSON values: ``command``, ``date``, ``versions``, ``platform`` and ``files``; the same every time."""
        files = self.finish()
        if self._versions is None:
            self._versions = _versions()
        return {
            "command": self.command,
            "date": self.date,
            "versions": dict(self._versions),
            "platform": platform.platform(),
            "files": [dict(file) for file in files],
        }

    def __getstate__(self) -> dict[str, Any]:
        self.to_dict()
        return {**self.__dict__, "_worker": None}


def _now() -> str:
    given = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        # Without an offset but Z, to the second.
        time = datetime.now(UTC) if given is None else datetime.fromtimestamp(int(given), UTC)
    except (ValueError, OverflowError, OSError):
        raise EvenrankError(f"SOURCE_DATE_EPOCH: expected a number of seconds, found {shown(given)}") from None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    versions = {"evenrank": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        if name.replace("-", "_") in sys.modules:
            try:
                versions[name] = version(name)
            except PackageNotFoundError:
                continue
    return versions


def _entry(role: str, source: Any, tree: bool) -> _Entry:
    if not isinstance(source, str | os.PathLike):
        return _Entry(role, None, "in memory", _rows(source))
    path = os.fspath(source)
    if is_identifier(path):
        return _Entry(role, path, "ir_datasets, by name")
    if "://" in path:
        return _Entry(role, path, "an address, not digested")
    if path.startswith(("/dev/", "/proc/")):
        return _Entry(role, path, "a stream, not digested")
    try:
        if tree and os.path.isdir(path):
            return _several(role, path, _tree(path))
        files = files_of(path)
        if files != [path]:
            return _several(role, path, [(os.path.basename(file), file) for file in files])
        kind = os.stat(path).st_mode
        if not stat.S_ISREG(kind):
            return _Entry(role, path, "a pipe, not digested" if stat.S_ISFIFO(kind) else "a stream, not digested")
        return _Entry(role, path, files=[_file(path, path)])
    except (InputError, OSError):
        # Whoever reads it says what is wrong.
        return _Entry(role, path, "not found")


def _rows(source: Any) -> int | None:
    """The rows of a table, of a run or scores that hold one, or of anything that has a length."""
    for table in (source, getattr(source, "table", None), getattr(source, "words", None)):
        if isinstance(table, Sized):
            return len(table)
    return None


def _several(role: str, path: str, named: list[tuple[str, str]]) -> _Entry:
    return _Entry(role, path, files=[_file(name, file) for name, file in named], several=True)


def _tree(folder: str) -> list[tuple[str, str]]:
    """Every file of a folder and the folders in it, but for those whose name, or whose folder's, begins with a dot."""
    home = Path(folder)
    inside = (file.relative_to(home) for file in home.rglob("*") if file.is_file())
    names = sorted(name.as_posix() for name in inside if not any(part.startswith(".") for part in name.parts))
    return [(name, str(home / name)) for name in names]


def _file(name: str, path: str) -> tuple[str, str, int, int]:
    known = os.stat(path)
    return name, path, known.st_size, known.st_mtime_ns


def _commit(model: str) -> str | None:
    """The commit that the hub's name stands for in this machine's cache."""
    home = os.environ.get("HF_HOME", os.path.join(os.path.expanduser("~"), ".cache", "huggingface"))
    cache = os.environ.get("HF_HUB_CACHE", os.path.join(home, "hub"))
    try:
        with open(os.path.join(cache, f"models--{model.replace('/', '--')}", "refs", "main"), encoding="ascii") as file:
            return file.read(64).strip() or None
    except (OSError, ValueError):
        return None


def _as_noted(_: str, path: str, size: int, changed: int) -> bool:
    try:
        known = os.stat(path)
    except OSError:
        return False
    return (known.st_size, known.st_mtime_ns) == (size, changed)


def _digest(path: str) -> str | None:
    try:
        with open(path, "rb", buffering=0) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None
