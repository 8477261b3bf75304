"""AdvBert: gradient reversal by hand, leakage that is planted, and training against an adversary."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

from safetensors.torch import load_file

from evenrank.files import EvenrankError
from evenrank.groups import Scoring, load_lexicon
from evenrank.models.encoders import CatRanker, DotRanker
from evenrank.models.protocol import CandidateLists
from evenrank.training.adversarial import (
    AdversarialRanker,
    Adversary,
    _leakage,
    attack,
    gendered,
    reverse_gradient,
    scores_and_vectors,
)
from evenrank.training.recipes import load_recipe
from evenrank.training.run import train_recipe as train
from tiny_models import tiny_bert

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

SCORING = Scoring(load_lexicon("gender-en"))
NEUTRAL = ["is", "a", "doctor", "the", "nurse", "runs", "home", "early", "software", "by", "night"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("models") / "tiny", hidden=16, layers=1))


def task(queries: int, each: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Queries and passages [pairs]; every other passage says she or he twice."""
    rng = np.random.default_rng(seed)
    asked, passages = [], []
    for query in range(queries):
        words = " ".join(rng.choice(NEUTRAL, 3)) + " query" * (1 + query % 3) + f" {query}"
        for number in range(each):
            asked.append(words)
            extra = rng.choice(["she", "he"]) if number % 2 else rng.choice(NEUTRAL)
            passages.append(" ".join([*rng.choice(NEUTRAL, 5), extra, extra]))
    return asked, passages


def test_what_counts_as_gendered():
    texts = pl.Series(["she she", "she", "he he she she", "it", "she she he"])
    # Neutrality is 1 for a single word and for balanced ones.
    assert gendered(texts, SCORING).tolist() == [True, False, False, False, True]
    assert gendered(texts, SCORING, "any").tolist() == [True, True, True, False, True]


def test_the_gradient_is_reversed():
    values = torch.tensor([1.0, -2.0], requires_grad=True)
    found = reverse_gradient(values, 0.5)
    assert found.tolist() == [1.0, -2.0]
    (found * torch.tensor([2.0, 4.0])).sum().backward()
    assert values.grad.tolist() == [-1.0, -2.0]


@pytest.mark.parametrize("kind", [CatRanker, DotRanker])
def test_one_backward_pass_trains_the_adversary_and_misleads_it(kind, model):
    ranker = kind.from_pretrained(model)
    both = AdversarialRanker(ranker, SCORING, label="any", factor=0.5)
    groups = CandidateLists(
        ["the doctor", "a nurse runs"], [["she runs home", "by night"], ["early", "he is", "software"]]
    )
    inputs = both.encode(groups)
    assert inputs["gendered"].tolist() == [True, False, False, True, False]
    torch.testing.assert_close(both(**inputs), ranker(**ranker.encode(groups)))
    both.train()
    for part in both.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    scores, loss = both(**inputs)
    torch.testing.assert_close(scores, ranker(**ranker.encode(groups)))
    loss.backward()
    reversed_ = {name: value.grad.clone() for name, value in ranker.named_parameters() if value.grad is not None}
    own = both.adversary.layers[0].weight.grad.clone()
    both.zero_grad()
    own_inputs = {name: value for name, value in inputs.items() if name != "gendered"}
    logits = both.adversary(scores_and_vectors(ranker, own_inputs)[1])
    torch.nn.functional.cross_entropy(logits, inputs["gendered"].long()).backward()
    # The adversary learns as it would; the encoder the other way, half as fast.
    torch.testing.assert_close(both.adversary.layers[0].weight.grad, own)
    assert reversed_
    for name, value in ranker.named_parameters():
        if name in reversed_:
            torch.testing.assert_close(reversed_[name], -0.5 * value.grad, rtol=1e-4, atol=1e-7)


def test_a_ranker_without_an_encoder(model):
    class Other:
        kind = "tk"

    with pytest.raises(EvenrankError, match="a tk ranker has no encoder for an adversary"):
        scores_and_vectors(Other(), {})


def test_the_adversary_of_passages_sees_their_vectors_and_words_alone(model):
    lists = CandidateLists(["who is she", "a river"], [[NEUTRAL[0], "he and he"], [NEUTRAL[0]]])
    ranker = DotRanker.from_pretrained(model, pooling="mean")
    both = AdversarialRanker(ranker, SCORING, label="any", vector="passage")
    assert both.encode(lists)["gendered"].tolist() == [False, True, False]
    assert AdversarialRanker(ranker, SCORING, label="any").encode(lists)["gendered"].tolist() == [True, True, False]
    inputs = ranker.encode(lists)
    torch.testing.assert_close(scores_and_vectors(ranker, inputs, "passage")[1], ranker.embed_passages(**inputs))
    with pytest.raises(EvenrankError, match=r"adversary\.vector: a cat ranker has no vector of a passage alone"):
        AdversarialRanker(CatRanker.from_pretrained(model), SCORING, vector="passage")


def test_the_same_seed_makes_the_same_adversary():
    first, second, third = (Adversary(8, seed).layers[0].weight for seed in (1, 1, 2))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def test_an_attack_finds_what_is_there_and_nothing_else(model):
    ranker = DotRanker.from_pretrained(model, pooling="mean")
    queries, passages = task(60, 10)
    found = attack(ranker, queries, passages, SCORING)
    assert found.balanced_accuracy > 0.75
    assert found.ci95[0] > 0.65
    assert (found.pairs, found.queries) == (300, 30)
    assert attack(ranker, queries, passages, SCORING) == found
    blind = [passage.replace("she", "is").replace("he", "is") for passage in passages]

    # Vectors that say nothing of it: every passage is read as the same one.
    class Fixed(DotRanker):
        def encode(self, groups):
            return super().encode(CandidateLists(groups.queries, [[NEUTRAL[0]] for _ in groups.passages]))

    nothing = attack(Fixed(ranker.model), queries, passages, SCORING)
    assert nothing.ci95[0] < 0.5 < nothing.ci95[1] or nothing.balanced_accuracy == 0.5
    with pytest.raises(EvenrankError, match="attack: one half of the queries has only gendered pairs, or none"):
        attack(ranker, queries, blind, SCORING)


def test_leakage_by_hand():
    found = np.array([True, True, False, False, False, False])
    guessed = np.array([True, False, False, False, False, True])
    leakage = _leakage(guessed, found, np.array([0, 1, 0, 1, 2, 2]))
    assert leakage.balanced_accuracy == pytest.approx((1 / 2 + 3 / 4) / 2)
    assert leakage.ci95[0] <= leakage.balanced_accuracy <= leakage.ci95[1]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    """A task whose relevant passage repeats the query's words."""
    folder = tmp_path_factory.mktemp("task")
    queries, passages = task(20, 6)
    names = list(dict.fromkeys(queries))
    passages = [f"{q} {p}" if i % 6 < 2 else p for i, (q, p) in enumerate(zip(queries, passages, strict=True))]
    (folder / "c.tsv").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(passages)), encoding="utf-8")
    (folder / "q.tsv").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(names)), encoding="utf-8")
    (folder / "qrels").write_text("".join(f"{i} 0 {6 * i} 1\n" for i in range(20)), encoding="utf-8")
    rows = [f"{q} Q0 {6 * q + d} {d + 1} {6 - d} r\n" for q in range(20) for d in range(6)]
    (folder / "r.run").write_text("".join(rows), encoding="utf-8")
    (folder / "r.toml").write_text(
        f"""
name = "tiny"
[ranker]
kind = "cat"
model = "{model}"
query_length = 12
passage_length = 24
[data]
collection = "{folder / "c.tsv"}"
queries = "{folder / "q.tsv"}"
qrels = "{folder / "qrels"}"
run = "{folder / "r.run"}"
negatives = 2
[validation]
queries = "{folder / "q.tsv"}"
qrels = "{folder / "qrels"}"
run = "{folder / "r.run"}"
depth = 6
[adversary]
[training]
batch = 5
max_steps = 8
learning_rate = 0.003
optimizer = "adam"
epsilon = 1e-5
keep = "last"
evaluate_every = 4
""",
        encoding="utf-8",
    )
    return folder


@pytest.fixture(scope="module")
def done(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(load_recipe(home / "r.toml", [f'out="{tmp_path_factory.mktemp("run") / "a"}"']))


def test_a_run_with_an_adversary(done):
    result = json.loads((done / "result.json").read_text(encoding="utf-8"))
    for when in ("before", "after"):
        leakage = result["leakage"][when]
        assert leakage["ci95"][0] <= leakage["balanced_accuracy"] <= leakage["ci95"][1]
        assert leakage["queries"] == 10
    lines = [json.loads(line) for line in (done / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    parts = [line for line in lines if "adversary_loss" in line]
    assert len(parts) == 8
    assert all(line["loss"] == pytest.approx(line["rank_loss"] + line["adversary_loss"], abs=1e-4) for line in parts)
    # The last checkpoint, and the ranker alone: an ordinary cross-encoder.
    model = load_file(done / "model" / "model.safetensors")
    last = load_file(done / "checkpoints" / "checkpoint-8" / "model.safetensors")
    assert not any("adversary" in name for name in model)
    kept = CatRanker.load(done / "model").state_dict()
    for name, value in kept.items():
        torch.testing.assert_close(value, last[f"ranker.{name}"], rtol=0, atol=0)


def test_a_run_with_an_adversary_goes_on_to_the_same_weights(home, done, tmp_path):
    settings = [f'out="{tmp_path / "k"}"']
    stopped = train(load_recipe(home / "r.toml", settings))
    # As if killed after the first checkpoint.
    import shutil

    shutil.rmtree(stopped / "checkpoints" / "checkpoint-8")
    shutil.rmtree(stopped / "model")
    resumed = train(load_recipe(home / "r.toml", settings), resume=True)
    first, second = (load_file(folder / "model" / "model.safetensors") for folder in (done, resumed))
    for name, value in first.items():
        torch.testing.assert_close(second[name], value, rtol=0, atol=0)


def test_training_against_an_adversary_lowers_what_it_finds(model):
    queries, passages = task(60, 10)
    leakage = []
    for factor in (0.0, 1.0):
        ranker = DotRanker.from_pretrained(model, pooling="mean")
        both = AdversarialRanker(ranker, SCORING, factor=factor).train()
        groups = both.parameter_groups()
        fast = [{"params": groups.pop("adversary"), "lr": 1e-2}]
        optimizer = torch.optim.Adam([*fast, *({"params": part, "lr": 3e-3} for part in groups.values())])
        rng = np.random.default_rng(0)
        torch.manual_seed(0)
        for _ in range(80):
            rows = rng.choice(len(queries), 32, replace=False)
            inputs = both.encode(CandidateLists([queries[i] for i in rows], [[passages[i]] for i in rows]))
            optimizer.zero_grad()
            both(**inputs)[1].backward()
            optimizer.step()
        leakage.append(attack(ranker, queries, passages, SCORING).balanced_accuracy)
    assert leakage[1] < leakage[0] - 0.05


def test_recipes_with_an_adversary(home, tmp_path):
    shipped = load_recipe("sampling-advbert")
    assert (shipped.training.optimizer, shipped.training.epsilon, shipped.training.keep) == ("adam", 1e-5, "last")
    with pytest.raises(EvenrankError, match="adversary: a knrm ranker has no encoder"):
        load_recipe(home / "r.toml", ["ranker.kind=knrm"])
    with pytest.raises(EvenrankError, match=r"training\.cached: not with an adversary"):
        load_recipe(home / "r.toml", ["training.cached=4"])
    with pytest.raises(EvenrankError, match="fairness or adversary, not both"):
        load_recipe(home / "r.toml", ["fairness.weight=1"])
