"""The size of a built-in collection and the bias planted in it, which measures have to recover."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from evenrank.io import EvenrankError

Position = Literal["uniform", "early", "late"]

PER_ENTITY = 8
"""Passages per entity (the last entity of a collection may have fewer)."""
ATTRIBUTES = 5
"""Attributes that can be asked about per entity; one of the five is never asked about."""

_MEANS = {"uniform": 0.5, "early": 0.2, "late": 0.8}
_SHARES = (
    "gender_rate",
    "male_share",
    "relevance_gender_rate",
    "relevance_male_share",
    "click_male_share",
    "decoy_rate",
)


@dataclass(frozen=True, slots=True)
class Stratum:
    """The number of passages of a stratum, and of those with male and with female wording."""

    size: int
    male: int
    female: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticConfig:
    """The size of a built-in collection and the bias planted in it.

    Shares (0 to 1) are quotas, not probabilities: they are met exactly, up to rounding to whole passages.
    A passage has male, female or neutral wording, never a mix; the wording is independent of the entity.
    If shares of relevant or clicked passages are given, the remaining passages make up the balance, so that the shares
    of all passages are met too. Raises EvenrankError for values out of range and for shares that contradict each other.
    """

    passages: int = 5_000
    """Passages in the collection, 200 to 1,000,000."""
    seed: int = 0
    """Whole number from 0; the same settings and seed give the same bytes."""
    queries: int | None = None
    """Questions, from 10 to about ``passages / (2 * relevant)``. None: a tenth of the passages, at most 20,000."""
    relevant: int = 2
    """Passages that answer a question, 1 to 8; one of them is clicked."""
    sentences: int = 5
    """Sentences in a passage (of about 11 words), 3 to 12."""
    gender_rate: float = 0.5
    """Share of all passages with gendered wording (two to nine gendered words; two to five below 5 sentences)."""
    male_share: float = 0.5
    """Share of the gendered passages whose wording is male."""
    relevance_gender_rate: float | None = None
    """Share of the relevant passages with gendered wording. None: ``gender_rate``."""
    relevance_male_share: float | None = None
    """Share of the gendered relevant passages whose wording is male. None: ``male_share``."""
    click_male_share: float | None = None
    """Share of the gendered clicked passages whose wording is male. None: ``relevance_male_share``.

    With ``relevant=1`` every relevant passage is clicked, so the two must agree.
    """
    answer_position: Position | float = "uniform"
    """Position of the fact in its passage, as the share of sentences before it: "uniform", "early" (mean 0.2), "late"
    (mean 0.8), or the mean, from 0.1 to 0.9, of a Beta distribution that falls from the nearer end. A fact fills a
    whole sentence, so with few sentences the mean is met less closely (0.02 off with five, 0.04 with three)."""
    relevance_answer_position: Position | float | None = None
    """The same for relevant passages only. None: ``answer_position``, which always applies to the others."""
    decoy_rate: float = 0.3
    """Share of the passages with a decoy: a sentence that repeats the words of a question about the same entity (never
    the question that the passage answers) without answering it."""

    def __post_init__(self) -> None:
        whole = {
            "passages": (200, 1_000_000),
            "seed": (0, 2**63 - 1),
            "relevant": (1, PER_ENTITY),
            "sentences": (3, 12),
        }
        for name, (low, high) in whole.items():
            _check_whole(name, getattr(self, name), low, high)
        if self.queries is not None:
            _check_whole("queries", self.queries, 10, self.most_queries)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _SHARES and not (value is None and field.default is None):
                _check_number(field.name, value, 0.0, 1.0)
        for name in ("answer_position", "relevance_answer_position"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or value not in _MEANS):
                _check_number(name, value, 0.1, 0.9, "uniform, early, late or ")
        self.strata()

    @property
    def groups(self) -> int:
        """Questions that can be asked about one entity; one of its attributes is never asked about."""
        return min(ATTRIBUTES - 1, PER_ENTITY // self.relevant)

    @property
    def most_queries(self) -> int:
        """The largest number of questions that the collection can answer."""
        return self.passages // PER_ENTITY * self.groups

    @property
    def query_count(self) -> int:
        """The number of questions."""
        return min(self.passages // 10, 20_000, self.most_queries) if self.queries is None else self.queries

    def mean_position(self, *, relevant: bool) -> float:
        """The planted mean position of the fact, 0 to 1, in the relevant or in the other passages."""
        value = self.relevance_answer_position if relevant else None
        value = self.answer_position if value is None else value
        return _MEANS[value] if isinstance(value, str) else float(value)

    def strata(self) -> tuple[Stratum, Stratum, Stratum]:
        """The quotas of the clicked, the other relevant and the remaining passages."""
        rate = _default(self.relevance_gender_rate, self.gender_rate)
        share = _default(self.relevance_male_share, self.male_share)
        clicked = self.query_count
        sizes = [clicked, clicked * self.relevant, self.passages]
        gendered = [
            round(clicked * rate),
            round(clicked * self.relevant * rate),
            round(self.passages * self.gender_rate),
        ]
        shares = [_default(self.click_male_share, share), share, self.male_share]
        male = [round(count * part) for count, part in zip(gendered, shares, strict=True)]
        strata = [Stratum(sizes[0], male[0], gendered[0] - male[0])]
        for i, what in ((1, "relevant passages that are not clicked"), (2, "passages that are not relevant")):
            size = sizes[i] - sizes[i - 1]
            both = _within(gendered[i] - gendered[i - 1], size, "with gendered wording", what)
            part = _within(male[i] - male[i - 1], both, "with male wording", f"gendered {what}")
            strata.append(Stratum(size, part, both - part))
        return strata[0], strata[1], strata[2]


def _default(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _within(count: int, available: int, wording: str, what: str) -> int:
    """``count`` clipped to 0 … ``available``; one passage outside is rounding, more is a contradiction."""
    if not -1 <= count <= available + 1:
        raise EvenrankError(
            f"the planted amounts contradict each other: they need {count} {wording} among the {available} {what}"
            " (relevance_gender_rate, relevance_male_share or click_male_share is too far from the amount it refines)"
        )
    return max(0, min(count, available))


def _check_whole(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise EvenrankError(f"`{name}`: expected a whole number from {low} to {high}, found {value!r}")


def _check_number(name: str, value: object, low: float, high: float, otherwise: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise EvenrankError(f"`{name}`: expected {otherwise}a number from {low:g} to {high:g}, found {value!r}")
