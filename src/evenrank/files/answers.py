"""Search results in the JSON of other programs: Elasticsearch, OpenSearch, mteb, ranx.

>>> answer = {"took": 2, "hits": {"hits": [{"_index": "docs", "_id": "d1", "_score": 1.5}]}}
>>> run_in({"responses": [answer, answer]}).rows
[('1', 'd1', 1.5), ('2', 'd1', 1.5)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .errors import EvenrankError, quoted

Row = tuple[object, object, object]


class Answers(NamedTuple):
    """The rows (query, document, score) that a program answered, and what is to be said of them."""

    rows: list[Row]
    notes: tuple[str, ...] = ()


def run_in(given: object, queries: Sequence[str] | None = None) -> Answers | None:
    """The rows of search results in another program's form; None for anything else.

    - What ``_search`` or ``_msearch`` of Elasticsearch or OpenSearch answers, ``{query: answer}`` or a list of answers.
      A query is called by the key, or by its ``_name`` in the request (``matched_queries``), else by the id of the
      query at its place among ``queries``, else by its number.
    - What mteb writes to its ``prediction_folder``, if it is of one subset and one split.
    - ranx's ``Run`` and ``Qrels``.

    Raises EvenrankError for an answer that is an error or timed out, and for predictions of several subsets or splits.
    """
    if type(given).__module__.startswith("ranx."):
        return Answers([(query, *pair) for query, of in given.to_dict().items() for pair in of.items()])  # type: ignore[attr-defined]
    if isinstance(given, Mapping):
        if "mteb_model_meta" in given:
            return _predictions(given)
        if isinstance(given.get("responses"), list):
            return _answered(given["responses"], queries)
        if _is_answer(given):
            return _answered([given], queries)
        if given and all(map(_is_answer, given.values())):
            return _answered(list(given.values()), list(given), by_name=False)
    if isinstance(given, list) and given and all(map(_is_answer, given)):
        return _answered(given, queries)
    return None


Answer = Mapping[str, Any]


def _is_answer(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("hits"), Mapping) and "hits" in value["hits"]


def _answered(answers: Sequence[Answer], queries: Sequence[object] | None, by_name: bool = True) -> Answers:
    lists = [_hits(answer, number) for number, answer in enumerate(answers, 1)]
    unscored = any(hit.get("_score") is None for hits in lists for hit in hits)
    notes = (NO_SCORES,) if unscored else ()
    names: list[object] = [_name(hits) for hits in lists]
    # What all queries match names a part of them, such as a filter.
    if not by_name or None in names or len(set(names)) < len(names):
        if queries is not None and len(queries) != len(answers):
            raise EvenrankError(f"expected an answer for each of the {len(queries):,} queries, found {len(answers):,}")
        if by_name:
            are = "numbered, 1 the first" if queries is None else "taken as the queries', in their order"
            notes = (f"the answers name no queries: they are {are}", *notes)
        names = list(queries or map(str, range(1, len(lists) + 1)))
    rows: list[Row] = []
    for query, hits in zip(names, lists, strict=True):
        rows += [(query, hit["_id"], -rank if unscored else hit["_score"]) for rank, hit in enumerate(hits, 1)]
    return Answers(rows, notes)


NO_SCORES = "there are no scores: score = −rank"


def _hits(answer: Answer, number: int) -> list[Answer]:
    if not _is_answer(answer):
        error = answer.get("error") if isinstance(answer, Mapping) else answer
        kind = error.get("type") if isinstance(error, Mapping) else error
        raise EvenrankError(f"expected search results, found an error as answer {number}: {quoted(kind)}")
    failed = (answer.get("_shards") or {}).get("failed")
    if answer.get("timed_out") or failed:
        why = f"{failed} of its shards failed" if failed else "it timed out"
        raise EvenrankError(f"expected whole search results, found a part as answer {number}: {why}")
    hits: list[Answer] = answer["hits"]["hits"]
    if not all(isinstance(hit, Mapping) and "_id" in hit for hit in hits):
        raise EvenrankError(f"expected hits with an _id, found others in answer {number}")
    return hits


def _name(hits: Sequence[Answer]) -> str | None:
    """The one name of a query that all hits have matched."""
    matched = [set(map(str, hit.get("matched_queries") or ())) for hit in hits]
    common = set.intersection(*matched) if matched else set()
    return common.pop() if len(common) == 1 else None


def _predictions(given: Answer) -> Answers:
    parts = {
        f"{subset}/{split}": predictions
        for subset, splits in given.items()
        if subset != "mteb_model_meta"
        for split, predictions in splits.items()
    }
    if len(parts) != 1:
        names = ", ".join(parts) or "none"
        raise EvenrankError(f"expected predictions of one subset and split, found {names}: evenrank.mteb reads each")
    (predictions,) = parts.values()
    return Answers([(query, *pair) for query, of in predictions.items() for pair in of.items()])
