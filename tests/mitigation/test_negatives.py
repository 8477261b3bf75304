"""The files of negatives: what the command writes in each form, and the two examples."""

from __future__ import annotations

import itertools
import json
import math
import runpy
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenrank.groups import Scoring, load_lexicon, score_in_memory
from evenrank.mitigation import negative_sampling
from evenrank.mitigation.negatives import beta, candidates, sample, write_negatives
from negative_files import OPTIONS, TEXTS, run_text
from tiny_models import tiny_bert

# --- the command -----------------------------------------------------------------------------------------------------


def test_groups_and_manifest(files, evenrank):
    ended = evenrank("negatives", "r.run", *OPTIONS, "--out", "set.jsonl", "--n", 3, "--share", 0.7)
    assert (ended.status, ended.out) == (0, "")
    assert ended.err == (
        "2 queries, 4 biased and 1 random negatives: set.jsonl\n"
        "a share of 0.7 is rounded down to 2 of 3 (67%) of a query's negatives\n"
        "queries left out, without a judged relevant document: 1\n"
        "queries left out, without an unjudged document: 1\n"
        "queries with fewer than 3 unjudged documents: 1\n"
        "queries with fewer biased documents than the share asks for: 1\n"
    )
    first, second = map(json.loads, Path("set.jsonl").read_text().splitlines())
    # q1: d5 is relevant and d6 judged; of d3, d2, d1, d4 two are chosen by bias and one is drawn.
    assert first["query_id"] == "q1"
    assert first["doc_id"][:3] == ["d5", "d1", "d2"]
    assert first["doc_id"][3] in ("d3", "d4")
    assert first["label"] == [2, 0, 0, 0]
    assert first["group"] == [0, 1, -1, 0]
    # q2: two relevant documents, one of them not in the run; d1 and d5 are left.
    assert second == {
        "query_id": "q2",
        "doc_id": ["d6", "d2", "d1", "d5"],
        "label": [1, 1, 0, 0],
        "group": [0, -1, 1, 0],
    }
    manifest = json.loads(Path("set.jsonl.manifest.json").read_text())
    assert (
        manifest["settings"]
        | {
            "run": "r.run",
            "n": 3,
            "share": 0.7,
            "beta": "abs_tf",
            "depth": 1000,
            "gendered_only": False,
            "seed": 0,
            "format": "groups",
            "lexicon": "gender-en",
            "tokens": "word",
        }
        == manifest["settings"]
    )
    assert manifest["left_out"] == {"without_relevant": 1, "without_candidate": 1}
    assert (manifest["queries"], manifest["negatives"], manifest["rows"]) == (2, 5, 2)
    assert (manifest["biased"], manifest["random"]) == (4, 1)
    assert manifest["short"] == {"queries": 1, "negatives": 1}
    assert manifest["short_of_gendered"] == {"queries": 1, "negatives": 1}
    means = {
        "biased": (2 * math.log(4) + math.log(2)) / 4,
        "random": 0,
        "candidates": (2 * math.log(4) + math.log(2)) / 6,
    }
    assert manifest["mean_beta"] == pytest.approx(means, abs=1e-8)
    table = pl.read_parquet("set.jsonl.manifest.parquet")
    assert table.drop("beta_biased", "beta_random", "beta_candidates").rows() == [
        ("q1", 4, 2, 1, 0, 2),
        ("q2", 2, 2, 0, 1, 1),
    ]
    assert table["beta_biased"].to_list() == pytest.approx([math.log(8) / 2, math.log(4) / 2], abs=1e-8)
    assert table["beta_random"][0] == 0
    assert math.isnan(table["beta_random"][1])


def test_gendered_only_and_depth(files, evenrank):
    options = ("--out", "set.parquet", "--n", 3, "--share", 1, "--seed", 5)
    assert evenrank("negatives", "r.run", *OPTIONS, *options, "--gendered-only").status == 0
    table = pl.read_parquet("set.parquet.manifest.parquet")
    assert table.select("biased", "random").rows() == [(2, 1), (1, 1)]
    # The first three of q1 are d5, d3, d2.
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


def test_the_order_of_queries_changes_nothing_but_the_order(large, tmp_path):
    written(large, tmp_path / "one.parquet")
    written(large, tmp_path / "other.parquet", run=read(large).sort("query_id", descending=True, maintain_order=True))
    one, other = (pl.read_parquet(tmp_path / name).sort("query_id") for name in ("one.parquet", "other.parquet"))
    assert one.equals(other)


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
def test_the_formats_hold_the_same_sample(suffix, large, tmp_path, monkeypatch):

    # Parts of a few groups, as in a large file.
    monkeypatch.setattr("evenrank.mitigation.negatives._TEXTS", 50)
    tables = {}
    for format in ("groups", "labeled-list", "labeled-pair", "n-tuple"):
        out = tmp_path / f"{format}.{suffix}"
        done = written(large, out, format=format)
        tables[format] = pl.read_parquet(out) if suffix == "parquet" else pl.read_ndjson(out)
        assert done["rows"] == tables[format].height
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


def test_evenrank_train_reads_groups(large, tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from evenrank.training.lists import read_list_file

    for suffix in ("parquet", "jsonl"):
        done = written(large, tmp_path / f"set.{suffix}")
        assert read_list_file(tmp_path / f"set.{suffix}").height == done["queries"]


def test_datasets_reads_every_format(large, tmp_path):
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    for format, suffix in itertools.product(
        ("groups", "labeled-list", "labeled-pair", "n-tuple"), ("parquet", "jsonl")
    ):
        done = written(large, tmp_path / f"{format}.{suffix}", format=format)
        load = datasets.Dataset.from_parquet if suffix == "parquet" else datasets.Dataset.from_json
        dataset = load(str(tmp_path / f"{format}.{suffix}"), cache_dir=str(tmp_path / "cache"))
        assert len(dataset) == done["rows"]
        assert None not in dataset[0].values()


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
