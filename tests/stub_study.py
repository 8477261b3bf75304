"""A study without a model: its steps leave the number of their process, its figures are made up."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from evenrank import papers
from evenrank.files import InputError
from evenrank.papers.checks import Need, Options
from evenrank.papers.figures import Figures
from evenrank.papers.study import Settings, Step, Study


class StubStudy(Study[Settings, None]):
    """In place of ``ibbr``, whose claims and tables it has."""

    name = "ibbr"
    about: ClassVar[Mapping[str, Any]] = {
        "title": "A title", "source": "A source", "disk": 10, "time": "a second", "notes": (),
    }  # fmt: skip
    papers = ("ibbr",)
    utility = "MRR"
    named = ("a", "b")

    @classmethod
    def settings_of(cls, scale: str, options: Options) -> Settings:
        """Of every scale the same."""
        return Settings(scale=scale, seeds=(0,), models={"BERT-L2": "none"}, same_queries=True, options=options)

    def needs(self) -> list[Need]:
        """Nothing."""
        return []

    def trainings(self) -> int:
        """None."""
        return 0

    def steps(self) -> Iterator[Sequence[Step]]:
        """One by itself, then several, one of them twice."""
        yield [("leave", ("alone",))]
        yield [("leave", (name,)) for name in (*self.named, self.named[0])]

    def leave(self, name: str) -> None:
        """A step."""
        if name == "broken":
            raise InputError("qrels.txt", "no such file", line=3)
        self.say(f"{self.settings.scale} {name}")
        (self.folder / name).write_text(str(os.getpid()))

    def figures(self) -> Figures:
        """MRR of the first stage, and of two rankers, of which the first is destroyed."""
        found, ids = Figures(True), [f"q{query}" for query in range(40)]
        for system, mean in {"BM25": 0.4, "BERT-L2 none": 0.1, "BERT-L2 TS best": 0.5}.items():
            values = mean + np.resize([-0.02, 0.02], 40)
            found.add("MRR", system, 0, ids, values)
        return found


class BrokenStudy(StubStudy):
    """One of its steps fails."""

    named = ("c", "broken")


def in_place_of_ibbr(patch: pytest.MonkeyPatch, study: type[StubStudy]) -> None:
    """From now on ``ibbr`` is this study."""
    patch.setattr(papers, "import_module", lambda *_: SimpleNamespace(IBBRStudy=study))
