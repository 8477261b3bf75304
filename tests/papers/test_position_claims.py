"""The position experiment's claims and letters on hand-made values."""

from __future__ import annotations

import numpy as np
import pytest

from evenrank.papers.position_paper import Found, between, claims, effectiveness_table, relative_mats, transfer_table
from evenrank.papers.position_setup import BIASED, DEBIASED, ORIGINAL, OTHER, VERSIONS
from evenrank.probes.similarity import TermSimilarity

Means = dict[tuple[str, str], float]
GOOD: Means = {
    (ORIGINAL, ORIGINAL): 0.57,
    (ORIGINAL, DEBIASED): 0.40,
    (DEBIASED, ORIGINAL): 0.55,
    (DEBIASED, DEBIASED): 0.552,
}


def made(means: Means, *, seeds: int = 5, queries: int = 400, spread: float = 0.1, bm25: float = 0.33) -> Found:
    """TK's values around these means."""
    found = Found()
    rng = np.random.default_rng(0)
    for (training, test), mean in means.items():
        found.values[BIASED, "TK", training, test] = [
            dict.fromkeys(("ndcg", "mrr", "recall"), mean + rng.normal(scale=spread, size=queries))
            for _ in range(seeds)
        ]
    for test in VERSIONS:
        bm = dict.fromkeys(("ndcg", "mrr", "recall"), np.full(queries, bm25))
        found.values[BIASED, "BM25", "", test] = [bm] * seeds
    for training, test in means:
        found.values[OTHER, "TK", training, test] = found.values[BIASED, "TK", training, test]
    return found


def states(found: Found) -> dict[str, str]:
    return {one.statement.key: one.verdict.state for one in claims(found, {})}


@pytest.mark.parametrize("seeds", [1, 5])
def test_the_papers_pattern_fulfils_every_line(seeds: int) -> None:
    state = states(made(GOOD, seeds=seeds, spread=0.02))
    assert {state[key] for key in ("drop_tk", "equivalent_tk", "better_tk", "loss_tk", "cost", "drop")} == {"supported"}


def test_no_line_is_fulfilled_by_a_broken_ranker() -> None:
    state = states(made(dict.fromkeys(GOOD, 0.1)))
    assert state["equivalent_tk"] == "not supported"
    assert "supported" not in state.values()
    assert state["loss_tk"] == "not decidable"


def test_a_destroyed_rotated_ranker_costs_nothing_that_counts() -> None:
    destroyed = {**GOOD, (DEBIASED, ORIGINAL): 0.1, (DEBIASED, DEBIASED): 0.1}
    state = states(made(destroyed))
    assert state["cost"] == "not decidable"
    assert state["better_tk"] == "not decidable"
    assert state["drop_tk"] == "supported"


def test_the_floor_holds_on_both_tests() -> None:
    low = {**GOOD, (DEBIASED, ORIGINAL): 0.331, (DEBIASED, DEBIASED): 0.3301}
    assert states(made(low, spread=0.001))["equivalent_tk"] == "supported"
    assert states(made(low, spread=0.001, bm25=0.3305))["equivalent_tk"] == "not supported"


def test_few_queries_decide_nothing() -> None:
    found = made(GOOD, seeds=1, queries=20, spread=0.5)
    (claim,) = [one for one in claims(found, {}) if one.statement.key == "equivalent_tk"]
    assert claim.verdict.state == "not decidable"
    assert "queries" in claim.verdict.needs


def test_a_loss_beyond_the_margin_is_one() -> None:
    assert states(made({**GOOD, (DEBIASED, ORIGINAL): 0.40}, spread=0.01))["loss_tk"] == "not supported"


def test_a_ranker_below_bm25_is_named_first() -> None:
    table = effectiveness_table(made(dict.fromkeys(GOOD, 0.1)), "Table 3", BIASED, "position_table3")
    row = next(row for row in table.rows if row.labels == ("TK", ORIGINAL))
    assert "below the first stage" in row.warning
    assert "on the rotated test" in row.warning
    fine = effectiveness_table(made(GOOD), "Table 3", BIASED, "position_table3")
    assert not any(row.warning for row in fine.rows)


@pytest.mark.parametrize(("seeds", "unit"), [(1, "queries"), (5, "seeds")])
def test_figures_of_one_seed_are_over_queries(seeds: int, unit: str) -> None:
    table = effectiveness_table(made(GOOD, seeds=seeds), "Table 3", BIASED, "position_table3")
    row = next(row for row in table.rows if row.labels == ("TK", ORIGINAL))
    assert {value.unit for value in row.measured.values()} == {unit}
    assert all(value.ci95 is not None for value in row.measured.values())


# --- word vectors ---


def similarity(start: float, mats: float) -> TermSimilarity:
    ats = np.array([start, start - mats / 2, start - mats / 2])
    ones = np.ones(3, dtype=np.int64)
    return TermSimilarity(ats, np.zeros(3), ones, ones, 2, ats, 1)


def vectors(before: float, after: float, *, level: float) -> Found:
    found = made(GOOD)
    for name in (BIASED, OTHER):
        for training, mats in ((ORIGINAL, before), (DEBIASED, after)):
            start = 1.0 if training == ORIGINAL else level + 0.5 * (1 - level)
            found.similarity[name, training] = [similarity(start, mats + noise) for noise in (0, 0.001, -0.001)]
            found.different[name, training] = [np.full(3, level)] * 3
    return found


def test_mats_falls_or_it_does_not() -> None:
    assert states(vectors(0.2, 0.02, level=0.0))["mats"] == "supported"
    assert states(vectors(0.2, 0.1, level=0.0))["mats"] == "not supported"


@pytest.mark.parametrize("training", VERSIONS)
def test_the_mats_of_a_broken_ranker_counts_for_nothing(training: str) -> None:
    found = vectors(0.2, 0.02, level=0.0)
    broken = dict.fromkeys(("ndcg", "mrr", "recall"), np.full(400, 0.1))
    found.values[BIASED, "TK", training, ORIGINAL] = [broken] * 5
    state = states(found)
    assert (state["mats"], state["mats_relative"]) == ("not decidable", "not decidable")


def test_a_collapse_is_no_smaller_mats() -> None:
    found = Found()
    # After: all cosines near 1, so MATS is small, but what is left of it is as large a share as before.
    found.similarity[BIASED, ORIGINAL], found.different[BIASED, ORIGINAL] = [similarity(0.9, 0.2)], [np.full(3, 0.1)]
    found.similarity[BIASED, DEBIASED], found.different[BIASED, DEBIASED] = (
        [similarity(0.998, 0.002)],
        [np.full(3, 0.99)],
    )
    assert between(found, BIASED, DEBIASED) == pytest.approx([0.99])
    assert relative_mats(found, BIASED, ORIGINAL) == pytest.approx([0.25])
    assert relative_mats(found, BIASED, DEBIASED) == pytest.approx([0.25])


# --- letters ---


def transfers(seeds: int, shift: float, of_seed: float) -> Found:
    """Rows b and c above a by ``shift``, which differs from seed to seed by ``of_seed``."""
    rng = np.random.default_rng(0)
    found = Found()
    moves = np.linspace(-of_seed, of_seed, seeds) if seeds > 1 else np.zeros(1)
    for training, gain in (("original", 0.0), ("MS(original)", shift), ("MS(debiased)", shift)):
        runs = []
        for move in moves:
            low = np.random.default_rng(1).random(60)
            values = low + (gain + move if gain else 0) + rng.normal(scale=0.02, size=60)
            runs.append(dict.fromkeys(("ndcg", "mrr", "recall"), values))
        found.values[OTHER, "TK", training, ORIGINAL] = runs
    return found


def letters(found: Found) -> list[str]:
    return [row.labels[3] for row in transfer_table(found).rows if row.labels[0] == "TK"]


def test_letters_of_one_seed_are_wilcoxons() -> None:
    first, second, _ = letters(transfers(1, 0.1, 0))
    assert first == "–"
    assert second.startswith("nDCG@10 > a*")
    rows = [row for row in transfer_table(transfers(1, 0.1, 0)).rows if row.labels[0] == "TK"]
    assert "ab" in rows[2].labels[4]  # published


def test_letters_respect_seeds() -> None:
    # The same mean gain: once in every seed, once in some seeds and not in others.
    assert letters(transfers(5, 0.05, 0.005))[1].startswith("nDCG@10 > a")
    assert letters(transfers(5, 0.05, 0.3))[1] == "–"
