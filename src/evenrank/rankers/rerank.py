"""Re-ranking: the first documents of a run get new scores from any ranker."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evenrank._version import __version__
from evenrank.engines.progress import progress
from evenrank.engines.ray import Cluster, Engine, check_engine, on_ray
from evenrank.io import EvenrankError, Run, as_collection, as_queries, as_run, check_outputs, write_run
from evenrank.io.ranges import check_ranges

from .load import StoredRanker, find_ranker
from .models import Architecture, Precision
from .pairs import Rows, TextPairs
from .parts import Parts
from .scorers import ScoreFunction, Scorer, Scores, check_finite

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from .export import Backend
    from .protocol import Ranker

# Batches in a window: texts are sorted by length within it, and an interruption loses no more than one.
_WINDOW = 64


# long, parameters: those of the command, each documented here.
def rerank(
    run: object,
    model: str | os.PathLike[str] | CrossEncoder | SentenceTransformer | Ranker | Scorer | ScoreFunction,
    collection: object,
    queries: object,
    depth: int = 1000,
    *,
    batch_size: int = 32,
    kind: Architecture | None = None,
    precision: Precision = "auto",
    backend: Backend = "torch",
    int8: bool = False,
    device: str | None = None,
    transform: Callable[[pl.Series], pl.Series] | None = None,
    tag: str | None = None,
    out: str | os.PathLike[str] | None = None,
    engine: Engine = "local",
    cluster: Cluster | None = None,
    quiet: bool = False,
) -> Run:
    """Ranks the first ``depth`` documents of each query by the scores of ``model`` and leaves out the others.

    ``run``, ``collection``, ``queries``: paths, dicts (``{query: {document: score}}``, ``{id: text}``), frames of
    polars or pandas, or records; ``run`` may be a :class:`Run`. Only the texts that are needed are kept in memory.

    ``model``: a folder of a ranker trained here; a folder or a name on the hub that sentence-transformers loads, with
    ``kind`` ("cross" or "bi") if its files do not show which it is; a loaded ``CrossEncoder`` or
    ``SentenceTransformer``; a ranker of this library; or a function of a query and a list of its passages that returns
    a score for each passage, called once per query. The new run is named ``tag``, or after the model
    (``runs/my-dot/model``: my-dot).

    Scores are a cross-encoder's logits, a bi-encoder's own similarity (each text is encoded once, with the model's
    prompts if it has any), or those of the ranker or the function. In float32 the score of a pair does not depend on
    the other pairs, to 1e-5; in bf16 (the default on a GPU that supports it, unless ``precision="float32"``) the last
    of about three digits can differ between batches.

    ``backend``: "onnx" or "openvino" run encoders on the CPU, in float32 unless ``precision="bfloat16"`` (OpenVINO) or
    ``int8`` is set; the exported model is kept beside the model's files. ``device``: as PyTorch names it (default: the
    fastest). These settings are for a model given by its folder or name; a loaded one is used as it is.

    ``transform`` changes the texts of queries and of documents, each [N], before they are scored (to mask words, say).

    ``out``: also write the run there. If ``model`` is a folder or a name, an interrupted call resumes when it is made
    again, and writes the same bytes. ``engine="ray"``: the workers of a Ray cluster (``cluster``: how many, with which
    resources) load the model and score the pairs; the folder must be available on every machine.

    Raises EvenrankError for a setting out of range, for queries or documents of the run without a text, and for scores
    that are not finite; InputError for a model or a collection that cannot be used; MissingExtraError without the extra
    [neural], or [export] for another backend.
    """
    check_ranges(depth=depth, batch_size=batch_size)
    check_engine(engine)
    check_outputs([out], [run, collection, queries, model])
    run, collection, queries = as_run(run), as_collection(collection), as_queries(queries)
    # After the input, as a model on the hub may have to be downloaded.
    ranker = find_ranker(model, kind, device=device, precision=precision, backend=backend, int8=int8)
    if engine == "ray" and isinstance(ranker, Scorer):
        raise EvenrankError("`engine='ray'`: expected a folder or a name on the hub as `model`, found a loaded model")
    table = run.table.filter(pl.col("rank") <= depth)
    pairs = TextPairs.of_run(run.described, table, collection, queries)
    if transform is not None:
        pairs = pairs.transformed(transform)
    job = _Job(ranker, pairs, batch_size)
    scores, resumed, parts = job.run(out, (cluster or Cluster()) if engine == "ray" else None, quiet)
    check_finite(scores, str(model) if isinstance(model, str | os.PathLike) else ranker.name)
    notes = run.notes
    if resumed:
        notes += (f"{ranker.name}: {resumed} of {pairs.size} scores kept from an interrupted run",)
    result = Run.from_table(table.with_columns(pl.Series("score", scores)), tag or ranker.name, notes=notes)
    if out is not None:
        write_run(result, out)
    if parts is not None:
        parts.remove()
    return result


@dataclass(frozen=True, slots=True)
class _Job:
    """Pairs to score in windows, in this process or in those of a cluster, to which it is sent."""

    ranker: StoredRanker | Scorer
    pairs: TextPairs
    batch_size: int

    def windows(self) -> list[Rows]:
        """The rows of each window."""
        return self.pairs.windows(self.ranker.unit, _WINDOW * self.batch_size)

    def scorer(self) -> Scorer:
        """The ranker, loaded."""
        return self.ranker if isinstance(self.ranker, Scorer) else self.ranker.load()

    def __call__(self) -> Callable[[int], dict[str, list[float]]]:
        """What a worker of a cluster does: from the number of a window to its scores."""
        score, windows = self.scorer().bind(self.pairs, self.batch_size), self.windows()
        return lambda number: {"scores": score(windows[number]).tolist()}

    def run(
        self, out: str | os.PathLike[str] | None, cluster: Cluster | None, quiet: bool
    ) -> tuple[Scores, int, Parts | None]:
        """All scores [pairs], how many of them an interrupted run left beside ``out``, and where they are kept."""
        windows = self.windows()
        if cluster is not None:
            assert isinstance(self.ranker, StoredRanker)
            model = self.ranker
            settings = f"ray {model.precision} {model.device} {model.backend} {model.int8} {bool(cluster.gpus)}"
            score_windows = partial(_on_ray, self, cluster)
        else:
            scorer = self.scorer()
            settings = scorer.settings
            score_windows = partial(_here, scorer.bind(self.pairs, self.batch_size), windows)
        parts = None
        if out is not None and isinstance(self.ranker, StoredRanker):
            parts = Parts(out, _fingerprint(self.ranker, settings, self.pairs, self.batch_size))
        scores, resumed = _score_windows(score_windows, windows, self.pairs.size, parts, quiet)
        return scores, resumed, parts


def _fingerprint(ranker: StoredRanker, settings: str, pairs: TextPairs, batch_size: int) -> str:
    """A hash of all that the scores depend on: kept scores are reused only if it is the same."""
    import sentence_transformers
    import torch
    import transformers

    versions = [__version__, sentence_transformers.__version__, transformers.__version__, torch.__version__]
    folder = ranker.folder
    values = [folder.digest(), folder.architecture, batch_size, _WINDOW, settings, *versions]
    total = hashlib.sha256(json.dumps(values).encode())
    for texts in (pairs.queries, pairs.documents):
        for part in texts.to_frame("text").iter_slices(1 << 16):
            total.update(part.write_ndjson().encode())
    total.update(pairs.query.tobytes())
    total.update(pairs.document.tobytes())
    return total.hexdigest()


def _here(score: Callable[[Rows], Scores], windows: list[Rows], numbers: list[int]) -> Iterator[tuple[int, Scores]]:
    yield from ((number, score(windows[number])) for number in numbers)


def _on_ray(job: _Job, cluster: Cluster, numbers: list[int]) -> Iterator[tuple[int, Scores]]:
    for number, report in on_ray(numbers, job, cluster, keep=True):
        yield number, np.array(report["scores"], np.float64)


def _score_windows(
    score_windows: Callable[[list[int]], Iterator[tuple[int, Scores]]],
    windows: list[Rows],
    size: int,
    parts: Parts | None,
    quiet: bool,
) -> tuple[Scores, int]:
    """All scores [size], and how many of them an interrupted run had kept."""
    scores = np.empty(size)
    missing = []
    with progress("re-ranking", size, quiet=quiet) as advance:
        for number, rows in enumerate(windows):
            kept = None if parts is None else parts.load(number, len(rows))
            if kept is None:
                missing.append(number)
                continue
            scores[rows] = kept
            advance(len(rows))
        for number, found in score_windows(missing) if missing else ():
            if parts is not None:
                parts.save(number, found)
            scores[windows[number]] = found
            advance(len(found))
    return scores, size - sum(len(windows[number]) for number in missing)
