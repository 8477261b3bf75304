"""The comparison of two trees' figures finds what it must, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from freeze.figures import Changes, compare

AUDIT = {
    "evenrank": "0.1.0",
    "notes": ["one note"],
    "runs": {"bm25": {"measures": {"ARaB@10": {"mean": 0.125, "n": 7, "ci95": [0.1, None], "said": "leans male"}}}},
    "rules": [{"name": "b", "limit": 2}, {"name": "a", "limit": 1, "outcome": "holds"}],
}
RUN = "1 Q0 d1 1 2.5 x\n1 Q0 d2 2 2.5 x\n"
CSV = "run,query,ARaB@10,empty\nbm25,q 1,0.5,\nbm25,q 2,0.25,\n"


def write(folder: Path, audit: object = AUDIT, run: str = RUN, table: str = CSV) -> Path:
    folder.mkdir()
    (folder / "audit.json").write_text(json.dumps(audit), encoding="utf-8")
    (folder / "a.run").write_text(run, encoding="utf-8")
    (folder / "values.csv").write_text(table, encoding="utf-8")
    return folder


def changed(old: str, new: str) -> object:
    text = json.dumps(AUDIT)
    assert old in text
    return json.loads(text.replace(old, new))


def test_the_same_but_for_words_rounding_and_what_is_new(tmp_path: Path) -> None:
    other = changed('"leans male"', '"towards men"')
    assert isinstance(other, dict)
    other |= {"evenrank": "0.2.0", "notes": [], "more": 3}
    other["runs"]["bm25"]["measures"]["ARaB@10"]["mean"] += 1e-14
    same, wrong = compare(write(tmp_path / "old"), write(tmp_path / "new", other), Changes())
    assert wrong == []
    # 4 of the measure without its words, 5 of the rules, a document and a score a line, 2 a row of the table; the
    # order of two lists and of the rows, and the number of lines.
    assert same == 4 + 5 + 4 + 4 + 4


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.125", "0.1250000001", "audit.json:runs.bm25.measures.ARaB@10.mean: 0.125 → 0.1250000001"),
        ('"n": 7', '"n": 8', "audit.json:runs.bm25.measures.ARaB@10.n: 7 → 8"),
        ("null", "0.0", "audit.json:runs.bm25.measures.ARaB@10.ci95.1: None → 0.0"),
        ('"holds"', '"broken"', "audit.json:rules.a.outcome: 'holds' → 'broken'"),
        ('"n": 7, ', "", "audit.json:runs.bm25.measures.ARaB@10.n: missing (7)"),
        ('"ARaB@10"', '"RaB@10"', "audit.json:runs.bm25.measures.ARaB@10.mean: missing (0.125)"),
        ('"holds"', '"not shown"', "audit.json:rules.a.outcome: 'holds' → 'not shown'"),
        ('"a", "limit": 1', '"c", "limit": 1', "audit.json:rules.order: ('b', 'a') → ('b', 'c')"),
        (
            "[0.1, null]",
            "[0.1, null, 1]",
            "audit.json:runs.bm25.measures.ARaB@10.ci95.order: ('0', '1') → ('0', '1', '2')",
        ),
    ],
)
def test_a_figure_that_differs_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    _, wrong = compare(write(tmp_path / "old"), write(tmp_path / "new", changed(old, new)), Changes())
    assert wrong[0] == said


def test_order_of_ties_and_rows_of_a_table(tmp_path: Path) -> None:
    first, second = RUN.splitlines()
    old = write(tmp_path / "old")
    new = write(tmp_path / "new", run=f"{second.replace('d2 2', 'd2 1')}\n{first.replace('d1 1', 'd1 2')}\n")
    assert compare(old, new, Changes())[1] == [
        "a.run:0.document: '1:d1:1' → '1:d2:1'",
        "a.run:1.document: '1:d2:2' → '1:d1:2'",
    ]
    exchanged = write(tmp_path / "exchanged", table=CSV.replace("0.5", "x").replace("0.25", "0.5").replace("x", "0.25"))
    assert [line.partition(" ")[0] for line in compare(old, exchanged, Changes())[1]] == ["values.csv:bm25|q"] * 2


def test_order_of_entries_and_more_lines_than_before(tmp_path: Path) -> None:
    turned = json.loads(json.dumps(AUDIT))
    turned["rules"].reverse()
    heading, *rows = CSV.splitlines()
    table = "\n".join([heading, *reversed(rows)]) + "\n"
    new = write(tmp_path / "new", turned, RUN + "1 Q0 d3 3 1.5 x\n", table)
    assert compare(write(tmp_path / "old"), new, Changes())[1] == [
        "a.run:lines: 2 → 3",
        "audit.json:rules.order: ('b', 'a') → ('a', 'b')",
        "values.csv:order: ('bm25|q 1', 'bm25|q 2') → ('bm25|q 2', 'bm25|q 1')",
    ]


def test_changes_that_are_named_are_allowed_and_only_these(tmp_path: Path) -> None:
    file = tmp_path / "changes.toml"
    file.write_text(
        '[renamed]\nci95 = "interval"\n'
        '[[gone]]\nfigures = ["audit.json:*.n"]\nreason = "r"\n'
        '[[others]]\nfigures = ["audit.json:*.mean", "nothing"]\nreason = "r"\n',
        encoding="utf-8",
    )
    new = changed('"ci95"', '"interval"')
    assert isinstance(new, dict)
    figure = new["runs"]["bm25"]["measures"]["ARaB@10"]
    del figure["n"]
    figure["mean"] = 0.5
    _, wrong = compare(write(tmp_path / "old"), write(tmp_path / "new", new), Changes.read(file))
    assert wrong == ["changes.toml: nothing is like 'nothing'"]


def test_a_figure_that_moved_is_compared_where_it_is_now(tmp_path: Path) -> None:
    moved = Changes({"audit.json:runs.bm25.measures": "audit.json:all"})
    new = json.loads(json.dumps(AUDIT))
    new["all"] = new["runs"].pop("bm25")["measures"]
    old = write(tmp_path / "old")
    assert compare(old, write(tmp_path / "new", new), moved)[1] == []
    new["all"]["ARaB@10"]["mean"] = -0.125
    assert compare(old, write(tmp_path / "other", new), moved)[1] == ["audit.json:all.ARaB@10.mean: 0.125 → -0.125"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    old, new = write(tmp_path / "old"), write(tmp_path / "new")
    (new / "a.run").unlink()
    assert compare(old, new, Changes())[1] == ["a.run: missing"]
