"""The frontier: points that an audit confirms, methods at equal bias, the straight line to ``blind``, and the page."""

from __future__ import annotations

import itertools
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank.decide.frontier import Frontier, Level, Plane, Ranking, sweep
from evenrank.decide.rebalance import TuningQueries
from evenrank.decide.rebalance_lists import Grouping, OrderFigures
from evenrank.files import EvenrankError
from evenrank.measures import parse_measure
from evenrank.measures.inference import compare, holm
from evenrank.mitigation.reorderings import METHODS
from evenrank.results.table import short
from small_audits import text_of
from small_rebalance import drawn
from small_rebalance import run as small_run
from small_rebalance import table as small_table

RUN, GROUPS, QRELS = drawn(24, 15, 5)
OTHERS = RUN.queries.filter(~TuningQueries(None, 0).chosen(RUN.queries))
BLIND = evenrank.rebalance(RUN, method="neutral", strength=1, scores=GROUPS).run


@pytest.fixture(scope="module")
def found() -> Frontier:
    return evenrank.frontier(RUN, qrels=QRELS, scores=GROUPS, strengths=(0, 0.5, 1), beside={"blind": BLIND})


def test_points_are_those_of_an_audit(found: Frontier) -> None:
    learn = RUN.table.filter(~pl.col("query_id").is_in(OTHERS.implode()))
    runs = sweep(RUN, GROUPS, strengths=[0.5, 1], learn=evenrank.Run.from_table(learn.drop("rank")))
    named = {f"{method} {strength:g}": run for (method, strength), run in runs.items()}
    texts = pl.DataFrame({"query_id": OTHERS, "text": OTHERS})
    audit = evenrank.audit(
        {"drawn": RUN, "blind": BLIND, **named}, scores=GROUPS, qrels=QRELS, queries=texts, only_queries=True,
        baseline="drawn", measures="nDCG@10 ARaB@10",
    )  # fmt: skip
    assert len(named) == 2 * len(METHODS)
    for name in ("drawn", "blind", *named, "random", "neutral-first"):
        point = found[name]
        for measure, own, apart in (
            ("nDCG@10", point.utility, point.utility_difference),
            ("ARaB@10", point.bias, point.bias_difference),
        ):
            figure = audit[name, measure]
            assert own[0] == pytest.approx(figure.mean, abs=1e-12)
            assert own[1] == pytest.approx(figure.ci95, abs=1e-12)
            if figure.vs_baseline is not None and apart is not None:
                assert apart.mean == pytest.approx(figure.vs_baseline.difference, abs=1e-12)
                assert (apart.p, apart.why) == (pytest.approx(figure.vs_baseline.p), figure.vs_baseline.test.why)
    assert found["drawn"].utility_difference is None
    assert found["relevance-first"].utility[0] == 1


def test_method_by_name_and_without_poles() -> None:
    assert {method for method, _ in sweep(RUN, GROUPS, ["fair"], [0.3])} == {"fair"}
    labels = evenrank.as_labels({f"d{i}": "abc"[i % 3] for i in range(60)})
    assert {method for method, _ in sweep(RUN, labels, strengths=[1])} == METHODS.keys()
    # Without a neutral document there is no NFaiRR, so that of labels it is how near shares are to the candidates'.
    given: dict[str, Any] = {"qrels": QRELS, "labels": labels, "strengths": [1], "tune_queries": OTHERS}
    with pytest.raises(
        EvenrankError, match=r"^`bias`: no list of the \d+ queries .* of NFaiRR@10: give another measure"
    ):
        evenrank.frontier(RUN, bias="NFaiRR@10", **given)
    three = evenrank.frontier(RUN, **given)
    assert str(three.measures[1]) == "AWRF(target='candidates')@10"
    assert three.points[0].bias[0] is not None


def ranking(name: str, utility: list[float], bias: list[float], strength: float | None = None) -> Ranking:
    method = name.split()[0] if strength is not None else None
    return Ranking(name, np.array(utility), np.array(bias), method, strength)


PLANE = [
    ranking("run", [0.8, 0.6], [0.5, 0.3]),
    ranking("a 0.5", [0.8, 0.4], [0.3, 0.2], 0.5),
    ranking("a 1", [0.6, 0.2], [-0.1, 0.1], 1.0),
    ranking("b 1", [0.5, 0.5], [0.0, 0.0], 1.0),
    ranking("blind", [0.5, 0.3], [0.1, -0.1]),
]


def test_equal_bias_by_hand() -> None:
    plane = Plane(PLANE, parse_measure("ARaB@10"))
    assert plane.levels() == {0.5: pytest.approx(0.2), 0.25: pytest.approx(0.1)}
    first, second, *rest = plane.equal()
    # a: from 0.25 to 0, a fifth of the way from strength 0.5; b: from 0.4 to 0, half of the way.
    assert (first.method, first.bias, second.method) == ("b", pytest.approx(0.2), "a")
    assert (first.strength, first.utility) == (pytest.approx(0.5), pytest.approx(0.6))
    assert first.behind is None
    assert first.cost.mean == pytest.approx(-0.1)
    assert (second.strength, second.utility) == (pytest.approx(0.6), pytest.approx(0.56))
    assert second.behind is not None
    assert second.behind.mean == pytest.approx(-0.04)
    assert second.behind.verdict == "cannot be told"
    assert [one.method for one in rest] == ["b", "a"]


def test_straight_line_by_hand() -> None:
    points = {point.name: point for point in Plane(PLANE, parse_measure("ARaB@10")).points()}
    # From .7 at bias .4 to .4 at 0: at .25 it is .5875.
    beyond = points["a 0.5"].beyond
    assert beyond is not None
    assert beyond.mean == pytest.approx(0.6 - 0.5875)
    assert points["run"].beyond is None
    assert points["blind"].beyond is None


@pytest.mark.parametrize("sign", [1, -1])
def test_side_of_the_lean_does_not_matter(sign: int) -> None:
    turned = [Ranking(one.name, one.utility, sign * one.bias, one.method, one.strength) for one in PLANE]
    equal = Plane(turned, parse_measure("ARaB@10")).equal()
    assert [(one.method, round(one.strength, 6)) for one in equal[:2]] == [("b", 0.5), ("a", 0.6)]
    assert equal[0].bias == pytest.approx(sign * 0.2)


def test_more_is_fairer() -> None:
    plane = Plane(
        [ranking("run", [1.0, 1.0], [0.4, 0.4]), ranking("a 1", [0.5, 0.5], [0.8, 0.8], 1.0)],
        parse_measure("NFaiRR@10"),
    )  # fmt: skip
    half = plane.equal()[0]
    assert (half.bias, half.strength, half.utility) == (pytest.approx(0.6), pytest.approx(0.5), pytest.approx(0.75))


def test_undefined_bias_is_called_so(found: Frontier) -> None:
    undefined = replace(found, points=(replace(found.points[0], bias=Level(None, None)), *found.points[1:]), equal=())
    (answer, *_) = undefined.findings
    assert (answer.key, answer.level, answer.place) == ("undefined", "cannot be told", "answer")
    none = replace(found, equal=())
    least = min((one for one in found.points if one.method), key=lambda one: abs(one.bias[0] or 0.0))
    answer = none.findings[0]
    assert (answer.key, answer.estimate) == ("none_reaches", least.utility_difference)
    assert f"{least.method} comes nearest" in answer.text
    nothing = replace(none, points=(replace(found.points[0], bias=Level(0.0, None)), *found.points[1:]))
    assert nothing.findings[0].key == "nothing_to_take"


def test_holm_is_over_all_pairs() -> None:
    rng = np.random.default_rng(0)
    plane = Plane(
        [
            Ranking("run", np.ones(20), np.ones(20)),
            *(Ranking(f"{name} 1", rng.normal(0.5, 0.1, 20), np.zeros(20), name, 1.0) for name in "abcd"),
        ],
        parse_measure("ARaB@10"),
    )  # fmt: skip
    least, *others = plane.equal()[:4]
    values = {path[1].method: path[1].utility for path in plane.methods.values()}
    tested = {pair: compare(values[pair[0]] - values[pair[1]]).p for pair in itertools.combinations("abcd", 2)}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    for one in others:
        first, second = sorted((least.method, one.method))
        assert one.behind is not None
        assert one.behind.holm_p == pytest.approx(corrected[first, second])


def test_levels_are_those_of_all_methods() -> None:
    # Where one pole stands before neutral documents, shift gets as far as neutral does; where both do, less far.
    lists: dict[str, list[tuple[str, float]]] = {}
    groups: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    for query in range(16):
        kinds = ["m"] * 6 if query % 4 else ["m", "f"] * 3
        documents = {f"{query}.{place:02}": group for place, group in enumerate([*kinds, *[""] * 6])}
        lists[f"q{query}"] = [(doc, 20 - place - 0.3 * query * (place > 5)) for place, doc in enumerate(documents)]
        groups |= documents
        qrels[f"q{query}"] = {f"{query}.01": 1, f"{query}.08": 1}
    given = {"scores": small_table(groups), "strengths": [0.5, 1], "methods": ["neutral", "shift"]}
    found = evenrank.frontier(small_run(lists), qrels=qrels, bias="NFaiRR@10", **given)  # type: ignore[arg-type]
    run, best = found["run"].bias[0], found["neutral 1"].bias[0]
    reached = found["shift 1"].bias[0]
    assert run is not None
    assert best is not None
    assert reached is not None
    assert run + 0.5 * (best - run) < reached < best - 0.1
    halves = [one for one in found.equal if one.share == 0.5]
    assert {one.method for one in halves} == {"neutral", "shift"}
    for one in halves:
        assert one.bias == pytest.approx((best + run) / 2)
        near = sorted(p.strength for p in found.points if p.method == one.method and p.strength is not None)
        above = next(strength for strength in near if strength >= one.strength - 1e-9)
        assert above - max([strength for strength in near if strength < above], default=0.0) < 0.01


def test_values_of_other_queries_are_refused() -> None:
    figures = OrderFigures(RUN, Grouping(GROUPS), QRELS, [parse_measure("ARaB@10")])
    other = RUN.table.with_columns(query_id=pl.lit("x") + pl.col("query_id"))
    with pytest.raises(AssertionError, match="other queries"):
        figures.values(evenrank.Run.from_table(other.drop("rank")))


def test_each_method_gets_its_options() -> None:
    given = {"protected": "m", "alpha": 0.2, "per": "magnitude"}
    options = {"qrels": QRELS, "scores": GROUPS, "strengths": [0.5, 1]}
    own = evenrank.frontier(RUN, **options, **given)  # type: ignore[arg-type]
    runs = {
        "fair 1": evenrank.rebalance(RUN, method="fair", strength=1, scores=GROUPS, protected="m", alpha=0.2).run,
        "shift 0.5": evenrank.rebalance(RUN, method="shift", strength=0.5, scores=GROUPS, per="magnitude").run,
    }
    texts = pl.DataFrame({"query_id": OTHERS, "text": OTHERS})
    audit = evenrank.audit(runs, scores=GROUPS, queries=texts, only_queries=True, measures="ARaB@10")
    for name in runs:
        assert own[name].bias[0] == pytest.approx(audit[name, "ARaB@10"].mean, abs=1e-12)
    assert "fair: protected m, alpha 0.2." in own.notes
    assert any(note.startswith("shift: offset ") and "outweighs" in note for note in own.notes)
    with pytest.raises(EvenrankError, match=r"^`protected`: the method fair is not one of shift"):
        evenrank.frontier(RUN, methods=["shift"], **options, **given)  # type: ignore[arg-type]


def test_nothing_to_take_away() -> None:
    level = [ranking("run", [1.0, 1.0], [0.0, 0.0]), ranking("a 1", [0.5, 0.5], [0.0, 0.0], 1.0)]
    assert Plane(level, parse_measure("ARaB@10")).equal() == ()


def test_strengths_around_the_compared_biases_are_added(found: Frontier) -> None:
    assert found.equal
    for one in found.equal:
        near = sorted({p.strength for p in found.points if p.method == one.method and p.strength is not None})
        above = next(strength for strength in near if strength >= one.strength - 1e-9)
        below = max([strength for strength in near if strength < above], default=0.0)
        assert above - below < 0.02


def test_page_text_and_json(found: Frontier) -> None:
    page = found.html()
    text = text_of(page)
    for point in found.points:
        assert f"{point.utility[0]:.4f}" in text
    answer, *_, beyond = found.findings
    best = found.equal[0]
    assert (answer.key, answer.place, answer.estimate) == ("cost_untold", "answer", best.cost)
    assert answer.text.startswith(f"At 50% of the run's ARaB@10 ({short(best.bias)}) what {best.method} costs ")
    assert (beyond.key, beyond.subject, beyond.level) == ("none_beyond", "blind", "no difference shown")
    # Each method is named once.
    plane = ET.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    titles = [one.text or "" for one in plane.iter("{http://www.w3.org/2000/svg}title")]
    shown = {title.split(":")[0].removesuffix(" (reference ranking)") for title in titles}
    assert {point.name for point in found.points if point.method is None} <= shown <= {p.name for p in found.points}
    names = [one.text for one in plane.iterfind("{http://www.w3.org/2000/svg}g/{http://www.w3.org/2000/svg}text")]
    assert [names.count(method) for method in METHODS] == [1] * len(METHODS)
    values = json.loads(found.to_json())
    assert [point["name"] for point in values["points"]] == [point.name for point in found.points]
    assert len(values["equal_bias"]) == len(found.equal)
    assert page.split("<script", maxsplit=1)[0].count("http://") == page.count('xmlns="http://www.w3.org/2000/svg"')


BAD = [
    ({"qrels": None}, "`frontier` sets effectiveness against bias: it needs `qrels`"),
    ({"strengths": []}, "`strengths`: expected at least one"),
    ({"strengths": [2]}, "`strength`: expected a number from 0 to 1, found 2"),
    ({"methods": ["magic"]}, "`method`: expected one of neutral"),
    ({"utility": "ARaB@10"}, "`utility`: expected a measure of effectiveness, found ARaB@10"),
    ({"bias": "nDCG@10"}, "`bias`: expected a measure of bias that is a mean over queries"),
    ({"bias": "Share(group='m')@10"}, "`bias`: expected a measure of bias that is a mean over queries"),
    ({"beside": {"random": RUN}}, "`beside`: the name 'random' is that of another point"),
    ({"beside": {"x": {"q0": {"d1": 1.0}}}}, "`beside`: the run x has no documents for the query"),
    ({"qrels": {"x": {"d1": 1}}}, "the qrels judge none of the"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(EvenrankError) as error:
        evenrank.frontier(RUN, **{"qrels": QRELS, "scores": GROUPS, "strengths": [1], **options})  # type: ignore[arg-type]
    assert message in str(error.value)


def test_ties_and_missing_queries_are_those_of_the_methods() -> None:
    tied, groups, qrels = drawn(8, 15, 3, ties=True)
    more = pl.concat([qrels, pl.DataFrame([("x", "d1", 1)], qrels.schema, orient="row")])
    found = evenrank.frontier(
        tied, methods=["neutral"], strengths=[0.001], utility="RR@10", qrels=more, scores=groups, beside={"b": tied}
    )
    points = {point.name: point for point in found.points}
    assert points["drawn"].utility == points["b"].utility
    alone = evenrank.audit({"r": tied}, qrels=more, measures="RR@10")
    assert alone["r", "RR@10"].mean == pytest.approx(points["drawn"].utility[0])
    assert found.warnings == (
        "Judged queries are missing: drawn lacks 1 of 9. Effectiveness counts 0 there, and bias measures skip them.",
    )
    assert (found.queries, found.absent) == (9, 1)
    assert "9 (1 not in the run) queries" in found.table(full=True)
    assert [one.text for one in found.findings if one.place == "warning"] == list(found.warnings)
