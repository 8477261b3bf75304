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
from evenrank.groups import Scoring, load_lexicon, score_in_memory
from evenrank.mitigation import negative_sampling
from evenrank.mitigation.negatives import beta, candidates, sample, write_negatives
from negative_files import OPTIONS, TEXTS, run_text
from tiny_models import tiny_bert

VARYING = ("provenance", "evenrank", "versions")
# --- the command -----------------------------------------------------------------------------------------------------


def test_groups_and_manifest(files, evenrank, snapshot):
    ended = evenrank("negatives", "r.run", *OPTIONS, "--out", "set.jsonl", "--n", 3, "--share", 0.7)
    assert (ended.status, ended.out) == (0, "")
    assert ended.err == snapshot
    assert ended.err.startswith("2 queries, 4 biased and 1 random negatives: set.jsonl\n")
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
    assert (manifest["biased"], manifest["random"], manifest["short"]["negatives"]) == (4, 1, 1)
    table = pl.read_parquet("set.jsonl.manifest.parquet")
    assert table.drop("beta_biased", "beta_random", "beta_candidates").rows() == [
        ("q1", 4, 2, 1, 0, 2),
        ("q2", 2, 2, 0, 1, 1),
    ]
    assert table["beta_biased"].to_list() == pytest.approx([math.log(8) / 2, math.log(4) / 2], abs=1e-8)
    assert table["beta_random"][0] == 0
    assert math.isnan(table["beta_random"][1])
    # Of those with group words alone, and of the first three of q1, which are d5, d3, d2.
    options = ("--out", "set.parquet", "--n", 3, "--share", 1, "--seed", 5)
    assert evenrank("negatives", "r.run", *OPTIONS, *options, "--gendered-only").status == 0
    table = pl.read_parquet("set.parquet.manifest.parquet")
    assert table.select("biased", "random").rows() == [(2, 1), (1, 1)]
    assert evenrank("negatives", "r.run", *OPTIONS, *options, "--depth", 3).status == 0
    assert pl.read_parquet("set.parquet")["doc_id"].to_list()[0] == ["d5", "d2", "d3"]


@pytest.mark.parametrize("kind", ["abs_tf", "count", "one_minus_neutrality"])
def test_scores_made_before_give_the_same(kind, files, evenrank):
    assert evenrank("score", "c.tsv", "--out", "s.parquet").status == 0
    options = ("--qrels", "qrels.txt", "--beta", kind, "--n", 2, "--share", 1)
    assert evenrank("negatives", "r.run", "--collection", "c.tsv", *options, "--out", "a.parquet").status == 0
    assert evenrank("negatives", "r.run", "--scores", "s.parquet", *options, "--out", "b.parquet").status == 0
    one, other = pl.read_parquet("a.parquet"), pl.read_parquet("b.parquet")
    assert one.equals(other)
    expected = {"abs_tf": ["d1", "d2"], "count": ["d1", "d4"], "one_minus_neutrality": ["d1", "d3"]}
    assert one["doc_id"][0].to_list() == ["d5", *expected[kind]]
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


@pytest.mark.parametrize("format", ["groups", "labeled-list"])
def test_how_the_run_is_given_and_divided_changes_nothing(format, large, tmp_path, monkeypatch):
    whole = written(large, tmp_path / "whole.parquet", format=format)
    expected = pl.read_parquet(tmp_path / "whole.parquet")
    assert expected.height == whole["queries"] > 50
    in_memory = written(large, tmp_path / "run.parquet", format=format, run=read(large))
    run = in_memory["provenance"]["files"][0]
    assert (run["note"], run["rows"]) == ("in memory", read(large).height)
    changed = {"settings": whole["settings"] | {"run": "run"}, "provenance": in_memory["provenance"]}
    assert in_memory == whole | changed
    assert pl.read_parquet(tmp_path / "run.parquet").equals(expected)
    for size in (1, 50, 1000):
        monkeypatch.setattr(negative_sampling, "_PART", size)
        assert written(large, tmp_path / "part.parquet", format=format) == whole
        assert pl.read_parquet(tmp_path / "part.parquet").equals(expected)
        assert pl.read_parquet(tmp_path / "part.parquet.manifest.parquet").equals(
            pl.read_parquet(tmp_path / "whole.parquet.manifest.parquet")
        )


def read(folder) -> pl.DataFrame:
    return pl.read_csv(
        folder / "r.run",
        separator=" ",
        has_header=False,
        new_columns=["query_id", "q0", "doc_id", "rank", "score", "tag"],
    )


def test_the_pieces_give_what_the_command_gives(large, tmp_path):
    from evenrank.files import read_qrels, read_queries, read_run

    written(large, tmp_path / "set.parquet", seed=4, share=0.5)
    found = pl.read_parquet(tmp_path / "set.parquet").explode("doc_id", "label", "group")
    texts = read_queries(large / "c.tsv").rename({"query_id": "doc_id"})
    scores = score_in_memory(texts, Scoring(load_lexicon()))
    bias = pl.DataFrame({"doc_id": scores.table["doc_id"], "beta": beta(scores)})
    table = candidates(read_run(large / "r.run").table, read_qrels(large / "qrels.txt"))
    drawn = sample(table.join(bias, on="doc_id", maintain_order="left"), n=8, share=0.5, seed=4)
    assert found.filter(pl.col("label") == 0).select("query_id", "doc_id").equals(drawn.select("query_id", "doc_id"))


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_the_formats_hold_the_same_sample_and_are_read(suffix, large, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from evenrank.training.lists import read_list_file

    load = datasets.Dataset.from_parquet if suffix == "parquet" else datasets.Dataset.from_json

    # Parts of a few groups, as in a large file.
    monkeypatch.setattr("evenrank.mitigation.negatives._TEXTS", 50)
    tables = {}
    for format in ("groups", "labeled-list", "labeled-pair", "n-tuple"):
        out = tmp_path / f"{format}.{suffix}"
        done = written(large, out, format=format)
        tables[format] = pl.read_parquet(out) if suffix == "parquet" else pl.read_ndjson(out)
        dataset = load(str(out), cache_dir=str(tmp_path / "cache"))
        assert done["rows"] == tables[format].height == len(dataset)
        assert None not in dataset[0].values()
    assert read_list_file(tmp_path / f"groups.{suffix}").height == done["queries"]
    texts = dict(line.split("\t") for line in (large / "c.tsv").read_text().splitlines())
    groups = [
        (f"the text of {query}", [texts[doc] for doc in docs], labels)
        for query, docs, labels in tables["groups"].select("query_id", "doc_id", "label").iter_rows()
    ]
    assert tables["labeled-list"].columns == ["query", "docs", "labels"]
    assert tables["labeled-list"].rows() == groups
    assert tables["labeled-pair"].columns == ["query", "passage", "label"]
    assert tables["labeled-pair"].rows() == [
        (query, doc, label) for query, docs, labels in groups for doc, label in zip(docs, labels, strict=True)
    ]
    assert tables["n-tuple"].columns == ["anchor", "positive", *(f"negative_{i}" for i in range(1, 9))]
    whole = [(query, *docs) for query, docs, _ in groups if len(docs) == 9]
    assert tables["n-tuple"].rows() == whole
    assert done["left_out"]["too_few_for_n_tuple"] == len(groups) - len(whole) > 0


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


# --- who reads it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cross_encoder", ["--loss", "lambda"]),
        ("sentence_transformer", []),
    ],
)
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


# --- bad input -------------------------------------------------------------------------------------------------------

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
    (f"{T} --tokens bytes", "--tokens: expected word or whitespace, found 'bytes'"),
    (f"{T} --lexicon none.toml", "--lexicon: no file and no built-in lexicon 'none.toml'"),
    (f"{T} --scores c.tsv", "c.tsv: no Parquet file that can be read"),
    (f"{T} --out set.csv", "--out: expected a name that ends in .parquet or .jsonl, found 'set.csv'"),
    (f"{T} --neutral N", "--neutral needs --labels"),
    ("", "the documents' texts, scores or labels are needed: give --collection, --scores or --labels"),
    ("--collection c.tsv --format labeled-list", "labeled-list: the queries' texts are needed: give --queries"),
    ("--scores s.parquet --tokens whitespace", f"--tokens: whitespace was asked for, {SCORED} with tokens word"),
    ("--scores l.parquet --lexicon gender-en", f"gender-en was asked for, {SCORED} from the labels l.csv, "),
    (f"{T} --collection one.tsv --scores s.parquet --format labeled-pair", "scored documents are not in one.tsv"),
    ("--labels l.csv --lexicon gender-en", "--labels: not with --lexicon"),
    ("--labels l.csv --tokens word", "--labels: not with --tokens"),
    ("--labels l.csv --threshold 0", "--labels: not with --threshold"),
    ("--labels l.csv --scores s", "--labels: not with --scores"),
    ("--labels l.csv --poles m,x", "--poles: expected two of f, m, none, rest (rest second), found 'm,x'"),
    (
        "--labels l.csv --group-column sex",
        "l.csv: there is no column 'sex' (--group-column) beside doc_id: found group",
    ),
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
    Path("l.csv").write_text("doc_id,group\nd1,m\nd2,f\nd3,none\nd4,m\nd4,f\n")
    Path("o.csv").write_text("doc_id,group\nx,m\ny,f\n")
    Path("one.tsv").write_text("d1\ttext\n")
    if ".parquet" in options:
        assert evenrank("score", "c.tsv", "--out", "s.parquet").status == 0
        assert evenrank("score", "--labels", "l.csv", "--out", "l.parquet").status == 0
    assert message in refused(options)
