"""Training steps of tk against a plain implementation on ``torch.nn.TransformerEncoder``: 10 heads of 30, which both
can run; the same batch, kernels and loss."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from .measure import Row, run

BATCH, PASSAGES, QUERY, PASSAGE, SIZE, WORDS, STEPS = 32, 2, 8, 100, 300, 5_000, 12


def _groups() -> tuple[list[str], list[list[str]]]:
    rng = np.random.default_rng(0)
    text = [" ".join(f"w{i}" for i in rng.integers(0, WORDS, size)) for size in [QUERY] * BATCH]
    passages = [[" ".join(f"w{i}" for i in rng.integers(0, WORDS, PASSAGE)) for _ in range(PASSAGES)] for _ in text]
    return text, passages


def _train(forward, parameters) -> None:  # type: ignore[no-untyped-def]
    import torch

    optimizer = torch.optim.Adam(parameters, 1e-4)

    def step() -> None:
        scores = forward()
        loss = torch.relu(1 - scores[:, :1] + scores[:, 1:]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step()
    start = time.process_time()
    for _ in range(STEPS):
        step()
    print(STEPS / (time.process_time() - start))


def ours() -> None:
    """Prints steps a processor second."""
    from evenrank.embeddings import Vectors
    from evenrank.rankers.protocol import CandidateLists
    from evenrank.rankers.tk import TKRanker

    matrix = np.random.default_rng(1).standard_normal((WORDS, SIZE), dtype=np.float32)
    settings = {"heads": 10, "head_size": 30, "feedforward": 100, "layers": 2, "query_length": QUERY}
    settings["passage_length"] = PASSAGE
    ranker = TKRanker.from_vectors(Vectors(tuple(f"w{i}" for i in range(WORDS)), matrix), settings)
    queries, passages = _groups()
    _train(lambda: ranker(**ranker.encode(CandidateLists(queries, passages))), ranker.parameters())


def plain() -> None:
    """The same ranker as one writes it down."""
    import torch
    from torch import nn

    from evenrank.rankers.tk import sinusoids

    matrix = torch.from_numpy(np.random.default_rng(1).standard_normal((WORDS, SIZE), dtype=np.float32))
    embeddings = nn.Embedding.from_pretrained(matrix, freeze=False)
    layer = nn.TransformerEncoderLayer(SIZE, 10, 100, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    gate, head = nn.Parameter(torch.tensor(0.5)), nn.Linear(11, 1, bias=False)
    places = sinusoids(0, 500 + PASSAGE, SIZE)
    centres = torch.tensor([1.0, 0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9])
    queries, passages = _groups()

    def vectors(texts: list[str], start: int) -> torch.Tensor:
        ids = torch.tensor([[int(word[1:]) for word in text.split()] for text in texts])
        embedded = embeddings(ids)
        mixed = encoder(embedded + places[start : start + ids.shape[1]])
        return nn.functional.normalize(gate * embedded + (1 - gate) * mixed, dim=-1)

    def forward() -> torch.Tensor:
        query = vectors(queries, 0).repeat_interleave(PASSAGES, 0)
        passage = vectors([text for row in passages for text in row], 500)
        cosines = query @ passage.transpose(1, 2)
        kernels = torch.exp(-((cosines[..., None] - centres) ** 2) / (2 * 0.1**2)).sum(2)
        pooled = torch.log2(kernels.clamp(min=1e-10)).sum(1)
        return head(pooled)[:, 0].view(BATCH, PASSAGES)

    parameters = [*embeddings.parameters(), *encoder.parameters(), gate, *head.parameters()]
    _train(forward, parameters)


def rows(_: Path) -> list[Row]:
    """The table's line."""
    ours, theirs = (float(run(f"tk_training.{side}").said) for side in ("ours", "plain"))
    what = f"training `tk` ({BATCH} × {PASSAGES} passages of {PASSAGE} words), against `torch.nn.TransformerEncoder`"
    return [Row(what, ours, "steps/s", theirs)]
