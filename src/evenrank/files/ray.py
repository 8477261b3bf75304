"""Runs work on parts of data on a Ray cluster. Ray is imported only here."""

from __future__ import annotations

import functools
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
from typing import Literal, Protocol

from .arguments import check_ranges
from .errors import EvenrankError, MissingExtraError, quoted
from .progress import progress
from .reading import joined, part_name
from .streams import Shard
from .work import Report, Work, remove_file

Engine = Literal["local", "ray"]
Task = Callable[[int], Report]
"""Makes the part with a number; returns what is known of it."""


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


def map_parts(
    numbers: Sequence[int], make: Callable[[], Task], cluster: Cluster | None, *, keep: bool = False
) -> Iterator[tuple[int, Report]]:
    """Makes the parts with these numbers, and returns the numbers and reports as they complete.

    ``make`` returns the function that makes a part; with ``keep``, it is called once per worker, for models that take
    long to load. Workers and machines that die are replaced, and their parts are made again. The cluster is the
    connected one, or that of ``RAY_ADDRESS``, or else this machine; None: the parts are made in this process. Raises
    MissingExtraError without Ray, and EvenrankError if the connection or the cluster fails, or if a task raises it.
    """
    if not numbers:
        return
    if cluster is None:
        task = make()
        yield from ((number, task(number)) for number in numbers)
        return
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

    def __init__(self, make: Callable[[], Task]) -> None:
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

    def __init__(self, make: Callable[[], Task]) -> None:
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
    interruption, the same call writes only the missing parts. Raises EvenrankError as
    :class:`evenrank.files.work.Work` does.
    """
    folder = os.fspath(out)

    def write_one(number: int) -> Report:
        path = joined(folder, part_name(number, form))
        report = write(shards[number], path)
        if not report["rows"]:
            # A file without rows may not be valid in its format.
            remove_file(path)
        return report

    made_from = {"parts": [asdict(shard) for shard in shards], **settings}
    with (
        Work(folder, made_from, data=rf"part-\d{{6,}}\.{form}", shared=True) as work,
        progress("parts", len(shards), quiet=quiet) as advance,
    ):
        advance(len(work.done))
        missing = [number for number in range(len(shards)) if number not in work.done]
        for number, report in map_parts(missing, lambda: write_one, cluster):
            work.keep(number, report, part_name(number, form) if report["rows"] else None)
            advance(1)
        work.finish()
    return [work.done[number] for number in range(len(shards))]
