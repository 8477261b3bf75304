"""Seeds that share test queries, and why a line was missed, on figures made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evenrank.measures.inference import crossed_figures, mixed_test
from evenrank.papers import ibbr_paper
from evenrank.papers.ibbr_paper import COLUMNS, Figures
from evenrank.papers.paper_page import Claim, Verdict

RNG = np.random.default_rng(5)


def figures(
    values: dict[str, list[np.ndarray]], queries: list[list[str]], parts: dict[str, list[np.ndarray]] | None = None
) -> Figures:
    """MRR of each row and seed; ``parts``: PRF of both groups."""
    parts = parts or {}

    def audit(seed: int) -> Any:
        rows = {}
        for name, each in values.items():
            found = {COLUMNS["mrr"]: SimpleNamespace(mean=each[seed].mean(), values=each[seed], n=len(each[seed]))}
            if name in parts:
                means = np.nanmean(parts[name][seed], axis=0)
                found["DeltaAPRF"] = SimpleNamespace(mean=means[0] - means[1])
                found["|DeltaAPRF|"] = SimpleNamespace(mean=abs(means[0] - means[1]))
            rows[name] = SimpleNamespace(figures=found)

        class Audit:
            runs = tuple(SimpleNamespace(name=name) for name in values)

            def __getitem__(self, name: str) -> Any:
                return rows[name]

        made = Audit()
        made.queries = queries[seed]  # type: ignore[attr-defined]
        return made

    found = Figures([audit(seed) for seed in range(len(queries))], same_queries=True)
    found.parts = [{name: {"delta_aprf_signed": each[s]} for name, each in parts.items()} for s in range(len(queries))]
    return found


def test_seeds_that_share_queries_are_no_new_evidence() -> None:
    """Ten seeds that agree exactly: over seeds the interval would have no width."""
    hard = RNG.normal(0.0, 0.3, 126)
    one, none = 0.5 + hard, np.full(126, 0.45)
    found = figures({"TS best": [one] * 10, "none": [none] * 10}, [[f"q{i}" for i in range(126)]] * 10)
    value = found.difference("TS best", "none", "mrr")
    alone = mixed_test([one - none])
    assert value.ci95 == pytest.approx(alone.interval(), rel=0.02)
    assert (value.n, value.unit) == (126, "queries")
    found.same_queries = False
    over_seeds = found.difference("TS best", "none", "mrr")
    assert over_seeds.ci95 is not None
    assert over_seeds.ci95[1] - over_seeds.ci95[0] < 1e-9


def test_queries_are_paired_by_their_ids_where_draws_overlap() -> None:
    """A seed's queries in another order, and some of its own."""
    names = [["a", "b", "c", "d"], ["d", "c", "b", "e"]]
    values = [np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.5, 3.5, 2.5, 9.0])]
    zero = [np.zeros(4)] * 2
    found = figures({"x": values, "y": zero}, names)
    nan = np.nan
    expected = mixed_test([np.array([1, 2, 3, 4, nan]), np.array([nan, 2.5, 3.5, 4.5, 9])], same_queries=True)
    assert found.test("x", "y", "mrr") == expected
    assert found.test("x", "y", "mrr") != mixed_test(values, same_queries=True)
    # The level of a row has the same form.
    assert found.row("x", ["mrr"])["mrr"].mean == pytest.approx(np.mean([one.mean() for one in values]))


def test_the_gap_of_shared_queries_has_their_error() -> None:
    """ΔA-PRF by draws of the queries, beside the textbook error of a difference of two means."""
    queries, seeds = 200, 4
    prf = RNG.uniform(0.2, 1.0, (queries, 2))
    prf[: queries // 2, 0] = np.nan
    prf[queries // 2 :, 1] = np.nan
    names = [[f"q{i}" for i in range(queries)]] * seeds
    same = {"none": [prf] * seeds, "shift": [prf * 0.5] * seeds}
    found = figures({name: [np.ones(queries)] * seeds for name in same}, names, same)
    value = found.row("none", ["delta_aprf_signed"])["delta_aprf_signed"]
    known = [prf[queries // 2 :, 0], prf[: queries // 2, 1]]
    error = np.sqrt(sum(one.var(ddof=1) / len(one) for one in known))
    assert value.ci95 is not None
    assert (value.ci95[1] - value.ci95[0]) / 2 == pytest.approx(1.97 * error, rel=0.08)
    assert (value.n, value.unit) == (queries, "queries")
    # A row minus its own half is half of it; identical rows differ by nothing.
    half = found.difference("none", "shift", "delta_aprf_signed")
    assert half.mean == pytest.approx(value.mean / 2 if value.mean else None)
    assert found.test("none", "none", "delta_aprf_signed").p == 1.0
    size = found.nearer("shift", "none", "delta_aprf_signed")
    assert size.mean == pytest.approx(-abs(value.mean or 0) / 2)


def test_seeds_and_queries_add_in_the_error_of_a_figure() -> None:
    values, draws = np.array([0.1, 0.3, 0.2, 0.4]), RNG.normal(0.25, 0.05, (1, 4000)).repeat(4, axis=0)
    test = crossed_figures(values, draws, 100)
    assert test.found is not None
    assert test.found.error == pytest.approx(np.sqrt(values.var(ddof=1) / 4 + 0.05**2), rel=0.02)
    assert (test.n, test.limit, test.mean) == (4, "seeds", pytest.approx(0.25))
    assert 3 < test.found.freedom < 99
    one = crossed_figures(values[:1], draws[:1], 100)
    assert one.found is not None
    assert (one.found.freedom, one.limit) == (pytest.approx(99), "queries")
    assert crossed_figures(np.array([np.nan]), draws[:1], 100).mean is None


# --- why a line was missed -------------------------------------------------------------------------------------------


class Frontier(Figures):
    """Five seeds of 100 queries: MRR of each row by kind of query, and |ΔA-PRF|."""

    def __init__(self, rows: dict[str, tuple[float, float, float]]) -> None:
        super().__init__()
        self.rows = rows
        self.kinds = [[ibbr_paper.ASKED] * 30 + [ibbr_paper.BOTH] * 70] * 5
        self.audits = [self._audit(seed) for seed in range(5)]

    def _audit(self, seed: int) -> Any:
        noise = 0.0005 * (seed - 2)
        return {
            name: SimpleNamespace(
                figures={"RR": SimpleNamespace(values=np.r_[np.full(30, asked), np.full(70, both)] + noise)}
            )
            for name, (asked, both, _) in self.rows.items()
        }

    @property
    def systems(self) -> list[str]:
        return list(self.rows)

    def per_seed(self, system: str, column: str) -> list[float]:
        asked, both, gap = self.rows[system]
        turn = (np.arange(5) - 2) * 0.0005 * (1 if len(system) % 2 else -1)
        return [float(one) for one in (gap if column.startswith("delta") else 0.3 * asked + 0.7 * both) + turn]


def missed(supported: bool | None = False) -> list[Claim]:
    return [Claim.of(ibbr_paper.PAPER, key, Verdict(supported), "") for key in ("gap", "removed", "kept")]


ROWS = {
    "none": (0.90, 0.92, 0.10), "TS 0.1": (0.89, 0.91, 0.06), "TS 1": (0.80, 0.85, 0.01), "blind": (0.60, 0.90, 0.0),
    "shift × 0.5": (0.9, 0.90, 0.05),
}  # fmt: skip


def test_a_missed_line_says_what_was_tried_and_where_the_offset_costs() -> None:
    found = Frontier({**ROWS, "shift": (0.90, 0.80, 0.002)})
    tried, reason = ibbr_paper.why(missed(), found, found, "BERT-L2")
    assert tried.startswith("Not reached (removed and kept), BERT-L2. Tried on the first seed")
    assert all(f"{name} 0." in tried for name in found.systems)
    assert "removes 98% of |ΔA-PRF| and keeps 90.8%" in reason
    assert "half of it removes 50% of |ΔA-PRF| and keeps 98.5%" in reason
    assert "an even ranking costs more MRR than the line allows" in reason
    assert "relevant passages of both groups -0.1200 (70%)" in reason
    assert "Most is lost in queries without one, relevant passages of both groups" in reason
    other = Frontier({**ROWS, "shift": (0.60, 0.92, 0.002)})
    assert "Most is lost in queries with a group word" in ibbr_paper.why(missed(), other, other, "BERT-L2")[1]


def test_the_reason_depends_on_what_the_offset_does() -> None:
    cheap = Frontier({**ROWS, "shift": (0.90, 0.92, 0.002)})
    assert "what fails is the term" in ibbr_paper.why(missed(), cheap, cheap, "BERT-L2")[1]
    lame = Frontier({**ROWS, "shift": (0.90, 0.92, 0.06)})
    assert "not even that offset carries over" in ibbr_paper.why(missed(), lame, lame, "BERT-L2")[1]
    assert ibbr_paper.why(missed(True), cheap, cheap, "BERT-L2") == []
    assert ibbr_paper.why(missed(None), cheap, cheap, "BERT-L2")[0].startswith(
        "Not decided (removed and kept), BERT-L2."
    )
    edge = Frontier({**ROWS, "shift": (0.8882, 0.88822, 0.002)})
    assert "not decidable with this n" in ibbr_paper.why(missed(), edge, edge, "BERT-L2")[1]
