"""Files with any damage, and what a reader says of them."""

from __future__ import annotations

import gzip
import random
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenrank.files import EvenrankError, scan_collection


def collection(path: Path) -> Any:
    return list(scan_collection(path))


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
