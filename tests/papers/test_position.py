"""The position experiment: every step of tiny on small data, and its figures a second way."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evenrank.files import scan_collection
from evenrank.papers import position_paper, work
from evenrank.papers.paper_page import ExperimentPage, statements
from evenrank.papers.position_setup import BIASED, DEBIASED, ORIGINAL, OTHER, settings_of

pytest.importorskip("torch", reason="PyTorch is not installed")

from evenrank.models.stored import find_model, load_kernel_ranker
from evenrank.models.word_rankers import words
from evenrank.papers.position_setup import Experiment
from evenrank.training.choice import Validation
from micro_experiments import no_training_after, table
from micro_position import micro_position

Done = tuple[ExperimentPage, Path]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("position")
    settings = micro_position()
    with no_training_after(Experiment, settings, folder):
        page = position_paper.run(settings, folder)
    page.write(folder)
    return page, folder


def test_tk_starts_with_the_words_of_both_collections(done: Done) -> None:
    """Otherwise what is transferred could not read the second one."""
    experiment = Experiment(micro_position(), done[1])
    start = done[1] / "seed-0" / "TK-start"
    known = {*load_kernel_ranker(find_model(str(start))).vocabulary}
    for name in (BIASED, OTHER):
        texts = scan_collection(experiment.of(0, name).texts[ORIGINAL], unique=False)
        counts = Counter(word for batch in texts for text in batch["text"] for word in words(text))
        assert {word for word, count in counts.items() if count >= 5} <= known
    of = {
        name: experiment.ranker(0, "TK", *name).folder / "recipe.toml"
        for name in ((BIASED, DEBIASED), (OTHER, ORIGINAL))
    }
    assert all(f'model = "{start}"' in recipe.read_text(encoding="utf-8") for recipe in of.values())


def test_lists_are_ranked_in_pieces_with_the_same_result(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    """MS MARCO's test lists do not fit into memory."""
    experiment = Experiment(micro_position(), done[1])
    trained = experiment.ranker(0, "TK", BIASED, ORIGINAL)
    part, kept = experiment.of(0, BIASED).parts["test"], trained.folder / "pieces.run"
    steps: list[int] = []
    whole = Validation.reranked
    monkeypatch.setattr(work, "PAIRS_AT_ONCE", 12)
    monkeypatch.setattr(Validation, "reranked", lambda *given: steps.append(1) or whole(*given))
    depth = int(trained.result["depth"])
    pieces = experiment.work(0, BIASED, ORIGINAL).rank(trained, "pieces", part, depth=depth)
    kept.unlink()
    assert len(steps) > 2
    expected = experiment.ranked(trained, 0, BIASED, ORIGINAL).table
    assert pieces.table.select("query_id", "doc_id", "rank").equals(expected.select("query_id", "doc_id", "rank"))


def test_tables_are_laid_out_as_published(done: Done) -> None:
    page, folder = done
    first = table(page, "Table 1")
    assert [value.mean for value in first.rows[0].measured.values()] == [400, 30, 5, 15]
    assert first.rows[1].published["documents"] == 20239
    second = table(page, "Table 2")
    assert [row.labels[0] for row in second.rows[:3]] == [ORIGINAL, DEBIASED, "untrained"]
    assert second.rows[0].published == {
        "msmarco_mats": 0.176,
        "msmarco_sd": 0.046,
        "squad_mats": 0.056,
        "squad_sd": 0.014,
    }
    assert not second.rows[2].published
    assert second.rows[2].measured["squad_mats"].n == 2
    assert "original: cosine of different terms" in [row.labels[0] for row in second.rows]
    third = table(page, "Table 3")
    assert [row.labels for row in third.rows] == [
        (model, training) for model in ("BERT_CAT", "BERT_DOT", "TK") for training in (ORIGINAL, DEBIASED)
    ] + [("BM25", ""), ("random", "")]
    assert list(third.columns) == [
        "ndcg_orig", "ndcg_deb", "ndcg_change", "mrr_orig", "mrr_deb", "mrr_change",
        "recall_orig", "recall_deb", "recall_change", "change_of_original",
    ]  # fmt: skip
    assert not third.rows[0].measured
    assert third.rows[4].measured["ndcg_orig"].n == 2
    # BM25 does not see the order of words.
    assert third.rows[6].measured["ndcg_change"].mean == 0
    assert table(page, "Table 4").rows[4].published["ndcg_orig"] == 0.846
    fifth = table(page, "Table 5")
    assert [row.labels[2] for row in fifth.rows] == list("abc") * 3
    assert set(fifth.rows[-1].measured) == {"ndcg", "mrr", "recall"}
    assert [drawing.name for drawing in page.drawings][-2:] == ["Figure 2", "Plane"]
    assert f"Figure 1 ({BIASED}, {DEBIASED})" in [drawing.name for drawing in page.drawings]
    assert json.loads((folder / "results.json").read_text(encoding="utf-8"))["experiment"] == "position"


def test_published_changes_are_those_of_the_printed_figures(done: Done) -> None:
    row = table(done[0], "Table 3").rows[4]
    assert row.labels == ("TK", ORIGINAL)
    assert row.published["ndcg_change"] == pytest.approx(100 * (0.307 - 0.371) / 0.307)
    assert row.published["mrr_change"] == pytest.approx(100 * (0.254 - 0.312) / 0.254)
    assert row.published["recall_change"] == pytest.approx(100 * (0.484 - 0.567) / 0.484)


def test_the_page_lists_seeds_and_claims(done: Done) -> None:
    page = done[0]
    facts = dict(page.facts)
    assert facts["development seeds"] == "100, 101"
    assert "2 (0, 1)" in facts.values()
    notes = " ".join(page.notes)
    assert "the settings on other data (seeds 100, 101)" in notes
    assert "this margin was set after looking at development data" in notes
    keys = [claim.statement.key for claim in page.claims]
    assert len(set(keys)) == len(keys)
    assert {"answers_early", "mats", "drop_tk", "equivalent_tk", "better_tk", "loss_tk", "transfer_tk"} <= set(keys)
    # Untrained rankers must not fulfil the lines that have to be reached.
    assert not any(one.verdict.supported for one in page.claims if one.statement.key.startswith("equivalent"))


def test_every_statement_is_made_at_some_scale() -> None:
    source = Path(position_paper.__file__).read_text(encoding="utf-8")
    for key in statements("position"):
        stem = key.removesuffix("_cat").removesuffix("_dot").removesuffix("_tk")
        assert f'"{key}"' in source or f'f"{stem}_' in source, key


def test_a_rotated_collection_has_the_same_words(done: Done) -> None:
    texts = [
        [sorted(text.split()) for batch in scan_collection(done[1] / "biased-0" / name) for text in batch["text"]]
        for name in ("collection.tsv", "rotated.tsv")
    ]
    assert texts[0] == texts[1]


def test_the_collections_share_no_topic_and_the_parts_no_entity(done: Done) -> None:
    import polars as pl

    truth = [pl.read_parquet(done[1] / f"{name}-0" / "truth.parquet") for name in ("biased", "other")]
    assert not set(truth[0]["topic"]) & set(truth[1]["topic"])
    judged = pl.read_csv(
        done[1] / "biased-0" / "qrels.txt", has_header=False, separator=" ", schema_overrides=[pl.String] * 4
    )
    entity = dict(truth[0].select("doc_id", "entity").iter_rows())
    asked = {query: entity[document] for query, _, document, _ in judged.iter_rows()}
    parts = {
        part: {asked[line.split("\t")[0]] for line in lines_of(done[1] / "biased-0" / f"{part}.queries.tsv")}
        for part in ("train", "valid", "test")
    }
    assert not parts["train"] & parts["test"]
    assert not parts["valid"] & parts["test"]


# --- a second way: slow, from the kept files ---


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def slow_ndcg(run: Path, qrels: Path) -> float:
    """nDCG@10 of a run file, query by query."""
    relevant: dict[str, set[str]] = {}
    for line in qrels.read_text(encoding="utf-8").splitlines():
        query, _, document, grade = line.split()
        if int(grade) > 0:
            relevant.setdefault(query, set()).add(document)
    ranked: dict[str, list[tuple[float, str]]] = {}
    for line in run.read_text(encoding="utf-8").splitlines():
        query, _, document, _, score, _ = line.split()
        ranked.setdefault(query, []).append((-float(score), document))
    values = []
    for query, wanted in relevant.items():
        order = [document for _, document in sorted(ranked.get(query, []))][:10]
        gain = sum(1 / math.log2(place + 2) for place, document in enumerate(order) if document in wanted)
        values.append(gain / sum(1 / math.log2(place + 2) for place in range(min(10, len(wanted)))))
    return float(np.mean(values))


@pytest.mark.parametrize(("title", "name"), [("Table 3", "biased"), ("Table 4", "other")])
@pytest.mark.parametrize("training", [ORIGINAL, DEBIASED])
def test_a_rows_figures_a_second_way(done: Done, title: str, name: str, training: str) -> None:
    page, folder = done
    row = next(row for row in table(page, title).rows if row.labels == ("TK", training))
    means = {}
    for version in (ORIGINAL, DEBIASED):
        runs = [folder / f"seed-{seed}" / f"TK-{name}-{training}" / f"test-{name}-{version}.run" for seed in (0, 1)]
        means[version] = [slow_ndcg(run, folder / f"{name}-{seed}" / "test.qrels") for seed, run in enumerate(runs)]
    assert row.measured["ndcg_orig"].mean == pytest.approx(np.mean(means[ORIGINAL]))
    assert row.measured["ndcg_deb"].mean == pytest.approx(np.mean(means[DEBIASED]))
    changes = [100 * (b - a) / b for a, b in zip(means[ORIGINAL], means[DEBIASED], strict=True)]
    assert row.measured["ndcg_change"].mean == pytest.approx(np.mean(changes))
    changes = [100 * (b - a) / a for a, b in zip(means[ORIGINAL], means[DEBIASED], strict=True)]
    assert row.measured["change_of_original"].mean == pytest.approx(np.mean(changes))


@pytest.mark.parametrize(
    ("letter", "origin"), [("a", ""), ("b", "-from-biased-original"), ("c", "-from-biased-debiased")]
)
def test_a_transfers_figures_a_second_way(done: Done, letter: str, origin: str) -> None:
    page, folder = done
    row = next(row for row in table(page, "Table 5").rows if row.labels[0] == "TK" and row.labels[2] == letter)
    runs = [folder / f"seed-{seed}" / f"TK-other-original{origin}" / "test-other-original.run" for seed in (0, 1)]
    means = [slow_ndcg(run, folder / f"other-{seed}" / "test.qrels") for seed, run in enumerate(runs)]
    assert row.measured["ndcg"].mean == pytest.approx(np.mean(means))
    assert row.published["ndcg"] == {"a": 0.846, "b": 0.854, "c": 0.857}[letter]


def test_tinys_collections_are_apart() -> None:
    from evenrank.papers.checks import Options

    planted = settings_of("tiny", Options(encoder="none")).planted
    assert planted is not None
    assert not set(planted[BIASED].kinds) & set(planted[OTHER].kinds)
    assert planted[BIASED].seed != planted[OTHER].seed
