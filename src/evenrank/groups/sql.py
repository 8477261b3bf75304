"""The counts of a lexicon as a query, for collections that live in a warehouse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np

from evenrank import options as opt
from evenrank._version import __version__
from evenrank.files.arguments import checked
from evenrank.files.errors import EvenrankError, plain, quoted
from evenrank.files.tokens import CLITICS, alphabet, folded

from .lexicon import Entries, Lexicon, LexiconLike, load_lexicon
from .table import ROUNDING

_LETTERS = r"[\p{L}\p{M}\p{N}]+"
_WORD = f"{_LETTERS}(?:'{_LETTERS})*"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database quotes names and texts, what it calls a number of 64 bits with a fraction, and a text."""

    quote: str
    backslashes: bool
    """Whether a backslash escapes the next character of a text."""
    double: str = "DOUBLE"
    string: str = "VARCHAR"

    def text(self, value: str) -> str:
        """A text as a literal."""
        if self.backslashes:
            return "'" + value.replace("\\", r"\\").replace("'", r"\'") + "'"
        return "'" + value.replace("'", "''") + "'"

    def name(self, value: str) -> str:
        """The quoted name of a column. Raises EvenrankError for one that no column can have."""
        # BigQuery's names have neither a backtick nor a backslash.
        if not value or not value.isprintable() or (self.backslashes and set(value) & {"`", "\\"}):
            raise EvenrankError(f"{quoted(value)} cannot be the name of a table or a column")
        return f"{self.quote}{value.replace(self.quote, 2 * self.quote)}{self.quote}"

    def as_text(self, expression: str) -> str:
        """A value as a text."""
        return f"CAST({expression} AS {self.string})"

    def path(self, value: str) -> str:
        """The quoted name of a table or a column with what it is part of: ``schema.table``."""
        return ".".join(map(self.name, value.split(".")))


class _Functions(NamedTuple):
    """What databases call the functions on texts that all of them have."""

    matches: str
    replaced: str
    joined: str
    length: str


DIALECTS = {
    "duckdb": Dialect('"', False),
    "bigquery": Dialect("`", True, "FLOAT64", "STRING"),
    "spark": Dialect("`", True, string="STRING"),
    "postgres": Dialect('"', False, "DOUBLE PRECISION"),
}
_FUNCTIONS = {
    "duckdb": _Functions("regexp_extract_all({}, {})", "regexp_replace({}, {}, {}, 'g')", "array_to_string", "len"),
    "bigquery": _Functions(
        "regexp_extract_all({}, {})", "regexp_replace({}, {}, {})", "array_to_string", "array_length"
    ),
    "spark": _Functions("regexp_extract_all({}, {}, 0)", "regexp_replace({}, {}, {})", "array_join", "size"),
}


@checked
def lexicon_sql(
    lexicon: Annotated[LexiconLike, opt.Option(opt.LEXICON, metavar="LEXICON", reads=True)],
    *,
    dialect: Annotated[Literal["duckdb", "bigquery", "spark"], opt.Option("The database that it is for.")] = "duckdb",
    table: Annotated[str, opt.Option("The table of documents, such as schema.docs.", panel="Input")] = "docs",
    text_column: Annotated[str, opt.Option("Its column of texts.", panel="Input")] = "text",
    id_column: Annotated[str, opt.Option("Its column of ids.", panel="Input")] = "doc_id",
) -> str:
    """Write the query that counts a lexicon's words where the texts are. It returns the columns that measures need:
    doc_id, tokens, a count of each group, and neutrality.

    They are those of ``evenrank score`` with its defaults (``word`` tokens, threshold 1), and what the query returns,
    as Parquet, can be given as ``scores``. Letters that the lexicon has are case-folded by the query itself, clitics
    are cut off, and of several entries at one place the longest counts, so that little is left to the database: which
    characters are letters, marks and digits is what its version of Unicode says, and an ``ŉ`` is not taken apart. Ids
    are not compared: a repeated one is found when the result is read.

    Returns:
        One SELECT, with the names and texts quoted.

    Raises:
        EvenrankError: For a lexicon that cannot be read, and a name that no table or column can have.

    >>> print(lexicon_sql({"f": ["she", "ex wife"], "m": ["he"]}, table="web.pages", id_column="url"))
    ... # doctest: +ELLIPSIS
    -- in memory: its words by group, as evenrank ... counts them (tokens: word, threshold: 1).
    SELECT doc_id, tokens, "count_f", "count_m",
    ...
    """
    words, sql, functions = load_lexicon(lexicon), DIALECTS[dialect], _FUNCTIONS[dialect]
    entries = words.entries("word")
    groups = {group: sql.name(f"count_{group}") for group in words.groups}
    clitics = functions.replaced.format(
        f"' ' || {functions.joined}(words, '  ') || ' '", sql.text(f"'(?:{'|'.join(CLITICS)}) "), "' '"
    )
    every = functions.matches.format(clitics, sql.text(_any_of(list(entries))))
    counts = []
    for group, column in groups.items():
        of_group = sql.text(f"/{_any_of([entry for entry, of in entries.items() if of == group])}/")
        matches = functions.matches.format(f"'/' || {functions.joined}(found, '//') || '/'", of_group)
        counts.append(f"{functions.length}({matches}) AS {column}")
    tokens = functions.matches.format(_folded(sql, entries, sql.path(text_column)), sql.text(_WORD))
    columns = ", ".join(groups.values())
    about = f"{plain(words.name)}: its words by group, as evenrank {__version__} counts them"
    return f"""-- {about} (tokens: word, threshold: 1).
SELECT doc_id, tokens, {columns},
  CASE WHEN total <= 1 THEN 1.0
    WHEN 1 - distance < {sql_number(ROUNDING)} THEN 0.0 ELSE 1 - distance END AS neutrality
FROM (
SELECT doc_id, tokens, total, {columns},
  {_distance(words, groups)} AS distance
FROM (
SELECT doc_id, {functions.length}(words) AS tokens, {functions.length}(found) AS total,
  {f",{chr(10)}  ".join(counts)}
FROM (
SELECT doc_id, words, {every} AS found
FROM (
SELECT {sql.path(id_column)} AS doc_id, {tokens} AS words
FROM {sql.path(table)}
) AS of_words
) AS of_entries
) AS of_groups
) AS of_shares"""


def _any_of(entries: list[tuple[str, ...]]) -> str:
    """A pattern of entries, each word of which has a space on either side: the longest comes first.

    Words are letters, marks, digits and apostrophes, which mean themselves in a pattern.
    """
    ordered = sorted(entries, key=lambda entry: (-len(entry), entry))
    return f" (?:{'|'.join(map('  '.join, ordered))}) "


def _folded(sql: Dialect, entries: Entries, text: str) -> str:
    """The text with those characters case-folded that can be part of an entry or a clitic: no other is ever found.

    What a database takes for lower case is not asked: İ, for one, is i for some, and ß is never ss.
    """
    used = {*"'", *"".join(CLITICS), *(letter for entry in entries for word in entry for letter in word)}
    single: dict[str, str] = {}
    several: dict[str, str] = {}
    for code in np.flatnonzero(alphabet("word").folded != np.arange(len(alphabet("word").folded))):
        character = chr(code)
        becomes = folded(character)
        if set(becomes) <= used and (len(becomes) == 1 or "'" not in becomes):
            (single if len(becomes) == 1 else several)[character] = becomes
    result = f"translate(coalesce({text}, ''), {sql.text(''.join(single))}, {sql.text(''.join(single.values()))})"
    for character, becomes in several.items():
        result = f"replace({result}, {sql.text(character)}, {sql.text(becomes)})"
    return result


def _distance(lexicon: Lexicon, columns: dict[str, str]) -> str:
    """1 minus the neutrality of a document with some word (see :func:`evenrank.groups.neutrality`)."""
    shares = zip(columns.values(), lexicon.shares, strict=True)
    parts = " + ".join(f"abs({column} / nullif(total, 0) - {sql_number(share)})" for column, share in shares)
    return f"({parts}) / {sql_number(2 * (1 - min(lexicon.shares)))}"


def sql_number(value: float) -> str:
    """A number with an exponent: a double to DuckDB, BigQuery and Spark, a decimal to PostgreSQL."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"
