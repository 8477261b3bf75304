"""Training lists from Python: records, frames, files of texts, or a run with its judgements and texts."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral

from evenrank.groups import Scoring, as_labels, check_labels, sides_of_texts
from evenrank.io import EvenrankError, InputError, as_collection, as_qrels, as_queries, as_run
from evenrank.io.convert import frame_of
from evenrank.io.errors import quoted
from evenrank.io.files import line_blocks, open_binary, open_parquet, polars_table, read_bytes, refuse_pipe
from evenrank.io.tables import lines_of
from evenrank.io.wording import counted
from evenrank.mitigation.attributes import Attribute, Attributes, attributes_of, scorings_of

from .lists import ListDataset, TrainingList, TrainingLists, build_lists
from .passage_groups import PassageGroups

_EXPECTED = "expected query (a text), passages (texts) and relevance (numbers)"


class MemoryLists(ListDataset):
    """Lists in memory, each an item, all of its passages in every epoch."""

    def __init__(self, lists: Sequence[TrainingList]) -> None:
        self.lists = list(lists)
        sides = self.lists[0].sides
        self.attributes = 0 if sides is None else len(sides[0])

    def __len__(self) -> int:
        return len(self.lists)

    def __getitem__(self, index: int) -> TrainingList:
        return self.lists[index] if index >= 0 else replace(self.lists[-1 - index], index=-1)

    def query_id(self, index: int) -> str:
        """The query itself."""
        return quoted(self.lists[index].query)


def training_lists(  # parameters: what the lists are made from
    run: object,
    qrels: object,
    *,
    collection: object,
    queries: object,
    folder: str | os.PathLike[str] | None = None,
    depth: int = 1000,
    negatives: int = 20,
    lexicon: Attributes | None = None,
    labels: object = None,
) -> TrainingLists:
    """The training lists of a run: each judged relevant passage with negatives drawn from its query's list.

    ``run``, ``qrels``, ``collection``, ``queries``: files or tables, as :func:`evenrank.audit` takes them. The lists
    are written to ``folder`` (a temporary one by default) and memory-mapped. ``depth``: how much of each list is used;
    ``negatives``: how many passages join the positive, drawn anew each epoch; ``lexicon``: passages get the sides that
    a fairness term needs; or from ``labels`` by document, as :func:`evenrank.as_labels` takes them (for several
    attributes, ``lexicon`` may name group tables of labels). A passage without a label has side 0; ``counts.json`` in
    the folder says how many have one.

    Raises EvenrankError for a passage or a query without a text, for labels that know no passage, and if no query has
    both kinds of passages.
    """
    kept = tempfile.TemporaryDirectory() if folder is None else None
    place = folder if kept is None else kept.name
    assert place is not None
    chosen = chosen_attributes(lexicon, labels)
    groups = None if chosen is None else PassageGroups(attributes_of(chosen))
    build_lists(
        as_run(run), as_qrels(qrels), as_collection(collection), as_queries(queries), place, depth=depth, groups=groups
    )
    lists = TrainingLists(place, negatives=negatives)
    lists.temporary = kept
    return lists


def chosen_attributes(lexicon: Attributes | None, labels: object) -> Attributes | None:
    """The attributes that were given, as lexicons or as labels. Raises EvenrankError for both."""
    check_labels(labels, None, None, lexicon=lexicon)
    return lexicon if labels is None else as_labels(labels)


def as_lists(given: object, attributes: Sequence[Attribute] = ()) -> ListDataset:
    """Training lists from a :class:`ListDataset`, a file, a frame or records, with sides for each of ``attributes``.

    A file (JSONL or Parquet), frame (polars, pandas, Arrow) or record has ``query``, ``passages`` (or ``docs``) and
    ``relevance`` (or ``labels``), as ``evenrank negatives --format labeled-list`` writes them, and perhaps ``sides``:
    +1, −1 or 0 for each passage, a list of them for several attributes. Missing sides come from the texts: labels are
    by document, so with them the lists have to have sides.

    Raises InputError, with the line, for a file that cannot be used; EvenrankError for other input that cannot.
    """
    if isinstance(given, ListDataset):
        lists = given
    else:
        found = list(_of_file(given) if isinstance(given, str | os.PathLike) else _of_rows(given))
        if not found:
            raise EvenrankError("`lists`: expected at least one list, found none")
        _check_sides(found)
        if found[0].sides is None and attributes:
            by_words = scorings_of({str(number): one for number, one in enumerate(attributes)})
            found = _with_sides(found, list(by_words.values()))
        lists = MemoryLists(found)
    if attributes and lists.attributes != len(attributes):
        if not lists.attributes:
            hint = ": pass `lexicon` or `labels` to training_lists" if isinstance(lists, TrainingLists) else ""
            raise EvenrankError(f"`lists`: no passage has a side{hint}")
        there = counted(lists.attributes, "attribute")
        raise EvenrankError(f"`lists`: the passages have sides for {there}, expected {len(attributes)}")
    return lists


def _check_sides(lists: Sequence[TrainingList]) -> None:
    """Raises EvenrankError unless all lists have sides for the same number of attributes, or none has."""
    attributes = [0 if one.sides is None else len(one.sides[0]) for one in lists]
    other = next((number for number, count in enumerate(attributes) if count != attributes[0]), None)
    if other is not None:
        sides = f"expected sides for {counted(attributes[0], 'attribute')}, as in list 1, found {attributes[other]}"
        raise EvenrankError(f"`lists`: list {other + 1}: {sides}")


def _with_sides(lists: Sequence[TrainingList], scorings: Sequence[Scoring]) -> list[TrainingList]:
    texts = [text for one in lists for text in one.passages]
    sides = iter(zip(*(sides_of_texts(texts, scoring).tolist() for scoring in scorings), strict=True))
    return [replace(one, sides=[list(next(sides)) for _ in one.passages]) for one in lists]


def _of_rows(given: object) -> Iterator[TrainingList]:
    frame = frame_of(given, "`lists`")
    rows = given if frame is None else frame.iter_rows(named=True)
    if not isinstance(rows, Iterable):
        raise EvenrankError(f"`lists`: expected a path, a table or records, found {type(given).__name__}")
    for number, row in enumerate(rows):
        try:
            yield _parsed(row, number)
        except ValueError as error:
            raise EvenrankError(f"`lists`: row {number + 1}: {error}") from None


def _of_file(path: str | os.PathLike[str]) -> Iterator[TrainingList]:
    for number, (line, row) in enumerate(_records(path)):
        try:
            yield _parsed(row, number)
        except ValueError as error:
            raise InputError(path, str(error), line=line) from None


def _records(path: str | os.PathLike[str]) -> Iterator[tuple[int, object]]:
    """The rows of a file, with their lines."""
    refuse_pipe(path)
    with open_binary(path) as stream:
        is_parquet = read_bytes(path, stream, 4) == b"PAR1"
    if is_parquet:
        with open_parquet(path) as file:
            yield from enumerate(polars_table(path, file.read()).iter_rows(named=True), start=1)
        return
    for block in line_blocks(path):
        for line, content in lines_of(block).iter_rows():
            try:
                yield line, json.loads(content)
            except (ValueError, RecursionError):
                raise InputError(path, f"expected a JSON object, found {quoted(content)}", line=line) from None


def _parsed(row: object, number: int) -> TrainingList:
    """A record as a list. Raises ValueError for a record of another form."""
    if not isinstance(row, Mapping):
        raise ValueError(f"{_EXPECTED}, found {type(row).__name__}")
    query, sides = row.get("query"), row.get("sides")
    passages, relevance = row.get("passages", row.get("docs")), row.get("relevance", row.get("labels"))
    if not isinstance(query, str) or not _is_list(passages, str) or not _is_list(relevance, int | float):
        raise ValueError(f"{_EXPECTED}, found {quoted(json.dumps(dict(row), default=str, ensure_ascii=False))}")
    try:
        grades = [float(value) for value in relevance]
    except OverflowError:
        raise ValueError("expected finite relevance") from None
    if not passages or len(passages) != len(grades):
        raise ValueError(f"expected a relevance for each passage, found {len(grades)} for {len(passages)} passages")
    if not all(map(math.isfinite, grades)) or len(set(grades)) < 2:
        raise ValueError("expected finite relevance that is not equal for all passages: there is nothing to learn")
    return TrainingList(number, query, list(passages), grades, None if sides is None else _sides(sides, len(grades)))


def _is_list(values: object, kind: object) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, kind) for value in values)  # type: ignore[arg-type]


def _sides(sides: object, passages: int) -> list[list[int]]:
    rows = sides if isinstance(sides, list | tuple) else ()
    found = [list(row) if isinstance(row, list | tuple) else [row] for row in rows]
    known = all(
        len(row) == len(found[0]) and all(type(side) is int and abs(side) <= 1 for side in row) for row in found
    )
    if len(found) != passages or not known:
        raise ValueError("sides: expected +1, -1 or 0 for each passage (a list of them for several attributes)")
    return found


def _is_side(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and -1 <= int(value) <= 1
