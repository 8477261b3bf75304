"""Scores kept on disk during a re-ranking, so that an interrupted one resumes."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from evenrank.io import InputError, atomic_path, write_text
from evenrank.io.atomic import remove_unlocked

from .scorers import Scores

_FINGERPRINT = "fingerprint"


@dataclass(frozen=True, slots=True)
class Scored:
    """The ``scores`` of a window, what of it was ``truncated``, as JSON (None: not known), and the ranker's ``facts``
    where they were computed."""

    scores: Scores
    truncated: str | None
    facts: dict[str, object]


class Parts:
    """A folder beside ``out`` with the scores of each window, valid for one fingerprint of model, inputs and settings.

    Scores with another fingerprint are deleted. Raises InputError if the folder cannot be written.
    """

    def __init__(self, out: str | os.PathLike[str], fingerprint: str) -> None:
        target = Path(out)
        # Another process with other inputs may write to the same ``out``: its windows have other names.
        self._mark = hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
        self.folder = target.with_name(f".{target.name}.rerank")
        try:
            self.folder.mkdir(exist_ok=True)
            kept = self.folder / _FINGERPRINT
            if not (kept.is_file() and kept.read_text(encoding="utf-8") == fingerprint):
                self._clear()
                write_text(kept, fingerprint)
        except OSError as error:
            raise InputError(target, f"cannot be written: {error.strerror or error}") from None

    def load(self, window: int, size: int) -> Scored | None:
        """What :meth:`save` kept of a window of ``size`` pairs, or None if it is missing or damaged."""
        try:
            table = pl.read_parquet(self._file(window).read_bytes())
            scores = table["score"].to_numpy()
            [(cut, facts)] = table.select("truncated", "facts").head(1).rows()
            return Scored(scores, cut, json.loads(facts)) if len(scores) == size else None
        except (OSError, ValueError, TypeError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None

    def save(self, window: int, scored: Scored) -> None:
        """Writes what is known of a window, atomically."""
        self.folder.mkdir(exist_ok=True)  # another process may have removed it
        cut, facts = pl.lit(scored.truncated, dtype=pl.String), pl.lit(json.dumps(scored.facts))
        with atomic_path(self._file(window)) as part:
            pl.DataFrame({"score": scored.scores}).with_columns(truncated=cut, facts=facts).write_parquet(part)

    def remove(self) -> None:
        """Removes the folder."""
        self._clear()
        with suppress(OSError):
            self.folder.rmdir()

    def _file(self, window: int) -> Path:
        return self.folder / f"{window:08d}-{self._mark}.parquet"

    def _clear(self) -> None:
        # Only files of this class: the folder may be the user's.
        for pattern in (_FINGERPRINT, "[0-9]*.parquet"):
            for file in self.folder.glob(pattern):
                file.unlink(missing_ok=True)
        for file in self.folder.glob(".*.part"):
            remove_unlocked(file)
