"""What in-batch balancing regularization adds to a training step: 150 queries with 200 passages, a dot ranker.

Passages are short (a tenth of the published length), which makes the step cheap and the term's share of it large.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from .measure import Row

B, K, LENGTH, ROUNDS = 150, 200, 8, 3


def rows(folder: Path) -> list[Row]:
    """Median processor seconds over rounds of a step with the term, against a step without, in turn."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    shape = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512}
    encoder = BertModel(BertConfig(vocab_size=2_000, **shape))
    inputs = torch.randint(5, 2_000, (B * (K + 1), LENGTH))
    labels = torch.zeros(B, K)
    labels[:, 0] = 1
    groups = torch.randint(-1, 2, (B, K), dtype=torch.int8)
    mask = torch.ones(B, K, dtype=torch.bool)
    sides: dict[str, Any] = {"none": None}
    from evenrank.mitigation.ibbr import IBBR

    sides |= {"ibbr-pd": IBBR("ibbr-pd"), "ibbr-ts": IBBR("ibbr-ts")}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, term in sides.items():
            start = time.process_time()
            _step(encoder, inputs, labels, groups, mask, term)
            seconds[name].append(time.process_time() - start)
    plain = statistics.median(seconds["none"])
    return [
        Row(
            f"a step with {name}, {B} x {K} passages of {LENGTH} tokens, dot; without the term",
            f"{statistics.median(seconds[name]):.2f} s",
            f"{plain:.2f} s",
            f"{statistics.median(seconds[name]) / plain:.3f} x",
            "<= 1.03 x",
        )
        for name in ("ibbr-pd", "ibbr-ts")
    ]


def _step(encoder: Any, inputs: Any, labels: Any, groups: Any, mask: Any, term: Any) -> None:
    import torch

    from evenrank.training.losses import nll

    encoder.zero_grad()
    # Chunks bound the memory of what the backward pass needs.
    vectors = torch.cat([encoder(part).last_hidden_state[:, 0] for part in inputs.split(4_096)])
    scores = (vectors[:B, None] * vectors[B:].view(B, K, -1)).sum(2)
    loss = nll(scores, labels, mask)
    if term is not None:
        loss = loss + 0.1 * term(scores, labels, groups, mask)
    loss.backward()
