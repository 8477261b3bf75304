"""What is written where, and that a signal leaves nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ENDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@pytest.fixture
def folder(given):
    return given({
        "r.run": "q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\n",
        "s.run": "q1 Q0 d3 1 3 t\n",
        "c.tsv": "d1\tShe and her\nd2\tHe said\nd3\tnothing\n",
        "q.tsv": "q1\twho\n",
    })  # fmt: skip


def test_an_error_between_outputs_says_which_are_written(folder, evenrank):
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    done = evenrank("audit", "r.run", "--collection", "c.tsv", "--json", "a.json", "--report", "/dev/full")
    reason = "cannot be written: No space left on device"
    assert (done.status, done.err) == (2, f"evenrank: /dev/full: {reason} (already written: a.json)\n")


@pytest.fixture
def default_signals():
    """Signals end a program, whatever the tests were started under (nohup, ``&``) or other libraries have set."""
    defaults = (signal.SIG_DFL, signal.SIG_DFL, signal.default_int_handler)
    before = [signal.signal(number, handler) for number, handler in zip(ENDS, defaults, strict=True)]
    yield
    for number, handler in zip(ENDS, before, strict=True):
        signal.signal(number, handler or signal.SIG_DFL)


@pytest.mark.usefixtures("default_signals")
@pytest.mark.parametrize(
    ("number", "status", "word"),
    [(signal.SIGTERM, 143, "terminated"), (signal.SIGHUP, 129, "hung up"), (signal.SIGINT, 130, "interrupted")],
)
def test_a_signal_leaves_nothing_half_written(folder, evenrank, monkeypatch, number, status, word):
    from evenrank.groups import scoring

    given, before = scoring.score_texts, sorted(os.listdir(folder))

    def stop(*arguments):
        assert [name for name in os.listdir(folder) if name.endswith(".part")]
        os.kill(os.getpid(), number)
        return given(*arguments)

    monkeypatch.setattr(scoring, "score_texts", stop)
    handlers = [signal.getsignal(one) for one in ENDS]
    ended = evenrank("score", "c.tsv", "--out", "s.parquet", "--quiet")
    assert (ended.status, ended.out, ended.err) == (status, "", f"evenrank: {word}\n")
    assert sorted(os.listdir(folder)) == before
    assert [signal.getsignal(one) for one in ENDS] == handlers


STARTING = """
import os, sys
module, number = sys.argv[1:]
sys.argv = ["evenrank", "retrieve", "c.tsv", "q.tsv", "--out", "new.run"]
def stop(event, arguments):
    if event == "import" and arguments[0] == module:
        os.kill(os.getpid(), int(number))
sys.addaudithook(stop)
from evenrank.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("module", "number", "line"),
    [
        ("typer", signal.SIGTERM, "terminated"),
        ("evenrank.cli._output", signal.SIGHUP, "hung up"),
        ("polars", signal.SIGINT, "interrupted"),
    ],
)
def test_a_signal_while_a_command_begins(folder, module, number, line):
    """Before it has any of its own handlers, while it is built, and while it loads what it needs."""
    before = sorted(os.listdir(folder))
    ended = subprocess.run(
        [sys.executable, "-c", STARTING, module, str(int(number))],
        capture_output=True,
        text=True,
        # Whatever the tests were started under (nohup, ``&``).
        preexec_fn=lambda: [signal.signal(one, signal.SIG_DFL) for one in ENDS[1:]] and None,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, "", f"evenrank: {line}\n")
    assert sorted(os.listdir(folder)) == before


@pytest.mark.usefixtures("default_signals")
def test_a_signal_between_outputs_says_which_are_written(folder, evenrank, monkeypatch):
    from evenrank.auditing.audit_result import AuditResult

    for name in ("old.html", "old.json"):
        (folder / name).write_text("as it was")
    monkeypatch.setattr(AuditResult, "report", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    outputs = ["--json", "old.json", "--report", "old.html", "--per-query", "a\x1b.csv"]
    ended = evenrank("audit", "r.run", "--collection", "c.tsv", *outputs)
    assert (ended.status, ended.out) == (143, "")
    assert ended.err.splitlines()[-1] == "evenrank: terminated (already written: old.json, a�.csv)"
    assert json.loads((folder / "old.json").read_text())
    assert (folder / "old.html").read_text() == "as it was"


def test_a_signal_that_is_ignored_stays_ignored(folder, evenrank):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert evenrank("score", "c.tsv", "--out", "s.parquet", "--quiet").status == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
