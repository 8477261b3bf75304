"""Runs, judgements and texts are read as they stand or refused, against slow, obvious readers."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from as_they_stand import (
    BLANK,
    FIELDS,
    LINES_ALONE,
    NUMBERS,
    PACKED,
    Packing,
    Wrong,
    check_against,
    fields_of,
    filled,
    finite,
    lines_of_text,
    values,
)
from evenrank.files import InputError, Order, read_qrels, read_run, scan_collection, write_run

WHOLE = re.compile(r"[+-]?\d+", re.ASCII)


def slow_run(content: bytes, order: Order) -> list[tuple[str, str, float]]:
    queries: dict[str, list[tuple[str, str, float]]] = {}
    for line in filled(lines_of_text(content)):
        query, _, doc, _, score, _ = fields_of(line, 6)
        queries.setdefault(query, []).append((query, doc, finite(score)))
    for rows in queries.values():
        if len({doc for _, doc, _ in rows}) < len(rows):
            raise Wrong
        if order == "score":
            rows.sort(key=lambda row: row[1].encode(), reverse=True)
            rows.sort(key=lambda row: -row[2])
        else:
            rows[:] = [(query, doc, -float(rank)) for rank, (query, doc, _) in enumerate(rows, 1)]
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
    if rows and rows[0] == ("id", "text"):
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
        rows.append((str(doc), " ".join(part for part in (title, text) if isinstance(part, str) and part)))
    if len({doc for doc, _ in rows}) < len(rows) or "\ud800" in "".join(map("".join, rows)):
        raise Wrong
    return rows


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


@given(runs, PACKED, st.sampled_from(["score", "file"]))
@settings(max_examples=150)
@example(["q Q0 d 1 1 t\rq Q0 e 2 1 t"], LINES_ALONE, "score")
@example(["\u00a0", "q Q0 a 1 2 t", " \t ", "q\tQ0\tb 2 1 t", ""], Packing(b"\n", True, False, False, 9), "file")
@example(["1 Q0 a 1 1e-320 t", "1 Q0 b 2 1e-321 t", "2 Q0 a 1 0.30000000000000004 t"], LINES_ALONE, "score")
# Ties fall by the bytes of the id, and 0 ties with −0.
@example(["1 Q0 𝔘 1 7 t", "1 Q0 \uff5e 1 7 t", "2 Q0 a 1 0 t", "2 Q0 b 2 -0.0 t", "2 Q0 c 3 0 t"], LINES_ALONE, "score")
# Two byte order marks, and a control character that is no space.
@example(["\ufeff\ufeffa Q0 a 1 1 t"], LINES_ALONE, "score")
@example(["a Q0 a 1,5 1 \x1c "], LINES_ALONE, "score")
# Other spaces, and ids that read the same when they are put together.
@example(["1\u00a02 Q0 a\u2003b 1 1 t", "1 Q0 1a 1 2 t", "11 Q0 a 1 1 t"], LINES_ALONE, "score")
def test_runs_as_they_stand(place: Path, lines: list[str], packing: Packing, order: Order) -> None:
    def read(path: Path) -> list[Any]:
        run = read_run(path, order=order)
        (place / "again").unlink(missing_ok=True)
        with suppress(InputError):  # of an id that the form cannot carry
            write_run(run, place / "again")
        if (place / "again").exists():
            assert read_run(place / "again").table.equals(run.table)
        return run.table.select("query_id", "doc_id", "score").rows()

    check_against(lambda content: slow_run(content, order), read, place / "run", lines, packing)


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
@example(["\u3000", "q 0 a 1", " \t", "q\t0\tb 0"], Packing(b"\n", True, False, False, 9))
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
@example(["\u00a0", "id\ttext", "a\tb"], Packing(b"\n", True, False, False, 3))
@example(["", "", "id\ttext", "a\tb"], Packing(b"\n", True, False, False, 1))
@example(["a\tb", " \t ", "c\tb"], Packing(b"\n", True, False, False, 4))
@example([" \t "], Packing(b"\n", True, False, False, 100))
def test_texts_as_they_stand(place: Path, lines: list[str], packing: Packing) -> None:
    def read(path: Path) -> list[Any]:
        return [row for batch in scan_collection(path) for row in batch.rows()]

    check_against(slow_texts, read, place / "texts", lines, packing)


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
