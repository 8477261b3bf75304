"""The shares of exposure that groups should have, which AWRF, NDKL, EER and EEL compare with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from evenrank.groups.table import GroupTable
from evenrank.io.errors import EvenrankError, quoted
from evenrank.io.tables import IdIndex
from evenrank.io.types import Array

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
    source: str = "`target`"

    @property
    def described(self) -> str:
        """What the shares are, for a report."""
        return {
            "uniform": "equal shares of all groups",
            "candidates": "the groups' shares of the candidates",
            "relevant": "the groups' shares of the relevant documents",
            "file": f"the shares in {self.source}",
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
            raise EvenrankError(f"{self.source}: {no_group(unknown[0], table.groups)}")
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
                f"{self.source}: no shares for the query {quoted(lacking[0])}"
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
        raise EvenrankError("target='file' needs the shares of the groups: give `target`")
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
        raise EvenrankError("the target 'relevant' needs `qrels`")
    graded = run.qrels.filter(pl.col("relevance") > 0)
    query = IdIndex([run.queries]).places(graded["query_id"])
    asked = query >= 0
    weights = _known_weights(run.required_table, run.rows_of(graded["doc_id"].filter(pl.Series(asked))))
    sums = [np.bincount(query[asked], of_group, minlength=len(run.queries)) for of_group in weights.T]
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
