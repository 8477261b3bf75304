"""Variant collections: the same ids, one thing changed.

What a ranker makes of that one thing is the difference between its scores of a passage and of its variant
(:mod:`evenrank.probes`). A *document variant* has a text per passage (swap, neutral, rotate, padded and their
placebos), a *pair variant* one per query and passage, as what it changes depends on the query: on where its answer is
(brief, early, late, foil), or on its words (repeated).

When it misleads: every edit leaves traces of its own (a seam, an odd word, another length), and a ranker may react to
those. Compare with the variant's placebo, where it has one, which leaves the same traces and changes nothing else.

Worked example: the answer *China* is in the second of three sentences.

>>> import polars as pl
>>> from evenrank.probes.variants import variants
>>> answers = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "answer_start": [25], "answer_end": [30]})
>>> made = variants({"d": "Tea is old. It came from China. We like it."}, "early", answers=answers)
>>> made.table.rows()
[('q', 'd', 'It came from China. Tea is old. We like it.', 1)]
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
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
    as_qrels,
    as_queries,
    as_run,
    atomic_path,
    check_apart,
    check_outputs,
    read_texts,
    scan_collection,
)
from evenrank.files.arguments import check_ranges, checked
from evenrank.files.convert import frame_of, id_column, is_path
from evenrank.files.errors import quoted
from evenrank.files.hashing import FNV_OFFSET, fnv, mix
from evenrank.files.progress import progress
from evenrank.files.sentences import sentence_spans
from evenrank.files.squad import load_squad
from evenrank.files.streams import Form, TableWriter, check_tsv_ids, form_of
from evenrank.files.threads import in_order
from evenrank.files.wording import counted
from evenrank.groups import Lexicon, LexiconLike, load_lexicon
from evenrank.groups.lexicon import note_lexicon
from evenrank.mitigation.rotation import MODES, Mode, draw, mixed_seed, rotate_texts
from evenrank.models.scorers import TextPairs

from .group_wording import Edited, language_notes, neutralised, swapped
from .placebos import FORMS, Names, placebo_of_words
from .sentences import (
    SentencePool,
    content_words,
    control_moved,
    control_without,
    first_answers,
    holding,
    inserted,
    locate,
    moved,
    only,
    padded,
    places,
    without,
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a variant of this kind changes.

    ``pairs``: it depends on the query, so it has a text per query and passage, not one per passage. ``answers``,
    ``queries``, ``lexicon``: what it needs (``queries`` with a run or judgements). ``placebo``: whether there is one.
    ``oriented``: its effect is signed by the change of the passage's magnitude.
    """

    name: str
    change: str
    pairs: bool = False
    answers: bool = False
    queries: bool = False
    lexicon: bool = False
    placebo: bool = False
    oriented: bool = False


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind("swap", "group words exchanged for those of another group", lexicon=True, placebo=True, oriented=True),
            Kind("neutral", "group words exchanged for neutral ones", lexicon=True, placebo=True),
            Kind("rotate", "sentences (or words) rotated at a drawn place"),
            Kind("padded", "sentences of other passages added until the length doubles"),
            Kind("brief", "only the answer's sentence", pairs=True, answers=True),
            Kind("early", "the answer's sentence moved first", pairs=True, answers=True, placebo=True),
            Kind("late", "the answer's sentence moved last", pairs=True, answers=True, placebo=True),
            Kind("foil", "the answer's sentence removed", pairs=True, answers=True, placebo=True),
            Kind("repeated", "the query's content words in one more sentence", pairs=True, queries=True, placebo=True),
        )
    }
)
"""Every kind but ``placebo``, which is a placebo *of* one of them."""

PLACEBO = "placebo"
WITH_PLACEBO = tuple(kind.name for kind in KINDS.values() if kind.placebo)


_MOST = 10
"""Passages of this many edits or more are counted together."""
_NAMED = 20
"""At most this many of the words that were left are named."""
SHORT = 1.5
"""A padded passage with fewer times its words than this is said to be short."""


@dataclass(frozen=True, slots=True)
class Varied:
    """A variant of a collection: its kind, and what was changed.

    ``documents``: texts written (of a pair variant: pairs of a query and a passage); ``changed``: those that differ
    from their original; ``edits``: changed places in all; ``histogram``: texts by their number of edits ("0" … "10+");
    ``left``: group words without a counterpart, and how often; ``verbs_left``: verbs after *they* that were left.
    ``table``: the variant (``query_id`` of a pair variant, ``doc_id``, ``text``, ``edits``) if no file was written.
    """

    kind: str
    pairs: bool
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
            "pairs": self.pairs,
            "documents": self.documents,
            "changed": self.changed,
            "edits": self.edits,
            "histogram": dict(self.histogram),
            "left": {"total": sum(self.left.values()), "words": dict(most)},
            "verbs_left": self.verbs_left,
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """What was changed, in one line."""
        noun = "pair" if self.pairs else "document"
        edits = counted(self.edits, "edit")
        return f"{counted(self.documents, noun)}: {self.changed:,} changed ({edits}), {self.unchanged:,} unchanged"

    @property
    def unchanged(self) -> int:
        """How many texts equal their original."""
        return self.documents - self.changed


@dataclass(slots=True)
class Tally:
    """Counts edits batch by batch. ``histogram`` [11]; ``short``: passages of which less was changed than should be."""

    histogram: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_MOST + 1, np.int64))
    edits: int = 0
    verbs: int = 0
    short: int = 0
    left: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(
        cls, edits: NDArray[np.int64], left: Mapping[str, int] | None = None, verbs: int = 0, short: int = 0
    ) -> Tally:
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
        pairs: bool,
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
            notes += (f"{verbs} after *they* {stay} (*they is*).",)
        if self.short:
            lack = f"Less than {SHORT} times as long, for lack of other sentences"
            what = lack if kind == "padded" else "Fewer edits than its variant, for lack of places"
            notes += (f"{what}: {counted(self.short, 'passage')}.",)
        names = [*map(str, range(_MOST)), f"{_MOST}+"]
        histogram = dict(zip(names, self.histogram.tolist(), strict=True))
        left = dict(_most_frequent(self.left, len(self.left)))
        counts = (self.rows, self.changed, self.edits, histogram, left, self.verbs)
        return Varied(kind, pairs, settings, *counts, notes, table)


def _most_frequent(words: Mapping[str, int], count: int) -> list[tuple[str, int]]:
    return sorted(words.items(), key=lambda item: (-item[1], item[0]))[:count]


Batches = Callable[[], Iterable[pl.DataFrame]]
"""Reads the collection, in batches with ``doc_id`` and ``text``; may be called more than once."""


@dataclass(frozen=True, slots=True)
class DocumentEdits:
    """How a document variant of a kind edits passages; the same for any batch that a passage is in.

    ``of``, ``form``: of placebos. ``names``, ``pool``: what was counted and drawn in a first pass, where it is needed.
    """

    kind: str
    seed: int
    lexicon: Lexicon | None = None
    of: str | None = None
    form: str | None = None
    mode: Mode = "sentence"
    names: Names | None = None
    pool: SentencePool | None = None

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
        pool = SentencePool.sampled(batches(), seed) if kind == "padded" else None
        return cls(kind, seed, lexicon, of, form, mode, names, pool)

    def __call__(self, table: pl.DataFrame) -> tuple[pl.DataFrame, Tally]:
        """The variant of ``doc_id``, ``text``, with ``edits``, 0 exactly where a text is unchanged; and its counts."""
        made, short = self._made(table)
        changed = (made.texts != table["text"]).to_numpy()
        edits = np.where(changed, made.edits, 0)
        tally = Tally.of(edits, made.left, made.verbs, short)
        return table.select("doc_id", made.texts.alias("text"), pl.Series("edits", edits)), tally

    def _made(self, table: pl.DataFrame) -> tuple[Edited, int]:
        """The edited texts, and of how many less was changed than should be."""
        if self.kind == "rotate":
            texts, moved, _ = rotate_texts(table, self.seed, self.mode)
            whole = pl.Series(moved == 0)
            # A passage that is cut before its first word keeps its white space too.
            texts = pl.select(pl.when(whole).then(table["text"]).otherwise(texts)).to_series()
            return Edited(texts, (moved > 0).astype(np.int64), Counter()), 0
        if self.kind == "padded":
            assert self.pool is not None
            return _padded(table, self.pool, self.seed)
        assert self.lexicon is not None
        change = swapped if (self.of or self.kind) == "swap" else neutralised
        made = change(table["text"], self.lexicon)
        if self.kind != PLACEBO:
            return made, 0
        assert self.form is not None
        placebo = placebo_of_words(table, made.edits, self.lexicon, self.form, self.seed, self.names)
        return placebo, int((placebo.edits < made.edits).sum())


def _padded(table: pl.DataFrame, pool: SentencePool, seed: int) -> tuple[Edited, int]:
    start = FNV_OFFSET ^ mixed_seed(seed)
    made = [
        padded(text, pool.chooser(doc_id, text, mix(fnv(doc_id.encode(), start))))
        for doc_id, text in table.select("doc_id", "text").iter_rows()
    ]
    texts = pl.Series("text", [text for text, _ in made], pl.String)
    words, now = (one.str.count_matches(r"\S+").to_numpy() for one in (table["text"], texts))
    edits = np.array([edits for _, edits in made], np.int64)
    return Edited(texts, edits, Counter()), int((now < SHORT * words).sum())


Collection = str | os.PathLike[str] | pl.DataFrame
_SPANS = ("query_id", "doc_id", "answer_start", "answer_end")
_COLUMNS = ", ".join(_SPANS[:-1]) + f" and {_SPANS[-1]}"
_SCHEMA = {"query_id": pl.String, "doc_id": pl.String, "text": pl.String, "edits": pl.Int64}
Pairs = tuple[pl.DataFrame, tuple[str, ...]]
"""A variant (``query_id``, ``doc_id``, ``text``, ``edits``), and notes."""
AnswerEdit = Callable[[str, int, int, int], tuple[str | None, int]]
"""From text, start, end and a draw to the edited text and the sentences that were moved or removed."""


def answer_variant(collection: Collection, answers: object, kind: str, control: bool, seed: int) -> Pairs:
    """The variant of the passages with answers: one row per query and passage, by its first answer there.

    ``kind``: brief, early, late or foil; ``control``: its placebo. Raises EvenrankError if a passage is missing.
    """
    spans, notes = read_spans(answers)
    first = first_answers(spans)
    place, texts = _texts_of(collection, first["doc_id"])
    table, alignment = locate(first, texts, place)
    edit = (CONTROLS if control else EDITS)[kind]
    start = mixed_seed(seed)
    rows, again, lacking = [], 0, 0
    columns = ("query_id", "doc_id", "text", "answer_start", "answer_end")
    for query, doc, text, begin, end in table.select(columns).iter_rows():
        edited, edits = edit(text, begin, end, draw(f"{query}\t{doc}", 1 << 32, start))
        lacking += edited is None
        edited = text if edited is None else edited
        rows.append((query, doc, edited, edits if edited != text else 0))
        again += edited != text and text[begin:end].casefold() in edited.casefold()
    notes += tuple(f"In the collection: {note}" for note in alignment.notes())
    if kind == "foil" and again and not control:
        notes += (f"Foils in which the answer's words are left, in another sentence: {again:,} of {len(rows):,}.",)
    if lacking:
        fitting = "sentences as long as the answer's" if kind == "foil" else "another sentence"
        notes += (f"Without a placebo, for lack of {fitting}: {lacking:,} of {counted(len(rows), 'pair')}.",)
    return pl.DataFrame(rows, _SCHEMA, orient="row"), notes


def _brief(text: str, start: int, end: int, _: int) -> tuple[str, int]:
    return only(text, start, end), places(text, start, end)[1]


def _early(text: str, start: int, end: int, _: int) -> tuple[str, int]:
    return moved(text, start, end, 0), _held(text, start, end)


def _late(text: str, start: int, end: int, _: int) -> tuple[str, int]:
    return moved(text, start, end, places(text, start, end)[1]), _held(text, start, end)


def _foil(text: str, start: int, end: int, _: int) -> tuple[str, int]:
    return without(text, start, end), _held(text, start, end)


def _held(text: str, start: int, end: int) -> int:
    first, last = holding(sentence_spans(text), start, end)
    return last - first + 1


def _early_control(text: str, start: int, end: int, drawn: int) -> tuple[str | None, int]:
    return control_moved(text, start, end, 0, drawn), 1


def _late_control(text: str, start: int, end: int, drawn: int) -> tuple[str | None, int]:
    return control_moved(text, start, end, places(text, start, end)[1], drawn), 1


def _foil_control(text: str, start: int, end: int, drawn: int) -> tuple[str | None, int]:
    left = control_without(text, start, end, drawn)
    # What is left is cut as before: the order of the sentences is the same.
    return left, 0 if left is None else len(sentence_spans(text)) - len(sentence_spans(left))


EDITS: dict[str, AnswerEdit] = {"brief": _brief, "early": _early, "late": _late, "foil": _foil}
CONTROLS: dict[str, AnswerEdit] = {"early": _early_control, "late": _late_control, "foil": _foil_control}


def repeated_variant(
    collection: Collection,
    queries: object,
    run: object,
    qrels: object,
    depth: int,
    control: bool,
    seed: int,
) -> Pairs:
    """The variant of the passages of a run to ``depth``, or of judged ones: one more sentence in each.

    It has the query's content words, or, as its placebo (``control``), as many of a sentence of another passage of the
    run, in the same place. Raises EvenrankError for a query or a passage without a text.
    """
    if run is not None:
        found = as_run(run)
        name, table = found.described, found.table.filter(pl.col("rank") <= depth)
    else:
        name, table = "the judgements", as_qrels(qrels)
    pairs = TextPairs.of_run(name, table, collection, as_queries(queries))
    ids = table.select("query_id", "doc_id")
    passages = ids.with_columns(pairs.documents.gather(pairs.document).alias("text"))
    pool = SentencePool.sampled([passages.select("doc_id", "text").unique("doc_id")], seed) if control else None
    start = mixed_seed(seed)
    rows = []
    for (query, doc, text), asked in zip(passages.iter_rows(), pairs.queries.gather(pairs.query), strict=True):
        words: list[str] | None = content_words(asked)
        if pool is not None and words:
            key = mix(fnv(f"{query}\t{doc}".encode(), FNV_OFFSET ^ start))
            words = pool.other_words(len(words), doc, text, asked, key)
        count = len(sentence_spans(text))
        if not words or not count:
            rows.append((query, doc, text, 0))
            continue
        place = draw(f"{query}\t{doc}", count + 1, start)
        rows.append((query, doc, inserted(text, _sentence(words), place), 1))
    return pl.DataFrame(rows, _SCHEMA, orient="row"), ()


def _sentence(words: list[str]) -> str:
    """Words as a sentence: the sentence after it is then cut from it, and itself from the one before."""
    line = " ".join(words)
    return f"{line[0].upper()}{line[1:]}."


def _texts_of(collection: Collection, ids: pl.Series) -> tuple[str, pl.DataFrame]:
    """The passages of a collection named by ``ids``, and what messages call the collection."""
    if isinstance(collection, pl.DataFrame):
        return "the collection", collection.filter(pl.col("doc_id").is_in(ids.implode()))
    return f"the collection {os.fspath(collection)}", read_texts(collection, ids.unique())


def read_spans(answers: object) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The answers of a SQuAD file or of a table, and notes on those that are elsewhere than the file says."""
    if is_path(answers):
        found = load_squad(answers)
        table, notes = found.answers(), tuple(f"{found.path}: {note}" for note in found.alignment.notes())
        if not table.height:
            raise InputError(found.path, "expected questions with answers, found none")
        return table, notes
    frame = frame_of(answers, "`answers`")
    if frame is None:
        found_type = type(answers).__name__
        raise EvenrankError(f"`answers`: expected a SQuAD file or a table with {_COLUMNS}, found a {found_type}")
    missing = [name for name in _SPANS if name not in frame.columns]
    if missing:
        has = ", ".join(frame.columns) or "none"
        raise EvenrankError(f"`answers`: the table has no column {missing[0]} (its columns are {has})")
    if not frame.height:
        raise EvenrankError("`answers`: expected at least one row, found none")
    for name in _SPANS[2:]:
        if not frame[name].dtype.is_integer() or frame[name].null_count():
            raise EvenrankError(f"`answers`: expected whole numbers as {name}, found {frame[name].dtype}")
    ids = [id_column(frame[name], name, "`answers`") for name in _SPANS[:2]]
    kept = [name for name in (*_SPANS[2:], "answer") if name in frame.columns]
    return pl.DataFrame([*ids, *(frame[name] for name in kept)]), ()


Path = str | os.PathLike[str]
Change = Callable[[pl.DataFrame], tuple[pl.DataFrame, Tally]]
"""From a batch to its variant (ids, ``text``, ``edits``) and its counts."""


@dataclass(frozen=True, slots=True)
class VariantFiles:
    """Where a variant is written, and in which form."""

    out: Path
    pairs: bool
    form: Form = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "form", form_of(self.out))
        if self.form == "tsv" and self.pairs:
            raise InputError(self.out, "a TSV cannot hold a text per query and document: write .jsonl or .parquet")

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
        if kind not in (*KINDS, PLACEBO):
            raise EvenrankError(f"`kind`: expected {_listed((*KINDS, PLACEBO))}, found {quoted(kind)}")
        for name, value, known in (("of", of, WITH_PLACEBO), ("form", form, FORMS), ("mode", mode, MODES)):
            if value is not None and value not in known:
                raise EvenrankError(f"`{name}`: expected {_listed(known)}, found {quoted(value)}")
        check_ranges(seed=seed)
        changed = KINDS[of or "swap"] if kind == PLACEBO else KINDS[kind]
        of_words = kind == PLACEBO and changed.lexicon
        if of is not None and kind != PLACEBO:
            raise EvenrankError("`of`: only with `kind` placebo")
        if form is not None and not of_words:
            raise EvenrankError("`form`: only with `kind` placebo, of swap or neutral")
        if mode is not None and kind != "rotate":
            raise EvenrankError("`mode`: only with `kind` rotate")
        mode = mode or "sentence"
        words = None
        if changed.lexicon:
            words = load_lexicon(lexicon)
            # Raises the error for a lexicon without counterparts now, before anything is read.
            (swapped if changed.name == "swap" else neutralised)(pl.Series([""]), words)
        form = form or "any"
        return cls(kind, changed, form if of_words else None, words, mode if kind == "rotate" else None, seed)

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

    def check_needs(self, answers: object, queries: object, run: object, qrels: object) -> None:
        """Raises EvenrankError if the kind needs something that is not given."""
        name = quoted(self.changed.name)
        if self.changed.answers and answers is None:
            raise EvenrankError(f"`answers`: the kind {name} needs answers and their places in the passages")
        if self.changed.queries and queries is None:
            raise EvenrankError(f"`queries`: the kind {name} needs the queries")
        if self.changed.queries and (run is None) == (qrels is None):
            raise EvenrankError(f"`run`: the kind {name} needs a run, or else `qrels`, for its pairs")


@checked
def variants(
    collection: opt.TheCollection,
    *,
    kind: Annotated[
        str,
        opt.Option(
            "swap, neutral, rotate, padded, brief, early, late, foil, repeated, or placebo (of one of them).",
            metavar="KIND",
        ),
    ],
    out: Path | None = None,
    of: Annotated[
        str | None,
        opt.Option("placebo: of swap, neutral, early, late, foil or repeated (default: swap).", metavar="KIND"),
    ] = None,
    form: Annotated[
        Literal["synonym", "name", "spacing", "any"] | None,
        opt.Option("placebo of swap or neutral: what it changes instead (default: any).", rare=True),
    ] = None,
    lexicon: opt.Lexicon = "gender-en",
    answers: Annotated[
        object,
        opt.Option("brief, early, late, foil: answers in these documents.", metavar="SQUAD.json", reads=True),
    ] = None,
    queries: Annotated[
        object, opt.Option("repeated: the queries: TSV, CSV, JSONL, Parquet or irds:NAME.", reads=True)
    ] = None,
    run: Annotated[object, opt.Option("repeated: the run whose passages are changed.", reads=True)] = None,
    qrels: Annotated[object, opt.Option("repeated: judgements, instead of a run.", reads=True, unless="run")] = None,
    depth: Annotated[int, opt.Option("Ranks of the run.", panel="Input", rare=True)] = 100,
    mode: Annotated[
        Literal["word", "sentence"] | None,
        opt.Option("rotate: cut before any word, or only where a sentence begins (the default).", rare=True),
    ] = None,
    seed: Annotated[int, opt.Option("What is drawn depends only on the seed and the ids.", rare=True)] = 0,
    quiet: bool = True,
) -> Varied:
    """Make a variant of a collection, with one thing changed. A probe shows what a ranker makes of it.

    Of a ``kind`` of KINDS, or the placebo ``of`` one of them (swap).

    ``collection``: a path, ``{id: text}``, a frame or records. ``out``: .jsonl, .parquet or, for document variants,
    TSV, by its name; None: the variant is the result's ``table``. What is written is streamed, and the same bytes for
    any number of cores. JSONL and Parquet have the number of edits of each text, a TSV has them in
    ``OUT.edits.tsv``; ``OUT.manifest.json`` has settings, counts and provenance.

    ``lexicon``: of swap and neutral. ``form``: of their placebos, one of synonym, name, spacing and any, which is the
    default (:mod:`evenrank.probes.group_wording`). ``mode``: of rotate, word or sentence, which is the default.
    ``answers``: of brief, early, late and foil: a SQuAD file, or a table with ``query_id``, ``doc_id``,
    ``answer_start`` and ``answer_end`` (characters); of several answers of a query in a passage, the first.
    ``queries``, and ``run`` (to ``depth``) or ``qrels``: of repeated.

    Raises EvenrankError for a setting out of range, for something that the kind needs and that is not given, and if
    no passage could be changed: nothing is then written. InputError for input that cannot be read.
    """
    check_ranges(depth=depth)
    choice = Choice.of(kind, of, form, lexicon, mode, seed)
    choice.check_needs(answers, queries, run, qrels)
    files = None if out is None else VariantFiles(out, choice.changed.pairs)
    inputs = {"collection": collection, "answers": answers, "queries": queries, "run": run, "qrels": qrels}
    if not choice.changed.pairs:
        inputs = {"collection": collection}
    made = Provenance("evenrank.probes.variants")
    for role, source in inputs.items():
        made.add(role, source)
    if choice.lexicon is not None:
        note_lexicon(made, lexicon)
    if files is not None:
        files.check([*inputs.values(), lexicon])
        made.ahead(True)
    texts, table = as_collection(collection), None
    notes: tuple[str, ...] = ()
    if choice.changed.answers:
        table, notes = answer_variant(texts, answers, choice.changed.name, kind == PLACEBO, seed)
    elif choice.changed.queries:
        table, notes = repeated_variant(texts, queries, run, qrels, depth, kind == PLACEBO, seed)
    with progress("documents", quiet=quiet) as advance:
        if table is not None:
            batches, change = partial(_slices, table), _counted
        else:
            batches = partial(scan_collection, texts) if is_path(texts) else partial(_slices, texts)
            change = choice.edits(batches)
            notes = () if choice.lexicon is None else language_notes(batches(), choice.lexicon)
        if files is None:
            tally, table = _in_memory(batches(), change)
        else:
            tally = files.write(batches(), change, advance)
    made_with = {**choice.to_dict(), "depth": None if run is None or not choice.changed.queries else depth}
    done = tally.varied(kind, choice.changed.pairs, made_with, notes, table if files is None else None)
    if files is not None:
        files.write_manifest(done, made)
    return done


def _slices(table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    return table.iter_slices(_BATCH)


def _counted(table: pl.DataFrame) -> tuple[pl.DataFrame, Tally]:
    """A variant that is already made, and its counts."""
    return table, Tally.of(table["edits"].to_numpy())


def _in_memory(batches: Iterable[pl.DataFrame], change: Change) -> tuple[Tally, pl.DataFrame]:
    """The counts and the whole variant. Raises EvenrankError for no changes."""
    tally, tables = Tally(), []
    for table, counts in in_order(change, batches):
        tables.append(table)
        tally.merge(counts)
    check_changed(tally)
    return tally, pl.concat(tables)


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
