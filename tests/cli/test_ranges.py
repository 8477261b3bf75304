"""The numbers that settings may be: every option of every command refuses the others in one line."""

from __future__ import annotations

import inspect
import math
import re
from typing import get_args, get_type_hints

import numpy as np
import pytest
import typer

from evenrank.cli import app
from evenrank.files import EvenrankError
from evenrank.files.arguments import check_range
from evenrank.measures import parse_measure
from evenrank.options import COUNT, K1, LARGEST, SEED, SHARE, WORDS

HUGE = 10**40
FLAGS = {"count": "--most", "dimensions": "--size"}
"""Those of options that have another name in Python."""


def commands(group=app, path=()):
    for command in group.registered_commands:
        yield (*path, command.name or command.callback.__name__), command.callback
    for inner in group.registered_groups:
        yield from commands(inner.typer_instance, (*path, inner.name))


def flag(name):
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def numeric():
    """Each option that is a number: its command with what it needs, its name, whether it may be broken, its range."""
    for path, callback in commands():
        hints = get_type_hints(callback, include_extras=True)
        run = inspect.getclosurevars(callback).nonlocals["run"]
        declared = inspect.getclosurevars(run).nonlocals["declared"]
        # Files that are not there: nothing is read before the numbers are checked.
        given = list(path)
        for name, parameter in inspect.signature(callback).parameters.items():
            if parameter.default is inspect.Parameter.empty:
                argument = isinstance(get_args(hints[name])[1], typer.models.ArgumentInfo)
                given += ["absent"] if argument else [flag(name), "absent"]
        for name in hints.keys() - {"return"}:
            base = get_args(hints[name])[0]
            types = set(get_args(base) or (base,))
            if types & {int, float}:
                yield given, name, float in types, declared[name].option.range


NUMERIC = sorted(numeric(), key=lambda one: (one[0], one[1]))


def test_the_walk_finds_the_options():
    assert len(NUMERIC) > 50
    assert {"retrieve", "embeddings", "position", "data"} <= {given[0] for given, *_ in NUMERIC}
    assert [one for one in NUMERIC if one[-1] is None] == []


@pytest.mark.parametrize(("given", "name", "real", "allowed"), NUMERIC, ids=lambda value: str(value)[:30])
def test_an_absurd_number_is_one_line(given, name, real, allowed, tmp_path, monkeypatch, evenrank):
    monkeypatch.chdir(tmp_path)
    values = ["100000000000000000000", str(HUGE), "-1", "nan", "inf", "-inf"]
    values += [str(math.nextafter(allowed.most, math.inf))] if real else [str(int(allowed.most) + 1)]
    for value in values:
        ended = evenrank(*given, f"{flag(name)}={value}")
        assert (ended.status, ended.out) == (2, "")
        assert "Traceback" not in ended.err
        assert re.search(rf"({flag(name)}|`{flag(name)[2:]}`)['’: ]", ended.err), ended.err
        # What is no number at all, typer says in a box of its own.
        if real or value not in ("nan", "inf", "-inf"):
            assert re.fullmatch(r"evenrank: .*: expected .*, found .*\n", ended.err), ended.err
    assert not list(tmp_path.iterdir())


def test_the_depth_of_a_measure():
    assert str(parse_measure(f"nDCG@{LARGEST}")) == f"nDCG@{LARGEST}"
    for text in (f"nDCG@{HUGE}", "R@2147483648", f"NFaiRR@{10**19}", f"AP(rel={HUGE})", "nDCG@0"):
        with pytest.raises(EvenrankError, match=r"`measures`: .*(2147483647 at most|is not a measure)"):
            parse_measure(text)


@pytest.mark.parametrize(
    ("allowed", "value", "message"),
    [
        (COUNT, 10**19, "expected 1 to 2147483647, found 10000000000000000000"),
        (COUNT, 10**6000, "expected 1 to 2147483647, found a number of 6001 digits"),
        (COUNT, 10.0, "expected a whole number from 1, found 10.0"),
        (COUNT, True, "expected a whole number from 1, found True"),
        (SEED, -1, "expected 0 to 18446744073709551615, found -1"),
        (SHARE, math.nan, "expected a number from 0 to 1, found nan"),
        (WORDS, math.inf, "expected a number from 0 to 2147483647, found inf"),
        (K1, np.float64(-1), "expected a number from 0 to 1000000, found -1.0"),
    ],
    ids=lambda value: "" if isinstance(value, int) else None,
)
def test_what_a_number_may_be(allowed, value, message):
    with pytest.raises(EvenrankError) as error:
        check_range("x", value, allowed)
    assert str(error.value) == f"`x`: {message}"


def test_what_passes():
    for allowed, value in ((COUNT, np.int64(LARGEST)), (SEED, 0), (SHARE, 1), (K1, np.float32(1.5)), (COUNT, None)):
        check_range("x", value, allowed)
