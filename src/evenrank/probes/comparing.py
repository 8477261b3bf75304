"""From the scores of a list's versions to the figures of each variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenrank.groups import GroupTable, Lexicon, Scoring, score_texts
from evenrank.measures.statistics import holm

from .effects import Floats
from .given_variants import Pairing
from .pair_values import Means, PairValues
from .probed_list import ProbedList
from .replaced_runs import run_figures
from .variant_figures import (
    Compared,
    VariantFigures,
    examples,
    rank_figures,
    replaced_passages,
)
from .variant_files import Variant
from .variant_kinds import KINDS
from .version_scores import Versions

Scored = Mapping[str, Floats]
"""Scores [N] of each variant by name, and of the originals under ``""``."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared: the ``listed`` pairs and their variants, with the signs of those that are oriented.

    ``magnitudes`` [texts]: the signed magnitude of each distinct text between the ``poles``; None without a lexicon
    that has poles.
    """

    listed: ProbedList
    pairing: Pairing
    versions: Versions
    lexicon: Lexicon | None
    seed: int
    magnitudes: Floats | None
    poles: tuple[str, str] | None

    @classmethod
    def of(
        cls, listed: ProbedList, pairing: Pairing, versions: Versions, lexicon: Lexicon | None, seed: int
    ) -> Comparison:
        """With the magnitudes (tf) of all texts under the lexicon."""
        if lexicon is None or lexicon.poles is None:
            return cls(listed, pairing, versions, lexicon, seed, None, None)
        scoring = Scoring(lexicon, magnitudes=("tf",))
        texts = versions.texts.rename("text").to_frame().with_row_index("doc_id")
        table = score_texts(texts.with_columns(pl.col("doc_id").cast(pl.String)), scoring)
        groups = GroupTable.of(table, scoring.describe())
        return cls(listed, pairing, versions, lexicon, seed, groups.signed_magnitude("tf"), groups.poles)

    def signs(self, variant: Variant) -> Floats | None:
        """The sign [N] of the change of a pair's magnitude, NaN without a change; None for kinds without direction."""
        kind = KINDS.get(variant.kind or "")
        if kind is None or not kind.oriented or self.magnitudes is None:
            return None
        rows = self.versions.variants[variant.name]
        change = np.sign(self.magnitudes[rows] - self.magnitudes[self.versions.original])
        return np.where((rows >= 0) & (change != 0), change, np.nan)

    def compared(self, variant: Variant, placebo: Variant | None, scores: Scored, deviation: Floats) -> Compared:
        """What a variant does to each pair; ``deviation`` [N] of each pair's query."""

        def scores_of(name: str) -> Floats:
            return np.where(self.versions.changed(name), scores[name], np.nan)

        changed, signs = self.versions.changed(variant.name), self.signs(variant)
        other = None if placebo is None else scores_of(placebo.name)
        return Compared(
            variant.name,
            changed,
            self.versions.variants[variant.name] < 0,
            signs,
            PairValues.of(scores[""], deviation, scores_of(variant.name), other, signs),
            scores[""],
            np.where(changed, scores[variant.name], scores[""]),
            deviation,
        )

    def figures(self, scores: Scored, deviation: Floats) -> tuple[VariantFigures, ...]:
        """The figures of all variants."""
        found = [self._figures(*pair, scores, deviation) for pair in self.pairing.variants]
        corrected = holm([one.means.verdict.p for one in found])
        return tuple(replace(one, holm_p=p) for one, p in zip(found, corrected, strict=True))

    def _figures(self, variant: Variant, placebo: Variant | None, scores: Scored, deviation: Floats) -> VariantFigures:
        listed, versions = self.listed, self.versions
        found = self.compared(variant, placebo, scores, deviation)
        shift, enters, leaves = rank_figures(found, listed)
        passages = None if variant.pairs else replaced_passages(listed, variant.texts)
        return VariantFigures(
            variant.name,
            variant.kind,
            None if placebo is None else placebo.name,
            None if found.signs is None else self.poles,
            found.counts(),
            Means.of(found.values, listed.query, listed.passage),
            shift,
            enters,
            leaves,
            run_figures(listed.ranked(found.replaced, variant.name), passages, listed.qrels, self.lexicon, self.seed),
            examples(found, listed, versions),
        )
