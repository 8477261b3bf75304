"""Contextual vectors of the words of texts: those of tk, and the last hidden states of any transformer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from evenrank import options as opt
from evenrank.files import EvenrankError
from evenrank.files.tokens import tokenize

from .encoders import positions, start_encoder
from .load import ModelFolder, chosen_device, find_folder, load_kernel_ranker, read_object
from .protocol import config_file
from .vocabulary import padded
from .word_rankers import PASSAGE_START, TKRanker

if TYPE_CHECKING:
    from transformers import BatchEncoding

Words = tuple[list[str], NDArray[np.float32]]
Encode = Callable[[list[str]], list[Words]]
"""Texts → for each its words and their vectors [words, d]."""


@dataclass(frozen=True, slots=True)
class WordEncoder:
    """Computes a model's contextual word vectors; ``what`` describes them."""

    encode: Encode
    what: str


def word_encoder(model: str, *, device: str | None = None, max_words: int = 200) -> WordEncoder:
    """The word encoder of a model: a folder, or a name on the hub.

    tk: its gated vectors [POS eq. 4]. Any transformer (a plain encoder, a cross-encoder, or a bi-encoder's passage
    encoder): the last hidden states of the passage alone, averaged over the word pieces of each word. Words are split
    at white space and punctuation, and lower-cased; at most ``max_words`` per passage. Raises EvenrankError for a
    ranker without contextual vectors.
    """
    path = find_folder(model)
    if config_file(path).is_file():
        ranker = load_kernel_ranker(ModelFolder(path.name, path, "kernel"), device)
        if not isinstance(ranker, TKRanker):
            raise EvenrankError(f"{model}: a {ranker.kind} ranker has no contextual vectors of words")
        return WordEncoder(_of_tk(ranker, max_words), "gated vectors of tk")
    return WordEncoder(_of_transformer(path, device, max_words), "last hidden states, word pieces averaged")


def _of_tk(ranker: TKRanker, max_words: int) -> Encode:
    limit = min(max_words, ranker.settings.passage_length)

    @torch.inference_mode()
    def encode(texts: list[str]) -> list[Words]:
        numbers = [ranker.vocabulary.numbers(text)[:limit] for text in texts]
        device = ranker.embeddings.weight.device
        ids = padded(numbers).to(device)
        vectors = ranker.contextualise(ids, ids > 0, PASSAGE_START).float().cpu().numpy()
        return [
            (tokenize(text)[: len(row)], vectors[i, : len(row)])
            for i, (text, row) in enumerate(zip(texts, numbers, strict=True))
        ]

    return encode


def _of_transformer(path: Path, device: str | None, max_words: int) -> Encode:
    folder = _encoder_folder(path)
    encoder = start_encoder(str(folder), "feature-extraction", None, opt.LARGEST)
    tokenizer = encoder.tokenizer
    if not tokenizer.is_fast:
        raise EvenrankError(f"{folder}: its tokeniser does not show which pieces make up a word")
    device = chosen_device(device)
    model = encoder.model.to(device).eval()
    longest = min(tokenizer.model_max_length, positions(encoder))

    @torch.inference_mode()
    def encode(texts: list[str]) -> list[Words]:
        batch = tokenizer(texts, truncation=True, max_length=longest, padding=True, return_tensors="pt")
        inputs = {name: value.to(device) for name, value in batch.items()}
        hidden = model(**inputs).last_hidden_state.float()
        return [_averaged(text, batch, i, hidden[i], max_words) for i, text in enumerate(texts)]

    return encode


def _encoder_folder(root: Path) -> Path:
    """The folder of a model's transformer; of a bi-encoder with two towers, that of the passages."""
    router = root / "router_config.json"
    if router.is_file():
        structure = read_object(router).get("structure", {})
        if isinstance(structure, dict):
            modules = next((structure[name] for name in ("document", "passage") if name in structure), None)
            if modules:
                return root / str(modules[0])
    if (root / "config.json").is_file():
        return root
    return next((file.parent for file in sorted(root.rglob("config.json"))), root)


def _averaged(text: str, batch: BatchEncoding, number: int, hidden: torch.Tensor, max_words: int) -> Words:
    """The words of a text that have a letter or a digit, each with the mean of its pieces' vectors."""
    pieces = batch.word_ids(number)
    pieces_of: dict[int, list[int]] = {}
    for piece, word in enumerate(pieces):
        if word is not None:
            pieces_of.setdefault(word, []).append(piece)
    names: list[str] = []
    rows: list[int] = []
    owner: list[int] = []
    for word, own in pieces_of.items():
        span = batch.word_to_chars(number, word)
        name = text[span.start : span.end].strip().lower()
        if not any(character.isalnum() for character in name):
            continue
        if len(names) == max_words:
            break
        owner += [len(names)] * len(own)
        rows += own
        names.append(name)
    if not names:
        return [], np.empty((0, hidden.shape[1]), np.float32)
    sums = torch.zeros(len(names), hidden.shape[1], device=hidden.device)
    index = torch.tensor(owner, device=hidden.device)
    sums.index_add_(0, index, hidden[rows])
    means = sums / torch.bincount(index)[:, None]
    return names, means.cpu().numpy()


def sample_passages(batches: Iterable[pl.DataFrame], count: int, seed: int = 0) -> pl.DataFrame:
    """A random sample of ``count`` documents, which depends on the ids and the seed but not on the order.

    Keeps ``count`` documents and a batch in memory.
    """
    sample: pl.DataFrame | None = None
    for batch in batches:
        batch = batch.with_columns((pl.col("doc_id").hash(seed)).alias("draw"))
        sample = batch if sample is None else pl.concat([sample, batch])
        sample = sample.sort("draw", "doc_id").head(count)
    if sample is None or not sample.height:
        raise EvenrankError("the collection has no document")
    return sample.sort("doc_id").select("doc_id", "text")


def word_vectors(
    encode: Encode, texts: list[str], size: int, advance: Callable[[int], None]
) -> Iterator[tuple[int, Words]]:
    """The number of each text with its words and their vectors; texts of similar length are encoded together."""
    order = sorted(range(len(texts)), key=lambda i: (len(texts[i]), i))
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        yield from zip(rows, encode([texts[i] for i in rows]), strict=True)
        advance(len(rows))
