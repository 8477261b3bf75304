"""Li et al. 2022, "Debiasing neural retrieval via in-batch balancing regularization": Tables 1 to 3.

A two-tower ranker is trained on clicks; then training continues with the queries of the fairness set, without the term
("none"), with PD, with TS, or, from its start on, with group words masked ("blind"): rows that differ by that alone.
At ``real`` the encoder is frozen and its learned map is all that trains, on clicks skewed to male wording.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

import evenrank
from evenrank.files import Run, read_qrels, read_queries, scan_collection
from evenrank.mitigation import best_weight
from evenrank.results import Drawing, curve
from evenrank.training import read_log

from .checks import Need, need_file
from .encoder import SmallBert, make_encoder
from .figures import EXACT, Figures, ratio_values
from .sources import (
    Lists,
    Made,
    Part,
    built_in,
    content,
    counsel_chat,
    draw,
    every_question,
    grepbiasir,
    halved,
    in_both_wordings,
    joined,
    kept_text,
    msmarco,
    neutral,
    neutral_queries,
    sides,
    skewed_clicks,
)
from .study import DELTA, FIRST, LEXICON, Data, Sections, Settings, Step, Study

TERMS = {
    "PD": {"name": "ibbr-pd"},
    "TS": {"name": "ibbr-ts"},
    "TS printed": {"name": "ibbr-ts", "form": "printed"},
    "TS sigmoid": {"name": "ibbr-ts", "score": "sigmoid"},
    "TS identity": {"name": "ibbr-ts", "score": "identity"},
}
"""[fairness] by term, without its weight."""
TRAINED = ("PD", "TS")
"""The terms that also have a row whose weight is trained."""
MEASURES = {
    "R@10": "R@10",
    "MRR": "RR",
    "nDCG@10": "nDCG@10",
    DELTA: "",
    "RaB@5": "RaB@5",
    "RaB@10": "RaB@10",
}
_SPLITS = ("train", "dev", "test")
ALL = " over all questions"
COSTS = ("R@10", "MRR", "nDCG@10")
_CHANGE = f"mean change of {', '.join(COSTS)}"
_REMOVED = f"share of {DELTA} removed with even clicks, less that with skewed ones"
_AGREEMENT = f"rank correlation of changes of {DELTA} and RaB@5"
EVEN = "even clicks"


@dataclass(frozen=True, kw_only=True)
class IBBRSettings(Settings):
    """Attributes:

    base: [training] before the fairness queries, None: there is none.
    fair: [training] on the fairness queries; ``weights``: λ by term; ``scores``: (R, λ) of further rows of TS.
    dev_weight: λ of "TS dev", chosen on the development seeds; 0: there is no such row.
    male: the share of male clicks in training; ``clicks``: other shares, by what rows trained with them are called.
    whole_grid: every seed trains every weight. sizes: queries of each part.
    """

    base: Mapping[str, object] | None = None
    fair: Mapping[str, object]
    base_data: Mapping[str, object] = field(default_factory=dict)
    fair_data: Mapping[str, object]
    base_grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    weights: Mapping[str, tuple[float, ...]]
    scores: tuple[tuple[str, float], ...] = ()
    dev_weight: float = 0.0
    auto_rate: float
    planted: evenrank.SyntheticConfig | None = None
    small_bert: SmallBert | None = None
    sizes: Mapping[str, int]
    listed: int
    depth: int
    male: float = 0.8
    clicks: Mapping[str, float] = field(default_factory=dict)
    whole_grid: bool = False
    baselines: Mapping[str, Sections] = field(default_factory=dict)


class IBBRStudy(Study[IBBRSettings, Data]):
    """The experiment ``ibbr``."""

    name, settings_type = "ibbr", IBBRSettings

    def own_needs(self) -> list[Need]:
        """A file of word vectors, if one is named."""
        vectors = self.settings.options.vectors
        if self.settings.scale != "full" or vectors is None:
            return []
        return [need_file(vectors, "word vectors of the kernel rankers", "vectors")]

    def trainings(self) -> int:
        """Of every weight, row and division, and of kernel rankers."""
        settings, seeds = self.settings, len(self.settings.seeds)
        grid = sum(map(len, settings.weights.values())) + len(settings.scores)
        rows = 4 + len(settings.weights) + len(settings.clicks) * (1 + len(settings.weights))
        each = grid * (seeds if settings.whole_grid else 1) + rows * seeds
        return each * len(settings.models) * len(self.divisions) + len(settings.baselines)

    # --- data -----------------------------------------------------------------------------------------------------

    def _planted(self, seed: int, _: int) -> Data:
        """Training queries with their skewed clicks; the others, about other entities, with every relevant passage."""
        settings, home = self.settings, self.folder / f"data-{seed}"
        assert settings.planted is not None
        assert settings.small_bert is not None
        text, sizes = built_in(home, replace(settings.planted, seed=seed)), settings.sizes
        words = pl.concat([*(batch["text"] for batch in scan_collection(text.collection)), text.queries["text"]])
        encoder = make_encoder(words.to_list(), home / "encoder", settings.small_bert, seed)
        clicks, lists = read_qrels(home / "clicks.txt"), Lists(text.collection, home)
        pools = {name: read_queries(home / f"queries.{name}.tsv") for name in ("train", "valid", "test")}
        drawn = draw(pools["train"], {name: sizes[name] for name in ("dpr", "train")}, seed)
        drawn |= draw(pools["valid"], {name: sizes[name] for name in ("dpr_dev", "dev")}, seed)
        drawn |= draw(pools["test"], {"test": sizes["test"]}, seed)
        judged = {name: clicks if name in ("dpr", "train") else text.qrels for name in drawn}
        parts = lists.parts(drawn, judged, depth=settings.depth, listed=settings.listed)
        return Data(parts, lists, str(encoder))

    def _published(self, _: int, __: int) -> Data:
        settings, home = self.settings, self.folder / "data"
        text, sizes = msmarco(), settings.sizes
        (annotated,) = evenrank.fetch("queries-gender-annotated", out=home)
        (lexicon,) = evenrank.fetch("gender-representative", out=home)
        queries = text.queries.join(neutral_queries(str(annotated)).select("query_id"), on="query_id", how="semi")
        drawn = draw(queries, {name: sizes[name] for name in ("train", "dev", "test")}, 0)
        others = text.queries.join(pl.concat(drawn.values()), on="query_id", how="anti", maintain_order="left")
        drawn |= draw(others, {name: sizes[name] for name in ("dpr", "dpr_dev")}, 0)
        lists = Lists(text.collection, home, None, **settings.first_stage)
        judged = dict.fromkeys(drawn, text.qrels)
        parts = lists.parts(drawn, judged, depth=settings.depth, listed=settings.listed)
        return Data(parts, lists, groups={"lexicon": str(lexicon), "tokens": "whitespace"})

    def _halves(self, seed: int, division: int) -> Data:
        """Real text: every answer in both wordings, the neutral queries that have a relevant one in both, halved."""
        settings = self.settings
        text = kept_text(self.folder / "text", self._both_wordings)
        side = self._sides
        _, both = in_both_wordings(text.qrels, side)
        able = text.queries.join(both, on="query_id", how="semi", maintain_order="left")
        train, dev, test = halved(able, seed, division, settings.sizes["dev"])
        lists = Lists(text.collection, self.folder / f"text/{seed}-{division}", self.folder / "text")
        shares = {"train": settings.male, **{_clicked(name): share for name, share in settings.clicks.items()}}
        judged = {name: skewed_clicks(train, text.qrels, side, share, seed) for name, share in shares.items()}
        judged |= {"dev": text.qrels, "test": text.qrels}
        drawn = {**dict.fromkeys(shares, train), "dev": dev, "test": test}
        return Data(lists.parts(drawn, judged, depth=settings.depth), lists)

    def _both_wordings(self) -> Made:
        """counsel-chat, its answers also with the groups swapped, and Grep-BiasIR, which has all wordings."""
        options, home = self.settings.options, self.folder
        counsel, grep = counsel_chat(options, home / "counsel-chat"), grepbiasir(options, home / "grepbiasir")
        original = pl.concat(list(scan_collection(counsel.collection)))
        swapped = evenrank.variants(original, kind="swap", quiet=True).table
        assert swapped is not None
        others = swapped.filter(pl.col("edits") > 0).select(pl.col("doc_id") + "~", "text")
        passages, queries, relevant = content(counsel, neutral(counsel.queries))
        passages = pl.concat([passages, others])
        both = relevant.with_columns(pl.concat_list("doc_id", pl.col("doc_id") + "~")).explode("doc_id")
        both = both.join(passages, on="doc_id", how="semi", maintain_order="left")
        return joined({"c": (passages, queries, both), "g": content(grep, neutral(grep.queries))})

    @cached_property
    def _sides(self) -> dict[str, int]:
        text = kept_text(self.folder / "text", self._both_wordings)
        return sides(text.collection, pl.concat([batch["doc_id"] for batch in scan_collection(text.collection)]))

    # --- trainings ------------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[Iterable[Step]]:
        """Data, base rankers, every row whose weight is known, and the best rows once the first seed has chosen."""
        settings, first = self.settings, self.settings.seeds[0]
        yield from self.prepared(())
        if settings.base is None:
            # By itself, with all cores: what the frozen encoder makes of most texts is kept from then on.
            for model in settings.models:
                yield [("arm", (first, model, "base"))]
        if settings.base is not None:
            grid = [("base", (first, model, *point)) for model in settings.models for point in self._points]
            yield grid if len(self._points) > 1 else []
            yield [
                ("started", (seed, model, blind))
                for seed in settings.seeds
                for model in settings.models
                for blind in (False, True)
            ]
        weighed = settings.seeds if settings.whole_grid else (first,)
        rows = [*itertools.product(weighed, settings.models, self._weighed)]
        rows += itertools.product(settings.seeds, settings.models, self._rows)
        yield [*(("arm", row) for row in rows), *(("baseline", (name,)) for name in settings.baselines)]
        yield [
            ("arm", (seed, model, arm))
            for model in settings.models
            for arm in sorted({*self._best(model).values(), *self._clicked(model).values()})
            for seed in settings.seeds
        ]

    @property
    def _weighed(self) -> list[str]:
        """The rows of every weight, and the one without a term."""
        grid = [(term, weight) for term, weights in self.settings.weights.items() for weight in weights]
        scores = [(f"TS {score}", weight) for score, weight in self.settings.scores]
        return ["none", *(f"{term} {weight:g}" for term, weight in [*grid, *scores])]

    @property
    def _rows(self) -> list[str]:
        """The rows of every seed whose weight need not be chosen."""
        dev, weights = self.settings.dev_weight, self.settings.weights
        auto = [f"{term} auto" for term in TRAINED if term in weights]
        return ["base", "none", "blind", *auto, *([f"TS {dev:g}"] if dev else [])]

    def _best(self, model: str) -> dict[str, str]:
        """By row the best weight of each term; where no weight qualified, there is no best row."""
        arms = {f"{term} best": self.best(model, term) for term in self.settings.weights}
        return {row: arm for row, arm in arms.items() if arm != "none"}

    def _clicked(self, model: str) -> dict[str, str]:
        """By row those with other clicks: without a term, and with the weights that are best with the clicks of all."""
        known = {"none": "none", **self._best(model)}
        return {f"{row}, {name}": f"{arm}, {name}" for name in self.settings.clicks for row, arm in known.items()}

    @cached_property
    def _points(self) -> list[tuple[float, ...]]:
        return list(itertools.product(*self.settings.base_grid.values()))

    def base(self, seed: int, model: str, *point: float, blind: bool = False) -> str:
        """The folder of the ranker before the fairness queries; ``point``: of the grid."""
        settings, data = self.settings, self.data(seed)
        assert settings.base is not None
        wanted = {
            "ranker": {"model": data.encoder, **settings.rankers[model]},
            "data": settings.base_data,
            "training": {**settings.base, **self._at(point)},
        }
        recipe = self._validated(seed, data.seen(blind), "dpr", "dpr_dev", wanted)
        return self.trained(seed, self._base_name(model, point) + "-blind" * blind, recipe)

    def _base_name(self, model: str, point: tuple[float, ...]) -> str:
        return "-".join([model, "base", *(f"{value:g}" for value in point)])

    def _at(self, point: tuple[float, ...]) -> dict[str, float]:
        """[training] at a point of the grid."""
        return dict(zip(self.settings.base_grid, point, strict=True))

    def started(self, seed: int, model: str, blind: bool) -> None:
        """The base ranker with the best settings of the grid, as a step."""
        self.base(seed, model, *self._tuned(model), blind=blind)

    def _tuned(self, model: str) -> tuple[float, ...]:
        """The settings of the grid with the best validation measure on the first seed."""
        if len(self._points) == 1:
            return self._points[0]
        seed = self.settings.seeds[0]
        return max(self._points, key=lambda point: float(self.result(seed, self._base_name(model, point))["value"]))

    def _validated(
        self, seed: int, parts: Mapping[str, Part], train: str, dev: str, wanted: Sections
    ) -> dict[str, dict[str, object]]:
        """A training on one part, validated on another."""
        validation = {**parts[dev].files, "measure": "RR", "depth": self.settings.depth}
        return self.recipe(seed, wanted, parts[train].files, validation)

    def arm(self, seed: int, model: str, arm: str) -> list[dict[str, Run]]:
        """A row's runs of the test and the development queries, of each division."""
        return [self._of_division(seed, model, arm, division) for division in self.divisions]

    def _of_division(self, seed: int, model: str, arm: str, division: int) -> dict[str, Run]:
        settings, data = self.settings, self.data(seed, division=division)
        blind = arm == "blind"
        parts = data.seen(blind)
        ranked = {name: parts[name] for name in ("test", "dev")}
        ranker: dict[str, object] = dict(settings.rankers[model])
        if settings.student and "model" not in ranker:
            ranker["model"] = self.distilled()
        name = self.named(model, arm, division=division)
        arm, _, clicks = arm.partition(", ")
        if settings.base is not None:
            ranker["model"] = self.base(seed, model, *self._tuned(model), blind=blind)
        if arm == "base":
            return self.kept_runs(seed, name, lambda: self.untrained(ranker), ranked)
        training = {**settings.fair, **self._at(self._tuned(model))}
        wanted = {"ranker": ranker, "data": settings.fair_data, "training": training}
        recipe = self._validated(seed, parts, _clicked(clicks), "dev", wanted)
        if fairness := self._term(arm, data):
            recipe["fairness"] = fairness
        return self.ranked(seed, name, recipe, ranked)

    def _term(self, arm: str, data: Data) -> dict[str, object] | None:
        """[fairness] of a row: ``TS 0.1``, ``PD auto``, ``TS sigmoid 0.032``; "none" and "blind" have none."""
        term, _, weight = arm.rpartition(" ")
        if term not in TERMS:
            return None
        section: dict[str, object] = {**TERMS[term], "weight": weight if weight == "auto" else float(weight)}
        if weight == "auto":
            section["rate"] = self.settings.auto_rate
        if data.groups != {"lexicon": LEXICON}:
            section["attributes"] = [dict(data.groups)]
        return section

    def baseline(self, name: str) -> Run:
        """A kernel ranker of Table 2, first seed."""
        seed, parts = self.settings.seeds[0], self.data(self.settings.seeds[0]).parts
        wanted = {"data": self.settings.base_data, **self.settings.baselines[name]}
        recipe = self._validated(seed, parts, "dpr", "dpr_dev", wanted)
        return self.ranked(seed, name, recipe, {"test": parts["test"]})["test"]

    def best(self, model: str, term: str) -> str:
        """The row of the weight that the first seed's development queries choose; "none" if none qualifies."""
        figures, weights = self.grid_figures(model), self.settings.weights[term]
        names = [f"{model} {term} {weight:g}" for weight in weights]
        index = best_weight(
            [figures.mean("MRR (dev)", name) for name in names],
            [abs(figures.mean(f"{DELTA} (dev)", name)) for name in names],
            figures.mean("MRR (dev)", f"{model} none"),
        )
        return "none" if index is None else f"{term} {weights[index]:g}"

    # --- figures --------------------------------------------------------------------------------------------------

    def grid_figures(self, model: str) -> Figures:
        """Every weight on the development queries of the first seed."""
        if model not in self._grids:
            seed, settings = self.settings.seeds[0], self.settings
            figures = Figures(settings.same_queries)
            arms = ["none", "blind", *self._weighed[1:]]
            arm_runs = {arm: self.arm(seed, model, arm) for arm in arms}
            for division in self.divisions:
                runs = {f"{model} {arm}": arm_runs[arm][division]["dev"] for arm in arms}
                data = self.data(seed, division=division)
                names = {"MRR": "RR", DELTA: ""}
                self.measure(figures, seed, data.parts["dev"], runs, names, " (dev)", **data.groups)
            self._grids[model] = figures
        return self._grids[model]

    @cached_property
    def _grids(self) -> dict[str, Figures]:
        return {}

    def figures(self) -> Figures:
        """All rows on the test queries, the grid on those of development, and how many queries there are."""
        settings = self.settings
        figures, weighed = Figures(settings.same_queries), Figures(settings.same_queries)
        for seed, division in itertools.product(settings.seeds, self.divisions):
            data, runs = self.data(seed, division=division), dict[str, Run]()
            for model in settings.models:
                rows = {**{arm: arm for arm in self._rows}, **self._best(model), **self._clicked(model)}
                if settings.dev_weight:
                    rows["TS dev"] = rows.pop(f"TS {settings.dev_weight:g}")
                row_runs = {row: self._of_division(seed, model, arm, division) for row, arm in rows.items()}
                runs |= {f"{model} {row}": splits["test"] for row, splits in row_runs.items()}
                runs |= self._shifted(model, data, row_runs["none"])
            if seed == settings.seeds[0] and division == 0 and settings.scale != "real":
                runs |= {name: self.baseline(name) for name in settings.baselines}
            if settings.scale == "tiny" or (settings.scale == "full" and seed == settings.seeds[0]):
                runs["RM3"] = data.lists.rm3(data.parts["test"])
            self.measure(figures, seed, data.parts["test"], runs, MEASURES, **data.groups)
            if settings.whole_grid:
                arms = [(model, arm) for model in settings.models for arm in self._weighed]
                runs = {f"{model} {arm}": self._of_division(seed, model, arm, division)["test"] for model, arm in arms}
                names = {DELTA: "", "RaB@5": "RaB@5"}
                self.measure(weighed, seed, data.parts["test"], runs, names, **data.groups)
        for model in settings.models:
            _changes(figures, model, settings.clicks)
        if settings.whole_grid:
            _agreement(figures, weighed, dict.fromkeys(settings.models, self._weighed), settings.seeds)
        self._expanded(figures)
        for model in settings.models:
            figures.values.update(self.grid_figures(model).values)
        for name, parts in {"DPR": ("dpr", "dpr_dev", ""), "Fairness": ("train", "dev", "test")}.items():
            known = self.data(settings.seeds[0]).parts
            counts = {key: known[part].count for key, part in zip(_SPLITS, parts, strict=True) if part in known}
            for key, count in ({**counts, "total": sum(counts.values())} if counts else {}).items():
                figures.add(key, name, 0, ["all"], np.array([float(count)]), EXACT)
        return figures

    def _expanded(self, figures: Figures) -> None:
        """MRR of BM25 and of RM3 over every question that there is: at ``real`` those of all three texts."""
        if self.settings.scale == "real":
            text = every_question(self.settings.options, self.folder / "every", self.folder)
            lists = Lists(text.collection, self.folder / "every")
            part = lists.part("every", text.queries, text.qrels, depth=1000)
            self.measure(figures, self.settings.seeds[0], part, {"RM3": lists.rm3(part)}, {"MRR": "RR"}, ALL)
        else:
            for system in (FIRST, "RM3"):
                for seed, values in figures.values["MRR", system].items():
                    figures.add(f"MRR{ALL}", system, seed, [*values], np.array([*values.values()]))

    def _shifted(self, model: str, data: Data, none: Mapping[str, Run]) -> dict[str, Run]:
        """None's test run with shares of the group offset that removes ΔA-PRF on the development queries."""
        dev, test = data.parts["dev"], data.parts["test"]
        ids = pl.concat([none["dev"].table["doc_id"], none["test"].table["doc_id"]])
        side = sides(test.collection, ids, **data.groups)
        full_offset = offset_of(none["dev"], read_qrels(dev.qrels), side)
        offsets = {f"{model} shift × 0.5": full_offset / 2, f"{model} shift": full_offset}
        return {name: shifted(none["test"], side, offset) for name, offset in offsets.items()}

    def noted(self) -> Mapping[str, object]:
        """The best weights."""
        pairs = itertools.product(self.settings.models, self.settings.weights)
        chosen = {f"{model} {term}": self.best(model, term) for model, term in pairs}
        return {"best": ", ".join(f"{name} {arm.split()[-1]}" for name, arm in chosen.items())}

    def drawings(self) -> list[Drawing]:
        """How none's loss, MRR and ΔA-PRF went in training, so that a reader sees whether it converged."""
        names = {"rank_loss": "loss in training", "eval_validation": "validation MRR", "eval_delta_aprf_gender": DELTA}
        curves = []
        for model in self.settings.models:
            file = self.home(self.settings.seeds[0]) / f"{model}-none" / "log.jsonl"
            rows = [
                {"x": line["step"], "measure": title, "value": line[key], "low": line[key], "high": line[key]}
                for line in (read_log(file) if file.is_file() else [])
                for key, title in names.items()
                if line.get(key) is not None
            ]
            if rows:
                title = f"{model} none in training"
                curves.append(curve(title, title, rows, "step", "The first seed's training on the fairness queries."))
        return curves


def _clicked(clicks: str) -> str:
    """The part that a row trains on."""
    return f"train, {clicks}" if clicks else "train"


def _changes(figures: Figures, model: str, clicks: Collection[str]) -> None:
    """Of each row of a model the mean relative change of what a term may cost, and by how much more of ΔA-PRF a term
    removes where clicks are even."""
    none = f"{model} none"
    for row in figures.systems("MRR"):
        if row.startswith(f"{model} ") and row != none:
            for of_costs in zip(*(figures.aligned(cost, row, none) for cost in COSTS), strict=True):
                seed, ids, _ = of_costs[0]
                changes = [ratio_values(*values) for _, _, values in of_costs]
                figures.add(_CHANGE, row, seed, ids, np.mean(changes, axis=0) - 1)
    for term in TRAINED if EVEN in clicks else ():
        best = f"{model} {term} best"
        skewed = figures.aligned(DELTA, best, none)
        even = figures.aligned(DELTA, f"{best}, {EVEN}", f"{none}, {EVEN}")
        for (seed, ids, first), (_, _, second) in zip(skewed, even, strict=True):
            figures.add(_REMOVED, f"{model} {term}", seed, ids, ratio_values(*first) - ratio_values(*second))


def _agreement(figures: Figures, weighed: Figures, arms: Mapping[str, list[str]], seeds: Iterable[int]) -> None:
    """Of each seed Spearman's correlation, over the runs of all weights, of how |ΔA-PRF| and |RaB@5| change: the mean
    over the models."""
    for seed in seeds:
        correlations = []
        for model, runs in arms.items():
            sizes = [
                [abs(np.nanmean([*weighed.values[figure, f"{model} {arm}"][seed].values()])) for arm in runs]
                for figure in (DELTA, "RaB@5")
            ]
            changes = [[size - row[0] for size in row[1:]] for row in sizes]
            correlations.append(pl.select(pl.corr(*map(pl.Series, changes), method="spearman")).item())
        figures.add(_AGREEMENT, "all weights", seed, ["weights"], np.array([np.mean(correlations)]), "trainings")


def shifted(run: Run, side: Mapping[str, int], offset: float) -> Run:
    """The run with ``offset / 2`` taken from every male passage's score and added to every female one's."""
    of = np.array([side.get(doc_id, 0) for doc_id in run.table["doc_id"]])
    scores = run.table["score"].to_numpy() - offset / 2 * of
    table = run.table.select("query_id", "doc_id").with_columns(score=pl.Series(scores))
    return Run.from_table(table, run.name)


def offset_of(run: Run, qrels: pl.DataFrame, side: Mapping[str, int]) -> float:
    """The least offset that brings ΔA-PRF to 0 (negative where female passages win more often)."""
    table = run.table.with_columns(side=pl.Series([float(side.get(doc_id, 0)) for doc_id in run.table["doc_id"]]))
    judged = qrels.filter(pl.col("relevance") >= 1).select("query_id", "doc_id", clicked=pl.lit(True))
    marked = table.join(judged, on=["query_id", "doc_id"], how="left", maintain_order="left")
    rows = marked.select("query_id", "score", "side", clicked=pl.col("clicked").is_not_null())
    pairs = rows.filter("clicked").join(rows.filter(~pl.col("clicked")), on="query_id", suffix="_other")
    pairs = pairs.filter(pl.col("side") != 0)
    ahead = (pairs["score"] - pairs["score_other"]).to_numpy()
    apart = (pairs["side"] - pairs["side_other"]).to_numpy() / 2

    def gap(offset: float) -> float:
        won = pairs.select("query_id", "side", won=pl.Series((ahead - offset * apart >= 0).astype(np.float64)))
        shares = won.group_by("query_id", pl.col("side") > 0).agg(pl.col("won").mean())
        means = dict(shares.group_by("side").agg(pl.col("won").mean()).iter_rows())
        return means.get(True, np.nan) - means.get(False, np.nan)  # type: ignore[no-any-return]

    scores = run.table["score"].to_numpy()
    return least(gap, float(scores.max() - scores.min()))


def least(gap: Callable[[float], float], most: float) -> float:
    """The offset nearest 0 at which ``gap``, which falls as the offset grows, changes its sign; 0 if it never does."""
    start = gap(0.0)
    if np.isnan(start) or start == 0:
        return 0.0
    low, high = 0.0, float(np.copysign(most, start))
    if np.sign(gap(high)) == np.sign(start):
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if np.sign(gap(middle)) == np.sign(start) else (low, middle)
    return high
