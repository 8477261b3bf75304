"""What the field exchanges: runs, qrels, collections and queries, and the errors that name file and line."""

from .errors import EvenrankError, InputError, MissingExtraError
from .provenance import Provenance
from .qrels import as_qrels, read_qrels
from .runs import Order, Run, as_run, as_runs, read_run, write_run
from .scores import MAGNITUDES, Magnitude, Scores, as_scores, bias_labels, read_scores
from .texts import as_batches, as_collection, as_queries, read_queries, read_texts, scan_collection, scan_texts
from .written import atomic_path, check_apart, check_outputs, check_writable, make_folder, write_text

__all__ = [
    "MAGNITUDES",
    "EvenrankError",
    "InputError",
    "Magnitude",
    "MissingExtraError",
    "Order",
    "Provenance",
    "Run",
    "Scores",
    "as_batches",
    "as_collection",
    "as_qrels",
    "as_queries",
    "as_run",
    "as_runs",
    "as_scores",
    "atomic_path",
    "bias_labels",
    "check_apart",
    "check_outputs",
    "check_writable",
    "make_folder",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_scores",
    "read_texts",
    "scan_collection",
    "scan_texts",
    "write_run",
    "write_text",
]
