"""The expansion experiment's Tables 1 and 2 against a slow second way, and the mutants that it has to notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from evenrank.papers import expansion_paper
from evenrank.papers.expansion_paper import Answers
from evenrank.papers.expansion_setup import Settings, Spaces, spaces
from evenrank.papers.paper_page import ExperimentPage, Row, Value, published
from evenrank.search.embeddings import Vectors
from expansion_runs import Done, Slow, micro, problems, run, slow

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("gensim", reason="gensim is not installed")


@pytest.fixture(scope="module")
def done(expansion_done: Done) -> Done:
    return expansion_done


@pytest.fixture(scope="module")
def expected(done: Done) -> list[Slow]:
    return [slow(micro(), done.folder, seed) for seed in micro().seeds]


def tables_again(done: Done, **patches: Any) -> ExperimentPage:
    """The page with its tables made anew, parts of their module replaced."""
    with pytest.MonkeyPatch.context() as patch:
        for name, other in patches.items():
            patch.setattr(expansion_paper, name, other)
        tables = tuple(table for one in done.found for table in expansion_paper.tables_of(one))
    return replace(done.page, tables=tables)


def state(page: ExperimentPage, key: str) -> str:
    return next(claim.verdict.state for claim in page.claims if claim.statement.key == key)


def test_tables_1_and_2_by_a_second_way(done: Done, expected: list[Slow]) -> None:
    assert problems(done.page, expected) == []
    assert all(len(one.changed) > 5 for one in expected)
    assert len(done.table("Table 2").rows) > 2


def test_the_published_tables_have_one_sign() -> None:
    # Table 2 holds the largest differences of 48 queries: its sum is nearly theirs.
    rows = {line["model"]: line for line in published("expansion_table1")}
    listed = published("expansion_table2")
    for key, near in (("p30", 0.001), ("map", 0.0055)):
        printed = sum(float(line[f"{key}_difference"]) for line in listed) / 48
        biased, debiased = (float(rows[f"Expansion {name}"][f"{key}_changed"]) for name in ("biased", "debiased"))
        assert printed == pytest.approx(biased - debiased, abs=near)
        assert np.sign(printed) == np.sign(biased - debiased)


# --- mutants ---------------------------------------------------------------------------------------------------------


def flipped(one: Any) -> pl.DataFrame:
    return differences(one).with_columns(-pl.col("map"), -pl.col("p30"))


differences: Callable[..., pl.DataFrame] = expansion_paper.differences


def test_mutant_sign_flipped_in_table_2(done: Done, expected: list[Slow], monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(line.startswith("Table 2") for line in problems(tables_again(done, differences=flipped), expected))
    # The page itself says so too.
    assert state(done.page, "signs") == "supported"
    monkeypatch.setattr(expansion_paper, "differences", flipped)
    again = [claim for one in done.found for claim in expansion_paper.claims(one)]
    assert state(replace(done.page, claims=tuple(again)), "signs") == "not supported"


def test_mutant_published_and_measured_swapped(done: Done, expected: list[Slow]) -> None:
    def swapped(labels: Any, measured: Any = None, printed: Any = None, **others: Any) -> Row:
        values = {key: expansion_paper.Value(value) for key, value in (printed or {}).items()}
        return Row(labels, values, {key: value.mean for key, value in (measured or {}).items()}, **others)

    found = problems(tables_again(done, Row=swapped), expected)
    assert any("published" in line for line in found)
    assert any("expected" in line for line in found)


@pytest.mark.slow
def test_mutant_biased_and_debiased_swapped(done: Done, expected: list[Slow]) -> None:
    def swapped(settings: Settings, before: Vectors, name: str) -> Spaces:
        right = spaces(settings, before, name)
        return replace(right, before=right.after, after=right.before)

    found = problems(run(micro(), done.folder, spaces=swapped).page, expected)
    assert any(line.startswith("Table 1, Expansion biased") for line in found)
    assert any(line.startswith("Table 2") for line in found)


@pytest.mark.slow
def test_mutant_expansion_fused_with_itself(done: Done, expected: list[Slow]) -> None:
    right = expansion_paper.tune
    page = run(micro(), done.folder, tune=lambda runs, *a, **k: right([runs[1], runs[1]], *a, **k)).page
    assert any("Regular + Expansion" in line for line in problems(page, expected))


# --- claims can fail -------------------------------------------------------------------------------------------------


def with_values(done: Done, **values: Any) -> tuple[Any, ...]:
    """The claims where some rankings have the values of others: new name → old name."""
    found = done.found[0]
    seeds = tuple(
        replace(
            seed, values={**seed.values, **{name.replace("_", " "): seed.values[of] for name, of in values.items()}}
        )
        for seed in found.seeds
    )
    return expansion_paper.claims(replace(found, seeds=seeds))


def test_equivalence_needs_rankings_that_find_something(done: Done) -> None:
    broken = dict.fromkeys(("Regular", "Expansion_biased", "Expansion_debiased"), "random")
    page = replace(done.page, claims=with_values(done, **broken))
    for key in ("alone_is_equal", "fused_is_equal", "no_gain", "alone_is_worse"):
        assert state(page, key) != "supported"


def test_a_fused_ranking_without_expansion_decides_nothing(done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion_paper, "weights", lambda *_: (Value(1.0, 5), Value(0.0, 5)))
    page = replace(done.page, claims=tuple(expansion_paper.claims(done.found[0])))
    keys = ("fused_is_equal", "fused_changed", "no_gain", "gain_on_changed")
    assert {state(page, key) for key in keys} == {"not decidable"}


def test_few_change_fails_where_all_or_none_do(done: Done) -> None:
    for value in (1.0, 0.0):
        seeds = tuple(replace(s, changed=np.full(len(s.queries), bool(value))) for s in done.found[0].seeds)
        claims = expansion_paper.claims(replace(done.found[0], seeds=seeds))
        assert state(replace(done.page, claims=claims), "few_change") == "not supported"


def test_what_debiasing_leaves_can_be_nothing(done: Done) -> None:
    critique = done.found[0].seeds[0].critique
    assert critique is not None
    after = critique.recovered[1]
    assert after is not None

    def verdicts(**others: Any) -> dict[str, str]:
        seed = replace(done.found[0].seeds[0], critique=replace(critique, **others))
        claims = expansion_paper.claims(replace(done.found[0], seeds=(seed, *done.found[0].seeds[1:])))
        return {claim.statement.key: claim.verdict.state for claim in claims}

    for share, wanted in ((0.5, "not supported"), (0.99, "supported")):
        recovered = (critique.recovered[0], replace(after, kmeans=share, rbf=share))
        assert verdicts(recovered=recovered)["bias_remains"] == wanted
    far = Answers(("x",) * 20, np.linspace(0.5, 0.6, 20), np.arange(20) < 4)
    near = Answers(("x",) * 20, np.linspace(0.7, 0.8, 20), np.arange(20) < 18)
    far, near = (replace(one, robust=one.robust.astype(float)) for one in (far, near))
    for first, second, wanted in ((near, far, "supported"), (far, near, "not supported")):
        found = verdicts(appropriate=(first, first), biased=(second, second))
        assert (found["answer_cosine"], found["not_robust"]) == (wanted, wanted)


# --- analogies -------------------------------------------------------------------------------------------------------


def test_analogies_by_a_second_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion_paper, "_BLOCK", 7)
    rng = np.random.default_rng(3)
    vectors = Vectors(tuple(f"w{i}" for i in range(40)), rng.standard_normal((40, 4)).astype(np.float32))
    rows = {word: vectors.matrix[i].astype(float) for i, word in enumerate(vectors.words)}

    def answer(a: str, b: str, c: str) -> tuple[str, float]:
        point = rows[b] - rows[a] + rows[c]
        others = {
            word: float(row @ point / np.linalg.norm(row) / np.linalg.norm(point))
            for word, row in rows.items()
            if word not in (a, b, c)
        }
        best = max(others, key=lambda word: others[word])
        return best, others[best]

    questions = [("w0", f"w{i}", "w1") for i in range(2, 40)]
    found = expansion_paper.answers(vectors, questions)
    slowly = [answer(*one) for one in questions]
    assert list(found.words) == [word for word, _ in slowly]
    assert found.cosine == pytest.approx([cosine for _, cosine in slowly], abs=1e-6)
    robust = [answer(c, word, a)[0] == b for (a, b, c), (word, _) in zip(questions, slowly, strict=True)]
    assert found.robust.tolist() == robust
    assert 0 < sum(robust) < len(robust)


def test_the_interval_of_two_samples_is_no_narrower_than_welchs() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=12), 3 * rng.normal(size=25)
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    low, high = expansion_paper._two_samples(first, second).ci95 or (1.0, 0.0)
    assert expected.low - 0.2 < low <= expected.low + 1e-9
    assert expected.high - 1e-9 <= high < expected.high + 0.2
    # One sample is constant: the other's error alone, without a warning (which fails a test).
    low, high = expansion_paper._two_samples(np.ones(12), second).ci95 or (1.0, 0.0)
    ends = stats.t.interval(0.95, 24, 1 - second.mean(), stats.sem(second))
    assert (low <= ends[0] + 1e-9, high >= ends[1] - 1e-9) == (True, True)
