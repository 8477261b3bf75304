"""Work that is kept: what is there is not done again, what is not ours is left alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.files import EvenrankError, InputError
from evenrank.files.work import Work, alone

MADE_FROM = {"model": "m", "settings": {"seed": 1}}
DATA = r"part-\d\.txt"
WHERE = pytest.mark.parametrize("where", ["", "file://"])


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def begin(folder: str | Path, parts: int, *, resumable: bool = True) -> list[int]:
    """Does the parts that are missing, is interrupted after ``parts``; returns which those were."""
    made: list[int] = []
    with suppress(KeyboardInterrupt), Work(folder, MADE_FROM, data=DATA, resumable=resumable) as work:
        for number in range(3):
            if len(made) == parts:
                raise KeyboardInterrupt
            if number not in work.done:
                (Path(str(folder).removeprefix("file://")) / f"part-{number}.txt").write_text(f"{number}")
                work.keep(number, {"rows": number}, f"part-{number}.txt")
                made.append(number)
        raise KeyboardInterrupt
    return made


@WHERE
def test_only_what_is_missing_is_done_again(tmp_path: Path, where: str) -> None:
    folder = tmp_path / "out"
    assert begin(f"{where}{folder}", 2) == [0, 1]
    assert names(folder) == ["_done-000000.json", "_done-000001.json", "_unfinished.json", "part-0.txt", "part-1.txt"]
    assert begin(f"{where}{folder}", 3) == [2]
    with Work(f"{where}{folder}", MADE_FROM, data=DATA) as work:
        assert work.done == {number: {"rows": number} for number in range(3)}
        Path(folder / "rest.part").write_text("")
        work.finish()
    assert names(folder) == ["part-0.txt", "part-1.txt", "part-2.txt"]
    with pytest.raises(EvenrankError, match=r"out: expected a new or an empty folder, but it contains files$"):
        begin(f"{where}{folder}", 1)


NO_MARKS = (None, b"", b'{"file": null', b"[4]", b"[" * 9999, b"\xff", b'{"report": 1}')


@WHERE
@pytest.mark.parametrize(
    ("name", "content"),
    [*(("_done-000001.json", mark) for mark in NO_MARKS), ("part-1.txt", None), ("part-1.txt", b"of another size")],
)
def test_a_part_that_is_not_whole_is_done_again(tmp_path: Path, name: str, content: bytes | None, where: str) -> None:
    folder = tmp_path / "out"
    begin(folder, 3)
    damaged = folder / name
    damaged.unlink() if content is None else damaged.write_bytes(content)
    assert begin(f"{where}{folder}", 3) == [1]


@settings(deadline=None, max_examples=30)
@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 2) | st.none() | st.text(max_size=2)),
    st.sets(st.sampled_from("abc")),
)
def test_what_differs_is_named(place: Path, made_from: dict[str, object], differing: set[str]) -> None:
    other = {**made_from, **{name: [made_from.get(name)] for name in differing}}
    folder = place / f"{len(names(place))}"
    with Work(folder, made_from) as work:
        work.keep(0, {})
    if not differing:
        with Work(folder, other) as work:
            assert list(work.done) == [0]
        return
    with pytest.raises(EvenrankError) as caught, Work(folder, other):
        pass
    named = str(caught.value).split("(")[1].split(")")[0]
    assert {*named.split(", ")} == differing
    # What may be replaced is gone.
    with Work(folder, other, replace=True) as work:
        assert (work.done, names(folder)) == ({}, ["_unfinished.json"])


def test_without_a_part_there_is_nothing_to_lose(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    begin(folder, 0)
    assert names(tmp_path) == []
    folder.mkdir()
    (folder / "_unfinished.json").write_text("[" * 9999)
    (folder / "part-0.txt").write_text("half")
    begin(folder, 0)
    assert names(tmp_path) == ["out"]
    assert names(folder) == []
    # Work that no later call can continue keeps no part.
    begin(folder, 3, resumable=False)
    assert names(folder) == []


@pytest.mark.parametrize("name", ["part-0.txt", "_done-000000.json", "_unfinished.json", "notes.txt"])
def test_links_and_other_files_are_left_alone(tmp_path: Path, name: str) -> None:
    folder, mine = tmp_path / "out", tmp_path / "mine"
    begin(folder, 1)
    if name == "notes.txt":
        (folder / name).write_text("mine")
    else:
        (folder / name).replace(mine)
        (folder / name).symlink_to(mine)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    what = "another file" if name == "notes.txt" else "a link"
    with pytest.raises(EvenrankError, match=rf"out: contains {what}: '{name}'$"):
        begin(folder, 1)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    mine.write_text("")
    with pytest.raises(InputError, match=r"mine: expected a folder, found a file$"):
        begin(mine, 1)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with Work(folder, MADE_FROM) as work:
        work.keep(0, {})
        with pytest.raises(EvenrankError, match=r"out: another process works in this folder$"), Work(folder, MADE_FROM):
            pass
        # What another works with is not removed.
        Work(folder, MADE_FROM).remove()
        assert names(folder) == ["_done-000000.json", "_unfinished.json"]
    work.remove()
    assert names(tmp_path) == []
    with alone(folder):
        assert names(tmp_path) == ["out"]
    assert names(tmp_path) == []


def _killed(folder: Path) -> None:
    with Work(folder, MADE_FROM, data=DATA) as work:
        (folder / "part-0.txt").write_text("0")
        work.keep(0, {}, "part-0.txt")
        (folder / "part-1.txt").write_text("half")
        (folder / ".part-1.txt.abc.part").write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_what_a_killed_process_left_is_continued(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    process = multiprocessing.get_context("spawn").Process(target=_killed, args=(folder,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert begin(folder, 3) == [1, 2]
    with Work(folder, MADE_FROM, data=DATA) as work:
        work.finish()
    assert names(folder) == ["part-0.txt", "part-1.txt", "part-2.txt"]
