"""How to read an audit: what each measure and each term means, and the literature."""

from __future__ import annotations

import re
from typing import TypedDict

from evenrank.measures import describe, is_bias, resolve
from evenrank.reports.citations import CITATIONS
from evenrank.reports.format import NONE

from .findings import RELEVANCE_FIRST, Findings
from .phrases import direction, labelled, poles, positive, signed_measures
from .unknown_labels import only_bounds


class MeasureExplanation(TypedDict):
    """``names`` of the variants, ``kind`` (bias or effectiveness, and which values are better) and ``text``."""

    names: str
    kind: str
    text: str


def explanations(result: Findings) -> list[MeasureExplanation]:
    """An explanation of each measure; variants that differ only in parameters share one."""
    entries: dict[str, MeasureExplanation] = {}
    for measure in result.measures:
        if measure.NAME in entries:
            entries[measure.NAME]["names"] += f", {measure}"
            continue
        kind = f"{'bias' if is_bias(measure) else 'effectiveness'}, {direction(measure)}"
        text = resolve(measure).meaning
        if is_bias(measure) or not text:
            text = f"{text} {_plain(describe(measure))}".strip()
        entries[measure.NAME] = {"names": str(measure), "kind": kind, "text": text}
    return list(entries.values())


def literature(result: Findings) -> list[tuple[str, str]]:
    """The publications that the measures' descriptions cite, by key."""
    text = " ".join(entry["text"] for entry in explanations(result))
    return [(key, f"{citation.text}.") for key, citation in CITATIONS.items() if key in text]


def glossary(result: Findings) -> list[tuple[str, str]]:
    """The terms of the page that are not measures."""
    sign = positive(poles(result))
    entries = [
        _references(result),
        ("Neutrality", _NEUTRALITY_OF_LABELS if labelled(result) else _NEUTRALITY),
        *_of_labels(result),
        *_of_origins(result),
    ]
    if sign:
        entries.append(("Sign of a lean", f"{sign[0].upper()}{sign[1:]}."))
    entries.append(
        (
            "95% interval",
            "Percentile bootstrap over queries: how much the figure could vary with another sample of queries.",
        )
    )
    if result.baseline is not None:
        entries.append(
            (
                "Significance and loss",
                "Significant means a Holm-corrected p below .05. A difference that is not significant may still exist:"
                " “no loss shown” appears only if the interval rules out a loss of more than 5%.",
            )
        )
        signed = signed_measures(result)
        if signed and not only_bounds(result):
            entries.append(
                (
                    "b/e/w and p of signed measures",
                    f"For {' and '.join(signed)}, the difference, its interval and its p-values keep the sign, whereas"
                    " a query counts as better (b) if its value is nearer to 0 than the baseline's. So a run can be"
                    " better on most queries without a significant difference, and the reverse.",
                )
            )
    entries.append(
        (
            "Ties",
            "Documents with the same score have no natural order. The tie mean is the mean over all their orders, the"
            " tie range the smallest and largest value.",
        )
    )
    return entries


def _references(result: Findings) -> tuple[str, str]:
    """The term for the reference rankings, and what they are."""
    useless = "A fair ranking that is no more effective than random is useless."
    if not any(run.name == RELEVANCE_FIRST for run in result.runs):
        return (
            "random, neutral-first",
            "Two reference rankings of the same candidates: the mean over all random orders, and the candidates sorted"
            f" by neutrality. {useless}",
        )
    return (
        "random, neutral-first, relevance-first",
        "Three reference rankings of the same candidates: the mean over all random orders, the candidates sorted by"
        " neutrality, and the candidates sorted by relevance, which is what a perfect ranking would show (documents of"
        f" one grade in random order, unjudged ones as irrelevant). {useless}",
    )


def _of_origins(result: Findings) -> list[tuple[str, str]]:
    """The terms of the section on where the bias comes from."""
    figures = [figure for run in result.given for figure in run.figures.values()]
    entries = []
    if any(figure.added is not None for figure in figures):
        entries.append(
            (
                "Order adds",
                "The run's figure minus that of its own candidates in random order, query by query. The rest is in the"
                " candidates already: no order of them is to blame for it.",
            )
        )
    if any(figure.beyond_relevance is not None for figure in figures):
        entries.append(
            (
                "Beyond relevance",
                "The run's figure minus that of its own candidates sorted by relevance, query by query. 0 if the run"
                " shows what a perfect ranking would show; a random order has minus what a perfect ranking adds.",
            )
        )
    return entries


_NEUTRALITY = (
    "1 for a passage that has no group words (or too few to count) or mentions the groups in their target shares, 0 for"
    " one that mentions only the group with the smallest target share."
)
_NEUTRALITY_OF_LABELS = (
    "1 for a document whose label is of no group, or whose weights are the same for all groups; 0 for one of a single"
    " group."
)


def _of_labels(result: Findings) -> list[tuple[str, str]]:
    """The terms of an audit whose groups are from labels, and the target of measures that compare with one."""
    entries = []
    if labelled(result):
        entries.append(
            (
                "Known",
                "The share of the documents that a figure looks at which have a label. A document without one is"
                " unknown: neither of a group nor of none.",
            )
        )
    if only_bounds(result):
        entries.append(
            (
                "Bounds",
                "The smallest and largest value that the figure could have, over every way to label the unknown"
                f" documents. They hold for whatever reason labels are missing. “{NONE}” where they are not known"
                " exactly.",
            )
        )
    if "target" in result.settings:
        target = str(result.settings["target"])
        described = "equal shares for all groups" if target == "uniform" else target
        entries.append(("Target", f"The shares of exposure that the groups should have: {described}."))
    return entries


def _plain(text: str) -> str:
    """A description without reStructuredText markup, up to its first directive."""
    return re.sub(r"``(.+?)``", r"\1", text.split(" .. ")[0])
