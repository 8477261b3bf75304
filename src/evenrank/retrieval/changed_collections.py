"""Whether a collection is still what an index was made of."""

from __future__ import annotations

import os
import stat

from evenrank.io import EvenrankError
from evenrank.io.errors import readable
from evenrank.io.files import file_system
from evenrank.io.folders import INDEX, files_of

from .index_folder import Manifest, collection_digest

MOST_READ = 10**9
"""Bytes of a collection that are read again to see whether it has changed."""


def changed_collection(manifest: Manifest) -> list[str]:
    """A note if the collection is still where it was and differs from what was indexed.

    Its size is compared; its digest only if it was written after the index and is small enough.
    """
    path, size, digest = (manifest.collection.get(name) for name in ("path", "bytes", "sha256"))
    if not isinstance(path, str) or not isinstance(digest, str):
        return []
    try:
        if file_system(path) is not None:
            return []
        files = [os.stat(file) for file in files_of(path)]
        made = os.stat(manifest.path / INDEX).st_mtime_ns
        if not all(stat.S_ISREG(file.st_mode) for file in files):
            return []
        found = sum(file.st_size for file in files)
        same = found == size
        if same and found <= MOST_READ and max(file.st_mtime_ns for file in files) > made:
            same = collection_digest(path)["sha256"] == digest
    except (OSError, ValueError, EvenrankError):
        # It is no longer there, or is being written.
        return []
    return [] if same else [f"the collection {readable(path)} has changed since the index was made"]
