"""What the tests of negatives share."""

from __future__ import annotations

from pathlib import Path

import pytest

from negative_files import LISTS, QRELS, TEXTS, run_text


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the case, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("c.tsv").write_text("".join(f"{doc}\t{text}\n" for doc, text in TEXTS.items()))
    Path("q.tsv").write_text("".join(f"{query}\ttext of {query}\n" for query in LISTS))
    Path("qrels.txt").write_text("".join(f"{line}\n" for line in QRELS))
    Path("r.run").write_text(run_text(LISTS))
    return tmp_path
