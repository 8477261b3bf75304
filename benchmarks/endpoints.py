"""Overhead of an endpoint: what a request costs beside a bare loop of urllib3 to the same server."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .measure import Row

QUERIES, PASSAGES = 300, 32


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = [{"index": index, "score": 1.0 / (1 + index)} for index in range(len(asked["texts"]))]
        data = json.dumps(rows).encode()
        # In one piece: two would wait for one another (Nagle's algorithm), and hide all other costs.
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        self.wfile.write(head.encode() + data)

    def log_message(self, *_: object) -> None:
        pass


def _texts() -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, float]]]:
    queries = {f"q{number}": f"what is number {number}" for number in range(QUERIES)}
    passages = {
        f"d{number}": f"passage {number} " + "and some more words " * 15 for number in range(QUERIES + PASSAGES)
    }
    names = list(passages)
    run = {
        query: {names[number + place]: -float(place) for place in range(PASSAGES)}
        for number, query in enumerate(queries)
    }
    return queries, passages, run


def _bare(url: str) -> float:
    import urllib3

    queries, passages, run = _texts()
    start = time.perf_counter()
    with urllib3.PoolManager() as pool:
        for query, listed in run.items():
            body = {"query": queries[query], "texts": [passages[one] for one in listed], "truncate": True}
            pool.request("POST", f"{url}/rerank", json=body, timeout=60).json()
    return time.perf_counter() - start


def _ours(url: str, out: Path) -> float:
    import evenrank

    queries, passages, run = _texts()
    model = evenrank.Endpoint(url, "tei", concurrency=1)
    start = time.perf_counter()
    evenrank.rerank(run, model=model, collection=passages, queries=queries, batch_size=PASSAGES, out=out, quiet=True)
    return time.perf_counter() - start


def serve() -> None:
    """The server, in a process of its own: its thread would otherwise wait for those of the client."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


def rows(folder: Path) -> list[Row]:
    """The line of the table: one request at a time, answers kept in a file."""
    command = [sys.executable, "-m", "benchmarks", "endpoints.serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        with tempfile.TemporaryDirectory(dir=folder) as home:
            _ours(url, Path(home) / "warm")  # imports
            ours, bare = _ours(url, Path(home) / "kept"), _bare(url)
        server.kill()
    what = f"a request to an endpoint with {PASSAGES} passages, against urllib3 alone"
    return [Row(what, ours / QUERIES * 1e3, "ms", bare / QUERIES * 1e3, compare="share")]
