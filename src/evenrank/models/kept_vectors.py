"""Kept vectors: a text goes through a frozen encoder once, whatever is trained behind it and however often."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from evenrank.files import make_folder
from evenrank.files.kept import KeptValues
from evenrank.files.types import Array

_FILE = "vectors.sqlite"
_BATCH = 32
Encode = Callable[[list[str]], tuple[Array, Array]]
"""Texts → their vectors [n, d] float32, and which of them [n] were cut."""


class VectorFile(KeptValues):
    """Vectors by the digest of their encoder, prompt, side, length limit and text, in ``folder``.

    A value is a byte that says whether the text was cut, and d numbers of four bytes (float32, little-endian). Several
    processes may read and write at once. Raises InputError for a file that is damaged, cannot be written or belongs to
    another program.
    """

    noun, anew, application = "vectors", "encode everything anew", 0x65766B76

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        # Of a URL the class itself says that it is none.
        if "://" not in os.fspath(folder):
            make_folder(Path(folder))
        super().__init__(os.path.join(folder, _FILE))


class KeptVectors:
    """The vectors of one side's texts: in memory and, if there is a ``file``, in it, for other processes too.

    ``made_by``: all that a vector depends on besides its text, as JSON values. ``encode`` gets at most 32 texts
    at once, the longest first. In memory a text takes its own size and 4 d bytes, and stays; in the file the vector
    alone.
    """

    def __init__(self, made_by: Sequence[object], encode: Encode, file: VectorFile | None) -> None:
        self._made_by = hashlib.sha256(json.dumps(made_by).encode()).digest()
        self._encode, self._file = encode, file
        self._values: dict[str, bytes] = {}

    def __call__(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """The vectors [n, d] of n texts (1 or more), float32 and without gradient, and which [n] the encoder cut."""
        new = [text for text in dict.fromkeys(texts) if text not in self._values]
        if new:
            self._add(new)
        rows = np.frombuffer(b"".join(self._values[text] for text in texts), np.uint8).reshape(len(texts), -1)
        # The first byte says whether the text was cut.
        vectors = rows[:, 1:].copy().view("<f4").astype(np.float32, copy=False)
        return torch.from_numpy(vectors), torch.from_numpy(rows[:, 0] > 0)

    def _add(self, texts: list[str]) -> None:
        keys = [hashlib.sha256(self._made_by + text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        there = [None] * len(texts) if self._file is None else self._file.load(keys)
        self._values |= {text: value for text, value in zip(texts, there, strict=True) if value is not None}
        missing = [(text, key) for text, key, value in zip(texts, keys, there, strict=True) if value is None]
        # By length: a batch is padded to its longest text.
        missing.sort(key=lambda pair: (-len(pair[0]), pair[0]))
        for start in range(0, len(missing), _BATCH):
            part = missing[start : start + _BATCH]
            vectors, cut = self._encode([text for text, _ in part])
            values = [bytes([bool(flag)]) + row.astype("<f4").tobytes() for row, flag in zip(vectors, cut, strict=True)]
            self._values |= {text: value for (text, _), value in zip(part, values, strict=True)}
            if self._file is not None:
                self._file.save((key, value) for (_, key), value in zip(part, values, strict=True))


def digest_of(encoder: Sequence[nn.Module]) -> str:
    """SHA-256 of an encoder's modules: configurations, tokeniser and weights, but for those that no vector reads."""
    total = hashlib.sha256()
    for part in encoder:
        # The limits of length stand beside the digest, each with its side.
        settings: dict[str, object] = getattr(part, "get_config_dict", dict)()
        settings = {name: value for name, value in settings.items() if not name.endswith("_length")}
        config = getattr(part, "config", None)
        if config is not None:
            volatile = ("transformers_version", "dtype")
            settings["config"] = {
                name: value
                for name, value in config.to_dict().items()
                if not name.startswith("_") and name not in volatile
            }
        total.update(json.dumps([type(part).__name__, settings], default=str, sort_keys=True).encode())
        fast = getattr(getattr(part, "tokenizer", None), "backend_tokenizer", None)
        if fast is not None:
            # Settings of the last call, which no later one reads.
            fast.no_truncation()
            fast.no_padding()
            total.update(fast.to_str().encode())
        for name, value in sorted(part.state_dict().items()):
            if "pooler." not in name:
                total.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
                total.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
