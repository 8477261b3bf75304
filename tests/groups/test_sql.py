"""A lexicon as SQL: DuckDB's counts are those of ``evenrank score``, and the other databases get the same query."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError, SyntheticConfig, generate, lexicon_sql
from evenrank.groups import Scoring, load_lexicon, score_texts

ODD = {
    "f": ["she", "ex wife", "Straße", "woman", "MÜTTER"],
    "m": ["he", "wife", "don't", "o'neil's"],
    "rather 'long'": ["wife of he", "ﬁsh", "ς"],
}
WRITTEN = (
    "she She’s ex wife ex-wife STRASSE straße STRAẞE ſhe ﬁsh FISH woman's WOMAN’LL womanʼs woman's's mütter MÜTTER "
    "Mu\u0308tter he HE don't DON'T don' 'he' he'd've o'neil O＇NEIL'S of \n _ - 12 İ girl she\u0301 s 's ’ '' ς Σ σ "
    "K \U000e0101 x / // ŉ 你 ⓢ she'LL' he'ſ \U0001f600 |"
)
PARTS = WRITTEN.split(" ")


def counted(texts: pl.DataFrame, **options: Any) -> dict[str, tuple[object, ...]]:
    """What DuckDB says of each document."""
    with duckdb.connect() as base:
        base.execute("CREATE TABLE docs (doc_id VARCHAR, text VARCHAR)")
        base.executemany("INSERT INTO docs VALUES (?, ?)", texts.rows())
        return {row[0]: row[1:] for row in base.sql(lexicon_sql(**options)).fetchall()}


def scored(texts: pl.DataFrame, lexicon: Any) -> dict[str, tuple[object, ...]]:
    table = score_texts(texts, Scoring(load_lexicon(lexicon), magnitudes=()))
    return {row[0]: row[1:] for row in table.rows()}


@pytest.mark.parametrize("lexicon", ["gender-en", "religion-en"])
def test_duckdb_counts_as_score_does(lexicon: str) -> None:
    texts = generate(SyntheticConfig(passages=300)).collection
    found = counted(texts, lexicon=lexicon)
    assert len(found) == 300
    assert found == scored(texts, lexicon)


def test_phrases_clitics_and_odd_letters() -> None:
    draw = random.Random(0)
    rows = [
        (f"d{row}", "".join(draw.choice(PARTS) + draw.choice(["", " ", "'", "’"]) for _ in range(draw.randint(0, 14))))
        for row in range(1000)
    ]
    texts = pl.DataFrame([*rows, ("none", None)], schema={"doc_id": pl.String, "text": pl.String}, orient="row")
    found = counted(texts, lexicon=ODD)
    assert found == scored(texts, ODD)
    assert found["none"] == (0, 0, 0, 0, 1.0)
    assert min(sum(row[place] for row in found.values()) for place in (1, 2, 3)) > 50


def test_the_result_is_a_score_table(tmp_path: Path) -> None:
    made = generate(SyntheticConfig(passages=300))
    run = made.qrels.with_columns(score=1.0).select("query_id", "doc_id", "score")
    path = tmp_path / "scores.parquet"
    with duckdb.connect() as base:
        base.register("docs", made.collection.to_arrow())
        base.execute(f"COPY ({lexicon_sql('gender-en')}) TO '{path}' (FORMAT parquet)")
    by_sql, by_words = (
        evenrank.audit({"r": run}, qrels=made.qrels, **groups)
        for groups in ({"scores": path}, {"collection": made.collection})
    )
    for measure in ("NFaiRR@10", "ARaB@10"):
        assert by_sql["r", measure].mean == pytest.approx(by_words["r", measure].mean, abs=1e-12)


LEXICON = {"f": ["she", "ex wife"], "m": ["he"]}


@pytest.mark.parametrize("dialect", ["duckdb", "bigquery", "spark"])
def test_each_database_in_its_own_words(dialect: Any, snapshot: Any) -> None:
    query = lexicon_sql(LEXICON, dialect=dialect, table="web.pages", id_column='a"b.id')
    assert query.replace(evenrank.__version__, "X") == snapshot


@pytest.mark.parametrize(
    "options",
    [
        {"table": "a..b"},
        {"text_column": "a\nb"},
        {"dialect": "bigquery", "id_column": "a`b"},
        {"dialect": "bigquery", "lexicon": {"a\\": ["x"], "b": ["y"]}},
        {"dialect": "mysql"},
    ],
)
def test_what_no_name_can_be(options: dict[str, Any]) -> None:
    with pytest.raises(EvenrankError, match=r"cannot be the name of a table or a column|`dialect`"):
        lexicon_sql(**{"lexicon": LEXICON, **options})


def test_a_name_cannot_leave_its_comment() -> None:
    first, second, *_ = lexicon_sql(replace(load_lexicon(LEXICON), name="x\nDROP TABLE docs; --")).split("\n")
    assert first.startswith("-- x�DROP TABLE docs")
    assert second.startswith("SELECT doc_id")


def test_the_command_prints_it(evenrank: Callable[..., Any]) -> None:
    ended = evenrank("lexicon", "sql", "gender-en", "--table", "web.pages")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == lexicon_sql("gender-en", table="web.pages") + "\n"
