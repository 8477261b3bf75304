"""``evenrank rerank`` and ``evenrank position sensitivity`` with an endpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from endpoint_cases import REQUESTS, command, every_file, expected
from loopback import Server, score_of, serving

KEY = "sk-key-of-the-command"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def test_rerank_from_end_to_end(server: Server, tmp_path: Path) -> None:
    """In a process of its own, where PyTorch is never imported."""
    line = command(tmp_path, server, "--api", "cohere", "--model", "m/r", "--key-env", "MY_KEY", "--concurrency", 2)
    line += ["--timeout", "20", "--answers", str(tmp_path / "kept"), "--out", str(tmp_path / "out.run")]
    program = "import sys; from evenrank.cli import main\ntry: main()\nfinally: assert 'torch' not in sys.modules"
    import os

    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *line],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MY_KEY": KEY},
    )
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    counts = f"r: {REQUESTS} requests, 0 questions answered before, 0 retries ({server.url}/rerank)\n"
    done = f"4 queries re-ranked: {tmp_path / 'out.run'}\n"
    assert ended.stderr == f"r: endpoint m/r, cohere, {server.url}/rerank\n{counts}{done}"
    rows = [row.split() for row in (tmp_path / "out.run").read_text().splitlines()]
    assert {(row[0], row[2]): pytest.approx(float(row[4])) for row in rows} == expected()
    assert {row[5] for row in rows} == {"r"}
    assert {json.loads(body)["model"] for body in server.bodies} == {"m/r"}
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert all(KEY.encode() not in content for _, content in every_file(tmp_path))


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ([], "`--endpoint` needs `--api`"),
        (["--api", "tei", "--key-env", "NO_SUCH_VARIABLE"],
         "--key-env: expected the name of an environment variable with the key, found none there"),
        (["--api", "tei", "--concurrency", "0"], "--concurrency: expected 1 to 1000, found 0"),
        (["--api", "tei", "--timeout", "0"], "--timeout: expected a number from 0.001 to 86400, found 0.0"),
        (["--api", "tei", "--device", "cpu"],
         "--device: only for a model given by its folder or its name on the hub"),
        (["--api", "tei", "--endpoint", "localhost:80"],
         "--endpoint: expected an address with http:// or https:// and a host, found 'localhost:80'"),
    ],
)  # fmt: skip
def test_one_line(more: list[str], problem: str, server: Server, tmp_path: Path, evenrank: Callable) -> None:
    ended = evenrank(*command(tmp_path, server, "--out", tmp_path / "out.run", *more))
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == f"evenrank: {problem.replace('`', '')}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.tsv", "first.run", "q.tsv"]
    assert server.bodies == []


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ([], "expected --model or --endpoint"),
        (["--model", "m", "--api", "tei"], "--api needs --endpoint"),
        (["--model", "m", "--key-env", "K", "--answers", "a"], "--key-env needs --endpoint"),
    ],
)
def test_without_an_endpoint(more: list[str], problem: str, evenrank: Callable) -> None:
    ended = evenrank("rerank", "r", "--collection", "c", "--queries", "q", "--out", "o", *more)
    assert (ended.status, ended.err) == (2, f"evenrank: {problem}\n")


def test_a_failing_server_is_one_line(server: Server, tmp_path: Path, evenrank: Callable) -> None:
    server.behave = lambda *_: (401, {}, {"message": "no"})
    ended = evenrank(*command(tmp_path, server, "--api", "tei", "--out", tmp_path / "out.run", "--concurrency", 1))
    assert ended.status == 2
    assert ended.err == f"evenrank: {server.url}/rerank: the query 'query 0': status 401: 'no'\n"
    assert len(server.bodies) == 1


def test_position_sensitivity(server: Server, tmp_path: Path, evenrank: Callable) -> None:
    paragraphs = [
        {
            "context": f"The number {number} is what it says. Then it goes on for a while. This is the end.",
            "qas": [{"id": f"q{number}", "question": f"which number {number}?",
                     "answers": [{"text": str(number), "answer_start": 11}]}],
        }
        for number in range(4)
    ]  # fmt: skip
    squad = tmp_path / "squad.json"
    squad.write_text(json.dumps({"version": "1", "data": [{"title": "t", "paragraphs": paragraphs}]}))
    secret = f"http://me:pass-word-1@{server.url[7:]}/v1?token=token-1"
    line = ["position", "sensitivity", "name", "--squad", squad, "--places", 2, "--quiet", "--endpoint", secret]
    line += ["--api", "tei", "--timeout", 20, "--json", tmp_path / "s.json", "--report", tmp_path / "s.html"]
    ended = evenrank(*line)
    assert ended.status == 0, ended.err
    asked = len(server.bodies)
    assert asked
    found = json.loads((tmp_path / "s.json").read_text())
    (model,) = [one for one in found["provenance"]["files"] if one["role"] == "model"]
    assert model == {"role": "model", "path": f"{server.url}/v1/rerank?token=…", "note": "asked over HTTP"}
    assert f"--endpoint 'http://…@{server.url[7:]}/v1?token=…'" in found["provenance"]["command"]
    assert (tmp_path / "s.json.answers.sqlite").exists()
    for path, content in every_file(tmp_path):
        assert b"pass-word-1" not in content, path
        assert b"token-1" not in content, path
    before = (tmp_path / "s.json").read_bytes()
    assert evenrank(*line).status == 0
    assert len(server.bodies) == asked
    assert (tmp_path / "s.json").read_bytes() == before
    assert score_of("a", "b") != score_of("a", "c")
    ended = evenrank("position", "sensitivity", "m", "--squad", squad, "--endpoint-answers", "a")
    assert (ended.status, ended.err) == (2, "evenrank: --endpoint-answers needs --endpoint\n")
