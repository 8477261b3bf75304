"""Ties that a ranker's precision made: found, scored again in float32, and ordered in the file."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank
from evenrank.files import EvenrankError, Run, read_run, write_run

pytest.importorskip("torch", reason="needs the extra [neural]")

from evenrank.models.load import StoredRanker
from evenrank.models.rerank import ordered, pairs_of_texts, tied_pairs
from evenrank.models.scorers import Scorer, TextPairs
from tiny_models import texts, tiny_bert

ROUND = [0.0, -0.0, 1.0, -2.5, 0.3333, 1e-45, 65504.0, float(np.float32(0.1))]
ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(ROUND), st.integers(0, 4), st.floats(-4, 4, width=16)),
    min_size=2,
    max_size=40,
)


def given_pairs(rows: list[tuple[int, float, int, float]]) -> tuple[TextPairs, np.ndarray]:
    documents = [f"text {text}" for _, _, text, _ in rows]
    query = np.array([query for query, *_ in rows])
    queries = pl.Series([f"q{number}" for number in range(3)])
    pairs = TextPairs(query, np.arange(len(rows)), queries, pl.Series(documents))
    return pairs, np.array([score for _, score, _, _ in rows])


@given(ROWS)
def test_tied_pairs_are_those_of_different_texts(rows: list[tuple[int, float, int, float]]) -> None:
    pairs, scores = given_pairs(rows)
    found = tied_pairs(pairs, scores)
    slow = [
        (i, j)
        for i, j in itertools.combinations(range(len(rows)), 2)
        if rows[i][0] == rows[j][0] and rows[i][1] == rows[j][1] and rows[i][2] != rows[j][2]
    ]
    blocks = {(rows[i][0], rows[i][1]) for i, _ in slow}
    assert sorted(found["row"].to_list()) == [
        i for i, (query, score, *_) in enumerate(rows) if (query, score) in blocks
    ]
    assert pairs_of_texts(found, "score") == len(slow)


def resolved(rows: list[tuple[int, float, int, float]]) -> np.ndarray:
    """The scores to write, with ``below`` looked up one by one."""
    pairs, scores = given_pairs(rows)
    tied = tied_pairs(pairs, scores)
    below = [
        max((s for q, s, *_ in rows if q == query and s < score), default=-np.inf)
        for query, score in tied.select("query", "score").iter_rows()
    ]
    again = [rows[row][3] for row in tied["row"]]
    tied = ordered(
        tied.with_columns(again=pl.Series(again, dtype=pl.Float64), below=pl.Series(below, dtype=pl.Float64))
    )
    written = scores.copy()
    written[tied["row"].to_numpy()] = tied["written"].to_numpy()
    return written


@given(ROWS)
def test_written_scores_have_the_order_of_the_new_ones(rows: list[tuple[int, float, int, float]]) -> None:
    # Equal texts have equal scores.
    new = {(query, text): again for query, _, text, again in reversed(rows)}
    rows = [(query, score, text, new[query, text]) for query, score, text, _ in rows]
    written = resolved(rows)
    for i, j in itertools.combinations(range(len(rows)), 2):
        if rows[i][0] != rows[j][0]:
            continue
        before, again = rows[i][1] - rows[j][1], rows[i][3] - rows[j][3]
        wanted = np.sign(before) if before else np.sign(again)
        assert np.sign(written[i] - written[j]) == wanted, (rows[i], rows[j])
    for (query, score), block in itertools.groupby(
        sorted(range(len(rows)), key=lambda i: rows[i][:2]), lambda i: rows[i][:2]
    ):
        # The best of a block keeps its score.
        assert max(written[i] for i in block) == score, (query, score)


@given(ROWS)
def test_a_file_keeps_the_order(place: Path, rows: list[tuple[int, float, int, float]]) -> None:
    new = {(query, text): again for query, _, text, again in reversed(rows)}
    rows = [(query, score, text, new[query, text]) for query, score, text, _ in rows]
    written = resolved(rows)
    table = pl.DataFrame(
        {
            "query_id": [f"q{query}" for query, *_ in rows],
            "doc_id": [f"d{number:02}" for number in range(len(rows))],
            "score": written,
        }
    )
    run = Run.from_table(table)
    write_run(run, place / "r.run")
    read = read_run(place / "r.run").table
    assert read.select("query_id", "doc_id", "rank").equals(run.table.select("query_id", "doc_id", "rank"))
    assert read["score"].to_list() == run.table["score"].to_list()


def test_steps_are_of_float32_where_they_fit() -> None:
    one, next_ = float(np.float32(1)), float(np.nextafter(np.float32(1), np.float32(0)))
    rows = [(0, one, text, float(-text)) for text in range(3)]
    assert resolved(rows).tolist() == [one, next_, float(np.nextafter(np.float32(next_), np.float32(0)))]
    # Too narrow a gap below for two steps of float32.
    narrow = resolved([*rows, (0, next_, 3, 0.0)])
    assert narrow.tolist() == [one, np.nextafter(one, 0), np.nextafter(np.nextafter(one, 0), 0), next_]
    two = rows[:2]
    assert resolved([*two, (0, next_, 3, 0.0)]).tolist() == [one, np.nextafter(one, 0), next_]
    assert resolved([*two, (0, float(np.nextafter(one, 0)), 3, 0.0)])[:2].tolist() == [one] * 2
    # And for any step.
    shut = resolved([*rows, (0, float(np.nextafter(one, 0)), 3, 0.0)])
    assert shut[:3].tolist() == [one] * 3


# --- models ----------------------------------------------------------------------------------------------------------

COLLECTION = {f"d{i}": text for i, text in enumerate(texts(24, 12))} | {"same": texts(24, 12)[3]}
QUERIES = {"q0": "the doctor", "q1": "she runs"}
RUN = {query: {doc: -float(i) for i, doc in enumerate(COLLECTION)} for query in QUERIES}


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Rankers in bfloat16 round to whole numbers; the precisions in which models were loaded."""
    load, loaded = StoredRanker.load, []

    def rounding(self: StoredRanker) -> Scorer:
        scorer = load(self)
        loaded.append(self.precision)
        if self.precision == "bfloat16":
            bind = scorer.bind

            def rounded(*given: Any) -> Any:
                score = bind(*given)
                return lambda rows: np.rint(score(rows))

            monkeypatch.setattr(scorer, "bind", rounded)
        return scorer

    monkeypatch.setattr(StoredRanker, "load", rounding)
    return loaded


def rerank(model: Any, **settings: Any) -> Run:
    return evenrank.rerank(RUN, model=model, collection=COLLECTION, queries=QUERIES, quiet=True, **settings)


def test_ties_are_resolved_in_float32(tmp_path: Path, coarse: list[str]) -> None:
    model = tiny_bert(tmp_path / "tiny", head=True)
    rough = rerank(model, precision="bfloat16")
    exact = rerank(model, precision="float32").to_dict()
    coarse.clear()
    out = tmp_path / "out.run"
    result = rerank(model, precision="bfloat16", resolve_ties=True, out=out)
    assert coarse == ["bfloat16", "float32"]
    for query, first in rough.to_dict().items():
        # "same" and d3 have one text: they remain tied, by descending id.
        key = {doc: (first[doc], exact[query]["d3" if doc == "same" else doc], doc) for doc in first}
        wanted = sorted(first, key=lambda doc: key[doc], reverse=True)
        assert list(result.to_dict()[query]) == wanted
        assert list(read_run(out).to_dict()[query]) == wanted
    pairs = [
        (a, b)
        for first in rough.to_dict().values()
        for a, b in itertools.combinations(first, 2)
        if first[a] == first[b] and COLLECTION[a] != COLLECTION[b]
    ]
    assert len(pairs) > 20
    assert result.notes == (
        "tiny: cross-encoder, bfloat16, reads 64 tokens",
        f"tiny: of {len(pairs)} pairs of different texts with equal scores, float32 put {len(pairs)} in order; 0 remain"
        " equal",
    )
    assert read_run(out).card is not None
    expected = {"pairs": len(pairs), "remaining": 0, "from": "bfloat16", "in": "float32"}
    assert read_run(out).card["resolved_ties"] == expected  # type: ignore[index]


def test_in_float32_nothing_is_to_do(tmp_path: Path, coarse: list[str]) -> None:
    model = tiny_bert(tmp_path / "tiny", head=True)
    plain = rerank(model, precision="float32")
    coarse.clear()
    result = rerank(model, precision="float32", resolve_ties=True)
    assert coarse == ["float32"]
    assert result.table.equals(plain.table)
    assert result.notes[1:] == ("tiny computes in float32 already: none of its ties was scored again",)


def test_only_for_a_model_that_can_be_loaded_again() -> None:
    def constant(query: str, passages: list[str]) -> list[float]:
        return [1.0] * len(passages)

    with pytest.raises(EvenrankError) as caught:
        rerank(constant, resolve_ties=True)
    assert str(caught.value) == (
        "`resolve_ties`: expected a model given by its folder or its name on the hub, which can be loaded in float32,"
        " found constant"
    )


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coarse: list[str], evenrank: Any) -> None:
    monkeypatch.chdir(tmp_path)
    tiny_bert(tmp_path / "tiny", head=True)
    write_run(RUN, "first.run")
    for name, of in (("c.tsv", COLLECTION), ("q.tsv", QUERIES)):
        Path(name).write_text("".join(f"{key}\t{text}\n" for key, text in of.items()))
    options = ["--model", "tiny", "--collection", "c.tsv", "--queries", "q.tsv", "--out", "out.run", "--quiet"]
    refused = evenrank("rerank", "first.run", *options, "--listwise")
    assert refused.status == 2
    assert refused.err.startswith("evenrank: --listwise: expected a function or an endpoint")
    assert not Path("out.run").exists()
    ended = evenrank("rerank", "first.run", *options, "--precision", "bfloat16", "--resolve-ties")
    assert ended.status == 0
    expected = rerank(tmp_path / "tiny", precision="bfloat16", resolve_ties=True)
    assert all(note in ended.err for note in expected.notes)
    assert read_run("out.run").to_dict() == expected.to_dict()
    card = read_run("out.run").card or {}
    roles = [entry["role"] for entry in card["inputs"]]  # type: ignore[attr-defined]
    assert roles == ["run", "collection", "queries", "model"]
    assert "--resolve-ties" in str(card["command"])
