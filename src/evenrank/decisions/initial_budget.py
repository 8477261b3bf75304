"""A budget to begin with: the tightest rules that a sample of queries can show to hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evenrank import options as opt
from evenrank.io.arguments import checked
from evenrank.io.errors import EvenrankError, plain, readable
from evenrank.io.wording import counted
from evenrank.measures.inference import outcome

from .budget import ALPHA, as_budget
from .gate import WithValues, as_json_values, gate, noticed
from .gate_rules import Audited, as_audited, tested

MARGINS = (1, 2, 3, 5, 10, 20)
"""Losses, in percent."""
SIZES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Limits on the absolute value of a signed measure."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """A rule as TOML has it, and whether the sample can show that it holds of the baseline itself."""

    values: Mapping[str, object]
    holds: bool
    needed: int | None
    n: int


@checked
def initial_budget(
    audited: WithValues | opt.File | Mapping[str, object], *, baseline: str | None = None, run: str | None = None
) -> str:
    """A budget that these queries can check, as TOML: for each measure the tightest limit that the baseline keeps.

    For a measure that is better the higher it is, the smallest loss (1, 2, 3, 5, 10 or 20%) that would be ruled out if
    the run were as good as the baseline; of a signed measure a limit on its absolute value. A comment behind each says
    which value would be noticed in 8 of 10 such samples, another which tighter limit takes how many queries.

    Args:
        audited: As for :func:`evenrank.gate`: what :func:`evenrank.audit` returned, or its JSON with values by query.
        baseline: What rules compare with; by default the audit's.
        run: The run to be gated, from which it is told what would be noticed; by default the only other one.

    Raises:
        EvenrankError: Without a baseline, and where no rule can be checked.
    """
    values = as_audited(as_json_values(audited))
    base = values.baseline(baseline)
    if base is None:
        raise EvenrankError("expected a `baseline`: a budget says what a run may lose against it")
    gated = values.run(run, base)
    found = [_tightest(values, base, measure) for measure in values.facts if _can_be_a_rule(values, measure)]
    rules = [tried for tried in found if tried[-1].holds]
    if not rules:
        raise EvenrankError("no rule can be checked with these queries: more are needed")
    n = max(tried.n for of in found for tried in of)
    against = plain(readable(base))
    lines = [f"# A budget that {counted(n, 'query')} can check against {against}, made by evenrank gate --init."]
    # All at once: what would be noticed is corrected for the number of rules.
    budget = {"rule": [tried[-1].values for tried in rules]}
    rulings = gate(audited, budget=budget, baseline=base, run=gated).rulings
    notices = {str(tried[-1].values["measure"]): noticed(one) for tried, one in zip(rules, rulings, strict=True)}
    for tried in found:
        lines += ["", *_rule_lines(tried, notices)]
    return "\n".join(lines) + "\n"


def _can_be_a_rule(values: Audited, measure: str) -> bool:
    """Whether a measure has a better side."""
    facts = values.facts[measure]
    return len(facts.signs) == 1 and not measure.startswith("Share") and not measure.startswith("Exposure")


def _tightest(values: Audited, base: str, measure: str) -> list[_Tried]:
    """The limits tried, from the tightest to the first that holds."""
    signed = values.facts[measure].signed
    limits: list[dict[str, object]] = (
        [{"measure": measure, "at_most": size} for size in SIZES]
        if signed
        else [{"measure": measure, "against": "baseline", "at_least": f"-{margin}%"} for margin in MARGINS]
    )
    tried: list[_Tried] = []
    for limit in limits:
        tried.append(_try(values, base, limit))
        if tried[-1].holds:
            break
    return tried


def _try(values: Audited, base: str, limit: Mapping[str, object]) -> _Tried:
    """Whether a rule would hold of a run that is as good as the baseline."""
    (rule,) = as_budget({"rule": [limit]}, values.facts).rules
    parts = values.parts(base, rule)
    others = None if rule.against is None else parts
    found = tested(rule, parts, others, greatest=values.greatest(rule, [base]), guaranteed=None, alpha=ALPHA)
    holds = found.test is not None and outcome(found.test, found.test.p_broken(), ALPHA) == "holds"
    return _Tried(limit, holds, found.if_equal, found.n)


def _rule_lines(tried: list[_Tried], notices: Mapping[str, str]) -> Iterator[str]:
    """The rule, or why there is none, and what a tighter one would take."""
    last = tried[-1]
    name, side = str(last.values["measure"]), "at_most" if "at_most" in last.values else "at_least"
    if not last.holds:
        limit = last.values[side]
        yield f"# No rule for {plain(name)}: {counted(last.n, 'query')} cannot show that it keeps to {limit}."
        return
    if len(tried) > 1:
        tighter = tried[-2]
        needs = f": {tighter.needed:,} are needed" if tighter.needed is not None else ""
        yield f"# {tighter.values[side]} cannot be shown with {counted(tighter.n, 'query')}{needs}."
    notice = notices[name]
    yield "[[rule]]"
    yield f"measure = {json.dumps(name)}"
    if "against" in last.values:
        yield 'against = "baseline"'
    limit = last.values[side]
    written = f'"{limit}"' if isinstance(limit, str) else f"{limit:g}"
    yield f"{side} = {written}" + (f"  # {notice} or worse would be noticed" if notice else "")
