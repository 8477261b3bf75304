"""An evaluator for both trainers that reports bias together with effectiveness."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from ir_measures import Measure
from numpy.typing import NDArray
from sentence_transformers.base.evaluation import BaseEvaluator

from evenrank.groups import (
    MAGNITUDES,
    GroupTable,
    Lexicon,
    Scoring,
    as_labels,
    check_labels,
    load_lexicon,
    score_in_memory,
)
from evenrank.io import EvenrankError, Run, write_text
from evenrank.io.errors import quoted
from evenrank.io.tables import IdIndex
from evenrank.measures import BACKGROUND_DEPTH, Evaluation, Missing, is_bias, parse_measure, parse_measures, spelled
from evenrank.mitigation.attributes import OneLexicon
from evenrank.rankers.load import load_ranker
from evenrank.rankers.pairs import TextPairs

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

Texts = Mapping[str, str] | pl.DataFrame


class BiasEvaluator(BaseEvaluator):  # type: ignore[misc]
    """Re-ranks candidates with a model and reports bias together with effectiveness; for both trainers, or on its own.

    ``queries``: the texts of the queries to evaluate, by id; ``corpus``: those of at least the candidates.
    ``relevant``: each query's relevant documents (a set, or document → grade). ``candidates``: each query's documents,
    best first, or a Run; the first ``depth`` are re-ranked. Tables with evenrank's own columns (``query_id``,
    ``doc_id``, ``text``, ``relevance``) work too. Rows of other queries are ignored; a judged query without candidates
    counts 0 in effectiveness.

    The group table of the documents is made once, with ``lexicon`` (or given as ``scores``), or is that of ``labels``
    by document, as :func:`evenrank.as_labels` takes them. Documents without a label are unknown: measures of bias leave
    them out, and ``known`` (and the model card) says how many of the candidates have one. NFaiRR's background is the
    first ``background_depth`` candidates. The figures equal those of :func:`evenrank.audit` with the candidates as
    baseline; those of the candidates themselves are in ``first_stage``.

    Called with a SentenceTransformer or a CrossEncoder, it returns the figures by the measures' names, with ``name_``
    before them; |ΔA-PRF| is spelled ``AbsoluteDeltaAPRF``, since ``|`` separates cells in a model card. The trainers
    log them, and the model card lists them. With an ``output_path`` it appends to a CSV file there. ``primary_metric``
    is nDCG@10, or the first measure of effectiveness.

    Raises EvenrankError for measures without one of effectiveness (a model that ranks at random is fair), for queries
    or documents without a text, and for labels beside a lexicon or scores, or that know none of the candidates.
    """

    # parameters, long: the texts, judgements and settings of an audit, as sentence-transformers' evaluators take theirs
    def __init__(
        self,
        queries: Texts,
        corpus: Texts,
        relevant: Mapping[str, Mapping[str, int] | AbstractSet[str] | Sequence[str]] | pl.DataFrame,
        candidates: Mapping[str, Sequence[str]] | Run | pl.DataFrame,
        *,
        lexicon: OneLexicon | None = None,
        scores: GroupTable | None = None,
        labels: object = None,
        measures: str | Sequence[str | Measure] = "nDCG@10 NFaiRR@10 ARaB@10 |DeltaAPRF|",
        depth: int = 100,
        background_depth: int = BACKGROUND_DEPTH,
        batch_size: int = 32,
        name: str = "",
        write_csv: bool = True,
        show_progress_bar: bool = False,
    ) -> None:
        super().__init__()
        if min(depth, background_depth, batch_size) < 1:
            raise EvenrankError("depth, background_depth and batch_size: expected 1 or more")
        chosen = parse_measures(measures) if isinstance(measures, str) else [parse_measure(one) for one in measures]
        self.measures = {spelled(measure): measure for measure in chosen}
        effective = [key for key, measure in self.measures.items() if not is_bias(measure)]
        if not effective:
            raise EvenrankError("measures: none is of effectiveness, and a ranking at random is fair: add nDCG@10")
        self.primary_metric = "nDCG@10" if "nDCG@10" in effective else effective[0]
        self.name = name
        self.depth = depth
        self.batch_size = batch_size
        self.write_csv = write_csv
        self.show_progress_bar = show_progress_bar
        self.csv_file = "_".join(["BiasEvaluator", *([name] if name else []), "results.csv"])

        texts = _text_table(queries, "query_id")
        everything = _candidates(candidates)
        asked = everything.table.filter(pl.col("query_id").is_in(texts["query_id"].implode()))
        if not asked.height:
            raise EvenrankError("candidates: none of the queries has any")
        candidate_run = Run(everything.name, asked)
        documents = _text_table(corpus, "doc_id", asked["doc_id"].unique(maintain_order=True))
        self._qrels = _judgements(relevant).filter(pl.col("query_id").is_in(texts["query_id"].implode()))
        check_labels(labels, None, None, scores=scores, lexicon=lexicon)
        if labels is not None:
            scores = as_labels(labels, [documents["doc_id"]])
        elif scores is None:
            scores = _by_words(documents, "gender-en" if lexicon is None else lexicon)
        self._scores = scores
        self._missing: Missing = "skip" if scores.labelled else "error"
        among = documents["doc_id"].is_in(scores.table["doc_id"].implode())
        self.known = int(among.sum()), len(among)
        first = Evaluation(candidate_run, scores, self._qrels, missing=self._missing)
        first.check_missing(1.0)
        self._background = first.background = first.as_background(candidate_run.name, background_depth)
        self.first_stage = {key: first.figure(measure) for key, measure in self.measures.items()}

        self._table = asked.filter(pl.col("rank") <= depth)
        query_ids, document_ids = (self._table[n].unique(maintain_order=True) for n in ("query_id", "doc_id"))
        self._query = IdIndex([query_ids]).places(self._table["query_id"]).astype(np.int64)
        self._document = IdIndex([document_ids]).places(self._table["doc_id"]).astype(np.int64)
        self._queries = _in_order(texts, query_ids)
        self._documents = _in_order(documents, document_ids)

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """The figures of the model's re-ranking."""
        training = model.training
        scores = self._scored(model)
        model.train(training)
        run = Run.from_table(self._table.with_columns(pl.Series("score", scores)), self.name or "model")
        evaluation = Evaluation(run, self._scores, self._qrels, missing=self._missing, background=self._background)
        figures = {key: evaluation.figure(measure) for key, measure in self.measures.items()}
        if output_path is not None and self.write_csv:
            self._add_line(Path(output_path) / self.csv_file, [epoch, steps, *figures.values()])
        metrics: dict[str, float] = self.prefix_name_to_metrics(figures, self.name)
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)
        return metrics

    def _scored(self, model: CrossEncoder | SentenceTransformer) -> NDArray[np.float64]:
        """The model's score of each candidate: its logit, or its similarity of query and document."""
        pairs = TextPairs(self._query, self._document, pl.Series(self._queries), pl.Series(self._documents))
        scorer = load_ranker(model)
        scorer.progress_bar = self.show_progress_bar
        return scorer.bind(pairs, self.batch_size)(np.arange(pairs.size))

    def _add_line(self, path: Path, values: list[float]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        if path.exists():
            lines.write(path.read_text(encoding="utf-8"))
        else:
            writer.writerow(["epoch", "steps", *self.measures])
        writer.writerow(values)
        write_text(path, lines.getvalue())

    @property
    def description(self) -> str:
        """Its name in the model card."""
        return "Effectiveness and Bias"

    def get_config_dict(self) -> dict[str, object]:
        """The settings, for the model card."""
        by_label = self._scores.labelled
        keys = ("labels", "poles", "neutral") if by_label else ("lexicon", "poles", "tokens", "threshold")
        known, candidates = self.known
        return {
            **{key: self._scores.settings.get(key) for key in keys},
            **({"candidates with a label": f"{known:,} of {candidates:,}, others are left out"} if by_label else {}),
            "queries": len(self._queries),
            "depth": self.depth,
            "background": f"the candidates, {self._background.depth} a query",
            "first stage": {key: round(value, 4) for key, value in self.first_stage.items()},
        }


def _by_words(documents: pl.DataFrame, one: OneLexicon) -> GroupTable:
    if not isinstance(one, Scoring):
        one = Scoring(one if isinstance(one, Lexicon) else load_lexicon(one))
    kinds = tuple(kind for kind in MAGNITUDES if kind != "count")
    return score_in_memory(documents, Scoring(one.lexicon, one.tokens, kinds, one.threshold))


def _text_table(texts: Texts, name: str, ids: pl.Series | None = None) -> pl.DataFrame:
    """Texts as a table with the ids ``name``; with ``ids``, theirs alone, all of which must be present."""
    if isinstance(texts, Mapping):
        wanted = texts if ids is None else {id_: texts[id_] for id_ in ids if id_ in texts}
        table = pl.DataFrame({name: list(wanted), "text": list(wanted.values())}, {name: pl.String, "text": pl.String})
    else:
        table = texts.select(pl.col(name).cast(pl.String), "text").unique(name, keep="first", maintain_order=True)
        table = table if ids is None else table.filter(pl.col(name).is_in(ids.implode()))
    table = table.drop_nulls("text")
    if ids is not None and table.height < len(ids):
        lacking = ids.filter(~ids.is_in(table[name].implode()))
        raise EvenrankError(f"candidates: {len(lacking)} documents without a text, such as {quoted(lacking[0])}")
    return table


def _in_order(texts: pl.DataFrame, ids: pl.Series) -> list[str]:
    """The texts of ``ids``, in their order."""
    return ids.to_frame().join(texts, on=ids.name, how="left", maintain_order="left")["text"].to_list()


def _candidates(given: Mapping[str, Sequence[str]] | Run | pl.DataFrame) -> Run:
    if isinstance(given, Run):
        return given
    if isinstance(given, pl.DataFrame):
        return Run.from_table(given, "candidates")
    rows = [(query, document, 0.0) for query, documents in given.items() for document in documents]
    table = pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")
    return Run.from_table(table, "candidates", order="file")


def _judgements(given: Mapping[str, Any] | pl.DataFrame) -> pl.DataFrame:
    if isinstance(given, pl.DataFrame):
        return given.select(pl.col("query_id", "doc_id").cast(pl.String), pl.col("relevance").cast(pl.Int64))
    rows = [
        (query, document, int(documents[document]) if isinstance(documents, Mapping) else 1)
        for query, documents in given.items()
        for document in documents
    ]
    return pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row")
