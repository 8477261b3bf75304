"""``evenrank embeddings``: its output, its files and what bad input gets."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenrank.search.embeddings import Vectors, read_vectors, write_vectors
from reaching import unreachable

Command = Callable[..., Any]
NASTY = "<script>window.x=1</script>"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where vectors with two pairs, a specific word and neutral words that lean to a side lie, and the command runs."""
    rng = np.random.default_rng(0)
    letters = "abcdefghij"
    rows = {"she": 3.0, "he": -3.0, "woman": 2.5, "man": -2.0, "HER": 1.0, NASTY: 0.5}
    rows |= {f"x{a}{b}": 2.0 for a in letters[:4] for b in letters} | {
        f"y{a}{b}": -2.0 for a in "abcd" for b in letters
    }
    matrix = rng.normal(size=(len(rows), 8)).astype(np.float32)
    matrix[:, 0] = list(rows.values())
    write_vectors(Vectors(tuple(rows), matrix), tmp_path / "v.txt")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_hard_debiasing(folder: Path, evenrank: Command) -> None:
    ended = evenrank("embeddings", "debias", "v.txt", "--out", "hard", "--json", "h.json", "--specific-out", "s.json")
    assert (ended.status, ended.err) == (0, "86 vectors, 5 of them of words that keep their group: hard\n")
    assert ended.out.startswith("Hard debiasing took the bias out of 81 neutral words and equalised 2 sets. Every")
    assert "The bias subspace rests on 2 definitional sets of 12, and may not be" in ended.out
    keys = [one["key"] for one in json.loads((folder / "h.json").read_text())["findings"]]
    assert keys == ["hard", "equal", "few_sets"]
    assert json.loads((folder / "s.json").read_text()) == ["she", "he", "woman", "man", "HER"]
    figures = json.loads((folder / "h.json").read_text())
    assert figures["check"]["holds_to_1e-6"] is True
    assert figures["equalized"] == [["she", "he"], ["woman", "man"]]
    # What it says is so.
    found = read_vectors("hard")
    rows = dict(zip(found.words, found.matrix.astype(np.float64), strict=True))
    gaps = [abs(row @ (rows["she"] - rows["he"])) for word, row in rows.items() if word[0] in "xy<"]
    assert len(gaps) == 81
    assert max(gaps) <= figures["check"]["dot"] < 1e-6
    files = sorted(os.listdir(folder))
    assert files == ["h.json", "hard", "s.json", "v.txt"]
    first = (folder / "hard" / "vectors.safetensors").read_bytes(), (folder / "h.json").read_bytes()
    evenrank("embeddings", "debias", "v.txt", "--out", "hard", "--json", "h.json", "--specific-out", "s.json")
    assert ((folder / "hard" / "vectors.safetensors").read_bytes(), (folder / "h.json").read_bytes()) == first
    # From our own folder, to the other forms.
    for name in ("again.bin", "again.vec"):
        assert evenrank("embeddings", "debias", "hard", "--out", name).status == 0
        np.testing.assert_allclose(read_vectors(name).matrix, found.matrix, atol=1e-6)


def test_own_word_sets(folder: Path, evenrank: Command) -> None:
    for name, value in {"d": [["xaa", "yaa"]], "e": [["xab", "yab", "xac"], ["q", "r"]], "s": ["she", "XBB"]}.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    sets = ["--definitional", "d.json", "--equalize", "e.json", "--specific", "s.json"]
    ended = evenrank("embeddings", "debias", "v.txt", "--out", "o.bin", *sets, "--components", 3, "--full")
    assert ended.status == 0
    assert "bias subspace: 1 of 3 components, 100.0%" in ended.out
    assert "neutral words: 81, equalised sets: 1" in ended.out
    assert "and 3 pairs: " in ended.out
    assert "equalize words without a vector: 2: q, r" in ended.out
    few = evenrank("embeddings", "debias", "v.txt", "--out", "o.bin", *sets, "--limit", 8)
    assert (few.status, few.err.startswith("evenrank: definitional sets: none has two words")) == (2, True)


def test_audit(folder: Path, evenrank: Command) -> None:
    pytest.importorskip("sklearn")
    assert evenrank("embeddings", "debias", "v.txt", "--out", "hard").status == 0
    command = ["embeddings", "audit", "v.txt", "--after", "hard", "--analogy", f"she:{NASTY}::he"]
    command += ["--json", "r.json", "--report", "r.html", "--train", "10"]
    ended = evenrank(*command)
    assert (ended.status, ended.err) == (0, "report: r.html\n")
    assert ended.out.startswith("After debiasing, a linear SVM tells which side words were biased to for ")
    figures = json.loads((folder / "r.json").read_text())
    assert [one["key"] for one in figures["findings"]] == ["recovered"]
    assert figures["before"]["recovery"]["linear"] > 0.9
    assert figures["settings"]["most_biased"] == 39
    page = (folder / "r.html").read_bytes()
    assert NASTY.encode() not in page
    assert b"&lt;script&gt;window.x=1&lt;/script&gt;" in page
    first = (folder / "r.json").read_bytes()
    assert evenrank(*command).out == ended.out
    assert ((folder / "r.json").read_bytes(), (folder / "r.html").read_bytes()) == (first, page)
    alone = evenrank("embeddings", "audit", "hard")
    assert alone.status == 0
    assert alone.out.startswith("No verdict without the vectors after debiasing: ")
    assert "she : xaa :: he : ?" in evenrank("embeddings", "audit", "v.txt", "--analogy", "she:xaa::he", "--full").out


def test_the_page_in_a_browser(folder: Path, evenrank: Command, browser: Any) -> None:
    pytest.importorskip("sklearn")
    command = ["embeddings", "audit", "v.txt", "--after", "v.txt", "--analogy", f"she:{NASTY}::he"]
    assert evenrank(*command, "--report", "r.html").status == 0
    page = browser.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((folder / "r.html").as_uri())
    assert unreachable(page) == []
    assert page.evaluate("window.x") is None
    page.close()
    assert said == []
    assert asked == [(folder / "r.html").as_uri()]


def test_training(folder: Path, evenrank: Command) -> None:
    pytest.importorskip("gensim")
    texts = [f"{i}\tThe nurse works at the hospital\n{i}b\tthe pilot flies today" for i in range(30)]
    (folder / "c.tsv").write_text("\n".join(texts) + "\n")
    command = ["embeddings", "train", "c.tsv", "--size", "6", "--epochs", "2", "--min-count", "30"]
    ended = evenrank(*command, "--out", "a.bin")
    assert (ended.status, ended.out, ended.err) == (0, "", "8 words, 6 dimensions: a.bin\n")
    assert set(read_vectors("a.bin").words) == {"the", "nurse", "works", "at", "hospital", "pilot", "flies", "today"}
    evenrank(*command, "--out", "b.bin")
    evenrank(*command, "--out", "c.bin", "--seed", "1")
    assert Path("a.bin").read_bytes() == Path("b.bin").read_bytes() != Path("c.bin").read_bytes()
    ended = evenrank("embeddings", "train", "c.tsv", "--out", "d", "--min-count", "99")
    assert (ended.status, ended.err) == (2, "evenrank: word vectors: no word occurs 99 times or more in 'c.tsv'\n")
    assert not Path("d").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["debias", "none.txt", "--out", "o"], "none.txt: no such file"),
        (["debias", "v.txt", "--out", "o.npy"], "o.npy: expected .bin (word2vec, binary)"),
        (["debias", "v.txt", "--out", "no/o.bin"], "no/o.bin: cannot be written"),
        (["debias", "v.txt", "--out", "v.txt/o"], "v.txt/o: cannot be written: Not a directory"),
        (["debias", "v.txt", "--out", "o", "--json", "no/o.json"], "no/o.json: cannot be written"),
        (["debias", "v.txt", "--out", "o", "--components", "8"], "expected 1 to 7"),
        (["debias", "v.txt", "--out", "o", "--definitional", "bad.json"], "bad.json, line 1: invalid JSON"),
        (["debias", "short.txt", "--out", "o"], "short.txt, line 2: expected a word and 2 numbers, found 1"),
        (["audit", "v.txt", "--after", "other.txt"], "vectors before and after: expected the same words"),
        (["audit", "v.txt", "--analogy", "a:b:c"], "--analogy: expected A:B::C, found 'a:b:c'"),
    ],
)
def test_bad_input(folder: Path, evenrank: Command, arguments: list[str], message: str) -> None:
    (folder / "bad.json").write_text("[,")
    (folder / "short.txt").write_text("a 1 2\nb 1\n")
    (folder / "other.txt").write_text("she 1 2 3 4 5 6 7 8\n")
    before = sorted(os.listdir(folder))
    ended = evenrank("embeddings", *arguments)
    assert ended.status == 2
    assert ended.err.startswith("evenrank: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("sklearn.cluster", ["audit", "v.txt"]),
        ("gensim.models", ["train", "c.tsv", "--out", "o"]),
        ("safetensors.numpy", ["debias", "v.txt", "--out", "o"]),
    ],
)
def test_a_missing_extra_is_named(
    module: str, arguments: list[str], folder: Path, evenrank: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    (folder / "c.tsv").write_text("1\ta text\n")
    ended = evenrank("embeddings", *arguments)
    assert ended.status == 2
    assert ended.err.endswith(' needs the extra [embeddings]: pip install "evenrank[embeddings]"\n')
    assert not (folder / "o").exists()
