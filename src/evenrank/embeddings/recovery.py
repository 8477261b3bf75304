"""Recovery of the groups from word vectors [Gonen & Goldberg 2019]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenrank.io import EvenrankError, MissingExtraError
from evenrank.io.ranges import check_ranges, seed_32

from ._rows import Integers, unit_rows
from .vectors import Vectors


@dataclass(frozen=True, slots=True)
class Recovery:
    """How well the sides of the most biased words can be recovered: ``kmeans`` alignment and the accuracy of two SVMs.

    ``linear`` and ``rbf``: mean accuracy over random splits on the words not trained on; ``linear_sd``, ``rbf_sd``: its
    standard deviation. ``tested``: the number of words that an SVM is tested on in a split.
    """

    kmeans: float
    linear: float
    linear_sd: float
    rbf: float
    rbf_sd: float
    tested: int


def recovery(
    vectors: Vectors, sides: tuple[Integers, Integers], *, train: int = 200, splits: int = 10, seed: int = 0
) -> Recovery:
    """How well the two ``sides`` (rows) can be recovered from unit vectors (Gonen & Goldberg 2019, sections 4 and 5).

    ``kmeans``: the share of words in the cluster of their side, for the better of the two assignments; slightly above
    0.5 by chance. The SVMs (linear, and with an RBF kernel) are trained on ``train`` random words of each side, or on
    two fifths of a side with fewer than 2.5 times ``train``, and tested on the others, in ``splits`` random splits.
    Raises EvenrankError for sides of fewer than five words; MissingExtraError without scikit-learn.
    """
    check_ranges(train=train, splits=splits, seed=seed)
    try:
        from sklearn.cluster import KMeans
        from sklearn.svm import SVC
    except ModuleNotFoundError:
        raise MissingExtraError("recovering the groups", "embeddings") from None

    size = min(map(len, sides))
    if size < 5:
        raise EvenrankError(f"recovery: expected 5 words or more of each side, found {size}")
    rows = unit_rows(vectors.matrix[np.concatenate(sides)])
    side_of = np.repeat([0, 1], [len(side) for side in sides])
    clusters = KMeans(n_clusters=2, n_init=10, random_state=seed_32(seed)).fit_predict(rows)
    agree = float((clusters == side_of).mean())
    rng = np.random.default_rng(seed)
    per_side = min(train, size * 2 // 5)
    found: dict[str, list[float]] = {"linear": [], "rbf": []}
    for _ in range(splits):
        drawn = np.concatenate([rng.permutation(np.flatnonzero(side_of == side))[:per_side] for side in (0, 1)])
        test = np.ones(len(rows), np.bool_)
        test[drawn] = False
        for kernel, scores in found.items():
            svm = SVC(kernel=kernel, C=1.0, gamma="scale", random_state=seed_32(seed)).fit(rows[drawn], side_of[drawn])
            scores.append(float((svm.predict(rows[test]) == side_of[test]).mean()))
    spread = {kernel: float(np.std(scores, ddof=1)) if splits > 1 else 0.0 for kernel, scores in found.items()}
    means = {kernel: float(np.mean(scores)) for kernel, scores in found.items()}
    tested = len(rows) - 2 * per_side
    return Recovery(max(agree, 1 - agree), means["linear"], spread["linear"], means["rbf"], spread["rbf"], tested)
