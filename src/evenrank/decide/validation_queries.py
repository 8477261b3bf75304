"""The queries that a strength and a direction are chosen on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from evenrank.auditing.caveats import absence_warning
from evenrank.auditing.query_clusters import query_clusters
from evenrank.files import InputError, Run, as_queries
from evenrank.files.errors import EvenrankError, arg
from evenrank.files.reading import line_blocks
from evenrank.files.tables import is_parquet, lines_of
from evenrank.files.wording import counted
from evenrank.results.finding import Finding


@dataclass(frozen=True, slots=True)
class ValidationQueries:
    """The queries that a strength and a direction are chosen on: those ``given``, or by a hash of ``seed`` and id.

    Whether a query is one of them depends on no other query of the run but those of its cluster.
    """

    given: frozenset[str] | None
    seed: int

    @classmethod
    def of(cls, given: object, seed: int) -> ValidationQueries:
        """From a file of ids, a file of queries, ids in a list, or queries as a dict or a table; None: by the seed."""
        return cls(None if given is None else frozenset(_ids(given)), seed)

    def chosen(self, queries: pl.Series, qrels: pl.DataFrame | None) -> pl.Series:
        """Whether each of ``queries`` is one of them; those with the same relevant documents together."""
        if self.given is not None:
            return queries.is_in(pl.Series(sorted(self.given), dtype=pl.String).implode())
        clusters = query_clusters(None, queries, None, qrels).numbers
        names = queries.to_list()
        if clusters is not None:
            least: dict[int, str] = {}
            for number, name in zip(clusters.tolist(), names, strict=True):
                least[number] = min(name, least.get(number, name))
            names = [least[number] for number in clusters.tolist()]
        return pl.Series([_is_tuning(name, self.seed) for name in names], dtype=pl.Boolean)

    def check(self, tuning: int, others: int) -> None:
        """Raises EvenrankError if the run has no query to choose on, or none to report on."""
        if tuning and others:
            return
        mend = f"divide them by {arg.validation_queries}" + (f" or another {arg.seed}" if self.given is None else "")
        if tuning + others < 2:
            mend = f"one query is enough for the methods neutral and detconstsort alone, with a {arg.strength}"
        raise EvenrankError(
            f"expected queries to choose on and others to report on, found {tuning:,} and {others:,}: {mend}"
        )

    def note(self, tuning: int, others: int) -> str:
        """How the queries were divided."""
        how = "those given" if self.given is not None else f"a half by a hash of their ids and the seed {self.seed}"
        return (
            f"Strength and direction were chosen on {counted(tuning, 'query')} ({how}); figures are of the other"
            f" {others:,}."
        )


def absent_queries(queries: pl.Series, qrels: pl.DataFrame | None) -> pl.Series:
    """The judged queries that a run with ``queries`` lacks, which count 0 in effectiveness as in an audit."""
    judged = queries.clear() if qrels is None else qrels["query_id"].unique(maintain_order=True)
    return judged.filter(~judged.is_in(queries.implode()))


def absence_findings(run: Run, absent: pl.Series, qrels: pl.DataFrame | None) -> tuple[Finding, ...]:
    """What is said first of the judged queries that a run lacks, if there are any."""
    if qrels is None or not len(absent):
        return ()
    ids = qrels["query_id"].unique(maintain_order=True)
    text = absence_warning({run.name: len(absent)}, ids, {run.name: run.queries})
    return (Finding("absent", run.name, "cannot be told", None, text, "warning"),)


def _is_tuning(query: str, seed: int) -> bool:
    digest = hashlib.blake2b(f"{seed}\n{query}".encode(errors="surrogatepass"), digest_size=8).digest()
    return digest[0] < 128


def _ids(given: object) -> list[str]:
    if isinstance(given, str) and given.startswith("irds:"):
        return as_queries(given)["query_id"].to_list()
    if isinstance(given, str | os.PathLike):
        return _read(given)
    if isinstance(given, pl.Series):
        given = given.to_list()
    if isinstance(given, Iterable) and not isinstance(given, Mapping | pl.DataFrame):
        listed = list(given)
        if all(isinstance(query, str | int) for query in listed):
            return [str(query) for query in listed]
        given = listed
    return as_queries(given, arg.validation_queries)["query_id"].to_list()


def _read(path: str | os.PathLike[str]) -> list[str]:
    """The ids in a file: a line each, alone or before a tab and a text; or a file of queries."""
    if not os.path.isdir(path) and not is_parquet(path):
        lines = pl.concat([lines_of(block) for block in line_blocks(path)])["content"]
        if not len(lines):
            raise InputError(path, "expected ids of queries, a line each, found none")
        if not lines[0].lstrip().startswith("{"):
            return lines.str.split("\t").list.first().str.strip_chars().to_list()
    return as_queries(path)["query_id"].to_list()
