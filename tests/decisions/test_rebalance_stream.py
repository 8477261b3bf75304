"""A run file in chunks of whole queries: the bytes of the run in memory, whatever the chunks are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import evenrank
from evenrank.decisions import rebalance_stream
from evenrank.decisions.group_sources import GroupSource
from evenrank.decisions.rebalance import request_of
from evenrank.decisions.rebalance_lists import Grouping
from evenrank.decisions.rebalance_methods import MethodOptions
from evenrank.decisions.rebalance_plan import Plan, Request
from evenrank.decisions.rebalance_result import RebalanceReport
from evenrank.io import EvenrankError, Provenance, Run
from evenrank.mitigation.reorderings import METHODS
from small_rebalance import drawn

RUN, GROUPS, QRELS = drawn(12, 30, 1, ties=True)


def write(path: Path, run: Run, method: str, **options: object) -> RebalanceReport:
    request = request_of(
        MethodOptions(method), GroupSource(scores=GROUPS, **options), 0.5, None, None, 20, None, 0, False  # type: ignore[arg-type]
    )  # fmt: skip
    source = path.with_suffix(".given")
    evenrank.write_run(run, source)
    return rebalance_stream.write_rebalanced(request, source, path, name="new", provenance=Provenance("test"))


@pytest.mark.parametrize("method", METHODS)
def test_bytes_are_those_of_the_run_in_memory(tmp_path: Path, method: str, block_bytes: Callable[[int], None]) -> None:
    given = Run(RUN.name, RUN.table)
    report = write(tmp_path / "whole", given, method)
    found = evenrank.rebalance(given, method=method, strength=0.5, depth=20, scores=GROUPS, name="new")
    evenrank.write_run(found.run, tmp_path / "memory")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "memory").read_bytes()
    assert report.to_dict() == {**found.to_dict(), "notes": list(report.notes)}
    assert report.notes == found.notes
    block_bytes(100)
    small = write(tmp_path / "small", given, method)
    assert (tmp_path / "small").read_bytes() == (tmp_path / "whole").read_bytes()
    assert small.to_dict() == report.to_dict()


def test_chunks_are_read_one_at_a_time(
    tmp_path: Path, block_bytes: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    block_bytes(100)
    rows: list[int] = []
    plain = rebalance_stream.applied

    def watched(method: object, lists: object, strength: float) -> object:
        rows.append(len(lists.scores))  # type: ignore[attr-defined]
        return plain(method, lists, strength)  # type: ignore[arg-type]

    monkeypatch.setattr(rebalance_stream, "applied", watched)
    write(tmp_path / "new", RUN, "neutral")
    # A chunk may end a query after it began: never more than two queries.
    assert sum(rows) == 240
    assert max(rows) <= 40


@pytest.mark.parametrize("method", ["shift", "fair"])
def test_only_rows_that_can_move_are_kept_to_learn_on(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[pl.DataFrame] = []
    plain = Request.plan

    def watched(request: Request, grouping: Grouping, tuning: Run | None, qrels: pl.DataFrame | None) -> Plan:
        assert tuning is not None
        kept.append(tuning.table)
        return plain(request, grouping, tuning, qrels)

    monkeypatch.setattr(Request, "plan", watched)
    write(tmp_path / "new", RUN, method)
    # Of 30 rows the first 20, and the last one, which has the lowest score.
    lengths = kept[0].group_by("query_id").len()["len"].unique().to_list()
    assert lengths == [21]
    assert kept[0]["rank"].max() == 30


def test_queries_that_are_not_contiguous_are_refused(tmp_path: Path) -> None:
    lines = "a Q0 d1 1 3 t\nb Q0 d2 1 3 t\na Q0 d3 2 1 t\n"
    (tmp_path / "r").write_text(lines)
    request = request_of(MethodOptions("neutral"), GroupSource(scores=GROUPS), 0.5, None, None, 20, None, 0, False)
    with pytest.raises(EvenrankError, match="the lines of the query 'a' are not contiguous"):
        rebalance_stream.write_rebalanced(request, tmp_path / "r", tmp_path / "o", provenance=Provenance("test"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r"]
