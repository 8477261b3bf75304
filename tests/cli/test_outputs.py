"""Nothing is written over what is read, nor over another output; a signal leaves nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenrank.files import EvenrankError, InputError, check_outputs
from evenrank.groups import Scoring, load_lexicon, score_collection
from evenrank.mitigation.negatives import write_negatives
from evenrank.mitigation.rotation import rotate_collection

Command = Callable[..., Any]

PARAGRAPH = {
    "doc_id": "d1",
    "context": "She and her",
    "qas": [{"id": "q1", "question": "who", "answers": [{"text": "She", "answer_start": 0}]}],
}


FILES = {
    "r.run": "q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\n",
    "s.run": "q1 Q0 d3 1 3 t\n",
    "qrels": "q1 0 d1 1\n",
    "c.tsv": "d1\tShe and her\nd2\tHe said\nd3\tnothing\n",
    "q.tsv": "q1\twho\n",
    "lexicon": "she,f\nher,f\nhe,m\n",
    "v.txt": "she 1 0\nhe 0 1\n",
    "stop": "of\n",
    "sets.json": '[["she", "he"]]',
    "answers.json": json.dumps({"data": [{"title": "t", "paragraphs": [PARAGRAPH]}]}),
    "o.tsv.manifest.json": "d1\tShe and her\n",
    "n.jsonl.manifest.json": "q1\twho\n",
    "o.tsv.answers.json": "d1\tShe and her\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "c.tsv").write_text(FILES["c.tsv"])
    pytest.importorskip("safetensors")
    from evenrank.search.embeddings import Vectors

    Vectors(("she", "he"), np.eye(2, dtype=np.float32)).save(tmp_path / "v")
    (tmp_path / "link").symlink_to("c.tsv")
    os.link(tmp_path / "c.tsv", tmp_path / "hard")
    monkeypatch.chdir(tmp_path)
    return tmp_path


AUDIT = "audit A=r.run s.run --collection c.tsv --queries q.tsv --qrels qrels --lexicon lexicon --background s.run"


DEBIAS = "embeddings debias v.txt --definitional sets.json --equalize sets.json --specific sets.json"


RERANK = "rerank r.run --model v --collection c.tsv --queries q.tsv"


CASES = [
    ("score c.tsv --out c.tsv", "c.tsv: cannot be written: it is an input"),
    ("score c.tsv --out ./texts/../c.tsv", "./texts/../c.tsv: cannot be written: it is an input (c.tsv)"),
    ("score c.tsv --out link", "link: cannot be written: it is an input (c.tsv)"),
    ("score link --out c.tsv", "c.tsv: cannot be written: it is an input (link)"),
    ("score c.tsv --out hard", "hard: cannot be written: it is an input (c.tsv)"),
    ("score c.tsv --out file://{}/c.tsv", "file://{}/c.tsv: cannot be written: it is an input (c.tsv)"),
    ("score texts --out texts/s.parquet", "texts/s.parquet: cannot be written: it lies in an input (texts)"),
    ("score texts/*.tsv --out texts/c.tsv", "texts/c.tsv: cannot be written: it is an input (texts/*.tsv)"),
    ("score texts --out texts --engine ray", "texts: cannot be written: it is an input"),
    ("score c.tsv --out lexicon --lexicon lexicon", "lexicon: cannot be written: it is an input"),
    (f"{AUDIT} --json r.run", "r.run: cannot be written: it is an input"),
    (f"{AUDIT} --json s.run", "s.run: cannot be written: it is an input"),
    (f"{AUDIT} --report qrels", "qrels: cannot be written: it is an input"),
    (f"{AUDIT} --report q.tsv", "q.tsv: cannot be written: it is an input"),
    (f"{AUDIT} --per-query c.tsv", "c.tsv: cannot be written: it is an input"),
    (f"{AUDIT} --per-query lexicon", "lexicon: cannot be written: it is an input"),
    ("score c.tsv --out nope/../c.tsv", "nope/../c.tsv: cannot be written: it is an input (c.tsv)"),
    ("fuse r.run s.run --weight 0.5 --out nope/../r.run", "nope/../r.run: cannot be written: it is an input (r.run)"),
    (f"{AUDIT} --json x --report ./x", "x: cannot be written: it is another output too (./x)"),
    (f"{AUDIT} --report x --per-query x", "x: cannot be written: it is another output too"),
    ("audit r.run --scores texts --json texts/j", "texts/j: cannot be written: it lies in an input (texts)"),
    ("retrieve c.tsv q.tsv --out c.tsv", "c.tsv: cannot be written: it is an input"),
    ("retrieve c.tsv q.tsv --out q.tsv", "q.tsv: cannot be written: it is an input"),
    (f"{RERANK} --out r.run", "r.run: cannot be written: it is an input"),
    (f"{RERANK} --out c.tsv", "c.tsv: cannot be written: it is an input"),
    (f"{RERANK} --out q.tsv", "q.tsv: cannot be written: it is an input"),
    (f"{RERANK} --out v/run", "v/run: cannot be written: it lies in an input (v)"),
    ("fuse r.run B=s.run --weight 0.5 --out r.run", "r.run: cannot be written: it is an input"),
    ("fuse r.run B=s.run --weight 0.5 --out s.run", "s.run: cannot be written: it is an input"),
    ("fuse r.run s.run --tune nDCG@10 --qrels qrels --out x --json qrels", "qrels: cannot be written: it is an input"),
    ("fuse r.run s.run --weight 0.5 --out x --json w", "--json needs --tune"),
    ("fuse r.run s.run --weight 0.5 --out x --folds 3", "--folds needs --tune"),
    ("retrieve c.tsv q.tsv --out x --fb-docs 5", "--fb-docs needs --rm3"),
    ("fuse r.run s.run --tune nDCG@10 --qrels qrels --out x --json x", "x: cannot be written: it is another output"),
    (
        "negatives r.run --collection c.tsv --qrels qrels --queries n.jsonl.manifest.json --out n.jsonl",
        "n.jsonl.manifest.json: cannot be written: it is an input",
    ),
    ("rotate c.tsv --out c.tsv", "c.tsv: cannot be written: it is an input"),
    ("rotate o.tsv.manifest.json --out o.tsv", "o.tsv.manifest.json: cannot be written: it is an input"),
    ("rotate o.tsv.answers.json --answers answers.json --out o.tsv", "o.tsv.answers.json: cannot be written: it is"),
    ("rotate c.tsv --answers answers.json --out x --answers-out c.tsv", "c.tsv: cannot be written: it is an input"),
    ("rotate c.tsv --answers answers.json --out x --answers-out x", "x: cannot be written: it is another output too"),
    (
        "rotate c.tsv --answers answers.json --out x --answers-out x.manifest.json",
        "x.manifest.json: cannot be written: it is another output too",
    ),
    ("rotate c.tsv --answers answers.json --out answers.json", "answers.json: cannot be written: it is an input"),
    ("passages texts --out texts", "texts/passages.jsonl: cannot be written: it lies in an input (texts)"),
    ("passages c.tsv --answers answers.json --out .", "answers.json: cannot be written: it is an input"),
    ("variants c.tsv --kind swap --out c.tsv", "c.tsv: cannot be written: it is an input"),
    ("variants o.tsv.manifest.json --kind swap --out o.tsv", "o.tsv.manifest.json: cannot be written: it is an input"),
    ("variants texts --kind swap --out texts/v.jsonl", "texts/v.jsonl: cannot be written: it lies in an input (texts)"),
    ("expand q.tsv --vectors v.txt --out q.tsv", "q.tsv: cannot be written: it is an input"),
    ("expand q.tsv --vectors v.txt --out v.txt", "v.txt: cannot be written: it is an input"),
    ("expand q.tsv --vectors v.txt --stopwords stop --out stop", "stop: cannot be written: it is an input"),
    ("expand q.tsv --vectors v --compare v.txt --out x --changes x", "x: cannot be written: it is another output too"),
    ("expand q.tsv --vectors v --compare v.txt --out x --changes v.txt", "v.txt: cannot be written: it is an input"),
    ("embeddings debias v --out v", "v/vectors.safetensors: cannot be written: it lies in an input (v)"),
    ("embeddings debias v.txt --out v.txt", "v.txt: cannot be written: it is an input"),
    ("embeddings debias v.txt --out w --json w/words.json", "w/words.json: cannot be written: it is another output"),
    (f"{DEBIAS} --out x.txt --json sets.json", "sets.json: cannot be written: it is an input"),
    (f"{DEBIAS} --out x.txt --specific-out x.txt", "x.txt: cannot be written: it is another output too"),
    ("embeddings audit v.txt --after v --json v.txt", "v.txt: cannot be written: it is an input"),
    ("embeddings audit v.txt --after v --report v/r", "v/r: cannot be written: it lies in an input (v)"),
    ("embeddings train texts --out texts/v.bin", "texts/v.bin: cannot be written: it lies in an input (texts)"),
    ("position answers answers.json --json answers.json", "answers.json: cannot be written: it is an input"),
    ("position answers answers.json --collection c.tsv --report c.tsv", "c.tsv: cannot be written: it is an input"),
    ("position similarity v --collection c.tsv --json c.tsv", "c.tsv: cannot be written: it is an input"),
    ("position sensitivity v --squad answers.json --json answers.json", "answers.json: cannot be written: it is an"),
    (
        "position sensitivity v --collection c.tsv --queries q.tsv --qrels qrels --answers answers.json --run r.run"
        " --report r.run",
        "r.run: cannot be written: it is an input",
    ),
    ("data squad answers.json --out .", "./answers.json: cannot be written: it is an input (answers.json)"),
    ("demo --model v --out v", "v/report.html: cannot be written: it lies in an input (v)"),
]  # fmt: skip


NEURAL = ("rerank", "position similarity", "position sensitivity", "demo")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("command", "message"), CASES, ids=[case[0] for case in CASES])
def test_nothing_is_written_over_an_input_or_another_output(
    folder: Path, evenrank: Command, command: str, message: str
) -> None:
    if command.startswith(NEURAL):
        pytest.importorskip("torch", reason="needs the extra [neural]")
    before = contents(folder)
    ended = evenrank(*command.replace("{}", str(folder)).split())
    assert (ended.status, ended.out) == (2, ""), ended.err
    assert ended.err.startswith(f"evenrank: {message.replace('{}', str(folder))}")
    assert ended.err.count("\n") == 1
    assert contents(folder) == before


def test_training_writes_over_no_input(folder: Path, evenrank: Command) -> None:
    pytest.importorskip("torch", reason="needs the extra [neural]")
    (folder / "validation.run").write_text(FILES["r.run"])
    data = 'queries = "q.tsv"\nqrels = "qrels"\nrun = "validation.run"\n'
    recipe = f'name = "n"\nout = "."\n[ranker]\nkind = "knrm"\n[data]\ncollection = "c.tsv"\n{data}[validation]\n{data}'
    (folder / "r.toml").write_text(recipe)
    before = contents(folder)
    ended = evenrank("train", "r.toml")
    assert (ended.status, ended.err) == (2, "evenrank: validation.run: cannot be written: it is an input\n")
    assert contents(folder) == before


def test_why_a_checkpoint_was_kept_is_told_once(folder: Path, evenrank: Command, monkeypatch: Any) -> None:
    def train(recipe: object, *, say: Any, **_: object) -> Path:
        say("r: kept the checkpoint of step 1 of 1, the only validation")
        return folder

    told = ["RR: 0.5", "checkpoint: step 1 of 1, the only validation"]
    monkeypatch.setattr("evenrank.train_recipe", train)
    monkeypatch.setattr("evenrank.training_summary", lambda _: told)
    (folder / "r.toml").write_text("")
    assert evenrank("train", "r.toml").err == "r: kept the checkpoint of step 1 of 1, the only validation\nRR: 0.5\n"


def test_python_users_are_told_too(folder: Path) -> None:
    scoring, it = Scoring(load_lexicon("lexicon")), "cannot be written: it is an input"
    with pytest.raises(InputError, match=it):
        score_collection("c.tsv", "link", scoring)
    with pytest.raises(InputError, match=it):
        rotate_collection("c.tsv", out=Path("hard"))
    (folder / "l.jsonl").write_text(FILES["lexicon"])
    with pytest.raises(InputError, match=it):
        write_negatives("r.run", out="l.jsonl", collection="c.tsv", qrels="qrels", lexicon="l.jsonl")
    assert (folder / "c.tsv").read_text() == FILES["c.tsv"]


def test_re_ranking_in_python(folder: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra [neural]")
    from evenrank.files import read_queries, read_run
    from evenrank.models.rerank import rerank

    with pytest.raises(InputError, match=r"c\.tsv: cannot be written: it is an input"):
        rerank(read_run("r.run"), model="v", collection="c.tsv", queries=read_queries("q.tsv"), out="c.tsv")


def test_what_is_no_file_is_no_clash(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    inputs = [None, "irds:x", "gender-en", pl.DataFrame(), "/dev/null", "pipe", "/dev/stdin"]
    check_outputs(["/dev/null", "/dev/null", "pipe", "pipe", "/dev/stdout", "/dev/stdout", "gender-en", None], inputs)
    # A folder beside, of a name that begins as the input's does.
    (folder / "texts2").mkdir()
    check_outputs(["texts2/out", "texts.out"], ["texts"])
    with pytest.raises(EvenrankError, match="cannot be written: No such file or directory"):
        check_outputs(["none/out"])


def test_output_to_a_device_or_a_pipe(folder: Path, evenrank: Command) -> None:
    ended = evenrank("score", "c.tsv", "--out", "/dev/null")
    assert (ended.status, ended.err) == (0, "3 documents scored: /dev/null\n")
    assert not Path("/dev/null").is_file()
    read, write = os.pipe()
    ended = evenrank("fuse", "r.run", "s.run", "--weight", "0.5", "--out", f"/dev/fd/{write}")
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    assert (ended.status, ended.err) == (0, "")
    assert [line.split()[2] for line in text.splitlines()] == ["d1", "d3", "d2"]


def test_an_error_between_outputs_says_which_are_written(folder: Path, evenrank: Command) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    audit = ["audit", "r.run", "--collection", "c.tsv", "--measures", "ARaB@10", "--json", "a.json"]
    done = evenrank(*audit, "--report", "/dev/full")
    reason = "cannot be written: No space left on device"
    assert (done.status, done.err) == (2, f"evenrank: /dev/full: {reason} (already written: a.json)\n")


# --- Signals ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Signals end a program, whatever the tests were started under (nohup, ``&``) or other libraries have set."""
    default = dict.fromkeys((signal.SIGTERM, signal.SIGHUP), signal.SIG_DFL)
    before = {
        number: signal.signal(number, handler)
        for number, handler in {**default, signal.SIGINT: signal.default_int_handler}.items()
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler or signal.SIG_DFL)


@pytest.mark.usefixtures("default_signals")
@pytest.mark.parametrize(
    ("number", "status", "word"),
    [(signal.SIGTERM, 143, "terminated"), (signal.SIGHUP, 129, "hung up"), (signal.SIGINT, 130, "interrupted")],
)
def test_a_signal_leaves_nothing_half_written(
    folder: Path, evenrank: Command, monkeypatch: pytest.MonkeyPatch, number: int, status: int, word: str
) -> None:
    from evenrank.groups import scoring as score

    given = score.score_texts
    before = sorted(os.listdir(folder))

    def stop(*arguments: Any) -> Any:
        assert [name for name in os.listdir(folder) if name.endswith(".part")]
        os.kill(os.getpid(), number)
        return given(*arguments)

    monkeypatch.setattr(score, "score_texts", stop)
    handlers = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
    ended = evenrank("score", "c.tsv", "--out", "s.parquet", "--quiet")
    assert (ended.status, ended.out, ended.err) == (status, "", f"evenrank: {word}\n")
    assert sorted(os.listdir(folder)) == before
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)] == handlers


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
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_a_signal_while_a_command_begins(folder: Path, module: str, number: signal.Signals, line: str) -> None:
    """Before it has any of its own handlers, while it is built, and while it loads what it needs."""
    before = sorted(os.listdir(folder))
    ended = subprocess.run(
        [sys.executable, "-c", STARTING, module, str(int(number))],
        capture_output=True,
        text=True,
        # Whatever the tests were started under (nohup, ``&``).
        preexec_fn=lambda: [signal.signal(one, signal.SIG_DFL) for one in (signal.SIGHUP, signal.SIGINT)] and None,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, "", f"evenrank: {line}\n")
    assert sorted(os.listdir(folder)) == before


@pytest.mark.usefixtures("default_signals")
def test_a_signal_between_outputs_says_which_are_written(
    folder: Path, evenrank: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenrank.auditing.audit_result import AuditResult

    (folder / "old.html").write_text("as it was")
    (folder / "old.json").write_text("as it was")
    monkeypatch.setattr(AuditResult, "report", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    outputs = ["--json", "old.json", "--report", "old.html", "--per-query", "a\x1b.csv"]
    ended = evenrank(*AUDIT.split(), *outputs)
    assert (ended.status, ended.out) == (143, "")
    assert ended.err.splitlines()[-1] == "evenrank: terminated (already written: old.json, a�.csv)"
    assert json.loads((folder / "old.json").read_text())
    assert (folder / "old.html").read_text() == "as it was"


def test_a_signal_that_is_ignored_stays_ignored(folder: Path, evenrank: Command) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert evenrank("score", "c.tsv", "--out", "s.parquet", "--quiet").status == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
