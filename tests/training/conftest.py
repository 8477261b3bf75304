"""The files of a small task, and a run that was trained on it."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenrank.files import Run, write_run
from tiny_models import WORDS, texts, tiny_bert

# Training needs the extra [neural].
_MISSING = not (find_spec("torch") and find_spec("sentence_transformers"))
collect_ignore_glob = ["test_*.py"] if _MISSING else []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _MISSING:
        terminalreporter.write_line("SKIPPED tests/training: needs the extra [neural]")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """transformers, accelerate and datasets warn of what they do themselves."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for category in ("DeprecationWarning", "FutureWarning", "UserWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{category}"))


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a small task: the relevant passage of a query repeats its words."""
    folder = tmp_path_factory.mktemp("task")
    tiny_bert(folder / "model", hidden=16, layers=1)
    rng = np.random.default_rng(0)
    passages = texts(60, 8, seed=1)
    queries = [" ".join(rng.choice(WORDS, 3, replace=False)) for _ in range(24)]
    passages[:24] = [f"{query} {passage}" for query, passage in zip(queries, passages[:24], strict=True)]
    (folder / "c.tsv").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(passages)), encoding="utf-8")
    (folder / "q.tsv").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(queries)), encoding="utf-8")
    (folder / "qrels").write_text("".join(f"{i} 0 {i} 1\n" for i in range(24)), encoding="utf-8")
    rows = [(str(q), str(d), float(rng.random())) for q in range(24) for d in {q, *rng.choice(60, 9, replace=False)}]
    table = pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")
    for name, chosen in (("train", range(16)), ("valid", range(16, 24))):
        part = table.filter(pl.col("query_id").is_in([str(q) for q in chosen]))
        write_run(Run.from_table(part, name), folder / f"{name}.run")
    (folder / "r.toml").write_text(
        f"""
name = "tiny"
[ranker]
kind = "dot"
model = "{folder / "model"}"
query_length = 8
passage_length = 16
[data]
collection = "{folder / "c.tsv"}"
queries = "{folder / "q.tsv"}"
qrels = "{folder / "qrels"}"
run = "{folder / "train.run"}"
negatives = 3
[validation]
queries = "{folder / "q.tsv"}"
qrels = "{folder / "qrels"}"
run = "{folder / "valid.run"}"
depth = 10
depths = [2, 10]
[training]
batch = 4
max_steps = 12
learning_rate = 0.003
evaluate_every = 4
""",
        encoding="utf-8",
    )
    return folder


@pytest.fixture(scope="session")
def done(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the recipe as it stands."""
    from training_runs import fair

    return fair(home / "r.toml", tmp_path_factory.mktemp("run") / "a")


@pytest.fixture(scope="session")
def still(home: Path) -> Path:
    """The same recipe for a model without dropout, whose draws depend on how a batch is split."""
    model = home / "still"
    model.mkdir()
    for path in (home / "model").iterdir():
        (model / path.name).write_bytes(path.read_bytes())
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    toml = (home / "r.toml").read_text(encoding="utf-8").replace(str(home / "model"), str(model))
    (home / "still.toml").write_text(toml, encoding="utf-8")
    return home / "still.toml"


@pytest.fixture(scope="session")
def gendered(still: Path, home: Path) -> Path:
    """The task with gendered passages: every third relevant one male, every third female, the others as they fall."""
    rows = (home / "c.tsv").read_text(encoding="utf-8").splitlines()
    words = (" he his", " she her", "")
    (home / "g.tsv").write_text("".join(f"{row}{words[i % 3]}\n" for i, row in enumerate(rows)), encoding="utf-8")
    toml = still.read_text(encoding="utf-8").replace(str(home / "c.tsv"), str(home / "g.tsv"))
    # The tiny model's inner products are large: their sigmoid has no gradient.
    toml += '[fairness]\nname = "ibbr-ts"\nscore = "softmax"\nweight = 0.5\n'
    (home / "gendered.toml").write_text(toml, encoding="utf-8")
    return home / "gendered.toml"


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("plain") / "bert", hidden=16, layers=1))


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Copies of a run's folder as it is after each checkpoint first saved: what a kill there would leave."""
    from evenrank.training.trainer import CheckpointTrainer

    plain = CheckpointTrainer._save_checkpoint

    def save(self, model, trial):
        plain(self, model, trial)
        kept = tmp_path / "snapshots" / str(self.state.global_step)
        if not kept.exists():
            shutil.copytree(self.folder, kept)

    monkeypatch.setattr(CheckpointTrainer, "_save_checkpoint", save)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    return tmp_path / "snapshots"
