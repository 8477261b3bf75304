"""Budgets: what a ranking may cost and how biased it may be, as rules in a TOML file."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from evenrank.files.errors import EvenrankError, InputError, arg, plain, quoted, reason_of
from evenrank.files.toml import parsed_toml
from evenrank.files.types import EQUAL

if TYPE_CHECKING:
    from ir_measures import Measure

Quantity = Literal["figure", "vs_random_order", "vs_ideal_order"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
BASELINE = "baseline"
ALPHA = 0.05

_KEYS = ("measure", "against", "at_least", "at_most", "quantity", "signed", "queries", "greatest", "name")
_LARGEST_END = 1e9
_SHARE = re.compile(r"([+-]?\d+(?:\.\d+)?) ?%")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a rule has to know of its measure: see :func:`evenrank.measures.registry`."""

    bias: bool
    signed: bool
    order: bool
    cutoff: int | None
    signs: tuple[float, ...]
    least: float
    most: float

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Facts:
        """From :func:`evenrank.measures.facts`, which an audit's JSON has too."""
        least, most = values["least"], values["most"]
        return cls(
            values["bias"],
            values["signed"],
            values["order"],
            values["cutoff"],
            tuple(values["signs"]),
            -math.inf if least is None else least,
            math.inf if most is None else most,
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what is measured, against what, and the bound.

    Attributes:
        measure: The measure's text, as ir_measures writes it; ``facts``: what it is.
        bound: The least (``floor``) or the most that the value may be; a share of the other run's mean if ``relative``.
        against: "baseline" or the name of the run that the value is a difference from; None: the figure itself.
        quantity: "figure", or what the run's order has beyond a reference order of its own candidates:
            "vs_random_order" or "vs_ideal_order" (the order by relevance).
        signed: Whether the bound is of a signed measure's value with its sign, not of its size.
        queries: The group of queries that it is about; None: all queries.
        greatest: The size of the largest value that a query can have, where the budget says so.
        name: The rule's name in every output.
    """

    measure: str
    facts: Facts
    bound: float
    floor: bool
    relative: bool = False
    against: str | None = None
    quantity: Quantity = "figure"
    signed: bool = False
    queries: str | None = None
    greatest: float | None = None
    name: str | None = None

    @property
    def absolute(self) -> bool:
        """Whether the bound is of the absolute value: of a measure with a sign, or of one written in bars."""
        return (self.facts.signed and not self.signed) or self.measure.startswith("|")

    @property
    def subject(self) -> str:
        """What the rule looks at: ``|ARaB@10|``, ``ARaB@10 vs random order``."""
        text = self.measure if self.quantity == "figure" else f"{self.measure} {self.quantity.replace('_', ' ')}"
        text = f"|{text}|" if self.absolute and "|" not in text else text
        return text if self.queries is None else f"{text} of {self.queries}"

    @property
    def limit(self) -> str:
        """The bound in words: ``at least -2%``."""
        sign = "+" * (self.against is not None and self.bound != 0)
        bound = f"{100 * self.bound + 0.0:{sign}g}%" if self.relative else f"{self.bound + 0.0:{sign}g}"
        return f"at {'least' if self.floor else 'most'} {bound}"

    def scale(self, other: float | None = None) -> tuple[float, float]:
        """The least and the most that the value can be; ``other``: the mean of the run that it is against, if known."""
        least, most = self.facts.least, self.facts.most
        if self.quantity != "figure":
            least, most = least - most, most - least
        if self.absolute:
            least, most = 0.0, max(abs(least), abs(most))
        if self.against is None:
            return least, most
        if other is None or self.quantity != "figure":
            return (-1.0, math.inf) if self.relative else (least - most, most - least)
        other = abs(other) if self.absolute else other
        return (least / other - 1, most / other - 1) if self.relative else (least - other, most - other)

    def to_dict(self) -> dict[str, object]:
        """The rule as JSON values, as it is written in a budget."""
        bound = f"{100 * self.bound:+g}%" if self.relative else self.bound
        values: dict[str, object] = {"measure": self.measure, "at_least" if self.floor else "at_most": bound}
        more: dict[str, object] = {"against": self.against, "quantity": self.quantity, "queries": self.queries}
        more |= {"signed": True} if self.signed else {}
        more |= {"greatest": self.greatest, "name": self.name}
        return values | {key: value for key, value in more.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Budget:
    """Rules, and the level ``alpha`` of their one-sided limits. ``path``: the file that they were read from."""

    rules: tuple[Rule, ...]
    alpha: float = ALPHA
    path: str | None = None

    @property
    def measures(self) -> list[Measure]:
        """The measures of the rules, each once: what an audit has to measure."""
        from evenrank.measures import parse_measure

        return [parse_measure(text) for text in dict.fromkeys(rule.measure for rule in self.rules)]

    def check_unjudged(self) -> None:
        """Raises EvenrankError for a rule that needs qrels, for an audit without."""
        from evenrank.measures import parse_measure, resolve

        for number, rule in enumerate(self.rules, start=1):
            if rule.quantity == "vs_ideal_order" or resolve(parse_measure(rule.measure)).needs_qrels:
                raise self.error(number, f"{rule.subject} needs {arg.qrels}")

    def error(self, number: int, message: str) -> EvenrankError:
        """An error about the rule of that number, from 1."""
        return _error(self.path, f"rule {number}: {message}")


def as_budget(
    source: Budget | str | os.PathLike[str] | Mapping[str, object], known: Mapping[str, Facts] | None = None
) -> Budget:
    """A budget from a TOML file, or from the values that such a file has: ``{"rule": [{"measure": …}]}``.

    ``known``: measures by their texts, which are then not looked up: that takes longer than all else in a gate.

    Raises EvenrankError (InputError for a file), one line with the rule's number, for a rule that cannot be decided.
    """
    if isinstance(source, Budget):
        return source
    if isinstance(source, Mapping):
        return _parsed(None, source, known or {})
    path = os.fspath(source)
    try:
        return _parsed(path, parsed_toml(Path(path).read_bytes().decode()), known or {})
    except OSError as error:
        raise InputError(path, f"cannot be read: {reason_of(error)}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"no valid TOML: {error}") from None


def _parsed(path: str | None, data: Mapping[str, object], known: Mapping[str, Facts]) -> Budget:
    unknown = sorted(set(map(str, data)) - {"rule", "alpha"})
    if unknown:
        raise _error(path, f"unknown key {quoted(unknown[0])} (allowed: alpha, [[rule]])")
    tables = data.get("rule")
    if not isinstance(tables, list | tuple) or not tables or not all(isinstance(table, Mapping) for table in tables):
        raise _error(path, "expected one [[rule]] or more")
    alpha = data.get("alpha", ALPHA)
    if not isinstance(alpha, int | float) or isinstance(alpha, bool) or not 0 < alpha < 0.5:
        raise _error(path, f"alpha: expected a number above 0 and below 0.5, found {quoted(alpha)}")
    rules: list[Rule] = []
    for number, table in enumerate(tables, start=1):
        try:
            rule = _rule(table, known)
            if rule in rules:
                raise EvenrankError(f"repeats rule {rules.index(rule) + 1}")
        except EvenrankError as error:
            raise _error(path, f"rule {number}: {error}") from None
        rules.append(rule)
    return Budget(tuple(rules), float(alpha), path)


def _error(path: str | None, message: str) -> EvenrankError:
    return EvenrankError(f"{arg.budget}: {message}") if path is None else InputError(path, message)


def _rule(table: Mapping[str, object], known: Mapping[str, Facts]) -> Rule:
    unknown = sorted(set(map(str, table)) - set(_KEYS))
    if unknown:
        raise EvenrankError(f"unknown key {quoted(unknown[0])} (allowed: {', '.join(_KEYS)})")
    text = _text(table, "measure")
    if text is None:
        raise EvenrankError("expected a measure")
    measure, facts = (text, known[text]) if text in known else _looked_up(text)
    against, quantity = _text(table, "against"), _quantity(table, measure, facts)
    sides = [key for key in ("at_least", "at_most") if key in table]
    if len(sides) != 1:
        raise EvenrankError(f"expected one of at_least and at_most, found {'both' if sides else 'neither'}")
    bound, relative = _bound(sides[0], table[sides[0]])
    rule = Rule(
        measure,
        facts,
        bound,
        floor=sides[0] == "at_least",
        relative=relative,
        against=against,
        quantity=quantity,
        signed=_signed(table, measure, facts),
        queries=_text(table, "queries"),
        greatest=_greatest(table, facts),
        name=_text(table, "name"),
    )
    _check_bound(rule)
    return rule


def _looked_up(text: str) -> tuple[str, Facts]:
    """A measure as ir_measures writes it, and what it is."""
    from evenrank.measures import facts, parse_measure

    try:
        measure = parse_measure(text)
    except EvenrankError as error:
        raise EvenrankError(str(error).removeprefix(f"{arg.measures}: ")) from None
    return str(measure), Facts.of(facts(measure))


def _text(table: Mapping[str, object], key: str) -> str | None:
    value = table.get(key)
    if key in table and not (isinstance(value, str) and value.strip()):
        raise EvenrankError(f"{key}: expected a text, found {quoted(value)}")
    # A line of its own in a pipeline's log can be a command to the pipeline.
    if isinstance(value, str) and plain(value) != value:
        raise EvenrankError(f"{key}: expected a text without line ends and control characters, found {quoted(value)}")
    return value if isinstance(value, str) else None


def _quantity(table: Mapping[str, object], measure: str, facts: Facts) -> Quantity:
    value = _text(table, "quantity") or "figure"
    quantity = next((quantity for quantity in QUANTITIES if quantity == value), None)
    if quantity is None:
        raise EvenrankError(f"quantity: expected one of {', '.join(QUANTITIES)}, found {quoted(value)}")
    if quantity != "figure" and not facts.order:
        raise EvenrankError(f"{measure} has no {quoted(quantity)}: only bias measures that sum over ranks have")
    return quantity


def _signed(table: Mapping[str, object], measure: str, facts: Facts) -> bool:
    value = table.get("signed", False)
    if not isinstance(value, bool):
        raise EvenrankError(f"signed: expected true or false, found {quoted(value)}")
    if value and not facts.signed:
        raise EvenrankError(f"signed: {measure} has no sign")
    return value


def _greatest(table: Mapping[str, object], facts: Facts) -> float | None:
    """The size of the largest value that a query can have, of a measure that has no known one."""
    value = table.get("greatest")
    if "greatest" not in table:
        return None
    if math.isfinite(facts.most):
        raise EvenrankError(f"greatest: no value is beyond {facts.most:g}, as is known of this measure")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LARGEST_END:
        raise EvenrankError(f"greatest: expected a number above 0, found {quoted(value)}")
    return float(value)


def _bound(key: str, value: object) -> tuple[float, bool]:
    """The bound, and whether it is a share of the other run's mean."""
    share = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if share is not None:
        change = float(share[1])
        if change >= 50 and share[1][0] != "+":
            meant = f'did you mean "{change - 100:+g}%", or "+{change:g}%"?'
            raise EvenrankError(f"{key}: a share is a change of the other run's mean, found {quoted(value)} ({meant})")
        return change / 100, True
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST_END:
        raise EvenrankError(f'{key}: expected a number or a share such as "-2%", found {quoted(value)}')
    return float(value), False


def _check_bound(rule: Rule) -> None:
    """Raises EvenrankError for a bound that the rule's measure cannot have."""
    side = "at_least" if rule.floor else "at_most"
    if rule.relative and rule.against is None:
        raise EvenrankError(f"{side}: a share needs {arg.against}: expected a number")
    if rule.relative and (rule.facts.signed or rule.absolute or rule.quantity != "figure"):
        raise EvenrankError(f"{side}: {rule.subject} can be near 0, where a share means nothing: expected a number")
    if rule.relative and rule.bound <= -1:
        raise EvenrankError(f"{side}: expected a share above -100%, found {100 * rule.bound:g}%")
    if rule.absolute and rule.floor:
        raise EvenrankError(
            f"at_least: {rule.measure} is better nearer 0: expected at_most, of the absolute value, or signed = true"
        )
    if rule.absolute and rule.against is None and rule.bound < 0:
        raise EvenrankError(f"at_most: no absolute value is below 0, found {rule.bound:g}")
    if not rule.facts.bias and not rule.floor:
        raise EvenrankError(f"at_most: {rule.measure} is better the higher it is: expected at_least")
    low, high = rule.scale()
    if not low - EQUAL <= rule.bound <= high + EQUAL:
        what = f"{rule.subject} is" if rule.against is None else f"differences of {rule.subject} are"
        share = f' (did you mean against = "baseline" and "{rule.bound:g}%"?)' if rule.against is None else ""
        share = share or f' (did you mean "{rule.bound:g}%"?)'
        hint = share if not rule.absolute and rule.quantity == "figure" and -100 < rule.bound <= 100 else ""
        raise EvenrankError(f"{side}: {what} {_range(low, high)}, found {rule.bound:g}{hint}")


def _range(low: float, high: float) -> str:
    return f"{low:g} or more" if math.isinf(high) else f"from {low:g} to {high:g}"
