"""Texts that a model does not read to their end: what was changed behind its last token cannot change a score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from evenrank.io.wording import counted
from evenrank.rankers.scorers import Scorer

from .comparing import Comparison, Scored
from .effects import Flags, Floats
from .list_subsets import Part
from .variant_figures import VariantFigures, subset_figures
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


def with_reading(
    figures: tuple[VariantFigures, ...], comparison: Comparison, scores: Scored, deviation: Floats, scorer: Scorer
) -> tuple[tuple[VariantFigures, ...], tuple[str, ...]]:
    """The figures with the subsets of pairs that the model reads whole and of those that it cuts, and notes on these.

    ``deviation`` [N] of each pair's query.
    """
    cut = cut_pairs(scorer, comparison.versions)
    if cut is None:
        return figures, ()
    found, notes = [], []
    for one, (variant, placebo) in zip(figures, comparison.pairing.variants, strict=True):
        either = cut[""] | cut[variant.name]
        compared = comparison.compared(variant, placebo, scores, deviation)
        lost = int((either & compared.compared).sum())
        if not lost:
            found.append(one)
            continue
        parts = [Part("read", "whole", ~either), Part("read", "cut off", either)]
        found.append(replace(one, subsets=(*one.subsets, *subset_figures(compared, comparison.listed, parts))))
        of = counted(one.counts.compared, "compared pair")
        notes.append(
            f"{one.name}: in {lost:,} of {of} the model does not read to the end of both texts; see the subsets"
        )
    return tuple(found), tuple(notes)
