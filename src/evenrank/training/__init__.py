"""Training rankers: recipes, training lists, losses, the trainer, model cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank._lazy import lazy_names

if TYPE_CHECKING:
    from .card import ruined
    from .recipes import TrainingSettings, differing_keys, load_recipe, parse_recipe, ranking_recipe
    from .run import build_ranker
    from .trainer import read_log
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "TrainingSettings",
    "build_ranker",
    "differing_keys",
    "load_recipe",
    "parse_recipe",
    "ranking_recipe",
    "read_log",
    "ruined",
]
