"""A server on this machine that ranks as the real ones do, and misbehaves as they do when it is told to."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

Body = dict[str, Any]


def digits(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def score_of(query: str, passage: str) -> float:
    """The score of the rerank services here."""
    return (digits(f"{query}\n{passage}") % 1_000_003) / 1e5 - 5


def vector_of(text: str) -> list[float]:
    """The vector of the service of vectors."""
    return [float(value) for value in np.random.default_rng(digits(text)).normal(size=6).astype(np.float32)]


def slow_cosine(query: str, passage: str) -> float:
    a, b = vector_of(query), vector_of(passage)
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / (sum(x * x for x in a) ** 0.5 * sum(y * y for y in b) ** 0.5)


def answer_to(path: str, body: Body) -> Any:
    """The right answer, best first, as the real services give it."""
    if path.endswith("/embeddings"):
        vectors = map(vector_of, body["input"])
        rows = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
        return {"object": "list", "data": rows, "model": "m", "usage": {"total_tokens": 7}}
    name = "relevance_score" if "documents" in body else "score"
    texts = body.get("documents", body.get("texts"))
    rows = [{"index": i, name: score_of(body["query"], text)} for i, text in enumerate(texts)]
    rows.sort(key=lambda row: -row[name])
    return {"id": "x", "results": rows} if "documents" in body else rows


class Server:
    """What it was asked, and how it answers: ``behave(number, body)`` gives None for the right answer, a JSON value, or
    (status, headers, content); "drop" closes the connection, "half" does so in the middle of the answer; a function
    writes the answer itself."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.behave: Callable[[int, Body], Any] = lambda number, body: None
        self.lock = threading.Lock()
        self.connections = 0

    def times_asked(self) -> Counter[bytes]:
        return Counter(self.bodies)


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            with server.lock:
                server.connections += 1

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(content or b"{}")
            with server.lock:
                number = len(server.bodies)
                server.bodies.append(content)
                server.headers.append(dict(self.headers))
                server.paths.append(self.path)
            told = server.behave(number, body)
            if told in ("drop", "half") or callable(told):
                self.close_connection = True
            if callable(told):
                told(self.wfile)
            if told == "drop" or callable(told):
                return
            half = told == "half"
            if half or told is None:
                told = answer_to(self.path.partition("?")[0], body)
            status, headers, answer = told if isinstance(told, tuple) else (200, {}, told)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if half else data)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    return Handler


class _Threads(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """A client that went away is no error."""


@contextmanager
def serving() -> Iterator[Server]:
    """A server on a free port, until the end of the block."""
    made = Server("")
    with _Threads(("127.0.0.1", 0), _handler(made)) as http:
        made.url = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            http.shutdown()
            thread.join()
