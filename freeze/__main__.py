"""``python -m freeze``: compares the figures of this tree with those of the commit in ``freeze/base``."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .figures import MOST_SHOWN, Changes, compare

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m freeze", description=__doc__)
    parser.add_argument("--base", help="the commit to compare with (default: the one in freeze/base)")
    parser.add_argument("--keep", type=Path, help="a folder for the files; those of the base are made once")
    parser.add_argument("--text", action="store_true", help="compare sentences and terminal output as well")
    chosen = parser.parse_args()
    base = chosen.base or (ROOT / "freeze" / "base").read_text(encoding="utf-8").strip()
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.keep or Path(scratch)
        old_tree = Path(scratch) / "tree"
        running: dict[str, subprocess.Popen[bytes]] = {}
        added = _git("worktree", "add", "--detach", "--force", str(old_tree), base)
        if added.returncode:
            print(f"{added.stderr.strip()}\nin a shallow clone: git fetch --unshallow", file=sys.stderr)
            return 2
        try:
            made = {name: (folder / name).absolute() for name in ("old", "new")}
            trees = {"old": old_tree, "new": ROOT}
            shutil.rmtree(made["new"], ignore_errors=True)
            running = {name: _make(trees[name], made[name]) for name in made if not (made[name] / "done").exists()}
            failed = [name for name, process in running.items() if process.wait()]
        finally:
            for process in running.values():
                process.terminate()
            _git("worktree", "remove", "--force", str(old_tree))
        if failed:
            print(f"no figures of the {' and the '.join(failed)} tree", file=sys.stderr)
            return 1
        changes = Changes.read(ROOT / "freeze" / "changes.toml")
        same, wrong = compare(made["old"], made["new"], changes, chosen.text)
    for line in wrong[:MOST_SHOWN]:
        print(line)
    if len(wrong) > MOST_SHOWN:
        print(f"… and {len(wrong) - MOST_SHOWN} more")
    parts = ", ".join(f"{number} {part}s" for part, number in same.items())
    print(f"{same.total()} figures as at {base[:12]} ({parts}), {len(wrong)} not")
    return bool(wrong) or not same.total()


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)


def _make(tree: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Makes the figures of ``tree`` in a process of its own, on one core."""
    paths = os.pathsep.join(map(str, (tree / "src", tree / "tests", tree)))
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "SOURCE_DATE_EPOCH": "1700000000"}
    return subprocess.Popen([sys.executable, "-m", "freeze.steps", str(folder), str(DATA)], cwd=tree, env=environment)


if __name__ == "__main__":
    sys.exit(main())
