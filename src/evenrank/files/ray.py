"""A function of batches over the files of a collection, on a Ray cluster. Ray is imported only here."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

from .errors import EvenrankError, InputError, MissingExtraError, arg, quoted
from .reading import files_of
from .tables import is_parquet
from .work import Work

if TYPE_CHECKING:
    import pyarrow as pa


def map_files(
    collection: str | os.PathLike[str], function: Callable[[pa.Table], pa.Table], out: str | os.PathLike[str]
) -> int:
    """Writes what ``function`` makes of a collection's batches as a folder of Parquet files; returns its rows.

    The collection is Parquet or JSON lines that every machine of the cluster can read: files, or addresses such as
    ``s3://``. A worker or a machine that dies is replaced, and its batches are made again. The cluster is the
    connected one, or that of ``RAY_ADDRESS``, or else this machine. Until the folder is whole, readers refuse it.

    Raises MissingExtraError without Ray; InputError for other files, for ids that repeat, and for what ``function``
    raises; EvenrankError if the connection or the cluster fails, or if the folder has files.
    """
    files = files_of(collection)
    parquet = is_parquet(files[0])
    if not (parquet or files[0].endswith((".jsonl", ".json"))):
        raise InputError(collection, f"{arg('engine', 'ray')} reads Parquet and JSON lines (.jsonl)")
    data = _connect()
    from ray.data.expressions import col

    with Work(out, {}, data=r".*\.parquet", resumable=False) as work, _explained():
        texts = data.read_parquet(files) if parquet else data.read_json(files, lines=True)
        texts.map_batches(function, batch_format="pyarrow").write_parquet(work.folder)
        ids = data.read_parquet(work.folder).select_columns(["doc_id"])
        counts = ids.groupby("doc_id").count().rename_columns({"count()": "rows"})
        repeated = counts.filter(expr=col("rows") > 1).take(1)
        if repeated:
            raise InputError(collection, f"the id {quoted(repeated[0]['doc_id'])} is there more than once")
        rows: int = ids.count()
        work.finish()
    return rows


@contextmanager
def _explained() -> Iterator[None]:
    """Raises what a worker refused as EvenrankError, and so what Ray could not do."""
    from ray.exceptions import RayError, RayTaskError, UserCodeException

    try:
        yield
    except (RayTaskError, UserCodeException) as error:
        # Of a worker's error Ray keeps the text alone.
        refusal = re.search(r"^evenrank\.files\.errors\.\w+: (.*)$", str(error), re.MULTILINE)
        if refusal is None:
            # An error in our own code: its traceback says more.
            raise
        raise EvenrankError(refusal[1]) from None
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
        except Exception as error:
            # Ray raises errors of its own, and of no kind where its node does not start.
            what = f"no connection to RAY_ADDRESS={where}" if where else "Ray does not start"
            raise EvenrankError(f"{arg('engine', 'ray')}: {what}: {_last_line(error)}") from error
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
