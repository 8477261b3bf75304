"""``evenrank gate`` as a pipeline calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
COLLECTION = "a\the and his father\nb\tshe and her mother\nc\ta stone bridge\n"
RULE = '[[rule]]\nmeasure = "RR@10"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    orders = {"old": "abc", "new": "bac"}
    files = {
        name: "".join(f"{q} Q0 {d} {r} {4 - r} x\n" for q in range(40) for r, d in enumerate(order, start=1))
        for name, order in orders.items()
    }
    # In two of the 40 queries the new run is as the old one, so that there is a spread.
    files["new"] = files["old"][: files["old"].index("2 Q0")] + files["new"][files["new"].index("2 Q0") :]
    files |= {"c.tsv": COLLECTION, "qrels": "".join(f"{q} 0 b 1\n" for q in range(40))}
    files |= {
        "holds.toml": f'{RULE}against = "baseline"\nat_least = 0.0\n',
        "violated.toml": f'{RULE}against = "baseline"\nat_least = 0.9\n',
    }
    files |= {"unclear.toml": f"{RULE}at_least = 0.97\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUNS = ("gate", "new", "--baseline", "old", "--collection", "c.tsv", "--qrels", "qrels", "--query-clusters", "none")
"""All queries have the same relevant document, which would be one cluster."""


@pytest.mark.parametrize(("budget", "status", "strict"), [("holds", 0, 0), ("violated", 1, 1), ("unclear", 3, 1)])
def test_status_tells_the_outcome(folder, evenrank, budget, status, strict):
    ended = evenrank(*RUNS, "--budget", f"{budget}.toml")
    assert ended.status == status
    answer, table, legend = ended.out.split("\n\n")
    outcome = {0: "holds", 1: "violated", 3: "not shown"}[status]
    assert answer.startswith(f"{outcome.upper()}  ")
    _, line, *below = table.splitlines()
    assert line.startswith(f"{outcome}  RR@10")
    assert not below
    assert ("are too few" in answer) == (status == 3)
    assert legend.startswith("limit: as if one more query lost all it can")
    assert evenrank(*RUNS, "--budget", f"{budget}.toml", "--strict").status == strict
    # The run that is gated is the one that is not the baseline, whichever stands first.
    assert evenrank("gate", "old", "new", *RUNS[2:], "--budget", f"{budget}.toml").status == status


def test_a_first_budget_is_written_and_holds_of_the_baseline(folder, evenrank):
    from evenrank.decide.budget import as_budget

    for option, path in (("--init", "first.toml"), ("--init", "again.toml")):
        ended = evenrank(*RUNS, option, path)
        assert ended.status == 0
        assert ended.out.startswith(f"{path} has 2 rules that 40 queries can check.\n")
        assert "detects from" in ended.out
    text = (folder / "first.toml").read_text(encoding="utf-8")
    assert text.startswith("# A budget that 40 queries can check against old, made by evenrank gate --init.\n")
    assert (folder / "again.toml").read_text(encoding="utf-8") == text
    assert [rule.measure for rule in as_budget(folder / "first.toml").rules] == ["nDCG@10", "NFaiRR@10"]
    assert "# No rule for ARaB@10: how far a document of the collection can lean is not known: score the" in text
    (folder / "copy").write_text((folder / "old").read_text(encoding="utf-8"), encoding="utf-8")
    assert evenrank("gate", "copy", *RUNS[2:], "--budget", "first.toml").status == 0
    # The JSON of an audit makes the same.
    audit = ("audit", "new", "old", *RUNS[2:], "--json", "a.json", "--values")
    assert evenrank(*audit).status == 0
    ended = evenrank("gate", "a.json", "--init", "-")
    assert ended.status == 0
    assert ended.out == text


def test_every_output_and_the_json_of_an_audit(folder, evenrank):
    outputs = ("--json", "g.json", "--junit", "g.xml", "--markdown", "g.md", "--github")
    ended = evenrank(*RUNS, "--budget", "holds.toml", *outputs)
    assert ended.status == 0
    printed = ended.out
    assert "::notice title=evenrank gate new%3A holds::RR@10 vs old holds: " in printed
    assert ElementTree.parse("g.xml").getroot().get("tests") == "1"
    assert "| holds | RR@10 vs old |" in (folder / "g.md").read_text(encoding="utf-8")
    found = json.loads((folder / "g.json").read_text(encoding="utf-8"))
    assert (found["outcome"], found["run"], found["baseline"]) == ("holds", "new", "old")
    assert [file["role"] for file in found["provenance"]["files"]] == ["audit", "budget"]
    # The JSON of an audit says the same.
    audit = ("audit", "new", "old", *RUNS[2:], "--measures", "RR@10", "--json", "a.json", "--values")
    assert evenrank(*audit).status == 0
    ended = evenrank("gate", "a.json", "--budget", "holds.toml", "--json", "-")
    assert ended.status == 0
    again = json.loads(ended.out)
    assert again["rules"] == found["rules"]
    ended = evenrank("gate", "a.json", "--budget", "holds.toml", "--markdown", "-", "--github")
    assert ended.status == 0
    assert ended.out == (folder / "g.md").read_text(encoding="utf-8")
    assert "\n::notice" in ended.err
    assert evenrank("gate", "a.json", "--budget", "holds.toml", "--run", "old", "--baseline", "new").status == 1


def test_json_is_told_by_its_content(folder, evenrank):
    """A run may be JSON, and an audit's JSON may have any name."""
    from evenrank import read_run, write_run

    for name in ("new", "old"):
        write_run(read_run(name), f"{name}.json")
    expected = evenrank(*RUNS, "--budget", "holds.toml").out
    for new in ("new.json", "new=new.json"):
        done = evenrank("gate", new, "--baseline", "old=old.json", *RUNS[4:], "--budget", "holds.toml")
        assert (done.status, done.out.replace("new.json", "new")) == (0, expected), done.err
    audit = ("audit", "new", "old", *RUNS[2:], "--measures", "RR@10", "--json", "audit.txt", "--values")
    assert evenrank(*audit).status == 0
    assert evenrank("gate", "audit.txt", "--budget", "holds.toml").status == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gate", "new", "--budget", "none.toml"), "none.toml: cannot be read: No such file or directory"),
        (("gate", "new", "--budget", "holds.toml"), "holds.toml: rule 1: RR@10 needs --qrels"),
        (("gate", "new", "--qrels", "qrels", "--budget", "holds.toml"), "no run is named as --baseline"),
        (("gate", "new", "--baseline", "new=old", "--budget", "holds.toml"), "--baseline: expected a name of its own"),
        (("gate", "a.json", "--qrels", "qrels", "--budget", "holds.toml"), "--qrels belongs to an audit of runs"),
        (("gate", "a.json", "new", "--budget", "holds.toml"), "a.json: an audit's JSON stands alone"),
        (("gate", "new", "x=a.json", "--budget", "holds.toml"), "x=a.json: an audit's JSON stands alone"),
        (("gate", "holds.toml", "--budget", "holds.toml"), "holds.toml: not a run; a budget is named by --budget"),
        (("gate", "a.json", "--budget", "holds.toml"), "no values of the queries: `evenrank audit …"),
        (("gate", "no.json", "--budget", "holds.toml"), "no.json: cannot be read: No such file"),
        (RUNS, "expected --budget, or --init to make one"),
        ((*RUNS, "--budget", "holds.toml", "--init", "b.toml"), "expected --budget, or --init to make one"),
        ((*RUNS, "--init", "qrels"), "qrels: cannot be written: it is an input"),
        (("gate", "new", "--collection", "c.tsv", "--qrels", "qrels", "--init", "b.toml"), "expected a --baseline: a"),
        ((*RUNS, "--budget", "holds.toml", "--junit", "-"), "expected a file as output, found '-'"),
        ((*RUNS, "--budget", "holds.toml", "--junit", "qrels"), "qrels"),
        ((*RUNS, "--budget", "holds.toml", "--run", "x"), "no run 'x' (the runs are new, old)"),
        ((*RUNS, "--budget", "holds.toml", "--correction", "all"), "--correction: expected holm or none, found 'all'"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_status_2(folder, evenrank, arguments, said):
    (folder / "a.json").write_text(json.dumps({"runs": {"new": {"measures": {}}}}), encoding="utf-8")
    ended = evenrank(*arguments)
    assert ended.status == 2
    assert ended.out == ""
    assert said in ended.err
    assert ended.err.count("\n") == 1


AUDIT_OPTIONS = {
    "--unknown": "skip", "--missing": "skip", "--missing-limit": "0.5", "--seed": "1", "--order": "file",
    "--only-queries": None, "--neutral": "x", "--group-column": "g", "--tokens": "word", "--poles": "m,f",
    "--threshold": "2", "--background-depth": "20", "--background": "new", "--target": "uniform", "--labels": "l.csv",
    "--guess": "gender-en", "--intersect": None, "--judge": "qrels",
    "--lexicon": "gender", "--scores": "s.tsv", "--collection": "c.tsv", "--queries": "q.tsv", "--qrels": "qrels",
    "--query-groups": "g.csv", "--query-clusters": "none",
}  # fmt: skip


def test_options_of_audits_are_all_refused_beside_the_json_of_one(folder, evenrank):
    from evenrank.cli import commands

    own = {"--budget", "--baseline", "--run", "--correction", "--strict", "--json", "--junit", "--markdown", "--github"}
    own |= {"--init", "--full", "--check"}
    # They say what others are.
    own |= {"--beir", "--id-column", "--text-column", "--query-id-column", "--query-text-column", "--run-columns"}
    known = {option for one in commands().commands["gate"].params for option in one.opts if option.startswith("--")}
    assert known - own - {"--help", "--help-all"} == set(AUDIT_OPTIONS)
    for option, value in AUDIT_OPTIONS.items():
        given = [option] if value is None else [option, value]
        ended = evenrank("gate", "a.json", "--budget", "holds.toml", *given)
        assert ended.status == 2
        printed = ended.err
        told = f"evenrank: {option} belongs to an audit of runs; the JSON is of one that was made\n"
        assert printed == told or printed.startswith(f"evenrank: {option} needs --")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.5,", "1e400,", "expected finite numbers as values"),
        ("0.5,", "1e60,", "expected finite numbers as values"),
        ("0.5,", f"1{'0' * 400},", "expected finite numbers as values"),
        ("0.5,", "NaN,", "no valid JSON: expected a number or null, found NaN"),
        ("0.5,", '"0.5",', "expected numbers or null as values"),
        ("0.5,", "true,", "expected numbers or null as values"),
        ('"mean": 0.5', '"parts": 3, "mean": 0.5', "parts of RR@10: expected 1 list of values"),
        ('["0", "1"]', "2", "expected a list of values for its list of queries"),
    ],
)
def test_a_damaged_audit_is_one_line_and_status_2(folder, evenrank, old, new, said):
    text = (
        '{"queries": ["0", "1"], "runs": {"new": {"measures":'
        ' {"RR@10": {"values": [0.5, 0.25], "mean": 0.5}}}}, "measures": {}}'
    )
    assert text.count(old) == 1
    (folder / "b.toml").write_text(f"{RULE}at_least = 0.1", encoding="utf-8")
    (folder / "a.json").write_text(text, encoding="utf-8")
    assert evenrank("gate", "a.json", "--budget", "b.toml").status == 3
    (folder / "a.json").write_text(text.replace(old, new), encoding="utf-8")
    ended = evenrank("gate", "a.json", "--budget", "b.toml")
    assert ended.status == 2
    assert (ended.out, ended.err.count("\n")) == ("", 1)
    assert said in ended.err


def test_what_nobody_expected_is_no_outcome(folder, evenrank, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr("evenrank.gate", fail, raising=False)
    ended = evenrank("gate", "a.json", "--budget", "holds.toml")
    assert ended.status == 70
    assert "ZeroDivisionError: unforeseen" in ended.err


def test_a_reader_that_leaves_makes_no_outcome(folder, evenrank):
    audit = ("audit", "new", "old", *RUNS[2:], "--measures", "RR@10", "--json", "a.json", "--values")
    assert evenrank(*audit).status == 0
    command = [sys.executable, "-m", "evenrank", "gate", "a.json", "--budget", "holds.toml"]
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    assert subprocess.run(command, stdout=writer, env=environment).returncode == 70
    os.close(writer)


def test_the_json_of_an_audit_needs_no_audit(folder, evenrank):
    audit = ("audit", "new", "old", *RUNS[2:], "--measures", "RR@10", "--json", "a.json", "--values")
    assert evenrank(*audit).status == 0
    script = (
        "import sys; sys.argv = ['evenrank', 'gate', 'a.json', '--budget', 'holds.toml']\n"
        "from evenrank.cli import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code\n"
        "heavy = ('evenrank.auditing', 'scipy.stats',"
        " 'numba', 'jinja2', 'altair', 'torch')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
