"""Questions that group words decide, and clicks skewed in training alone: the planted amounts are found again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank.files import EvenrankError, Run
from evenrank.files.synthetic import SyntheticCollection, SyntheticConfig, generate
from evenrank.groups import Scoring, load_lexicon, score_in_memory
from evenrank.measures import Evaluation, parse_measure, resolve
from evenrank.mitigation.blind import blind, mask_texts

PLANTED = SyntheticConfig(
    passages=2_400,
    queries=600,
    seed=5,
    sentences=3,
    relevant=2,
    gender_rate=0.9,
    relevance_gender_rate=1.0,
    train_click_male_share=0.8,
    group_query_rate=0.3,
)
SIDES = {"m": 1, "f": -1, "n": 0}


@cache
def made() -> SyntheticCollection:
    return generate(PLANTED)


def clicked_groups(collection: SyntheticCollection) -> pl.DataFrame:
    """``split``, ``asks`` and the ``group`` of the clicked passage, by the lexicon, one row a question."""
    table = score_in_memory(collection.collection, Scoring(load_lexicon())).table
    counted = table.select("doc_id", side=(pl.col("count_m").cast(pl.Int64) - pl.col("count_f").cast(pl.Int64)).sign())
    asked = collection.queries.select("query_id", "split", asks="group")
    return collection.clicks.join(counted, on="doc_id").join(asked, on="query_id")


def test_the_share_of_questions_that_group_words_decide_is_met_in_every_split() -> None:
    counts = made().queries.group_by("split", "group").len().sort("split", "group")
    assert counts.rows() == [
        ("test", "f", 18), ("test", "m", 18), ("test", "n", 84),
        ("train", "f", 63), ("train", "m", 63), ("train", "n", 294),
        ("valid", "f", 9), ("valid", "m", 9), ("valid", "n", 42),
    ]  # fmt: skip


def test_clicks_are_skewed_in_training_alone() -> None:
    neutral = clicked_groups(made()).filter(pl.col("asks") == "n")
    shares = dict(neutral.group_by("split").agg((pl.col("side") == 1).mean()).iter_rows())
    assert shares["train"] == pytest.approx(0.8, abs=0.002)
    assert shares["valid"] == shares["test"] == 0.5
    decided = clicked_groups(made()).filter(pl.col("asks") != "n")
    assert (decided["side"] == decided["asks"].replace_strict(SIDES, return_dtype=pl.Int64)).all()
    skewed = generate(replace(PLANTED, click_male_share=0.9))
    of_test = clicked_groups(skewed).filter((pl.col("asks") == "n") & (pl.col("split") == "test"))
    assert (of_test["side"] == 1).mean() == pytest.approx(0.9, abs=0.01)


def test_relevant_passages_of_other_questions_are_in_both_wordings() -> None:
    rows = made().qrels.join(made().truth.select("doc_id", "group"), on="doc_id")
    rows = rows.join(made().queries.select("query_id", asks="group"), on="query_id")
    wordings = rows.group_by("query_id", "asks").agg(pl.col("group").sort().str.join(""))
    assert set(wordings.filter(pl.col("asks") == "n")["group"]) == {"fm"}
    assert set(wordings.filter(pl.col("asks") == "m")["group"]) == {"mm"}
    assert set(wordings.filter(pl.col("asks") == "f")["group"]) == {"ff"}
    half = generate(replace(PLANTED, relevance_gender_rate=0.5, gender_rate=0.6))
    rows = half.qrels.join(half.truth.select("doc_id", "group"), on="doc_id")
    kinds = rows.group_by("query_id").agg(pl.col("group").sort().str.join("")).group_by("group").len()
    assert dict(kinds.iter_rows()) == {"fm": 210, "nn": 210, "mm": 90, "ff": 90}


def test_the_counterpart_tells_the_same_fact_with_another_answer() -> None:
    truth = made().truth.join(made().collection, on="doc_id")
    decided = made().queries.filter(pl.col("group") != "n")
    for query, asks in decided.select("query_id", "group").iter_rows():
        own, other = truth.filter(pl.col("query_id") == query), truth.filter(pl.col("counterpart") == query)
        assert own.height == other.height == 2
        assert set(own["group"]) == {asks}
        assert set(other["group"]) == {"m", "f"} - {asks}
        assert own["entity"].n_unique() == 1
        assert set(own["entity"]) == set(other["entity"])
        assert len({*own["answer"]}) == len({*other["answer"]}) == 1
        assert own["answer"][0] != other["answer"][0]
    assert other["query_id"].null_count() == 2


def test_masking_group_words_makes_them_undecidable() -> None:
    """Masked, a question and its twin for the other group are the same words, and so are their facts."""
    scoring = Scoring(load_lexicon())
    asked = made().queries.filter(pl.col("group") != "n")
    plain, masked = asked["text"].to_list(), mask_texts(asked["text"], scoring=scoring).to_list()
    assert all("[MASK]" in text for text in masked)
    swapped = [text.replace(" sister ", " brother ").replace(" daughter ", " son ") for text in plain]
    swapped = [text.replace(" mother ", " father ").replace(" grandmother ", " grandfather ") for text in swapped]
    assert mask_texts(pl.Series(swapped), scoring=scoring).to_list() == masked
    # The facts, without names and answers, are of the same forms for a question and for its counterpart.
    rows = made().truth.join(blind(made().collection, scoring), on="doc_id")
    forms: dict[bool, set[str]] = {True: set(), False: set()}
    for row in rows.iter_rows(named=True):
        if row["counterpart"] is not None or row["query_id"] in set(asked["query_id"]):
            fact = row["text"].split(". ")[row["answer_sentence"]].removesuffix(".")
            assert "[MASK]" in fact
            form = fact.replace(row["entity"], "X").replace(row["answer"], "Y")
            forms[row["counterpart"] is None].add(form)
    assert forms[True] == forms[False]
    assert len(forms[True]) == 12


# --- found again by the lexicon and by measures ----------------------------------------------------------------------

UNEVEN = SyntheticConfig(
    passages=1000, queries=100, seed=5, gender_rate=0.6, male_share=0.7, relevant=1, relevance_male_share=0.9
)


@cache
def uneven() -> SyntheticCollection:
    return generate(UNEVEN)


@pytest.mark.parametrize(
    ("collection", "counts"), [(made, {"m": 1080, "f": 1080, "n": 240}), (uneven, {"m": 420, "f": 180, "n": 400})]
)
def test_the_built_in_lexicon_labels_every_passage_as_planted(
    collection: Callable[[], SyntheticCollection], counts: dict[str, int]
) -> None:
    truth = collection().truth
    assert dict(truth["group"].value_counts().iter_rows()) == counts
    table = score_in_memory(collection().collection, Scoring(load_lexicon())).table
    assert table["count_m"].to_list() == truth["count_m"].to_list()
    assert table["count_f"].to_list() == truth["count_f"].to_list()
    assert (table["neutrality"] == (truth["group"] == "n")).all()
    # With whitespace tokens a word before a comma or a full stop is missed, as by the public programs.
    table = score_in_memory(collection().collection, Scoring(load_lexicon(), "whitespace")).table
    sign = np.sign(table["count_m"].to_numpy() - table["count_f"].to_numpy())
    assert (sign != truth["group"].replace_strict(SIDES).to_numpy()).mean() < 0.1


def test_a_random_order_of_everything_shows_the_planted_skew() -> None:
    made = uneven()
    scores = score_in_memory(made.collection, Scoring(load_lexicon()))
    everything = made.collection.select(pl.lit("0").alias("query_id"), "doc_id", pl.lit(0.0).alias("score"))
    found = Evaluation(Run.from_table(everything), scores)
    # 42% male minus 18% female, and 40% neutral.
    skew = UNEVEN.gender_rate * (2 * UNEVEN.male_share - 1)
    assert found.random_values(parse_measure("ARaB(magnitude='bool')@10"))[0] == pytest.approx(skew)
    assert resolve(parse_measure("RaB(magnitude='bool')@50")).expected(found)[0] == pytest.approx(skew)
    discounts = (1 / np.log2(np.arange(2, 12))).sum()
    assert found.random_values(parse_measure("FaiRR@10"))[0] == pytest.approx((1 - UNEVEN.gender_rate) * discounts)


def test_rankings_with_a_planted_preference() -> None:
    made, rng = uneven(), np.random.default_rng(0)
    group = made.truth["group"].replace_strict(SIDES).to_numpy()
    relevant = dict(zip(made.qrels["query_id"], made.qrels["doc_id"], strict=True))
    frames = {}
    for name, preference in {"fair": 0.0, "male": 2.0}.items():
        rows = []
        for query in made.queries["query_id"]:
            chosen = rng.choice(1000, 60, replace=False)
            chosen[0] = int(relevant[query])
            docs = np.unique(chosen)
            score = rng.normal(size=len(docs)) + preference * group[docs] + 1.5 * (docs == int(relevant[query]))
            rows.append(pl.DataFrame({"query_id": query, "doc_id": docs.astype(str), "score": score}))
        frames[name] = pl.concat(rows)
    found = evenrank.audit(
        frames, collection=made.collection, qrels=made.qrels, baseline="fair", measures="nDCG@10 ARaB@10 DeltaAPRF"
    )
    fair, male = found["fair"].measures, found["male"].measures
    low, high = fair["DeltaAPRF"].ci95
    assert low <= 0 <= high
    assert male["DeltaAPRF"].ci95[0] > 0.3
    assert male["DeltaAPRF"].vs_baseline.difference > 0.3
    assert male["ARaB@10"].vs_baseline.significant
    assert male["ARaB@10"].vs_baseline.worse > 90
    # 90% of the gendered relevant passages are male-worded, as planted.
    labels = made.truth.join(made.qrels, on="doc_id", how="semi")["group"].value_counts()
    counts = dict(labels.iter_rows())
    assert counts["m"] / (counts["m"] + counts["f"]) == pytest.approx(0.9, abs=0.02)


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "digests"),
    [
        (
            SyntheticConfig(passages=1000),
            "5cc19f2e7e06 280aa1c63987 dd1e30e7d004 56d031f1e4d1 abef3c749936 28957df02c20",
        ),
        (PLANTED, "7bb76098ac6a beef40a3b20e 755f719a37bd e27e54d68800 6a5b3d7dffaa 08c878d723aa"),
    ],
)
def test_collections_keep_their_bytes(tmp_path: Path, config: SyntheticConfig, digests: str) -> None:
    folder = generate(config).write(tmp_path)
    names = ("answers.json", "clicks.txt", "collection.tsv", "planted.json", "qrels.txt", "queries.tsv")
    found = [hashlib.sha256((folder / name).read_bytes()).hexdigest()[:12] for name in names]
    assert found == digests.split()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"relevant": 3, "queries": 200}, "`relevant` has to be even, not 3"),
        ({"relevance_male_share": 0.7}, "`relevance_male_share` has to be 0.5"),
        ({"relevant": 8, "queries": 30}, "`queries`: expected 10 to 0, found 30"),
        ({"queries": 601}, "`queries`: expected 10 to 600, found 601"),
        ({"gender_rate": 0.1}, "the planted amounts contradict each other"),
        ({"male_share": 0.95}, "the planted amounts contradict each other"),
        ({"group_query_rate": 1.5}, "`group_query_rate`: expected a number from 0 to 1"),
        ({"group_query_rate": None}, "`group_query_rate`: expected a number"),
        ({"train_click_male_share": -0.1}, "`train_click_male_share`: expected a number from 0 to 1"),
    ],
)
def test_amounts_that_contradict_each_other_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(EvenrankError) as error:
        replace(PLANTED, **values)
    assert message in str(error.value)
