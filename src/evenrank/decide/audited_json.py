"""An audit read from its JSON; arrays are made where a rule asks for them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from evenrank.files.errors import EvenrankError, InputError, reason_of
from evenrank.files.types import Array
from evenrank.stats.sampling import LabelSample

from .audited import NOT_CHECKED, OF_SUMS, Audited, RuleValues, named_clusters, no_quantity, not_measured
from .budget import Facts, Rule

_OF_SAMPLE = {
    "query": np.int64,
    "document": np.int64,
    "weight": np.float64,
    "residual": np.float64,
    "probability": np.float64,
}
_LARGEST = 1e50
"""The sums of powers of larger values overflow."""
_AUDIT = "`evenrank audit … --json F --values`"
_NO_VALUES = f"no values of the queries: {_AUDIT} writes them"


def audited_json(source: str | os.PathLike[str] | Mapping[str, object]) -> Audited:
    """An audit from its JSON: a file, or the values of one. Raises InputError for a file that is not one."""
    if isinstance(source, Mapping):
        return _AuditJson(source, None).audited()
    path = os.fspath(source)
    try:
        data = json.loads(Path(path).read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise InputError(path, f"cannot be read: {reason_of(error)}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"no valid JSON: {error}") from None
    return _AuditJson(data, path).audited()


def _no_constant(name: str) -> float:
    raise ValueError(f"expected a number or null, found {name}")


class _AuditJson:
    """The JSON of an audit with the values of its queries."""

    def __init__(self, data: Any, path: str | None) -> None:
        self._data, self._path = data, path

    def audited(self) -> Audited:
        """The audit, with what is not about a single rule read."""
        data = self._data
        with self._as_written():
            runs, settings = data["runs"], data.get("settings", {})
            if "sums" in settings:
                raise self._fail(OF_SUMS)
            if data.get("queries") is None:
                raise self._fail(_NO_VALUES)
            poles, clusters = settings.get("poles"), data.get("query_cluster")
            return Audited(
                runs=tuple(runs),
                own_baseline=data.get("baseline"),
                queries=len(data["queries"]),
                facts={name: Facts.of(values) for name, values in data.get("measures", {}).items()},
                values=self._values,
                lengths={run: self._array(values["lengths"]) for run, values in runs.items()},
                query_group=data.get("query_group"),
                clusters=None if clusters is None else np.unique(self._array(clusters), return_inverse=True)[1],
                query_clusters=named_clusters(settings.get("query_clusters")),
                poles=(poles[0], poles[1]) if poles else None,
                warnings=data.get("warnings", ()),
                provenance=data.get("provenance"),
                unchecked=settings.get("judge") == NOT_CHECKED,
                path=self._path,
            )

    @contextmanager
    def _as_written(self) -> Iterator[None]:
        """Raises EvenrankError, or InputError for a file, for what is not as an audit writes it."""
        try:
            yield
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
            raise self._fail(f"not as {_AUDIT} writes it") from None

    def _fail(self, message: str) -> EvenrankError:
        return EvenrankError(message) if self._path is None else InputError(self._path, message)

    def _values(self, run: str, rule: Rule) -> RuleValues:
        with self._as_written():
            figures = self._data["runs"][run]["measures"]
            if rule.measure not in figures:
                raise not_measured(rule, list(figures))
            figure = figures[rule.measure]
            quantity = figure if rule.quantity == "figure" else figure.get(rule.quantity)
            if quantity is None:
                raise no_quantity(rule, run)
            parts = quantity.get("parts") or [quantity.get("values")]
            if None in parts:
                raise self._fail(_NO_VALUES)
            over_ties, sample, known = quantity.get("over_ties"), quantity.get("sample"), figure.get("known") or {}
            return RuleValues(
                tuple(map(self._array, parts)),
                None if over_ties is None else self._array(over_ties),
                None if sample is None else self._sample(sample),
                greatest=figure.get("greatest"),
                partly_labelled=figure.get("sample") is None and known.get("rows") != known.get("of"),
            )

    def _array(self, values: list[float | None]) -> Array:
        """A value for each query [Q]; NaN for null. Raises TypeError, ValueError or OverflowError for others."""
        kinds: set[type] = {type(value) for value in values} - {type(None)}
        if bool in kinds or not all(issubclass(kind, Real) for kind in kinds):
            raise TypeError
        array = np.array(values, np.float64)
        if array.shape != (len(self._data["queries"]),) or (np.abs(array) > _LARGEST).any():
            raise ValueError
        return array

    def _sample(self, found: Mapping[str, Any]) -> LabelSample:
        """What values owe to labels that were drawn. Raises ValueError for rows out of range, and for a probability."""
        sample = LabelSample(**{name: np.array(found[name], kind) for name, kind in _OF_SAMPLE.items()})
        places = (sample.query, len(self._data["queries"])), (sample.document, sample.labels)
        sound = all(len(at) == len(sample.weight) and ((at >= 0) & (at < most)).all() for at, most in places)
        sound &= bool(((sample.probability > 0) & (sample.probability <= 1)).all())
        if not sound or len(sample.probability) != sample.labels:
            raise ValueError
        return sample
