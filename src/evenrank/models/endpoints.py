"""A ranker behind an address: what it is asked, what it answers, and the answers that are kept."""

from __future__ import annotations

import base64
import copy
import hashlib
import html
import json
import os
import re
import urllib.parse
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from evenrank._command import without_values
from evenrank.files import EvenrankError
from evenrank.files.arguments import checked
from evenrank.files.errors import quoted, readable, require
from evenrank.files.outputs import is_stream
from evenrank.files.wording import counted

from .scorers import Rows, Scorer, Scores, TextPairs

if TYPE_CHECKING:
    from .endpoint_session import Session

Api = Literal["cohere", "tei", "openai"]
APIS: tuple[Api, ...] = get_args(Api)
ENDINGS: Mapping[Api, str] = {"cohere": "rerank", "tei": "rerank", "openai": "embeddings"}
"""The last part of each one's address."""


def question(api: Api, model: str | None, texts: Sequence[str], query: str | None = None) -> bytes:
    """The JSON that asks for the scores of ``texts`` for a query, or for their vectors."""
    asked: dict[str, object] = {} if model is None else {"model": model}
    if api == "cohere":
        asked |= {"query": query, "documents": texts, "top_n": len(texts)}
    elif api == "tei":
        # As they are: the sigmoid makes ties of high scores.
        asked |= {"query": query, "texts": texts, "raw_scores": True, "truncate": True}
    else:
        asked |= {"input": texts, "encoding_format": "float"}
    return json.dumps(asked).encode()


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
    found: dict[int, list[float]] = {}
    try:
        answer = json.loads(text)
        rows = answer.get(entry) if isinstance(answer, dict) else None if entry else answer
        if not isinstance(rows, list):
            where = f" as {entry!r}" if entry else ""
            raise WrongAnswerError(f"expected a list of {noun}s{where}, found", text)
        for row in rows:
            index, value = (row.get("index"), row.get(name)) if isinstance(row, dict) else (None, None)
            values = _numbers(value if api == "openai" else [value], api)
            if type(index) is not int or index not in range(size) or index in found or not values:
                problem = f"expected an 'index' from 0 to {size - 1}, each once, with a finite {name!r}, found"
                raise WrongAnswerError(problem, json.dumps(row, ensure_ascii=False))
            found[index] = values
    except (ValueError, RecursionError):
        raise WrongAnswerError("expected JSON, found", text.strip()) from None
    if len(found) < size:
        raise WrongAnswerError(f"expected {counted(size, noun)}, found {len(found)}")
    lengths = sorted({len(values) for values in found.values()})
    if len(lengths) > 1:
        raise WrongAnswerError(f"expected vectors of one length, found {lengths[0]} and {lengths[-1]} numbers")
    array = np.array([found[index] for index in range(size)], np.float64)
    return array if api == "openai" else array[:, 0]


def _numbers(values: object, api: Api) -> list[float]:
    """The same if they are usable numbers, else none: True is no number, and no float holds 10 ** 400."""
    largest = float(np.finfo("f4" if api == "openai" else "f8").max)
    if not isinstance(values, list) or not all(type(one) in (int, float) and abs(one) <= largest for one in values):
        return []
    # The cosine needs a direction.
    return values if api != "openai" or np.array(values, np.float32).any() else []


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
        if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
            found = f", found {quoted(url)}" if re.fullmatch(r"[\w./:-]{0,60}", url) else ""
            raise EvenrankError(f"`url`: expected an address with http:// or https:// and a host{found}")
        login, _, place = parts.netloc.rpartition("@")
        path = parts.path.rstrip("/") if ending else parts.path
        path = path if not ending or path.endswith(f"/{ending}") else f"{path}/{ending}"
        values = [part.partition("=")[2] or part for part in parts.query.split("&")]
        values += [urllib.parse.unquote_plus(value) for value in values]
        # A shorter one, such as a version, is in every text; {query} stands for a text.
        secrets = {value for value in values if len(value) > 5 and "{" not in value}
        header = None
        if login:
            name, word = (urllib.parse.unquote(one) for one in login.partition(":")[::2])
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
    found = os.environ.get(variable, "").strip()
    if not found:
        raise EvenrankError("`key`: expected the name of an environment variable with the key, found none there")
    if not (found.isascii() and found.isprintable()):
        raise EvenrankError("`key`: expected a key of ASCII characters on one line in the environment variable")
    return found


class Asked(Protocol):
    """What a :class:`Session` asks: an :class:`Endpoint`, or a search engine."""

    @property
    def address(self) -> Address: ...
    @property
    def scheme(self) -> str: ...
    @property
    def concurrency(self) -> int: ...
    @property
    def timeout(self) -> float: ...
    @property
    def largest_answer(self) -> int: ...
    @property
    def answers(self) -> str | os.PathLike[str] | None: ...

    def secret(self) -> str | None:
        """The key."""


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
        require("an endpoint", "endpoints", "requests", "tenacity", "urllib3")
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
    def scheme(self) -> str:
        """How the key is sent."""
        return "Bearer"

    @property
    def name(self) -> str:
        """The name of the runs that it ranks: the last part of the model's name; without one, server and port."""
        return readable((self.model or "").rstrip("/").rpartition("/")[2].strip() or self.address.place)

    def secret(self) -> str | None:
        """The key. Raises EvenrankError, without what ``key`` says (it may be the key itself), if there is none."""
        return secret_in(self.key)

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


class EndpointScorer(Scorer):
    """The scores of an :class:`Endpoint`."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint.name)
        self.endpoint, self._counts = endpoint, Counter[str]()

    def keeping_beside(self, out: str | os.PathLike[str] | None) -> EndpointScorer:
        """As :meth:`Endpoint.keeping_beside`."""
        other = copy.copy(self)
        other.endpoint, other._counts = self.endpoint.keeping_beside(out), Counter()
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
        asked, kept, again = (self._counts.pop(what, 0) for what in ("asked", "kept", "again"))
        if not asked + kept:
            return ()
        before = f"{counted(kept, 'question')} answered before"
        counts = f"{counted(asked, 'request')}, {before}, {counted(again, 'retry')}"
        return (f"{self.name}: {counts} ({self.endpoint.address.shown})",)

    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        return lambda rows: np.concatenate(list(self.each(pairs, batch_size, [rows])))

    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        from .endpoint_session import Session

        with closing(Session(self.endpoint, self._counts)) as session:
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
        for one in (endpoint.api.encode(), endpoint.address.url.encode(), (endpoint.model or "").encode(), part):
            total.update(len(one).to_bytes(8, "little") + one)
        return total.digest()


class RerankEndpointScorer(EndpointScorer):
    """The scores of a rerank service, which sees a query with ``batch_size`` of its passages in a request."""

    unit = "query"

    def _scored(self, session: Session, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        cut = [(rows, list(self._requests(pairs.query[rows], batch_size))) for rows in windows]
        answers = session.in_order(self._question(session, pairs, rows[one]) for rows, places in cut for one in places)
        for rows, places in cut:
            scores = np.empty(len(rows))
            for one in places:
                scores[one] = next(answers)
            yield scores

    def _requests(self, query: Rows, batch_size: int) -> Iterator[Rows]:
        """The places in a window of each request: passages of one ``query``, in the order of the window."""
        order = np.argsort(query, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
            yield from (places[start : start + batch_size] for start in range(0, len(places), batch_size))

    def _question(self, session: Session, pairs: TextPairs, rows: Rows) -> tuple[bytes, Callable[[], Scores]]:
        endpoint = self.endpoint
        query = str(pairs.queries[int(pairs.query[rows[0]])])
        passages = pairs.documents.gather(pairs.document[rows]).to_list()
        asked = (endpoint.query_prompt or "") + query
        shown = [(endpoint.document_prompt or "") + passage for passage in passages]
        body = question(endpoint.api, endpoint.model, shown, asked)
        # A score may depend on all passages of its request.
        key = self._digest(body)
        return key, partial(self._ask, session, key, body, f"the query {quoted(query)}", len(passages))

    def _ask(self, session: Session, key: bytes, body: bytes, about: str, size: int) -> Scores:
        (kept,) = session.answers.load([key])
        if kept is not None and len(kept) == 8 * size:
            session.count("kept")
            return np.frombuffer(kept, "<f8")
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
        found = np.array([vectors[text] for text in texts], np.float64)
        directions: NDArray[np.float64] = found / np.sqrt((found * found).sum(axis=1))[:, None]
        return directions

    def _ask(self, session: Session, texts: list[str]) -> list[NDArray[np.float32]]:
        keys = [self._digest(text.encode()) for text in texts]
        kept = dict(zip(texts, session.answers.load(keys), strict=True))
        missing = [text for text, vector in kept.items() if vector is None]
        if missing:
            body = question(self.endpoint.api, self.endpoint.model, missing)
            read = partial(answer_in, api=self.endpoint.api, size=len(missing))
            vectors = session.ask(body, _about(missing), read)
            new = {text: vector.astype("<f4").tobytes() for text, vector in zip(missing, vectors, strict=True)}
            session.answers.save((self._digest(text.encode()), vector) for text, vector in new.items())
            kept |= new
        else:
            session.count("kept")
        return [np.frombuffer(kept[text] or b"", "<f4") for text in texts]


def _about(texts: Sequence[str]) -> str:
    """What messages call a request for vectors."""
    return f"{counted(len(texts), 'text')} from {quoted(texts[0])}"
