"""Sentences moved within passages: the texts, their rank and nDCG, and rankers that look at the place or do not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.files import Run
from evenrank.files.sentences import sentence_spans
from evenrank.measures import Evaluation, parse_measure
from evenrank.probes.sensitivity import ranks_and_values, sentence_moves


def sentences_of(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def answers(texts: dict[str, tuple[str, str]]) -> pl.DataFrame:
    """A query's passage and the answer in it."""
    rows = [(q, f"d{q}", text, text.index(a), text.index(a) + len(a)) for q, (text, a) in texts.items()]
    return pl.DataFrame(rows, ["query_id", "doc_id", "text", "answer_start", "answer_end"], orient="row")


def test_versions_of_passages() -> None:
    text = "Tea is old now. It came from China. We like it. Some do not at all."
    table = answers({"q": (text, "China"), "r": ("It is one. Not two.", "one"), "s": (text, "now. It came")})
    found = sentence_moves(table, 4)
    # The second has one other sentence; the third answer lies in two, beside which there are two.
    assert found.rows.tolist() == [0, 2]
    texts = found.texts["text"].to_list()

    def versions(row: int, side: str) -> list[str]:
        return [texts[n] if n >= 0 else text for n in getattr(found, side)[row] if n != -2]

    own, *others = "It came from China.", "Tea is old now.", "We like it.", "Some do not at all."
    places = [" ".join([*others[:place], own, *others[place:]]) for place in range(4)]
    assert versions(0, "answer") == places
    control = versions(0, "control")
    # First: "We like it." (or the last one, as near in words to the answer's four) before the answer, which stays
    # second; then nothing; then the two behind it in the other order.
    assert control[0].split(". ")[0] in ("We like it", "Some do not at all")
    assert control[1] == text
    assert control[2] == control[3] == "Tea is old now. It came from China. Some do not at all. We like it."
    for one in control:
        assert sentences_of(one)[1] == "It came from China."
        assert sorted(sentences_of(one)) == sorted(sentences_of(text))
    for one, stop in zip(versions(0, "answer"), found.ends[0], strict=True):
        assert one[:stop].endswith("China")
    together = versions(1, "answer")
    assert together == [text, "We like it. Tea is old now. It came from China. Some do not at all.",
                   "We like it. Some do not at all. Tea is old now. It came from China."]  # fmt: skip
    assert all(one[:stop].endswith("now. It came") for one, stop in zip(together, found.ends[1, :3], strict=True))
    assert all(one.startswith("Tea is old now. It came from China.") for one in versions(1, "control"))


def test_ties_between_controls_are_drawn() -> None:
    text = "One two. Three four. Five six. Seven eight. Nine ten."
    table = answers({str(number): (text, "One") for number in range(40)})
    last = [sentence_moves(table, 2, seed).control[:, 1].tolist() for seed in (0, 0, 1)]
    assert last[0] == last[1] != last[2]
    # Each of the three between the answer and the last.
    assert {len(set(one)) for one in last} == {3}


@given(st.lists(st.integers(1, 6), min_size=3, max_size=9), st.data())
def test_the_control_leaves_the_answer_where_it_is(lengths: list[int], data: st.DataObject) -> None:
    """Another sentence stands at each place, the rest in order; on the answer's side where there is one to move."""
    sentences = [" ".join([f"S{s}", *["word"] * (length - 1)]) + "." for s, length in enumerate(lengths)]
    own = data.draw(st.integers(0, len(lengths) - 1))
    text = " ".join(sentences)
    found = sentence_moves(answers({"q": (text, f"S{own}")}), len(lengths))
    for place, number in enumerate(found.control[0].tolist()):
        assert (number == -1) == (place == own) == (found.answer[0, place] == -1)
        if number == -1:
            continue
        moved_text = found.texts["text"][number]
        order = [int(sentence.split()[0].strip(".")[1:]) for sentence in sentences_of(moved_text)]
        control = order[place]
        assert order[own] == own
        assert control not in (own, place)
        rest = [n for n in order if n not in (own, control)]
        assert rest == sorted(rest)
        beside = [n for n in range(len(lengths)) if n not in (own, place) and (n < own) == (place < own)]
        pool = beside or [n for n in range(len(lengths)) if n not in (own, place)]
        assert control in pool
        far = {n: abs(lengths[n] - lengths[own]) for n in pool}
        assert far[control] == min(far.values())
        if beside:
            # As many words before the answer as there were.
            assert moved_text.split().index(sentences[own].split()[0]) == text.split().index(sentences[own].split()[0])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_rank_and_value_against_an_evaluation(seed: int) -> None:
    """Each version as a run of its own; the orders of equal scores are averaged."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(2, 15))
    rows = [("q", f"d{n}", float(rng.integers(0, 6))) for n in range(number)] + [("r", "d0", 1.0), ("r", "d1", 2.0)]
    table = pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row")
    judged = pl.DataFrame(
        [("q", f"d{n}", int(rng.integers(-1, 3))) for n in range(1, number)] + [("q", "d0", 2), ("r", "d0", 1)],
        ["query_id", "doc_id", "relevance"], orient="row",
    )  # fmt: skip
    scores = np.array([[0.5, 3.0, np.nan], [3.0, 2.0, 0.0]])
    own = pl.DataFrame({"query_id": ["q", "r"], "doc_id": ["d0", "d0"]})
    ranks, values = ranks_and_values(scores, own, Run.from_table(table), judged)
    assert np.isnan([ranks[0, 2], values[0, 2]]).all()
    assert ranks[1].tolist() == [1, 1.5, 2]
    assert values[1] == pytest.approx([1, (1 + 1 / np.log2(3)) / 2, 1 / np.log2(3)])
    others = np.array([score for query, doc, score in rows if query == "q" and doc != "d0"])
    for column in (0, 1):
        above, equal = int((others > scores[0, column]).sum()), int((others == scores[0, column]).sum())
        assert ranks[0, column] == 1 + above + equal / 2
        behind = []
        for place in range(above, above + equal + 1):
            order = Run.from_table(table).table.filter((pl.col("query_id") == "q") & (pl.col("doc_id") != "d0"))
            docs = order["doc_id"].to_list()
            docs.insert(place, "d0")
            run = Run.from_table(pl.DataFrame({"query_id": "q", "doc_id": docs, "score": -np.arange(len(docs)) * 1.0}))
            found = Evaluation(run, qrels=judged.filter(pl.col("query_id") == "q")).values(parse_measure("nDCG@10"))
            behind.append(float(found[0]))
        assert values[0, column] == pytest.approx(np.mean(behind))
