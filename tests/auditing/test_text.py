"""The audit as a table of text: by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from evenrank.auditing import AuditResult
from small_reports import FIRST, SECOND, small_audit


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return small_audit()


def all_figures(result: AuditResult, width: int) -> str:
    """What `--full` adds to the screen, from the table of figures on."""
    return result.table(full=True, width=width).partition("All figures of all runs")[2]


def line_of(table: str, measure: str, name: str) -> str:
    lines = table.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(measure))
    return next(line for line in lines[start:] if line.strip().startswith(name))


def test_table_by_hand(result: AuditResult, snapshot: Any) -> None:
    table = all_figures(result, 120)
    assert line_of(table, "ARaB@10", "old").split()[:6] == [
        "old", f"{FIRST:.4f}", "–", f"{FIRST:.4f}", f"[{FIRST:.4f},", f"{FIRST:.4f}]",
    ]  # fmt: skip
    new = line_of(table, "ARaB@10", "new").split()
    assert new[1] == f"{SECOND:.4f}"
    assert new[6:10] == [f"{SECOND - FIRST:.4f}", "–", "–", "3/0/0"]  # too few for a test
    assert line_of(table, "nDCG@10", "old").split()[1] == f"{1 / math.log2(3):.4f}"
    assert line_of(table, "ARaB@10", "(random)").split()[1] == f"{math.log(2) / 2:.4f}"
    assert line_of(table, "ARaB@10", "(neutral-first)").split()[1] == f"{SECOND:.4f}"
    signed = small_audit(measures="nDCG@10 NFaiRR@10 ARaB@10 DeltaAPRF")
    alone = small_audit(qrels=None, baseline=None, measures=None)
    assert [one.table(full=True, width=120) for one in (result, signed, alone)] == snapshot
