"""What several test files of experiments share."""

from __future__ import annotations

import pytest

import expansion_runs


@pytest.fixture(scope="session")
def expansion_done(tmp_path_factory: pytest.TempPathFactory) -> expansion_runs.Done:
    """The expansion experiment on small data: seconds. Its page may be written again, its tables and data may not."""
    return expansion_runs.run(expansion_runs.micro(), tmp_path_factory.mktemp("expansion"))
