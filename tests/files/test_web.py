"""Inputs and outputs behind ``http://`` and in buckets, and public data: checked, and never half-written."""

from __future__ import annotations

import gc
import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from evenrank.files import EvenrankError, InputError, read_qrels, reading, write_text
from evenrank.files import public as public_data
from evenrank.files.public import PublicData, PublicFile, fetch


class Bucket(BaseHTTPRequestHandler):
    """A bucket of S3 and of Google: what their libraries ask for to read a small file and to write one."""

    protocol_version = "HTTP/1.1"  # it answers an Expect: 100-continue
    stored: ClassVar[dict[str, bytes]] = {}

    def answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in (("ETag", '"1"'), ("Content-Length", len(body)), ("Content-Type", "application/json")):
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].rpartition("/")[2]
        body = self.stored.get(name)
        if "prefix=" in self.path:
            self.answer(200, b"<ListBucketResult/>" if "list-type" in self.path else b"{}")
        elif body is None:
            self.answer(404, b"{}")
        elif self.path.startswith("/storage/"):
            link = f"http://{self.headers['Host']}/{name}"
            about = {"name": name, "bucket": "b", "size": str(len(body)), "mediaLink": link}
            self.answer(200, json.dumps(about).encode())
        else:
            self.answer(200, body)

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        self.stored[self.path.rpartition("/")[2]] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200)

    def do_POST(self) -> None:
        _, about, body, _ = self.rfile.read(int(self.headers["Content-Length"])).split(b"--==0==")
        name = json.loads(about.partition(b"\n\n")[2])["name"]
        self.stored[name] = body.partition(b"\n\n")[2].removesuffix(b"\n")
        self.answer(200, b"{}")

    def log_message(self, *_: object) -> None:
        pass


class Web(ThreadingHTTPServer):
    """A server: what it has and where it leads by path, what it was asked for, how much of an answer is missing, and
    where it says nothing or goes on for ever until ``done``."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, content: dict[str, bytes], leads: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.leads, self.missing = content, leads, 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.done = threading.Event()
        self.asked: list[str] = []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """A client that went away is no error."""

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.path == "/silent":
            self.server.done.wait(20)
            return
        leads, content = self.server.leads.get(self.path), self.server.content.get(self.path)
        self.send_response(302 if leads else 404 if content is None else 200)
        for name, value in {"Location": leads, "Content-Length": content and len(content)}.items():
            if value:
                self.send_header(name, str(9999 if self.path == "/drops" else value))
        self.end_headers()
        if content and self.command == "GET":
            self.wfile.write(content[: len(content) - self.server.missing])
        for _ in range(200 if self.path == "/drops" and self.command == "GET" else 0):
            if not self.server.done.wait(0.02):
                self.wfile.write(b"#")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.send_error(int(self.path[1:4]))

    def log_message(self, *_: object) -> None:
        pass


QRELS = dict.fromkeys(("/qrels", "/drops"), b"q1 0 d1 1\n")


@pytest.fixture
def web() -> Iterator[Web]:
    pytest.importorskip("aiohttp", reason="needs the extra [remote]")
    with Web(QRELS, {}) as elsewhere:
        away = f"{elsewhere.url.replace('//', '//me:word@')}/qrels?k=v"
        with Web(QRELS, {"/away": away, "/moved": "/qrels"}) as served:
            yield served
        assert elsewhere.asked == []


def test_redirects_are_followed_on_the_same_server_alone(web: Web) -> None:
    assert read_qrels(f"{web.url}/moved")["doc_id"].to_list() == ["d1"]
    with pytest.raises(InputError) as error:
        read_qrels(f"{web.url}/away")
    place = web.leads["/away"].partition("@")[2].partition("/")[0]
    assert str(error.value) == f"{web.url}/away: cannot be reached: redirected to '{place}', which is not followed"


def test_a_redirect_to_http_is_not_followed() -> None:
    reading._refuse_redirect("http://h/a", "https://h/b")
    reading._refuse_redirect("https://h/a", "https://h:443/b")
    with pytest.raises(reading._RedirectedError, match=r"^redirected from https to http, which is not followed$"):
        reading._refuse_redirect("https://h/a", "http://h/a?k=v")


@pytest.mark.parametrize(
    ("path", "problem"),
    [("/silent", "cannot be reached: Timeout on reading"), ("/drops", "cannot be read: no answer in time")],
)
def test_inputs_have_a_deadline(path: str, problem: str, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SILENCE", 0.2)
    monkeypatch.setattr(reading, "LONGEST", 0.5)
    with pytest.raises(InputError) as error:
        read_qrels(web.url + path)
    assert str(error.value).startswith(f"{web.url}{path}: {problem}")


@pytest.mark.parametrize(
    ("path", "problem"), [("405?k=secret", "405, message='Method Not Allowed', url="), ("404", "no such place")]
)
def test_a_server_that_takes_no_files(path: str, problem: str, web: Web) -> None:
    with pytest.raises(InputError) as error:
        write_text(f"{web.url}/{path}", "text")
    assert f": cannot be written: {problem}" in str(error.value)
    assert "secret" not in str(error.value)
    assert "\n" not in str(error.value)


# --- public data -----------------------------------------------------------------------------------------------------

EXPECTED = "expected one of words, gone, moved, other"
FILES = {"lists/words one&2.txt": b"she,f\nhe,m\n", "lists/more.txt": b"queen,f\n"}
AT = "/owner/repository/c0ffee/"


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
        "moved": PublicData("moved", (described("moved", "moved/more.txt", b"queen,f\n"),)),
        "other": PublicData("other", (described("other", "another/more.txt", b"king,m\n"),)),
    }
    # The command takes it from the package, which keeps what it is asked for: first, so that the real one is put back.
    monkeypatch.setattr("evenrank.public_data", lambda: sets)
    monkeypatch.setattr(public_data, "public_data", lambda: sets)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("EVENRANK_DATA_URL", raising=False)


@pytest.fixture
def server() -> Iterator[Web]:
    content = {AT + path.replace(" ", "%20").replace("&", "%26"): content for path, content in FILES.items()}
    with Web(content, {f"{AT}moved/more.txt": f"{AT}lists/more.txt"}) as served:
        yield served


def refused(name: str, to: Path, **settings: Any) -> str:
    with pytest.raises(EvenrankError) as caught:
        fetch(name, out=to, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("known")
def test_fetches_all_files_once(server: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_tampered_file_is_not_kept(server: Web, tmp_path: Path) -> None:
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
    server.missing = 1
    said = refused("words", tmp_path / "new", base_url=server.url, timeout=5)
    assert said.endswith("expected 11 bytes, found 10: not kept")
    assert names(tmp_path / "new") == []


@pytest.mark.usefixtures("known")
def test_what_cannot_be_fetched(server: Web, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silence = f"http://127.0.0.1:{silent.getsockname()[1]}"
        for name, url, message in (
            ("gone", server.url, "c0ffee/lists/none.txt: cannot be fetched: status 404 Not Found"),
            ("words", "http://127.0.0.1:1", "words%20one%262.txt: cannot be fetched: Connection refused"),
            ("words", "file:///etc", "expected an address with http or https, found 'file:///etc'"),
            ("words", silence, "cannot be fetched: timed out"),
            ("nothing", None, f"no public data named 'nothing': {EXPECTED}"),
        ):
            assert refused(name, tmp_path, base_url=url, timeout=0.5).endswith(message)
    assert names(tmp_path) == []
    gc.collect()  # what was left open warns


@pytest.mark.usefixtures("known")
def test_another_file_in_the_way_stays(server: Web, tmp_path: Path) -> None:
    fetch("words", out=tmp_path, base_url=server.url)
    asked = len(server.asked)
    message = refused("other", tmp_path, base_url=server.url)
    assert message == f"{tmp_path}/more.txt: another file of this name exists: choose another folder for other"
    assert (tmp_path / "more.txt").read_bytes() == b"queen,f\n"
    assert len(server.asked) == asked
    assert refused("words", tmp_path / "more.txt").endswith("more.txt: the folder cannot be made: File exists")


def test_the_packaged_list() -> None:
    sets = public_data.public_data()
    words = sets["grepbiasir"]
    assert (len(words.files), words.bytes, words.licence) == (8, 233624, "CC0-1.0")
    for data in sets.values():
        inside = [file.file_name for file in data.files]
        assert len(set(inside)) == len(inside)
        assert not any("/" in name or name in ("", ".", "..") for name in inside)
        assert {(len(file.sha256), len(file.commit)) for file in data.files} == {(64, 40)}
    url = words.files[2].url(public_data.BASE_URL)
    assert url == (
        "https://raw.githubusercontent.com/KlaraKrieg/GrepBiasIR/ed44a461054bd4fa506049ad29c44ef405c53fec/"
        "queries-documents_Child%20Care.csv"
    )


def test_the_command(server: Web, tmp_path: Path, known: None, monkeypatch: pytest.MonkeyPatch, evenrank: Any) -> None:
    monkeypatch.setenv("EVENRANK_DATA_URL", server.url)
    lines = evenrank("data", "list").out.splitlines()
    assert lines[0].split() == ["name", "files", "bytes", "licence", "source"]
    assert lines[1].split() == ["words", "2", "19", "MIT", "github.com/owner/repository"]
    done = evenrank("data", "fetch", "words", "--out", tmp_path)
    assert (done.status, done.out) == (0, f"{tmp_path}/words one&2.txt\n{tmp_path}/more.txt\n")
    done = evenrank("data", "fetch", "nothing", "--out", tmp_path)
    assert (done.status, done.err) == (2, f"evenrank: no public data named 'nothing': {EXPECTED}\n")


def test_a_path_that_climbs_out_of_its_folder(
    server: Web, tmp_path: Path, known: None, monkeypatch: pytest.MonkeyPatch
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


@pytest.mark.parametrize(("scheme", "library"), [("s3", "s3fs"), ("gs", "gcsfs")])
def test_buckets(scheme: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library, reason="needs the extra [remote]")
    monkeypatch.setattr(Bucket, "stored", {})
    with ThreadingHTTPServer(("127.0.0.1", 0), Bucket) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        aws = {"ENDPOINT_URL": address, "ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": "word"}
        aws["REQUEST_CHECKSUM_CALCULATION"] = "when_required"
        for name, value in {**{f"AWS_{key}": of for key, of in aws.items()}, "STORAGE_EMULATOR_HOST": address}.items():
            monkeypatch.setenv(name, value)
        try:
            write_text(f"{scheme}://b/qrels", "q1 0 d1 1\n")
            assert read_qrels(f"{scheme}://b/qrels")["doc_id"].to_list() == ["d1"]
            with pytest.raises(InputError, match=f"^{scheme}://b/absent: no such file$"):
                read_qrels(f"{scheme}://b/absent")
        finally:
            server.shutdown()
