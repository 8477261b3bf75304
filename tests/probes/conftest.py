"""Questions whose answers stand at known places."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from early_ranker import WORDS
from evenrank.files import Run, write_run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Six questions; passage i has its answer, a sentence of two words, behind i sentences of one word; the earlier it
    stands, the higher its score."""
    paragraphs, run = [], {"query_id": [], "doc_id": [], "score": []}
    for i in range(6):
        words = [*WORDS[:i], "The", "answer.", *WORDS[i:]]
        context = "  ".join(words)
        start = context.index("The")
        answer = {"text": "The  answer", "answer_start": start}
        question = {"id": f"q{i}", "question": f"where is w{i}", "answers": [answer]}
        paragraphs.append({"doc_id": f"d{i}", "context": context, "qas": [question]})
        for j in range(6):
            run["query_id"].append(f"q{i}")
            run["doc_id"].append(f"d{j}")
            run["score"].append(float(9 - i if j == i else 5.5 - j / 10))
    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
    write_run(Run.from_table(pl.DataFrame(run)), tmp_path / "run")
    return tmp_path
