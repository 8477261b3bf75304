"""An option that an experiment does not read at a scale is refused before any work."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenrank import EvenrankError
from evenrank.papers import ExperimentOptions, check_experiment

pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize(
    ("name", "scale", "options", "refused"),
    [
        ("ibbr", "tiny", {"encoder": "e"}, "`encoder`"),
        ("sampling", "tiny", {"squad": ("s",)}, "`squad`"),
        ("position", "tiny", {"vectors": "v"}, "`vectors`"),
        ("position", "full", {"encoder": "e"}, "`encoder`"),
        ("expansion", "tiny", {"grepbiasir": "g"}, "`grepbiasir`"),
        ("expansion", "full", {"squad": ("s",)}, "`squad`"),
    ],
)
def test_an_option_that_is_not_read(
    name: str, scale: str, options: dict[str, object], refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is missing beside is not asked of the hub.
    monkeypatch.setattr("evenrank.papers.checks.model_bytes", lambda _: 1)
    with pytest.raises(EvenrankError) as error:
        check_experiment(name, scale=scale, out=tmp_path, options=ExperimentOptions(**options))  # type: ignore[arg-type]
    assert f"{refused}: not used by this experiment at this scale" in str(error.value).split("\n")
