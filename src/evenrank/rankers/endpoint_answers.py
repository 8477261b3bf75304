"""Answers of a server kept in an SQLite file: what was answered once is not asked again."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evenrank.io import InputError
from evenrank.io.atomic import is_stream

_APPLICATION = 0x65766E72
"""Marks the file as ours, in SQLite's own field for that."""
_VERSION = 1
_HEAD = b"SQLite format 3\0"
_MARK = 8
"""Bytes of a digest before each answer: SQLite does not notice every damage."""
_LOCKED = 60
"""Seconds to wait for another process that writes."""


class Answers:
    """Answers by the digest of their question, in the file ``path``; None: in a temporary one, gone when closed.

    Written as they come (a process that is killed loses none of them), from any thread and from several processes.
    Raises InputError for a file that is damaged, cannot be written or belongs to another program, which stays as it is.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.Lock()
        if path is not None:
            _check(path)
        with self._errors():
            # An empty name is a temporary file, which grows out of the memory only where it must.
            self._base = sqlite3.connect(
                self.path or "", timeout=_LOCKED, check_same_thread=False, isolation_level=None
            )
            self._base.text_factory = bytes  # there is no text in it, unless it is damaged
            try:
                self._begin()
            except BaseException:
                self._base.close()
                raise

    def _begin(self) -> None:
        (application,), (version,) = (
            self._base.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        (tables,) = self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if self.path is not None and application != _APPLICATION and (application or tables):
            raise InputError(self.path, "expected answers that evenrank kept, found another program's database")
        if self.path is not None and application == _APPLICATION and version != _VERSION:
            raise InputError(self.path, f"expected answers in version {_VERSION}, found version {version}")
        self._base.execute("PRAGMA journal_mode = WAL")
        # Enough for a process that is killed; a power cut can lose the last answers, but never damages the file.
        self._base.execute("PRAGMA synchronous = NORMAL")
        self._base.execute("BEGIN IMMEDIATE")
        self._base.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._base.execute(f"PRAGMA user_version = {_VERSION}")
        self._base.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
        self._base.execute("COMMIT")

    def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The answers [keys]; None where there is none."""
        with self._lock, self._errors():
            find = "SELECT value FROM answers WHERE key = ?"
            found = [self._base.execute(find, (key,)).fetchone() for key in keys]
        return [None if row is None else self._sound(key, row[0]) for key, row in zip(keys, found, strict=True)]

    def save(self, answers: Iterable[tuple[bytes, bytes]]) -> None:
        """Keeps answers, all or none of them."""
        rows = [(key, _mark(key, value) + value) for key, value in answers]
        with self._lock, self._errors():
            self._base.execute("BEGIN IMMEDIATE")
            try:
                self._base.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", rows)
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._base.close()

    def _sound(self, key: bytes, kept: object) -> bytes:
        if isinstance(kept, bytes) and kept[:_MARK] == _mark(key, kept[_MARK:]):
            return kept[_MARK:]
        raise self._damaged("an answer is not what was written")

    def _damaged(self, reason: object) -> InputError:
        return InputError(self.path or "answers", f"damaged answers ({reason}): remove the file to ask everything anew")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise InputError(self.path or "answers", f"cannot be used: {error}") from None
        except (sqlite3.Error, UnicodeDecodeError, TypeError) as error:
            raise self._damaged(error) from None


def _mark(key: bytes, value: bytes) -> bytes:
    return hashlib.sha256(key + value).digest()[:_MARK]


def _check(path: str | os.PathLike[str]) -> None:
    """Raises InputError for what cannot be a file of answers, before SQLite touches it."""
    if "://" in os.fspath(path) or is_stream(path):
        raise InputError(path, "expected a file on this machine for answers")
    try:
        with open(path, "rb") as file:
            head = file.read(len(_HEAD))
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(path, f"cannot be used: {error.strerror}") from None
    if head and head != _HEAD:
        raise InputError(path, "expected answers that evenrank kept, found another file")
