"""The connections of an endpoint, what it is asked again, and its answers that are kept."""

from __future__ import annotations

import base64
import html
import json
import logging
import re
import threading
import time
import urllib.parse
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from http.cookiejar import DefaultCookiePolicy
from typing import TypeVar

import requests
import urllib3
from requests.adapters import HTTPAdapter
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential
from tenacity.nap import sleep_using_event
from urllib3.util.retry import Retry

from evenrank._version import __version__
from evenrank.files import EvenrankError
from evenrank.files.errors import quoted
from evenrank.files.kept import KeptValues
from evenrank.files.wording import counted

from .endpoints import Asked, WrongAnswerError, message_in


class Answers(KeptValues):
    """Answers by the digest of their question."""

    noun, anew, application = "answers", "ask everything anew", 0x65766E72


TRIES = 7
"""How often a question is asked while the server is busy, fails or cannot be reached: after 1, 2, 4, … 32 seconds."""
LONGEST_WAIT = 300.0
"""Seconds that a server may ask to wait (Retry-After) before the question is asked again."""
SHOWN = 200
"""Characters of a server's own message."""
_AHEAD = 4
"""Questions that wait for their turn or for an earlier answer, per question in flight."""
_LOST = (requests.ConnectionError, urllib3.exceptions.ProtocolError, urllib3.exceptions.DecodeError, ConnectionError)
"""Errors of a connection that may be better next time."""
A = TypeVar("A")


class _AgainError(Exception):
    """No answer: a reason that may pass, and the seconds that the server asks to wait."""


_backoff = wait_exponential()


def _wait(state: RetryCallState) -> float:
    """The seconds before a question is asked again."""
    error = state.outcome and state.outcome.exception()
    return max(_backoff(state), error.args[1] if error else 0.0)


class _Http(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: the library would read the whole answer to find out, however much it unpacks to."""


class Session:
    """The connections and the kept answers of one call of an endpoint, for its threads.

    ``counts``: where it counts requests ("asked"), questions answered before ("kept") and other tries ("again").
    ``tell`` is called with a line, once, before a question is asked again: that may take a minute.
    """

    def __init__(self, endpoint: Asked, counts: Counter[str], tell: Callable[[str], None] = lambda _: None) -> None:
        self._tell, self._told = tell, False
        key, address = endpoint.secret(), endpoint.address
        self.endpoint, self._counts, self._lock = endpoint, counts, threading.Lock()
        self._header = address.login if key is None else f"{endpoint.scheme} {key}"
        secrets = address.secrets if key is None else {key, *address.secrets}
        # The longest first, which may have another one in it.
        self._hidden = sorted({form for one in secrets for form in _forms(one)}, key=len, reverse=True)
        if secrets:
            for name in ("urllib3.connection", "urllib3.connectionpool"):
                # They log the address with its values, and headers that cannot be read.
                logging.getLogger(name).setLevel(logging.ERROR)
        self._http = _Http()
        self._http.auth = self._signed
        self._http.trust_env = not address.loopback
        self._http.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        for scheme in ("http://", "https://"):
            self._http.mount(scheme, HTTPAdapter(pool_maxsize=endpoint.concurrency))
        kind = {"Content-Type": "application/json", "Accept": "application/json"}
        self._http.headers.update({"User-Agent": f"evenrank/{__version__}", **kind})
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self.answers = Answers(endpoint.answers)
        self._threads = ThreadPoolExecutor(endpoint.concurrency, "endpoint")

    def _signed(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """With the header; set like this, the library looks for no password in ~/.netrc."""
        if self._header is not None:
            request.headers["Authorization"] = self._header
        return request

    def in_order(self, questions: Iterable[tuple[object, Callable[[], A]]]) -> Iterator[A]:
        """The answers in the order of the questions, ``concurrency`` of which are asked at a time.

        Each is a key and what asks it. One whose key is being asked is not asked again: it gets the same answer.
        """
        waiting: deque[tuple[object, Future[A]]] = deque()
        for key, ask in questions:
            if len(waiting) == _AHEAD * self.endpoint.concurrency:
                yield waiting.popleft()[1].result()
            same = next((future for other, future in waiting if other == key), None)
            waiting.append((key, same or self._threads.submit(self._guarded, ask)))
        while waiting:
            yield waiting.popleft()[1].result()

    def _guarded(self, ask: Callable[[], A]) -> A:
        try:
            return ask()
        except BaseException as error:
            # The first failure ends all: nothing more is asked, which may cost money.
            self._failure = self._failure or error
            self._stopped.set()
            raise self._failure from None

    def close(self) -> None:
        """Asks nothing more, and waits for the answers that are on their way, so that they are kept."""
        self._stopped.set()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._http.close()
        self.answers.close()

    def count(self, what: str) -> None:
        """Counts one more."""
        with self._lock:
            self._counts[what] += 1

    def error(self, about: str, problem: str) -> EvenrankError:
        """The error of a question, which messages call ``about``."""
        return EvenrankError(f"{self.endpoint.address.shown}: {about}: {problem}")

    def ask(self, question: bytes | None, about: str, read: Callable[[str], A], url: str | None = None) -> A:
        """What ``read`` makes of the text that the server answers to a JSON text, or without one to a GET of ``url``.

        Asked again, after 1, 2, 4, … seconds or as long as the server asks for, at a status of 429 or 500 and above,
        a lost connection and no answer in time. Raises EvenrankError after TRIES, at any other status and for a wrong
        answer; redirects are not followed, as they would take texts and key elsewhere.
        """
        retrying = Retrying(
            before=self._begin,
            retry=retry_if_exception_type(_AgainError),
            wait=_wait,
            stop=stop_after_attempt(TRIES),
            sleep=sleep_using_event(self._stopped),
            before_sleep=self._before_sleep,
            reraise=True,
        )
        # The library's errors, which say the whole address, are in no traceback of ours: ``from None``.
        try:
            text = retrying(self._send, question, about, url or self.endpoint.address.url)
        except _AgainError as error:
            raise self.error(about, f"{error.args[0]} ({counted(TRIES, 'try')})") from None
        try:
            return read(text)
        except WrongAnswerError as error:
            problem, *said = error.args
            raise self.error(about, " ".join([problem, *map(self._said, said)])) from None

    def _begin(self, state: RetryCallState) -> None:
        if self._stopped.is_set():
            raise EvenrankError("nothing more is asked")
        self.count("asked" if state.attempt_number == 1 else "again")

    def _before_sleep(self, state: RetryCallState) -> None:
        with self._lock:
            told, self._told = self._told, True
        if not told and state.outcome and (error := state.outcome.exception()):
            self._tell(f"{self.endpoint.address.shown}: {error.args[0]}; asked again, up to {counted(TRIES, 'try')}")

    def _send(self, question: bytes | None, about: str, url: str) -> str:
        """What the server answers. Raises _AgainError where another try may help."""
        timeout, largest = self.endpoint.timeout, self.endpoint.largest_answer
        end = time.monotonic() + timeout
        content = bytearray()
        try:
            method = "GET" if question is None else "POST"
            with self._http.request(
                method, url, data=question, timeout=timeout, stream=True, allow_redirects=False
            ) as response:
                # Part by part, as it comes: the library's own timeout begins anew with each byte, and a few bytes can
                # unpack to gigabytes.
                while part := response.raw.read1(1 << 16, decode_content=True):
                    content += part
                    if len(content) > largest << 20:
                        raise self.error(about, f"an answer of more than {largest} MiB (`largest_answer`)")
                    if time.monotonic() > end:
                        raise requests.Timeout
        except (requests.Timeout, urllib3.exceptions.TimeoutError):
            raise _AgainError(f"no answer in {timeout:g} s", 0.0) from None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            if isinstance(error, _LOST) and not isinstance(error, requests.exceptions.SSLError):
                raise _AgainError(_cause(error), 0.0) from None
            raise self.error(about, _cause(error)) from None
        status, text = response.status_code, content.decode("utf-8", "replace")
        if 200 <= status < 300:
            return text
        reason = f"status {status}"
        if 300 <= status < 400:
            target = re.sub("//[^/]*@", "//", re.split("[?#]", response.headers.get("Location", ""))[0])
            reason += f": redirected to {self._said(target)}, which is not followed"
        elif said := message_in(text):
            reason += f": {self._said(said)}"
        if status != 429 and status < 500:
            raise self.error(about, reason + ("; try a smaller `batch_size`" if status == 413 else ""))
        wait = 0.0
        with suppress(urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
            wait = Retry().parse_retry_after(response.headers.get("Retry-After", "0"))
        if wait > LONGEST_WAIT:
            asked = f"it asks to wait {wait:,.0f} s, more than {LONGEST_WAIT:.0f}: start again later"
            raise self.error(about, f"{reason}; {asked}")
        raise _AgainError(reason, wait)

    def _said(self, text: str) -> str:
        """What a server said, quoted and cut, without the secrets that it may have repeated, or nothing of it."""
        for form in self._hidden:
            text = text.replace(form, "…")
        letters = re.sub(r"[\W_]", "", text).lower()
        # In another case, spaced or backwards.
        parts = (re.sub(r"[\W_]", "", form).lower() for form in self._hidden)
        if any(len(part) > 5 and (part in letters or part[::-1] in letters) for part in parts):
            return "a text that repeats what is secret"
        return quoted(text, SHOWN)


def _forms(secret: str) -> set[str]:
    """A secret as a server may repeat it: as it is, in base64, in an address, in HTML and in JSON."""
    packed = base64.b64encode(secret.encode()).decode().rstrip("=")
    addresses = {urllib.parse.quote(secret), urllib.parse.quote_plus(secret)}
    return {secret, packed, secret.encode().hex(), *addresses, html.escape(secret), json.dumps(secret)[1:-1]}


def _cause(error: BaseException) -> str:
    """The operating system's reason of an error, however deep it lies; the texts above it repeat the address."""
    one: BaseException | None = error
    while one is not None:
        if isinstance(one, OSError) and one.strerror:
            return one.strerror
        one = one.__cause__ or one.__context__
    return "the connection was dropped" if isinstance(error, _LOST) else f"it failed ({type(error).__name__})"
