"""A small checkpoint."""

from __future__ import annotations

import pytest

from tiny_models import tiny_bert


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("plain") / "bert", hidden=16, layers=1))
