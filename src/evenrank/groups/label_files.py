"""Labels as a score file, and labels beside the options that say how words are counted."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

import polars as pl

from evenrank.engines.streams import TableWriter
from evenrank.io.atomic import atomic_path
from evenrank.io.errors import EvenrankError
from evenrank.io.outputs import check_outputs
from evenrank.io.texts import as_batches

from .labels import as_labels
from .table_files import METADATA_KEY


def check_labels(labels: object, neutral: Sequence[str] | None, group_column: str | None, **others: object) -> None:
    """Raises EvenrankError for labels together with one of ``others`` (``lexicon``, ``tokens``, …), which is not None,
    and for settings of labels without any."""
    if labels is None:
        for name, value in {"neutral": neutral, "group_column": group_column}.items():
            if value:
                raise EvenrankError(f"`{name}` says how labels are read: it needs `labels`")
        return
    given = next((name for name, value in others.items() if value is not None), None)
    if given is not None:
        raise EvenrankError(f"`labels` or `{given}`: groups are from labels or from words, not from both")


def score_labels(
    labels: object,
    out: str | os.PathLike[str],
    *,
    collection: object = None,
    neutral: Sequence[str] = (),
    group_column: str | None = None,
    poles: str | None = None,
    words: Mapping[str, object] | None = None,
) -> tuple[int, int]:
    """Writes labels (see :func:`as_labels`) as a score file; returns how many documents it has, of how many.

    With a ``collection``, only its documents are kept, and those without a label are not in the file: they stay
    unknown. :func:`read_group_table` reads the same group table again. The file appears whole or not at all; the same
    labels make the same bytes.

    Raises EvenrankError for labels that cannot be used, or that know no document of the collection, and for labels
    beside settings of how ``words`` are counted (``{"lexicon": …}``; None: not given).
    """
    check_labels(labels, neutral, group_column, **(words or {}))
    check_outputs([out], [labels, collection])
    ids = None if collection is None else [_ids_of(batch) for batch in as_batches(collection)]
    found = as_labels(labels, ids, neutral=neutral, group_column=group_column, poles=poles)
    metadata = {METADATA_KEY: json.dumps(found.settings).encode()}
    with atomic_path(out) as part, TableWriter(part, "parquet", metadata=metadata) as writer:
        writer.write(found.table)
    return writer.rows, writer.rows if ids is None else sum(map(len, ids))


def _ids_of(batch: pl.DataFrame) -> pl.Series:
    # A copy: a long id may keep the text beside it in memory.
    return pl.Series("doc_id", batch["doc_id"].to_arrow(compat_level=pl.CompatLevel.oldest()))
