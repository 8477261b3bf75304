"""``evenrank variants``: the same passages with one thing changed."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# Male words for female ones, and the reverse.
evenrank variants docs.tsv --kind swap --out swapped.tsv
# Its placebo: as many other words are changed.
evenrank variants docs.tsv --kind placebo --of swap --out placebo.tsv
# Each passage's sentences rotated.
evenrank variants docs.tsv --kind rotate --out rotated.jsonl
"""


def command(
    *,
    out: Annotated[str, opt.Option("The variant to write: TSV, .jsonl or .parquet.", panel="Output")],
    given: Annotated[Values, From("probes.variants", "variants")],
    quiet: opt.Quiet = False,
) -> None:
    from evenrank import variants

    _output.refuse_standard(out)
    done = variants(**given, out=out, quiet=quiet)
    _output.say(f"{done.summary()}: {out}", err=True)
    for note in done.notes:
        _output.say(note, err=True)
