"""What removes bias: each method one small piece, usable alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from evenrank._lazy import lazy_names

Term = Literal["ibbr-pd", "ibbr-ts"]
"""The fairness terms that are built in (:mod:`evenrank.mitigation.ibbr`), known without importing PyTorch."""

if TYPE_CHECKING:
    from .ibbr import AutoWeight, best_weight
    from .negatives import NegativeSettings, stream_negatives
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["AutoWeight", "NegativeSettings", "best_weight", "stream_negatives"]
