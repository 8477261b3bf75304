"""How to read an audit: what each measure and each column says, and where the measures come from."""

from __future__ import annotations

import re
from typing import Any

from evenrank.audit.findings import Findings
from evenrank.measures import describe, is_bias

from ._format import direction, poles, positive

# Plain words; what the registry says of our own measures follows them.
_WORDS = {
    "RaB": "Which group's words the first ranks hold more of; 0 is balance.",
    "ARaB": "Which group's words the first ranks hold more of, the very first weighing most; 0 is balance.",
    "|ARaB|": "How far the first ranks lean to either group, over all queries together.",
    "AbsARaB": "How far the first ranks of a query lean, to either group.",
    "FaiRR": "How neutral the first ranks are, the very first weighing most.",
    "NFaiRR": "How neutral the first ranks are, against the most neutral order of the same candidates.",
    "APRF": "How often a relevant passage of the group beats a passage that is not relevant.",
    "DeltaAPRF": "Whether relevant passages of one group beat others more often than those of the other group do.",
    "|DeltaAPRF|": "How much more often relevant passages of one group beat others than those of the other group.",
    "nDCG": "How high relevant passages stand, graded ones first, against the best possible order (1).",
    "RR": "One over the rank of the first relevant passage.",
    "R": "The share of the relevant passages that the ranking holds down to the cutoff.",
    "AP": "Mean of the precision at the rank of each relevant passage.",
    "P": "The share of relevant passages down to the cutoff.",
    "ERR": "The expected reciprocal of the rank at which a reader who stops at a good passage is satisfied.",
    "Success": "1 where a relevant passage stands within the cutoff, else 0.",
}

_LITERATURE = {
    "RS20": "Rekabsaz and Schedl: Do Neural Ranking Models Intensify Gender Bias? SIGIR 2020.",
    "RKS21": "Rekabsaz, Kopeinik and Schedl: Societal Biases in Retrieved Contents. SIGIR 2021.",
    "BEU19": "Beutel et al.: Fairness in Recommendation Ranking through Pairwise Comparisons. KDD 2019.",
    "IBBR": "Li et al.: Debiasing Neural Retrieval via In-batch Balancing Regularization. 2022.",
}


def explained(result: Findings) -> list[dict[str, Any]]:
    """Each measure once (parameters side by side): its names, its kind and which way is good, what it measures."""
    entries: dict[str, dict[str, Any]] = {}
    for measure in result.measures:
        kind = f"{'bias' if is_bias(measure) else 'effectiveness'}, {direction(measure)}"
        text = _WORDS.get(measure.NAME, "")
        if is_bias(measure) or not text:
            text = f"{text} {_plain(describe(measure))}".strip()
        entry = entries.setdefault(measure.NAME, {"all": [], "kind": kind, "text": text})
        entry["all"].append(str(measure))
    return [{**entry, "names": ", ".join(entry["all"])} for entry in entries.values()]


def literature(result: Findings) -> list[tuple[str, str]]:
    """The sources that the measures' descriptions name."""
    text = " ".join(entry["text"] for entry in explained(result))
    return [(key, source) for key, source in _LITERATURE.items() if key in text]


def glossary(result: Findings) -> list[tuple[str, str]]:
    """The words of the page that are not measures."""
    sign = positive(poles(result))
    entries = [
        (
            "random, neutral-first",
            "Two reference rankings of the same candidates: the mean over all random orders, and the candidates by"
            " falling neutrality. A fair ranking that is no more effective than random is of no use.",
        ),
        (
            "Neutrality",
            "1 for a passage without group words (or with so few that they do not count) or with the groups at their"
            " target shares, 0 for one that speaks of the group with the smallest share alone.",
        ),
    ]
    if sign:
        entries.append(("Sign of a lean", f"{sign[0].upper()}{sign[1:]}."))
    entries.append(
        (
            "95% interval",
            "Percentile bootstrap over queries: how far the figure could move if the audit had drawn other queries.",
        )
    )
    if result.baseline is not None:
        entries.append(
            (
                "Significance and loss",
                "Significant means a Holm-corrected p below .05. A difference that is not significant is no proof that"
                " there is none: “no loss shown” is only said where the interval rules out a loss of more than 5%.",
            )
        )
    entries.append(
        (
            "Ties",
            "Documents with the same score have no order of their own. The tie mean is the mean over all their orders,"
            " the tie range the smallest and the largest value.",
        )
    )
    return entries


def _plain(text: str) -> str:
    """A description without the marks of reStructuredText and what follows its first directive."""
    return re.sub(r"``(.+?)``", r"\1", text.split(" .. ")[0])
