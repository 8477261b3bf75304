"""Labels that were drawn: the estimator against a hand-worked case, a slow version and every sample; what says it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

import evenrank
from evenrank.auditing.label_sample import Labelling, probabilities, systematic
from evenrank.files import EvenrankError, Run
from evenrank.groups import GroupSource, GroupTable, as_labels
from evenrank.groups.labels import SampleCard
from evenrank.measures import Evaluation, LinearMeasure, parse_measure, provider, resolve
from evenrank.stats.compare import compare
from evenrank.stats.estimate import confidence_interval, finite_population_mean, superpopulation_mean
from evenrank.stats.sampling import LabelSample, predictions
from given_data import rows_of
from given_data import write_rows as write

RUN = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"c": 2.0, "d": 1.0}}
GUESS = {"a": "m", "b": "f", "c": "m", "d": "none"}
ARAB = parse_measure("ARaB@2")


def drawn(rows: dict[str, tuple[str | None, float]], could: list[str], poles: str = "m,f") -> GroupTable:
    """Labels that were drawn, ``{document: (group, probability)}``, among the documents that could have been."""
    table = pl.DataFrame(
        [(doc, group, chance) for doc, (group, chance) in rows.items()],
        schema=["doc_id", "group", "probability"],
        orient="row",
    )
    card = SampleCard(table["doc_id"], table["probability"], pl.Series(could))
    return as_labels(table, card=card, poles=poles, more=("f", "m"))


def guessed(labels: GroupTable, guess: object) -> GroupTable:
    return GroupSource(labels=labels, guess=guess, neutral=("none",), takes_drawn=True).table([])


def parts(labels: GroupTable, run: dict[str, dict[str, float]], measure: Any = ARAB) -> tuple[np.ndarray, LabelSample]:
    how = resolve(measure)
    assert isinstance(how, LinearMeasure)
    evaluation = Evaluation(Run.from_table(table_of(run)), labels)
    return how.values(evaluation), how.design_term(evaluation)


def table_of(run: dict[str, dict[str, float]]) -> pl.DataFrame:
    rows = [(q, d, s) for q, of in run.items() for d, s in of.items()]
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")


def test_a_case_worked_by_hand() -> None:
    # Weights of ARaB@2: .75 and .25. Guesses a +1, b −1, c +1, d 0; labels a +1, c −1, each with probability 1/2.
    labels = guessed(drawn({"a": ("m", 0.5), "c": ("f", 0.5)}, ["a", "b", "c", "d"]), GUESS)
    values, part = parts(labels, RUN)
    # q1: .75 − .25; q2: .75 + .75 · (−1 − 1)/.5.
    assert values.tolist() == [0.5, -2.25]
    # z: 0 and .375 · −4 = −1.5, z̄ = −.75: V = 2/1 · (½ · .75² + ½ · .75²); V₁ = 2² · ½ · (.375/.5)², over two.
    # Both squares are alike, so that V is of two labels: four degrees of freedom.
    assert part.design_error(np.array([True, True])) == pytest.approx((1.125, 1.125, 1.125, 4.0))
    # Between queries s²/2 = 2.75²/4, which is V_Q as well, since V is all of single queries.
    such = superpopulation_mean(part, values)
    assert such.value == -0.875
    assert such.se**2 == pytest.approx(2.75**2 / 4 + 1.125)
    assert such.df == pytest.approx(3.015625**2 / (2.25**2 / 4 + (1.890625 - 1.125) ** 2))
    these = finite_population_mean(part, values)
    assert (these.se**2, these.df) == pytest.approx((2.25, 4.0))


def slow(
    weights: dict[tuple[str, str], float], guess: dict[str, float], labels: dict[str, float], chance: dict[str, float]
) -> tuple[list[float], float, float, float]:
    """The estimates by query, V + V₁, the variance for queries like these, and its degrees of freedom; m = f."""
    queries = list(dict.fromkeys(q for q, _ in weights))
    total = {d: sum(w for (_, e), w in weights.items() if e == d) / len(queries) for d in guess}
    values = []
    for query in queries:
        value = 0.0
        for (q, d), w in weights.items():
            if q == query:
                value += w * (guess[d] + ((labels[d] - guess[d]) / chance[d] if d in labels else 0.0))
        values.append(value)
    open_ = [d for d in labels if chance[d] < 1]
    k, z = len(open_), {d: total[d] * (labels[d] - guess[d]) / chance[d] for d in labels}
    centre = sum((1 - chance[d]) * z[d] for d in open_) / sum(1 - chance[d] for d in open_)
    u = [(1 - chance[d]) * (z[d] - centre) ** 2 for d in open_]
    v = k / (k - 1) * sum(u)
    effective = sum(u) ** 2 / sum(one**2 for one in u) if v else 0.0
    largest = max(1.0, *(abs(labels[d] - guess[d]) for d in labels))
    v1 = largest**2 * sum((1 - chance[d]) * (total[d] / chance[d]) ** 2 for d in open_) / k
    single = (
        sum(
            w**2 * (1 - chance[d]) * ((labels[d] - guess[d]) / chance[d]) ** 2
            for (_, d), w in weights.items()
            if d in labels
        )
        / len(queries) ** 2
    )
    between = float(np.var(values, ddof=1)) / len(queries)
    most = max(between + v - single, v, between)
    freedom = (most + v1) ** 2 / ((v + v1) ** 2 / max(2, 2 * effective) + (most - v) ** 2 / (len(queries) - 1))
    return values, v + v1, most + v1, freedom


@given(st.integers(0, 10**6))
@example(6817)  # no document that was drawn has a group
@settings(max_examples=30, deadline=None)
def test_as_the_slow_version(seed: int) -> None:
    rng = np.random.default_rng(seed)
    documents = [f"d{n}" for n in range(12)]
    signs = {"m": 1.0, "f": -1.0, "none": 0.0}
    label = dict(zip(documents, rng.choice(list(signs), 12).tolist(), strict=True))
    guess = dict(zip(documents, rng.choice(list(signs), 12).tolist(), strict=True)) | {"d0": "m", "d1": "f"}
    run = {f"q{q}": {d: float(-r) for r, d in enumerate(rng.permutation(documents)[:3])} for q in range(4)}
    chosen = rng.permutation(documents)[:6].tolist()
    chance = {d: float(rng.uniform(0.2, 0.9)) for d in chosen}
    labels = guessed(drawn({d: (label[d], chance[d]) for d in chosen}, documents), guess)
    values, part = parts(labels, run, parse_measure("ARaB@3"))
    by_rank = [(1 + 1 / 2 + 1 / 3) / 3, (1 / 2 + 1 / 3) / 3, 1 / 9]
    weights = {(q, d): by_rank[r] for q, of in run.items() for r, d in enumerate(of)}
    known = {d: signs[label[d]] for d in chosen}
    expected = slow(weights, {d: signs[guess[d]] for d in documents}, known, chance)
    such = superpopulation_mean(part, values)
    assert values == pytest.approx(expected[0])
    assert finite_population_mean(part, values).se ** 2 == pytest.approx(expected[1])
    assert (such.se**2, such.df) == pytest.approx(expected[2:])


@pytest.mark.parametrize("guess", [GUESS, {"a": "f", "b": "f", "c": "f", "d": "m"}, None])
def test_the_mean_over_all_samples_is_the_truth(guess: dict[str, str] | None) -> None:
    label = {"a": "m", "b": "m", "c": "f", "d": "none"}
    whole = evenrank.audit(table_of(RUN), labels=label, neutral="none", measures="ARaB@2")["run", "ARaB@2"].mean
    found = []
    for two in itertools.combinations("abcd", 2):
        labels = drawn({d: (label[d], 0.5) for d in two}, list("abcd"))
        labels = labels if guess is None else guessed(labels, guess)
        found.append(float(parts(labels, RUN)[0].mean()))
    assert np.mean(found) == pytest.approx(whole)
    assert np.std(found) > 0.05


# --- drawing ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 10), min_size=3, max_size=30), st.data())
@settings(max_examples=50, deadline=None)
def test_probabilities(weights: list[float], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(weights)))
    found = probabilities(np.array(weights), n)
    assert found.sum() == pytest.approx(n)
    assert ((found > 0) & (found <= 1 + 1e-12)).all()
    places = systematic(found, n, 0)
    assert len(set(places.tolist())) == n
    assert set(np.flatnonzero(found >= 1)) <= set(places.tolist())


def test_each_document_is_drawn_with_its_probability() -> None:
    chance = probabilities(np.array([8.0, 1.0, 1.0, 0.0, 3.0]), 2)
    # 13/5/4 = .65 for the last but one; the first has π = 1, the others share what is left.
    assert chance == pytest.approx([1.0, *(np.array([1, 1, 0.65, 3]) / 5.65)])
    often = np.bincount(np.concatenate([systematic(chance, 2, seed) for seed in range(4000)]), minlength=5) / 4000
    assert often == pytest.approx(chance, abs=0.03)


def test_weights_are_those_of_the_figures() -> None:
    other = {"q1": {"b": 2.0, "a": 1.0}, "q2": {"c": 2.0, "d": 1.0}}
    runs = {"x": table_of(RUN), "y": table_of(other)}
    one = evenrank.sample_labels(runs["x"], n=2, measures="ARaB@2")
    chance = dict(one.documents.select("doc_id", "probability").iter_rows())
    # Means of .75 and .25 over two queries, of a sum of 1: .375 and .125, which sum to 1.
    assert chance == pytest.approx({d: {"a": 0.75, "b": 0.25, "c": 0.75, "d": 0.25}[d] for d in chance})
    # Only a and b differ: c and d keep a quarter of the mean weight.
    pair = evenrank.sample_labels(runs, n=2, measures="ARaB@2", baseline="x")
    chance = dict(pair.documents.select("doc_id", "probability").iter_rows())
    expected = dict(zip("abcd", 2 * np.array([0.25, 0.25, 0.03125, 0.03125]) / 0.5625, strict=True))
    assert chance == pytest.approx({d: expected[d] for d in chance})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": "NFaiRR@10"}, "NFaiRR@10 is no sum over ranks"),
        ({"n": 5}, "these figures look at 4 documents, found 5"),
        ({"n": 2, "baseline": "x"}, "expected one of several runs, found x"),
    ],
)
def test_what_cannot_be_drawn_for(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvenrankError, match=message):
        evenrank.sample_labels(table_of(RUN), **options)


# --- through the commands --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with two runs, qrels, texts and a sample of 60 documents that is filled in; and what everybody is."""
    folder = tmp_path_factory.mktemp("drawn")
    rng = np.random.default_rng(5)
    documents = [f"d{n}" for n in range(200)]
    label = dict(zip(documents, rng.choice(["m", "f", "none"], 200, p=[0.4, 0.2, 0.4]).tolist(), strict=True))
    words = {"m": "he and he and he", "f": "she and she and she", "none": "it"}
    # A tenth of the texts say another thing than they are about.
    texts = {d: words[label[d] if rng.random() < 0.9 else "f"] for d in documents}
    (folder / "docs.tsv").write_text("".join(f"{d}\t{text}\n" for d, text in texts.items()))
    for name in ("a", "b"):
        lines = ""
        for q in range(40):
            mine = rng.permutation(documents)[:10] if name == "b" or q % 2 else documents[5 * q : 5 * q + 10]
            lines += "".join(f"q{q} Q0 {d} {r + 1} {10 - r} x\n" for r, d in enumerate(mine))
        (folder / f"{name}.run").write_text(lines)
    (folder / "qrels.txt").write_text("".join(f"q{q} 0 d{q} 1\n" for q in range(40)))
    runs, measures = [folder / "a.run", folder / "b.run"], "ARaB@10 Share(group='f')@10"
    sample = evenrank.sample_labels(runs, collection=folder / "docs.tsv", n=60, measures=measures)
    sample.write(folder / "todo.csv")
    write(folder / "todo.csv", [{**row, "group": label[row["doc_id"]]} for row in rows_of(folder / "todo.csv")])
    return folder, label


def audited(folder: Path, labels: object = None, **how: Any) -> evenrank.AuditResult:
    given = {"collection": folder / "docs.tsv", "qrels": folder / "qrels.txt", "baseline": "a", "guess": "gender-en"}
    runs = [folder / "a.run", folder / "b.run"]
    return evenrank.audit(runs, labels=folder / "todo.csv" if labels is None else labels, **{**given, **how})


def test_an_audit_of_drawn_labels(made: tuple[Path, dict[str, str]], snapshot: Any) -> None:
    folder, label = made
    found = audited(folder)
    whole = audited(folder, labels=label, guess=None, neutral="none")
    figure, true = found["b", "ARaB@10"], whole["b", "ARaB@10"].mean
    # Of the 60, those that are in the run's first ten.
    assert figure.from_labels.labels == len(np.unique(figure.sample.document)) < 60
    assert figure.ci95[0] < true < figure.ci95[1]
    # By the core itself, from the same parts.
    again = compare(figure.values, sample=figure.sample)
    assert (again.mean, again.ci95, again.p) == (figure.lean.mean, figure.lean.ci95, figure.lean.p)
    these = confidence_interval(finite_population_mean(figure.sample, figure.values))
    assert figure.from_labels.ci95 == pytest.approx(these)
    difference = figure.values - found["a", "ARaB@10"].values
    part = figure.sample.plus(found["a", "ARaB@10"].sample, -1.0)
    assert figure.vs_baseline.test.ci95 == compare(difference, sample=part).ci95
    assert found.table(full=True, width=120).replace(str(folder), "FOLDER") == snapshot
    share = "Share(group='m')@10"
    by_words = evenrank.audit(folder / "b.run", collection=folder / "docs.tsv", threshold=0, measures=share)
    assert found["b", share].from_labels.guess_alone == pytest.approx(by_words["b", share].mean)
    alone = audited(folder, guess=None)["b", "ARaB@10"].from_labels.ci95
    assert figure.from_labels.without_guess == pytest.approx(alone)
    assert (figure.tie_range, found["random", "ARaB@10"].bounds) == (None, None)


def test_the_first_labels_are_a_sample_too(made: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    folder, _ = made
    rows, path = rows_of(folder / "todo.csv"), tmp_path / "todo.csv"
    (tmp_path / "todo.csv.card.json").write_text((folder / "todo.csv.card.json").read_text())

    def of(*labelled: int) -> evenrank.AuditResult:
        write(path, [{**row, "group": row["group"] * (place in labelled)} for place, row in enumerate(rows)])
        return audited(folder, path)

    found = of(*range(40))["a", "ARaB@10"]
    chance = {row["doc_id"]: float(row["probability"]) for row in rows}
    assert found.sample.labels == 40
    assert sorted(found.sample.probability) == pytest.approx(sorted(chance[r["doc_id"]] * 40 / 60 for r in rows[:40]))
    few = of(*range(20))
    assert few["a", "ARaB@10"].lean.reason.endswith("of those drawn bear on it, where 30 are needed")
    assert "Only 20 labels: nothing is told of bias with fewer than 30." in " ".join(few.table().split())
    with pytest.raises(EvenrankError, match="was drawn, but has no label, and later ones have"):
        of(*range(10), *range(11, 40))
    with pytest.raises(EvenrankError, match="no document has a label yet: fill in the column group"):
        of()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda of, label: audited(of, unknown="skip"), "`unknown='skip'`: labels that were drawn stand for all"),
        (lambda of, label: audited(of, labels=label, neutral="none"), "`guess` helps labels that were drawn"),
        (lambda of, label: audited(of, collection=None), "`guess` of a lexicon needs the texts"),
        (lambda of, label: audited(of, guess=of / "todo.csv"), "found labels that were drawn"),
        (
            lambda of, label: audited(of, guess={d: ("female", "male")[n % 2] for n, d in enumerate(label)}),
            r"its groups \(female, male\) are not those of the labels",
        ),
        (lambda of, label: evenrank.score(labels=of / "todo.csv", out=of / "s"), "labels that were drawn are of some"),
        (
            lambda of, label: evenrank.check_lexicon("gender-en", collection=of / "docs.tsv", labels=of / "todo.csv"),
            "agreement needs them as they come",
        ),
        (lambda of, label: evenrank.sample_labels(of / "a.run", n=30).write(of / "todo.csv"), "has labels already: n"),
    ],
)
def test_what_labels_that_were_drawn_cannot_do(made: tuple[Path, dict[str, str]], asked: Any, message: str) -> None:
    with pytest.raises(EvenrankError, match=message):
        asked(*made)


def test_labels_without_a_card_and_runs_of_other_documents(made: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    folder, _ = made
    whole = audited(folder, measures="ARaB@10 NFaiRR@10")
    assert whole["a", "NFaiRR@10"].mean is None
    # Without its card, which documents could have been drawn is taken on trust.
    (tmp_path / "alone.csv").write_text((folder / "todo.csv").read_text())
    alone = audited(folder, tmp_path / "alone.csv")
    assert alone["a", "ARaB@10"].mean == pytest.approx(whole["a", "ARaB@10"].mean)
    assert "taken on trust" in " ".join(alone.table().split())
    # With it, a run of others has bounds alone.
    new, docs = tmp_path / "new.run", tmp_path / "docs.tsv"
    new.write_text((folder / "b.run").read_text().replace(" d7 ", " other "))
    docs.write_text((folder / "docs.tsv").read_text() + "other\tit\n")
    found = evenrank.audit(new, labels=folder / "todo.csv", collection=docs, guess="gender-en", measures="ARaB@10")
    assert found["new", "ARaB@10"].mean is None
    low, high = found["new", "ARaB@10"].bounds
    assert -1 < low < 0 < high < 1
    assert "bounds alone, as documents that could not be drawn are looked at" in " ".join(found.table().split())


def test_a_file_that_is_not_as_it_was_drawn(made: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    folder, _ = made
    rows, card = rows_of(folder / "todo.csv"), (folder / "todo.csv.card.json").read_text()
    (tmp_path / "x.csv.card.json").write_text(card)
    wanted = audited(folder, guess=None)["a", "ARaB@10"]

    def of(changed: list[dict[str, str]]) -> evenrank.AuditResult:
        write(tmp_path / "x.csv", changed)
        return audited(folder, tmp_path / "x.csv", guess=None)

    # Whatever the order of the rows, and probabilities that a spreadsheet writes with commas.
    other = [{**row, "probability": row["probability"].replace(".", ",")} for row in rows]
    assert of(sorted(other, key=lambda row: row["group"]))["a", "ARaB@10"].mean == pytest.approx(wanted.mean)
    # Rows without a label may be gone: what was drawn is on the card.
    half = [{**row, "group": row["group"] if place < 40 else ""} for place, row in enumerate(rows)]
    assert of(half)["a", "ARaB@10"].ci95 == of(half[:40])["a", "ARaB@10"].ci95
    wrong = {
        "was drawn, but has no label, and later ones have": rows[20:],
        "line 2: the document 'd0007' was not drawn: the card": [{**rows[0], "doc_id": "d0007"}, *rows[1:]],
        "differ only in case": [{**row, "group": row["group"].upper()} for row in rows[:30]] + rows[30:],
    }
    for message, changed in wrong.items():
        with pytest.raises(EvenrankError, match=message):
            of(changed)
    (tmp_path / "x.csv.card.json").write_text(card[:100])
    with pytest.raises(EvenrankError, match=r"card\.json: damaged: it has to say which documents were drawn"):
        of(rows)
    (tmp_path / "x.csv.card.json").unlink()
    with pytest.raises(EvenrankError, match=r"line 2: expected a probability above 0 and at most 1, found 1\.5"):
        of([{**rows[0], "probability": "1.5"}, *rows[1:]])


def test_ids_that_a_spreadsheet_would_compute(tmp_path: Path) -> None:
    ids = ["=cmd()", "-5", "@who", *(f"d{n}" for n in range(40))]
    run = {f"q{n}": {doc: 1.0} for n, doc in enumerate(ids)}
    evenrank.sample_labels(run, n=42, measures="RaB@1").write(tmp_path / "todo.csv")
    rows = rows_of(tmp_path / "todo.csv")
    written = {row["doc_id"] for row in rows}
    assert len(written & {"'=cmd()", "-5", "'@who"}) >= 2
    assert not written & {"=cmd()", "@who"}
    label = dict(zip(ids, "fm" * 22, strict=False))
    write(tmp_path / "todo.csv", [{**row, "group": label[row["doc_id"].removeprefix("'")]} for row in rows])
    found = evenrank.audit(run, labels=tmp_path / "todo.csv", measures="RaB@1", poles="m,f")["run", "RaB@1"]
    assert found.from_labels.labels == 42


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=20, deadline=None)
def test_predictions_are_weighted_least_squares_on_the_other_folds(seed: int, varies: bool) -> None:
    rng = np.random.default_rng(seed)
    guess = rng.normal(size=80) if varies else np.full(80, 0.3)
    fold, drawn = rng.integers(0, 5, 80), rng.permutation(80)[:40]
    label, chance = rng.normal(size=40), rng.uniform(0.1, 1.0, 40)
    found = predictions(guess, fold, drawn, label, chance)
    for document in range(80):
        rows = [(guess[d], x, 1 - p) for d, x, p in zip(drawn, label, chance, strict=True) if fold[d] != fold[document]]
        f, x, weight = np.array(rows).T
        design = np.stack([np.ones_like(f), f], axis=1) if varies else np.ones((len(f), 1))
        fitted = np.linalg.lstsq(design * np.sqrt(weight)[:, None], x * np.sqrt(weight), rcond=None)[0]
        row = [1.0, guess[document]] if varies else [1.0]
        assert found[document] == pytest.approx(float(np.dot(row, fitted)))
    # Fewer than 30 labels fit nothing.
    assert (predictions(guess, fold, drawn[:29], label[:29], chance[:29]) == guess).all()


def test_tied_documents_can_be_drawn() -> None:
    sample = evenrank.sample_labels(table_of({"q": {"a": 2.0, "b": 1.0, "c": 1.0}}), n=1, measures="RaB@2")
    assert sorted(sample.could_be_drawn) == ["a", "b", "c"]
    # The larger of the weights in the run's own order, ½ ½ 0, and over ties, ½ ¼ ¼, of all.
    expected = dict(zip("acb", probabilities(np.array([0.5, 0.5, 0.25]), 1), strict=True))
    (document, chance), *_ = sample.documents.select("doc_id", "probability").iter_rows()
    assert chance == pytest.approx(expected[document])


def test_every_kind_of_guess(made: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    folder, _ = made
    by_name = audited(folder)["b", "ARaB@10"].mean
    evenrank.score(folder / "docs.tsv", out=tmp_path / "s.parquet")
    weights = evenrank.read_group_table(tmp_path / "s.parquet").as_weights(("f", "m")).table.drop("neutrality")
    weights.rename({"count_f": "f", "count_m": "m"}).write_csv(tmp_path / "classified.csv")
    for guess in (evenrank.load_lexicon("gender-en"), tmp_path / "s.parquet", tmp_path / "classified.csv"):
        assert audited(folder, guess=guess)["b", "ARaB@10"].mean == pytest.approx(by_name)


def test_a_gate_of_drawn_labels(made: tuple[Path, dict[str, str]]) -> None:
    result = audited(made[0])
    figure = result["b", "ARaB@10"]
    found = superpopulation_mean(figure.sample, figure.values)
    rules = [
        {"measure": "ARaB@10", "at_most": 2.0},
        {"measure": "Share(group='f')@10", "at_least": 0.0, "against": "baseline"},
    ]
    data = json.loads(result.to_json(values=True))
    rulings = evenrank.gate(data, budget={"rule": rules}, run="b").rules
    held = superpopulation_mean(figure.sample, np.append(figure.values, np.sign(found.value)))
    low = max(0.0, abs(found.value) - student.ppf(0.975, found.df) * found.se)
    assert rulings[0].outcome == "holds"
    assert rulings[0].limits[1] == pytest.approx(abs(held.value) + student.ppf(0.97, held.df) * held.se, rel=0.02)
    assert rulings[0].limits[0] == pytest.approx(low, abs=0.03)
    old, new = (result[name, "Share(group='f')@10"].mean for name in "ab")
    assert rulings[1].value == pytest.approx(new - old)
    del data["runs"]["b"]["measures"]["ARaB@10"]["sample"]["probability"]
    with pytest.raises(EvenrankError, match="not as `evenrank audit … --json F --values` writes it"):
        evenrank.gate(data, budget={"rule": rules}, run="b")


def test_rebalance_with_drawn_labels(made: tuple[Path, dict[str, str]]) -> None:
    folder, label = made
    given: dict[str, Any] = {"collection": folder / "docs.tsv", "qrels": folder / "qrels.txt", "guess": "gender-en"}
    given |= {"labels": folder / "todo.csv", "method": "neutral"}
    found = evenrank.rebalance(folder / "a.run", strength=0.5, **given)
    before, after = (found.audit[name, "ARaB@10"] for name in ("a.run", found.run.name))
    assert before.mean == pytest.approx(audited(folder)["a", "ARaB@10"].mean)
    whole = evenrank.audit({"x": found.run}, labels=label, neutral="none", measures="ARaB@10")["x", "ARaB@10"].mean
    assert after.ci95[0] < whole < after.ci95[1]
    with pytest.raises(EvenrankError, match="`max_bias` and `min_utility` need every document's group"):
        evenrank.rebalance(folder / "a.run", max_bias="ARaB@10 <= 0.1", **given)
    with pytest.raises(EvenrankError, match="`guess` says what the others are"):
        evenrank.rebalance(folder / "a.run", strength=0.5, **{**given, "guess": None})


def test_query_groups_of_drawn_labels(made: tuple[Path, dict[str, str]]) -> None:
    folder, _ = made
    found = audited(folder, query_groups={f"q{q}": "odd" if q % 2 else "even" for q in range(40)})
    row = next(r for r in found.query_groups if (r.run, r.measure, r.group) == ("b", "ARaB@10", "odd"))
    figure = found["b", "ARaB@10"]
    odd = np.array([int(query[1:]) % 2 == 1 for query in found.queries])
    such = superpopulation_mean(figure.sample, np.where(odd, figure.values, np.nan))
    assert (row.figure.mean, row.figure.ci95) == (pytest.approx(such.value), pytest.approx(confidence_interval(such)))
    assert row.test.reason == "labels were drawn for all queries together"


def test_ir_measures_has_the_estimates(made: tuple[Path, dict[str, str]]) -> None:
    folder, label = made
    sample = evenrank.sample_labels(folder / "a.run", n=60)
    table = sample.labels(label)
    run = evenrank.read_run(folder / "a.run", name="a")
    found = provider(table).calc_aggregate([parse_measure("ARaB@10")], [], run)
    own = evenrank.audit(run, labels=table, measures="ARaB@10")["a", "ARaB@10"].mean
    assert found[parse_measure("ARaB@10")] == pytest.approx(own)
    with pytest.raises(EvenrankError, match="NFaiRR@10 is no sum over ranks"):
        provider(table).calc_aggregate([parse_measure("NFaiRR@10")], [], run)
    with pytest.raises(EvenrankError, match="looks at documents that could not be drawn"):
        provider(table).calc_aggregate(
            [parse_measure("ARaB@10")], [], {"q0": {sample.documents["doc_id"][0]: 2, "x": 1}}
        )


def test_labelling(made: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    folder, _ = made
    rows = [{**row, "group": ""} for row in rows_of(folder / "todo.csv")[:3]]
    rows[0]["text"] = 'a "quoted", text'
    write(tmp_path / "todo.csv", rows)
    one = Labelling(str(tmp_path / "todo.csv"), ("f", "m"))
    assert (len(one), one.done, one.document) == (3, 0, (rows[0]["doc_id"], 'a "quoted", text'))
    meant = [one.meant(answer) for answer in ("F", "n", "none", "u", "q", "x", "")]
    assert meant == ["f", "none", "none", "undo", "quit", None, None]
    one.label("f")
    one.label("none")
    one.undo()
    # Another time, it goes on.
    again = Labelling(str(tmp_path / "todo.csv"), ("f", "m"))
    assert again.done == 1
    again.label("m")
    again.label("m")
    kept = rows_of(tmp_path / "todo.csv")
    assert [row["group"] for row in kept] == ["f", "m", "m"]
    assert [row["text"] for row in kept] == [row["text"] for row in rows]
    # Somebody else labels the same file: nobody's answers are lost, and what one takes back is one's own.
    rows = rows_of(folder / "todo.csv")[:6]
    write(tmp_path / "todo.csv", [{**row, "group": ""} for row in rows])
    first, second = (Labelling(str(tmp_path / "todo.csv"), ("f", "m")) for _ in range(2))
    for person, group in ((first, "f"), (second, "f"), (first, "m"), (second, "m"), (first, "none")):
        assert person.document[0] == rows[person.done]["doc_id"]
        person.label(group)
    second.undo()
    assert [row["group"] for row in rows_of(tmp_path / "todo.csv")] == ["f", "f", "m", "", "none", ""]
    write(tmp_path / "todo.csv", rows[::-1])
    with pytest.raises(EvenrankError, match="holds other documents than when labelling began"):
        first.label("f")
    (tmp_path / "x.csv").write_text("doc_id,probability\na,1\n")
    with pytest.raises(EvenrankError, match="no sample to label: it has no column group"):
        Labelling(str(tmp_path / "x.csv"), ("f", "m"))
