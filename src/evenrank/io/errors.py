"""The errors a user can cause, each one line of text that names the file and the line."""

from __future__ import annotations

import os
import re

_LONGEST = 1000
"""Characters of a message about a file: it may list names that are thousands of characters long."""


class EvenrankError(Exception):
    """A mistake in what the user gave. The command prints it as one line and exits with status 2.

    Line ends and control characters of the message, as names in a file may hold them, are written as escapes.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message if message.isprintable() else _printable(message))


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


class InputError(EvenrankError):
    """A file that cannot be used: which file, which line, what was expected, what was found."""

    def __init__(self, path: str | os.PathLike[str], message: str, *, line: int | None = None) -> None:
        message = message if len(message) <= _LONGEST else message[: _LONGEST - 1] + "…"
        self.path = os.fspath(path)
        self.message = message
        self.line = line
        place = self.path if line is None else f"{self.path}, line {line}"
        super().__init__(f"{place}: {message}")


class MissingExtraError(EvenrankError):
    """An optional dependency that is not installed, with the command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f'{what} needs the extra [{extra}]: pip install "evenrank[{extra}]"')


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """A text without the control characters that would move a terminal's cursor or turn its text around."""
    return _CONTROL.sub("�", text)


def readable(name: str) -> str:
    """The name of a file with escapes for what is not UTF-8 in it, as texts and tables can hold it."""
    return name.encode("utf-8", "backslashreplace").decode()


class UnknownNameError(EvenrankError, KeyError):
    """A name that a result does not have; a KeyError too, as it is asked for in brackets."""

    def __str__(self) -> str:
        # A KeyError would quote it.
        return str(self.args[0])


def shown(value: object, limit: int = 60) -> str:
    """``value`` quoted for an error message, cut to ``limit`` characters, always on one line."""
    text = str(value)
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def reason_of(error: OSError) -> str:
    """The system's own words: pyarrow puts its own before them, polars a number behind them."""
    return os.strerror(error.errno) if error.errno else re.sub(r" \(os error \d+\)$", "", str(error))
