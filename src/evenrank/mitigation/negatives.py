"""Bias-aware negative sampling: negatives that speak of a group, so that a ranker learns not to prefer them.

Bigdeli et al., the paper cited as [BAS]: of the N negatives of a query, a share λ are the unjudged documents of its
first-stage list with the largest bias β, the others are drawn at random from the rest.

When it misleads: β has no side: where the first stage finds mostly passages of one group, mostly that group is pushed
down, which can turn a lean round rather than remove it. An unjudged document may well be relevant; choosing it for its
words teaches the ranker that it is not. Without enough gendered documents in a list the share is not reached with them
(the manifest counts it; ``--gendered-only`` then draws the rest at random).

Worked example: of four unjudged documents with β 0, ln 3, 0 and ln 2, two negatives are taken, half of them by bias:
the one with ln 3, and one of the other three, by the seed.

>>> import polars as pl
>>> from evenrank.mitigation.negatives import sample
>>> table = pl.DataFrame({"query_id": ["q"] * 4, "doc_id": ["a", "b", "c", "d"], "beta": [0.0, 1.0986, 0.0, 0.6931]})
>>> drawn = sample(table, n=2, share=0.5)
>>> drawn.filter("biased")["doc_id"].to_list(), drawn.height
(['b'], 2)
"""

from __future__ import annotations

import itertools
import json
import math
import os
import platform
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal, get_args

import numpy as np
import polars as pl

import evenrank
from evenrank.groups import Lexicon, Scoring, Tokens, load_lexicon, score_batches
from evenrank.io import (
    EvenrankError,
    InputError,
    Run,
    Scores,
    atomic_path,
    bias_labels,
    check_writable,
    read_qrels,
    read_queries,
    read_scores,
    scan_collection,
)
from evenrank.io.errors import shown
from evenrank.io.files import line_blocks
from evenrank.io.progress import progress
from evenrank.io.tables import IdIndex, Layout, first_repeat, parse_block

Beta = Literal["abs_tf", "count", "one_minus_neutrality"]
Format = Literal["groups", "labeled-list", "labeled-pair", "n-tuple"]
Array = np.ndarray[Any, Any]
PathLike = str | os.PathLike[str]

_LAYOUT = Layout(
    "a TREC run",
    {
        "query_id": pl.String,
        "_Q0": pl.String,
        "doc_id": pl.String,
        "_rank": pl.String,
        "score": pl.Float64,
        "_tag": pl.String,
    },
)
_PART = 1 << 19
_TEXTS = 1 << 15
_LABELS: Any = "tf_words"


# --- the method ----------------------------------------------------------------------------------------------------


def beta(scores: Scores, kind: Beta = "abs_tf") -> Array:
    """How biased each document [D] of a score table is: β ≥ 0 [BAS].

    ``abs_tf``: |mag_a − mag_b| under ``tf``, a and b the poles; ``count``: the number of words of any group;
    ``one_minus_neutrality``: 1 − neutrality. Rounded to nine places, so that ln 6 − ln 3 and ln 2 are the same bias.
    Raises EvenrankError for an unknown kind, and for ``abs_tf`` where no poles are known.
    """
    if kind == "abs_tf":
        value = np.abs(scores.signed_magnitude("tf"))
    elif kind == "count":
        value = np.sum([scores.magnitude("count", group) for group in scores.groups], axis=0)
    elif kind == "one_minus_neutrality":
        value = 1 - scores.table["neutrality"].to_numpy()
    else:
        raise EvenrankError(f"--beta: expected one of {', '.join(get_args(Beta))}, found {shown(kind)}")
    rounded: Array = np.round(value, 9)
    return rounded


def candidates(run: pl.DataFrame, qrels: pl.DataFrame, depth: int = 1000) -> pl.DataFrame:
    """D_q: the rows of a run's first ``depth`` ranks whose document is judged at no grade for the query [BAS].

    ``run``: ``query_id``, ``doc_id``, ``rank``, in rank order, as ``Run.table``; ``qrels``: ``query_id``, ``doc_id``.
    """
    top = run.filter(pl.col("rank") <= depth)
    return top.join(qrels, on=["query_id", "doc_id"], how="anti", maintain_order="left")


def sample(
    table: pl.DataFrame, *, n: int = 20, share: float = 0.6, gendered_only: bool = False, seed: int = 0
) -> pl.DataFrame:
    """Draws up to ``n`` negatives for each query from its candidates [BAS].

    ``table``: ``query_id``, ``doc_id`` (each document once a query) and ``beta`` (≥ 0), the rows of a query together
    and in first-stage order. Returns the rows drawn, with ``biased``: a query's biased part first, the ⌊share · n⌋ rows
    of largest β, ties by place; then its random part, uniform without replacement from all others. All rows where there
    are no more than ``n``. With ``gendered_only`` rows with β = 0 are left to the random part.

    The draw is by a random key of each row, made of the seed, the query's id and the document's id alone: a query's
    negatives do not depend on other queries, and what ``share`` 0.6 draws at random, 0.4 draws too.

    Raises EvenrankError for a setting out of range, a β below 0 or not finite, and a query whose rows do not stand
    together.
    """
    _check_settings(n, share, seed)
    values = np.array(table["beta"].cast(pl.Float64))
    if not (np.isfinite(values) & (values >= 0)).all():
        raise EvenrankError("expected finite numbers from 0 as beta")
    query = table["query_id"].cast(pl.String)
    starts = _starts(query)
    if query.gather(starts[:-1]).n_unique() < len(starts) - 1:
        raise EvenrankError("the rows of a query do not stand together: sort the table by query_id")
    rows, biased = _draw(
        query, table["doc_id"].cast(pl.String), starts, values, _Settings(n, share, gendered_only, seed)
    )
    return table[rows].with_columns(pl.Series("biased", biased))


@dataclass(frozen=True, slots=True)
class _Settings:
    n: int
    share: float
    gendered_only: bool
    seed: int

    @property
    def quota(self) -> int:
        """⌊λN + 1e-9⌋, the size of the biased part."""
        return math.floor(self.share * self.n + 1e-9)


def _draw(query: pl.Series, doc: pl.Series, starts: Array, values: Array, settings: _Settings) -> tuple[Array, Array]:
    """The rows drawn [T], and whether each is of the biased part [T]; query q has the rows from ``starts[q]``."""
    # The compiler takes half a second to import.
    from . import _negatives_kernel as kernel

    keys = kernel.random_keys(*_bytes(doc), *_bytes(query.gather(starts[:-1])), starts, np.uint64(settings.seed))
    drawn: tuple[Array, Array] = kernel.draw(starts, values, keys, settings.n, settings.quota, settings.gendered_only)
    return drawn


def _bytes(texts: pl.Series) -> tuple[Array, Array]:
    """The UTF-8 bytes of texts [N] and where each begins [N + 1]."""
    import pyarrow as pa

    column = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_string())
    _, offsets, data = column.buffers()
    begins = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, dtype=np.uint8), begins


def _starts(query: pl.Series) -> Array:
    """Where each stretch of equal values begins, and the length at the end [Q + 1]."""
    number = query.rle_id().to_numpy().astype(np.int64)
    return np.append(np.flatnonzero(np.diff(number, prepend=-1)), len(query))


def _check_settings(n: int, share: float, seed: int, depth: int = 1) -> None:
    for name, number, least in (("n", n, 1), ("depth", depth, 1), ("seed", seed, 0)):
        if number < least:
            raise EvenrankError(f"--{name}: expected {least} or more, found {number}")
    if seed >= 1 << 64:
        raise EvenrankError(f"--seed: expected a number below 2^64, found {seed}")
    if not 0 <= share <= 1:
        raise EvenrankError(f"--share: expected a number from 0 to 1, found {share}")


# --- from a run to a file ------------------------------------------------------------------------------------------


def write_negatives(
    run: PathLike | Run | pl.DataFrame,
    out: PathLike,
    *,
    collection: PathLike | pl.DataFrame | None = None,
    queries: PathLike | pl.DataFrame | None = None,
    qrels: PathLike | pl.DataFrame,
    n: int = 20,
    share: float = 0.6,
    beta: Beta = "abs_tf",
    depth: int = 1000,
    gendered_only: bool = False,
    seed: int = 0,
    format: Format = "groups",
    scores: PathLike | Scores | None = None,
    lexicon: PathLike | Lexicon | None = None,
    poles: str | None = None,
    tokens: Tokens | None = None,
    threshold: float | None = None,
    quiet: bool = True,
) -> dict[str, Any]:
    """Samples negatives for every query of a run, and writes training data with the judged relevant documents.

    ``out`` ends in ``.parquet`` or ``.jsonl``. ``format``:

    - ``groups``: ``query_id``, ``doc_id`` (list), ``label`` (list), which ``evenrank train`` takes as ``data.groups``;
      and ``group`` (list), each document's bias label (+1, −1, 0) by ``tf_words``, where poles and it are known;
    - ``labeled-list``: ``query``, ``docs`` (list), ``labels`` (list): LambdaLoss and the other list losses of
      sentence-transformers' CrossEncoderTrainer;
    - ``labeled-pair``: ``query``, ``passage``, ``label`` (1 or 0): its BinaryCrossEntropyLoss;
    - ``n-tuple``: ``anchor``, ``positive``, ``negative_1`` … ``negative_n``, a row for each relevant document:
      MultipleNegativesRankingLoss; queries with fewer than ``n`` negatives are left out.

    Positives stand first, labelled by their grade, then the biased part, then the random part (see :func:`sample`).
    ``scores`` stand for scoring the collection, whose texts only the last three formats need then; these need
    ``queries`` too. Beside ``out`` stand ``.manifest.json``, which this returns, and ``.manifest.parquet``, a row a
    query. A run file is read as a stream: memory depends on the size of the collection and of the sample, not of the
    run; the lines of a query must stand together. Nothing is written unless all is.

    Raises InputError for bad files; EvenrankError for a setting out of range, documents that are not in the collection,
    queries without a text, and where no query is left.
    """
    settings = _Settings(n, share, gendered_only, seed)
    _check_settings(n, share, seed, depth)
    for name, value, allowed in (("beta", beta, get_args(Beta)), ("format", format, get_args(Format))):
        if value not in allowed:
            raise EvenrankError(f"--{name}: expected one of {', '.join(allowed)}, found {shown(value)}")
    suffix = Path(out).suffix
    if suffix not in (".parquet", ".jsonl"):
        raise EvenrankError(f"--out: expected a name that ends in .parquet or .jsonl, found {shown(os.fspath(out))}")
    if collection is None and (scores is None or format != "groups"):
        raise EvenrankError(f"--format {format}: the documents' texts are needed: give --collection")
    if queries is None and format != "groups":
        raise EvenrankError(f"--format {format}: the queries' texts are needed: give --queries")
    outputs = [Path(out), Path(f"{os.fspath(out)}.manifest.json"), Path(f"{os.fspath(out)}.manifest.parquet")]
    for path in outputs:
        check_writable(path)

    judged = qrels if isinstance(qrels, pl.DataFrame) else read_qrels(qrels)
    texts = read_queries(queries) if queries is not None and not isinstance(queries, pl.DataFrame) else queries
    chunks, name = _chunks(run)
    asked = {"lexicon": lexicon, "poles": poles, "tokens": tokens, "threshold": threshold}
    documents = _documents(collection, scores, beta, asked, quiet)
    sampler = _Sampler(judged, documents, settings, depth, texts, name)
    # Each file's errors in its own context, and none gets its name before all are written.
    with atomic_path(outputs[0]) as data:
        with progress("queries", quiet=quiet) as advance, _Writer(data, suffix) as writer:
            groups = _counted(map(sampler.groups, chunks), advance)
            if format == "groups":
                for chunk in groups:
                    writer.write(_group_table(chunk, documents.sign))
                sampler.check()
            else:
                assert texts is not None
                assert collection is not None
                # Their ids are not needed again.
                compact = [replace(chunk, doc_id=pl.Series(dtype=pl.String)) for chunk in groups]
                sampler.check()
                _write_texts(compact, writer, format, n, documents.index, collection, texts, outputs[0].parent)
        table = sampler.per_query()
        if not writer.rows:
            raise EvenrankError(f"--format n-tuple: no query has {n} negatives; --n says how many to draw")
        left_out = dict(sampler.left_out)
        if format == "n-tuple":
            left_out["too_few_for_n_tuple"] = int((table["short"] > 0).sum())
        manifest = {
            "evenrank": evenrank.__version__,
            "versions": {"python": platform.python_version(), "polars": pl.__version__, "numpy": np.__version__},
            "settings": {
                "run": name,
                "format": format,
                "n": n,
                "share": share,
                "beta": beta,
                "depth": depth,
                "gendered_only": gendered_only,
                "seed": seed,
                **documents.settings,
            },
            **_totals(table, settings),
            "left_out": left_out,
            "rows": writer.rows,
        }
        with atomic_path(outputs[1]) as manifest_json:
            manifest_json.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            with atomic_path(outputs[2]) as manifest_table:
                table.write_parquet(manifest_table)
    return manifest


def _totals(table: pl.DataFrame, settings: _Settings) -> dict[str, Any]:
    """The sums over queries; the mean β of all documents of each kind (None where there is none)."""

    def mean(column: str, count: str) -> float | None:
        number = int(table[count].sum())
        # Summed as one array: a sum by parts may differ in the last place.
        return float(np.nansum(table[column].to_numpy() * table[count].to_numpy())) / number if number else None

    biased, random = int(table["biased"].sum()), int(table["random"].sum())
    lacking = (settings.quota - table["gendered"].cast(pl.Int64)).clip(lower_bound=0)
    return {
        "queries": table.height,
        "negatives": biased + random,
        "biased": biased,
        "random": random,
        "short": {"queries": int((table["short"] > 0).sum()), "negatives": int(table["short"].sum())},
        "short_of_gendered": {"queries": int((lacking > 0).sum()), "negatives": int(lacking.sum())},
        "mean_beta": {
            "biased": mean("beta_biased", "biased"),
            "random": mean("beta_random", "random"),
            "candidates": mean("beta_candidates", "candidates"),
        },
    }


# --- what documents say --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Documents:
    """β [D] and bias labels [D] of documents, found by id."""

    index: IdIndex
    beta: Array
    sign: Array | None
    settings: dict[str, Any]
    source: str


def _documents(
    collection: PathLike | pl.DataFrame | None,
    scores: PathLike | Scores | None,
    kind: Beta,
    asked: dict[str, Any],
    quiet: bool,
) -> _Documents:
    if scores is not None:
        loaded = scores if isinstance(scores, Scores) else read_scores(scores)
        loaded = _as_asked(loaded, asked)
        source = "the scores" if isinstance(scores, Scores) else os.fspath(scores)
        return _Documents(IdIndex([loaded.table["doc_id"]]), beta(loaded, kind), _sign(loaded), loaded.settings, source)
    assert collection is not None
    lexicon = asked["lexicon"] if asked["lexicon"] is not None else "gender-en"
    lexicon = (lexicon if isinstance(lexicon, Lexicon) else load_lexicon(lexicon)).with_poles(asked["poles"])
    threshold = asked["threshold"] if asked["threshold"] is not None else 1
    scoring = Scoring(lexicon, asked["tokens"] or "word", (_LABELS,), threshold)
    ids, values, signs = [], [], []
    with progress("documents", quiet=quiet) as advance:
        for table in score_batches(_texts_of(collection), scoring):
            part = Scores.of(table, scoring.describe())
            # A copy: a long id may keep the text beside it in memory.
            ids.append(pl.Series("doc_id", table["doc_id"].to_arrow(compat_level=pl.CompatLevel.oldest())))
            values.append(beta(part, kind))
            signs.append(_sign(part))
            advance(table.height)
    if not ids:
        raise EvenrankError("the collection is empty")
    sign = None if lexicon.poles is None else np.concatenate([part for part in signs if part is not None])
    source = "the collection" if isinstance(collection, pl.DataFrame) else os.fspath(collection)
    return _Documents(IdIndex(ids), np.concatenate(values), sign, scoring.describe(), source)


def _as_asked(scores: Scores, asked: dict[str, Any]) -> Scores:
    """Raises EvenrankError where scores were made otherwise than asked for; the poles can still be chosen."""
    for name in ("lexicon", "tokens", "threshold"):
        value = asked[name]
        if name == "lexicon" and value is not None:
            value = (value if isinstance(value, Lexicon) else load_lexicon(value)).name
        if value is not None and scores.settings.get(name, value) != value:
            found = scores.settings[name]
            raise EvenrankError(f"--{name}: {value} was asked for, but the scores were made with {name} {found}")
    if asked["poles"] is None:
        return scores
    poles = Lexicon("scores", scores.groups, (), (), None).with_poles(asked["poles"]).poles
    assert poles is not None
    return Scores.of(scores.table, {**scores.settings, "shares": list(scores.shares), "poles": list(poles)})


def _sign(scores: Scores) -> Array | None:
    """The bias label of each document, where the table says it."""
    has_words = all(f"magnitude_{_LABELS}_{group}" in scores.table.columns for group in scores.groups)
    return bias_labels(scores.signed_magnitude(_LABELS)) if scores.poles and has_words else None


def _texts_of(collection: PathLike | pl.DataFrame) -> Iterator[pl.DataFrame]:
    if isinstance(collection, pl.DataFrame):
        return collection.select(pl.col("doc_id", "text").cast(pl.String)).iter_slices(_TEXTS)
    return scan_collection(collection)


# --- a run, in chunks of whole queries -----------------------------------------------------------------------------


def _chunks(run: PathLike | Run | pl.DataFrame) -> tuple[Iterator[pl.DataFrame], str]:
    """The table of a run in chunks of whole queries, and the run's name."""
    if isinstance(run, str | os.PathLike):
        return _ranked_chunks(run), os.path.basename(os.fspath(run))
    if isinstance(run, pl.DataFrame):
        run = Run.from_table(run)
    starts = _starts(run.table["query_id"])
    cuts = starts[np.unique(np.searchsorted(starts, np.arange(0, run.table.height, _PART)))]
    pairs = itertools.pairwise([*cuts.tolist(), run.table.height])
    table = run.table
    return (table[start:end] for start, end in pairs if end > start), run.name


def _ranked_chunks(path: PathLike) -> Iterator[pl.DataFrame]:
    seen: dict[str, int] = {}
    for chunk in _whole_queries(path):
        starts = _starts(chunk["query_id"])[:-1]
        first = chunk.select("query_id", "line")[starts]
        met = seen.keys() & set(first["query_id"])
        again = first.filter(~pl.col("query_id").is_first_distinct() | pl.col("query_id").is_in(list(met)))
        if again.height:
            query, line = again.row(0)
            earlier = seen.get(query) or first.filter(pl.col("query_id") == query)["line"][0]
            message = f"the lines of the query {shown(query)} do not stand together (first in line {earlier})"
            raise InputError(path, f"{message}: sort the run by query, for example with sort -s -k1,1", line=line)
        seen.update(first.iter_rows())
        try:
            table = Run.from_table(chunk.drop("line")).table
        except EvenrankError:
            repeat = first_repeat(chunk, ["query_id", "doc_id"])
            if repeat is None:
                raise
            before, row = (chunk.row(number, named=True) for number in repeat)
            message = f"the document {shown(row['doc_id'])} stands twice for the query {shown(row['query_id'])}"
            raise InputError(path, f"{message} (first in line {before['line']})", line=row["line"]) from None
        yield table


def _whole_queries(path: PathLike) -> Iterator[pl.DataFrame]:
    """The lines of a run file, about a block at a time, cut where the query changes."""
    rest: list[pl.DataFrame] = []
    for block in line_blocks(path):
        table = parse_block(path, block, _LAYOUT)
        if not table.height:
            continue
        others = np.flatnonzero((table["query_id"] != table["query_id"][-1]).to_numpy())
        cut = int(others[-1]) + 1 if len(others) else 0
        if cut:
            yield pl.concat([*rest, table[:cut]])
            rest = []
        elif rest and rest[-1]["query_id"][-1] != table["query_id"][0]:
            yield pl.concat(rest)
            rest = []
        rest.append(table[cut:])
    if not rest:
        raise InputError(path, "the file has no line")
    yield pl.concat(rest)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Query groups of a chunk: positives first, then negatives, query by query."""

    query_id: pl.Series
    starts: Array
    """[Q + 1]: where the documents of each query begin."""
    positives: Array
    """[Q]: how many of them are positives."""
    place: Array
    """[T]: where each document stands in the collection."""
    label: Array
    """[T]: its grade, 0 for a negative."""
    doc_id: pl.Series


class _Sampler:
    """Samples chunk by chunk, and keeps the manifest's rows."""

    def __init__(
        self,
        qrels: pl.DataFrame,
        documents: _Documents,
        settings: _Settings,
        depth: int,
        queries: pl.DataFrame | None,
        run: str,
    ) -> None:
        self.qrels = qrels.select(pl.col("query_id", "doc_id").cast(pl.String), pl.col("relevance").cast(pl.Int32))
        self.qrels = self.qrels.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
        self.documents = documents
        self.settings = settings
        self.depth = depth
        self.run = run
        self.known = None if queries is None else IdIndex([queries["query_id"].cast(pl.String)])
        self.left_out = {"without_relevant": 0, "without_candidate": 0}
        self.parts: list[pl.DataFrame] = []
        self.without_text = _Absent("queries of the run have no text")
        self.not_found = _Absent(f"documents of the run are not in {documents.source}")
        self.relevant_not_found = _Absent(f"judged relevant documents are not in {documents.source}")

    def groups(self, chunk: pl.DataFrame) -> _Groups:
        """The query groups of some whole queries of a ranked run."""
        names = chunk["query_id"].filter(chunk["rank"] == 1)
        if self.known is not None:
            self.without_text.note(names, self.known.places(names))
        numbered = names.to_frame().with_row_index("query")
        judged = self.qrels.join(numbered, on="query_id", how="inner", maintain_order="left")
        top = chunk.filter(pl.col("rank") <= self.depth)
        top = top.select(pl.col("query_id").rle_id().alias("query"), "query_id", "doc_id")
        rest = top.join(judged, on=["query", "doc_id"], how="anti", maintain_order="left")
        relevant = judged.filter(pl.col("relevance") >= 1)
        positives, found = (np.bincount(t["query"].to_numpy(), minlength=len(names)) for t in (relevant, rest))
        kept = (positives > 0) & (found > 0)
        self.left_out["without_relevant"] += int((positives == 0).sum())
        self.left_out["without_candidate"] += int(((positives > 0) & (found == 0)).sum())
        if not kept.all():
            relevant = relevant.filter(pl.Series(kept[relevant["query"].to_numpy()]))
            rest = rest.filter(pl.Series(kept[rest["query"].to_numpy()]))
        # A copy: a long id may keep its whole chunk in memory.
        names = pl.Series("query_id", names.filter(pl.Series(kept)).to_list(), dtype=pl.String)
        positives, found = positives[kept], found[kept]

        index = self.documents.index
        places, of_relevant = index.places(rest["doc_id"]), index.places(relevant["doc_id"])
        self.not_found.note(rest["doc_id"], places)
        self.relevant_not_found.note(relevant["doc_id"], of_relevant)
        values = self.documents.beta[places]
        starts = np.append(0, np.cumsum(found))
        rows, biased = _draw(rest["query_id"], rest["doc_id"], starts, values, self.settings)
        taken = np.minimum(found, self.settings.n)
        number = np.repeat(np.arange(len(names)), taken)
        self._note(names, found, values, np.repeat(np.arange(len(names)), found), rows, biased, number)

        # In one stable sort by query the positives come first.
        of_positive = np.unique(relevant["query"].to_numpy(), return_inverse=True)[1] if relevant.height else number[:0]
        order = np.argsort(np.concatenate([of_positive, number]), kind="stable")
        return _Groups(
            names,
            np.append(0, np.cumsum(positives + taken)),
            positives,
            np.concatenate([of_relevant, places[rows]])[order],
            np.concatenate([relevant["relevance"].to_numpy(), np.zeros(len(rows), np.int32)])[order],
            pl.concat([relevant["doc_id"], rest["doc_id"].gather(rows)]).gather(order),
        )

    def _note(
        self,
        names: pl.Series,
        found: Array,
        values: Array,
        of_candidate: Array,
        rows: Array,
        biased: Array,
        of_row: Array,
    ) -> None:
        def count(query: Array) -> Array:
            return np.bincount(query, minlength=len(names))

        def mean(query: Array, value: Array, number: Array) -> Array:
            with np.errstate(invalid="ignore"):
                result: Array = np.bincount(query, value, minlength=len(names)) / number
            return result

        parts = {"biased": biased, "random": ~biased}
        counts = {part: count(of_row[mask]) for part, mask in parts.items()}
        means = {part: mean(of_row[mask], values[rows[mask]], counts[part]) for part, mask in parts.items()}
        columns = {
            "query_id": names,
            "candidates": found,
            **counts,
            "short": self.settings.n - np.minimum(found, self.settings.n),
            "gendered": count(of_candidate[values > 0]),
        }
        table = pl.DataFrame(columns).with_columns(pl.exclude("query_id").cast(pl.Int32))
        self.parts.append(
            table.with_columns(
                pl.Series("beta_biased", means["biased"], dtype=pl.Float64),
                pl.Series("beta_random", means["random"], dtype=pl.Float64),
                pl.Series("beta_candidates", mean(of_candidate, values, found), dtype=pl.Float64),
            )
        )

    def per_query(self) -> pl.DataFrame:
        """One row a query that has negatives, in the run's order."""
        return pl.concat(self.parts)

    def check(self) -> None:
        """Raises EvenrankError for what the chunks lacked, and where every query was left out."""
        for absent in (self.without_text, self.not_found, self.relevant_not_found):
            absent.refuse()
        if not any(part.height for part in self.parts):
            message = f"no query has both a judged relevant document and an unjudged one in its first {self.depth}"
            raise EvenrankError(f"run {self.run}: {message}")


class _Absent:
    """Ids that were looked for in vain, each once."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._ids = [pl.Series(dtype=pl.String)]
        self._once = 0

    def note(self, ids: pl.Series, places: Array) -> None:
        """Keeps those of ``ids`` whose place is −1."""
        if (places < 0).any():
            self._ids.append(ids.filter(pl.Series(places < 0)).unique(maintain_order=True))
            if sum(map(len, self._ids)) > 2 * self._once + _PART:
                self._unite()

    def _unite(self) -> pl.Series:
        ids = pl.concat(self._ids).unique(maintain_order=True)
        self._ids, self._once = [ids], len(ids)
        return ids

    def refuse(self) -> None:
        """Raises EvenrankError where there is one."""
        ids = self._unite()
        if len(ids):
            raise EvenrankError(f"{len(ids)} {self.what}: {', '.join(map(shown, ids[:5]))}")


def _counted(groups: Iterable[_Groups], advance: Any) -> Iterator[_Groups]:
    for chunk in groups:
        advance(len(chunk.query_id))
        yield chunk


# --- writing -------------------------------------------------------------------------------------------------------


class _Writer:
    """Tables one after the other into a Parquet or JSONL file."""

    def __init__(self, path: Path, suffix: str) -> None:
        self.path, self.suffix = path, suffix
        self.rows = 0
        self._parquet: Any = None
        self._lines: IO[bytes] | None = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *error: object) -> None:
        for stream in filter(None, (self._parquet, self._lines)):
            stream.close()

    def write(self, table: Any) -> None:
        """Appends a table (pyarrow)."""
        import pyarrow.parquet as pq

        if not table.num_rows:
            return
        self.rows += table.num_rows
        if self.suffix == ".jsonl":
            self._lines = self._lines or self.path.open("wb")
            frame = pl.from_arrow(table)
            assert isinstance(frame, pl.DataFrame)
            frame.write_ndjson(self._lines)
            return
        self._parquet = self._parquet or pq.ParquetWriter(self.path, table.schema, compression="zstd")
        self._parquet.write_table(table)


def _group_table(groups: _Groups, sign: Array | None) -> Any:
    import pyarrow as pa

    lists = {"doc_id": _arrow(groups.doc_id), "label": pa.array(groups.label, pa.int32())}
    if sign is not None:
        lists["group"] = pa.array(sign[groups.place], pa.int8())
    starts = pa.array(groups.starts, pa.int32())
    columns = {name: pa.ListArray.from_arrays(starts, values) for name, values in lists.items()}
    return pa.table({"query_id": _arrow(groups.query_id), **columns})


def _arrow(texts: pl.Series) -> Any:
    import pyarrow as pa

    return texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())


def _write_texts(
    groups: list[_Groups],
    writer: _Writer,
    format: str,
    n: int,
    index: IdIndex,
    collection: PathLike | pl.DataFrame,
    queries: pl.DataFrame,
    folder: Path,
) -> None:
    """The formats that hold texts: what is wanted of the collection goes to a file first, to be taken from there."""
    import pyarrow as pa

    known = IdIndex([queries["query_id"].cast(pl.String)])
    query_texts = queries["text"]
    with _TextFile(folder) as texts:
        texts.fill([chunk.place for chunk in groups], index, collection)
        for chunk in groups:
            asked = query_texts.gather(known.places(chunk.query_id))
            # Parts of whole queries with some ten thousand texts.
            cuts = np.unique(np.searchsorted(chunk.starts, np.arange(0, chunk.starts[-1] + _TEXTS, _TEXTS)))
            cuts = cuts.clip(max=len(chunk.query_id))
            for start, end in itertools.pairwise(np.unique(np.append(0, cuts)).tolist()):
                first, last = chunk.starts[start], chunk.starts[end]
                starts, place = chunk.starts[start : end + 1] - first, chunk.place[first:last]
                label, query = chunk.label[first:last], _arrow(asked[start:end])
                if format == "labeled-list":
                    offsets = pa.array(starts, pa.int32())
                    docs = pa.ListArray.from_arrays(offsets, texts.take(place))
                    labels = pa.ListArray.from_arrays(offsets, pa.array(label, pa.int32()))
                    writer.write(pa.table({"query": query, "docs": docs, "labels": labels}))
                elif format == "labeled-pair":
                    of_query = np.repeat(np.arange(end - start), np.diff(starts))
                    relevant = pa.array((label >= 1).astype(np.float32), pa.float32())
                    columns = {"query": query.take(pa.array(of_query)), "passage": texts.take(place), "label": relevant}
                    writer.write(pa.table(columns))
                else:
                    writer.write(_tuples(query, starts, chunk.positives[start:end], place, n, texts))


def _tuples(query: Any, starts: Array, positives: Array, place: Array, n: int, texts: _TextFile) -> Any:
    import pyarrow as pa

    enough = np.flatnonzero(np.diff(starts) - positives == n)
    of_query = np.repeat(enough, positives[enough])
    begins = np.cumsum(positives[enough]) - positives[enough]
    nth = np.arange(len(of_query)) - np.repeat(begins, positives[enough])
    columns = {"anchor": query.take(pa.array(of_query)), "positive": texts.take(place[starts[of_query] + nth])}
    first = starts[of_query] + positives[of_query]
    for number in range(n):
        columns[f"negative_{number + 1}"] = texts.take(place[first + number])
    return pa.table(columns)


class _TextFile:
    """Texts of some documents in a file without a name, which the system may keep in memory or not."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed on leaving
        self._slot = np.zeros(0, np.int32)
        self._texts: Any = None

    def __enter__(self) -> _TextFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._texts = None
        self._file.close()

    def fill(self, places: list[Array], index: IdIndex, collection: PathLike | pl.DataFrame) -> None:
        """Writes the texts of the documents at ``places`` of the index. Raises EvenrankError where some are lacking."""
        import mmap

        import pyarrow as pa

        wanted = np.zeros(max((int(part.max()) for part in places if len(part)), default=-1) + 1, dtype=bool)
        for part in places:
            wanted[part] = True
        self._slot = np.full(len(wanted), -1, np.int32)
        lengths, count = [np.zeros(1, np.int64)], 0
        for batch in _texts_of(collection):
            place = index.places(batch["doc_id"])
            chosen = np.flatnonzero((place >= 0) & (place < len(wanted)))
            chosen = chosen[wanted[place[chosen]]]
            data, begins = _bytes(batch["text"].gather(chosen))
            self._file.write(data[begins[0] : begins[-1]].tobytes())
            self._slot[place[chosen]] = np.arange(count, count + len(chosen))
            count += len(chosen)
            lengths.append(np.diff(begins))
        lacking = int((wanted & (self._slot < 0)).sum())
        if lacking:
            source = "the collection" if isinstance(collection, pl.DataFrame) else os.fspath(collection)
            raise EvenrankError(f"{lacking} of the scored documents are not in {source}")
        self._file.flush()
        offsets = np.cumsum(np.concatenate(lengths))
        stored = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) if offsets[-1] else b""
        self._texts = pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(stored))

    def take(self, places: Array) -> Any:
        """The texts of the documents at ``places``, as a pyarrow column."""
        import pyarrow as pa

        return self._texts.take(pa.array(self._slot[places])).cast(pa.string())
