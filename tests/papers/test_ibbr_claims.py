"""The IBBR experiment's claims and rows: found a second way, and wrong versions of them noticed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenrank.files import Run, read_qrels, read_texts
from evenrank.groups import Scoring, load_lexicon, score_in_memory
from evenrank.papers import ibbr_paper, ibbr_setup
from evenrank.papers.ibbr_paper import COLUMNS, HEADINGS, OF_GROUPS, WHOLE_COLUMNS, Figures, group_figures, parts_of
from evenrank.papers.ibbr_setup import skewed_clicks
from evenrank.papers.paper_page import Claim, Value
from slow_ibbr import slow_figures

SEEDS = 5
NOISE = np.array([-0.002, -0.001, 0.0, 0.001, 0.002])
ROWS = {
    # MRR and ΔA-PRF of each row, means over seeds.
    "BM25": (0.50, 0.00), "base": (0.90, 0.11), "none": (0.92, 0.12), "PD best": (0.91, 0.10), "PD auto": (0.91, 0.11),
    "TS best": (0.915, 0.01), "TS auto": (0.85, -0.05), "blind": (0.84, 0.00), "shift": (0.915, 0.005),
}  # fmt: skip


class Made(Figures):
    """Figures by hand: a mean for each row and column, with a little noise over seeds."""

    def __init__(self, rows: Mapping[str, tuple[float, float]]) -> None:
        super().__init__()
        self.rows = rows
        self.audits = [None] * SEEDS  # type: ignore[list-item]

    @property
    def systems(self) -> list[str]:
        return list(self.rows)

    def per_seed(self, system: str, column: str) -> list[float]:
        mrr, signed = self.rows[system]
        turn = NOISE if len(system) % 2 else NOISE[::-1]
        if column == "delta_aprf_signed":
            return [float(signed + one) for one in turn]
        if column == "delta_aprf_abs":
            return [abs(float(signed + one)) for one in turn]
        return [float(mrr + one) for one in turn]


def claims(rows: Mapping[str, tuple[float, float]], weight: float = 0.03) -> dict[str, Claim]:
    """Both models with the same figures."""
    models = ("BERT-L2", "BERT-L4")
    chosen = {(model, term): weight for model in models for term in ("PD", "TS")}
    found = ibbr_paper.claims({model: Made(rows) for model in models}, Figures(), chosen)
    return {claim.statement.key: claim for claim in found}


def states(rows: Mapping[str, tuple[float, float]], weight: float = 0.03) -> dict[str, bool | None]:
    return {key: claim.verdict.supported for key, claim in claims(rows, weight).items()}


def test_the_three_lines_hold_where_they_hold() -> None:
    found = states(ROWS)
    assert [found[key] for key in ("gap", "removed", "kept")] == [True, True, True]
    assert "92% removed" in claims(ROWS)["removed"].detail
    assert "5 seeds" in claims(ROWS)["kept"].detail


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"none": (0.92, -0.05)}, "gap"),
        ({"TS best": (0.915, 0.06)}, "removed"),
        ({"TS best": (0.915, -0.06)}, "removed"),
        ({"TS best": (0.88, 0.01)}, "kept"),
        ({"blind": (0.93, 0.0)}, "kept"),
    ],
)
def test_each_line_can_fail(changed: Mapping[str, tuple[float, float]], key: str) -> None:
    assert states({**ROWS, **changed})[key] is False


def test_the_lines_rest_on_the_development_weight_where_there_is_one() -> None:
    best_fails = {**ROWS, "TS best": (0.88, 0.06)}
    rows = {**best_fails, "TS dev": (0.915, 0.01)}
    chosen = {("BERT-L2", term): 0.13 for term in ("PD", "TS")}
    found = {
        one.statement.key: one for one in ibbr_paper.claims({"BERT-L2": Made(rows)}, Figures(), chosen, dev_weight=0.04)
    }
    assert (states(best_fails)["removed"], found["removed"].verdict.supported) == (False, True)
    assert (states(best_fails)["kept"], found["kept"].verdict.supported) == (False, True)
    assert found["kept"].detail.startswith("λ 0.04: TS dev 0.9150, none 0.9200, blind 0.8400, 99.5% kept")
    # The paper's own claims stay with its own rule.
    assert "TS best − none" in found["ts_bias"].detail


def test_a_broken_ranker_fulfils_no_line() -> None:
    broken = {name: (0.3, gap) for name, (_, gap) in ROWS.items() if name != "BM25"} | {"BM25": ROWS["BM25"]}
    assert not any(states(broken).values())


OF_BEST = (
    "ts_bias", "ts_utility", "ts_recall", "ts_pd", "pd_bias", "pd_raises", "pd_utility", "auto_bias", "rab"
)  # fmt: skip
"""Every claim of the paper about a row of "best"."""


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_mutant_a_term_with_weight_0_fails_its_lines(noise: float) -> None:
    """The row of "best" is then none's own, or differs by another training's noise: no claim of it holds."""
    silent = {**ROWS, "TS best": (ROWS["none"][0] + noise, 0.12 - noise), "PD best": (0.90, 0.15)}
    found, said = states(silent, 0.0), claims(silent, 0.0)
    assert (found["removed"], found["kept"]) == (False, False)
    assert "λ 0 (no weight of the grid qualified" in said["removed"].detail
    for key in OF_BEST:
        assert not found[key], key
        assert "no weight of the grid qualified" in said[key].detail, key
    # Undecided, unless a row that was trained decides it.
    assert {found[key] for key in OF_BEST[:4]} == {None}
    assert {states(ROWS, 0.0)[key] for key in ("removed", "kept")} == {False}
    # With a weight, the same figures do decide.
    assert any(states(silent)[key] is not None for key in OF_BEST)
    # And no other claim on a row of "best" is missing here.
    different = {key for key in found if said[key].detail != claims(silent)[key].detail}
    assert different == {*OF_BEST, "removed", "kept"}


def test_mutant_a_sign_flipped_in_a_difference_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    before = states(ROWS)
    real = Made.difference

    def flipped(self: Figures, system: str, baseline: str, column: str, factor: float = 1.0) -> Value:
        value = real(self, system, baseline, column, factor)
        assert value.mean is not None
        assert value.ci95 is not None
        return replace(value, mean=-value.mean, ci95=(-value.ci95[1], -value.ci95[0]))

    monkeypatch.setattr(Made, "difference", flipped)
    after = states(ROWS)
    changed = {key for key in before if before[key] != after[key]}
    assert {"removed", "kept", "ts_bias", "ts_pd", "auto_bias", "dpr_bm25"} <= changed


def test_relative_changes_have_the_sign_of_the_change() -> None:
    assert ibbr_paper.relative([1.0, 2.0], [2.0, 4.0]) == pytest.approx(-50)
    assert ibbr_paper.relative([-0.1], [-0.2]) == pytest.approx(50)
    assert ibbr_paper.relative([0.1], [0.0]) is None


def test_the_groups_rank_bias_differs_by_rab() -> None:
    """qRaB_m − qRaB_f is RaB, list by list."""
    rng = np.random.default_rng(0)
    rows = [(str(q), str(d), float(-d)) for q in range(4) for d in range(12)]
    run = Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"))
    counts = {group: {str(d): float(rng.integers(0, 3)) for d in range(12)} for group in ("m", "f")}
    found = group_figures(run, counts)
    assert set(found) == set(OF_GROUPS)
    for depth in (5, 10):
        expected = np.mean([counts["m"][str(d)] - counts["f"][str(d)] for d in range(depth)])
        assert found[f"qrab_m_{depth}"] - found[f"qrab_f_{depth}"] == pytest.approx(expected)


# --- the ideal offset ------------------------------------------------------------------------------------------------


@pytest.fixture
def leaning(tmp_path: Path) -> tuple[Run, str, str, set[tuple[str, str]], dict[str, int]]:
    """A run whose male passages have 1.5 too much, its judgements, and its collection."""
    rng = np.random.default_rng(1)
    side = {str(d): (1, -1, 0)[d % 3] for d in range(60)}
    texts = {1: "He asked his brother.", -1: "She asked her sister.", 0: "Nobody was asked."}
    (tmp_path / "c.tsv").write_text("".join(f"{d}\t{texts[s]}\n" for d, s in side.items()), encoding="utf-8")
    rows, relevant = [], set()
    for query in range(120):
        docs = rng.choice(60, 12, replace=False)
        chosen = str(docs[0])
        relevant.add((f"q{query}", chosen))
        score = {doc: rng.normal() + 1.0 * (doc == chosen) + 1.5 * side[doc] for doc in map(str, docs)}
        rows += [(f"q{query}", doc, value) for doc, value in score.items()]
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} 1\n" for q, d in sorted(relevant)), encoding="utf-8")
    run = Run.from_table(pl.DataFrame(rows, ["query_id", "doc_id", "score"], orient="row"))
    return run, str(tmp_path / "qrels"), str(tmp_path / "c.tsv"), relevant, side


def test_the_offset_removes_the_gap(leaning: tuple[Run, str, str, set[tuple[str, str]], dict[str, int]]) -> None:
    run, qrels, collection, relevant, side = leaning
    offset = ibbr_setup.offset_of(run, qrels, collection)
    assert offset == pytest.approx(3.0, abs=0.6)
    before = slow_figures(run, relevant, side)[1]
    after = slow_figures(ibbr_setup.shifted(run, collection, offset), relevant, side)[1]
    assert before > 0.3
    assert after < 0.02
    # It is the least: nine tenths of it leave a gap of the same sign.
    assert slow_figures(ibbr_setup.shifted(run, collection, 0.9 * offset), relevant, side)[1] > after


def test_mutant_a_shift_with_the_wrong_sign_widens_the_gap(
    leaning: tuple[Run, str, str, set[tuple[str, str]], dict[str, int]],
) -> None:
    run, qrels, collection, relevant, side = leaning
    offset = ibbr_setup.offset_of(run, qrels, collection)
    right, wrong = (
        slow_figures(ibbr_setup.shifted(run, collection, one), relevant, side)[1] for one in (offset, -offset)
    )
    assert right < slow_figures(run, relevant, side)[1] < wrong


def test_the_parts_of_a_figure_make_it(
    leaning: tuple[Run, str, str, set[tuple[str, str]], dict[str, int]],
) -> None:
    """What queries are drawn again for: PRF of both groups, and RaB, query by query."""
    run, qrels, collection, relevant, side = leaning
    table = score_in_memory(read_texts(collection, run.table["doc_id"].unique()), Scoring(load_lexicon("gender-en")))
    found = parts_of(run, table, read_qrels(qrels), run.queries.to_list()[::-1], WHOLE_COLUMNS[1:])
    male, female = np.nanmean(found["delta_aprf_signed"], axis=0)
    assert abs(male - female) == pytest.approx(slow_figures(run, relevant, side)[1])
    counts = {
        group: dict(zip(table.table["doc_id"], table.magnitude("tf", group).tolist(), strict=True))
        for group in ("m", "f")
    }
    groups = group_figures(run, counts)
    for depth in (5, 10):
        assert found[f"rab_{depth}"].mean() == pytest.approx(groups[f"qrab_m_{depth}"] - groups[f"qrab_f_{depth}"])
    # In the order that was asked for.
    last = run.table.filter(pl.col("query_id") == run.queries[-1]).sort("rank")["doc_id"].to_list()
    assert found["rab_5"][0, 0] == pytest.approx(np.mean([counts["m"][d] - counts["f"][d] for d in last[:5]]))


def test_an_offset_of_what_cannot_be_closed_is_0() -> None:
    assert ibbr_setup.least(lambda _: 0.2, 10.0) == 0.0
    assert ibbr_setup.least(lambda _: math.nan, 10.0) == 0.0
    assert ibbr_setup.least(lambda x: -1.0 - x, 10.0) == pytest.approx(-1.0)


# --- the trained weight, and clicks of real text ---------------------------------------------------------------------


def test_the_trained_weight_stands_beside_its_optimum() -> None:
    log: list[Mapping[str, object]] = [
        {"step": 24 * step, "fair_loss_gender": 4.0, "rank_loss": 0.5} for step in range(1, 11)
    ]
    state = '{"values": {"rank": [-0.6931, 0, 0, 1], "0": [1.3863, 0, 0, 1]}}'
    log += [{"step": 240, "eval_validation": 0.9}]
    values = ibbr_paper.auto_weights(log, state)
    assert (values["fair"].n, values["fair"].unit, values["rank"].n) == (24, "steps", 24)
    found = {key: value.mean for key, value in values.items()}
    assert found == pytest.approx(
        {"fair": 4.0, "optimum": 0.25, "weight": 0.25, "rank": 0.5, "rank_optimum": 2.0, "rank_weight": 2.0,
         "ratio": 0.125}, rel=1e-3,
    )  # fmt: skip
    tiny = [{**log[0], "fair_loss_gender": 1e-9}]
    assert ibbr_paper.auto_weights(tiny, "")["optimum"].mean == pytest.approx(math.exp(5))


def test_steps_without_the_term_do_not_count_in_its_mean() -> None:
    log: list[Mapping[str, object]] = [
        {"step": 10, "fair_loss_gender": 3.0, "rank_loss": 0.5, "lacking_a_group_gender": 8.0},
    ]
    found = ibbr_paper.auto_weights(log, "")
    assert (found["fair"].mean, found["fair"].n, found["rank"].n) == (3.0, 2, 10)
    none: list[Mapping[str, object]] = [{"step": 10, "rank_loss": 0.5, "lacking_a_group_gender": 10.0}]
    assert "optimum" not in ibbr_paper.auto_weights(none, "")


def test_real_clicks_are_skewed_by_quota() -> None:
    texts = pl.DataFrame(
        {
            "doc_id": [f"{q}{side}" for q in range(10) for side in "mfn"],
            "text": ["He came.", "She came.", "They came."] * 10,
        }
    )
    relevant = pl.DataFrame(
        {"query_id": [f"q{q}" for q in range(10) for _ in "mfn"], "doc_id": texts["doc_id"], "relevance": [1] * 30}
    )
    queries = pl.DataFrame({"query_id": [f"q{q}" for q in range(10)]})
    clicks = skewed_clicks(queries, relevant, texts, 0.8, 0)
    assert clicks["query_id"].n_unique() == clicks.height == 10
    assert clicks["doc_id"].str.ends_with("m").sum() == 8
    assert clicks["doc_id"].str.ends_with("f").sum() == 2


def test_every_measured_column_has_a_heading() -> None:
    assert set(COLUMNS) <= set(HEADINGS)
