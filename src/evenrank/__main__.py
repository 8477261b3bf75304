"""The command, ``evenrank`` or ``python -m evenrank``: a process of its own."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from evenrank.cli import main


def run() -> None:
    """Runs the command line and ends the process."""
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int):
            _end(end.code)
        raise


def _end(status: int) -> None:
    """Ends the process at once, if nothing but memory is left to tidy up: that takes a fifth of a short command's time.

    Returns where threads go on, libraries have processes or devices to close, or somebody watches the program.
    """
    watched = sys.gettrace() or sys.getprofile() or sys.flags.inspect or sys.flags.interactive
    if watched or threading.active_count() > 1 or not {"torch", "ray"}.isdisjoint(sys.modules):
        return
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # Closed, or not to be written: Python says so in its way.
            return
    os._exit(status)


if __name__ == "__main__":
    run()
