"""The measures by name: ours and those of ir_measures are written and parsed alike."""

from __future__ import annotations

import difflib
import re

import ir_measures
from ir_measures import Measure

from evenrank.io.errors import EvenrankError, quoted
from evenrank.io.ranges import LARGEST

from . import expected_exposure, exposure, exposure_targets, neutrality, pairwise, rank_bias
from .base import CUTOFF, BiasMeasure, RunMeasure
from .delegated import DelegatedMeasure
from .linear import LinearMeasure
from .utility import computed_here

_BARS = re.compile(r"(\|\w+)(\(.*?\))?\|(\(.*?\))?")


def add_measure(measure: BiasMeasure) -> BiasMeasure:
    """Makes a measure known by its name, to evenrank and to ir_measures' parser, and returns it.

    Raises EvenrankError for a name that another measure has.
    """
    known = ir_measures.measures.registry
    names = [str(measure.NAME), *([measure.SPELLED] if measure.SPELLED else [])]
    for name in names:
        if name in known:
            raise EvenrankError(f"there is a measure named {name} already")
    ir_measures.measures.register(measure, names[1:], name=names[0])
    return measure


def bias_measures() -> tuple[BiasMeasure, ...]:
    """All bias measures that are known by name, the built-in ones first."""
    return tuple(dict.fromkeys(m for m in ir_measures.measures.registry.values() if isinstance(m, BiasMeasure)))


_FAMILIES = (rank_bias, neutrality, pairwise, exposure, exposure_targets, expected_exposure)
for _measure in (measure for family in _FAMILIES for measure in family.MEASURES):
    add_measure(_measure)


def resolve(measure: Measure) -> RunMeasure:
    """How a measure, ours or any of ir_measures, is computed for a run."""
    if isinstance(measure, RunMeasure):
        return measure
    return computed_here(measure) or DelegatedMeasure(measure)


def is_bias(measure: Measure) -> bool:
    """Whether a measure needs a group table (and is not one of utility)."""
    return isinstance(measure, BiasMeasure)


def is_linear(measure: Measure) -> bool:
    """Whether a measure is a weighted sum over ranks, so that its expectation over orders has a closed form."""
    how = resolve(measure)
    return isinstance(how, LinearMeasure) and not how.drawn


def describe(measure: Measure) -> str:
    """What a measure measures, from its docstring before "When it misleads", as one line."""
    return " ".join((type(measure).__doc__ or "").partition("When it misleads:")[0].split())


def spelled(measure: Measure) -> str:
    """A measure's text in letters that parsers and tables accept: ``AbsoluteDeltaAPRF`` for ``|DeltaAPRF|``."""
    text = str(measure)
    if isinstance(measure, BiasMeasure) and measure.SPELLED:
        return measure.SPELLED + text.removeprefix(str(measure.NAME))
    return text


def parse_measure(text: str | Measure) -> Measure:
    """A measure from its text, ours or any of ir_measures: ``nDCG@10``, ``ARaB(magnitude='bool')@10``, ``|ARaB|@10``.

    Raises EvenrankError for a name or a parameter that does not exist.
    """
    if isinstance(text, Measure):
        return text
    if "," in re.sub(r"\(.*?\)", "", text):
        raise EvenrankError(f"`measures`: {quoted(text)} has a comma: separate measures with spaces")
    try:
        measure = ir_measures.parse_measure(_BARS.sub(_without_bars, text.strip()))
        if measure.SUPPORTED_PARAMS.get("cutoff") is CUTOFF and "cutoff" not in measure.params:
            raise EvenrankError(f"`measures`: {quoted(text)} needs a cutoff, such as {text}@10")
        if measure.SUPPORTED_PARAMS.get("group") is not None and "group" not in measure.params:
            name, at, cutoff = text.strip().partition("@")
            raise EvenrankError(f"`measures`: {quoted(text)} needs a group, such as {name}(group='m'){at}{cutoff}")
        measure.validate_params()
    except NameError:
        ours = ", ".join(measure.NAME for measure in bias_measures())
        known = f"bias: {ours}; utility: nDCG, RR, AP, …"
        raise EvenrankError(f"`measures`: no measure {quoted(text)}{_near(text)} ({known})") from None
    except (ValueError, AssertionError) as error:
        raise EvenrankError(f"`measures`: {quoted(text)} is not a measure: {error}") from None
    cutoff = measure.params.get("cutoff")
    if cutoff is not None and (isinstance(cutoff, bool) or not 1 <= cutoff <= LARGEST):
        raise EvenrankError(f"`measures`: {quoted(text)}: the cutoff must be 1 or more, and {LARGEST} at most")
    absurd = [name for name, value in measure.params.items() if isinstance(value, int) and abs(value) > LARGEST]
    if absurd:
        raise EvenrankError(f"`measures`: {quoted(text)}: {absurd[0]} must be {LARGEST} at most")
    if measure.params.get("poles", "a,b").count(",") != 1:
        raise EvenrankError(f"`measures`: {quoted(text)}: poles are written 'A,B'")
    return measure


def _near(text: str) -> str:
    """A hint at the measure with the most similar name, if there is one."""
    written = re.match(r"\|?\w+\|?", text.strip())
    if written is None:
        return ""
    names = {name.lower(): name for name in reversed(ir_measures.measures.registry)}
    close = difflib.get_close_matches(written[0].lower(), names, n=1, cutoff=0.75)
    return f": did you mean {quoted(names[close[0]] + text.strip()[written.end() :])[1:-1]}?" if close else ""


def _without_bars(match: re.Match[str]) -> str:
    """``|ARaB|(…)`` and ``|ARaB(…)|`` as the spelled-out name, since ir_measures cannot parse bars."""
    measure = ir_measures.measures.registry.get(f"{match[1]}|")
    if not isinstance(measure, BiasMeasure) or measure.SPELLED is None:
        return match[0]
    return f"{measure.SPELLED}{match[2] or match[3] or ''}"


def parse_measures(text: str) -> list[Measure]:
    """Measures separated by spaces; a space inside brackets or around ``@`` separates nothing."""
    joined = re.sub(r"\s*@\s*", "@", text)
    parts = re.findall(r"(?:\([^)]*\)|[^\s(])+", joined)
    if re.sub(r"\s", "", "".join(parts)) != re.sub(r"\s", "", joined):
        raise EvenrankError(f"`measures`: {quoted(text)}: a bracket is not closed")
    measures = [parse_measure(part) for part in parts]
    if not measures:
        raise EvenrankError("`measures`: expected at least one measure")
    return list(dict.fromkeys(measures))
