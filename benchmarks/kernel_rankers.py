"""Scoring pairs with the rankers over word vectors, on one thread, against a plain loop over the pairs.

300 dimensions, 20,000 words drawn as in natural text (Zipf), queries of 3 to 9 words with passages of 40 to 60. The
loop does what the definition says for one pair after the other, in the same library, with the published image of
30 × 200 for match-pyramid.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from .measure import Row, run

KINDS = ("knrm", "conv-knrm", "match-pyramid", "tk")
WORDS, DIMENSIONS, QUERIES, DEPTH, LOOP = 20_000, 300, 16, 256, 128
SHORTEST = 0.5


def _ranker_and_pairs(kind: str) -> tuple[Any, list[str], list[str]]:
    import numpy as np
    import torch

    from evenrank.models.protocol import ranker_class
    from evenrank.search.embeddings import Vectors

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(WORDS)])
    share = 1 / np.arange(1, WORDS + 1)
    share /= share.sum()

    def text(shortest: int, longest: int) -> str:
        return " ".join(rng.choice(words, rng.integers(shortest, longest + 1), p=share))

    queries = [query for query in (text(3, 9) for _ in range(QUERIES)) for _ in range(DEPTH)]
    passages = [text(40, 60) for _ in queries]
    vectors = Vectors(tuple(words.tolist()), rng.standard_normal((WORDS, DIMENSIONS)).astype(np.float32))
    form: Any = ranker_class(kind)
    return form.from_vectors(vectors).eval(), queries, passages


def ours(kind: str) -> None:
    """Prints pairs a second, tokenising included."""
    ranker, queries, passages = _ranker_and_pairs(kind)
    ranker.score(queries[:64], passages[:64])
    pairs, start = 0, time.perf_counter()
    while time.perf_counter() - start < SHORTEST:
        ranker.score(queries, passages)
        pairs += len(queries)
    print(pairs / (time.perf_counter() - start))


def loop(kind: str) -> None:
    """The same one pair at a time; prints pairs a second."""
    import torch

    ranker, queries, passages = _ranker_and_pairs(kind)
    number = {word: place for place, word in enumerate(ranker.vocabulary, 2)}
    step = len(queries) // LOOP
    with torch.inference_mode():
        scores, start = [], time.perf_counter()
        for query, passage in zip(queries[::step], passages[::step], strict=True):
            ids = [
                torch.tensor([[number.get(word, 1) for word in re.findall(r"\w+", text.lower())]])
                for text in (query, passage)
            ]
            scores.append(_plain(kind, ranker, *ids))
        seconds = time.perf_counter() - start
    # The two are the same computation.
    expected = ranker.score(queries[::step], passages[::step])
    assert float((torch.stack(scores) - expected).abs().max()) < 1e-4
    print(len(scores) / seconds)


def _plain(kind: str, ranker: Any, query: Any, passage: Any) -> Any:
    """The score of a pair: ``query`` [1, Q], ``passage`` [1, D] → []."""
    import torch
    from torch.nn import functional

    from evenrank.models.word_rankers import PASSAGE_START

    vectors = [ranker.embeddings(ids) for ids in (query, passage)]
    if kind == "tk":
        pair = [(query, 0), (passage, PASSAGE_START)]
        grams = [[ranker.contextualise(ids, torch.ones_like(ids, dtype=torch.bool), start)] for ids, start in pair]
    elif kind == "conv-knrm":
        grams = [
            [
                layer(functional.pad(side.mT, (0, layer.kernel_size[0] - 1))).relu().mT
                for layer in ranker.contextualisation
            ]
            for side in vectors
        ]
    else:
        grams = [[side] for side in vectors]
    unit = [[side / (side.norm(dim=-1, keepdim=True) + 1e-13) for side in sides] for sides in grams]
    cosines = [a @ b.mT for a in unit[0] for b in unit[1]]
    if kind == "match-pyramid":
        image = torch.zeros(1, 1, ranker.settings.query_length, ranker.settings.passage_length)
        image[0, 0, : query.shape[1], : passage.shape[1]] = cosines[0]
        for layer, size in zip(ranker.convolutions, ((36, 90), (18, 60), (9, 30), (6, 20), (3, 10)), strict=True):
            image = functional.adaptive_max_pool2d(layer(functional.pad(image, (0, 2, 0, 2))).relu(), size)
        features = image.flatten()
        for layer in ranker.dense:
            features = layer(features).relu()
        return ranker.last(features)[0]
    centres = torch.tensor([1.0, 0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9])
    widths = torch.tensor([{"tk": 0.1, "knrm": 1e-4, "conv-knrm": 1e-3}[kind], *[0.1] * 10])
    scale = 1.0 if kind == "tk" else 0.01
    pooled = []
    for matrix in cosines:
        kernels = torch.exp(-((matrix[..., None] - centres) ** 2) / (2 * widths**2))
        pooled.append((kernels.sum(2).clamp(min=1e-10).log() * scale).sum(1)[0])
    return ranker.kernels(torch.cat(pooled))[0]


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    lines = []
    for kind in KINDS:
        rate, plain = float(run("kernel_rankers.ours", kind).said), float(run("kernel_rankers.loop", kind).said)
        lines.append(Row(f"scoring pairs with `{kind}`, one thread, against a loop over pairs", rate, "pairs/s", plain))
    return lines
