"""Small rankers of every kind, by the name under which the contract suite tests them."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tiny_models import WORDS, tiny_bert

if TYPE_CHECKING:
    from evenrank.models.protocol import Ranker
    from evenrank.search import Vectors


@dataclass(frozen=True)
class Case:
    """A ranker that the contract suite tests, whose vocabulary has ``tiny_models.WORDS``.

    ``make``: seed → a new one. ``passage_words``: of a passage, how many words it keeps beside a query of two words.
    """

    make: Callable[[int], Ranker]
    passage_words: int


def vectors(dimensions: int = 12, seed: int = 0) -> Vectors:
    """Random vectors of the suite's words."""
    from evenrank.search import Vectors

    matrix = np.random.default_rng(seed).standard_normal((len(WORDS), dimensions)).astype(np.float32)
    return Vectors(tuple(WORDS), matrix)


def tk(seed: int = 0) -> Ranker:
    """16 heads of 32 do not divide 300 either."""
    from evenrank.models.word_rankers import TKConfig, TKRanker

    config = TKConfig(query_length=6, passage_length=20, heads=3, head_size=8, feedforward=10)
    return TKRanker.from_vectors(vectors(), config, seed)


def tk_even(seed: int = 0) -> Ranker:
    """Another set of kernels, one layer, the usual lengths."""
    from evenrank.models.word_rankers import TKRanker

    settings = {"layers": 1, "heads": 2, "head_size": 4, "feedforward": 5, "kernels": "even"}
    return TKRanker.from_vectors(vectors(), settings, seed)


def knrm(seed: int = 0) -> Ranker:
    from evenrank.models.word_rankers import KNRMRanker, WordConfig

    return KNRMRanker.from_vectors(vectors(), WordConfig(query_length=6, passage_length=20), seed)


def conv_knrm(seed: int = 0) -> Ranker:
    from evenrank.models.word_rankers import ConvKNRMConfig, ConvKNRMRanker

    return ConvKNRMRanker.from_vectors(vectors(), ConvKNRMConfig(6, 20, filters=9), seed)


def match_pyramid(seed: int = 0) -> Ranker:
    """The published size: the pooling sizes belong to it."""
    from evenrank.models.word_rankers import MatchPyramidRanker

    return MatchPyramidRanker.from_vectors(vectors(), None, seed)


@functools.cache
def _checkpoint(head: bool, seed: int = 0) -> str:
    """A tiny checkpoint, kept for the length of the tests."""
    folder = Path(tempfile.mkdtemp(prefix="evenrank-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(tiny_bert(folder, head=head, seed=seed))


def cat(seed: int = 0) -> Ranker:
    """[CLS], a query of two words, [SEP], twenty words, [SEP]."""
    from evenrank.models.encoders import CatRanker

    return CatRanker.from_pretrained(_checkpoint(False), layers=2, max_length=25, seed=seed)


def dot(seed: int = 0) -> Ranker:
    """One encoder for both, projected."""
    from evenrank.models.encoders import DotRanker

    return DotRanker.from_pretrained(_checkpoint(False), projection=8, query_length=8, passage_length=22, seed=seed)


def dot_towers(seed: int = 0) -> Ranker:
    """Two encoders, the mean over the tokens, the cosine."""
    from evenrank.models.encoders import DotRanker

    return DotRanker.from_pretrained(
        _checkpoint(False),
        shared=False,
        pooling="mean",
        projection=8,
        similarity="cosine",
        query_length=8,
        passage_length=22,
        seed=seed,
    )


def dot_map(seed: int = 0) -> Ranker:
    """A map for each side, which is the identity whatever the seed: that is of the encoder's own weights."""
    from evenrank.models.encoders import DotRanker

    return DotRanker.from_pretrained(
        _checkpoint(False, seed), map=True, similarity="cosine", query_length=8, passage_length=22
    )


def dot_frozen(seed: int = 0) -> Ranker:
    """The same behind a frozen encoder, whose vectors are kept."""
    from evenrank.models.encoders import DotRanker

    return DotRanker.from_pretrained(
        _checkpoint(False, seed), map=True, freeze="encoder", query_length=8, passage_length=22
    )


@functools.cache
def predictor(seed: int = 0) -> str:
    """A tiny checkpoint that predicts words, as SPLADE does."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    folder = Path(tempfile.mkdtemp(prefix="evenrank-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    tiny_bert(folder, seed=seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # Scores near 1, as the tolerances of the suite expect.
        BertForMaskedLM(BertConfig.from_pretrained(folder, initializer_range=0.15)).save_pretrained(folder)
    return str(folder)


def sparse(seed: int = 0) -> Ranker:
    """SPLADE, whose query side stays as it is."""
    from evenrank.models.sparse import SparseRanker

    return SparseRanker.from_pretrained(predictor(seed), query_length=8, passage_length=22)


CASES: dict[str, Case] = {
    "tk": Case(tk, 20),
    "tk-even": Case(tk_even, 200),
    "knrm": Case(knrm, 20),
    "conv-knrm": Case(conv_knrm, 20),
    "match-pyramid": Case(match_pyramid, 200),
    "cat": Case(cat, 20),
    "dot": Case(dot, 20),
    "dot-towers": Case(dot_towers, 20),
    "dot-map": Case(dot_map, 20),
    "dot-frozen": Case(dot_frozen, 20),
    "sparse": Case(sparse, 20),
}
