"""Reads the figures in the files of two folders and compares them."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import polars as pl

Figure = float | int | bool | str | tuple[str, ...] | None

PARTS = ("estimate", "inference", "verdict", "order", "text")
"""Point estimates and data; intervals and tests; verdicts and levels; orders of ties, rows and lists; sentences."""
TOLERANCE = 1e-12
MOST_SHOWN = 60
NAMES = ("name", "key", "labels", "run", "measure", "group", "variant", "word", "label", "id", "method")
"""Keys by which the entries of a list are told apart, in this order of preference."""
NOT_RESULTS = (
    "tiny/*",
    "small/*",
    "making/*",
    "c/*",
    "beir/*",
    "*.index/*",
    "*.card.json",
    "forms/c*.*",
    "studies/*/*/*",
    "studies/*/settings.json",
    "runs/*/model/*",
    "runs/*/checkpoints/*",
    "runs/*/versions.json",
)
"""Files that are inputs, intermediate or provenance."""
NOT_FIGURES = (
    "provenance",
    "evenrank",
    "settings",
    "seconds",
    "audit.versions",
    "audit.files",
    "figures.*.chart",
    "*.sha256",
)
"""Keys at the top of a JSON file that hold no figures."""
VERDICTS = ("verdict", "outcome", "level", "state", "differs", "domain", "robust")
"""Keys of verdicts, which are compared exactly."""
INFERENCE = frozenset(
    (
        *("ci95", "interval", "half_width", "error", "se", "freedom", "df", "skew", "p", "t_p", "z", "z_p", "tie_p"),
        *("holm_p", "holm", "wilcoxon_p", "p_holds", "p_broken", "p_violated", "p_equal", "holm_p_equal"),
        *("noticeable", "catches", "power", "queries_to_decide", "if_equal", "one_in", "mde", "detectable"),
        *("n_if_equal", "n_identical", "tolerable_failures", "limits", "greatest", "no_loss", "unit"),
        *("low", "high", "ratio_low", "ratio_high"),
    )
)
"""Keys of intervals, tests and errors."""
ORDER = "order"
"""The key of the names of a list's entries, or of a table's rows, in order."""


@dataclass(frozen=True)
class Changes:
    """The figures that may differ, by pattern.

    Attributes:
        renamed: Old keys, or the beginning of a figure's full name (``FILE:KEY.KEY``), with their new names.
        gone: Patterns of files and figures that need not be there any more.
        changed: Patterns of figures that may have another value, each with the part that it is about (None: any).
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    changed: tuple[tuple[str, str | None], ...] = ()

    @classmethod
    def read(cls, path: Path) -> Changes:
        """The changes in a TOML file. Raises ValueError for an entry without a reason or of an unknown part."""
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = [entry for kind in ("gone", "changed") for entry in table.get(kind, ())]
        for entry in entries:
            if not entry.get("reason") or entry.get("part", PARTS[0]) not in PARTS:
                raise ValueError(f"{path}: expected a reason, and a part of {PARTS} if any: {entry}")
        gone = tuple(pattern for entry in table.get("gone", ()) for pattern in entry["figures"])
        changed = tuple((p, entry.get("part")) for entry in table.get("changed", ()) for p in entry["figures"])
        return cls(table.get("renamed", {}), gone, changed)


def compare(old: Path, new: Path, changes: Changes, texts: bool = False) -> tuple[Counter[str], list[str]]:
    """Compares the figures in two folders.

    Files and keys that only ``new`` has are allowed; further entries of a list and rows of a table are not.

    Args:
        old: The folder of the figures as they were.
        new: The folder of the figures as they are.
        changes: What may differ.
        texts: Compare sentences and terminal output as well.

    Returns:
        The number of equal figures by part, and a line for each figure that differs.
    """
    same: Counter[str] = Counter()
    wrong: list[str] = []
    used: Counter[str] = Counter()

    def allowed(name: str, patterns: Iterable[str]) -> bool:
        match = next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)
        if match is not None:
            used[match] += 1
        return match is not None

    for file in results(old):
        if allowed(f"{file}", changes.gone):
            continue
        if not (new / file).is_file():
            wrong.append(f"{file}: missing")
            continue
        before, after = dict(read(old / file, changes.renamed)), dict(read(new / file, {}))
        for name, value in _moved(before, f"{file}:", changes.renamed).items():
            full, part = f"{file}:{name}", part_of(name, value, file)
            if part == "text" and not texts:
                continue
            if name not in after:
                if not allowed(full, changes.gone):
                    wrong.append(f"{full}: missing ({value!r})")
            elif equal(value, after[name]):
                same[part] += 1
            elif not allowed(full, (pattern for pattern, of in changes.changed if of in (None, part))):
                wrong.append(f"{full}: {value!r} → {after[name]!r}")
    patterns = [*changes.gone, *(pattern for pattern, of in changes.changed if texts or of != "text")]
    wrong += [f"changes.toml: nothing is like {pattern!r}" for pattern in patterns if not used[pattern]]
    return same, wrong


def part_of(name: str, value: Figure, file: Path) -> str:
    """The part of :data:`PARTS` that a figure belongs to, by its key and its value."""
    keys = name.split(".")
    if keys[-1] == ORDER or (file.suffix == ".run" and keys[-1] == "document"):
        return "order"
    if keys[-1] in VERDICTS:
        return "verdict"
    words = file.suffix == ".json" and isinstance(value, str) and (" " in value or "/" in value)
    if words or file.parts[0] == "text":
        return "text"
    return "inference" if not INFERENCE.isdisjoint(keys) else "estimate"


def _moved(figures: Mapping[str, Figure], file: str, renamed: Mapping[str, str]) -> dict[str, Figure]:
    """The figures of a file under their new full names; figures that stood under such a name before are dropped."""
    moved = {
        target.removeprefix(file) + name.removeprefix(start.removeprefix(file)): value
        for start, target in renamed.items()
        if start.startswith(file)
        for name, value in figures.items()
        if f"{file}{name}".startswith(f"{start}.")
    }
    starts = [start.removeprefix(file) for start in renamed if start.startswith(file)]
    stay = {name: value for name, value in figures.items() if not any(name.startswith(f"{s}.") for s in starts)}
    return stay | moved


def results(folder: Path) -> list[Path]:
    """The files below ``folder`` whose figures are compared, relative to it."""
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return [
        file
        for file in files
        if file.suffix in READERS and not any(fnmatchcase(f"{file}", pattern) for pattern in NOT_RESULTS)
    ]


def equal(old: Figure, new: Figure) -> bool:
    """Numbers to 1e-12 of their size (or of 1), entries of a list but for those that are gone, all else exactly."""
    if isinstance(old, tuple) and isinstance(new, tuple):
        there = set(new)
        return new == tuple(name for name in old if name in there)
    numbers = [value for value in (old, new) if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < 2:
        return type(old) is type(new) and old == new
    a, b = numbers
    return a == b or (a != a and b != b) or abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))


def read(path: Path, renamed: Mapping[str, str]) -> Iterator[tuple[str, Figure]]:
    """The figures of a file with their names: in JSON the keys on the way, in a table the row and the column.

    ``renamed``: a key by its new name; one that is renamed below a first key alone as ``first/key``.
    """
    for name, value in READERS[path.suffix](path):
        yield ".".join(renamed.get(f"{name[0]}/{part}", renamed.get(part, part)) for part in name), value


def _json(path: Path) -> Iterator[tuple[tuple[str, ...], Figure]]:
    for name, value in _leaves(json.loads(path.read_text(encoding="utf-8")), ()):
        joined = ".".join(name)
        if not any(fnmatchcase(joined, pattern) or fnmatchcase(joined, f"{pattern}.*") for pattern in NOT_FIGURES):
            yield name, value


def _leaves(value: object, name: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Figure]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*name, key))
    elif isinstance(value, list):
        keys = _keys(value)
        yield (*name, ORDER), tuple(keys)
        for key, inner in zip(keys, value, strict=True):
            yield from _leaves(inner, (*name, key))
    else:
        assert value is None or isinstance(value, float | int | str)
        yield name, value


def _keys(values: list[object]) -> list[str]:
    """A name for each entry of a list: its own, with a number where several have it, or its index."""
    names = []
    for index, value in enumerate(values):
        if isinstance(value, dict) and "key" in value and "subject" in value:
            names.append(f"{value['key']}|{value['subject']}")
            continue
        own = next((value[key] for key in NAMES if value.get(key)), None) if isinstance(value, dict) else None
        names.append(str(index) if own is None else "|".join(own) if isinstance(own, list) else str(own))
    return _numbered(names)


def _numbered(names: list[str]) -> list[str]:
    """The same names, repeated ones with their number."""
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return numbered


_DECIDED = {*VERDICTS, *INFERENCE}
"""Columns of texts that name no row."""


def _rows(table: pl.DataFrame) -> Iterator[tuple[tuple[str, ...], Figure]]:
    """The order of the rows, which are named by their texts, and their numbers by row and column."""
    texts = [name for name, kind in table.schema.items() if kind == pl.String and name not in _DECIDED]
    rows = table.rows(named=True)
    names = _numbered(["|".join(str(row[name]) for name in texts) for row in rows])
    yield (ORDER,), tuple(names)
    for name, row in zip(names, rows, strict=True):
        for column, value in row.items():
            if column not in texts:
                for key, leaf in _leaves(value, ()):
                    yield (name, column, *key), leaf


def _csv(path: Path) -> Iterator[tuple[tuple[str, ...], Figure]]:
    with path.open(encoding="utf-8", newline="") as file:
        heading, *rows = csv.reader(file)
    cells = {name: [_number(row[index]) for row in rows] for index, name in enumerate(_numbered(heading))}
    columns = {
        name: values if all(isinstance(v, float) or v is None for v in values) else [str(v) for v in values]
        for name, values in cells.items()
    }
    return _rows(pl.DataFrame(columns, strict=False))


def _number(text: str) -> float | str | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _run(path: Path) -> Iterator[tuple[tuple[str, ...], Figure]]:
    """The document and the score of each line of a TREC run."""
    lines = path.read_text(encoding="utf-8").splitlines()
    yield ("lines",), len(lines)
    for index, line in enumerate(lines):
        query, _, document, rank, score, _ = line.split()
        yield (str(index), "document"), f"{query}:{document}:{rank}"
        yield (str(index), "score"), float(score)


def _lines(path: Path) -> Iterator[tuple[tuple[str, ...], Figure]]:
    """The lines of a collection, a list of ids, a training's log, word vectors, or a terminal, and their number."""
    lines = path.read_text(encoding="utf-8").splitlines()
    terminal = path.parent.name == "text"
    yield ("text" if terminal else "lines",), f"{len(lines)} lines" if terminal else len(lines)
    for index, line in enumerate(lines):
        yield (str(index),), _SECONDS.sub("N s", line) if terminal else line


_SECONDS = re.compile(r"\b[\d.]+ s\b")

READERS = {
    ".json": _json,
    ".csv": _csv,
    ".run": _run,
    ".tsv": _lines,
    ".jsonl": _lines,
    ".txt": _lines,
    ".parquet": lambda path: _rows(pl.read_parquet(path)),
}
