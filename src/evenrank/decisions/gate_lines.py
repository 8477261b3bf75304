"""A gate's rules in words: one line each."""

from __future__ import annotations

from evenrank.io.errors import plain, readable
from evenrank.io.wording import are, counted
from evenrank.reports.format import equation, number

from .budget import Rule
from .gate_result import GateResult, Ruling


def amount(rule: Rule, value: float | None) -> str:
    """A value in the units of a rule: ``-1.2%``, ``+0.0120`` for a difference, ``0.0480``."""
    if value is None:
        return "no value"
    if rule.relative:
        return f"{100 * value:+.1f}%"
    text = number(value, 4)
    return f"+{text}" if rule.against is not None and not text.startswith("-") else text


def limits(ruling: Ruling) -> str:
    """The one-sided limits in brackets; "" without."""
    if ruling.limits is None:
        return ""
    low, high = (amount(ruling.rule, end) for end in ruling.limits)
    return f"[{low}, {high}]"


def remark(ruling: Ruling) -> str:
    """What the outcome rests on: the queries, how clear it is, what it would take; of a mean, what would be caught."""
    parts = [counted(ruling.n, "query")]
    if ruling.test is None:
        parts.append("one query decides nothing" if ruling.n == 1 else "too few to show anything")
    if ruling.outcome == "broken":
        parts.append(equation("p", ruling.p_broken))
        if ruling.corrected_p != ruling.p_broken:
            parts[-1] = equation("Holm p", ruling.corrected_p)
    elif ruling.outcome == "not shown" and ruling.test is not None:
        if ruling.p_broken is not None and ruling.p_broken <= ruling.alpha:
            parts.append("broken but for the correction for several rules")
        needed = ruling.queries_to_decide
        about = "no number" if needed is None else f"about {needed:,}"
        parts.append(f"{about} of queries would decide it" if needed is None else f"{about} would decide it")
    if ruling.outcome == "broken" or ruling.test is None or ruling.rule.absolute:
        return "; ".join(parts)
    if ruling.catches is None:
        parts.append("would catch nothing on this measure's scale in 8 of 10 such samples")
    else:
        parts.append(f"would catch {amount(ruling.rule, ruling.catches)} or worse in 8 of 10 such samples")
    return "; ".join(parts)


def line(ruling: Ruling) -> str:
    """A rule in one line, without its outcome."""
    return f"{ruling.title}: {found(ruling)}, {ruling.rule.limit}; {remark(ruling)}"


def found(ruling: Ruling) -> str:
    """The value with its limits; of an absolute value also the signed means that it is made of.

    ``|new| − |old| = +0.0100 [-0.0050, +0.0250] (new -0.0300 towards f, old +0.0200 towards m)``
    """
    value = " ".join(filter(None, [amount(ruling.rule, ruling.value), limits(ruling)]))
    if not ruling.rule.absolute or ruling.mean is None:
        return value
    means = [(ruling.run, ruling.mean, ruling.towards[0])]
    if ruling.against is None or ruling.other_mean is None:
        return f"{value} ({_signed(*means[0][1:])})"
    means.append((ruling.against, ruling.other_mean, ruling.towards[1]))
    said = ", ".join(f"{name} {_signed(mean, group)}" for name, mean, group in means)
    return f"|{ruling.run}| − |{ruling.against}| = {value} ({said})"


def _signed(mean: float, towards: str | None) -> str:
    text = number(mean, 4)
    return ("" if text.startswith("-") else "+") + text + ("" if towards is None else f" towards {towards}")


def verdict(result: GateResult) -> str:
    """The outcome of all rules in one line: ``new: broken (1 of 3 rules is broken, 1 is not shown)``."""
    total = counted(len(result.rulings), "rule")
    counts = {outcome: sum(r.outcome == outcome for r in result.rulings) for outcome in ("broken", "not shown")}
    failed = [f"{count} {are(count)} {outcome}" for outcome, count in counts.items() if count]
    if not failed:
        held = "the rule holds" if len(result.rulings) == 1 else f"all {total} hold"
        return f"{result.run}: {result.outcome} ({held})"
    return f"{result.run}: {result.outcome} (of {total}, {', '.join(failed)})"


def text(result: GateResult) -> str:
    """The rules, a line each, and the outcome last; warnings first."""
    lines = [f"note: {warning}" for warning in result.warnings]
    lines += [f"{ruling.outcome:<9}  {line(ruling)}" for ruling in result.rulings]
    return "\n".join(map(_printed, [*lines, verdict(result)]))


def _printed(text: str) -> str:
    """One line that no pipeline takes for a command, whatever the runs are called."""
    shown = plain(readable(text)).replace("##[", "## [")
    return f"run {shown}" if shown.lstrip().startswith("::") else shown
