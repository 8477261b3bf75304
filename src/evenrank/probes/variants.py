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

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from evenrank.engines.hashing import fnv
from evenrank.engines.progress import progress
from evenrank.engines.ray import Cluster, Engine, check_engine
from evenrank.engines.streams import in_order
from evenrank.groups import Lexicon, load_lexicon
from evenrank.groups.lexicon import note_lexicon
from evenrank.io import EvenrankError, Provenance, as_collection, scan_collection
from evenrank.io.convert import is_path
from evenrank.io.errors import quoted
from evenrank.io.ranges import check_ranges
from evenrank.mitigation.rotation import MODES, Mode

from .document_edits import Batches, DocumentEdits
from .group_wording import neutralised, swapped
from .language_notes import language_notes
from .pair_edits import answer_variant, repeated_variant
from .placebos import FORMS
from .variant_kinds import KINDS, PLACEBO, WITH_PLACEBO, Kind
from .variant_output import Change, VariantFiles, check_changed, write_on_ray
from .varied import Tally, Varied

Path = str | os.PathLike[str]
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
        cls, kind: str, of: str | None, form: str | None, lexicon: Path | Lexicon, mode: Mode | None, seed: int
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
            words = lexicon if isinstance(lexicon, Lexicon) else load_lexicon(lexicon)
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

    def words_digest(self) -> int | None:
        """A hash of the lexicon's words: the parts of an interrupted call are only used for the same ones."""
        words = self.lexicon
        return None if words is None else fnv(repr((words.words, words.pairs, words.neutral)).encode())

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


# parameters, long: those of `evenrank variants`, each described.
def variants(
    collection: object,
    kind: str,
    out: Path | None = None,
    *,
    of: str | None = None,
    form: str | None = None,
    lexicon: Path | Lexicon = "gender-en",
    answers: object = None,
    queries: object = None,
    run: object = None,
    qrels: object = None,
    depth: int = 100,
    mode: Mode | None = None,
    seed: int = 0,
    workers: int | None = None,
    engine: Engine = "local",
    cluster: Cluster | None = None,
    quiet: bool = True,
) -> Varied:
    """Makes the variant of a collection of a ``kind`` of KINDS, or the placebo ``of`` one of them (swap).

    ``collection``: a path, ``{id: text}``, a frame or records. ``out``: .jsonl, .parquet or, for document variants,
    TSV, by its name; None: the variant is the result's ``table``. What is written is streamed, and the same bytes for
    any number of ``workers``. JSONL and Parquet have the number of edits of each text, a TSV has them in
    ``OUT.edits.tsv``; ``OUT.manifest.json`` has settings, counts and provenance.

    ``lexicon``: of swap and neutral. ``form``: of their placebos, one of synonym, name, spacing and any, which is the
    default (:mod:`evenrank.probes.placebos`). ``mode``: of rotate, word or sentence, which is the default.
    ``answers``: of brief, early, late and foil: a SQuAD file, or a table with ``query_id``, ``doc_id``,
    ``answer_start`` and ``answer_end`` (characters); of several answers of a query in a passage, the first.
    ``queries``, and ``run`` (to ``depth``) or ``qrels``: of repeated.

    ``engine="ray"``: document variants on a Ray cluster (``cluster`` sets its size); ``out`` is then a folder of .jsonl
    or .parquet parts. First passes over the collection (padded; forms name and any) are made here.

    Raises EvenrankError for a setting out of range, for something that the kind needs and that is not given, and if
    no passage could be changed: nothing is then written. InputError for input that cannot be read.
    """
    check_ranges(depth=depth, workers=workers)
    check_engine(engine)
    choice = Choice.of(kind, of, form, lexicon, mode, seed)
    choice.check_needs(answers, queries, run, qrels)
    if engine == "ray" and (out is None or choice.changed.pairs):
        what = "the kind reads few texts: use local" if choice.changed.pairs else "it writes a folder: expected `out`"
        raise EvenrankError(f"`engine='ray'`: {what}")
    files = None if out is None else VariantFiles(out, choice.changed.pairs, engine)
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
    with progress("documents", quiet=quiet or engine == "ray") as advance:
        if table is not None:
            batches, change = partial(_slices, table), _counted
        else:
            batches = partial(scan_collection, texts) if is_path(texts) else partial(_slices, texts)
            change = choice.edits(batches)
            notes = () if choice.lexicon is None else language_notes(batches(), choice.lexicon)
        if files is None:
            tally, table = _in_memory(batches(), change, workers)
        elif engine == "ray":
            settings = {"command": "variants", "kind": kind, **choice.to_dict(), "words": choice.words_digest()}
            tally = write_on_ray(texts, files, change, settings, cluster or Cluster(), quiet)
        else:
            tally = files.write(batches(), change, workers, advance)
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


def _in_memory(batches: Iterable[pl.DataFrame], change: Change, workers: int | None) -> tuple[Tally, pl.DataFrame]:
    """The counts and the whole variant. Raises EvenrankError for no changes."""
    tally, tables = Tally(), []
    for table, counts in in_order(change, batches, workers):
        tables.append(table)
        tally.merge(counts)
    check_changed(tally)
    return tally, pl.concat(tables)


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
