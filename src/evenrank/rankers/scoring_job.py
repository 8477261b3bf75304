"""Pairs to score in windows: here or on a cluster, resuming what was interrupted."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from evenrank._version import __version__
from evenrank.engines.progress import progress
from evenrank.engines.ray import Cluster, on_ray
from evenrank.io import InputError, atomic_path, write_text
from evenrank.io.json_values import json_text
from evenrank.io.outputs import remove_unlocked

from .load import StoredRanker
from .scorers import Rows, Scorer, Scores, TextPairs, Truncation

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


# Batches in a window: texts are sorted by length within it, and an interruption loses no more than one.
_WINDOW = 64


@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """All scores [pairs]; ``of_shuffles``: those of other orders of each list.

    ``facts``: those of the ranker as it was loaded, here or by a worker; ``truncated``: how many texts it cut, None if
    that is unknown; ``resumed``: how many of the scores an interrupted run left in ``parts``.
    """

    scores: Scores
    facts: dict[str, object]
    of_shuffles: tuple[Scores, ...] = ()
    truncated: Truncation | None = None
    resumed: int = 0
    parts: Parts | None = None


@dataclass(frozen=True, slots=True)
class ScoringJob:
    """Pairs to score in windows, in this process or in those of a cluster, to which it is sent; ``what``: the word for
    it in the progress."""

    ranker: StoredRanker | Scorer
    pairs: TextPairs
    batch_size: int
    what: str = "re-ranking"

    def windows(self) -> list[Rows]:
        """The rows of each window."""
        return self.pairs.windows(self.ranker.unit, _WINDOW * self.batch_size)

    def scorer(self) -> Scorer:
        """The ranker, loaded."""
        return self.ranker if isinstance(self.ranker, Scorer) else self.ranker.load()

    def __call__(self) -> Callable[[int], dict[str, object]]:
        """What a worker of a cluster does: from the number of a window to its scores and the facts of the ranker."""
        scorer, windows = self.scorer(), self.windows()
        score = scorer.bind(self.pairs, self.batch_size)

        def reported(number: int) -> dict[str, object]:
            before = scorer.truncated
            scores = score(windows[number]).tolist()
            cut = _truncated_since(before, scorer.truncated)
            return {"scores": scores, "truncated": cut, "facts": scorer.facts()}

        return reported

    def run(self, out: str | os.PathLike[str] | None, cluster: Cluster | None, quiet: bool) -> ScoredPairs:
        """The scores of all pairs; those that an interrupted run left beside ``out`` are taken from there."""
        windows = self.windows()
        digest: Callable[[], str] | None
        if cluster is not None:
            assert isinstance(self.ranker, StoredRanker)
            model = self.ranker
            digest = model.folder.digest
            settings = f"ray {model.precision} {model.device} {model.backend} {bool(cluster.gpus)}"
            score_windows = partial(_on_ray, self, cluster)
        else:
            scorer = self.scorer()
            # The same as is computed for the facts, once.
            settings, digest = scorer.settings, scorer.digest
            score_windows = partial(_here, scorer, self.pairs, self.batch_size, windows)
        parts = None
        if out is not None and isinstance(self.ranker, StoredRanker):
            assert digest is not None
            parts = Parts(out, _fingerprint(self.ranker, digest(), settings, self.pairs, self.batch_size))
        with progress(self.what, self.pairs.size, quiet=quiet) as advance:
            done = _score_windows(score_windows, windows, self.pairs.size, parts, advance)
        scores, facts, truncated, resumed = done
        return ScoredPairs(scores, facts or self.scorer().facts(), (), truncated, resumed, parts)


def _fingerprint(ranker: StoredRanker, digest: str, settings: str, pairs: TextPairs, batch_size: int) -> str:
    """A hash of all that the scores depend on: kept scores are reused only if it is the same."""
    import sentence_transformers
    import torch
    import transformers

    versions = [__version__, sentence_transformers.__version__, transformers.__version__, torch.__version__]
    folder = ranker.folder
    prompts = [ranker.prompts.query, ranker.prompts.document]
    values = [folder.name, digest, folder.architecture, batch_size, _WINDOW, settings, *prompts, *versions]
    total = hashlib.sha256(json.dumps(values).encode())
    for texts in (pairs.queries, pairs.documents):
        for part in texts.to_frame("text").iter_slices(1 << 16):
            total.update(part.write_ndjson().encode())
    total.update(pairs.query.tobytes())
    total.update(pairs.document.tobytes())
    return total.hexdigest()


def _here(
    scorer: Scorer, pairs: TextPairs, batch_size: int, windows: list[Rows], numbers: list[int]
) -> Iterator[tuple[int, Scored]]:
    """Windows by number with what is known of each."""
    before, facts = scorer.truncated, scorer.facts()
    found = scorer.each(pairs, batch_size, [windows[number] for number in numbers])
    for number, scores in zip(numbers, found, strict=True):
        after = scorer.truncated
        yield number, Scored(scores, _truncated_since(before, after), facts)
        before = after


def _truncated_since(before: Truncation | None, after: Truncation | None) -> str | None:
    """What was truncated between two counts, as JSON; None if it is unknown."""
    return None if before is None or after is None else json_text(after - before, lines=False)


def _on_ray(job: ScoringJob, cluster: Cluster, numbers: list[int]) -> Iterator[tuple[int, Scored]]:
    for number, report in on_ray(numbers, job, cluster, keep=True):
        yield number, Scored(np.array(report["scores"], np.float64), report["truncated"], report["facts"])


def _score_windows(
    score_windows: Callable[[list[int]], Iterator[tuple[int, Scored]]],
    windows: list[Rows],
    size: int,
    parts: Parts | None,
    advance: Callable[[int], None],
) -> tuple[Scores, dict[str, object], Truncation | None, int]:
    """All scores [size], the ranker's facts (of one that was loaded now, if any was), what was truncated, and how many
    of the scores an interrupted run had kept."""
    scores = np.empty(size)
    missing, truncated = [], []
    facts: dict[str, object] = {}
    for number, rows in enumerate(windows):
        kept = None if parts is None else parts.load(number, len(rows))
        if kept is None:
            missing.append(number)
            continue
        scores[rows], facts = kept.scores, kept.facts
        truncated.append(kept.truncated)
        advance(len(rows))
    for number, found in score_windows(missing) if missing else ():
        if parts is not None:
            parts.save(number, found)
        scores[windows[number]], facts = found.scores, found.facts
        truncated.append(found.truncated)
        advance(len(found.scores))
    return scores, facts, _sum(truncated), size - sum(len(windows[number]) for number in missing)


def _sum(truncated: list[str | None]) -> Truncation | None:
    """What was truncated of all windows; None if that is unknown of one."""
    counts = [Truncation(**json.loads(one)) for one in truncated if one is not None]
    if not counts or len(counts) < len(truncated):
        return None
    return sum(counts[1:], counts[0])
