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
    MAP: a ~ b ± 5 %               equal within 5 %, and no significant difference (two-sided p > .05)
    MRR: a ≥ .9 × b                a loss of less than a tenth, and no significant one

A claim with {model} is of every ranker that ran, and its verdict names them; with ``some`` one of them is enough.
"""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, ClassVar, Literal

from evenrank.files import INLINE, LEFT_OUT, counted, named, percent, singular
from evenrank.results import Finding, Level, phrases, short
from evenrank.stats import Estimate, RandomEffects, power, queries_to_decide, unseen_share

from .figures import Figures

State = Literal["supported", "not supported", "undecided"]
_LEVELS: dict[State, Level] = {"supported": "shown", "not supported": "violated", "undecided": "cannot be told"}
_PHRASES = phrases("experiment")
_CHECK = re.compile(
    r"(?P<bar>\|?)(?P<figure>[^|:]+)\|?: (?P<left>.+?) (?P<sign>[<>=~≥]) (?:(?P<factor>\d*\.?\d+) × )?(?P<right>.+?)"
    r"(?: ± (?P<margin>\d*\.?\d+)(?P<percent> %)?)?"
)
ENOUGH = 0.8
EQUIVALENT, DIFFERENT = 0.90, 0.95
"""Levels of the two-sided intervals: of two one-sided tests at 5 %, and of a difference."""


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
        match = _CHECK.fullmatch(text)
        if match is None:
            raise ValueError(f"no check: {text}")
        number = re.fullmatch(r"-?\d*\.?\d+(e-\d+)?", match["right"])
        relative = match["percent"] is not None
        return cls(
            match["figure"],
            match["left"],
            match["sign"],
            float(match["right"]) if number else match["right"],
            float(match["factor"] or 1),
            float(match["margin"] or 0) / (100 if relative else 1),
            relative,
            bool(match["bar"]),
        )

    @property
    def systems(self) -> list[str]:
        """The systems that it compares."""
        return [self.left, *([self.right] if isinstance(self.right, str) else [])]

    def lacking(self, figures: Figures) -> list[str]:
        """The systems that do not have the figure."""
        return [system for system in self.systems if not figures.has(self.figure, system)]

    def difference(self, figures: Figures, factor: float) -> RandomEffects:
        """left − factor × right."""
        if isinstance(self.right, float):
            return figures.test(self.figure, {self.left: 1.0}, -factor * self.right, size=self.size)
        return figures.test(self.figure, {self.left: 1.0, self.right: -factor}, size=self.size)

    def verdict(self, figures: Figures) -> Verdict:
        """What the figures say."""
        if lacking := self.lacking(figures):
            return Verdict("undecided", (_PHRASES.text("lacking", systems=lacking, figure=self.figure),))
        unit = figures.units.get(self.figure, "queries")
        if self._differs(figures):
            return Verdict("not supported")
        if self.sign in ("=", "~"):
            # Outside by either bound is not supported.
            shares = (1 - self.margin, 1 + self.margin) if self.relative else (1.0, 1.0)
            apart = 0.0 if self.relative else self.margin
            low, high = (self.difference(figures, share) for share in shares)
            return every(_above(low, -apart, 1, EQUIVALENT, unit), _above(high, apart, -1, EQUIVALENT, unit))
        return _above(self.difference(figures, self.factor), 0.0, -1 if self.sign == "<" else 1, DIFFERENT, unit)

    def _differs(self, figures: Figures) -> bool:
        """Whether there is a significant difference, or loss, where the claim is that there is none."""
        if self.sign not in ("~", "≥"):
            return False
        test = self.difference(figures, 1.0)
        worse = self.sign == "~" or (test.mean or 0.0) < 0
        return worse and test.p is not None and test.p <= 1 - DIFFERENT

    def effect(self, figures: Figures, published: Published) -> Effect | None:
        """The difference with its interval, and what it would be as published; None where a figure is missing."""
        if self.lacking(figures):
            return None
        if self.factor != 1 and self._differs(figures):
            # It decides, whatever share is lost.
            return replace(self, factor=1.0).effect(figures, published)
        test = self.difference(figures, self.factor)
        figure, short_figure = (
            f"|{text}|" if self.size else text for text in (self.figure, self.figure.partition(" on ")[0])
        )
        factor = "" if self.factor == 1 else f"{short(self.factor, 2)} × "
        right = self.right if isinstance(self.right, str) else short(self.right)
        minus = "" if self.right == 0.0 else f" − {factor}{right}"
        return Effect(
            f"{figure}, {self.left}{minus}",
            figures.as_estimate(test, self.figure),
            self.expected(figures, published),
            test.seeds,
            self.verdict(figures).state,
            short_name=f"{short_figure}, {self.left}{f' − {factor}{right}' if factor else ''}",
            bound=self.factor * self.right if isinstance(self.right, float) else None,
            margin=self._margins(figures)[0][1] if self.sign in ("=", "~") else 0.0,
        )

    def power(self, figures: Figures, published: Published) -> Power | None:
        """With which probability the published effect (:meth:`expected`) is shown by the error that was observed.

        Of an equivalence, and of a loss of at most so much, that of systems that are equally good. None where the paper
        has no figures for it.
        """
        if self.lacking(figures):
            return None
        if self.sign in ("=", "~"):
            tests = [(self.difference(figures, share), apart) for share, apart in self._margins(figures)]
            alpha = (1 - EQUIVALENT) / 2
        else:
            effect = self.expected(figures, published)
            if self.sign in (">", "≥") and self.factor < 1:
                effect = (1 - self.factor) * figures.mean(self.figure, str(self.right))
            if effect is None:
                return None
            tests = [(self.difference(figures, self.factor), -effect if self.sign == "<" else effect)]
            alpha = (1 - DIFFERENT) / 2
        known = [(test, mean, apart) for test, apart in tests if (mean := test.estimate) is not None]
        if len(known) < len(tests):
            return None
        shown = sum(power(mean, apart, alpha) for _, mean, apart in known) - (len(known) - 1)
        needed = [queries_to_decide(apart, m.se, test.n, alpha) if apart > 0 else None for test, m, apart in known]
        unit = figures.as_estimate(tests[0][0], self.figure).unit
        n_needed = None if None in needed else max(n for n in needed if n is not None)
        return Power(max(0.0, shown), tests[0][0].n, unit, n_needed)

    def expected(self, figures: Figures, published: Published) -> float | None:
        """What left − factor × right would be here with the published effect.

        Of two systems the published difference relative to the published right figure, at the level of the right
        system here; of a system and a number their published distance. None where the paper has no figures for it.
        """
        left, right = (self._printed(term, published) for term in (self.left, self.right))
        if left is None or right is None or self.sign in ("=", "~"):
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


@dataclass(frozen=True, slots=True, order=True)
class Power:
    """The probability that an effect is shown with ``n`` of a unit; ``needed``: n at which it is shown in 8 of 10 runs,
    None where no number would."""

    value: float
    n: int
    unit: str
    needed: int | None = field(default=None, compare=False)

    def said(self) -> str:
        """As words."""
        values = {"power": self.value, "n": counted(self.n, singular(self.unit))}
        if self.value >= ENOUGH or self.needed is None:
            return _PHRASES.text("power", **values)
        return _PHRASES.text("weak", **values, needed=counted(self.needed, singular(self.unit)))


@dataclass(frozen=True, slots=True)
class Effect:
    """What a check compares, in words, and the difference.

    Attributes:
        published: What the difference would be with the published effect; said where the interval excludes it.
        trainings: Over how many it is, 0 of a figure that is counted.
        state: What it says by itself.
        short_name: The figure and the system, without the collection; two systems where the second has a factor.
        bound: The number that was subtracted, None of two systems.
        margin: Of an equivalence, of the difference; 0 otherwise.
    """

    also: ClassVar = ("n",)
    what: str
    estimate: Estimate = field(metadata=INLINE)
    published: float | None = None
    trainings: int = 0
    state: State = field(default="undecided", metadata=named("verdict"))
    short_name: str = field(default="", metadata=named("name"))
    bound: float | None = None
    margin: float = 0.0

    @property
    def n(self) -> str:
        """Of how many it is, in words."""
        return number_of(self.estimate)

    def __str__(self) -> str:
        values = {"what": self.what, "estimate": self.estimate, "n": self.n}
        ends = self.estimate.ci95
        if self.published is None or ends is None or ends[0] <= self.published <= ends[1]:
            return _PHRASES.text("compared", **values)
        return _PHRASES.text("excluded", **values, published=self.published)


def number_of(estimate: Estimate) -> str:
    """Of how many what an estimate is, in words."""
    return counted(estimate.n, singular(estimate.unit))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the data say of a claim.

    Attributes:
        lacking: What would decide it, in words.
        sizes: How many of each unit would.
    """

    also: ClassVar = ("needs",)
    state: State = field(metadata=named("verdict"))
    lacking: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    sizes: Mapping[str, int] = field(default_factory=dict, metadata=LEFT_OUT)

    @property
    def needs(self) -> str:
        """What would decide it, in words; numbers have two digits."""
        sizes = [f"about {float(f'{size:.2g}'):,.0f} {unit}" for unit, size in self.sizes.items()]
        return "; ".join([*self.lacking, *sizes])


def _above(test: RandomEffects, bound: float, sign: int, level: float, unit: str) -> Verdict:
    """Whether ``sign`` × (mean − bound) is shown to be above 0: an interval on one side of it decides."""
    ends = test.interval(level)
    if test.limit == "seeds" or (ends is None and test.seeds < 2 and test.queries < 2):
        unit = "seeds"
    if test.mean is None or ends is None:
        return Verdict("undecided", (f"more than {counted(test.n, singular(unit))}",))
    low, high = sorted(sign * (end - bound) for end in ends)
    if low > 0:
        return Verdict("supported")
    if high <= 0:
        return Verdict("not supported")
    distance, half = abs(test.mean - bound), (high - low) / 2
    if not distance or half / distance > 100:
        return Verdict("undecided", (f"more {unit} than can be run",))
    return Verdict("undecided", sizes={unit: math.ceil(test.n * (half / distance) ** 2 - 1e-6)})


def every(*verdicts: Verdict) -> Verdict:
    """Supported if all are; not supported if one is not; undecided needs what each lacks, and the largest sizes."""
    states = [verdict.state for verdict in verdicts]
    if "not supported" in states:
        return Verdict("not supported")
    if states and all(state == "supported" for state in states):
        return Verdict("supported")
    lacking = dict.fromkeys(text for verdict in verdicts for text in verdict.lacking)
    sizes: dict[str, int] = {}
    for unit, size in (item for verdict in verdicts for item in verdict.sizes.items()):
        sizes[unit] = max(size, sizes.get(unit, 0))
    return Verdict("undecided", tuple(lacking), sizes)


def one_of(*verdicts: Verdict) -> Verdict:
    """Supported if one is; not supported if none is."""
    states = [verdict.state for verdict in verdicts]
    return every(*verdicts) if len(set(states)) == 1 else max(verdicts, key=lambda one: _RANK.index(one.state))


_RANK: tuple[State, ...] = ("not supported", "undecided", "supported")
Published = Mapping[tuple[str, str], float]
"""The papers' figures by system and figure."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper, or a line of evenrank's own (``where`` is empty then).

    Attributes:
        checks: What has to hold, all of it, with {model} for every ranker that ran.
        some: Whether one of these rankers is enough.
        floors: Checks without which nothing is supported: what a broken ranker would fulfil too.
        mutant: A mistake that changes its verdict at ``real``.
        needs: By scale what is lacking there to decide it.
    """

    paper: str
    key: str
    text: str = field(metadata=named("claim"))
    where: str = ""
    published: str = ""
    checks: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    some: bool = field(default=False, metadata=LEFT_OUT)
    floors: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    mutant: str = field(default="", metadata=LEFT_OUT)
    needs: Mapping[str, str] = field(default_factory=dict, metadata=LEFT_OUT)

    def checked(self, model: str = "") -> tuple[list[Check], list[Check]]:
        """What has to hold for a ranker, and its floors."""
        checks, floors = (
            [Check.parse(text.replace("{model}", model)) for text in texts] for texts in (self.checks, self.floors)
        )
        return checks, floors

    def decided(self, figures: Figures, models: Mapping[str, str], scale: str) -> Decided:
        """What the figures say of it. ``models``: the rankers that ran, and what each is here."""
        known = known_power(scale).get((self.paper, self.key))
        if scale in self.needs:
            return Decided(self, Verdict("undecided", (self.needs[scale],)), known=known)
        each = any("{model}" in text for text in self.checks)
        # A ranker that was not put to it, as one that is not trained to what training does, is none of its rankers.
        put = {
            model: what
            for model, what in (models if each else {}).items()
            if not any(check.lacking(figures) for check in self.checked(model)[0])
        }
        models = put or models
        pairs = [self.checked(model) for model in (models if each else [""])]
        verdicts = [_supported(figures, checks, floors) for checks, floors in pairs]
        checks = list(dict.fromkeys(check for checks, _ in pairs for check in checks))
        published = published_of(self.paper)
        effects = [check.effect(figures, published) for check in checks]
        # Of evenrank's own lines there is no published effect.
        powers = [value for check in checks if self.where and (value := check.power(figures, published)) is not None]
        return Decided(
            self,
            one_of(*verdicts) if self.some else every(*verdicts),
            tuple(dict.fromkeys(effect for effect in effects if effect is not None)),
            min(powers, default=None),
            known,
            tuple(dict.fromkeys(models.values())) if each else (),
        )


def _supported(figures: Figures, checks: Sequence[Check], floors: Sequence[Check]) -> Verdict:
    """Whether all checks hold; undecided if they do and the ranker is below a floor."""
    verdict = every(*(check.verdict(figures) for check in checks))
    below = [floor for floor in floors if verdict.state == "supported" and floor.verdict(figures).state != "supported"]
    if not below:
        return verdict
    lacking = [
        f"{floor.left} above BM25 ({floor.figure})"
        if floor.right == "BM25"
        else f"{floor.figure}: {floor.left} {floor.sign} {floor.right}"
        for floor in below
    ]
    return Verdict("undecided", tuple(dict.fromkeys(lacking)))


@dataclass(frozen=True, slots=True)
class Decided:
    """A claim with its verdict, and what was compared.

    power: with which the published effect is shown, by the errors of these figures: the least of its checks.
    known: the same as reckoned on the development seeds, before this run (``claims/power.csv``).
    rankers: what ran for the rankers that it is of.
    """

    claim: Claim = field(metadata=INLINE)
    verdict: Verdict = field(metadata=INLINE)
    effects: tuple[Effect, ...] = ()
    power: Power | None = None
    known: Power | None = field(default=None, metadata=named("reckoned_power"))
    rankers: tuple[str, ...] = ()

    def finding(self) -> Finding:
        """The claim with its verdict, as a line."""
        claim, state, needs = self.claim, self.verdict.state, self.verdict.needs
        parts = [*map(str, self.effects), self.said_of, self._of_trainings()]
        parts.append(_PHRASES.text("needs", needs=needs) if needs else "")
        parts.append(_PHRASES.text("published", published=claim.published) if claim.published else "")
        parts.append(self.known.said() if self.known else "")
        figures = [part for part in parts if part]
        text = claim.text + (f" [{claim.where}]" if claim.where else "")
        values: dict[str, Any] = {"state": state.capitalize(), "text": text, "figures": "; ".join(figures)}
        key, subject = "claim" if figures else "bare", f"{claim.key} ({claim.paper})"
        return _PHRASES.finding(key, subject, _LEVELS[state], None, "detail", **values)

    @property
    def said_of(self) -> str:
        """Of which rankers the verdict is, in words."""
        if not self.rankers:
            return ""
        return _PHRASES.text("ranker" if len(self.rankers) == 1 else "rankers", names="; ".join(self.rankers))

    def _of_trainings(self) -> str:
        """Of which trainings the verdict is; from five on how often one may fail that none of them shows."""
        trainings = min((effect.trainings for effect in self.effects if effect.trainings), default=0)
        if not trainings:
            return ""
        unseen = unseen_share(trainings)
        if unseen is not None:
            return _PHRASES.text("unseen", share=percent(unseen))
        return _PHRASES.text("of_these" if trainings > 1 else "of_this", count=trainings)


def of_paper(folder: str, paper: str) -> dict[str, Any]:
    """What ``FOLDER/PAPER.toml`` states; lists are tuples."""
    text = (resources.files(__package__) / folder / f"{paper}.toml").read_text(encoding="utf-8")
    tables: dict[str, Any] = _frozen(tomllib.loads(text))
    return tables


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _frozen(v) for name, v in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def base_of(paper: str, system: str) -> str:
    """What a ranker was before, of which it may be a ruin, by the file's ``bases``; "" for none."""
    patterns = of_paper("claims", paper).get("bases", {}).items()
    return next((match.expand(base) for pattern, base in patterns if (match := re.fullmatch(pattern, system))), "")


@cache
def claims_of(paper: str) -> tuple[Claim, ...]:
    """The claims of a paper in the order of its file, ``claims/PAPER.toml``.

    The file's own ``floors`` are those of every claim that states none; ``[needs.SCALE]`` says by key what the data of
    a scale lack to decide a claim.
    """
    data = of_paper("claims", paper)

    def claim(key: str, values: dict[str, Any]) -> Claim:
        checks = values.pop("check", ())
        needs = {scale: lack[key] for scale, lack in data.get("needs", {}).items() if key in lack}
        values = {"floors": data.get("floors", ()), **values}
        return Claim(paper, key, **values, checks=(checks,) if isinstance(checks, str) else checks, needs=needs)

    return tuple(claim(key, values) for key, values in data["claims"].items())


def decided_claims(
    paper: str, figures: Figures, models: Mapping[str, str], scale: str, stand_ins: Mapping[str, str]
) -> tuple[Decided, ...]:
    """Every claim of a paper as the figures decide it; ``stand_ins``: what stands for each of the paper's collections,
    by which the figures are called."""

    names = "|".join(map(re.escape, stand_ins)) or "(?!)"

    def called(effect: Effect) -> Effect:
        # At once: what stands for one collection may be called as another.
        what = re.sub(f" on ({names})", lambda found: f" on {stand_ins[found[1]]}", effect.what)
        return replace(effect, what=what)

    decided = (claim.decided(figures, models, scale) for claim in claims_of(paper))
    return tuple(replace(d, effects=tuple(map(called, d.effects))) for d in decided)


@cache
def known_power(scale: str) -> Mapping[tuple[str, str], Power]:
    """``claims/power.csv`` of a scale, by paper and key: the power of the published effect as the development seeds
    gave it before any reported run."""
    return {
        (row["paper"], row["key"]): Power(
            float(row["power"]), int(row["n"]), row["unit"], int(row["needed"]) if row["needed"] else None
        )
        for row in _rows("claims", "power")
        if row["scale"] == scale
    }


def published_rows(paper: str) -> tuple[dict[str, str], ...]:
    """The rows of ``published/PAPER.csv``: ``table``, ``system``, ``figure`` and ``value``, in the paper's order."""
    return _rows("published", paper)


@cache
def _rows(folder: str, name: str) -> tuple[dict[str, str], ...]:
    text = (resources.files(__package__) / folder / f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def published_of(paper: str) -> Published:
    """The paper's figures by system and figure; the first table that has one counts."""
    published: dict[tuple[str, str], float] = {}
    for row in published_rows(paper):
        published.setdefault((row["system"], row["figure"]), float(row["value"]))
    return published
