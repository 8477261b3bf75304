"""The audit: figures, comparisons, notes, JSON, and what it refuses."""

from __future__ import annotations

import inspect
import json
import math

import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError, Run
from evenrank.auditing import AuditResult
from evenrank.options import GroupOptions
from slow_stats import slow_compare
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


def test_comparison_with_the_baseline(result):
    figure = result["mixed"].measures["RR@10"]
    base, values = result["male"].measures["RR@10"].values, figure.values
    found = figure.vs_baseline
    assert found.relative == pytest.approx((values - base).mean() / base.mean())
    assert (found.better, found.equal, found.worse) == (3, 0, 3)
    p, *ends = slow_compare((values - base).tolist(), "keep")
    assert (found.p, found.ci95) == (pytest.approx(p), pytest.approx(tuple(ends)))
    # A bias nearer zero is better, whatever its sign.
    bias = result["mixed"].measures["ARaB(magnitude='count')@2"].vs_baseline
    assert (bias.better, bias.worse) == (6, 0)
    # References are no runs that are compared.
    assert result["random"].measures["RR@10"].vs_baseline.holm_p is None


def test_json_has_the_form_of_the_contract(result, tmp_path, snapshot):
    text = result.to_json(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == text + "\n"
    data = json.loads(text)
    assert (data["schema"], data["evenrank"], data["baseline"]) == (2, evenrank.__version__, "male")
    figure = data["runs"]["mixed"]["measures"]["NFaiRR@3"]
    assert [list(data), list(data["runs"]), data["settings"], list(figure), list(figure["vs_baseline"])] == snapshot
    # The same seed, the same bytes.
    assert made().to_json() == text


def test_bias_alone_gets_utility_beside_it():
    found = evenrank.audit({"male": MALE_FIRST}, collection=COLLECTION, qrels=QRELS, measures=["ARaB@10"])
    assert list(found["male"].measures) == ["nDCG@10", "ARaB@10"]
    assert "nDCG@10 was added: bias is never reported without effectiveness." in found.notes


def test_ties_are_measured_and_flagged():
    tied, measure = MALE_FIRST.with_columns(score=pl.lit(1.0)), "ARaB(magnitude='count')@2"
    found = evenrank.audit({"tied": tied}, collection=COLLECTION, measures=measure)
    figure = found["tied", measure]
    assert (figure.tie_mean, figure.tie_range) == (pytest.approx(0), pytest.approx((-3.5, 3.5)))
    assert (figure.tie_sensitive, found["tied"].tie_share) == (True, 1.0)
    assert "tied: 100% of the documents in the first 10 ranks are tied." in found.notes
    figure = evenrank.audit({"tied": tied}, collection=COLLECTION, measures=measure, order="file")["tied", measure]
    assert figure.mean == pytest.approx(3.5)
    assert figure.tie_range == (figure.mean, figure.mean)


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
    kept = ("run", "measure", "mean", "n", "low", "high", "tie_mean", "difference", "vs_random_order", "vs_ideal_order")
    found = made(collection=None, scores=scores).to_polars()
    assert found.select(kept).equals(result.to_polars().select(kept))
    with pytest.raises(EvenrankError, match="`tokens`: whitespace was asked for, but the scores were made with"):
        evenrank.audit({"male": MALE_FIRST}, scores=scores, tokens="whitespace")


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
        ({"qrels": judged({"other": "m1"})}, "run male: none of its 6 queries is judged in `qrels`: the run has '0'"),
        ({"missing_limit": 1.1}, "`missing_limit`: expected a number from 0 to 1, found 1.1"),
        ({"collection": None}, "documents' texts (`collection`), a group table (`scores`) or labels (`labels`)"),
        ({"lexicon": "gender-xx"}, "no file and no built-in lexicon 'gender-xx'"),
        ({"poles": "m,x"}, "`poles`: expected two of f, m, rest"),
        ({"queries": {"q": "who"}}, "no text for 6 of the 6 queries of the run male: '0', '1'"),
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


def test_documents_with_too_few_words_of_an_own_lexicon_are_noted():
    lexicon = evenrank.Lexicon("herds", ("k", "o"), (("kine", "k"), ("ovis", "o")), (0.5, 0.5), ("k", "o"))
    # Of four documents with a word, three have one.
    texts = {"a": "kine", "b": "kine", "c": "ovis", "d": "kine ovis ovis", "e": "stone"}
    given = {"collection": texts, "lexicon": lexicon, "measures": "NFaiRR@3"}
    few, every = (evenrank.audit({"q": dict.fromkeys(texts, 1.0)}, **given, **more) for more in ({}, {"threshold": 0}))
    note = (
        "`threshold`: 3 of 4 documents with a word of the lexicon herds (75%) have no more than 1, and so count as"
        " neutral and as of no group (`threshold=0` counts every word)."
    )
    assert note in few.notes
    assert not [one for one in every.notes if one.startswith("`threshold`")]


def test_what_changes_figures_is_recorded() -> None:
    """Every option of an audit is a setting, but for the files, whose record the provenance has."""
    lists = {"q": {"m": 2.0, "f": 1.0}}
    found = evenrank.audit(lists, collection={"m": "he", "f": "she"}, measures="ARaB@2")
    names = {*inspect.signature(evenrank.audit).parameters, *GroupOptions.__annotations__} - {"groups", "provenance"}
    files = {"runs", "collection", "qrels", "queries", "scores", "labels", "guess", "judge", "baseline"}
    of_labels = {"unknown", "target", "neutral", "group_column", "intersect", "query_groups"}
    assert names - files - of_labels <= set(found.settings)
