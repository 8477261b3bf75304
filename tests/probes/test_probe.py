"""The probe against its definition, on small random lists; and cases worked by hand."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import evenrank
from evenrank import SyntheticConfig, generate
from evenrank.probes.probe_result import ProbeResult
from evenrank.probes.probing import text_lengths
from evenrank.results.finding import Finding
from evenrank.search.analysis import Analyzer
from evenrank.search.bm25 import BM25Scorer, Index
from evenrank.stats.estimate import Estimate
from slow_probe import MEN, WOMEN, slow_probe

SWAPPED = {"he": "she", "his": "her", "she": "he", "her": "his"}
WORDS = [*SWAPPED, "tea", "milk", "old", "new", "sea", "hill"]


def score_of(query: str, text: str) -> float:
    """Few values, so that many are tied; every word of the text and its order matter."""
    number = sum((i % 3 + 1) * len(word) * (7 if word in query else 1) for i, word in enumerate(text.split()))
    return (number + 3 * (text.split()[0] in MEN)) % 7 / 2


def model(query: str, passages: list[str]) -> list[float]:
    return [score_of(query, passage) for passage in passages]


@dataclass
class Case:
    lists: dict[str, list[str]]
    queries: dict[str, str]
    texts: dict[str, str]
    swap: dict[str, str]
    placebo: dict[str, str]
    grades: dict[str, dict[str, int]]

    @classmethod
    def drawn(cls, seed: int) -> Case:
        draw = random.Random(seed)
        docs = [f"d{i}" for i in range(draw.randint(14, 20))]
        texts = {doc: " ".join(draw.choices(WORDS, k=draw.randint(2, 8))) for doc in docs}
        swap = {doc: " ".join(SWAPPED.get(word, word) for word in text.split()) for doc, text in texts.items()}
        for doc in draw.sample(docs, 3):
            swap[doc] += " his" if draw.random() < 0.5 else " tea"
        placebo = {doc: text.replace("tea", "milk") for doc, text in texts.items()}
        queries = {f"q{i}": " ".join(draw.sample(WORDS[2:], 2)) for i in range(4)}
        lists = {query: draw.sample(docs, draw.randint(1, 13)) for query in queries}
        grades = {query: {doc: draw.randint(0, 2) for doc in draw.sample(of, len(of) // 2)}
                  for query, of in lists.items()}  # fmt: skip
        return cls(lists, queries, texts, swap, placebo, {q: of for q, of in grades.items() if of})

    def can_be_probed(self, variant: dict[str, str]) -> bool:
        """Whether a query's scores vary, and a text of the list is changed."""
        scores = [{score_of(self.queries[q], self.texts[d]) for d in docs} for q, docs in self.lists.items()]
        changed = any(variant[doc] != self.texts[doc] for docs in self.lists.values() for doc in docs)
        return changed and any(len(found) > 1 for found in scores)

    def probe(self, name: str, variant: dict[str, str]) -> ProbeResult:
        run = {query: {doc: float(-i) for i, doc in enumerate(docs)} for query, docs in self.lists.items()}
        return evenrank.probe(
            model, variants={name: variant}, placebos={name: self.placebo}, collection=self.texts,
            queries=self.queries, run=run, qrels=self.grades or None, lexicon=LEXICON,
        )  # fmt: skip


LEXICON = evenrank.Lexicon(
    "two", ("m", "f"), (*((word, "m") for word in sorted(MEN)), *((word, "f") for word in sorted(WOMEN))),
    (0.5, 0.5), ("m", "f"),
)  # fmt: skip


def same(found: Estimate, wanted: tuple[float | None, int]) -> None:
    mean, n = wanted
    assert found.n == n
    assert found.mean == (None if mean is None else pytest.approx(mean, abs=1e-9))


@given(st.integers(0, 10**6), st.sampled_from(["swap", "mine"]))
def test_a_variant_with_a_placebo_as_its_definition_says(seed: int, name: str) -> None:
    case = Case.drawn(seed)
    draw = random.Random(seed)
    mine = {doc: draw.choice([text, f"tea {text}"]) for doc, text in case.texts.items()}
    texts = case.swap if name == "swap" else mine
    assume(case.can_be_probed(texts))
    wanted = slow_probe(score_of, case.lists, case.queries, case.texts, lambda q, d: texts[d],
                        lambda q, d: case.placebo[d], oriented=name == "swap")  # fmt: skip
    one = case.probe(name, texts)[name]
    same(one.means.effect, wanted.mean("effect"))
    same(one.means.placebo, wanted.mean("placebo"))
    same(one.shift, wanted.mean("shift"))
    assert one.means.beyond_placebo == bool(wanted.placebo)
    assert one.finding.n == one.counts.compared == len(wanted.effect)
    counts = one.counts.placebo, one.counts.still, one.counts.unoriented
    assert counts == (len(wanted.placebo), wanted.still, wanted.unoriented)
    for share, of in ((one.enters, wanted.enters), (one.leaves, wanted.leaves)):
        assert share == (pytest.approx(of.mean, abs=1e-9) if of.values else None)


# --- worked by hand ---------------------------------------------------------------------------------------------------

TEXTS = {"a": "he wrote", "b": "she wrote", "c": "tea", "d": "milk"}
SCORES = {"he wrote": 3.0, "she wrote": 1.0, "tea": 2.0, "milk": 2.0, "he typed": 3.5, "she typed": 1.5}
SWAP = {"a": "she wrote", "b": "he wrote", "c": "tea", "d": "milk"}
PLACEBO = {"a": "he typed", "b": "she typed", "c": "tea", "d": "milk"}
RUN = {query: dict.fromkeys(TEXTS, 1.0) for query in ("q", "r")}


def by_table(query: str, passages: list[str]) -> list[float]:
    return [SCORES[passage] for passage in passages]


def by_hand(**options: object) -> ProbeResult:
    given = {"run": RUN, "collection": TEXTS, "queries": {"q": "who", "r": "where"}, "placebos": {"swap": PLACEBO}}
    return evenrank.probe(by_table, variants={"swap": SWAP}, **{**given, **options})  # type: ignore[arg-type]


def test_a_case_worked_by_hand() -> None:
    """Scores 3, 1, 2, 2: sd √½. The swap of a loses 2, that of b gains 2: towards men both are +2/√½ = 2√2; the placebo
    adds ½ to each, towards men −½/√½ for a and +½/√½ for b, so that its mean is 0."""
    one = by_hand()["swap"]
    root = math.sqrt(2)
    assert (one.poles, one.means.effect.mean) == (("m", "f"), pytest.approx(2 * root))
    assert one.means.placebo.mean == pytest.approx(0)
    # Two queries and two passages show nothing.
    why = "only 2 queries differ from 0, where 15 are needed"
    assert (one.finding.verdict, one.finding.reason) == ("cannot be told", why)
    # Of one score there is no error, so the placebo's damage counts: κ is 0.
    assert one.finding.mean == pytest.approx(2 * root)
    assert one.means.swap.direction == pytest.approx((2 * root, -2 * root))
    assert one.means.swap.placebo == pytest.approx((root / 2, root / 2))
    # a falls from the first place to share the last two with b; b rises from the last to share the first two.
    assert one.shift.mean == pytest.approx(2.5)
    counts = one.counts
    assert (counts.pairs, counts.changed, counts.unchanged, counts.compared) == (8, 4, 4, 4)
    assert (counts.queries, counts.passages, counts.placebo) == (2, 2, 4)
    # Effects are not oriented without a lexicon.
    found = by_hand(lexicon=None)
    one = found["swap"]
    assert (one.poles, one.means.effect.mean) == (None, pytest.approx(0))
    assert "swap: not oriented, as no lexicon was given; above 0 is a preference for the variant" in found.notes


def test_the_replaced_run_is_audited() -> None:
    judged = {"q": {"a": 1}, "r": {"a": 1}}
    found = by_hand(qrels=judged)
    # a is the first of its list, and the last of the replaced one, behind three.
    assert found.original["nDCG@10"].mean == pytest.approx(1)
    assert found["swap"].replaced["nDCG@10"].mean == pytest.approx(1 / math.log2(5))
    for texts, figures in ((TEXTS, found.original), (SWAP, found["swap"].replaced)):
        run = {query: {doc: SCORES[text] for doc, text in texts.items()} for query in RUN}
        audited = evenrank.audit({"run": run}, collection=texts, qrels=judged, lexicon="gender-en")
        for measure in ("nDCG@10", "NFaiRR@10", "ARaB@10"):
            wanted = audited.runs[0][measure]
            assert (figures[measure].mean, figures[measure].ci95) == (wanted.mean, wanted.ci95)


def test_every_text_and_pair_is_scored_once() -> None:
    asked: Counter[tuple[str, str]] = Counter()

    def counting(query: str, passages: list[str]) -> list[float]:
        asked.update((query, passage) for passage in passages)
        return [SCORES[passage] for passage in passages]

    both = {"swap": SWAP, "again": SWAP}
    found = evenrank.probe(
        counting, variants=both, placebos={"swap": PLACEBO, "again": PLACEBO}, run=RUN, collection=TEXTS,
        queries={"q": "who", "r": "who"}, qrels={"q": {"a": 1}},
    )  # fmt: skip
    assert set(asked.values()) == {1}
    assert set(asked) == {("who", text) for text in SCORES if text in {*TEXTS.values(), *PLACEBO.values()}}
    assert found["again"].poles is None


def test_lengths_are_words_and_pieces() -> None:
    texts = pl.Series(["the old  house", "", "sea"])
    assert text_lengths(texts, None).tolist() == [[3, 14], [0, 0], [1, 3]]
    # Without stop words, as BM25 reads them.
    assert text_lengths(texts, BM25Scorer({"d": "sea"})).tolist() == [[3, 2], [0, 0], [1, 1]]


def test_bm25_prefers_no_wording() -> None:
    """Whose queries name what their passages are about: a placebo that took these names away made a preference."""
    made = generate(SyntheticConfig(passages=400, queries=40, male_share=0.8))
    queries = made.queries.select("query_id", "text")
    run = Index.build(made.collection, Analyzer("english", "english")).search(queries, 100)
    variant = evenrank.probe("bm25", variants=["neutral"], queries=queries, collection=made.collection, run=run)[
        "neutral"
    ]
    assert variant.means.placebo.mean == pytest.approx(0, abs=0.01)
    assert variant.finding.verdict == "no difference shown"


# --- a collection four fifths of whose gendered passages are male-worded ----------------------------------------------

MALE = {"he", "his", "him", "himself", "man", "father", "brother", "son", "husband", "boy", "king", "uncle"}


@pytest.fixture(scope="module")
def probed() -> Callable[[str], Finding]:
    made = evenrank.generate(evenrank.SyntheticConfig(passages=400, queries=40, male_share=0.8))
    run = evenrank.retrieve(made.collection, made.queries, k=20, quiet=True)
    bm25 = BM25Scorer(made.collection)

    def planted(query: str, passages: list[str]) -> list[float]:
        scores = bm25.score([query] * len(passages), passages)
        male = [not MALE.isdisjoint(re.findall(r"\w+", text.lower())) for text in passages]
        return [float(score) + 0.5 * own for score, own in zip(scores, male, strict=True)]

    models = {"bm25": bm25, "male": planted, "short": lambda _, passages: [-float(len(text)) for text in passages]}
    given = {"collection": made.collection, "queries": made.queries, "run": run, "depth": 20}

    def said(name: str) -> Finding:
        found = evenrank.probe(models[name], variants="swap", **given)
        return next(one for one in found.findings if one.place == "answer")

    return said


def test_a_preference_is_found_where_one_is_planted(probed: Callable[[str], Finding]) -> None:
    """Whose wording most passages have, and what the placebo does to them, is none of the ranker's doing."""
    found = probed("bm25")
    assert (found.key, found.subject, found.level) == ("unchanged", "swap", "no difference shown")
    assert found.estimate.n == 385
    # A taste for short texts is no preference either, and a planted one is found.
    assert (probed("short").key, probed("short").level) == ("no_preference", "no difference shown")
    found = probed("male")
    assert (found.key, found.level) == ("prefers", "shown")
    assert " prefers the male wording: +." in found.text
