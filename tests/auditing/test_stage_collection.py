"""The first step of a pipeline: from the whole collection to the candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenrank
from evenrank import AuditResult
from evenrank.auditing.data import Decomposition
from evenrank.auditing.documents import smallest
from evenrank.files.json_values import json_values
from evenrank.groups import Scoring, load_lexicon, score_collection, score_in_memory
from slow_inference import slow_compare
from small_audits import TEXTS, collection, many, run

LEAN = "ARaB(magnitude='bool')@2"
# Of 16 documents, 9 of m, 3 of f and 4 of none: the mean side is 6/16.
DOCUMENTS = {f"{kind}{number}": TEXTS[kind] for kind, many in (("m", 9), ("f", 3), ("n", 4)) for number in range(many)}
FIRST = many({"1": ["m1", "f1", "n1"], "2": ["f1", "m1", "m2"], "3": ["n1"]}, 6)
SECOND = {query: docs[::-1] for query, docs in FIRST.items()}
STAGES = {"A": run(FIRST), "B": run(SECOND)}


def audit(measures: str = LEAN, **settings: Any) -> AuditResult:
    if "scores" not in settings and "labels" not in settings:
        settings.setdefault("collection", collection(DOCUMENTS))
    return evenrank.audit(stages=STAGES, measures=measures, **settings)


def of(result: AuditResult, key: str = LEAN) -> Decomposition:
    assert result.stages is not None
    return result.stages.measures[key]


def note(result: AuditResult) -> str:
    [found] = [text for text in result.notes if text.startswith("Stages: ")]
    return found


def test_the_collection_by_hand() -> None:
    """With weights that sum to 1 its value is 6/16 in every query; the candidates have 0, ⅓ and 0."""
    result = audit()
    found = of(result)
    assert result.stages is not None
    assert result.stages.documents == 16
    assert found.collection == pytest.approx(6 / 16)
    assert found.candidates == pytest.approx(1 / 9)
    step = found.retrieval
    assert step is not None
    differences = np.array([0, 1 / 3, 0] * 6) - 6 / 16
    assert step.added == pytest.approx(differences.mean())
    p, *ends = slow_compare(differences.tolist())
    assert (step.test.p, step.test.ci95) == (pytest.approx(p, rel=1e-6), pytest.approx(tuple(ends)))
    assert step.figure == found.candidates
    assert [one.stage for one in found.steps] == ["A", "B"]
    assert found.collection + step.added + sum(one.added for one in found.steps) == pytest.approx(found.total)
    assert note(result) == "Stages: the collection's figures are of 16 documents, all of the collection."


def test_weights_that_depend_on_the_list() -> None:
    """FaiRR to depth 2 of a list of three has weights of 1 + 0.63, of a list of one 1."""
    found = of(audit("FaiRR@2 NFaiRR@2"), "FaiRR@2")
    scores = score_in_memory(collection(DOCUMENTS), Scoring(load_lexicon("gender-en")))
    neutral = float(scores.table["neutrality"].mean())  # type: ignore[arg-type]
    two = 1 + 1 / np.log2(3)
    assert found.collection == pytest.approx(neutral * (two + two + 1) / 3)


def test_json_text_and_sentence() -> None:
    result = audit()
    data: Any = result.to_dict()["stages"]
    assert data["documents"] == 16
    found = data["measures"][LEAN]
    assert found["collection"] == {"figure": pytest.approx(6 / 16)}
    step = of(result).retrieval
    assert step is not None
    assert step.test.ci95 is not None
    assert found["candidates"]["figure"] == pytest.approx(1 / 9)
    assert found["candidates"]["added"] == json_values(step.test)
    assert found["candidates"]["added"]["mean"] == pytest.approx(step.added)
    lines = [line.split() for line in result.table(full=True).split("\n")]
    assert ["(collection)", "0.3750", "–", "0.3750"] in lines
    assert ["(candidates)", "-0.2639"] in [line[:2] for line in lines]
    (said,) = [one.text for one in result.findings if one.key == "retrieval_adds"]
    assert "the collection has" in said
    assert "+.375, the candidates of A +.111: retrieval adds −.264 [" in said


def test_measures_that_are_no_weighted_sums_start_at_the_candidates() -> None:
    result = audit(f"{LEAN} AbsARaB@2 |ARaB|@2 AWRF@2")
    for key in ("AbsARaB@2", "|ARaB|@2", "AWRF@2"):
        found = of(result, key)
        assert found.collection is found.retrieval is None
        assert found.to_dict()["collection"] is None
    assert of(result).collection is not None


# --- where the collection is known ------------------------------------------------------------------------------------


def test_scores_of_more_than_the_runs(tmp_path: Path) -> None:
    scoring = Scoring(load_lexicon("gender-en"))
    scores = score_in_memory(collection(DOCUMENTS), scoring)
    path = tmp_path / "scores.parquet"
    score_collection(collection(DOCUMENTS), path, scoring)
    for form in (scores, scores.table, path):
        result = audit(scores=form)
        assert of(result).collection == pytest.approx(6 / 16)
        assert note(result) == "Stages: the collection's figures are of 16 documents, all of the scores."
    # The poles are the audit's, not the file's.
    turned = of(audit(scores=path, poles="f,m"))
    assert turned.collection == pytest.approx(-6 / 16)


def test_scores_of_the_runs_alone_are_no_collection() -> None:
    own = {doc for docs in FIRST.values() for doc in docs}
    scores = score_in_memory(collection({doc: DOCUMENTS[doc] for doc in own}), Scoring(load_lexicon("gender-en")))
    result = audit(scores=scores)
    assert of(result).collection is None
    assert note(result) == (
        "Stages: what the collection holds is not known: the scores have no documents but those of the runs."
    )


def test_labels_are_no_sample_of_the_collection() -> None:
    labels = {doc: doc[0] for doc in DOCUMENTS if doc[0] != "n"}
    result = audit("ARaB(magnitude='count')@2", labels=labels, unknown="skip")
    assert of(result, "ARaB(magnitude='count')@2").collection is None
    assert note(result) == "Stages: what the collection holds is not known: documents with a label are no sample of it."


@pytest.mark.parametrize("measures", ["AbsARaB@2 AWRF@2 |ARaB|@2", "nDCG@2"])
def test_no_other_measure_reads_the_collection_again(monkeypatch: pytest.MonkeyPatch, measures: str) -> None:
    monkeypatch.setattr("evenrank.auditing.documents.smallest", None)
    found = audit(measures, qrels={"1.0": {"m1": 1}})
    assert not any("Stages" in text for text in found.notes)


def test_only_stages_look_at_the_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenrank.auditing.documents.smallest", None)
    found = evenrank.audit(STAGES, collection=collection(DOCUMENTS), measures=LEAN)
    assert not any("Stages" in text for text in found.notes)


@pytest.mark.parametrize("kind", ["texts", "scores"])
def test_a_large_collection_is_sampled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    monkeypatch.setattr("evenrank.auditing.documents.MOST_DOCUMENTS", 300)
    many = {**DOCUMENTS, **{f"x{number}": TEXTS["m" if number % 4 else "f"] for number in range(4000)}}
    path = tmp_path / "scores.parquet"
    score_collection(collection(many), path, Scoring(load_lexicon("gender-en")))
    settings: dict[str, Any] = {"collection": collection(many)} if kind == "texts" else {"scores": path}
    result = audit(**settings)
    assert result.stages is not None
    assert result.stages.documents == 300
    assert of(result).collection == pytest.approx(0.5, abs=0.15)
    source = "the collection" if kind == "texts" else "the scores"
    assert note(result) == (
        f"Stages: the collection's figures are of 300 of the 4,016 documents of {source}, drawn by seed; intervals"
        " leave out what another sample of documents would change."
    )
    assert of(audit(**settings)).collection == of(result).collection
    assert of(audit(**settings, seed=1)).collection != of(result).collection


@given(st.integers(0, 200), st.integers(1, 30), st.integers(1, 40), st.integers(0, 5))
@settings(max_examples=40)
def test_the_sample_is_the_same_however_it_is_read(documents: int, most: int, batch: int, seed: int) -> None:
    table = pl.DataFrame({"doc_id": [f"d{number}" for number in range(documents)]})
    batches = list(table.iter_slices(batch)) or [table]
    found, total = smallest(batches, most, seed)
    assert total == documents
    assert found.height == min(most, documents)
    whole, _ = smallest([table.sample(fraction=1, shuffle=True, seed=1)], most, seed)
    assert set(found["doc_id"]) == set(whole["doc_id"])
