"""A gate's rules for machines that show them: JUnit XML, Markdown, annotations of GitHub Actions."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from evenrank.io.errors import plain, readable

from .gate_lines import found, line, remark, verdict
from .gate_result import GateResult, Ruling

_MARKS = re.compile(r"([\\`*_{}\[\]#!|~])")
_LINKED = re.compile(r"(?<![a-zA-Z0-9_])@|#|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
_LEVELS = {"holds": "notice", "broken": "error", "not shown": "warning"}


def junit(result: GateResult, *, strict: bool) -> str:
    """The rules as JUnit XML: a test case each."""
    failed, skipped = _counted(result, strict)
    counts = {"tests": str(len(result.rulings)), "failures": str(failed), "errors": "0"}
    root = ElementTree.Element("testsuites", {"name": "evenrank gate", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _xml(f"evenrank gate {result.run}"), **counts})
    suite.set("skipped", str(skipped))
    for ruling, name in zip(result.rulings, _case_names(result), strict=True):
        names = {"classname": _xml(f"evenrank.gate.{result.run}"), "name": _xml(name), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", names)
        said = _xml(f"{ruling.outcome}: {line(ruling)}")
        if _fails(ruling, strict):
            ElementTree.SubElement(case, "failure", {"message": said, "type": ruling.outcome}).text = said
        elif ruling.outcome == "not shown":
            ElementTree.SubElement(case, "skipped", {"message": said})
        else:
            ElementTree.SubElement(case, "system-out").text = said
    if result.warnings:
        said = "\n".join(f"note: {warning}" for warning in result.warnings)
        ElementTree.SubElement(suite, "system-out").text = _xml(said)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case_names(result: GateResult) -> list[str]:
    """A name for each rule, all of them different: what shows JUnit's files keeps one case of a name."""
    names: list[str] = []
    for ruling in result.rulings:
        name = f"{ruling.title}, {ruling.rule.limit}"
        names.append(name if name not in names else f"{name} (rule {len(names) + 1})")
    return names


def _fails(ruling: Ruling, strict: bool) -> bool:
    return ruling.outcome == "broken" or (strict and ruling.outcome == "not shown")


def _counted(result: GateResult, strict: bool) -> tuple[int, int]:
    failed = sum(_fails(ruling, strict) for ruling in result.rulings)
    return failed, 0 if strict else sum(ruling.outcome == "not shown" for ruling in result.rulings)


def _xml(text: str) -> str:
    """``text`` without characters that XML cannot have, escaped or not."""
    lines = (plain(readable(part)) for part in text.split("\n"))
    return re.sub(r"[\ufffe\uffff]", "�", "\n".join(lines))


def markdown(result: GateResult) -> str:
    """The rules as a Markdown table, and the outcome above it."""
    rows = [
        (
            f"**{ruling.outcome}**" if ruling.outcome != "holds" else ruling.outcome,
            *map(_cell, (ruling.title, found(ruling), ruling.rule.limit, remark(ruling))),
        )
        for ruling in result.rulings
    ]
    table = [("outcome", "rule", "value", "budget", ""), *[("---",) * 5], *rows]
    lines = [f"**{_cell(verdict(result))}**", "", *(f"| {' | '.join(row)} |" for row in table)]
    if result.warnings:
        lines += ["", *(f"- {_cell(warning)}" for warning in result.warnings)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """``text`` as Markdown that shows it as it is: nothing is a mark, a tag, a mention, a link or a new cell.

    Mentions and links are found after entities are decoded: a space of no width keeps them apart.
    """
    escaped = plain(readable(text)).replace("&", "&amp;").replace("<", "&lt;")
    escaped = _LINKED.sub("\\g<0>\u200b", escaped)
    return _MARKS.sub(r"\\\1", escaped)


def workflow_commands(result: GateResult, *, strict: bool) -> str:
    """The rules as workflow commands: ``::error title=…::…``; what holds is a notice, what is not shown a warning."""
    lines = [f"::warning title=evenrank gate::{_command(warning)}" for warning in result.warnings]
    for ruling in result.rulings:
        level = "error" if _fails(ruling, strict) else _LEVELS[ruling.outcome]
        title = f"evenrank gate {result.run}: {ruling.outcome}"
        lines.append(f"::{level} title={_property(title)}::{_command(line(ruling))}")
    return "\n".join(lines)


def _command(text: str) -> str:
    """The message of a workflow command."""
    return readable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property of a workflow command."""
    return _command(text).replace(":", "%3A").replace(",", "%2C")
