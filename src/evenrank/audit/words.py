"""Which words drive the figures: a reader sees at once where a lexicon takes a word for what it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.groups import Scoring, WordCounts, score_with_words
from evenrank.io import Scores
from evenrank.io.scores import REST
from evenrank.io.tables import IdIndex
from evenrank.measures import Evaluation, parse_measure
from evenrank.measures.lists import expand

Array = np.ndarray[Any, Any]
_SIGNED = ("ARaB", "RaB")
_LEANS = (*_SIGNED, "AbsARaB", "|ARaB|")
_DEPTH = 10


@dataclass(frozen=True, slots=True)
class WordShare:
    """What one word of a lexicon does to the figures of a run.

    ``occurrences`` in the first ranks of all queries (of ``random``: their expectation). ``contribution``: what it adds
    to the run's ARaB(magnitude='count'), exactly, so that the contributions of all words sum to it; None without
    poles. ``share``: of what its group's words weigh there together. ``share_of_documents``: of the occurrences of
    its group's words in all documents of the runs, each document once. ``left_out``: by how much each lean of the audit
    is larger than it would be without the word; the logarithmic ones do not add up.
    """

    word: str
    occurrences: float
    contribution: float | None
    share: float
    share_of_documents: float
    left_out: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        names = ("word", "occurrences", "contribution", "share", "share_of_documents", "left_out")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Words:
    """The words of every run's first ranks by group, those that weigh most first.

    ``measure``: by which they are weighed; ``depth``: its cutoff; ``documents``: how many the shares of documents are
    over. ``names`` [E] and ``of_document`` (``doc_id``, ``words``: places in ``names``) tell the page which words the
    documents of the first ranks hold.
    """

    measure: str
    depth: int
    documents: int
    runs: dict[str, dict[str, tuple[WordShare, ...]]]
    names: tuple[str, ...] = field(repr=False)
    of_document: pl.DataFrame = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        runs = {
            run: {group: [word.to_dict() for word in words] for group, words in groups.items()}
            for run, groups in self.runs.items()
        }
        return {"measure": self.measure, "depth": self.depth, "documents": self.documents, "runs": runs}


def find_words(
    evaluations: Sequence[tuple[str, Evaluation, bool]],
    scores: Scores,
    counts: WordCounts,
    measures: Sequence[Measure],
    shown: pl.Series,
) -> Words:
    """The words of rankings given as (name, evaluation, whether its random expectation is meant).

    ``shown``: the documents whose words the page wants to know.
    """
    leans = [measure for measure in measures if measure.NAME in _LEANS]
    first = next((m for m in (*leans, *measures) if m.NAME in (*_LEANS, "NFaiRR", "FaiRR")), None)
    depth = first.params["cutoff"] if first is not None else _DEPTH
    own = first.params.get("poles") if first is not None else None
    poles = f",poles='{own}'" if own else ""
    measure = parse_measure(f"ARaB(magnitude='count'{poles})@{depth}")
    signed = [lean for lean in leans if lean.NAME in _SIGNED]
    counted = _Counted.of(scores, counts)
    runs = {
        name: counted.ranked(_Weights.of(evaluation, measure, signed, random), measure)
        for name, evaluation, random in evaluations
    }
    return Words(str(measure), depth, counts.documents, runs, counts.words, _words_of(counts, scores, shown))


@dataclass(frozen=True, slots=True)
class _Weights:
    """How much each document [D] of the score table weighs in a ranking.

    ``stands``: how often it is in the first ranks; ``weigh``: in the measure by which words are weighed; ``leans``: in
    each lean of the audit.
    """

    stands: Array
    weigh: Array
    leans: list[tuple[Measure, Array]]

    @classmethod
    def of(cls, evaluation: Evaluation, measure: Measure, signed: list[Measure], random: bool) -> _Weights:
        # Weights are those of the ranks, whatever the magnitude.
        known: dict[tuple[str, int], Array] = {}
        for lean in (measure, *signed):
            key = lean.NAME, lean.params["cutoff"]
            if key not in known:
                known[key] = evaluation.document_weights(lean, random=random)
        depth = measure.params["cutoff"]
        return cls(
            evaluation.appearances(depth, random=random),
            known[measure.NAME, depth],
            [(lean, known[lean.NAME, lean.params["cutoff"]]) for lean in signed],
        )


@dataclass(frozen=True, slots=True)
class _Counted:
    """The words of scored documents: ``group`` [E] (a number) and ``of_documents`` [E] (share of the group's
    occurrences) of each word; ``totals`` [D, G]: occurrences of each group's words in each document."""

    scores: Scores
    counts: WordCounts
    group: Array
    of_documents: Array
    totals: Array

    @classmethod
    def of(cls, scores: Scores, counts: WordCounts) -> _Counted:
        group = np.array([scores.groups.index(name) for name in counts.groups], dtype=np.int64)
        totals = np.stack([scores.table[f"count_{name}"].to_numpy() for name in scores.groups], axis=1)
        everywhere = np.bincount(counts.word, counts.count, minlength=len(group))
        return cls(scores, counts, group, _shares(everywhere, group, len(scores.groups)), totals)

    def ranked(self, weights: _Weights, measure: Measure) -> dict[str, tuple[WordShare, ...]]:
        """The words of a ranking's first ranks by group, those that weigh most first."""
        touched = (weights.stands != 0) | (weights.weigh != 0)
        for _, weigh in weights.leans:
            touched |= weigh != 0
        document, word, count = _of_documents(self.counts, np.flatnonzero(touched))
        group = self.group

        def summed(values: Array) -> Array:
            return np.bincount(word, values, minlength=len(group))

        occurrences = summed(weights.stands[document] * count)
        part = summed(weights.weigh[document] * count)
        total = self.totals[document, group[word]]
        left_out = {
            str(lean): sign[group] * summed(weigh[document] * _lost(lean, total, count))
            for lean, weigh in weights.leans
            if (sign := _signs(self.scores, lean)) is not None
        }
        signs = _signs(self.scores, measure)
        shares = _shares(part, group, len(self.scores.groups))

        def share_of(w: int) -> WordShare:
            return WordShare(
                self.counts.words[w],
                float(occurrences[w]),
                None if signs is None else float(signs[group[w]] * part[w]),
                float(shares[w]),
                float(self.of_documents[w]),
                {key: float(values[w]) for key, values in left_out.items()},
            )

        order = [w for w in np.argsort(-part, kind="stable").tolist() if occurrences[w] > 0]
        return {of: tuple(share_of(w) for w in order if group[w] == g) for g, of in enumerate(self.scores.groups)}


def _signs(scores: Scores, measure: Measure) -> Array | None:
    """With which sign each group [G] enters a signed magnitude; None without poles."""
    own = measure.params.get("poles")
    pair = tuple(part.strip() for part in own.split(",")) if own else scores.poles
    if pair is None:
        return None
    others = [group for group in scores.groups if group != pair[0]] if pair[1] == REST else [pair[1]]
    return np.array([(group == pair[0]) - (group in others) / len(others) for group in scores.groups])


def _lost(measure: Measure, total: Array, count: Array) -> Array:
    """What of a group's magnitude goes [P] where ``count`` of its ``total`` occurrences are a word that is left out."""
    kind = measure.params.get("magnitude") or "tf"
    if kind == "count":
        return count.astype(np.float64)
    if kind == "bool":
        return (count >= total).astype(np.float64)
    if kind == "tf_words":
        return np.log1p(count)
    if kind == "tf_literal":
        return np.log(count)
    lost: Array = np.log1p(total) - np.log1p(total - count)
    return lost


def _shares(values: Array, group: Array, groups: int) -> Array:
    """Each word's share [E] of its group's sum."""
    sums = np.bincount(group, values, minlength=groups)[group]
    return np.divide(values, sums, out=np.zeros(len(values)), where=sums > 0)


def _of_documents(counts: WordCounts, documents: Array) -> tuple[Array, Array, Array]:
    """Document, word and count of the rows for ``documents`` (rising)."""
    if 2 * len(documents) > (counts.document[-1] + 1 if len(counts.document) else 0):
        return counts.document, counts.word, counts.count
    starts = np.searchsorted(counts.document, documents)
    rows, _ = expand(starts, np.searchsorted(counts.document, documents, side="right") - starts)
    return counts.document[rows], counts.word[rows], counts.count[rows]


def _words_of(counts: WordCounts, scores: Scores, shown: pl.Series) -> pl.DataFrame:
    ids = shown.unique(maintain_order=True)
    place = IdIndex([scores.table["doc_id"]]).places(ids)
    ids, place = ids.filter(pl.Series(place >= 0)), place[place >= 0]
    starts = np.searchsorted(counts.document, place)
    rows, of = expand(starts, np.searchsorted(counts.document, place, side="right") - starts)
    pairs = pl.DataFrame({"doc_id": ids.gather(of), "words": counts.word[rows]})
    return pairs.group_by("doc_id", maintain_order=True).agg("words")


def counts_for(scores: Scores, texts: Any, scoring: Scoring) -> WordCounts | None:
    """The words of documents that were scored before, from their texts (batches); None where the scores are those of
    other texts."""
    own, counts = score_with_words(texts, scoring)
    if own.groups != scores.groups:
        return None
    place = IdIndex([scores.table["doc_id"]]).places(own.table["doc_id"])
    known = place >= 0
    for name in own.groups:
        column = f"count_{name}"
        if (own.table[column].to_numpy()[known] != scores.table[column].to_numpy()[place[known]]).any():
            return None
    document = place[counts.document]
    order = np.argsort(document, kind="stable")
    order = order[document[order] >= 0]
    return WordCounts(
        counts.words, counts.groups, counts.documents, document[order], counts.word[order], counts.count[order]
    )
