"""The sampling experiment's settings at each scale, what it needs, and its trainings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from evenrank.datasets.synthetic import SyntheticConfig
from evenrank.groups import Scoring, Tokens, load_lexicon
from evenrank.io import Run

from .checks import Cost, Need, Options, need_irds, need_model, need_public, unused
from .encoder import SmallBert
from .real_text import real_needs, small_encoder
from .sampling_data import ANNOTATED_SET, LEXICON_SET, QUERY_SETS, RUNS_SET, SENSITIVE_SET, Data, prepare
from .untrained import STRENGTHS
from .work import LEXICON, Step, Trained, Trainings, Work

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
