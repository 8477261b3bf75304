"""The rules of a gate for machines: JUnit XML, a Markdown table, annotations of GitHub Actions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from evenrank.files.errors import plain, readable
from evenrank.results.table import Table

from .rule_result import RuleResult, finding

_MARKS = re.compile(r"([\\`*_{}\[\]#!|~])")
_LINKED = re.compile(r"(?<![a-zA-Z0-9_])@|#|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
_LEVELS = {"holds": "notice", "violated": "error", "not shown": "warning"}


def junit(run: str, rules: Sequence[RuleResult], warnings: Sequence[str], *, strict: bool) -> str:
    """The rules as JUnit XML: a test case each; what is not shown is skipped, or with ``strict`` a failure."""
    failed = sum(_fails(rule, strict) for rule in rules)
    skipped = 0 if strict else sum(rule.outcome == "not shown" for rule in rules)
    counts = {"tests": str(len(rules)), "failures": str(failed), "errors": "0"}
    root = ElementTree.Element("testsuites", {"name": "evenrank gate", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _xml(f"evenrank gate {run}"), **counts})
    suite.set("skipped", str(skipped))
    for rule, name in zip(rules, _case_names(rules), strict=True):
        names = {"classname": _xml(f"evenrank.gate.{run}"), "name": _xml(name), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", names)
        sentence = _xml(finding(rule).text)
        if _fails(rule, strict):
            ElementTree.SubElement(case, "failure", {"message": sentence, "type": rule.outcome}).text = sentence
        elif rule.outcome == "not shown":
            ElementTree.SubElement(case, "skipped", {"message": sentence})
        else:
            ElementTree.SubElement(case, "system-out").text = sentence
    if warnings:
        notes = "\n".join(_xml(f"note: {warning}") for warning in warnings)
        ElementTree.SubElement(suite, "system-out").text = notes
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case_names(rules: Sequence[RuleResult]) -> list[str]:
    """A name for each rule, all of them different: what shows JUnit's files keeps one case of a name."""
    names: list[str] = []
    for result in rules:
        name = f"{result.title}, {result.rule.limit}"
        names.append(name if name not in names else f"{name} (rule {len(names) + 1})")
    return names


def _fails(rule: RuleResult, strict: bool) -> bool:
    return rule.outcome == "violated" or (strict and rule.outcome == "not shown")


def _xml(text: str) -> str:
    """``text`` in one line, without characters that XML cannot have, escaped or not."""
    return re.sub(r"[\ufffe\uffff]", "�", plain(readable(text)))


def markdown(answer: str, table: Table, warnings: Sequence[str]) -> str:
    """The table of rules as a Markdown table, and the answer above it."""
    rows = [[_cell(column.read(column.value(rule, 0))) for column in table.columns] for rule in table.rows]
    for row in rows:
        row[0] = row[0] if row[0] == "holds" else f"**{row[0]}**"
    head = [[column.title for column in table.columns], ["---"] * len(table.columns)]
    lines = [f"**{_cell(answer)}**", "", *(f"| {' | '.join(row)} |" for row in [*head, *rows])]
    if warnings:
        lines += ["", *(f"- {_cell(warning)}" for warning in warnings)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """``text`` as Markdown that shows it as it is: nothing is a mark, a tag, a mention, a link or a new cell.

    Mentions and links are found after entities are decoded: a space of no width keeps them apart.
    """
    escaped = plain(readable(text)).replace("&", "&amp;").replace("<", "&lt;")
    escaped = _LINKED.sub("\\g<0>\u200b", escaped)
    return _MARKS.sub(r"\\\1", escaped)


def workflow_commands(run: str, rules: Sequence[RuleResult], warnings: Sequence[str], *, strict: bool) -> str:
    """The rules as workflow commands: ``::error title=…::…``; what holds is a notice, what is not shown a warning."""
    lines = [f"::warning title=evenrank gate::{_command(warning)}" for warning in warnings]
    for rule in rules:
        level = "error" if _fails(rule, strict) else _LEVELS[rule.outcome]
        title = f"evenrank gate {run}: {rule.outcome}"
        lines.append(f"::{level} title={_property(title)}::{_command(finding(rule).text)}")
    return "\n".join(lines)


def _command(text: str) -> str:
    """The message of a workflow command."""
    return readable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property of a workflow command."""
    return _command(text).replace(":", "%3A").replace(",", "%2C")
