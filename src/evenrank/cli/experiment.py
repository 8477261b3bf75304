"""``evenrank experiment``: a paper's tables and figures, measured and published."""

from __future__ import annotations

from typing import Annotated

from evenrank import options as opt

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# The whole of a paper in small, on the built-in collection.
evenrank experiment ibbr
# On real text; what it needs is looked up first.
evenrank experiment position --scale real --check
# One ranker of one table.
evenrank experiment position --only "Table 3" --only TK
"""


def command(
    *,
    given: Annotated[Values, From("papers.__init__", "run_experiment")],
    check: Annotated[bool, opt.Option("Only look up what the experiment needs, with sizes, disk and time.")] = False,
    own: Annotated[Values, From("papers.checks", "Options")],
    full: opt.Full = False,
    quiet: opt.Quiet = False,
) -> None:
    from evenrank.papers import ExperimentOptions, check_experiment, folder_of, run_experiment

    arguments = {**given, "only": tuple(given["only"] or ())}
    options = ExperimentOptions(**{**own, **{name: tuple(own[name] or ()) for name in ("data", "model")}})
    if check:
        for line in check_experiment(
            **{name: arguments[name] for name in arguments if name != "jobs"}, options=options
        ):
            _output.say(line)
        return
    say = (lambda _: None) if quiet else (lambda text: _output.say(text, err=True))
    page = run_experiment(**arguments, options=options, say=say)
    _output.show(page, full=full)
    _output.say(str(folder_of(given["name"], given["scale"], given["out"]) / "report.html"))
