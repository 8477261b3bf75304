"""The gate in pipelines: GitHub's action, GitLab's job, the hook of pre-commit; workflows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evenrank import SyntheticConfig, generate, retrieve, write_run

yaml = pytest.importorskip("yaml", reason="comes with mkdocs")
ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RULE = '[[rule]]\nmeasure = "nDCG@10"\n'
BUDGETS = {
    "holds": f'{RULE}against = "baseline"\nat_least = "-50%"\n',
    "violated": f"{RULE}at_least = 0.99\n",
    "not shown": f'{RULE}against = "baseline"\nat_least = 0.0\n',
}
OUTCOMES = pytest.mark.parametrize(
    ("outcome", "strict", "status"),
    [("holds", "false", 0), ("not shown", "true", 1)],
)
GIVEN = {"run": "new=new run.run", "baseline": "old=old.run", "collection": "collection.tsv", "qrels": "qrels.txt"}


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in collection, two runs, a budget for each outcome, and the command on a path of its own."""
    folder = tmp_path_factory.mktemp("pipeline")
    generate(SyntheticConfig(passages=600)).write(folder)
    for name, k1 in (("old", 0.9), ("new run", 0.95)):
        run = retrieve(folder / "collection.tsv", folder / "queries.tsv", k=20, k1=k1)
        write_run(run, folder / f"{name}.run")
    for outcome, budget in BUDGETS.items():
        (folder / f"{outcome}.toml").write_text(budget, encoding="utf-8")
    command = folder / "bin" / "evenrank"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m evenrank "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return folder


def environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("HOME", "PYTHONPATH", "OMP_NUM_THREADS") if name in os.environ}
    source = os.pathsep.join(filter(None, [str(ROOT / "src"), kept.get("PYTHONPATH")]))
    return kept | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.defpath}", "PYTHONPATH": source} | more


def done(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def on_github(folder: Path, home: Path, *, at: Path | None = None, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Runs the action's gate as GitHub does: its inputs are put into the step's environment, and its shell run."""
    action = loaded(ROOT / "action.yml")
    _, step = action["runs"]["steps"]
    given = {name: str(one.get("default", "")) for name, one in action["inputs"].items()}
    assert inputs.keys() <= given.keys()
    given |= inputs
    variables = {}
    for name, value in step["env"].items():
        (of,) = re.findall(r"^\$\{\{ inputs\.(\w+) \}\}$", value)
        variables[name] = given[of]
    files = {name: str(home / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    told = environment(folder, RUNNER_TEMP=str(home), **files, **variables)
    shell = ("bash", "--noprofile", "--norc", "-euo", "pipefail", "-c")
    return done(*shell, step["run"], cwd=at or folder, env=told)


@OUTCOMES
def test_github_action(folder: Path, tmp_path: Path, outcome: str, strict: str, status: int) -> None:
    given = {**GIVEN, "strict": strict, "arguments": "--correction=none\n\n--missing=error\n"}
    ended = on_github(folder, tmp_path, budget=f"{outcome}.toml", **given)
    assert (ended.returncode, ended.stderr) == (status, "")
    assert ended.stdout.startswith(f"{outcome.upper()}  ")
    assert re.search(r"^::(notice|warning|error) title=evenrank gate new", ended.stdout, re.MULTILINE)
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8").startswith(f"**{outcome.upper()}  ")
    assert (tmp_path / "GITHUB_OUTPUT").read_text(encoding="utf-8") == f"status={status}\n"


def test_inputs_are_never_run(folder: Path, tmp_path: Path) -> None:
    hostile = "\"; touch hostile; $(touch hostile) `touch hostile` '"
    names = ("run", "baseline", "budget", "collection", "labels", "scores", "qrels", "strict", "arguments")
    assert on_github(folder, tmp_path, **dict.fromkeys(names, hostile)).returncode == 2
    assert not (folder / "hostile").exists()
    steps = loaded(ROOT / "action.yml")["runs"]["steps"]
    steps += [step for path in WORKFLOWS for job in loaded(path)["jobs"].values() for step in job["steps"]]
    assert not [step for step in steps if "${{" in step.get("run", "")]


@OUTCOMES
def test_gitlab_job(folder: Path, outcome: str, strict: str, status: int) -> None:
    job = loaded(ROOT / "ci" / "gitlab.yml")[".evenrank-gate"]
    given = {**GIVEN, "budget": f"{outcome}.toml", "strict": strict, "arguments": "--correction=none\n--missing=error"}
    variables = job["variables"] | {f"GATE_{name.upper()}": value for name, value in given.items()}
    (script,) = job["script"]
    ended = done("sh", "-euc", script, cwd=folder, env=environment(folder, **variables))
    assert (ended.returncode, ended.stderr) == (status, "")
    assert job["allow_failure"]["exit_codes"] == 3
    assert (folder / job["artifacts"]["paths"][0]).read_text(encoding="utf-8").startswith(f"**{outcome.upper()}  ")
    assert (folder / job["artifacts"]["reports"]["junit"]).read_text(encoding="utf-8").startswith("<?xml")


def test_pre_commit_hook(folder: Path) -> None:
    (hook,) = loaded(ROOT / ".pre-commit-hooks.yaml")
    assert re.search(hook["files"], "ranking/budget-strict.toml")
    (folder / "budget.toml").write_text(f"{RULE}at_most = 1\n", encoding="utf-8")
    wrong = "evenrank: budget.toml: rule 1: at_most: nDCG@10 is better the higher it is: expected at_least\n"
    for other, status, said in (("violated.toml", 0, ""), ("budget.toml", 2, wrong)):
        ended = done(*hook["entry"].split(), "holds.toml", other, cwd=folder, env=environment(folder))
        assert (ended.returncode, ended.stdout, ended.stderr) == (status, "", said)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_name_actions_by_their_commits_and_packages_by_their_hashes(path: Path) -> None:
    jobs = loaded(path)["jobs"]
    uses = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert uses
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one) for one in uses)
    # Only what publishes may ask for an identity, and it runs nothing of its own.
    asking = {name: job for name, job in jobs.items() if "permissions" in job}
    assert list(asking) == (["publish"] if path.stem == "release" else [])
    assert all("run" not in step for job in asking.values() for step in job["steps"])
    assert loaded(path)["permissions"] == {"contents": "read"}
    installed = [line for line in path.read_text(encoding="utf-8").splitlines() if "pip install" in line]
    assert installed
    assert all("--require-hashes" in line or line.endswith("--no-build-isolation .") for line in installed)
