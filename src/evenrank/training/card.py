"""The model card: what was trained, how well it ranks, and what bias its validation run shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenrank import __version__
from evenrank.audit.compute import audit
from evenrank.io import Run, write_text

from .recipes import Recipe, to_toml
from .validation import Validation

_LIBRARY = {"cat": "CrossEncoder", "dot": "SentenceTransformer"}


def write_card(recipe: Recipe, folder: Path, result: dict[str, Any], validation: Validation, run: Run) -> None:
    """Writes ``model/README.md`` and ``audit.json``: the validation run against its first stage."""
    texts = validation.pairs.select("doc_id", "text").unique("doc_id", maintain_order=True)
    runs = {"first stage": validation.run, recipe.name: run}
    found = audit(
        runs,
        collection=texts,
        qrels=validation.qrels.join(validation.run.queries.to_frame(), on="query_id", how="semi"),
        baseline="first stage",
        # Below the re-ranking depth the first stage's passages have no text at hand.
        missing="neutral",
    )
    found.to_json(folder / "audit.json")
    write_text(folder / "model" / "README.md", _card(recipe, result, found.table(100)))


def _card(recipe: Recipe, result: dict[str, Any], table: str) -> str:
    library = _LIBRARY.get(recipe.ranker.kind)
    origin, loaded = "sentence_transformers", f"{library}("
    if not library:
        origin, library = "evenrank.rankers.protocol", "ranker_class"
        loaded = f'ranker_class("{recipe.ranker.kind}").load('
    usage = f'from {origin} import {library}\n\nmodel = {loaded}"PATH OF THIS FOLDER")'
    return f"""---
library_name: {"sentence-transformers" if origin == "sentence_transformers" else "evenrank"}
tags: [evenrank, ranking, {recipe.ranker.kind}]
---

# {recipe.name}

A `{recipe.ranker.kind}` ranker trained with evenrank {__version__}.

```python
{usage}
```

## Effectiveness

{result["measure"]} of the validation run: {result["value"]:.4f} when its first {result["depth"]} passages are
re-ranked, {result["first_stage"]:.4f} as the first stage ranks them. {result["steps"]} steps.

## Audit of the validation run

```
{table}
```

## Recipe

```toml
{to_toml(recipe)}```
"""
