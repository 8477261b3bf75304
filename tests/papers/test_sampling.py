"""The study sampling: its steps on a small collection, its settings, and mutants that change verdicts."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenrank.files import read_qrels, read_queries, read_run, write_run
from evenrank.files.synthetic import SyntheticConfig, generate
from evenrank.files.tokens import tokenize
from evenrank.groups import load_lexicon
from evenrank.mitigation.negatives import NegativeSettings
from evenrank.papers import sampling
from evenrank.papers.checks import Options
from evenrank.papers.claims import claims_of, published_rows
from evenrank.papers.figures import Figures
from evenrank.papers.report import ExperimentPage, page_of
from evenrank.papers.sampling import SamplingStudy
from evenrank.papers.sources import Text
from evenrank.training.recipes import load_recipe
from micro_studies import TRAINING, micro_sampling, rows

pytest.importorskip("torch", reason="PyTorch is not installed")
Done = tuple[SamplingStudy, Figures, ExperimentPage]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A run of two seeds: 20 seconds."""
    study = SamplingStudy(micro_sampling(), tmp_path_factory.mktemp("sampling"))
    figures = study.run(1)
    page = page_of(study, figures)
    page.write(study.folder)
    return study, figures, page


def test_tables_have_the_published_rows_and_the_yardsticks(done: Done) -> None:
    page = done[2]
    for name in ("Table 1", "Table 2", "Table 3"):
        assert {row["system"] for row in published_rows("sampling") if row["table"] == name} <= set(rows(page, name))
    second = rows(page, "Table 2")
    assert {"BERT-base reordered 0.5", "BERT-base blind", "BM25", "random", "neutral-first"} <= set(second)
    assert second["BERT-base random"].published["|ARaB tf@10 on QS1|"] == 0.1281
    assert second["neutral-first"].measured["NFaiRR@10 on QS1"].mean == pytest.approx(1.0)
    assert rows(page, "Fig. 1")["BERT-base share 0.6"].measured["MRR@10 on dev"].n == 40
    assert {key for key, value in rows(page, "Table 3").items() if "attack" in value.measured} == {
        "BERT-Tiny random", "BERT-Tiny AdvBert"
    }  # fmt: skip


class Words:
    """Counts of male and female words by a loop over tokens."""

    def __init__(self, collection: Path) -> None:
        entries = load_lexicon().entries("word")
        longest = max(map(len, entries))
        self.counts = {}
        for line in collection.read_text(encoding="utf-8").splitlines():
            doc, text = line.split("\t", 1)
            tokens, found, place = tokenize(text), {"m": 0, "f": 0}, 0
            while place < len(tokens):
                for size in range(longest, 0, -1):
                    group = entries.get(tuple(tokens[place : place + size]))
                    if group:
                        found[group] += 1
                        place += size - 1
                        break
                place += 1
            self.counts[doc] = found["m"], found["f"]

    def arab(self, docs: list[str], kind: str) -> float:
        def magnitude(count: int) -> float:
            return math.log(1 + count) if kind == "tf" else float(count > 0)

        lean = [magnitude(m) - magnitude(f) for m, f in (self.counts[doc] for doc in docs)]
        total = sum(sum(lean[:rank]) / rank for rank in range(1, min(10, len(docs)) + 1))
        return total / min(10, len(docs))

    def neutrality(self, doc: str) -> float:
        m, f = self.counts[doc]
        return 1.0 if m + f <= 1 else 1 - abs(m / (m + f) - 0.5) - abs(f / (m + f) - 0.5)

    def nfairr(self, docs: list[str], background: list[str]) -> float:
        best = sorted(map(self.neutrality, background), reverse=True)
        gain = [
            sum(one / math.log2(2 + i) for i, one in enumerate(values[:10]))
            for values in ([self.neutrality(doc) for doc in docs], best)
        ]
        return gain[0] / gain[1]


def lists(path: Path | str) -> dict[str, list[str]]:
    """A run file's documents, by falling score, ties by falling id."""
    found: dict[str, list[tuple[float, str]]] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        query, _, doc, _, score, _ = line.split()
        found.setdefault(query, []).append((float(score), doc))
    return {query: [doc for _, doc in sorted(one, reverse=True)] for query, one in found.items()}


@pytest.mark.parametrize("arm", ["random", "bias-aware"])
def test_the_bias_of_a_row_by_plain_loops(done: Done, arm: str) -> None:
    study, figures, _ = done
    found: dict[str, list[float]] = {"NFaiRR@10": [], "ARaB tf@10": [], "ARaB bool@10": []}
    for seed in (0, 1):
        words, back = Words(study.folder / f"data-{seed}/collection.tsv"), lists(study.data(seed).parts["QS1"].run)
        ranked = lists(study.home(seed) / f"BERT-base-{arm}" / "QS1.run")
        assert len(ranked) == 40
        found["NFaiRR@10"].append(float(np.mean([words.nfairr(docs, back[query]) for query, docs in ranked.items()])))
        for kind in ("tf", "bool"):
            found[f"ARaB {kind}@10"].append(float(np.mean([words.arab(docs, kind) for docs in ranked.values()])))
    for name, values in found.items():
        assert figures.mean(f"{name} on QS1", f"BERT-base {arm}") == pytest.approx(np.mean(values), abs=1e-9)


def _biased_have_the_largest_beta(study: SamplingStudy) -> bool:
    words = Words(study.folder / "data-0/collection.tsv")

    def beta(doc: str) -> float:
        m, f = words.counts[doc]
        return abs(math.log(1 + m) - math.log(1 + f))

    drawn, run = pl.read_parquet(study.negatives(0, 0, 0.6)), lists(study.data(0).parts["train"].run)
    for query, docs, labels in drawn.select("query_id", "doc_id", "label").iter_rows():
        negatives = [doc for doc, label in zip(docs, labels, strict=True) if not label]
        free = [beta(doc) for doc in run[query] if doc not in {d for d, one in zip(docs, labels, strict=True) if one}]
        if sorted(map(beta, negatives), reverse=True)[:3] != pytest.approx(sorted(free, reverse=True)[:3]):
            return False
    return True


def test_biased_negatives_are_the_most_gendered(done: Done) -> None:
    study = done[0]
    manifest = json.loads(Path(study.negatives(0, 0, 0.6) + ".manifest.json").read_text(encoding="utf-8"))
    assert manifest["biased"] == 3 * manifest["queries"]
    assert manifest["mean_beta"]["biased"] > manifest["mean_beta"]["candidates"]
    assert _biased_have_the_largest_beta(study)


def test_mutant_beta_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(NegativeSettings, "quota", property(lambda _: 0))
    study = SamplingStudy(replace(micro_sampling(), seeds=(0,)), tmp_path)
    random, biased = (pl.read_parquet(study.negatives(0, 0, share)) for share in (0.0, 0.6))
    assert random.drop("group", strict=False).equals(biased.drop("group", strict=False))
    assert not _biased_have_the_largest_beta(study)


def test_reordered_rows_are_of_the_untouched_rankers_runs(done: Done) -> None:
    study, figures, _ = done
    docs = {
        seed: {query: sorted(one) for query, one in lists(study.home(seed) / "BERT-base-random/QS1.run").items()}
        for seed in (0, 1)
    }
    reordered = study._reordered(
        read_run(study.home(0) / "BERT-base-random/QS1.run"), study.data(0).parts["QS1"], "BERT-base", study.data(0)
    )
    for run in reordered.values():
        table = run.table.group_by("query_id").agg(pl.col("doc_id").sort())
        assert dict(table.iter_rows()) == docs[0]
    fair = [figures.mean("NFaiRR@10 on QS1", f"BERT-base {arm}") for arm in ("random", "reordered 0.5", "reordered 1")]
    assert fair == sorted(fair)


# --- claims ----------------------------------------------------------------------------------------------------------


def rankers(**changed: dict[str, float]) -> Figures:
    """Five seeds of 300 queries of a method that works, by row and figure."""
    base = {"MRR@10": 0.5, "NFaiRR@10": 0.8, "ARaB tf@10": 0.2, "ARaB bool@10": 0.15}
    means: dict[str, dict[str, float]] = {
        "BM25": {**base, "MRR@10": 0.3},
        "random": base,
        "bias-aware": {"MRR@10": 0.4999, "NFaiRR@10": 0.9, "ARaB tf@10": 0.1, "ARaB bool@10": 0.07},
        "AdvBert": {"MRR@10": 0.44, "NFaiRR@10": 0.85, "ARaB tf@10": 0.14, "ARaB bool@10": 0.11},
    }
    rng = np.random.default_rng(0)
    found, ids = Figures(True), [str(one) for one in range(300)]
    for row, values in {
        **means,
        **{name.replace("_", "-"): means[name.replace("_", "-")] | one for name, one in changed.items()},
    }.items():
        for model in ("BERT-base", "BERT-Tiny"):
            for seed in range(5):
                for measure, mean in values.items():
                    for part in ("dev", "QS1", "QS2"):
                        name = row if row == "BM25" else f"{model} {row}"
                        found.add(f"{measure} on {part}", name, seed, ids, mean + rng.normal(0, 0.05, 300))
    for when, accuracy in (("random", 0.9), ("AdvBert", 0.7)):
        for seed in range(5):
            found.add("attack", f"BERT-Tiny {when}", seed, ["d"], np.array([accuracy + 0.01 * seed]), "trainings")
    sampling._fairer(found, "BERT-Tiny bias-aware", "BERT-Tiny AdvBert")
    return found


def verdicts(figures: Figures) -> dict[str, str]:
    models = {"BERT-base": "large", "BERT-Tiny": "small"}
    return {one.key: one.decided(figures, models, "tiny").verdict.state for one in claims_of("sampling")}


WORKS = {
    "table1", "nfairr_qs1", "nfairr_qs2", "arab_qs1", "arab_qs2", "no_cost_qs1", "no_cost_qs2", "tiny_fair",
    "tiny_arab", "fairer", "over_adv", "adv_cost", "adversary",
}  # fmt: skip


def test_the_claims_hold_where_they_hold() -> None:
    found = verdicts(rankers())
    assert {key for key, state in found.items() if state == "supported"} == WORKS
    assert found["tiny_drop"] == "not supported"
    assert found["mini_mrr"] == "undecided"


@pytest.mark.parametrize(
    ("changed", "refuted"),
    [
        # Negatives at random, groups swapped (the lean as large on the other side), AdvBert without its adversary.
        ({"bias_aware": {"NFaiRR@10": 0.77, "ARaB tf@10": 0.21, "ARaB bool@10": 0.16}}, "nfairr_qs1"),
        ({"bias_aware": {"ARaB tf@10": -0.25, "ARaB bool@10": -0.2}}, "arab_qs1"),
        ({"AdvBert": {"NFaiRR@10": 0.77}}, "adv_cost"),
        ({"AdvBert": {"MRR@10": 0.52}}, "adv_cost"),
        ({"bias_aware": {"MRR@10": 0.42}}, "table1"),
        ({"AdvBert": {"NFaiRR@10": 0.95}}, "fairer"),
    ],
)  # fmt: skip
def test_each_claim_can_fail(changed: dict[str, dict[str, float]], refuted: str) -> None:
    assert verdicts(rankers(**changed))[refuted] == "not supported"


def test_a_lean_to_the_other_side_that_is_smaller_is_a_reduction() -> None:
    turned = rankers(bias_aware={"ARaB tf@10": -0.1, "ARaB bool@10": -0.07})
    assert verdicts(turned)["arab_qs1"] == "supported"


def test_a_destroyed_ranker_is_named_and_supports_nothing() -> None:
    broken = rankers(bias_aware={"MRR@10": 0.2}, random={"MRR@10": 0.25})
    found = verdicts(broken)
    assert {key for key, state in found.items() if state == "supported"} <= {"adversary"}
    study = SamplingStudy(micro_sampling(), Path("nowhere"))
    laid = {layout.name: found for layout, found in page_of(study, broken).layouts}
    second = {row.system: row for row in laid["Table 2"]}
    assert "below the first stage" in second["BERT-base bias-aware"].warning
    assert not second["BM25"].warning


def test_the_slope_over_the_shares_of_each_query() -> None:
    found = Figures(True)
    for share, values in ((0.0, [0.5, 1.0]), (0.5, [0.4, 1.0]), (1.0, [0.3, 0.5])):
        found.add("MRR@10 on dev", f"BERT-base share {share:g}", 10, ["q1", "q2"], np.array(values))
    sampling._slopes(found, "BERT-base", (0.0, 0.5, 1.0))
    # Least squares over three shares half a unit apart: the difference of the outer two.
    slopes = found.values["slope of MRR@10 on dev", "BERT-base by share"][10]
    assert slopes == pytest.approx({"q1": -0.2, "q2": -0.5})


# --- the other scales ------------------------------------------------------------------------------------------------


def test_full_settings_are_the_published_ones() -> None:
    full = SamplingStudy.settings_of("full", Options(model=("BERT-Mini=mini",)))
    assert (full.negatives, full.depth, full.share, full.shares) == (20, 1000, 0.6, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
    assert dict(full.models) == {
        "BERT-base": "bert-base-uncased",
        "DistilRoBERTa-base": "distilroberta-base",
        "ELECTRA-base": "google/electra-base-discriminator",
        "BERT-Tiny": "google/bert_uncased_L-2_H-128_A-2",
        "BERT-Mini": "mini",
    }
    recipe = full.rankers["BERT-Mini"]
    assert (recipe["ranker"]["kind"], recipe["ranker"]["model"], recipe["loss"]["name"]) == ("cat", "mini", "bce")
    named = {"learning_rate": 2e-5, "batch": 2, "epochs": 1, "warmup": 0.1, "weight_decay": 0.0, "schedule": "linear"}
    assert {name: recipe["training"][name] for name in named} == named
    assert recipe["ranker"]["query_length"] + recipe["ranker"]["passage_length"] == 512  # type: ignore[operator]
    assert (full.sizes, full.tokens, full.adversarial) == ({"train": 0}, "whitespace", ("BERT-Tiny", "BERT-Mini"))


def test_real_has_two_rankers_of_which_one_is_distilled() -> None:
    real = SamplingStudy.settings_of("real", Options(model=("BERT-base=large", "BERT-Tiny=small")))
    assert (real.student, real.rankers["BERT-base"]["ranker"]["model"]) == ("small", "large")
    assert "model" not in real.rankers["BERT-Tiny"]["ranker"]
    assert real.seeds == (10, 11, 12, 13, 14)
    assert not {*real.seeds} & {*real.development}


def test_advbert_is_trained_as_published() -> None:
    recipe = load_recipe("sampling-advbert")
    published = {
        "batch": 32, "learning_rate": 3e-5, "optimizer": "adam", "epsilon": 1e-5, "schedule": "constant", "warmup": 0.0,
        "clip": 1.0, "epochs": 2, "keep": "last",
    }  # fmt: skip
    assert {name: getattr(recipe.training, name) for name in published} == published
    for scale in ("tiny", "real", "full"):
        debias = SamplingStudy.settings_of(scale, Options()).debias
        own = {name: debias["training"][name] for name in published}
        # A relevant passage and another one in each of 32 lists, at real three others in each of 16: 64 pairs.
        smaller = {"batch": 32, "epochs": 2} if scale == "real" else {}
        assert {**own, "learning_rate": 3e-5, **smaller} == published
        assert debias["training"]["batch"] * (1 + debias["data"]["negatives"]) == 64
    adversary = SamplingStudy.settings_of("full", Options()).debias["adversary"]
    assert (adversary["factor"], adversary["weight"], adversary["attack"]) == (1.0, 1.0, True)


@pytest.mark.slow
def test_full_runs_on_stand_ins(done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale full; the authors' runs measured as they are: one that is not as printed is seen."""
    made = generate(SyntheticConfig(passages=800, queries=100, sentences=3, gender_rate=0.9)).write(tmp_path / "made")
    queries = read_queries(made / "queries.tsv")
    (made / "annotated.csv").write_text(
        "".join(f'{q},"{t}",n\n' for q, t in queries[40:70].iter_rows()), encoding="utf-8"
    )
    (made / "words.txt").write_text("he,m\nhis,m\nbrother,m\nshe,f\nher,f\nsister,f\n", encoding="utf-8")
    (made / "sensitive.tsv").write_text(
        "".join(f"{q}\t{t}\n" for q, t in queries[70:100].iter_rows()), encoding="utf-8"
    )
    parts = {"train/judged": queries[:20], "dev/2": queries[20:40], "dev/small": queries[40:]}
    qrels = read_qrels(made / "qrels.txt")
    monkeypatch.setattr(sampling, "msmarco", lambda names: Text(str(made / "collection.tsv"), parts[names[0]], qrels))
    monkeypatch.setattr(
        sampling, "read_qrels", lambda name: qrels if str(name).startswith("irds:") else read_qrels(name)
    )
    study_lists = sampling.Lists
    monkeypatch.setattr(
        sampling, "Lists", lambda _, *rest, **more: study_lists(str(made / "collection.tsv"), *rest, **more)
    )
    public = made / "bert_L2.run"
    files = {
        "queries-gender-annotated": made / "annotated.csv",
        "gender-representative": made / "words.txt",
        "queries-fairness-sensitive": made / "sensitive.tsv",
        "runs-dev": public,
    }
    monkeypatch.setattr("evenrank.fetch", lambda name, out: [files[name]])
    write_run(
        study_lists(str(made / "collection.tsv"), tmp_path / "first").searched(queries[70:100], 20).__next__(), public
    )
    encoder = done[0].data(0).encoder
    full = SamplingStudy.settings_of(
        "full", Options(model=tuple(f"{name}={encoder}" for name in ("BERT-base", "BERT-Tiny")))
    )
    rankers = {
        name: {**full.rankers[name], "training": {**full.rankers[name]["training"], **TRAINING, "precision": "float32"}}
        for name in ("BERT-base", "BERT-Tiny")
    }
    settings = replace(
        full,
        models=dict.fromkeys(rankers, "stand-in"),
        rankers=rankers,
        adversarial=("BERT-Tiny",),
        shares=(0.0, 0.6),
        depth=20,
        listed=20,
        negatives=5,
        validated=10,
    )
    figures = SamplingStudy(settings, tmp_path / "full").run(1)
    assert figures.mean("off print", "public runs") > 0.0005
    assert {"BERT-Tiny AdvBert", "BERT-base share 0.6"} <= set(figures.systems("MRR@10 on QS2"))
