"""The weight of a fairness term: fixed, trained, raised until a constraint is met, or chosen by validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from evenrank.io.errors import EvenrankError, shown

State = dict[str, object]


@dataclass
class FixedWeight:
    """L_rank + weight · L_fair, the weight a number [IBBR, an equation without a number]."""

    weight: float

    def weights(self, attributes: int) -> tuple[float, list[float]]:
        """The weight of the ranking loss and of the term of each attribute."""
        return 1.0, [self.weight] * attributes

    def update(self, rank: float, fair: Sequence[float | None], delta: Sequence[float]) -> None:
        """Called after each step: the ranking loss, and each attribute's term (None without a group) and ΔA-PRF."""

    def offset(self) -> float:
        """What the weighting adds to the loss, without a gradient for the ranker."""
        return 0.0

    def state(self) -> State:
        """Everything a resumed training needs, as JSON values."""
        return {}

    def restore(self, state: Mapping[str, object]) -> None:
        """Continues from what :meth:`state` returned. Raises ValueError, TypeError or LookupError for anything else."""


@dataclass
class AutoWeight(FixedWeight):
    """Uncertainty weighting (Kendall et al. 2018): L_rank e^{−a} + a + Σ (L_fair e^{−b} + b), a and b trained.

    Our reading of the paper's trainable weight: minimising over the weight alone would drive it to 0. a and each b stay
    within [−5, 5]; an attribute is skipped in steps whose batch lacks one of its groups. a and b are trained by Adam
    with learning rate ``rate``; their gradient, 1 − L e^{−b}, depends on the losses alone, so all processes agree.
    """

    weight: float = 1.0
    rate: float = 0.01
    values: dict[str, list[float]] = field(default_factory=dict)
    """For ``rank`` and for each attribute's number: the value, Adam's two moments and its steps."""

    def weights(self, attributes: int) -> tuple[float, list[float]]:
        """e^{−a} and e^{−b} of each attribute."""
        return self._factor("rank"), [self._factor(str(number)) for number in range(attributes)]

    def _factor(self, name: str) -> float:
        return float(np.exp(-self.values.get(name, [0.0])[0]))

    def update(self, rank: float, fair: Sequence[float | None], delta: Sequence[float]) -> None:
        """One step of Adam on a, and on the b of each attribute with both groups in the batch."""
        losses: dict[str, float | None] = {"rank": rank, **{str(i): value for i, value in enumerate(fair)}}
        for name, loss in losses.items():
            if loss is None:
                continue
            value, first, second, steps = self.values.get(name, [0.0, 0.0, 0.0, 0.0])
            gradient = 1 - loss * float(np.exp(-value))
            first, second, steps = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2, steps + 1
            step = first / (1 - 0.9**steps) / (float(np.sqrt(second / (1 - 0.999**steps))) + 1e-8)
            self.values[name] = [float(np.clip(value - self.rate * step, -5, 5)), first, second, steps]

    def offset(self) -> float:
        """a plus every b."""
        return sum(value[0] for value in self.values.values())

    def state(self) -> State:
        """The values and Adam's moments."""
        return {"values": self.values}

    def restore(self, state: Mapping[str, object]) -> None:
        """Continues with these values."""
        values = state["values"]
        if not isinstance(values, Mapping):
            raise TypeError("values: expected a table")
        self.values = {name: list(value) for name, value in values.items()}


@dataclass
class DualWeight(FixedWeight):
    """The constraint |ΔA-PRF| ≤ ``target`` by dual ascent: weight ← max(0, weight + rate · (|ΔA-PRF| − target)).

    ΔA-PRF is a running mean over steps (decay ``memory``), since noise inflates the absolute value of a single batch.
    Each attribute has its own weight, which starts at ``weight``.
    """

    weight: float = 0.0
    target: float = 0.01
    rate: float = 0.1
    memory: float = 0.9
    now: list[float] = field(default_factory=list)
    means: list[list[float]] = field(default_factory=list)
    """For each attribute the running sums of ΔA-PRF and of its weights."""

    def weights(self, attributes: int) -> tuple[float, list[float]]:
        """1 and the weight of each attribute."""
        if not self.now:
            self.now = [self.weight] * attributes
            self.means = [[0.0, 0.0] for _ in range(attributes)]
        return 1.0, list(self.now)

    def update(self, rank: float, fair: Sequence[float | None], delta: Sequence[float]) -> None:
        """Raises or lowers the weight of each attribute whose ΔA-PRF is defined."""
        for number, value in enumerate(delta):
            if np.isnan(value):
                continue
            total, count = self.means[number]
            self.means[number] = [self.memory * total + value, self.memory * count + 1]
            gap = abs(self.means[number][0] / self.means[number][1]) - self.target
            self.now[number] = max(0.0, self.now[number] + self.rate * gap)

    def state(self) -> State:
        """The weights and the running means."""
        return {"now": self.now, "means": self.means}

    def restore(self, state: Mapping[str, object]) -> None:
        """Continues with these weights."""
        now, means = state["now"], state["means"]
        if not (isinstance(now, Sequence) and isinstance(means, Sequence)):
            raise TypeError("now, means: expected lists")
        self.now, self.means = list(now), [list(pair) for pair in means]


Weight = float | Literal["auto", "dual"] | FixedWeight
"""A number, ``"auto"`` (:class:`AutoWeight`), ``"dual"`` (:class:`DualWeight`), or one of the classes."""


def as_weight(weight: Weight) -> FixedWeight:
    """The object for a weight. Raises EvenrankError for a number below 0 and for another name."""
    if isinstance(weight, FixedWeight):
        return weight
    if weight == "auto":
        return AutoWeight()
    if weight == "dual":
        return DualWeight()
    if isinstance(weight, str) or not weight >= 0:
        raise EvenrankError(f'`weight`: expected 0 or more, "auto" or "dual", found {shown(weight)}')
    return FixedWeight(float(weight))


KEPT = 0.95
"""The share of the utility that a fairer choice must keep."""


def keeps_enough(utility: float, best: float, kept: float = KEPT) -> bool:
    """Whether a utility is at least ``kept`` of the best."""
    return utility >= min(best, kept * best)


def best_weight(utility: Sequence[float], bias: Sequence[float], without: float, *, kept: float = KEPT) -> int | None:
    """The "Best" weight of a grid: lowest validation |ΔA-PRF| among the weights that keep ``kept`` of the utility.

    ``utility`` and ``bias`` [W]: validation MRR and |ΔA-PRF| under each weight; ``without``: MRR without the term.
    Returns the position of the weight (of equal bias the most useful, then the first), or None if no weight keeps
    enough. Utility is a constraint because a large weight that destroys the ranking has a small |ΔA-PRF| too. Training
    chooses among checkpoints in the same way, with the best of them for ``without``.
    """
    allowed = [i for i, value in enumerate(utility) if keeps_enough(value, without, kept) and not np.isnan(bias[i])]
    return min(allowed, key=lambda i: (bias[i], -utility[i]), default=None)
