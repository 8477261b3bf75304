"""What the page and the table say of position sensitivity."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from early_ranker import Early, collection_of, sensitivity
from evenrank.io.squad import load_squad, read_answers
from evenrank.position import curves
from evenrank.position.curves import Versions, position_curve
from evenrank.position.sensitivity import Comparison, MovedAnswers, SensitivityResult
from evenrank.probes.effects import effect


def test_what_truncation_does_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "PERMUTATIONS", 199)

    def said(ranker: Early) -> str:
        result = sensitivity(home, ranker, places=10)
        table = result.table()
        assert not re.search(r"(^|\s)–(\s|$)", table)
        assert result.to_dict()["summary"] == list(result.summary())
        assert all(line in table for line in result.summary())
        return " ".join(result.summary())

    whole = said(Early(0.5))
    assert whole.startswith("The model prefers early answers: from the last place of its passage to the first, the")
    assert re.search(r"Significant, of 3 tests, Holm-corrected: first − last \d", whole)
    assert "reads 6 of 6 answers to the end as they stand, and all at every place" in whole
    assert re.search(r"moved first \d\.\d+ sd \(.*\), moved last -\d\.\d+ sd \(", whole)
    assert said(Early(-0.5)).startswith("The model prefers late answers")
    flat = said(Early(0.0))
    assert flat.startswith("The answers' sentences were moved, but the candidates of each query all have one score")
    none = said(Early(0.5, reads=20))
    assert "The model reads 2 of 6 answers to the end as they stand; moved, up to 6 of 6 are cut off" in none
    assert "none is read whole at every place: preference and truncation cannot be told apart" in none


def test_what_the_contrasts_say() -> None:
    rng = np.random.default_rng(0)
    rows = 0.1 * rng.normal(size=(40, 3))
    rows -= rows.mean(axis=0)

    def said(*shape: float) -> str:
        versions = Versions(rows + np.array(shape) + 0.5, np.zeros(40, np.int64), np.eye(3)[None])
        curve = position_curve(versions, level=0.0)
        one = Comparison(curve, curve, curve)
        of = effect(rows[:, 0], np.arange(40), np.arange(40))
        moved = MovedAnswers(one, one, one, one, of, of, None, 40, 40, 0, 0)
        first, _, last = SensitivityResult("x", 40, 40, 0, 0.5, moved, None, {}).summary()
        assert last.startswith("How far the model reads is unknown")
        return first

    assert said(0.4, 0.2, 0).startswith("The model prefers early answers: from the last place")
    assert said(0, 0.2, 0.4).startswith("The model prefers late answers: from the last place")
    assert said(0.4, 0, 0.2).startswith("The model prefers early answers, and those at the ends of a passage: ")
    assert said(0.2, 0, 0.2).startswith("The model prefers answers at the ends of a passage: ")
    assert said(0, 0.2, 0).startswith("The model prefers answers in the middle of a passage: ")
    assert said(0, 0, 0).startswith("No preference shown: from the last place")


def test_answers_that_cannot_be_moved(home: Path) -> None:
    table = load_squad(home / "squad.json").passages()
    spans = read_answers(home / "squad.json")
    # Two sentences: W0 and the rest.
    texts = table.with_columns(pl.col("text").str.replace_all(".", "", literal=True).str.replace("W0", "W0."))
    found = sensitivity(home, Early(0.5), answers=spans, collection=texts)
    assert (found.moved, found.unmovable) == (None, 6)
    (said,) = found.summary()
    assert said.startswith("No answer could be moved, of 6 queries")
    assert "queries whose answer cannot be moved" in found.table()


def test_answers_are_put_right_in_the_collections_text(home: Path) -> None:
    # The collection writes single spaces where the file has two: the file's places are off.
    spans = read_answers(home / "squad.json")
    texts = load_squad(home / "squad.json").passages()
    single = texts.with_columns(pl.col("text").str.replace_all("  ", " "))
    found = sensitivity(home, Early(0.0), answers=spans, collection=single)
    assert (found.queries, found.without_answer) == (6, 0)
    assert any("In the collection: Answers not at the position" in note for note in found.notes)
    gone = single.with_columns(
        pl.when(pl.col("doc_id") == "d1").then(pl.lit("The rest")).otherwise(pl.col("text")).alias("text")
    )
    found = sensitivity(home, Early(0.0), answers=spans, collection=gone, run=home / "run")
    assert (found.queries, found.without_answer) == (5, 1)
    assert any("left out: 1 of 6: 'The  answer' (question q1)" in note for note in found.notes)


def test_every_long_step_tells_how_far_it_is(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from contextlib import contextmanager

    from evenrank.position.similarity import position_similarity
    from tiny_models import tiny_bert

    done: dict[str, int] = {}

    @contextmanager
    def counted(what: str, total: int | None = None, *, quiet: bool = False):
        def advance(number: int) -> None:
            done[what] = done.get(what, 0) + number

        before = done.get(what, 0)
        yield advance
        assert total is None or done[what] - before == total

    for module in ("position.sensitivity", "position.similarity", "rankers.scoring_job", "retrieval.bm25"):
        monkeypatch.setattr(f"evenrank.{module}.progress", counted)
    sensitivity(home, Early(0.5), places=4, quiet=False)
    # 6 queries with 6 candidates each; 6 passages with the answer's sentence and another one at 4 places each, but for
    # those that stand there.
    assert done["how far texts are read"] == 6 + 24
    assert 36 + 30 <= done["re-ranking"] <= 36 + 48
    assert len(done) == 2
    done.clear()
    position_similarity(str(tiny_bert(tmp_path / "bert")), collection_of(tmp_path), min_pairs=1, min_terms=2)
    assert (done["documents"], done["passages"]) == (12, 12)
    assert done["terms"] > 12


def test_files_from_pipes_are_read_once_or_refused(evenrank: Callable[..., Any], home: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from ranker_factories import tk

    def piped(path: Path) -> str:
        reading, writing = os.pipe()
        os.write(writing, path.read_bytes())
        os.close(writing)
        return f"/dev/fd/{reading}"

    def done(*options: object) -> Any:
        return evenrank("position", "sensitivity", home / "tk", "--places", 2, "--quiet", *options)

    tk().save(home / "tk")
    assert evenrank("data", "squad", home / "squad.json", "--to", home / "c").status == 0
    squad, run = home / "squad.json", home / "run"
    plain = done("--squad", squad, "--run", run).out
    for one, other in ((piped(squad), run), (squad, piped(run))):
        ended = done("--squad", one, "--run", other)
        assert (ended.status, ended.out) == (0, plain), ended.err
    names = {"collection": "collection.tsv", "queries": "queries.tsv", "qrels": "qrels.txt", "answers": "answers.json"}
    files = {f"--{name}": home / "c" / file for name, file in names.items()}
    for name in files:
        given = files | {name: piped(files[name])}
        ended = done("--run", run, *(part for pair in given.items() for part in pair))
        if name in ("--qrels", "--answers"):
            assert ended.status == 0, ended.err
        else:
            assert ended.status == 2
            assert ended.err.endswith(": expected a file, found a pipe: it may be read more than once\n")
