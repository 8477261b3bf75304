"""Values of the same passages over the places that the same sentence is moved to.

The sentence is the answer's, and for comparison another one, the seam control: whatever moving a sentence does to a
passage besides the place of the answer (neighbours that are parted, a text that begins with another sentence) it does
as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.io import Run
from evenrank.measures.inference import EQUAL, SIGNIFICANT, bootstrap_means, interval
from evenrank.mitigation.rotation import draw, mixed_seed
from evenrank.probes.sentences import holding, sentence_spans

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Interval = tuple[float, float]
PERMUTATIONS = 2000
"""Random shuffles or sign changes of a test."""
_CHUNK = 4_000_000
"""Values that are shuffled at once: all shuffles of many queries would take gigabytes."""


def cluster_ids(clusters: Ints | None, known: NDArray[np.bool_]) -> Ints:
    """Cluster numbers from 0, without gaps, of the ``known`` [Q] queries; None: each query is its own cluster."""
    found = np.arange(int(known.sum())) if clusters is None else clusters[known]
    numbers: Ints = np.unique(found, return_inverse=True)[1]
    return numbers


def chunks(size: int) -> Iterator[int]:
    """PERMUTATIONS in chunks whose arrays of ``size`` values per shuffle fit into memory."""
    chunk = max(1, min(PERMUTATIONS, _CHUNK // max(size, 1)))
    for start in range(0, PERMUTATIONS, chunk):
        yield min(chunk, PERMUTATIONS - start)


def signs(units: int, count: int, rng: np.random.Generator) -> Floats:
    """Random signs [count, units]: what a passage's queries share keeps together."""
    found: Floats = 2 * rng.integers(0, 2, (count, units)).astype(np.float64) - 1
    return found


def errors(residual_sums: Floats, scale: float) -> Floats:
    """Standard errors [R] from the sums of residuals [R, G] of each cluster: √(G/(G−1) Σ sum²) / scale.

    Liang & Zeger 1986, with the factor of Cameron, Gelbach & Miller 2011.
    """
    number = residual_sums.shape[1]
    found: Floats = np.sqrt(number / (number - 1) * (residual_sums**2).sum(axis=1)) / scale
    return found


def ratios(figures: Floats, error: Floats) -> Floats:
    """|figure| / error [R]; 0 for a figure of 0, infinite where there is no error."""
    size = np.abs(figures)
    zero = np.where(size <= EQUAL, 0.0, np.inf)
    found: Floats = np.divide(size, error, out=zero, where=(error > EQUAL) & (size > EQUAL))
    return found


def tested(figure: float, error: float, null: Floats) -> tuple[Interval | None, float | None]:
    """The 95% interval and the two-sided p of a figure, from the ``ratios`` under the null hypothesis [R].

    The interval is figure ± error times that ratio which one null ratio in twenty exceeds, so it leaves out 0 exactly
    where p < .05. None where the figure is undefined, and for an interval without end.
    """
    p = p_of(null, float(ratios(np.array([figure]), np.array([error]))[0]))
    if p is None:
        return None, None
    # p < .05 if fewer than this many null ratios are as large.
    rank = max(1, int(np.ceil(SIGNIFICANT * (len(null) + 1))) - 1)
    # A ratio that equals that one but for rounding counts as equal, as for p.
    half = float(np.partition(null, -rank)[-rank]) * (1 + EQUAL) * error if error > EQUAL else 0.0
    return ((figure - half, figure + half) if np.isfinite(half) else None), p


def p_of(null: Floats, found: float) -> float | None:
    """The share of the ``null`` values, ``found`` among them, that are at least ``found``; None if undefined."""
    null = null[~np.isnan(null)]
    if np.isnan(found) or not len(null):
        return None
    return float((1 + (null >= found - 1e-12).sum()) / (1 + len(null)))


def lowest_to_highest(means: Floats) -> Floats:
    """1 − min/max over the defined means [R, B]: [R]; NaN for fewer than two of them, and if none is positive."""
    low = np.where(np.isnan(means), np.inf, means).min(axis=1)
    high = np.where(np.isnan(means), -np.inf, means).max(axis=1)
    known = (high > 0) & ((~np.isnan(means)).sum(axis=1) > 1)
    return np.where(known, 1 - low / np.where(known, high, 1), np.nan)


def json_number(value: float) -> float | None:
    """A JSON value; None for NaN."""
    return None if np.isnan(value) else float(value)


CONTRASTS = ("first_last", "ends_middle")


@dataclass(frozen=True, slots=True)
class Contrast:
    """A contrast of the places, its mean over queries, with interval and p (None with one passage)."""

    mean: float
    ci95: Interval | None
    p: float | None

    def to_dict(self) -> dict[str, object]:
        """As JSON values; None for NaN."""
        return {"mean": json_number(self.mean), "ci95": list(self.ci95) if self.ci95 else None, "p": self.p}


@dataclass(frozen=True, slots=True)
class SensitivityIndex:
    """The Position Sensitivity Index, 1 − min/max of the means over places [PSI].

    ``null``: its mean under no effect, which is above 0 by noise alone; ``p``: how often it is then as large.
    """

    value: float
    ci95: Interval | None
    null: float
    p: float | None

    def to_dict(self) -> dict[str, object]:
        """As JSON values; None for NaN."""
        ends = list(self.ci95) if self.ci95 else None
        return {"value": json_number(self.value), "ci95": ends, "null": json_number(self.null), "p": self.p}


@dataclass(frozen=True, slots=True)
class PositionCurve:
    """A value as a function of the place of the same sentence in the same passage.

    ``places`` [P]: from 0 (first) to 1 (last); ``means`` [P] over ``n`` queries, with ``ci95`` [P]. ``first_last``:
    first minus last place; ``ends_middle``: mean of these two minus the middle. Both are contrasts within a query.
    ``index``: the Position Sensitivity Index of the means [PSI], which needs values from 0 up.

    The sentence with the answer is moved; beside it another one, the nearest in length, is moved to the same places
    (the control: it parts neighbours just as well), and the difference of the two curves is what the place does.

    p of the contrasts shuffles the places within passages, those of all queries of a passage alike; what is compared is
    the contrast divided by its standard error over passages, so that effects that differ by passage but are 0 on
    average are not taken for one. The interval is made from the same shuffles and leaves out 0 exactly where p < .05. p
    of the index draws the sign of each passage's departures from its own mean. Contrasts, control and tests are ours.

    When it misleads: no move holds fixed which sentences stand beside the answer's. A ranker that sees words across the
    end of a sentence can show an effect without looking at the place: on XQuAD ends − middle is -.08 standard
    deviations for one that counts the query's words in the best window of 64 words. Moving the control moves the
    answer's sentence by one at most, which in passages of three or four sentences is much: the difference then includes
    some of the effect twice. An answer beyond what a ranker reads is lost by truncation, which is no preference; such
    answers are counted.

    Worked example: two queries have .9, .5, .7 and .7, .3, .5 with the sentence first, in the middle and last. The
    means are .8, .4 and .6; first − last is .2, ends − middle .3 and the index 1 − .4/.8.

    >>> import numpy as np
    >>> from evenrank.position.curves import Versions, position_curve
    >>> values = np.array([[0.9, 0.5, 0.7], [0.7, 0.3, 0.5]])
    >>> found = position_curve(Versions(values, np.zeros(2, np.int64), np.eye(3)[None]), level=0.0)
    >>> [round(one.mean, 4) for one in (found.first_last, found.ends_middle)], round(found.index.value, 4)
    ([0.2, 0.3], 0.5)
    """

    places: Floats
    n: int
    means: Floats
    ci95: tuple[Interval | None, ...]
    first_last: Contrast
    ends_middle: Contrast
    index: SensitivityIndex | None = None

    def to_dict(self) -> dict[str, object]:
        """As JSON values; None for NaN."""
        rows = zip(self.places.tolist(), self.means.tolist(), self.ci95, strict=True)
        return {
            "queries": self.n,
            "places": [{"place": p, "mean": json_number(m), "ci95": list(ci) if ci else None} for p, m, ci in rows],
            **{name: getattr(self, name).to_dict() for name in CONTRASTS},
            **({} if self.index is None else {"index": self.index.to_dict()}),
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
    """The contrasts [2, places], as CONTRASTS names them; they make means over queries from means over places."""
    ends = np.zeros(places)
    ends[[0, -1]] = 1, -1
    far = np.abs(2 * np.arange(places) - (places - 1))
    middle = far == far.min()
    return np.stack([ends, np.abs(ends) / 2 - middle / middle.sum()])


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
    places = np.linspace(0, 1, count)
    if not known.any():
        none = Contrast(float("nan"), None, None)
        nothing = np.full(count, np.nan)
        index = None if level is None else SensitivityIndex(float("nan"), None, float("nan"), None)
        return PositionCurve(places, 0, nothing, (None,) * count, none, none, index)
    at, versions = at[known], versions.of(versions.values, np.flatnonzero(known))
    passages = cluster_ids(clusters, known)
    means, weights = at.mean(axis=0), contrast_weights(count)
    figures = weights @ means
    if not passages.any():
        alone = [Contrast(float(figure), None, None) for figure in figures]
        index = None
        if level is not None:
            index = SensitivityIndex(float(lowest_to_highest((means + level)[None])[0]), None, float("nan"), None)
        return PositionCurve(places, len(at), means, (None,) * count, alone[0], alone[1], index)
    draws = bootstrap_means(at, seed, clusters=passages)
    rng = np.random.default_rng(seed)
    null = _null_ratios(versions, passages, weights, rng)
    own = _ratios_of(_by_passage(at, passages)[None], np.bincount(passages), weights)
    found = [
        Contrast(float(figure), *tested(float(figure), float(own[1][0, c]), null[:, c]))
        for c, figure in enumerate(figures)
    ]
    index = None if level is None else _index(at, passages, draws, level, rng)
    ends = tuple(interval(draws[:, place]) for place in range(count))
    return PositionCurve(places, len(at), means, ends, found[0], found[1], index)


def _by_passage(rows: Floats, passages: Ints) -> Floats:
    """Sums [G, ·] of rows [Q, ·] over passages."""
    return np.stack([np.bincount(passages, column) for column in rows.T], axis=1)


def _ratios_of(sums: Floats, sizes: Ints, weights: Floats) -> tuple[Floats, Floats]:
    """Ratios and standard errors [R, C] of contrasts ``weights`` [C, P], from sums of places [R, G, P]."""
    of_passages = sums @ weights.T
    queries = int(sizes.sum())
    means = of_passages.sum(axis=1) / queries
    residuals = of_passages - sizes[:, None] * means[:, None]
    error = np.stack([errors(residuals[..., c], queries) for c in range(len(weights))], axis=1)
    return ratios(means, error), error


def _null_ratios(versions: Versions, passages: Ints, weights: Floats, rng: np.random.Generator) -> Floats:
    """Ratios [PERMUTATIONS, C] of the contrasts with the versions of each passage shuffled.

    All queries of a passage are shuffled alike, so those whose answers have the same places can be added up first.
    """
    shapes = len(versions.weights)
    units, row = np.unique(passages * shapes + versions.shape, return_inverse=True)
    passage, table = units // shapes, versions.weights[units % shapes]
    there = table.any(axis=1)
    sums = _by_passage(np.where(there[row], versions.values, 0.0), row)
    sizes = np.bincount(passages)
    # Places of a passage whose answers have different numbers of places: rows that belong together.
    first = np.searchsorted(passage, np.arange(len(sizes)))
    found = []
    for count in chunks(table.size):
        keys = rng.random((count, len(sizes), sums.shape[1]))[:, passage]
        order = np.argsort(np.where(there, keys, 2.0), axis=2)
        shuffled = np.take_along_axis(np.broadcast_to(sums, order.shape), order, axis=2)
        at = np.einsum("rgk,gpk->rgp", shuffled, table)
        found.append(_ratios_of(np.add.reduceat(at, first, axis=1), sizes, weights)[0])
    return np.concatenate(found)


def _index(at: Floats, passages: Ints, draws: Floats, level: float, rng: np.random.Generator) -> SensitivityIndex:
    """The index of values at places [Q, P]; under no effect the departures of a passage's curve from its mean are as
    likely to be the other way round: their signs are drawn, passage by passage."""
    means = at.mean(axis=0)
    value = float(lowest_to_highest((means + level)[None])[0])
    departures = _by_passage(at - at.mean(axis=1, keepdims=True), passages) / len(at)
    drawn = [signs(len(departures), count, rng) @ departures for count in chunks(len(departures))]
    null = lowest_to_highest(np.concatenate(drawn) + means.mean() + level)
    return SensitivityIndex(
        value,
        interval(lowest_to_highest(draws + level)),
        float(np.nanmean(null)) if not np.isnan(null).all() else float("nan"),
        p_of(null, value),
    )


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
    ``texts`` (``doc_id``, ``text``, all distinct), −1 for the passage as it is; ``shape`` [M], ``weights``: as in
    :class:`Versions`, and beyond a passage's versions −2. ``ends`` [M, K]: where the answer ends, in characters.
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
    """The sentences of a passage, those of the answer as one unit: its number, where the answer ends within it, and
    the number of the control."""

    text: str
    units: list[str]
    own: int
    end: int
    end_within: int
    other: int

    def at(self, number: int, place: int) -> str:
        """The passage with a unit at a place among the others."""
        rest = self.units[:number] + self.units[number + 1 :]
        return " ".join([*rest[:place], self.units[number], *rest[place:]])

    def end_at(self, place: int) -> int:
        """Where the answer ends with its unit at a place."""
        rest = self.units[: self.own] + self.units[self.own + 1 :]
        return sum(len(unit) + 1 for unit in rest[:place]) + self.end_within


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
    words = [len(unit.split()) for unit in units]
    distance = {number: abs(count - words[first]) for number, count in enumerate(words) if number != first}
    tied = [number for number, far in distance.items() if far == min(distance.values())]
    return _Passage(text, units, first, end, within, tied[draw(key, len(tied), mixed_seed(seed))])


def sentence_moves(table: pl.DataFrame, places: int, seed: int = 0) -> SentenceMoves:
    """The versions needed for so many places, of the rows whose passage has two sentences or more besides the answer's.

    ``table``: ``query_id``, ``doc_id``, ``text``, ``answer_start``, ``answer_end``. The control is the sentence that is
    nearest in words to the answer's; ties are drawn from ``seed`` and the ids.
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
            for side, unit in ((answer, one.own), (control, one.other)):
                side[row, column] = -1 if unit == place else texts.setdefault(one.at(unit, place), len(texts))
            ends[row, column] = one.end if one.own == place else one.end_at(place)
    made = pl.DataFrame({"doc_id": [str(number) for number in range(len(texts))], "text": list(texts)})
    return SentenceMoves(rows, answer, control, ends, shape, weights, made.cast(pl.String))
