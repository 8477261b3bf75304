"""Bounds over unknown labels: the smallest and the largest figure over every way to label the documents."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import evenrank
import slow
import slow_exposure
from slow_exposure import Weights, mean_of_defined
from slow_groups import slow_neutrality
from small_audits import run

K = 3
Lists = list[list[str]]
Labels = dict[str, Sequence[float]]


def signed(docs: Weights, *, rest: bool = False) -> list[float]:
    """The first group's weight minus the second's, or minus the mean of the others."""
    return [of[0] - (sum(of[1:]) / (len(of) - 1) if rest else of[1]) for of in docs]


def present(docs: Weights) -> Weights:
    return [[float(weight > 0) for weight in of] for of in docs]


def neutralities(docs: Weights) -> list[float]:
    return [slow_neutrality(list(of), (1 / len(of),) * len(of), 0) for of in docs]


def exposure(docs: Weights, group: int) -> float:
    return slow_exposure.normalised(slow_exposure.exposures(docs, K))[group]


def gap(docs: Weights) -> float:
    return exposure(docs, 0) - exposure(docs, 1)


MEASURES: dict[str, Callable[[Weights], float]] = {
    f"RaB@{K}": lambda docs: slow.rab(signed(docs), K),
    f"ARaB@{K}": lambda docs: slow.arab(signed(docs), K),
    f"ARaB(magnitude='bool')@{K}": lambda docs: slow.arab(signed(present(docs)), K),
    f"ARaB(poles='m,rest')@{K}": lambda docs: slow.arab(signed(docs, rest=True), K),
    f"ARaB(magnitude='bool',poles='m,rest')@{K}": lambda docs: slow.arab(signed(present(docs), rest=True), K),
    f"FaiRR@{K}": lambda docs: slow.fairr(neutralities(docs), K),
    f"Share(group='m')@{K}": lambda docs: slow_exposure.share(docs, K, 0),
    f"Share(group='f')@{K}": lambda docs: slow_exposure.share(docs, K, 1),
    f"Exposure(group='f')@{K}": lambda docs: exposure(docs, 1),
    f"ExposureGap@{K}": gap,
}
ABSOLUTE = f"|ARaB|@{K}"


def figure(name: str, lists: Lists, labels: Labels) -> float:
    return mean_of_defined([MEASURES[name]([labels[doc] for doc in docs]) for docs in lists])


def every_way(unknown: list[str], groups: int) -> list[Labels]:
    """A document of one group, of none, of all but the first."""
    whole = [tuple(float(i == g) for i in range(groups)) for g in range(groups)]
    ways = [*whole, (0.0,) * groups, (0.0, *[1 / (groups - 1)] * (groups - 1))]
    return [dict(zip(unknown, chosen, strict=True)) for chosen in itertools.product(ways, repeat=len(unknown))]


def audited(
    lists: Lists, labels: Labels, groups: str, measures: Sequence[str], **options: object
) -> evenrank.AuditResult:
    given_ = {doc: dict(zip(groups, of, strict=True)) for doc, of in labels.items()}
    runs = {"r": run({str(i): docs for i, docs in enumerate(lists)})}
    return evenrank.audit(runs, labels=given_, poles="m,f", measures=list(measures), **options)


def small(seed: int) -> tuple[Lists, Labels, list[str], str]:
    """Lists, labels of the known documents, the unknown ones, and the groups."""
    draw = random.Random(seed)
    groups = draw.choice(["mf", "mfx"])
    known = [f"d{i}" for i in range(5)]
    unknown = [f"u{i}" for i in range(draw.randint(1, 3))]
    labels: Labels = {}
    for doc in known:
        whole = [float(g == draw.randrange(len(groups) + 1)) for g in range(len(groups))]
        parts = [draw.random() / len(groups) for _ in groups]
        labels[doc] = draw.choice([parts, whole if sum(whole) <= 1 else parts, [0.0] * len(groups)])
    lists = [draw.sample([*known, *unknown], draw.randint(1, 5)) for _ in range(draw.randint(1, 4))]
    return [[known[0]], *lists], labels, unknown, groups


@settings(max_examples=25)
@given(st.integers(0, 10**6))
@example(1)
def test_bounds_are_the_extremes_over_every_way_to_label(seed: int) -> None:
    lists, labels, unknown, groups = small(seed)
    found = audited(lists, labels, groups, [*MEASURES, ABSOLUTE], unknown="bounds")["r"]
    ways = [{**labels, **way} for way in every_way(unknown, len(groups))]
    for name in MEASURES:
        values = [value for way in ways if not math.isnan(value := figure(name, lists, way))]
        bounds = found[name].bounds
        if bounds is None:
            # No document has a group, whatever the unknown ones are.
            assert not values
            continue
        assert bounds == pytest.approx((min(values), max(values)), abs=1e-9)
    looked = [doc in unknown for docs in lists for doc in docs[:K]]
    assert found[f"ARaB@{K}"].known == (looked.count(False), len(looked))
    # A label can be of both groups in any part, so a figure of either sign can be 0.
    signed_ = found[f"ARaB@{K}"].bounds
    values = [abs(figure(f"ARaB@{K}", lists, way)) for way in ways]
    low = 0.0 if signed_[0] <= 0 <= signed_[1] else min(values)
    assert found[ABSOLUTE].bounds == pytest.approx((low, max(values)), abs=1e-9)


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.data())
def test_no_label_leads_out_of_the_bounds(seed: int, data: st.DataObject) -> None:
    lists, labels, unknown, groups = small(seed)
    bounds = audited(lists, labels, groups, [*MEASURES, ABSOLUTE], unknown="bounds")["r"]
    parts = st.lists(st.floats(0, 1), min_size=len(groups), max_size=len(groups))
    soft = {doc: [p / max(1, sum(of)) for p in of] for doc in unknown for of in [data.draw(parts)]}
    full = audited(lists, {**labels, **soft}, groups, [*MEASURES, ABSOLUTE])["r"]
    for name, one in full.measures.items():
        ends = bounds[name].bounds
        assert one.bounds in (None, (pytest.approx(one.mean), pytest.approx(one.mean)))
        if one.mean is not None and ends is not None:
            assert ends[0] - 1e-9 <= one.mean <= ends[1] + 1e-9


def test_bounds_by_hand() -> None:
    lists = [["a", "u"], ["u", "b"]]
    labels: Labels = {"a": (1, 0), "b": (0, 1)}
    found = audited(lists, labels, "mf", ["RaB@2", "Share(group='f')@1", "ExposureGap@2", "|ARaB|@2"], unknown="bounds")
    figures = found["r"].measures
    # All u of f: (1 − 1)/2 and (−1 − 1)/2; all of m: 1 and 0.
    assert figures["RaB@2"].bounds == (-0.5, 0.5)
    assert figures["Share(group='f')@1"].bounds == (0.0, 0.5)
    one = (1 - 1 / math.log2(3)) / (1 + 1 / math.log2(3))
    assert figures["ExposureGap@2"].bounds == pytest.approx(((one - 1) / 2, (1 + one) / 2))
    assert figures["|ARaB|@2"].bounds == pytest.approx((0.0, 0.75))
    for name, figure_ in figures.items():
        assert (figure_.mean, figure_.ci95, figure_.undefined, figure_.tie_range) == (None, None, 0, None)
        # Of the first rank, a label is known in one query.
        assert figure_.n == (1 if name.endswith("@1") else 2)
    said = " ".join(found.table(full=True, width=120).split())
    assert "r has RaB@2 between −.500 and .500, whatever the unknown labels are." in said
    # 0 is reached, by a label that is of both groups in part.
    assert figure("ARaB@3", lists, {**labels, "u": (0.25, 0.75)}) == 0


def test_where_all_is_known_figures_are_themselves_and_bounds_too() -> None:
    labels: Labels = {"a": (1, 0), "b": (0, 1), "c": (0, 0)}
    names = ["NFaiRR@2", "ARaB@2", "AbsARaB@2", "NDKL@2", "|ARaB|@2"]
    found = audited([["a", "b"], ["b", "c"]], labels, "mf", names)
    assert all(figure.mean is not None for figure in found["r"].measures.values())
    one = found["r", "ARaB@2"]
    assert one.bounds == (one.mean, one.mean)
    assert not any(warning.startswith("Documents without") for warning in found.warnings)
