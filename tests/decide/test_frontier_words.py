"""What a frontier says of strengths, jumps, gains, and methods that cannot change anything."""

from __future__ import annotations

import numpy as np
import pytest

import evenrank
from evenrank.decide.frontier import Frontier, Plane, Ranking, strength_text
from evenrank.measures import parse_measure
from evenrank.results.finding import Finding
from small_rebalance import run as small_run
from small_rebalance import table as small_table

UTILITY, BIAS = parse_measure("nDCG@10"), parse_measure("ARaB@10")


def found(*rankings: tuple[str, list[float], list[float], float | None], queries: int = 3) -> Frontier:
    plane = Plane(
        [
            Ranking(name, np.array(utility), np.array(bias), None if strength is None else name.split()[0], strength)
            for name, utility, bias, strength in rankings
        ],
        BIAS,
    )
    return Frontier("run", plane.points(), plane.equal(), (UTILITY, BIAS), queries, {}, ())


RUN = ("run", [0.5, 0.6, 0.7], [0.4, 0.4, 0.4], None)


@pytest.mark.parametrize(
    ("strength", "text"),
    [(0.5, "0.500"), (0.0042, "0.0042"), (0.00031, "0.00031"), (0.9992, "0.99920"), (1.0, "1"), (0.0, "0")],
)
def test_a_strength_is_told_from_0_and_1(strength: float, text: str) -> None:
    assert strength_text(strength) == text


def test_a_jump_is_called_so() -> None:
    jumps = found(RUN, ("a 0.9985", [0.5, 0.6, 0.6], [0.38] * 3, 0.9985), ("a 1", [0.4, 0.5, 0.6], [0.0] * 3, 1.0))
    assert [one.jump for one in jumps.equal] == [True, True]
    said = [one for one in jumps.findings if one.key == "jump"]
    assert [(one.subject, one.place) for one in said] == [("a", "note")]
    assert "from 0.9985 to 1 it jumps from .380 to .000" in said[0].text
    assert "0.9985 to 1" in jumps.table().split("\n\n")[1]
    near = found(RUN, ("a 0.5", [0.5] * 3, [0.201] * 3, 0.5), ("a 0.502", [0.5] * 3, [0.199] * 3, 0.502))
    assert [one.jump for one in near.equal] == [False]
    assert "  0.501  " in near.table()
    assert "jump" not in [one.key for one in near.findings]


def test_what_it_costs_is_said_with_a_margin() -> None:
    rng = np.random.default_rng(0)
    base, lean = rng.beta(2, 1, 300).tolist(), [0.4] * 300
    run = ("run", base, lean, None)

    def said(values: list[float]) -> Finding:
        return found(run, ("a 1", values, [0.0] * 300, 1.0)).findings[0]

    assert said(base).key == "within"
    lost = said([0.8 * value for value in base])
    assert (lost.key, lost.level) == ("least", "shown")
    assert lost.estimate is not None
    # Half of the way to a loss of a fifth.
    assert lost.estimate.mean == pytest.approx(-0.1 * np.mean(base))
    gained = said([value + abs(x) for value, x in zip(base, rng.normal(0, 0.05, 300), strict=True)])
    assert (gained.key, gained.level) == ("gains", "shown")
    # Three queries show nothing.
    few = found(RUN, ("a 1", [0.4, 0.6, 0.6], [0.0] * 3, 1.0), queries=34)
    assert few.findings[0].text == (
        "At 50% of the run's ARaB@10 (.200) what a costs cannot be told: only 2 of 3 queries differ from 0, where 15"
        " are needed (nDCG@10 −.033)."
    )
    assert few.page().aside == "3 queries"
    assert "\nAt 25%  of the run's ARaB@10 (.100) what a costs cannot be told: " in few.table()
    two = found(RUN, ("a 1", [0.7, 0.9, 0.7], [0.0] * 3, 1.0), ("b 1", [0.6, 0.6, 0.7], [0.0] * 3, 1.0))
    behind = two.findings[1]
    assert (behind.key, behind.level) == ("next_untold", "cannot be told")
    assert behind.text.startswith("b comes next")


def test_no_document_is_neutral() -> None:
    lists = {f"q{q}": [(f"{q}.{d}", 9.0 - d) for d in range(6)] for q in range(4)}
    groups = {doc: "m" if int(doc[-1]) < 3 else "f" for docs in lists.values() for doc, _ in docs}
    qrels = {query: {docs[1][0]: 1} for query, docs in lists.items()}
    made = evenrank.frontier(
        small_run(lists),
        qrels=qrels,
        scores=small_table(groups),
        methods=["neutral"],
        beside={"blind": small_run(lists)},
    )
    assert "neutral changes nothing: none of the documents is neutral." in made.notes
    first = made.table(full=True).partition("\nneutral: changes nothing up to ")[2]
    assert first.splitlines()[1].strip() == "strength 1"
    assert made.table(full=True).count("\nneutral 0") == 0
    groups["0.2"] = ""
    made = evenrank.frontier(small_run(lists), qrels=qrels, scores=small_table(groups), methods=["neutral"])
    assert not any("none of the documents" in note for note in made.notes)


def test_the_plane_is_before_the_long_table() -> None:
    page = found(RUN, ("a 1", [0.4, 0.5, 0.6], [0.0] * 3, 1.0)).html()
    places = [page.index(text) for text in ("<svg", "All points")]
    assert places == sorted(places)
    assert page.startswith("<!doctype html>")
