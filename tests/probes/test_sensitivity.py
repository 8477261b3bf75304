"""Position sensitivity of rankers: planted, and the commands."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from early_ranker import Early, collection_of, command, sensitivity
from evenrank.files import EvenrankError, as_run
from evenrank.files.json_values import json_values
from evenrank.files.squad import load_squad
from evenrank.probes.position_curve import position_curve
from evenrank.probes.sensitivity import Curves, MovedAnswers, SensitivityResult, too_little_read, words_read
from evenrank.results.finding import Finding

SD = 0.5 * np.std(np.arange(6))
"""Of a query's candidates, whose answers stand at 0 … 5, with half a point per place."""


def test_a_ranker_that_looks_at_the_place_gives_the_planted_curve(home: Path) -> None:
    found = sensitivity(home, Early(0.5), places=10).moved
    # 9 other sentences of one word: at place j the answer is word j and the score 5 − .5 · j; it stood at 0 … 5.
    assert found.score.answer.means == pytest.approx((2.5 - np.arange(10)) * 0.5 / SD)
    assert found.score.answer.first_last.mean == pytest.approx(9 * 0.5 / SD)
    # Six passages are too few to tell.
    assert found.score.answer.first_last.reason == "only 6 passages differ from 0, where 10 are needed"
    assert found.score.answer.ends_middle.mean == pytest.approx(0)
    # Moving another sentence leaves the answer's where it is: the difference has the effect once, not twice.
    assert found.score.control.means == pytest.approx(np.zeros(10))
    assert found.score.difference.means == pytest.approx(found.score.answer.means)
    assert found.cut.tolist() == [0] * 10
    assert json_values(found.kept) == json_values(found.score)
    # First: from place i it gains i, a mean of 3 over the five whose answer is not there already. Last: it loses 9 − i.
    assert (found.early.n, found.late.n) == (5, 6)
    assert found.early.mean == pytest.approx(3 * 0.5 / SD)
    assert found.late.mean == pytest.approx(-6.5 * 0.5 / SD)
    assert (found.read, sensitivity(home, Early(0.5), places=10).findings[-1].key) == (1.0, "reads_all")


def test_a_ranker_that_does_not_look_at_the_place_is_flat(home: Path) -> None:
    result = sensitivity(home, Early(0.0), places=3)
    # No score in standard deviations, as there are none.
    assert (result.moved.score.answer.n, result.moved.unvaried) == (0, 6)
    answer = result.findings[0]
    assert (answer.key, answer.subject, answer.level) == ("no_scores", "early", "cannot be told")
    json.loads(result.to_json())


def test_answers_that_are_cut_off_are_counted_apart(home: Path) -> None:
    # Sentences of three letters joined by single spaces: an answer at place p ends at 4p + 11. 20 characters are read:
    # those from p = 3 on are cut. As they stand words are two spaces apart: at word i it ends at 5i + 11, and from
    # i = 2 on it is cut; so is the passage as it is, which is the third one's text at place 2.
    result = sensitivity(home, Early(0.5, reads=20), places=10)
    assert result.moved.cut.tolist() == [0, 0, 1, 6, 6, 6, 6, 6, 6, 6]
    assert result.moved.kept.answer.n == 0
    assert result.cut == 4
    # With one space 20 characters are five or six of the 11 words: nothing is told, and there is no p.
    assert result.moved.read == pytest.approx(0.5, abs=0.1)
    assert [one.key for one in result.findings] == ["untold", "effectiveness", "cut_off_untold"]
    curve = result.moved.score.difference
    for one in (curve.first_last, curve.ends_middle):
        assert (one.verdict, one.p, one.holm_p, one.ci95) == ("cannot be told", None, None, None)
        assert "% of the words of 6 passages are read; cut passages to what the model reads" in (one.reason or "")
    assert result.findings[0].text == f"Cannot be told: {curve.first_last.reason}."


def test_queries_without_candidates_are_left_out(home: Path) -> None:
    # The run has candidates for q0 and q1 alone, and of q1 only others: d1 joins them. Ranked by early answers, d0 is
    # first and d1 second; with four questions ranked alone the mean would be (1 + 1/log2 3 + 4) / 6.
    run = as_run({query: {"d0": 2.0, "d3": 1.0} for query in ("q0", "q1")}, "part")
    found = sensitivity(home, Early(0.5), places=10, run=run)
    assert (found.queries, found.without_answer, found.without_candidates, found.added) == (2, 0, 4, 1)
    assert found.value == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert "1 relevant passages were not among the candidates" in found.table(full=True)
    assert "queries without other candidates" in found.table(full=True)
    alone = as_run({"q0": {"d0": 1.0}}, "alone")
    with pytest.raises(EvenrankError, match="no query with an answer has a candidate other than its own passages"):
        sensitivity(home, Early(0.5), run=alone)


def test_a_sample_and_bad_settings(home: Path) -> None:
    result = sensitivity(home, Early(0.5), places=3, sample=2)
    assert (result.moved.score.answer.n, result.queries, result.sampled_from) == (2, 2, 6)
    assert "2 of 6 queries drawn" in result.table(full=True)
    again = sensitivity(home, Early(0.5), places=3, sample=2)
    assert again.to_json() == result.to_json()
    assert sensitivity(home, Early(0.5), places=3, sample=6).sampled_from is None
    for name, value in (("places", 1), ("depth", 0), ("sample", 0), ("seed", -1)):
        with pytest.raises(EvenrankError, match=f"`{name}`: expected"):
            sensitivity(home, Early(0.5), **{name: value})


def test_real_models_go_the_whole_way(home: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from ranker_factories import tk
    from tiny_models import tiny_bert

    tk().save(tmp_path / "tk")
    done = command(
        "sensitivity", tmp_path / "tk", "--squad", home / "squad.json", "--places", 3, "--quiet",
        "--json", tmp_path / "s.json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert len(found["moved"]["score"]["answer"]["places"]) == 3
    bert = tiny_bert(tmp_path / "bert")
    done = command(
        "similarity", bert, "--collection", collection_of(tmp_path), "--min-pairs", 1, "--min-terms", 2, "--quiet",
        "--json", tmp_path / "a.json", "--report", tmp_path / "a.html",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "MATS" in done.output
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["delta_max"] >= 2
    assert "Average term similarity" in (tmp_path / "a.html").read_text(encoding="utf-8")


# --- what is said ---------------------------------------------------------------------------------------------------


def test_how_much_is_read() -> None:
    texts = pl.Series(["one two three", "four  five"])
    assert words_read(texts, np.array([7, 100])) == 4 / 5
    # A word of which the end is not read is not.
    assert words_read(texts, np.array([6, 9])) == 2 / 5
    assert too_little_read(0.95, 3, 8) is None
    assert too_little_read(None, 3, 8) is None
    assert too_little_read(0.9499, 3, 8) == (
        "94% of the words of 3 passages are read; cut passages to the 8 tokens that the model reads and try again"
        " (evenrank passages COLLECTION --model MODEL --answers SQUAD.json --out FOLDER)"
    )


def test_what_the_contrasts_say() -> None:
    rng = np.random.default_rng(0)
    rows = 0.1 * rng.normal(size=(40, 3))
    rows -= rows.mean(axis=0)

    def said(*shape: float, rows: np.ndarray = rows) -> list[Finding]:
        curve = position_curve(rows + np.array(shape) + 0.5)
        one = Curves(curve, curve, curve)
        moved = MovedAnswers(one, one, curve.first_last, curve.first_last, None, 40, 40, 0, 0)
        *contrasts, _, reads = SensitivityResult("x", 40, 40, 0, 0.5, moved, None, {}).findings
        assert (reads.key, reads.place) == ("reads_unknown", "warning")
        return contrasts

    # Of a curve that only falls, or rises, the ends are not on one side of the middle.
    for shape, key, change in (((0, 0.2, 0.4), "later_higher", 0.4), ((0.5, 0.1, 0), "later_lower", -0.5)):
        [falls] = said(*shape)
        assert (falls.key, falls.level, falls.place) == (key, "shown", "answer")
        assert falls.estimate.mean == pytest.approx(change)
    for shape, first, change, second, ends in (
        ((0.4, 0, 0.2), "later_lower", -0.2, "ends_higher", 0.3),
        ((0, 0.2, 0), "no_difference", 0, "ends_lower", -0.2),
        ((0, 0, 0), "no_difference", 0, "ends_alike", 0),
    ):
        found = said(*shape)
        assert [one.key for one in found] == [first, second]
        assert [one.level == "shown" for one in found] == [change != 0, ends != 0]
        assert [one.estimate.mean for one in found if one.estimate] == pytest.approx([change, ends], abs=1e-9)
        # What is shown stands in the first line.
        assert [one.place == "answer" for one in found] == [True, ends != 0]
    assert said(0, 0, 0, rows=0 * rows)[0].key == "unchanged"
    few = said(0.4, 0.2, 0, rows=rows[:5])
    assert [(one.key, one.level) for one in few] == [("untold", "cannot be told")]


def test_answers_that_cannot_be_moved(home: Path) -> None:
    table = load_squad(home / "squad.json").passages()
    spans = load_squad(home / "squad.json").answers()
    # Two sentences: W0 and the rest.
    texts = table.with_columns(pl.col("text").str.replace_all(".", "", literal=True).str.replace("W0", "W0."))
    found = sensitivity(home, Early(0.5), answers=spans, collection=texts)
    assert (found.moved, found.unmovable) == (None, 6)
    (said,) = found.findings
    assert (said.key, said.subject, said.level) == ("unmoved", "early", "cannot be told")
    assert "queries whose answer cannot be moved" in found.table(full=True)


def test_answers_are_put_right_in_the_collections_text(home: Path) -> None:
    # The collection writes single spaces where the file has two: the file's places are off.
    spans = load_squad(home / "squad.json").answers()
    single = load_squad(home / "squad.json").passages().with_columns(pl.col("text").str.replace_all("  ", " "))
    found = sensitivity(home, Early(0.0), answers=spans, collection=single)
    assert (found.queries, found.without_answer) == (6, 0)
    assert any("In the collection: Answers not at the position" in note for note in found.notes)
    gone = single.with_columns(text=pl.when(pl.col("doc_id") == "d1").then(pl.lit("The rest")).otherwise("text"))
    found = sensitivity(home, Early(0.0), answers=spans, collection=gone, run=home / "run")
    assert (found.queries, found.without_answer) == (5, 1)
    assert any("left out: 1 of 6: 'The  answer' (question q1)" in note for note in found.notes)


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
    assert evenrank("data", "squad", home / "squad.json", "--out", home / "c").status == 0
    names = {"collection": "collection.tsv", "queries": "queries.tsv", "qrels": "qrels.txt", "answers": "answers.json"}
    files = {f"--{name}": home / "c" / file for name, file in names.items()}
    for name in files:
        given = files | {name: piped(files[name])}
        ended = done("--run", home / "run", *(part for pair in given.items() for part in pair))
        if name in ("--qrels", "--answers"):
            assert ended.status == 0, ended.err
        else:
            assert ended.status == 2
            assert ended.err.endswith(": expected a file, found a pipe: it may be read more than once\n")
