"""Texts that a model does not read to their end: what was changed behind its last token cannot change a score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from evenrank.io.wording import counted
from evenrank.rankers.scorers import Scorer

from .comparing import Comparison, Scored
from .effects import Flags, Floats
from .version_scores import Versions

_BLOCK = 256
"""Texts whose reading ends are asked for at once."""


def cut_pairs(scorer: Scorer, versions: Versions) -> Mapping[str, Flags] | None:
    """By variant, and for the originals under ``""``, whether [N] the model reads less than the whole text.

    None if the model does not say, or cuts no text. The longest texts are asked for first, until of a block of them
    none is cut.
    """
    listed = versions.listed
    rows = {"": versions.original, **versions.variants}
    # Models that encode passages on their own read as much of them whatever the query.
    query = listed.query * (scorer.unit != "document")
    keys = {name: np.where(found >= 0, query * len(versions.texts) + found, -1) for name, found in rows.items()}
    distinct = np.unique(np.concatenate(list(keys.values())))
    distinct = distinct[distinct >= 0]
    lengths = versions.texts.str.len_chars().to_numpy() + np.zeros(len(versions.texts), np.int64)
    asked = listed.pairs.queries.str.len_chars().to_numpy()
    size = lengths[distinct % len(lengths)] + asked[distinct // len(lengths)]
    order = np.argsort(-size, kind="stable")
    cut = np.zeros(len(distinct), bool)
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        queries = listed.pairs.queries.gather(distinct[block] // len(lengths)).to_list()
        texts = versions.texts.gather(distinct[block] % len(lengths)).to_list()
        ends = scorer.reads_to(queries, texts)
        if ends is None:
            return None
        cut[block] = [end < len(text.rstrip()) for end, text in zip(ends, texts, strict=True)]
        if not cut[block].any():
            break
    if not cut.any():
        return None
    return {name: (key >= 0) & cut[np.searchsorted(distinct, key).clip(max=len(cut) - 1)] for name, key in keys.items()}


def reading_notes(comparison: Comparison, scores: Scored, deviation: Floats, scorer: Scorer) -> Iterator[str]:
    """Notes on variants with compared pairs that the model cuts; ``deviation`` [N] of each pair's query."""
    cut = cut_pairs(scorer, comparison.versions)
    if cut is None:
        return
    for variant, placebo in comparison.pairing.variants:
        compared = comparison.compared(variant, placebo, scores, deviation).compared
        lost = int(((cut[""] | cut[variant.name]) & compared).sum())
        if lost:
            of = counted(int(compared.sum()), "compared pair")
            yield f"{variant.name}: in {lost:,} of {of} the model does not read to the end of both texts"
