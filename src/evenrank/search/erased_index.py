"""An index whose vectors its passages' groups are erased from: fitted, written, in one format."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from evenrank.files import EvenrankError, check_apart
from evenrank.files.arguments import check_ranges
from evenrank.files.errors import quoted
from evenrank.files.progress import progress
from evenrank.files.provenance import file_digest
from evenrank.files.reading import INDEX
from evenrank.models.text_encoders import TextEncoder
from evenrank.models.vectors import Vectors

from .debias import bias_subspace
from .encoded_windows import LARGEST_HALF
from .erasure import (
    METHODS,
    NO_GROUP,
    UNKNOWN,
    Erasure,
    Integers,
    blocks,
    fit_leace_blocks,
    group_means,
    of_length_one,
    projection,
)
from .exact_search import Halves
from .index_folder import CHECKED, IndexWriter, Manifest, read_manifest, verify
from .leace import Eraser
from .vector_index import VectorIndex

_COPIED = ("ids-offsets.bin", "ids-text.bin", "turn.bin", "by-turn.bin")


@dataclass(frozen=True)
class PassageNumbers:
    """The groups of an index's passages: their ``names`` [G], and the number of each row's group [N]; −1: of none, or
    of several alike; −2: not known. ``described``: how they are known, as JSON values."""

    names: tuple[str, ...]
    numbers: Integers
    described: Mapping[str, object]

    @classmethod
    def of(
        cls, index: VectorIndex, names: tuple[str, ...], known: pl.DataFrame, described: Mapping[str, object]
    ) -> PassageNumbers:
        """Those of ``index``, from ``known``: ``doc_id`` and ``group``, as :func:`largest_groups` numbers them.

        Raises EvenrankError where none of the index's documents is known.
        """
        ids = index.ids.alias("doc_id").to_frame()
        found = ids.join(known, on="doc_id", how="left", maintain_order="left")["group"]
        if found.null_count() == len(found):
            raise EvenrankError(
                f"nothing is known of the groups of the documents of {index.manifest.path}: none of its ids, such as"
                f" {quoted(ids['doc_id'][0])}, is there"
            )
        return cls(names, found.fill_null(UNKNOWN).cast(pl.Int64).to_numpy(), described)

    def without(self, names: Collection[str]) -> PassageNumbers:
        """The same without some of the groups: nothing is known of their passages."""
        kept = tuple(name for name in self.names if name not in names)
        # The last two are those of no group and the unknown: −1 and −2.
        new = [kept.index(name) if name in kept else UNKNOWN for name in self.names]
        numbers = np.array([*new, UNKNOWN, NO_GROUP])[self.numbers]
        left_out = {name: self.counts[name] for name in names}
        return replace(self, names=kept, numbers=numbers, described={**self.described, "left_out": left_out})

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many passages are of each group."""
        return {name: int((self.numbers == number).sum()) for number, name in enumerate(self.names)}

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        other = {"none": int((self.numbers == NO_GROUP).sum()), "unknown": int((self.numbers == UNKNOWN).sum())}
        return {**self.described, "passages": self.counts, **other}


def open_to_debias(path: str | os.PathLike[str]) -> VectorIndex:
    """An index whose vectors can be debiased, its files checked against their digests.

    Raises EvenrankError for an index of BM25 or of weights of terms, and for one that is debiased already.
    """
    manifest = read_manifest(path)
    if manifest.kind != "dense":
        what = {"bm25": "BM25's words", "sparse": "weights of terms"}[manifest.kind]
        raise EvenrankError(
            f"{manifest.path}: an index of {what} has no vectors to debias; expected one of a model's vectors"
        )
    done = manifest.settings.get("erasure")
    if isinstance(done, Mapping):
        source = done.get("source")
        made = f", {source.get('path')}" if isinstance(source, Mapping) else ""
        raise EvenrankError(f"{manifest.path}: is debiased already: debias the index that it was made from{made}")
    # Damaged files would get digests of their own.
    verify(manifest)
    return VectorIndex.open(manifest)


def check_method(method: str, components: int, pairs: Sequence[tuple[str, str]]) -> None:
    """Raises EvenrankError for settings that do not go together."""
    check_ranges(components=components)
    if method not in METHODS:
        raise EvenrankError(f"`method`: expected leace or hard, found {quoted(method)}")
    if method == "leace" and components != 1:
        raise EvenrankError("`components` needs `method='hard'`")
    if method == "hard" and not pairs:
        raise EvenrankError("`method='hard'` needs `lexicon` with pairs of counterparts ([pairs] in its TOML)")


def write_debiased(
    index: VectorIndex,
    out: str | os.PathLike[str],
    groups: PassageNumbers,
    *,
    method: str = "leace",
    pairs: Sequence[tuple[str, str]] = (),
    components: int = 1,
    encoder: TextEncoder | None = None,
    quiet: bool = False,
) -> Manifest:
    """Writes ``index`` anew in the folder ``out``, with the group erased from its vectors, and from queries at search.

    ``method``: "leace" (Belrose et al. 2023), fitted on the passages whose group is known, those of no group being a
    group of their own; or "hard" (Bolukbasi et al. 2016, section 5), whose directions are the first ``components`` of
    the differences of the ``pairs``, encoded as documents by the index's own model (``encoder``). Every passage is
    erased, also those that nothing is known of. Vectors of length 1 (a cosine model's) are scaled to length 1 again,
    which, like float16, leaves a small gap between the groups' means: the manifest has it as stored.

    An interrupted call leaves no index; the same call starts again. Raises EvenrankError as :func:`check_method` does,
    for fewer than two groups with passages, and for a folder that cannot be written to.
    """
    check_method(method, components, pairs)
    check_apart([out], [index.manifest.path])
    source, vectors = index.manifest, index.vectors
    with IndexWriter(out, "dense", source.settings) as writer:
        fitted: dict[str, object] = {}
        if method == "leace":
            eraser = fit_leace_blocks(vectors, groups.numbers, len(groups.names))
        else:
            assert encoder is not None
            eraser, fitted = _projection(encoder, pairs, components)
        erasure = Erasure(eraser, of_length_one(vectors), method)
        for name in _COPIED:
            shutil.copyfile(source.file(name), writer.file(name))
        erasure.write(writer)
        _write_vectors(writer, vectors, erasure, quiet=quiet)
        stored: Halves = np.memmap(writer.file("vectors.bin"), "<f2", "r", shape=vectors.shape)
        gap = [group_means(of, groups.numbers, len(groups.names)).gap(len(groups.names)) for of in (vectors, stored)]
        writer.settings["erasure"] = {
            "method": method,
            "directions": erasure.directions,
            "unit": erasure.unit,
            "source": {"path": os.fspath(source.path), "sha256": file_digest(os.fspath(source.path / INDEX))},
            "groups": groups.to_dict(),
            **fitted,
            "gap": {"before": gap[0], "after": gap[1]},
        }
        return writer.finish(source.documents, source.collection, model=source.model, versions=source.versions)


def remove_index(manifest: Manifest, *, folder: bool) -> None:
    """Removes the files of a finished index, and with ``folder`` what they were in, if nothing else is there."""
    for name in (INDEX, CHECKED, *manifest.files):
        (manifest.path / name).unlink(missing_ok=True)
    if folder:
        with suppress(OSError):
            manifest.path.rmdir()


def _projection(
    encoder: TextEncoder, pairs: Sequence[tuple[str, str]], components: int
) -> tuple[Eraser, dict[str, object]]:
    """Hard debiasing's eraser from pairs of words, and what it was fitted on."""
    # A pair is in both directions there.
    sets = tuple(dict.fromkeys(tuple(sorted(pair)) for pair in pairs))
    words = tuple(dict.fromkeys(word for of in sets for word in of))
    rows = encoder.documents(list(words))
    assert isinstance(rows, np.ndarray)
    subspace = bias_subspace(Vectors(words, np.ascontiguousarray(rows, np.float32)), sets, components)
    explained = [float(share) for share in subspace.explained]
    return projection(subspace.basis), {"pairs": len(sets), "components": components, "explained": explained}


def _write_vectors(writer: IndexWriter, vectors: Halves, erasure: Erasure, *, quiet: bool) -> None:
    with (
        open(writer.file("vectors.bin"), "wb") as stream,
        progress("erasing", len(vectors), quiet=quiet) as advance,
    ):
        for _, block in blocks(vectors):
            rows = erasure(block)
            largest = float(np.abs(rows).max(initial=0.0))
            if not largest <= LARGEST_HALF:
                raise EvenrankError(
                    f"a vector has the number {largest:.6g} after erasure, and float16, in which they are kept, ends at"
                    " 65504"
                )
            stream.write(np.ascontiguousarray(rows, "<f2").data)
            advance(len(rows))
