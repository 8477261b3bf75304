"""A budget to begin with: for each measure the tightest limit that the queries at hand can show to hold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenrank import options as opt
from evenrank.files.arguments import checked
from evenrank.files.errors import EvenrankError, arg, plain, readable
from evenrank.files.wording import counted
from evenrank.measures import parse_measure, resolve
from evenrank.results.finding import phrases
from evenrank.results.table import Column, Table, wrapped
from evenrank.stats.bounds import MeanBound
from evenrank.stats.bounds import outcome as outcome_of
from evenrank.stats.estimate import defined
from evenrank.stats.planning import queries_to_hold

from .audited import Audited, greatest_of
from .budget import ALPHA, as_budget
from .gate import as_audited, gate
from .gate_result import WIDTH
from .rule_result import RuleResult, about_queries, detects_from, unbounded
from .rule_test import rule_test

if TYPE_CHECKING:
    from evenrank.auditing.data import AuditFigures

_PHRASES = phrases("gate")
MARGINS = (1, 2, 3, 5, 10, 20)
"""Losses, in percent."""
SIZES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Limits on an absolute value, of which a share means nothing."""
_TYPICAL = 0.5
"""The standard deviation of a difference of two runs, as a share of the baseline's."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """A rule as TOML has it, and whether the sample can show that it holds of the baseline itself.

    ``needed``: queries with which it would, for identical runs; ``typical``: for runs that are equally good and whose
    difference has half the standard deviation of the baseline.
    """

    values: Mapping[str, object]
    holds: bool
    needed: int | None
    typical: int | None
    n: int


@checked
def initial_budget(
    audited: AuditFigures | opt.File | Mapping[str, object], *, baseline: str | None = None, run: str | None = None
) -> str:
    """A budget that these queries can check, as TOML: for each measure the tightest limit that the baseline keeps.

    The smallest change for the worse (1, 2, 3, 5, 10 or 20%) that would be ruled out if the run were as good as the
    baseline: a loss where higher is better, a rise where nearer zero is. Of a signed measure and of one in bars, a
    limit on its absolute value; of the first also, commented out, one on a shift to one side. A comment behind each
    says nearer than which value is missed in one of five such samples, another which tighter limit takes how many
    queries.

    Args:
        audited: As for :func:`evenrank.gate`: what :func:`evenrank.audit` returned, or its JSON with values by query.
        baseline: What rules compare with; by default the audit's.
        run: The run to be gated, from which it is told what is detected; by default the only other one.

    Raises:
        EvenrankError: Without a baseline, and where no rule can be checked.
    """
    return checkable_budget(audited, baseline=baseline, run=run).text


@dataclass(frozen=True, slots=True)
class InitialBudget:
    """A budget: the ``text`` of its file, the ``queries`` that can check it, counted in words, and what a gate says of
    its ``rules``.

    ``remarks``: the sentences on measures of fewer queries, and on lists that differ in length, if there are such;
    ``refused``: why a measure has no rule.
    """

    text: str
    queries: str
    rules: tuple[RuleResult, ...]
    remarks: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def summary(self, path: str) -> str:
        """What was written to a file, and what each rule detects."""
        values: dict[str, Any] = {"path": path, "rules": counted(len(self.rules), "rule")}
        lines = [_PHRASES.text("init_written", queries=self.queries, **values)]
        lines += [wrapped(text, WIDTH) for text in (*self.remarks, *self.refused)]
        columns = (
            Column("rule", of="title", heading=""),
            Column("budget", of="rule.limit"),
            Column("noticed", heading="detects from", of=detects_from),
        )
        return "\n".join([*lines, "", Table("", columns, self.rules).text(WIDTH)])


def checkable_budget(
    audited: AuditFigures | opt.File | Mapping[str, object], *, baseline: str | None = None, run: str | None = None
) -> InitialBudget:
    """What :func:`initial_budget` makes, with its rules as a gate has them."""
    values = as_audited(audited)
    base = values.baseline(baseline)
    if base is None:
        raise EvenrankError(f"expected a {arg.baseline}: a budget says what a run may lose against it")
    gated = values.run(run, base)
    trials: dict[str, list[_Tried]] = {}
    refused: dict[str, str] = {}
    for measure in (name for name, facts in values.facts.items() if len(facts.signs) == 1):
        try:
            trials[measure] = _tightest(values, [base, gated], measure)
        except EvenrankError as error:
            refused[measure] = str(error).removeprefix(f"{arg.budget}: rule 1: ")
    rules = {measure: tried[-1].values for measure, tried in trials.items() if tried and tried[-1].holds}
    if not rules and refused and not any(trials.values()):
        why = "; ".join(f"{measure}: {why}" for measure, why in refused.items())
        raise EvenrankError(f"no rule can be checked: {why}")
    if not rules:
        raise EvenrankError(f"no rule can be checked with {_of_queries(values, values.queries)}: more are needed")
    queries = max(tried.n for of in trials.values() for tried in of)
    fields = {"queries": _of_queries(values, queries), "baseline": plain(readable(base))}
    lines = [f"# {_PHRASES.text('init', **fields)}"]
    if values.query_clusters is not None:
        key = "init_independent" if values.query_clusters == "none" else "init_clusters"
        lines.append(f"# {_PHRASES.text(key, clusters=plain(values.query_clusters))}")
    # All at once: what is detected is corrected for the number of rules.
    results = gate(audited, budget={"rule": list(rules.values())}, baseline=base, run=gated).rules
    deep = [
        plain(result.rule.measure)
        for result in results
        if result.against and values.unequal_depth(gated, result.rule, base)
    ]
    by_count: dict[int, list[str]] = {}
    for measure in rules:
        by_count.setdefault(trials[measure][-1].n, []).append(plain(measure))
    remarks = [
        _PHRASES.text("init_fewer", queries=counted(count, "query"), measures=of)
        for count, of in by_count.items()
        if count < queries
    ]
    remarks += [_PHRASES.text("init_depth", measures=deep)] if deep else []
    lines += [f"# {remark}" for remark in remarks]
    notices = dict(zip(rules, map(detects_from, results), strict=True))
    for measure, tried in trials.items():
        lines += ["", *_rule_lines(measure, tried, notices.get(measure, ""))] if tried else []
        if measure in rules and values.facts[measure].signed:
            lines += _shift_lines(values, [base, gated], measure)
    texts = [_PHRASES.text("init_refused", measure=plain(measure), why=plain(why)) for measure, why in refused.items()]
    lines += [line for text in texts for line in ("", f"# {text}")]
    return InitialBudget("\n".join(lines) + "\n", fields["queries"], results, tuple(remarks), tuple(texts))


def _of_queries(values: Audited, count: int) -> str:
    """The queries counted, with the clusters that limits count."""
    queries = counted(count, "query")
    # The clusters are those of all.
    known = values.clusters is not None and count == values.queries
    return f"{queries} in {values.clusters_in_words}" if known else queries


def _tightest(values: Audited, runs: Sequence[str], measure: str) -> list[_Tried]:
    """The limits tried, from the tightest to the first that holds of the first of the ``runs``, the baseline.

    None of a measure without a better side. Raises EvenrankError where documents without a label could change it.
    """
    how = resolve(parse_measure(measure))
    limits: list[dict[str, object]]
    if how.undirected:
        limits = []
    elif values.facts[measure].signed or measure.startswith("|"):
        limits = [{"measure": measure, "at_most": size} for size in SIZES]
    else:
        side, sign = ("at_least", "-") if how.better == "higher" else ("at_most", "+")
        limits = [{"measure": measure, "against": "baseline", side: f"{sign}{margin}%"} for margin in MARGINS]
    return _until_one_holds(values, runs, limits)


def _until_one_holds(values: Audited, runs: Sequence[str], limits: Sequence[Mapping[str, object]]) -> list[_Tried]:
    tried: list[_Tried] = []
    for limit in limits:
        (rule,) = as_budget({"rule": [limit]}, values.facts).rules
        if rule.absolute and rule.bound >= greatest_of(rule, [values.of(runs[0], rule)]):
            break
        tried.append(_try(values, runs, limit))
        if tried[-1].holds:
            break
    return tried


def _try(values: Audited, runs: Sequence[str], limit: Mapping[str, object]) -> _Tried:
    """Whether a rule would hold of a run that is as good as the baseline."""
    (rule,) = as_budget({"rule": [limit]}, values.facts).rules
    own, *others = (values.of(run, rule) for run in runs)
    if any(of_run.partly_labelled for of_run in (own, *others)):
        raise EvenrankError(_PHRASES.text("unlabelled"))
    alone = rule.against is None
    result = rule_test(
        rule,
        own.parts,
        None if alone else own.parts,
        greatest=greatest_of(rule, [own]),
        alpha=ALPHA,
        samples=(own.sample, None if alone else own.sample),
        clusters=values.clusters,
    )
    if result.test is not None and not math.isfinite(result.test.loss):
        raise EvenrankError(_PHRASES.text(unbounded(rule)))
    holds = result.test is not None and outcome_of(result.test, result.test.p_violated(), ALPHA) == "holds"
    typical = None
    if isinstance(result.test, MeanBound) and result.n_identical is not None:
        known = defined(own.parts[0])
        share = abs(rule.bound) if rule.relative else 0.0
        sd = math.hypot(_TYPICAL, share) * float(np.std(known, ddof=1))
        margin = abs(rule.bound) * result.test.unit
        effect = result.test.design_effect
        typical = queries_to_hold(margin, sd, result.test.loss, ALPHA, design_effect=effect)
    return _Tried(limit, holds, result.n_identical, typical, result.n)


def _shift_lines(values: Audited, runs: Sequence[str], measure: str) -> list[str]:
    """A rule on the shift to one side, commented out; none where these queries can check none."""
    of = {"measure": measure, "against": "baseline", "signed": True}
    tried = _until_one_holds(values, runs, [{**of, "at_most": size} for size in SIZES])
    if not tried or not tried[-1].holds:
        return []
    limit, (first, second) = tried[-1].values["at_most"], values.poles or ("+", "−")
    sentence = _PHRASES.text("init_signed", measure=plain(measure), first=plain(first), second=plain(second))
    rule = ("[[rule]]", f"measure = {json.dumps(measure)}", 'against = "baseline"', "signed = true")
    return ["", *(f"# {line}" for line in (sentence, *rule, f"at_most = {limit:g}  # at_least = -{limit:g}"))]


def _rule_lines(measure: str, tried: list[_Tried], notice: str) -> Iterator[str]:
    """The rule, or why there is none, and what a tighter one would take."""
    last = tried[-1]
    side = "at_most" if "at_most" in last.values else "at_least"
    limit, queries = last.values[side], counted(last.n, "query")
    if not last.holds:
        yield f"# {_PHRASES.text('init_none', measure=plain(measure), queries=queries, limit=str(limit))}"
        return
    if len(tried) > 1:
        tighter = tried[-2]
        key = "init_tighter" if tighter.needed is None else "init_tighter_needs"
        fields = {
            "limit": str(tighter.values[side]),
            "queries": counted(tighter.n, "query"),
            "needed": about_queries(tighter.needed),
            "typical": about_queries(tighter.typical),
        }
        yield f"# {_PHRASES.text(key, **fields)}"
    yield "[[rule]]"
    yield f"measure = {json.dumps(measure)}"
    if "against" in last.values:
        yield 'against = "baseline"'
    written = f'"{limit}"' if isinstance(limit, str) else f"{limit:g}"
    yield f"{side} = {written}" + (f"  # {_PHRASES.text('init_notice', notice=notice)}" if notice else "")
