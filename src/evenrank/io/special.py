"""The special functions of SciPy without the rest of ``scipy.special``, which takes a tenth of a second to import."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from types import ModuleType

from evenrank import _command

_NAME = "scipy.special"
_FUNCTIONS = ("stdtr", "stdtrit", "nctdtr", "ndtr", "ndtri")
_lock = threading.Lock()


def special() -> ModuleType:
    """A module with the functions of ``scipy.special`` that are used here."""
    with _lock:
        return _special()


@functools.cache
def _special() -> ModuleType:
    import scipy

    # Only in the command's own process: what another program's modules are is not ours to say.
    if _command.typed.get() is not None and _NAME not in sys.modules:
        # A package without contents, so that the compiled functions can be imported from it alone.
        sys.modules[_NAME] = package = ModuleType(_NAME)
        package.__path__ = [f"{folder}/special" for folder in scipy.__path__]
        try:
            alone = importlib.import_module(f"{_NAME}._ufuncs")
            if all(hasattr(alone, name) for name in _FUNCTIONS):
                return alone
        except ImportError:
            # Another version of SciPy has them elsewhere.
            pass
        finally:
            del sys.modules[_NAME]
    return importlib.import_module(_NAME)
