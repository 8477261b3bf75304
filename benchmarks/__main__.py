"""``python -m benchmarks [NAME …]``: all benchmarks, or those named, as one table."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

from .measure import Row, show

NAMES = (
    "startup",
    "scoring",
    "audits",
    "labels",
    "unknown",
    "kernel_rankers",
    "backends",
    "rankers",
    "balancing",
    "precision",
    "negatives",
    "retrieval",
    "dense",
    "bm25_on_disk",
    "expansion",
    "endpoints",
    "debiasing",
    "gate",
    "rotation",
    "probes",
    "rebalance",
)


def main(arguments: list[str]) -> None:
    """Runs benchmarks by name, or one side of one, ``MODULE.FUNCTION ARGUMENT …``, for the process that measures it."""
    if arguments and "." in arguments[0]:
        module, function = arguments[0].split(".")
        getattr(importlib.import_module(f"benchmarks.{module}"), function)(*arguments[1:])
        return
    rows: list[Row] = []
    for name in arguments or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            rows += importlib.import_module(f"benchmarks.{name}").rows(Path(folder))
    show(rows)


main(sys.argv[1:])
