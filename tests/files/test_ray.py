"""Work on a real Ray cluster of two machines, one of which dies."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from evenrank.files import EvenrankError, InputError, MissingExtraError, scan_collection, streams
from evenrank.files.ray import Cluster, _connect, map_parts, write_parts
from evenrank.files.reading import UNFINISHED
from evenrank.files.streams import Shard, shard_batches, shards_of
from evenrank.groups import Scoring, load_lexicon, read_group_table, score_collection
from evenrank.groups.scoring import score_texts

ray = pytest.importorskip("ray", reason="needs the extra [ray]")
pytestmark = pytest.mark.filterwarnings("default")
DOCUMENTS = 600


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray puts its own in its place, which would end the tests of other files.
    handler = signal.getsignal(signal.SIGTERM)
    from ray.cluster_utils import Cluster as Local

    # Nothing runs on the head, so that the machine that dies is one with work.
    # Workers that wait are kept: each takes seconds to start.
    kept = {"idle_worker_killing_time_threshold_ms": 120_000}
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": kept}
    made = Local(initialize_head=True, head_node_args=head)
    made.add_node(num_cpus=2)
    ray.init(address=made.address, log_to_driver=False, logging_level="error")
    # The workers do not find this file.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield made
    ray.shutdown()
    made.shutdown()
    signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("c") / "c.tsv"
    words = ["she", "ran", "home", "and", "he", "wrote", "often", "the", "queen", "early"]
    rows = [f"d{i}\t" + " ".join(words[(i * k) % 10] for k in range(1, 12)) for i in range(DOCUMENTS)]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams.shards_of, "__defaults__", (4_000,))


def table(path: Path) -> pl.DataFrame:
    return pl.concat(list(scan_collection(path))).sort("doc_id")


@pytest.mark.usefixtures("cluster", "small_shards")
def test_scores_are_those_of_one_machine(collection: Path, tmp_path: Path) -> None:
    scoring = Scoring(load_lexicon("gender-en"))
    score_collection(collection, tmp_path / "here.parquet", scoring)
    rows = score_collection(collection, tmp_path / "ray.parquet", scoring, cluster=Cluster(2))
    assert rows == DOCUMENTS
    parts = sorted(path.name for path in (tmp_path / "ray.parquet").iterdir())
    assert parts == [f"part-{i:06d}.parquet" for i in range(len(shards_of(collection)))]
    here, there = (read_group_table(tmp_path / f"{name}.parquet") for name in ("here", "ray"))
    assert there.table.equals(here.table)
    assert there.settings == here.settings


class Part:
    """Writes a part as scoring does; on one machine it never comes to an end, and says so before."""

    def __init__(self, doomed: str, started: Path) -> None:
        self.doomed, self.started = doomed, started

    def __call__(self, shard: Shard, path: str) -> Mapping[str, Any]:
        if ray.get_runtime_context().get_node_id() == self.doomed:
            (self.started / f"{shard.start}").touch()
            threading.Event().wait()
        scoring = Scoring(load_lexicon("gender-en"))
        table = pl.concat([score_texts(batch, scoring) for batch in shard_batches(shard)])
        table.write_parquet(path)
        return {"rows": table.height}


@pytest.mark.slow
@pytest.mark.usefixtures("small_shards")
def test_a_machine_that_dies_midway_changes_nothing(cluster: Any, collection: Path, tmp_path: Path) -> None:
    before = {node["NodeID"] for node in ray.nodes()}
    added = cluster.add_node(num_cpus=1)
    (doomed,) = {node["NodeID"] for node in ray.nodes()} - before
    started, out = tmp_path / "started", tmp_path / "out.parquet"
    started.mkdir()
    killed = threading.Event()

    def kill() -> None:
        while not list(started.iterdir()):
            killed.wait(0.05)
        cluster.remove_node(added, allow_graceful=False)
        killed.set()

    waiting = threading.Thread(target=kill, daemon=True)
    waiting.start()
    reports = write_parts(shards_of(collection), out, {}, Part(doomed, started), Cluster())
    assert killed.is_set()
    assert sum(one["rows"] for one in reports) == DOCUMENTS
    score_collection(collection, tmp_path / "here.parquet", Scoring(load_lexicon("gender-en")))
    assert read_group_table(out).table.equals(read_group_table(tmp_path / "here.parquet").table)


class Once:
    """Fails at one part until a file is there; counts what it wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, shard: Shard, path: str) -> Mapping[str, Any]:
        if shard.start == 0 and not (self.folder / "mended").exists():
            raise InputError(shard.path, "broken", line=7)
        with (self.folder / "wrote").open("a") as stream:
            stream.write(f"{shard.start}\n")
        Path(path).write_text("x\ty\n")
        return {"rows": 1}


@pytest.mark.usefixtures("cluster", "small_shards")
def test_a_second_call_writes_what_is_missing(collection: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    parts = shards_of(collection)
    with pytest.raises(EvenrankError, match=r"c\.tsv, line 7: broken"):
        write_parts(parts, out, {"seed": 1}, Once(tmp_path), Cluster())
    with pytest.raises(InputError, match="unfinished"):
        table(out)
    with pytest.raises(EvenrankError, match=r"was begun with another input or setting \(seed\)"):
        write_parts(parts, out, {"seed": 2}, Once(tmp_path), Cluster())
    (tmp_path / "mended").touch()
    assert len(write_parts(parts, out, {"seed": 1}, Once(tmp_path), Cluster())) == len(parts)
    wrote = (tmp_path / "wrote").read_text().split()
    # A part that was being written when the first call failed may be written twice, with the same bytes.
    assert set(wrote) == {str(part.start) for part in parts}
    assert wrote.count("0") == 1
    assert not (out / UNFINISHED).exists()
    with pytest.raises(EvenrankError, match="expected a new or an empty folder, but it contains files"):
        write_parts(parts, out, {"seed": 1}, Once(tmp_path), Cluster())


@pytest.mark.usefixtures("cluster")
def test_bad_input_is_told_as_on_one_machine(tmp_path: Path) -> None:
    from evenrank.cli import app

    (tmp_path / "c.tsv").write_text("a\tshe\nno tab\n")
    said = [
        str(
            CliRunner()
            .invoke(app, ["score", str(tmp_path / "c.tsv"), "--out", str(tmp_path / engine), *options])
            .exception
        )
        for engine, options in (("local", []), ("ray", ["--engine", "ray", "--workers", "2"]))
    ]
    assert said[0] == said[1]
    assert "line 2: expected an id, a tab and a text" in said[0]
    (tmp_path / "file").write_text("x")
    options = ["score", str(tmp_path / "c.tsv"), "--out", str(tmp_path / "file"), "--engine", "ray"]
    assert "expected a folder, found a file" in str(CliRunner().invoke(app, options).exception)


def test_settings_of_a_cluster() -> None:
    with pytest.raises(EvenrankError, match="`workers`: expected 1 to 100000, found 0"):
        Cluster(0)
    with pytest.raises(EvenrankError, match="`cpus`: expected a number from 0 to 100000, found -1"):
        Cluster(cpus=-1)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    task: Callable[[int], Any] = dict
    with pytest.raises(
        MissingExtraError, match=r"^`engine='ray'` needs the extra \[ray\]: pip install .evenrank\[ray\].$"
    ):
        next(map_parts([0], task, Cluster()))


def test_without_a_cluster_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    task: Callable[[int], Any] = dict
    with socket.socket() as taken:
        # Bound, but nobody listens.
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(EvenrankError, match=f"no connection to RAY_ADDRESS={address}: Connection refused"):
            next(map_parts([0], task, Cluster()))


def test_the_programs_own_handler_of_sigterm_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: signal.signal(signal.SIGTERM, lambda *_: None))
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, own := lambda *_: None)
        _connect()
        assert signal.getsignal(signal.SIGTERM) is own
        # Where there is none, Ray's ends its processes.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _connect()
        assert callable(signal.getsignal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def test_sigterm_while_ray_starts_is_for_the_programs_own_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def ended(**_: object) -> None:
        # As Ray's own.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(number))
        os.kill(os.getpid(), signal.SIGTERM)

    def own(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    monkeypatch.setattr(ray, "init", ended)
    before = signal.signal(signal.SIGTERM, own)
    try:
        with pytest.raises(SystemExit) as end:
            _connect()
        assert end.value.code == 143
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def test_a_cluster_that_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost:
        """A data set whose work cannot be done any more."""

        def map_batches(self, *_: Any, **__: Any) -> Lost:
            return self

        def iter_rows(self) -> Iterator[Any]:
            raise ray.exceptions.OutOfMemoryError("first line\nno memory on 3 machines")

    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray.data, "from_items", lambda *_, **__: Lost())
    task: Callable[[int], Any] = dict
    with pytest.raises(EvenrankError, match=r"^`engine='ray'`: no memory on 3 machines$"):
        next(map_parts([0], task, Cluster()))
