"""``make size``: writes the size of this tree, beside that of an earlier commit, into CONTRIBUTING.md and prints it.

Lines of source and tests are counted by folder, words of README and docs (Markdown without tables) too, options by
command. The earlier commit is the last release (the newest tag ``v*``) or, before the first release, :data:`BASE`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
BASE = "d8a25518f93c7641a3376969266f0ae4ab78edf8"
LIMITS = {"source": 56_000, "tests": 38_000, "docs": 30_000}
START, END = "<!-- size: make size -->\n", "<!-- end of size -->\n"
OPTIONS = """
import json
from evenrank.cli import commands

def options(command, name):
    for child, inner in getattr(command, "commands", {}).items():
        yield from options(inner, f"{name} {child}".strip())
    if not hasattr(command, "commands"):
        yield name, sum(parameter.param_type_name == "option" for parameter in command.params)

print(json.dumps(dict(options(commands(), ""))))
"""
Sizes = dict[str, Counter[str]]
"""Numbers by kind (source, tests, docs, options) and then by folder or command."""


def lines_and_words(tree: Path) -> Sizes:
    """The lines of source and tests and the words of docs in the files of ``tree`` that git tracks, by folder."""
    counts: Sizes = {"source": Counter(), "tests": Counter(), "docs": Counter()}
    for name in git("ls-files", tree=tree).splitlines():
        path = Path(name)
        if not (tree / path).is_file():
            continue
        if path.suffix == ".py" and path.parts[:2] == ("src", "evenrank"):
            counts["source"][_folder(path.parts[2:])] += _lines(tree / path)
        elif path.suffix == ".py" and path.parts[0] == "tests":
            counts["tests"][_folder(path.parts[1:])] += _lines(tree / path)
        elif path.suffix == ".md" and (path.parts[0] == "docs" or name == "README.md"):
            counts["docs"][_folder(path.parts[1:])] += words((tree / path).read_text(encoding="utf-8"))
    return counts


def options(tree: Path) -> Counter[str]:
    """The number of options of each command in ``tree``."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    run = subprocess.run([sys.executable, "-c", OPTIONS], env=environment, capture_output=True, text=True, check=True)
    return Counter(json.loads(run.stdout))


def sizes(tree: Path) -> Sizes:
    return {**lines_and_words(tree), "options": options(tree)}


def words(markdown: str) -> int:
    """The number of words outside tables, those of code included."""
    code, count = False, 0
    for line in markdown.splitlines():
        code ^= line.lstrip().startswith("```")
        if code or not line.lstrip().startswith("|"):
            count += len(line.split())
    return count


def _folder(parts: tuple[str, ...]) -> str:
    return parts[0] if len(parts) > 1 else "."


def _lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def git(*arguments: str, tree: Path = ROOT) -> str:
    return subprocess.run(["git", "-C", str(tree), *arguments], capture_output=True, text=True, check=True).stdout


def tables(now: Sizes, before: Sizes, name: str) -> str:
    """The Markdown tables: by folder, then by command."""
    lines = [f"| | {name} | now | at most |", "| --- | --: | --: | --: |"]
    for kind, unit in (("source", "lines"), ("tests", "lines"), ("docs", "words")):
        totals = f"{before[kind].total():,} | {now[kind].total():,} | {LIMITS[kind]:,}"
        lines.append(f"| **{kind}**, {unit} | {totals} |")
        lines += [
            f"| {kind} {folder} | {before[kind][folder]:,} | {now[kind][folder]:,} | |"
            for folder in sorted(before[kind] | now[kind])
        ]
    totals = f"{before['options'].total()} | {now['options'].total()}"
    lines += ["", f"| options | {name} | now |", "| --- | --: | --: |", f"| **all commands** | {totals} |"]
    lines += [
        f"| {command} | {before['options'][command]} | {now['options'][command]} |"
        for command in sorted(before["options"] | now["options"])
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    tags = git("tag", "--list", "v*", "--sort=-version:refname").split()
    revision = tags[0] if tags else BASE
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        git("worktree", "add", "--detach", str(tree), revision)
        try:
            before = sizes(tree)
        finally:
            git("worktree", "remove", "--force", str(tree))
    text = tables(sizes(ROOT), before, tags[0] if tags else revision[:7])
    file = ROOT / "CONTRIBUTING.md"
    pattern = re.escape(START) + ".*?" + re.escape(END)
    replaced = re.sub(pattern, lambda _: START + text + END, file.read_text(encoding="utf-8"), flags=re.DOTALL)
    file.write_text(replaced, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
