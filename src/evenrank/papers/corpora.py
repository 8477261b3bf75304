"""Where an experiment's queries come from, and their first-stage lists; the built-in collection in the same files."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl

from evenrank.files import (
    EvenrankError,
    Run,
    atomic_path,
    make_folder,
    read_qrels,
    read_queries,
    read_run,
    scan_collection,
    write_run,
)
from evenrank.files.public import fetch
from evenrank.files.synthetic import SyntheticConfig, generate
from evenrank.files.tokens import Tokens
from evenrank.groups import Lexicon
from evenrank.mitigation.negatives import Settings, stream_negatives
from evenrank.search.analysis import Analyzer
from evenrank.search.bm25 import Index
from evenrank.search.expansion import RM3

_CHUNK = 20_000


@dataclass(frozen=True, slots=True)
class Source:
    """Files (or ``irds:`` names): a collection, judged queries, and queries that people labelled n, m, f or o.

    ``annotated``: CSV without a header, ``query_id``, ``text``, ``label``, as the public file has it.
    """

    collection: str
    queries: tuple[str, ...]
    qrels: tuple[str, ...]
    annotated: str


def built_in(folder: Path, planted: SyntheticConfig, *, clicks: bool) -> Source:
    """The built-in collection as such files; all its queries are neutral. ``clicks``: one passage a query is judged."""
    done = folder / "annotated.csv"
    if not done.is_file():
        made = generate(planted)
        made.write(folder)
        with atomic_path(done) as part:
            rows = made.queries.select("query_id", "text", pl.lit("n").alias("label"))
            rows.write_csv(part, include_header=False)
    judged = "clicks.txt" if clicks else "qrels.txt"
    return Source(
        str(folder / "collection.tsv"), (str(folder / "queries.tsv"),), (str(folder / judged),), str(folder / done.name)
    )


def msmarco(folder: Path) -> Source:
    """MS MARCO passages with the judged queries of train and dev, and the annotated ones, fetched into ``folder``."""
    sets = ("irds:msmarco-passage/train/judged", "irds:msmarco-passage/dev/judged")
    (annotated,) = fetch("queries-gender-annotated", to=folder)
    return Source("irds:msmarco-passage", sets, sets, str(annotated))


@dataclass(frozen=True, slots=True)
class Part:
    """Some queries with judgements and first-stage lists, as files."""

    queries: str
    qrels: str
    run: str
    count: int


class Lists:
    """Writes parts: first-stage lists of a collection, whose index is built on first use."""

    def __init__(self, collection: str, folder: Path, *, k1: float = 0.9, b: float = 0.4) -> None:
        self.collection, self.folder = collection, folder
        self.k1, self.b = k1, b

    @functools.cached_property
    def _index(self) -> Index:
        return Index.build(self.collection, Analyzer("english", "english"), k1=self.k1, b=self.b, quiet=True)

    def part(
        self, name: str, queries: pl.DataFrame, qrels: pl.DataFrame, *, depth: int, listed: int | None = None
    ) -> Part:
        """The first ``depth`` documents of each query; with ``listed``, the clicked ones and the first others.

        With one click, these are ``listed`` in all, as in [IBBR §4.1]: 200 passages per query, one of them clicked; one
        that is not among the ``depth`` comes last.
        """
        part = self.judged(name, queries, qrels)
        kept = self.folder / f"{name}.run"
        part = replace(part, run=str(kept))
        if kept.is_file():
            return part
        judged = read_qrels(part.qrels)
        clicked = judged.filter(pl.col("relevance") >= 1).select("query_id", "doc_id", pl.lit(True).alias("clicked"))
        with (
            atomic_path(kept) as file,
            file.open("wb") as whole,
            tempfile.TemporaryDirectory() as elsewhere,
        ):
            piece = Path(elsewhere) / "piece.run"
            for run in self._searched(queries, depth):
                write_run(run if listed is None else _with_clicked(run, clicked, listed), piece)
                whole.write(piece.read_bytes())
        return part

    def judged(self, name: str, queries: pl.DataFrame, qrels: pl.DataFrame) -> Part:
        """Queries and their judgements, without lists (``run`` is empty)."""
        files = {kind: self.folder / f"{name}.{kind}" for kind in ("queries.tsv", "qrels")}
        part = Part(str(files["queries.tsv"]), str(files["qrels"]), "", queries.height)
        if all(file.is_file() for file in files.values()):
            return part
        make_folder(self.folder)
        with atomic_path(files["queries.tsv"]) as file:
            queries.select("query_id", pl.col("text").str.replace_all(r"[\t\r\n]", " ")).write_csv(
                file, include_header=False, separator="\t", quote_style="never"
            )
        with atomic_path(files["qrels"]) as file:
            lines = qrels.join(queries.select("query_id"), on="query_id", how="semi")
            lines = lines.select("query_id", pl.lit("0").alias("zero"), "doc_id", "relevance")
            lines.write_csv(file, include_header=False, separator=" ", quote_style="never")
        return part

    def negatives(
        self,
        part: Part,
        shares: Mapping[Path, float],
        *,
        n: int,
        depth: int,
        seed: int,
        lexicon: Lexicon | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        """Training lists of a part: for each file (Parquet), ``n`` negatives a query of its first ``depth`` documents,
        that share of them by bias, the others at random (see :func:`evenrank.mitigation.negatives.sample`).

        They are drawn while BM25 searches, 20,000 queries at a time: a run of half a million queries by 1,000
        documents would fill 77 GB. The files are those of ``evenrank negatives`` on such a run; if all shares are 0, no
        document is scored, and they lack the column ``group``. Files that exist are left as they are.
        """
        missing = {file: Settings(n, share, False, seed, depth) for file, share in shares.items() if not file.is_file()}
        if not missing:
            return
        for file in missing:
            make_folder(file.parent)
        stream_negatives(
            (run.table for run in self._searched(read_queries(part.queries), depth)),
            missing,
            collection=self.collection,
            qrels=read_qrels(part.qrels),
            doc_ids=cast("pl.Series", self._index.doc_ids),
            lexicon=lexicon,
            tokens=tokens,
        )

    def _searched(self, queries: pl.DataFrame, depth: int) -> Iterator[Run]:
        """The lists of all queries, some at a time."""
        for start in range(0, queries.height, _CHUNK):
            yield self._index.search(queries[start : start + _CHUNK], depth, quiet=True)

    def rm3(self, part: Part) -> Run:
        """The part's candidates re-ranked by BM25 with RM3; those not among its first 1,000 score 0."""
        kept = self.folder / f"{Path(part.run).stem}.rm3.run"
        if kept.is_file():
            return read_run(kept, name="RM3")
        index = Index.build(
            self.collection, Analyzer("english", "english"), k1=self.k1, b=self.b, forward=True, quiet=True
        )
        found = index.search(read_queries(part.queries), 1000, rm3=RM3(), quiet=True).table
        rows = read_run(part.run).table.select("query_id", "doc_id")
        rows = rows.join(found, on=["query_id", "doc_id"], how="left", maintain_order="left")
        run = Run.from_table(rows.with_columns(pl.col("score").fill_null(0.0)), "RM3")
        write_run(run, kept)
        return run


def _with_clicked(run: Run, clicked: pl.DataFrame, listed: int) -> Run:
    table = run.table.join(clicked, on=["query_id", "doc_id"], how="left", maintain_order="left")
    table = table.with_columns(pl.col("clicked").fill_null(False))
    place = (~pl.col("clicked")).cum_sum().over("query_id")
    kept = table.filter(pl.col("clicked") | (place < listed)).select("query_id", "doc_id", "score")
    # A clicked passage that the first stage did not find comes last.
    lowest = kept.group_by("query_id", maintain_order=True).agg(pl.col("score").min() - 1.0)
    missed = clicked.join(kept, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    missed = missed.join(lowest, on="query_id", how="inner", maintain_order="left")
    return Run.from_table(pl.concat([kept, missed.select("query_id", "doc_id", "score")]), run.name)


def judged_queries(names: Sequence[str], qrels: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All queries that have a relevant document, and all judgements."""
    judgements = pl.concat([read_qrels(name) for name in qrels])
    queries = pl.concat([read_queries(name) for name in names]).unique("query_id", keep="first", maintain_order=True)
    relevant = judgements.filter(pl.col("relevance") >= 1).select("query_id").unique()
    return queries.join(relevant, on="query_id", how="semi", maintain_order="left"), judgements


def neutral_queries(annotated: str) -> pl.DataFrame:
    """The queries that people labelled n (neither gender): ``query_id``, ``text``."""
    try:
        table = pl.read_csv(annotated, has_header=False, new_columns=["query_id", "text", "label"], infer_schema=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise EvenrankError(f"{annotated}: expected query_id,text,label ({str(error).splitlines()[0]})") from None
    return table.filter(pl.col("label") == "n").select("query_id", "text").unique("query_id", maintain_order=True)


def draw(table: pl.DataFrame, sizes: dict[str, int], seed: int) -> dict[str, pl.DataFrame]:
    """Disjoint random parts of the given sizes. Raises EvenrankError where there are too few rows."""
    wanted = sum(sizes.values())
    if table.height < wanted:
        raise EvenrankError(f"{wanted} queries are wanted ({', '.join(sizes)}), there are {table.height}")
    order = np.random.default_rng([seed, 7]).permutation(table.height)
    parts, start = {}, 0
    for name, size in sizes.items():
        parts[name] = table[np.sort(order[start : start + size])]
        start += size
    return parts


def all_texts(source: Source) -> list[str]:
    """Every text of a collection and of its queries, to make a vocabulary from."""
    batches = [batch["text"] for batch in scan_collection(source.collection)]
    return pl.concat([*batches, *(read_queries(name)["text"] for name in source.queries)]).to_list()
