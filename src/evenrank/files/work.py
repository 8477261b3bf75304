"""Kept work: what an interrupted call has done, the same call does not do again.

A folder of kept work has a file that says what the work is made from (``_unfinished.json``), the files of its numbered
parts, and a mark for each part that is done (``_done-000012.json``), written after the part's own file. When all is
done, the marks go, and with them every file that is named ``*.part``; what stays is the result. Readers refuse a folder
that is still unfinished.

A folder is refused that contains anything else, or links, which could redirect what is written. So are parts that were
made from something else, unless they may be replaced; without a part that is done, there is nothing to lose, and the
work begins anew.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import EvenrankError, InputError, quoted
from .json_values import json_text
from .outputs import make_folder, remove_unlocked, write_text
from .reading import UNFINISHED, file_system, joined, open_raw

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

Report = Mapping[str, Any]
"""What is known of a part, as JSON values."""
_MARK = re.compile(r"_done-(\d{6,})\.json")
_TEMPORARY = re.compile(r"\..*\.part")
"""Files that :func:`evenrank.files.outputs.atomic_path` is writing."""


class Work:
    """Numbered parts that are kept in a folder until all are done; a context manager, which holds the folder's lock.

    Leaving it with an error keeps the parts that are done; if there is none, everything is removed that it wrote.

    Args:
        folder: A path or a URL; it is made if it does not exist, and must be empty if it is not of this work.
        made_from: All that the parts depend on, as JSON values under names that an error can list.
        data: A pattern of the names of the files that stay when the work is finished.
        replace: Whether parts that were made from something else are removed instead of refused.
        resumable: Whether a later call can make the same parts; if not, none is marked, and the work begins anew.

    Raises EvenrankError for a folder that is refused, or in which another process of this machine works.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        made_from: Mapping[str, object],
        *,
        data: str = "(?!)",
        replace: bool = False,
        resumable: bool = True,
    ) -> None:
        self.folder = os.fspath(folder)
        self.done: dict[int, Report] = {}
        """The reports of the parts that are done, by number."""
        self._text = json_text(made_from, lines=False)
        self._data, self._replace = re.compile(data), replace
        self._resumable = resumable
        self._finished = False
        self._opened = ExitStack()

    def __enter__(self) -> Work:
        elsewhere = file_system(self.folder)
        with ExitStack() as opened:
            if elsewhere is None:
                opened.enter_context(alone(self.folder))
            else:
                elsewhere[0].makedirs(elsewhere[1], exist_ok=True)
            self._begin()
            self._opened = opened.pop_all()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with self._opened:
            worth_it = self._finished or (self._resumable and self.done)
            if error is not None and not worth_it:
                self._clear()

    def path(self, name: str) -> str:
        """The path of a file in the folder."""
        return joined(self.folder, name)

    def keep(self, number: int, report: Report, file: str | None = None) -> None:
        """Marks a part as done, after its ``file`` was written whole; None if it has no file of its own."""
        if self._resumable:
            size = None if file is None else self._size(file)
            write_text(self.path(_mark(number)), json.dumps({"file": file, "bytes": size, "report": report}))
        self.done[number] = report

    def finish(self) -> None:
        """Ends the work: of its files, only its data stay."""
        self._finished = True
        self._clear(data=False)

    def remove(self) -> None:
        """Removes all of it, and the folder; leaves what another process is working with."""
        with suppress(EvenrankError), alone(self.folder):
            self._clear()
        with suppress(OSError):
            os.rmdir(self.folder)

    def _begin(self) -> None:
        names = self._names()
        if UNFINISHED in names:
            self._refuse_others(names)
            differing = changed(self._read(UNFINISHED), json.loads(self._text))
            self.done = self._read_marks(names)
            if differing and self.done and not self._replace:
                raise EvenrankError(
                    f"{self.folder}: contains unfinished work that was begun with another input or setting"
                    f" ({', '.join(differing)}); remove it, or choose another output"
                )
            if differing or not self._resumable:
                self.done = {}
            if not self.done:
                self._clear()
        elif any(not name.startswith(f".{UNFINISHED}.") for name in names):
            raise EvenrankError(f"{self.folder}: expected a new or an empty folder, but it contains files")
        write_text(self.path(UNFINISHED), self._text)

    def _refuse_others(self, names: list[str]) -> None:
        local = file_system(self.folder) is None
        for name in names:
            is_link = local and os.path.islink(self.path(name))
            if is_link or not (self._is_own(name) or self._data.fullmatch(name)):
                raise EvenrankError(
                    f"{self.folder}: contains {'a link' if is_link else 'another file'}: {quoted(name)}"
                )

    def _is_own(self, name: str) -> bool:
        """Whether a file goes when the work is finished."""
        return name == UNFINISHED or name.endswith(".part") or _MARK.fullmatch(name) is not None

    def _read_marks(self, names: list[str]) -> dict[int, Report]:
        """The reports of the marks that can be read, and whose files are there in their size."""
        reports: dict[int, Report] = {}
        for name in names:
            if (match := _MARK.fullmatch(name)) is None:
                continue
            mark = self._read(name)
            file, report = mark.get("file"), mark.get("report")
            complete = file is None or (file in names and self._size(file) == mark.get("bytes"))
            if complete and isinstance(report, dict):
                reports[int(match[1])] = report
        return reports

    def _read(self, name: str) -> dict[str, Any]:
        """A JSON object of the folder; an empty one if it cannot be read."""
        try:
            with open_raw(self.path(name)) as stream:
                values = json.loads(stream.read())
        except (InputError, ValueError, RecursionError):
            return {}
        return values if isinstance(values, dict) else {}

    def _clear(self, *, data: bool = True) -> None:
        """Removes the files of the work, last the one that says what it is."""
        for name in sorted(self._names(), key=lambda name: name == UNFINISHED):
            if _TEMPORARY.fullmatch(name):
                remove_unlocked(Path(self.path(name)))
            elif self._is_own(name) or (data and self._data.fullmatch(name)):
                remove_file(self.path(name))

    def _names(self) -> list[str]:
        elsewhere = file_system(self.folder)
        if elsewhere is None:
            return sorted(os.listdir(self.folder))
        # A folder without files does not exist in an object store.
        inside = elsewhere[0].ls(elsewhere[1], detail=False) if elsewhere[0].exists(elsewhere[1]) else []
        return sorted(os.path.basename(name) for name in inside)

    def _size(self, name: str) -> int:
        elsewhere = file_system(self.path(name))
        size: int = os.stat(self.path(name)).st_size if elsewhere is None else elsewhere[0].size(elsewhere[1])
        return size


def _mark(number: int) -> str:
    return f"_done-{number:06d}.json"


def changed(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The names of what work is made from that differ."""
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def remove_file(path: str) -> None:
    """Removes a file, local or at a URL."""
    elsewhere = file_system(path)
    if elsewhere is None:
        os.unlink(path)
    else:
        elsewhere[0].rm_file(elsewhere[1])


@contextmanager
def alone(folder: str | os.PathLike[str]) -> Iterator[None]:
    """The lock of a local folder, which is made if it does not exist, and goes again if it is then empty.

    Raises EvenrankError if another process of this machine has the lock, InputError if there is a file in its place.
    """
    place, there = Path(folder), os.path.lexists(folder)
    if there and not place.is_dir():
        raise InputError(place, "expected a folder, found a file")
    make_folder(place)
    handle = None
    try:
        if fcntl is not None:
            handle = os.open(place, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # What is in the folder, and whether it stays, is for the other process to say.
                there = True
                raise EvenrankError(f"{place}: another process works in this folder") from None
            except OSError:
                pass  # a file system without locks
        yield
    finally:
        if not there:
            with suppress(OSError):
                place.rmdir()
        if handle is not None:
            os.close(handle)
