"""Bias-aware negative sampling: the method, the files it writes, what bad input gets, the two examples."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from evenrank.groups import Scoring, load_lexicon, score_in_memory
from evenrank.io import EvenrankError, Run
from evenrank.mitigation.negatives import beta, candidates, sample, write_negatives
from tiny_models import tiny_bert

MASK = (1 << 64) - 1
TEXTS = {"d1": "He and he and he", "d2": "she", "d3": "a cat", "d4": "he or she", "d5": "the answer", "d6": "a dog"}
LISTS = {"q1": ["d5", "d3", "d2", "d1", "d4", "d6"], "q2": ["d1", "d6", "d5"], "q3": ["d1"], "q4": ["d2"]}
QRELS = ["q1 0 d5 2", "q1 0 d6 0", "q2 0 d6 1", "q2 0 d2 1", "q4 0 d2 1"]


# --- a slow, obvious version -----------------------------------------------------------------------------------------


def mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def hashed(text: str) -> int:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return mix(value)


def random_key(seed: int, query: str, doc: str) -> int:
    return mix(mix(mix((seed + 0x9E3779B97F4A7C15) & MASK) ^ hashed(query)) ^ hashed(doc))


def slow(query, docs, bias, n, share, gendered_only, seed):
    """[(document, biased)]: S_q by sorting, then the others by their random key."""
    chosen = sorted(docs, key=lambda doc: (-bias[doc], docs.index(doc)))[:n][: math.floor(share * n + 1e-9)]
    if gendered_only:
        chosen = [doc for doc in chosen if bias[doc] > 0]
    rest = sorted((doc for doc in docs if doc not in chosen), key=lambda doc: random_key(seed, query, doc))
    return [(doc, True) for doc in chosen] + [(doc, False) for doc in rest[: n - len(chosen)]]


def table_of(lists, bias) -> pl.DataFrame:
    rows = [(query, doc, bias[doc]) for query, docs in lists.items() for doc in docs]
    return pl.DataFrame(rows, schema={"query_id": pl.String, "doc_id": pl.String, "beta": pl.Float64}, orient="row")


IDS = st.text("ab1é ", max_size=20)
CASES = st.fixed_dictionaries(
    {
        "lists": st.dictionaries(IDS, st.lists(IDS, min_size=1, max_size=12, unique=True), max_size=4),
        "biases": st.lists(st.sampled_from([0.0, 0.0, 0.5, 0.5, 1.0, 2.0]), min_size=40, max_size=40),
        "n": st.integers(1, 14),
        "share": st.sampled_from([0, 0.2, 0.4, 0.6, 0.8, 1, 0.35]),
        "gendered_only": st.booleans(),
        "seed": st.integers(0, MASK),
    }
)


@given(CASES)
def test_the_slow_version_says_the_same(case):
    docs = list(dict.fromkeys(itertools.chain(*case["lists"].values())))
    bias = dict(zip(docs, itertools.cycle(case["biases"]), strict=False))
    settings = {name: case[name] for name in ("n", "share", "gendered_only", "seed")}
    drawn = sample(table_of(case["lists"], bias), **settings)
    expected = {query: slow(query, docs, bias, **settings) for query, docs in case["lists"].items()}
    assert {
        query: [(doc, biased) for of, doc, _, biased in drawn.iter_rows() if of == query] for query in expected
    } == expected
    assert drawn.height == sum(map(len, expected.values()))


# --- the method ------------------------------------------------------------------------------------------------------


def scored(**settings):
    texts = pl.DataFrame({"doc_id": list(TEXTS), "text": list(TEXTS.values())})
    return score_in_memory(texts, Scoring(load_lexicon(), **settings))


def test_beta_by_hand():
    scores = scored()
    # d1: three words of one group; d2: one; d4: one of each.
    assert beta(scores).tolist() == pytest.approx([math.log(4), math.log(2), 0, 0, 0, 0], abs=1e-9)
    assert beta(scores, "count").tolist() == [3, 1, 0, 2, 0, 0]
    # One word is neutral up to the threshold of 1, and so are balanced words.
    assert beta(scores, "one_minus_neutrality").tolist() == [1, 0, 0, 0, 0, 0]
    assert beta(scored(threshold=0), "one_minus_neutrality").tolist() == [1, 1, 0, 0, 0, 0]
    with pytest.raises(EvenrankError, match="`beta`: expected one of abs_tf, count"):
        beta(scores, "tf")  # type: ignore[arg-type]


def test_equal_biases_are_equal_whatever_their_counts():
    # ln 6 − ln 3 and ln 2 − ln 1 differ in the last place.
    assert math.log1p(5) - math.log1p(2) != math.log1p(1)
    texts = pl.DataFrame({"doc_id": ["a", "b"], "text": ["he " * 5 + "she " * 2, "he"]})
    first, second = beta(score_in_memory(texts, Scoring(load_lexicon())))
    assert first == second > 0


def test_candidates_are_the_unjudged_of_the_first_depth():
    run = Run.from_table(
        pl.DataFrame({"query_id": ["q", "q", "q", "q", "r"], "doc_id": list("abcda"), "score": [4.0, 3, 2, 1, 1]})
    )
    qrels = pl.DataFrame({"query_id": ["q", "q", "s"], "doc_id": ["b", "d", "a"], "relevance": [0, 1, 1]})
    assert candidates(run.table, qrels, 3).select("query_id", "doc_id").rows() == [("q", "a"), ("q", "c"), ("r", "a")]


def test_by_hand():
    table = table_of({"q": ["d3", "d2", "d1", "d4", "d6"]}, dict(zip(TEXTS, beta(scored()).tolist(), strict=True)))

    def docs(biased=None, **settings):
        drawn = sample(table, **settings)
        return [row[1] for row in drawn.iter_rows() if biased is None or row[3] == biased]

    # Two of the largest bias; then the first of those without.
    assert docs(n=3, share=1) == ["d1", "d2", "d3"]
    assert docs(True, n=3, share=0.6) == ["d1"]
    assert docs(True, n=5, share=0.6) == ["d1", "d2", "d3"]
    assert docs(True, n=3, share=1, gendered_only=True) == ["d1", "d2"]
    assert len(docs(False, n=3, share=1, gendered_only=True)) == 1
    assert docs(True, n=3, share=0) == []
    assert sorted(docs(n=20)) == ["d1", "d2", "d3", "d4", "d6"]
    assert docs(True, n=20) == ["d1", "d2", "d3", "d4", "d6"]


def test_a_share_times_n_is_not_cut_by_rounding():
    assert 0.6 * 20 == 12
    assert 0.29 * 100 < 29
    table = table_of({"q": [str(i) for i in range(300)]}, {str(i): 1.0 for i in range(300)})
    for n, share, expected in ((20, 0.6, 12), (100, 0.29, 29), (100, 0.57, 57), (10, 0.3, 3)):
        assert sample(table, n=n, share=share)["biased"].sum() == expected


def test_a_smaller_share_draws_what_a_larger_one_drew_at_random():
    lists = {str(q): [f"{q}-{i}" for i in range(50)] for q in range(20)}
    bias = {doc: hash_free for docs in lists.values() for hash_free, doc in enumerate(docs)}
    table = table_of(lists, {doc: float(value % 7) for doc, value in bias.items()})
    larger, smaller = (sample(table, n=10, share=share) for share in (0.6, 0.4))
    at_random = larger.filter(~pl.col("biased")).select("query_id", "doc_id")
    assert at_random.join(smaller.filter(~pl.col("biased")), on=["query_id", "doc_id"]).height == at_random.height


def test_the_random_part_is_uniform_over_seeds_and_over_queries():
    docs = ["a", "b", "c", "d", "e", "f"]
    bias = {doc: float(doc == "c") for doc in docs}
    pairs = [frozenset(pair) for pair in itertools.combinations([doc for doc in docs if doc != "c"], 2)]
    drawn: Counter[frozenset[str]] = Counter()
    firsts: Counter[str] = Counter()
    lists = {str(query): docs for query in range(100)}
    for seed in range(100):
        part = sample(table_of(lists, bias), n=3, share=0.4, seed=seed)
        found = np.array(part.filter(~pl.col("biased"))["doc_id"]).reshape(-1, 2)
        drawn.update(map(frozenset, found))
        firsts.update(found[:, 0])
    assert set(drawn) == set(pairs)
    assert chisquare([drawn[pair] for pair in pairs]).pvalue > 1e-3
    assert chisquare(list(firsts.values())).pvalue > 1e-3
    # One query over many seeds, one seed over many queries.
    one = [sample(table_of({"q": docs}, bias), n=1, share=0, seed=seed)["doc_id"][0] for seed in range(1200)]
    many = sample(table_of({str(query): docs for query in range(12000)}, bias), n=1, share=0, seed=7)["doc_id"]
    for found in (one, many.to_list()):
        assert chisquare(list(Counter(found).values())).pvalue > 1e-3
        assert len(set(found)) == 6


def test_a_draw_depends_on_seed_query_and_documents_alone():
    lists = {str(q): [str(i) for i in range(q, q + 30)] for q in range(8)}
    bias = {str(i): float(i % 3) for i in range(40)}
    whole = sample(table_of(lists, bias), n=6, share=0.5, seed=3)
    assert whole.equals(sample(table_of(lists, bias), n=6, share=0.5, seed=3))
    turned = sample(table_of(dict(reversed(lists.items())), bias), n=6, share=0.5, seed=3)
    for query in lists:
        of_query = whole.filter(pl.col("query_id") == query)
        assert turned.filter(pl.col("query_id") == query).equals(of_query)
        assert sample(table_of({query: lists[query]}, bias), n=6, share=0.5, seed=3).equals(of_query)
    assert not whole.equals(sample(table_of(lists, bias), n=6, share=0.5, seed=4))


def test_what_is_drawn_stays_the_same_in_later_versions():
    table = table_of({"q": [str(i) for i in range(100)]}, {str(i): 0.0 for i in range(100)})
    assert sample(table, n=5, share=0, seed=1)["doc_id"].to_list() == ["88", "93", "76", "59", "42"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 0}, "`n`: expected 1 or more, found 0"),
        ({"share": -0.1}, "`share`: expected a number from 0 to 1, found -0.1"),
        ({"share": math.nan}, "`share`: expected a number from 0 to 1, found nan"),
        ({"seed": -1}, "`seed`: expected 0 to 18446744073709551615, found -1"),
        ({"seed": 1 << 64}, "`seed`: expected 0 to 18446744073709551615, found 18446744073709551616"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(EvenrankError, match=message):
        sample(table_of({"q": ["d"]}, {"d": 1.0}), **settings)


def test_tables_that_cannot_be_sampled():
    for value in (-1.0, math.nan, math.inf):
        with pytest.raises(EvenrankError, match="expected finite numbers from 0 as beta"):
            sample(table_of({"q": ["d"]}, {"d": value}))
    table = pl.concat([table_of({"q": ["d"], "r": ["d"]}, {"d": 1.0}), table_of({"q": ["e"]}, {"e": 1.0})])
    with pytest.raises(EvenrankError, match="do not stand together"):
        sample(table)


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files of the case above, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("c.tsv").write_text("".join(f"{doc}\t{text}\n" for doc, text in TEXTS.items()))
    Path("q.tsv").write_text("".join(f"{query}\ttext of {query}\n" for query in LISTS))
    Path("qrels.txt").write_text("".join(f"{line}\n" for line in QRELS))
    Path("r.run").write_text(run_text(LISTS))
    return tmp_path


def run_text(lists) -> str:
    return "".join(
        f"{query} Q0 {doc} {rank} {-rank} x\n" for query, docs in lists.items() for rank, doc in enumerate(docs, 1)
    )


OPTIONS = ("--collection", "c.tsv", "--queries", "q.tsv", "--qrels", "qrels.txt")


def test_groups_and_manifest(files, evenrank):
    ended = evenrank("negatives", "r.run", *OPTIONS, "--out", "set.jsonl", "--n", 3, "--share", 0.7)
    assert (ended.status, ended.out) == (0, "")
    assert ended.err == (
        "2 queries, 4 biased and 1 random negatives: set.jsonl\n"
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
    return write_negatives(settings.pop("run", folder / "r.run"), out, **(arguments | settings))


@pytest.mark.parametrize("format", ["groups", "labeled-list"])
def test_how_the_run_is_read_changes_nothing(format, large, tmp_path, block_bytes):
    whole = written(large, tmp_path / "whole.parquet", format=format)
    expected = pl.read_parquet(tmp_path / "whole.parquet")
    assert expected.height == whole["queries"] > 50
    in_memory = written(large, tmp_path / "run.parquet", format=format, run=read(large))
    run = in_memory["provenance"]["files"][0]
    assert (run["note"], run["rows"]) == ("in memory", read(large).height)
    changed = {"settings": whole["settings"] | {"run": "run"}, "provenance": in_memory["provenance"]}
    assert in_memory == whole | changed
    assert pl.read_parquet(tmp_path / "run.parquet").equals(expected)
    for size in (50, 1000, 20_000):
        block_bytes(size)
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
    from evenrank.io import read_qrels, read_queries, read_run

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
    from evenrank.mitigation.negatives import formats

    # Parts of a few groups, as in a large file.
    monkeypatch.setattr(formats, "_TEXTS", 50)
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


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({"r.run": "q1 Q0 d1 1 2\n"}, (), "r.run, line 1: expected 6 fields (query_id, Q0, doc_id, rank, score, tag)"),
        ({"r.run": "q1 Q0 d1 1 nan x\n"}, (), "r.run, line 1: expected a finite number as score, found 'nan'"),
        ({"r.run": ""}, (), "r.run: the file is empty"),
        ({"r.run": "\n\n"}, (), "r.run: the file has no line"),
        (
            {"r.run": run_text({"q1": ["d1", "d3"], "q2": ["d1"]}) + run_text({"q1": ["d2"]})},
            (),
            "r.run, line 4: the lines of the query 'q1' do not stand together (first in line 1): sort the run by query,"
            " for example with sort -s -k1,1",
        ),
        (
            {"r.run": run_text({"q2": ["d1"], "q1": ["d1", "d3", "d1"]})},
            (),
            "r.run, line 4: the document 'd1' stands twice for the query 'q1' (first in line 2)",
        ),
        (
            {"r.run": run_text({"q1": ["x", "d1", "y"], "q2": ["x", "d5"]})},
            (),
            "2 documents of the run r.run are not in c.tsv: 'x', 'y'",
        ),
        ({"qrels.txt": "q1 0 z 1\n"}, (), "1 judged relevant documents are not in c.tsv: 'z'"),
        ({"qrels.txt": "q1 0 d5 0\n"}, (), "run r.run: no query has both a judged relevant document and an unjudged"),
        ({"qrels.txt": "q1 d5 1\n"}, (), "qrels.txt, line 1: expected 4 fields"),
        ({"q.tsv": "q1\ttext\n"}, (), "3 queries of the run r.run have no text: 'q2', 'q3', 'q4'"),
        ({"c.tsv": "d1\ttext\nd1\ttext\n"}, (), "c.tsv, line 2: the id 'd1' stands twice (first in line 1)"),
        ({}, ("--n", 0), "expected 1 or more, found 0"),
        ({}, ("--share", 1.5), "expected a number from 0 to 1, found 1.5"),
        ({}, ("--depth", 0), "expected 1 or more, found 0"),
        ({}, ("--seed", -1), "expected 0 to 18446744073709551615, found -1"),
        ({}, ("--beta", "tf"), "expected one of abs_tf, count, one_minus_neutrality, found 'tf'"),
        ({}, ("--format", "triplet"), "--format: expected one of groups, labeled-list, labeled-pair, n-tuple, found"),
        ({}, ("--format", "n-tuple", "--n", 9), "--format n-tuple: no query has 9 negatives"),
        ({}, ("--tokens", "bytes"), "--tokens: expected word or whitespace, found 'bytes'"),
        ({}, ("--lexicon", "none.toml"), "--lexicon: no file and no built-in lexicon 'none.toml'"),
        ({}, ("--scores", "c.tsv"), "c.tsv: no Parquet file that can be read"),
        ({}, ("--out", "set.csv"), "--out: expected a name that ends in .parquet or .jsonl, found 'set.csv'"),
        ({}, ("--out", "no/set.jsonl"), "no/set.jsonl: cannot be written: No such file or directory"),
    ],
)
def test_bad_input(changed, options, message, files, evenrank):
    for name, content in changed.items():
        Path(name).write_text(content)
    ended = evenrank("negatives", "r.run", *OPTIONS, "--out", "set.jsonl", *options)
    assert ended.status == 2
    assert ended.err.startswith("evenrank: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert ended.out == ""
    assert sorted(os.listdir()) == ["c.tsv", "q.tsv", "qrels.txt", "r.run"]


def test_a_query_that_stands_apart_in_another_part_of_the_file(files, evenrank, block_bytes):
    block_bytes(20)
    Path("r.run").write_text(run_text({"q1": ["d1", "d3"], "q2": ["d1"], "q4": ["d1"]}) + run_text({"q1": ["d2"]}))
    ended = evenrank("negatives", "r.run", *OPTIONS, "--out", "set.jsonl")
    assert ended.status == 2
    assert "r.run, line 5: the lines of the query 'q1' do not stand together (first in line 1)" in ended.err


def test_what_is_lacking(files, evenrank):
    qrels = ("--qrels", "qrels.txt", "--out", "set.jsonl")
    ended = evenrank("negatives", "r.run", *qrels)
    assert ended.err == "evenrank: the documents' texts or scores are needed: give --collection or --scores\n"
    ended = evenrank("negatives", "r.run", *qrels, "--collection", "c.tsv", "--format", "labeled-list")
    assert ended.err == "evenrank: --format labeled-list: the queries' texts are needed: give --queries\n"
    assert evenrank("score", "c.tsv", "--out", "s.parquet").status == 0
    ended = evenrank("negatives", "r.run", *qrels, "--scores", "s.parquet", "--tokens", "whitespace")
    assert ended.err == ("evenrank: --tokens: whitespace was asked for, but the scores were made with tokens word\n")
    Path("c.tsv").write_text("d1\ttext\n")
    ended = evenrank("negatives", "r.run", *OPTIONS[:4], *qrels, "--scores", "s.parquet", "--format", "labeled-pair")
    assert ended.status == 2
    assert ended.err.endswith("of the scored documents are not in c.tsv\n")
    assert not Path("set.jsonl").exists()


@pytest.mark.parametrize(("format", "suffix"), [("groups", "jsonl"), ("labeled-list", "parquet")])
def test_no_room(format, suffix, no_room, tmp_path):
    folder, reason = no_room
    rng = np.random.default_rng(0)
    texts = pl.DataFrame(
        {"doc_id": [f"{i}-{'x' * 40}" for i in range(900)], "text": [rng.bytes(200).hex() for _ in range(900)]}
    )
    queries = pl.DataFrame({"query_id": [str(i) for i in range(50)], "text": "a question"})
    run = queries.select("query_id").join(texts.select("doc_id"), how="cross").with_columns(pl.lit(1.0).alias("score"))
    qrels = queries.select("query_id", pl.lit(texts["doc_id"][0]).alias("doc_id"), pl.lit(1).alias("relevance"))
    with pytest.raises(EvenrankError) as error:
        write_negatives(
            run, folder / f"set.{suffix}", collection=texts, queries=queries, qrels=qrels, n=100, format=format
        )
    assert str(error.value) == f"{folder / f'set.{suffix}'}: cannot be written: {reason}"
    assert not list(folder.iterdir())


# --- who reads it ----------------------------------------------------------------------------------------------------


def test_evenrank_train_reads_groups(large, tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from evenrank.training.groups import read_group_file

    for suffix in ("parquet", "jsonl"):
        done = written(large, tmp_path / f"set.{suffix}")
        assert read_group_file(tmp_path / f"set.{suffix}").height == done["queries"]


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
        ("cross_encoder", ["--loss", "bce"]),
        pytest.param("cross_encoder", ["--loss", "lambda"], marks=pytest.mark.slow),
        ("sentence_transformer", []),
    ],
)
def test_examples(name, options, tmp_path):
    pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
    pytest.importorskip("datasets", reason="datasets is not installed")
    script = Path(__file__).parent.parent / "examples" / f"negatives_{name}.py"
    small = ["--passages", "300", "--steps", "3", "--n", "3", "--max-length", "32"]
    command = [
        sys.executable,
        str(script),
        "--model",
        str(tiny_bert(tmp_path / "bert")),
        "--out",
        str(tmp_path / "out"),
    ]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home"), "CUDA_VISIBLE_DEVICES": ""}
    ended = subprocess.run([*command, *small, *options], capture_output=True, text=True, env=environment, timeout=300)
    assert ended.returncode == 0, ended.stderr
    loss = float(ended.stdout.rpartition("loss ")[2])
    assert math.isfinite(loss)
    assert loss > 0
    assert (tmp_path / "out" / "model" / "model.safetensors").exists()
    manifest = json.loads((tmp_path / "out" / "train.parquet.manifest.json").read_text())
    assert manifest["mean_beta"]["biased"] > manifest["mean_beta"]["random"]
