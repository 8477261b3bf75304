"""What is checked and counted of every block of a text file."""

from __future__ import annotations

import os

from .errors import InputError

PART_BYTES = 1 << 18
"""What stays in the processor's cache while it is looked at."""
_WORTH, _LINE_FEED = 1 << 16, 10


class Facts:
    """What the parts of a block contain: how many line feeds, any carriage return, anything that is not ASCII."""

    lines = 0
    returns = wide = False

    def add(self, part: bytes) -> None:
        """Looks at a part."""
        self.lines += _line_feeds(part)
        self.returns = self.returns or b"\r" in part
        self.wide = self.wide or not part.isascii()


def _line_feeds(data: bytes) -> int:
    if len(data) < _WORTH:
        return data.count(b"\n")
    import numpy as np

    # Several times faster than data.count().
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == _LINE_FEED))


def check_utf8(path: str | os.PathLike[str], data: bytes, first_line: int) -> None:
    """Raises InputError, with the line, for bytes that are not UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise InputError(path, f"expected UTF-8, found the byte 0x{data[error.start]:02x}", line=line) from None
