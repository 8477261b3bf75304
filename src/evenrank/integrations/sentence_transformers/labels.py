"""Group labels of a dataset's passages, for the losses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from evenrank.groups import Lexicon, Scoring, label_texts, load_lexicon
from evenrank.io import EvenrankError

OneLexicon = str | os.PathLike[str] | Lexicon | Scoring
Attributes = OneLexicon | Mapping[str, OneLexicon]
"""One lexicon (a built-in name, a file, a Lexicon or a Scoring), or one for each of several named attributes."""

_LABEL_COLUMNS = ("label", "labels", "score", "scores", "dataset_name")


def scorings_of(lexicon: Attributes) -> dict[str, Scoring]:
    """How each attribute's texts are labelled, by its name; the name of one alone is empty."""
    named = lexicon if isinstance(lexicon, Mapping) else {"": lexicon}
    found = {}
    for name, one in named.items():
        if not isinstance(one, Scoring):
            one = Scoring(one if isinstance(one, Lexicon) else load_lexicon(one), magnitudes=("tf_words",))
        if one.lexicon.poles is None:
            groups = ", ".join(one.lexicon.groups)
            raise EvenrankError(
                f"the lexicon {one.lexicon.name} has the groups {groups}: load_lexicon(…, poles='a,b') says which two"
                " to balance"
            )
        found[name] = Scoring(one.lexicon, one.tokens, ("tf_words",), one.threshold)
    if not found:
        raise EvenrankError("lexicon: expected at least one attribute")
    return found


def with_group_labels(dataset: Any, lexicon: Attributes = "gender-en") -> Any:
    """A dataset (query, positive, negative_1 … negative_n) with the column ``label`` that :class:`IBBRLoss` reads.

    ``label`` [K] holds for each passage, the positive first, +1 for the lexicon's first pole, −1 for its second, 0 for
    neither [IBBR §2.2]; [A, K] where ``lexicon`` names A attributes. ``dataset``: a Dataset, an IterableDataset whose
    columns are known, or a DatasetDict of either. Raises EvenrankError for fewer than three text columns, and where
    there is a label already.
    """
    if isinstance(dataset, Mapping):
        kind: Any = type(dataset)
        return kind({name: with_group_labels(part, lexicon) for name, part in dataset.items()})
    columns = list(dataset.column_names or ())
    taken = [name for name in columns if name in _LABEL_COLUMNS]
    if taken:
        raise EvenrankError(f"the dataset has a column {taken[0]}, which would be taken for the group labels")
    if len(columns) < 3:
        raise EvenrankError(f"expected the columns query, positive and negatives, found {', '.join(columns) or 'none'}")
    scorings = scorings_of(lexicon)

    def label(batch: Mapping[str, list[str]]) -> dict[str, list[Any]]:
        texts = [text for name in columns[1:] for text in batch[name]]
        labels = [label_texts(texts, one).reshape(len(columns) - 1, -1).T for one in scorings.values()]
        table = np.stack(labels, axis=1) if isinstance(lexicon, Mapping) else labels[0]
        return {"label": table.tolist()}

    return dataset.map(label, batched=True)
