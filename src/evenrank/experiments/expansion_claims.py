"""What the expansion paper claims, and whether the data show it."""

from __future__ import annotations

import math

import numpy as np

from evenrank.io.types import Array
from evenrank.io.wording import counted
from evenrank.measures.statistics import MARGIN

from .expansion_critique import KMEANS, SVM, Critique
from .expansion_tables import (
    BIASED,
    DEBIASED,
    FUSED,
    FUSED_BIASED,
    FUSED_DEBIASED,
    MEASURES,
    REGULAR,
    SUBSTANTIAL,
    Measured,
    OneSeed,
    Part,
    cell,
    differences,
    table1,
    weights,
)
from .paper_claims import UNDECIDED, Claim, Verdict, above, below, every, within
from .paper_tables import Value
from .published import published

LEAST_RECOVERED = 0.75
"""Halfway between chance and certainty."""
MOST_CHANGED, MOST_SUBSTANTIAL = 0.5, 0.1
LAMBDA = (0.82, 0.98)
"""The published mean ± two of its deviations."""
MOST_REGULAR = 0.995
"""The largest mean λ with which the fused ranking says something of expansion."""


def claims(found: Measured) -> tuple[Claim, ...]:
    """The claims of the paper for one collection with one kind of vectors, and the lines it has to reach."""
    made = [_equal_distances(found), _signs(found), *_changes(found), *_effectiveness(found), _lambdas(found)]
    critique = found.seeds[0].critique
    if critique is not None:
        made += _critique(found, critique)
    return tuple(made)


def _claim(found: Measured, key: str, verdict: Verdict, detail: str) -> Claim:
    return Claim.of("expansion", key, verdict, f"{found.collection}, {found.vectors}: {detail}")


def _equal_distances(found: Measured) -> Claim:
    checks = [seed.check for seed in found.seeds]
    known = all(check.pairs and check.words for check in checks)
    largest = max(checks, key=lambda check: max(check.dot, check.distance))
    detail = (
        f"largest |w·a − w·b| {largest.dot:.1e}, |‖w − a‖ − ‖w − b‖| {largest.distance:.1e}, {largest.words:,} neutral"
        f" words, {largest.pairs} pairs, {counted(len(checks), 'seed')}"
    )
    return _claim(found, "equal_distances", Verdict(all(one.holds() for one in checks)) if known else UNDECIDED, detail)


def _signs(found: Measured) -> Claim:
    """Whether the rows of Table 2 sum to the difference of two rows of Table 1, here and as published."""
    seed = found.seeds[0]
    listed, parts, right = differences(seed), [], True
    lines = {line["model"]: line for line in published("expansion_table1")}
    shown = {row.labels[0]: row.published for row in table1(found).rows}
    for key, name in MEASURES.items():
        first, second = (seed.of(one, name, "changed") for one in (BIASED, DEBIASED))
        column = f"{key}_changed"
        printed = float(lines[BIASED][column]) - float(lines[DEBIASED][column])
        right &= abs(shown[BIASED][column] - shown[DEBIASED][column] - printed) < 1e-9
        if listed.height and seed.changed.any():
            mean, expected = float(listed[key].mean()), float(np.nanmean(first) - np.nanmean(second))  # type: ignore[arg-type]
            right &= abs(mean - expected) < 1e-9
            parts.append(f"{name}: mean of Table 2 {mean:+.4f}, biased − debiased of Table 1 {expected:+.4f}")
    detail = "; ".join(parts) + f"; {listed.height} changed queries of the first seed"
    return _claim(found, "signs", Verdict(right) if listed.height else UNDECIDED, detail)


# --- how much changes ------------------------------------------------------------------------------------------------


def _changes(found: Measured) -> list[Claim]:
    changed = found.value(lambda seed: seed.changed.astype(np.float64))
    large = {key: found.value(lambda seed, k=key: _large(seed, k)) for key in ("p30", "map")}  # type: ignore[misc]
    of_changed = {key: found.value(lambda seed, k=key: _of_changed(seed, k)) for key in large}  # type: ignore[misc]
    return [
        _claim(found, "few_change", within(changed, 0.0, MOST_CHANGED), f"{_share(changed)} of {_n(changed)}"),
        _claim(
            found,
            "few_substantial",
            every(*(below(one, MOST_SUBSTANTIAL) for one in large.values())),
            f"by P@30 {_share(large['p30'])}, by AP {_share(large['map'])} of {_n(large['map'])}",
        ),
        _claim(
            found,
            "substantial_of_changed",
            every(*(within(one, 0.0, 0.5) for one in of_changed.values())),
            f"by P@30 {_share(of_changed['p30'])}, by AP {_share(of_changed['map'])} of {_n(of_changed['map'])}",
        ),
    ]


def _large(seed: OneSeed, key: str) -> Array:
    """1 for a query that changed by more than .01, else 0."""
    name = MEASURES[key]
    large: Array = np.abs(seed.of(BIASED, name) - seed.of(DEBIASED, name)) > SUBSTANTIAL + 1e-9
    return large.astype(np.float64)


def _of_changed(seed: OneSeed, key: str) -> Array:
    return np.where(seed.changed, _large(seed, key), np.nan)


def _share(value: Value) -> str:
    return "undefined" if value.mean is None else value.signed(3).replace("+", "")


def _n(value: Value) -> str:
    return f"{value.n:,} {value.unit}"


# --- what it does to rankings ----------------------------------------------------------------------------------------


def _difference(found: Measured, one: str, other: str, part: Part = "full", level: float = 0.95) -> Value:
    mixed = found.difference(one, other, "AP", part)
    return Value(mixed.mean, mixed.queries, "queries", mixed.interval(level))


def _floor(found: Measured) -> Verdict:
    """That both kinds of ranking work: equal ones that find nothing are no evidence."""
    return every(*(above(_difference(found, name, "random")) for name in (REGULAR, BIASED)))


def _equivalent(found: Measured, one: str, other: str, base: str) -> tuple[Verdict, str]:
    """Whether two rankings are within 5% of the MAP of ``base``, where both kinds beat a random order."""
    mean = cell(found, base, "AP").mean
    if mean is None:
        return UNDECIDED, "no query"
    margin = MARGIN * mean
    difference = _difference(found, one, other, level=0.90)
    detail = f"ΔMAP {_difference(found, one, other).signed()}, margin ±{margin:.4f}, {_n(difference)}"
    return every(_floor(found), within(difference, -margin, margin)), detail


def _fused(found: Measured, verdict: Verdict) -> Verdict:
    """A verdict on fused rankings: where tuning leaves expansion without a weight, they are the regular ranking."""
    objective = next(iter(found.seeds[0].tuned))[1]
    means = [weights(found, name, objective)[0].mean for name in FUSED]
    return verdict if all(mean is not None and mean < MOST_REGULAR for mean in means) else UNDECIDED


def _effectiveness(found: Measured) -> list[Claim]:
    alone = {name: _difference(found, REGULAR, name) for name in (BIASED, DEBIASED)}
    gains = {name: _equivalent(found, name, REGULAR, REGULAR) for name in FUSED}
    changed = {name: _difference(found, name, REGULAR, "changed") for name in FUSED}
    better = _difference(found, BIASED, DEBIASED, "changed")
    fused = _difference(found, FUSED_BIASED, FUSED_DEBIASED, "changed")
    equal, detail = _equivalent(found, FUSED_BIASED, FUSED_DEBIASED, REGULAR)
    names = ("biased", "debiased")
    return [
        _claim(
            found,
            "alone_is_worse",
            every(*(above(one) for one in alone.values()), _floor(found)),
            "regular − expansion, ΔMAP "
            + ", ".join(f"{name} {one.signed()}" for name, one in zip(names, alone.values(), strict=True))
            + f", {_n(alone[BIASED])}",
        ),
        _claim(found, "alone_is_equal", *_equivalent(found, BIASED, DEBIASED, BIASED)),
        _claim(
            found,
            "alone_changed",
            above(better),
            f"biased − debiased on changed queries, ΔMAP {better.signed()}, {_n(better)}",
        ),
        _claim(found, "fused_is_equal", _fused(found, equal), detail),
        _claim(
            found,
            "fused_changed",
            _fused(found, above(fused)),
            f"biased − debiased on changed queries, ΔMAP {fused.signed()}, {_n(fused)}",
        ),
        _claim(
            found,
            "no_gain",
            _fused(found, every(*(verdict for verdict, _ in gains.values()))),
            "; ".join(f"{name}: {detail}" for name, (_, detail) in zip(names, gains.values(), strict=True)),
        ),
        _claim(
            found,
            "gain_on_changed",
            _fused(found, every(*(above(one) for one in changed.values()))),
            "fused − regular on changed queries, ΔMAP "
            + ", ".join(f"{name} {one.signed()}" for name, one in zip(names, changed.values(), strict=True))
            + f", {_n(changed[FUSED_BIASED])}",
        ),
    ]


def _lambdas(found: Measured) -> Claim:
    """Of the objective of Table 1."""
    objective = next(iter(found.seeds[0].tuned))[1]
    of = {name: weights(found, name, objective) for name in FUSED}
    detail = "; ".join(
        f"{name} {_share(mean)}, deviation over folds {_share(deviation).split(' ')[0]}, {_n(mean)}"
        for name, (mean, deviation) in zip(("biased", "debiased"), of.values(), strict=True)
    )
    return _claim(found, "lambda", every(*(within(mean, *LAMBDA) for mean, _ in of.values())), detail)


# --- what debiasing leaves -------------------------------------------------------------------------------------------


def _critique(found: Measured, critique: Critique) -> list[Claim]:
    after = critique.recovered[1]
    made = []
    if after is not None:
        n = 2 * critique.side
        shares = {"k-means": (after.kmeans, n), "RBF SVM": (after.rbf, after.tested)}
        values = {name: _proportion(*share) for name, share in shares.items()}
        detail = ", ".join(f"{name} {_share(one)}" for name, one in values.items())
        made.append(
            _claim(
                found,
                "bias_remains",
                every(*(above(one, LEAST_RECOVERED) for one in values.values())),
                f"after debiasing {detail}; {n} words, SVMs tested on {after.tested} (published {KMEANS}, {SVM})",
            )
        )
    pairs = {"cosine": "answer_cosine", "robust": "not_robust"}
    for figure, key in pairs.items():
        appropriate, biased = (getattr(one[0], figure) for one in (critique.appropriate, critique.biased))
        difference = _two_samples(appropriate, biased)
        detail = f"appropriate − biased {difference.signed(3)}, {len(appropriate)} and {len(biased)} analogies"
        made.append(_claim(found, key, above(difference), detail))
    return made


def _proportion(share: float, n: int) -> Value:
    """A share of n words with Wilson's interval."""
    z = 1.959964
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Value(share, n, "words", (float(middle - half), float(middle + half)))


def _two_samples(first: Array, second: Array) -> Value:
    """The difference of two means with Welch's interval."""
    n = min(len(first), len(second))
    if n < 2:
        return Value(None, n, "analogies")
    from scipy import stats

    difference = float(first.mean() - second.mean())
    if not (first.std() or second.std()):
        return Value(difference, n, "analogies", (difference, difference))
    # Not scipy's test, which warns where one sample is constant.
    parts = [(float(one.var(ddof=1)) / len(one), len(one) - 1) for one in (first, second)]
    total = sum(part for part, _ in parts)
    freedom = total**2 / sum(part**2 / free for part, free in parts)
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(total)
    return Value(difference, n, "analogies", (difference - half, difference + half))
