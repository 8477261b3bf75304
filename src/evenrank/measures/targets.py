"""The shares of exposure that groups should have, which AWRF and NDKL compare with; and their files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from evenrank.files.convert import frame_of, is_path
from evenrank.files.errors import EvenrankError, InputError, arg, quoted, readable, shown
from evenrank.files.tables import Columns, IdIndex, read_columns
from evenrank.files.types import Array
from evenrank.groups.table import GroupTable

if TYPE_CHECKING:
    from .joined import JoinedRun

TargetKind = Literal["uniform", "candidates", "relevant", "file"]
TARGETS: tuple[TargetKind, ...] = get_args(TargetKind)


@dataclass(frozen=True, eq=False)
class Target:
    """The share of exposure that each group should have in each query.

    ``kind``: ``uniform``, the same for all groups; ``candidates``, the groups' shares of the background's documents of
    the query (of the run's own without a background); ``relevant``, their shares of the query's relevant documents,
    grade 1 or more; ``file``, given: ``shares`` [T, G] of the G ``groups`` for the ``queries`` [T], or for all alike
    ([1, G], None). Documents that the group table lacks have no share. ``source``: where given shares are from.
    """

    kind: TargetKind
    groups: tuple[str, ...] = ()
    shares: Array | None = None
    queries: pl.Series | None = None
    source: str | None = None

    @property
    def described(self) -> str:
        """What the shares are, for a report."""
        return {
            "uniform": "equal shares of all groups",
            "candidates": "the groups' shares of the candidates",
            "relevant": "the groups' shares of the relevant documents",
            "file": f"the shares in {self.source or arg.target}",
        }[self.kind]

    def shares_for(self, run: JoinedRun) -> Array:
        """The share [Q, G] of each group in each of a run's queries; NaN where it is undefined.

        It is undefined without a document that has a group: among the candidates, or the relevant ones. Raises
        EvenrankError for ``relevant`` without judgements, and for a query without given shares, which it names.
        """
        table = run.required_table
        if self.kind == "uniform":
            return np.full((len(run.queries), len(table.groups)), 1 / len(table.groups))
        if self.kind == "candidates":
            return _of_candidates(run)
        if self.kind == "relevant":
            return _of_relevant(run)
        assert self.shares is not None
        unknown = [group for group in self.groups if group not in table.groups]
        if unknown:
            raise EvenrankError(f"{self.source or arg.target}: {no_group(unknown[0], table.groups)}")
        shares = np.zeros((len(self.shares), len(table.groups)))
        shares[:, [table.groups.index(group) for group in self.groups]] = self.shares
        return shares[self._places(run.queries)]

    def _places(self, queries: pl.Series) -> Array:
        """The row of the given shares for each of ``queries`` [Q]."""
        if self.queries is None:
            return np.zeros(len(queries), dtype=np.int64)
        places = IdIndex([self.queries]).places(queries)
        if (places < 0).any():
            lacking = queries.filter(pl.Series(places < 0))
            raise EvenrankError(
                f"{self.source or arg.target}: no shares for the query {quoted(lacking[0])}"
                f" ({len(lacking)} of {len(queries)} queries are missing)"
            )
        return places


_COMPUTED = {kind: Target(kind) for kind in TARGETS if kind != "file"}


def no_group(group: str, groups: tuple[str, ...]) -> str:
    """The message for a group of a target that no document can have."""
    return f"no group {quoted(group)} in the labels, which have {', '.join(groups)}"


def chosen_target(default: Target | None, kind: TargetKind | None) -> Target:
    """The target of this kind; with None the default, or the uniform one without a default.

    Raises EvenrankError for the kind ``file`` if no shares were given.
    """
    if kind is None or (default is not None and default.kind == kind):
        return default or _COMPUTED["uniform"]
    if kind == "file":
        raise EvenrankError(f"target='file' needs the shares of the groups: give {arg.target}")
    return _COMPUTED[kind]


def computed_target(kind: str) -> Target | None:
    """The target of a name, ``uniform``, ``candidates`` or ``relevant``; None for any other name."""
    return next((target for name, target in _COMPUTED.items() if name == kind), None)


def _of_candidates(run: JoinedRun) -> Array:
    background = run.background or run.as_background(run.run.name)
    weights = _known_weights(run.required_table, background.documents)
    return _normalised(weights.sum(axis=1))[background.rows(run.queries)]


def _of_relevant(run: JoinedRun) -> Array:
    if run.qrels is None:
        raise EvenrankError(f"the target 'relevant' needs {arg.qrels}")
    graded = run.qrels.filter(pl.col("relevance") > 0)
    query = IdIndex([run.queries]).places(graded["query_id"])
    in_run = query >= 0
    weights = _known_weights(run.required_table, run.rows_of(graded["doc_id"].filter(pl.Series(in_run))))
    sums = [np.bincount(query[in_run], of_group, minlength=len(run.queries)) for of_group in weights.T]
    return _normalised(np.stack(sums, axis=1))


def _known_weights(table: GroupTable, documents: Array) -> Array:
    """The groups' weights [..., G] in documents [...] given by their rows in the group table; 0 where it is −1."""
    known = documents >= 0
    weights = np.zeros((*documents.shape, len(table.groups)))
    for number, group in enumerate(table.groups):
        weights[known, number] = table.weight(group, documents[known])
    return weights


def _normalised(sums: Array) -> Array:
    """Sums [Q, G] over their total in each row; NaN for a row of zeros."""
    total = sums.sum(axis=1, keepdims=True)
    shares: Array = np.divide(sums, total, out=np.full(sums.shape, np.nan), where=total > 0)
    return shares


_QUERY, _GROUP, _SHARE = "query_id", "group", "share"
_SUM_TOLERANCE = 1e-6
_NAMES = "uniform, candidates, relevant"
_FORMS = "group,share or query_id,group,share or query_id and a column for each group"


def as_target(given: object, groups: Sequence[str]) -> Target:
    """The target of a name (``uniform``, ``candidates``, ``relevant``), a file, a dict or a table, or as it is.

    A file (see :func:`evenrank.files.tables.read_columns`) and a table have ``group`` and ``share``, or these for each
    ``query_id``, or a ``query_id`` and a column for each group. A dict is ``{group: share}`` or
    ``{query: {group: share}}``. A group that is not mentioned has the share 0.

    Raises EvenrankError, InputError with file and line if it comes from a file, for a group that is not among
    ``groups``, a share below 0, shares that do not sum to 1, and a query that is repeated.
    """
    if isinstance(given, Target):
        return given
    named = computed_target(given) if isinstance(given, str) else None
    if named is not None:
        return named
    if is_path(given):
        if not os.path.exists(given):
            raise EvenrankError(f"{arg.target}: expected {_NAMES} or a file, found {quoted(os.fspath(given))}")
        columns = read_columns(given)
        table = columns.table.with_columns(pl.col(pl.String).str.strip_chars())
        return _of_table(replace(columns, table=table), tuple(groups))
    frame = _of_mapping(given) if isinstance(given, Mapping) else frame_of(given, arg.target)
    if frame is None:
        raise EvenrankError(
            f"{arg.target}: expected {_NAMES}, a file, {{group: share}}, {{query: {{group: share}}}} or a table,"
            f" found {shown(given)}"
        )
    return _of_table(Columns(frame, what=arg.target), tuple(groups))


def _of_mapping(given: Mapping[object, object]) -> pl.DataFrame:
    """A dict as a table in long form. The shares are not looked at."""
    nested = [isinstance(value, Mapping) for value in given.values()]
    if any(nested) and not all(nested):
        raise EvenrankError(
            f"{arg.target}: expected a share for each group or for each group of each query, found both"
        )
    rows: list[tuple[object, ...]] = list(given.items())
    if any(nested):
        rows = [(q, *item) for q, of in given.items() if isinstance(of, Mapping) for item in of.items()]
    names = [*([_QUERY] if any(nested) else []), _GROUP, _SHARE]
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pl.DataFrame([pl.Series(n, c, dtype=pl.Object) for n, c in zip(names, columns, strict=True)])


def _of_table(given: Columns, groups: tuple[str, ...]) -> Target:
    names, lines = given.table.columns, given.lines
    long = names in ([_GROUP, _SHARE], [_QUERY, _GROUP, _SHARE])
    heading = None if lines is None else 1

    def error(message: str, line: int | None) -> EvenrankError:
        if given.path is None:
            return EvenrankError(f"{given.what}: {message}")
        return InputError(given.path, message, line=line)

    if not long and (len(names) < 2 or names[0] != _QUERY):
        raise error(f"expected {_FORMS}, found the columns {quoted(','.join(names))}", heading)
    unknown = [] if long else [name for name in names[1:] if name not in groups]
    if unknown:
        raise error(no_group(unknown[0], groups), heading)
    shares: dict[str | None, dict[str, float]] = {}
    first_line: dict[str | None, int | None] = {}
    for number, row in enumerate(given.table.iter_rows()):
        line = None if lines is None else int(lines[number])
        query = row[0] if names[0] == _QUERY else None
        if names[0] == _QUERY and (isinstance(query, bool) or not isinstance(query, str | int) or query == ""):
            raise error(f"expected a string or a whole number as query_id, found {quoted(query)}", line)
        query = None if query is None else str(query)
        whose = "" if query is None else f" of the query {quoted(query)}"
        first_line.setdefault(query, line)
        of_query = shares.setdefault(query, {})
        for group, share in [row[-2:]] if long else zip(names[1:], row[1:], strict=True):
            group = str(group)
            if group not in groups:
                raise error(no_group(group, groups), line)
            if group in of_query:
                raise error(f"the group {quoted(group)}{whose} is repeated", line)
            of_query[group] = _number(share)
            if not 0 <= of_query[group] < math.inf:
                message = f"expected a share from 0 to 1 of the group {quoted(group)}, found {quoted(share)}"
                raise error(message, line)
    if not shares:
        raise error("expected at least one share, found none", None)
    for query, of_query in shares.items():
        total = math.fsum(of_query.values())
        if abs(total - 1) > _SUM_TOLERANCE:
            whose = "" if query is None else f" of the query {quoted(query)}"
            raise error(f"the shares{whose} sum to {total:.6g}, expected 1", first_line[query])
    table: Array = np.array([[of_query.get(group, 0.0) for group in groups] for of_query in shares.values()])
    queries = pl.Series("query_id", [*shares], dtype=pl.String) if names[0] == _QUERY else None
    source = readable(given.path or given.what)
    return Target("file", groups, table / table.sum(axis=1, keepdims=True), queries, source)


def _number(share: object) -> float:
    try:
        return float(share)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
