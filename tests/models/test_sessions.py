"""Exported cross-encoders: batches by tokens, and what need not be computed."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiny_models import texts, tiny_bert

pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
onnx = pytest.importorskip("onnx", reason="needs the extra [export]")
pytest.importorskip("onnxruntime", reason="needs the extra [export]")
openvino = pytest.importorskip("openvino", reason="needs the extra [export]")

from evenrank.models import export
from evenrank.models.encoders import CatRanker
from evenrank.models.load import load_ranker


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20), st.integers(1, 6), st.booleans())
def test_batches_keep_every_token(lengths: list[int], batch_size: int, left: bool) -> None:
    mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    mask = (mask[:, ::-1] if left else mask).astype(np.int64)
    ids = np.arange(1, mask.size + 1).reshape(mask.shape) * mask
    seen: list[int] = []
    longest = []
    for rows, (found_ids, found_mask) in export.by_length({"input_ids": ids, "attention_mask": mask}, batch_size):
        assert 1 <= len(rows) <= batch_size
        for row, own_ids, own_mask in zip(rows, found_ids, found_mask, strict=True):
            assert own_ids[own_mask == 1].tolist() == ids[row][mask[row] == 1].tolist()
            assert not own_ids[own_mask == 0].any()
        needed = max(lengths[row] for row in rows)
        assert needed <= found_ids.shape[1] <= needed + 3
        longest.append(needed)
        seen += rows.tolist()
    assert sorted(seen) == list(range(len(lengths)))
    assert longest == sorted(longest, reverse=True)


@pytest.mark.parametrize("backend", ["onnx", "openvino"])
def test_scores_and_truncation_are_those_of_torch(tmp_path: Path, backend: Any) -> None:
    CatRanker.from_pretrained(str(tiny_bert(tmp_path / "bert", layers=2))).save(tmp_path / "cat")
    queries, passages = texts(40, 5), texts(40, 100, 1)
    exact, other = load_ranker(tmp_path / "cat"), load_ranker(tmp_path / "cat", backend=backend)
    expected = exact.score(queries, passages, 2)
    np.testing.assert_allclose(other.score(queries, passages, 2), expected, atol=1e-4)
    np.testing.assert_allclose(other.score(queries[:1], passages[:1], 2), expected[:1], atol=1e-4)
    exact.score(queries[:1], passages[:1], 2)
    assert other.truncated == exact.truncated
    assert exact.truncated is not None
    assert exact.truncated.cut > 5
    assert other.facts() == {**exact.facts(), "backend": backend}


def test_a_signal_is_handled_after_models_that_went_in_the_order_they_came(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "sum", values[:1], values[1:])
    # As other libraries read it, too.
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, str(tmp_path / "sum.onnx"))
    kept = [export.OpenVinoSession(tmp_path / "sum.onnx", ["x"], "float32") for _ in range(2)]
    assert kept[0].run([np.ones((1, 2), np.float32)]).tolist() == [[2, 2]]
    while kept:
        kept.pop(0)
        gc.collect()
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIGUSR1]
