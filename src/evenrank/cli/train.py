"""``evenrank train``: train a ranker as a recipe says."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from . import _output


def command(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A TOML file, or the name of a shipped recipe.")],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Over the recipe: training.batch=16; data.run= takes a key away."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
) -> None:
    """Train a ranker; the run's folder holds the model, its log and its card."""
    from evenrank.rankers.models import require_extra

    require_extra()
    from evenrank.training.card import summary
    from evenrank.training.recipes import load_recipe
    from evenrank.training.run import train

    folder = train(load_recipe(recipe, settings or ()), resume=resume, say=lambda text: _output.say(text, err=True))
    # One of several processes says it for all.
    if os.environ.get("RANK", "0") == "0":
        # The path stands alone on standard output, for scripts.
        for line in summary(folder):
            _output.say(line, err=True)
        _output.say(str(folder / "model"))
