"""``evenrank probe``: how its variants are written, what it writes, and its one line for bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import evenrank as library

TEXTS = {f"d{i}": f"{'he' if i % 2 else 'she'} wrote the old tea book {'and more ' * i}" for i in range(6)}
SWAP = {
    doc: text.replace("she", "x").replace("he wrote", "she wrote").replace("x", "he") for doc, text in TEXTS.items()
}
LATE = {doc: f"{text} late" for doc, text in TEXTS.items()}
BASE = "--queries q.tsv --collection c.tsv --run r.run --quiet"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, texts in {"c.tsv": TEXTS, "s.tsv": SWAP, "l.tsv": LATE, "q.tsv": {"q1": "tea", "q2": "old more"}}.items():
        (tmp_path / name).write_text("".join(f"{one}\t{text}\n" for one, text in texts.items()))
    (tmp_path / "r.run").write_text("".join(f"{q} Q0 {d} 1 1 t\n" for q in ("q1", "q2") for d in TEXTS))
    (tmp_path / "qrels").write_text("q1 0 d1 1\nq2 0 d3 1\n")
    (tmp_path / "odd").write_text("q8 0 d1 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values_of(path: str = "out.json") -> dict[str, dict[str, dict[str, object]]]:
    found: dict[str, dict[str, dict[str, object]]] = json.loads(Path(path).read_text())
    return found


@pytest.mark.parametrize(
    "line",
    [
        "bm25 --variants swap=s.tsv mine=l.tsv",
        "bm25 --variants swap=s.tsv --variants mine=l.tsv",
        "--variants swap=s.tsv mine=l.tsv bm25",
        "bm25 mine=l.tsv --variants swap=s.tsv",
    ],
)
def test_variants_are_written_one_after_the_other(folder: Path, evenrank: Callable, line: str) -> None:
    ended = evenrank("probe", *line.split(), *BASE.split(), "--json", "out.json")
    assert (ended.status, ended.err) == (0, "")
    values = values_of()
    assert set(values["variants"]) == {"swap", "mine"}
    found = library.probe("bm25", variants={"swap": SWAP, "mine": LATE}, collection=TEXTS, queries="q.tsv", run="r.run")
    assert values["variants"] == json.loads(found.to_json())["variants"]
    assert values["settings"]["ranker"]["kind"] == "bm25"


def test_everything_at_once(folder: Path, evenrank: Callable) -> None:
    more = "--qrels qrels --placebo swap=l.tsv --depth 4 --report out.html --json out.json"
    ended = evenrank("probe", "bm25", "--variants", "swap=s.tsv", "neutral", *BASE.split(), *more.split())
    assert (ended.status, ended.err) == (0, "report: out.html\n")
    assert max(map(len, ended.out.split("\n"))) <= 80
    values = values_of()
    said = {one["key"]: one for one in values["findings"]}  # type: ignore[index]
    assert said["effectiveness"]["text"].startswith("bm25 has nDCG@10 ")
    assert [values["variants"][name]["placebo_name"] for name in ("swap", "neutral")] == [
        "placebo of swap", None,
    ]  # fmt: skip
    roles = {file["role"]: file["path"] for file in values["provenance"]["files"]}  # type: ignore[index]
    assert roles["variant swap"] == "s.tsv"
    assert roles["placebo of swap"] == "l.tsv"
    assert roles["model"] == "bm25"
    assert "evenrank probe bm25" in values["provenance"]["command"]
    assert "swap" in Path("out.html").read_text()
    assert not list(folder.glob(".*rerank"))


def test_json_alone_goes_to_standard_output(folder: Path, evenrank: Callable) -> None:
    ended = evenrank("probe", "bm25", "--variants", "swap=s.tsv", *BASE.split(), "--json", "-", "--lexicon", "none")
    assert ended.status == 0
    assert json.loads(ended.out)["variants"]["swap"]["poles"] is None


CASES = [
    ("bm25 --variants swap=s.tsv --qrels odd", "run r.run: none of its 2 queries is judged in odd: the run has 'q1'"),
    ("bm25 --variants swap=s.tsv --depth 1", "a list needs two passages or more: take a larger --depth"),
    ("bm25 --variants shout",
     "--variants: expected NAME=FILE or one of swap, neutral, rotate, found 'shout'"),
    ("bm25 --variants =s.tsv", "--variants: expected NAME=FILE or one of"),
    ("bm25 --variants swap=s.tsv swap=l.tsv", "--variants: two variants are named 'swap'"),
    ("bm25 other --variants swap=s.tsv", "--variants: expected NAME=FILE or one of"),
    ("bm25 --variants swap=s.tsv mine=l.tsv --placebo l.tsv",
     "--placebo: expected NAME=FILE, as there are several variants, found 'l.tsv'"),
    ("bm25 --variants swap=s.tsv --placebo l.tsv --placebo swap=l.tsv", "--placebo: two placebos of 'swap'"),
    ("bm25 --variants swap=s.tsv --placebo mine=l.tsv",
     "--placebo: no variant 'mine' to be a placebo of (the variants are swap)"),
    ("--variants swap=s.tsv", "expected MODEL, or --endpoint"),
    ("bm25 --variants swap=s.tsv --concurrency 3", "--concurrency needs --endpoint"),
    ("bm25 --variants swap=s.tsv --lexicon shout", "--lexicon: no file and no built-in lexicon 'shout'"),
    ("bm25 --variants swap=s.tsv --placebo l.tsv --report l.tsv", "l.tsv: cannot be written: it is an input"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "problem"), CASES)
def test_bad_input_is_one_line(folder: Path, evenrank: Callable, line: str, problem: str) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    ended = evenrank("probe", *line.split(), *BASE.split())
    assert (ended.status, ended.out) == (2, "")
    assert problem in ended.err
    assert ended.err.count("\n") == 1
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_sample(folder: Path, evenrank: Callable) -> None:
    asked = ("--sample", "1", "--json", "out.json", "--full")
    ended = evenrank("probe", "bm25", "--variants", "swap=s.tsv", *BASE.split(), *asked)
    assert (ended.status, ended.err) == (0, "")
    assert "1 of 2 queries" in ended.out
    assert (values_of()["queries"], values_of()["settings"]["sample"]) == (1, 1)


def test_a_list_is_needed(folder: Path, evenrank: Callable) -> None:
    ended = evenrank("probe", "bm25", "--variants", "swap=s.tsv", "--queries", "q.tsv", "--collection", "c.tsv")
    assert (ended.status, ended.err) == (2, "evenrank: expected a --run or --qrels, whose passages are probed\n")
