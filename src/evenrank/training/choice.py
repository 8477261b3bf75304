"""Validation as the ranker will be used, and which checkpoint becomes the model by it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ExportableState

from evenrank.auditing.query_clusters import query_clusters
from evenrank.files import EvenrankError, Run
from evenrank.files.convert import first_of
from evenrank.files.errors import arg
from evenrank.files.threads import in_order
from evenrank.files.wording import counted
from evenrank.groups import GroupTable, Scoring, score_texts
from evenrank.measures import Evaluation, Missing, greatest_value, parse_measure, resolve
from evenrank.measures.pairwise import DeltaAPRF
from evenrank.mitigation.attributes import Attribute, rows_of
from evenrank.mitigation.blind import mask_texts
from evenrank.mitigation.ibbr import KEPT, best_weight, keeps_enough
from evenrank.models.protocol import Ranker
from evenrank.stats.compare import compare


@dataclass(frozen=True)
class Validation:
    """A run to re-rank, with the texts that a ranker reads: the first ``depth`` passages of every judged query.

    Bias is measured over all passages of the rankings; their group table is made while the texts are read.
    """

    run: Run
    qrels: pl.DataFrame
    pairs: pl.DataFrame
    """``query_id``, ``doc_id``, ``rank``, ``query`` and ``text`` of each pair to score."""
    measure: str
    attributes: Mapping[str, GroupTable] = field(default_factory=dict)
    """The group table of the run's passages, for each attribute whose ΔA-PRF is measured; of labels, of those that have
    one: a clicked passage without a label is of neither group."""
    masked: Scoring | None = None
    """Its words are masked in what the ranker reads."""
    target: GroupTable | None = None
    """The labels of an adversary's target."""

    @classmethod
    def of(
        cls,
        run: Run,
        qrels: pl.DataFrame,
        queries: pl.DataFrame,
        texts: pl.DataFrame | Iterable[pl.DataFrame],
        *,
        measure: str,
        depth: int,
        attributes: Mapping[str, Attribute] | None = None,
        sources: tuple[str, str] = ("the validation queries", "the collection"),
    ) -> Validation:
        """``texts``: a table or its batches, of which those that a ranker reads are kept. ``sources``: names of the
        queries and the texts for messages.

        Raises EvenrankError if a query or a passage (those below ``depth`` included) has no text, no query of the run
        is judged, or labels know no passage of the run.
        """
        judged = run.table.join(qrels.select("query_id").unique(), on="query_id", how="semi", maintain_order="left")
        if not judged.height:
            raise EvenrankError("validation: no query of the run is judged")
        labels = {name: a for name, a in (attributes or {}).items() if isinstance(a, GroupTable)}
        scorings = {name: a for name, a in (attributes or {}).items() if isinstance(a, Scoring)}
        ids = judged.select("doc_id").unique(maintain_order=True)
        pairs = judged.filter(pl.col("rank") <= depth)
        passages, present, tables = _taken(texts, ids, pairs["doc_id"].unique(), list(scorings.values()))
        lacking = {
            ("queries are", sources[0]): pairs.join(queries, on="query_id", how="anti", maintain_order="left")[
                "query_id"
            ].unique(),
            ("documents are", sources[1]): ids.join(present, on="doc_id", how="anti", maintain_order="left")["doc_id"],
        }
        for (noun, where), missing in lacking.items():
            if len(missing):
                raise EvenrankError(
                    f"validation: {run.described}: {len(missing)} of its {noun} not in {where}: {first_of(missing)}"
                )
        pairs = pairs.join(queries.rename({"text": "query"}), on="query_id", how="left", maintain_order="left").join(
            passages, on="doc_id", how="left", maintain_order="left"
        )
        scored = dict(zip(scorings, tables, strict=True))
        scored |= {name: _labelled(table, ids["doc_id"]) for name, table in labels.items()}
        return cls(
            Run.from_table(judged, run.name), qrels, pairs, measure, {name: scored[name] for name in attributes or {}}
        )

    @property
    def judged(self) -> pl.DataFrame:
        """The judgements of the run's queries."""
        return self.qrels.join(self.run.queries.to_frame(), on="query_id", how="semi")

    @property
    def tables(self) -> list[GroupTable]:
        """The group tables of the attributes and of an adversary's target."""
        return [*self.attributes.values(), *([] if self.target is None else [self.target])]

    @property
    def depth(self) -> int:
        """How much of each list is re-ranked."""
        return int(self.pairs["rank"].max() or 1)  # type: ignore[arg-type]

    @property
    def read(self) -> tuple[list[str], list[str]]:
        """The queries and the passages [pairs] as the ranker reads them."""
        texts = self.pairs["query"], self.pairs["text"]
        queries, passages = texts if self.masked is None else (mask_texts(text, scoring=self.masked) for text in texts)
        return queries.to_list(), passages.to_list()

    def scores(self, ranker: Ranker, batch_size: int = 64) -> NDArray[np.float64]:
        """The ranker's scores [pairs]."""
        return np.asarray(ranker.score(*self.read, batch_size).double().numpy(), np.float64)

    def reranked(self, scores: NDArray[np.float64], depth: int, name: str) -> Run:
        """The run with its first ``depth`` passages in the order of the scores [pairs], then the others."""
        scored = self.pairs.select("query_id", "doc_id", "rank").with_columns(pl.Series("new", scores))
        table = self.run.table.join(
            scored.select("query_id", "doc_id", "new"), on=["query_id", "doc_id"], how="left", maintain_order="left"
        )
        lowest = float(np.min(scores, initial=0.0)) - 1.0
        score = (
            pl.when((pl.col("rank") <= depth) & pl.col("new").is_not_null())
            .then(pl.col("new"))
            .otherwise(lowest - pl.col("rank").cast(pl.Float64))
        )
        return Run.from_table(table.select("query_id", "doc_id", score.alias("score")), name)

    def value(self, run: Run) -> float:
        """The validation measure of a run, mean over its judged queries."""
        return Evaluation(run, qrels=self.judged).figure(parse_measure(self.measure))

    def tested(self, run: Run) -> tuple[int, float | None]:
        """The number of queries of a paired test of a run against the first stage on the measure, and its p.

        Queries with the same relevant documents are one cluster, as in an audit. None where nothing can be told.
        """
        judged, measure = self.judged, parse_measure(self.measure)
        both = [Evaluation(ranking, qrels=judged) for ranking in (run, self.run)]
        own, first = (evaluation.values(measure) for evaluation in both)
        clusters = query_clusters(None, resolve(measure).queries(both[0]), None, judged).numbers
        comparison = compare(own - first, zeros="keep", clusters=clusters, reach=greatest_value(measure))
        return comparison.n, comparison.p

    def delta_aprf(self, run: Run) -> dict[str, float]:
        """ΔA-PRF of a run for each attribute (NaN if a pole has no clicked passage)."""
        values = {}
        for name, scores in self.attributes.items():
            missing: Missing = "skip" if scores.labelled else "error"
            values[name] = Evaluation(run, scores, self.judged, missing=missing).figure(DeltaAPRF)
        return values

    def best_depth(self, scores: NDArray[np.float64], depths: Sequence[int]) -> tuple[int, float]:
        """The re-ranking depth with the highest measure (the smallest of equal ones), and that measure."""
        values = [(self.value(self.reranked(scores, depth, "validation")), -depth) for depth in depths]
        value, depth = max(values)
        return -depth, value


def _labelled(labels: GroupTable, ids: pl.Series) -> GroupTable:
    """The labels of these documents. Raises EvenrankError if none has one."""
    rows = rows_of(labels, ids, "validated passage")
    return replace(labels, table=labels.table[rows[rows >= 0]])


def _taken(
    texts: pl.DataFrame | Iterable[pl.DataFrame], ids: pl.DataFrame, wanted: pl.Series, scorings: Sequence[Scoring]
) -> tuple[pl.DataFrame, pl.DataFrame, list[GroupTable]]:
    """In one pass: the texts of the ``wanted`` documents; for all in ``ids``, the ids found and their group tables."""
    marked = ids.with_columns(wanted=ids["doc_id"].is_in(wanted.implode()))

    def take(batch: pl.DataFrame) -> list[pl.DataFrame]:
        documents = batch.join(marked, on="doc_id", how="inner", maintain_order="left")
        passages = documents.filter("wanted").select("doc_id", "text")
        return [passages, documents.select("doc_id"), *(score_texts(documents, scoring) for scoring in scorings)]

    batches = texts.iter_slices(1 << 15) if isinstance(texts, pl.DataFrame) else texts
    parts = list(in_order(take, batches)) or [take(pl.DataFrame(schema={"doc_id": pl.String, "text": pl.String}))]
    passages, documents, *tables = (pl.concat(part) for part in zip(*parts, strict=True))
    return passages, documents, [GroupTable.of(table, s.describe()) for table, s in zip(tables, scorings, strict=True)]


Keep = Literal["best", "fair", "last"]
Rule = Literal["utility", "joint", "last"]


@dataclass(frozen=True, slots=True)
class Validated:
    """One validation: the step, the utility, and the largest |ΔA-PRF| over the attributes (NaN if not measured)."""

    step: int
    utility: float
    bias: float = math.nan


def largest_gap(delta: Mapping[str, float | None]) -> float:
    """The largest |ΔA-PRF| over the attributes; NaN if there is none, or one is unknown."""
    values = [math.nan if value is None else abs(value) for value in delta.values()]
    return float(np.max(values)) if values else math.nan


def chosen(seen: Sequence[Validated], rule: Rule) -> Validated | None:
    """The validation whose checkpoint the rule chooses (of equal ones the first); None leaves the last.

    ``joint``: least bias among those with at least 95% of the best utility seen.
    """
    known = [validation for validation in seen if not math.isnan(validation.utility)]
    if rule == "last" or not known:
        return None
    best = max(known, key=lambda validation: validation.utility)
    if rule == "utility":
        return best
    index = best_weight([v.utility for v in known], [v.bias for v in known], best.utility)
    return None if index is None else known[index]


def needed(seen: Sequence[Validated], rule: Rule) -> set[int]:
    """The steps whose checkpoints are chosen now, or may be after further validations.

    A better utility raises what the joint rule asks for: the next in line are those that no other one beats in utility
    and bias.
    """
    now = chosen(seen, rule)
    if now is None:
        return set()
    if rule == "utility":
        return {now.step}
    steps, highest = set(), -math.inf
    # What is less useful than the chosen one is either more biased too, or not useful enough already.
    for validation in sorted((v for v in seen if v.utility >= now.utility), key=lambda v: (v.bias, -v.utility)):
        if validation.utility > highest:
            steps.add(validation.step)
            highest = validation.utility
    return steps


def stale(seen: Sequence[Validated], rule: Rule) -> int:
    """How many validations there were since the last that improved: the best utility, or under the joint rule the least
    bias among those with enough utility."""
    since = 0
    for count, new in enumerate(seen):
        before = seen[:count]
        best, then = chosen(before, "utility"), chosen(before, rule)
        raised = not math.isnan(new.utility) and (best is None or new.utility > best.utility)
        fairer = rule == "joint" and (then is None or new.bias < then.bias) and chosen([*before, new], rule) is new
        since = 0 if raised or fairer else since + 1
    return since


def rule_of(keep: Keep, validation: Validation | None, *, term: bool, adversary: bool) -> tuple[Rule, str]:
    """The rule that ``training.keep`` stands for, and in words why it is the last checkpoint, if it is.

    ``term``: whether a fairness term of a weight above 0 trains. Raises EvenrankError for ``fair`` where the validation
    does not measure |ΔA-PRF|.
    """
    lacking = _unmeasured(validation)
    if keep == "fair":
        if lacking:
            raise EvenrankError(f'{arg.keep}: "fair" needs |ΔA-PRF|, but {lacking}')
        return "joint", ""
    if validation is None:
        return "last", "the last, as there is no validation"
    if keep == "last":
        return "last", "the last, as asked"
    if adversary:
        return "last", "the last, as utility alone would choose one from before the adversary acts"
    if term and lacking:
        return "last", f"the last, as utility alone would choose one from before the term acts, and {lacking}"
    return ("joint" if term else "utility"), ""


def _unmeasured(validation: Validation | None) -> str:
    """Why a validation does not measure |ΔA-PRF|, or nothing if it does."""
    if validation is None:
        return "there is no validation"
    if not validation.attributes:
        return "the validation has no attributes"
    # Re-ranking does not change which queries have a clicked passage of a group.
    undefined = [name for name, value in validation.delta_aprf(validation.run).items() if math.isnan(value)]
    return f"the validation has no clicked passages of both groups of {', '.join(undefined)}" if undefined else ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The checkpoint that became the model.

    Its step and the rule that chose it; ``value`` and ``abs_delta_aprf``: its utility and bias in validation;
    ``best_value``: the best utility; ``validations``: how many there were; ``why``: all of it in words.
    """

    step: int
    rule: Rule
    value: float | None
    abs_delta_aprf: float | None
    best_value: float | None
    validations: int
    why: str


class CheckpointChooser(TrainerCallback, ExportableState):
    """All validations so far, which every checkpoint keeps in its state, and what the rule makes of them.

    ``why``: in words, why it is the last checkpoint; ``measure``: the name of the utility.
    """

    def __init__(self, rule: Rule, why: str, measure: str, patience: int) -> None:
        self.rule = rule
        self.why = why
        self.measure = measure
        self.patience = patience
        self.seen: list[Validated] = []

    def state(self) -> dict[str, object]:
        """The validations, as JSON values."""
        return {"args": {}, "attributes": {"seen": [[v.step, v.utility, v.bias] for v in self.seen]}}

    def restore(self, state: Mapping[str, object]) -> None:
        """Continues from what :meth:`state` returned. Raises ValueError, TypeError or LookupError for anything else."""
        attributes = state["attributes"]
        if not isinstance(attributes, Mapping):
            raise TypeError("attributes: expected a table")
        self.seen = [Validated(int(step), float(value), float(bias)) for step, value, bias in attributes["seen"]]

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Tells a resumed trainer where the best checkpoint so far is: its folder may have moved."""
        best = state.best_global_step
        state.best_model_checkpoint = str(Path(args.output_dir or ".") / f"checkpoint-{best}") if best else None

    def note(self, step: int, utility: float, bias: float) -> None:
        """Takes in the validation of a step."""
        self.seen.append(Validated(step, utility, bias))

    @property
    def now(self) -> Validated | None:
        """What is chosen so far; None: the last, whichever that will be."""
        return chosen(self.seen, self.rule)

    @property
    def needed(self) -> set[int]:
        """The steps whose checkpoints must stay."""
        return needed(self.seen, self.rule)

    @property
    def is_over(self) -> bool:
        """Whether patience has ended the training."""
        return self.rule != "last" and stale(self.seen, self.rule) >= self.patience

    def choice(self, last: int) -> Choice:
        """What is chosen if ``last`` was the training's last step."""
        current, best = self.now, chosen(self.seen, "utility")
        step = last if current is None else current.step
        at = next((validation for validation in self.seen if validation.step == step), Validated(step, math.nan))
        highest = None if best is None else best.utility
        why = f"step {step} of {last}, {self._reason(at, best)}"
        return Choice(step, self.rule, _known(at.utility), _known(at.bias), highest, len(self.seen), why)

    def _reason(self, at: Validated, best: Validated | None) -> str:
        seen = counted(len(self.seen), "validation")
        if best is None or (self.now is None and self.rule != "last"):
            return self.why or "the last, as no validation before it has figures"
        highest = f"the best was {best.utility:.4f} after step {best.step}"
        if self.rule == "utility":
            return f"the best {self.measure} of {seen}: {best.utility:.4f}"
        if self.rule == "joint":
            if len(self.seen) == 1:
                return f"the only validation: |ΔA-PRF| {at.bias:.4f}, {self.measure} {at.utility:.4f}"
            enough = sum(keeps_enough(validation.utility, best.utility) for validation in self.seen)
            which = f"the least of {enough}" if enough > 1 else "the only one"
            return (
                f"|ΔA-PRF| {at.bias:.4f}, {which} of {seen} with at least {KEPT:.0%} of the best {self.measure}:"
                f" it has {at.utility:.4f}, {highest}"
            )
        value = f"it has {self.measure} {at.utility:.4f}, " if not math.isnan(at.utility) else f"of {self.measure}, "
        return f"{self.why}: {value}{highest}"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
