"""Which words drive the figures: by hand, against the obvious loop, and where there are no texts."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenrank
import page_parts
import slow
from evenrank.auditing import AuditResult, page_data
from evenrank.auditing.audit_page import render_page
from evenrank.groups import Lexicon
from small_audits import collection, run

LEXICON = Lexicon(
    "own", ("f", "m"), (("she", "f"), ("first lady", "f"), ("king", "m"), ("he", "m")), (0.5, 0.5), ("m", "f")
)
TEXTS = {
    "a": "A king-size bed for a king.",
    "b": "He met the first  lady, she says; he did!",
    "c": "The sea.",
    "d": "She, she and she: he.",
}
COUNT = "ARaB(magnitude='count')@2"


def audit(lists: dict[str, list[str]], texts: dict[str, str] = TEXTS, **options: Any) -> AuditResult:
    given = {"lexicon": LEXICON, "measures": f"{COUNT} ARaB@2 ARaB(magnitude='bool')@2 NFaiRR@2", **options}
    return evenrank.audit({"mine": run(lists)}, collection=collection(texts), **given)


def words_of(result: AuditResult, name: str = "mine") -> dict[str, Any]:
    return {word.word: word for of_group in result.words.runs[name].values() for word in of_group}


def test_by_hand() -> None:
    # Two ranks: the first weighs (1 + 1/2) / 2 = 3/4, the second 1/4. Of two queries: a, b and b, c.
    result = audit({"0": ["a", "b", "d"], "1": ["b", "c"]})
    found = words_of(result)
    weight = {"a": 0.75 / 2, "b": (0.25 + 0.75) / 2}
    assert found["king"].occurrences == 2
    assert found["king"].contribution == pytest.approx(2 * weight["a"])
    assert found["he"].occurrences == 4
    assert found["he"].contribution == pytest.approx(2 * weight["b"])
    assert found["first lady"].contribution == pytest.approx(-weight["b"])
    assert found["she"].contribution == pytest.approx(-weight["b"])
    # d stands too deep, but is a document of the run: 2 king, 3 he; 1 first lady, 4 she.
    assert (found["king"].share_of_documents, found["she"].share_of_documents) == (2 / 5, 4 / 5)
    assert found["king"].share == pytest.approx(2 * weight["a"] / (2 * weight["a"] + 2 * weight["b"]))
    assert (found["she"].share, found["first lady"].share) == (0.5, 0.5)
    assert [word.word for word in result.words.runs["mine"]["m"]] == ["he", "king"]
    assert (result.words.measure, result.words.depth, result.words.documents) == (COUNT, 2, 4)
    figures = result["mine"].measures
    assert sum(word.contribution for word in found.values()) == pytest.approx(figures[COUNT].mean, abs=1e-12)


WORDS = ("king", "he", "she", "they", "them", "sea", "stone")
THREE = Lexicon(
    "three", ("f", "m", "x"), (("king", "m"), ("he", "m"), ("she", "f"), ("they", "x"), ("them", "x")), (0.3, 0.3, 0.4),
    ("x", "rest"),
)  # fmt: skip


@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=8), min_size=4, max_size=8),
    seed=st.integers(0, 2**16),
    tokens=st.sampled_from(["word", "whitespace"]),
    missing=st.sampled_from(["skip", "neutral"]),
    k=st.integers(1, 4),
)
@settings(max_examples=25)
def test_against_the_obvious_loop(texts: list[list[str]], seed: int, tokens: Any, missing: Any, k: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"d{i}" for i in range(len(texts))]
    of = dict(zip(names, texts, strict=True))
    # The last document of all has no text.
    lists = {str(q): rng.permutation([*names, "lost"])[: rng.integers(2, 6)].tolist() for q in range(3)}
    given_texts = {name: " ".join(words) for name, words in of.items()}
    result = audit(
        lists,
        given_texts,
        lexicon=THREE,
        tokens=tokens,
        missing=missing,
        missing_limit=1,
        measures=f"ARaB(magnitude='count')@{k}",
    )
    group = dict(THREE.words)
    sign = {"x": 1.0, "f": -0.5, "m": -0.5}
    used = {doc for docs in lists.values() for doc in docs if doc in of}
    for name in ("mine", "random", "neutral-first"):
        found = words_of(result, name)
        figure = result[name].measures[f"ARaB(magnitude='count')@{k}"].mean
        assert sum(word.contribution for word in found.values()) == pytest.approx(figure, abs=1e-9)
    for word, of_group in group.items():
        per_query, occurrences, mean = [], 0, 0.0
        for docs in lists.values():
            kept = docs if missing == "neutral" else [doc for doc in docs if doc in of]
            counts = [of.get(doc, []).count(word) for doc in kept]
            per_query.append(slow.arab(list(map(float, counts)), k))
            occurrences += sum(counts[:k])
            mean += sum(counts) / len(counts) * min(k, len(counts))
        found = words_of(result).get(word)
        if not occurrences:
            assert found is None
            continue
        assert found.occurrences == occurrences
        assert found.contribution == pytest.approx(sign[of_group] * sum(per_query) / len(per_query), abs=1e-12)
        total = sum(of[doc].count(other) for doc in used for other, g in group.items() if g == of_group)
        assert found.share_of_documents == pytest.approx(sum(of[doc].count(word) for doc in used) / total)
        assert words_of(result, "random")[word].occurrences == pytest.approx(mean)


def test_without_poles_words_have_shares_but_no_contribution() -> None:
    words = (("king", "old"), ("she", "young"), ("it", "none"))
    lexicon = Lexicon("ages", ("old", "young", "none"), words, (1 / 3, 1 / 3, 1 / 3), None)
    result = audit({"0": ["a", "d"]}, lexicon=lexicon, measures="NFaiRR@2")
    found = words_of(result)
    assert found["king"].contribution is None
    assert (found["king"].share, found["she"].share) == (1, 1)


# --- what people see -------------------------------------------------------------------------------------------------


def test_json_and_page(snapshot: Any) -> None:
    lexicon = Lexicon("own", ("f", "m"), (("she", "f"), ("<b>", "f"), ("he", "m")), (0.5, 0.5), ("m", "f"))
    lists = {"0": ["a", "b", "d"], "1": ["b", "c"]}
    result = audit(lists, {**TEXTS, "b": "<b> he"}, lexicon=lexicon, tokens="whitespace")
    words = json.loads(result.to_json())["words"]
    assert [list(words), list(words["runs"]), list(words["runs"]["mine"]["f"][0])] == snapshot
    section = page_parts.section(render_page(result), "words")
    assert re.search(r'<th [^>]*data-word="\d+" data-run="0">&lt;b&gt;</th>', section)
    assert "<b>" not in re.sub("<b>(Share|Share of documents|Contribution)</b>", "", section)
    # A click leads to the passages: the browser knows which words its documents hold.
    shown = page_data.browser(result, np.arange(2))
    held = {doc["id"]: [shown["words"][number] for number in doc["words"]] for doc in shown["documents"]}
    assert held == {"a": [], "b": ["<b>", "he"], "c": [], "d": ["she"]}
