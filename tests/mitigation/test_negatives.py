"""The files of negatives: what the command writes in each form, and the two examples."""

from __future__ import annotations

import json
import math
import runpy
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import given_data
from evenrank.groups import as_labels, read_group_table
from evenrank.mitigation import negative_sampling
from evenrank.mitigation.negatives import beta, write_negatives
from negative_files import LISTS, OPTIONS, QRELS, TEXTS, run_text
from tiny_models import tiny_bert

LABELS = "doc_id,group\nd1,m\nd2,f\nd3,none\nd4,m\nd4,f\n"
"""Of ``negative_files``: d1 is of m, d2 of f, d4 of both, d3 neutral; nothing is known of d5 and d6."""
VARYING = ("provenance", "evenrank", "versions")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the case, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("c.tsv").write_text("".join(f"{doc}\t{text}\n" for doc, text in TEXTS.items()))
    Path("q.tsv").write_text("".join(f"{query}\ttext of {query}\n" for query in LISTS))
    Path("qrels.txt").write_text("".join(f"{line}\n" for line in QRELS))
    Path("r.run").write_text(run_text(LISTS))
    return tmp_path


@pytest.fixture
def labelled(files: Path) -> Path:
    Path("l.csv").write_text(LABELS)
    return files


def test_groups_and_manifest(files, evenrank, snapshot):
    ended = evenrank("negatives", "r.run", *OPTIONS, "--out", "set.jsonl", "--n", 3, "--share", 0.7)
    assert (ended.status, ended.out) == (0, "")
    assert ended.err == snapshot
    first, second = map(json.loads, Path("set.jsonl").read_text().splitlines())
    # q1: d5 is relevant and d6 judged; of d3, d2, d1, d4 two are chosen by bias and one is drawn.
    assert (first["query_id"], first["doc_id"][:3]) == ("q1", ["d5", "d1", "d2"])
    assert first["doc_id"][3] in ("d3", "d4")
    assert (first["label"], first["group"]) == ([2, 0, 0, 0], [0, 1, -1, 0])
    # q2: two relevant documents, one of them not in the run; d1 and d5 are left.
    assert (second["query_id"], second["doc_id"]) == ("q2", ["d6", "d2", "d1", "d5"])
    assert (second["label"], second["group"]) == ([1, 1, 0, 0], [0, -1, 1, 0])
    manifest = json.loads(Path("set.jsonl.manifest.json").read_text())
    biased, average = (2 * math.log(4) + math.log(2)) / 4, (2 * math.log(4) + math.log(2)) / 6
    means = {"biased": biased, "random": 0, "candidates": average}
    assert manifest.pop("mean_beta") == pytest.approx(means, abs=1e-8)
    assert {name: value for name, value in manifest.items() if name not in VARYING} == snapshot
    table = pl.read_parquet("set.jsonl.manifest.parquet")
    counts = table.drop("beta_biased", "beta_random", "beta_candidates")
    assert counts.rows() == [("q1", 4, 2, 1, 0, 2), ("q2", 2, 2, 0, 1, 1)]
    assert table["beta_biased"].to_list() == pytest.approx([math.log(8) / 2, math.log(4) / 2], abs=1e-8)
    assert table["beta_random"][0] == 0
    assert math.isnan(table["beta_random"][1])
    # Of those with group words alone, of the first three of q1, which are d5, d3, d2.
    options = ("--out", "set.parquet", "--n", 3, "--share", 1, "--gendered-only", "--depth", 3)
    assert evenrank("negatives", "r.run", *OPTIONS, *options).status == 0
    assert pl.read_parquet("set.parquet.manifest.parquet").select("biased", "random").rows() == [(1, 1), (1, 1)]
    assert pl.read_parquet("set.parquet")["doc_id"].to_list()[0] == ["d5", "d2", "d3"]


def test_scores_made_before_give_the_same(files, evenrank):
    assert evenrank("score", "c.tsv", "--out", "s.parquet").status == 0
    options = ("--qrels", "qrels.txt", "--beta", "count", "--n", 2, "--share", 1)
    assert evenrank("negatives", "r.run", "--collection", "c.tsv", *options, "--out", "a.parquet").status == 0
    assert evenrank("negatives", "r.run", "--scores", "s.parquet", *options, "--out", "b.parquet").status == 0
    one, other = pl.read_parquet("a.parquet"), pl.read_parquet("b.parquet")
    assert one.equals(other)
    assert one["doc_id"][0].to_list() == ["d5", "d1", "d4"]
    # Without the words' magnitudes nothing says the bias labels.
    assert evenrank("score", "c.tsv", "--out", "s.parquet", "--magnitudes", "tf").status == 0
    assert evenrank("negatives", "r.run", "--scores", "s.parquet", *options, "--out", "b.parquet").status == 0
    assert pl.read_parquet("b.parquet").equals(one.drop("group"))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Sixty queries with lists of up to 40 documents."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    words = ["he", "she", "cat", "dog", "\u00e9t\u00e9", "a"]
    texts = {f"doc-number-{i:04}": " ".join(rng.choice(words, 6)) for i in range(300)}
    (folder / "c.tsv").write_text("".join(f"{doc}\t{text}\n" for doc, text in texts.items()))
    lists = {f"a-rather-long-query-{q}": rng.choice(list(texts), rng.integers(1, 40), replace=False) for q in range(60)}
    (folder / "q.tsv").write_text("".join(f"{query}\tthe text of {query}\n" for query in lists))
    (folder / "r.run").write_text(run_text(lists))
    judged = [f"{query} 0 {rng.choice(docs)} {grade}\n" for query, docs in lists.items() for grade in (1,)]
    (folder / "qrels.txt").write_text("".join(judged))
    return folder


def written(folder, out, **settings):
    arguments = {"collection": folder / "c.tsv", "queries": folder / "q.tsv", "qrels": folder / "qrels.txt", "n": 8}
    return write_negatives(settings.pop("run", folder / "r.run"), out=out, **(arguments | settings))


def test_a_run_in_parts_has_the_same_negatives(large, tmp_path, monkeypatch):
    whole = written(large, tmp_path / "whole.parquet")
    names = [f"{{}}.parquet{ending}" for ending in ("", ".manifest.parquet")]
    expected = [pl.read_parquet(tmp_path / name.format("whole")) for name in names]
    for size in (1, 50):
        monkeypatch.setattr(negative_sampling, "_PART", size)
        assert written(large, tmp_path / "part.parquet") == whole
        assert all(pl.read_parquet(tmp_path / n.format("part")).equals(e) for n, e in zip(names, expected, strict=True))


@pytest.mark.parametrize("format", ["groups", "labeled-list", "labeled-pair", "n-tuple"])
def test_each_format_is_the_same_in_parts_and_as_lines(format, large, tmp_path, monkeypatch):
    done = written(large, tmp_path / "set.parquet", format=format)
    table = pl.read_parquet(tmp_path / "set.parquet")
    assert done["rows"] == table.height > 20
    # Parts of a few groups, as in a large file.
    monkeypatch.setattr("evenrank.mitigation.negatives._TEXTS", 50)
    written(large, tmp_path / "set.jsonl", format=format)
    assert pl.read_ndjson(tmp_path / "set.jsonl").rows() == table.rows()
    if format == "groups":
        pytest.importorskip("torch", reason="PyTorch is not installed")
        from evenrank.training.lists import read_list_file

        assert read_list_file(tmp_path / "set.jsonl").height == done["queries"]
    if format == "n-tuple":
        assert table.columns == ["anchor", "positive", *(f"negative_{i}" for i in range(1, 9))]
        assert done["left_out"]["too_few_for_n_tuple"] == done["queries"] - table.height > 0


def test_several_relevant_documents(files, evenrank):
    for format, out in (("n-tuple", "t.parquet"), ("labeled-pair", "p.parquet"), ("labeled-list", "l.parquet")):
        options = ("--n", 2, "--share", 1, "--format", format)
        assert evenrank("negatives", "r.run", *OPTIONS, *options, "--out", out).status == 0
    he = TEXTS["d1"]
    # A row for each; pairs are 1 or 0, lists keep the grade.
    assert pl.read_parquet("t.parquet").rows() == [
        ("text of q1", TEXTS["d5"], he, "she"),
        ("text of q2", TEXTS["d6"], he, TEXTS["d5"]),
        ("text of q2", "she", he, TEXTS["d5"]),
    ]
    assert pl.read_parquet("p.parquet")["label"].to_list() == [1, 0, 0, 1, 1, 0, 0]
    assert pl.read_parquet("l.parquet")["labels"].to_list() == [[2, 0, 0], [1, 1, 0, 0]]


@pytest.mark.parametrize(("name", "options"), [("cross_encoder", ["--loss", "lambda"]), ("sentence_transformer", [])])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_examples(name, options, tmp_path, monkeypatch, capsys):
    pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
    pytest.importorskip("datasets", reason="datasets is not installed")
    script = Path(__file__).parents[2] / "examples" / f"negatives_{name}.py"
    small = ["--passages", "300", "--steps", "3", "--n", "3", "--max-length", "32"]
    files = ["--model", str(tiny_bert(tmp_path / "bert")), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", [str(script), *files, *small, *options])
    runpy.run_path(str(script), run_name="__main__")
    loss = float(capsys.readouterr().out.rpartition("loss ")[2])
    assert math.isfinite(loss)
    assert loss > 0
    assert (tmp_path / "out" / "model" / "model.safetensors").exists()
    manifest = json.loads((tmp_path / "out" / "train.parquet.manifest.json").read_text())
    assert manifest["mean_beta"]["biased"] > manifest["mean_beta"]["random"]


def test_given_in_memory(tmp_path):
    done = write_negatives(
        given_data.RUN, out=tmp_path / "n.jsonl", collection=given_data.TEXTS, qrels=given_data.QRELS
    )
    assert done["queries"] == pl.read_ndjson(tmp_path / "n.jsonl").height == 2


CHANGED = [
    ("r.run", "q1 Q0 d1 1 2\n", "r.run, line 1: expected 6 fields (query_id, Q0, doc_id, rank, score, tag)"),
    ("r.run", run_text({"q1": ["x", "d1", "y"]}), "2 documents of the run r.run are not in c.tsv: 'x', 'y'"),
    ("qrels.txt", "q1 0 z 1\n", "1 judged relevant documents are not in c.tsv: 'z'"),
    ("qrels.txt", "q1 0 d5 0\n", "run r.run: no query has both a judged relevant document and an unjudged"),
    ("q.tsv", "q1\ttext\n", "3 queries of the run r.run have no text: 'q2', 'q3', 'q4'"),
]
T = " ".join(OPTIONS)
SCORED = "but the scores were made"
REFUSED = [
    (f"{T} --beta tf", "expected abs_tf, count or one_minus_neutrality, found 'tf'"),
    (f"{T} --format triplet", "--format: expected groups, labeled-list, labeled-pair or n-tuple, found"),
    (f"{T} --format n-tuple --n 9", "--format n-tuple: no query has 9 negatives"),
    (f"{T} --out set.csv", "--out: expected a name that ends in .parquet or .jsonl, found 'set.csv'"),
    (f"{T} --neutral N", "--neutral needs --labels"),
    ("", "the documents' texts, scores or labels are needed: give --collection, --scores or --labels"),
    ("--collection c.tsv --format labeled-list", "labeled-list: the queries' texts are needed: give --queries"),
    ("--scores s.parquet --tokens whitespace", f"--tokens: whitespace was asked for, {SCORED} with tokens word"),
    ("--scores l.parquet --lexicon gender-en", f"gender-en was asked for, {SCORED} from the labels l.csv, "),
    (f"{T} --collection one.tsv --scores s.parquet --format labeled-pair", "scored documents are not in one.tsv"),
    ("--labels l.csv --lexicon gender-en", "--labels: not with --lexicon"),
    ("--labels l.csv --scores s", "--labels: not with --scores"),
    ("--labels l.csv --poles m,x", "--poles: expected two of f, m, none, rest (rest second), found 'm,x'"),
    ("--labels o.csv", "run r.run: the labels know none of its 6 candidates"),
]


@pytest.fixture
def refused(files, evenrank):
    """Runs the command, which must end in one line and write nothing; returns the line."""

    def run(options):
        before = sorted(files.iterdir())
        ended = evenrank("negatives", "r.run", "--qrels", "qrels.txt", "--out", "set.jsonl", *options.split())
        assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
        assert ended.err.startswith("evenrank: ")
        assert sorted(files.iterdir()) == before
        return ended.err

    return run


@pytest.mark.parametrize(("file", "content", "message"), CHANGED)
def test_files_refused(file, content, message, refused):
    Path(file).write_text(content)
    assert message in refused(T)


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_options_refused(options, message, refused, evenrank):
    Path("l.csv").write_text(LABELS)
    Path("o.csv").write_text("doc_id,group\nx,m\ny,f\n")
    Path("one.tsv").write_text("d1\ttext\n")
    if ".parquet" in options:
        assert evenrank("score", "c.tsv", "--out", "s.parquet").status == 0
        assert evenrank("score", "--labels", "l.csv", "--out", "l.parquet").status == 0
    assert message in refused(options)


def test_bias_of_labels() -> None:
    table = as_labels({"a": {"m": 0.8, "f": 0.2}, "b": {"m": 0.3, "f": 0.3}, "c": {"m": 0.0, "f": 0.0}, "d": None})
    assert table.table["doc_id"].to_list() == ["a", "b", "c"]
    assert beta(table).tolist() == [0.6, 0, 0]
    assert beta(table, "count").tolist() == [1, 0.6, 0]
    # 1 − neutrality of shares .8 and .2 of 1: |.8 − .5| + |.2 − .5|.
    assert beta(table, "one_minus_neutrality").tolist() == [0.6, 0, 0]


def test_labels_as_scores(labelled, evenrank) -> None:
    ended = evenrank("score", "--labels", "l.csv", "--neutral", "none", "--out", "s.parquet")
    assert (ended.status, ended.out, ended.err) == (0, "", "4 documents labelled: s.parquet\n")
    table = read_group_table("s.parquet")
    direct = as_labels("l.csv", neutral=["none"])
    assert table.table.equals(direct.table)
    assert (table.labelled, table.poles, table.settings) == (True, ("m", "f"), direct.settings)
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
    assert {name: value for name, value in manifest.items() if name not in VARYING} == snapshot
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
