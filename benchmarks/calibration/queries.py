"""Cells of what is said of means over queries: leans, differences, no loss, limits, seeds."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank.decide.bound import Bound
from evenrank.decide.bound import bound_result as kept
from evenrank.files.types import Array
from evenrank.groups import GroupTable
from evenrank.measures import facts, parse_measure
from evenrank.results.finding import phrases
from evenrank.stats.bounds import BoundTest, bound_mean, limit_absolute, margin_absolute, no_loss, outcome
from evenrank.stats.compare import (
    Comparison,
    compare,
    compare_abs_means,
    compare_combined,
    compare_to_random_order,
    corrected,
)
from evenrank.stats.planning import queries_to_hold
from evenrank.stats.random_effects import LEAST_SEEDS, random_effects_test, size_test

from .cell import Cell

SIZES = (5, 10, 20, 30, 50, 117, 215, 1000)
Values = Callable[[np.random.Generator, int], Array]
ALPHA = 0.05


# --- values of queries whose mean is 0 -------------------------------------------------------------------------------


def normal(rng: np.random.Generator, n: int) -> Array:
    return rng.normal(0, 1, n)


def lognormal(rng: np.random.Generator, n: int) -> Array:
    return rng.lognormal(0, 1, n) - np.exp(0.5)


def heavy(rng: np.random.Generator, n: int) -> Array:
    return rng.standard_t(3, n)


_RANKS = 1 / np.arange(1, 11)
_OF_RANKS = np.append(0.35 * 0.65 ** np.arange(10), 0.0)
_OF_RANKS[-1] = 1 - _OF_RANKS.sum()


def _rr(rng: np.random.Generator, n: int) -> Array:
    return rng.choice(np.append(_RANKS, 0.0), n, p=_OF_RANKS)


def rr(rng: np.random.Generator, n: int) -> Array:
    """Reciprocal ranks less their mean."""
    return _rr(rng, n) - float(_OF_RANKS[:-1] @ _RANKS)


def rr_difference(rng: np.random.Generator, n: int) -> Array:
    """Those of two systems of which 7 in 10 queries have the same."""
    first = _rr(rng, n)
    return np.where(rng.random(n) < 0.7, first, _rr(rng, n)) - first


def sparse(share: float, rng: np.random.Generator, n: int) -> Array:
    """Mostly 0; the others skewed, with mean 0."""
    return np.where(rng.random(n) < share, rng.exponential(1, n) - 1, 0.0)


def arab(rng: np.random.Generator, n: int) -> Array:
    """Values like a lean's: long tails on both sides, one of them longer, a fifth of them 0."""
    return np.where(rng.random(n) < 0.2, 0.0, np.where(rng.random(n) < 0.75, -0.1, 0.3) * rng.exponential(1, n))


CENTRED: dict[str, Values] = {
    "normal": normal,
    "lognormal": lognormal,
    "t₃": heavy,
    "reciprocal ranks": rr,
    "differences of reciprocal ranks": rr_difference,
    "5% of values not 0, skewed": functools.partial(sparse, 0.05),
    "20% of values not 0, skewed": functools.partial(sparse, 0.20),
    "like ARaB": arab,
}


def table_of(values: Array) -> tuple[GroupTable, pl.DataFrame, pl.DataFrame]:
    """Documents with these signed magnitudes [n], a run with one of them a query, and a run of neutral ones."""
    n = len(values)
    ids, others = [f"d{q}" for q in range(n)], [f"z{q}" for q in range(n)]
    signed = np.concatenate([values, np.zeros(n)])
    table = pl.DataFrame(
        {
            "doc_id": ids + others,
            "tokens": np.full(2 * n, 10),
            "count_m": (signed > 0).astype(np.int64),
            "count_f": (signed < 0).astype(np.int64),
            "magnitude_tf_m": np.maximum(signed, 0),
            "magnitude_tf_f": np.maximum(-signed, 0),
            "neutrality": np.ones(2 * n),
        }
    )
    queries = [f"q{q}" for q in range(n)]
    runs = [pl.DataFrame({"query_id": queries, "doc_id": one, "score": np.ones(n)}) for one in (ids, others)]
    return GroupTable.of(table), runs[0], runs[1]


def differs_in_audit(values: Array) -> bool:
    """Whether ``evenrank.audit`` says that a run leans; it has to say the same of its difference from a neutral one."""
    table, run, neutral = table_of(values)
    found = evenrank.audit({"a": run, "b": neutral}, scores=table, baseline="b", measures="ARaB@1")
    figure = found["a", "ARaB@1"]
    assert figure.lean is not None
    assert figure.vs_baseline is not None
    assert figure.lean.shown == figure.vs_baseline.significant
    return figure.lean.shown


def differs(values: Array) -> bool:
    return compare(values).shown


def runs_differ(values: Array) -> bool:
    return compare(values, zeros="keep").shown


_SKEWED = "few values are not 0, and those have a long tail"
FEW_SKEWED: dict[tuple[str, int], str] = {
    ("20% of values not 0, skewed", 50): _SKEWED,
    ("20% of values not 0, skewed", 117): _SKEWED,
    ("5% of values not 0, skewed", 215): _SKEWED,
    **dict.fromkeys([("lognormal", 10), *(("like ARaB", n) for n in (10, 20, 30, 50))], "few values with a long tail"),
}
"""What differences in effectiveness would have to be like for their test to claim too much, and of how many queries."""


def _means() -> Iterator[Cell]:
    for family, values in CENTRED.items():
        for n in SIZES:
            draw = functools.partial(_drawn, values, n)
            quick = 200 if n <= 215 else 50
            yield Cell("a mean differs from 0", family, n, draw, differs, differs_in_audit, quick=quick)
    for n in (50, 117, 215, 1000):
        floor = 0.8 * power_of_t(n, 0.3)
        draw = functools.partial(_moved, normal, n, 0.3)
        yield Cell("a mean differs from 0", "normal, .3 sd", n, draw, differs, kind="power", floor=floor)
        for family in ("lognormal", "reciprocal ranks", "like ARaB", "20% of values not 0, skewed"):
            values, sd = CENTRED[family], _SD[family]
            draw = functools.partial(_moved, values, n, 0.3 * sd)
            yield Cell("a mean differs from 0", f"{family}, .3 sd", n, draw, differs, kind="power")
    for family, values in CENTRED.items():
        for n in SIZES:
            # No ranking has differences of such values: real pairs go through the command.
            draw = functools.partial(_drawn, values, n)
            quick, known = 200 if n <= 215 else 50, FEW_SKEWED.get((family, n))
            yield Cell("two runs differ", family, n, draw, runs_differ, known_to_fail=known, quick=quick)
    for n in (10, 20, 50, 117):
        for family, drawn in (("five of a passage", 5), ("one to nine of a passage", 9)):
            draw = functools.partial(_clustered, n, drawn)
            yield Cell("a mean of clusters differs from 0", family, n, draw, clusters_differ)


def _drawn(values: Values, n: int, rng: np.random.Generator) -> Array:
    return values(rng, n)


def _moved(values: Values, n: int, by: float, rng: np.random.Generator) -> Array:
    found = values(rng, n)
    return np.where(found == 0, 0.0, found + by) if (found == 0).any() else found + by


_SD = {"lognormal": float(np.sqrt((np.e - 1) * np.e)), "reciprocal ranks": 0.4, "like ARaB": 0.28}
_SD["20% of values not 0, skewed"] = 1.0


def power_of_t(n: int, effect: float) -> float:
    """The power of Student's two-sided t-test for an effect in standard deviations."""
    from scipy.stats import nct, t

    critical = t.ppf(0.975, n - 1)
    return float(1 - nct.cdf(critical, n - 1, effect * np.sqrt(n)))


class _Clustered:
    """Values and their clusters, as arguments of ``compare``."""

    def __init__(self, values: Array, clusters: Array) -> None:
        self.values, self.clusters = values, clusters


def _clustered(passages: int, most: int, rng: np.random.Generator) -> Any:
    sizes = np.full(passages, most) if most == 5 else rng.integers(1, most + 1, passages)
    clusters = np.repeat(np.arange(passages), sizes)
    return _Clustered(rng.exponential(1, passages)[clusters] - 1 + rng.normal(0, 0.5, len(clusters)), clusters)


def clusters_differ(sample: Any) -> bool:
    return compare(sample.values, clusters=sample.clusters).shown


# --- no loss, limits -------------------------------------------------------------------------------------------------

MARGINS = (0.05, 0.03, 0.02)
FORMER = {0.05: (96, 116), 0.03: (161, 181), 0.02: (243, 263)}
"""How many queries an earlier rule asked for, and 20 more."""
JITTER = {"small": 0.01, "large": 0.1}


def base_of(rng: np.random.Generator, n: int) -> Array:
    """Values from 0 to 1 with mean .59, like nDCG@10 of a good ranker."""
    return rng.beta(1.6, 1.11, n)


MEAN = 1.6 / (1.6 + 1.11)


def ruined(
    n: int, margin: float, share: float, times: float, best: bool, jitter: float, rng: np.random.Generator
) -> Any:
    """Base values and new ones: in a ``share`` of the queries so much is lost that the mean loses ``times · margin``.

    ``best``: the ruined queries are those that had nearly 1.
    """
    base = base_of(rng, n)
    hit = rng.random(n) < share
    if best:
        base = np.where(hit, 1.0, base)
        mean = share + (1 - share) * MEAN
        lost = hit * np.minimum(1.0, times * margin * mean / share)
    else:
        lost = hit * base * min(1.0, times * margin / share)
    noise = rng.normal(0, jitter, n) * ~hit
    return base - lost + noise, base


def holds(margin: float, sample: Any) -> bool:
    """Whether no loss within a margin is shown."""
    test = no_loss(*sample, margin)
    return test is not None and test.p_holds() <= ALPHA


def gated(rule: dict[str, object], outcome: str, sample: Any, clusters: Array | None = None, **more: object) -> bool:
    """Whether ``evenrank.gate`` says so of a rule, on an audit's JSON with these values, and clusters of queries."""
    values, base = sample
    measure = str(rule["measure"])
    runs = {
        name: {"measures": {measure: {"values": list(map(float, of)), **more}}, "lengths": [10] * len(of)}
        for name, of in (("new", values), ("old", base))
    }
    queries = [f"q{q}" for q in range(len(base))]
    own = {"queries": queries, "baseline": "old", "measures": {measure: facts(parse_measure(measure))}, "runs": runs}
    audit = own if clusters is None else {**own, "query_cluster": clusters.tolist()}
    return evenrank.gate(audit, budget={"rule": [rule]}).outcome == outcome


def gate_margin(margin: float, sample: Any) -> bool:
    rule = {"measure": "nDCG@10", "against": "baseline", "at_least": f"-{100 * margin:g}%"}
    return gated(rule, "holds", sample)


def ranked(n: int, rng: np.random.Generator) -> Any:
    """Reciprocal ranks of a run and of one that ruins 5% of its queries, which is 5% of them on average."""
    base = rng.choice(_RANKS, n)
    return np.where(rng.random(n) < 0.05, 0.0, base), base


def trec(values: Array) -> pl.DataFrame:
    """A run whose reciprocal ranks are the values."""
    ranks = np.where(values > 0, np.rint(1 / np.where(values > 0, values, 1.0)), 11).astype(int)
    rows = [
        (f"q{q}", f"relevant {q}" if place == rank else f"d{place}", 20.0 - place)
        for q, rank in enumerate(ranks.tolist())
        for place in range(1, 12)
    ]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")


def judged(n: int) -> pl.DataFrame:
    """The judgements of :func:`trec`'s runs: one relevant document a query."""
    places = range(n)
    rows = {"query_id": [f"q{q}" for q in places], "doc_id": [f"relevant {q}" for q in places]}
    return pl.DataFrame(rows).with_columns(relevance=1)


def said_in_audit(keys: tuple[str, ...], sample: Any, margin: float | None = None) -> bool:
    """Whether ``evenrank.audit`` has a finding of one of these keys: of two runs, or of more without a baseline."""
    qrels = judged(len(sample[0]))
    names = ("new", "old") if len(sample) == 2 else tuple(f"run {place}" for place in range(len(sample)))
    runs = {name: trec(values) for name, values in zip(names, sample, strict=True)}
    baseline = "old" if len(sample) == 2 else None
    found = evenrank.audit(runs, qrels=qrels, baseline=baseline, measures="RR@10", margin=margin)
    return says(found, keys)


def says(found: evenrank.AuditResult, keys: Sequence[str]) -> bool:
    """Whether an audit has a finding of one of these keys, each of which it could have."""
    assert set(keys) <= set(phrases("audit").templates)
    return any(one.key in keys for one in found.findings)


def exchangeable(n: int, runs: int, rng: np.random.Generator) -> Any:
    """Reciprocal ranks of runs that are all alike: a query's values are drawn once and dealt out."""
    values = rng.choice(_RANKS, (n, runs))
    return tuple(rng.permuted(values, axis=1).T)


def two_apart(sample: Any) -> bool:
    """Whether any two of several runs are shown to differ."""
    tests = [compare(first - second, zeros="keep") for first, second in itertools.combinations(sample, 2)]
    return any(one.shown for one in corrected(tests))


_GROUPS, _CANDIDATES, _TOP = 6, 20, 10
_SHARES = (0.4, 0.25, 0.15, 0.1, 0.06, 0.04)


def shuffled(n: int, rng: np.random.Generator) -> Any:
    """The groups [n, 20] of candidates in random order, so that the first ranks have their shares."""
    return rng.choice(_GROUPS, (n, _CANDIDATES), p=_SHARES)


def group_apart(sample: Any) -> bool:
    """Whether any group's share of the first ranks is shown to differ from that of the candidates."""
    member = sample[:, :, None] == np.arange(_GROUPS)
    return any(one.shown for one in corrected(_added(member)))


def _added(member: Array) -> list[Comparison]:
    """What an order adds to each group's share, from who is a member [n, candidates, G]."""
    size = member.shape[1]
    added = member[:, :_TOP].mean(axis=1) - member.mean(axis=1)
    variances = (1 / _TOP - 1 / size) * member.var(axis=1, ddof=1)
    return [compare_to_random_order(*one, reach=1.0) for one in zip(added.T, variances.T, strict=True)]


def group_apart_in_audit(sample: Any) -> bool:
    """The same through ``evenrank.audit``."""
    keys = ("more_groups", "fewer_groups", "more_and_fewer_groups")
    return says(_audit_of_groups(sample), keys)


def _audit_of_groups(groups: Array, grades: Array | None = None, *others: Array) -> evenrank.AuditResult:
    """An audit of a run whose documents have these groups [n, candidates], and grades if any.

    ``others``: the places of the documents in other runs [n, candidates]; the first run is then the baseline.
    """
    n, size = groups.shape
    docs = np.array([[f"d{q}.{place}" for place in range(size)] for q in range(n)])
    rows = {"query_id": np.repeat([f"q{q}" for q in range(n)], size), "doc_id": docs.ravel()}
    places = [np.tile(np.arange(size), (n, 1)), *others]
    runs = {f"run {i}": pl.DataFrame({**rows, "score": -of.ravel().astype(float)}) for i, of in enumerate(places)}
    qrels = None if grades is None else pl.DataFrame({**rows, "relevance": grades.ravel()})
    labels = {doc: f"group {g}" for doc, g in zip(docs.ravel().tolist(), groups.ravel().tolist(), strict=True)}
    # A group of no document would not be known to the labels.
    labels |= {f"none {g}": f"group {g}" for g in range(_GROUPS)}
    measures = " ".join(f"Share(group='group {g}')@{_TOP}" for g in range(_GROUPS))
    return evenrank.audit(runs, labels=labels, qrels=qrels, measures=measures, baseline="run 0" if others else None)


def two_orders(n: int, rng: np.random.Generator) -> Any:
    """The groups [n, 20] of candidates in the order of one run, and the places that another has them at."""
    return shuffled(n, rng), rng.permuted(np.tile(np.arange(_CANDIDATES), (n, 1)), axis=1)


_SHARES_APART = ("more_than_baseline", "fewer_than_baseline", "more_and_fewer_than_baseline")


def shares_apart(sample: Any) -> bool:
    """Whether two runs are shown to differ in any group's share of the first ranks."""
    groups, places = sample
    member = groups[:, :, None] == np.arange(_GROUPS)
    other = np.take_along_axis(member, np.argsort(places, axis=1)[:, :, None], axis=1)
    change = other[:, :_TOP].mean(axis=1) - member[:, :_TOP].mean(axis=1)
    return any(one.shown for one in corrected([compare(values) for values in change.T]))


def shares_apart_in_audit(sample: Any) -> bool:
    """The same through ``evenrank.audit``."""
    groups, places = sample
    return says(_audit_of_groups(groups, None, places), _SHARES_APART)


def as_relevant(n: int, rng: np.random.Generator) -> Any:
    """Groups [n, 20] in the order of a run, and grades: both prefer the first group, by chance alike."""
    groups = rng.choice(_GROUPS, (n, _CANDIDATES), p=_SHARES)
    scores, needs = (1.0 * (groups == 0) + rng.normal(0, 1, groups.shape) for _ in range(2))
    order = np.argsort(-scores, axis=1)
    grades = np.argsort(np.argsort(needs, axis=1), axis=1) + 1
    return tuple(np.take_along_axis(one, order, axis=1) for one in (groups, grades))


def beyond_relevance(sample: Any) -> bool:
    """Whether a group that a run shows in another share than its candidates is shown to be so beyond the grades."""
    groups, grades = sample
    member = groups[:, :, None] == np.arange(_GROUPS)
    best = np.take_along_axis(member, np.argsort(-grades, axis=1)[:, :, None], axis=1)
    top = member[:, :_TOP].mean(axis=1)
    beyond = [compare(values) for values in (top - best[:, :_TOP].mean(axis=1)).T]
    found = zip(corrected(_added(member)), corrected(beyond), strict=True)
    return any(a.shown and b.shown and (a.mean or 0.0) * (b.mean or 0.0) > 0 for a, b in found)


def beyond_in_audit(sample: Any) -> bool:
    """The same through ``evenrank.audit``."""
    return says(_audit_of_groups(*sample), ("groups_beyond",))


def lean_beyond(sample: Any) -> bool:
    """Whether ``evenrank.audit`` says that a run leans further to the first group than a perfect ranking does."""
    groups, grades = sample
    docs = np.array([[f"d{q}.{place}" for place in range(_CANDIDATES)] for q in range(len(groups))])
    rows = {"query_id": np.repeat([f"q{q}" for q in range(len(groups))], _CANDIDATES), "doc_id": docs.ravel()}
    run = pl.DataFrame({**rows, "score": np.tile(-np.arange(_CANDIDATES, dtype=float), len(groups))})
    qrels = pl.DataFrame({**rows, "relevance": grades.ravel()})
    labels = {doc: "mf"[g > 0] for doc, g in zip(docs.ravel().tolist(), groups.ravel().tolist(), strict=True)}
    found = evenrank.audit({"run": run}, labels=labels, poles="m,f", qrels=qrels, measures="ARaB@10")
    return says(found, ("lean_beyond",))


def loses(sample: Any) -> bool:
    """Whether a loss of more than 5% is shown where the difference itself, which is said before it, is not."""
    test = no_loss(*sample, 0.05)
    violated = test is not None and outcome(test, test.p_violated()) == "violated"
    return violated and not compare(sample[0] - sample[1], zeros="keep").shown


def _losses() -> Iterator[Cell]:
    for margin in MARGINS:
        least = queries_to_hold(margin * MEAN, margin * 0.25, 1 - margin) or 0
        rule = f"no loss of more than {margin:.0%}"
        said, command = functools.partial(holds, margin), functools.partial(gate_margin, margin)
        for n in sorted({*SIZES, *FORMER[margin]}):
            for jitter, size in JITTER.items():
                shapes = [
                    (f"the best queries ruined, {jitter} jitter", margin * MEAN / (1 - margin * (1 - MEAN)), 1, True),
                    (f"{margin:.0%} of queries ruined, {jitter} jitter", margin, 1, False),
                    (f"10% of queries lose the margin, {jitter} jitter", 0.10, 1, False),
                    (f"10% of queries lose twice the margin, {jitter} jitter", 0.10, 2, False),
                ]
                for family, share, times, best in shapes:
                    draw = functools.partial(ruined, n, margin, share, times, best, size)
                    quick = 200 if n <= 300 else 50
                    yield Cell(rule, family, n, draw, said, command, quick=quick)
            draw = functools.partial(less, n, margin, 0.1)
            yield Cell(rule, "every query loses the margin", n, draw, said, command, quick=200 if n <= 300 else 50)
        for n in sorted({FORMER[margin][1], least + 20}):
            draw = functools.partial(less, n, 0.0, 0.0)
            floor = 0.99 if n > least else None
            yield Cell(rule, "equal runs", n, draw, said, command, kind="power", floor=floor)
    for n in (20, 117, 215, 1000):
        draw = functools.partial(ruined, n, 0.05, 0.05, 1, False, 0.01)
        yield Cell(
            "--min-utility holds on other queries",
            "5% of queries ruined",
            n,
            draw,
            functools.partial(holds, 0.05),
            _kept,
        )
        draw = functools.partial(ranked, n)
        said = functools.partial(said_in_audit, ("no_loss",), margin=0.05)
        yield Cell("audit: no loss within 5%", "5% of queries ruined", n, draw, functools.partial(holds, 0.05), said)
        said = functools.partial(said_in_audit, ("loss",), margin=0.05)
        yield Cell("audit: loses more than 5%", "5% of queries ruined", n, draw, loses, said)


def less(n: int, margin: float, jitter: float, rng: np.random.Generator) -> Any:
    """Base values, and new ones that all lose the margin."""
    base = base_of(rng, n)
    return base * (1 - margin) + rng.normal(0, jitter, n), base


def _kept(sample: Any) -> bool:
    values, base = sample
    return kept(Bound.parse("nDCG@10 >= 95%", "keep"), 0.0, values, base, 1.0).verdict == "holds"


LIMIT, GREATEST = 0.05, 2.0


def leaning(values: Values, n: int, scale: float, mean: float, rng: np.random.Generator) -> Array:
    return values(rng, n) * scale + mean


def far(n: int, share: float, rng: np.random.Generator) -> Array:
    """A few queries lean as far as any document; the mean of all is the limit."""
    return np.where(rng.random(n) < share, LIMIT / share, rng.normal(0, 0.05, n))


def limit_says(says: str, values: Array) -> bool:
    return _said(limit_absolute([values], LIMIT, GREATEST)) == says


def _said(test: BoundTest) -> str:
    return outcome(test, test.p_violated())


def gate_limit(says: str, values: Array) -> bool:
    rule = {"measure": "ARaB@10", "at_most": LIMIT}
    return gated(rule, says, (values, values), greatest=GREATEST)


def _limits() -> Iterator[Cell]:
    shapes: dict[str, Values] = {"normal": normal, "lognormal": lognormal, "t₃": heavy, "like ARaB": arab}
    for n in (5, 10, 20, 50, 117, 215, 500, 1000):
        for family, values in shapes.items():
            draw = functools.partial(leaning, values, n, 0.3, LIMIT)
            turned = functools.partial(leaning, lambda r, m, v=values: -v(r, m), n, 0.3, LIMIT)
            for says, rule in (("holds", "|mean| at most .05"), ("violated", "|mean| above .05")):
                of = functools.partial(limit_says, says), functools.partial(gate_limit, says)
                yield Cell(rule, family, n, draw, *of)
                yield Cell(rule, f"{family}, other tail", n, turned, *of)
        for share in (0.025, 0.05, 0.1):
            draw = functools.partial(far, n, share)
            of = functools.partial(limit_says, "holds"), functools.partial(gate_limit, "holds")
            yield Cell("|mean| at most .05", f"{share:.1%} of queries lean far", n, draw, *of)
    for n in (30, 117, 215, 500):
        for share in (0.02, 0.03):
            draw = functools.partial(hot_topics, n, share)
            family = f"{share:.0%} of topics all of one group"
            yield Cell(KEPT_LIMIT, f"{family}, collection known", n, draw, hot_holds, hot_in_gate, quick=20)
            # Without the collection nothing holds, whatever the statistics are: only the command knows.
            without = functools.partial(hot_in_gate, collection=False)
            yield Cell(KEPT_LIMIT, f"{family}, collection not known", n, draw, without, draws=500, quick=10)
    draw = functools.partial(hot_topics, 1500, 0.0)
    yield Cell(KEPT_LIMIT, "no hot topics", 1500, draw, hot_holds, kind="power", floor=0.8)
    for n in (20, 117, 500, 1000):
        for family, lean in (("both lean", 0.2), ("neither leans", 0.0)):
            for says in ("holds", "violated"):
                draw = functools.partial(farther, n, lean)
                of = functools.partial(size_says, says), functools.partial(gate_size, says)
                yield Cell(f"|mean| no more than .05 above another's {says}", family, n, draw, *of)
        # The value moves by .05, whichever side it is on.
        for family, lean in (("both lean to the same side", 0.2), ("both lean to the other side", -0.2)):
            for says in ("holds", "violated"):
                draw = functools.partial(farther, n, lean)
                of = functools.partial(shift_says, says), functools.partial(gate_shift, says)
                yield Cell(f"a shift of no more than .05 to one side {says}", family, n, draw, *of)
    for n in (15, 20, 50, 117, 1000):
        for family, values in shapes.items():
            draw = functools.partial(lost_on_the_bound, values, n)
            yield Cell("a loss of more than 3%", family, n, draw, violated, gate_violated)


KEPT_LIMIT = "|mean| at most .05, hot topics"
_MOST = 1.7


def hot_topics(n: int, share: float, rng: np.random.Generator) -> Array:
    """Leans, a ``share`` of which are the farthest that documents can lean; without them the mean is within the limit.

    The mean is .001 above the limit, or 0 without such topics.
    """
    rest = (LIMIT + 0.001 - share * _MOST) / (1 - share) if share else 0.0
    return np.where(rng.random(n) < share, _MOST, rest + np.clip(rng.normal(0, 0.1, n), -1, 1))


def hot_holds(values: Array) -> bool:
    return _said(limit_absolute([values], LIMIT, _MOST)) == "holds"


def hot_in_gate(values: Array, collection: bool = True) -> bool:
    """The same through ``evenrank.audit`` and ``evenrank.gate``; ``collection``: scored as a whole."""
    table, run, _ = table_of(np.append(values, _MOST))
    # Of a table without its collection, how far another document can lean is not known.
    scores = table.table if collection else table
    found = evenrank.audit({"a": run.head(len(values))}, scores=scores, measures="ARaB@1")
    return evenrank.gate(found, budget={"rule": [{"measure": "ARaB@1", "at_most": LIMIT}]}).outcome == "holds"


def farther(n: int, lean: float, rng: np.random.Generator) -> Any:
    """Two runs, the first .05 farther from 0 than the second."""
    base = rng.laplace(lean, 0.3, n)
    return base + LIMIT + rng.laplace(0, 0.1, n), base


def size_says(says: str, sample: Any) -> bool:
    values, base = sample
    return _said(margin_absolute([values], [base], LIMIT, GREATEST)) == says


def gate_size(says: str, sample: Any) -> bool:
    rule = {"measure": "ARaB@10", "against": "baseline", "at_most": LIMIT}
    return gated(rule, says, sample, greatest=GREATEST)


def shift_says(says: str, sample: Any) -> bool:
    values, base = sample
    most = 2 * GREATEST
    within = LIMIT - (values - base)
    return _said(bound_mean([within], most - LIMIT, gain=most + LIMIT, zeros="drop", bound=LIMIT, sign=-1)) == says


def gate_shift(says: str, sample: Any) -> bool:
    rule = {"measure": "ARaB@10", "against": "baseline", "at_most": LIMIT, "signed": True}
    return gated(rule, says, sample, greatest=GREATEST)


def lost_on_the_bound(values: Values, n: int, rng: np.random.Generator) -> Any:
    base = base_of(rng, n)
    return base * 0.97 + 0.1 * values(rng, n), base


def violated(sample: Any) -> bool:
    test = no_loss(*sample, 0.03)
    return test is not None and _said(test) == "violated"


def gate_violated(sample: Any) -> bool:
    return gated({"measure": "nDCG@10", "against": "baseline", "at_least": "-3%"}, "violated", sample)


# --- figures of the whole run, seeds, labels --------------------------------------------------------------------------


def poles(n: int, first: float, rng: np.random.Generator) -> Any:
    """Values of two groups' queries with the same mean and unlike spreads, ``first`` of them of the first group."""
    many = max(2, round(first * n))
    parts = np.full((2, many + max(2, n - many)), np.nan)
    parts[0, :many] = rng.beta(2, 1, many)
    parts[1, many:] = rng.choice([0.0, 1.0], parts.shape[1] - many, p=[1 / 3, 2 / 3])
    return parts


def poles_differ(sample: Any) -> bool:
    return compare_combined(sample, (1.0, -1.0)).shown


def equal_sizes(n: int, lean: float, rng: np.random.Generator) -> Any:
    """Two runs that lean alike, to the same side or to both."""
    base = rng.laplace(0, 0.3, n)
    return base + rng.laplace(lean, 0.1, n), (base if n % 2 else -base) + rng.laplace(lean, 0.1, n)


def sizes_differ(sample: Any) -> bool:
    return compare_abs_means([sample[0]], [sample[1]], [1.0]).shown


def seeded(seeds: int, n: int, between: float, rng: np.random.Generator, *, centred: bool = False) -> list[Array]:
    """Differences of the same queries in several seeds, which differ by as much as ``between``.

    ``centred``: the mean of these seeds is 0, not that of others like them.
    """
    of_query = rng.exponential(0.2, n) - 0.2
    of_seed = rng.normal(0, between, seeds)
    of_seed -= of_seed.mean() * centred
    return [of_query + own + rng.normal(0, 0.1, n) for own in of_seed]


def collapsing(seeds: int, n: int, rng: np.random.Generator) -> list[Array]:
    """The same where a training loses .3 with the chance that may go unseen; others gain so much that it evens out."""
    chance = 1 - 0.05 ** (1 / seeds)
    of_query = rng.exponential(0.1, n) - 0.1
    collapsed = rng.random(seeds) < chance
    effects = np.where(collapsed, -0.3, 0.3 * chance / (1 - chance))
    return [of_query + own + rng.normal(0, 0.05, n) for own in effects]


def seeds_differ(sample: Sequence[Array]) -> bool:
    p = random_effects_test(sample, same_queries=True).p
    return p is not None and p < ALPHA


def seeded_sizes(seeds: int, n: int, lean: float, rng: np.random.Generator) -> Any:
    """Two rankers that lean alike, to either side, in several seeds of the same queries."""
    apart = 0.02 if seeds >= LEAST_SEEDS else 0.0
    base = rng.laplace(0, 0.3, (2, n)) + np.array([[lean], [-lean]])
    return [[one + own + rng.normal(0, 0.1, n) for own in rng.normal(0, apart, seeds)] for one in base]


def seeded_sizes_differ(sample: Any) -> bool:
    ends = size_test(*sample, same_queries=True).interval()
    return ends is not None and (ends[0] > 0 or ends[1] < 0)


def added_less(n: int, rng: np.random.Generator) -> Array:
    """What an order adds: in 5% of the queries it takes away .6, and .02 on average."""
    return np.where(rng.random(n) < 0.05, -0.6, (0.05 * 0.6 - 0.02) / 0.95)


def added_holds(values: Array) -> bool:
    return bound_mean([values + 0.02], 0.98).p_holds() <= ALPHA


def gate_added(values: Array) -> bool:
    rule = {"measure": "NFaiRR@10", "quantity": "vs_random_order", "at_least": -0.02}
    measure = "NFaiRR@10"
    figure = {"values": [0.0] * len(values), "greatest": 1.0, "vs_random_order": {"values": list(map(float, values))}}
    audit = {
        "queries": [f"q{q}" for q in range(len(values))],
        "measures": {measure: facts(parse_measure(measure))},
        "runs": {"new": {"measures": {measure: figure}, "lengths": [10] * len(values)}},
    }
    return evenrank.gate(audit, budget={"rule": [rule]}).outcome == "holds"


def exchanged(n: int, share: float, rng: np.random.Generator) -> Any:
    """Two runs of ten documents exchanged at random query by query, and labels of a ``share`` of the documents."""
    queries = np.repeat([f"q{q}" for q in range(n)], 10)
    runs = []
    swap = np.repeat(rng.random(n) < 0.5, 10)
    lists = [np.array([f"{q}-{d}" for q in range(n) for d in rng.permutation(14)[:10]]) for _ in range(2)]
    for own, other in (lists, lists[::-1]):
        ids = np.where(swap, other, own)
        runs.append(pl.DataFrame({"query_id": queries, "doc_id": ids, "score": np.tile(np.arange(10, 0, -1.0), n)}))
    documents = np.unique(np.concatenate(lists))
    known = documents[rng.random(len(documents)) < share]
    groups = np.where(rng.random(len(known)) < 0.8, "m", "f")
    return runs, pl.DataFrame({"doc_id": known, "group": groups})


def labels_differ(sample: Any) -> bool:
    """Whether an audit by labels of few documents says that two runs differ, or that one leans."""
    (first, second), labels = sample
    if labels["group"].n_unique() < 2:
        return False
    settings: dict[str, Any] = {"labels": labels, "baseline": "a", "measures": "ARaB@10", "poles": "m,f"}
    said = []
    for unknown in ("skip", "neutral", "bounds"):
        found = evenrank.audit({"a": first, "b": second}, unknown=unknown, **settings)
        figure = found["b", "ARaB@10"]
        assert figure.vs_baseline is not None
        said += [figure.vs_baseline.significant, figure.lean is not None and figure.lean.shown]
    return any(said)


def _others() -> Iterator[Cell]:
    for n in (20, 40, 117, 215, 1000):
        for share in (0.5, 0.8, 0.95):
            family = f"groups {share:.0%} to {1 - share:.0%}"
            yield Cell("two groups' means differ", family, n, functools.partial(poles, n, share), poles_differ)
        for lean in (0.0, 0.05, 0.3):
            for odd in (n, n + 1):
                side = "same side" if odd % 2 else "either side"
                draw = functools.partial(equal_sizes, odd, lean)
                yield Cell("sizes of two leans differ", f"lean {lean:g}, {side}", odd, draw, sizes_differ)
    for seeds in (2, 3, 5):
        for n in (20, 117):
            for between in (0.0, 0.02, 0.1):
                # Of fewer than five trainings the claim is of these alone.
                these = seeds < LEAST_SEEDS
                rule = "a difference over these trainings" if these else "a difference over seeds"
                draw = functools.partial(seeded, seeds, n, between, centred=these)
                yield Cell(rule, f"{seeds} seeds, {between:g} apart", n, draw, seeds_differ)
    for seeds in (5, 10):
        for n in (20, 117):
            draw = functools.partial(collapsing, seeds, n)
            unseen = None if (seeds, n) == (10, 117) else "few trainings: none of them, or all, may have failed"
            family = f"{seeds} seeds, as many collapse as may go unseen"
            yield Cell("a difference over seeds", family, n, draw, seeds_differ, known_to_fail=unseen)
    for seeds in (3, 5):
        for n in (20, 117):
            for lean in (0.0, 0.1, 0.5):
                draw = functools.partial(seeded_sizes, seeds, n, lean)
                family = f"{seeds} seeds, lean {lean:g}, either side"
                yield Cell("sizes differ over seeds", family, n, draw, seeded_sizes_differ, draws=400, quick=20)
    for n in (5, 20, 50, 117, 1000):
        draw = functools.partial(added_less, n)
        yield Cell("an order adds at least −.02", "5% of queries ruined", n, draw, added_holds, gate_added)
    for n in (20, 117):
        for share in (0.05, 0.3):
            draw = functools.partial(exchanged, n, share)
            family = f"runs exchanged, {share:.0%} labelled"
            yield Cell("labels of some documents", family, n, draw, labels_differ, draws=200, quick=10)


def _several() -> Iterator[Cell]:
    said = functools.partial(said_in_audit, ("ranked", "ranked_with_equals", "ranked_in_part"))
    for n in (20, 117):
        for runs in (3, 5):
            draw = functools.partial(exchangeable, n, runs)
            yield Cell("any two of several runs differ", f"{runs} runs alike", n, draw, two_apart, said)
        draw = functools.partial(shuffled, n)
        family = "6 groups, 40% to 4% of the candidates"
        yield Cell("a group's share differs from its candidates'", family, n, draw, group_apart, group_apart_in_audit)
        draw = functools.partial(two_orders, n)
        yield Cell("two runs' shares differ", family, n, draw, shares_apart, shares_apart_in_audit)
        draw = functools.partial(as_relevant, n)
        family = "6 groups, the largest more relevant"
        yield Cell("a group's share is beyond relevance", family, n, draw, beyond_relevance, beyond_in_audit)
        yield Cell("a lean is beyond relevance", "one group more relevant", n, draw, lean_beyond, draws=400, quick=20)


# --- the first line of an audit of several measures -------------------------------------------------------------------

_TEXTS = ("he and his father", "she and her mother", "a stone bridge", "the woman and the man", "an oak", "a street")
_DOCUMENTS = 60


def alike(n: int, rng: np.random.Generator) -> Any:
    """Of each query 20 of 60 documents, the first of which answers it, and scores [2, n, 20] of two runs.

    Both know as much of the answer, and lean to the first text in a query as far as the other does.
    """
    candidates = rng.permuted(np.tile(np.arange(_DOCUMENTS), (n, 1)), axis=1)[:, :_CANDIDATES]
    common = rng.normal(0, 1, candidates.shape) + rng.normal(0.5, 1, (n, 1)) * (candidates % len(_TEXTS) == 0)
    common[:, 0] += 1
    return candidates, common + rng.normal(0, 1, (2, *candidates.shape))


def opposed(n: int, rng: np.random.Generator) -> Any:
    """The same of two runs that lean as far, one to the first text and one to the second."""
    candidates, _ = alike(n, rng)
    text = candidates % len(_TEXTS)
    leans = np.array([0.5, -0.5])[:, None, None] * ((text == 0).astype(float) - (text == 1))
    return candidates, leans + rng.normal(0, 1, leans.shape)


def said_of_two(keys: Sequence[str], measures: str | None, labelled: bool, sample: Any) -> bool:
    """Whether ``evenrank.audit`` says one of these of the two runs, by words or by labels of six groups."""
    candidates, scores = sample
    queries, docs = [f"q{q}" for q in range(len(candidates))], np.char.add("d", candidates.astype(str))
    rows = {"query_id": np.repeat(queries, _CANDIDATES), "doc_id": docs.ravel()}
    runs = {name: pl.DataFrame({**rows, "score": of.ravel()}) for name, of in zip(("old", "new"), scores, strict=True)}
    qrels = pl.DataFrame({"query_id": queries, "doc_id": docs[:, 0], "relevance": 1})
    ends = np.cumsum(_SHARES) * _DOCUMENTS
    groups = {f"d{d}": f"group {np.searchsorted(ends, d + 0.5)}" for d in range(_DOCUMENTS)}
    texts = {f"d{d}": _TEXTS[d % len(_TEXTS)] for d in range(_DOCUMENTS)}
    of: dict[str, Any] = {"labels": groups} if labelled else {"collection": texts}
    # Queries are drawn one by one, though some have the same answer.
    found = evenrank.audit(runs, qrels=qrels, baseline="old", measures=measures, query_clusters="none", **of)
    return says(found, keys)


def _first_lines() -> Iterator[Cell]:
    better = ("better", "worse", "also_better", "also_worse")
    sides = [
        "leans_less_than",
        "leans_more_than",
        "more_neutral",
        "less_neutral",
        "nearer_target",
        "farther_from_target",
    ]
    apart = [*sides, "lean_differs", *_SHARES_APART]
    for rule, family, drawn, keys, measures, labelled in (
        ("first line: better or worse", "alike, 3 measures", alike, better, "nDCG@3 RR@10 P@5", False),
        ("first line: differ in bias", "alike, default measures of words", alike, apart, None, False),
        ("first line: differ in bias", "alike, default measures of 6 groups", alike, apart, None, True),
        ("first line: less or more biased", "opposite leans", opposed, sides, "ARaB@1 RaB@3 ARaB@10 RaB@10", False),
    ):
        for n in (20, 117):
            said = functools.partial(said_of_two, keys, measures, labelled)
            yield Cell(rule, family, n, functools.partial(drawn, n), said, draws=2000, quick=10)


CELLS: tuple[Cell, ...] = (*_means(), *_losses(), *_limits(), *_others(), *_several(), *_first_lines())
