"""What the papers claim, as checks of figures, and what the data say of each claim.

A file of claims has a table for each claim, and the layout of the paper's tables and charts::

    [claims.ts_bias]
    text = "TS with the best λ lowers |ΔA-PRF|"
    where = "Table 1"
    published = "BERT-L2 .005 → .001, BERT-L4 .043 → .000"
    check = "|ΔA-PRF|: {model} TS best < {model} none"

A check compares two systems, or a system and a number, in a figure; bars around the figure take it without its sign::

    MRR: TK > KNRM                 the first is above the second
    MRR: TS > .97 × none           a loss of less than 3 %
    nDCG@10: cat = dot ± 2 %       equal within 2 % of the second (two one-sided tests)
    λ: biased = .9 ± .08           equal within .08
"""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from evenrank.files.wording import counted, percent, singular
from evenrank.papers.random_effects import RandomEffects, unseen_share
from evenrank.results.finding import Finding, Level, phrases
from evenrank.results.table import short
from evenrank.stats.estimate import Estimate
from evenrank.stats.planning import power

from .figures import Figures

State = Literal["supported", "not supported", "not decidable", "not put to this data"]
_LEVELS: dict[State, Level] = {
    "supported": "shown",
    "not supported": "violated",
    "not decidable": "cannot be told",
    "not put to this data": "cannot be told",
}
_PHRASES = phrases("experiment")
_CHECK = re.compile(
    r"(?P<bar>\|?)(?P<figure>[^|:]+)\|?: (?P<left>.+?) (?P<sign>[<>=]) (?:(?P<factor>\d*\.?\d+) × )?(?P<right>.+?)"
    r"(?: ± (?P<margin>\d*\.?\d+)(?P<percent> %)?)?"
)
EQUIVALENT, DIFFERENT = 0.90, 0.95
"""Levels of the two-sided intervals: of two one-sided tests at 5 %, and of a difference."""
_PUBLISHED_BY = {"advbert": "sampling"}
"""Whose figures a paper's claims are compared with, if not its own."""
ENOUGH = 0.8
"""The power that the published effect has to have for a claim to be put to some data."""


@dataclass(frozen=True, slots=True)
class Check:
    """A comparison of two systems, or of a system and a number: left − factor × right, and where it has to lie.

    ``size``: of the absolute figures. ``margin``: of an equivalence, a share of the right one if ``relative``.
    """

    figure: str
    left: str
    sign: str
    right: str | float
    factor: float = 1.0
    margin: float = 0.0
    relative: bool = False
    size: bool = False

    @classmethod
    def parse(cls, text: str) -> Check:
        """The check that a text states."""
        found = _CHECK.fullmatch(text)
        if found is None:
            raise ValueError(f"no check: {text}")
        right: str | float = found["right"]
        if re.fullmatch(r"-?\d*\.?\d+(e-\d+)?", found["right"]):
            right = float(found["right"])
        margin = float(found["margin"] or 0)
        relative = found["percent"] is not None
        return cls(
            found["figure"],
            found["left"],
            found["sign"],
            right,
            float(found["factor"] or 1),
            margin / 100 if relative else margin,
            relative,
            bool(found["bar"]),
        )

    @property
    def systems(self) -> list[str]:
        """The systems that it compares."""
        return [self.left, *([self.right] if isinstance(self.right, str) else [])]

    def difference(self, figures: Figures, factor: float) -> RandomEffects:
        """left − factor × right."""
        if isinstance(self.right, float):
            return figures.test(self.figure, {self.left: 1.0}, -factor * self.right, size=self.size)
        return figures.test(self.figure, {self.left: 1.0, self.right: -factor}, size=self.size)

    def verdict(self, figures: Figures) -> Verdict:
        """What the figures say."""
        lacking = [system for system in self.systems if not figures.has(self.figure, system)]
        if lacking:
            return Verdict("not decidable", _PHRASES.text("lacking", systems=lacking, figure=self.figure))
        unit = figures.units.get(self.figure, "queries")
        if self.sign == "=":
            # Outside by either bound is not supported.
            shares = (1 - self.margin, 1 + self.margin) if self.relative else (1.0, 1.0)
            apart = 0.0 if self.relative else self.margin
            low, high = (self.difference(figures, share) for share in shares)
            return every(_above(low, -apart, 1, EQUIVALENT, unit), _above(high, apart, -1, EQUIVALENT, unit))
        return _above(self.difference(figures, self.factor), 0.0, 1 if self.sign == ">" else -1, DIFFERENT, unit)

    def effect(self, figures: Figures, published: Published) -> Effect | None:
        """The difference with its interval, and what it would be as published; None where a figure is missing."""
        if any(not figures.has(self.figure, system) for system in self.systems):
            return None
        test = self.difference(figures, self.factor)
        figure = f"|{self.figure}|" if self.size else self.figure
        factor = "" if self.factor == 1 else f"{short(self.factor, 2)} × "
        minus = (
            ""
            if self.right == 0.0
            else f" − {factor}{self.right if isinstance(self.right, str) else short(self.right)}"
        )
        found = figures.as_estimate(test, self.figure)
        return Effect(f"{figure}, {self.left}{minus}", found, self.expected(figures, published), test.seeds)

    def power(self, figures: Figures, published: Published) -> float | None:
        """The probability that the published effect (:meth:`expected`) is shown with the spread that was observed.

        Of an equivalence, and of a loss of at most so much, that of systems that are equally good. None where the paper
        has no figures for it.
        """
        if any(not figures.has(self.figure, system) for system in self.systems):
            return None
        if self.sign == "=":
            tests = [(self.difference(figures, share), apart) for share, apart in self._margins(figures)]
            shown = [
                power(test.estimate, apart, (1 - EQUIVALENT) / 2) for test, apart in tests if test.estimate is not None
            ]
            return max(0.0, sum(shown) - 1) if len(shown) == len(tests) else None
        test = self.difference(figures, self.factor)
        if self.sign == ">" and self.factor < 1:
            effect: float | None = (1 - self.factor) * figures.mean(self.figure, str(self.right))
        else:
            effect = self.expected(figures, published)
        if effect is None or test.estimate is None:
            return None
        return power(test.estimate, effect if self.sign == ">" else -effect, (1 - DIFFERENT) / 2)

    def expected(self, figures: Figures, published: Published) -> float | None:
        """What left − factor × right would be here with the published effect.

        Of two systems the published difference relative to the published right figure, at the level of the right
        system here; of a system and a number their published distance. None where the paper has no figures for it.
        """
        left, right = (self._printed(one, published) for one in (self.left, self.right))
        if left is None or right is None or self.sign == "=":
            return None
        effect = left - self.factor * right
        if isinstance(self.right, float):
            return effect
        here = figures.mean(self.figure, self.right)
        return effect / right * (abs(here) if self.size else here) if right else None

    def _printed(self, system: str | float, published: Published) -> float | None:
        """The published figure of a system, without its sign if the check is of sizes."""
        if isinstance(system, float):
            return system
        value = published.get((system, f"|{self.figure}|" if self.size else self.figure))
        if value is None and self.size:
            value = published.get((system, self.figure))
        return None if value is None else abs(value) if self.size else value

    def _margins(self, figures: Figures) -> list[tuple[float, float]]:
        """Of an equivalence both ends: the share of the right figure that is subtracted, and its distance from 0."""
        if not self.relative:
            return [(1.0, self.margin), (1.0, self.margin)]
        apart = self.margin * abs(figures.mean(self.figure, str(self.right)))
        return [(1 - self.margin, apart), (1 + self.margin, apart)]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a check compares, in words, and the difference; ``published``: what that would be with the published effect,
    which is said where the interval excludes it; ``trainings``: over how many it is, 0 of a figure that is counted."""

    what: str
    found: Estimate
    published: float | None = None
    trainings: int = 0

    def __str__(self) -> str:
        said = {"what": self.what, "estimate": self.found, "n": number_of(self.found)}
        ends = self.found.ci95
        if self.published is None or ends is None or ends[0] <= self.published <= ends[1]:
            return _PHRASES.text("compared", **said)
        return _PHRASES.text("excluded", **said, published=self.published)


def number_of(found: Estimate) -> str:
    """Of how many what an estimate is, in words."""
    return counted(found.n, singular(found.unit))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the data say of a claim; ``needs``: what would decide it, in words."""

    state: State
    needs: str = ""


def _above(test: RandomEffects, bound: float, sign: int, level: float, unit: str) -> Verdict:
    """Whether ``sign`` × (mean − bound) is shown to be above 0: an interval on one side of it decides."""
    ends = test.interval(level)
    if test.limit == "seeds" or (ends is None and test.seeds < 2 and test.queries < 2):
        unit = "seeds"
    if test.mean is None or ends is None:
        return Verdict("not decidable", f"more than {counted(test.n, singular(unit))}")
    low, high = sorted(sign * (end - bound) for end in ends)
    if low > 0:
        return Verdict("supported")
    if high <= 0:
        return Verdict("not supported")
    distance, half = abs(test.mean - bound), (high - low) / 2
    if not distance or half / distance > 100:
        return Verdict("not decidable", f"more {unit} than can be run")
    return Verdict("not decidable", f"about {math.ceil(test.n * (half / distance) ** 2 - 1e-6):,} {unit}")


def every(*verdicts: Verdict) -> Verdict:
    """Supported if all are; not supported if one is not."""
    states = [verdict.state for verdict in verdicts]
    if "not supported" in states:
        return Verdict("not supported")
    if states and all(state == "supported" for state in states):
        return Verdict("supported")
    return Verdict("not decidable", "; ".join(dict.fromkeys(verdict.needs for verdict in verdicts if verdict.needs)))


Published = Mapping[tuple[str, str], float]
"""The papers' figures by system and figure."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper, or a line of evenrank's own (``where`` is empty then).

    Attributes:
        checks: What has to hold, all of it, with {model} for each of ``models``, which must all have run; or for those
            of ``any_of`` that ran (neither: all that ran).
        floors: Checks without which nothing is supported: a broken ranker shows nothing.
        not_at: By scale, why it is not put to that data.
    """

    paper: str
    key: str
    text: str
    where: str = ""
    published: str = ""
    checks: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    floors: tuple[str, ...] = ()
    not_at: Mapping[str, str] = ()  # type: ignore[assignment]

    def expanded(
        self,
        texts: Sequence[str],
        models: Sequence[str],
        figures: Figures | None = None,
        instead: Mapping[str, str] | None = None,
    ) -> list[Check]:
        """The checks that ``texts`` state, each for every model; ``instead``: as in :meth:`decided`."""
        named = [one for one in self.models or self.any_of or models if one in models]
        found = []
        for text in texts:
            for model in named if "{model}" in text else [""]:
                other = Check.parse(text.replace("{model}", (instead or {}).get(model, model)))
                there = figures is None or all(figures.has(other.figure, system) for system in other.systems)
                found.append(other if there else Check.parse(text.replace("{model}", model)))
        return found

    def decided(
        self,
        figures: Figures,
        models: Sequence[str],
        scale: str,
        beside: Sequence[str] = (),
        instead: Mapping[str, str] | None = None,
    ) -> Decided:
        """What the figures say of it.

        ``models``: those that ran, by their published names; ``beside``: others, of which only the claims are that name
        them; ``instead``: for a model the one that stands for it where that one has all the figures.
        """
        why = dict(self.not_at).get(scale, "")
        known = known_power(scale).get((self.paper, self.key))
        if known is not None and known[1] < ENOUGH:
            why = why or _PHRASES.text("weak", n=known[0], power=known[1])
        models = [*models, *beside] if self.models else models
        lacking = [one for one in self.models if one not in models]
        if self.any_of and not set(self.any_of) & set(models):
            lacking = list(self.any_of)
        if not why and lacking:
            why = _PHRASES.text("nobody", models=lacking)
        if why:
            return Decided(self, Verdict("not put to this data", why))
        checks, floors = (self.expanded(texts, models, figures, instead) for texts in (self.checks, self.floors))
        verdict = every(*(check.verdict(figures) for check in checks))
        if verdict.state == "supported":
            below = [floor for floor in floors if floor.verdict(figures).state != "supported"]
            if below:
                # Most floors are BM25's; another one is named.
                lacking = [f"{one.figure} of {one.left} {one.sign} {one.right}" for one in below if one.right != "BM25"]
                verdict = Verdict("not decidable", "; ".join(lacking) or "a ranker that beats BM25")
        published = dict(published_of(self.paper))
        for model, other in (instead or {}).items():
            # What the paper has of the model is what the one that stands in is compared with.
            own = [one for one in published if one[0].startswith(f"{model} ")]
            published |= {(other + system.removeprefix(model), name): published[system, name] for system, name in own}
        effects = [check.effect(figures, published) for check in checks]
        # Of evenrank's own lines there is no published effect.
        powers = [check.power(figures, published) for check in checks if self.where]
        least = min((one for one in powers if one is not None), default=None)
        if checks != self.expanded(self.checks, models):
            # The power that is known is not that of the ranker that stands in.
            known = None
        return Decided(
            self, verdict, tuple(dict.fromkeys(effect for effect in effects if effect is not None)), least, known
        )


@dataclass(frozen=True, slots=True)
class Decided:
    """A claim with its verdict, and what was compared.

    power: with which the published effect is shown, by the spread in these figures: the least of its checks.
    known: n and power as reckoned on the development seeds, before this run (``claims/power.csv``).
    """

    claim: Claim
    verdict: Verdict
    effects: tuple[Effect, ...] = ()
    power: float | None = None
    known: tuple[str, float] | None = None

    def finding(self) -> Finding:
        """The claim with its verdict, as a line."""
        claim, state, needs = self.claim, self.verdict.state, self.verdict.needs
        figures = [str(effect) for effect in self.effects]
        figures += [trainings] if (trainings := self._of_trainings()) else []
        figures += [_PHRASES.text("needs" if state == "not decidable" else "why", needs=needs)] if needs else []
        figures += [_PHRASES.text("published", published=claim.published)] if claim.published else []
        # Of a claim that is not put to the data, it is the reason.
        put = self.known is not None and state != "not put to this data"
        figures += [_PHRASES.text("power", n=self.known[0], power=self.known[1])] if put and self.known else []
        text = claim.text + (f" [{claim.where}]" if claim.where else "")
        said: dict[str, Any] = {"state": state.capitalize(), "text": text, "figures": "; ".join(figures)}
        key, subject = "claim" if figures else "bare", f"{claim.key} ({claim.paper})"
        return _PHRASES.finding(key, subject, _LEVELS[state], None, "detail", **said)

    def _of_trainings(self) -> str:
        """Of which trainings the verdict is; from five on how often one may fail that none of them shows."""
        trainings = min((effect.trainings for effect in self.effects if effect.trainings), default=0)
        if not trainings:
            return ""
        unseen = unseen_share(trainings)
        if unseen is not None:
            return _PHRASES.text("unseen", share=percent(unseen))
        return _PHRASES.text("of_these" if trainings > 1 else "of_this", count=trainings)

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        claim = self.claim
        return {
            "paper": claim.paper,
            "key": claim.key,
            "claim": claim.text,
            "where": claim.where,
            "published": claim.published,
            "verdict": self.verdict.state,
            "needs": self.verdict.needs,
            "power": self.power,
            "reckoned_power": None if self.known is None else self.known[1],
            "effects": [
                {
                    "what": effect.what,
                    "mean": effect.found.mean,
                    "ci95": effect.found.ci95,
                    "n": number_of(effect.found),
                    "trainings": effect.trainings,
                    "published": effect.published,
                }
                for effect in self.effects
            ],
        }


@cache
def claims_of(paper: str) -> tuple[Claim, ...]:
    """The claims of a paper in the order of its file, ``claims/PAPER.toml``.

    The file's own ``floors`` are those of every claim that states none; ``[not_at.SCALE]`` says of claims by key why
    they are not put to the data of a scale.
    """
    text = (resources.files(__package__) / "claims" / f"{paper}.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    floors, not_at = data.get("floors", []), data.get("not_at", {})

    def claim(key: str, values: dict[str, Any]) -> Claim:
        checks = values.pop("check", [])
        values["checks"] = tuple([checks] if isinstance(checks, str) else checks)
        values["floors"] = tuple(values.pop("floors", floors))
        values |= {name: tuple(values.get(name, ())) for name in ("models", "any_of")}
        return Claim(paper, key, **values, not_at={s: why[key] for s, why in not_at.items() if key in why})

    return tuple(claim(key, values) for key, values in data["claims"].items())


@cache
def known_power(scale: str) -> Mapping[tuple[str, str], tuple[str, float]]:
    """``claims/power.csv`` of a scale, by paper and key: of how many what the power is, and the power of the published
    effect, as the development seeds gave them before any reported run."""
    text = (resources.files(__package__) / "claims" / "power.csv").read_text(encoding="utf-8")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["scale"] == scale]
    return {(row["paper"], row["key"]): (row["n"], float(row["power"])) for row in rows}


@cache
def published_rows(paper: str) -> tuple[dict[str, str], ...]:
    """The rows of ``published/PAPER.csv``: ``table``, ``system``, ``figure`` and ``value``, in the paper's order."""
    paper = _PUBLISHED_BY.get(paper, paper)
    text = (resources.files(__package__) / "published" / f"{paper}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def published_of(paper: str) -> Published:
    """The paper's figures by system and figure; the first table that has one counts."""
    found: dict[tuple[str, str], float] = {}
    for row in published_rows(paper):
        found.setdefault((row["system"], row["figure"]), float(row["value"]))
    return found
