"""Work on parts of data, spread over a Ray cluster. Ray is only imported here."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from .errors import EvenrankError, MissingExtraError, shown
from .files import file_system, open_raw
from .folders import UNFINISHED, joined, part_name
from .progress import progress
from .ranges import check_ranges
from .shards import Shard
from .written import write_text

Engine = Literal["local", "ray"]
Work = Callable[[int], Mapping[str, Any]]
"""The number of a piece of work → what is told of it: numbers, texts and lists of them."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a piece of work may use: ``workers`` at a time (None: as many as fit; two numbers: from so many to so many,
    as the cluster grows), each with ``cpus`` and ``gpus``."""

    workers: int | tuple[int, int] | None = None
    cpus: float = 1
    gpus: float = 0

    def __post_init__(self) -> None:
        low, high = (self.workers, self.workers) if not isinstance(self.workers, tuple) else self.workers
        if low is not None and high is not None and not 1 <= low <= high:
            raise EvenrankError(f"`workers`: expected 1 or more, or two rising numbers, found {shown(self.workers)}")
        check_ranges(workers=high, cpus=self.cpus, gpus=self.gpus)


def parse_workers(text: str | None) -> int | tuple[int, int] | None:
    """``8``, or ``2:16``. Raises EvenrankError for anything else."""
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2):
        raise EvenrankError(f"`workers`: expected a number, or two as 2:16, found {shown(text)}")
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def check_engine(engine: str) -> None:
    """Raises EvenrankError for an unknown engine."""
    if engine not in ("local", "ray"):
        raise EvenrankError(f"`engine`: expected local or ray, found {shown(engine)}")


def on_ray(
    numbers: Sequence[int], make: Callable[[], Work], cluster: Cluster, *, keep: bool = False
) -> Iterator[dict[str, Any]]:
    """What the work that ``make`` gives says of each number, as it comes, with the number as ``number``.

    ``keep``: ``make`` is called once in a worker, which then does piece after piece: for a model that takes long to
    load. A worker or a machine that dies is replaced, and its pieces are done again. The cluster is the one that is
    connected to or that ``RAY_ADDRESS`` names; without one it is this machine. Raises MissingExtraError without Ray,
    and EvenrankError without a connection, for a piece whose work raises it, and where the cluster gives up.
    """
    ray_data = _connected()
    data = ray_data.from_items([{"number": number} for number in numbers], override_num_blocks=len(numbers))
    low, high = cluster.workers if isinstance(cluster.workers, tuple) else (cluster.workers, cluster.workers)
    most = min(high or len(numbers), len(numbers))
    options: dict[str, Any] = {"batch_size": 1, "num_cpus": cluster.cpus, "num_gpus": cluster.gpus or None}
    if keep:
        pool = ray_data.ActorPoolStrategy(min_size=min(low or 1, most), max_size=most)
        done = data.map_batches(_Worker, compute=pool, fn_constructor_args=(make,), **options)
    else:
        done = data.map_batches(_Task(make), compute=ray_data.TaskPoolStrategy(size=most if high else None), **options)
    for row in _rows(done):
        told = json.loads(row["told"])
        if "problem" in told:
            raise EvenrankError(told["problem"])
        yield {"number": int(row["number"]), **told}


def _rows(done: Any) -> Iterator[Mapping[str, Any]]:
    from ray.exceptions import RayError, RayTaskError, UserCodeException

    try:
        yield from done.iter_rows()
    except (RayTaskError, UserCodeException):
        # A fault in our code, which its traceback tells better.
        raise
    except RayError as error:
        raise EvenrankError(f"`engine='ray'`: {_last_line(error)}") from error


def _last_line(error: Exception) -> str:
    """Where Ray says what happened; above it stand the places in the code."""
    lines = [line.strip() for line in str(getattr(error, "strerror", None) or error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _connected() -> Any:
    """``ray.data``, connected to a cluster. Raises EvenrankError where there is no connection."""
    # Ray tells its makers of every start otherwise.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingExtraError("`engine='ray'`", "ray") from None
    if not ray.is_initialized():
        where = os.environ.get("RAY_ADDRESS", "")
        try:
            _reach(where)
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
        except (OSError, RuntimeError, ValueError) as error:
            to = f" to RAY_ADDRESS={where}" if where else ""
            raise EvenrankError(f"`engine='ray'`: no connection{to}: {_last_line(error)}") from error
    logging.getLogger("ray").setLevel(logging.ERROR)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    return ray.data


def _reach(address: str) -> None:
    """Raises OSError where nobody answers at HOST:PORT: Ray itself asks for minutes, and then ends the process."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdigit():
        with socket.create_connection((host.strip("[]"), int(port)), timeout=10):
            pass


class _Task:
    """Does a piece of work in a process of the cluster; what is wrong with it is told in words, since an error of ours
    would not be told from one of Ray's."""

    def __init__(self, make: Callable[[], Work]) -> None:
        self.make = make

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        number = int(batch["number"][0])
        told: Mapping[str, Any]
        try:
            told = self.make()(number)
        except EvenrankError as error:
            told = {"problem": str(error)}
        return {"number": [number], "told": [json.dumps(told)]}


class _Worker(_Task):
    """The same with what is made once."""

    def __init__(self, make: Callable[[], Work]) -> None:
        super().__init__(functools.cache(make))


def write_parts(
    shards: Sequence[Shard],
    out: str | os.PathLike[str],
    form: str,
    settings: Mapping[str, Any],
    write: Callable[[Shard, str], Mapping[str, Any]],
    cluster: Cluster,
    *,
    quiet: bool = True,
) -> list[Mapping[str, Any]]:
    """Writes a part of the folder ``out`` for every shard, on a Ray cluster; what was told of each, in their order.

    ``write(shard, path)`` writes a part and tells of it (``rows`` among it). Parts appear whole or not at all; the same
    call, made again after an interruption, only writes those that are missing. Raises EvenrankError for a folder with
    something else in it, and where a part that was written is not there at the end.
    """
    plan = json.dumps({**settings, "shards": [asdict(shard) for shard in shards]}, sort_keys=True)
    folder = os.fspath(out)
    done = _begun(folder, plan, form, len(shards))
    missing = [number for number in range(len(shards)) if number not in done]
    with progress("parts", len(shards), quiet=quiet) as advance:
        advance(len(done))
        if missing:
            for told in on_ray(missing, _PartWork(list(shards), folder, form, write), cluster):
                done[told["number"]] = told
                advance(1)
    _finish(folder, form, done)
    return [done[number] for number in range(len(shards))]


class _PartWork:
    """The work of :func:`write_parts`."""

    def __init__(
        self, shards: list[Shard], folder: str, form: str, write: Callable[[Shard, str], Mapping[str, Any]]
    ) -> None:
        self.shards, self.folder, self.form, self.write = shards, folder, form, write

    def __call__(self) -> Work:
        return self._part

    def _part(self, number: int) -> Mapping[str, Any]:
        path = joined(self.folder, part_name(number, self.form))
        told = self.write(self.shards[number], path)
        if not told["rows"]:
            # A file without a row may be none of its form.
            _remove(path)
        # Behind the part itself: what is told of it says that it is there.
        write_text(joined(self.folder, _told_name(number)), json.dumps(told))
        return told


def _begun(folder: str, plan: str, form: str, parts: int) -> dict[int, Mapping[str, Any]]:
    """What was told of the parts that a folder holds already; makes it where it is not there.

    A part is done where it is there and what was told of it can be read; otherwise it is written again.
    """
    mark = joined(folder, UNFINISHED)
    names = _names(folder)
    if UNFINISHED in names:
        _refuse_others(folder, names, form)
        if _read(mark) != plan:
            raise EvenrankError(f"{folder}: holds parts of another call; remove it, or write elsewhere")
        told = {number: _told(folder, number) for number in range(parts) if _told_name(number) in names}
        return {number: one for number, one in told.items() if one and _is_there(one, number, form, names)}
    if names:
        raise EvenrankError(f"{folder}: expected a new or an empty folder, found files in it")
    elsewhere = file_system(folder)
    if elsewhere is None:
        os.makedirs(folder, exist_ok=True)
    else:
        elsewhere[0].makedirs(elsewhere[1], exist_ok=True)
    write_text(mark, plan)
    return {}


def _refuse_others(folder: str, names: list[str], form: str) -> None:
    """Raises EvenrankError where a folder of parts holds what no call has written: through a link it would be written
    elsewhere."""
    known = re.compile(rf"_told-\d{{6}}\.json|part-\d{{6}}\.{form}|{re.escape(UNFINISHED)}|\..*\.part")
    for name in names:
        is_link = file_system(folder) is None and os.path.islink(joined(folder, name))
        if is_link or not known.fullmatch(name):
            raise EvenrankError(
                f"{folder}: {'a link' if is_link else 'a file of something else'} is in it: {shown(name)}"
            )


def _told_name(number: int) -> str:
    return f"_told-{number:06d}.json"


def _told(folder: str, number: int) -> Mapping[str, Any] | None:
    """What was told of a part; None where it cannot be read."""
    try:
        told = json.loads(_read(joined(folder, _told_name(number))))
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) and type(told.get("rows")) is int else None


def _is_there(told: Mapping[str, Any], number: int, form: str, names: list[str]) -> bool:
    """Whether the part that was told of is there; without a row there is none."""
    return told["rows"] == 0 or part_name(number, form) in names


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


def _finish(folder: str, form: str, done: Mapping[int, Mapping[str, Any]]) -> None:
    names = _names(folder)
    for number, told in done.items():
        if not _is_there(told, number, form, names):
            # The same call writes it again.
            raise EvenrankError(f"{joined(folder, part_name(number, form))}: was written, and is gone: run it again")
    for name in (*map(_told_name, done), UNFINISHED):
        _remove(joined(folder, name))


def _remove(path: str) -> None:
    elsewhere = file_system(path)
    if elsewhere is None:
        os.unlink(path)
    else:
        elsewhere[0].rm_file(elsewhere[1])
