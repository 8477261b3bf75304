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
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenrank.embeddings import Vectors, read_sets, read_vectors, read_word_list
from evenrank.groups import load_lexicon
from evenrank.io import EvenrankError, read_qrels, read_queries, read_run, read_scores, scan_collection
from evenrank.io.squad import load_squad, read_answers
from evenrank.training.recipes import load_recipe, to_toml

pytest.importorskip("torch")

from evenrank.training.groups import read_group_file

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
    b"\x00", b"\r", b"\r\n", b"\n", b"\n\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe9", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
    "\u2028".encode(), "\u0085".encode(), "\u00a0".encode(), "\u202e".encode(), b"\x0b", b"\x1c", b"\x1f\x8b", b"\t", b" ",
    b"  ", b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b",", b"{", b"}", b"[", b"]", b":", b"#", b"nan", b"-inf",
    b"Infinity", b"1e999", b"0x1F", b"1,000", b"1_000", b"1.5", b"9" * 30, b"null", b"true", b"-1", b"{}", b"[]", b"[[",
    b"[" * 2000, b"{\"a\":" * 2000, b"x" * 10_000, b"q1", b"d1", b"PAR1", b"rest", b"1e-999", "\u0661".encode(),
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
    assert len(said.splitlines()) == 1 and said.isprintable(), said
    assert str(path) in said
    assert len(said) < 1000 + 2 * len(str(path)), said
    return None, said


@pytest.mark.parametrize("name", READERS)
def test_any_damage(tmp_path: Path, name: str) -> None:
    read, file, contents = READERS[name]
    path = tmp_path / file
    answers = 0
    for seed in range(200):
        drawn = random.Random(f"{name} {seed}")
        content = drawn.choice(contents)
        path.write_bytes(damaged(drawn, content) if seed else content)
        answers += told(read, path)[1] == ""
    # Some damage is none: had nothing been read, nothing would have been tested.
    assert answers > 1
