"""``evenrank score``: which groups each document of a collection is about, from its words or from labels."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# Count gender words once, for many audits (--scores groups.parquet).
evenrank score docs.tsv --out groups.parquet
# Words of your own.
evenrank score docs.tsv --lexicon ages.toml --out ages.parquet
# From labels instead of texts.
evenrank score --labels sellers.csv --out groups.parquet
"""


def command(
    *, given: Annotated[Values, From("groups.scoring", "score", without=("scores",))], quiet: opt.Quiet = False
) -> None:
    from evenrank import score
    from evenrank.files.wording import counted

    out, labelled = given["out"], given["labels"] is not None
    _output.refuse_standard(out)
    rows, of = score(**given, quiet=quiet)
    done = "scored"
    if labelled:
        done = "labelled" if given["collection"] is None else f"of {of:,} have a label"
    _output.say(f"{counted(rows, 'document')} {done}: {out}", err=True)
