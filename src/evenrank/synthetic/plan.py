"""The plan of a collection: for every passage, in numbers, what will be in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .names import Names, make_names
from .planted import ATTRIBUTES, PER_ENTITY, Planted
from .templates import templates

Ints = npt.NDArray[np.int64]

SPLITS = {"train": 0.7, "valid": 0.1, "test": 0.2}
"""Shares of the entities asked about: all questions on an entity are in one split."""


@dataclass(frozen=True, slots=True)
class Plan:
    """N passages, Q questions, E entities. Passages are numbered as the collection orders them."""

    planted: Planted
    names: Names
    topic: Ints
    """[E] topic of the entity."""
    name: Ints
    """[E, 2] its given and family name, as numbers in the pools."""
    value: Ints
    """[E, A] random numbers from which the answer to each attribute is taken."""
    entity: Ints
    """[N] what the passage is about."""
    attribute: Ints
    """[N] which attribute its fact states."""
    query: Ints
    """[N] the question that it answers, -1 where nobody asks."""
    clicked: npt.NDArray[np.bool_]
    """[N] whether it is the one clicked passage of its question."""
    group: Ints
    """[N] its wording, as a number in GROUPS."""
    sentence: Ints
    """[N] number of the sentence that states the fact, from 0."""
    asked: Ints
    """[Q, 2] entity and attribute of each question."""
    split: Ints
    """[Q] split of each question, as a number in SPLITS."""


def make_plan(planted: Planted) -> Plan:
    """Draws everything except the wording of single sentences."""
    rng = np.random.default_rng([planted.seed, 0])
    kinds = templates()
    entities = -(-planted.passages // PER_ENTITY)
    names = make_names(rng, entities)
    topics = min(len(kinds.topics), max(4, entities // 8))
    pairs = rng.permutation(len(names.given) * len(names.family))[:entities]
    attributes = rng.permuted(np.tile(np.arange(ATTRIBUTES), (entities, 1)), axis=1)

    # Passages in blocks of one entity: groups of `relevant` passages on one attribute, the rest on the unasked one.
    entity, place_in_block = np.divmod(np.arange(planted.passages), PER_ENTITY)
    turn = np.minimum(place_in_block // planted.relevant, planted.groups)
    turn[entity >= planted.passages // PER_ENTITY] = planted.groups
    turn[turn == planted.groups] = ATTRIBUTES - 1
    attribute = attributes[entity, turn]

    # Question i asks the i-th entity of a random order, going round again with another attribute.
    whole = planted.passages // PER_ENTITY
    order = rng.permutation(whole)
    round_, place_in_order = np.divmod(np.arange(planted.query_count), whole)
    query_of = np.full((entities, ATTRIBUTES), -1)
    query_of[order[place_in_order], round_] = np.arange(planted.query_count)
    query = query_of[entity, turn]
    asked = np.stack([order[place_in_order], attributes[order[place_in_order], round_]], axis=1)
    clicked = (query >= 0) & (place_in_block % planted.relevant == 0)

    group = _labels(rng, planted, query >= 0, clicked)
    sentence = _fact_places(rng, planted, query >= 0)
    split = _splits(rng, min(whole, planted.query_count))[place_in_order]
    shuffled = rng.permutation(planted.passages)
    return Plan(
        planted=planted,
        names=names,
        topic=rng.permutation(entities) % topics,
        name=np.stack(np.divmod(pairs, len(names.family)), axis=1),
        value=rng.integers(0, 2**40, (entities, ATTRIBUTES)),
        entity=entity[shuffled],
        attribute=attribute[shuffled],
        query=query[shuffled],
        clicked=clicked[shuffled],
        group=group[shuffled],
        sentence=sentence[shuffled],
        asked=asked,
        split=split,
    )


def _labels(
    rng: np.random.Generator, planted: Planted, relevant: npt.NDArray[np.bool_], clicked: npt.NDArray[np.bool_]
) -> Ints:
    """[N] groups, meeting the quotas of each stratum."""
    group = np.full(len(relevant), 2)
    members = (clicked, relevant & ~clicked, ~relevant)
    for stratum, member in zip(planted.strata(), members, strict=True):
        rows = rng.permutation(np.flatnonzero(member))
        group[rows[: stratum.male]] = 0
        group[rows[stratum.male : stratum.male + stratum.female]] = 1
    return group


def _fact_places(rng: np.random.Generator, planted: Planted, relevant: npt.NDArray[np.bool_]) -> Ints:
    """[N] sentence numbers; evenly spread quantiles, so that the distribution is met closely at any size."""
    sentence = np.zeros(len(relevant), dtype=np.int64)
    for which in (True, False):
        rows = np.flatnonzero(relevant == which)
        mean = planted.mean_position(relevant=which)
        quantile = (rng.permutation(len(rows)) + 0.5) / max(len(rows), 1)
        near = min(mean, 1 - mean)
        place = 1 - (1 - quantile) ** (near / (1 - near))  # Beta(1, (1 - near) / near), which has this mean
        sentence[rows] = np.floor((place if mean <= 0.5 else 1 - place) * planted.sentences)
    return np.minimum(sentence, planted.sentences - 1)


def _splits(rng: np.random.Generator, entities: int) -> Ints:
    """[entities asked about] splits, in random order; each has at least one."""
    ends = np.cumsum(list(SPLITS.values()))
    number = np.searchsorted(ends, (np.arange(entities) + 0.5) / entities)
    return rng.permutation(np.minimum(number, len(SPLITS) - 1))
