"""Writing a variant: streamed into a file, or in parts on a cluster; with its edits and its manifest."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

import polars as pl

from evenrank._version import __version__
from evenrank.engines.ray import Cluster, Engine, write_parts
from evenrank.engines.shards import Shard, shard_batches, shards_of
from evenrank.engines.streams import Form, TableWriter, check_tsv_ids, form_of, in_order
from evenrank.io import EvenrankError, InputError, Provenance, atomic_path, check_apart, check_outputs
from evenrank.io.errors import quoted

from .varied import Tally, Varied

Path = str | os.PathLike[str]
Change = Callable[[pl.DataFrame], tuple[pl.DataFrame, Tally]]
"""From a batch to its variant (ids, ``text``, ``edits``) and its counts."""


@dataclass(frozen=True, slots=True)
class VariantFiles:
    """Where a variant is written, and in which form."""

    out: Path
    pairs: bool
    engine: Engine
    form: Form = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "form", form_of(self.out))
        if self.form == "tsv" and self.pairs:
            raise InputError(self.out, "a TSV cannot hold a text per query and document: write .jsonl or .parquet")
        if self.form == "tsv" and self.engine == "ray":
            raise InputError(self.out, "expected .jsonl or .parquet parts, which can hold the edits, found TSV")

    @property
    def manifest(self) -> str:
        """The file with settings, counts and provenance."""
        return f"{os.fspath(self.out).rstrip('/')}.manifest.json"

    @property
    def edits(self) -> str | None:
        """The file of a TSV's edits: an id and a number a line."""
        return f"{os.fspath(self.out)}.edits.tsv" if self.form == "tsv" else None

    def check(self, inputs: Iterable[object]) -> None:
        """Raises InputError for a file that cannot be written or that would replace one of ``inputs``."""
        beside = [self.manifest, self.edits]
        check_apart([self.out, *beside], inputs)
        check_outputs(beside if self.engine == "ray" else [self.out, *beside])

    def write(
        self,
        batches: Iterable[pl.DataFrame],
        change: Change,
        workers: int | None = None,
        advance: Callable[[int], None] = lambda _: None,
        *,
        part_of_many: bool = False,
    ) -> Tally:
        """Writes the changed batches, and of a TSV the edits.

        Raises EvenrankError, writing nothing, if nothing was changed, unless this is a part of many.
        """
        tally = Tally()
        with ExitStack() as stack:
            data = stack.enter_context(atomic_path(self.out))
            beside = None if self.edits is None else stack.enter_context(atomic_path(self.edits))
            texts = stack.enter_context(TableWriter(data, self.form))
            edits = None if beside is None else stack.enter_context(TableWriter(beside, "tsv"))

            def work(batch: pl.DataFrame) -> tuple[object, object, int, Tally]:
                table, counts = change(batch)
                if edits is None:
                    return texts.encode(table), None, table.height, counts
                self._check_lines(table)
                columns = table.select("doc_id", "text"), table.select("doc_id", "edits")
                return texts.encode(columns[0]), edits.encode(columns[1]), table.height, counts

            for encoded, numbers, rows, counts in in_order(work, batches, workers):
                texts.append(encoded, rows)
                if edits is not None:
                    edits.append(numbers, rows)
                tally.merge(counts)
                advance(rows)
            if not part_of_many:
                check_changed(tally)
        return tally

    def write_manifest(self, done: Varied, made: Provenance) -> None:
        """Writes the settings, the counts and the provenance beside the variant."""
        values = {"evenrank": __version__, **done.to_dict(), "provenance": made.to_dict()}
        with atomic_path(self.manifest) as part:
            part.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")

    def _check_lines(self, table: pl.DataFrame) -> None:
        check_tsv_ids(table["doc_id"], self.out)
        broken = table.filter(pl.col("text").str.contains(r"[\r\n]"))["doc_id"]
        if len(broken):
            what = f"a TSV cannot hold the text of {quoted(broken[0])}, which has several lines"
            raise InputError(self.out, f"{what}: write .jsonl or .parquet")


def check_changed(tally: Tally) -> None:
    """Raises EvenrankError if nothing was changed: what equals the original is no variant of it."""
    if not tally.changed:
        raise EvenrankError("no passage could be changed, so there is no variant")


def write_on_ray(
    collection: object,
    files: VariantFiles,
    change: Change,
    settings: Mapping[str, object],
    cluster: Cluster,
    quiet: bool,
) -> Tally:
    """Writes a folder of parts on a Ray cluster. Raises EvenrankError for no changes; the parts are then left."""
    write = functools.partial(_write_shard, change=change)
    counts = write_parts(shards_of(collection), files.out, files.form, settings, write, cluster, quiet=quiet)
    tally = Tally()
    for one in counts:
        tally.merge(Tally.from_dict(one))
    if not tally.changed:
        raise InputError(files.out, "no passage could be changed: the parts equal the collection")
    return tally


def _write_shard(shard: Shard, path: str, change: Change) -> dict[str, object]:
    tally = VariantFiles(path, False, "ray").write(shard_batches(shard), change, 1, part_of_many=True)
    return {"rows": tally.rows, **tally.to_dict()}
