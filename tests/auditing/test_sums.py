"""A log of rankings in a warehouse: an audit of DuckDB's sums is that of the log."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import evenrank
from evenrank import EvenrankError, GroupTable, audit_sql, audit_sums
from evenrank.cli import main
from evenrank.groups import neutrality

MEASURES = (
    "ARaB@10 ARaB(magnitude='bool',poles='f,m')@3 RaB(magnitude='count')@5 FaiRR@10 Share(group='f')@10"
    " Share(group='m')@40"
)
WORDS = ("nurse", "Nurse!", "boss of men", "men of boss", "cook", "king", "maid", "judge")


def log_of(seed: int, views: int = 60, longest: int = 14, spread: int = 6) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A log of rankings with the words of each view, and its documents' group table; few lists are all of a kind."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (30, 2)) * (rng.random((30, 2)) < rng.random())
    documents = pl.DataFrame({"doc_id": [f"d{row}" for row in range(30)], "count_f": counts[:, 0]})
    documents = documents.with_columns(
        pl.Series("count_m", counts[:, 1]), pl.Series("neutrality", neutrality(counts, [0.5, 0.5]))
    )
    rows = []
    for view in range(views):
        query = f"{WORDS[rng.integers(len(WORDS))]} {rng.integers(spread)}"
        ranked = rng.permutation(30)[: rng.integers(1, longest + 1)]
        rows += [(f"v{view}", query, f"d{row}", rank) for rank, row in enumerate(ranked, start=1)]
    return pl.DataFrame(rows, schema=["query_id", "query", "doc_id", "rank"], orient="row"), documents


def summed(path: Path, log: pl.DataFrame, documents: pl.DataFrame, table: str = "scores", **options: Any) -> Path:
    """What DuckDB makes of a log, as the file ``path``."""
    with duckdb.connect() as base:
        base.register("rankings", log.to_arrow())
        base.register(table, documents.to_arrow())
        base.execute(f"COPY ({audit_sql('duckdb', **options)}) TO '{path}'")
    return path


def audited(log: pl.DataFrame, measures: str, **groups: Any) -> evenrank.AuditResult:
    run = log.select("query_id", "doc_id", score=-pl.col("rank").cast(pl.Float64))
    texts = log.select("query_id", text="query").unique("query_id")
    return evenrank.audit({"log": run}, measures=measures, queries=texts, **groups)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list | tuple):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, f"{path}.{key}")
    else:
        yield path, value


def assert_same(found: evenrank.AuditResult, expected: evenrank.AuditResult) -> None:
    """The same figures, intervals and tests to 1e-12."""
    of_runs = [
        [[fields["runs"][name] for name in ("log", "random")], fields.get("shares")]
        for fields in (found.to_dict(), expected.to_dict())
    ]
    own, other = (dict(leaves(one)) for one in of_runs)
    # Bounds are of labels, all of which the sums know.
    for key in (key for key in own if not key.endswith(".bounds")):
        assert own[key] == other[key] or math.isclose(own[key], other[key], rel_tol=1e-12, abs_tol=1e-12), key


@settings(max_examples=8, deadline=None, phases=[Phase.generate])
@given(st.integers(0, 10**6), st.integers(2, 120), st.integers(1, 25), st.integers(1, 12))
def test_sums_are_audited_as_the_log(
    tmp_path_factory: pytest.TempPathFactory, seed: int, views: int, longest: int, spread: int
) -> None:
    log, documents = log_of(seed, views, longest, spread)
    path = summed(tmp_path_factory.mktemp("sums") / "log.parquet", log, documents, measures=MEASURES)
    # How far other documents lean is not known of sums.
    scores = replace(GroupTable.of(documents, {"lexicon": "gender-en", "poles": ["m", "f"]}), partial=True)
    expected = audited(log, MEASURES, scores=scores)
    found = audit_sums(path)
    assert_same(found, expected)
    assert found["log"].queries == found.n == views


def test_labels_and_upper_case_csv(tmp_path: Path) -> None:
    log, documents = log_of(1, 80)
    labels = documents.select("doc_id", group=pl.Series(["a", "b", "c"] * 10))
    options = {"group_column": "group", "poles": "b,a"}
    path = summed(tmp_path / "log.csv", log, labels, "labels", **options)
    head, _, rest = path.read_text().partition("\n")
    path.write_text(f"{head.upper()}\n{rest}")
    found = audit_sums(f"log={path}")
    measures = "ARaB@10 Share(group='b')@10 Share(group='a')@10"
    assert [str(measure) for measure in found.measures] == measures.split()
    assert_same(found, audited(log, measures, labels=labels, poles="b,a"))


def test_logs_without_sums_are_refused(tmp_path: Path) -> None:
    log, documents = log_of(2)
    rank, first = pl.col("rank"), pl.col("query_id") == "v3"
    doc_id = log.filter(first)["doc_id"]
    cases = {
        "the ranks of 1 view are not 1, 2, 3": log.vstack(
            log.filter(first & (rank == 1)).with_columns(doc_id=pl.lit("d0"))
        ),
        "the ranks of 60 views are not 1, 2, 3": log.with_columns(rank=rank - 1),
        "1 row of the log is of a document without a group": log.with_columns(
            doc_id=pl.when(first & (rank == 1)).then(pl.lit("d99")).otherwise(pl.col("doc_id"))
        ),
        "a document stands twice in 1 view": log.filter(first).with_columns(
            doc_id=pl.col("doc_id").replace(doc_id[1], doc_id[0])
        ),
        "has no rows": log.clear(),
    }
    for message, wrong in cases.items():
        with pytest.raises(EvenrankError, match=message):
            audit_sums(summed(tmp_path / "log.parquet", wrong, documents))
    with pytest.raises(EvenrankError, match="a document stands twice in the group table"):
        audit_sums(summed(tmp_path / "log.parquet", log, documents.vstack(documents.head(9))))
    for column in ("neutrality", "count_m"):
        unknown = documents.with_columns(
            pl.when(pl.col("doc_id") == doc_id[0]).then(None).otherwise(column).alias(column)
        )
        with pytest.raises(EvenrankError, match="of the log are of a document without a group"):
            audit_sums(summed(tmp_path / "log.parquet", log, unknown, measures="FaiRR@10 ARaB@10 FaiRR@5"))


def test_labels_are_compared_as_texts_and_empty_ones_are_unknown(tmp_path: Path) -> None:
    log, documents = log_of(2)
    path, options = tmp_path / "log.parquet", {"group_column": "group", "poles": "1,0"}
    numbers = documents.select("doc_id", group=pl.Series([0, 1] * 15))
    assert audit_sums(summed(path, log, numbers, "labels", **options)).n == 60
    empty = numbers.with_columns(pl.col("group").cast(pl.String).replace("0", ""))
    with pytest.raises(EvenrankError, match="no document of the log is of group '0'"):
        audit_sums(summed(path, log, empty, "labels", **options))
    empty = numbers.with_columns(group=pl.when(pl.col("doc_id") == "d0").then(pl.lit("")).otherwise("group"))
    with pytest.raises(EvenrankError, match="of a document without a group"):
        audit_sums(summed(path, log, empty, "labels", **options))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value_1_sum": pl.lit("abc")}, "expected a number in each row of value_1_sum"),
        ({"value_1_sum": pl.lit(None, pl.Float64)}, "expected a number in each row of value_1_sum"),
        ({"sd_1_sum": pl.lit(float("nan"))}, "expected a number in each row of sd_1_sum"),
        ({"value_1_least": pl.lit("abc")}, "expected a number in each row of value_1_least"),
        ({"views": pl.col("views") + 0.5}, "expected a whole number in each row of views"),
        ({"settings": pl.lit("[1]")}, "expected the settings of one query"),
        ({"Query": pl.col("query")}, "two columns have names that differ in case alone"),
    ],
)
def test_files_that_are_no_sums_are_refused(tmp_path: Path, change: dict[str, pl.Expr], message: str) -> None:
    path = summed(tmp_path / "log.parquet", *log_of(2))
    pl.read_parquet(path).with_columns(**change).write_parquet(path)
    with pytest.raises(EvenrankError, match=message):
        audit_sums(path)


@pytest.mark.parametrize("text", [None, ""])
def test_no_gate_on_sums_and_the_views_of_each_query(tmp_path: Path, text: str | None) -> None:
    # Views without words are clusters of their own.
    log, documents = log_of(2)
    found = audit_sums(summed(tmp_path / "log.parquet", log.with_columns(query=pl.lit(text, pl.String)), documents))
    assert (found.queries.n_unique(), found.query_cluster) == (60, None)
    assert found.per_query()["views"].sum() == 2 * 60
    assert "<h2>Rankings</h2>" not in found.html()
    for audited in (found, found.to_dict()):
        with pytest.raises(EvenrankError, match="an audit of sums has no values of single views"):
            evenrank.gate(audited, budget={"rule": [{"measure": "ARaB@10", "at_most": 0.1}]})
    with pytest.raises(EvenrankError, match="sums by query have no values of single views"):
        found.to_json(values=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": "AWRF@10"}, r"AWRF@10 cannot be made of sums: expected ARaB, RaB, Share or, of words, FaiRR"),
        ({"measures": "NFaiRR@10"}, "NFaiRR@10 cannot be made of sums"),
        ({"measures": "|ARaB|@10"}, r"\|ARaB\|@10 cannot be made of sums"),
        ({"measures": "nDCG@10"}, "nDCG@10 cannot be made of sums"),
        ({"measures": "ARaB@5000"}, "ARaB@5000: expected a cutoff of 1000 at most"),
        ({"measures": "Share(group='x')@10"}, "no group 'x': the groups are f, m"),
        ({"lexicon": {"a": ["x"], "b": ["y"], "c": ["z"]}, "measures": "ARaB@10"}, r"which groups\? `poles='A,B'`"),
        ({"group_column": "g"}, "which groups"),
        ({"group_column": "g", "poles": "a,rest"}, "rest stands for all other groups, which are not known here"),
        ({"group_column": "g", "measures": "ARaB(poles='a,rest')@5"}, "rest stands for all other groups"),
        ({"group_column": "g", "measures": "FaiRR@10"}, "FaiRR@10 cannot be made of sums"),
        ({"group_column": "g", "poles": "a,b", "measures": "ARaB(magnitude='tf')@10"}, "labels have no words"),
        ({"group_column": ["g", "h"]}, "expected one column of groups, found 2"),
        ({"dialect": "oracle"}, "expected duckdb, bigquery, spark or postgres, found 'oracle'"),
    ],
)
def test_what_sums_cannot_have_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvenrankError, match=message):
        audit_sql(**{"dialect": "duckdb", **options})


@pytest.mark.parametrize("database", ["postgres", "bigquery", "spark"])
def test_the_query_of_a_database(database: Any, snapshot: Any) -> None:
    assert audit_sql(database) == snapshot


def test_the_command_prints_the_query_and_reads_the_sums(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = summed(tmp_path / "log.parquet", *log_of(4, 90))
    alone = log_of(4, 20)[0].with_columns(query="query_id")
    single = summed(tmp_path / "single.parquet", alone, log_of(4)[1])
    assert "clusters" not in audit_sums(single).table()
    other = tmp_path / "other.csv"
    other.write_text("query,n\nx,1\n")
    for options, text in {
        ("--sql", "duckdb"): audit_sql("duckdb"),
        ("--sums", str(path)): "90 views in",
        ("--sums", str(path), "--baseline", "x"): "--sums or --baseline: an audit is of runs",
        ("--sums", str(path), "--measures", "RaB@5"): "--sums or --measures: an audit is of runs",
        ("--sums", str(path), "--sums", str(path)): "expected one file, found 2: sums compare no runs",
        ("--sums", str(path), "--json", "-", "--values"): "--sums or --values",
        ("--sql", "duckdb", "--labels", str(path)): "--sql or --labels: an audit is of runs",
        ("--sql", "duckdb", "--full"): "--sql or --full: a query has no figures",
        ("--sql", "duckdb", "--group-column", "g"): "which groups? --poles A,B",
        ("--sums", str(other)): "expected what the query of `evenrank.audit_sql` returns",
    }.items():
        monkeypatch.setattr(sys, "argv", ["evenrank", "audit", *options])
        with suppress(SystemExit):
            main()
        assert text in "".join(capsys.readouterr())
