"""The built-in collection holds exactly what was planted in it, and measures find it again."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from scipy import stats

from evenrank.files import EvenrankError, InputError, synthetic
from evenrank.files.synthetic import SyntheticCollection, SyntheticConfig, generate
from evenrank.groups import Scoring, load_lexicon, score_in_memory


@cache
def default() -> SyntheticCollection:
    return generate(SyntheticConfig(passages=5_000))


def counted(text: str, words: frozenset[str]) -> int:
    return sum(word in words for word in re.findall(r"\w+", text.lower()))


def labels(made: SyntheticCollection) -> list[str]:
    """The group of each passage, from its text alone."""
    both = [
        (counted(text, synthetic.MALE_WORDS), counted(text, synthetic.FEMALE_WORDS)) for text in made.collection["text"]
    ]
    assert not [pair for pair in both if pair[0] and pair[1]]
    return ["m" if male else "f" if female else "n" for male, female in both]


def test_the_truth_about_wording_is_what_the_texts_say() -> None:
    made = default()
    texts = made.collection["text"]
    assert made.truth["count_m"].to_list() == [counted(text, synthetic.MALE_WORDS) for text in texts]
    assert made.truth["count_f"].to_list() == [counted(text, synthetic.FEMALE_WORDS) for text in texts]
    assert made.truth["group"].to_list() == labels(made)
    gendered = made.truth.filter(pl.col("group") != "n")
    assert set((gendered["count_m"] + gendered["count_f"]).to_list()) <= set(range(2, 10))


def test_amounts_for_relevant_and_clicked_passages_are_recovered() -> None:
    of_relevant = {"relevance_gender_rate": 0.5, "relevance_male_share": 0.6, "click_male_share": 0.8}
    made = generate(SyntheticConfig(passages=4_000, queries=400, gender_rate=0.6, **of_relevant))
    group = pl.DataFrame({"doc_id": made.collection["doc_id"], "found": labels(made)})
    for part, amounts in ((made.qrels, (800, 240, 160)), (made.clicks, (400, 160, 40)), (group, (4_000, 1_200, 1_200))):
        found = part.join(group, on="doc_id")["found"].to_list()
        assert (len(found), found.count("m"), found.count("f")) == amounts


def test_answers_stand_where_the_truth_says_and_nowhere_else() -> None:
    for made in (default(), generate(SyntheticConfig(passages=2_000, sentences=12, decoy_rate=1.0, seed=9))):
        rows = made.truth.select("answer", "answer_start", "answer_end", "answer_token", "tokens", "answer_sentence")
        for text, (answer, start, end, token, tokens, sentence) in zip(
            made.collection["text"], rows.rows(), strict=True
        ):
            assert text[start:end] == answer
            assert text.lower().count(answer.lower()) == 1
            assert re.findall(r"\w+", text)[token].startswith(answer.split()[0])
            assert len(re.findall(r"\w+", text)) == tokens == len(text.split())
            assert text[:start].count(". ") == sentence
            assert text.count(". ") == made.config.sentences - 1
            assert text.isascii()


@pytest.mark.parametrize(("position", "mean"), [("uniform", 0.5), ("early", 0.2), (0.9, 0.9)])
def test_answer_positions_are_recovered(position: float, mean: float) -> None:
    truth = generate(SyntheticConfig(passages=3_000, sentences=6, answer_position=position, seed=2)).truth
    assert ((truth["answer_sentence"] + 0.5) / 6).mean() == pytest.approx(mean, abs=0.025)
    assert truth["answer_place"].mean() == pytest.approx(mean, abs=0.045)
    distance = stats.kstest(truth["answer_place"].to_numpy(), "uniform").statistic
    if position == "uniform":
        # Where in its sentence an answer stands is up to the templates.
        assert distance < 0.06
        assert truth["answer_sentence"].value_counts()["count"].to_list() == [500] * 6
    else:
        assert distance > 0.2


def test_batches_meet_at_their_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "_BATCH", 64)
    parts = list(synthetic.batches(SyntheticConfig(passages=200)))
    assert [part.height for part in parts] == [64, 64, 64, 8]
    table = pl.concat(parts)
    assert table["doc_id"].to_list() == [str(number) for number in range(200)]
    found = table.select(pl.col("text").str.slice("answer_start", pl.col("answer_end") - pl.col("answer_start")))
    assert found["text"].to_list() == table["answer"].to_list()
    assert table["text"].n_unique() == 200


# --- questions that group words decide, and clicks skewed in training alone -------------------------------------------

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


# --- found again by the lexicon and by measures ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "digests"),
    [
        (
            SyntheticConfig(passages=1000),
            "5cc19f2e7e06 280aa1c63987 dd1e30e7d004 56d031f1e4d1 abef3c749936 28957df02c20",
        ),
        (
            SyntheticConfig(
                passages=400,
                sentences=6,
                answer_position="late",
                relevance_answer_position="early",
                decoy_rate=1.0,
                decoy_position=0.2,
                kinds=("ship", "dish"),
                relevance_male_share=0.6,
                click_male_share=0.8,
            ),
            "7356a51c37b4 88ab01d232ae 7d5c17f4ce34 ad575ef85d8f 98d568e05d31 994cef96cfd7",
        ),
        (PLANTED, "7bb76098ac6a beef40a3b20e 755f719a37bd e27e54d68800 6a5b3d7dffaa 08c878d723aa"),
    ],
)
def test_collections_keep_their_bytes(tmp_path: Path, config: SyntheticConfig, digests: str) -> None:
    folder = generate(config).write(tmp_path)
    names = ("answers.json", "clicks.txt", "collection.tsv", "planted.json", "qrels.txt", "queries.tsv")
    found = [hashlib.sha256((folder / name).read_bytes()).hexdigest()[:12] for name in names]
    assert found == digests.split()
    with pytest.raises(InputError, match=r"qrels\.txt: the folder cannot be made: File exists"):
        generate(config).write(folder / "qrels.txt")


@pytest.mark.parametrize(
    ("amounts", "message"),
    [
        ({"passages": 199}, "`passages`: expected 200 to 1000000, found 199"),
        ({"passages": 500.0}, "`passages`: expected a whole number"),
        ({"seed": -1}, "`seed`: expected 0 to 9223372036854775807"),
        ({"seed": True}, "`seed`: expected a whole number"),
        ({"passages": 800, "queries": 401}, "`queries`: expected 10 to 400, found 401"),
        ({"relevant": 9}, "`relevant`: expected 1 to 8"),
        ({"sentences": 2}, "`sentences`: expected 3 to 12"),
        ({"gender_rate": 1.1}, "`gender_rate`: expected a number from 0 to 1, found 1.1"),
        ({"click_male_share": float("nan")}, "`click_male_share`: expected a number from 0 to 1, found nan"),
        ({"decoy_rate": "0.3"}, "`decoy_rate`: expected a number from 0 to 1, found '0.3'"),
        ({"answer_position": "middle"}, "`answer_position`: expected uniform, early, late or a number"),
        ({"relevance_answer_position": 0.05}, "`relevance_answer_position`: expected uniform, early, late or a number"),
        ({"relevant": 1, "click_male_share": 0.8}, "the planted amounts contradict each other"),
        ({"kinds": ("boat",)}, "`kinds`: expected some of craft, building"),
        ({"decoy_position": 0.95}, "`decoy_position`: expected uniform, early, late or a number"),
        *(
            ({**asdict(PLANTED), **values}, message)
            for values, message in (
                ({"relevant": 3, "queries": 200}, "`relevant` has to be even and at most 4, and"),
                ({"relevance_male_share": 0.7}, "and `relevance_male_share` 0.5, found 2 and 0.7"),
                ({"relevant": 8, "queries": 30}, "`queries`: expected 10 to 0, found 30"),
                ({"gender_rate": 0.1}, "the planted amounts contradict each other"),
                ({"male_share": 0.95}, "the planted amounts contradict each other"),
                ({"group_query_rate": 1.5}, "`group_query_rate`: expected a number from 0 to 1"),
                ({"train_click_male_share": -0.1}, "`train_click_male_share`: expected a number from 0 to 1"),
            )
        ),
        ({"queries": 2_000, "relevance_male_share": 0.8}, "they need -350 with male wording among the 500 gendered"),
    ],
)  # fmt: skip
def test_amounts_that_cannot_be_planted_are_refused(amounts: dict[str, object], message: str) -> None:
    with pytest.raises(EvenrankError, match=re.escape(message)):
        SyntheticConfig(**amounts)  # type: ignore[arg-type]
