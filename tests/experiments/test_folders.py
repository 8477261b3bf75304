"""A folder to work in that cannot be made."""

from __future__ import annotations

import pytest

from evenrank.io import EvenrankError

pytest.importorskip("torch")


def test_a_folder_that_cannot_be_made_is_named_before_any_work(tmp_path):
    from evenrank.datasets.public import fetch
    from evenrank.experiments import run_experiment

    (tmp_path / "file").write_text("not a folder")
    folder = tmp_path / "file" / "inside"
    for work in (
        lambda: run_experiment("sampling", scale="tiny", seeds=1, folder=folder, jobs=1),
        lambda: fetch("xquad-en", folder),
    ):
        with pytest.raises(EvenrankError) as error:
            work()
        assert str(error.value) == f"{folder}: the folder cannot be made: Not a directory"
