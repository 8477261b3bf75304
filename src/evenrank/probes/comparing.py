"""From the scores of a list's versions to the figures of each variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenrank.groups import GroupTable, Lexicon, Scoring, score_texts
from evenrank.measures.statistics import holm
from evenrank.rankers.scorers import Scorer

from .dominant_query import influence
from .effects import Floats, Ints
from .given_variants import Pairing
from .list_subsets import Part, by_group, by_query, by_relevance
from .nulls import blind_scores, randomised
from .pair_values import Means, PairValues
from .probed_list import ProbedList, spread
from .replaced_runs import run_figures
from .variant_figures import (
    Compared,
    VariantFigures,
    examples,
    matched_effect,
    pool_figures,
    rank_figures,
    replaced_passages,
    subset_figures,
)
from .variant_files import Variant
from .variant_kinds import KINDS
from .version_scores import Versions

Scored = Mapping[str, Floats]
"""Scores [N] of each variant by name, and of the originals under ``""``."""
_OWN_SEED = 20_261


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

    def values(
        self, variant: Variant, placebo: Variant | None, scores: Scored, deviation: Floats, rows: Ints
    ) -> PairValues:
        """The values of the pairs ``rows``, of which these are the scores and the deviations."""

        def changed(name: str) -> Floats:
            return np.where(self.versions.changed(name)[rows], scores[name], np.nan)

        signs = self.signs(variant)
        other = None if placebo is None else changed(placebo.name)
        oriented = None if signs is None else signs[rows]
        return PairValues.of(scores[""], deviation, changed(variant.name), other, oriented)

    def compared(self, variant: Variant, placebo: Variant | None, scores: Scored, deviation: Floats) -> Compared:
        """What a variant does to each pair; ``deviation`` [N] of each pair's query."""
        changed = self.versions.changed(variant.name)
        return Compared(
            variant.name,
            changed,
            self.versions.variants[variant.name] < 0,
            self.signs(variant),
            self.values(variant, placebo, scores, deviation, np.arange(self.listed.size)),
            scores[""],
            np.where(changed, scores[variant.name], scores[""]),
            deviation,
        )

    # --- the figures -------------------------------------------------------------------------------------------------

    def figures(
        self, scores: Scored, deviation: Floats, parts: list[Part], nulls: Mapping[str, Mapping[str, Means]]
    ) -> tuple[VariantFigures, ...]:
        """The figures of all variants; ``nulls``: by null ranker and variant."""
        parts = [*by_relevance(self.listed), *self._groups(), *self._queries(), *parts]
        found = [self._figures(*pair, scores, deviation, parts, nulls) for pair in self.pairing.variants]
        corrected = holm([one.means.verdict.p for one in found])
        return tuple(replace(one, holm_p=p) for one, p in zip(found, corrected, strict=True))

    # parameters: the variant, and what all variants share
    def _figures(
        self,
        variant: Variant,
        placebo: Variant | None,
        scores: Scored,
        deviation: Floats,
        parts: list[Part],
        nulls: Mapping[str, Mapping[str, Means]],
    ) -> VariantFigures:
        listed, versions = self.listed, self.versions
        found = self.compared(variant, placebo, scores, deviation)
        shift, enters, leaves = rank_figures(found, listed)
        passages = None if variant.pairs else replaced_passages(listed, variant.texts)
        means = Means.of(found.values, listed.query, listed.passage)
        ids = listed.asked()["query_id"].to_list()
        return VariantFigures(
            variant.name,
            variant.kind,
            None if placebo is None else placebo.name,
            None if found.signs is None else self.poles,
            found.counts(),
            means,
            shift,
            enters,
            leaves,
            pool_figures(found, listed, self.seed, self.poles),
            matched_effect(found, listed, versions),
            subset_figures(found, listed, parts),
            run_figures(listed.ranked(found.replaced, variant.name), passages, listed.qrels, self.lexicon, self.seed),
            {name: by_variant[variant.name].like(means) for name, by_variant in nulls.items()},
            examples(found, listed, versions),
            influence(found.values, means, listed.query, listed.passage, deviation, ids),
        )

    def _groups(self) -> list[Part]:
        if self.magnitudes is None or self.poles is None:
            return []
        return by_group(self.magnitudes[self.versions.original], *self.poles)

    def _queries(self) -> list[Part]:
        if self.lexicon is None:
            return []
        return by_query(self.listed.pairs.queries, self.listed.query, self.lexicon)

    # --- rankers that cannot know ------------------------------------------------------------------------------------

    def random_weights(self, ranker: Scorer, rows: Ints, batch_size: int, quiet: bool) -> Mapping[str, Means] | None:
        """The means, by variant, of a copy of the model with random weights; None if it has no weights."""
        # Another seed than a model with random weights may have been made with.
        seed = (self.seed + _OWN_SEED) % 2**32
        scorer = randomised(ranker, seed)
        if scorer is None:
            return None
        scores, _ = self.versions.score(scorer, batch_size, None, quiet, rows)
        return self._null(scores, rows)

    def blind(self) -> Mapping[str, Means]:
        """The same of scores that depend on the ids alone."""
        ids = self.listed.table
        own = blind_scores(ids["query_id"].to_list(), ids["doc_id"].to_list(), self.seed)
        scores = {"": own} | dict.fromkeys(self.versions.variants, own)
        return self._null(scores, np.arange(self.listed.size))

    def _null(self, scores: Scored, rows: Ints) -> Mapping[str, Means]:
        query, passage = self.listed.query[rows], self.listed.passage[rows]
        # Queries outside of a sample have no scores: those inside are numbered anew.
        number = np.unique(query, return_inverse=True)[1]
        deviation = spread(scores[""], number)[number]
        return {
            variant.name: Means.of(self.values(variant, placebo, scores, deviation, rows), query, passage)
            for variant, placebo in self.pairing.variants
        }
