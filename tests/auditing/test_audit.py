"""The audit: figures, comparisons, notes, JSON, and what it refuses."""

from __future__ import annotations

import inspect
import json
import math

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError, Run
from evenrank.auditing import AuditResult
from evenrank.files.types import holm
from evenrank.options import GroupOptions
from slow_stats import slow_compare, slow_test
from small_audits import collection, judged
from small_audits import run as table

TEXTS = {
    "m1": "he and his father met him",
    "m2": "the king saw the man",
    "f1": "she and her mother met her",
    "f2": "the queen saw the woman",
    "n1": "the sea is calm",
    "n2": "a stone bridge",
    "b1": "the woman and the man",
}


COLLECTION = collection(TEXTS)
MALE_FIRST = table({str(q): ["m1", "m2", "n1", "b1", "f1", "f2"] for q in range(6)})
MIXED = table(
    {str(q): ["n1", "m1", "f1", "b1", "m2", "f2"] if q % 2 else ["f1", "m1", "n1", "b1", "m2", "f2"] for q in range(6)}
)
QRELS = judged({str(q): "m1" if q < 3 else "f1" for q in range(6)})
MEASURES = "nDCG@10 RR@10 NFaiRR@3 ARaB(magnitude='count')@2 |ARaB(magnitude='count')|@2 DeltaAPRF |DeltaAPRF|"


def made(**options):
    """Two runs against each other, with seven measures."""
    given = {"collection": COLLECTION, "qrels": QRELS, "query_clusters": "none", "measures": MEASURES, **options}
    return evenrank.audit({"male": MALE_FIRST, "mixed": MIXED}, baseline="male", **given)


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return made()


def test_hand_worked_figures(result):
    figures = result["male"].measures
    # m1 holds he, his, father, him; m2 king, man: RaB@1 = 4, RaB@2 = 3, their mean 3.5.
    assert figures["ARaB(magnitude='count')@2"].mean == pytest.approx(3.5)
    # m1 and m2 have neutrality 0, n1 1: ½ of the ideal 1 + 1/log2 3 + … (n1, b1 and then 0).
    assert figures["NFaiRR@3"].mean == pytest.approx(0.5 / (1 + 1 / math.log2(3)))
    assert figures["RR@10"].mean == pytest.approx((3 * 1 + 3 * 0.2) / 6)
    # m1 beats all five others, f1 one of five.
    assert figures["DeltaAPRF"].mean == pytest.approx(1 - 0.2)
    assert figures["|DeltaAPRF|"].mean == pytest.approx(0.8)
    assert figures["DeltaAPRF"].n == 6
    assert result["male"].queries == 6


def test_intervals_end_where_values_do(result):
    """RR of six queries is 1 or .2: the test's interval alone would reach above 1."""
    figure = result["male"].measures["RR@10"]
    _, low, high = slow_test(figure.values.tolist(), 6, augmented=True)
    assert high > 1
    assert figure.ci95 == (pytest.approx(low), 1.0)


def test_reference_rankings_are_always_there(result):
    assert [run.name for run in result.runs] == ["male", "mixed", "random", "neutral-first", "relevance-first"]
    random, ideal = result["random"].measures, result["neutral-first"].measures
    counts = np.array([4, 2, 0, 0, -4, -2])
    assert random["ARaB(magnitude='count')@2"].mean == pytest.approx(counts.mean())
    assert random["DeltaAPRF"].mean == pytest.approx(0)
    assert ideal["NFaiRR@3"].mean == pytest.approx(1)
    # n1, b1, m1, m2, f1, f2: m1 at rank 3, f1 at rank 5.
    assert ideal["RR@10"].mean == pytest.approx((3 / 3 + 3 / 5) / 6)
    perfect = result["relevance-first"].measures
    assert perfect["nDCG@10"].mean == perfect["RR@10"].mean == 1
    # The relevant one first, m1 for three queries and f1 for three, then the mean of the others, −count/5.
    assert perfect["ARaB(magnitude='count')@2"].mean == pytest.approx(0)
    assert perfect["ARaB(magnitude='count')@2"].values[0] == pytest.approx(0.75 * 4 - 0.25 * 4 / 5)
    assert perfect["DeltaAPRF"].mean == 0


def test_comparison_with_the_baseline(result):
    figure = result["mixed"].measures["RR@10"]
    base, values = result["male"].measures["RR@10"].values, figure.values
    found = figure.vs_baseline
    assert found.difference == pytest.approx((values - base).mean())
    assert found.relative == pytest.approx((values - base).mean() / base.mean())
    assert (found.better, found.equal, found.worse) == (3, 0, 3)
    p, *ends = slow_compare((values - base).tolist(), "keep")
    assert (found.p, found.holm_p, found.test.reason) == (pytest.approx(p), 1.0, None)
    assert found.ci95 == pytest.approx(tuple(ends))
    # A bias nearer zero is better, whatever its sign.
    bias = result["mixed"].measures["ARaB(magnitude='count')@2"].vs_baseline
    assert (bias.better, bias.worse) == (6, 0)
    assert result["male"].measures["RR@10"].vs_baseline is None
    assert result["random"].measures["RR@10"].vs_baseline.holm_p is None


def test_holm_is_over_the_runs_compared():
    draw = np.random.default_rng(1)
    lists = [{str(q): draw.permutation(sorted(TEXTS)).tolist() for q in range(40)} for _ in "abc"]
    runs = dict(zip("abc", map(table, lists), strict=True))
    qrels = judged({str(q): "m1" for q in range(40)})
    settings = {"qrels": qrels, "query_clusters": "none", "baseline": "a", "measures": "nDCG@10"}
    found = evenrank.audit(runs, collection=COLLECTION, **settings)
    compared = [found[name].measures["nDCG@10"].vs_baseline for name in ("b", "c")]
    gains = [found[name].measures["nDCG@10"].values - found["a"].measures["nDCG@10"].values for name in ("b", "c")]
    assert [c.p for c in compared] == pytest.approx(
        [slow_compare(gain.tolist(), "keep")[0] for gain in gains], rel=1e-6
    )
    assert [c.holm_p for c in compared] == pytest.approx(holm([c.p for c in compared]))
    # References are no runs that are compared: their p are not corrected, and nothing is significant of them.
    ideal = found["relevance-first"].measures["nDCG@10"].vs_baseline
    assert ideal.p < 0.001
    assert (ideal.holm_p, ideal.significant) == (None, False)
    rows = [line for line in found.table(full=True, width=120).splitlines() if line.startswith("  (relevance-first)")]
    assert rows
    assert not any("*" in row for row in rows)


def test_a_measure_of_the_whole_run_is_compared_without_counts_of_queries(result):
    data = json.loads(result.to_json())["runs"]["mixed"]["measures"]["DeltaAPRF"]["vs_baseline"]
    assert data["difference"] == pytest.approx(result["mixed"].measures["DeltaAPRF"].mean - 0.8)
    assert data["ci95"][0] <= data["difference"] <= data["ci95"][1]
    assert (data["p"], data["reason"]) == (None, "a group has only 3 queries, where 15 are needed")
    assert [data[name] for name in ("better", "equal", "worse")] == [None] * 3


def test_json_has_the_form_of_the_contract(result, tmp_path, snapshot):
    text = result.to_json(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == text + "\n"
    data = json.loads(text)
    assert (data["schema"], data["evenrank"], data["baseline"]) == (2, evenrank.__version__, "male")
    figure = data["runs"]["mixed"]["measures"]["NFaiRR@3"]
    assert [list(data), list(data["runs"]), data["settings"], list(figure), list(figure["vs_baseline"])] == snapshot
    assert [str(m) for m in result.measures] == list(data["runs"]["mixed"]["measures"])
    # The same seed, the same bytes.
    assert made().to_json() == text


def test_per_query_values(result, tmp_path):
    values = result.per_query(tmp_path / "q.csv")
    assert values.shape == (30, 2 + 7)
    row = values.filter((pl.col("run") == "male") & (pl.col("query_id") == "4")).row(0, named=True)
    assert row["RR@10"] == pytest.approx(0.2)
    assert pl.read_csv(tmp_path / "q.csv").height == 30


def test_bias_alone_gets_utility_beside_it_and_is_all_without_qrels():
    found = evenrank.audit({"male": MALE_FIRST}, collection=COLLECTION, qrels=QRELS, measures=["ARaB@10"])
    assert list(found["male"].measures) == ["nDCG@10", "ARaB@10"]
    assert "nDCG@10 was added: bias is never reported without effectiveness." in found.notes
    found = evenrank.audit({"male": MALE_FIRST}, collection=COLLECTION)
    assert found.notes[0].startswith("Effectiveness is unknown")
    assert list(found["male"].measures) == ["ARaB@10", "NFaiRR@10"]


def test_ties_are_measured_and_flagged():
    tied = MALE_FIRST.with_columns(score=pl.lit(1.0))
    found = evenrank.audit({"tied": tied}, collection=COLLECTION, measures="ARaB(magnitude='count')@2")
    figure = found["tied"].measures["ARaB(magnitude='count')@2"]
    assert figure.tie_mean == pytest.approx(0)
    assert figure.tie_range == pytest.approx((-3.5, 3.5))
    assert figure.tie_sensitive
    assert found["tied"].tie_share == 1.0
    assert "tied: 100% of the documents in the first 10 ranks are tied." in found.notes
    assert any("moves ARaB(magnitude='count')@2 by more than its interval is wide" in note for note in found.notes)
    in_file_order = evenrank.audit(
        {"tied": tied}, collection=COLLECTION, measures="ARaB(magnitude='count')@2", order="file"
    )
    figure = in_file_order["tied"].measures["ARaB(magnitude='count')@2"]
    assert figure.mean == pytest.approx(3.5)
    assert figure.tie_range == (figure.mean, figure.mean)


def test_documents_outside_the_background_are_counted():
    other = table({str(q): ["n2", "m1"] for q in range(6)})
    found = evenrank.audit({"male": MALE_FIRST, "other": other}, collection=COLLECTION, measures="NFaiRR@2")
    assert (
        "other: 6 of 12 documents in the first 2 ranks are outside the background; its NFaiRR can exceed 1."
        in found.notes
    )
    assert found.settings["background"] == "male"
    # n2 is neutral but not in the background, whose ideal is n1, b1: still 1/(1 + 1/log2 3).
    assert found["other"].measures["NFaiRR@2"].mean == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_missing_documents():
    run = table({"0": ["gone", "m1", "n1"]})
    with pytest.raises(EvenrankError, match="run r: 1 of its 3 documents are not in the collection: 'gone'"):
        evenrank.audit({"r": run}, collection=COLLECTION)
    options = {"collection": COLLECTION, "missing_limit": 1, "measures": "RaB(magnitude='count')@1"}
    skipped = evenrank.audit({"r": run}, missing="skip", **options)
    assert skipped["r"].measures["RaB(magnitude='count')@1"].mean == 4
    # The first rank lacks a larger share than the whole run.
    found = "Documents without text: 1 of 1 document at the first rank of r (100%)"
    assert f"{found}, left out of the bias measures." in skipped.notes
    neutral = evenrank.audit({"r": run}, missing="neutral", **options)
    assert neutral["r"].measures["RaB(magnitude='count')@1"].mean == 0
    assert f"{found}, counted as neutral." in neutral.notes


def test_unjudged_and_absent_queries_are_noted():
    qrels = judged({"0": "m1", "77": "f1"})
    found = evenrank.audit({"male": MALE_FIRST}, collection=COLLECTION, qrels=qrels, measures="RR@10")
    assert found["male"].measures["RR@10"].mean == pytest.approx(0.5)
    assert found["male"].measures["RR@10"].n == 2
    assert "male: 5 queries are not judged and left out of utility." in found.notes
    said = "Judged queries missing: male lacks 1 of 2 (counted 0; skipped for bias)."
    assert f"{said} Ids only judged: '77'; only in male: '1', '2', '3'." in found.warnings


def test_scores_from_a_file_give_the_same_figures(tmp_path, result):
    COLLECTION.write_csv(tmp_path / "c.tsv", separator="\t", include_header=False)
    scores, scoring = tmp_path / "s.parquet", evenrank.Scoring(evenrank.load_lexicon())
    evenrank.groups.score_collection(tmp_path / "c.tsv", scores, scoring)
    found = made(collection=None, scores=scores)
    # How far a document of the collection can lean is known of scores alone: magnitudes up to 4, with weights of 1.
    ends = [one["male"].measures["ARaB(magnitude='count')@2"].greatest for one in (found, result)]
    assert ends == [4.0, None]
    kept = ("run", "measure", "mean", "n", "low", "high", "tie_mean", "difference", "vs_random_order", "vs_ideal_order")
    assert found.to_polars().select(kept).equals(result.to_polars().select(kept))
    with pytest.raises(EvenrankError, match="`tokens`: whitespace was asked for, but the scores were made with"):
        evenrank.audit({"male": MALE_FIRST}, scores=scores, tokens="whitespace")
    assert evenrank.audit({"male": MALE_FIRST}, scores=scores, tokens="word").lexicon.name == "gender-en"


def test_runs_objects_files_and_names(tmp_path):
    evenrank.write_run(Run.from_table(MALE_FIRST, "x"), tmp_path / "male.run")
    forms = ([tmp_path / "male.run"], {"male": Run.from_table(MALE_FIRST)}, [f"male={tmp_path}/male.run"])
    by_path, *others = (evenrank.audit(one, collection=COLLECTION, measures="RaB@3").to_dict()["runs"] for one in forms)
    assert [by_path, by_path] == others


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"runs": {}}, "at least one run"),
        ({"runs": ["a.run", "a.run.gz"]}, "two runs are named 'a': name them, as in NAME="),
        ({"runs": {"random": MALE_FIRST}}, "'random' is reserved for a reference ranking"),
        ({"runs": {"relevance-first": MALE_FIRST}}, "'relevance-first' is reserved for a reference ranking"),
        ({"baseline": "bm25"}, "`baseline`: no run 'bm25' (the runs are male)"),
        ({"seed": -1}, "`seed`: expected 0 to 18446744073709551615, found -1"),
        ({"measures": "nDCG@10 ("}, "a bracket is not closed"),
        ({"measures": "APRF"}, "'APRF' needs a group, such as APRF(group='m')"),
        ({"background_depth": 0}, "`background_depth`: expected 1 or more, found 0"),
        ({"missing": "ignore"}, "`missing`: expected error, skip or neutral, found 'ignore'"),
        ({"order": "rank"}, "`order`: expected score or file, found 'rank'"),
        ({"measures": "nDCG@10", "qrels": None}, "nDCG@10 needs `qrels`"),
        (
            {"collection": None},
            "documents' texts (`collection`), a group table (`scores`) or labels (`labels`)",
        ),
        ({"lexicon": "gender-xx"}, "no file and no built-in lexicon 'gender-xx'"),
        ({"poles": "m,x"}, "`poles`: expected two of f, m, rest"),
        (
            {"queries": COLLECTION.rename({"doc_id": "query_id"})},
            "no text for 6 of the 6 queries of the run male: '0', '1'",
        ),
    ],
)
def test_what_cannot_be_audited_is_said_in_one_line(arguments, message):
    given = {"runs": {"male": MALE_FIRST}, "collection": COLLECTION, "qrels": QRELS} | arguments
    with pytest.raises(EvenrankError) as error:
        evenrank.audit(given.pop("runs"), **given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_three_groups():
    words = [("he", "m"), ("she", "f"), ("they", "x")]
    lexicon = evenrank.Lexicon("three", ("f", "m", "x"), tuple(words), (0.25, 0.25, 0.5), ("x", "rest"))
    texts = pl.DataFrame({"doc_id": ["a", "b"], "text": ["they they he", "she she"]})
    found = evenrank.audit(
        {"r": table({"0": ["a", "b"]})},
        collection=texts,
        lexicon=lexicon,
        measures="RaB(magnitude='count')@1 NFaiRR@2 RaB(magnitude='count',poles='m,f')@2",
    )
    assert found["r"].measures["RaB(magnitude='count')@1"].mean == pytest.approx(2 - 0.5)
    assert found["r"].measures["RaB(magnitude='count',poles='m,f')@2"].mean == pytest.approx((1 - 2) / 2)


def test_equal_rankings_are_equal_whatever_rounding_says():
    longer = {str(q): ["m1", "n1", "b1", "f1", "m2", "f2"] for q in range(40)}
    # One short list more, so that the sums are added up another way.
    found = evenrank.audit(
        {"a": table(longer), "b": table(longer | {"99": ["n2"]})},
        collection=COLLECTION,
        background=Run.from_table(table(longer | {"99": ["n2"]}), "all"),
        baseline="a",
        measures="NFaiRR@3 ARaB@5 ARaB(magnitude='tf_words')@5 |ARaB|@5",
    )
    for name, figure in found["b"].measures.items():
        compared = figure.vs_baseline
        assert compared.difference == pytest.approx(0, abs=1e-12), name
        assert (compared.ci95, compared.p, compared.test.reason) == (None, None, "every value is 0"), name


def test_random_of_an_absolute_value_is_its_expectation_not_that_of_the_signed_one():
    found = evenrank.audit(
        {"tied": MALE_FIRST.with_columns(score=pl.lit(1.0))}, collection=COLLECTION, qrels=QRELS,
        measures="RR@10 |ARaB|@2 |DeltaAPRF|",
    )  # fmt: skip
    for name in ("|ARaB|@2", "|DeltaAPRF|"):
        tied, random = found["tied"].measures[name], found["random"].measures[name]
        assert random.mean > 0.01
        assert random.mean == pytest.approx(tied.tie_mean, rel=0.35)
        assert random.ci95 is None


def test_a_comparison_that_ties_decide_comes_with_one_that_they_cannot():
    tied = MALE_FIRST.with_columns(score=pl.lit(1.0))
    found = evenrank.audit(
        {"tied": tied, "male": MALE_FIRST}, collection=COLLECTION, baseline="male", measures="ARaB(magnitude='count')@2"
    )
    compared = found["tied"].measures["ARaB(magnitude='count')@2"].vs_baseline
    # By falling id: n1, m2 come first; on average over the orders of the tie, 0.
    assert compared.tied.mean == pytest.approx(-3.5)
    assert "difference_untold" in [one.key for one in found.findings]


@pytest.mark.parametrize(
    ("texts", "options", "noted"),
    [
        # Of four documents with a word, three have one.
        ({"a": "kine", "b": "kine", "c": "ovis", "d": "kine ovis ovis", "e": "stone"}, {}, True),
        ({"a": "kine", "b": "kine", "c": "ovis", "d": "kine ovis ovis", "e": "stone"}, {"threshold": 0}, False),
        # One of five is no matter; gender-en is not the user's own.
        ({**{f"d{number}": "kine ovis" for number in range(4)}, "a": "kine"}, {}, False),
        ({"a": "she", "b": "he", "c": "stone"}, {"lexicon": "gender-en"}, False),
    ],
)
def test_documents_with_too_few_words_of_an_own_lexicon_are_noted(texts, options, noted):
    lexicon = evenrank.Lexicon("herds", ("k", "o"), (("kine", "k"), ("ovis", "o")), (0.5, 0.5), ("k", "o"))
    settings = {"lexicon": lexicon, "measures": "NFaiRR@3", **options}
    found = evenrank.audit({"r": table({"q": [*texts]})}, collection=texts, **settings)
    note = (
        "`threshold`: 3 of 4 documents with a word of the lexicon herds (75%) have no more than 1, and so count as"
        " neutral and as of no group (`threshold=0` counts every word)."
    )
    assert [one for one in found.notes if one.startswith("`threshold`")] == [note] * noted


def test_what_changes_figures_is_recorded() -> None:
    """Every option of an audit is a setting, but for the files, whose record the provenance has."""
    lists = {"q": {"m": 2.0, "f": 1.0}}
    found = evenrank.audit(lists, collection={"m": "he", "f": "she"}, measures="ARaB@2")
    names = {*inspect.signature(evenrank.audit).parameters, *GroupOptions.__annotations__} - {"groups", "provenance"}
    files = {"runs", "collection", "qrels", "queries", "scores", "labels", "guess", "judge", "baseline"}
    of_labels = {"unknown", "target", "neutral", "group_column", "intersect", "query_groups"}
    assert names - files - of_labels <= set(found.settings)
