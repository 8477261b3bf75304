"""The lists that any retriever has for queries: a model, an index, a run of another search, or BM25."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from evenrank.auditing.inputs import run_name
from evenrank.files import EvenrankError, Run, as_collection, as_run, read_texts
from evenrank.files.convert import is_path
from evenrank.files.errors import FAST, arg, quoted, require
from evenrank.files.reading import is_index
from evenrank.files.types import Array
from evenrank.search.analysis import Analyzer
from evenrank.search.bm25 import Index
from evenrank.search.index_folder import Encoding, collection_digest
from evenrank.search.indexes import FirstStage, build_index, open_index

from .known_items import KnownItems, known_items

BM25 = "bm25"


@dataclass(frozen=True, slots=True)
class Passages:
    """The passages, counted: their ids [N] in order, and BM25's index of them with the terms of each."""

    source: Any
    index: Index
    ids: pl.Series

    @classmethod
    def of(cls, given: object, quiet: bool) -> Passages:
        require("a scan", "search", *FAST)
        source = as_collection(given)
        index = Index.build(source, Analyzer(), forward=True, quiet=quiet)
        return cls(source, index, cast(pl.Series, index.doc_ids))

    def texts(self, ids: pl.Series) -> pl.DataFrame:
        """The texts of some passages, in this order."""
        found = self.source if isinstance(self.source, pl.DataFrame) else read_texts(self.source, ids)
        wanted = ids.alias("doc_id").to_frame()
        return wanted.join(found.select("doc_id", "text"), on="doc_id", how="inner", maintain_order="left")

    def drawn(self, sample: int, seed: int) -> pl.Series:
        """The passages that queries are made of: all, or so many of them."""
        if sample >= len(self.ids):
            return self.ids
        rows = np.random.default_rng(seed).choice(len(self.ids), sample, replace=False)
        return self.ids.gather(np.sort(rows))

    def items(self, sample: int, sentences: int, seed: int) -> KnownItems:
        """The known-item queries of a sample."""
        texts = self.texts(self.drawn(sample, seed))
        return known_items(
            texts, self.index.analyzer, self.index.frequencies, len(self.ids), sentences=sentences, seed=seed
        )


@dataclass(frozen=True, slots=True)
class Lists:
    """A retriever's lists; how far it reads each of some texts, in characters (None: unknown), and how many tokens.

    ``depth``: how long the lists of a given run are at most; None for lists that were made here.
    """

    run: Run
    reads_to: Callable[[list[str]], Array | None] = lambda _: None
    reads: int | None = None
    notes: tuple[str, ...] = ()
    depth: int | None = None

    def first(self, k: int) -> Lists:
        """The lists down to a rank."""
        return replace(self, run=replace(self.run, table=self.run.table.filter(pl.col("rank") <= k)))


@dataclass(frozen=True, slots=True)
class Searching:
    """What is searched, with what.

    Attributes:
        queries: ``query_id``, ``text``; ``known``: whether they are known-item queries, and not real questions.
        encoding, kind: How models are loaded.
    """

    passages: Passages
    queries: pl.DataFrame
    known: bool
    k: int
    encoding: Encoding
    kind: str | None
    quiet: bool

    def bm25(self) -> Lists:
        """The lists of BM25."""
        return Lists(self.passages.index.search(self.queries, self.k, name=BM25, quiet=self.quiet))

    def with_any(self, given: object, role: str) -> Lists:
        """The lists of whatever is given: ``bm25``, a run, an index, or a model."""
        if isinstance(given, str) and given == BM25:
            return self.bm25()
        if role == "run":
            return self._of_run(given, role)
        if role == "index" and is_path(given):
            return self._indexed(open_index(given))
        if isinstance(given, FirstStage):
            return self._indexed(given)
        if is_path(given) and is_index(given):
            return self._indexed(open_index(given))
        if isinstance(given, Run | pl.DataFrame | Mapping) or (is_path(given) and os.path.isfile(given)):
            return self._of_run(given, role)
        return self.of_model(given)

    def _of_run(self, given: object, role: str) -> Lists:
        run = as_run(given, run_name(given) if is_path(given) else None, what=arg(role))
        asked = run.table.join(self.queries.select("query_id"), on="query_id", how="semi")
        if not asked.height or (self.known and asked.height < run.table.height):
            other = run.table.join(asked, on="query_id", how="anti")["query_id"][0]
            how = (
                f" {arg.sample}, {arg.sentences} and {arg.seed} have to be those that they were made with"
                if self.known
                else ""
            )
            raise EvenrankError(
                f"run {run.name}: its query {quoted(other)} is not one of the {self.queries.height:,} that are asked"
                f"{':' * bool(how)}{how}"
            )
        return Lists(replace(run, table=asked), depth=int(run.table["rank"].to_numpy().max()))

    def _indexed(self, index: FirstStage, model: object = None) -> Lists:
        self._check(index)
        if index.manifest.kind == BM25:
            name = index.manifest.path.name
            return Lists(index.search(self.queries, self.k, name=name, quiet=self.quiet))
        run = index.search(self.queries, self.k, quiet=self.quiet, model=model, encoding=self.encoding)
        encoder = cast(Any, index).encoder(model, self.encoding)

        def reads_to(texts: list[str]) -> Array | None:
            return _array(encoder.reads_to(texts))

        return Lists(run, reads_to, cast("int | None", encoder.facts().get("reads")), run.notes)

    def of_model(self, model: object, folder: str | os.PathLike[str] | None = None) -> Lists:
        """The lists of a model, with its index in ``folder`` (made if it is not there), or in one for this once."""
        if isinstance(model, str) and model == BM25:
            raise EvenrankError(f"{arg.index}: for the vectors of a model, and bm25 has none")
        from evenrank.models.encoder_scorers import BiEncoderScorer, SparseScorer
        from evenrank.models.load import Prompts, StoredRanker, find_ranker

        prompts = Prompts(self.encoding.query_prompt, self.encoding.document_prompt)
        settings: dict[str, Any] = {"kind": self.kind, "device": self.encoding.device} if is_path(model) else {}
        ranker = find_ranker(cast(Any, model), prompts=prompts, **settings)
        if isinstance(ranker, StoredRanker):
            searches = ranker.folder.architecture in ("bi", "sparse")
        else:
            searches = isinstance(ranker, BiEncoderScorer | SparseScorer)
        if not searches:
            if folder is not None:
                raise EvenrankError(f"{arg.index}: {ranker.name} gives no vectors of passages that could be kept")
            return self._reranked(ranker)
        encoding = replace(self.encoding, kind=self.kind if self.kind in ("bi", "sparse") else None)
        with ExitStack() as opened:
            if folder is None:
                folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="evenrank-scan-"))) / "index"
            elif not is_path(self.passages.source) or not is_path(model):
                raise EvenrankError(
                    f"{arg.index} with {arg.model}: expected a collection in a file and a model in a folder"
                )
            if not os.path.exists(os.path.join(folder, "index.json")):
                build_index(self.passages.source, out=folder, model=model, encoding=encoding, quiet=self.quiet)
            return self._indexed(open_index(folder), model)

    def _check(self, index: FirstStage) -> None:
        """Raises EvenrankError for an index of another collection, and for one made with another prompt."""
        manifest = index.manifest
        given, own = (one.get("sha256") for one in (collection_digest(self.passages.source), manifest.collection))
        if manifest.documents != len(self.passages.ids) or (given and own and given != own):
            raise EvenrankError(f"{manifest.path}: is an index of another collection")
        prompt = self.encoding.document_prompt
        if prompt is not None and prompt != manifest.settings.get("document_prompt"):
            raise EvenrankError(f"{manifest.path}: was made with another {arg.document_prompt}")

    def _reranked(self, ranker: Any) -> Lists:
        """BM25's first k, in the order of a ranker that cannot search."""
        from evenrank.models.load import StoredRanker
        from evenrank.models.rerank import rerank

        scorer = ranker.load() if isinstance(ranker, StoredRanker) else ranker
        first = self.bm25().run
        run = rerank(
            first,
            model=scorer,
            collection=self.passages.texts(first.table["doc_id"].unique(maintain_order=True)),
            queries=self.queries,
            depth=self.k,
            batch_size=self.encoding.batch_size,
            quiet=self.quiet,
        )

        def reads_to(texts: list[str]) -> Array | None:
            return _array(scorer.reads_to([""] * len(texts), texts))

        note = f"{run.name} cannot search by itself: it ranks BM25's first {self.k}."
        return Lists(run, reads_to, cast("int | None", scorer.facts().get("reads")), (note,))


def _array(found: Sequence[int] | None) -> Array | None:
    return None if found is None else np.array(found)
