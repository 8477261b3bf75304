"""The figures in the files of two folders, and where they differ; words are not compared."""

from __future__ import annotations

import csv
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import polars as pl

Figure = float | int | bool | str | tuple[str, ...] | None

TOLERANCE = 1e-12
MOST_SHOWN = 60
NAMES = ("name", "key", "labels", "stage", "run", "measure", "group", "variant", "word", "label", "id", "method")
"""What tells the entries of a list apart, in this order of preference."""
NOT_RESULTS = (
    "tiny/*",
    "small/*",
    "making/*",
    "text/*",
    "*.index/*",
    "*.card.json",
    "studies/*/*/*",
    "studies/*/settings.json",
    "runs/*/model/*",
    "runs/*/checkpoints/*",
    "runs/*/versions.json",
)
"""Files that are inputs, work or provenance."""
NOT_FIGURES = ("provenance", "evenrank", "settings", "notes", "warnings", "seconds", "figures.*.chart", "*.sha256")
"""Keys at the top of a JSON file that hold no figures: where it comes from, and words."""
VERDICTS = ("verdict", "outcome", "state", "differs", "domain")
"""Keys whose words are compared: each is one of a few."""
ORDER = "order"
"""The name of a list's or a table's own figure: what its entries are called, in order."""


@dataclass(frozen=True)
class Changes:
    """What may differ: names, and figures that are gone or others, by pattern.

    ``renamed``: a key by its new name, or the begin of a figure's whole name (``FILE:KEY.KEY``) by the new begin.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Changes:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        patterns = {
            kind: tuple(p for one in found.get(kind, ()) for p in one["figures"]) for kind in ("gone", "others")
        }
        return cls(found.get("renamed", {}), **patterns)


def compare(old: Path, new: Path, changes: Changes) -> tuple[int, list[str]]:
    """How many figures are the same, and a line for each that is not.

    Keys and files that are only in ``new`` are allowed; entries of lists and rows of tables are not.
    """
    same, wrong = 0, []
    used: Counter[str] = Counter()

    def allowed(name: str, patterns: Iterable[str]) -> bool:
        found = next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)
        if found is not None:
            used[found] += 1
        return found is not None

    for file in results(old):
        if allowed(f"{file}", changes.gone):
            continue
        if not (new / file).is_file():
            wrong.append(f"{file}: missing")
            continue
        before, after = dict(read(old / file, changes.renamed)), dict(read(new / file, {}))
        for name, value in _moved(before, f"{file}:", changes.renamed).items():
            full = f"{file}:{name}"
            if name not in after:
                if not allowed(full, changes.gone):
                    wrong.append(f"{full}: missing ({value!r})")
            elif equal(value, after[name]):
                same += 1
            elif not allowed(full, changes.others):
                wrong.append(f"{full}: {value!r} → {after[name]!r}")
    unused = [pattern for pattern in (*changes.gone, *changes.others) if not used[pattern]]
    wrong += [f"changes.toml: nothing is like {pattern!r}" for pattern in unused]
    return same, wrong


def _moved(figures: Mapping[str, Figure], file: str, renamed: Mapping[str, str]) -> dict[str, Figure]:
    """The figures of a file under their new names; what stood under such a name before is compared no more."""
    moved = {
        target.removeprefix(file) + name.removeprefix(start.removeprefix(file)): value
        for start, target in renamed.items()
        if start.startswith(file)
        for name, value in figures.items()
        if f"{file}{name}".startswith(f"{start}.")
    }
    gone = [start.removeprefix(file) for start in renamed if start.startswith(file)]
    stay = {name: value for name, value in figures.items() if not any(name.startswith(f"{start}.") for start in gone)}
    return stay | moved


def results(folder: Path) -> list[Path]:
    """The files below ``folder`` whose figures are compared."""
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
    """The figures of a file by name: in JSON the keys on the way, in a table the row and the column."""
    for name, value in READERS[path.suffix](path):
        parts = [renamed.get(part, part) for part in name]
        # Words are not compared; a name (an id, a measure, a group) has no space.
        words = isinstance(value, str) and (" " in value or "/" in value)
        if not words or path.suffix != ".json" or name[-1] in VERDICTS:
            yield ".".join(parts), value


def _json(path: Path) -> Iterator[tuple[tuple[str, ...], Figure]]:
    found = json.loads(path.read_text(encoding="utf-8"))
    for name, value in _leaves(found, ()):
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
    """A name for each entry of a list: its own, with a number where several have it, or its place."""
    names = []
    for place, value in enumerate(values):
        own = next((value[key] for key in NAMES if value.get(key)), None) if isinstance(value, dict) else None
        names.append(str(place) if own is None else "|".join(own) if isinstance(own, list) else str(own))
    return _numbered(names)


def _numbered(names: list[str]) -> list[str]:
    """The same names, a second and a third of one name with its number."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return found


def _rows(table: pl.DataFrame) -> Iterator[tuple[tuple[str, ...], Figure]]:
    """The order of the rows, which are called by their texts, and their numbers by row and column."""
    texts = [name for name, kind in table.schema.items() if kind == pl.String]
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
    cells = {name: [_number(row[place]) for row in rows] for place, name in enumerate(_numbered(heading))}
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
    """A TREC run: its lines, the document at each, and its score."""
    lines = path.read_text(encoding="utf-8").splitlines()
    yield ("lines",), len(lines)
    for place, line in enumerate(lines):
        query, _, document, rank, score, _ = line.split()
        yield (str(place), "document"), f"{query}:{document}:{rank}"
        yield (str(place), "score"), float(score)


def _lines(path: Path) -> Iterator[tuple[tuple[str, ...], Figure]]:
    """The number of lines and each line, texts too: a collection, lists of ids, a training's log, word vectors."""
    lines = path.read_text(encoding="utf-8").splitlines()
    yield ("lines",), len(lines)
    for place, line in enumerate(lines):
        yield (str(place),), line


READERS = {
    ".json": _json,
    ".csv": _csv,
    ".run": _run,
    ".tsv": _lines,
    ".jsonl": _lines,
    ".txt": _lines,
    ".parquet": lambda path: _rows(pl.read_parquet(path)),
}
