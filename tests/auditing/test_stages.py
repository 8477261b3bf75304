"""Stages of a pipeline: the sum over what the candidates hold and what each stage adds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank
from evenrank import AuditResult, EvenrankError
from evenrank.auditing.tables import stages_terminal
from slow_inference import slow_compare

TEXTS = {"m": "he and his father", "f": "she and her mother", "n": "a stone bridge", "b": "the woman and the man"}
COLLECTION = {f"{kind}{i}": f"{text} {i}" for i in range(4) for kind, text in TEXTS.items()}
SIDE = {"m": 1, "f": -1, "n": 0, "b": 0}
MEASURES = "ARaB(magnitude='bool')@3 NFaiRR@3 |ARaB(magnitude='bool')|@3"
LEAN = "ARaB(magnitude='bool')@3"

STAGES = (
    "stages_hold",
    "retrieval_not_shown",
    "stage_adds",
    "stage_not_shown",
    "stage_by_ties",
    "stage_changes_nothing",
)


def run(seed: int, queries: range, towards: str = "", documents: int = 12) -> dict[str, dict[str, float]]:
    """Random candidates of each query (those of its number), the group ``towards`` more often above."""
    found = {}
    for query in queries:
        docs = np.random.default_rng(query).permutation(sorted(COLLECTION))[:12]
        rng = np.random.default_rng([seed, query])
        scores = {str(doc): float(rng.random() + (doc[0] == towards) * 0.5) for doc in docs}
        kept = sorted(scores, key=lambda doc: -scores[doc])[:documents]
        found[f"q{query}"] = {doc: scores[doc] for doc in kept}
    return found


FIRST, SECOND, THIRD = run(1, range(32), "f"), run(2, range(32), "m"), run(3, range(2, 32), "m", 5)
RELEVANT = {query: dict.fromkeys(list(docs)[::3], 1) for query, docs in FIRST.items()}


def audit(**settings: Any) -> AuditResult:
    return evenrank.audit(collection=COLLECTION, measures=settings.pop("measures", MEASURES), **settings)


def lean(order: list[str]) -> float:
    sides = [SIDE[doc[0]] for doc in order]
    return sum(sum(sides[:t]) / t for t in (1, 2, 3)) / 3


def leans(of: dict[str, dict[str, float]], queries: list[str]) -> list[float]:
    return [lean(sorted(of[query], key=lambda doc: -of[query][doc])) for query in queries]


def test_the_sum_is_that_of_plain_loops() -> None:
    stages = audit(stages={"A": FIRST, "B": SECOND, "C": THIRD}).stages
    assert stages is not None
    assert stages.names == ("A", "B", "C")
    of = stages.measures[LEAN]
    queries = [f"q{number}" for number in range(2, 32)]
    assert of.n == 30
    held = [float(np.mean([SIDE[doc[0]] for doc in FIRST[query]])) for query in queries]
    values = [held, *(leans(one, queries) for one in (FIRST, SECOND, THIRD))]
    means = [float(np.mean(one)) for one in values]
    assert of.candidates == pytest.approx(means[0])
    assert [step.stage for step in of.steps] == ["A", "B", "C"]
    assert [step.figure for step in of.steps] == pytest.approx(means[1:])
    assert of.total == pytest.approx(means[3])
    for step, before, after in zip(of.steps, values, values[1:], strict=False):
        difference = np.array(after) - np.array(before)
        assert step.added == pytest.approx(difference.mean())
        assert step.test.p == pytest.approx(slow_compare(difference.tolist())[0], rel=1e-6)
    # Planted: the first leans to f, what comes after it to m.
    assert of.steps[0].added < -0.1
    assert of.steps[1].added > 0.1
    swapped = audit(stages={"B": SECOND, "A": FIRST, "C": THIRD}).stages
    assert swapped is not None
    assert swapped.measures[LEAN].steps[0].added > 0.1
    assert swapped.measures[LEAN].total == of.total


EVERY = f"{MEASURES} DeltaAPRF |DeltaAPRF| AbsARaB@3 RaB@3 FaiRR@5"


@pytest.mark.parametrize("third", [THIRD, run(3, range(32), "m", 5)])
def test_every_measure_adds_up_to_the_figure_of_an_audit_of_its_own(third: dict[str, dict[str, float]]) -> None:
    runs = {"A": FIRST, "B": SECOND, "C": third}
    stages = audit(stages=runs, qrels=RELEVANT, measures=EVERY).stages
    assert stages is not None
    common = [query for query in FIRST if query in third]
    alone = audit(
        runs={name: {query: one[query] for query in common} for name, one in runs.items()},
        qrels={query: RELEVANT[query] for query in common},
        measures=EVERY,
        background={query: FIRST[query] for query in common},
    )
    wanted = [key for key in alone["A"].figures if key != "nDCG@10"]
    # An absolute value of random orders is drawn over all queries: there is none of some.
    partial = ["|DeltaAPRF|"] if third is not THIRD else [key for key in wanted if key.startswith("|")]
    wanted = [key for key in wanted if key not in partial]
    assert list(stages.measures) == wanted
    for key, of in stages.measures.items():
        assert of.candidates + sum(step.added for step in of.steps) == pytest.approx(of.total, abs=1e-12)
        if key == "DeltaAPRF":  # of queries by pole, which are others in each run
            continue
        assert [step.figure for step in of.steps] == pytest.approx([alone[name, key].mean for name in runs]), key
        drawn = 0.02 if key.startswith("AbsARaB") else 1e-9
        assert of.candidates == pytest.approx(alone["random", key].mean, abs=drawn), key


def test_names_of_given_runs_give_the_same() -> None:
    stages = {"A": FIRST, "B": SECOND}
    ways = [
        audit(stages=stages),
        audit(runs=stages, stages=["A", "B"]),
        audit(runs={"other": THIRD, **stages}, stages=("A", "B"), background=FIRST),
        audit(runs={"B": SECOND}, stages={"A": FIRST, "C": SECOND}),
    ]
    values = [way.to_dict()["stages"]["measures"][LEAN]["steps"] for way in ways]  # type: ignore[index]
    assert values[1] == values[0]
    for value in values[2:]:  # queries may come in another order, and so do their draws
        assert [step["added"] for step in value] == pytest.approx([step["added"] for step in values[0]])
    assert [way.baseline for way in ways] == ["A", "A", "A", "A"]
    assert list(ways[3])[:3] == ["A", "C", "B"]
    assert audit(stages=stages, baseline="B").baseline == "B"
    plain = audit(runs=stages)
    assert plain.stages is None
    assert "stages" not in plain.to_dict()


def test_labels_with_unknown_documents_add_up() -> None:
    known = {doc: doc[0] for doc in COLLECTION if doc[-1] != "3"}
    result = evenrank.audit(
        stages={"A": FIRST, "B": SECOND},
        labels=known,
        neutral=["n", "b"],
        poles="m,f",
        unknown="skip",
        measures="ARaB@3 NFaiRR@3",
    )
    assert result.stages is not None
    assert list(result.stages.measures) == ["NFaiRR@3", "ARaB@3"] or set(result.stages.measures) == {
        "ARaB@3",
        "NFaiRR@3",
    }
    for key, of in result.stages.measures.items():
        assert of.candidates + sum(step.added for step in of.steps) == pytest.approx(of.total)
        assert [step.figure for step in of.steps] == pytest.approx([result[name, key].mean for name in "AB"])
        for step in of.steps:
            # Of some documents alone nothing is told of the stage.
            assert (step.test.ci95, step.test.verdict) == (None, "cannot be told")
            assert step.test.why == "the figures are of the labelled documents alone"

    bounds = evenrank.audit(
        stages={"A": FIRST, "B": SECOND}, labels=known, poles="m,f", unknown="bounds", measures="ARaB@3"
    )
    assert bounds.stages is not None
    assert bounds.stages.measures == {}
    assert "Stages" not in bounds.table(full=True)


def test_words_and_table() -> None:
    result = audit(stages={"A": FIRST, "B": SECOND})
    assert result.stages is not None
    of = result.stages.measures[LEAN]
    second = of.steps[1]
    said = [(one.key, one.subject, one.estimate) for one in result.findings if one.key in STAGES]
    tests = [of.retrieval.test, *(step.test for step in of.steps)] if of.retrieval is not None else []
    assert said == [*zip(("retrieval_not_shown", "stage_adds", "stage_adds"), "AAB", tests, strict=True)]
    lines = result.table(full=True, width=100).split("\n")
    start = next(place for place, line in enumerate(lines) if line.startswith("Stages: "))
    assert max(map(len, lines[start : start + 12])) <= 100
    row = next(line for line in lines[start:] if line.startswith("  B "))
    assert row.split()[1] == f"{second.added:+.4f}"


def test_a_stage_that_copies_its_input_changes_nothing() -> None:
    stages = audit(stages={"A": FIRST, "B": FIRST}, qrels=RELEVANT, measures=EVERY).stages
    assert stages is not None
    for key, of in stages.measures.items():
        copied = of.steps[1]
        assert (copied.equal, copied.added, copied.test.shown) == (True, 0, False), key
        assert not of.steps[0].equal, key
    assert stages.measures[LEAN].steps[0].test.shown


def test_a_stage_whose_changes_cancel_out_does_change_something() -> None:
    """m before f in one query becomes f before m, and the reverse in the other: a mean of 0."""
    before = {"1": {"m0": 2.0, "f0": 1.0}, "2": {"f0": 2.0, "m0": 1.0}}
    stages = audit(stages={"A": before, "B": {"1": before["2"], "2": before["1"]}}, measures="RaB@1").stages
    assert stages is not None
    of = stages.measures["RaB@1"]
    assert (of.steps[1].added, of.steps[1].equal) == (0, False)


def test_documents_that_the_stage_before_lacks_are_noted() -> None:
    changed = {query: {**docs, "m0": 9.0} for query, docs in SECOND.items()}
    new = sum("m0" not in docs for docs in SECOND.values())
    total = sum(map(len, changed.values()))
    assert new > 1
    note = (
        f"B: {new} of its {total} documents are not among those of A, the stage before: what they bring counts as"
        " added by B."
    )
    assert note in audit(stages={"A": FIRST, "B": changed}).notes
    assert not any("stage before" in text for text in audit(stages={"A": FIRST, "B": SECOND, "C": THIRD}).notes)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stages": {"A": FIRST}}, "`stages`: expected two or more, found 1"),
        ({"runs": {"A": FIRST}, "stages": ["A", "B"]}, "`stages`: no run 'B' (the runs are A)"),
        ({"runs": {"A": FIRST}, "stages": ["A", "A"]}, "`stages`: expected each run once, found A, A"),
        ({"runs": {"A": FIRST}, "stages": "A"}, "`stages`: expected a dict or a list of strings, found 'A'"),
        (
            {"runs": {"A": FIRST}, "stages": {"A": FIRST, "B": SECOND}},
            "`stages`: there is another run named 'A': name the stage or the run anew",
        ),
        ({"runs": {}}, "an audit needs at least one run"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EvenrankError) as caught:
        audit(**settings)
    assert str(caught.value) == message


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evenrank: Any) -> None:
    import evenrank as library

    monkeypatch.chdir(tmp_path)
    for name, of in (("a.run", FIRST), ("b.run", SECOND)):
        library.write_run(of, name)
    Path("c.tsv").write_text("".join(f"{doc}\t{text}\n" for doc, text in COLLECTION.items()))
    options = ["--collection", "c.tsv", "--measures", MEASURES]
    ended = evenrank("audit", "--stage", "A=a.run", "--stage", "B=b.run", *options, "--full")
    assert ended.status == 0
    assert "baseline A" in ended.out
    assert stages_terminal(audit(stages={"A": FIRST, "B": SECOND})).text() in ended.out

    def refused(*arguments: str) -> str:
        ended = evenrank("audit", *arguments, *options)
        assert ended.status == 2
        return str(ended.err)

    assert refused() == "evenrank: an audit needs at least one run\n"
    assert refused("--stage", "a.run") == "evenrank: --stage: expected NAME=RUN, found 'a.run'\n"
    assert refused("--stage", "A=a.run") == "evenrank: --stage: expected two or more, found 1\n"
    twice = refused("--stage", "A=a.run", "--stage", "A=b.run")
    assert twice == "evenrank: --stage: expected one run named 'A', found several\n"
    over = refused("--stage", "A=a.run", "--stage", "B=b.run", "--json", "b.run")
    assert over == "evenrank: b.run: cannot be written: it is an input\n"
    Path("a.run.card.json").write_text("{}")
    over = refused("--stage", "A=a.run", "--stage", "B=b.run", "--report", "a.run.card.json")
    assert over == "evenrank: a.run.card.json: cannot be written: it is an input\n"
