"""``evenrank embeddings``: its output and its files."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from evenrank.search import Vectors, read_vectors, write_vectors
from page_parts import Opened
from reaching import unreachable

NASTY = "<script>window.x=1</script>"


@pytest.fixture
def folder(given):
    """Where vectors with two pairs, a specific word and neutral words that lean to a side lie."""
    rows = {"she": 3.0, "he": -3.0, "woman": 2.5, "man": -2.0, "HER": 1.0, NASTY: 0.5}
    rows |= {f"{side}{a}{b}": lean for side, lean in (("x", 2.0), ("y", -2.0)) for a in "abcd" for b in "abcdefghij"}
    matrix = np.random.default_rng(0).normal(size=(len(rows), 8)).astype(np.float32)
    matrix[:, 0] = list(rows.values())
    place = given({})
    write_vectors(Vectors(tuple(rows), matrix), place / "v.txt")
    return place


def test_hard_debiasing(folder, evenrank):
    command = ("embeddings", "debias", "v.txt", "--out", "hard", "--json", "h.json", "--specific-out", "s.json")
    ended = evenrank(*command)
    assert (ended.status, ended.err) == (0, "86 vectors, 5 of them of words that keep their group: hard\n")
    assert ended.out.startswith("Hard debiasing took the bias out of 81 neutral words and equalised 2 sets. Every")
    assert "The bias subspace rests on 2 definitional sets of 12, and may not be" in ended.out
    figures = json.loads((folder / "h.json").read_text())
    assert [one["key"] for one in figures["findings"]] == ["hard", "equal", "few_sets"]
    assert json.loads((folder / "s.json").read_text()) == ["she", "he", "woman", "man", "HER"]
    assert figures["check"]["holds_to_1e-6"] is True
    assert figures["equalized"] == [["she", "he"], ["woman", "man"]]
    # What it says is so.
    found = read_vectors("hard")
    rows = dict(zip(found.words, found.matrix.astype(np.float64), strict=True))
    gaps = [abs(row @ (rows["she"] - rows["he"])) for word, row in rows.items() if word[0] in "xy<"]
    assert len(gaps) == 81
    assert max(gaps) <= figures["check"]["dot"] < 1e-6
    assert sorted(os.listdir(folder)) == ["h.json", "hard", "s.json", "v.txt"]
    files = (folder / "hard" / "vectors.safetensors", folder / "h.json")
    first = [path.read_bytes() for path in files]
    evenrank(*command)
    assert [path.read_bytes() for path in files] == first
    # From our own folder, to the other forms.
    for name in ("again.bin", "again.vec"):
        assert evenrank("embeddings", "debias", "hard", "--out", name).status == 0
        np.testing.assert_allclose(read_vectors(name).matrix, found.matrix, atol=1e-6)


def test_own_word_sets(folder, evenrank):
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


def test_the_page_in_a_browser(folder, evenrank, browser):
    pytest.importorskip("sklearn")
    command = ["embeddings", "audit", "v.txt", "--after", "v.txt", "--analogy", f"she:{NASTY}::he"]
    assert evenrank(*command, "--report", "r.html").status == 0
    opened = Opened(browser, folder / "r.html")
    assert unreachable(opened.page) == []
    assert opened.page.evaluate("window.x") is None
    opened.close()


def test_training(given, evenrank):
    pytest.importorskip("gensim")
    given({"c.tsv": "".join(f"{i}\tThe nurse works at the hospital\n{i}b\tthe pilot flies today\n" for i in range(30))})
    command = ["embeddings", "train", "c.tsv", "--size", "6", "--epochs", "2", "--min-count", "30"]
    ended = evenrank(*command, "--out", "a.bin")
    assert (ended.status, ended.out, ended.err) == (0, "", "8 words, 6 dimensions: a.bin\n")
    assert set(read_vectors("a.bin").words) == {"the", "nurse", "works", "at", "hospital", "pilot", "flies", "today"}
    evenrank(*command, "--out", "b.bin")
    evenrank(*command, "--out", "c.bin", "--seed", "1")
    assert Path("a.bin").read_bytes() == Path("b.bin").read_bytes() != Path("c.bin").read_bytes()


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("sklearn.cluster", ["audit", "v.txt"]),
        ("gensim.models", ["train", "c.tsv", "--out", "o"]),
        ("safetensors.numpy", ["debias", "v.txt", "--out", "o"]),
    ],
)
def test_a_missing_extra_is_named(module, arguments, folder, evenrank, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    (folder / "c.tsv").write_text("1\ta text\n")
    ended = evenrank("embeddings", *arguments)
    assert ended.status == 2
    assert ended.err.endswith(' needs the extra [embeddings]: pip install "evenrank[embeddings]"\n')
    assert not (folder / "o").exists()
