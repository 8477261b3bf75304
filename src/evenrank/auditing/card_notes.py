"""What the runs' cards say of how they were made."""

from __future__ import annotations

from collections.abc import Iterable

from evenrank.io import Provenance, Run
from evenrank.io.run_cards import made_by_text


def card_notes(runs: Iterable[Run]) -> list[str]:
    """A note for each run with a card."""
    return [f"{run.name}: {made_by_text(run.card)}." for run in runs if run.card is not None]


def add_cards(provenance: Provenance, runs: Iterable[Run], background: Run) -> None:
    """Puts the cards into the record of the inputs."""
    for run in runs:
        provenance.add_card(f"run {run.name}", run.card)
    provenance.add_card("background", background.card)
