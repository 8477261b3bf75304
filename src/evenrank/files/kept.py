"""Values that are kept under digests, so that no process asks for or computes one twice: a table in an SQLite file."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from .errors import InputError
from .outputs import is_stream

_VERSION = 1
_MARK = 8
"""Bytes of a digest before each value: SQLite does not notice every damage."""


class KeptValues:
    """Values by the digest of what they are of, in the file ``path``; None: in a temporary one, gone when closed.

    Written as they come (a process that is killed loses none of them), from any thread and from several processes.
    Raises InputError for a file that is damaged, cannot be written or belongs to another program, which stays as it is.
    A class of values says in messages what they are (``noun``) and what removing them means (``anew``), and marks its
    files by ``application``, in SQLite's own field for that.
    """

    noun: ClassVar[str]
    anew: ClassVar[str]
    application: ClassVar[int]

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        if path is not None and ("://" in os.fspath(path) or is_stream(path)):
            raise InputError(path, f"expected a file on this machine for {self.noun}")
        self._path, self._lock = path or self.noun, threading.Lock()
        with self._errors():
            self._base = sqlite3.connect(path or "", timeout=60, check_same_thread=False, isolation_level=None)
            try:
                self._begin()
            except BaseException:
                self._base.close()
                raise

    def _begin(self) -> None:
        with self._base as base:
            base.execute("BEGIN IMMEDIATE")
            layout = [base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
            layout += base.execute("SELECT type, name FROM sqlite_master").fetchall()
            if layout == [0, 0]:
                base.execute(f"PRAGMA application_id = {self.application}")
                base.execute(f"PRAGMA user_version = {_VERSION}")
                base.execute(f"CREATE TABLE {self.noun} (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
            # A view in the table's place could be made to run for ever.
            elif layout != [self.application, _VERSION, ("table", self.noun)]:
                raise InputError(self._path, f"expected {self.noun} that this version of evenrank kept")
        base.execute("PRAGMA journal_mode = WAL")
        # Enough for a process that is killed; a power cut can lose the last values, but never damages the file.
        base.execute("PRAGMA synchronous = NORMAL")

    def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values [keys]; None where there is none."""
        with self._lock, self._errors():
            find = f"SELECT value FROM {self.noun} WHERE key = ?"
            rows = [self._base.execute(find, (key,)).fetchone() for key in keys]
        for key, row in zip(keys, rows, strict=True):
            if row is not None and not (isinstance(row[0], bytes) and row[0][:_MARK] == _mark(key, row[0][_MARK:])):
                raise InputError(self._path, f"damaged {self.noun}: remove the file to {self.anew}")
        return [None if row is None else row[0][_MARK:] for row in rows]

    def save(self, values: Iterable[tuple[bytes, bytes]]) -> None:
        """Keeps values under their keys, all or none of them."""
        rows = [(key, _mark(key, value) + value) for key, value in values]
        with self._lock, self._errors(), self._base:
            self._base.execute("BEGIN IMMEDIATE")
            self._base.executemany(f"INSERT OR REPLACE INTO {self.noun} VALUES (?, ?)", rows)

    def close(self) -> None:
        """Closes the file."""
        self._base.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise InputError(self._path, f"kept {self.noun} cannot be used: {error}") from None


def _mark(key: bytes, value: bytes) -> bytes:
    return hashlib.sha256(key + value).digest()[:_MARK]
