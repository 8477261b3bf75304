"""The JSON of every command is what docs/json.schema.json describes: each key, and none besides."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenrank

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
SCHEMA = json.loads((Path(__file__).parent.parent / "docs" / "json.schema.json").read_text(encoding="utf-8"))


def errors(name: str, written: str) -> list[str]:
    validator = jsonschema.Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{name}"})
    return [error.message for error in validator.iter_errors(json.loads(written))]


@pytest.fixture(scope="module")
def made() -> evenrank.SyntheticData:
    return evenrank.generate(evenrank.SyntheticConfig(passages=200, queries=40, male_share=0.6))


@pytest.fixture(scope="module")
def runs(made: Any) -> dict[str, pl.DataFrame]:
    """Two runs of 20 documents by query, in the order of a hash of the ids."""
    documents, queries = made.collection.select("doc_id"), made.queries.select("query_id")
    pairs = queries.join(documents, how="cross")

    def run(seed: int) -> pl.DataFrame:
        scores = pl.concat_str("query_id", pl.lit(" "), "doc_id").hash(seed) % 1000 / 1000
        return pairs.with_columns(score=scores).sort("score", descending=True).group_by("query_id").head(20)

    return {"a": run(1), "b": run(2)}


@pytest.fixture(scope="module")
def audit(made: Any, runs: Any) -> Any:
    return evenrank.audit(
        runs,
        baseline="a",
        collection=made.collection,
        qrels=made.qrels,
        query_groups={query: "even" if int(query) % 2 == 0 else "odd" for query in made.queries["query_id"]},
        measures="nDCG@10 ARaB@10 NFaiRR@10 DeltaAPRF Share(group='m')@10 ImpactRatio(group='f',pooled=True)@10",
    )


def test_audits_of_texts_of_labels_of_pairs_and_of_people(made: Any, runs: Any, audit: Any) -> None:
    written = audit.to_json(values=True)
    assert errors("audit", written) == []
    assert {"shares", "query_groups", "impact", "queries"} <= set(json.loads(written))
    some = {document: "mf"[int(document) % 2] for document in made.collection["doc_id"].head(100)}
    labelled = evenrank.audit(runs, labels=some, qrels=made.qrels, measures="nDCG@10 ARaB@10").to_json()
    assert errors("audit", labelled) == []
    assert "pairs" in json.loads(labelled)
    rows = [(f"p{i}", "fm"[i % 2], i % 5 == 0) for i in range(60)]
    table = pl.DataFrame(rows, schema=["person", "gender", "invited"], orient="row").cast({"invited": pl.Int64})
    people = evenrank.impact_ratios(table, selected="invited", id="person", group_column="gender")
    assert errors("people", people.to_json()) == []


def test_decisions_probes_positions_and_scans(made: Any, runs: Any, audit: Any) -> None:
    rules = [{"measure": "nDCG@10", "against": "baseline", "at_least": "-5%"}, {"measure": "ARaB@10", "at_most": 0.5}]
    gate = evenrank.gate(audit, budget={"rule": rules})
    assert errors("gate", gate.to_json()) == []
    texts = {"collection": made.collection, "qrels": made.qrels}
    assert errors("rebalance", evenrank.rebalance(runs["a"], method="shift", strength=0.01, **texts).to_json()) == []
    bounded = evenrank.rebalance(runs["a"], method="neutral", max_bias="ARaB@10 <= 90%", **texts)
    assert errors("rebalance", bounded.to_json()) == []

    def longest(query: str, passages: list[str]) -> list[int]:
        return [len(passage) for passage in passages]

    given = {"collection": made.collection, "queries": made.queries, "run": runs["a"], "quiet": True}
    assert errors("probe", evenrank.probe(longest, variants=["swap"], **given).to_json()) == []
    moved = evenrank.position_sensitivity(longest, qrels=made.qrels, answers=made.answers, **given)
    assert errors("position_sensitivity", moved.to_json()) == []
    assert errors("scan", evenrank.scan(made.collection, model="bm25", quiet=True).to_json()) == []


def test_a_key_that_is_not_described_and_one_that_is_missing(audit: Any) -> None:
    whole = json.loads(audit.to_json())
    more, less = copy.deepcopy(whole), copy.deepcopy(whole)
    more["runs"]["a"]["measures"]["nDCG@10"]["median"] = 0.5
    del less["findings"][0]["level"]
    assert "'median' was unexpected" in errors("audit", json.dumps(more))[0]
    assert "'level' is a required property" in errors("audit", json.dumps(less))
