"""Runs of other retrievers: a search engine, a server that answers JSON, LangChain's and LlamaIndex's."""

from __future__ import annotations

import json
import math
import os
import re
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import polars as pl

from evenrank import options as opt
from evenrank.files import EvenrankError, InputError, Run, as_queries
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, quoted, require, shown
from evenrank.files.progress import progress, to_standard_error
from evenrank.files.reading import line_blocks
from evenrank.files.tables import DOCUMENT
from evenrank.files.wording import counted

from .endpoints import Address, Session, WrongAnswerError, secret_in

Hits = list[tuple[str, float | None]]
"""The documents of an answer, best first, with their scores."""
HITS = ("hits.hits", "hits", "results", "documents", "docs", "response.docs", "data", "matches")
"""Where servers put the list of what they found."""
IDS = (
    *(f"{place}{name}" for place in ("metadata.", "node.metadata.", "") for name in DOCUMENT),
    *("metadata.source", "node.metadata.source"),
    "node.ref_doc_id",
    "node.node_id",
)
SCORES = tuple(f"{place}{name}" for place in ("", "metadata.") for name in ("score", "_score", "relevance_score"))
"""Where a document's id and score are in a hit: of search engines, of LangChain's documents, of LlamaIndex's nodes (the
id of one that was split off a document is its own, and random)."""


_TEMPLATE = {"size": "{k}", "_source": False, "query": {"multi_match": {"query": "{query}"}}}
"""All text fields of an index."""


def _filled(value: object, query: str, k: int) -> object:
    """JSON values with a query, and a number of documents where ``"{k}"`` stands alone, put in."""
    if isinstance(value, dict):
        return {name: _filled(item, query, k) for name, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, query, k) for item in value]
    if not isinstance(value, str):
        return value
    return k if value == "{k}" else value.replace("{query}", query)


@checked
def retrieve_from(
    source: object,
    queries: opt.TheQueries,
    *,
    k: Annotated[int, opt.Option("Documents per query.", range=opt.COUNT)] = 1000,
    index: Annotated[
        str | None,
        opt.Option(
            "from: an index of OpenSearch or Elasticsearch, at this server.",
            needs=("source",),
            panel="Input",
            rare=True,
        ),
    ] = None,
    template: Annotated[
        object,
        opt.Option(
            'from: its query, as JSON with "{query}" and "{k}" (default: all text fields).',
            needs=("index",),
            metavar="FILE",
            reads=True,
            rare=True,
        ),
    ] = None,
    hits: Annotated[
        str | None,
        opt.Option(
            "from: the list in an answer, as hits.hits (default: by the usual names).",
            needs=("source",),
            panel="Input",
            rare=True,
        ),
    ] = None,
    id: Annotated[
        str | None,
        opt.Option("from: a hit's document id, as metadata.doc_id.", needs=("source",), panel="Input", rare=True),
    ] = None,
    score: Annotated[
        str | None,
        opt.Option(
            "from: a hit's score (default: the usual names); '': the order counts.",
            needs=("source",),
            panel="Input",
            rare=True,
        ),
    ] = None,
    key_env: Annotated[
        str | None,
        opt.Option(
            "from: the environment variable with the key to send.",
            needs=("source",),
            panel="Input",
            rare=True,
        ),
    ] = None,
    concurrency: Annotated[
        int, opt.Option("from: requests in flight.", needs=("source",), range=opt.CONCURRENCY, panel="Input", rare=True)
    ] = 4,
    timeout: Annotated[
        float,
        opt.Option("from: seconds for an answer.", needs=("source",), range=opt.SECONDS, panel="Input", rare=True),
    ] = 60,
    largest_answer: Annotated[int, opt.Range(1, 1 << 20)] = 64,
    name: str | None = None,
    quiet: bool = True,
) -> Run:
    """The first ``k`` documents of each query by a retriever that is elsewhere, as a run.

    ``source`` is one of:

    - an address with ``{query}`` and perhaps ``{k}`` in it, which is asked with GET and answers JSON;
    - with ``index``: the address of OpenSearch or Elasticsearch, which is asked ``template``: a dict, or a JSON file,
      in which ``"{query}"`` and ``"{k}"`` are filled in; by default one that searches all text fields;
    - a retriever of LangChain (``invoke``, ``get_relevant_documents``) or LlamaIndex (``retrieve``), or a function of a
      query that returns such documents, or dicts or ids.

    ``hits``, ``id``, ``score``: where the list is in an answer, and id and score in each of its hits, as names with
    dots between them; by default the usual ones. Scores rank the hits, and a note says how many answers are in another
    order, as those with distances, or with scores that a re-ranker left as they were. Without any score, and with
    ``score=""``, the order counts. A document that is there several times, as of its parts, is where its best is.

    ``key_env``: the *name* of the environment variable with a key, sent as bearer token or, to an ``index``, as
    ``ApiKey``. ``concurrency``, ``timeout``, ``largest_answer`` (MiB), further tries and what is kept out of messages:
    as for :class:`evenrank.Endpoint`. ``name``: of the run.

    Raises EvenrankError for a server that does not answer, for an answer without hits, ids or finite scores, or with
    white space in an id, and if no query has a result.
    """
    query_table = as_queries(queries)
    paths = _Paths(hits, id, score)
    if isinstance(source, str):
        if not source.startswith(("http://", "https://")):
            raise EvenrankError(f"{arg.source}: expected an address with http:// or https://")
        address = _address(source, index)
        search = None if index is None else _TEMPLATE if template is None else _template(template)
        facts: dict[str, object] = {"retriever": address.shown, "index": index}
        facts |= {} if template is None else {"template": search}
        require("another retriever", "endpoints", "urllib3")
        session = Session(
            address,
            secret_in(key_env),
            scheme="Bearer" if index is None else "ApiKey",
            concurrency=concurrency,
            timeout=timeout,
            largest_answer=largest_answer,
            tell=(lambda _: None) if quiet else to_standard_error,
        )
        label, rows = index or address.place, _asked(session, address.url, search, query_table, k, paths, quiet)
    else:
        for option, value in {"index": index, "key_env": key_env}.items():
            if value is not None:
                raise EvenrankError(f"{arg(option)} needs an address with http:// or https:// as {arg.source}")
        facts = {"retriever": f"{type(source).__module__}.{type(source).__qualname__}"}
        label, rows = type(source).__name__, _called(source, query_table, k, paths, quiet)
    facts |= {place: value for place, value in (("hits", hits), ("id", id), ("score", score)) if value is not None}
    return _as_run(rows, query_table, k, name or label, {"stage": "retrieve", "k": k, **facts})


def _as_run(rows: Sequence[tuple[str, Hits]], asked: pl.DataFrame, k: int, name: str, card: dict[str, object]) -> Run:
    table = [(query, document, score) for query, hits in rows for document, score in hits]
    if not table:
        raise EvenrankError(f"{name}: no query has a result")
    notes = []
    without = asked.height - sum(bool(hits) for _, hits in rows)
    if without:
        notes.append(f"{name}: {counted(without, 'query')} without results")
    unscored = next((query for query, _, score in table if score is None), None)
    if unscored is not None:
        if any(score is not None for _, _, score in table):
            raise EvenrankError(
                f"{name}: expected a score of every hit or of none, found both (query {quoted(unscored)})"
            )
        notes.append(f"{name}: the answers have no scores; their order counted")
        table = [(query, document, -float(rank)) for query, hits in rows for rank, (document, _) in enumerate(hits, 1)]
    frame = pl.DataFrame(table, {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")
    falling = frame.group_by("query_id").agg((pl.col("score").diff() <= 0).all())["score"]
    if not falling.all():
        rising = counted(int((~falling).sum()), "answer")
        notes.append(
            f"{name}: the order of {rising} contradicts the scores, which decided ({arg('score', '')}: the order)"
        )
    first = frame.group_by("query_id", "doc_id", maintain_order=True).agg(pl.col("score").max())
    if first.height < frame.height:
        notes.append(
            f"{name}: {counted(frame.height - first.height, 'hit')} of a document that is there several times left out"
        )
    run = Run.from_table(first, name, notes=tuple(notes))
    return replace(run, table=run.table.filter(pl.col("rank") <= k), card=card)


@dataclass(frozen=True)
class _Paths:
    """Where the hits are in an answer, and id and score in a hit; None: by the usual names; no score: ``""``."""

    hits: str | None
    id: str | None
    score: str | None

    def read(self, answer: object, k: int) -> Hits:
        """The first hits of an answer, of JSON or of Python. Raises WrongAnswerError for one that has none."""
        places = HITS if self.hits is None else (self.hits,)
        lists = [answer] if self.hits is None else []
        lists += [_at(answer, place) for place in places]
        hits = next((value for value in lists if isinstance(value, list | tuple)), None)
        if hits is None:
            raise WrongAnswerError(f"expected a list as {' or '.join(places)}, found", _brief(answer))
        return [self._hit(hit) for hit in hits[:k]]

    def _hit(self, hit: object) -> tuple[str, float | None]:
        alone = hit if isinstance(hit, str | int) and self.id is None else None
        row_id = _first(hit, IDS if self.id is None else (self.id,)) if alone is None else alone
        place = f"under a usual name ({arg.id} names another)" if self.id is None else f"as {self.id}"
        # No run can hold half of a pair of UTF-16.
        lone = isinstance(row_id, str) and re.search("[\ud800-\udfff]", row_id) is not None
        if not isinstance(row_id, str | int) or isinstance(row_id, bool) or row_id == "" or lone:
            raise WrongAnswerError(f"expected a document's id {place} in a hit, found", _brief(hit))
        if re.search(r"[ \t\r\n]", str(row_id)):
            # TREC's format has no place for it, which `write_run` would say after the last query.
            raise WrongAnswerError(f"expected a document's id without white space {place} in a hit, found", _brief(hit))
        value = _first(hit, SCORES if self.score is None else filter(None, (self.score,)))
        if value is None and not self.score:
            return str(row_id), None
        try:
            number = math.nan if isinstance(value, bool | str) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise WrongAnswerError(f"expected a finite number as {self.score or 'score'}, found", _brief(hit))
        return str(row_id), number


def _first(hit: object, places: Iterable[str]) -> object:
    return next((value for value in (_at(hit, place) for place in places) if value is not None), None)


def _at(value: object, place: str) -> object:
    """What is in JSON values or objects under names with dots between them; None if nothing is."""
    for name in place.split("."):
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, str | int | float | list | tuple | None):
            return None
        else:
            value = getattr(value, name, None)
    return value


def _brief(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=shown)


def _template(given: object) -> dict[str, object]:
    """A template, of a dict or a file, in whose values the query has its place."""
    template = given
    if isinstance(given, str | os.PathLike):
        try:
            template = json.loads(b"".join(block.data for block in line_blocks(given)))
        except (ValueError, RecursionError) as error:
            raise InputError(given, f"expected a query as JSON ({error})") from None
    if not isinstance(template, dict) or _filled(template, "a", 1) == _filled(template, "b", 1):
        message = 'expected a JSON object with "{query}" in one of its values'
        raise (
            InputError(given, message)
            if isinstance(given, str | os.PathLike)
            else EvenrankError(f"{arg.template}: {message}")
        )
    return template


def _address(url: str, index: str | None) -> Address:
    """Where an index is searched, or an address with ``{query}``, which only its path and its values may have."""
    if index is not None:
        if not index.strip(".") or "/" in index or not index.isprintable():
            raise EvenrankError(f"{arg.index}: expected a name without / and not of dots alone, found {quoted(index)}")
        # Several with commas between them, and all that match a pattern.
        return Address.of(url, f"{urllib.parse.quote(index, safe=',*')}/_search")
    before, placeholder, _ = url.partition("{query}")
    if not placeholder:
        raise EvenrankError(
            f"{arg.source}: expected {{query}} in the address, or {arg.index} for OpenSearch or Elasticsearch"
        )
    if not re.match(r"https?://[^/?#]+[/?][^#]*$", before):
        raise EvenrankError(f"{arg.source}: expected {{query}} behind the host, and before any #")
    return Address.of(url, "")


def _asked(
    session: Session,
    url: str,
    search: Mapping[str, object] | None,
    asked: pl.DataFrame,
    k: int,
    paths: _Paths,
    quiet: bool,
) -> list[tuple[str, Hits]]:
    """What a server finds for each query, several of which are asked at a time.

    ``search``: what an index is asked, with ``{query}`` and ``{k}`` in its values; None: they are in the ``url``.
    """

    def read(text: str) -> Hits:
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            raise WrongAnswerError("expected JSON, found", text.strip()) from None
        partly = isinstance(answer, dict) and search is not None
        if partly and (answer.get("timed_out") or _at(answer, "_shards.failed")):
            raise WrongAnswerError("expected an answer of all shards in time, found", _brief(answer))
        return paths.read(answer, k)

    def ask(query: str) -> Hits:
        about = f"the query {quoted(query)}"
        if search is not None:
            return session.ask(json.dumps(_filled(search, query, k)).encode(), about, read)
        # Its dots too: `..` leads to another path.
        escaped = urllib.parse.quote(query, safe="").replace(".", "%2E")
        return session.ask(None, about, read, url.replace("{k}", str(k)).replace("{query}", escaped))

    with progress("retrieving", asked.height, quiet=quiet) as advance, closing(session):
        results = []
        questions = ((text, partial(ask, text)) for text in asked["text"])
        for query, answer in zip(asked["query_id"], session.in_order(questions), strict=True):
            results.append((query, answer))
            advance(1)
    return results


def _called(source: Any, asked: pl.DataFrame, k: int, paths: _Paths, quiet: bool) -> list[tuple[str, Hits]]:
    """What a retriever in Python finds for each query."""
    names = ("invoke", "get_relevant_documents", "retrieve")
    call = next((method for name in names if callable(method := getattr(source, name, None))), source)
    if not callable(call):
        raise EvenrankError(f"{arg.source}: expected an address or a retriever, found {shown(source)}")
    results = []
    with progress("retrieving", asked.height, quiet=quiet) as advance:
        for query, text in asked.select("query_id", "text").iter_rows():
            try:
                results.append((query, paths.read(call(text), k)))
            except WrongAnswerError as error:
                problem, *parts = error.args
                raise EvenrankError(f"{arg.source}: {quoted(text)}: {problem} {quoted(' '.join(parts), 200)}") from None
            advance(1)
    return results
