"""Compiled loops, kept on disk where a place can be written, else compiled anew in each process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache


class _Kept(FunctionCache):  # type: ignore[misc]
    """Numba's cache, which a full disk or a damaged file does not stop."""

    def load_overload(self, *given: Any) -> Any:
        try:
            return super().load_overload(*given)
        except Exception:
            # Whatever a damaged file makes of itself: it is compiled again, and written anew.
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, *given: Any) -> None:
        with suppress(OSError):
            super().save_overload(*given)


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` with these options, cached where numba finds a folder that it can write (``NUMBA_CACHE_DIR``
    names one): beside the source or in the user's cache. In a container without either, nothing is cached."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**options)(function)
        # A RuntimeError is numba's word for no such folder; with NUMBA_DISABLE_JIT there is no dispatcher.
        if dispatcher is not function:
            with suppress(RuntimeError, OSError):
                dispatcher._cache = _Kept(function)
        return dispatcher

    return decorate
