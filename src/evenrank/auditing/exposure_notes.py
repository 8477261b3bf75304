"""What an audit says of measures of exposure: the target that they compare with, and over how many rankings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ir_measures import Measure

from evenrank.groups import GroupTable
from evenrank.io import EvenrankError
from evenrank.io.wording import counted
from evenrank.measures import EED, Evaluation, Target, as_target, resolve


def load_target(target: object, groups: GroupTable | None, judged: bool) -> Target | None:
    """The target as it is given; None for equal shares.

    Raises EvenrankError for a target of groups that there are not, and for one that needs qrels which are not there.
    """
    if target is None:
        return None
    if groups is None:
        raise EvenrankError("`target` is of groups: it needs `collection`, `scores` or `labels`")
    if target == "relevant" and not judged:
        raise EvenrankError("`target='relevant'` needs `qrels`")
    return as_target(target, groups.groups)


def evaluated_settings(evaluation: Evaluation, measures: Iterable[Measure]) -> dict[str, object]:
    """The settings of measures that compare with a target; nothing without one."""
    if not any("target" in measure.SUPPORTED_PARAMS for measure in measures):
        return {}
    return {"target": "uniform" if evaluation.target is None else evaluation.target.described}


def exposure_notes(evaluations: Sequence[Evaluation], measures: Sequence[Measure]) -> list[str]:
    """Which target measures compare with, and how many rankings a run has."""
    notes = []
    comparing = [
        str(m)
        for m in measures
        if "target" in m.SUPPORTED_PARAMS and m.params.get("target") is None and m.NAME != EED.NAME
    ]
    if comparing:
        target = evaluations[0].target
        described = "equal shares of all groups" if target is None else target.described
        notes.append(f"Target of {', '.join(comparing)}: {described}.")
    over = [str(measure) for measure in measures if resolve(measure).of_rankings]
    for evaluation in evaluations:
        if not evaluation.rankings:
            continue
        if not over:
            notes.append(f"{evaluation.run.name}: no measure looks at more than one ranking; EED, EER and EEL would.")
            continue
        count = counted(len(evaluation.rankings) + 1, "ranking")
        notes.append(
            f"{evaluation.run.name}: {', '.join(over)} over {count}; all other measures look at the first alone."
        )
    return notes
