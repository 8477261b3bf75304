"""Small encoders that the studies make: with random weights, and distilled from a larger one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from evenrank.files import scan_collection
from evenrank.files.tokens import tokenize
from evenrank.models.encoders import saving, seeded
from evenrank.training.recipes import load_recipe

from .sources import counsel_chat, grepbiasir, write_queries

if TYPE_CHECKING:
    from .study import Study

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


def distilled(study: Study[Any], student: str, teacher: str, training: Mapping[str, object]) -> str:
    """The folder of the encoder ``student`` after it has learned the vectors of ``teacher`` from the passages and the
    questions of counsel-chat and Grep-BiasIR, without labels; ``training``: [training] over that of the recipe distil.
    """
    options, folder = study.settings.options, study.folder
    passages, questions = (folder / name for name in ("passages.tsv", "questions.tsv"))
    if not questions.is_file():
        texts = counsel_chat(options, folder / "counsel-chat"), grepbiasir(options, folder / "grepbiasir")
        found = [batch.select("text") for text in texts for batch in scan_collection(text.collection)]
        write_queries(passages, pl.concat(found).with_row_index("query_id"))
        asked = pl.concat([text.queries.select("text") for text in texts]).unique(maintain_order=True)
        write_queries(questions, asked.with_row_index("query_id"))
    recipe = load_recipe("distil").model_dump(exclude_none=True)
    return study.trained_in(
        folder / "distilled",
        {
            "teacher": {**recipe["teacher"], "model": teacher, "kept": str(folder / "vectors")},
            "ranker": {**recipe["ranker"], "model": student},
            "data": {"collection": str(passages), "queries": str(questions)},
            "training": {**recipe["training"], **training},
        },
    )
