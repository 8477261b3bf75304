"""How far the groups' exposure is from the shares that they should have (AWRF, NDKL)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.io.types import Array

from .base import CUTOFF, Better, TieFigures
from .exposure import exposure_shares
from .exposure_base import DISCOUNT, GAMMA, ExposureMeasure
from .exposure_orders import exposures
from .joined import JoinedRun
from .targets import TARGETS

TARGET = ParamInfo(
    dtype=str,
    choices=[*TARGETS],
    default=None,
    desc="shares that the groups should have: `uniform`, `candidates`, `relevant` or `file`; by default those that the "
    "run is given, or else `uniform`",
)
_BASE = ParamInfo(dtype=int, choices=[2], default=None, desc="2: logarithm to base 2, for values from 0 to 1")


def divergence(shares: Array, target: Array) -> Array:
    """The Kullback–Leibler divergence [Q] of shares [Q, G] from a target [Q, G], in nats; infinite where it gives 0.

    >>> divergence(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])).round(4).tolist()
    [0.6931, inf]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(shares == 0, 0.0, shares * np.log(shares / target))
    # A target that is undefined is no target for a group without exposure either.
    summed: Array = np.where(np.isnan(target).any(axis=1), np.nan, terms.sum(axis=1))
    return summed


def awrf(shares: Array, target: Array, base: int | None = None) -> Array:
    """AWRF [Q] of shares of exposure [Q, G]: 1 − their Jensen–Shannon divergence from the target [Q, G] [TREC22].

    ``base``: of the logarithm, by default the natural one.

    >>> awrf(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])).round(4).tolist()
    [1.0, 0.3069]
    """
    middle = (shares + target) / 2
    distance = (divergence(shares, middle) + divergence(target, middle)) / 2
    return 1 - np.maximum(distance, 0) / (1.0 if base is None else np.log(base))


def ndkl(weights: Array, lengths: Array, target: Array, discounts: Array) -> Array:
    """NDKL [Q] of the groups' weights [G, Q, k] in lists of ``lengths`` [Q], for a target [Q, G] [GEY19, eq. 4].

    The mean over prefixes of the divergence of their shares from the target, weighted by the discount [k] of the last
    rank; over the prefixes with a group. NaN without one, and where the divergence is infinite.

    >>> first = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])  # documents of the groups a, b: ln 2 at rank 1, 0 at rank 2
    >>> discounts = np.array([1.0, 0.6309])
    >>> ndkl(first, np.array([2]), np.array([[0.5, 0.5]]), discounts).round(4).tolist()
    [0.425]
    """
    sums = np.cumsum(weights, axis=2)
    total = sums.sum(axis=0)
    counted = np.where((total > 0) & (np.arange(len(discounts)) < lengths[:, None]), discounts, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = sums / total
        terms = np.where(sums == 0, 0.0, shares * (np.log(shares) - np.log(target.T)[:, :, None]))
    distance = np.where(counted > 0, terms.sum(axis=0), 0.0)
    weight = counted.sum(axis=1)
    value = np.einsum("qk,qk->q", counted, distance)
    value = np.divide(value, weight, out=np.full(len(value), np.nan), where=weight > 0)
    return np.where(np.isfinite(value) & ~np.isnan(target).any(axis=1), value, np.nan)


class _AWRF(ExposureMeasure):
    """
    Attention-weighted rank fairness: 1 − JSD(e ‖ t), the Jensen–Shannon divergence between the groups' shares of
    exposure e, as in Exposure, and a target t [SAP19; RE22; as TREC22 has it]. 1: the shares are those of the target.

    With the natural logarithm, as published, JSD is at most ln 2, so the floor of AWRF is 1 − ln 2 = .307, not 0, and
    figures look better than they are; ``base=2`` gives values from 0 to 1. Undefined where no document within the
    cutoff is of any group, and where the target is. A document that the labels lack keeps its rank and adds nothing.

    Over ties, and for the reference ``random``, the mean of 200 drawn orders, as a single order is what AWRF is about;
    of the expected exposure over many orders, EED, EER and EEL tell.

    When it misleads: nearness to a target is no better than the target: with ``candidates``, a first stage that finds
    only one group is perfectly fair. Documents of no group are not in it: one of a group among nine neutral ones can
    decide it. Values are near 1: all exposure for one of two groups that should have half each is still 0.784.

    Worked example: documents of the groups m, f, m, target ½, ½. The shares of exposure are 0.7039 and 0.2961; half
    the divergences from the middle, (0.6020, 0.3980), are 0.0113 and 0.0106.

    >>> import numpy as np
    >>> from evenrank.measures.exposure_targets import awrf
    >>> awrf(np.array([[0.7039, 0.2961]]), np.array([[0.5, 0.5]])).round(4).tolist()
    [0.9781]
    """

    __name__ = NAME = "AWRF"
    PRETTY_NAME = "Attention-Weighted Rank Fairness"
    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {
        "cutoff": CUTOFF,
        "discount": DISCOUNT,
        "gamma": GAMMA,
        "target": TARGET,
        "base": _BASE,
    }
    better: Better = "higher"
    meaning = "How near the groups' shares of exposure are to those that they should have."

    def of_lists(self, run: JoinedRun, weights: Array, queries: Array) -> Array:
        """The value [A] of lists from their groups' weights [G, A, k]."""
        shares = exposure_shares(exposures(weights, self.discounts(run)))
        return awrf(shares, run.target_shares(self["target"])[queries], self["base"])

    def ties(self, run: JoinedRun) -> TieFigures:
        """Mean and range of 200 drawn orders."""
        return self.drawn_ties(run)


class _NDKL(ExposureMeasure):
    """
    Normalised discounted KL divergence [GEY19, eq. 4]: Σ_i δ_i KL(D_i ‖ t) / Σ_i δ_i over the ranks i ≤ cutoff of the
    list, D_i the groups' shares of the weight of the first i documents, t a target, δ_i = 1/log2(1 + i) unless
    ``discount`` says otherwise. 0: the target at every rank. In nats.

    Prefixes without a document of a group have no shares and are left out of both sums (our reading). Undefined without
    one that has, and where the target gives 0 to a group that is there: the divergence would be infinite. Over ties and
    for the reference ``random``, the mean of 200 drawn orders; the range is theirs.

    When it misleads: no ranking reaches 0: the first document alone is of one group, ln 2 from equal shares of two. So
    its size depends on the cutoff and on the number of groups; compare with ``random``. It has no upper bound: a target
    that is nearly 0 for a group makes it as large as one likes.

    Worked example: documents of the groups a and b, target ½, ½: ln 2 = 0.6931 at rank 1, 0 at rank 2, where both
    have a half: 0.6931 / (1 + 0.6309).

    >>> import numpy as np
    >>> from evenrank.measures.exposure_base import rank_discounts
    >>> from evenrank.measures.exposure_targets import ndkl
    >>> weights = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> ndkl(weights, np.array([2]), np.array([[0.5, 0.5]]), rank_discounts(2)).round(4).tolist()
    [0.425]
    """

    __name__ = NAME = "NDKL"
    PRETTY_NAME = "Normalised Discounted KL Divergence"
    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {
        "cutoff": CUTOFF,
        "discount": DISCOUNT,
        "gamma": GAMMA,
        "target": TARGET,
    }
    meaning = "How far the groups' shares of the first documents are, at every rank, from those that they should have."

    def of_lists(self, run: JoinedRun, weights: Array, queries: Array) -> Array:
        """The value [A] of lists from their groups' weights [G, A, k]."""
        lengths = run.scored_lists.lengths[queries]
        return ndkl(weights, lengths, run.target_shares(self["target"])[queries], self.discounts(run))

    def ties(self, run: JoinedRun) -> TieFigures:
        """Mean and range of 200 drawn orders."""
        return self.drawn_ties(run)


AWRF, NDKL = _AWRF(), _NDKL()
MEASURES = (AWRF, NDKL)
