"""The chart libraries as one script, which takes two seconds to bundle and so is kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from evenrank.io.atomic import atomic_path
from evenrank.io.errors import EvenrankError


def chart_libraries() -> str:
    """Vega, Vega-Lite and vega-embed as one script, which makes ``vega``, ``vegaLite`` and ``vegaEmbed`` global.

    Bundled once for the versions that are installed, then read from ``evenrank/`` in the user's cache
    (``XDG_CACHE_HOME``); where that cannot be written, it is bundled each time.
    """
    import vl_convert

    versions = (
        str(getattr(vl_convert, "__version__", "")),
        vl_convert.get_vega_version(),
        vl_convert.get_vegalite_versions()[-1],
        vl_convert.get_vega_embed_version(),
    )
    kept = _cache() / f"charts-{'-'.join(versions)}.js"
    code = _read(kept)
    if code is None:
        code = vl_convert.javascript_bundle()  # type: ignore[call-arg]
        # A full disk, a folder that is read-only or another user's.
        with suppress(EvenrankError, OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(kept) as part:
                part.write_bytes(_signed(code))
    return code


def _cache() -> Path:
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME", ""))
        # As its specification says, a relative one is ignored.
        return (home if home.is_absolute() else Path.home() / ".cache") / "evenrank"
    except RuntimeError:  # no home
        return Path(os.devnull) / "evenrank"


def _signed(code: str) -> bytes:
    """The file's bytes: a digest, so that a damaged file is seen, and the code."""
    data = code.encode()
    return b"// " + hashlib.sha256(data).hexdigest().encode() + b"\n" + data


def _read(path: Path) -> str | None:
    """The code in a file; None if there is none or it is damaged."""
    try:
        data = path.read_bytes()
        code = data.partition(b"\n")[2].decode()
        return code if _signed(code) == data else None
    except (OSError, UnicodeDecodeError):
        return None
