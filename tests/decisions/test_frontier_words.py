"""What a frontier says of strengths, jumps, gains, and methods that cannot change anything."""

from __future__ import annotations

import numpy as np
import pytest

import evenrank
from evenrank.decisions.frontier import Frontier, Plane, Ranking, strength_text, summary
from evenrank.measures import parse_measure
from small_rebalance import run as small_run
from small_rebalance import table as small_table

UTILITY, BIAS = parse_measure("nDCG@10"), parse_measure("ARaB@10")


def found(*rankings: tuple[str, list[float], list[float], float | None]) -> Frontier:
    plane = Plane(
        [
            Ranking(name, np.array(utility), np.array(bias), None if strength is None else name.split()[0], strength)
            for name, utility, bias, strength in rankings
        ],
        BIAS,
    )
    return Frontier("run", plane.points(), plane.equal(), (UTILITY, BIAS), 3, {}, ())


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
    text = jumps.table()
    assert "(50% of the run's) a between strengths 0.9985 and 1 costs least" in text
    assert (
        "No strength of a that was tried has this bias: from 0.9985 to 1 ARaB@10 jumps from 0.3800 to 0.0000. The"
        " figures are those of mixing these two rankings at random." in text
    )
    assert "0.9985 to 1" in text
    near = found(RUN, ("a 0.5", [0.5] * 3, [0.201] * 3, 0.5), ("a 0.502", [0.5] * 3, [0.199] * 3, 0.502))
    assert [one.jump for one in near.equal] == [False]
    assert "a at strength 0.501 costs least" in near.table()
    assert "jump" not in near.table()


def test_what_it_costs_is_said_with_a_margin() -> None:
    rng = np.random.default_rng(0)
    base, lean = rng.beta(2, 1, 300).tolist(), [0.4] * 300
    run = ("run", base, lean, None)

    def said(values: list[float]) -> str:
        return " ".join(summary(found(run, ("a 1", values, [0.0] * 300, 1.0))))

    assert "costs no more than 5% of nDCG@10: nDCG@10 0.0000" in said(base)
    assert "costs least: nDCG@10 -0.0" in said([0.8 * value for value in base])
    assert "gains: nDCG@10 +0.0" in said(
        [value + abs(x) for value, x in zip(base, rng.normal(0, 0.05, 300), strict=True)]
    )
    # Three queries show nothing.
    few = " ".join(summary(found(RUN, ("a 1", RUN[1], [0.0] * 3, 1.0))))
    assert "costs least: nDCG@10 0.0000" in few
    two = found(RUN, ("a 1", [0.7, 0.9, 0.7], [0.0] * 3, 1.0), ("b 1", [0.6, 0.6, 0.7], [0.0] * 3, 1.0))
    assert "b comes next and is not shown to gain less: -" in " ".join(summary(two))


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
    assert "neutral: changes nothing up to strength 1" in made.table()
    assert made.table().count("\nneutral 0") == 0
    groups["0.2"] = ""
    made = evenrank.frontier(small_run(lists), qrels=qrels, scores=small_table(groups), methods=["neutral"])
    assert not any("none of the documents" in note for note in made.notes)


def test_the_plane_is_before_the_long_table() -> None:
    page = found(RUN, ("a 1", [0.4, 0.5, 0.6], [0.0] * 3, 1.0)).html()
    places = [page.index(text) for text in ("<h3>At equal bias", '<section id="plane"', "<h3>All points")]
    assert places == sorted(places)
    assert page.startswith("<!doctype html>")
