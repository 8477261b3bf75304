"""The position experiment in seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evenrank.files.synthetic import SyntheticConfig
from evenrank.papers import position_setup
from evenrank.papers.checks import Options
from evenrank.papers.encoder import SmallBert, make_encoder
from evenrank.papers.position_setup import BIASED, OTHER

COMMON = {"passages": 400, "queries": 100, "sentences": 4, "relevant": 1, "gender_rate": 0.2}
TRAINING = {"batch": 10, "max_steps": 2, "learning_rate": 1e-3, "evaluate_every": 1}
TK = {"kind": "tk", "vector_size": 8, "passage_length": 40, "settings": {"heads": 2, "head_size": 4}}


def small_encoder(folder: Path) -> str:
    """A random BERT of a few words."""
    return str(make_encoder(["where when who the"], folder / "encoder", SmallBert(hidden=8, feed_forward=8), 0))


def micro_position(encoder: str | None = None) -> position_setup.Settings:
    """All steps of tiny, with TK, and with BERT_DOT if there is an encoder."""
    tiny = position_setup.tiny(Options(encoder=encoder or "none"))
    sizes = {"train": 30, "valid": 5, "test": 15}
    rankers: dict[str, position_setup.RankerSettings] = {"TK": {"ranker": TK, "loss": "hinge", "training": TRAINING}}
    if encoder is not None:
        dot = dict(tiny.rankers["BERT_DOT"]["ranker"]) | {"layers": 1}
        rankers["BERT_DOT"] = {"ranker": dot, "loss": "hinge", "training": TRAINING}
    return replace(
        tiny,
        scale="micro",
        seeds=(0, 1),
        planted={
            BIASED: SyntheticConfig(**COMMON, relevance_answer_position="early", kinds=("craft", "ship")),  # type: ignore[arg-type]
            OTHER: SyntheticConfig(**COMMON, seed=50, kinds=("dish",)),  # type: ignore[arg-type]
        },
        sizes={BIASED: sizes, OTHER: sizes},
        depth={BIASED: 10, OTHER: 10},
        depths=(5,),
        shorter={"TK": 1},
        rankers=rankers,
        similarity={"passages": 60, "min_terms": 5, "min_pairs": 2},
    )


def micro_real(encoder: str, squad: str) -> position_setup.Settings:
    """All steps of real, with BERT_DOT and KNRM."""
    real = position_setup.real(Options(encoder=encoder, squad=(squad,)))
    dot = dict(real.rankers["BERT_DOT"]["ranker"]) | {"layers": 1}
    knrm = {"kind": "knrm", "vector_size": 8, "passage_length": 40}
    return replace(
        real,
        scale="micro",
        seeds=(0, 1),
        sizes={OTHER: {"train": 0, "valid": 8, "test": 0}},
        rankers={
            "BERT_DOT": {"ranker": dot, "loss": "hinge", "training": TRAINING},
            "KNRM": {"ranker": knrm, "loss": "hinge", "training": TRAINING},
        },
    )
