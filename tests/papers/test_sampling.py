"""The study sampling: its steps on a small collection, its settings, and mutants that change verdicts."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import slow
from evenrank.files import read_qrels, read_queries, read_run, write_run
from evenrank.files.tokens import tokenize
from evenrank.groups import load_lexicon
from evenrank.mitigation.negatives import NegativeSettings
from evenrank.papers import sampling
from evenrank.papers.checks import Options
from evenrank.papers.claims import claims_of, published_rows
from evenrank.papers.figures import Figures
from evenrank.papers.report import ExperimentPage, page_of
from evenrank.papers.sampling import SamplingStudy
from evenrank.papers.sources import Lists, Text
from micro_studies import TRAINING, micro_sampling, rows, written

WORKS = {
    "table1", "nfairr_qs1", "nfairr_qs2", "arab_qs1", "arab_qs2", "no_cost_qs1", "no_cost_qs2", "tiny_fair",
    "tiny_arab", "fairer", "over_adv", "adv_cost", "adversary",
}  # fmt: skip

pytest.importorskip("torch", reason="PyTorch is not installed")
Done = tuple[SamplingStudy, Figures, ExperimentPage]


def verdicts(figures: Figures) -> dict[str, str]:
    models = {"BERT-base": "large", "BERT-Tiny": "small"}
    return {one.key: one.decided(figures, models, "tiny").verdict.state for one in claims_of("sampling")}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A run of one seed: some seconds."""
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


Counts = dict[str, tuple[int, int]]


@cache
def counted(collection: Path) -> Counts:
    """Male and female words of each document, by a loop over its tokens."""
    entries, found = load_lexicon().entries("word"), {}
    longest = max(map(len, entries))
    for line in collection.read_text(encoding="utf-8").splitlines():
        doc, text = line.split("\t", 1)
        tokens, counts, place = tokenize(text), {"m": 0, "f": 0}, 0
        while place < len(tokens):
            for size in range(longest, 0, -1):
                group = entries.get(tuple(tokens[place : place + size]))
                if group:
                    counts[group] += 1
                    place += size - 1
                    break
            place += 1
        found[doc] = counts["m"], counts["f"]
    return found


def slow_bias(counts: Counts, docs: list[str], background: list[str]) -> dict[str, float]:
    """The bias of a list at 10."""

    def gain(of: list[float]) -> float:
        return slow.fairr(of, 10)

    neutral, best = ([slow.neutrality([*counts[doc]], [0.5, 0.5], 1) for doc in of] for of in (docs, background))
    tf, any_ = ([weight(m) - weight(f) for m, f in map(counts.get, docs)] for weight in (math.log1p, bool))
    found = {"NFaiRR@10": gain(neutral) / gain(sorted(best, reverse=True))}
    return found | {"ARaB tf@10": slow.arab(tf, 10), "ARaB bool@10": slow.arab(any_, 10)}


def lists(path: Path | str) -> dict[str, list[str]]:
    """A run file's documents by query."""
    return {query: [doc for doc, _ in ranked] for query, ranked in slow.rankings(read_run(path)).items()}


@pytest.mark.parametrize("arm", ["random", "bias-aware"])
def test_the_bias_of_a_row_by_plain_loops(done: Done, arm: str) -> None:
    study, figures, _ = done
    found = []
    for seed in (0, 1):
        counts, back = counted(study.folder / f"data-{seed}/collection.tsv"), lists(study.data(seed).parts["QS1"].run)
        ranked = lists(study.home(seed) / f"BERT-base-{arm}" / "QS1.run")
        assert len(ranked) == 40
        found += [slow_bias(counts, docs, back[query]) for query, docs in ranked.items()]
    for name in found[0]:
        mean = np.mean([one[name] for one in found])
        assert figures.mean(f"{name} on QS1", f"BERT-base {arm}") == pytest.approx(mean, abs=1e-9)


def _biased_have_the_largest_beta(study: SamplingStudy) -> bool:
    counts = counted(study.folder / "data-0/collection.tsv")

    def betas(docs: list[str]) -> list[float]:
        return sorted((abs(math.log1p(counts[doc][0]) - math.log1p(counts[doc][1])) for doc in docs), reverse=True)[:3]

    drawn, run = pl.read_parquet(study.negatives(0, 0, 0.6)), lists(study.data(0).parts["train"].run)
    for query, docs, labels in drawn.select("query_id", "doc_id", "label").iter_rows():
        relevant = {doc for doc, label in zip(docs, labels, strict=True) if label}
        negatives, free = ([doc for doc in of if doc not in relevant] for of in (docs, run[query]))
        if betas(negatives) != pytest.approx(betas(free)):
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
    study = SamplingStudy(micro_sampling(), tmp_path)
    random, biased = (pl.read_parquet(study.negatives(0, 0, share)) for share in (0.0, 0.6))
    assert random.drop("group", strict=False).equals(biased.drop("group", strict=False))
    assert not _biased_have_the_largest_beta(study)


def test_reordered_rows_are_of_the_untouched_rankers_runs(done: Done) -> None:
    study, figures, _ = done
    run, data = study.home(0) / "BERT-base-random/QS1.run", study.data(0)
    docs = {query: sorted(one) for query, one in lists(run).items()}
    for reordered in study._reordered(read_run(run), data.parts["QS1"], "BERT-base", data).values():
        assert dict(reordered.table.group_by("query_id").agg(pl.col("doc_id").sort()).iter_rows()) == docs
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
    means |= {row: means[row] | one for name, one in changed.items() for row in [name.replace("_", "-")]}
    rng = np.random.default_rng(0)
    found, ids, models = Figures(True), [str(one) for one in range(300)], ("BERT-base", "BERT-Tiny")
    for row, values in means.items():
        for model, seed, (measure, mean), part in product(models, range(5), values.items(), ("dev", "QS1", "QS2")):
            name = row if row == "BM25" else f"{model} {row}"
            found.add(f"{measure} on {part}", name, seed, ids, mean + rng.normal(0, 0.05, 300))
    for when, accuracy in (("random", 0.9), ("AdvBert", 0.7)):
        for seed in range(5):
            found.add("attack", f"BERT-Tiny {when}", seed, ["d"], np.array([accuracy + 0.01 * seed]), "trainings")
    sampling._fairer(found, "BERT-Tiny bias-aware", "BERT-Tiny AdvBert")
    return found


def state(figures: Figures, key: str) -> str:
    """The verdict on a claim."""
    (claim,) = [one for one in claims_of("sampling") if one.key == key]
    return claim.decided(figures, {"BERT-base": "large", "BERT-Tiny": "small"}, "tiny").verdict.state


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
    assert [state(figures, refuted) for figures in (rankers(), rankers(**changed))] == ["supported", "not supported"]


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


@pytest.mark.parametrize("scale", ["tiny", "real", "full"])
def test_advbert_is_trained_as_published(scale: str) -> None:
    published = {
        "batch": 32, "learning_rate": 3e-5, "optimizer": "adam", "epsilon": 1e-5, "schedule": "constant", "warmup": 0.0,
        "clip": 1.0, "epochs": 2, "keep": "last",
    }  # fmt: skip
    debias = SamplingStudy.settings_of(scale, Options()).debias
    own = {name: debias["training"][name] for name in published}
    # A relevant passage and another one in each of 32 lists, at real three others in each of 16: 64 pairs.
    smaller = {"batch": 32, "epochs": 2} if scale == "real" else {}
    assert {**own, "learning_rate": 3e-5, **smaller} == published
    assert debias["training"]["batch"] * (1 + debias["data"]["negatives"]) == 64
    if scale == "full":
        adversary = debias["adversary"]
        assert (adversary["factor"], adversary["weight"], adversary["attack"]) == (1.0, 1.0, True)
        assert debias["training"]["learning_rate"] == 3e-5


@pytest.mark.slow
def test_full_runs_on_stand_ins(done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale full; the authors' runs measured as they are: one that is not as printed is seen."""
    made = written(tmp_path / "made", slice(40, 70))
    collection, queries = str(made / "collection.tsv"), read_queries(made / "queries.tsv")
    qrels = read_qrels(made / "qrels.txt")
    sensitive = "".join(f"{q}\t{t}\n" for q, t in queries[70:100].iter_rows())
    (made / "sensitive.tsv").write_text(sensitive, encoding="utf-8")
    parts = {"train/judged": queries[:20], "dev/2": queries[20:40], "dev/small": queries[40:]}
    monkeypatch.setattr(sampling, "msmarco", lambda names: Text(collection, parts[names[0]], qrels))
    monkeypatch.setattr(
        sampling, "read_qrels", lambda name: qrels if str(name).startswith("irds:") else read_qrels(name)
    )
    monkeypatch.setattr(sampling, "Lists", lambda _, *rest, **more: Lists(collection, *rest, **more))
    files = {"queries-gender-annotated": "annotated.csv", "gender-representative": "words.txt"}
    files |= {"queries-fairness-sensitive": "sensitive.tsv", "runs-dev": "bert_L2.run"}
    monkeypatch.setattr("evenrank.fetch", lambda name, out: [made / files[name]])
    write_run(next(Lists(collection, tmp_path / "first").searched(queries[70:100], 20)), made / "bert_L2.run")
    small = ("BERT-base", "BERT-Tiny")
    encoder = done[0].data(0).encoder
    full = SamplingStudy.settings_of("full", Options(model=tuple(f"{name}={encoder}" for name in small)))
    training = {**TRAINING, "precision": "float32"}
    rankers = {
        name: {**full.rankers[name], "training": {**full.rankers[name]["training"], **training}} for name in small
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


def test_the_claims_hold_where_they_hold() -> None:
    found = verdicts(rankers())
    assert {key for key, state in found.items() if state == "supported"} == WORKS
    assert found["tiny_drop"] == "not supported"
    assert found["mini_mrr"] == "undecided"
    # A lean to the other side that is smaller is a reduction.
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
