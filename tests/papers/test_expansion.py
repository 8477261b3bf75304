"""The expansion experiment: every step of all scales on small data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenrank.files import EvenrankError, Run
from evenrank.files.synthetic import SyntheticConfig
from evenrank.papers import expansion_paper, expansion_setup
from evenrank.papers.checks import Options
from evenrank.papers.expansion_setup import BUILT_IN, FILE, GREP, LOCAL, MINILM, ROBUST, SQUAD
from evenrank.papers.paper_page import fact, statements
from evenrank.search.embeddings import Vectors, gender_en, hard_debias
from evenrank.search.expansion import RM3
from expansion_runs import Done, micro, row, run

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("gensim", reason="gensim is not installed")

GREPBIASIR = Path(__file__).parents[3] / "shared" / "data" / "grepbiasir"


@pytest.fixture(scope="module")
def done(expansion_done: Done) -> Done:
    return expansion_done


def test_tables_are_laid_out_as_published(done: Done) -> None:
    first = done.table("Table 1")
    fused = [f"Regular + Expansion {name}" for name in ("biased", "debiased")]
    assert [one.labels[0] for one in first.rows] == [
        "Expansion biased",
        "Expansion debiased",
        "Regular",
        *fused,
        *(f"{name}, tuned for ERR@10" for name in fused),
        "blind",
        "random",
        "neutral-first",
    ]
    assert first.rows[2].published == {"map_full": 0.29, "p30_full": 0.337, "map_changed": 0.303, "p30_changed": 0.372}
    assert all({"map_full", "p30_full", "nfairr", "arab"} <= set(one.measured) for one in first.rows)
    assert dict(done.page.facts)["development seeds"] == "100, 101"
    assert dict(done.page.facts)["seeds"] == "0, 1"
    assert json.loads((done.folder / "results.json").read_text(encoding="utf-8"))["experiment"] == "expansion"


def test_shares_are_named_by_their_measure(done: Done) -> None:
    text = done.table("Text")
    printed = {one.labels[0]: one.published["value"] for one in text.rows if "λ" not in one.labels[0]}
    # 18 / 48, 18 / 250, 16 / 48, 16 / 250.
    assert printed["of those that changed, with |Δ P@30| > 0.01"] == 0.38
    assert printed["of all, with |Δ P@30| > 0.01"] == 0.07
    assert printed["of those that changed, with |Δ AP| > 0.01"] == 0.33
    assert printed["of all, with |Δ AP| > 0.01"] == 0.06
    assert (printed["queries with |Δ P@30| > 0.01"], printed["queries with |Δ AP| > 0.01"]) == (18, 16)
    values = {one.labels[0]: one.measured["value"].mean for one in text.rows}
    first = done.found[0].seeds[0]
    gaps = np.abs(first.values["Expansion biased"]["AP"] - first.values["Expansion debiased"]["AP"])
    second = done.found[0].seeds[1]
    others = np.abs(second.values["Expansion biased"]["AP"] - second.values["Expansion debiased"]["AP"])
    shares = [(of[one.changed] > 0.01).sum() / one.changed.sum() for of, one in ((gaps, first), (others, second))]
    assert values["of those that changed, with |Δ AP| > 0.01"] == pytest.approx(np.mean(shares))
    weight = values["λ of Regular + Expansion debiased, ERR@10"]
    assert weight is not None
    assert 0 <= weight <= 1


def test_tests_have_the_published_differences(done: Done) -> None:
    found = done.table("Tests")
    rows = {one.labels: one for one in found.rows}
    alone = rows["alone: biased − debiased", "changed"]
    assert alone.published == {"map": 0.009, "p30": -0.002}
    assert rows["fused biased − regular", "all"].published == {"map": 0.0, "p30": 0.002}
    assert rows["fused biased − regular (ERR@10)", "all"].published == {}
    one = rows["fused biased − regular", "all"].measured
    first = row(done.table("Table 1"), "Regular + Expansion biased").measured["map_full"].mean
    regular = row(done.table("Table 1"), "Regular").measured["map_full"].mean
    assert first is not None
    assert regular is not None
    assert one["map"].mean == pytest.approx(first - regular)
    for key in ("p", "holm", "t", "w"):
        value = one[f"map_{key}"].mean
        assert value is not None
        assert 0 <= value <= 1


def test_claims(done: Done) -> None:
    found = {claim.statement.key: claim.verdict.state for claim in done.page.claims}
    assert list(found) == list(statements("expansion"))
    assert found["equal_distances"] == found["signs"] == "supported"


def test_a_query_without_a_list_counts_as_nothing_found(tmp_path: Path) -> None:
    (tmp_path / "c.tsv").write_text("0\tnurse ward\n1\tsea\n", encoding="utf-8")
    queries = pl.DataFrame({"query_id": ["0", "1"], "text": ["nurse", "zebra"]})
    qrels = pl.DataFrame({"query_id": ["0", "1"], "doc_id": ["0", "1"], "relevance": [1, 1]})
    found = Run.from_table(pl.DataFrame({"query_id": ["0"], "doc_id": ["0"], "score": [1.0]}), "Regular")
    collection = expansion_setup.Collection("c", str(tmp_path / "c.tsv"), queries, qrels)
    figure = expansion_paper._audit(collection, {"Regular": found}).runs[0].figures["AP"]
    assert (figure.n, figure.mean) == (2, 0.5)


@pytest.mark.slow
def test_seeds_in_processes_measure_the_same(done: Done, tmp_path: Path) -> None:
    small = replace(micro(), planted=SyntheticConfig(passages=200, queries=10, sentences=3), objectives=("nDCG@10",))
    one, two = (expansion_paper.run(small, tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2))
    assert one.table() == two.table()


# --- a second vector file --------------------------------------------------------------------------------------------


def text_file(path: Path, vectors: Vectors) -> str:
    lines = [" ".join([w, *(f"{x:.9g}" for x in v)]) for w, v in zip(vectors.words, vectors.matrix, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_debiased_vectors_of_a_file_with_other_words(done: Done, tmp_path: Path) -> None:
    given = Vectors.load(done.folder / "vectors" / f"{BUILT_IN}-0")
    sets = gender_en()
    after = hard_debias(given, sets.definitional, sets.equalize, sets.specific).vectors
    some = Vectors(after.words[::-1][5:], np.ascontiguousarray(after.matrix[::-1][5:]))
    files = text_file(tmp_path / "before.txt", given), text_file(tmp_path / "after.txt", some)
    options = Options(vectors=files[0], debiased_vectors=files[1])
    settings = replace(micro(), seeds=(0,), vectors=(FILE,), objectives=("nDCG@10",), options=options)
    assert [need.problem for need in expansion_setup.needs(settings, tmp_path) if need.problem] == []
    found = run(settings, tmp_path / "out")
    sizes = len(given.words), len(some.words)
    assert found.found[0].seeds[0].sizes == (*sizes, False)
    assert any(f"{sizes[0]:,} words before, {sizes[1]:,} after" in note for note in found.page.notes)
    equal = next(claim for claim in found.page.claims if claim.statement.key == "equal_distances")
    assert equal.verdict.state == "supported"
    critique = found.found[0].seeds[0].critique
    assert critique is not None
    assert critique.common == sizes[1]


def test_equal_distances_of_another_file_can_fail(done: Done, tmp_path: Path) -> None:
    given = Vectors.load(done.folder / "vectors" / f"{BUILT_IN}-0")
    assert not expansion_setup.distances(given, gender_en()).holds()


# --- settings and needs ----------------------------------------------------------------------------------------------


def test_full_has_the_papers_settings() -> None:
    full = expansion_setup.settings_of("full", Options())
    assert (full.collections, full.vectors) == ((ROBUST,), (FILE,))
    assert (full.k, full.folds) == (fact("expansion", "expansion_terms_k"), fact("expansion", "folds")) == (5, 5)
    assert full.rm3 == RM3(fb_docs=10, fb_terms=10, original_weight=0.5)
    assert full.objectives == ("nDCG@10", "ERR@10")
    assert full.depth == 1000
    assert (full.biased_words, full.svm_words) == (500, 200)
    # The topics of Robust04, by the usual folds.
    from ir_datasets.datasets.disks45 import ROBUST04_FOLDS

    assert sum(map(len, ROBUST04_FOLDS.values())) == fact("expansion", "queries") == 250
    # Departures are named.
    assert "Departure at full" in "\n".join(expansion_paper._notes(full, []))


def test_scales_differ_in_data_only() -> None:
    scales = [expansion_setup.settings_of(scale, Options()) for scale in ("tiny", "real", "full")]
    same = ("k", "depth", "folds", "objectives", "rm3", "biased_words", "svm_words")
    assert len({tuple(getattr(one, name) for name in same) for one in scales}) == 1
    tiny, real, _ = scales
    assert tiny.seeds == real.seeds == (0, 1, 2, 3, 4)
    assert not {*tiny.seeds} & {*tiny.development}
    assert (tiny.collections, real.collections, real.vectors) == ((BUILT_IN,), (GREP, SQUAD), (MINILM, LOCAL))
    with_file = expansion_setup.settings_of("real", Options(vectors="v.bin"))
    assert with_file.vectors == (MINILM, LOCAL, FILE)


def problems_of(settings: expansion_setup.Settings, folder: Path) -> str:
    return "\n".join(need.problem for need in expansion_setup.needs(settings, folder) if need.problem)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    full = expansion_setup.settings_of("full", Options())
    found = problems_of(full, tmp_path)
    assert f"{tmp_path}/vectors.bin: no such file (word vectors; `vectors` names another)" in found
    assert "disks45/corpus: put your own copy of TREC disks 4 and 5 there" in found
    (tmp_path / "irds" / "disks45" / "corpus").mkdir(parents=True)
    (tmp_path / "vectors.txt").write_text("he 1 0\nshe 0 1\n", encoding="utf-8")
    assert problems_of(full, tmp_path) == ""
    alone = expansion_setup.settings_of("tiny", Options(debiased_vectors=str(tmp_path / "vectors.txt")))
    assert "`vectors` has to name the same vectors before debiasing" in problems_of(alone, tmp_path)
    real = expansion_setup.settings_of(
        "real", Options(squad=("no.json",), grepbiasir=str(tmp_path), encoder="no/model")
    )
    found = problems_of(real, tmp_path)
    assert "no.json: no such file" in found
    assert "qrels.txt: no such file" in found
    assert expansion_setup.cost(real).trainings == 10


# --- real and full: the same steps on files of their form ------------------------------------------------------------


def test_real_on_files_of_its_form(tmp_path: Path) -> None:
    articles = []
    for article in range(10):
        words = f"The nurse {article} said that she and he saw the king and the queen of town {article * 7} in winter"
        questions = [
            {
                "id": f"{article}-{i}",
                "question": text,
                "answers": [{"text": "king", "answer_start": words.index("king")}],
            }
            for i, text in enumerate((f"Whom did nurse {article} see?", f"Who was in town {article * 7}?"))
        ]
        articles.append({"title": f"A{article}", "paragraphs": [{"context": words, "qas": questions}]})
    squad = tmp_path / "squad.json"
    squad.write_text(json.dumps({"version": "v2.0", "data": articles}), encoding="utf-8")
    grep = tmp_path / "grep"
    grep.mkdir()
    rows = [f"{i}\t{'she' if i % 2 else 'he'} is a nurse or a king number {i}\n" for i in range(12)]
    (grep / "collection.tsv").write_text("".join(rows), encoding="utf-8")
    (grep / "queries.tsv").write_text("".join(f"{i}\tking number {i}\n" for i in range(6)), encoding="utf-8")
    (grep / "qrels.txt").write_text("".join(f"{i} 0 {i} 1\n" for i in range(6)), encoding="utf-8")
    options = Options(squad=(str(squad),), grepbiasir=str(grep))
    settings = replace(
        expansion_setup.settings_of("real", options),
        seeds=(0,), vectors=(LOCAL,), vector_size=8, depth=20, folds=2, squad_part="train", biased_words=5,
        objectives=("nDCG@10",),
    )  # fmt: skip
    assert problems_of(settings, tmp_path) == ""
    found = run(settings, tmp_path / "out")
    assert [one.collection for one in found.found] == [GREP, SQUAD]
    assert len(found.found[0].seeds[0].queries) == 6
    assert len(found.found[1].seeds[0].queries) >= 10
    assert "the part train" in "\n".join(found.page.notes)


@pytest.mark.skipif(not GREPBIASIR.is_dir(), reason="../shared/data is not here")
def test_grepbiasir_as_it_is(tmp_path: Path) -> None:
    settings = expansion_setup.settings_of("real", Options(grepbiasir=str(GREPBIASIR)))
    found = expansion_setup.collection_of(settings, tmp_path, GREP, 0)
    assert found.queries.height == 117
    assert not found.nested


def test_full_on_files_of_its_form(done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = expansion_setup.collection_of(micro(), done.folder, BUILT_IN, 0)
    # One of the paper's topics stands beside its published line, the others follow.
    topics = built.queries.with_columns(
        text=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("women clergy")).otherwise("text")
    )
    stand_in = replace(built, name=ROBUST, queries=topics, nested=False)
    monkeypatch.setattr(expansion_setup, "robust", lambda: stand_in)
    text_file(tmp_path / "vectors.txt", Vectors.load(done.folder / "vectors" / f"{BUILT_IN}-0"))
    full = replace(expansion_setup.settings_of("full", Options()), depth=50)
    found = run(full, tmp_path)
    assert [one.name for one in found.page.tables] == [
        f"{name} ({ROBUST}, {FILE})" for name in ("Table 1", "Table 2", "Text", "Tests", "Critique")
    ]
    lines = [one for one in found.table("Table 2").rows if one.published]
    assert len(lines) == 20
    assert lines[-1].published == {"map_difference": -0.069, "p30_difference": -0.1}
    assert row(found.table("Text"), "queries").measured["value"].mean == 24


def test_full_needs_the_users_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> pl.DataFrame:
        raise EvenrankError("no such file")

    monkeypatch.setattr(expansion_setup, "read_queries", absent)
    full = expansion_setup.settings_of("full", Options())
    with pytest.raises(EvenrankError, match=r"your own copy of TREC disks 4 and 5, .* \(no such file\)"):
        expansion_setup.collection_of(full, Path(), ROBUST, 0)
