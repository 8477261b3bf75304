"""What holds for every method that reorders lists, and how methods are made by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank import options as opt
from evenrank.files.arguments import checked
from evenrank.files.errors import EvenrankError
from evenrank.files.types import Array
from evenrank.mitigation.reorderings import (
    METHODS,
    Fair,
    GroupedLists,
    Shift,
    add_reordering,
    m_table,
    make_method,
    reordered,
)
from evenrank.testing import check_reordering
from slow_reorderings import lists_of, one_list


class SecondFirst:
    """By relevance, to which the strength is added for documents of the second group."""

    name: ClassVar[str] = "second-first"
    source: ClassVar[str] = "these tests"

    @checked
    def order(self, lists: GroupedLists, strength: Annotated[float, opt.SHARE]) -> Array:
        number = np.repeat(np.arange(len(lists.lengths)), lists.lengths)
        return np.lexsort((-lists.scores - strength * (lists.group == 1), number))


class Reversed:
    """Every document before those above it, across lists: no order of lists."""

    name: ClassVar[str] = "reversed"
    source: ClassVar[str] = "these tests"

    def order(self, lists: GroupedLists, strength: float) -> Array:
        return np.arange(len(lists.scores))[::-1]


@pytest.fixture(scope="module", autouse=True)
def own_method() -> Iterator[None]:
    add_reordering(SecondFirst)
    yield
    # Other tests go through all methods there are.
    del METHODS[SecondFirst.name]


@pytest.mark.parametrize("name", [*METHODS, SecondFirst.name])
def test_every_method_keeps_to_the_contract(name: str) -> None:
    check_reordering(lambda: make_method(name, one_list([0, 0, 0, -1, 1])))


def test_a_method_of_ones_own_rebalances_by_its_name() -> None:
    run = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["a", "b", "c"], "score": [1.0, 0.8, 0.0]})
    labels = pl.DataFrame({"doc_id": ["a", "b", "c"], "group": ["f", "m", "m"]})
    orders = []
    for strength in (0.1, 0.5, 1.0):
        made = evenrank.rebalance(run, method="second-first", strength=strength, labels=labels, missing="skip")
        orders.append("".join(made.run.table["doc_id"]))
    # b passes a from 0.2 on; c, without relevance, only ties with it at 1.
    assert orders == ["abc", "bac", "bac"]
    assert made.method == "second-first"


def made_with(name: str, **options: object) -> Callable[[], object]:
    return lambda: make_method(name, one_list([0, 1]), **options)


def shifted(offsets: object, per: object = "group") -> Callable[[], object]:
    return lambda: Shift(offsets, per).order(one_list([0, 1]), 1)  # type: ignore[arg-type]


REFUSED: list[tuple[Callable[[], object], str]] = [
    (made_with("fare"), "`method`: expected neutral, fair, detconstsort, shift, second-first, found 'fare'"),
    (made_with("detconstsort", alpha=1), "detconstsort has no option 'alpha', only `top`"),
    (made_with("fair", per=1), "fair has no option 'per', only `protected`, `alpha`, `top`"),
    (made_with("fair", protected="x"), "`protected`: expected m or f, found 'x'"),
    (made_with("shift", per="x"), "`per`: expected group or magnitude, found 'x'"),
    (lambda: make_method("fair", one_list([-1], [1])), "fair needs groups of documents"),
    (lambda: Fair(-1), "`protected`: expected the number of a group, found -1"),
    (lambda: Fair(0, 0.7), "`alpha`: expected a number from 0.001 to 0.5, found 0.7"),
    (lambda: Fair(2).order(one_list([0]), 1), "`protected`: expected 0 to 1, found 2"),
    (lambda: m_table(0, 0.5), "`k`: expected 1 or more, found 0"),
    (shifted([1.0]), "`offsets`: expected 2, found 1"),
    (shifted([1.0, 2.0], "magnitude"), "`offsets`: expected 1, found 2"),
    (shifted(["a", "b"]), "`offsets`: expected a number for each group"),
    (shifted([1.0], "document"), "`per`: expected group or magnitude, found 'document'"),
    (lambda: add_reordering(SecondFirst), "there is a method named second-first already"),
    (
        lambda: reordered(Reversed(), lists_of([(1.0, 0)], [(1.0, 0)], targets=(0.5, 0.5, 0)), 1),
        "reversed: its order has to have every place of each list once",
    ),
]


@pytest.mark.parametrize(("attempt", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(attempt: Callable[[], object], message: str) -> None:
    with pytest.raises(EvenrankError) as error:
        attempt()
    assert str(error.value).startswith(message)
