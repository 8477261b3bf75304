"""The comparison of two trees' figures reports every figure that moved, and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from freeze.figures import Changes, compare

AUDIT = {
    "evenrank": "0.1.0",
    "runs": {"bm25": {"measures": {"ARaB@10": {"mean": 0.125, "n": 7, "ci95": [0.1, None], "name": "a name"}}}},
    "rules": [{"name": "b", "limit": 2}, {"name": "a", "limit": 1, "outcome": "holds"}],
    "findings": [
        {"key": "leans", "subject": "bm25", "level": "shown", "text": "bm25 leans male."},
        {"key": "leans", "subject": "rm3", "level": "cannot be told", "text": "rm3: too few queries."},
    ],
}
RUN = "1 Q0 d1 1 2.5 x\n1 Q0 d2 2 2.5 x\n"
CSV = "run,query,ARaB@10,empty\nbm25,q 1,0.5,\nbm25,q 2,0.25,\n"
TERMINAL = "bm25 leans male. 1.2 s\n"
FILES = {"audit.json": json.dumps(AUDIT), "a.run": RUN, "values.csv": CSV, "text/terminal.txt": TERMINAL}


def write(folder: Path, **edits: tuple[str, str]) -> Path:
    """Writes the files into ``folder``, with an old text replaced by a new one in those that ``edits`` names."""
    (folder / "text").mkdir(parents=True)
    for name, text in FILES.items():
        old, new = edits.get(Path(name).stem, ("", ""))
        assert old in text
        (folder / name).write_text(text.replace(old, new) if old else text, encoding="utf-8")
    return folder


def test_equal_but_for_words_rounding_and_new_keys(tmp_path: Path) -> None:
    new = write(tmp_path / "new", audit=('"mean": 0.125', '"mean": 0.12500000000000003, "median": 0.1'))
    (new / "text/terminal.txt").write_text("bm25 leans towards men. 1.3 s\n", encoding="utf-8")
    same, wrong = compare(write(tmp_path / "old"), new, Changes())
    assert wrong == []
    # Estimates: mean and n; names and limits of 2 rules; keys and subjects of 2 findings; 2 scores and the number of
    # lines; 2 cells a row of the table. Inference: 2 ends. Verdicts: 1 outcome, 2 levels. Orders: of an interval, the
    # rules, the findings, 2 documents, the rows.
    assert same == {"estimate": 2 + 4 + 4 + 3 + 4, "inference": 2, "verdict": 3, "order": 6}


ARAB = "audit.json:runs.bm25.measures.ARaB@10"
LEANS, TWICE = ("leans|bm25", "leans|rm3"), ("leans|bm25", "leans|bm25#2")
Q1, Q2 = "bm25,q 1,0.5,\n", "bm25,q 2,0.25,\n"


@pytest.mark.parametrize(
    ("file", "old", "new", "line"),
    [
        ("audit", "0.125", "0.1250000001", f"{ARAB}.mean: 0.125 → 0.1250000001"),
        ("audit", "null", "0.0", f"{ARAB}.ci95.1: None → 0.0"),
        ("audit", '"n": 7, ', "", f"{ARAB}.n: missing (7)"),
        ("audit", '"holds"', '"not shown"', "audit.json:rules.a.outcome: 'holds' → 'not shown'"),
        ("audit", '"shown"', '"not shown"', "audit.json:findings.leans|bm25.level: 'shown' → 'not shown'"),
        ("audit", '"subject": "rm3"', '"subject": "bm25"', f"audit.json:findings.order: {LEANS} → {TWICE}"),
        ("a", "d1 1 2.5", "d2 1 2.5", "a.run:0.document: '1:d1:1' → '1:d2:1'"),
        ("a", "d2 2 2.5", "d2 2 2.4", "a.run:1.score: 2.5 → 2.4"),
        ("a", "1 Q0 d2 2 2.5 x\n", "", "a.run:lines: 2 → 1"),
        ("values", "q 1,0.5", "q 1,0.25", "values.csv:bm25|q 1.ARaB@10: 0.5 → 0.25"),
        ("values", Q1 + Q2, Q2 + Q1, "values.csv:order: ('bm25|q 1', 'bm25|q 2') → ('bm25|q 2', 'bm25|q 1')"),
    ],
)
def test_a_figure_that_differs_is_reported(tmp_path: Path, file: str, old: str, new: str, line: str) -> None:
    _, wrong = compare(write(tmp_path / "old"), write(tmp_path / "new", **{file: (old, new)}), Changes())
    assert wrong[0] == line


def test_only_changes_that_are_listed_are_allowed(tmp_path: Path) -> None:
    file = tmp_path / "changes.toml"
    file.write_text(
        '[renamed]\nci95 = "interval"\n[[gone]]\nfigures = ["audit.json:*.n"]\nreason = "r"\n'
        '[[changed]]\nfigures = ["audit.json:*.mean", "nothing"]\nreason = "r"\n'
        '[[changed]]\nfigures = ["audit.json:rules.*"]\npart = "inference"\nreason = "r"\n',
        encoding="utf-8",
    )
    new = write(tmp_path / "new", audit=('"mean": 0.125, "n": 7, "ci95"', '"mean": 0.5, "interval"'))
    path = new / "audit.json"
    path.write_text(path.read_text(encoding="utf-8").replace("holds", "broken"), encoding="utf-8")
    assert compare(write(tmp_path / "old"), new, Changes.read(file))[1] == [
        "audit.json:rules.a.outcome: 'holds' → 'broken'",  # a verdict, where inference alone may differ
        "changes.toml: nothing is like 'nothing'",
        "changes.toml: nothing is like 'audit.json:rules.*'",
    ]
