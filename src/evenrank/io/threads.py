"""Items of a stream, worked on by threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

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


def keep_freed_memory() -> None:
    """Makes the memory of freed blocks serve the next ones, where the C library is glibc; elsewhere nothing changes.

    Otherwise it goes back to the system at each few blocks, and clearing new pages takes a tenth of a pass.
    """
    # What it keeps is twice the largest piece that it has freed, and at most 64 MiB. No page of this one is touched.
    np.empty((1 << 25) - (1 << 14), dtype=np.uint8)
