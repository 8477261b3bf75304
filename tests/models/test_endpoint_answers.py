"""Answers that are kept: a second start asks nothing twice and gives the same bytes, whatever ended the first."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank
from endpoint_cases import DOCUMENTS, QUERIES, REQUESTS, RUN, command, endpoint, every_file, ranked
from evenrank import Endpoint
from evenrank.files import InputError
from evenrank.models.endpoints import Answers
from forked import in_forks
from loopback import Server

KILLED = """
import os, signal, sys
from evenrank.models.endpoints import Answers
save, saved = Answers.save, []
def killing(self, answers):
    save(self, answers)
    saved.append(1)
    if len(saved) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
Answers.save = killing
from evenrank.cli import main
main()
"""


def test_another_value_in_the_address_is_another_question(server: Server, tmp_path: Path) -> None:
    """A value after the ``?`` can name the model; it can also be a key, and is in no file."""
    asked = []
    for value in ("modelA-secret", "modelB-secret", "modelA-secret"):
        model = Endpoint(f"{server.url}/?deployment={value}", "openai", timeout=20, answers=tmp_path / "kept")
        ranked(model, tmp_path / "out.run")
        asked.append((len(server.bodies), set(server.paths)))
        server.bodies.clear()
        server.paths.clear()
    path = "/embeddings?deployment="
    assert asked[0][0] == asked[1][0] > 0
    assert [paths for _, paths in asked] == [{f"{path}modelA-secret"}, {f"{path}modelB-secret"}, set()]
    for file, content in every_file(tmp_path):
        assert b"secret" not in content, file
    kept = (tmp_path / "kept").read_bytes()
    assert not [text for text in (b"passage", b"query", server.url.encode()) if text in kept]


# --- the file ---------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c" * 32]), st.binary(max_size=40)), max_size=12), st.booleans()
)
def test_as_a_dict(place: Path, saved: list[tuple[bytes, bytes]], in_file: bool) -> None:
    file = place / "answers.sqlite" if in_file else None
    if file is not None:
        file.unlink(missing_ok=True)
    opened = [Answers(file)]
    wanted = {}
    for key, value in saved:
        opened[-1].save([(key, value)])
        wanted[key] = value
        if file is not None:
            # None of the others is closed: what is there is what a kill would leave.
            opened.append(Answers(file))
    keys = [b"a", b"b", b"c" * 32, b"d"]
    assert opened[-1].load(keys) == [wanted.get(key) for key in keys]
    for answers in opened:
        answers.close()


NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i FROM n"


def database(*statements: str, ours: bool = True) -> Callable[[Path], None]:
    """Makes a database of answers, or an empty one, and changes it."""

    def make(path: Path) -> None:
        if ours:
            Answers(path).close()
        with sqlite3.connect(path) as base:
            for statement in statements:
                base.execute(statement)
        base.close()

    return make


OTHER = "expected answers that this version of evenrank kept"
NONE = "kept answers cannot be used: file is not a database"
FOREIGN = {
    "text": (lambda path: path.write_text("my notes"), NONE),
    "database": (database("CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('mine')", ours=False), OTHER),
    # Which runs for ever.
    "view": (database("DROP TABLE answers", f"CREATE VIEW answers (key, value) AS {NUMBERS}"), OTHER),
    "version": (database("PRAGMA user_version = 9"), OTHER),
    "folder": (lambda path: path.mkdir(), "cannot be written: Is a directory"),
    "head": (lambda path: path.write_bytes(b"SQLite format 3\0" + b"x" * 5000), NONE),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_file_of_another_kind_stays(case: str, server: Server, tmp_path: Path) -> None:
    make, problem = FOREIGN[case]
    kept = tmp_path / "kept"
    make(kept)
    before = kept.read_bytes() if kept.is_file() else None
    with pytest.raises(InputError) as error:
        ranked(endpoint(server, answers=kept), tmp_path / "run")
    assert str(error.value) == f"{kept}: {problem}"
    assert server.bodies == []
    assert (kept.read_bytes() if kept.is_file() else None) == before
    assert not (tmp_path / "run").exists()


def test_a_damaged_file_is_one_line_or_asks_again(server: Server, tmp_path: Path) -> None:
    model = endpoint(server, answers=tmp_path / "kept")
    whole = ranked(model).table
    sound = (tmp_path / "kept").read_bytes()
    same = refused = 0
    cut = [sound[:size] for size in (1, 15, 17, 100, 1000, 4096, len(sound) - 1)]
    places = range(20, len(sound), len(sound) // 60)
    turned = [sound[:place] + bytes([sound[place] ^ 0x41]) + sound[place + 1 :] for place in places]
    for content in (*cut, *turned):
        (tmp_path / "kept").write_bytes(content)
        for ending in ("-wal", "-shm"):
            (tmp_path / f"kept{ending}").unlink(missing_ok=True)
        try:
            found, message = ranked(model).table, ""
        except InputError as error:
            found, message = whole, str(error)
        assert found.equals(whole)
        assert re.fullmatch(rf"({tmp_path / 'kept'}: .*)?", message)
        same, refused = same + (not message), refused + bool(message)
    assert min(same, refused) > 5, (same, refused)


def test_a_damaged_answer_is_no_score(server: Server, tmp_path: Path) -> None:
    model = endpoint(server, answers=tmp_path / "kept")
    ranked(model)
    database("UPDATE answers SET value = zeroblob(length(value))")(tmp_path / "kept")
    with pytest.raises(InputError, match=r"kept: damaged answers: remove the file to ask everything anew$"):
        ranked(model)


def test_a_file_that_cannot_grow(server: Server, no_room: tuple[Path, str]) -> None:
    folder, _ = no_room
    texts = {one: text * 30 for one, text in DOCUMENTS.items()}
    server.behave = lambda _, body: {
        "data": [{"index": i, "embedding": [1.0 + i] * 4000} for i in range(len(body["input"]))]
    }
    given = {"collection": texts, "queries": QUERIES, "batch_size": 3, "quiet": True}
    with pytest.raises(InputError) as error:
        evenrank.rerank(RUN, model=endpoint(server, "openai"), out=folder / "run", **given)
    assert str(error.value).startswith(f"{folder / 'run.answers.sqlite'}: kept answers cannot be used: ")
    assert "\n" not in str(error.value)


def test_answers_replace_no_input(server: Server, tmp_path: Path, evenrank: Any) -> None:
    line = command(tmp_path, server, "--api", "tei", "--out", tmp_path / "out.run")
    ended = evenrank(*line, "--answers", tmp_path / "c.tsv")
    assert (ended.status, ended.err) == (2, f"evenrank: {tmp_path / 'c.tsv'}: cannot be written: it is an input\n")


def test_answers_elsewhere(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^s3://b/kept: expected a file on this machine for answers$"):
        Answers("s3://b/kept")
    ranked(endpoint(server, answers=tmp_path / "kept"), tmp_path / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "run", "run.card.json"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_goes_on_after_a_kill(server: Server, tmp_path: Path, evenrank: Any) -> None:
    out, whole = tmp_path / "out.run", tmp_path / "whole.run"
    line = command(tmp_path, server, "--api", "cohere", "--concurrency", 1, "--out")
    assert in_forks(["evenrank.cli", "evenrank.models.rerank"], [(KILLED, [*line, out])]) == [-signal.SIGKILL]
    assert not out.exists()
    ended = evenrank(*line, out)
    assert ended.status == 0, ended.err
    assert f": {REQUESTS - 4} requests, 4 questions answered before" in ended.err
    # At most the question that was on its way when the process died was asked again.
    again = {body: count for body, count in server.times_asked().items() if count > 1}
    assert len(again) <= 1
    assert evenrank(*line, whole).status == 0
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if "answers" in path.name) == [
        "out.run.answers.sqlite",
        "whole.run.answers.sqlite",
    ]
