"""``evenrank variants``: the same passages with one thing changed."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values


def command(
    *,
    out: Annotated[str, opt.Option("The variant to write: .jsonl, .parquet, or TSV if it does not depend on queries.")],
    given: Annotated[Values, From("probes.variants", "variants")],
    quiet: opt.Quiet = False,
) -> None:
    from evenrank import variants

    _output.refuse_standard(out)
    done = variants(**given, out=out, quiet=quiet)
    _output.say(f"{done.summary()}: {out}", err=True)
    for note in done.notes:
        _output.say(note, err=True)
