"""The size of a tree: lines by folder, words outside tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "ci"))
import size


def test_words_are_counted_outside_tables() -> None:
    markdown = "# A heading\n\n| a | table |\n| --- | --- |\n\nthree more words\n```sh\n| code counts\n```\n"
    assert size.words(markdown) == 3 + 3 + 5


def test_only_tracked_files_are_counted(tmp_path: Path) -> None:
    for name, lines in (("src/evenrank/a.py", 2), ("src/evenrank/files/b.py", 3), ("tests/c.py", 4), ("docs/d.md", 5)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a word\n" * lines, encoding="utf-8")
    for arguments in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    (tmp_path / "src/evenrank/untracked.py").write_text("a\n", encoding="utf-8")
    assert size.lines_and_words(tmp_path) == {
        "source": {".": 2, "files": 3},
        "tests": {".": 4},
        "docs": {".": 10},
    }
