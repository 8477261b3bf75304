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
import atexit, sys, threading, time
sys.argv = ["evenrank", *sys.argv[1:]]
{before}
from evenrank.__main__ import run
run()
"""
LATE = "threading.Thread(target=lambda: (time.sleep(0.2), print('late', flush=True))).start()"
WATCHED = "sys.setprofile(lambda *_: None); atexit.register(lambda: print('watched'))"


@pytest.mark.parametrize(
    ("before", "arguments", "status", "said"),
    [
        ("", ["--version"], 0, ""),
        ("", ["audit", "nosuch.run"], 2, ""),
        ("atexit.register(print, 'bye')", ["--version"], 0, "bye\n"),
        (LATE, ["--version"], 0, "late\n"),
        (WATCHED, ["--version"], 0, "watched\n"),
        ("sys.modules['torch'] = sys; atexit.register(print, 'bye')", ["--version"], 0, "bye\n"),
    ],
)
def test_what_is_left_to_do_at_the_end_is_done(before: str, arguments: list[str], status: int, said: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", RUN.format(before=before), *arguments], capture_output=True, text=True
    )
    assert ended.returncode == status
    assert ended.stdout == (f"evenrank {evenrank.__version__}\n" if status == 0 else "") + said
    assert ended.stderr.count("\n") == (status != 0)


def test_nothing_of_a_long_output_is_lost() -> None:
    whole = subprocess.run([sys.executable, "-m", "evenrank", "audit", "--help"], capture_output=True, check=True)
    in_process = subprocess.run(
        [sys.executable, "-c", "from evenrank.cli import main; main()", "audit", "--help"],
        capture_output=True,
        check=True,
    )
    assert whole.stdout == in_process.stdout
    assert len(whole.stdout) > 8_000
