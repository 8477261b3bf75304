"""The position experiment's trainings: each ranker on both versions of both collections, and transferred."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from evenrank.io import Run, make_folder, scan_collection

from .position_data import Collection, prepare
from .position_setup import BIASED, ORIGINAL, OTHER, SOURCE, VERSIONS, Settings, slug
from .work import Sections, Trained, Trainings, Work

__all__ = ["Experiment"]


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
            from evenrank.training.build import build_ranker
            from evenrank.training.recipes import RankerRecipe

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
        from evenrank.training.build import build_ranker
        from evenrank.training.recipes import parse_recipe

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
