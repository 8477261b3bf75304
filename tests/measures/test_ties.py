"""What ties do to a figure is said of the queries of its mean, and holds that mean: every bias measure there is."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import slow
import slow_exposure
from evenrank.files import Run
from evenrank.groups import GroupTable
from evenrank.measures import Evaluation, parse_measure
from evenrank.measures.registry import bias_measures, resolve, spelled

# An absolute figure's range begins at 0 if the signed one can have either sign.
_NOT_ATTAINED = ("|ARaB|", "|DeltaAPRF|")

_COLUMNS = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}


def names(cutoff: int) -> list[str]:
    """Every measure as it is written, with a cutoff and a group where it takes one."""
    written = []
    for measure in bias_measures():
        group = "(group='m')" if "group" in measure.SUPPORTED_PARAMS else ""
        written.append(f"{spelled(measure)}{group}" + f"@{cutoff}" * ("cutoff" in measure.SUPPORTED_PARAMS))
    return written


def evaluated(run: Run, case: Evaluation) -> Evaluation:
    found = Evaluation(run, case.group_table, case.qrels)
    found.background = case.background or found.as_background("run")
    return found


def case(seed: int, queries: int) -> Evaluation:
    table, groups, qrels = slow.random_case(seed, queries=queries, longest=4, levels=2)
    return evaluated(Run.from_table(table), Evaluation(Run.from_table(table), groups, qrels))


def in_order(query: str, docs: slow.Docs) -> Run:
    return Run.from_table(
        pl.DataFrame([(query, doc, -place) for place, doc in enumerate(docs)], _COLUMNS, orient="row")
    )


@pytest.mark.parametrize("cutoff", [1, 3])
def test_ranges_hold_the_mean_and_are_of_its_queries(cutoff: int) -> None:
    undefined = 0
    for seed in range(8):
        found = case(seed, queries=3)
        for name in names(cutoff):
            how = resolve(parse_measure(name))
            figure, ties, values = how.figure(how.parts(found)), how.ties(found), how.values(found)
            undefined += int(np.isnan(values).sum())
            if ties.expected is not None and not how.whole_run:
                np.testing.assert_array_equal(np.isnan(ties.expected), np.isnan(values), err_msg=f"{name}, {seed}")
            assert (ties.range is None) == np.isnan(figure), (name, seed)
            if ties.range is not None:
                assert ties.range[0] <= figure <= ties.range[1], (name, seed)
                assert ties.range[0] <= ties.mean <= ties.range[1], (name, seed)
    assert undefined > 20


@pytest.mark.parametrize("cutoff", [1, 3])
def test_orders_attain_the_ends_of_ranges(cutoff: int) -> None:
    for seed in range(5):
        found = case(seed, queries=1)
        ((query, ranking),) = slow.rankings(found.run).items()
        orders = [evaluated(in_order(query, docs), found) for docs in slow.orders(ranking)]
        for name in names(cutoff):
            how = resolve(parse_measure(name))
            ties = how.ties(found)
            if ties.range is None or str(how.NAME) in _NOT_ATTAINED:
                continue
            every = np.array([how.figure(how.parts(one)) for one in orders])
            ends = np.nanmin(every), np.nanmax(every)
            for end in ties.range:
                assert np.nanmin(np.abs(every - end)) < 1e-9, (name, seed)
            drawn = str(how.NAME) in ("AWRF", "NDKL")
            if not drawn and name != f"AbsARaB@{cutoff}":
                np.testing.assert_allclose(ties.range, ends, atol=1e-9, err_msg=f"{name}, {seed}")
            assert ties.range[1] == pytest.approx(ends[1], abs=1e-9) or drawn, (name, seed)


def test_a_range_of_absolute_values_ends_where_an_order_does() -> None:
    # ARaB@1 is ln 2 or −ln 3: nothing is nearer to 0 than ln 2.
    run = Run.from_table(pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.0, 1.0]}))
    groups = pl.DataFrame({"doc_id": ["a", "b"], "count_f": [0, 2], "count_m": [1, 0], "neutrality": [1.0, 0.0]})
    ties = resolve(parse_measure("AbsARaB@1")).ties(Evaluation(run, GroupTable.of(groups)))
    np.testing.assert_allclose(ties.range, np.log([2, 3]))


def test_a_query_without_a_value_in_the_given_order_is_in_no_figure() -> None:
    # In q, m alone; in r, the tied n, of no group, comes before f by its id.
    run = pl.DataFrame({"query_id": ["q", "r", "r"], "doc_id": ["m", "n", "f"], "score": [1.0, 1.0, 1.0]})
    table = slow_exposure.labels({"m": (0, 1), "f": (1, 0), "n": (0, 0)}, "fm")
    found = Evaluation(Run.from_table(run), table)
    for name in ("ExposureGap@1", "Exposure(group='m')@1", "AWRF@1", "NDKL@1"):
        how = resolve(parse_measure(name))
        ties, figure = how.ties(found), how.figure(how.parts(found))
        assert (ties.mean, ties.range) == (figure, (figure, figure)), name
        assert np.isnan(ties.expected).tolist() == [False, True], name
