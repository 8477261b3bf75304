"""Bigdeli et al., ECIR 2022, bias-aware negative sampling: Tables 1 to 3, Figures 1 to 3; AdvBert as their baseline.

Rankers trained with random negatives ("random") and with a share of biased ones ("bias-aware"), AdvBert, which goes on
from the former, and the former's runs reordered without training. QS1: neutral queries; QS2: those whose lists lean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

import evenrank
from evenrank.files import Run, Tokens, make_folder, read_qrels, read_queries, read_run, scan_collection

from .claims import published_of
from .encoder import SmallBert, make_encoder
from .figures import EXACT, Figures
from .sources import (
    Lists,
    Part,
    built_in,
    counsel_chat,
    draw,
    grepbiasir,
    halved,
    msmarco,
    neutral,
    neutral_queries,
)
from .study import LEXICON, Data, Settings, Step, Study

MEASURES = {
    "MRR@10": "RR@10",
    "NFaiRR@10": "NFaiRR@10",
    "ARaB tf@10": "ARaB@10",
    "ARaB bool@10": "ARaB(magnitude='bool')@10",
}
SETS = ("dev", "QS1", "QS2")
STRENGTHS = (0.25, 0.5, 1.0)
PUBLIC_RUNS = {
    "bert_L2": "BERT-Tiny random",
    "advbert_L2": "BERT-Tiny AdvBert",
    "bert_L4": "BERT-Mini random",
    "advbert_L4": "BERT-Mini AdvBert",
}
"""The authors' runs that stand in Table 3."""


@dataclass(frozen=True, kw_only=True)
class SamplingSettings(Settings):
    """Attributes:

    adversarial: the models that AdvBert trains (Table 3).
    share: of biased negatives in the tables; ``shares``: of the curve (Fig. 1), of the first model.
    depth: BM25's documents that negatives are drawn from; ``listed``: those that are re-ranked.
    """

    adversarial: tuple[str, ...]
    debias: Mapping[str, Mapping[str, object]]
    planted: evenrank.SyntheticConfig | None = None
    small_bert: SmallBert = field(default_factory=SmallBert)
    sizes: Mapping[str, int]
    depth: int
    listed: int
    negatives: int
    share: float
    shares: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    shares_seeds: int = 1
    tokens: Tokens = "word"
    validated: int = 100


class SamplingStudy(Study[SamplingSettings, Data]):
    """The experiment ``sampling``."""

    name, settings_type = "sampling", SamplingSettings

    def trainings(self) -> int:
        """Of every row, share and division."""
        settings = self.settings
        each = len(settings.models) * 3 + len(settings.adversarial)
        curve = len(settings.shares) * settings.shares_seeds
        return (each * len(settings.seeds) + curve) * len(self.divisions)

    # --- data -----------------------------------------------------------------------------------------------------

    def prepare(self, seed: int, *_: str) -> None:
        """:meth:`data` and the files of negatives, as a step."""
        for division in self.divisions:
            self.negatives(seed, division, 0.0)

    def _planted(self, seed: int, _: int) -> Data:
        settings, home = self.settings, self.folder / f"data-{seed}"
        assert settings.planted is not None
        text = built_in(home, replace(settings.planted, seed=seed))
        words = pl.concat([*(batch["text"] for batch in scan_collection(text.collection)), text.queries["text"]])
        encoder = make_encoder(words.to_list(), home / "encoder", settings.small_bert, seed)
        drawn, lists = draw(text.queries, settings.sizes, seed), Lists(text.collection, home)
        parts = {name: lists.part(name, table, text.qrels, depth=settings.listed) for name, table in drawn.items()}
        # All built-in queries are neutral.
        parts["QS1"] = parts["dev"]
        leaning = drawn["dev"].join(most_leaning(parts["dev"], drawn["dev"].height // 4), on="query_id", how="semi")
        parts["QS2"] = lists.part("QS2", leaning, text.qrels, depth=settings.listed)
        return Data(parts, lists, str(encoder))

    def _halves(self, seed: int, division: int) -> Data:
        """The questions of counsel-chat, halved: dev are all of the other half, QS1 those without a group word; QS2 are
        Grep-BiasIR's queries with its own documents."""
        settings, options = self.settings, self.settings.options
        text = counsel_chat(options, self.folder / "counsel-chat")
        home = self.folder / f"text-{seed}-{division}"
        lists = Lists(text.collection, home, self.folder / "counsel-chat")
        train, valid, test = halved(text.queries, seed, division, settings.sizes["valid"])
        drawn = {"valid": valid, "train": train, "dev": test, "QS1": neutral(test)}
        parts = {name: lists.part(name, table, text.qrels, depth=settings.listed) for name, table in drawn.items()}
        grep = grepbiasir(options, self.folder / "grepbiasir")
        sensitive = Lists(grep.collection, self.folder / "grep-lists")
        parts["QS2"] = sensitive.part("QS2", grep.queries, grep.qrels, depth=settings.listed)
        return Data(parts, lists)

    def _published(self, _: int, __: int) -> Data:
        """Train, dev small, the 1,765 neutral annotated queries and the 215 fairness-sensitive ones. Validation is on
        dev/2, which shares no query with dev small; queries of QS1 and QS2 are left out of it."""
        settings, home = self.settings, self.folder / "data"
        lists = Lists("irds:msmarco-passage", home, None, **settings.first_stage)
        (annotated,), (sensitive,) = (
            evenrank.fetch(name, out=home) for name in ("queries-gender-annotated", "queries-fairness-sensitive")
        )
        (lexicon,) = evenrank.fetch("gender-representative", out=home)
        sets = {"QS1": neutral_queries(str(annotated)), "QS2": read_queries(sensitive)}
        tested = pl.concat([table.select("query_id") for table in sets.values()])
        parts = {}
        for part, name in {"train": "train/judged", "valid": "dev/2", "dev": "dev/small"}.items():
            text = msmarco((name,))
            queries = text.queries
            if part == "valid":
                queries = queries.join(tested, on="query_id", how="anti", maintain_order="left")
            if part == "train" and settings.sizes["train"]:
                queries = draw(queries, {"train": settings.sizes["train"]}, 0)["train"]
            # Training queries get no lists: their negatives are drawn while the first stage searches.
            parts[part] = lists.part(part, queries, text.qrels, depth=settings.listed if part != "train" else 1)
        qrels = read_qrels("irds:msmarco-passage/dev")
        parts |= {name: lists.part(name, table, qrels, depth=settings.listed) for name, table in sets.items()}
        runs = tuple(evenrank.fetch("runs-dev", out=home / "public-runs"))
        return Data(parts, lists, groups={"lexicon": str(lexicon), "tokens": settings.tokens}, runs=runs)

    # --- trainings ------------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[Iterable[Step]]:
        """The distilled encoder, data and negatives, every ranker, then AdvBert, which goes on from one."""
        settings, first = self.settings, next(iter(self.settings.rankers))
        # Models with one recipe share their trainings.
        trained = {self._name(model, "random", 0): model for model in reversed([*settings.models])}.values()
        yield from self.prepared(())
        # By itself, with all cores: what a frozen encoder makes of most texts is kept from then on.
        yield [("arm", (settings.seeds[0], first, "random"))]
        rows = [(seed, *row) for seed in settings.seeds for row in self._rows(seed)]
        yield [("arm", row) for row in rows if row[1] in trained and row[2] != "AdvBert"]
        yield [("arm", row) for row in rows if row[2] == "AdvBert"]

    def _rows(self, seed: int) -> list[tuple[str, str]]:
        """Model and kind of each row; of a frozen encoder also the one before its map is trained."""
        settings = self.settings
        frozen = {name for name, recipe in settings.rankers.items() if recipe["ranker"].get("freeze")}
        arms = ("random", "bias-aware", "blind", "encoder")
        rows = [(model, arm) for model in settings.models for arm in arms if arm != "encoder" or model in frozen]
        rows += [(model, "AdvBert") for model in settings.adversarial]
        first, shares = next(iter(settings.rankers)), settings.shares if seed in self._curve else ()
        return rows + [(first, f"share {share:g}") for share in shares]

    @property
    def _curve(self) -> tuple[int, ...]:
        return self.settings.seeds[: self.settings.shares_seeds]

    def negatives(self, seed: int, division: int, share: float) -> str:
        """The file of training lists with this share of biased negatives; 0: all at random.

        All shares of a seed are drawn in one pass of the first stage.
        """
        data, settings = self.data(seed, division=division), self.settings
        wanted = sorted({0.0, share, settings.share, *(settings.shares if seed in self._curve else ())})
        home = make_folder(self.home(seed))
        files = {s: home / f"negatives-{division}-{s:g}.parquet" for s in wanted}
        data.lists.negatives(
            data.parts["train"], {file: s for s, file in files.items()}, n=settings.negatives, seed=seed,
            depth=settings.depth, **data.groups,
        )  # fmt: skip
        return str(files[share])

    def arm(self, seed: int, model: str, arm: str) -> list[dict[str, Run]]:
        """The runs of a row on every query set, of each division."""
        return [self._of_division(seed, model, arm, division) for division in self.divisions]

    def _of_division(self, seed: int, model: str, arm: str, division: int) -> dict[str, Run]:
        settings, data = self.settings, self.data(seed, division=division)
        parts = data.seen(arm == "blind")
        # The first division's ranker stands for both where they have the same queries.
        ranked = {name: parts[name] for name in SETS if division == 0 or name != "QS2"}
        share = {"bias-aware": settings.share}.get(arm, float(arm.removeprefix("share ")) if arm[-1].isdigit() else 0.0)
        if arm == f"share {settings.share:g}" or arm == "share 0":
            arm = "bias-aware" if share else "random"
        name = self._name(model, arm, division)
        recipe = self._recipe(seed, division, model, share, parts, adversarial=arm == "AdvBert")
        if arm == "encoder":
            return self.kept_runs(seed, name, lambda: self.untrained(recipe["ranker"]), ranked)
        if arm == "AdvBert":
            # The row itself is trained in memory if the encoder is frozen.
            end = " start" * bool(recipe["ranker"].get("freeze"))
            started = self.trained(seed, self._name(model, f"random{end}", division), recipe)
            debias = settings.debias
            # It trains the whole ranker, also one whose map alone was trained.
            own = {
                key: value for key, value in recipe["ranker"].items() if key not in ("layers", "map", "freeze", "kept")
            }
            recipe["ranker"] = {**own, "model": started}
            for section in ("data", "loss", "training"):
                recipe[section] = {**recipe[section], **debias[section]}
            recipe["adversary"] = {**debias.get("adversary", {}), "lexicon": data.groups["lexicon"]}
        return self.ranked(seed, name, recipe, ranked)

    def _name(self, model: str, arm: str, division: int) -> str:
        """The folder of a training; models with one recipe share theirs."""
        rankers = self.settings.rankers
        model = next(ranker for ranker in rankers if rankers[ranker] == rankers[model])
        return self.named(model, arm, division=division)

    def _recipe(
        self, seed: int, division: int, model: str, share: float, parts: Mapping[str, Part], *, adversarial: bool
    ) -> dict[str, dict[str, object]]:
        settings, wanted, data = self.settings, self.settings.rankers[model], self.data(seed, division=division)
        train, valid = parts["train"], parts["valid"]
        ranker = dict(wanted["ranker"])
        if "model" not in ranker:
            ranker["model"] = data.encoder or self.distilled()
        section = {
            "collection": train.collection,
            "queries": train.queries,
            "groups": self.negatives(seed, division, share),
            "negatives": settings.negatives,
        }
        recipe = self.recipe(seed, {**wanted, "ranker": ranker}, section)
        if adversarial and ranker.get("freeze"):
            recipe["ranker"]["kept"] = str(self.folder / "vectors")
            # As the row that is trained in memory, without a validation.
            recipe["training"]["keep"] = "last"
        if adversarial or not ranker.get("freeze"):
            recipe["validation"] = {**valid.files, "measure": "RR@10", "depth": settings.validated}
        return recipe

    # --- figures --------------------------------------------------------------------------------------------------

    def figures(self) -> Figures:
        """All rows on every query set; what AdvBert's attack finds; how near the public runs are to print."""
        settings = self.settings
        figures, first = Figures(settings.same_queries), next(iter(settings.rankers))
        for seed in settings.seeds:
            arms = {f"{model} {arm}": self.arm(seed, model, arm) for model, arm in self._rows(seed)}
            for division in self.divisions:
                data = self.data(seed, division=division)
                for name in SETS:
                    if division and name == "QS2":
                        continue
                    runs: dict[str, object] = {row: arm[division][name] for row, arm in arms.items()}
                    runs |= self._reordered(arms[f"{first} random"][division][name], data.parts[name], first, data)
                    self.measure(figures, seed, data.parts[name], runs, MEASURES, f" on {name}", **data.groups)
            for model in settings.adversarial:
                self._attack(figures, seed, model)
        _slopes(figures, first, settings.shares)
        for model in settings.adversarial:
            _fairer(figures, f"{model} bias-aware", f"{model} AdvBert")
        data = self.data(settings.seeds[0])
        if data.runs:
            self._public(figures, data)
        return figures

    def _reordered(self, run: Run, part: Part, model: str, data: Data) -> dict[str, Run]:
        """The run without training: neutral documents move up, at rising strength."""
        inputs = {"collection": part.collection, **data.groups}
        return {
            f"{model} reordered {strength:g}": evenrank.rebalance(
                run, method="neutral", strength=strength, depth=self.settings.listed, **inputs
            ).run
            for strength in STRENGTHS
        }  # fmt: skip

    def _attack(self, figures: Figures, seed: int, model: str) -> None:
        """The balanced accuracy of a fresh attack on the frozen ranker, before and after AdvBert."""
        for division in self.divisions:
            leakage = self.result(seed, self._name(model, "AdvBert", division)).get("leakage") or {}
            for when, arm in (("before", "random"), ("after", "AdvBert")) if leakage else ():
                accuracy = np.array([leakage[when]["balanced_accuracy"]])
                figures.add("attack", f"{model} {arm}", seed, [f"division {division}"], accuracy, "trainings")

    def _public(self, figures: Figures, data: Data) -> None:
        """The authors' runs, measured as they are, beside Table 3."""
        runs = {
            PUBLIC_RUNS[file.stem]: read_run(file, name=file.stem) for file in data.runs if file.stem in PUBLIC_RUNS
        }
        measured, printed = Figures(same_queries=True), published_of(self.name)
        self.measure(measured, 0, data.parts["QS2"], runs, MEASURES, " on QS2", **data.groups)
        off = [
            abs(abs(measured.mean(f"{name} on QS2", system)) - value)
            for system in runs
            for name in MEASURES
            for key in (f"{name} on QS2", f"|{name} on QS2|")
            if (value := printed.get((system, key))) is not None
        ]
        figures.add("off print", "public runs", 0, ["largest"], np.array([max(off)]), EXACT)


def most_leaning(part: Part, count: int) -> pl.DataFrame:
    """The queries whose first-stage lists lean most to one group (|RaB@10|): the built-in stand-in for the published
    set of queries that are sensitive to fairness. It depends on the first stage alone, never on a ranker."""
    audit = evenrank.audit({"BM25": part.run}, collection=part.collection, measures="RaB@10", lexicon=LEXICON)
    table = audit.per_query().filter(pl.col("run") == "BM25").with_columns(pl.col("RaB@10").abs().alias("lean"))
    return table.sort("lean", descending=True, maintain_order=True).head(count).select("query_id")


def _fairer(figures: Figures, system: str, baseline: str) -> None:
    """Of each query whether the system's list is fairer (NFaiRR@10) than the baseline's: 1, ½ if equal, 0."""
    for seed, ids, (of, than) in figures.aligned("NFaiRR@10 on QS2", system, baseline):
        fairer = np.where(np.isnan(of - than), np.nan, (np.sign(of - than) + 1) / 2)
        figures.add("fairer on QS2", system, seed, ids, fairer)


def _slopes(figures: Figures, model: str, shares: Sequence[float]) -> None:
    """Of each query the slope of MRR@10 over the shares of biased negatives, by least squares."""
    if shares:
        weights, rows = np.array(shares) - np.mean(shares), [f"{model} share {share:g}" for share in shares]
        for seed, ids, values in figures.aligned("MRR@10 on dev", *rows):
            slopes = np.stack(values, axis=1) @ weights / (weights @ weights)
            figures.add("slope of MRR@10 on dev", f"{model} by share", seed, ids, slopes)
