"""Exported transformers as ONNX Runtime and OpenVINO run them."""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from evenrank.io.types import Array

from .pairs import Rows

if TYPE_CHECKING:
    from openvino import Core, InferRequest
    from sentence_transformers import CrossEncoder

    from .models import Precision

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
        found: Array = self._session.run(None, dict(zip(self.names, values, strict=True)))[0]
        return found


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
    import openvino

    return openvino.Core()


class OpenVinoSession(Session):
    """OpenVINO, with as many threads as PyTorch would use.

    ``parallel``: whether each thread computes a batch of its own, so that none waits for another inside a batch.
    """

    def __init__(self, file: Path, names: Sequence[str], precision: Precision, *, parallel: bool = False) -> None:
        import openvino

        super().__init__(names)
        threads = torch.get_num_threads()
        settings: dict[str, object] = {
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bfloat16" else "f32",
            "INFERENCE_NUM_THREADS": threads,
            **({"NUM_STREAMS": threads} if parallel else {"PERFORMANCE_HINT": "LATENCY"}),
        }
        core = openvino_core()
        model = core.read_model(str(file))
        self._compiled = core.compile_model(model, "CPU", settings)
        # One waits while each thread computes.
        self._queue = openvino.AsyncInferQueue(self._compiled, threads + 1) if parallel else None
        self._request = None if parallel else self._compiled.create_infer_request()

    def run(self, values: Sequence[Array]) -> Array:
        if self._request is None:
            self._request = self._compiled.create_infer_request()
        found: Array = self._request.infer(dict(zip(self.names, values, strict=True)), share_inputs=True)[0]
        return found

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
    for rows, found in session.each(batches()):
        scores[rows] = found.reshape(-1)
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
        kept = slice(-longest, None) if left else slice(longest)
        yield rows, [np.ascontiguousarray(values[rows, kept]) for values in features.values()]
