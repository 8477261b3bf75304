"""Variants of a collection as a probe is given them: files, tables or kinds, with their manifests and placebos."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenrank.files import EvenrankError, InputError, Run, as_collection, read_texts
from evenrank.files.convert import Strings, first_of, is_path, strings
from evenrank.files.errors import arg, quoted, readable
from evenrank.files.irds import is_identifier
from evenrank.files.reading import file_system
from evenrank.files.tokens import tokenize
from evenrank.files.wording import are, counted
from evenrank.groups import Lexicon
from evenrank.models.scorers import TextPairs

from .effects import Floats, Ints
from .variants import KINDS, PLACEBO, WITH_PLACEBO, Edits, Varied, manifest_of, variant_of

_EQUAL = 1e-9
"""Scores of a query that differ by no more than this share of the largest do not vary."""


@dataclass(frozen=True, slots=True)
class ProbedList:
    """N pairs of a query and a passage of its list.

    ``table`` [N]: ``query_id``, ``doc_id``; ``pairs``: the same pairs with their texts, of which each query and each
    passage has one. ``name``: of the run, or of the judgements. ``sampled_from``: the queries of the list of which
    those of a sample were drawn; None for all of them.
    """

    name: str
    table: pl.DataFrame
    pairs: TextPairs
    qrels: pl.DataFrame | None
    sampled_from: int | None = None

    @classmethod
    def of(
        cls,
        run: Run | None,
        qrels: pl.DataFrame | None,
        depth: int,
        collection: object,
        queries: object,
        sample: int | None = None,
        seed: int = 0,
    ) -> ProbedList:
        """The first ``depth`` passages of each query of ``run``, or without one the judged passages; of a ``sample``
        of so many of the queries, drawn with ``seed``.

        Raises EvenrankError if there is neither, and for queries and passages without a text.
        """
        from evenrank.files import as_queries

        if run is not None:
            name, described = run.name, run.described
            rows = run.table.filter(pl.col("rank") <= depth).select("query_id", "doc_id")
        elif qrels is not None:
            name = described = "the judgements"
            rows = qrels.group_by("query_id", maintain_order=True).agg("doc_id").explode("doc_id")
        else:
            raise EvenrankError(f"expected a {arg.run} or {arg.qrels}, whose passages are probed")
        query_texts, every = as_queries(queries), rows["query_id"].unique(maintain_order=True)
        if not every.is_in(query_texts["query_id"].implode()).any():
            swapped = f"are they of another list, or {arg.queries} and {arg.collection} exchanged?"
            raise EvenrankError(f"{described}: none of its {counted(len(every), 'query')} has a text: {swapped}")
        sampled_from = None
        if sample is not None and sample < len(every):
            drawn = every.gather(np.sort(np.random.default_rng(seed).choice(len(every), sample, replace=False)))
            rows, sampled_from = rows.filter(pl.col("query_id").is_in(drawn.implode())), len(every)
        pairs = TextPairs.of_run(described, rows, as_collection(collection), query_texts)
        return cls(name, rows, pairs, qrels, sampled_from)

    @property
    def query(self) -> Ints:
        """The query of each pair [N], numbered from 0."""
        return self.pairs.query

    @property
    def passage(self) -> Ints:
        """The passage of each pair [N], numbered from 0."""
        return self.pairs.document

    @property
    def texts(self) -> pl.Series:
        """The text of each pair's passage [N]."""
        return self.pairs.documents.gather(self.pairs.document)

    def passages(self) -> pl.DataFrame:
        """The distinct passages: ``doc_id``, ``text``, in the order of their numbers."""
        ids = self.table["doc_id"].unique(maintain_order=True)
        return pl.DataFrame({"doc_id": ids, "text": self.pairs.documents})

    def asked(self) -> dict[str, frozenset[str]]:
        """The words of the queries that each passage is listed for, by its id."""
        words = [frozenset(tokenize(query)) for query in self.pairs.queries]
        words_of: dict[str, frozenset[str]] = {}
        for doc_id, query in zip(self.table["doc_id"], self.pairs.query.tolist(), strict=True):
            words_of[doc_id] = words_of.get(doc_id, frozenset()) | words[query]
        return words_of

    def ranked(self, scores: Floats, name: str) -> Run:
        """The list ranked by ``scores`` [N]."""
        return Run.from_table(self.table.with_columns(pl.Series("score", scores)), name)


def spread(scores: Floats, query: Ints) -> Floats:
    """The standard deviation (ddof 0) of the scores [N] of each query [Q]; NaN where they do not vary."""
    number = int(query.max()) + 1
    count = np.bincount(query, minlength=number)
    mean = np.bincount(query, scores, number) / count
    deviation: Floats = np.sqrt(np.bincount(query, (scores - mean[query]) ** 2, number) / count)
    least, most, largest = (np.full(number, start) for start in (np.inf, -np.inf, 0.0))
    np.minimum.at(least, query, scores)
    np.maximum.at(most, query, scores)
    np.maximum.at(largest, query, np.abs(scores))
    return np.where(most - least > _EQUAL * largest, deviation, np.nan)


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of the passages of a list.

    ``texts`` [N]: what stands in place of each pair's passage. ``kind``: one of KINDS, ``placebo`` (``of`` one of
    them), or None for one of the user's own. ``lexicon``: the name of the one that it was made with, if that is known.
    ``notes``: what was said when it was made.
    """

    name: str
    texts: pl.Series
    kind: str | None = None
    of: str | None = None
    lexicon: str | None = None
    notes: tuple[str, ...] = ()


def read_variant(name: str, given: object, listed: ProbedList) -> Variant:
    """The texts of a variant for the pairs of ``listed``, with what its manifest says.

    ``given``: a path, ``{document: text}``, a frame, or what ``evenrank.variants`` made in memory. The kind of one
    without a manifest is its ``name``, if that is a kind's. Raises EvenrankError, which starts with the name, for
    passages of the list that the variant lacks, and for one made by ``evenrank.variants`` that is in a file.
    """
    if isinstance(given, Varied):
        if given.table is None:
            raise EvenrankError(
                f"variant {name}: its table is not in memory, but in a file: give that file ({arg.out})"
            )
        facts, notes = _texts_in(given.to_dict()), given.notes
        given = given.table
    else:
        facts, notes = _manifest(given)
    kind = facts.get("kind", name if name in KINDS else None)
    return Variant(name, _texts_by_passage(name, given, listed), kind, facts.get("of"), facts.get("lexicon"), notes)


# --- the manifest ---------------------------------------------------------------------------------------------------


def manifest_path(given: object) -> str | None:
    """Where the manifest of a variant is, if it has one; None for what is no local file or folder."""
    if not is_path(given) or is_identifier(given) or file_system(given) is not None:
        return None
    return manifest_of(given)


def _manifest(given: object) -> tuple[dict[str, str], tuple[str, ...]]:
    """The texts in a variant's manifest, and its notes; or a note that it is damaged."""
    path = manifest_path(given)
    if path is None or not os.path.isfile(path):
        return {}, ()
    try:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
        if values["kind"] in (*KINDS, PLACEBO):
            notes = values.get("notes", ())
            return _texts_in(values), tuple(notes) if isinstance(notes, list) else ()
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        pass
    return {}, (f"its manifest {readable(os.path.basename(path))} is damaged and was ignored",)


def _texts_in(values: Mapping[str, object]) -> dict[str, str]:
    return {key: value for key, value in values.items() if isinstance(value, str)}


def _texts_by_passage(name: str, given: object, listed: ProbedList) -> pl.Series:
    """The text [N] of each pair's passage. Raises EvenrankError if a passage of the list has none."""
    wanted = listed.table["doc_id"]
    source = as_collection(given, f"variant {name}")
    table = source if isinstance(source, pl.DataFrame) else read_texts(source, wanted)
    known = table.select("doc_id", "text").unique("doc_id", keep="first")
    rows = wanted.to_frame().join(known, on="doc_id", how="left", maintain_order="left")
    missing = rows.filter(pl.col("text").is_null())["doc_id"].unique(maintain_order=True)
    if len(missing):
        place = "the variant" if isinstance(source, pl.DataFrame) else os.fspath(source)
        some = f"{len(missing):,} of {counted(wanted.n_unique(), 'passage')} of the list"
        raise EvenrankError(f"{name}: {some} {are(len(missing))} not in {place}: {first_of(missing)}")
    return rows["text"]


@dataclass(frozen=True, slots=True)
class Pairing:
    """The variants to probe, each with its placebo (or None); ``texts`` [N] of all of them by name."""

    variants: tuple[tuple[Variant, Variant | None], ...]
    texts: Mapping[str, pl.Series]
    notes: tuple[str, ...]


def given_variants(variants: Mapping[str, object] | Strings, placebos: Mapping[str, object]) -> dict[str, object]:
    """The variants by name, None for one that is to be made. Raises EvenrankError for none, for a name given twice, for
    one that is no kind's where a kind's is expected, and for a placebo of a variant that is not among them."""
    entries = list(variants.items() if isinstance(variants, Mapping) else ((name, None) for name in strings(variants)))
    if not entries:
        raise EvenrankError(f"{arg.variants}: expected one variant at least, found none")
    names = [name for name, _ in entries]
    for name, source in entries:
        if not isinstance(name, str) or not name:
            raise EvenrankError(f"{arg.variants}: expected names, found {name!r}")
        if source is None and name not in KINDS:
            raise EvenrankError(
                f"{arg.variants}: expected one of {', '.join(KINDS)}, or NAME=FILE, found {quoted(name)}"
            )
        if names.count(name) > 1:
            raise EvenrankError(f"{arg.variants}: two variants are named {quoted(name)}")
        if name.startswith("placebo of "):
            raise EvenrankError(f"{arg.variants}: {quoted(name)} is the name of a placebo; expected another")
    for name in placebos:
        if name not in names:
            known = ", ".join(names)
            raise EvenrankError(
                f"{arg.placebos}: no variant {quoted(name)} to be a placebo of (the variants are {known})"
            )
    return dict(entries)


def paired(
    given: Mapping[str, object],
    given_placebos: Mapping[str, object],
    listed: ProbedList,
    lexicon: Lexicon | None,
    seed: int,
) -> Pairing:
    """Reads or makes the variants, and gives each its placebo: the one named for it, the one made with it, or the one
    whose manifest says that it is of the variant's kind.

    Raises EvenrankError for two placebos of one kind, and for a variant that changes no passage of the list.
    """
    variants: dict[str, Variant] = {}
    for name, source in given.items():
        if source is not None:
            variants[name] = read_variant(name, source, listed)
            continue
        try:
            variants[name] = _made(name, None, listed, lexicon, seed)
        except EvenrankError as error:
            # Of input and arguments the message says which; otherwise it does not say which kind.
            if isinstance(error, InputError) or str(error).startswith((arg.lexicon, arg.seed)):
                raise
            raise EvenrankError(f"{name}: {error}") from None
    placebos = {name: read_variant(f"placebo of {name}", source, listed) for name, source in given_placebos.items()}
    lacking = []
    for name, source in given.items():
        if source is None and name in WITH_PLACEBO and name not in placebos:
            try:
                placebos[name] = _made(f"placebo of {name}", name, listed, lexicon, seed)
            except EvenrankError as error:
                # The variant itself could be made of the same input: only its placebo has nothing to change.
                lacking.append(f"placebo of {name}: {error}")
    by_kind: dict[str, Variant] = {}
    kinds = {v.kind for v in variants.values()}
    for variant in [v for v in variants.values() if v.kind == PLACEBO and v.of in kinds]:
        other = by_kind.setdefault(str(variant.of), variant)
        if other is not variant:
            raise EvenrankError(
                f"{arg.variants}: {other.name} and {variant.name} are both placebos of {variant.of}; expected one"
            )
        del variants[variant.name]
    pairs = tuple((v, placebos.get(name) or by_kind.get(v.kind or "")) for name, v in variants.items())
    for variant, _ in pairs:
        if not (variant.texts != listed.texts).any():
            source = given[variant.name]
            place = f" in {readable(os.fspath(source))}" if is_path(source) else ""
            raise EvenrankError(f"{variant.name}: no passage of the list was changed{place}")
    every = {v.name: v for pair in pairs for v in pair if v is not None}
    notes = (*_notes_of(every.values()), *_lexicon_notes(variants.values(), lexicon), *_placebo_notes(pairs, listed))
    return Pairing(pairs, {name: v.texts for name, v in every.items()}, (*lacking, *notes))


def _notes_of(variants: Iterable[Variant]) -> list[str]:
    """The variants' own notes; what is said of several stands once."""
    by_note: dict[str, list[str]] = {}
    for variant in variants:
        for note in variant.notes:
            by_note.setdefault(note, []).append(variant.name)
    return [f"{', '.join(dict.fromkeys(names))}: {note}" for note, names in by_note.items()]


def _made(name: str, of: str | None, listed: ProbedList, lexicon: Lexicon | None, seed: int) -> Variant:
    """A variant of the listed passages made in memory: of the kind ``name``, or the placebo ``of`` a kind."""
    kind = of or name
    if kind in WITH_PLACEBO and lexicon is None:
        raise EvenrankError(f"{arg.lexicon}: expected one for the kind {kind}")
    edits = Edits.chosen(PLACEBO if of else kind, of, None, lexicon or "gender-en", None, seed)
    variant = variant_of(listed.passages(), replace(edits, asked=listed.asked() if of else {}))
    read = read_variant(name, variant, listed)
    note = f"made of the listed passages ({counted(len(listed.pairs.documents), 'passage')}), seed {seed}"
    return replace(read, notes=(note, *read.notes))


def _lexicon_notes(variants: Iterable[Variant], lexicon: Lexicon | None) -> list[str]:
    """What a variant's orientation is not what it might be."""
    notes = []
    for variant in variants:
        if variant.kind != "swap":
            continue
        if lexicon is None or lexicon.poles is None:
            why = "no lexicon was given" if lexicon is None else f"the lexicon {lexicon.name} has no poles"
            notes.append(f"{variant.name}: not oriented, as {why}; above 0 is a preference for the variant")
        elif variant.lexicon not in (None, lexicon.name):
            notes.append(f"{variant.name}: made with the lexicon {variant.lexicon}, oriented by {lexicon.name}")
    return notes


def _placebo_notes(pairs: Iterable[tuple[Variant, Variant | None]], listed: ProbedList) -> list[str]:
    """Placebos that change nothing where their variant does."""
    original, notes = listed.texts, []
    for variant, placebo in pairs:
        if placebo is not None and not ((variant.texts != original) & (placebo.texts != original)).any():
            notes.append(f"{variant.name}: {placebo.name} changes none of the pairs that it changes")
    return notes
