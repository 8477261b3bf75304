"""How the texts of a collection are encoded for an index."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenrank.engines.ray import Cluster
from evenrank.io import EvenrankError


@dataclass(frozen=True, slots=True)
class Encoding:
    """Settings of :func:`evenrank.build_index` and :func:`evenrank.retrieve` with a model.

    ``kind``: "bi" or "sparse", where the model's files do not tell. ``precision``: auto, float32 or bfloat16.
    ``query_prompt``, ``document_prompt``: put before each text in place of the model's own ("": nothing); a search uses
    the index's query prompt unless one is given. ``engine``: local or ray, for building.
    """

    kind: str | None = None
    batch_size: int = 32
    device: str | None = None
    precision: str | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    engine: str = "local"
    cluster: Cluster = field(default_factory=Cluster)


def refuse_model(model: object, encoding: Encoding | None) -> None:
    """Raises EvenrankError if a model, or settings of one, are given for BM25."""
    if model is not None or (encoding is not None and encoding != Encoding(batch_size=encoding.batch_size)):
        raise EvenrankError(
            "BM25 has no model: `model`, `device` and the like are for an index of a model's vectors"
            " (build one with `model`)"
        )
