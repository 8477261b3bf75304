"""The parts of a recipe that mitigate: what to balance, the fairness term, the adversary."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

TERMS = ("ibbr-pd", "ibbr-ts")


def known(built_in: tuple[str, ...], module: str, registry: str) -> AfterValidator:
    """A built-in name, or one in a module's registry; a module that is not loaded has none."""

    def check(name: str) -> str:
        names = (*built_in, *getattr(sys.modules.get(module), registry, ()))
        if name not in names:
            *others, last = dict.fromkeys(names)
            raise ValueError(f"expected {', '.join(others)} or {last}")
        return name

    return AfterValidator(check)


class Part(BaseModel):
    """A table of a recipe: unknown keys are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class GroupsRecipe(Part):
    """Where the groups of passages come from: their words, or labels."""

    lexicon: str | None = Field("gender-en", description="a built-in lexicon or a file")
    labels: str | None = Field(
        None, description="instead of a lexicon, a file: doc_id,group or doc_id and a weight for each group"
    )
    neutral: tuple[str, ...] = Field((), description="labels: the values that mean no group")
    group_column: str | None = Field(None, description="labels: the column of groups, if there are several")

    @model_validator(mode="before")
    @classmethod
    def _no_default_beside_labels(cls, data: object) -> object:
        if isinstance(data, Mapping) and data.get("labels") is not None:
            return {"lexicon": None, **data}
        return data

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.lexicon is None) == (self.labels is None):
            raise ValueError("expected either lexicon or labels")
        if self.labels is None and (self.neutral or self.group_column is not None):
            raise ValueError(f"{'neutral' if self.neutral else 'group_column'} needs labels")
        return self


class AttributeRecipe(GroupsRecipe):
    """What to balance: two groups of a lexicon or of labels."""

    name: str = Field("gender", pattern="^[A-Za-z][A-Za-z0-9_]*$")
    poles: str | None = Field(None, description='"a,b": the two groups; the usual ones if omitted')
    tokens: Literal["word", "whitespace"] = "word"

    @model_validator(mode="after")
    def _labels_have_no_words(self) -> Self:
        if self.labels is not None and self.tokens != "word":
            raise ValueError("tokens: labels have no words")
        return self


class FairnessRecipe(Part):
    """The fairness term beside the ranking loss."""

    name: Annotated[str, known(TERMS, "evenrank.mitigation.terms", "REGISTERED")] = "ibbr-ts"
    form: Literal["squared", "printed"] = Field(
        "squared", description="ibbr-ts: as the paper's text describes it, or as printed"
    )
    score: Literal["softmax", "sigmoid", "identity"] = Field("softmax", description="R in nPRF")
    weight: float | Literal["auto", "dual"] | tuple[float, ...] = Field(
        0.1, description="a number, auto, dual, or several numbers from which validation chooses"
    )
    target: float = Field(0.01, ge=0, description="dual: the |ΔA-PRF| to stay below")
    rate: float | None = Field(None, gt=0, description="auto, dual: how fast the weight changes")
    attributes: tuple[AttributeRecipe, ...] = Field((AttributeRecipe.model_validate({}),), min_length=1)

    @model_validator(mode="after")
    def _weights(self) -> FairnessRecipe:
        numbers = self.weight if isinstance(self.weight, tuple) else (self.weight,)
        if not numbers or any(isinstance(number, float) and not number >= 0 for number in numbers):
            raise ValueError("weight: expected 0 or more, auto, dual, or a list of numbers")
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) < len(names):
            raise ValueError("attributes: two have the same name")
        return self


class AdversaryRecipe(GroupsRecipe):
    """An adversary that AdvBert trains against (cat, dot)."""

    label: Literal["neutrality", "any"] = "neutrality"
    factor: float = Field(1.0, ge=0, description="of the reversed gradient")
    weight: float = Field(1.0, ge=0, description="of the adversary's loss")
    attack: bool = Field(True, description="measure what a fresh adversary finds before and after")
