"""``evenrank data``: public data, and SQuAD files as collections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from evenrank import options as opt
from evenrank._command import arg

from . import _output
from ._signatures import From, Values

HELP = "Public data sets, and SQuAD files as collections."
EXAMPLES = {
    "list_": r"""
# What there is.
evenrank data list
""",
    "fetch": r"""
# The 117 queries of Grep-BiasIR and their passages.
evenrank data fetch grepbiasir --out grepbiasir
# Queries whose answers should be fair to genders, for MS MARCO.
evenrank data fetch queries-fairness-sensitive --out queries
# A list of gendered words.
evenrank data fetch gender-specific --out words
""",
    "squad": r"""
# One file: 70% to train, 10% to validate, 20% to test.
evenrank data squad squad.json --out squad
# Other shares.
evenrank data squad squad.json --shares "0.8 0.1 0.1" --out squad
# Training and test apart, as SQuAD is published.
evenrank data squad train-v2.0.json dev-v2.0.json --out squad
""",
}


def list_() -> None:
    """List the public data: name, files, bytes, licence, source."""
    from evenrank import public_data
    from evenrank.results.table import COUNT, Column, Format, Table

    columns = (
        Column("name"),
        Column("files", COUNT, of=lambda data: len(data.files)),
        Column("bytes", Format(str, "count")),
        Column("licence"),
        Column("source"),
    )
    _output.say(Table("", columns, [*public_data().values()]).text())


def fetch(*, given: Annotated[Values, From("files.public", "fetch")]) -> None:
    import evenrank

    for path in evenrank.fetch(**given):
        _output.say(str(path))


def squad(
    *,
    given: Annotated[Values, From("files.squad_collection", "write_squad_collection")],
    shares: Annotated[
        str,
        opt.Option(
            "One file: shares of training, validation and test; by article (few: by passage).", metavar="SHARES"
        ),
    ] = "0.7 0.1 0.2",
) -> None:
    """Convert SQuAD files into a collection. It has passages, queries, qrels and answer spans."""
    from evenrank import EvenrankError, write_squad_collection
    from evenrank.files.errors import quoted

    try:
        first, second, third = map(float, shares.split())
    except ValueError:
        raise EvenrankError(f"{arg.shares}: expected three numbers, found {quoted(shares)}") from None
    made = write_squad_collection(**given, shares=(first, second, third))
    for name, count in made.counts.items():
        _output.say(f"{count:>8}  {name.replace('_', ' ')}")
    for note in made.notes:
        _output.say(note, err=True)
    _output.say(str(Path(given["out"])), err=True)
