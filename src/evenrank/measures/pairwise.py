"""Pairwise ranking fairness: do clicked documents of each group win as often against the others (PRF, ΔA-PRF)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.files.types import Array
from evenrank.groups.table import MAGNITUDES, REST, GroupTable, Magnitude

from .base import POLES, AbsoluteFigure, Better, BiasMeasure, Over, TieFigures
from .joined import TIE_DRAWS, JoinedRun
from .ranked_lists import Wins, break_ties, pairwise_wins

_SIDE = ParamInfo(dtype=str, choices=list(MAGNITUDES), default="tf_words", desc="magnitude that labels a document")
_REL = ParamInfo(dtype=int, default=1, desc="smallest grade that counts as clicked")


def prf(wins: Wins, in_group: Array, queries: int, *, tie_weight: float = 1.0) -> Array:
    """PRF of one group for each query [Q]: the share of (clicked of the group, not clicked) pairs that are won.

    ``in_group`` [H]: which clicked documents belong to the group. As published, a tie counts as a win
    (``tie_weight`` 1); ½ gives the expectation over orders of tied documents. NaN without a clicked document of the
    group or without another document [BEU19; IBBR, eq. 2].
    """
    won = wins.strict + tie_weight * wins.tied
    return _mean_share(wins, in_group, queries, won)


def nprf(wins: Wins, in_group: Array, queries: int) -> Array:
    """nPRF of one group for each query [Q]: sqrt of the mean of R_j² 1[R_j ≥ R_k] over its pairs [IBBR, eq. 3]."""
    return np.sqrt(_mean_share(wins, in_group, queries, wins.score**2 * (wins.strict + wins.tied)))


def _mean_share(wins: Wins, in_group: Array, queries: int, won: Array) -> Array:
    chosen = in_group & (wins.others > 0)
    total = np.bincount(wins.query[chosen], weights=won[chosen], minlength=queries)
    pairs = np.bincount(wins.query[chosen], weights=wins.others[chosen], minlength=queries)
    share: Array = np.divide(total, pairs, out=np.full(queries, np.nan), where=pairs > 0)
    return share


def delta_aprf(first: Array, second: Array) -> float:
    """ΔA-PRF = mean of the first pole's PRF − mean of the second's, each over the queries that have it; NaN if none."""
    if np.isnan(first).all() or np.isnan(second).all():
        return float("nan")
    return float(np.nanmean(first) - np.nanmean(second))


class PairwiseMeasure(BiasMeasure):
    """A measure of the pairs of a clicked document and one that is not, over whole lists."""

    needs_qrels = True

    def kind(self, table: GroupTable) -> Magnitude:
        """The magnitude whose sign is a document's side: the one asked for, or the usual one of the table."""
        magnitude: Magnitude | None = self.params.get("magnitude")
        return magnitude or ("count" if table.labelled else "tf_words")

    def looked_at(self, run: JoinedRun) -> Array:
        """The places of the clicked documents, whose sides count."""
        return run.wins(self["rel"])[1]


class _APRF(PairwiseMeasure):
    """
    Pairwise ranking fairness of one group: the share of pairs of a clicked document of the group and a document that
    is not clicked in which the clicked one scores at least as high, averaged over queries [BEU19; IBBR, eq. 2].

    Ties count as wins, so a constant scorer gets 1: look at the tie mean beside it.

    When it misleads: it is a measure of effectiveness for one group, and says nothing alone: compare the two groups'.
    It looks at pairs within one list, so a group whose relevant documents the first stage never found is not missed.

    Worked example: scores 3, 2, 1, 0; the first and the third document are clicked and of the group. The first beats
    both others, the third one of two: 3 of 4 pairs.

    >>> import numpy as np
    >>> from evenrank.measures import RankedLists, pairwise_wins, prf
    >>> lists = RankedLists(np.array([0, 4]), np.array([3.0, 2.0, 1.0, 0.0]))
    >>> prf(pairwise_wins(lists, np.array([0, 2])), np.array([True, True]), 1).tolist()
    [0.75]
    """

    __name__ = NAME = "APRF"
    least, most = 0.0, 1.0
    PRETTY_NAME = "Average Pairwise Ranking Fairness"
    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {
        "group": ParamInfo(dtype=str, required=True, desc="group of the clicked documents"),
        "magnitude": _SIDE,
        "rel": _REL,
    }
    better: Better = "higher"
    meaning = "How often a relevant passage of the group beats a passage that is not relevant."

    def values(self, run: JoinedRun) -> Array:
        """PRF [Q] of the group."""
        return self._of_group(run)

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The exact expectation [Q] of PRF: a tie counts a half, and so does every pair in a random order."""
        value = self._of_group(run, 0.5)
        return _as_random(value) if random else value

    def by_relevance(self, run: JoinedRun) -> Array:
        """1 where defined: by falling grade every clicked document is ahead of all that are not."""
        return _all_win(self._of_group(run), 1.0)

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """PRF [Q] with all ties lost, and with all ties won."""
        return self._of_group(run, 0.0), self._of_group(run, 1.0)

    def _of_group(self, run: JoinedRun, tie_weight: float = 1.0) -> Array:
        group, table = self["group"], run.required_table
        number = table.number_of(group)
        other = table.groups[1 - number] if len(table.groups) == 2 else REST
        wins, rows = run.wins(self["rel"])
        chosen = run.sides(rows, self.kind(table), (group, other)) == 1
        return prf(wins, chosen, len(run.queries), tie_weight=tie_weight)


class _DeltaAPRF(PairwiseMeasure):
    """
    ΔA-PRF: the mean PRF of the first pole minus that of the second, signed [IBBR, §4.3]. 0: clicked documents of both
    groups win equally often.

    When it misleads: a ranker that ranks both groups equally badly has 0. The two means are over different queries,
    those with a clicked document of each group, so a difference can come from the queries rather than from the ranker.
    A tie counts as a win: many ties push both to 1 and the difference to 0.

    Worked example: the list of APRF, the first document of the first pole, the third of the second: 2/2 − 1/2.

    >>> import numpy as np
    >>> from evenrank.measures import RankedLists, delta_aprf, pairwise_wins, prf
    >>> wins = pairwise_wins(RankedLists(np.array([0, 4]), np.array([3.0, 2.0, 1.0, 0.0])), np.array([0, 2]))
    >>> delta_aprf(prf(wins, np.array([True, False]), 1), prf(wins, np.array([False, True]), 1))
    0.5
    """

    __name__ = NAME = "DeltaAPRF"
    least, most = -1.0, 1.0
    PRETTY_NAME = "Difference of Average Pairwise Ranking Fairness"
    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {"magnitude": _SIDE, "rel": _REL, "poles": POLES}
    whole_run = True
    part_count = 2
    signed = True
    meaning = "How much more often relevant passages of one group beat others than those of the other group do."

    def parts(self, run: JoinedRun, *, random: bool = False) -> tuple[Array, ...]:
        """PRF [Q] of the first pole and of the second; ``random``: a half where defined."""
        first, second = self._of_poles(run)
        return (_as_random(first), _as_random(second)) if random else (first, second)

    def per_query(self, parts: Sequence[Array]) -> Array:
        """The first pole's PRF minus the second's."""
        return parts[0] - parts[1]

    def values(self, run: JoinedRun) -> Array:
        """The first pole's PRF minus the second's [Q], for queries with a clicked document of both."""
        return self.per_query(self._of_poles(run))

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The exact expectation [Q] of the difference: a tie counts a half, and so does any pair in a random order."""
        first, second = self._of_poles(run, (0.5, 0.5))
        return _as_random(first) - _as_random(second) if random else first - second

    def parts_by_relevance(self, run: JoinedRun) -> tuple[Array, ...]:
        """PRF [Q] of both poles: 1 where defined, since every clicked document is ahead of all that are not."""
        return tuple(_all_win(part, 1.0) for part in self._of_poles(run))

    def by_relevance(self, run: JoinedRun) -> Array:
        """The difference [Q] of both poles' PRF, where both are defined."""
        return self.per_query(self.parts_by_relevance(run))

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """The difference [Q] with all ties won by the second pole, and by the first."""
        return self.per_query(self._of_poles(run, (0.0, 1.0))), self.per_query(self._of_poles(run, (1.0, 0.0)))

    def ties(self, run: JoinedRun) -> TieFigures:
        """Mean and range of the difference of means, which is no mean of the queries' differences."""
        low, middle, high = (
            delta_aprf(*self._of_poles(run, weights)) for weights in ((0.0, 1.0), (0.5, 0.5), (1.0, 0.0))
        )
        return TieFigures(None, None, None) if np.isnan(middle) else TieFigures(None, middle, (low, high))

    def drawn_parts(self, run: JoinedRun, *, random: bool = False) -> list[tuple[Array, Array]]:
        """PRF [Q] of both poles in each of 200 random orders of tied documents (``random``: of all candidates)."""
        wins, rows = run.wins(self["rel"])
        lists = run.lists.all_tied() if random else run.lists
        if random:
            wins = pairwise_wins(lists, rows)
        sides = run.sides(rows, self.kind(run.required_table), self.poles)
        rng = np.random.default_rng(run.seed)
        drawn = (break_ties(wins, lists.tie_of(rows)[0], rng) for _ in range(TIE_DRAWS if wins.tied.any() else 1))
        queries = len(run.queries)
        return [(prf(draw, sides == 1, queries), prf(draw, sides == -1, queries)) for draw in drawn]

    def figure_draws(self, run: JoinedRun, *, random: bool = False) -> Array:
        """ΔA-PRF in each of 200 random orders of tied documents (``random``: of all candidates)."""
        return np.array([delta_aprf(*parts) for parts in self.drawn_parts(run, random=random)])

    def _of_poles(self, run: JoinedRun, tie_weights: tuple[float, float] = (1.0, 1.0)) -> tuple[Array, Array]:
        """PRF [Q] of the first and of the second pole, with the weight of a tie in each."""
        wins, rows = run.wins(self["rel"])
        side = run.sides(rows, self.kind(run.required_table), self.poles)
        first, second = (
            prf(wins, side == pole, len(run.queries), tie_weight=weight)
            for pole, weight in zip((1, -1), tie_weights, strict=True)
        )
        return first, second


class _AbsoluteDeltaAPRF(AbsoluteFigure, _DeltaAPRF):
    """
    |ΔA-PRF| as published [IBBR, §4.3], written ``|DeltaAPRF|``. Tests are on the signed value.

    When it misleads: as DeltaAPRF; and it hides which group loses. A mitigation that turns a lean of 0.1 into one of
    −0.1 shows as no change.

    Worked example: the two poles' PRF 1/2 and 1 differ by −1/2; written without its sign.

    >>> import numpy as np
    >>> from evenrank.measures import delta_aprf
    >>> abs(delta_aprf(np.array([0.5]), np.array([1.0])))
    0.5
    """

    __name__ = NAME = "|DeltaAPRF|"
    SPELLED = "AbsoluteDeltaAPRF"
    PRETTY_NAME = "Absolute Difference of Average Pairwise Ranking Fairness"
    meaning = "The size of the difference between the groups' average pairwise ranking fairness."

    def figure_over(self, run: JoinedRun, over: Over) -> float | None:
        """By falling grade None: every order of equal grades has the same."""
        return super().figure_over(run, over) if over == "random" else None


def _all_win(value: Array, share: float) -> Array:
    """The same share of pairs won by every query that has any."""
    return np.where(np.isnan(value), value, share)


def _as_random(value: Array) -> Array:
    """In a random order a clicked document wins half of its pairs."""
    return _all_win(value, 0.5)


APRF, DeltaAPRF, AbsoluteDeltaAPRF = _APRF(), _DeltaAPRF(), _AbsoluteDeltaAPRF()
MEASURES = (APRF, DeltaAPRF, AbsoluteDeltaAPRF)
