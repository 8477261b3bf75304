"""What the core does, command by command, in a folder with a collection and two runs. Run as a program.

``python core_commands.py FOLDER [hidden|compiled]``: ``hidden``, as where no extra is installed; ``compiled``: without
the plain loop for a few texts.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

EXTRAS = frozenset(
    [
        *("numba", "llvmlite", "pyarrow", "altair", "vl_convert", "ir_datasets", "ijson", "Stemmer"),
        *("urllib3", "fsspec", "aiohttp", "s3fs", "gcsfs", "tomli_w", "torch", "transformers", "ray"),
        *("sentence_transformers", "accelerate", "safetensors", "gensim", "sklearn", "onnx", "onnxruntime"),
        *("openvino", "pandas"),
    ]
)
"""The modules that extras bring, and pandas, which comes with some of them."""


class Hiding:
    """A finder that finds no extra, as where none is installed."""

    def __init__(self, finder: Any) -> None:
        self.finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finder, name)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if name.partition(".")[0] in EXTRAS else self.finder.find_spec(name, path, target)


def hide_extras() -> None:
    """From now on, no extra can be imported."""
    sys.meta_path[:] = map(Hiding, sys.meta_path)  # type: ignore[arg-type]


_TEXTS = ["--collection", "collection.tsv"]
_JUDGED = [*_TEXTS, "--qrels", "qrels.txt"]
_GATE = ["gate", "second.run", "--baseline", "bm25.run", *_JUDGED]
_REBALANCE = ["rebalance", "bm25.run", "--strength", "0.5", *_JUDGED]
COMMANDS = (
    ["audit", "bm25.run", "second.run", *_JUDGED, "--values", "--json", "audit.json", "--per-query", "values.csv"],
    ["score", "collection.tsv", "--out", "scores.parquet"],
    ["audit", "bm25.run", "--scores", "scores.parquet", "--qrels", "qrels.txt", "--json", "scored.json"],
    [*_GATE, "--init", "budget.toml"],
    [*_GATE, "--budget", "budget.toml", "--json", "gate.json"],
    *(
        [*_REBALANCE, "--method", method, "--out", f"{method}.run", "--json", f"{method}.json"]
        for method in ("neutral", "fair", "detconstsort", "shift")
    ),
    ["fuse", "bm25.run", "second.run", "--weight", "0.5", "--out", "fused.run"],
    ["scan", "collection.tsv", "--run", "bm25.run", "--queries", "queries.tsv", "--json", "scan.json"],
    ["labels", "sample", "bm25.run", "second.run", *_TEXTS, "--n", "40", "--out", "drawn.csv", "--json", "drawn.json"],
)
"""Each with the files that it writes."""


CALLED: list[object] = []
"""What was to be reached since the network was closed, also by those who keep silent about errors."""


def close_network() -> None:
    """From now on, nothing can be reached."""

    def refuse(*where: object) -> None:
        CALLED.append(where)
        raise AssertionError("calls somewhere")

    socket.socket.connect = socket.socket.connect_ex = refuse  # type: ignore[assignment,method-assign]
    socket.getaddrinfo = refuse  # type: ignore[assignment]


def run_commands(folder: str, commands: Iterable[list[str]] = COMMANDS) -> list[int]:
    """The exit status of each command, run in a folder, with a closed network."""
    from evenrank.cli import main

    close_network()
    os.chdir(folder)
    ended = []
    for command in commands:
        sys.argv = ["evenrank", *command]
        try:
            ended.append(main() or 0)
        except SystemExit as error:
            ended.append(int(error.code or 0))
    return ended


if __name__ == "__main__":
    how = sys.argv[2:]
    if how == ["hidden"]:
        hide_extras()
    if how == ["compiled"]:
        from evenrank.groups._plain_counting import Room

        Room.left = -1
    ended = run_commands(sys.argv[1])
    assert CALLED == []
    found = sorted(EXTRAS & set(sys.modules)) if how != ["compiled"] else []
    print("ended", *ended, "loaded", *found)
