"""The expansion experiment: every step of both scales on small data."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenrank.datasets.synthetic import SyntheticConfig
from evenrank.embeddings import Vectors
from evenrank.experiments import expansion_paper, expansion_setup
from evenrank.experiments.expansion_setup import BUILT_IN, FILE, GREP, LOCAL
from evenrank.experiments.paper_page import ExperimentPage
from evenrank.experiments.paper_tables import Table
from evenrank.io import EvenrankError, Run
from reaching import unreachable

pytest.importorskip("torch", reason="PyTorch is not installed")

GREPBIASIR = Path(__file__).parents[3] / "shared" / "data" / "grepbiasir"


def micro() -> expansion_setup.Settings:
    planted = SyntheticConfig(passages=400, queries=30, relevant=2, sentences=4, relevance_gender_rate=0.8)
    return replace(
        expansion_setup.tiny(),
        scale="micro",
        seeds=(0, 1),
        planted=planted,
        vectors=(LOCAL,),
        vector_size=8,
        depth=50,
        folds=2,
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[ExperimentPage, Path]:
    folder = tmp_path_factory.mktemp("expansion")
    page = expansion_paper.run(micro(), folder)
    page.write(folder)
    return page, folder


def table(page: ExperimentPage, name: str) -> Table:
    return next(one for one in page.tables if one.name == f"{name} ({BUILT_IN}, {LOCAL})")


def test_tables_are_laid_out_as_published(done: tuple[ExperimentPage, Path]) -> None:
    page, folder = done
    first = table(page, "Table 1")
    assert [row.labels[0] for row in first.rows] == [
        "Expansion biased",
        "Expansion debiased",
        "Regular",
        "Regular + Expansion biased",
        "Regular + Expansion debiased",
        "blind",
        "random",
        "neutral-first",
    ]
    assert first.rows[2].published == {"map_full": 0.29, "p30_full": 0.337, "map_changed": 0.303, "p30_changed": 0.372}
    assert all({"map_full", "p30_full", "nfairr", "arab"} <= set(row.measured) for row in first.rows)
    regular, biased = first.rows[2].measured["map_full"].mean, first.rows[0].measured["map_full"].mean
    assert regular is not None
    assert biased is not None
    assert regular > biased
    text = table(page, "Text")
    values = {row.labels[0]: row.measured["value"].mean for row in text.rows}
    assert values["queries"] == 30
    changed = values["queries whose expansion changed"]
    assert changed is not None
    assert values["their share"] == pytest.approx(changed / 30)
    assert len(table(page, "Table 2").rows) == min(20, changed)
    assert text.rows[1].published == {"value": 48}
    assert json.loads((folder / "results.json").read_text(encoding="utf-8"))["experiment"] == "expansion"


def test_a_query_without_a_list_counts_as_nothing_found(tmp_path: Path) -> None:
    (tmp_path / "c.tsv").write_text("0\tnurse ward\n1\tsea\n", encoding="utf-8")
    queries = pl.DataFrame({"query_id": ["0", "1"], "text": ["nurse", "zebra"]})
    qrels = pl.DataFrame({"query_id": ["0", "1"], "doc_id": ["0", "1"], "relevance": [1, 1]})
    run = Run.from_table(pl.DataFrame({"query_id": ["0"], "doc_id": ["0"], "score": [1.0]}), "Regular")
    collection = expansion_setup.Collection("c", str(tmp_path / "c.tsv"), queries, qrels)
    figure = expansion_paper._audit(collection, {"Regular": run}).runs[0].figures["AP"]
    assert (figure.n, figure.mean) == (2, 0.5)


def test_claims(done: tuple[ExperimentPage, Path]) -> None:
    (equal,) = done[0].claims
    assert equal.reached is True
    values = {row.labels[0]: row.measured["value"].mean for row in table(done[0], "Text").rows}
    weight = values["λ of Regular + Expansion debiased"]
    assert weight is not None
    assert 0 <= weight <= 1


def test_grepbiasir_joins_where_its_files_are(tmp_path: Path) -> None:
    said: list[str] = []
    assert [one.name for one in expansion_setup.collections(micro(), tmp_path, said.append)] == [BUILT_IN]
    assert "Grep-BiasIR is left out" in said[0]
    if not GREPBIASIR.is_dir():
        pytest.skip("../shared/data is not here")
    shutil.copytree(GREPBIASIR, tmp_path / "grepbiasir")
    found = expansion_setup.collections(micro(), tmp_path, said.append)
    assert [one.name for one in found] == [GREP, BUILT_IN]
    assert found[0].queries.height == 117


# --- full: the same steps on files of the published form -------------------------------------------------------------


def test_full_needs_the_users_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> pl.DataFrame:
        raise EvenrankError("no such file")

    monkeypatch.setattr(expansion_setup, "read_queries", absent)
    with pytest.raises(EvenrankError, match=r"your own copy of TREC disks 4 and 5, .* \(no such file\)"):
        expansion_setup.collections(expansion_setup.full(), Path(), lambda _: None)


def test_full_reads_a_vector_file(done: tuple[ExperimentPage, Path], tmp_path: Path) -> None:
    collection = expansion_setup.collections(micro(), done[1], lambda _: None)[0]
    full = expansion_setup.full()
    assert (full.vectors, full.k, full.folds, full.depth) == ((FILE,), 5, 5, 1000)
    with pytest.raises(EvenrankError, match="put a vector file there first"):
        expansion_setup.vectors_of(full, tmp_path, collection, FILE, 0)
    (tmp_path / "vectors.txt").write_text("he 1 0\nshe 0 1\n", encoding="utf-8")
    found = expansion_setup.vectors_of(full, tmp_path, collection, FILE, 0)
    assert found.words == ("he", "she")


def test_debiasing_uses_the_built_in_sets() -> None:
    words = ("he", "she", "man", "woman", "nurse", "boat")
    matrix = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    found = expansion_setup.debiased(Vectors(words, matrix))
    assert found.check is not None
    assert found.check.holds()
    assert found.neutral.tolist() == [False, False, False, False, True, True]


def test_every_number_can_be_reached(browser: Any, done: tuple[ExperimentPage, Path]) -> None:
    page = browser.new_page()
    page.goto((done[1] / "report.html").as_uri())
    assert unreachable(page) == []
    page.close()
