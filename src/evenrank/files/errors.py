"""The errors that users can cause: one line each, with the file and the line number."""

from __future__ import annotations

import math
import os
import re
import reprlib
import sys
from functools import cache
from importlib.util import find_spec
from numbers import Integral, Real

from evenrank._command import arg as arg
from evenrank._command import redacted_address, without_secrets

_LONGEST = 1000
"""Maximum length of a message about a file, in characters: it may list names that are thousands of characters long."""
AS_UTF8 = " (save the file as UTF-8)"


class EvenrankError(Exception):
    """An error in the input. The command prints it as one line and exits with status 2.

    Line ends and control characters in the message (file names can contain them) are escaped; of addresses, what may be
    secret is left out.
    """

    def __init__(self, message: str) -> None:
        message = without_secrets(message)
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
        place = redacted_address(self.path) + ("" if line is None else f", line {line}")
        super().__init__(f"{place}: {message}")


class MissingExtraError(EvenrankError):
    """A missing optional dependency, with the command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f'{what} needs the extra [{extra}]: pip install "evenrank[{extra}]"')


def require(what: str, extra: str, *modules: str) -> None:
    """Raises MissingExtraError if one of the ``modules`` that ``what`` needs is not installed."""
    if not installed(*modules):
        raise MissingExtraError(what, extra)


def installed(*modules: str) -> bool:
    """Whether all of the ``modules`` are installed."""
    # None stands for a module that must not be imported.
    return all(sys.modules.get(module, module) is not None and _found(module) for module in modules)


@cache
def _found(module: str) -> bool:
    # Looked for, not imported: importing PyTorch takes seconds, too long to wait for an error message.
    return find_spec(module) is not None


FAST = ("numba", "pyarrow")
"""What compiled loops need, and the texts that they read."""


def require_fast(what: str) -> None:
    """Raises MissingExtraError if compiled loops, and the columns of Arrow that they read, are not installed."""
    require(what, "fast", *FAST)


def require_report(what: str = "a report") -> None:
    """Raises MissingExtraError if what draws charts, which ``what`` needs, is not installed."""
    require(what, "report", "altair", "vl_convert")


def require_neural(what: str) -> None:
    """Raises MissingExtraError if the libraries for neural models, which ``what`` needs, are not installed."""
    require(what, "neural", "torch", "transformers", "sentence_transformers", "accelerate", "safetensors")


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
STEERING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""The same without tabs and line ends, which files and pages keep."""


def plain(text: str) -> str:
    """``text`` with every control character, which could move a terminal's cursor or reverse the text, replaced."""
    return _CONTROL.sub("�", text)


def readable(name: str) -> str:
    """A file name with its bytes that are not UTF-8 escaped, so that texts and tables can contain it."""
    return name.encode("utf-8", "backslashreplace").decode()


class UnknownNameError(EvenrankError, KeyError):
    """A name that a result does not have; a KeyError as well, since results are indexed by name."""

    def __str__(self) -> str:
        # KeyError would quote the message.
        return str(self.args[0])


def quoted(value: object, limit: int = 60) -> str:
    """``value`` quoted for an error message, cut to ``limit`` characters, always on one line."""
    text = str(value)
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def quoted_number(value: object) -> str:
    """What is no number, quoted for a message, which says so of a decimal comma."""
    comma = re.fullmatch(r"\s*[+-]?\d*,\d+\s*", str(value))
    return quoted(value) + (" (the decimal sign is a point)" if comma else "")


def shown(value: object) -> str:
    """An argument that cannot be used, for an error message: its value, or what it is."""
    if isinstance(value, str | os.PathLike):
        return quoted(value)
    if isinstance(value, list | tuple | dict):
        return quoted(reprlib.repr(value))[1:-1]
    if value is None or isinstance(value, Real):
        digits = math.log10(abs(int(value)) or 1) if isinstance(value, Integral) else 0
        # Python refuses to print integers of more than some thousand digits.
        return f"{value}" if digits < 50 else f"a number of {math.floor(digits) + 1} digits"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def reason_of(error: OSError) -> str:
    """The operating system's own message, without the text that pyarrow puts before it or polars after it."""
    # Where a name has no address, the number is below 0, and none of the system's.
    return (
        os.strerror(error.errno) if error.errno and error.errno > 0 else re.sub(r" \(os error \d+\)$", "", str(error))
    )
