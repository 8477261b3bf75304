"""Slow, obvious versions of the measures, straight from their definitions; and random input for both."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from evenrank.measures import Evaluation, parse_measure, resolve
from evenrank.testing import every_order as orders
from evenrank.testing import random_case as random_case
from evenrank.testing import rankings as rankings

Docs = list[str]


def rab(magnitudes: list[float], t: int) -> float:
    top = magnitudes[: min(t, len(magnitudes))]
    return sum(top) / len(top)


def arab(magnitudes: list[float], k: int) -> float:
    depth = min(k, len(magnitudes))
    return sum(rab(magnitudes, t) for t in range(1, depth + 1)) / depth


def fairr(neutrality: list[float], k: int) -> float:
    return sum(value / math.log2(1 + rank) for rank, value in enumerate(neutrality[:k], start=1))


def neutrality(counts: list[int], shares: list[float], threshold: float) -> float:
    total = sum(counts)
    if total <= threshold:
        return 1.0
    return 1 - sum(abs(c / total - j) for c, j in zip(counts, shares, strict=True)) / (2 * (1 - min(shares)))


def prf(scores: list[float], clicked: list[bool], in_group: list[bool]) -> float | None:
    wins = pairs = 0
    for j, of_group in enumerate(in_group):
        if not (clicked[j] and of_group):
            continue
        for k, other_clicked in enumerate(clicked):
            if not other_clicked:
                pairs += 1
                wins += scores[j] >= scores[k]
    return wins / pairs if pairs else None


def nprf(scores: list[float], clicked: list[bool], in_group: list[bool]) -> float | None:
    total, pairs = 0.0, 0
    for j, of_group in enumerate(in_group):
        for k, other_clicked in enumerate(clicked):
            if clicked[j] and of_group and not other_clicked:
                pairs += 1
                total += scores[j] ** 2 * (scores[j] >= scores[k])
    return math.sqrt(total / pairs) if pairs else None


def precision(grades: list[int], k: int) -> float:
    return sum(grade > 0 for grade in grades[:k]) / k


def rbp(grades: list[int], k: int, rel: int, p: float) -> float:
    return sum((1 - p) * p**place for place, grade in enumerate(grades[:k]) if grade >= rel)


def sdcg(grades: list[int], k: int, highest: int) -> float:
    discounts = [1 / math.log2(2 + place) for place in range(k)]
    gains = (min(max(grade, 0), highest) / highest for grade in grades)
    return sum(d * gain for d, gain in zip(discounts, gains, strict=False)) / sum(discounts)


def recall(grades: list[int], k: int, judged: list[int]) -> float:
    relevant = sum(grade > 0 for grade in judged)
    return sum(grade > 0 for grade in grades[:k]) / relevant if relevant else 0.0


def success(grades: list[int], k: int) -> float:
    return float(any(grade > 0 for grade in grades[:k]))


def rr(grades: list[int], k: int) -> float:
    return next((1 / rank for rank, grade in enumerate(grades[:k], start=1) if grade > 0), 0.0)


def ap(grades: list[int], k: int, judged: list[int]) -> float:
    relevant = sum(grade > 0 for grade in judged)
    found, total = 0, 0.0
    for rank, grade in enumerate(grades[:k], start=1):
        if grade > 0:
            found += 1
            total += found / rank
    return total / relevant if relevant else 0.0


def ndcg(grades: list[int], k: int, judged: list[int]) -> float:
    def dcg(values: list[int]) -> float:
        return sum(max(value, 0) / math.log2(1 + rank) for rank, value in enumerate(values[:k], start=1))

    ideal = dcg(sorted(judged, reverse=True))
    return dcg(grades) / ideal if ideal else 0.0


def err(grades: list[int], k: int) -> float:
    value, going = 0.0, 1.0
    for rank, grade in enumerate(grades[:k], start=1):
        stop = (2 ** max(grade, 0) - 1) / 16
        value += going * stop / rank
        going *= 1 - stop
    return value


def over_orders(ranking: list[tuple[str, float]], value: Callable[[Docs], float]) -> tuple[float, float, float]:
    """Mean, smallest and largest of ``value`` over the orders of tied documents."""
    values = [value(order) for order in orders(ranking)]
    return sum(values) / len(values), min(values), max(values)


def check_over_orders(run: Evaluation, name: str, value: Callable[[str, Docs], float]) -> None:
    """A measure's values, mean and ends over ties, and means over all other orders are those of the orders one by one.

    Other orders: any, and those by falling grade, of which no grade, 0 and less are one.
    """
    measure, lists, grades = parse_measure(name), rankings(run.run), graded(run)
    how = resolve(measure)
    columns = [run.values(measure), how.expected(run), *how.bounds(run), how.expected(run, random=True)]
    columns += [] if run.qrels is None else [how.by_relevance(run)]
    for query, *found in zip(run.queries_of(measure), *columns, strict=True):
        docs, of = [doc for doc, _ in lists.get(query, [])], functools.partial(value, query)
        anyhow = over_orders([(doc, 0.0) for doc in docs], of)[0]
        by_grade = over_orders([(doc, max(0.0, grades.get(query, {}).get(doc, 0))) for doc in docs], of)[0]
        wanted = [of(docs), *over_orders(lists.get(query, []), of), anyhow, by_grade][: len(found)]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9, err_msg=f"{name}, query {query}")


def graded(run: Evaluation) -> dict[str, dict[str, int]]:
    """The grades of each query's documents."""
    grades: dict[str, dict[str, int]] = {}
    for query, doc, grade in () if run.qrels is None else run.qrels.iter_rows():
        grades.setdefault(query, {})[doc] = grade
    return grades


Rows = Sequence[Sequence[float]]


def slow_distillation(student: Rows, teacher: Rows, weight: float, scale: float) -> float:
    """1 − cosine with the teacher, and the divergence of the shares that the other texts have, text by text."""

    def cosine(a: Sequence[float], b: Sequence[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)

    total = 0.0
    for i in range(len(student)):
        others = [j for j in range(len(student)) if j != i]
        total += 1 - cosine(student[i], teacher[i])
        shares = []
        for vectors in (teacher, student):
            powers = [math.exp(scale * cosine(vectors[i], vectors[j])) for j in others]
            shares.append([power / sum(powers) for power in powers])
        total += weight * sum(p * math.log(p / q) for p, q in zip(*shares, strict=True))
    return total / len(student)
