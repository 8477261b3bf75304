"""One way to load a ranker: folders, loaded models, rankers and functions score the same pairs alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenrank.files import EvenrankError
from evenrank.models.load import load_ranker
from evenrank.models.rerank import rerank

TEXTS = {"d1": "a b c", "d2": "a", "d3": "b b"}
RUN = {"q1": {"d1": 3.0, "d2": 2.0}, "q2": {"d3": 1.0, "d1": 0.5}}
QUERIES = {"q1": "first", "q2": "second"}


def words(query: str, passages: list[str]) -> list[int]:
    """Passages with more words come first; the first query's scores are shifted by 10."""
    return [len(passage.split()) + 10 * (query == "first") for passage in passages]


NUMBERS = ", as a list of real numbers, found"


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ([1.0], ", found 1"),
        ([1.0, None], f"{NUMBERS} [1.0, None]"),
        (["1", "2"], f"{NUMBERS} ['1', '2']"),
        ([[1.0], [2.0, 3.0]], f"{NUMBERS} [[1.0], [2.0, 3.0]]"),
        (np.ones((2, 1)), f"{NUMBERS} a ndarray of shape (2, 1)"),
        (None, f"{NUMBERS} None"),
        (iter([1.0, 2.0]), f"{NUMBERS} a list_iterator"),
        ([1.0, float("nan")], "bad: 2 of 4 scores are not finite"),
    ],
    ids=range(8),
)
def test_scores_of_a_function_are_checked(scores: Any, problem: str, tmp_path: Path) -> None:
    def bad(query: str, passages: list[str]) -> Any:
        return scores

    with pytest.raises(EvenrankError) as caught:
        rerank(RUN, model=bad, collection=TEXTS, queries=QUERIES, out=tmp_path / "out.run")
    about = "" if problem.startswith("bad") else "bad: expected 2 scores for the query 'first'"
    assert str(caught.value) == about + problem
    assert not list(tmp_path.iterdir())


def test_what_is_no_model_is_refused() -> None:
    accepted = "a folder, a name on the hub, a model of sentence-transformers, a ranker, an Endpoint or a function"
    with pytest.raises(EvenrankError) as caught:
        load_ranker(None)  # type: ignore[arg-type]
    assert str(caught.value) == f"`model`: expected {accepted}, found None"
    with pytest.raises(EvenrankError) as caught:
        rerank(RUN, model=words, collection=TEXTS, queries=QUERIES, kind="bi", precision="float32", device="cpu")
    assert str(caught.value) == (
        "`kind`, `device`, `precision`: only for a model given by its folder or its name on the hub"
    )


def test_loaded_models(cross: str) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra [neural]")
    from sentence_transformers import CrossEncoder

    assert load_ranker(CrossEncoder(cross, device="cpu")).name == "tiny-cross"
    three = CrossEncoder(cross, device="cpu", num_labels=3, model_kwargs={"ignore_mismatched_sizes": True})
    with pytest.raises(EvenrankError, match="`model`: expected a CrossEncoder with one score per pair, found 3"):
        load_ranker(three)
    with pytest.raises(EvenrankError, match=r"found a Linear$"):
        load_ranker(torch.nn.Linear(2, 2))
