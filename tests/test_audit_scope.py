"""What an audit's figures are over: documents without text, common queries, depths, the queries that were given."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError
from evenrank.audit import AuditResult
from evenrank.audit.report.page import _contents
from evenrank.audit.report.summary import summarise
from evenrank.io import Run, Scores
from evenrank.measures import NFaiRR, using_scores

TEXTS = {"m": "he and his father", "f": "she and her mother", "n": "a stone bridge", "b": "the woman and the man"}


def collection(texts: dict[str, str]) -> pl.DataFrame:
    return pl.DataFrame({"doc_id": list(texts), "text": list(texts.values())})


def run(lists: dict[str, list[str]]) -> pl.DataFrame:
    rows = [(query, doc, float(len(docs) - place)) for query, docs in lists.items() for place, doc in enumerate(docs)]
    return pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")


def judged(relevant: dict[str, str]) -> pl.DataFrame:
    return pl.DataFrame(
        {"query_id": list(relevant), "doc_id": list(relevant.values()), "relevance": [1] * len(relevant)}
    )


def head(result: AuditResult) -> str:
    """What stands above the table."""
    return " ".join(result.table().split("\n\n")[0].split())


def words(result: AuditResult) -> str:
    return " ".join(summarise(result))


def warnings(page: str) -> list[str]:
    return [part.split("</p>")[0] for part in page.split('<p class="warning" role="note">')[1:]]


# --- documents without text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["skip", "neutral"])
def test_an_audit_of_documents_nobody_has_is_refused(missing: Any) -> None:
    lost = run({"1": [f"z{i}" for i in range(7)]})
    with pytest.raises(EvenrankError) as error:
        evenrank.audit({"lost": lost}, collection=collection(TEXTS), missing=missing, measures="NFaiRR@10")
    assert str(error.value) == (
        "run lost: 7 of 7 documents in all lists (100%) are not in the collection: 'z0', 'z1', 'z2', 'z3',"
        f" 'z4', … (`missing='{missing}'` puts up with 10%; `missing_limit` sets that share)"
    )


def test_a_known_tail_does_not_hide_unknown_first_ranks() -> None:
    tail = {f"d{i}": "he and his father" for i in range(90)}
    lost = run({"1": [*(f"z{i}" for i in range(10)), *tail]})
    options: dict[str, Any] = {"collection": collection(tail), "missing": "neutral"}
    with pytest.raises(EvenrankError, match=r"10 of 10 documents in the first 10 ranks \(100%\)"):
        evenrank.audit({"lost": lost}, measures="NFaiRR@10 ARaB@100", **options)
    # 10 of 100 is no more than a tenth, where a measure looks no nearer than that.
    found = evenrank.audit({"lost": lost}, measures="ARaB@100", **options)
    assert json.loads(found.to_json())["runs"]["lost"]["missing"] == {
        "documents": 10, "total": 100, "share": 0.1, "depth": None, "queries": 0,
    }  # fmt: skip


def test_documents_without_text_stand_in_the_first_lines() -> None:
    table = run({str(q): ["n", "m", "f", "b", "x" if q == 0 else "m2"] for q in range(4)})
    texts = collection({**TEXTS, "m2": "the king"})
    found = evenrank.audit({"r": table}, collection=texts, missing="neutral", measures="NFaiRR@5")
    line = "Documents without text: 1 of 20 documents in all lists of r (5%), counted as neutral."
    assert head(found).startswith(
        f"Effectiveness is unknown: there are no qrels. A ranking of nonsense can be perfectly fair. {line}"
    )
    assert found.table().count("Documents without text") == 1
    assert found.notes[1] == found.warnings[1] == line
    assert _contents(found)["warnings"][1] == ["Documents without text", line.removeprefix("Documents without text:")]
    assert line not in _contents(found)["notes"]
    assert found.settings["missing_limit"] == 0.1
    with pytest.raises(EvenrankError, match=r"`missing_limit` sets that share"):
        evenrank.audit({"r": table}, collection=texts, missing="neutral", missing_limit=0.04, measures="NFaiRR@5")


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_a_limit_is_a_share(share: float) -> None:
    with pytest.raises(EvenrankError, match="`missing_limit`: expected a number from 0 to 1, found "):
        evenrank.audit({"r": run({"1": ["m"]})}, collection=collection(TEXTS), missing_limit=share)


def test_a_query_left_empty_has_no_most_neutral_order() -> None:
    lists = {str(q): ["m", "f", "n", "b"] for q in range(5)}
    table = run({**lists, "5": ["x", "y"], "6": ["m", "x", "n"]})
    qrels = judged({**dict.fromkeys(lists, "m"), "5": "x", "6": "x"})
    found = evenrank.audit(
        {"r": table}, collection=collection(TEXTS), qrels=qrels, missing="skip", missing_limit=0.3,
        measures="RR@10 infAP NFaiRR@2",
    )  # fmt: skip
    ideal = found["neutral-first"].figures["RR@10"]
    # n, b, m, f: the man's passage third. Query 6: n, m, then the document without text. Query 5: no order is known.
    assert np.allclose(ideal.values, [1 / 3] * 5 + [np.nan, 1 / 3], equal_nan=True)
    assert (ideal.n, ideal.undefined, ideal.mean) == (6, 1, pytest.approx(1 / 3))
    assert ideal.tie_mean == pytest.approx(1 / 3)
    assert np.isnan(found["neutral-first"].figures["infAP"].values[5])
    # The run's own effectiveness needs no text.
    assert found["r"].figures["RR@10"].values.tolist() == [1.0] * 5 + [1.0, 0.5]
    assert found["r"].figures["NFaiRR@2"].undefined == 1
    assert "left out of the bias measures; bias is undefined for 1 query, as no document has a text." in head(found)
    assert json.loads(found.to_json())["runs"]["r"]["missing"]["queries"] == 1


def test_documents_left_out_keep_their_place_in_effectiveness() -> None:
    table = run({str(q): ["m", "x" if q == 0 else "f", "n"] for q in range(4)})
    found = evenrank.audit(
        {"r": table}, collection=collection(TEXTS), qrels=judged({str(q): "x" for q in range(4)}), missing="skip",
        measures="R@3 NFaiRR@3",
    )  # fmt: skip
    # The same candidates: the most neutral order finds what the run found.
    assert found["neutral-first"].figures["R@3"].values.tolist() == [1, 0, 0, 0]


def test_ir_measures_are_refused_documents_that_nobody_has() -> None:
    scores = Scores.of(pl.DataFrame({"doc_id": ["a"], "count_f": [0], "count_m": [3], "neutrality": [0.0]}))
    qrels, table = {"1": {"a": 1}}, {"1": {"x": 3.0, "y": 2.0, "a": 1.0}}
    with (
        using_scores(scores, missing="neutral"),
        pytest.raises(EvenrankError, match=r"2 of 2 documents in the first 2 ranks \(100%\)"),
    ):
        ir_measures.calc_aggregate([NFaiRR @ 2], qrels, table)
    with using_scores(scores, missing="neutral", missing_limit=1):
        assert ir_measures.calc_aggregate([NFaiRR @ 2], qrels, table) == {NFaiRR @ 2: 1.0}


# --- common queries --------------------------------------------------------------------------------------------------


def test_a_difference_says_which_queries_it_is_over() -> None:
    first = run({str(q): ["m", "n", "f"] for q in range(4)})
    second = run({str(q): ["n", "m", "f"] if q < 6 else ["f", "m", "n"] for q in range(2, 8)})
    everything = pl.concat([first, second.filter(pl.col("query_id").cast(int) > 3)])
    found = evenrank.audit(
        {"first": first, "second": second}, collection=collection(TEXTS), baseline="first",
        background=evenrank.Run.from_table(everything, "all"),
        measures="RaB(magnitude='count')@1 |ARaB(magnitude='count')|@1",
    )  # fmt: skip
    figure = found["second"].figures["RaB(magnitude='count')@1"]
    # Four queries start with n, two with f (3 words): its mean is -1. On the common queries 2 and 3 it is 0, against 3.
    assert figure.mean == pytest.approx(-1)
    compared = figure.vs_baseline
    assert compared is not None
    assert (compared.n, compared.mean, compared.baseline_mean, compared.difference) == (2, 0, 3, -3)
    data = json.loads(found.to_json())["runs"]["second"]["measures"]
    assert {k: data["RaB(magnitude='count')@1"]["vs_baseline"][k] for k in ("n", "mean", "baseline_mean")} == {
        "n": 2, "mean": 0, "baseline_mean": 3,
    }  # fmt: skip
    whole = data["|ARaB|(magnitude='count')@1"]
    assert (whole["mean"], whole["vs_baseline"]["mean"], whole["vs_baseline"]["n"]) == (pytest.approx(1), 0, 2)
    for width in (76, 200):
        assert "    on the 2 common queries: 0.0000 against 3.0000\n" in found.table(width)
    tags = [cell["tag"] for row in _contents(found)["rows"] for cell in row["cells"]]
    assert tags.count("2 common queries: 0.0000 against 3.0000") == 2
    assert "on the 2 common queries (-3.000: 0.000 against 3.000)" in words(found)
    # Without its sign: 0 and 3 on the queries of both, not 1 (a third of the queries with 3 words) and 3.
    assert "a query's lean is 0.000 in second, 3.000 in first on average over the 2 common queries." in words(found)


def test_the_queries_of_each_pole_are_counted() -> None:
    both = {str(q): ["m", "n", "f"] for q in range(6)}
    relevant = {str(q): "m" if q < 3 else "f" for q in range(6)}
    found = evenrank.audit(
        {"old": run(both), "new": run({q: docs for q, docs in both.items() if q != "0"})},
        collection=collection(TEXTS), qrels=judged(relevant), baseline="old", measures="DeltaAPRF",
    )  # fmt: skip
    compared = json.loads(found.to_json())["runs"]["new"]["measures"]["DeltaAPRF"]["vs_baseline"]
    # m beats both others, f none.
    assert (compared["n"], compared["n_poles"], compared["mean"], compared["baseline_mean"]) == (5, [2, 3], 1, 1)
    assert "    on the 5 common queries (2 of m, 3 of f): 1.0000 against 1.0000\n" in found.table()


def test_equal_queries_are_not_spoken_of() -> None:
    lists = {str(q): ["m", "n", "f"] for q in range(4)}
    found = evenrank.audit(
        {"old": run(lists), "new": run({q: docs[::-1] for q, docs in lists.items()})},
        collection=collection(TEXTS), baseline="old", measures="RaB@1",
    )  # fmt: skip
    assert "common" not in found.table()
    compared = found["new"].figures["RaB@1"].vs_baseline
    assert compared is not None
    assert (compared.n, compared.mean) == (4, found["new"].figures["RaB@1"].mean)


def test_a_drawn_reference_differs_by_its_own_figure() -> None:
    found = evenrank.audit(
        {"r": run({str(q): ["m", "f", "n"] for q in range(4)})}, collection=collection(TEXTS), baseline="r",
        measures="|ARaB|@2",
    )  # fmt: skip
    random, own = found["random"].figures["|ARaB|@2"], found["r"].figures["|ARaB|@2"]
    assert random.mean is not None
    assert own.mean is not None
    assert random.mean > 0.01
    assert random.vs_baseline is not None
    assert random.vs_baseline.difference == pytest.approx(random.mean - own.mean)
    assert (random.vs_baseline.mean, random.vs_baseline.p) == (random.mean, None)


# --- unequal depths --------------------------------------------------------------------------------------------------


def test_a_drawn_reference_is_not_compared_over_other_queries():
    docs = {f"d{i}": ("he and his father", "she and her mother", "a bridge")[i % 3] for i in range(6)}
    lists = {"q1": ["d0", "d1", "d2"], "q2": ["d3", "d4", "d5"]}
    back = pl.DataFrame([(q, d, -float(i)) for q, names in lists.items() for i, d in enumerate(names)],
                        {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")  # fmt: skip
    run = back.filter(pl.col("query_id") == "q1")
    texts = pl.DataFrame({"doc_id": list(docs), "text": list(docs.values())})
    found = evenrank.audit({"r": run}, baseline="r", background=Run.from_table(back, "back"), collection=texts,
                           measures="|ARaB|@3")  # fmt: skip
    compared = found["random", "|ARaB|@3"].vs_baseline
    assert compared is not None
    assert (compared.difference, compared.mean, compared.n, compared.partial) == (None, None, 1, True)
    assert "no difference: drawn over other queries" in found.table()


def test_qrels_and_lexicons_of_other_data_are_told_first(tmp_path):
    texts = pl.DataFrame({"doc_id": ["a", "b"], "text": ["he and his father", "a bridge"]})
    table = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0, 1.0]})
    qrels = pl.DataFrame({"query_id": ["other"], "doc_id": ["a"], "relevance": [1]})
    found = evenrank.audit({"r": table}, collection=texts, qrels=qrels, measures="nDCG@10 ARaB@2")
    assert found.warnings == (
        "Effectiveness says nothing here: the qrels judge no query of r, and every judged query counts 0.",
    )
    lexicon = tmp_path / "none.csv"
    lexicon.write_text("xyzzy,m\nplugh,f\n")
    found = evenrank.audit({"r": table}, collection=texts, lexicon=lexicon, measures="ARaB@2")
    assert (
        "Bias says nothing here: no document of the background (r) holds a word of the lexicon none." in found.warnings
    )


def test_what_depth_decides_is_noted_and_left_out_of_the_words() -> None:
    docs = {f"d{i}": ("he and his father", "she and her mother", "a bridge")[i % 3] for i in range(20)}
    deep = {str(q): list(docs) for q in range(8)}
    options: dict[str, Any] = {
        "collection": collection(docs),
        "qrels": judged({str(q): f"d{12 + q % 4}" if q < 6 else "d1" for q in range(8)}),
        "measures": "nDCG@5 RR AP R@5 R@1000 NFaiRR@3 ARaB@10 DeltaAPRF",
    }
    runs = {"deep": run(deep), "shallow": run({q: list(docs)[:5] for q in deep})}
    found = evenrank.audit(runs, baseline="deep", **options)
    compared = {name: figure.vs_baseline for name, figure in found["shallow"].figures.items()}
    decided = [name for name, one in compared.items() if one is not None and one.unequal_depth]
    assert decided == ["RR", "AP", "R@1000", "ARaB@10", "DeltaAPRF"]
    assert compared["R@1000"] is not None
    assert compared["R@1000"].significant
    note = (
        "shallow has 5 documents a query, deep 20 (means over the queries of both); depth decides RR, AP, R@1000,"
        " ARaB@10, DeltaAPRF, which the summary does not compare."
    )
    assert note in found.notes
    assert note in _contents(found)["notes"]
    said = words(found)
    assert "less effective" not in said
    assert "shallow: no loss shown, within 5% of deep or better: nDCG@5 0.158 against 0.158, R@5 0.250" in said
    assert "Its difference to deep in ARaB@10" not in said
    assert "Its difference to deep in NFaiRR@3" in said
    data = json.loads(found.to_json())["runs"]["shallow"]["measures"]
    assert [data[name]["vs_baseline"]["unequal_depth"] for name in ("R@5", "R@1000")] == [False, True]
    only = words(evenrank.audit(runs, baseline="deep", **{**options, "measures": "R@1000"}))
    assert "shallow is not compared with deep: their unequal depths decide every measure given." in only
    # Values side by side are a comparison too.
    untested = words(evenrank.audit(runs, **options))
    assert "shallow nDCG@5" in untested
    assert "R@1000" not in untested


def test_a_few_short_lists_are_no_other_depth() -> None:
    docs = {f"d{i}": "he and his father" if i % 2 else "a bridge" for i in range(20)}
    deep = {str(q): list(docs) for q in range(40)}
    found = evenrank.audit(
        {"deep": run(deep), "other": run({**deep, "7": ["d1", "d0"]})}, collection=collection(docs), baseline="deep",
        qrels=judged({str(q): "d3" for q in range(40)}), measures="R@1000 NFaiRR@10",
    )  # fmt: skip
    assert not any("depth" in note for note in found.notes)
    assert "R@1000" in next(line for line in summarise(found) if line.startswith("other"))


# --- the queries that were given -------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    files = {
        "c.tsv": "".join(f"{doc}\t{text}\n" for doc, text in TEXTS.items()),
        "labels.tsv": "m\the\nf\tshe\nn\tstone\nb\tman\n",
        "one.run": "".join(f"{q} Q0 {doc} {i} {-i} t\n" for q in range(4) for i, doc in enumerate("mfnb")),
        "qrels": "".join(f"{q} 0 m 1\n" for q in range(10)),
        "four.tsv": "".join(f"{q}\twho\n" for q in range(4)),
        "two.tsv": "".join(f"{q}\twho\n" for q in range(2)),
    }
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_queries_given_can_be_the_only_ones(folder: Path, evenrank: Callable[..., Any]) -> None:
    command = ("audit", "one.run", "--collection", "c.tsv", "--qrels", "qrels", "--measures", "RR@10 NFaiRR@2")
    ended = evenrank(*command, "--queries", "four.tsv", "--json", "a.json", "--report", "r.html")
    assert (ended.status, ended.err) == (0, "report: r.html\n")
    text = " ".join(ended.out.split())
    assert "n = 10 queries, 6 of them not in the run and counted 0" in text
    assert (
        "The qrels judge 10 queries, 6 of which are not among the 4 given: utility is averaged over all 10"
        " (--only-queries restricts the audit to those given)."
    ) in text
    assert "one: utility is averaged over 10 judged queries; 6 of them are not in the run and count 0." in text
    data = json.loads(Path("a.json").read_text(encoding="utf-8"))
    assert (data["runs"]["one"]["absent"], data["runs"]["one"]["measures"]["RR@10"]["mean"]) == (6, 0.4)
    assert any("--only-queries" in note for note in data["notes"])
    assert "6 not in the run, counted 0" in Path("r.html").read_text(encoding="utf-8")

    ended = evenrank(*command, "--queries", "four.tsv", "--only-queries", "--json", "a.json", "--per-query", "v.csv")
    assert ended.status == 0
    data = json.loads(Path("a.json").read_text(encoding="utf-8"))
    figure = data["runs"]["one"]["measures"]["RR@10"]
    assert (figure["mean"], figure["n"], data["runs"]["one"]["absent"]) == (1.0, 4, 0)
    assert data["settings"]["only_queries"] is True
    assert "--only-queries: the audit is restricted to the 4 queries given." in ended.out
    assert "not in the run" not in ended.out
    assert pl.read_csv("v.csv")["query_id"].unique().sort().to_list() == [0, 1, 2, 3]


def test_queries_of_the_run_that_were_not_given(folder: Path, evenrank: Callable[..., Any]) -> None:
    command = ("audit", "one.run", "--collection", "c.tsv", "--qrels", "qrels", "--queries", "two.tsv")
    ended = evenrank(*command)
    assert ended.status == 2
    assert ended.err.startswith(
        "evenrank: two.tsv: no text for 2 of the 4 queries of the run one (one.run): '2', '3' ("
    )
    ended = evenrank(*command, "--only-queries", "--json", "a.json")
    assert ended.status == 0
    assert json.loads(Path("a.json").read_text(encoding="utf-8"))["runs"]["one"]["queries"] == 2
    Path("none.tsv").write_text("99\twho\n")
    ended = evenrank(*command[:-1], "none.tsv", "--only-queries")
    assert ended.status == 2
    assert "run one (one.run): " in ended.err
    assert "leaves none of its 4 queries" in ended.err


def test_only_queries_needs_queries() -> None:
    with pytest.raises(EvenrankError, match="`only_queries` needs `queries`"):
        evenrank.audit({"r": run({"1": ["m"]})}, collection=collection(TEXTS), only_queries=True)
    table, asked = run({"1": ["m", "n"]}), pl.DataFrame({"query_id": ["1"], "text": ["who"]})
    with pytest.raises(EvenrankError, match="`only_queries`: the qrels judge none of the queries given"):
        evenrank.audit(
            {"r": table}, collection=collection(TEXTS), queries=asked, qrels=judged({"2": "m"}), only_queries=True
        )


# --- a background that is neutral throughout -------------------------------------------------------------------------


def test_labels_of_one_word_are_explained(folder: Path, evenrank: Callable[..., Any]) -> None:
    command = ("audit", "one.run", "--collection", "labels.tsv", "--measures", "NFaiRR@2")
    ended = evenrank(*command, "--report", "r.html")
    assert ended.status == 0
    text = " ".join(ended.out.split())
    warning = (
        "Neutrality says nothing here: no document of the background (one) has more than 1 group word, and so few do"
        " not count (texts that are labels of one word need --threshold 0), so NFaiRR is 1 in any order."
    )
    assert warning in text.partition(" run mean ")[0]
    assert "NFaiRR@2 says nothing of one: every document of the background counts as neutral." in text
    assert "the most neutral order 1.000" not in text
    assert warnings(Path("r.html").read_text(encoding="utf-8"))[1].startswith(
        "<b>Neutrality says nothing here:</b> no "
    )
    ended = evenrank(*command, "--threshold", "0")
    assert "says nothing" not in ended.out
    assert "0.0000" in ended.out


def test_why_a_background_is_neutral() -> None:
    table = run({"1": ["x", "b"]})
    other = evenrank.audit({"r": table}, collection=collection({"x": "el rey", "b": "un puente"}), measures="NFaiRR@2")
    assert "no document of the background (r) holds a word of the lexicon gender-en, so" in head(other)
    even = evenrank.audit({"r": table}, collection=collection({"x": "he or she", "b": TEXTS["b"]}), measures="NFaiRR@2")
    assert "every document of the background (r) holds the groups at their target shares, so" in head(even)
    # No measure of neutrality, nothing to warn of.
    lean = evenrank.audit({"r": table}, collection=collection({"x": "he", "b": "she"}), measures="RaB@1")
    assert len(lean.warnings) == 1


# --- effectiveness alone, and lexicons of two groups -----------------------------------------------------------------


def test_effectiveness_alone_needs_no_texts(folder: Path, evenrank: Callable[..., Any]) -> None:
    Path("two.run").write_text("".join(f"{q} Q0 {doc} {i} {-i} t\n" for q in range(4) for i, doc in enumerate("nmbf")))
    ended = evenrank(
        "audit", "one.run", "two.run", "--baseline", "one", "--qrels", "qrels", "--measures", "nDCG@10 RR@10",
        "--json", "a.json", "--report", "r.html", "--per-query", "v.csv",
    )  # fmt: skip
    assert (ended.status, ended.err) == (0, "report: r.html\n")
    data = json.loads(Path("a.json").read_text(encoding="utf-8"))
    assert list(data["runs"]) == ["one", "two", "random"]
    assert data["runs"]["two"]["measures"]["RR@10"]["mean"] == pytest.approx(0.5 * 4 / 10)
    assert "lexicon" not in data["settings"]
    assert "neutral-first is left out: without texts or scores nothing is known of the documents." in data["notes"]
    assert "lexicon" not in ended.out
    page = Path("r.html").read_text(encoding="utf-8")
    assert 'id="depth' not in page
    assert "two is less effective than one" in " ".join(ended.out.split()) or "a loss" in ended.out
    ended = evenrank("audit", "one.run", "--qrels", "qrels", "--measures", "nDCG@10 ARaB@10")
    assert ended.status == 2
    assert "an audit needs the documents' texts or scores" in ended.err


AGES = "word,group\nyoung,young\nteenager,young\nold,old\npensioner,old\n"


@pytest.mark.parametrize(
    ("name", "text", "poles"),
    [
        ("ages.csv", AGES, ("young", "old")),
        ("ages.csv", "\n".join(AGES.splitlines()[::-1][:-1]), ("old", "young")),
        ("ages.toml", '[words]\nyoung = ["young"]\nold = ["old"]\n', ("young", "old")),
        ("ages.toml", 'groups = ["old", "young"]\n[words]\nyoung = ["young"]\nold = ["old"]\n', ("old", "young")),
    ],
)
def test_two_groups_take_the_order_of_the_file(tmp_path: Path, name: str, text: str, poles: tuple[str, str]) -> None:
    (tmp_path / name).write_text(text)
    lexicon = evenrank.load_lexicon(tmp_path / name)
    assert (lexicon.poles, lexicon.poles_assumed) == (poles, True)
    assert lexicon.with_poles("old,rest").poles_assumed is False


def test_poles_that_nobody_named_are_said(folder: Path, evenrank: Callable[..., Any]) -> None:
    Path("ages.csv").write_text(AGES)
    Path("c.tsv").write_text("m\ta young teenager\nf\ta pensioner\nn\tx\nb\ty\n")
    assert evenrank("score", "c.tsv", "--lexicon", "ages.csv", "--out", "s.parquet").status == 0
    note = "Bias is young minus old: nobody named the poles, so the file's order decided (--poles sets them)."
    for given in (("--collection", "c.tsv", "--lexicon", "ages.csv"), ("--scores", "s.parquet")):
        ended = evenrank("audit", "one.run", *given, "--measures", "RaB(magnitude='count')@1", "--json", "a.json")
        assert ended.status == 0
        data = json.loads(Path("a.json").read_text(encoding="utf-8"))
        assert data["runs"]["one"]["measures"]["RaB(magnitude='count')@1"]["mean"] == 2
        assert note in data["notes"]
        ended = evenrank("audit", "one.run", *given, "--poles", "old,young", "--measures", "RaB(magnitude='count')@1")
        assert "-2.0000" in ended.out
        assert "nobody named" not in ended.out


def test_m_and_f_need_no_word(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("she,f\nhe,m\n")
    lexicon = evenrank.load_lexicon(tmp_path / "l.csv")
    assert (lexicon.poles, lexicon.poles_assumed) == (("m", "f"), False)
