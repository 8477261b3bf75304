"""``evenrank lexicon``: the built-in lexicons, and how well one fits a collection, and one as SQL."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

HELP = "The built-in lexicons, how well one fits, and one as SQL."
EXAMPLES = {
    "list_": r"""
# What there is, and what each cannot see.
evenrank lexicon list
""",
    "check": r"""
# Does the built-in lexicon fit these texts?
evenrank lexicon check gender-en --collection docs.tsv
# Words of your own, on a page.
evenrank lexicon check ages.toml --collection docs.tsv --report ages.html
# How far words agree with what people said.
evenrank lexicon check gender-en --collection docs.tsv --labels annotated.csv
""",
    "sql": r"""
# The counts of DuckDB's table docs, as score would make them.
evenrank lexicon sql gender-en
# Of a table in BigQuery.
evenrank lexicon sql gender-en --dialect bigquery --table web.pages
# With columns of other names.
evenrank lexicon sql ages.toml --dialect spark --id-column url \
    --text-column body
""",
}


def list_() -> None:
    """List the built-in lexicons. For each: language, words by group, poles, what its words become, what it cannot
    see.
    """
    from evenrank import builtin_lexicons, load_lexicon

    for name in builtin_lexicons():
        lexicon = load_lexicon(name)
        counts = ", ".join(f"{sum(of == group for _, of in lexicon.words)} {group}" for group in lexicon.groups)
        poles = "no poles" if lexicon.poles is None else f"poles {','.join(lexicon.poles)}"
        has = f"; counterparts of {len(lexicon.pairs)} words" if lexicon.pairs else ""
        has += f"{', neutral of' if has else '; neutral words of'} {len(lexicon.neutral)}" if lexicon.neutral else ""
        _output.say(f"{name}  ({lexicon.language})  {counts}; {poles}{has}")
        _output.say(f"  {lexicon.about}")
        _output.say(f"  Cannot see: {lexicon.misses}")


def check(
    *,
    given: Annotated[Values, From("auditing.lexicon_check", "check_lexicon")],
    full: opt.Full = False,
    json: opt.Json = None,
    report: opt.Report = None,
) -> None:
    from evenrank import check_lexicon

    _output.check(report=report, streams=(json,), inputs=given.read)
    _output.emit(check_lexicon(**given), json, report, full=full)


def sql(*, given: Annotated[Values, From("groups.sql", "lexicon_sql")]) -> None:
    from evenrank import lexicon_sql

    _output.say(lexicon_sql(**given))
