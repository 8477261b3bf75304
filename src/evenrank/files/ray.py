"""Runs work on parts of data on a Ray cluster. Ray is imported only here."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Annotated, Protocol

from evenrank import options as opt

from .arguments import checked
from .errors import EvenrankError, MissingExtraError, arg
from .progress import progress
from .reading import joined
from .streams import Shard
from .work import Report, Work, remove_file

Task = Callable[[int], Report]
"""Makes the part with a number; returns what is known of it."""


@checked
@dataclass(frozen=True, slots=True)
class Cluster:
    """The resources of a call: at most so many parallel ``workers`` (None: as many as fit), each with ``cpus``."""

    workers: Annotated[int | None, opt.SIZE] = None
    cpus: Annotated[float, opt.CORES] = 1


def cluster_of(engine: str, workers: int | None, cpus: float = 1) -> Cluster | None:
    """The resources of a call; None for work on this machine.

    Raises EvenrankError for an unknown engine, and for workers of local work.
    """
    return Cluster(workers, cpus) if engine == "ray" else None


def map_parts(numbers: Sequence[int], task: Task, cluster: Cluster) -> Iterator[tuple[int, Report]]:
    """Makes the parts with these numbers, and returns the numbers and reports as they complete.

    Workers and machines that die are replaced, and their parts are made again. The cluster is the connected one, or
    that of ``RAY_ADDRESS``, or else this machine. Raises MissingExtraError without Ray, and EvenrankError if the
    connection or the cluster fails, or if a task raises it.
    """
    if not numbers:
        return
    ray_data = _connect()
    data = ray_data.from_items([{"number": number} for number in numbers], override_num_blocks=len(numbers))
    most = None if cluster.workers is None else min(cluster.workers, len(numbers))
    rows = data.map_batches(
        _Task(task), compute=ray_data.TaskPoolStrategy(size=most), batch_size=1, num_cpus=cluster.cpus
    )
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
        raise EvenrankError(f"{arg('engine', 'ray')}: {_last_line(error)}") from error


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
        raise MissingExtraError(arg("engine", "ray"), "ray") from None
    if not ray.is_initialized():
        where = os.environ.get("RAY_ADDRESS", "")
        try:
            _check_reachable(where)
            with _own_handler():
                ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
        except (OSError, RuntimeError, ValueError) as error:
            to = f" to RAY_ADDRESS={where}" if where else ""
            raise EvenrankError(f"{arg('engine', 'ray')}: no connection{to}: {_last_line(error)}") from error
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

    def __init__(self, task: Task) -> None:
        self.task = task

    def __call__(self, batch: Mapping[str, Sequence[int]]) -> dict[str, list[int] | list[str]]:
        number = int(batch["number"][0])
        report: Report
        try:
            report = self.task(number)
        except EvenrankError as error:
            report = {"error": str(error)}
        return {"number": [number], "report": [json.dumps(report)]}


def write_parts(
    shards: Sequence[Shard],
    out: str | os.PathLike[str],
    settings: Mapping[str, object],
    write: Callable[[Shard, str], Report],
    cluster: Cluster,
    *,
    quiet: bool = True,
) -> list[Report]:
    """Writes a part of the folder ``out`` for every shard, on a Ray cluster; returns the reports in order.

    ``write(shard, path)`` writes a part atomically and returns its report, which includes ``rows``. After an
    interruption, the same call writes only the missing parts. Raises EvenrankError as
    :class:`evenrank.files.work.Work` does.
    """
    folder = os.fspath(out)

    def write_one(number: int) -> Report:
        path = joined(folder, _part_name(number))
        report = write(shards[number], path)
        if not report["rows"]:
            # A part without a document is none.
            remove_file(path)
        return report

    made_from = {"parts": [asdict(shard) for shard in shards], **settings}
    with (
        Work(folder, made_from, data=r"part-\d{6,}\.parquet", shared=True) as work,
        progress("parts", len(shards), quiet=quiet) as advance,
    ):
        advance(len(work.done))
        missing = [number for number in range(len(shards)) if number not in work.done]
        for number, report in map_parts(missing, write_one, cluster):
            work.keep(number, report, _part_name(number) if report["rows"] else None)
            advance(1)
        work.finish()
    return [work.done[number] for number in range(len(shards))]


def _part_name(number: int) -> str:
    return f"part-{number:06d}.parquet"
