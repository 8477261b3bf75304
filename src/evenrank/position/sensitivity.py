"""Position sensitivity of a ranker: the call."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from evenrank.io import Provenance, Run, as_run
from evenrank.io.ranges import check_ranges
from evenrank.measures import Evaluation, parse_measure
from evenrank.rankers.load import load_ranker

from .moved_answers import Reader, moved_answers
from .sensitivity_data import Sources, locate_answers, read_sources, with_rivals
from .sensitivity_result import MEASURE, SensitivityResult

if TYPE_CHECKING:
    from evenrank.rankers.kinds import Architecture
    from evenrank.rankers.load import RankerLike
    from evenrank.rankers.scorers import Scorer

__all__ = ["SensitivityResult", "position_sensitivity"]


# parameters, long: the options of `evenrank position sensitivity`, and what each of them means
def position_sensitivity(
    model: RankerLike,
    *,
    squad: str | os.PathLike[str] | None = None,
    collection: object = None,
    queries: object = None,
    qrels: object = None,
    answers: str | os.PathLike[str] | pl.DataFrame | None = None,
    run: object = None,
    depth: int = 100,
    places: int = 5,
    sample: int | None = None,
    batch_size: int = 32,
    kind: Architecture | None = None,
    device: str | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    seed: int = 0,
    quiet: bool = True,
) -> SensitivityResult:
    """The effect of moving an answer's sentence within its passage.

    ``model``: any ranker that ``evenrank rerank`` takes, with its ``kind`` and prompts. The sentence (or sentences)
    with the answer is moved, whole, to ``places`` places from the first to the last, and for comparison another
    sentence of the passage, the nearest in length; passages with fewer than two sentences besides the answer's are left
    out of this. ``squad``: a SQuAD file (read once) that replaces the next four. ``collection``, ``queries``, ``qrels``
    and ``run``: paths, dicts or frames, as in :func:`evenrank.audit`. ``answers``: a SQuAD file, or a frame with
    ``query_id``, ``doc_id``, ``answer_start``, ``answer_end``, and ``answer`` to search for answers whose span does not
    match; a query's first answer in a relevant passage counts. ``run``: the candidates (default: BM25's first
    ``depth``); relevant passages are added to them, but queries without any other candidate are left out (their passage
    would always be first).
    ``sample``: the number of queries, drawn with ``seed`` from those with an answer; up to 2 · ``places`` texts are
    scored per query.

    Raises EvenrankError for a setting out of range, and if no query has an answer in a relevant passage or other
    candidates.
    """
    check_ranges(depth=depth, places=places, sample=sample, batch_size=batch_size, seed=seed)
    given = {"squad": squad, "collection": collection, "queries": queries, "qrels": qrels, "answers": answers}
    made = Provenance("evenrank.position_sensitivity")
    if isinstance(model, str | os.PathLike):
        made.add_model("model", model)
    else:
        from evenrank.rankers.endpoints import shown_address

        address = shown_address(model)
        made.name("model", address or type(model).__name__, "asked over HTTP" if address else "in memory")
    for role, source in (given | {"run": run}).items():
        made.add(role, source)
    made.ahead()
    table, sources = locate_answers(read_sources(squad, collection, queries, qrels, answers))
    candidates = None if run is None else as_run(run)
    drawn = _draw(table, sources, candidates, depth=depth, sample=sample, seed=seed, quiet=quiet)
    table, candidates, asked, judged = drawn.table, drawn.candidates, drawn.sources.queries, drawn.sources.qrels
    options: dict[str, Any] = {"batch_size": batch_size, "quiet": quiet}
    scorer = load_ranker(model, kind, device=device, query_prompt=query_prompt, document_prompt=document_prompt)
    ranked, added = _ranked(scorer, candidates, sources.collection, asked, judged, depth, options)
    table = _with_values(table, ranked, judged)
    reader = Reader(scorer, asked, quiet)
    reads = reader(table["query_id"], table["text"])
    cut = None if reads is None else int((table["answer_end"].to_numpy() > reads).sum())
    moved = moved_answers(reader, table, ranked, drawn.sources, places, batch_size, seed)
    inputs = {
        name: os.fspath(one) for name, one in (given | {"run": run}).items() if isinstance(one, str | os.PathLike)
    }
    return SensitivityResult(
        ranked.name,
        table.height,
        table["doc_id"].n_unique(),
        drawn.without_answer,
        float(np.nanmean(table["value"].to_numpy())),
        moved,
        cut,
        {
            "model": os.fspath(model) if isinstance(model, str | os.PathLike) else scorer.name,
            "ranker": scorer.facts(),
            **inputs,
            "depth": depth,
            "places": places,
            "sample": sample,
            "seed": seed,
        },
        added=added,
        without_candidates=drawn.without_candidates,
        unmovable=table.height if moved is None else moved.left,
        sampled_from=drawn.sampled_from,
        notes=sources.notes,
        provenance=made,
    )


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The queries that are measured, their sources and candidates, and how many were left out."""

    table: pl.DataFrame
    sources: Sources
    candidates: Run
    without_answer: int
    without_candidates: int
    sampled_from: int | None


def _draw(
    located: pl.DataFrame,
    sources: Sources,
    candidates: Run | None,
    *,
    depth: int,
    sample: int | None,
    seed: int,
    quiet: bool,
) -> _Drawn:
    """The sample of the queries with located answers, and their candidates (None: BM25's first ``depth``)."""
    judged = sources.qrels
    table = located if candidates is None else with_rivals(located, candidates, judged, depth)
    sampled_from = None if sample is None or sample >= table.height else table.height
    if sampled_from is not None:
        # In the order of the queries, as without a sample.
        table = table.with_row_index("row").sample(sample, seed=seed).sort("row").drop("row")
    dropped = located.height - (sampled_from or table.height)
    without_answer = sources.queries.height - located.height
    sources = sources.restricted_to(table)
    if candidates is None:
        from evenrank.retrieval.bm25 import retrieve

        candidates = retrieve(sources.collection, sources.queries, depth, quiet=quiet)
        found = with_rivals(table, candidates, sources.qrels, depth)
        table, dropped = found, dropped + table.height - found.height
    return _Drawn(table, sources, candidates, without_answer, dropped, sampled_from)


def _with_values(table: pl.DataFrame, ranked: Run, judged: pl.DataFrame) -> pl.DataFrame:
    """The rows of the judged queries with their ``value`` of MEASURE."""
    evaluation = Evaluation(ranked, qrels=judged)
    values = pl.DataFrame({"query_id": evaluation.judged, "value": evaluation.values(parse_measure(MEASURE))})
    return table.join(values, on="query_id", how="inner", maintain_order="left")


def _ranked(
    model: Scorer,
    candidates: Run,
    collection: Any,
    asked: pl.DataFrame,
    judged: pl.DataFrame,
    depth: int,
    options: dict[str, Any],
) -> tuple[Run, int]:
    """The first candidates of the queries ``asked``, and their relevant passages, ranked by the model; and the number
    of relevant passages that were not candidates."""
    from evenrank.rankers.rerank import rerank

    # All relevant passages are ranked: whether the first stage found them does not depend on the model.
    relevant = judged.filter(pl.col("relevance") >= 1)
    first = candidates.table.filter(pl.col("rank") <= depth).select("query_id", "doc_id", "score")
    first = first.join(asked, on="query_id", how="semi")
    # But not alone: without other candidates they would always be first.
    relevant = relevant.join(first, on="query_id", how="semi")
    added = relevant.select("query_id", "doc_id").join(first, on=["query_id", "doc_id"], how="anti")
    lowest = float(first["score"].to_numpy().min()) - 1
    both = Run.from_table(pl.concat([first, added.with_columns(pl.lit(lowest).alias("score"))]), candidates.name)
    whole = int(both.table["rank"].to_numpy().max())
    return rerank(both, model, collection, asked, whole, **options), added.height
