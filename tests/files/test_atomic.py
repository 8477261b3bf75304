"""Files written whole by several processes: what the killed left goes, what others write stays."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evenrank.files import atomic_path, outputs, write_text

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def left_of(target: Path) -> str:
    """The name of what a process leaves that is killed while it writes a file."""
    with pytest.raises(KeyboardInterrupt), atomic_path(target) as part:
        raise KeyboardInterrupt
    assert not part.exists()
    return part.name


def test_what_a_killed_process_left_goes_and_what_another_writes_stays(tmp_path: Path) -> None:
    target = tmp_path / "out"
    orphan = tmp_path / left_of(target)
    others = [".out.part", ".out.0123abcd-abcd1234.part", left_of(tmp_path / "out.x"), "out.part"]
    for name in (orphan.name, *others):
        (tmp_path / name).write_text("half")
    with atomic_path(target) as part:
        assert not orphan.exists()
        part.write_text("first")
        write_text(target, "second")
        assert part.read_text() == "first"
    assert target.read_text() == "first"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["out", *others])


def test_a_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    target = tmp_path / ("é" * 127)
    write_text(target, "all")
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError("No locks available")

    monkeypatch.setattr(outputs.fcntl, "flock", none)
    orphan = tmp_path / left_of(tmp_path / "out")
    orphan.write_text("whose?")
    write_text(tmp_path / "out", "all")
    assert (tmp_path / "out").read_text() == "all"
    assert orphan.exists()


def test_many_writers_of_one_file(tmp_path: Path) -> None:
    """Each tidies up behind the others while they write: none loses its file, and the result is one of theirs."""
    target = tmp_path / "out"
    together = threading.Barrier(6)

    def write(number: int) -> None:
        together.wait()
        for turn in range(30):
            with atomic_path(target) as part, part.open("w") as stream:
                for _ in range(20):
                    stream.write(f"{number} {turn}\n")
                    stream.flush()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    lines = target.read_text().splitlines()
    assert len(lines) == 20
    assert len(set(lines)) == 1
    assert lines[0].endswith(" 29")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
