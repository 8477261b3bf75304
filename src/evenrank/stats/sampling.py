"""Figures that are estimated from labels of a random sample of documents.

[AEA23] Angelopoulos, Duchi & Zrnic (2023). PPI++: efficient prediction-powered inference. arXiv:2311.01453.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from evenrank.files.types import Array

LEAST_LABELS = 30
"""Fewer labels of a sample than this tell nothing of the documents that were not drawn."""
_ZERO = 1e-12


class DesignError(NamedTuple):
    """What the draw of labels contributes to the error of a mean.

    ``variance``: V; ``one_more``: V₁, what one more label that contradicts its guess would add; ``within_queries``: the
    part of V that lies within single queries; ``df``: degrees of freedom of V.
    """

    variance: float
    one_more: float
    within_queries: float
    df: float


@dataclass(frozen=True, slots=True)
class LabelSample:
    """What a figure owes to labels of documents that were drawn: a sum of them, estimated from a sample.

    A figure is M = Σ_d W_d x_d, with W_d the document's weight in it, 1/Q times the sum over its queries of the weights
    of its ranks, and x_d the value of its label. With a guess f_d of every value, wrong as it may be, and labels of a
    sample S, drawn with probabilities π_d, M̂ = Σ_d W_d λ f_d + Σ_{d ∈ S} W_d (x_d − λ f_d)/π_d is unbiased whatever
    the guess: the difference estimator of survey sampling, prediction-powered inference [AEA23].

    Attributes:
        query, document, weight: Where a drawn document is in a query's value [P]: the query, from 0, the number of the
            document among those drawn, and the weight of its rank.
        residual: x_d − λ f_d of the documents drawn [k].
        probability: Their π_d [k], above 0 and at most 1.
        contradicts: Whether a label differs from its guess by more than .5 [k].
    """

    query: Array
    document: Array
    weight: Array
    residual: Array
    probability: Array
    contradicts: Array

    @property
    def labels(self) -> int:
        """Number of labels drawn."""
        return len(self.residual)

    def plus(self, other: LabelSample | None, sign: float = 1.0) -> LabelSample:
        """The sum of two figures from the same sample (``sign`` −1: their difference)."""
        if other is None:
            return self
        query = np.concatenate([self.query, other.query])
        document = np.concatenate([self.document, other.document])
        return replace(self, query=query, document=document, weight=np.concatenate([self.weight, sign * other.weight]))

    def only(self, known: Array) -> LabelSample:
        """The same for the ``known`` [Q] queries alone, renumbered from 0."""
        inside, new = known[self.query], np.cumsum(known) - 1
        query, document = new[self.query[inside]], self.document[inside]
        return replace(self, query=query, document=document, weight=self.weight[inside])

    def design_error(self, known: Array) -> DesignError:
        """The error that the draw gives a mean over the ``known`` [Q] queries.

        With z = W(x − λf)/π and z̄ its mean with weights 1 − π, over the k documents with π < 1:
        V = k/(k − 1) · Σ(1 − π)(z − z̄)². V₁, the mean of (1 − π)(W/π)², is what one more error of size 1 would add,
        as a sample may hold none of a few. Twice as many degrees of freedom as labels that contradict the guess, at
        least 2.
        """
        inside = known[self.query]
        query, document, weight = self.query[inside], self.document[inside], self.weight[inside]
        count, size = self.labels, int(known.sum())
        # A document may be in a query twice, as in a difference of two runs.
        pairs, index = np.unique(query * count + document, return_inverse=True)
        of_pair, document = np.bincount(index, weight, len(pairs)), pairs % count
        total = np.bincount(document, of_pair, count) / size
        unsampled, scaled = 1 - self.probability, self.residual / self.probability
        random = unsampled > 0
        if random.sum() < 2:
            return DesignError(0.0, 0.0, 0.0, math.inf)
        z = total * scaled
        deviations = z - (unsampled * z).sum() / unsampled.sum()
        k = int(random.sum())
        variance = k / (k - 1) * float((unsampled * deviations**2).sum())
        one_more = float((unsampled * (total / self.probability) ** 2)[random].mean())
        within = float((of_pair**2 * (unsampled * scaled**2)[document]).sum()) / size**2
        used = np.abs(total) > _ZERO
        return DesignError(variance, one_more, within, float(max(2, 2 * int((self.contradicts & used & random).sum()))))

    @property
    def too_few(self) -> str | None:
        """Why there are too few labels for a test; None where there are enough in the figure."""
        total = np.bincount(self.document, self.weight, self.labels)
        used = int((np.abs(total) > _ZERO).sum())
        return None if used >= LEAST_LABELS else f"only {used} labels bear on it, where {LEAST_LABELS} are needed"


SamplePair = tuple[LabelSample | None, LabelSample | None]
"""What a run's values and another's owe to drawn labels."""


def on_queries(samples: SamplePair, known: Array) -> SamplePair:
    """Both samples for the ``known`` [Q] queries alone, renumbered from 0."""
    first, second = (None if sample is None else sample.only(known) for sample in samples)
    return first, second
