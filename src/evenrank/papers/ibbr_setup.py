"""The IBBR experiment's settings at each scale, its queries and lists, and its trainings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from evenrank.files import Run, make_folder, read_qrels, read_queries, read_texts, scan_collection
from evenrank.files.public import fetch
from evenrank.files.synthetic import SyntheticConfig, write_collection
from evenrank.files.tokens import Tokens
from evenrank.files.types import Array
from evenrank.groups import Scoring, load_lexicon, score_texts, sides_of_texts
from evenrank.mitigation.ibbr import best_weight
from evenrank.training.trainer import FAIR_WEIGHT, Line, read_log

from .checks import Cost, Need, Options, need_file, need_irds, need_model, need_public, unused
from .corpora import Lists, Part, Source, all_texts, built_in, draw, judged_queries, msmarco, neutral_queries
from .encoder import SmallBert, make_encoder
from .real_text import grepbiasir_text, real_needs, small_encoder, squad_text
from .untrained import STRENGTHS
from .work import LEXICON, Sections, Step, Trained, Trainings, Work, development

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


LEXICON_SET = "gender-representative"
"""The published lexicon, read by whitespace."""
MSMARCO_BM25 = {"k1": 0.82, "b": 0.68}
FAIR = ("train", "dev", "test")
"""The parts of the fairness set."""


@dataclass(frozen=True, slots=True)
class Data:
    """One seed's parts, and the encoder of each published model.

    clicks: the test queries with their clicks for judgements, where ``parts`` judges them by relevance.
    """

    collection: str
    parts: Mapping[str, Part]
    encoders: Mapping[str, str]
    clicks: Part | None = None
    lexicon: str = LEXICON
    tokens: Tokens = "word"
    """Of the term and of the measures."""
    first_stage: Mapping[str, float] = field(default_factory=dict)
    """Settings of BM25."""


def prepare(settings: Settings, folder: Path, seed: int, say: Callable[[str], None]) -> Data:
    """The parts of a seed: published data are the same for all seeds, a built-in collection is generated for each, and
    real text is divided anew."""
    if settings.planted is not None:
        home = folder / f"data-{seed}"
        source = built_in(home, replace(settings.planted, seed=seed), clicks=True)
        made = make_encoder(all_texts(source), home / "encoder", settings.small_bert, seed)
        found = planted(source, settings, home, seed, {name: str(made) for name in settings.encoders})
    elif settings.options is not None:
        home = folder / f"data-{seed}"
        found = real_data(settings, folder, home, seed)
    else:
        home = make_folder(folder / "data")
        source = msmarco(home)
        (lexicon,) = fetch(LEXICON_SET, to=home)
        parts = split(source, settings, home, 0)
        found = Data(
            source.collection,
            parts,
            dict(settings.encoders),
            lexicon=str(lexicon),
            tokens="whitespace",
            first_stage=MSMARCO_BM25,
        )
    say(f"first-stage lists: {home}")
    return found


def planted(source: Source, settings: Settings, home: Path, seed: int, encoders: Mapping[str, str]) -> Data:
    """The built-in collection: training queries with their skewed clicks; the others, about other entities, with every
    relevant passage, and the test queries with their unskewed clicks too."""
    sizes, lists = settings.sizes, Lists(source.collection, home)
    clicks, relevant = (read_qrels(home / name) for name in ("clicks.txt", "qrels.txt"))
    pools = {name: read_queries(home / f"queries.{name}.tsv") for name in ("train", "valid", "test")}
    drawn = draw(pools["train"], {name: sizes[name] for name in ("dpr", "train")}, seed)
    drawn |= draw(pools["valid"], {name: sizes[name] for name in ("dpr_dev", "dev")}, seed)
    drawn |= draw(pools["test"], {"test": sizes["test"]}, seed)
    parts = {
        name: lists.part(
            name,
            table,
            clicks if name in ("dpr", "train") else relevant,
            depth=settings.depth,
            listed=settings.listed,
        )
        for name, table in drawn.items()
    }
    return Data(source.collection, parts, encoders, _clicked(lists, parts["test"], drawn["test"], clicks))


def split(source: Source, settings: Settings, home: Path, seed: int) -> dict[str, Part]:
    """Draws the five parts and writes their lists. The fairness set is drawn from the judged neutral queries."""
    sizes = settings.sizes
    queries, qrels = judged_queries(source.queries, source.qrels)
    neutral = queries.join(neutral_queries(source.annotated).select("query_id"), on="query_id", how="semi")
    fair = draw(neutral, {name: sizes[name] for name in FAIR}, seed)
    others = queries
    for table in fair.values():
        others = others.join(table, on="query_id", how="anti", maintain_order="left")
    drawn = draw(others, {name: sizes[name] for name in ("dpr", "dpr_dev")}, seed) | fair
    lists = Lists(source.collection, home, **MSMARCO_BM25)
    return {
        name: lists.part(name, table, qrels, depth=settings.depth, listed=settings.listed)
        for name, table in drawn.items()
    }


def real_data(settings: Settings, folder: Path, home: Path, seed: int) -> Data:
    """SQuAD's questions for the ranker itself, Grep-BiasIR's neutral queries for the fairness set.

    A training query of the fairness set has one click, on the relevant document in male or female wording, male in
    ``settings.click_male_share``; development and test queries are judged by relevance.
    """
    assert settings.options is not None
    squad = squad_text(settings.options, folder, folder / "squad", seed=0)
    grep = grepbiasir_text(settings.options, folder / "grepbiasir")
    home = make_folder(home)
    collection = pl.concat(
        pl.concat(list(scan_collection(name))).select(*_marked(mark, "doc_id"), "text")
        for mark, name in (("s", squad.source.collection), ("g", grep.source.collection))
    )
    asked = squad.splits["train"].select(*_marked("s", "query_id"), "text")
    if not (home / "collection.tsv").is_file():
        write_collection(home, collection, asked.with_columns(split=pl.lit(None, dtype=pl.String)))
    judged = read_qrels(squad.source.qrels[0]).with_columns(_marked("s", "query_id", "doc_id"))
    fair = grep.queries.with_columns(_marked("g", "query_id"))
    relevant = grep.qrels.with_columns(_marked("g", "query_id", "doc_id"))
    relevant = relevant.filter(pl.col("relevance") >= 1)
    sizes, lists = settings.sizes, Lists(str(home / "collection.tsv"), home)
    drawn = draw(asked, {name: sizes[name] for name in ("dpr", "dpr_dev")}, 0)
    drawn |= draw(fair, {name: sizes[name] for name in FAIR}, seed)
    clicks = skewed_clicks(drawn["train"], relevant, collection, settings.click_male_share, seed)
    judgements = {"dpr": judged, "dpr_dev": judged, "train": clicks, "dev": relevant, "test": relevant}
    parts = {
        name: lists.part(name, table, judgements[name], depth=settings.depth, listed=settings.listed)
        for name, table in drawn.items()
    }
    even = skewed_clicks(drawn["test"], relevant, collection, 0.5, seed)
    return Data(
        str(home / "collection.tsv"),
        parts,
        dict(settings.encoders),
        _clicked(lists, parts["test"], drawn["test"], even),
    )


def skewed_clicks(
    queries: pl.DataFrame, relevant: pl.DataFrame, texts: pl.DataFrame, male_share: float, seed: int
) -> pl.DataFrame:
    """One click a query, among its relevant documents: a male one for ``male_share`` of the queries, a female one for
    the others; queries without both wordings are left out."""
    scoring = Scoring(load_lexicon(LEXICON), magnitudes=("tf_words",))
    found = relevant.join(queries.select("query_id"), on="query_id", how="semi", maintain_order="left")
    scores = score_texts(texts.join(found.select("doc_id").unique(), on="doc_id", how="semi"), scoring)
    side = scores.select("doc_id", side=(pl.col("count_m").cast(pl.Int64) - pl.col("count_f").cast(pl.Int64)).sign())
    found = found.join(side, on="doc_id", how="left", maintain_order="left")
    both = found.filter(pl.col("side") != 0).group_by("query_id").agg(pl.col("side").n_unique())
    able = queries.join(both.filter(pl.col("side") == 2), on="query_id", how="semi", maintain_order="left")["query_id"]
    order = np.random.default_rng([seed, 11]).permutation(len(able))
    male = set(able.gather(order[: round(len(able) * male_share)]).to_list())
    wanted = pl.DataFrame({"query_id": able, "side": [1 if query in male else -1 for query in able]})
    wanted = wanted.with_columns(pl.col("side").cast(found.schema["side"]))
    rows = wanted.join(found, on=["query_id", "side"], how="inner", maintain_order="left")
    return rows.unique("query_id", keep="first", maintain_order=True).select("query_id", "doc_id", "relevance")


def _clicked(lists: Lists, part: Part, queries: pl.DataFrame, clicks: pl.DataFrame) -> Part:
    """The same queries and lists, judged by clicks."""
    return replace(lists.judged("test-clicks", queries, clicks), run=part.run)


def _marked(mark: str, *names: str) -> list[pl.Expr]:
    """Ids of one of two collections that are to be one."""
    return [(pl.lit(mark) + pl.col(name)).alias(name) for name in names]


_STEPS = 40


def sides(run: Run, collection: str, scoring: Scoring | None = None) -> Array:
    """The side of each row of a run: 1 male, -1 female, 0 neither; ``scoring``: by default ours."""
    documents = run.table["doc_id"].unique(maintain_order=True)
    texts = read_texts(collection, documents)
    scoring = replace(scoring or Scoring(load_lexicon(LEXICON)), magnitudes=("tf_words",))
    known = texts.select("doc_id", side=pl.Series(sides_of_texts(texts["text"], scoring)).cast(pl.Float64))
    return run.table.join(known, on="doc_id", how="left", maintain_order="left")["side"].to_numpy()


def shifted(run: Run, collection: str, offset: float, scoring: Scoring | None = None) -> Run:
    """The run with ``offset / 2`` taken from every male passage's score and added to every female one's."""
    scores = run.table["score"].to_numpy() - offset / 2 * sides(run, collection, scoring)
    table = run.table.select("query_id", "doc_id").with_columns(score=pl.Series(scores))
    return Run.from_table(table, run.name)


def offset_of(run: Run, qrels: str, collection: str, scoring: Scoring | None = None) -> float:
    """The least offset that brings ΔA-PRF to 0 (negative where female passages win more often)."""
    table = run.table.with_columns(side=pl.Series(sides(run, collection, scoring)))
    judged = read_qrels(qrels).filter(pl.col("relevance") >= 1).select("query_id", "doc_id", clicked=pl.lit(True))
    marked = table.join(judged, on=["query_id", "doc_id"], how="left", maintain_order="left")
    rows = marked.select(
        "query_id", "score", "side", row=pl.int_range(pl.len()), clicked=pl.col("clicked").is_not_null()
    )
    pairs = rows.filter("clicked").join(rows.filter(~pl.col("clicked")), on="query_id", suffix="_other")
    pairs = pairs.filter(pl.col("side") != 0)
    ahead = (pairs["score"] - pairs["score_other"]).to_numpy()
    apart = (pairs["side"] - pairs["side_other"]).to_numpy() / 2
    male = pairs["side"].to_numpy() > 0
    query = pairs["query_id"].rank("dense").to_numpy().astype(np.int64) - 1

    def gap(offset: float) -> float:
        won = (ahead - offset * apart >= 0).astype(np.float64)
        return _mean_share(won[male], query[male]) - _mean_share(won[~male], query[~male])

    scores = table["score"].to_numpy()
    return least(gap, float(scores.max() - scores.min()))


def least(gap: Callable[[float], float], most: float) -> float:
    """The offset nearest 0 at which ``gap``, which falls as the offset grows, changes its sign; 0 if it never does."""
    start = gap(0.0)
    if np.isnan(start) or start == 0:
        return 0.0
    low, high = 0.0, float(np.copysign(most, start))
    if np.sign(gap(high)) == np.sign(start):
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if np.sign(gap(middle)) == np.sign(start) else (low, middle)
    return high


def _mean_share(won: Array, query: Array) -> float:
    """The share of pairs won, mean over queries."""
    if not len(won):
        return float("nan")
    counts = np.bincount(query)
    return float((np.bincount(query, weights=won)[counts > 0] / counts[counts > 0]).mean())


SOURCE = "Li et al. 2022, Debiasing Neural Retrieval via In-batch Balancing Regularization"
DEV = "TS dev"
"""The row of the weight that the development seeds chose."""
SHIFTS = (0.5, 1.0)
"""Shares of the ideal offset; the last is the yardstick ``shift``."""


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
            "collection": data.collection,
            "queries": part.queries,
            "qrels": part.qrels,
            "run": part.run,
            **settings.data,
            **({} if on == "dpr" else settings.fair_data),
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
        return self._work(seed, self.of(seed).collection)

    def scoring(self, seed: int) -> Scoring:
        """What the measures, the term and the ideal offset take for group words."""
        data = self.of(seed)
        return Scoring(load_lexicon(data.lexicon), data.tokens)

    def base(self, seed: int, encoder: str, *, blind: bool = False) -> Trained:
        """The ranker before the fairness queries."""
        return self._base(seed, encoder, self.tuned(encoder), blind)

    def tuned(self, encoder: str) -> dict[str, float]:
        """The settings of the grid with the best validation measure on the first seed."""
        grid = self.settings.base_grid
        points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        if len(points) == 1:
            return points[0]
        seed = self.settings.seeds[0]
        return max(points, key=lambda point: self._base(seed, encoder, point, blind=False).value)

    def _base(self, seed: int, encoder: str, point: Mapping[str, float], blind: bool) -> Trained:
        data, settings = self.of(seed), self.settings
        ranker = {**settings.ranker, "model": data.encoders[encoder]}
        if encoder in settings.layers:
            ranker["layers"] = settings.layers[encoder]
        values = {name: int(value) if name == "batch" else value for name, value in point.items()}
        name = "-".join([encoder, "base", *(f"{value:g}" for value in values.values()), *(["blind"] if blind else [])])
        training = {**settings.base, **values}
        return self.work(seed).train(name, recipe(settings, data, seed, ranker, training, on="dpr", blind=blind))

    def continued(
        self, seed: int, encoder: str, fairness: Mapping[str, object] | None, *, blind: bool = False
    ) -> dict[str, dict[str, object]]:
        """The recipe that continues from :meth:`base` with the fairness queries."""
        settings = self.settings
        ranker = {**settings.ranker, "model": self.base(seed, encoder, blind=blind).model}
        training = {**settings.base, **self.tuned(encoder), **settings.going_on}
        training["batch"] = int(str(training["batch"]).removesuffix(".0"))
        return recipe(settings, self.of(seed), seed, ranker, training, on="train", fairness=fairness, blind=blind)

    def fair(self, seed: int, encoder: str, term: str, weight: float | str, score: Score) -> Trained:
        """With a term; weight 0 is "none"."""
        if weight == 0:
            term, score = "TS", self.settings.score
        fairness: dict[str, object] = {
            "name": TERMS[term],
            "weight": weight if isinstance(weight, str) else float(weight),
            "score": score,
        }
        if weight == "auto":
            fairness["rate"] = self.settings.auto_rate
        data = self.of(seed)
        if data.lexicon != LEXICON:
            fairness["attributes"] = [{"lexicon": data.lexicon, "tokens": data.tokens}]
        name = "none" if weight == 0 else f"{term}-{score}-{weight if isinstance(weight, str) else f'{weight:g}'}"
        return self.work(seed).train(f"{encoder}-{name}", self.continued(seed, encoder, fairness))

    def blind(self, seed: int, encoder: str) -> Trained:
        """With group words masked throughout."""
        return self.work(seed).train(f"{encoder}-blind", self.continued(seed, encoder, None, blind=True))

    def baseline(self, name: str) -> Trained:
        """A kernel ranker of Table 2, first seed."""
        seed = self.settings.seeds[0]
        wanted = self.settings.baselines[name]
        training = {**wanted["training"], "seed": seed}
        return self.work(seed).train(
            name, recipe(self.settings, self.of(seed), seed, wanted["ranker"], training, on="dpr")
        )

    def test(self, seed: int, trained: Trained) -> Run:
        """The test lists re-ranked."""
        return self.work(seed).rank(trained, "test", self.of(seed).parts["test"])

    def ranked(self, seed: int, training: str, *arguments: object) -> Run:
        """The test lists re-ranked by a training of this class, given by the name of its method and the arguments."""
        return self.test(seed, getattr(self, training)(*arguments))

    def retrieved(self, seed: int, encoder: str, system: str, weight: float) -> Run:
        """The first passages of the whole collection for the test queries, by the vectors of a row of Table 1.

        ``system``: none, base, or a term with the best weight, ``weight``.
        """
        score = self.settings.score
        term = "TS" if system == "none" else system.removesuffix(" best")
        trained = self.base(seed, encoder) if system == "base" else self.fair(seed, encoder, term, weight, score)
        part = self.of(seed).parts["test"]
        return self.work(seed).retrieve(trained, "test", part, self.settings.listed)

    def retrievals(self, encoder: str, chosen: Mapping[str, float]) -> list[tuple[str, str, float]]:
        """The arguments of :meth:`retrieved` after the seed, for each row that searches."""
        return [(encoder, row, chosen.get(row.removesuffix(" best"), 0.0)) for row in self.settings.retrieved]

    def shifts(self, seed: int, encoder: str) -> dict[float, Run]:
        """The test lists of none with shares of the ideal group offset, whose size the development queries give."""
        settings, data = self.settings, self.of(seed)
        none = self.fair(seed, encoder, "TS", 0, settings.score)
        part = data.parts["dev"]
        scoring = self.scoring(seed)
        whole = offset_of(development(none), part.qrels, data.collection, scoring)
        run = self.test(seed, none)
        return {share: shifted(run, data.collection, share * whole, scoring) for share in SHIFTS}

    def rows(self, seed: int, encoder: str, chosen: Mapping[str, float]) -> dict[str, Trained]:
        """The training of each row of Table 1, by name."""
        score = self.settings.score
        trained = {"base": self.base(seed, encoder), "none": self.fair(seed, encoder, "TS", 0, score)}
        for term, weight in chosen.items():
            trained[f"{term} best"] = self.fair(seed, encoder, term, weight, score)
            trained[f"{term} auto"] = self.fair(seed, encoder, term, "auto", score)
        if self.settings.dev_weight is not None:
            trained[DEV] = self.fair(seed, encoder, "TS", self.settings.dev_weight, score)
        trained["blind"] = self.blind(seed, encoder)
        return trained

    def systems(self, seed: int, encoder: str, chosen: Mapping[str, float]) -> dict[str, Run]:
        """The test lists of every row of Table 1, by name."""
        runs = {name: self.test(seed, one) for name, one in self.rows(seed, encoder, chosen).items()}
        for share, run in self.shifts(seed, encoder).items():
            runs["shift" if share == 1 else f"shift × {share:g}"] = run
        return runs

    def best(self, encoder: str, term: str) -> tuple[float, dict[float, Trained]]:
        """The weight chosen by validation on the first seed (0: none qualifies), and the grid."""
        seed = self.settings.seeds[0]
        grid = {w: self.fair(seed, encoder, term, w, self.settings.score) for w in (0.0, *self.settings.weights)}
        weights = self.settings.weights
        chosen = best_weight([grid[w].value for w in weights], [grid[w].bias for w in weights], grid[0.0].value)
        return (0.0 if chosen is None else weights[chosen]), grid

    def curve(self, seed: int, encoder: str) -> list[Line]:
        """The log of none."""
        return self.log(self.fair(seed, encoder, "TS", 0, self.settings.score))

    def log(self, trained: Trained) -> list[Line]:
        """The log of a training."""
        return read_log(trained.folder / "log.jsonl")

    def auto_state(self, trained: Trained) -> str:
        """The trained weights of the last checkpoint, as JSON; empty if there is none."""
        files = [*(trained.folder / "checkpoints").glob(f"checkpoint-*/{FAIR_WEIGHT}")]
        files.sort(key=lambda file: int(file.parent.name.rpartition("-")[2]))
        return files[-1].read_text(encoding="utf-8") if files else ""

    def rm3(self, seed: int) -> Run:
        """The candidates of the test queries as RM3 orders them."""
        data = self.of(seed)
        lists = Lists(data.collection, Path(data.parts["test"].run).parent, **data.first_stage)
        return lists.rm3(data.parts["test"])

    def everything_ahead(self, jobs: int) -> None:
        """Runs all trainings in several processes; the results are kept in the folder."""
        settings, first, encoders = self.settings, self.settings.seeds[0], list(self.settings.encoders)
        own = settings.seeds if settings.planted is not None or settings.options is not None else (first,)
        self.ahead([("of", (seed,)) for seed in own], jobs)
        if settings.base_grid:
            self.ahead([("tuned", (encoder,)) for encoder in encoders], jobs)
        starts = [(seed, encoder, blind) for seed in settings.seeds for encoder in encoders for blind in (False, True)]
        self.ahead([("start", start) for start in starts], jobs)

        def fair(seed: int, encoder: str, term: str, weight: float | str, score: str = settings.score) -> Step:
            return "ranked", (seed, "fair", seed, encoder, term, weight, score)

        steps = [fair(first, e, term, w) for e in encoders for term in TERMS for w in settings.weights]
        steps += [fair(first, encoders[0], "TS", w, score) for score, ws in settings.scores.items() for w in ws]
        for seed in settings.seeds:
            for encoder in encoders:
                steps += [fair(seed, encoder, "TS", 0), *(fair(seed, encoder, term, "auto") for term in TERMS)]
                steps.append(("ranked", (seed, "blind", seed, encoder)))
                if settings.dev_weight is not None:
                    steps.append(fair(seed, encoder, "TS", settings.dev_weight))
        steps += [("ranked", (first, "baseline", name)) for name in settings.baselines]
        self.ahead(steps, jobs)
        chosen = {(e, term): self.best(e, term)[0] for e in encoders for term in TERMS}
        self.ahead([fair(seed, *key, weight) for key, weight in chosen.items() for seed in settings.seeds], jobs)
        searches = [row for e in encoders for row in self.retrievals(e, {term: chosen[e, term] for term in TERMS})]
        self.ahead([("retrieved", (seed, *row)) for row in searches for seed in settings.seeds], jobs)

    def start(self, seed: int, encoder: str, blind: bool) -> None:
        """:meth:`base` as a step, with its test lists."""
        trained = self.base(seed, encoder, blind=blind)
        if not blind:
            self.test(seed, trained)
