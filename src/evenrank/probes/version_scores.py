"""The scores of a list and of its variants, in one job: each text is encoded and each pair scored once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted
from evenrank.rankers.load import StoredRanker
from evenrank.rankers.pairs import TextPairs
from evenrank.rankers.scorers import Scorer
from evenrank.rankers.scoring_job import ScoredPairs, ScoringJob

from .effects import Flags, Floats, Ints
from .probed_list import ProbedList


@dataclass(frozen=True, slots=True)
class Versions:
    """The distinct texts of a list and of its variants, and which of them each pair has.

    ``original`` [N] and each of ``variants`` [N] are rows of ``texts``; −1 where a variant has nothing for the pair.
    """

    listed: ProbedList
    texts: pl.Series
    original: Ints
    variants: Mapping[str, Ints]

    @classmethod
    def of(cls, listed: ProbedList, variants: Mapping[str, pl.Series]) -> Versions:
        """The versions of a list and of variants by name, each with a text (or null) for each pair [N]."""
        columns = [listed.texts, *variants.values()]
        every = pl.concat([column.rename("text") for column in columns]).to_frame()
        distinct = every.drop_nulls().unique(maintain_order=True).with_row_index("row")
        rows = every.join(distinct, on="text", how="left", maintain_order="left")["row"]
        numbers = rows.cast(pl.Int64).fill_null(-1).to_numpy()
        original, *others = np.split(numbers, len(columns))
        return cls(listed, distinct["text"], original, dict(zip(variants, others, strict=True)))

    def changed(self, name: str) -> Flags:
        """Whether [N] a variant has another text than the original."""
        rows = self.variants[name]
        found: Flags = (rows >= 0) & (rows != self.original)
        return found

    def score(
        self,
        ranker: StoredRanker | Scorer,
        batch_size: int,
        keep: str | os.PathLike[str] | None,
        quiet: bool,
    ) -> tuple[dict[str, Floats], ScoredPairs]:
        """The scores of each variant by name, and of the original under ``""``, each [N].

        NaN where a variant has nothing for the pair. Raises EvenrankError, which names version, passage and query, for
        a score that is not finite.
        """
        asked, queries = _distinct(self.listed.pairs.queries)
        query = asked[self.listed.query]
        texts = {"": self.original, **self.variants}
        wanted = {name: query * len(self.texts) + text for name, text in texts.items()}
        present = {name: text >= 0 for name, text in texts.items()}
        keys = np.unique(np.concatenate([wanted[name][present[name]] for name in wanted]))
        used, document = np.unique(keys % len(self.texts), return_inverse=True)
        pairs = TextPairs(keys // len(self.texts), document, queries, self.texts.gather(used))
        found = ScoringJob(ranker, pairs, batch_size, f"probing {ranker.name}").run(keep, None, quiet)
        scores = {}
        for name, key in wanted.items():
            places = np.searchsorted(keys, key).clip(max=len(keys) - 1)
            scores[name] = np.where(present[name], found.scores[places], np.nan)
            bad = np.flatnonzero(present[name] & ~np.isfinite(scores[name]))
            if len(bad):
                raise self._not_finite(ranker.name, name, int(bad[0]), len(bad))
        return scores, found

    def _not_finite(self, ranker: str, name: str, row: int, count: int) -> EvenrankError:
        query, doc = self.listed.table.select("query_id", "doc_id").row(row)
        version = f"in the variant {name}" if name else "as it is"
        which = f"the score of the passage {quoted(doc)} for the query {quoted(query)}, {version},"
        more = "" if count == 1 else f", and {count - 1:,} more"
        return EvenrankError(f"{ranker}: {which} is not finite{more}")


def _distinct(texts: pl.Series) -> tuple[Ints, pl.Series]:
    """The number of each text among the distinct ones, and these, in order of first appearance."""
    table = texts.rename("text").to_frame()
    distinct = table.unique(maintain_order=True).with_row_index("row")
    numbers = table.join(distinct, on="text", how="left", maintain_order="left")["row"]
    return numbers.cast(pl.Int64).to_numpy(), distinct["text"]
