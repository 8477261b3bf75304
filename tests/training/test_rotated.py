"""Rotation while training: which texts a data set gives, epoch by epoch, and that resuming gives the same weights."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

from safetensors.torch import load_file

from evenrank.files import EvenrankError, Run, write_run
from evenrank.files.sentences import sentence_starts
from evenrank.mitigation.rotation import cut_of, mixed_seed, rotated
from evenrank.training.lists import TrainingLists, build_lists
from evenrank.training.recipes import load_recipe
from evenrank.training.run import train_recipe as train
from evenrank.training.trainer import RankingTrainer
from tiny_models import texts, tiny_bert

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
PASSAGES = ["one two three four five", "She is here. He left. It rained", "six  seven\teight", "", " ", "nine"]
JUDGED = pl.DataFrame({"query_id": ["q"], "doc_id": ["0"], "relevance": [1]})
ROWS = [("q", str(i), float(9 - i)) for i in range(len(PASSAGES))]


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    run = Run.from_table(pl.DataFrame(ROWS, ["query_id", "doc_id", "score"], orient="row"), "run")
    collection = pl.DataFrame({"doc_id": [str(i) for i in range(len(PASSAGES))], "text": PASSAGES})
    queries = pl.DataFrame({"query_id": ["q"], "text": ["what is it"]})
    build_lists(run, JUDGED, collection, queries, tmp_path / "g")
    return tmp_path / "g"


def seen(groups: Path, epoch: int, seed: int = 0, rotate: str | None = "word") -> list[str]:
    items = TrainingLists(groups, negatives=9, sampling="first", seed=seed, rotate=rotate)  # type: ignore[arg-type]
    items.set_epoch(epoch)
    return items[0].passages


def test_positives_and_negatives_are_turned_round_anew_each_epoch(groups: Path) -> None:
    assert seen(groups, 0, rotate=None) == PASSAGES
    drawn = set()
    for epoch in range(12):
        found = seen(groups, epoch)
        drawn.add(tuple(found))
        expected = [rotated(t, cut_of(t, str(i), mixed_seed(0, epoch))) for i, t in enumerate(PASSAGES)]
        assert found == expected == seen(groups, epoch)
        assert [sorted(text.split()) for text in found] == [sorted(text.split()) for text in PASSAGES]
        assert found[3:] == PASSAGES[3:]
    assert len(drawn) > 6
    assert {texts[0].split()[0] for texts in drawn} > {"one", "two"}
    assert {texts[2].split()[0] for texts in drawn} == {"six", "seven", "eight"}
    assert seen(groups, 1, seed=1) != seen(groups, 1)


def test_at_sentences_alone(groups: Path) -> None:
    starts = {seen(groups, epoch, rotate="sentence")[1] for epoch in range(20)}
    assert starts == {
        "She is here. He left. It rained",
        "He left. It rained She is here.",
        "It rained She is here. He left.",
    }
    assert sentence_starts(PASSAGES[1].split()) == [0, 3, 5]


def test_another_process_draws_the_same(groups: Path) -> None:
    items = TrainingLists(groups, negatives=9, sampling="first", rotate="word")
    items.set_epoch(3)
    # What a data-loading process is given.
    assert pickle.loads(pickle.dumps(items))[0].passages == seen(groups, 3)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("task")
    tiny_bert(folder / "model", hidden=16, layers=1)
    rng = np.random.default_rng(0)
    (folder / "c.tsv").write_text("".join(f"{i}\t{t}\n" for i, t in enumerate(texts(40, 12, seed=1))), encoding="utf-8")
    (folder / "q.tsv").write_text("".join(f"{i}\t{t}\n" for i, t in enumerate(texts(12, 4, seed=2))), encoding="utf-8")
    (folder / "qrels").write_text("".join(f"{i} 0 {i} 1\n" for i in range(12)), encoding="utf-8")
    rows = [(str(q), str(d), float(rng.random())) for q in range(12) for d in {q, *rng.choice(40, 6, replace=False)}]
    write_run(Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"), "r"), folder / "run")
    source = f'queries = "{folder / "q.tsv"}"\nqrels = "{folder / "qrels"}"\nrun = "{folder / "run"}"\n'
    (folder / "r.toml").write_text(
        f'name = "tiny"\n[ranker]\nkind = "dot"\nmodel = "{folder / "model"}"\nquery_length = 8\npassage_length = 16\n'
        f'[data]\ncollection = "{folder / "c.tsv"}"\nnegatives = 3\nrotate = "word"\n{source}'
        f"[validation]\n{source}depth = 5\n"
        "[training]\nbatch = 4\nmax_steps = 8\nlearning_rate = 0.003\nevaluate_every = 2\n",
        encoding="utf-8",
    )
    return folder


def test_an_interrupted_run_resumes_to_the_same_weights(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Three steps an epoch: the end comes in the second, the resumed run goes on to the third.
    whole = train(load_recipe(home / "r.toml", [f'out="{tmp_path / "a"}"']))
    plain = RankingTrainer.training_step
    steps = 0

    def step(self, *arguments, **named):
        nonlocal steps
        steps += 1
        if steps == 6:
            raise KeyboardInterrupt
        return plain(self, *arguments, **named)

    monkeypatch.setattr(RankingTrainer, "training_step", step)
    with pytest.raises(KeyboardInterrupt):
        train(load_recipe(home / "r.toml", [f'out="{tmp_path / "k"}"']))
    monkeypatch.undo()
    resumed = train(load_recipe(home / "r.toml", [f'out="{tmp_path / "k"}"']), resume=True)
    other = train(load_recipe(home / "r.toml", [f'out="{tmp_path / "n"}"', 'data.rotate="sentence"']))
    first, second, third = (load_file(folder / "model" / "model.safetensors") for folder in (whole, resumed, other))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], third[name]) for name in first)
    losses = [
        [json.loads(line).get("loss") for line in (folder / "log.jsonl").read_text().splitlines()]
        for folder in (whole, other)
    ]
    assert losses[0] != losses[1]


def test_the_recipe_names_what_is_allowed(home: Path) -> None:
    with pytest.raises(EvenrankError, match=r"data\.rotate: expected word or sentence, found 'line'"):
        load_recipe(home / "r.toml", ['data.rotate="line"'])
