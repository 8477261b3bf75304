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

    def described(path: str) -> object:
        """What the interface says of a model, of its files, or of the converter's offer; None of what is not there."""
        name, asked, _ = path.partition("/discussions")
        if asked:
            found = [_offer(name)] if name in offers else []
            return {"discussions": found, "count": len(found), "start": 0}
        name, asked, commit = path.partition("/tree/")
        if asked:
            return _files((offers if commit == _OFFERED else models)[name], "path")
        name, _, rest = path.partition("/revision/")
        offered = rest.startswith("refs/pr/")
        folder = (offers if offered else models).get(name)
        about = {"id": name, "modelId": name, "sha": _OFFERED if offered else _COMMIT}
        return {**about, "siblings": _files(folder, "rfilename")} if folder else None

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, content, headers = self._answer(unquote(urlsplit(self.path).path).strip("/"))
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

        def _answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
            if path.startswith("api/models/"):
                found = described(path.removeprefix("api/models/"))
                if found is None:
                    return 404, b"{}", {"X-Error-Code": "RepoNotFound"}
                return 200, json.dumps(found).encode(), {"Content-Type": "application/json"}
            name, _, rest = path.partition("/resolve/")
            commit, _, wanted = rest.partition("/")
            folder = (offers if commit == _OFFERED else models).get(name)
            if folder is None or not (folder / wanted).is_file():
                return 404, b"", {"X-Error-Code": "EntryNotFound"}
            content = (folder / wanted).read_bytes()
            return 200, content, {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": commit}

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
