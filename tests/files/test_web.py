"""Inputs and outputs behind ``http://``: deadlines, redirects, servers that take no files; files in buckets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from evenrank.files import InputError, outputs, read_qrels, reading, write_text


class Web:
    """A server: what it has, where it leads, and where it says nothing or goes on for ever until ``done``."""

    def __init__(self) -> None:
        self.url = ""
        self.location = ""
        self.done = threading.Event()
        self.asked: list[str] = []


@pytest.fixture
def web() -> Iterator[Web]:
    pytest.importorskip("aiohttp", reason="needs the extra [remote]")
    served, elsewhere = Web(), Web()
    with serving(elsewhere), serving(served):
        served.location = f"{elsewhere.url.replace('//', '//me:word@')}/qrels?k=v"
        try:
            yield served
        finally:
            served.done.set()
    assert elsewhere.asked == []


def serving(web: Web) -> ThreadingHTTPServer:
    content = b"q1 0 d1 1\n"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            web.asked.append(self.path)
            if self.path in ("/away", "/moved"):
                self.send_response(302)
                self.send_header("Location", web.location if self.path == "/away" else "/qrels")
                self.end_headers()
            elif self.path == "/silent":
                web.done.wait(20)
            else:
                self.send_response(200)
                self.send_header("Content-Length", str(len(content) if self.path == "/qrels" else 9999))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(content)
                for _ in range(200 if self.path == "/drops" and self.command == "GET" else 0):
                    if not web.done.wait(0.02):
                        self.wfile.write(b"#")

        do_HEAD = do_GET

        def do_POST(self) -> None:
            self.send_error(int(self.path[1:4]))

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None:
            """A client that went away is no error."""

        def __exit__(self, *_: object) -> None:
            self.shutdown()
            self.server_close()

    server = Server(("127.0.0.1", 0), Handler)
    web.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server


def test_redirects_are_followed_on_the_same_server_alone(web: Web) -> None:
    assert read_qrels(f"{web.url}/moved")["doc_id"].to_list() == ["d1"]
    with pytest.raises(InputError) as error:
        read_qrels(f"{web.url}/away")
    place = web.location.partition("@")[2].partition("/")[0]
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


def test_what_an_upload_raises_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, evenrank: Any) -> None:
    """Each library has errors of its own."""

    class Refusing:
        def put_file(self, *_: object) -> None:
            raise RuntimeError("405, message='Method Not Allowed',\nurl='http://h/x.jsonl?k=secret'")

    monkeypatch.setattr(outputs, "file_system", lambda path: (Refusing(), str(path)) if "://" in str(path) else None)
    (tmp_path / "c.tsv").write_text("d1\the\n")
    done = evenrank("score", tmp_path / "c.tsv", "--out", "http://h/x.parquet?k=secret")
    assert done.status == 2
    assert done.err == "evenrank: http://h/x.parquet?k=…: cannot be written: 405, message='Method Not Allowed',\n"


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
