"""What the page and the table say of position sensitivity."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from early_ranker import Early, collection_of, command, sensitivity
from evenrank.io import EvenrankError, Run, write_run
from evenrank.io.squad import load_squad, read_answers
from evenrank.position import resampling
from evenrank.position.buckets import by_bucket
from evenrank.position.curves import Versions, position_curve
from evenrank.position.place_blind import PlaceBlind
from evenrank.position.sensitivity_result import Comparison, MovedAnswers, SensitivityResult
from evenrank.probes.effects import effect


def long_squad(path: Path, passages: int, words: int, seed: int = 0) -> Path:
    """Passages of so many words with three questions each, as COVID-QA has them; answers anywhere."""
    rng = np.random.default_rng(seed)
    articles = []
    for p in range(passages):
        text = " ".join(f"t{p}w{w}" for w in range(words))
        questions = []
        for q in range(3):
            answer = f"t{p}w{rng.integers(words)}"
            start = text.index(f"{answer} ") - int(q == 1) if f"{answer} " in text else text.index(answer)
            answers = [{"text": answer, "answer_start": start}]
            questions.append({"id": 10 * p + q, "question": f"what of t{p}w{q}", "answers": answers})
        articles.append({"paragraphs": [{"document_id": 600 + p, "context": text, "qas": questions}]})
    path.write_text(json.dumps({"data": articles}), encoding="utf-8")
    return path


def long_run(path: Path, passages: int, rank: Callable[[int, int], int]) -> Path:
    """Ranks the relevant passage of question q of passage p at ``rank(p, q)`` among five."""
    rows = []
    for p in range(passages):
        for q in range(3):
            docs = [str((p + other) % passages) for other in range(1, 5)]
            docs.insert(rank(p, q) - 1, str(p))
            rows += [(str(10 * p + q), doc, 9.0 - place) for place, doc in enumerate(docs)]
    write_run(Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")), path)
    return path


def test_a_run_on_long_passages_says_what_it_shows(tmp_path: Path) -> None:
    squad = long_squad(tmp_path / "s.json", 24, 3000)
    starts = read_answers(squad).with_columns(pl.col("doc_id").cast(pl.Int64)).sort("query_id")
    word = dict(zip(starts["query_id"], (int(a.split("w")[1]) for a in starts["answer"]), strict=True))
    late = long_run(tmp_path / "late", 24, lambda p, q: 1 + 4 * word[str(10 * p + q)] // 3000)
    done = command("sensitivity", "--squad", squad, "--run", late, "--json", tmp_path / "s.json.out")
    assert done.exit_code == 0, done.output
    assert "nDCG@10 depends on the position of the answer: early answers do better." in done.output
    assert "moved to the nearest match of their text: 24 of 72." in done.output
    assert "The unit of intervals and of p is the passage (24 of them)" in done.output
    found = json.loads((tmp_path / "s.json.out").read_text(encoding="utf-8"))
    buckets = found["tokens"]["buckets"]
    assert [bucket["queries"] for bucket in buckets] == [10, 10, 10, 11, 10, 10, 11]
    assert buckets[0]["from"] == 0
    assert buckets[-1]["to"] == max(word.values()) + 1
    assert (found["unit"], found["passages"], found["queries"]) == ("passage", 24, 72)
    assert found["summary"][0].startswith("nDCG@10 depends on the position of the answer")
    rng = np.random.default_rng(3)
    noise = long_run(tmp_path / "noise", 24, lambda p, q: int(rng.integers(1, 6)))
    done = command("sensitivity", "--squad", squad, "--run", noise)
    assert "No preference shown: nDCG@10 does not depend on the position of the answer beyond chance." in done.output
    # No figure is a dash.
    assert not re.search(r"(^|\s)–(\s|$)", done.output)


def test_fifths_without_an_answer_are_named_not_dashed(home: Path) -> None:
    done = command("sensitivity", "--squad", home / "squad.json", "--run", home / "run")
    assert done.exit_code == 0, done.output
    assert "No answer begins in 0.6–0.8, 0.8–1.0." in done.output
    assert "one passage" in done.output
    assert not re.search(r"(^|\s)–(\s|$)", done.output)


def test_what_truncation_does_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "PERMUTATIONS", 199)

    def said(ranker: Early) -> str:
        result = sensitivity(home, ranker, places=10)
        table = result.table()
        assert not re.search(r"(^|\s)–(\s|$)", table)
        assert result.to_dict()["summary"] == list(result.summary())
        assert all(line in table for line in result.summary())
        return " ".join(result.summary()[:-1])

    whole = said(Early(0.5))
    assert whole.startswith("The model prefers early answers: from the first place of its passage to the last, the")
    assert "Significant, of 4 tests, Holm-corrected: slope -" in whole
    # One candidate's score is as good as another's: each has the word "w0" of a question.
    assert "No query could be compared with a scorer that cannot see places." in whole
    assert "reads 6 of 6 answers to the end as they stand, and all at every place" in whole
    assert re.search(
        r"moved first \d\.\d+ sd \(.*\), moved last -\d\.\d+ sd .* \d\.\d+ sd or more would have been seen\.", whole
    )
    assert said(Early(-0.5)).startswith("The model prefers late answers")
    flat = said(Early(0.0))
    assert flat.startswith("The answers' sentences were moved, but the candidates of each query all have one score")
    none = said(Early(0.5, reads=20))
    assert "The model reads 2 of 6 answers to the end as they stand; moved, up to 6 of 6 are cut off" in none
    assert "none is read whole at every place: preference and truncation cannot be told apart" in none


def test_answers_as_they_stand_are_called_a_correlation() -> None:
    """Where they go against the moved answers, one sentence says why."""
    rng = np.random.default_rng(0)
    rows = 0.1 * rng.normal(size=(40, 3))
    rows -= rows.mean(axis=0)
    fifths = by_bucket(np.linspace(0, 1, 40) + 0.1 * rng.normal(size=40), np.arange(40) / 40, (0.0, 0.5), 1.0)
    words = by_bucket(rng.random(40), np.arange(40), (0, 20))

    def said(slope: float, blind: float | None = None) -> tuple[str, ...]:
        versions = Versions(rows + slope * np.arange(3) + 0.5, np.zeros(40, np.int64), np.eye(3)[None])
        curve = position_curve(versions, level=0.0)
        one = Comparison(curve, curve, curve)
        of = effect(rows[:, 0], np.arange(40), np.arange(40))
        compared: tuple[PlaceBlind, ...] = ()
        if blind is not None:
            its, rest = (
                position_curve(versions.of(rows[::-1] * noise + at * np.arange(3) + 0.5), level=0.0)
                for at, noise in ((blind, 1.0), (slope - blind, 0.5))
            )
            compared = (PlaceBlind(8, its, its, rest, rest, 0),)
        moved = MovedAnswers(one, one, one, one, of, of, None, 40, 40, 0, 0, compared)
        return SensitivityResult("x", 40, 40, 0, 0.5, words, fifths, moved, None, {}).summary()

    opposite, same = said(-0.2), said(0.2)
    assert (len(opposite), len(same)) == (5, 4)
    assert opposite[0].startswith("The model prefers early answers")
    assert "depends on the position of the answer as it stands: late answers do better" in opposite[3]
    assert "This is a correlation" in opposite[3]
    assert opposite[4].startswith("The two go opposite ways: the moved answers show what the place does")
    assert same[0].startswith("The model prefers late answers")
    assert said(0.0)[0].startswith("No preference shown: from the first place")
    # A scorer that cannot see places shows as much, or less, or the opposite.
    neighbours = said(-0.2, -0.2)
    assert len(neighbours) == 4
    assert neighbours[0].startswith("No preference for a place is shown: from the first place")
    assert neighbours[0].endswith("counts the query's words among 8 in a row, has slope -0.400.")
    assert neighbours[1].endswith("Neighbours play a part in this, too.")
    for blind in (-0.05, 0.2):
        assert said(-0.2, blind)[0].startswith("The model prefers early answers")
        assert "Beyond what scorers that cannot see places show: slope, first − last," in said(-0.2, blind)[0]


def test_answers_that_cannot_be_moved(home: Path) -> None:
    table = load_squad(home / "squad.json").passages()
    spans = read_answers(home / "squad.json")
    # Two sentences: W0 and the rest.
    texts = table.with_columns(pl.col("text").str.replace_all(".", "", literal=True).str.replace("W0", "W0."))
    found = sensitivity(home, Early(0.5), answers=spans, collection=texts)
    assert (found.moved, found.unmovable) == (None, 6)
    assert found.summary()[0].startswith("No answer could be moved, of 6 queries")
    assert "queries whose answer cannot be moved" in found.table()


def test_where_nothing_can_be_compared(home: Path, tmp_path: Path) -> None:
    def ask(i: int) -> dict[str, object]:
        text = f"w{i}"
        return {"context": text, "qas": [{"id": f"q{i}", "question": text, "answers": [{"text": text}]}]}

    # Passages of one word: every answer stands at the same place.
    (tmp_path / "one.json").write_text(json.dumps({"data": [{"paragraphs": [ask(i) for i in range(6)]}]}))
    rows = [(f"q{i}", str(j), float(i == j)) for i in range(6) for j in range(6)]
    write_run(Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")), tmp_path / "run")
    done = command("sensitivity", "--squad", tmp_path / "one.json", "--run", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "cannot be determined: all answers begin at the same word" in done.output
    assert "No slope: all answers are at the same position." in done.output
    assert "No index: all answers are in one range." in done.output
    # A run of other queries.
    other = Run.from_table(pl.DataFrame([("x", "d0", 1.0)], ["query_id", "doc_id", "score"], orient="row"), "other")
    write_run(other, tmp_path / "other")
    done = command("sensitivity", "--squad", home / "squad.json", "--run", tmp_path / "other")
    assert isinstance(done.exception, EvenrankError)
    assert str(done.exception) == "run other: expected queries with an answer, found none of the 6"
    # One of them alone: the others count 0, and it is said.
    own = pl.DataFrame([("q0", "d0", 1.0)], ["query_id", "doc_id", "score"], orient="row")
    write_run(Run.from_table(own), tmp_path / "own")
    done = command("sensitivity", "--squad", home / "squad.json", "--run", tmp_path / "own")
    assert "5 queries missing from the run, counted as 0" in done.output


def test_answers_are_put_right_in_the_collections_text(home: Path) -> None:
    # The collection writes single spaces where the file has two: the file's places are off.
    spans = read_answers(home / "squad.json")
    texts = load_squad(home / "squad.json").passages()
    single = texts.with_columns(pl.col("text").str.replace_all("  ", " "))
    found = sensitivity(home, Early(0.0), answers=spans, collection=single)
    assert found.relative.n.tolist() == [3, 2, 1, 0, 0]
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

    for module in ("position.moved_answers", "position.similarity", "rankers.scoring_job", "retrieval.bm25"):
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
    def piped(path: Path) -> str:
        reading, writing = os.pipe()
        os.write(writing, path.read_bytes())
        os.close(writing)
        return f"/dev/fd/{reading}"

    assert evenrank("data", "squad", home / "squad.json", "--to", home / "c").status == 0
    squad, run = home / "squad.json", home / "run"
    plain = evenrank("position", "sensitivity", "--squad", squad, "--run", run).out.splitlines()
    for one, other in ((piped(squad), run), (squad, piped(run))):
        done = evenrank("position", "sensitivity", "--squad", one, "--run", other)
        assert done.status == 0, done.err
        # All but the run's name in the title.
        assert done.out.splitlines()[1:] == plain[1:]
    names = {"collection": "collection.tsv", "queries": "queries.tsv", "qrels": "qrels.txt", "answers": "answers.json"}
    files = {f"--{name}": home / "c" / file for name, file in names.items()}
    for name in files:
        given = files | {name: piped(files[name])}
        done = evenrank("position", "sensitivity", "--run", run, *(part for pair in given.items() for part in pair))
        if name in ("--qrels", "--answers"):
            assert done.status == 0, done.err
        else:
            assert done.status == 2
            assert done.err.endswith(": expected a file, found a pipe: it may be read more than once\n")
