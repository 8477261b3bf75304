"""The public word lists, query sets and runs, from their repositories at a fixed commit, checked by SHA-256."""

from __future__ import annotations

import csv
import hashlib
import http.client
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import IO

from .errors import EvenrankError, InputError, shown
from .written import atomic_path, make_folder

BASE_URL = "https://raw.githubusercontent.com"
BASE_URL_VARIABLE = "EVENRANK_DATA_URL"


@dataclass(frozen=True, slots=True)
class PublicFile:
    """One file of a public data set: where it lies, its size in bytes, its SHA-256 and its licence."""

    name: str
    repository: str
    commit: str
    path: str
    bytes: int
    sha256: str
    licence: str

    @property
    def file_name(self) -> str:
        """The name it gets: the last part of its path."""
        return PurePosixPath(self.path).name

    def url(self, base: str) -> str:
        """Where it is fetched from."""
        return f"{base.rstrip('/')}/{self.repository}/{self.commit}/{urllib.parse.quote(self.path)}"


@dataclass(frozen=True, slots=True)
class PublicData:
    """A named set of files that belong together."""

    name: str
    files: tuple[PublicFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def licence(self) -> str:
        return ", ".join(dict.fromkeys(file.licence for file in self.files))

    @property
    def source(self) -> str:
        return ", ".join(dict.fromkeys(f"github.com/{file.repository}" for file in self.files))


def public_data() -> dict[str, PublicData]:
    """All data sets that can be fetched, by name."""
    table = resources.files(__package__).joinpath("public_data.csv").read_text(encoding="utf-8")
    sets: dict[str, list[PublicFile]] = {}
    for row in csv.DictReader(table.splitlines()):
        file = PublicFile(
            row["name"],
            row["github_repository"],
            row["commit"],
            row["path"],
            int(row["bytes"]),
            row["sha256"],
            row["licence"],
        )
        sets.setdefault(file.name, []).append(file)
    return {name: PublicData(name, tuple(files)) for name, files in sets.items()}


def fetch(
    name: str,
    to: str | os.PathLike[str],
    *,
    base_url: str | None = None,
    timeout: float = 30,
    total_timeout: float = 600,
) -> list[Path]:
    """Fetches the files of a data set into the folder ``to`` (made where missing) and returns their paths.

    A file that is there already, with the right content, is left alone. ``base_url`` (or the environment variable
    EVENRANK_DATA_URL) stands for GitHub; ``timeout``: seconds without an answer; ``total_timeout``: seconds for
    a file, however slowly it comes. Raises EvenrankError for an unknown name, InputError for a file that cannot be
    fetched or written, that differs from its SHA-256, or that stands in the way; files fetched before it stay.
    """
    known = public_data()
    if name not in known:
        raise EvenrankError(f"no public data named {shown(name)}: expected one of {', '.join(known)}")
    base = base_url or os.environ.get(BASE_URL_VARIABLE) or BASE_URL
    if urllib.parse.urlsplit(base).scheme not in ("http", "https"):
        raise EvenrankError(f"expected an address with http or https, found {shown(base)}")
    folder = make_folder(to)
    targets = [(file, folder / file.file_name) for file in known[name].files]
    wanted = [(file, target) for file, target in targets if not _present(file, target)]
    for file, target in wanted:
        content = _download(file, file.url(base), timeout, total_timeout)
        with atomic_path(target) as part:
            part.write_bytes(content)
    return [target for _, target in targets]


def _present(file: PublicFile, target: Path) -> bool:
    """Whether the file is there with the right content; another one of its name is never overwritten."""
    try:
        content = target.read_bytes()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(target, f"cannot be read: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise InputError(target, f"another file of this name is here: name another folder for {file.name}")
    return True


class _HttpOnly(urllib.request.HTTPRedirectHandler):
    """Follows a redirection only to http or https."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if urllib.parse.urlsplit(newurl).scheme not in ("http", "https"):
            fp.close()
            raise urllib.error.URLError(f"redirected to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _download(file: PublicFile, url: str, timeout: float, total_timeout: float) -> bytes:
    """The file's content, checked; in memory, as the largest has a few megabytes."""
    opener = urllib.request.build_opener(_HttpOnly)
    try:
        with opener.open(url, timeout=timeout) as answer:
            content = _content(answer, file.bytes + 1, time.monotonic() + total_timeout)
    except urllib.error.HTTPError as error:
        error.close()
        raise InputError(url, f"cannot be fetched: status {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise InputError(url, f"cannot be fetched: {getattr(error.reason, 'strerror', None) or error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise InputError(url, f"cannot be fetched: {error or type(error).__name__}") from None
    if content is None:
        raise InputError(url, f"cannot be fetched: not whole after {total_timeout:g} s")
    if len(content) != file.bytes:
        found = "more" if len(content) > file.bytes else str(len(content))
        raise InputError(url, f"expected {file.bytes} bytes, found {found}: not kept")
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise InputError(url, f"expected the SHA-256 {file.sha256}, found {digest}: not kept")
    return content


def _content(answer: http.client.HTTPResponse, size: int, end: float) -> bytes | None:
    """Up to ``size`` bytes of an answer; None where they have not come at the moment ``end``."""
    parts: list[bytes] = []
    while size and (part := answer.read1(min(size, 1 << 20))):
        if time.monotonic() > end:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
