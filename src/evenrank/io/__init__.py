"""What the field exchanges: runs, qrels, collections and queries, and the errors that name file and line."""

from .errors import EvenrankError, InputError, MissingExtraError
from .qrels import read_qrels
from .runs import Order, Run, read_run, write_run
from .scores import MAGNITUDES, Magnitude, Scores, bias_labels, read_scores
from .texts import read_queries, read_texts, scan_collection, scan_texts
from .written import atomic_path, check_writable, write_text

__all__ = [
    "MAGNITUDES",
    "EvenrankError",
    "InputError",
    "Magnitude",
    "MissingExtraError",
    "Order",
    "Run",
    "Scores",
    "atomic_path",
    "bias_labels",
    "check_writable",
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
