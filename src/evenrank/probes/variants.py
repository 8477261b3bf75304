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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Annotated, Literal

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
from evenrank.files.convert import is_path
from evenrank.files.errors import quoted
from evenrank.files.progress import progress
from evenrank.files.streams import Form, TableWriter, check_tsv_ids, form_of
from evenrank.files.threads import in_order
from evenrank.files.wording import counted
from evenrank.groups import Lexicon, LexiconLike, load_lexicon
from evenrank.groups.lexicon import note_lexicon
from evenrank.mitigation.rotation import Mode, rotate_texts

from .group_wording import Edited, language_notes, neutralised, swapped
from .placebos import Asked, Names, placebo_of_words


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of variant.

    ``lexicon``: whether it exchanges the words of one, and so has a placebo. ``oriented``: its effect is signed by the
    change of the passage's magnitude.
    """

    name: str
    lexicon: bool = False
    oriented: bool = False


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind("swap", lexicon=True, oriented=True),
            Kind("neutral", lexicon=True),
            Kind("rotate"),
        )
    }
)
"""Every kind but ``placebo``, which is a placebo *of* one of them."""

PLACEBO = "placebo"
WITH_PLACEBO = tuple(kind.name for kind in KINDS.values() if kind.lexicon)


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
        most = sorted(self.left.items(), key=lambda item: (-item[1], item[0]))[:_NAMED]
        return {
            "kind": self.kind,
            **self.settings,
            "documents": self.documents,
            "changed": self.changed,
            "edits": self.edits,
            "histogram": dict(self.histogram),
            "left": {"total": sum(self.left.values()), "words": dict(most)},
            "verbs_left": self.verbs_left,
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """Summary of the changes, in one line."""
        edits = counted(self.edits, "edit")
        return (
            f"{counted(self.documents, 'document')}: {self.changed:,} changed ({edits}), {self.unchanged:,} unchanged"
        )

    @property
    def unchanged(self) -> int:
        """How many texts equal their original."""
        return self.documents - self.changed


@dataclass(slots=True)
class Tally:
    """Counts edits batch by batch. ``histogram`` [11]; ``short``: passages with fewer edits than their variant's."""

    histogram: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_MOST + 1, np.int64))
    edits: int = 0
    verbs: int = 0
    short: int = 0
    left: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, edits: NDArray[np.int64], left: Mapping[str, int], verbs: int, short: int) -> Tally:
        """The counts of texts with ``edits`` [N]."""
        histogram = np.bincount(np.minimum(edits, _MOST), minlength=_MOST + 1)
        return cls(histogram, int(edits.sum()), verbs, short, Counter(left))

    def merge(self, other: Tally) -> None:
        """Adds the counts of a part."""
        self.histogram += other.histogram
        self.edits += other.edits
        self.verbs += other.verbs
        self.short += other.short
        self.left.update(other.left)

    @property
    def rows(self) -> int:
        """How many texts were counted."""
        return int(self.histogram.sum())

    @property
    def changed(self) -> int:
        """How many texts have edits."""
        return int(self.histogram[1:].sum())

    def varied(
        self,
        kind: str,
        settings: Mapping[str, object],
        notes: tuple[str, ...] = (),
        table: pl.DataFrame | None = None,
    ) -> Varied:
        """The result, with the notes that the counts ask for."""
        if self.left:
            most = ", ".join(f"{word} {count:,}" for word, count in _most_frequent(self.left, 5))
            words = counted(self.left.total(), "group word")
            notes += (f"Left, as the lexicon has no counterpart: {words} ({most}{', …' * (len(self.left) > 5)}).",)
        if self.verbs:
            verbs, stay = counted(self.verbs, "verb"), "stays as it is" if self.verbs == 1 else "stay as they are"
            notes += (f"{verbs} after *they* {stay}, which may not agree (*they is*).",)
        if self.short:
            notes += (f"Fewer edits than its variant, for lack of places: {counted(self.short, 'passage')}.",)
        names = [*map(str, range(_MOST)), f"{_MOST}+"]
        histogram = dict(zip(names, self.histogram.tolist(), strict=True))
        left = dict(_most_frequent(self.left, len(self.left)))
        counts = (self.rows, self.changed, self.edits, histogram, left, self.verbs)
        return Varied(kind, settings, *counts, notes, table)


def _most_frequent(words: Mapping[str, int], count: int) -> list[tuple[str, int]]:
    return sorted(words.items(), key=lambda item: (-item[1], item[0]))[:count]


Batches = Callable[[], Iterable[pl.DataFrame]]
"""Reads the collection, in batches with ``doc_id`` and ``text``; may be called more than once."""


@dataclass(frozen=True, slots=True)
class DocumentEdits:
    """How a variant of a kind edits passages; the same for any batch that a passage is in.

    ``of``, ``form``, ``asked``: of placebos. ``names``: what was counted in a first pass, where it is needed.
    """

    kind: str
    seed: int
    lexicon: Lexicon | None = None
    of: str | None = None
    form: str | None = None
    mode: Mode = "sentence"
    names: Names | None = None
    asked: Asked = field(default_factory=dict)

    @classmethod
    def prepared(
        cls,
        batches: Batches,
        kind: str,
        seed: int,
        lexicon: Lexicon | None,
        of: str | None,
        form: str | None,
        mode: Mode,
    ) -> DocumentEdits:
        """With a first pass over the collection, if the kind needs one."""
        names = Names.counted(batches()) if form in ("name", "any") else None
        return cls(kind, seed, lexicon, of, form, mode, names)

    def __call__(self, table: pl.DataFrame) -> tuple[pl.DataFrame, Tally]:
        """The variant of ``doc_id``, ``text``, with ``edits``, 0 exactly where a text is unchanged; and its counts."""
        made, short = self._made(table)
        changed = (made.texts != table["text"]).to_numpy()
        edits = np.where(changed, made.edits, 0)
        tally = Tally.of(edits, made.left, made.verbs, short)
        return table.select("doc_id", made.texts.alias("text"), pl.Series("edits", edits)), tally

    def _made(self, table: pl.DataFrame) -> tuple[Edited, int]:
        """The edited texts, and how many have fewer edits than the variant of a placebo."""
        if self.kind == "rotate":
            texts, moved, _ = rotate_texts(table, self.seed, self.mode)
            whole = pl.Series(moved == 0)
            # A passage that is cut before its first word keeps its white space too.
            texts = pl.select(pl.when(whole).then(table["text"]).otherwise(texts)).to_series()
            return Edited(texts, (moved > 0).astype(np.int64), Counter()), 0
        assert self.lexicon is not None
        change = swapped if (self.of or self.kind) == "swap" else neutralised
        made = change(table["text"], self.lexicon)
        if self.kind != PLACEBO:
            return made, 0
        assert self.form is not None
        placebo = placebo_of_words(table, made.edits, self.lexicon, self.form, self.seed, self.names, self.asked)
        return placebo, int((placebo.edits < made.edits).sum())


Path = str | os.PathLike[str]
Change = Callable[[pl.DataFrame], tuple[pl.DataFrame, Tally]]
"""From a batch to its variant (ids, ``text``, ``edits``) and its counts."""


@dataclass(frozen=True, slots=True)
class VariantFiles:
    """Where a variant is written, and in which form."""

    out: Path
    form: Form = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "form", form_of(self.out))

    @property
    def manifest(self) -> str:
        """The file with settings, counts and provenance."""
        return f"{os.fspath(self.out).rstrip('/')}.manifest.json"

    @property
    def edits(self) -> str | None:
        """The file of a TSV's edits: an id and a number a line."""
        return f"{os.fspath(self.out)}.edits.tsv" if self.form == "tsv" else None

    def check(self, inputs: Iterable[object]) -> None:
        """Raises InputError for a file that cannot be written or that would replace one of ``inputs``."""
        beside = [self.manifest, self.edits]
        check_apart([self.out, *beside], inputs)
        check_outputs([self.out, *beside])

    def write(
        self,
        batches: Iterable[pl.DataFrame],
        change: Change,
        advance: Callable[[int], None],
    ) -> Tally:
        """Writes the changed batches, and of a TSV the edits.

        Raises EvenrankError, writing nothing, if nothing was changed.
        """
        tally = Tally()
        with ExitStack() as stack:
            data = stack.enter_context(atomic_path(self.out))
            beside = None if self.edits is None else stack.enter_context(atomic_path(self.edits))
            texts = stack.enter_context(TableWriter(data, self.form))
            edits = None if beside is None else stack.enter_context(TableWriter(beside, "tsv"))

            def work(batch: pl.DataFrame) -> tuple[object, object, int, Tally]:
                table, counts = change(batch)
                if edits is None:
                    return texts.encode(table), None, table.height, counts
                self._check_lines(table)
                columns = table.select("doc_id", "text"), table.select("doc_id", "edits")
                return texts.encode(columns[0]), edits.encode(columns[1]), table.height, counts

            for encoded, numbers, rows, counts in in_order(work, batches):
                texts.append(encoded, rows)
                if edits is not None:
                    edits.append(numbers, rows)
                tally.merge(counts)
                advance(rows)
            check_changed(tally)
        return tally

    def write_manifest(self, done: Varied, made: Provenance) -> None:
        """Writes the settings, the counts and the provenance beside the variant."""
        values = {"evenrank": __version__, **done.to_dict(), "provenance": made.to_dict()}
        with atomic_path(self.manifest) as part:
            part.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")

    def _check_lines(self, table: pl.DataFrame) -> None:
        check_tsv_ids(table["doc_id"], self.out)
        broken = table.filter(pl.col("text").str.contains(r"[\r\n]"))["doc_id"]
        if len(broken):
            what = f"a TSV cannot hold the text of {quoted(broken[0])}, which has several lines"
            raise InputError(self.out, f"{what}: write .jsonl or .parquet")


def check_changed(tally: Tally) -> None:
    """Raises EvenrankError if nothing was changed: what equals the original is no variant of it."""
    if not tally.changed:
        raise EvenrankError("no passage could be changed, so there is no variant")


_BATCH = 1 << 14


@dataclass(frozen=True, slots=True)
class Choice:
    """What to make: ``changed`` is the kind itself, or what a placebo is a placebo of."""

    kind: str
    changed: Kind
    form: str | None
    lexicon: Lexicon | None
    mode: Mode | None
    seed: int

    @classmethod
    def of(
        cls, kind: str, of: str | None, form: str | None, lexicon: LexiconLike, mode: Mode | None, seed: int
    ) -> Choice:
        """A checked choice; None: what is usual. Raises EvenrankError for a name that is not known, for a setting that
        the kind does not have, and for a lexicon that lacks words."""
        changed = KINDS[of or "swap"] if kind == PLACEBO else KINDS[kind]
        mode = mode or "sentence"
        words = None
        if changed.lexicon:
            words = load_lexicon(lexicon)
            # Raises the error for a lexicon without counterparts now, before anything is read.
            (swapped if changed.name == "swap" else neutralised)(pl.Series([""]), words)
        form = (form or "any") if kind == PLACEBO else None
        return cls(kind, changed, form, words, mode if kind == "rotate" else None, seed)

    @property
    def placebo_of(self) -> str | None:
        """What a placebo is a placebo of; None for any other kind."""
        return self.changed.name if self.kind == PLACEBO else None

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        name = None if self.lexicon is None else self.lexicon.name
        return {"of": self.placebo_of, "form": self.form, "lexicon": name, "mode": self.mode, "seed": self.seed}

    def edits(self, batches: Batches) -> DocumentEdits:
        """The edits of passages; some kinds read the collection once for it."""
        mode = self.mode or "sentence"
        return DocumentEdits.prepared(batches, self.kind, self.seed, self.lexicon, self.placebo_of, self.form, mode)


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
    JSONL and Parquet have the number of edits of each text, a TSV has them in ``OUT.edits.tsv``;
    ``OUT.manifest.json`` has settings, counts and provenance.

    ``lexicon``: of swap and neutral. ``form``: of their placebos, one of synonym, name, spacing and any, which is the
    default (:mod:`evenrank.probes.group_wording`). ``mode``: of rotate, word or sentence, which is the default.

    Raises EvenrankError for a setting out of range, and if no passage could be changed: nothing is then written.
    InputError for input that cannot be read.
    """
    choice = Choice.of(kind, of, form, lexicon, mode, seed)
    files = None if out is None else VariantFiles(out)
    made = Provenance("evenrank.probes.variants").add("collection", collection)
    if choice.lexicon is not None:
        note_lexicon(made, lexicon)
    if files is not None:
        files.check([collection, lexicon])
        made.ahead(True)
    texts, table = as_collection(collection), None
    with progress("documents", quiet=quiet) as advance:
        batches = partial(scan_collection, texts) if is_path(texts) else partial(_slices, texts)
        change = choice.edits(batches)
        notes = () if choice.lexicon is None else language_notes(batches(), choice.lexicon)
        if files is None:
            tally, table = _in_memory(batches(), change)
        else:
            tally = files.write(batches(), change, advance)
    done = tally.varied(kind, choice.to_dict(), notes, table)
    if files is not None:
        files.write_manifest(done, made)
    return done


def variant_of(passages: pl.DataFrame, choice: Choice, asked: Asked) -> Varied:
    """A variant of passages (``doc_id``, ``text``) in memory; a placebo leaves the words that are ``asked`` for."""
    change = replace(choice.edits(lambda: [passages]), asked=asked)
    tally, table = _in_memory(_slices(passages), change)
    notes = () if choice.lexicon is None else language_notes([passages], choice.lexicon)
    return tally.varied(choice.kind, choice.to_dict(), notes, table)


def _slices(table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    return table.iter_slices(_BATCH)


def _in_memory(batches: Iterable[pl.DataFrame], change: Change) -> tuple[Tally, pl.DataFrame]:
    """The counts and the whole variant. Raises EvenrankError for no changes."""
    tally, tables = Tally(), []
    for table, counts in in_order(change, batches):
        tables.append(table)
        tally.merge(counts)
    check_changed(tally)
    return tally, pl.concat(tables)
