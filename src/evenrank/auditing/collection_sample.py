"""The documents of a whole collection, or a sample of them: what a pipeline's candidates are chosen from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

import polars as pl

from evenrank.groups import GroupTable, as_group_table, read_group_table, score_in_memory
from evenrank.groups.chances import chances
from evenrank.groups.table_files import scan_ids
from evenrank.io import as_batches
from evenrank.io.convert import is_path
from evenrank.io.tables import IdIndex
from evenrank.io.wording import counted
from evenrank.measures import is_bias, is_linear

from .documents import Documents
from .inputs import Inputs

MOST_DOCUMENTS = 100_000
_STREAM = 4
_UNKNOWN = "Stages: what the collection holds is not known"


def sample_collection(
    inputs: Inputs, documents: Documents, scores: object, seed: int
) -> tuple[GroupTable | None, list[str]]:
    """The scored documents of the collection, all of them or 100,000 drawn by seed, and a note on what they are.

    ``scores``: a group table in any form, which is of the collection if it has more documents than the runs; without
    one the collection's texts, read a second time for this, are scored as those of the runs were. None where the
    collection is not known, and where no measure is a weighted sum over ranks: others have no figure of it.
    """
    groups = documents.groups
    if groups is None or not any(is_bias(measure) and is_linear(measure) for measure in inputs.measures):
        return None, []
    if groups.labelled:
        return None, [f"{_UNKNOWN}: documents with a label are no sample of it."]
    if scores is None:
        assert inputs.collection is not None
        assert documents.scoring is not None
        texts, total = smallest(as_batches(inputs.collection), MOST_DOCUMENTS, seed)
        return score_in_memory(texts, documents.scoring), [_note(texts.height, total, "the collection")]
    table, total = _of_scores(scores, seed)
    if bool(IdIndex([run.table["doc_id"] for run in inputs.all_runs]).among(table.table["doc_id"]).all()):
        return None, [f"{_UNKNOWN}: the scores have no documents but those of the runs."]
    return replace(table, poles=groups.poles), [_note(table.table.height, total, "the scores")]


def _of_scores(scores: object, seed: int) -> tuple[GroupTable, int]:
    """The documents of a group table, or a sample of a file's, and how many it has."""
    if not is_path(scores):
        table = as_group_table(scores)
        return table, table.table.height
    ids, total = smallest(scan_ids(os.fspath(scores)), MOST_DOCUMENTS, seed)
    return read_group_table(scores, [ids["doc_id"]]), total


def smallest(batches: Iterable[pl.DataFrame], most: int, seed: int) -> tuple[pl.DataFrame, int]:
    """The rows of the ``most`` documents whose ids have the smallest chances, and the number of all rows.

    A document's chance depends on its id and the seed alone, not on its place. Memory holds a few times ``most`` rows.
    """
    kept: list[pl.DataFrame] = []
    total, limit = 0, 1.0
    for batch in _with_chances(batches, seed):
        total += batch.height
        kept.append(batch.filter(pl.col("chance") <= limit))
        if sum(map(len, kept)) > 2 * most:
            kept = [pl.concat(kept).sort("chance").head(most)]
            limit = float(kept[0]["chance"][-1])
    found = pl.concat(kept)
    found = found.sort("chance").head(most) if found.height > most else found
    return found.drop("chance"), total


def _with_chances(batches: Iterable[pl.DataFrame], seed: int) -> Iterator[pl.DataFrame]:
    for batch in batches:
        yield batch.with_columns(pl.Series("chance", chances(batch["doc_id"].hash().to_numpy(), seed, _STREAM)))


def _note(documents: int, total: int, source: str) -> str:
    if documents == total:
        return f"Stages: the collection's figures are of {counted(total, 'document')}, all of {source}."
    return (
        f"Stages: the collection's figures are of {documents:,} of the {total:,} documents of {source}, drawn by seed;"
        " intervals leave out what another sample of documents would change."
    )
