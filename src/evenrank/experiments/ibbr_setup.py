"""The IBBR experiment's settings at each scale, its queries and its trainings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from evenrank.datasets.synthetic import SyntheticConfig
from evenrank.io import Run, make_folder
from evenrank.mitigation.ibbr import best_weight

from .corpora import Lists, Part, Source, all_texts, built_in, draw, judged_queries, msmarco, neutral_queries
from .encoder import SmallBert, make_encoder
from .work import LEXICON, Sections, Step, Trained, Trainings, Work

SOURCE = "Li et al. 2022, Debiasing Neural Retrieval via In-batch Balancing Regularization"
TERMS = {"PD": "ibbr-pd", "TS": "ibbr-ts"}
Score = Literal["softmax", "sigmoid", "identity"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that differs between the scales; the steps are the same."""

    scale: str
    seeds: tuple[int, ...]
    planted: SyntheticConfig | None
    """The built-in collection, generated for each seed; None: MS MARCO."""
    sizes: Mapping[str, int]
    """Queries: ``dpr``, ``dpr_dev``, ``train``, ``dev`` and ``test`` (the last three: the fairness set)."""
    listed: int
    """Passages in a query's list, one of them clicked."""
    depth: int
    """Number of BM25's documents that the list is taken from."""
    encoders: Mapping[str, str]
    """For each published model (``BERT-L2``) the checkpoint; at ``tiny`` a size of :class:`SmallBert`."""
    ranker: Mapping[str, object]
    data: Mapping[str, object]
    base: Mapping[str, object]
    """[training] of the ranker itself."""
    going_on: Mapping[str, object]
    """[training] on the fairness queries, over ``base``."""
    weights: tuple[float, ...]
    score: Score
    """R in nPRF, in the main rows."""
    scores: Mapping[str, tuple[float, ...]]
    """The weights of TS to compare for each R (one seed)."""
    baselines: Mapping[str, Sections]
    """Rankers of Table 2 by their published names: ``ranker`` and ``training``."""
    small_bert: SmallBert = field(default_factory=SmallBert)


def tiny() -> Settings:
    """The built-in collection on a CPU: one encoder, five seeds for the main rows, one for the grids."""
    return Settings(
        scale="tiny",
        seeds=(0, 1, 2, 3, 4),
        planted=SyntheticConfig(
            passages=24_000,
            queries=5_100,
            sentences=3,
            relevant=2,
            gender_rate=0.9,
            relevance_gender_rate=0.9,
            click_male_share=0.8,
        ),
        sizes={"dpr": 1500, "dpr_dev": 100, "train": 1500, "dev": 1000, "test": 1000},
        listed=10,
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
        data={"negatives": 9, "sampling": "random", "depth": 1000},
        base={
            "batch": 128,
            "epochs": 4,
            "learning_rate": 6e-3,
            "warmup": 0.1,
            "evaluate_every": 1000,
            "weight_decay": 0.01,
        },
        # On so few fairness queries an encoder would memorise words; the projection alone has to find the groups.
        going_on={
            "batch": 500,
            "learning_rate": 2e-3,
            "learning_rates": {"embeddings": 0.0, "encoder": 0.0},
            "epochs": 10,
        },
        weights=(0.003, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0),
        score="softmax",
        scores={"sigmoid": (0.1, 1.0), "identity": (0.01, 0.1)},
        baselines=_tiny_baselines(),
    )


def _tiny_baselines() -> dict[str, Sections]:
    words = {"passage_length": 64, "vector_size": 64}
    plain = {"batch": 32, "evaluate_every": 1000, "warmup": 0.1}

    def baseline(kind: str, steps: int, **training: object) -> Sections:
        return {"ranker": {"kind": kind, **words}, "training": {**plain, "max_steps": steps, **training}}

    return {
        "MP": baseline("match-pyramid", 60),
        "KNRM": baseline("knrm", 150, learning_rates={"kernels": 0.2, "embeddings": 1e-3}),
        "C-KNRM": baseline("conv-knrm", 40, learning_rate=1e-3, learning_rates={"kernels": 0.2}),
        "TK": baseline("tk", 60, learning_rate=1e-3, learning_rates={"kernels": 0.05}),
    }


def full() -> Settings:
    """The published data and settings: MS MARCO, both encoders, ten seeds. GloVe vectors: see the notes."""
    from evenrank.training.recipes import load_recipe

    recipe = load_recipe("ibbr-dot")
    ranker = recipe.ranker.model_dump(exclude_none=True)
    training = recipe.training.model_dump()
    words = {"query_length": 30, "passage_length": 100}
    plain = {"batch": 32, "optimizer": "adam", "learning_rate": 1e-3, "evaluate_every": 4000}
    kinds = {"MP": "match-pyramid", "KNRM": "knrm", "C-KNRM": "conv-knrm", "TK": "tk"}
    return Settings(
        scale="full",
        seeds=tuple(range(10)),
        planted=None,
        sizes={"dpr": 510_586, "dpr_dev": 26_873, "train": 876, "dev": 250, "test": 126},
        listed=200,
        depth=1000,
        encoders={"BERT-L2": str(recipe.ranker.model), "BERT-L4": "google/bert_uncased_L-4_H-256_A-4"},
        ranker={name: value for name, value in ranker.items() if name != "model"},
        data={"negatives": recipe.data.negatives, "sampling": recipe.data.sampling, "depth": 1000},
        base=training,
        going_on={"epochs": 10.0, "evaluate_every": 5},
        weights=(0.1, 0.5, 1.0, 5.0, 10.0),
        score="softmax",
        scores={"sigmoid": (0.1, 1.0, 10.0), "identity": (0.1, 1.0, 10.0)},
        baselines={
            name: {"ranker": {"kind": kind, **words}, "training": {**plain, "learning_rates": {}}}
            for name, kind in kinds.items()
        },
    )


@dataclass(frozen=True, slots=True)
class Data:
    """One seed's parts, and the encoder of each published model."""

    source: Source
    parts: Mapping[str, Part]
    encoders: Mapping[str, str]


def prepare(settings: Settings, folder: Path, seed: int, say: Callable[[str], None]) -> Data:
    """The parts of a seed; published data are the same for all seeds, a built-in collection is generated for each."""
    if settings.planted is None:
        seed, home = 0, make_folder(folder / "data")
        source = msmarco(home)
        encoders = dict(settings.encoders)
    else:
        home = folder / f"data-{seed}"
        source = built_in(home, replace(settings.planted, seed=seed), clicks=True)
        made = make_encoder(all_texts(source), home / "encoder", settings.small_bert, seed)
        encoders = {name: str(made) for name in settings.encoders}
    say(f"first-stage lists: {home}")
    return Data(source, split(source, settings, home, seed), encoders)


def split(source: Source, settings: Settings, home: Path, seed: int) -> dict[str, Part]:
    """Draws the five parts and writes their lists. The fairness set is drawn from the judged neutral queries."""
    sizes = settings.sizes
    queries, qrels = judged_queries(source.queries, source.qrels)
    neutral = queries.join(neutral_queries(source.annotated).select("query_id"), on="query_id", how="semi")
    fair = draw(neutral, {name: sizes[name] for name in ("train", "dev", "test")}, seed)
    others = queries
    for table in fair.values():
        others = others.join(table, on="query_id", how="anti", maintain_order="left")
    drawn = draw(others, {name: sizes[name] for name in ("dpr", "dpr_dev")}, seed) | fair
    lists = Lists(source.collection, home)
    return {
        name: lists.part(name, table, qrels, depth=settings.depth, listed=settings.listed)
        for name, table in drawn.items()
    }


def recipe(
    settings: Settings,
    data: Data,
    seed: int,
    ranker: Mapping[str, object],
    training: Mapping[str, object],
    *,
    on: str,
    fairness: Mapping[str, object] | None = None,
    blind: bool = False,
) -> dict[str, dict[str, object]]:
    """A training on the part ``on``, validated on its own validation part."""
    part, valid = data.parts[on], data.parts["dpr_dev" if on == "dpr" else "dev"]
    found: dict[str, dict[str, object]] = {
        "ranker": dict(ranker),
        "data": {
            "collection": data.source.collection,
            "queries": part.queries,
            "qrels": part.qrels,
            "run": part.run,
            **settings.data,
        },
        "validation": {
            "queries": valid.queries,
            "qrels": valid.qrels,
            "run": valid.run,
            "measure": "RR",
            "depth": settings.depth,
        },
        "loss": {"name": "nll"},
        "training": {**training, "seed": seed},
    }
    if blind:
        found["data"]["blind"] = LEXICON
    if fairness is not None:
        found["fairness"] = dict(fairness)
    return found


class Experiment(Trainings[Settings, Data]):
    """The trainings of one run of the experiment."""

    source = SOURCE

    def of(self, seed: int) -> Data:
        """The data of a seed."""
        return self._once(seed, lambda: prepare(self.settings, self.folder, seed, self.say))

    def work(self, seed: int) -> Work:
        """The trainings of a seed."""
        return self._work(seed, self.of(seed).source.collection)

    def base(self, seed: int, encoder: str, *, blind: bool = False) -> Trained:
        """The ranker before the fairness queries."""
        data, settings = self.of(seed), self.settings
        ranker = {**settings.ranker, "model": data.encoders[encoder]}
        name = f"{encoder}-base{'-blind' if blind else ''}"
        return self.work(seed).train(name, recipe(settings, data, seed, ranker, settings.base, on="dpr", blind=blind))

    def continued(
        self, seed: int, encoder: str, fairness: Mapping[str, object] | None, *, blind: bool = False
    ) -> dict[str, dict[str, object]]:
        """The recipe that continues from :meth:`base` with the fairness queries."""
        settings = self.settings
        ranker = {**settings.ranker, "model": self.base(seed, encoder, blind=blind).model}
        training = {**settings.base, **settings.going_on}
        return recipe(settings, self.of(seed), seed, ranker, training, on="train", fairness=fairness, blind=blind)

    def fair(self, seed: int, encoder: str, term: str, weight: float | str, score: Score) -> Trained:
        """With a term; weight 0 is "none"."""
        if weight == 0:
            term, score = "TS", self.settings.score
        fairness = {"name": TERMS[term], "weight": weight if isinstance(weight, str) else float(weight), "score": score}
        name = "none" if weight == 0 else f"{term}-{score}-{weight if isinstance(weight, str) else f'{weight:g}'}"
        return self.work(seed).train(f"{encoder}-{name}", self.continued(seed, encoder, fairness))

    def blind(self, seed: int, encoder: str) -> Trained:
        """With group words masked throughout."""
        return self.work(seed).train(f"{encoder}-blind", self.continued(seed, encoder, None, blind=True))

    def ranked(self, seed: int, training: str, *arguments: object) -> Run:
        """The test lists re-ranked by a training of this class, given by the name of its method and the arguments."""
        trained: Trained = getattr(self, training)(*arguments)
        return self.work(seed).rank(trained, "test", self.of(seed).parts["test"])

    def everything_ahead(self, jobs: int) -> None:
        """Runs all trainings in several processes; the results are kept in the folder."""
        settings, first, encoders = self.settings, self.settings.seeds[0], list(self.settings.encoders)
        own = settings.seeds if settings.planted is not None else (first,)
        self.ahead([("of", (seed,)) for seed in own], jobs)
        starts = [(seed, encoder, blind) for seed in settings.seeds for encoder in encoders for blind in (False, True)]
        self.ahead([("start", start) for start in starts], jobs)

        def fair(seed: int, encoder: str, term: str, weight: float | str, score: Score = settings.score) -> Step:
            return "ranked", (seed, "fair", seed, encoder, term, weight, score)

        steps = [fair(first, e, term, w) for e in encoders for term in TERMS for w in settings.weights]
        steps += [fair(first, encoders[0], "TS", w, score) for score, ws in settings.scores.items() for w in ws]  # type: ignore[arg-type]
        for seed in settings.seeds:
            for encoder in encoders:
                steps += [fair(seed, encoder, "TS", 0), *(fair(seed, encoder, term, "auto") for term in TERMS)]
                steps.append(("ranked", (seed, "blind", seed, encoder)))
        steps += [("ranked", (first, "baseline", name)) for name in settings.baselines]
        self.ahead(steps, jobs)
        chosen = {(e, term): self.best(e, term)[0] for e in encoders for term in TERMS}
        self.ahead([fair(seed, *key, weight) for key, weight in chosen.items() for seed in settings.seeds], jobs)

    def start(self, seed: int, encoder: str, blind: bool) -> None:
        """:meth:`base` as a step."""
        self.base(seed, encoder, blind=blind)

    def best(self, encoder: str, term: str) -> tuple[float, dict[float, Trained]]:
        """The weight chosen by validation on the first seed (0: none qualifies), and the grid."""
        seed = self.settings.seeds[0]
        grid = {w: self.fair(seed, encoder, term, w, self.settings.score) for w in (0.0, *self.settings.weights)}
        weights = self.settings.weights
        chosen = best_weight([grid[w].value for w in weights], [grid[w].bias for w in weights], grid[0.0].value)
        return (0.0 if chosen is None else weights[chosen]), grid

    def rm3(self, seed: int) -> Run:
        """The candidates of the test queries as RM3 orders them."""
        data = self.of(seed)
        return Lists(data.source.collection, Path(data.parts["test"].run).parent).rm3(data.parts["test"])

    def baseline(self, name: str) -> Trained:
        """A kernel ranker of Table 2, first seed."""
        seed = self.settings.seeds[0]
        wanted = self.settings.baselines[name]
        training = {**wanted["training"], "seed": seed}
        return self.work(seed).train(
            name, recipe(self.settings, self.of(seed), seed, wanted["ranker"], training, on="dpr")
        )
