"""Debiasing of a dense index, with what it did: ``evenrank index debias``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Unpack

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.auditing import AuditResult, audit
from evenrank.files import EvenrankError, Provenance, Run, as_batches, as_qrels, as_queries, check_apart
from evenrank.files.arguments import checked
from evenrank.files.convert import strings
from evenrank.files.errors import quoted
from evenrank.files.json_values import LEFT_OUT, named
from evenrank.files.reading import INDEX
from evenrank.files.types import Array
from evenrank.files.wording import are, counted
from evenrank.groups import GroupSource, GroupTable, Lexicon, load_lexicon, score_batches
from evenrank.groups.table import largest_groups
from evenrank.measures.inference import Comparison, Estimate
from evenrank.results.finding import Finding, phrases
from evenrank.results.page import Page, Section
from evenrank.results.result import Result
from evenrank.results.table import (
    COUNT,
    Column,
    Interval,
    P,
    Table,
    digits,
    intervals,
    mark,
    short_intervals,
    shorts,
    with_interval,
)
from evenrank.search.erased_index import PassageNumbers, check_method, open_to_debias, remove_index, write_debiased
from evenrank.search.erasure import UNKNOWN, Erasure, fit_leace_blocks
from evenrank.search.group_probes import (
    FOLDS,
    GroupProbe,
    Recovered,
    deal_folds,
    draw_rows,
    neighbourhoods,
    probe_groups,
)
from evenrank.search.index_folder import Encoding, Manifest, changed_collection, read_manifest
from evenrank.search.vector_index import VectorIndex


@dataclass(frozen=True)
class PassageGroups:
    """Where groups are known from: ``source``, whose lexicon, with labels or scores, only gives pairs of words.

    ``named``: groups of labels that are asked for by name, however few passages they have.
    """

    source: GroupSource
    named: tuple[str, ...] = ()

    def check(self, method: str) -> None:
        """Raises EvenrankError for settings that do not go together."""
        if not self._counts and self.source.lexicon is not None and method != "hard":
            raise EvenrankError("`lexicon`: groups are known from `labels` or `scores`, and only hard needs its pairs")
        if self.named and self.source.labels is None:
            raise EvenrankError("`groups` are those of `labels`: it needs them")
        self._asked.check()
        if self._counts and self.source.collection is None:
            raise EvenrankError("which groups are the documents of? give `scores`, `labels` or `collection`")

    @property
    def _counts(self) -> bool:
        """Whether words are counted in texts."""
        return self.source.scores is None and self.source.labels is None

    @property
    def _asked(self) -> GroupSource:
        return self.source if self._counts else replace(self.source, lexicon=None)

    @cached_property
    def _words(self) -> Lexicon:
        return load_lexicon(self.source.lexicon)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The lexicon's pairs of counterparts; none where groups are known otherwise and no lexicon is given."""
        return self._words.pairs if self._counts or self.source.lexicon is not None else ()

    def numbers(self, index: VectorIndex) -> PassageNumbers:
        """The group of each of the index's passages. Raises EvenrankError where nothing is known of any."""
        if not self._counts:
            table = self.table([index.ids])
            found = PassageNumbers.of(index, table.groups, _numbered(table), table.settings)
            return self._large(found) if self.source.labels is not None else found
        source = self.source
        # Groups are told by counts alone.
        scoring = replace(source.scoring(), magnitudes=())
        # A batch at a time: a passage's number is kept, and not its counts.
        tables = score_batches(as_batches(source.collection), scoring)
        known = [_numbered(GroupTable.of(table, scoring.describe())) for table in tables]
        if not known:
            raise EvenrankError("the collection has no document")
        return PassageNumbers.of(index, self._words.groups, pl.concat(known), scoring.describe())

    def _large(self, found: PassageNumbers) -> PassageNumbers:
        """Without labels of few passages, which may be slips, unless they are asked for by name."""
        for name in self.named:
            if name not in found.names:
                raise EvenrankError(f"`groups`: no group {quoted(name)} (the groups are {', '.join(found.names)})")
        poles = [name.strip() for name in (self.source.poles or "").split(",")]
        asked = {*self.named, *poles}
        small = [name for name, count in found.counts.items() if 0 < count < SMALLEST and name not in asked]
        if not small:
            return found
        left = found.without(small)
        if sum(map(bool, left.counts.values())) < 2:
            raise EvenrankError(
                f"`labels`: expected two groups of {SMALLEST} passages or more, found {_counted(found)} (`groups` names"
                " those that are erased all the same)"
            )
        return left

    def table(self, ids: Sequence[pl.Series]) -> GroupTable:
        """The group table of some documents."""
        return self._asked.table(ids)


def _numbered(table: GroupTable) -> pl.DataFrame:
    return pl.DataFrame({"doc_id": table.table["doc_id"], "group": pl.Series(largest_groups(table)).cast(pl.Int16)})


def _counted(groups: PassageNumbers) -> str:
    return ", ".join(f"{count:,} of {name}" for name, count in groups.counts.items())


SMALLEST = 20
"""Passages of a label below which it is left out, unless it is asked for by name: it may be a slip."""
LEAST = 10
"""Passages of a group without which it is not probed."""


@dataclass(frozen=True, slots=True)
class Probes:
    """What probes recover.

    Attributes:
        groups: How many passages of each group were probed; empty where there was nothing to probe.
        before: From the index that was debiased; ``after``: from the debiased one. None without groups.
        unseen: Whether ``after`` is of an erasure that was fitted on all passages but those held out, which are what it
            is for passages that come later; of a method that is not fitted on passages it is as stored.
    """

    also: ClassVar = ("chance",)
    groups: dict[str, int]
    before: GroupProbe | None = None
    after: GroupProbe | None = None
    unseen: bool = False

    @property
    def chance(self) -> float:
        """The balanced accuracy of a classifier that knows nothing."""
        return 1 / max(len(self.groups), 1)


def probe_indexes(
    before: VectorIndex, after: VectorIndex, groups: PassageNumbers, *, sample: int = 1000, seed: int = 0
) -> Probes:
    """Probes of the passages of a group, up to ``sample`` of each at random, in five folds.

    A passage and the one whose vector is nearest to its own after debiasing are in the same fold, so that copies of a
    text with the words of another group do not decide. Groups with fewer than ten passages are left out.
    """
    numbers = groups.numbers
    enough = [number for number, name in enumerate(groups.names) if groups.counts[name] >= LEAST]
    rows = draw_rows(np.where(np.isin(numbers, enough), numbers, UNKNOWN), sample, seed)
    if len(enough) < 2:
        return Probes({})
    own, stored = numbers[rows], after.vectors[rows].astype(np.float64)
    parts = neighbourhoods(stored)
    folds = deal_folds(parts, own, seed=seed)
    if any(len(np.unique(own[folds != fold])) < len(enough) for fold in range(FOLDS)):
        # Hardly different passages: they are all in one fold.
        return Probes({})
    erased: Array | list[Array] = stored
    erasure = after.erasure
    unseen = erasure is not None and erasure.method == "leace"
    if erasure is not None and unseen:
        erased = [
            _without(before, groups, erasure, rows[folds == fold])(before.vectors[rows])
            for fold in np.unique(folds).tolist()
        ]
    counts = {groups.names[number]: int((own == number).sum()) for number in enough}
    given = before.vectors[rows].astype(np.float64)
    found = [probe_groups(one, own, folds, parts, unit="passages", seed=seed) for one in (given, erased)]
    return Probes(counts, found[0], found[1], unseen)


def _without(index: VectorIndex, groups: PassageNumbers, like: Erasure, rows: np.ndarray) -> Erasure:
    """The erasure as it is fitted on all passages but those of ``rows``."""
    numbers = groups.numbers.copy()
    numbers[rows] = UNKNOWN
    return Erasure(fit_leace_blocks(index.vectors, numbers, len(groups.names)), like.unit, like.method)


UNTOUCHED, DEBIASED = "untouched", "debiased"
UTILITY, ARAB, NFAIRR = "nDCG@10", "ARaB@10", "NFaiRR@10"


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure of a ranking: its ``mean`` and interval; what the order ``added`` to its candidates, (mean, interval),
    where the measure is linear; and the figure ``against`` the untouched index's. ``farther``: of a signed measure,
    whether it is farther from 0 than that."""

    mean: float | None
    ci95: Interval | None
    added: tuple[float, Interval | None] | None = None
    against: Comparison | None = None
    farther: Comparison | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Rankings:
    """The figures of each ranking, by its name and the measure's."""

    queries: int
    depth: int
    figures: Mapping[str, Mapping[str, Measured]] = field(metadata=named("runs"))


@dataclass(frozen=True)
class Search:
    """How rankings are made: ``queries`` with their texts, ``qrels`` if there are any, ``depth`` documents of each; the
    ``model`` and the ``encoding`` as for :meth:`VectorIndex.search`."""

    queries: pl.DataFrame
    qrels: pl.DataFrame | None = None
    depth: int = 200
    model: object = None
    encoding: Encoding | None = None
    seed: int = 0
    quiet: bool = False

    def run(self, index: VectorIndex, name: str) -> Run:
        """The ranking of an index."""
        options = {"model": self.model, "encoding": self.encoding, "quiet": self.quiet}
        return index.search(self.queries, self.depth, name=name, **options)  # type: ignore[arg-type]


def measure_rankings(before: VectorIndex, after: VectorIndex, source: PassageGroups, search: Search) -> Rankings:
    """The figures of the index before and after."""
    queries, qrels = search.queries, search.qrels
    runs = {UNTOUCHED: search.run(before, UNTOUCHED), DEBIASED: search.run(after, DEBIASED)}
    table = source.table([run.table["doc_id"] for run in runs.values()])
    measures = [*([UTILITY] if qrels is not None else []), *([ARAB] if table.poles is not None else []), NFAIRR]
    result = _audited(runs, table, qrels, measures, search.seed)
    figures = {name: {measure: _measured(result, name, measure) for measure in measures} for name in runs}
    return Rankings(queries.height, search.depth, figures)


def _audited(
    runs: Mapping[str, Run], table: GroupTable, qrels: pl.DataFrame | None, measures: Sequence[str], seed: int
) -> AuditResult:
    known = {"labels": table} if table.labelled else {"scores": table, "missing": "skip", "missing_limit": 1.0}
    return audit(runs, qrels=qrels, baseline=UNTOUCHED, measures=list(measures), seed=seed, **known)


def _measured(result: AuditResult, name: str, measure: str) -> Measured:
    figure = result[name, measure]
    added = None if figure.added is None else (figure.added.mean, figure.added.ci95)
    compared = figure.vs_baseline
    against, farther = (None, None) if compared is None else (compared.test, compared.sizes)
    return Measured(figure.mean, figure.ci95, added, against, farther)


def distance(mean: float, bias: str) -> float:
    """How far a mean is from no bias."""
    return float("inf") if np.isnan(mean) else abs(mean) if bias == ARAB else 1 - mean


_SOURCE = (
    "LEACE: Belrose et al., NeurIPS 2023. Hard debiasing: Bolukbasi et al., NeurIPS 2016. What remains: Gonen &"
    " Goldberg, NAACL 2019."
)
_SAYS = phrases("index_debias")
_METHODS = {"leace": "LEACE", "hard": "Hard debiasing"}


@dataclass(frozen=True, slots=True, repr=False)
class DebiasedIndex(Result):
    """What :func:`evenrank.debias_index` returns.

    ``manifest``: of the new index, whose ``settings["erasure"]`` says what was done; ``probes``: what is recovered of
    the groups; ``rankings``: of the queries, None without any.
    """

    also: ClassVar = ("erasure",)
    manifest: Manifest = field(metadata=LEFT_OUT)
    probes: Probes
    rankings: Rankings | None
    settings: Mapping[str, object]
    notes: tuple[str, ...] = ()

    @property
    def erasure(self) -> Mapping[str, object]:
        """What was done, as the index's manifest says it."""
        found = self.manifest.settings["erasure"]
        assert isinstance(found, Mapping)
        return found

    @property
    def gap(self) -> tuple[float, float]:
        """The largest distance between the means of two groups' vectors, as stored: before and after."""
        found = self.erasure["gap"]
        assert isinstance(found, Mapping)
        return found["before"], found["after"]

    def _beside(self) -> Mapping[str, object]:
        return {"index": self.manifest.path, "documents": self.manifest.documents}

    def page(self) -> Page:
        """The figures as a page."""
        facts = [("passages", f"{self.manifest.documents:,}"), ("directions erased", f"{self.erasure['directions']}")]
        sections = (
            [] if self.probes.before is None else [Section("What a probe recovers", (_probe_table(self.probes),))]
        )
        if self.rankings is not None:
            facts.append(("queries", f"{self.rankings.queries:,}"))
            tables = (_ranking_table(self.rankings), _difference_table(self.rankings))
            sections.append(Section("Rankings", tables))
        return Page(
            "index debias",
            f"Debiased index: {self.manifest.path}",
            (remains(self.probes), *_warnings(self.rankings), *_ranked(self.rankings), _erased(self)),
            _short(self),
            ("● differs (p < .05, corrected)",),
            counted(self.manifest.documents, "passage"),
            sections=tuple(sections),
            facts=tuple(facts),
            source=_SOURCE,
            notes=self.notes,
            provenance=self.provenance,
        )


# --- sentences --------------------------------------------------------------------------------------------------------


def _erased(result: DebiasedIndex) -> Finding:
    directions = result.erasure["directions"]
    assert isinstance(directions, int)
    before, after = result.gap
    return _SAYS.find(
        "erased",
        method=_METHODS[str(result.erasure["method"])],
        directions=counted(directions, "direction"),
        passages=counted(result.manifest.documents, "passage"),
        before=before,
        after=after,
    )


def _warnings(rankings: Rankings | None) -> Iterator[Finding]:
    if rankings is not None and UTILITY not in rankings.figures[DEBIASED]:
        yield _SAYS.find("unknown", level="cannot be told", place="warning")


def _ranked(rankings: Rankings | None) -> Iterator[Finding]:
    """What became of each figure of the rankings."""
    for measure, after in ({} if rankings is None else rankings.figures[DEBIASED]).items():
        assert rankings is not None
        before, test = rankings.figures[UNTOUCHED][measure], after.against
        key = "utility" if measure == UTILITY else "bias_further" if _farther(before, after, measure) else "bias"
        level = "cannot be told" if test is None else test.verdict
        values: dict[str, Any] = {"before": before.mean, "after": after.mean, "measure": measure, "difference": test}
        yield _SAYS.find(key, "", level, test, **values)


def _short(result: DebiasedIndex) -> Table | None:
    """The rankings before and after; without queries what the probes recover."""
    if result.rankings is None:
        return None if result.probes.before is None else _probe_table(result.probes)
    before, after = (result.rankings.figures[name] for name in (UNTOUCHED, DEBIASED))

    def marked(row: tuple[str, Measured, Measured]) -> str:
        return mark(row[2].against is not None and row[2].against.shown)

    columns = (
        Column("measure", heading=""),
        Column("before", shorts(3), of="1.mean"),
        Column("after", shorts(3), of="2.mean"),
        Column("difference", shorts(3, sign=True), of="2.against.mean", mark=marked),
        Column(("low", "high"), short_intervals(3, sign=True), "", "2.against.ci95"),
    )
    return Table("Before and after", columns, [(measure, of, after[measure]) for measure, of in before.items()])


def _farther(before: Measured, after: Measured, measure: str) -> bool:
    """Whether a difference is shown and leads away from no bias."""
    against = after.against
    if against is None or before.mean is None or after.mean is None:
        return False
    # Of a signed measure the sizes are compared: a lean that only turned is no farther.
    test = after.farther if after.farther is not None else against
    return test.shown and distance(after.mean, measure) > distance(before.mean, measure)


def remains(probes: Probes) -> Finding:
    """What can still be told of the groups."""
    found, before = probes.after, probes.before
    if found is None or before is None:
        return _SAYS.find("too_few", level="cannot be told", place="answer")
    best, best_before = found.best, before.best
    noticed = max(one.noticeable or 0.0 for one in (found.kernel, found.linear))
    values: dict[str, Any] = {
        "linear": _share(found.linear),
        "linear_before": before.linear.accuracy,
        "kernel": _share(found.kernel),
        "kernel_before": before.kernel.accuracy,
        "best": _share(best),
        "best_before": best_before.accuracy,
        "chance": probes.chance,
        "noticed": probes.chance + noticed,
        "why": best.why,
    }
    if found.linear.shown:
        return _SAYS.find("told_apart", "", "shown", found.linear, "answer", **values)
    if found.kernel.shown:
        return _SAYS.find("left_over", "", "shown", found.kernel, "answer", **values)
    if best.why is not None:
        return _SAYS.find("untold", "", "cannot be told", best, "answer", **values)
    key = "not_shown" if best_before.shown else "nothing_there"
    return _SAYS.find(key, "", "no difference shown", best, "answer", **values)


def _share(found: Recovered) -> Estimate:
    return Estimate(found.accuracy, found.ci95, found.n, found.unit)


# --- tables -----------------------------------------------------------------------------------------------------------


def _probe_table(probes: Probes) -> Table:
    after = "after, of passages not fitted on" if probes.unseen else "after, as stored"
    columns = (
        Column("index"),
        *_accuracy("linear"),
        *_accuracy("kernel"),
        Column("chance", digits(3), of=lambda _: probes.chance),
    )
    counts = ", ".join(f"{count:,} of {name}" for name, count in probes.groups.items())
    note = (
        f"Balanced accuracy of least-squares support vector machines over {FOLDS} folds, each passage held out once;"
        f" passages: {counts}. Kernel: RBF or quadratic, tuned on the other folds, as the linear machine's cost is."
        " Groups weigh alike. A passage and the one nearest to it in the debiased index are in the same fold, and count"
        " as one: copies of a text with the words of another group do not decide."
    )
    rows = [(name, found) for name, found in (("before", probes.before), (after, probes.after)) if found is not None]
    return Table("What a probe recovers", columns, rows, (note,))


def _ranking_table(rankings: Rankings) -> Table:
    measures = list(rankings.figures[UNTOUCHED])
    added = [measure for measure in measures if measure != UTILITY and _has_added(rankings, measure)]
    columns = [Column("ranking")]
    for place, measure in enumerate(measures):
        columns += with_interval(measure, f"1.{place}")
        if measure in added:
            ends = (f"{measure} added low", f"{measure} added high")
            columns.append(Column(f"{measure} added", digits(3), of=f"1.{place}.added.0"))
            columns.append(Column(ends, intervals(3), "95%", f"1.{place}.added.1"))
    rows = [(name, tuple(figures.values())) for name, figures in rankings.figures.items()]
    notes = [f"{counted(rankings.queries, 'query')}, {counted(rankings.depth, 'document')} of each."]
    if added:
        notes.append("Added: what the order adds to its own candidates in random order.")
    return Table("Rankings", tuple(columns), rows, tuple(notes))


def _accuracy(machine: str) -> tuple[Column, Column]:
    """The columns of what a machine recovers."""
    ends = (f"{machine}_low", f"{machine}_high")
    return (
        Column(machine, digits(3), of=f"1.{machine}.accuracy"),
        Column(ends, intervals(3), "95%", f"1.{machine}.ci95"),
    )


def _has_added(rankings: Rankings, measure: str) -> bool:
    return any(figures[measure].added is not None for figures in rankings.figures.values())


def _difference_table(rankings: Rankings) -> Table:
    rows = [
        (DEBIASED, measure, one.against)
        for measure, one in rankings.figures[DEBIASED].items()
        if one.against is not None and one.against.mean is not None
    ]
    columns = (
        Column("ranking"),
        Column("measure"),
        *with_interval("difference", "2"),
        Column("p", P, of="2.p"),
        Column("queries", COUNT, of="2.n"),
    )
    note = "Paired, over the queries where both are defined; p: t and Hall's t, uncorrected."
    return Table("Against the untouched index", columns, rows, (note,))


@checked
def debias_index(
    index: Annotated[
        opt.File,
        opt.Option("An index of a model's vectors (evenrank index).", metavar="INDEX", reads=True),
    ],
    *,
    out: Annotated[
        opt.File, opt.Option("The folder of the debiased index, new or empty.", metavar="DIR", panel="Output")
    ],
    method: Annotated[
        str, opt.Option("leace, fitted on the passages, or hard: the directions of the lexicon's pairs.")
    ] = "leace",
    components: Annotated[int, opt.Option("hard: directions to project out.", rare=True)] = 1,
    collection: opt.MaybeCollection = None,
    groups: Annotated[
        Sequence[str] | str | None,
        opt.Option(
            "A group of --labels to erase though it has fewer than 20 passages; repeatable.",
            metavar="GROUP",
            typed=list,
            panel="Groups",
            rare=True,
        ),
    ] = None,
    queries: Annotated[object, opt.Option("Queries to rank before and after.", reads=True)] = None,
    qrels: opt.Qrels = None,
    depth: Annotated[int, opt.Option("Documents per query.", panel="Statistics", rare=True)] = 200,
    sample: Annotated[
        int, opt.Option("The most passages of each group that the probes see.", panel="Statistics", rare=True)
    ] = 1000,
    model: Annotated[
        object,
        opt.Option(
            "Where the index's model is now, if not where it was (the same files).",
            metavar="MODEL",
            panel="Model",
            rare=True,
        ),
    ] = None,
    encoding: Encoding | None = None,
    seed: Annotated[int, opt.Option("Seed of the probes and the intervals.", panel="Statistics", rare=True)] = 0,
    quiet: bool = False,
    **given: Unpack[opt.GroupOptions],
) -> DebiasedIndex:
    """Erase the groups from a dense index and from its queries. Probes show what is still recovered.

    The new index has the same format; :func:`open_index` and :func:`retrieve` search it, and apply the same map to each
    query: x − L R (x − μ), then, where the vectors have length 1, scaling to length 1. That scaling, and float16, leave
    a small distance between the groups' means, which is measured as stored.

    Inputs are read before anything is written. A call that fails, or is interrupted, leaves no index.

    Args:
        index: The folder of an index of a model's vectors (:func:`build_index`), not debiased yet.
        out: The folder of the new one, new or empty.
        method: "leace" (Belrose et al. 2023), fitted on the passages whose group is known; or "hard" (Bolukbasi et al.
            2016), which projects out the first ``components`` directions of the lexicon's pairs of counterparts, as the
            index's model encodes them.
        collection: The texts, whose words of the ``lexicon`` (default: gender-en) say a passage's group: the one with
            the largest weight. Passages of no group are a group of their own; those that nothing is known of are not
            fitted on, and erased like the others.
        groups: Of ``labels``, groups that are erased however few passages they have. Others of fewer than 20, and not
            among the ``poles``, may be slips: they are left out, and named in a note.
        queries: Queries to rank before and after; with ``qrels`` also for effectiveness (those of other queries are
            left out).
        depth: How many documents of each query are ranked.
        sample: The most passages of each group that the probes see.
        model: The index's model, if it is not where it was, or was loaded.
        encoding: How texts are encoded: ``batch_size``, ``device``.
        seed: Seed of the probes' folds and the intervals.
        quiet: Show no progress.
        **given: What else says which groups passages are of: see :class:`evenrank.options.GroupOptions`.

    Raises:
        EvenrankError: For an index of another kind, or debiased already, fewer than two groups with passages, and
            settings that do not go together; InputError for files that cannot be read or written.
    """
    asked = GroupSource(collection, **given)
    source = PassageGroups(asked, strings(groups))
    source.check(method)
    if queries is None and qrels is not None:
        raise EvenrankError("`qrels` needs `queries`")
    check_method(method, components, source.pairs if method == "hard" else ())
    check_apart([out], [index, collection, asked.scores, asked.labels, queries, qrels])
    made = Provenance("evenrank.debias_index").add("index", os.path.join(os.fspath(index), INDEX))
    asked.note(made)
    made.add("queries", queries).add("qrels", qrels).ahead()
    before = open_to_debias(index)
    # All that can be wrong with the inputs is found before anything is written.
    search = None
    if queries is not None:
        texts = as_queries(queries)
        judged = None if qrels is None else _of_queries(as_qrels(qrels), texts)
        search = Search(texts, judged, depth, model, encoding, seed, quiet)
    encoder = before.encoder(model, encoding) if method == "hard" or search is not None else None
    numbers = source.numbers(before)
    new = not os.path.lexists(out)
    manifest = write_debiased(
        before,
        out,
        numbers,
        method=method,
        pairs=source.pairs if method == "hard" else (),
        components=components,
        encoder=encoder,
        quiet=quiet,
    )
    try:
        after = VectorIndex.open(read_manifest(manifest.path))
        probes = probe_indexes(before, after, numbers, sample=sample, seed=seed)
        rankings = None if search is None else measure_rankings(before, after, source, search)
    except BaseException:
        # The same command can then be run again.
        remove_index(manifest, folder=new)
        raise
    notes = _notes(before, numbers, after.erasure)
    settings = {
        "index": os.fspath(index),
        "out": os.fspath(out),
        "method": method,
        "components": components if method == "hard" else None,
        "depth": depth,
        "sample": sample,
        "seed": seed,
    }
    return DebiasedIndex(manifest, probes, rankings, settings, tuple(notes), provenance=made)


def _of_queries(qrels: pl.DataFrame, queries: pl.DataFrame) -> pl.DataFrame:
    """The judgements of the queries that are ranked: of any others there is no ranking to judge."""
    judged = qrels.join(queries, on="query_id", how="semi", maintain_order="left")
    if judged.is_empty():
        raise EvenrankError("the qrels judge none of the queries")
    return judged


def _notes(index: VectorIndex, groups: PassageNumbers, erasure: Erasure | None) -> list[str]:
    counts = groups.to_dict()
    unknown, none = counts["unknown"], counts["none"]
    assert isinstance(unknown, int)
    assert isinstance(none, int)
    notes = [f"Passages: {_counted(groups)}, {none:,} of none or several alike, {unknown:,} unknown."]
    left_out = groups.described.get("left_out")
    if isinstance(left_out, Mapping):
        named = ", ".join(f"{name} ({counted(count, 'passage')})" for name, count in left_out.items())
        notes.append(
            f"Left out, as fewer than {SMALLEST} passages may be a slip: {named}. `groups` names those that are erased"
            " all the same."
        )
    if unknown:
        notes.append(f"{counted(unknown, 'passage')} {are(unknown)} of no known group: erased, but not fitted on.")
    if erasure is not None and erasure.unit and erasure.method == "leace":
        notes.append(
            "The vectors have length 1 and are scaled to it again after erasure. LEACE makes the means of the groups"
            " equal before that: afterwards they differ a little, and a linear classifier may find that."
        )
    return [*notes, *(f"{note[0].upper()}{note[1:]}." for note in changed_collection(index.manifest))]
