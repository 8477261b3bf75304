"""Contract tests: what evenrank relies on in the measures, rankers, loss terms, reorderings and results people add.

Each function takes what was added, tries it on small seeded input and raises AssertionError with the promise that is
broken; ``check_measure(FirstGap @ 3)`` as the body of a test is enough. The built-in ones pass the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank._lazy import lazy_names

if TYPE_CHECKING:
    from .measures import check_measure, every_order, random_case, rankings
    from .rankers import check_ranker
    from .reorderings import check_reordering
    from .results import check_result
    from .terms import check_term
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "check_measure",
    "check_ranker",
    "check_reordering",
    "check_result",
    "check_term",
    "every_order",
    "random_case",
    "rankings",
]
