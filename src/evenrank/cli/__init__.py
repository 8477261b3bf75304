"""The ``evenrank`` command: one file per command, nothing heavy imported before a command runs."""

from __future__ import annotations

import sys

import typer

from . import (
    _options,
    audit,
    data,
    demo,
    embeddings,
    expand,
    experiment,
    fuse,
    negatives,
    position,
    rerank,
    retrieve,
    rotate,
    score,
    train,
)

app = typer.Typer(
    name="evenrank",
    help="Measures bias in search rankings, beside effectiveness, and removes it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _evenrank(version: _options.Version = False) -> None:
    pass


app.command("score")(score.command)
app.command("audit")(audit.command)
app.command("retrieve")(retrieve.command)
app.command("rerank")(rerank.command)
app.command("expand")(expand.command)
app.command("fuse")(fuse.command)
app.command("train")(train.command)
app.command("rotate")(rotate.command)
app.command("negatives")(negatives.command)
app.add_typer(position.app, name="position")
app.add_typer(embeddings.app, name="embeddings")
app.add_typer(data.app, name="data")
app.command("experiment")(experiment.command)
app.command("demo")(demo.command)


def main() -> None:
    """Runs the command line; a mistake in the input ends in one line on standard error and status 2."""
    try:
        app()
    except BrokenPipeError:
        # Who reads the output has seen enough.
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        # Imported late: evenrank.io brings the table engine along, which --help must not wait for.
        from evenrank.io.errors import EvenrankError

        if not isinstance(error, EvenrankError):
            raise
        print("evenrank: " + " ".join(str(error).split("\n")), file=sys.stderr)
        sys.exit(2)
