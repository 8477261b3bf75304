"""Runs work on parts of data on a Ray cluster. Ray is imported only here."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any, Literal, Protocol

from .arguments import check_ranges
from .errors import EvenrankError, MissingExtraError, quoted
from .outputs import write_text
from .progress import progress
from .reading import UNFINISHED, file_system, joined, open_raw, part_name
from .streams import Shard

Engine = Literal["local", "ray"]
Report = Mapping[str, Any]
"""The result of a task, as JSON values."""
Work = Callable[[int], Report]
"""Runs the task with a number."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The resources of a call: parallel ``workers``, each with ``cpus`` and ``gpus``.

    ``workers``: None: as many as fit; two numbers: the fewest and the most, for clusters that scale.
    """

    workers: int | tuple[int, int] | None = None
    cpus: float = 1
    gpus: float = 0

    @property
    def threads(self) -> int | None:
        """The number of workers of local work; None: one a core."""
        return None if isinstance(self.workers, tuple) else self.workers

    def __post_init__(self) -> None:
        low, high = (self.workers, self.workers) if not isinstance(self.workers, tuple) else self.workers
        if low is not None and high is not None and not 1 <= low <= high:
            raise EvenrankError(f"`workers`: expected 1 or more, or two rising numbers, found {quoted(self.workers)}")
        check_ranges(workers=high, cpus=self.cpus, gpus=self.gpus)


def cluster_of(
    engine: str, workers: int | tuple[int, int] | str | None, cpus: float = 1, gpus: float = 0, *, local: bool = False
) -> Cluster:
    """The resources of a call.

    Raises EvenrankError for an unknown engine, and for resources that local work does not have.

    ``local``: whether that has a number of workers.
    """
    if engine not in ("local", "ray"):
        raise EvenrankError(f"`engine`: expected local or ray, found {quoted(engine)}")
    found = Cluster(parse_workers(workers), cpus, gpus)
    if engine == "local" and local and isinstance(found.workers, tuple):
        raise EvenrankError(f"`workers`: two numbers need `engine='ray'`, found {workers}")
    if engine == "local" and not local and (workers is not None or gpus):
        raise EvenrankError("`workers` and `gpus` need `engine='ray'`")
    return found


def parse_workers(text: int | Sequence[int] | str | None) -> int | tuple[int, int] | None:
    """Parses ``8`` or ``2:16``. Raises EvenrankError for anything else."""
    if not isinstance(text, str):
        return text if isinstance(text, int | None) else (text[0], text[1])
    try:
        numbers = [int(part) for part in text.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2):
        raise EvenrankError(f"`workers`: expected a number, or two such as 2:16, found {quoted(text)}")
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def on_ray(
    numbers: Sequence[int], make: Callable[[], Work], cluster: Cluster, *, keep: bool = False
) -> Iterator[tuple[int, Report]]:
    """Runs a task for each number, and returns the numbers and reports as they complete.

    ``make`` returns the function that runs a task; with ``keep``, it is called once per worker, for models that take
    long to load. Workers and machines that die are replaced, and their tasks are run again. The cluster is the
    connected one, or that of ``RAY_ADDRESS``, or else this machine. Raises MissingExtraError without Ray, and
    EvenrankError if the connection or the cluster fails, or if a task raises it.
    """
    ray_data = _connect()
    data = ray_data.from_items([{"number": number} for number in numbers], override_num_blocks=len(numbers))
    low, high = cluster.workers if isinstance(cluster.workers, tuple) else (cluster.workers, cluster.workers)
    most = min(high or len(numbers), len(numbers))
    options = {"batch_size": 1, "num_cpus": cluster.cpus, "num_gpus": cluster.gpus or None}
    if keep:
        pool = ray_data.ActorPoolStrategy(min_size=min(low or 1, most), max_size=most)
        rows = data.map_batches(_Worker, compute=pool, fn_constructor_args=(make,), **options)
    else:
        rows = data.map_batches(_Task(make), compute=ray_data.TaskPoolStrategy(size=most if high else None), **options)
    for row in _iterate(rows):
        report = json.loads(row["report"])
        if "error" in report:
            raise EvenrankError(report["error"])
        yield int(row["number"]), report


class _Rows(Protocol):
    """A data set of Ray."""

    def iter_rows(self) -> Iterator[Report]:
        """Its rows, as they are computed."""


def _iterate(rows: _Rows) -> Iterator[Report]:
    from ray.exceptions import RayError, RayTaskError, UserCodeException

    try:
        yield from rows.iter_rows()
    except (RayTaskError, UserCodeException):
        # An error in our own code: its traceback says more.
        raise
    except RayError as error:
        raise EvenrankError(f"`engine='ray'`: {_last_line(error)}") from error


def _last_line(error: Exception) -> str:
    """The last line of Ray's message, which states the cause; the lines above it are a traceback."""
    lines = [line.strip() for line in str(getattr(error, "strerror", None) or error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _connect() -> ModuleType:
    """Connects to a cluster and returns ``ray.data``. Raises EvenrankError if that fails."""
    # Otherwise Ray reports every start to its developers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingExtraError("`engine='ray'`", "ray") from None
    if not ray.is_initialized():
        where = os.environ.get("RAY_ADDRESS", "")
        try:
            _check_reachable(where)
            with _own_handler():
                ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
        except (OSError, RuntimeError, ValueError) as error:
            to = f" to RAY_ADDRESS={where}" if where else ""
            raise EvenrankError(f"`engine='ray'`: no connection{to}: {_last_line(error)}") from error
    logging.getLogger("ray").setLevel(logging.ERROR)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    module: ModuleType = ray.data
    return module


@contextmanager
def _own_handler() -> Iterator[None]:
    """Puts this program's handler of SIGTERM back, in whose place Ray puts its own; what comes meanwhile is for it."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit as end:
        if end.code == signal.SIGTERM and callable(handler):
            handler(signal.SIGTERM, None)
        raise
    finally:
        if callable(handler) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _check_reachable(address: str) -> None:
    """Raises OSError if nothing answers at HOST:PORT: Ray itself would try for minutes and then end the process."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdigit():
        with socket.create_connection((host.strip("[]"), int(port)), timeout=10):
            pass


class _Task:
    """Runs tasks in a process of the cluster. Errors are returned as text: raised, they could not be distinguished from
    Ray's own."""

    def __init__(self, make: Callable[[], Work]) -> None:
        self.make = make

    def __call__(self, batch: Mapping[str, Sequence[int]]) -> dict[str, list[int] | list[str]]:
        number = int(batch["number"][0])
        report: Report
        try:
            report = self.make()(number)
        except EvenrankError as error:
            report = {"error": str(error)}
        return {"number": [number], "report": [json.dumps(report)]}


class _Worker(_Task):
    """The same, calling ``make`` once."""

    def __init__(self, make: Callable[[], Work]) -> None:
        super().__init__(functools.cache(make))


def write_parts(
    shards: Sequence[Shard],
    out: str | os.PathLike[str],
    form: str,
    settings: Mapping[str, object],
    write: Callable[[Shard, str], Report],
    cluster: Cluster,
    *,
    quiet: bool = True,
) -> list[Report]:
    """Writes a part of the folder ``out`` for every shard, on a Ray cluster; returns the reports in order.

    ``write(shard, path)`` writes a part atomically and returns its report, which includes ``rows``. After an
    interruption, the same call writes only the missing parts. Raises EvenrankError for a folder that contains anything
    else, and if a part disappears while others are written.
    """
    plan = json.dumps({**settings, "shards": [asdict(shard) for shard in shards]}, sort_keys=True)
    folder = os.fspath(out)
    done = _begin(folder, plan, form, len(shards))
    missing = [number for number in range(len(shards)) if number not in done]
    with progress("parts", len(shards), quiet=quiet) as advance:
        advance(len(done))
        if missing:
            for number, report in on_ray(missing, _PartWork(list(shards), folder, form, write), cluster):
                done[number] = report
                advance(1)
    _finish(folder, form, done)
    return [done[number] for number in range(len(shards))]


class _PartWork:
    """The tasks of :func:`write_parts`."""

    def __init__(self, shards: list[Shard], folder: str, form: str, write: Callable[[Shard, str], Report]) -> None:
        self.shards, self.folder, self.form, self.write = shards, folder, form, write

    def __call__(self) -> Work:
        return self._write_part

    def _write_part(self, number: int) -> Report:
        path = joined(self.folder, part_name(number, self.form))
        report = self.write(self.shards[number], path)
        if not report["rows"]:
            # A file without rows may not be valid in its format.
            _remove(path)
        # After the part itself: its report means that it is complete.
        write_text(joined(self.folder, _report_name(number)), json.dumps(report))
        return report


def _begin(folder: str, plan: str, form: str, parts: int) -> dict[int, Report]:
    """Creates the folder if needed; returns the reports of the parts that are complete.

    A part is complete if it exists and its report can be read; otherwise it is written again.
    """
    mark = joined(folder, UNFINISHED)
    names = _names(folder)
    if UNFINISHED in names:
        _refuse_others(folder, names, form)
        if _read(mark) != plan:
            raise EvenrankError(f"{folder}: contains parts of another call; remove it, or choose another output")
        reports = {number: _read_report(folder, number) for number in range(parts) if _report_name(number) in names}
        return {number: one for number, one in reports.items() if one and _exists(one, number, form, names)}
    if names:
        raise EvenrankError(f"{folder}: expected a new or an empty folder, but it contains files")
    elsewhere = file_system(folder)
    if elsewhere is None:
        os.makedirs(folder, exist_ok=True)
    else:
        elsewhere[0].makedirs(elsewhere[1], exist_ok=True)
    write_text(mark, plan)
    return {}


def _refuse_others(folder: str, names: list[str], form: str) -> None:
    """Raises EvenrankError if a folder of parts contains anything else; links, too, could redirect what is written."""
    known = re.compile(rf"_report-\d{{6}}\.json|part-\d{{6}}\.{form}|{re.escape(UNFINISHED)}|\..*\.part")
    for name in names:
        is_link = file_system(folder) is None and os.path.islink(joined(folder, name))
        if is_link or not known.fullmatch(name):
            raise EvenrankError(f"{folder}: contains {'a link' if is_link else 'another file'}: {quoted(name)}")


def _report_name(number: int) -> str:
    return f"_report-{number:06d}.json"


def _read_report(folder: str, number: int) -> Report | None:
    """The report of a part; None if it cannot be read."""
    try:
        report = json.loads(_read(joined(folder, _report_name(number))))
    except (ValueError, RecursionError):
        return None
    return report if isinstance(report, dict) and type(report.get("rows")) is int else None


def _exists(report: Report, number: int, form: str, names: list[str]) -> bool:
    """Whether a part exists; one without rows has no file."""
    return report["rows"] == 0 or part_name(number, form) in names


def _names(folder: str) -> list[str]:
    elsewhere = file_system(folder)
    if elsewhere is None:
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise EvenrankError(f"{folder}: `engine='ray'` writes a folder of parts, and this is a file")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    system, place = elsewhere
    if not system.exists(place):
        return []
    return sorted(os.path.basename(name) for name in system.ls(place, detail=False))


def _read(path: str) -> str:
    with open_raw(path) as stream:
        return stream.read().decode()


def _finish(folder: str, form: str, done: Mapping[int, Report]) -> None:
    names = _names(folder)
    for number, report in done.items():
        if not _exists(report, number, form, names):
            raise EvenrankError(
                f"{joined(folder, part_name(number, form))}: disappeared after it was written; run it again"
            )
    for name in (*map(_report_name, done), UNFINISHED):
        _remove(joined(folder, name))


def _remove(path: str) -> None:
    elsewhere = file_system(path)
    if elsewhere is None:
        os.unlink(path)
    else:
        elsewhere[0].rm_file(elsewhere[1])
