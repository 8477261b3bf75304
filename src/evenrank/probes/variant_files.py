"""Variants of a collection as a probe reads them: files, tables or kinds, with their manifests."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from evenrank.io import EvenrankError, InputError, as_collection, read_texts
from evenrank.io.columns import Columns, is_parquet, read_columns
from evenrank.io.convert import frame_of, id_column, is_path
from evenrank.io.errors import quoted, readable
from evenrank.io.files import file_system, line_blocks, open_parquet
from evenrank.io.folders import files_of
from evenrank.io.irds import is_identifier
from evenrank.io.tables import first_repeat
from evenrank.io.wording import are, counted

from .edit_counts import edit_counts, edits_by_passage
from .probed_list import ProbedList
from .variant_kinds import KINDS, PLACEBO
from .varied import Varied

_KEYS = ("query_id", "doc_id")
_LARGEST = 1 << 24
_SHOWN = 5
_FORMS = "a path, {document: text}, {query: {document: text}} or a table with doc_id, text and perhaps query_id"


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of the passages of a list.

    ``texts`` [N]: what stands in place of each pair's passage, null where the variant has nothing for the pair (only
    of variants by query and passage, ``pairs``). ``kind``: one of KINDS, ``placebo`` (``of`` one of them), or None for
    one of the user's own. ``lexicon``: the name of the one that it was made with, if that is known. ``edits`` [N]: how
    many places of each text were changed, null where that is unknown. ``notes``: what was said when it was made.
    """

    name: str
    texts: pl.Series
    pairs: bool
    kind: str | None = None
    of: str | None = None
    form: str | None = None
    lexicon: str | None = None
    notes: tuple[str, ...] = ()
    edits: pl.Series | None = None


def read_variant(name: str, given: object, listed: ProbedList) -> Variant:
    """The texts of a variant for the pairs of ``listed``, with what its manifest says.

    ``given``: a path, ``{document: text}``, ``{query: {document: text}}``, a frame, or what ``evenrank.variants`` made
    in memory. The kind of one without a manifest is its ``name``, if that is a kind's. Raises EvenrankError, which
    starts with the name, for passages of the list that a variant by passage lacks, for one by query and passage that
    has none of the list's pairs, and for one made by ``evenrank.variants`` that is in a file.
    """
    if isinstance(given, Varied):
        if given.table is None:
            raise EvenrankError(f"variant {name}: its table is not in memory, but in a file: give that file (`out`)")
        facts, notes = _texts_in(given.to_dict()), given.notes
        given = given.table
    else:
        facts, notes = _manifest(given)
    kind = facts.get("kind")
    by_pair = _pair_table(name, given)
    if by_pair is None:
        texts, edits = _texts_by_passage(name, given, listed), edits_by_passage(given, listed)
    else:
        texts, edits = _texts_by_pair(name, by_pair, listed)
    kind = kind if kind in (*KINDS, PLACEBO) else name if name in KINDS and kind is None else None
    of = facts.get("of") if kind == PLACEBO else None
    return Variant(name, texts, by_pair is not None, kind, of, facts.get("form"), facts.get("lexicon"), notes, edits)


# --- the manifest ---------------------------------------------------------------------------------------------------


def manifest_path(given: object) -> str | None:
    """Where the manifest of a variant is, if it has one; None for what is no local file or folder."""
    if not is_path(given) or is_identifier(given) or file_system(given) is not None:
        return None
    return f"{os.fspath(given).rstrip('/')}.manifest.json"


def _manifest(given: object) -> tuple[dict[str, str], tuple[str, ...]]:
    """The texts in a variant's manifest, and its notes; or a note that it is damaged."""
    path = manifest_path(given)
    if path is None or not os.path.isfile(path):
        return {}, ()
    damaged = (f"its manifest {readable(os.path.basename(path))} is damaged and was ignored",)
    try:
        if os.stat(path).st_size > _LARGEST:
            return {}, damaged
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}, damaged
    if not isinstance(values, dict) or values.get("kind") not in (*KINDS, PLACEBO):
        return {}, damaged
    notes = values.get("notes")
    return _texts_in(values), tuple(note for note in notes if isinstance(note, str)) if isinstance(notes, list) else ()


def _texts_in(values: Mapping[str, object]) -> dict[str, str]:
    return {key: value for key, value in values.items() if isinstance(value, str)}


# --- texts by passage -----------------------------------------------------------------------------------------------


def _texts_by_passage(name: str, given: object, listed: ProbedList) -> pl.Series:
    """The text [N] of each pair's passage. Raises EvenrankError if a passage of the list has none."""
    wanted = listed.table["doc_id"]
    source = as_collection(given, f"variant {name}")
    table = source if isinstance(source, pl.DataFrame) else read_texts(source, wanted)
    known = table.select("doc_id", "text").unique("doc_id", keep="first")
    found = wanted.to_frame().join(known, on="doc_id", how="left", maintain_order="left")
    missing = found.filter(pl.col("text").is_null())["doc_id"].unique(maintain_order=True)
    if len(missing):
        first = ", ".join(quoted(one) for one in missing.head(_SHOWN))
        place = "the variant" if isinstance(source, pl.DataFrame) else os.fspath(source)
        some = f"{len(missing):,} of {counted(wanted.n_unique(), 'passage')} of the list"
        raise EvenrankError(
            f"{name}: {some} {are(len(missing))} not in {place}: {first}{', …' if len(missing) > _SHOWN else ''}"
        )
    return found["text"]


# --- texts by query and passage -------------------------------------------------------------------------------------


def _pair_table(name: str, given: object) -> list[Columns] | None:
    """The rows of a variant with a text per query and passage; None for one with a text per passage."""
    if is_path(given):
        if is_identifier(given):
            return None
        files = files_of(given)
        return [read_columns(file) for file in files] if _has_queries(files[0]) else None
    what = f"variant {name}"
    if isinstance(given, Mapping):
        if not given or not all(isinstance(value, Mapping) for value in given.values()):
            return None
        rows = [(query, doc, text) for query, inner in given.items() for doc, text in inner.items()]
        columns = (pl.Series(key, [row[i] for row in rows], strict=False) for i, key in enumerate((*_KEYS, "text")))
        return [Columns(pl.DataFrame(list(columns)), what=what)]
    table = frame_of(given, what)
    return None if table is None or "query_id" not in table.columns else [Columns(table, what=what)]


def _has_queries(path: str) -> bool:
    """Whether a file has a field or a column ``query_id`` besides ``doc_id``."""
    if is_parquet(path):
        with open_parquet(path) as file:
            return set(_KEYS) <= set(file.schema_arrow.names)
    for block in line_blocks(path):
        first = block.data.decode().lstrip()
        if not first:
            continue
        if first[0] != "{":
            return False
        try:
            row = json.loads(first.partition("\n")[0])
        except (ValueError, RecursionError):
            return False
        return isinstance(row, dict) and set(_KEYS) <= row.keys()
    return False


def _texts_by_pair(name: str, tables: list[Columns], listed: ProbedList) -> tuple[pl.Series, pl.Series | None]:
    """The text [N] of each pair, null where the variant has none, and the number of edits, if all files have it.

    Raises EvenrankError for an odd or repeated row, and if no pair of the list has a text.
    """
    found = []
    for given in tables:
        rows = _checked(given)
        of_list = rows.join(listed.table.select(_KEYS), on=_KEYS, how="semi", maintain_order="left")
        found.append(of_list)
    table = pl.concat(found)
    repeat = first_repeat(table, list(_KEYS))
    where = tables[0].path or tables[0].what
    if repeat is not None:
        query, doc = table.row(repeat[1])[:2]
        message = f"the passage {quoted(doc)} appears twice for the query {quoted(query)}"
        raise InputError(where, message) if tables[0].path else EvenrankError(f"{where}: {message}")
    if not table.height:
        raise EvenrankError(f"{name}: none of the {counted(listed.size, 'pair')} of the list is in {where}")
    laid = listed.table.select(_KEYS).join(table, on=_KEYS, how="left", maintain_order="left")
    return laid["text"], laid["edits"] if laid["edits"].count() else None


def _checked(given: Columns) -> pl.DataFrame:
    """The ids and texts of a table of pairs."""
    missing = [key for key in (*_KEYS, "text") if key not in given.table.columns]
    if missing:
        raise given.error(f"expected columns query_id, doc_id and text, found no {missing[0]}")
    what = given.path or given.what
    ids = [id_column(given.table[key], key, what) for key in _KEYS]
    text = given.table["text"]
    if text.dtype != pl.String:
        if isinstance(text.dtype, pl.Categorical | pl.Enum):
            text = text.cast(pl.String)
        else:
            raise given.error(f"expected texts in the column text, found {text.dtype}")
    if text.null_count():
        raise given.error("expected a text, found none", int(text.is_null().arg_max() or 0))
    return pl.DataFrame([*ids, text, edit_counts(given.table)])
