"""``python -m benchmarks [NAME …]``: all benchmarks, or those named, as a table each.

``python -m benchmarks calibration`` counts how often each verdict is said where it is false.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path

from . import table

NAMES = (
    "install",
    "startup",
    "scoring",
    "audits",
    "labels",
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
    "scan",
    "rebalance",
    "machines",
)
PAGE_NAMES = (*NAMES, "large")
"""What performance.md shows: with `make bench-large`, which takes a quarter of an hour."""


RUNS = 5
"""How often each is run; a module that takes many minutes says fewer in a ``RUNS`` of its own."""


def main(arguments: list[str]) -> None:
    """Runs benchmarks by name, or one side of one, ``MODULE.FUNCTION ARGUMENT …``, for the process that measures it."""
    if arguments[:1] == ["calibration"]:
        importlib.import_module("benchmarks.calibration.run").main(arguments[1:])
        return
    if arguments and "." in arguments[0]:
        module, function = arguments[0].split(".")
        getattr(importlib.import_module(f"benchmarks.{module}"), function)(*arguments[1:])
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; others are named in the docs")
    parser.add_argument("--runs", type=int, help=f"how often each is run ({RUNS}, the longest ones less often)")
    parser.add_argument("--write", action="store_true", help="put what is found into benchmarks/performance.md")
    chosen = parser.parse_args(arguments)
    for name in chosen.names or NAMES:
        module = importlib.import_module(f"benchmarks.{name}")
        with tempfile.TemporaryDirectory() as folder:
            runs = [module.rows(Path(folder)) for _ in range(chosen.runs or getattr(module, "RUNS", RUNS))]
        found = table.lines(runs)
        print(f"{name}\n\n{table.markdown(found)}\n", flush=True)
        if chosen.write:
            table.keep(name, found)
    if chosen.write:
        table.write_page(PAGE_NAMES)


if __name__ == "__main__":
    main(sys.argv[1:])
