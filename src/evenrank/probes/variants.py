"""Variant collections: the same ids, one thing changed.

What a ranker makes of that one thing is the difference between its scores of a passage and of its variant
(:mod:`evenrank.probes`).

When it misleads: every edit leaves traces of its own (a seam, an odd word, another length), and a ranker may react to
those. Compare with the variant's placebo, where it has one, which leaves the same traces and changes nothing else.

Worked example: one group word is exchanged.

>>> from evenrank.probes.variants import variants
>>> variants({"d": "She likes tea."}, kind="swap").table.rows()
[('d', 'He likes tea.', 1)]
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank import options as opt
from evenrank._version import __version__
from evenrank.files import (
    EvenrankError,
    InputError,
    Provenance,
    as_collection,
    atomic_path,
    check_apart,
    check_outputs,
    scan_collection,
)
from evenrank.files.arguments import checked
from evenrank.files.errors import quoted
from evenrank.files.progress import progress
from evenrank.files.streams import TableWriter, check_tsv_ids, form_of
from evenrank.files.threads import in_order
from evenrank.files.wording import counted
from evenrank.groups import Lexicon, LexiconLike, load_lexicon
from evenrank.groups.lexicon import note_lexicon
from evenrank.mitigation.rotation import Mode, rotate_texts

from .group_wording import Edited, language_notes, neutralised, swapped
from .placebos import Asked, Names, placebo_of_words

KINDS = ("swap", "neutral", "rotate")
"""Every kind but ``placebo``, which is a placebo *of* one of them."""
WITH_PLACEBO = ("swap", "neutral")
"""The kinds that exchange the words of a lexicon."""
PLACEBO = "placebo"

_MOST = 10
"""Passages of this many edits or more are counted together."""
_NAMED = 20
"""At most this many of the words that were left are named."""


@dataclass(frozen=True, slots=True)
class Varied:
    """A variant of a collection: its kind, and what was changed.

    ``documents``: texts written; ``changed``: those that differ from their original; ``edits``: changed places in all;
    ``histogram``: texts by their number of edits ("0" … "10+"); ``left``: group words without a counterpart, and how
    often; ``verbs_left``: verbs after *they* that were left.
    ``table``: the variant (``doc_id``, ``text``, ``edits``) if no file was written.
    """

    kind: str
    settings: Mapping[str, object]
    documents: int
    changed: int
    edits: int
    histogram: Mapping[str, int]
    left: Mapping[str, int]
    verbs_left: int = 0
    notes: tuple[str, ...] = ()
    table: pl.DataFrame | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, object]:
        """As JSON values, without the table; of the words that were left, the number and the most frequent ones."""
        return {
            "kind": self.kind,
            **self.settings,
            "documents": self.documents,
            "changed": self.changed,
            "edits": self.edits,
            "histogram": dict(self.histogram),
            "left": {"total": sum(self.left.values()), "words": dict(Counter(self.left).most_common(_NAMED))},
            "verbs_left": self.verbs_left,
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """Summary of the changes, in one line."""
        changed, unchanged = f"{self.changed:,} changed ({counted(self.edits, 'edit')})", self.documents - self.changed
        return f"{counted(self.documents, 'document')}: {changed}, {unchanged:,} unchanged"


@dataclass(slots=True)
class Tally:
    """Counts edits batch by batch. ``histogram`` [11]; ``short``: passages with fewer edits than their variant's."""

    histogram: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_MOST + 1, np.int64))
    edits: int = 0
    verbs: int = 0
    short: int = 0
    left: Counter[str] = field(default_factory=Counter)

    def add(self, edits: NDArray[np.int64], made: Edited) -> None:
        """Counts the texts of a batch, with ``edits`` [N]."""
        self.histogram += np.bincount(np.minimum(edits, _MOST), minlength=_MOST + 1)
        self.edits += int(edits.sum())
        self.verbs += made.verbs
        self.short += made.short
        self.left.update(made.left)

    @property
    def changed(self) -> int:
        """How many texts have edits."""
        return int(self.histogram[1:].sum())

    def varied(self, kind: str, settings: Mapping[str, object], notes: tuple[str, ...]) -> Varied:
        """The result, with the notes that the counts ask for."""
        left = dict(sorted(self.left.items(), key=lambda item: (-item[1], item[0])))
        if left:
            most = ", ".join(f"{word} {count:,}" for word, count in list(left.items())[:5])
            words = counted(self.left.total(), "group word")
            notes += (f"Left, as the lexicon has no counterpart: {words} ({most}{', …' * (len(left) > 5)}).",)
        if self.verbs:
            verbs, stay = counted(self.verbs, "verb"), "stays as it is" if self.verbs == 1 else "stay as they are"
            notes += (f"{verbs} after *they* {stay}, which may not agree (*they is*).",)
        if self.short:
            notes += (f"Fewer edits than its variant, for lack of places: {counted(self.short, 'passage')}.",)
        names = [*map(str, range(_MOST)), f"{_MOST}+"]
        histogram = dict(zip(names, self.histogram.tolist(), strict=True))
        documents = int(self.histogram.sum())
        return Varied(kind, settings, documents, self.changed, self.edits, histogram, left, self.verbs, notes)


@dataclass(frozen=True, slots=True)
class Edits:
    """How a variant of a kind edits passages; the same for any batch that a passage is in.

    ``of``, ``form``, ``asked``: of placebos. ``names``: what was counted in a first pass, where it is needed.
    """

    kind: str
    of: str | None
    form: str | None
    lexicon: Lexicon | None
    mode: Mode | None
    seed: int
    names: Names | None = None
    asked: Asked = field(default_factory=dict)

    @classmethod
    def chosen(
        cls, kind: str, of: str | None, form: str | None, lexicon: LexiconLike, mode: Mode | None, seed: int
    ) -> Edits:
        """Those that were asked for; None: what is usual. Raises EvenrankError for a lexicon that lacks words."""
        words = None
        if kind == PLACEBO:
            of, form = of or "swap", form or "any"
        if (of or kind) in WITH_PLACEBO:
            words = load_lexicon(lexicon)
            # Raises the error for a lexicon without counterparts now, before anything is read.
            (swapped if (of or kind) == "swap" else neutralised)(pl.Series([""]), words)
        return cls(kind, of, form, words, (mode or "sentence") if kind == "rotate" else None, seed)

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        name = None if self.lexicon is None else self.lexicon.name
        return {"of": self.of, "form": self.form, "lexicon": name, "mode": self.mode, "seed": self.seed}

    def __call__(self, table: pl.DataFrame) -> tuple[pl.DataFrame, Edited]:
        """The variant of ``doc_id``, ``text``, with ``edits``, 0 exactly where a text is unchanged; and all edits."""
        variant = self._made(table)
        changed = (variant.texts != table["text"]).to_numpy()
        edits = pl.Series("edits", np.where(changed, variant.edits, 0))
        return table.select("doc_id", variant.texts.alias("text"), edits), variant

    def _made(self, table: pl.DataFrame) -> Edited:
        if self.mode is not None:
            texts, moved, _ = rotate_texts(table, self.seed, self.mode)
            mask = pl.Series(moved == 0)
            # A passage that is cut before its first word keeps its white space too.
            texts = pl.select(pl.when(mask).then(table["text"]).otherwise(texts)).to_series()
            return Edited(texts, (moved > 0).astype(np.int64))
        assert self.lexicon is not None
        variant = (swapped if (self.of or self.kind) == "swap" else neutralised)(table["text"], self.lexicon)
        if self.form is None:
            return variant
        return placebo_of_words(table, variant.edits, self.lexicon, self.form, self.seed, self.names, self.asked)


Path = str | os.PathLike[str]
_BATCH = 1 << 14


def manifest_of(out: Path) -> str:
    """The file with settings, counts and provenance of a variant."""
    return f"{os.fspath(out).rstrip('/')}.manifest.json"


@checked
def variants(
    collection: opt.TheCollection,
    *,
    kind: Annotated[
        Literal["swap", "neutral", "rotate", "placebo"],
        opt.Option("swap, neutral, rotate, or placebo (of swap or neutral).", metavar="KIND"),
    ],
    out: Path | None = None,
    of: Annotated[
        Literal["swap", "neutral"] | None,
        opt.Option("placebo: of swap or neutral (default: swap).", metavar="KIND", needs=("kind=placebo",)),
    ] = None,
    form: Annotated[
        Literal["synonym", "name", "spacing", "any"] | None,
        opt.Option("placebo: what it changes instead (default: any).", needs=("kind=placebo",), rare=True),
    ] = None,
    lexicon: opt.Lexicon = "gender-en",
    mode: Annotated[
        Literal["word", "sentence"] | None,
        opt.Option(
            "rotate: cut before any word, or only where a sentence begins (the default).",
            needs=("kind=rotate",),
            rare=True,
        ),
    ] = None,
    seed: Annotated[
        int, opt.Option("What is drawn depends only on the seed and the ids.", range=opt.SEED, rare=True)
    ] = 0,
    quiet: bool = True,
) -> Varied:
    """Make a variant of a collection, with one thing changed. A probe shows what a ranker makes of it.

    Of a ``kind`` of KINDS, or the placebo ``of`` one of them (swap).

    ``collection``: a path, ``{id: text}``, a frame or records. ``out``: .jsonl, .parquet or TSV, by its name; None:
    the variant is the result's ``table``. What is written is streamed, and the same bytes for any number of cores.
    JSONL and Parquet have the number of edits of each text; ``OUT.manifest.json`` has settings, counts and provenance.

    ``lexicon``: of swap and neutral. ``form``: of their placebos, one of synonym, name, spacing and any, which is the
    default (:mod:`evenrank.probes.group_wording`). ``mode``: of rotate, word or sentence, which is the default.

    Raises EvenrankError for a setting out of range, and if no passage could be changed: nothing is then written.
    InputError for input that cannot be read.
    """
    edits = Edits.chosen(kind, of, form, lexicon, mode, seed)
    provenance = Provenance("evenrank.probes.variants").add("collection", collection)
    if edits.lexicon is not None:
        note_lexicon(provenance, lexicon)
    if out is not None:
        form_of(out)  # Raises the error for a name of no form before anything is read.
        check_apart([out, manifest_of(out)], [collection, lexicon])
        check_outputs([out, manifest_of(out)])
        provenance.ahead(True)
    texts = as_collection(collection)
    with progress("documents", quiet=quiet) as advance:
        done = variant_of(texts, edits, out, advance)
    if out is not None:
        values = {"evenrank": __version__, **done.to_dict(), "provenance": provenance.to_dict()}
        with atomic_path(manifest_of(out)) as part:
            part.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    return done


def variant_of(
    texts: Path | pl.DataFrame, edits: Edits, out: Path | None = None, advance: Callable[[int], None] = lambda _: None
) -> Varied:
    """The variant of a file, or of passages (``doc_id``, ``text``): written to ``out``, or without it in memory. Raises
    EvenrankError, writing nothing, if nothing was changed: what equals the original is no variant of it."""
    batches = partial(texts.iter_slices, _BATCH) if isinstance(texts, pl.DataFrame) else partial(scan_collection, texts)
    if edits.form in ("name", "any"):
        edits = replace(edits, names=Names.counted(batches()))
    notes = () if edits.lexicon is None else language_notes(batches(), edits.lexicon)
    tally, tables = Tally(), []
    with ExitStack() as stack:
        file = None
        if out is not None:
            part = stack.enter_context(atomic_path(out))
            file = stack.enter_context(TableWriter(part, form_of(out)))

        def work(batch: pl.DataFrame) -> tuple[pl.DataFrame, Edited, Any]:
            table, variant = edits(batch)
            return table, variant, None if file is None or out is None else file.encode(_as_written(table, out))

        for table, variant, encoded in in_order(work, batches()):
            if file is None:
                tables.append(table)
            else:
                file.append(encoded, table.height)
            tally.add(table["edits"].to_numpy(), variant)
            advance(table.height)
        if not tally.changed:
            raise EvenrankError("no passage could be changed, so there is no variant")
    done = tally.varied(edits.kind, edits.to_dict(), notes)
    return replace(done, table=pl.concat(tables)) if file is None else done


def _as_written(table: pl.DataFrame, out: Path) -> pl.DataFrame:
    """A table as the file has it: a TSV without the edits. Raises InputError for what a TSV cannot hold."""
    if form_of(out) != "tsv":
        return table
    check_tsv_ids(table["doc_id"], out)
    broken = table.filter(pl.col("text").str.contains(r"[\r\n]"))["doc_id"]
    if len(broken):
        what = f"a TSV cannot hold the text of {quoted(broken[0])}, which has several lines"
        raise InputError(out, f"{what}: write .jsonl or .parquet")
    return table.select("doc_id", "text")
