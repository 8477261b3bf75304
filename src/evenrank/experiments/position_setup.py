"""The position experiment's settings at each scale, its two collections, rotated and as they are, and its trainings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NotRequired, TypedDict

import polars as pl

from evenrank.datasets.squad_collection import squad_collection
from evenrank.datasets.synthetic import SyntheticConfig
from evenrank.io import EvenrankError, Run, make_folder, read_queries
from evenrank.mitigation.rotation import rotate_collection

from .corpora import Lists, Part, Source, all_texts, built_in, draw, judged_queries
from .encoder import SmallBert, make_encoder
from .work import Sections, Trained, Trainings, Work

SOURCE = "Hofstätter et al., ECIR 2021, Mitigating the Position Bias of Transformer Models in Passage Re-Ranking"
BIASED, OTHER = "MS MARCO", "SQuAD 2.0"
"""The published collections; at ``tiny``, built-in ones replace them: answers early, and anywhere."""
ORIGINAL, DEBIASED = "original", "debiased"
VERSIONS = (ORIGINAL, DEBIASED)
SQUAD_FILES = ("train-v2.0.json", "dev-v2.0.json")


class RankerSettings(TypedDict):
    """The sections of a ranker's recipe."""

    ranker: Mapping[str, object]
    loss: str
    training: Mapping[str, object]
    data: NotRequired[Mapping[str, object]]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that differs between the scales; the steps are the same."""

    scale: str
    seeds: tuple[int, ...]
    """Of TK."""
    encoder_seeds: int
    """How many of them for BERT_CAT and BERT_DOT."""
    planted: Mapping[str, SyntheticConfig] | None
    """The built-in collection in each published one's place, generated for each seed; None: the published ones."""
    sizes: Mapping[str, Mapping[str, int]]
    """Queries of each collection: ``train``, ``valid`` and ``test``."""
    depth: int
    """Number of BM25's documents to re-rank."""
    negatives: int
    rankers: Mapping[str, RankerSettings]
    """The recipe of each published ranker."""
    similarity: Mapping[str, int]
    """Settings of ATS and MATS."""
    small_bert: SmallBert = field(default_factory=SmallBert)


def tiny() -> Settings:
    """Built-in collections on a CPU: TK with five seeds; small encoders with one."""
    common = {"passages": 6_000, "queries": 1_500, "sentences": 6, "relevant": 1, "gender_rate": 0.2}
    sizes = {"train": 1_000, "valid": 100, "test": 400}
    plain = {"batch": 32, "evaluate_every": 1000, "warmup": 0.1}
    encoder = {"model": "made here"}
    return Settings(
        scale="tiny",
        seeds=(0, 1, 2, 3, 4),
        encoder_seeds=1,
        planted={
            BIASED: SyntheticConfig(**common, relevance_answer_position="early"),  # type: ignore[arg-type]
            OTHER: SyntheticConfig(**common),  # type: ignore[arg-type]
        },
        sizes={BIASED: sizes, OTHER: sizes},
        depth=30,
        negatives=4,
        rankers={
            "BERT_CAT": {
                "ranker": {"kind": "cat", **encoder},
                "loss": "nll",
                "data": {"negatives": 1},
                "training": {**plain, "max_steps": 250, "learning_rate": 3e-3},
            },
            "BERT_DOT": {
                "ranker": {"kind": "dot", **encoder, "towers": "separate", "pooling": "mean"},
                "loss": "nll",
                "training": {**plain, "max_steps": 120, "learning_rate": 6e-3},
            },
            "TK": {
                "ranker": {
                    "kind": "tk",
                    "vector_size": 64,
                    "passage_length": 100,
                    "settings": {"heads": 4, "head_size": 16, "feedforward": 64, "layers": 1},
                },
                "loss": "nll",
                "training": {
                    **plain,
                    "max_steps": 400,
                    "learning_rate": 1e-3,
                    "learning_rates": {"kernels": 0.05, "contextualisation": 4e-3},
                },
            },
        },
        similarity={"passages": 500, "min_terms": 30},
    )


def full() -> Settings:
    """The published data and settings. SQuAD's two files have to lie in the experiment's folder."""
    from evenrank.training.recipes import load_recipe

    recipes = {name: load_recipe(f"position-{name.lower().removeprefix('bert_')}") for name in RANKERS}
    return Settings(
        scale="full",
        seeds=(0,),
        encoder_seeds=1,
        planted=None,
        sizes={
            BIASED: {"train": 0, "valid": 6_980, "test": 48_598},
            OTHER: {"train": 0, "valid": 5_000, "test": 0},
        },
        depth=1000,
        negatives=1,
        rankers={
            name: {
                "ranker": recipe.ranker.model_dump(exclude_none=True),
                "loss": recipe.loss.name,
                "training": recipe.training.model_dump(),
            }
            for name, recipe in recipes.items()
        },
        similarity={"passages": 5_000, "min_terms": 100},
    )


RANKERS = ("BERT_CAT", "BERT_DOT", "TK")


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection as it is and rotated (``texts`` by version), with its parts; ``answers`` by version: SQuAD files,
    empty where no answers are known."""

    texts: Mapping[str, str]
    answers: Mapping[str, str]
    parts: Mapping[str, Part]
    documents: int
    encoder: str | None


def prepare(
    settings: Settings, folder: Path, seed: int, name: str, say: Callable[[str], None] = lambda _: None
) -> Collection:
    """One collection of a seed; published data are the same for every seed, a built-in collection is its own."""
    slug = _slug(name)
    if settings.planted is not None:
        home = folder / f"{slug}-{seed}"
        source = built_in(home, replace(settings.planted[name], seed=seed), clicks=False)
        encoder = str(make_encoder(all_texts(source), home / "encoder", settings.small_bert, seed))
        answers = str(home / "answers.json")
        queries, qrels = judged_queries(source.queries, source.qrels)
        drawn = draw(queries, dict(settings.sizes[name]), seed)
        made = rotated(source.collection, home, answers)
        say(f"first-stage lists: {home}")
        lists = Lists(source.collection, home)
        parts = {part: lists.part(part, table, qrels, depth=settings.depth) for part, table in drawn.items()}
        return Collection(*made, parts, settings.planted[name].passages, encoder)
    home = make_folder(folder / slug)
    source, answers_file, tables = _msmarco() if name == BIASED else squad_source(folder, home)
    say(f"rotated collection and first-stage lists: {home}")
    made = rotated(source.collection, home, answers_file)
    lists = Lists(source.collection, home, k1=0.82, b=0.68)
    _, qrels = judged_queries(source.queries, source.qrels)
    parts = {part: lists.part(part, table, qrels, depth=settings.depth) for part, table in tables.items()}
    from evenrank.io import scan_collection

    documents = sum(batch.height for batch in scan_collection(source.collection, unique=False))
    return Collection(*made, parts, documents, None)


def rotated(collection: str, home: Path, answers: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """The collection by version, rotated once into ``home``, and its answers."""
    out = home / "rotated.tsv"
    moved = home / "rotated.answers.json"
    if not out.is_file():
        rotate_collection(collection, out, answers=answers, answers_out=None if answers is None else moved)
    texts = {ORIGINAL: collection, DEBIASED: str(out)}
    return texts, {} if answers is None else {ORIGINAL: answers, DEBIASED: str(moved)}


def _msmarco() -> tuple[Source, None, dict[str, pl.DataFrame]]:
    """MS MARCO: train; dev small validates; the other judged queries of dev test."""
    names = {part: f"irds:msmarco-passage/{name}" for part, name in _MSMARCO.items()}
    tables = {part: judged_queries([name], [name])[0] for part, name in names.items()}
    return msmarco_parts(names, tables)


_MSMARCO = {"train": "train/judged", "valid": "dev/small", "test": "dev/judged"}


def msmarco_parts(
    names: Mapping[str, str], tables: Mapping[str, pl.DataFrame]
) -> tuple[Source, None, dict[str, pl.DataFrame]]:
    """The parts by the names of their data sets: the test queries are those of dev that do not validate."""
    test = tables["test"].join(tables["valid"], on="query_id", how="anti", maintain_order="left")
    every = (names["train"], names["test"])
    return Source("irds:msmarco-passage", every, every, ""), None, {**tables, "test": test}


def squad_source(folder: Path, home: Path) -> tuple[Source, str, dict[str, pl.DataFrame]]:
    """SQuAD 2.0 from the two files in the experiment's folder, with the official split."""
    files = [folder / name for name in SQUAD_FILES]
    absent = [file.name for file in files if not file.is_file()]
    if absent:
        raise EvenrankError(f"{folder}: put SQuAD 2.0 there first ({' and '.join(absent)}, from its site)")
    if not (home / "counts.json").is_file():
        squad_collection(files).write(home)
    queries, qrels = (str(home / "queries.tsv"),), (str(home / "qrels.txt"),)
    tables = {part: read_queries(home / f"queries.{part}.tsv") for part in ("train", "valid", "test")}
    return Source(str(home / "collection.tsv"), queries, qrels, ""), str(home / "answers.json"), tables


class Experiment(Trainings[Settings, Collection]):
    """The trainings of one run of the experiment."""

    source = SOURCE

    def of(self, seed: int, name: str) -> Collection:
        """A collection of a seed; published ones are those of the first seed."""
        kept = seed if self.settings.planted is not None else 0
        return self._once((kept, name), lambda: prepare(self.settings, self.folder, kept, name, self.say))

    def work(self, seed: int, name: str, version: str) -> Work:
        """The trainings of a seed on a version of a collection."""
        return self._work(seed, self.of(seed, name).texts[version])

    def ranker(self, seed: int, ranker: str, name: str, version: str, start: Trained | None = None) -> Trained:
        """A ranker trained on a version of a collection, from scratch or starting from another training."""
        data, wanted = self.of(seed, name), self.settings.rankers[ranker]
        train, valid = data.parts["train"], data.parts["valid"]
        own = dict(wanted["ranker"])
        if own.get("model") == "made here":
            own["model"] = self.of(seed, BIASED).encoder
        if start is not None:
            own["model"] = start.model
        recipe: Sections = {
            "ranker": own,
            "data": {
                "collection": data.texts[version],
                "queries": train.queries,
                "qrels": train.qrels,
                "run": train.run,
                "negatives": self.settings.negatives,
                "depth": self.settings.depth,
                **wanted.get("data", {}),
            },
            "validation": {
                "queries": valid.queries,
                "qrels": valid.qrels,
                "run": valid.run,
                "depth": self.settings.depth,
            },
            "loss": {"name": wanted["loss"]},
            "training": {**wanted["training"], "seed": seed},
        }
        origin = "" if start is None else f"-from-{start.folder.name.removeprefix(f'{ranker}-')}"
        return self.work(seed, name, version).train(f"{ranker}-{_slug(name)}-{version}{origin}", recipe)

    def ranked(self, trained: Trained, seed: int, name: str, version: str) -> Run:
        """The test lists of a collection as a training ranks them, reading a version of its texts."""
        kept = f"test-{_slug(name)}-{version}"
        return self.work(seed, name, version).rank(trained, kept, self.of(seed, name).parts["test"])

    def transferred(self, seed: int, ranker: str, version: str) -> Trained:
        """Trained on a version of the biased collection, then on the other one as it is."""
        return self.ranker(seed, ranker, OTHER, ORIGINAL, start=self.ranker(seed, ranker, BIASED, version))

    def seeds_of(self, ranker: str) -> tuple[int, ...]:
        """TK has all seeds, the encoders the first ones."""
        return self.settings.seeds if ranker == "TK" else self.settings.seeds[: self.settings.encoder_seeds]

    def everything_ahead(self, jobs: int) -> None:
        """Trains in several processes; what is trained is found in the folder."""
        settings, names = self.settings, (BIASED, OTHER)
        own = settings.seeds if settings.planted is not None else settings.seeds[:1]
        self.ahead([("of", (seed, name)) for seed in own for name in names], jobs)
        pairs = [(seed, ranker) for ranker in settings.rankers for seed in self.seeds_of(ranker)]
        self.ahead(
            [("own_step", (*pair, name, version)) for pair in pairs for name in names for version in VERSIONS], jobs
        )
        self.ahead([("transferred_step", (*pair, version)) for pair in pairs for version in VERSIONS], jobs)

    def own_step(self, seed: int, ranker: str, name: str, version: str) -> None:
        """A ranker trained on a version of a collection, and its lists of both."""
        trained = self.ranker(seed, ranker, name, version)
        for test in VERSIONS:
            self.ranked(trained, seed, name, test)

    def transferred_step(self, seed: int, ranker: str, version: str) -> None:
        """:meth:`transferred`, and its lists."""
        self.ranked(self.transferred(seed, ranker, version), seed, OTHER, ORIGINAL)


def _slug(name: str) -> str:
    return "biased" if name == BIASED else "other"
