"""Time limits on whole answers: a connection is cut when its time is up, however slowly the server goes on."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool


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
