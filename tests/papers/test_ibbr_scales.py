"""The IBBR experiment at ``real`` and ``full``, on stand-ins for their data and models."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evenrank.files import read_qrels, read_queries, read_run, read_texts
from evenrank.files.synthetic import SyntheticConfig, generate
from evenrank.papers import ibbr_paper, ibbr_setup
from evenrank.papers.checks import Options
from evenrank.papers.corpora import Source
from evenrank.papers.encoder import SmallBert, make_encoder
from evenrank.papers.ibbr_setup import Experiment
from evenrank.papers.paper_page import ExperimentPage
from evenrank.training.recipes import load_recipe
from micro_experiments import TRAINING, WORDS, table

PUBLISHED_WORDS = "he,m\nhis,m\nbrother,m\nshe,f\nher,f\nsister,f\n"
"""As the public file has them."""
FORMS = {"m": ("he", "his brother"), "f": ("she", "her sister"), "n": ("they", "a relative")}
SUBJECTS = ("salary", "haircut", "career", "football", "cooking", "driving", "nursing", "engines", "dancing", "boxing")


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Options:
    """SQuAD's and Grep-BiasIR's forms with made-up contents, and an encoder of four layers."""
    home = tmp_path_factory.mktemp("stand-ins")
    made = generate(SyntheticConfig(passages=400, queries=80, sentences=3))
    made.write(home / "squad")
    grep = home / "grep"
    grep.mkdir()
    lines, judged, asked = [], [], []
    for number in range(20):
        subject = f"{SUBJECTS[number % 10]} {number}"
        asked.append(f"{number}\twhat to know about {subject}\n")
        for place, (pronoun, relative) in enumerate(FORMS.values()):
            lines.append(f"{number * 6 + place}\tAll about {subject}: {pronoun} learned it from {relative}.\n")
            lines.append(f"{number * 6 + place + 3}\tNothing on it, said {relative}, as {pronoun} left.\n")
            judged += [f"{number} 0 {number * 6 + place} 1\n", f"{number} 0 {number * 6 + place + 3} 0\n"]
    for name, rows in (("collection.tsv", lines), ("queries.tsv", asked), ("qrels.txt", judged)):
        (grep / name).write_text("".join(rows), encoding="utf-8")
    texts = [*made.collection["text"], *made.queries["text"], *(line.split("\t")[1] for line in [*lines, *asked])]
    encoder = make_encoder(texts, home / "encoder", SmallBert(layers=4, hidden=16, feed_forward=16), 0)
    return Options(squad=(str(home / "squad" / "answers.json"),), grepbiasir=str(grep), encoder=str(encoder))


@pytest.fixture(scope="module")
def real_run(options: Options, tmp_path_factory: pytest.TempPathFactory) -> tuple[ExperimentPage, Path]:
    folder = tmp_path_factory.mktemp("real")
    settings = replace(
        ibbr_setup.settings_of("real", options),
        seeds=(0,),
        sizes={"dpr": 20, "dpr_dev": 5, "train": 10, "dev": 4, "test": 6},
        base={**TRAINING, "keep": "last"},
        going_on={"batch": 5, "max_steps": 2, "evaluate_every": 1, "keep": "last"},
        weights=(0.1,),
    )
    assert not [need.problem for need in ibbr_setup.needs(settings, folder) if need.problem]
    return ibbr_paper.run(settings, folder), folder


@pytest.mark.slow
def test_real_has_both_models_and_only_its_own_claims(real_run: tuple[ExperimentPage, Path]) -> None:
    page, folder = real_run
    first = table(page, "Table 1")
    measured = {row.labels[0] for row in first.rows if row.measured}
    assert measured == {"BERT-L2", "BERT-L4"}
    keys = {claim.statement.key for claim in page.claims}
    assert {"dpr_l4", "lean_l4", "pd_bias", "rab", "rm3"} <= keys
    assert "tk" not in keys
    assert any("Grep-BiasIR" in note for note in page.notes)
    assert any("Nothing was developed on these data" in note for note in page.notes)
    assert any("Seeds share test queries" in note for note in page.notes)
    assert len(list(folder.glob("seed-0/*/result.json"))) >= 12


@pytest.mark.slow
def test_real_training_clicks_are_skewed_and_the_test_counts_every_wording(
    real_run: tuple[ExperimentPage, Path],
) -> None:
    home = real_run[1] / "data-0"
    clicks = read_qrels(home / "train.qrels")
    assert clicks.height == 10
    assert sum(int(doc.removeprefix("g")) % 6 == 0 for doc in clicks["doc_id"]) == 8
    assert read_qrels(home / "test.qrels").height == 18
    listed = read_run(home / "test.run").table
    assert read_qrels(home / "test.qrels").join(listed, on=["query_id", "doc_id"], how="anti").height == 0
    parts = {name: set(read_queries(home / f"{name}.queries.tsv")["query_id"]) for name in ("train", "dev", "test")}
    assert not (parts["train"] & parts["test"])
    assert not (parts["dev"] & parts["test"])
    assert all(query.startswith("s") for query in read_queries(home / "dpr.queries.tsv")["query_id"])


@pytest.mark.slow
def test_full_runs_on_stand_ins(options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale full with its own recipe; the grid of the base rankers chooses by validation."""
    made = generate(SyntheticConfig(passages=800, queries=100, sentences=3, gender_rate=0.9)).write(tmp_path / "made")
    rows = (made / "queries.tsv").read_text(encoding="utf-8").splitlines()
    labelled = "".join(f'{line.split(chr(9))[0]},"{line.split(chr(9))[1]}",n\n' for line in rows)
    (made / "annotated.csv").write_text(labelled, encoding="utf-8")
    names = {name: str(made / name) for name in ("collection.tsv", "queries.tsv", "clicks.txt", "annotated.csv")}
    source = Source(names["collection.tsv"], (names["queries.tsv"],), (names["clicks.txt"],), names["annotated.csv"])
    monkeypatch.setattr(ibbr_setup, "msmarco", lambda _: source)
    lexicon = made / "gender_representative.txt"
    lexicon.write_text(PUBLISHED_WORDS, encoding="utf-8")
    asked: list[str] = []
    monkeypatch.setattr(ibbr_setup, "fetch", lambda name, _: (asked.append(name), [lexicon])[1])
    full = ibbr_setup.settings_of("full", Options())
    small = {"batch": 8, "epochs": 1.0, "cached": 16, "precision": "float32"}
    settings = replace(
        full,
        seeds=(0,),
        sizes={"dpr": 24, "dpr_dev": 6, "train": 16, "dev": 6, "test": 10},
        listed=20,
        depth=30,
        encoders={"BERT-L2": str(options.encoder)},
        data={**full.data, "negatives": 19},
        base={**full.base, **small},
        base_grid={"learning_rate": (1e-5, 1e-3), "batch": (4, 8)},
        going_on={**full.going_on, "epochs": 1.0, "evaluate_every": 2},
        weights=(0.1,),
        scores={},
        baselines={"KNRM": {"ranker": {"kind": "knrm", **WORDS}, "training": {**TRAINING, "max_steps": 1}}},
    )
    page = ibbr_paper.run(settings, tmp_path / "full")
    bases = sorted(file.parent for file in (tmp_path / "full" / "seed-0").glob("BERT-L2-base-*/result.json"))
    assert len([base for base in bases if not base.name.endswith("blind")]) == 4
    experiment = Experiment(settings, tmp_path / "full")
    point = experiment.tuned("BERT-L2")
    assert set(point) == {"learning_rate", "batch"}
    assert experiment.base(0, "BERT-L2").value == max(experiment._base(0, "BERT-L2", one, False).value for one in (
        {"learning_rate": rate, "batch": batch} for rate in (1e-5, 1e-3) for batch in (4, 8)
    ))  # fmt: skip
    # Every test list has its clicked passage.
    home = tmp_path / "full" / "data"
    listed = read_run(home / "test.run").table
    assert read_qrels(home / "test.qrels").join(listed, on=["query_id", "doc_id"], how="semi").height == 10
    assert set(listed.group_by("query_id").len()["len"]) == {20}
    assert table(page, "Table 2").rows[3].measured["mrr"].n == 10
    assert any("published grids" in note for note in page.notes)
    check_published_words(page, experiment, asked)
    # Settings that the paper does not give are named.
    assert any("k1 0.82, b 0.68" in note for note in page.notes)
    kept = replace(full, seeds=(0,))
    said = " ".join(ibbr_paper.notes(kept, {}, {}, experiment.scoring(0)))
    assert "10 epochs, validated every 500 steps, and stops after 5 validations" in said
    assert "batches of 32, Adam at 0.001" in said


def check_published_words(page: ExperimentPage, experiment: Experiment, asked: list[str]) -> None:
    """Published figures stand beside the published lexicon's, read by whitespace; ours are in tables of their own."""
    assert set(asked) == {"gender-representative"}
    scoring = experiment.scoring(0)
    assert (scoring.lexicon.name, scoring.tokens) == ("gender_representative", "whitespace")
    theirs, ours = table(page, "Table 1"), table(page, "Table 1 ours")
    assert any(row.published for row in theirs.rows)
    assert not any(row.published for row in (*ours.rows, *table(page, "Table 2 ours").rows))
    assert ours.rows[0].measured["mrr"].mean == theirs.rows[0].measured["mrr"].mean
    # By hand: qRaB of a group with each lexicon.
    run = experiment.test(0, experiment.fair(0, "BERT-L2", "TS", 0, "softmax")).table.sort("query_id", "rank")
    found = read_texts(experiment.of(0).collection, run["doc_id"].unique())
    texts = dict(zip(found["doc_id"], found["text"], strict=True))
    male = {line.split(",")[0] for line in PUBLISHED_WORDS.splitlines() if line.endswith("m")}
    lists = run.group_by("query_id", maintain_order=True).agg("doc_id")["doc_id"].to_list()
    counts = [sum(word in male for word in texts[doc].lower().split()) for one in lists for doc in one[:5]]
    measured = theirs.rows[0].measured["qrab_m_5"].mean
    assert measured == pytest.approx(np.mean([math.log1p(count) for count in counts]))
    assert ours.rows[0].measured["qrab_m_5"].mean != pytest.approx(measured)
    # The term acts on the same words as the measures.
    recipe = load_recipe(experiment.fair(0, "BERT-L2", "TS", 0.1, "softmax").folder / "recipe.toml")
    assert recipe.fairness is not None
    (attribute,) = recipe.fairness.attributes
    assert (attribute.name, attribute.tokens) == ("gender", "whitespace")
    assert attribute.lexicon.endswith("gender_representative.txt")
