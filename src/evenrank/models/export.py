"""Encoders on a CPU with ONNX Runtime or OpenVINO, exported as they are loaded.

Only the transformer is exported; tokenising, prompts, pooling, projection and similarity stay those of the
sentence-transformers model, which calls the exported transformer as it called its own.
"""

from __future__ import annotations

import functools
import sys
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from evenrank.files import EvenrankError, InputError
from evenrank.files.errors import arg, quoted, require
from evenrank.files.types import Array

from .load import Backend, ModelFolder, Precision
from .scorers import Rows

if TYPE_CHECKING:
    from openvino import Core, InferRequest
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from sentence_transformers.base.modules import Transformer

# Batches of pairs that are tokenised at once, and then sorted by their number of tokens.
_TOKENISED = 8
# Lengths are rounded up to a multiple: each new shape costs OpenVINO about as much as two pairs.
_LENGTHS = 4


class Session(ABC):
    """An exported transformer, ready to run; ``names``: of its inputs, in order."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)

    @abstractmethod
    def run(self, values: Sequence[Array]) -> Array:
        """The output for the inputs ``names`` of one batch."""

    def each(self, batches: Iterable[tuple[Rows, list[Array]]]) -> Iterator[tuple[Rows, Array]]:
        """The outputs of batches, in any order, each with the rows that came with it."""
        for rows, values in batches:
            yield rows, self.run(values)


class OnnxSession(Session):
    """ONNX Runtime, with as many threads as PyTorch would use."""

    def __init__(self, file: Path, names: Sequence[str]) -> None:
        import onnxruntime

        super().__init__(names)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])

    def run(self, values: Sequence[Array]) -> Array:
        output: Array = self._session.run(None, dict(zip(self.names, values, strict=True)))[0]
        return output


_loading = threading.Lock()


def openvino_core() -> Core:
    """OpenVINO, loaded once and kept.

    Each core has the process handle signals on a stack of its own, and puts back the one before it when it goes. Of two
    that go in the order they came, that one is gone already, and the next signal, an interrupt say, ends the process.
    """
    with _loading:
        return _core()


@functools.cache
def _core() -> Core:
    return _openvino().Core()


def _openvino() -> ModuleType:
    """OpenVINO, which reports to its makers that it was imported unless a package is missing."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    return openvino  # type: ignore[no-any-return]


class OpenVinoSession(Session):
    """OpenVINO, with as many threads as PyTorch would use.

    ``parallel``: whether each thread computes a batch of its own, so that none waits for another inside a batch.
    """

    def __init__(self, file: Path, names: Sequence[str], precision: Precision, *, parallel: bool = False) -> None:
        super().__init__(names)
        threads = torch.get_num_threads()
        settings: dict[str, object] = {
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bfloat16" else "f32",
            "INFERENCE_NUM_THREADS": threads,
            **({"NUM_STREAMS": threads} if parallel else {"PERFORMANCE_HINT": "LATENCY"}),
        }
        core = openvino_core()
        compiled = core.compile_model(core.read_model(str(file)), "CPU", settings)
        # One waits while each thread computes.
        self._queue = _openvino().AsyncInferQueue(compiled, threads + 1) if parallel else None
        self._request = compiled.create_infer_request()

    def run(self, values: Sequence[Array]) -> Array:
        output: Array = self._request.infer(dict(zip(self.names, values, strict=True)), share_inputs=True)[0]
        return output

    def each(self, batches: Iterable[tuple[Rows, list[Array]]]) -> Iterator[tuple[Rows, Array]]:
        queue = self._queue
        if queue is None:
            yield from super().each(batches)
            return
        done: list[tuple[Rows, Array]] = []

        def keep(request: InferRequest, given: tuple[Rows, dict[str, Array]]) -> None:
            done.append((given[0], request.get_output_tensor(0).data.copy()))

        queue.set_callback(keep)
        try:
            for rows, values in batches:
                named = dict(zip(self.names, values, strict=True))
                # What is given with the request keeps the arrays that it shares.
                queue.start_async(named, (rows, named), share_inputs=True)
        finally:
            queue.wait_all()
        yield from done


class Exported(nn.Module):
    """Replaces the transformer of a sentence-transformers model."""

    def __init__(self, model: nn.Module, output: str, session: Session) -> None:
        super().__init__()
        self.config: object = model.config
        self.device, self.dtype = torch.device("cpu"), torch.float32
        self.session = session
        self._output = output

    def forward(self, **features: Tensor) -> dict[str, Tensor]:
        values = [features[name].numpy() for name in self.session.names]
        return {self._output: torch.from_numpy(self.session.run(values))}


def scores_pairs(model: CrossEncoder) -> bool:
    """Whether a cross-encoder is an exported transformer and nothing more, whose output is the score."""
    return len(model) == 1 and isinstance(getattr(model[0], "model", None), Exported)


def pair_scores(model: CrossEncoder, texts: Sequence[tuple[str, str]], prompt: str | None, batch_size: int) -> Array:
    """The scores [pairs] float32 of an exported cross-encoder for which :func:`scores_pairs`.

    Pairs are tokenised beside the scoring of those before them, and batched by their number of tokens.
    """
    session = model[0].model.session
    order = np.argsort([-len(query) - len(passage) for query, passage in texts], kind="stable")

    def batches() -> Iterator[tuple[Rows, list[Array]]]:
        for start in range(0, len(order), _TOKENISED * batch_size):
            rows = order[start : start + _TOKENISED * batch_size]
            features = model.preprocess([texts[row] for row in rows], prompt=prompt)
            for places, values in by_length({name: features[name].numpy() for name in session.names}, batch_size):
                yield rows[places], values

    scores = np.empty(len(texts), np.float32)
    for rows, output in session.each(batches()):
        scores[rows] = output.reshape(-1)
    return scores


def by_length(features: dict[str, Array], batch_size: int) -> Iterator[tuple[Rows, list[Array]]]:
    """Batches of similar length of ``features`` [N, L], among them ``attention_mask``: their rows, and the features
    without most of the padding, in the same order as given.
    """
    mask = features["attention_mask"]
    lengths = mask.sum(1)
    order = np.argsort(-lengths, kind="stable")
    left = mask.shape[1] > 0 and not mask[:, 0].all()
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        longest = min(-(-int(lengths[rows[0]]) // _LENGTHS) * _LENGTHS, mask.shape[1])
        columns = slice(-longest, None) if left else slice(longest)
        yield rows, [np.ascontiguousarray(values[rows, columns]) for values in features.values()]


PACKAGES = {"torch": (), "onnx": ("onnx", "onnxruntime"), "openvino": ("onnx", "openvino")}
"""What each backend needs besides PyTorch."""
_TASKS = {"feature-extraction", "sequence-classification"}
_OPSET = 17
_TOLERANCE = 1e-3


def check_backend(backend: Backend, precision: Precision, device: str | None) -> None:
    """Raises EvenrankError for a precision or a device that a backend lacks, MissingExtraError without its packages."""
    if precision == "bfloat16" and backend == "onnx":
        raise EvenrankError(f"{arg.precision}: the backend onnx has no bfloat16")
    require(f"the backend {backend}", "export", *PACKAGES[backend])
    if device not in (None, "cpu"):
        raise EvenrankError(f"{arg.device}: the backend {backend} computes on the cpu, found {quoted(device)}")


def use_backend(
    encoder: CrossEncoder | SentenceTransformer, folder: ModelFolder, backend: Backend, precision: Precision
) -> None:
    """Makes ``encoder``, loaded from ``folder`` in float32 on the CPU, compute with another backend.

    ``precision`` "bfloat16" lets OpenVINO compute in it; else float32 is pinned. Threads: as many as PyTorch would use.
    Raises InputError for an architecture that cannot be exported.
    """
    towers = [part for part in encoder.modules() if hasattr(part, "transformer_task")]
    forward = [tower.modality_config.get("text", {}).get("method") == "forward" for tower in towers]
    if not towers or not all(forward) or not {tower.transformer_task for tower in towers} <= _TASKS:
        raise InputError(folder.path, f"the backend {backend} cannot run this kind of model")
    with TemporaryDirectory(prefix="evenrank-") as scratch:
        for number, tower in enumerate(towers):
            traced, file = _Traced(tower), Path(scratch) / f"{number}.onnx"
            _export(folder, tower, traced, file)
            _compare(folder, tower, traced, _session(file, traced.names, backend))
            # A cross-encoder's batches are independent of one another.
            session = _session(file, traced.names, backend, precision, parallel=traced.pair)
            tower.model = Exported(tower.model, traced.output, session)


class _Traced(nn.Module):
    """A transformer with tensors in, by their ``names``, and one tensor out: ``output``, of pairs (``pair``) scores."""

    def __init__(self, tower: Transformer) -> None:
        super().__init__()
        self.model = tower.model
        self.names = sorted(name for name, value in tower.preprocess(["a b"]).items() if isinstance(value, Tensor))
        output = tower.modality_config["text"]["method_output_name"]
        self.output = str(output if isinstance(output, str) else output[0])
        self.pair = tower.transformer_task == "sequence-classification"
        self.eval()

    def forward(self, *values: Tensor) -> Tensor:
        output: Tensor = self.model(**dict(zip(self.names, values, strict=True)), return_dict=True)[self.output]
        return output


def _export(folder: ModelFolder, tower: Transformer, traced: _Traced, target: Path) -> None:
    """Writes a transformer as ONNX. Raises InputError if that fails."""
    features = tower.preprocess([["a b c d", "e"], ["a", "b"]] if traced.pair else ["a b c d", "a"])
    # Eager attention uses only operators that every version has.
    before = tower.model.config._attn_implementation
    tower.model.set_attn_implementation("eager")
    both = {0: "batch", 1: "length"}
    try:
        with warnings.catch_warnings(), torch.inference_mode():
            # Of the older exporter, and of shapes that are read while tracing.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                traced,
                tuple(features[name] for name in traced.names),
                str(target),
                dynamo=False,
                opset_version=_OPSET,
                input_names=traced.names,
                output_names=["output"],
                dynamic_axes=dict.fromkeys(traced.names, both) | {"output": {0: "batch"} if traced.pair else both},
            )
    except Exception as error:  # the exporter can raise anything for an architecture that it does not support
        reason = str(error).strip().split("\n")[0]
        raise InputError(folder.path, f"the model cannot be exported ({type(error).__name__}: {reason})") from None
    finally:
        tower.model.set_attn_implementation(before)


def _compare(folder: ModelFolder, tower: Transformer, traced: _Traced, session: Session) -> None:
    """Raises InputError if the exported transformer computes something else: a trace can miss a branch."""
    texts = ["a b c d e f g h i j k l m n o p", "b", "c d e"]
    features = tower.preprocess([[text, "a"] for text in texts] if traced.pair else texts)
    values = [features[name] for name in traced.names]
    with torch.inference_mode():
        expected = traced(*values)
    actual = torch.from_numpy(session.run([value.numpy() for value in values]))
    if not traced.pair:  # the output for padding is undefined
        mask = features["attention_mask"].bool()
        expected, actual = expected[mask], actual[mask]
    if not torch.allclose(actual, expected, rtol=_TOLERANCE, atol=_TOLERANCE):
        raise InputError(folder.path, "the exported model computes something else: use the backend torch")


def _session(
    file: Path, names: list[str], backend: Backend, precision: Precision = "float32", *, parallel: bool = False
) -> Session:
    if backend == "onnx":
        return OnnxSession(file, names)
    return OpenVinoSession(file, names, precision, parallel=parallel)
