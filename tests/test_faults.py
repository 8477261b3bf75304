"""Files that are damaged, odd or meant to harm: every reader gives a right answer or says, in a line, what is wrong."""

from __future__ import annotations

import gzip
import json
import math
import random
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenrank.embeddings import Vectors, read_sets, read_vectors, read_word_list
from evenrank.groups import load_lexicon, tokenize
from evenrank.io import EvenrankError, files, read_qrels, read_queries, read_run, read_scores, scan_collection
from evenrank.io.squad import load_squad, read_answers
from evenrank.training.recipes import load_recipe

pytest.importorskip("torch")

from evenrank.training.group_files import read_group_file

# --- Any damage to any file ------------------------------------------------------------------------------------------

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
SQUAD = json.dumps(
    {
        "data": [
            {
                "title": "t",
                "paragraphs": [
                    {
                        "context": "Hé runs to Rome.",
                        "qas": [{"id": "q1", "question": "where", "answers": [{"text": "Rome", "answer_start": 11}]}],
                    },
                    {"context": "none", "qas": [{"id": "q2", "question": "who", "answers": []}]},
                ],
            }
        ]
    },
    ensure_ascii=False,
).encode()
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
    import io

    stream = io.BytesIO()
    table.write_parquet(stream)
    return stream.getvalue()


TEXTS = parquet(pl.DataFrame({"doc_id": ["d1", "d2"], "text": ["She", "Hé"], "title": ["a", None]}))
SCORES = parquet(
    pl.DataFrame({"doc_id": ["d1", "d2"], "tokens": [2, 3], "count_f": [1, 0], "count_m": [0, 2], "neutrality": [1, 0]})
)
PARQUET_GROUPS = parquet(
    pl.DataFrame({"query_id": ["q1"], "doc_id": [["d1", "d2"]], "label": [[1.0, 0.0]]})
)  # fmt: skip


def collection(path: Path) -> Any:
    return list(scan_collection(path))


READERS: dict[str, tuple[Callable[[Path], Any], str, tuple[bytes, ...]]] = {
    "run": (read_run, "run", (RUN, RUN.replace(b" ", b"\t"))),
    "qrels": (read_qrels, "qrels", (QRELS, QRELS.replace(b" ", b"  "))),
    "queries": (read_queries, "queries.tsv", (TSV, JSONL)),
    "collection": (collection, "collection.tsv", (TSV, JSONL)),
    "parquet collection": (collection, "collection.parquet", (TEXTS,)),
    "scores": (read_scores, "scores.parquet", (SCORES,)),
    "lexicon": (load_lexicon, "lexicon.csv", (LINES,)),
    "TOML lexicon": (load_lexicon, "lexicon.toml", (TOML,)),
    "squad": (load_squad, "squad.json", (SQUAD,)),
    "answers": (read_answers, "squad.json", (SQUAD,)),
    "text vectors": (read_vectors, "vectors.txt", (VECTORS, GLOVE)),
    "binary vectors": (read_vectors, "vectors.bin", (BINARY,)),
    "word sets": (read_sets, "sets.json", (SETS,)),
    "word list": (read_word_list, "words.json", (WORDS,)),
    "groups": (read_group_file, "groups.jsonl", (GROUPS,)),
    "parquet groups": (read_group_file, "groups.parquet", (PARQUET_GROUPS,)),
    "recipe": (load_recipe, "recipe.toml", (RECIPE,)),
}

PIECES = [
    b"\x00", b"\r", b"\r\n", b"\n", b"\n\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe9", b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80", b"\xe2\x80\xa8", b"\xc2\x85", b"\xc2\xa0", b"\xe2\x80\xae", b"\x0b", b"\x1c", b"\x1f\x8b",
    b"\t", b" ", b"  ", b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b",", b"{", b"}", b"[", b"]", b":", b"#", b"nan",
    b"-inf", b"Infinity", b"1e999", b"0x1F", b"1,000", b"1_000", b"1.5", b"9" * 30, b"9" * 5000, b"null", b"true",
    b"-1", b"{}", b"[]", b"[[", b"[" * 2000, b'{"a":' * 2000, b"x" * 10_000, b"q1", b"d1", b"PAR1", b"rest", b"1e-999",
    b"\xd9\xa1", b"999999999", b"0.5 " * 99_999,
]  # fmt: skip
"""What stands in files that should not: put in, or in the place of something."""


def damaged(random: random.Random, content: bytes) -> bytes:
    """``content`` with one to three kinds of damage."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        content = _once(random, content)
    return content


def _once(random: random.Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    at = random.randrange(len(content) + 1)
    end = min(len(content), at + random.choice((0, 0, 1, 2, 5, 20)))
    line = random.randrange(len(lines))
    kind = random.randrange(16)
    if kind < 5:
        return content[:at] + random.choice(PIECES) + content[end:]
    if kind == 5:
        return content[:at]
    if kind == 6:
        return content[:at] + bytes([random.randrange(256)]) + content[at + 1 :]
    if kind == 7:  # a line again, elsewhere
        lines.insert(random.randrange(len(lines)), lines[line])
    elif kind == 8:
        del lines[line]
    elif kind == 9:
        random.shuffle(lines)
    elif kind == 10:  # columns change places
        fields = re.split(rb"([ \t,:])", lines[line])
        random.shuffle(fields)
        lines[line] = b"".join(fields)
    elif kind == 11:  # a field goes, or another takes its place
        fields = re.split(rb"([ \t,:])", lines[line])
        fields[random.randrange(len(fields))] = random.choice([b"", *PIECES])
        lines[line] = b"".join(fields)
    elif kind == 12:
        return content.replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\n", b"\n\r", b"\r\r\n", "\u2028".encode())))
    elif kind == 13:
        return content.decode("utf-8", "replace").encode(random.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32")))
    elif kind == 14:
        return content.decode("utf-8", "replace").encode("latin-1", "replace")
    else:
        packed = bytearray(gzip.compress(content))
        damage = random.randrange(4)
        if damage == 1:
            del packed[random.randrange(len(packed)) :]
        elif damage == 2:
            packed[random.randrange(len(packed))] ^= 1 << random.randrange(8)
        elif damage == 3:
            packed += random.choice((b"\x00" * 9, b"rest", bytes(packed)))
        return bytes(packed)
    return b"".join(lines)


@contextmanager
def soon(seconds: int = 20) -> Iterator[None]:
    """Fails what does not end."""

    def late(*_: object) -> None:
        raise TimeoutError(f"no answer after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def told(read: Callable[[Path], Any], path: Path) -> tuple[Any, str]:
    """What a reader gives, or what it says: one line that names the file."""
    with soon():
        try:
            return read(path), ""
        except EvenrankError as error:
            said = str(error)
    assert said.isprintable(), said
    assert str(path) in said
    assert len(said) < 1000 + 2 * len(str(path)), said
    return None, said


@pytest.mark.parametrize("name", READERS)
def test_any_damage(tmp_path: Path, name: str) -> None:
    read, file, contents = READERS[name]
    path = tmp_path / file
    answers = 0
    for seed in range(120):
        drawn = random.Random(f"{name} {seed}")
        content = drawn.choice(contents)
        path.write_bytes(damaged(drawn, content) if seed else content)
        answers += told(read, path)[1] == ""
    # Some damage is none: had nothing been read, nothing would have been tested.
    assert answers > 1


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("file", ["words.json", "vectors.safetensors"])
def test_any_damage_to_a_folder_of_vectors(tmp_path: Path, file: str, mmap: bool) -> None:
    pytest.importorskip("safetensors")
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    Vectors(("she", "he", "é", "king"), matrix).save(tmp_path / "v")
    path = tmp_path / "v" / file
    whole = path.read_bytes()
    for seed in range(100):
        path.write_bytes(damaged(random.Random(f"{file} {seed}"), whole))
        found, said = told(lambda folder: read_vectors(folder, mmap=mmap), tmp_path / "v")
        assert said or (found.matrix.shape[0] == len(set(found.words)) and np.isfinite(found.matrix).all())


@pytest.mark.parametrize("file", ["tokenizer.json", "model.safetensors"])
def test_any_damage_to_a_transformer(tmp_path: Path, file: str) -> None:
    torch_file = pytest.importorskip("safetensors.torch")
    torch = pytest.importorskip("torch")
    vocabulary = {"[PAD]": 0, "she": 1, "##s": 2, "he": 3}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordPiece", "vocab": vocabulary}}))
    torch_file.save_file({"word_embeddings.weight": torch.arange(8.0).reshape(4, 2)}, tmp_path / "model.safetensors")
    path = tmp_path / file
    whole = path.read_bytes()
    assert read_vectors(tmp_path).words == ("she", "he")
    for seed in range(100):
        path.write_bytes(damaged(random.Random(f"{file} {seed}"), whole))
        found, said = told(read_vectors, tmp_path)
        assert said or (found.matrix.shape[0] == len(set(found.words)) and np.isfinite(found.matrix).all())


# --- What is right is read as it stands, what is wrong is refused: against slow, obvious readers ----------------------

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)


class Wrong(Exception):
    """The obvious reader's word for a file that is none."""


def lines_of_text(content: bytes) -> list[str]:
    """The lines of an unpacked file."""
    text = (content + b"\n" * (not content.endswith(b"\n"))).decode().removeprefix("\ufeff").replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n")


def filled(lines: list[str]) -> list[str]:
    """Those that are not blank."""
    return [line for line in lines if line.strip() or re.search("[\x1c-\x1f]", line)]


def fields_of(line: str, count: int) -> list[str]:
    fields = re.split(r"[ \t]+", line.strip(" \t"))
    if len(fields) != count:
        raise Wrong
    return fields


def finite(field: str) -> float:
    if not NUMBER.fullmatch(field) or not math.isfinite(float(field)):
        raise Wrong
    return float(field)


def is_finite(field: str) -> bool:
    try:
        return bool(math.isfinite(finite(field)))
    except Wrong:
        return False


def slow_run(content: bytes) -> list[tuple[str, str, float]]:
    queries: dict[str, list[tuple[str, str, float]]] = {}
    for line in filled(lines_of_text(content)):
        query, _, doc, _, score, _ = fields_of(line, 6)
        queries.setdefault(query, []).append((query, doc, finite(score)))
    for rows in queries.values():
        if len({doc for _, doc, _ in rows}) < len(rows):
            raise Wrong
        rows.sort(key=lambda row: row[1].encode(), reverse=True)
        rows.sort(key=lambda row: -row[2])
    return [row for rows in queries.values() for row in rows]


def slow_qrels(content: bytes) -> list[tuple[str, str, int]]:
    grades: dict[tuple[str, str], int] = {}
    for line in filled(lines_of_text(content)):
        query, _, doc, grade = fields_of(line, 4)
        if not WHOLE.fullmatch(grade) or abs(int(grade)) >= 2**63:
            raise Wrong
        if grades.setdefault((query, doc), int(grade)) != int(grade):
            raise Wrong
    return [(query, doc, grade) for (query, doc), grade in grades.items()]


def slow_texts(content: bytes) -> list[tuple[str, str]]:
    rows = []
    lines = lines_of_text(content)
    if len(lines) == 1 and re.search(r"\t.*\r[^\r\t]+\t", lines[0]):
        raise Wrong
    for line in filled(lines):
        doc, tab, text = line.partition("\t")
        if not tab or not doc:
            raise Wrong
        rows.append((doc, text))
    if lines[0] == "id\ttext":
        del rows[0]
    if len({doc for doc, _ in rows}) < len(rows):
        raise Wrong
    return rows


def slow_json(content: bytes) -> list[tuple[str, str]]:
    rows = []
    for line in filled(lines_of_text(content)):
        value = json.loads(line)
        if not isinstance(value, dict):
            raise Wrong
        doc, text, title = (value.get(name) for name in ("id", "text", "title"))
        if type(doc) not in (str, int) or doc == "" or not isinstance(text, str):
            raise Wrong
        rows.append((str(doc), f"{title} {text}" if isinstance(title, str) and title else text))
    if len({doc for doc, _ in rows}) < len(rows) or "\ud800" in "".join(map("".join, rows)):
        raise Wrong
    return rows


def slow_groups(content: bytes) -> list[tuple[str, list[str], list[float]]]:
    rows = []
    for line in filled(lines_of_text(content)):
        group = json.loads(line)
        query, docs, labels = group["query_id"], group["doc_id"], group["label"]
        if type(query) not in (str, int) or not isinstance(docs, list) or not isinstance(labels, list):
            raise Wrong
        if any(type(doc) not in (str, int) for doc in docs) or any(type(label) not in (int, float) for label in labels):
            raise Wrong
        if len(docs) != len(labels) or not all(map(math.isfinite, labels)) or "\ud800" in str(query):
            raise Wrong
        if len(set(labels)) < 2 or max(labels) < 1:
            raise Wrong
        rows.append((str(query), [str(doc) for doc in docs], [float(label) for label in labels]))
    return rows


def slow_lexicon(content: bytes) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    groups: dict[tuple[str, ...], str] = {}
    for line in filled(lines_of_text(content)):
        word, _, group = (part.strip() for part in line.rpartition(","))
        key = tuple(tokenize(word))
        if not key or not group or group == "rest" or groups.setdefault(key, group) != group:
            raise Wrong
        rows.append((word, group))
    if len({group for _, group in rows}) < 2:
        raise Wrong
    return rows


def slow_vectors(content: bytes) -> list[tuple[str, list[float]]]:
    rows = []
    for line in lines_of_text(content):
        if line.rstrip(" ") or line.startswith(" "):
            fields = line.removesuffix(" ").split(" ")
            # A word may hold spaces.
            word, numbers = " ".join(fields[:-2]), fields[-2:]
            if not word or any(is_finite(field) for field in fields[1:-2]):
                raise Wrong
            rows.append((word, [float(np.float32(finite(field))) for field in numbers]))
    if len({word for word, _ in rows}) < len(rows):
        raise Wrong
    return rows


FIELDS = st.sampled_from([
    "a", "b", "a", "b", "é", "\u00a0", "\u2028", "\x00x", "\x0bx", "\x1c", '"', '"a', "#", "\\", "\ufeff", "'", ",",
    "NA", "null", "NaN", "x" * 300, "\u202e", "a\rb", "\r", "\u0661", "1", "true", "//",
])  # fmt: skip
NUMBERS = st.sampled_from([
    "1", "2", "0", "-1", "1.5", "+3", ".5", "5.", "1e3", "1E-2", "00", "007", "-0", "1e-400", "1e400", "nan", "inf",
    "-Infinity", "0x1", "1_0", "1,5", "1,000", "--1", "1e", "e1", ".", "-", "+", "1.", "1d", "1f", "\u0661", "1\r",
    "1 ", "9223372036854775807", "9223372036854775808", "1e5", "123456789.123456789123456789", "1.0", "TRUE", "\u00bd",
])  # fmt: skip
BLANK = st.sampled_from(["", " ", "\t", "\u3000"])


@dataclass(frozen=True)
class Packing:
    """How lines become a file, and in what pieces it is read."""

    ending: bytes
    last: bool
    bom: bool
    gzip: bool
    block: int

    def pack(self, lines: list[str]) -> tuple[bytes, bytes]:
        """The file, and what it unpacks to."""
        content = _BOM * self.bom + self.ending.join(line.encode() for line in lines) + self.ending * self.last
        return (gzip.compress(content, mtime=0) if self.gzip else content), content


_BOM = b"\xef\xbb\xbf"
LINES_ALONE = Packing(b"\n", True, False, False, 1 << 20)
PACKED = st.builds(
    Packing,
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([16, 1 << 20]),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def check_against(
    slow: Callable[[bytes], list[Any]],
    read: Callable[[Path], list[Any]],
    path: Path,
    lines: list[str],
    packing: Packing,
) -> None:
    written, content = packing.pack(lines)
    path.write_bytes(written)
    try:
        # A zero byte among the first two: UTF-16.
        expected = None if b"\x00" in content.removeprefix(_BOM)[:2] else slow(content) or None
    except Wrong:
        expected = None
    with mock.patch.dict(files.line_blocks.__kwdefaults__, block_bytes=packing.block):
        found, said = told(read, path)
    assert found == expected, said


def separated(fields: list[st.SearchStrategy[str]]) -> st.SearchStrategy[str]:
    """Fields in a line, mostly with one space between them."""
    separators = st.sampled_from([" "] * 8 + ["\t", "  ", " \t", " \u00a0 ", ""])
    return st.tuples(*(part for field in fields for part in (field, separators))).map("".join)


runs = st.lists(
    st.one_of(
        separated([FIELDS, st.just("Q0"), FIELDS, NUMBERS, NUMBERS, FIELDS]),
        st.builds("{} Q0 d{} {} {} t".format, st.sampled_from("pq"), st.integers(0, 99), st.integers(1, 9), NUMBERS),
        st.builds("{} Q0 d{} 1 {} t".format, st.sampled_from("pq"), st.integers(0, 99), st.floats(-9, 9)),
        BLANK,
    ),
    max_size=6,
)


@given(runs, PACKED)
@settings(max_examples=150)
@example(["q Q0 d 1 1 t\rq Q0 e 2 1 t"], LINES_ALONE)
def test_runs_as_they_stand(place: Path, lines: list[str], packing: Packing) -> None:
    def read(path: Path) -> list[Any]:
        return read_run(path).table.select("query_id", "doc_id", "score").rows()

    check_against(slow_run, read, place / "run", lines, packing)


judgements = st.lists(
    st.one_of(
        separated([FIELDS, st.just("0"), FIELDS, NUMBERS]),
        st.builds("{} 0 d{} {}".format, st.sampled_from("pq"), st.integers(0, 9), NUMBERS),
        st.builds("{} 0 d{} {}".format, st.sampled_from("pq"), st.integers(0, 9), st.integers(0, 1)),
        BLANK,
    ),
    max_size=6,
)


@given(judgements, PACKED)
@settings(max_examples=150)
def test_judgements_as_they_stand(place: Path, lines: list[str], packing: Packing) -> None:
    check_against(slow_qrels, lambda path: read_qrels(path).rows(), place / "qrels", lines, packing)


texts = st.lists(
    st.one_of(
        st.builds("{}{}{}\t{}".format, FIELDS, st.sampled_from(["", "", " ", "\t"]), FIELDS, FIELDS),
        st.builds("d{}\t{} {}".format, st.integers(0, 99), FIELDS, FIELDS),
        FIELDS,
        BLANK,
    ),
    max_size=6,
)


@given(texts, PACKED)
@settings(max_examples=150)
@example(["d1\ta\rd2\tb\r"], LINES_ALONE)
@example(["id\ttext", "d1\ta"], LINES_ALONE)
def test_texts_as_they_stand(place: Path, lines: list[str], packing: Packing) -> None:
    def read(path: Path) -> list[Any]:
        return [row for batch in scan_collection(path) for row in batch.rows()]

    check_against(slow_texts, read, place / "texts", lines, packing)


values = st.sampled_from(
    ["a", "b", "é", "\u2028", "\x00", "", 1, 2, 1.5, None, True, ["a"], "\ud800", 10**30, "x" * 300]
)
objects = st.lists(
    st.one_of(
        st.builds(
            lambda names, found: dict(zip(names, found, strict=True)),
            st.permutations(["id", "text", "title"]),
            st.lists(values, min_size=3, max_size=3),
        ),
        st.builds(lambda number, text: {"id": number, "text": text}, st.integers(0, 99), st.text(max_size=9)),
        values,
    ),
    max_size=5,
)


@given(objects, PACKED, st.booleans())
@settings(max_examples=100)
def test_json_texts_as_they_stand(place: Path, rows: list[Any], packing: Packing, ascii: bool) -> None:
    lines = [json.dumps(row, ensure_ascii=ascii) for row in rows if ascii or "\\ud800" not in json.dumps(row)]
    # The first line tells a file of JSON from one of tabs.
    lines.insert(0, '{"id": "first", "text": ""}')

    def read(path: Path) -> list[Any]:
        return [row for batch in scan_collection(path) for row in batch.rows()]

    check_against(slow_json, read, place / "texts", lines, packing)


entries = st.lists(
    st.one_of(
        st.builds("{}{}{}".format, FIELDS, st.sampled_from([",", ",", " , ", ""]), st.sampled_from(["f", "m", "é"])),
        st.builds("w{},{}".format, st.integers(0, 99), st.sampled_from(["f", "m", "x", "rest", "<b>", ""])),
        BLANK,
    ),
    max_size=6,
)


@given(entries, PACKED)
@settings(max_examples=100)
def test_lexicons_as_they_stand(place: Path, lines: list[str], packing: Packing) -> None:
    check_against(slow_lexicon, lambda path: list(load_lexicon(path).words), place / "lexicon", lines, packing)


vectors = st.lists(
    st.one_of(
        st.builds("{} {} {}".format, FIELDS.filter(lambda field: " " not in field), NUMBERS, NUMBERS),
        st.builds("w{} {} {}{}".format, st.integers(0, 99), NUMBERS, NUMBERS, st.sampled_from(["", " ", "  ", " 1"])),
        st.just(""),
    ),
    max_size=6,
)


@given(vectors, PACKED)
@settings(max_examples=150)
def test_vectors_as_they_stand(place: Path, lines: list[str], packing: Packing) -> None:
    lines = ["first 1 2", *lines]

    def read(path: Path) -> list[Any]:
        found = read_vectors(path)
        return list(zip(found.words, found.matrix.tolist(), strict=True))

    check_against(slow_vectors, read, place / "vectors", lines, packing)


groups = st.lists(
    st.fixed_dictionaries(
        {
            "query_id": values,
            "doc_id": st.lists(st.sampled_from(["a", "b", 1, "é"]), min_size=1, max_size=3) | values,
            "label": st.lists(st.sampled_from([0, 1, 2, 0.5, -1]), min_size=1, max_size=3) | values,
        }
    )
    | st.builds(
        lambda query, labels: {"query_id": query, "doc_id": [f"d{i}" for i in range(len(labels))], "label": labels},
        st.integers(0, 9),
        st.lists(st.sampled_from([0, 1, 2, 0.5, -1, math.nan, math.inf, None]), max_size=4),
    ),
    max_size=3,
)


@given(groups, PACKED)
@settings(max_examples=100)
def test_groups_as_they_stand(place: Path, rows: list[Any], packing: Packing) -> None:
    lines = [json.dumps(row) for row in rows]
    check_against(slow_groups, lambda path: read_group_file(path).rows(), place / "groups", lines, packing)


# --- What slipped through once ---------------------------------------------------------------------------------------


def strings(*values: bytes) -> pa.Array:
    """A column that says it is UTF-8, whatever it holds."""
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


LATIN = strings(b"d1", b"d\xe9")
PLAIN = strings(b"d1", b"d2")
NEUTRAL = {"neutrality": [1.0, 1.0], "count_f": [1, 2], "count_m": [0, 0]}


@pytest.mark.parametrize(
    ("read", "columns", "said"),
    [
        (collection, {"doc_id": PLAIN, "text": LATIN}, "damaged Parquet file (In column 1: Invalid: Invalid UTF8"),
        (collection, {"doc_id": LATIN, "text": PLAIN}, "damaged Parquet file (In column 0: Invalid: Invalid UTF8"),
        (collection, {"doc_id": LATIN.dictionary_encode(), "text": PLAIN}, "damaged Parquet file ("),
        (read_scores, {"doc_id": LATIN, **NEUTRAL}, "no Parquet file that can be read (In column 0: Invalid: "),
        (read_group_file, {"query_id": LATIN, "doc_id": [["a"]] * 2, "label": [[0]] * 2}, "damaged Parquet file ("),
        (read_group_file, {"query_id": PLAIN, "doc_id": PLAIN, "label": [[0, 1]] * 2}, "expected query_id, and lists"),
        (read_group_file, {"query_id": PLAIN, "doc_id": [["a", "b"]] * 2}, "expected query_id, and lists"),
        (
            read_group_file,
            {"query_id": PLAIN, "doc_id": [["a", "b"], ["a", None]], "label": [[0, 1]] * 2},
            ", line 2: query 'd2': a query_id, a doc_id or a label is missing",
        ),
        (
            read_group_file,
            {"query_id": PLAIN, "doc_id": [["a", "b"]] * 2, "label": [[0, 1], [2, math.nan]]},
            ", line 2: query 'd2': a label is no finite number",
        ),
    ],
)  # fmt: skip
def test_parquet_that_is_no_text(tmp_path: Path, read: Callable[[Path], Any], columns: Any, said: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "file")
    assert told(read, tmp_path / "file")[1].startswith(f"{tmp_path}/file: {said}".replace(": , line", ", line"))


@pytest.mark.parametrize(
    "stored",
    [{"shares": [1]}, {"shares": 1}, {"shares": ["x", "y"]}, {"poles": ["m"]}, {"poles": "mf"}, {"poles": ["m", "x"]}],
)
def test_settings_that_do_not_fit(tmp_path: Path, stored: dict[str, Any]) -> None:
    table = pa.table({"doc_id": PLAIN, **NEUTRAL})
    pq.write_table(table.replace_schema_metadata({"evenrank": json.dumps(stored)}), tmp_path / "scores")
    assert "settings" in told(read_scores, tmp_path / "scores")[1]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["run", "qrels", "collection", "lexicon", "text vectors", "word list", "groups"])
def test_other_encodings(tmp_path: Path, name: str, encoding: str) -> None:
    read, file, contents = READERS[name]
    (tmp_path / file).write_bytes(contents[0].decode().encode(encoding))
    assert told(read, tmp_path / file)[1].endswith("line 1: expected UTF-8, found what looks like UTF-16")


def test_lines_that_end_in_a_carriage_return_alone(tmp_path: Path) -> None:
    (tmp_path / "texts").write_bytes(TSV.replace(b"\n", b"\r"))
    said = told(collection, tmp_path / "texts")[1]
    assert said.endswith("line 1: expected lines that end in a line feed, found carriage returns alone")


@pytest.mark.parametrize(("start", "answer", "rows"), [(-4, "me", [(2, 4)]), (10**30, "", []), (7, "", [])])
def test_answers_outside_their_passage(tmp_path: Path, start: int, answer: str, rows: list[tuple[int, int]]) -> None:
    question = {"id": "q", "answers": [{"text": answer, "answer_start": start}]}
    data = {"data": [{"paragraphs": [{"context": "Rome x", "qas": [question]}]}]}
    (tmp_path / "squad").write_text(json.dumps(data))
    assert read_answers(tmp_path / "squad").select("answer_start", "answer_end").rows() == rows


def test_a_first_line_of_too_many_numbers(tmp_path: Path) -> None:
    (tmp_path / "vectors").write_text("4 999999999\nshe 1 2\n")
    said = told(read_vectors, tmp_path / "vectors")[1]
    assert said.endswith("line 1: expected at most 65536 numbers, found 999999999")


def test_what_stands_in_a_message_cannot_move_the_cursor() -> None:
    assert str(EvenrankError("a\x1b[2J\nb\u202e\u2028é")) == r"a\x1b[2J\nb\u202e\u2028é"


def test_a_folder_that_cannot_be_made_is_named_before_any_work(tmp_path):
    from evenrank.experiments import run_experiment
    from evenrank.io.public_data import fetch

    (tmp_path / "file").write_text("not a folder")
    folder = tmp_path / "file" / "inside"
    for work in (
        lambda: run_experiment("sampling", scale="tiny", seeds=1, folder=folder, jobs=1),
        lambda: fetch("xquad-en", folder),
    ):
        with pytest.raises(EvenrankError) as error:
            work()
        assert str(error.value) == f"{folder}: the folder cannot be made: Not a directory"
