"""Functions of a batch: the same rows whatever the batch."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import evenrank
from dense_indexes import bi_encoder
from evenrank.files import InputError
from evenrank.groups import read_group_table
from tiny_models import texts, tiny_bert

ROWS = 40
Function = Callable[[pa.Table], pa.Table]


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    ids = [f"d{row}" for row in range(ROWS)]
    return pl.DataFrame({"doc_id": ids, "query": texts(ROWS, 4, seed=1), "text": texts(ROWS, 12)})


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Function]:
    pytest.importorskip("torch", reason="needs the extra [neural]")
    folder = tmp_path_factory.mktemp("models")
    encoder, cross = bi_encoder(folder / "bi", prompts=True), tiny_bert(folder / "cross", head=True)
    encode = functools.partial(evenrank.encode_batch, model=str(encoder), device="cpu")
    return {
        "score": functools.partial(evenrank.score_batch, lexicon="gender-en", magnitudes=("tf_words",)),
        "rerank": functools.partial(evenrank.rerank_batch, model=str(cross), kind="cross", device="cpu"),
        "encode": encode,
        "queries": functools.partial(encode, of="queries", id_column="doc_id", text_column="text"),
    }


NAMES = ["score", "rerank", "encode", "queries"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(2))
def test_rows_do_not_depend_on_the_batch(name, seed, table, functions):
    function = pickle.loads(pickle.dumps(functions[name]))
    whole = pl.DataFrame(functions[name](table.to_arrow()))
    cuts = np.sort(np.random.default_rng(seed).integers(0, ROWS, 6))
    bounds = zip([0, *cuts.tolist()], [*cuts.tolist(), ROWS], strict=True)
    # Some of the batches are empty, and one has a single row.
    parts = [function(table[start:stop].to_arrow()) for start, stop in [*bounds, (ROWS, ROWS)]]
    assert len({str(part.schema) for part in parts}) == 1
    together = pl.DataFrame(pa.concat_tables(parts))
    assert together.height == ROWS
    if name == "score":
        assert together.equals(whole)
        return
    number = "score" if name == "rerank" else "vector"
    assert together.drop(number).equals(whole.drop(number))
    values = [np.array(found[number].to_list()) for found in (together, whole)]
    np.testing.assert_allclose(*values, atol=1e-5)


def test_batches_are_what_the_commands_make(table, functions, tmp_path):
    collection = table.select("doc_id", "text")
    collection.write_parquet(tmp_path / "c.parquet")
    evenrank.score(tmp_path / "c.parquet", out=tmp_path / "groups.parquet", magnitudes=("tf_words",))
    file, batch = read_group_table(tmp_path / "groups.parquet"), functions["score"](collection.to_arrow())
    assert pl.DataFrame(batch).equals(file.table)
    assert b'"gender-en"' in batch.schema.metadata[b"evenrank"]
    queries = pl.DataFrame({"query_id": ["q"], "text": ["she runs"]})
    run = evenrank.Run.from_table(pl.DataFrame({"query_id": "q", "doc_id": table["doc_id"], "score": 1.0}))
    model = functions["rerank"].keywords["model"]  # type: ignore[attr-defined]
    ranked = evenrank.rerank(run, model=model, kind="cross", collection=collection, queries=queries, device="cpu")
    pairs = collection.with_columns(query=pl.lit("she runs"))
    scored = pl.DataFrame(functions["rerank"](pairs.to_arrow()))
    both = ranked.table.join(scored, on="doc_id", suffix="_of_batch")
    np.testing.assert_allclose(both["score"], both["score_of_batch"], atol=1e-5)


def test_names_of_columns_and_titles() -> None:
    batch = pa.table({"url": [7], "title": ["The queen"], "body": ["he runs"]})
    scored = pl.DataFrame(evenrank.score_batch(batch, id_column="url", text_column="body"))
    assert scored.select("doc_id", "tokens", "count_f", "count_m").row(0) == ("7", 4, 1, 1)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_batch_lacks(name: str, table: pl.DataFrame, functions: dict[str, Function]) -> None:
    with pytest.raises(InputError, match="the batch: expected a column"):
        functions[name](table.select("doc_id").to_arrow())
    null = table.with_columns(text=pl.when(pl.col("doc_id") == "d2").then(None).otherwise("text"))
    with pytest.raises(InputError, match=r"the batch: row 3: the (id or the )?text is missing"):
        functions[name](null.to_arrow())
