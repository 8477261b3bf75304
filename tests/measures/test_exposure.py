"""Share, Exposure, ExposureGap, AWRF, NDKL: hand-worked, against slow versions, over ties, labels."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slow
import slow_exposure as plain
from evenrank.files import Run
from evenrank.measures import Evaluation, as_target, parse_measure, resolve
from evenrank.measures.exposure import TieOrders, group_columns

seeds = st.integers(0, 10_000)
cutoffs = st.sampled_from([1, 2, 4, 10])
discounts = st.sampled_from(["", "discount='trec'", "discount='rbp'", "discount='rbp',gamma=0.5"])
SECOND = 1 / math.log2(3)


def close(a: Any, b: Any, atol: float = 1e-9) -> None:
    np.testing.assert_allclose(a, b, rtol=0, atol=atol, equal_nan=True)


def evaluation(case: plain.Case, **more: Any) -> Evaluation:
    return Evaluation(case.run, case.table, missing="neutral", **more)


def one_list(docs: str, **more: Any) -> Evaluation:
    """A list of documents f, m and n (no group), written as their groups, with falling scores; x is unknown."""
    known = {"f": (1, 0), "m": (0, 1), "n": (0, 0)}
    names = [f"{group}{number}" for number, group in enumerate(docs)]
    table = plain.labels({name: known[name[0]] for name in names if name[0] in known}, "fm")
    scores = [float(-number) for number in range(len(docs))]
    run = pl.DataFrame({"query_id": ["q"] * len(docs), "doc_id": names, "score": scores})
    return Evaluation(Run.from_table(run), table, missing="neutral", **more)


def written(name: str, k: int, *parameters: str) -> Any:
    inside = ",".join(filter(None, parameters))
    return parse_measure(f"{name}({inside})@{k}" if inside else f"{name}@{k}")


def arguments(parameters: str) -> dict[str, Any]:
    """The keywords of the slow versions for parameters as they are written."""
    gamma = {"gamma": 0.5} if "gamma" in parameters else {}
    return {"kind": parameters.split("'")[1], **gamma} if parameters else {}


# m, f, m: e_m = 1 + 1/2, e_f = 1/log2 3. AWRF: shares .7039, .2961, middle .6020, .3980.
P = 1.5 / (1.5 + SECOND)
JSD = (
    P * math.log(P / (P / 2 + 0.25))
    + (1 - P) * math.log((1 - P) / ((1 - P) / 2 + 0.25))
    + 0.5 * math.log(0.5 / (P / 2 + 0.25))
    + 0.5 * math.log(0.5 / ((1 - P) / 2 + 0.25))
) / 2


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("Share(group='f')@3", 1 / 3),
        ("Share(group='m')@2", 1 / 2),
        ("Share(group='m')@10", 2 / 3),
        ("Exposure(group='f')@3", SECOND / (1.5 + SECOND)),
        ("Exposure(group='m')@1", 1.0),
        ("Exposure(group='f',discount='trec')@3", 1 / (2 + SECOND)),
        ("Exposure(group='f',discount='rbp')@3", 0.8 / 2.44),
        ("ExposureGap@3", (1.5 - SECOND) / (1.5 + SECOND)),
        ("ExposureGap(poles='f,m')@3", (SECOND - 1.5) / (1.5 + SECOND)),
        ("ExposureGap(poles='f,rest')@3", (SECOND - 1.5) / (1.5 + SECOND)),
        ("AWRF@3", 1 - JSD),
        ("AWRF(base=2)@3", 1 - JSD / math.log(2)),
        # ln 2 at rank 1, 0 at rank 2, thirds at rank 3.
        ("NDKL@3", (math.log(2) + 0.5 * (math.log(4 / 3) * 2 / 3 + math.log(2 / 3) / 3)) / (1.5 + SECOND)),
    ],
)
def test_hand_worked(measure: str, value: float) -> None:
    close(one_list("mfm").values(parse_measure(measure)), [value])


@given(seeds, cutoffs, discounts)
def test_values_equal_the_slow_versions(seed: int, k: int, parameters: str) -> None:
    case = plain.Case(seed, levels=100)
    target = {str(query): np.random.default_rng(seed + query).dirichlet([1, 1, 1]).tolist() for query in range(4)}
    given = as_target({q: dict(zip("abc", of, strict=True)) for q, of in target.items()}, "abc")
    found, how = evaluation(case, target=given), arguments(parameters)
    names = ["Share(group='b')", "Exposure(group='b',{})", "ExposureGap(poles='a,c',{})", "AWRF({})", "NDKL({})"]
    names += ["ExposureGap(poles='b,rest',{})"]
    texts = [f"{name.format(parameters)}@{k}".replace(",)", ")").replace("()", "") for name in names]
    values = [found.values(parse_measure(text)) for text in texts]
    for i, (query, ranking) in enumerate(slow.rankings(case.run).items()):
        docs = case.of([doc for doc, _ in ranking])
        exposure = plain.exposures(docs, k, **how)
        shares = plain.normalised(exposure)
        expected = [plain.share(docs, k, 1), shares[1], shares[0] - shares[2], plain.awrf(exposure, target[query])]
        expected += [plain.ndkl(docs, k, target[query], **how), shares[1] - (shares[0] + shares[2]) / 2]
        close([value[i] for value in values], expected)


@given(seeds, cutoffs, discounts)
def test_ties_and_random_orders_equal_all_orders(seed: int, k: int, parameters: str) -> None:
    case = plain.Case(seed, longest=5, levels=2)
    found, how = evaluation(case), arguments(parameters)
    slow.check_over_orders(found, f"Share(group='a')@{k}", lambda _, docs: plain.share(case.of(docs), k, 0))
    shares_of = {
        written("Exposure", k, "group='a'", parameters): lambda e: e[0],
        written("ExposureGap", k, "poles='c,rest'", parameters): lambda e: e[2] - (e[0] + e[1]) / 2,
    }
    bounds = {measure: resolve(measure).bounds(found) for measure in shares_of}
    awrf = resolve(written("AWRF", k, parameters)).expected(found)
    for i, (_, ranking) in enumerate(slow.rankings(case.run).items()):
        each = [plain.awrf(plain.exposures(case.of(docs), k, **how), [1 / 3] * 3) for docs in slow.orders(ranking)]
        close(awrf[i], plain.mean_of_defined(each), 0.06)
        every = [plain.normalised(plain.exposures(case.of(docs), k, **how)) for docs in slow.orders(ranking)]
        for measure, of in shares_of.items():
            defined = [of(shares) for shares in every if not math.isnan(shares[0])] or [math.nan]
            close([bound[i] for bound in bounds[measure]], [min(defined), max(defined)])


@given(seeds, cutoffs)
def test_a_ratio_of_documents_with_equal_sums_is_exact_over_ties(seed: int, k: int) -> None:
    case = plain.Case(seed, longest=5, levels=2, whole=True)
    text = f"Exposure(group='a')@{k}"
    slow.check_over_orders(
        evaluation(case), text, lambda _, docs: plain.normalised(plain.exposures(case.of(docs), k))[0]
    )


def test_orders_are_drawn_evenly() -> None:
    docs, k = "abcdefgh", 3
    table = plain.labels({d: [float(d == other) for other in docs] for d in docs}, docs)
    run = pl.DataFrame({"query_id": ["q"] * 8, "doc_id": [*docs], "score": [9.0, *[5.0] * 5, 1.0, 1.0]})
    found = Evaluation(Run.from_table(run), table)
    columns, rng = group_columns(found), np.random.default_rng(0)
    orders = TieOrders(found.scored_lists, columns, k)
    drawn = [tuple(orders.drawn(rng)[:, 0].argmax(axis=0)) for _ in range(3000)]
    assert {first for first, _, _ in drawn} == {found.document[0]}
    pairs = [(second, third) for _, second, third in drawn]
    counts = np.array([pairs.count(pair) for pair in set(pairs)])
    assert len(counts) == 20
    assert counts.min() > 100
    assert counts.max() < 200


def test_what_has_no_group_is_undefined_not_zero() -> None:
    # A first document without a group has no shares: those of the second rank count alone.
    close(one_list("nm").values(parse_measure("NDKL@2")), [math.log(2)])
    # A target without one of the groups that are there: infinitely far.
    away = one_list("mf", target=as_target({"m": 1.0}, "fm"))
    close(away.values(parse_measure("NDKL@2")), [math.nan])
    assert away.values(parse_measure("AWRF@2"))[0] < 1
    # The floor of AWRF; a deep cutoff is no long array.
    floor = one_list("mm", target=as_target({"f": 1.0}, "fm"))
    close(floor.values(parse_measure("AWRF@2000000000")), [1 - math.log(2)])


@given(seeds, cutoffs, discounts)
def test_label_bounds_are_those_over_all_labels(seed: int, k: int, parameters: str) -> None:
    case = plain.Case(seed, longest=4)
    found = evaluation(case)
    forms = {
        written("Share", k, "group='b'"): lambda docs: plain.share(docs, k, 1),
        written("Exposure", k, "group='b'", parameters): lambda docs: shares(docs)[1],
        written("ExposureGap", k, "poles='a,c'", parameters): lambda docs: shares(docs)[0] - shares(docs)[2],
        written("ExposureGap", k, "poles='a,rest'", parameters): lambda docs: (
            shares(docs)[0] - (shares(docs)[1] + shares(docs)[2]) / 2
        ),
    }

    def shares(docs: plain.Weights) -> list[float]:
        return plain.normalised(plain.exposures(docs, k, **arguments(parameters)))

    for measure, value in forms.items():
        bounds = resolve(measure).label_bounds(found)
        assert bounds is not None
        for i, (_, ranking) in enumerate(slow.rankings(case.run).items()):
            docs = [doc for doc, _ in ranking]
            unknown = [doc for doc in docs if doc not in case.weights]
            values = []
            for each in itertools.product([(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)], repeat=len(unknown)):
                labels = {**case.weights, **dict(zip(unknown, each, strict=True))}
                values.append(value([labels[doc] for doc in docs]))
            defined = [one for one in values if not math.isnan(one)] or [math.nan]
            close([bounds[0][i], bounds[1][i]], [min(defined), max(defined)])
    for text in ("AWRF(target='candidates')@3", "NDKL@3", "nDCG@3", "DeltaAPRF"):
        assert resolve(parse_measure(text)).label_bounds(found) is None


def test_a_ratio_is_averaged_over_orders_where_sums_differ() -> None:
    # f or half of m at the first rank: 1 or 0, though f has 2/3 of the expected exposure. In r, exactly 1 or 0.
    table = plain.labels({"f": (1, 0), "half": (0, 0.5), "m": (0, 1)}, "fm")
    run = pl.DataFrame({"query_id": [*"qqrr"], "doc_id": ["f", "half", "f", "m"], "score": [1.0] * 4})
    found = Evaluation(Run.from_table(run), table)
    for values in (lambda m: resolve(m).expected(found), lambda m: resolve(m).expected(found, random=True)):
        drawn, exact = values(parse_measure("Exposure(group='f')@1"))
        assert 0.4 < drawn < 0.6
        assert exact == 0.5
