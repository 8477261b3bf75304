"""Folders of Markdown or text files as a collection: a passage a heading.

>>> for section in sections("# Tea\\nOld.\\n\\n## How to\\nBoil water.\\n"):
...     print(section)
Section(anchor='tea', text='Tea\\nOld.', line=1)
Section(anchor='how-to', text='Tea > How to\\nBoil water.', line=4)
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .errors import AS_UTF8, InputError, reason_of

MARKDOWN = (".md", ".markdown", ".mdx")
SUFFIXES = (*MARKDOWN, ".txt")
_TABLES = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet", ".gz", ".zst")
"""Ends of the names of other collections, beside which a README is no collection."""
_FRONT = re.compile(r"\A---[ \t]*\n.*?^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_NO_PARAGRAPH = re.compile(r" {0,3}(?:>|[-*+][ \t]|\d+[.)][ \t]|\||(?:[-*_][ \t]*){3,}$)|\t| {4}")
"""A line that an underline does not make a heading."""
_LINK, _MARKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), re.compile(r"[^\w\- ]")


class Section(NamedTuple):
    """A heading's anchor (None: before the first), its path of headings above its body, and the line that it is in."""

    anchor: str | None
    text: str
    line: int


def is_text_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a local folder of Markdown or text files, and not of the parts of another collection."""
    if not os.path.isdir(path):
        return False
    files = text_files(path)
    if any(file.endswith(MARKDOWN) and os.path.basename(file).lower() != "readme.md" for file in files):
        return True
    parts = any(name.endswith(_TABLES) or "=" in name or name in ("index.json", "data") for name in os.listdir(path))
    return bool(files) and not parts and not any("\t" in _read(file).partition("\n")[0] for file in files[:1])


def text_files(folder: str | os.PathLike[str]) -> list[str]:
    """The Markdown and text files below a folder, sorted; hidden ones and those in hidden folders are left out."""
    home = Path(folder)
    inside = (Path(parent, name) for parent, _, names in os.walk(home) for name in names if name.endswith(SUFFIXES))
    return sorted(
        str(file) for file in inside if not any(part.startswith(".") for part in file.relative_to(home).parts)
    )


def passages(file: str, folder: str | os.PathLike[str]) -> Iterator[tuple[str, Section]]:
    """The sections of a file by their ids: its path in the folder, ``#`` and the heading's anchor."""
    name = Path(file).relative_to(folder).as_posix() if os.path.isdir(folder) else os.path.basename(file)
    text = _read(file)
    parts = [Section(None, text.strip(), 1)] if file.endswith(".txt") else sections(text)
    for section in parts:
        if section.text:
            yield name if section.anchor is None else f"{name}#{section.anchor}", section


def sections(text: str) -> Iterator[Section]:
    """The sections of a Markdown text that have a body: front matter and comments go, fences stay whole."""
    # What goes leaves its line ends, so that lines keep their numbers.
    text = _FRONT.sub(lambda match: "\n" * match[0].count("\n"), text)
    path: list[tuple[int, str]] = []
    anchors: set[str] = set()
    anchor, start, body = None, 1, list[str]()
    fence, comment = "", False

    def section() -> Iterator[Section]:
        content = "\n".join(body).strip("\n").rstrip()
        if content:
            yield Section(anchor, "\n".join(filter(None, [" > ".join(title for _, title in path), content])), start)

    for number, line in enumerate(text.splitlines(), 1):
        opened = None if comment else _FENCE.match(line)
        if not fence:
            line = _COMMENT.sub("", line)
            starts = not comment and opened is None and line.lstrip(" ").startswith("<!--")
            if comment or starts:
                comment = "-->" not in line
                continue
        heading: tuple[int, str] | None = None
        if fence:
            closes = opened is not None and opened[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
        elif opened is not None:
            fence = opened[1]
        elif (atx := _ATX.match(line)) is not None:
            heading = len(atx[1]), atx[2] or ""
        elif (under := _SETEXT.match(line)) and body and body[-1].strip() and not _NO_PARAGRAPH.match(body[-1]):
            heading, number = (1 if under[1][0] == "=" else 2, body.pop().strip()), number - 1
        if heading is None:
            body.append(line)
            continue
        yield from section()
        path = [*(above for above in path if above[0] < heading[0]), (heading[0], _LINK.sub(r"\1", heading[1]))]
        slug = _MARKS.sub("", path[-1][1].strip().lower()).replace(" ", "-")
        names = itertools.chain([slug], (f"{slug}-{again}" for again in itertools.count(1)))
        anchor, start, body = next(name for name in names if name not in anchors), number, []
        anchors.add(anchor)
    yield from section()


def section_lines(collection: object, ids: Iterable[str]) -> dict[str, str]:
    """Where sections of a folder stand, ``path:line``, by their ids; nothing of another collection."""
    if not isinstance(collection, str | os.PathLike) or not is_text_folder(collection):
        return {}
    wanted = set(ids)
    names = {doc_id.partition("#")[0] for doc_id in wanted}
    files = (file for file in text_files(collection) if Path(file).relative_to(collection).as_posix() in names)
    lines = ((doc_id, section.line) for file in files for doc_id, section in passages(file, collection))
    return {doc_id: f"{doc_id.partition('#')[0]}:{line}" for doc_id, line in lines if doc_id in wanted}


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(file, f"expected UTF-8{AS_UTF8}") from None
    except OSError as error:
        raise InputError(file, f"cannot be read: {reason_of(error)}") from None
