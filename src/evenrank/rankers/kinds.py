"""What kind of ranker a model's folder holds, told from its own files.

1. With ``evenrank.json``: a kernel ranker of this library;
2. with ``modules.json``: the ``model_type`` in ``config_sentence_transformers.json``; older models have none and are
   bi-encoders, or late-interaction encoders saved by PyLate, which has settings of its own in that file;
3. else ``architectures`` in ``config.json``: ``…ForSequenceClassification`` is a cross-encoder, ``HF_ColBERT`` a
   late-interaction encoder;
4. anything else needs the caller's choice: a ``…ForMaskedLM`` can score as a sparse encoder (SPLADE), a
   ``…ForCausalLM`` as a cross-encoder (its "yes" against its "no"), and any of them, like a plain encoder, as a
   bi-encoder (mean pooling).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from evenrank.io import InputError
from evenrank.io.errors import quoted

Architecture = Literal["cross", "bi", "sparse", "late", "kernel"]
CHOICES = ("cross", "bi", "sparse", "late")
"""The kinds that a caller can choose."""
_SAVED: dict[str, Architecture] = {
    "CrossEncoder": "cross",
    "SentenceTransformer": "bi",
    "SparseEncoder": "sparse",
    "MultiVectorEncoder": "late",
    "ColBERT": "late",  # by PyLate
}
_NAMES = {
    "cross": "a cross-encoder",
    "bi": "a bi-encoder",
    "sparse": "a sparse encoder",
    "late": "a late-interaction encoder",
}
# As in protocol.config_file, which imports PyTorch.
_KERNEL = "evenrank.json"


def read_object(path: Path) -> dict[str, object]:
    """The JSON object in a file, empty if there is no such file. Raises InputError for a file with anything else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (ValueError, RecursionError):
        content = None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from None
    if not isinstance(content, dict):
        raise InputError(path, "expected a JSON object")
    return content


def architecture_of(path: Path, wanted: Architecture | None) -> Architecture:
    """The kind of the model in a folder: what its files say, else ``wanted``.

    Raises InputError if its files say otherwise than ``wanted``, lack what that needs, or say nothing.
    """
    if (path / _KERNEL).is_file():
        if wanted is not None:
            raise InputError(path, f"a ranker of this library ({_KERNEL}) has no other `kind`")
        return "kernel"
    if (path / "modules.json").is_file():
        return _saved(path, wanted)
    classes = read_object(path / "config.json").get("architectures") or []
    if not isinstance(classes, list):
        raise InputError(path / "config.json", f"expected a list of architectures, found {quoted(classes)}")
    name = str(next(iter(classes), "none"))
    if name == "HF_ColBERT":
        return _agreed(path, "late", wanted)
    if name.endswith("ForSequenceClassification") and wanted in (None, "cross", "bi"):
        return wanted or "cross"
    needed = {
        "cross": (name.endswith("ForCausalLM"), "an architecture with a head that scores pairs"),
        "sparse": (name.endswith("ForMaskedLM"), "an architecture with a head that predicts words"),
        "late": (False, "a model with a projection for late interaction"),
    }
    if wanted is None:
        possible = "cross or bi" if needed["cross"][0] else "sparse or bi" if needed["sparse"][0] else "bi"
        raise InputError(path, f"not clear what kind of ranker this is ({name}): set `kind` to {possible}")
    fits, expected = needed.get(wanted, (True, ""))
    if not fits:
        raise InputError(path, f"expected {expected}, found {name}")
    return wanted


def _saved(path: Path, wanted: Architecture | None) -> Architecture:
    """The kind of a model that sentence-transformers saved."""
    config = read_object(path / "config_sentence_transformers.json")
    older = "ColBERT" if "query_prefix" in config else "SentenceTransformer"
    saved = config.get("model_type", older)
    if not isinstance(saved, str) or saved not in _SAVED:
        known = "a cross-encoder, bi-encoder, sparse encoder or late-interaction encoder"
        raise InputError(path, f"expected {known}, found {str(saved)[:60]}")
    return _agreed(path, _SAVED[saved], wanted)


def _agreed(path: Path, found: Architecture, wanted: Architecture | None) -> Architecture:
    # Without its head, a cross-encoder is an encoder.
    if wanted is None or wanted == found or (found, wanted) == ("cross", "bi"):
        return wanted or found
    if wanted == "cross":
        raise InputError(path, f"{_NAMES[found]} has no head that scores pairs")
    raise InputError(path, f"`kind`: expected {found}, as its files say, found {wanted}")
