"""Wordings planted by question: both wordings of every relevant passage, and questions that group words decide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .synthetic_config import SyntheticConfig
from .synthetic_templates import templates

Ints = npt.NDArray[np.int64]
NEITHER = 2
"""The index of neutral wording in GROUPS, and of a question that group words do not decide."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The passages of a collection, numbered entity by entity."""

    entity: Ints
    """[N]"""
    turn: Ints
    """[N] number of the passage's attribute in its entity's order."""
    query: Ints
    """[N] the question that it answers, -1 if none."""
    place: Ints
    """[N] its number among the passages with its attribute, from 0."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """What group words decide, of Q questions and N passages."""

    decided: Ints
    """[Q] the group that the question asks about; ``NEITHER``: not decided."""
    person: Ints
    """[Q] the number of the fact about a person that such a question asks for."""
    counterpart: Ints
    """[N] the question whose fact the passage tells of the other group, -1 if none."""

    @classmethod
    def none(cls, config: SyntheticConfig) -> Pairs:
        """Without such questions."""
        nobody = np.full(config.query_count, NEITHER)
        return cls(nobody, np.zeros_like(nobody), np.full(config.passages, -1))


def make_pairs(
    config: SyntheticConfig, blocks: Blocks, asked: Ints, split: Ints, splits: tuple[str, ...]
) -> tuple[Pairs, Ints, npt.NDArray[np.bool_]]:
    """The questions that group words decide, the wording [N] of every passage, and which are clicked [N].

    ``asked`` [Q, 2]: entity and turn of each question; ``split`` [Q]: its split, as an index into ``splits``. Every
    quota is met in each split, to within a question.
    """
    rng = np.random.default_rng([config.seed, 3])
    count = config.query_count
    order = rng.permutation(count)
    order = order[np.argsort(split[order], kind="stable")]
    chosen = _spread(order, config.group_query_count)
    decided = np.full(count, NEITHER)
    decided[chosen] = np.arange(len(chosen)) % 2
    rest = order[decided[order] == NEITHER]
    gendered = _spread(rest, config.gendered_query_count)

    # The clicked passage of a question: the first of its passages is male, the second female.
    second = np.zeros(count, dtype=np.int64)
    for number, name in enumerate(splits):
        of_split = gendered[split[gendered] == number]
        male = round(len(of_split) * config.click_share(name))
        second[rng.permutation(of_split)[male:]] = 1

    query, relevant = blocks.query, blocks.query >= 0
    worded = np.zeros(count, dtype=bool)
    worded[gendered] = True
    group = np.full(config.passages, NEITHER)
    group[relevant] = np.where(worded[query[relevant]], blocks.place[relevant] % 2, decided[query[relevant]])
    clicked = relevant & (blocks.place == second[query])

    # The passages of the last attributes of its entity tell of the other group.
    counterpart = np.full(config.passages, -1)
    table = np.full((int(blocks.entity.max()) + 1, config.groups + 1), -1)
    table[asked[chosen, 0], config.groups - 1 - asked[chosen, 1]] = chosen
    counterpart = table[blocks.entity, np.minimum(blocks.turn, config.groups)]
    told = counterpart >= 0
    group[told] = 1 - decided[counterpart[told]]

    others = config.others()
    rows = rng.permutation(np.flatnonzero(~relevant & ~told))
    group[rows[: others.male]] = 0
    group[rows[others.male : others.male + others.female]] = 1
    person = rng.integers(len(templates().people_ask), size=count)
    return Pairs(decided, person, counterpart), group, clicked


def _spread(order: Ints, count: int) -> Ints:
    """``count`` of the rows, evenly spaced."""
    steps = np.arange(len(order) + 1) * count // max(len(order), 1)
    return order[steps[1:] > steps[:-1]]
