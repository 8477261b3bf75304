"""Claims that can fail: what a check compares, and what the figures say of it."""

from __future__ import annotations

import numpy as np
import pytest

from evenrank.papers import NAMES, claims, study_of
from evenrank.papers.claims import Check, Claim, Verdict, claims_of, every, published_of, published_rows
from evenrank.papers.figures import Figures
from evenrank.papers.report import charts, layouts
from evenrank.papers.study import matching

PAPERS = ("ibbr", "sampling", "advbert", "expansion", "position")
MODELS = ["BERT-L2"]


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
    ("text", "check"),
    [
        ("MRR: TK > KNRM", Check("MRR", "TK", ">", "KNRM")),
        ("|ΔA-PRF|: L2 TS < .25 × L2 none", Check("ΔA-PRF", "L2 TS", "<", "L2 none", 0.25, size=True)),
        ("ΔA-PRF: L2 none > 0", Check("ΔA-PRF", "L2 none", ">", 0.0)),
        (
            "nDCG@10 on MS MARCO: a, b test = c ± 2 %",
            Check("nDCG@10 on MS MARCO", "a, b test", "=", "c", 1.0, 0.02, True),
        ),
        ("λ: biased = .9 ± .08", Check("λ", "biased", "=", 0.9, 1.0, 0.08)),
        ("off: all words < 1e-6", Check("off", "all words", "<", 1e-6)),
    ],
)
def test_a_check_is_read(text: str, check: Check) -> None:
    assert Check.parse(text) == check


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
        ("MRR: a > a2", "not decidable"),
        ("MRR: a > none", "not decidable"),
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
    needed = int(verdict.needs.split()[1])
    assert (high - low) / 2 * np.sqrt(40 / needed) <= 0.05 < (high - low) / 2 * np.sqrt(40 / (needed - 1))
    assert Check.parse("MRR: a = .1 ± .3").verdict(found).state == "supported"
    assert Check.parse("MRR: b > 0").verdict(found) == Verdict("not decidable", "MRR of b")


def test_several_conditions() -> None:
    yes, no, open_ = Verdict("supported"), Verdict("not supported"), Verdict("not decidable", "about 20 seeds")
    assert every(yes, yes) == yes
    assert every(yes, open_) == open_
    assert every(no, open_) == no
    assert every() == Verdict("not decidable")


def test_a_broken_ranker_supports_nothing_and_refutes_all_the_same() -> None:
    claim = Claim("ibbr", "key", "text", checks=("MRR: {model} a > {model} b",), floors=("MRR: {model} a > BM25",))
    below = figures(BERT_L2_a=0.6, BERT_L2_b=0.4, BM25=0.8)
    named = Figures(True, {(f, s.replace("BERT L2", "BERT-L2")): v for (f, s), v in below.values.items()})
    assert claim.decided(named, MODELS, "tiny").verdict == Verdict("not decidable", "a ranker that beats BM25")
    turned = Claim("ibbr", "key", "text", checks=("MRR: {model} b > {model} a",), floors=claim.floors)
    assert turned.decided(named, MODELS, "tiny").verdict == Verdict("not supported")


def test_a_claim_is_of_the_models_that_ran() -> None:
    found = figures(m1=0.6, m2=0.4)
    claim = Claim("ibbr", "k", "t", checks=("MRR: {model} > .5",), any_of=("m1", "m3"))
    assert claim.decided(found, ["m1", "m2"], "tiny").verdict.state == "supported"
    assert (
        Claim("ibbr", "k", "t", checks=claim.checks).decided(found, ["m1", "m2"], "tiny").verdict.state
        == "not supported"
    )
    lacking = Claim("ibbr", "k", "t", checks=claim.checks, models=("m3",)).decided(found, ["m1"], "tiny")
    assert lacking.verdict == Verdict("not put to this data", "nothing that ran stands for m3")
    elsewhere = Claim("ibbr", "k", "t", checks=claim.checks, not_at={"real": "too few"})
    assert elsewhere.decided(found, ["m1"], "real").verdict == Verdict("not put to this data", "too few")
    assert elsewhere.decided(found, ["m1"], "tiny").verdict.state == "supported"
    beside = Claim("ibbr", "k", "t", checks=claim.checks, models=("m2",))
    assert beside.decided(found, ["m1"], "tiny", ["m2"]).verdict.state == "not supported"
    assert claim.decided(found, ["m1"], "tiny", ["m2"]).verdict.state == "supported"


def test_the_power_is_of_the_published_effect_at_the_level_measured() -> None:
    rng = np.random.default_rng(0)
    found = Figures(True)
    ids = [f"q{one}" for one in range(100)]
    base = rng.normal(0.4, 0.1, 100)
    found.add("MRR", "none", 0, ids, base)
    found.add("MRR", "TS", 0, ids, base + rng.normal(0, 0.1, 100))
    published = {("none", "MRR"): 0.2, ("TS", "MRR"): 0.18}
    # By the normal: Φ(effect / error − 1.98), the effect a tenth of .4 as published.
    assert Check.parse("MRR: TS < none").power(found, published) == pytest.approx(0.977, abs=0.03)
    assert Check.parse("MRR: TS > none").power(found, published) == pytest.approx(0, abs=0.001)
    assert Check.parse("MRR: other > 0").power(found, published) is None
    # Published .02 below the bound; the error of a mean of 100 is .014.
    assert Check.parse("MRR: TS < .2").power(found, published) == pytest.approx(0.28, abs=0.05)
    # At most a twentieth lost, of equal systems: Φ(.02 / .01 − 1.98).
    assert Check.parse("MRR: TS > .95 × none").power(found, published) == pytest.approx(0.5, abs=0.1)
    # Two one-sided tests of equal systems: 2 Φ(.04 / .01 − 1.66) − 1.
    assert Check.parse("MRR: TS = none ± 10 %").power(found, published) == pytest.approx(0.98, abs=0.03)


def test_a_claim_is_put_to_data_that_can_show_the_published_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {("ibbr", "weak"): ("9 queries", 0.79), ("ibbr", "enough"): ("9 queries", 0.81)}
    monkeypatch.setattr(claims, "known_power", lambda scale: known if scale == "real" else {})
    found = figures(m1=0.6)
    weak, enough = (Claim("ibbr", key, "t", checks=("MRR: m1 > .5",)) for key in ("weak", "enough"))
    said = weak.decided(found, ["m1"], "real").verdict
    assert (said.state, said.needs) == ("not put to this data", "power .790 for the published effect with 9 queries")
    assert weak.decided(found, ["m1"], "tiny").verdict.state == "supported"
    put = enough.decided(found, ["m1"], "real")
    assert put.verdict.state == "supported"
    assert "power of the published effect .810 with 9 queries" in put.finding().text


def test_a_ranker_stands_in_where_it_has_the_figures() -> None:
    claim = Claim("ibbr", "k", "t", checks=("MRR: {model} > .5",))
    stands = {"m1": "m1 whole"}
    assert claim.decided(figures(m1=0.4, m1_whole=0.6), ["m1"], "", (), stands).verdict.state == "supported"
    assert claim.decided(figures(m1=0.4), ["m1"], "", (), stands).verdict.state == "not supported"


def test_a_ranker_that_stands_in_is_compared_with_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "published_of", lambda _: {("m1 a", "MRR"): 0.3, ("m1 b", "MRR"): 0.2})
    claim = Claim("ibbr", "k", "t", checks=("MRR: {model} a > {model} b",), models=("m1",))
    found = figures(m1_whole_a=0.401, m1_whole_b=0.4)
    (effect,) = claim.decided(found, ["m1"], "", (), {"m1": "m1 whole"}).effects
    assert effect.published == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("trainings", "said"),
    # 1 − .05^(1/5) = .45.
    [
        (1, "; of this one training)"),
        (3, "; of these 3 trainings)"),
        (5, "; a failure in up to 45% of trainings may go unseen)"),
    ],
)
def test_a_verdict_says_of_which_trainings_it_is(trainings: int, said: str) -> None:
    found = Figures(True)
    for seed in range(trainings):
        found.add("MRR", "a", seed, [f"q{one}" for one in range(40)], 0.5 + 0.001 * seed + np.resize([0.02, -0.02], 40))
    decided = Claim("ibbr", "k", "t", checks=("MRR: a > .4",)).decided(found, [], "tiny")
    assert decided.verdict.state == "supported"
    assert said in decided.finding().text
    assert decided.effects[0].trainings == trainings


def test_a_published_effect_that_the_interval_excludes_is_said() -> None:
    check = Check.parse("MRR: a > b")
    effect = check.effect(figures(a=0.401, b=0.4), {("a", "MRR"): 0.3, ("b", "MRR"): 0.2})
    assert effect is not None
    assert effect.published == pytest.approx(0.5 * 0.4)
    assert str(effect).endswith("not +.200 as published")
    near = check.effect(figures(a=0.401, b=0.4), {("a", "MRR"): 0.2005, ("b", "MRR"): 0.2})
    assert "as published" not in str(near)


def test_a_null_claim_is_rarely_decided() -> None:
    """Of claims where nothing differs, at most 5% are said either way; sizes near 0 among them."""
    rng = np.random.default_rng(0)
    decided = {"MRR: a > b": 0, "|MRR|: a < b": 0}
    for _ in range(400):
        found = Figures(True)
        query = rng.normal(0, 0.2, 60)
        for name in ("a", "b"):
            training = rng.normal(0, 0.01, 5)
            for seed in range(5):
                values = query + training[seed] + rng.normal(0, 0.1, 60)
                found.add("MRR", name, seed, [f"q{one}" for one in range(60)], values)
        for text in decided:
            decided[text] += Check.parse(text).verdict(found).state != "not decidable"
    assert all(count <= 0.05 * 400 + 10 for count in decided.values()), decided


@pytest.mark.parametrize("paper", PAPERS)
def test_the_claims_of_a_paper(paper: str) -> None:
    found = claims_of(paper)
    assert found
    for one in found:
        assert one.text == one.text.strip()
        assert not one.text.endswith(".")
        assert one.expanded(one.checks, one.models or one.any_of or ["M"])
        one.expanded(one.floors, ["M"])
    assert len({one.text for one in found}) == len(found)


@pytest.mark.parametrize("name", NAMES)
def test_the_figures_that_claims_and_tables_name_are_published_or_measured(name: str) -> None:
    """A name that is mistyped in a check would never be measured: each stands in a table or a chart too."""
    study = study_of(name)
    shown = {figure.strip("|") for layout in layouts(study) for figure in layout.figures}
    shown |= {figure.strip("|") for chart in charts(study) for figure in (chart.x, chart.y, *chart.figures)}
    patterns = [one.replace("{model}", "M") for layout in layouts(study) for one in layout.also]
    patterns += [one.replace("{model}", "M") for chart in charts(study) for one in chart.systems]
    models = {*study.settings.models, *(one["system"].partition(" ")[0] for one in published_rows(name))}
    printed = {row["system"] for row in published_rows(name)} | {"BM25", "RM3", "random", "Regular"}
    for paper in study.papers:
        for claim in claims_of(paper):
            for check in claim.expanded([*claim.checks, *claim.floors], ["M"]):
                assert check.figure in shown, (claim.key, check.figure)
                for system in check.systems:
                    named = [system, *(system.replace("M ", f"{one} ", 1) for one in models if system.startswith("M "))]
                    known = printed & {*named} or [one for one in patterns if matching(named, one)]
                    assert known, (claim.key, system)
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
