"""How sensitive a ranker is to where in a passage the answer stands."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import polars as pl

from evenrank._wording import are, counted
from evenrank.io import EvenrankError, Provenance, Run, as_collection, as_qrels, as_queries, as_run, read_texts
from evenrank.io.errors import shown
from evenrank.io.progress import progress
from evenrank.io.ranges import check_ranges
from evenrank.io.squad import Placed, answer_table, load_squad
from evenrank.io.squad_collection import squad_collection
from evenrank.measures import Evaluation, parse_measure
from evenrank.measures.sensitivity import FIFTHS, by_bucket, course, quantile_starts

from .sensitivity_result import MEASURE, Array, Moved, SensitivityResult

__all__ = ["SensitivityResult", "position_sensitivity"]

_WORD = re.compile(r"\S+")
_READ = 256
"""Texts whose reading ends are told at once."""


def position_sensitivity(
    model: str | None = None,
    *,
    squad: str | os.PathLike[str] | None = None,
    collection: Any = None,
    queries: Any = None,
    qrels: Any = None,
    answers: str | os.PathLike[str] | pl.DataFrame | None = None,
    run: Any = None,
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

    ``model``: any ranker that ``evenrank rerank`` takes; None: ``run`` as it is, without the second part. ``squad``: a
    SQuAD file (read once) that stands for the other four: its passages, questions and answers. ``collection``,
    ``queries``, ``qrels`` and ``run``: paths, dicts or frames, as :func:`evenrank.audit` takes them. ``answers``: a
    SQuAD file, or ``query_id``, ``doc_id``, ``answer_start``, ``answer_end``, and ``answer`` where the text is to be
    looked for if it does not stand there; a query's first answer in a relevant passage counts. ``run``: the candidates,
    else BM25's first ``depth``; a relevant passage that is not among them joins them, but a query without any other
    candidate is left out (its passage would come first whatever the model says). ``sample``: so many queries, drawn by
    ``seed`` from those with an answer, in both parts; the second scores ``places`` passages a query.

    Raises EvenrankError for a setting out of range, without a model and a run, and where no query has an answer in a
    relevant passage, or other candidates.
    """
    check_ranges(depth=depth, places=places, sample=sample, batch_size=batch_size, seed=seed)
    if model is None and run is None:
        raise EvenrankError("give a model or a `run`")
    given = {"squad": squad, "collection": collection, "queries": queries, "qrels": qrels, "answers": answers}
    made = Provenance("evenrank.position_sensitivity").add_model("model", model)
    for role, source in (given | {"run": run}).items():
        made.add(role, source)
    made.ahead()
    asked, judged, spans, collection, notes = _sources(**given)
    first = _first_answers(spans, judged, asked)
    texts = (
        collection.filter(pl.col("doc_id").is_in(first["doc_id"].implode()))
        if isinstance(collection, pl.DataFrame)
        else read_texts(collection, first["doc_id"].unique())
    )
    where = "the collection" if isinstance(collection, pl.DataFrame) else f"the collection {os.fspath(collection)}"
    located, placed = _located(first, texts, where)
    notes += [f"In the collection: {note}" for note in placed.notes()]
    candidates = None if run is None else as_run(run)
    table = located if model is None or candidates is None else _with_rivals(located, candidates, judged, depth)
    sampled_from = None if sample is None or sample >= table.height else table.height
    if sampled_from is not None:
        # In the order of the queries, as without a sample.
        table = table.with_row_index("row").sample(sample, seed=seed).sort("row").drop("row")
    dropped = located.height - (sampled_from or table.height)
    without_answer = asked.height - located.height
    asked = asked.join(table, on="query_id", how="semi", maintain_order="left")
    judged = judged.join(table, on="query_id", how="semi", maintain_order="left")
    if candidates is None:
        from evenrank.retrieval.bm25 import retrieve

        candidates = retrieve(collection, asked, depth, quiet=quiet)
        found = _with_rivals(table, candidates, judged, depth)
        table, dropped = found, dropped + table.height - found.height
    absent = table.join(candidates.table, on="query_id", how="anti").height
    if absent == table.height:
        raise EvenrankError(f"run {candidates.name}: expected queries with an answer, found none of the {absent}")
    options: dict[str, Any] = {"batch_size": batch_size, "kind": kind, "device": device, "quiet": quiet}
    ranked, added = candidates, 0
    if model is not None:
        ranked, added = _ranked(model, candidates, collection, asked, judged, depth, options)
    evaluation = Evaluation(ranked, qrels=judged)
    values = pl.DataFrame({"query_id": evaluation.judged, "value": evaluation.values(parse_measure(MEASURE))})
    table = table.join(values, on="query_id", how="inner", maintain_order="left")
    effect, clusters = table["value"].to_numpy(), _clusters(table)
    moved = cut = None
    if model is not None:
        ends = _Reader(model, kind, asked, quiet)
        reads = ends(table["query_id"], table["text"])
        cut = None if reads is None else int((table["answer_end"].to_numpy() > reads).sum())
        moved = _moved(model, table, ranked, asked, places, options, ends, seed)
    inputs = {
        name: os.fspath(one) for name, one in (given | {"run": run}).items() if isinstance(one, str | os.PathLike)
    }
    # Without a model nothing is re-ranked and nothing is moved.
    used = {"depth": depth, "places": places} if model is not None else {"depth": depth} if run is None else {}
    settings = {"model": model, **inputs, **used, "sample": sample, "seed": seed}
    words = table["word"].to_numpy()
    return SensitivityResult(
        ranked.name,
        table.height,
        len(np.unique(clusters)),
        without_answer,
        float(np.nanmean(effect)),
        by_bucket(effect, words, quantile_starts(words), float(words.max() + 1), clusters=clusters, seed=seed),
        by_bucket(effect, table["relative"].to_numpy(), FIFTHS[:-1], 1.0, clusters=clusters, seed=seed),
        moved,
        cut,
        settings,
        added=added,
        without_candidates=dropped,
        absent=absent,
        sampled_from=sampled_from,
        notes=tuple(notes),
        provenance=made,
    )


def _sources(
    squad: Any, collection: Any, queries: Any, qrels: Any, answers: Any
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, Any, list[str]]:
    """Queries, judgements, answers and the collection, from one SQuAD file or from a source each; and notes."""
    others = {"collection": collection, "queries": queries, "qrels": qrels, "answers": answers}
    if squad is not None:
        if any(one is not None for one in others.values()):
            raise EvenrankError("`squad` stands for `collection`, `queries`, `qrels` and `answers`: give it alone")
        # One split: none of its questions is left out.
        made = squad_collection([squad], shares=(1, 0, 0))
        asked = made.queries.select("query_id", "text")
        return asked, made.qrels, answer_table(made.squad), made.collection, list(made.notes)
    lacking = [f"`{name}`" for name, one in others.items() if one is None]
    if lacking:
        raise EvenrankError(f"expected `squad`, or {', '.join(lacking)} too")
    asked, judged, collection = as_queries(queries), as_qrels(qrels), as_collection(collection)
    if isinstance(answers, pl.DataFrame):
        return asked, judged, answers, collection, []
    found = load_squad(answers)
    return asked, judged, found.answers(), collection, [f"{found.path}: {note}" for note in found.placed.notes()]


def _with_rivals(table: pl.DataFrame, candidates: Run, judged: pl.DataFrame, depth: int) -> pl.DataFrame:
    """The rows whose query has candidates beside its relevant passages, which would come first for nothing."""
    relevant = judged.filter(pl.col("relevance") >= 1)
    rivals = candidates.table.filter(pl.col("rank") <= depth).join(relevant, on=["query_id", "doc_id"], how="anti")
    found = table.join(rivals, on="query_id", how="semi", maintain_order="left")
    if not found.height:
        raise EvenrankError(f"run {candidates.name}: no query with an answer has a candidate beside its own passages")
    return found


def _first_answers(spans: pl.DataFrame, judged: pl.DataFrame, asked: pl.DataFrame) -> pl.DataFrame:
    """The first answer of each query in a relevant passage: ``query_id``, ``doc_id``, ``answer_start``,
    ``answer_end``, ``answer`` (null where it is not known), in the order of the queries."""
    relevant = judged.filter(pl.col("relevance") >= 1).select("query_id", "doc_id")
    found = spans.join(relevant, on=["query_id", "doc_id"], how="semi", maintain_order="left")
    found = found.sort("query_id", "doc_id", "answer_start", "answer_end", maintain_order=True)
    found = found.unique("query_id", keep="first", maintain_order=True)
    kept = asked.select("query_id").join(found, on="query_id", how="inner", maintain_order="left")
    if not kept.height:
        raise EvenrankError("no query has an answer in a relevant passage")
    names = ["query_id", "doc_id", "answer_start", "answer_end"]
    return kept.select(
        *names, pl.col("answer") if "answer" in kept.columns else pl.lit(None, pl.String).alias("answer")
    )


def _located(first: pl.DataFrame, texts: pl.DataFrame, where: str) -> tuple[pl.DataFrame, Placed]:
    """With ``text``, the number of the ``word`` that the answer begins in, its ``last`` word, ``words`` of the passage
    and ``relative`` = word / words; without the answers that stand nowhere in the collection's text."""
    table = first.join(texts, on="doc_id", how="left", maintain_order="left")
    absent = table.filter(pl.col("text").is_null())["doc_id"].unique(maintain_order=True)
    if len(absent):
        listed = ", ".join(map(shown, absent[:5])) + (", …" if len(absent) > 5 else "")
        raise EvenrankError(
            f"{counted(len(absent), 'passage')} with answers {are(len(absent))} not in {where}: {listed}"
        )
    rows, placed = [], Placed()
    for query, doc, start, end, wanted, text in table.iter_rows():
        if wanted is not None and (start < 0 or text[start:end].split() != wanted.split()):
            span = placed.place(query, doc, text, wanted, start)
            if span is None:
                continue
            start, end = span
        else:
            placed.read += 1
        answer = text[start:end] if start >= 0 else ""
        if not answer.strip():
            raise EvenrankError(f"query {shown(query)}: the answer's span is not in the passage {shown(doc)}")
        # White space at an answer's ends is none of its words.
        start, end = start + len(answer) - len(answer.lstrip()), start + len(answer.rstrip())
        ends = [match.end() for match in _WORD.finditer(text)]
        word = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, end, side="left"))
        rows.append((query, doc, text, start, end, word, last, len(ends), word / len(ends), ends[last]))
    if not rows:
        raise EvenrankError(f"no answer stands in its passage ({table.height} were looked for)")
    names = [
        "query_id",
        "doc_id",
        "text",
        "answer_start",
        "answer_end",
        "word",
        "last",
        "words",
        "relative",
        "last_end",
    ]
    return pl.DataFrame(rows, names, orient="row"), placed


def _ranked(
    model: str,
    candidates: Run,
    collection: Any,
    asked: pl.DataFrame,
    judged: pl.DataFrame,
    depth: int,
    options: dict[str, Any],
) -> tuple[Run, int]:
    """The first candidates of the queries ``asked``, and their relevant passages, ranked by the model; how many of the
    latter were no candidates."""
    from evenrank.rankers.rerank import rerank

    # Every query's relevant passages are ranked: whether the first stage found them is not the model's doing.
    relevant = judged.filter(pl.col("relevance") >= 1)
    first = candidates.table.filter(pl.col("rank") <= depth).select("query_id", "doc_id", "score")
    first = first.join(asked, on="query_id", how="semi")
    # But not alone: without a candidate beside them they would come first for nothing.
    relevant = relevant.join(first, on="query_id", how="semi")
    added = relevant.select("query_id", "doc_id").join(first, on=["query_id", "doc_id"], how="anti")
    lowest = float(first["score"].to_numpy().min()) - 1
    both = Run.from_table(pl.concat([first, added.with_columns(pl.lit(lowest).alias("score"))]), candidates.name)
    whole = int(both.table["rank"].to_numpy().max())
    return rerank(both, model, collection, asked, whole, **options), added.height


def _moved(
    model: str,
    table: pl.DataFrame,
    ranked: Run,
    asked: pl.DataFrame,
    places: int,
    options: dict[str, Any],
    ends_read: _Reader,
    seed: int,
) -> Moved:
    from evenrank.rankers.rerank import rerank

    wanted = np.linspace(0, 1, places)
    variants, ends = [], []
    for number, (text, word, last, words, end, last_end) in enumerate(
        table.select("text", "word", "last", "words", "answer_end", "last_end").iter_rows()
    ):
        split = text.split()
        for place, share in enumerate(wanted):
            begin = round(share * (words - (last - word + 1)))
            cut = (word - begin) % words
            turned = [*split[cut:], *split[:cut]]
            variants.append((f"{number} {place}", " ".join(turned)))
            # Characters before the answer's last word, and those of it that belong to the answer.
            before = sum(map(len, turned[: begin + last - word])) + begin + last - word
            ends.append(before + len(split[last]) - (last_end - end))
    rows = [
        (query, f"{number} {place}", 0.0) for number, query in enumerate(table["query_id"]) for place in range(places)
    ]
    texts = pl.DataFrame(variants, ["doc_id", "text"], orient="row")
    run = Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"))
    scored = rerank(run, model, texts, asked, places, **options)
    order = pl.DataFrame({"doc_id": [row[1] for row in rows]})
    found = order.join(scored.table.select("doc_id", "score"), on="doc_id", how="left", maintain_order="left")
    scores = found["score"].to_numpy().reshape(table.height, places)
    ranks = _ranks(scores, table, ranked)
    query_of = pl.Series([row[0] for row in rows])
    reads = ends_read(query_of, texts["text"])
    lost = np.zeros(len(ends), bool) if reads is None else np.array(ends) > reads
    lost = lost.reshape(table.height, places)
    whole = ~lost.any(axis=1)
    clusters = _clusters(table)
    courses = [
        course(values[rows], wanted, clusters=clusters[rows], seed=seed)
        for rows in (slice(None), whole)
        for values in (scores, ranks)
    ]
    score, rank, kept_score, kept_rank = courses
    return Moved(score, rank, kept_score, kept_rank, None if reads is None else lost.sum(axis=0))


def _clusters(table: pl.DataFrame) -> Array:
    """The number of each row's passage [rows]: queries of one passage are no independent draws."""
    return table["doc_id"].rank("dense").to_numpy().astype(np.int64) - 1


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


class _Reader:
    """How many characters of texts a model reads beside their queries."""

    def __init__(self, model: str, kind: Any, asked: pl.DataFrame, quiet: bool) -> None:
        from evenrank.rankers.models import find_model, load, load_kernel

        self.folder = find_model(model, kind)
        self.asked, self.quiet = asked, quiet
        self.encoder: Any = (
            load_kernel(self.folder, "cpu") if self.folder.kind == "kernel" else load(self.folder, "float32", "cpu")
        )

    def __call__(self, query_ids: pl.Series, texts: pl.Series) -> Array | None:
        """Characters read of each text beside its query [pairs]; None where it cannot be told."""
        if self.folder.kind != "kernel":
            one = ["a", "a"] if self.folder.kind == "cross" else "a"
            if getattr(self.encoder.preprocess([one]), "encodings", None) is None:
                return None
        table = pl.DataFrame({"query_id": query_ids})
        queries = table.join(self.asked, on="query_id", how="left", maintain_order="left")["text"].to_list()
        found: list[int] = []
        with progress("how far texts are read", len(texts), quiet=self.quiet) as advance:
            for start in range(0, len(texts), _READ):
                part = texts[start : start + _READ].to_list()
                found += self._ends(queries[start : start + _READ], part)
                advance(len(part))
        return np.array(found)

    def _ends(self, queries: list[str], passages: list[str]) -> list[int]:
        from evenrank.rankers.encoders import reads_to

        encoder = self.encoder
        if self.folder.kind == "kernel":
            return list(encoder.reads_to(queries, passages))
        if self.folder.kind == "cross":
            prompt = encoder.prompts.get(encoder.default_prompt_name)
            return reads_to(encoder, [list(pair) for pair in zip(queries, passages, strict=True)], prompt)
        prompts = encoder.prompts or {}
        prompt = next((prompts[name] for name in ("document", "passage", "corpus") if prompts.get(name)), None)
        return reads_to(encoder, passages, prompt, task="document")
