"""A ranker behind an address: what it is asked, what it answers, and the answers that are kept."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import sqlite3
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from evenrank.files import EvenrankError, InputError
from evenrank.files.arguments import checked
from evenrank.files.errors import quoted, readable
from evenrank.files.outputs import is_stream
from evenrank.files.wording import counted

from .endpoint_http import SHOWN, Address, Client, message_in
from .scorers import Rows, Scorer, Scores, TextPairs

Api = Literal["cohere", "tei", "openai"]
APIS: tuple[Api, ...] = get_args(Api)
ENDINGS: Mapping[Api, str] = {"cohere": "rerank", "tei": "rerank", "openai": "embeddings"}
"""The last part of each one's address."""


class WrongAnswerError(Exception):
    """An answer that cannot be put right: what was expected, and what was found, whole if it is the server's own."""

    def __init__(self, expected: str, found: str, *, own: bool = True) -> None:
        super().__init__(expected, found)
        self.expected, self.found, self.own = expected, found, own


def rerank_question(api: Api, model: str | None, query: str, passages: Sequence[str]) -> bytes:
    """The JSON that asks for the scores of all ``passages``."""
    if api == "cohere":
        asked = {"query": query, "documents": list(passages), "top_n": len(passages)}
    else:
        # As they are: the sigmoid makes ties of high scores.
        asked = {"query": query, "texts": list(passages), "raw_scores": True, "truncate": True}
    return _json(asked, model)


def embedding_question(model: str | None, texts: Sequence[str]) -> bytes:
    """The JSON that asks for the vectors of ``texts``."""
    return _json({"input": list(texts), "encoding_format": "float"}, model)


def _json(asked: Mapping[str, object], model: str | None) -> bytes:
    return json.dumps(({} if model is None else {"model": model}) | dict(asked)).encode()


def scores_in(answer: object, api: Api, size: int) -> NDArray[np.float64]:
    """The scores [size] in a server's answer, in the order of the question.

    Raises WrongAnswerError unless each passage has exactly one score, a finite number.
    """
    name = "relevance_score" if api == "cohere" else "score"
    rows = _entry(answer, "results") if api == "cohere" else answer
    values = _by_index(rows, size, name, "score")
    wrong = next((value for value in values if not _is_number(value)), None)
    if wrong is not None or None in values:
        raise WrongAnswerError("finite numbers as scores", _text(wrong))
    return np.array(values, np.float64)


def vectors_in(answer: object, size: int) -> NDArray[np.float32]:
    """The vectors [size, dimensions] in a server's answer, in the order of the question.

    Raises WrongAnswerError unless each text has one vector, of finite numbers and not of zeros alone, all of a length.
    """
    values = _by_index(_entry(answer, "data"), size, "embedding", "vector")
    for value in values:
        if not isinstance(value, list) or not value:
            raise WrongAnswerError("vectors as lists of numbers", _text(value))
        if not all(map(_is_number, value)):
            wrong = next(number for number in value if not _is_number(number))
            raise WrongAnswerError("finite numbers in vectors", _text(wrong))
    lengths = sorted({len(value) for value in values if isinstance(value, list)})
    if len(lengths) > 1:
        raise WrongAnswerError("vectors of one length", f"{lengths[0]} and {lengths[-1]} numbers", own=False)
    vectors = np.array(values, np.float64)
    if (np.abs(vectors) > np.finfo(np.float32).max).any():
        raise WrongAnswerError("numbers of 32 bits in vectors", "larger ones", own=False)
    single = vectors.astype(np.float32)
    if not single.any(axis=1).all():
        raise WrongAnswerError("vectors with a direction", "zeros only", own=False)
    return single


def _entry(answer: object, name: str) -> object:
    if not isinstance(answer, dict) or name not in answer:
        raise WrongAnswerError(f"an object with {name!r}", _text(answer))
    return answer[name]


def _by_index(rows: object, size: int, name: str, noun: str) -> list[object]:
    """The value ``name`` of each of ``size`` things, wherever in the answer it stands."""
    if not isinstance(rows, list):
        raise WrongAnswerError(f"a list of {noun}s", _text(rows))
    values: dict[int, object] = {}
    for row in rows:
        if not isinstance(row, dict) or not {"index", name} <= row.keys():
            raise WrongAnswerError(f"entries with 'index' and {name!r}", _text(row))
        index = row["index"]
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < size:
            raise WrongAnswerError(f"an index from 0 to {size - 1}", _text(index))
        if index in values:
            raise WrongAnswerError(f"one {noun} for each text", f"two for the index {index}", own=False)
        values[index] = row[name]
    if len(values) < size:
        raise WrongAnswerError(counted(size, noun), str(len(values)), own=False)
    return [values[index] for index in range(size)]


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    except RecursionError:
        return "lists in lists in lists"


@checked
@dataclass(frozen=True)
class Endpoint:
    """A ranker that a server computes: a ``model`` for :func:`evenrank.rerank`, :func:`evenrank.load_ranker`,
    :func:`evenrank.position_sensitivity` and PyTerrier.

    ``url``: the full address, or the part before ``/rerank`` (``https://api.cohere.com/v2``, ``http://localhost:8080``)
    or ``/embeddings`` (``https://api.openai.com/v1``). ``api``: "cohere" (also Jina's, vLLM's, infinity's), "tei" (Text
    Embeddings Inference), or "openai": vectors of texts, whose cosine is the score. ``model``: the server's name of it.

    ``key``: the *name* of the environment variable with the key, which is sent as a bearer token and written nowhere.
    ``concurrency``: requests in flight. ``timeout``: seconds for an answer; ``largest_answer``: the MiB that it may
    unpack to. ``query_prompt``, ``document_prompt``: put before each text. A request holds ``batch_size`` passages or
    texts of the call that scores them.

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
    key: str | None = None
    concurrency: int = 4
    timeout: float = 60
    largest_answer: int = 64
    answers: str | os.PathLike[str] | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None

    def __post_init__(self) -> None:
        if self.model is not None and not self.model.strip():
            raise EvenrankError(f"`model`: expected the server's name of a model, found {quoted(self.model)}")
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

    def secret(self) -> str | None:
        """The key. Raises EvenrankError, without what ``key`` says (it may be the key itself), if there is none."""
        if self.key is None:
            return None
        found = os.environ.get(self.key, "").strip()
        if not found:
            raise EvenrankError("`key`: expected the name of an environment variable with the key, found none there")
        if not (found.isascii() and found.isprintable()):
            raise EvenrankError("`key`: expected a key of ASCII characters on one line in the environment variable")
        return found

    def keeping_beside(self, out: str | os.PathLike[str] | None) -> Endpoint:
        """The same with its answers kept in ``OUT.answers.sqlite``, unless they have a file or ``out`` is none here."""
        if self.answers is not None or out is None or "://" in os.fspath(out) or is_stream(out):
            return self
        return replace(self, answers=Path(out).with_name(f"{Path(out).name}.answers.sqlite"))

    def prompted(self, query_prompt: str | None, document_prompt: str | None) -> Endpoint:
        """The same with other prompts; None: its own."""
        query = self.query_prompt if query_prompt is None else query_prompt
        document = self.document_prompt if document_prompt is None else document_prompt
        return replace(self, query_prompt=query, document_prompt=document)

    def scorer(self) -> EndpointScorer:
        """What scores pairs with it."""

        self.secret()
        return EmbeddingEndpointScorer(self) if self.api == "openai" else RerankEndpointScorer(self)


def shown_address(model: object) -> str | None:
    """The address of an endpoint or its scorer, without what is secret in it; None for any other model."""
    endpoint = getattr(model, "endpoint", model)
    return endpoint.address.shown if isinstance(endpoint, Endpoint) else None


_APPLICATION = 0x65766E72
"""Marks the file as ours, in SQLite's own field for that."""
_VERSION = 1
_HEAD = b"SQLite format 3\0"
_MARK = 8
"""Bytes of a digest before each answer: SQLite does not notice every damage."""
_LOCKED = 60
"""Seconds to wait for another process that writes."""


class Answers:
    """Answers by the digest of their question, in the file ``path``; None: in a temporary one, gone when closed.

    Written as they come (a process that is killed loses none of them), from any thread and from several processes.
    Raises InputError for a file that is damaged, cannot be written or belongs to another program, which stays as it is.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.Lock()
        if path is not None:
            _check(path)
        with self._errors():
            # An empty name is a temporary file, which grows out of the memory only where it must.
            self._base = sqlite3.connect(
                self.path or "", timeout=_LOCKED, check_same_thread=False, isolation_level=None
            )
            self._base.text_factory = bytes  # there is no text in it, unless it is damaged
            try:
                self._begin()
            except BaseException:
                self._base.close()
                raise

    def _begin(self) -> None:
        (application,), (version,) = (
            self._base.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        held = self._base.execute("SELECT type, name FROM sqlite_master").fetchall()
        # A view in the table's place could be made to run for ever.
        own = application == _APPLICATION and held in ([], [(b"table", b"answers")])
        if self.path is not None and not own and (application or held):
            raise InputError(self.path, "expected answers that evenrank kept, found another program's database")
        if self.path is not None and application == _APPLICATION and version != _VERSION:
            raise InputError(self.path, f"expected answers in version {_VERSION}, found version {version}")
        self._base.execute("PRAGMA journal_mode = WAL")
        # Enough for a process that is killed; a power cut can lose the last answers, but never damages the file.
        self._base.execute("PRAGMA synchronous = NORMAL")
        self._base.execute("BEGIN IMMEDIATE")
        self._base.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._base.execute(f"PRAGMA user_version = {_VERSION}")
        self._base.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
        self._base.execute("COMMIT")

    def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The answers [keys]; None where there is none."""
        with self._lock, self._errors():
            find = "SELECT value FROM answers WHERE key = ?"
            found = [self._base.execute(find, (key,)).fetchone() for key in keys]
        return [None if row is None else self._sound(key, row[0]) for key, row in zip(keys, found, strict=True)]

    def save(self, answers: Iterable[tuple[bytes, bytes]]) -> None:
        """Keeps answers, all or none of them."""
        rows = [(key, _mark(key, value) + value) for key, value in answers]
        with self._lock, self._errors():
            self._base.execute("BEGIN IMMEDIATE")
            try:
                self._base.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", rows)
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._base.close()

    def _sound(self, key: bytes, kept: object) -> bytes:
        if isinstance(kept, bytes) and kept[:_MARK] == _mark(key, kept[_MARK:]):
            return kept[_MARK:]
        raise self._damaged("an answer is not what was written")

    def _damaged(self, reason: object) -> InputError:
        return InputError(self.path or "answers", f"damaged answers ({reason}): remove the file to ask everything anew")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise InputError(self.path or "answers", f"cannot be used: {error}") from None
        except (sqlite3.Error, UnicodeDecodeError, TypeError) as error:
            raise self._damaged(error) from None


def _mark(key: bytes, value: bytes) -> bytes:
    return hashlib.sha256(key + value).digest()[:_MARK]


def _check(path: str | os.PathLike[str]) -> None:
    """Raises InputError for what cannot be a file of answers, before SQLite touches it."""
    if "://" in os.fspath(path) or is_stream(path):
        raise InputError(path, "expected a file on this machine for answers")
    try:
        with open(path, "rb") as file:
            head = file.read(len(_HEAD))
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(path, f"cannot be used: {error.strerror}") from None
    if head and head != _HEAD:
        raise InputError(path, "expected answers that evenrank kept, found another file")


_AHEAD = 4
"""Questions that wait for their turn or for an earlier answer, per question in flight."""
_PATIENCE = 10.0
"""Seconds to wait, after a failure or an interruption, for answers that are on their way."""


class Question(Protocol):
    @property
    def key(self) -> object:
        """The same for the same question."""


Q = TypeVar("Q", bound=Question)
A = TypeVar("A")


class _StoppedError(Exception):
    pass


class Session:
    """The connections, the kept answers and the counts of one call."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.kept = endpoint, 0
        self._lock = threading.Lock()
        self.client = Client(endpoint.address, endpoint.secret(), float(endpoint.timeout), endpoint.largest_answer)
        self.answers = Answers(endpoint.answers)
        self._threads = ThreadPoolExecutor(endpoint.concurrency, "endpoint")
        self._failure: BaseException | None = None
        self._impatience = threading.Timer(_PATIENCE, self.client.cut)
        self._impatience.daemon = True

    def in_order(self, ask: Callable[[Q], A], questions: Iterable[Q]) -> Iterator[A]:
        """The answers in the order of the questions, ``concurrency`` of which are asked at a time.

        A question that is being asked is not asked again: it gets the same answer.
        """

        def asked(question: Q) -> A:
            if self.client.stopped:
                raise _StoppedError
            try:
                return ask(question)
            except BaseException as error:
                # The first failure ends all: nothing more is asked, which may cost money.
                self._failure = self._failure or error
                self._stop()
                raise

        most = _AHEAD * self.endpoint.concurrency
        waiting: deque[tuple[object, Future[A]]] = deque()
        for question in questions:
            if len(waiting) == most:
                yield self._result(waiting.popleft()[1])
            same = next((future for key, future in waiting if key == question.key), None)
            waiting.append((question.key, same or self._threads.submit(asked, question)))
        while waiting:
            yield self._result(waiting.popleft()[1])

    def count_kept(self) -> None:
        """Counts a question that was answered before."""
        with self._lock:
            self.kept += 1

    def _result(self, future: Future[A]) -> A:
        error = future.exception()
        if error is not None:
            raise self._failure or error
        return future.result()

    def _stop(self) -> None:
        """Asks nothing more, and soon waits for no answer either."""
        with self._lock:
            if not self.client.stopped:
                self.client.stop()
                self._impatience.start()

    def close(self) -> None:
        """Waits a while for the answers that are on their way, so that they are kept, and asks nothing more."""
        self._stop()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._impatience.cancel()
        self.client.close()
        self.answers.close()

    def checked(self, about: str, answer: object, read: Callable[[object], A]) -> A:
        """What ``read`` finds in an answer. Raises EvenrankError, which says what it is about, for a wrong one."""
        try:
            return read(answer)
        except WrongAnswerError as error:
            wrong = error
        found = self.client.quoted(wrong.found) if wrong.own else wrong.found
        # Some servers fail with status 200.
        if isinstance(answer, dict) and not answer.keys() & {"results", "data"} and (said := message_in(answer)):
            found = f"the message {self.client.quoted(said, SHOWN)}"
        raise self.client.error(about, f"expected {wrong.expected}, found {found}")


_COSINES = 1 << 12
"""Cosines computed at once."""


class EndpointScorer(Scorer):
    """The scores of an :class:`Endpoint`."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint.name)
        self.endpoint = endpoint
        self._counts = np.zeros(3, np.int64)

    def keeping_beside(self, out: str | os.PathLike[str] | None) -> EndpointScorer:
        """As :meth:`Endpoint.keeping_beside`."""
        other = copy.copy(self)
        other.endpoint, other._counts = self.endpoint.keeping_beside(out), np.zeros(3, np.int64)
        return other

    @property
    def answers(self) -> str | os.PathLike[str] | None:
        """The endpoint's."""
        return self.endpoint.answers

    def facts(self) -> dict[str, object]:
        """What the ranker is, as JSON values."""
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
        asked, kept, again = self._counts.tolist()
        self._counts[:] = 0
        if not asked + kept:
            return ()
        before = f"{counted(kept, 'question')} answered before"
        counts = f"{counted(asked, 'request')}, {before}, {counted(again, 'retry')}"
        return (f"{self.name}: {counts} ({self.endpoint.address.shown})",)

    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        def score(rows: Rows) -> Scores:
            (scores,) = self.each(pairs, batch_size, [rows])
            return scores

        return score

    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        with self._session() as session:
            yield from self._scored(session, pairs, batch_size, windows)

    @abstractmethod
    def _scored(self, session: Session, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        """The scores of each window."""

    @contextmanager
    def _session(self) -> Iterator[Session]:
        session = Session(self.endpoint)
        try:
            yield session
        finally:
            session.close()
            self._counts += (session.client.requests, session.kept, session.client.retries)

    def _digest(self, *parts: bytes) -> bytes:
        """A digest of all that an answer depends on.

        Of the address, too, with the values after its ``?``, which can name the model. One of them that is a key cannot
        be read from the digest, only guessed: by who has the whole question and tries one key after the other.
        """
        total = hashlib.sha256()
        for part in (self.endpoint.api.encode(), self.endpoint.address.url.encode(), *parts):
            total.update(len(part).to_bytes(8, "little") + part)
        return total.digest()


@dataclass(frozen=True)
class _Asked:
    """A question of a rerank service."""

    key: bytes
    body: bytes
    query: str
    size: int


class RerankEndpointScorer(EndpointScorer):
    """The scores of a rerank service, which sees a query with ``batch_size`` of its passages in a request.

    ``listwise``: with all of its passages of a call, in their order, for services whose scores depend on the others.
    """

    unit = "query"
    listwise_capable = True
    listwise = False

    def _scored(self, session: Session, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        def questions() -> Iterator[_Asked]:
            for rows in windows:
                for places in self._requests(pairs, rows, batch_size):
                    yield self._question(pairs, rows[places])

        answers = session.in_order(lambda question: self._ask(session, question), questions())
        for rows in windows:
            scores = np.empty(len(rows))
            for places in self._requests(pairs, rows, batch_size):
                scores[places] = next(answers)
            yield scores

    def _requests(self, pairs: TextPairs, rows: Rows, batch_size: int) -> Iterator[Rows]:
        """The places in ``rows`` of each request: passages of one query, in the order of the rows."""
        query = pairs.query[rows]
        order = np.argsort(query, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
            size = max(len(places), 1) if self.listwise else batch_size
            yield from (places[start : start + size] for start in range(0, len(places), size))

    def _question(self, pairs: TextPairs, rows: Rows) -> _Asked:
        endpoint = self.endpoint
        query = str(pairs.queries[int(pairs.query[rows[0]])])
        passages = pairs.documents.gather(pairs.document[rows]).to_list()
        asked = (endpoint.query_prompt or "") + query
        shown = [(endpoint.document_prompt or "") + passage for passage in passages]
        # A score may depend on all passages of its request.
        body = rerank_question(endpoint.api, endpoint.model, asked, shown)
        return _Asked(self._digest((endpoint.model or "").encode(), body), body, query, len(passages))

    def _ask(self, session: Session, question: _Asked) -> Scores:
        (kept,) = session.answers.load([question.key])
        if kept is not None and len(kept) == 8 * question.size:
            session.count_kept()
            return np.frombuffer(kept, "<f8")
        about = f"the query {quoted(question.query)}"
        scores = session.checked(
            about, session.client.ask(question.body, about), lambda answer: self._read(answer, question.size)
        )
        session.answers.save([(question.key, scores.astype("<f8").tobytes())])
        return scores

    def _read(self, answer: object, size: int) -> Scores:
        return scores_in(answer, self.endpoint.api, size)


@dataclass(frozen=True)
class _Texts:
    """Texts of one request, prompts included."""

    texts: list[str]

    @property
    def key(self) -> object:
        return id(self)


class EmbeddingEndpointScorer(EndpointScorer):
    """The cosine of a query's and a passage's vector; each distinct text is asked for once, in batches."""

    unit = "document"

    def facts(self) -> dict[str, object]:
        return {**super().facts(), "similarity": "cosine"}

    def _scored(self, session: Session, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        if not windows:
            return
        before, own = self.endpoint.query_prompt or "", self.endpoint.document_prompt or ""
        used, place = np.unique(np.concatenate([pairs.query[rows] for rows in windows]), return_inverse=True)
        queries = self._directions(session, [before + text for text in pairs.queries.gather(used)], batch_size)
        start = 0
        for rows in windows:
            distinct, document = np.unique(pairs.document[rows], return_inverse=True)
            texts = [own + text for text in pairs.documents.gather(distinct)]
            passages = self._directions(session, texts, batch_size, queries.shape[1])
            query = place[start : start + len(rows)]
            start += len(rows)
            scores = np.empty(len(rows))
            for first in range(0, len(rows), _COSINES):
                part = slice(first, first + _COSINES)
                # Each row is summed by itself, so that its score does not depend on the others.
                scores[part] = (queries[query[part]] * passages[document[part]]).sum(axis=1)
            yield scores

    def _directions(
        self, session: Session, texts: list[str], batch_size: int, length: int | None = None
    ) -> NDArray[np.float64]:
        """The vectors [texts, dimensions], scaled to the length 1."""
        row = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        distinct = list(row)
        # Always the same requests, so that a second start asks what the first one would have asked.
        batches = [_Texts(distinct[start : start + batch_size]) for start in range(0, len(distinct), batch_size)]
        parts: list[NDArray[np.float32]] = []
        for batch, part in zip(batches, session.in_order(lambda one: self._ask(session, one), batches), strict=True):
            length = length or part.shape[1]
            if part.shape[1] != length:
                raise self._uneven(session, batch.texts, length, part.shape[1])
            parts.append(part)
        vectors = np.concatenate(parts)[[row[text] for text in texts]].astype(np.float64)
        directions: NDArray[np.float64] = vectors / np.sqrt((vectors * vectors).sum(axis=1))[:, None]
        return directions

    def _ask(self, session: Session, asked: _Texts) -> NDArray[np.float32]:
        model = self.endpoint.model
        keys = [self._digest((model or "").encode(), text.encode()) for text in asked.texts]
        found = session.answers.load(keys)
        missing = [number for number, kept in enumerate(found) if kept is None]
        if missing:
            texts = [asked.texts[number] for number in missing]
            about = _about(texts)
            vectors = session.checked(
                about,
                session.client.ask(embedding_question(model, texts), about),
                lambda answer: vectors_in(answer, len(texts)),
            )
            new = [vector.astype("<f4").tobytes() for vector in vectors]
            session.answers.save([(keys[number], vector) for number, vector in zip(missing, new, strict=True)])
            for number, vector in zip(missing, new, strict=True):
                found[number] = vector
        else:
            session.count_kept()
        kept = [np.frombuffer(one, "<f4") for one in found if one is not None]
        lengths = sorted({len(one) for one in kept})
        if len(lengths) > 1:
            raise self._uneven(session, asked.texts, lengths[0], lengths[-1])
        return np.array(kept, np.float32)

    def _uneven(self, session: Session, texts: Sequence[str], length: int, other: int) -> EvenrankError:
        answers = self.endpoint.answers
        kept = "" if answers is None else f": remove {os.fspath(answers)} if the model is another one than before"
        return session.client.error(_about(texts), f"expected vectors of {length} numbers, found {other}{kept}")


def _about(texts: Sequence[str]) -> str:
    """What messages call a request for vectors."""
    return f"{counted(len(texts), 'text')} from {quoted(texts[0])}"
