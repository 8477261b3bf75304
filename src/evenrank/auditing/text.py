"""The audit as text for the terminal."""

from __future__ import annotations

from evenrank.io.errors import plain
from evenrank.io.wording import counted
from evenrank.measures.inference import LEAST
from evenrank.results.table import wrapped

from .about import (
    has_scores,
    labelled,
    origins_title,
    poles,
    positive,
    signed_measures,
    with_origins,
)
from .data import AuditFigures
from .tables import origins_terminal, pairs_table, stages_terminal, terminal_table, unknown, words_terminal

_LEAST_WIDTH = 76
_STAGES = (
    "Stages: what the collection and the first one's candidates hold in random order, and what each stage adds (on the"
    " queries that all stages have; p: t and Hall's t, uncorrected; tie mean: added on average over the orders of tied"
    " documents)"
)


def render_text(result: AuditFigures, width: int = 120) -> str:
    """The audit for a terminal ``width`` (at least 76) characters wide: figures by measure, and notes.

    If one table would be too wide, the comparison with the baseline goes into a second one below the figures.
    """
    width = max(width, _LEAST_WIDTH)
    blocks = [_head(result, width), terminal_table(result, width), wrapped(_legend(result), width)]
    if with_origins(result):
        blocks.append(f"{wrapped(origins_title(result), width)}\n{origins_terminal(result).text(width)}")
    if result.pairs:
        blocks.append(pairs_table(result.pairs).text(width))
    if result.stages is not None and result.stages.measures:
        blocks.append(f"{wrapped(_STAGES, width)}\n{stages_terminal(result).text(width)}")
    if result.words is not None:
        blocks.append(words_terminal(result, result.words, width))
    notes = [note for note in result.notes if note not in result.warnings]
    if notes:
        blocks.append("Notes\n" + _listed([plain(note) for note in notes], width))
    return "\n\n".join(blocks) + "\n"


def _head(result: AuditFigures, width: int) -> str:
    baseline = f"baseline {plain(result.baseline)}" if result.baseline is not None else "no baseline"
    size = f"{counted(len(result.given), 'run')}, {counted(len(result.queries), 'query')}"
    lines = [f"evenrank audit: {size}, {baseline}"]
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
    return "\n".join(wrapped(line, width) for line in lines)


# --- words -----------------------------------------------------------------------------------------------------------


def _legend(result: AuditFigures) -> str:
    parts = ["Marks: (name) a reference ranking of the same candidates"]
    if result.baseline is not None:
        parts.append("* Holm p below .05")
    parts.append("~ the order of tied documents moves the figure by more than its interval is wide")
    text = "; ".join(parts) + "."
    if result.baseline is not None:
        signed = signed_measures(result)
        nearer = f" ({', '.join(signed)}: nearer to 0 is better)" if signed else ""
        of = " of the signed difference" if signed else ""
        if unknown(result):
            return f"{text} differ.: run minus baseline, with its interval. {_HOLM} {_KEY_OF_LABELS}{_sign(result)}"
        text += (
            f" differ.: run minus baseline. b/e/w: queries better/equal/worse than the baseline{nearer}. p: t and"
            f" Hall's t{of}, uncorrected; none with fewer than {LEAST} queries that differ. {_HOLM}"
        )
    return text + (f" {_KEY_OF_LABELS}" if labelled(result) else "") + _sign(result)


_HOLM = (
    "Holm p: corrected over the runs compared, references excluded, and over the measures of effectiveness, or of bias."
)
_KEY_OF_LABELS = (
    "bounds: the smallest and largest figure over every way to label the unknown. known: share of the rows looked at"
    " whose document has a label."
)


def _sign(result: AuditFigures) -> str:
    sign = positive(poles(result))
    return f" Sign of a lean: {sign}." if sign else ""


def _listed(sentences: list[str], width: int) -> str:
    return "\n".join(wrapped(sentence, width, "- ") for sentence in sentences)
