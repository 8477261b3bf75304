"""Functions of batches, in the engines that distribute them: on a Ray cluster of two machines one dies."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import evenrank
from evenrank.files import EvenrankError, MissingExtraError
from evenrank.files.ray import _connect, _explained, map_files
from evenrank.groups import read_group_table

ray = pytest.importorskip("ray", reason="needs the extra [ray]")
pytestmark = pytest.mark.filterwarnings("default")
DOCUMENTS = 60


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
    # Else ids are counted by as many workers as there are CPUs and parts, each of which takes seconds to start.
    ray.data.DataContext.get_current().default_hash_shuffle_parallelism = 1
    yield made
    ray.shutdown()
    made.shutdown()
    signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files."""
    folder = tmp_path_factory.mktemp("c")
    words = ["she", "ran", "home", "and", "he", "wrote", "often", "the", "queen", "early"]
    texts = [" ".join(words[(i * k) % 10] for k in range(1, 12)) for i in range(DOCUMENTS)]
    table = pl.DataFrame({"doc_id": [f"d{i}" for i in range(DOCUMENTS)], "text": texts})
    table[:25].write_parquet(folder / "a.parquet")
    table[25:].write_parquet(folder / "b.parquet")
    return folder


@pytest.fixture(scope="module")
def here(collection: Path) -> Path:
    """What one machine makes of it."""
    out = collection.with_name("here.parquet")
    evenrank.score(collection, out=out)
    return out


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_scores_are_those_of_one_machine(collection: Path, here: Path, tmp_path: Path) -> None:
    out = tmp_path / "ray.parquet"
    pl.read_parquet(collection / "*.parquet").write_ndjson(tmp_path / "c.jsonl")
    assert evenrank.score(tmp_path / "c.jsonl", out=out, engine="ray") == (DOCUMENTS, DOCUMENTS)
    local, remote = read_group_table(here), read_group_table(out)
    assert remote.table.sort("doc_id").equals(local.table.sort("doc_id"))
    assert remote.settings == local.settings


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_what_a_worker_refuses(tmp_path: Path) -> None:
    texts = pl.DataFrame({"doc_id": ["a", "b", "a"], "text": ["she", "he", "they"]})
    texts.write_parquet(tmp_path / "twice.parquet")
    with pytest.raises(EvenrankError, match=r"twice\.parquet: the id 'a' is there more than once$"):
        evenrank.score(tmp_path / "twice.parquet", out=tmp_path / "out", engine="ray")
    assert not (tmp_path / "out").exists()
    pl.DataFrame({"doc_id": ["a", "b"], "text": ["she", None]}).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(EvenrankError, match="the batch: row 2: the id or the text is missing"):
        evenrank.score(tmp_path / "c.parquet", out=tmp_path / "out", engine="ray")
    assert not (tmp_path / "out").exists()


class Doomed:
    """Scores a batch, but on one machine, where it never comes to an end."""

    def __init__(self, node: str, begun: Path) -> None:
        self.node, self.begun = node, begun

    def __call__(self, batch: pa.Table) -> pa.Table:
        if ray.get_runtime_context().get_node_id() == self.node:
            self.begun.touch()
            threading.Event().wait()
        return evenrank.score_batch(batch)


def wait_for(file: Path) -> None:
    while not file.exists():
        threading.Event().wait(0.05)


@pytest.mark.slow
def test_a_machine_that_dies_midway_loses_no_row(cluster: Any, collection: Path, here: Path, tmp_path: Path) -> None:
    before = {node["NodeID"] for node in ray.nodes()}
    begun, held, killed = (tmp_path / name for name in ("begun", "held", "killed"))

    @ray.remote(num_cpus=2)
    def hold() -> None:
        held.touch()
        wait_for(killed)

    # The other machine is taken until this one is dead: else all may run there.
    holding = hold.remote()
    wait_for(held)
    added = cluster.add_node(num_cpus=1)
    (doomed,) = {node["NodeID"] for node in ray.nodes()} - before
    for number in range(12):
        pl.read_parquet(collection / "*.parquet")[number::12].write_parquet(tmp_path / f"part{number}.parquet")

    def kill() -> None:
        wait_for(begun)
        cluster.remove_node(added, allow_graceful=False)
        killed.touch()

    threading.Thread(target=kill, daemon=True).start()
    assert map_files(tmp_path / "part*.parquet", Doomed(doomed, begun), tmp_path / "out") == DOCUMENTS
    ray.get(holding)
    table = read_group_table(tmp_path / "out").table
    assert table.sort("doc_id").equals(read_group_table(here).table.sort("doc_id"))


def test_without_ray_the_extra_is_named(collection: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        MissingExtraError, match=r"^`engine='ray'` needs the extra \[ray\]: pip install .evenrank\[ray\].$"
    ):
        map_files(collection, evenrank.score_batch, tmp_path / "out")
    (tmp_path / "c.csv").write_text("doc_id,text\n")
    with pytest.raises(EvenrankError, match=r"c\.csv: `engine='ray'` reads Parquet and JSON lines \(\.jsonl\)$"):
        map_files(tmp_path / "c.csv", evenrank.score_batch, tmp_path / "out")


def test_a_cluster_that_gives_up() -> None:
    with pytest.raises(EvenrankError, match=r"^`engine='ray'`: no memory on 3 machines$"), _explained():
        raise ray.exceptions.OutOfMemoryError("first line\nno memory on 3 machines")
    with pytest.raises(EvenrankError, match=r"^the batch: row 2: no id$"), _explained():
        raise ray.exceptions.UserCodeException("a trace\nevenrank.files.errors.InputError: the batch: row 2: no id\n")
    with pytest.raises(ray.exceptions.UserCodeException), _explained():
        raise ray.exceptions.UserCodeException("KeyError: 'a mistake of ours'")


@pytest.fixture
def init(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a function in the place of Ray's start, where nothing is started."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    return lambda start: monkeypatch.setattr(ray, "init", lambda **_: start())


@pytest.mark.usefixtures("init")
def test_without_a_cluster_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        # Bound, but nobody listens.
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(EvenrankError, match=f"no connection to RAY_ADDRESS={address}: Connection refused"):
            _connect()


@pytest.mark.parametrize("kind", [Exception, ray.exceptions.RaySystemError, OSError])
def test_ray_that_does_not_start(kind: type[Exception], init: Any) -> None:
    def failing() -> None:
        raise kind("first line\nThe current node timed out during startup.")

    init(failing)
    message = r"^`engine='ray'`: Ray does not start: (System error: )?The current node timed out during startup\.$"
    with pytest.raises(EvenrankError, match=message):
        _connect()
