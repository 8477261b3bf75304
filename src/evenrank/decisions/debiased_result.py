"""What debiasing of an index did, as JSON, in sentences, as tables and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenrank.embeddings.group_probes import FOLDS, Recovered
from evenrank.io import Provenance
from evenrank.io.wording import counted
from evenrank.reports.format import interval, number, p_value
from evenrank.reports.page import Page, Table
from evenrank.reports.result import Result
from evenrank.retrieval.index_folder import Manifest

from .debiased_probes import Probes
from .debiased_runs import DEBIASED, UNTOUCHED, UTILITY, Measured, Rankings, distance

_SOURCE = (
    "LEACE: Belrose et al., NeurIPS 2023. Hard debiasing: Bolukbasi et al., NeurIPS 2016. What remains: Gonen &"
    " Goldberg, NAACL 2019."
)
_METHODS = {"leace": "LEACE", "hard": "Hard debiasing"}


@dataclass(frozen=True, slots=True, repr=False)
class DebiasedIndex(Result):
    """What :func:`evenrank.debias_index` returns.

    ``manifest``: of the new index, whose ``settings["erasure"]`` says what was done; ``probes``: what is recovered of
    the groups; ``rankings``: of the queries, None without any.
    """

    manifest: Manifest
    probes: Probes
    rankings: Rankings | None
    settings: Mapping[str, object]
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    @property
    def erasure(self) -> Mapping[str, object]:
        """What was done, as the index's manifest says it."""
        found = self.manifest.settings["erasure"]
        assert isinstance(found, Mapping)
        return found

    @property
    def gap(self) -> tuple[float, float]:
        """The largest distance between the means of two groups' vectors, as stored: before and after."""
        found = self.erasure["gap"]
        assert isinstance(found, Mapping)
        return found["before"], found["after"]

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {
            "settings": dict(self.settings),
            "summary": list(self.summary()),
            "index": str(self.manifest.path),
            "documents": self.manifest.documents,
            "erasure": dict(self.erasure),
            "probes": self.probes.to_dict(),
            "rankings": None if self.rankings is None else self.rankings.to_dict(),
            "notes": list(self.notes),
        }

    def summary(self) -> tuple[str, ...]:
        """The findings, in sentences; the last is what can still be recovered."""
        lines = [_what(self)]
        if self.rankings is not None:
            lines += _ranked(self.rankings)
        return (*lines, _remains(self.probes))

    def page(self) -> Page:
        """The figures as a page."""
        tables = [] if self.probes.before is None else [_probe_table(self.probes)]
        if self.rankings is not None:
            tables += [_ranking_table(self.rankings), _difference_table(self.rankings)]
        facts = [("passages", f"{self.manifest.documents:,}"), ("directions erased", f"{self.erasure['directions']}")]
        if self.rankings is not None:
            facts.append(("queries", f"{self.rankings.queries:,}"))
        title = f"Debiased index: {self.manifest.path}"
        return Page("index debias", title, _SOURCE, tuple(facts), tuple(tables), (), self.notes, self.summary())


# --- sentences --------------------------------------------------------------------------------------------------------


def _what(result: DebiasedIndex) -> str:
    method, directions = str(result.erasure["method"]), result.erasure["directions"]
    assert isinstance(directions, int)
    before, after = result.gap
    passages = counted(result.manifest.documents, "passage")
    return (
        f"{_METHODS[method]} erased {counted(directions, 'direction')} from {passages}"
        " and from every query to come. The largest distance between the means of two groups, as stored, is"
        f" {after:.2g}; it was {before:.2g}."
    )


def _ranked(rankings: Rankings) -> list[str]:
    own = rankings.figures[DEBIASED]
    lines = [f"{measure}: {_change(rankings, measure)}." for measure in own]
    if UTILITY not in own:
        lines.insert(0, "Effectiveness is unknown: there are no qrels.")
    return lines


def _change(rankings: Rankings, measure: str) -> str:
    before, after = rankings.figures[UNTOUCHED][measure], rankings.figures[DEBIASED][measure]
    text = (
        f"{number(after.mean)}, it was {number(before.mean)} ({_difference(after)}){_farther(before, after, measure)}"
    )
    if before.added is None or after.added is None:
        return text
    return f"{text}; of this the order adds {number(after.added[0])}, it added {number(before.added[0])}"


def _farther(before: Measured, after: Measured, measure: str) -> str:
    """Words for a difference that is shown and leads away from no bias."""
    against = after.against
    if against is None or against.ci95 is None or before.mean is None or after.mean is None or measure == UTILITY:
        return ""
    shown = not against.ci95[0] <= 0 <= against.ci95[1]
    return ", farther from no bias" if shown and distance(after.mean, measure) > distance(before.mean, measure) else ""


def _difference(figure: Measured) -> str:
    against = figure.against
    if against is None or against.mean is None:
        return "no difference is defined"
    sign = "+" if against.mean >= 0 else ""
    return f"{sign}{number(against.mean)} {interval(against.ci95)}"


def _remains(probes: Probes) -> str:
    found, before = probes.after, probes.before
    if found is None or before is None:
        return "What can still be recovered is not known: too few different passages of two groups to probe."
    chance = number(probes.chance, 2)
    held = "passages that the erasure was not fitted on" if probes.unseen else "held-out passages"
    known = f"(before: {number(before.rbf.accuracy, 2)})"
    rbf = f"an RBF probe is right about the group of {_share(found.rbf)} of {held} {known}"
    linear = f"a linear one of {_share(found.linear)} (before: {number(before.linear.accuracy, 2)})"
    if _differs(found.linear, probes.chance):
        return f"The groups can still be told apart: {rbf}, {linear}; chance is {chance}."
    if _differs(found.rbf, probes.chance):
        return f"Linear erasure leaves what is not linear: {rbf}, {linear}; chance is {chance}."
    if not (_differs(before.linear, probes.chance) or _differs(before.rbf, probes.chance)):
        return f"Nothing was shown to be there to erase: {rbf}, {linear}; chance is {chance}."
    return (
        f"Nothing is shown to be left: {rbf}, {linear}; chance is {chance}. That these probes fail does not show that"
        " no other would succeed."
    )


def _differs(found: Recovered, chance: float) -> bool:
    """Whether a probe knows something; one that is below chance does, too."""
    return not found.ci95[0] <= chance <= found.ci95[1]


def _share(found: Recovered) -> str:
    return f"{number(found.accuracy, 2)} {interval(found.ci95, 2)}"


# --- tables -----------------------------------------------------------------------------------------------------------


def _probe_table(probes: Probes) -> Table:
    after = "after, of passages not fitted on" if probes.unseen else "after, as stored"
    named = (("before", probes.before), (after, probes.after))
    rows = tuple(
        (
            name,
            *(cell for one in (found.linear, found.rbf) for cell in (number(one.accuracy), interval(one.ci95))),
            number(probes.chance),
        )
        for name, found in named
        if found is not None
    )
    counts = ", ".join(f"{count:,} of {name}" for name, count in probes.groups.items())
    note = (
        f"Balanced accuracy of support vector machines over {FOLDS} folds, each passage held out once; passages:"
        f" {counts}. Groups weigh alike; intervals over passages. A passage and the one nearest to it in the debiased"
        " index are in the same fold: copies of a text with the words of another group do not decide."
    )
    return Table("What a probe recovers", ("index", "linear", "95%", "RBF", "95%", "chance"), rows, (note,))


def _ranking_table(rankings: Rankings) -> Table:
    measures = list(rankings.figures[UNTOUCHED])
    added = [measure for measure in measures if measure != UTILITY and _has_added(rankings, measure)]
    heads = ["ranking"]
    for measure in measures:
        heads += [measure, "95%", *([f"{measure} added", "95%"] if measure in added else [])]
    rows = []
    for name, figures in rankings.figures.items():
        row = [name]
        for measure, one in figures.items():
            row += [number(one.mean), interval(one.ci95)]
            if measure in added:
                row += ["–", "–"] if one.added is None else [number(one.added[0]), interval(one.added[1])]
        rows.append(tuple(row))
    notes = [f"{counted(rankings.queries, 'query')}, {counted(rankings.depth, 'document')} of each."]
    if added:
        notes.append("Added: what the order adds to its own candidates in random order.")
    return Table("Rankings", tuple(heads), tuple(rows), tuple(notes))


def _has_added(rankings: Rankings, measure: str) -> bool:
    return any(figures[measure].added is not None for figures in rankings.figures.values())


def _difference_table(rankings: Rankings) -> Table:
    rows = []
    for measure, one in rankings.figures[DEBIASED].items():
        against = one.against
        if against is not None and against.mean is not None:
            figures = number(against.mean), interval(against.ci95), p_value(against.t_p)
            rows.append((DEBIASED, measure, *figures, f"{against.n:,}"))
    note = "Paired, over the queries where both are defined; intervals by bootstrap; p of the t-test, uncorrected."
    return Table(
        "Against the untouched index",
        ("ranking", "measure", "difference", "95%", "p", "queries"),
        tuple(rows),
        (note,),
        left=2,
    )
