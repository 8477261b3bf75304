"""Servers that are busy, fail, dawdle and hang up; and keys, which are sent and shown nowhere."""

from __future__ import annotations

import base64
import gzip
import html
import json
import logging
import re
import threading
import time
import traceback
import urllib.parse
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import IO, Any

import pytest

from endpoint_cases import REQUESTS, endpoint, every_file, expected, ranked, scores_of
from evenrank import Endpoint
from evenrank.files import EvenrankError
from evenrank.models import endpoints
from evenrank.models.endpoints import Address
from loopback import Body, Server, answer_to, serving


def failure(model: Endpoint, out: Path | None = None) -> str:
    """The message of a re-ranking that ends with an error."""
    with pytest.raises(EvenrankError) as error:
        ranked(model, out)
    return str(error.value)


def test_an_answer_is_unpacked_no_further_than_is_allowed(server: Server) -> None:
    # 65 MiB in a few kilobytes.
    answer = gzip.compress(b" " * (65 << 20) + b"[]")
    for status, settings, message in (
        (200, {}, "an answer of more than 64 MiB (`largest_answer`)"),
        (200, {"largest_answer": 3}, "an answer of more than 3 MiB (`largest_answer`)"),
        (200, {"largest_answer": 66}, "expected a list of scores as 'results', found"),
        (302, {}, "an answer of more than 64 MiB (`largest_answer`)"),
    ):
        server.behave = lambda *_, status=status: (status, {"Content-Encoding": "gzip", "Location": "/"}, answer)
        assert message in failure(endpoint(server, concurrency=1, **settings))


def test_packed_answers_and_those_that_are_not_utf8(server: Server) -> None:
    def behave(number: int, body: Body) -> tuple[int, dict[str, str], bytes]:
        # With a byte order mark, too.
        answer = json.dumps(answer_to(server.paths[number], body)).encode("utf-8-sig")
        return (200, {"Content-Encoding": "gzip"}, gzip.compress(answer))

    server.behave = behave
    assert scores_of(ranked(endpoint(server))) == expected()
    server.behave = lambda *_: (200, {}, json.dumps({"note": "é"}, ensure_ascii=False).encode("latin-1"))
    problem = "the query 'query 0': expected an answer in UTF-8, found other bytes"
    assert failure(endpoint(server, concurrency=1)).endswith(problem)


def first(count: int, told: Any) -> Callable[[int, Body], Any]:
    """The right answer after so many others."""
    return lambda number, _: told if number < count else None


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ((503, {"Retry-After": " 3 "}, b"<html>"), [3, 3, 4]),
        ((429, {"Retry-After": "soon"}, b""), [1, 2, 4]),
        ((429, {"Retry-After": "Mon, 01 Jan 2001 00:00:00 GMT"}, b""), [1, 2, 4]),
        ((502, {}, b""), [1, 2, 4]),
        ("half", [1, 2, 4]),
    ],
    ids=["seconds", "no number", "past", "502", "half"],
)
def test_asked_again(told: Any, wanted: list[float], server: Server, waits: list[float], tmp_path: Path) -> None:
    server.behave = first(3, told)
    run = ranked(endpoint(server, concurrency=1), tmp_path / "run")
    assert waits == wanted
    assert scores_of(run) == expected()
    assert f"{REQUESTS} requests, 0 questions answered before, 3 retries" in run.notes[-1]
    assert len(server.bodies) == REQUESTS + 3


def test_retry_after_as_a_date_and_a_wait_that_is_too_long(server: Server, waits: list[float]) -> None:
    server.behave = first(1, (429, {"Retry-After": formatdate(time.time() + 90, usegmt=True)}, {}))
    ranked(endpoint(server, concurrency=1))
    (wait,) = waits
    assert 80 < wait <= 90
    asked = len(server.bodies)
    server.behave = lambda *_: (429, {"Retry-After": "3600"}, {"message": "quota"})
    assert failure(endpoint(server, concurrency=1)) == (
        f"{server.url}/rerank: the query 'query 0': status 429: 'quota'; it asks to wait 3,600 s, more than 300: start"
        " again later"
    )
    assert (len(server.bodies) - asked, len(waits)) == (1, 1)


@pytest.mark.parametrize(
    ("status", "content", "problem"),
    [
        (401, {"error": {"message": "who are you?", "type": "x"}}, "status 401: 'who are you?'"),
        (404, {"detail": "Not Found"}, "status 404: 'Not Found'"),
        (413, {"error": "batch size 3 > maximum allowed batch size 2", "error_type": "Validation"},
         "status 413: 'batch size 3 > maximum allowed batch size 2'; try a smaller `batch_size`"),
        (401, b"<style>p {color: red}</style><h1>Not&nbsp;you</h1><Script>go()</script ><p>nginx",
         "status 401: 'Not you nginx'"),
        (400, {"code": 3}, """status 400: '{"code": 3}'"""),
        (499, b'{"error":' * 900 + b'1' + b'}' * 900, None),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, "status 422: 'field required'"),
        (403, b"x" * 10_000, f"status 403: '{'x' * 199}…'"),
        (418, b"line\nline\x1b[31m", r"status 418: 'line line\x1b[31m'"),
    ],
)  # fmt: skip
def test_refused(status: int, content: Any, problem: str | None, server: Server, waits: list[float]) -> None:
    server.behave = lambda *_: (status, {}, content)
    said = failure(endpoint(server, "tei", concurrency=1))
    assert problem is None or said == f"{server.url}/rerank: the query 'query 0': {problem}"
    assert (len(server.bodies), waits) == (1, [])


@pytest.mark.parametrize(
    ("begin", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[]", b" "),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ],
    ids=["sized", "closing", "chunked"],
)
def test_an_answer_in_drops(begin: bytes, drop: bytes, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one comes soon, the whole never."""
    monkeypatch.setattr(endpoints, "TRIES", 1)
    done, cut = threading.Event(), threading.Event()

    def drip(file: IO[bytes]) -> None:
        try:
            file.write(begin)
            for _ in range(300):
                if not done.wait(0.01):
                    file.write(drop)
        except OSError:
            cut.set()

    server.behave = lambda *_: drip
    try:
        said = failure(endpoint(server, "tei", concurrency=1, timeout=0.2))
        assert said.endswith("/rerank: the query 'query 0': no answer in 0.2 s (1 try)")
        # The connection is not left open either.
        assert cut.wait(20)
    finally:
        done.set()


def test_after_a_cut_answers_come_again(server: Server, waits: list[float]) -> None:
    held = threading.Event()
    server.behave = lambda number, _: held.wait(60) and None if number == 2 else held.set() if number == 3 else None
    assert scores_of(ranked(endpoint(server, concurrency=1, timeout=0.3))) == expected()
    assert waits
    assert server.connections > 1


def test_nobody_there(waits: list[float]) -> None:
    with serving() as gone:
        pass
    assert failure(endpoint(gone, concurrency=1)).endswith(": the query 'query 0': Connection refused (7 tries)")


def test_redirects_are_not_followed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "sk-secret")
    with serving() as elsewhere:
        target = f"http://u:p/w@{elsewhere.url[7:]}/rerank?k=v"
        server.behave = lambda *_: (307, {"Location": target}, b"")
        said = failure(endpoint(server, concurrency=1, key_env="THE_KEY"))
        assert elsewhere.bodies == []
    problem = f"status 307: redirected to '{elsewhere.url}/rerank', which is not followed"
    assert said == f"{server.url}/rerank: the query 'query 0': {problem}"


@pytest.mark.parametrize("location", [None, "//u:pw@[::1", "/a\x1b[2Jb"])
def test_a_redirect_to_nowhere(location: str | None, server: Server, waits: list[float]) -> None:
    server.behave = lambda *_: (302, {} if location is None else {"Location": location}, b"")
    said = failure(endpoint(server, concurrency=1))
    assert re.fullmatch(r"[ -~]*: status 302: redirected to '[^@]*', which is not followed", said)


def test_a_proxy_is_for_other_machines(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert scores_of(ranked(endpoint(server))) == expected()
    for host in ("example.com", "127.example.com", "localhost.example.com"):
        assert not Address.of(f"http://{host}", "rerank").loopback
    for host in ("LOCALHOST:1", "a.localhost", "[::1]:80"):
        assert Address.of(f"http://{host}", "rerank").loopback


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_a_proxy_of_the_environment(scheme: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"{scheme}me:w%2Frd@{server.url[7:]}")
    assert scores_of(ranked(Endpoint("http://ranker.invalid/v1", "cohere"))) == expected()
    assert set(server.paths) == {"http://ranker.invalid/v1/rerank"}
    login = base64.b64encode(b"me:w/rd").decode()
    assert {headers["proxy-authorization"] for headers in server.headers} == {f"Basic {login}"}
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:9")
    with pytest.raises(EvenrankError, match=r"^expected a proxy with http:// or https:// in the environment$"):
        ranked(Endpoint("http://ranker.invalid/v1", "cohere"))


def test_no_password_of_netrc_and_no_cookies(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password mine\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr(Address, "loopback", False)
    monkeypatch.setenv("NO_PROXY", "*")
    server.behave = lambda number, body: (200, {"Set-Cookie": "a=b"}, answer_to(server.paths[number], body))
    ranked(endpoint(server))
    assert not [headers for headers in server.headers if headers.keys() & {"Authorization", "Cookie"}]


# --- keys -------------------------------------------------------------------------------------------------------------

KEY = "sk-very/secret+key=="
LOGIN = "some%40one:pass%2Fword"
SECRETS = (KEY, "pass%2Fword", "pass/word", "some@one", "token-in-the-url", "c29tZUBvbmU6cGFzcy93b3Jk")
assert base64.b64encode(b"some@one:pass/word").decode() == SECRETS[-1]


@pytest.fixture
def seen(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[list[str]]:
    """Everything said in a test, with its messages and files: no secret is in it."""
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    yield said
    out, err = capfd.readouterr()
    # What is caught while a fixture ends is another log.
    logged = [text for one in caplog.get_records("call") for text in (logging.Formatter().format(one), str(one.args))]
    for text in (*said, out, err, *logged):
        assert not [secret for secret in SECRETS if secret in text], text
    for path, content in every_file(tmp_path):
        assert not [secret for secret in SECRETS if secret.encode() in content or secret in path.name], path


def all_of(error: BaseException) -> str:
    """What a traceback shows."""
    return "".join(traceback.format_exception(error))


@pytest.fixture
def keyed(server: Server, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    monkeypatch.setenv("THE_KEY", f" {KEY}\n")
    return Endpoint(
        f"{server.url}/v1?token=token-in-the-url&v=2", "cohere", key_env="THE_KEY", concurrency=1, timeout=20
    )


def test_a_key_is_sent_and_shown_nowhere(
    keyed: Endpoint, server: Server, tmp_path: Path, seen: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    logs = [logging.getLogger(f"urllib3.{name}") for name in ("connection", "connectionpool")]
    before = [(log.level, [*log.filters]) for log in logs]
    run = ranked(keyed, tmp_path / "run")
    assert [(log.level, log.filters) for log in logs] == before
    assert not [one for one in caplog.records if one.name in {log.name for log in logs}]
    assert scores_of(run) == expected()
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert set(server.paths) == {"/v1/rerank?token=token-in-the-url&v=2"}
    scorer = keyed.scorer()
    seen += [repr(keyed), str(keyed), *run.notes, str(scorer.facts()), repr(scorer), run.name]
    assert keyed.address.shown == f"{server.url}/v1/rerank?token=…&v=…"
    assert (tmp_path / "run.answers.sqlite").exists()


TOLD = f"no: 'Bearer {KEY}' at ?token=token-in-the-url"


def odd(file: IO[bytes]) -> None:
    """A header that cannot be read."""
    file.write(f"HTTP/1.1 403 {KEY}\r\nX: y\r\n{KEY}\r\n\r\n".encode())
    file.flush()


@pytest.mark.parametrize("told", [200, 308, 503, odd, "half"])
def test_a_server_that_repeats_the_key(
    told: Any, keyed: Endpoint, server: Server, tmp_path: Path, waits: list[float], seen: list[str]
) -> None:
    contents = ({"message": TOLD}, TOLD.encode(), {"results": [{"index": TOLD}]}, {"results": TOLD})
    for answer in [(told, {"Location": f"/{KEY}"}, one) for one in contents] if isinstance(told, int) else [told]:
        server.behave = lambda *_, answer=answer: answer
        with pytest.raises(EvenrankError) as error:
            ranked(keyed, tmp_path / "run")
        seen.append(all_of(error.value))


def test_forms_of_a_key(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    key = 'sk-<"&+/=%>-key'
    monkeypatch.setenv("THE_KEY", key)
    forms = {
        "plain": key,
        "base64": base64.b64encode(key.encode()).decode().rstrip("="),
        "quoted": urllib.parse.quote(key),
        "wholly": urllib.parse.quote_plus(key),
        "html": html.escape(key),
        "json": json.dumps(key)[1:-1],
    }
    for form in forms.values():
        # Also where the message is cut.
        for before in ("no:", "x" * 190):
            content = {"message": f"{before} {form} {form}"}
            server.behave = lambda *_, content=content: (401, {}, content)
            said = failure(endpoint(server, "tei", concurrency=1, key_env="THE_KEY"))
            assert said.endswith(": status 401: a text that repeats what is secret")


def test_a_login_in_the_address(server: Server, tmp_path: Path, seen: list[str], waits: list[float]) -> None:
    model = Endpoint(f"http://{LOGIN}@{server.url[7:]}", "tei", timeout=20, concurrency=1)
    run = ranked(model, tmp_path / "run")
    assert {headers["Authorization"] for headers in server.headers} == {f"Basic {SECRETS[-1]}"}
    assert set(server.paths) == {"/rerank"}
    server.behave = lambda *_: (403, {}, f"{LOGIN} pass/word {SECRETS[-1]}".encode())
    with pytest.raises(EvenrankError) as error:
        ranked(model, depth=2)
    seen += [repr(model), *run.notes, str(model.scorer().facts()), all_of(error.value)]
    assert model.address.shown == f"{server.url}/rerank"
    assert str(error.value).endswith(": status 403: a text that repeats what is secret")


@pytest.mark.parametrize("value", [None, "", " ", "a\nb", "kéy"])
def test_a_variable_without_a_key(value: str | None, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    if value is None:
        monkeypatch.delenv("THE_KEY", raising=False)
    else:
        monkeypatch.setenv("THE_KEY", value)
    with pytest.raises(EvenrankError, match=r"^`key_env`: expected [^:]*environment variable[^:]*$") as error:
        ranked(endpoint(server, key_env="THE_KEY"))
    assert "kéy" not in str(error.value)
    # The key itself in its place is not repeated.
    with pytest.raises(EvenrankError) as other:
        ranked(endpoint(server, key_env=KEY))
    assert KEY not in all_of(other.value)
    assert server.bodies == []
