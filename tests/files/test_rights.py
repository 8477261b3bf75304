"""What is written has the rights that a file should have."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenrank.files import write_text


@pytest.fixture(params=[0o022, 0o077, 0o002])
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_replaced_leaves_its_rights(tmp_path: Path, mask: int) -> None:
    for mode in (0o600, 0o640, 0o444, 0o666):
        (tmp_path / "x").write_text("old")
        (tmp_path / "x").chmod(mode)
        write_text(tmp_path / "x", "new")
        assert (rights(tmp_path / "x"), (tmp_path / "x").read_text()) == (mode, "new")
        (tmp_path / "x").unlink()


def test_models_have_the_rights_of_any_file(tmp_path: Path, mask: int) -> None:
    pytest.importorskip("torch", reason="needs the extra [neural]")
    from ranker_factories import knrm

    folder = tmp_path / "model"
    knrm().save(folder)
    made = {path.name: rights(path) for path in folder.iterdir()}
    assert made == dict.fromkeys(("model.safetensors", "vocabulary.txt", "evenrank.json"), 0o666 & ~mask)
    (folder / "model.safetensors").chmod(0o640)
    knrm().save(folder)
    assert rights(folder / "model.safetensors") == 0o640
