"""Hofstätter et al., ECIR 2021, position bias: Tables 1 to 5, Figures 1 and 2.

A ranker is trained on passages as they are ("original") and with every passage rotated ("rotated"), and ranks both
versions of the test passages; a second collection is trained on by itself, and after the first one.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

import evenrank
from evenrank.files import Run, holm, make_folder, read_queries, read_run, scan_collection, write_run
from evenrank.probes import different_terms, sampled_words, term_similarity
from evenrank.results import Column, Table
from evenrank.stats import signed_rank_p
from evenrank.training import build_ranker

from .checks import Need, Options, need_device, need_file
from .figures import EXACT, Figures, ratio_values
from .sources import (
    Answers,
    Lists,
    Part,
    Text,
    built_in,
    draw,
    halved,
    msmarco,
    policyqa,
    squad,
    squad_files,
)
from .study import Settings, Step, Study, cpu_precision, in_memory, stated

BIASED, OTHER = "MS MARCO", "SQuAD"
"""The collections: the first one's answers stand early."""
ORIGINAL, ROTATED = "original", "rotated"
VERSIONS = (ORIGINAL, ROTATED)
MEASURES = {"nDCG@10": "nDCG@10", "MRR@10": "RR@10", "R@10": "R@10"}
ALONE = f"{OTHER} alone"
AFTER = {f"{version} {BIASED} first": version for version in VERSIONS}
"""Trainings on the second collection that go on from one on a version of the first."""
KERNEL = "TK"
LATE = " of late answers"
"""The control: questions whose answer begins in the last share of the passage."""
SENTENCES = "rotated at sentences"
FIFTHS = 5
DISTANCES = tuple(range(0, 101, 5))
"""Of Figure 2, in words."""
ANSWERS = "irds:msmarco-qna/train"
_SLUGS = {BIASED: "biased", OTHER: "other"}


@dataclass(frozen=True, kw_only=True)
class PositionSettings(Settings):
    """Attributes:

    shorter: steps of each model on the second collection.
    few: models that are trained on the first seed alone; ``zero_shot``: those that are not trained.
    collections: those that are trained and tested on, ``transfer``: the second also after the first; ``texts``: at
        ``real`` the text in each one's place.
    planted: the built-in collection in each published one's place, generated for each seed.
    sizes: queries of each collection's parts, 0: all; ``depth``: documents that are re-ranked.
    early: answers of the first collection begin in this first share of the passage, in training and, as a paper's test
        has the places of its training, in the test; those that begin in the last share of this size are the control.
    longest: words of a passage whose questions count, where a ranker would cut longer ones.
    drawn: negatives that are kept of each training query at ``full``, where there is no run of them.
    similarity: passages of ATS and MATS, and terms without which a distance is left out.
    """

    shorter: Mapping[str, int] = field(default_factory=dict)
    few: tuple[str, ...] = ()
    zero_shot: tuple[str, ...] = ()
    collections: tuple[str, ...] = (BIASED, OTHER)
    transfer: bool = True
    texts: Mapping[str, str] = field(default_factory=dict)
    planted: Mapping[str, evenrank.SyntheticConfig] | None = None
    sizes: Mapping[str, Mapping[str, int]]
    depth: Mapping[str, int]
    depths: tuple[int, ...] = ()
    early: float | None = None
    longest: int | None = None
    drawn: int = 0
    similarity: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Collection:
    """One division of a collection: by version its texts and its answers (SQuAD files), and its parts.

    ``places``: of each test question where its answer begins; ``groups``: a file of training lists, where the training
    queries have no run.
    """

    texts: Mapping[str, str]
    answers: Mapping[str, str]
    parts: Mapping[str, Part]
    places: pl.DataFrame | None = None
    groups: str | None = None


class PositionStudy(Study[PositionSettings, Collection]):
    """The experiment ``position``."""

    name = "position"

    @classmethod
    def settings_of(cls, scale: str, options: Options) -> PositionSettings:
        """The settings of a scale."""
        values = stated("position", scale, options)
        if scale == "tiny":
            values["planted"] = {name: evenrank.SyntheticConfig(**config) for name, config in values["planted"].items()}
            for name in values["few"]:
                values["rankers"][name]["training"]["precision"] = cpu_precision()
        elif scale == "full" and (model := options.ranker(KERNEL, "")):
            values["rankers"][KERNEL]["ranker"]["model"] = values["models"][KERNEL] = model
        return PositionSettings(**values)

    def own_needs(self) -> list[Need]:
        """TK's word vectors at ``full``, a device at ``real``."""
        scale = self.settings.scale
        if scale == "full":
            vectors = str(self.settings.rankers[KERNEL]["ranker"]["vectors"])
            return [need_file(vectors, "TK's word vectors", "vectors")]
        return need_device(self.settings.options.device) if scale == "real" else []

    def trainings(self) -> int:
        """Of every ranker, version, collection and division."""
        settings = self.settings
        trained = [name for name in settings.rankers if name not in settings.zero_shot]
        each = sum(len(self._seeds_of(name)) for name in trained) * (6 if OTHER in settings.collections else 2)
        return each * len(self.divisions)

    def _seeds_of(self, model: str) -> tuple[int, ...]:
        settings = self.settings
        return settings.seeds[: 1 if model in (*settings.few, *settings.zero_shot) else None]

    def _trainings(self, model: str) -> tuple[str, ...]:
        """The versions that a model is trained on; one that is not trained has seen passages as they are."""
        return (ORIGINAL,) if model in self.settings.zero_shot else VERSIONS

    # --- data -----------------------------------------------------------------------------------------------------

    def _planted(self, seed: int, name: str, _: int) -> Collection:
        """The built-in collection in a published one's place; its entities are divided among the parts."""
        settings, home = self.settings, self.folder / f"{_SLUGS[name]}-{seed}"
        assert settings.planted is not None
        planted = settings.planted[name]
        text = built_in(home, replace(planted, seed=planted.seed + seed))
        texts, answers = rotated(text.collection, home, str(home / "answers.json"))
        lists, parts = Lists(text.collection, home), {}
        for part, size in settings.sizes[name].items():
            table = draw(read_queries(home / f"queries.{part}.tsv"), {part: size}, seed)[part]
            parts[part] = lists.part(part, table, text.qrels, depth=settings.depth[name])
        return Collection(texts, answers, parts)

    def _real_text(self, name: str) -> Answers:
        make = policyqa if self.settings.texts[name] == "policyqa" else squad
        return make(self.settings.options, self.folder / _SLUGS[name])

    def _halves(self, seed: int, name: str, division: int) -> Collection:
        """Real text, its articles halved: early questions of one half are tested, late ones are the control, early ones
        of the other half train. A text that is not trained on has the places of its answers alone."""
        settings, home = self.settings, self.folder / _SLUGS[name]
        real = self._real_text(name)
        texts, answers = rotated(real.text.collection, home, real.file)
        _, _, mine = halved(real.places.select("article").unique().sort("article"), seed, division, 0)
        tested = pl.col("article").is_in(mine["article"].implode())
        first = real.places.sort("query_id", "place").unique("query_id", keep="first", maintain_order=True)
        if name not in settings.collections:
            return Collection(texts, answers, {}, first)
        if settings.longest is not None:
            passages = pl.concat(list(scan_collection(real.text.collection)))
            long = passages.filter(pl.col("text").str.split(" ").list.len() > settings.longest)
            cut = real.places.join(long, on="doc_id", how="semi")
            first = first.join(cut, on="query_id", how="anti", maintain_order="left")
        assert settings.early is not None
        early, late = pl.col("place") < settings.early, pl.col("place") >= 1 - settings.early
        trained = first.filter(~tested & early)
        shuffled = trained.sample(fraction=1.0, shuffle=True, seed=seed)["query_id"].to_list()
        valid = settings.sizes[name]["valid"]
        wanted = {
            "train": shuffled[valid:],
            **({"valid": shuffled[:valid]} if valid else {}),
            "test": first.filter(tested & early)["query_id"].to_list(),
            "late": first.filter(tested & late)["query_id"].to_list(),
            # Both at once, as they share their passages.
            "asked": first.filter(tested & (early | late))["query_id"].to_list(),
        }
        own = settings.texts[name] == "policyqa"
        lists = Lists(real.text.collection, make_folder(home / f"{seed}-{division}"), home)
        parts = {}
        for part, ids in wanted.items():
            queries = real.text.queries.filter(pl.col("query_id").is_in(pl.Series(ids).implode()))
            parts[part] = lists.part(part, queries, real.text.qrels, depth=5_000 if own else settings.depth[name])
            if own:
                parts[part] = of_own_article(parts[part], real.articles)
        return Collection(texts, answers, parts, first)

    def _published(self, _: int, name: str, __: int) -> Collection:
        settings, home = self.settings, make_folder(self.folder / _SLUGS[name])
        if name == BIASED:
            text = msmarco()
            names = {"train": "train/judged", "valid": "dev/small", "test": "dev/judged"}
            tables = {part: msmarco((split,)).queries for part, split in names.items()}
            # The test queries are those of dev that do not validate.
            tables["test"] = tables["test"].join(tables["valid"], on="query_id", how="anti", maintain_order="left")
            collection, qrels, answers = text.collection, text.qrels, ANSWERS
        else:
            collection, qrels, answers, tables = self._squad(home)
        # The answers of a data set stay in its own texts.
        texts, moved = rotated(collection, home, None if name == BIASED else answers)
        lists, parts = Lists(collection, home, None, **settings.first_stage), {}
        for part, table in tables.items():
            # Training queries get no lists, which would fill 77 GB: negatives are drawn while BM25 searches.
            parts[part] = lists.part(part, table, qrels, depth=settings.depth[name] if part != "train" else 1)
        groups = home / "train.parquet"
        lists.negatives(
            parts["train"], {groups: 0.0}, n=settings.drawn, depth=settings.depth[name], seed=0, lexicon="gender-en",
        )  # fmt: skip
        return Collection(texts, moved or {ORIGINAL: answers}, parts, None, str(groups))

    def _squad(self, home: Path) -> tuple[str, pl.DataFrame, str, dict[str, pl.DataFrame]]:
        """SQuAD 2.0 with the official split: 5,000 training questions, drawn by article, validate."""
        files = squad_files(self.settings.options, self.folder)
        if not (home / "counts.json").is_file():
            evenrank.write_squad_collection(files, out=home, validation=self.settings.sizes[OTHER]["valid"])
        tables = {part: read_queries(home / f"queries.{part}.tsv") for part in ("train", "valid", "test")}
        text = Text.of(home)
        return text.collection, text.qrels, str(home / "answers.json"), tables

    # --- trainings ------------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[Iterable[Step]]:
        """Data, the kernel ranker's vectors, every training on one collection, then those that go on from one."""
        settings, names = self.settings, self.settings.collections
        yield from self.prepared(*((name,) for name in names))
        if settings.planted is not None and KERNEL in settings.rankers:
            yield [("started", (seed, KERNEL)) for seed in settings.seeds]
        every = [
            (seed, model, division)
            for model in settings.rankers
            for seed in self._seeds_of(model)
            for division in self.divisions
        ]
        yield [
            ("arm", (seed, model, name, version, division))
            for seed, model, division in every
            for name in names
            for version in self._trainings(model)
        ]
        if OTHER in names and settings.transfer:
            yield [("arm", (seed, model, OTHER, after, division)) for seed, model, division in every for after in AFTER]

    def started(self, seed: int, model: str) -> str:
        """The folder of a kernel ranker, untrained, with vectors of the words of both collections: one that knew those
        of one alone could not be transferred."""
        target, ranker = self.home(seed) / f"{model}-start", self.settings.rankers[model]["ranker"]
        if not (target / "vocabulary.txt").is_file():
            texts = pl.concat(
                batch.select(doc_id=pl.lit(_SLUGS[name]) + pl.col("doc_id"), text="text")
                for name in _SLUGS
                for batch in scan_collection(self.data(seed, name).texts[ORIGINAL], unique=False)
            )
            build_ranker(evenrank.RankerRecipe.model_validate(ranker), seed=seed, texts=texts).save(target)
        return str(target)

    def arm(self, seed: int, model: str, name: str, training: str, division: int) -> dict[str, Run]:
        """The test runs of a training on a collection, by the version of the test passages; ``training``: a version, or
        the original after one of the first collection."""
        data, recipe = self.data(seed, name, division=division), self._recipe(seed, model, name, training, division)
        tests = VERSIONS if training in VERSIONS else (ORIGINAL,)
        part = data.parts.get("asked", data.parts["test"])
        parts = {version: replace(part, collection=data.texts[version]) for version in tests}
        folder = self._name(model, name, training, division)
        if model in self.settings.zero_shot:
            return self.kept_runs(seed, folder, lambda: self.untrained(recipe["ranker"]), parts)
        if training in AFTER:
            before = self._recipe(seed, model, BIASED, AFTER[training], division)
            start = self.trained(seed, self._name(model, BIASED, AFTER[training], division), before)
            recipe["ranker"] = {**recipe["ranker"], "model": start}
            recipe["ranker"].pop("layers", None)
        return self.ranked(seed, folder, recipe, parts)

    def _name(self, model: str, name: str, training: str, division: int) -> str:
        return self.named(model, _SLUGS[name], training, division=division)

    def _recipe(self, seed: int, model: str, name: str, training: str, division: int) -> dict[str, dict[str, object]]:
        settings, data, wanted = self.settings, self.data(seed, name, division=division), self.settings.rankers[model]
        train, depth = data.parts["train"], self.settings.depth[name]
        ranker = dict(wanted["ranker"])
        if ranker.get("vectors") == "train":
            ranker["model"] = self.started(seed, model)
        version = training if training in VERSIONS else ORIGINAL
        lists = {"qrels": train.qrels, "run": train.run} if data.groups is None else {"groups": data.groups}
        shorter = settings.shorter.get(model) if name == OTHER else None
        steps = {} if shorter is None else {"max_steps": shorter, "evaluate_every": max(1, shorter // 3)}
        wanted = {**wanted, "ranker": ranker, "training": {**wanted["training"], **steps}}
        section = {"collection": data.texts[version], "queries": train.queries, "depth": depth, **lists}
        recipe = self.recipe(seed, wanted, section)
        if not in_memory(ranker):
            valid = data.parts["valid"]
            files = {"queries": valid.queries, "qrels": valid.qrels, "run": valid.run, "depth": depth}
            depths = [d for d in settings.depths if d < depth]
            recipe["validation"] = {**files, **({"depths": [*depths, depth]} if depths else {})}
        return recipe

    # --- figures --------------------------------------------------------------------------------------------------

    def figures(self) -> Figures:
        """Every ranker on both versions of both collections, by place, where answers begin, and TK's vectors."""
        settings = self.settings
        figures = Figures(settings.same_queries)
        for seed, name, division in itertools.product(settings.seeds, settings.collections, self.divisions):
            data, runs = self.data(seed, name, division=division), dict[str, Run]()
            for model in settings.rankers:
                if seed in self._seeds_of(model):
                    runs |= self._runs(seed, model, name, division)
            for part, suffix, measures in (("test", "", MEASURES), ("late", LATE, {"nDCG@10": "nDCG@10"})):
                if part in data.parts:
                    queries = read_queries(data.parts[part].queries).select("query_id")
                    tested = {
                        row: Run.from_table(run.table.join(queries, "query_id", "semi", maintain_order="left"), row)
                        for row, run in runs.items()
                    }
                    self.measure(figures, seed, data.parts[part], tested, measures, f"{suffix} on {name}")
            if settings.scale != "full":
                self._by_place(figures, seed, name, [*runs, "BM25"], data.places)
        for name in settings.texts or settings.collections:
            if settings.scale == "real":
                figures = by_passage(figures, f" on {name}", self._real_text(name).places)
            self._changes(figures, name)
            self._answers(figures, name)
            for figure, count in self._sizes(name).items():
                figures.add(figure, name, 0, ["all"], np.array([float(count)]), EXACT)
        if settings.scale == "real":
            self._cut(figures, BIASED)
        if settings.similarity and KERNEL in settings.rankers:
            for seed, name in itertools.product(self._seeds_of(KERNEL), settings.collections):
                self._similarities(figures, seed, name)
        return figures

    def _sizes(self, name: str) -> dict[str, int]:
        """The documents of a collection, and the queries of its parts, of the first seed [Table 1]."""
        every = [self.data(self.settings.seeds[0], name, division=division) for division in self.divisions]
        counts = {"documents": sum(batch.height for batch in scan_collection(every[0].texts[ORIGINAL], unique=False))}
        parts = {"train": "train", "validation": "valid", "test": "test"}
        return counts | {
            f"{title} queries": sum(c.parts[part].count for c in every)
            for title, part in parts.items()
            if part in every[0].parts
        }

    def _cut(self, figures: Figures, name: str) -> None:
        """Which passages that are relevant to a test question, in either version, are longer than a ranker reads."""
        from transformers import AutoTokenizer

        every = [self.data(self.settings.seeds[0], name, division=division) for division in self.divisions]
        questions = pl.concat([read_queries(c.parts["asked"].queries).select("query_id") for c in every])
        relevant = self._real_text(name).text.qrels.join(questions, on="query_id", how="semi")
        relevant = relevant.select("doc_id").unique(maintain_order=True)
        for model, recipe in self.settings.rankers.items():
            tokenizer = AutoTokenizer.from_pretrained(str(recipe["ranker"]["model"]), trust_remote_code=False)
            length = int(str(recipe["ranker"]["passage_length"]))
            for version, collection in every[0].texts.items():
                texts = pl.concat(list(scan_collection(collection))).join(relevant, on="doc_id", how="semi")
                pieces = tokenizer(texts["text"].to_list(), verbose=False)["input_ids"]
                cut = np.array([len(piece) > length for piece in pieces], dtype=float)
                ids = [f"{model} {version} {doc}" for doc in texts["doc_id"]]
                figures.add("share of relevant passages cut", "all", 0, ids, cut, EXACT)

    def _runs(self, seed: int, model: str, name: str, division: int) -> dict[str, Run]:
        """The test runs of a model on a collection by the name of the row."""
        rows = dict[str, Run]()
        for training in self._trainings(model):
            runs = self.arm(seed, model, name, training, division)
            rows |= {f"{model} {training}, {test} test": run for test, run in runs.items()}
        if name == OTHER and self.settings.transfer:
            rows[f"{model} {ALONE}"] = rows[f"{model} {ORIGINAL}, {ORIGINAL} test"]
            for after in AFTER:
                rows[f"{model} {after}"] = self.arm(seed, model, name, after, division)[ORIGINAL]
        return rows

    def _by_place(
        self, figures: Figures, seed: int, name: str, systems: Iterable[str], places: pl.DataFrame | None
    ) -> None:
        """nDCG@10 of the test questions by the fifth of the passage in which the answer begins."""
        if places is None or name != BIASED:
            return
        table = places.select("query_id", "doc_id", fifth=(pl.col("place") * FIFTHS).floor().clip(0, FIFTHS - 1) + 1)
        for system in systems:
            values = figures.values.get((f"nDCG@10 on {name}", system), {}).get(seed, {})
            known = pl.DataFrame({"query_id": [*values], "value": [*values.values()]})
            # Questions of one passage share what makes it easy: a passage counts once.
            of = table.join(known, on="query_id").group_by("fifth", "doc_id", maintain_order=True)
            for (number,), rows in of.agg(pl.col("value").mean()).group_by("fifth"):
                row = f"{system}, fifth {number:g}"
                ids, means = rows["doc_id"].to_list(), rows["value"].to_numpy()
                figures.add(f"nDCG@10 by place on {name}", row, seed, ids, means, "passages")

    def _changes(self, figures: Figures, name: str) -> None:
        """Δ of Tables 3 and 4 in percent: (rotated − original test) / rotated test, as values whose mean it is."""
        for model, training, measure in itertools.product(self.settings.rankers, VERSIONS, MEASURES):
            figure, row = f"{measure} on {name}", f"{model} {training}"
            for seed, ids, (old, new) in figures.aligned(figure, *(f"{row}, {test} test" for test in VERSIONS)):
                figures.add(f"Δ {figure}, %", row, seed, ids, 100 * (1 - ratio_values(old, new)))
                figures.add(f"{figure}, original test", row, seed, ids, old)

    def _answers(self, figures: Figures, name: str) -> None:
        """Where answers begin, in both versions [Fig. 1]; the first seed's collection."""
        data = self.data(self.settings.seeds[0], name)
        versions = {ORIGINAL: name, ROTATED: f"{name} rotated", SENTENCES: f"{name} {SENTENCES}"}
        sources = dict(data.answers)
        if name == BIASED and ROTATED in sources:
            out = Path(data.texts[ROTATED]).with_name("sentences.tsv")
            moved = out.with_suffix(".answers.json")
            if not moved.is_file():
                options = {"answers": sources[ORIGINAL], "answers_out": moved, "mode": "sentence"}
                evenrank.rotate_collection(data.texts[ORIGINAL], out=out, **options)  # type: ignore[arg-type]
            sources[SENTENCES] = str(moved)
        for version, source in sources.items():
            positions = evenrank.position_answers(source, annotated=not source.startswith("irds:")).positions
            table, system = positions.table, versions[version]
            if data.places is not None:
                # The file has questions that are left out, too.
                pairs = self._real_text(name).places.select("query_id", "doc_id")
                table = table.join(pairs, on=["query_id", "doc_id"], how="semi", maintain_order="left")
            ids = [" ".join(map(str, row)) for row in table.select("query_id", "doc_id", "answer_start").iter_rows()]
            place, words = table["position"].to_numpy(), table["tokens"].to_numpy()
            length = table["answer"].str.count_matches(r"\S+").cast(pl.Int64).to_numpy()
            # Where an answer of so many words begins on average if it stands anywhere that it fits.
            even = np.maximum(words - length, 0) / (2 * words)
            figures.add("answer place", system, 0, ids, place, "answers")
            figures.add("earlier than evenly", system, 0, ids, even - place, "answers")
            figures.add("in the first third", system, 0, ids, (place < 1 / 3).astype(float), "answers")

    def _similarities(self, figures: Figures, seed: int, name: str) -> None:
        """ATS and MATS of TK's vectors of the same word, trained and not, and how near different words are [Fig. 2]."""
        settings, collection = self.settings, self.data(seed, name).texts[ORIGINAL]
        wanted = settings.similarity
        models = {
            training: str(self.home(seed) / self._name(KERNEL, name, training, 0) / "model") for training in VERSIONS
        }
        models["untrained"] = self.started(seed, KERNEL)
        pairs = wanted.get("min_pairs", 5)
        for training, model in models.items():
            words, _ = sampled_words(model, collection, passages=wanted["passages"])
            similarity = term_similarity(*words, min_pairs=pairs, min_terms=wanted["min_terms"])
            apart = float(np.nanmean(different_terms(*words)[: similarity.delta_max + 1]))
            room = float(similarity.ats[0]) - apart
            values = {
                "MATS": similarity.mats,
                "SD": similarity.mats_deviation,
                "ATS(0)": float(similarity.ats[0]),
                "cosine of different terms": apart,
                # A collapsed transformer has a small MATS because all cosines are near 1; this does not shrink by that.
                "MATS relative to different terms": similarity.mats / room if room > 0 else float("nan"),
            }
            row = f"{KERNEL} {training}"
            for figure, value in values.items():
                figures.add(f"{figure} on {name}", row, seed, ["all"], np.array([value]), "trainings")
            if training == ORIGINAL:
                figures.add("MATS", f"{KERNEL} on {name}", seed, ["all"], np.array([similarity.mats]), "trainings")
            for distance in DISTANCES:
                if distance <= similarity.delta_max:
                    at, near = f"{row}, Δ {distance}", np.array([similarity.ats[distance]])
                    figures.add(f"ATS on {name}", at, seed, ["all"], near, "trainings")

    def tables(self, figures: Figures) -> list[Table]:
        """The letters of Table 5: which rows of the same model are significantly worse."""
        rows = []
        for model in self.settings.rankers:
            names = [f"{model} {training}" for training in (ALONE, *AFTER)]
            for measure in MEASURES:
                figure = f"{measure} on {OTHER}"
                if not all(figures.has(figure, name) for name in names):
                    continue
                pairs = list(itertools.combinations(range(3), 2))
                tests = [wilcoxon_of(figures, figure, names[b], names[a]) for a, b in pairs]
                corrected = holm([p for _, p in tests])
                better: dict[int, str] = {}
                for (a, b), (sign, p), all_three in zip(pairs, tests, corrected, strict=True):
                    if p < 0.05:
                        above, below = (b, a) if sign > 0 else (a, b)
                        holds = all_three is not None and all_three < 0.05
                        better[above] = better.get(above, "") + "abc"[below] + "*" * holds
                rows += [(f"{'abc'[at]} {name}", measure, better.get(at, "")) for at, name in enumerate(names)]
        if not rows:
            return []
        columns = (Column("row"), Column("measure"), Column("better", heading="better than"))
        return [Table("Letters. Table 5's significance", columns, rows, (self.about["letters"],))]


def wilcoxon_of(figures: Figures, figure: str, first: str, second: str) -> tuple[int, float]:
    """The sign of the systems' difference, first − second, and p of Wilcoxon's signed-rank test over queries.

    That p is the largest of any seed, 1 where seeds disagree in sign.
    """
    differences = [a - b for _, _, (a, b) in figures.aligned(figure, first, second)]
    tests = [(int(np.sign(apart.mean())), signed_rank_p(apart)) for apart in differences]
    signs = {sign for sign, _ in tests}
    return (signs.pop(), max(p for _, p in tests)) if len(signs) == 1 else (0, 1.0)


def by_passage(figures: Figures, suffix: str, places: pl.DataFrame) -> Figures:
    """The figures whose names end in ``suffix`` with a value per passage, the mean of its questions: they share what
    makes the passage easy, and its one rotation, so that they are no independent evidence."""
    first = places.unique("query_id", keep="first", maintain_order=True)
    passage, result = dict(first.select("query_id", "doc_id").iter_rows()), Figures(figures.same_queries)
    for (figure, system), seeds in figures.values.items():
        unit = figures.units[figure]
        for seed, values in seeds.items():
            if not figure.endswith(suffix) or unit != "queries":
                result.add(figure, system, seed, [*values], np.array([*values.values()]), unit)
                continue
            of = defaultdict[str, list[float]](list)
            for query, value in values.items():
                of[passage[query]].append(value)
            result.add(figure, system, seed, [*of], np.array([np.mean(v) for v in of.values()]), "passages")
    return result


def of_own_article(part: Part, articles: pl.DataFrame) -> Part:
    """The part with all passages of each question's own article as its list, in BM25's order; those that share no word
    with the question come last."""
    file, both = Path(part.run).with_suffix(".own.run"), ["query_id", "doc_id"]
    if not file.is_file():
        scores = read_run(part.run).table.select(*both, "score")
        relevant = evenrank.read_qrels(part.qrels).filter(pl.col("relevance") >= 1)
        queries = relevant.join(articles, on="doc_id").select("query_id", "article").unique(maintain_order=True)
        pool = queries.join(articles, on="article", maintain_order="left").select(both).unique(maintain_order=True)
        scored = pool.join(scores, on=both, how="left", maintain_order="left")
        write_run(Run.from_table(scored.with_columns(pl.col("score").fill_null(-1.0)), "BM25"), file)
    return replace(part, run=str(file))


def rotated(collection: str, home: Path, answers: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """The collection by version, rotated once into ``home``, and its answers."""
    out, moved = home / "rotated.tsv", home / "rotated.answers.json"
    if not out.is_file():
        evenrank.rotate_collection(collection, out=out, answers=answers, answers_out=None if answers is None else moved)
    texts = {ORIGINAL: collection, ROTATED: str(out)}
    return texts, {} if answers is None else {ORIGINAL: answers, ROTATED: str(moved)}
