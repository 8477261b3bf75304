"""Small encoders with random weights, which the studies make for the built-in collection."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from evenrank.files import tokenize
from evenrank.models import saving, seeded

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True, slots=True)
class SmallBert:
    """Sizes of a BERT that learns in seconds on a CPU. Every distinct word has its own random vector, so the mean of a
    text's vectors distinguishes texts by their words even before training."""

    layers: int = 1
    hidden: int = 64
    heads: int = 2
    feed_forward: int = 64
    length: int = 128


def make_encoder(texts: Iterable[str], folder: Path, size: SmallBert, seed: int) -> Path:
    """Writes a BERT with random weights and its tokenizer (one token per word of ``texts``); returns the folder.

    Position vectors start at 0, so that positions do not blur the words of a hardly trained model.
    The same texts, size and seed give the same bytes.
    """
    if (folder / "made.json").is_file():
        return folder
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    counts = Counter(word for text in texts for word in tokenize(text))
    words = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    vocabulary = list(dict.fromkeys([*_SPECIAL, *".,?!'", *words]))
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=size.feed_forward,
        max_position_embeddings=size.length,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with seeded(seed):
        model = BertModel(config, add_pooling_layer=False)
    with torch.no_grad():
        model.embeddings.position_embeddings.weight.zero_()
    tokenizer = BertTokenizer(
        vocab={word: number for number, word in enumerate(vocabulary)}, do_lower_case=True, model_max_length=size.length
    )
    with saving(folder) as part:
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
        (Path(part) / "made.json").write_text(json.dumps({"seed": seed, "words": len(words)}), encoding="utf-8")
    return folder
