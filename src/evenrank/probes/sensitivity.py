"""Position sensitivity of a ranker: the call, its findings, its page.

A sentence of the passage is moved from place to place: the answer's, and for comparison another one, the seam control.
Whatever moving a sentence does to a passage besides the place of the answer (neighbours that are parted, a text that
begins with another sentence) it does as well.

[BERGER82] Berger (1982). Multiparameter Hypothesis Testing and Acceptance Sampling. Technometrics 24(4).
"""

from __future__ import annotations

import functools
import math
import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank import options as opt
from evenrank.files import EvenrankError, Provenance, Run, arg, as_collection, as_qrels, as_queries, as_run, read_texts
from evenrank.files.arguments import checked
from evenrank.files.json_values import named
from evenrank.files.progress import progress
from evenrank.files.sentences import sentence_spans
from evenrank.files.squad import answer_table, load_squad
from evenrank.files.squad_collection import squad_collection
from evenrank.files.types import EQUAL, Array
from evenrank.files.wording import counted
from evenrank.measures import Evaluation, parse_measure
from evenrank.mitigation.rotation import draw, mixed_seed
from evenrank.models.load import load_ranker
from evenrank.results.finding import Finding, Place, phrases
from evenrank.results.page import COLOURS, Drawing, Page, Section, specification
from evenrank.results.result import Result
from evenrank.results.table import COUNT, Column, Table, digits, intervals, number, p_value, short_intervals, shorts
from evenrank.stats.clusters import cluster_means
from evenrank.stats.compare import LEAST_SAMPLE, Comparison, compare, corrected, intersection_union, undecidable
from evenrank.stats.estimate import Estimate, estimate

from .sentences import first_answers, holding, locate

if TYPE_CHECKING:
    from evenrank.models.load import RankerLike
    from evenrank.models.scorers import Scorer

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Interval = tuple[float, float]
UNIT = "passages"
"""What an interval or a test of this folder counts: a passage, with all its queries."""
_NO_MIDDLE = 2
"""So many places are the ends alone."""


def compare_passages(values: Floats, passages: Ints) -> Comparison:
    """Whether the mean over ``passages`` [Q], of the means of their values [Q], differs from 0; NaN is left out.

    Where a value of 15 passages or more is known and all are 0 (no score changes), no difference is shown.
    """
    known = ~np.isnan(values)
    # What is left of equal scores is rounding.
    values, passages = np.where(np.abs(values) <= EQUAL, 0.0, values)[known], passages[known]
    if not len(values):
        return undecidable(None, 0, "no value is defined", UNIT)
    means = cluster_means(values, passages)
    if len(means) >= LEAST_SAMPLE and not values.any():
        return Comparison(0.0, None, len(means), UNIT, p=1.0, mde=0.0)
    return compare(means, unit=UNIT)


CONTRASTS = ("first_last", "ends_middle")


@dataclass(frozen=True, slots=True)
class PositionCurve:
    """A value as a function of the place of the same sentence in the same passage.

    ``places`` [P]: from 0 (first) to 1 (last); ``means`` [P] over passages, each of its own of the ``n`` queries, with
    ``ci95`` [P]. ``first_last``: first minus last place; ``ends_middle``: mean of these two minus the middle, shown
    only where each of them is by itself, on the same side (``ends``: first and last minus the middle): on a curve that
    only falls, the mean of the ends is not the middle either. All are contrasts within a query.

    The sentence with the answer is moved; for each place beside its own another sentence, the nearest in length, is
    moved there while the answer's stays where it is (the control: it parts neighbours just as well). The difference of
    the two curves is what the place does.

    Queries of one passage are averaged first, so that each passage counts alike. The contrasts are tested over passages
    (:func:`evenrank.stats.compare.compare`), with Holm's correction over the two.
    Of ``ends_middle`` p is the larger of the two ends' [BERGER82], 1 where they are on different sides.
    Contrasts and control are ours.

    When it misleads: no move holds fixed which sentences stand beside the answer's. A ranker that sees words across the
    end of a sentence can show an effect without looking at the place: on XQuAD ends − middle is -.24 standard
    deviations for one that counts the query's words in the best window of 64 words, as an answer at an end has fewer
    neighbours. An answer beyond what a ranker
    reads is lost by truncation, which is no preference: where less than 95 % of the words are read nothing is said of
    one.

    Worked example: two queries have .9, .5, .7 and .7, .3, .5 with the sentence first, in the middle and last. The
    means are .8, .4 and .6; first − last is .2 and ends − middle .3.

    >>> import numpy as np
    >>> from evenrank.probes.sensitivity import Versions, position_curve
    >>> values = np.array([[0.9, 0.5, 0.7], [0.7, 0.3, 0.5]])
    >>> found = position_curve(Versions(values, np.zeros(2, np.int64), np.eye(3)[None]))
    >>> [round(one.mean, 4) for one in (found.first_last, found.ends_middle)]
    [0.2, 0.3]
    """

    places: Floats
    n: int
    means: Floats
    ci95: tuple[Interval | None, ...]
    first_last: Comparison
    ends_middle: Comparison
    ends: tuple[Comparison, Comparison]

    def without_verdict(self, why: str) -> PositionCurve:
        """The same figures, of which nothing can be told."""
        first, ends = (undecidable(one.mean, one.n, why, one.unit) for one in (self.first_last, self.ends_middle))
        return replace(self, first_last=first, ends_middle=ends)

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        rows = zip(self.places, self.means, self.ci95, strict=True)
        return {
            "queries": self.n,
            "places": [{"place": place, "mean": mean, "ci95": ends} for place, mean, ends in rows],
            **{name: getattr(self, name) for name in CONTRASTS},
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


def position_curve(versions: Versions, *, clusters: Ints | None = None) -> PositionCurve:
    """The curve of the values over places; queries with an undefined value are left out.

    ``clusters`` [Q], whole numbers: the passage of each query (None: each has its own).
    """
    at = versions.at_places()
    known = np.asarray(~np.isnan(at).any(axis=1))
    count = at.shape[1]
    rows, n = np.empty((0, count)), int(known.sum())
    if n:
        rows = cluster_means(at[known], np.arange(n) if clusters is None else clusters[known])
    each = np.arange(len(rows))
    first_last, middle, first, last = (compare_passages(rows @ weight, each) for weight in contrast_weights(count))
    found = [first_last, _of_both(middle, first, last)]
    if count == _NO_MIDDLE:
        found[1] = undecidable(None, first_last.n, "two places have no middle", UNIT)
    found = corrected(found)
    means = rows.mean(axis=0) if n else np.full(count, np.nan)
    ends = tuple(estimate(column, unit=UNIT).ci95 for column in rows.T)
    return PositionCurve(np.linspace(0, 1, count), n, means, ends, found[0], found[1], (first, last))


def _of_both(mean: Comparison, first: Comparison, last: Comparison) -> Comparison:
    """The ends' ``mean`` minus the middle, shown where both ends are on the same side."""
    of = intersection_union(first, last)
    return replace(mean, p=of.p, mde=of.mde, reason=of.reason)


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
    for row, (one, form) in enumerate(zip(movable, shape, strict=True)):
        for column, place in enumerate(needed[form].tolist()):
            if place == one.own:
                answer[row, column], control[row, column], ends[row, column] = -1, -1, one.end
                continue
            answer[row, column] = texts.setdefault(one.at(place), len(texts))
            control[row, column] = texts.setdefault(one.control_at(place), len(texts))
            ends[row, column] = one.end_at(place)
    made = pl.DataFrame({"doc_id": [str(number) for number in range(len(texts))], "text": list(texts)})
    return SentenceMoves(rows, answer, control, ends, shape, weights, made.cast(pl.String))


__all__ = ["SensitivityResult", "position_sensitivity"]

Collection = str | os.PathLike[str] | pl.DataFrame


@dataclass(frozen=True, slots=True)
class Sources:
    """What is measured on: queries (``query_id``, ``text``), judgements, answer spans, the collection, and notes."""

    queries: pl.DataFrame
    qrels: pl.DataFrame
    spans: pl.DataFrame
    collection: Collection
    notes: tuple[str, ...]

    def texts(self, ids: pl.Series) -> pl.DataFrame:
        """The passages ``ids`` of the collection: ``doc_id``, ``text``."""
        if isinstance(self.collection, pl.DataFrame):
            return self.collection.filter(pl.col("doc_id").is_in(ids.implode()))
        return read_texts(self.collection, ids.unique())

    def restricted_to(self, table: pl.DataFrame) -> Sources:
        """The same for the queries of ``table`` only."""
        return replace(
            self,
            queries=self.queries.join(table, on="query_id", how="semi", maintain_order="left"),
            qrels=self.qrels.join(table, on="query_id", how="semi", maintain_order="left"),
        )


def read_sources(
    squad: str | os.PathLike[str] | None,
    collection: object,
    queries: object,
    qrels: object,
    answers: str | os.PathLike[str] | pl.DataFrame | None,
) -> Sources:
    """The sources, from one SQuAD file or from one source each. Raises EvenrankError if some are missing."""
    others = {"collection": collection, "queries": queries, "qrels": qrels, "answers": answers}
    if squad is not None:
        # With one split no question is left out.
        made = squad_collection([squad], shares=(1, 0, 0))
        asked = made.queries.select("query_id", "text")
        return Sources(asked, made.qrels, answer_table(made.squad), made.collection, made.notes)
    lacking = [arg(name) for name, one in others.items() if one is None]
    if lacking or answers is None:
        raise EvenrankError(f"expected {arg.squad}, or also {', '.join(lacking)}")
    asked, judged, texts = as_queries(queries), as_qrels(qrels), as_collection(collection)
    if isinstance(answers, pl.DataFrame):
        return Sources(asked, judged, answers, texts, ())
    found = load_squad(answers)
    notes = tuple(f"{found.path}: {note}" for note in found.alignment.notes())
    return Sources(asked, judged, found.answers(), texts, notes)


def locate_answers(sources: Sources) -> tuple[pl.DataFrame, Sources]:
    """The first answer of each query in a relevant passage and its position there; and the sources with more notes.

    One row per query, in the order of the queries, with the columns of
    :func:`evenrank.probes.sentences.locate`. Answers that are not in the collection's text are left out. Raises
    EvenrankError if no answer is left or a passage is missing.
    """
    relevant = sources.qrels.filter(pl.col("relevance") >= 1).select("query_id", "doc_id")
    spans = sources.spans.join(relevant, on=["query_id", "doc_id"], how="semi", maintain_order="left")
    found = first_answers(spans)
    first = sources.queries.select("query_id").join(found, on="query_id", how="inner", maintain_order="left")
    if not first.height:
        raise EvenrankError("no query has an answer in a relevant passage")
    where = "" if isinstance(sources.collection, pl.DataFrame) else f" {os.fspath(sources.collection)}"
    table, alignment = locate(first, sources.texts(first["doc_id"]), f"the collection{where}")
    notes = (*sources.notes, *(f"In the collection: {note}" for note in alignment.notes()))
    return table, replace(sources, notes=notes)


def with_rivals(table: pl.DataFrame, candidates: Run, judged: pl.DataFrame, depth: int) -> pl.DataFrame:
    """The rows whose queries have candidates other than their relevant passages, which else would always be first."""
    relevant = judged.filter(pl.col("relevance") >= 1)
    rivals = candidates.table.filter(pl.col("rank") <= depth).join(relevant, on=["query_id", "doc_id"], how="anti")
    found = table.join(rivals, on="query_id", how="semi", maintain_order="left")
    if not found.height:
        raise EvenrankError(
            f"run {candidates.name}: no query with an answer has a candidate other than its own passages"
        )
    return found


def passage_ids(table: pl.DataFrame) -> NDArray[np.int64]:
    """The number of each row's passage [rows]: queries of one passage are not independent."""
    return table["doc_id"].rank("dense").to_numpy().astype(np.int64) - 1


MEASURE = "nDCG@10"


@dataclass(frozen=True, slots=True)
class Curves:
    """A curve of the answer's sentence, that of the control, and answer − control, paired within queries."""

    answer: PositionCurve
    control: PositionCurve
    difference: PositionCurve

    def without_verdict(self, why: str) -> Curves:
        """The same figures, of which nothing can be told."""
        return Curves(
            self.answer.without_verdict(why), self.control.without_verdict(why), self.difference.without_verdict(why)
        )


@dataclass(frozen=True, slots=True)
class MovedAnswers:
    """The same passages with the answer's sentence moved, beside the moves of another sentence (the control).

    ``score``: change from the passage as it is, in standard deviations of the query's candidates. ``kept``: the score
    where the answer is read whole at every place. ``early``, ``late``: what moving the sentence first and last does to
    the score beyond the control's move, where the sentence stands elsewhere. ``cut`` [P]: queries whose answer extends
    beyond what the ranker reads (None: unknown). ``queries`` that were moved, of so many ``passages``; ``left`` out,
    for fewer than two other sentences; ``unvaried``: queries whose candidates all have one score, without a value of
    ``score``. ``read``: the share of the passages' words that the ranker reads (None: unknown); below .95 nothing is
    told of a preference.
    """

    score: Curves
    kept: Curves = field(metadata=named("kept_score"))
    early: Estimate
    late: Estimate
    cut: Ints | None
    queries: int
    passages: int
    left: int
    unvaried: int
    read: float | None = None

    def without_verdict(self, why: str) -> MovedAnswers:
        """The same figures, of which nothing can be told."""
        early, late = (Estimate(one.mean, None, one.n, UNIT) for one in (self.early, self.late))
        score, kept = self.score.without_verdict(why), self.kept.without_verdict(why)
        return replace(self, score=score, kept=kept, early=early, late=late)


@dataclass(frozen=True, slots=True, repr=False)
class SensitivityResult(Result):
    """The result of :func:`evenrank.position_sensitivity`.

    ``value``: mean effectiveness; ``moved``: the same passages with their answers moved, None where no answer can be
    moved. ``cut``: answers that the ranker does not read to the end in the original passage (None: unknown).
    ``added``: relevant passages added to the candidates; ``without_candidates``: queries left out for lack of other
    candidates; ``unmovable``: queries whose passage has fewer than two sentences besides the answer's;
    ``sampled_from``: the number of queries that the sample was drawn from (None: no sample).
    """

    name: str
    queries: int
    passages: int
    without_answer: int
    value: float = field(metadata=named("mean"))
    moved: MovedAnswers | None
    cut: int | None
    settings: Mapping[str, object]
    added: int = 0
    without_candidates: int = 0
    unmovable: int = 0
    sampled_from: int | None = None
    notes: tuple[str, ...] = ()

    def _beside(self) -> Mapping[str, object]:
        return {"measure": MEASURE, "unit": "passage"}

    def page(self) -> Page:
        """What was found, its figures and its charts."""
        return sensitivity_page(self)


_READ = 256
"""Texts whose reading ends are reported at once."""
ENOUGH = 0.95
"""Where less of the words is read, places differ by what is cut off."""
_WORD = re.compile(r"\S+")


def words_read(texts: pl.Series, reads: Array) -> float:
    """The share of the words of texts [N] that end within the characters ``reads`` [N] of each."""
    ends = [[found.end() for found in _WORD.finditer(text)] for text in texts.to_list()]
    read = sum(bisect_right(one, int(to)) for one, to in zip(ends, reads, strict=True))
    return read / max(1, sum(map(len, ends)))


AGAIN = " (evenrank passages COLLECTION --model MODEL --answers SQUAD.json --out FOLDER)"
"""The command that cuts passages, with their answers."""


def too_little_read(read: float | None, passages: int, tokens: object) -> str | None:
    """Why nothing can be told of a ranker that reads such a share of the words; None where it can.

    ``tokens``: how many of a passage's the ranker reads, None where that is unknown.
    """
    if read is None or read >= ENOUGH:
        return None
    first = f"the {tokens:,} tokens that the model reads" if isinstance(tokens, int) else "what the model reads"
    # Rounded down: what is below the limit must not look as if it reached it.
    return (
        f"{math.floor(100 * read)}% of the words of {counted(passages, 'passage')} are read;"
        f" cut passages to {first} and try again{AGAIN}"
    )


class Reader:
    """The characters of texts that a model reads, given their queries."""

    def __init__(self, scorer: Scorer, asked: pl.DataFrame, quiet: bool) -> None:
        self.scorer, self.asked, self.quiet = scorer, asked, quiet

    def __call__(self, query_ids: pl.Series, texts: pl.Series) -> Array | None:
        """Characters read of each text, given its query [pairs]; None if unknown."""
        table = pl.DataFrame({"query_id": query_ids})
        queries = table.join(self.asked, on="query_id", how="left", maintain_order="left")["text"].to_list()
        ends: list[int] = []
        with progress("how far texts are read", len(texts), quiet=self.quiet) as advance:
            for start in range(0, len(texts), _READ):
                part = texts[start : start + _READ].to_list()
                read = self.scorer.reads_to(queries[start : start + _READ], part)
                if read is None:
                    return None
                ends += read
                advance(len(part))
        return np.array(ends)


def moved_answers(
    reader: Reader,
    table: pl.DataFrame,
    ranked: Run,
    places: int,
    batch_size: int,
    seed: int,
) -> MovedAnswers | None:
    """The answers of ``table`` moved; None if none can be.

    ``ranked``: the candidates of the queries, ranked by the model, the passages themselves among them.
    """
    moves = sentence_moves(table, places, seed)
    if not len(moves.rows):
        return None
    moved = table[moves.rows]
    clusters = passage_ids(moved)
    own = moved.select("query_id", "doc_id").join(
        ranked.table, on=["query_id", "doc_id"], how="left", maintain_order="left"
    )
    before = own["score"].to_numpy()
    answer, control = _scores(reader, moves, moved, before, batch_size)
    sd = _spread(ranked, own)
    sides = [(one - before[:, None]) / sd[:, None] for one in (answer, control)]
    lost, read = _lost(reader, moves, moved)
    whole = np.flatnonzero(~lost.any(axis=1)) if lost is not None else np.arange(len(moves.rows))

    def curves(rows: Ints | slice) -> Curves:
        def curve(values: Floats) -> PositionCurve:
            return position_curve(moves.of(values).of(values, rows), clusters=clusters[rows])

        return Curves(curve(sides[0]), curve(sides[1]), curve(sides[0] - sides[1]))

    ends = (0, np.array([int(np.flatnonzero(weight.any(axis=0))[-1]) for weight in moves.weights])[moves.shape])
    early, late = (_beyond_control(moves, sides, column, clusters) for column in ends)
    found = MovedAnswers(
        curves(slice(None)),
        curves(whole),
        early,
        late,
        None if lost is None else lost.sum(axis=0),
        len(moves.rows),
        int(clusters.max()) + 1,
        table.height - len(moves.rows),
        int(np.isnan(sd).sum()),
        read,
    )
    why = too_little_read(read, found.passages, reader.scorer.facts().get("reads"))
    return found if why is None else found.without_verdict(why)


def _spread(ranked: Run, own: pl.DataFrame) -> Floats:
    """The standard deviation of the scores of each query's candidates [M]; NaN where they do not vary."""
    spreads = ranked.table.group_by("query_id").agg(pl.col("score").std(ddof=0).alias("sd"))
    sd = own.join(spreads, on="query_id", how="left", maintain_order="left")["sd"].to_numpy()
    return np.where(sd > 0, sd, np.nan)


def _scores(
    reader: Reader, moves: SentenceMoves, moved: pl.DataFrame, before: Floats, batch_size: int
) -> tuple[Floats, Floats]:
    """Scores [M, K] of the answer's and of the control's versions; NaN beyond a passage's versions."""
    from evenrank.models.rerank import rerank

    both = np.concatenate([moves.answer, moves.control], axis=1)
    rows, columns = np.nonzero(both >= 0)
    pairs = pl.DataFrame({"query_id": moved["query_id"].gather(rows), "doc_id": both[rows, columns].astype(str)})
    run = Run.from_table(pairs.unique(maintain_order=True).with_columns(pl.lit(0.0).alias("score")), "moved")
    depth = int(run.table["rank"].to_numpy().max())
    scored = rerank(
        run,
        model=reader.scorer,
        collection=moves.texts,
        queries=reader.asked,
        depth=depth,
        batch_size=batch_size,
        quiet=reader.quiet,
    )
    found = pairs.join(scored.table, on=["query_id", "doc_id"], how="left", maintain_order="left")
    # The passage as it is has its score among the candidates.
    scores = np.where(both == -1, before[:, None], np.nan)
    scores[rows, columns] = found["score"].to_numpy()
    size = moves.answer.shape[1]
    return scores[:, :size], scores[:, size:]


def _lost(reader: Reader, moves: SentenceMoves, moved: pl.DataFrame) -> tuple[Array | None, float | None]:
    """Whether the model does not read the answer to its end, at each place [M, P]; and the share of the words that it
    reads, over all versions. None if unknown."""
    rows, columns = np.nonzero(moves.answer != -2)
    number = moves.answer[rows, columns]
    texts = pl.concat([moves.texts["text"], moved["text"]])
    of = np.where(number >= 0, number, len(moves.texts) + rows)
    read = texts.gather(of)
    reads = reader(moved["query_id"].gather(rows), read)
    if reads is None:
        return None, None
    lost = np.zeros(moves.answer.shape, bool)
    lost[rows, columns] = moves.ends[rows, columns] > reads
    at = np.asarray((lost[:, None, :] & (moves.weights[moves.shape] > 0)).any(axis=2))
    return at, words_read(read, reads)


def _beyond_control(moves: SentenceMoves, sides: list[Floats], column: int | Ints, clusters: Ints) -> Estimate:
    """What moving the answer's sentence to one place does beyond moving the control there, where it does move."""
    rows = np.arange(len(moves.rows))
    values = sides[0][rows, column] - sides[1][rows, column]
    kept = (moves.answer[rows, column] != -1) & ~np.isnan(values)
    return estimate(cluster_means(values[kept], clusters[kept]) if kept.any() else np.empty(0), unit=UNIT)


@checked
def position_sensitivity(
    model: RankerLike,
    *,
    squad: Annotated[
        opt.File | None,
        opt.Option(
            "Passages, questions and answers from one SQuAD file.",
            metavar="SQUAD.json",
            reads=True,
            excludes=("collection", "queries", "qrels", "answers"),
        ),
    ] = None,
    collection: opt.MaybeCollection = None,
    queries: opt.MaybeQueries = None,
    qrels: Annotated[object, opt.Option("Relevance judgements.", reads=True)] = None,
    answers: Annotated[
        opt.File | pl.DataFrame | None,
        opt.Option("Answers, with the ids of queries and documents.", metavar="SQUAD.json", reads=True),
    ] = None,
    run: Annotated[object, opt.Option("Candidates (default: BM25).", reads=True)] = None,
    depth: Annotated[int, opt.Option("Candidates per query.", range=opt.COUNT, panel="Input", rare=True)] = 100,
    places: Annotated[
        int,
        opt.Option(
            "Places to move the answer's sentence to (first, last, between).",
            range=opt.Range(2, 10_000),
            panel="Statistics",
        ),
    ] = 5,
    sample: Annotated[
        int | None, opt.Option("Number of queries, sampled with --seed.", range=opt.COUNT, panel="Statistics")
    ] = None,
    batch_size: opt.BatchSize = 32,
    kind: opt.Kind = None,
    query_prompt: opt.QueryPrompt = None,
    document_prompt: opt.DocumentPrompt = None,
    device: opt.Device = None,
    seed: Annotated[
        int, opt.Option("Seed of the sample and of ties.", range=opt.SEED, panel="Statistics", rare=True)
    ] = 0,
    quiet: bool = True,
) -> SensitivityResult:
    """Measure a passage's score as its answer's sentence moves.

    ``model``: any ranker that ``evenrank rerank`` takes, with its ``kind`` and prompts. The sentence (or sentences)
    with the answer is moved, whole, to ``places`` places from the first to the last, and for comparison another
    sentence of the passage, the nearest in length; passages with fewer than two sentences besides the answer's are left
    out of this. ``squad``: a SQuAD file (read once) that replaces the next four. ``collection``, ``queries``, ``qrels``
    and ``run``: paths, dicts or frames, as in :func:`evenrank.audit`. ``answers``: a SQuAD file, or a frame with
    ``query_id``, ``doc_id``, ``answer_start``, ``answer_end``, and ``answer`` to search for answers whose span does not
    match; a query's first answer in a relevant passage counts. ``run``: the candidates (default: BM25's first
    ``depth``); relevant passages are added to them, but queries without any other candidate are left out (their passage
    would always be first).
    ``sample``: the number of queries, drawn with ``seed`` from those with an answer; up to 2 · ``places`` texts are
    scored per query.

    Raises EvenrankError for a setting out of range, and if no query has an answer in a relevant passage or other
    candidates.
    """
    given = {"squad": squad, "collection": collection, "queries": queries, "qrels": qrels, "answers": answers}
    made = Provenance("evenrank.position_sensitivity")
    if isinstance(model, str | os.PathLike):
        made.add_model("model", model)
    else:
        from evenrank.models.endpoints import shown_address

        address = shown_address(model)
        made.name("model", address or type(model).__name__, "asked over HTTP" if address else "in memory")
    for role, source in (given | {"run": run}).items():
        made.add(role, source)
    made.ahead()
    table, sources = locate_answers(read_sources(squad, collection, queries, qrels, answers))
    candidates = None if run is None else as_run(run)
    drawn = _draw(table, sources, candidates, depth=depth, sample=sample, seed=seed, quiet=quiet)
    table, candidates, asked, judged = drawn.table, drawn.candidates, drawn.sources.queries, drawn.sources.qrels
    options: dict[str, Any] = {"batch_size": batch_size, "quiet": quiet}
    scorer = load_ranker(model, kind=kind, device=device, query_prompt=query_prompt, document_prompt=document_prompt)
    ranked, added = _ranked(scorer, candidates, sources.collection, asked, judged, depth, options)
    table = _with_values(table, ranked, judged)
    reader = Reader(scorer, asked, quiet)
    reads = reader(table["query_id"], table["text"])
    cut = None if reads is None else int((table["answer_end"].to_numpy() > reads).sum())
    moved = moved_answers(reader, table, ranked, places, batch_size, seed)
    inputs = {
        name: os.fspath(one) for name, one in (given | {"run": run}).items() if isinstance(one, str | os.PathLike)
    }
    return SensitivityResult(
        ranked.name,
        table.height,
        table["doc_id"].n_unique(),
        drawn.without_answer,
        float(np.nanmean(table["value"].to_numpy())),
        moved,
        cut,
        {
            "model": os.fspath(model) if isinstance(model, str | os.PathLike) else scorer.name,
            "ranker": scorer.facts(),
            **inputs,
            "depth": depth,
            "places": places,
            "sample": sample,
            "seed": seed,
        },
        added=added,
        without_candidates=drawn.without_candidates,
        unmovable=table.height if moved is None else moved.left,
        sampled_from=drawn.sampled_from,
        notes=sources.notes,
        provenance=made,
    )


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The queries that are measured, their sources and candidates, and how many were left out."""

    table: pl.DataFrame
    sources: Sources
    candidates: Run
    without_answer: int
    without_candidates: int
    sampled_from: int | None


def _draw(
    located: pl.DataFrame,
    sources: Sources,
    candidates: Run | None,
    *,
    depth: int,
    sample: int | None,
    seed: int,
    quiet: bool,
) -> _Drawn:
    """The sample of the queries with located answers, and their candidates (None: BM25's first ``depth``)."""
    judged = sources.qrels
    table = located if candidates is None else with_rivals(located, candidates, judged, depth)
    sampled_from = None if sample is None or sample >= table.height else table.height
    if sampled_from is not None:
        # In the order of the queries, as without a sample.
        table = table.with_row_index("row").sample(sample, seed=seed).sort("row").drop("row")
    dropped = located.height - (sampled_from or table.height)
    without_answer = sources.queries.height - located.height
    sources = sources.restricted_to(table)
    if candidates is None:
        from evenrank.search.indexes import retrieve

        candidates = retrieve(sources.collection, sources.queries, k=depth, quiet=quiet)
        found = with_rivals(table, candidates, sources.qrels, depth)
        table, dropped = found, dropped + table.height - found.height
    return _Drawn(table, sources, candidates, without_answer, dropped, sampled_from)


def _with_values(table: pl.DataFrame, ranked: Run, judged: pl.DataFrame) -> pl.DataFrame:
    """The rows of the judged queries with their ``value`` of MEASURE."""
    evaluation = Evaluation(ranked, qrels=judged)
    values = pl.DataFrame({"query_id": evaluation.judged, "value": evaluation.values(parse_measure(MEASURE))})
    return table.join(values, on="query_id", how="inner", maintain_order="left")


def _ranked(
    model: Scorer,
    candidates: Run,
    collection: Any,
    asked: pl.DataFrame,
    judged: pl.DataFrame,
    depth: int,
    options: dict[str, Any],
) -> tuple[Run, int]:
    """The first candidates of the queries ``asked``, and their relevant passages, ranked by the model; and the number
    of relevant passages that were not candidates."""
    from evenrank.models.rerank import rerank

    # All relevant passages are ranked: whether the first stage found them does not depend on the model.
    relevant = judged.filter(pl.col("relevance") >= 1)
    first = candidates.table.filter(pl.col("rank") <= depth).select("query_id", "doc_id", "score")
    first = first.join(asked, on="query_id", how="semi")
    # But not alone: without other candidates they would always be first.
    relevant = relevant.join(first, on="query_id", how="semi")
    added = relevant.select("query_id", "doc_id").join(first, on=["query_id", "doc_id"], how="anti")
    lowest = float(first["score"].to_numpy().min()) - 1
    both = Run.from_table(pl.concat([first, added.with_columns(pl.lit(lowest).alias("score"))]), candidates.name)
    whole = int(both.table["rank"].to_numpy().max())
    return rerank(both, model=model, collection=collection, queries=asked, depth=whole, **options), added.height


def sensitivity_findings(result: SensitivityResult) -> Iterator[Finding]:
    """Whether answers at late places rank lower, those at the ends higher, and what truncation has to do with it."""
    moved = result.moved
    if moved is None:
        counts = counted(result.unmovable, "query")
        yield _PHRASES.finding("unmoved", result.name, "cannot be told", None, "answer", count=counts)
        return
    yield from _preference(result.name, moved)
    yield _PHRASES.finding("effectiveness", value=result.value)
    yield from _truncation(moved, result.cut)


def _preference(name: str, moved: MovedAnswers) -> Iterator[Finding]:
    """What moving the answer's sentence does to the score beyond moving another one."""
    score = moved.score.difference
    if not score.n:
        yield _PHRASES.finding("no_scores", name, "cannot be told", None, "answer")
        return
    first, both = score.first_last, score.ends_middle
    # Of places, the change is said from the first to the last.
    change = first.negated()
    values: dict[str, Any] = {"change": change, "noticed": first.mde, "why": first.reason}
    yield _PHRASES.finding(_of_places(first), name, first.verdict, change, "answer", **values)
    # Where one end alone differs from the middle, first and last differ, which is said.
    only_one = not both.shown and any(end.shown for end in score.ends)
    if not only_one and (first.reason is None or first.reason != both.reason):
        place: Place = "answer" if both.shown else "finding"
        values = {"change": both, "noticed": both.mde, "why": both.reason}
        yield _PHRASES.finding(_of_ends(both), "", both.verdict, both, place, **values)


def _of_places(found: Comparison) -> str:
    if found.shown:
        return "later_lower" if (found.mean or 0.0) > 0 else "later_higher"
    if found.reason is not None:
        return "untold"
    return "no_difference" if found.mde else "unchanged"


def _of_ends(found: Comparison) -> str:
    if found.shown:
        return "ends_higher" if (found.mean or 0.0) > 0 else "ends_lower"
    if found.reason is not None:
        return "ends_untold"
    return "ends_alike" if found.mde else "ends_unchanged"


def _truncation(moved: MovedAnswers, cut: int | None) -> Iterator[Finding]:
    """The effect of truncation on the answers."""
    if moved.cut is None or cut is None:
        yield _PHRASES.finding("reads_unknown", level="cannot be told", place="warning")
        return
    if not moved.cut.any():
        yield _PHRASES.finding("reads_all")
        return
    kept = moved.kept.difference
    values: dict[str, Any] = {"cut": int(moved.cut.max()), "count": moved.queries, "whole": kept.n}
    first = kept.first_last if kept.n else None
    if first is None or first.reason is not None or first.mean is None:
        yield _PHRASES.finding("cut_off_untold", level="cannot be told", place="warning", **values)
        return
    change = first.negated()
    key = "cut_off" if first.shown else "cut_off_alike"
    yield _PHRASES.finding(key, "", first.verdict, change, "warning", change=change, **values)


_PHRASES = phrases("position")
_ENDS = short_intervals(2, sign=True)
_SCORE = "score (sd of the candidates)"
_NAMES = ("answer's sentence", "another sentence", "difference")


def sensitivity_page(result: SensitivityResult) -> Page:
    """All figures of a result as a page."""
    moved = result.moved
    scored = moved is not None and moved.score.difference.n > 0
    sections: tuple[Section, ...] = ()
    if moved is not None:
        sections = (Section("Score by place", (_moved_table(moved),), functools.partial(_moved_chart, moved.score)),)
    return Page(
        "position sensitivity",
        f"Position sensitivity of {result.name}",
        tuple(sensitivity_findings(result)),
        _short(moved) if moved is not None and scored else None,
        ("change of the score (sd of the candidates) with the sentence moved to a place, from 0 (first) to 1 (last)",)
        * scored,
        counted(result.queries, "query"),
        sections=sections,
        facts=_facts(result),
        notes=(*_notes(result), *result.notes),
        provenance=result.provenance,
    )


def _short(moved: MovedAnswers) -> Table:
    """The change of the score by place."""
    curves = (("answer", moved.score.answer), ("control", moved.score.control), ("difference", moved.score.difference))
    columns = [Column("place", shorts(2), of=lambda place: float(moved.score.answer.places[place]))]
    for (key, curve), heading in zip(curves, _NAMES, strict=True):
        columns.append(Column(key, shorts(2, sign=True), heading, functools.partial(_mean_at, curve)))
    ends = moved.score.difference.ci95
    columns.append(Column(("low", "high"), _ENDS, "", lambda place: ends[place]))
    cut = moved.cut
    if cut is not None and cut.any():
        columns.append(Column("cut", COUNT, "answers cut", lambda place: int(cut[place])))
    return Table("Score by place", tuple(columns), range(len(moved.score.answer.places)))


def _mean_at(curve: PositionCurve, place: int) -> float:
    return float(curve.means[place])


def _facts(result: SensitivityResult) -> tuple[tuple[str, str], ...]:
    drawn = ("queries", f"{result.queries:,}")
    if result.sampled_from is not None:
        drawn = ("queries drawn", f"{result.queries:,} of {result.sampled_from:,}")
    counts = (
        ("queries without a located answer, left out", result.without_answer),
        ("queries without other candidates, left out", result.without_candidates),
        ("relevant passages added to the candidates", result.added),
        ("queries whose answer cannot be moved", result.unmovable),
    )
    cut = () if result.cut is None else (("answers not read to the end", f"{result.cut:,}"),)
    return (
        drawn,
        ("passages", f"{result.passages:,}"),
        (f"mean {MEASURE}", number(result.value, 4)),
        *((name, f"{count:,}") for name, count in counts if count),
        *cut,
    )


def _notes(result: SensitivityResult) -> list[str]:
    notes = [
        f"The unit of intervals and of p is the passage ({result.passages:,} of them), with all its queries. p of"
        " first − last and ends − middle (of which both ends have to be on the same side): t and Hall's t,"
        " Holm-corrected over the two.",
    ]
    if result.sampled_from is not None:
        notes.append(f"All figures are of the {result.queries:,} queries drawn, not of all.")
    if result.added:
        notes.append(
            f"{result.added:,} relevant passages were not among the candidates and were ranked with them:"
            f" {MEASURE} here does not show what the first stage misses."
        )
    moved = result.moved
    if moved is not None:
        notes.append(
            "Moved: the sentence with the answer as a whole, to places from first (0) to last (1), each the nearest"
            " boundary of sentences (the mean of two that are equally near). Another sentence: the nearest in length,"
            " moved to the same places but the answer's, which stays where it is. Difference: answer's minus the"
            " other, within queries. Score: change from the passage as it is, in standard deviations of the query's"
            " candidates."
        )
        notes.append(
            "No move holds fixed which sentences stand beside the answer's. A ranker that sees words across the end of"
            " a sentence can show an effect without looking at the place."
        )
        if moved.left:
            notes.append(f"{counted(moved.left, 'query')} left out: fewer than two sentences besides the answer's.")
        if moved.unvaried:
            notes.append(f"{counted(moved.unvaried, 'query')} without score: all candidates have the same.")
    return notes


def _moved_table(moved: MovedAnswers) -> Table:
    found, cut = moved.score, moved.cut
    curves = (found.answer, found.control, found.difference)
    columns = [Column("place", digits(2), of=lambda place: float(found.answer.places[place]))]
    for key, heading, curve in zip(("answer", "control", "difference"), _NAMES, curves, strict=True):
        columns += _curve_columns(key, heading, curve)
    if cut is not None:
        columns.append(Column("cut", COUNT, "answers cut", lambda place: int(cut[place])))
    notes = [f"{name.capitalize()}: {_contrasts(curve)}." for name, curve in zip(_NAMES, curves, strict=True)]
    return Table(f"Moved: {_SCORE}", tuple(columns), range(len(found.answer.places)), tuple(reversed(notes)))


def _curve_columns(key: str, heading: str, curve: PositionCurve) -> tuple[Column, Column]:
    """The columns of the means by place, and of their intervals."""
    return (
        Column(key, digits(4), heading, lambda place: _defined(float(curve.means[place]))),
        Column((f"{key}_low", f"{key}_high"), intervals(4), "95%", lambda place: curve.ci95[place] or "one passage"),
    )


def _defined(mean: float) -> float | str:
    return "no value" if math.isnan(mean) else mean


def _contrasts(curve: PositionCurve) -> str:
    named = (("first − last", curve.first_last), ("ends − middle", curve.ends_middle))
    parts = [f"{name} {_figure(one)}" for name, one in named]
    return f"{'; '.join(parts)}, {counted(curve.n, 'query')}"


def _figure(found: Comparison) -> str:
    if found.mean is None:
        return f"({found.reason})"
    p = found.p if found.holm_p is None else found.holm_p
    between = (
        "no interval" if found.ci95 is None else "95% interval {} to {}".format(*(number(end, 4) for end in found.ci95))
    )
    return f"{number(found.mean, 4)} ({between}, {'no p' if p is None else f'p {p_value(p)}'})"


def _moved_chart(found: Curves) -> list[Drawing]:
    """The curves of the score."""
    rows = [
        {"x": x, "value": mean, "low": ci[0], "high": ci[1], "n": curve.n, "queries": series}
        for series, curve in zip(_NAMES, (found.answer, found.control, found.difference), strict=True)
        for x, mean, ci in zip(curve.places.tolist(), curve.means.tolist(), curve.ci95, strict=True)
        if ci is not None and not math.isnan(mean)
    ]
    title = "Score (sd of the candidates) of the same passage by the place of a sentence"
    return [Drawing("score", title, _chart(rows, "place (0 first, 1 last)", _SCORE))]


def _chart(rows: Sequence[Mapping[str, float | str]], x: str, y: str) -> dict[str, object]:
    import altair as alt

    data = alt.Chart(alt.Data(values=[dict(row) for row in rows]))
    across = alt.X("x:Q", title=x)
    scale = alt.Scale(zero=False)
    tips = [alt.Tooltip("x:Q", title=x), alt.Tooltip("value:Q", title=y, format=".4f"), alt.Tooltip("n:Q")]
    colour = alt.Color("queries:N", title=None, scale=alt.Scale(range=COLOURS[:3]), sort=None)
    line = data.mark_line(point=True).encode(
        x=across, y=alt.Y("value:Q", title=y, scale=scale), color=colour, tooltip=tips
    )
    band = data.mark_rule(opacity=0.5).encode(
        x=across, y=alt.Y("low:Q", title=y, scale=scale), y2="high:Q", color=colour
    )
    return specification(alt.layer(band, line).properties(width=780, height=300))
