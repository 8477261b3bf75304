"""Values of the same passages over the places that the same sentence is moved to.

The sentence is the answer's, and for comparison another one, the seam control: whatever moving a sentence does to a
passage besides the place of the answer (neighbours that are parted, a text that begins with another sentence) it does
as well.

[BERGER82] Berger (1982). Multiparameter Hypothesis Testing and Acceptance Sampling. Technometrics 24(4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.io import Run
from evenrank.measures.inference import (
    BOOTSTRAP_DRAWS,
    EQUAL,
    LEAST,
    Comparison,
    bootstrap_means,
    cluster_means,
    compare,
    corrected,
    estimate,
    interval,
    untold,
)
from evenrank.mitigation.rotation import draw, mixed_seed
from evenrank.probes.sentences import holding, sentence_spans

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Interval = tuple[float, float]
UNIT = "passages"
"""What an interval or a test of this folder counts: a passage, with all its queries."""
_NO_MIDDLE = 2
"""So many places are the ends alone."""
_TWO = 1.157
"""How much larger a difference is that is noticed in 9 of 10 samples than in 8: in 8 of 10, then, by two tests."""
_CHUNK = 4_000_000
"""Values that are compared at once: all candidates of many queries would take gigabytes."""


def compare_passages(values: Floats, passages: Ints) -> Comparison:
    """Whether the mean over ``passages`` [Q], of the means of their values [Q], differs from 0; NaN is left out.

    Where a value of 15 passages or more is known and all are 0 (no score changes), no difference is shown.
    """
    known = ~np.isnan(values)
    # What is left of equal scores is rounding.
    values, passages = np.where(np.abs(values) <= EQUAL, 0.0, values)[known], passages[known]
    if not len(values):
        return untold(None, 0, "no value is defined", UNIT)
    means = cluster_means(values, passages)
    if len(means) >= LEAST and not values.any():
        return Comparison(0.0, None, len(means), UNIT, p=1.0, noticeable=0.0)
    return compare(means, unit=UNIT)


def lowest_to_highest(means: Floats) -> Floats:
    """1 − min/max over the defined means [R, B]: [R]; NaN for fewer than two of them, and if none is positive."""
    low = np.where(np.isnan(means), np.inf, means).min(axis=1)
    high = np.where(np.isnan(means), -np.inf, means).max(axis=1)
    known = (high > 0) & ((~np.isnan(means)).sum(axis=1) > 1)
    return np.where(known, 1 - low / np.where(known, high, 1), np.nan)


CONTRASTS = ("first_last", "ends_middle")


@dataclass(frozen=True, slots=True)
class SensitivityIndex:
    """The Position Sensitivity Index, 1 − min/max of the means over places [PSI], of ``n`` passages.

    ``null``: its mean under no effect, which is above 0 by noise alone; ``p``: how often it is then as large. Both, and
    the interval, are by bootstrap of passages, and None with fewer than 15 of them. No verdict is made of it.
    """

    also: ClassVar = ("unit",)
    unit: ClassVar = UNIT
    mean: float
    ci95: Interval | None
    n: int
    null: float | None
    p: float | None


@dataclass(frozen=True, slots=True)
class PositionCurve:
    """A value as a function of the place of the same sentence in the same passage.

    ``places`` [P]: from 0 (first) to 1 (last); ``means`` [P] over passages, each of its own of the ``n`` queries, with
    ``ci95`` [P]. ``first_last``: first minus last place; ``ends_middle``: mean of these two minus the middle, shown
    only where each of them is by itself, on the same side (``ends``: first and last minus the middle): on a curve that
    only falls, the mean of the ends is not the middle either. All are contrasts within a query.
    ``index``: the Position Sensitivity Index of the means [PSI], which needs values from 0 up.

    The sentence with the answer is moved; for each place beside its own another sentence, the nearest in length, is
    moved there while the answer's stays where it is (the control: it parts neighbours just as well). The difference of
    the two curves is what the place does.

    Queries of one passage are averaged first, so that each passage counts alike. The contrasts are tested over passages
    (:func:`evenrank.measures.inference.compare`), with Holm's correction over three: these two and the index.
    Of ``ends_middle`` p is the larger of the two ends' [BERGER82], 1 where they are on different sides.
    Contrasts and control are ours.

    When it misleads: no move holds fixed which sentences stand beside the answer's. A ranker that sees words across the
    end of a sentence can show an effect without looking at the place: on XQuAD ends − middle is -.24 standard
    deviations for one that counts the query's words in the best window of 64 words, as an answer at an end has fewer
    neighbours. An answer beyond what a ranker
    reads is lost by truncation, which is no preference: where less than 95 % of the words are read nothing is said of
    one.

    Worked example: two queries have .9, .5, .7 and .7, .3, .5 with the sentence first, in the middle and last. The
    means are .8, .4 and .6; first − last is .2, ends − middle .3 and the index 1 − .4/.8.

    >>> import numpy as np
    >>> from evenrank.position.curves import Versions, position_curve
    >>> values = np.array([[0.9, 0.5, 0.7], [0.7, 0.3, 0.5]])
    >>> found = position_curve(Versions(values, np.zeros(2, np.int64), np.eye(3)[None]), level=0.0)
    >>> [round(one.mean, 4) for one in (found.first_last, found.ends_middle)], round(found.index.mean, 4)
    ([0.2, 0.3], 0.5)
    """

    places: Floats
    n: int
    means: Floats
    ci95: tuple[Interval | None, ...]
    first_last: Comparison
    ends_middle: Comparison
    ends: tuple[Comparison, Comparison]
    index: SensitivityIndex | None = None

    def untold(self, why: str) -> PositionCurve:
        """The same figures, of which nothing can be told."""
        first, ends = (untold(one.mean, one.n, why, one.unit) for one in (self.first_last, self.ends_middle))
        index = None if self.index is None else replace(self.index, ci95=None, null=None, p=None)
        return replace(self, first_last=first, ends_middle=ends, index=index)

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        rows = zip(self.places, self.means, self.ci95, strict=True)
        return {
            "queries": self.n,
            "places": [{"place": place, "mean": mean, "ci95": ends} for place, mean, ends in rows],
            **{name: getattr(self, name) for name in CONTRASTS},
            **({} if self.index is None else {"index": self.index}),
        }


def place_weights(others: int, places: int) -> Floats:
    """Which versions make up each place [places, others + 1]: the nearest one, the mean of two that are equally near.

    Version j has the sentence after j of the ``others``; place x of 0 … 1 is nearest to version x · others.

    >>> place_weights(3, 3)
    array([[1. , 0. , 0. , 0. ],
           [0. , 0.5, 0.5, 0. ],
           [0. , 0. , 0. , 1. ]])
    """
    # In whole numbers, as rounding decides between one version and two.
    at = np.arange(places)[:, None] * others * 2
    distance = np.abs(at - 2 * (places - 1) * np.arange(others + 1))
    nearest = (distance == distance.min(axis=1, keepdims=True)).astype(np.float64)
    found: Floats = nearest / nearest.sum(axis=1, keepdims=True)
    return found


def contrast_weights(places: int) -> Floats:
    """The contrasts [4, places]: CONTRASTS, and each end minus the middle; they make means over queries from means over
    places."""
    first, last = np.eye(places)[[0, -1]]
    far = np.abs(2 * np.arange(places) - (places - 1))
    middle = (far == far.min()) / (far == far.min()).sum()
    return np.stack([first - last, (first + last) / 2 - middle, first - middle, last - middle])


def version_shapes(others: Ints, places: int) -> tuple[list[Ints], Ints, Floats]:
    """Which versions are needed for the places, by the number of other sentences [Q], and how they make places.

    The versions needed of each distinct number (a list [S]), the row of each query in it [Q], and the weights
    [S, places, K] of the needed versions, the first ones of K.
    """
    numbers, shape = np.unique(others, return_inverse=True)
    whole = [place_weights(int(number), places) for number in numbers]
    needed = [np.flatnonzero(one.any(axis=0)) for one in whole]
    weights = np.zeros((len(numbers), places, max(map(len, needed), default=0)))
    for row, (one, columns) in enumerate(zip(whole, needed, strict=True)):
        weights[row, :, : len(columns)] = one[:, columns]
    return needed, shape, weights


@dataclass(frozen=True, slots=True)
class Versions:
    """Values of the versions of passages: ``values`` [Q, K], NaN where a passage has fewer; ``shape`` [Q]: the row of
    ``weights`` [S, P, K] that makes places of them."""

    values: Floats
    shape: Ints
    weights: Floats

    def at_places(self) -> Floats:
        """The values at the places [Q, P]; NaN for a query with an undefined value."""
        filled = np.where(self.weights[self.shape].any(axis=1), self.values, 0.0)
        found: Floats = np.einsum("qk,qpk->qp", filled, self.weights[self.shape])
        return found

    def of(self, values: Floats, kept: Ints | slice = slice(None)) -> Versions:
        """Other values of the same versions, of the queries ``kept``."""
        return Versions(values[kept], self.shape[kept], self.weights)


def position_curve(
    versions: Versions, *, level: float | None = None, clusters: Ints | None = None, seed: int = 0
) -> PositionCurve:
    """The curve of the values over places; queries with an undefined value are left out.

    ``clusters`` [Q]: as in :func:`evenrank.position.buckets.by_bucket`. ``level``: what is added to the means before
    the index is computed; None: no index.
    """
    at = versions.at_places()
    known = np.asarray(~np.isnan(at).any(axis=1))
    count = at.shape[1]
    rows, n = np.empty((0, count)), int(known.sum())
    if n:
        rows = cluster_means(at[known], np.arange(n) if clusters is None else clusters[known])
    each = np.arange(len(rows))
    first_last, middle, first, last = (compare_passages(rows @ one, each) for one in contrast_weights(count))
    found = [first_last, _of_both(middle, first, last)]
    if count == _NO_MIDDLE:
        found[1] = untold(None, first_last.n, "two places have no middle", UNIT)
    index = None if level is None else _index(rows, level, seed)
    found = corrected([*found, _index_test(index)])
    means = rows.mean(axis=0) if n else np.full(count, np.nan)
    ends = tuple(estimate(column, unit=UNIT).ci95 for column in rows.T)
    return PositionCurve(np.linspace(0, 1, count), n, means, ends, found[0], found[1], (first, last), index)


def _of_both(mean: Comparison, first: Comparison, last: Comparison) -> Comparison:
    """The ends' ``mean`` minus the middle, shown where both ends are on the same side."""
    if first.p is None or last.p is None:
        return replace(mean, p=None, noticeable=None, why=first.why or last.why)
    same = (first.mean or 0.0) * (last.mean or 0.0) > 0
    noticeable = _TWO * max(first.noticeable or 0.0, last.noticeable or 0.0)
    return replace(mean, p=max(first.p, last.p) if same else 1.0, noticeable=noticeable, why=None)


def _index_test(index: SensitivityIndex | None) -> Comparison:
    """The third test of a curve; where its p is not known it can only make the others stricter."""
    return Comparison(None, None, 0, UNIT, p=1.0 if index is None or index.p is None else index.p)


def _index(rows: Floats, level: float, seed: int) -> SensitivityIndex:
    """The index of the passages' values at places [G, P]; under no effect the means over draws of passages depart as
    far from those found, but from one and the same mean."""
    number = len(rows)
    means = rows.mean(axis=0) if number else np.full(rows.shape[1], np.nan)
    value = float(lowest_to_highest((means + level)[None])[0])
    if number < LEAST or np.isnan(value):
        return SensitivityIndex(value, None, number, None, None)
    draws = bootstrap_means(rows, seed, BOOTSTRAP_DRAWS)
    departures = (draws - means) * np.sqrt(number / (number - 1))
    null = lowest_to_highest(departures + means.mean() + level)
    known = null[~np.isnan(null)]
    p = float((1 + (known >= value - EQUAL).sum()) / (1 + len(known))) if len(known) else None
    ends = interval(lowest_to_highest(draws + level))
    return SensitivityIndex(value, ends, number, float(known.mean()) if len(known) else None, p)


DEPTH = 10


def ranks_and_values(scores: Floats, own: pl.DataFrame, ranked: Run, judged: pl.DataFrame) -> tuple[Floats, Floats]:
    """Ranks [M, K] from 1 and nDCG@10 [M, K] of the versions of M passages with ``scores`` [M, K] (NaN: none).

    ``own``: ``query_id``, ``doc_id`` of the passage that the versions stand in for. nDCG as trec_eval computes it, with
    grades as gains. Both are means over the orders of candidates with equal scores.
    """
    others, gains = _others(own, ranked, judged)
    grade, ideal = _own_grades(own, judged)
    padded = np.concatenate([gains, np.zeros((len(own), 1))], axis=1)
    ranks, values = np.full(scores.shape, np.nan), np.full(scores.shape, np.nan)
    step = max(1, _CHUNK // max(1, scores.shape[1] * others.shape[1]))
    for start in range(0, len(scores), step):
        part = slice(start, start + step)
        of, at = scores[part], others[part]
        before = (at[:, None, :] > of[:, :, None]).sum(axis=2)
        equal = (at[:, None, :] == of[:, :, None]).sum(axis=2)
        known = ~np.isnan(of)
        ranks[part] = np.where(known, 1 + before + equal / 2, np.nan)
        mean = _mean_dcg(padded[part], grade[part], before, equal)
        values[part] = np.where(known, mean / ideal[part][:, None], np.nan)
    return ranks, values


def _mean_dcg(gains: Floats, grade: Floats, before: Ints, equal: Ints) -> Floats:
    """DCG [M, K] of the own passage behind ``before`` others, its mean over the places among ``equal`` others."""
    place = np.arange(1, gains.shape[1] + 1)
    # The last place is that of the own passage behind all others; the discount beyond it is needed for none.
    discount = np.where(place <= DEPTH, 1 / np.log2(1 + place), 0.0)
    shifted = np.append(discount[1:], 0.0)
    none = np.zeros((len(gains), 1))
    kept = np.concatenate([none, np.cumsum(gains * discount, axis=1)[:, :-1]], axis=1)
    pushed = np.cumsum((gains * shifted)[:, ::-1], axis=1)[:, ::-1]
    totals = np.concatenate([none, np.cumsum(grade[:, None] * discount + kept + pushed, axis=1)], axis=1)
    upto = np.take_along_axis(totals, before + equal + 1, axis=1)
    found: Floats = (upto - np.take_along_axis(totals, before, axis=1)) / (equal + 1)
    return found


def _others(own: pl.DataFrame, ranked: Run, judged: pl.DataFrame) -> tuple[Floats, Floats]:
    """Scores (−∞ beyond a query's last) and gains [M, C] of each query's other candidates, best first."""
    numbered = own.select("query_id", pl.col("doc_id").alias("own")).with_row_index("row")
    table = numbered.join(ranked.table, on="query_id", how="inner").filter(pl.col("doc_id") != pl.col("own"))
    gains = judged.select("query_id", "doc_id", pl.col("relevance").clip(0).cast(pl.Float64).alias("gain"))
    table = table.join(gains, on=["query_id", "doc_id"], how="left", maintain_order="left").sort("row", "rank")
    row = table["row"].to_numpy().astype(np.int64)
    count = np.bincount(row, minlength=own.height)
    column = np.arange(len(row)) - (np.cumsum(count) - count)[row]
    size = own.height, int(count.max(initial=0))
    scores, grades = np.full(size, -np.inf), np.zeros(size)
    scores[row, column] = table["score"].to_numpy()
    grades[row, column] = table["gain"].fill_null(0.0).to_numpy()
    return scores, grades


def _own_grades(own: pl.DataFrame, judged: pl.DataFrame) -> tuple[Floats, Floats]:
    """The gain of each own passage [M], and the DCG@10 of the query's ideal order [M]."""
    gains = judged.with_columns(pl.col("relevance").clip(0).cast(pl.Float64).alias("gain"))
    best = gains.sort("gain", descending=True).with_columns(pl.int_range(1, pl.len() + 1).over("query_id").alias("at"))
    best = best.filter(pl.col("at") <= DEPTH)
    discounted = pl.col("gain") / (1 + pl.col("at")).cast(pl.Float64).log(2)
    ideal = best.group_by("query_id").agg(discounted.sum().alias("ideal"))
    table = own.select("query_id", "doc_id").join(ideal, on="query_id", how="left", maintain_order="left")
    table = table.join(gains, on=["query_id", "doc_id"], how="left", maintain_order="left")
    return table["gain"].to_numpy(), table["ideal"].to_numpy()


LEAST_OTHERS = 2
"""With one other sentence, moving that one is moving the answer's, and there is no middle."""


@dataclass(frozen=True, slots=True)
class SentenceMoves:
    """The versions of M passages, each for a query.

    ``rows`` [M]: their rows in the table of answers. ``answer``, ``control`` [M, K]: the text of each version, a row of
    ``texts`` (``doc_id``, ``text``, all distinct), −1 for the passage as it is (at the answer's own place), −2
    beyond a passage's versions; ``shape`` [M], ``weights``: as in :class:`Versions`. ``ends`` [M, K]: where the answer
    ends, in characters.
    """

    rows: Ints
    answer: Ints
    control: Ints
    ends: Ints
    shape: Ints
    weights: Floats
    texts: pl.DataFrame

    def of(self, values: Floats) -> Versions:
        """Values [M, K] of the versions."""
        return Versions(values, self.shape, self.weights)


@dataclass(frozen=True, slots=True)
class _Passage:
    """The sentences of a passage, those of the answer as one unit: its number, where the answer ends in the passage and
    within it, and the key by which ties are drawn."""

    units: list[str]
    own: int
    end: int
    end_within: int
    key: str
    seed: int

    def at(self, place: int) -> str:
        """The passage with the answer's unit at a place among the others."""
        rest = self.units[: self.own] + self.units[self.own + 1 :]
        return " ".join([*rest[:place], self.units[self.own], *rest[place:]])

    def end_at(self, place: int) -> int:
        """Where the answer ends with its unit at a place."""
        rest = self.units[: self.own] + self.units[self.own + 1 :]
        return sum(len(unit) + 1 for unit in rest[:place]) + self.end_within

    def control_at(self, place: int) -> str:
        """The passage with another unit at a place, the answer's where it is and the rest in order."""
        other = self._other(place)
        rest = iter([unit for number, unit in enumerate(self.units) if number not in (self.own, other)])
        fixed = {self.own: self.units[self.own], place: self.units[other]}
        return " ".join(fixed[at] if at in fixed else next(rest) for at in range(len(self.units)))

    def _other(self, place: int) -> int:
        """The unit nearest in words to the answer's that does not stand at the place; of those on the same side of the
        answer, if there are any: it then stays behind as many words as before."""
        others = [number for number in range(len(self.units)) if number not in (self.own, place)]
        beside = [number for number in others if (number < self.own) == (place < self.own)]
        words = len(self.units[self.own].split())
        far = {number: abs(len(self.units[number].split()) - words) for number in beside or others}
        tied = [number for number, distance in far.items() if distance == min(far.values())]
        return tied[draw(self.key, len(tied), mixed_seed(self.seed))]


def _passage(text: str, start: int, end: int, key: str, seed: int) -> _Passage | None:
    """None if there are fewer than LEAST_OTHERS sentences besides the answer's."""
    spans = sentence_spans(text)
    first, last = holding(spans, start, end)
    if len(spans) - (last - first + 1) < LEAST_OTHERS:
        return None
    sentences = [text[begin:stop] for begin, stop in spans]
    held = sentences[first : last + 1]
    units = [*sentences[:first], " ".join(held), *sentences[last + 1 :]]
    within = sum(len(one) + 1 for one in held[:-1]) + end - spans[last][0]
    return _Passage(units, first, end, within, key, seed)


def sentence_moves(table: pl.DataFrame, places: int, seed: int = 0) -> SentenceMoves:
    """The versions needed for so many places, of the rows whose passage has two sentences or more besides the answer's.

    ``table``: ``query_id``, ``doc_id``, ``text``, ``answer_start``, ``answer_end``. To each place but the answer's own
    the control moves the sentence that is nearest in words to the answer's and does not stand there, one of the same
    side of the answer if there is any; the answer's keeps its place. Ties are drawn from ``seed`` and the ids.
    """
    columns = ("query_id", "doc_id", "text", "answer_start", "answer_end")
    found = [
        _passage(text, start, end, f"{query} {doc}", seed)
        for query, doc, text, start, end in table.select(columns).iter_rows()
    ]
    rows = np.array([row for row, one in enumerate(found) if one is not None], np.int64)
    movable = [one for one in found if one is not None]
    needed, shape, weights = version_shapes(np.array([len(one.units) - 1 for one in movable], np.int64), places)
    size = len(rows), weights.shape[2]
    answer, control, ends = np.full(size, -2), np.full(size, -2), np.zeros(size, np.int64)
    texts: dict[str, int] = {}
    for row, (one, number) in enumerate(zip(movable, shape, strict=True)):
        for column, place in enumerate(needed[number].tolist()):
            if place == one.own:
                answer[row, column], control[row, column], ends[row, column] = -1, -1, one.end
                continue
            answer[row, column] = texts.setdefault(one.at(place), len(texts))
            control[row, column] = texts.setdefault(one.control_at(place), len(texts))
            ends[row, column] = one.end_at(place)
    made = pl.DataFrame({"doc_id": [str(number) for number in range(len(texts))], "text": list(texts)})
    return SentenceMoves(rows, answer, control, ends, shape, weights, made.cast(pl.String))
