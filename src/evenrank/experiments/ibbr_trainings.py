"""The trainings of the IBBR experiment, and the rankings that are compared."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

from evenrank.groups import Scoring, load_lexicon
from evenrank.io import Run
from evenrank.mitigation.ibbr import best_weight
from evenrank.training.callbacks import Line, read_log
from evenrank.training.checkpoints import FAIR_WEIGHT

from .corpora import Lists
from .ibbr_data import Data, prepare
from .ibbr_setup import TERMS, Score, Settings
from .ibbr_shift import offset_of, shifted
from .work import LEXICON, Step, Trained, Trainings, Work, development

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
