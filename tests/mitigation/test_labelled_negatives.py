"""Negatives by labels of documents instead of words."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from evenrank.groups import as_labels, read_group_table
from evenrank.mitigation.negatives import beta, sample, write_negatives

LABELS = "doc_id,group\nd1,m\nd2,f\nd3,none\nd4,m\nd4,f\n"
"""Of ``negative_files``: d1 is of m, d2 of f, d4 of both, d3 neutral; nothing is known of d5 and d6."""


@pytest.fixture
def labelled(files: Path) -> Path:
    Path("l.csv").write_text(LABELS)
    return files


def test_bias_of_labels() -> None:
    table = as_labels({"a": {"m": 0.8, "f": 0.2}, "b": {"m": 0.3, "f": 0.3}, "c": {"m": 0.0, "f": 0.0}, "d": None})
    assert table.table["doc_id"].to_list() == ["a", "b", "c"]
    assert beta(table).tolist() == [0.6, 0, 0]
    assert beta(table, "count").tolist() == [1, 0.6, 0]
    # 1 − neutrality of shares .8 and .2 of 1: |.8 − .5| + |.2 − .5|.
    assert beta(table, "one_minus_neutrality").tolist() == [0.6, 0, 0]


@pytest.mark.parametrize("kind", ["abs_tf", "count", "one_minus_neutrality"])
def test_scores_made_of_labels_give_the_same(kind, labelled, evenrank) -> None:
    assert evenrank("score", "--labels", "l.csv", "--neutral", "none", "--out", "s.parquet").status == 0
    options = ("--qrels", "qrels.txt", "--beta", kind, "--n", 2, "--share", 1)
    given = ("--labels", "l.csv", "--neutral", "none")
    assert evenrank("negatives", "r.run", *given, *options, "--out", "a.parquet").status == 0
    ended = evenrank("negatives", "r.run", "--scores", "s.parquet", *options, "--out", "b.parquet")
    assert "candidates without a label: 1 of 6 (1 query)" in ended.err
    one = pl.read_parquet("a.parquet")
    assert one.equals(pl.read_parquet("b.parquet"))
    expected = {"abs_tf": ["d2", "d1"], "count": ["d2", "d1"], "one_minus_neutrality": ["d2", "d1"]}
    assert one["doc_id"][0].to_list() == ["d5", *expected[kind]]


def test_poles_swapped_give_the_opposite_signs(labelled) -> None:
    groups = {}
    for poles in ("m,f", "f,m"):
        write_negatives("r.run", out="s.parquet", qrels="qrels.txt", labels="l.csv", neutral=["none"], poles=poles)
        groups[poles] = pl.read_parquet("s.parquet").explode("doc_id", "label", "group")
    assert groups["m,f"]["doc_id"].equals(groups["f,m"]["doc_id"])
    assert groups["m,f"]["group"].equals(-groups["f,m"]["group"])
    assert set(groups["m,f"]["group"]) == {-1, 0, 1, None}


# --- evenrank score --------------------------------------------------------------------------------------------------


def test_labels_as_scores(labelled, evenrank) -> None:
    ended = evenrank("score", "--labels", "l.csv", "--neutral", "none", "--out", "s.parquet")
    assert (ended.status, ended.out, ended.err) == (0, "", "4 documents labelled: s.parquet\n")
    table = read_group_table("s.parquet")
    assert (table.labelled, table.groups, table.poles, table.settings["threshold"]) == (True, ("f", "m"), ("m", "f"), 0)
    direct = as_labels("l.csv", neutral=["none"])
    assert table.table.equals(direct.table)
    assert table.settings == direct.settings
    assert table.table.select("doc_id", "count_f", "count_m", "neutrality").rows() == [
        ("d1", 0.0, 1.0, 0.0),
        ("d2", 1.0, 0.0, 0.0),
        ("d3", 0.0, 0.0, 1.0),
        ("d4", 0.5, 0.5, 1.0),
    ]
    first = Path("s.parquet").read_bytes()
    assert evenrank("score", "--labels", "l.csv", "--neutral", "none", "--out", "s.parquet").status == 0
    assert Path("s.parquet").read_bytes() == first
    # Of a collection, those of its documents alone.
    Path("l.csv").write_text(LABELS + "x,m\ny,f\n")
    ended = evenrank("score", "c.tsv", "--labels", "l.csv", "--neutral", "none", "--out", "s.parquet")
    assert (ended.status, ended.err) == (0, "4 documents of 6 have a label: s.parquet\n")
    assert read_group_table("s.parquet").table["doc_id"].to_list() == ["d1", "d2", "d3", "d4"]


def test_the_command_with_labels(labelled, evenrank, snapshot) -> None:
    options = ("--qrels", "qrels.txt", "--labels", "l.csv", "--neutral", "none", "--n", 3, "--share", 0.7)
    ended = evenrank("negatives", "r.run", *options, "--out", "set.jsonl")
    assert (ended.status, ended.out) == (0, "")
    assert ended.err == snapshot
    assert "candidates without a label: 1 of 6 (1 query); never chosen for their bias, 1 drawn at random" in ended.err
    first, second = map(json.loads, Path("set.jsonl").read_text().splitlines())
    # q1: of d3 (0), d2 (1), d1 (1), d4 (0) the two of weight 1, the earlier first; of d5 nothing is known.
    assert (first["doc_id"][:3], first["group"][:3]) == (["d5", "d2", "d1"], [None, -1, 1])
    # q2: d1 for its bias; d5, of which nothing is known, at random.
    assert (second["doc_id"], second["group"]) == (["d6", "d2", "d1", "d5"], [None, -1, 1, None])
    manifest = json.loads(Path("set.jsonl.manifest.json").read_text())
    files = manifest.pop("provenance")["files"]
    assert [(file["role"], len(file["sha256"])) for file in files] == [("run", 64), ("qrels", 64), ("labels", 64)]
    assert manifest["unknown"] == {"queries": 1, "candidates": 1, "negatives": 1}
    assert manifest["mean_beta"] == {"biased": 1, "random": 0, "candidates": 3 / 5}
    assert {name: value for name, value in manifest.items() if name not in ("evenrank", "versions")} == snapshot
    table = pl.read_parquet("set.jsonl.manifest.parquet")
    assert table.select("candidates", "biased", "random", "gendered", "unknown", "unknown_random").rows() == [
        (4, 2, 1, 2, 0, 0),
        (2, 1, 1, 1, 1, 1),
    ]
    # The texts of documents without a label are there all the same.
    texts = ("--collection", "c.tsv", "--queries", "q.tsv", "--format", "labeled-list")
    assert evenrank("negatives", "r.run", *options, *texts, "--out", "set.jsonl").err == ended.err
    docs = json.loads(Path("set.jsonl").read_text().splitlines()[1])["docs"]
    assert docs == ["a dog", "she", "He and he and he", "the answer"]


def test_an_unknown_bias_is_never_chosen_and_may_be_drawn() -> None:
    table = pl.DataFrame({"query_id": ["q"] * 4, "doc_id": list("abcd"), "beta": [None, 0.0, None, 0.5]})
    for seed in range(20):
        drawn = sample(table, n=3, share=1, seed=seed)
        # Of three wanted for their bias, two are known; the third is one of the others.
        assert drawn.filter("biased")["doc_id"].to_list() == ["d", "b"]
        assert drawn.filter(~pl.col("biased"))["doc_id"].to_list() in (["a"], ["c"])
        only = sample(table, n=3, share=1, seed=seed, gendered_only=True)
        assert only.filter("biased")["doc_id"].to_list() == ["d"]


# --- evenrank score: refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--labels l.csv --lexicon gender-en", "--labels: not with --lexicon"),
        ("--labels l.csv --tokens word", "--labels: not with --tokens"),
        ("--labels l.csv --threshold 1", "--labels: not with --threshold"),
        ("--labels l.csv --magnitudes tf", "--labels: not with --magnitudes"),
        ("--labels l.csv --engine ray", "--engine: not with --labels"),
        ("--labels l.csv --poles m,x", "--poles: expected two of f, m, none, rest"),
        ("c.tsv --labels o.csv", "o.csv: knows none of the documents: it has 'x', 'y'; asked for 'd1', 'd2'"),
        ("c.tsv --group-column g", "--group-column needs --labels"),
        ("", "expected COLLECTION or --labels"),
    ],
)
def test_scoring_refused(options, message, labelled, evenrank) -> None:
    Path("o.csv").write_text("doc_id,group\nx,m\ny,f\n")
    ended = evenrank("score", *options.split(), "--out", "s.parquet")
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(f"evenrank: {message}")
    assert not Path("s.parquet").exists()
