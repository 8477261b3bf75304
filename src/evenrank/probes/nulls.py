"""Rankers that can prefer nothing, or nothing that they have learned: what a probe shows of them is its noise."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from evenrank.engines.hashing import GOLDEN, MASK, fnv, mix, mix_array
from evenrank.rankers.scorers import RankerScorer, Scorer

from .effects import Floats

if TYPE_CHECKING:
    from torch import nn

Model = TypeVar("Model", bound="nn.Module")
RANDOM_WEIGHTS, BLIND = "random weights", "blind to passages"
"""What the two rankers are called."""


def randomised(scorer: Scorer, seed: int) -> Scorer | None:
    """A scorer of a copy of the same model with random weights; None for what has none here: functions, endpoints,
    word statistics, models that another engine than PyTorch computes.

    Every weight is drawn anew as the architecture draws it before training: transformers' models from their
    configuration, other layers by their own rule (word vectors, pre-trained ones too, are normal). Numbers that no
    layer owns, such as a weight per word, are shuffled among themselves. What is not random: the tokeniser and its
    vocabulary, pooling, prompts, the kernels' centres, and a lone number (TK's gate). Such a ranker still sees which
    words two texts share, so it is no null of word overlap.

    The same seed gives the same weights, on any device; the given scorer and PyTorch's random state stay as they are.
    The copy needs the model's memory once more.
    """
    from evenrank.rankers.encoder_scorers import EncoderScorer

    if isinstance(scorer, EncoderScorer):
        if scorer.backend != "torch":
            return None
        found: Scorer = copy.copy(scorer)
        assert isinstance(found, EncoderScorer)
        found.model = _with_random_weights(scorer.model, seed)
        if found.truncated is not None:
            found.truncated -= found.truncated
    elif isinstance(scorer, RankerScorer):
        found = copy.copy(scorer)
        assert isinstance(found, RankerScorer)
        found.ranker = _with_random_weights(scorer.ranker, seed)
    else:
        return None
    found.name, found.digest = f"{scorer.name}, random weights", None
    return found


def _with_random_weights(model: Model, seed: int) -> Model:
    from evenrank.rankers.encoders import seeded

    device = next((one.device for one in model.parameters()), None)
    # On the CPU, whose random numbers are the same everywhere.
    found = copy.deepcopy(model).cpu()
    with seeded(seed):
        _draw(found)
    return found if device is None else found.to(device)


def _draw(module: nn.Module) -> None:
    """New weights for a module and all inside."""
    import torch
    from transformers import PreTrainedModel

    if isinstance(module, PreTrainedModel):
        fresh = dict(type(module)(copy.deepcopy(module.config)).named_parameters())
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(fresh[name])
        return
    reset = getattr(module, "reset_parameters", None)
    if callable(reset):
        reset()
    else:
        with torch.no_grad():
            for parameter in module.parameters(recurse=False):
                parameter.copy_(parameter.flatten()[torch.randperm(parameter.numel())].view_as(parameter))
    for child in module.children():
        _draw(child)


def blind_scores(query_ids: Sequence[str], doc_ids: Sequence[str], seed: int = 0) -> Floats:
    """Scores [N] from 0 to 1 that depend on a pair's ids alone, not on a word of the passage.

    Any probe's effect on them is exactly 0: anything else would have leaked from ids or from order.

    >>> first, again, other = blind_scores(["q1", "q1", "q1"], ["d1", "d1", "d2"])
    >>> bool(first == again), bool(first == other)
    (True, False)
    """
    start = mix(seed & MASK)
    sides = [_hashes(query_ids, start), _hashes(doc_ids, mix(start ^ GOLDEN))]
    mixed = mix_array(mix_array(sides[0]) + sides[1])
    scores: Floats = (mixed >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return scores


def _hashes(ids: Sequence[str], start: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    known = {one: fnv(one.encode(errors="surrogatepass"), start) for one in set(ids)}
    return np.array([known[one] for one in ids], np.uint64)
