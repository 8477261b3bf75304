"""For PyTerrier: re-ranking with any trained ranker, as a transformer. Works without Java.

>>> pipeline = bm25 % 100 >> pt.text.get_text(index) >> EvenrankReranker("model/")  # doctest: +SKIP
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyterrier as pt

from evenrank.io import EvenrankError
from evenrank.io.errors import shown
from evenrank.io.ranges import check_ranges
from evenrank.rankers.models import Kind, find_model, load, load_kernel
from evenrank.rankers.protocol import Ranker


class EvenrankReranker(pt.Transformer):
    """Scores query and text of each row, and ranks each query's rows by it.

    ``ranker``: a Ranker, or a model as ``evenrank rerank`` takes it: a folder of a trained ranker, or a folder or
    a name on the hub that sentence-transformers loads, with ``kind`` where its files do not tell it. Scores are
    computed in float32, and each depends on its own row alone.

    In: ``qid``, ``query``, ``docno`` and ``text_field``. Out: the same rows and columns with ``score`` and ``rank``
    anew, ranks as PyTerrier gives them (equal scores in the order of the rows).

    Raises EvenrankError for a setting out of range or a row without a text; InputError for a model that cannot be used;
    PyTerrier's InputValidationError for a frame without these columns.
    """

    def __init__(
        self,
        ranker: Ranker | str | os.PathLike[str],
        *,
        batch_size: int = 32,
        text_field: str = "text",
        kind: Kind | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__()
        check_ranges(batch_size=batch_size)
        self.ranker = ranker if isinstance(ranker, Ranker) else _load(os.fspath(ranker), kind, device)
        self.batch_size = batch_size
        self.text_field = text_field
        self.kind = kind
        self.device = device

    def transform(self, inp: Any) -> Any:
        """The rows with their scores and ranks."""
        pt.validate.result_frame(inp, extra_columns=["query", self.text_field], context=self)
        queries, texts = inp["query"].tolist(), inp[self.text_field].tolist()
        for row, pair in enumerate(zip(queries, texts, strict=True)):
            if not all(isinstance(text, str) for text in pair):
                raise EvenrankError(f"the row of {shown(inp['docno'].iloc[row])} lacks its query or its text")
        scores = self.ranker.score(queries, texts, self.batch_size).numpy() if queries else np.empty(0)
        # A new frame: add_ranks works in place.
        return pt.model.add_ranks(inp.assign(score=scores.astype(np.float64)))

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """What PyTerrier draws; without a page of its documentation, which it would look for on the network."""
        settings = {"ranker": self.ranker.kind, "batch_size": self.batch_size, "text_field": self.text_field}
        return {"label": "Evenrank", "settings": settings, "help_url": None}


def _load(model: str, kind: Kind | None, device: str | None) -> Ranker:
    from evenrank.rankers.cat import CatRanker
    from evenrank.rankers.dot import DotRanker

    folder = find_model(model, kind)
    if folder.kind == "kernel":
        return load_kernel(folder, device)
    encoder = load(folder, "float32", device)
    return CatRanker(encoder) if folder.kind == "cross" else DotRanker(encoder)
