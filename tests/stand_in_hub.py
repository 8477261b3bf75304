"""A hub of models on this machine: the addresses that its client asks for, answered from folders."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

_COMMIT, _OFFERED = "0" * 40, "1" * 40


@contextmanager
def stand_in_hub(models: Mapping[str, Path], converted: Mapping[str, Path] | None = None) -> Iterator[str]:
    """Serves each model's folder under its name; yields the address. ``converted``: what the hub's converter offers."""
    offers = converted or {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

        def _answer(self, *, body: bool) -> None:
            parts = unquote(urlsplit(self.path).path).strip("/")
            if parts.startswith("api/models/"):
                self._describe(parts.removeprefix("api/models/"), body=body)
            else:
                name, _, rest = parts.partition("/resolve/")
                commit, _, wanted = rest.partition("/")
                folder = (offers if commit == _OFFERED else models).get(name)
                file = folder / wanted if folder else None
                if file is None or not file.is_file():
                    self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, body=body)
                    return
                content = file.read_bytes()
                tag = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": commit}
                self._send(200, content, tag, body=body)

        def _describe(self, path: str, *, body: bool) -> None:
            name, asked, _ = path.partition("/discussions")
            if asked:
                found = [_offer(name)] if name in offers else []
                self._json({"discussions": found, "count": len(found), "start": 0}, body=body)
                return
            name, asked, commit = path.partition("/tree/")
            if asked:
                self._json(_files((offers if commit == _OFFERED else models)[name], "path"), body=body)
                return
            name, _, rest = path.partition("/revision/")
            offered = rest.startswith("refs/pr/")
            folder = (offers if offered else models).get(name)
            if folder is None:
                self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"}, body=body)
                return
            files = _files(folder, "rfilename")
            self._json(
                {"id": name, "modelId": name, "sha": _OFFERED if offered else _COMMIT, "siblings": files}, body=body
            )

        def _json(self, values: object, *, body: bool) -> None:
            self._send(200, json.dumps(values).encode(), {"Content-Type": "application/json"}, body=body)

        def _send(self, status: int, content: bytes, headers: Mapping[str, str], *, body: bool) -> None:
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(key, value)
            self.end_headers()
            if body:
                self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _files(folder: Path, key: str) -> list[dict[str, object]]:
    return [
        {key: file.relative_to(folder).as_posix(), "size": file.stat().st_size, "type": "file", "oid": _COMMIT}
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    ]


def _offer(name: str) -> dict[str, object]:
    return {
        "num": 3,
        "author": {"name": "SFconvertbot"},
        "title": "Adding `safetensors` variant of this model",
        "status": "open",
        "isPullRequest": True,
        "createdAt": "2023-01-01T00:00:00.000Z",
        "repo": {"name": name, "type": "model"},
    }
