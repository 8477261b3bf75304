"""A ranker behind an address: its questions and answers, the connections, and the answers that are kept."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import logging
import os
import re
import threading
import time
import urllib.parse
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenrank import options as opt
from evenrank._command import arg, without_values
from evenrank._version import __version__
from evenrank.files import EvenrankError, Provenance
from evenrank.files.arguments import checked
from evenrank.files.convert import is_path
from evenrank.files.errors import quoted, readable, require
from evenrank.files.kept import KeptValues
from evenrank.files.outputs import is_stream
from evenrank.files.wording import counted

from .scorers import Rows, Scorer, Scores, TextPairs

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

Api = Literal["cohere", "tei", "openai"]
ENDINGS: Mapping[Api, str] = {"cohere": "rerank", "tei": "rerank", "openai": "embeddings"}
"""The last part of each one's address."""


def question(api: Api, model: str | None, texts: Sequence[str], query: str | None = None) -> bytes:
    """The JSON that asks for the scores of ``texts`` for a query, or for their vectors."""
    body: dict[str, object] = {} if model is None else {"model": model}
    if api == "cohere":
        body |= {"query": query, "documents": texts, "top_n": len(texts)}
    elif api == "tei":
        # As they are: the sigmoid makes ties of high scores.
        body |= {"query": query, "texts": texts, "raw_scores": True, "truncate": True}
    else:
        body |= {"input": texts, "encoding_format": "float"}
    return json.dumps(body).encode()


class WrongAnswerError(Exception):
    """An answer that cannot be put right: what is wrong, and, where that is to be repeated, what the server said."""


def answer_in(text: str, api: Api, size: int) -> NDArray[np.float64]:
    """The scores [size] or vectors [size, dimensions] in a server's answer, in the order of the question.

    Raises WrongAnswerError unless each text has one score, a finite number, or one vector, of 32-bit numbers that are
    not all zero and as many as in the others.
    """
    entry = {"cohere": "results", "tei": None, "openai": "data"}[api]
    name = {"cohere": "relevance_score", "tei": "score", "openai": "embedding"}[api]
    noun = "vector" if api == "openai" else "score"
    by_index: dict[int, list[float]] = {}
    try:
        answer = json.loads(text)
        rows = answer.get(entry) if isinstance(answer, dict) else None if entry else answer
        if not isinstance(rows, list):
            where = f" as {entry!r}" if entry else ""
            raise WrongAnswerError(f"expected a list of {noun}s{where}, found", text)
        for row in rows:
            index, value = (row.get("index"), row.get(name)) if isinstance(row, dict) else (None, None)
            values = _numbers(value if api == "openai" else [value], api)
            if type(index) is not int or index not in range(size) or index in by_index or not values:
                problem = f"expected an 'index' from 0 to {size - 1}, each once, with a finite {name!r}, found"
                raise WrongAnswerError(problem, json.dumps(row, ensure_ascii=False))
            by_index[index] = values
    except (ValueError, RecursionError):
        raise WrongAnswerError("expected JSON, found", text.strip()) from None
    if len(by_index) < size:
        raise WrongAnswerError(f"expected {counted(size, noun)}, found {len(by_index)}")
    lengths = sorted({len(values) for values in by_index.values()})
    if len(lengths) > 1:
        raise WrongAnswerError(f"expected vectors of one length, found {lengths[0]} and {lengths[-1]} numbers")
    array = np.array([by_index[index] for index in range(size)], np.float64)
    return array if api == "openai" else array[:, 0]


def _numbers(values: object, api: Api) -> list[float]:
    """The same if they are usable numbers, else none: True is no number, and no float holds 10 ** 400."""
    largest = float(np.finfo("f4" if api == "openai" else "f8").max)
    if not isinstance(values, list) or not all(
        type(value) in (int, float) and abs(value) <= largest for value in values
    ):
        return []
    # The cosine needs a direction.
    return values if api != "openai" or np.array(values, np.float32).any() else []


@dataclass(frozen=True, repr=False)
class Address:
    """Where to ask. ``shown``: what may be written of it; ``login``: its name and password, as a header; ``secrets``:
    what of it no message repeats."""

    url: str
    shown: str
    login: str | None
    secrets: frozenset[str]

    @classmethod
    def of(cls, url: str, ending: str) -> Address:
        """``url`` with ``/ending``, if it does not have that yet; with none, as it is. Its password is a login.

        Raises EvenrankError, without the URL if that may hold a secret, if it cannot be used.
        """
        try:
            parts = urllib.parse.urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            parts, host = urllib.parse.urlsplit(""), None
        if re.match(r"https?://[^?#]*/[^?#]*@", url):
            # What is before the first / of a password would be the host.
            raise EvenrankError(
                f"{arg.url}: expected a name or password with %2F for each /, or a path with %40 for each @"
            )
        if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
            hint = f", found {quoted(url)}" if re.fullmatch(r"[\w./:-]{0,60}", url) else ""
            raise EvenrankError(f"{arg.url}: expected an address with http:// or https:// and a host{hint}")
        login, _, place = parts.netloc.rpartition("@")
        path = parts.path.rstrip("/") if ending else parts.path
        path = path if not ending or path.endswith(f"/{ending}") else f"{path}/{ending}"
        values = [part.partition("=")[2].rstrip("=") or part for part in parts.query.split("&")]
        values += [urllib.parse.unquote_plus(value) for value in values]
        # A shorter one, such as a version, is in every text; {query} stands for a text.
        secrets = {value for value in values if len(value) > 5 and "{" not in value}
        header = None
        if login:
            name, word = (urllib.parse.unquote(part) for part in login.partition(":")[::2])
            header = f"Basic {base64.b64encode(f'{name}:{word}'.encode()).decode()}"
            secrets |= {login, f"{name}:{word}", login.partition(":")[2], word} - {""}
        hidden = without_values(parts.query)
        used = parts._replace(netloc=place, path=path, fragment="")
        return cls(used.geturl(), used._replace(query=hidden).geturl(), header, frozenset(secrets))

    @property
    def place(self) -> str:
        """The server, with the port if one is given, which tells servers on a machine apart."""
        return urllib.parse.urlsplit(self.url).netloc

    @property
    def loopback(self) -> bool:
        """Whether it is this machine, which is asked without a proxy."""
        host = urllib.parse.urlsplit(self.url).hostname or ""
        return re.fullmatch(r"(.*\.)?localhost|127(\.\d+){3}|::1", host) is not None


def secret_in(variable: str | None) -> str | None:
    """The key in an environment variable. Raises EvenrankError, without its name (it may be the key), if none."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise EvenrankError(
            f"{arg.key_env}: expected the name of an environment variable with the key, found none there"
        )
    if not (key.isascii() and key.isprintable()):
        raise EvenrankError(
            f"{arg.key_env}: expected a key of ASCII characters on one line in the environment variable"
        )
    return key


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
_LOGGERS = ("urllib3.connection", "urllib3.connectionpool")
"""They log the address with its values, and headers that cannot be read."""
A = TypeVar("A")


class Session:
    """The connections to a server and the answers that are kept, of one call, for its threads.

    ``counts``: where it counts requests ("asked"), questions answered before ("kept") and other tries ("again").
    ``tell`` is called with a line, once, before a question is asked again: that may take a minute.
    """

    def __init__(
        self,
        address: Address,
        key: str | None,
        *,
        scheme: str = "Bearer",
        concurrency: int,
        timeout: float,
        largest_answer: int,
        answers: str | os.PathLike[str] | None = None,
        counts: Counter[str] | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        from urllib3.util import make_headers

        self._address, self._timeout, self._largest = address, timeout, largest_answer
        self._counts, self._tell, self._told = Counter[str]() if counts is None else counts, tell, False
        kind = {"Content-Type": "application/json", "Accept": "application/json"}
        self._headers = {"User-Agent": f"evenrank/{__version__}", **kind, **make_headers(accept_encoding=True)}
        authorization = address.login if key is None else f"{scheme} {key}"
        if authorization is not None:
            self._headers["Authorization"] = authorization
        secrets = address.secrets if key is None else {key, *address.secrets}
        self._hidden = {form for secret in secrets for form in _forms(secret)}
        self._http = _pool_manager(address, concurrency)
        self.answers = Answers(answers)
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._failure: BaseException | None = None
        self._concurrency = concurrency
        self._threads = ThreadPoolExecutor(concurrency, "endpoint")
        for name in _LOGGERS if secrets else ():
            logging.getLogger(name).addFilter(self._unsaid)

    def in_order(self, questions: Iterable[tuple[object, Callable[[], A]]]) -> Iterator[A]:
        """The answers in the order of the questions, ``concurrency`` of which are asked at a time.

        Each is a key and what asks it. One whose key is being asked is not asked again: it gets the same answer.
        """
        waiting: deque[tuple[object, Future[A]]] = deque()
        for key, ask in questions:
            if len(waiting) == _AHEAD * self._concurrency:
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
        self._http.clear()
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._unsaid)
        self.answers.close()

    def _unsaid(self, _: logging.LogRecord) -> bool:
        return False

    def count(self, what: str) -> None:
        """Counts one more."""
        with self._lock:
            self._counts[what] += 1

    def error(self, about: str, problem: str) -> EvenrankError:
        """The error of a question, which messages call ``about``."""
        return EvenrankError(f"{self._address.shown}: {about}: {problem}")

    def ask(self, question: bytes | None, about: str, read: Callable[[str], A], url: str | None = None) -> A:
        """What ``read`` makes of the text that the server answers to a JSON text, or without one to a GET of ``url``.

        Asked again, after 1, 2, 4, … seconds or as long as the server asks for, at a status of 429 or 500 and above,
        a lost connection and no answer in time. Raises EvenrankError after TRIES, at any other status and for a wrong
        answer; redirects are not followed, as they would take texts and key elsewhere.
        """
        from urllib3 import Retry
        from urllib3.exceptions import HTTPError, MaxRetryError

        method = "GET" if question is None else "POST"
        retries = Retry(TRIES - 1, other=0, allowed_methods=None, status_forcelist=(429, *range(500, 600)))
        while True:
            if self._stopped.is_set():
                raise EvenrankError("nothing more is asked")
            self.count("again" if retries.history else "asked")
            response, lost = None, None
            # The library's errors, which say the whole address, are in no traceback of ours: ``from None``.
            try:
                response, content = self._answer(method, url or self._address.url, question, about)
            except (HTTPError, OSError, ValueError) as error:
                lost, reason = error, _reason(error, self._timeout)
            else:
                if 200 <= response.status < 300:
                    return self._read(content, about, read)
                reason = self._refusal(response, content)
                if not retries.is_retry(method, response.status):
                    raise self.error(about, reason)
            try:
                retries = retries.increment(method, self._address.shown, response, lost)
            except MaxRetryError:
                tries = counted(len(retries.history) + 1, "try")
                raise self.error(about, f"{reason} ({tries})") from None
            wait = 0.0
            with suppress(HTTPError, ValueError, OverflowError):
                wait = (retries.get_retry_after(response) if response else None) or 0.0
            if wait > LONGEST_WAIT:
                hint = f"it asks to wait {wait:,.0f} s, more than {LONGEST_WAIT:.0f}: start again later"
                raise self.error(about, f"{reason}; {hint}")
            with self._lock:
                has_warned, self._told = self._told, True
            if not has_warned:
                self._tell(f"{self._address.shown}: {reason}; asked again, up to {counted(TRIES, 'try')}")
            self._wait(max(2.0 ** (len(retries.history) - 1), wait))

    def _wait(self, seconds: float) -> None:
        self._stopped.wait(seconds)

    def _answer(self, method: str, url: str, question: bytes | None, about: str) -> tuple[BaseHTTPResponse, bytearray]:
        """What the server answers to one try. Raises EvenrankError for more than a limit, as it comes."""
        from urllib3 import Timeout

        content, end = bytearray(), time.monotonic() + self._timeout
        with self._http.urlopen(
            method,
            url,
            body=question,
            headers=self._headers,
            timeout=Timeout(total=self._timeout),
            retries=False,
            redirect=False,
            preload_content=False,
        ) as response:
            # Part by part: a few bytes can unpack to gigabytes.
            while part := response.read1(1 << 16):
                content += part
                if time.monotonic() > end:
                    raise TimeoutError
                if len(content) > self._largest << 20:
                    raise self.error(about, f"an answer of more than {self._largest} MiB (`largest_answer`)")
        return response, content

    def _read(self, content: bytearray, about: str, read: Callable[[str], A]) -> A:
        try:
            # A byte order mark is no part of the JSON.
            return read(content.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise self.error(about, "expected an answer in UTF-8, found other bytes") from None
        except WrongAnswerError as error:
            problem, *parts = error.args
            raise self.error(about, " ".join([problem, *map(self._said, parts)])) from None

    def _refusal(self, response: BaseHTTPResponse, content: bytearray) -> str:
        """What a status other than of success means, with the server's own message."""
        reason = f"status {response.status}"
        if 300 <= response.status < 400:
            target = re.sub("//.*@", "//", re.split("[?#]", response.headers.get("Location", ""))[0])
            return f"{reason}: redirected to {self._said(target)}, which is not followed"
        if message := message_in(content.decode("utf-8-sig", errors="replace")):
            reason += f": {self._said(message)}"
        return reason + (f"; try a smaller {arg.batch_size}" if response.status == 413 else "")

    def _said(self, text: str) -> str:
        """What a server said, quoted and cut; nothing of it if it repeats a secret, also spaced or backwards."""
        text = text[: 1 << 14]
        letters = _letters(text)
        for form in self._hidden:
            part = _letters(form)
            if form in text or (len(part) > 5 and (part in letters or part[::-1] in letters)):
                return "a text that repeats what is secret"
        return quoted(text, SHOWN)


def message_in(text: str) -> str:
    """A server's message, by the names that servers give it in JSON; of a page, its text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    while isinstance(value, dict | list):
        names = ("message", "error", "detail", "msg")
        value = next(filter(None, value if isinstance(value, list) else map(value.get, names)), None)
    page = re.sub(r"(?is)<(style|script)\b.*?</\1\s*>|<[^>]*>", " ", text[: 1 << 14])
    return " ".join((value if isinstance(value, str) else html.unescape(page)).split())


def _forms(secret: str) -> set[str]:
    """A secret as a server may repeat it: as it is, in base64, in an address, in HTML and in JSON."""
    packed = base64.b64encode(secret.encode()).decode().rstrip("=")
    addresses = {urllib.parse.quote(secret), urllib.parse.quote_plus(secret)}
    return {secret, packed, secret.encode().hex(), *addresses, html.escape(secret), json.dumps(secret)[1:-1]}


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


def _reason(error: BaseException, timeout: float) -> str:
    """Why there is no answer: the operating system's reason, however deep; the texts above it repeat the address."""
    from urllib3.exceptions import ProtocolError, ReadTimeoutError

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        if isinstance(cause, TimeoutError | ReadTimeoutError):
            return f"no answer in {timeout:g} s"
        cause = cause.__cause__ or cause.__context__
    return "the connection was dropped" if isinstance(error, ProtocolError) else f"it failed ({type(error).__name__})"


def _pool_manager(address: Address, concurrency: int) -> PoolManager:
    """The connections to a server, by way of the environment's proxy unless it is this machine."""
    from urllib.request import getproxies, proxy_bypass

    from urllib3 import PoolManager, ProxyManager
    from urllib3.util import make_headers, parse_url

    proxies = {} if address.loopback or proxy_bypass(address.place) else getproxies()
    proxy = proxies.get(urllib.parse.urlsplit(address.url).scheme) or proxies.get("all")
    if not proxy:
        return PoolManager(1, maxsize=concurrency)
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    try:
        login = parse_url(proxy).auth
        headers = make_headers(proxy_basic_auth=urllib.parse.unquote(login)) if login else None
        return ProxyManager(proxy, 1, proxy_headers=headers, maxsize=concurrency)
    except ValueError:
        raise EvenrankError("expected a proxy with http:// or https:// in the environment") from None


@checked
@dataclass(frozen=True)
class Endpoint:
    """A ranker that a server computes: a ``model`` for :func:`evenrank.rerank`, :func:`evenrank.load_ranker`,
    :func:`evenrank.position_sensitivity` and PyTerrier.

    ``url``: the full address, or the part before ``/rerank`` (``https://api.cohere.com/v2``, ``http://localhost:8080``)
    or ``/embeddings`` (``https://api.openai.com/v1``). ``api``: "cohere" (also Jina's, vLLM's, infinity's), "tei" (Text
    Embeddings Inference), or "openai": vectors of texts, whose cosine is the score. ``model``: the server's name of it.

    ``key_env``: the *name* of the environment variable with the key, which is sent as a bearer token and written
    nowhere. ``concurrency``: requests in flight. ``timeout``: seconds for a whole answer.
    ``largest_answer``: the MiB that it may unpack to. ``query_prompt``, ``document_prompt``: put before each text. A
    request holds ``batch_size`` passages or texts of the call that scores them.

    ``answers``: an SQLite file that keeps the answers, so that nothing is asked twice; without one,
    :func:`evenrank.rerank` keeps them in ``OUT.answers.sqlite`` beside its ``out``. It holds digests and scores or
    vectors, no texts.

    Servers that are busy (status 429), fail (500 and above) or cannot be reached are asked up to 7 times, after 1, 2,
    4, … seconds or as long as they ask for. Raises EvenrankError for a setting out of range or a variable without a
    key; the calls that score, for a server that does not answer, or not with one finite number per passage.
    """

    url: str
    api: Api
    _: KW_ONLY
    model: str | None = None
    key_env: str | None = None
    concurrency: Annotated[int, opt.CONCURRENCY] = 4
    timeout: Annotated[float, opt.SECONDS] = 60
    largest_answer: Annotated[int, opt.Range(1, 1 << 20)] = 64
    answers: str | os.PathLike[str] | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None

    def __post_init__(self) -> None:
        require("an endpoint", "endpoints", "urllib3")
        if self.model is not None and not self.model.strip():
            raise EvenrankError(f"{arg.model}: expected the server's name of a model, found {quoted(self.model)}")
        secret_in(self.key_env)
        self.address  # noqa: B018 - an error now rather than later

    def __repr__(self) -> str:
        model = "" if self.model is None else f", model={self.model!r}"
        return f"Endpoint({self.address.shown!r}, {self.api!r}{model})"

    @cached_property
    def address(self) -> Address:
        """Where it is asked, and what may be written of that."""
        return Address.of(self.url, ENDINGS[self.api])

    @property
    def name(self) -> str:
        """The name of the runs that it ranks: the last part of the model's name; without one, server and port."""
        return readable((self.model or "").rstrip("/").rpartition("/")[2].strip() or self.address.place)

    def keeping_beside(self, out: str | os.PathLike[str] | None) -> Endpoint:
        """A copy that caches answers in ``OUT.answers.sqlite``, unless it has a cache or ``out`` is no local file."""
        if self.answers is not None or out is None or "://" in os.fspath(out) or is_stream(out):
            return self
        return replace(self, answers=Path(out).with_name(f"{Path(out).name}.answers.sqlite"))

    def prompted(self, query_prompt: str | None, document_prompt: str | None) -> Endpoint:
        """A copy with other prompts; None keeps its own."""
        query = self.query_prompt if query_prompt is None else query_prompt
        document = self.document_prompt if document_prompt is None else document_prompt
        return replace(self, query_prompt=query, document_prompt=document)

    def scorer(self) -> EndpointScorer:
        """The scorer that sends pairs to this endpoint."""
        return EmbeddingEndpointScorer(self) if self.api == "openai" else RerankEndpointScorer(self)


def note_model(made: Provenance, role: str, model: object) -> None:
    """Records a model: by its files or its hub name, an endpoint by its address without what is secret in it, or by its
    type."""
    endpoint = getattr(model, "endpoint", model)
    if is_path(model):
        made.add_model(role, model)
    elif isinstance(endpoint, Endpoint):
        made.name(role, endpoint.address.shown, "asked over HTTP")
    else:
        made.name(role, type(model).__name__, "in memory")


class EndpointScorer(Scorer):
    """The scores of an :class:`Endpoint`."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint.name)
        self.endpoint, self._counts = endpoint, Counter[str]()

    def facts(self) -> dict[str, object]:
        """The properties of the ranker, as JSON values."""
        endpoint = self.endpoint
        return {
            "kind": "endpoint",
            "model": endpoint.model,
            "api": endpoint.api,
            "url": endpoint.address.shown,
            "query_prompt": endpoint.query_prompt,
            "document_prompt": endpoint.document_prompt,
        }

    def notes(self) -> tuple[str, ...]:
        requests, cached, retries = (self._counts.pop(what, 0) for what in ("asked", "kept", "again"))
        if not requests + cached:
            return ()
        before = f"{counted(cached, 'question')} answered before"
        counts = f"{counted(requests, 'request')}, {before}, {counted(retries, 'retry')}"
        return (f"{self.name}: {counts} ({self.endpoint.address.shown})",)

    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        endpoint = self.endpoint
        session = Session(
            endpoint.address,
            secret_in(endpoint.key_env),
            concurrency=endpoint.concurrency,
            timeout=endpoint.timeout,
            largest_answer=endpoint.largest_answer,
            answers=endpoint.answers,
            counts=self._counts,
        )
        with closing(session):
            yield from self._scored(session, pairs, batch_size, windows)

    @abstractmethod
    def _scored(self, session: Session, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        """The scores of each window."""

    def _digest(self, part: bytes) -> bytes:
        """A digest of all that an answer depends on, besides the settings ``part`` of the question.

        Of the address, too, with the values after its ``?``, which can name the model. One of them that is a key cannot
        be read from the digest, only guessed: by who has the whole question and tries one key after the other.
        """
        endpoint, total = self.endpoint, hashlib.sha256()
        for field in (endpoint.api.encode(), endpoint.address.url.encode(), (endpoint.model or "").encode(), part):
            total.update(len(field).to_bytes(8, "little") + field)
        return total.digest()


class RerankEndpointScorer(EndpointScorer):
    """The scores of a rerank service, which sees a query with ``batch_size`` of its passages in a request."""

    unit = "query"

    def _scored(self, session: Session, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        requests = [np.split(rows, range(batch_size, len(rows), batch_size)) for rows in windows]
        answers = session.in_order(self._question(session, pairs, rows) for window in requests for rows in window)
        for window in requests:
            yield np.concatenate([next(answers) for _ in window])

    def _question(self, session: Session, pairs: TextPairs, rows: Rows) -> tuple[bytes, Callable[[], Scores]]:
        endpoint = self.endpoint
        query = str(pairs.queries[int(pairs.query[rows[0]])])
        passages = pairs.documents.gather(pairs.document[rows]).to_list()
        query_text = (endpoint.query_prompt or "") + query
        shown = [(endpoint.document_prompt or "") + passage for passage in passages]
        body = question(endpoint.api, endpoint.model, shown, query_text)
        # A score may depend on all passages of its request.
        key = self._digest(body)
        return key, partial(self._ask, session, key, body, f"the query {quoted(query)}", len(passages))

    def _ask(self, session: Session, key: bytes, body: bytes, about: str, size: int) -> Scores:
        (cached,) = session.answers.load([key])
        if cached is not None and len(cached) == 8 * size:
            session.count("kept")
            return np.frombuffer(cached, "<f8")
        scores = session.ask(body, about, partial(answer_in, api=self.endpoint.api, size=size))
        session.answers.save([(key, scores.astype("<f8").tobytes())])
        return scores


class EmbeddingEndpointScorer(EndpointScorer):
    """The cosine of a query's and a passage's vector; each distinct text is asked for once, in batches."""

    unit = "document"

    def facts(self) -> dict[str, object]:
        return {**super().facts(), "similarity": "cosine"}

    def _scored(self, session: Session, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        if not windows:
            return
        before, own = self.endpoint.query_prompt or "", self.endpoint.document_prompt or ""
        used = np.unique(np.concatenate([pairs.query[rows] for rows in windows]))
        queries = self._directions(session, [before + text for text in pairs.queries.gather(used)], batch_size)
        for rows in windows:
            distinct, places = np.unique(pairs.document[rows], return_inverse=True)
            texts = [own + text for text in pairs.documents.gather(distinct)]
            passages = self._directions(session, texts, batch_size, queries.shape[1])
            both = zip(np.searchsorted(used, pairs.query[rows]), places, strict=True)
            # Each pair by itself, so that its score does not depend on the others.
            yield np.array([(queries[query] * passages[place]).sum() for query, place in both])

    def _directions(
        self, session: Session, texts: list[str], batch_size: int, length: int | None = None
    ) -> NDArray[np.float64]:
        """The vectors [texts, dimensions], scaled to the length 1."""
        distinct = list(dict.fromkeys(texts))
        # Always the same requests, so that a second start asks what the first one would have asked.
        batches = [distinct[start : start + batch_size] for start in range(0, len(distinct), batch_size)]
        answers = session.in_order((batch, partial(self._ask, session, batch)) for batch in batches)
        vectors: dict[str, NDArray[np.float32]] = {}
        for batch, part in zip(batches, answers, strict=True):
            for text, vector in zip(batch, part, strict=True):
                length = length or len(vector)
                if len(vector) != length:
                    file = self.endpoint.answers
                    hint = "" if file is None else f": remove {os.fspath(file)} if the model is another one than before"
                    problem = f"expected vectors of {length} numbers, found {len(vector)}{hint}"
                    raise session.error(_about(batch), problem)
                vectors[text] = vector
        matrix = np.array([vectors[text] for text in texts], np.float64)
        directions: NDArray[np.float64] = matrix / np.sqrt((matrix * matrix).sum(axis=1))[:, None]
        return directions

    def _ask(self, session: Session, texts: list[str]) -> list[NDArray[np.float32]]:
        keys = [self._digest(text.encode()) for text in texts]
        by_text = dict(zip(texts, session.answers.load(keys), strict=True))
        missing = [text for text, vector in by_text.items() if vector is None]
        if missing:
            body = question(self.endpoint.api, self.endpoint.model, missing)
            read = partial(answer_in, api=self.endpoint.api, size=len(missing))
            vectors = session.ask(body, _about(missing), read)
            new = {text: vector.astype("<f4").tobytes() for text, vector in zip(missing, vectors, strict=True)}
            session.answers.save((self._digest(text.encode()), vector) for text, vector in new.items())
            by_text |= new
        else:
            session.count("kept")
        return [np.frombuffer(by_text[text] or b"", "<f4") for text in texts]


def _about(texts: Sequence[str]) -> str:
    """What messages call a request for vectors."""
    return f"{counted(len(texts), 'text')} from {quoted(texts[0])}"
