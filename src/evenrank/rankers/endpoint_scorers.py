"""The scores of rerank services and of services of text vectors, asked over HTTP."""

from __future__ import annotations

import copy
import hashlib
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted
from evenrank.io.wording import counted

from .endpoint_apis import embedding_question, rerank_question, scores_in, vectors_in
from .endpoint_session import Session
from .endpoints import Endpoint
from .pairs import Rows, TextPairs
from .scorers import Scorer, Scores

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
