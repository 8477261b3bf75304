"""Questions to a server over HTTP: addresses, secrets kept out of messages, limits on time, retries."""

from __future__ import annotations

import base64
import contextlib
import html
import ipaddress
import json
import logging
import re
import socket
import threading
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import requests
import urllib3
from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.util.retry import Retry

from evenrank._version import __version__
from evenrank.files import EvenrankError
from evenrank.files.errors import quoted
from evenrank.files.wording import counted

HIDDEN = "…"
"""Stands for what is not shown."""
SHORTEST = 6
"""Characters of a secret that are not shown, wherever in it they stand."""
_LONG = re.compile(r"\S{16,}")
"""What may be a secret in a form that is not known; ordinary words are shorter."""


class Mask:
    """Hides ``secrets`` in what a server says.

    Hidden is what has SHORTEST characters in a row of a secret, of its base64 or of its hexadecimal form, forwards or
    backwards, in any case and with anything but letters and digits in between: a server can put a key into such a form
    unasked, or to get it into a log. A plain word stays, so that the server's reason can be read.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self.secrets = sorted(secrets, key=lambda secret: (-len(secret), secret))
        self._windows = [(kept, self._windows_of(kept)) for kept in (_is_no_space, str.isalnum)]

    def __call__(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        for kept, windows in self._windows:
            text = _without(text, kept, windows)
        return text

    def strictly(self, text: str) -> str:
        """The same without anything long that has no space in it, if there are secrets."""
        return _LONG.sub(HIDDEN, self(text)) if self.secrets else text

    def _windows_of(self, kept: Callable[[str], bool]) -> frozenset[str]:
        forms = ("".join(_folded(one) for one in form if kept(one)) for one in self.secrets for form in _forms(one))
        return frozenset(
            one[start : start + SHORTEST]
            for form in forms
            for one in (form, form[::-1])
            for start in range(len(form) - SHORTEST + 1)
        )


def _is_no_space(character: str) -> bool:
    return not character.isspace()


def _folded(character: str) -> str:
    """A character in lower case; always a single one."""
    return character.lower()[0]


def _forms(secret: str) -> Iterator[str]:
    raw = secret.encode()
    yield from (secret, raw.hex())
    # By how many bytes come before it: three bytes are four characters.
    yield from (base64.b64encode(bytes(before) + raw).decode() for before in range(3))


def _without(text: str, kept: Callable[[str], bool], windows: frozenset[str]) -> str:
    """A text with HIDDEN for each part whose ``kept`` characters are made of ``windows``."""
    places = [place for place, one in enumerate(text) if kept(one)]
    plain = "".join(_folded(text[place]) for place in places)
    shown, done = "", 0
    for start in range(len(plain) - SHORTEST + 1):
        if plain[start : start + SHORTEST] in windows:
            first, end = places[start], places[start + SHORTEST - 1] + 1
            shown += text[done:first] + HIDDEN if first > done or not done else ""
            done = end
    return shown + text[done:]


class _WithoutQuery(logging.Filter):
    """Cuts what comes after ``?`` in the paths that urllib3 logs at DEBUG: it may be a key."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                re.sub(r"\?\S*", f"?{HIDDEN}", one) if isinstance(one, str) else one for one in record.args
            )
        return True


_without_query = _WithoutQuery()


def _without_headers(record: logging.LogRecord) -> bool:
    """Drops the warning in which urllib3 repeats headers that it cannot read: a server could put the key there."""
    return not str(record.msg).startswith("Failed to parse headers")


def hide_queries() -> None:
    """Cuts the queries of addresses from what is logged from now on."""
    for name in ("urllib3.connectionpool", "urllib3.util.retry"):
        # The same filter is added only once.
        logging.getLogger(name).addFilter(_without_query)


@dataclass(frozen=True, repr=False)
class Address:
    """Where to ask. ``shown``: what may be written of it; ``secrets``: what may not."""

    url: str
    shown: str
    login: str | None
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, url: str, ending: str) -> Address:
        """``url`` with ``/ending``, if it does not have that yet. A name and password in it become a login.

        Raises EvenrankError, without the URL, if it cannot be used.
        """
        problem = "`url`: expected an address with http:// or https:// and a host"
        try:
            parts = urllib.parse.urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            parts, host = urllib.parse.urlsplit(""), None
        if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
            found = f", found {quoted(url)}" if re.fullmatch(r"[\w./:-]{0,60}", url) else ""
            raise EvenrankError(problem + found)
        login, _, place = parts.netloc.rpartition("@")
        path = parts.path.rstrip("/")
        path = path if path.endswith(f"/{ending}") else f"{path}/{ending}"
        values = [part.partition("=")[2] or part for part in parts.query.split("&")]
        values += [urllib.parse.unquote_plus(value) for value in values]
        # A short one, such as a version, is in every text.
        secrets = {value for value in values if len(value) >= SHORTEST}
        header = None
        if login:
            pair = ":".join(urllib.parse.unquote(part) for part in login.partition(":")[::2])
            header = f"Basic {base64.b64encode(pair.encode()).decode()}"
            secrets |= {login, pair, header[6:], *(filter(None, [login.partition(":")[2], pair.partition(":")[2]]))}
        names = "&".join(
            re.sub("=.*", f"={HIDDEN}", part) if "=" in part else HIDDEN for part in parts.query.split("&")
        )
        shown = urllib.parse.urlunsplit((parts.scheme, place, path, "", "")) + (f"?{names}" if parts.query else "")
        used = urllib.parse.urlunsplit((parts.scheme, place, path, parts.query, ""))
        return cls(used, shown, header, tuple(sorted(secrets)))

    @property
    def host(self) -> str:
        """The name of the server."""
        return urllib.parse.urlsplit(self.url).hostname or ""

    @property
    def place(self) -> str:
        """The same with the port, if one is given, which tells servers on a machine apart."""
        return urllib.parse.urlsplit(self.url).netloc

    @property
    def loopback(self) -> bool:
        """Whether it is this machine, which is asked without a proxy."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")


class Deadline:
    """A limit on what the connections of one thread do, one question after the other.

    Timeouts of sockets are no such limit: each byte that comes begins them anew.
    """

    def __init__(self) -> None:
        self.passed = False
        self._lock = threading.Lock()
        self._limit: object = None
        self._line: socket.socket | None = None
        self._ended = False

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Cuts the connection after so many ``seconds`` in the block, and says so in ``passed``."""
        self.passed, self._limit = False, object()
        timer = threading.Timer(seconds, self.cut, [self._limit])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            with self._lock:
                self._limit = None
                if self._ended:
                    self._release()

    def hold(self, line: socket.socket) -> None:
        """Takes the line of a new connection; cuts it if it comes too late."""
        with self._lock:
            self._release()
            # Its own handle: TLS takes the other one over, and its number may soon be another file's.
            self._line = line.dup()
            if self.passed:
                self._shut()

    def end(self) -> None:
        """Lets the line go: now, or after the answer that may still be read from it."""
        with self._lock:
            self._ended = True
            if self._limit is None:
                self._release()

    def _release(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line, self._ended = None, False

    def cut(self, limit: object = None) -> None:
        """Cuts the connection now, if one is in use (and still within ``limit``)."""
        with self._lock:
            if self._limit is not None and limit in (None, self._limit):
                self.passed = True
                self._shut()

    def _shut(self) -> None:
        if self._line is not None:
            with contextlib.suppress(OSError):  # the server was faster
                self._line.shutdown(socket.SHUT_RDWR)


class _Limited(HTTPConnection):
    deadline: Deadline

    def _new_conn(self) -> socket.socket:
        made = super()._new_conn()
        self.deadline.hold(made)
        return made

    def close(self) -> None:
        self.deadline.end()
        super().close()


class LimitedAdapter(HTTPAdapter):
    """Puts the connections of a session, with and without proxies and TLS, under a deadline."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def get_connection_with_tls_context(
        self,
        request: PreparedRequest,
        verify: bool | str,
        proxies: dict[str, str] | None = None,
        cert: str | tuple[str, str] | None = None,
    ) -> HTTPConnectionPool:
        """The library's connections, under the deadline."""
        pool = super().get_connection_with_tls_context(request, verify, proxies, cert)
        kind = pool.ConnectionCls
        if not issubclass(kind, _Limited):
            pool.ConnectionCls = type(kind.__name__, (_Limited, kind), {"deadline": self._deadline})
        return pool


TRIES = 7
"""How often a question is asked while the server is busy, fails or cannot be reached: after 1, 2, 4, … 32 seconds."""
LONGEST_WAIT = 300.0
"""Seconds that a server may ask to wait (Retry-After) before the question is asked again."""
SHOWN = 200
"""Characters of a server's own message."""
_PAGE = 1 << 14
"""Characters of what a server said that are looked at."""
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
    """Asks one address, from any thread. ``key``: sent as a bearer token. ``timeout``: seconds for a whole answer.

    ``largest_answer``: MiB of an answer, unpacked.
    """

    def __init__(self, address: Address, key: str | None, timeout: float, largest_answer: int) -> None:
        self.address, self.timeout, self.largest_answer = address, timeout, largest_answer
        self._header = address.login if key is None else f"Bearer {key}"
        written = () if key is None else (json.dumps(key)[1:-1], html.escape(key), urllib.parse.quote(key, safe=""))
        self._mask = Mask({*(() if key is None else (key, *written)), *address.secrets})
        self._own, self._lock = threading.local(), threading.Lock()
        self._sessions: list[tuple[requests.Session, Deadline]] = []
        self._stopped = threading.Event()
        self.requests = self.retries = 0
        if "?" in address.url:
            hide_queries()
        if self._mask.secrets:
            logging.getLogger("urllib3.connection").addFilter(_without_headers)

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
        """What a server said, quoted and cut, without the secrets that it may have repeated: see :class:`Mask`."""
        return quoted(self._mask.strictly(text[:_PAGE]), limit)

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
                # A few bytes can unpack to gigabytes: urllib3 unpacks as much as is asked for.
                while part := response.raw.read1(1 << 16, decode_content=True):
                    content += part
                    if len(content) > self.largest_answer << 20:
                        return _Reply(0, f"an answer of more than {self.largest_answer} MiB (`largest_answer`)")
                status, headers = response.status_code, response.headers
                again = status == 429 or status >= 500
                wait = _seconds(headers.get("Retry-After", ""))
                text = content.decode("utf-8", "replace")
                return _Reply(status, text, wait, headers.get("Location"), again)
        except (requests.Timeout, urllib3.exceptions.TimeoutError):
            return None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            return _Reply(0, self._mask(_cause(error)), again=isinstance(error, _LOST) and not _distrusted(error))

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
            target = self._mask(_target(reply.moved)[:_PAGE])[:SHOWN]
            return f"status {reply.status}: redirected{target}, which is not followed"
        said = " ".join((message_in(_parsed(reply.text)[0]) or _without_tags(reply.text)).split())
        hint = "; try a smaller `batch_size`" if reply.status == 413 else ""
        return f"status {reply.status}" + (f": {self.quoted(said, SHOWN)}" if said else "") + hint


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
