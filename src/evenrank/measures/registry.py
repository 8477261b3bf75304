"""The measures by name: ours as ir_measures measures, so that both are written and parsed alike."""

from __future__ import annotations

import re
from typing import Any, Literal

import ir_measures
import numpy as np
from ir_measures import Measure
from ir_measures.measures import ParamInfo, register
from ir_measures.measures.base import Agg

from evenrank.io.errors import EvenrankError, shown
from evenrank.io.ranges import LARGEST
from evenrank.io.scores import MAGNITUDES, Scores

Better = Literal["higher", "nearer zero"]
Array = np.ndarray[Any, Any]

CUTOFF = ParamInfo(dtype=int, required=True, desc="ranking cutoff")
_MAGNITUDE = ParamInfo(dtype=str, choices=list(MAGNITUDES), default="tf", desc="group magnitude")
_LABEL = ParamInfo(dtype=str, choices=list(MAGNITUDES), default="tf_words", desc="magnitude that labels a document")
_POLES = ParamInfo(dtype=str, default=None, desc="groups to compare, 'A,B', positive first; B may be 'rest'")
_REL = ParamInfo(dtype=int, default=1, desc="smallest grade that counts as clicked")


class SkipUndefined(Agg):  # type: ignore[misc]
    """Mean over the queries that have a value; where ir_measures would count 0 for a query without one."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def add(self, value: float) -> None:
        """Takes a query's value; NaN is undefined."""
        if not np.isnan(value):
            self.values.append(value)

    def result(self) -> float:
        """The mean; NaN where no query has a value."""
        return float(np.mean(self.values)) if self.values else float("nan")


class AbsoluteMean(SkipUndefined):
    """The absolute value of the mean over the queries that have a value."""

    def result(self) -> float:
        """|mean|; NaN where no query has a value."""
        return abs(super().result())


class GroupValue(float):
    """A query's PRF, with the sign of the pole it belongs to: +1 for the first, −1 for the second."""

    sign: int

    def __new__(cls, value: float, sign: int) -> GroupValue:
        self = super().__new__(cls, value)
        self.sign = sign
        return self


class MeanDifference(SkipUndefined):
    """Mean over the first pole's values minus mean over the second's."""

    def __init__(self) -> None:
        super().__init__()
        self.poles: dict[int, list[float]] = {1: [], -1: []}

    def add(self, value: float) -> None:
        """Takes a GroupValue; anything else is a query without one."""
        if isinstance(value, GroupValue) and not np.isnan(value):
            self.poles[value.sign].append(float(value))

    def result(self) -> float:
        """The difference; NaN where a pole has no value."""
        first, second = self.poles[1], self.poles[-1]
        return float(np.mean(first) - np.mean(second)) if first and second else float("nan")


class AbsoluteDifference(MeanDifference):
    """The absolute value of the difference of the poles' means."""

    def result(self) -> float:
        """|difference|; NaN where a pole has no value."""
        return abs(super().result())


class BiasMeasure(Measure):  # type: ignore[misc]
    """A measure of what a ranking shows, computed from a score table.

    ``better``: which change is an improvement; ``whole_run``: a figure of the run as a whole, not a mean over queries.
    """

    DEFAULT = float("nan")
    better: Better = "nearer zero"
    whole_run = False

    def aggregator(self) -> Agg:
        """Collects per-query values into the run's figure."""
        return SkipUndefined()


class LinearMeasure(BiasMeasure):
    """A measure that is a weighted sum of a value of each document: the base of measures of your own.

    A subclass gives the weights and the values; ties, the reference rankings, intervals and tests follow from them.
    It names the measure (``__name__``, ``NAME``, ``PRETTY_NAME``) and its parameters (``SUPPORTED_PARAMS``, with
    :data:`CUTOFF` for ``@k``); :func:`evenrank.measures.add_measure` makes it known by name.
    ``unknown``: the value of a document without scores (``missing="neutral"``).
    """

    SUPPORTED_PARAMS = {"cutoff": CUTOFF}
    unknown = 0.0

    def weights(self, lengths: Array, depth: int) -> Array:
        """The weight [Q, depth] of each rank, for lists of ``lengths`` [Q]; 0 where a list has no such rank.

        ``depth``: the cutoff, or the length of the longest list where that is smaller.
        """
        raise NotImplementedError

    def documents(self, scores: Scores, rows: Array) -> Array:
        """The value [N] of each of the ``rows`` [N] of a score table."""
        raise NotImplementedError


class _RaB(BiasMeasure):
    """
    Rank bias: the mean signed magnitude (first pole minus second) of the first ``cutoff`` documents.

    RaB(q)@t = (1/min(t, n)) Σ_{i ≤ t} mag(d_i) [RS20, eq. 4]. Positive: the top speaks more of the first pole.
    Opposite queries cancel in the mean.

    When it misleads: a mean near 0 can hide one query far on one side and another far on the other; ``AbsARaB@k`` keeps
    both. It moves with how long texts are and how often they name a group, so figures of two collections, or of two
    magnitudes, cannot be compared. A passage that quotes a sexist remark in order to refute it counts like the remark.

    Worked example: three documents with signed magnitudes 1, 0 and −1, to depth 2: (1 + 0) / 2.

    >>> import numpy as np
    >>> from evenrank.measures.exposure import rab
    >>> rab(np.array([[1.0, 0.0, -1.0]]), np.array([3]), 2).tolist()
    [0.5]
    """

    __name__ = NAME = "RaB"
    PRETTY_NAME = "Rank Bias"
    SUPPORTED_PARAMS = {"cutoff": CUTOFF, "magnitude": _MAGNITUDE, "poles": _POLES}


class _ARaB(BiasMeasure):
    """
    Average rank bias: the mean of RaB@t over t = 1 … cutoff, so the top ranks weigh most [RS20, eq. 5].

    Opposite queries cancel in the mean; AbsARaB keeps them.

    When it misleads: as RaB, and it is mostly about the first ranks: with cutoff 10 the first document alone has 29%
    of the weight, so a tie or a single odd passage at the top moves it much. It does not know relevance: if the
    documents that answer speak of one group, a perfect ranking leans towards it.

    Worked example: signed magnitudes 1, 0 and −1, to depth 3. RaB@1 = 1, RaB@2 = 1/2, RaB@3 = 0; their mean is 1/2.

    >>> import numpy as np
    >>> from evenrank.measures.exposure import arab
    >>> arab(np.array([[1.0, 0.0, -1.0]]), np.array([3]), 3).round(4).tolist()
    [0.5]
    """

    __name__ = NAME = "ARaB"
    PRETTY_NAME = "Average Rank Bias"
    SUPPORTED_PARAMS = _RaB.SUPPORTED_PARAMS


class _AbsARaB(_ARaB):
    """
    Mean over queries of the absolute value of ARaB [RS20, eq. 5]: bias in either direction counts.

    When it misleads: noise alone makes it more than 0, the more the fewer gendered documents a list holds, so it is
    never 0 in practice. Compare it with the reference ``random`` of the same candidates, not with 0.

    Worked example: one query with ARaB 1/2, one with −1/2: the mean ARaB is 0, AbsARaB is 1/2.

    >>> import numpy as np
    >>> from evenrank.measures.exposure import arab
    >>> both = arab(np.array([[1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]]), np.array([3, 3]), 3)
    >>> float(both.mean()), round(float(abs(both).mean()), 4)
    (0.0, 0.5)
    """

    __name__ = NAME = "AbsARaB"
    PRETTY_NAME = "Mean of Absolute Average Rank Bias"


class _AbsoluteMeanARaB(_ARaB):
    """
    Absolute value of a run's mean ARaB [RS20, eq. 5], written ``|ARaB|@k``.

    When it misleads: it hides which side a run leans to, so two runs with equal values can lean to opposite sides. It
    is a figure of the whole run: no query has one, and opposite queries cancel before the absolute value is taken.

    Worked example: queries with ARaB 1/2 and −1/2 give |0| = 0, though neither list is balanced.

    >>> import numpy as np
    >>> from evenrank.measures.exposure import arab
    >>> abs(float(arab(np.array([[1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]]), np.array([3, 3]), 3).mean()))
    0.0
    """

    __name__ = NAME = "|ARaB|"
    PRETTY_NAME = "Absolute Mean of Average Rank Bias"
    whole_run = True

    def aggregator(self) -> Agg:
        """Collects per-query values into the run's figure."""
        return AbsoluteMean()


class _FaiRR(BiasMeasure):
    """
    Fairness of exposure to neutral documents: Σ_{i ≤ cutoff} neutrality(d_i)/log2(1 + i) [RKS21, eq. 2].

    Its size depends on the query's candidates; NFaiRR can be compared.

    When it misleads: a document without any group word is as neutral as one that speaks of all groups equally, and so
    is one with no more group words than the threshold (1). A ranking of irrelevant neutral documents has the best
    value.

    Worked example: neutralities 1, 0 and 1/2: 1/log2(2) + 0 + (1/2)/log2(4) = 1 + 0 + 1/4.

    >>> import numpy as np
    >>> from evenrank.measures.neutrality import fairr
    >>> fairr(np.array([[1.0, 0.0, 0.5]]), np.array([3]), 3).tolist()
    [1.25]
    """

    __name__ = NAME = "FaiRR"
    PRETTY_NAME = "Fairness of Retrieval Results"
    SUPPORTED_PARAMS = {"cutoff": CUTOFF}
    better: Better = "higher"


class _NFaiRR(_FaiRR):
    """
    FaiRR over that of the background documents sorted by falling neutrality [RKS21, eq. 4]: 1 is the most neutral
    ranking of the background. Undefined where the background has no neutral document; above 1 where a run holds
    documents from outside the background.

    When it misleads: its size depends on the background, so values from two papers with different backgrounds cannot be
    compared. The reference ``neutral-first`` has 1.0 and may be useless as a ranking. Neutral wording is not fairness:
    of two ideal neutral lists, one may still be about men only.

    Worked example: neutralities 1, 0 and 1/2 in the run's order, the same three documents as background. FaiRR is 5/4;
    the best order, 1, 1/2, 0, has 1 + (1/2)/log2(3) = 1.3155.

    >>> import numpy as np
    >>> from evenrank.measures.neutrality import fairr, ideal_fairr, nfairr
    >>> three, length = np.array([[1.0, 0.0, 0.5]]), np.array([3])
    >>> nfairr(fairr(three, length, 3), ideal_fairr(three, length, 3)).round(4).tolist()
    [0.9502]
    """

    __name__ = NAME = "NFaiRR"
    PRETTY_NAME = "Normalised Fairness of Retrieval Results"


class _APRF(BiasMeasure):
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
    PRETTY_NAME = "Average Pairwise Ranking Fairness"
    SUPPORTED_PARAMS = {
        "group": ParamInfo(dtype=str, required=True, desc="group of the clicked documents"),
        "magnitude": _LABEL,
        "rel": _REL,
    }
    better: Better = "higher"


class _DeltaAPRF(BiasMeasure):
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
    PRETTY_NAME = "Difference of Average Pairwise Ranking Fairness"
    SUPPORTED_PARAMS = {"magnitude": _LABEL, "rel": _REL, "poles": _POLES}
    whole_run = True

    def aggregator(self) -> Agg:
        """Collects per-query values into the run's figure."""
        return MeanDifference()


class _AbsoluteDeltaAPRF(_DeltaAPRF):
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
    PRETTY_NAME = "Absolute Difference of Average Pairwise Ranking Fairness"

    def aggregator(self) -> Agg:
        """Collects per-query values into the run's figure."""
        return AbsoluteDifference()


RaB, ARaB, AbsARaB = _RaB(), _ARaB(), _AbsARaB()
AbsoluteMeanARaB = _AbsoluteMeanARaB()
FaiRR, NFaiRR = _FaiRR(), _NFaiRR()
APRF, DeltaAPRF = _APRF(), _DeltaAPRF()
AbsoluteDeltaAPRF = _AbsoluteDeltaAPRF()
# |X| is no name that ir_measures can parse; the spelled-out form is.
for _measure, _aliases in (
    (RaB, []),
    (ARaB, []),
    (AbsARaB, []),
    (AbsoluteMeanARaB, ["AbsoluteMeanARaB"]),
    (FaiRR, []),
    (NFaiRR, []),
    (APRF, []),
    (DeltaAPRF, []),
    (AbsoluteDeltaAPRF, ["AbsoluteDeltaAPRF"]),
):
    register(_measure, _aliases)

BIAS_MEASURES: tuple[Any, ...] = (
    RaB, ARaB, AbsARaB, AbsoluteMeanARaB, FaiRR, NFaiRR, APRF, DeltaAPRF, AbsoluteDeltaAPRF,
)  # fmt: skip

_ABSOLUTE = re.compile(r"\|(ARaB|DeltaAPRF)(\(.*?\))?\|(\(.*?\))?")


def parse_measure(text: str | Measure) -> Measure:
    """A measure from its text, ours or any of ir_measures: ``nDCG@10``, ``ARaB(magnitude='bool')@10``, ``|ARaB|@10``.

    Raises EvenrankError for a name or a parameter that does not exist.
    """
    if isinstance(text, Measure):
        return text
    plain = _ABSOLUTE.sub(lambda m: f"Absolute{'Mean' * (m[1] == 'ARaB')}{m[1]}{m[2] or m[3] or ''}", text.strip())
    try:
        measure = ir_measures.parse_measure(plain)
        if measure.SUPPORTED_PARAMS.get("cutoff") is CUTOFF and "cutoff" not in measure.params:
            raise EvenrankError(f"`measures`: {shown(text)} needs a cutoff, such as {text}@10")
        if measure.SUPPORTED_PARAMS.get("group") is not None and "group" not in measure.params:
            raise EvenrankError(f"`measures`: {shown(text)} needs a group, such as {text}(group='m')")
        measure.validate_params()
    except NameError:
        ours = ", ".join(measure.NAME for measure in BIAS_MEASURES)
        raise EvenrankError(f"`measures`: no measure {shown(text)} (bias: {ours}; utility: nDCG, RR, AP, …)") from None
    except (ValueError, AssertionError) as error:
        raise EvenrankError(f"`measures`: {shown(text)} is no measure: {error}") from None
    cutoff = measure.params.get("cutoff")
    if cutoff is not None and (isinstance(cutoff, bool) or not 1 <= cutoff <= LARGEST):
        raise EvenrankError(f"`measures`: {shown(text)}: the cutoff must be 1 or more, and {LARGEST} at most")
    absurd = [name for name, value in measure.params.items() if isinstance(value, int) and abs(value) > LARGEST]
    if absurd:
        raise EvenrankError(f"`measures`: {shown(text)}: {absurd[0]} must be {LARGEST} at most")
    if measure.params.get("poles", "a,b").count(",") != 1:
        raise EvenrankError(f"`measures`: {shown(text)}: poles are written 'A,B'")
    return measure


def parse_measures(text: str) -> list[Measure]:
    """Measures separated by spaces; a space inside brackets or around ``@`` separates nothing."""
    joined = re.sub(r"\s*@\s*", "@", text)
    parts = re.findall(r"(?:\([^)]*\)|[^\s(])+", joined)
    if re.sub(r"\s", "", "".join(parts)) != re.sub(r"\s", "", joined):
        raise EvenrankError(f"`measures`: {shown(text)}: a bracket is not closed")
    measures = [parse_measure(part) for part in parts]
    if not measures:
        raise EvenrankError("`measures`: expected at least one measure")
    return list(dict.fromkeys(measures))


def is_bias(measure: Measure) -> bool:
    """Whether a measure needs a score table (and is not one of utility)."""
    return isinstance(measure, BiasMeasure)


def describe(measure: Measure) -> str:
    """What a measure measures, from its docstring before "When it misleads", as one line."""
    return " ".join((type(measure).__doc__ or "").partition("When it misleads:")[0].split())
