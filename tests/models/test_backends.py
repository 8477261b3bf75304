"""``evenrank rerank`` with ONNX Runtime and OpenVINO, and with kernel rankers."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenrank.files import EvenrankError, InputError, MissingExtraError, Run
from evenrank.models.rerank import rerank
from ranker_factories import knrm
from tiny_models import texts, tiny_bert

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
onnx = pytest.importorskip("onnx", reason="needs the extra [export]")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra [export]")
pytest.importorskip("openvino", reason="needs the extra [export]")

from evenrank.models import export
from evenrank.models.encoders import CatRanker, DotRanker
from evenrank.models.load import find_model, load_ranker

Data = tuple[Run, pl.DataFrame, pl.DataFrame]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    CatRanker.from_pretrained(str(tiny_bert(folder / "two", layers=2))).save(folder / "cat")
    bert = str(tiny_bert(folder / "bert", layers=1))
    DotRanker.from_pretrained(bert, projection=8, similarity="cosine", pooling="mean").save(folder / "dot")
    DotRanker.from_pretrained(bert, shared=False, projection=8).save(folder / "towers")
    return {name: folder / name for name in ("cat", "dot", "towers")}


def scores(data: Data, model: Any, **settings: Any) -> Any:
    run, collection, queries = data
    model = str(model) if isinstance(model, Path) else model
    result = rerank(run, model=model, collection=collection, queries=queries, batch_size=4, **settings)
    return result.table.sort("query_id", "doc_id")["score"].to_numpy()


@pytest.mark.parametrize("name", ["cat", "dot", "towers"])
def test_back_ends_score_and_truncate_as_torch(models: dict[str, Path], name: str) -> None:
    queries, passages = texts(40, 5), texts(40, 100, 1)
    exact = load_ranker(models[name], device="cpu")
    expected = exact.score(queries, passages, 2)
    assert expected.std() > 0.03
    assert exact.truncated is not None
    assert exact.truncated.cut > 5
    backends: tuple[Any, ...] = ("onnx", "openvino")
    for backend in backends:
        other = load_ranker(models[name], backend=backend)
        np.testing.assert_allclose(other.score(queries, passages, 2), expected, atol=1e-4)
        assert other.truncated == exact.truncated
        assert other.facts() == {**exact.facts(), "backend": backend}


def test_openvino_computes_in_bfloat16_only_when_asked(data: Data, models: dict[str, Path]) -> None:
    exact, rough = (scores(data, models["cat"], backend="openvino", precision=p) for p in ("auto", "bfloat16"))
    assert np.corrcoef(rough, exact)[0, 1] > 0.99
    if torch.cpu.get_capabilities().get("avx512_bf16") or torch.cpu.get_capabilities().get("amx_bf16"):
        assert np.abs(rough - exact).max() > 1e-5


def test_an_export_that_fails_leaves_nothing(
    data: Data, models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = models["cat"]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = sorted(model.rglob("*"))
    with monkeypatch.context() as patched:
        run = onnxruntime.InferenceSession.run
        patched.setattr(onnxruntime.InferenceSession, "run", lambda *given: [run(*given)[0] + 0.01])
        message = r"cat: the exported model computes something else: use the backend torch$"
        with pytest.raises(InputError, match=message):
            scores(data, model, backend="onnx")
    assert (sorted(model.rglob("*")), list(tmp_path.iterdir())) == (files, [])

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such operator\nsecond line")

    monkeypatch.setattr(torch.onnx, "export", fail)
    message = r"cat: the model cannot be exported \(RuntimeError: no such operator\)$"
    with pytest.raises(InputError, match=message):
        scores(data, model, backend="onnx")
    assert (sorted(model.rglob("*")), list(tmp_path.iterdir())) == (files, [])


NO_EXTRA = 'the backend {} needs the extra [export]: pip install "evenrank[export]"'


@pytest.mark.parametrize(
    ("settings", "missing", "message"),
    [
        ({"backend": "tensorrt"}, "", "`backend`: expected torch, onnx or openvino, found 'tensorrt'"),
        ({"backend": "onnx", "precision": "bfloat16"}, "", "`precision`: the backend onnx has no bfloat16"),
        ({"backend": "onnx", "device": "cuda"}, "", "`device`: the backend onnx computes on the cpu, found 'cuda'"),
        ({"backend": "onnx"}, "onnxruntime", NO_EXTRA.format("onnx")),
        ({"backend": "openvino"}, "openvino", NO_EXTRA.format("openvino")),
    ],
)
def test_what_is_refused(
    settings: Any, missing: str, message: str, data: Data, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError if missing else EvenrankError) as caught:
        scores(data, models["cat"], **settings)
    assert str(caught.value) == message


CLOSED = """
import sys
from core_commands import CALLED, run_commands
folder, model = sys.argv[1:]
texts = ["--collection", "c.tsv", "--queries", "q.tsv", "--quiet"]
command = ["rerank", "first.run", *texts, "--model", model, "--out", "out.run", "--backend"]
ended = run_commands(folder, [[*command, backend] for backend in ("torch", "onnx")])
from evenrank.models.export import openvino_core
openvino_core()
print(ended, CALLED, sys.modules["openvino_telemetry"])
"""


def test_nothing_is_sent(files: list[str], models: dict[str, Path], tmp_path: Path) -> None:
    """In a process of its own: OpenVINO reports that it was imported."""
    command = [sys.executable, "-c", CLOSED, tmp_path, models["cat"]]
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Where CI is set, it reports nothing.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment |= {"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "[0, 0] [] None\n", done.stderr


def test_kernel_rankers(data: Data, tmp_path: Path) -> None:
    ranker = knrm(seed=1)
    ranker.save(folder := tmp_path / "knrm")
    assert (find_model(str(folder)).architecture, find_model(str(folder)).name) == ("kernel", "knrm")
    assert np.array_equal(scores(data, folder, out=tmp_path / "out.run"), scores(data, ranker))
    for settings, message in (
        ({"backend": "onnx"}, "knrm: kernel rankers need the backend torch and float32"),
        ({"precision": "bfloat16"}, "knrm: kernel rankers need the backend torch and float32"),
        ({"kind": "cross"}, "knrm: a ranker of this library (evenrank.json) has no other `kind`"),
    ):
        with pytest.raises(EvenrankError, match=re.escape(message)):
            scores(data, folder, **settings)


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
