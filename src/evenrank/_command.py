"""The running command line, for provenance and signals; imports nothing heavy, because ``--help`` imports this."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FrameType

SIGNALLED = {129: "hung up", 130: "interrupted", 143: "terminated"}
"""What a command says that ends with these statuses."""
SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def end_at_signals() -> None:
    """Makes signals end the process in one line at once, until the command line has handlers of its own.

    Signals that are ignored (nohup) or already handled are left alone.
    """
    for number in (signal.SIGINT, *SIGNALS):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, end)


def end(number: int, _: FrameType | None) -> None:
    """Ends the process: nothing has been written yet."""
    with suppress(OSError):  # standard error is closed
        os.write(2, f"evenrank: {SIGNALLED[128 + number]}\n".encode())
    os._exit(128 + number)


typed: ContextVar[str | None] = ContextVar("typed", default=None)
"""The command as typed, quoted for a shell; None in a Python program."""
outputs: ContextVar[dict[str, object] | None] = ContextVar("outputs", default=None)
"""The files that the running command is to write, each with what was there before."""


_spelling: dict[str, str] = {}
"""How messages name parameters; empty in a Python program. All threads have the same."""


@contextmanager
def spelled(names: Mapping[str, str]) -> Iterator[None]:
    """In the block, messages name parameters by these: a command's options, or the keys of a file."""
    before = _spelling.copy()
    _spelling.update(names)
    try:
        yield
    finally:
        _spelling.clear()
        _spelling.update(before)


class _Arguments:
    """Names parameters in messages as whoever reads them writes them.

    In Python `` `missing='skip'` ``; on the command line ``--missing skip``, of a switch ``--resume``, and of an
    argument what the help calls it, ``COLLECTION``.

    >>> arg.k, arg("missing", "skip")
    ('`k`', "`missing='skip'`")
    """

    def __getattr__(self, name: str) -> str:
        return self(name)

    def __call__(self, name: str, value: object = None) -> str:
        flag = _spelling.get(name)
        if flag is None:
            return f"`{name}`" if value is None else f"`{name}={value!r}`"
        return flag if value is None or value is True or not flag.startswith("--") else f"{flag} {value or repr(value)}"


arg = _Arguments()


@contextmanager
def running(arguments: Sequence[str]) -> Iterator[dict[str, object]]:
    """In the block, results are recorded as made by the command ``evenrank`` with these arguments.

    Yields its :data:`outputs`.
    """
    import shlex

    noted: dict[str, object] = {}
    command = shlex.join(["evenrank", *map(redacted_address, arguments)])
    tokens = typed.set(command), outputs.set(noted)
    try:
        yield noted
    finally:
        typed.reset(tokens[0])
        outputs.reset(tokens[1])


def note_output(path: str) -> None:
    """Notes a file that the running command is to write, if one is running."""
    noted = outputs.get()
    if noted is not None:
        noted.setdefault(path, _identity(path))


def written(noted: dict[str, object]) -> list[str]:
    """Which of these are there, and are not what was there before: files are replaced whole."""
    return [path for path, before in noted.items() if os.path.isfile(path) and _identity(path) != before]


def _identity(path: str) -> object:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def redacted_address(argument: str) -> str:
    """A path or an argument without the name, the password and the values of an address that it ends with.

    These may hold any character, and end where it ends; those in a sentence, where it goes on: see
    :func:`without_secrets`.
    """
    import re

    scheme, found, address = argument.partition("://")
    before = re.split("[?#]", address, maxsplit=1)[0]
    fragment, question, query = address[len(before) :].partition("?")
    # A password may have a `/` in it, where one should have written %2F. In hf://user/name@revision there is no login.
    login = ".*" if scheme.lower().endswith(("http", "https")) else "[^/:]*:.*|[^/]*"
    place = re.sub(f"^(?:{login})@", "…@", before, flags=re.DOTALL)
    shown = f"{scheme}{found}{place}{fragment}{question}{without_values(query)}"
    return without_secrets(shown) if found else argument


def without_secrets(text: str) -> str:
    """A text without names and passwords in its addresses, and without the values in their queries."""
    if "://" not in text:
        return text
    import re

    text = re.sub(r"(https?)://[^?#\s]*@", r"\1://…@", text, flags=re.IGNORECASE)
    text = re.sub(r"://(?:[^/:?#\s]*:[^?#\s]*|[^/?#\s]*)@", "://…@", text)
    # A query ends where a sentence goes on; a `#` may be a part of a value.
    query = r"""(://[^?#\s'"]*\?)(\S*[^\s'":,.;)])"""
    return re.sub(query, lambda found: found[1] + without_values(found[2]), text)


def without_values(query: str) -> str:
    """The query of an address without its values; what ends in ``=`` is a value that was padded."""
    import re

    return re.sub(r"(^|&)([^=&]*=(?=[^=&]))?[^&]+", r"\1\2…", query)
