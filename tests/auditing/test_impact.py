"""Impact ratios as they are asked for: a table of people, runs of labelled people, and what is said of them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank
from evenrank.auditing.impact import range_with_unknown
from evenrank.files import EvenrankError
from evenrank.results.table import short
from small_audits import words

# Selected of all: f × yes 5/40, f × no 30/60, m × yes 25/50, m × no 40/50.
COUNTS = {("f", "yes"): (5, 40), ("f", "no"): (30, 60), ("m", "yes"): (25, 50), ("m", "no"): (40, 50)}


def people() -> pl.DataFrame:
    rows = [
        {"person": f"{gender}-{disabled}-{n}", "gender": gender, "disabled": disabled, "hired": int(n < selected)}
        for (gender, disabled), (selected, of) in COUNTS.items()
        for n in range(of)
    ]
    return pl.DataFrame(rows)


COLUMNS = ["gender", "disabled"]


def test_a_table_of_people_by_hand(snapshot: Any) -> None:
    found = evenrank.impact_ratios(people(), group_column=COLUMNS, intersect=True, selected="hired", id="person")
    rows = {(row.attribute, row.group): (row.selected, row.candidates, row.ratio.mean) for row in found.groups}
    assert rows == {
        ("gender", "f"): (35, 100, pytest.approx(0.35 / 0.65)),
        ("gender", "m"): (65, 100, 1.0),
        ("disabled", "no"): (70, 110, 1.0),
        ("disabled", "yes"): (30, 90, pytest.approx((30 / 90) / (70 / 110))),
        ("gender × disabled", "f × no"): (30, 60, pytest.approx(0.5 / 0.8)),
        ("gender × disabled", "f × yes"): (5, 40, pytest.approx(0.125 / 0.8)),
        ("gender × disabled", "m × no"): (40, 50, 1.0),
        ("gender × disabled", "m × yes"): (25, 50, pytest.approx(0.5 / 0.8)),
    }
    assert [row.group for row in found.groups if row.ratio.shown] == ["f", "yes", "f × yes"]
    assert found["f"].rate == 0.35
    assert found["f"].ratio.z == pytest.approx(-0.3 / (0.5 * 0.5 * 2 / 100) ** 0.5)
    assert words(found) == snapshot
    assert "▼" in found.table()
    layers: Any = found.page().plot().specification["layer"]
    assert layers[0]["data"]["values"] == [{"at": 0.8}]


def test_json_csv_and_table_are_of_one_declaration(tmp_path: Path) -> None:
    found = evenrank.impact_ratios(people(), group_column="gender", selected="hired")
    data = json.loads(found.to_json())["groups"][0]
    assert (data["group"], data["candidates"], data["selected"], data["rate"]) == ("f", 100, 35, 0.35)
    assert data["verdict"] == "shown"
    found.per_query(tmp_path / "impact.csv")
    frame = pl.read_csv(tmp_path / "impact.csv")
    assert frame["ratio"].to_list() == [data["mean"], 1.0]
    assert frame["verdict"].to_list() == ["shown below four fifths", "selected most"]
    lines = found.impact_text().split("\n")
    assert lines[0] == "Below four fifths of the highest group's rate: gender = f .538.       200 people"
    assert any(line.startswith("gender     f        100        35  .350") for line in lines)


def test_every_group_has_the_name_of_its_attribute() -> None:
    found = evenrank.impact_ratios(people(), group_column=COLUMNS, intersect=True, selected="hired")
    names = ["disabled = yes", "gender = f × disabled = no", "gender = f × disabled = yes"]
    assert [row.name for row in found.groups[3:6]] == names
    assert 'scope="row" class="left">yes <small class="tag">disabled</small>' in found.html()
    # Of one attribute it heads the column.
    assert "\ndisabled  total" in evenrank.impact_ratios(people(), group_column="disabled", selected="hired").table()
    # Values may contain the sign of combinations.
    odd = evenrank.impact_ratios(pl.DataFrame({"g": ["a × b", "c"], "s": [1, 0]}), group_column="g", selected="s")
    assert odd.groups[0].name == "g = a × b"


def test_labels_may_stand_in_another_file(tmp_path: Path) -> None:
    own = people()
    asked: dict[str, Any] = {"selected": "hired", "id": "person", "group_column": COLUMNS, "intersect": True}
    expected = evenrank.impact_ratios(own, **asked)
    bare, labels = (
        own.select("person", "hired"),
        own.select("person", *COLUMNS).sample(fraction=1, shuffle=True, seed=1),
    )
    labels.write_csv(tmp_path / "groups.csv")
    for groups in (tmp_path / "groups.csv", labels.rename({"person": "doc_id"})):
        assert evenrank.impact_ratios(bare, labels=groups, **asked).groups == expected.groups
    # The only column of groups needs no name; people without a label are counted.
    one = labels.select("person", "gender")[:150]
    found = evenrank.impact_ratios(bare, labels=one, selected="hired", id="person")
    assert (found["f"].name, found["f"].unknown) == ("gender = f", 50)
    with pytest.raises(EvenrankError, match="`labels` of people in a table need the column of their ids: give `id`"):
        evenrank.impact_ratios(bare, labels=labels, selected="hired", group_column="gender")


def hired(*, people: dict[str, tuple[int, int]]) -> pl.DataFrame:
    """One list of people of these groups, of whom so many of so many are hired."""
    rows = [(group, int(n < selected)) for group, (selected, of) in people.items() for n in range(of)]
    return pl.DataFrame(rows, ["g", "hired"], orient="row")


@pytest.mark.parametrize(
    ("people", "claim"),
    [
        ({"a": (30, 100), "b": (60, 100)}, "shown"),
        ({"a": (42, 100), "b": (60, 100)}, "lower"),
        ({"a": (46, 120), "b": (60, 120)}, "chance"),
        ({"a": (1, 8), "b": (60, 120)}, "undecidable"),
        ({"a": (50, 120), "b": (60, 120)}, ""),
        ({"a": (806, 2000), "b": (1000, 2000)}, ""),
        ({"a": (2, 10), "b": (25, 105)}, ""),
    ],
)
def test_what_is_said_of_a_group(people: dict[str, tuple[int, int]], claim: str, snapshot: Any) -> None:
    found = evenrank.impact_ratios(hired(people=people), group_column="g", selected="hired")
    assert (found["a"].claim, found["b"].text) == (claim, "selected most")
    assert [found["a"].text, *(f"{one.place}: {one.text}" for one in found.findings)] == snapshot


def test_beside_a_group_below_another_is_shown_to_be_selected_less() -> None:
    table = hired(people={"a": (806, 2000), "b": (1000, 2000), "c": (39, 100)})
    found = evenrank.impact_ratios(table, group_column="g", selected="hired")
    assert [one.key for one in found.findings] == ["below", "selection", "below_lower", "above_lower", "published"]
    assert ".806▽" in found.table()
    # A small group's rate is higher than the one that both sentences are about.
    small = hired(people={"a": (806, 2000), "c": (830, 2000), "b": (1000, 2000), "x": (5, 5)})
    said = words(evenrank.impact_ratios(small, group_column="g", selected="hired"))
    assert "yet lower than the highest rate of a group large enough for a verdict beyond chance: g = " in said
    assert "highest group's" not in said


def test_but_for_the_correction_is_said_only_where_that_is_why() -> None:
    def text(people: dict[str, tuple[int, int]]) -> str:
        return evenrank.impact_ratios(hired(people=people), group_column="g", selected="hired")["a"].text

    assert text({"a": (62, 200), "m": (100, 200)}) == "shown below four fifths"
    lower = "below four fifths, and lower than g = m beyond chance"
    three = {"a": (62, 200), "b": (82, 200), "c": (99, 200), "m": (100, 200)}
    assert text(three) == f"{lower} (shown below four fifths but for the correction)"
    # Nothing of it where p is large by itself.
    assert "but for" not in text({"a": (77, 200), "b": (99, 200), "m": (100, 200)})


@given(st.integers(0, 10_000))
def test_the_first_line_names_every_group_below(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = zip("abcd", rng.integers(1, 60, 4).tolist(), strict=True)
    people = {group: (int(rng.integers(0, n + 1)), n) for group, n in sizes}
    found = evenrank.impact_ratios(hired(people=people), group_column="g", selected="hired")
    large = any(n >= 10 for _, n in people.values())
    below = [row for row in found.groups if large and row.ratio.mean is not None and row.ratio.mean < 0.8 - 1e-9]
    first, *others = found.findings
    assert all(f"{row.name} {short(row.ratio.mean)}" in first.text for row in below)
    assert not (below and any("No group" in finding.text for finding in found.findings))
    # One verdict on each, the table's, and no other sentence about it.
    verdicts = [one.text for one in found.findings if one.key.startswith("below_")]
    for row in below:
        assert sum(f"{row.name} " in text.partition(": ")[2] for text in verdicts) == 1
    # Where there is no verdict there is a reason.
    assert all(row.ratio.reason in row.text for row in found.groups if row.ratio.p is None)
    said = " ".join(finding.text for finding in (first, *others))
    assert all(row.ratio.reason in said for row in found.groups if row.undecidable and row.ratio.mean is not None)


def test_a_group_may_be_one_of_a_row() -> None:
    """Somebody applies for the day shift in one list and for the night shift in another: each row has its own."""
    rows = {"id": ["a", "b", "a", "b"], "job": ["x", "x", "y", "y"]}
    table = pl.DataFrame({**rows, "shift": ["day", "night", "night", "day"], "invited": [1, 0, 0, 1]})
    found = evenrank.impact_ratios(table, group_column="shift", selected="invited", query="job", id="id")
    assert {row.group: (row.candidates, row.selected) for row in found.groups} == {"day": (2, 2), "night": (2, 0)}


def test_a_ratio_that_is_otherwise_within_lists_is_told() -> None:
    # Each job takes the two alike, but women apply where few are taken.
    jobs = [hired(people={"f": (1, 5), "m": (1, 5)}), hired(people={"f": (4, 5), "m": (40, 50)})]
    jobs[0] = pl.concat([jobs[0], *[jobs[0].filter(pl.col("g") == "f")] * 19])
    table = pl.concat([job.with_columns(job=pl.lit(name)) for name, job in zip("xy", jobs, strict=True)])
    found = evenrank.impact_ratios(table, group_column="g", selected="hired", query="job")
    assert (found["f"].ratio.mean, found["f"].ratio.within_lists) == pytest.approx((24 / 105 / (41 / 55), 1.0))
    assert (
        "Compared with g = m of the same list alone, g = f is selected at 1.000 of the rate; over all lists, at .307"
        in words(found)
    )
    # Figures that are printed alike, or are four fifths, are no two sides of it.
    for jobs in (
        [(40, 100, 50, 101), (40, 100, 50, 99)],
        [(12, 15, 10, 10), (20, 25, 5, 5), (16, 30, 10, 15), (8, 30, 5, 15)],
    ):
        tables = [
            hired(people={"f": (a, b), "m": (c, d)}).with_columns(job=pl.lit(str(i)))
            for i, (a, b, c, d) in enumerate(jobs)
        ]
        found = evenrank.impact_ratios(pl.concat(tables), group_column="g", selected="hired", query="job")
        assert found["f"].ratio.within_lists == pytest.approx(0.8, abs=1e-4)
        assert "of the same list alone" not in words(found)
    # Below four fifths both, but a third lower within: by Mantel and Haenszel (.5 + 12.857) / (16 + 17.143).
    lists = [((1, 40), (32, 40)), ((90, 150), (20, 25))]
    tables = [hired(people={"f": f, "m": m}).with_columns(job=pl.lit(str(i))) for i, (f, m) in enumerate(lists)]
    found = evenrank.impact_ratios(pl.concat(tables), group_column="g", selected="hired", query="job")
    assert "of the same list alone, g = f is selected at .403 of the rate; over all lists, at .599" in words(found)


def test_people_in_several_lists_count_once() -> None:
    # The same 20 people in 10 lists, and the same ones are hired each time.
    once = hired(people={"a": (4, 10), "b": (8, 10)}).with_row_index("person")
    table = pl.concat([once.with_columns(job=pl.lit(job)) for job in range(10)])
    options: dict[str, Any] = {"group_column": "g", "selected": "hired", "query": "job"}
    found = evenrank.impact_ratios(table, **options, id="person")
    assert (found.people, found["a"].candidates, found["a"].ratio.n) == (20, 100, 10)
    assert found["a"].text == "below four fifths; with 10 people this can be chance"
    assert found["a"].ratio.within_lists == found["a"].ratio.mean == 0.5
    # Without ids each row is another person, which is said.
    without = evenrank.impact_ratios(table, **options)
    assert (without.people, without["a"].claim) == (200, "shown")
    assert "Every row counts as another person." in words(without)


def scored(scores: str) -> pl.DataFrame:
    """People of two lists, f before m, with these scores."""
    values = [float(score) for score in scores]
    half = len(values) // 2
    return pl.DataFrame({"job": [1] * half + [2] * half, "g": ["f", "m"] * half, "s": values})


def test_who_is_selected_by_scores_and_ranks() -> None:
    table = scored("98765432")
    first = evenrank.impact_ratios(table, group_column="g", query="job", score="s", k=1)
    assert [(row.group, row.selected, row.candidates) for row in first.groups] == [("f", 2, 4), ("m", 0, 4)]
    # Without a query, the first of all are f, m, f; by rank the last are the first.
    assert evenrank.impact_ratios(table, group_column="g", score="s", k=3)["f"].selected == 2
    assert evenrank.impact_ratios(table, group_column="g", rank="s", k=3)["f"].selected == 1
    # Who has the median itself is not above it.
    three = pl.DataFrame({"g": ["f", "m", "m"], "s": [1.0, 2.0, 3.0]})
    assert evenrank.impact_ratios(three, group_column="g", score="s")["m"].selected == 1
    # Above the median, 5.5: two of each; and of tied people a share of the last place.
    assert [row.selected for row in evenrank.impact_ratios(table, group_column="g", score="s").groups] == [2, 2]
    tied = evenrank.impact_ratios(scored("91111111"), group_column="g", score="s", k=2)
    assert (tied["f"].selected, tied["m"].selected) == pytest.approx((1 + 3 / 7, 4 / 7))
    said = words(tied)
    assert "Selected: rank 1 to 2 (2 of 8)." in said
    assert "More people share the score at rank 2 than there are places left: each of these 7 counts" in said
    assert "share the score" not in words(first)
    assert "rank 1 to 1 of each job (2 of 8)" in words(first)


def test_unknown_and_small_groups_are_named() -> None:
    more = {"gender": ["x", "", "not said"], "hired": [1, 1, 1]}
    table = pl.concat([people().select("gender", "hired"), pl.DataFrame(more)])
    found = evenrank.impact_ratios(table, group_column="gender", selected="hired", neutral="not said")
    assert (found["x"].verdict, found["x"].undecidable) == ("cannot be told", True)
    # The one person of x is hired: a higher rate than the one that ratios are to.
    assert found.findings[0].text.startswith("Below four fifths of the highest rate of a group large enough for a")
    assert (found["f"].ratio.mean, found["f"].unknown) == (pytest.approx(0.35 / 0.65), 1)
    text = " ".join(found.table(full=True).split())
    assert "No verdict on gender = x: fewer than 2% of the candidates." in text
    # At least 35/100 / (66/101), at most 36/101 / (65/100).
    left_out = "1 candidate, 1 of them selected, from the ratios of gender (with them gender = f is from .536 to .548)."
    assert f"Left out, as not known: {left_out}" in text
    assert "Left out, as of no group: 1 candidate from the ratios of gender." in text
    small = evenrank.impact_ratios(hired(people={"a": (2, 9), "b": (6, 9)}), group_column="g", selected="hired")
    nine = words(small)
    assert "No verdict on g = a and g = b: no group has 10 people and 2% of the candidates." in nine


def test_the_range_with_unknown_people_is_that_of_all_ways_to_place_them() -> None:
    table = hired(people={"a": (4, 20), "b": (9, 20), "c": (11, 20), "Unknown": (1, 3)})
    found = evenrank.impact_ratios(table, group_column="g", selected="hired")
    ratios = []
    for groups in itertools.product("abc", repeat=3):
        placed = table.with_columns(g=pl.concat([table["g"][:60], pl.Series(groups)]))
        rates = dict(placed.group_by("g").agg(pl.col("hired").mean()).iter_rows())
        ratios.append(rates["a"] / max(rates.values()))
    assert range_with_unknown(found["a"], found.groups) == pytest.approx((min(ratios), max(ratios)), abs=1e-12)


@pytest.mark.parametrize(
    ("more", "ranged"),
    [
        ({"N/A": (2, 4)}, True),
        # All are hired if one more is placed: then it is large enough, and of the highest rate.
        ({"x": (9, 9), "": (1, 1)}, False),
        ({"x": (8, 8), "": (1, 1)}, True),
        # 10 of 500 are 2%, of 510 fewer.
        ({"a": (100, 245), "b": (120, 245), "c": (9, 10), "": (5, 10)}, False),
    ],
)
def test_no_range_is_said_where_unknown_people_decide_which_groups_are_large(
    more: dict[str, tuple[int, int]], ranged: bool
) -> None:
    table = hired(people={"a": (40, 100), "b": (50, 100), **more})
    said = words(evenrank.impact_ratios(table, group_column="g", selected="hired"))
    assert ("(with them g = a is from" in said) == ranged
    assert said.startswith("Among people whose group is known, no group is below") or not ranged
    assert ranged or f"{more[''][1]} candidate" in said
    assert ranged or "too many to say what the ratios are with them" in said


def test_where_everybody_is_selected_no_group_is_cleared() -> None:
    found = evenrank.impact_ratios(hired(people={"a": (40, 40), "b": (50, 50)}), group_column="g", selected="hired")
    assert found.findings[0].text == "Everybody is selected, so that every ratio is 1."
    assert "below" not in words(found).partition("Where New York")[0]
    # Not of everybody, where the groups of some are not known.
    more = hired(people={"a": (40, 40), "b": (50, 50), "": (0, 60)})
    assert "Everybody" not in words(evenrank.impact_ratios(more, group_column="g", selected="hired"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"selected": "hired"}, "`group_column`: expected the column of people's groups, found none"),
        ({"group_column": "gender"}, "`score` or `rank`: expected one of them where `selected` is not given"),
        ({"group_column": "ages", "selected": "hired"}, "there is no column 'ages' (`group_column`)"),
        ({"group_column": "gender", "selected": "gone"}, "there is no column 'gone' (`selected`): found person, gen"),
        ({"group_column": "gender", "selected": "person"}, "row 1: expected 1, true or yes, or 0, false or no, as pe"),
        ({"group_column": "gender", "score": "person"}, "row 1: expected a number as person, found 'f-yes-0'"),
        ({"group_column": "gender", "score": "comma"}, "row 1: expected a number as comma, found '0,75' (the decimal"),
        ({"group_column": "gender", "selected": "hired", "k": 3}, "`selected`: not with `k`"),
        ({"group_column": "gender", "selected": "hired", "id": "gender"}, "row 1: 'f' (`id`) is there twice in one"),
        ({"group_column": "gender", "selected": "hired", "id": "team"}, "row 2: expected the id of each row in team"),
        ({"group_column": "gender", "rank": "hired", "query": "disabled"}, "`rank` of several lists: give `k`, as"),
        (
            {"group_column": "age", "selected": "hired"},
            "age (`group_column`) has 21 numbers: make groups",
        ),
        ({"group_column": COLUMNS, "selected": "hired"}, "or add `intersect` for their combinations"),
    ],
)
def test_what_cannot_be_used(options: dict[str, Any], message: str) -> None:
    table = people().with_columns(
        team=pl.when(pl.col("hired") == 1).then(pl.col("person")).replace("f-yes-1", None),
        comma=pl.lit("0,75"),
        age=pl.when(pl.int_range(pl.len()) > 21).then(pl.lit("not said")).otherwise(pl.int_range(pl.len()) % 21 + 20),
    )
    with pytest.raises(EvenrankError) as error:
        evenrank.impact_ratios(table, **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


MEASURE = "ImpactRatio(group='f',pooled=True)@3"


def ranked() -> tuple[dict[str, dict[str, float]], pl.DataFrame]:
    """Forty lists of six people each, in which men come first; in six of them last."""
    run = {}
    for q in range(40):
        order = "fffmmm" if q % 7 == 0 else "mmmfff"
        run[f"q{q}"] = {f"{g}{q}-{n}": float(-n) for n, g in enumerate(order)}
    ids = [doc for docs in run.values() for doc in docs]
    labels = {"doc_id": ids, "gender": [doc[0] for doc in ids], "old": ["yes", "no", "no"] * (len(ids) // 3)}
    return run, pl.DataFrame(labels)


def test_runs_have_the_same_table() -> None:
    run, labels = ranked()
    measure = "ImpactRatio(group='f × no',pooled=True)@3"
    result = evenrank.audit({"r": run}, labels=labels, group_column=["gender", "old"], intersect=True, measures=measure)
    rows = {row.group: row for row in result.impact}
    assert list(rows) == ["f", "m", "no", "yes", "f × no", "f × yes", "m × no", "m × yes"]
    assert (rows["f"].selected, rows["f"].candidates, rows["m"].selected) == (18, 120, 102)
    assert "r: Below four fifths of the highest group's rate (rank 1 to 3): gender = f .1" in words(result)
    # The figure of the measure is that of the table, with its interval.
    figure, ratio = result["r", measure], rows["f × no"].ratio
    assert (figure.mean, figure.ci95) == (pytest.approx(ratio.mean), pytest.approx(ratio.ci95))
    assert "Impact ratios" in result.table(full=True)
    assert 'id="impact"' in result.html()
    assert json.loads(result.to_json())["impact"][0]["selected"] == 18


def test_two_runs_are_compared_in_the_ratio() -> None:
    run, labels = ranked()
    # f and m in turns, in every other list f first.
    fair = {
        q: {doc: float(place % 3 * 2 + ((doc[0] == "f") == (n % 2))) for place, doc in enumerate(docs)}
        for n, (q, docs) in enumerate(run.items())
    }
    result = evenrank.audit(
        {"old": run, "new": fair}, labels=labels, group_column="gender", baseline="old", measures=MEASURE
    )
    compared = result["new", MEASURE].vs_baseline
    assert compared.difference == pytest.approx(result["new", MEASURE].mean - result["old", MEASURE].mean)
    assert compared.significant
    assert "new has a higher ImpactRatio" in words(result)


def test_an_audit_without_the_measure_has_no_such_table() -> None:
    run, labels = ranked()
    result = evenrank.audit({"r": run}, labels=labels, group_column="gender")
    assert "impact" not in json.loads(result.to_json())
    with pytest.raises(EvenrankError, match="`measures` has no ImpactRatio"):
        result.impact_table()


def test_exposure_is_no_count_and_unknown_people_are_counted() -> None:
    run, labels = ranked()
    known = labels.filter(~pl.col("doc_id").is_in(["f3-3", "m5-0"]))
    measure = "ImpactRatio(group='f',pooled=True,discount='dcg')@3"
    result = evenrank.audit({"r": run}, labels=known, group_column="gender", measures=f"{measure} {MEASURE}")
    assert [row.selects for row in result.impact[::2]] == ["exposure in rank 1 to 3", "rank 1 to 3"]
    assert {row.unknown for row in result.impact} == {2}
    assert (result.impact[2].candidates, result.impact[3].selected) == (119, 101)
    assert [row.ratio.z is None for row in result.impact[::2]] == [True, False]
    assert "gender = f, exposure in rank 1 to 3 ." in words(result)


def test_labels_that_were_drawn_make_no_table() -> None:
    run, labels = ranked()
    drawn = labels.select("doc_id", group="gender", probability=pl.lit(0.5))[:60]
    result = evenrank.audit({"r": run}, labels=drawn, measures=MEASURE)
    assert result.impact == ()
    assert (result["r", MEASURE].mean, result["r", MEASURE].bounds) == (None, (0.0, 1.0))


def test_poles_that_nobody_named_are_noted_where_something_is_signed() -> None:
    run, labels = ranked()
    renamed = labels.with_columns(gender=pl.col("gender").replace({"f": "x", "m": "y"}))
    given: dict[str, Any] = {"labels": renamed, "group_column": "gender"}
    note = "no poles were named"
    assert note not in words(evenrank.audit({"r": run}, measures="ImpactRatio(group='x',pooled=True)@3", **given))
    assert note in words(evenrank.audit({"r": run}, measures="ARaB@3", **given))
