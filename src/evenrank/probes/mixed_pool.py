"""Both versions of passages ranked together: which of the two comes first."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from evenrank.measures.hits import Hits, number_within
from evenrank.measures.statistics import NEAR_ZERO, bootstrap_means, interval
from evenrank.measures.tie_blocks import reach
from evenrank.measures.utility import computed_here

from .effects import Effect, Floats, Ints, effect

DEPTH = 10


@dataclass(frozen=True, slots=True)
class MixedPool:
    """What a ranking of originals and variants together shows; None where it shows nothing.

    ``share``: of the variants among the versions in the first ``k`` ranks of ``queries`` queries; .5 is no preference.
    Lists that have no more than ``k`` texts, both versions counted, are not among these: all are in the first ranks.
    ``share_ci95`` and the two-sided ``share_p`` that it is .5 are those of :func:`.effects.effect`. ``ndcg_originals``,
    ``ndcg_variants``: nDCG@k over ``judged`` queries where only one of the two versions is relevant; ``relative``: 2
    (originals − variants) / (originals + variants) · 100%, above 0 where originals rank higher, with a 95% interval by
    bootstrap of queries. ``of``: the wordings that take the place of variants and of originals in all these (the first
    pole's and the second's), None where they are the variants and the originals themselves.
    """

    k: int
    queries: int
    share: float | None
    share_ci95: tuple[float, float] | None
    share_p: float | None
    judged: int
    ndcg_originals: float | None
    ndcg_variants: float | None
    relative: float | None
    relative_ci95: tuple[float, float] | None
    of: tuple[str, str] | None = None

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


# parameters: the pairs' columns and two settings
def mixed_pool(
    scores: Floats,
    variants: Floats,
    query: Ints,
    passage: Ints,
    grades: Ints | None = None,
    *,
    k: int = DEPTH,
    seed: int = 0,
) -> MixedPool:
    """Originals and variants ranked together, query by query; each passage of a list that has no variant stays once.

    ``scores`` [N] of the originals, ``variants`` [N] of their variants (NaN: there is none), of the pairs of ``query``
    [N] and ``passage`` [N], any numbers; ``grades`` [N]: relevance, 0 or less for none. Tied texts are in random order:
    the share is that of the expected numbers, nDCG an exact expectation. The share is over the queries that have more
    than ``k`` texts: among the first of fewer are one of each, whatever the ranker. nDCG as trec_eval's (gain = grade),
    over the relevant passages of a list that have both versions; queries without one are left out. The relative
    difference is that of Dai et al. (Cocktail, ACL Findings 2024).

    When it misleads: a share says how often, an effect says how much; variants that are better by a hair's breadth are
    among the first k no more often than their originals. The interval of the relative difference takes queries as
    independent, which they are not if they share relevant passages.

    Worked example: two relevant passages score 4 and 2, their variants 3 and 1. The order is original, variant,
    original, variant: among the first two are one of each. The originals' DCG@2 is 1, the variants' 1/log₂ 3 = .631,
    the best possible of either 1.631; so the nDCG are .613 and .387, and 2 · (1 − .631)/1.631 is 45.3%.

    >>> import numpy as np
    >>> query, passage, grades = np.zeros(2, int), np.arange(2), np.ones(2, int)
    >>> found = mixed_pool(np.array([4.0, 2.0]), np.array([3.0, 1.0]), query, passage, grades, k=2)
    >>> found.share, round(found.ndcg_originals, 3), round(found.ndcg_variants, 3), round(found.relative, 1)
    (0.5, 0.613, 0.387, 45.3)
    """
    pool = _Pool(scores, variants, query)
    share, queries = _share(pool, query, passage, k)
    judged, originals, of_variants, relative, relative_ci95 = 0, None, None, None, None
    if grades is not None:
        values = np.stack([pool.ndcg(grades, k, version) for version in (0, 1)], axis=1)
        judged = int((~np.isnan(values[:, 0])).sum())
        if judged:
            originals, of_variants = map(float, np.nanmean(values, axis=0))
            found = _relative(np.array([[originals, of_variants]]))[0]
            relative = None if np.isnan(found) else float(found)
            relative_ci95 = interval(_relative(bootstrap_means(values, seed))) if judged > 1 else None
    ends = None if share is None or share.ci95 is None else (share.ci95[0] + 0.5, share.ci95[1] + 0.5)
    middle, p = (None, None) if share is None else (share.mean + 0.5, share.p)
    return MixedPool(k, queries, middle, ends, p, judged, originals, of_variants, relative, relative_ci95)


def _share(pool: _Pool, query: Ints, passage: Ints, k: int) -> tuple[Effect | None, int]:
    """The share of variants among the first k, less .5, as an effect of the pairs; and its queries.

    Over the queries with more than k texts: with v and o the chances of a pair's versions to be among the first k, the
    share is s = Σ v / Σ (v + o). A ratio's error is that of the mean of its linear terms, s + N (v − s (v + o)) / Σ (v
    + o).
    """
    originals, variants = (pool.chances(k, version, len(query)) for version in (0, 1))
    near = (originals + variants > 0) & (pool.texts > k)
    originals, variants = np.where(near, originals, 0.0), np.where(near, variants, 0.0)
    both = originals + variants
    if not near.any():
        return None, 0
    share = variants.sum() / both.sum()
    terms = share + near.sum() * (variants - share * both) / both.sum()
    return effect(terms[near] - 0.5, query[near], passage[near]), len(np.unique(query[near]))


class _Pool:
    """The M texts of all queries, by falling score within each.

    ``query``, ``row`` (of the passage), ``version`` (0 original, 1 variant, −1 the only one) and ``block`` (of ties),
    all [M]; ``before`` (texts of the query above the block) and ``sizes`` of the B blocks. ``texts`` [N]: how many the
    query of each pair has.
    """

    def __init__(self, scores: Floats, variants: Floats, query: Ints) -> None:
        numbers = np.unique(query, return_inverse=True)[1]
        both = np.flatnonzero(~np.isnan(variants))
        self.queries = int(numbers.max(initial=-1)) + 1
        row = np.concatenate([np.arange(len(scores)), both])
        version = np.zeros(len(row), np.int64)
        version[: len(scores)][np.isnan(variants)] = -1
        version[len(scores) :] = 1
        score = np.concatenate([scores, variants[both]])
        order = np.lexsort((-score, numbers[row]))
        self.row, self.version, score = row[order], version[order], score[order]
        self.query = numbers[self.row]
        self.texts = np.bincount(self.query, minlength=self.queries)[numbers]
        starts = np.ones(len(order), bool)
        starts[1:] = (np.diff(self.query) != 0) | (np.diff(score) != 0)
        self.block = np.cumsum(starts) - 1
        first = np.flatnonzero(starts)
        self.sizes = np.diff(np.append(first, len(order)))
        self.before = (number_within(self.query) if len(order) else first)[first]

    def chances(self, k: int, version: int, passages: int) -> Floats:
        """The chance [N] of this version of each passage to be among the first k; 0 where it has no two versions."""
        found = np.zeros(passages)
        place = np.flatnonzero(self.version == version)
        block = self.block[place]
        found[self.row[place]] = reach(self.before[block], self.sizes[block], k) / self.sizes[block]
        return found

    def ndcg(self, grades: Ints, k: int, version: int) -> Floats:
        """The expected nDCG@k [Q] where only this version of a passage is relevant; NaN without a relevant one."""
        from ir_measures import nDCG

        hit = np.flatnonzero((self.version == version) & (grades[self.row] > 0))
        block, query, grade = self.block[hit], self.query[hit], grades[self.row[hit]]
        before = self.before[block]
        best = np.lexsort((-grade, query))
        hits = Hits(self.queries, query, before + 1, grade, before, self.sizes[block], query[best], grade[best])
        measure = computed_here(nDCG @ k)
        assert measure is not None
        found: Floats = np.where(hits.relevant > 0, measure.expectation(hits), np.nan)
        return found


def _relative(means: Floats) -> Floats:
    """The relative difference [D], in per cent, of means [D, 2]; NaN where both are about 0."""
    total = means.sum(axis=1)
    found: Floats = np.full(len(means), np.nan)
    np.divide(200 * (means[:, 0] - means[:, 1]), total, out=found, where=total > NEAR_ZERO)
    return found
