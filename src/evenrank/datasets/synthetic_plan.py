"""The plan of a collection: the content of every passage, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .synthetic_config import ATTRIBUTES, PER_ENTITY, SyntheticConfig
from .synthetic_names import Names, make_names
from .synthetic_pairs import Blocks, Pairs, make_pairs
from .synthetic_templates import templates

Ints = npt.NDArray[np.int64]

SPLITS = {"train": 0.7, "valid": 0.1, "test": 0.2}
"""Shares of the entities asked about; all questions about an entity are in one split."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The content of N passages about E entities, with A attributes each, and of Q questions.

    Passages are numbered in the order of the collection.
    """

    config: SyntheticConfig
    names: Names
    topic: Ints
    """[E] topic of the entity."""
    name: Ints
    """[E, 2] its given and family name, as indexes into the pools."""
    value: Ints
    """[E, A] random numbers that select the answer for each attribute."""
    entity: Ints
    """[N] the entity that the passage is about."""
    attribute: Ints
    """[N] the attribute that its fact states."""
    query: Ints
    """[N] the question that it answers, -1 if none."""
    clicked: npt.NDArray[np.bool_]
    """[N] whether it is the one clicked passage of its question."""
    group: Ints
    """[N] its wording, as an index into GROUPS."""
    sentence: Ints
    """[N] number of the sentence that states the fact, from 0."""
    asked: Ints
    """[Q, 2] entity and attribute of each question."""
    split: Ints
    """[Q] split of each question, as an index into SPLITS."""
    pairs: Pairs
    """What group words decide."""


def make_plan(config: SyntheticConfig) -> Plan:
    """Draws everything except the wording of single sentences."""
    rng = np.random.default_rng([config.seed, 0])
    kinds = templates()
    entities = -(-config.passages // PER_ENTITY)
    names = make_names(rng, entities)
    wanted = {kinds.kinds.index(kind) for kind in config.kinds or kinds.kinds}
    allowed = np.flatnonzero([topic.kind in wanted for topic in kinds.topics])
    topics = min(len(allowed), max(4, entities // 8))
    pairs = rng.permutation(len(names.given) * len(names.family))[:entities]
    attributes = rng.permuted(np.tile(np.arange(ATTRIBUTES), (entities, 1)), axis=1)

    # Passages in blocks of one entity: groups of `relevant` passages on one attribute, the rest on the unasked one.
    entity, place_in_block = np.divmod(np.arange(config.passages), PER_ENTITY)
    turn = np.minimum(place_in_block // config.relevant, config.groups)
    turn[entity >= config.passages // PER_ENTITY] = config.groups
    turn[turn == config.groups] = ATTRIBUTES - 1
    attribute = attributes[entity, turn]

    # Question i is about the i-th entity of a random order; a second round uses another attribute.
    whole = config.passages // PER_ENTITY
    order = rng.permutation(whole)
    round_, place_in_order = np.divmod(np.arange(config.query_count), whole)
    query_of = np.full((entities, ATTRIBUTES), -1)
    query_of[order[place_in_order], round_] = np.arange(config.query_count)
    query = query_of[entity, turn]
    asked = np.stack([order[place_in_order], attributes[order[place_in_order], round_]], axis=1)
    clicked = (query >= 0) & (place_in_block % config.relevant == 0)

    group = None if config.paired else _wordings(rng, config, query >= 0, clicked)
    sentence = _fact_sentences(rng, config, query >= 0)
    split = _splits(rng, min(whole, config.query_count))[place_in_order]
    planted = Pairs.none(config)
    if group is None:
        blocks = Blocks(entity, turn, query, place_in_block % config.relevant)
        turns = np.stack([order[place_in_order], round_], axis=1)
        planted, group, clicked = make_pairs(config, blocks, turns, split, tuple(SPLITS))
    shuffled = rng.permutation(config.passages)
    planted = replace(planted, counterpart=planted.counterpart[shuffled])
    plan = Plan(
        config=config,
        names=names,
        topic=allowed[rng.permutation(entities) % topics],
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
        pairs=planted,
    )
    told = np.flatnonzero(plan.pairs.counterpart >= 0)
    own = plan.asked[plan.pairs.counterpart[told]]
    # The next value, so that the answer is another one.
    plan.value[plan.entity[told], plan.attribute[told]] = plan.value[own[:, 0], own[:, 1]] + 1
    return plan


def _wordings(
    rng: np.random.Generator, config: SyntheticConfig, relevant: npt.NDArray[np.bool_], clicked: npt.NDArray[np.bool_]
) -> Ints:
    """[N] groups that meet the quotas of each stratum."""
    group = np.full(len(relevant), 2)
    members = (clicked, relevant & ~clicked, ~relevant)
    for stratum, member in zip(config.strata(), members, strict=True):
        rows = rng.permutation(np.flatnonzero(member))
        group[rows[: stratum.male]] = 0
        group[rows[stratum.male : stratum.male + stratum.female]] = 1
    return group


def _fact_sentences(rng: np.random.Generator, config: SyntheticConfig, relevant: npt.NDArray[np.bool_]) -> Ints:
    """[N] sentence numbers, from evenly spaced quantiles, so that the distribution is met closely at any size."""
    sentence = np.zeros(len(relevant), dtype=np.int64)
    for which in (True, False):
        rows = np.flatnonzero(relevant == which)
        mean = config.mean_position(relevant=which)
        quantile = (rng.permutation(len(rows)) + 0.5) / max(len(rows), 1)
        sentence[rows] = np.floor(beta_place(quantile, mean) * config.sentences)
    return np.minimum(sentence, config.sentences - 1)


def beta_place(quantile: npt.NDArray[np.float64], mean: float) -> npt.NDArray[np.float64]:
    """Places in 0 … 1 from quantiles, of the Beta distribution that has this mean and falls from the nearer end."""
    near = min(mean, 1 - mean)
    place = 1 - (1 - quantile) ** (near / (1 - near))  # Beta(1, (1 - near) / near)
    return np.asarray(place if mean <= 0.5 else 1 - place)


def _splits(rng: np.random.Generator, entities: int) -> Ints:
    """[entities asked about] splits, in random order; each split has at least one."""
    ends = np.cumsum(list(SPLITS.values()))
    number = np.searchsorted(ends, (np.arange(entities) + 0.5) / entities)
    return rng.permutation(np.minimum(number, len(SPLITS) - 1))
