"""A probe as its definition says it, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

Score = Callable[[str, str], float]
MEN, WOMEN = {"he", "his"}, {"she", "her"}


def magnitude(text: str) -> float:
    words = text.split()
    men, women = (sum(word in group for word in words) for group in (MEN, WOMEN))
    return math.log(1 + men) - math.log(1 + women)


def chance_of_first(score: float, others: list[float], k: int) -> float:
    """That a passage is among the first k, equal scores in random order."""
    above, tied = sum(other > score for other in others), sum(other == score for other in others)
    return min(1.0, max(0.0, (k - above) / (tied + 1)))


def rank(score: float, others: list[float]) -> float:
    return 1 + sum(other > score for other in others) + sum(other == score for other in others) / 2


@dataclass
class Sums:
    """The values of a figure, to be averaged."""

    values: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values) if self.values else math.nan


@dataclass
class Found:
    effect: dict[tuple[str, str], float] = field(default_factory=dict)
    placebo: dict[tuple[str, str], float] = field(default_factory=dict)
    shift: dict[tuple[str, str], float] = field(default_factory=dict)
    enters: Sums = field(default_factory=Sums)
    leaves: Sums = field(default_factory=Sums)
    sign: dict[tuple[str, str], float] = field(default_factory=dict)
    still: int = 0
    unoriented: int = 0

    def mean(self, name: str) -> tuple[float | None, int]:
        """Of the means of the directions that there are, and the number of pairs."""
        values: dict[tuple[str, str], float] = getattr(self, name)
        means = []
        for direction in (1.0, -1.0):
            own = [value for pair, value in values.items() if self.sign[pair] == direction]
            means += [sum(own) / len(own)] if own else []
        return (sum(means) / len(means) if means else None), len(values)


# long: the definition as it stands
def slow_probe(
    score: Score,
    lists: dict[str, list[str]],
    queries: dict[str, str],
    originals: dict[str, str],
    variant: Callable[[str, str], str | None],
    placebo: Callable[[str, str], str | None] | None,
    *,
    oriented: bool,
) -> Found:
    found = Found()
    for query, docs in lists.items():
        asked = queries[query]
        scores = {doc: score(asked, originals[doc]) for doc in docs}
        mean = sum(scores.values()) / len(scores)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in scores.values()) / len(scores))
        for doc in docs:
            text, other = originals[doc], variant(query, doc)
            if other is None or other == text:
                continue
            if len(set(scores.values())) == 1:
                found.still += 1
                continue
            sign = 1.0
            if oriented:
                change = magnitude(other) - magnitude(text)
                if change == 0:
                    found.unoriented += 1
                    continue
                sign = 1.0 if change > 0 else -1.0
            replaced = score(asked, other)
            found.sign[query, doc] = sign
            found.effect[query, doc] = sign * (replaced - scores[doc]) / deviation
            third = None if placebo is None else placebo(query, doc)
            if third is not None and third != text:
                found.placebo[query, doc] = sign * (score(asked, third) - scores[doc]) / deviation
            rest = [scores[one] for one in docs if one != doc]
            found.shift[query, doc] = sign * (rank(scores[doc], rest) - rank(replaced, rest))
            if len(docs) > 10:
                grown = chance_of_first(replaced, rest, 10) - chance_of_first(scores[doc], rest, 10)
                found.enters.values.append(max(grown, 0.0))
                found.leaves.values.append(max(-grown, 0.0))
    return found
