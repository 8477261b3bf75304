"""Questions to a server over HTTP: JSON there and back, asked again while the server is busy, secrets never shown."""

from __future__ import annotations

import html
import json
import re
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass

import requests
import urllib3
from requests.auth import AuthBase
from urllib3.util.retry import Retry

from evenrank._version import __version__
from evenrank.io import EvenrankError
from evenrank.io.errors import quoted
from evenrank.io.wording import counted

from .endpoint_address import Address
from .endpoint_deadline import Deadline, LimitedAdapter
from .endpoint_secrets import hide_queries, scrubbed

TRIES = 7
"""How often a question is asked while the server is busy, fails or cannot be reached: after 1, 2, 4, … 32 seconds."""
LONGEST_WAIT = 300.0
"""Seconds that a server may ask to wait (Retry-After) before the question is asked again."""
_LARGEST = 1 << 28
"""Bytes of an answer."""
SHOWN = 200
"""Characters of a server's own message."""
_PAGE = 1 << 14
"""Characters in which it is looked for, if it is no JSON."""
_LOST = (requests.ConnectionError, urllib3.exceptions.ProtocolError, urllib3.exceptions.DecodeError, ConnectionError)
"""Errors of a connection that may be better next time."""


@dataclass(frozen=True)
class _Reply:
    """A server's answer, or why there is none (status 0)."""

    status: int
    text: str
    """The content, or the reason."""
    wait: float = 0.0
    """Seconds that the server asks to wait."""
    moved: str | None = None
    again: bool = False
    """Whether to ask again."""


class _Header(AuthBase):
    """Sets the header, and keeps requests from looking for a password in ~/.netrc."""

    def __init__(self, header: str | None) -> None:
        self.header = header

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self.header is not None:
            request.headers["Authorization"] = self.header
        return request


def _pause(stopped: threading.Event, seconds: float) -> None:
    stopped.wait(seconds)


class Client:
    """Asks one address, from any thread. ``key``: sent as a bearer token. ``timeout``: seconds for a whole answer."""

    def __init__(self, address: Address, key: str | None, timeout: float) -> None:
        self.address, self.timeout = address, timeout
        self._header = address.login if key is None else f"Bearer {key}"
        self._secrets = address.secrets
        if key is not None:
            forms = {key, json.dumps(key)[1:-1], html.escape(key), urllib.parse.quote(key, safe="")}
            self._secrets = tuple(sorted({*forms, *address.secrets}, key=lambda secret: (-len(secret), secret)))
        self._own, self._lock = threading.local(), threading.Lock()
        self._sessions: list[tuple[requests.Session, Deadline]] = []
        self._stopped = threading.Event()
        self.requests = self.retries = 0
        if "?" in address.url:
            hide_queries()

    def ask(self, question: bytes, about: str) -> object:
        """The JSON value that the server answers to a JSON text. ``about``: what messages call the question.

        Asked again, after 1, 2, 4, … seconds or as long as the server asks for, at a status of 429 or 500 and above,
        a lost connection and no answer in time. Raises EvenrankError after TRIES, at any other status and for what is
        no JSON; redirects are not followed, as they would take texts and key elsewhere.
        """
        reply = self._replied(question, about)
        if not 200 <= reply.status < 300:
            raise self.error(about, self._reason(reply))
        value, sound = _parsed(reply.text)
        if not sound:
            text = reply.text.strip()
            raise self.error(about, f"expected JSON, found {self.quoted(text) if text else 'nothing'}")
        return value

    def error(self, about: str, problem: str) -> EvenrankError:
        """The error of a question."""
        return EvenrankError(f"{self.address.shown}: {about}: {problem}")

    def quoted(self, text: str, limit: int = 60) -> str:
        """What a server said, quoted and cut, without the secrets that it may have repeated."""
        return quoted(self._scrubbed(text), limit)

    def stop(self) -> None:
        """Questions that are being asked are not asked again."""
        self._stopped.set()

    @property
    def stopped(self) -> bool:
        """Whether nothing is to be asked any more."""
        return self._stopped.is_set()

    def cut(self) -> None:
        """Waits for no answer any more."""
        with self._lock:
            for _, deadline in self._sessions:
                deadline.cut()

    def close(self) -> None:
        """Closes all connections."""
        for session, _ in self._sessions:
            session.close()

    def _replied(self, question: bytes, about: str) -> _Reply:
        """The last reply: the first one that is no reason to ask again."""
        for number in range(TRIES):
            with self._lock:
                self.requests += not number
                self.retries += number > 0
            reply = self._send(question)
            if not reply.again or self._stopped.is_set():
                return reply
            if reply.wait > LONGEST_WAIT:
                wait = f"it asks to wait {reply.wait:,.0f} s, more than {LONGEST_WAIT:.0f}: start again later"
                raise self.error(about, f"{self._reason(reply)}; {wait}")
            if number + 1 < TRIES:
                _pause(self._stopped, max(reply.wait, 2.0**number))
                if self._stopped.is_set():
                    return reply
        raise self.error(about, f"{self._reason(reply)} ({counted(TRIES, 'try')})")

    def _send(self, question: bytes) -> _Reply:
        session, deadline = self._session()
        with deadline.within(self.timeout):
            reply = self._exchange(session, question)
        # What was read of an answer that was cut may look whole.
        return _Reply(0, f"no answer in {self.timeout:g} s", again=True) if deadline.passed or reply is None else reply

    def _exchange(self, session: requests.Session, question: bytes) -> _Reply | None:
        """A question and its answer; None after a timeout."""
        # The library's errors hold the request with its key: none of them may be in the chain of ours.
        try:
            with session.post(
                self.address.url, question, timeout=self.timeout, stream=True, allow_redirects=False
            ) as response:
                content = bytearray()
                while part := response.raw.read1(1 << 16, decode_content=True):
                    content += part
                    if len(content) > _LARGEST:
                        return _Reply(0, f"an answer of more than {_LARGEST >> 20} MiB")
                status, headers = response.status_code, response.headers
                again = status == 429 or status >= 500
                wait = _seconds(headers.get("Retry-After", ""))
                text = content.decode("utf-8", "replace")
                return _Reply(status, text, wait, headers.get("Location"), again)
        except (requests.Timeout, urllib3.exceptions.TimeoutError):
            return None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            return _Reply(0, self._scrubbed(_cause(error)), again=isinstance(error, _LOST) and not _distrusted(error))

    def _session(self) -> tuple[requests.Session, Deadline]:
        """This thread's connection and what limits it."""
        own: tuple[requests.Session, Deadline] | None = getattr(self._own, "session", None)
        if own is None:
            session, deadline = own = self._own.session = requests.Session(), Deadline()
            for scheme in ("http://", "https://"):
                session.mount(scheme, LimitedAdapter(deadline))
            session.auth = _Header(self._header)
            session.trust_env = not self.address.loopback
            session.headers.update(
                {
                    "User-Agent": f"evenrank/{__version__}",
                    "Content-Type": "application/json",
                    "Accept": "application/json",
                }
            )
            with self._lock:
                self._sessions.append(own)
        return own

    def _reason(self, reply: _Reply) -> str:
        """Why a reply is no answer."""
        if not reply.status:
            return reply.text
        if 300 <= reply.status < 400:
            target = self._scrubbed(_target(reply.moved))[:SHOWN]
            return f"status {reply.status}: redirected{target}, which is not followed"
        said = " ".join((message_in(_parsed(reply.text)[0]) or _without_tags(reply.text)).split())
        hint = "; try a smaller `batch_size`" if reply.status == 413 else ""
        return f"status {reply.status}" + (f": {self.quoted(said, SHOWN)}" if said else "") + hint

    def _scrubbed(self, text: str) -> str:
        return scrubbed(text, self._secrets)


def _parsed(text: str) -> tuple[object, bool]:
    """A JSON value, and whether the text is one."""
    try:
        return json.loads(text), True
    except (ValueError, RecursionError):
        return None, False


def _without_tags(page: str) -> str:
    """The text at the beginning of an HTML page, if it is one."""
    return html.unescape(re.sub(r"(?is)<(script|style)\b.*?</\1\s*>|<[^>]*>", " ", page[:_PAGE]))


def message_in(value: object, depth: int = 9) -> str | None:
    """The message in a server's JSON, by the names that servers give it."""
    if isinstance(value, str) or not depth:
        return value if isinstance(value, str) else None
    if isinstance(value, dict):
        names = [name for name in ("message", "error", "detail", "msg") if name in value]
        return next(filter(None, (message_in(value[name], depth - 1) for name in names)), None)
    return message_in(value[0], depth - 1) if isinstance(value, list) and value else None


def _target(location: str | None) -> str:
    """Where a redirect leads, without a login and without what comes after ``?``."""
    try:
        moved = urllib.parse.urlsplit(location or "")
    except ValueError:
        return ""
    place = f"{moved.scheme}://{moved.netloc.rpartition('@')[2]}" if moved.netloc else ""
    return f" to {place}{moved.path}" if place + moved.path else ""


def _seconds(header: str) -> float:
    """The seconds of a Retry-After, a number or a date; 0 without one."""
    try:
        # Its own limit is far above LONGEST_WAIT.
        return Retry().parse_retry_after(header)
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        return 0.0


def _cause(error: BaseException) -> str:
    """The operating system's reason of an error, however deep it lies; the texts above it repeat the address."""
    for one in _chain(error):
        if _distrusted(one):
            return "no trusted connection (its certificate is not valid here)"
        if isinstance(one, OSError) and not isinstance(one, requests.RequestException) and one.strerror:
            return one.strerror
    if isinstance(error, _LOST):
        return "the connection was dropped"
    return f"it could not be asked ({type(error).__name__})"


def _distrusted(error: BaseException) -> bool:
    return isinstance(error, requests.exceptions.SSLError | urllib3.exceptions.SSLError)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, BaseException) and not any(one is other for other in seen):
            seen.append(one)
            yield one
            waiting += [*one.args, getattr(one, "reason", None), one.__cause__, one.__context__]
