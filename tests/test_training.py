"""Whole training runs with a tiny bi-encoder: what they leave, resuming, several processes, and what stops them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

from safetensors.torch import load_file  # noqa: E402

from evenrank.io import EvenrankError, Run, read_run, write_run  # noqa: E402
from evenrank.training.recipes import Recipe, load_recipe  # noqa: E402
from evenrank.training.run import train  # noqa: E402
from tiny_models import WORDS, texts, tiny_bert  # noqa: E402

# transformers and accelerate warn of what they do themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
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


def recipe(home: Path, out: Path, *settings: str) -> Recipe:
    return load_recipe(home / "r.toml", [f'out="{out}"', *settings])


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def everything(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file's content and when it was written."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def assert_same(first: Path, second: Path, tolerance: float = 0.0) -> None:
    a, b = weights(first), weights(second)
    assert a.keys() == b.keys()
    for name in a:
        if tolerance and name.endswith("key.bias"):
            # No score depends on it, so its gradient is rounding, which Adam makes as large as any other.
            continue
        torch.testing.assert_close(a[name], b[name], rtol=0, atol=tolerance, msg=name)


@pytest.fixture(scope="module")
def done(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(recipe(home, tmp_path_factory.mktemp("run") / "a"))


def test_what_a_run_leaves(home, done):
    assert load_recipe(done / "recipe.toml") == recipe(home, done)
    result = json.loads((done / "result.json").read_text(encoding="utf-8"))
    assert result["steps"] == 12
    assert result["depth"] in (2, 10)
    assert result["groups"] == {"queries": 16, "without_positive": 0, "without_negative": 0}
    assert json.loads((done / "versions.json").read_text(encoding="utf-8"))["torch"] == torch.__version__
    lines = [json.loads(line) for line in (done / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    validations = [line["eval_validation"] for line in lines if "eval_validation" in line]
    assert len(validations) == 3
    assert result["value"] >= max(validations) - 1e-9
    losses = [line["loss"] for line in lines if "loss" in line]
    assert len(losses) == 12
    card = (done / "model" / "README.md").read_text(encoding="utf-8")
    assert 'SentenceTransformer("PATH OF THIS FOLDER")' in card
    assert "NFaiRR@10" in card
    assert f"{result['value']:.4f}" in card
    assert set(json.loads((done / "audit.json").read_text())["runs"]) == {
        "first stage",
        "tiny",
        "random",
        "neutral-first",
    }
    assert read_run(done / "validation.run").queries.len() == 8


def test_a_run_says_what_it_was_made_from(home, done):
    result, audit = (json.loads((done / name).read_text())["provenance"] for name in ("result.json", "audit.json"))
    assert result["files"] == audit["files"]
    assert result["command"] == "evenrank.training.run.train"
    assert result["versions"]["torch"] == torch.__version__
    found = {file["role"]: file for file in result["files"]}
    read = {"collection": "c.tsv", "queries": "q.tsv", "qrels": "qrels", "run": "train.run"}
    read |= {"validation queries": "q.tsv", "validation qrels": "qrels", "validation run": "valid.run"}
    for role, name in read.items():
        assert found[role]["sha256"] == hashlib.sha256((home / name).read_bytes()).hexdigest(), role
    model = sorted(path for path in (home / "model").rglob("*") if path.is_file())
    names = sorted((path.relative_to(home / "model").as_posix(), path) for path in model)
    lines = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n" for name, path in names)
    assert found["model"]["sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    assert found["model"]["files"] == len(model)
    assert set(found) == {*read, "model"}
    card = (done / "model" / "README.md").read_text(encoding="utf-8")
    assert f"run: {home / 'train.run'} (sha256 {found['run']['sha256']})" in card


def test_the_best_checkpoint_is_kept(home, done):
    from evenrank.rankers.dot import DotRanker

    result = json.loads((done / "result.json").read_text(encoding="utf-8"))
    best = load_file(done / "checkpoints" / result["best_checkpoint"] / "model.safetensors")
    ranker = DotRanker.load(done / "model")
    for name, value in ranker.state_dict().items():
        torch.testing.assert_close(value, best[name], rtol=0, atol=0)


def test_the_same_seed_gives_the_same_weights_and_another_does_not(home, done, tmp_path):
    assert_same(done, train(recipe(home, tmp_path / "b")))
    other = train(recipe(home, tmp_path / "c", "training.seed=1"))
    with pytest.raises(AssertionError):
        assert_same(done, other)


KILLED = """
import os, signal, sys
from evenrank.training import trainer
from evenrank.training.recipes import load_recipe
from evenrank.training.run import train

plain = trainer.RankingTrainer.training_step
steps = 0

def step(self, *arguments, **named):
    global steps
    steps += 1
    if steps == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(self, *arguments, **named)

trainer.RankingTrainer.training_step = step
train(load_recipe(sys.argv[1], [f'out="{sys.argv[2]}"']))
"""


def test_a_killed_run_resumes_to_the_same_weights(home, done, tmp_path):
    command = [sys.executable, "-c", KILLED, str(home / "r.toml"), str(tmp_path / "k")]
    killed = subprocess.run(command, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert not (tmp_path / "k" / "model").exists()
    assert sorted(path.name for path in (tmp_path / "k" / "checkpoints").iterdir()) == ["checkpoint-4", "checkpoint-8"]
    with pytest.raises(EvenrankError, match="there is a run already"):
        train(recipe(home, tmp_path / "k"))
    assert_same(done, train(recipe(home, tmp_path / "k"), resume=True))


WORLD = """
import sys
import torch.distributed
from evenrank.training import trainer
from evenrank.training.recipes import load_recipe
from evenrank.training.run import train

plain = trainer.RankingTrainer.training_step

def step(self, *arguments, **named):
    assert torch.distributed.get_world_size() == 2
    assert self.accelerator.num_processes == 2
    return plain(self, *arguments, **named)

trainer.RankingTrainer.training_step = step
train(load_recipe(sys.argv[1], [f'out="{sys.argv[2]}"', "training.batch=3"]))
"""


@pytest.fixture(scope="module")
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


def test_the_loss_falls(still, tmp_path):
    found = train(
        load_recipe(still, [f'out="{tmp_path / "l"}"', "training.max_steps=32", "training.evaluate_every=32"])
    )
    lines = [json.loads(line) for line in (found / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert np.mean(losses[-3:]) < 0.7 * np.mean(losses[:3])


@pytest.mark.slow
def test_two_processes_train_to_the_weights_of_one_with_the_doubled_batch(still, tmp_path):
    (tmp_path / "world.py").write_text(WORLD, encoding="utf-8")
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--rdzv_backend", "c10d",
        "--rdzv_endpoint", "127.0.0.1:0", str(tmp_path / "world.py"), str(still), str(tmp_path / "two"),
    ]  # fmt: skip
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr.decode()[-3000:]
    # 16 queries: the last batch of an epoch has 4, and those that fill it up for the second process do not count.
    one = train(load_recipe(still, [f'out="{tmp_path / "one"}"', "training.batch=6"]))
    assert_same(one, tmp_path / "two", tolerance=2e-5)
    for first, second in zip(logged(one), logged(tmp_path / "two"), strict=True):
        assert first.get("loss") == pytest.approx(second.get("loss"), abs=1e-5)


def test_cached_gradients_train_to_the_same_weights(still, tmp_path):
    ways = [], ["training.cached=5"], ["training.batch=2", "training.accumulation=2"]
    runs = [
        train(load_recipe(still, [f'out="{tmp_path / str(i)}"', "training.max_steps=4", *way]))
        for i, way in enumerate(ways)
    ]
    assert_same(runs[0], runs[1], tolerance=2e-5)
    # Two batches of two accumulated are one batch of four.
    assert_same(runs[0], runs[2], tolerance=2e-5)


def test_a_loss_that_is_no_number_stops_and_keeps_the_checkpoint(home, tmp_path, monkeypatch):
    from evenrank.training import trainer

    calls = 0

    def broken(scores, labels, mask):
        nonlocal calls
        calls += 1
        return scores.sum() * (float("nan") if calls == 6 else 1.0)

    monkeypatch.setitem(trainer.LOSSES, "nll", broken)
    with pytest.raises(EvenrankError) as error:
        train(recipe(home, tmp_path / "n"))
    assert "step 6: the loss is nan (batch of the queries " in str(error.value)
    assert str(error.value).endswith(f"; the last checkpoint in {tmp_path / 'n' / 'checkpoints'} is kept")
    kept = tmp_path / "n" / "checkpoints"
    assert [path.name for path in kept.iterdir()] == ["checkpoint-4"]
    assert (kept / "checkpoint-4" / "model.safetensors").is_file()


def test_training_stops_when_validation_no_longer_improves(home, tmp_path):
    found = train(recipe(home, tmp_path / "e", "training.learning_rate=1e-12", "training.patience=1"))
    assert json.loads((found / "result.json").read_text(encoding="utf-8"))["steps"] == 8


def test_learning_rates_by_parameter_group(home, tmp_path):
    with pytest.raises(EvenrankError, match=r"training\.learning_rates: no parameter group kernels"):
        train(recipe(home, tmp_path / "g", "training.learning_rates.kernels=0.1"))
    made = train(recipe(home, tmp_path / "f", "training.learning_rates={embeddings = 0.0, encoder = 0.01}"))
    before, after = load_file(home / "model" / "model.safetensors"), weights(made)
    frozen = [name for name in before if name in after and torch.equal(before[name], after[name])]
    changed = [name for name in before if name in after and name not in frozen]
    assert frozen
    assert all(".embeddings." in f".{name}" or "pooler" in name for name in frozen)
    assert any(".layer." in name for name in changed)


def test_resuming_needs_the_same_recipe(home, done, tmp_path):
    with pytest.raises(EvenrankError, match="there is no run to resume"):
        train(recipe(home, tmp_path / "none"), resume=True)
    with pytest.raises(EvenrankError, match="this run was started with another recipe"):
        train(recipe(home, done, "training.batch=8"), resume=True)


def test_the_command(home, tmp_path, evenrank):
    ended = evenrank("train", home / "r.toml", "--set", f"out={tmp_path / 'r'}", "--set", "training.max_steps=4")
    assert ended.status == 0, ended.err
    assert ended.out == str(tmp_path / "r" / "model") + "\n"
    result = json.loads((tmp_path / "r" / "result.json").read_text(encoding="utf-8"))
    figures = (
        f"nDCG@10 on the validation queries: {result['value']:.4f} with the first {result['depth']} passages re-ranked,"
        f" {result['first_stage']:.4f} as the first stage ranks them"
    )
    assert figures in ended.err.splitlines()
    assert figures in (tmp_path / "r" / "model" / "README.md").read_text(encoding="utf-8")
    # Off a terminal there is no bar, and nothing for a training of a second.
    assert "\r" not in ended.err
    assert "training steps" not in ended.err
    ended = evenrank("train", home / "r.toml", "--set", "training.batches=4")
    assert ended.status == 2
    assert "unknown key training.batches (allowed: epochs, " in ended.err
    empty = tmp_path / "empty"
    empty.mkdir()
    ended = evenrank("train", home / "r.toml", "--set", f"ranker.model={empty}", "--set", f"out={tmp_path / 'x'}")
    assert ended.status == 2
    assert ended.err == f"evenrank: {empty}: the folder holds no weights: expected model.safetensors\n"
    assert not (tmp_path / "x").exists()


def test_a_trained_ranker_is_gone_on_with(home, done, tmp_path):
    settings = [f'ranker.model="{done / "model"}"', "training.max_steps=1", "training.learning_rate=1e-12"]
    # What the recipe says of a new ranker does not matter: the folder says it.
    further = train(recipe(home, tmp_path / "t", *settings, "ranker.dimensions=4"))
    assert_same(done, further, tolerance=1e-6)


# --- the fair term ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
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


def fair(recipe: Path, out: Path, *settings: str) -> Path:
    return train(load_recipe(recipe, [f'out="{out}"', *settings]))


def logged(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("term", ["ibbr-ts", "ibbr-pd"])
def test_the_fair_term_does_not_depend_on_how_the_batch_is_split(gendered, tmp_path, term):
    ways = {
        "whole": ["training.batch=8"],
        "pieces": ["training.batch=2", "training.accumulation=4"],
        "cached": ["training.batch=8", "training.cached=5"],
        "both": ["training.batch=4", "training.accumulation=2", "training.cached=5"],
        "none": ["training.batch=8", "fairness.weight=0"],
    }
    common = [f"fairness.name={term}", "training.max_steps=4"]
    runs = {name: fair(gendered, tmp_path / name, *common, *way) for name, way in ways.items()}
    for name in ("pieces", "cached", "both"):
        assert_same(runs["whole"], runs[name], tolerance=2e-5)
    with pytest.raises(AssertionError):
        assert_same(runs["whole"], runs["none"], tolerance=2e-5)
    first, pieces = (logged(runs[name])[0] for name in ("whole", "pieces"))
    assert first["loss"] == pytest.approx(first["rank_loss"] + 0.5 * first["fair_loss_gender"], abs=1e-4)
    for key in ("loss", "rank_loss", "fair_loss_gender", "delta_aprf_gender", "lacking_a_group_gender"):
        assert first[key] == pytest.approx(pieces[key], abs=2e-4), key


def test_dropout_is_drawn_again_for_accumulated_pieces(home, gendered, tmp_path):
    # The same numbers in the pass that finds the term's gradient and in the one that learns: the loss is the sum.
    settings = [f'ranker.model="{home / "model"}"', "training.batch=4", "training.accumulation=2"]
    found = logged(fair(gendered, tmp_path / "d", "training.max_steps=2", *settings))[0]
    assert found["loss"] == pytest.approx(found["rank_loss"] + 0.5 * found["fair_loss_gender"], abs=1e-4)


def test_a_batch_that_lacks_a_group_is_counted(gendered, tmp_path):
    found = logged(fair(gendered, tmp_path / "l", "training.batch=1", "training.max_steps=3"))
    assert sum(line.get("lacking_a_group_gender", 0) for line in found) == 3
    assert all(line["fair_loss_gender"] == 0 for line in found if "fair_loss_gender" in line)


def test_several_attributes_are_summed(gendered, home, tmp_path):
    (home / "number.toml").write_text(
        'groups = ["a", "b", "c"]\n[words]\na = ["he", "his"]\nb = ["she", "her"]\nc = ["it"]\n', encoding="utf-8"
    )
    second = f'fairness.attributes=[{{}}, {{name = "other", lexicon = "{home / "number.toml"}", poles = "a,b"}}]'
    settings = ["training.batch=8", "training.max_steps=2"]
    one = fair(gendered, tmp_path / "1", *settings, "fairness.weight=1")
    both = fair(gendered, tmp_path / "2", *settings, second)
    line = logged(both)[0]
    assert line["fair_loss_gender"] == line["fair_loss_other"] > 0
    # The same groups twice at half the weight are once at the whole.
    assert_same(one, both, tolerance=2e-5)
    assert set(json.loads((both / "result.json").read_text())["delta_aprf"]) == {"gender", "other"}
    settings = [f'fairness.attributes=[{{lexicon = "{home / "number.toml"}"}}]']
    with pytest.raises(EvenrankError, match="number has the groups a, b, c: poles says which two to balance"):
        fair(gendered, tmp_path / "3", *settings)


@pytest.mark.parametrize("kind", ["knrm", "cat"])
def test_the_fair_term_works_with_any_ranker(gendered, tmp_path, kind):
    lines = gendered.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if kind == "cat" or not line.startswith("model = ")]
    (tmp_path / "r.toml").write_text("\n".join(kept), encoding="utf-8")
    settings = [f"ranker.kind={kind}", "ranker.vector_size=8", "training.batch=8", "training.max_steps=6"]
    settings += ["training.learning_rate=0.05", "fairness.score=identity"]
    runs = [fair(tmp_path / "r.toml", tmp_path / w, *settings, f"fairness.weight={w}") for w in ("10", "0")]
    first, second = ([line["rank_loss"] for line in logged(run) if "rank_loss" in line] for run in runs)
    assert first[0] == pytest.approx(second[0])
    assert first[-1] != second[-1]
    # The card's own code loads the model.
    card = (runs[0] / "model" / "README.md").read_text(encoding="utf-8")
    code = card.partition("```python\n")[2].partition("```")[0].replace("PATH OF THIS FOLDER", str(runs[0] / "model"))
    loaded: dict[str, object] = {}
    exec(code, loaded)
    assert callable(loaded["model"])


@pytest.mark.parametrize("weight", ["auto", "dual"])
def test_a_weight_that_changes_goes_on_after_a_kill(gendered, tmp_path, weight):
    settings = [f"fairness.weight={weight}", "training.batch=8", "fairness.rate=0.1"]
    done = fair(gendered, tmp_path / "d", *settings)
    changing = [line["fair_weight_gender"] for line in logged(done) if "fair_weight_gender" in line]
    assert len(set(changing)) > 2
    script = KILLED.replace('sys.argv[2]}"', f'sys.argv[2]}}"\', *{settings!r}, \'name="tiny"')
    command = [sys.executable, "-c", script, str(gendered), str(tmp_path / "k")]
    killed = subprocess.run(command, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    resumed = train(load_recipe(gendered, [f'out="{tmp_path / "k"}"', *settings]), resume=True)
    assert_same(done, resumed)
    last = {line["step"]: line["fair_weight_gender"] for line in logged(resumed) if "fair_weight_gender" in line}
    assert last[12] == changing[-1]


def test_the_best_weight_of_a_grid_becomes_the_model(gendered, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    settings = ["fairness.weight=[0.1, 5]", "training.batch=8", "training.max_steps=4"]
    folder = fair(gendered, tmp_path / "grid", *settings)
    grid = json.loads((folder / "grid.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in grid["weights"]] == ["without", "weight-0.1", "weight-5"]
    allowed = [row for row in grid["weights"][1:] if row["value"] >= 0.95 * grid["weights"][0]["value"]]
    expected = min(allowed, key=lambda row: row["abs_delta_aprf"])["name"] if allowed else "without"
    assert grid["best"] == expected
    assert_same(folder, folder / expected)
    assert json.loads((folder / "result.json").read_text(encoding="utf-8"))["best"] == expected
    # Resuming does nothing again.
    before = everything(folder)
    train(load_recipe(gendered, [f'out="{folder}"', *settings]), resume=True)
    assert everything(folder) == before
    # A grid that was stopped within its last training goes on to the same end.
    for path in (folder / "result.json", folder / "grid.json", folder / "weight-5" / "result.json"):
        path.unlink()
    train(load_recipe(gendered, [f'out="{folder}"', *settings]), resume=True)
    assert {path: content for path, (content, _) in everything(folder).items()} == {
        path: content for path, (content, _) in before.items()
    }


@pytest.mark.slow
def test_the_fair_term_over_two_processes(gendered, tmp_path):
    (tmp_path / "world.py").write_text(WORLD, encoding="utf-8")
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--rdzv_backend", "c10d",
        "--rdzv_endpoint", "127.0.0.1:0", str(tmp_path / "world.py"), str(gendered), str(tmp_path / "two"),
    ]  # fmt: skip
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr.decode()[-3000:]
    one = fair(gendered, tmp_path / "one", "training.batch=6")
    assert_same(one, tmp_path / "two", tolerance=2e-5)


def test_blind_training_sees_no_group_word(gendered, tmp_path):
    from evenrank.training.groups import QueryGroupSet

    made = fair(gendered, tmp_path / "b", "data.blind=gender-en", "training.max_steps=2")
    items = QueryGroupSet(made / "groups", negatives=3)
    shown = [text for i in range(len(items)) for text in (items[i].query, *items[i].passages)]
    assert any("[MASK]" in text for text in shown)
    assert not {"he", "his", "she", "her"} & {word for text in shown for word in text.split()}
    # The labels are those of the texts as they were.
    assert {sign for i in range(len(items)) for row in items[i].signs for sign in row} == {-1, 0, 1}
    # So is the audit of the card.
    audit = json.loads((made / "audit.json").read_text(encoding="utf-8"))
    assert audit["runs"]["tiny"]["measures"]["NFaiRR@10"]["mean"] < 1


@pytest.mark.parametrize("state", ["", "{", '{"epoch": 1'])
def test_half_a_checkpoint_is_not_resumed(tmp_path, state):
    from evenrank.training.run_folder import last_checkpoint

    for step, content in ((4, "{}"), (8, state), (12, None)):
        (tmp_path / "checkpoints" / f"checkpoint-{step}").mkdir(parents=True)
        if content is not None:
            (tmp_path / "checkpoints" / f"checkpoint-{step}" / "trainer_state.json").write_text(content)
    assert last_checkpoint(tmp_path).name == "checkpoint-4"


@pytest.mark.slow
@pytest.mark.parametrize("bytes", [1 << 11, 1 << 13, 1 << 15])
def test_no_room_for_a_checkpoint(home, tmp_path, bytes):
    """The first file that is longer than there is room for, whichever it is, is named in a line."""
    program = (
        "import resource, sys\n"
        "from evenrank.cli import main\n"
        "from evenrank.training import run\n"
        "limit = int(sys.argv.pop(1)), resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, limit)\n"
        "main()\n"
    )
    command = ["train", str(home / "r.toml"), "--set", f'out="{tmp_path / "a"}"']
    ended = subprocess.run(
        [sys.executable, "-c", program, str(bytes), *command], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith(f"evenrank: {tmp_path}")
    said = "the file could not be written whole" if bytes == 1 << 15 else "File too large"
    assert ended.stderr.endswith(f": cannot be written: {said}\n")
    left = [path for path in tmp_path.rglob("*") if path.name.startswith(".") or path.name == "checkpoint-4"]
    assert left == []
