"""``evenrank rotate``: position debiasing of a collection."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# Answers anywhere: train on this instead.
evenrank rotate docs.tsv --out rotated.tsv
# Cut only between sentences.
evenrank rotate docs.tsv --mode sentence --out rotated.tsv
# The answers' spans move along.
evenrank rotate docs.tsv --answers answers.json --out rotated.tsv
"""


def command(
    *, given: Annotated[Values, From("mitigation.rotation", "rotate_collection")], quiet: opt.Quiet = False
) -> None:
    from evenrank import rotate_collection
    from evenrank.files.wording import counted

    out = given["out"]
    _output.refuse_standard(out, given["answers_out"])
    done = rotate_collection(**given, quiet=quiet)
    _output.say(f"{counted(done.documents, 'document')} rotated ({done.unmoved} unchanged): {out}", err=True)
    if done.answers is not None:
        moved = given["answers_out"] or f"{out}.answers.json"
        _output.say(
            f"{counted(done.answers, 'answer')} moved along, {done.split} split and left out: {moved}", err=True
        )
    for note in done.notes:
        _output.say(note, err=True)
