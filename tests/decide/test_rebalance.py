"""A fairer order in memory: how the strength is chosen, on which queries, and what is said of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank.decide.bound import Bound, bound_result
from evenrank.decide.strength import GRID, UnmetError
from evenrank.decide.validation_queries import ValidationQueries
from evenrank.files import EvenrankError, Run
from evenrank.files.types import Array
from small_rebalance import drawn, mean_signed

RUN, GROUPS, QRELS = drawn(40, 20, 7)
HALF = [query for query in RUN.queries if ValidationQueries(None, 0).chosen(pl.Series([query]), None)[0]]
OTHERS = [query for query in RUN.queries if query not in HALF]


def at(method: str, strength: float, **options: object) -> Run:
    return evenrank.rebalance(RUN, method=method, strength=strength, scores=GROUPS, **options).run  # type: ignore[arg-type]


def test_the_least_strength_that_meets() -> None:
    found = evenrank.rebalance(RUN, method="neutral", max_bias="ARaB@10 <= 0.2", scores=GROUPS, qrels=QRELS)
    assert 0 < found.strength < 1
    assert abs(mean_signed(found.run, GROUPS, HALF)) <= 0.2
    assert found.outcomes[0].validation == pytest.approx(abs(mean_signed(found.run, GROUPS, HALF)))
    assert found.outcomes[0].others == pytest.approx(abs(mean_signed(found.run, GROUPS, OTHERS)))
    assert abs(mean_signed(at("neutral", found.strength - 0.001), GROUPS, HALF)) > 0.2


def test_strengths_have_the_figures_of_an_audit_of_the_validation_queries() -> None:
    bounds = {"max_bias": "ARaB@10 <= 50%", "min_utility": "P@5 >= 80%"}
    judged = QRELS.filter(pl.col("query_id").is_in(HALF))
    found = evenrank.rebalance(RUN, method="shift", scores=GROUPS, qrels=QRELS, **bounds)  # type: ignore[arg-type]
    assert [one.bound.text for one in found.outcomes] == ["ARaB@10 <= 50%", "P@5 >= 80%"]
    asked = 0.5 * abs(mean_signed(RUN, GROUPS, OTHERS))
    assert found.outcomes[0].asked == pytest.approx(asked)
    said = next(one.text for one in found.findings if one.subject == "ARaB@10 <= 50%")
    assert (
        f", where 50% of the run's own is {asked:.3f} (one-sided 95% limits, as of a gate;".replace("0.", ".") in said
    )
    assert said.endswith(f" at strength {found.strength:g}).")
    strengths = found.strengths
    assert strengths is not None
    assert (str(strengths.utility), str(strengths.bias)) == ("P@5", "ARaB@10")
    assert [point.strength for point in strengths.points] == sorted({*(s / 1000 for s in GRID), found.strength})
    for one in strengths.points[::6]:
        made = at("shift", one.strength, validation_queries=HALF)
        half = Run.from_table(made.table.filter(pl.col("query_id").is_in(HALF)))
        own = evenrank.audit({"r": half}, scores=GROUPS, qrels=judged, measures="P@5 ARaB@10")["r"]
        assert (one.utility, one.bias) == pytest.approx((own["P@5"].mean, own["ARaB@10"].mean), abs=1e-12)
    given = evenrank.rebalance(
        RUN, max_bias="ARaB@10 <= 90%", scores=GROUPS, validation_queries=["q0", "q1", "not there"]
    )
    assert given.changes.queries == 38
    assert any("2 queries (those given); figures are of the other 38" in note for note in given.notes)
    # Without judgements what it costs is not known.
    assert given.strengths is not None
    assert {point.utility for point in given.strengths.points} == {None}
    assert given.findings[1].level == "cannot be told"


def test_the_choice_does_not_look_at_other_queries() -> None:
    judged = QRELS.filter(pl.col("query_id").is_in(HALF))
    unseen = [pl.DataFrame([(q, f"unseen{i}", 1)], judged.schema, orient="row") for i, q in enumerate(OTHERS)]
    changed = pl.concat([judged, *unseen])
    own, how = RUN.table, {"method": "shift", "max_bias": "ARaB@10 <= 0.2", "scores": GROUPS}
    # In the other queries, the documents are in the opposite order.
    turned = own.with_columns(score=pl.when(pl.col("query_id").is_in(HALF)).then("score").otherwise(-pl.col("score")))
    first = evenrank.rebalance(RUN, qrels=QRELS, **how)  # type: ignore[arg-type]
    second = evenrank.rebalance(Run.from_table(turned.drop("rank")), qrels=changed, **how)  # type: ignore[arg-type]
    assert (first.strength, first.learnt) == (second.strength, second.learnt)
    of_tuning = [one.run.table.filter(pl.col("query_id").is_in(HALF))["doc_id"] for one in (first, second)]
    assert of_tuning[0].equals(of_tuning[1])
    # A change of the validation queries does matter.
    only = Run.from_table(own.with_columns(score=-pl.col("score")).drop("rank"))
    assert evenrank.rebalance(only, method="shift", scores=GROUPS, strength=0.1).learnt != first.learnt


def said(found: Any) -> str:
    """All that is said of a rebalanced run."""
    findings = [f"{one.place} {one.key} of {one.subject} ({one.level}): {one.text}" for one in found.findings]
    return "\n".join([found.table(full=True), *findings, *found.notes])


def test_figures_are_those_of_an_audit_of_the_other_queries(snapshot: Any) -> None:
    found = evenrank.rebalance(RUN, method="detconstsort", max_bias="ARaB@10 <= 0.3", scores=GROUPS, qrels=QRELS)
    texts = pl.DataFrame({"query_id": OTHERS, "text": OTHERS})
    own = evenrank.audit(
        {"drawn": RUN, "rebalanced": found.run}, scores=GROUPS, qrels=QRELS, queries=texts, only_queries=True,
        baseline="drawn", measures="nDCG@10 ARaB@10 NFaiRR@10",
    )  # fmt: skip
    assert found.audit is not None
    for name in ("drawn", "rebalanced"):
        for measure in ("nDCG@10", "ARaB@10", "NFaiRR@10"):
            first, second = found.audit[name, measure], own[name, measure]
            assert (first.mean, first.ci95, first.n) == (second.mean, second.ci95, second.n)
    compared = own["rebalanced", "nDCG@10"].vs_baseline
    assert compared is not None
    assert found.changes.queries == len(OTHERS)
    done, answer, bound = found.findings
    before, after = (one.table.filter(pl.col("query_id").is_in(OTHERS)) for one in (RUN, found.run))
    first = (one.filter(pl.col("rank") <= 10) for one in (after, before))
    entered = next(first).join(next(first), on=["query_id", "doc_id"], how="anti").height
    assert entered > 0
    assert done.text.endswith(f"; {entered} enter the first 10.")
    assert (answer.level, answer.estimate) == (compared.test.verdict, compared.test)
    assert bound.estimate is not None
    assert bound.estimate.mean == found.outcomes[0].others
    assert said(found) == snapshot


NOISE, ONES = np.random.default_rng(0).normal(0, 0.1, 400), np.ones(400)
SPREAD = np.random.default_rng(1).random(400)


@pytest.mark.parametrize(
    ("bound", "new", "base", "verdict"),
    [
        ("ARaB@10 <= 0.5", NOISE + 0.2, ONES, "holds"),
        ("ARaB@10 <= 0.5", NOISE + 0.5, ONES, "not shown"),
        ("ARaB@10 <= 0.5", NOISE - 0.9, ONES, "violated"),
        ("ARaB@10 <= 0.5", np.array([np.nan]), np.array([1.0]), "not shown"),
        ("ARaB@10 <= 50%", 0.2 * (0.5 + NOISE), 0.5 + NOISE, "holds"),
        ("ARaB@10 <= 50%", -0.8 * (0.5 + NOISE), 0.5 + NOISE, "violated"),
        # Paired: each query's value is 99% of its own, whatever the spread over queries.
        ("nDCG@10 >= 95%", 0.99 * SPREAD, SPREAD, "holds"),
        ("nDCG@10 >= 95%", 0.9 * SPREAD, SPREAD, "violated"),
        # A gate's: 15 of 400 queries that lose all would be within the margin, 40 queries show nothing.
        ("nDCG@10 >= 95%", 0.99 * SPREAD[:40], SPREAD[:40], "not shown"),
    ],
)
def test_bounds_on_other_queries(bound: str, new: Array, base: Array, verdict: str) -> None:
    asked = Bound.parse(bound, "max_bias" if bound.startswith("ARaB") else "min_utility")
    found = bound_result(asked, 0.1, new, base, 2.0 if bound.startswith("ARaB") else 1.0)
    assert found.verdict == verdict
    if found.limits is not None and "%" not in bound:
        assert found.others == pytest.approx(abs(new.mean()))
        assert (found.limits[1] <= 0.5, found.limits[0] > 0.5) == (verdict == "holds", verdict == "violated")
    if found.limits is not None and bound.startswith("nDCG"):
        assert found.others == pytest.approx(new.mean())
        assert (found.limits[0] > 0.95 * base.mean()) == (verdict == "holds")


def test_lists_close_up_over_unlabelled_documents_with_and_without_qrels() -> None:
    labels = {doc: "mf"[i % 2] for i, doc in enumerate(GROUPS.table["doc_id"].to_list()) if i % 3}
    options = {"labels": labels, "method": "detconstsort", "strength": 0.5}
    alone, judged = (evenrank.rebalance(RUN, qrels=qrels, **options).to_dict() for qrels in (None, QRELS))  # type: ignore[arg-type]
    own = evenrank.audit(RUN, labels=labels, unknown="skip", measures="Share(group='m')@10").runs[0]
    key = "Share(group='m')@10"
    assert alone["figures"][key]["run"]["mean"] == judged["figures"][key]["run"]["mean"] == own[key].mean


def test_an_order_that_changes_no_querys_effectiveness_says_so(snapshot: Any) -> None:
    run = {f"q{q}": {"a": 3, "b": 2, "c": 1} for q in range(4)}
    options: dict[str, Any] = {"target": {"m": 0.5, "f": 0.5}, "labels": {"a": "m", "b": "m", "c": "f"}}
    qrels = {f"q{q}": {"a": 1} for q in range(4)}
    made = evenrank.rebalance(run, method="detconstsort", strength=1, qrels=qrels, **options)
    assert made.findings[1].text.endswith(" with no change in nDCG@10.")
    assert said(made) == snapshot


def test_prefixes_that_miss_what_is_asked_are_counted() -> None:
    # All documents of the lists are of m: f cannot have its minimum.
    labels = {"other": "f", **dict.fromkeys(GROUPS.table["doc_id"].to_list(), "m")}
    found = evenrank.rebalance(RUN, method="fair", protected="f", strength=1, labels=labels)
    assert (found.findings[0].text, found.page().next) == ("Unchanged, no document moved.", ())
    assert any("miss what is asked of every prefix" in note for note in found.notes)


@pytest.mark.parametrize("method", ["fair", "detconstsort"])
def test_ranks_with_a_promise_are_chosen_from_a_deeper_pool(method: str) -> None:
    """30 documents, those of f from rank 25 on: the first 20 cannot have any of them unless the pool is deeper."""
    documents = [f"d{rank:02}" for rank in range(1, 31)]
    run = {"q": {doc: 31.0 - rank for rank, doc in enumerate(documents, start=1)}}
    labels = {doc: "m" if rank < 25 else "f" for rank, doc in enumerate(documents, start=1)}
    options = {"labels": labels, "method": method, "strength": 1, "target": "uniform"}
    options |= {"protected": "f"} if method == "fair" else {}
    made = evenrank.rebalance(run, depth=100, top=20, **options)  # type: ignore[arg-type]
    order = made.run.table["doc_id"].to_list()
    risen = [doc for doc in order[:20] if labels[doc] == "f"]
    # FA*IR's table of 20 asks for 6 at p = .5; a half of 20 is 10, of which there are 6.
    assert risen == documents[24:]
    assert order[20:] == [doc for doc in documents if doc not in order[:20]]
    assert made.settings["top"] == 20
    shallow = evenrank.rebalance(run, depth=20, **options)  # type: ignore[arg-type]
    assert shallow.run.table["doc_id"].to_list() == documents


SCORES = {"scores": GROUPS}
BAD = [
    ({"strength": 0.5}, "expected `collection`, `scores` or `labels`"),
    ({**SCORES}, "expected `strength`, `max_bias` or `min_utility`"),
    ({**SCORES, "strength": 0.5, "max_bias": "ARaB@10 <= 1"}, "`strength`: not with `max_bias`"),
    (
        {**SCORES, "max_bias": "ARaB@10 <= 0.2", "queries": {"q0": "t"}, "only_queries": True},
        "expected queries to choose on and others to report on, found",
    ),
    ({**SCORES, "strength": 1.5}, "`strength`: expected a number from 0 to 1, found 1.5"),
    ({**SCORES, "strength": 0.5, "depth": 0}, "`depth`: expected 1 or more"),
    ({**SCORES, "strength": 0.5, "method": "magic"}, "`method`: expected neutral, fair"),
    ({**SCORES, "strength": 0.5, "protected": "f"}, "`protected` needs `method='fair'`"),
    ({**SCORES, "strength": 0.5, "only_queries": True}, "`only_queries` needs `queries`"),
    ({**SCORES, "strength": 0.5, "queries": {"q1": "t"}}, "`queries` needs `only_queries`"),
    ({**SCORES, "strength": 0.5, "queries": {"z": "t"}, "only_queries": True}, "`only_queries` leaves none of its 40"),
    ({**SCORES, "strength": 0.5, "top": 20}, "`top` needs `method='fair'` or `method='detconstsort'`"),
    ({**SCORES, "strength": 1, "method": "detconstsort", "top": 101}, "`top`: expected 100 at most, the `depth`"),
    ({**SCORES, "strength": 0.5, "method": "fair", "protected": "x"}, "`protected`: expected m or f, found 'x'"),
    ({**SCORES, "strength": 0.5, "method": "fair", "alpha": 2}, "`alpha`: expected a number from 0.001 to 0.5"),
    ({**SCORES, "strength": 0.5, "method": "shift", "per": "word"}, "`per`: expected group or magnitude, found 'word'"),
    ({**SCORES, "strength": 0.5, "missing": "guess"}, "`missing`: expected error, skip or neutral, found 'guess'"),
    ({**SCORES, "strength": 0.5, "labels": {"d1": "m"}}, "`labels`: not with `scores`"),
    ({**SCORES, "strength": 0.5, "validation_queries": ["q1"]}, "`validation_queries`: nothing is chosen"),
    ({**SCORES, "min_utility": "nDCG@10 >= 98%"}, "`min_utility` needs `qrels`"),
    ({**SCORES, "max_bias": "ARaB@10 < 1"}, '`max_bias`: expected a bound such as "ARaB@10 <= 0.02"'),
    ({**SCORES, "max_bias": "ARaB@10 <= much"}, "`max_bias`: expected a number in 'ARaB@10 <= much'"),
    ({**SCORES, "max_bias": "ARaB@10 <= nan"}, "`max_bias`: expected a number in"),
    ({**SCORES, "max_bias": "nDCG@10 >= 1"}, "`max_bias`: expected a measure of bias"),
    ({**SCORES, "min_utility": "ARaB@10 >= 1", "qrels": QRELS}, "`min_utility`: expected a measure of effectiveness"),
    (
        {**SCORES, "max_bias": "DeltaAPRF <= 1", "qrels": QRELS},
        "`max_bias`: expected a measure that is a mean over queries",
    ),
    ({**SCORES, "max_bias": "ARab@10 <= 1"}, "no measure 'ARab@10'"),
    (
        {**SCORES, "max_bias": "ARaB@10 <= 1", "validation_queries": ["x"]},
        "expected queries to choose on and others to report on, found 0 and 40",
    ),
    ({**SCORES, "max_bias": "ARaB@10 <= 1", "validation_queries": RUN.queries}, "found 40 and 0: divide them by"),
    ({**SCORES, "strength": 0.5, "qrels": {"x": {"d1": 1}}}, "run drawn: none of its 40 queries is judged in `qrels`"),
    ({**SCORES, "max_bias": "ARaB@10 <= 1", "qrels": {HALF[0]: {"d1": 1}}}, "the qrels judge none of"),
    (
        {**SCORES, "min_utility": "nDCG@10 >= 1", "qrels": {OTHERS[0]: {"d1": 1}}},
        "`min_utility`: the qrels judge none of",
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(EvenrankError) as error:
        evenrank.rebalance(RUN, **options)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_methods_that_need_poles_say_so() -> None:
    three = {f"d{i}": "abc"[i % 3] for i in range(80)}
    options = {"method": "shift", "per": "magnitude", "strength": 0.5, "labels": three}
    with pytest.raises(EvenrankError, match=r"works on the difference of two groups: of which\? `poles='A,B'` says"):
        evenrank.rebalance(RUN, **options)  # type: ignore[arg-type]
    for method in ("neutral", "fair", "detconstsort", "shift"):
        assert evenrank.rebalance(RUN, method=method, strength=1, labels=three, qrels=QRELS).audit is not None
    assert evenrank.rebalance(RUN, poles="a,b", **options).strength == 0.5  # type: ignore[arg-type]
    found = evenrank.rebalance(RUN, method="shift", per="magnitude", strength=0.1, scores=GROUPS)
    offset = "shift per magnitude: offset -0.910239 for each unit by which m outweighs f (learnt on the"
    assert offset in " ".join(found.notes)


def test_judged_queries_that_the_run_lacks_count_0_as_in_a_gate() -> None:
    judged = pl.concat([QRELS, pl.DataFrame([("x", "d1", 1), ("y", "d1", 1)], QRELS.schema, orient="row")])
    found = evenrank.rebalance(RUN, strength=0.3, scores=GROUPS, qrels=judged)
    own = evenrank.audit({"r": RUN}, qrels=judged, measures="nDCG@10")["r", "nDCG@10"]
    assert found.audit is not None
    assert (found.audit["drawn", "nDCG@10"].mean, found.audit["drawn", "nDCG@10"].n) == (own.mean, 42)
    assert found.warnings[0] == "Judged queries missing: drawn lacks 2 of 42 (counted 0; skipped for bias)."
    bounds: dict[str, Any] = {"min_utility": "nDCG@10 >= 0.1", "validation_queries": ["x", *HALF]}
    kept = evenrank.rebalance(RUN, scores=GROUPS, qrels=judged, **bounds)
    sizes = [one["drawn", "nDCG@10"].n for one in (kept.validation, kept.audit)]  # type: ignore[index]
    assert sizes == [len(HALF) + 1, len(OTHERS) + 1]
    assert kept.outcomes[0].validation == pytest.approx(kept.validation["rebalanced", "nDCG@10"].mean)  # type: ignore[index]


def test_the_queries_given_can_be_the_only_ones() -> None:
    """As if the run and the judgements had no others: those of `validation_queries` are chosen from them."""
    some = dict.fromkeys((*HALF[:6], *OTHERS[:6]), "text")
    options = {"scores": GROUPS, "max_bias": "ARaB@10 <= 80%", "validation_queries": HALF}
    made = evenrank.rebalance(RUN, qrels=QRELS, queries=some, only_queries=True, **options)  # type: ignore[arg-type]
    alone = replace(RUN, table=RUN.table.filter(pl.col("query_id").is_in([*some])))
    own = evenrank.rebalance(alone, qrels=QRELS.filter(pl.col("query_id").is_in([*some])), **options)  # type: ignore[arg-type]
    assert made.run.table.equals(own.run.table)
    assert made.to_dict()["figures"] == own.to_dict()["figures"]
    assert "restricted to the 12 queries given" in " ".join(made.notes)


def test_a_lean_that_turned_is_said_first(snapshot: Any) -> None:
    found = evenrank.rebalance(RUN, method="shift", strength=0.9, scores=GROUPS, qrels=QRELS)
    assert found.audit is not None
    before, after = (found.audit[name, "ARaB@10"].mean for name in ("drawn", "rebalanced"))
    assert before > 0 > -before > after  # type: ignore[operator]
    assert [one.text for one in found.findings if one.key == "other_side"] == list(found.warnings)
    assert said(found) == snapshot
    kept = evenrank.rebalance(RUN, method="shift", min_utility="nDCG@10 >= 10%", scores=GROUPS, qrels=QRELS)
    # The greatest strength keeps this too.
    assert kept.strength < 0.5
    assert abs(mean_signed(kept.run, GROUPS, HALF)) < abs(mean_signed(RUN, GROUPS, HALF)) / 4
    assert evenrank.rebalance(RUN, strength=0, scores=GROUPS, qrels=QRELS).warnings == ()


def test_a_bound_met_by_the_run_itself(snapshot: Any) -> None:
    found = evenrank.rebalance(RUN, max_bias="ARaB@10 <= 5", scores=GROUPS, qrels=QRELS)
    assert found.strength == 0
    assert said(found) == snapshot
    # Equal figures side by side say nothing.
    assert "before" not in found.table()


def test_lists_that_have_what_is_asked_are_named_as_such() -> None:
    """Of two lists, f are last in one; in the other m and f take turns already."""
    lists = {"apart": "mmmmff", "mixed": "mfmmfm"}
    run = {q: {f"{q}{i}": float(-i) for i in range(6)} for q in lists}
    labels = {f"{q}{i}": group for q, groups in lists.items() for i, group in enumerate(groups)}
    how: dict[str, Any] = {"method": "detconstsort", "strength": 1, "target": "candidates"}
    assert evenrank.rebalance(run, labels=labels, **how).findings[0].text == (
        "Moved 3 of 12 documents in the first 100 ranks, in 1 of 2 queries. The others have"
        " what is asked of them already."
    )
    # Combinations have no measure of the first ranks alone, and what was done is said all the same.
    pairs = pl.DataFrame({"doc_id": list(labels), "g": list(labels.values()), "h": ["x", "y"] * 6})
    both = evenrank.rebalance(run, labels=pairs, group_column=["g", "h"], intersect=True, **how)
    assert [one.key for one in both.page().said("answer")] == ["moved_where_needed", "not_measured"]
    assert both.page().next == (("evenrank audit", "both runs"),)


def test_no_output_replaces_an_input(tmp_path: Path) -> None:
    evenrank.write_run(RUN, tmp_path / "a.run")
    before = (tmp_path / "a.run").read_bytes()
    with pytest.raises(EvenrankError, match="it is an input"):
        evenrank.rebalance(tmp_path / "a.run", strength=1, scores=GROUPS, out=tmp_path / "a.run")
    assert (tmp_path / "a.run").read_bytes() == before


def test_the_least_biased_strength_that_keeps() -> None:
    found = evenrank.rebalance(RUN, method="neutral", min_utility="nDCG@10 >= 90%", scores=GROUPS, qrels=QRELS)
    qrels = QRELS.filter(pl.col("query_id").is_in(HALF))

    def kept(strength: float) -> float:
        chosen = [one.table.filter(pl.col("query_id").is_in(HALF)) for one in (at("neutral", strength), RUN)]
        first, second = (evenrank.audit({"r": one}, qrels=qrels, measures="nDCG@10")["r", "nDCG@10"] for one in chosen)
        return float(np.divide(first.mean, second.mean))  # type: ignore[arg-type]

    assert kept(found.strength) >= 0.9
    keeping = [step / 20 for step in range(21) if kept(step / 20) >= 0.9]
    assert 0 < len(keeping) < 21
    least = min(abs(mean_signed(at("neutral", strength), GROUPS, HALF)) for strength in keeping)
    assert abs(mean_signed(found.run, GROUPS, HALF)) <= least + 1e-12


def test_both_bounds() -> None:
    for bounds, message in (
        ({"max_bias": "ARaB@10 <= 0.15", "min_utility": "nDCG@10 >= 100%"}, "ARaB@10 <= 0.15 and nDCG@10 >= 100%"),
        ({"max_bias": "NFaiRR@10 >= 1.5"}, "NFaiRR@10 >= 1.5 .* nearest tried is NFaiRR@10 .* at"),
    ):
        with pytest.raises(UnmetError, match=f"no strength of neutral reaches {message}"):
            evenrank.rebalance(RUN, scores=GROUPS, qrels=QRELS, **bounds)  # type: ignore[arg-type]
    labels = {doc: "mf"[row % 3 == 0] for row, doc in enumerate(GROUPS.table["doc_id"].to_list())}
    with pytest.raises(UnmetError, match=r"; no document is neutral: try fair, detconstsort or shift$"):
        evenrank.rebalance(RUN, labels=labels, qrels=QRELS, max_bias="ARaB@10 <= 1%")
    alone = evenrank.rebalance(RUN, max_bias="ARaB@10 <= 0.2", scores=GROUPS, qrels=QRELS)
    both = evenrank.rebalance(RUN, max_bias="ARaB@10 <= 0.2", min_utility="nDCG@10 >= 50%", scores=GROUPS, qrels=QRELS)
    assert alone.strength == both.strength
    assert [found.bound.text for found in both.outcomes] == ["ARaB@10 <= 0.2", "nDCG@10 >= 50%"]
