"""Which words drive the figures, so that a reader can see where a lexicon misjudges a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files.json_values import LEFT_OUT
from evenrank.files.tables import IdIndex
from evenrank.files.types import Array
from evenrank.groups import GroupTable, WordCounts
from evenrank.groups.table import REST
from evenrank.measures import Evaluation, NeutralityMeasure, RankBiasMeasure
from evenrank.measures.rank_bias import ARaB
from evenrank.measures.ranked_lists import expand

_DEPTH = 10


@dataclass(frozen=True, slots=True)
class WordShare:
    """Contribution of one word of a lexicon to the figures of a run.

    Attributes:
        occurrences: Number of occurrences in the first ranks of all queries; for ``random`` their expectation.
        contribution: The word's part of the run's ARaB(magnitude='count'); the parts of all words sum to it. None
            without poles.
        share: The word's share of the weight of its group's words in these ranks.
        share_of_documents: The word's share of the occurrences of its group's words in all documents of the runs,
            each document counted once.
    """

    word: str
    occurrences: float
    contribution: float | None
    share: float
    share_of_documents: float


@dataclass(frozen=True, slots=True)
class Words:
    """The words in every run's first ranks by group, heaviest first.

    Attributes:
        measure: The measure that weights the words; ``depth``: its cutoff.
        documents: Number of documents behind the shares of documents.
        runs: Words by run and group.
        names: The lexicon's words [E]; ``in_document`` has ``doc_id`` and ``words``, the numbers of the words in each
            document of the first ranks.
    """

    measure: str
    depth: int
    documents: int
    runs: dict[str, dict[str, tuple[WordShare, ...]]]
    names: tuple[str, ...] = field(repr=False, metadata=LEFT_OUT)
    in_document: pl.DataFrame = field(repr=False, metadata=LEFT_OUT)


def find_words(
    evaluations: Sequence[tuple[str, Evaluation, bool]],
    scores: GroupTable,
    counts: WordCounts,
    measures: Sequence[Measure],
    shown: pl.Series,
) -> Words:
    """The words of rankings, each a name, its evaluation, and whether the expectation of a random order is meant.

    ``shown``: ids of the documents whose words are listed.
    """
    kinds = (RankBiasMeasure, NeutralityMeasure)
    first = next((measure for kind in kinds for measure in measures if isinstance(measure, kind)), None)
    depth = first.params["cutoff"] if first is not None else _DEPTH
    own = first.params.get("poles") if first is not None else None
    measure = ARaB(magnitude="count", **({"poles": own} if own else {})) @ depth
    counted = _Counted.of(scores, counts)
    runs = {name: counted.ranked(evaluation, measure, random) for name, evaluation, random in evaluations}
    return Words(str(measure), depth, counts.documents, runs, counts.words, _words_in(counts, scores, shown))


@dataclass(frozen=True, slots=True)
class _Counted:
    """The words of scored documents.

    ``group`` [E]: each word's group number; ``document_shares`` [E]: its share of its group's occurrences.
    """

    scores: GroupTable
    counts: WordCounts
    group: Array
    document_shares: Array

    @classmethod
    def of(cls, scores: GroupTable, counts: WordCounts) -> _Counted:
        group = np.array([scores.groups.index(name) for name in counts.groups], dtype=np.int64)
        everywhere = np.bincount(counts.word, counts.count, minlength=len(group))
        return cls(scores, counts, group, _shares(everywhere, group, len(scores.groups)))

    def ranked(
        self, evaluation: Evaluation, measure: RankBiasMeasure, random: bool
    ) -> dict[str, tuple[WordShare, ...]]:
        """The words of a ranking's first ranks by group, heaviest first; ``random``: in random order."""
        appearances = evaluation.appearances(measure.params["cutoff"], random=random)
        weights = measure.document_weights(evaluation, random=random)
        document, word, count = _rows_of(self.counts, np.flatnonzero((appearances != 0) | (weights != 0)))
        group = self.group
        occurrences, part = (
            np.bincount(word, values[document] * count, minlength=len(group)) for values in (appearances, weights)
        )
        signs, shares = _signs(self.scores, measure), _shares(part, group, len(self.scores.groups))

        def share_of(w: int) -> WordShare:
            return WordShare(
                self.counts.words[w],
                float(occurrences[w]),
                None if signs is None else float(signs[group[w]] * part[w]),
                float(shares[w]),
                float(self.document_shares[w]),
            )

        order = [w for w in np.argsort(-part, kind="stable").tolist() if occurrences[w] > 0]
        return {name: tuple(share_of(w) for w in order if group[w] == g) for g, name in enumerate(self.scores.groups)}


def _signs(scores: GroupTable, measure: Measure) -> Array | None:
    """The sign with which each group [G] enters a signed magnitude; None without poles."""
    own = measure.params.get("poles")
    pair = tuple(part.strip() for part in own.split(",")) if own else scores.poles
    if pair is None:
        return None
    others = [group for group in scores.groups if group != pair[0]] if pair[1] == REST else [pair[1]]
    return np.array([(group == pair[0]) - (group in others) / len(others) for group in scores.groups])


def _shares(values: Array, group: Array, groups: int) -> Array:
    """Each word's share [E] of its group's sum."""
    sums = np.bincount(group, values, minlength=groups)[group]
    return np.divide(values, sums, out=np.zeros(len(values)), where=sums > 0)


def _rows_of(counts: WordCounts, documents: Array) -> tuple[Array, Array, Array]:
    """Document, word and count of the rows of ``documents`` (sorted)."""
    if 2 * len(documents) > (counts.document[-1] + 1 if len(counts.document) else 0):
        return counts.document, counts.word, counts.count
    starts = np.searchsorted(counts.document, documents)
    rows, _ = expand(starts, np.searchsorted(counts.document, documents, side="right") - starts)
    return counts.document[rows], counts.word[rows], counts.count[rows]


def _words_in(counts: WordCounts, scores: GroupTable, shown: pl.Series) -> pl.DataFrame:
    ids = shown.unique(maintain_order=True)
    place = IdIndex([scores.table["doc_id"]]).places(ids)
    ids, place = ids.filter(pl.Series(place >= 0)), place[place >= 0]
    starts = np.searchsorted(counts.document, place)
    rows, of = expand(starts, np.searchsorted(counts.document, place, side="right") - starts)
    pairs = pl.DataFrame({"doc_id": ids.gather(of), "words": counts.word[rows]})
    return pairs.group_by("doc_id", maintain_order=True).agg("words")
