"""Every method at every strength, beside other runs and references: what a team decides on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.auditing.findings import NEUTRAL_FIRST, RANDOM, RELEVANCE_FIRST
from evenrank.groups import GroupTable, Lexicon, Tokens
from evenrank.io import EvenrankError, Order, Provenance, Run, as_qrels, as_run
from evenrank.io.errors import quoted
from evenrank.io.ranges import check_ranges
from evenrank.io.wording import counted
from evenrank.measures import Target, is_bias, parse_measure, resolve
from evenrank.mitigation.reordering import Reordering
from evenrank.mitigation.reorderings import METHODS

from .frontier_points import Plane, Point, Ranking
from .frontier_result import Frontier
from .frontier_words import notes_on
from .group_sources import GroupSource
from .order_figures import OrderFigures
from .rebalance import note_inputs
from .rebalance_lists import DEPTH, Grouping, OfMissing, RunLists
from .rebalance_methods import MethodOptions, in_words, learnt
from .rebalance_plan import restricted
from .tuning_queries import TuningQueries, absence_note, absent_queries

__all__ = ["STRENGTHS", "Frontier", "Point", "frontier", "sweep"]
STRENGTHS = tuple(step / 10 for step in range(1, 11))
NEAR_ZERO = (0.002, 0.005, 0.01, 0.02, 0.05)
"""More strengths of ``shift``, which is often far past an equal share of exposure at 0.1."""
_HALVINGS, _NEAR = 6, 0.002
"""How often the range of strengths around a bias is halved, and how narrow it may get."""


def sweep(
    run: Run,
    table: GroupTable,
    methods: Sequence[str] | None = None,
    strengths: Sequence[float] = STRENGTHS,
    *,
    depth: int = DEPTH,
    learn: Run | None = None,
    target: Target | None = None,
    missing: OfMissing = "error",
) -> dict[tuple[str, float], Run]:
    """The run by every method at every strength, as ``{(method, strength): run}``.

    ``methods``: by default all that the groups allow; ``learn``: the run of the queries that directions are learnt on,
    which should not be those that are reported; by default the run itself.
    """
    grouping = Grouping(table, depth, target, missing)
    lists = grouping.lists(run)
    on = lists if learn is None else grouping.lists(learn)
    options = _methods(methods, table, {})
    return {(one.name, strength): made for one, strength, made in _swept(options, strengths, lists, on, table)}


def _swept(
    methods: Sequence[MethodOptions], strengths: Sequence[float], lists: RunLists, learn: RunLists, table: GroupTable
) -> Iterator[tuple[MethodOptions, float, Run]]:
    for options in methods:
        method = options.make(learn.lists, table)
        for strength in strengths:
            yield options, strength, lists.reordered(method.order(lists.lists, strength))


def _methods(
    names: Sequence[str] | None, table: GroupTable, given: Mapping[str, Mapping[str, object]]
) -> list[MethodOptions]:
    """The methods of these names, for None all, with what they are ``given``."""
    asked = list(dict.fromkeys(METHODS if names is None else [names] if isinstance(names, str) else names))
    for owner in given:
        if owner not in asked:
            options = " and ".join(f"`{option}`" for option in given[owner])
            raise EvenrankError(f"{options}: the method {owner} is not one of {', '.join(asked)}")
    chosen = [MethodOptions(name, **given.get(name, {})) for name in asked]  # type: ignore[arg-type]  # it checks
    for one in chosen:
        one.check()
    return chosen


# parameters: one for each option of the command line, which mirrors this function
# long: the signature and the description of its parameters
def frontier(
    run: object,
    *,
    qrels: object,
    methods: Sequence[str] | None = None,
    strengths: Sequence[float] | None = None,
    beside: Mapping[str, object] | None = None,
    utility: str = "nDCG@10",
    bias: str | None = None,
    depth: int = DEPTH,
    collection: object = None,
    scores: object = None,
    labels: object = None,
    neutral: Sequence[str] | str | None = None,
    group_column: str | None = None,
    lexicon: str | os.PathLike[str] | Lexicon | None = None,
    poles: str | None = None,
    tokens: Tokens | None = None,
    threshold: float | None = None,
    target: object = None,
    missing: OfMissing | None = None,
    tune_queries: object = None,
    protected: str | None = None,
    alpha: float | None = None,
    per: str | None = None,
    seed: int = 0,
    order: Order = "score",
    provenance: Provenance | None = None,
) -> Frontier:
    """Puts a run into order by every method at every strength, and sets effectiveness against bias.

    Directions (the group that ``fair`` protects, the offsets of ``shift``) are learnt on the tuning queries; all
    figures are of the others. Beside them stand the run's candidates in random order, neutral-first and
    relevance-first.

    Args:
        run: The run, as :func:`evenrank.rebalance` takes it; so are the arguments that are not listed here.
        qrels: Judgements; without effectiveness there is nothing to set bias against.
        methods: Some of the methods; by default all that the groups allow.
        strengths: From 0 to 1; by default tenths, of ``shift`` also smaller ones. More are tried around the biases at
            which methods are compared.
        beside: More runs of the same queries, by name. The straight line from the run to one named ``blind`` is a
            yardstick: a method is worth its name where it is beyond it.
        utility: The measure of effectiveness.
        bias: The measure of bias, by default ARaB@10, without poles NFaiRR@10 (which lists without a neutral document
            do not have).
        protected: As there, of ``fair``.
        alpha: As there, of ``fair``.
        per: As there, of ``shift``.

    Returns:
        All points with intervals, and the methods compared at equal bias; see :class:`Frontier`.

    Raises:
        EvenrankError: For input that cannot be used.
    """
    check_ranges(depth=depth, seed=seed)
    levels = None if strengths is None else _strengths(strengths)
    source = GroupSource(
        collection, scores, labels, neutral, group_column, lexicon, poles, tokens, threshold, target, missing
    )
    source.check()
    if qrels is None:
        raise EvenrankError("`frontier` sets effectiveness against bias: it needs `qrels`")
    if provenance is None:
        provenance = Provenance("evenrank.frontier")
        note_inputs(provenance, run, source, qrels, tune_queries)
        for name, other in (beside or {}).items():
            provenance.add(f"run {name}", other)
    provenance.ahead()
    given = as_run(run, order=order)
    others = {name: as_run(other, name, order=order, what=f"run {name}") for name, other in (beside or {}).items()}
    grouping = source.grouping([one.table["doc_id"] for one in (given, *others.values())], depth)
    chosen = _methods(methods, grouping.table, MethodOptions.owned(protected=protected, alpha=alpha, per=per))
    measures = _measures(utility, bias, grouping.table)
    _check_names(given.name, others, [one.name for one in chosen])
    tuning = TuningQueries.of(tune_queries, seed)
    on, reported, notes = _divided(given, tuning, any(one.learns for one in chosen))
    judged = as_qrels(qrels)
    absent = absent_queries(given.queries, judged)
    if on is not None:
        absent = absent.filter(~tuning.chosen(absent))
    if len(absent):
        notes.append(absence_note(len(absent)))
    figures = OrderFigures(reported, grouping, judged, measures, seed, absent)
    if figures.judged == 0:
        raise EvenrankError(f"the qrels judge none of the {counted(len(reported.queries), 'query')} that are reported")
    learn = grouping.lists(on) if on is not None else figures.lists
    rankings = [_ranking(given.name, figures.values(reported))]
    if np.isnan(rankings[0].bias).all():
        raise EvenrankError(
            f"`bias`: no list of the {counted(len(reported.queries), 'query')} that are reported has a value of"
            f" {measures[1]}: give another measure"
        )
    made = {one.name: one.make(learn.lists, grouping.table) for one in chosen}
    tried = {one.name: _default_strengths(one.name) if levels is None else levels for one in chosen}
    compared = _Paths(figures, made, measures[1], rankings[0], tried)
    rankings += compared.rankings()
    for name, other in others.items():
        rankings.append(_ranking(name, figures.values(_same_queries(other, reported.queries))))
    rankings += _references(reported, figures)
    plane = Plane(rankings, measures[1], seed)
    settings = {
        **grouping.table.settings,
        "methods": [one.name for one in chosen],
        "strengths": {name: list(strengths) for name, strengths in tried.items()},
        "given_or_learnt": {name: learnt(method, grouping.table.groups) for name, method in made.items()},
        "utility": str(measures[0]),
        "bias": str(measures[1]),
        "depth": depth,
        "target": "the shares of the lexicon or the labels" if grouping.target is None else grouping.target.described,
        "missing": grouping.missing,
        "seed": seed,
    }
    return Frontier(
        given.name,
        plane.points(),
        plane.equal(compared.levels),
        (measures[0], measures[1]),
        len(figures.queries),
        settings,
        (*notes, *_used(made, grouping.table), *notes_on(figures.lists, grouping, made, others)),
        provenance,
    )


class _Paths:
    """Each method at all its strengths, and at those around the biases at which methods are compared.

    These biases, ``levels``, are found once, from what all methods reach at the strengths that are asked for: of a
    measure where more is better they depend on the best of the methods. Between two strengths that are far apart a
    mixture of their rankings costs more than the method does.
    """

    def __init__(
        self,
        figures: OrderFigures,
        methods: Mapping[str, Reordering],
        bias: Measure,
        run: Ranking,
        strengths: Mapping[str, Sequence[float]],
    ) -> None:
        self._figures, self._methods, self._bias, self._run = figures, methods, bias, run
        self._coarse = {name: [self._at(name, strength) for strength in strengths[name]] for name in methods}
        every = [one for path in self._coarse.values() for one in path]
        self.levels = Plane([run, *every], bias, 0).levels()

    def _at(self, name: str, strength: float) -> Ranking:
        lists = self._figures.lists
        made = lists.reordered(self._methods[name].order(lists.lists, strength))
        return _ranking(f"{name} {strength:g}", self._figures.values(made), name, strength)

    def rankings(self) -> Iterator[Ranking]:
        """The methods' rankings, by method and rising strength."""
        for name, coarse in self._coarse.items():
            path = list(coarse)
            for _ in range(_HALVINGS):
                plane = Plane([self._run, *path], self._bias, 0)
                ends = {plane.between(name, level) for level in self.levels.values()}
                middles = {round((low + high) / 2, 4) for low, high in filter(None, ends) if high - low > _NEAR}
                path += [self._at(name, strength) for strength in sorted(middles)]
            yield from sorted(path, key=lambda one: one.strength or 0.0)


def _used(methods: Mapping[str, Reordering], table: GroupTable) -> Iterator[str]:
    """What each method was given or learnt."""
    for name, method in methods.items():
        found = learnt(method, table.groups)
        if found:
            yield f"{name}: {in_words(found, table.poles)}."


def _default_strengths(method: str) -> tuple[float, ...]:
    return (*NEAR_ZERO, *STRENGTHS) if method == "shift" else STRENGTHS


def _strengths(given: Sequence[float]) -> tuple[float, ...]:
    """The strengths. Raises EvenrankError for none, and for what is not from 0 to 1."""
    for strength in given:
        check_ranges(strength=strength)
    if not given:
        raise EvenrankError("`strengths`: expected at least one")
    # At 0 every method leaves the run as it is.
    return tuple(sorted({float(strength) for strength in given if strength > 0}))


def _measures(utility: str, bias: str | None, table: GroupTable) -> tuple[Measure, Measure]:
    first = parse_measure(utility)
    second = parse_measure(bias or ("ARaB@10" if table.poles is not None else "NFaiRR@10"))
    if is_bias(first):
        raise EvenrankError(f"`utility`: expected a measure of effectiveness, found {first}")
    how = resolve(second)
    if not is_bias(second) or how.whole_run or how.undirected or how.part_count > 1:
        raise EvenrankError(f"`bias`: expected a measure of bias that is a mean over queries, found {second}")
    return first, second


def _check_names(run: str, others: Mapping[str, Run], methods: Sequence[str]) -> None:
    taken = [run, *methods, RANDOM, NEUTRAL_FIRST, RELEVANCE_FIRST]
    twice = next((name for name in others if name in taken), None)
    if twice is not None:
        raise EvenrankError(f"`beside`: the name {quoted(twice)} is that of another point: name the run otherwise")


def _divided(run: Run, tuning: TuningQueries, learns: bool) -> tuple[Run | None, Run, list[str]]:
    """The run on the tuning queries (None if nothing is learnt), on those that are reported, and a note."""
    if not learns and tuning.given is None:
        return None, run, []
    chosen = tuning.chosen(run.queries)
    count = int(chosen.sum())
    tuning.check(count, len(chosen) - count)
    return restricted(run, chosen), restricted(run, ~chosen), [tuning.note(count, len(chosen) - count)]


def _same_queries(run: Run, queries: pl.Series) -> Run:
    """A run beside, of the reported queries. Raises EvenrankError if it lacks one."""
    lacking = queries.filter(~queries.is_in(run.queries.implode()))
    if len(lacking):
        raise EvenrankError(
            f"`beside`: the {run.described} has no documents for the query {quoted(lacking[0])}"
            f" ({len(lacking)} of {len(queries)} queries are missing)"
        )
    return restricted(run, run.queries.is_in(queries.implode()))


def _ranking(
    name: str, values: tuple[np.ndarray, ...], method: str | None = None, strength: float | None = None
) -> Ranking:
    return Ranking(name, values[0], values[1], method, strength)


def _references(run: Run, figures: OrderFigures) -> Iterator[Ranking]:
    """The run's candidates in random order, neutral-first and relevance-first."""
    whole = figures.evaluation(run)
    for name, values in (
        (RANDOM, figures.values_of(whole, how="random")),
        (NEUTRAL_FIRST, figures.values_of(whole.neutral_first())),
        (RELEVANCE_FIRST, figures.values_of(whole, how="relevance")),
    ):
        yield Ranking(name, values[0], values[1], reference=True)
