"""The contracts refuse what breaks them, and name the promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evenrank.measures import CUTOFF, BiasMeasure
from evenrank.mitigation.reorderings import GroupedLists, Neutral
from evenrank.results.result import Result
from evenrank.testing import check_measure, check_reordering, check_result
from small_reports import small_audit


def measure(**methods: Any) -> BiasMeasure:
    """The share of the first k documents that are about the first pole, with some methods replaced."""

    def values(self: BiasMeasure, run: Any) -> Any:
        side = np.sign(run.magnitude().first(run.scored_lists, self["cutoff"]))
        return (side > 0).sum(axis=1) / self["cutoff"]

    body = {"__name__": "Own", "NAME": "Own", "PRETTY_NAME": "Own", "SUPPORTED_PARAMS": {"cutoff": CUTOFF}}
    own = type("Own", (BiasMeasure,), {**body, "least": 0.0, "most": 1.0, "values": values, **methods})
    return own() @ 2


def first(run: Any) -> Any:
    return run.magnitude().first(run.scored_lists, 4)


@pytest.mark.parametrize(
    ("methods", "broken"),
    [
        ({"most": 0.4}, "beyond its least and most"),
        ({"values": lambda _, run: np.zeros(1)}, "not one value for each query"),
        ({"values": lambda _, run: np.random.default_rng().random(len(run.queries))}, "when asked again"),
        ({"values": lambda _, run: np.arange(len(run.queries)) / 9}, "queries in another order"),
        ({"values": lambda _, run: run.lists.scores[run.lists.offsets[:-1]] / 9}, "scores cubed"),
        ({"values": lambda _, run: (first(run) > 0) @ np.arange(1, first(run).shape[1] + 1) / 99}, "below the cutoff"),
        ({"expected": lambda self, run, random=False: self.values(run) * 0}, "is not its mean over"),
        ({"bounds": lambda self, run: (self.values(run), self.values(run))}, "mean over the orders"),
        (
            {"bounds": lambda self, run: (self.values(run) + 2, self.values(run))},
            "mean over the orders|is not in|ties reach",
        ),
        ({"label_bounds": lambda self, run, random=False: (self.values(run),) * 2}, "over unknown labels"),
    ],
)
def test_measures(methods: dict[str, Any], broken: str) -> None:
    with pytest.raises(AssertionError, match=broken):
        check_measure(measure(**methods))


def reordering(order: Callable[[GroupedLists, float], Any]) -> Callable[[], Any]:
    return lambda: SimpleNamespace(order=order)


@pytest.mark.parametrize(
    ("order", "broken"),
    [
        (lambda lists, _: np.arange(len(lists.scores))[::-1], "does not leave the run"),
        (lambda lists, _: np.arange(len(lists.scores), dtype=np.int32), "int32"),
        (lambda lists, s: np.arange(len(lists.scores))[:: -1 if s else 1], "list by list"),
        (lambda lists, s: np.lexsort((np.random.default_rng().random(len(lists.scores)) * s,)), "another order"),
        (lambda lists, s: np.arange(len(lists.scores)), "is taken"),
        (lambda lists, s: _by_list(lists, lambda part: part[::-1] if s else part), "their order"),
        (lambda lists, s: _by_list(lists, lambda part: part[int(s > 0) :]), "list by list"),
        (lambda lists, s: Neutral().order(lists, s * (len(lists.lengths) > 1)), "another's order"),
    ],
)
def test_reorderings(order: Any, broken: str) -> None:
    with pytest.raises(AssertionError, match=broken):
        check_reordering(reordering(order))


def _by_list(lists: GroupedLists, change: Callable[[Any], Any]) -> Any:
    parts = np.split(np.arange(len(lists.scores)), lists.offsets[1:-1])
    return np.concatenate([change(part) for part in parts]) if parts else np.arange(0)


@dataclass(frozen=True, slots=True, repr=False)
class Told(Result):
    """A result that says what it is given."""

    screen: str = "fine"
    notebook: str = "fine"
    name: str = "fine"
    value: float | None = 0.5

    def table(self, *, full: bool = False, width: int = 80) -> str:
        return self.screen

    def _repr_html_(self) -> str:
        return self.notebook

    def page(self) -> Any:
        return small_audit().page()


@pytest.mark.parametrize(
    ("fields", "broken"),
    [
        ({"screen": "x" * 81}, "81 columns"),
        ({"screen": " "}, "empty"),
        ({"screen": "\x1b[2J"}, "control character"),
        ({"notebook": "<img src=x>"}, "holds img, src"),
        ({"notebook": "<b>a</b><script>evil"}, "holds script"),
    ],
)
def test_results(fields: dict[str, Any], broken: str) -> None:
    with pytest.raises(AssertionError, match=broken):
        check_result(Told(**fields))
