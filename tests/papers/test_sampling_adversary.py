"""AdvBert by real trainings: its adversary acts, one without weight does not, and one that is too strong is named."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evenrank.files.synthetic import SyntheticConfig
from evenrank.measures.inference import SIGNIFICANT
from evenrank.papers import sampling_setup
from evenrank.papers.paper_page import Value
from evenrank.papers.sampling_paper import (
    ADVERSARIAL,
    ORIGINAL,
    Figures,
    Found,
    Lists,
    accuracy,
    adversary_table,
    attacked,
)

pytestmark = pytest.mark.slow
SEED, RANKER = 100, "BERT-Tiny"


def small() -> sampling_setup.Settings:
    """A collection on which a ranker gets above BM25 in a minute, and AdvBert has enough steps to act."""
    tiny = sampling_setup.tiny()
    return replace(
        tiny,
        scale="small",
        seeds=(SEED,),
        planted=SyntheticConfig(passages=2_400, queries=420, sentences=3, relevant=4, gender_rate=0.5, male_share=0.75),
        sizes={"train": 260, "valid": 80, "dev": 60},
        depth=20,
        listed=20,
        negatives=6,
        shares=(),
        training={**tiny.training, "batch": 32, "epochs": 4},
        debias={**tiny.debias, "epochs": 6},
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the original ranker is trained."""
    folder = tmp_path_factory.mktemp("adversary")
    sampling_setup.Experiment(small(), folder).ranker(SEED, RANKER, 0.0)
    return folder


def adversarial(home: Path, **adversary: float) -> Found:
    """The attacks and the figures on dev, with another adversary."""
    for trained in (home / f"seed-{SEED}").glob("*-AdvBert"):
        shutil.rmtree(trained)
    experiment = sampling_setup.Experiment(replace(small(), adversary=adversary), home)
    systems = {ORIGINAL: experiment.ranker(SEED, RANKER, 0.0), ADVERSARIAL: experiment.adversarial(SEED, RANKER)}
    data = experiment.of(SEED)
    lists = Lists.of(data.parts["dev"], data.collection, experiment.scoring(SEED))
    runs = {name: experiment.rank(one, SEED, "dev") for name, one in systems.items()}
    leakage = systems[ADVERSARIAL].result["leakage"]
    attacks: dict[str, Value] = {when: accuracy(**leakage[when]) for when in ("before", "after")}
    return Found(small={RANKER: Figures([lists.values(runs)])}, leakage={RANKER: attacks})


def test_the_adversary_acts(home: Path) -> None:
    found = adversarial(home)
    test = found.small[RANKER].test(ADVERSARIAL, "BM25", "mrr_10")
    assert test.mean is not None
    assert test.p is not None
    assert test.mean > 0
    assert test.p < SIGNIFICANT
    claim = attacked(found)
    assert claim is not None
    assert claim.verdict.supported
    assert not any(row.warning for row in adversary_table(found).rows)


def test_mutant_an_adversary_of_weight_0(home: Path) -> None:
    claim = attacked(adversarial(home, weight=0.0))
    assert claim is not None
    assert not claim.verdict.supported


def test_a_ranker_that_factor_1000_destroys_is_named(home: Path) -> None:
    found = adversarial(home, factor=1000.0)
    original, advbert = adversary_table(found).rows
    assert not original.warning
    assert "This ranker is destroyed" in advbert.warning
    claim = attacked(found)
    assert claim is not None
    assert not claim.verdict.supported
