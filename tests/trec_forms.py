"""Lines of TREC files in every form of file."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from evenrank.files import Order


def written(tmp_path: Path, content: str | bytes, name: str = "file") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


FORMS: dict[str, Callable[[str], str | bytes]] = {
    "spaces": lambda text: text,
    "tabs": lambda text: text.replace(" ", "\t"),
    "a mixture in each line": lambda text: text.replace("Q0 ", "Q0\t"),
    "a line with tabs among others": lambda text: text.replace("q2 Q0 0 1 -2 tag", "q2\tQ0\t0\t1\t-2\ttag"),
    "a line with spaces among others": lambda text: text.replace(" ", "\t").replace(
        "q2\tQ0\t0\t1\t-2\ttag", "q2 Q0 0 1 -2 tag"
    ),
    "several blanks": lambda text: text.replace(" Q0", "   Q0").replace("tag", "\t tag"),
    "blanks at the ends": lambda text: "".join(f" {line} \t\n" for line in text.splitlines()),
    "blanks after one line": lambda text: text.replace("-2 tag", "-2 tag "),
    "blank lines": lambda text: "\n" + text.replace("\n", "\n  \n"),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CRLF in one line": lambda text: text.replace("1.5 tag\n", "1.5 tag\r\n"),
    "no newline at the end": lambda text: text.rstrip("\n"),
    "CR at the end": lambda text: text.rstrip("\n") + "\r",
    "a byte-order mark": lambda text: "\ufeff" + text,
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip in two parts": lambda text: gzip.compress(text[:30].encode()) + gzip.compress(text[30:].encode()),
    "quotes in the tag": lambda text: text.replace("tag", '"tag'),
}
FIELD = st.text(alphabet="0189abZé_-", min_size=1, max_size=3)
Row = tuple[str, str, float, int]
COLUMNS = ["query_id", "doc_id", "score", "rank"]

# Two queries, the first not contiguous; 0 as an id; a tie; scores not sorted.
RUN = """\
0 Q0 d1 1 1.5 tag
q2 Q0 0 1 -2 tag
q2 Q0 d1 2 -1e-3 tag
0 Q0 d10 2 2.5 tag
0 Q0 d9 3 2.5 tag
"""


def slow_run(content: str, order: Order = "score") -> list[Row]:
    """A run read and ranked line by line."""
    lists: dict[str, list[tuple[str, float]]] = {}
    for line in content.split("\n"):
        if line.strip():
            query, _, doc, _, score, _ = re.split("[ \t]+", line.strip(" \t"))
            lists.setdefault(query, []).append((doc, float(score)))
    rows = []
    for query, found in lists.items():
        if order == "score":
            found.sort(key=lambda pair: pair[0].encode(), reverse=True)
            found.sort(key=lambda pair: pair[1], reverse=True)
        for rank, (doc, score) in enumerate(found, start=1):
            rows.append((query, doc, score if order == "score" else float(-rank), rank))
    return rows
