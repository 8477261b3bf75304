"""How a result was made: the command, the time, the versions, and the files with their digests."""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import sys
import threading
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evenrank import _command
from evenrank._version import __version__

from .errors import EvenrankError, InputError, quoted
from .files import files_of
from .irds import is_identifier

_LIBRARIES = (
    "numpy", "polars", "pyarrow", "scipy", "ir_measures", "ir_datasets", "numba", "gensim", "torch",
    "transformers", "sentence-transformers", "accelerate", "safetensors", "onnxruntime", "openvino", "ray",
)  # fmt: skip
"""Libraries whose version can change a figure; listed if they were imported."""
spared: set[str] = set()
"""Libraries that are listed although they were not imported, because so little work did not need them: a result of a
small collection says the same as that of a large one."""


@dataclass(slots=True)
class _Entry:
    """An input. ``files``: the listed name, path, size and modification time of each."""

    role: str
    path: str | None
    note: str | None = None
    rows: int | None = None
    files: list[tuple[str, str, int, int]] = field(default_factory=list)
    several: bool = False
    hub: bool = False
    digests: list[str | None] | None = None
    card: Mapping[str, object] | None = None

    def digest(self) -> None:
        """Computes the digests, once."""
        if self.digests is None:
            self.digests = [file_digest(path) for _, path, _, _ in self.files]

    def finish(self) -> dict[str, object]:
        """The entry as JSON values; without a digest if a file has changed since it was recorded."""
        self.digest()
        values: dict[str, object] = {"role": self.role, "path": self.path}
        if self.rows is not None:
            values["rows"] = self.rows
        if self.files:
            digests = [digest for digest in self.digests or [] if digest is not None]
            if self.several:
                values["files"] = len(self.files)
            values |= {"bytes": sum(size for _, _, size, _ in self.files), "sha256": None}
            if len(digests) < len(self.files) or not all(_unchanged(*file) for file in self.files):
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
        if self.card is not None:
            values["card"] = dict(self.card)
        return values


class Provenance:
    """How a result was made; created before the inputs are read.

    ``function``: the Python function, recorded if no command was typed. The date is the time of creation, or
    ``SOURCE_DATE_EPOCH`` (seconds), which makes results reproducible byte for byte.
    Raises EvenrankError if that is not a number of seconds.
    """

    def __init__(self, function: str) -> None:
        self.command = _command.typed.get() or function
        self.date = _now()
        self._entries: list[_Entry] = []
        self._files: list[dict[str, object]] | None = None
        self._versions: dict[str, str] | None = None
        self._worker: threading.Thread | None = None

    def add(self, role: str, source: object, *, tree: bool = False) -> Provenance:
        """Records an input: a file, a folder (``tree``: including subfolders), a name, or a table in memory.

        To be called before it is read: a file that differs when its digest is computed is reported as changed.
        """
        if source is None:
            return self
        self._entries.append(_entry(role, source, tree))
        return self

    def add_files(self, role: str, path: str, files: Iterable[str | os.PathLike[str]]) -> Provenance:
        """Records several files as one entry, with names relative to the folder ``path``."""
        entry = _Entry(role, path, several=True)
        entry.files = [_file(os.path.relpath(file, path).replace(os.sep, "/"), os.fspath(file)) for file in files]
        if entry.files:
            self._entries.append(entry)
        return self

    def add_model(self, role: str, model: str | os.PathLike[str] | None) -> Provenance:
        """Records a model: its folder with all its files, or its hub name with the downloaded commit."""
        if model is None or os.path.isdir(model):
            return self.add(role, model, tree=True)
        self._entries.append(_Entry(role, os.fspath(model), "on the hub, by name", hub=True))
        return self

    def name(self, role: str, path: str, note: str) -> Provenance:
        """Records an input that is identified by its name only."""
        self._entries.append(_Entry(role, path, note))
        return self

    def add_card(self, role: str, card: Mapping[str, object] | None) -> Provenance:
        """Records what made an input that was recorded as ``role``: the card of a run."""
        for entry in self._entries:
            if entry.role == role:
                entry.card = card
        return self

    def ahead(self, wanted: bool | None = None) -> Provenance:
        """Starts computing digests while the inputs are read, if ``wanted`` (None: if the command writes them)."""
        if (_command.writes.get() if wanted is None else wanted) and self._worker is None:
            # A daemon thread, so that a failing command does not wait for the digest of a large collection. Hashing
            # releases the GIL.
            self._worker = threading.Thread(target=self._digest_all, args=(list(self._entries),), daemon=True)
            self._worker.start()
        return self

    @staticmethod
    def _digest_all(entries: list[_Entry]) -> None:
        for entry in entries:
            entry.digest()

    @property
    def paths(self) -> list[str]:
        """The files that were read."""
        return [path for entry in self._entries for _, path, _, _ in entry.files]

    def finish(self) -> list[dict[str, object]]:
        """The inputs with their digests, computed now: before a command replaces what it has read."""
        if self._files is None:
            if self._worker is not None:
                self._worker.join()
            self._files = [entry.finish() for entry in self._entries]
        return self._files

    def to_dict(self) -> dict[str, Any]:
        """As JSON values: ``command``, ``date``, ``versions``, ``platform`` and ``files``; the same on every call."""
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

    def __getstate__(self) -> dict[str, object]:
        self.to_dict()
        return {**self.__dict__, "_worker": None}


def _now() -> str:
    given = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        # In UTC, to the second.
        time = datetime.now(UTC) if given is None else datetime.fromtimestamp(int(given), UTC)
    except (ValueError, OverflowError, OSError):
        raise EvenrankError(f"SOURCE_DATE_EPOCH: expected a number of seconds, found {quoted(given)}") from None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    versions = {"evenrank": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        if name in spared or name.replace("-", "_") in sys.modules:
            try:
                versions[name] = version(name)
            except PackageNotFoundError:
                continue
    return versions


def _entry(role: str, source: object, tree: bool) -> _Entry:
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
        # Reading it will raise the error.
        return _Entry(role, path, "not found")


def _rows(source: object) -> int | None:
    """The length of a table, of an object with a table (a run, a group table), or of anything that has a length."""
    for table in (source, getattr(source, "table", None), getattr(source, "words", None)):
        if isinstance(table, Sized):
            return len(table)
    return None


def _several(role: str, path: str, named: list[tuple[str, str]]) -> _Entry:
    return _Entry(role, path, files=[_file(name, file) for name, file in named], several=True)


def _tree(folder: str) -> list[tuple[str, str]]:
    """All files in a folder and its subfolders, except hidden ones."""
    home = Path(folder)
    inside = (file.relative_to(home) for file in home.rglob("*") if file.is_file())
    names = sorted(name.as_posix() for name in inside if not any(part.startswith(".") for part in name.parts))
    return [(name, str(home / name)) for name in names]


def _file(name: str, path: str) -> tuple[str, str, int, int]:
    known = os.stat(path)
    return name, path, known.st_size, known.st_mtime_ns


def _commit(model: str) -> str | None:
    """The commit of a hub model in the local cache."""
    home = os.environ.get("HF_HOME", os.path.join(os.path.expanduser("~"), ".cache", "huggingface"))
    cache = os.environ.get("HF_HUB_CACHE", os.path.join(home, "hub"))
    try:
        with open(os.path.join(cache, f"models--{model.replace('/', '--')}", "refs", "main"), encoding="ascii") as file:
            return file.read(64).strip() or None
    except (OSError, ValueError):
        return None


def _unchanged(_: str, path: str, size: int, changed: int) -> bool:
    try:
        known = os.stat(path)
    except OSError:
        return False
    return (known.st_size, known.st_mtime_ns) == (size, changed)


def file_digest(path: str) -> str | None:
    """The SHA-256 of a file; None if it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None
