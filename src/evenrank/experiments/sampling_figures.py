"""The figures of the sampling experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenrank.measures.statistics import SIGNIFICANT
from evenrank.reports.page import COLOURS, specification

from .paper_page import Drawing, bars, plane
from .sampling_data import QUERY_SETS
from .sampling_measures import FIRST, HEADINGS, Figures, share_above
from .sampling_tables import ADVERSARIAL, AWARE, BLIND, ORIGINAL, Found


def drawings(found: Found, shares: Sequence[float], main: str) -> tuple[Drawing, ...]:
    """Figures 1 to 3, and a plane for each query set."""
    made = [_over_shares(part, figures, shares, main) for part, figures in found.shares.items()]
    for name, table in found.fairer.items():
        title = f"NFaiRR@10 of bias-aware − AdvBert by query, {name}"
        fairer = share_above(table["difference"])
        hint = f"QS2, one seed: {fairer.mean or 0:.0%} of {table.height} queries are fairer."
        signs = ("bias-aware is more neutral", "AdvBert is more neutral")
        made.append(bars(f"Figure 2 ({name})", title, table, "difference of NFaiRR@10", hint, signs=signs))
    made.append(_plane("Figure 3", "QS2, all small rankers, one seed", found.small))
    made += [_plane(f"Plane {part}", f"{part}, all rankers", found.sets[part]) for part in QUERY_SETS]
    return tuple(made)


def _over_shares(part: str, figures: Figures, shares: Sequence[float], main: str) -> Drawing:
    """Figure 1: a panel for each measure; filled points differ from share 0."""
    import altair as alt

    rows = []
    for share in shares:
        for key, heading in HEADINGS.items():
            value = figures.value(f"{share:g}", key)
            low, high = value.ci95 or (value.mean, value.mean)
            p = figures.test(f"{share:g}", f"{shares[0]:g}", key).p if share != shares[0] else None
            differs = "p < .05" if p is not None and p < SIGNIFICANT else "not significant"
            point = {"x": share, "measure": heading, "value": value.mean, "low": low, "high": high}
            rows.append({**point, "differs": differs})
    data = alt.Chart(alt.Data(values=rows))
    across = alt.X("x:Q", title="share λ of biased negatives")
    up = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    fill = alt.Color(
        "differs:N",
        title="against λ = 0",
        scale=alt.Scale(domain=["p < .05", "not significant"], range=[COLOURS[0], "#8a8f98"]),
    )
    shape = alt.Shape(
        "differs:N",
        title="against λ = 0",
        scale=alt.Scale(domain=["p < .05", "not significant"], range=["circle", "cross"]),
    )
    tips = [alt.Tooltip("x:Q", title="λ"), alt.Tooltip("value:Q", format=".4f"), alt.Tooltip("differs:N")]
    layers = (
        data.mark_rule(color=COLOURS[0], opacity=0.5).encode(x=across, y="low:Q", y2="high:Q"),
        data.mark_line(color=COLOURS[0]).encode(x=across, y=up),
        data.mark_point(size=70, filled=True, opacity=1).encode(x=across, y=up, color=fill, shape=shape, tooltip=tips),
    )
    chart = (
        alt.layer(*layers)
        .properties(width=390, height=220)
        .facet(facet=alt.Facet("measure:N", title=None), columns=2)
        .resolve_scale(y="independent")
        .resolve_axis(x="independent")
    )
    hint = (
        f"{main}, one seed, 95% intervals over queries; the points' shape says whether the measure differs from λ = 0"
        " (paired t-test per query). Published: no significant drop of MRR up to 0.6."
    )
    return Drawing(f"Figure 1 ({part})", "Over the share of biased negatives", specification(chart), hint)


def _plane(name: str, title: str, rankers: Mapping[str, Figures]) -> Drawing:
    """All rankers of a query set in one plane; controls of the first."""
    points = {}
    for ranker, figures in rankers.items():
        for system in (ORIGINAL, ADVERSARIAL, AWARE):
            if system in figures.seeds[0]:
                points[f"{ranker} {system}"] = figures.value(system, "mrr_10"), figures.value(system, "nfairr_10")
    first, figures = next(iter(rankers.items()))
    for system in (BLIND, FIRST):
        points[system] = figures.value(system, "mrr_10"), figures.value(system, "nfairr_10")
    return plane(
        name,
        f"Utility against bias: {title}",
        points,
        "MRR@10 (higher is better)",
        "NFaiRR@10 (higher is better)",
        (f"{first} {ORIGINAL}", BLIND),
    )
