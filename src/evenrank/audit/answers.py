"""Answer positions as a table and a page."""

from __future__ import annotations

from evenrank.measures.answers import AnswerPositions

from .report._format import NONE, number
from .report.plain import PlainPage, PlainTable, histogram

_SOURCE = "Answer positions as in Hofstätter et al., ECIR 2021 (Fig. 1)"


def answers_page(found: AnswerPositions, name: str, *, annotated: bool = False) -> PlainPage:
    """The figures and histograms of answer positions; ``name`` says whose they are."""
    values = found.to_dict()
    uniform = values["uniform"]
    relative, absolute = values["relative"], values["absolute"]
    rows = (
        ("mean relative position", number(values["mean"], 4), number(uniform["mean"], 4)),
        ("share in the first third", number(values["first_third"], 4), number(uniform["first_third"], 4)),
        ("Kolmogorov–Smirnov distance to uniform", number(values["ks"], 4), number(0.0, 4)),
        ("mean position in words, from 0", number(values["mean_token"], 1), NONE),
        ("median position in words, from 0", number(values["median_token"], 1), NONE),
        ("mean length of the passage in words", number(values["mean_tokens"], 1), NONE),
    )
    figures = PlainTable("Where the answers stand", ("figure", "measured", "uniform"), rows)
    tenths = found.relative_histogram(10)
    shares = PlainTable(
        "By tenths of the passage",
        ("from", "to", "answers", "share"),
        tuple(
            (f"{row['low']:.1f}", f"{row['high']:.1f}", f"{row['count']:,}", f"{row['share']:.3f}") for row in tenths
        ),
        left=0,
    )
    drawings = (
        histogram(
            "Relative",
            "Where in its passage an answer begins (word / words of the passage)",
            relative,
            "relative position",
            "The line: every place as likely.",
            expected=1 / len(relative),
        ),
        histogram("Absolute", "The word that an answer begins in", absolute, "words before it"),
    )
    what = "annotated place" if annotated else "place where an answer's text stands in its passage"
    notes = (
        f"Every {what} counts, so a question with a passage may count several times.",
        "Words are separated by white space; the relative position is the number of words before the answer divided by"
        " those of the passage.",
        "Uniform: what the same passages would give if an answer could begin at each of their words alike.",
        f"Answers that stand nowhere in their passage: {values['unmatched']:,}, left out of every figure.",
    )
    facts = (
        ("answers in place", f"{values['matches']:,}"),
        ("pairs of question and passage", f"{values['pairs']:,}"),
        ("questions", f"{values['queries']:,}"),
        ("passages", f"{values['passages']:,}"),
        ("answers not found", f"{values['unmatched']:,}"),
    )
    return PlainPage(
        "position answers", f"Answer positions of {name}", _SOURCE, facts, (figures, shares), drawings, notes
    )
