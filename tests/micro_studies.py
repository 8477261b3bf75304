"""Studies at their smallest: the settings of the scale tiny, made so small that a run takes seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from evenrank.files import read_queries
from evenrank.files.synthetic import SyntheticConfig, generate
from evenrank.papers import expansion, ibbr, position, sampling
from evenrank.papers.checks import Options
from evenrank.papers.report import ExperimentPage

TRAINING = {"batch": 10, "epochs": 1, "learning_rate": 1e-3, "evaluate_every": 100, "weight_decay": 0.01}
WORDS = {"passage_length": 32, "vector_size": 8}


def micro_ibbr() -> ibbr.IBBRSettings:
    return replace(
        ibbr.IBBRStudy.settings_of("tiny", Options()),
        seeds=(0, 1),
        planted=SyntheticConfig(
            passages=880,
            queries=220,
            sentences=3,
            gender_rate=0.9,
            relevance_gender_rate=1.0,
            train_click_male_share=0.9,
            group_query_rate=0.3,
        ),
        sizes={"dpr": 60, "dpr_dev": 6, "train": 60, "dev": 14, "test": 40},
        listed=7,
        depth=30,
        base={**TRAINING, "keep": "last"},
        fair={**TRAINING, "max_steps": 4, "keep": "last", "evaluate_every": 2},
        weights={"PD": (0.03,), "TS": (0.03, 0.1)},
        scores=(("sigmoid", 0.1),),
        baselines={"KNRM": {"ranker": {"kind": "knrm", **WORDS}, "training": {**TRAINING, "max_steps": 1}}},
    )


def micro_sampling() -> sampling.SamplingSettings:
    settings = sampling.SamplingStudy.settings_of("tiny", Options())
    small = {"BERT-base": {**settings.rankers["BERT-base"], "training": TRAINING}}
    small["BERT-Tiny"] = small["BERT-base"]
    debias = {**settings.debias, "training": {**settings.debias["training"], "learning_rate": 1e-3}}
    return replace(
        settings,
        seeds=(0, 1),
        planted=SyntheticConfig(passages=400, queries=80, sentences=3, relevant=4, male_share=0.75),
        sizes={"train": 30, "valid": 10, "dev": 40},
        depth=20,
        listed=20,
        negatives=5,
        shares=(0.0, 0.6),
        rankers=small,
        debias=debias,
    )


def micro_expansion() -> expansion.ExpansionSettings:
    return replace(
        expansion.ExpansionStudy.settings_of("tiny", Options()),
        seeds=(0, 1),
        planted=SyntheticConfig(passages=300, queries=24, relevant=2, sentences=4, relevance_gender_rate=0.8),
        vector_size=8,
        depth=50,
        folds=2,
        biased_words=60,
        svm_words=20,
    )


def micro_position(encoder: str) -> position.PositionSettings:
    settings = position.PositionStudy.settings_of("tiny", Options(model=[f"encoder={encoder}"]))
    assert settings.planted is not None
    smaller = {position.BIASED: (400, 50), position.OTHER: (320, 40)}
    tk = settings.rankers["TK"]
    words = {**tk["ranker"], "vector_size": 8, "settings": {"heads": 2, "head_size": 4, "feedforward": 8, "layers": 1}}
    dot = {**settings.rankers["BERT_DOT"]["ranker"], "layers": 1}
    training = {"batch": 10, "max_steps": 2, "evaluate_every": 1}
    return replace(
        settings,
        seeds=(0, 1),
        models={name: settings.models[name] for name in ("BERT_DOT", "TK")},
        few=("BERT_DOT",),
        planted={
            name: replace(settings.planted[name], passages=passages, queries=queries)
            for name, (passages, queries) in smaller.items()
        },
        sizes={name: {"train": 20, "valid": 4, "test": 8} for name in smaller},
        depths=(3,),
        rankers={
            "BERT_DOT": {
                **settings.rankers["BERT_DOT"],
                "ranker": dot,
                "training": {**settings.rankers["BERT_DOT"]["training"], **training},
            },
            "TK": {**tk, "ranker": words, "training": {**tk["training"], **training}},
        },
        shorter={"BERT_DOT": 1, "TK": 1},
        similarity={"passages": 40, "min_terms": 2, "min_pairs": 1},
    )


def rows(page: ExperimentPage, name: str) -> dict[str, Any]:
    """The rows of a page's table by their systems."""
    return {row.system: row for layout, found in page.layouts if layout.name == name for row in found}


def written(folder: Path, annotated: slice) -> Path:
    """The files that full reads, of a built-in collection of 100 queries: those annotated, words of gender."""
    made = generate(SyntheticConfig(passages=800, queries=100, sentences=3, gender_rate=0.9)).write(folder)
    rows = "".join(f'{q},"{t}",n\n' for q, t in read_queries(made / "queries.tsv")[annotated].iter_rows())
    (made / "annotated.csv").write_text(rows, encoding="utf-8")
    (made / "words.txt").write_text("he,m\nhis,m\nbrother,m\nshe,f\nher,f\nsister,f\n", encoding="utf-8")
    return made
