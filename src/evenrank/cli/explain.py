"""``evenrank explain``: what a term of the screens or the key of a finding means."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output

EXAMPLES = r"""
# A word of the screen.
evenrank explain "smallest detectable difference"
# The key of a finding, as JSON has it.
evenrank explain no_lean
# What stands for the candidates of a run.
evenrank explain candidates
"""


def command(
    term: Annotated[str, opt.Option("A term, or the key of a finding.", metavar="TERM|KEY")],
) -> None:
    """Say what a term or a finding means.

    Keys of findings are in every JSON, on pages and with ``--full``.
    """
    import evenrank
    from evenrank.results.table import wrapped

    for line in evenrank.explain(term).split("\n"):
        _output.say(wrapped(line.strip(), _output.SCREEN, "  " if line.startswith(" ") else ""))
