"""``evenrank train``: train a ranker from a recipe."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from . import _output


def command(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A TOML file, or the name of a built-in recipe.")],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Override the recipe: training.batch=16; data.run= removes a key."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")] = False,
) -> None:
    """Train a ranker; the run's folder contains the model, its log and its model card."""
    from evenrank import train_recipe, training_summary

    folder = train_recipe(recipe, settings or (), resume=resume, say=lambda text: _output.say(text, err=True))
    # One of several processes reports for all.
    if os.environ.get("RANK", "0") == "0":
        for line in training_summary(folder):
            _output.say(line, err=True)
        # Standard output has the path alone, for scripts.
        _output.say(str(folder / "model"))
