"""*her* and *his* before a noun phrase or not: sentences by hand, chosen so that each rule and word decides one."""

from __future__ import annotations

import re

import pytest

from evenrank.probes.group_wording import her_is_possessive, his_is_possessive

POSSESSIVE = """\
Her house is old.
in HER opinion
It was her first with them.
on her back
by her last
her then-boyfriend
her 2010 album
for her soulful and bluesy voice
her family
her/his deputy
his or her job
She hurt her back.
made her bed
her (late) husband
Why I Called Her Mother
called her "old" friend
"""
OBJECT = """\
I saw her, too.
told her that it is
told her about it
told her to go
asked her if she could
with her in it
I love her more than you
loves her now
I call her again.
told her everything
I know her well.
get her back together
make her happy
keep her safe and sound
find her attractive, though
let her go
makes her respect you
seeing her walking
told her quietly.
gave her flowers
gave her 20
with her and her friends, I mean her
I gave her the keys
treat her like a queen
about her being late
call her?" he said
her – of all people
her's
she told her (twice) that
met her (late that night)
named her Anna.
They call her Lady Day
"""
"""What the last *her* of each line is."""
BEFORE_NOUN = """\
his house
his best.
his or her job
his and my house
his not-so-old house
his (late) wife
a friend of his father came
"""
ALONE = """\
a friend of his, who
His is the best.
the choice was his and mine
a friend of his came by
A good friend of his told us
"""
"""What the first *his* of each line is."""


@pytest.mark.parametrize(("lines", "possessive"), [(POSSESSIVE, True), (OBJECT, False)])
def test_her(lines: str, possessive: bool) -> None:
    for line in lines.splitlines():
        span = [found.span() for found in re.finditer(r"\bher\b", line, re.IGNORECASE)][-1]
        assert her_is_possessive(line, *span) is possessive, line
    for line in ("her\nhouse", "her or his job") if possessive else ("her\n", "her or him", "her and her friends"):
        assert her_is_possessive(line, 0, 3) is possessive, line


@pytest.mark.parametrize(("lines", "possessive"), [(BEFORE_NOUN, True), (ALONE, False)])
def test_his(lines: str, possessive: bool) -> None:
    for line in lines.splitlines():
        found = re.search(r"\bhis\b", line, re.IGNORECASE)
        assert his_is_possessive(line, *found.span()) is possessive, line
