"""Cells of real pairs of runs: reciprocal ranks of eight rankers on SQuAD's questions."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank.decide.budget import as_budget
from evenrank.decide.rule_test import rule_test
from evenrank.files.types import Array
from evenrank.stats.bounds import no_loss, outcome
from evenrank.stats.compare import LEAST_DIFFERENT, compare

from . import queries as q
from .cell import DATA, Cell

SQUAD = DATA / "squad2"
SIZES = (20, 50, 117, 215)
TILTED, EXCHANGED, BY_PARAGRAPH = (
    "runs differ, tilted to 0",
    "runs differ, exchanged",
    "runs differ, paragraphs exchanged",
)
T = "Student's t: "
EVERY = "every pair of 8 rankers"
_WORD = re.compile(r"\w+")


# --- rankers ----------------------------------------------------------------------------------------------------------


@functools.cache
def ranked() -> tuple[Array, Array]:
    """The reciprocal ranks [8, Q] of eight rankers, 0 beyond rank 10, and the paragraph [Q] of each question."""
    paragraphs, questions, of = [], [], []
    for name in ("answered.json", "unanswered.json"):
        for article in json.loads((SQUAD / name).read_text())["data"]:
            for paragraph in article["paragraphs"]:
                answered = [one for one in paragraph["qas"] if one.get("answers")]
                questions += [one["question"] for one in answered]
                of += [len(paragraphs)] * len(answered)
                paragraphs.append(paragraph["context"])
    own = np.array(of)
    found = []
    for cut in (None, 5, 3):
        counts, asked = _counts(paragraphs, questions, cut)
        weights = [_bm25(counts, 0.9, 0.4), _bm25(counts, 1.2, 0.75)] if cut else _word_weights(counts)
        used = np.unique(asked.indices)
        found += [_reciprocal(asked[:, used] @ one[:, used].toarray().T, own) for one in weights]
    return np.stack(found), own


def _counts(paragraphs: list[str], questions: list[str], cut: int | None) -> tuple[Any, Any]:
    """Sparse counts of the words of paragraphs and of questions; ``cut``: of so many first letters of each."""
    from scipy.sparse import csr_array

    words: dict[str, int] = {}
    found = []
    for texts in (paragraphs, questions):
        rows, columns = [], []
        for row, text in enumerate(texts):
            own = [words.setdefault(word[:cut], len(words)) for word in _WORD.findall(text.casefold())]
            rows += [row] * len(own)
            columns += own
        found.append((rows, columns, len(texts)))
    return tuple(
        csr_array((np.ones(len(rows)), (rows, columns)), shape=(size, len(words))) for rows, columns, size in found
    )


def _bm25(counts: Any, k1: float, b: float) -> Any:
    """BM25's weights of each word in each paragraph."""
    lengths, known = counts.sum(axis=1), (counts > 0).sum(axis=0)
    rare = np.log(1 + (counts.shape[0] - known + 0.5) / (known + 0.5))
    found = counts.tocsr(copy=True)
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(found.indptr))
    norm = k1 * (1 - b + b * lengths[rows] / lengths.mean())
    found.data = rare[found.indices] * found.data * (k1 + 1) / (found.data + norm)
    return found


def _word_weights(counts: Any) -> list[Any]:
    """Weights of whole words: BM25 with two settings, one of them without lengths, TF–IDF's cosine, and rarity."""
    found = counts.tocsr(copy=True)
    rare = np.log(counts.shape[0] / np.maximum((counts > 0).sum(axis=0), 1))
    found.data = (1 + np.log(found.data)) * rare[found.indices]
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(found.indptr))
    found.data /= np.sqrt(np.bincount(rows, found.data**2, counts.shape[0]))[rows]
    once = counts.tocsr(copy=True)
    once.data = rare[once.indices]
    return [_bm25(counts, 0.9, 0.4), _bm25(counts, 1.2, 0.0), found, once]


def _reciprocal(scores: Array, own: Array) -> Array:
    rank = 1 + (scores > scores[np.arange(len(own)), own][:, None]).sum(axis=1)
    return np.where(rank <= 10, 1 / rank, 0.0)


def pairs() -> list[tuple[int, int]]:
    """Every two of the rankers."""
    return list(itertools.combinations(range(8), 2))


# --- samples ----------------------------------------------------------------------------------------------------------


def _pair(rng: np.random.Generator, pair: tuple[int, int] | None) -> Array:
    """The reciprocal ranks [2, Q] of a pair, by chance if none is named."""
    first, second = pairs()[rng.integers(28)] if pair is None else pair
    found: Array = ranked()[0][[first, second]]
    return found


def tilt(differences: Array, mean: float = 0.0) -> Array:
    """Probabilities [Q] of queries, as even as can be, with which the mean difference is ``mean``."""
    low, high = -200.0, 200.0
    for _ in range(60):
        middle = (low + high) / 2
        logs = middle * differences
        weights = np.exp(logs - logs.max())
        low, high = (low, middle) if weights @ differences > mean * weights.sum() else (middle, high)
    return weights / weights.sum()


@functools.cache
def _tilted(pair: tuple[int, int]) -> Array:
    return tilt(np.subtract(*ranked()[0][list(pair)]))


def tilted(n: int, pair: tuple[int, int] | None, rng: np.random.Generator) -> tuple[Array, Array]:
    """Values of a pair on queries that are drawn so that its mean difference is 0."""
    pair = pairs()[rng.integers(28)] if pair is None else pair
    chosen = rng.choice(len(ranked()[1]), n, p=_tilted(pair))
    own, other = ranked()[0][list(pair)][:, chosen]
    return own, other


def exchanged(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Values of a pair on ``n`` queries, exchanged at random."""
    own, other = _pair(rng, None)[:, rng.choice(len(ranked()[1]), n, replace=False)]
    swap = rng.random(n) < 0.5
    return np.where(swap, other, own), np.where(swap, own, other)


def as_they_are(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Values of a pair on ``n`` queries of which t shows a difference, six or more of them unlike."""
    while True:
        own, other = _pair(rng, None)[:, rng.choice(len(ranked()[1]), n, replace=False)]
        if (own != other).sum() >= LEAST_DIFFERENT and t_differ((own, other)):
            return own, other


def differ(sample: tuple[Array, Array]) -> bool:
    return compare(sample[0] - sample[1], zeros="keep", reach=1.0).shown


def t_differ(sample: tuple[Array, Array]) -> bool:
    """Whether Student's paired t says that they differ."""
    from scipy.stats import ttest_rel

    return bool(ttest_rel(*sample).pvalue < 0.05)


def differ_in_audit(sample: tuple[Array, Array]) -> bool:
    """Whether ``evenrank.audit`` says so."""
    runs = {"new": q.trec(sample[0]), "old": q.trec(sample[1])}
    found = evenrank.audit(runs, qrels=q.judged(len(sample[0])), baseline="old", measures="RR@10")
    against = found["new", "RR@10"].vs_baseline
    return against is not None and against.significant


# --- by paragraph -----------------------------------------------------------------------------------------------------

ByParagraph = tuple[Array, Array, Array]


def by_paragraph(n: int, rng: np.random.Generator) -> ByParagraph:
    """Values of a pair on all questions of ``n`` paragraphs, exchanged by paragraph, and the paragraphs."""
    of = ranked()[1]
    chosen = np.isin(of, rng.choice(np.unique(of), n, replace=False))
    (own, other), inside = _pair(rng, None)[:, chosen], of[chosen]
    swap = (rng.random(of.max() + 1) < 0.5)[inside]
    return np.where(swap, other, own), np.where(swap, own, other), inside


def differ_by_paragraph(sample: ByParagraph) -> bool:
    own, other, clusters = sample
    return compare(own - other, zeros="keep", clusters=clusters, reach=1.0).shown


def by_paragraph_in_audit(sample: ByParagraph) -> bool:
    """The same through ``evenrank.audit``, which finds the clusters by the relevant documents."""
    own, other, clusters = sample
    docs = {f"relevant {place}": f"paragraph {number}" for place, number in enumerate(clusters.tolist())}
    runs = {
        name: q.trec(values).with_columns(pl.col("doc_id").replace(docs))
        for name, values in (("new", own), ("old", other))
    }
    qrels = q.judged(len(own)).with_columns(pl.col("doc_id").replace(docs))
    against = evenrank.audit(runs, qrels=qrels, baseline="old", measures="RR@10")["new", "RR@10"].vs_baseline
    return against is not None and against.significant


def loses_by_paragraph(n: int, rng: np.random.Generator) -> ByParagraph:
    """Values of a ranker on the questions of ``n`` paragraphs, and of the same one ruined on 5% of the paragraphs."""
    of = ranked()[1]
    chosen = np.isin(of, rng.choice(np.unique(of), n, replace=False))
    base, inside = ranked()[0][0][chosen], of[chosen]
    return np.where((rng.random(of.max() + 1) < 0.05)[inside], 0.0, base), base, inside


def keeps_by_paragraph(sample: ByParagraph) -> bool:
    own, other, clusters = sample
    test = no_loss(own, other, clusters=clusters)
    return test is not None and outcome(test, None) == "holds"


def gate_by_paragraph(sample: ByParagraph) -> bool:
    rule = {"measure": "RR@10", "against": "baseline", "at_least": "-5%"}
    return q.gated(rule, "holds", sample[:2], sample[2])


# --- planning ---------------------------------------------------------------------------------------------------------

RULE = {"measure": "RR@10", "against": "baseline", "at_least": "-5%"}


def planned(pilot: int, rng: np.random.Generator) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """A pilot sample of equally good runs, and a sample of as many queries as the pilot asks for."""
    pair = pairs()[rng.integers(28)]
    first = tilted(pilot, pair, rng)
    rule = as_budget({"rule": [RULE]}).rules[0]
    n = rule_test(rule, [first[0]], [first[1]], greatest=1.0, alpha=q.ALPHA).n_if_equal
    return first, tilted(n or pilot, pair, rng)


def planned_holds(sample: tuple[tuple[Array, Array], tuple[Array, Array]]) -> bool:
    test = no_loss(*sample[1])
    return test is not None and outcome(test, None) == "holds"


def gate_planned(sample: tuple[tuple[Array, Array], tuple[Array, Array]]) -> bool:
    """The same through ``evenrank.gate``."""
    return q.gated(RULE, "holds", sample[1])


_INNER, _PILOTS = 400, 30


def underestimated(n: int, rng: np.random.Generator) -> bool:
    """Whether more than 84% of samples of a pair show a difference of the size that is called detectable on average."""
    pair = pairs()[rng.integers(28)]
    differences = np.subtract(*ranked()[0][list(pair)])
    found = [compare(np.subtract(*tilted(n, pair, rng)), zeros="keep", reach=1.0).mde for _ in range(_PILOTS)]
    known = [one for one in found if one is not None]
    if not known:
        return False
    drawn = rng.choice(differences, (_INNER, n), p=tilt(differences, float(np.mean(known))))
    return sum(compare(one, zeros="keep", reach=1.0).shown for one in drawn) > 0.84 * _INNER


def _cells() -> Iterator[Cell]:
    more: dict[str, Any] = {"data": SQUAD, "quick": 20}
    for n in SIZES:
        draws: dict[str, Callable[[np.random.Generator], Any]] = {
            TILTED: functools.partial(tilted, n, None),
            EXCHANGED: functools.partial(exchanged, n),
        }
        for rule, draw in draws.items():
            yield Cell(rule, EVERY, n, draw, differ, differ_in_audit, **more)
            yield Cell(T + rule, EVERY, n, draw, t_differ, kind="beside", **more)
        for pair in pairs():
            draw = functools.partial(tilted, n, pair)
            family = f"rankers {pair[0]} and {pair[1]}"
            yield Cell(TILTED, family, n, draw, differ, level=0.08, draws=2000, **more)
        if n >= 50:
            draw = functools.partial(as_they_are, n)
            yield Cell("runs differ where t shows it", EVERY, n, draw, differ, differ_in_audit, "power", 0.9, **more)
        yield Cell(
            "a smaller difference than is called detectable is shown in more than .84 of samples",
            EVERY,
            n,
            functools.partial(underestimated, n),
            bool,
            **{**more, "draws": 200, "quick": 2},
        )
    for n in (20, 50, 117):
        draw = functools.partial(by_paragraph, n)
        yield Cell(BY_PARAGRAPH, EVERY, n, draw, differ_by_paragraph, by_paragraph_in_audit, **more)
        draw = functools.partial(loses_by_paragraph, n)
        rule = "no loss of more than 5%, paragraphs"
        yield Cell(rule, "5% of paragraphs ruined", n, draw, keeps_by_paragraph, gate_by_paragraph, **more)
    for n in (50, 117, 215):
        draw = functools.partial(planned, n)
        rule = "the queries that are asked for suffice"
        bounds: dict[str, Any] = {"kind": "power", "floor": 0.7, "most": 0.9, "draws": 2000}
        yield Cell(rule, f"{EVERY}, as good", n, draw, planned_holds, gate_planned, **bounds, **more)


CELLS = tuple(_cells())
