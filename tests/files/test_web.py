"""Inputs and outputs behind ``http://``: deadlines, redirects, and servers that take no files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

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


def test_a_redirect_to_another_server_is_not_followed(web: Web) -> None:
    with pytest.raises(InputError) as error:
        read_qrels(f"{web.url}/away")
    place = web.location.partition("@")[2].partition("/")[0]
    assert str(error.value) == f"{web.url}/away: cannot be reached: redirected to '{place}', which is not followed"


def test_a_redirect_to_http_is_not_followed() -> None:
    reading._refuse_redirect("http://h/a", "https://h/b")
    reading._refuse_redirect("https://h/a", "https://h:443/b")
    with pytest.raises(reading._RedirectedError, match=r"^redirected from https to http, which is not followed$"):
        reading._refuse_redirect("https://h/a", "http://h/a?k=v")


def test_a_redirect_on_the_same_server_is_followed(web: Web) -> None:
    assert read_qrels(f"{web.url}/moved")["doc_id"].to_list() == ["d1"]


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
