"""Several samples of negatives from one first stage, drawn while it searches: no run file is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl

from evenrank.engines.streams import TableWriter
from evenrank.groups import Lexicon, Tokens
from evenrank.io import atomic_path, write_text
from evenrank.io.atomic import json_text
from evenrank.io.tables import IdIndex

from .negative_documents import Asked, Documents, documents_of
from .negative_formats import id_table
from .negative_lists import Sampler
from .negative_manifest import manifest_of
from .negative_sampling import Settings


def stream_negatives(
    chunks: Iterable[pl.DataFrame],
    samples: Mapping[Path, Settings],
    *,
    collection: str,
    qrels: pl.DataFrame,
    name: str = "bm25",
    doc_ids: pl.Series | None = None,
    lexicon: Lexicon | None = None,
    tokens: Tokens | None = None,
) -> None:
    """Writes a file of training lists (Parquet, format ``groups``) for each of ``samples``, by its settings.

    ``chunks``: the table of a run in parts of whole queries; the files are those that :func:`write_negatives` makes of
    that run, with ``lexicon`` and ``tokens``. ``name``: that of the run.
    ``doc_ids``: all of the collection; with them, and no share of biased negatives in any sample, no document is
    scored: the files have no column ``group``.

    Raises EvenrankError for documents that are not in the collection, and if no query is left.
    """
    if doc_ids is not None and not any(settings.quota for settings in samples.values()):
        documents = Documents(IdIndex([doc_ids]), np.zeros(len(doc_ids)), None, {}, collection)
    else:
        asked: Asked = {"lexicon": lexicon, "poles": None, "tokens": tokens, "threshold": None}
        documents = documents_of(collection, None, "abs_tf", asked, True)
    # The files get their names when all are whole.
    with ExitStack() as files:
        open_: list[tuple[Path, Sampler, TableWriter]] = []
        for out, settings in samples.items():
            writer = files.enter_context(TableWriter(files.enter_context(atomic_path(out)), "parquet"))
            open_.append((out, Sampler(qrels, documents, settings, None, name), writer))
        for chunk in chunks:
            for _, sampler, writer in open_:
                writer.write(id_table(sampler.lists(chunk), documents))
        for out, sampler, writer in open_:
            sampler.check()
            used = {"run": name, "format": "groups", "beta": "abs_tf", **asdict(sampler.settings), **documents.settings}
            manifest = manifest_of(sampler, used, writer.rows)
            if documents.sides is None:
                manifest = {
                    key: value for key, value in manifest.items() if key not in ("mean_beta", "short_of_gendered")
                }
            write_text(Path(f"{out}.manifest.json"), json_text(manifest) + "\n")
