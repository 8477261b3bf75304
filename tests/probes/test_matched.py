"""Which pairs are alike in length and in overlap with the query."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.groups.tokens import tokenize
from evenrank.probes.content_words import content_words
from evenrank.probes.matched import lengths, matched, overlaps

WORDS = st.lists(
    st.sampled_from(
        [
            "the",
            "Tower",
            "tower's",
            "old",
            "of",
            "Paris",
            "x,z",
            "don’t",
            "tower’s",
            "they'll've",
            "'s",
            "Été",
            "2nd",
            "a_b",
        ]
    ),
    max_size=6,
).map(" ".join)


@given(st.lists(WORDS, min_size=1, max_size=4), st.lists(WORDS, min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_overlap_is_the_definition(queries, texts):
    query, text = (side.ravel() for side in np.indices((len(queries), len(texts))))
    found = overlaps(queries, texts, query, text)
    for q, t, share in zip(query, text, found, strict=True):
        wanted = content_words(queries[q])
        if not wanted:
            assert np.isnan(share)
        else:
            assert share == len([word for word in wanted if word in tokenize(texts[t])]) / len(wanted)
    assert lengths(texts).tolist() == [len(tokenize(one)) for one in texts]
    assert len(overlaps(queries, texts, query[:0], text[:0])) == 0


def test_within_a_tenth_of_the_larger():
    mask = matched(
        np.array([100, 100, 9, 10, 100, 100, 100, 0]),
        np.array([110, 112, 10, 9, 100, 100, 100, 0]),
        np.array([0.5, 0.5, 0.9, 1.0, 0.5, np.nan, np.nan, 0.0]),
        np.array([0.5, 0.5, 1.0, 0.9, 0.4, np.nan, 0.5, 0.0]),
    )
    assert mask.tolist() == [True, False, True, True, False, True, False, True]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.floats(0, 1), st.floats(0, 1)), max_size=20))
@settings(max_examples=50, deadline=None)
def test_the_versions_may_be_exchanged(rows):
    first, second, one, other = np.array(rows).reshape(-1, 4).T
    np.testing.assert_array_equal(matched(first, second, one, other), matched(second, first, other, one))
