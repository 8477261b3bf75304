"""Position: rankers that prefer no place, of passages and questions as they come; and what they prefer, for power.

A sample is the values of the versions that :func:`evenrank.probes.sentence_moves.sentence_moves` makes of passages of
made-up sentences, so that the command, with a ranker in memory that gives those values, has to say the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from evenrank.files import Run
from evenrank.models.scorers import Rows, Scorer, Scores, TextPairs
from evenrank.probes.position_curve import position_curve
from evenrank.probes.sensitivity import too_little_read, words_read
from evenrank.probes.sentence_moves import SentenceMoves, sentence_moves

from .cell import Cell, Kind

Floats = np.ndarray
SIZES = (10, 20, 30, 50, 117, 215)
PLACES = 5
Questions = Literal["one", "several", "one has most"]


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages of made-up sentences, their questions, and the versions of their moved sentences.

    ``at`` [M, K]: the answer's place in its versions, from −.5 to .5; ``was`` [M]: as it stands. ``pairs`` [M, 2K]: the
    number of each distinct (question, text), the answer's versions and then the control's, −1 beyond.
    """

    table: pl.DataFrame
    moves: SentenceMoves
    passage: np.ndarray
    at: Floats
    was: Floats
    pairs: np.ndarray


@functools.lru_cache(maxsize=32)
def passages(n: int, questions: Questions) -> Passages:
    """``n`` passages of three to nine sentences of three to twelve words, the same for each draw."""
    rng = np.random.default_rng([n, len(questions)])
    number = {"one": np.ones(n, int), "several": rng.integers(1, 8, n), "one has most": np.ones(n, int)}[questions]
    if questions == "one has most":
        number[0] = n
    rows = []
    for p in range(n):
        sentences = [
            " ".join([f"P{p}s{s}", *(f"w{w}" for w in range(int(rng.integers(2, 12))))]) + "."
            for s in range(int(rng.integers(3, 10)))
        ]
        text = " ".join(sentences)
        for q in range(int(number[p])):
            start = text.index(sentences[int(rng.integers(len(sentences)))])
            end = start + len(text[start:].split(" ", 1)[0])
            rows.append((f"q{p}-{q}", f"d{p}", text, start, end))
    table = pl.DataFrame(rows, ["query_id", "doc_id", "text", "answer_start", "answer_end"], orient="row")
    moves = sentence_moves(table, PLACES)
    others = np.array([text.count(".") - 1 for text in table["text"].to_list()])
    before = np.array([text[:start].count(".") for text, start in table.select("text", "answer_start").iter_rows()])
    at = np.zeros(moves.answer.shape)
    for row, shape in enumerate(moves.shape):
        columns = np.flatnonzero(moves.weights[shape].any(axis=0))
        weights = moves.weights[shape]
        # Which place each needed version has: as version_shapes chose them.
        near = _needed(int(others[row]), weights.shape[0])
        at[row, columns] = np.array(near) / others[row] - 0.5
    both = np.concatenate([moves.answer, moves.control], axis=1)
    keys = np.arange(len(both))[:, None] * (len(moves.texts) + 1) + both
    pairs = np.where(
        both >= 0, np.unique(np.where(both >= 0, keys, -1), return_inverse=True)[1].reshape(both.shape), -1
    )
    passage = table["doc_id"].rank("dense").to_numpy().astype(np.int64) - 1
    return Passages(table, moves, passage, at, before / others - 0.5, pairs)


def _needed(others: int, places: int) -> list[int]:
    from evenrank.probes.position_curve import place_weights

    return np.flatnonzero(place_weights(others, places).any(axis=0)).tolist()


@dataclass(frozen=True, slots=True)
class Sample:
    """Values [M, K] of the answer's versions and of the control's; ``read``: how many words the ranker reads."""

    of: Passages
    answer: Floats
    control: Floats
    read: int | None = None

    @property
    def difference(self) -> Floats:
        """What is tested."""
        return self.of.moves.at_places(self.answer - self.control)


Effect = Callable[[np.random.Generator, Passages, Floats], Floats]
"""What places [M, K] do to the values, from −.5 to .5."""


def drawn(
    n: int, questions: Questions, effect: Effect, noise: float = 0.5, read: int | None = None
) -> Callable[[np.random.Generator], Sample]:
    """Samples whose values vary by passage and text, by question and text, and by ``effect`` of the answer's place."""

    def draw(rng: np.random.Generator) -> Sample:
        of = passages(n, questions)
        moves, size = of.moves, of.moves.answer.shape[1]
        both = np.concatenate([moves.answer, moves.control], axis=1)
        texts = noise * rng.normal(size=len(moves.texts))
        own = noise * rng.normal(size=int(of.pairs.max()) + 1)
        plain = noise * rng.normal(size=n)[of.passage] + noise * rng.normal(size=len(both))
        values = texts[both.clip(0)] + own[of.pairs.clip(0)] - plain[:, None]
        # One draw of the effect, for the places and for the place as it stands.
        places = effect(rng, of, np.concatenate([of.at, of.was[:, None]], axis=1))
        values[:, :size] += places[:, :-1] - places[:, -1:]
        values = np.where(both == -1, 0.0, np.where(both == -2, np.nan, values))
        return Sample(of, values[:, :size], values[:, size:], read)

    return draw


def _by_passage(rng: np.random.Generator, of: Passages, shape: Callable[..., Floats]) -> Floats:
    """A passage's preference [M, 1], which its questions share, with a little of each question's own."""
    size = int(of.passage.max()) + 1
    return (shape(size)[of.passage] + 0.3 * rng.normal(size=len(of.passage)))[:, None]


def nothing(rng: np.random.Generator, of: Passages, at: Floats) -> Floats:
    return np.zeros_like(at)


def by_passage(rng: np.random.Generator, of: Passages, at: Floats) -> Floats:
    """Each passage's own slope and own curve, 0 on average."""
    slope = _by_passage(rng, of, lambda n: rng.normal(size=n))
    bend = _by_passage(rng, of, lambda n: 3 * rng.normal(size=n))
    return slope * at + bend * at**2


def skewed(rng: np.random.Generator, of: Passages, at: Floats) -> Floats:
    """Slopes that are lognormal, less their mean."""
    return _by_passage(rng, of, lambda n: rng.lognormal(size=n) - np.exp(0.5)) * at


def heavy(rng: np.random.Generator, of: Passages, at: Floats) -> Floats:
    """Slopes of Student's t with three degrees of freedom."""
    return _by_passage(rng, of, lambda n: rng.standard_t(3, size=n)) * at


def symmetric_hump(rng: np.random.Generator, of: Passages, at: Floats) -> Floats:
    """The middle is preferred, by passages more or less."""
    return -2 * at**2 + by_passage(rng, of, at)


def falling(rng: np.random.Generator, of: Passages, at: Floats) -> Floats:
    """Early answers are preferred, and less so the later: the ends' mean is above the middle, the last place below."""
    return (at - 0.5) ** 2 + 0.5 * by_passage(rng, of, at)


def first_sentence(rng: np.random.Generator, of: Passages, at: Floats) -> Floats:
    """The first sentence counts for more, by half a standard deviation of what texts vary by."""
    return 0.25 * (at == -0.5) + by_passage(rng, of, at)


def line(rng: np.random.Generator, of: Passages, at: Floats) -> Floats:
    """Early answers are preferred."""
    return -0.5 * at + 0.5 * by_passage(rng, of, at)


def cut(rng: np.random.Generator, of: Passages, at: Floats) -> Floats:
    """Only answers in the first part count."""
    return 2.0 * (at < -0.2)


def preferred(sample: Sample) -> bool:
    """Whether a preference of any kind is shown."""
    curve = position_curve(sample.difference, clusters=sample.of.passage[sample.of.moves.rows])
    return curve.first_last.shown or curve.ends_middle.shown


def late(sample: Sample) -> bool:
    """Whether it is said that early or late answers are preferred."""
    return position_curve(sample.difference, clusters=sample.of.passage[sample.of.moves.rows]).first_last.shown


def ends(sample: Sample) -> bool:
    """Whether it is said that both ends differ from the middle."""
    return position_curve(sample.difference, clusters=sample.of.passage[sample.of.moves.rows]).ends_middle.shown


def told(sample: Sample) -> bool:
    """Whether anything is told of a ranker that cuts passages off."""
    texts = sample.of.table["text"]
    reads = np.array([_characters(text, sample.read) for text in texts.to_list()])
    return too_little_read(words_read(texts, reads), len(texts), None) is None


def _characters(text: str, words: int | None) -> int:
    return len(text) if words is None else len(" ".join(text.split()[:words]))


class InMemory(Scorer):
    """A ranker whose scores are looked up: (question's text, passage's text) → score."""

    def __init__(self, scores: dict[tuple[str, str], float], words: int | None) -> None:
        super().__init__("in memory")
        self.scores, self.words = scores, words

    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        for rows in windows:
            yield np.array([self.scores[pair] for pair in zip(*pairs.texts(rows), strict=True)])

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        return [_characters(passage, self.words) for passage in passages]


RIVALS = {"r0": ("Rival one.", 9.0), "r1": ("Rival two.", 11.0)}


def by_command(sample: Sample) -> Any:
    """What the command's function finds in a sample."""
    from evenrank import position_sensitivity

    moves = sample.of.moves
    texts, table = moves.texts["text"].to_list(), sample.of.table
    scores = {}
    for row, (query, text) in enumerate(table.select("query_id", "text").iter_rows()):
        scores[query, text] = 10.0
        scores.update({(query, rival): score for rival, score in RIVALS.values()})
        for side, values in ((moves.answer, sample.answer), (moves.control, sample.control)):
            for number, value in zip(side[row].tolist(), values[row].tolist(), strict=True):
                if number >= 0:
                    scores[query, texts[number]] = 10.0 + value
    own = table.select("query_id", "doc_id", pl.lit(1.0).alias("score"))
    rivals = [table.select("query_id", pl.lit(name).alias("doc_id"), pl.lit(0.0).alias("score")) for name in RIVALS]
    collection = pl.concat(
        [
            table.select("doc_id", "text").unique(maintain_order=True),
            pl.DataFrame({"doc_id": list(RIVALS), "text": [text for text, _ in RIVALS.values()]}),
        ]
    )
    return position_sensitivity(
        InMemory(scores, sample.read),
        collection=collection,
        queries=table.select("query_id", pl.col("query_id").alias("text")),
        qrels=table.select("query_id", "doc_id", pl.lit(1).alias("relevance")),
        answers=table.select("query_id", "doc_id", "answer_start", "answer_end"),
        run=Run.from_table(pl.concat([own, *rivals]), "made"),
        places=PLACES,
    ).moved


def preferred_by_command(sample: Sample) -> bool:
    curve = by_command(sample).score.difference
    return curve.first_last.shown or curve.ends_middle.shown


def late_by_command(sample: Sample) -> bool:
    return by_command(sample).score.difference.first_last.shown


def ends_by_command(sample: Sample) -> bool:
    return by_command(sample).score.difference.ends_middle.shown


def told_by_command(sample: Sample) -> bool:
    curve = by_command(sample).score.difference
    return any(one.verdict != "cannot be told" for one in (curve.first_last, curve.ends_middle))


def _cells() -> tuple[Cell, ...]:
    found = []

    def add(family: str, n: int, draw: Any, said: Any, command: Any = None, kind: Kind = "false", **more: Any) -> None:
        # Through the command where it takes no more than a few seconds for all its draws.
        found.append(Cell("position", family, n, draw, said, command if n <= 30 else None, kind, **more))

    kinds: tuple[tuple[str, Questions, Effect], ...] = (
        ("no effect, one question a passage", "one", nothing),
        ("no effect, several questions", "several", nothing),
        ("passages differ, several questions", "several", by_passage),
        ("passages differ, one has most questions", "one has most", by_passage),
        ("skewed passages, several questions", "several", skewed),
        ("long-tailed passages, one question each", "one", heavy),
    )
    for n in SIZES:
        for family, questions, effect in kinds:
            add(family, n, drawn(n, questions, effect), preferred, preferred_by_command)
        add("symmetric hump said early or late", n, drawn(n, "several", symmetric_hump), late, late_by_command)
        add("only falls, said of both ends", n, drawn(n, "several", falling), ends, ends_by_command)
        add("all cut off", n, drawn(n, "several", cut, read=8), told, told_by_command)
        add("likes first sentences", n, drawn(n, "several", first_sentence), preferred, kind="power")
        add("likes early sentences", n, drawn(n, "several", line), preferred, kind="power")
        add("hump seen as one", n, drawn(n, "several", symmetric_hump), preferred, kind="power")
    add("no score changes", 30, drawn(30, "several", nothing, noise=0.0), preferred, preferred_by_command, draws=200)
    return tuple(found)


CELLS: tuple[Cell, ...] = _cells()
