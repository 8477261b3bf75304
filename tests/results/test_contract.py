"""What every result keeps to: its JSON, its table, its page, and its view in a notebook."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank.probes.position_curve import position_curve
from evenrank.probes.sensitivity import Curves, MovedAnswers, SensitivityResult
from evenrank.probes.similarity import SimilarityResult, term_similarity
from evenrank.results.result import Result
from evenrank.search import Vectors, evaluate_bias, gender_en, hard_debias
from evenrank.search.debias_file import DebiasResult
from evenrank.search.embeddings_audit import BiasAudit
from evenrank.stats.estimate import estimate
from evenrank.testing import check_result
from small_reports import small_audit, small_experiment

EVIL = "<script>evil</script>\x1b[2J"


def audited(_: Path) -> Result:
    return small_audit((EVIL, "new"))


def gated(_: Path) -> Result:
    rule = {"name": EVIL.split("\x1b")[0], "measure": "nDCG@10", "at_least": 0.1}
    return evenrank.gate(small_audit(), budget={"rule": [rule]}, run="new")


def rebalanced(_: Path) -> Result:
    texts = {f"d{i}": "he said" if i % 3 else "it said" for i in range(12)}
    run = {f"q{q}": {doc: 12.0 - i for i, doc in enumerate(texts)} for q in range(4)}
    return evenrank.rebalance(run, strength=0.5, collection=texts, qrels={"q1": {"d0": 1}, "q2": {"d3": 1}}, name=EVIL)


def fused(_: Path) -> Result:
    run = {"q": {"d": 2.0, "e": 1.0}, "r": {"d": 1.0, "e": 2.0}}
    found = evenrank.tune({EVIL: run, "b": run}, qrels={"q": {"d": 1}, "r": {"d": 1}}, folds=2)
    return replace(found, measure=EVIL)


def checked(_: Path) -> Result:
    return replace(evenrank.check_lexicon("gender-en", collection={"d": "He said so", "e": f"she {EVIL}"}), name=EVIL)


def selected(_: Path) -> Result:
    table = pl.DataFrame({EVIL: [EVIL, "b"] * 20, "hired": [0, 1, 1, 1] * 10})
    return evenrank.impact_ratios(table, group_column=EVIL, selected="hired")


def located(folder: Path) -> Result:
    found = [{"text": "two", "answer_start": 4}]
    question = {"id": EVIL, "question": "?", "answers": found}
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "one two", "qas": [question]}]}]}
    (folder / "s.json").write_text(json.dumps(squad))
    return replace(evenrank.position_answers(folder / "s.json"), name=EVIL)


def alike(_: Path) -> Result:
    vectors = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32)
    number = np.arange(120)
    found = term_similarity(vectors, number % 3, number % 12, number // 12, min_pairs=1, min_terms=1)
    settings = {"passages": 2000, "min_pairs": 1, "min_terms": 1, "cap": 1000, "seed": 0}
    return SimilarityResult(EVIL, "last layer", found, settings)


def moved(_: Path) -> Result:
    rng = np.random.default_rng(0)
    one = Curves(*(position_curve(rng.random((40, 11))) for _ in range(3)))
    of = estimate(rng.random(40), unit="passages")
    answers = MovedAnswers(one, one, of, of, np.arange(11), 40, 40, 20, 1)
    return SensitivityResult(EVIL, 60, 30, 2, 0.5, answers, 3, {}, notes=(EVIL,))


def probed(_: Path) -> Result:
    texts = {f"d{i}": f"{'he' if i % 2 else 'she'} wrote it {'word ' * i}" for i in range(12)}
    swap = {doc: text.replace("wrote", EVIL.split("\x1b")[0]) for doc, text in texts.items()}
    run = {f"q{q}": dict.fromkeys(texts, 1.0) for q in range(3)}
    return evenrank.probe(
        lambda query, passages: [float(len(passage)) for passage in passages], variants={EVIL: swap}, collection=texts,
        queries=dict.fromkeys(run, "who"), run=run, quiet=True,
    )  # fmt: skip


def vectors() -> tuple[Vectors, Any]:
    words = ("he", "she", "man", "woman", "nurse", "boss")
    given = Vectors(words, np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32))
    return given, replace(gender_en(), definitional=(("he", "she"), ("man", "woman")), equalize=())


def of_vectors(_: Path) -> Result:
    given, sets = vectors()
    return BiasAudit(EVIL, None, evaluate_bias(given, None, sets), {"vectors": EVIL})


def debiased(_: Path) -> Result:
    given, sets = vectors()
    done = hard_debias(given, sets.definitional, [("he", "she")], ())
    return DebiasResult(done, Path("out") / EVIL.split("/")[0], {"vectors": EVIL})


def of_paper(_: Path) -> Result:
    return small_experiment(EVIL, name=EVIL)


def to_label(_: Path) -> Result:
    run = {f"q{q}": {f"d{q + d}": 3.0 - d for d in range(3)} for q in range(20)}
    return evenrank.sample_labels({EVIL: run}, n=10)


def scanned(_: Path) -> Result:
    texts = evenrank.generate(evenrank.SyntheticConfig(passages=200, queries=10)).collection
    texts = texts.with_columns(doc_id=EVIL + pl.col("doc_id"))
    queries = evenrank.scan_queries(texts)
    run = pl.DataFrame({"query_id": queries["query_id"], "doc_id": queries["doc_id"], "score": 1.0})
    first, half = (evenrank.Run.from_table(run[rows], EVIL) for rows in (slice(0, 30), slice(20, 90)))
    return evenrank.scan(texts, run=first, against=half)


MADE: tuple[Callable[[Path], Result], ...] = (
    audited, gated, rebalanced, checked, located, alike, moved, probed, of_vectors, debiased, of_paper,
    fused, selected, to_label, scanned,
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    return {make.__name__: make(tmp_path_factory.mktemp("made")) for make in MADE}


@pytest.mark.parametrize("name", [make.__name__ for make in MADE])
def test_every_result_keeps_to_the_contract(name: str, made: dict[str, Result]) -> None:
    check_result(made[name])


def named(of: type) -> Iterator[str]:
    """The names of all classes that are made from one, without those that others are made from."""
    for one in of.__subclasses__():
        if one.__module__.startswith("evenrank."):
            yield from named(one) if one.__subclasses__() else [f"{one.__module__}.{one.__qualname__}"]


def test_every_class_is_among_them(made: dict[str, Result]) -> None:
    for module in pkgutil.walk_packages(evenrank.__path__, "evenrank."):
        if module.name.split(".")[1] in ("auditing", "decide", "groups", "papers", "probes", "search"):
            import_module(module.name)
    assert {f"{type(one).__module__}.{type(one).__qualname__}" for one in made.values()} == set(named(Result))


def test_a_result_without_a_page_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Result has no page"):
        Result().page()
