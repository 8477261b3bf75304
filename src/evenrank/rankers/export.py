"""Encoders on a CPU with ONNX Runtime or OpenVINO, exported once and kept beside the model.

Only the transformer is exported; tokenising, prompts, pooling, projection and similarity stay those of the
sentence-transformers model, which calls the exported transformer as it called its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from evenrank.io import EvenrankError, InputError
from evenrank.io.atomic import folder_within, usual_mode
from evenrank.io.errors import quoted, require

from .models import CACHE, ModelFolder, Precision
from .onnx_graph import keep_first_token
from .sessions import Exported, OnnxSession, OpenVinoSession, Session, openvino_core

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from sentence_transformers.base.modules import Transformer

Backend = Literal["torch", "onnx", "openvino"]
BACKENDS = ("torch", "onnx", "openvino")
_TASKS = ("feature-extraction", "sequence-classification")
_NEEDED = {"onnx": ("onnx", "onnxruntime"), "openvino": ("onnx", "openvino")}
_OPSET = 17
_VERSION = 2
"""Raised when the exported files change in a way that no other setting shows."""
_TOLERANCE = 1e-3


def check_backend(backend: str, int8: bool, precision: Precision) -> None:
    """Raises EvenrankError for an unknown backend or one without that precision, MissingExtraError if its libraries are
    missing.
    """
    if backend not in BACKENDS:
        raise EvenrankError(f"`backend`: expected torch, onnx or openvino, found {quoted(backend)}")
    if int8 and backend == "torch":
        raise EvenrankError("int8 needs the backend onnx or openvino")
    if precision == "bfloat16" and backend == "onnx":
        raise EvenrankError("`precision`: the backend onnx has no bfloat16")
    if backend != "torch":
        require(f"the backend {backend}", "export", *_NEEDED[backend])


def use_backend(
    encoder: CrossEncoder | SentenceTransformer,
    folder: ModelFolder,
    backend: Backend,
    *,
    int8: bool = False,
    precision: Precision = "auto",
) -> str:
    """Makes ``encoder``, loaded from ``folder`` in float32 on the CPU, compute with another backend.

    ``int8``: the weights of linear layers in eight bits, one scale a channel; activations are quantised as they come,
    by OpenVINO 32 numbers at a time, by ONNX Runtime a whole batch at once, which is coarser and
    lets a score depend a little on its batch. ``precision`` "bfloat16" lets OpenVINO compute in it; else float32 is
    pinned. The exported files are made once, in ``.evenrank/`` beside the model or, where that cannot be written, in
    the user's cache (``XDG_CACHE_HOME``), and used again while the weights, the settings and the versions of the
    libraries are the same.
    Threads: as many as PyTorch would use.

    Returns what the scores depend on besides the model. Raises as :func:`check_backend`, and InputError for an
    architecture that cannot be exported.
    """
    check_backend(backend, int8, precision)
    fingerprint = _fingerprint(folder, backend, int8)
    towers = {name: part for name, part in encoder.named_modules() if hasattr(part, "transformer_task")}
    if not towers:
        raise InputError(folder.path, f"the backend {backend} cannot run this kind of model")
    for tower in towers.values():
        if tower.transformer_task not in _TASKS or tower.modality_config.get("text", {}).get("method") != "forward":
            raise InputError(folder.path, f"the backend {backend} cannot run this kind of model")
        tower.model.eval()
    files = {name: f"{number}.{'xml' if backend == 'openvino' else 'onnx'}" for number, name in enumerate(towers)}
    place = _kept(folder, f"{backend}{'-int8' if int8 else ''}-", fingerprint[:16])
    if place is None:
        place = _built(folder, f"{backend}{'-int8' if int8 else ''}-", fingerprint[:16], towers, files, int8)
    for name, tower in towers.items():
        names = _names(tower)
        # A cross-encoder's batches are independent of one another.
        parallel = tower.transformer_task == "sequence-classification"
        session = _session(place / files[name], names, backend, precision, int8=int8, parallel=parallel)
        tower.model = Exported(tower.model, _output(tower), session)
    return f"{fingerprint} {precision}"


def _fingerprint(folder: ModelFolder, backend: Backend, int8: bool) -> str:
    libraries = {name: version(name) for name in ("torch", "transformers", "sentence-transformers", *_NEEDED[backend])}
    settings = [folder.digest(), folder.architecture, backend, int8, int8 and _reduced(), _OPSET, _VERSION, libraries]
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()


def _reduced() -> bool:
    """Whether ONNX Runtime's weights need seven bits: without VNNI, products of eight bits overflow on x86."""
    found = torch.cpu.get_capabilities()
    return found.get("architecture") == "x86_64" and not (found.get("avx512_vnni") or found.get("avx_vnni"))


def _homes(folder: ModelFolder) -> list[Path]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [folder.path / CACHE, cache / "evenrank"]


def _kept(folder: ModelFolder, prefix: str, fingerprint: str) -> Path | None:
    places = [home / (prefix + fingerprint) for home in _homes(folder)]
    return next((place for place in places if place.is_dir()), None)


def _built(
    folder: ModelFolder,
    prefix: str,
    fingerprint: str,
    towers: dict[str, Transformer],
    files: dict[str, str],
    int8: bool,
) -> Path:
    """The folder with the files of all towers, which takes its name when they are complete."""
    problem = ""
    for home in _homes(folder):
        place = home / (prefix + fingerprint)
        with ExitStack() as stack:
            try:
                home.mkdir(parents=True, exist_ok=True)
                part = stack.enter_context(folder_within(home, prefix.rstrip("-")))
            except OSError as error:
                problem = f"{home} cannot be written: {error.strerror or error}"
                continue
            try:
                for name, tower in towers.items():
                    _export(folder, tower, part / files[name], int8)
                if home.name == CACHE:
                    # Files for other weights or of other versions in the same folder are no longer needed.
                    for old in home.glob(f"{prefix}{'[0-9a-f]' * len(fingerprint)}"):
                        shutil.rmtree(old, ignore_errors=True)
                for made in (part, *part.rglob("*")):
                    made.chmod(usual_mode(place, 0o777 if made.is_dir() else 0o666))
                part.rename(place)
            except OSError as error:
                # Another process may have been faster.
                if not place.is_dir():
                    raise InputError(place, f"cannot be written: {error.strerror or error}") from None
        return place
    raise InputError(folder.path, f"no place for the exported model: {problem}")


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


def _export(folder: ModelFolder, tower: Transformer, target: Path, int8: bool) -> None:
    names, output = _names(tower), _output(tower)
    pair = tower.transformer_task == "sequence-classification"
    texts = [["a b c d", "e"], ["a", "b"]] if pair else ["a b c d", "a"]
    features = tower.preprocess(texts)
    # Eager attention uses only operators that every version has.
    before = tower.model.config._attn_implementation
    tower.model.set_attn_implementation("eager")
    plain = target.with_suffix(".plain.onnx")
    axes = {name: {0: "batch", 1: "length"} for name in names}
    axes["output"] = {0: "batch"} if pair else {0: "batch", 1: "length"}
    try:
        with warnings.catch_warnings(), torch.inference_mode():
            # Of the older exporter, and of shapes that are read while tracing.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                _Traced(tower.model, names, output),
                tuple(features[name] for name in names),
                str(plain),
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
    backend: Backend = "openvino" if target.suffix == ".xml" else "onnx"
    if pair:
        keep_first_token(plain)
    _compare(folder, tower, _session(plain, names, backend), pair)
    if backend == "openvino":
        import openvino

        converted = openvino_core().read_model(str(plain))
        if int8:
            _compress(converted)
        openvino.save_model(converted, str(target), compress_to_fp16=False)
        for file in target.parent.glob(f"{plain.name}*"):
            file.unlink()
    elif int8:
        _quantise(plain, target)
        plain.unlink()
    else:
        plain.replace(target)


def _compress(model: Any) -> None:
    """Has an OpenVINO model keep the weights of its linear layers [out, in] as int8 × scale [out, 1]."""
    from openvino import opset13 as operators

    for node in model.get_ordered_ops():
        constant = node.input_value(1).get_node() if node.get_type_name() == "MatMul" else None
        if constant is None or constant.get_type_name() != "Constant":
            continue
        flags = node.get_attributes()
        weights = constant.data if flags["transpose_b"] else constant.data.T
        scale = np.maximum(np.abs(weights).max(1, keepdims=True), 1e-12).astype(np.float32) / 127
        kept = operators.constant(np.round(weights / scale).astype(np.int8))
        product = operators.multiply(operators.convert(kept, "f32"), operators.constant(scale))
        linear = operators.matmul(node.input_value(0), product, flags["transpose_a"], True)
        linear.set_friendly_name(node.get_friendly_name())
        for user in node.output(0).get_target_inputs():
            user.replace_source_output(linear.output(0))


def _quantise(source: Path, target: Path) -> None:
    import logging

    from onnxruntime.quantization import QuantType, quantize_dynamic

    # It recommends a preprocessing step for images.
    logging.disable(logging.WARNING)
    try:
        quantize_dynamic(
            str(source),
            str(target),
            op_types_to_quantize=["MatMul"],
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=_reduced(),
        )
    finally:
        logging.disable(logging.NOTSET)


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
    file: Path,
    names: list[str],
    backend: Backend,
    precision: Precision = "float32",
    *,
    int8: bool = False,
    parallel: bool = False,
) -> Session:
    if backend == "onnx":
        return OnnxSession(file, names)
    return OpenVinoSession(file, names, precision, int8=int8, parallel=parallel)
