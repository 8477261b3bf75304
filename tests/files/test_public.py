"""Public data: fetched from a local server, checked, and never half-written."""

from __future__ import annotations

import hashlib
import http.server
import itertools
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evenrank.files import EvenrankError
from evenrank.files import public as public_data
from evenrank.files.public import PublicData, PublicFile, fetch

EXPECTED = "expected one of words, gone, away, moved, other"
FILES = {"lists/words one&2.txt": b"she,f\nhe,m\n", "lists/more.txt": b"queen,f\n"}


def described(name: str, path: str, content: bytes) -> PublicFile:
    return PublicFile(
        name, "owner/repository", "c0ffee", path, len(content), hashlib.sha256(content).hexdigest(), "MIT"
    )


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two made-up data sets in place of the packaged ones, and no proxy."""
    both = tuple(described("words", path, content) for path, content in FILES.items())
    sets = {
        "words": PublicData("words", both),
        "gone": PublicData("gone", (described("gone", "lists/none.txt", b"x"),)),
        "away": PublicData("away", (described("away", "redirect/away.txt", b"x"),)),
        "moved": PublicData("moved", (described("moved", "moved/more.txt", b"queen,f\n"),)),
        "other": PublicData("other", (described("other", "another/more.txt", b"king,m\n"),)),
    }
    # The command takes it from the package, which keeps what it is asked for: first, so that the real one is put back.
    monkeypatch.setattr("evenrank.public_data", lambda: sets)
    monkeypatch.setattr(public_data, "public_data", lambda: sets)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("EVENRANK_DATA_URL", raising=False)


class Served:
    """What the server answers: ``content`` by path; ``asked`` lists the paths that were asked for."""

    def __init__(self) -> None:
        self.content = {
            f"/owner/repository/c0ffee/{path.replace(' ', '%20').replace('&', '%26')}": content
            for path, content in FILES.items()
        }
        self.asked: list[str] = []
        self.url = ""
        self.cut = False


@pytest.fixture
def server() -> Iterator[Served]:
    served = Served()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            if "/redirect/" in self.path or "/moved/" in self.path:
                away = "ftp://127.0.0.1/words.txt"
                self.send_response(302)
                self.send_header(
                    "Location", self.path.replace("/moved/", "/lists/") if "/moved/" in self.path else away
                )
                self.end_headers()
                return
            content = served.content.get(self.path)
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:-1] if served.cut else content)

        def log_message(self, *arguments: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        served.url = f"http://127.0.0.1:{listening.server_address[1]}"
        threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield served
        listening.shutdown()


def refused(name: str, to: Path, **settings: Any) -> str:
    with pytest.raises(EvenrankError) as caught:
        fetch(name, out=to, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("known")
def test_fetches_all_files_once(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "new" / "folder"
    paths = fetch("words", out=folder, base_url=server.url + "/")
    assert paths == [folder / "words one&2.txt", folder / "more.txt"]
    assert [path.read_bytes() for path in paths] == list(FILES.values())
    assert server.asked == list(server.content)
    # What is there and right is not fetched again; only the file that is missing is.
    paths[1].unlink()
    monkeypatch.setenv("EVENRANK_DATA_URL", server.url)
    assert fetch("words", out=folder) == paths
    assert server.asked[2:] == [list(server.content)[1]]
    assert names(folder) == ["more.txt", "words one&2.txt"]
    assert fetch("moved", out=tmp_path)[0].read_bytes() == b"queen,f\n"


@pytest.mark.usefixtures("known")
def test_a_tampered_file_is_not_kept(server: Served, tmp_path: Path) -> None:
    path = list(server.content)[1]
    right = hashlib.sha256(FILES["lists/more.txt"]).hexdigest()
    for content, message in [
        (b"queen,m\n", f"expected the SHA-256 {right}, found "),
        (b"queen,f\n\n", "expected 8 bytes, found more: not kept"),
        (b"queen", "expected 8 bytes, found 5: not kept"),
    ]:
        server.content[path] = content
        assert refused("words", tmp_path, base_url=server.url).startswith(f"{server.url}{path}: {message}")
        # The other file had been fetched and checked before.
        assert names(tmp_path) == ["words one&2.txt"]
    server.cut = True
    said = refused("words", tmp_path / "new", base_url=server.url, timeout=5)
    assert said.endswith("expected 11 bytes, found 10: not kept")
    assert names(tmp_path / "new") == []


@pytest.mark.usefixtures("known")
def test_what_cannot_be_fetched(server: Served, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silence = f"http://127.0.0.1:{silent.getsockname()[1]}"
        for name, url, message in (
            ("gone", server.url, "c0ffee/lists/none.txt: cannot be fetched: status 404 Not Found"),
            ("away", server.url, "redirect/away.txt: cannot be fetched: redirected to ftp://127.0.0.1/words.txt"),
            ("words", "http://127.0.0.1:1", "words%20one%262.txt: cannot be fetched: Connection refused"),
            ("words", "file:///etc", "expected an address with http or https, found 'file:///etc'"),
            ("words", silence, "cannot be fetched: timed out"),
            ("nothing", None, f"no public data named 'nothing': {EXPECTED}"),
        ):
            assert refused(name, tmp_path, base_url=url, timeout=0.5).endswith(message)
    assert names(tmp_path) == []


@pytest.mark.usefixtures("known")
def test_another_file_in_the_way_stays(server: Served, tmp_path: Path) -> None:
    fetch("words", out=tmp_path, base_url=server.url)
    asked = len(server.asked)
    message = refused("other", tmp_path, base_url=server.url)
    assert message == f"{tmp_path}/more.txt: another file of this name exists: choose another folder for other"
    assert (tmp_path / "more.txt").read_bytes() == b"queen,f\n"
    assert len(server.asked) == asked
    assert refused("words", tmp_path / "more.txt").endswith("more.txt: the folder cannot be made: File exists")


def test_the_packaged_list() -> None:
    sets = public_data.public_data()
    assert list(sets) == [
        *("gender-representative", "gender-specific", "queries-gender-annotated", "queries-fairness-sensitive"),
        *("queries-fairness-sensitive-dl19", "debias-definitional-pairs", "debias-equalize-pairs"),
        *("debias-gender-specific-full", "debias-gender-specific-seed", "debias-professions", "xquad-en"),
        *("grepbiasir", "runs-dev", "runs-dl19", "counsel-chat", "policyqa"),
    ]
    words = sets["grepbiasir"]
    assert (len(words.files), words.bytes, words.licence) == (8, 233624, "CC0-1.0")
    assert sets["xquad-en"].source == "github.com/deepmind/xquad"
    for data in sets.values():
        inside = [file.file_name for file in data.files]
        assert len(set(inside)) == len(inside)
        for file in data.files:
            assert file.file_name not in ("", ".", "..")
            assert "/" not in file.file_name
            assert (len(file.sha256), len(file.commit)) == (64, 40)
    url = words.files[2].url(public_data.BASE_URL)
    assert url == (
        "https://raw.githubusercontent.com/KlaraKrieg/GrepBiasIR/ed44a461054bd4fa506049ad29c44ef405c53fec/"
        "queries-documents_Child%20Care.csv"
    )


def test_the_command(
    server: Served, tmp_path: Path, known: None, monkeypatch: pytest.MonkeyPatch, evenrank: Any
) -> None:
    monkeypatch.setenv("EVENRANK_DATA_URL", server.url)
    lines = evenrank("data", "list").out.splitlines()
    assert lines[0].split() == ["name", "files", "bytes", "licence", "source"]
    assert lines[1].split() == ["words", "2", "19", "MIT", "github.com/owner/repository"]
    done = evenrank("data", "fetch", "words", "--out", tmp_path)
    assert (done.status, done.out) == (0, f"{tmp_path}/words one&2.txt\n{tmp_path}/more.txt\n")
    done = evenrank("data", "fetch", "nothing", "--out", tmp_path)
    assert (done.status, done.err) == (2, f"evenrank: no public data named 'nothing': {EXPECTED}\n")


def test_a_path_that_climbs_out_of_its_folder(
    server: Served, tmp_path: Path, known: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a" / "b"
    content = b"x"
    for number, path in enumerate(["../../../up.txt", "/etc/up.txt", "lists/../../up.txt", "lists/..", "..", "."]):
        file = described("up", path, content)
        server.content[file.url("")] = content
        monkeypatch.setattr(public_data, "public_data", lambda file=file: {"up": PublicData("up", (file,))})
        try:
            written = fetch("up", out=folder / str(number), base_url=server.url)
        except EvenrankError:
            assert path[-1] == "."
        else:
            assert written == [folder / str(number) / "up.txt"]
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == ["b"]
    assert all(path.parent.parent == folder for path in folder.rglob("*") if path.is_file())


@pytest.mark.usefixtures("known")
def test_a_file_that_comes_too_slowly(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read gives something in time, all of them together do not."""
    clock = itertools.count(0, 7)
    monkeypatch.setattr(public_data, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    said = refused("words", tmp_path, base_url=server.url, total_timeout=5)
    assert said.endswith(": cannot be fetched: incomplete after 5 s")
    assert names(tmp_path) == []
    assert len(fetch("words", out=tmp_path, base_url=server.url, total_timeout=1000)) == 2
