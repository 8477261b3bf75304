"""Endpoints as rankers: a server on this machine answers as real ones do, and its scores come out as it gave them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank
from endpoint_cases import DOCUMENTS, QUERIES, endpoint, ranked
from evenrank import Endpoint
from evenrank.files import EvenrankError
from evenrank.models.endpoints import question
from evenrank.models.scorers import TextPairs
from loopback import Body, Server, answer_to, score_of, serving, slow_cosine

APIS = ("cohere", "tei", "openai")


def test_what_is_sent(server: Server) -> None:
    for api in APIS:
        model = endpoint(server, api, query_prompt="else: ").prompted("Q: ", None).prompted(None, "P: ")
        model.scorer().score(["a", "a"], ["b", "c"])
        Endpoint(server.url, api).scorer().score(["a"], ["b"])
    assert [json.loads(body) for body in server.bodies] == [
        {"model": "maker/ranks-2", "query": "Q: a", "documents": ["P: b", "P: c"], "top_n": 2},
        {"query": "a", "documents": ["b"], "top_n": 1},
        {"model": "maker/ranks-2", "query": "Q: a", "texts": ["P: b", "P: c"], "raw_scores": True, "truncate": True},
        {"query": "a", "texts": ["b"], "raw_scores": True, "truncate": True},
        {"model": "maker/ranks-2", "input": ["Q: a"], "encoding_format": "float"},
        {"model": "maker/ranks-2", "input": ["P: b", "P: c"], "encoding_format": "float"},
        {"input": ["a"], "encoding_format": "float"},
        {"input": ["b"], "encoding_format": "float"},
    ]
    assert all("Authorization" not in headers for headers in server.headers)
    assert server.headers[0]["User-Agent"] == f"evenrank/{evenrank.__version__}"


@pytest.mark.parametrize(
    ("given", "api", "asked"),
    [
        ("https://api.cohere.com/v2/rerank/", "cohere", "https://api.cohere.com/v2/rerank"),
        ("http://localhost:8080", "tei", "http://localhost:8080/rerank"),
        ("https://h/d/embeddings?api-version=1#part", "openai", "https://h/d/embeddings?api-version=1"),
        ("http://[::1]:80/x", "openai", "http://[::1]:80/x/embeddings"),
    ],
)
def test_the_address(given: str, api: Any, asked: str) -> None:
    assert Endpoint(given, api).address.url == asked


def test_vectors_of_another_model_in_the_answers(server: Server, tmp_path: Path) -> None:
    model = endpoint(server, "openai", answers=tmp_path / "kept")
    ranked(model, depth=2)
    server.behave = lambda _, body: {
        "data": [{"index": index, "embedding": [1.0, 2.0]} for index in range(len(body["input"]))]
    }
    with pytest.raises(EvenrankError, match=r"found \d: remove .*/kept if the model is another one than before$"):
        ranked(model)


def test_windows_of_several_queries(server: Server) -> None:
    """What one call scores comes out in the order of its pairs."""
    queries = ["b", "a", "b", "a", "c"]
    passages = ["1", "2", "3", "4", "5"]
    scorer = endpoint(server, "tei").scorer()
    assert scorer.score(queries, passages, 1).tolist() == [*map(score_of, queries, passages)]
    pairs = TextPairs.of_texts(queries, passages)
    windows = [np.array([1, 3]), np.array([4]), np.array([2, 0])]
    found = [part.tolist() for part in scorer.each(pairs, 2, windows)]
    assert found == [[score_of(queries[row], passages[row]) for row in rows] for rows in windows]
    assert list(endpoint(server, "openai").scorer().each(pairs, 2, [])) == []
    assert scorer.score([], []).tolist() == []


@pytest.fixture(scope="module")
def serving_all() -> Iterator[Server]:
    with serving() as made:
        yield made


@given(
    st.sampled_from(APIS),
    st.lists(st.tuples(st.sampled_from("abé\n"), st.sampled_from(["x", "y", "z", "\u2028", " "])), max_size=9),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_as_one_pair_after_the_other(
    serving_all: Server, api: Any, rows: list[tuple[str, str]], size: int, many: int
) -> None:
    queries, passages = [query for query, _ in rows], [passage for _, passage in rows]
    found = endpoint(serving_all, api, concurrency=many).scorer().score(queries, passages, size)
    score = slow_cosine if api == "openai" else score_of
    np.testing.assert_allclose(found, [score(*pair) for pair in rows], rtol=0, atol=1e-12)


NO_SCORE = "expected an 'index' from 0 to 1, each once, with a finite 'relevance_score', found "
NO_VECTOR = "expected an 'index' from 0 to 0, each once, with a finite 'embedding', found "
WRONG = [
    ("cohere", {"results": [{"index": 1, "relevance_score": 1.0}]}, "expected 2 scores, found 1"),
    ("cohere", {"results": [{"index": 0, "relevance_score": 1}] * 2}, NO_SCORE),
    ("cohere", {"results": [{"index": 2, "relevance_score": 1}]}, NO_SCORE + """'{"index": 2, "relevance_"""),
    ("cohere", {"results": [{"index": True, "relevance_score": 1}]}, NO_SCORE),
    ("cohere", {"results": [{"index": 0, "relevance_score": "0.5"}]}, NO_SCORE),
    ("cohere", b'{"results": [{"index": 0, "relevance_score": 1e999}]}', NO_SCORE),
    ("cohere", {"results": [{"index": 0, "relevance_score": 10**400}]}, NO_SCORE),
    ("cohere", {"results": [{"index": 0, "score": 1}]}, NO_SCORE),
    ("cohere", {"results": {"0": 1}}, "expected a list of scores as 'results', found '{\"results\": {\"0\": 1}}'"),
    ("cohere", b"<html>\n<b>Sign in</b></html>", r"expected JSON, found '<html>\n<b>Sign in</b></html>'"),
    ("cohere", b"[" * 100_000, "expected JSON, found '["),
    ("tei", [{"index": 0, "score": 1}], "expected 2 scores, found 1"),
    ("tei", {"results": []}, """expected a list of scores, found '{"results": []}'"""),
    ("tei", b"[" * 900 + b"1" + b"]" * 900, "expected an 'index' from 0 to 1"),
    ("openai", {"data": [{"index": 0, "embedding": [1, "x"]}]}, NO_VECTOR),
    ("openai", {"data": [{"index": 0, "embedding": []}]}, NO_VECTOR),
    ("openai", {"data": [{"index": 0, "embedding": [0, 0.0]}]}, NO_VECTOR),
    ("openai", {"data": [{"index": 0, "embedding": [1e300]}]}, NO_VECTOR),
    ("openai", {"data": None}, "expected a list of vectors as 'data', found "),
]  # fmt: skip


@pytest.mark.parametrize(("api", "answer", "problem"), WRONG, ids=[f"{api}-{i}" for i, (api, *_) in enumerate(WRONG)])
def test_a_wrong_answer_is_one_line(api: Any, answer: Any, problem: str, server: Server, tmp_path: Path) -> None:
    def again() -> None:
        run, texts = {"q0": {"d0": 2.0, "d1": 1.0}}, {"collection": DOCUMENTS, "queries": QUERIES}
        evenrank.rerank(run, model=endpoint(server, api), **texts, quiet=True, out=tmp_path / "run")

    server.behave = lambda *_: (200, {"Content-Type": "application/json"}, answer)
    with pytest.raises(EvenrankError) as error:
        again()
    about = "1 text from 'query 0'" if api == "openai" else "the query 'query 0'"
    ending = "embeddings" if api == "openai" else "rerank"
    assert str(error.value).startswith(f"{server.url}/{ending}: {about}: {problem}")
    assert len(str(error.value)) < 400
    assert len(server.bodies) == 1
    assert not (tmp_path / "run").exists()
    # A wrong answer is not kept.
    server.behave = lambda *_: None
    again()


def test_vectors_of_different_lengths(server: Server) -> None:
    def longer(number: int, body: Body) -> Any:
        right = answer_to("/embeddings", body)
        for row in right["data"][1 if number == 9 else 0 :] if number > 1 else ():
            row["embedding"].append(1.0)
        return right

    server.behave = longer
    with pytest.raises(EvenrankError, match=r"3 texts from 'passage 0': expected vectors of 6 numbers, found 7$"):
        ranked(endpoint(server, "openai", concurrency=1))
    server.bodies.clear()
    server.behave = lambda number, body: longer(9, body) if number == 2 else None
    with pytest.raises(EvenrankError, match=r"'passage 0': expected vectors of one length, found 6 and 7 numbers$"):
        ranked(endpoint(server, "openai", concurrency=1))


NO_ADDRESS = "`url`: expected an address with http:// or https:// and a host"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"url": "api.cohere.com"}, f"{NO_ADDRESS}, found 'api.cohere.com'"),
        ({"url": "ftp://a:pw@b"}, NO_ADDRESS),
        ({"url": "http://[::1"}, NO_ADDRESS),
        ({"url": "http://a:99999"}, f"{NO_ADDRESS}, found 'http://a:99999'"),
        ({"url": "http://a b"}, NO_ADDRESS),
        ({"api": "voyage"}, "`api`: expected cohere, tei or openai, found 'voyage'"),
        ({"model": " "}, "`model`: expected the server's name of a model, found ' '"),
        ({"concurrency": 0}, "`concurrency`: expected 1 to 1000, found 0"),
        ({"timeout": 0}, "`timeout`: expected a number from 0.001 to 86400, found 0"),
    ],
)
def test_settings(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(EvenrankError) as error:
        Endpoint(**{"url": "http://h", "api": "tei", **settings})
    assert str(error.value) == problem


def test_what_it_says_of_itself(server: Server) -> None:
    scorer = evenrank.load_ranker(endpoint(server, "openai", query_prompt="q: "))
    facts = {"kind": "endpoint", "model": "maker/ranks-2", "api": "openai", "url": f"{server.url}/embeddings"}
    assert scorer.facts() == facts | {"query_prompt": "q: ", "document_prompt": None, "similarity": "cosine"}
    assert (scorer.name, scorer.notes(), scorer.reads_to(["a"], ["b"])) == ("ranks-2", (), None)
    assert Endpoint("https://api.x.com/v1", "cohere").name == "api.x.com"
    assert Endpoint("http://me:pw@localhost:8080/v1?k=v", "tei").name == "localhost:8080"
    assert Endpoint("http://[::1]:80", "tei").name == "[::1]:80"
    assert repr(endpoint(server)) == f"Endpoint('{server.url}/rerank', 'cohere', model='maker/ranks-2')"


@pytest.mark.parametrize(
    ("api", "model", "digest"),
    [
        ("cohere", "m", "d63dcd8e0c204023b148f5361f2891bdd3f4f2f1b7bb06bd3ede3f2c9865957b"),
        ("tei", None, "2fde343738e63abede1df424b3ef2841ba9a5f6478e5ad008e0dbdee6cde8ad4"),
        ("openai", "m", "5a518246d2416e88b31bd9aea561bb07554e20d1718d695c8be5d1a144ca4496"),
    ],
)
def test_digests_of_kept_answers_stay(api: Any, model: str | None, digest: str) -> None:
    """With others, all that was kept would be asked again."""
    scorer = Endpoint("https://me:pw@h.example:81/v2/?k=secret-value#x", api, model=model).scorer()
    asked = "text é".encode() if api == "openai" else question(api, model, ["a", "b"], "q é")
    assert scorer._digest(asked).hex() == digest


def test_a_score_that_depends_on_the_others_is_kept_with_them(server: Server, tmp_path: Path) -> None:
    """The service scores by the place in the list: a kept answer belongs to the whole request."""
    server.behave = lambda _, body: {
        "results": [{"index": index, "relevance_score": float(index)} for index in range(len(body["documents"]))]
    }
    scorer = endpoint(server, answers=tmp_path / "kept").scorer()
    for order in (["a", "b", "c"], ["c", "b", "a"], ["a", "b"], ["a", "b", "c"]):
        assert scorer.score(["q"] * len(order), order).tolist() == list(range(len(order)))
    assert len(server.bodies) == 3
