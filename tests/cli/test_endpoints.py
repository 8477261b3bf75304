"""``evenrank rerank`` and ``evenrank position sensitivity`` with an endpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from endpoint_cases import REQUESTS, command, every_file, expected
from loopback import score_of, serving

KEY = "sk-key-of-the-command"


@pytest.fixture
def server():
    with serving() as made:
        yield made


def test_rerank_from_end_to_end(server, tmp_path):
    """In a process of its own, where PyTorch is never imported."""
    line = command(tmp_path, server, "--api", "cohere", "--model", "m/r", "--key-env", "MY_KEY", "--concurrency", 2)
    line += ["--timeout", "20", "--answers", str(tmp_path / "kept"), "--out", str(tmp_path / "out.run")]
    program = "import sys; from evenrank.cli import main\ntry: main()\nfinally: assert 'torch' not in sys.modules"
    ended = subprocess.run([sys.executable, "-W", "error", "-c", program, *line], capture_output=True, text=True,
                           check=False, env={**os.environ, "MY_KEY": KEY})  # fmt: skip
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


def test_position_sensitivity(server, given, evenrank):
    paragraphs = [
        {
            "context": f"The number {number} is what it says. Then it goes on for a while. This is the end.",
            "qas": [{"id": f"q{number}", "question": f"which number {number}?",
                     "answers": [{"text": str(number), "answer_start": 11}]}],
        }
        for number in range(4)
    ]  # fmt: skip
    folder = given({"squad.json": json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]})})
    secret = f"http://me:pass-word-1@{server.url[7:]}/v1?token=token-1"
    line = ["position", "sensitivity", "name", "--squad", "squad.json", "--places", 2, "--quiet", "--endpoint", secret]
    line += ["--api", "tei", "--timeout", 20, "--json", "s.json", "--report", "s.html"]
    ended = evenrank(*line)
    assert ended.status == 0, ended.err
    asked = len(server.bodies)
    assert asked
    found = json.loads((folder / "s.json").read_text())
    (model,) = [one for one in found["provenance"]["files"] if one["role"] == "model"]
    assert model == {"role": "model", "path": f"{server.url}/v1/rerank?token=…", "note": "asked over HTTP"}
    assert f"--endpoint 'http://…@{server.url[7:]}/v1?token=…'" in found["provenance"]["command"]
    assert (folder / "s.json.answers.sqlite").exists()
    assert [path for path, content in every_file(folder) if b"pass-word-1" in content or b"token-1" in content] == []
    before = (folder / "s.json").read_bytes()
    assert evenrank(*line).status == 0
    assert len(server.bodies) == asked
    assert (folder / "s.json").read_bytes() == before
    assert score_of("a", "b") != score_of("a", "c")
