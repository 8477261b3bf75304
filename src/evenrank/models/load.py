"""One way to load a ranker, whatever it is: a folder, a name on the hub, a loaded model, or a function."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from evenrank.files import EvenrankError
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, quoted, readable, require_neural, shown

from .encoder_scorers import KeptVectorScorer, encoder_scorer, two_prompts
from .endpoints import Endpoint
from .scorers import FunctionScorer, RankerScorer, ScoreFunction, Scorer, SparseRankerScorer
from .stored import (
    Architecture,
    Backend,
    ModelFolder,
    Precision,
    find_model,
    load_encoder,
    load_kernel_ranker,
    model_name,
)

if TYPE_CHECKING:
    from .protocol import Ranker
    from .scorers import Model

RankerLike: TypeAlias = "str | os.PathLike[str] | Model | Ranker | Scorer | ScoreFunction | Endpoint"
"""Whatever :func:`load_ranker` makes a scorer of."""
_ACCEPTED = "a folder, a name on the hub, a model of sentence-transformers, a ranker, an Endpoint or a function"


@checked
def load_ranker(
    model: RankerLike,
    *,
    kind: Architecture | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    backend: Backend = "torch",
    query_prompt: str | None = None,
    document_prompt: str | None = None,
) -> Scorer:
    """The scorer of a model, with which :func:`evenrank.rerank` and position sensitivity score pairs.

    ``model``: a folder of a ranker trained here; a folder or a name on the hub that sentence-transformers loads, with
    ``kind`` ("cross", "bi", "sparse" or "late") if its files do not show which it is; a loaded ``CrossEncoder``,
    ``SentenceTransformer``, ``SparseEncoder`` or ``MultiVectorEncoder``; a :class:`Ranker`; an ``Endpoint``; or a
    function of a query and its passages that returns a score for each passage. ``query_prompt``, ``document_prompt``:
    in place of the prompts in the model's configuration ("" for none); a cross-encoder has the first only. The other
    settings are those of :func:`evenrank.rerank`, and only for a folder or a name.

    Raises EvenrankError for a setting out of range, a prompt for a model without prompts, and anything else as
    ``model``; InputError for a folder that cannot be used; MissingExtraError without the extra [neural].
    """
    prompts = Prompts(query_prompt, document_prompt)
    found = find_ranker(model, kind=kind, device=device, precision=precision, backend=backend, prompts=prompts)
    return found if isinstance(found, Scorer) else found.load()


@dataclass(frozen=True, slots=True)
class Prompts:
    """What to put before queries and passages in place of the prompts of a model's configuration; None: those."""

    query: str | None = None
    document: str | None = None

    def refuse(self, what: str) -> None:
        """Raises EvenrankError if there is any, for a kind of model that has none."""
        given = [f"`{name}_prompt`" for name in ("query", "document") if getattr(self, name) is not None]
        if given:
            raise EvenrankError(f"{', '.join(given)}: {what} takes no prompts")


_NO_PROMPTS = Prompts()


def find_ranker(
    model: RankerLike,
    *,
    kind: Architecture | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    backend: Backend = "torch",
    prompts: Prompts = _NO_PROMPTS,
) -> StoredRanker | Scorer:
    """As :func:`load_ranker`, but without loading the weights of a folder or a name on the hub."""
    if precision not in ("auto", "float32", "bfloat16"):
        raise EvenrankError(f"{arg.precision}: expected auto, float32 or bfloat16, found {quoted(precision)}")
    if not isinstance(model, str | os.PathLike):
        changed = {
            "kind": kind is not None,
            "device": device is not None,
            "precision": precision != "auto",
            "backend": backend != "torch",
        }
        given = [arg(name) for name, wrong in changed.items() if wrong]
        if given:
            raise EvenrankError(f"{', '.join(given)}: only for a model given by its folder or its name on the hub")
        return _scorer(model, prompts)
    require_neural("re-ranking")
    if backend != "torch":
        _check_backend(backend, precision, device)
    folder = find_model(os.fspath(model), kind)
    if folder.architecture == "kernel" and (backend != "torch" or precision == "bfloat16"):
        raise EvenrankError(f"{os.fspath(model)}: kernel rankers need the backend torch and float32")
    if folder.architecture == "kernel":
        prompts.refuse("a kernel ranker")
    if folder.architecture == "cross" and prompts.document is not None:
        raise two_prompts()
    return StoredRanker(folder, precision, device, backend, prompts)


def _check_backend(backend: Backend, precision: Precision, device: str | None) -> None:
    from .export import check_backend

    check_backend(backend, precision)
    if device not in (None, "cpu"):
        raise EvenrankError(f"{arg.device}: the backend {backend} computes on the cpu, found {quoted(device)}")


@dataclass(frozen=True, slots=True)
class StoredRanker:
    """A ranker that is found but not loaded: its folder and how it computes."""

    folder: ModelFolder
    precision: Precision = "auto"
    device: str | None = None
    backend: Backend = "torch"
    prompts: Prompts = _NO_PROMPTS

    @property
    def name(self) -> str:
        """The name of the runs that it ranks."""
        return self.folder.name

    def load(self) -> Scorer:
        """Loads the weights. Raises InputError for a model that cannot be used."""
        if self.folder.architecture == "kernel":
            ranker = load_kernel_ranker(self.folder, self.device)
            return self._described(RankerScorer(ranker, self.name), next(ranker.parameters()).device.type)
        if self.backend == "torch":
            encoder = load_encoder(self.folder, self.precision, self.device)
            settings = f"{encoder.device.type} {encoder.dtype}"
        else:
            from .export import use_backend

            encoder = load_encoder(self.folder, "float32", "cpu")
            settings = use_backend(encoder, self.folder, self.backend, self.precision)
        scorer = encoder_scorer(encoder, self.name, self.prompts.query, self.prompts.document)
        if self.backend != "torch":
            scorer.backend = self.backend
            scorer.precision = "bfloat16" if self.precision == "bfloat16" else "float32"
        return self._described(scorer, settings)

    def _described(self, scorer: Scorer, settings: str) -> Scorer:
        scorer.settings, scorer.digest = settings, cache(self.folder.digest)
        return scorer


def _scorer(model: object, prompts: Prompts) -> Scorer:
    """The scorer of an object. Raises EvenrankError if it is no model, or takes no prompts."""
    if isinstance(model, Scorer):
        prompts.refuse("a model that is a scorer already")
        return model
    if isinstance(model, Endpoint):
        return model.prompted(prompts.query, prompts.document).scorer()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return _module_scorer(model, prompts)
    if callable(model) and not isinstance(model, type):
        prompts.refuse("a function")
        name = getattr(model, "__name__", type(model).__name__)
        return FunctionScorer(model, "function" if name == "<lambda>" else name)
    raise EvenrankError(f"{arg.model}: expected {_ACCEPTED}, found {shown(model)}")


def _module_scorer(model: object, prompts: Prompts) -> Scorer:
    """The scorer of a module of PyTorch: a model of sentence-transformers, or a ranker."""
    from .encoders import CatRanker, DotRanker
    from .protocol import Ranker

    if isinstance(model, DotRanker) and model.frozen and prompts == _NO_PROMPTS:
        return KeptVectorScorer(model, model.kind)
    if isinstance(model, CatRanker | DotRanker):
        # As its folder is scored.
        return encoder_scorer(model.model, model.kind, prompts.query, prompts.document)
    if isinstance(model, Ranker):
        prompts.refuse("a sparse ranker" if model.kind == "sparse" else "a kernel ranker")
        return (SparseRankerScorer if model.kind == "sparse" else RankerScorer)(model, model.kind)
    from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer, SparseEncoder

    if isinstance(model, CrossEncoder | MultiVectorEncoder | SentenceTransformer | SparseEncoder):
        return encoder_scorer(model, _encoder_name(model), prompts.query, prompts.document)
    raise EvenrankError(f"{arg.model}: expected {_ACCEPTED}, found {shown(model)}")


def _encoder_name(model: Model) -> str:
    """The name of the folder or of the hub's model that an encoder was loaded from, else that of its class."""
    for module in model.modules():
        source = getattr(getattr(module, "config", None), "name_or_path", "")
        if source:
            return readable(model_name(str(Path(source))))
    return type(model).__name__
