"""How sensitive a ranker is to where in a passage the answer stands."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import polars as pl

from evenrank.io import EvenrankError, Run, read_qrels, read_queries, read_run, read_texts
from evenrank.io.errors import shown
from evenrank.io.squad import read_answers
from evenrank.measures import Evaluation, parse_measure
from evenrank.measures.sensitivity import FIFTHS, TOKENS, by_bucket, course

from .sensitivity_result import MEASURE, Array, Moved, SensitivityResult

__all__ = ["SensitivityResult", "position_sensitivity"]

_WORD = re.compile(r"\S+")


def position_sensitivity(
    model: str | None = None,
    *,
    collection: str | os.PathLike[str] | pl.DataFrame,
    queries: str | os.PathLike[str] | pl.DataFrame,
    qrels: str | os.PathLike[str] | pl.DataFrame,
    answers: str | os.PathLike[str] | pl.DataFrame,
    run: str | os.PathLike[str] | Run | None = None,
    depth: int = 100,
    places: int = 10,
    sample: int | None = None,
    batch_size: int = 32,
    kind: Any = None,
    device: str | None = None,
    seed: int = 0,
    quiet: bool = True,
) -> SensitivityResult:
    """Effectiveness by where answers stand, and what moving an answer within its passage does.

    ``model``: any ranker that ``evenrank rerank`` takes; None: ``run`` as it is, without the second part. ``run``: the
    candidates, else BM25's first ``depth``; a relevant passage that is not among them joins them, but a query without
    any other candidate is left out (its passage would come first whatever the model says). ``answers``: a SQuAD
    file, or ``query_id``, ``doc_id``, ``answer_start``, ``answer_end``; a query's first answer in a relevant passage
    counts. ``sample``: so many seeded queries for the second part, which scores ``places`` passages a query.

    Raises EvenrankError for a setting out of range, without a model and a run, and where no query has an answer in a
    relevant passage, or other candidates.
    """
    for name, value, least in (("depth", depth, 1), ("places", places, 2), ("sample", sample, 1)):
        if value is not None and value < least:
            raise EvenrankError(f"{name}: expected {least} or more, found {value}")
    if seed < 0:
        raise EvenrankError(f"seed: expected a whole number from 0, found {seed}")
    if model is None and run is None:
        raise EvenrankError("a model or a run is needed")
    asked = queries if isinstance(queries, pl.DataFrame) else read_queries(queries)
    judged = qrels if isinstance(qrels, pl.DataFrame) else read_qrels(qrels)
    spans = answers if isinstance(answers, pl.DataFrame) else read_answers(answers)
    first = _first_answers(spans, judged, asked)
    texts = (
        collection.filter(pl.col("doc_id").is_in(first["doc_id"].implode()))
        if isinstance(collection, pl.DataFrame)
        else read_texts(collection, first["doc_id"].unique())
    )
    located = _located(first, texts)
    ranked, added = _ranked(model, run, collection, asked, judged, depth, batch_size, kind, device, quiet)
    evaluation = Evaluation(ranked, qrels=judged)
    values = pl.DataFrame({"query_id": evaluation.judged, "value": evaluation.values(parse_measure(MEASURE))})
    table = located.join(values, on="query_id", how="inner", maintain_order="left")
    if model is not None:
        relevant = judged.filter(pl.col("relevance") >= 1)
        rivals = ranked.table.join(relevant, on=["query_id", "doc_id"], how="anti")
        table = table.join(rivals, on="query_id", how="semi", maintain_order="left")
        if not table.height:
            raise EvenrankError(f"run {ranked.name}: expected candidates of a query with an answer, found none")
    effect = table["value"].to_numpy()
    moved = cut = None
    if model is not None:
        reads = _reading_ends(model, kind, asked, table["query_id"], table["text"])
        cut = None if np.isinf(reads).any() else int((table["answer_end"].to_numpy() > reads).sum())
        chosen = table if sample is None or sample >= table.height else table.sample(sample, seed=seed).sort("query_id")
        moved = _moved(model, chosen, ranked, asked, places, batch_size, kind, device, seed, quiet)
    given = {"collection": collection, "queries": queries, "qrels": qrels, "answers": answers, "run": run}
    inputs = {name: os.fspath(value) for name, value in given.items() if isinstance(value, (str, os.PathLike))}
    settings = {"model": model, **inputs, "depth": depth, "places": places, "sample": sample, "seed": seed}
    return SensitivityResult(
        ranked.name,
        table.height,
        asked.height - located.height,
        float(np.nanmean(effect)),
        by_bucket(effect, table["word"].to_numpy(), TOKENS, clusters=_clusters(table), seed=seed),
        by_bucket(effect, table["relative"].to_numpy(), FIFTHS[:-1], 1.0, clusters=_clusters(table), seed=seed),
        moved,
        cut,
        settings,
        added,
        located.height - table.height,
    )


def _first_answers(spans: pl.DataFrame, judged: pl.DataFrame, asked: pl.DataFrame) -> pl.DataFrame:
    """The first answer of each query in a relevant passage: ``query_id``, ``doc_id``, ``answer_start``,
    ``answer_end``, in the order of the queries."""
    relevant = judged.filter(pl.col("relevance") >= 1).select("query_id", "doc_id")
    found = spans.join(relevant, on=["query_id", "doc_id"], how="semi", maintain_order="left")
    found = found.sort("query_id", "doc_id", "answer_start", "answer_end", maintain_order=True)
    found = found.unique("query_id", keep="first", maintain_order=True)
    kept = asked.select("query_id").join(found, on="query_id", how="inner", maintain_order="left")
    if not kept.height:
        raise EvenrankError("no query has an answer in a relevant passage")
    return kept.select("query_id", "doc_id", "answer_start", "answer_end")


def _located(first: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    """With ``text``, the number of the ``word`` that the answer begins in, its ``last`` word, ``words`` of the passage
    and ``relative`` = word / words."""
    table = first.join(texts, on="doc_id", how="left", maintain_order="left")
    absent = table.filter(pl.col("text").is_null())["doc_id"].unique(maintain_order=True)
    if len(absent):
        raise EvenrankError(f"{len(absent)} passages with answers are not in the collection: {shown(absent[0])}")
    rows = []
    for query, doc, start, end, text in table.iter_rows():
        answer = text[start:end]
        if not answer.strip():
            raise EvenrankError(f"query {shown(query)}: the answer's span is not in the passage {shown(doc)}")
        # White space at an answer's ends is none of its words.
        start, end = start + len(answer) - len(answer.lstrip()), start + len(answer.rstrip())
        ends = [match.end() for match in _WORD.finditer(text)]
        word = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, end, side="left"))
        rows.append((start, end, word, last, len(ends), word / len(ends)))
    names = ["answer_start", "answer_end", "word", "last", "words", "relative"]
    return table.with_columns(pl.DataFrame(rows, names, orient="row").get_columns())


def _ranked(
    model: str | None,
    run: str | os.PathLike[str] | Run | None,
    collection: Any,
    asked: pl.DataFrame,
    judged: pl.DataFrame,
    depth: int,
    batch_size: int,
    kind: Any,
    device: str | None,
    quiet: bool,
) -> tuple[Run, int]:
    if run is None:
        from evenrank.retrieval.bm25 import retrieve

        candidates = retrieve(collection, asked, depth, quiet=quiet)
    else:
        candidates = run if isinstance(run, Run) else read_run(run)
    if model is None:
        return candidates, 0
    from evenrank.rankers.rerank import rerank

    # Every query's relevant passages are ranked: whether the first stage found them is not the model's doing.
    relevant = judged.filter((pl.col("relevance") >= 1) & pl.col("query_id").is_in(asked["query_id"].implode()))
    first = candidates.table.filter(pl.col("rank") <= depth).select("query_id", "doc_id", "score")
    # But not alone: without a candidate beside them they would come first for nothing.
    relevant = relevant.join(first, on="query_id", how="semi")
    added = relevant.select("query_id", "doc_id").join(first, on=["query_id", "doc_id"], how="anti")
    lowest = float(first["score"].to_numpy().min()) - 1
    both = Run.from_table(pl.concat([first, added.with_columns(pl.lit(lowest).alias("score"))]), candidates.name)
    whole = int(both.table["rank"].to_numpy().max())
    options: dict[str, Any] = {"batch_size": batch_size, "kind": kind, "device": device, "quiet": quiet}
    return rerank(both, model, collection, asked, whole, **options), added.height


def _moved(
    model: str,
    table: pl.DataFrame,
    ranked: Run,
    asked: pl.DataFrame,
    places: int,
    batch_size: int,
    kind: Any,
    device: str | None,
    seed: int,
    quiet: bool,
) -> Moved:
    from evenrank.rankers.rerank import rerank

    wanted = np.linspace(0, 1, places)
    variants, ends = [], []
    for number, (text, word, last, words, end) in enumerate(
        table.select("text", "word", "last", "words", "answer_end").iter_rows()
    ):
        split = text.split()
        for place, share in enumerate(wanted):
            begin = round(share * (words - (last - word + 1)))
            cut = (word - begin) % words
            turned = [*split[cut:], *split[:cut]]
            variants.append((f"{number} {place}", " ".join(turned)))
            # Characters before the answer's last word, and those of it that belong to the answer.
            before = sum(map(len, turned[: begin + last - word])) + begin + last - word
            ends.append(before + len(split[last]) - (_word_end(text, last) - end))
    rows = [
        (query, f"{number} {place}", 0.0) for number, query in enumerate(table["query_id"]) for place in range(places)
    ]
    texts = pl.DataFrame(variants, ["doc_id", "text"], orient="row")
    run = Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"))
    scored = rerank(run, model, texts, asked, places, batch_size=batch_size, kind=kind, device=device, quiet=quiet)
    order = pl.DataFrame({"doc_id": [row[1] for row in rows]})
    found = order.join(scored.table.select("doc_id", "score"), on="doc_id", how="left", maintain_order="left")
    scores = found["score"].to_numpy().reshape(table.height, places)
    ranks = _ranks(scores, table, ranked)
    query_of = pl.Series([row[0] for row in rows])
    reads = _reading_ends(model, kind, asked, query_of, texts["text"])
    lost = (np.array(ends) > reads).reshape(table.height, places)
    whole = ~lost.any(axis=1)
    clusters = _clusters(table)
    courses = [
        course(values[rows], wanted, clusters=clusters[rows], seed=seed)
        for rows in (slice(None), whole)
        for values in (scores, ranks)
    ]
    score, rank, kept_score, kept_rank = courses
    return Moved(score, rank, kept_score, kept_rank, lost.sum(axis=0))


def _clusters(table: pl.DataFrame) -> Array:
    """The number of each row's passage [rows]: queries of one passage are no independent draws."""
    return table["doc_id"].rank("dense").to_numpy().astype(np.int64) - 1


def _word_end(text: str, word: int) -> int:
    for number, match in enumerate(_WORD.finditer(text)):
        if number == word:
            return match.end()
    raise IndexError(word)


def _ranks(scores: Array, table: pl.DataFrame, ranked: Run) -> Array:
    """1 + the other candidates of the query that score higher than each of its scores [Q, P]; equal ones half."""
    relevant = table.select("query_id", pl.col("doc_id").alias("own")).with_row_index("number")
    others = ranked.table.join(relevant, on="query_id", how="inner").filter(pl.col("doc_id") != pl.col("own"))
    ranks = np.ones_like(scores)
    for (number,), rows in others.group_by("number"):
        other = rows["score"].to_numpy()
        own = scores[int(str(number))][None]
        # The mean rank over the orders of equal scores.
        ranks[int(str(number))] = 1 + (other[:, None] > own).sum(axis=0) + (other[:, None] == own).sum(axis=0) / 2
    return ranks


def _reading_ends(model: str, kind: Any, asked: pl.DataFrame, query_ids: pl.Series, texts: pl.Series) -> Array:
    """How many characters of each text the model reads beside its query [pairs]; inf where it cannot be told."""
    from evenrank.rankers.encoders import reads_to
    from evenrank.rankers.models import find_model, load, load_kernel

    of_query = pl.DataFrame({"query_id": query_ids}).join(asked, on="query_id", how="left", maintain_order="left")
    queries, passages = of_query["text"].to_list(), texts.to_list()
    folder = find_model(model, kind)
    if folder.kind == "kernel":
        return np.array(load_kernel(folder, "cpu").reads_to(queries, passages))
    encoder = load(folder, "float32", "cpu")
    if getattr(encoder.preprocess([["a", "a"] if folder.kind == "cross" else "a"]), "encodings", None) is None:
        return np.full(len(passages), np.inf)
    if folder.kind == "cross":
        prompt = encoder.prompts.get(encoder.default_prompt_name)
        return np.array(reads_to(encoder, [list(pair) for pair in zip(queries, passages, strict=True)], prompt))
    prompts = encoder.prompts or {}
    prompt = next((prompts[name] for name in ("document", "passage", "corpus") if prompts.get(name)), None)
    return np.array(reads_to(encoder, passages, prompt, task="document"))
