"""The check of a lexicon against a slow, obvious one, by hand, and what it says to bad input."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from evenrank import EvenrankError, GroupTable, check_lexicon
from evenrank.auditing.lexicon_check import EXAMINED, Proportion, WordUse
from evenrank.groups import Lexicon, Tokens
from slow_groups import lexicon_of, slow_tokens

WORDS = {"she": "f", "queen": "f", "her majesty": "f", "he": "m", "king": "m", "unused": "m"}
LEXICON = lexicon_of(WORDS, poles=("m", "f"))


def labels_of(weights: dict[str, dict[str, float]], groups: str = "fm") -> GroupTable:
    """Labels as a group table: a document's weights by group."""
    columns = {f"count_{group}": [float(of.get(group, 0)) for of in weights.values()] for group in groups}
    table = pl.DataFrame({"doc_id": list(weights), **columns, "neutrality": [1.0] * len(weights)})
    return GroupTable.of(table, {"labels": "x", "threshold": 0})


def use(texts: list[str], word: str) -> WordUse:
    found = check_lexicon(LEXICON, collection={str(i): text for i, text in enumerate(texts)})
    return next(one for one in found.words if one.word == word)


def slow_matches(text: str, lexicon: Lexicon, tokens: Tokens) -> list[tuple[str, str]]:
    """Words and groups from left to right, the longest first."""
    entries = lexicon.entries(tokens)
    words, found = slow_tokens(text, tokens), []
    while words:
        length = next((n for n in (3, 2, 1) if tuple(words[:n]) in entries and len(words) >= n), 0)
        if length:
            found.append((" ".join(words[:length]), entries[tuple(words[:length])]))
        words = words[max(length, 1) :]
    return found


def slow_say(matches: list[tuple[str, str]]) -> str:
    counts = Counter(group for _, group in matches).most_common()
    if not counts:
        return "no word"
    return "tied" if len(counts) > 1 and counts[0][1] == counts[1][1] else counts[0][0]


PIECES = ["she", "She", "QUEEN", "queen-like", "her", "majesty", "Majesty", "he", "he's", "King", "said", ".", "\n"]
texts = st.lists(st.lists(st.sampled_from(PIECES), max_size=9).map(" ".join), min_size=1, max_size=8)
shares = st.sampled_from([{}, {"f": 1.0}, {"m": 1.0}, {"f": 0.5, "m": 0.5}, {"f": 0.3, "m": 0.2}, None])


@given(texts, st.lists(shares, min_size=8, max_size=8), st.sampled_from(["word", "whitespace"]), st.integers(0, 3))
def test_against_a_slow_version(documents: list[str], weights: list[Any], tokens: Tokens, threshold: int) -> None:
    known = {str(i): weight for i, weight in enumerate(weights[: len(documents)]) if weight is not None}
    labels = labels_of({**known, "elsewhere": {"f": 1}}) if known else None
    collection = {str(i): text for i, text in enumerate(documents)}
    found = check_lexicon(LEXICON, collection=collection, labels=labels, tokens=tokens, threshold=threshold)
    matches = [slow_matches(text, LEXICON, tokens) for text in documents]
    coverage = found.coverage
    assert coverage.documents == len(documents)
    assert coverage.covered == sum(bool(of) for of in matches)
    assert coverage.above == sum(len(of) > threshold for of in matches)
    for group in "fm":
        assert coverage.by_group[group] == sum(any(g == group for _, g in of) for of in matches)
        assert coverage.occurrences[group] == sum(g == group for of in matches for _, g in of)
    total = Counter(word for of in matches for word, _ in of)
    assert {one.word: one.occurrences for one in found.words if one.occurrences} == total
    assert [one.examined for one in found.words] == [one.occurrences for one in found.words]
    for one in found.words:
        assert one.documents == sum(any(word == one.word for word, _ in of) for of in matches)
        assert 0 <= one.doubt <= 1
    assert {*found.never("f"), *found.never("m")} == {" ".join(key) for key in LEXICON.entries(tokens)} - set(total)
    if labels is None:
        assert found.agreement is None
        return
    agreement, cells = found.agreement, Counter[tuple[str, str]]()
    for document, weight in known.items():
        most = max(weight.values(), default=0)
        largest = [group for group, of in weight.items() if of == most]
        label = "neutral" if not most else "several" if len(largest) > 1 else largest[0]
        cells[label, slow_say(matches[int(document)])] += 1
    assert agreement is not None
    assert (agreement.documents, agreement.unlabelled) == (len(known), len(documents) - len(known))
    assert agreement.absent == 1
    for group in "fm":
        said = sum(count for (_, column), count in cells.items() if column == group)
        labelled = sum(count for (row, _), count in cells.items() if row == group)
        assert agreement.groups[group] == {
            "precision": Proportion(cells[group, group], said),
            "recall": Proportion(cells[group, group], labelled),
        }


@given(st.integers(0, 40), st.integers(0, 40))
def test_intervals(part: int, rest: int) -> None:
    share = Proportion(part, part + rest)
    if not share.n:
        assert (share.value, share.ci95) == (None, None)
        return
    expected = binomtest(part, share.n).proportion_ci(method="wilson")
    assert share.ci95 == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert share.value == part / share.n


@pytest.mark.parametrize(
    ("text", "capitalised", "hyphenated", "in_name"),
    [
        ("They crowned the King yesterday.", 1.0, 0, 0),
        ("They went to Burger King Plaza yesterday.", 1.0, 0, 1),
        # The first word of a sentence, after a mark, a line or a quote; a capital before it is no name either.
        ("King of nothing.", None, 0, 0),
        # Headings and capitals throughout.
        ("The Life Of A King Of England", None, 0, 0),
        ("a king-size bed for them", 0.0, 1, 0),
        ("some king - they said", 0.0, 0, 0),
    ],
)
def test_spelling(text: str, capitalised: float | None, hyphenated: float, in_name: float) -> None:
    found = use([text], "king")
    assert (found.occurrences, found.examined) == (1, 1)
    assert (found.capitalised, found.hyphenated, found.in_name) == (capitalised, hyphenated, in_name)


def test_doubt() -> None:
    texts = ["They saw the king there"] * 3 + ["They saw Stephen King there"]
    king = use(texts, "king")
    assert (king.capitalised, king.in_name, king.doubt) == (0.25, 0.25, 0.25)

    def ambiguous(texts: list[str]) -> list[str]:
        found = check_lexicon(LEXICON, collection={str(i): text for i, text in enumerate(texts)})
        return [one.word for one in found.ambiguous()]

    # Four are too few to be listed.
    assert [ambiguous(given_) for given_ in (texts, texts * 2, texts[:3] * 3)] == [[], ["king"], []]


def test_the_first_occurrences_only() -> None:
    she = use(["She said she would"] * EXAMINED, "she")
    assert (she.occurrences, she.examined) == (2 * EXAMINED, EXAMINED)


def test_result(tmp_path: Path, snapshot: Any) -> None:
    texts = {"1": "She said she saw the queen", "2": "He saw it", "3": "nothing"}
    # No label says m, so that its recall is unknown. Names of groups may differ in case.
    labels = labels_of({"1": {"F": 1}, "2": {"F": 1}, "3": {}, "9": {}}, groups="FM")
    found = check_lexicon(LEXICON, collection=texts, labels=labels)
    assert found.table(full=True) == snapshot
    values = json.loads(found.to_json(tmp_path / "check.json"))
    interval = pytest.approx(Proportion(1, 2).ci95)
    assert values["coverage"]["groups"]["f"] == {"documents": 1, "share": 1 / 3, "occurrences": 3}
    assert values["labels"]["groups"]["f"]["recall"] == {"value": 0.5, "n": 2, "ci95": interval}
    assert values["never"] == {"f": ["her majesty"], "m": ["king", "unused"]}


def test_whitespace_leaves_phrases_out() -> None:
    found = check_lexicon(LEXICON, collection={"1": "her majesty, she"}, tokens="whitespace")
    assert "1 entry of several words is left out" in found.table(full=True)
    assert {one.word for one in found.words} == {"she", "queen", "he", "king", "unused"}


TEXTS = {f"d{i}": "she" for i in range(9)}


NO_ROWS = pl.DataFrame(schema={"doc_id": pl.String, "text": pl.String})
WORDS_COUNTED = GroupTable.of(labels_of({"d1": {"f": 1}}).table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"collection": NO_ROWS}, "`collection`: expected at least one row, found none"),
        ({"collection": iter([])}, "`collection`: expected documents, found none"),
        ({"labels": labels_of({"d1": {"x": 1}}, "xy")}, "`labels`: their groups are x, y, those of the lexicon f, m"),
        ({"labels": labels_of({"d1": {"f": 1}}, "fF")}, "`labels`: two of their groups have one name: f, F"),
        ({"labels": WORDS_COUNTED}, "`labels`: expected labels, found a group table of counted words"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvenrankError) as caught:
        check_lexicon(**{"lexicon": "gender-en", "collection": TEXTS, **options})
    assert str(caught.value).startswith(message)
