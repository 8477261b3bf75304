"""Training from Python: lists as records, frames and files; losses, terms and rankers by value and by name."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch.nn.functional import kl_div
from transformers import TrainerCallback

import evenrank
from evenrank.files import EvenrankError, InputError, read_qrels, read_queries, read_run, read_texts
from evenrank.groups import Scoring, load_lexicon
from evenrank.groups.labels import as_labels
from evenrank.mitigation import ibbr
from evenrank.mitigation.ibbr import IBBR, FunctionTerm, register_term
from evenrank.models import protocol
from evenrank.models.encoders import DotRanker
from evenrank.models.protocol import register_ranker
from evenrank.training import losses
from evenrank.training.choice import Validation
from evenrank.training.lists import as_lists, collate, training_lists
from evenrank.training.losses import nll, register_loss
from evenrank.training.recipes import load_recipe
from training_runs import assert_same, fair, logged

# transformers and accelerate warn of what they do themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

RECORDS = [
    {"query": "software", "passages": ["he wrote software", "rain", "she paints"], "relevance": [2, 0, 0]},
    {"query": "a nurse", "passages": ["she is a nurse", "he runs home"], "relevance": [1, 0]},
]


def same_task(gendered: Path, folder: Path, recipe: Any) -> dict[str, Any]:
    """What the recipe trains with, from Python."""
    data, validation = recipe.data, recipe.validation
    lists = training_lists(
        data.run, qrels=data.qrels, collection=data.collection, queries=data.queries, out=folder, negatives=3,
        lexicon="gender-en",
    )  # fmt: skip
    assert repr(lists).startswith(f"TrainingLists({len(lists)} lists, sides for 1 attribute, 3 random negatives each")
    run = read_run(validation.run)
    held_out = Validation.of(
        run,
        read_qrels(validation.qrels),
        read_queries(validation.queries),
        read_texts(data.collection, run.table["doc_id"].unique()),
        measure=validation.measure,
        depth=validation.depth,
        attributes={"gender": Scoring(load_lexicon("gender-en"))},
    )
    return {"lists": lists, "validation": held_out}


@pytest.mark.parametrize("term", ["ibbr-ts", "ibbr-pd"])
def test_python_trains_what_the_recipe_trains(gendered: Path, tmp_path: Path, term: Any) -> None:
    settings = [f"fairness.name={term}", "training.batch=4", "training.accumulation=2", "training.max_steps=4"]
    settings.append("validation.depths=")
    recipe = load_recipe(gendered, [f'out="{tmp_path / "recipe"}"', *settings])
    done = fair(gendered, tmp_path / "recipe", *settings)
    ranker = DotRanker.from_pretrained(recipe.ranker.model, query_length=8, passage_length=16)
    task = same_task(gendered, tmp_path / "lists", recipe)
    result = evenrank.train(
        ranker, task["lists"], fairness=IBBR(term, weight=0.5), lexicon={"gender": "gender-en"},
        validation=task["validation"], out=tmp_path / "python",
        batch=4, accumulation=2, max_steps=4, learning_rate=0.003, evaluate_every=4,
    )  # fmt: skip
    assert result.ranker is ranker
    assert result.folder == tmp_path / "python"
    assert_same(done, result.folder)
    assert result.log == logged(done)
    # And says of it what the recipe says.
    found, whole = (json.loads((folder / "result.json").read_text()) for folder in (result.folder, done))
    for apart in ("provenance", "groups"):
        found.pop(apart, None)
        del whole[apart]
    assert found == whole
    lines, expected = ((folder / "model" / "README.md").read_text().split("\n## ") for folder in (result.folder, done))
    assert lines[1] == expected[1]
    assert lines[1].startswith("Effectiveness\n\n- nDCG@10: ")
    assert evenrank.training_summary(result.folder)[0] == lines[1].splitlines()[2].removeprefix("- ")


@pytest.mark.parametrize("labelled", [False, True])
def test_a_validation_of_effectiveness_alone_and_one_by_labels(gendered: Path, tmp_path: Path, labelled: bool) -> None:
    task = same_task(gendered, tmp_path / "lists", load_recipe(gendered))
    validation = task["validation"]
    tables = {}
    if labelled:
        ids = validation.run.table["doc_id"].unique(maintain_order=True)[:6]
        labels = pl.DataFrame({"doc_id": ids, "group": ["m", "f"] * 3})
        tables = {"of": as_labels(labels, poles="m,f")}
    result = evenrank.train(
        DotRanker.from_pretrained(load_recipe(gendered).ranker.model), task["lists"],
        validation=replace(validation, attributes=tables), out=tmp_path / "out", batch=4, max_steps=1,
    )  # fmt: skip
    card = (result.folder / "model" / "README.md").read_text()
    measures = json.loads((result.folder / "audit.json").read_text())["measures"]
    assert ("ARaB@10" in measures, "--unknown skip" in card) == (labelled, labelled)
    assert (result.folder / "result.json").is_file()


def test_without_a_folder_nothing_is_left(gendered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = load_recipe(gendered).ranker.model
    result = evenrank.train(DotRanker.from_pretrained(model), RECORDS, batch=2, max_steps=3, learning_rate=0.01)
    assert result.folder is None
    assert not any(tmp_path.iterdir())
    assert result.log[0]["step"] == 1
    assert "grad_norm" in repr(result.log)
    assert "grad_norm" not in repr(result)
    folder = evenrank.train(DotRanker.from_pretrained(model), RECORDS, out="made", max_steps=1).folder
    card = (folder / "model" / "README.md").read_text()
    said = "checkpoint: step 1 of 1, the last, as there is no validation\n- reads "
    assert f"\n## Training\n\n- {said}" in card
    assert "max_steps = 1\n" in card
    # A trained model by its folder.
    evenrank.train(folder / "model", pl.DataFrame(RECORDS), max_steps=1)
    with pytest.raises(EvenrankError, match=r"^`out`: made contains a training already$"):
        evenrank.train(folder / "model", RECORDS, out="made")


def test_a_folder_that_states_its_settings_is_trained_as_it_is(gendered: Path, tmp_path: Path) -> None:
    modules = [Transformer(load_recipe(gendered).ranker.model, max_seq_length=20), Pooling(16, "mean"), Normalize()]
    stated = SentenceTransformer(modules=modules, prompts={"query": "the ", "document": "a "}, device="cpu")
    stated.save_pretrained(str(tmp_path / "stated"), create_model_card=False)
    recipe = evenrank.RankerRecipe(kind="dot", model=str(tmp_path / "stated"), query_length=8)
    folder = evenrank.train(recipe, RECORDS, batch=2, max_steps=1, learning_rate=0.01, out=tmp_path / "out").folder
    model = SentenceTransformer(str(folder / "model"), device="cpu")
    assert [type(part).__name__ for part in model] == ["Transformer", "Pooling", "Normalize"]
    assert (model[1].pooling_mode, model.similarity_fn_name, model.prompts) == ("mean", "cosine", stated.prompts)
    assert (model[0].query_length, model[0].document_length) == (8, 20)
    line = f"settings in place of those of {tmp_path / 'stated'}: query_length (8, was 20)"
    card = (folder / "model" / "README.md").read_text()
    assert f"\n- {line}\n" in card
    assert "\n- reads 8 tokens of a query, and 20 of a passage; pooling: mean\n" in card
    assert "\nqueries, passages = model.encode_query([" in card
    # The weights have moved from where they were, and what is left open is the folder's again.
    texts = ["he wrote software", "she is a nurse"]
    again = evenrank.train(folder / "model", RECORDS, max_steps=1, learning_rate=1e-12).ranker
    expected = (model.encode_query(texts) * model.encode_document(texts[::-1])).sum(1)
    np.testing.assert_allclose(again.score(texts, texts[::-1]), expected, atol=1e-5)
    assert np.abs((stated.encode_query(texts) * stated.encode_document(texts[::-1])).sum(1) - expected).max() > 1e-3


def test_lists_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "l.jsonl").write_text("".join(json.dumps(row) + "\n" for row in RECORDS), encoding="utf-8")
    frame = pl.DataFrame(RECORDS)
    frame.rename({"passages": "docs", "relevance": "labels"}).write_parquet(tmp_path / "l.parquet")
    scoring = Scoring(load_lexicon("gender-en"))
    for given in (RECORDS, iter(RECORDS), frame, frame.to_arrow(), tmp_path / "l.jsonl", tmp_path / "l.parquet"):
        lists = as_lists(given, [scoring])
        assert len(lists) == 2
        assert (lists[0].query, lists[0].relevance) == ("software", [2.0, 0.0, 0.0])
        assert [one.sides for one in (lists[0], lists[1])] == [[[1], [0], [-1]], [[-1], [1]]]
        assert (lists[-2].index, lists[-2].query) == (-1, "a nurse")
    # Sides that are given stay.
    assert as_lists([{**RECORDS[1], "sides": [1, 0]}], [scoring])[0].sides == [[1], [0]]


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
        ({**RECORDS[1], "sides": [2, 0]}, "sides: expected +1, -1 or 0 for each passage"),
        ({**RECORDS[1], "sides": [1]}, "sides: expected +1, -1 or 0 for each passage"),
        ({**RECORDS[1], "values": [1, math.nan]}, "values: expected a finite number for each passage"),
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
    ranker = DotRanker.from_pretrained(load_recipe(gendered).ranker.model)
    with pytest.raises(TypeError, match=r"^train\(\) got an unexpected keyword argument 'batchsize'$"):
        evenrank.train(ranker, RECORDS, batchsize=3)  # type: ignore[call-arg]
    with pytest.raises(EvenrankError, match=r"^`batch`: expected a whole number, found 'many'$"):
        evenrank.train(ranker, RECORDS, batch="many")  # type: ignore[arg-type]
    with pytest.raises(EvenrankError, match=r"^`loss`: expected one of nll, hinge, .*, found 'x'"):
        evenrank.train(ranker, RECORDS, loss="x")
    with pytest.raises(EvenrankError, match=r"^`fairness`: expected ibbr-pd, ibbr-ts, found 'x'"):
        evenrank.train(ranker, RECORDS, fairness="x")
    with pytest.raises(EvenrankError, match=r"^`lists`: expected at least one list, found none"):
        evenrank.train(ranker, [])
    with pytest.raises(EvenrankError, match=r"^`batch`: expected 1 or more, found 0$"):
        evenrank.train(ranker, RECORDS, batch=0)
    with pytest.raises(EvenrankError, match=r"^`lists`: no passage has a side$"):
        evenrank.train(ranker, as_lists(RECORDS), fairness=IBBR())
    given = [{**row, "sides": [0] * len(row["passages"])} for row in RECORDS]
    with pytest.raises(EvenrankError, match="sides for 1 attribute, expected 2"):
        evenrank.train(ranker, given, fairness=IBBR(), lexicon={"a": "gender-en", "b": "gender-en"})


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda scores, relevance, mask: scores, "`loss`: expected a scalar tensor, found a tensor of shape [2, 3]"),
        (lambda scores, relevance, mask: 0.5, "`loss`: expected a scalar tensor, found float"),
        (lambda scores, relevance: scores.sum(), "`loss`: expected a function of (scores, relevance, mask)"),
        (0.5, "`loss`: expected a string or a function, found 0.5"),
    ],
)
def test_a_loss_of_another_form_is_named(gendered: Path, loss: Any, message: str) -> None:
    ranker = DotRanker.from_pretrained(load_recipe(gendered).ranker.model)
    with pytest.raises(EvenrankError) as error:
        evenrank.train(ranker, RECORDS, loss=loss)
    assert str(error.value) == message


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
    common = ["fairness.name=gap", "fairness.weight=5", "training.max_steps=4"]
    whole = fair(gendered, tmp_path / "whole", *common, "training.batch=8")
    pieces = fair(gendered, tmp_path / "pieces", *common, "training.batch=2", "training.accumulation=4")
    none = fair(gendered, tmp_path / "none", *common, "training.batch=8", "fairness.weight=0")
    assert_same(whole, pieces, tolerance=2e-5)
    with pytest.raises(AssertionError):
        assert_same(whole, none, tolerance=2e-5)
    first = logged(whole)[0]
    assert first["loss"] == pytest.approx(first["rank_loss"] + 5 * first["fair_loss_gender"], abs=1e-4)
    # The same by value.
    recipe = load_recipe(gendered)
    task = same_task(gendered, tmp_path / "lists", recipe)
    ranker = DotRanker.from_pretrained(recipe.ranker.model, query_length=8, passage_length=16)
    by_value = evenrank.train(
        ranker, task["lists"], fairness=FunctionTerm(probability_gap, weight=5.0), lexicon={"gender": "gender-en"},
        validation=task["validation"], out=tmp_path / "value",
        batch=8, max_steps=4, learning_rate=0.003, evaluate_every=4,
    )  # fmt: skip
    assert_same(whole, by_value.folder)
    with pytest.raises(EvenrankError, match="ibbr-ts is a built-in term"):
        register_term("ibbr-ts", probability_gap)


def neutrality_kl(scores: Any, relevance: Any, sides: Any, mask: Any, values: Any) -> Any:
    target = values.masked_fill(~mask, -1e9).softmax(1)
    return kl_div(scores.masked_fill(~mask, -1e9).log_softmax(1), target, reduction="batchmean")


def test_a_term_takes_the_values_of_passages(gendered: Path) -> None:
    # Lists of 3 and of 2 passages: padding is in neither softmax.
    records = [{**row, "values": [0.25, 1.0, 0.5][: len(row["passages"])]} for row in RECORDS]
    found = as_lists(records, [Scoring(load_lexicon("gender-en"))])
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
    made = partial(DotRanker.from_pretrained, load_recipe(gendered).ranker.model)
    logs = [
        evenrank.train(made(), records, fairness=term, batch=batch, accumulation=2 // batch, max_steps=1).log[0]
        for batch in (2, 1)
    ]
    whole, pieces = (log["fair_loss_gender-en"] for log in logs)
    assert 0 < whole == pytest.approx(pieces, abs=1e-4)
    with pytest.raises(
        EvenrankError, match=r"^`fairness`: the term takes the values of passages, which the lists lack$"
    ):
        evenrank.train(made(), RECORDS, fairness=term, max_steps=1)
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
    register_loss("twice", lambda scores, relevance, mask: 2 * nll(scores, relevance, mask))
    by_name = fair(gendered, tmp_path / "n", "loss.name=twice", "fairness=", "training.max_steps=2")
    plain = fair(gendered, tmp_path / "p", "fairness=", "training.max_steps=2")
    assert logged(by_name)[0]["loss"] == pytest.approx(2 * logged(plain)[0]["loss"], rel=1e-5)
    model = load_recipe(gendered).ranker.model
    found = [
        evenrank.train(DotRanker.from_pretrained(model), RECORDS, loss=loss, batch=2, max_steps=1).log[0]["loss"]
        for loss in ("nll", nll, "twice", lambda scores, relevance, mask: 2 * nll(scores, relevance, mask))
    ]
    assert found[0] == found[1]
    assert found[2] == found[3] == pytest.approx(2 * found[0], rel=1e-5)
    with pytest.raises(EvenrankError, match="hinge is a built-in loss"):
        register_loss("hinge", nll)


def test_in_batch_negatives(gendered: Path) -> None:
    made = partial(DotRanker.from_pretrained, load_recipe(gendered).ranker.model, similarity="cosine")
    ranker = made()
    passages = [text for row in RECORDS for text in row["passages"]]
    scores = 20 * np.array([ranker.score([row["query"]] * 5, passages).tolist() for row in RECORDS])
    # The positives are the first passage and the fourth; each competes with the four others.
    expected = np.mean([np.log(np.exp(scores[i]).sum()) - scores[i, j] for i, j in ((0, 0), (1, 3))])
    settings: Any = {"batch": 2, "max_steps": 2, "learning_rate": 0.01}
    logs = [
        evenrank.train(made(), RECORDS, in_batch=True, fairness=IBBR("ibbr-pd"), **settings, **more).log
        for more in ({}, {"cached": 2})
    ]
    assert logs[0][0]["rank_loss"] == pytest.approx(expected, abs=1e-4)
    assert [line.get("rank_loss") for line in logs[1]] == pytest.approx([line.get("rank_loss") for line in logs[0]])
    # The term sees each query's own list.
    alone = evenrank.train(made(), RECORDS, fairness=IBBR("ibbr-pd"), **settings).log[0]
    assert logs[0][0]["fair_loss_gender-en"] == pytest.approx(alone["fair_loss_gender-en"], abs=1e-6)
    assert alone["rank_loss"] < expected
    with pytest.raises(EvenrankError, match=r"^`in_batch`: expected a dot ranker and the loss nll$"):
        evenrank.train(made(), RECORDS, loss="hinge", in_batch=True)
    for wrong in ("loss.name=hinge", "ranker.kind=cat"):
        with pytest.raises(
            InputError, match=r"loss\.in_batch: for a dot ranker with the loss nll, without an adversary"
        ):
            load_recipe(gendered, ["loss.in_batch=true", wrong])


def test_callbacks_of_transformers(gendered: Path) -> None:
    steps = []

    class Steps(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            steps.append(state.global_step)

    ranker = DotRanker.from_pretrained(load_recipe(gendered).ranker.model)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    evenrank.train(ranker, RECORDS, batch=2, max_steps=2, callbacks=[Steps()])
    assert steps == [1, 2]
    # The process's random state is as it was.
    assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before


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
    scoring = Scoring(load_lexicon("gender-en"))
    plain, sided = RECORDS[1], {**RECORDS[1], "sides": [1, 0]}
    several = {**RECORDS[1], "sides": [[1, 0], [0, 0]]}
    for records, found in (([plain, sided], 1), ([sided, plain], 0), ([sided, several], 2)):
        with pytest.raises(
            EvenrankError, match=rf"`lists`: list 2: expected sides for .*, as in list 1, found {found}$"
        ):
            as_lists(records, [scoring])


@pytest.mark.parametrize("sides", [[{}, 0], [True, 0], [0.0, 1], [[1], [2]]])
def test_sides_that_are_none(sides: object) -> None:
    with pytest.raises(EvenrankError, match="sides: expected \\+1, -1 or 0 for each passage"):
        as_lists([{**RECORDS[1], "sides": sides}])


def test_relevance_beyond_any_number() -> None:
    with pytest.raises(EvenrankError, match="expected finite relevance"):
        as_lists([{**RECORDS[1], "relevance": [10**400, 0]}])


def test_what_is_no_ranker_or_validation() -> None:
    with pytest.raises(EvenrankError, match=r"^`ranker`: expected .*, found None$"):
        evenrank.train(None, RECORDS)  # type: ignore[arg-type]
    with pytest.raises(EvenrankError, match=r"^`validation`: expected a Validation, found 'x'$"):
        evenrank.train("folder", RECORDS, validation="x")  # type: ignore[arg-type]
