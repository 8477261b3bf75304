"""The core alone, without any extra: the same figures, and one line for what an extra would bring."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import evenrank
from core_commands import COMMANDS, EXTRAS

pytest.importorskip("numba", reason="needs the extra [search]")
pytest.importorskip("Stemmer", reason="needs the extra [search]")

PROGRAM = Path(__file__).with_name("core_commands.py")
FILES = sorted(
    Path(command[place + 1]).name
    for command in COMMANDS
    for place, word in enumerate(command)
    if word in ("--json", "--out", "--per-query", "--init")
)


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """The built-in collection, a run of BM25 and another one."""
    folder = tmp_path_factory.mktemp("given")
    config = evenrank.SyntheticConfig(passages=400, queries=50, male_share=0.6, relevance_male_share=0.8)
    evenrank.generate(config).write(folder)
    for name, b in (("bm25", 0.4), ("second", 1.0)):
        run = evenrank.retrieve(folder / "collection.tsv", folder / "queries.tsv", k=40, b=b, quiet=True)
        evenrank.write_run(run, folder / f"{name}.run")
    return folder


def ended(*command, **options):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=300, **options)


def done(given, folder, *how, python=sys.executable):
    """A folder in which the commands were run, and what the program said last."""
    shutil.copytree(given, folder)
    # A home that cannot be made, as that of a service; what else Python finds here is not installed elsewhere.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0", "HOME": "/dev/null/home"}
    if python != sys.executable:
        environment.pop("PYTHONPATH", None)
    did = ended(python, "-W", "error", PROGRAM, folder, *how, env=environment)
    assert did.returncode == 0, did.stderr
    return folder, did.stdout.strip().rsplit("\n", 1)[-1]


@pytest.fixture(scope="module")
def whole(given, tmp_path_factory):
    """What the commands write with every extra and compiled loops."""
    return done(given, tmp_path_factory.mktemp("whole") / "out", "compiled")[0]


def same(ours, theirs, place=""):
    """Asserts that two JSON values are the same, figures to 1e-12; without what says how they were made."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), place
        for key in ours.keys() - {"provenance", "versions"}:
            same(ours[key], theirs[key], f"{place}/{key}")
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), place
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, f"{place}/{number}")
    elif isinstance(ours, float) and isinstance(theirs, float):
        assert math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-12), (place, ours, theirs)
    else:
        assert ours == theirs, place


def check_same(ours, theirs):
    """Asserts that what was written to two folders is the same."""
    assert len(FILES) == 18
    for name in FILES:
        if name.endswith(".json"):
            same(*(json.loads((folder / name).read_text(encoding="utf-8")) for folder in (ours, theirs)), place=name)
        elif name.endswith(".parquet"):
            one, other = (evenrank.read_group_table(folder / name) for folder in (ours, theirs))
            assert one.table.equals(other.table)
            assert one.settings == other.settings
        else:
            assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name


@pytest.mark.slow
def test_the_core_finds_the_same_without_extras(given, whole, tmp_path):
    ours, said = done(given, tmp_path / "out", "hidden")
    # The gate's budget is what these queries can check; 1: the second run does not keep to it.
    assert said.startswith("ended 0 0 0 0 ")
    assert said.endswith(" loaded")
    check_same(ours, whole)


HERE = f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r}); from core_commands import EXTRAS, hide_extras\n"
# No extra can be found, as where it is not installed.
WITHOUT = f"{HERE}hide_extras()\n"
MAIN = "from evenrank.cli import main\nsys.exit(main())"


def printed(program, *arguments):
    """What a program prints, in a process of its own where a warning is an error."""
    did = ended(sys.executable, "-W", "error", "-c", program, *arguments)
    assert (did.returncode, did.stderr) == (0, "")
    return did.stdout


def test_the_extras_are_hidden():
    # Else the tests below would show nothing.
    program = "import evenrank\ntry:\n    {}\nexcept (ImportError, evenrank.EvenrankError) as error:\n    print(error)"
    assert printed(WITHOUT + program.format("import torch")) == "No module named 'torch'\n"
    said = 'evenrank.train needs the extra [neural]: pip install "evenrank[neural]"\n'
    assert printed(WITHOUT + program.format("evenrank.train")) == said
    assert "Measures bias in search rankings" in printed(WITHOUT + MAIN, "--help")


MISSING = """
import importlib, pkgutil
import evenrank
missing = set()
for module in pkgutil.walk_packages(evenrank.__path__, "evenrank."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except (ImportError, evenrank.EvenrankError):
            missing.add(module.name)
print(*sorted(name.removeprefix("evenrank.") for name in missing))
"""
NAMES = """
import evenrank
print(sorted({"polars", "numpy", "torch"} & set(sys.modules)))
of_training = {"IBBR", "train", "train_recipe", "training_lists", "training_summary"}
for name in set(evenrank.__all__) - of_training - {"FunctionTerm", "TrainingResult", "Validation"}:
    getattr(evenrank, name)
try:
    evenrank.no_such_name
except AttributeError as error:
    print(error)
print("torch" in sys.modules)
"""
HELP = """
import evenrank, evenrank.cli
from click.testing import CliRunner
from typer.main import get_command

command = get_command(evenrank.cli.app)
for name in command.commands:
    result = CliRunner().invoke(command, [name, "--help"])
    assert result.exit_code == 0 and "Usage:" in result.output, result.output
print(sorted(EXTRAS.union({"polars", "numpy", "scipy", "ir_measures"}) & set(sys.modules)), *command.commands)
"""


def test_no_module_of_the_core_imports_an_extra():
    outside = ("models.", "papers.", "training.", "mitigation.ibbr", "testing.rankers", "testing.terms")
    assert [name for name in printed(WITHOUT + MISSING).split() if not name.startswith(outside)] == ["decide.pyterrier"]
    assert printed(HERE + NAMES) == "[]\nmodule 'evenrank' has no attribute 'no_such_name'\nFalse\n"
    loaded, *names = printed(HERE + HELP).split()
    assert loaded == "[]"
    assert {"score", "audit", "retrieve", "rerank", "data"} <= set(names)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("audit bm25.run --collection collection.tsv --report x.html", "a report needs the extra [report]"),
        ("audit bm25.run --collection irds:vaswani", "reading irds:vaswani needs the extra [datasets]"),
        ("retrieve collection.tsv queries.tsv --out x.run", "a search needs the extra [search]"),
        ("score s3://bucket/docs.tsv --out x.parquet", "s3://bucket/docs.tsv: reading or writing a URL needs"),
        ("experiment ibbr", "an experiment needs the extra [neural]"),
        ("rerank bm25.run --model m --collection collection.tsv --queries queries.tsv --out x", "the extra [neural]"),
    ],
)  # fmt: skip
def test_a_missing_extra_is_named_before_any_work(given, tmp_path, command, said):
    for name in ("collection.tsv", "queries.tsv", "qrels.txt", "bm25.run"):
        shutil.copyfile(given / name, tmp_path / name)
    (tmp_path / "m").mkdir()
    before = sorted(os.listdir(tmp_path))
    did = ended(sys.executable, "-W", "error", "-c", WITHOUT + MAIN, *command.split(), cwd=tmp_path)
    assert (did.returncode, did.stdout, did.stderr.count("\n")) == (2, "", 1), did.stderr
    assert said in did.stderr
    assert ': pip install "evenrank[' in did.stderr
    assert sorted(os.listdir(tmp_path)) == before


ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"


def pip(*command):
    """``python -m pip`` in this environment; skips where there is no network, but not in CI."""
    did = ended(*command, env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"})
    if did.returncode and not os.environ.get("CI"):
        pytest.skip(f"pip failed: {did.stderr.strip()[-200:]}")
    assert did.returncode == 0, did.stderr


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The wheel and the sdist."""
    pytest.importorskip("hatchling", reason="needs the extra [test]")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.mark.slow
def test_what_the_distributions_hold(distributions):
    name = f"evenrank-{evenrank.__version__}"
    with zipfile.ZipFile(distributions / f"{name}-py3-none-any.whl") as wheel:
        inside = set(wheel.namelist())
        metadata = wheel.read(f"{name}.dist-info/METADATA").decode()
    source = ROOT / "src"
    here = {
        path.relative_to(source).as_posix()
        for path in (source / "evenrank").rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc")
    }
    about = {f"{name}.dist-info/{file}" for file in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    assert inside == here | about | {f"{name}.dist-info/licenses/LICENSE"}
    assert "evenrank/py.typed" in inside
    assert "evenrank/results/assets/page.html.j2" in inside
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: ") and "extra ==" not in line]
    core = {line.split(": ")[1].split(">")[0] for line in needed}
    assert core == {"polars", "numpy", "scipy", "ir-measures", "jinja2", "typer", "rich", "backports-zstd"}
    with tarfile.open(distributions / f"{name}.tar.gz") as sdist:
        tops = {member.name.split("/")[1] for member in sdist.getmembers() if "/" in member.name}
    assert tops == {
        "src", "tests", "docs", "examples", "benchmarks", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md",
        "LICENSE", "Makefile", "README.md", "mkdocs.yml", "pyproject.toml", "requirements.lock", "PKG-INFO",
        ".gitignore", "action.yml", "ci", ".ci", ".github", ".pre-commit-hooks.yaml",
    }  # fmt: skip


@pytest.mark.slow
def test_the_core_in_a_clean_environment(given, whole, distributions, tmp_path):
    pip(sys.executable, "-m", "venv", "--without-pip", tmp_path / "clean")
    python = tmp_path / "clean" / "bin" / "python"
    (wheel,) = distributions.glob("*.whl")
    into = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    # Without hashes: the wheel has none.
    (tmp_path / "pins").write_text("\n".join(re.findall(r"^\S+==\S+", LOCK.read_text(encoding="utf-8"), re.M)))
    pip(*into, "--constraint", tmp_path / "pins", wheel)
    (site,) = (tmp_path / "clean" / "lib").glob("python*/site-packages")
    megabytes = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
    packages = sorted(path.name.partition("-")[0].lower() for path in site.glob("*.dist-info"))
    assert len(packages) <= 25, packages
    assert megabytes <= 480
    assert not {name.lower() for name in EXTRAS} & set(packages)
    ours, said = done(given, tmp_path / "out", python=str(python))
    assert said.endswith(" loaded")
    check_same(ours, whole)


def test_the_version_is_in_one_place():
    assert f"version: {evenrank.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/evenrank/_version.py"
