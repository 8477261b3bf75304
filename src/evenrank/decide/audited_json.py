"""An audit read from its JSON, which others may have written: checked, and only as far as rules ask for it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from numbers import Real
from pathlib import Path

import numpy as np

from evenrank.files.errors import EvenrankError, InputError, reason_of
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.stats.sampling import LabelSample

from .audited import NOT_CHECKED, OF_SUMS, REFERENCES, Audited, RuleValues, no_quantity, not_measured
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
_NO_VALUES = "no values of the queries: `evenrank audit … --json F --values` writes them"


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
    return _AuditJson(data if isinstance(data, dict) else {}, path).audited()


def _no_constant(name: str) -> float:
    raise ValueError(f"expected a number or null, found {name}")


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


class _AuditJson:
    """The JSON of an audit with the values of its queries; arrays are made where a rule asks for them."""

    def __init__(self, data: Mapping[str, object], path: str | None) -> None:
        self._path, self._data = path, data
        self._runs = _table(data.get("runs"))
        if not any(name not in REFERENCES for name in self._runs):
            raise self._wrong("expected an object with the key runs")
        if "sums" in _table(data.get("settings")):
            raise self._fail(OF_SUMS)
        queries = data.get("queries")
        if queries is None:
            raise self._fail(_NO_VALUES)
        if not isinstance(queries, list | tuple):
            raise self._wrong("expected a list of values for its list of queries")
        self._queries = len(queries)

    def audited(self) -> Audited:
        """The audit, with what is not about a single rule read and checked."""
        data = self._data
        baseline, warnings, groups = (data.get(name) for name in ("baseline", "warnings", "query_group"))
        facts = {name: Facts.of(values) for name, values in _table(data.get("measures")).items()}
        lengths = {run: _table(of).get("lengths") for run, of in self._runs.items()}
        return Audited(
            runs=tuple(self._runs),
            own_baseline=baseline if isinstance(baseline, str) else None,
            queries=self._queries,
            facts={name: known for name, known in facts.items() if known is not None},
            values=self._values,
            lengths={run: self._array(found) for run, found in lengths.items() if found is not None},
            query_group=groups if isinstance(groups, list | tuple) and len(groups) == self._queries else None,
            clusters=self._clusters(),
            poles=self._poles(),
            warnings=[w for w in warnings if isinstance(w, str)] if isinstance(warnings, list | tuple) else [],
            provenance=_table(data.get("provenance")) or None,
            unchecked=_table(data.get("settings")).get("judge") == NOT_CHECKED,
            path=self._path,
        )

    def _fail(self, message: str) -> EvenrankError:
        return EvenrankError(message) if self._path is None else InputError(self._path, message)

    def _wrong(self, message: str) -> EvenrankError:
        return self._fail(f"no audit's JSON: {message}")

    def _values(self, run: str, rule: Rule) -> RuleValues:
        figure = self._figure(run, rule)
        quantity = figure if rule.quantity == "figure" else figure.get(rule.quantity)
        if not isinstance(quantity, Mapping):
            raise no_quantity(rule, run)
        parts = quantity.get("parts")
        if parts is None:
            parts = [quantity.get("values")]
        elif not isinstance(parts, list | tuple) or len(parts) != len(rule.facts.signs):
            raise self._wrong(f"parts of {rule.measure}: expected {counted(len(rule.facts.signs), 'list')} of values")
        if any(values is None for values in parts):
            raise self._fail(_NO_VALUES)
        over_ties, known = quantity.get("over_ties"), _table(figure.get("known"))
        greatest, depth = figure.get("greatest"), _table(figure.get("vs_baseline")).get("unequal_depth")
        number = isinstance(greatest, int | float) and not isinstance(greatest, bool) and greatest >= 0
        return RuleValues(
            tuple(map(self._array, parts)),
            None if over_ties is None else self._array(over_ties),
            self._sample(quantity.get("sample"), rule),
            float(greatest) if number else None,  # type: ignore[arg-type]
            figure.get("sample") is None and known.get("rows") != known.get("of"),
            None if depth is None else bool(depth),
        )

    def _figure(self, run: str, rule: Rule) -> Mapping[str, object]:
        """What the audit says of a run and the measure of a rule. Raises EvenrankError if it was not measured."""
        figures = _table(_table(self._runs[run]).get("measures"))
        figure = figures.get(rule.measure)
        if figure is None:
            # Another spelling, in a file that was written by hand.
            spelled = {_canonical(name): name for name in figures}
            figure = figures.get(spelled.get(rule.measure, ""))
        if not isinstance(figure, Mapping):
            raise not_measured(rule, list(figures))
        return figure

    def _sample(self, found: object, rule: Rule) -> LabelSample | None:
        """What values owe to labels that were drawn; None of others."""
        if found is None:
            return None
        try:
            parts: dict[str, Array] = {name: np.array(_table(found)[name], kind) for name, kind in _OF_SAMPLE.items()}
            part = LabelSample(**parts)
            places = (part.query, self._queries), (part.document, part.labels)
            sound = all(len(at) == len(part.weight) and (at >= 0).all() and (at < most).all() for at, most in places)
            sound &= len(part.probability) == part.labels
            sound &= bool(np.isfinite(np.concatenate([part.weight, part.residual])).all())
            if not (sound and (part.probability > 0).all() and (part.probability <= 1).all()):
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError):
            raise self._wrong(f"{rule.measure}: what it owes to drawn labels cannot be read") from None
        return part

    def _clusters(self) -> Array | None:
        found = self._data.get("query_cluster")
        if found is None:
            return None
        numbers = self._array(found)
        if np.isnan(numbers).any():
            raise self._wrong("expected a whole number for each query in query_cluster")
        clusters: Array = np.unique(numbers, return_inverse=True)[1]
        return clusters

    def _poles(self) -> tuple[str, str] | None:
        found = _table(self._data.get("settings")).get("poles")
        if not isinstance(found, list | tuple) or len(found) != 2 or not all(isinstance(one, str) for one in found):
            return None
        return found[0], found[1]

    def _array(self, values: object) -> Array:
        """A value for each query [Q]; NaN for null."""
        if not isinstance(values, list | tuple):
            raise self._wrong("expected a list of values for its list of queries")
        kinds: set[type] = {type(value) for value in values} - {type(None)}
        try:
            if bool in kinds or not all(issubclass(kind, Real) for kind in kinds):
                raise TypeError
            array = np.array(values, np.float64)
        except (TypeError, ValueError):
            raise self._wrong("expected numbers or null as values") from None
        except OverflowError:
            array = np.array([math.inf])
        if (np.abs(array) > _LARGEST).any():
            raise self._wrong("expected finite numbers as values")
        if array.ndim != 1 or len(array) != self._queries:
            raise self._wrong("expected a value for each of its queries")
        return array


def _canonical(name: str) -> str:
    # Imported late: an audit's own JSON has its measures' texts.
    from evenrank.measures import parse_measure

    try:
        return str(parse_measure(name))
    except EvenrankError:
        return name
