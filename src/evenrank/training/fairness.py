"""The fairness term in training: what a recipe asks for, and the figures that the log reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ExportableState

from evenrank._command import spelled
from evenrank.files import EvenrankError
from evenrank.groups import GroupTable, Scoring, as_labels, load_lexicon
from evenrank.mitigation.attributes import Attribute
from evenrank.mitigation.ibbr import AutoWeight, BatchTerm, DualWeight, EffectiveBatch, FixedWeight, Summary, term_named
from evenrank.models.protocol import Inputs

from .recipes import AttributeRecipe, FairnessRecipe, GroupsRecipe


def attribute_of(attribute: AttributeRecipe) -> Attribute:
    """How an attribute's passages get their sides. Raises EvenrankError for a lexicon or labels without poles."""
    if attribute.labels is not None:
        labels = read_recipe_labels(attribute, "fairness.attributes", attribute.poles)
        if labels.poles is None:
            raise _poles_wanted(f"the labels {labels.settings['labels']} have", labels.groups)
        return labels
    with spelled({"lexicon": "fairness.attributes.lexicon", "poles": "fairness.attributes.poles"}):
        lexicon = load_lexicon(attribute.lexicon or "gender-en", poles=attribute.poles)
    if lexicon.poles is None:
        raise _poles_wanted(f"the lexicon {lexicon.name} has", lexicon.groups)
    return Scoring(lexicon, tokens=attribute.tokens, magnitudes=("tf_words",))


def read_recipe_labels(wanted: GroupsRecipe, section: str, poles: str | None = None) -> GroupTable:
    """The labels of a recipe's section. Raises EvenrankError, which names the key, if they cannot be used."""
    assert wanted.labels is not None
    keys = {name: f"{section}.{name}" for name in ("labels", "neutral", "group_column", "poles")}
    with spelled(keys):
        return as_labels(wanted.labels, neutral=wanted.neutral, group_column=wanted.group_column, poles=poles)


def _poles_wanted(found: str, groups: Sequence[str]) -> EvenrankError:
    return EvenrankError(
        f"fairness.attributes: {found} the groups {', '.join(groups)}: poles chooses the two to balance, as in"
        ' poles = "a,b"'
    )


def _weight(recipe: FairnessRecipe) -> FixedWeight:
    if recipe.weight == "auto":
        return AutoWeight(rate=recipe.rate or 0.01)
    if recipe.weight == "dual":
        return DualWeight(target=recipe.target, rate=recipe.rate or 0.1)
    assert isinstance(recipe.weight, float)
    return FixedWeight(recipe.weight)


def acted_steps(log: Sequence[Mapping[str, float | str | None]], names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """For each attribute, in how many steps its term acted, and how many steps the log is of."""
    counts = {}
    for name in names:
        lines = [line for line in log if f"lacking_a_group_{name}" in line]
        steps = int(lines[-1]["step"] or 0) if lines else 0
        lacking = sum(int(line[f"lacking_a_group_{name}"] or 0) for line in lines)
        counts[name] = (steps - lacking, steps)
    return counts


class KeepWeight(TrainerCallback, ExportableState):
    """Keeps a changing weight in the trainer's state, which every checkpoint has.

    A training resumed from a checkpoint continues with its weight. Raises EvenrankError if it has none.
    """

    def __init__(self, weight: FixedWeight) -> None:
        self.weight = weight

    def state(self) -> dict[str, object]:
        """The weight, as JSON values."""
        return {"args": {}, "attributes": self.weight.state()}

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Restores the weight of the checkpoint that the training resumes from."""
        if not state.global_step:
            return
        try:
            self.weight.restore(state.stateful_callbacks["KeepWeight"]["attributes"])  # type: ignore[call-overload,index]
        except (ValueError, LookupError, TypeError):
            checkpoint = Path(args.output_dir or ".") / f"checkpoint-{state.global_step}"
            raise EvenrankError(f"{checkpoint}: no weight to continue with") from None


class FairTerm:
    """Adds the term of each attribute to each piece of a step's batch (see :class:`EffectiveBatch`), and reports them.

    ``names``: of the attributes, for the log. With one piece a step, :meth:`total` begins the step itself.
    """

    def __init__(self, term: BatchTerm, weight: FixedWeight, names: Sequence[str]) -> None:
        self.batch = EffectiveBatch(term, weight, len(names))
        self.names = list(names)
        self._outstanding = 0
        self._rank: list[Tensor] = []
        self._sums: dict[str, float] = {}
        self._steps = 0

    @classmethod
    def of_recipe(cls, recipe: FairnessRecipe) -> FairTerm:
        """The term of a recipe."""
        term = term_named(recipe.name, recipe.form, recipe.score)
        return cls(term, _weight(recipe), [attribute.name for attribute in recipe.attributes])

    def summarize(self, scores: Tensor, inputs: Inputs) -> list[Summary]:
        """What the term needs of a piece."""
        return self.batch.summarize(
            scores, inputs["relevance"], inputs["sides"], inputs["counted"], inputs.get("values")
        )

    def begin(self, pieces: Sequence[Sequence[Summary]]) -> None:
        """Starts a step whose batch is in ``pieces`` on this process."""
        self.batch.begin(pieces)
        self._outstanding = len(pieces)
        self._rank = []

    def total(self, rank: Tensor, scores: Tensor, inputs: Inputs) -> Tensor:
        """The loss of one piece: its value is that of the piece's ranking loss and the term of the whole batch."""
        summary = self.summarize(scores, inputs)
        if not self._outstanding:
            self.begin([summary])
        share, figures = self.batch.shares(summary).sum(), self.batch.figures
        value = sum(weight * (term or 0.0) for weight, term in zip(figures.weights, figures.terms, strict=True))
        loss = figures.rank_weight * rank + share + (value + figures.offset - share.detach())
        self._rank.append(rank.detach())
        self._outstanding -= 1
        if not self._outstanding:
            self._note(self.batch.update(self._rank))
        return loss

    def _note(self, rank: float) -> None:
        figures = self.batch.figures
        self._steps += 1
        parts = {"rank_loss": rank}
        for name, fair, weight, delta in zip(self.names, figures.terms, figures.weights, figures.delta, strict=True):
            parts |= {f"fair_weight_{name}": weight, f"lacking_a_group_{name}": float(fair is None)}
            # A batch that lacks a group has no loss, which is another thing than a loss of 0.
            if fair is not None:
                parts |= {f"fair_loss_{name}": fair, f"with_fair_loss_{name}": 1.0}
            if not math.isnan(delta):
                parts |= {f"delta_aprf_{name}": delta, f"with_delta_aprf_{name}": 1.0}
        for key, value in parts.items():
            self._sums[key] = self._sums.get(key, 0.0) + value

    def report(self) -> dict[str, float]:
        """Means over the steps since the last call, and how many of their batches lacked a group.

        The term's loss and ΔA-PRF are means over the batches that have one, and not there if none has.
        """
        values = {}
        for name, value in self._sums.items():
            if name.startswith("lacking_"):
                values[name] = value
            elif not name.startswith("with_"):
                values[name] = value / self._sums.get(f"with_{name}", self._steps)
        self._sums, self._steps = {}, 0
        return values
