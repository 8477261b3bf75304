"""The IBBR experiment's settings at each scale, and what they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from evenrank.datasets.synthetic import SyntheticConfig

from .checks import Cost, Need, Options, need_file, need_irds, need_model, need_public, unused
from .encoder import SmallBert
from .real_text import real_needs, small_encoder
from .untrained import STRENGTHS
from .work import Sections

TERMS = {"PD": "ibbr-pd", "TS": "ibbr-ts"}
Score = Literal["softmax", "sigmoid", "identity"]
PUBLISHED_WEIGHTS = (0.1, 0.5, 1.0, 5.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that differs between the scales; the steps are the same."""

    scale: str
    seeds: tuple[int, ...]
    development: tuple[int, ...] = ()
    """The seeds that the settings were chosen on."""
    planted: SyntheticConfig | None = None
    """The built-in collection, generated for each seed."""
    options: Options | None = None
    """Real text, where it lies; neither this nor ``planted``: MS MARCO."""
    strengths: tuple[float, ...] = STRENGTHS
    """Of the reorderings without training."""
    given: Options = field(default_factory=Options)
    """Everything that the user gave, read or not."""
    click_male_share: float = 0.8
    """Real text: the share of male clicks in training."""
    sizes: Mapping[str, int]
    """Queries: ``dpr``, ``dpr_dev``, ``train``, ``dev`` and ``test`` (the last three: the fairness set)."""
    listed: int
    """Passages in a query's list, one of them clicked."""
    depth: int
    """Number of BM25's documents that the list is taken from."""
    encoders: Mapping[str, str]
    """For each published model (``BERT-L2``) the checkpoint; at ``tiny`` a size of :class:`SmallBert`."""
    layers: Mapping[str, int] = field(default_factory=dict)
    """The first layers of the checkpoint that a model keeps."""
    ranker: Mapping[str, object]
    data: Mapping[str, object]
    """[data] of the lists of the ranker itself."""
    fair_data: Mapping[str, object] = field(default_factory=dict)
    """Of those of the fairness queries, over ``data``."""
    base: Mapping[str, object]
    """[training] of the ranker itself."""
    base_grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Settings of ``base`` to choose by validation, on the first seed."""
    going_on: Mapping[str, object]
    """[training] on the fairness queries, over ``base``."""
    weights: tuple[float, ...]
    score: Score
    """R in nPRF, in the main rows."""
    scores: Mapping[str, tuple[float, ...]]
    """The weights of TS to compare for each R (one seed)."""
    dev_weight: float | None = None
    """λ of TS in the row "TS dev", chosen on the development seeds; evenrank's own lines rest on it. None: "best"."""
    retrieved: tuple[str, ...] = ()
    """Rows of Table 1 that also search the whole collection, without BM25's candidates."""
    auto_rate: float = 0.1
    """Learning rate of the trained λ."""
    baselines: Mapping[str, Sections]
    """Rankers of Table 2 by their published names: ``ranker`` and ``training``."""
    small_bert: SmallBert = field(default_factory=SmallBert)


def settings_of(scale: str, options: Options) -> Settings:
    """The settings of a scale."""
    found = tiny() if scale == "tiny" else real(options) if scale == "real" else full(options)
    return replace(found, given=options)


def tiny() -> Settings:
    """The built-in collection on a CPU: one encoder, five seeds for the main rows, one for the grids."""
    return Settings(
        scale="tiny",
        seeds=(0, 1, 2, 3, 4),
        development=(100, 101, 102, 103, 104),
        planted=SyntheticConfig(
            passages=42_400,
            queries=10_600,
            sentences=3,
            relevant=2,
            gender_rate=0.9,
            relevance_gender_rate=1.0,
            train_click_male_share=0.9,
            group_query_rate=0.3,
        ),
        sizes={"dpr": 3900, "dpr_dev": 60, "train": 3300, "dev": 500, "test": 800},
        listed=12,
        depth=200,
        encoders={"BERT-L2": "made here"},
        ranker={
            "kind": "dot",
            "towers": "separate",
            "pooling": "mean",
            "dimensions": 64,
            "query_length": 32,
            "passage_length": 64,
        },
        data={"negatives": 9, "sampling": "first", "depth": 10},
        fair_data={"negatives": 5, "depth": 6},
        base={
            "batch": 64,
            "max_steps": 400,
            "epochs": 10,
            "learning_rate": 6e-3,
            "warmup": 0.1,
            "evaluate_every": 1000,
            "weight_decay": 0.01,
            "keep": "last",
        },
        # An encoder that went on would learn the fairness queries by heart: the projection has to find the groups.
        going_on={
            "max_steps": 240,
            "learning_rate": 3e-3,
            "learning_rates": {"embeddings": 0.0},
            "evaluate_every": 120,
        },
        weights=tuple(float(f"{10 ** (-4 + 0.625 * step):.2g}") for step in range(9)),
        score="softmax",
        scores={"sigmoid": (0.032,), "identity": (0.032,)},
        # On the development seeds .032, .042 and .056 removed 77%, 84% and 90% of |ΔA-PRF| and kept 98.3%, 98.3% and
        # 97.9% of MRR: between the last two.
        dev_weight=0.045,
        baselines=_small_baselines(60, 150, 40, 60),
        small_bert=SmallBert(layers=0),
    )


def _small_baselines(mp: int, knrm: int, conv: int, tk: int) -> dict[str, Sections]:
    words = {"passage_length": 64, "vector_size": 64}
    plain = {"batch": 32, "evaluate_every": 1000, "warmup": 0.1}

    def baseline(kind: str, steps: int, **training: object) -> Sections:
        return {"ranker": {"kind": kind, **words}, "training": {**plain, "max_steps": steps, **training}}

    return {
        "MP": baseline("match-pyramid", mp),
        "KNRM": baseline("knrm", knrm, learning_rates={"kernels": 0.2, "embeddings": 1e-3}),
        "C-KNRM": baseline("conv-knrm", conv, learning_rate=1e-3, learning_rates={"kernels": 0.2}),
        "TK": baseline("tk", tk, learning_rate=1e-3, learning_rates={"kernels": 0.05}),
    }


def real(options: Options) -> Settings:
    """Real text on a CPU: the first 2 and 4 layers of a small encoder, briefly trained on SQuAD's questions, and the
    117 queries of Grep-BiasIR, divided 7:2:1 the other way round, since the test decides."""
    encoder = small_encoder(options)
    return Settings(
        scale="real",
        seeds=(0, 1),
        options=options,
        sizes={"dpr": 96, "dpr_dev": 12, "train": 60, "dev": 20, "test": 37},
        listed=12,
        depth=100,
        encoders={"BERT-L2": encoder, "BERT-L4": encoder},
        layers={"BERT-L2": 2, "BERT-L4": 4},
        ranker={"kind": "dot", "pooling": "mean", "query_length": 24, "passage_length": 40},
        data={"negatives": 4, "sampling": "first", "depth": 5},
        base={
            "batch": 16,
            "epochs": 1,
            "learning_rate": 5e-5,
            "warmup": 0.1,
            "evaluate_every": 1000,
            "weight_decay": 0.01,
            "keep": "last",
        },
        going_on={
            "batch": 30,
            "epochs": 3,
            "learning_rate": 1e-4,
            "learning_rates": {"embeddings": 0.0},
            "evaluate_every": 6,
        },
        weights=(0.01, 0.1, 1.0),
        score="softmax",
        scores={},
        baselines={},
    )


def full(options: Options | None = None) -> Settings:
    """The published data and settings: MS MARCO, both encoders, ten seeds."""
    from evenrank.training.recipes import load_recipe

    recipe = load_recipe("ibbr-dot")
    ranker = recipe.ranker.model_dump(exclude_none=True)
    training = recipe.training.model_dump()
    vectors = None if options is None else options.vectors
    words = {"query_length": 30, "passage_length": 100, "vectors": vectors or "train"}
    plain = {"batch": 32, "optimizer": "adam", "learning_rate": 1e-3, "evaluate_every": 4000}
    kinds = {"MP": "match-pyramid", "KNRM": "knrm", "C-KNRM": "conv-knrm", "TK": "tk"}
    return Settings(
        scale="full",
        seeds=tuple(range(10)),
        sizes={"dpr": 510_586, "dpr_dev": 26_873, "train": 876, "dev": 250, "test": 126},
        listed=200,
        depth=1000,
        encoders={"BERT-L2": str(recipe.ranker.model), "BERT-L4": "google/bert_uncased_L-4_H-256_A-4"},
        ranker={name: value for name, value in ranker.items() if name != "model"},
        data={"negatives": recipe.data.negatives, "sampling": recipe.data.sampling, "depth": 1000},
        base=training,
        base_grid={"learning_rate": (3e-6, 3e-5, 3e-4), "batch": (100, 120, 150)},
        going_on={"epochs": 10.0, "evaluate_every": 5, "keep": "last"},
        weights=PUBLISHED_WEIGHTS,
        score="softmax",
        scores={"sigmoid": (0.1, 1.0, 10.0), "identity": (0.1, 1.0, 10.0)},
        retrieved=("base", "none", "PD best", "TS best"),
        baselines={
            name: {"ranker": {"kind": kind, **words}, "training": {**plain, "learning_rates": {}}}
            for name, kind in kinds.items()
        },
    )


def needs(settings: Settings, folder: Path) -> list[Need]:
    """Everything that a run reads and does not make itself."""
    if settings.planted is not None:
        return unused(settings.given)
    if settings.options is not None:
        wanted = real_needs(settings.options, folder, squad=True, grepbiasir=True, encoder=True)
        return [*wanted, *unused(settings.given, "squad", "grepbiasir", "encoder")]
    names = ("", "/train/judged", "/dev/judged")
    found = [need_irds("msmarco-passage" + name, "queries and judgements" if name else "passages") for name in names]
    found.append(need_public("queries-gender-annotated", "the neutral queries of the fairness set"))
    found.append(need_public("gender-representative", "the published lexicon"))
    found += [need_model(model, name) for name, model in settings.encoders.items()]
    files = {str(wanted["ranker"].get("vectors", "train")) for wanted in settings.baselines.values()} - {"train"}
    found += [need_file(file, "word vectors of the kernel rankers", "vectors") for file in sorted(files)]
    return found + unused(settings.given, "vectors")


def trainings(settings: Settings) -> int:
    """How many rankers a run trains."""
    encoders, seeds = len(settings.encoders), len(settings.seeds)
    tuned = 1
    for values in settings.base_grid.values():
        tuned *= len(values)
    # The base, none, two terms with the best and the trained weight, TS dev, and blind with its own base.
    dev = settings.dev_weight is not None
    each = encoders * ((8 + dev) * seeds + len(TERMS) * (len(settings.weights) - 1) + tuned - 1)
    return each + sum(map(len, settings.scores.values())) + len(settings.baselines)


def cost(settings: Settings) -> Cost:
    """What a run takes."""
    disk, time = {
        "tiny": (900_000_000, "about 20 minutes on 2 CPU cores"),
        "real": (12_000_000_000, "about 12 minutes on 2 CPU cores"),
        "full": (400_000_000_000, "about two months on one GPU of 80 GB, most of it for the grid of the base rankers"),
    }.get(settings.scale, (0, "unknown time"))
    return Cost(trainings(settings), disk, time)
