"""One way to load a ranker, whatever it is: a folder, a name on the hub, a loaded model, or a function."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted, readable, require_neural

from .models import (
    Architecture,
    ModelFolder,
    Precision,
    find_model,
    load_encoder,
    load_kernel_ranker,
    model_name,
)
from .pairs import Unit
from .scorers import BiEncoderScorer, CrossEncoderScorer, FunctionScorer, RankerScorer, ScoreFunction, Scorer

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from .export import Backend
    from .protocol import Ranker

_ACCEPTED = "a folder, a name on the hub, a CrossEncoder, a SentenceTransformer, a ranker or a function"


def load_ranker(
    model: str | os.PathLike[str] | CrossEncoder | SentenceTransformer | Ranker | Scorer | ScoreFunction,
    kind: Architecture | None = None,
    *,
    device: str | None = None,
    precision: Precision = "auto",
    backend: Backend = "torch",
    int8: bool = False,
) -> Scorer:
    """The scorer of a model, with which :func:`evenrank.rerank` and position sensitivity score pairs.

    ``model``: a folder of a ranker trained here; a folder or a name on the hub that sentence-transformers loads, with
    ``kind`` ("cross" or "bi") if its files do not show which it is; a loaded ``CrossEncoder`` or
    ``SentenceTransformer``; a :class:`Ranker`; or a function of a query and its passages that returns a score for each
    passage. The other settings are those of :func:`evenrank.rerank`, and only for a folder or a name.

    Raises EvenrankError for a setting out of range and for anything else as ``model``; InputError for a folder that
    cannot be used; MissingExtraError without the extra [neural].
    """
    found = find_ranker(model, kind, device=device, precision=precision, backend=backend, int8=int8)
    return found if isinstance(found, Scorer) else found.load()


def find_ranker(
    model: str | os.PathLike[str] | CrossEncoder | SentenceTransformer | Ranker | Scorer | ScoreFunction,
    kind: Architecture | None = None,
    *,
    device: str | None = None,
    precision: Precision = "auto",
    backend: Backend = "torch",
    int8: bool = False,
) -> StoredRanker | Scorer:
    """As :func:`load_ranker`, but without loading the weights of a folder or a name on the hub."""
    if precision not in ("auto", "float32", "bfloat16"):
        raise EvenrankError(f"`precision`: expected auto, float32 or bfloat16, found {quoted(precision)}")
    if not isinstance(model, str | os.PathLike):
        changed = {
            "kind": kind is not None,
            "device": device is not None,
            "precision": precision != "auto",
            "backend": backend != "torch",
            "int8": int8,
        }
        given = [f"`{name}`" for name, wrong in changed.items() if wrong]
        if given:
            raise EvenrankError(f"{', '.join(given)}: only for a model given by its folder or its name on the hub")
        return _scorer(model)
    require_neural("re-ranking")
    if backend != "torch" or int8:
        _check_backend(backend, int8, precision, device)
    folder = find_model(os.fspath(model), kind)
    if folder.architecture == "kernel" and (backend != "torch" or precision == "bfloat16"):
        raise EvenrankError(f"{os.fspath(model)}: kernel rankers need the backend torch and float32")
    return StoredRanker(folder, precision, device, backend, int8)


def _check_backend(backend: Backend, int8: bool, precision: Precision, device: str | None) -> None:
    from .export import check_backend

    check_backend(backend, int8, precision)
    if device not in (None, "cpu"):
        raise EvenrankError(f"`device`: the backend {backend} computes on the cpu, found {quoted(device)}")


@dataclass(frozen=True, slots=True)
class StoredRanker:
    """A ranker that is found but not loaded: its folder and how it computes. Processes of a cluster load it anew."""

    folder: ModelFolder
    precision: Precision = "auto"
    device: str | None = None
    backend: Backend = "torch"
    int8: bool = False

    @property
    def name(self) -> str:
        """The name of the runs that it ranks."""
        return self.folder.name

    @property
    def unit(self) -> Unit:
        """What the windows of its pairs never split."""
        return BiEncoderScorer.unit if self.folder.architecture == "bi" else Scorer.unit

    def load(self) -> Scorer:
        """Loads the weights. Raises InputError for a model that cannot be used."""
        if self.folder.architecture == "kernel":
            ranker = load_kernel_ranker(self.folder, self.device)
            return _with_settings(RankerScorer(ranker, self.name), next(ranker.parameters()).device.type)
        if self.backend == "torch":
            encoder = load_encoder(self.folder, self.precision, self.device)
            settings = f"{encoder.device.type} {encoder.dtype}"
        else:
            from .export import use_backend

            encoder = load_encoder(self.folder, "float32", "cpu")
            settings = use_backend(encoder, self.folder, self.backend, int8=self.int8, precision=self.precision)
        scorer = CrossEncoderScorer if self.folder.architecture == "cross" else BiEncoderScorer
        return _with_settings(scorer(encoder, self.name), settings)


def _with_settings(scorer: Scorer, settings: str) -> Scorer:
    scorer.settings = settings
    return scorer


def _scorer(model: object) -> Scorer:
    """The scorer of an object. Raises EvenrankError if it is no model."""
    if isinstance(model, Scorer):
        return model
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return _module_scorer(model)
    if callable(model) and not isinstance(model, type):
        name = getattr(model, "__name__", type(model).__name__)
        return FunctionScorer(model, "function" if name == "<lambda>" else name)
    value = f" {quoted(model)}" if isinstance(model, int | float) else ""
    raise EvenrankError(f"`model`: expected {_ACCEPTED}, found {type(model).__name__}{value}")


def _module_scorer(model: object) -> Scorer:
    """The scorer of a module of PyTorch: a model of sentence-transformers, or a ranker."""
    from .cat import CatRanker
    from .dot import DotRanker
    from .protocol import Ranker

    if isinstance(model, CatRanker | DotRanker):
        # As its folder is scored.
        scorer = CrossEncoderScorer if isinstance(model, CatRanker) else BiEncoderScorer
        return scorer(model.model, model.kind)
    if isinstance(model, Ranker):
        return RankerScorer(model, model.kind)
    from sentence_transformers import CrossEncoder, SentenceTransformer

    if isinstance(model, CrossEncoder):
        if model.num_labels != 1:
            raise EvenrankError(f"`model`: expected a CrossEncoder with one score per pair, found {model.num_labels}")
        return CrossEncoderScorer(model, _encoder_name(model))
    if isinstance(model, SentenceTransformer):
        return BiEncoderScorer(model, _encoder_name(model))
    raise EvenrankError(f"`model`: expected {_ACCEPTED}, found {type(model).__name__}")


def _encoder_name(model: CrossEncoder | SentenceTransformer) -> str:
    """The name of the folder or of the hub's model that an encoder was loaded from, else that of its class."""
    for module in model.modules():
        source = getattr(getattr(module, "config", None), "name_or_path", "")
        if source:
            return readable(model_name(str(Path(source))))
    return type(model).__name__
