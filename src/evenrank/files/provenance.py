"""How a result was made: the command, the time, the versions, and the files with their digests.

What made a run stands in a run card, a JSON file beside it (``RUN.card.json``): ``evenrank`` (the version),
``command``, ``date``, ``versions``, ``run_bytes`` and ``run_sha256`` of the run that it describes, ``made_by``
(``stage``: retrieve, rerank, fuse or rebalance; the ``index``, ``ranker``, ``weights`` or ``method``) and ``inputs``,
the files read with their digests. A card that does not match its run is ignored.
"""

from __future__ import annotations

import functools
import hashlib
import json
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

from .convert import is_path
from .errors import EvenrankError, InputError, quoted, readable
from .irds import is_identifier
from .json_values import json_text
from .outputs import is_stream, write_text
from .reading import file_system, files_of

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
        """Starts computing digests while the inputs are read, if ``wanted`` (None: if the command writes files)."""
        if (bool(_command.outputs.get()) if wanted is None else wanted) and self._worker is None:
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
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        # In UTC, to the second.
        time = datetime.now(UTC) if epoch is None else datetime.fromtimestamp(int(epoch), UTC)
    except (ValueError, OverflowError, OSError):
        raise EvenrankError(f"SOURCE_DATE_EPOCH: expected a number of seconds, found {quoted(epoch)}") from None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _versions() -> dict[str, str]:
    used = {name: _version(name) for name in _LIBRARIES if name in spared or name.replace("-", "_") in sys.modules}
    known = {name: v for name, v in used.items() if v is not None}
    return {"evenrank": __version__, "python": platform.python_version(), **known}


@functools.cache
def _version(name: str) -> str | None:
    """The version of an installed library, whose metadata is read once."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _entry(role: str, source: object, tree: bool) -> _Entry:
    if not isinstance(source, str | os.PathLike):
        return _Entry(role, None, "in memory", _rows(source))
    path = os.fspath(source)
    if is_identifier(path):
        return _Entry(role, path, "ir_datasets, by name")
    if "://" in path:
        return _Entry(role, _command.redacted_address(path), "an address, not digested")
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


SUFFIX = ".card.json"
_LONGEST = 80
_OUTER = ("evenrank", "command", "date", "versions", "inputs")


def card_path(path: str | os.PathLike[str] | None) -> str | None:
    """The file of a run's card; None for a run that is not a local file, and for None."""
    if path is None or is_stream(path) or file_system(path) is not None:
        return None
    return os.fspath(path) + SUFFIX


def files_beside(*runs: object) -> list[str]:
    """The cards of runs that are files, which no output may replace."""
    return [path for path in map(card_path, filter(is_path, runs)) if path is not None]


def write_card(made_by: Mapping[str, object], path: str | os.PathLike[str], provenance: Provenance) -> None:
    """Writes the card of the run at ``path``, which must have been written; nothing for what is no local file."""
    target = card_path(path)
    if target is None:
        return
    record = provenance.to_dict()
    values = {
        "evenrank": __version__,
        "command": record["command"],
        "date": record["date"],
        "versions": record["versions"],
        "run_bytes": os.stat(path).st_size,
        "run_sha256": file_digest(os.fspath(path)),
        "made_by": dict(made_by),
        "inputs": record["files"],
    }
    write_text(target, json_text(values) + "\n")


def read_card(path: str | os.PathLike[str]) -> tuple[Mapping[str, object] | None, str | None]:
    """What made the run at ``path``, and why a card beside it was ignored; None for either.

    The values of ``made_by``, and beside them ``evenrank``, ``command``, ``date``, ``versions`` and ``inputs``.
    """
    target = card_path(path)
    # Only where there is a card, a run has to be read twice for its digest.
    if target is None or not os.path.isfile(target):
        return None, None
    name = readable(os.path.basename(target))
    try:
        card = json.loads(Path(target).read_bytes())
        made_by, digest = card["made_by"], card["run_sha256"]
        if not isinstance(made_by["stage"], str):
            raise TypeError
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return None, f"its card {name} is damaged and was ignored"
    # Its size is compared first.
    if card.get("run_bytes") != os.stat(path).st_size or digest != file_digest(os.fspath(path)):
        return None, f"its card {name} is of another run and was ignored"
    return {**made_by, **{key: card[key] for key in _OUTER if key in card}}, None


def made_by_text(card: Mapping[str, object]) -> str:
    """What made a run, in words; a card may hold anything, so each value is cut to a line.

    >>> made_by_text({"stage": "rerank", "ranker": {"kind": "bi-encoder", "model": "MiniLM", "reads": 256}})
    're-ranked by bi-encoder MiniLM (reads 256 tokens)'
    """
    model: Mapping[str, object]
    if card.get("stage") == "fuse":
        weights = [f"{_short(name)} ({_short(weight)})" for name, weight in _object(card.get("weights")).items()]
        return f"fused from {', '.join(weights) or 'unknown runs'}"
    if card.get("stage") == "rebalance":
        tied = _object(card.get("tied"))
        of_ties = (
            f"; {_short(tied['rows'])} of {_short(tied.get('of'))} rows were tied before" if tied.get("rows") else ""
        )
        return f"rebalanced by {_short(card.get('method'))} at strength {_short(card.get('strength'))}{of_ties}"
    if card.get("stage") == "retrieve":
        index = _object(card.get("index"))
        model = {**_object(index.get("model")), **_of_queries(card, index), "kind": index.get("kind")}
        about, verb = [*_computed(model), *_searched(card, index)], "retrieved"
    else:
        model = _object(card.get("ranker"))
        about, verb = _computed(model), "re-ranked"
    named = " ".join(_short(model[name]) for name in ("kind", "model") if model.get(name) is not None)
    text = f"{verb} by {named or 'an unknown model'}" + (f" ({', '.join(about)})" if about else "")
    truncated = _object(card.get("truncated"))
    if truncated.get("cut"):
        unit = _short(truncated.get("unit", "passage"))
        text += f"; {_short(truncated['cut'])} of {_short(truncated.get('of'))} {unit}s truncated"
    return f"{text}; documents by their best passages" if card.get("passages") == "max" else text


def ranker_note(name: str, ranker: Mapping[str, object]) -> str | None:
    """What the notes of a run say of its ``ranker``; None of a function, of which nothing is known.

    >>> ranker_note("MiniLM", {"kind": "bi-encoder", "model": "MiniLM", "precision": "float32", "reads": 256})
    'MiniLM: bi-encoder, float32, reads 256 tokens'
    """
    if ranker.get("kind") == "function":
        return None
    names = [_short(ranker[key]) for key in ("kind", "model") if ranker.get(key) not in (None, name)]
    parts = ([" ".join(names)] if names else []) + _computed(ranker)
    return f"{name}: {', '.join(parts)}" if parts else None


def _computed(made: Mapping[str, object]) -> list[str]:
    """How a model computes, or where an endpoint is."""
    about = [_short(made[name]) for name in ("api", "url", "precision") if made.get(name) is not None]
    about += [f"reads {_short(made['reads'])} tokens"] if made.get("reads") is not None else []
    for prompt in ("query_prompt", "document_prompt"):
        about += [f"{prompt.replace('_', ' ')} {quoted(made[prompt])}"] if made.get(prompt) else []
    return about


def _of_queries(card: Mapping[str, object], index: Mapping[str, object]) -> dict[str, object]:
    """What a search has of its own, where an index has the prompts and the precision of its making."""
    encoder = _object(card.get("query_encoder"))
    own = {name: encoder[name] for name in ("query_prompt", "precision") if name in encoder}
    before = _object(index.get("model")).get("precision")
    if before is not None and own.get("precision", before) != before:
        own["precision"] = f"{_short(before)}, queries in {_short(own['precision'])}"
    return own


def _searched(card: Mapping[str, object], index: Mapping[str, object]) -> list[str]:
    """How an index was searched."""
    settings = _object(index.get("settings"))
    about = [f"{name} {_short(settings[name])}" for name in ("k1", "b") if _plain(settings.get(name))]
    about += [_short(settings["analysis"])] if settings.get("analysis") else []
    about += ["weighted words"] if settings.get("weighted") is True else []
    feedback = _object(card.get("rm3"))
    if feedback:
        about += [f"RM3 of {_short(feedback.get('fb_terms'))} terms of {_short(feedback.get('fb_docs'))} documents"]
    return about


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _short(value: object) -> str:
    return quoted(value, _LONGEST)[1:-1]
