"""Re-ranking: the first documents of a run scored anew by any trained ranker, cross-encoder or bi-encoder."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from evenrank import __version__
from evenrank.io import EvenrankError, Run, as_collection, as_queries, as_run, check_outputs, read_texts, write_run
from evenrank.io.errors import shown
from evenrank.io.progress import progress
from evenrank.io.ranges import check_ranges
from evenrank.io.ray_engine import Cluster, Engine, check_engine, on_ray

from .models import Kind, ModelFolder, Precision, find_model, load, load_kernel, require_extra
from .parts import Parts, Scores

if TYPE_CHECKING:
    from .export import Backend
    from .protocol import Ranker

Rows = np.ndarray[Any, np.dtype[np.int64]]
# Batches in a window, inside which texts are sorted by length; also what an interruption costs at most.
_WINDOW = 64
_SIMILARITIES = 1 << 14


def rerank(
    run: Any,
    model: str,
    collection: Any,
    queries: Any,
    depth: int = 1000,
    *,
    batch_size: int = 32,
    kind: Kind | None = None,
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
    """The first ``depth`` documents of each query, ranked by the scores of ``model``; the others are left out.

    ``model``: a folder of a trained ranker, or a folder or a name on the hub that sentence-transformers loads
    (``models.py`` says how its kind is told); the new run is named ``tag``, or as the model's folder is (of
    ``runs/my-dot/model``: my-dot). ``run``, ``collection``, ``queries``: paths, dicts (``{query: {document: score}}``,
    ``{id: text}``) or frames of polars or pandas; ``run`` a :class:`Run` too. Of a collection's file only the needed
    texts are kept. Scores are a cross-encoder's logit, a bi-encoder's own similarity of query and document, each
    encoded once (with the model's prompts, if it has them), or a kernel ranker's score. In float32 a score depends on
    its own pair alone, to 1e-5; in bf16 (on a GPU that computes in it, unless ``precision="float32"``) the last of
    about three digits can differ from batch to batch.

    ``backend``: "onnx" or "openvino" computes the encoders of sentence-transformers on the CPU, in float32 unless
    ``precision="bfloat16"`` (OpenVINO) or ``int8`` is asked; ``export.py`` says what is exported and kept where.

    ``transform`` changes the texts of queries and documents, each [N], before they are scored (a mask, say).

    With ``out`` the run is also written there, and scores are kept beside it until it is: the same call, made again
    after an interruption, goes on and writes the same bytes.

    ``engine="ray"``: the pairs are scored by the workers of a Ray cluster (``cluster`` says how many, with which GPUs),
    each with a model of its own; ``model`` has to be there on every machine.

    Raises EvenrankError for a setting out of range and for queries or documents of the run without a text;
    InputError for a model or a collection that cannot be used; MissingExtraError without the extra [neural], or
    [export] for another back end.
    """
    check_ranges(depth=depth, batch_size=batch_size)
    if precision not in ("auto", "float32", "bfloat16"):
        raise EvenrankError(f"`precision`: expected auto, float32 or bfloat16, found {shown(precision)}")
    check_outputs([out], [collection, model])
    require_extra()
    if backend != "torch" or int8:
        _check_backend(backend, int8, precision, device)
    folder = find_model(model, kind)
    if folder.kind == "kernel" and (backend != "torch" or precision == "bfloat16"):
        raise EvenrankError(f"{model}: a kernel ranker computes with the backend torch, in float32")
    run, collection, queries = as_run(run), as_collection(collection), as_queries(queries)
    table = run.table.filter(pl.col("rank") <= depth)
    pairs = _Pairs.build(run.described, table, collection, queries)
    if transform is not None:
        pairs = pairs.transformed(transform)
    scoring = _Scoring(folder, precision, device, backend, int8, pairs, batch_size)
    if engine == "ray":
        settings = f"ray {precision} {device} {backend} {int8} {bool(cluster and cluster.gpus)}"
        several = functools.partial(_on_ray, scoring, cluster or Cluster())
    else:
        check_engine(engine)
        encoder, settings = scoring.load()
        several = functools.partial(_here, scoring.of(encoder), scoring.windows())
    parts = None if out is None else Parts(out, _fingerprint(folder, settings, pairs, batch_size))
    scores, resumed = _score_windows(several, scoring.windows(), pairs.size, parts, quiet)
    if not np.isfinite(scores).all():
        raise EvenrankError(f"{model}: the model gives {int((~np.isfinite(scores)).sum())} scores that are not finite")
    notes = (*run.notes, *([f"{folder.name}: {resumed} of {pairs.size} scores were there already"] if resumed else []))
    result = Run.from_table(table.with_columns(pl.Series("score", scores)), tag or folder.name, notes=notes)
    if out is not None:
        write_run(result, out)
    if parts is not None:
        parts.remove()
    return result


def _check_backend(backend: Backend, int8: bool, precision: Precision, device: str | None) -> None:
    from .export import check_backend

    check_backend(backend, int8, precision)
    if device not in (None, "cpu"):
        raise EvenrankError(f"device: the backend {backend} computes on the cpu, found {shown(device)}")


@dataclass(frozen=True, slots=True)
class _Pairs:
    """What is to be scored: ``query`` and ``document`` [pairs] number the rows of the tables of distinct texts."""

    query: Rows
    document: Rows
    queries: pl.DataFrame
    documents: pl.DataFrame

    @property
    def size(self) -> int:
        return len(self.query)

    @classmethod
    def build(
        cls, run: str, table: pl.DataFrame, collection: str | os.PathLike[str] | pl.DataFrame, queries: pl.DataFrame
    ) -> _Pairs:
        """``run``: its name and file, for messages."""
        query_texts = _texts(table["query_id"], queries, f"{run}: ", " of its queries without a text")
        place = "the collection"
        if not isinstance(collection, pl.DataFrame):
            place = f"the collection {os.fspath(collection)}"
            collection = read_texts(collection, table["doc_id"])
        document_texts = _texts(table["doc_id"], collection, f"{run}: ", f" of its documents are not in {place}")
        return cls(_numbers(table, query_texts), _numbers(table, document_texts), query_texts, document_texts)

    def transformed(self, transform: Callable[[pl.Series], pl.Series]) -> _Pairs:
        tables = self.queries, self.documents
        changed = (table.with_columns(transform(table["text"]).alias("text")) for table in tables)
        return _Pairs(self.query, self.document, *changed)

    def windows(self, kind: Kind, size: int) -> list[Rows]:
        """The rows of each window: ``size`` pairs, or for a bi-encoder all pairs of ``size`` documents."""
        if kind != "bi":
            return np.split(np.arange(self.size), range(size, self.size, size))
        rows = np.argsort(self.document, kind="stable")
        return np.split(rows, np.flatnonzero(np.diff(self.document[rows] // size)) + 1)


def _texts(ids: pl.Series, texts: pl.DataFrame, before: str, problem: str) -> pl.DataFrame:
    """The distinct ``ids`` in order of first appearance, with their ``text``.

    Raises EvenrankError where some have none: ``before``, how many, ``problem``, the first five.
    """
    found = (
        ids.unique(maintain_order=True)
        .to_frame()
        .join(
            texts.select(ids.name, "text").unique(ids.name, keep="first"),
            on=ids.name,
            how="left",
            maintain_order="left",
        )
    )
    missing = found.filter(pl.col("text").is_null())[ids.name]
    if len(missing):
        first = ", ".join(shown(value) for value in missing.head(5))
        raise EvenrankError(f"{before}{len(missing)}{problem}: {first}{', …' if len(missing) > 5 else ''}")
    return found


def _numbers(table: pl.DataFrame, texts: pl.DataFrame) -> Rows:
    name = texts.columns[0]
    numbered = table.select(name).join(
        texts.select(name).with_row_index("row"), on=name, how="left", maintain_order="left"
    )
    return numbered["row"].to_numpy().astype(np.int64)


def _fingerprint(folder: ModelFolder, encoder: str, pairs: _Pairs, batch_size: int) -> str:
    """What the scores depend on, as a hash: kept scores are used again only where it is the same."""
    import sentence_transformers
    import torch
    import transformers

    versions = [__version__, sentence_transformers.__version__, transformers.__version__, torch.__version__]
    settings = [folder.digest(), folder.kind, batch_size, _WINDOW, encoder, *versions]
    total = hashlib.sha256(json.dumps(settings).encode())
    for texts in (pairs.queries, pairs.documents):
        for part in texts.iter_slices(1 << 16):
            total.update(part.write_ndjson().encode())
    total.update(pairs.query.tobytes())
    total.update(pairs.document.tobytes())
    return total.hexdigest()


@dataclass(frozen=True, slots=True)
class _Scoring:
    """What the scores of windows are made with, in whatever process."""

    folder: ModelFolder
    precision: Precision
    device: str | None
    backend: Backend
    int8: bool
    pairs: _Pairs
    batch_size: int

    def load(self) -> tuple[Any, str]:
        """The model, and what its scores depend on beside the folder."""
        if self.folder.kind == "kernel":
            ranker = load_kernel(self.folder, self.device)
            return ranker, next(ranker.parameters()).device.type
        if self.backend == "torch":
            encoder = load(self.folder, self.precision, self.device)
            return encoder, f"{encoder.device.type} {encoder.dtype}"
        from .export import use_backend

        encoder = load(self.folder, "float32", "cpu")
        return encoder, use_backend(encoder, self.folder, self.backend, int8=self.int8, precision=self.precision)

    def of(self, encoder: Any) -> Callable[[Rows], Scores]:
        """Rows of the pairs → their scores."""
        return _SCORES[self.folder.kind](encoder, self.pairs, self.batch_size)

    def windows(self) -> list[Rows]:
        """The rows of each window."""
        return self.pairs.windows(self.folder.kind, _WINDOW * self.batch_size)

    def __call__(self) -> Callable[[int], dict[str, list[float]]]:
        """The work of a process of a cluster."""
        score, windows = self.of(self.load()[0]), self.windows()
        return lambda number: {"scores": score(windows[number]).tolist()}


def _here(score: Callable[[Rows], Scores], windows: list[Rows], numbers: list[int]) -> Iterator[tuple[int, Scores]]:
    yield from ((number, score(windows[number])) for number in numbers)


def _on_ray(scoring: _Scoring, cluster: Cluster, numbers: list[int]) -> Iterator[tuple[int, Scores]]:
    for told in on_ray(numbers, scoring, cluster, keep=True):
        yield told["number"], np.array(told["scores"], np.float64)


def _score_windows(
    several: Callable[[list[int]], Iterator[tuple[int, Scores]]],
    windows: list[Rows],
    size: int,
    parts: Parts | None,
    quiet: bool,
) -> tuple[Scores, int]:
    """All scores [size], and how many of them were kept from a call that was interrupted."""
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
        for number, found in several(missing) if missing else ():
            if parts is not None:
                parts.save(number, found)
            scores[windows[number]] = found
            advance(len(found))
    return scores, size - sum(len(windows[number]) for number in missing)


def _cross_scores(encoder: Any, pairs: _Pairs, batch_size: int) -> Callable[[Rows], Scores]:
    from torch.nn import Identity

    queries, documents = pairs.queries["text"], pairs.documents["text"]

    def score(rows: Rows) -> Scores:
        query, document = queries.gather(pairs.query[rows]), documents.gather(pairs.document[rows])
        texts = list(zip(query.to_list(), document.to_list(), strict=True))
        # predict sorts its pairs by length, pads each batch to its longest and works in inference mode.
        scores = encoder.predict(texts, batch_size=batch_size, activation_fn=Identity(), show_progress_bar=False)
        return np.asarray(scores, np.float64)

    return score


def _bi_scores(encoder: Any, pairs: _Pairs, batch_size: int) -> Callable[[Rows], Scores]:
    from torch import inference_mode

    documents = pairs.documents["text"]
    options = {"batch_size": batch_size, "show_progress_bar": False, "convert_to_tensor": True}
    query_vectors = encoder.encode_query(pairs.queries["text"].to_list(), **options).float()

    def score(rows: Rows) -> Scores:
        numbers, place = np.unique(pairs.document[rows], return_inverse=True)
        vectors = encoder.encode_document(documents.gather(numbers).to_list(), **options).float()
        query = pairs.query[rows]
        scores = np.empty(len(rows))
        with inference_mode():
            for start in range(0, len(rows), _SIMILARITIES):
                part = slice(start, start + _SIMILARITIES)
                similarity = encoder.similarity_pairwise(query_vectors[query[part]], vectors[place[part]])
                scores[part] = similarity.cpu().numpy()
        return scores

    return score


def _kernel_scores(ranker: Ranker, pairs: _Pairs, batch_size: int) -> Callable[[Rows], Scores]:
    queries, documents = pairs.queries["text"], pairs.documents["text"]

    def score(rows: Rows) -> Scores:
        query, document = queries.gather(pairs.query[rows]), documents.gather(pairs.document[rows])
        return ranker.score(query.to_list(), document.to_list(), batch_size).numpy().astype(np.float64)

    return score


_SCORES: dict[Kind, Callable[[Any, _Pairs, int], Callable[[Rows], Scores]]] = {
    "cross": _cross_scores,
    "bi": _bi_scores,
    "kernel": _kernel_scores,
}
