"""What a scan names: engines that lose sentences by chance alone, and losses that are planted.

What an engine finds is drawn for each sentence; the rest of its lists are other passages by chance. So no cause may be
named, but for "not found otherwise", which is true.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import evenrank
from benchmarks.planted import generated
from evenrank.files.types import Array
from evenrank.probes.losses import rank_to_find

from .cell import Cell

NAMED, FIRST = "a loss has a cause", "the largest loss is first"
_LIST = 20


@dataclass(frozen=True, slots=True)
class World:
    """Passages, their queries, and the number of each query's passage [Q]."""

    texts: pl.DataFrame
    queries: pl.DataFrame
    own: Array


@functools.cache
def world(number: int) -> World:
    """So many passages, all of which are drawn."""
    texts = generated(number).select("doc_id", "text")
    queries = evenrank.scan_queries(texts)
    numbers = texts.select("doc_id").with_row_index("number")
    own = queries.select("doc_id").join(numbers, on="doc_id", how="left", maintain_order="left")["number"]
    return World(texts, queries, own.to_numpy().astype(np.int64))


@dataclass(frozen=True, slots=True)
class Drawn:
    """A world, whether each query finds its passage [Q], and passages that are in no list."""

    of: World
    found: Array
    absent: Array


def chance(number: int, rng: np.random.Generator, level: float, spread: float) -> Drawn:
    """Sentences are found by a level of the logit and what their passage adds, wherever they stand."""
    of = world(number)
    at = level + spread * rng.standard_normal(number)[of.own]
    return Drawn(of, rng.random(len(of.own)) < 1 / (1 + np.exp(-at)), np.zeros(0, np.int64))


def late(number: int, rng: np.random.Generator) -> Drawn:
    """Half of what stands behind the first third is missed."""
    drawn = chance(number, rng, 3.5, 0.5)
    behind = (drawn.of.queries["place"].fill_null(0) > 1 / 3).to_numpy()
    return Drawn(drawn.of, drawn.found & ~(behind & (rng.random(len(behind)) < 0.5)), drawn.absent)


def missing(number: int, rng: np.random.Generator) -> Drawn:
    """5% of the passages are not in the index, and as many sentences are lost by chance."""
    drawn = chance(number, rng, 3.0, 0.5)
    return Drawn(drawn.of, drawn.found, rng.choice(number, number // 20, replace=False))


def losses(drawn: Drawn, rng_seed: int = 5) -> list[str]:
    """The causes that the command's function names, the largest first."""
    of, rng = drawn.of, np.random.default_rng(rng_seed)
    number = of.texts.height
    lists = np.argsort(rng.random((len(of.own), number)), axis=1)[:, : _LIST + 1]
    # The passage itself stands first, or behind those that count as found; nine in ten times at all.
    lists = np.where(lists == of.own[:, None], lists[:, -1:], lists)[:, :_LIST]
    at = np.where(drawn.found, 0, rank_to_find(number) + 2)
    there = drawn.found | (rng.random(len(at)) < 0.9)
    lists[np.flatnonzero(there), at[there]] = of.own[there]
    query, rank = np.nonzero(~np.isin(lists, drawn.absent))
    table = pl.DataFrame(
        {
            "query_id": of.queries["query_id"].gather(query),
            "doc_id": of.texts["doc_id"].gather(lists[query, rank]),
            "score": -rank.astype(np.float64),
        }
    )
    result = evenrank.scan(of.texts, run=evenrank.Run.from_table(table, "drawn"))
    return [loss.cause for loss in result.named]


def _named(drawn: Drawn) -> bool:
    return any(cause != "not found otherwise" for cause in losses(drawn))


def _first(drawn: Drawn, causes: tuple[str, ...]) -> bool:
    return losses(drawn)[:1] in [[cause] for cause in causes]


def _cells() -> Iterator[Cell]:
    def of(draw: Callable[..., Drawn], number: int, *given: float) -> Callable[[np.random.Generator], Drawn]:
        return lambda rng: draw(number, rng, *given)

    few: Any = {"draws": 100, "quick": 40}
    families = {"half missed": (0.0, 0.0), "few missed": (3.5, 1.0), "by passage": (0.0, 2.5)}
    for number in (49, 100, 300):
        for family, (level, spread) in families.items():
            yield Cell(NAMED, family, number, of(chance, number, level, spread), _named, **few)
    power: Any = {"kind": "power", **few}
    for family, draw, causes in (
        ("5% not in the index", missing, ("not in the index",)),
        ("half missed behind the first third", late, ("late", "cut off")),
    ):
        yield Cell(FIRST, family, 300, of(draw, 300), functools.partial(_first, causes=causes), **power)


CELLS = tuple(_cells())
