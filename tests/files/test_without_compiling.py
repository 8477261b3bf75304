"""With NUMBA_DISABLE_JIT, for debuggers, compiled loops run as they are written."""

from __future__ import annotations

import os
import subprocess
import sys


def test_loops_of_bytes_run_as_they_are_written() -> None:
    code = (
        "import warnings\n"
        "import polars as pl\n"
        "from evenrank.groups import Scoring, load_lexicon, score_texts, _plain_counting\n"
        # Hashes wrap around.
        "warnings.simplefilter('ignore', RuntimeWarning)\n"
        "_plain_counting.Room.left = -1\n"
        "table = pl.DataFrame({'doc_id': ['a'], 'text': ['She said that he is it. ' * 9]})\n"
        "scored = score_texts(table, Scoring(load_lexicon()))\n"
        "print(scored.select('tokens', 'count_f', 'count_m').row(0))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert ended.stdout == "(54, 9, 9)\n", ended.stderr
