"""Servers that are busy, fail, dawdle and hang up; and keys, which are sent and shown nowhere."""

from __future__ import annotations

import base64
import codecs
import gzip
import json
import logging
import re
import threading
import traceback
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import IO, Any
from unittest import mock

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from endpoint_cases import REQUESTS, endpoint, every_file, expected, ranked, scores_of
from evenrank import Endpoint
from evenrank.files import EvenrankError
from evenrank.models import endpoint_http, endpoints
from evenrank.models.endpoint_http import Address, Client, Mask
from loopback import Body, Server, answer_to, serving

BUSY = (429, {}, {"message": "slow down"})


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that a client would have waited; it does not."""
    seconds: list[float] = []
    monkeypatch.setattr(endpoint_http, "_pause", lambda _, wait: seconds.append(wait))
    return seconds


def test_an_answer_is_unpacked_no_further_than_is_allowed(server: Server, tmp_path: Path) -> None:
    # 65 MiB in a few kilobytes.
    answer = gzip.compress(b" " * (65 << 20) + b"[]")
    server.behave = lambda *_: (200, {"Content-Encoding": "gzip"}, answer)
    with pytest.raises(EvenrankError, match="an answer of more than 64 MiB"):
        ranked(endpoint(server), tmp_path / "run")
    with pytest.raises(EvenrankError, match=r"an answer of more than 3 MiB \(`largest_answer`\)$"):
        ranked(endpoint(server, largest_answer=3), tmp_path / "run")
    with pytest.raises(EvenrankError, match="expected an object with 'results'"):
        ranked(endpoint(server, largest_answer=66), tmp_path / "run")


def test_packed_answers(server: Server, tmp_path: Path) -> None:
    def behave(number: int, body: Body) -> tuple[int, dict[str, str], bytes]:
        answer = json.dumps(answer_to(server.paths[number], body)).encode()
        return (200, {"Content-Encoding": "gzip"}, gzip.compress(answer))

    plain = ranked(endpoint(server), tmp_path / "plain")
    server.behave = behave
    assert scores_of(ranked(endpoint(server), tmp_path / "packed")) == scores_of(plain)


def first(count: int, told: Any) -> Callable[[int, Body], Any]:
    """The right answer after so many others."""
    return lambda number, _: told if number < count else None


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (BUSY, [1, 2, 4]),
        ((429, {"Retry-After": "7"}, {}), [7, 7, 7]),
        ((503, {"Retry-After": " 3 "}, b"<html>"), [3, 3, 4]),
        ((503, {"Retry-After": "0"}, b""), [1, 2, 4]),
        ((429, {"Retry-After": "soon"}, b""), [1, 2, 4]),
        ((429, {"Retry-After": "-5"}, b""), [1, 2, 4]),
        ((429, {"Retry-After": "Mon, 01 Jan 2001 00:00:00 GMT"}, b""), [1, 2, 4]),
        ((500, {}, {"error": "oh"}), [1, 2, 4]),
        ((502, {}, b""), [1, 2, 4]),
        ("drop", [1, 2, 4]),
        ("half", [1, 2, 4]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_asked_again(told: Any, wanted: list[float], server: Server, waits: list[float], tmp_path: Path) -> None:
    server.behave = first(3, told)
    run = ranked(endpoint(server, concurrency=1), tmp_path / "run")
    assert waits == wanted
    assert scores_of(run) == expected()
    assert f"{REQUESTS} requests, 0 questions answered before, 3 retries" in run.notes[-1]
    assert len(server.bodies) == REQUESTS + 3


def test_retry_after_as_a_date() -> None:
    now = 1_700_000_000
    with mock.patch("urllib3.util.retry.time.time", return_value=now):
        assert endpoint_http._seconds(formatdate(now + 90, usegmt=True)) == 90
        assert endpoint_http._seconds(formatdate(now - 90, usegmt=True)) == 0
    assert endpoint_http._seconds("9" * 5000) == 0


def test_a_wait_that_is_too_long(server: Server, waits: list[float]) -> None:
    server.behave = lambda *_: (429, {"Retry-After": "3600"}, {"message": "quota"})
    with pytest.raises(EvenrankError) as error:
        ranked(endpoint(server, concurrency=1))
    assert str(error.value) == (
        f"{server.url}/rerank: the query 'query 0': status 429: 'quota'; it asks to wait 3,600 s, more than 300: start"
        " again later"
    )
    assert (len(server.bodies), waits) == (1, [])


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ((503, {}, b"<html><h1>no  server</h1></html>"), "status 503: 'no server' (7 tries)"),
        ((500, {}, b""), "status 500 (7 tries)"),
        (BUSY, "status 429: 'slow down' (7 tries)"),
        ("drop", "the connection was dropped (7 tries)"),
        ("half", "the connection was dropped (7 tries)"),
    ],
    ids=["503", "500", "429", "drop", "half"],
)
def test_one_line_after_some_tries(told: Any, problem: str, server: Server, waits: list[float], tmp_path: Path) -> None:
    server.behave = lambda *_: told
    with pytest.raises(EvenrankError) as error:
        ranked(endpoint(server, concurrency=1), tmp_path / "run")
    assert str(error.value) == f"{server.url}/rerank: the query 'query 0': {problem}"
    assert waits == [1, 2, 4, 8, 16, 32]
    assert len(server.bodies) == 7
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("status", "content", "problem"),
    [
        (400, {"message": "too long"}, "status 400: 'too long'"),
        (401, {"error": {"message": "who are you?", "type": "x"}}, "status 401: 'who are you?'"),
        (404, {"detail": "Not Found"}, "status 404: 'Not Found'"),
        (413, {"error": "batch size 3 > maximum allowed batch size 2", "error_type": "Validation"},
         "status 413: 'batch size 3 > maximum allowed batch size 2'; try a smaller `batch_size`"),
        (413, b"", "status 413; try a smaller `batch_size`"),
        (401, b"<style>p {color: red}</style><h1>Not&nbsp;you</h1><Script>go()</script ><p>nginx",
         "status 401: 'Not you nginx'"),
        (200, {"error": {"message": "the model is overloaded " * 4}}, "expected a list of scores, found the message"
         f" {'the model is overloaded ' * 4!r}"),
        (200, {"results": [], "message": "fine"}, "expected a list of scores, found"
         """ '{"results": [], "message": "fine"}'"""),
        (499, b'{"error":' * 900 + b'1' + b'}' * 900, None),
        (200, b'{"error":' * 900 + b'1' + b'}' * 900, None),
        (200, b"[" * 900 + b"1" + b"]" * 900, None),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, "status 422: 'field required'"),
        (403, b"x" * 10_000, f"status 403: '{'x' * 199}…'"),
        (418, b"line\nline\x1b[31m", r"status 418: 'line line\x1b[31m'"),
    ],
)  # fmt: skip
def test_refused(status: int, content: Any, problem: str | None, server: Server, waits: list[float]) -> None:
    server.behave = lambda *_: (status, {}, content)
    with pytest.raises(EvenrankError) as error:
        ranked(endpoint(server, "tei", concurrency=1))
    assert problem is None or str(error.value) == f"{server.url}/rerank: the query 'query 0': {problem}"
    assert (len(server.bodies), waits) == (1, [])


def test_slow_answers(server: Server, waits: list[float]) -> None:
    done = threading.Event()
    server.behave = lambda *_: done.wait(60) and None
    try:
        with pytest.raises(EvenrankError, match=r"/rerank: the query 'query 0': no answer in 0.05 s \(7 tries\)$"):
            ranked(endpoint(server, concurrency=1, timeout=0.05))
    finally:
        done.set()
    assert len(waits) == 6


@pytest.mark.parametrize(
    ("begin", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
        (b"HTTP/1.1 200 OK\r\nX-Many: x", b"\r\nX: y"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[]", b" "),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ],
    ids=["header", "headers", "sized", "closing", "chunked"],
)
def test_an_answer_in_drops(begin: bytes, drop: bytes, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one comes soon, the whole never."""
    monkeypatch.setattr(endpoint_http, "TRIES", 1)
    done, cut = threading.Event(), threading.Event()

    def drip(file: IO[bytes]) -> None:
        try:
            file.write(begin)
            while not done.wait(0.01):
                file.write(drop)
        except OSError:
            cut.set()

    server.behave = lambda *_: drip
    try:
        with pytest.raises(EvenrankError, match=r"/rerank: the query 'query 0': no answer in 0.2 s \(1 try\)$"):
            ranked(endpoint(server, "tei", concurrency=1, timeout=0.2))
        # The connection is not left open either.
        assert cut.wait(20)
    finally:
        done.set()


def test_after_a_cut_answers_come_again(server: Server, waits: list[float]) -> None:
    held = threading.Event()
    server.behave = lambda number, _: held.wait(60) and None if number == 2 else held.set() if number == 3 else None
    assert scores_of(ranked(endpoint(server, concurrency=1, timeout=0.5))) == expected()
    assert waits
    assert server.connections > 1


def test_after_a_failure_nobody_waits_long(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "_PATIENCE", 0.1)
    both, done, waited = threading.Barrier(2), threading.Event(), []

    def behave(number: int, _: Body) -> Any:
        both.wait(20)
        if number:
            return (401, {}, {"message": "no"})
        waited.append(done.wait(20))
        return None

    server.behave = behave
    with pytest.raises(EvenrankError, match=r"status 401: 'no'$"):
        ranked(endpoint(server, concurrency=2, timeout=60))
    assert waited == []
    done.set()


def test_nobody_there(waits: list[float]) -> None:
    with serving() as gone:
        pass
    with pytest.raises(EvenrankError, match=r"/rerank: the query 'query 0': Connection refused \(7 tries\)$"):
        ranked(endpoint(gone, concurrency=1))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int, server: Server, waits: list[float], monkeypatch: Any) -> None:
    monkeypatch.setenv("THE_KEY", "sk-secret")
    with serving() as elsewhere:
        target = f"http://u:pw@{elsewhere.url[7:]}/rerank?k=v"
        server.behave = lambda *_: (status, {"Location": target}, b"")
        with pytest.raises(EvenrankError) as error:
            ranked(endpoint(server, concurrency=1, key="THE_KEY"))
        assert elsewhere.bodies == []
    problem = f"status {status}: redirected to {elsewhere.url}/rerank, which is not followed"
    assert str(error.value) == f"{server.url}/rerank: the query 'query 0': {problem}"


def test_a_proxy_is_for_other_machines(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert scores_of(ranked(endpoint(server))) == expected()
    assert not Address.of("http://example.com", "rerank").loopback
    assert Address.of("http://LOCALHOST:1", "rerank").loopback


def test_no_password_of_netrc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine example.com login me password mine\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for key, header in ((None, None), ("k", "Bearer k")):
        client = Client(Address.of("http://example.com", "rerank"), key, 1, 1)
        sent = client._session()[0].prepare_request(requests.Request("POST", client.address.url))
        assert sent.headers.get("Authorization") == header
        client.close()


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
    records = caplog.get_records("call")
    assert any(one.name.startswith("urllib3") for one in records)
    logged = [text for one in records for text in (logging.Formatter().format(one), repr(one), str(one.args))]
    for text in (*said, out, err, *logged):
        assert not [secret for secret in SECRETS if secret in text], text
    for path, content in every_file(tmp_path):
        assert not [secret for secret in SECRETS if secret.encode() in content or secret in path.name], path


def everything(error: BaseException) -> list[str]:
    """What an exception and all that it came from say and hold."""
    found, waiting = [], [error]
    while waiting:
        one = waiting.pop()
        found += [repr(one), str(one), str(vars(one)), "".join(traceback.format_exception(one))]
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
    return found


@pytest.fixture
def keyed(server: Server, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    monkeypatch.setenv("THE_KEY", f" {KEY}\n")
    return Endpoint(f"{server.url}/v1?token=token-in-the-url&v=2", "cohere", key="THE_KEY", concurrency=1, timeout=20)


def test_a_key_is_sent_and_shown_nowhere(keyed: Endpoint, server: Server, tmp_path: Path, seen: list[str]) -> None:
    run = ranked(keyed, tmp_path / "run")
    assert scores_of(run) == expected()
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert set(server.paths) == {"/v1/rerank?token=token-in-the-url&v=2"}
    scorer = keyed.scorer()
    seen += [repr(keyed), str(keyed), *run.notes, str(scorer.facts()), repr(scorer), run.name]
    assert keyed.address.shown == f"{server.url}/v1/rerank?token=…&v=…"
    assert (tmp_path / "run.answers.sqlite").exists()


@pytest.mark.parametrize("status", [200, 308, 400, 401, 503])
def test_a_server_that_repeats_the_key(
    status: int, keyed: Endpoint, server: Server, tmp_path: Path, waits: list[float], seen: list[str]
) -> None:
    told = f"no: 'Bearer {KEY}' at ?token=token-in-the-url"
    for content in ({"message": told}, told.encode(), {"results": [{"index": told}]}, {"results": told}):
        server.behave = lambda *_, content=content: (status, {"Location": f"/{KEY}"}, content)
        with pytest.raises(EvenrankError) as error:
            ranked(keyed, tmp_path / "run")
        seen += everything(error.value)
        assert error.value.__context__ is None


def test_a_header_that_cannot_be_read_is_not_logged(keyed: Endpoint, server: Server, seen: list[str]) -> None:
    def odd(file: IO[bytes]) -> None:
        file.write(f"HTTP/1.1 403 {KEY}\r\nX: y\r\n{KEY}\r\n\r\n".encode())
        file.flush()

    server.behave = lambda *_: odd
    with pytest.raises(EvenrankError, match="status 403") as error:
        ranked(keyed)
    seen += everything(error.value)


def test_a_server_that_repeats_a_part_of_the_key(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = "sk-VERYSECRET-0123456789-abcdefghij"
    monkeypatch.setenv("THE_KEY", key)
    parts = [key[:size] for size in range(6, 36)] + [key[-size:] for size in range(6, 36)]
    for part in (*parts, "sk-VERYSECRE", key * 2, key + key[:9], key[-9:] + key):
        server.behave = lambda *_, part=part: (401, {}, {"message": f"bad key {part}... ({part}) for Bearer {key}"})
        with pytest.raises(EvenrankError) as error:
            ranked(endpoint(server, "tei", concurrency=1, key="THE_KEY"))
        said = str(error.value).partition("status 401: ")[2]
        # The letter before it may be one of the key, too.
        assert re.fullmatch(r"'bad key? ?…+(\.\.\. \(…+)?\) for Bearer …+'", said), said


def forms_of(key: str) -> list[str]:
    """A key as a server may give it back."""
    raw = key.encode()
    packed = [base64.b64encode(before + raw).decode() for before in (b"", b"B", b"it")]
    return [
        key.upper(), key.lower(), key.swapcase(), key[::-1], " ".join(key), ". ".join(key), "\u200b".join(key),
        *packed, packed[0][::-1], " ".join(packed[0]), raw.hex(), raw.hex().upper(), raw.hex(" "), raw.hex(":"),
        raw[::-1].hex(), "".join(f"%{byte:02x}" for byte in raw), key[4:16], " ".join(key[::-1].lower()),
        # Not known, but longer than any word.
        base64.b32encode(raw).decode(), base64.b85encode(raw).decode(), codecs.encode(key, "rot13"),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(len(forms_of("any"))))
def test_a_server_that_gives_the_key_in_another_form(
    number: int, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-VERYsecret-0123456789-abcdefghij"
    monkeypatch.setenv("THE_KEY", key)
    form = forms_of(key)[number]
    told = f"Wrong API key, {form}. Look up your overloaded account, or a model named small-2."
    for content in ({"error": {"message": told}}, told.encode()):
        server.behave = lambda *_, content=content: (401, {}, content)
        with pytest.raises(EvenrankError) as error:
            ranked(endpoint(server, "tei", concurrency=1, key="THE_KEY"))
        said = str(error.value).partition("status 401: 'Wrong API key, ")[2]
        shown, _, rest = said.partition(" Look")
        assert rest == " up your overloaded account, or a model named small-2.'"
        # Base64 mixes what comes before the key with its first letters.
        assert sum(one.isalnum() for one in shown) < 4, shown


@given(text=st.text("abx ", max_size=60), secret=st.text("ab", min_size=7, max_size=12))
def test_what_is_left_of_a_key(text: str, secret: str) -> None:
    left = Mask([secret])(text)
    windows = {one[start : start + 6] for one in (secret, secret[::-1]) for start in range(len(secret) - 5)}
    assert not [window for window in windows if window in left.replace(" ", "")]
    if not [window for window in windows if window in text.replace(" ", "")]:
        assert left == text


@pytest.mark.parametrize("location", ["http://[x", "", None, "//u:pw@[::1", "/a\x1b[2Jb"])
def test_a_redirect_to_nowhere(location: str | None, server: Server, waits: list[float]) -> None:
    server.behave = lambda *_: (302, {} if location is None else {"Location": location}, b"")
    problem = r"status 302: redirected( to /a\S*)?, which is not followed|it could not be asked \(ValueError\)"
    with pytest.raises(EvenrankError, match=rf"^[ -~]*: ({problem})$"):
        ranked(endpoint(server, concurrency=1))


@pytest.mark.parametrize("told", ["drop", "half"])
def test_a_lost_connection_leaves_no_request_in_the_chain(
    told: str, keyed: Endpoint, server: Server, waits: list[float], seen: list[str]
) -> None:
    server.behave = lambda *_: told
    with pytest.raises(EvenrankError) as error:
        ranked(keyed)
    seen += everything(error.value)
    assert error.value.__context__ is None
    assert error.value.__cause__ is None


def test_a_login_in_the_address(server: Server, tmp_path: Path, seen: list[str], waits: list[float]) -> None:
    model = Endpoint(f"http://{LOGIN}@{server.url[7:]}", "tei", timeout=20, concurrency=1)
    run = ranked(model, tmp_path / "run")
    assert {headers["Authorization"] for headers in server.headers} == {f"Basic {SECRETS[-1]}"}
    assert set(server.paths) == {"/rerank"}
    server.behave = lambda *_: (403, {}, f"{LOGIN} pass/word {SECRETS[-1]}".encode())
    with pytest.raises(EvenrankError) as error:
        ranked(model, depth=2)
    seen += [repr(model), *run.notes, str(model.scorer().facts()), *everything(error.value)]
    assert model.address.shown == f"{server.url}/rerank"
    assert str(error.value).endswith(": status 403: '… … …'")


@pytest.mark.parametrize("value", [None, "", " ", "a\nb", "kéy"])
def test_a_variable_without_a_key(value: str | None, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    if value is None:
        monkeypatch.delenv("THE_KEY", raising=False)
    else:
        monkeypatch.setenv("THE_KEY", value)
    with pytest.raises(EvenrankError, match=r"^`key`: expected [^:]*environment variable[^:]*$") as error:
        ranked(endpoint(server, key="THE_KEY"))
    assert "kéy" not in str(error.value)
    # The key itself in its place is not repeated.
    with pytest.raises(EvenrankError) as other:
        ranked(endpoint(server, key=KEY))
    assert not any(KEY in text for text in everything(other.value))
    assert server.bodies == []
