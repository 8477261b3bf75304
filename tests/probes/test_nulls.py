"""Rankers that can prefer nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenrank.probes.nulls import blind_scores, randomised

QUERIES = ["the doctor", "she runs", "software", "a nurse"] * 2
PASSAGES = ["the nurse wrote software", "she runs home early", "a doctor by night", "he is a nurse"] * 2


def cases() -> list[str]:
    pytest.importorskip("torch", reason="needs the extra [neural]")
    from kind_factories import KINDS
    from ranker_factories import CASES

    return [*KINDS, *CASES]


def made(name: str, folder: Path) -> Any:
    from kind_factories import KINDS
    from ranker_factories import CASES

    return KINDS[name].make(folder) if name in KINDS else CASES[name].make(0)


def weights(scorer: Any) -> dict[str, Any]:
    module = scorer.ranker if hasattr(scorer, "ranker") else scorer.model
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


@pytest.mark.parametrize("name", cases())
def test_every_kind_of_model(name: str, tmp_path: Path) -> None:
    import torch

    from evenrank.rankers.load import load_ranker

    scorer = load_ranker(made(name, tmp_path))
    scores, before, facts = scorer.score(QUERIES, PASSAGES), weights(scorer), scorer.facts()
    state = torch.get_rng_state()
    found, again, other = (randomised(scorer, seed) for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), state)

    random = weights(found)
    assert {key: value.shape for key, value in random.items()} == {key: value.shape for key, value in before.items()}
    assert all(torch.equal(random[key], value) for key, value in weights(again).items())
    # All matrices are drawn anew; scales, biases and TK's gate start from the same number.
    matrices = [
        key for key, value in before.items() if value.is_floating_point() and value.ndim > 1 and value.std() > 0
    ]
    assert matrices
    assert not [key for key in matrices if torch.equal(random[key], before[key])]
    assert not [key for key in matrices if torch.equal(random[key], weights(other)[key])]

    theirs = found.score(QUERIES, PASSAGES)
    assert np.isfinite(theirs).all()
    assert np.abs(theirs - scores).max() > 1e-3
    np.testing.assert_array_equal(again.score(QUERIES, PASSAGES), theirs)
    assert np.abs(other.score(QUERIES, PASSAGES) - theirs).max() > 1e-3
    assert found.name == f"{scorer.name}, random weights"
    assert {**found.facts(), "model": None, "sha256": None} == {**facts, "model": None, "sha256": None}

    assert all(torch.equal(value, before[key]) for key, value in weights(scorer).items())
    np.testing.assert_array_equal(scorer.score(QUERIES, PASSAGES), scores)


def test_padding_stays_zero() -> None:
    from evenrank.rankers.load import load_ranker
    from ranker_factories import CASES

    found: Any = randomised(load_ranker(CASES["tk"].make(0)), 0)
    assert not found.ranker.embeddings.weight[0].any()


def test_no_weights_to_draw() -> None:
    pytest.importorskip("torch", reason="needs the extra [neural]")
    from evenrank import Endpoint
    from evenrank.rankers.load import load_ranker

    def zeros(query: str, passages: list[str]) -> list[float]:
        return [0.0] * len(passages)

    assert randomised(load_ranker(zeros), 0) is None
    assert randomised(load_ranker(Endpoint("http://127.0.0.1:9/", "cohere")), 0) is None


def test_blind_scores_depend_on_ids_alone() -> None:
    rng = np.random.default_rng(0)
    queries = [f"q{one}" for one in rng.integers(0, 40, 3000)]
    passages = [f"d{one}" for one in rng.integers(0, 500, 3000)]
    found = blind_scores(queries, passages, 3)
    order = rng.permutation(3000)
    np.testing.assert_array_equal(
        blind_scores([queries[at] for at in order], [passages[at] for at in order], 3), found[order]
    )
    assert len(set(found)) == len(set(zip(queries, passages, strict=True)))
    assert 0 <= found.min() < 0.01 < 0.99 < found.max() < 1
    assert found.std() == pytest.approx(12**-0.5, abs=0.01)
    # Another seed, and query and passage exchanged, are unrelated.
    for other in (blind_scores(queries, passages, 4), blind_scores(passages, queries, 3)):
        assert abs(np.corrcoef(found, other)[0, 1]) < 0.06
    assert blind_scores(["q\ud800"], [""])[0] < 1
    assert len(blind_scores([], [])) == 0
