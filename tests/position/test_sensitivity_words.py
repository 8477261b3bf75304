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

from early_ranker import Early, collection_of, sensitivity
from evenrank.io import Run, write_run
from evenrank.io.squad import load_squad, read_answers
from evenrank.position.curves import Versions, position_curve
from evenrank.position.sensitivity import Curves, MovedAnswers, SensitivityResult, too_little_read, words_read


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Twenty questions on passages of nine to eleven sentences, the answer's at any place of its own."""
    paragraphs, run = [], []
    for i in range(20):
        before = i % 7
        words = [f"S{w}." for w in range(8 + i % 3)]
        context = " ".join([*words[:before], "The answer.", *words[before:]])
        answer = {"text": "The answer", "answer_start": context.index("The")}
        question = {"id": f"q{i}", "question": f"what is {i}", "answers": [answer]}
        paragraphs.append({"doc_id": f"d{i}", "context": context, "qas": [question]})
        run += [(f"q{i}", f"d{j % 20}", 1.0) for j in range(i, i + 4)]
    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
    write_run(Run.from_table(pl.DataFrame(run, ["query_id", "doc_id", "score"], orient="row")), tmp_path / "run")
    return tmp_path


def test_what_truncation_does_is_said(many: Path) -> None:
    def said(ranker: Early) -> str:
        result = sensitivity(many, ranker, places=5)
        table = result.table()
        assert not re.search(r"(^|\s)–(\s|$)", table)
        assert result.to_dict()["summary"] == list(result.summary())
        assert all(line in table for line in result.summary())
        return " ".join(result.summary())

    whole = said(Early(0.5))
    assert re.match(
        r"Later answers rank lower: -\d\.\d\d sd \[-.*\] from the first place of a passage to the last\. ", whole
    )
    assert "reads 20 of 20 answers to the end as they stand, and all at every place" in whole
    assert re.search(r"moved first \+\d\.\d+ sd \[.*\], moved last -\d\.\d+ sd \[", whole)
    assert said(Early(-0.5)).startswith("Later answers rank higher: +")
    flat = said(Early(0.0))
    assert flat.startswith("Cannot be told: the candidates of each query all have one score.")
    short = said(Early(0.5, reads=20))
    assert re.match(r"Cannot be told: \d+% of the words of 20 passages are read; cut passages to what the model", short)
    assert "rank lower" not in short
    assert " sd " not in short


def test_a_ranker_that_counts_tokens_says_how_many(many: Path) -> None:
    class Counting(Early):
        def facts(self) -> dict[str, object]:
            return {**super().facts(), "reads": 256}

    found = sensitivity(many, Counting(0.5, reads=20), places=5)
    assert "; cut passages to the 256 tokens that the model reads and try again." in found.summary()[0]
    moved = found.to_dict()["moved"]
    assert isinstance(moved, dict)
    for curve in (moved[name][side] for name in ("score", "rank", "nDCG@10") for side in ("answer", "difference")):
        for contrast in (curve["first_last"], curve["ends_middle"]):
            assert (contrast["verdict"], contrast["p"], contrast["why"][-9:]) == ("cannot be told", None, "try again")


def test_how_much_is_read() -> None:
    texts = pl.Series(["one two three", "four  five"])
    assert words_read(texts, np.array([7, 100])) == 4 / 5
    # A word of which the end is not read is not.
    assert words_read(texts, np.array([6, 9])) == 2 / 5
    assert too_little_read(0.95, 3, 8) is None
    assert too_little_read(None, 3, 8) is None
    why = too_little_read(0.9499, 3, 8)
    assert (
        why
        == "94% of the words of 3 passages are read; cut passages to the 8 tokens that the model reads and try again"
    )


def test_what_the_contrasts_say() -> None:
    rng = np.random.default_rng(0)
    rows = 0.1 * rng.normal(size=(40, 3))
    rows -= rows.mean(axis=0)

    def said(*shape: float, rows: np.ndarray = rows) -> tuple[str, ...]:
        versions = Versions(rows + np.array(shape) + 0.5, np.zeros(len(rows), np.int64), np.eye(3)[None])
        curve = position_curve(versions, level=0.0)
        one = Curves(curve, curve, curve)
        moved = MovedAnswers(one, one, one, one, curve.first_last, curve.first_last, None, 40, 40, 0, 0)
        found = SensitivityResult("x", 40, 40, 0, 0.5, moved, None, {}).summary()
        assert found[-1].startswith("How far the model reads is unknown")
        return found

    no_place = "No difference between early and late answers is shown: "
    no_middle = "No difference between answers at the ends and in the middle is shown: "
    for shape, first, second in (
        ((0.4, 0.2, 0), "Later answers rank lower: -0.40 sd [-0.4", no_middle),
        ((0, 0.2, 0.4), "Later answers rank higher: +0.40 sd [0.3", no_middle),
        ((0.4, 0, 0.2), "Later answers rank lower: -0.20", "Answers at the ends of a passage rank higher than in"),
        ((0, 0.2, 0), no_place, "Answers at the ends of a passage rank lower than in the middle: -0.20"),
        ((0, 0, 0), no_place, no_middle),
    ):
        found = said(*shape)
        assert found[0].startswith(first)
        assert found[1].startswith(second)
    assert re.search(r"; 0\.0\d would have been noticed\.$", said(0, 0, 0)[0])
    assert said(0, 0, 0, rows=0 * rows)[0] == f"{no_place}no score changes."
    few = said(0.4, 0.2, 0, rows=rows[:5])[0]
    assert few == "Cannot be told: only 5 passages say anything, where 15 are needed."


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
    position_similarity(str(tiny_bert(tmp_path / "bert")), collection=collection_of(tmp_path), min_pairs=1, min_terms=2)
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
