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
from kind_factories import KINDS, OTHERS, Other, saved
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


LOST = {"static": [0, 0], "causal": None}


@pytest.mark.parametrize("name", [*OTHERS, *KINDS])
def test_position_sensitivity(name: str, models: dict[str, Any], tmp_path: Path) -> None:
    model = models[name] if name in models else saved(name, tmp_path)
    facts = OTHERS[name].facts if name in models else {"kind": KINDS[name].name}
    # Of 30 words with the answer the last ones are not read; static embeddings read all.
    lost = LOST.get(name, None if name in models and OTHERS[name].words is None else [0, 4])
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
    assert found["settings"]["ranker"] | facts == found["settings"]["ranker"]  # type: ignore[index]
    assert found["moved"]["cut"] == lost  # type: ignore[index]


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
