"""What a gate found: every rule with its outcome, and the outcome of all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from evenrank._version import __version__
from evenrank.io import Provenance, write_text
from evenrank.io.atomic import json_text
from evenrank.io.errors import EvenrankError

from .budget import Rule
from .gate_rules import MeanTest, Test

Outcome = Literal["holds", "broken", "not shown"]
Correction = Literal["holm", "none"]
Limits = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Ruling:
    """The outcome of one rule.

    Attributes:
        outcome: "holds", "broken" or "not shown".
        value: The estimate that the budget bounds: the figure, its absolute value, the difference from ``against`` or
            that as a share; None if no query has a value. ``run``: the run that was gated.
        limits: The one-sided lower and upper limit of ``value``, each at the budget's level; None with one query.
        n: Number of queries with a value (in both runs); ``left_out``: those with a value in only one of them.
        mean, other_mean: The figures of the run and of ``against`` over these queries, with their signs.
        p_holds, p_broken: One-sided p-values of the two claims; ``corrected_p``: the second after the correction.
        queries_to_decide: Of a rule that is not shown, the number of queries with which it would be decided in 8 of 10
            samples, if the truth is what was observed; None if no number would, or with one query.
        catches: The true value nearest to the budget that so many queries show to be broken in 8 of 10 samples. None of
            an absolute value, and if the measure cannot have such a value.
        towards: The groups that ``mean`` and ``other_mean`` lean to, where their signs tell and the audit names them.
    """

    rule: Rule
    against: str | None
    outcome: Outcome
    value: float | None
    limits: Limits | None
    n: int
    left_out: int
    mean: float | None
    other_mean: float | None
    p_holds: float | None
    p_broken: float | None
    corrected_p: float | None
    queries_to_decide: int | None
    catches: float | None
    alpha: float
    level: float
    """The level at which the rule is broken if it is the only one that is; ``alpha``: that of its limits."""
    test: Test | None = field(repr=False, compare=False, default=None)
    run: str = ""
    towards: tuple[str | None, str | None] = (None, None)

    @property
    def subject(self) -> str:
        """What the rule looks at: ``nDCG@10 against BM25``."""
        return self.rule.subject + ("" if self.against is None else f" against {self.against}")

    @property
    def title(self) -> str:
        """The rule's name, if it has one, and what it looks at."""
        return self.subject if self.rule.name is None else f"{self.rule.name} ({self.subject})"

    @property
    def name(self) -> str:
        """The rule's name; without one, what it looks at."""
        return self.rule.name or self.subject

    def power(self, at: float) -> float:
        """The probability that a sample like this one shows the rule to be broken if the true value is ``at``.

        In the units of the budget: −0.03 for "-3%". Raises EvenrankError where there was no test, and of an absolute
        value.
        """
        if self.test is None:
            raise EvenrankError(f"{self.name}: fewer than two queries show nothing")
        if not isinstance(self.test, MeanTest):
            raise EvenrankError(f"{self.name}: no power is stated of an absolute value")
        return self.test.power(at, self.level)

    def to_dict(self) -> dict[str, object]:
        """The ruling as JSON values."""
        names = ("outcome", "against", "value", "limits", "n", "left_out", "mean", "other_mean", "p_holds", "p_broken")
        more = ("corrected_p", "queries_to_decide", "catches")
        values = {name: getattr(self, name) for name in (*names, *more)}
        return {"name": self.name, "rule": self.rule.to_dict(), **values}


@dataclass(frozen=True, slots=True)
class GateResult:
    """What :func:`evenrank.gate` returns: whether a run keeps to a budget.

    Attributes:
        run: The run that was gated; ``baseline``: what "baseline" means, if there is one.
        rulings: The rules in the budget's order, each with its outcome.
        alpha: The level of the one-sided limits; ``correction``: of the rules that are broken, "holm" or "none".
        warnings: What misleads in the audit or in the budget.
        audit: The provenance of the audit, as JSON values.
    """

    run: str
    baseline: str | None
    rulings: tuple[Ruling, ...]
    alpha: float
    correction: Correction
    warnings: tuple[str, ...] = ()
    audit: Mapping[str, object] | None = field(default=None, repr=False, compare=False)
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    @property
    def outcome(self) -> Outcome:
        """ "broken" if one rule is, "holds" if all hold, else "not shown"."""
        outcomes = [ruling.outcome for ruling in self.rulings]
        if "broken" in outcomes:
            return "broken"
        return "not shown" if "not shown" in outcomes else "holds"

    def status(self, *, strict: bool = False) -> int:
        """The exit status of ``evenrank gate``: 0 holds, 1 broken, 3 not shown (``strict``: 1)."""
        return {"holds": 0, "broken": 1, "not shown": 1 if strict else 3}[self.outcome]

    def __repr__(self) -> str:
        return f"GateResult({self.table()})"

    def table(self) -> str:
        """The rules for a terminal, a line each, and the outcome last."""
        from .gate_lines import text

        return text(self)

    def markdown(self) -> str:
        """The rules as a Markdown table, for a pull request."""
        from .gate_formats import markdown

        return markdown(self)

    def junit(self, *, strict: bool = False) -> str:
        """The rules as JUnit XML: one test case each; what is not shown is skipped (``strict``: a failure)."""
        from .gate_formats import junit

        return junit(self, strict=strict)

    def annotations(self, *, strict: bool = False) -> str:
        """The rules as annotations of GitHub Actions, a line each."""
        from .gate_formats import workflow_commands

        return workflow_commands(self, strict=strict)

    def to_dict(self) -> dict[str, object]:
        """The result as JSON values."""
        names = ("outcome", "run", "baseline", "alpha", "correction")
        values: dict[str, object] = {name: getattr(self, name) for name in names}
        return values | {"rules": [ruling.to_dict() for ruling in self.rulings], "warnings": list(self.warnings)}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The result as JSON, also written to ``path`` if one is given."""
        last = {} if self.provenance is None else {"provenance": {**self.provenance.to_dict(), "audit": self.audit}}
        text = json_text({"evenrank": __version__, **self.to_dict(), **last})
        if path is not None:
            write_text(path, text + "\n")
        return text
