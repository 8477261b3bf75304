"""The variants and placebos that a probe is given: files, tables or kinds; and which placebo is whose."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from evenrank.groups import Lexicon
from evenrank.io import EvenrankError, InputError, Run
from evenrank.io.convert import is_path
from evenrank.io.errors import quoted, readable
from evenrank.io.wording import counted

from .probed_list import ProbedList
from .variant_files import Variant, read_variant
from .variant_kinds import KINDS, PLACEBO

_FEWER = "changes fewer places"


@dataclass(frozen=True, slots=True)
class Given:
    """A variant of this ``name``, or the ``placebo`` of the variant of this name; ``source`` None: to be made."""

    name: str
    source: object
    placebo: bool = False


@dataclass(frozen=True, slots=True)
class Pairing:
    """The variants to probe, each with its placebo (or None); ``every``: all of them once."""

    variants: tuple[tuple[Variant, Variant | None], ...]
    notes: tuple[str, ...]

    @property
    def every(self) -> list[Variant]:
        """Variants and placebos, each once."""
        both = [one for pair in self.variants for one in pair if one is not None]
        return list({one.name: one for one in both}.values())


def given_variants(variants: object, placebos: Mapping[str, object]) -> list[Given]:
    """The arguments of a probe as a list. Raises EvenrankError for none, for a name given twice, for one that is no
    kind's where a kind's is expected, and for a placebo of a variant that is not among them."""
    if isinstance(variants, str):
        variants = [variants]
    if isinstance(variants, Mapping):
        found = [Given(name, source) for name, source in variants.items()]
    elif isinstance(variants, Sequence):
        found = [Given(name, None) for name in variants]
    else:
        raise EvenrankError(f"`variants`: expected names of kinds or variants by name, found {type(variants).__name__}")
    if not found:
        raise EvenrankError("`variants`: expected one variant at least, found none")
    names = [one.name for one in found]
    for one in found:
        if not isinstance(one.name, str) or not one.name:
            raise EvenrankError(f"`variants`: expected names, found {one.name!r}")
        if one.source is None and one.name not in KINDS:
            raise EvenrankError(
                f"`variants`: expected one of {', '.join(KINDS)}, or NAME=FILE, found {quoted(one.name)}"
            )
        if names.count(one.name) > 1:
            raise EvenrankError(f"`variants`: two variants are named {quoted(one.name)}")
        if one.name.startswith("placebo of "):
            raise EvenrankError(f"`variants`: {quoted(one.name)} is the name of a placebo; expected another")
    for name, source in placebos.items():
        if name not in names:
            known = ", ".join(names)
            raise EvenrankError(f"`placebos`: no variant {quoted(name)} to be a placebo of (the variants are {known})")
        found.append(Given(name, source, placebo=True))
    return found


def paired(given: Sequence[Given], listed: ProbedList, lexicon: Lexicon | None, answers: object, seed: int) -> Pairing:
    """Reads or makes the variants, and gives each its placebo: the one named for it, the one made with it, or the one
    whose manifest says that it is of the variant's kind.

    Raises EvenrankError for two placebos of one kind, and for a variant that changes no passage of the list.
    """
    found: dict[str, Variant] = {}
    placebos: dict[str, Variant] = {}
    for one in given:
        name = f"placebo of {one.name}" if one.placebo else one.name
        if one.source is not None:
            (placebos if one.placebo else found)[one.name] = read_variant(name, one.source, listed)
            continue
        try:
            found[one.name] = _made(one.name, None, listed, lexicon, answers, seed)
        except EvenrankError as error:
            # Of input and arguments the message says which; otherwise it does not say which kind.
            if isinstance(error, InputError) or str(error).startswith("`"):
                raise
            raise EvenrankError(f"{one.name}: {error}") from None
    lacking = []
    for one in given:
        if one.source is None and KINDS[one.name].placebo and one.name not in placebos:
            try:
                placebos[one.name] = _made(f"placebo of {one.name}", one.name, listed, lexicon, answers, seed)
            except EvenrankError as error:
                # The variant itself could be made of the same input: only its placebo has nothing to change.
                lacking.append(f"placebo of {one.name}: {error}")
    by_kind: dict[str, Variant] = {}
    kinds = {one.kind for one in found.values()}
    for variant in [one for one in found.values() if one.kind == PLACEBO and one.of in kinds]:
        other = by_kind.setdefault(str(variant.of), variant)
        if other is not variant:
            raise EvenrankError(
                f"`variants`: {other.name} and {variant.name} are both placebos of {variant.of}; expected one"
            )
        del found[variant.name]
    pairs = tuple((one, placebos.get(name) or by_kind.get(one.kind or "")) for name, one in found.items())
    sources = {one.name: one.source for one in given if not one.placebo}
    for variant, _ in pairs:
        if not ((variant.texts != listed.texts).fill_null(False)).any():
            source = sources[variant.name]
            place = f" in {readable(os.fspath(source))}" if is_path(source) else ""
            raise EvenrankError(f"{variant.name}: no passage of the list was changed{place}")
    pairing = Pairing(pairs, ())
    about = (*_lexicon_notes(pairing, lexicon), *_placebo_notes(pairing, listed))
    return replace(pairing, notes=(*lacking, *_notes_of(pairing.every, about), *about))


def _notes_of(variants: Sequence[Variant], about: Sequence[str]) -> list[str]:
    """The variants' own notes; what is said of several stands once, and what ``about`` says of the list only there."""
    said: dict[str, list[str]] = {}
    for one in variants:
        counted_here = any(note.endswith(f" {one.name} {_FEWER}") for note in about)
        for note in one.notes:
            if not (counted_here and note.startswith("Fewer edits")):
                said.setdefault(note, []).append(one.name)
    return [f"{', '.join(dict.fromkeys(names))}: {note}" for note, names in said.items()]


def _made(
    name: str, of: str | None, listed: ProbedList, lexicon: Lexicon | None, answers: object, seed: int
) -> Variant:
    """A variant of the listed passages made in memory: of the kind ``name``, or the placebo ``of`` a kind."""
    from .variants import variants

    kind = of or name
    if KINDS[kind].lexicon and lexicon is None:
        raise EvenrankError(f"`lexicon`: expected one for the kind {kind}")
    run = Run.from_table({query: dict.fromkeys(docs, 0.0) for query, docs in _documents(listed).items()}, listed.name)
    made = variants(
        listed.passages(),
        PLACEBO if of else kind,
        of=of,
        lexicon=lexicon or "gender-en",
        answers=_of_list(answers, listed) if KINDS[kind].answers and answers is not None else None,
        queries=listed.asked(),
        run=run,
        depth=listed.size,
        seed=seed,
    )
    read = read_variant(name, made, listed)
    note = f"made of the listed passages ({counted(len(listed.pairs.documents), 'passage')}), seed {seed}"
    return replace(read, kind=PLACEBO if of else kind, of=of, notes=(note, *read.notes))


def _of_list(answers: object, listed: ProbedList) -> pl.DataFrame:
    """The answers to the list's queries in the list's passages. Raises EvenrankError if there is none."""
    from .pair_edits import read_spans

    pairs = listed.table.select("query_id", "doc_id")
    found = read_spans(answers)[0].join(pairs, on=["query_id", "doc_id"], how="semi", maintain_order="left")
    if not found.height:
        raise EvenrankError(f"`answers`: none is to a query of the list in a passage of its own ({listed.name})")
    return found


def _documents(listed: ProbedList) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for query, doc in listed.table.select("query_id", "doc_id").iter_rows():
        found.setdefault(query, []).append(doc)
    return found


def _lexicon_notes(pairing: Pairing, lexicon: Lexicon | None) -> list[str]:
    """What a variant's orientation is not what it might be."""
    notes = []
    for one, _ in pairing.variants:
        if one.kind is None or one.kind not in KINDS or not KINDS[one.kind].oriented:
            continue
        if lexicon is None or lexicon.poles is None:
            why = "no lexicon was given" if lexicon is None else f"the lexicon {lexicon.name} has no poles"
            notes.append(f"{one.name}: not oriented, as {why}; above 0 is a preference for the variant")
        elif one.lexicon not in (None, lexicon.name):
            notes.append(f"{one.name}: made with the lexicon {one.lexicon}, oriented by {lexicon.name}")
    return notes


def _placebo_notes(pairing: Pairing, listed: ProbedList) -> list[str]:
    """Placebos that change nothing where their variant does, or fewer places."""
    original, notes = listed.texts, []
    for variant, placebo in pairing.variants:
        if placebo is None:
            continue
        changed = (variant.texts != original).fill_null(False)
        if not (changed & (placebo.texts != original).fill_null(False)).any():
            notes.append(f"{variant.name}: {placebo.name} changes none of the pairs that it changes")
        elif variant.edits is not None and placebo.edits is not None:
            keys = ["query_id", "doc_id"] if variant.pairs or placebo.pairs else ["doc_id"]
            fewer = (placebo.edits.fill_null(0) < variant.edits).fill_null(False)
            table = listed.table.select(keys).with_columns(fewer.alias("fewer")).filter(changed).unique(keys)
            if table["fewer"].any():
                some = f"{table['fewer'].sum():,} of {counted(table.height, 'pair' if len(keys) > 1 else 'passage')}"
                notes.append(f"{variant.name}: in {some} {placebo.name} {_FEWER}")
    return notes
