"""``evenrank index debias``, beside ``evenrank index COLLECTION``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenrank.cli import commands
from evenrank.cli._words import chosen

Command = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "debias").write_text("d1\tThe cat sat\nd2\tA dog\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_collection_of_that_name(folder: Path, evenrank: Command) -> None:
    os.rename("debias", "debias.tsv")
    os.symlink("debias.tsv", "debias")
    assert evenrank("index", "debias.tsv", "--out", "i").status == 0
    done = evenrank("index", "--out", "j", "./debias.tsv", "--quiet")
    assert (done.status, done.err) == (0, "2 documents indexed: j\n")
    # As the second word, it is the command.
    done = evenrank("index", "debias", "--out", "k")
    assert (done.status, done.err) == (
        2, "evenrank index debias: missing argument 'INDEX' (see evenrank index debias --help)\n",
    )  # fmt: skip
    assert not os.path.exists("k")


def test_which_command_it_is() -> None:
    group = commands()

    def path(*arguments: str) -> str:
        found, command = chosen(group, arguments)
        assert command.name == (found.removeprefix("evenrank ") if found != "evenrank" else "evenrank")
        return found

    assert path("index", "debias", "i") == "evenrank index debias"
    assert path("index", "./debias") == path("index", "--quiet", "debias") == "evenrank index"
    assert path("index") == "evenrank index"
    assert path("--help", "index", "debias") == "evenrank index debias"
    assert path("debias") == "evenrank"


def test_help(folder: Path, evenrank: Command) -> None:
    def text(*arguments: str) -> str:
        done = evenrank(*arguments, "--help")
        assert done.status == 0
        return " ".join(str(done.out).replace("│", " ").split())

    assert "evenrank index debias INDEX, which erases groups" in text("index")
    assert "COLLECTION" in text("index")
    assert "Usage: evenrank index debias [OPTIONS]" in text("index", "debias")
    assert "index debias Erase the groups" in text()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
    pytest.importorskip("sklearn", reason="needs the extra [embeddings]")
    from planted_encoders import planted_encoder

    words = {"he": [1, 0.2], "she": [-1, 0.2], "man": [1, 0], "woman": [-1, 0]}
    words |= {f"w{row}": [0.1 * row, 1] for row in range(12)}
    return planted_encoder(tmp_path_factory.mktemp("models") / "planted", words)


def test_debias(folder: Path, evenrank: Command, model: Path) -> None:
    pairs = {"m": "he man", "f": "she woman"}
    texts = {f"{group}{row}": f"{pair} w{row}" for row in range(12) for group, pair in pairs.items()}
    Path("c.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in texts.items()))
    Path("q.tsv").write_text("".join(f"q{row}\tman w{row}\n" for row in range(4)))
    assert evenrank("index", "c.tsv", "--out", "i", "--model", str(model), "--quiet").status == 0
    command = ("index", "debias", "i", "--collection", "c.tsv", "--queries", "q.tsv", "--quiet")
    done = evenrank(*command, "--out", "j", "--json", "j.json", "--report", "j.html")
    assert done.status == 0, done.err
    assert done.out.startswith("Whether the groups can still be recovered cannot be told: ")
    assert "LEACE erased 1 direction from 24 passages" in " ".join(done.out.split())
    assert done.err == "report: j.html\n24 documents debiased: j\n"
    values = json.loads(Path("j.json").read_text())
    assert [entry["role"] for entry in values["provenance"]["files"]] == ["index", "collection", "lexicon", "queries"]
    assert values["provenance"]["files"][0]["path"] == "i/index.json"
    assert "LEACE erased 1 direction" in Path("j.html").read_text()
    assert evenrank("retrieve", "j", "q.tsv", "--out", "r.run", "--quiet").status == 0
    card = json.loads(Path("r.run.card.json").read_text())
    assert card["made_by"]["index"]["settings"]["erasure"]["source"]["path"] == "i"
    hard = evenrank(*command[:5], "--quiet", "--out", "h", "--method", "hard", "--json", "-")
    assert hard.status == 0
    assert json.loads(hard.out)["erasure"]["method"] == "hard"

    def there() -> list[Path]:
        # An index that is read when it is a few seconds old keeps that its files are right.
        return sorted(path for path in folder.rglob("*") if path.name != "checked.json")

    before = there()

    def refused(*arguments: str) -> str:
        done = evenrank(*arguments)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert there() == before
        return str(done.err).removeprefix("evenrank: ").rstrip("\n")

    new = ("--out", "new", "--collection", "c.tsv")
    assert refused("index", "debias", "j", *new) == (
        "j: is debiased already: debias the index that it was made from, i"
    )
    assert refused("index", "debias", "i", "--out", "new") == (
        "which groups are the documents of? give --scores, --labels or --collection"
    )
    assert refused("index", "debias", "i", *new, "--components", "2") == "--components needs --method hard"
    assert refused("index", "debias", "i", "--out", "i", "--collection", "c.tsv").startswith("i: ")
    assert refused("index", "debias", "i", "--out", "j", "--collection", "c.tsv").startswith("j: is an index already")
    assert refused("index", "debias", "c.tsv", *new).startswith("c.tsv: expected an index")
    assert refused("index", "debias", "i", *new, "--json", "i/x.json").startswith("i/x.json: cannot be written")
    assert refused("index", "debias", "i", "--collection", "c.tsv", "--out", "-").startswith("expected a file")
