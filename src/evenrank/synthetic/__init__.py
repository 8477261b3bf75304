"""The built-in collection, with known bias planted in it."""

from .collection import Synthetic, batches, generate
from .plan import SPLITS
from .planted import PER_ENTITY, Planted, Position, Stratum
from .templates import FEMALE_WORDS, GROUPS, MALE_WORDS

__all__ = [
    "FEMALE_WORDS",
    "GROUPS",
    "MALE_WORDS",
    "PER_ENTITY",
    "SPLITS",
    "Planted",
    "Position",
    "Stratum",
    "Synthetic",
    "batches",
    "generate",
]
