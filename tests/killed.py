"""A command that is killed at several moments, counted in calls since it began to write. Run as a program."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

# Before the forks, so that each needs no seconds of its own for them. No table is queried before: the threads that
# polars starts for that would be missing in the forks.
import numpy
import polars
import pyarrow.parquet

import evenrank
from evenrank.auditing import audit_page as page
from evenrank.auditing import compute
from evenrank.cli import main
from evenrank.files import texts
from evenrank.groups import Scoring, _plain_counting, load_lexicon, sides_of_texts
from evenrank.groups import table as scores
from evenrank.mitigation import negatives

# Counting without the compiler asks polars for the size of the texts.
_plain_counting.Room.left = -1
LOADED = (
    (numpy, polars, pyarrow.parquet, compute, page, scores, texts, negatives),
    sides_of_texts(["she said"], Scoring(load_lexicon())),
)
_SOURCES = str(Path(evenrank.__file__).parent)


def count_calls(stop: int | None) -> tuple[list[int], list[int]]:
    """Counts calls from evenrank's code since the first file was made, and kills this process at number ``stop``.

    The count, in a list of one; and what it was when each file was made.
    """
    counted, made = [0], []
    make = tempfile.mkstemp

    def note(frame: FrameType, event: str, _: object) -> None:
        if event in ("call", "c_call") and frame.f_code.co_filename.startswith(_SOURCES):
            counted[0] += 1
            if counted[0] == stop:
                os.kill(os.getpid(), signal.SIGKILL)

    def making(*arguments: Any, **named: Any) -> tuple[int, str]:
        sys.setprofile(note)
        made.append(counted[0])
        return make(*arguments, **named)

    tempfile.mkstemp = making  # type: ignore[assignment]
    return counted, made


def in_child(folder: Path, arguments: list[str], stop: int | None) -> int:
    """Runs the command in a folder, in a process of its own; its wait status. Writes what was counted."""
    child = os.fork()
    if not child:
        status = 99
        try:
            os.chdir(folder)
            sys.argv = ["evenrank", *arguments]
            counted = count_calls(stop)
            try:
                main()
            except SystemExit as end:
                status = int(end.code or 0)
            sys.setprofile(None)
            (folder.parent / "calls").write_text(json.dumps(counted))
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def run(home: Path, source: Path, arguments: list[str], moments: int) -> None:
    """The command undisturbed in ``home/whole``; in ``home/killed`` killed at each moment, then undisturbed.

    Two of three moments come shortly after a file was made.
    """
    drawn = random.Random(" ".join(arguments))
    shutil.copytree(source, home / "whole")
    shutil.copytree(source, home / "killed")
    # The first run on a machine also makes what later ones find in caches, which takes calls of its own.
    shutil.copytree(source, home / "first")
    in_child(home / "first", arguments, None)
    ended = [in_child(home / "whole", arguments, None)]
    (calls,), made = json.loads((home / "calls").read_text())
    left = []
    for number in range(moments):
        stop = drawn.randint(1, calls) if number % 3 == 2 else made[-1 - number % len(made)] + drawn.randint(2, 6)
        ended.append(in_child(home / "killed", arguments, stop))
        left += [path.name for path in (home / "killed").iterdir()]
    ended.append(in_child(home / "killed", arguments, None))
    # At once: a fork that ends would print what is still kept of it again.
    print(json.dumps({"ended": ended, "left": left}), flush=True)


if __name__ == "__main__":
    for given in json.loads(sys.argv[1]):
        run(Path(given["home"]), Path(given["source"]), given["arguments"], given["moments"])
