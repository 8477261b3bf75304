"""Findings and their words: every template is used, can be filled and is a sentence; what a page prints of them."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import evenrank
from evenrank.results.finding import Finding, Phrases, phrases, read
from evenrank.results.page import Page, Section
from evenrank.results.table import TEXT, Column, Table, shorts
from evenrank.stats.estimate import Estimate

SOURCE = Path(evenrank.__file__).parent
FILES = sorted((SOURCE / "phrases").glob("*.toml"))


def patterns(node: ast.expr) -> Iterator[str]:
    """The texts, as regular expressions, that an expression can be; none of those that it does not name itself."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield re.escape(node.value)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(re.escape(p.value) if isinstance(p, ast.Constant) else ".+" for p in node.values)  # type: ignore[arg-type]
    elif isinstance(node, ast.IfExp):
        yield from (*patterns(node.body), *patterns(node.orelse))


@cache
def named(command: str) -> dict[str, set[str]]:
    """The texts in the modules of a command: the keys of its sentences and of their parts, and any text."""
    found: dict[str, set[str]] = {"finding": set(), "text": set(), "any": set()}
    modules = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    for node in (node for text in modules if f'phrases("{command}")' in text for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            found["any"].update(one for one in patterns(node) if one.replace(".+", ""))
        elif (
            isinstance(node, ast.Call) and re.match(r"(_PHRASES|phrases\(.+\))\.", ast.unparse(node.func)) and node.args
        ):
            found[ast.unparse(node.func).rpartition(".")[2]].update(patterns(node.args[0]))
    return found


def matched(key: str, some: set[str]) -> bool:
    return any(re.fullmatch(pattern, key) for pattern in some)


def test_there_are_phrases() -> None:
    assert len(FILES) >= 10
    asked = {name for path in SOURCE.rglob("*.py") for name in re.findall(r'phrases\("(\w+)"\)', path.read_text())}
    assert asked == {path.stem for path in FILES}


@pytest.mark.parametrize("command", [path.stem for path in FILES])
def test_templates_are_used_and_are_sentences(command: str) -> None:
    templates, used = phrases(command).templates, named(command)
    assert used["finding"] | used["text"]
    # The statuses of rules are keys too; and some keys are put together from two texts.
    texts = used["any"] | {"holds", "violated", "not_shown"}
    halves = [re.fullmatch("(.+)(_.+)", key) for key in templates if not matched(key, texts)]
    assert all(half and matched(half[1], texts) and half[2] in texts for half in halves), halves
    keys = used["finding"] | used["text"]
    assert [one for one in keys if not any(re.fullmatch(one, key) for key in templates)] == []
    for key, template in templates.items():
        fields = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
        assert all(name.isidentifier() for name in fields), key
        said = phrases(command).text(key, **dict.fromkeys(fields, 0.25))
        assert not set(said) & set("{}"), key
        # But for the indentation of commands.
        assert "  " not in re.sub("(?m)^ +", "", re.sub("^[A-Z ]+  ", "", said)), key
        # A sentence begins with a capital, or with what it is about, and ends; a reason does neither.
        begins = re.match(r"[A-Z0-9.`]", said) is not None and not template.startswith("{count} are too few")
        ends = said.endswith(".") or template.endswith("{misses}")
        if matched(key, used["finding"]):
            assert begins, key
            assert ends, key
        assert begins == ends or matched(key, used["text"]), key


def test_a_template_without_its_value_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        Phrases({"a": "{run} is better."}).text("a")
    with pytest.raises(KeyError):
        phrases("gate").finding("no such key")


@pytest.mark.parametrize(
    ("value", "how", "text"),
    [
        (0.1594, "", ".159"), (-0.0044, "+", "−.004"), (0.0044, "+", "+.004"), (0.1594, "2", ".16"),
        (0.1594, "+2", "+.16"), ((0.03, 0.29), "2", "[.03, .29]"), ((-0.03, 0.29), "+", "[−.030, +.290]"),
        (1500, "", "1,500"), (0.25, "%", "25%"), (None, "", "–"), ("a {b}", "+", "a {b}"),
        (["a"], "", "a"), (["a", "b", "c"], "", "a, b and c"), ([], "", ""), (1.0, "", "1.000"),
        (Estimate(0.2, (0.1, 0.3), 9), "+", "+.200 [+.100, +.300]"), (Estimate(0.2, None, 9), "", ".200"),
        (Estimate(None, None, 0), "", "–"),
    ],
)  # fmt: skip
def test_how_values_read(value: object, how: str, text: str) -> None:
    assert read(value, how) == text


def said(place: str, text: str, subject: str = "") -> Finding:
    return Finding("key", subject, "shown", None, text, place)  # type: ignore[arg-type]


FIGURES = Table("Figures", (Column("name", TEXT, ""), Column("mean", shorts(3))), [("a", 0.25), ("b", 0.5)])


def page(*findings: Finding, **more: object) -> Page:
    return Page("kind", "title", findings, **{"table": FIGURES, **more})  # type: ignore[arg-type]


LONG = "word " * 15 + "words"
OTHER = Table("All figures", (Column("name"), Column("n"), Column("text")), [("a", "12", LONG)])
MARKED = Table("", (Column("name", TEXT, ""), Column("mean", shorts(3), mark=lambda row: "●")), [("a", 0.25)])
LEGEND = ("● differs from 0", "~ ties decide", "in standard deviations")
SIMILAR = [f"the-same-beginning-of-a-name-{one}" for one in "12"]
ALIKE_AT_BOTH_ENDS = [f"the-same-beginning-{one}-and-the-same-end" for one in "12"]
PAGES = {
    "answer, warnings, table, findings and notes": page(
        *(said("note", f"Note {number}.") for number in range(5)),
        said("finding", "a leans.", "a"), said("finding", "And more.", "a"),
        said("warning", "Few queries."), said("answer", "A is better."), said("answer", "No bias."),
        said("finding", "longer leans.", "longer"), said("detail", "Nowhere."), aside="40 queries", notes=("Remark.",),
    ),
    "what stands beside the answer": page(said("answer", f"{LONG} and one"), aside="40 queries", table=None),
    "sections and facts": page(said("answer", "A."), sections=(Section("More", (OTHER,)),),
                               facts=(("queries", "1"), ("mean", "0.5"))),
    "names that are cut": page(*(said("finding", f"{name} leans.", name) for name in SIMILAR)),
    "names that are not": page(*(said("finding", f"{name} leans.", name) for name in ALIKE_AT_BOTH_ENDS)),
    "the legend has the marks of the table": page(table=MARKED, legend=LEGEND),
    "the legend of a table without marks": page(legend=LEGEND),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_screens(name: str, snapshot: Any) -> None:
    assert PAGES[name].text() == snapshot
    assert PAGES[name].text(full=True) == snapshot(name="full")


def test_no_text_of_a_screen_steers_the_terminal() -> None:
    evil = "a\x1b[2Jb"
    table = Table("", (Column("name", TEXT, ""), Column("mean", shorts(3))), [(evil, 0.25)])
    found = page(
        *(said(place, evil, evil) for place in ("answer", "warning", "finding", "note")), table=table, aside=evil,
        legend=(f"in {evil}",), facts=((evil, "1.0"),), notes=(evil,), sections=(Section(evil, (table,)),),
    )  # fmt: skip
    assert "\x1b" not in found.text(full=True)
