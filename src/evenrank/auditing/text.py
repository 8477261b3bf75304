"""The audit as text for the terminal."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from evenrank.io.errors import plain
from evenrank.io.wording import counted, percent
from evenrank.measures import is_bias
from evenrank.measures.inference import LEAST
from evenrank.results.format import NONE, interval, number, p_value

from .findings import TITLE, Figure, Findings, RunAudit
from .summary import (
    direction,
    group_label,
    groups,
    has_scores,
    labelled,
    on_common,
    origins_text,
    origins_title,
    poles,
    positive,
    signed_measures,
    summarise,
)
from .words import Words

_DIGITS = 4
_GAP = "  "
_LEAST_NAME, _MOST_NAME = 15, 30
_LEAST_WIDTH = 76
_INDENT = 2
_MOST_WORDS = 5


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the table: a run's name, its figures, and its comparison with the baseline."""

    name: str
    figures: tuple[str, ...]
    against: tuple[str, ...]
    below: str = ""
    """A line below: the comparison's means, if it is over fewer queries than the figures."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """The right-aligned columns of a table."""

    header: tuple[str, ...]
    rows: list[tuple[str, ...]]

    @property
    def widths(self) -> list[int]:
        return [max(map(cell_len, column)) for column in zip(self.header, *self.rows, strict=True)]

    @property
    def width(self) -> int:
        return sum(self.widths) + len(_GAP) * len(self.widths)

    def beside(self, other: _Columns) -> _Columns:
        return _Columns(self.header + other.header, [a + b for a, b in zip(self.rows, other.rows, strict=True)])


_FIGURES = ("mean", "95% interval", "tie mean", "tie range ")
_AGAINST = ("differ.", "b/e/w", "p", "Holm p ")
# With labels: what is certain whatever the unknown ones are, and the share of the rows that is known.
_OF_LABELS = ("mean", "95% interval", "bounds", "known", "tie range ")
_AGAINST_OF_LABELS = ("differ.", "95% interval", "Holm p ")


def render_text(result: Findings, width: int = 120) -> str:
    """The audit for a terminal ``width`` (at least 76) characters wide: figures by measure, notes and a summary.

    If one table would be too wide, the comparison with the baseline goes into a second one below the figures.
    """
    width = max(width, _LEAST_WIDTH)
    blocks = [_head(result, width), _tables(result, width), _wrapped(_legend(result), width)]
    origins = origins_text(result)
    if origins:
        blocks.append(f"{_wrapped(origins_title(result), width)}\n{origins}")
    if result.stages is not None and result.stages.measures:
        blocks.append(f"{_wrapped(TITLE, width)}\n{result.stages.text()}")
    if result.words is not None:
        blocks.append(_words(result, result.words, width))
    notes = [note for note in result.notes if note not in result.warnings]
    if notes:
        blocks.append("Notes\n" + _listed([plain(note) for note in notes], width))
    blocks.append("Summary\n" + _listed([plain(sentence) for sentence in summarise(result)], width))
    return "\n\n".join(blocks) + "\n"


def _head(result: Findings, width: int) -> str:
    lines = [plain(warning) for warning in result.warnings]
    baseline = f"baseline {plain(result.baseline)}" if result.baseline is not None else "no baseline"
    lines.append(
        f"evenrank audit: {counted(len(result.given), 'run')}, {counted(len(result.queries), 'query')}, {baseline}"
    )
    settings = result.settings
    words = f"lexicon {settings.get('lexicon', 'unknown')}, {settings.get('tokens', 'unknown')} tokens, "
    if labelled(result):
        words = f"labels {settings['labels']}, "
    elif settings.get("threshold", 1) != 1:
        words += f"threshold {settings['threshold']:g}, "
    lines.append(
        plain(
            f"{words if has_scores(result) else ''}background {settings['background']}, ranked by"
            f" {settings['order']}{' order' * (settings['order'] == 'file')}"
        )
    )
    return "\n".join(_wrapped(line, width) for line in lines)


# --- tables ----------------------------------------------------------------------------------------------------------


def _tables(result: Findings, width: int) -> str:
    groups = [
        (str(measure), [_row(result, run, run.figures[str(measure)]) for run in result.runs])
        for measure in result.measures
    ]
    rows = [row for _, found in groups for row in found]
    name_width = min(max(cell_len(row.name) for row in rows), _MOST_NAME)
    figures = _Columns(_OF_LABELS if labelled(result) else _FIGURES, [row.figures for row in rows])
    against = _Columns(_AGAINST_OF_LABELS if _unknown(result) else _AGAINST, [row.against for row in rows])
    together = figures.beside(against)
    parts = [figures] if result.baseline is None else [figures, against]
    if result.baseline is not None and _INDENT + _LEAST_NAME + together.width <= width:
        parts = [together]
    tables = []
    for number_, columns in enumerate(parts):
        lines = [_line("run", columns.header, min(name_width, width - _INDENT - columns.width), columns.widths)]
        cells = iter(columns.rows)
        for key, found in groups:
            lines.append(_wrapped(_title(result, key), width) if number_ == 0 else key)
            fitting = min(name_width, width - _INDENT - columns.width)
            for row in found:
                lines.append(_line(row.name, next(cells), fitting, columns.widths))
                if row.below and number_ == len(parts) - 1:
                    lines.append(_wrapped(row.below, width, " " * 2 * _INDENT))
        tables.append("\n".join(lines))
    return f"\n\nAgainst {plain(result.baseline or '')}\n".join(tables)


def _line(name: str, cells: tuple[str, ...], name_width: int, widths: list[int]) -> str:
    if cell_len(name) > name_width:
        name = set_cell_size(name, name_width - 1) + "…"
    aligned = [" " * (size - cell_len(cell)) + cell for cell, size in zip(cells, widths, strict=True)]
    return _GAP.join([" " * _INDENT + set_cell_size(name, name_width), *aligned]).rstrip()


def _title(result: Findings, key: str) -> str:
    figures = [run.figures[key] for run in result.runs]
    counts = sorted({figure.n for figure in figures})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    undefined = max(figure.undefined for figure in figures)
    more = f", up to {undefined} undefined" if undefined else ""
    absent = [] if is_bias(figures[0].measure) else [run.absent for run in result.runs if not run.reference]
    if any(absent):
        most = f"up to {max(absent)}" if len(set(absent)) > 1 else absent[0]
        more += f", {most} of them not in the run and counted as 0"
    kind = "bias" if is_bias(figures[0].measure) else "effectiveness"
    return f"{key} ({kind}, {direction(figures[0].measure)}; n = {n} {'query' if n == '1' else 'queries'}{more})"


def _row(result: Findings, run: RunAudit, figure: Figure) -> _Row:
    name = f"({run.name})" if run.reference else plain(run.name)
    ties = interval(figure.tie_range, _DIGITS) + ("~" if figure.tie_sensitive else " ")
    figures: tuple[str, ...]
    if labelled(result):
        known = NONE if figure.known is None else known_share(*figure.known)
        figures = (interval(figure.ci95, _DIGITS), interval(figure.bounds, _DIGITS), known, ties)
    else:
        figures = (interval(figure.ci95, _DIGITS), number(figure.tie_mean, _DIGITS), ties)
    figures = (number(figure.mean, _DIGITS), *figures)
    compared = figure.vs_baseline
    if compared is None:
        return _Row(name, figures, ("baseline", *[""] * (2 if _unknown(result) else 3)))
    counts = NONE
    if compared.better is not None:
        counts = f"{compared.better}/{compared.equal}/{compared.worse}"
    p = compared.p
    holm = p_value(compared.holm_p) + ("*" if compared.significant else " ")
    below = on_common(result, figure)
    against: tuple[str, ...] = (number(compared.difference, _DIGITS), counts, p_value(p), holm)
    if _unknown(result):
        against = (number(compared.difference, _DIGITS), interval(compared.ci95, _DIGITS), holm)
    on = "on the " if below and compared.mean is not None else ""
    return _Row(name, figures, against, on + below)


def known_share(known: int, rows: int) -> str:
    """The share of rows that is known; of all but some, never 100%."""
    share = known / rows if rows else 1.0
    return percent(share, 0 if share in (0.0, 1.0) or 0.01 <= share < 0.995 else 2)


def _unknown(result: Findings) -> bool:
    """Whether some figure looks at a document without a label."""
    return labelled(result) and any(
        figure.known is not None and figure.known[0] < figure.known[1]
        for run in result.runs
        for figure in run.figures.values()
    )


def _words(result: Findings, words: Words, width: int) -> str:
    """The words with the largest shares in each run's first ranks, one line per group."""
    names = groups(result)
    title = (
        f"Words of the first {words.depth} ranks: share of their group's contribution to {words.measure} (in brackets:"
        f" share of the group's words in all {words.documents:,} documents of the runs)"
    )
    heads = [
        (plain(run.name), group_label(group, names), words.runs[run.name][group])
        for run in result.given
        for group in names
    ]
    run_width = min(max(cell_len(run) for run, _, _ in heads), _MOST_NAME)
    group_width = min(max(cell_len(plain(group)) for _, group, _ in heads), _MOST_NAME)
    lines = [_wrapped(title, width)]
    for run, group, shares in heads:
        head = f"{_fitted(run, run_width)}{_GAP}{_fitted(plain(group), group_width)}{_GAP}"
        shown = [f"{plain(w.word)} {percent(w.share)} ({percent(w.share_of_documents)})" for w in shares[:_MOST_WORDS]]
        lines.append(
            _wrapped(", ".join(text.replace(" ", "\xa0") for text in shown) or NONE, width, " " * _INDENT + head)
        )
    return "\n".join(lines)


def _fitted(name: str, width: int) -> str:
    return set_cell_size(name if cell_len(name) <= width else set_cell_size(name, width - 1) + "…", width)


# --- words -----------------------------------------------------------------------------------------------------------


def _legend(result: Findings) -> str:
    parts = ["Marks: (name) a reference ranking of the same candidates"]
    if result.baseline is not None:
        parts.append("* Holm p below .05")
    parts.append("~ the order of tied documents moves the figure by more than its interval is wide")
    text = "; ".join(parts) + "."
    if result.baseline is not None:
        signed = signed_measures(result)
        nearer = f" ({', '.join(signed)}: nearer to 0 is better)" if signed else ""
        of = " of the signed difference" if signed else ""
        if _unknown(result):
            return (
                f"{text} differ.: run minus baseline, with its interval. Holm p:"
                f" corrected over the runs compared, references excluded. {_KEY_OF_LABELS}{_sign(result)}"
            )
        text += (
            f" differ.: run minus baseline. b/e/w: queries better/equal/worse than the baseline{nearer}. p: t and"
            f" Hall's t{of}, uncorrected; none with fewer than {LEAST} queries that differ. Holm"
            " p: corrected over the runs compared, references excluded."
        )
    return text + (f" {_KEY_OF_LABELS}" if labelled(result) else "") + _sign(result)


_KEY_OF_LABELS = (
    "bounds: the smallest and largest figure over every way to label the unknown. known: share of the rows looked at"
    " whose document has a label."
)


def _sign(result: Findings) -> str:
    sign = positive(poles(result))
    return f" Sign of a lean: {sign}." if sign else ""


def _wrapped(text: str, width: int, first: str = "") -> str:
    # "p < 0.001" stays on one line.
    kept = text.replace("p < ", "p\xa0<\xa0").replace("p = ", "p\xa0=\xa0")
    indent = " " * len(first)
    filled = textwrap.fill(kept, width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)
    return filled.replace("\xa0", " ")


def _listed(sentences: list[str], width: int) -> str:
    return "\n".join(_wrapped(sentence, width, "- ") for sentence in sentences)
