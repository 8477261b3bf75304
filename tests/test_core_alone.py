"""The core alone, without any extra: the same figures, and one line for what an extra would bring."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
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
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in collection, a run of BM25 and another one."""
    folder = tmp_path_factory.mktemp("given")
    config = evenrank.SyntheticConfig(passages=800, queries=60, male_share=0.6, relevance_male_share=0.8)
    evenrank.generate(config).write(folder)
    for name, b in (("bm25", 0.4), ("second", 1.0)):
        run = evenrank.retrieve(folder / "collection.tsv", folder / "queries.tsv", k=40, b=b, quiet=True)
        evenrank.write_run(run, folder / f"{name}.run")
    return folder


def done(given: Path, folder: Path, *how: str, python: str = sys.executable) -> tuple[Path, str]:
    """A folder in which the commands were run, and what the program said last."""
    shutil.copytree(given, folder)
    # A home that cannot be made, as that of a service.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0", "HOME": "/dev/null/home"}
    if python != sys.executable:
        environment = {key: value for key, value in environment.items() if key != "PYTHONPATH"}
    ended = subprocess.run(
        [python, "-W", "error", str(PROGRAM), str(folder), *how],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return folder, ended.stdout.strip().rsplit("\n", 1)[-1]


@pytest.fixture(scope="module")
def whole(given: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands write with every extra and compiled loops."""
    return done(given, tmp_path_factory.mktemp("whole") / "out", "compiled")[0]


def same(ours: Any, theirs: Any, place: str = "") -> None:
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


def check_same(ours: Path, theirs: Path) -> None:
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


def test_the_core_finds_the_same_without_extras(given: Path, whole: Path, tmp_path: Path) -> None:
    ours, said = done(given, tmp_path / "out", "hidden")
    # The gate's budget is what these queries can check; 1: the second run does not keep to it.
    assert said.startswith("ended 0 0 0 0 ")
    assert said.endswith(" loaded")
    check_same(ours, whole)


PROBE = """
import importlib, pkgutil, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from core_commands import hide_extras
hide_extras()
import evenrank
missing = set()
for module in pkgutil.walk_packages(evenrank.__path__, "evenrank."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:
            missing.add(module.name)
        except evenrank.EvenrankError as error:
            missing.add(module.name)
print(*sorted(name.removeprefix("evenrank.") for name in missing))
"""


def test_no_module_of_the_core_imports_an_extra() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROBE, str(PROGRAM.parent)], capture_output=True, text=True, check=True, timeout=120
    )
    outside = ("models.", "papers.", "training.", "mitigation.ibbr")
    inside = [name for name in ended.stdout.split() if not name.startswith(outside)]
    assert inside == ["decide.pyterrier"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("audit bm25.run --collection collection.tsv --report x.html", "a report needs the extra [report]"),
        ("audit bm25.run --collection irds:vaswani", "reading irds:vaswani needs the extra [datasets]"),
        ("retrieve collection.tsv queries.tsv --out x.run", "a search needs the extra [search]"),
        ("index collection.tsv --out x", "an index needs the extra [search]"),
        ("negatives bm25.run --collection collection.tsv --qrels qrels.txt --out x", "a sample of negatives needs the"),
        ("score s3://bucket/docs.tsv --out x.parquet", "s3://bucket/docs.tsv: reading or writing a URL needs"),
        ("experiment ibbr", "an experiment needs the extra [neural]"),
        ("experiment nonsense", "NAME: expected ibbr, "),
        ("train recipe.toml", "training needs the extra [neural]"),
        ("demo", "the demo needs the extra [search,report]"),
    ],
)  # fmt: skip
def test_a_missing_extra_is_named_before_any_work(given: Path, tmp_path: Path, command: str, said: str) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r})\n"
        "from core_commands import hide_extras\n"
        "hide_extras()\n"
        "from evenrank.cli import main\n"
        "sys.exit(main())"
    )
    for name in ("collection.tsv", "queries.tsv", "qrels.txt", "bm25.run"):
        shutil.copyfile(given / name, tmp_path / name)
    before = sorted(os.listdir(tmp_path))
    ended = subprocess.run(
        [sys.executable, "-c", code, *command.split()], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1), ended.stderr
    assert said in ended.stderr
    assert ': pip install "evenrank[' in ended.stderr or "nonsense" in command
    assert sorted(os.listdir(tmp_path)) == before


def test_group_tables_written_by_pyarrow_and_by_polars_are_one(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra [fast]")
    (tmp_path / "c.tsv").write_text("a\tshe ran\nb\the ran, and he fell\n", encoding="utf-8")
    evenrank.score(tmp_path / "c.tsv", out=tmp_path / "ours.parquet")
    with pq.ParquetFile(tmp_path / "ours.parquet") as file:
        arrow, metadata = file.read(), file.metadata.metadata
    stored = json.loads(metadata[b"evenrank"])
    assert (stored["lexicon"], stored["groups"], stored["threshold"]) == ("gender-en", ["f", "m"], 1)
    arrow = arrow.replace_schema_metadata({"evenrank": metadata[b"evenrank"]})
    pq.write_table(arrow, tmp_path / "theirs.parquet", compression="gzip", use_dictionary=False)
    ours, theirs = (evenrank.read_group_table(tmp_path / f"{name}.parquet") for name in ("ours", "theirs"))
    assert ours.table.equals(theirs.table)
    assert ours.settings == theirs.settings
    assert ours.table["count_m"].to_list() == [0, 2]
    assert pl.from_arrow(arrow).equals(ours.table)  # type: ignore[union-attr]


# --- the distributions ---------------------------------------------------------------------------------------------


ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"


def pip(*arguments: object) -> None:
    """``python -m pip`` in this environment; skips where there is no network, but not in CI."""
    command = [str(argument) for argument in arguments]
    # What else Python finds here is not installed there.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment)
    if ended.returncode and not os.environ.get("CI"):
        pytest.skip(f"pip failed: {ended.stderr.strip()[-200:]}")
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel and the sdist."""
    pytest.importorskip("hatchling", reason="needs the extra [test]")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.mark.slow
def test_what_the_distributions_hold(distributions: Path) -> None:
    import tarfile
    import zipfile

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
        "src", "tests", "docs", "examples", "benchmarks", "freeze", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md",
        "LICENSE", "Makefile", "README.md", "mkdocs.yml", "pyproject.toml", "requirements.lock", "PKG-INFO",
        ".gitignore", "action.yml", "ci", ".ci", ".github", ".pre-commit-hooks.yaml",
    }  # fmt: skip


@pytest.mark.slow
def test_the_core_in_a_clean_environment(given: Path, whole: Path, distributions: Path, tmp_path: Path) -> None:
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


def test_the_version_is_in_one_place() -> None:
    assert f"version: {evenrank.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/evenrank/_version.py"
