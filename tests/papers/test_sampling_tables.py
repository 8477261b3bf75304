"""The sampling experiment's tables and claims on figures made by hand; what a wrong program would show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from evenrank.measures.inference import holm
from evenrank.papers import sampling_paper
from evenrank.papers.paper_page import Claim, Row, Table, Value, published, statements
from evenrank.papers.sampling_paper import (
    Figures,
    Found,
    Values,
    claims,
    leaked,
    published_row,
    significance_table,
    table1,
    table2,
    table3,
    warned,
)

QUERIES = 200
FIGURES = {
    "BM25": (0.4, 0.70, 0.30, 0.20),
    "original": (0.8, 0.60, 0.40, 0.25),
    "bias-aware": (0.79, 0.75, 0.10, 0.05),
    "AdvBert": (0.7, 0.66, 0.30, 0.20),
    "blind": (0.78, 0.60, 0.40, 0.25),
    "random": (0.2, 0.65, 0.35, 0.22),
    "neutral-first": (0.3, 1.0, 0.0, 0.0),
}
"""MRR, NFaiRR, ARaB tf and bool of each system."""
MEASURES = ("mrr_10", "nfairr_10", "arab_tf_10", "arab_bool_10")


def values(seed: int = 0, **changed: tuple[float, ...]) -> Values:
    """Queries whose means are exactly the figures."""
    noise = np.random.default_rng(seed).normal(size=(len(FIGURES), 4, QUERIES)) / 20
    noise -= noise.mean(axis=2, keepdims=True)
    return {
        name: {
            measure: mean + noise[i, j]
            for j, (measure, mean) in enumerate(zip(MEASURES, changed.get(name.replace("-", "_"), row), strict=True))
        }
        for i, (name, row) in enumerate(FIGURES.items())
    }


def found(seeds: int = 1, **changed: tuple[float, ...]) -> Found:
    figures = Figures([values(seed, **changed) for seed in range(seeds)])
    one = Figures([values(0, **changed)])
    return Found(
        sets={part: {"BERT-base": figures} for part in ("dev", "QS1", "QS2")},
        small={"BERT-Tiny": one},
        leakage={"BERT-Tiny": {"before": accuracy(0.9), "after": accuracy(0.6)}},
        counts={"QS1": QUERIES, "QS2": QUERIES},
    )


def accuracy(value: float) -> Value:
    return Value(value, QUERIES, "queries", (value - 0.02, value + 0.02))


def row(table: Table, *start: str) -> Row:
    return next(row for row in table.rows if row.labels[: len(start)] == start)


def by_key(all_claims: tuple[Claim, ...]) -> dict[str, Claim]:
    """Those of AdvBert's own paper as ``advbert/KEY``."""
    prefix = {"sampling": "", "advbert": "advbert/"}
    return {prefix[claim.statement.paper] + claim.statement.key: claim for claim in all_claims}


# --- columns ---------------------------------------------------------------------------------------------------------


def check_columns(table: Table) -> None:
    """Signs and sizes of the relative columns: measured from FIGURES, published from the printed figures."""
    aware = row(table, "QS1", "BERT-base", "bias-aware")
    measured = {key: value.mean for key, value in aware.measured.items()}
    assert measured["nfairr_improvement"] == pytest.approx(25)
    assert measured["arab_tf_reduction"] == pytest.approx(75)
    assert measured["arab_bool_reduction"] == pytest.approx(80)
    assert aware.published["nfairr_improvement"] == pytest.approx(11.71, abs=0.005)
    assert aware.published["arab_tf_reduction"] == pytest.approx(24.51, abs=0.005)
    assert aware.published["arab_bool_reduction"] == pytest.approx(9.62, abs=0.005)
    assert "nfairr_improvement" not in row(table, "QS1", "BERT-base", "original").published


@pytest.mark.parametrize("seeds", [1, 3])
def test_relative_columns(seeds: int) -> None:
    check_columns(table2(found(seeds), 0.6))
    change = table1(found(seeds), 0.6).rows[0]
    assert change.measured["change_percent"].mean == pytest.approx(-1.25)
    assert change.published["change_percent"] == pytest.approx(-2.84, abs=0.01)
    adversarial = row(table3(found()), "BERT-Tiny", "AdvBert")
    assert adversarial.measured["nfairr_improvement"].mean == pytest.approx(10)
    assert adversarial.measured["arab_tf_reduction"].mean == pytest.approx(25)
    assert adversarial.published["nfairr_improvement"] == pytest.approx(100 * (0.9257 / 0.8688 - 1))
    assert adversarial.published["arab_tf_reduction"] == pytest.approx(100 * (1 - 0.0245 / 0.0356))


@pytest.mark.parametrize("measure", ["nfairr_10", "arab_tf_10", "arab_bool_10"])
def test_mutant_a_sign_flipped_in_a_column(monkeypatch: pytest.MonkeyPatch, measure: str) -> None:
    column, heading, change = sampling_paper.CHANGES[measure]
    flipped = column, heading, lambda value, baseline: -(change(value, baseline) or 0.0)
    monkeypatch.setattr(sampling_paper, "CHANGES", {**sampling_paper.CHANGES, measure: flipped})
    with pytest.raises(AssertionError):
        check_columns(table2(found(), 0.6))


def test_mutant_a_sign_flipped_in_a_measured_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling_paper, "minus", lambda value: value)
    with pytest.raises(AssertionError):
        check_columns(table2(found(), 0.6))


def check_sides(table: Table) -> None:
    """Measured figures are those made by hand, published ones those of the file."""
    for line in published("sampling_table2"):
        one = row(table, line["query_set"], line["ranker"], line["training"])
        for place, measure in enumerate(MEASURES):
            assert one.published[measure] == float(line[measure])
            if line["ranker"] == "BERT-base":
                assert one.measured[measure].mean == pytest.approx(FIGURES[line["training"]][place])


def test_measured_beside_published() -> None:
    check_sides(table2(found(), 0.6))


def test_mutant_measured_and_published_swapped() -> None:
    table = table2(found(), 0.6)
    swapped = [
        replace(
            one,
            measured={key: Value(value) for key, value in one.published.items()},
            published={key: value.mean or 0.0 for key, value in one.measured.items()},
        )
        for one in table.rows
    ]
    with pytest.raises((AssertionError, KeyError)):
        check_sides(replace(table, rows=tuple(swapped)))


def test_a_negative_lean_nearer_to_zero_is_a_reduction() -> None:
    one = found(bias_aware=(0.79, 0.75, -0.1, -0.05))
    aware = row(table2(one, 0.6), "QS1", "BERT-base", "bias-aware")
    assert aware.measured["arab_tf_reduction"].mean == pytest.approx(75)
    line = {"mrr_10": "0.1", "nfairr_10": "0.9", "arab_tf_10": "-0.2", "arab_bool_10": "0.1"}
    base = {"mrr_10": "0.1", "nfairr_10": "0.9", "arab_tf_10": "0.1", "arab_bool_10": "0"}
    assert published_row(line, base)["arab_tf_reduction"] == pytest.approx(-100)
    assert "arab_bool_reduction" not in published_row(line, base)


# --- tests and marks -------------------------------------------------------------------------------------------------


def test_marks_are_paired_t_tests_with_holm_beside() -> None:
    one = found()
    figures = one.sets["QS1"]["BERT-base"]
    line = row(significance_table(one), "QS1", "BERT-base", "bias-aware", "MRR@10")
    expected = stats.ttest_rel(*(figures.arrays(name, "mrr_10")[0] for name in ("bias-aware", "original"))).pvalue
    assert line.measured["p"].mean == pytest.approx(expected)
    rows = significance_table(one).rows
    assert [line.measured["holm"].mean for line in rows] == pytest.approx(
        holm([line.measured["p"].mean for line in rows])  # type: ignore[arg-type]
    )
    assert row(table2(one, 0.6), "QS1", "BERT-base", "bias-aware").labels[3].startswith("MRR")
    same = found(bias_aware=FIGURES["original"])
    for name in MEASURES:
        for part in same.sets.values():
            part["BERT-base"].seeds[0]["bias-aware"][name] = part["BERT-base"].seeds[0]["original"][name]
    assert row(table2(same, 0.6), "QS1", "BERT-base", "bias-aware").labels[3] == "–"


def test_tests_over_seeds_count_the_spread_of_seeds() -> None:
    one = found(3)
    rankers = one.sets["dev"]["BERT-base"]
    noise = np.random.default_rng(1).normal(size=QUERIES) / 50
    for seed, shift in enumerate((-0.1, 0.0, 0.15)):
        raised = rankers.seeds[seed]["original"]["nfairr_10"] + 0.05 + shift + noise
        rankers.seeds[seed]["bias-aware"]["nfairr_10"] = raised
    line = row(significance_table(one), "dev", "BERT-base", "bias-aware", "NFaiRR@10")
    p = line.measured["p"].mean
    assert p is not None
    assert p > 0.05
    assert line.measured["within"].mean == 3


# --- destroyed rankers -----------------------------------------------------------------------------------------------


def test_a_destroyed_ranker_is_named_first() -> None:
    """The figures of factor 1000 in AdvBert: RR .963 → .535."""
    one = found(original=(0.963, 0.6, 0.4, 0.25), AdvBert=(0.535, 0.9, 0.02, 0.01))
    table = table3(one)
    line = row(table, "BERT-Tiny", "AdvBert")
    assert "0.5350" in line.warning
    assert "44% below its base" in line.warning
    assert not row(table, "BERT-Tiny", "bias-aware").warning
    assert table.warnings == [f"BERT-Tiny AdvBert †: {line.warning}"]
    assert "†" in table.text()


BROKEN = {name: (0.3, *FIGURES[name][1:]) for name in ("original", "bias-aware", "AdvBert")}
"""Below BM25, with the bias that the paper claims."""


@pytest.mark.parametrize("seeds", [1, 5])
def test_a_ranker_below_bm25_fulfils_no_claim(seeds: int) -> None:
    broken = found(seeds, **{name.replace("-", "_"): row for name, row in BROKEN.items()})
    broken.shares = over_shares({"0": 0.3, "0.6": 0.29, "1": 0.2})
    broken.fairer = {"BERT-Tiny": pl.DataFrame({"difference": np.ones(QUERIES)})}
    assert warned(broken.sets["dev"]["BERT-base"], "bias-aware")
    made = by_key(claims(broken, "BERT-base"))
    assert {*made} == {*statements("sampling")} - {"public_rows", "adv_arab_mini", "fairer_mini", "rebalance"} | {
        f"advbert/{key}" for key in statements("advbert")
    }
    assert [key for key, claim in made.items() if claim.verdict.supported] == []
    for key in ("nfairr", "arab_tf", "arab_bool", "qs1_nfairr", "adv_nfairr", "fairer_tiny", "advbert/adversary"):
        assert made[key].verdict.supported is None
        assert "a ranker that beats BM25" in str(made[key])
    assert made["mrr"].verdict.supported is False
    whole = found(seeds)
    whole.shares = over_shares({"0": 0.8, "0.6": 0.8, "1": 0.7})
    whole.fairer = broken.fairer
    working = by_key(claims(whole, "BERT-base"))
    # Its MRR on dev is 0.01 lower, significantly.
    assert [key for key, claim in working.items() if not claim.verdict.supported] == ["dev_mrr"]


def test_a_destroyed_advbert_is_no_evidence() -> None:
    """Its attack finds nothing and everything is fairer and better beside it, but it is below BM25."""
    made = by_key(claims(found(AdvBert=(0.1, 0.9, 0.01, 0.01)), "BERT-base"))
    its_own = {key for key in made if key.startswith(("advbert/", "adv_"))}
    assert len(its_own) == 7
    assert {made[key].verdict.supported for key in its_own} == {None}
    unknown = found()
    unknown.small = {}
    assert by_key(claims(unknown, "BERT-base"))["advbert/adversary"].verdict.supported is None


def over_shares(mrr: dict[str, float]) -> dict[str, Figures]:
    """Figure 1: MRR by share; NFaiRR rises with it."""
    base = values()
    systems = {
        name: {
            "mrr_10": base["original"]["mrr_10"] - FIGURES["original"][0] + mean,
            "nfairr_10": base["original"]["nfairr_10"] + float(name) / 10,
            "arab_tf_10": base["original"]["arab_tf_10"],
            "arab_bool_10": base["original"]["arab_bool_10"],
        }
        for name, mean in mrr.items()
    }
    return {part: Figures([{"BM25": base["BM25"], **systems}]) for part in ("dev", "QS2")}


# --- intervals over seeds with the same queries ----------------------------------------------------------------------


def crossed(spread_of_queries: float, spread_of_seeds: float) -> Figures:
    """Three seeds with the same queries: the bias-aware ranker's ARaB is negative, and nearer 0 by 0.2."""
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(2, QUERIES)) * spread_of_queries
    seeds = []
    for shift in (-spread_of_seeds, 0.0, spread_of_seeds):
        seed = values()
        seed["original"]["arab_tf_10"] = 0.5 + first - first.mean() + shift
        seed["bias-aware"]["arab_tf_10"] = -(0.3 + second - second.mean())
        seeds.append(seed)
    return Figures(seeds, same_queries=True)


@pytest.mark.parametrize(("queries", "seeds", "limit"), [(1.0, 0.001, ("queries", QUERIES)), (0.01, 0.1, ("seeds", 3))])
def test_the_same_queries_count_in_every_interval(queries: float, seeds: float, limit: tuple[str, int]) -> None:
    figures = crossed(queries, seeds)
    nearer = figures.nearer("bias-aware", "original", "arab_tf_10")
    change = figures.change("bias-aware", "original", "arab_tf_10")
    aware, original = (figures.means(name, "arab_tf_10") for name in ("bias-aware", "original"))
    by_hand = [(abs(a), b) for a, b in zip(aware, original, strict=True)]
    assert nearer.mean == pytest.approx(np.mean([a - b for a, b in by_hand]))
    assert change.mean == pytest.approx(np.mean([100 * (a / b - 1) for a, b in by_hand]))
    shown = (nearer, change, figures.value("original", "arab_tf_10"),
             figures.difference("bias-aware", "original", "arab_tf_10"))  # fmt: skip
    assert {(one.unit, one.n) for one in shown} == {limit}
    # As if each seed had queries of its own.
    assert Figures(figures.seeds).nearer("bias-aware", "original", "arab_tf_10").unit == "seeds"
    if limit[0] == "queries":
        # A second way: the queries drawn anew, for all seeds at once.
        rng = np.random.default_rng(0)
        draws = []
        for _ in range(2000):
            at = rng.integers(0, QUERIES, QUERIES)
            pairs = [[abs(figures.arrays(name, "arab_tf_10")[i][at].mean()) for name in ("bias-aware", "original")]
                     for i in range(3)]  # fmt: skip
            draws.append([np.mean([a - b for a, b in pairs]), np.mean([100 * (a / b - 1) for a, b in pairs])])
        for value, column in zip((nearer, change), np.array(draws).T, strict=True):
            assert value.ci95 is not None
            assert value.ci95[1] - value.ci95[0] == pytest.approx(
                np.diff(np.percentile(column, [2.5, 97.5]))[0], rel=0.1
            )


def test_what_would_decide_is_in_the_unit_that_limits() -> None:
    one = found(3)
    rng = np.random.default_rng(4)
    noise = rng.normal(size=QUERIES) - 0.02
    for part in one.sets.values():
        figures = part["BERT-base"]
        figures.same_queries = True
        for seed in figures.seeds:
            seed["bias-aware"]["nfairr_10"] = seed["original"]["nfairr_10"] + noise - noise.mean() + 0.05
    needs = by_key(claims(one, "BERT-base"))["nfairr"].verdict.needs
    assert needs.endswith("queries")


# --- claims ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [1, 5])
def test_claims_of_a_method_that_works(seeds: int) -> None:
    made = by_key(claims(found(seeds), "BERT-base"))
    supported = {key for key, claim in made.items() if claim.verdict.supported}
    assert {
        "nfairr",
        "arab_tf",
        "arab_bool",
        "mrr",
        "advbert/adversary",
        "adv_nfairr",
        "adv_mrr",
        "advbert/mrr",
    } <= supported
    assert made["nfairr"].statement.where == ""


def test_claims_of_a_method_that_does_not() -> None:
    made = by_key(claims(found(bias_aware=(0.7, 0.5, 0.5, 0.35)), "BERT-base"))
    for key in ("nfairr", "arab_tf", "arab_bool", "mrr", "dev_mrr", "qs1_nfairr", "qs1_arab", "adv_nfairr"):
        assert made[key].verdict.supported is False


def test_mutant_beta_ignored_leaves_no_claim() -> None:
    """Bias-aware lists that are random ones: the same ranker twice."""
    one = found(5)
    for part in one.sets.values():
        for seed in part["BERT-base"].seeds:
            seed["bias-aware"] = seed["original"]
    made = by_key(claims(one, "BERT-base"))
    assert not any(made[key].verdict.supported for key in ("nfairr", "arab_tf", "arab_bool", "qs1_nfairr"))


def test_mutant_an_adversary_of_weight_0_leaves_what_an_attack_finds() -> None:
    same = found()
    same.leakage = {"BERT-Tiny": {"before": accuracy(0.9), "after": accuracy(0.9)}}
    assert by_key(claims(same, "BERT-base"))["advbert/adversary"].verdict.supported is None
    more = found()
    more.leakage = {"BERT-Tiny": {"before": accuracy(0.9), "after": accuracy(0.97)}}
    assert by_key(claims(more, "BERT-base"))["advbert/adversary"].verdict.supported is False
    difference = leaked(accuracy(0.9), accuracy(0.6))
    assert difference.mean == pytest.approx(-0.3)
    assert difference.ci95 == pytest.approx((-0.3 - 0.02 * 2**0.5, -0.3 + 0.02 * 2**0.5))


def test_no_significant_drop_is_not_shown_by_a_few_queries() -> None:
    few = found()
    for figures in few.sets["dev"].values():
        for system in figures.seeds[0].values():
            system["mrr_10"] = np.where(np.arange(QUERIES) < 8, np.nan, np.nan)
            system["mrr_10"][:8] = [0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6]
        figures.seeds[0]["bias-aware"]["mrr_10"][:8] = [0.9, 0.1, 0.1, 0.8, 0.3, 0.7, 0.4, 0.6]
    claim = by_key(claims(few, "BERT-base"))["dev_mrr"]
    assert claim.verdict.supported is not True
