"""The measures find again what the built-in collection has planted."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank.files import Run
from evenrank.files.synthetic import SyntheticCollection, SyntheticConfig, generate
from evenrank.groups import GroupTable, Scoring, load_lexicon, score_in_memory
from evenrank.measures import Evaluation, parse_measure, resolve

PLANTED = SyntheticConfig(
    passages=1000, queries=100, seed=5, gender_rate=0.6, male_share=0.7, relevant=1, relevance_male_share=0.9
)


@pytest.fixture(scope="module")
def made() -> SyntheticCollection:
    return generate(PLANTED)


@pytest.fixture(scope="module")
def scores(made: SyntheticCollection) -> GroupTable:
    return score_in_memory(made.collection, Scoring(load_lexicon()))


@pytest.mark.parametrize("tokens", ["word", "whitespace"])
def test_the_built_in_lexicon_labels_every_passage_as_planted(made, tokens):
    table = score_in_memory(made.collection, Scoring(load_lexicon(), tokens)).table
    sign = np.sign(table["count_m"].to_numpy() - table["count_f"].to_numpy())
    planted = made.truth["group"].replace_strict({"m": 1, "f": -1, "n": 0}).to_numpy()
    # With whitespace tokens a word before a comma or a full stop is missed, as by the public programs.
    missed = (sign != planted).mean()
    assert missed == 0 if tokens == "word" else missed < 0.1
    if tokens == "word":
        assert table["count_m"].to_list() == made.truth["count_m"].to_list()
        assert table["count_f"].to_list() == made.truth["count_f"].to_list()
        assert (table["neutrality"] == (made.truth["group"] == "n")).all()


def test_a_random_order_of_everything_shows_the_planted_skew(made, scores):
    everything = made.collection.select(pl.lit("0").alias("query_id"), "doc_id", pl.lit(0.0).alias("score"))
    found = Evaluation(Run.from_table(everything), scores)
    # 42% male minus 18% female, and 40% neutral.
    skew = PLANTED.gender_rate * (2 * PLANTED.male_share - 1)
    assert found.random_values(parse_measure("ARaB(magnitude='bool')@10"))[0] == pytest.approx(skew)
    assert resolve(parse_measure("RaB(magnitude='bool')@50")).expected(found)[0] == pytest.approx(skew)
    discounts = (1 / np.log2(np.arange(2, 12))).sum()
    assert found.random_values(parse_measure("FaiRR@10"))[0] == pytest.approx((1 - PLANTED.gender_rate) * discounts)


def test_rankings_with_a_planted_preference(made, scores):
    rng = np.random.default_rng(0)
    group = made.truth["group"].replace_strict({"m": 1.0, "f": -1.0, "n": 0.0}).to_numpy()
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
