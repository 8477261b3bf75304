"""Training from Python: lists as records, frames and files; losses, terms and rankers by value and by name."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch.nn.functional import kl_div
from transformers import TrainerCallback

import evenrank
from evenrank.files import EvenrankError, InputError, read_qrels, read_queries, read_run, read_texts
from evenrank.groups import Scoring, load_lexicon
from evenrank.mitigation import ibbr
from evenrank.mitigation.ibbr import IBBR, FunctionTerm, register_term
from evenrank.models import protocol
from evenrank.models.encoders import CatRanker, DotRanker
from evenrank.models.protocol import register_ranker
from evenrank.training import losses
from evenrank.training.choice import Validation
from evenrank.training.lists import as_lists, collate, training_lists
from evenrank.training.losses import nll, register_loss
from evenrank.training.recipes import load_recipe
from training_runs import assert_same, card_of, fair, logged, result_of

SCORING = Scoring(load_lexicon("gender-en"))
NURSE = {"query": "a nurse", "passages": ["she is a nurse", "he runs home"], "relevance": [1, 0]}
RECORDS = [
    {"query": "software", "passages": ["he wrote software", "rain", "she paints"], "relevance": [2, 0, 0]},
    NURSE,
]


def same_task(gendered: Path, folder: Path, recipe: Any) -> dict[str, Any]:
    """What the recipe trains with, from Python."""
    data, validation = recipe.data, recipe.validation
    given = {name: getattr(data, name) for name in ("run", "qrels", "collection", "queries")}
    lists = training_lists(**given, out=folder, negatives=3, lexicon="gender-en")
    run = read_run(validation.run)
    held_out = Validation.of(
        run,
        read_qrels(validation.qrels),
        read_queries(validation.queries),
        read_texts(data.collection, run.table["doc_id"].unique()),
        measure=validation.measure,
        depth=validation.depth,
        attributes={"gender": SCORING},
    )
    return {"lists": lists, "validation": held_out}


def encoder(gendered: Path, **settings: Any) -> DotRanker:
    """The recipe's ranker as it is before training."""
    return DotRanker.from_pretrained(load_recipe(gendered).ranker.model, **settings)


def test_without_a_folder_nothing_is_left(gendered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = evenrank.train(encoder(gendered), RECORDS, batch=2, max_steps=1, learning_rate=0.01)
    assert result.folder is None
    assert not any(tmp_path.iterdir())
    assert result.log[0]["step"] == 1
    assert "grad_norm" in repr(result.log)
    assert "grad_norm" not in repr(result)
    folder = evenrank.train(encoder(gendered), RECORDS, out="made", max_steps=1).folder
    card = card_of(folder)
    said = "checkpoint: step 1 of 1, the last, as there is no validation\n- reads "
    assert f"\n## Training\n\n- {said}" in card
    assert "max_steps = 1\n" in card
    # A trained model by its folder.
    evenrank.train(folder / "model", pl.DataFrame(RECORDS), max_steps=1)
    with pytest.raises(EvenrankError, match=r"^`out`: made contains a training already$"):
        evenrank.train(folder / "model", RECORDS, out="made")


def test_lists_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "l.jsonl").write_text("".join(json.dumps(row) + "\n" for row in RECORDS), encoding="utf-8")
    frame = pl.DataFrame(RECORDS)
    frame.rename({"passages": "docs", "relevance": "labels"}).write_parquet(tmp_path / "l.parquet")
    for given in (RECORDS, iter(RECORDS), frame, frame.to_arrow(), tmp_path / "l.jsonl", tmp_path / "l.parquet"):
        lists = as_lists(given, [SCORING])
        assert len(lists) == 2
        assert (lists[0].query, lists[0].relevance) == ("software", [2.0, 0.0, 0.0])
        assert [one.sides for one in (lists[0], lists[1])] == [[[1], [0], [-1]], [[-1], [1]]]
        assert (lists[-2].index, lists[-2].query) == (-1, "a nurse")
    # Sides that are given stay.
    assert as_lists([{**NURSE, "sides": [1, 0]}], [SCORING])[0].sides == [[1], [0]]


SIDES = "sides: expected +1, -1 or 0 for each passage"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"anchor": "a", "positive": "b"},
            "expected passages and relevance, found positive: write query = anchor, passages = [positive, a negative]",
        ),
        ({"query": "a"}, "expected query (a text), passages (texts) and relevance (numbers), found"),
        ({"query": "a", "passages": ["b"], "relevance": [1, 0]}, "a relevance for each passage, found 2 for 1"),
        ({"query": "a", "passages": ["b", "c"], "relevance": [1, 1]}, "there is nothing to learn"),
        *(({**NURSE, "sides": sides}, SIDES) for sides in ([2, 0], [1], [{}, 0], [True, 0], [0.0, 1], [[1], [2]])),
        ({**NURSE, "values": [1, math.nan]}, "values: expected a finite number for each passage"),
        ({**NURSE, "relevance": [10**400, 0]}, "expected finite relevance"),
    ],
)
def test_bad_lists_are_named(tmp_path: Path, row: dict[str, object], message: str) -> None:
    with pytest.raises(EvenrankError) as error:
        as_lists([RECORDS[0], row])
    assert str(error.value).startswith("`lists`: row 2: ")
    assert message in str(error.value)
    (tmp_path / "l.jsonl").write_text(f"{json.dumps(RECORDS[0])}\n{json.dumps(row)}\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        as_lists(tmp_path / "l.jsonl")
    assert str(error.value).startswith(f"{tmp_path / 'l.jsonl'}, line 2: ")


def test_bad_arguments_are_named(gendered: Path) -> None:
    ranker = encoder(gendered)
    with pytest.raises(TypeError, match=r"^train\(\) got an unexpected keyword argument 'batchsize'$"):
        evenrank.train(ranker, RECORDS, batchsize=3)  # type: ignore[call-arg]
    given = [{**row, "sides": [0] * len(row["passages"])} for row in RECORDS]
    two = {"a": "gender-en", "b": "gender-en"}
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (RECORDS, {"batch": "many"}, "`batch`: expected a whole number, found 'many'"),
        (RECORDS, {"batch": 0}, "`batch`: expected 1 or more, found 0"),
        (RECORDS, {"loss": "x"}, "`loss`: expected one of nll, hinge, bce, ranknet, margin-mse, found 'x'"),
        (RECORDS, {"loss": 0.5}, "`loss`: expected a string or a function, found 0.5"),
        (RECORDS, {"loss": lambda *_: 0.5}, "`loss`: expected a scalar tensor, found float"),
        (RECORDS, {"loss": lambda s, *_: s}, "`loss`: expected a scalar tensor, found a tensor of shape [2, 3]"),
        (RECORDS, {"loss": lambda s, r: s.sum()}, "`loss`: expected a function of (scores, relevance, mask)"),
        (RECORDS, {"loss": "hinge", "in_batch": True}, "`in_batch`: expected a dot ranker and the loss nll"),
        (RECORDS, {"fairness": "x"}, "`fairness`: expected ibbr-pd, ibbr-ts, found 'x'"),
        (RECORDS, {"validation": "x"}, "`validation`: expected a Validation, found 'x'"),
        (RECORDS, {"scale": 0.0}, "`scale`: expected more than 0, found 0"),
        ([], {}, "`lists`: expected at least one list, found none"),
        (as_lists(RECORDS), {"fairness": IBBR()}, "`lists`: no passage has a side"),
        (given, {"fairness": IBBR(), "lexicon": two}, "`lists`: the passages have sides for 1 attribute, expected 2"),
    ]
    for lists, settings, message in wrong:
        with pytest.raises(EvenrankError, match=f"^{re.escape(message)}"):
            evenrank.train(ranker, lists, **settings)
    with pytest.raises(EvenrankError, match=r"^`cached`: expected a dot ranker"):
        evenrank.train(CatRanker.from_pretrained(load_recipe(gendered).ranker.model), RECORDS, cached=2)
    with pytest.raises(EvenrankError, match=r"^`ranker`: expected .*, found None$"):
        evenrank.train(None, RECORDS)  # type: ignore[arg-type]


# --- custom losses, terms and rankers ---------------------------------------------------------------------------------


def probability_gap(scores: Any, relevance: Any, sides: Any, mask: Any) -> Any:
    p = scores.masked_fill(~mask, -1e9).softmax(dim=1)
    clicked = mask & (relevance >= 1)
    first, second = p[clicked & (sides > 0)], p[clicked & (sides < 0)]
    return (first.mean() - second.mean()).square() if len(first) and len(second) else scores.sum() * 0


def test_a_custom_term_sees_the_whole_batch(gendered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ibbr, "REGISTERED", {})
    with pytest.raises(InputError, match=r"fairness\.name: expected ibbr-pd or ibbr-ts, found 'gap'"):
        load_recipe(gendered, ["fairness.name=gap"])
    register_term("gap", probability_gap)
    with pytest.raises(EvenrankError, match=r"^`fairness`: expected ibbr-pd, ibbr-ts, gap, found 'x'$"):
        evenrank.train("unread", RECORDS, fairness="x")
    with pytest.raises(EvenrankError, match="ibbr-ts is a built-in term"):
        register_term("ibbr-ts", probability_gap)
    common = ["fairness.name=gap", "fairness.weight=5", "training.max_steps=4", "validation.depths="]
    whole = fair(gendered, tmp_path / "whole", *common, "training.batch=8")
    pieces = fair(gendered, tmp_path / "pieces", *common, "training.batch=2", "training.accumulation=4")
    assert_same(whole, pieces, tolerance=2e-5)
    first = logged(whole)[0]
    assert first["loss"] == pytest.approx(first["rank_loss"] + 5 * first["fair_loss_gender"], abs=1e-4)
    assert first["fair_loss_gender"] > 1e-4
    # The same by value.
    task = same_task(gendered, tmp_path / "lists", load_recipe(gendered))
    by_value = evenrank.train(
        encoder(gendered, query_length=8, passage_length=16), task["lists"], lexicon={"gender": "gender-en"},
        fairness=FunctionTerm(probability_gap, weight=5.0), validation=task["validation"], out=tmp_path / "value",
        batch=8, max_steps=4, learning_rate=0.003, evaluate_every=4,
    )  # fmt: skip
    assert_same(whole, by_value.folder)
    assert by_value.log == logged(whole)
    found, expected = result_of(by_value.folder), result_of(whole)
    apart = ("provenance", "groups")
    assert {**found, **dict.fromkeys(apart)} == {**expected, **dict.fromkeys(apart)}


def neutrality_kl(scores: Any, relevance: Any, sides: Any, mask: Any, values: Any) -> Any:
    target = values.masked_fill(~mask, -1e9).softmax(1)
    return kl_div(scores.masked_fill(~mask, -1e9).log_softmax(1), target, reduction="batchmean")


def test_a_term_takes_the_values_of_passages(gendered: Path) -> None:
    # Lists of 3 and of 2 passages: padding is in neither softmax.
    records = [{**row, "values": [0.25, 1.0, 0.5][: len(row["passages"])]} for row in RECORDS]
    found = as_lists(records, [SCORING])
    lists = collate([found[0], found[1]])
    assert lists.values is not None
    assert lists.values.tolist() == [[0.25, 1.0, 0.5], [0.25, 1.0, 0.0]]
    scores = torch.tensor([[2.0, -1.0, 0.5], [0.0, 1.0, 7.0]])
    expected = 0.0
    for row, values in (([2.0, -1.0, 0.5], [0.25, 1.0, 0.5]), ([0.0, 1.0], [0.25, 1.0])):
        q, p = (np.exp(x) / np.exp(x).sum() for x in (row, values))
        expected += float((p * np.log(p / q)).sum()) / 2
    term = FunctionTerm(neutrality_kl, weight=2.0, values=True)
    summary = term.summarize(scores, lists.relevance, lists.sides[0], lists.mask, lists.values)
    assert term.loss(summary).item() == pytest.approx(expected, abs=1e-6)
    assert math.isfinite(term.delta_aprf(summary))
    whole, pieces = (
        evenrank.train(encoder(gendered), records, fairness=term, batch=batch, accumulation=2 // batch, max_steps=1)
        for batch in (2, 1)
    )
    assert 0 < whole.log[0]["fair_loss_gender-en"] == pytest.approx(pieces.log[0]["fair_loss_gender-en"], abs=1e-4)
    with pytest.raises(
        EvenrankError, match=r"^`fairness`: the term takes the values of passages, which the lists lack$"
    ):
        evenrank.train(encoder(gendered), RECORDS, fairness=term, max_steps=1)
    with pytest.raises(EvenrankError, match=r"^`lists`: some have values, others none"):
        as_lists([records[0], RECORDS[1]])


def test_lists_of_a_run_have_the_values_of_a_frame() -> None:
    run = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["a", "b", "c"], "score": [3.0, 2.0, 1.0]})
    given = {
        "qrels": pl.DataFrame({"query_id": ["q"], "doc_id": ["b"], "relevance": [1]}),
        "collection": pl.DataFrame({"doc_id": ["a", "b", "c"], "text": ["He ran.", "She ran.", "It rained."]}),
        "queries": pl.DataFrame({"query_id": ["q"], "text": ["who ran"]}),
    }
    values = pl.DataFrame({"doc_id": ["c", "b", "a", "z"], "value": [1.0, 0.5, 0.25, 9.0]})
    lists = evenrank.training_lists(run, **given, values=values)
    assert dict(zip(lists[0].passages, lists[0].values, strict=True)) == {
        "She ran.": 0.5,
        "He ran.": 0.25,
        "It rained.": 1,
    }
    with pytest.raises(EvenrankError, match=r"^`values`: the passage 'a' has no finite value$"):
        evenrank.training_lists(run, **given, values=values.filter(pl.col("doc_id") != "a"))


def test_a_custom_loss_by_name_and_by_value(gendered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in ("LOSSES", "AVERAGED_OVER"):
        monkeypatch.setattr(losses, registry, dict(getattr(losses, registry)))

    def twice(scores: Any, relevance: Any, mask: Any) -> Any:
        return 2 * nll(scores, relevance, mask)

    register_loss("twice", twice)
    settings = ("fairness=", "training.max_steps=1", "validation.depths=")
    by_name, plain = (
        logged(fair(gendered, tmp_path / name, f"loss.name={name}", *settings))[0]["loss"] for name in ("twice", "nll")
    )
    assert by_name == pytest.approx(2 * plain, rel=1e-5)
    found = [
        evenrank.train(encoder(gendered), RECORDS, loss=loss, batch=2, max_steps=1).log[0]["loss"]
        for loss in ("nll", nll, "twice", twice)
    ]
    assert found[0] == found[1]
    assert found[2] == found[3] == pytest.approx(2 * found[0], rel=1e-5)
    with pytest.raises(EvenrankError, match="hinge is a built-in loss"):
        register_loss("hinge", nll)


@pytest.mark.parametrize(
    ("similarity", "given", "used"), [("dot", None, 1.0), ("cosine", None, 20.0), ("cosine", 4.0, 4.0)]
)
def test_scores_are_scaled_before_the_loss(gendered: Path, similarity: Any, given: Any, used: float) -> None:
    ranker, expected = encoder(gendered, similarity=similarity), []
    for row in RECORDS:
        passages = row["passages"]
        scores = used * ranker.score([row["query"]] * len(passages), passages).numpy()
        # The first passage is the relevant one.
        expected.append(np.log(np.exp(scores - scores[0]).sum()))
    found = evenrank.train(ranker, RECORDS, batch=2, max_steps=1, scale=given).log[0]["loss"]
    assert found == pytest.approx(np.mean(expected), abs=1e-4)


def test_in_batch_negatives(gendered: Path) -> None:
    ranker = encoder(gendered, similarity="cosine")
    passages = [text for row in RECORDS for text in row["passages"]]
    scores = 20 * np.array([ranker.score([row["query"]] * 5, passages).tolist() for row in RECORDS])
    # The positives are the first passage and the fourth; each competes with the four others.
    expected = np.mean([np.log(np.exp(scores[i]).sum()) - scores[i, j] for i, j in ((0, 0), (1, 3))])
    settings: Any = {"batch": 2, "max_steps": 2, "learning_rate": 0.01, "fairness": IBBR("ibbr-pd")}
    whole, cached, alone = (
        evenrank.train(encoder(gendered, similarity="cosine"), RECORDS, **settings, **more).log
        for more in ({"in_batch": True}, {"in_batch": True, "cached": 2}, {})
    )
    assert whole[0]["rank_loss"] == pytest.approx(expected, abs=1e-4)
    assert [line.get("rank_loss") for line in cached] == pytest.approx([line.get("rank_loss") for line in whole])
    # The term sees each query's own list.
    assert whole[0]["fair_loss_gender-en"] == pytest.approx(alone[0]["fair_loss_gender-en"], abs=1e-6)
    assert alone[0]["rank_loss"] < expected
    for wrong in ("loss.name=hinge", "ranker.kind=cat"):
        with pytest.raises(InputError, match=r"loss\.in_batch: for a dot ranker with the loss nll, without an adv"):
            load_recipe(gendered, ["loss.in_batch=true", wrong])


def test_callbacks_of_transformers(gendered: Path) -> None:
    steps = []

    class Steps(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            steps.append(state.global_step)

    def random_state() -> Any:
        return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()

    ranker, before = encoder(gendered), random_state()
    evenrank.train(ranker, RECORDS, batch=2, max_steps=2, callbacks=[Steps()])
    assert steps == [1, 2]
    # The process's random state is as it was.
    assert random_state() == before


def test_a_custom_ranker_by_name(gendered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gensim", reason="needs the extra [embeddings]")
    from evenrank.models.word_rankers import KNRMRanker

    class Other(KNRMRanker):
        kind = "other"

    monkeypatch.setattr(protocol, "REGISTERED", {})
    settings = ["ranker.kind=other", "ranker.model=", "ranker.vector_size=8", "fairness=", "training.max_steps=2"]
    with pytest.raises(InputError, match=r"ranker\.kind: expected cat, .* found 'other'"):
        load_recipe(gendered, settings)
    register_ranker(Other)
    done = fair(gendered, tmp_path / "r", *settings)
    assert type(evenrank.train(done / "model", RECORDS, max_steps=1).ranker) is Other
    with pytest.raises(EvenrankError, match="knrm is a built-in ranker"):
        register_ranker(KNRMRanker)


def test_records_that_differ_in_their_sides() -> None:
    sided, several = {**NURSE, "sides": [1, 0]}, {**NURSE, "sides": [[1, 0], [0, 0]]}
    for records, found in (([NURSE, sided], 1), ([sided, NURSE], 0), ([sided, several], 2)):
        message = rf"`lists`: list 2: expected sides for .*, as in list 1, found {found}$"
        with pytest.raises(EvenrankError, match=message):
            as_lists(records, [SCORING])
