"""Programs in forks of one process that has imported what they need, which takes seconds. Run as a program."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence


def in_forks(imported: Sequence[str], programs: Sequence[tuple[str, Sequence[object]]]) -> list[int]:
    """Runs programs, each with its arguments, one after the other: their statuses, -9 of one that was killed."""
    given = json.dumps({"imported": imported, "programs": [(text, [str(one) for one in of]) for text, of in programs]})
    ended = subprocess.run([sys.executable, __file__, given], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    statuses = json.loads(ended.stdout.splitlines()[-1])
    if any(status not in (0, -signal.SIGKILL) for status in statuses):
        print(ended.stderr, file=sys.stderr)
    return statuses


def _fork(program: str, arguments: list[str]) -> int:
    child = os.fork()
    if not child:
        status = 1
        try:
            sys.argv = ["-c", *arguments]
            exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    # No table is queried here: the threads that polars starts for that would be missing in the forks.
    for name in given["imported"]:
        importlib.import_module(name)
    gc.freeze()
    print(json.dumps([_fork(*program) for program in given["programs"]]))
