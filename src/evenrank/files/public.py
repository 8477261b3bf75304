"""Public word lists, query sets and runs, downloaded from their repositories at a fixed commit.

Downloads are limited to the expected size and checked by SHA-256, and a file that already exists is never overwritten.
"""

from __future__ import annotations

import csv
import hashlib
import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Annotated

from evenrank import options as opt

from .arguments import checked
from .errors import EvenrankError, InputError, quoted
from .outputs import atomic_path, make_folder

BASE_URL = "https://raw.githubusercontent.com"
BASE_URL_VARIABLE = "EVENRANK_DATA_URL"


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file of a public data set: its address, size in bytes, SHA-256 and licence."""

    name: str
    repository: str
    commit: str
    path: str
    bytes: int
    sha256: str
    licence: str

    @property
    def file_name(self) -> str:
        """The name of the local file: the last part of its path."""
        return PurePosixPath(self.path).name

    def url(self, base: str) -> str:
        """The address to fetch it from."""
        return f"{base.rstrip('/')}/{self.repository}/{self.commit}/{urllib.parse.quote(self.path)}"


@dataclass(frozen=True, slots=True)
class PublicData:
    """A named set of files."""

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
    table = resources.files(__package__).joinpath("public.csv").read_text(encoding="utf-8")
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


@checked
def fetch(
    name: Annotated[str, opt.Option("A name from `evenrank data list`.", metavar="NAME")],
    *,
    out: Annotated[opt.File, opt.Option("The folder for the files.", metavar="DIR", panel="Output")],
    base_url: str | None = None,
    timeout: Annotated[float, opt.SECONDS] = 30,
) -> list[Path]:
    """Download a data set, and verify its SHA-256 digests.

    Returns the paths of the files, in the folder ``out`` (created if needed).

    Files that already exist with the right content are not fetched again. ``base_url`` (or the environment variable
    EVENRANK_DATA_URL) replaces GitHub's address; ``timeout``: seconds without a response. Raises EvenrankError for an
    unknown name; InputError if a file cannot be fetched or written, differs in size or SHA-256, or if another file of
    its name exists. Files fetched before the error are kept.
    """
    known = public_data()
    if name not in known:
        raise EvenrankError(f"no public data named {quoted(name)}: expected one of {', '.join(known)}")
    base = base_url or os.environ.get(BASE_URL_VARIABLE) or BASE_URL
    if urllib.parse.urlsplit(base).scheme not in ("http", "https"):
        raise EvenrankError(f"expected an address with http or https, found {quoted(base)}")
    folder = make_folder(out)
    targets = [(file, folder / file.file_name) for file in known[name].files]
    wanted = [(file, target) for file, target in targets if not _present(file, target)]
    for file, target in wanted:
        content = _download(file, file.url(base), timeout)
        with atomic_path(target) as part:
            part.write_bytes(content)
    return [target for _, target in targets]


def _present(file: PublicFile, target: Path) -> bool:
    """Whether the file exists with the right content. Raises InputError if another file of its name exists."""
    try:
        content = target.read_bytes()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(target, f"cannot be read: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise InputError(target, f"another file of this name exists: choose another folder for {file.name}")
    return True


def _download(file: PublicFile, url: str, timeout: float) -> bytes:
    """The file's content, checked; held in memory, as the largest file has a few megabytes."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as response:
            content: bytes = response.read(file.bytes + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise InputError(url, f"cannot be fetched: status {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise InputError(url, f"cannot be fetched: {getattr(error.reason, 'strerror', None) or error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise InputError(url, f"cannot be fetched: {error or type(error).__name__}") from None
    if len(content) != file.bytes:
        size = "more" if len(content) > file.bytes else str(len(content))
        raise InputError(url, f"expected {file.bytes} bytes, found {size}: not kept")
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise InputError(url, f"expected the SHA-256 {file.sha256}, found {digest}: not kept")
    return content
