"""Training with labels of passages instead of a lexicon: the same where they say the same, and what is unknown."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import evenrank
from evenrank.auditing import audit
from evenrank.files import EvenrankError, InputError, read_qrels, read_queries, read_run, read_texts
from evenrank.groups import Scoring, as_labels, load_lexicon, sides_of_texts
from evenrank.mitigation.attributes import attributes_of, scorings_of, sides_by
from evenrank.mitigation.ibbr import IBBR
from evenrank.training.adversarial import AdversarialRanker, attack, gendered_by_label, scores_and_vectors
from evenrank.training.adversarial import gendered as gendered_texts
from evenrank.training.lists import PassageGroups, TrainingLists, as_lists, build_lists, collate
from evenrank.training.recipes import load_recipe
from evenrank.training.run import build_ranker
from evenrank.training.trainer import Collator
from training_runs import assert_same, card_of, fair, result_of

GENDER = Scoring(load_lexicon("gender-en"))


@pytest.fixture(scope="module")
def sides(home: Path, gendered: Path) -> dict[str, int]:
    """The side of each passage by its words."""
    texts = read_texts(home / "g.tsv", pl.Series([str(i) for i in range(60)]))
    found = sides_of_texts(texts["text"], GENDER)
    return dict(zip(texts["doc_id"].to_list(), found.tolist(), strict=True))


NAMES = {1: "M", -1: "F", 0: "N"}


def in_memory(sides: dict[str, int]) -> Any:
    return as_labels({i: NAMES[s] for i, s in sides.items()}, neutral=["N"], poles="M,F")


def written(path: Path, sides: dict[str, int]) -> Path:
    """Labels M, F and N by side."""
    path.write_text("doc_id,group\n" + "".join(f"{i},{NAMES[s]}\n" for i, s in sides.items()), encoding="utf-8")
    return path


def attributes(path: Path) -> str:
    return f'fairness.attributes=[{{name = "gender", labels = "{path}", neutral = ["N"], poles = "M,F"}}]'


def test_the_command_says_what_is_known_and_the_card_audits_by_the_labels(gendered, sides, tmp_path, evenrank):
    labels = written(tmp_path / "l.csv", {i: s for i, s in sides.items() if int(i) % 2})
    done = tmp_path / "out"
    more = ["training.batch=8", "training.max_steps=4", f'out="{done}"', attributes(labels)]
    ended = evenrank("train", gendered, *[part for setting in more for part in ("--set", setting)])
    assert (ended.status, ended.out) == (0, f"{done / 'model'}\n")
    # At the start; nothing is said twice.
    (line,) = (line for line in ended.err.splitlines() if line.startswith("labels (gender): "))
    ends = r" training passages have one \(8 of 16 relevant ones\), .* the others are unknown and on no side$"
    assert re.search(ends, line)
    card = card_of(done)
    assert "by their labels; those without one are left out of the measures of bias" in card
    assert "labels (gender): " in card
    assert "`--only-queries --unknown skip`" in card
    kept = json.loads((done / "audit.json").read_text(encoding="utf-8"))["runs"]
    recipe = load_recipe(done / "recipe.toml")
    own = audit(
        {"first stage": recipe.validation.run, "fair": str(done / "validation.run")},
        labels=labels,
        neutral=["N"],
        poles="M,F",
        qrels=recipe.validation.qrels,
        queries=read_run(done / "validation.run").queries.to_frame().with_columns(text=pl.lit("")),
        only_queries=True,
        baseline="first stage",
        unknown="skip",
    )
    for figures, run in zip(kept.values(), own.runs, strict=True):
        assert {m: f["mean"] for m, f in figures["measures"].items()} == {m: f.mean for m, f in run.measures.items()}
    assert {"ARaB@10", "Share(group='M')@10", "nDCG@10"} <= set(kept["first stage"]["measures"])
    result = result_of(done)
    files = {file["role"]: file for file in result["provenance"]["files"]}
    assert files["labels"]["path"] == str(labels)
    assert "lexicon" not in files


def data_of(recipe: Path) -> dict[str, Any]:
    return {name: getattr(load_recipe(recipe).data, name) for name in ("run", "qrels", "collection", "queries")}


def test_a_file_of_lists_gets_its_sides_from_labels(gendered, sides, tmp_path):
    """As those of ``evenrank negatives``, whose own column of groups is not read."""
    labels = written(tmp_path / "l.csv", {i: s for i, s in sides.items() if i != "0"})
    rows = [{"query_id": "0", "doc_id": ["0", "1", "3"], "label": [1, 0, 0], "group": [1, 1, 1]},
            {"query_id": "1", "doc_id": ["1", "2"], "label": [1, 0], "group": [0, None]}]  # fmt: skip
    (tmp_path / "g.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settings = [f'data.groups="{tmp_path / "g.jsonl"}"', "data.run=", "data.qrels=", attributes(labels)]
    done = fair(gendered, tmp_path / "out", *settings, "training.max_steps=1", "training.evaluate_every=1")
    lists = TrainingLists(done / "groups", negatives=3)
    assert lists[0].sides == [[0], [sides["1"]], [sides["3"]]]
    assert lists[1].sides == [[sides["1"]], [sides["2"]]]
    counts = json.loads((done / "groups" / "counts.json").read_text(encoding="utf-8"))
    assert [counts[key] for key in ("passages", "known_gender", "relevant", "known_relevant_gender")] == [4, 3, 2, 1]


def test_python_trains_by_labels(gendered, sides, tmp_path):
    labels, results = in_memory(sides), []
    for given in ({"lexicon": "gender-en"}, {"labels": labels}):
        lists = evenrank.training_lists(**data_of(gendered), negatives=3, **given)
        ranker = build_ranker(load_recipe(gendered).ranker)
        results.append(evenrank.train(ranker, lists, fairness=IBBR(weight=0.5), batch=8, max_steps=3, **given))
    one, other = (result.ranker.state_dict() for result in results)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert "fair_loss_in memory" in results[1].log[-2]
    with pytest.raises(EvenrankError, match=r"^`labels`: not with `lexicon`"):
        evenrank.train(ranker, lists, fairness=IBBR(), lexicon="gender-en", labels=labels)
    records = [{"query": "q", "passages": ["a", "b"], "relevance": [1, 0]}]
    for by_document in (lambda: as_lists(records, [labels]), lambda: scorings_of(labels)):
        with pytest.raises(EvenrankError, match="labels in memory are by document, and these passages have no ids"):
            by_document()


# --- attributes -------------------------------------------------------------------------------------------------------


def test_sides_by_labels_by_hand():
    labels = as_labels({"a": {"x": 0.6, "y": 0.4}, "b": {"x": 0.2, "y": 0.2}, "c": {"x": 0.1, "y": 0.5}})
    table = pl.DataFrame({"doc_id": ["c", "nothing", "a", "b"], "text": [""] * 4})
    assert sides_by(labels, table).tolist() == [-1, 0, 1, 0]
    assert sides_by(labels.with_poles("y,x"), table).tolist() == [1, 0, -1, 0]
    assert list(attributes_of({"one": labels, "two": "gender-en"})) == ["one", "two"]
    message = "^the labels know none of 1 passage \\('d', …\\): they have 'a', 'b', 'c', …$"
    with pytest.raises(EvenrankError, match=message):
        sides_by(labels, pl.DataFrame({"doc_id": ["d"], "text": [""]}))
    three = as_labels({"a": "x", "b": "y", "c": "z"})
    message = r"the labels in memory have the groups x, y, z: as_labels\(…, poles='a,b'\)"
    with pytest.raises(EvenrankError, match=message):
        attributes_of(three)
    assert list(attributes_of(three.with_poles("z,rest"))) == [""]


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ('lexicon = "gender-en", labels = "L"', "fairness.attributes.0: expected either lexicon or labels"),
        ('neutral = ["N"]', "fairness.attributes.0: neutral needs labels"),
        ('group_column = "g"', "fairness.attributes.0: group_column needs labels"),
        ('labels = "L", tokens = "whitespace"', "fairness.attributes.0: tokens: labels have no words"),
        ('labels = "L", language = "en"', "unknown key fairness.attributes.0.language (allowed: lexicon, labels, neu"),
    ],
)
def test_a_recipe_names_either(gendered, attribute, message):
    with pytest.raises(InputError, match=re.escape(message)):
        load_recipe(gendered, [f"fairness.attributes=[{{{attribute}}}]"])


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        ("1,M 2,F", ', poles = "M,X"', r"^fairness\.attributes\.poles: expected two of F, M, rest"),
        ("1,a 2,b 3,c", "", r"^fairness\.attributes: the labels l\.csv have the groups a, b, c: poles"),
        ("x,M y,F", "", r"^the labels \S*l\.csv know none of \d+ validated passages \('"),
        ("1,M 2,F", ', group_column = "g"', r"csv: there is no column 'g' \(fairness\.attributes\.group_column\)"),
        ("1,M", "", r"l\.csv: expected at least two groups, found M"),
        ("VALIDATION", "", r"know none of \d+ passages \("),
    ],
)
def test_labels_that_cannot_be_used_leave_nothing(gendered, tmp_path, rows, more, message):
    if rows == "VALIDATION":  # labels of its passages alone
        recipe = load_recipe(gendered)
        train, valid = (set(read_run(path).table["doc_id"]) for path in (recipe.data.run, recipe.validation.run))
        rows = " ".join(f"{i},{'MF'[n % 2]}" for n, i in enumerate(valid - train - {str(i) for i in range(16)}))
    (tmp_path / "l.csv").write_text("\n".join(["doc_id,group", *rows.split(), ""]), encoding="utf-8")
    with pytest.raises(EvenrankError, match=message):
        fair(gendered, tmp_path / "out", f'fairness.attributes=[{{labels = "{tmp_path / "l.csv"}"{more}}}]')
    assert not (tmp_path / "out").exists()


# --- an adversary -----------------------------------------------------------------------------------------------------


def test_an_attack_leaves_out_what_is_unknown(home, gendered):
    ranker = build_ranker(load_recipe(gendered).ranker)
    passages = read_texts(home / "g.tsv", pl.Series([str(i) for i in range(60)]))["text"].to_list()
    queries = [f"query {'is' * (i // 3)}" for i in range(60)]
    known = gendered_texts(pl.Series(passages), GENDER).astype(np.int8)
    whole = attack(ranker, queries, passages, GENDER, epochs=2)
    assert attack(ranker, queries, passages, known, epochs=2) == whole
    assert whole.unknown == 0
    # As if the unknown pairs were not there.
    unknown = np.arange(60) % 5 == 0
    part = attack(ranker, queries, passages, np.where(unknown, -1, known), epochs=2)
    kept = np.flatnonzero(~unknown).tolist()
    rest = attack(ranker, [queries[i] for i in kept], [passages[i] for i in kept], known[kept], epochs=2)
    assert asdict(part) == {**asdict(rest), "unknown": 12}


def test_an_adversary_learns_nothing_of_unknown_passages(gendered, sides, tmp_path):
    data = data_of(gendered)
    few = {i: s for i, s in sides.items() if int(i) % 3}
    labels = as_labels(written(tmp_path / "l.csv", few), neutral=["N"])
    expected = [int(sides["1"] != 0), -1, int(sides["2"] != 0)]
    assert gendered_by_label(pl.Series(["1", "0", "2"]), labels).tolist() == expected
    read = read_run(data["run"]), read_qrels(data["qrels"]), data["collection"], read_queries(data["queries"])
    build_lists(*read, tmp_path / "t", groups=PassageGroups(target=labels))
    lists = TrainingLists(tmp_path / "t", negatives=3)
    assert lists.attributes == 0
    batch = collate([lists[i] for i in range(4)])
    assert batch.gendered is not None
    by_text = dict(zip(read_texts(data["collection"], pl.Series(list(sides)))["text"], sides, strict=True))
    wanted = [int(few[i] != 0) if (i := by_text[text]) in few else -1 for row in batch.passages for text in row]
    assert batch.gendered[batch.mask].tolist() == wanted
    assert {-1, 0, 1} == set(wanted)
    ranker = AdversarialRanker(build_ranker(load_recipe(gendered).ranker), None)
    ranker.train()
    inputs = Collator(ranker)([lists[i] for i in range(4)])
    index = {name: inputs[name] for name in inputs if name not in ("relevance", "sides", "index", "counted")}
    _, loss = ranker(**index)
    # The mean over the known pairs alone.
    known = index["gendered"] >= 0
    plain = {name: value for name, value in index.items() if name != "gendered"}
    logits = ranker.adversary(scores_and_vectors(ranker.ranker, plain)[1])
    expected_loss = torch.nn.functional.cross_entropy(logits[known], index["gendered"][known].long())
    assert loss.item() == pytest.approx(expected_loss.item(), abs=1e-6)
    with pytest.raises(EvenrankError, match="an adversary by labels needs lists that say which passages are gendered"):
        ranker.encode(type(batch)(batch.queries, batch.passages))


def test_accumulated_pieces_weigh_known_pairs(gendered, sides, tmp_path):
    """With unknown passages the pieces of a batch differ in how many pairs the adversary sees."""
    labels = written(tmp_path / "l.csv", {i: s for i, s in sides.items() if int(i) % 3})
    common = [
        "fairness=", "training.max_steps=3", "training.evaluate_every=3", 'training.keep="last"', "validation.depths=",
        "adversary.factor=0.5", "adversary.attack=false", f'adversary.labels="{labels}"', 'adversary.neutral=["N"]',
    ]  # fmt: skip
    whole = fair(gendered, tmp_path / "whole", *common, "training.batch=8")
    pieces = fair(gendered, tmp_path / "pieces", *common, "training.batch=2", "training.accumulation=4")
    assert_same(whole, pieces, tolerance=2e-5)
