"""``evenrank lexicon``: the built-in lexicons, and how well one fits a collection."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options, _output

app = typer.Typer(help="The built-in lexicons, and how well one fits a collection.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """List the built-in lexicons: name, language, words by group, poles, what its words become, what it cannot see."""
    from evenrank import builtin_lexicons, load_lexicon

    for name in builtin_lexicons():
        lexicon = load_lexicon(name)
        counts = ", ".join(f"{sum(of == group for _, of in lexicon.words)} {group}" for group in lexicon.groups)
        poles = "no poles" if lexicon.poles is None else f"poles {','.join(lexicon.poles)}"
        has = f"; counterparts of {len(lexicon.pairs)} words" if lexicon.pairs else ""
        has += f"{', neutral of' if has else '; neutral words of'} {len(lexicon.neutral)}" if lexicon.neutral else ""
        _output.say(f"{name}  ({lexicon.language})  {counts}; {poles}{has}")
        _output.say(f"  {lexicon.about}")
        _output.say(f"  Cannot see: {lexicon.misses}")


@app.command("check")
@_options.in_range
def check(
    lexicon: Annotated[str, typer.Argument(metavar="LEXICON", help=_options.LEXICON)],
    collection: _options.Collection,
    labels: Annotated[
        str | None, typer.Option("--labels", help="Labels of documents to compare with: CSV, TSV, JSONL or Parquet.")
    ] = None,
    neutral: Annotated[
        list[str] | None, typer.Option("--neutral", help="A value of the labels that means no group; repeatable.")
    ] = None,
    group_column: Annotated[
        str | None, typer.Option("--group-column", help="The labels' column with the group (default: group).")
    ] = None,
    tokens: _options.Tokens = "word",
    threshold: _options.Threshold = 1,
    json: _options.Json = None,
    report: _options.Report = None,
) -> None:
    """Check a lexicon on a collection: coverage, frequent, unused and ambiguous words, agreement with labels."""
    import os

    from evenrank import check_lexicon

    files = (lexicon if os.path.exists(lexicon) else None, collection, labels)
    _output.check(report, streams=(json,), inputs=files)
    _output.will_write(json, report)
    result = check_lexicon(
        lexicon,
        collection,
        labels=labels,
        neutral=neutral or (),
        group_column=group_column,
        tokens=tokens,
        threshold=threshold,
    )
    _output.emit(result, json, report)
