"""Sides of a dataset's passages, for the losses."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from evenrank.groups import GroupTable, as_labels, check_labels
from evenrank.io import EvenrankError
from evenrank.io.errors import quoted
from evenrank.io.wording import counted
from evenrank.mitigation.attributes import Attributes, attributes_of, rows_of, sides_by

_LABEL_COLUMNS = ("label", "labels", "score", "scores", "dataset_name")


def with_group_labels(
    dataset: Any,
    lexicon: Attributes | None = None,
    *,
    labels: object = None,
    id_columns: Sequence[str] = (),
) -> Any:
    """A dataset (query, positive, negative_1 … negative_n) with the column ``label`` that :class:`IBBRLoss` reads.

    ``label`` [K] has for each passage, the positive first, +1 for the first pole, −1 for the second, 0 for neither
    [IBBR §2.2]; [A, K] if ``lexicon`` (default: gender-en) names A attributes. ``dataset``: a Dataset, an
    IterableDataset whose columns are known, or a DatasetDict of either.

    ``labels``: the groups of documents instead of their words, as :func:`evenrank.as_labels` takes them (for several
    attributes, ``lexicon`` may name group tables of labels). They are by document, so the dataset needs columns with
    the passages' ids: ``id_columns`` names one for each passage, the positive's first (``["positive_id",
    "negative_1_id"]``); they are not in the result, whose columns are all read as texts. A passage without a label has
    side 0, as one of neither group; a warning says how many of a Dataset's passages these are.

    Raises EvenrankError for fewer than three text columns, a label that is there already, labels without the columns of
    ids, labels beside a lexicon, and labels that know none of the passages.
    """
    if isinstance(dataset, dict):
        return type(dataset)(
            {
                name: with_group_labels(part, lexicon, labels=labels, id_columns=id_columns)
                for name, part in dataset.items()
            }
        )
    check_labels(labels, None, None, lexicon=lexicon)
    given = lexicon if labels is None else as_labels(labels)
    attributes = attributes_of("gender-en" if given is None else given)
    names = list(dataset.column_names or ())
    taken = [name for name in names if name in _LABEL_COLUMNS]
    if taken:
        raise EvenrankError(f"the dataset has a column {taken[0]}, which would be taken for the group labels")
    columns = [name for name in names if name not in id_columns]
    if len(columns) < 3:
        raise EvenrankError(f"expected the columns query, positive and negatives, found {', '.join(columns) or 'none'}")
    by_label = [one for one in attributes.values() if isinstance(one, GroupTable)]
    if by_label:
        _check_ids(names, columns, id_columns)
    if by_label and hasattr(dataset, "num_rows"):  # no stream
        every = [str(one) for name in id_columns for one in dataset[name]]
        for one in by_label:
            _warn_of_unknown(pl.Series("doc_id", every, dtype=pl.String).unique(maintain_order=True), one)

    def label(batch: Mapping[str, list[str]]) -> dict[str, object]:
        texts = [text for name in columns[1:] for text in batch[name]]
        ids = [str(one) for name in id_columns for one in batch[name]] if by_label else [""] * len(texts)
        passages = pl.DataFrame({"doc_id": ids, "text": texts}, {"doc_id": pl.String, "text": pl.String})
        found = [sides_by(one, passages, partly=True) for one in attributes.values()]
        sides = [one.reshape(len(columns) - 1, -1).T for one in found]
        table = np.stack(sides, axis=1) if isinstance(lexicon, Mapping) else sides[0]
        return {"label": table.tolist()}

    return dataset.map(label, batched=True, remove_columns=list(id_columns) or None)


def _check_ids(names: list[str], columns: list[str], id_columns: Sequence[str]) -> None:
    """Raises EvenrankError unless each passage's column has one with its ids."""
    absent = next((name for name in id_columns if name not in names), None)
    if absent is not None:
        raise EvenrankError(f"`id_columns`: the dataset has no column {quoted(absent)} (it has {', '.join(names)})")
    if len(id_columns) != len(columns) - 1:
        wanted = f"expected {len(columns) - 1} columns with the ids of {', '.join(columns[1:])}"
        raise EvenrankError(f"`id_columns`: labels are by document: {wanted}, found {len(id_columns)}")


def _warn_of_unknown(ids: pl.Series, labels: GroupTable) -> None:
    """Warns of passages that have no label. Raises EvenrankError if none has one."""
    known = int((rows_of(labels, ids) >= 0).sum())
    if known < len(ids):
        of = f"{known:,} of {counted(len(ids), 'passage')}"
        warnings.warn(f"{labels.source} know {of}: the others are on no side", stacklevel=3)
