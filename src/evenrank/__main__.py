"""The command, ``evenrank`` or ``python -m evenrank``: a process of its own."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from types import FrameType

from evenrank.cli import main


def run() -> None:
    """Runs the command line and ends the process."""
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int) and _is_command(sys._getframe(1)) and not _is_watched():
            _end(end.code)
        raise


def _is_command(caller: FrameType | None) -> bool:
    """Whether the process was started as the command, rather than by a program that calls it and goes on afterwards."""
    program = sys.modules["__main__"]
    spec, file = getattr(program, "__spec__", None), getattr(program, "__file__", None) or ""
    if os.path.basename(file) != "evenrank" and getattr(spec, "name", None) != "evenrank.__main__":
        return False
    while caller is not None:
        if caller.f_code.co_name != "<module>" and caller.f_globals.get("__name__") != "runpy":
            return False
        caller = caller.f_back
    return True


def _is_watched() -> bool:
    """Whether a profiler, a debugger or a tracer is at work, or Python is to stay."""
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12
    tools = monitoring is not None and any(monitoring.get_tool(number) for number in range(6))
    return bool(tools or sys.gettrace() or sys.getprofile() or sys.flags.inspect or sys.flags.interactive)


def _end(status: int) -> None:
    """Ends the process at once, if nothing but memory is left to tidy up: that takes a fifth of a short command's time.

    Returns where threads go on, or libraries have processes or devices to close.
    """
    if threading.active_count() > 1 or not {"torch", "ray"}.isdisjoint(sys.modules):
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
