"""Compiled loops. Without the extra [fast] they run as they are written, with the same results.

Compiled code is cached on disk if a folder is writable, otherwise compiled again in each process.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from numpy.typing import NDArray

try:
    from numba import njit
    from numba.core.caching import FunctionCache
except ImportError:
    njit, FunctionCache = None, object

T = TypeVar("T")
Given = NDArray[Any]


class _TolerantCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, tolerating a full disk and damaged files."""

    def load_overload(self, *given: object) -> object:
        try:
            return super().load_overload(*given)
        except Exception:  # a damaged pickle can raise any error
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, *given: object) -> None:
        with suppress(OSError):
            super().save_overload(*given)


def compiled(**options: object) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """``numba.njit`` with these options, cached in a writable folder (``NUMBA_CACHE_DIR``, next to the source, or
    the user's cache); if there is none, as in some containers, not cached. Without numba, the function itself."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        if njit is None:
            return function
        dispatcher = njit(**options)(function)
        # numba raises RuntimeError if no folder is writable. With NUMBA_DISABLE_JIT there is no dispatcher.
        if dispatcher is not function:
            with suppress(RuntimeError, OSError):
                dispatcher._cache = _TolerantCache(function)
        compiled_function: Callable[..., T] = dispatcher
        return compiled_function

    return decorate


def unwritable(*arrays: Given) -> tuple[Given, ...]:
    """Views that cannot be written to: for them alone is a loop compiled, not again for arrays that can be."""
    views = tuple(array.view() for array in arrays)
    for view in views:
        view.flags.writeable = False
    return views
