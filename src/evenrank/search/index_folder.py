"""The folder of an index: what describes it, how it is built, what is refused.

``index.json`` is written last: a folder without it is no finished index. Data are arrays in ``*.npy``, mapped when an
index is opened; while an index is built, it is kept work (:mod:`evenrank.files.work`).
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Annotated, Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from evenrank import options as opt
from evenrank._version import __version__
from evenrank.files import EvenrankError, InputError, Provenance, Run, as_queries, write_text
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, quoted, readable, reason_of
from evenrank.files.json_values import json_text
from evenrank.files.outputs import errors_naming
from evenrank.files.reading import INDEX as MANIFEST
from evenrank.files.reading import INDEX_FORMAT, file_system, files_of, is_index
from evenrank.files.work import Work

from .expansion import RM3

FORMAT = f"{INDEX_FORMAT} 2"
Number = TypeVar("Number", bound=np.generic)
KINDS = ("bm25", "dense", "sparse")
_LARGEST_MANIFEST = 1 << 26
_DATA = re.compile(r"[a-z][a-z0-9-]*\.npy")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What ``index.json`` says. ``files``: the bytes and the SHA-256 of each data file; ``path``: the folder."""

    kind: str
    documents: int
    collection: Mapping[str, object]
    """As in a result's provenance: ``path``, ``sha256``, ``bytes`` and so on."""
    settings: Mapping[str, Any]
    model: Mapping[str, object] | None
    """The facts of the model that made it; None without one."""
    versions: Mapping[str, str]
    files: Mapping[str, Mapping[str, object]]
    path: Path
    evenrank: str = __version__
    format: str = FORMAT

    def array(self, name: str, dtype: type[Number], length: int | None = None) -> NDArray[Number]:
        """A data file, mapped. Raises InputError for one that is no array of ``dtype``, or has another ``length``."""
        try:
            array: NDArray[Number] = np.load(self.path / name, mmap_mode="r", allow_pickle=False)
        except Exception:  # a damaged heading can raise anything
            raise InputError(self.path, f"the index is damaged: {name} cannot be read") from None
        if array.dtype != dtype or (length is not None and len(array) != length):
            raise InputError(self.path, f"the index is damaged: {name} does not fit the other files")
        return array

    def card(self) -> dict[str, object]:
        """The index's entry in a run card."""
        return {"path": str(self.path), **{name: value for name, value in self.values().items() if name != "files"}}

    def values(self) -> dict[str, object]:
        """As JSON values."""
        names = ("format", "evenrank", "kind", "documents", "collection", "settings", "model", "versions", "files")
        return {name: getattr(self, name) for name in names}


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """The manifest of a finished index whose files are all there, each with its size.

    Raises InputError, in one line, for a folder that is no index, or one that is unfinished, damaged, or written in
    another format.
    """
    folder = Path(path)
    try:
        with open(folder / MANIFEST, "rb") as stream:
            content = stream.read(_LARGEST_MANIFEST)
    except OSError as error:
        if is_index(folder):
            raise InputError(path, "the index was not finished: run the command that builds it again") from None
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise InputError(path, f"expected an index, found no {MANIFEST}") from None
        raise InputError(path, f"{MANIFEST} cannot be read: {reason_of(error)}") from None
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        raise InputError(path, f"the index is damaged: {MANIFEST} is not JSON") from None
    form = values.get("format") if isinstance(values, dict) else None
    if not isinstance(form, str) or not form.startswith(INDEX_FORMAT):
        raise InputError(path, f"expected an index, found an {MANIFEST} of something else")
    if form != FORMAT:
        raise InputError(path, f"the index has the format {quoted(form)}, expected {quoted(FORMAT)}: build it again")
    manifest = _checked(folder, values)
    check_files(manifest)
    return manifest


def check_files(manifest: Manifest) -> None:
    """Raises InputError unless each data file is there, with its size: for before and after each search.

    Reading beyond the end of a mapped file that was cut ends the process; up to there, its last page is filled with 0.
    """
    folder = manifest.path
    for name, entry in manifest.files.items():
        try:
            status = os.lstat(folder / name)
        except OSError as error:
            raise InputError(folder, f"the index is damaged: {name}: {reason_of(error)}") from None
        size = entry["bytes"]
        if not stat.S_ISREG(status.st_mode):
            # A link could lead anywhere.
            raise InputError(folder, f"the index is damaged: {name} is not a plain file")
        if status.st_size != size:
            raise InputError(folder, f"the index is damaged: {name} has {status.st_size} bytes, expected {size}")


def verify(manifest: Manifest) -> None:
    """Raises InputError if a data file differs from what was written: reads all of them."""
    for name, digest in _digests(manifest.path, list(manifest.files)).items():
        if digest != manifest.files[name]["sha256"]:
            raise InputError(manifest.path, f"the index is damaged: {name} differs from what was written")


@contextmanager
def naming_damage(manifest: Manifest) -> Iterator[None]:
    """Raises InputError where something fails because a data file differs from what was written: its numbers can lead
    anywhere."""
    try:
        yield
    except (LookupError, ValueError, MemoryError):
        verify(manifest)
        raise


def _checked(folder: Path, values: Mapping[str, Any]) -> Manifest:
    documents, model, files = values.get("documents"), values.get("model"), values.get("files")
    valid = {
        "kind": values.get("kind") in KINDS,
        "documents": type(documents) is int and 1 <= documents <= opt.LARGEST,
        "model": model is None or isinstance(model, dict),
        "evenrank": isinstance(values.get("evenrank"), str),
        **{name: isinstance(values.get(name), dict) for name in ("collection", "settings", "versions")},
        "files": isinstance(files, dict) and all(map(_is_entry, files.items())),
    }
    damaged = next((name for name, is_valid in valid.items() if not is_valid), None)
    if damaged is not None:
        raise InputError(folder, f"the index is damaged: {MANIFEST} has no valid {quoted(damaged)}")
    return Manifest(**{name: values[name] for name in valid}, path=folder)


def _is_entry(item: tuple[str, Any]) -> bool:
    name, entry = item
    size, digest = (entry.get("bytes"), entry.get("sha256")) if isinstance(entry, dict) else (None, None)
    return bool(_DATA.fullmatch(name)) and type(size) is int and isinstance(digest, str)


class HowToSearch(NamedTuple):
    """The keywords of :meth:`FirstStage.search`."""

    rm3: RM3 | None
    weighted: bool
    name: str | None
    quiet: bool
    model: object
    encoding: Encoding | None


class FirstStage(ABC):
    """An index that is open: in a folder, its files mapped (see :func:`evenrank.open_index`), or BM25's in memory.

    Raises InputError if the files of the manifest do not fit each other.
    """

    def __init__(self, manifest: Manifest | None) -> None:
        self.manifest = manifest
        """What it is, of which collection, made how; None in memory."""

    @checked
    def search(
        self,
        queries: object,
        k: Annotated[int, opt.COUNT] = 1000,
        *,
        rm3: RM3 | None = None,
        weighted: bool = False,
        name: str | None = None,
        quiet: bool = False,
        model: object = None,
        encoding: Encoding | None = None,
    ) -> Run:
        """The first ``k`` documents of each query, as a run whose ``card`` describes the index.

        ``name``: the run's (None: the kind's). ``model``: where the index's model is now, if not where it was;
        ``encoding``: how queries are encoded. Raises EvenrankError for what a kind of index does not know; InputError
        if it is damaged or was cut since.
        """
        how = HowToSearch(rm3, weighted, name, quiet, model, encoding)
        search = functools.partial(self._search, as_queries(queries), k, how)
        if self.manifest is None:
            return search()
        check_files(self.manifest)
        with naming_damage(self.manifest):
            run = search()
        check_files(self.manifest)
        notes = (*run.notes, *(f"{run.name}: {note}" for note in self._changed))
        return replace(run, notes=notes, card={**(run.card or {}), "index": self.manifest.card()})

    @abstractmethod
    def _search(self, queries: pl.DataFrame, k: int, how: HowToSearch) -> Run:
        """The run, without what is said of the index itself."""

    @functools.cached_property
    def _changed(self) -> list[str]:
        return [] if self.manifest is None else changed_collection(self.manifest)


def begin_digest(collection: object) -> Callable[[], dict[str, object]]:
    """Starts to compute a collection's provenance in a thread; call the result for it.

    It has ``path``, ``bytes`` and ``sha256`` of the files, None where there are none. The call raises EvenrankError if
    a file has changed since.
    """
    provenance = Provenance("build_index").add("collection", collection).ahead(True)

    def digest() -> dict[str, object]:
        entry = dict(provenance.finish()[0])
        if entry.get("changed"):
            raise EvenrankError(f"{collection}: changed while it was read")
        return {"path": None, "bytes": None, "sha256": None, **entry}

    return digest


def save_array(file: Path | IO[bytes], array: NDArray[Any]) -> None:
    """Writes an array as ``.npy``. Raises OSError with the system's reason, which :func:`numpy.save` leaves out."""
    if isinstance(file, Path):
        with file.open("wb") as stream:
            save_array(stream, array)
        return
    array = np.ascontiguousarray(array)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    file.write(header.getvalue())
    file.write(array.tobytes() if array.size == 0 else array.data)


class IndexWriter:
    """Builds an index in the folder ``out``; a context manager.

    ``settings`` are those of the manifest. ``made_from``: what the index depends on beside them, such as the
    collection's digest and the model's; after an interruption, a writer with the same continues the ``work``, if a part
    of it is done. Without (None), an unfinished build starts again from nothing, and one that fails leaves nothing.

    Entering raises EvenrankError for a folder that is an index already, contains other files or the beginning of
    another index, or that another process writes. Errors of the system while writing become InputError.
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        kind: str,
        settings: Mapping[str, object],
        *,
        made_from: Mapping[str, object] | None = None,
    ) -> None:
        if file_system(out) is not None:
            raise InputError(out, "an index is built in a local folder")
        self.folder, self.kind, self.settings = Path(out), kind, dict(settings)
        # What is_index looks for comes first.
        all_of_it = {"format": FORMAT, "kind": kind, "settings": settings, **(made_from or {})}
        self.work = Work(
            out, all_of_it, data=rf"{re.escape(MANIFEST)}|{_DATA.pattern}", resumable=made_from is not None
        )
        self._opened = ExitStack()

    def file(self, name: str) -> Path:
        """The path of a file to write: ``NAME.npy`` for data, ``NAME.part`` for work in progress."""
        return self.folder / name

    def new_array(self, name: str, dtype: DTypeLike, *shape: int) -> NDArray[Any]:
        """A new data file, mapped, to be filled. Raises OSError where there is no room for it."""
        array = np.lib.format.open_memmap(self.file(name), "w+", np.dtype(dtype), shape)
        if hasattr(os, "posix_fallocate"):
            # A full disk would end the program where the map is filled.
            with self.file(name).open("r+b") as stream:
                os.posix_fallocate(stream.fileno(), 0, os.fstat(stream.fileno()).st_size)
        return array

    def __enter__(self) -> IndexWriter:
        if os.path.lexists(self.folder / MANIFEST):
            what = "is an index already" if is_index(self.folder) else f"contains another {MANIFEST}"
            raise EvenrankError(f"{self.folder}: {what}; remove it, or choose another output")
        with ExitStack() as opened:
            opened.enter_context(errors_naming(self.folder, self.folder))
            opened.enter_context(self.work)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)

    def finish(
        self,
        documents: int,
        collection: Mapping[str, object],
        *,
        model: Mapping[str, object] | None = None,
        versions: Mapping[str, str],
    ) -> Manifest:
        """Writes the manifest, with which the index is finished, and removes what is not part of it."""
        names = sorted(name for name in os.listdir(self.folder) if _DATA.fullmatch(name))
        digests = _digests(self.folder, names)
        files = {name: {"bytes": (self.folder / name).stat().st_size, "sha256": digests[name]} for name in names}
        of = dict(collection)
        manifest = Manifest(self.kind, documents, of, self.settings, model, dict(versions), files, self.folder)
        write_text(self.folder / MANIFEST, json_text(manifest.values()))
        self.work.finish()
        return manifest


def _digests(folder: Path, names: list[str]) -> dict[str, str]:
    def digest(name: str) -> str:
        with open(folder / name, "rb", buffering=0) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            return dict(zip(names, pool.map(digest, names), strict=True))
        except OSError as error:
            raise InputError(folder, f"cannot be read: {reason_of(error)}") from None


def changed_collection(manifest: Manifest) -> list[str]:
    """A note if the collection is still where it was, in another size than what was indexed."""
    path, size = manifest.collection.get("path"), manifest.collection.get("bytes")
    try:
        if not isinstance(path, str) or file_system(path) is not None:
            return []
        size_now = sum(os.path.getsize(file) for file in files_of(path))
    except (OSError, ValueError, EvenrankError):
        # It is no longer there.
        return []
    return [] if size_now == size else [f"the collection {readable(path)} has changed since the index was made"]


@checked
@dataclass(frozen=True, slots=True)
class Encoding:
    """Settings of :func:`evenrank.build_index` and :func:`evenrank.retrieve` with a model.

    ``kind``: "bi" or "sparse", where the model's files do not tell. ``precision``: auto, float32 or bfloat16.
    ``query_prompt``, ``document_prompt``: put before each text in place of the model's own ("": nothing); a search uses
    the index's query prompt unless one is given.
    """

    batch_size: opt.BatchSize = 32
    device: opt.Device = None
    kind: Annotated[
        str | None, opt.Option("bi or sparse, if the model's files do not tell.", panel="Model", rare=True)
    ] = None
    precision: Annotated[
        str | None,
        opt.Option(
            "auto (bfloat16 on a GPU that supports it), float32 or bfloat16.",
            metavar="NAME",
            panel="Machine",
            rare=True,
        ),
    ] = None
    query_prompt: Annotated[
        str | None,
        opt.Option("Before each query, in place of the model's own.", metavar="TEXT", panel="Model", rare=True),
    ] = None
    document_prompt: Annotated[
        str | None,
        opt.Option("Before each document, in place of the model's own.", metavar="TEXT", panel="Model", rare=True),
    ] = None


def refuse_model(model: object, encoding: Encoding | None) -> None:
    """Raises EvenrankError if a model, or settings of one, are given for BM25."""
    if model is not None or (encoding is not None and encoding != Encoding(batch_size=encoding.batch_size)):
        raise EvenrankError(
            f"BM25 has no model: {arg.model}, {arg.device} and the like are for an index of a model's vectors"
            f" (build one with {arg.model})"
        )
