"""How often a probe says "prefers" of rankers without a preference, and of one with a preference of .3 sd.

A sample is what a swap (or another edit) and its placebo do to the scores of pairs: damage, which may be larger in one
direction, what the change of length does, and noise of passages, queries and pairs. No model is asked; through the
command the same changes are the scores of texts made for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from evenrank.probes.effects import Changes, Floats, Ints, beyond, preference

from .cell import Cell, Kind

SIZES = (10, 20, 30, 50, 117, 215)
"""Passages."""
SHARES = (0.5, 0.8, 0.95)
"""Of the passages that the swap brings away from the first pole (which are worded as it)."""
DAMAGE = (0.2, 0.4, 0.7, 1.0, 1.4)
"""How many times as much as the swap its placebo damages."""
QUICK = 20
"""Draws of the quick form, of each of so many cells."""
Likes = Literal["nothing", "short", "rare", "first"]
Noise = Literal["normal", "t3", "lognormal"]


@dataclass(frozen=True, slots=True)
class Family:
    """How a sample is drawn.

    Attributes:
        share: Of passages worded as the first pole; ``weaker``: the placebo's damage over the swap's.
        damage: Mean of the swap's damage in sd; ``uneven``: it is so many times as much away from the first pole.
        likes: What the ranker likes. "short": each word less raises the score by .1, each character by .03; "rare": new
            words are as often rarer as more frequent, which changes scores by an exponential amount; "first": seven in
            ten edits lie behind the first sentence and change nothing.
        noise: Of a pair's change, with the deviation ``deviation``; ``of_query``, ``of_passage``: of what the pairs of
            a query and of a passage share.
        each: Pairs of a passage: so many queries have it. ``per_query``: passages of a query.
        unequal: Passages differ in length, and the same edit changes a short one more; those of the first pole are
            shorter.
        covered: The share of passages that the placebo changes; ``tied``: how much length goes with direction;
            ``spared``: only the placebo damages.
        prefers: The preference.
    """

    share: float = 0.5
    weaker: float = 1.0
    damage: float = 0.3
    uneven: float = 1.0
    likes: Likes = "nothing"
    noise: Noise = "normal"
    deviation: float = 0.25
    of_query: float = 0.05
    of_passage: float = 0.1
    each: int = 1
    per_query: int = 1
    unequal: bool = False
    covered: float = 1.0
    tied: float = 0.5
    spared: bool = False
    prefers: float = 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Changes of pairs, with the direction of each."""

    changes: Changes
    signs: Floats


def _noise(rng: np.random.Generator, kind: Noise, size: int) -> Floats:
    """Of mean 0 and deviation 1."""
    drawn: Floats = rng.standard_normal(size)
    if kind == "t3":
        drawn = rng.standard_t(3, size) / np.sqrt(3)
    if kind == "lognormal":
        drawn = (np.exp(drawn) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)
    return drawn


def _paired(family: Family, passages: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The query and the passage of each pair."""
    if family.each == 1:
        return np.arange(passages) // family.per_query, np.arange(passages)
    passage = np.repeat(np.arange(passages), family.each)
    queries = max(passages * family.each // max(family.per_query, 2), 15)
    # Each passage in lists of different queries.
    query = np.concatenate([rng.choice(queries, family.each, replace=False) for _ in range(passages)])
    return query, passage


def swapped(family: Family, passages: int, rng: np.random.Generator) -> Sample:
    """A swap and its placebo."""
    query, passage = _paired(family, passages, rng)
    own = np.where(np.arange(passages) < round(passages * family.share), -1.0, 1.0)
    signs, n = own[passage], len(passage)
    sizes = np.exp(rng.normal(0.3 * own if family.unequal else 0.0, 0.5 if family.unequal else 0.0, passages))
    # How much more an edit weighs in a passage than in the average one.
    weight = (1 / sizes)[passage] if family.unequal else np.ones(n)
    level = np.where(own < 0, family.uneven, 1.0) * family.damage * rng.gamma(4.0, 0.25, passages)
    shared = family.of_passage * rng.standard_normal(passages)
    asked = family.of_query * rng.standard_normal(int(query.max()) + 1)
    changes, lengths = [], []
    for version in (0, 1):
        words, letters = _lengths(family, own, version, rng)
        amount = -(family.weaker if version == 1 else 0.0 if family.spared else 1.0) * level[passage]
        if family.likes == "short":
            amount = amount - (0.1 * words + 0.03 * letters)[passage]
        if family.likes == "rare":
            amount = amount + 0.15 * (rng.exponential(1.0, passages) * rng.choice([-1.0, 1.0], passages))[passage]
        amount = amount + shared[passage] * (1 if version == 0 else 0.7) + asked[query]
        amount = weight * (amount + family.deviation * _noise(rng, family.noise, n))
        if version == 0:
            amount = amount + signs * family.prefers
        if family.likes == "first":
            amount = amount * (rng.random(passages) < 0.3)[passage]
        if version == 1:
            amount = np.where((rng.random(passages) < family.covered)[passage], amount, np.nan)
        changes.append(amount)
        lengths.append(np.stack([words, letters], axis=1)[passage])
    return Sample(Changes(query, passage, changes[0], changes[1], lengths[0], lengths[1]), signs)


def _lengths(family: Family, own: Floats, version: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """How many words and letters longer each passage becomes: swaps change letters, by direction; placebos both."""
    size = len(own)
    if version == 1:
        return rng.integers(-1, 2, size).astype(float), rng.integers(-4, 7, size).astype(float)
    # Of a few words, such as she → he (a letter less) and father → mother (none), some go with the direction.
    directed = rng.random(size) < family.tied
    letters = np.where(directed, -own * rng.integers(1, 4, size), rng.integers(-2, 3, size))
    return np.zeros(size), letters.astype(float)


def edited(family: Family, passages: int, rng: np.random.Generator) -> Sample:
    """Another edit, which makes texts longer than its placebo does, and damages as much."""
    sample = swapped(replace(family, share=0.5, prefers=0.0), passages, rng)
    changes = sample.changes
    assert changes.lengths is not None
    more = rng.integers(0, 4, passages).astype(float)[changes.passage]
    own = changes.own + family.prefers - (0.1 * more if family.likes == "short" else 0.0)
    longer = changes.lengths + np.stack([more, np.zeros(len(more))], axis=1)
    return Sample(replace(changes, own=own, lengths=longer), np.ones_like(sample.signs))


def alone(family: Family, passages: int, rng: np.random.Generator) -> Sample:
    """An edit without a placebo, which does nothing on average."""
    sample = swapped(replace(family, share=0.5, damage=0.0), passages, rng)
    return Sample(replace(sample.changes, placebo=None, placebo_lengths=None), np.ones_like(sample.signs))


def unplaced(family: Family, passages: int, rng: np.random.Generator) -> Sample:
    """A swap whose placebo is missing."""
    sample = swapped(family, passages, rng)
    return Sample(replace(sample.changes, placebo=None, placebo_lengths=None), sample.signs)


def prefers(sample: Sample) -> bool:
    """Whether a preference is said of a swap."""
    return preference(sample.changes, sample.signs).finding.shown


def differs(sample: Sample) -> bool:
    """Whether an effect is said of another edit."""
    return beyond(sample.changes).shown


# --- through the command ----------------------------------------------------------------------------------------------


def probed(sample: Sample, *, kind: str) -> bool:
    """The same through :func:`evenrank.probe`, on texts whose scores change so."""
    import evenrank

    changes = sample.changes
    names = {0: "original", 1: "own", 2: "placebo"}
    texts: dict[str, dict[str, str]] = {name: {} for name in names.values()}
    scores: dict[tuple[str, str], float] = {}
    queries = {f"q{number}": f"query {number}" for number in np.unique(changes.query)}
    run: dict[str, dict[str, float]] = {query: {} for query in queries}
    for row, passage in enumerate(changes.passage.tolist()):
        doc, query = f"d{passage}", f"q{changes.query[row]}"
        # A swap towards the first pole, which is m, turns she into he.
        worded = ("he", "she") if sample.signs[row] < 0 else ("she", "he")
        made = [_text(worded[0], passage, 0, 0.0, 0.0)]
        for version, lengths in ((1, changes.lengths), (2, changes.placebo_lengths)):
            words, letters = (0.0, 0.0) if lengths is None else lengths[row]
            made.append(_text(worded[1] if version == 1 else worded[0], passage, version, words, letters))
        amounts = [0.0, changes.own[row], np.nan if changes.placebo is None else changes.placebo[row]]
        if np.isnan(amounts[2]):
            made[2], amounts[2] = made[0], 0.0
        for version, name in names.items():
            texts[name][doc] = made[version]
            scores[queries[query], made[version]] = float(amounts[version])
        run[query][doc] = 1.0
    for query, docs in run.items():
        # Two passages that no edit changes give the list a deviation of 1.
        far = np.sqrt((len(docs) + 2) / 2)
        for sign, doc in ((1.0, f"{query}high"), (-1.0, f"{query}low")):
            for name in names.values():
                texts[name][doc] = f"tea of {doc}"
            scores[queries[query], f"tea of {doc}"] = sign * far
            docs[doc] = 0.0

    def model(query: str, passages: list[str]) -> list[float]:
        return [scores[query, passage] for passage in passages]

    found = evenrank.probe(
        model,
        variants={kind: texts["own"]},
        placebos={} if changes.placebo is None else {kind: texts["placebo"]},
        collection=texts["original"],
        queries=queries,
        run=run,
    )
    return found[kind].finding.shown


def _text(word: str, passage: int, version: int, words: float, letters: float) -> str:
    """A text of 4 + ``words`` words and 100 + ``letters`` letters, that stands for a version of a passage."""
    parts = [word, f"p{passage}v{version}", *["y"] * round(3 + words)]
    text = " ".join(parts)
    return f"{text}{'y' * (100 + round(letters) - len(text))}"


# --- the cells --------------------------------------------------------------------------------------------------------


def _cells(
    rule: str,
    families: dict[str, Family],
    sizes: tuple[int, ...],
    *,
    made: Callable[[Family, int, np.random.Generator], Sample] = swapped,
    kind: Kind = "false",
) -> Iterator[Cell]:
    """Of the cells with few passages, those of equal groups go through the command too: it takes a while."""
    said = prefers if made in (swapped, unplaced) else differs
    name = "swap" if said is prefers else "mine"
    for family, one in families.items():
        for n in sizes:
            through = partial(probed, kind=name) if n in (20, 30) and one.share == 0.5 else None
            yield Cell(rule, family, n, partial(made, one, n), said, through, kind, quick=QUICK)


def _shares(name: str, **settings: object) -> dict[str, Family]:
    of = {share: f"{name}, {round(100 * share)}/{round(100 - 100 * share)}" for share in SHARES}
    return {label: replace(Family(share=share), **settings) for share, label in of.items()}  # type: ignore[arg-type]


_SWAP, _BARE, _OTHER, _ALONE = "swap", "swap without a placebo", "other edit", "other edit without a placebo"
_DAMAGED = {
    f"placebo damages {weaker} times, {name}": replace(Family(share=0.8, weaker=weaker), **settings)  # type: ignore[arg-type]
    for weaker in DAMAGE
    for name, settings in (
        ("alike in both directions", {}),
        ("twice away from the pole", {"uneven": 2.0}),
        ("little, twice away from the pole", {"uneven": 2.0, "damage": 0.08}),
    )
}
_LIKES = {
    **_shares("likes short text", likes="short"),
    **_shares("likes rare words", likes="rare"),
    **_shares("first sentences alone", likes="first"),
    **_shares("likes nothing, no damage", damage=0.0),
}
_SHAPES = {
    **_shares("shared passages", each=4, of_passage=0.2, of_query=0.2),
    **_shares("six passages a query", per_query=6, of_query=0.2),
    **_shares("unequal length", unequal=True, likes="short"),
    **_shares("unequal length, damaging .7", unequal=True, weaker=0.7),
}
_TAILS = {
    **_shares("t3", noise="t3", uneven=1.5),
    **_shares("lognormal", noise="lognormal", uneven=1.5),
    **_shares("half of the placebos", covered=0.5, uneven=1.5),
}
_LENGTH = {
    "length goes with direction, likes short": Family(tied=1.0, likes="short"),
    "length mostly goes with direction, likes short": Family(tied=0.9, likes="short"),
}
_UNEVEN = {
    **_shares("damage twice away from the pole", uneven=2.0),
    **_shares("no damage", damage=0.0),
}
_SPARED = {
    **_shares("placebo alone damages, twice away from the pole", spared=True, uneven=2.0),
    **_shares("placebo alone damages, changes of .05 sd", spared=True, uneven=2.0, deviation=0.05, of_passage=0.02),
}
_EDITS = {
    "normal": Family(),
    "t3": Family(noise="t3"),
    "lognormal": Family(noise="lognormal"),
    "likes short text": Family(likes="short"),
    "likes rare words": Family(likes="rare"),
    "first sentences alone": Family(likes="first"),
    "shared passages": Family(each=4, of_passage=0.2, of_query=0.2),
    "six passages a query": Family(per_query=6, of_query=0.2),
    "half of the placebos": Family(covered=0.5),
}
_TRUE = {
    "prefers .3, deviation 1": Family(prefers=0.3, deviation=1.0),
    "prefers .3, deviation .25": Family(prefers=0.3),
    "prefers .3, deviation .25, 80/20": Family(prefers=0.3, share=0.8),
    "prefers .3, deviation .25, placebo damages .7 times": Family(prefers=0.3, weaker=0.7, uneven=2.0),
    "prefers .3, deviation .25, likes short": Family(prefers=0.3, likes="short"),
}

CELLS: tuple[Cell, ...] = (
    *_cells(_SWAP, _LIKES, SIZES),
    *_cells(_SWAP, _DAMAGED, (30, 117, 215)),
    *_cells(_SWAP, _SHAPES, (30, 117, 215)),
    *_cells(_SWAP, _TAILS, (30, 117, 215)),
    *_cells(_SWAP, _LENGTH, (30, 117)),
    *_cells(_SWAP, _SPARED, (30, 117, 215)),
    *_cells(_SWAP, _UNEVEN, (30, 117, 215)),
    *_cells(_BARE, _UNEVEN, (30, 117, 215), made=unplaced),
    *_cells(_OTHER, _EDITS, (20, 50, 215), made=edited),
    *_cells(_ALONE, {name: one for name, one in _EDITS.items() if name != "half of the placebos"}, (20, 50, 215),
            made=alone),
    *_cells(_SWAP, _TRUE, (30, 50, 117, 215), kind="power"),
    *_cells(_OTHER, {"prefers .3, deviation 1": _TRUE["prefers .3, deviation 1"]}, (50, 117, 215), made=edited,
            kind="power"),
)  # fmt: skip
"""No cell is removed."""
