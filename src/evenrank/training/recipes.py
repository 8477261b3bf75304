"""Recipes: everything a training run depends on, in one TOML file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evenrank.io import EvenrankError, InputError
from evenrank.io.errors import shown

Kind = Literal["cat", "dot", "tk", "knrm", "conv-knrm", "match-pyramid"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class RankerRecipe(_Part):
    """Which ranker, and what it starts from."""

    kind: Kind
    model: str | None = Field(None, description="cat, dot: a folder or hub name; any ranker: one of ours to go on from")
    layers: int | None = Field(None, ge=1, description="cat, dot: keep only the first so many layers")
    towers: Literal["shared", "separate"] = "shared"
    pooling: Literal["cls", "mean"] = "cls"
    dimensions: int | None = Field(None, ge=1, description="dot: project to so many dimensions")
    similarity: Literal["dot", "cosine"] = "dot"
    query_length: int = Field(30, ge=1)
    passage_length: int = Field(200, ge=1)
    vectors: str = Field("train", description="kernel rankers: a file of word vectors, or train (on the collection)")
    vector_size: int = Field(300, ge=1, description="dimensions of vectors trained on the collection")
    settings: dict[str, Any] = Field(default_factory=dict, description="kernel rankers: fields of their configuration")

    @model_validator(mode="after")
    def _needs_model(self) -> RankerRecipe:
        if self.kind in ("cat", "dot") and self.model is None:
            raise ValueError(f"model: a {self.kind} ranker needs one (a folder or a hub name)")
        return self


class DataRecipe(_Part):
    """Where query groups come from."""

    collection: str
    queries: str
    qrels: str | None = None
    run: str | None = None
    groups: str | None = Field(None, description="a file of query groups, instead of run and qrels")
    negatives: int = Field(20, ge=1)
    sampling: Literal["random", "first"] = "random"
    depth: int = Field(1000, ge=1)
    blind: str | None = Field(None, description="a lexicon whose words are masked, in validation too")
    rotate: Literal["word", "sentence"] | None = Field(
        None, description="turn each training passage round at a word, or a sentence, drawn anew each epoch"
    )

    @model_validator(mode="after")
    def _one_source(self) -> DataRecipe:
        if (self.groups is None) == (self.run is None or self.qrels is None):
            raise ValueError("either groups, or run and qrels (a setting data.run= takes a key away)")
        return self


class ValidationRecipe(_Part):
    """The run that is re-ranked to choose the checkpoint and the re-ranking depth."""

    queries: str
    qrels: str
    run: str
    collection: str | None = Field(None, description="that of the training data where it is left out")
    measure: str = "nDCG@10"
    depth: int = Field(100, ge=1)
    answers: str | None = Field(None, description="SQuAD file: how many answers fall off the end of what is read")
    depths: tuple[int, ...] = Field((), description="re-ranking depths to choose from; none: depth alone")


class LossRecipe(_Part):
    """The ranking loss."""

    name: Literal["nll", "hinge", "bce", "ranknet", "margin-mse"] = "nll"


class AttributeRecipe(_Part):
    """What to balance: two groups of a lexicon."""

    name: str = Field("gender", pattern="^[A-Za-z][A-Za-z0-9_]*$")
    lexicon: str = "gender-en"
    poles: str | None = Field(None, description='"a,b": the two groups; those of the lexicon where it is left out')
    tokens: Literal["word", "whitespace"] = "word"


class FairnessRecipe(_Part):
    """The term that in-batch balancing regularization adds to the loss."""

    name: Literal["ibbr-pd", "ibbr-ts"] = "ibbr-ts"
    form: Literal["squared", "printed"] = Field("squared", description="ibbr-ts: as the paper's text says, or printed")
    score: Literal["softmax", "sigmoid", "identity"] = Field("softmax", description="R in nPRF")
    weight: float | Literal["auto", "dual"] | tuple[float, ...] = Field(
        0.1, description="a number, auto, dual, or several numbers of which validation chooses"
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


class AdversaryRecipe(_Part):
    """An adversary that AdvBert trains against (cat, dot)."""

    label: Literal["neutrality", "any"] = "neutrality"
    lexicon: str = "gender-en"
    factor: float = Field(1.0, ge=0, description="of the reversed gradient")
    weight: float = Field(1.0, ge=0, description="of the adversary's loss")
    attack: bool = Field(True, description="measure what a fresh adversary finds before and after")


class TrainingRecipe(_Part):
    """How long, how fast, in which batches."""

    epochs: float = Field(1.0, gt=0)
    max_steps: int = Field(-1, description="stop after so many steps, whatever the epochs; -1: no such end")
    batch: int = Field(32, ge=1, description="query groups a step and process")
    accumulation: int = Field(1, ge=1)
    cached: int | None = Field(None, ge=1, description="dot: cached gradients, so many passages in a graph at once")
    learning_rate: float = Field(7e-6, gt=0)
    learning_rates: dict[str, float] = Field(
        default_factory=dict, description="by parameter group of the ranker; 0: frozen"
    )
    optimizer: Literal["adamw", "adam"] = "adamw"
    epsilon: float = Field(1e-8, gt=0, description="of the optimizer")
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["linear", "constant"] = "linear"
    warmup: float = Field(0.1, ge=0, le=1, description="share of the steps")
    clip: float = Field(1.0, gt=0)
    evaluate_every: int = Field(500, ge=1, description="steps between validations (and checkpoints)")
    patience: int = Field(5, ge=1, description="keep best: stop after so many validations without a better one")
    keep: Literal["best", "last"] = Field("best", description="which checkpoint becomes the model")
    seed: int = Field(0, ge=0)
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    workers: int = Field(0, ge=0, description="data-loading processes")


class Recipe(_Part):
    """A whole training run."""

    name: str
    out: str | None = Field(None, description="folder of the run; runs/NAME where it is left out")
    source: str | None = Field(None, description="the publication whose settings these are")
    ranker: RankerRecipe
    data: DataRecipe
    validation: ValidationRecipe
    loss: LossRecipe = Field(default_factory=lambda: LossRecipe.model_validate({}))
    training: TrainingRecipe = Field(default_factory=lambda: TrainingRecipe.model_validate({}))
    fairness: FairnessRecipe | None = Field(None, description="none: the ranking loss alone")
    adversary: AdversaryRecipe | None = None

    @model_validator(mode="after")
    def _adversary_has_an_encoder(self) -> Recipe:
        if self.adversary is not None and self.ranker.kind not in ("cat", "dot"):
            raise ValueError(f"adversary: a {self.ranker.kind} ranker has no encoder to train it on (cat and dot have)")
        if self.adversary is not None and self.fairness is not None:
            raise ValueError("fairness or adversary, not both")
        if self.adversary is not None and self.training.cached is not None:
            raise ValueError("training.cached: not with an adversary")
        return self

    @property
    def validated_collection(self) -> str:
        """The collection of the validation run."""
        return self.validation.collection or self.data.collection

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
        return Path(self.out or Path("runs") / self.name)


def shipped_recipes() -> list[str]:
    """The names of the recipes that come with evenrank: the published settings."""
    folder = resources.files(__package__) / "recipes"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def load_recipe(source: str | os.PathLike[str], settings: Sequence[str] = ()) -> Recipe:
    """A recipe from a TOML file, or a shipped one by name, with ``key=value`` settings over it.

    A key is written with dots (``training.batch=16``); a value as in TOML, or a bare text; none (``data.run=``) takes
    the key away. Raises InputError that names the key and what is allowed.
    """
    name = os.fspath(source)
    try:
        if name in shipped_recipes():
            text = (resources.files(__package__) / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
        else:
            text = Path(name).read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except OSError:
        raise EvenrankError(f"{name}: no such recipe (shipped: {', '.join(shipped_recipes()) or 'none'})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(name, f"no valid TOML: {error}") from None
    for setting in settings:
        _set(data, setting)
    return parse_recipe(data, name)


def parse_recipe(data: dict[str, Any], name: str) -> Recipe:
    """A recipe from its values; ``name`` is for the message of the InputError."""
    try:
        return Recipe.model_validate(data)
    except ValidationError as error:
        raise InputError(name, _explain(error)) from None


def _set(data: dict[str, Any], setting: str) -> None:
    key, equals, value = setting.partition("=")
    if not equals or not key.strip():
        raise EvenrankError(f"`settings`: expected key=value, found {shown(setting)}")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value
    *parents, last = key.strip().split(".")
    place = data
    for parent in parents:
        place = place.setdefault(parent, {})
        if not isinstance(place, dict):
            raise EvenrankError(f"`settings`: {shown(key)}: {parent} is no table")
    if value.strip():
        place[last] = parsed
    else:
        place.pop(last, None)


@contextmanager
def named_as(**keys: str) -> Iterator[None]:
    """Errors about an argument name the recipe's key for it instead: ``named_as(lexicon="data.blind")``."""
    try:
        yield
    except InputError:
        raise
    except EvenrankError as error:

        def key(found: re.Match[str]) -> str:
            return keys.get(found[1], found[0])

        raise EvenrankError(re.sub(r"`(\w+)`", key, str(error))) from None


def _explain(error: ValidationError) -> str:
    """The first mistake: its key, and what is allowed there."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"])) or "recipe"
    if first["type"] == "extra_forbidden":
        return f"unknown key {key} (allowed: {', '.join(_allowed(first['loc']))})"
    if first["type"] == "missing":
        return f"the key {key} is missing"
    message = first["msg"].removeprefix("Value error, ")
    found = first["input"]
    return f"{key}: {message}" + ("" if isinstance(found, dict) else f", found {shown(found)}")


def _allowed(location: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Recipe
    for part in location[:-1]:
        if str(part) in model.model_fields:
            model = _model_of(model.model_fields[str(part)].annotation) or model
    return list(model.model_fields)


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """The table that a key holds, itself or inside a union or a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_of(part))), None)


def to_toml(recipe: Recipe) -> str:
    """The recipe with every default written out, as TOML that :func:`load_recipe` reads."""
    return tomli_w.dumps(recipe.model_dump(exclude_none=True))
