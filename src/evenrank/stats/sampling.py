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
FOLDS = 5
_ZERO = 1e-12


def predictions(guess: Array, fold: Array, drawn: Array, label: Array, probability: Array) -> Array:
    """Predicted value of each document [D], from a guess: m = x̄ + b(f − f̄), fitted on the labels of other folds.

    x̄ and f̄ are means over these labels with weights 1 − π, and b is the slope of weighted least squares, 0 where the
    guess is the same for all of them. With fewer than 30 labels the guess itself.

    Args:
        guess: f [D], wrong as it may be.
        fold: The fold of each document [D], from 0 to 4.
        drawn: The places [k] of the documents that have a label.
        label: Their labels' values x [k].
        probability: The probabilities π [k] with which they were drawn.
    """
    predicted = guess.copy()
    if len(drawn) < LEAST_LABELS:
        return predicted
    own = guess[drawn]
    for number in range(FOLDS):
        weight = np.where(fold[drawn] != number, 1 - probability, 0.0)
        if weight.sum() <= _ZERO:
            continue
        x, f = (float(np.average(values, weights=weight)) for values in (label, own))
        square = float((weight * (own - f) ** 2).sum())
        slope = float((weight * (own - f) * (label - x)).sum()) / square if square > _ZERO else 0.0
        predicted[fold == number] = x + slope * (guess[fold == number] - f)
    return predicted


class DesignError(NamedTuple):
    """Contribution of label sampling to the error of a mean.

    ``variance``: V; ``one_more``: V₁, what one more label that contradicts its guess would add; ``within_queries``: the
    part of V that lies within single queries; ``df``: degrees of freedom of V.
    """

    variance: float
    one_more: float
    within_queries: float
    df: float


class Estimates(NamedTuple):
    """Of all documents [D] that could have been drawn, their estimated ``values`` and the ``guess``; of those that were
    drawn [k], the ``residual``: the label less what the guess predicts."""

    values: Array
    residual: Array
    guess: Array


def difference_estimates(guess: Array, fold: Array, drawn: Array, label: Array, probability: Array) -> Estimates:
    """The difference estimator of each document's value: m + (x − m)/π of those drawn, m of the others.

    m is that of :func:`predictions`, whose arguments these are.
    """
    estimated = predictions(guess, fold, drawn, label, probability)
    residual = label - estimated[drawn]
    estimated[drawn] += residual / probability
    return Estimates(estimated, residual, guess)


@dataclass(frozen=True, slots=True)
class LabelSample:
    """Sampling-error component of a figure estimated from sampled labels.

    A figure is M = Σ_d W_d x_d, with W_d the document's weight in it, 1/Q times the sum over its queries of the weights
    of its ranks, and x_d the value of its label. With a guess f_d of every value, wrong as it may be, and labels of a
    sample S, drawn with probabilities π_d, M̂ = Σ_d W_d m_d + Σ_{d ∈ S} W_d (x_d − m_d)/π_d is unbiased whatever the
    guess, where m_d is what it predicts by the labels of other documents (:func:`predictions`): the difference
    estimator of survey sampling, prediction-powered inference [AEA23].

    Attributes:
        query, document, weight: Where a drawn document is in a query's value [P]: the query, from 0, the number of the
            document among those drawn, and the weight of its rank.
        residual: x_d − m_d of the documents drawn [k].
        probability: Their π_d [k], above 0 and at most 1.
    """

    query: Array
    document: Array
    weight: Array
    residual: Array
    probability: Array

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

        With z = W(x − m)/π and z̄ its mean with weights 1 − π, over the k documents with π < 1, and u = (1 − π)(z − z̄)²:
        V = k/(k − 1) · Σu. V₁, e² times the mean of (1 − π)(W/π)², is what one more error would add, as a sample may
        hold none of a few: e is the largest |x − m| of the sample, at least 1 (of two poles an error can be 2). Degrees
        of freedom are twice the number of labels that V effectively is of, (Σu)²/Σu², at least 2.
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
        squares = unsampled * deviations**2
        variance = k / (k - 1) * float(squares.sum())
        effective = float(squares.sum() ** 2 / (squares**2).sum()) if variance > 0 else 0.0
        largest = max(1.0, float(np.abs(self.residual).max()))
        one_more = largest**2 * float((unsampled * (total / self.probability) ** 2)[random].mean())
        within = float((of_pair**2 * (unsampled * scaled**2)[document]).sum()) / size**2
        return DesignError(variance, one_more, within, max(2.0, 2 * effective))

    @property
    def too_few(self) -> str | None:
        """Why there are too few labels for a test; None where there are enough in the figure."""
        total = np.bincount(self.document, self.weight, self.labels)
        used = int((np.abs(total) > _ZERO).sum())
        return (
            None if used >= LEAST_LABELS else f"only {used} of those drawn bear on it, where {LEAST_LABELS} are needed"
        )


SamplePair = tuple[LabelSample | None, LabelSample | None]
"""What a run's values and another's owe to drawn labels."""


def on_queries(samples: SamplePair, known: Array) -> SamplePair:
    """Both samples for the ``known`` [Q] queries alone, renumbered from 0."""
    first, second = (None if sample is None else sample.only(known) for sample in samples)
    return first, second
