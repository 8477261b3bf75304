"""The lists that any retriever has for queries: a model, an index, a run of another search, a retriever object."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl

from evenrank.auditing.inputs import run_name
from evenrank.files import EvenrankError, Run, as_run
from evenrank.files.convert import is_path
from evenrank.files.errors import arg, quoted
from evenrank.files.progress import progress
from evenrank.files.reading import is_index
from evenrank.files.types import Array

from .passages import Passages

if TYPE_CHECKING:
    from evenrank.models.load import Kind
    from evenrank.models.scorers import Scorer

BM25 = "bm25"
_IDS = ("id", "source", "file_path")
"""Under which of these names a retriever's document says what it is, the first that it has."""
_BLOCK = 1 << 14


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The lists that a retriever returned, and its properties.

    Attributes:
        lists: ``query_id``, ``doc_id`` and ``rank``.
        reads_to: How far it reads each of some texts, in characters (None: unknown); ``reads``: how many tokens.
        depth: How long its lists are at most.
        indexed: The ids in its index, if that is at hand; ``zero``: those with a vector of zeros.
    """

    name: str
    lists: pl.DataFrame
    depth: int
    reads_to: Callable[[list[str]], Sequence[int] | None] = lambda _: None
    reads: int | None = None
    notes: tuple[str, ...] = ()
    indexed: pl.Series | None = None
    zero: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.String))

    @classmethod
    def of_run(cls, run: Run, **more: Any) -> SearchResults:
        """Those of a run."""
        depth = int(run.table["rank"].max() or 0)  # type: ignore[arg-type]
        return cls(run.name, run.table.select("query_id", "doc_id", "rank"), depth, notes=run.notes, **more)


@dataclass(frozen=True, slots=True)
class Searching:
    """What is searched, with what.

    Attributes:
        source: The collection as it was given; ``passages``: the same, counted.
        queries: ``query_id``, ``text``.
        encoding, kind: How models are loaded.
    """

    source: Any
    passages: Passages
    queries: pl.DataFrame
    k: int
    encoding: Any
    kind: Kind | None
    quiet: bool

    def bm25(self) -> SearchResults:
        """The lists of BM25."""
        numbers = self.passages.search(self.queries["text"], self.k)
        query, rank = np.nonzero(numbers >= 0)
        table = pl.DataFrame(
            {
                "query_id": self.queries["query_id"].gather(query),
                "doc_id": self.passages.ids.gather(numbers[query, rank]),
                "rank": rank + 1,
            }
        )
        return SearchResults(BM25, table, self.k)

    def with_any(self, given: object, role: str) -> SearchResults:
        """The lists of whatever is given: ``bm25``, a run, an index, a model or a retriever object."""
        if isinstance(given, str) and given == BM25:
            return self.bm25()
        if role == "run" or isinstance(given, Run | pl.DataFrame | Mapping):
            return self._of_run(given, role)
        asks = _asked(given)
        if asks is not None:
            return self._one_by_one(given, asks)
        from evenrank.search.index_folder import FirstStage
        from evenrank.search.indexes import open_index

        if isinstance(given, FirstStage):
            return self._indexed(given)
        if role == "index" or (is_path(given) and is_index(given)):
            return self._indexed(open_index(cast("str", given)))
        if is_path(given) and os.path.isfile(given):
            return self._of_run(given, role)
        return self.of_model(given)

    def _of_run(self, given: object, role: str) -> SearchResults:
        run = as_run(given, run_name(given) if is_path(given) else None, what=arg(role))
        own = run.table.join(self.queries.select("query_id"), on="query_id", how="semi")
        if own.height < run.table.height:
            other = run.table.join(own, on="query_id", how="anti")["query_id"][0]
            raise EvenrankError(
                f"run {run.name}: its query {quoted(other)} is not one of the {self.queries.height:,} that are asked:"
                f" {arg.sample}, {arg.seed} and {arg.queries} have to be those that they were made with"
            )
        return SearchResults.of_run(run)

    def _one_by_one(self, retriever: Any, ask: Callable[[str], Sequence[Any]]) -> SearchResults:
        """The lists of a retriever of LangChain or LlamaIndex, which is asked each query."""
        rows: list[tuple[str, str, int]] = []
        with progress("searching", self.queries.height, quiet=self.quiet) as advance:
            for query_id, text in self.queries.select("query_id", "text").iter_rows():
                ids = dict.fromkeys(_id_of(document) for document in ask(text))
                rows += [(query_id, doc_id, rank) for rank, doc_id in enumerate(ids, 1)]
                advance(1)
        table = pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "rank": pl.Int64}, orient="row")
        return SearchResults(type(retriever).__name__, table, int(table["rank"].max() or 0))  # type: ignore[arg-type]

    def _indexed(self, index: Any, model: object = None) -> SearchResults:
        from evenrank.search.index_folder import naming_damage
        from evenrank.search.mapped import Texts

        manifest = index.manifest
        with naming_damage(manifest):
            ids = Texts(manifest, "ids", manifest.documents).all()
        prompt = self.encoding.document_prompt
        if prompt is not None and prompt != manifest.settings.get("document_prompt"):
            raise EvenrankError(f"{manifest.path}: was made with another {arg.document_prompt}")
        if manifest.kind == BM25:
            run = index.search(self.queries, self.k, name=manifest.path.name, quiet=self.quiet)
            return SearchResults.of_run(run, indexed=ids)
        run = index.search(self.queries, self.k, quiet=self.quiet, model=model, encoding=self.encoding)
        encoder = index.encoder(model, self.encoding)
        zero = ids.filter(pl.Series(_zero_vectors(manifest))) if manifest.kind == "dense" else ids.head(0)
        reads = cast("int | None", encoder.facts().get("reads"))
        return SearchResults.of_run(run, reads_to=encoder.reads_to, reads=reads, indexed=ids, zero=zero)

    def of_model(self, model: object, folder: str | os.PathLike[str] | None = None) -> SearchResults:
        """The lists of a model, with its index in ``folder`` (made if it is not there), or in one for this once."""
        if isinstance(model, str) and model == BM25:
            raise EvenrankError(f"{arg.index}: for the vectors of a model, and bm25 has none")
        from evenrank.models.load import find_model, load_ranker
        from evenrank.models.scorers import BiEncoderScorer, SparseScorer
        from evenrank.search.indexes import build_index, open_index

        settings: dict[str, Any] = {"kind": self.kind, "device": self.encoding.device} if is_path(model) else {}
        if not is_path(model) or find_model(os.fspath(model), self.kind).architecture not in ("bi", "sparse"):
            prompts = {name: getattr(self.encoding, name) for name in ("query_prompt", "document_prompt")}
            ranker = load_ranker(cast(Any, model), **prompts, **settings)
            if not isinstance(ranker, BiEncoderScorer | SparseScorer):
                if folder is not None:
                    raise EvenrankError(f"{arg.index}: {ranker.name} gives no vectors of passages that could be kept")
                return self._reranked(ranker)
        with ExitStack() as opened:
            if folder is None:
                folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="evenrank-scan-"))) / "index"
            elif not is_path(self.source) or not is_path(model):
                raise EvenrankError(
                    f"{arg.index} with {arg.model}: expected a collection in a file and a model in a folder"
                )
            if not os.path.exists(os.path.join(folder, "index.json")):
                build_index(self.source, out=folder, model=model, encoding=self.encoding, quiet=self.quiet)
            return self._indexed(open_index(folder), model)

    def _reranked(self, scorer: Scorer) -> SearchResults:
        """BM25's first k, in the order of a ranker that cannot search."""
        from evenrank.models.rerank import rerank

        first = self.bm25().lists.with_columns(score=-pl.col("rank").cast(pl.Float64))
        run = rerank(
            Run.from_table(first.drop("rank"), BM25),
            model=scorer,
            collection=pl.DataFrame({"doc_id": self.passages.ids, "text": self.passages.texts}),
            queries=self.queries,
            depth=self.k,
            batch_size=self.encoding.batch_size,
            quiet=self.quiet,
        )

        def reads_to(texts: list[str]) -> Sequence[int] | None:
            return scorer.reads_to([""] * len(texts), texts)

        note = f"{run.name} cannot search by itself: it ranks BM25's first {self.k}."
        reads = cast("int | None", scorer.facts().get("reads"))
        return SearchResults(run.name, run.table, self.k, reads_to, reads, (note,))


def _asked(given: object) -> Callable[[str], Sequence[Any]] | None:
    """How a retriever of LangChain (``invoke``) or LlamaIndex (``retrieve``) is asked; None for anything else."""
    for name in ("retrieve", "invoke"):
        method = getattr(given, name, None)
        if callable(method) and not isinstance(given, type):
            return cast("Callable[[str], Sequence[Any]]", method)
    return None


def _id_of(document: Any) -> str:
    """What a retriever's document, or node, is called in its metadata."""
    metadata = getattr(document, "metadata", None)
    if isinstance(metadata, Mapping):
        doc_id = next((metadata[name] for name in _IDS if metadata.get(name) is not None), None)
        if doc_id is not None:
            return str(doc_id)
    raise EvenrankError(
        f"{arg.model}: expected a retriever whose documents have {' or '.join(_IDS[:2])} in their metadata, found"
        f" {quoted(str(sorted(metadata)) if isinstance(metadata, Mapping) else type(document).__name__)}"
    )


def _zero_vectors(manifest: Any) -> Array:
    """Which vectors of a dense index are zeros."""
    vectors = manifest.array("vectors.npy", np.float16, manifest.documents)
    blocks = (vectors[start : start + _BLOCK] for start in range(0, len(vectors), _BLOCK))
    return np.concatenate([~block.any(axis=1) for block in blocks])
