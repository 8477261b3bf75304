"""Expected exposure of the groups over the rankings of a query, against a target (EED, EER, EEL)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.io.errors import EvenrankError
from evenrank.io.tables import IdIndex
from evenrank.io.types import Array

from .base import CUTOFF, Better
from .exposure_base import DISCOUNT, GAMMA, ExposureMeasure, rank_discounts
from .exposure_orders import expected_exposures, group_columns
from .exposure_targets import TARGET
from .joined import JoinedRun
from .ranked_lists import Values

_PIECE = 1 << 20


class _Masked:
    """Values of documents [N] where a mask [N] is true, else 0."""

    def __init__(self, values: Values, mask: Array) -> None:
        self._values, self._mask = values, mask

    def __len__(self) -> int:
        return len(self._mask)

    def __getitem__(self, rows: Array | slice, /) -> Array:
        return np.where(self._mask[rows], self._values[rows], 0.0)


class ExpectedExposureMeasure(ExposureMeasure):
    """A measure of the groups' expected exposure E [Q, G] and the target's T [Q, G]; a subclass says which."""

    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {
        "cutoff": CUTOFF,
        "discount": DISCOUNT,
        "gamma": GAMMA,
        "target": TARGET,
        "relevant": ParamInfo(dtype=bool, default=False, desc="count the exposure of relevant documents alone"),
    }
    of_rankings = True

    def of_exposure(self, exposure: Array, target: Array) -> Array:
        """The value [Q] of expected exposures [Q, G] and those of the target [Q, G]."""
        raise NotImplementedError

    def values(self, run: JoinedRun) -> Array:
        """The value [Q] of each query, of the expected exposure over its rankings and the orders of tied documents."""
        return self.expected(run)

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The value [Q] of the exact expected exposure over orders of tied documents (``random``: random orders)."""
        return self.of_exposure(self.exposure(run, random=random), self.target(run))

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """The value [Q], twice: it is of all orders of tied documents at once."""
        value = self.values(run)
        return value, value

    def target(self, run: JoinedRun) -> Array:
        """The exposure [Q, G] that each group should have: its target share of that of all ranks within the cutoff."""
        cutoff: int = self["cutoff"]
        total = 0.0
        # In pieces: a cutoff may be far beyond any list.
        for start in range(1, cutoff + 1, _PIECE):
            size = min(_PIECE, cutoff + 1 - start)
            total += float(rank_discounts(size, self["discount"], self["gamma"], start=start).sum())
        exposure: Array = run.target_shares(self["target"]) * total
        return exposure

    def exposure(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The expected exposure [Q, G] of the groups in each query of a run, over its rankings; NaN without a list.

        A query that other rankings of the system lack has the mean of those that have it.
        """
        total = np.zeros((len(run.queries), len(run.required_table.groups)))
        count = np.zeros(len(run.queries))
        for ranking in (run, *run.rankings):
            row = IdIndex([ranking.queries]).places(run.queries)
            row[row >= 0] = np.where(ranking.scored_lists.lengths[row[row >= 0]] > 0, row[row >= 0], -1)
            total[row >= 0] += self._exposure(ranking, random=random)[row[row >= 0]]
            count += row >= 0
        exposure: Array = np.divide(total, count[:, None], out=np.full(total.shape, np.nan), where=count[:, None] > 0)
        if self["relevant"]:
            exposure[~_has_relevant(run)] = np.nan
        return exposure

    def _exposure(self, run: JoinedRun, *, random: bool) -> Array:
        columns: list[Values] = [*group_columns(run)]
        if self["relevant"]:
            if run.qrels is None:
                raise EvenrankError(f"{self} needs `qrels`")
            columns = [_Masked(column, run.relevant) for column in columns]
        return expected_exposures(run.scored_lists, columns, self.discounts(run), random=random)


def _has_relevant(run: JoinedRun) -> Array:
    """Which of a run's queries [Q] have a relevant document, whether the run has it or not."""
    graded = run.judgements.filter(run.judgements["relevance"] > 0)
    return run.queries.is_in(graded["query_id"].unique().implode()).to_numpy()


class _EED(ExpectedExposureMeasure):
    """
    Expected exposure disparity: E · E = Σ_a E_a², E_a the expected exposure Σ_{i ≤ cutoff} δ_i w_a(d_i) of group a, as
    in Exposure but not normalised [DIA20; for groups as TREC22]. E is the mean over the rankings of a query: several
    runs of one system, and the orders of tied documents, which make a system that does not decide a stochastic one. So
    ties have no range here. With ``relevant=True``, only relevant documents give exposure; undefined for a query
    without one, and 0 if the run has none of them.

    Smallest, for a given total, if all groups have the same exposure. ``target`` changes nothing here: it is taken so
    that the three are written alike.

    When it misleads: least is no aim alone: a list of documents of no group has 0. It has no target: read it with EER,
    which says whether the exposure is where it should be; EEL = EED − 2 EER + ‖T‖² has both. A single order cannot
    spread its exposure: of a system that has several rankings for a query, give all.

    Worked example: documents of the groups m, f, m: E = (1.5, 0.6309): 2.25 + 0.3981.

    >>> import numpy as np
    >>> from evenrank.measures import EED
    >>> EED.of_exposure(np.array([[1.5, 0.6309]]), np.array([[1.0655, 1.0655]])).round(4).tolist()
    [2.648]
    """

    __name__ = NAME = "EED"
    PRETTY_NAME = "Expected Exposure Disparity"
    meaning = "How unequal the groups' exposure is, over all rankings of a query."

    def of_exposure(self, exposure: Array, target: Array) -> Array:
        """E · E [Q], whatever the target."""
        value: Array = (exposure * exposure).sum(axis=1)
        return value

    def target(self, run: JoinedRun) -> Array:
        """Nothing [Q, 0]: a query has a disparity without a target too."""
        return np.zeros((len(run.queries), 0))


class _EER(ExpectedExposureMeasure):
    """
    Expected exposure relevance: E · T = Σ_a E_a T_a, E as in EED, T = t Σ_{i ≤ cutoff} δ_i the exposure that the groups
    should have if their shares were those of the target t [DIA20; for groups as TREC22, without the factor 2].

    When it misleads: all exposure for the group with the largest target share has as much as the target itself, or
    more; it says something only together with EED. Its size depends on the cutoff and the discount. With equal target
    shares it grows with the exposure of documents that have a group, whichever.

    Worked example: documents of the groups m, f, m and equal shares: T = (1, 1) × (1 + 0.6309 + 0.5) / 2;
    1.5 × 1.0655 + 0.6309 × 1.0655.

    >>> import numpy as np
    >>> from evenrank.measures import EER
    >>> EER.of_exposure(np.array([[1.5, 0.6309]]), np.array([[1.0655, 1.0655]])).round(4).tolist()
    [2.2705]
    """

    __name__ = NAME = "EER"
    PRETTY_NAME = "Expected Exposure Relevance"
    better: Better = "higher"
    meaning = "How much exposure goes to the groups that should have it, over all rankings of a query."

    def of_exposure(self, exposure: Array, target: Array) -> Array:
        """E · T [Q]."""
        value: Array = (exposure * target).sum(axis=1)
        return value


class _EEL(ExpectedExposureMeasure):
    """
    Expected exposure loss: ‖E − T‖² = Σ_a (E_a − T_a)², E as in EED, T as in EER [DIA20; for groups as TREC22].
    0: each group has the exposure that it should have.

    When it misleads: exposure that goes to no group is a loss too: neutral or unlabelled documents, lists shorter than
    the cutoff, and with ``relevant=True`` every document that is not relevant, so it is large for any ranking that is
    not effective. Its size depends on cutoff and discount. A single ranking can rarely reach 0, however fair.

    Worked example: documents of the groups m, f, m and equal shares: (1.5 − 1.0655)² + (0.6309 − 1.0655)².

    >>> import numpy as np
    >>> from evenrank.measures import EEL
    >>> EEL.of_exposure(np.array([[1.5, 0.6309]]), np.array([[1.0655, 1.0655]])).round(4).tolist()
    [0.3777]
    """

    __name__ = NAME = "EEL"
    PRETTY_NAME = "Expected Exposure Loss"
    meaning = "How far the groups' exposure is from what they should have, over all rankings of a query."

    def of_exposure(self, exposure: Array, target: Array) -> Array:
        """‖E − T‖² [Q]."""
        value: Array = ((exposure - target) ** 2).sum(axis=1)
        return value


EED, EER, EEL = _EED(), _EER(), _EEL()
MEASURES = (EED, EER, EEL)
