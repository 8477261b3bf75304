"""Items of a stream, worked on by threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Done = TypeVar("Done")


def in_order(work: Callable[[Given], Done], items: Iterable[Given], workers: int | None = None) -> Iterator[Done]:
    """``work`` applied to each item, in order, on ``workers`` threads (default: one per core)."""
    workers = workers or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Done]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            # Bounded, so that reading does not run ahead of the work.
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
