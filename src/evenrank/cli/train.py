"""``evenrank train``: train a ranker from a recipe."""

from __future__ import annotations

import os
from typing import Annotated

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# As the recipe says, but for two settings.
evenrank train recipe.toml --set name=strong --set fairness.weight=0.1
# BERT-Tiny learns MiniLM's vectors of your own texts, without labels.
evenrank train distil --set data.collection=collection.tsv
# Where it was interrupted.
evenrank train recipe.toml --resume
"""


def command(*, given: Annotated[Values, From("training.run", "train_recipe")]) -> None:
    from evenrank.files.errors import require_neural

    require_neural("training")
    from evenrank import train_recipe, training_summary

    printed: list[str] = []

    def say(text: str) -> None:
        printed.append(text)
        _output.say(text, err=True)

    folder = train_recipe(**given, say=say)
    # One of several processes reports for all.
    if os.environ.get("RANK", "0") == "0":
        for line in training_summary(folder):
            # Which checkpoint was kept, and why, was told when the training ended.
            if not any(text.endswith(line.removeprefix("checkpoint: ")) for text in printed):
                _output.say(line, err=True)
        # Standard output has the path alone, for scripts.
        _output.say(str(folder / "model"))
