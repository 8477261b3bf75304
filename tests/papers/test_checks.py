"""What an experiment needs is looked up before any work."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

import evenrank.papers as experiments
from evenrank.papers import position_setup
from evenrank.papers.checks import (
    Cost,
    MissingError,
    Need,
    Options,
    check,
    described,
    need_file,
    need_irds,
    need_model,
    need_package,
    need_public,
    unused,
)
from evenrank.papers.expansion import ExpansionStudy
from tiny_models import tiny_bert

pytest.importorskip("torch", reason="PyTorch is not installed")


def test_each_missing_thing_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("12345", encoding="utf-8")
    needs = [
        need_file(tmp_path / "here", "SQuAD 2.0", "squad"),
        need_file(tmp_path / "none", "SQuAD 2.0", "squad"),
        need_public("grepbiasir", "Grep-BiasIR"),
        need_public("nothing", "a set"),
        need_irds("msmarco-passage/dev/small", "queries"),
        need_irds("msmarco-passage/none", "queries"),
        need_package("json", "json", "reading"),
        need_package("no_such_module", "no-such-package", "an encoder"),
        *unused(Options(vectors="v", squad=("s",), encoder=None), "squad", "encoder"),
        need_model("two\nlines", "an encoder"),
    ]
    with pytest.raises(MissingError) as error:
        check(needs)
    assert str(error.value).split("\n") == [
        f"{tmp_path}/none: no such file (SQuAD 2.0; `squad` names another)",
        "nothing: no public data of this name (a set)",
        "irds:msmarco-passage/none: ir_datasets has no such data set (queries)",
        "the package no-such-package is missing (an encoder): pip install no-such-package",
        "`vectors`: not used by this experiment at this scale",
        "two\\nlines: no such folder (and models on the hub are named OWNER/NAME or NAME)",
    ]
    assert needs[0].size == 5
    assert needs[2].size == 233_624


def test_files_of_another_form_are_named(tmp_path: Path) -> None:
    """Before the run writes anything, so that the corrected command can use the same folder."""
    bad = tmp_path / "qrels.txt"
    bad.write_text("q1 0 d1 1\n", encoding="utf-8")
    real = position_setup.settings_of("real", Options(squad=(str(bad),)))
    tiny = ExpansionStudy.settings_of("tiny", Options(vectors=str(bad), specific=str(bad)))
    found = [
        need.problem
        for needs in (position_setup.needs(real, tmp_path), ExpansionStudy(tiny, tmp_path).needs())
        for need in needs
        if need.problem and need.kind == "file"
    ]
    assert found == [
        f"{bad}: invalid JSON (Expecting value: line 1 column 1 (char 0))",
        f"{bad}, line 1: expected a finite number, found 'd1'",
        f"{bad}, line 1: invalid JSON: Expecting value",
    ]


def test_what_is_there_is_described_with_sizes(tmp_path: Path) -> None:
    model = tiny_bert(tmp_path / "model")
    size = sum((model / name).stat().st_size for name in ("config.json", "vocab.txt", "model.safetensors"))
    lines = described([need_model(str(model), "an encoder"), Need("x", "y")], Cost(3, 2_500_000, "two minutes"))
    assert lines == [
        f"{model}: an encoder, {size / 1e3:.3g} KB",
        "x: y",
        "this run: 3 trainings, about 2.5 MB of disk, two minutes",
    ]


@dataclass(frozen=True)
class Settings:
    seeds: tuple[int, ...] = (0,)
    ran: list[Path] = field(default_factory=list)


def test_a_run_checks_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings()
    setup = SimpleNamespace(
        settings_of=lambda scale, options: settings,
        needs=lambda of, folder: [Need("vectors", "expansion", problem=f"{folder.name}: nothing, {len(of.seeds)}")],
        cost=lambda of: Cost(0, 10, "a second"),
    )
    monkeypatch.setattr(experiments, "import_module", lambda name, _: setup)
    for call in (experiments.check_experiment, experiments.run_experiment):
        with pytest.raises(MissingError, match=r"^out: nothing, 3$"):
            call("ibbr", scale="full", seeds=3, out=tmp_path / "out", options=Options())
    assert not (tmp_path / "out").exists()
    setup.needs = lambda of, folder: [Need("vectors", "expansion", 3_000)]
    lines = experiments.check_experiment("ibbr", scale="real", out=tmp_path / "out")
    assert lines == ["vectors: expansion, 3 KB", "this run: about 10 bytes of disk, a second"]
    assert not (tmp_path / "out").exists()
