"""Encoders on a CPU with ONNX Runtime or OpenVINO, exported as they are loaded.

Only the transformer is exported; tokenising, prompts, pooling, projection and similarity stay those of the
sentence-transformers model, which calls the exported transformer as it called its own.
"""

from __future__ import annotations

import warnings
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from evenrank.io import EvenrankError, InputError
from evenrank.io.errors import quoted, require

from .models import ModelFolder, Precision
from .onnx_graph import keep_first_token
from .sessions import Exported, OnnxSession, OpenVinoSession, Session

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from sentence_transformers.base.modules import Transformer

Backend = Literal["torch", "onnx", "openvino"]
BACKENDS = ("torch", "onnx", "openvino")
_TASKS = ("feature-extraction", "sequence-classification")
_NEEDED = {"onnx": ("onnx", "onnxruntime"), "openvino": ("onnx", "openvino")}
_OPSET = 17
_TOLERANCE = 1e-3


def check_backend(backend: str, precision: Precision) -> None:
    """Raises EvenrankError for an unknown backend or one without that precision, MissingExtraError if its libraries are
    missing.
    """
    if backend not in BACKENDS:
        raise EvenrankError(f"`backend`: expected torch, onnx or openvino, found {quoted(backend)}")
    if precision == "bfloat16" and backend == "onnx":
        raise EvenrankError("`precision`: the backend onnx has no bfloat16")
    if backend != "torch":
        require(f"the backend {backend}", "export", *_NEEDED[backend])


def use_backend(
    encoder: CrossEncoder | SentenceTransformer, folder: ModelFolder, backend: Backend, precision: Precision = "auto"
) -> str:
    """Makes ``encoder``, loaded from ``folder`` in float32 on the CPU, compute with another backend.

    ``precision`` "bfloat16" lets OpenVINO compute in it; else float32 is pinned. Threads: as many as PyTorch would use.

    Returns what the scores depend on besides the model. Raises as :func:`check_backend`, and InputError for an
    architecture that cannot be exported.
    """
    check_backend(backend, precision)
    towers = [part for part in encoder.modules() if hasattr(part, "transformer_task")]
    if not towers:
        raise InputError(folder.path, f"the backend {backend} cannot run this kind of model")
    for tower in towers:
        if tower.transformer_task not in _TASKS or tower.modality_config.get("text", {}).get("method") != "forward":
            raise InputError(folder.path, f"the backend {backend} cannot run this kind of model")
        tower.model.eval()
    with TemporaryDirectory(prefix="evenrank-") as scratch:
        for number, tower in enumerate(towers):
            file = Path(scratch) / f"{number}.onnx"
            _export(folder, tower, file, backend)
            # A cross-encoder's batches are independent of one another.
            parallel = tower.transformer_task == "sequence-classification"
            session = _session(file, _names(tower), backend, precision, parallel=parallel)
            tower.model = Exported(tower.model, _output(tower), session)
    return " ".join((backend, precision, *(f"{name} {version(name)}" for name in _NEEDED[backend])))


def _names(tower: Transformer) -> list[str]:
    features = tower.preprocess(["a b"])
    return sorted(name for name, value in features.items() if isinstance(value, Tensor))


def _output(tower: Transformer) -> str:
    name = tower.modality_config["text"]["method_output_name"]
    return str(name if isinstance(name, str) else name[0])


class _Traced(nn.Module):
    """The transformer with tensors in, one tensor out."""

    def __init__(self, model: nn.Module, names: list[str], output: str) -> None:
        super().__init__()
        self.model, self.names, self.output = model, names, output
        self.eval()

    def forward(self, *values: Tensor) -> Tensor:
        output: Tensor = self.model(**dict(zip(self.names, values, strict=True)), return_dict=True)[self.output]
        return output


def _export(folder: ModelFolder, tower: Transformer, target: Path, backend: Backend) -> None:
    names, output = _names(tower), _output(tower)
    pair = tower.transformer_task == "sequence-classification"
    texts = [["a b c d", "e"], ["a", "b"]] if pair else ["a b c d", "a"]
    features = tower.preprocess(texts)
    # Eager attention uses only operators that every version has.
    before = tower.model.config._attn_implementation
    tower.model.set_attn_implementation("eager")
    axes = {name: {0: "batch", 1: "length"} for name in names}
    axes["output"] = {0: "batch"} if pair else {0: "batch", 1: "length"}
    try:
        with warnings.catch_warnings(), torch.inference_mode():
            # Of the older exporter, and of shapes that are read while tracing.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                _Traced(tower.model, names, output),
                tuple(features[name] for name in names),
                str(target),
                dynamo=False,
                opset_version=_OPSET,
                input_names=names,
                output_names=["output"],
                dynamic_axes=axes,
            )
    except Exception as error:  # the exporter can raise anything for an architecture that it does not support
        reason = str(error).strip().split("\n")[0]
        raise InputError(folder.path, f"the model cannot be exported ({type(error).__name__}: {reason})") from None
    finally:
        tower.model.set_attn_implementation(before)
    if pair:
        keep_first_token(target)
    _compare(folder, tower, _session(target, names, backend), pair)


def _compare(folder: ModelFolder, tower: Transformer, session: Session, pair: bool) -> None:
    """Raises InputError if the exported transformer computes something else: a trace can miss a branch."""
    texts = ["a b c d e f g h i j k l m n o p", "b", "c d e"]
    features = tower.preprocess([[text, "a"] for text in texts] if pair else texts)
    names, output = _names(tower), _output(tower)
    with torch.inference_mode():
        expected = _Traced(tower.model, names, output)(*(features[name] for name in names))
    found = torch.from_numpy(session.run([features[name].numpy() for name in names]))
    if not pair:  # the output for padding is undefined
        kept = features["attention_mask"].bool()
        expected, found = expected[kept], found[kept]
    if not torch.allclose(found, expected, rtol=_TOLERANCE, atol=_TOLERANCE):
        raise InputError(folder.path, "the exported model computes something else: use the backend torch")


def _session(
    file: Path, names: list[str], backend: Backend, precision: Precision = "float32", *, parallel: bool = False
) -> Session:
    if backend == "onnx":
        return OnnxSession(file, names)
    return OpenVinoSession(file, names, precision, parallel=parallel)
