"""The built-in collection, with a known bias planted in it: ``generate(SyntheticConfig(...))``."""

from .synthetic_collection import SyntheticCollection, batches, generate
from .synthetic_config import PER_ENTITY, Position, Stratum, SyntheticConfig
from .synthetic_plan import SPLITS
from .synthetic_templates import FEMALE_WORDS, GROUPS, MALE_WORDS

__all__ = [
    "FEMALE_WORDS",
    "GROUPS",
    "MALE_WORDS",
    "PER_ENTITY",
    "SPLITS",
    "Position",
    "Stratum",
    "SyntheticCollection",
    "SyntheticConfig",
    "batches",
    "generate",
]
