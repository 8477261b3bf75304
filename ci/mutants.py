"""``make mutants-of FOLDER=groups``: which of a folder's tests notice small mistakes in its source.

Seeded mutants of ``src/evenrank/FOLDER`` are each run in a copy of the tree against ``tests/FOLDER``. What killed them,
what survived and the fewest tests that kill the same are printed; ``mutants/FOLDER.json`` keeps it for the next time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from mutant_maker import Maker, Mutant, drawn

ROOT = Path(__file__).parents[1]
PLUGIN = """
import inspect, os, resource, sys
def log(event, what, *more):
    # A test may have set a limit on the size of files.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits[1], limits[1]))
    with open(os.environ["MUTANTS_LOG"], "a") as file:
        print(event, what.split("[")[0], *more, sep="\\t", file=file)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
def pytest_collection_finish(session):
    for item in session.items:
        log("lines", item.nodeid, len(inspect.getsourcelines(item.function)[0]))
def pytest_runtest_logstart(nodeid):
    log("call", nodeid)
def pytest_runtest_logreport(report):
    log("failed" if report.failed else report.when, report.nodeid)
def pytest_collectreport(report):
    log("failed" if report.failed else "collected", report.nodeid)
def pytest_sessionfinish():
    log("imported", getattr(sys.modules.get("evenrank"), "__file__", None) or "nothing")
"""
PYTEST = "-m pytest -n0 -q -p no:cacheprovider -p mutants_log --continue-on-collection-errors --hypothesis-seed=0"
Json = dict[str, Any]


def run(tree: Path, folder: str, limit: float | None = None, *more: str) -> Json:
    """What the folder's tests say of a tree. A test during which the time ends, or Python, is one that kills."""
    log, start = tree.with_suffix(".log"), time.monotonic()
    command = [sys.executable, *PYTEST.split(), "-m", "not slow and not mutants", f"tests/{folder}", *more]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": f"{tree}/src:{tree}:{tree.parent}", "MUTANTS_LOG": str(log), "PYTHONHASHSEED": "0"}
    with log.open("w"), tree.with_suffix(".txt").open("w") as said:
        process = subprocess.Popen(command, cwd=tree, env=environment, stdout=said, stderr=said, process_group=0)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    events = [line.split("\t") for line in log.read_text(encoding="utf-8").splitlines()] or [["", ""]]
    if code == 0 and not (events[-1][0] == "imported" and Path(events[-1][1]).is_relative_to(tree / "src")):
        raise RuntimeError(f"what was tested is not the copy in {tree}: {events[-1]}")
    if (code is None or code < 0) and events[-1][0] in {"setup", "call"}:
        events.append(["failed", events[-1][1]])
    return {
        "state": "timed out" if code is None else "killed" if code else "survived",
        "killed_by": sorted({name for event, name, *_ in events if event == "failed"}),
        "tests": {name: int(lines[0]) for event, name, *lines in events if event == "lines"},
        "seconds": round(time.monotonic() - start, 1),
    }


def copy(source: Path, tree: Path, copy_function: Any) -> None:
    """A tree whose source and tests are its own, and all else linked, but for what hypothesis found."""
    tree.mkdir()
    for entry in source.iterdir():
        if entry.name in {"src", "tests"}:
            shutil.copytree(entry, tree / entry.name, copy_function=copy_function)
        elif entry.name != ".hypothesis":
            (tree / entry.name).symlink_to(entry)


def cover(mutants: list[Json], tests: dict[str, int]) -> list[str]:
    """Few tests (name → lines) that kill every mutant: again and again that which kills most."""
    kills = {
        test: {k for k, mutant in enumerate(mutants) if {test, test.split("::")[0]} & set(mutant["killed_by"])}
        for test in tests
    }
    chosen, left = [], set().union(*kills.values())
    while left:
        chosen.append(max(kills, key=lambda test: (len(kills[test] & left), -tests[test])))
        left -= kills[chosen[-1]]
    return chosen


def digest(folder: str) -> str:
    """The state of what a mutant's fate depends on: source, the folder's tests and what all tests share."""
    shared = [path for path in (ROOT / "tests").glob("*.py") if not path.name.startswith("test_")]
    found = [*(ROOT / "src").rglob("*"), *(ROOT / "tests" / folder).rglob("*"), *shared]
    whole = hashlib.sha256()
    for path in sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts):
        whole.update(str(path.relative_to(ROOT)).encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def table(folder: str, mutants: list[Json], tests: dict[str, int], first: bool) -> str:
    killed = [mutant for mutant in mutants if mutant["state"] != "survived"]
    late = sum(mutant["state"] == "timed out" for mutant in killed)
    lines = [f"{folder}: {len(mutants)} mutants, {len(killed)} killed ({late} of them by time), the others survive:"]
    lines += [f"  line {mutant['line']} of {mutant['name']}" for mutant in mutants if mutant not in killed]
    all_lines = sum(path.read_text(encoding="utf-8").count("\n") for path in (ROOT / "tests" / folder).rglob("*.py"))
    chosen, at_most = cover(killed, tests), "at most " if first else ""
    lines.append(f"killed as well by {at_most}{len(chosen)} of {len(tests)} test functions:")
    lines += [f"  {tests[test]:5,} lines {test}" for test in chosen]
    return "\n".join([*lines, f"  {sum(tests[test] for test in chosen):5,} of {all_lines:,} lines"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--number", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", action="store_true", help="end a mutant's run with the first test that fails")
    parser.add_argument("--jobs", type=int, default=1, choices=(1, 2))
    parser.add_argument("--compare", type=Path, help="an earlier JSON, whose mutants are run: status 1 if more survive")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    source, kept = ROOT / "src" / "evenrank", ROOT / "mutants" / f"{asked.folder}.json"
    if asked.compare and asked.compare.resolve() == kept.resolve():
        parser.error(f"{kept} is written anew: give a copy")
    files = sorted((source / asked.folder).rglob("*.py"))
    texts = {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8") for path in files}
    found = [mutant for file, text in texts.items() for mutant in Maker(text, file).found]
    old: Json = json.loads(asked.compare.read_text(encoding="utf-8"))["mutants"] if asked.compare else {}
    mutants = [mutant for mutant in found if mutant.name in old] if old else drawn(found, asked.number, asked.seed)
    state: Json = {"seed": asked.seed, "digest": digest(asked.folder), "tests": {}, "mutants": {}}
    before = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    if before.get("digest") == state["digest"]:
        state |= {"tests": before["tests"], "mutants": before["mutants"]}
    usable = {name for name, done in state["mutants"].items() if asked.first or not done["first"]}
    left = [mutant for mutant in mutants if mutant.name not in usable]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(asked.jobs) as pool:
        scratch = Path(folder)
        (scratch / "mutants_log.py").write_text(PLUGIN, encoding="utf-8")
        (scratch / "shared").symlink_to(ROOT.parent / "shared")
        if left:
            copy(ROOT, scratch / "tree", shutil.copy2)
            whole = run(scratch / "tree", asked.folder)
            if whole["state"] != "survived":
                sys.exit((scratch / "tree.txt").read_text(encoding="utf-8")[-5000:])
            state |= {"tests": whole["tests"], "seconds": whole["seconds"]}

        def fate(mutant: Mutant) -> Json:
            tree = scratch / str(left.index(mutant))
            copy(scratch / "tree", tree, os.link)
            file = tree / "src" / "evenrank" / mutant.file
            file.unlink()
            file.write_text(mutant.within(texts[mutant.file]), encoding="utf-8")
            # Compiled loops have the loops that they call, and constants, built in.
            for built in (tree / "src").rglob("*.nb[ic]") if "compiled" in texts[mutant.file] else ():
                built.unlink()
            result = run(tree, asked.folder, 5 * whole["seconds"] + 30, *(["-x"] if asked.first else []))
            shutil.rmtree(tree)
            del result["tests"]
            first = asked.first and result["state"] == "killed"
            return {"file": mutant.file, "line": mutant.line, "first": first, **result}

        kept.parent.mkdir(exist_ok=True)
        for mutant, result in zip(left, pool.map(fate, left), strict=True):
            state["mutants"][mutant.name] = result
            kept.write_text(json.dumps(state, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            print(f"{result['seconds']:6.1f} s {result['state']}: {mutant.name}", flush=True)
    results = [{"name": mutant.name, **state["mutants"][mutant.name]} for mutant in mutants]
    print(table(asked.folder, results, state["tests"], any(result["first"] for result in results)))
    for name in sorted(old.keys() - {mutant.name for mutant in found}):
        print(f"no longer in the source: {name}")
    risen = [result["name"] for result in results if result["state"] == "survived" and result["name"] in old]
    risen = [name for name in risen if old[name]["state"] != "survived"]
    for name in risen:
        print(f"killed before, survives now: {name}")
    sys.exit(bool(risen))


if __name__ == "__main__":
    main()
