"""Experiments that take seconds, and what their tests ask of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenrank.files.synthetic import SyntheticConfig
from evenrank.papers import ibbr_setup, sampling_setup, work
from evenrank.papers.paper_page import ExperimentPage, Table

TRAINING = {"batch": 10, "epochs": 1, "learning_rate": 1e-3, "evaluate_every": 100, "weight_decay": 0.01}


WORDS = {"passage_length": 32, "vector_size": 8}


def micro_ibbr() -> ibbr_setup.Settings:
    return replace(
        ibbr_setup.tiny(),
        scale="micro",
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
        going_on={"max_steps": 4, "learning_rate": 1e-3, "keep": "last", "evaluate_every": 2},
        weights=(0.03,),
        scores={"sigmoid": (0.1,)},
        baselines={"KNRM": {"ranker": {"kind": "knrm", **WORDS}, "training": {**TRAINING, "max_steps": 1}}},
        retrieved=("base",),
    )


def micro_sampling() -> sampling_setup.Settings:
    return replace(
        sampling_setup.tiny(),
        scale="micro",
        seeds=(0, 1),
        planted=SyntheticConfig(passages=800, queries=80, sentences=3, relevant=4, male_share=0.75),
        sizes={"train": 30, "valid": 10, "dev": 40},
        depth=20,
        listed=20,
        negatives=5,
        shares=(0.0, 0.6),
        training=TRAINING,
        debias={**sampling_setup.tiny().debias, "learning_rate": 1e-3},
    )


def table(page: ExperimentPage, name: str) -> Table:
    return next(one for one in page.tables if one.name == name)


def labels(found: Table) -> list[tuple[str, ...]]:
    return [row.labels for row in found.rows]


def check_controls(found: Table) -> None:
    """A table of rankings has its controls, each measured."""
    controls = {label for row in found.rows if row.control for label in row.labels}
    assert {"blind", "random", "neutral-first"} <= controls
    assert all(row.measured for row in found.rows if row.control)


@contextmanager
def no_training_after(form: Any, settings: Any, folder: Path) -> Iterator[None]:
    """Does what is done ahead, in this process; inside nothing may be trained."""

    def inline(trainings: Any, steps: Any, jobs: int) -> None:
        assert jobs == 2
        for method, arguments in steps:
            getattr(trainings, method)(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work.Trainings, "ahead", inline)
        form(settings, folder).everything_ahead(2)
        patch.setattr(work, "train_recipe", lambda *_, **__: pytest.fail("trained after everything was"))
        yield
