"""Which checkpoint becomes the model: utility alone, utility and bias together, or the last.

Utility alone would choose a checkpoint from before a fairness term or an adversary acted. With a term, the joint rule
takes the least validation |ΔA-PRF| among the checkpoints that keep 95% of the best utility. Nothing cheap measures an
adversary's success while it trains, so the last checkpoint is kept then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

from evenrank.io import EvenrankError
from evenrank.io.wording import counted
from evenrank.mitigation.ibbr_weights import KEPT, best_weight, keeps_enough

from .validation import Validation

Keep = Literal["best", "fair", "last"]
Rule = Literal["utility", "joint", "last"]


@dataclass(frozen=True, slots=True)
class Validated:
    """One validation: the step, the utility, and the largest |ΔA-PRF| over the attributes (NaN if not measured)."""

    step: int
    utility: float
    bias: float = math.nan


def largest_gap(delta: Mapping[str, float | None]) -> float:
    """The largest |ΔA-PRF| over the attributes; NaN if there is none, or one is unknown."""
    values = [math.nan if value is None else abs(value) for value in delta.values()]
    return float(np.max(values)) if values else math.nan


def chosen(seen: Sequence[Validated], rule: Rule) -> Validated | None:
    """The validation whose checkpoint the rule chooses (of equal ones the first); None leaves the last.

    ``joint``: least bias among those with at least 95% of the best utility seen.
    """
    known = [one for one in seen if not math.isnan(one.utility)]
    if rule == "last" or not known:
        return None
    best = max(known, key=lambda one: one.utility)
    if rule == "utility":
        return best
    found = best_weight([one.utility for one in known], [one.bias for one in known], best.utility)
    return None if found is None else known[found]


def needed(seen: Sequence[Validated], rule: Rule) -> set[int]:
    """The steps whose checkpoints are chosen now, or may be after further validations.

    A better utility raises what the joint rule asks for: the next in line are those that no other one beats in utility
    and bias.
    """
    now = chosen(seen, rule)
    if now is None:
        return set()
    if rule == "utility":
        return {now.step}
    found, highest = set(), -math.inf
    # What is less useful than the chosen one is either more biased too, or not useful enough already.
    for one in sorted((one for one in seen if one.utility >= now.utility), key=lambda one: (one.bias, -one.utility)):
        if one.utility > highest:
            found.add(one.step)
            highest = one.utility
    return found


def stale(seen: Sequence[Validated], rule: Rule) -> int:
    """How many validations there were since the last that improved: the best utility, or under the joint rule the least
    bias among those with enough utility."""
    since = 0
    for count, new in enumerate(seen):
        before = seen[:count]
        best, then = chosen(before, "utility"), chosen(before, rule)
        raised = not math.isnan(new.utility) and (best is None or new.utility > best.utility)
        fairer = rule == "joint" and (then is None or new.bias < then.bias) and chosen([*before, new], rule) is new
        since = 0 if raised or fairer else since + 1
    return since


def rule_of(keep: Keep, validation: Validation | None, *, term: bool, adversary: bool) -> tuple[Rule, str]:
    """The rule that ``training.keep`` stands for, and in words why it is the last checkpoint, if it is.

    ``term``: whether a fairness term of a weight above 0 trains. Raises EvenrankError for ``fair`` where the validation
    does not measure |ΔA-PRF|.
    """
    lacking = _unmeasured(validation)
    if keep == "fair":
        if lacking:
            raise EvenrankError(f'`keep`: "fair" needs |ΔA-PRF|, but {lacking}')
        return "joint", ""
    if validation is None:
        return "last", "the last, as there is no validation"
    if keep == "last":
        return "last", "the last, as asked"
    if adversary:
        return "last", "the last, as utility alone would choose one from before the adversary acts"
    if term and lacking:
        return "last", f"the last, as utility alone would choose one from before the term acts, and {lacking}"
    return ("joint" if term else "utility"), ""


def _unmeasured(validation: Validation | None) -> str:
    """Why a validation does not measure |ΔA-PRF|, or nothing if it does."""
    if validation is None:
        return "there is no validation"
    if not validation.attributes:
        return "the validation has no attributes"
    # Re-ranking does not change which queries have a clicked passage of a group.
    undefined = [name for name, value in validation.delta_aprf(validation.run).items() if math.isnan(value)]
    return f"the validation has no clicked passages of both groups of {', '.join(undefined)}" if undefined else ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The checkpoint that became the model.

    Its step and the rule that chose it; ``value`` and ``abs_delta_aprf``: its utility and bias in validation;
    ``best_value``: the best utility; ``validations``: how many there were; ``why``: all of it in words.
    """

    step: int
    rule: Rule
    value: float | None
    abs_delta_aprf: float | None
    best_value: float | None
    validations: int
    why: str


class CheckpointChooser(TrainerCallback, ExportableState):
    """All validations so far, which every checkpoint keeps in its state, and what the rule makes of them.

    ``why``: in words, why it is the last checkpoint; ``measure``: the name of the utility.
    """

    def __init__(self, rule: Rule, why: str, measure: str, patience: int) -> None:
        self.rule = rule
        self.why = why
        self.measure = measure
        self.patience = patience
        self.seen: list[Validated] = []

    def state(self) -> dict[str, object]:
        """The validations, as JSON values."""
        return {"args": {}, "attributes": {"seen": [[one.step, one.utility, one.bias] for one in self.seen]}}

    def restore(self, state: Mapping[str, object]) -> None:
        """Continues from what :meth:`state` returned. Raises ValueError, TypeError or LookupError for anything else."""
        attributes = state["attributes"]
        if not isinstance(attributes, Mapping):
            raise TypeError("attributes: expected a table")
        self.seen = [Validated(int(step), float(value), float(bias)) for step, value, bias in attributes["seen"]]

    def note(self, step: int, utility: float, bias: float) -> None:
        """Takes in the validation of a step."""
        self.seen.append(Validated(step, utility, bias))

    @property
    def now(self) -> Validated | None:
        """What is chosen so far; None: the last, whichever that will be."""
        return chosen(self.seen, self.rule)

    @property
    def needed(self) -> set[int]:
        """The steps whose checkpoints must stay."""
        return needed(self.seen, self.rule)

    @property
    def is_over(self) -> bool:
        """Whether patience has ended the training."""
        return self.rule != "last" and stale(self.seen, self.rule) >= self.patience

    def choice(self, last: int) -> Choice:
        """What is chosen if ``last`` was the training's last step."""
        found, best = self.now, chosen(self.seen, "utility")
        step = last if found is None else found.step
        at = next((one for one in self.seen if one.step == step), Validated(step, math.nan))
        highest = None if best is None else best.utility
        why = f"step {step} of {last}, {self._reason(at, best)}"
        return Choice(step, self.rule, _known(at.utility), _known(at.bias), highest, len(self.seen), why)

    def _reason(self, at: Validated, best: Validated | None) -> str:
        seen = counted(len(self.seen), "validation")
        if best is None or (self.now is None and self.rule != "last"):
            return self.why or "the last, as no validation before it has figures"
        highest = f"the best was {best.utility:.4f} after step {best.step}"
        if self.rule == "utility":
            return f"the best {self.measure} of {seen}: {best.utility:.4f}"
        if self.rule == "joint":
            enough = sum(keeps_enough(one.utility, best.utility) for one in self.seen)
            return (
                f"the least |ΔA-PRF|, {at.bias:.4f}, of the {enough} among {seen} with at least {KEPT:.0%} of the best"
                f" {self.measure}: it has {at.utility:.4f}, {highest}"
            )
        value = f"it has {self.measure} {at.utility:.4f}, " if not math.isnan(at.utility) else f"of {self.measure}, "
        return f"{self.why}: {value}{highest}"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
