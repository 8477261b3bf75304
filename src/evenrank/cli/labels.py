"""``evenrank labels``: which documents to label, and labelling them."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

HELP = "Draw documents to label or pairs to judge, and do so."
EXAMPLES = {
    "sample": r"""
# A hundred documents that say most about a run's lean.
evenrank labels sample bm25.run --collection docs.tsv --out todo.csv
# For the difference of two runs.
evenrank labels sample old.run new.run --baseline old --collection docs.tsv \
    --out todo.csv
# Pairs to judge, where there are no judgements.
evenrank labels sample bm25.run bert.run --measure "P(rel=1)@10" \
    --queries queries.tsv --collection docs.tsv --out todo.csv
""",
    "ask": r"""
# Label the documents, one after the other; again to go on.
evenrank labels ask todo.csv
# Pairs, by grades.
evenrank labels ask todo.csv --grades "0 1 2 3"
# With groups of your own.
evenrank labels ask todo.csv --groups "young old"
""",
}


def sample(
    *,
    given: Annotated[Values, From("auditing.label_sample", "sample_labels")],
    out: Annotated[str, opt.Option("The file to fill in (CSV).", metavar="FILE", panel="Output")],
    json: opt.Json = None,
) -> None:
    from evenrank import named_runs, sample_labels
    from evenrank.files.outputs import check_csv
    from evenrank.files.provenance import SUFFIX

    runs = named_runs(given["runs"])
    check_csv(out)
    _output.check(out, f"{out}{SUFFIX}", streams=(json,), inputs=(*runs.values(), *given.read))
    drawn = sample_labels(**{**given, "runs": runs})
    drawn.write(out)
    with _output.target(json) as values:
        if values:
            drawn.to_json(values)
    if json != _output.STANDARD:
        _output.say(drawn.table())
        grades = " ".join(map(str, range(drawn.grades + 1))) if drawn.column == "grade" else None
        choices = '--groups "f m"' if grades is None else f'--grades "{grades}"'
        _output.say(f"Next: evenrank labels ask {out} {choices}")
        _output.say(f"      or fill in its column {drawn.column}{' (none: of no group)' * (grades is None)}")


def ask(
    todo: Annotated[str, opt.Option("The sample.", metavar="FILE")],
    *,
    groups: Annotated[str, opt.Option("The groups, with spaces between them.", metavar="LIST", panel="Groups")] = "f m",
    grades: Annotated[
        str | None, opt.Option("The grades, of a sample of pairs, with spaces between them.", metavar="LIST")
    ] = None,
) -> None:
    """Label a sample in the terminal. Every answer is written at once; the same command goes on where you stopped."""
    from evenrank.auditing.judgements import GRADE
    from evenrank.auditing.label_sample import GROUP, Labelling

    labelling = Labelling(todo, tuple((grades or groups).split()), GROUP if grades is None else GRADE)
    allowed = ", ".join(labelling.answers)
    _output.say(f"Answer {allowed}, or undo or quit; as much of a word as tells them apart will do.")
    while True:
        left = labelling.done < len(labelling)
        document, text = labelling.document if left else ("", "")
        shown = "\n\n".join(textwrap.fill(part, _output.SCREEN) for part in text.splitlines()) or document
        of = f"{labelling.done + 1} of {len(labelling)}  {document}\n{shown}"
        _output.say(f"\n{of}" if left else "\nAll are labelled: undo, or quit.")
        answer = _answer()
        meant = "quit" if answer is None else labelling.meant(answer)
        if meant == "quit":
            break
        if meant == "undo":
            labelling.undo()
        elif meant is None or not left:
            _output.say(f"Expected {f'{allowed}, ' * left}undo or quit.")
        else:
            labelling.label(meant)
    counts = ", ".join(f"{count} {group}" for group, count in labelling.counts.items())
    _output.say(f"{labelling.done} of {len(labelling)} labelled{f' ({counts})' * bool(counts)}: {todo}")


def _answer() -> str | None:
    """What is typed next; None at the end of the input."""
    try:
        answer: str = typer.prompt(">", prompt_suffix=" ", default="", show_default=False)
    except typer.Abort:
        return None
    return answer.strip()
