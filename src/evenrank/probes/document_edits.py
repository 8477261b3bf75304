"""Edits of passages that do not depend on a query: a batch of a collection in, the variant's batch out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.engines.hashing import FNV_OFFSET, fnv, mix
from evenrank.groups import Lexicon
from evenrank.mitigation.rotation import Mode, mixed_seed, rotate_texts

from .group_wording import Edited, neutralised, swapped
from .placebos import Names, placebo_of_words
from .sentence_pool import SentencePool
from .sentences import padded
from .variant_kinds import PLACEBO
from .varied import SHORT, Tally

Batches = Callable[[], Iterable[pl.DataFrame]]
"""Reads the collection, in batches with ``doc_id`` and ``text``; may be called more than once."""


@dataclass(frozen=True, slots=True)
class DocumentEdits:
    """How a document variant of a kind edits passages; the same for any batch that a passage is in.

    ``of``, ``form``: of placebos. ``names``, ``pool``: what was counted and drawn in a first pass, where it is needed.
    """

    kind: str
    seed: int
    lexicon: Lexicon | None = None
    of: str | None = None
    form: str | None = None
    mode: Mode = "sentence"
    names: Names | None = None
    pool: SentencePool | None = None

    @classmethod
    def prepared(
        cls,
        batches: Batches,
        kind: str,
        seed: int,
        lexicon: Lexicon | None,
        of: str | None,
        form: str | None,
        mode: Mode,
    ) -> DocumentEdits:
        """With a first pass over the collection, if the kind needs one."""
        names = Names.counted(batches()) if form in ("name", "any") else None
        pool = SentencePool.sampled(batches(), seed) if kind == "padded" else None
        return cls(kind, seed, lexicon, of, form, mode, names, pool)

    def __call__(self, table: pl.DataFrame) -> tuple[pl.DataFrame, Tally]:
        """The variant of ``doc_id``, ``text``, with ``edits``, 0 exactly where a text is unchanged; and its counts."""
        made, short = self._made(table)
        changed = (made.texts != table["text"]).to_numpy()
        edits = np.where(changed, made.edits, 0)
        tally = Tally.of(edits, made.left, made.verbs, short)
        return table.select("doc_id", made.texts.alias("text"), pl.Series("edits", edits)), tally

    def _made(self, table: pl.DataFrame) -> tuple[Edited, int]:
        """The edited texts, and of how many less was changed than should be."""
        if self.kind == "rotate":
            texts, moved, _ = rotate_texts(table, self.seed, self.mode)
            whole = pl.Series(moved == 0)
            # A passage that is cut before its first word keeps its white space too.
            texts = pl.select(pl.when(whole).then(table["text"]).otherwise(texts)).to_series()
            return Edited(texts, (moved > 0).astype(np.int64), Counter()), 0
        if self.kind == "padded":
            assert self.pool is not None
            return _padded(table, self.pool, self.seed)
        assert self.lexicon is not None
        change = swapped if (self.of or self.kind) == "swap" else neutralised
        made = change(table["text"], self.lexicon)
        if self.kind != PLACEBO:
            return made, 0
        assert self.form is not None
        placebo = placebo_of_words(table, made.edits, self.lexicon, self.form, self.seed, self.names)
        return placebo, int((placebo.edits < made.edits).sum())


def _padded(table: pl.DataFrame, pool: SentencePool, seed: int) -> tuple[Edited, int]:
    start = FNV_OFFSET ^ mixed_seed(seed)
    made = [
        padded(text, pool.chooser(doc_id, text, mix(fnv(doc_id.encode(), start))))
        for doc_id, text in table.select("doc_id", "text").iter_rows()
    ]
    texts = pl.Series("text", [text for text, _ in made], pl.String)
    words, now = (one.str.count_matches(r"\S+").to_numpy() for one in (table["text"], texts))
    edits = np.array([edits for _, edits in made], np.int64)
    return Edited(texts, edits, Counter()), int((now < SHORT * words).sum())
