"""The questions of one call to a server: some at a time, answers in order, nothing asked after a failure."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

from .endpoint_answers import Answers
from .endpoint_apis import WrongAnswerError
from .endpoint_http import SHOWN, Client, message_in
from .endpoints import Endpoint

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
        self.client = Client(endpoint.address, endpoint.secret(), float(endpoint.timeout))
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
