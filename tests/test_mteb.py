"""What mteb 2.26.24 wrote of a planted task: predictions, results, and its own values of each query."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from evenrank import EvenrankError, InputError, mteb

WROTE = Path(__file__).with_name("files") / "exports" / "mteb-2.26.24"
KNOWN = json.loads((WROTE / "values.json").read_text())
QRELS, VALUES = KNOWN["qrels"], KNOWN["values"]
FILES = {name: WROTE / f"{name}_predictions.json" for name in VALUES}
TASK = SimpleNamespace(dataset={"default": {"test": {"relevant_docs": QRELS}}})


def test_values_are_mtebs_own() -> None:
    result = mteb.audit(FILES, TASK, measures=" ".join(VALUES["old"]), baseline="old")
    # Neither model has predictions for the query q3.
    assert sorted(result.queries) == sorted(set(QRELS) - {"q3"})
    for name, values in VALUES.items():
        reported = mteb.read_results(WROTE / f"{name}.json", subset="default", split="test")
        for measure, of in values.items():
            found = result[name][measure]
            np.testing.assert_allclose(found.values, [of[query] for query in result.queries], rtol=0, atol=1e-9)
            assert reported[measure] == pytest.approx(found.mean, abs=1e-5)
    assert result["new"]["nDCG@10"].vs_baseline is not None
    assert result["new"]["nDCG@10"].ci95 is not None


def test_scores_of_float32() -> None:
    """trec_eval keeps scores as float32: what differs in float64 alone is a tie, and the larger id is first."""
    run = {"q": {"a": 0.1 + 0.2, "b": 0.3}}
    assert mteb.audit(run, {"q": {"b": 1}}, measures="RR@10")["run"]["RR@10"].mean == 1.0


def test_parts(tmp_path: Path) -> None:
    run = {"q": {"d": 1.0}}
    predictions = {"mteb_model_meta": {"model_name": "m/x"}, "en": {"test": run, "dev": run}, "de": {"test": run}}
    (tmp_path / "p.json").write_text(json.dumps(predictions))
    assert mteb.read_predictions(tmp_path / "p.json", subset="de").name == "m/x"
    for settings, message in (
        ({}, "expected a subset of en, de, found None"),
        ({"subset": "fr"}, "expected a subset of en, de, found fr"),
        ({"subset": "en"}, "expected a split of test, dev, found None"),
    ):
        with pytest.raises(InputError, match=f"p.json: {message}$"):
            mteb.read_predictions(tmp_path / "p.json", **settings)
    (tmp_path / "q.json").write_text("{}")
    for read, lacks in ((mteb.read_predictions, "mteb_model_meta"), (mteb.read_results, "scores")):
        with pytest.raises(InputError, match=f"found no {lacks}$"):
            read(tmp_path / "q.json")
    with pytest.raises(EvenrankError, match=r"the task is not loaded: task.load_data\(\)"):
        mteb.audit(run, SimpleNamespace(dataset=None))


def test_names_of_measures() -> None:
    assert mteb.measure_named("hit_rate_at_5") == "Success@5"
    assert mteb.measure_named("nauc_ndcg_at_1_max") is None


def test_against_the_package() -> None:
    pytest.importorskip("mteb", reason="mteb is not installed")
    from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores

    for name, path in FILES.items():
        predictions = json.loads(path.read_text())["default"]["test"]
        scores = calculate_retrieval_scores(predictions, QRELS, [10]).all_scores
        found = mteb.audit({name: path}, TASK)
        theirs = [scores[query]["ndcg_cut_10"] for query in found.queries]
        np.testing.assert_allclose(found[name]["nDCG@10"].values, theirs, rtol=0, atol=1e-9)
