"""Where a passage would rank if its variant stood in for it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenrank.probes.variant_figures import rank_shifts


def slow_place(score, others):
    """The mean rank over the orders of ties, and the chance of each rank from 1."""
    above, tied = sum(other > score for other in others), sum(other == score for other in others)
    ranks = range(above + 1, above + tied + 2)
    return sum(ranks) / len(ranks), {rank: 1 / len(ranks) for rank in ranks}


def slow_shifts(scores, query, replaced, k):
    rows = []
    for row, new in enumerate(replaced):
        others = [s for at, (s, q) in enumerate(zip(scores, query, strict=True)) if q == query[row] and at != row]
        if np.isnan(new):
            rows.append((np.nan, np.nan, np.nan))
            continue
        (rank, chances), (new_rank, new_chances) = slow_place(scores[row], others), slow_place(new, others)
        before, after = (sum(one for at, one in c.items() if at <= k) for c in (chances, new_chances))
        rows.append((rank - new_rank, max(after - before, 0), max(before - after, 0)))
    return np.array(rows).reshape(-1, 3).T


SCORES = st.sampled_from([-1.0, 0.0, 0.5, 0.75, 2.0])


@given(
    st.lists(st.tuples(SCORES, st.integers(-1, 2), st.one_of(SCORES, st.just(np.nan))), max_size=20),
    st.integers(1, 4),
)
def test_shifts_are_the_definition(rows, k):
    scores, query, replaced = np.array(rows).reshape(-1, 3).T
    found = rank_shifts(scores, query.astype(int), replaced, k)
    np.testing.assert_allclose(np.array(found), slow_shifts(scores, query, replaced, k), atol=1e-12)


def test_a_whole_list_up_and_down():
    scores = np.arange(30.0, 0, -1)
    replaced = np.full(30, np.nan)
    replaced[[29, 0]] = [99.0, -1.0]
    found = rank_shifts(scores, np.zeros(30, int), replaced)
    assert found.shifts[[29, 0]].tolist() == [29.0, -29.0]
    assert found.enters[[29, 0]].tolist() == [1.0, 0.0]
    assert found.leaves[[29, 0]].tolist() == [0.0, 1.0]
