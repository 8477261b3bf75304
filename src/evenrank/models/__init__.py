"""Rankers and retrievers of any kind: loaded, run, and started from weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank._lazy import lazy_names

if TYPE_CHECKING:
    from .encoders import saving, seeded
    from .load import Precision, chosen_device, model_bytes
    from .vectors import unit_rows
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Precision", "chosen_device", "model_bytes", "saving", "seeded", "unit_rows"]
