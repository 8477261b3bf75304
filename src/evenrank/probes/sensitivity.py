"""Position sensitivity of a ranker: the call, and its result.

A sentence of the passage is moved from place to place: the answer's, and for comparison another one
(:mod:`.sentence_moves`); what the place does to the score is a curve (:mod:`.position_curve`).
"""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.files import EvenrankError, Provenance, Run, arg, as_collection, as_qrels, as_queries, as_run, read_texts
from evenrank.files.arguments import checked
from evenrank.files.json_values import named
from evenrank.files.progress import progress
from evenrank.files.squad import answer_table, load_squad
from evenrank.files.squad_collection import squad_collection
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.measures import Evaluation, parse_measure
from evenrank.models.endpoints import note_model
from evenrank.models.load import load_ranker
from evenrank.results.page import Page
from evenrank.results.result import Result
from evenrank.stats.clusters import cluster_means
from evenrank.stats.estimate import Estimate, estimate

from .position_curve import UNIT, Floats, Ints, PositionCurve, position_curve
from .sensitivity_page import MEASURE, sensitivity_page
from .sentence_moves import SentenceMoves, sentence_moves
from .sentences import first_answers, locate

if TYPE_CHECKING:
    from evenrank.models.load import RankerLike
    from evenrank.models.scorers import Scorer

__all__ = ["SensitivityResult", "position_sensitivity"]

Collection = str | os.PathLike[str] | pl.DataFrame


@dataclass(frozen=True, slots=True)
class Sources:
    """What is measured on: queries (``query_id``, ``text``), judgements, answer spans, the collection, and notes."""

    queries: pl.DataFrame
    qrels: pl.DataFrame
    spans: pl.DataFrame
    collection: Collection
    notes: tuple[str, ...]


def read_sources(
    squad: str | os.PathLike[str] | None,
    collection: object,
    queries: object,
    qrels: object,
    answers: str | os.PathLike[str] | pl.DataFrame | None,
) -> Sources:
    """The sources, from one SQuAD file or from one source each. Raises EvenrankError if some are missing."""
    others = {"collection": collection, "queries": queries, "qrels": qrels, "answers": answers}
    if squad is not None:
        # With one split no question is left out.
        data = squad_collection([squad], shares=(1, 0, 0))
        questions = data.queries.select("query_id", "text")
        return Sources(questions, data.qrels, answer_table(data.squad), data.collection, data.notes)
    lacking = [arg(name) for name, source in others.items() if source is None]
    if lacking or answers is None:
        raise EvenrankError(f"expected {arg.squad}, or also {', '.join(lacking)}")
    questions, judged, texts = as_queries(queries), as_qrels(qrels), as_collection(collection)
    if isinstance(answers, pl.DataFrame):
        return Sources(questions, judged, answers, texts, ())
    file = load_squad(answers)
    notes = tuple(f"{file.path}: {note}" for note in file.alignment.notes())
    return Sources(questions, judged, file.answers(), texts, notes)


def locate_answers(sources: Sources) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The first answer of each query in a relevant passage and its position there; and notes.

    One row per query, in the order of the queries, with the columns of
    :func:`evenrank.probes.sentences.locate`. Answers that are not in the collection's text are left out. Raises
    EvenrankError if no answer is left or a passage is missing.
    """
    relevant = sources.qrels.filter(pl.col("relevance") >= 1).select("query_id", "doc_id")
    spans = sources.spans.join(relevant, on=["query_id", "doc_id"], how="semi", maintain_order="left")
    answers = first_answers(spans)
    first = sources.queries.select("query_id").join(answers, on="query_id", how="inner", maintain_order="left")
    if not first.height:
        raise EvenrankError("no query has an answer in a relevant passage")
    texts, where = sources.collection, "the collection"
    if not isinstance(texts, pl.DataFrame):
        where = f"the collection {os.fspath(texts)}"
        texts = read_texts(texts, first["doc_id"].unique())
    table, alignment = locate(first, texts, where)
    return table, (*sources.notes, *(f"In the collection: {note}" for note in alignment.notes()))


def with_rivals(table: pl.DataFrame, candidates: Run, judged: pl.DataFrame, depth: int) -> pl.DataFrame:
    """The rows whose queries have candidates other than their relevant passages, which else would always be first."""
    relevant = judged.filter(pl.col("relevance") >= 1)
    rivals = candidates.table.filter(pl.col("rank") <= depth).join(relevant, on=["query_id", "doc_id"], how="anti")
    rows = table.join(rivals, on="query_id", how="semi", maintain_order="left")
    if not rows.height:
        raise EvenrankError(
            f"run {candidates.name}: no query with an answer has a candidate other than its own passages"
        )
    return rows


@dataclass(frozen=True, slots=True)
class Curves:
    """A curve of the answer's sentence, that of the control, and answer − control, paired within queries."""

    answer: PositionCurve
    control: PositionCurve
    difference: PositionCurve


@dataclass(frozen=True, slots=True)
class MovedAnswers:
    """The same passages with the answer's sentence moved, beside the moves of another sentence (the control).

    ``score``: change from the passage as it is, in standard deviations of the query's candidates. ``kept``: the score
    where the answer is read whole at every place. ``early``, ``late``: what moving the sentence first and last does to
    the score beyond the control's move, where the sentence stands elsewhere. ``cut`` [P]: queries whose answer extends
    beyond what the ranker reads (None: unknown). ``queries`` that were moved, of so many ``passages``; ``left`` out,
    for fewer than two other sentences; ``unvaried``: queries whose candidates all have one score, without a value of
    ``score``. ``read``: the share of the passages' words that the ranker reads (None: unknown); below .95 nothing is
    told of a preference.
    """

    score: Curves
    kept: Curves = field(metadata=named("kept_score"))
    early: Estimate
    late: Estimate
    cut: Ints | None
    queries: int
    passages: int
    left: int
    unvaried: int
    read: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class SensitivityResult(Result):
    """The result of :func:`evenrank.position_sensitivity`.

    ``value``: mean effectiveness; ``moved``: the same passages with their answers moved, None where no answer can be
    moved. ``cut``: answers that the ranker does not read to the end in the original passage (None: unknown).
    ``added``: relevant passages added to the candidates; ``without_candidates``: queries left out for lack of other
    candidates; ``unmovable``: queries whose passage has fewer than two sentences besides the answer's;
    ``sampled_from``: the number of queries that the sample was drawn from (None: no sample).
    """

    name: str
    queries: int
    passages: int
    without_answer: int
    value: float = field(metadata=named("mean"))
    moved: MovedAnswers | None
    cut: int | None
    settings: Mapping[str, object]
    added: int = 0
    without_candidates: int = 0
    unmovable: int = 0
    sampled_from: int | None = None
    notes: tuple[str, ...] = ()

    def _beside(self) -> Mapping[str, object]:
        return {"measure": MEASURE, "unit": "passage"}

    def page(self) -> Page:
        """The result as a page: findings, tables and charts."""
        return sensitivity_page(self)


_READ = 256
"""Texts whose reading ends are reported at once."""
ENOUGH = 0.95
"""Where less of the words is read, places differ by what is cut off."""
_WORD = re.compile(r"\S+")


def words_read(texts: pl.Series, reads: Array) -> float:
    """The share of the words of texts [N] that end within the characters ``reads`` [N] of each."""
    ends = [[match.end() for match in _WORD.finditer(text)] for text in texts.to_list()]
    read = sum(bisect_right(stops, int(to)) for stops, to in zip(ends, reads, strict=True))
    return read / max(1, sum(map(len, ends)))


AGAIN = " (evenrank passages COLLECTION --model MODEL --answers SQUAD.json --out FOLDER)"
"""The command that cuts passages, with their answers."""


def too_little_read(read: float | None, passages: int, tokens: object) -> str | None:
    """Reason for no verdict if a ranker reads too small a share of the words; else None.

    ``tokens``: how many of a passage's the ranker reads, None where that is unknown.
    """
    if read is None or read >= ENOUGH:
        return None
    first = f"the {tokens:,} tokens that the model reads" if isinstance(tokens, int) else "what the model reads"
    # Rounded down: what is below the limit must not look as if it reached it.
    return (
        f"{math.floor(100 * read)}% of the words of {counted(passages, 'passage')} are read;"
        f" cut passages to {first} and try again{AGAIN}"
    )


class Reader:
    """The characters of texts that a model reads, given their queries."""

    def __init__(self, scorer: Scorer, asked: pl.DataFrame, quiet: bool) -> None:
        self.scorer, self.asked, self.quiet = scorer, asked, quiet

    def __call__(self, query_ids: pl.Series, texts: pl.Series) -> Array | None:
        """Characters read of each text, given its query [pairs]; None if unknown."""
        table = pl.DataFrame({"query_id": query_ids})
        queries = table.join(self.asked, on="query_id", how="left", maintain_order="left")["text"].to_list()
        ends: list[int] = []
        with progress("how far texts are read", len(texts), quiet=self.quiet) as advance:
            for start in range(0, len(texts), _READ):
                part = texts[start : start + _READ].to_list()
                read = self.scorer.reads_to(queries[start : start + _READ], part)
                if read is None:
                    return None
                ends += read
                advance(len(part))
        return np.array(ends)


def moved_answers(
    reader: Reader,
    table: pl.DataFrame,
    ranked: Run,
    places: int,
    batch_size: int,
    seed: int,
) -> MovedAnswers | None:
    """The answers of ``table`` moved; None if none can be.

    ``ranked``: the candidates of the queries, ranked by the model, the passages themselves among them.
    """
    moves = sentence_moves(table, places, seed)
    if not len(moves.rows):
        return None
    moved = table[moves.rows]
    # Queries of one passage are not independent.
    clusters = moved["doc_id"].rank("dense").to_numpy().astype(np.int64) - 1
    passages = int(clusters.max()) + 1
    own = moved.select("query_id", "doc_id").join(
        ranked.table, on=["query_id", "doc_id"], how="left", maintain_order="left"
    )
    before = own["score"].to_numpy()
    answer, control = _scores(reader, moves, moved, before, batch_size)
    sd = _spread(ranked, own)
    sides = [(scores - before[:, None]) / sd[:, None] for scores in (answer, control)]
    lost, read = _lost(reader, moves, moved)
    why = too_little_read(read, passages, reader.scorer.facts().get("reads"))

    def curves(rows: Ints | slice) -> Curves:
        versions = (moves.at_places(values, rows) for values in (*sides, sides[0] - sides[1]))
        return Curves(*(position_curve(v, clusters=clusters[rows], why=why) for v in versions))

    def beyond_control(column: int | Ints) -> Estimate:
        """What moving the answer's sentence to a place does beyond moving the control there, where it does move."""
        rows = np.arange(len(moves.rows))
        values = sides[0][rows, column] - sides[1][rows, column]
        mask = (moves.answer[rows, column] != -1) & ~np.isnan(values)
        effect = estimate(cluster_means(values[mask], clusters[mask]) if mask.any() else np.empty(0), unit=UNIT)
        return effect if why is None else replace(effect, ci95=None)

    last = np.array([int(np.flatnonzero(weight.any(axis=0))[-1]) for weight in moves.weights])[moves.shape]
    return MovedAnswers(
        curves(slice(None)),
        curves(slice(None) if lost is None else np.flatnonzero(~lost.any(axis=1))),
        beyond_control(0),
        beyond_control(last),
        None if lost is None else lost.sum(axis=0),
        len(moves.rows),
        passages,
        table.height - len(moves.rows),
        int(np.isnan(sd).sum()),
        read,
    )


def _spread(ranked: Run, own: pl.DataFrame) -> Floats:
    """The standard deviation of the scores of each query's candidates [M]; NaN where they do not vary."""
    spreads = ranked.table.group_by("query_id").agg(pl.col("score").std(ddof=0).alias("sd"))
    sd = own.join(spreads, on="query_id", how="left", maintain_order="left")["sd"].to_numpy()
    return np.where(sd > 0, sd, np.nan)


def _scores(
    reader: Reader, moves: SentenceMoves, moved: pl.DataFrame, before: Floats, batch_size: int
) -> tuple[Floats, Floats]:
    """Scores [M, K] of the answer's and of the control's versions; NaN beyond a passage's versions."""
    from evenrank.models.rerank import rerank

    both = np.concatenate([moves.answer, moves.control], axis=1)
    rows, columns = np.nonzero(both >= 0)
    pairs = pl.DataFrame({"query_id": moved["query_id"].gather(rows), "doc_id": both[rows, columns].astype(str)})
    run = Run.from_table(pairs.unique(maintain_order=True).with_columns(pl.lit(0.0).alias("score")), "moved")
    depth = int(run.table["rank"].to_numpy().max())
    scored = rerank(
        run,
        model=reader.scorer,
        collection=moves.texts,
        queries=reader.asked,
        depth=depth,
        batch_size=batch_size,
        quiet=reader.quiet,
    )
    table = pairs.join(scored.table, on=["query_id", "doc_id"], how="left", maintain_order="left")
    # The passage as it is has its score among the candidates.
    scores = np.where(both == -1, before[:, None], np.nan)
    scores[rows, columns] = table["score"].to_numpy()
    size = moves.answer.shape[1]
    return scores[:, :size], scores[:, size:]


def _lost(reader: Reader, moves: SentenceMoves, moved: pl.DataFrame) -> tuple[Array | None, float | None]:
    """Whether the model does not read the answer to its end, at each place [M, P]; and the share of the words that it
    reads, over all versions. None if unknown."""
    rows, columns = np.nonzero(moves.answer != -2)
    number = moves.answer[rows, columns]
    texts = pl.concat([moves.texts["text"], moved["text"]])
    of = np.where(number >= 0, number, len(moves.texts) + rows)
    read = texts.gather(of)
    reads = reader(moved["query_id"].gather(rows), read)
    if reads is None:
        return None, None
    lost = np.zeros(moves.answer.shape, bool)
    lost[rows, columns] = moves.ends[rows, columns] > reads
    at = np.asarray((lost[:, None, :] & (moves.weights[moves.shape] > 0)).any(axis=2))
    return at, words_read(read, reads)


@checked
def position_sensitivity(
    model: RankerLike,
    *,
    squad: Annotated[
        opt.File | None,
        opt.Option(
            "Passages, questions and answers from one SQuAD file.",
            metavar="SQUAD.json",
            reads=True,
            excludes=("collection", "queries", "qrels", "answers"),
        ),
    ] = None,
    collection: opt.MaybeCollection = None,
    queries: opt.MaybeQueries = None,
    qrels: Annotated[object, opt.Option("Relevance judgements.", reads=True)] = None,
    answers: Annotated[
        opt.File | pl.DataFrame | None,
        opt.Option("Answers, with the ids of queries and documents.", metavar="SQUAD.json", reads=True),
    ] = None,
    run: Annotated[object, opt.Option("Candidates (default: BM25).", reads=True)] = None,
    depth: Annotated[int, opt.Option("Candidates per query.", range=opt.COUNT, panel="Input", rare=True)] = 100,
    places: Annotated[
        int,
        opt.Option(
            "Places to move the answer's sentence to (first, last, between).",
            range=opt.Range(2, 10_000),
            panel="Statistics",
        ),
    ] = 5,
    sample: Annotated[
        int | None, opt.Option("Number of queries, sampled with --seed.", range=opt.COUNT, panel="Statistics")
    ] = None,
    batch_size: opt.BatchSize = 32,
    kind: opt.Kind = None,
    query_prompt: opt.QueryPrompt = None,
    document_prompt: opt.DocumentPrompt = None,
    device: opt.Device = None,
    seed: Annotated[
        int, opt.Option("Seed of the sample and of ties.", range=opt.SEED, panel="Statistics", rare=True)
    ] = 0,
    quiet: bool = True,
) -> SensitivityResult:
    """Measure a passage's score as its answer's sentence moves.

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
    data = {"squad": squad, "collection": collection, "queries": queries, "qrels": qrels, "answers": answers}
    provenance = Provenance("evenrank.position_sensitivity")
    note_model(provenance, "model", model)
    for role, source in (data | {"run": run}).items():
        provenance.add(role, source)
    provenance.ahead()
    sources = read_sources(squad, collection, queries, qrels, answers)
    located, notes = locate_answers(sources)
    candidates = None if run is None else as_run(run)
    table = located if candidates is None else with_rivals(located, candidates, sources.qrels, depth)
    without_candidates = located.height - table.height
    sampled_from = None if sample is None or sample >= table.height else table.height
    if sampled_from is not None:
        # In the order of the queries, as without a sample.
        table = table.with_row_index("row").sample(sample, seed=seed).sort("row").drop("row")
    questions, judged = (
        t.join(table, on="query_id", how="semi", maintain_order="left") for t in (sources.queries, sources.qrels)
    )
    if candidates is None:
        from evenrank.search.indexes import retrieve

        candidates = retrieve(sources.collection, questions, k=depth, quiet=quiet)
        rows = with_rivals(table, candidates, judged, depth)
        table, without_candidates = rows, table.height - rows.height
    scorer = load_ranker(model, kind=kind, device=device, query_prompt=query_prompt, document_prompt=document_prompt)
    ranked, added = _ranked(scorer, candidates, sources.collection, questions, judged, depth, batch_size, quiet)
    evaluation = Evaluation(ranked, qrels=judged)
    values = pl.DataFrame({"query_id": evaluation.judged, "value": evaluation.values(parse_measure(MEASURE))})
    table = table.join(values, on="query_id", how="inner", maintain_order="left")
    reader = Reader(scorer, questions, quiet)
    reads = reader(table["query_id"], table["text"])
    cut = None if reads is None else int((table["answer_end"].to_numpy() > reads).sum())
    moved = moved_answers(reader, table, ranked, places, batch_size, seed)
    inputs = {name: os.fspath(v) for name, v in (data | {"run": run}).items() if isinstance(v, str | os.PathLike)}
    return SensitivityResult(
        ranked.name,
        table.height,
        table["doc_id"].n_unique(),
        sources.queries.height - located.height,
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
        without_candidates=without_candidates,
        unmovable=table.height if moved is None else moved.left,
        sampled_from=sampled_from,
        notes=notes,
        provenance=provenance,
    )


def _ranked(
    model: Scorer,
    candidates: Run,
    collection: Any,
    asked: pl.DataFrame,
    judged: pl.DataFrame,
    depth: int,
    batch_size: int,
    quiet: bool,
) -> tuple[Run, int]:
    """The first candidates of the queries ``asked``, and their relevant passages, ranked by the model; and the number
    of relevant passages that were not candidates."""
    from evenrank.models.rerank import rerank

    # All relevant passages are ranked: whether the first stage found them does not depend on the model.
    relevant = judged.filter(pl.col("relevance") >= 1)
    first = candidates.table.filter(pl.col("rank") <= depth).select("query_id", "doc_id", "score")
    first = first.join(asked, on="query_id", how="semi")
    # But not alone: without other candidates they would always be first.
    relevant = relevant.join(first, on="query_id", how="semi")
    added = relevant.select("query_id", "doc_id").join(first, on=["query_id", "doc_id"], how="anti")
    lowest = float(first["score"].to_numpy().min()) - 1
    both = Run.from_table(pl.concat([first, added.with_columns(pl.lit(lowest).alias("score"))]), candidates.name)
    longest = int(both.table["rank"].to_numpy().max())
    ranked = rerank(
        both, model=model, collection=collection, queries=asked, depth=longest, batch_size=batch_size, quiet=quiet
    )
    return ranked, added.height
