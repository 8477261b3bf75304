"""The measures by name: ours and those of ir_measures are written and parsed alike."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Self, TypeAlias

import ir_measures
import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank import options as opt
from evenrank.files.arguments import checked
from evenrank.files.errors import EvenrankError, arg, quoted, shown
from evenrank.files.types import Array

from . import exposure, impact, neutrality, pairwise, rank_bias
from .base import CUTOFF, BiasMeasure, LinearMeasure, RunMeasure
from .joined import MISSING_LIMIT, TIE_DRAWS, JoinedRun, Lacking, find_lacking, refuse_share, refuse_unlabelled
from .ranked_lists import RankedLists, expand
from .utility import GradeSum, SumOverRanks, UtilityMeasure, computed_here, decided

_MANY_ROWS = 100_000


class DelegatedMeasure(UtilityMeasure):
    """A measure whose values [J] ir_measures computes."""

    def values(self, run: JoinedRun) -> Array:
        """The value [J] of each query. Raises EvenrankError if ir_measures cannot compute it."""
        return decided(run, self._mean_value(run, [_strict(run.lists)]))

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The mean [J] over 200 random orders of ties (of all candidates); all NaN if that would take too long."""
        lists = run.lists.all_tied() if random else run.lists
        if not lists.tied:
            value = self._mean_value(run, [_strict(run.lists)])
        elif len(lists.scores) > _MANY_ROWS:
            value = np.full(len(run.judged), np.nan)
        else:
            rng = np.random.default_rng(run.seed)
            orders = (_positions(lists, rng.random(len(lists.scores))) for _ in range(TIE_DRAWS))
            value = self._mean_value(run, orders)
        return decided(run, value)

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """The smallest and largest value [J]; NaN with ties, since it is not known here which order is best."""
        tied = run.lists.tied
        value = np.full(len(run.judged), np.nan) if tied else self._mean_value(run, [_strict(run.lists)])
        return decided(run, value), decided(run, value)

    def _mean_value(self, run: JoinedRun, orders: Iterable[Array]) -> Array:
        """The mean [J] over orders, each given by the scores [N] to rank by. A query without a value counts 0."""
        qrels: dict[str, dict[str, int]] = {}
        for query, doc, relevance in run.judgements.iter_rows():
            qrels.setdefault(query, {})[doc] = relevance
        table = run.run.table if run.rows is None else run.run.table[run.rows]
        ids, docs = table["query_id"].to_list(), table["doc_id"].to_list()
        total, count = np.zeros(len(run.judged)), 0
        for scores in orders:
            ranked: dict[str, dict[str, float]] = {}
            for query, doc, score in zip(ids, docs, scores.astype(np.float64).tolist(), strict=True):
                ranked.setdefault(query, {})[doc] = score
            try:
                values = {value.query_id: value.value for value in ir_measures.iter_calc([self.measure], qrels, ranked)}
            except (ValueError, RuntimeError, TypeError, KeyError, AssertionError) as error:
                # Its providers raise all kinds of errors for parameters that they do not check.
                raise EvenrankError(f"{self.measure}: ir_measures cannot compute it here: {error}") from None
            total += [values.get(query, 0.0) for query in run.judged]
            count += 1
        return total / count


def _strict(lists: RankedLists) -> Array:
    """Scores [N] that say the order of each list alone: ir_measures' programs break ties in different ways.

    They also compare scores in float32, so that scores which differ less would be tied to them.
    """
    return -lists.places().astype(np.float64)


def _positions(lists: RankedLists, keys: Array) -> Array:
    """Scores [N] that put tied documents in the order of their keys [N]."""
    order = np.arange(len(keys))
    rows, block = expand(*lists.ties)
    order[rows] = rows[np.lexsort((keys[rows], block))]
    positions = np.empty(len(keys))
    positions[order] = -np.arange(len(keys), dtype=np.float64)
    return positions


_BARS = re.compile(r"(\|\w+)(\(.*?\))?\|(\(.*?\))?")


@checked
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
    """All registered bias measures, the built-in ones first."""
    return tuple(dict.fromkeys(m for m in ir_measures.measures.registry.values() if isinstance(m, BiasMeasure)))


_FAMILIES = (rank_bias, neutrality, pairwise, exposure, impact)
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


def linear_form(measure: Measure) -> LinearMeasure | None:
    """The sum over ranks that labels of documents, or judgements of pairs, that were drawn estimate; None of others."""
    how = resolve(measure)
    if isinstance(how, SumOverRanks):
        return GradeSum(how)
    return how if isinstance(how, LinearMeasure) and not (how.drawn or how.needs_background) else None


def is_estimable(measure: Measure) -> bool:
    """Whether labels, or judgements, that were drawn can estimate a measure."""
    return linear_form(measure) is not None


def not_estimable(measure: Measure) -> EvenrankError:
    """The error for a measure that what was drawn cannot estimate, with what can be had in its place."""
    if is_bias(measure):
        return EvenrankError(
            f"{measure} is no sum over ranks, which labels of some documents can estimate: expected ARaB, RaB, Share or"
            " FaiRR"
        )
    cutoff = measure.params.get("cutoff", 10)
    return EvenrankError(
        f"{measure} cannot be had from a sample of judgements: it depends on documents that nobody judged."
        f" SDCG(max_rel=3)@{cutoff} can (it orders runs as nDCG does), and so can P(rel=1)@{cutoff} and RBP(rel=1)"
    )


def describe(measure: Measure) -> str:
    """The definition of a measure, from its docstring before "When it misleads", as one line."""
    return " ".join((type(measure).__doc__ or "").partition("When it misleads:")[0].split())


def spelled(measure: Measure) -> str:
    """A measure's text in letters that parsers and tables accept: ``AbsoluteDeltaAPRF`` for ``|DeltaAPRF|``."""
    text = str(measure)
    if isinstance(measure, BiasMeasure) and measure.SPELLED:
        return measure.SPELLED + text.removeprefix(str(measure.NAME))
    return text


MeasuresLike: TypeAlias = str | Measure | Iterable[str | Measure]
"""Measures: one string, separated by spaces; a measure, ours or of ir_measures; or a list of either."""


def parse_measure(text: str | Measure, where: str = arg.measures) -> Measure:
    """A measure from its text, ours or any of ir_measures: ``nDCG@10``, ``ARaB(magnitude='bool')@10``, ``|ARaB|@10``.

    Raises EvenrankError for a name or a parameter that does not exist; ``where``: the argument, for messages.
    """
    if isinstance(text, Measure):
        return text
    if not isinstance(text, str):
        raise EvenrankError(f"{where}: expected a string or a measure, found {shown(text)}")
    if "," in re.sub(r"\(.*?\)", "", text):
        raise EvenrankError(f"{where}: {quoted(text)} has a comma: separate measures with spaces")
    try:
        measure = ir_measures.parse_measure(_BARS.sub(_without_bars, text.strip()))
        if measure.SUPPORTED_PARAMS.get("cutoff") is CUTOFF and "cutoff" not in measure.params:
            raise EvenrankError(f"{where}: {quoted(text)} needs a cutoff, such as {text}@10")
        if measure.SUPPORTED_PARAMS.get("group") is not None and "group" not in measure.params:
            name, at, cutoff = text.strip().partition("@")
            raise EvenrankError(f"{where}: {quoted(text)} needs a group, such as {name}(group='m'){at}{cutoff}")
        measure.validate_params()
    except NameError:
        ours = ", ".join(measure.NAME for measure in bias_measures())
        known = f"bias: {ours}; utility: nDCG, RR, AP, …"
        raise EvenrankError(f"{where}: no measure {quoted(text)}{_near(text)} ({known})") from None
    except (ValueError, AssertionError) as error:
        raise EvenrankError(f"{where}: {quoted(text)} is not a measure: {error}") from None
    cutoff = measure.params.get("cutoff")
    if cutoff is not None and (isinstance(cutoff, bool) or not 1 <= cutoff <= opt.LARGEST):
        raise EvenrankError(f"{where}: {quoted(text)}: the cutoff must be 1 or more, and {opt.LARGEST} at most")
    absurd = [name for name, value in measure.params.items() if isinstance(value, int) and abs(value) > opt.LARGEST]
    if absurd:
        raise EvenrankError(f"{where}: {quoted(text)}: {absurd[0]} must be {opt.LARGEST} at most")
    if measure.params.get("poles", "a,b").count(",") != 1:
        raise EvenrankError(f"{where}: {quoted(text)}: poles are written 'A,B'")
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


@checked
def parse_measures(given: MeasuresLike) -> list[Measure]:
    """Measures, each once; in a string, a space inside brackets or around ``@`` separates nothing."""
    given = _split(given) if isinstance(given, str) else [given] if isinstance(given, Measure) else given
    measures = [parse_measure(measure) for measure in given]
    if not measures:
        raise EvenrankError(f"{arg.measures}: expected at least one measure")
    return list(dict.fromkeys(measures))


def _split(text: str) -> list[str]:
    joined = re.sub(r"\s*@\s*", "@", text)
    parts = re.findall(r"(?:\([^)]*\)|[^\s(])+", joined)
    if re.sub(r"\s", "", "".join(parts)) != re.sub(r"\s", "", joined):
        raise EvenrankError(f"{arg.measures}: {quoted(text)}: a bracket is not closed")
    return parts


def greatest_value(measure: Measure) -> float | None:
    """The largest size that a query's value can have; None where that is not known, or depends on the documents."""
    how, properties = resolve(measure), facts(measure)
    if how.reach is not None:
        return how.reach
    ends = [properties["least"], properties["most"]]
    return max(abs(end) for end in ends if isinstance(end, float)) if None not in ends else None


def signs(measure: Measure) -> list[float]:
    """How the mean of each part of a figure enters it."""
    how = resolve(measure)
    units = np.eye(how.part_count)
    return [1.0] if len(units) == 1 else [float(how.per_query(list(unit))) for unit in units]


def facts(measure: Measure) -> dict[str, object]:
    """The properties of a measure, as JSON values.

    ``bias``: it measures bias rather than effectiveness; ``signed``: it is best near 0, its sign says towards which
    pole, and a budget is of its absolute value; ``order``: audits say what a run's order adds to its candidates;
    ``cutoff``: how many ranks it looks at, None: all; ``signs``: how the mean of each part of the figure enters it;
    ``least`` and ``most``: no value of a query is beyond, None: unbounded or not known.
    """
    how = resolve(measure)
    utility = isinstance(how, UtilityMeasure) and not isinstance(how, DelegatedMeasure)
    least, most = (0.0, 1.0) if utility else (how.least, how.most)
    return {
        "bias": is_bias(measure),
        "signed": how.signed,
        "order": is_bias(measure) and isinstance(how, LinearMeasure) and not how.drawn,
        "cutoff": measure.params.get("cutoff"),
        "least": least if np.isfinite(least) else None,
        "most": most if np.isfinite(most) else None,
        "signs": signs(measure),
    }


class Evaluation(JoinedRun):
    """Measures of a run, given the group table of its documents, judgements and a background.

    Values of a bias measure are over the run's queries (``queries`` [Q]), those of a utility measure over the judged
    ones (``judged`` [J]), of which those that the run lacks count 0. NaN is undefined.
    """

    def queries_of(self, measure: Measure) -> pl.Series:
        """The ids of the queries that a measure's values belong to."""
        return resolve(measure).queries(self)

    def values(self, measure: Measure) -> Array:
        """The measure of each query, [Q] or [J]. For ΔA-PRF, the first pole's PRF minus the second's."""
        return resolve(measure).values(self)

    def figure(self, measure: Measure) -> float:
        """The measure of the run: for most the mean over its queries; NaN if no query (of a pole) has a value."""
        how = resolve(measure)
        return how.figure(how.parts(self))

    def neutral_first(self) -> Self:
        """The same candidates by descending neutrality, then in the run's own order: a reference ranking."""
        lists = self.lists
        # As ranks among all: once per document rather than per row. An unknown one is neutral, or skipped.
        known = np.round(self.required_table.table["neutrality"].to_numpy(), 12)
        values = np.append(known, -1.0 if self.kept is not None else 1.0)
        code = np.searchsorted(np.unique(values), values).astype(np.int32)
        order = lists.falling(code[self.document])
        other = self.in_order(order, -lists.places())
        other.undecided = self.scored_lists.lengths == 0
        return other

    def lacking(self, measures: Sequence[Measure] = (), depths: Sequence[int] = ()) -> Lacking | None:
        """The documents that the group table lacks, over the ranks where their share is largest; None without any.

        Compares the first ranks down to the cutoff of each bias measure and to ``depths``, and the whole lists.
        """
        if self.group_table is None:
            return None
        cutoffs = [m.params["cutoff"] for m in measures if isinstance(m, BiasMeasure) and "cutoff" in m.params]
        return find_lacking(self.ranked_ids, self.lists, self.document < 0, [*cutoffs, *depths])

    def check_estimated(self, measures: Sequence[Measure]) -> None:
        """Raises EvenrankError for a measure of groups that labels that were drawn do not estimate, if they were."""
        sampled = self.group_table is not None and self.group_table.sample is not None
        for how in (resolve(measure) for measure in measures if sampled and is_bias(measure)):
            if not (isinstance(how, LinearMeasure) and how.estimated(self)):
                raise EvenrankError(f"{how} is no sum over ranks, which labels that were drawn can estimate")

    def check_missing(
        self, limit: float = MISSING_LIMIT, measures: Sequence[Measure] = (), depths: Sequence[int] = ()
    ) -> Lacking | None:
        """:meth:`lacking`; raises EvenrankError if their share is above ``limit``.

        Labels are seldom complete: for them there is no limit, but one document at least must have one.
        """
        # Raises where a document is missing although none may be.
        _ = self.kept
        if self.group_table is not None and self.group_table.labelled:
            if (self.document < 0).all():
                raise refuse_unlabelled(self.run, self.group_table)
            return None
        lacking = self.lacking(measures, depths)
        if lacking is not None and lacking.share > limit:
            raise refuse_share(self.run, lacking, self.required_table.source, self.missing, limit)
        return lacking
