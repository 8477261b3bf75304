"""Claims that can fail: what a check compares, and what the figures say of it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenrank.papers import NAMES, study_of
from evenrank.papers.claims import Check, Claim, Verdict, claims_of, published_of, published_rows
from evenrank.papers.figures import Figures
from evenrank.papers.report import charts, layouts

MODELS = {"BERT-L2": "two layers"}


def figures(**systems: float) -> Figures:
    """Values of 30 queries around each system's mean, the same noise for all."""
    noise = np.resize([-0.02, 0.01, 0.015, -0.005], 30)
    noise -= noise.mean()
    found = Figures(True)
    for number, (name, mean) in enumerate(systems.items()):
        own = np.roll(noise, number)
        found.add("MRR", name.replace("_", " "), 0, [f"q{one}" for one in range(30)], mean + own)
    return found


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("MRR: a > b", "supported"),
        ("MRR: b > a", "not supported"),
        ("MRR: a < b", "not supported"),
        ("MRR: a > .9 × a2", "supported"),
        ("MRR: b > .95 × a", "not supported"),
        ("MRR: a = a2 ± 5 %", "supported"),
        ("MRR: a = b ± 5 %", "not supported"),
        ("MRR: a = .6 ± .05", "supported"),
        ("MRR: a = .7 ± .05", "not supported"),
        ("MRR: a ~ a2 ± 5 %", "supported"),
        ("MRR: a ~ b ± 90 %", "not supported"),
        ("MRR: a ~ a2 ± .001 %", "undecided"),
        ("MRR: a ≥ .9 × a2", "supported"),
        ("MRR: a ≥ .9 × b", "supported"),
        ("MRR: b ≥ .5 × a", "not supported"),
        ("MRR: a > a2", "undecided"),
        ("MRR: a > none", "undecided"),
    ],
)
def test_verdicts(text: str, state: str) -> None:
    assert Check.parse(text).verdict(figures(a=0.6, b=0.4, a2=0.6004)).state == state


def test_an_undecided_claim_names_the_n_that_would_decide() -> None:
    found = Figures(True)
    values = np.resize([0.4, -0.2], 40)
    found.add("MRR", "a", 0, [f"q{one}" for one in range(40)], values)
    verdict = Check.parse("MRR: a > .05").verdict(found)
    low, high = found.test("MRR", {"a": 1.0}).interval() or (0.0, 0.0)
    needed = verdict.sizes["queries"]
    assert (high - low) / 2 * np.sqrt(40 / needed) <= 0.05 < (high - low) / 2 * np.sqrt(40 / (needed - 1))
    assert Check.parse("MRR: a = .1 ± .3").verdict(found).state == "supported"
    assert Check.parse("MRR: b > 0").verdict(found) == Verdict("undecided", ("MRR of b",))


def test_a_broken_ranker_supports_nothing_and_refutes_all_the_same() -> None:
    claim = Claim("ibbr", "key", "text", checks=("MRR: {model} a > {model} b",), floors=("MRR: {model} a > BM25",))
    below = figures(BERT_L2_a=0.6, BERT_L2_b=0.4, BM25=0.8)
    named = Figures(True, {(f, s.replace("BERT L2", "BERT-L2")): v for (f, s), v in below.values.items()})
    assert claim.decided(named, MODELS, "tiny").verdict == Verdict("undecided", ("BERT-L2 a above BM25 (MRR)",))
    turned = Claim("ibbr", "key", "text", checks=("MRR: {model} b > {model} a",), floors=claim.floors)
    assert turned.decided(named, MODELS, "tiny").verdict == Verdict("not supported")


def test_a_claim_of_every_ranker_names_those_that_ran() -> None:
    found = figures(m1=0.6, m2=0.4)
    claim = Claim("ibbr", "k", "t", checks=("MRR: {model} > .5",), needs={"real": "more rankers"})
    one, both = (claim.decided(found, models, "tiny") for models in ({"m1": "A"}, {"m1": "A", "m2": "B"}))
    assert (one.verdict.state, one.said_of) == ("supported", "for this ranker: A")
    assert (both.verdict.state, both.said_of) == ("not supported", "for every ranker that ran: A; B")
    assert "for this ranker: A" in one.finding().text
    some = Claim("ibbr", "k", "t", checks=claim.checks, some=True)
    assert some.decided(found, {"m1": "A", "m2": "B"}, "tiny").verdict.state == "supported"
    assert some.decided(found, {"m2": "B"}, "tiny").verdict.state == "not supported"
    lacking = Claim("ibbr", "k", "t", checks=("MRR: m3 a > .5",)).decided(found, {"m1": "A"}, "tiny")
    assert lacking.verdict == Verdict("undecided", ("MRR of m3 a",))
    assert claim.decided(found, {"m1": "A"}, "real").verdict == Verdict("undecided", ("more rankers",))


def test_the_power_is_of_the_published_effect_at_the_level_measured() -> None:
    rng = np.random.default_rng(0)
    found = Figures(True)
    ids = [f"q{one}" for one in range(100)]
    base = rng.normal(0.4, 0.1, 100)
    found.add("MRR", "none", 0, ids, base)
    found.add("MRR", "TS", 0, ids, base + rng.normal(0, 0.1, 100))
    published = {("none", "MRR"): 0.2, ("TS", "MRR"): 0.18}

    def chance(text: str) -> float:
        found_power = Check.parse(text).power(found, published)
        assert found_power is not None
        return found_power.value

    # By the normal: Φ(effect / error − 1.98), the effect a tenth of .4 as published.
    assert chance("MRR: TS < none") == pytest.approx(0.977, abs=0.03)
    assert chance("MRR: TS > none") == pytest.approx(0, abs=0.001)
    assert Check.parse("MRR: other > 0").power(found, published) is None
    # Published .02 below the bound; the error of a mean of 100 is .014.
    assert chance("MRR: TS < .2") == pytest.approx(0.28, abs=0.05)
    # At most a twentieth lost, of equal systems: Φ(.02 / .01 − 1.98).
    assert chance("MRR: TS > .95 × none") == pytest.approx(0.5, abs=0.1)
    # (1.96 + .84)² (.01 / .02)² of the 100 would do in 8 of 10 runs.
    assert Check.parse("MRR: TS > .95 × none").power(found, published).needed == pytest.approx(196, rel=0.25)
    # Two one-sided tests of equal systems: 2 Φ(.04 / .01 − 1.66) − 1.
    assert chance("MRR: TS = none ± 10 %") == pytest.approx(0.98, abs=0.03)


def test_a_published_effect_that_the_interval_excludes_is_said() -> None:
    check = Check.parse("MRR: a > b")
    effect = check.effect(figures(a=0.401, b=0.4), {("a", "MRR"): 0.3, ("b", "MRR"): 0.2})
    assert effect is not None
    assert effect.published == pytest.approx(0.5 * 0.4)
    assert str(effect).endswith("not +.200 as published")
    near = check.effect(figures(a=0.401, b=0.4), {("a", "MRR"): 0.2005, ("b", "MRR"): 0.2})
    assert "as published" not in str(near)


def test_a_null_claim_is_rarely_decided() -> None:
    """Of claims where nothing differs, at most 5% are said either way; of sizes, which take longer, fewer are tried."""
    rng = np.random.default_rng(0)
    decided = {"MRR: a > b": 0, "|MRR|: a < b": 0}
    for number in range(400):
        found = Figures(True)
        query = rng.normal(0, 0.2, 60)
        for name in ("a", "b"):
            training = rng.normal(0, 0.01, 5)
            for seed in range(5):
                values = query + training[seed] + rng.normal(0, 0.1, 60)
                found.add("MRR", name, seed, [f"q{one}" for one in range(60)], values)
        for text in decided if number < 50 else ["MRR: a > b"]:
            decided[text] += Check.parse(text).verdict(found).state != "undecided"
    assert decided["MRR: a > b"] <= 0.05 * 400 + 10
    assert decided["|MRR|: a < b"] <= 6


@pytest.mark.parametrize("paper", NAMES)
def test_the_claims_of_a_paper(paper: str) -> None:
    found = claims_of(paper)
    for one in found:
        assert one.text == one.text.strip()
        assert not one.text.endswith(".")
        assert all(one.checked("M")[:1])
        assert {scale: why for scale, why in one.needs.items() if why} == one.needs
    assert len({one.text for one in found}) == len(found)


NOT_MEASURED = {
    "mean change of R@10, MRR, nDCG@10",
    "share of ΔA-PRF removed with even clicks, less that with skewed ones",
    "rank correlation of changes of ΔA-PRF and RaB@5",
    "slope of MRR@10 on dev",
    "share of the fall within 20 words on MS MARCO",
    "nDCG@10 of late answers on MS MARCO",
    "share of relevant passages cut",
}
"""What no study measures yet: their claims are undecided, and say so."""


@pytest.mark.parametrize("name", NAMES)
def test_the_figures_that_claims_and_tables_name_are_published_or_measured(name: str) -> None:
    """A name that is mistyped in a check would never be measured: each stands in a table or a chart too."""
    study = study_of(name)
    shown = {figure.strip("|") for layout in layouts(study) for figure in layout.figures} | NOT_MEASURED
    shown |= {figure.strip("|") for chart in charts(study) for figure in (chart.x, chart.y, *chart.figures)}
    for claim in claims_of(name):
        for check in itertools.chain(*claim.checked("M")):
            assert check.figure in shown, (claim.key, check.figure)
    tables = {layout.name for layout in layouts(study)}
    assert {row["table"] for row in published_rows(name)} <= tables
    assert published_of(name)


@pytest.mark.parametrize("text", ["MRR: c > .9 × b", "MRR: c = b ± 10 %"])
def test_a_loss_of_just_the_margin_is_rarely_called_less(text: str) -> None:
    """Where c is truly a tenth below b, "at most a tenth" and "equal within a tenth" are said in at most 5%."""
    rng = np.random.default_rng(1)
    supported = 0
    for _ in range(400):
        found, query = Figures(True), rng.normal(0, 0.15, 60)
        for name, mean in (("b", 0.5), ("c", 0.45)):
            training = rng.normal(0, 0.01, 5)
            for seed in range(5):
                values = mean + query + training[seed] + rng.normal(0, 0.05, 60)
                found.add("MRR", name, seed, [f"q{one}" for one in range(60)], values)
        supported += Check.parse(text).verdict(found).state == "supported"
    assert supported <= 0.05 * 400 + 10, supported


def test_changing_one_value_changes_a_verdict(tmp_path: Path) -> None:
    """Verdicts are made from the file of values alone."""
    claim = Claim("ibbr", "k", "t", checks=("MRR: a > b",))
    figures(a=0.41, b=0.4).write(tmp_path / "values.parquet")
    kept = pl.read_parquet(tmp_path / "values.parquet")
    assert claim.decided(Figures.read(tmp_path / "values.parquet"), {}, "tiny").verdict.state == "supported"
    first = (pl.col("system") == "a") & (pl.col("id") == "q0")
    changed = kept.with_columns(pl.when(first).then(-1.0).otherwise("value").alias("value"))
    changed.write_parquet(tmp_path / "values.parquet", metadata={"same_queries": "True"})
    assert claim.decided(Figures.read(tmp_path / "values.parquet"), {}, "tiny").verdict.state == "undecided"
