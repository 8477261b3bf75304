"""What ties do to a figure is said of the queries of its mean, and holds that mean: every bias measure there is."""

from __future__ import annotations

import numpy as np
import polars as pl

import slow_exposure
from evenrank.files import Run
from evenrank.groups import GroupTable
from evenrank.measures import Evaluation, parse_measure
from evenrank.measures.registry import bias_measures, resolve, spelled
from evenrank.testing import check_measure


def test_every_measure_keeps_to_the_contract() -> None:
    for measure in bias_measures():
        takes = measure.SUPPORTED_PARAMS
        name = spelled(measure) + "(group='m')" * ("group" in takes) + "@2" * ("cutoff" in takes)
        check_measure(resolve(parse_measure(name)))


def test_a_range_of_absolute_values_ends_where_an_order_does() -> None:
    # ARaB@1 is ln 2 or −ln 3: nothing is nearer to 0 than ln 2.
    run = Run.from_table(pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.0, 1.0]}))
    groups = pl.DataFrame({"doc_id": ["a", "b"], "count_f": [0, 2], "count_m": [1, 0], "neutrality": [1.0, 0.0]})
    found = Evaluation(run, GroupTable.of(groups))
    of_query, of_run = (resolve(parse_measure(name)).ties(found) for name in ("AbsARaB@1", "|ARaB|@1"))
    np.testing.assert_allclose(of_query.range, np.log([2, 3]))
    # Of 200 draws, half have each value.
    np.testing.assert_allclose([of_query.mean, of_run.mean], np.log(6) / 2, atol=0.1)


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
