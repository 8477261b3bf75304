"""Reading and writing runs, qrels, collections and queries; errors name the file and the line.

Names are imported on first use, so that what reads no tables starts without the table engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank._lazy import lazy_names

if TYPE_CHECKING:
    from .arguments import checked
    from .convert import QrelsLike, TextsLike
    from .errors import FAST, EvenrankError, InputError, MissingExtraError, arg, quoted, require, require_neural
    from .json_values import INLINE, LEFT_OUT, named
    from .outputs import atomic_path, check_apart, check_outputs, check_writable, make_folder, write_text
    from .provenance import Provenance
    from .public import public_data
    from .runs import Order, Run, RunLike, RunsLike, as_qrels, as_run, as_runs, read_qrels, read_run, write_run
    from .squad import load_squad, question_id
    from .synthetic import write_collection, write_lines
    from .texts import as_batches, as_collection, as_queries, read_queries, read_texts, scan_collection, scan_texts
    from .tokens import Tokens, tokenize
    from .types import EQUAL, Array, holm
    from .wording import counted, percent, singular
    from .work import changed
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "EQUAL",
    "FAST",
    "INLINE",
    "LEFT_OUT",
    "Array",
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
    "Tokens",
    "arg",
    "as_batches",
    "as_collection",
    "as_qrels",
    "as_queries",
    "as_run",
    "as_runs",
    "atomic_path",
    "changed",
    "check_apart",
    "check_outputs",
    "check_writable",
    "checked",
    "counted",
    "holm",
    "load_squad",
    "make_folder",
    "named",
    "percent",
    "public_data",
    "question_id",
    "quoted",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_texts",
    "require",
    "require_neural",
    "scan_collection",
    "scan_texts",
    "singular",
    "tokenize",
    "write_collection",
    "write_lines",
    "write_run",
    "write_text",
]
