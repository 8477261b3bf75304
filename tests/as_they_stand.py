"""Files made of odd lines, read by slow, obvious readers and by ours."""

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from damage import told
from evenrank.files import reading

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


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
    st.sampled_from([1, 5, 16, 1 << 20]),
)


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
    with mock.patch.dict(reading.line_blocks.__kwdefaults__, block_bytes=packing.block):
        found, said = told(read, path)
    assert found == expected, said


values = st.sampled_from(
    ["a", "b", "é", "\u2028", "\x00", "", 1, 2, 1.5, None, True, ["a"], "\ud800", 10**30, "x" * 300]
)
