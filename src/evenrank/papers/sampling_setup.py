"""The sampling experiment's settings at each scale, its queries and lists, and its trainings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from evenrank.files import Run, atomic_path, make_folder, read_queries, read_run, read_texts, scan_collection
from evenrank.files.public import fetch
from evenrank.files.synthetic import SyntheticConfig
from evenrank.files.tokens import Tokens
from evenrank.groups import GroupTable, Scoring, load_lexicon, score_texts
from evenrank.measures import Evaluation, parse_measure

from .checks import Cost, Need, Options, need_irds, need_model, need_public, unused
from .corpora import Lists, Part, all_texts, built_in, draw, judged_queries, msmarco, neutral_queries
from .encoder import SmallBert, make_encoder
from .real_text import grepbiasir_text, real_needs, small_encoder, squad_text
from .untrained import STRENGTHS
from .work import LEXICON, Step, Trained, Trainings, Work

QUERY_SETS = ("QS1", "QS2")
LEXICON_SET, RUNS_SET, SENSITIVE_SET, ANNOTATED_SET = (
    "gender-representative", "runs-dev", "queries-fairness-sensitive", "queries-gender-annotated"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Data:
    """One seed's parts (``train``, ``valid``, ``dev``, ``QS1``, ``QS2``) and what the rankers start from."""

    collection: str
    parts: Mapping[str, Part]
    lists: Lists
    """Of the collection that training lists are drawn from."""
    encoder: str | None = None
    """In place of the published checkpoints."""
    lexicon: str = LEXICON
    """Of the published measures."""
    runs: tuple[str, ...] = ()
    """The authors' own runs for QS2."""


def prepare(settings: Settings, folder: Path, seed: int, say: Callable[[str], None]) -> Data:
    """The data of a seed; only a built-in collection is the seed's own."""
    if settings.planted is not None:
        return _built_in(settings, folder / f"data-{seed}", seed, say)
    home = make_folder(folder / "data")
    say(f"first-stage lists: {home}")
    return _real(settings, folder, home) if settings.options is not None else _published(settings, home)


def _built_in(settings: Settings, home: Path, seed: int, say: Callable[[str], None]) -> Data:
    assert settings.planted is not None
    source = built_in(home, replace(settings.planted, seed=seed), clicks=False)
    encoder = make_encoder(all_texts(source), home / "encoder", settings.small_bert, seed)
    say(f"first-stage lists: {home}")
    queries, qrels = judged_queries(source.queries, source.qrels)
    drawn = draw(queries, dict(settings.sizes), seed)
    lists = Lists(source.collection, home)
    parts = {
        name: lists.part(name, table, qrels, depth=settings.listed) for name, table in drawn.items() if name != "train"
    }
    parts["train"] = lists.judged("train", drawn["train"], qrels)
    # All built-in queries are neutral.
    parts["QS1"] = parts["dev"]
    leaning = most_leaning(parts["QS1"], source.collection, drawn["dev"].height // 4)
    sensitive = drawn["dev"].join(leaning, on="query_id", how="semi")
    parts["QS2"] = lists.part("QS2", sensitive, qrels, depth=settings.listed)
    return Data(source.collection, parts, lists, str(encoder))


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


def _real(settings: Settings, folder: Path, home: Path) -> Data:
    """SQuAD's questions without a group word, divided by article; in QS2's place the queries of Grep-BiasIR.

    The division is another for development seeds, and the same for all seeds of a run.
    """
    assert settings.options is not None
    split = min(settings.seeds)
    squad = squad_text(settings.options, folder, home / f"squad-{split}", seed=split)
    grep = grepbiasir_text(settings.options, home / "grepbiasir")
    theirs = home / "grepbiasir.tsv"
    whole = home / f"squad-{split}-grepbiasir.tsv"
    own = pl.concat(list(scan_collection(grep.source.collection)))
    own = own.select(_renamed("doc_id"), "text")
    _write_texts(own, theirs)
    _write_texts(pl.concat([*scan_collection(squad.source.collection), own]), whole)
    _, qrels = judged_queries(squad.source.queries, squad.source.qrels)
    lists = Lists(squad.source.collection, home / f"lists-{split}")
    scoring = Scoring(load_lexicon(LEXICON))
    parts = {}
    for part, name in (("train", "train"), ("valid", "valid"), ("dev", "test")):
        questions = draw(_neutral(squad.splits[name], scoring), {part: settings.sizes[part]}, split)[part]
        parts[part] = (
            lists.judged(part, questions, qrels)
            if part == "train"
            else lists.part(part, questions, qrels, depth=settings.listed)
        )
    parts["QS1"] = parts["dev"]
    renamed = grep.qrels.with_columns(_renamed("query_id"), _renamed("doc_id"))
    asked = grep.queries.select(_renamed("query_id"), "text")
    parts["QS2"] = Lists(str(theirs), home / f"lists-{split}").part("QS2", asked, renamed, depth=settings.listed)
    return Data(str(whole), parts, lists, small_encoder(settings.options))


def _renamed(column: str) -> pl.Expr:
    """Ids that no id of SQuAD equals."""
    return pl.format("grep-{}", pl.col(column)).alias(column)


def _neutral(queries: pl.DataFrame, scoring: Scoring) -> pl.DataFrame:
    found = score_texts(queries.rename({"query_id": "doc_id"}), scoring)
    words = found.select(pl.sum_horizontal(pl.col(f"count_{group}") for group in scoring.lexicon.groups)).to_series()
    return queries.filter(words == 0)


def _write_texts(texts: pl.DataFrame, file: Path) -> None:
    with atomic_path(file) as part:
        flat = texts.select("doc_id", pl.col("text").str.replace_all(r"[\t\r\n]", " "))
        flat.write_csv(part, include_header=False, separator="\t", quote_style="never")


def _published(settings: Settings, home: Path) -> Data:
    """MS MARCO: train, dev small, the 1,765 neutral annotated queries and the 215 fairness-sensitive ones. Validation
    is on dev/2, which shares no query with dev small; queries of QS1 and QS2 are left out of it."""
    source = msmarco(home)
    (sensitive,) = fetch(SENSITIVE_SET, to=home)
    (lexicon,) = fetch(LEXICON_SET, to=home)
    runs = tuple(str(file) for file in fetch(RUNS_SET, to=home / "public-runs"))
    sets = {"QS1": neutral_queries(source.annotated), "QS2": read_queries(sensitive)}
    names = {"train": "train/judged", "valid": "dev/2", "dev": "dev/small"}
    lists = Lists("irds:msmarco-passage", home, k1=0.82, b=0.68)
    parts = published_parts(
        {part: f"irds:msmarco-passage/{name}" for part, name in names.items()},
        "irds:msmarco-passage/dev",
        sets,
        lists,
        settings,
    )
    return Data("irds:msmarco-passage", parts, lists, None, str(lexicon), runs)


def published_parts(
    names: Mapping[str, str], qrels_of_sets: str, sets: Mapping[str, pl.DataFrame], lists: Lists, settings: Settings
) -> dict[str, Part]:
    """The parts by the names of their queries and judgements, and the query sets with judgements of their own.

    Training queries get no lists: their negatives are drawn while the first stage searches.
    """
    parts = {}
    tested = pl.concat([table.select("query_id") for table in sets.values()])
    for part, name in names.items():
        queries, qrels = judged_queries([name], [name])
        if part == "valid":
            queries = queries.join(tested, on="query_id", how="anti", maintain_order="left")
        if part == "train" and settings.sizes["train"]:
            queries = draw(queries, {"train": settings.sizes["train"]}, 0)["train"]
        if part == "train":
            parts[part] = lists.judged(part, queries, qrels)
        else:
            parts[part] = lists.part(part, queries, qrels, depth=settings.listed)
    _, qrels = judged_queries([names["dev"]], [qrels_of_sets])
    for part, queries in sets.items():
        parts[part] = lists.part(part, queries, qrels, depth=settings.listed)
    return parts


SOURCE = "Bigdeli et al., ECIR 2022, A Light-weight Strategy for Restraining Gender Biases in Neural Rankers"
PUBLISHED_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_COLLECTION = "msmarco-passage"


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
    sizes: Mapping[str, int]
    """Queries ``train``, ``valid`` and ``dev``; MS MARCO: ``train`` (0: all)."""
    depth: int
    """Number of BM25's documents: the candidates for negatives."""
    listed: int
    """Number of BM25's documents to re-rank."""
    negatives: int
    share: float
    """Share of biased negatives in the tables."""
    shares: tuple[float, ...] = PUBLISHED_SHARES
    """Shares of the curve (Fig. 1), one seed; none: no curve."""
    rankers: Mapping[str, str]
    """Tables 1 and 2: published name → checkpoint."""
    small_rankers: Mapping[str, str]
    """Table 3, with AdvBert."""
    ranker: Mapping[str, object]
    loss: str
    training: Mapping[str, object]
    adversary: Mapping[str, object]
    """[adversary] of AdvBert."""
    debias: Mapping[str, object]
    """[training] of AdvBert, over ``training``; it continues from the original ranker."""
    debias_loss: str = "bce"
    debias_negatives: int = 1
    tokens: Tokens = "word"
    """Of the measures beside the published ones; at ``full`` as published, with our own measures beside them."""
    validated: int | None = None
    """Documents to re-rank for validation; None: as many as ``listed``."""
    small_bert: SmallBert = field(default_factory=SmallBert)
    strengths: tuple[float, ...] = STRENGTHS
    """Of the reorderings without training."""
    given: Options = field(default_factory=Options)
    """All options, also those that the scale does not read, which :func:`needs` names."""


def tiny() -> Settings:
    """The built-in collection on a CPU: a two-tower ranker in place of the cross-encoders, which learn too slowly."""
    return Settings(
        scale="tiny",
        seeds=(0, 1, 2, 3, 4),
        development=(100, 101, 102),
        planted=SyntheticConfig(
            passages=12_000, queries=2_000, sentences=3, relevant=4, gender_rate=0.5, male_share=0.75
        ),
        sizes={"train": 1_200, "valid": 100, "dev": 600},
        depth=40,
        listed=40,
        negatives=10,
        share=0.6,
        rankers={"BERT-base": "made here"},
        small_rankers={"BERT-Tiny": "made here"},
        ranker={"kind": "dot", "towers": "separate", "pooling": "mean", "query_length": 32, "passage_length": 64},
        loss="nll",
        training={"batch": 64, "epochs": 1, "learning_rate": 6e-3, "warmup": 0.1, "evaluate_every": 1000},
        adversary={},
        debias={**_ADVBERT, "learning_rate": 1e-3, "learning_rates": {"adversary": 1e-2}},
        debias_loss="nll",
    )


_ADVBERT: Mapping[str, object] = {
    "batch": 32,
    "optimizer": "adam",
    "epsilon": 1e-5,
    "schedule": "constant",
    "warmup": 0.0,
    "clip": 1.0,
    "epochs": 2,
    "keep": "last",
}
"""As published [RKS21]: 32 lists of a relevant passage and another one are 64 pairs."""


def real(options: Options) -> Settings:
    """SQuAD's questions and Grep-BiasIR's queries on a CPU, with a two-tower ranker of a small encoder's first layers.

    Sizes, rates and epochs follow from the time that they take, not from measures on other data.
    """
    encoder = small_encoder(options)
    return Settings(
        scale="real",
        seeds=(0, 1, 2),
        options=options,
        sizes={"train": 240, "valid": 40, "dev": 80},
        depth=50,
        listed=10,
        negatives=4,
        share=0.5,
        shares=(),
        rankers={"BERT-base": encoder},
        small_rankers={"BERT-Tiny": encoder},
        ranker={"kind": "dot", "layers": 2, "pooling": "mean", "query_length": 24, "passage_length": 80},
        loss="nll",
        training={"batch": 16, "epochs": 1, "learning_rate": 5e-5, "warmup": 0.1, "evaluate_every": 1000},
        adversary={},
        debias={**_ADVBERT, "learning_rate": 3e-5},
        debias_loss="nll",
    )


def full() -> Settings:
    """The published data and settings: MS MARCO, five cross-encoders, 20 negatives of BM25's first 1,000."""
    from evenrank.training.recipes import load_recipe

    recipe, adversarial = load_recipe("sampling-cat"), load_recipe("sampling-advbert")
    assert adversarial.adversary is not None
    ranker = recipe.ranker.model_dump(exclude_none=True)
    return Settings(
        scale="full",
        seeds=(0,),
        sizes={"train": 0},
        depth=recipe.data.depth,
        listed=recipe.validation.depth,
        negatives=recipe.data.negatives,
        share=0.6,
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
        adversary=adversarial.adversary.model_dump(),
        debias=adversarial.training.model_dump(),
        debias_loss=adversarial.loss.name,
        debias_negatives=adversarial.data.negatives,
        tokens="whitespace",
        validated=100,
    )


def settings_of(scale: str, options: Options) -> Settings:
    """The settings of a scale."""
    made = {"tiny": tiny, "real": lambda: real(options), "full": full}[scale]()
    return replace(made, given=options)


def needs(settings: Settings, folder: Path) -> list[Need]:
    """Everything that a run reads and does not make itself."""
    read = ("squad", "grepbiasir", "encoder") if settings.options is not None else ()
    needless = unused(settings.given, *read)
    if settings.planted is not None:
        return needless
    if settings.options is not None:
        return needless + real_needs(settings.options, folder, squad=True, grepbiasir=True, encoder=True)
    names = ("", "/train/judged", "/dev/judged", "/dev", "/dev/small", "/dev/2")
    found = [need_irds(_COLLECTION + name, "passages" if not name else "queries and judgements") for name in names]
    public = {
        ANNOTATED_SET: "QS1",
        SENSITIVE_SET: "QS2",
        LEXICON_SET: "the words of the published measures",
        RUNS_SET: "the authors' own runs for QS2",
    }
    found += [need_public(name, purpose) for name, purpose in public.items()]
    checkpoints = {**settings.rankers, **settings.small_rankers}
    return [*needless, *found, *(need_model(model, name) for name, model in checkpoints.items())]


def cost(settings: Settings) -> Cost:
    """What a run takes."""
    checkpoints = len({*settings.rankers.values(), *settings.small_rankers.values()})
    each = checkpoints * len(settings.seeds) * 3
    trainings = each + len([share for share in settings.shares if share not in (0.0, settings.share)])
    trainings += len(set(settings.small_rankers.values()))
    disk, time = {
        "tiny": (300_000_000, "about 18 minutes on 2 CPU cores"),
        "real": (1_000_000_000, "about 10 minutes on 2 CPU cores"),
        "full": (60_000_000_000, "about a week on one GPU of 80 GB, and 64 GB of memory for the first stage"),
    }.get(settings.scale, (0, "unknown time"))
    return Cost(trainings, disk, time)


class Experiment(Trainings[Settings, Data]):
    """The trainings of one run of the experiment."""

    source = SOURCE

    def of(self, seed: int) -> Data:
        """The data of a seed; those that are not built in are the same for every seed."""
        kept = seed if self.settings.planted is not None else 0
        return self._once(kept, lambda: prepare(self.settings, self.folder, seed, self.say))

    def work(self, seed: int) -> Work:
        """The trainings of a seed."""
        return self._work(seed, self.of(seed).collection)

    def scoring(self, seed: int) -> Scoring:
        """The words and tokens of the measures beside the published ones."""
        return Scoring(load_lexicon(self.of(seed).lexicon), self.settings.tokens)

    def negatives(self, seed: int, share: float) -> str:
        """The file of training lists with this share of biased negatives; 0: all at random.

        All shares of a seed are drawn in one pass of the first stage.
        """
        data, settings = self.of(seed), self.settings
        wanted = {0.0, settings.share, share, *(settings.shares if seed == settings.seeds[0] else ())}
        files = {one: self.folder / f"seed-{seed}" / f"negatives-{one:g}.parquet" for one in sorted(wanted)}
        if not files[share].is_file():
            self.say(f"negatives of seed {seed}")
            scoring = self.scoring(seed)
            data.lists.negatives(
                data.parts["train"],
                {file: one for one, file in files.items()},
                n=settings.negatives,
                depth=settings.depth,
                seed=seed,
                lexicon=scoring.lexicon,
                tokens=scoring.tokens,
            )
        return str(files[share])

    def ranker(self, seed: int, name: str, share: float) -> Trained:
        """A ranker trained with a share of biased negatives."""
        recipe = self._recipe(seed, self._checkpoint(seed, name), self.negatives(seed, share))
        return self.work(seed).train(f"{self._folder(name)}-share-{share:g}", recipe)

    def blind(self, seed: int, name: str) -> Trained:
        """A ranker trained with random negatives, group words masked throughout."""
        recipe = self._recipe(seed, self._checkpoint(seed, name), self.negatives(seed, 0.0))
        recipe["data"]["blind"] = LEXICON
        return self.work(seed).train(f"{self._folder(name)}-blind", recipe)

    def adversarial(self, seed: int, name: str) -> Trained:
        """AdvBert: continues from the ranker with random negatives [RKS21]."""
        settings = self.settings
        base = self.ranker(seed, name, 0.0)
        recipe = self._recipe(seed, base.model, self.negatives(seed, 0.0))
        recipe["ranker"].pop("layers", None)
        recipe["data"]["negatives"] = settings.debias_negatives
        recipe["loss"]["name"] = settings.debias_loss
        recipe["training"] |= {**settings.debias, "seed": seed}
        recipe["adversary"] = {**settings.adversary, "lexicon": self.of(seed).lexicon}
        return self.work(seed).train(f"{self._folder(name)}-AdvBert", recipe)

    def rank(self, trained: Trained, seed: int, part: str) -> Run:
        """The lists of a query set re-ranked; sets that are one share them."""
        parts = self.of(seed).parts
        kept = next(name for name, other in parts.items() if other == parts[part])
        return self.work(seed).rank(trained, kept, parts[part])

    def ranked(self, seed: int, training: str, *arguments: object) -> None:
        """The lists of every query set re-ranked by a training of this class, given by its method and the arguments."""
        trained: Trained = getattr(self, training)(*arguments)
        for part in ("QS2",) if training == "adversarial" else ("dev", *QUERY_SETS):
            self.rank(trained, seed, part)

    def everything_ahead(self, jobs: int) -> None:
        """Trains in several processes; what is trained is found in the folder."""
        settings, first = self.settings, self.settings.seeds[0]
        own = settings.seeds if settings.planted is not None else (first,)
        self.ahead([("of", (seed,)) for seed in own], jobs)
        self.ahead([("negatives", (seed, 0.0)) for seed in settings.seeds], jobs)
        names = {self._folder(name): name for name in (*settings.small_rankers, *settings.rankers)}
        main = self._folder(next(iter(settings.rankers)))
        steps: list[Step] = []
        for folder, name in names.items():
            shares = {(seed, share) for seed in settings.seeds for share in (0.0, settings.share)}
            shares |= {(first, share) for share in settings.shares if folder == main}
            steps += [("ranked", (seed, "ranker", seed, name, share)) for seed, share in sorted(shares)]
            steps += [("ranked", (seed, "blind", seed, name)) for seed in settings.seeds]
        self.ahead(steps, jobs)
        self.ahead([("ranked", (first, "adversarial", first, name)) for name in settings.small_rankers], jobs)

    def _folder(self, name: str) -> str:
        """The name of a ranker's folders: the first name of its checkpoint, which may have several rows."""
        checkpoints = {**self.settings.rankers, **self.settings.small_rankers}
        return next(other for other, model in checkpoints.items() if model == checkpoints[name])

    def _checkpoint(self, seed: int, name: str) -> str:
        made = self.of(seed).encoder
        return made if made is not None else {**self.settings.rankers, **self.settings.small_rankers}[name]

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
                "depth": settings.validated or settings.listed,
            },
            "loss": {"name": settings.loss},
            "training": {**settings.training, "seed": seed},
        }
