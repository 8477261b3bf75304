"""Any damage to any file: every reader gives a right answer or says, in a line, what is wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenrank.files import EvenrankError, read_qrels, read_queries, read_run
from evenrank.files.squad import load_squad
from evenrank.groups import load_lexicon, read_group_table
from evenrank.search.embeddings import read_sets, read_vectors, read_word_list
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


READERS: dict[str, tuple[Callable[[Path], Any], str, tuple[bytes, ...]]] = {
    "run": (read_run, "run", (RUN, RUN.replace(b" ", b"\t"))),
    "qrels": (read_qrels, "qrels", (QRELS, QRELS.replace(b" ", b"  "))),
    "queries": (read_queries, "queries.tsv", (TSV, JSONL)),
    "collection": (collection, "collection.tsv", (TSV, JSONL)),
    "parquet collection": (collection, "collection.parquet", (TEXTS,)),
    "scores": (read_group_table, "scores.parquet", (SCORES,)),
    "lexicon": (load_lexicon, "lexicon.csv", (LINES,)),
    "TOML lexicon": (load_lexicon, "lexicon.toml", (TOML,)),
    "squad": (load_squad, "squad.json", (SQUAD,)),
    "text vectors": (read_vectors, "vectors.txt", (VECTORS, GLOVE)),
    "binary vectors": (read_vectors, "vectors.bin", (BINARY,)),
    "word sets": (read_sets, "sets.json", (SETS,)),
    "word list": (read_word_list, "words.json", (WORDS,)),
    "groups": (read_list_file, "groups.jsonl", (GROUPS,)),
    "parquet groups": (read_list_file, "groups.parquet", (PARQUET_GROUPS,)),
    "recipe": (load_recipe, "recipe.toml", (RECIPE,)),
}


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


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["run", "qrels", "collection", "lexicon", "text vectors", "word list", "groups"])
def test_other_encodings(tmp_path: Path, name: str, encoding: str) -> None:
    read, file, contents = READERS[name]
    (tmp_path / file).write_bytes(contents[0].decode().encode(encoding))
    assert told(read, tmp_path / file)[1].endswith(
        "line 1: expected UTF-8, found what looks like UTF-16 (save the file as UTF-8)"
    )


def test_lines_that_end_in_a_carriage_return_alone(tmp_path: Path) -> None:
    (tmp_path / "texts").write_bytes(TSV.replace(b"\n", b"\r"))
    said = told(collection, tmp_path / "texts")[1]
    assert said.endswith("line 1: expected lines ending in a line feed, found only carriage returns")


def test_what_stands_in_a_message_cannot_move_the_cursor() -> None:
    assert str(EvenrankError("a\x1b[2J\nb\u202e\u2028é")) == r"a\x1b[2J\nb\u202e\u2028é"
