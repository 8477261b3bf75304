"""Training runs from their start: figures as an audit gives them, what stops a start, and what it leaves."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from evenrank.auditing import audit
from evenrank.files import EvenrankError, Provenance, write_run
from evenrank.models.encoders import DotRanker
from evenrank.training import losses, trainer
from evenrank.training.card import _inherited, audit_validation, ruined, summary_of, training_summary, write_card
from evenrank.training.lists import TrainingLists
from evenrank.training.recipes import load_recipe
from evenrank.training.run import load_validation, origin_of
from training_runs import card_of, fair, result_of

# --- figures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [2, 50])
def test_the_card_has_the_figures_of_an_audit_of_the_same_files(home, gendered, tmp_path, depth):
    # The judgements of the validation queries alone, as an audit averages utility over all that are judged.
    qrels = tmp_path / "valid.qrels"
    qrels.write_text("".join(f"{i} 0 {i} 1\n" for i in range(16, 24)), encoding="utf-8")
    # Lists of about 10 passages: re-ranked in part, whole, and with room left.
    settings = [f"validation.depth={depth}", "validation.depths=", f'validation.qrels="{qrels}"']
    recipe = load_recipe(gendered, [f'out="{tmp_path / "r"}"', *settings])
    validation = load_validation(recipe)
    assert validation.pairs["rank"].max() == min(depth, validation.run.table["rank"].max())
    run = validation.reranked(np.random.default_rng(0).normal(size=validation.pairs.height), depth, "tiny")
    write_run(run, tmp_path / "validation.run")
    # What was not re-ranked stands behind, in its order.
    for query, table in run.table.group_by("query_id"):
        before = validation.run.table.filter(query_id=query[0])["doc_id"].to_list()
        after = table.sort("rank")["doc_id"].to_list()
        assert sorted(after[:depth]) == sorted(before[:depth])
        assert after[depth:] == before[depth:]
    result = {"measure": "nDCG@10", "value": validation.value(run), "first_stage": validation.value(validation.run)}
    (tmp_path / "model").mkdir()
    made = Provenance("test")
    audited = audit_validation("tiny", validation, run, made, tmp_path, recipe.validated_collection)
    write_card(origin_of(recipe), tmp_path, result | {"depth": depth, "steps": 0}, made, audited)
    runs = {"first stage": home / "valid.run", "tiny": tmp_path / "validation.run"}
    whole = audit(runs, collection=home / "g.tsv", qrels=qrels, baseline="first stage")
    whole.to_json(tmp_path / "own.json")
    card, expected = (json.loads((tmp_path / name).read_text(encoding="utf-8")) for name in ("audit.json", "own.json"))
    assert {**card, "provenance": None} == {**expected, "provenance": None}
    own = expected["runs"]
    # So has what training watches, and the test on which the card's verdict rests.
    for name, ranked in (("first stage", validation.run), ("tiny", run)):
        assert validation.value(ranked) == pytest.approx(own[name]["measures"]["nDCG@10"]["mean"], abs=1e-12)
    compared = own["tiny"]["measures"]["nDCG@10"]["vs_baseline"]
    assert validation.tested(run) == (compared["n"], compared["p"])
    # Some of what lies below the depth speaks of a group, or this would show nothing.
    assert own["random"]["measures"]["NFaiRR@10"]["mean"] < 0.9


WORSE = "This ranker ranks worse than no ranker: RR 0.2000, below the first stage (0.3800)."


@pytest.mark.parametrize(
    ("value", "queries", "p", "verdict", "warnings"),
    [
        (0.41, 40, 0.0312, "significantly better than the first stage (p = 0.031, 40 queries)", []),
        (0.20, 4, 0.05, "not significantly different from the first stage (p = 0.050, 4 queries)", []),
        (0.20, 1, None, "too few queries differ from the first stage for a test (1 query)", []),
        (0.20, 40, 1e-5, "significantly worse than the first stage (p < 0.001, 40 queries)", [WORSE]),
    ],
)
def test_a_verdict_is_that_of_the_paired_test(tmp_path, home, value, queries, p, verdict, warnings):
    """Only what the test shows is said to be worse, and is said first, in the card too."""
    result = {"measure": "RR", "value": value, "first_stage": 0.38, "depth": 50, "queries": queries, "p": p}
    line = f"RR: {value:.4f} after re-ranking the first 50 passages, 0.3800 before; {verdict}"
    assert summary_of(result) == [*warnings, line]
    (tmp_path / "model").mkdir()
    write_card(origin_of(load_recipe(home / "r.toml")), tmp_path, {**result, "steps": 3}, Provenance("test"))
    first = card_of(tmp_path).partition("# tiny\n\n")[2].splitlines()[0]
    assert (first == f"**{WORSE}**") == bool(warnings)
    assert line in card_of(tmp_path)


@pytest.mark.parametrize(
    ("value", "first_stage", "base", "said"),
    [
        (0.535, 0.41, 0.963, "This ranker has lost 44% of its base's RR on these queries (0.9630 to 0.5350)."),
        (0.30, 0.41, None, "This ranker ranks worse than no ranker: RR 0.3000, below the first stage (0.4100)."),
        (
            0.30,
            0.41,
            0.963,
            "This ranker has lost 69% of its base's RR on these queries (0.9630 to 0.3000), and ranks worse than no"
            " ranker (below the first stage, 0.4100).",
        ),
        # Exactly the first stage, exactly 80%.
        (0.41, 0.41, None, ""),
        (0.4, None, 0.5, ""),
        (0.3, math.nan, math.nan, ""),
    ],
)
def test_a_ranker_that_lost_its_effectiveness(value: float, first_stage: float | None, base: float | None, said: str):
    assert ruined(value, first_stage, base, measure="RR") == said


def test_training_further_with_a_term_or_an_adversary_measures_the_base(gendered: Path, tmp_path: Path) -> None:
    base = fair(gendered, tmp_path / "base", "fairness=", "training.max_steps=4")
    before = result_of(base)
    assert "base" not in before
    further = [f'ranker.model="{base / "model"}"', "validation.depths=", "training.max_steps=1", "training.warmup=0"]
    further += ["training.schedule=constant", "training.learning_rate=1e-12", f"validation.depth={before['depth']}"]
    # Without either there is nothing to hold against it.
    assert "base" not in result_of(fair(gendered, tmp_path / "p", "fairness=", *further))
    for name, own in (("t", []), ("a", ["fairness=", "adversary.attack=false"])):
        done = fair(gendered, tmp_path / name, *further, *own)
        assert result_of(done)["base"] == pytest.approx(before["value"], abs=1e-12)
        line = f"nDCG@10 of its base, the ranker that this training continued from: {before['value']:.4f}"
        assert line in training_summary(done)


def test_a_card_has_what_the_card_of_its_base_says(tmp_path, monkeypatch):
    assert _inherited(None) == _inherited(str(tmp_path)) == "license: unknown"
    head = "---\nlicense: apache-2.0\nbase_model: google/bert\ntags: [a]\n---\n\nlicense: another\n"
    (tmp_path / "README.md").write_text(head, encoding="utf-8")
    assert _inherited(str(tmp_path)) == "base_model: google/bert\nlicense: apache-2.0"
    # Of a name on the hub, the base is that model, not what it began from.
    monkeypatch.setattr("evenrank.training.card.downloaded_model", lambda name: tmp_path)
    assert _inherited("our/ranker") == 'base_model: "our/ranker"\nlicense: apache-2.0'


# --- the loss of a step -----------------------------------------------------------------------------------------------


def test_what_fills_a_batch_for_several_processes_does_not_count(done):
    groups = TrainingLists(done / "groups", negatives=3)
    sampler = trainer.EpochSampler(groups, seed=0, multiple=6)
    order = list(sampler)
    assert len(order) == len(sampler) == 18
    assert sorted(order[:16]) == list(range(16))
    assert order[16:] == [-1 - order[0], -1 - order[1]]
    assert list(trainer.EpochSampler(groups, seed=0)) == order[:16]
    items = [groups[i] for i in order[12:]]
    assert [item.index for item in items] == [*order[12:16], -1, -1]
    assert items[4].query == groups[order[0]].query
    collator = trainer.Collator(DotRanker.load(done / "model"))
    whole, real = collator(items), collator(items[:4])
    assert whole["counted"].sum(1).tolist() == [4, 4, 4, 4, 0, 0]
    scores = torch.randn(6, 4, requires_grad=True)
    for loss in losses.LOSSES.values():
        scores.grad = None
        found = loss(scores, whole["relevance"], whole["counted"])
        found.backward()
        assert found.item() == pytest.approx(loss(scores[:4], real["relevance"], real["counted"]).item(), abs=1e-6)
        assert torch.isfinite(scores.grad).all()
        assert not scores.grad[4:].any()


# --- a start that fails -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "settings"),
    [
        (r"^data\.blind: no file and no built-in lexicon 'none'", ["data.blind=none"]),
        (r"^fairness\.attributes\.lexicon: no file and no", ['fairness.attributes=[{lexicon = "none"}]']),
        (r"^fairness\.attributes\.poles: expected two of", ['fairness.attributes=[{poles = "m,x"}]']),
        (r"^adversary\.lexicon: no file and no built-in lexicon", ["fairness=", "adversary.lexicon=none"]),
        ("are not in the collection", ["data.collection=FOLDER/part.tsv", "validation.collection=FOLDER/g.tsv"]),
        ("training quer.* without a text", ["data.queries=FOLDER/part.tsv"]),
        (r"^run .*: no query has both a relevant passage and another one$", ["data.qrels=FOLDER/none.qrels"]),
        (r"bad\.jsonl, line 1: ", ["data.groups=FOLDER/bad.jsonl", "data.run=", "data.qrels="]),
        ("^validation: run validation.*: . of its queries are not in the ", ["validation.queries=FOLDER/part.tsv"]),
        ("^training.learning_rates: no parameter group kernels", ["training.learning_rates.kernels=0.1"]),
        ("training quer.* without a text", ["fairness.weight=[0.1]", "data.queries=FOLDER/part.tsv"]),
    ],
)
def test_a_start_that_fails_leaves_nothing(home, gendered, tmp_path, settings, message):
    (tmp_path / "g.tsv").write_bytes((home / "g.tsv").read_bytes())
    (tmp_path / "part.tsv").write_text("0\tone\n1\ttwo\n", encoding="utf-8")
    (tmp_path / "none.qrels").write_text("0 0 0 0\n", encoding="utf-8")
    (tmp_path / "bad.jsonl").write_text('{"query_id": "0", "doc_id": ["0"], "label": [1]}\n', encoding="utf-8")
    with pytest.raises(EvenrankError, match=message):
        fair(gendered, tmp_path / "r", *(setting.replace("FOLDER", str(tmp_path)) for setting in settings))
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("name", ["recipe.toml", "log.jsonl", "groups/mine.run", "checkpoints/mine.txt"])
def test_a_folder_with_files_that_no_training_wrote_is_left_as_it_is(gendered, tmp_path, name):
    folder = tmp_path / "r"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("mine", encoding="utf-8")
    with pytest.raises(EvenrankError, match="there is a run already"):
        fair(gendered, folder)
    assert [path for path in folder.rglob("*") if path.is_file()] == [folder / name]
    assert (folder / name).read_text(encoding="utf-8") == "mine"


def test_two_processes_do_not_train_in_one_folder(gendered, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(EvenrankError, match=r"another process works in this folder$"):
        fair(gendered, tmp_path)
    os.close(handle)


# --- progress ---------------------------------------------------------------------------------------------------------
