"""Any damage to any file: every reader gives a right answer or says, in a line, what is wrong."""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenrank.files import EvenrankError, InputError, read_qrels, read_queries, read_run, reading
from evenrank.files.squad import load_squad
from evenrank.groups import GroupTable, load_lexicon, read_group_table
from evenrank.search import read_sets, read_vectors, read_word_list
from evenrank.training.recipes import load_recipe

pytest.importorskip("torch")

from damage import collection, damaged, told
from evenrank.training.lists import read_list_file

RUN = b"q1 Q0 d1 1 3.5 t\nq1 Q0 d2 2 2 t\nq2 Q0 d\xc3\xa9 1 2e-3 t\nq2 Q0 d3 2 -1 t\n"
QRELS = b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d\xc3\xa9 3\nq2 0 d3 -1\n"
TSV = b"d1\tShe and her\nd2\tHe said\nd\xc3\xa9\tna\xc3\xafve \xe2\x80\xa8 text\nd4\t\n"
JSONL = "".join(
    json.dumps(row, ensure_ascii=False) + "\n"
    for row in ({"id": "d1", "text": "She"}, {"_id": 2, "title": "Hé", "text": "said"}, {"docno": "d3", "body": ""})
).encode()
LINES = b"word,group\nshe,f\nher,f\nhe,m\nna\xc3\xafve,m\n"
TOML = (
    'name = "own"\ngroups = ["f", "m"]\npoles = ["m", "f"]\n[shares]\nf = 0.5\nm = 0.5\n'
    '[words]\nf = ["she", "her"]\nm = ["he", "é"]\n'
).encode()
ASKED = {"id": "q1", "question": "where", "answers": [{"text": "Rome", "answer_start": 11}]}
UNASKED = {"id": "q2", "question": "who", "answers": []}
PARAGRAPHS = [{"context": "Hé runs to Rome.", "qas": [ASKED]}, {"context": "none", "qas": [UNASKED]}]
SQUAD = json.dumps({"data": [{"title": "t", "paragraphs": PARAGRAPHS}]}, ensure_ascii=False).encode()
VECTORS = b"4 3\nshe 0.5 1 -2\nhe 1e-3 2 3\n\xc3\xa9 0 0 1\nking 4 5 6\n"
GLOVE = VECTORS.partition(b"\n")[2]
BINARY = b"4 3\n" + b"".join(
    word + b" " + np.array(numbers, dtype="<f4").tobytes() + b"\n"
    for word, numbers in ((b"she", [0.5, 1, -2]), (b"he", [1, 2, 3]), (b"\xc3\xa9", [0, 0, 1]), (b"king", [4, 5, 6]))
)
SETS = '[["she", "he"], ["her", "his"], ["é", "e"]]\n'.encode()
WORDS = '["actress",\n "aunt", "é"]\n'.encode()
GROUPS = (
    b'{"query_id": "q1", "doc_id": ["d1", "d2"], "label": [1, 0]}\n'
    b'{"query_id": "q2", "doc_id": ["d3", "d1"], "label": [2.0, 0.5]}\n'
)
RECIPE = (
    b'name = "small"\n[ranker]\nkind = "knrm"\n[data]\ncollection = "c"\nqueries = "q"\nqrels = "r"\nrun = "s"\n'
    b'[validation]\nqueries = "q"\nqrels = "r"\nrun = "s"\n[training]\nepochs = 2\nbatch = 4\n'
)


def parquet(table: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    table.write_parquet(stream)
    return stream.getvalue()


TEXTS = pl.DataFrame({"doc_id": ["d1", "d2"], "text": ["She", "Hé"], "title": ["a", None]})
COUNTS = {"tokens": [2, 3], "count_f": [1, 0], "count_m": [0, 2], "neutrality": [1, 0]}
SCORES = pl.DataFrame({"doc_id": ["a", "b"], **COUNTS})
LISTS = pl.DataFrame({"query_id": ["q"], "doc_id": [["a", "b"]], "label": [[1.0, 0.0]]})
READERS: dict[str, tuple[Callable[[Path], Any], str, tuple[bytes, ...]]] = {
    "run": (read_run, "run", (RUN, RUN.replace(b" ", b"\t"))),
    "qrels": (read_qrels, "qrels", (QRELS, QRELS.replace(b" ", b"  "))),
    "queries": (read_queries, "queries.tsv", (TSV, JSONL)),
    "collection": (collection, "collection.tsv", (TSV, JSONL)),
    "parquet collection": (collection, "collection.parquet", (parquet(TEXTS),)),
    "scores": (read_group_table, "scores.parquet", (parquet(SCORES),)),
    "lexicon": (load_lexicon, "lexicon.csv", (LINES,)),
    "TOML lexicon": (load_lexicon, "lexicon.toml", (TOML,)),
    "squad": (load_squad, "squad.json", (SQUAD,)),
    "text vectors": (read_vectors, "vectors.txt", (VECTORS, GLOVE)),
    "binary vectors": (read_vectors, "vectors.bin", (BINARY,)),
    "word sets": (read_sets, "sets.json", (SETS,)),
    "word list": (read_word_list, "words.json", (WORDS,)),
    "groups": (read_list_file, "groups.jsonl", (GROUPS,)),
    "parquet groups": (read_list_file, "groups.parquet", (parquet(LISTS),)),
    "recipe": (load_recipe, "recipe.toml", (RECIPE,)),
}


@pytest.mark.parametrize("name", READERS)
def test_any_damage(tmp_path: Path, name: str) -> None:
    read, file, contents = READERS[name]
    path = tmp_path / file
    answers = 0
    for seed in range(80):
        drawn = random.Random(f"{name} {seed}")
        content = drawn.choice(contents)
        path.write_bytes(damaged(drawn, content) if seed else content)
        answers += told(read, path)[1] == ""
    # Some damage is none: had nothing been read, nothing would have been tested.
    assert answers > 1


def test_what_stands_in_a_message_cannot_move_the_cursor() -> None:
    assert str(EvenrankError("a\x1b[2J\nb\u202e\u2028é")) == r"a\x1b[2J\nb\u202e\u2028é"


# --- Parquet whose columns, values or settings are not what they say -------------------------------------------------


def strings(*values: bytes) -> pa.Array:
    """A column that says it is UTF-8, whatever it holds."""
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


LATIN, PLAIN = strings(b"d1", b"d\xe9"), strings(b"d1", b"d2")
NEUTRAL = {"neutrality": [1.0, 1.0], "count_f": [1, 2], "count_m": [0, 0]}
PAIR, DAMAGED = [["a", "b"]] * 2, "damaged Parquet file ("


@pytest.mark.parametrize(
    ("read", "columns", "said"),
    [
        (collection, {"doc_id": PLAIN, "text": LATIN}, f": {DAMAGED}"),
        (collection, {"doc_id": LATIN.dictionary_encode(), "text": PLAIN}, f": {DAMAGED}"),
        (read_group_table, {"doc_id": LATIN, **NEUTRAL}, ": no Parquet file that can be read ("),
        (read_list_file, {"query_id": LATIN, "doc_id": PAIR, "label": [[0, 1]] * 2}, f": {DAMAGED}"),
        (read_list_file, {"query_id": PLAIN, "doc_id": PLAIN, "label": [[0, 1]] * 2}, ": expected query_id, and lists"),
        (read_list_file, {"query_id": PLAIN, "doc_id": [["a", "b"], ["a", None]], "label": [[0, 1]] * 2},
         ", line 2: query 'd2': a query_id, a doc_id or a label is missing"),
        (read_list_file, {"query_id": PLAIN, "doc_id": PAIR, "label": [[0, 1], [2, math.nan]]},
         ", line 2: query 'd2': a label is no finite number"),
    ],
)  # fmt: skip
def test_parquet_that_is_no_text(tmp_path: Path, read: Callable[[Path], Any], columns: Any, said: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "file")
    assert told(read, tmp_path / "file")[1].startswith(f"{tmp_path}/file{said}")


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("neutrality", [1.0, 1.5], "the document 'b': expected a number from 0 to 1 in neutrality, found 1.5"),
        ("count_f", [1, -1], "the document 'b': expected 0 or more in count_f, found -1"),
        ("magnitude_tf_f", [0.0, 1e300], "the document 'b': expected 1e+09 at most in magnitude_tf_f, found 1e+300"),
        ("magnitude_tf_f", [float("inf"), 0], "the document 'a' has no finite number in magnitude_tf_f"),
        ("count_m", [True, False], "expected numbers in count_m, found Boolean"),
        ("count_m", [object(), 1], "expected numbers in count_m, found Object"),
    ],
)
def test_values_that_no_scoring_gives(tmp_path: Path, column: str, values: list[Any], message: str) -> None:
    table = SCORES.with_columns(pl.Series(column, values, dtype=pl.Object if "Object" in message else None))
    with pytest.raises(EvenrankError) as caught:
        GroupTable.of(table)
    assert str(caught.value).startswith(message)
    if "Object" not in message:
        table.write_parquet(tmp_path / "s")
        with pytest.raises(InputError) as of_file:
            read_group_table(tmp_path / "s")
        assert str(of_file.value) == f"{tmp_path}/s: {caught.value}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("shares", value) for value in ("[1]", "[NaN, 0.5]", "[2, -1]", "1", '["x", "y"]', "[" * 100_000)),
        *(("poles", value) for value in ('["f", "f"]', '"mf"', '["m", "x"]', '["m"]')),
    ],
    ids=lambda value: value[:24],
)
def test_settings_of_scores(tmp_path: Path, name: str, value: str) -> None:
    settings = {"evenrank": f'{{"{name}": {value}}}'}
    pq.write_table(SCORES.to_arrow().replace_schema_metadata(settings), tmp_path / "s")
    said = told(read_group_table, tmp_path / "s")[1]
    assert said == f"{tmp_path}/s: damaged: its settings do not fit its groups"


# --- Parquet that panics an engine, and whatever an engine raises ----------------------------------------------------

TABLES: dict[str, tuple[Callable[[Path], Any], pl.DataFrame]] = {
    "collection": (collection, TEXTS),
    "scores": (read_group_table, SCORES),
    "groups": (read_list_file, LISTS),
}


def test_batches_that_end_early_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As they do where polars panics in one of its threads.
    TABLES["scores"][1].write_parquet(tmp_path / "x")
    monkeypatch.setattr(pl.LazyFrame, "collect_batches", lambda *_, **__: iter([]))
    with pytest.raises(InputError, match="its pages do not hold the rows that it says it has"):
        read_group_table(tmp_path / "x")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (pl.exceptions.PanicException("called `unwrap`\nat a line"), r"\(called `unwrap`\)"),
        (AttributeError("odd"), r"\(odd\)"),
        (MemoryError(), "or one that needs more memory than is available"),
        # An interrupt is no damage.
        (KeyboardInterrupt(), None),
        (SystemExit(), None),
    ],
)
def test_whatever_an_engine_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, raised: BaseException, message: str | None
) -> None:
    read, table = TABLES[name]
    table.write_parquet(tmp_path / "x")

    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(reading.ParquetFile, "__init__", fail)
    expected = InputError if message else type(raised)
    with pytest.raises(expected, match=rf"^{tmp_path}/x: .*{message}$" if message else None):
        read(tmp_path / "x")
