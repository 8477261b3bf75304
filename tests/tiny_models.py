"""Checkpoints with random weights, small enough to make in a test."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

WORDS = ["she", "is", "a", "doctor", "the", "nurse", "runs", "home", "early", "he", "wrote", "software", "by", "night"]


def tiny_bert(folder: Path, *, head: bool = False, hidden: int = 32, layers: int = 3, seed: int = 0) -> Path:
    """A BERT in the form of google/bert_uncased_L-2_H-128_A-2: config.json, vocab.txt, model.safetensors.

    ``head``: as ``BertForSequenceClassification`` with one output. Its scores differ by far more than rounding does.
    """
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", "##ing", "query", "passage", ":", "."]
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * hidden,
        max_position_embeddings=64,
        initializer_range=0.4,
        num_labels=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = (BertForSequenceClassification if head else BertModel)(config)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    if not head:  # as older folders are
        saved = json.loads((folder / "config.json").read_text())
        for name in ("architectures", "transformers_version", "dtype"):
            saved.pop(name, None)
        (folder / "config.json").write_text(json.dumps(saved))
    return folder


def texts(count: int, longest: int, seed: int = 0) -> list[str]:
    """Texts of 1 to ``longest`` words."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size)) for size in rng.integers(1, longest + 1, count)]


def without(folder: str | Path, copy: Path, weights: str) -> Path:
    """A copy of a model's folder that lacks the weights with ``weights`` in their names."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(folder, copy)
    files = [file for file in copy.rglob("*.safetensors") if any(weights in name for name in load_file(file))]
    assert files
    for file in files:
        kept = {name: value for name, value in load_file(file).items() if weights not in name}
        save_file(kept, file, {"format": "pt"})
    return copy
