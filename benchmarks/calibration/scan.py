"""What a scan says of parts and groups: retrievers that find every part of a passage alike, but for what is planted.

The passages are made of sentences that could stand anywhere, some of them in families of near copies, so that BM25 does
not find all either. What a planted retriever finds is drawn for each query.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank.files.types import Array
from evenrank.probes.known_items import KnownItems
from evenrank.probes.retrieving import Passages, Searching
from evenrank.probes.scan import AT, Asked, contrasts_of, own_ranks
from evenrank.search.index_folder import Encoding

from .cell import Cell

DEPTH, GROUP = "a part is found less often", "a group is found less often"
CHANGE, CUT = "one retriever finds more", "what is cut off is found less often"
_WORDS = 12
_FAMILY = 30
"""Near copies of a passage: so many that BM25 finds some sentences beyond the first ten."""
PASSAGES = 600


def made_passages(sentences: tuple[int, ...], seed: int, *, shared_last: bool = False) -> pl.DataFrame:
    """``doc_id``, ``text``: 600 passages whose sentences could stand anywhere, in families that share two thirds of
    them.

    ``sentences``: how many the passages of each family have, in turn. ``shared_last``: more the later they stand, so
    that BM25 finds less of them.
    """
    rng = np.random.default_rng(seed)
    rows: list[str] = []
    while len(rows) < PASSAGES:
        count = sentences[len(rows) // _FAMILY % len(sentences)]
        family = [_sentence(rng) for _ in range(count)]
        shared = np.linspace(0.3, 0.95, count) if shared_last else np.full(count, 0.66)
        for _ in range(_FAMILY):
            own = rng.random(count) >= shared
            rows.append(
                " ".join(_sentence(rng) if new else _alike(rng, one) for new, one in zip(own, family, strict=True))
            )
    return pl.DataFrame({"doc_id": [f"p{row}" for row in range(PASSAGES)], "text": rows})


def _sentence(rng: np.random.Generator) -> str:
    chances = 1 / np.arange(3, 4003) ** 0.7
    words = rng.choice(len(chances), _WORDS, p=chances / chances.sum())
    return " ".join(f"Wo{word}rd" for word in words) + "."


def _alike(rng: np.random.Generator, sentence: str) -> str:
    """The words of a sentence in another order: to BM25 the same, and yet another sentence."""
    return " ".join(rng.permutation(sentence.removesuffix(".").split())) + "."


@dataclass(frozen=True, slots=True)
class World:
    """Passages, their queries, and whether BM25 finds each [Q]."""

    texts: pl.DataFrame
    items: KnownItems
    bm25: Array

    @property
    def passages(self) -> int:
        """How many passages have queries."""
        return self.items.queries["doc_id"].n_unique()

    def asked(self, groups: Array | None = None) -> Asked:
        """The parts of the queries; ``groups`` [P] of the passages, 0 or 1 (None: in turn)."""
        return Asked.of(self.items.queries, np.arange(self.passages) % 2 if groups is None else groups, ("a", "b"))


@functools.cache
def world(number: int, sentences: tuple[int, ...] = (8,), shared_last: bool = False) -> World:
    """The queries of so many of the passages."""
    texts = made_passages(sentences, 11, shared_last=shared_last)
    passages = Passages.of(texts, True)
    items = passages.items(number, 5, 0)
    asked = items.queries.select("query_id", "text")
    run = Searching(passages, asked, True, 10, Encoding(), None, True).bm25().run
    return World(texts, items, (own_ranks(run, items.queries, passages, None)[0] <= AT).astype(float))


@dataclass(frozen=True, slots=True)
class Drawn:
    """A world, whether planted retrievers find each query's passage ([Q] each), and groups [P] or which are read."""

    of: World
    found: tuple[Array, ...]
    groups: Array | None = None
    read: Array | None = None


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def alike(of: World, rng: np.random.Generator, level: float, spread: float) -> Array:
    """Whether each query's passage is found: by a level of the logit and what the passage adds, wherever it stands."""
    passage = of.asked().passage
    chance = _logistic(level + spread * rng.standard_normal(of.passages)[passage])
    return (rng.random(len(passage)) < chance).astype(float)


def by_depth(of: World, rng: np.random.Generator, level: float, spread: float, *, fall: float = 0.0) -> Drawn:
    """Found alike at every depth, but for ``fall``, of the share, from the first to the last tenth."""
    found = alike(of, rng, level, spread)
    late = of.asked().tenth / 9
    return Drawn(of, (found * (rng.random(len(found)) >= fall * late),))


def as_bm25(of: World, rng: np.random.Generator) -> Drawn:
    """Found as often as BM25 finds the same parts of other passages."""
    queries = of.items.queries
    passage, place = of.asked().passage, queries.with_columns(n=pl.int_range(pl.len()).over("doc_id"))["n"]
    most = int(place.max() or 0) + 1  # type: ignore[arg-type]
    table = np.full((of.passages, most), np.nan)
    table[passage, place.to_numpy()] = of.bm25
    whole = np.flatnonzero(~np.isnan(table).any(axis=1))
    turned = table[rng.choice(whole, of.passages)]
    return Drawn(of, (turned[passage, place.to_numpy()],))


def by_group(
    of: World,
    rng: np.random.Generator,
    share: float,
    *,
    gap: float = 0.0,
    confounded: bool = False,
    spread: float = 1.5,
) -> Drawn:
    """Groups that are found alike, but for ``gap``; ``confounded``: the second has longer passages, and those, and
    late parts, are found less often."""
    asked = of.asked()
    length = np.zeros(of.passages, int)
    length[asked.passage] = asked.length
    inside = rng.random(of.passages) < (0.1 + 0.35 * length if confounded else share)
    level = 1.5 - 1.2 * length[asked.passage] - 1.5 * asked.tenth / 9 if confounded else 0.5
    chance = _logistic(level + 1.5 * rng.standard_normal(of.passages)[asked.passage])
    found = (rng.random(len(chance)) < chance * (1 - gap * inside[asked.passage])).astype(float)
    return Drawn(of, (found,), inside.astype(np.int64))


def cut_off(of: World, rng: np.random.Generator, level: float, *, fall: float = 0.0) -> Drawn:
    """Parts that are cut off are found as those that are read, but for ``fall``; where passages are cut varies."""
    asked = of.asked()
    edge = rng.integers(2, 9, of.passages)
    read = asked.tenth < edge[asked.passage]
    return Drawn(of, (alike(of, rng, level, 1.5) * (read | (rng.random(len(read)) >= fall)),), read=read)


def exchanged(of: World, rng: np.random.Generator, *, better: float = 0.0) -> Drawn:
    """Two retrievers that find alike, exchanged by passage at random; ``better``: the first finds more."""
    passage = of.asked().passage
    one, other = alike(of, rng, 0.0, 1.0), alike(of, rng, 1.0, 2.0)
    turn = rng.random(of.passages)[passage] < 0.5
    first, second = np.where(turn, one, other), np.where(turn, other, one)
    return Drawn(of, (np.maximum(first, rng.random(len(first)) < better), second))


def _contrast(drawn: Drawn, by: str) -> bool:
    names = ("planted", "other")[: len(drawn.found)]
    asked = drawn.of.asked(drawn.groups)
    found = contrasts_of(names, drawn.found, drawn.of.bm25, asked, [drawn.read, None])
    return any(one.by == by and one.verdict == "shown" and one.name == "planted" for one in found)


def _run(of: World, found: Array) -> pl.DataFrame:
    """A run that has each query's passage first where it is found, else another that shares no sentence with it."""
    queries = of.items.queries
    ids = of.texts["doc_id"].to_list()
    place = {name: row for row, name in enumerate(ids)}
    far = [ids[(place[own] + len(ids) // 2) % len(ids)] for own in queries["doc_id"]]
    docs = [own if yes else other for own, other, yes in zip(queries["doc_id"], far, found, strict=True)]
    return pl.DataFrame({"query_id": queries["query_id"], "doc_id": docs, "score": 1.0})


def _by_command(drawn: Drawn, by: str) -> bool:
    ids = drawn.of.items.queries["doc_id"].unique(maintain_order=True)
    groups = np.arange(len(ids)) % 2 if drawn.groups is None else drawn.groups
    own = pl.DataFrame({"doc_id": ids, "group": ["ab"[one] for one in groups]})
    # A file of labels has both groups, whatever the passages drawn have.
    rest = drawn.of.texts.select("doc_id").join(own, on="doc_id", how="anti")
    labels = pl.concat([own, rest.with_columns(group=pl.Series(["ab"[row % 2] for row in range(rest.height)]))])
    run, *others = (
        evenrank.Run.from_table(_run(drawn.of, found), name)
        for found, name in zip(drawn.found, ("planted", "other"), strict=False)
    )
    found = evenrank.scan(
        drawn.of.texts,
        run=run,
        against=others[0] if others else None,
        sample=drawn.of.items.passages,
        k=10,
        labels=labels,
        poles="a,b",
    )
    return any(one.by == by and one.verdict == "shown" and one.name == "planted" for one in found.contrasts)


def bm25_says(seed: int) -> bool:
    """Whether a scan of BM25 shows a difference by depth, of 60 passages that were drawn."""
    found = evenrank.scan(world(400).texts, model="bm25", sample=60, seed=seed)
    return any(one.by == "depth" and one.verdict == "shown" for one in found.contrasts)


def _cells() -> Iterator[Cell]:
    def cell(rule: str, by: str, family: str, n: int, draw: Callable[..., Drawn], **more: Any) -> Cell:
        command = None if by == "read" else functools.partial(_by_command, by=by)
        return Cell(rule, family, n, lambda rng: draw(rng), functools.partial(_contrast, by=by), command, **more)

    def of(n: int, draw: Callable[..., Drawn], /, *given: Any, **more: Any) -> Callable[[np.random.Generator], Drawn]:
        sentences = more.pop("sentences", (8,))
        common = more.pop("shared_last", False)
        return lambda rng: draw(world(n, sentences, common), rng, *given, **more)

    spreads = {"half found": (0.0, 0.0), "few found": (-3.0, 1.0), "nearly all": (3.5, 1.0), "by passage": (0.0, 2.5)}
    for n in (20, 50, 117, 400):
        for family, (level, spread) in spreads.items():
            yield cell(DEPTH, "depth", family, n, of(n, by_depth, level, spread))
        yield cell(DEPTH, "depth", "falls as BM25's", n, of(n, as_bm25, shared_last=True))
        for share in (0.5, 0.2, 0.05):
            yield cell(GROUP, "group", f"{share:.0%} of the passages", n, of(n, by_group, share))
        longer = of(n, by_group, 0.5, confounded=True, sentences=(4, 8, 16))
        yield cell(GROUP, "group", "longer passages", n, longer)
        yield cell(CUT, "read", "half found", n, of(n, cut_off, 0.0))
        yield cell(CUT, "read", "few found", n, of(n, cut_off, -3.0))
        yield cell(CHANGE, "retriever", "exchanged by passage", n, of(n, exchanged))
    yield Cell(DEPTH, "BM25 itself", 60, lambda rng: int(rng.integers(2**31)), bm25_says, draws=1000, quick=40)
    power: Any = {"kind": "power"}
    yield cell(DEPTH, "depth", "a third less at the end", 117, of(117, by_depth, 0.0, 1.0, fall=0.33), **power)
    yield cell(GROUP, "group", "a third less", 400, of(400, by_group, 0.5, gap=0.33), **power)
    yield cell(CUT, "read", "a third less", 117, of(117, cut_off, 0.0, fall=0.33), **power)
    yield cell(CHANGE, "retriever", "a fifth of the rest won", 117, of(117, exchanged, better=0.2), **power)


CELLS = tuple(_cells())
