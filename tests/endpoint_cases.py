"""A small collection for a server to rank, and what the tests of endpoints share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenrank import Endpoint, rerank
from evenrank.files import Run
from loopback import Server, score_of

QUERIES = {f"q{i}": f"query {i}" for i in range(4)}
DOCUMENTS = {f"d{i}": f"passage {i}" + " and more" * i for i in range(9)}
RUN = {
    query: {document: -float(rank) for rank, document in enumerate(list(DOCUMENTS)[number : number + 7])}
    for number, query in enumerate(QUERIES)
}
"""4 queries with 7 documents each, the last with 6."""
REQUESTS = 11
"""Of 3 passages at most."""


def endpoint(server: Server, api: Any = "cohere", **settings: Any) -> Endpoint:
    return Endpoint(server.url, api, **{"model": "maker/ranks-2", "timeout": 20, **settings})


def ranked(model: Endpoint, out: Path | None = None, **settings: Any) -> Run:
    return rerank(
        RUN,
        model=model,
        collection=DOCUMENTS,
        queries=QUERIES,
        **{"batch_size": 3, "quiet": True, "out": out, **settings},
    )


def scores_of(run: Run) -> dict[tuple[str, str], float]:
    return {
        (query, document): score for query, document, score in run.table.select("query_id", "doc_id", "score").rows()
    }


def expected(score: Any = score_of) -> dict[tuple[str, str], float]:
    """One pair at a time."""
    return {(query, one): score(QUERIES[query], DOCUMENTS[one]) for query in RUN for one in RUN[query]}


def command(folder: Path, server: Server, *more: object) -> list[str]:
    """``evenrank rerank`` with an endpoint, of run, collection and queries as files; without --out."""
    rows = [(query, one, rank, of[one]) for query, of in RUN.items() for rank, one in enumerate(of, 1)]
    (folder / "first.run").write_text("".join(f"{q} Q0 {one} {rank} {score} first\n" for q, one, rank, score in rows))
    for name, texts in (("c.tsv", DOCUMENTS), ("q.tsv", QUERIES)):
        (folder / name).write_text("".join(f"{one}\t{text}\n" for one, text in texts.items()))
    texts = ["--collection", folder / "c.tsv", "--queries", folder / "q.tsv", "--batch-size", 3, "--quiet"]
    return [str(word) for word in ("rerank", folder / "first.run", *texts, "--endpoint", server.url, *more)]


def every_file(folder: Path) -> Iterator[tuple[Path, bytes]]:
    yield from ((path, path.read_bytes()) for path in folder.rglob("*") if path.is_file())
