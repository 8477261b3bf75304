"""What an edit does to a ranker's scores: the mean over pairs, beyond a placebo, and the preference that a swap shows.

The same query stands in many pairs and so may the same passage: pairs that share either are not independent. The
standard error is that of two-way clustering [Cameron, Gelbach & Miller, JBES 2011], by leaving out each query and each
passage in turn (:func:`evenrank.probes.two_way_clusters.clustered`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from evenrank.files.json_values import LEFT_OUT
from evenrank.probes.two_way_clusters import Clustered, clustered
from evenrank.stats.compare import LEAST_SAMPLE, Comparison, compare_estimate, too_few, undecidable
from evenrank.stats.estimate import Estimate, MeanEstimate, confidence_interval, p_two_sided

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

DIRECTION, WITH_PLACEBO = 10, 5
"""Passages that a swap has to change in each direction, and of these the placebo."""
CLEAR = 3.0
"""Errors from 0 at which damage shows."""
RATIOS = (0.5, 2.0)
"""How many times as much as its placebo a swap may damage for the two to be compared."""
COLLINEAR = 0.75
"""Where changes of length explain so much (r²) of what is compared, and no placebo says what length does, the two
cannot be told apart."""
_ZERO = 1e-12
UNIT = "pairs"
METHOD = "clustered by query and by passage"
UNLIKE = "the variant and its placebo differ in length; one that changes it as much would tell"
ALIKE = "the wordings differ in length; a placebo whose lengths change as much would tell"


@dataclass(frozen=True, slots=True)
class Changes:
    """Score changes of N query-passage pairs, by a variant and by its placebo.

    Attributes:
        query, passage: The numbers of the pairs' queries and passages [N], from 0.
        own: The change of each score by the variant [N], in sd; NaN where a pair is not compared.
        placebo: By the placebo [N], NaN where it changes nothing; None without one.
        lengths, placebo_lengths: How much longer the texts of the two become [N, L], in words and in word pieces.
    """

    query: Ints
    passage: Ints
    own: Floats
    placebo: Floats | None = None
    lengths: Floats | None = None
    placebo_lengths: Floats | None = None

    def compared(self, signs: Floats | None = None) -> Changes:
        """Those of compared pairs alone; without a placebo if that changes none of them."""
        known = ~np.isnan(self.own) if signs is None else ~np.isnan(self.own) & ~np.isnan(signs)
        placebo = None if self.placebo is None else self.placebo[known]
        if placebo is not None and np.isnan(placebo).all():
            placebo = None
        size = int(known.sum())
        own, other = (
            np.zeros((size, 2)) if lengths is None else lengths[known]
            for lengths in (self.lengths, self.placebo_lengths)
        )
        return Changes(
            _numbered(self.query[known]), _numbered(self.passage[known]), self.own[known], placebo, own, other
        )

    @property
    def nothing(self) -> bool:
        """Whether no score changes."""
        return not (np.abs(self.own) > _ZERO).any()


def _numbered(values: Ints) -> Ints:
    """The values' numbers from 0, without gaps."""
    numbers: Ints = np.unique(values, return_inverse=True)[1]
    return numbers


def size(values: Floats, query: Ints, passage: Ints, signs: Floats | None = None) -> Estimate:
    """The mean of ``values`` [N] of pairs, NaN left out, and its interval; with ``signs`` [N] (1, −1, or NaN to leave a
    pair out) that of sign × value, in which the two directions weigh alike however many pairs each has.

    >>> pairs = np.arange(4)
    >>> size(np.array([1.0, 1.0, 1.0, -3.0]), pairs, pairs, np.array([1.0, 1.0, 1.0, -1.0])).mean
    2.0
    """
    known = ~np.isnan(values) if signs is None else ~np.isnan(values) & ~np.isnan(signs)
    values, query, passage = values[known], _numbered(query[known]), _numbered(passage[known])
    n = len(values)
    if not n:
        return Estimate(None, None, 0, UNIT)
    sign = np.ones(n) if signs is None else signs[known]
    columns = (sign[:, None] == np.unique(sign)[::-1]).astype(np.float64)
    fit = clustered(values, query, passage, columns, part=(sign < 0).astype(np.int64))
    mean = fit.mean(np.unique(sign)[::-1] / columns.shape[1])
    enough = min(int(query.max()), int(passage.max())) > 0 and mean.se
    return Estimate(mean.value, confidence_interval(mean) if enough else None, n, UNIT)


def beyond(changes: Changes, tests: int = 1) -> Comparison:
    """How much more a variant changes scores than its placebo; without a placebo, how much it does.

    With a placebo it is the difference of the two means at equal changes of length, by the slope that the changes by
    the placebo have. The placebo may be known for fewer of the pairs. Tested by Student's t and Hall's with the error
    of :func:`evenrank.probes.two_way_clusters.clustered`. ``tests``: as one of so many.

    Cannot be told: from fewer than 15 queries or 15 passages with a change that is not 0; or where the lengths tell
    variant and placebo apart (r² of .75) and those of the placebo vary too little to say what length does.

    When it misleads: a pair's change must not depend on other pairs' but through the query and the passage they share.

    >>> pairs = np.arange(20)
    >>> own, placebo = np.repeat([1.0, 2.0, 3.0, 6.0], 5), np.repeat([1.0, np.nan, np.nan, 2.0], 5)
    >>> found = beyond(Changes(pairs, pairs, own, placebo))
    >>> round(found.mean, 6), found.verdict
    (1.5, 'shown')
    """
    changes = changes.compared()
    n = len(changes.own)
    if not n:
        return undecidable(None, 0, "no pair is left to compare", UNIT)
    if changes.nothing:
        return _still(n)
    rows = _Rows.of(changes, np.zeros(n, np.int64))
    fit = rows.fit()
    mean = fit.mean(rows.weights(1.0) if changes.placebo is None else rows.weights(1.0, -1.0))
    ci95 = compare_estimate(mean, n, UNIT).ci95
    for units, name in ((changes.query, "queries"), (changes.passage, "passages")):
        number = int(units.max()) + 1
        say = len(np.unique(units[np.abs(changes.own) > _ZERO]))
        if say < LEAST_SAMPLE:
            return undecidable(mean.value, n, too_few(say, number, name, LEAST_SAMPLE), UNIT, ci95)
    if changes.placebo is not None:
        with_placebo = len(np.unique(changes.passage[~np.isnan(changes.placebo)]))
        if with_placebo < WITH_PLACEBO:
            why = f"the placebo changes only {with_placebo} passages, where {WITH_PLACEBO} are needed"
            return undecidable(mean.value, n, why, UNIT, ci95)
        if rows.apart:
            return undecidable(mean.value, n, UNLIKE, UNIT, ci95)
    return compare_estimate(mean, n, UNIT, tests=tests, method=METHOD)


def _still(n: int) -> Comparison:
    """No score changes."""
    return Comparison(0.0, None, n, UNIT, 1.0, mde=0.0, method=METHOD)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The changes by the variant and, where there is one, by the placebo, one below the other [M].

    ``version``: 0 of the variant, 1 of the placebo; ``direction``: 0 or 1; ``slopes``: of each change of length in one
    direction its column [M], and what its slope is learnt from [M]; ``apart``: whether lengths set variant and placebo,
    or the two directions, apart without a slope to say what that does.
    """

    values: Floats
    query: Ints
    passage: Ints
    version: Ints
    direction: Ints
    slopes: tuple[tuple[Floats, Floats], ...]
    apart: bool

    @classmethod
    def of(cls, changes: Changes, direction: Ints) -> _Rows:
        """Of compared pairs in directions [N].

        Slopes are learnt from the placebo, in which nothing but the edit is at stake: where a variant's effect differs
        by word, and words by length, its own slope would be of its effect. Where the placebo's lengths do not vary, or
        not as far as the variant's mean, slopes are those of both; if lengths then explain three quarters (r²) of the
        direction, or without directions of what is variant and what placebo, they are ``apart`` and left out.
        """
        own, placebo = np.arange(len(changes.own)), changes.placebo
        other = own[:0] if placebo is None else np.flatnonzero(~np.isnan(placebo))
        pair = np.concatenate([own, other])
        values = changes.own if placebo is None else np.concatenate([changes.own, placebo[other]])
        version = np.repeat([0, 1], [len(own), len(other)])
        directions = direction[pair]
        slopes, apart = [], False
        # Without a placebo there is nothing to hold length alike with: longer texts may be what the variant is.
        if placebo is not None and changes.lengths is not None and changes.placebo_lengths is not None:
            lengths = _varying(np.concatenate([changes.lengths, changes.placebo_lengths[other]]))
            learnt = True
            for side in np.unique(directions):
                for column in lengths.T:
                    own_side, placebo_side = ((version == v) & (directions == side) for v in (0, 1))
                    slope, reached = _slope(column, own_side, placebo_side)
                    slopes += [] if slope is None else [slope]
                    learnt &= reached
            if not learnt:
                inside = (version == 0) if directions.any() else np.ones(len(pair), bool)
                compared = directions if directions.any() else version
                apart = _explained(compared[inside].astype(np.float64), _varying(lengths[inside])) >= COLLINEAR
        return cls(
            values,
            changes.query[pair],
            changes.passage[pair],
            version,
            directions,
            () if apart else tuple(slopes),
            apart,
        )

    def fit(self) -> Clustered:
        """One intercept for each version and direction, and the slopes."""
        cell = self.version * (int(self.direction.max()) + 1) + self.direction
        intercepts = (cell[:, None] == np.unique(cell)).astype(np.float64)
        of_placebo = self.version == 1
        return clustered(
            self.values,
            self.query,
            self.passage,
            np.column_stack([intercepts, *(column for column, _ in self.slopes)]),
            instruments=np.column_stack([intercepts, *(learnt_from for _, learnt_from in self.slopes)]),
            part=self.direction,
            counted=of_placebo if of_placebo.any() else None,
        )

    def weights(self, *of_cells: float) -> Floats:
        """Weights of the intercepts, in the order of versions and then directions; 0 for the slopes."""
        return np.array([*of_cells, *[0.0] * len(self.slopes)])


def _slope(column: Floats, own: Flags, placebo: Flags) -> tuple[tuple[Floats, Floats] | None, bool]:
    """The slope of a length in one direction, and whether the placebo says what that length does."""
    here, there = column[own], column[placebo]
    if max(np.ptp(here), np.ptp(there)) <= _ZERO:
        return None, abs(here[0] - there[0]) <= _ZERO
    reached = bool(np.ptp(there) > _ZERO and there.min() <= here.mean() <= there.max())
    inside = column * (own | placebo)
    return (inside, inside * placebo if reached else inside), reached


def _varying(lengths: Floats) -> Floats:
    """The columns that vary, in their standard deviations."""
    spread = lengths.std(axis=0)
    columns: Floats = lengths[:, spread > _ZERO] / spread[spread > _ZERO]
    return columns


def _explained(of: Floats, by: Floats) -> float:
    apart = of - of.mean()
    total = float(apart @ apart)
    if not by.shape[1] or total <= _ZERO:
        return 0.0
    by = by - by.mean(axis=0)
    rest = apart - by @ np.linalg.lstsq(by, apart, rcond=None)[0]
    return 1 - float(rest @ rest) / total


# --- a swap -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Swap:
    """Effect of swapping group words, corrected for the damage of any such edit.

    Attributes:
        finding: The preference: above 0 for the first pole.
        direction: Mean change by the swap of passages that it brings towards the first pole, and away from it: a₊, a₋.
        placebo: The same of the placebo, c₊ and c₋; None without one.
        ratio: κ, how many times as much as the placebo the swap damages; None without a placebo.
        passages: How many passages it changes in each direction.
    """

    finding: Comparison = field(metadata=LEFT_OUT)
    direction: tuple[float | None, float | None]
    placebo: tuple[float | None, float | None] | None
    ratio: float | None
    passages: tuple[int, int]


def preference(changes: Changes, signs: Floats, tests: int = 1) -> Swap:
    """The preference for a wording that a swap shows; ``signs`` [N]: 1 where it moves a passage towards the first pole,
    −1 where away from it, NaN where neither. ``tests``: as one of so many.

    A change is damage, which any edit does, plus direction × preference, plus what the change of length does. a₊, a₋
    and the placebo's c₊, c₋ are the intercepts of one fit on the changes of length in words and in word pieces, whose
    slopes are learnt from the placebo. With κ = (a₊ + a₋)/(c₊ + c₋), which is 1 where no damage shows (|c₊ + c₋| within
    3 of its errors),

        preference = ½ [(a₊ − a₋) − κ (c₊ − c₋)].

    Its error is the largest of clustering by passages, by queries, and by both, with κ's part in it (delta method);
    the degrees of freedom are Welch and Satterthwaite's over the passages of the two directions, each of which has its
    own slopes, as its passages may be longer.

    Cannot be told where a direction has fewer than 10 passages, or fewer than 5 with a placebo; from fewer than 15
    queries; where length goes with direction (r² of .75) and the placebo's lengths vary too little to say what it does;
    where the swap damages (|a₊ + a₋| above 3 of its errors) and the placebo does not, or κ is outside .5 to 2 then. No
    difference is shown where no score changes. Without a placebo only a preference that outweighs all damage shows: one
    that raises the score in one direction and lowers it in the other, each at p < .05.

    When it misleads: damage that differs by direction for the swap alone, and not for its placebo, is taken for a
    preference; so is a reaction to length that the swap's words have and the placebo's do not. κ is one number for all
    passages.

    Worked example: a swap changes scores by .2 towards the first pole and by −.6 away from it, the placebo by −.1 and
    −.2: damage is .4 and .3, κ = 4/3, and the preference ½ [.8 − 4/3 · .1] = 1/3.

    >>> pairs = np.arange(40)
    >>> signs, noise = np.repeat([1.0, -1.0], 20), np.tile([-0.1, 0.1], 20)
    >>> own, placebo = np.where(signs > 0, 0.2, -0.6) + noise, np.where(signs > 0, -0.1, -0.2) - noise / 9
    >>> found = preference(Changes(pairs, pairs, own, placebo), signs)
    >>> round(found.ratio, 3), round(found.finding.mean, 3), found.finding.verdict
    (1.333, 0.333, 'shown')
    """
    known = ~np.isnan(changes.own) & ~np.isnan(signs)
    compared = changes.compared(signs)
    direction = (signs[known] < 0).astype(np.int64)
    n = len(direction)
    sides = [np.unique(compared.passage[direction == side]) for side in (0, 1)]
    passages = len(sides[0]), len(sides[1])
    towards = _by_direction(compared.own, direction)
    placebo = None if compared.placebo is None else _by_direction(compared.placebo, direction)
    if not n:
        return Swap(undecidable(None, 0, "no pair is left to compare", UNIT), towards, placebo, None, passages)
    if compared.nothing:
        return Swap(_still(n), towards, placebo, None, passages)
    if not min(passages):
        one_sided = "the swap changes passages in one direction only"
        return Swap(undecidable(None, n, one_sided, UNIT), towards, placebo, None, passages)
    why = _too_few(compared, direction)
    if compared.placebo is None:
        finding = _outweighing(compared, direction, tests)
        finding = finding if why is None else undecidable(finding.mean, n, why, UNIT, finding.ci95)
        return Swap(finding, towards, None, None, passages)
    if None in (placebo or ()):
        why = why or "the placebo changes passages of one direction only"
        return Swap(undecidable(None, n, why, UNIT), towards, placebo, None, passages)
    return replace(_against_placebo(compared, direction, why, tests), passages=passages)


def _by_direction(values: Floats, direction: Ints) -> tuple[float | None, float | None]:
    means = []
    for side in (0, 1):
        own = values[(direction == side) & ~np.isnan(values)]
        means.append(float(own.mean()) if len(own) else None)
    return means[0], means[1]


def _too_few(changes: Changes, direction: Ints) -> str | None:
    """Why there are too few passages or queries."""
    queries = len(np.unique(changes.query))
    if queries < LEAST_SAMPLE:
        return too_few(queries, queries, least=LEAST_SAMPLE)
    known = None if changes.placebo is None else ~np.isnan(changes.placebo)
    for side in (0, 1):
        passages = changes.passage[direction == side]
        number = len(np.unique(passages))
        if number < DIRECTION:
            return f"only {number} passages are swapped in one direction, where {DIRECTION} are needed"
        if known is not None:
            number = len(np.unique(passages[known[direction == side]]))
            if number < WITH_PLACEBO:
                why = f"the placebo changes only {number} of the passages swapped in one direction"
                return f"{why}, where {WITH_PLACEBO} are needed"
    return None


def _against_placebo(changes: Changes, direction: Ints, why: str | None, tests: int) -> Swap:
    rows = _Rows.of(changes, direction)
    fit, n = rows.fit(), len(direction)
    swapped, other = rows.weights(1, 1, 0, 0), rows.weights(0, 0, 1, 1)
    # In errors of the two sums: what the swap damages, and what the placebo does.
    own, placebo = fit.mean(swapped), fit.mean(other)
    damages, shows = _clear(own), _clear(placebo)
    a, c = fit.coefficients[:2], fit.coefficients[2:4]
    ratio = own.value / placebo.value if shows else 1.0
    contrast = c[0] - c[1]
    value = 0.5 * float(a[0] - a[1] - ratio * contrast)
    weights = rows.weights(0.5, -0.5, -0.5 * ratio, 0.5 * ratio)
    if shows:
        weights -= 0.5 * contrast / placebo.value * (swapped - ratio * other)
    mean = fit.mean(weights, value)
    tested = compare_estimate(mean, n, UNIT, tests=tests, method=METHOD)
    if why is None and rows.apart:
        why = ALIKE
    if why is None and damages and not shows:
        why = "the swap damages and its placebo does not"
    if why is None and damages and not RATIOS[0] <= ratio <= RATIOS[1]:
        why = f"the swap damages {ratio:.2g} times as much as its placebo"
    if why is not None:
        tested = undecidable(tested.mean, n, why, UNIT, tested.ci95)
    kappa = None if why is not None and damages and not shows else ratio
    return Swap(tested, (float(a[0]), float(a[1])), (float(c[0]), float(c[1])), kappa, (0, 0))


def _clear(found: MeanEstimate) -> bool:
    return abs(found.value) > CLEAR * found.se + _ZERO


def _outweighing(changes: Changes, direction: Ints, tests: int) -> Comparison:
    """Without a placebo: whether one direction raises scores and the other lowers them."""
    rows = _Rows.of(changes, direction)
    fit, n = rows.fit(), len(direction)
    tested = compare_estimate(fit.mean(rows.weights(0.5, -0.5)), n, UNIT, tests=tests, method=METHOD)
    lengths = np.zeros((n, 0)) if changes.lengths is None else _varying(changes.lengths)
    if _explained(direction.astype(np.float64), lengths) >= COLLINEAR:
        return undecidable(tested.mean, n, ALIKE, UNIT, tested.ci95)
    own = [fit.mean(rows.weights(1, 0)), fit.mean(rows.weights(0, 1))]
    opposite = own[0].value * own[1].value < 0
    p = max(map(p_two_sided, own)) if opposite else 1.0
    return replace(tested, p=p, mde=None)
