"""What a result says: findings, whose words are whole-sentence templates, one file of them a command.

A template is a sentence in which figures are left open, as in ``phrases/gate.toml``::

    nearer = "{run} is nearer to 0 than {baseline}: {difference:+}."

A figure has three decimals, an interval brackets, an estimate both; a number in the braces gives other decimals, ``+``
a sign, ``%`` a share. A whole number has its thousands marked, and a list is read as "a, b and c".
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from numbers import Integral, Real
from typing import Any, Literal

from evenrank._command import arg
from evenrank.files.json_values import LEFT_OUT
from evenrank.files.wording import listed, percent
from evenrank.stats.compare import Comparison, undecidable
from evenrank.stats.estimate import Estimate

from .table import NONE, short, short_interval

Level = Literal["shown", "no difference shown", "cannot be told", "holds", "violated", "not shown"]
"""How sure a finding is: a comparison's verdicts, and those of a rule."""
Place = Literal["answer", "warning", "finding", "note", "detail"]
"""Where it stands: in the first line, below it, below the table, at the end, or nowhere as the table has it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement of a result, with its verdict and estimate.

    Attributes:
        key: The name of its template.
        subject: What it is about: a run, a rule, a variant; "" for the whole.
        level: How sure it is.
        estimate: The figure that it rests on, if it is one.
        text: The sentence.
    """

    key: str
    subject: str
    level: Level
    estimate: Estimate | None
    text: str
    place: Place = field(default="finding", metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Phrases:
    """The templates of a command, by their keys."""

    templates: Mapping[str, str]

    def text(self, key: str, /, **values: object) -> str:
        """The sentence of a template."""
        return _READER.vformat(self.templates[key], (), values)

    def finding(
        self,
        key: str,
        /,
        subject: str = "",
        level: Level = "shown",
        estimate: Estimate | None = None,
        place: Place = "finding",
        **values: Any,
    ) -> Finding:
        """A finding in the words of a template, which may also name its ``subject`` and its ``estimate``.

        A test that could tell has no verdict where nothing ``can be told`` for a reason that the test does not see.
        """
        text = self.text(key, **{"subject": subject, "estimate": estimate, **values})
        if level == "cannot be told" and isinstance(estimate, Comparison) and estimate.reason is None:
            estimate = undecidable(estimate.mean, estimate.n, text, estimate.unit, estimate.ci95)
        return Finding(key, subject, level, estimate, text, place)


@cache
def phrases(command: str) -> Phrases:
    """The templates of a command: the file of that name in ``phrases/``."""
    file = resources.files("evenrank") / "phrases" / f"{command}.toml"
    return Phrases(tomllib.loads(file.read_text(encoding="utf-8")))


class _Reader(string.Formatter):
    """Reads values as sentences need them."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return arg if key == "arg" else kwargs[str(key)]

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is arg:
            name, _, number = format_spec.partition("=")
            return str(arg(name, int(number) if number else None))
        return read(value, format_spec)


_READER = _Reader()


def read(value: object, how: str = "") -> str:
    """A value as sentences have it; ``how``: what stands behind the colon of a template.

    >>> read(0.1594), read(-0.0044, "+"), read((0.03, 0.29), "2"), read(1500), read(["a", "b", "c"]), read(0.25, "%")
    ('.159', '−.004', '[.03, .29]', '1,500', 'a, b and c', '25%')
    """
    sign, places = how.startswith("+"), how.removeprefix("+")
    if isinstance(value, str):
        return value
    if value is None:
        return NONE
    if isinstance(value, Estimate):
        ends = "" if value.ci95 is None else f" {read(value.ci95, how)}"
        return f"{read(value.mean, how)}{ends}"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        return percent(float(value)) if how == "%" else short(float(value), int(places or 3), sign=sign)
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(end, Real) for end in value):
        if how == "%":
            return f"[{', '.join(map(percent, value))}]"
        return short_interval(value, int(places or 3), sign=sign)
    assert isinstance(value, Sequence)
    return listed([read(item, how) for item in value])
