"""Collections of any size: the built-in one, repeated under new ids."""

from __future__ import annotations

from pathlib import Path

_PIECE = 200_000


def write_collections(folder: Path, sizes: dict[str, int]) -> None:
    """``NAME.tsv`` of so many passages each, of 300 bytes or so; ids are the whole numbers from 0."""
    from evenrank.files.synthetic import SyntheticConfig, batches

    piece = min(_PIECE, max(sizes.values()))
    texts: list[bytes] = []
    for batch in batches(SyntheticConfig(passages=piece)):
        texts += [text.encode() for text in batch["text"]]
    for name, size in sizes.items():
        with (folder / f"{name}.tsv").open("wb") as stream:
            for start in range(0, size, piece):
                part = texts[: size - start]
                stream.writelines(b"%d\t%s\n" % (start + i, text) for i, text in enumerate(part))
