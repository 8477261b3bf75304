"""``evenrank train``: train a ranker as a recipe says."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def command(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A TOML file, or the name of a shipped recipe.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Over the recipe, as in training.batch=16.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
) -> None:
    """Train a ranker; the run's folder holds the model, its log and its card."""
    from evenrank.rankers.models import require_extra

    require_extra()
    from evenrank.training.recipes import load_recipe
    from evenrank.training.run import train

    folder = train(load_recipe(recipe, settings or ()), resume=resume, say=lambda text: typer.echo(text, err=True))
    # One of several processes says it for all.
    if os.environ.get("RANK", "0") == "0":
        typer.echo(str(folder / "model"))
