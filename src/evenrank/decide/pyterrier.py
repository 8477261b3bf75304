"""For PyTerrier: re-ranking with any ranker, and fairer orders of results, as transformers. Works without Java.

>>> pipeline = bm25 % 100 >> pt.text.get_text(index) >> EvenrankReranker("model/")  # doctest: +SKIP
>>> fairer = pipeline >> EvenrankRebalancer("neutral", 0.5, lexicon="gender-en")  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import numpy as np
import polars as pl
import pyterrier as pt

from evenrank import options as opt
from evenrank.files import EvenrankError, Run
from evenrank.files.arguments import checked
from evenrank.files.convert import run_table
from evenrank.files.errors import arg, quoted
from evenrank.groups import as_group_table
from evenrank.measures import OfMissing
from evenrank.mitigation.reorderings import Reordering, Shift
from evenrank.models.load import Kind, RankerLike, load_ranker

from .rebalance_lists import DEPTH, Grouping, ListGroups, RunLists
from .rebalance_method import MethodOptions, applied, check_top, learnt

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EvenrankRebalancer", "EvenrankReranker"]


class EvenrankRebalancer(pt.Estimator):
    """Puts each query's first ``depth`` documents into a fairer order; see :func:`evenrank.rebalance`.

    ``method``: "neutral", "fair", "detconstsort" or "shift"; ``strength``: from 0, the order as it is, to 1. Groups
    come from ``labels`` or ``scores``, which are read once, or without either from the words of ``lexicon`` in
    ``text_field``. These and the other options of groups (:class:`evenrank.options.GroupOptions`), ``target``,
    ``missing``, ``protected``, ``alpha``, ``per`` and ``top`` are as in :func:`evenrank.rebalance`, where ``max_bias``
    and ``min_utility`` choose a strength.

    Every list is put into order by itself. What is the same for all queries is given, or learnt from the results of
    other queries by ``fit``, of the transformer or of a pipeline that ends with it: the group that ``fair`` protects
    (``protected``), and ``offsets`` of ``shift``: a number for each group or, with ``per="magnitude"``, a single one;
    1 is the range of a list's scores. ``learnt`` says what it was.

    In: ``qid``, ``docno``, ``score`` and, to count words, ``text_field``. Out: the same rows and columns with new
    ``score`` (n, n − 1, …, 1 over the n documents of a query) and ``rank``; equal scores are taken in the order of the
    rows, as PyTerrier ranks them.

    Raises EvenrankError for a setting out of range, a method that has to learn and has not, documents of unknown group
    with ``missing="error"``, a row without a text, a document with different texts in two queries and scores that are
    not finite; PyTerrier's InputValidationError for a frame without these columns.
    """

    @checked
    def __init__(
        self,
        method: str = "neutral",
        strength: Annotated[float, opt.SHARE] = 0.5,
        *,
        text_field: str = "text",
        target: object = None,
        missing: OfMissing | None = None,
        protected: opt.Protected = None,
        alpha: opt.Alpha = None,
        per: opt.Per = None,
        offsets: Annotated[Mapping[str, float] | float | None, opt.Option("", needs=("method=shift",))] = None,
        depth: Annotated[int, opt.COUNT] = DEPTH,
        top: opt.Top = None,
        **groups: Unpack[opt.GroupOptions],
    ) -> None:
        super().__init__()
        self.method, self.strength, self.depth, self.text_field = method, strength, depth, text_field
        self.groups, self.target, self.missing = groups, target, missing
        self.protected, self.alpha, self.per, self.offsets, self.top = protected, alpha, per, offsets, top
        self.learnt: dict[str, object] = {}
        self._settings = MethodOptions(method, protected, alpha, per, top)
        check_top(top, depth)
        source = ListGroups(**groups, target=target, missing=missing)
        # Words are counted in the texts of each frame.
        self._source = source if source.described else replace(source, collection={})
        self._known = _in_memory(source).grouping([], depth) if source.described else None
        self._direction: Reordering | None = None

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: object = None,
        topics_or_res_va: object = None,
        qrels_va: object = None,
    ) -> None:
        """Learns, from results of other queries, what is the same for all; judgements and validation are not used."""
        self._check(topics_or_res_tr)
        if topics_or_res_tr.empty:
            raise EvenrankError("fit: expected results, found none")
        grouping, lists = self._lists(topics_or_res_tr)
        self._direction = self._made(grouping, lists)
        self.learnt = learnt(self._direction, grouping.table.groups)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The rows with their new scores and ranks."""
        self._check(inp)
        if inp.empty:
            return pt.model.add_ranks(inp.assign(score=np.zeros(0)))
        if self._settings.learns and self.offsets is None and self._direction is None:
            option = "offsets" if self.method == "shift" else "protected"
            raise EvenrankError(
                f"{self.method} has nothing to go by: give {arg(option)}, or call fit with other results"
            )
        grouping, lists = self._lists(inp)
        method = self._direction or self._made(grouping, lists)
        table = lists.reordered(applied(method, lists.lists, self.strength)[0]).table
        ids = ["query_id", "doc_id"]
        score = _rows(inp).join(
            table.select(*ids, pl.col("score").alias("new")), on=ids, how="left", maintain_order="left"
        )
        # A new frame: add_ranks changes its argument.
        return pt.model.add_ranks(inp.assign(score=score["new"].to_numpy()))

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, object]:
        """What PyTerrier draws; without a link to its documentation, which it would look up on the network."""
        settings = {"method": self.method, "strength": self.strength, "depth": self.depth}
        return {"label": "Rebalance", "settings": settings, "help_url": None}

    def _check(self, frame: pd.DataFrame) -> None:
        text = [self.text_field] if self._known is None else []
        pt.validate.result_frame(frame, extra_columns=["score", *text], context=self)

    def _lists(self, frame: pd.DataFrame) -> tuple[Grouping, RunLists]:
        run = _as_run(frame)
        if self._known is not None:
            return self._known, self._known.lists(run)
        for row, text in enumerate(frame[self.text_field].tolist()):
            if not isinstance(text, str):
                raise EvenrankError(f"the row of {quoted(frame['docno'].iloc[row])} lacks its text")
        texts = frame[["docno", self.text_field]].set_axis(["doc_id", "text"], axis=1).drop_duplicates()
        twice = texts["doc_id"].duplicated()
        if twice.any():
            raise EvenrankError(
                f"`text_field`: the document {quoted(texts['doc_id'][twice].iloc[0])} has different texts in the column"
                f" {quoted(self.text_field)}: name one that is the same for all queries, or give {arg.scores}"
            )
        grouping = replace(self._source, collection=texts).grouping([run.table["doc_id"]], self.depth)
        return grouping, grouping.lists(run)

    def _made(self, grouping: Grouping, found: RunLists) -> Reordering:
        method = self._settings.make(found.lists, grouping.table)
        if self.offsets is None:
            return method
        groups = grouping.table.groups
        if self.per == "magnitude":
            if isinstance(self.offsets, Mapping):
                raise EvenrankError("`offsets`: expected a number, per unit of magnitude, found a dict")
            return Shift(np.array([self.offsets]), "magnitude")
        if not isinstance(self.offsets, Mapping) or set(self.offsets) != set(groups):
            raise EvenrankError(f"`offsets`: expected a number for each of {', '.join(groups)}, found {self.offsets}")
        return Shift(np.array([self.offsets[group] for group in groups]))


def _in_memory(source: ListGroups) -> ListGroups:
    """A source whose labels or scores are read."""
    if source.labels is None:
        return replace(source, scores=as_group_table(source.scores))
    table = source.known()
    return replace(source, labels=table, neutral=None, group_column=None, intersect=None)


def _rows(frame: pd.DataFrame) -> pl.DataFrame:
    """The rows of a frame as those of a run, in its order."""
    return run_table(frame[["qid", "docno", "score"]], "the results")[0]


def _as_run(frame: pd.DataFrame) -> Run:
    """The run of a frame: queries as they come, and within each the order that PyTerrier ranks it in."""
    table = _rows(frame).with_row_index("row").with_columns(pl.col("row").min().over("query_id").alias("part"))
    table = table.sort("part", "score", descending=[False, True], maintain_order=True)
    rank = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("part").alias("rank")
    return Run("results", table.with_columns(rank).select("query_id", "doc_id", "score", "rank"))


class EvenrankReranker(pt.Transformer):
    """Scores the query and the text of each row, and ranks each query's rows by it.

    ``ranker``: a model as :func:`evenrank.rerank` takes it: a folder or a name on the hub (with ``kind`` if its files
    do not show what it is), a loaded model, a ranker, an ``Endpoint``, or a function of a query and its texts.
    ``query_prompt``, ``document_prompt``: in place of the model's own. A folder's model computes in float32, and each
    score depends on its own row alone.

    In: ``qid``, ``query``, ``docno`` and ``text_field``. Out: the same rows and columns with new ``score`` and
    ``rank``, ranked as PyTerrier does (equal scores in the order of the rows).

    Raises EvenrankError for a setting out of range, a row without a text, and scores that are not finite; InputError
    for a model that cannot be used; PyTerrier's InputValidationError for a frame without these columns.
    """

    @checked
    def __init__(
        self,
        ranker: RankerLike,
        *,
        batch_size: Annotated[int, opt.COUNT] = 32,
        text_field: str = "text",
        kind: Kind | None = None,
        device: str | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
    ) -> None:
        super().__init__()
        stored = isinstance(ranker, str | os.PathLike)
        self.ranker = load_ranker(
            ranker,
            kind=kind,
            device=device,
            precision="float32" if stored else "auto",
            query_prompt=query_prompt,
            document_prompt=document_prompt,
        )
        self.batch_size = batch_size
        self.text_field = text_field
        self.kind = kind
        self.device = device
        self.query_prompt = query_prompt
        self.document_prompt = document_prompt

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The rows with their scores and ranks."""
        pt.validate.result_frame(inp, extra_columns=["query", self.text_field], context=self)
        queries, texts = inp["query"].tolist(), inp[self.text_field].tolist()
        for row, pair in enumerate(zip(queries, texts, strict=True)):
            if not all(isinstance(text, str) for text in pair):
                raise EvenrankError(f"the row of {quoted(inp['docno'].iloc[row])} lacks its query or its text")
        # A new frame: add_ranks changes its argument.
        return pt.model.add_ranks(inp.assign(score=self.ranker.score(queries, texts, self.batch_size)))

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """What PyTerrier draws; without a link to its documentation, which it would look up on the network."""
        settings = {"ranker": self.ranker.name, "batch_size": self.batch_size, "text_field": self.text_field}
        return {"label": "Evenrank", "settings": settings, "help_url": None}
