"""A budget to begin with: the tightest rules that a sample of queries can show to hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evenrank import options as opt
from evenrank.io.arguments import checked
from evenrank.io.errors import EvenrankError, plain, readable
from evenrank.io.wording import counted
from evenrank.measures import parse_measure, resolve
from evenrank.measures.inference import outcome
from evenrank.results.finding import phrases

from .budget import ALPHA, as_budget
from .gate import WithValues, as_json_values, gate, many, noticed
from .gate_rules import Audited, as_audited, tested

MARGINS = (1, 2, 3, 5, 10, 20)
"""Losses, in percent."""
SIZES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Limits on an absolute value, of which a share means nothing."""
_SAYS = phrases("gate")


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

    The smallest change for the worse (1, 2, 3, 5, 10 or 20%) that would be ruled out if the run were as good as the
    baseline: a loss where higher is better, a rise where nearer zero is. Of a signed measure and of one in bars, a
    limit on its absolute value. A comment behind each says which value would be noticed in 8 of 10 such samples,
    another which tighter limit takes how many queries.

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
    found: dict[str, list[_Tried]] = {}
    refused: dict[str, str] = {}
    for measure in (name for name, facts in values.facts.items() if len(facts.signs) == 1):
        try:
            found[measure] = _tightest(values, base, measure)
        except EvenrankError as error:
            refused[measure] = str(error).removeprefix("`budget`: rule 1: ")
    rules = {measure: tried[-1].values for measure, tried in found.items() if tried and tried[-1].holds}
    if not rules:
        raise EvenrankError("no rule can be checked with these queries: more are needed")
    queries = counted(max(tried.n for of in found.values() for tried in of), "query")
    lines = [f"# {line}" for line in _SAYS.say("init", queries=queries, baseline=plain(readable(base))).split("\n")]
    # All at once: what would be noticed is corrected for the number of rules.
    rulings = gate(audited, budget={"rule": list(rules.values())}, baseline=base, run=gated).rulings
    notices = dict(zip(rules, map(noticed, rulings), strict=True))
    for measure, tried in found.items():
        lines += ["", *_rule_lines(measure, tried, notices.get(measure, ""))] if tried else []
    for measure, why in refused.items():
        lines += ["", f"# {_SAYS.say('init_refused', measure=plain(measure), why=plain(why))}"]
    return "\n".join(lines) + "\n"


def _tightest(values: Audited, base: str, measure: str) -> list[_Tried]:
    """The limits tried, from the tightest to the first that holds; none of a measure without a better side."""
    how = resolve(parse_measure(measure))
    limits: list[dict[str, object]]
    if how.undirected:
        limits = []
    elif values.facts[measure].signed or measure.startswith("|"):
        limits = [{"measure": measure, "at_most": size} for size in SIZES]
    else:
        side, sign = ("at_least", "-") if how.better == "higher" else ("at_most", "+")
        limits = [{"measure": measure, "against": "baseline", side: f"{sign}{margin}%"} for margin in MARGINS]
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


def _rule_lines(measure: str, tried: list[_Tried], notice: str) -> Iterator[str]:
    """The rule, or why there is none, and what a tighter one would take."""
    last = tried[-1]
    side = "at_most" if "at_most" in last.values else "at_least"
    limit, queries = last.values[side], counted(last.n, "query")
    if not last.holds:
        yield f"# {_SAYS.say('init_none', measure=plain(measure), queries=queries, limit=str(limit))}"
        return
    if len(tried) > 1:
        tighter = tried[-2]
        key = "init_tighter" if tighter.needed is None else "init_tighter_needs"
        said = {
            "limit": str(tighter.values[side]),
            "queries": counted(tighter.n, "query"),
            "needed": many(tighter.needed),
        }
        yield f"# {_SAYS.say(key, **said)}"
    yield "[[rule]]"
    yield f"measure = {json.dumps(measure)}"
    if "against" in last.values:
        yield 'against = "baseline"'
    written = f'"{limit}"' if isinstance(limit, str) else f"{limit:g}"
    yield f"{side} = {written}" + (f"  # {_SAYS.say('init_notice', notice=notice)}" if notice else "")
