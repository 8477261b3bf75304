"""The inputs of an audit, loaded and checked: runs, judgements, queries, measures and options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl
from ir_measures import Measure

from evenrank._command import arg, redacted_address
from evenrank.files import (
    EvenrankError,
    InputError,
    Order,
    Run,
    as_collection,
    as_qrels,
    as_queries,
    as_run,
    read_run,
)
from evenrank.files.arguments import checked
from evenrank.files.convert import PathLike, first_of, is_path, runs_by_name
from evenrank.files.errors import quoted, readable
from evenrank.files.wording import counted
from evenrank.groups import GroupTable
from evenrank.groups.labels import PROBABILITY
from evenrank.measures import (
    MeasuresLike,
    Missing,
    Target,
    as_target,
    is_bias,
    is_estimable,
    not_estimable,
    parse_measure,
    parse_measures,
    resolve,
)

from .data import REFERENCES, SHOWN_AS
from .judgements import GRADE, DrawnJudgements, split_pairs
from .values import SHOWN_DEPTH

UTILITY, UNKNOWN_PURPOSE = "nDCG@10", "P@10"
LEAN, NEUTRALITY = "ARaB@10", "NFaiRR@10"
OF_LABELS = "AWRF(target='candidates')@10"
_MOST_SHARES = 12
Unknown = Literal["bounds", "skip", "neutral"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an audit that are plain values; see :func:`evenrank.audit`."""

    baseline: str | None
    background_depth: int
    missing: Missing
    missing_limit: float
    unknown: Unknown | None
    only_queries: bool
    seed: int
    order: Order

    def of_labels(self, groups: GroupTable | None) -> Options:
        """The options for documents that are labelled, of which some are unknown, or for all others.

        Raises EvenrankError for ``missing`` with labels, for ``unknown`` without, and for leaving out documents where
        labels that were drawn stand for all of them.
        """
        if groups is not None and groups.sample is not None and self.unknown not in (None, "bounds"):
            raise EvenrankError(
                f"{arg('unknown', self.unknown)}: labels that were drawn stand for all documents that could have been"
            )
        if groups is None or not groups.labelled:
            if self.unknown is not None:
                raise EvenrankError(f"{arg.unknown} is about documents without a label: it needs {arg.labels}")
            return self
        if self.missing != "error":
            raise EvenrankError(
                f"{arg.missing} is about documents without text: of labels, {arg.unknown} says what to do"
            )
        return replace(self, missing=self.unknown or "bounds")

    def check(self, names: list[str]) -> None:
        """Raises EvenrankError, naming the option, for a value that is not allowed with runs of these ``names``."""
        reserved = [name for name in names if name in (*REFERENCES, *SHOWN_AS.values())]
        if reserved:
            raise EvenrankError(f"the name {quoted(reserved[0])} is reserved for a reference ranking: rename the run")
        if self.baseline is not None and self.baseline not in names:
            raise EvenrankError(f"{arg.baseline}: no run {quoted(self.baseline)} (the runs are {', '.join(names)})")


@dataclass(frozen=True, slots=True)
class Inputs:
    """What an audit is computed from. ``notes`` are remarks for its reader."""

    runs: list[Run]
    background: Run
    """The run that normalises NFaiRR and supplies the candidates of the reference rankings; often one of ``runs``."""
    measures: list[Measure]
    qrels: pl.DataFrame | None
    queries: pl.DataFrame | None
    collection: PathLike | pl.DataFrame | None
    notes: list[str]
    of_relevant: bool = False
    """Whether the target is the shares of the relevant documents."""
    judgements: DrawnJudgements | None = None
    """Judgements that were drawn, in place of ``qrels``."""
    unchecked: bool = False
    """Whether ``qrels`` are a judge's grades, which nobody has compared with people's."""

    @property
    def all_runs(self) -> list[Run]:
        """The runs, and the background if it is not one of them."""
        own = any(self.background is run for run in self.runs)
        return self.runs if own else [*self.runs, self.background]

    @property
    def relevant_ids(self) -> list[pl.Series]:
        """The ids of the relevant documents, if a target is their groups' shares, retrieved or not."""
        wanted = self.of_relevant or any(measure.params.get("target") == "relevant" for measure in self.measures)
        return [self.qrels.filter(pl.col("relevance") > 0)["doc_id"]] if wanted and self.qrels is not None else []

    @property
    def asked(self) -> pl.Series:
        """The audit's queries: those of the runs, then the judged ones that no run has."""
        parts = [run.queries for run in [*self.runs, self.background]]
        parts += [] if self.qrels is None else [self.qrels["query_id"]]
        return pl.concat(parts).unique(maintain_order=True).alias("query_id")


def load_inputs(
    runs: Mapping[str, object],
    *,
    background: object,
    collection: object,
    qrels: object,
    judge: object,
    queries: object,
    measures: MeasuresLike | None,
    target: object,
    options: Options,
    of_groups: bool,
) -> Inputs:
    """Loads and checks what an audit was given; ``runs`` by name, ``of_groups``: whether groups are described.

    Raises EvenrankError, or InputError with file and line, for input that cannot be used.
    """
    loaded = load_runs(runs, options.order)
    options.check([run.name for run in loaded])
    drawn = DrawnJudgements.read(qrels, judge, loaded)
    if judge is not None and drawn is None and qrels is not None:
        raise EvenrankError(
            f"{arg.judge}: expected judgements that were drawn beside it (evenrank labels sample), or none; found"
            f" {arg.qrels} without columns {GRADE} and {PROBABILITY}"
        )
    known = judge if qrels is None else qrels
    judgements = None if known is None or drawn is not None else as_qrels(known)
    texts = None if collection is None else as_collection(collection)
    query_texts = None if queries is None else as_queries(queries)
    chosen, notes = _choose_measures(measures, judgements is not None, drawn, of_groups)
    inputs = Inputs(
        loaded,
        _load_background(background, loaded, options),
        chosen,
        judgements,
        query_texts,
        texts,
        notes,
        of_relevant=isinstance(target, str) and target == "relevant",
        judgements=drawn,
        unchecked=qrels is None and judge is not None,
    )
    if options.only_queries:
        inputs = _restricted(inputs)
    if inputs.qrels is not None:
        check_judged(inputs.qrels["query_id"], inputs.runs, known)
    if drawn is not None:
        check_judged(split_pairs(drawn.table.table)["query_id"], inputs.runs, known)
    if query_texts is not None:
        _check_queries(query_texts["query_id"], inputs.runs, queries if is_path(queries) else "the queries")
    return inputs


# --- runs ------------------------------------------------------------------------------------------------------------


def name_runs(runs: object, order: Order) -> Mapping[str, object]:
    """The runs by name: a mapping as it is, paths and Runs under their own names, any other single run as ``run``.

    Raises EvenrankError for a name that is repeated.
    """
    if runs_by_name(runs):
        return runs
    if is_path(runs):
        return named_runs([runs])
    of_names = (Run, str, os.PathLike)
    if isinstance(runs, Sequence) and (not runs or isinstance(runs[0], of_names)):
        others = [type(run).__name__ for run in runs if not isinstance(run, of_names)]
        if others:
            raise EvenrankError(f"{arg.runs}: expected paths or Runs in the list, found a {others[0]}")
        return named_runs(runs)
    run = as_run(runs, order=order, what=arg.runs)
    return {run.name: run}


@checked
def run_name(path: PathLike) -> str:
    """The name of a run: its file's name without an ending such as ``.run``, ``.tsv.gz`` or ``.parquet``."""
    name = readable(os.path.basename(redacted_address(os.fspath(path)))).removesuffix(".gz").removesuffix(".zst")
    stem, suffix = os.path.splitext(name)
    return stem if suffix in (".run", ".txt", ".tsv", ".trec", ".csv", ".json", ".jsonl", ".parquet") and stem else name


@checked
def named_runs(arguments: Sequence[PathLike | Run]) -> dict[str, PathLike | Run]:
    """Runs by name, from ``NAME=PATH``, a path (named after its file) or a :class:`Run` (which has a name).

    Raises EvenrankError for a name that is repeated.
    """
    named: dict[str, PathLike | Run] = {}
    for argument in arguments:
        name, run = _named(argument)
        if name in named:
            example = f"NAME={run}" if is_path(run) else "{'other': run}"
            raise EvenrankError(f"two runs are named {quoted(name)}: name them, as in {example}")
        named[name] = run
    return named


def _named(argument: PathLike | Run) -> tuple[str, PathLike | Run]:
    if not is_path(argument):
        return argument.name, argument
    text = os.fspath(argument)
    name, equals, path = text.partition("=")
    # The equals sign of an address is in its query.
    if equals and name and "://" not in name and not os.path.exists(text):
        return readable(name), path
    return readable(run_name(text)), text


def load_runs(named: Mapping[str, object], order: Order) -> list[Run]:
    if not named:
        raise EvenrankError("an audit needs at least one run")
    return [as_run(run, name, order=order, what=f"run {name}") for name, run in named.items()]


def _load_background(background: object, runs: list[Run], options: Options) -> Run:
    """The run given or named as background; by default the baseline, or without one the first run."""
    if background is None:
        return next((run for run in runs if run.name == options.baseline), runs[0])
    if not is_path(background):
        return as_run(background, order=options.order, what=arg.background)
    named = next((run for run in runs if run.name == background), None)
    return named or read_run(background, name=run_name(background), order=options.order)


# --- queries ---------------------------------------------------------------------------------------------------------


def _restricted(inputs: Inputs) -> Inputs:
    """The inputs for the given queries alone. Raises EvenrankError if a run or the qrels have none of them."""
    if inputs.queries is None:
        raise EvenrankError(f"{arg.only_queries} needs {arg.queries}")
    known = inputs.queries["query_id"]
    restricted = {id(run): only_queries(run, known) for run in inputs.all_runs}
    qrels = None if inputs.qrels is None else only_judged(inputs.qrels, known)
    return replace(
        inputs,
        runs=[restricted[id(run)] for run in inputs.runs],
        background=restricted[id(inputs.background)],
        qrels=qrels,
        notes=[*inputs.notes, f"{arg.only_queries}: the audit is restricted to the {len(known):,} queries given."],
    )


def only_queries(run: Run, queries: pl.Series) -> Run:
    """The run of these queries alone. Raises EvenrankError if it has none of them."""
    table = run.table.filter(pl.col("query_id").is_in(queries.implode()))
    if not table.height:
        raise EvenrankError(f"{run.described}: {arg.only_queries} leaves none of its {len(run.queries)} queries")
    return replace(run, table=table)


def only_judged(qrels: pl.DataFrame, queries: pl.Series) -> pl.DataFrame:
    """The judgements of these queries alone. Raises EvenrankError if there are none."""
    judged = qrels.filter(pl.col("query_id").is_in(queries.implode()))
    if not judged.height:
        raise EvenrankError(f"{arg.only_queries}: the qrels judge none of the queries given")
    return judged


def _check_queries(known: pl.Series, runs: list[Run], source: PathLike) -> None:
    """Raises InputError, naming the ``source`` of the texts, if a query of a run is not among those ``known``."""
    for run in runs:
        lacking = run.queries.filter(~run.queries.is_in(known.implode()))
        if len(lacking):
            others = known.filter(~known.is_in(run.queries.implode()))
            raise InputError(
                source,
                f"no text for {len(lacking)} of the {len(run.queries)} queries of the {run.described}:"
                f" {first_of(lacking)}{f'; the texts have {first_of(others[:3])}' if len(others) else ''}"
                f" ({arg.only_queries} leaves them out)",
            )


def check_judged(judged: pl.Series, runs: list[Run], qrels: object) -> None:
    """Raises EvenrankError for a run that has none of the ``judged`` queries: their ids are others."""
    for run in runs:
        if not run.queries.is_in(judged.implode()).any():
            source = os.fspath(qrels) if is_path(qrels) else arg.qrels
            other = f"ids in another column: {arg('run_columns', 'query=NAME')}; answers without names: {arg.queries}"
            raise EvenrankError(
                f"{run.described}: none of its {counted(len(run.queries), 'query')} is judged in {source}: the run has"
                f" {first_of(run.queries)}; the qrels have {first_of(judged.unique(maintain_order=True))}"
                + ("" if run.source is None else f" ({other})")
            )


# --- measures and texts ----------------------------------------------------------------------------------------------


def _choose_measures(
    measures: MeasuresLike | None, judged: bool, drawn: DrawnJudgements | None, of_groups: bool
) -> tuple[list[Measure], list[str]]:
    """The measures, utility first, and notes about the choice.

    Of judgements that were drawn those that they were drawn for, and others that they can estimate.
    """
    if drawn is not None:
        chosen = parse_measures(measures or [*drawn_for(drawn), *((LEAN, NEUTRALITY) if of_groups else ())])
        chosen = chosen if any(not is_bias(m) for m in chosen) else [*parse_measures(drawn_for(drawn)), *chosen]
        other = next((measure for measure in chosen if not is_bias(measure) and not is_estimable(measure)), None)
        if other is not None:
            raise not_estimable(other)
        return sorted(chosen, key=is_bias), []
    notes = []
    usual = f"{UTILITY if judged else ''} {LEAN} {NEUTRALITY}"
    chosen = parse_measures(usual if measures is None else measures)
    needing = [measure for measure in chosen if resolve(measure).needs_qrels]
    if needing and not judged:
        raise EvenrankError(f"{needing[0]} needs {arg.qrels}")
    if judged and all(is_bias(measure) for measure in chosen):
        chosen.append(parse_measure("nDCG@10"))
        notes.append("nDCG@10 was added: bias is never reported without effectiveness.")
    return sorted(chosen, key=is_bias), notes


def drawn_for(judgements: DrawnJudgements) -> list[str]:
    """The effectiveness measures that judgements were sampled for; P@10 if unknown."""
    return list(judgements.measures) or [UNKNOWN_PURPOSE]


def load_target(target: object, groups: GroupTable | None, judged: bool) -> Target | None:
    """The target shares from any of their forms; None for equal shares.

    Raises EvenrankError for a target of groups that there are not, and for one that needs qrels which are not there.
    """
    if target is None:
        return None
    if groups is None:
        raise EvenrankError(f"{arg.target} is of groups: it needs {arg.collection}, {arg.scores} or {arg.labels}")
    if target == "relevant" and not judged:
        raise EvenrankError(f"{arg('target', 'relevant')} needs {arg.qrels}")
    return as_target(target, groups.groups)


def common_depth(runs: Sequence[Run]) -> int:
    """The length of the longest lists that all runs have."""
    return min(int(run.table["rank"].to_numpy().max()) for run in runs)


def usual_measures(
    groups: GroupTable, judged: bool, depth: int = 0, drawn: DrawnJudgements | None = None
) -> list[Measure]:
    """The default measures of an audit, effectiveness first.

    ``depth``: of how many documents recall is measured, where these are more than ten; ``drawn``: judgements that were.

    Without poles nothing is signed; of labels, and of more than two groups, each group's share is a figure, and how
    near the shares are to those of the candidates.
    """
    names = [UTILITY] if judged else []
    names += [f"R@{depth}"] if judged and depth > SHOWN_DEPTH else []
    names += [] if drawn is None else drawn_for(drawn)
    if groups.poles is not None:
        names.append(LEAN)
    if groups.labelled or groups.poles is None:
        # Labels that were drawn estimate sums over ranks alone.
        names += [OF_LABELS] if groups.sample is None else []
        names += [f"Share(group={group!r})@10" for group in groups.groups[:_MOST_SHARES]]
    else:
        names.append(NEUTRALITY)
    return parse_measures(" ".join(names))
