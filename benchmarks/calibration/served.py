"""Cells of what is said of groups of queries, and of means in which queries have weights."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank.files.types import Array
from evenrank.measures import facts, parse_measure
from evenrank.measures import inference as st

from . import queries as q
from .cell import Cell

_APART = ("group_worst", "group_best", "group_less_fair", "group_fairer", "group_apart")
_CHANGED = ("groups_better", "groups_worse", "groups_better_and_worse", "groups_changed")
_SIZES = (0.5, 0.2, 0.15, 0.1, 0.05)
_FAMILIES = ("normal", "lognormal", "reciprocal ranks", "20% of values not 0, skewed", "like ARaB")


# --- groups of queries -----------------------------------------------------------------------------------------------


def of_two(values: q.Values, n: int, size: int, rng: np.random.Generator) -> Any:
    """Values of queries that are all alike, and which of them are of a group."""
    return values(rng, n), np.arange(n) < size


def apart(sample: Any) -> bool:
    """Whether the group is shown to differ from the other queries."""
    values, inside = sample
    return st.compare_groups(np.where(inside, values, np.nan), np.where(inside, np.nan, values)).shown


def apart_in_audit(sample: Any) -> bool:
    """The same through ``evenrank.audit``."""
    values, inside = sample
    return q.says(_audit(values, inside.astype(int)), _APART)


def _audit(values: Array, groups: Array) -> evenrank.AuditResult:
    table, run, _ = q.table_of(values)
    of = {f"q{n}": f"group {group}" for n, group in enumerate(groups.tolist())}
    return evenrank.audit(run, scores=table, measures="ARaB@1", query_groups=of)


def of_five(values: q.Values, n: int, rng: np.random.Generator) -> Any:
    """Values of queries that are all alike, and the groups that they are dealt to at random."""
    return values(rng, n), rng.choice(len(_SIZES), n, p=_SIZES)


def any_apart(sample: Any) -> bool:
    values, groups = sample
    some = np.unique(groups)
    tests = [st.compare_groups(*(np.where(of, values, np.nan) for of in (groups == g, groups != g))) for g in some]
    return any(one.shown for one in st.corrected(tests))


def any_apart_in_audit(sample: Any) -> bool:
    return q.says(_audit(*sample), _APART)


def dealt(n: int, rng: np.random.Generator) -> Any:
    """Reciprocal ranks of two runs that are alike, and the queries' groups."""
    return *q.exchangeable(n, 2, rng), rng.choice(len(_SIZES), n, p=_SIZES)


def changed(sample: Any) -> bool:
    """Whether two runs are shown to differ on the queries of any group."""
    first, second, groups = sample
    tests = [st.compare(np.where(groups == g, first - second, np.nan)) for g in np.unique(groups)]
    return any(one.shown for one in st.corrected(tests))


def changed_in_audit(sample: Any) -> bool:
    first, second, groups = sample
    runs = {"new": q.trec(first), "old": q.trec(second)}
    names = [f"q{n}" for n in range(len(groups))]
    qrels = pl.DataFrame({"query_id": names, "doc_id": "relevant", "relevance": 1})
    of = {name: f"group {group}" for name, group in zip(names, groups.tolist(), strict=True)}
    found = evenrank.audit(runs, qrels=qrels, baseline="old", measures="RR@10", query_groups=of)
    return q.says(found, _CHANGED)


def _groups() -> Iterator[Cell]:
    for family in _FAMILIES:
        for n, size in ((40, 20), (117, 15), (117, 40), (215, 20), (1000, 20), (1000, 100), (1000, 300)):
            draw = functools.partial(of_two, q.CENTRED[family], n, size)
            named = f"{family}, a group of {size}"
            yield Cell("a query group differs from the others", named, n, draw, apart, apart_in_audit, quick=50)
        for n in (117, 1000):
            draw = functools.partial(of_five, q.CENTRED[family], n)
            yield Cell("any of 5 query groups differs", family, n, draw, any_apart, any_apart_in_audit, quick=50)
    for n in (117, 1000):
        draw = functools.partial(dealt, n)
        rule = "runs differ on a query group"
        yield Cell(rule, "runs alike, 5 groups", n, draw, changed, changed_in_audit, draws=2000, quick=20)
    draw = functools.partial(of_two, lambda rng, n: q.normal(rng, n) + 0.5 * (np.arange(n) < 100), 500, 100)
    yield Cell("a query group differs from the others", "normal, .5 sd, a group of 100", 500, draw, apart, kind="power")


# --- weights of queries ----------------------------------------------------------------------------------------------

WEIGHTS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "lognormal weights": lambda rng, n: rng.lognormal(0, 1, n),
    "Pareto weights": lambda rng, n: rng.pareto(1.5, n) + 1,
    "weights as 1/rank": lambda rng, n: 1 / rng.permutation(np.arange(1, n + 1)),
}


def weighted(values: Callable[[np.random.Generator, int], Any], weights: str, n: int, rng: np.random.Generator) -> Any:
    """Values, whatever their form, and weights that do not depend on them."""
    return values(rng, n), WEIGHTS[weights](rng, n)


def differs(sample: Any) -> bool:
    return st.compare(*sample).shown


def differs_in_audit(sample: Any) -> bool:
    values, weights = sample
    table, run, _ = q.table_of(values)
    of = {f"q{n}": weight for n, weight in enumerate(weights.tolist())}
    lean = evenrank.audit(run, scores=table, measures="ARaB@1", query_weights=of)["run", "ARaB@1"].lean
    return lean is not None and lean.shown


def missed(sample: Any) -> bool:
    """Whether the interval lacks the true mean."""
    ends = st.estimate(*sample).ci95
    return ends is None or not ends[0] <= q.MEAN <= ends[1]


def holds(margin: float, sample: Any) -> bool:
    (values, base), weights = sample
    test = st.no_loss(values, base, margin, weights=weights)
    return test is not None and test.p_holds() <= q.ALPHA


def broken(sample: Any) -> bool:
    (values, base), weights = sample
    test = st.no_loss(values, base, 0.03, weights=weights)
    p = None if test is None else test.p_broken()
    return p is not None and p <= q.ALPHA


def limit_holds(sample: Any) -> bool:
    values, weights = sample
    return st.bound_of_size([values], None, q.LIMIT, q.GREATEST, weights=[weights]).p_holds() <= q.ALPHA


def limit_broken(sample: Any) -> bool:
    values, weights = sample
    p = st.bound_of_size([values], None, q.LIMIT, q.GREATEST, weights=[weights]).p_broken()
    return p is not None and p <= q.ALPHA


def _gate(rule: dict[str, object], outcome: str, values: Array, base: Array, weights: Array) -> bool:
    measure = str(rule["measure"])
    runs = {
        name: {"measures": {measure: {"values": of.tolist(), "greatest": q.GREATEST}}, "lengths": [10] * len(of)}
        for name, of in (("new", values), ("old", base))
    }
    audit = {"queries": [f"q{n}" for n in range(len(base))], "query_weight": weights.tolist(), "baseline": "old"}
    audit |= {"measures": {measure: facts(parse_measure(measure))}, "runs": runs}
    return evenrank.gate(audit, budget={"rule": [rule]}).outcome == outcome


def gate_margin(margin: float, outcome: str, sample: Any) -> bool:
    (values, base), weights = sample
    rule = {"measure": "nDCG@10", "against": "baseline", "at_least": f"-{100 * margin:g}%"}
    return _gate(rule, outcome, values, base, weights)


def gate_limit(outcome: str, sample: Any) -> bool:
    values, weights = sample
    return _gate({"measure": "ARaB@10", "at_most": q.LIMIT}, outcome, values, values, weights)


def sizes_differ(sample: Any) -> bool:
    (first, second), weights = sample
    return st.compare_sizes([first], [second], [1.0], weights).shown


def poles_differ(sample: Any) -> bool:
    """Whether the means of two parts of the queries differ, as those of two poles do."""
    values, weights = sample
    first = np.arange(len(values)) < len(values) // 4
    return st.compare_parts([np.where(of, values, np.nan) for of in (first, ~first)], (1.0, -1.0), weights).shown


def _weights() -> Iterator[Cell]:
    for weights in WEIGHTS:
        for n in (20, 50, 117, 215, 1000):
            quick = 50 if n <= 215 else 20
            for family in _FAMILIES:
                draw = functools.partial(weighted, q.CENTRED[family], weights, n)
                named = f"{family}, {weights}"
                yield Cell("a weighted mean differs from 0", named, n, draw, differs, differs_in_audit, quick=quick)
            draw = functools.partial(weighted, q.base_of, weights, n)
            yield Cell("a weighted mean", f"like nDCG, {weights}", n, draw, missed, kind="coverage", quick=quick)
            draw = functools.partial(weighted, lambda rng, n: q.equal_sizes(n, 0.05, rng), weights, n)
            yield Cell("sizes of two weighted leans differ", weights, n, draw, sizes_differ, quick=quick)
            draw = functools.partial(weighted, q.base_of, weights, n)
            yield Cell("two parts' weighted means differ", f"like nDCG, {weights}", n, draw, poles_differ, quick=quick)
    for weights in ("lognormal weights", "Pareto weights"):
        for n in (117, 215, 500, 1000, 2000):
            losses = (
                ("the best queries ruined", 0.05 * q.MEAN / (1 - 0.05 * (1 - q.MEAN)), True),
                ("5% of queries ruined", 0.05, False),
                ("10% of queries lose the margin", 0.10, False),
            )
            for family, share, best in losses:
                ruined = functools.partial(_ruined, share, best)
                draw = functools.partial(weighted, ruined, weights, n)
                said, command = functools.partial(holds, 0.05), functools.partial(gate_margin, 0.05, "holds")
                rule = "weighted: no loss of more than 5%"
                yield Cell(rule, f"{family}, {weights}", n, draw, said, command, quick=20)
        for n in (50, 117, 1000):
            for family in ("normal", "lognormal", "like ARaB"):
                lost = functools.partial(_lost, q.CENTRED[family])
                draw = functools.partial(weighted, lost, weights, n)
                command = functools.partial(gate_margin, 0.03, "broken")
                yield Cell(
                    "weighted: a loss of more than 3%", f"{family}, {weights}", n, draw, broken, command, quick=20
                )
                leaning = functools.partial(_leaning, q.CENTRED[family])
                draw = functools.partial(weighted, leaning, weights, n)
                for rule, said, outcome in (
                    ("weighted: |mean| at most .05", limit_holds, "holds"),
                    ("weighted: |mean| above .05", limit_broken, "broken"),
                ):
                    command = functools.partial(gate_limit, outcome)
                    yield Cell(rule, f"{family}, {weights}", n, draw, said, command, quick=20)
    draw = functools.partial(weighted, lambda rng, n: (q.base_of(rng, n),) * 2, "lognormal weights", 1000)
    rule = "weighted: no loss of more than 5%"
    yield Cell(rule, "equal runs, lognormal weights", 1000, draw, functools.partial(holds, 0.05), kind="power")


def _ruined(share: float, best: bool, rng: np.random.Generator, n: int) -> Any:
    return q.ruined(n, 0.05, share, 1, best, 0.01, rng)


def _lost(values: q.Values, rng: np.random.Generator, n: int) -> Any:
    return q.lost_on_the_bound(values, n, rng)


def _leaning(values: q.Values, rng: np.random.Generator, n: int) -> Array:
    return q.leaning(values, n, 0.3, q.LIMIT, rng)


CELLS: tuple[Cell, ...] = (*_groups(), *_weights())
