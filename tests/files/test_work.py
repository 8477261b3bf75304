"""Files are written whole or not at all, also by several processes; work that is kept is not done again."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.files import EvenrankError, InputError, Run, atomic_path, outputs, write_run, write_text
from evenrank.files.work import Work, alone
from evenrank.groups import Scoring, load_lexicon, score_collection


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("cut off")])
def test_an_error_leaves_nothing_and_the_old_file(tmp_path: Path, error: BaseException | type[BaseException]) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    expected = InputError if isinstance(error, OSError) else error

    def fail() -> None:
        with atomic_path(target) as part:
            part.write_text("half of the ne")
            assert (part.parent, target.read_text()) == (tmp_path, "old")
            raise error

    with pytest.raises(expected):  # type: ignore[arg-type]
        fail()
    assert os.listdir(tmp_path) == ["out.txt"]
    assert target.read_text() == "old"


@pytest.mark.parametrize("mask", [0o077, 0o002])
def test_a_result_has_the_rights_of_any_new_file_or_of_what_it_replaces(tmp_path: Path, mask: int) -> None:
    file, before = tmp_path / "x", os.umask(mask)
    try:
        write_text(file, "new")
        assert file.stat().st_mode & 0o7777 == 0o666 & ~mask
        for mode in (0o640, 0o666):
            file.chmod(mode)
            write_text(file, "newer")
            assert file.stat().st_mode & 0o7777 == mode
    finally:
        assert os.umask(before) == mask


def test_a_link_keeps_pointing_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "real" / "out.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real" / "out.txt").read_text() == "new"


def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_text)
        write_text(pipe, "text")
        assert read.result() == "text"
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def ids(count: int) -> list[str]:
    """Ids that no compression makes small."""
    return [hashlib.sha256(str(number).encode()).hexdigest() for number in range(count)]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("collection") / "c.tsv"
    path.write_text("".join(f"{name}\tshe\n" for name in ids(3000)))
    return path


def write_a_run(source: Path, target: Path) -> None:
    many = ids(2000)
    write_run(Run.from_table(pl.DataFrame({"query_id": ["1"] * 2000, "doc_id": many, "score": [1.0] * 2000})), target)


def write_scores(source: Path, target: Path) -> None:
    score_collection(source, target, Scoring(load_lexicon()))


def write_some_text(source: Path, target: Path) -> None:
    write_text(target, "x" * 100_000)


@pytest.mark.parametrize("write", [write_a_run, write_scores, write_some_text])
def test_a_full_disk(collection: Path, no_room: tuple[Path, str], write: Callable[[Path, Path], None]) -> None:
    folder, reason = no_room
    target = folder / "out"
    target.write_text("old")
    with pytest.raises(InputError) as caught:
        write(collection, target)
    assert str(caught.value) == f"{target}: cannot be written: {reason}"
    assert target.read_text() == "old"
    assert os.listdir(folder) == ["out"]


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


# --- work that is kept ------------------------------------------------------------------------------------------------

MADE_FROM = {"model": "m", "settings": {"seed": 1}}
DATA = r"part-\d\.txt"


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


@pytest.mark.parametrize("where", ["", "file://"])
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


NO_MARKS = (None, b'{"file": null', b"[4]", b"[" * 9999, b"\xff", b'{"report": 1}')


@pytest.mark.parametrize(
    ("name", "content"),
    [*(("_done-000001.json", mark) for mark in NO_MARKS), ("part-1.txt", None), ("part-1.txt", b"of another size")],
)
def test_a_part_that_is_not_whole_is_done_again(tmp_path: Path, name: str, content: bytes | None) -> None:
    folder = tmp_path / "out"
    begin(folder, 3)
    damaged = folder / name
    damaged.unlink() if content is None else damaged.write_bytes(content)
    assert begin(folder, 3) == [1]


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
