"""Average term similarity as JSON, as tables and as a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from evenrank.io import Provenance
from evenrank.reports.format import NONE, number
from evenrank.reports.page import COLOURS, Drawing, Page, Table, specification
from evenrank.reports.result import Result

from .term_similarity import TermSimilarity

_SOURCE = "ATS and MATS as in Hofstätter et al., ECIR 2021 (§5, Fig. 2)"


@dataclass(frozen=True, slots=True, repr=False)
class SimilarityResult(Result):
    """The result of :func:`evenrank.position_similarity`; ``vectors`` names the vectors that were compared."""

    name: str
    vectors: str
    similarity: TermSimilarity
    settings: Mapping[str, object]
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {"settings": self.settings, "vectors": self.vectors, **self.similarity.to_dict()}

    def page(self) -> Page:
        """The figures as a page."""
        found, settings = self.similarity, self.settings
        figures = (
            ("MATS", _shown(found.mats)),
            ("its standard deviation over distances", _shown(found.mats_deviation)),
            ("MATS over terms that count at every distance", _shown(found.mats_common)),
            ("terms that count at every distance", f"{found.common_terms:,}"),
            ("largest distance with enough terms (Δmax)", f"{found.delta_max}" if found.delta_max >= 0 else NONE),
        )
        last = max(found.delta_max, 0)
        step = max(1, last // 20)
        rows = tuple(
            (f"{d}", _shown(found.ats[d]), _shown(found.deviation[d]), f"{found.terms[d]:,}", f"{found.pairs[d]:,}")
            for d in range(0, len(found.ats), step)
            if d <= last
        )
        tables = (
            Table("Position in word vectors", ("figure", "value"), figures),
            Table("Average term similarity by distance", ("Δ", "ATS", "deviation", "terms", "pairs"), rows, left=0),
        )
        notes = [
            f"Vectors: {self.vectors}. A pair: the same term in two passages, its positions Δ words apart.",
            f"A term counts at Δ with at least {settings['min_pairs']} pairs there, a Δ with at least"
            f" {settings['min_terms']} terms. Sampled with seed {settings['seed']}: at most {settings['passages']:,}"
            f" passages, and {settings['cap']:,} occurrences of a term.",
            "Band and deviation: over the pairs at each Δ. Which terms count changes with Δ, which alone bends the"
            " curve: the second line includes only terms that count at every Δ.",
        ]
        if found.delta_max < 2:
            notes.append("MATS is undefined: too few terms. Use more passages, or a smaller `min_terms`.")
        facts = (("passages at most", f"{settings['passages']:,}"),)
        title = f"Position in the word vectors of {self.name}"
        return Page("position similarity", title, _SOURCE, facts, tables, (_chart(found),), tuple(notes))


def _shown(value: float) -> str:
    return NONE if math.isnan(value) else number(float(value), 4)


def _chart(found: TermSimilarity) -> Drawing:
    import altair as alt

    rows = []
    for distance in range(max(found.delta_max, 0) + 1):
        for terms, curve in (("all terms", found.ats), ("terms that count at every Δ", found.common)):
            if distance < len(curve) and not math.isnan(curve[distance]):
                spread = float(found.deviation[distance]) if curve is found.ats else 0.0
                value = float(curve[distance])
                rows.append(
                    {"x": distance, "value": value, "low": value - spread, "high": value + spread, "terms": terms}
                )
    data = alt.Chart(alt.Data(values=rows))
    across = alt.X("x:Q", title="distance Δ in words")
    colour = alt.Color("terms:N", title=None, scale=alt.Scale(range=COLOURS[:2]))
    y = alt.Y("value:Q", title="ATS(Δ)", scale=alt.Scale(zero=False))
    line = data.mark_line().encode(x=across, y=y, color=colour)
    band = data.mark_area(opacity=0.15).encode(x=across, y=alt.Y("low:Q", title="ATS(Δ)"), y2="high:Q", color=colour)
    return Drawing(
        "ATS",
        "Average term similarity by distance",
        specification(alt.layer(band, line).properties(width=780, height=320)),
        "Band: one standard deviation over the pairs.",
    )
