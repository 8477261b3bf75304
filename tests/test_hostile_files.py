"""Files that panic an engine, fill the memory, steer a terminal, are pipes or have odd names."""

from __future__ import annotations

import decimal
import gzip
import json
import os
import random
import re
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenrank.embeddings import Vectors, read_vectors
from evenrank.embeddings.vectors import from_keyed_vectors, from_transformer
from evenrank.groups import Scoring, load_lexicon, score_collection
from evenrank.io import EvenrankError, InputError, Scores, files, irds, read_qrels, read_run, read_scores
from evenrank.io import scan_collection as scan
from evenrank.io.shards import shards_of
from evenrank.io.written import for_spreadsheets

Command = Callable[..., Any]


def groups(path: Path) -> Any:
    pytest.importorskip("torch")
    from evenrank.training.group_files import read_group_file

    return read_group_file(path)


def texts(path: Path | str) -> pl.DataFrame:
    return pl.concat(list(scan(path)))


TABLES: dict[str, tuple[Callable[[Path], Any], pl.DataFrame]] = {
    "collection": (texts, pl.DataFrame({"doc_id": ["d1", "d2"], "text": ["She", "Hé"], "title": ["a", None]})),
    "scores": (
        read_scores,
        pl.DataFrame(
            {"doc_id": ["a", "b"], "tokens": [2, 3], "count_f": [1, 0], "count_m": [0, 2], "neutrality": [1, 0]}
        ),
    ),
    "groups": (groups, pl.DataFrame({"query_id": ["q"], "doc_id": [["a", "b"]], "label": [[1.0, 0.0]]})),
    "parts of a cluster": (shards_of, pl.DataFrame({"doc_id": ["d1"], "text": ["She"]})),
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
def test_damaged_parquet(tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
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
    assert "panicked" not in capfd.readouterr().err


@pytest.mark.parametrize(("name", "column"), [("collection", "text"), ("scores", "count_f"), ("groups", "label")])
def test_a_type_that_polars_panics_at(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, column: str
) -> None:
    read, table = TABLES[name]
    arrow = table.to_arrow()
    wide: Any = pa.array([decimal.Decimal(1)] * table.height, pa.decimal256(50, 2))
    if name == "groups":
        wide = pa.array([[decimal.Decimal(1), decimal.Decimal(0)]], pa.list_(pa.decimal256(50, 2)))
    pq.write_table(arrow.set_column(arrow.column_names.index(column), column, wide), tmp_path / "x")
    with pytest.raises(
        InputError, match=rf"{tmp_path}/x: expected texts, numbers or lists of them in {column}, found "
    ):
        read(tmp_path / "x")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["collection", "scores", "groups"])
@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (pl.exceptions.PanicException("called `unwrap`\nat a line"), r"\(called `unwrap`\)"),
        (pl.exceptions.PanicException(""), r"\(PanicException\)"),
        (AttributeError("odd"), r"\(odd\)"),
        (MemoryError(), "or one that needs more memory than there is"),
    ],
)
def test_whatever_an_engine_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, raised: BaseException, message: str
) -> None:
    read, table = TABLES[name]
    table.write_parquet(tmp_path / "x")

    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(files, "_is_taken", fail)
    with pytest.raises(InputError, match=rf"^{tmp_path}/x: .*{message}$"):
        read(tmp_path / "x")


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: type) -> None:
    def stop(*_: object) -> None:
        raise raised

    TABLES["scores"][1].write_parquet(tmp_path / "x")
    monkeypatch.setattr(files, "_is_taken", stop)
    with pytest.raises(raised):
        read_scores(tmp_path / "x")


def test_the_damaged_one_of_several_files_is_named(tmp_path: Path) -> None:
    for name in "abc":
        TABLES["scores"][1].with_columns(doc_id=pl.col("doc_id") + name).write_parquet(tmp_path / f"{name}.parquet")
    whole = (tmp_path / "b.parquet").read_bytes()
    # The first values are compressed.
    (tmp_path / "b.parquet").write_bytes(whole[:40] + b"\xff" * 20 + whole[60:])
    with pytest.raises(InputError) as caught:
        read_scores(tmp_path)
    assert caught.value.path == str(tmp_path / "b.parquet")


# --- What was accepted without a word --------------------------------------------------------------------------------

GOOD = {
    "doc_id": ["a", "b"],
    "count_f": [1, 0],
    "magnitude_tf_f": [0.7, 0.0],
    "count_m": [0, 2],
    "neutrality": [1.0, 0],
}


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("neutrality", [1.0, 1.5], "the document 'b': expected a number from 0 to 1 in neutrality, found 1.5"),
        ("neutrality", [-0.5, 1], "the document 'a': expected a number from 0 to 1 in neutrality, found -0.5"),
        ("count_f", [1, -1], "the document 'b': expected 0 or more in count_f, found -1"),
        ("magnitude_tf_f", [0.5, -0.25], "the document 'b': expected 0 or more in magnitude_tf_f, found -0.25"),
        ("magnitude_tf_f", [float("inf"), 0], "the document 'a' has no finite number in magnitude_tf_f"),
        ("count_m", [decimal.Decimal(1), decimal.Decimal(2)], "expected numbers in count_m, found Decimal"),
        ("count_m", [True, False], "expected numbers in count_m, found Boolean"),
        ("count_m", [object(), 1], "expected numbers in count_m, found Object"),
    ],
)
def test_values_that_no_scoring_gives(tmp_path: Path, column: str, values: list[Any], message: str) -> None:
    table = pl.DataFrame(GOOD).with_columns(pl.Series(column, values, dtype=pl.Object if "Object" in message else None))
    with pytest.raises(EvenrankError) as caught:
        Scores.of(table)
    assert str(caught.value).startswith(message)
    if "Object" not in message:
        table.write_parquet(tmp_path / "s")
        with pytest.raises(InputError) as of_file:
            read_scores(tmp_path / "s")
        assert str(of_file.value) == f"{tmp_path}/s: {caught.value}"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('{"shares": [NaN, 0.5]}', "expected numbers from 0 to 1 as shares"),
        ('{"shares": [2, -1]}', "expected numbers from 0 to 1 as shares"),
        ('{"shares": ' + "[" * 100_000 + "]" * 100_000 + "}", "its settings are no JSON object"),
    ],
)
def test_settings_of_scores(tmp_path: Path, settings: str, message: str) -> None:
    table = pl.DataFrame(GOOD).to_arrow().replace_schema_metadata({b"evenrank": settings.encode()})
    pq.write_table(table, tmp_path / "s")
    with pytest.raises(InputError, match=rf"{tmp_path}/s: damaged: {message}"):
        read_scores(tmp_path / "s")


def by_hand(folder: Path, words: list[str], matrix: Any) -> None:
    """A folder of vectors that this library would not write."""
    from safetensors.numpy import save_file

    folder.mkdir()
    (folder / "words.json").write_text(json.dumps(words))
    save_file({"vectors": matrix}, folder / "vectors.safetensors")


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_vectors_that_are_not_finite(tmp_path: Path, mmap: bool, value: float) -> None:
    pytest.importorskip("safetensors")
    matrix = np.ones((40_000, 2), np.float32)
    matrix[30_000, 1] = value
    by_hand(tmp_path / "v", [f"w{i}" for i in range(40_000)], matrix)
    with pytest.raises(InputError) as caught:
        read_vectors(tmp_path / "v", mmap=mmap)
    assert str(caught.value) == f"{tmp_path}/v: the vector of the word 'w30000' holds a number that is not finite"


def test_a_word_that_is_empty(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    by_hand(tmp_path / "v", ["a", ""], np.ones((2, 2), np.float32))
    with pytest.raises(InputError, match=f"{tmp_path}/v: word 2 is empty"):
        read_vectors(tmp_path / "v")


def test_vectors_of_others_that_are_not_finite(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    save_file = pytest.importorskip("safetensors.torch").save_file
    table = torch.ones(3, 2)
    table[2, 0] = torch.nan
    save_file({"embeddings.word_embeddings.weight": table}, tmp_path / "model.safetensors")
    (tmp_path / "vocab.txt").write_text("she\n\nhe\n")
    with pytest.raises(InputError, match="the vector of the word 'he' holds a number that is not finite"):
        from_transformer(tmp_path)
    table[2, 0] = 1
    save_file({"embeddings.word_embeddings.weight": table}, tmp_path / "model.safetensors")
    assert from_transformer(tmp_path).words == ("she", "he")

    class Keyed:
        index_to_key = ("she",)
        vectors = np.array([[np.inf]])

    with pytest.raises(EvenrankError, match="the vector of the word 'she' holds a number that is not finite"):
        from_keyed_vectors(Keyed())


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("evenrank.json", '{"kind": ["knrm"]}', "expected the kind of a kernel ranker, found \"\\['knrm'\\]\""),
        ("evenrank.json", "[" * 100_000, "evenrank.json: expected a JSON object"),
        ("evenrank.json", '{"a":' * 100_000, "evenrank.json: expected a JSON object"),
        ("config_sentence_transformers.json", '{"model_type": ["x"]}', "found a \\['x'\\]"),
        ("config_sentence_transformers.json", '{"model_type": {}}', "found a {}"),
        ("config.json", '{"architectures": 7}', "config.json: expected a list of architectures, found '7'"),
        ("config.json", '{"architectures": true}', "config.json: expected a list of architectures, found 'True'"),
    ],
)
def test_models_whose_files_are_of_another_form(tmp_path: Path, file: str, content: str, message: str) -> None:
    pytest.importorskip("torch")
    from evenrank.rankers.models import find_model, load_kernel

    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / file).write_text(content)
    if file.startswith("config_"):
        (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(InputError, match=message):
        load_kernel(find_model(str(tmp_path)))


# --- Pipes -----------------------------------------------------------------------------------------------------------


def fed(path: Path, content: bytes) -> threading.Thread:
    os.mkfifo(path)

    def feed() -> None:
        with path.open("wb") as stream:
            stream.write(content)

    feeding = threading.Thread(target=feed, daemon=True)
    feeding.start()
    return feeding


@pytest.mark.parametrize("form", ["text", "binary", "gzip"])
def test_vectors_from_a_pipe(tmp_path: Path, form: str) -> None:
    """More than is read to tell the form."""
    from evenrank.embeddings import write_vectors

    rng = np.random.default_rng(0)
    whole = Vectors(tuple(f"w{i}" for i in range(5012)), rng.standard_normal((5012, 6)).astype(np.float32))
    file = tmp_path / ("v.bin" if form == "binary" else "v.txt")
    write_vectors(whole, file)
    content = file.read_bytes()
    assert len(content) > 1 << 17
    feeding = fed(tmp_path / "pipe", gzip.compress(content) if form == "gzip" else content)
    found = read_vectors(tmp_path / "pipe")
    feeding.join()
    assert found.words == whole.words
    assert np.array_equal(found.matrix, whole.matrix)


def test_what_cannot_be_read_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (texts, read_scores, groups, shards_of):
        with pytest.raises(InputError, match=f"{tmp_path}/pipe: expected a file, found a pipe"):
            read(tmp_path / "pipe")


# --- Names and errors of the system ----------------------------------------------------------------------------------


def test_names_that_are_no_text(tmp_path: Path, evenrank: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    monkeypatch.chdir(folder)
    names = {name: os.fsdecode(b"\xe9\xff" + name.encode()) for name in ("c", "q", "r", "s", "l", "v", "a")}
    (folder / names["c"]).write_text("d1\tShe and her\nd2\tHe said\n")
    (folder / names["q"]).write_text("q1\tshe said\n")
    (folder / names["r"]).write_text("q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\n")
    (folder / "qrels").write_text("q1 0 d1 1\n")
    (folder / names["l"]).write_text("she,f\nhe,m\n")
    (folder / names["v"]).write_text("she 1 0\nhe 0 1\nher 1 1\n")
    out = os.fsdecode(b"\xffout")
    c, q, r, lexicon = (names[name] for name in "cqrl")
    commands = {
        "score": [c, "--out", out, "--lexicon", lexicon],
        "audit": [r, "--scores", out, "--qrels", "qrels", "--queries", q, "--json", f"{out}.json"],
        "retrieve": [c, q, "--out", f"{out}.run"],
        "fuse": [r, f"{out}.run", "--weight", "0.5", "--out", f"{out}.fused"],
        "negatives": [r, "--collection", c, "--qrels", "qrels", "--n", "1", "--out", f"{out}.parquet"],
        "rotate": [c, "--out", f"{out}.parquet2"],
        "expand": [q, "--vectors", names["v"], "--k", "1", "--stopwords", "none", "--out", f"{out}.q"],
    }
    commands["audit"] += ["--report", f"{out}.html", "--per-query", f"{out}.csv"]
    for name, arguments in commands.items():
        ended = evenrank(name, *arguments)
        assert ended.status == 0, (name, ended.err)
    made = {path.name for path in folder.iterdir()}
    assert {
        out,
        *(out + end for end in (".run", ".fused", ".parquet", ".parquet2", ".q", ".json", ".html", ".csv")),
    } <= made
    assert not any(name.endswith(".part") for name in made)
    assert read_scores(folder / out).table.height == 2
    assert next(iter(json.loads((folder / f"{out}.json").read_text())["runs"])) == "\\udce9\\udcffr"
    ended = evenrank("score", "none" + out, "--out", out)
    assert (ended.status, ended.err) == (2, "evenrank: none\\udcffout: no such file\n")


def test_an_input_that_cannot_be_read_is_blamed(tmp_path: Path) -> None:
    scoring = Scoring(load_lexicon())
    loop = tmp_path / "c"
    loop.mkdir()
    (loop / "loop").symlink_to("loop")
    memory = "/proc/self/mem"
    for path, message in (
        (loop / "loop", "Too many levels of symbolic links"),
        (loop, "no file in it|Too many levels of symbolic links"),
        (memory, "cannot be read: Input/output error"),
    ):
        if path == memory and not os.path.exists(memory):
            continue
        with pytest.raises(InputError, match=rf"^{path}.*: .*({message})$"):
            score_collection(path, tmp_path / "out", scoring)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("where", ["load", "store"])
def test_a_home_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    import ir_datasets

    def full(*_: object) -> Any:
        raise OSError(28, "No space left on device")

    class Set:
        docs_store = full

        def has_docs(self) -> bool:
            return True

    monkeypatch.setattr(ir_datasets, "load", full if where == "load" else lambda _: Set())
    with pytest.raises(InputError, match=r"^irds:x: cannot be fetched or read: .*No space left on device"):
        irds.texts("irds:x", pl.Series("doc_id", ["a"]))


def test_an_error_of_another_file_names_it(tmp_path: Path) -> None:
    from evenrank.io import atomic_path

    def write() -> None:
        with atomic_path(tmp_path / "out"):
            (tmp_path / "none" / "cache").open("w")

    with pytest.raises(InputError) as caught:
        write()
    assert str(caught.value) == f"{tmp_path}/none/cache: No such file or directory"


# --- Long lines and little memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 7, 50, 1 << 20])
@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, packed: bool) -> None:
    monkeypatch.setenv(files.LINE_LIMIT_VARIABLE, "20")
    path = tmp_path / "c"

    def read(content: bytes) -> list[bytes]:
        path.write_bytes(gzip.compress(content) if packed else content)
        return b"".join(part.data for part in files.line_blocks(path, block_bytes=block)).split(b"\n")

    assert read(b"x" * 20 + b"\n" + b"y" * 20) == [b"x" * 20, b"y" * 20, b""]
    for content, line in ((b"a\nb\n" + b"x" * 21 + b"\nc\n", 3), (b"x" * 21, 1), (b"a\n" + b"x" * 500, 2)):
        with pytest.raises(InputError) as caught:
            read(content)
        assert str(caught.value) == (
            f"{path}, line {line}: expected lines of at most 20 bytes (EVENRANK_MAX_LINE_BYTES sets it), found a "
            "longer one"
        )


def test_the_limit_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert files.line_limit() == 64 << 20
    (tmp_path / "c").write_text("a\tb\n")
    for text in ("0", "-1", "many", ""):
        monkeypatch.setenv(files.LINE_LIMIT_VARIABLE, text)
        with pytest.raises(EvenrankError, match="EVENRANK_MAX_LINE_BYTES: expected a number of bytes"):
            texts(tmp_path / "c")


def test_a_small_file_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gzip file of some hundred kilobytes that unpacks to one line of 64 megabytes."""
    monkeypatch.setenv(files.LINE_LIMIT_VARIABLE, str(1 << 20))
    with gzip.open(tmp_path / "c.gz", "wb", compresslevel=1) as stream:
        for _ in range(64):
            stream.write(b"x" * (1 << 20))
    assert (tmp_path / "c.gz").stat().st_size < 1 << 19
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"c\.gz, line 1: expected lines of at most 1048576 bytes"):
            list(files.line_blocks(tmp_path / "c.gz", block_bytes=1 << 16))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("error", [MemoryError(), np.linalg.LinAlgError])
def test_too_little_memory_is_one_line(
    tmp_path: Path, evenrank: Command, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    if error is np.linalg.LinAlgError:
        error = type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory\nof 3 GB")
    (tmp_path / "c").write_text("a\tshe\n")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("evenrank.groups.score.score_texts", fail)
    ended = evenrank("score", tmp_path / "c", "--out", tmp_path / "out")
    assert (ended.status, ended.err) == (2, "evenrank: there is too little memory for this\n")
    assert os.listdir(tmp_path) == ["c"]


# --- What a line says depends on the line alone ----------------------------------------------------------------------

PIECES = ["a", "b", "\t", "\t", " ", "\u00a0", "\u3000", "\x1c", "\r", "\n", "\n", "\n", '"', "\u2028", "id\ttext\n"]
_WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"


def slowly(content: str) -> list[tuple[str, str]] | int:
    """The documents of a TSV, or the number of the first line that is none."""
    rows = []
    # The last line needs no end.
    content = f"{content.removesuffix(chr(10))}\n".replace("\r\n", "\n")
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip(_WHITE):
            continue
        name, tab, text = line.partition("\t")
        if not tab or not name:
            return number
        rows.append((name, text))
    return rows[1:] if rows and rows[0] == ("id", "text") else rows


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=40).map("".join), st.integers(1, 30))
@example("a\tb\n \t \na\tb\n", 4)
@example(" \t \n", 100)
@example("\u00a0\nid\ttext\na\tb\n", 3)
@example("\n\nid\ttext\na\tb\n", 1)
def test_a_line_is_read_the_same_wherever_a_block_ends(
    tmp_path_factory: pytest.TempPathFactory, content: str, size: int
) -> None:
    path = tmp_path_factory.mktemp("c") / "c.tsv"
    path.write_bytes(content.encode())
    expected = slowly(content)
    found = []
    for block in (size, 1 << 24):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(
                files.line_blocks, "__kwdefaults__", {**files.line_blocks.__kwdefaults__, "block_bytes": block}
            )
            try:
                found.append(pl.concat(list(scan(path, unique=False))).rows())
            except InputError as error:
                found.append(error.line or [])
    assert found == [expected, expected]


# --- Spreadsheets and terminals --------------------------------------------------------------------------------------


def test_cells_that_a_spreadsheet_takes_for_formulas() -> None:
    cells = ["=1+1", "+a", "-a", "@a", "\ta", "\ra", "\uff1da", "-1", "+1.5", "-1e3", "a=1", "", None, "-1+cmd"]
    made = for_spreadsheets(pl.DataFrame({"id": cells, "n": [-1] * len(cells)}))
    neutral = [
        "'=1+1",
        "'+a",
        "'-a",
        "'@a",
        "'\ta",
        "'\ra",
        "'\uff1da",
        "-1",
        "+1.5",
        "-1e3",
        "a=1",
        "",
        None,
        "'-1+cmd",
    ]
    assert made["id"].to_list() == neutral
    assert made["n"].to_list() == [-1] * len(cells)


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ids that are formulas, and that steer a terminal."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c").write_text("d1\tshe\nd2\the\n")
    (tmp_path / "q").write_text("=1+1\tshe\n\x1b[31mq\twhere\n")
    (tmp_path / "r").write_text("=1+1 Q0 d1 1 2 t\n=1+1 Q0 d2 2 1 t\n\x1b[31mq Q0 d1 2 1 t\n\x1b[31mq Q0 d2 1 2 t\n")
    (tmp_path / "v").write_text("she 1 0\nhe 0 1\n")
    return tmp_path


def test_formulas_in_the_values_of_queries(odd: Path, evenrank: Command) -> None:
    assert evenrank("audit", "@2=r", "r", "--collection", "c", "--per-query", "x.csv").status == 0
    cells = [line.split(",")[:2] for line in (odd / "x.csv").read_text().splitlines()[1:]]
    assert ["'=1+1", "'@2"] in cells
    assert ["'=1+1", "r"] in cells
    assert ["'=1+1", "=1+1"] not in cells
    assert not any(cell.startswith(("=", "+", "@")) for row in cells for cell in row)


@pytest.mark.parametrize(
    "command",
    [
        ["audit", "\x1b[31mr=r", "--collection", "c"],
        ["expand", "q", "--vectors", "v", "--stopwords", "none", "--out", "x"],
        ["rerank", "\x1b[31mr", "--model", "none", "--collection", "c", "--queries", "q", "--out", "x"],
    ],
)
def test_no_id_steers_the_terminal(odd: Path, evenrank: Command, command: list[str]) -> None:
    ended = evenrank(*command)
    assert "[31m" in ended.out + ended.err
    assert "\x1b" not in ended.out + ended.err


def test_lines_of_runs_and_qrels_are_read_the_same_in_blocks(
    tmp_path: Path, block_bytes: Callable[[int], None]
) -> None:
    (tmp_path / "r").write_text("\u00a0\nq Q0 a 1 2 t\n \t \nq\tQ0\tb 2 1 t\n\n")
    (tmp_path / "l").write_text("\u3000\nq 0 a 1\n \t\nq\t0\tb 0\n")
    found = []
    for size in (1 << 24, 1, 9):
        block_bytes(size)
        found.append((read_run(tmp_path / "r").table.rows(), read_qrels(tmp_path / "l").rows()))
    assert found[0] == found[1] == found[2]
    assert [row[1] for row in found[0][0]] == ["a", "b"]
