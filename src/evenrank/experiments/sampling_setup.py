"""The sampling experiment's settings at each scale, its queries and its trainings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from evenrank.datasets.public import fetch
from evenrank.datasets.synthetic import SyntheticConfig
from evenrank.groups import GroupTable, Scoring, load_lexicon, score_texts
from evenrank.io import make_folder, read_queries, read_run, read_texts
from evenrank.measures import Evaluation, parse_measure
from evenrank.mitigation.negatives import write_negatives

from .corpora import Lists, Part, all_texts, built_in, draw, judged_queries, msmarco, neutral_queries
from .encoder import SmallBert, make_encoder
from .work import LEXICON, Step, Trained, Trainings, Work

SOURCE = "Bigdeli et al., ECIR 2022, A Light-weight Strategy for Restraining Gender Biases in Neural Rankers"
QUERY_SETS = ("QS1", "QS2")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that differs between the scales; the steps are the same."""

    scale: str
    seeds: tuple[int, ...]
    planted: SyntheticConfig | None
    """The built-in collection, generated for each seed; None: MS MARCO."""
    sizes: Mapping[str, int]
    """Built-in collection: queries ``train``, ``valid`` and ``dev``; MS MARCO: ``train`` (0: all)."""
    depth: int
    """Number of BM25's documents: the candidates for negatives, and the list to re-rank."""
    negatives: int
    share: float
    """Share of biased negatives in the tables."""
    shares: tuple[float, ...]
    """Shares of the curve (Fig. 1), one seed."""
    rankers: Mapping[str, str]
    """Tables 1 and 2: published name → checkpoint (at ``tiny`` the encoder made here)."""
    small_rankers: Mapping[str, str]
    """Table 3, with AdvBert."""
    ranker: Mapping[str, object]
    loss: str
    training: Mapping[str, object]
    adversary: Mapping[str, object]
    """[adversary] of AdvBert."""
    debias: Mapping[str, object]
    """[training] of AdvBert, over ``training``; it continues from the original ranker."""
    small_bert: SmallBert = field(default_factory=SmallBert)


def tiny() -> Settings:
    """The built-in collection on a CPU: a two-tower ranker in place of the cross-encoders, which learn too slowly."""
    return Settings(
        scale="tiny",
        seeds=(0, 1, 2, 3, 4),
        planted=SyntheticConfig(
            passages=16_000, queries=2_400, sentences=3, relevant=4, gender_rate=0.5, male_share=0.75
        ),
        sizes={"train": 1500, "valid": 200, "dev": 700},
        depth=50,
        negatives=10,
        share=0.6,
        shares=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        rankers={"BERT-base": "made here"},
        small_rankers={"BERT-Tiny": "made here"},
        ranker={"kind": "dot", "towers": "separate", "pooling": "mean", "query_length": 32, "passage_length": 64},
        loss="nll",
        training={"batch": 64, "epochs": 1, "learning_rate": 6e-3, "warmup": 0.1, "evaluate_every": 1000},
        adversary={"attack": False},
        debias={"learning_rate": 2e-3, "epochs": 1, "optimizer": "adam"},
    )


def full() -> Settings:
    """The published data and settings: MS MARCO, five cross-encoders, 20 negatives of BM25's first 1,000."""
    from evenrank.training.recipes import load_recipe

    recipe = load_recipe("sampling-cat")
    ranker = recipe.ranker.model_dump(exclude_none=True)
    return Settings(
        scale="full",
        seeds=(0,),
        planted=None,
        sizes={"train": 0},
        depth=1000,
        negatives=20,
        share=0.6,
        shares=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        rankers={
            "BERT-base": "bert-base-uncased",
            "DistilRoBERTa-base": "distilroberta-base",
            "ELECTRA-base": "google/electra-base-discriminator",
        },
        small_rankers={
            "BERT-Tiny": "google/bert_uncased_L-2_H-128_A-2",
            "BERT-Mini": "google/bert_uncased_L-4_H-256_A-4",
        },
        ranker={name: value for name, value in ranker.items() if name != "model"},
        loss=recipe.loss.name,
        training=recipe.training.model_dump(),
        adversary={},
        debias={"optimizer": "adam", "learning_rate": 3e-5, "batch": 64, "epochs": 2, "clip": 1.0, "patience": 1000},
    )


@dataclass(frozen=True, slots=True)
class Data:
    """One seed's parts (``train``, ``valid``, ``dev``, ``QS1``, ``QS2``) and what the rankers start from."""

    collection: str
    parts: Mapping[str, Part]
    encoder: str | None


def prepare(settings: Settings, folder: Path, seed: int, say: Callable[[str], None]) -> Data:
    """The parts of a seed; published data are the same for every seed, a built-in collection is its own."""
    if settings.planted is None:
        home = make_folder(folder / "data")
        say(f"first-stage lists: {home}")
        return Data("irds:msmarco-passage", _published(settings, home), None)
    home = folder / f"data-{seed}"
    source = built_in(home, replace(settings.planted, seed=seed), clicks=False)
    encoder = make_encoder(all_texts(source), home / "encoder", settings.small_bert, seed)
    say(f"first-stage lists: {home}")
    queries, qrels = judged_queries(source.queries, source.qrels)
    drawn = draw(queries, dict(settings.sizes), seed)
    lists = Lists(source.collection, home)
    parts = {name: lists.part(name, table, qrels, depth=settings.depth) for name, table in drawn.items()}
    neutral = drawn["dev"].join(neutral_queries(source.annotated).select("query_id"), on="query_id", how="semi")
    parts["QS1"] = lists.part("QS1", neutral, qrels, depth=settings.depth)
    leaning = most_leaning(parts["QS1"], source.collection, neutral.height // 4)
    parts["QS2"] = lists.part("QS2", neutral.join(leaning, on="query_id", how="semi"), qrels, depth=settings.depth)
    return Data(source.collection, parts, str(encoder))


def most_leaning(part: Part, collection: str, count: int) -> pl.DataFrame:
    """The queries whose first-stage lists lean most to one group (|RaB@10|): the built-in stand-in for the published
    set of queries that are sensitive to fairness. It depends on the first stage alone, never on a ranker."""
    run = read_run(part.run)
    texts = read_texts(collection, run.table["doc_id"].unique())
    scoring = Scoring(load_lexicon(LEXICON))
    scores = GroupTable.of(score_texts(texts, scoring), scoring.describe())
    lean = Evaluation(run, scores).values(parse_measure("RaB@10"))
    table = pl.DataFrame({"query_id": run.queries, "lean": abs(lean)})
    return table.sort("lean", descending=True, maintain_order=True).head(count).select("query_id")


def _published(settings: Settings, home: Path) -> dict[str, Part]:
    """MS MARCO: train, dev small, the 1,765 neutral annotated queries and the 215 fairness-sensitive ones. Validation
    is on dev/2, which shares no query with dev small; queries of QS1 and QS2 are left out of it."""
    source = msmarco(home)
    (sensitive,) = fetch("queries-fairness-sensitive", home)
    sets = {"QS1": neutral_queries(source.annotated), "QS2": read_queries(sensitive)}
    names = {"train": "train/judged", "valid": "dev/2", "dev": "dev/small"}
    return published_parts(
        {part: f"irds:msmarco-passage/{name}" for part, name in names.items()},
        "irds:msmarco-passage/dev",
        sets,
        Lists("irds:msmarco-passage", home, k1=0.82, b=0.68),
        settings,
    )


def published_parts(
    names: Mapping[str, str], qrels_of_sets: str, sets: Mapping[str, pl.DataFrame], lists: Lists, settings: Settings
) -> dict[str, Part]:
    """The parts by the names of their queries and judgements, and the query sets with judgements of their own."""
    parts = {}
    tested = pl.concat([table.select("query_id") for table in sets.values()])
    for part, name in names.items():
        queries, qrels = judged_queries([name], [name])
        if part == "valid":
            queries = queries.join(tested, on="query_id", how="anti", maintain_order="left")
        if part == "train" and settings.sizes["train"]:
            queries = draw(queries, {"train": settings.sizes["train"]}, 0)["train"]
        parts[part] = lists.part(part, queries, qrels, depth=settings.depth)
    _, qrels = judged_queries([names["dev"]], [qrels_of_sets])
    for part, queries in sets.items():
        parts[part] = lists.part(part, queries, qrels, depth=settings.depth)
    return parts


class Experiment(Trainings[Settings, Data]):
    """The trainings of one run of the experiment."""

    source = SOURCE

    def of(self, seed: int) -> Data:
        """The data of a seed."""
        return self._once(seed, lambda: prepare(self.settings, self.folder, seed, self.say))

    def work(self, seed: int) -> Work:
        """The trainings of a seed."""
        return self._work(seed, self.of(seed).collection)

    def negatives(self, seed: int, share: float) -> str:
        """The file of training lists with this share of biased negatives; 0: all at random."""
        data, part = self.of(seed), self.of(seed).parts["train"]
        file = self.folder / f"seed-{seed}" / f"negatives-{share:g}.parquet"
        if not file.is_file():
            make_folder(file.parent)
            write_negatives(
                part.run,
                file,
                collection=data.collection,
                qrels=part.qrels,
                n=self.settings.negatives,
                share=share,
                depth=self.settings.depth,
                seed=seed,
            )
        return str(file)

    def ranker(self, seed: int, name: str, share: float) -> Trained:
        """A ranker trained with a share of biased negatives."""
        recipe = self._recipe(seed, self._checkpoint(seed, name), self.negatives(seed, share))
        return self.work(seed).train(f"{self._folder(seed, name)}-share-{share:g}", recipe)

    def blind(self, seed: int, name: str) -> Trained:
        """A ranker trained with random negatives, group words masked throughout."""
        recipe = self._recipe(seed, self._checkpoint(seed, name), self.negatives(seed, 0.0))
        recipe["data"]["blind"] = LEXICON
        return self.work(seed).train(f"{self._folder(seed, name)}-blind", recipe)

    def adversarial(self, seed: int, name: str) -> Trained:
        """AdvBert: continues from the ranker with random negatives [RKS21]."""
        base = self.ranker(seed, name, 0.0)
        recipe = self._recipe(seed, base.model, self.negatives(seed, 0.0))
        recipe["training"] |= self.settings.debias
        recipe["adversary"] = dict(self.settings.adversary)
        return self.work(seed).train(f"{self._folder(seed, name)}-AdvBert", recipe)

    def ranked(self, seed: int, training: str, *arguments: object) -> None:
        """The lists of every query set re-ranked by a training of this class, given by its method and the arguments."""
        trained: Trained = getattr(self, training)(*arguments)
        for part in ("dev", *QUERY_SETS):
            self.work(seed).rank(trained, part, self.of(seed).parts[part])

    def everything_ahead(self, jobs: int) -> None:
        """Trains in several processes; what is trained is found in the folder."""
        settings, first = self.settings, self.settings.seeds[0]
        own = settings.seeds if settings.planted is not None else (first,)
        self.ahead([("of", (seed,)) for seed in own], jobs)
        shares = {(seed, share) for seed in settings.seeds for share in (0.0, settings.share)}
        shares |= {(first, share) for share in settings.shares}
        self.ahead([("negatives", key) for key in sorted(shares)], jobs)
        # Names that share a ranker are trained once.
        names = {self._folder(first, name): name for name in (*settings.small_rankers, *settings.rankers)}
        steps: list[Step] = [
            ("ranked", (seed, "ranker", seed, name, share)) for name in names.values() for seed, share in sorted(shares)
        ]
        steps += [("ranked", (s, "blind", s, name)) for name in names.values() for s in settings.seeds]
        self.ahead(steps, jobs)
        self.ahead([("ranked", (first, "adversarial", first, name)) for name in settings.small_rankers], jobs)

    def _folder(self, seed: int, name: str) -> str:
        """The name of a ranker's folders; at ``tiny``, one ranker is shown in several rows."""
        return name if self.of(seed).encoder is None else "small-bert"

    def _checkpoint(self, seed: int, name: str) -> str:
        made = self.of(seed).encoder
        return made if made is not None else (dict(self.settings.rankers) | dict(self.settings.small_rankers))[name]

    def _recipe(self, seed: int, model: str, groups: str) -> dict[str, dict[str, object]]:
        data, settings = self.of(seed), self.settings
        train, valid = data.parts["train"], data.parts["valid"]
        return {
            "ranker": {**settings.ranker, "model": model},
            "data": {
                "collection": data.collection,
                "queries": train.queries,
                "groups": groups,
                "negatives": settings.negatives,
            },
            "validation": {
                "queries": valid.queries,
                "qrels": valid.qrels,
                "run": valid.run,
                "measure": "RR@10",
                "depth": settings.depth,
            },
            "loss": {"name": settings.loss},
            "training": {**settings.training, "seed": seed},
        }
