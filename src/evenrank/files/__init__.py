"""Reading and writing runs, qrels, collections and queries; errors name the file and the line.

Names are imported on first use, so that what reads no tables starts without the table engine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .convert import QrelsLike, TextsLike
    from .errors import EvenrankError, InputError, MissingExtraError, arg
    from .outputs import atomic_path, check_apart, check_outputs, check_writable, make_folder, write_text
    from .provenance import Provenance
    from .runs import Order, Run, RunLike, RunsLike, as_qrels, as_run, as_runs, read_qrels, read_run, write_run
    from .texts import as_batches, as_collection, as_queries, read_queries, read_texts, scan_collection, scan_texts

_HOMES = {
    "convert": ("QrelsLike", "TextsLike"),
    "errors": ("EvenrankError", "InputError", "MissingExtraError", "arg"),
    "outputs": (
        "atomic_path",
        "check_apart",
        "check_outputs",
        "check_writable",
        "make_folder",
        "write_text",
    ),
    "provenance": ("Provenance",),
    "runs": (
        "Order",
        "Run",
        "RunLike",
        "RunsLike",
        "as_qrels",
        "as_run",
        "as_runs",
        "read_qrels",
        "read_run",
        "write_run",
    ),
    "texts": (
        "as_batches",
        "as_collection",
        "as_queries",
        "read_queries",
        "read_texts",
        "scan_collection",
        "scan_texts",
    ),
}
"""The names by the module that defines them."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "EvenrankError",
    "InputError",
    "MissingExtraError",
    "Order",
    "Provenance",
    "QrelsLike",
    "Run",
    "RunLike",
    "RunsLike",
    "TextsLike",
    "arg",
    "as_batches",
    "as_collection",
    "as_qrels",
    "as_queries",
    "as_run",
    "as_runs",
    "atomic_path",
    "check_apart",
    "check_outputs",
    "check_writable",
    "make_folder",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_texts",
    "scan_collection",
    "scan_texts",
    "write_run",
    "write_text",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
