"""AdvBert: gradient reversal by hand, leakage that is planted, and training against an adversary."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import load_file

from evenrank.files import EvenrankError
from evenrank.groups import Scoring, load_lexicon
from evenrank.models.encoders import CatRanker, DotRanker
from evenrank.models.protocol import CandidateLists
from evenrank.training.adversarial import (
    AdversarialRanker,
    _leakage,
    attack,
    gendered,
    reverse_gradient,
    scores_and_vectors,
)
from evenrank.training.recipes import load_recipe
from evenrank.training.run import train_recipe
from training_runs import fair, logged, result_of, weights

SCORING = Scoring(load_lexicon("gender-en"))
NEUTRAL = ["is", "a", "doctor", "the", "nurse", "runs", "home", "early", "software", "by", "night"]


def task(queries: int, each: int) -> tuple[list[str], list[str]]:
    """Queries and passages [pairs]; every other passage says she or he twice."""
    rng = np.random.default_rng(0)
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


@pytest.mark.parametrize("kind", [CatRanker, DotRanker])
def test_one_backward_pass_trains_the_adversary_and_misleads_it(kind, checkpoint):
    ranker = kind.from_pretrained(checkpoint)
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


def test_the_adversary_of_passages_sees_their_vectors_and_words_alone(checkpoint):
    lists = CandidateLists(["who is she", "a river"], [[NEUTRAL[0], "he and he"], [NEUTRAL[0]]])
    ranker = DotRanker.from_pretrained(checkpoint, pooling="mean")
    both = AdversarialRanker(ranker, SCORING, label="any", vector="passage")
    assert both.encode(lists)["gendered"].tolist() == [False, True, False]
    assert AdversarialRanker(ranker, SCORING, label="any").encode(lists)["gendered"].tolist() == [True, True, False]
    inputs = ranker.encode(lists)
    torch.testing.assert_close(scores_and_vectors(ranker, inputs, "passage")[1], ranker.embed_passages(**inputs))
    with pytest.raises(EvenrankError, match=r"adversary\.vector: a cat ranker has no vector of a passage alone"):
        AdversarialRanker(CatRanker.from_pretrained(checkpoint), SCORING, vector="passage")
    with pytest.raises(EvenrankError, match="a tk ranker has no encoder for an adversary"):
        scores_and_vectors(type("Other", (), {"kind": "tk"})(), {})


def test_an_attack_finds_what_is_there_and_nothing_else(checkpoint):
    ranker = DotRanker.from_pretrained(checkpoint, pooling="mean")
    queries, passages = task(60, 10)
    found = attack(ranker, queries, passages, SCORING)
    assert found.balanced_accuracy > 0.75
    assert found.ci95[0] > 0.65
    assert (found.pairs, found.queries) == (300, 30)
    assert attack(ranker, queries, passages, SCORING) == found

    # Vectors that say nothing of it: every passage is read as the same one.
    class Fixed(DotRanker):
        def encode(self, groups):
            return super().encode(CandidateLists(groups.queries, [[NEUTRAL[0]] for _ in groups.passages]))

    nothing = attack(Fixed(ranker.model), queries, passages, SCORING)
    assert nothing.ci95[0] < 0.5 < nothing.ci95[1] or nothing.balanced_accuracy == 0.5
    blind = [passage.replace("she", "is").replace("he", "is") for passage in passages]
    with pytest.raises(EvenrankError, match="attack: one half of the queries has only gendered pairs, or none"):
        attack(ranker, queries, blind, SCORING)


def test_leakage_by_hand():
    found = np.array([True, True, False, False, False, False])
    guessed = np.array([True, False, False, False, False, True])
    leakage = _leakage(guessed, found, np.array([0, 1, 0, 1, 2, 2]))
    assert leakage.balanced_accuracy == pytest.approx((1 / 2 + 3 / 4) / 2)
    assert leakage.ci95[0] <= leakage.balanced_accuracy <= leakage.ci95[1]


def test_a_run_with_an_adversary_and_one_that_goes_on(home, tmp_path):
    settings = ("ranker.kind=cat", "adversary.label=any", "training.batch=5", "training.max_steps=8")
    settings += ("training.optimizer=adam", "training.epsilon=1e-5", "validation.depths=")
    done = fair(home / "r.toml", tmp_path / "a", *settings)
    result = result_of(done)
    assert (result["checkpoint"]["rule"], result["checkpoint"]["step"]) == ("last", 8)
    assert [result["leakage"][when]["queries"] for when in ("before", "after")] == [4, 4]
    parts = [line for line in logged(done) if "adversary_loss" in line]
    assert len(parts) == 8
    assert all(line["loss"] == pytest.approx(line["rank_loss"] + line["adversary_loss"], abs=1e-4) for line in parts)
    # The last checkpoint, and the ranker alone: an ordinary cross-encoder.
    model, last = weights(done), load_file(done / "checkpoints" / "checkpoint-8" / "model.safetensors")
    assert not any("adversary" in name for name in model)
    for name, value in CatRanker.load(done / "model").state_dict().items():
        torch.testing.assert_close(value, last[f"ranker.{name}"], rtol=0, atol=0)
    # As if killed after the first checkpoint.
    for gone in ("checkpoints/checkpoint-8", "model"):
        shutil.rmtree(done / gone)
    (done / "result.json").unlink()
    train_recipe(load_recipe(home / "r.toml", [f'out="{done}"', *settings]), resume=True)
    for name, value in model.items():
        torch.testing.assert_close(weights(done)[name], value, rtol=0, atol=0)
    assert result_of(done)["leakage"] == result["leakage"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("ranker.kind=knrm", "adversary: a knrm ranker has no encoder"),
        ("training.cached=4", r"training\.cached: not with an adversary"),
        ("fairness.weight=1", "fairness or adversary, not both"),
    ],
)
def test_recipes_with_an_adversary_that_are_refused(home: Path, setting: str, message: str):
    with pytest.raises(EvenrankError, match=message):
        load_recipe(home / "r.toml", ["adversary.lexicon=gender-en", setting])


def test_the_gradient_is_reversed():
    values = torch.tensor([1.0, -2.0], requires_grad=True)
    found = reverse_gradient(values, 0.5)
    assert found.tolist() == [1.0, -2.0]
    (found * torch.tensor([2.0, 4.0])).sum().backward()
    assert values.grad.tolist() == [-1.0, -2.0]


def test_training_against_an_adversary_lowers_what_it_finds(checkpoint):
    queries, passages = task(60, 10)
    leakage = []
    for factor in (0.0, 1.0):
        ranker = DotRanker.from_pretrained(checkpoint, pooling="mean")
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
