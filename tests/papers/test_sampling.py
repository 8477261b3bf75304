"""The sampling experiment: its steps on small data, and its figures by a second way."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenrank.decide.frontier import sweep
from evenrank.files import Run, read_queries, read_run
from evenrank.files.tokens import tokenize
from evenrank.groups import Scoring, load_lexicon, score_in_memory
from evenrank.mitigation.negatives import Settings
from evenrank.mitigation.reorderings import METHODS
from evenrank.papers import sampling_paper, sampling_setup
from evenrank.papers.checks import Options
from evenrank.papers.paper_page import ExperimentPage, statements
from evenrank.papers.sampling_paper import _of_first
from evenrank.papers.untrained import STRENGTHS
from evenrank.training.recipes import load_recipe
from micro_experiments import check_controls, labels, micro_sampling, no_training_after, table

Lists = dict[str, list[str]]


@pytest.fixture(scope="module")
def sampling_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[ExperimentPage, Path]:
    folder = tmp_path_factory.mktemp("sampling")
    with no_training_after(sampling_setup.Experiment, micro_sampling(), folder):
        page = sampling_paper.run(micro_sampling(), folder)
    page.write(folder)
    return page, folder


def test_sampling_tables_are_laid_out_as_published(sampling_run: tuple[ExperimentPage, Path]) -> None:
    page, _ = sampling_run
    first, second, third = (table(page, f"Table {number}") for number in (1, 2, 3))
    assert [row.labels[0] for row in first.rows[:3]] == ["BERT-base", "DistilRoBERTa-base", "ELECTRA-base"]
    assert list(first.columns.values()) == ["original", "bias-aware", "change (%)"]
    assert first.rows[0].published["change_percent"] == pytest.approx(-2.84, abs=0.01)
    assert set(first.rows[0].measured) == set(first.columns)
    assert labels(second)[1][:3] == ("QS1", "BERT-base", "bias-aware")
    assert list(second.columns.values()) == [
        "MRR@10", "NFaiRR@10", "improvement (%)", "ARaB tf@10", "reduction (%)", "ARaB bool@10", "reduction (%)"
    ]  # fmt: skip
    assert set(second.rows[1].measured) == set(second.columns)
    assert set(second.rows[0].measured) == {"mrr_10", "nfairr_10", "arab_tf_10", "arab_bool_10"}
    assert [row[:2] for row in labels(third)[:3]] == [
        ("BERT-Tiny", "original"), ("BERT-Tiny", "AdvBert"), ("BERT-Tiny", "bias-aware")
    ]  # fmt: skip
    assert third.rows[1].measured["nfairr_10"].n == 10
    drawn = [drawing.name for drawing in page.drawings]
    assert drawn == [
        "Figure 1 (dev)", "Figure 1 (QS2)", "Figure 2 (BERT-Tiny)", "Figure 3", "Plane QS1", "Plane QS2",
        *(f"Rebalance {part} BERT-base {bias}@10" for part in ("QS1", "QS2") for bias in ("ARaB tf", "NFaiRR")),
    ]  # fmt: skip
    assert {"BERT-Tiny original", "BERT-Tiny AdvBert", "BERT-Tiny bias-aware", "BM25"} <= _points(page, "Figure 3")


def _points(page: ExperimentPage, name: str) -> set[str]:
    chart = next(drawing.specification for drawing in page.drawings if drawing.name == name)
    text = json.dumps(chart, ensure_ascii=False)
    return {part.split('"')[0] for part in text.split('"system": "')[1:]}


def test_seeds_of_development_and_of_the_report_are_on_the_page(sampling_run: tuple[ExperimentPage, Path]) -> None:
    facts = dict(sampling_run[0].facts)
    assert (facts["seeds"], facts["development seeds"]) == ("0, 1", "100, 101, 102")
    for settings in (sampling_setup.tiny(), sampling_setup.real(Options())):
        assert not {*settings.seeds} & {*settings.development}


def test_sampling_claims(sampling_run: tuple[ExperimentPage, Path]) -> None:
    page, _ = sampling_run
    keys = [claim.statement.key for claim in page.claims if claim.statement.paper == "sampling"]
    assert keys[:4] == ["nfairr", "arab_tf", "arab_bool", "mrr"]
    others = [claim.statement.key for claim in page.claims if claim.statement.paper == "advbert"]
    assert others == [*statements("advbert")]
    not_here = {"public_rows", "adv_arab_mini", "fairer_mini", "shares_drop"}
    assert {*keys} == {*statements("sampling")} - not_here
    # After fifteen training queries the ranker is below BM25: nothing that it fulfils counts.
    assert not any(claim.verdict.supported for claim in page.claims)
    assert any("below the first stage" in warning for warning in page.warnings)


def test_controls_stand_in_every_table_of_rankings(sampling_run: tuple[ExperimentPage, Path]) -> None:
    for name in ("Table 1", "Table 2", "Table 3"):
        check_controls(table(sampling_run[0], name))


# --- a second way to the figures -------------------------------------------------------------------------------------


def _lists(path: Path) -> Lists:
    """A run file's documents, by falling score, ties by falling id."""
    rows: dict[str, list[tuple[float, str]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        query, _, doc, _, score, _ = line.split()
        rows.setdefault(query, []).append((float(score), doc))
    return {query: [doc for _, doc in sorted(found, reverse=True)] for query, found in rows.items()}


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
        total = 0.0
        for rank in range(1, min(10, len(docs)) + 1):
            total += sum(lean[:rank]) / rank
        return total / min(10, len(docs))

    def neutrality(self, doc: str) -> float:
        m, f = self.counts[doc]
        return 1.0 if m + f <= 1 else 1 - abs(m / (m + f) - 0.5) - abs(f / (m + f) - 0.5)

    def nfairr(self, docs: list[str], background: list[str]) -> float:
        best = sorted(map(self.neutrality, background), reverse=True)
        gain = [sum(one / math.log2(2 + i) for i, one in enumerate(values[:10])) for values in
                ([self.neutrality(doc) for doc in docs], best)]  # fmt: skip
        return gain[0] / gain[1]


@pytest.mark.parametrize(("training", "kept"), [("original", "share-0"), ("bias-aware", "share-0.6")])
def test_bias_of_a_row_by_plain_loops(sampling_run: tuple[ExperimentPage, Path], training: str, kept: str) -> None:
    page, folder = sampling_run
    found: dict[str, list[float]] = {"nfairr_10": [], "arab_tf_10": [], "arab_bool_10": []}
    for seed in (0, 1):
        words = Words(folder / f"data-{seed}" / "collection.tsv")
        back = _lists(folder / f"data-{seed}" / "dev.run")
        ranked = _lists(folder / f"seed-{seed}" / f"BERT-base-{kept}" / "dev.run")
        assert len(ranked) == 40
        found["nfairr_10"].append(float(np.mean([words.nfairr(docs, back[query]) for query, docs in ranked.items()])))
        for kind in ("tf", "bool"):
            lean = [words.arab(docs, kind) for docs in ranked.values()]
            found[f"arab_{kind}_10"].append(float(np.mean(lean)))
    row = next(row for row in table(page, "Table 2").rows if row.labels[:3] == ("QS1", "BERT-base", training))
    for measure, values in found.items():
        assert row.measured[measure].mean == pytest.approx(np.mean(values), abs=1e-9)


def test_reorderings_stand_beside_the_trained_rows(sampling_run: tuple[ExperimentPage, Path]) -> None:
    page, _ = sampling_run
    found, second = table(page, "Rebalance"), table(page, "Table 2")
    assert len(found.rows) == 2 * (1 + len(METHODS) * len(STRENGTHS))
    for part in ("QS1", "QS2"):
        own = next(row for row in found.rows if row.labels == (part, "BERT-base", "original", "0"))
        original = next(row for row in second.rows if row.labels[:3] == (part, "BERT-base", "original"))
        assert {key: value.mean for key, value in own.measured.items()} == {
            key: pytest.approx(value.mean) for key, value in original.measured.items()
        }
    beside = labels(table(page, "Rebalance against trained"))
    assert [(row[0], *row[2:4]) for row in beside if row[2] != "blind"] == [
        (part, trained, bias)
        for part, trained in (("QS1", "bias-aware"), ("QS2", "bias-aware"), ("QS2, one seed", "AdvBert"))
        for bias in ("|ARaB tf@10|", "NFaiRR@10")
    ]
    (claim,) = [one for one in page.claims if one.statement.key == "rebalance"]
    assert "BERT-Tiny AdvBert at its NFaiRR@10" in claim.detail
    assert "blind" not in claim.detail


@pytest.mark.parametrize("method", ["shift", "detconstsort"])
def test_a_reordered_row_by_plain_loops(sampling_run: tuple[ExperimentPage, Path], method: str) -> None:
    """From the kept runs of the ranker with random negatives: those of another one have other figures."""
    page, folder = sampling_run
    found: dict[str, list[float]] = {"nfairr_10": [], "arab_tf_10": []}
    for seed in (0, 1):
        home, kept = folder / f"data-{seed}", folder / f"seed-{seed}" / "BERT-base-share-0"
        texts = read_queries(home / "collection.tsv").rename({"query_id": "doc_id"})
        scores = score_in_memory(texts, Scoring(load_lexicon()))
        run, learn = read_run(kept / "dev.run"), read_run(kept / "validation.run")
        ranked = _ranked(sweep(run, scores, [method], [0.5], learn=learn)[method, 0.5])
        words, back = Words(home / "collection.tsv"), _lists(home / "dev.run")
        found["nfairr_10"].append(float(np.mean([words.nfairr(docs, back[query]) for query, docs in ranked.items()])))
        found["arab_tf_10"].append(float(np.mean([words.arab(docs, "tf") for docs in ranked.values()])))
    key = ("QS1", "BERT-base", method)
    row = next(
        row for row in table(page, "Rebalance").rows if row.labels[:3] == key and row.labels[3].split()[0] == "0.5"
    )
    for measure, values in found.items():
        assert row.measured[measure].mean == pytest.approx(np.mean(values), abs=1e-9)


def _ranked(run: Run) -> Lists:
    found: Lists = {}
    for query, doc in run.table.sort("query_id", "rank").select("query_id", "doc_id").iter_rows():
        found.setdefault(query, []).append(doc)
    return found


def test_the_first_seed_alone_has_the_other_shares_and_advbert(tmp_path: Path) -> None:
    class Named(sampling_setup.Experiment):
        def ranker(self, seed: int, name: str, share: float) -> Any:
            return f"{seed} {share:g}"

        def adversarial(self, seed: int, name: str) -> Any:
            return f"{seed} AdvBert"

    experiment = Named(replace(micro_sampling(), seeds=(3, 4), shares=(0.0, 0.2, 0.6, 1.0)), tmp_path)
    assert _of_first(experiment) == {
        "BERT-base": {"original": "3 0", "share 0.2": "3 0.2", "share 1": "3 1"},
        "BERT-Tiny": {"original": "3 0", "AdvBert": "3 AdvBert"},
    }


# --- β ---------------------------------------------------------------------------------------------------------------


def _biased_have_the_largest_beta(folder: Path) -> bool:
    """The first three negatives of every list of share 0.6 have the largest |tf| of the candidates."""
    words = Words(folder / "data-0" / "collection.tsv")
    beta = {doc: abs(math.log(1 + m) - math.log(1 + f)) for doc, (m, f) in words.counts.items()}
    candidates: Lists = {}
    for share in ("0", "0.6"):
        for row in pl.read_parquet(folder / "seed-0" / f"negatives-{share}.parquet").iter_rows(named=True):
            docs = [doc for doc, label in zip(row["doc_id"], row["label"], strict=True) if not label]
            candidates.setdefault(row["query_id"], []).extend(docs)
            if share == "0.6" and min(beta[doc] for doc in docs[:3]) < max(
                beta[doc] for doc in {*candidates[row["query_id"]]} - {*docs[:3]}
            ) - 1e-9:  # fmt: skip
                return False
    return True


def test_biased_negatives_are_the_most_gendered(sampling_run: tuple[ExperimentPage, Path]) -> None:
    folder = sampling_run[1]
    manifest = json.loads((folder / "seed-0" / "negatives-0.6.parquet.manifest.json").read_text(encoding="utf-8"))
    assert manifest["biased"] == 3 * manifest["queries"]
    assert manifest["mean_beta"]["biased"] > manifest["mean_beta"]["candidates"]
    assert _biased_have_the_largest_beta(folder)
    assert not list(folder.rglob("train.run"))


@pytest.fixture
def beta_ignored(monkeypatch: pytest.MonkeyPatch) -> sampling_setup.Settings:
    monkeypatch.setattr(Settings, "quota", property(lambda _: 0))
    return replace(micro_sampling(), seeds=(0,))


def test_mutant_beta_ignored(beta_ignored: sampling_setup.Settings, tmp_path: Path) -> None:
    experiment = sampling_setup.Experiment(beta_ignored, tmp_path)
    random, biased = (pl.read_parquet(experiment.negatives(0, share)) for share in (0.0, 0.6))
    assert random.drop("group", strict=False).equals(biased.drop("group", strict=False))
    assert not _biased_have_the_largest_beta(tmp_path)


@pytest.mark.slow
def test_mutant_beta_ignored_improves_nothing(beta_ignored: sampling_setup.Settings, tmp_path: Path) -> None:
    page = sampling_paper.run(beta_ignored, tmp_path)
    row = next(row for row in table(page, "Table 2").rows if row.labels[:3] == ("QS1", "BERT-base", "bias-aware"))
    assert row.measured["nfairr_improvement"].mean == pytest.approx(0, abs=1e-9)
    assert row.labels[3] == "–"


# --- the published settings ------------------------------------------------------------------------------------------


def test_full_settings_are_the_published_ones() -> None:
    full = sampling_setup.full()
    assert (full.negatives, full.depth, full.share, full.shares) == (20, 1000, 0.6, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
    assert {**full.rankers, **full.small_rankers} == {
        "BERT-base": "bert-base-uncased",
        "DistilRoBERTa-base": "distilroberta-base",
        "ELECTRA-base": "google/electra-base-discriminator",
        "BERT-Tiny": "google/bert_uncased_L-2_H-128_A-2",
        "BERT-Mini": "google/bert_uncased_L-4_H-256_A-4",
    }
    assert full.ranker["kind"] == "cat"
    named = {"learning_rate": 2e-5, "batch": 2, "epochs": 1, "warmup": 0.1, "weight_decay": 0.0, "schedule": "linear"}
    assert {name: full.training[name] for name in named} == named
    assert full.loss == "bce"
    note = next(one for one in sampling_paper._notes(full, Scoring(load_lexicon())) if "sentence-transformers" in one)
    for part in (
        "bce",
        "rate 2e-05",
        "1 epoch",
        "2 lists of 21",
        "32 pairs of any queries",
        "10% of all",
    ):
        assert part in note
    assert full.ranker["query_length"] + full.ranker["passage_length"] == 512  # type: ignore[operator]
    assert (full.sizes, full.planted, full.options) == ({"train": 0}, None, None)
    assert full.tokens == "whitespace"


def test_advbert_is_trained_as_published() -> None:
    recipe = load_recipe("sampling-advbert")
    published = {
        "batch": 32, "learning_rate": 3e-5, "optimizer": "adam", "epsilon": 1e-5, "schedule": "constant", "warmup": 0.0,
        "clip": 1.0, "epochs": 2, "keep": "last",
    }  # fmt: skip
    full = sampling_setup.full()
    assert {name: getattr(recipe.training, name) for name in published} == published
    assert {name: full.debias[name] for name in published} == published
    # A relevant passage and another one in each of 32 lists: 64 pairs.
    assert (full.debias_negatives, recipe.data.negatives) == (1, 1)
    assert (full.adversary["factor"], full.adversary["weight"], full.adversary["attack"]) == (1.0, 1.0, True)
    for small in (sampling_setup.tiny(), sampling_setup.real(Options())):
        own = {name: value for name, value in small.debias.items() if name != "learning_rates"}
        assert {**own, "learning_rate": 3e-5} == published
        assert small.debias_negatives == 1


def test_notes_say_what_was_tried() -> None:
    """The tries of AdvBert at tiny, and that nothing was chosen on other data at real."""
    scoring = Scoring(load_lexicon())
    tiny = " ".join(sampling_paper._notes(sampling_setup.tiny(), scoring))
    for part in ("seeds 100, 101, 102", "3e-4 (.972 after)", "1e-3 (.957)", "3e-3 (.818", "(.700"):
        assert part in tiny
    real = sampling_setup.real(Options())
    assert real.development == ()
    said = " ".join(sampling_paper._notes(real, scoring))
    assert "No setting was chosen by a measure on development data" in said
    assert "does not show that it never learns" in said


@pytest.mark.parametrize(
    ("scale", "read"), [("tiny", {*()}), ("real", {"squad", "grepbiasir", "encoder"}), ("full", {*()})]
)
def test_options_that_a_scale_does_not_read(
    scale: str, read: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("evenrank.papers.checks.model_bytes", lambda _: 1)
    given = Options(squad=("squad.json",), grepbiasir="grep", encoder="model", vectors="vectors.txt")
    needs = sampling_setup.needs(sampling_setup.settings_of(scale, given), tmp_path)
    needless = {need.name for need in needs if need.problem and "not used" in need.problem}
    assert needless == {"squad", "grepbiasir", "encoder", "vectors"} - read


def test_options_that_are_not_read_are_no_settings(sampling_run: tuple[ExperimentPage, Path]) -> None:
    """A folder begun before is one of the same settings."""
    kept = json.loads((sampling_run[1] / "settings.json").read_text(encoding="utf-8"))
    assert not {"given", "seeds", "development", "strengths"} & {*kept}


def test_needs_and_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.papers.checks.model_bytes", lambda _: 1)
    assert sampling_setup.needs(sampling_setup.settings_of("tiny", Options()), tmp_path) == []
    named = {need.name for need in sampling_setup.needs(sampling_setup.settings_of("full", Options()), tmp_path)}
    assert {"gender-representative", "runs-dev", "queries-fairness-sensitive", "bert-base-uncased"} <= named
    assert "irds:msmarco-passage/dev/small" in named
    lacking = sampling_setup.needs(sampling_setup.settings_of("real", Options(squad=("none.json",))), tmp_path)
    assert any(need.problem and "none.json" in need.problem for need in lacking)
    assert sampling_setup.cost(sampling_setup.full()).trainings == 5 * 3 + 4 + 2
    assert sampling_setup.cost(sampling_setup.tiny()).trainings == 5 * 3 + 4 + 1
