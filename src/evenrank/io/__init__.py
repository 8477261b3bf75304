"""Reading and writing runs, qrels, collections and queries; errors name the file and the line."""

from .atomic import atomic_path, check_writable, make_folder, write_text
from .errors import EvenrankError, InputError, MissingExtraError
from .outputs import check_apart, check_outputs
from .provenance import Provenance
from .qrels import as_qrels, read_qrels
from .runs import Order, Run, as_run, as_runs, read_run, write_run
from .texts import as_batches, as_collection, as_queries, read_queries, read_texts, scan_collection, scan_texts

__all__ = [
    "EvenrankError",
    "InputError",
    "MissingExtraError",
    "Order",
    "Provenance",
    "Run",
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
