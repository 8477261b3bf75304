"""Re-ranking: the first documents of a run get new scores from any ranker."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank._version import __version__
from evenrank.files import (
    Provenance,
    Run,
    as_collection,
    as_queries,
    as_run,
    atomic_path,
    check_apart,
    check_outputs,
    check_writable,
    write_run,
)
from evenrank.files.arguments import checked
from evenrank.files.convert import is_path
from evenrank.files.passages import as_passages, folded, passages_in
from evenrank.files.progress import progress
from evenrank.files.provenance import card_path, files_beside, ranker_note, write_card
from evenrank.files.work import Work

from .endpoints import Endpoint
from .load import RankerLike, load_ranker
from .scorers import Scorer, Scores, TextPairs, Truncation, check_finite, truncated_between, truncated_in_all

# Batches in a window: texts are sorted by length within it, and an interruption loses no more than one.
_WINDOW = 64


@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """All scores [pairs].

    ``facts``: those of the ranker as it was loaded; ``truncated``: how many texts it cut, None if
    that is unknown; ``resumed``: how many of the scores an interrupted run left; ``work``: where they are kept.
    """

    scores: Scores
    facts: dict[str, object]
    truncated: Truncation | None = None
    resumed: int = 0
    work: Work | None = None

    def notes(self, scorer: Scorer, resumed: str) -> tuple[str, ...]:
        """What is to be said of the ranker and of how it scored; ``resumed``: after the number of scores kept."""
        note = ranker_note(scorer.name, self.facts)
        notes = [] if note is None else [note]
        if self.resumed:
            notes.append(f"{scorer.name}: {self.resumed} {resumed}")
        if self.truncated is not None:
            notes += self.truncated.notes(scorer.name)
        return (*notes, *scorer.notes())

    def forget(self) -> None:
        """Removes the kept scores, when what they were for is written."""
        if self.work is not None:
            self.work.remove()


def score_pairs(
    scorer: Scorer,
    pairs: TextPairs,
    batch_size: int,
    *,
    out: str | os.PathLike[str] | None,
    quiet: bool,
    what: str = "re-ranking",
) -> ScoredPairs:
    """The scores of all pairs; those that an interrupted run left beside ``out`` are taken from there.

    ``what``: the word for it in the progress.
    """
    facts, size = scorer.facts(), pairs.size
    windows = pairs.windows(scorer.unit, _WINDOW * batch_size)
    scores, resumed = np.empty(size), 0
    with ExitStack() as opened, progress(what, size, quiet=quiet) as advance:
        work = None
        if out is not None and card_path(out) is not None and scorer.digest is not None:
            folder = Path(out).with_name(f".{Path(out).name}.rerank")
            work = opened.enter_context(Work(folder, _made_from(facts, pairs, batch_size), replace=True))
        reports = {} if work is None else dict(work.done)
        for number in reports:
            assert work is not None
            rows = windows[number]
            scores[rows] = np.fromfile(work.path(_file(number)))
            resumed += len(rows)
        advance(resumed)
        missing = [number for number in range(len(windows)) if number not in reports]
        before = scorer.truncated
        each = scorer.each(pairs, batch_size, [windows[number] for number in missing])
        for number, window_scores in zip(missing, each, strict=True):
            after = scorer.truncated
            reports[number] = {"truncated": truncated_between(before, after)}
            before = after
            if work is not None:
                with atomic_path(work.path(_file(number))) as part:
                    part.write_bytes(window_scores.astype(np.float64).tobytes())
                work.keep(number, reports[number], _file(number))
            scores[windows[number]] = window_scores
            advance(len(window_scores))
    truncated = truncated_in_all([report["truncated"] for report in reports.values()])
    return ScoredPairs(scores, facts, truncated, resumed, work)


def _made_from(facts: dict[str, object], pairs: TextPairs, batch_size: int) -> dict[str, object]:
    """All that the scores depend on: kept ones are used only if it is the same."""
    from .export import PACKAGES

    numbers, texts = hashlib.sha256(), hashlib.sha256()
    for rows in (pairs.query, pairs.document):
        numbers.update(np.ascontiguousarray(rows).data)
    for column in (pairs.queries, pairs.documents):
        for part in column.to_frame("text").iter_slices(1 << 16):
            texts.update(part.write_ndjson().encode())
    packages = ("sentence-transformers", "transformers", "torch", *PACKAGES[str(facts["backend"])])
    return {
        "ranker": facts,
        "windows": [batch_size, _WINDOW],
        "texts": texts.hexdigest(),
        "pairs": numbers.hexdigest(),
        "versions": [__version__, *map(version, packages)],
    }


def _file(number: int) -> str:
    """The file of a window's scores, as float64."""
    return f"scores-{number:06d}.part"


@checked
def rerank(
    run: Annotated[object, opt.Option("The run to re-rank.", metavar="RUN", reads=True)],
    *,
    model: RankerLike,
    collection: opt.Collection,
    queries: opt.Queries,
    out: opt.File | None = None,
    passages: opt.Passages = None,
    depth: Annotated[
        int, opt.Option("Documents per query to re-rank; the others are left out.", range=opt.COUNT)
    ] = 1000,
    batch_size: opt.BatchSize = 32,
    kind: opt.Kind = None,
    query_prompt: opt.QueryPrompt = None,
    document_prompt: opt.DocumentPrompt = None,
    backend: Annotated[
        Literal["torch", "onnx", "openvino"],
        opt.Option("Back end for encoders; onnx and openvino: on the CPU.", panel="Machine", rare=True),
    ] = "torch",
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"],
        opt.Option("auto: bfloat16 with torch on a GPU that supports it, else float32.", panel="Machine", rare=True),
    ] = "auto",
    device: opt.Device = None,
    tag: Annotated[
        str | None,
        opt.Option(
            "Name in the run's last column (default: that of the model's folder).",
            metavar="NAME",
            panel="Output",
            rare=True,
        ),
    ] = None,
    transform: Callable[[pl.Series], pl.Series] | None = None,
    quiet: bool = True,
) -> Run:
    """Re-rank a run with a neural model or a server. The model is a trained ranker, or one of sentence-transformers.

    The first ``depth`` documents of each query, by the scores of ``model``; the others are left out.

    ``run``, ``collection``, ``queries``: paths, dicts (``{query: {document: score}}``, ``{id: text}``), frames of
    polars or pandas, or records; ``run`` may be a :class:`Run`. Only the texts that are needed are kept in memory.

    ``model``: a folder of a ranker trained here; a folder or a name on the hub that sentence-transformers loads, with
    ``kind`` ("cross", "bi", "sparse" or "late") if its files do not show which it is; a loaded ``CrossEncoder``,
    ``SentenceTransformer``, ``SparseEncoder`` or ``MultiVectorEncoder``; a ranker of this library; or a function of a
    query and a list of its passages that returns a score for each passage, called once per query. The new run is named
    ``tag``, or after the model (``runs/my-dot/model``: my-dot).

    Scores are a cross-encoder's logits, the model's own similarity of vectors (each text is encoded once), or those of
    the ranker or the function. Models get the prompts of their configuration, or ``query_prompt`` and
    ``document_prompt`` in their place; notes say what the model is and how many texts are longer than it reads. In
    float32 the score of a pair does not depend on the other pairs, to 1e-5; in bf16 (the default on a GPU that supports
    it, unless ``precision="float32"``) the last of about three digits can differ between batches.

    ``backend``: "onnx" or "openvino" run encoders on the CPU, in float32 unless ``precision="bfloat16"`` is set
    (OpenVINO). ``device``: as PyTorch names it (default: the fastest). These settings are for a model given by its
    folder or name; a loaded one is used as it is.

    An :class:`evenrank.Endpoint` is asked over HTTP; its answers are kept in ``OUT.answers.sqlite`` beside ``out``.

    ``passages``: the table of a cut collection (``documents.csv`` of :func:`evenrank.cut_passages`, a frame with
    ``passage_id`` and ``doc_id``, or ``{passage: document}``); ``collection`` has the passages. Documents come out,
    each with the score of its best passage (MaxP; Dai & Callan 2019). Of a run of documents, all passages of the first
    ``depth`` are scored; a run of passages is scored as it is, to the same ``depth``.

    ``transform`` changes the texts of queries and of documents, each [N], before they are scored (to mask words, say).

    ``out``: also write the run there, and what made it into ``OUT.card.json`` (see :mod:`evenrank.files.provenance`).
    If ``model`` is a folder or a name, an interrupted call resumes when it is made again, and writes the same run.

    Raises EvenrankError for a setting out of range, for queries or documents of the run without a text, and for scores
    that are not finite; InputError for a model or a collection that cannot be used; MissingExtraError without the extra
    [neural], or [export] for another backend.
    """
    if isinstance(model, Endpoint):
        model = model.keeping_beside(out)
    answers = model.answers if isinstance(model, Endpoint) else None
    outputs = [out, card_path(out)]
    check_apart([*outputs, answers], [run, *files_beside(run), collection, queries, model, passages])
    check_outputs(outputs)
    if answers is not None:
        check_writable(answers)
    provenance = Provenance("evenrank.rerank").add("run", run).add("collection", collection).add("queries", queries)
    if is_path(model):
        provenance.add_model("model", model)
    provenance.add("passages", passages).ahead(card_path(out) is not None)
    run, collection, queries = as_run(run), as_collection(collection), as_queries(queries)
    of_passages = None if passages is None else as_passages(passages)
    provenance.add_card("run", run.card)
    # After the input, as a model on the hub may have to be downloaded.
    ranker = load_ranker(
        model,
        kind=kind,
        device=device,
        precision=precision,
        backend=backend,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
    )
    table = run.table.filter(pl.col("rank") <= depth)
    if of_passages is not None:
        table = passages_in(run, table, of_passages)
    pairs = TextPairs.of_run(run.described, table, collection, queries)
    if transform is not None:
        pairs = pairs.transformed(transform)
    pair_scores = score_pairs(ranker, pairs, batch_size, out=out, quiet=quiet)
    check_finite(pair_scores.scores, str(model) if is_path(model) else ranker.name)
    notes = (*run.notes, *pair_scores.notes(ranker, f"of {pairs.size} scores kept from an interrupted run"))
    settings = {"depth": depth, "batch_size": batch_size, "transformed": transform is not None}
    scored = table.with_columns(pl.Series("score", pair_scores.scores))
    result = replace(
        Run.from_table(scored, tag or ranker.name, notes=notes),
        # What made the run.
        card={"stage": "rerank", "ranker": pair_scores.facts, **settings, "truncated": pair_scores.truncated},
    )
    if of_passages is not None:
        result = folded(result, of_passages)
    if out is not None:
        if card_path(out) is not None:
            provenance.finish()
        write_run(result, out)
        write_card(result.card or {}, out, provenance)
    pair_scores.forget()
    return result
