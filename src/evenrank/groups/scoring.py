"""Scoring texts for groups: counts, magnitudes and neutrality, for a table or for a whole collection."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Unpack, cast

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.files import (
    EvenrankError,
    InputError,
    Provenance,
    as_batches,
    as_collection,
    atomic_path,
    check_apart,
    check_outputs,
)
from evenrank.files.arguments import checked
from evenrank.files.convert import PathLike, Strings, TextsLike, is_path, strings
from evenrank.files.errors import FAST, arg, installed, quoted
from evenrank.files.progress import progress
from evenrank.files.provenance import SUFFIX
from evenrank.files.ray import map_files
from evenrank.files.streams import arrow_table, write_parquet
from evenrank.files.tables import IdIndex, is_parquet, read_columns, text_bytes
from evenrank.files.texts import Names, TextFile, map_passages, select_texts, texts_of_table
from evenrank.files.threads import in_order
from evenrank.files.tokens import Tokens, alphabet, folded, word_spans
from evenrank.files.types import Array

from . import _plain_counting
from .labels import as_labels
from .lexicon import (
    Lexicon,
    LexiconLike,
    builtin_lexicons,
    entries_by_first,
    find_entries,
    load_lexicon,
    matcher_of,
    note_lexicon,
)
from .table import (
    METADATA_KEY,
    GroupTable,
    Magnitude,
    as_group_table,
    is_score_file,
    magnitude_of_count,
    neutrality,
    sides,
)

if TYPE_CHECKING:
    from pyarrow import Table as ArrowTable

DEFAULT_MAGNITUDES: tuple[Magnitude, ...] = ("tf", "bool", "tf_words")


@checked
@dataclass(frozen=True, slots=True)
class Scoring:
    """How documents are scored: the lexicon, the tokenisation, the magnitudes and the neutrality threshold τ ≥ 0."""

    lexicon: Lexicon
    tokens: Tokens = "word"
    magnitudes: tuple[Magnitude, ...] = DEFAULT_MAGNITUDES
    threshold: Annotated[float, opt.WORDS] = 1

    def describe(self) -> dict[str, object]:
        """The settings as JSON values; stored with every score file."""
        return {
            "lexicon": self.lexicon.name,
            "groups": list(self.lexicon.groups),
            "shares": list(self.lexicon.shares),
            "poles": list(self.lexicon.poles) if self.lexicon.poles else None,
            "tokens": self.tokens,
            "threshold": self.threshold,
            **({"poles_assumed": True} if self.lexicon.poles_assumed else {}),
        }


def scoring_of(
    lexicon: LexiconLike | None,
    poles: str | None = None,
    tokens: Tokens | None = None,
    threshold: float | None = None,
) -> Scoring:
    """How texts are scored for any measure; None for the default: gender-en, word, 1.

    Raises EvenrankError as :func:`load_lexicon` does, and for poles that are not among the lexicon's groups.
    """
    return Scoring(
        load_lexicon(lexicon).with_poles(poles),
        tokens or "word",
        ("tf", "bool", "tf_words", "tf_literal"),
        1 if threshold is None else threshold,
    )


@checked
def score_texts(table: pl.DataFrame, scoring: Scoring) -> pl.DataFrame:
    """The group table of documents: one row for each row of ``table`` (``doc_id``, ``text``), in its order.

    Columns: ``doc_id``, ``tokens``, ``count_<group>``, ``magnitude_<kind>_<group>`` (the kinds of ``scoring``) and
    ``neutrality`` (see :func:`neutrality`).
    """
    return _scored(table, scoring)[0]


def _scored(table: pl.DataFrame, scoring: Scoring, *, by_word: bool = False) -> tuple[pl.DataFrame, Array]:
    """The group table, and with ``by_word`` the kernel's (row, entry, count) [P, 3]."""
    total, count, tf_words, tf_literal, pairs = _count(table["text"], scoring, by_word)
    columns: dict[str, pl.Series | Array] = {"doc_id": table["doc_id"], "tokens": total}
    groups = scoring.lexicon.groups
    for g, group in enumerate(groups):
        columns[f"count_{group}"] = count[:, g]
    for kind in scoring.magnitudes:
        by_group = {"tf_words": tf_words, "tf_literal": tf_literal}.get(kind)
        for g, group in enumerate(groups):
            column = by_group[:, g] if by_group is not None else magnitude_of_count(count[:, g], kind)
            columns[f"magnitude_{kind}_{group}"] = np.ascontiguousarray(column)
    columns["neutrality"] = neutrality(count, scoring.lexicon.shares, scoring.threshold)
    return pl.DataFrame(columns), pairs


@checked
def sides_of_texts(texts: Sequence[str] | pl.Series, scoring: Scoring) -> Array:
    """The side of each text [N] int8: +1, −1 or 0 by its signed ``tf_words`` magnitude [IBBR §2.2].

    Raises EvenrankError for a lexicon without poles.
    """
    table = pl.DataFrame(
        {"doc_id": pl.int_range(len(texts), eager=True).cast(pl.String), "text": pl.Series(texts, dtype=pl.String)}
    )
    by_words = replace(scoring, magnitudes=("tf_words",))
    return sides(GroupTable.of(score_texts(table, by_words), scoring.describe()).signed_magnitude("tf_words"))


@checked
def score_batch(
    batch: ArrowTable,
    lexicon: LexiconLike | None = None,
    *,
    id_column: str | None = None,
    text_column: str | None = None,
    poles: str | None = None,
    tokens: Tokens | None = None,
    threshold: float | None = None,
    magnitudes: Sequence[Magnitude] = DEFAULT_MAGNITUDES,
) -> ArrowTable:
    """The group table of a batch of documents, Arrow in and Arrow out: the function for an engine's ``map_batches``.

    A document's row is the same whatever batch it is in, so that an engine may cut a collection as it likes; what all
    batches give, written as Parquet, is what :func:`evenrank.score` writes, and ``scores`` takes it. For a collection
    that one machine reads, ``evenrank.score`` is simpler::

        ray.data.read_parquet("s3://bucket/pages").map_batches(
            evenrank.score_batch, fn_kwargs={"lexicon": "gender-en"}, batch_format="pyarrow"
        ).write_parquet("s3://bucket/groups")

    Args:
        batch: A pyarrow Table or RecordBatch, or any other Arrow table.
        id_column: Its column of ids; None: ``doc_id``, ``_id``, ``id`` and so on, as in a file.
        text_column: Its column of texts; None: ``text`` and so on, after a ``title`` if there is one.
        lexicon: As :func:`evenrank.audit` takes it.
        poles: As :func:`evenrank.audit` takes them.
        tokens: As :func:`evenrank.audit` takes it.
        threshold: As :func:`evenrank.audit` takes it.
        magnitudes: Some of ``count``, ``bool``, ``tf``, ``tf_words`` and ``tf_literal``.

    Returns:
        ``doc_id``, ``tokens``, ``count_<group>``, ``magnitude_<kind>_<group>`` and ``neutrality``, a row a document in
        the batch's order; the settings are in the schema's metadata.

    Raises:
        InputError: For a batch without these columns, and for a row without id or text.
        EvenrankError: For a lexicon that cannot be used.
    """
    scoring = replace(scoring_of(lexicon, poles, tokens, threshold), magnitudes=tuple(magnitudes))
    names = Names.of(TextFile("", id_column, text_column), "doc_id")
    scored = score_texts(texts_of_table(pl.DataFrame(batch), names, source="the batch"), scoring)
    return arrow_table(scored, {METADATA_KEY: json.dumps(scoring.describe())})


# --- a whole collection --------------------------------------------------------------------------------------------


def score_batches(batches: Iterable[pl.DataFrame], scoring: Scoring) -> Iterator[pl.DataFrame]:
    """Group tables of batches of documents, in order, on a thread for each core."""
    return in_order(lambda batch: score_texts(batch, scoring), batches)


@dataclass(frozen=True, slots=True)
class WordCounts:
    """How often each word of a lexicon occurs in each document.

    ``words`` [E]: the entries as the tokenisation reads them, a phrase being one entry; ``groups`` [E]: the group of
    each; ``documents``: how many were read.
    The others have a row for each document and entry that occurs in it: ``document`` [P] (the document's row in the
    group table, ascending), ``word`` [P] (a place in ``words``) and ``count`` [P].
    """

    words: tuple[str, ...]
    groups: tuple[str, ...]
    documents: int
    document: Array
    word: Array
    count: Array


def score_with_words(batches: Iterable[pl.DataFrame], scoring: Scoring) -> tuple[GroupTable, WordCounts]:
    """Scores batches of documents, on all cores, and counts each word of the lexicon in the same pass."""
    tables, parts, rows = [], [], 0
    for table, pairs in in_order(lambda batch: _scored(batch, scoring, by_word=True), batches):
        pairs[:, 0] += rows
        tables.append(table)
        parts.append(pairs)
        rows += table.height
    entries = scoring.lexicon.entries(scoring.tokens)
    if not tables:
        tables, parts = [score_texts(pl.DataFrame(schema={"doc_id": pl.String, "text": pl.String}), scoring)], []
    counts = np.concatenate([np.zeros((0, 3), dtype=np.int32), *parts])
    words = WordCounts(
        tuple(map(" ".join, entries)),
        tuple(entries.values()),
        rows,
        *(np.ascontiguousarray(counts[:, column]) for column in range(3)),
    )
    return GroupTable.of(pl.concat(tables), scoring.describe()), words


@checked
def score_collection(
    collection: object,
    out: str | os.PathLike[str],
    scoring: Scoring,
    *,
    quiet: bool = True,
) -> int:
    """Scores a collection in one streaming pass over all cores into a Parquet file; returns the number of documents.

    ``collection``: a path, ``irds:NAME``, ``{document: text}``, or a frame of polars or pandas.
    Memory stays at a few batches, whatever the collection's size (and eight bytes a document to find repeated ids).
    The file appears whole or not at all.
    """
    check_outputs([out], [collection])
    _check_ending(out)
    with progress("documents", quiet=quiet) as advance:
        if isinstance(collection, str | os.PathLike):
            tables = map_passages(collection, lambda batch: score_texts(batch, scoring))
        else:
            tables = score_batches(as_batches(collection), scoring)
        total = 0
        with atomic_path(out) as part:
            for rows in write_parquet(tables, part, {METADATA_KEY: json.dumps(scoring.describe())}):
                advance(rows)
                total += rows
        return total


@checked
def score_in_memory(texts: TextsLike, scoring: Scoring) -> GroupTable:
    """The group table of documents, in memory, made on all cores."""
    batches = (part for batch in as_batches(texts, "`texts`") for part in batch.iter_slices(1 << 15))
    return GroupTable.of(pl.concat(score_batches(batches, scoring)), scoring.describe())


# --- the kernel's inputs -------------------------------------------------------------------------------------------


def _count(texts: pl.Series, scoring: Scoring, by_word: bool) -> tuple[Array, Array, Array, Array, Array]:
    """Tokens [N], count [N, G], tf_words [N, G] and tf_literal [N, G] of each text, and (text, entry, count) [P, 3]."""
    if not installed(*FAST) or (texts.dtype == pl.String and _plain_counting.Room.has(texts)):
        return _plain_counting.count_entries(texts, scoring.lexicon, scoring.tokens, by_word)
    # The compiler takes half a second to import, which an audit of few or of scored documents can do without.
    from . import _counting as _kernel

    data, offsets = text_bytes(texts)
    return _kernel.count_entries(
        data,
        offsets[:-1],
        offsets[1:],
        scoring.tokens == "word",
        alphabet(scoring.tokens),
        matcher_of(scoring.lexicon, scoring.tokens),
        len(scoring.lexicon.groups),
        by_word,
    )


@checked
def gendered_spans(text: str, lexicon: Lexicon) -> list[tuple[int, int, str]]:
    """Where a text's ``word`` tokens match the lexicon: start, end (characters) and group, as the kernel matches."""
    spans = word_spans(text)
    matches = find_entries([folded(text[start:end]) for start, end in spans], entries_by_first(lexicon, "word"))
    return [(spans[first][0], spans[end - 1][1], lexicon.groups[group]) for first, end, _, group in matches]


def _lists_words(path: PathLike) -> bool:
    """Whether a file is a lexicon: TOML, or ``word,group`` lines."""
    if os.fspath(path).endswith(".toml"):
        return True
    return not is_parquet(path) and {"word", "group"} == set(read_columns(path).table.columns)


def _check_guess(guess: GroupTable, labels: GroupTable) -> None:
    """Raises EvenrankError for a guess of other groups than the labels', which would be of no use."""
    there = [group for group in labels.groups if labels.table[f"count_{group}"].to_numpy().any()]
    folded = {group.casefold(): group for group in there}
    alike = any(folded.get(group.casefold(), group) != group for group in guess.groups)
    if alike or (there and not {*there} & {*guess.groups}):
        names = ", ".join(there)
        raise EvenrankError(
            f"{arg.guess}: its groups ({', '.join(guess.groups)}) are not those of the labels ({names})"
        )


@dataclass(frozen=True)
class GroupSource:
    """The documents' texts and :class:`evenrank.options.GroupOptions`: ``GroupSource(texts, **groups)``.

    Groups are those of ``labels``, of the table ``scores``, or of the words of ``lexicon`` in the ``collection``.
    """

    collection: object = None
    scores: object = None
    labels: object = None
    neutral: Strings | None = None
    group_column: Strings | None = None
    intersect: bool | None = None
    guess: object = None
    lexicon: LexiconLike | None = None
    poles: str | None = None
    tokens: Tokens | None = None
    threshold: float | None = None
    takes_drawn: bool = False
    """Whether labels that were drawn will do: for figures alone, which they estimate."""

    @property
    def described(self) -> bool:
        """Whether groups are known without counting words."""
        return self.scores is not None or self.labels is not None

    def note(self, provenance: Provenance) -> None:
        """Records the inputs, before they are read."""
        for role in ("collection", "scores", "labels"):
            provenance.add(role, getattr(self, role))
        if is_path(self.guess) and os.path.exists(self.guess):
            provenance.add("guess", self.guess)
        if is_path(self.labels) and os.path.isfile(f"{os.fspath(self.labels)}{SUFFIX}"):
            provenance.add("labels' card", f"{os.fspath(self.labels)}{SUFFIX}")
        default = None if self.described else "gender-en"
        note_lexicon(provenance, default if self.lexicon is None else self.lexicon)

    def scoring(self) -> Scoring:
        """How words are counted."""
        return scoring_of(self.lexicon, self.poles, self.tokens, self.threshold)

    def known(self, ids: Sequence[pl.Series] | None = None) -> GroupTable:
        """The table of labels or scores, for these documents or for all, with the ``poles`` asked for.

        Raises EvenrankError for scores that were made with another lexicon, tokens or threshold, or from labels, where
        these are asked for, and for poles that are not among the groups.
        """
        if self.labels is not None:
            return self._labels(ids)
        scores = as_group_table(self.scores, ids)
        lexicon = None if self.lexicon is None else load_lexicon(self.lexicon).name
        for name, value in {"lexicon": lexicon, "tokens": self.tokens, "threshold": self.threshold}.items():
            if value is not None and scores.labelled:
                origin = f"the scores were made from the labels {scores.settings['labels']}"
                raise EvenrankError(f"{arg(name)}: {value} was asked for, but {origin}, which have no words")
            if value is not None and scores.settings.get(name, value) != value:
                other = scores.settings[name]
                raise EvenrankError(f"{arg(name)}: {value} was asked for, but the scores were made with {name} {other}")
        return scores.with_poles(self.poles)

    def margins(self, ids: Sequence[pl.Series]) -> dict[str, GroupTable]:
        """For combinations, the table of each single column, by name."""
        names = strings(self.group_column) if self.intersect else ()
        return {name: replace(self, group_column=name, intersect=None, poles=None).known(ids) for name in names}

    def _labels(self, ids: Sequence[pl.Series] | None) -> GroupTable:
        guess = None if self.guess is None else self._guess()
        more = () if guess is None else guess.lexicon.groups if isinstance(guess, Scoring) else guess.groups
        labels = as_labels(
            self.labels,
            ids,
            neutral=self.neutral,
            group_column=self.group_column,
            intersect=self.intersect,
            poles=self.poles,
            more=more,
        )
        sample = labels.sample
        if not self.takes_drawn and (sample is not None or guess is not None):
            raise EvenrankError(
                "labels that were drawn are of some documents: audit, gate and rebalance take them, for figures that"
                " they estimate"
            )
        if guess is None:
            return labels
        if sample is None:
            raise EvenrankError(
                f"{arg.guess} helps labels that were drawn (evenrank labels sample), with their"
                " probabilities: these have no"
                " column probability"
            )
        if isinstance(guess, Scoring):
            wanted = [sample.documents, *(ids or ())]
            parts = [*score_batches(select_texts(as_collection(self.collection), wanted), guess)]
            guess = GroupTable.of(pl.concat(parts), guess.describe())
        _check_guess(guess, labels)
        weights = replace(guess.as_weights(labels.groups), poles=labels.poles)
        rows = IdIndex([weights.table["doc_id"]]).places(sample.documents)
        if not (rows >= 0).any():
            raise EvenrankError(f"{arg.guess}: it knows none of the documents that could be drawn")
        name = guess.settings.get("labels", guess.settings.get("lexicon"))
        settings = {**labels.settings, "guess": name}
        return replace(labels, settings=settings, sample=replace(sample, guess=weights, guessed=rows))

    def _guess(self) -> Scoring | GroupTable:
        """How words are counted, for a lexicon, or the groups of a file or a table: labels, or what score wrote."""
        guess = self.guess
        words = isinstance(guess, Lexicon) or (isinstance(guess, str) and not os.path.exists(guess))
        if words or (is_path(guess) and _lists_words(guess)):
            if words and isinstance(guess, str) and guess not in builtin_lexicons():
                known = ", ".join(builtin_lexicons())
                raise EvenrankError(f"{arg.guess}: expected a file or one of {known}, found {quoted(guess)}")
            if self.collection is None:
                raise EvenrankError(f"{arg.guess} of a lexicon needs the texts: give {arg.collection}")
            # A guess of labels, of which a document with a single word has one.
            return scoring_of(cast(LexiconLike, guess), threshold=0)
        if isinstance(guess, GroupTable) or (is_path(guess) and is_score_file(guess)):
            return as_group_table(guess, what=arg.guess)
        labels = as_labels(guess, neutral=self.neutral, what=arg.guess)
        if labels.sample is not None:
            raise EvenrankError(
                f"{arg.guess}: expected what was made without these labels, found labels that were drawn"
            )
        return labels

    def table(self, ids: Sequence[pl.Series]) -> GroupTable:
        """The group table of these documents. Raises EvenrankError if none is found or the source cannot be used."""
        if self.described:
            return self.known(ids)
        collection = as_collection(self.collection)
        scoring = self.scoring()
        parts = [part for part in score_batches(select_texts(collection, ids), scoring) if part.height]
        source = f"the collection {os.fspath(collection)}" if is_path(collection) else "the collection"
        if not parts:
            raise EvenrankError(f"none of the run's documents is in {source}")
        return replace(GroupTable.of(pl.concat(parts), scoring.describe()), source=source, partial=True)


@checked
def score(
    collection: Annotated[object, opt.Option(opt.TEXTS, metavar="COLLECTION", reads=True, unless=("labels",))] = None,
    *,
    out: Annotated[opt.File, opt.Option("The group table to write (Parquet; ray: a folder of parts).", panel="Output")],
    magnitudes: Annotated[
        str | Sequence[Magnitude] | None,
        opt.Option(
            "Some of count, bool, tf, tf_words, tf_literal. Default: tf bool tf_words.",
            typed=str,
            metavar="LIST",
            rare=True,
        ),
    ] = None,
    engine: opt.Engine = "local",
    quiet: bool = True,
    **groups: Unpack[opt.GroupOptions],
) -> tuple[int, int]:
    """Count each group's words in every document, or take labels. Magnitudes and neutrality are written as a Parquet
    table.

    Args:
        collection: A path, ``irds:NAME``, ``{document: text}``, or a frame. Of labels, only its documents are kept.
        out: The file, which appears whole or not at all; with Ray a folder, which readers refuse until it is whole.
        magnitudes: Some of ``count``, ``bool``, ``tf``, ``tf_words`` and ``tf_literal``; none of labels.
        engine: "local", one pass over all cores, or "ray": :func:`evenrank.score_batch` on a Ray cluster, of Parquet or
            JSON lines that all its machines can read.
        **groups: As :func:`evenrank.audit` takes them, but for ``scores``.

    Returns:
        The number of documents written, of how many.

    Raises:
        EvenrankError: For what contradicts itself or cannot be read.
    """
    source = GroupSource(collection, **groups)
    if source.scores is not None:
        raise EvenrankError(f"{arg.scores} are what this makes: give {arg.collection} or {arg.labels}")
    if source.labels is not None:
        return score_labels(source, out)
    check_apart([out], [source.lexicon])
    scoring = source.scoring()
    if isinstance(magnitudes, str):
        magnitudes = cast(Sequence[Magnitude], magnitudes.split())
    scoring = replace(scoring, magnitudes=DEFAULT_MAGNITUDES if magnitudes is None else tuple(magnitudes))
    if engine == "ray":
        rows = _score_on_ray(collection, out, scoring)
    else:
        rows = score_collection(collection, out, scoring, quiet=quiet)
    return rows, rows


def _score_on_ray(collection: object, out: str | os.PathLike[str], scoring: Scoring) -> int:
    """Scores the files of a collection on a Ray cluster into a folder of Parquet files; returns the documents."""
    if not isinstance(collection, str | os.PathLike):
        raise EvenrankError(f"{arg('engine', 'ray')} reads files: Parquet and JSON lines (.jsonl)")
    check_apart([out], [collection])
    _check_ending(out)
    columns = {}
    if isinstance(collection, TextFile):
        columns = {"id_column": collection.id_column, "text_column": collection.text_column}
    function = functools.partial(
        score_batch,
        lexicon=scoring.lexicon,
        tokens=scoring.tokens,
        threshold=scoring.threshold,
        magnitudes=scoring.magnitudes,
        **columns,
    )
    return map_files(collection, function, out)


def score_labels(source: GroupSource, out: str | os.PathLike[str]) -> tuple[int, int]:
    """Writes labels (see :func:`as_labels`) as a score file; returns how many documents it has, of how many.

    With a collection, only its documents are kept, and those without a label are not in the file: they stay unknown.
    :func:`read_group_table` reads the same group table again. The file appears whole or not at all; the same labels
    make the same bytes. Raises EvenrankError for labels that cannot be used, or that know no document of it.
    """
    check_outputs([out], [source.labels, source.collection])
    _check_ending(out)
    ids = None if source.collection is None else [_ids_of(batch) for batch in as_batches(source.collection)]
    group_table = source.known(ids)
    with atomic_path(out) as part:
        group_table.table.write_parquet(part, metadata={METADATA_KEY: json.dumps(group_table.settings)})
    rows = group_table.table.height
    return rows, rows if ids is None else sum(map(len, ids))


def _check_ending(out: str | os.PathLike[str]) -> None:
    """Raises InputError for a file whose name promises another form."""
    if os.fspath(out).endswith((".csv", ".tsv", ".json", ".jsonl")):
        raise InputError(out, "cannot be written: a group table is Parquet")


def _ids_of(batch: pl.DataFrame) -> pl.Series:
    # A copy: a long id may keep the text beside it in memory.
    return pl.Series("doc_id", batch["doc_id"].to_list(), pl.String)
