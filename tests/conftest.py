"""What several test files share."""

from __future__ import annotations

import gc
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from evenrank.files import reading
from spread import LONGEST

# How long an example takes is no finding: the cores may be shared.
COMMON: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=25, **COMMON)
settings.register_profile("all", **COMMON)

# The time that results say they were made at, in commands of their own process too: equal input gives equal bytes.
os.environ["SOURCE_DATE_EPOCH"] = "1700000000"

# Importing OpenVINO sends nothing.
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]

# Small matrices are multiplied faster by one thread, and other tests run on the other cores. Before NumPy and PyTorch.
os.environ["OMP_NUM_THREADS"] = "1"

# ir_datasets makes its folder when it is imported, and a service may have a home that cannot be made.
if not os.access(Path.home(), os.W_OK):
    os.environ.setdefault("IR_DATASETS_HOME", tempfile.mkdtemp(prefix="ir-datasets-"))

# What the imports make stays, so looking for garbage among it is in vain; until pytest_collection_finish.
gc.disable()

WORKER = os.environ.get("PYTEST_XDIST_WORKER")
"""This process, of those of pytest-xdist: gw0, gw1, …"""


def pytest_configure(config: pytest.Config) -> None:
    """A quarter of the examples where the slow tests are left out."""
    if WORKER is None and config.getoption("dist", "no") != "no":
        gc.enable()  # this process leaves collecting to the others
    settings.load_profile("quick" if "not slow" in config.getoption("markexpr", "") else "all")


class Backwards(pytest.Dir):
    """A folder whose files are collected from the last to the first."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        return reversed(list(super().collect()))


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Dir | None:
    """Of two processes one begins at the end: it finds compiled what the other has imported by then."""
    return Backwards.from_parent(parent, path=path) if WORKER == "gw1" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In each process the same order, in which the longest files are given out first."""
    if WORKER:
        places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
        items.sort(key=lambda item: (places.get(item.path, len(places)), item.path))


def pytest_collection_finish() -> None:
    """Collecting garbage need not look through what the imports made, again and again: nothing of it ever goes."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _kept() -> None:
    """Nor through what the files before made that is still there: every training collects garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The public data beside the repository; its tests are skipped where it is missing."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the public data is not there ({folder})")
    return folder


@pytest.fixture
def block_bytes(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets how many bytes the readers take at once."""

    defaults = reading.line_blocks.__kwdefaults__

    def set_to(size: int) -> None:
        monkeypatch.setattr(reading.line_blocks, "__kwdefaults__", {**defaults, "block_bytes": size})

    return set_to


@pytest.fixture(params=["disk", "limit"])
def no_room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder whose files cannot grow beyond 64 KiB, and what the system then says.

    ``disk``: a file system of that size (needs the right to mount one); ``limit``: a limit on the size of files.
    """
    folder = tmp_path / "small"
    folder.mkdir()
    if request.param == "limit":
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
        try:
            yield folder, "File too large"
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount a small file system")
    try:
        yield folder, "No space left on device"
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser; its tests are skipped where there is none (not in CI)."""
    # The shell without a window starts several times as fast.
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is missing")
        pytest.skip("chromium is missing")
    from playwright.sync_api import sync_playwright

    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    arguments += ["--disable-component-update", "--disable-sync", "--no-first-run"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield started
        started.close()


@dataclass(frozen=True)
class Ended:
    """How a command ended: its status and what it printed."""

    status: int
    out: str
    err: str


@pytest.fixture
def evenrank(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs the ``evenrank`` command in this process."""
    from evenrank.cli import main

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["evenrank", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return Ended(int(end.value.code or 0), out, err)

    return run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the examples of a property share."""
    return tmp_path_factory.mktemp("files")
