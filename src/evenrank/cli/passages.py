"""``evenrank passages``: documents cut into passages."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# Passages of at most 200 words, with 40 of the one before.
evenrank passages docs.tsv --tokens 200 --overlap 40 --out passages
# As many word pieces as a model reads, with the documents' judgements.
evenrank passages docs.tsv --model models/bert --qrels qrels.txt \
    --out passages
# With answers: they move along, and say which passages are relevant.
evenrank passages docs.tsv --qrels qrels.txt --answers squad.json \
    --out passages
"""


def command(*, given: Annotated[Values, From("models.passages", "cut_passages")], quiet: opt.Quiet = False) -> None:
    from evenrank import cut_passages

    _output.refuse_standard(given["out"])
    done = cut_passages(**given, quiet=quiet)
    _output.say(done.summary(), err=True)
    for note in done.notes:
        _output.say(note, err=True)
