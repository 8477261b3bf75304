"""The tables of FA*IR: their loops, compiled, in memory proportional to the length of the list."""

# The compiler infers the types here; the docstrings describe those of the arguments.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank._jit import compiled

_NARROWEST = 1e-16
"""The width of the interval for α at which fairsearchcore stops."""
_NEARLY = 1 - 3.3e-16
"""What scipy, and so fairsearchcore, lets rounding take from a distribution: F(0; 1, 0.9) reaches α = 0.1."""


@compiled(inline="always")
def _minimum(p, alpha, table):
    """Fills ``table`` [k] with the least m with F(m; n, p) ≥ alpha for n = 1 … k; returns its sum.

    F(m; n + 1) = F(m; n) − p · f(m; n): distribution and probability at the quantile are carried from n to n + 1.
    """
    total, m = 0, 0
    below, at = 1.0, 1.0  # F(m; n, p) and f(m; n, p)
    for n in range(1, len(table) + 1):
        if alpha > 0 and p >= 1:
            m = n
        elif alpha > 0:
            below -= p * at
            at *= (1 - p) * (n / (n - m))
            below = at if m == 0 else below
            if below < alpha * _NEARLY and m < n:
                at *= (n - m) / (m + 1) * (p / (1 - p))
                m += 1
                below = 1.0 if m == n else below + at
        table[n - 1] = m
        total += m
    return total


@compiled(inline="always")
def _failing(p, table, chance):
    """The probability that a list of independent draws with ``p`` falls below ``table`` before its last place.

    ``chance`` is room for at least max(table) + 1 numbers. fairsearchcore leaves out the last place.
    """
    places = len(table) - 1
    most = table[places - 1] if places > 0 else 0
    if most <= 0:
        return 0.0
    chance[: most + 1] = 0
    chance[0] = 1
    low = 0
    for place in range(places):
        # Whoever has as many as will ever be needed has them for good.
        high = min(most, place + 1)
        if high == most:
            chance[most] += p * chance[most - 1]
            high -= 1
        for count in range(high, low, -1):
            chance[count] = (1 - p) * chance[count] + p * chance[count - 1]
        chance[low] *= 1 - p
        if table[place] > low:
            chance[low] = 0
            low = table[place]
        if low == most:
            break
    passed = chance[low : most + 1].sum()
    return 0.0 if passed == 0 else 1 - passed


@compiled(nogil=True)
def fill_tables(shares, starts, alpha, tables, adjusted, failing):
    """For each p in ``shares`` [U], the m-table in ``tables[starts[u] : starts[u + 1]]`` with α corrected.

    ``adjusted`` and ``failing`` [U] receive the corrected α, and the probability of failing the table by chance. The
    steps are those of fairsearchcore's bisection, which ends between two tables that differ by one document.
    """
    longest = 0
    for u in range(len(shares)):
        longest = max(longest, starts[u + 1] - starts[u])
    chance = np.empty(longest + 2)
    room = np.empty((3, longest), np.int64)
    for u in range(len(shares)):
        k = starts[u + 1] - starts[u]
        p = min(max(shares[u], 0.0), 1.0)
        least, middle, most = room[0, :k], room[1, :k], room[2, :k]
        low, high = 0.0, alpha
        low_sum, high_sum = _minimum(p, low, least), _minimum(p, high, most)
        low_fails, high_fails = _failing(p, least, chance), _failing(p, most, chance)
        between = (low + high) / 2
        sum_ = _minimum(p, between, middle)
        fails = _failing(p, middle, chance)
        chosen = 1
        while low_sum < high_sum and fails != alpha:
            if fails < alpha:
                low, low_sum, low_fails = between, sum_, fails
                least[:] = middle
            else:
                high, high_sum, high_fails = between, sum_, fails
                most[:] = middle
            between = (low + high) / 2
            sum_ = _minimum(p, between, middle)
            # A table never shrinks as α grows: equal sums are equal tables.
            if sum_ == low_sum:
                fails = low_fails
            elif sum_ == high_sum:
                fails = high_fails
            else:
                fails = _failing(p, middle, chance)
            from_low, from_high = abs(low_fails - alpha), abs(high_fails - alpha)
            if high_sum - low_sum == 1 or high - low <= _NARROWEST:
                chosen = 0 if from_low <= from_high else 2
                break
            if high_sum - sum_ == 1 and sum_ - low_sum == 1:
                from_middle = abs(fails - alpha)
                if from_middle > from_low or from_middle > from_high:
                    chosen = 0 if from_low <= from_high else 2
                break
        tables[starts[u] : starts[u + 1]] = room[chosen, :k]
        adjusted[u] = low if chosen == 0 else between if chosen == 1 else high
        failing[u] = low_fails if chosen == 0 else fails if chosen == 1 else high_fails
