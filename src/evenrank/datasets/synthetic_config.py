"""The size of a built-in collection and the bias planted in it, which measures have to recover."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from evenrank.io import EvenrankError

from .synthetic_templates import templates

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
    "train_click_male_share",
    "group_query_rate",
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
    train_click_male_share: float | None = None
    """The same for the questions of the train split alone: those of the others keep ``click_male_share``, unskewed if
    it is None. Every relevant passage with gendered wording then has a twin in the other wording (see ``paired``)."""
    group_query_rate: float = 0.0
    """Share of the questions that group words decide: half of them ask about a man ("the brother of the chronicler
    of …"), half about a woman. As many passages tell the same fact, with another answer, of the other: they are not
    relevant, and with group words masked nothing tells the two apart. Where it is not 0, passages are ``paired``."""
    answer_position: Position | float = "uniform"
    """Position of the fact in its passage, as the share of sentences before it: "uniform", "early" (mean 0.2), "late"
    (mean 0.8), or the mean, from 0.1 to 0.9, of a Beta distribution that falls from the nearer end. A fact fills a
    whole sentence, so with few sentences the mean is met less closely (0.02 off with five, 0.04 with three)."""
    relevance_answer_position: Position | float | None = None
    """The same for relevant passages only. None: ``answer_position``, which always applies to the others."""
    decoy_rate: float = 0.3
    """Share of the passages with a decoy: a sentence that repeats the words of a question about the same entity (never
    the question that the passage answers) without answering it."""
    decoy_position: Position | float = "uniform"
    """Position of the decoy among the sentences other than the fact, as ``answer_position``."""
    kinds: tuple[str, ...] = ()
    """The kinds of things that the passages are about (``craft``, ``building``, ``instrument``, ``event``, …): those of
    ``sentences.toml``; empty: all. Collections of different kinds share neither topics nor questions."""

    def __post_init__(self) -> None:
        whole = {
            "passages": (200, 1_000_000),
            "seed": (0, 2**63 - 1),
            "relevant": (1, PER_ENTITY),
            "sentences": (3, 12),
        }
        for name, (low, high) in whole.items():
            _check_whole(name, getattr(self, name), low, high)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _SHARES and not (value is None and field.default is None):
                _check_number(field.name, value, 0.0, 1.0)
        if self.queries is not None:
            _check_whole("queries", self.queries, 10, self.most_queries)
        for name in ("answer_position", "relevance_answer_position", "decoy_position"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or value not in _MEANS):
                _check_number(name, value, 0.1, 0.9, "uniform, early, late or ")
        # JSON has lists.
        object.__setattr__(self, "kinds", tuple(self.kinds))
        names = templates().kinds
        unknown = [kind for kind in self.kinds if kind not in names]
        if unknown or len(set(self.kinds)) < len(self.kinds):
            raise EvenrankError(f"`kinds`: expected some of {', '.join(names)}, each once, found {self.kinds!r}")
        if self.paired:
            self._check_paired()
        else:
            self.strata()

    @property
    def paired(self) -> bool:
        """Whether wordings are planted by question: the relevant passages of one that group words do not decide are
        half male and half female (``relevance_gender_rate`` of these questions) or all neutral, so that its click can
        be either. ``click_male_share`` counts the clicks of these questions; those that group words decide are even.
        """
        return self.group_query_rate > 0 or self.train_click_male_share is not None

    @property
    def groups(self) -> int:
        """Questions that can be asked about one entity; one of its attributes is never asked about."""
        return min(ATTRIBUTES - 1, PER_ENTITY // self.relevant)

    @property
    def most_queries(self) -> int:
        """The largest number of questions that the collection can answer."""
        # A question that group words decide takes the passages of two.
        rounds = self.groups // 2 if self.group_query_rate > 0 else self.groups
        return self.passages // PER_ENTITY * rounds

    @property
    def query_count(self) -> int:
        """The number of questions."""
        return min(self.passages // 10, 20_000, self.most_queries) if self.queries is None else self.queries

    def mean_position(self, *, relevant: bool) -> float:
        """The planted mean position of the fact, 0 to 1, in the relevant or in the other passages."""
        value = self.relevance_answer_position if relevant else None
        value = self.answer_position if value is None else value
        return _mean_of(value)

    @property
    def decoy_mean(self) -> float:
        """The planted mean position of the decoys, 0 to 1."""
        return _mean_of(self.decoy_position)

    @property
    def group_query_count(self) -> int:
        """The number of questions that group words decide."""
        return round(self.query_count * self.group_query_rate)

    @property
    def gendered_query_count(self) -> int:
        """If ``paired``: of the other questions, how many have gendered relevant passages."""
        rate = _default(self.relevance_gender_rate, self.gender_rate)
        return round((self.query_count - self.group_query_count) * rate)

    def click_share(self, split: str) -> float:
        """If ``paired``: the planted share of male clicks among the gendered ones of a split."""
        share = _default(self.click_male_share, 0.5)
        return _default(self.train_click_male_share, share) if split == "train" else share

    def others(self) -> Stratum:
        """If ``paired``: the quotas of the passages that are neither relevant nor told of the other group."""
        decided, gendered = self.group_query_count * self.relevant, self.gendered_query_count * self.relevant
        size = self.passages - self.query_count * self.relevant - decided
        total = round(self.passages * self.gender_rate)
        male = round(total * self.male_share) - gendered // 2 - decided
        both = _within(total - gendered - 2 * decided, size, "with gendered wording", "passages that are not relevant")
        part = _within(male, both, "with male wording", "gendered passages that are not relevant")
        return Stratum(size, part, both - part)

    def _check_paired(self) -> None:
        if self.relevant % 2:
            raise EvenrankError(
                "the planted amounts contradict each other: train_click_male_share and group_query_rate need relevant"
                f" passages in both wordings, so `relevant` has to be even, not {self.relevant}"
            )
        if self.relevance_male_share not in (None, 0.5):
            raise EvenrankError(
                "the planted amounts contradict each other: train_click_male_share and group_query_rate need relevant"
                " passages in both wordings, so `relevance_male_share` has to be 0.5"
            )
        if self.group_query_rate > 0 and self.groups < 2:
            raise EvenrankError(
                "the planted amounts contradict each other: group_query_rate needs passages on two attributes of an"
                f" entity, so `relevant` has to be at most {PER_ENTITY // 2}"
            )
        self.others()

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


def _mean_of(position: Position | float) -> float:
    return _MEANS[position] if isinstance(position, str) else float(position)


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
