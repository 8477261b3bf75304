"""Student's t and the normal distribution: SciPy's compiled functions, without what they would load beside."""

from __future__ import annotations

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec


def _load_when_used(name: str) -> None:
    """Makes a module of NumPy load at its first use, if it is not loaded yet."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    parent, _, child = name.rpartition(".")
    setattr(sys.modules[parent], child, module)


# SciPy copies all names of NumPy, and so loads its Fortran front end: a tenth of what a small audit takes.
_load_when_used("numpy.f2py")

from scipy.special import nctdtr, ndtr, ndtri, stdtr, stdtrit  # noqa: E402  (after the line above)

__all__ = ["nctdtr", "ndtr", "ndtri", "stdtr", "stdtrit"]
