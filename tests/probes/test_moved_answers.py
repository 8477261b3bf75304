"""Sentences moved within passages: the texts."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files.sentences import sentence_spans
from evenrank.probes.sentence_moves import sentence_moves


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
