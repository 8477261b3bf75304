"""What the papers claim, in ``claims/*.toml``, and what was measured of each claim."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from evenrank.io.wording import counted

from .paper_tables import Value

State = Literal["supported", "not supported", "not decidable"]


_ONE = {"queries": "query", "analogies": "analogy", "matches": "match"}
"""Units whose singular is not without the last letter."""


PAPERS = ("ibbr", "sampling", "advbert", "expansion", "position")
"""The five papers, each with a file of claims. AdvBert is the baseline that the experiment ``sampling`` trains."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim of a paper, or a line that the experiment itself has to reach.

    where: the table, figure or section that states it; empty: a line of evenrank's own.
    published: the paper's figures for it, as text.
    """

    paper: str
    key: str
    text: str
    where: str = ""
    published: str = ""


@cache
def statements(paper: str) -> dict[str, Statement]:
    """The claims of a paper by their keys, in the order of the file."""
    text = (resources.files(__package__) / "claims" / f"{paper}.toml").read_text(encoding="utf-8")
    return {key: Statement(paper, key, **values) for key, values in tomllib.loads(text).items()}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the data support a claim (None: not decidable), and the n that would decide, in words."""

    supported: bool | None
    needs: str = ""

    @property
    def state(self) -> State:
        """In words."""
        return {True: "supported", False: "not supported", None: "not decidable"}[self.supported]  # type: ignore[return-value]


UNDECIDED = Verdict(None)


def above(value: Value, threshold: float = 0.0) -> Verdict:
    """Whether a figure is shown to be above a threshold: its 95% interval lies on one side of it."""
    if value.mean is None or value.ci95 is None:
        return Verdict(None, f"more than {counted(value.n, _ONE.get(value.unit, value.unit[:-1]))}" if value.n else "")
    if value.ci95[0] > threshold:
        return Verdict(True)
    if value.ci95[1] <= threshold:
        return Verdict(False)
    return Verdict(None, _needed(value, threshold))


def below(value: Value, threshold: float = 0.0) -> Verdict:
    """Whether a figure is shown to be below a threshold."""
    if value.mean is None:
        return above(value, threshold)
    ends = None if value.ci95 is None else (-value.ci95[1], -value.ci95[0])
    return above(Value(-value.mean, value.n, value.unit, ends), -threshold)


def within(value: Value, low: float, high: float) -> Verdict:
    """Whether a figure is shown to lie between two thresholds (equivalence).

    ``value.ci95`` should be the 90% interval for two one-sided tests at 5%.
    """
    return every(above(value, low), below(value, high))


def every(*verdicts: Verdict) -> Verdict:
    """Supported if all are; not supported if one is not."""
    states = [verdict.supported for verdict in verdicts]
    if False in states:
        return Verdict(False)
    if None in states:
        return Verdict(None, "; ".join(dict.fromkeys(one.needs for one in verdicts if one.needs)))
    return Verdict(True)


FLOOR = "a ranker that beats BM25"


def floored(verdict: Verdict, *floors: Verdict) -> Verdict:
    """A verdict that stands where every floor is shown, and is open elsewhere: a broken ranker shows nothing."""
    return verdict if every(*floors).supported else Verdict(None, FLOOR)


def _needed(value: Value, threshold: float) -> str:
    """The n with which the interval would end at the threshold if the mean and the spread stayed as they are."""
    assert value.mean is not None
    assert value.ci95 is not None
    distance = abs(value.mean - threshold)
    half = (value.ci95[1] - value.ci95[0]) / 2
    if not distance or half / distance > 100:
        return f"more {value.unit} than can be run"
    return f"about {math.ceil(value.n * (half / distance) ** 2 - 1e-6):,} {value.unit}"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, the verdict, and the figures with their n."""

    statement: Statement
    verdict: Verdict
    detail: str

    @classmethod
    def of(cls, paper: str, key: str, verdict: Verdict, detail: str) -> Claim:
        """The claim ``key`` of ``claims/PAPER.toml``."""
        return cls(statements(paper)[key], verdict, detail)

    @property
    def text(self) -> str:
        """The claim with its place in the paper."""
        return self.statement.text + (f" [{self.statement.where}]" if self.statement.where else "")

    def __str__(self) -> str:
        needs = f"; {self.verdict.needs} would decide" if self.verdict.needs else ""
        published = f"; published: {self.statement.published}" if self.statement.published else ""
        return f"{self.verdict.state}: {self.text} ({self.detail}{needs}{published})"

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "paper": self.statement.paper,
            "key": self.statement.key,
            "claim": self.statement.text,
            "where": self.statement.where,
            "published": self.statement.published,
            "verdict": self.verdict.state,
            "detail": self.detail,
            "needs": self.verdict.needs,
        }
