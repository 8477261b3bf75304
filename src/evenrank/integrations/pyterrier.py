"""For PyTerrier: re-ranking with any ranker, and fairer orders of results, as transformers. Works without Java.

>>> pipeline = bm25 % 100 >> pt.text.get_text(index) >> EvenrankReranker("model/")  # doctest: +SKIP
>>> fairer = pipeline >> EvenrankRebalancer("neutral", 0.5, lexicon="gender-en")  # doctest: +SKIP
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyterrier as pt

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted
from evenrank.io.ranges import check_ranges
from evenrank.rankers.kinds import Architecture
from evenrank.rankers.load import RankerLike, load_ranker

from .pyterrier_rebalancer import EvenrankRebalancer

__all__ = ["EvenrankRebalancer", "EvenrankReranker"]

if TYPE_CHECKING:
    import pandas as pd


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

    def __init__(
        self,
        ranker: RankerLike,
        *,
        batch_size: int = 32,
        text_field: str = "text",
        kind: Architecture | None = None,
        device: str | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
    ) -> None:
        super().__init__()
        check_ranges(batch_size=batch_size)
        stored = isinstance(ranker, str | os.PathLike)
        self.ranker = load_ranker(
            ranker,
            kind,
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
