"""Average term similarity as a table and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evenrank.measures.similarity import Similarity

from .report._format import NONE, number
from .report.plain import Drawing, PlainPage, PlainTable, specification

_SOURCE = "ATS and MATS as in Hofstätter et al., ECIR 2021 (§5, Fig. 2)"


def similarity_page(found: Similarity, name: str, what: str, settings: Mapping[str, Any]) -> PlainPage:
    """ATS(Δ) and MATS of a model; ``what`` says which vectors were compared."""
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
        PlainTable("Average term similarity by distance", ("Δ", "ATS", "deviation", "terms", "pairs"), rows, left=0),
    )
    notes = [
        f"Vectors: {what}. A pair is one term in two passages, Δ words apart.",
        f"A term counts at Δ with {settings['min_pairs']} pairs or more, a Δ with {settings['min_terms']} terms or"
        f" more. Seeded samples: {settings['passages']:,} passages, {settings['cap']:,} places of a term.",
        "Band and deviation: over the pairs at each Δ. The terms change with Δ, which bends the curve by itself: the"
        " second line keeps to terms that are there at every Δ.",
    ]
    if found.delta_max < 2:
        notes.append("MATS is undefined: too few terms. More passages, or a smaller --min-terms, may help.")
    facts = (("passages at most", f"{settings['passages']:,}"), ("seed", str(settings["seed"])))
    title = f"Position in the word vectors of {name}"
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
