"""Average term similarity as a table and a page."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from evenrank.io import Provenance, as_batches
from evenrank.io.progress import progress
from evenrank.io.ranges import check_ranges
from evenrank.measures.similarity import Similarity, term_similarity

from .report._format import NONE, number
from .report.plain import Drawing, PlainPage, PlainResult, PlainTable, specification

_SOURCE = "ATS and MATS as in Hofstätter et al., ECIR 2021 (§5, Fig. 2)"


@dataclass(frozen=True, slots=True, repr=False)
class SimilarityResult(PlainResult):
    """What :func:`position_similarity` found; ``vectors`` says which vectors were compared."""

    name: str
    vectors: str
    similarity: Similarity
    settings: dict[str, Any]
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {"settings": self.settings, "vectors": self.vectors, **self.similarity.to_dict()}

    def page(self) -> PlainPage:
        """The figures as a page."""
        found, settings = self.similarity, self.settings
        figures = (
            ("MATS", _shown(found.mats)),
            ("its standard deviation over distances", _shown(found.mats_deviation)),
            ("MATS over terms that are there at every distance", _shown(found.mats_common)),
            ("such terms", f"{found.common_terms:,}"),
            ("largest distance that counts (Δmax)", f"{found.delta_max}" if found.delta_max >= 0 else NONE),
        )
        last = max(found.delta_max, 0)
        step = max(1, last // 20)
        rows = tuple(
            (f"{d}", _shown(found.ats[d]), _shown(found.deviation[d]), f"{found.terms[d]:,}", f"{found.pairs[d]:,}")
            for d in range(0, len(found.ats), step)
            if d <= last
        )
        tables = (
            PlainTable("How much of a word's vector is its place", ("figure", "value"), figures),
            PlainTable(
                "Average term similarity by distance", ("Δ", "ATS", "deviation", "terms", "pairs"), rows, left=0
            ),
        )
        notes = [
            f"Vectors: {self.vectors}. A pair is one term in two passages, Δ words apart.",
            f"A term counts at Δ with {settings['min_pairs']} pairs or more, a Δ with {settings['min_terms']} terms or"
            f" more. Samples by seed {settings['seed']}: {settings['passages']:,} passages, {settings['cap']:,} places"
            " of a term.",
            "Band and deviation: over the pairs at each Δ. The terms change with Δ, which bends the curve by itself:"
            " the second line keeps to terms that are there at every Δ.",
        ]
        if found.delta_max < 2:
            notes.append("MATS is undefined: too few terms. More passages, or a smaller `min_terms`, may help.")
        facts = (("passages at most", f"{settings['passages']:,}"),)
        title = f"Position in the word vectors of {self.name}"
        return PlainPage("position similarity", title, _SOURCE, facts, tables, (_drawing(found),), tuple(notes))


def _shown(value: float) -> str:
    return NONE if math.isnan(value) else number(float(value), 4)


def _drawing(found: Similarity) -> Drawing:
    import altair as alt

    rows = []
    for distance in range(max(found.delta_max, 0) + 1):
        for kind, curve in (("all terms", found.ats), ("terms that are there at every Δ", found.common)):
            if distance < len(curve) and not math.isnan(curve[distance]):
                spread = float(found.deviation[distance]) if curve is found.ats else 0.0
                value = float(curve[distance])
                rows.append(
                    {"x": distance, "value": value, "low": value - spread, "high": value + spread, "kind": kind}
                )
    data = alt.Chart(alt.Data(values=rows))
    across = alt.X("x:Q", title="distance Δ in words")
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(range=["#0072b2", "#c24d00"]))
    y = alt.Y("value:Q", title="ATS(Δ)", scale=alt.Scale(zero=False))
    line = data.mark_line().encode(x=across, y=y, color=colour)
    band = data.mark_area(opacity=0.15).encode(x=across, y=alt.Y("low:Q", title="ATS(Δ)"), y2="high:Q", color=colour)
    return Drawing(
        "ATS",
        "Average term similarity by distance",
        specification(alt.layer(band, line).properties(width=780, height=320)),
        "Band: one standard deviation over the pairs.",
    )


def position_similarity(
    model: str,
    collection: Any,
    *,
    passages: int = 2000,
    max_words: int = 200,
    min_pairs: int = 5,
    min_terms: int = 100,
    cap: int = 1000,
    batch_size: int = 32,
    device: str | None = None,
    seed: int = 0,
    quiet: bool = True,
) -> SimilarityResult:
    """ATS and MATS of a model on a seeded sample of a collection's passages (see
    :func:`evenrank.measures.similarity.term_similarity`).

    ``model``: see :func:`evenrank.rankers.contextual.word_encoder`. ``collection``: a path, ``{document: text}``, or a
    frame with ``doc_id`` and ``text``. Memory: ``passages`` × ``max_words`` vectors at most, whatever the collection's
    size. Raises EvenrankError for a setting out of range and for a model without contextual vectors.
    """
    settings: dict[str, int] = {
        "passages": passages,
        "max_words": max_words,
        "min_pairs": min_pairs,
        "min_terms": min_terms,
        "cap": cap,
    }
    check_ranges(**settings, batch_size=batch_size, seed=seed)
    from evenrank.rankers.contextual import sample_passages, word_encoder, word_vectors

    made = Provenance("evenrank.position_similarity").add_model("model", model).add("collection", collection).ahead()
    encoder = word_encoder(model, device=device, max_words=max_words)
    with progress("documents", quiet=quiet) as advance:
        batches = _watched(as_batches(collection), advance)
        texts = sample_passages(batches, passages, seed)["text"].to_list()
    words: list[list[str]] = [[] for _ in texts]
    vectors = np.empty((0, max_words, 0), np.float32)
    with progress("passages", len(texts), quiet=quiet) as advance:
        for row, (found, values) in word_vectors(encoder.encode, texts, batch_size, advance):
            if not vectors.size:
                # Room for the longest passages; memory that is never written to is not taken.
                vectors = np.empty((len(texts), max_words, values.shape[1]), np.float32)
            words[row] = found
            vectors[row, : len(found)] = values
    numbers: dict[str, int] = {}
    terms = np.full(vectors.shape[:2], -1, np.int64)
    for row, found in enumerate(words):
        terms[row, : len(found)] = [numbers.setdefault(word, len(numbers)) for word in found]
    owners, places = np.indices(terms.shape)
    with progress("terms", len(numbers), quiet=quiet) as advance:
        similarity = term_similarity(
            vectors.reshape(terms.size, -1),
            terms.ravel(),
            places.ravel(),
            owners.ravel(),
            min_pairs=min_pairs,
            min_terms=min_terms,
            cap=cap,
            seed=seed,
            advance=advance,
        )
    inputs = {"collection": os.fspath(collection)} if isinstance(collection, str | os.PathLike) else {}
    return SimilarityResult(model, encoder.what, similarity, {"model": model, **inputs, **settings, "seed": seed}, made)


def _watched(batches: Iterable[pl.DataFrame], advance: Callable[[int], None]) -> Iterator[pl.DataFrame]:
    for batch in batches:
        yield batch
        advance(batch.height)
