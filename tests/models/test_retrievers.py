"""Other retrievers: servers on this machine answer as real ones do, and their rankings come out as runs."""

from __future__ import annotations

import gzip
import json
import urllib.parse
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from evenrank import EvenrankError, retrieve_from
from loopback import Body, Server

SECRET = "sk-Abc123+xyz/789"

QUERIES = {"q1": "who knew: a/b & ü", "q2": "nothing", "q3": 'said "so"'}
FOUND = {"q1": {"d2": 3.5, "d1": 0.1 + 0.2}, "q3": {"d9": 2.0, "d3": 2.0, "d1": -1.0}}
BY_TEXT = {text: FOUND.get(query, {}) for query, text in QUERIES.items()}


pytestmark = pytest.mark.usefixtures("waits")


def opensearch(server: Server, **more: Any) -> Any:
    """How OpenSearch and Elasticsearch answer _search."""

    def behave(number: int, body: Body) -> Any:
        hits = [
            {"_index": "docs", "_id": one, "_score": score}
            for one, score in BY_TEXT[body["query"]["multi_match"]["query"]].items()
        ]
        total = {"value": len(hits), "relation": "eq"}
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        return {"took": 3, "timed_out": False, "_shards": shards, "hits": {"total": total, "hits": hits}, **more}

    return behave


def searched(server: Server, named: str = "results", **names: str) -> Any:
    """A server of one's own, asked with GET."""
    row_id, score = names.get("id", "id"), names.get("score", "score")

    def behave(number: int, body: Body) -> Any:
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(server.paths[number]).query)["q"][0]
        return {named: [{row_id: one, score: value} for one, value in BY_TEXT[query].items()]}

    return behave


def test_an_index(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.behave = opensearch(server)
    monkeypatch.setenv("KEY", "s3cret-key")
    run = retrieve_from(server.url, QUERIES, k=5, index="docs", key_env="KEY", quiet=True)
    assert run.to_dict() == FOUND
    assert run.name == "docs"
    assert run.notes == ("docs: 1 query without results",)
    assert set(server.paths) == {"/docs/_search"}
    assert {headers["Authorization"] for headers in server.headers} == {"ApiKey s3cret-key"}
    asked = [json.loads(body) for body in server.bodies]
    assert {one["query"]["multi_match"]["query"] for one in asked} == set(QUERIES.values())
    assert all(one["size"] == 5 and one["_source"] is False for one in asked)
    assert run.card == {"stage": "retrieve", "k": 5, "retriever": f"{server.url}/docs/_search", "index": "docs"}


def test_a_template(server: Server, tmp_path: Path) -> None:
    server.behave = lambda number, body: {"hits": {"hits": [{"_id": "d1", "_score": 1.5}]}}
    template = {"size": "{k}", "query": {"bool": {"must": [{"match": {"body": "in {query}"}}]}}, "from": 0}
    (tmp_path / "t.json").write_text(json.dumps(template))
    for given in (template, tmp_path / "t.json"):
        run = retrieve_from(server.url, {"q1": 'a "b"\n{k}'}, k=7, index="docs", template=given, quiet=True)
        asked = json.loads(server.bodies.pop())
        assert asked == {"size": 7, "query": {"bool": {"must": [{"match": {"body": 'in a "b"\n{k}'}}]}}, "from": 0}
        assert run.card is not None
        assert run.card["template"] == template
    nowhere = {"{query}": {"size": "{k}", "query": "{Query}"}}
    for text, message in (("{", "expected a query as JSON"), (json.dumps(nowhere), "in one of its values")):
        (tmp_path / "t.json").write_text(text)
        with pytest.raises(EvenrankError, match=message):
            retrieve_from(server.url, QUERIES, index="docs", template=tmp_path / "t.json", quiet=True)
    with pytest.raises(EvenrankError, match="`template`: expected a JSON object with"):
        retrieve_from(server.url, QUERIES, index="docs", template=nowhere, quiet=True)


@pytest.mark.parametrize(
    ("named", "names", "paths"),
    [
        ("docs", {"id": "doc_id", "score": "_score"}, {}),
        ("found", {"id": "key", "score": "bm25"}, {"hits": "found", "id": "key", "score": "bm25"}),
    ],
)
def test_an_address(named: str, names: Any, paths: Any, server: Server) -> None:
    server.behave = searched(server, named, **names)
    run = retrieve_from(f"{server.url}/search?q={{query}}&k={{k}}", QUERIES, k=2, quiet=True, **paths)
    # Two of a query, as scores and ids order them.
    assert run.to_dict() == {"q1": FOUND["q1"], "q3": {"d9": 2.0, "d3": 2.0}}
    assert all("k=2" in path for path in server.paths)
    assert run.card is not None
    assert "who" not in json.dumps(run.card)
    assert {name: run.card.get(name) for name in paths} == paths


def test_ids_alone(server: Server) -> None:
    server.behave = lambda number, body: ["d3", 7, "d3", "d1"]
    run = retrieve_from(f"{server.url}/?q={{query}}", {"q1": "a"}, name="mine", quiet=True)
    assert run.to_dict() == {"q1": {"d3": -1.0, "7": -2.0, "d1": -4.0}}
    assert run.notes == (
        "mine: the answers have no scores; their order counted",
        "mine: 1 hit of a document that is there several times left out",
    )


def test_orders_that_contradict_scores(server: Server, tmp_path: Path, evenrank: Any) -> None:
    """Distances, or the scores of a first stage."""
    found = {"a": [["d1", 0.1], ["d2", 0.4], ["d2", 0.7]], "b": [["d3", 9.0], ["d1", 9.0]], "c": [["d5", 1], ["d4", 2]]}

    def retriever(query: str) -> list[dict[str, object]]:
        return [{"id": one, "score": score} for one, score in found[query]]

    queries = {"q1": "a", "q2": "b", "q3": "c"}
    run = retrieve_from(retriever, queries, quiet=True, name="f")
    assert run.table["doc_id"].to_list() == ["d2", "d1", "d3", "d1", "d4", "d5"]
    assert run.table["score"].to_list() == [0.7, 0.1, 9, 9, 2, 1]
    assert run.notes[0] == "f: the order of 2 answers contradicts the scores, which decided (`score=''`: the order)"
    run = retrieve_from(retriever, queries, score="", quiet=True)
    assert run.table["doc_id"].to_list() == ["d1", "d2", "d3", "d1", "d5", "d4"]
    server.behave = lambda *_: retriever("c")
    (tmp_path / "q.tsv").write_text("q1\ta\n")
    command = ["retrieve", tmp_path / "q.tsv", "--from", f"{server.url}/?q={{query}}", "--out", "-"]
    assert (
        "the order of 1 answer contradicts the scores, which decided (--score '': the order)" in evenrank(*command).err
    )
    assert [line.split()[2] for line in evenrank(*command, "--score", "").out.splitlines()] == ["d5", "d4"]


BAD: list[tuple[Any, str]] = [
    ((404, {}, {"error": {"reason": "no", "message": "no such index"}}), r"status 404: 'no such index'$"),
    ((200, {}, b'{"hits": '), r"expected JSON, found '{\"hits\":'$"),
    ({"hits": 5}, r"expected a list as hits.hits or hits or .*, found '{\"hits\": 5}'$"),
    ({"hits": [{"title": "x"}]}, r"expected a document's id under a usual name .*, found"),
    ({"hits": [{"id": "d1", "score": "high"}]}, r"expected a finite number as score, found"),
    ({"hits": [{"id": "d1", "score": True}]}, r"expected a finite number as score, found"),
    ((200, {}, b'{"hits": [{"id": "d1", "score": 1e999}]}'), r"expected a finite number as score, found"),
    ((302, {"Location": "http://elsewhere/"}, b""), r"redirected to 'http://elsewhere/', which is not followed"),
    ((200, {"Content-Encoding": "gzip"}, gzip.compress(b" " * (4 << 20))), r"an answer of more than 3 MiB"),
]


@pytest.mark.parametrize(("told", "message"), BAD, ids=range(len(BAD)))
def test_wrong_answers_are_one_line(told: Any, message: str, server: Server) -> None:
    server.behave = lambda *_: told
    with pytest.raises(EvenrankError, match=message) as error:
        retrieve_from(f"{server.url}/?q={{query}}", {"q1": "a"}, largest_answer=3, quiet=True)
    assert len(str(error.value)) < 600
    assert "the query 'a'" in str(error.value)


@pytest.mark.parametrize("query", ["..", ".", "../../admin", "a/../b", "%2e%2e", "?k=9#x", "{k}"])
@pytest.mark.parametrize("place", ["/search/{query}/hits?n={k}", "/search?q={query}"])
def test_a_query_stays_in_its_place(query: str, place: str, server: Server) -> None:
    server.behave = lambda *_: ["d1"]
    retrieve_from(f"{server.url}{place}", {"q1": query}, k=3, quiet=True)
    (path,) = server.paths
    before, _, after = place.replace("{k}", "3").partition("{query}")
    assert path.startswith(before)
    assert path.endswith(after)
    escaped = path[len(before) : len(path) - len(after)]
    assert not set(escaped) & set("./?#{}")
    assert urllib.parse.unquote(escaped) == query


@pytest.mark.parametrize(
    "index", ["..", ".", "", "my/idx", "../x", "docs\n", "\ud800", "docs", "a,b-*", "<logs-{now}>", "a?b#c%2e:ü"]
)
def test_an_index_stays_in_its_place(index: str, server: Server) -> None:
    server.behave = lambda *_: {"hits": {"hits": [{"_id": "d1", "_score": 1.5}]}}
    if "/" in index or index in ("..", ".", "", "docs\n", "\ud800"):
        with pytest.raises(EvenrankError, match=r"^`index`: expected a name without / and not of dots alone, found '"):
            retrieve_from(server.url, {"q1": "a"}, index=index, quiet=True)
        assert server.paths == []
        return
    retrieve_from(server.url, {"q1": "a"}, index=index, quiet=True)
    (path,) = server.paths
    escaped = path.removeprefix("/").removesuffix("/_search")
    assert not set(escaped) & set("/?#:<")
    assert (urllib.parse.unquote(escaped), "%2C" in escaped, "%2A" in escaped) == (index, False, False)


@pytest.mark.parametrize("found", ["\\ud800", "New York", "d1\\n", "a\\tb"])
def test_an_id_that_no_run_can_hold(found: str, server: Server, tmp_path: Path, evenrank: Any) -> None:
    server.behave = lambda *_: (200, {}, f'{{"hits": [{{"id": "{found}"}}]}}'.encode())
    (tmp_path / "q.tsv").write_text("q1\ta\n")
    out = ["--out", tmp_path / "out.run"]
    done = evenrank("retrieve", tmp_path / "q.tsv", "--from", f"{server.url}/?q={{query}}", *out)
    assert (done.status, done.err.count("\n")) == (2, 1)
    without = "" if found == "\\ud800" else " without white space"
    assert f"the query 'a': expected a document's id{without} under a usual name" in done.err
    assert not (tmp_path / "out.run").exists()


def test_shards_that_failed(server: Server) -> None:
    server.behave = opensearch(server, _shards={"total": 2, "successful": 1, "failed": 1})
    with pytest.raises(EvenrankError, match="expected an answer of all shards in time"):
        retrieve_from(server.url, QUERIES, index="docs", quiet=True)


def test_servers_that_are_busy_are_asked_again(server: Server, waits: list[float], capsys: Any) -> None:
    right = opensearch(server)
    busy = [(429, {"Retry-After": "9"}, {"error": "busy"}), (500, {}, b""), "drop"]
    server.behave = lambda number, body: busy[number] if number < len(busy) else right(number, body)
    assert retrieve_from(server.url, QUERIES, index="docs", concurrency=1, quiet=False).to_dict() == FOUND
    assert waits == [9, 2, 4]
    # Told once, at the first of them.
    assert capsys.readouterr().err == f"{server.url}/docs/_search: status 429: 'busy'; asked again, up to 7 tries\n"
    server.behave = lambda *_: (503, {}, {"message": "down"})
    with pytest.raises(EvenrankError, match=r"status 503: 'down' \(7 tries\)$"):
        retrieve_from(server.url, QUERIES, index="docs", quiet=True)


NO_SOURCES: dict[str, list[Any]] = {
    "`source`: expected an address": ["", "python search.py {query}", "'", 5, "ftp://x/{query}"],
    "`source`: expected {query} in the address": ["http://127.0.0.1:1/search"],
    # A query names no server.
    "`source`: expected {query} behind the host, and before any #": [
        "http://{query}", "http://{query}.org/", "http://me:{query}@h/", "http://h/a#{query}", "http://h/a?b#c?q={query}",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("message", "source"), [(key, one) for key, sources in NO_SOURCES.items() for one in sources])
def test_what_is_no_retriever(source: Any, message: str) -> None:
    with pytest.raises(EvenrankError) as error:
        retrieve_from(source, QUERIES, quiet=True)
    assert str(error.value).startswith(message)


def test_retrievers_of_langchain_and_llamaindex() -> None:
    """Duck-typed: documents of LangChain, with metadata, and nodes of LlamaIndex, with scores."""

    def document(metadata: dict[str, Any]) -> Any:
        return SimpleNamespace(id="uuid", page_content="x", metadata=metadata)

    def node(name: str, document: str | None, score: float) -> Any:
        inner = SimpleNamespace(node_id=name, ref_doc_id=document, metadata={"file": "x"})
        return SimpleNamespace(node=inner, node_id="random", metadata={"file": "x"}, score=score)

    class LangChain:
        def invoke(self, query: str) -> list[Any]:
            return [document({"doc_id": name, "source": "s"}) for name in BY_TEXT[query]]

    class Early:
        def get_relevant_documents(self, query: str) -> list[Any]:
            return [document({"id": name, "score": score}) for name, score in BY_TEXT[query].items()]

    class LlamaIndex:
        """With nodes that were split off documents: an id of their own, which is random, and a worse part of each."""

        def retrieve(self, query: str) -> list[Any]:
            found = BY_TEXT[query].items()
            return [node(uuid4().hex, name, score - less) for less in (0, 9) for name, score in found]

    class Whole:
        def retrieve(self, query: str) -> list[Any]:
            return [node(name, None, score) for name, score in BY_TEXT[query].items()]

    assert retrieve_from(LangChain(), QUERIES, quiet=True).to_dict() == {
        "q1": {"d2": -1.0, "d1": -2.0},
        "q3": {"d9": -1.0, "d3": -2.0, "d1": -3.0},
    }
    for retriever in (Early(), LlamaIndex(), Whole()):
        assert retrieve_from(retriever, QUERIES, quiet=True).to_dict() == FOUND
    run = retrieve_from(LangChain(), QUERIES, id="metadata.source", quiet=True)
    assert run.to_dict() == {"q1": {"s": -1.0}, "q3": {"s": -1.0}}
    with pytest.raises(EvenrankError, match=r"`source`: 'who .*expected a document's id as metadata.key in a hit"):
        retrieve_from(LangChain(), QUERIES, id="metadata.key", quiet=True)


def test_options_that_do_not_go_together(tmp_path: Path, evenrank: Any) -> None:
    (tmp_path / "q.tsv").write_text("q1\ta\n")
    queries = [tmp_path / "q.tsv"]
    url = "http://127.0.0.1:1/?q={query}"
    for given, more, message in (
        (queries, ["--from", url, "--k1", "1"], "--from: not with --k1"),
        (queries * 2, ["--from", url], "COLLECTION: not with --from"),
        (queries * 2, ["--index", "docs"], "--index needs --from"),
        (queries, ["--from", "python search.py KEY"], "--from: expected an address with http:// or https://\n"),
        (queries, ["--from", url, "--template", tmp_path / "q.tsv"], "--template needs --index"),
    ):
        done = evenrank("retrieve", *given, *more, "--out", "-")
        assert (done.status, done.err.count("\n")) == (2, 1)
        assert message in done.err


@pytest.mark.parametrize(
    "shown", [SECRET, SECRET.upper(), " ".join(SECRET), SECRET[::-1], SECRET.encode().hex(), f"a {SECRET} b"]
)
def test_a_key_that_is_given_back_is_not_shown(
    shown: str, server: Server, monkeypatch: pytest.MonkeyPatch, evenrank: Any, tmp_path: Path
) -> None:
    monkeypatch.setenv("KEY", SECRET)
    (tmp_path / "q.tsv").write_text("q1\ta\n")
    server.behave = lambda *_: (401, {}, {"message": f"wrong key {shown}"})
    done = evenrank(
        "retrieve", tmp_path / "q.tsv", "--from", f"{server.url}/?q={{query}}", "--key-env", "KEY", "--out", "-"
    )
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "status 401" in done.err
    letters = "".join(one for one in done.err.lower() if one.isalnum())
    for form in (SECRET, SECRET[::-1], SECRET.encode().hex()):
        assert "".join(one for one in form.lower() if one.isalnum()) not in letters
