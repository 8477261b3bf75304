"""Sides of a dataset's passages, for the losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evenrank.groups import sides_of_texts
from evenrank.io import EvenrankError
from evenrank.mitigation.attributes import Attributes, scorings_of

_LABEL_COLUMNS = ("label", "labels", "score", "scores", "dataset_name")


def with_group_labels(dataset: Any, lexicon: Attributes = "gender-en") -> Any:
    """A dataset (query, positive, negative_1 … negative_n) with the column ``label`` that :class:`IBBRLoss` reads.

    ``label`` [K] has for each passage, the positive first, +1 for the lexicon's first pole, −1 for its second, 0 for
    neither [IBBR §2.2]; [A, K] if ``lexicon`` names A attributes. ``dataset``: a Dataset, an IterableDataset whose
    columns are known, or a DatasetDict of either. Raises EvenrankError for fewer than three text columns, and if there
    is a label already.
    """
    if isinstance(dataset, dict):
        return type(dataset)({name: with_group_labels(part, lexicon) for name, part in dataset.items()})
    columns = list(dataset.column_names or ())
    taken = [name for name in columns if name in _LABEL_COLUMNS]
    if taken:
        raise EvenrankError(f"the dataset has a column {taken[0]}, which would be taken for the group labels")
    if len(columns) < 3:
        raise EvenrankError(f"expected the columns query, positive and negatives, found {', '.join(columns) or 'none'}")
    scorings = scorings_of(lexicon)

    def label(batch: Mapping[str, list[str]]) -> dict[str, object]:
        texts = [text for name in columns[1:] for text in batch[name]]
        sides = [sides_of_texts(texts, one).reshape(len(columns) - 1, -1).T for one in scorings.values()]
        table = np.stack(sides, axis=1) if isinstance(lexicon, Mapping) else sides[0]
        return {"label": table.tolist()}

    return dataset.map(label, batched=True)
