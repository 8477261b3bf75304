"""``evenrank gate`` as a pipeline calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from evenrank import read_run, write_run
from evenrank.decide.budget import as_budget

RULE = '[[rule]]\nmeasure = "RR@10"\n'
RUNS = ("gate", "new", "--baseline", "old", "--collection", "c.tsv", "--qrels", "qrels", "--query-clusters", "none")
"""All queries have the same relevant document, which would be one cluster."""
AUDIT = ("audit", "new", "./old", "--baseline", "./old", *RUNS[4:], "--json", "a.json", "--values")


@pytest.fixture
def folder(given):
    runs = {
        name: "".join(f"{q} Q0 {d} {r} {4 - r} x\n" for q in range(40) for r, d in enumerate(order, start=1))
        for name, order in {"old": "abc", "new": "bac"}.items()
    }
    # In two of the 40 queries the new run is as the old one, so that there is a spread.
    runs["new"] = runs["old"][: runs["old"].index("2 Q0")] + runs["new"][runs["new"].index("2 Q0") :]
    return given({
        **runs,
        "c.tsv": "a\the and his father\nb\tshe and her mother\nc\ta stone bridge\n",
        "qrels": "".join(f"{q} 0 b 1\n" for q in range(40)),
        "holds.toml": f'{RULE}against = "baseline"\nat_least = 0.0\n',
        "violated.toml": f'{RULE}against = "baseline"\nat_least = 0.9\n',
        "unclear.toml": f"{RULE}at_least = 0.97\n",
    })  # fmt: skip


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
    for path in ("first.toml", "again.toml"):
        ended = evenrank(*RUNS, "--init", path)
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
    # The JSON of an audit makes the same; its baseline may be given by its file.
    assert evenrank(*AUDIT).status == 0
    ended = evenrank("gate", "a.json", "--init", "-")
    assert (ended.status, ended.out) == (0, text)


def test_every_output_and_the_json_of_an_audit(folder, evenrank):
    ended = evenrank(*RUNS, "--budget", "holds.toml", "--json", "g.json", "--junit", "g.xml", "--markdown", "g.md",
                     "--github")  # fmt: skip
    assert ended.status == 0
    assert "::notice title=evenrank gate new%3A holds::RR@10 vs old holds: " in ended.out
    assert ElementTree.parse("g.xml").getroot().get("tests") == "1"
    assert "| holds | RR@10 vs old |" in (folder / "g.md").read_text(encoding="utf-8")
    found = json.loads((folder / "g.json").read_text(encoding="utf-8"))
    assert (found["outcome"], found["run"], found["baseline"]) == ("holds", "new", "old")
    assert [file["role"] for file in found["provenance"]["files"]] == ["audit", "budget"]
    # The JSON of an audit says the same.
    assert evenrank(*AUDIT, "--measures", "RR@10").status == 0
    gate = ("gate", "a.json", "--budget", "holds.toml")
    ended = evenrank(*gate, "--json", "-")
    assert (ended.status, json.loads(ended.out)["rules"]) == (0, found["rules"])
    ended = evenrank(*gate, "--markdown", "-", "--github")
    assert (ended.status, ended.out) == (0, (folder / "g.md").read_text(encoding="utf-8"))
    assert "\n::notice" in ended.err
    assert evenrank(*gate, "--run", "old", "--baseline", "new").status == 1
    # It needs no audit.
    heavy = ("evenrank.auditing", "scipy.stats", "numba", "jinja2", "altair", "torch")
    script = (
        f"import sys; sys.argv = {['evenrank', *gate]}\nfrom evenrank.cli import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_json_is_told_by_its_content(folder, evenrank):
    """A run may be JSON, and an audit's JSON may have any name."""
    for name in ("new", "old"):
        write_run(read_run(name), f"{name}.json")
    expected = evenrank(*RUNS, "--budget", "holds.toml").out
    for new in ("new.json", "new=new.json"):
        done = evenrank("gate", new, "--baseline", "old=old.json", *RUNS[4:], "--budget", "holds.toml")
        assert (done.status, done.out.replace("new.json", "new")) == (0, expected), done.err
    assert evenrank(*AUDIT, "--measures", "RR@10", "--json", "audit.txt").status == 0
    assert evenrank("gate", "audit.txt", "--budget", "holds.toml").status == 0


def test_what_nobody_expected_is_no_outcome(evenrank, monkeypatch):
    monkeypatch.setattr("evenrank.gate", lambda *_, **__: 1 / 0, raising=False)
    ended = evenrank("gate", "a.json", "--budget", "holds.toml")
    assert ended.status == 70
    assert "ZeroDivisionError: division by zero" in ended.err
