"""What a command need not load to begin with: an audit of few queries is mostly its imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import evenrank

# pyarrow is loaded by nothing but Parquet and texts in great number; numba and its kernels by these too.
HEAVY = (
    *("numba", "llvmlite", "pyarrow", "pydantic", "pandas", "torch", "ray", "ir_datasets", "ssl"),
    *("scipy.linalg", "scipy.stats", "scipy.sparse", "charset_normalizer", "numpy.f2py.crackfortran", "unittest"),
    *("altair", "narwhals", "jsonschema"),
    *("evenrank.cli.train", "evenrank.mitigation", "evenrank.rankers", "evenrank.retrieval", "evenrank.decisions"),
)
FOR_REPORTS = ("jinja2", "vl_convert")
AUDIT = """
import sys
from evenrank.cli import main
try:
    main()
finally:
    print(*[name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").write_text("".join(f"{q} Q0 {d} {d} {9 - d} t\n" for q in range(5) for d in range(1, 5)))
    (tmp_path / "second").write_text("".join(f"{q} Q0 {d} {d} {d * q} t\n" for q in range(5) for d in range(1, 5)))
    (tmp_path / "c.tsv").write_text("1\tShe met her.\n2\tHe met his men, he said.\n3\tNobody.\n4\tA girl's book.\n")
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {1 + q % 4} 1\n" for q in range(5)))
    (tmp_path / "labels.csv").write_text("doc_id,group\n1,f\n2,m\n3,m\n4,f\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        ("run --collection c.tsv --qrels qrels", HEAVY + FOR_REPORTS),
        ("a=run b=second --collection c.tsv --qrels qrels --json a.json --values", HEAVY + FOR_REPORTS),
        ("run --labels labels.csv --qrels qrels --seed 3 --measures nDCG@3", HEAVY + FOR_REPORTS),
        ("run second --collection c.tsv --qrels qrels --report r.html", HEAVY),
    ],
)
def test_an_audit_loads_what_it_uses(folder: Path, arguments: str, heavy: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", AUDIT.format(heavy=heavy), "audit", *arguments.split()]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert ended.stderr.splitlines()[-1] == "", ended.stderr
    assert ended.returncode == 0


def test_the_whole_of_scipy_special_can_be_imported_later() -> None:
    code = (
        "import sys\n"
        "from evenrank import _command\n"
        "from evenrank.io.special import special\n"
        "_command.typed.set('evenrank audit')\n"
        "print(special().stdtr(3, 0.0), 'scipy.special' in sys.modules)\n"
        "import scipy.special, scipy.stats\n"
        "print(scipy.special.stdtr is special().stdtr, scipy.special.logsumexp([0.0]), scipy.stats.t(3).cdf(0))"
    )
    ended = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("0.5 False\nTrue 0.0 0.5\n", "")


def test_a_program_imports_scipy_special_as_it_is() -> None:
    code = "import sys\nfrom evenrank.io.special import special\nprint(special() is sys.modules['scipy.special'])"
    ended = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("True\n", "")


# --- the end ---------------------------------------------------------------------------------------------------------

RUN = """
import atexit, os, sys, threading, time, types
end = os._exit
os._exit = lambda status: (os.write(1, b"at once\\n"), end(status))
{before}
from evenrank.__main__ import run
{call}
"""
LATE = "threading.Thread(target=lambda: (time.sleep(0.2), print('late', flush=True))).start()"
PROFILED = "sys.setprofile(lambda *_: None)"
MONITORED = "sys.monitoring = types.SimpleNamespace(get_tool=lambda number: 'cProfile' if number == 2 else None)"
CAUGHT = "try:\n    run()\nfinally:\n    print('after')"
CALLED = "def work():\n    run()\nwork()"


@pytest.mark.parametrize(
    ("name", "before", "call", "arguments", "said"),
    [
        ("evenrank", "", "run()", ["--version"], "at once\n"),
        ("evenrank", "", "run()", ["audit", "nosuch.run"], "at once\n"),
        ("evenrank", "atexit.register(print, 'bye')", "run()", ["--version"], "bye\nat once\n"),
        ("evenrank", LATE, "run()", ["--version"], "late\n"),
        ("evenrank", PROFILED, "run()", ["--version"], ""),
        ("evenrank", MONITORED, "run()", ["--version"], ""),
        ("evenrank", "sys.modules['torch'] = sys", "run()", ["--version"], ""),
        ("evenrank", "", CALLED, ["--version"], ""),
        ("harness.py", "", CAUGHT, ["--version"], "after\n"),
    ],
)
def test_only_the_command_ends_at_once(
    tmp_path: Path, name: str, before: str, call: str, arguments: list[str], said: str
) -> None:
    (tmp_path / name).write_text(RUN.format(before=before, call=call))
    ended = subprocess.run([sys.executable, str(tmp_path / name), *arguments], capture_output=True, text=True)
    failed = arguments != ["--version"]
    assert ended.returncode == (2 if failed else 0)
    assert ended.stdout == ("" if failed else f"evenrank {evenrank.__version__}\n") + said
    assert ended.stderr.count("\n") == failed


def test_a_program_that_runs_the_module_goes_on() -> None:
    program = (
        "import runpy, sys\nsys.argv = ['evenrank', '--version']\n"
        "try:\n    runpy.run_module('evenrank', run_name='__main__')\nfinally:\n    print('after')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, f"evenrank {evenrank.__version__}\nafter\n")


def test_nothing_of_a_long_output_is_lost() -> None:
    whole = subprocess.run([sys.executable, "-m", "evenrank", "audit", "--help"], capture_output=True, check=True)
    in_process = subprocess.run(
        [sys.executable, "-c", "from evenrank.cli import main; main()", "audit", "--help"],
        capture_output=True,
        check=True,
    )
    assert whole.stdout == in_process.stdout
    assert len(whole.stdout) > 8_000
