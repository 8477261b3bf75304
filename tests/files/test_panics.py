"""Parquet files that panic an engine, whatever an engine raises, and what a score table may hold."""

from __future__ import annotations

import decimal
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenrank.files import EvenrankError, InputError, reading
from evenrank.files import scan_collection as scan
from evenrank.groups import read_group_table


def groups(path: Path) -> Any:
    pytest.importorskip("torch")
    from evenrank.training.lists import read_list_file

    return read_list_file(path)


def texts(path: Path | str) -> pl.DataFrame:
    return pl.concat(list(scan(path)))


TABLES: dict[str, tuple[Callable[[Path], Any], pl.DataFrame]] = {
    "collection": (texts, pl.DataFrame({"doc_id": ["d1", "d2"], "text": ["She", "Hé"], "title": ["a", None]})),
    "scores": (
        read_group_table,
        pl.DataFrame(
            {"doc_id": ["a", "b"], "tokens": [2, 3], "count_f": [1, 0], "count_m": [0, 2], "neutrality": [1, 0]}
        ),
    ),
    "groups": (groups, pl.DataFrame({"query_id": ["q"], "doc_id": [["a", "b"]], "label": [[1.0, 0.0]]})),
}


def mutant(content: bytes, seed: str) -> bytes:
    """One to three bytes changed, four of five times in what the file says of itself, at its end."""
    drawn = random.Random(seed)
    damaged = bytearray(content)
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for _ in range(drawn.choice((1, 1, 1, 2, 3))):
        place = drawn.randrange(footer if drawn.random() < 0.8 else 4, len(content) - 8)
        damaged[place] = drawn.randrange(256) if drawn.random() < 0.5 else damaged[place] ^ (1 << drawn.randrange(8))
    return bytes(damaged)


@pytest.mark.parametrize("name", TABLES)
def test_damaged_parquet(tmp_path: Path, name: str) -> None:
    read, table = TABLES[name]
    path = tmp_path / "x.parquet"
    table.write_parquet(path)
    content = path.read_bytes()
    said = []
    # The last are those that make polars panic.
    for seed in (*range(140), 309, 312, 467, 525, 758, 1088):
        path.write_bytes(mutant(content, f"{name} {seed}"))
        try:
            read(path)
        except EvenrankError as error:
            said.append(str(error))
    assert all(re.match(rf"{path}(, line 1)?: ", message) for message in said)
    assert 10 < len(said) < 140


@pytest.mark.parametrize(("name", "column"), [("collection", "text"), ("scores", "count_f")])
def test_a_type_that_polars_does_not_know(tmp_path: Path, name: str, column: str) -> None:
    read, table = TABLES[name]
    arrow = table.to_arrow()
    wide: Any = pa.array([decimal.Decimal(1)] * table.height, pa.decimal256(50, 2))
    pq.write_table(arrow.set_column(arrow.column_names.index(column), column, wide), tmp_path / "x")
    with pytest.raises(InputError, match=rf"{tmp_path}/x: .*\(precision must be between 1 and 38, got 50\)"):
        read(tmp_path / "x")


def test_batches_that_end_early_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As they do where polars panics in one of its threads.
    TABLES["scores"][1].write_parquet(tmp_path / "x")
    monkeypatch.setattr(pl.LazyFrame, "collect_batches", lambda *_, **__: iter([]))
    with pytest.raises(InputError, match="its pages do not hold the rows that it says it has"):
        read_group_table(tmp_path / "x")


@pytest.mark.parametrize("name", ["collection", "scores", "groups"])
@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (pl.exceptions.PanicException("called `unwrap`\nat a line"), r"\(called `unwrap`\)"),
        (pl.exceptions.PanicException(""), r"\(PanicException\)"),
        (AttributeError("odd"), r"\(odd\)"),
        (MemoryError(), "or one that needs more memory than is available"),
    ],
)
def test_whatever_an_engine_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, raised: BaseException, message: str
) -> None:
    read, table = TABLES[name]
    table.write_parquet(tmp_path / "x")

    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(reading.ParquetFile, "__init__", fail)
    with pytest.raises(InputError, match=rf"^{tmp_path}/x: .*{message}$"):
        read(tmp_path / "x")


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: type) -> None:
    def stop(*_: object) -> None:
        raise raised

    TABLES["scores"][1].write_parquet(tmp_path / "x")
    monkeypatch.setattr(reading.ParquetFile, "__init__", stop)
    with pytest.raises(raised):
        read_group_table(tmp_path / "x")


def test_the_damaged_one_of_several_files_is_named(tmp_path: Path) -> None:
    for name in "abc":
        TABLES["scores"][1].with_columns(doc_id=pl.col("doc_id") + name).write_parquet(tmp_path / f"{name}.parquet")
    whole = (tmp_path / "b.parquet").read_bytes()
    # The first values are compressed.
    (tmp_path / "b.parquet").write_bytes(whole[:40] + b"\xff" * 20 + whole[60:])
    with pytest.raises(InputError) as caught:
        read_group_table(tmp_path)
    assert caught.value.path == str(tmp_path / "b.parquet")
