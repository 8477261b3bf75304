"""Recipes: everything a training run depends on, in one TOML file."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypedDict, get_args

import tomli_w
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from evenrank.files import EvenrankError, InputError
from evenrank.files.errors import arg, quoted
from evenrank.files.toml import parsed_toml
from evenrank.files.work import changed
from evenrank.mitigation import Term
from evenrank.models.load import ENCODERS

TERMS: tuple[str, ...] = get_args(Term)


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

    lexicon: str | None = Field(default="gender-en", description="a built-in lexicon or a file")
    labels: str | None = Field(
        default=None, description="instead of a lexicon, a file: doc_id,group or doc_id and a weight for each group"
    )
    neutral: tuple[str, ...] = Field(default=(), description="labels: the values that mean no group")
    group_column: str | None = Field(default=None, description="labels: the column of groups, if there are several")

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

    name: str = Field(default="gender", pattern="^[A-Za-z][A-Za-z0-9_]*$")
    poles: str | None = Field(default=None, description='"a,b": the two groups; the usual ones if omitted')
    tokens: Literal["word", "whitespace"] = "word"

    @model_validator(mode="after")
    def _labels_have_no_words(self) -> Self:
        if self.labels is not None and self.tokens != "word":
            raise ValueError("tokens: labels have no words")
        return self


class FairnessRecipe(Part):
    """The fairness term beside the ranking loss."""

    name: Annotated[str, known(TERMS, "evenrank.mitigation.ibbr", "REGISTERED")] = "ibbr-ts"
    form: Literal["squared", "printed"] = Field(
        default="squared", description="ibbr-ts: as the paper's text describes it, or as printed"
    )
    score: Literal["softmax", "sigmoid", "identity"] = Field(default="softmax", description="R in nPRF")
    weight: float | Literal["auto", "dual"] | tuple[float, ...] = Field(
        default=0.1, description="a number, auto, dual, or several numbers from which validation chooses"
    )
    target: float = Field(default=0.01, ge=0, description="dual: the |ΔA-PRF| to stay below")
    rate: float | None = Field(default=None, gt=0, description="auto, dual: how fast the weight changes")
    attributes: tuple[AttributeRecipe, ...] = Field(default=(AttributeRecipe(),), min_length=1)

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
    vector: Literal["pair", "passage"] = Field(
        default="pair", description="dot: what the adversary sees; passage: and whether the passage alone is gendered"
    )
    factor: float = Field(default=1.0, ge=0, description="of the reversed gradient")
    weight: float = Field(default=1.0, ge=0, description="of the adversary's loss")
    attack: bool = Field(default=True, description="measure what a fresh adversary finds before and after")


RANKERS = ("cat", "dot", "sparse", "tk", "knrm", "conv-knrm", "match-pyramid")
RANKING_LOSSES = ("nll", "hinge", "bce", "ranknet", "margin-mse")


QUERY_LENGTH, PASSAGE_LENGTH = 30, 200
"""Tokens that are read where neither a recipe nor a model's folder says how many."""


class RankerRecipe(Part):
    """Which ranker, and what it starts from: the table ``[ranker]`` of a recipe, or the ``ranker`` of ``train``.

    A folder of sentence-transformers states its pooling, similarity, prompts and lengths, which are taken; a setting
    that is named replaces the folder's, and the log and the model card say so.

    A map on a frozen encoder, whose vectors are kept in a folder:

        RankerRecipe(
            kind="dot",
            model="sentence-transformers/all-MiniLM-L6-v2",
            freeze="encoder",
            map=True,
            kept="kept",
        )

    Raises pydantic's ValidationError, a ValueError, for an unknown key, a value out of range, and keys that do not go
    together: ``map`` or ``freeze`` for another kind than ``dot``, ``map`` beside ``dimensions``, ``kept`` without
    ``freeze``.
    """

    kind: Annotated[str, known(RANKERS, "evenrank.models.protocol", "REGISTERED")]
    model: str | None = Field(
        default=None,
        description="cat, dot: a folder or hub name; any kind: a ranker trained by evenrank, to train further",
    )
    layers: int | None = Field(default=None, ge=1, description="cat, dot: keep only the first so many layers")
    towers: Literal["shared", "separate"] = "shared"
    pooling: Literal["cls", "mean"] | None = Field(
        default=None, description="dot: the folder's if omitted, else cls (so are similarity, dot, and the lengths)"
    )
    dimensions: int | None = Field(default=None, ge=1, description="dot: project to so many dimensions")
    map: bool = Field(default=False, description="dot: a matrix [d, d] for each side's vectors, the identity at first")
    freeze: Literal["encoder"] | None = Field(
        default=None, description="dot: train the map or the projection alone; each text is encoded once"
    )
    kept: str | None = Field(
        default=None, description="freeze: a folder that keeps the vectors, for other trainings too"
    )
    similarity: Literal["dot", "cosine"] | None = Field(
        default=None, description="dot: of vectors; cosine: normalised, behind a map too"
    )
    query_length: int | None = Field(
        default=None, ge=1, description="tokens of a query that are read (30); cat: of a pair, both together"
    )
    passage_length: int | None = Field(default=None, ge=1, description="tokens of a passage that are read (200)")
    vectors: str = Field(
        default="train", description="kernel rankers: a file of word vectors, or train (on the collection)"
    )
    vector_size: int = Field(default=300, ge=1, description="dimensions of vectors trained on the collection")
    settings: dict[str, Any] = Field(default_factory=dict, description="kernel rankers: fields of their configuration")

    @model_validator(mode="after")
    def _needs_model(self) -> RankerRecipe:
        if self.kind in ENCODERS and self.model is None:
            raise ValueError(f"model: a {self.kind} ranker needs one (a folder or a hub name)")
        return self

    @model_validator(mode="after")
    def _maps_of_an_encoder(self) -> RankerRecipe:
        dot_settings = {"map": self.map, "freeze": self.freeze is not None}
        wrong = next((name for name, there in dot_settings.items() if there and self.kind != "dot"), None)
        if wrong is not None:
            raise ValueError(f"{wrong}: a {self.kind} ranker has no vectors of a text alone (dot has)")
        if self.map and self.dimensions is not None:
            raise ValueError("map: not beside dimensions, whose projection is a map too")
        if self.kept is not None and self.freeze is None:
            raise ValueError('kept: needs freeze = "encoder"')
        return self

    def with_defaults(self) -> RankerRecipe:
        """The recipe with the defaults of what a folder of sentence-transformers would state."""
        lengths = {"query_length": QUERY_LENGTH, "passage_length": PASSAGE_LENGTH}
        defaults: dict[str, object] = {"pooling": "cls", "similarity": "dot", **lengths}
        return self.model_copy(update={name: defaults[name] for name in defaults if getattr(self, name) is None})


class DataRecipe(Part):
    """Where the training lists come from."""

    collection: str
    queries: str
    qrels: str | None = None
    run: str | None = None
    groups: str | None = Field(default=None, description="a file of training lists, instead of run and qrels")
    negatives: int = Field(default=20, ge=1)
    sampling: Literal["random", "first"] = "random"
    depth: int = Field(default=1000, ge=1)
    blind: str | None = Field(default=None, description="a lexicon whose words are masked, in validation too")
    rotate: Literal["word", "sentence"] | None = Field(
        default=None, description="rotate each training passage at a word, or a sentence, drawn anew each epoch"
    )

    @model_validator(mode="after")
    def _one_source(self) -> DataRecipe:
        if (self.groups is None) == (self.run is None or self.qrels is None):
            raise ValueError("either groups, or run and qrels (a setting data.run= removes a key)")
        return self


class ValidationRecipe(Part):
    """The run that is re-ranked to choose the checkpoint and the re-ranking depth."""

    queries: str
    qrels: str
    run: str
    collection: str | None = Field(default=None, description="that of the training data if omitted")
    measure: str = "nDCG@10"
    depth: int = Field(default=100, ge=1)
    depths: tuple[int, ...] = Field(default=(), description="re-ranking depths to choose from; none: depth alone")


class LossRecipe(Part):
    """The ranking loss."""

    name: Annotated[str, known(RANKING_LOSSES, "evenrank.training.losses", "LOSSES")] = "nll"
    scale: float | None = Field(
        default=None,
        gt=0,
        description="what scores are multiplied by before the losses; 20 for the cosine if omitted, else 1",
    )
    in_batch: bool = Field(
        default=False,
        description="dot, nll: the passages of the batch's other lists are negatives too (in-batch negatives)",
    )


class TrainingRecipe(Part):
    """How long, how fast, in which batches."""

    epochs: float = Field(default=1.0, gt=0)
    max_steps: int = Field(default=-1, description="stop after so many steps, whatever the epochs; -1: no limit")
    batch: int = Field(default=32, ge=1, description="lists per step and process")
    accumulation: int = Field(default=1, ge=1)
    cached: int | None = Field(
        default=None, ge=1, description="dot: cached gradients, with so many passages in a graph at once"
    )
    learning_rate: float = Field(default=7e-6, gt=0)
    learning_rates: dict[str, float] = Field(
        default_factory=dict, description="by parameter group of the ranker; 0: frozen"
    )
    optimizer: Literal["adamw", "adam"] = "adamw"
    epsilon: float = Field(default=1e-8, gt=0, description="of the optimizer")
    weight_decay: float = Field(default=0.0, ge=0)
    schedule: Literal["linear", "constant"] = "linear"
    warmup: float = Field(default=0.1, ge=0, le=1, description="share of the steps")
    clip: float = Field(default=1.0, gt=0)
    evaluate_every: int = Field(default=500, ge=1, description="steps between validations (and checkpoints)")
    patience: int = Field(
        default=5, ge=1, description="keep best, fair: stop after so many validations without a better one"
    )
    keep: Literal["best", "fair", "last"] = Field(
        default="best",
        description="the checkpoint that becomes the model; best is fair with [fairness], last with [adversary]",
    )
    seed: int = Field(default=0, ge=0)
    precision: Literal["auto", "float32", "bfloat16"] = "auto"


class TrainingSettings(TypedDict, total=False):
    """The ``settings`` of :func:`evenrank.train`: the keys of a :class:`TrainingRecipe`, which says what they mean."""

    epochs: float
    max_steps: int
    batch: int
    accumulation: int
    cached: int | None
    learning_rate: float
    learning_rates: dict[str, float]
    optimizer: Literal["adamw", "adam"]
    epsilon: float
    weight_decay: float
    schedule: Literal["linear", "constant"]
    warmup: float
    clip: float
    evaluate_every: int
    patience: int
    keep: Literal["best", "fair", "last"]
    seed: int
    precision: Literal["auto", "float32", "bfloat16"]


class RunRecipe(Part):
    """What every training run has: a name, a folder, and a ranker that it starts from."""

    name: str
    out: str | None = Field(default=None, description="folder of the run; runs/NAME if omitted")
    source: str | None = Field(default=None, description="the publication whose settings these are")
    ranker: RankerRecipe

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return Path(self.out or Path("runs") / self.name)


class Recipe(RunRecipe):
    """A whole training run on queries with relevant passages."""

    data: DataRecipe
    validation: ValidationRecipe
    loss: LossRecipe = Field(default_factory=LossRecipe)
    training: TrainingRecipe = Field(default_factory=TrainingRecipe)
    fairness: FairnessRecipe | None = Field(default=None, description="none: the ranking loss alone")
    adversary: AdversaryRecipe | None = None

    @model_validator(mode="after")
    def _adversary_has_an_encoder(self) -> Recipe:
        if self.adversary is not None and self.ranker.kind not in ("cat", "dot"):
            raise ValueError(f"adversary: a {self.ranker.kind} ranker has no encoder to train it on (cat and dot have)")
        if self.loss.in_batch and (self.ranker.kind != "dot" or self.loss.name != "nll" or self.adversary):
            raise ValueError("loss.in_batch: for a dot ranker with the loss nll, without an adversary")
        if self.adversary is not None and self.fairness is not None:
            raise ValueError("fairness or adversary, not both")
        if self.training.keep == "fair" and self.fairness is None:
            raise ValueError("training.keep: fair needs [fairness], for the attributes to measure")
        if self.adversary is not None and self.training.cached is not None:
            raise ValueError("training.cached: not with an adversary")
        if self.ranker.freeze is not None and self.data.rotate is not None:
            raise ValueError("data.rotate: not with ranker.freeze, which encodes each text once")
        if self.ranker.freeze is not None and self.training.cached is not None:
            raise ValueError("training.cached: not with ranker.freeze, whose encoder needs no gradients")
        return self

    @property
    def validated_collection(self) -> str:
        """The collection of the validation run."""
        return self.validation.collection or self.data.collection


class TeacherRecipe(Part):
    """The larger encoder whose vectors a small one learns, and the loss between them."""

    model: str = Field(description="a folder or hub name of a bi-encoder")
    kept: str | None = Field(default=None, description="a folder that keeps its vectors, for other trainings too")
    similarities: float = Field(
        default=0.2, ge=0, description="weight of the divergence of the similarities within a batch, beside 1 − cosine"
    )
    scale: float = Field(
        default=20.0, gt=0, description="what these similarities are multiplied by before their softmax"
    )


class TextsRecipe(Part):
    """The texts that a small encoder learns from."""

    collection: str
    queries: str | None = Field(
        default=None, description="texts of queries beside the passages; no judgements are read"
    )
    held_out: float = Field(default=0.05, gt=0, lt=1, description="share of the texts that validates; at most 1,000")


class DistilRecipe(RunRecipe):
    """A training run without labels: a small encoder learns the vectors of a larger one."""

    teacher: TeacherRecipe
    data: TextsRecipe
    training: TrainingRecipe = Field(default_factory=TrainingRecipe)

    @model_validator(mode="after")
    def _one_encoder(self) -> DistilRecipe:
        ranker = self.ranker
        wrong = {
            f"kind: expected dot, found {ranker.kind}": ranker.kind != "dot",
            "towers: expected shared": ranker.towers != "shared",
            "dimensions: they are the teacher's": ranker.dimensions is not None,
            "map: the layer behind the encoder is one already": ranker.map,
            "freeze: the whole encoder learns": ranker.freeze is not None,
        }
        if problem := next((text for text, there in wrong.items() if there), None):
            raise ValueError(f"ranker.{problem}")
        if self.training.keep == "fair":
            raise ValueError("training.keep: fair needs [fairness], for the attributes to measure")
        if self.training.cached is not None:
            raise ValueError("training.cached: not with a teacher")
        return self


AnyRecipe = Recipe | DistilRecipe


def shipped_recipes() -> list[str]:
    """The names of the recipes that come with evenrank: the published settings."""
    folder = resources.files(__package__) / "recipes"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def load_recipe(source: str | os.PathLike[str], settings: Sequence[str] = ()) -> AnyRecipe:
    """A recipe from a TOML file, or a shipped one by name, overridden by ``key=value`` settings.

    A key is written with dots (``training.batch=16``), a value as in TOML or as bare text; without a value
    (``data.run=``) the key is removed. Raises InputError, which names the key and what is allowed.
    """
    name = os.fspath(source)
    try:
        if name in shipped_recipes():
            text = (resources.files(__package__) / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
        else:
            text = Path(name).read_text(encoding="utf-8")
        data = parsed_toml(text)
    except OSError:
        raise EvenrankError(f"{name}: no such recipe (shipped: {', '.join(shipped_recipes()) or 'none'})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(name, f"not valid TOML: {error}") from None
    for setting in settings:
        _set(data, setting)
    return parse_recipe(data, name)


def parse_recipe(data: Mapping[str, object], name: str) -> AnyRecipe:
    """A recipe from its values, one with ``teacher`` of a distillation.

    Raises InputError, which begins with ``name``.
    """
    kind: type[AnyRecipe] = DistilRecipe if "teacher" in data else Recipe
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise InputError(name, _explain(error, kind)) from None


def ranking_recipe(name: str) -> Recipe:
    """A shipped recipe of a training on queries with relevant passages."""
    recipe = load_recipe(name)
    assert isinstance(recipe, Recipe)
    return recipe


def differing_keys(kept: RunRecipe, now: RunRecipe) -> list[str]:
    """The keys of a recipe that differ from a kept one's, where defaults may be written that ``now`` leaves out."""
    written, ranker, defaults = (r.model_dump() for r in (kept.ranker, now.ranker, now.ranker.with_defaults()))
    ranker |= {name: value for name, value in defaults.items() if ranker[name] is None and written[name] == value}
    return changed(kept.model_dump(), now.model_dump() | {"ranker": ranker})


def _set(data: dict[str, Any], setting: str) -> None:
    key, equals, value = setting.partition("=")
    if not equals or not key.strip():
        raise EvenrankError(f"{arg.settings}: expected key=value, found {quoted(setting)}")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value
    *parents, last = key.strip().split(".")
    place = data
    for parent in parents:
        place = place.setdefault(parent, {})
        if not isinstance(place, dict):
            raise EvenrankError(f"{arg.settings}: {quoted(key)}: {parent} is not a table")
    if value.strip():
        place[last] = parsed
    else:
        place.pop(last, None)


def parse_training(settings: Mapping[str, object]) -> TrainingRecipe:
    """The settings of a training. Raises EvenrankError, which names the setting and what is allowed."""
    try:
        return TrainingRecipe.model_validate(settings)
    except ValidationError as error:
        raise EvenrankError(_explain(error, TrainingRecipe, argument=True)) from None


_EXPECTED = {
    "greater_than_equal": "expected {ge:g} or more",
    "greater_than": "expected more than {gt:g}",
    "less_than_equal": "expected {le:g} or less",
    "literal_error": "expected {expected}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "expected a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "expected a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "expected true or false"),
    "string_type": "expected a text",
}
"""Messages by pydantic's type of error."""


def _explain(error: ValidationError, model: type[BaseModel], *, argument: bool = False) -> str:
    """The first mistake: its key (in backquotes if it is an ``argument``), and what is allowed there."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"])) or "recipe"
    if first["type"] == "extra_forbidden":
        return f"unknown key {key} (allowed: {', '.join(_allowed(first['loc'], model))})"
    if first["type"] == "missing":
        return f"the key {key} is missing"
    if first["type"] in _EXPECTED:
        message = _EXPECTED[first["type"]].format(**first.get("ctx", {})).replace("'", "")
    else:
        message = first["msg"].removeprefix("Value error, ").replace("Input should be ", "expected ")
    value = first["input"]
    written = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else quoted(value)
    key = arg(key) if argument else key
    return f"{key}: {message}" + ("" if isinstance(value, dict) else f", found {written}")


def _allowed(location: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    for part in location[:-1]:
        if str(part) in model.model_fields:
            model = _model_of(model.model_fields[str(part)].annotation) or model
    return list(model.model_fields)


def _model_of(annotation: object) -> type[BaseModel] | None:
    """The table under a key, itself or inside a union or a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_of(part))), None)


def to_toml(recipe: RunRecipe) -> str:
    """The recipe with every default written out, as TOML that :func:`load_recipe` reads."""
    return tomli_w.dumps(recipe.model_dump(exclude_none=True))
