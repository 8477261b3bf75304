"""Judgements that were drawn: against all judgements, every sample, and the same done with pairs named as documents."""

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
from evenrank.auditing.judge_check import agreement, judge_strata
from evenrank.auditing.label_sample import Labelling
from evenrank.files import EvenrankError
from evenrank.stats.estimate import t_quantile
from given_data import rows_of
from given_data import write_rows as write

MEASURES = "P(rel=2)@5 SDCG(max_rel=3)@5"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[str, str], int]]:
    """A folder with two runs, texts, 90 drawn pairs with their grades and a judge; and the grades of all pairs."""
    folder = tmp_path_factory.mktemp("judged")
    rng = np.random.default_rng(4)
    grades: dict[tuple[str, str], int] = {}
    for name in ("a", "b"):
        lines = ""
        for q in range(30):
            for rank, d in enumerate(rng.permutation(12)[:8]):
                grades.setdefault((f"q{q}", f"d{d}"), int(rng.integers(0, 4)))
                lines += f"q{q} Q0 d{d} {rank + 1} {8 - rank} x\n"
        (folder / f"{name}.run").write_text(lines)
    (folder / "docs.tsv").write_text("".join(f"d{d}\ttext of {d}\n" for d in range(12)))
    (folder / "queries.tsv").write_text("".join(f"q{q}\tquery {q}\n" for q in range(30)))
    write_qrels(folder / "qrels.txt", grades)
    # A judge who is a grade too kind in half of the pairs, and has not seen every pair.
    judge = {pair: min(3, grade + int(rng.integers(0, 2))) for pair, grade in grades.items() if rng.random() < 0.95}
    write_qrels(folder / "judge.qrels", judge)
    texts = {"collection": folder / "docs.tsv", "queries": folder / "queries.tsv"}
    sample = evenrank.sample_labels([folder / "a.run", folder / "b.run"], measures=MEASURES, n=90, **texts)
    sample.write(folder / "todo.csv")
    fill(folder / "todo.csv", grades)
    return folder, grades


def write_qrels(path: Path, grades: dict[tuple[str, str], int]) -> None:
    path.write_text("".join(f"{q} 0 {d} {grade}\n" for (q, d), grade in grades.items()))


def fill(path: Path, grades: dict[tuple[str, str], int]) -> None:
    write(path, [{**row, "grade": grades[row["query_id"], row["doc_id"]]} for row in rows_of(path)])


def audited(folder: Path, qrels: object = "todo.csv", **how: Any) -> evenrank.AuditResult:
    given = folder / qrels if isinstance(qrels, str) else qrels
    return evenrank.audit([folder / "a.run", folder / "b.run"], qrels=given, baseline="a", **how)


def test_the_mean_over_all_samples_is_the_truth() -> None:
    run = {"q": {"a": 2.0, "b": 1.0}, "r": {"a": 2.0, "c": 1.0}}
    grades = {("q", "a"): 3, ("q", "b"): 1, ("r", "a"): 0, ("r", "c"): 2}
    qrels = {"q": {"a": 3, "b": 1}, "r": {"a": 0, "c": 2}}
    measures = ["P(rel=2)@2", "SDCG(max_rel=3)@2", "RBP(rel=1,p=0.5)"]
    whole = evenrank.audit(run, qrels=qrels, measures=measures)["run"]
    for measure in measures:
        estimates = []
        for chosen in itertools.combinations(grades, 2):
            # All four were drawn, and the first two have a grade: π = 2/4.
            rows = [(q, d, grades[q, d], 1.0) for q, d in chosen]
            rows += [(q, d, None, 1.0) for q, d in grades if (q, d) not in chosen]
            sample = pl.DataFrame(rows, schema=["query_id", "doc_id", "grade", "probability"], orient="row")
            estimates.append(evenrank.audit(run, qrels=sample, measures=measure)["run", measure].mean)
        assert np.mean(estimates) == pytest.approx(whole[measure].mean)
        assert np.std(estimates) > 0.05


def test_what_a_judge_says_and_saves(made: tuple[Path, dict[tuple[str, str], int]], snapshot: Any) -> None:
    folder, grades = made
    found = audited(folder, judge=folder / "judge.qrels")
    alone = audited(folder, None, judge=folder / "judge.qrels", measures=MEASURES)
    of_judge = found["b", "P(rel=2)@5"].from_labels
    # A pair that the judge has not graded counts as the mean of the others, by itself as not relevant.
    assert of_judge.guess_alone == pytest.approx(alone["b", "P(rel=2)@5"].mean, abs=0.05)
    assert of_judge.without_guess == pytest.approx(audited(folder)["b", "P(rel=2)@5"].from_labels.ci95)
    kind = {
        line.split()[0] + line.split()[2]: int(line.split()[3])
        for line in (folder / "judge.qrels").read_text().splitlines()
    }
    excess = np.mean([(kind[q + d] >= 2) - float(grade >= 2) for (q, d), grade in grades.items() if q + d in kind])
    assert found.judge.excess.ci95[0] < excess < found.judge.excess.ci95[1]
    texts = {f"d{d}": "she said so " * (d + 1) if d < 4 else "no word" for d in range(12)}
    described = audited(folder, judge=folder / "judge.qrels", collection=texts, measures="P(rel=2)@5").judge.strata
    assert [one.by for one in described] == ["rank", "ranker", "ranker", "length", "group"]
    assert found.table(full=True, width=120).replace(str(folder), "FOLDER") == snapshot
    # Alone, nothing is told.
    figure = alone["b", "P(rel=2)@5"]
    assert (figure.ci95, figure.vs_baseline.test.p) == (None, None)
    assert figure.vs_baseline.test.reason == "the judge is not checked"
    assert "Effectiveness is not checked" in alone.table()
    for audit in (alone, json.loads(alone.to_json(values=True))):
        with pytest.raises(EvenrankError, match="by a judge that nobody has checked"):
            evenrank.gate(audit, budget={"rule": [{"measure": "P(rel=2)@5", "at_least": 0.1}]}, run="b")


def test_a_gate_of_drawn_judgements(made: tuple[Path, dict[tuple[str, str], int]]) -> None:
    found = audited(made[0], judge=made[0] / "judge.qrels")
    rules = [{"measure": "P(rel=2)@5", "at_least": least} for least in (0.05, 0.95)]
    for audit in (found, json.loads(found.to_json(values=True))):
        rulings = evenrank.gate(audit, budget={"rule": rules}, run="b").rules
        assert [rule.outcome for rule in rulings] == ["holds", "violated"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda of: audited(of, measures="nDCG@10"), r"nDCG@10 cannot be had from a sample.*SDCG\(max_rel=3\)@10 can"),
        (lambda of: evenrank.sample_labels(of / "a.run", measures="R@5"), "R@5 cannot be had from a sample"),
        (lambda of: evenrank.sample_labels(of / "a.run", measures="P@5 ARaB@5"), "expected measures of groups, or of"),
        (lambda of: evenrank.sample_labels(of / "a.run", measures="P@5", n=40).labels({}), "pairs have grades, not"),
        (lambda of: audited(of, "qrels.txt", judge=of / "judge.qrels"), "expected judgements that were drawn beside"),
        (lambda of: audited(of, judge={"q0": {"other": 1}}), "it grades none of the pairs that could be drawn"),
        (lambda of: Labelling(str(of / "todo.csv"), ("0", "good"), "grade"), "expected whole numbers, found good"),
        (lambda of: Labelling(str(of / "todo.csv"), ("f", "m")), "holds pairs, which get grades"),
    ],
)
def test_what_cannot_be_had(made: tuple[Path, dict[tuple[str, str], int]], asked: Any, message: str) -> None:
    with pytest.raises(EvenrankError, match=message):
        asked(made[0])


def test_what_a_sample_of_judgements_does_not_tell(
    made: tuple[Path, dict[tuple[str, str], int]], tmp_path: Path
) -> None:
    folder, _ = made
    rows = rows_of(folder / "todo.csv")
    write(tmp_path / "bad.csv", [*rows[:3], {**rows[3], "grade": "good"}, *rows[4:]])
    with pytest.raises(EvenrankError, match="line 5: expected a whole number in the column grade, found good"):
        audited(folder, tmp_path / "bad.csv")
    # Without its card, that every pair could have been drawn is taken on trust.
    (tmp_path / "alone.csv").write_text((folder / "todo.csv").read_text())
    alone = audited(folder, tmp_path / "alone.csv", measures=MEASURES)
    assert alone["b", "P(rel=2)@5"].mean == pytest.approx(audited(folder)["b", "P(rel=2)@5"].mean)
    assert "taken on trust" in " ".join(alone.table().split())
    # A run with other documents has bounds alone; few judgements tell nothing.
    new = tmp_path / "new.run"
    new.write_text((folder / "a.run").read_text().replace(" d7 ", " other "))
    found = evenrank.audit(new, qrels=folder / "todo.csv")["new", "P(rel=2)@5"]
    assert found.mean is None
    assert 0 <= found.bounds[0] < found.bounds[1] <= 1
    write(tmp_path / "few.csv", [*rows[:20], *({**row, "grade": ""} for row in rows[20:])])
    (tmp_path / "few.csv.card.json").write_text((folder / "todo.csv.card.json").read_text())
    told = audited(folder, tmp_path / "few.csv")
    assert "Only 20 judgements: nothing is told of effectiveness" in " ".join(told.table().split())
    assert told["b", "P(rel=2)@5"].vs_baseline.test.reason.endswith("of those drawn bear on it, where 30 are needed")


def test_judging_pairs(made: tuple[Path, dict[tuple[str, str], int]], tmp_path: Path) -> None:
    rows = [{**row, "grade": ""} for row in rows_of(made[0] / "todo.csv")[:2]]
    assert list(rows[0]) == ["query_id", "query", "doc_id", "text", "grade", "probability"]
    write(tmp_path / "todo.csv", rows)
    judging = Labelling(str(tmp_path / "todo.csv"), ("0", "1", "2", "3"), "grade")
    ids, text = judging.document
    assert ids == f"{rows[0]['query_id']}  {rows[0]['doc_id']}"
    assert text == f"query {rows[0]['query_id'][1:]}\n{rows[0]['text']}"
    assert judging.meant("2") == "2"
    judging.label("2")
    assert [row["grade"] for row in rows_of(tmp_path / "todo.csv")] == ["2", ""]


@given(st.integers(0, 10**6))
def test_agreement_as_the_slow_version(seed: int) -> None:
    rng = np.random.default_rng(seed)
    judge, people, weight = rng.random(9) < 0.6, rng.random(9) < 0.5, rng.uniform(1, 5, 9)

    def kappa(keep: np.ndarray) -> float:
        w, j, p = (x[keep].astype(float) for x in (weight, judge, people))
        alike, first, second = (float(np.average(x, weights=w)) for x in (j == p, j, p))
        chance = first * second + (1 - first) * (1 - second)
        return (alike - chance) / (1 - chance) if chance < 1 else 0.0

    excess, agree, found = agreement(judge, people, weight)
    every = np.arange(9)
    assert found.mean == pytest.approx(kappa(every))
    assert excess.mean == pytest.approx(np.average(judge.astype(float) - people, weights=weight))
    assert agree.mean == pytest.approx(np.average(judge == people, weights=weight))
    without = np.array([kappa(every != left) for left in every])
    se = (8 / 9 * ((without - without.mean()) ** 2).sum()) ** 0.5
    width = 0.0 if found.ci95 is None else found.ci95[1] - found.ci95[0]
    assert (se == pytest.approx(0, abs=1e-9)) == (width < 1e-8)


def test_strata_of_a_judge_worked_by_hand() -> None:
    """Of the first the judge calls 12 of 20 too many relevant, of the others 2 of 20: +.5, with Welch's variance."""
    excess = np.repeat([1.0, 0.0, 1.0, 0.0], [12, 8, 2, 18])
    first = np.arange(40) < 20
    (one,) = judge_strata(excess, np.ones(40), [("rank", "first", first)])
    assert (one.excess, one.test.mean, one.test.n, one.test.verdict) == (0.6, pytest.approx(0.5), 20, "shown")
    assert one.test.mde == pytest.approx((t_quantile(38, 0.975) + t_quantile(38, 0.8)) * (0.33 / 19) ** 0.5, rel=0.02)
    # Pairs that were drawn half as often count twice; what is the same everywhere differs nowhere.
    weight = np.where(np.arange(40) < 12, 2.0, 1.0)
    heavy, halves = judge_strata(excess, weight, [("rank", "first", first), ("group", "even", np.arange(40) % 2 == 0)])
    assert heavy.excess == pytest.approx(24 / 32)
    assert heavy.test.mean == pytest.approx(24 / 32 - 0.1)
    assert (halves.test.mean, halves.test.verdict) == (pytest.approx(0.0), "no difference shown")


def test_a_run_that_nothing_was_drawn_for(made: tuple[Path, dict[tuple[str, str], int]], tmp_path: Path) -> None:
    """It has no figure, and nothing is said of the judge, who has none of it either; every pair judged is the truth."""
    folder, grades = made
    how: dict[str, Any] = {"judge": folder / "judge.qrels", "measures": "P(rel=2)@5"}
    texts: dict[str, Any] = {"collection": folder / "docs.tsv", "queries": folder / "queries.tsv"}
    for n in (149, 150):
        sample = evenrank.sample_labels([folder / "a.run"], measures="P(rel=2)@5", n=n, **texts)
        sample.write(tmp_path / f"{n}.csv")
        fill(tmp_path / f"{n}.csv", grades)
        other = evenrank.audit(folder / "b.run", qrels=tmp_path / f"{n}.csv", **how)
        assert other.given[0]["P(rel=2)@5"].mean is None
        keys = {finding.key for finding in other.findings}
        assert "pairs_not_drawn" in keys
        assert not {"judge_more", "judge_fewer", "judge_as_people"} & keys
    every = evenrank.audit(folder / "a.run", qrels=tmp_path / "150.csv", **how)
    relevant = [int(row["grade"]) >= 2 for row in rows_of(tmp_path / "150.csv")]
    assert every.given[0]["P(rel=2)@5"].mean == pytest.approx(sum(relevant) / len(relevant))
