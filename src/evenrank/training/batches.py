"""What the trainer is fed: the order of the lists, and batches as tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from evenrank.rankers.protocol import Inputs, Ranker

from .lists import ListDataset, TrainingList, collate

_OURS = ("relevance", "sides", "index", "counted")


class Collator:
    """Items → the ranker's tensors, with ``relevance`` [B, K], ``sides`` [A, B, K] and the ``index`` of each item [B].

    ``counted`` [B, K] bool: the passages that enter the loss; those of items that only pad a batch do not. With an
    adversary ``gendered`` [pairs], −1 for what its loss leaves out.
    """

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker

    def __call__(self, items: Sequence[TrainingList]) -> Inputs:
        lists = collate(items)
        assert lists.relevance is not None
        inputs = {**self.ranker.encode(lists), "relevance": lists.relevance}
        if lists.sides is not None:
            inputs["sides"] = lists.sides
        index = torch.tensor([item.index for item in items])
        counted = lists.mask & (index >= 0)[:, None]
        if "gendered" in inputs:
            inputs["gendered"] = inputs["gendered"].to(torch.int8).masked_fill(~counted[lists.mask], -1)
        return {**inputs, "index": index, "counted": counted}


def ranker_inputs(inputs: Mapping[str, Tensor]) -> Inputs:
    """The part of a batch that the ranker reads."""
    return {name: value for name, value in inputs.items() if name not in _OURS}


class EpochSampler(torch.utils.data.Sampler[int]):
    """A new order of the items each epoch, from seed and epoch alone: the same for any number of processes.

    Passes the epoch on to the data set, whose negatives depend on it. The number of items is padded to a multiple of
    ``multiple`` with items −1 − i, so that several processes have equally many and none counts twice.
    """

    def __init__(self, lists: ListDataset, seed: int, multiple: int = 1) -> None:
        self.lists = lists
        self.seed = seed
        self.multiple = multiple
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Called by the trainer when an epoch starts."""
        self.epoch = epoch
        self.lists.set_epoch(epoch)

    def __len__(self) -> int:
        return -(-len(self.lists) // self.multiple) * self.multiple

    def __iter__(self) -> Iterator[int]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(len(self.lists))
        return iter([*order.tolist(), *(-1 - np.resize(order, len(self) - len(order))).tolist()])
