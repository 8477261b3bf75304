"""The study position: its steps on small collections, its figures a second way, mistakes that it must not survive."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slow
from evenrank.files import (
    EvenrankError,
    Run,
    read_qrels,
    read_queries,
    read_run,
    read_texts,
    write_run,
)
from evenrank.papers import position
from evenrank.papers.checks import Options
from evenrank.papers.claims import claims_of
from evenrank.papers.figures import Figures, ratio_values
from evenrank.papers.position import (
    BIASED,
    MEASURES,
    ORIGINAL,
    OTHER,
    ROTATED,
    VERSIONS,
    PositionStudy,
    by_passage,
    of_own_article,
)
from evenrank.papers.report import ExperimentPage, page_of
from evenrank.papers.sources import Part, write_qrels, write_queries
from micro_studies import micro_position, rows
from ranker_factories import predictor
from tiny_models import WORDS

pytest.importorskip("torch", reason="PyTorch is not installed")
from evenrank.models.load import load_ranker
from evenrank.papers.encoder import SmallBert, make_encoder

Done = tuple[PositionStudy, Figures, ExperimentPage]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("position")
    text = ["which year was the old building made in", "who sails the ship"]
    encoder = make_encoder(text, folder / "encoder", SmallBert(layers=1, hidden=16, feed_forward=16), 0)
    study = PositionStudy(micro_position(str(encoder)), folder / "run")
    figures = study.run(1)
    page = page_of(study, figures)
    page.write(study.folder)
    return study, figures, page


# --- the steps ---


def test_tables_are_laid_out_as_published(done: Done) -> None:
    page = done[2]
    assert {name: value.mean for name, value in rows(page, "Table 1")[BIASED].measured.items()} == {
        "documents": 400, "train queries": 20, "validation queries": 4, "test queries": 8,
    }  # fmt: skip
    second = rows(page, "Table 2")
    assert [*second][:2] == ["TK original", "TK rotated"]
    assert second["TK original"].published["MATS on MS MARCO"] == 0.176
    assert second["TK untrained"].measured["MATS on SQuAD"].n == 2
    third = rows(page, "Table 3")
    assert third["BERT_CAT original, original test"].measured == {}
    assert third["TK original, rotated test"].published["nDCG@10 on MS MARCO"] == 0.307
    changes = rows(page, "Table 3, Δ")["TK original"]
    assert changes.published["Δ nDCG@10 on MS MARCO, %"] == pytest.approx(100 * (0.307 - 0.371) / 0.307, abs=0.05)
    fifth = rows(page, "Table 5")
    assert fifth["TK rotated MS MARCO first"].published["nDCG@10 on SQuAD"] == 0.857
    assert set(fifth["TK SQuAD alone"].measured) == {f"{name} on SQuAD" for name in MEASURES}
    assert fifth["TK SQuAD alone"].here == done[0].settings.models["TK"]


def test_transfer_and_test_are_of_their_version(done: Done) -> None:
    study, version = done[0], ROTATED
    transferred = study.folder / "seed-0" / f"TK-other-{version}-MS-MARCO-first"
    recipe = tomllib.loads((transferred / "recipe.toml").read_text(encoding="utf-8"))
    assert Path(recipe["ranker"]["model"]).parent.name == f"TK-biased-{version}"
    assert Path(recipe["data"]["collection"]).name == "collection.tsv"
    # A test is ranked on its own texts.
    data, folder = study.data(0, BIASED), study.folder / "seed-0" / "TK-biased-original"
    run = read_run(folder / f"{version}.run").table.filter(pl.col("rank") <= 3)
    texts = dict(read_texts(data.texts[version], run["doc_id"].unique()).iter_rows())
    asked = dict(read_queries(data.parts["test"].queries).select("query_id", "text").iter_rows())
    queries, passages = ([of[one] for one in run[key]] for of, key in ((asked, "query_id"), (texts, "doc_id")))
    scores = np.asarray(load_ranker(str(folder / "model"), device="cpu").score(queries, passages, 8))
    assert np.allclose(scores, run["score"].to_numpy(), atol=1e-5)
    assert dict(read_texts(data.texts[ORIGINAL], run["doc_id"].unique()).iter_rows()) != texts


def test_parts_share_no_entity(done: Done) -> None:
    home = done[0].folder / "biased-0"
    entity = dict(pl.read_parquet(home / "truth.parquet").select("doc_id", "entity").iter_rows())
    asked = dict(read_qrels(home / "qrels.txt").select("query_id", "doc_id").iter_rows())
    train, valid, test = (
        {entity[asked[query]] for query in read_queries(home / f"{part}.queries.tsv")["query_id"]}
        for part in ("train", "valid", "test")
    )
    assert not (train | valid) & test


# --- figures a second way ---


def slow_ndcg(run: Path, qrels: Path) -> float:
    """nDCG@10 of a run file, query by query."""
    judged: dict[str, dict[str, int]] = {}
    for query, doc, grade in read_qrels(qrels).select("query_id", "doc_id", "relevance").iter_rows():
        judged.setdefault(query, {})[doc] = grade
    ranked = slow.rankings(read_run(run))
    grades = {query: [known.get(doc, 0) for doc, _ in ranked.get(query, [])] for query, known in judged.items()}
    return float(np.mean([slow.ndcg(grades[query], 10, [*known.values()]) for query, known in judged.items()]))


@pytest.mark.parametrize(
    ("table", "row", "folder"),
    [
        ("Table 3", "TK original, original test", "TK-biased-original/original"),
        ("Table 3", "TK original, rotated test", "TK-biased-original/rotated"),
        ("Table 3", "TK rotated, original test", "TK-biased-rotated/original"),
        ("Table 4", "TK rotated, rotated test", "TK-other-rotated/rotated"),
        ("Table 5", "TK SQuAD alone", "TK-other-original/original"),
        ("Table 5", "TK rotated MS MARCO first", "TK-other-rotated-MS-MARCO-first/original"),
    ],
)
def test_a_row_is_that_of_the_kept_runs(done: Done, table: str, row: str, folder: str) -> None:
    study, _, page = done
    home = "biased" if "biased" in folder else "other"
    found = [
        slow_ndcg(study.folder / f"seed-{seed}" / f"{folder}.run", study.folder / f"{home}-{seed}" / "test.qrels")
        for seed in (0, 1)
    ]
    figure = f"nDCG@10 on {'MS MARCO' if home == 'biased' else 'SQuAD'}"
    assert rows(page, table)[row].measured[figure].mean == pytest.approx(np.mean(found))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=20))
def test_a_change_is_of_the_means_and_its_values_are_their_influence(pairs: list[tuple[float, float]]) -> None:
    before, after = np.array(pairs).T
    if after.mean() < 0.01:
        return
    values = 100 * (1 - ratio_values(before, after))
    change = 100 * (after.mean() - before.mean()) / after.mean()
    assert values.mean() == pytest.approx(change, abs=1e-6)
    # Of one query a little more often: the change moves by its value's distance from the mean.
    weights = np.full(len(before), 1.0)
    weights[0] += 1e-6
    moved = 100 * (1 - np.average(before, weights=weights) / np.average(after, weights=weights))
    slope = (moved - change) / (1e-6 / weights.sum())
    assert values[0] - values.mean() == pytest.approx(slope, rel=1e-3, abs=1e-2)


def test_a_passage_counts_once() -> None:
    figures = Figures(True)
    figures.add("nDCG@10 on X", "a", 0, ["q1", "q2", "q3"], np.array([1.0, 0.0, 0.25]))
    places = pl.DataFrame({"query_id": ["q1", "q2", "q3"], "doc_id": ["d", "d", "e"]})
    found = by_passage(figures, " on X", places)
    assert found.values["nDCG@10 on X", "a"] == {0: {"d": 0.5, "e": 0.25}}
    assert found.units["nDCG@10 on X"] == "passages"


def test_a_question_has_the_passages_of_its_own_article(tmp_path: Path) -> None:
    articles = pl.DataFrame({"doc_id": ["a1", "a2", "a3", "b1"], "article": ["a", "a", "a", "b"]})
    write_queries(tmp_path / "queries.tsv", pl.DataFrame({"query_id": ["q"], "text": ["tea"]}))
    write_qrels(tmp_path / "qrels", pl.DataFrame({"query_id": ["q"], "doc_id": ["a2"], "relevance": [1]}))
    found = {"query_id": ["q", "q", "q"], "doc_id": ["b1", "a2", "a1"], "score": [3.0, 2.0, 1.0]}
    write_run(Run.from_table(pl.DataFrame(found), "BM25"), tmp_path / "x.run")
    part = Part("c", str(tmp_path / "queries.tsv"), str(tmp_path / "qrels"), str(tmp_path / "x.run"), 1)
    assert read_run(of_own_article(part, articles).run).table["doc_id"].to_list() == ["a2", "a1", "a3"]


# --- the scale real ---


def squad_file(file: Path, articles: int, passages: int) -> Path:
    """Articles of passages of three sentences; of each passage a question about its first, and one about its last."""
    data = []
    for number in range(articles):
        paragraphs = []
        for part in range(passages):
            rng = np.random.default_rng([number, part])
            sentences = [" ".join(rng.choice(WORDS, 6)).capitalize() + "." for _ in range(3)]
            context, qas = " ".join(sentences), []
            for at in (0, 2):
                answer = {"text": sentences[at], "answer_start": context.index(sentences[at])}
                asked = {"id": f"{number}-{part}-{at}", "question": f"{sentences[at]} {number} {part}"}
                qas.append({**asked, "answers": [answer]})
            paragraphs.append({"context": context, "qas": qas})
        data.append({"title": f"article {number}", "paragraphs": paragraphs})
    file.write_text(json.dumps({"version": "v2.0", "data": data}), encoding="utf-8")
    return file


# Of lists that were kept in a temporary folder.
in_memory = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[PositionStudy, Figures]:
    home = tmp_path_factory.mktemp("real")
    for name in ("dev", "test"):
        squad_file(home / f"{name}.json", 2, 12)
    data = [f"squad={squad_file(home / 'squad.json', 12, 2)}", f"policyqa={home}"]
    settings = PositionStudy.settings_of("real", Options(data=data, model=[f"BERT-Tiny={predictor()}"]))
    study = PositionStudy(replace(settings, seeds=(10, 11)), home / "out")
    return study, study.run(1)


@in_memory
def test_early_answers_train_and_test_and_late_ones_are_the_control(real: tuple[PositionStudy, Figures]) -> None:
    study, _ = real
    places = study.data(10, BIASED).places
    assert places is not None
    place = dict(places.select("query_id", "place").iter_rows())
    asked = {
        (name, division): {*read_queries(part.queries)["query_id"]}
        for division in (0, 1)
        for name, part in study.data(10, BIASED, division=division).parts.items()
    }
    assert {name for name, _ in asked} == {"train", "test", "late", "asked"}
    assert asked["asked", 0] == asked["test", 0] | asked["late", 0]
    assert len(asked["test", 0] | asked["test", 1]) == 24
    assert asked["train", 0] == asked["test", 1]
    assert max(place[one] for (name, _), ids in asked.items() if name in ("train", "test") for one in ids) < 1 / 3
    assert min(place[one] for division in (0, 1) for one in asked["late", division]) >= 2 / 3


@in_memory
def test_where_answers_stand_in_every_version_and_whether_passages_are_cut(real: tuple[PositionStudy, Figures]) -> None:
    study, figures = real
    rows = figures.systems("earlier than evenly")
    assert rows == [BIASED, f"{BIASED} rotated", f"{BIASED} rotated at sentences", OTHER, f"{OTHER} rotated"]
    assert figures.mean("share of relevant passages cut", "all") == 0
    rankers = study.settings.rankers
    shorter = {name: {**rankers[name], "ranker": {**rankers[name]["ranker"], "passage_length": 10}} for name in rankers}
    cut = Figures(True)
    PositionStudy(replace(study.settings, rankers=shorter), study.folder)._cut(cut, BIASED)
    assert cut.mean("share of relevant passages cut", "all") == 1
    (uncut,) = [one for one in claims_of("position") if one.key == "uncut"]
    assert [uncut.decided(one, {}, "real").verdict.state for one in (figures, cut)] == ["supported", "not supported"]


def test_one_table_or_ranker_alone(tmp_path: Path) -> None:
    study = PositionStudy(PositionStudy.settings_of("tiny", Options(model=["encoder=none"])), tmp_path)
    study.narrow(["Table 4", "TK"])
    steps = [step for some in study.steps() for step in some]
    assert {step for step, _ in steps} == {"prepare", "started", "arm"}
    assert {arguments[1:3] for step, arguments in steps if step == "arm"} == {("TK", OTHER)}
    for only in (["Table 9"], ["Table 3", "Table 4"]):
        with pytest.raises(EvenrankError, match="`only`: expected one table or some rankers of Table 2, Table 3"):
            study.narrow(only)


# --- claims on figures of known means, and mistakes ---

ROWS = ("original, original test", "original, rotated test", "rotated, original test", "rotated, rotated test")
GOOD = dict(zip(ROWS, (0.57, 0.40, 0.55, 0.552), strict=True))


def made(good: dict[str, float], bm25: float = 0.33, after: tuple[float, float, float] = (0.6, 0.62, 0.64)) -> Figures:
    """TK's figures with these means in five seeds."""
    figures, rng, ids = Figures(False), np.random.default_rng(0), [f"q{one}" for one in range(300)]
    transfers = ("SQuAD alone", "original MS MARCO first", "rotated MS MARCO first")
    for name in (BIASED, OTHER):
        rows = good | (dict(zip(transfers, after, strict=True)) if name == OTHER else {})
        means = {f"TK {row}": mean for row, mean in rows.items()} | {"BM25": bm25}
        for seed in range(5):
            query = rng.normal(0, 0.1, 300)
            for system, mean in means.items():
                for measure in MEASURES:
                    values = mean + query + rng.normal(0, 0.02, 300)
                    figures.add(f"{measure} on {name}", system, seed, ids, values)
    return figures


def states(figures: Figures) -> dict[str, str]:
    return {one.key: one.decided(figures, {"TK": "TK"}, "tiny").verdict.state for one in claims_of("position")}


def test_the_papers_pattern_fulfils_every_claim_and_a_broken_ranker_none() -> None:
    assert {states(made(GOOD))[key] for key in ("drop", "robust", "better")} == {"supported"}
    assert "supported" not in states(made(dict.fromkeys(GOOD, 0.1), after=(0.1, 0.1, 0.1))).values()
    destroyed = states(made({**GOOD, "rotated, original test": 0.1, "rotated, rotated test": 0.1}))
    assert {destroyed["robust"], destroyed["better"]} == {"undecided", "not supported"}


@pytest.mark.parametrize(
    ("order", "changed"),
    [
        # The rotated test ranked on original texts; versions of the training exchanged; Δ's sign.
        ((0, 0, 2, 3), {"drop", "better"}),
        ((2, 3, 0, 1), {"drop", "better"}),
        ((1, 0, 2, 3), {"drop"}),
    ],
)
def test_mutants_change_verdicts(order: tuple[int, ...], changed: set[str]) -> None:
    means = [*GOOD.values()]
    good, bad = states(made(GOOD)), states(made(dict(zip(ROWS, (means[i] for i in order), strict=True))))
    assert changed <= {key for key in good if good[key] != bad[key]}


def test_letters_respect_seeds(done: Done) -> None:
    study = PositionStudy(replace(done[0].settings, rankers={"TK": {}}), done[0].folder)
    letters = {row[0][0]: row[2] for row in study.tables(made(GOOD))[0].rows if row[1] == "nDCG@10"}
    assert letters == {"a": "", "b": "a*", "c": "a*b*"}
    # The same gain in some seeds only is not shown.
    figures, rng = Figures(False), np.random.default_rng(0)
    for seed in range(5):
        gains = {"SQuAD alone": 0.0, "original MS MARCO first": 0.02 + (seed - 2) * 0.1, "rotated MS MARCO first": 0.0}
        for row, gain in gains.items():
            values = 0.5 + gain + rng.normal(0, 0.02, 300)
            for name in MEASURES:
                figures.add(f"{name} on {OTHER}", f"TK {row}", seed, [f"q{one}" for one in range(300)], values)
    assert {row[2] for row in study.tables(figures)[0].rows} == {""}


def test_a_collapse_is_no_smaller_mats(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cosines near 1: MATS is small, but what is left of it is as large a share as before."""

    class Found:
        def __init__(self, start: float, mats: float) -> None:
            self.ats, self.mats, self.mats_deviation, self.delta_max = np.array([start, start - mats]), mats, 0.0, 1

    study = done[0]
    kinds = iter([Found(0.9, 0.2), Found(0.998, 0.002), Found(0.9, 0.2)])
    levels = iter([0.1, 0.99, 0.1])
    monkeypatch.setattr(position, "sampled_words", lambda *_, **__: ((), ""))
    monkeypatch.setattr(position, "term_similarity", lambda *_, **__: next(kinds))
    monkeypatch.setattr(position, "different_terms", lambda *_: np.full(2, next(levels)))
    figures = Figures(False)
    study._similarities(figures, 0, BIASED)
    figure = f"MATS relative to different terms on {BIASED}"
    assert [figures.mean(figure, f"TK {one}") for one in VERSIONS] == pytest.approx([0.25, 0.25])
