"""What every kind of ranker promises, of those that are not sentence-transformers' (see ``test_kinds``): this library's
own, functions and endpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiny_models import WORDS, texts

pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

import evenrank
from evenrank.models.load import load_ranker
from evenrank.models.scorers import Scorer
from evenrank.models.stored import find_model
from kind_factories import OTHERS, Other
from loopback import serving

QUERIES = [" ".join(np.random.default_rng(seed).choice(WORDS, 2, replace=False)) for seed in range(30)]
PASSAGES = texts(30, 36, seed=2)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    home = tmp_path_factory.mktemp("others")
    with serving() as server:
        yield {name: other.make(home, server.url) for name, other in OTHERS.items()}


@pytest.fixture(params=OTHERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kind(name: str) -> Other:
    return OTHERS[name]


@pytest.fixture
def model(name: str, models: dict[str, Any]) -> Any:
    return models[name]


def load(model: Any) -> Scorer:
    return load_ranker(model, **({"device": "cpu"} if isinstance(model, Path) else {}))


def test_scores_are_the_same_again_and_do_not_depend_on_the_batch(model: Any) -> None:
    scorer = load(model)
    found = scorer.score(QUERIES, PASSAGES, 30)
    assert found.std() > 1e-3
    assert load(model).score(QUERIES, PASSAGES, 30).tobytes() == found.tobytes()
    np.testing.assert_allclose(scorer.score(QUERIES, PASSAGES, 1), found, rtol=1e-5, atol=2e-5)
    order = np.random.default_rng(0).permutation(30)
    shuffled = scorer.score([QUERIES[row] for row in order], [PASSAGES[row] for row in order], 7)
    np.testing.assert_allclose(shuffled, found[order], rtol=1e-5, atol=2e-5)


def test_what_a_ranker_is(model: Any, kind: Other) -> None:
    facts = load(model).facts()
    assert facts | kind.facts == facts
    assert json.loads(json.dumps(facts)) == facts
    assert facts.get("sha256") == (find_model(str(model)).digest() if isinstance(model, Path) else None)


def test_truncation_is_counted_or_unknown(model: Any, kind: Other) -> None:
    scorer = load(model)
    scorer.score(QUERIES, PASSAGES, 4)
    if kind.unit is None:
        assert scorer.truncated is None
        return
    assert scorer.truncated is not None
    longer = sum(len(passage.split()) > (kind.words or 0) for passage in PASSAGES)
    assert 0 < longer < 30
    assert (scorer.truncated.unit, scorer.truncated.cut, scorer.truncated.of) == (kind.unit, longer, 30)


def test_the_ends_of_what_is_read(model: Any, kind: Other) -> None:
    scorer = load(model)
    ends = scorer.reads_to(QUERIES, PASSAGES)
    if kind.words is None:
        assert ends is None
        return
    kept = [" ".join(passage.split()[: kind.words]) for passage in PASSAGES]
    assert ends == [len(passage) for passage in kept]
    np.testing.assert_allclose(scorer.score(QUERIES, kept), scorer.score(QUERIES, PASSAGES), rtol=1e-5, atol=2e-5)


def test_position_sensitivity(model: Any, kind: Other, tmp_path: Path) -> None:
    rest = [" ".join(half).capitalize() + "." for half in (WORDS[:7], WORDS[7:])] * 2
    passages = [" ".join([*rest[:i], "Early night.", *rest[i:]]) for i in range(4)]
    paragraphs = []
    for number, passage in enumerate(passages):
        answers = [{"text": "Early", "answer_start": passage.index("Early")}]
        question = f"{WORDS[number]} {WORDS[number + 4]}"
        paragraphs.append({"context": passage, "qas": [{"id": f"q{number}", "question": question, "answers": answers}]})
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
    settings = {"device": "cpu"} if isinstance(model, Path) else {}
    found = evenrank.position_sensitivity(model, squad=path, places=2, quiet=True, **settings).to_dict()
    assert found["settings"]["ranker"] | kind.facts == found["settings"]["ranker"]  # type: ignore[index]
    # Of 30 words with the answer the last ones are not read.
    assert found["moved"]["cut"] == (None if kind.words is None else [0, 4])  # type: ignore[index]


def test_a_re_ranked_run_says_what_its_ranker_is(model: Any, kind: Other) -> None:
    documents = {f"d{number}": passage for number, passage in enumerate(PASSAGES[:4])}
    run = evenrank.rerank(
        {"q": dict.fromkeys(documents, 1.0)},
        model=model,
        collection=documents,
        queries={"q": QUERIES[0]},
        quiet=True,
        **({"device": "cpu"} if isinstance(model, Path) else {}),
    )
    assert run.card is not None
    assert run.card["ranker"] == load(model).facts()
    said = [note for note in run.notes if "float32" in note or "endpoint" in note]
    assert len(said) == (kind.facts["kind"] != "function")
    assert all(str(kind.facts.get("query_prompt", "")) in note for note in said)
