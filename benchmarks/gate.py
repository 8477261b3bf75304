"""How often a gate fails two seeds of one system, how often it catches a planted loss, and its time on an audit's JSON.

Two seeds share the queries and differ by noise; the rules ask for no loss at all, so that the truth is on the budget.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from evenrank.decide.budget import Budget, as_budget
from evenrank.decide.rule_test import rule_test
from evenrank.files.types import Array, holm
from evenrank.measures import facts, parse_measure
from evenrank.stats.bounds import BoundTest, MeanBound

from .measure import Row, run_command

DRAWS = 1000
STATED = 200
SEEDS = 8
RUNS = 1
"""Simulations with seeds of their own; the time is the best of three."""
Pair = tuple[Array, Array]
Shape = Callable[[int, float, np.random.Generator], Pair]
SHARED = Path(__file__).parents[1] / ".." / "shared" / "data" / "grepbiasir"


def ndcg_like(n: int, loss: float, rng: np.random.Generator) -> Pair:
    """Values from 0 to 1, a fifth of the queries at 0 in both; the new one times 1 − ``loss``."""
    base = rng.beta(1.2, 1.5, n) * (rng.random(n) > 0.2)
    old, new = (np.clip(base + (base > 0) * rng.normal(0, 0.1, n), 0, 1) for _ in range(2))
    return new * (1 - loss), old


def rr_like(n: int, loss: float, rng: np.random.Generator) -> Pair:
    """One over a rank, 0 below 10: few values, skewed; the same for most queries in both seeds."""
    easy = rng.beta(0.8, 1.2, n).clip(0.02, 0.98)
    ranks = rng.geometric(easy)
    moved = [np.where(rng.random(n) < 0.3, rng.geometric(easy), ranks) for _ in range(2)]
    old, new = (np.where(r <= 10, 1 / r, 0.0) for r in moved)
    return new * (1 - loss), old


def arab_like(n: int, loss: float, rng: np.random.Generator) -> Pair:
    """Signed values with long tails; the new one leans by ``loss`` more."""
    base = rng.laplace(0.05, 0.3, n)
    old, new = (base + rng.laplace(0, 0.15, n) for _ in range(2))
    return new + loss, old


SHAPES: dict[str, tuple[Shape, str]] = {
    "nDCG": (ndcg_like, "nDCG@10"),
    "RR": (rr_like, "RR@10"),
    "ARaB": (arab_like, "ARaB@10"),
}


def budget_of(names: list[str]) -> Budget:
    """A budget without any leeway against the baseline, a rule for each name."""
    rules = [
        {"measure": SHAPES[name][1], "against": "baseline", "name": str(place)}
        | ({"at_most": 0} if "ARaB" in name else {"at_least": "0%"})
        for place, name in enumerate(names)
    ]
    return as_budget({"rule": rules})


def test_of(budget: Budget, place: int, new: Array, old: Array) -> BoundTest | None:
    """The test of one rule on the values of two runs."""
    return rule_test(budget.rules[place], [new], [old], greatest=1.0, alpha=budget.alpha).test


def broken(budget: Budget, pairs: list[Pair]) -> list[bool]:
    """Which rules are broken on the values of (new, old)."""
    tests = [test_of(budget, place, new, old) for place, (new, old) in enumerate(pairs)]
    corrected = holm([None if test is None else test.p_violated() for test in tests])
    return [p is not None and p <= budget.alpha for p in corrected]


def by_chance(names: list[str], n: int, draws: int = DRAWS, seed: int = 0) -> float:
    """How often a gate of these rules fails two seeds of one system."""
    rng, budget = np.random.default_rng(seed), budget_of(names)
    failed = (any(broken(budget, [SHAPES[name][0](n, 0.0, rng) for name in names])) for _ in range(draws))
    return sum(failed) / draws


def caught(
    name: str, rules: int, n: int, loss: float, draws: int = 2 * DRAWS, stated: int = STATED
) -> tuple[float, float | None]:
    """How often a planted loss in the first of several rules is caught, and the mean of the power that is stated.

    None is stated of an absolute value.
    """
    rng, budget = np.random.default_rng(1), budget_of([name, *["nDCG"] * (rules - 1)])
    shape, found, said = SHAPES[name][0], 0, []
    for draw in range(draws):
        # The other rules have nothing wrong with them.
        others = [(new + 0.2, old) for new, old in (ndcg_like(n, 0.0, rng) for _ in range(rules - 1))]
        pair = shape(n, loss, rng)
        found += broken(budget, [pair, *others])[0]
        if draw < stated:
            test = test_of(budget, 0, *pair)
            if isinstance(test, MeanBound):
                said.append(test.power(-loss, budget.alpha / rules))
    return found / draws, float(np.mean(said)) if said else None


def real(draws: int = DRAWS) -> float | None:
    """How often two halves of real values fail: of two runs of GrepBiasIR, swapped at random query by query."""
    if not SHARED.is_dir():
        return None
    import evenrank

    read = evenrank.read_run(SHARED / "bm25.run")
    moved = read.table.with_columns(score=read.table["score"] * (1 + 0.1 * np.sin(np.arange(len(read.table)))))
    names = ["nDCG@10", "RR@10", "ARaB@10"]
    audit = evenrank.audit(
        {"a": read, "b": moved},
        collection=SHARED / "collection.clean.tsv",
        qrels=SHARED / "qrels.txt",
        measures=names,
    )
    values = {name: (audit["a", name].values, audit["b", name].values) for name in names}
    rng, budget, failed = np.random.default_rng(2), budget_of(["nDCG", "RR", "ARaB"]), 0
    for _ in range(draws):
        picked = rng.integers(0, len(values["RR@10"][0]), len(values["RR@10"][0]))
        swapped = rng.random(len(picked)) < 0.5
        pairs = [
            (np.where(swapped, b[picked], a[picked]), np.where(swapped, a[picked], b[picked]))
            for a, b in values.values()
        ]
        failed += any(broken(budget, pairs))
    return failed / draws


_RECIPE = """
name = "seed"
out = "{folder}/{seed}"

[ranker]
kind = "knrm"
vector_size = 50

[data]
collection = "{folder}/collection.tsv"
queries = "{folder}/queries.train.tsv"
qrels = "{folder}/clicks.txt"
run = "{folder}/train.run"
negatives = 10

[validation]
queries = "{folder}/queries.valid.tsv"
qrels = "{folder}/clicks.txt"
run = "{folder}/valid.run"
depth = 50

[training]
seed = {seed}
batch = 32
learning_rate = 1e-2
epochs = 10
evaluate_every = 50
"""


def trained_seeds(folder: Path) -> list[Row]:
    """Small rankers (K-NRM, synthetic collection) trained with 8 seeds, each gated against each other."""
    import evenrank

    made = evenrank.generate(evenrank.SyntheticConfig(passages=5000))
    made.write(folder)
    lists = {}
    for split in ("train", "valid", "test"):
        lists[split] = evenrank.retrieve(folder / "collection.tsv", folder / f"queries.{split}.tsv", k=100, quiet=True)
        evenrank.write_run(lists[split], folder / f"{split}.run")
    runs = {}
    for seed in range(SEEDS):
        recipe = folder / f"{seed}.toml"
        recipe.write_text(_RECIPE.format(folder=folder, seed=seed), encoding="utf-8")
        model = evenrank.train_recipe(recipe) / "model"
        texts = {"collection": folder / "collection.tsv", "queries": folder / "queries.test.tsv"}
        runs[str(seed)] = evenrank.rerank(lists["test"], model=str(model), **texts, quiet=True)
    judged = set(lists["test"].table["query_id"])
    clicks = made.clicks.filter(made.clicks["query_id"].is_in(list(judged)))
    names = ["nDCG@10", "RR@10", "ARaB@10", "NFaiRR@10"]
    audit = evenrank.audit(runs, collection=folder / "collection.tsv", qrels=clicks, measures=names)
    n, rows = len(audit.queries), []
    for what, at in (("no leeway", ("0%", "0%", 0, 0)), ("-3%, -3%, +0.15, -0.02", ("-3%", "-3%", 0.15, -0.02))):
        sides = ("at_least", "at_least", "at_most", "at_least")
        every = [
            {"measure": name, "against": "baseline", side: bound}
            for name, side, bound in zip(names, sides, at, strict=True)
        ]
        for rules in (*([rule] for rule in every), every):
            budget = as_budget({"rule": rules})
            found = [
                any(
                    broken(budget, [(audit[new, r.measure].values, audit[old, r.measure].values) for r in budget.rules])
                )
                for new in runs
                for old in runs
                if new != old
            ]
            share = sum(found) / len(found)
            which = rules[0]["measure"] if len(rules) == 1 else "4 rules"
            said = f"gate: K-NRM, {SEEDS} seeds, {n} queries, {what}, {which}"
            rows.append(Row(f"{said}: share of {len(found)} gates that fail", 100 * share, "%", most=5))
    return rows


def write_audit(path: Path, queries: int = 6980) -> None:
    """The JSON of an audit with 5 measures of 3 runs."""
    rng = np.random.default_rng(0)
    measures = ["nDCG@10", "RR@10", "R@1000", "ARaB@10", "NFaiRR@10"]
    runs = {
        run: {
            "lengths": [1000] * queries,
            "measures": {m: {"values": rng.random(queries).tolist(), "mean": 0.5} for m in measures},
        }
        for run in ("old", "other", "new")
    }
    named = {name: facts(parse_measure(name)) for name in measures}
    audit = {"baseline": "old", "queries": [str(q) for q in range(queries)], "runs": runs, "measures": named}
    path.write_text(json.dumps(audit), encoding="utf-8")


def _caught_row(name: str, rules: int, loss: float, n: int) -> Row:
    """A planted loss: caught against stated."""
    found, stated = caught(name, rules, n, loss)
    what = f"gate: loss of {loss:g} in {name}, rule 1 of {rules}, {n} queries: caught"
    if stated is None:
        return Row(what, 100 * found, "%")
    return Row(f"{what}, against what is stated", 100 * found, "%", 100 * stated, "difference", least=-5, most=5)


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    table = []
    mixes = [["nDCG"], ["RR"], ["ARaB"], ["nDCG", "RR", "ARaB"], ["nDCG", "RR", "ARaB"] * 2]
    for n in (50, 200, 1000):
        for names in mixes:
            said = f"{len(names)} rules" if len(names) > 1 else names[0]
            chance = by_chance(names, n)
            table.append(Row(f"gate: two seeds, {said}, {n} queries: fail", 100 * chance, "%", most=5))
        for name, rules, loss in (
            ("nDCG", 1, 0.03),
            ("nDCG", 3, 0.03),
            ("RR", 1, 0.03),
            ("RR", 6, 0.1),
            ("ARaB", 1, 0.05),
            ("ARaB", 3, 0.1),
        ):
            table.append(_caught_row(name, rules, loss, n))
    chance = real()
    if chance is not None:
        table.append(Row("gate: GrepBiasIR, two runs swapped by query, 3 rules: fail", 100 * chance, "%", most=5))
    write_audit(folder / "audit.json")
    bounds = {"nDCG@10": "at_least = -0.5", "RR@10": "at_least = -0.5", "ARaB@10": "at_most = 0.5\ngreatest = 5"}
    rules = "".join(f'[[rule]]\nmeasure = "{m}"\nagainst = "baseline"\n{bound}\n' for m, bound in bounds.items())
    (folder / "budget.toml").write_text(rules, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "evenrank",
        "gate",
        str(folder / "audit.json"),
        "--run",
        "new",
        "--budget",
        str(folder / "budget.toml"),
    ]
    seconds = min(run_command(command).seconds for _ in range(3))
    table.append(Row("`evenrank gate` on the JSON of 6,980 queries × 5 measures × 3 runs", seconds, "s", most=1))
    (folder / "seeds").mkdir()
    return table + trained_seeds(folder / "seeds")
