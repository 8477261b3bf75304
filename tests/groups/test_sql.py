"""A lexicon as SQL: DuckDB's counts are those of ``evenrank score``, and the other databases get the same query."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import duckdb
import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError, lexicon_sql
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


def test_duckdb_counts_as_score_does() -> None:
    """Phrases, clitics and odd letters."""
    draw = random.Random(0)
    rows = [
        (f"d{row}", "".join(draw.choice(PARTS) + draw.choice(["", " ", "'", "’"]) for _ in range(draw.randint(0, 14))))
        for row in range(1000)
    ]
    texts = pl.DataFrame([*rows, ("none", None)], schema={"doc_id": pl.String, "text": pl.String}, orient="row")
    with duckdb.connect() as base:
        base.register("docs", texts.to_arrow())
        found = base.sql(lexicon_sql(ODD)).pl().sort("doc_id")
    counted = score_texts(texts, Scoring(load_lexicon(ODD), magnitudes=())).sort("doc_id")
    assert (found.columns, found.rows()) == (counted.columns, counted.rows())
    assert found.row(-1) == ("none", 0, 0, 0, 0, 1.0)
    assert found.drop("doc_id", "tokens", "neutrality").sum().min_horizontal().item() > 50


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
