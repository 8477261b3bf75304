"""The folder of an index: what it says of itself, and every way in which it is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank import EvenrankError, InputError, build_index, open_index, retrieve
from evenrank.files import scan_collection
from evenrank.files.reading import is_index
from evenrank.search.bm25 import Index
from evenrank.search.index_folder import IndexWriter, begin_digest, read_manifest

COLLECTION = {"d1": "The cat sat", "d2": "Cats and dogs"}
QUERIES = {"q": "dog"}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    build_index(COLLECTION, out=tmp_path / "index", quiet=True)
    return tmp_path / "index"


def test_damage_that_keeps_the_size_is_found_where_it_is_asked_for(tmp_path: Path) -> None:
    index = tmp_path / "index"
    for name in build_index(COLLECTION, out=index, rm3=True, quiet=True).files:
        whole = (index / name).read_bytes()
        (index / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(InputError, match=rf"index: the index is damaged: {name} differs from what was written$"):
            retrieve(index, QUERIES, quiet=True, check=True)
        (index / name).write_bytes(whole)
    with pytest.raises(EvenrankError, match=r"^`check`: only for an index by its folder$"):
        retrieve(COLLECTION, QUERIES, quiet=True, check=True)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_files_that_are_cut_while_they_are_open(index: Path, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that reads beyond their end would end the process."""
    opened, search = open_index(index), Index._search

    def cut(found: Any = None) -> Any:
        for name in opened.manifest.files:
            os.truncate(index / name, 0)
        return found

    if when == "before":
        cut()
    else:
        monkeypatch.setattr(Index, "_search", lambda *given, **settings: cut(search(*given, **settings)))
    with pytest.raises(InputError, match=r"index: the index is damaged: by-turn.npy has 0 bytes, expected 136$"):
        opened.search(QUERIES, quiet=True)


def test_folders_that_are_no_index(tmp_path: Path, index: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("absent", "file"):
        with pytest.raises(InputError, match=rf"{name}: expected an index, found no index.json$"):
            open_index(tmp_path / name)
    odd = tmp_path / "odd"
    (odd / "index.json").mkdir(parents=True)
    with pytest.raises(InputError, match=r"index.json cannot be read: Is a directory$"):
        open_index(odd)
    # A folder of parts is still a collection, and an index is none.
    (odd / "index.json").rmdir()
    (odd / "index.json").write_text('{"id": "d1", "text": "a cat"}\n')
    (odd / "part-000000.tsv").write_text("d2\ta dog\n")
    assert not is_index(odd)
    assert retrieve(odd, QUERIES, quiet=True).table["doc_id"].to_list() == ["d2"]
    with pytest.raises(InputError, match=r"expected an index, found an index.json of something else$"):
        open_index(odd)
    with pytest.raises(InputError, match=r"index: is an index; expected a collection$"):
        list(scan_collection(index))


NOT_VALID = "the index is damaged: index.json has no valid "
MANIFESTS: list[tuple[dict[str, object], str]] = [
    ({"format": "evenrank index 9"}, "the index has the format 'evenrank index 9', expected 'ev"),
    ({"kind": "magic"}, NOT_VALID + "'kind'"),
    ({"documents": 0}, NOT_VALID + "'documents'"),
    ({"documents": 2**40}, NOT_VALID + "'documents'"),
    ({"documents": 3}, "the index is damaged: ids-starts.npy does not fit the other files"),
    ({"settings": "k1"}, NOT_VALID + "'settings'"),
    ({"model": "m"}, NOT_VALID + "'model'"),
    ({"files": {"../x.npy": {"bytes": 1, "sha256": ""}}}, NOT_VALID + "'files'"),
    ({"files": {"x.npy": {"bytes": "1", "sha256": ""}}}, NOT_VALID + "'files'"),
    ({"settings": {}}, "the index is damaged: "),
    ({"settings": {"k1": "x", "b": 0.4, "stopwords": "", "stopwords_sha256": "", "stemmer": None}}, NOT_VALID),
]


@pytest.mark.parametrize(("changes", "message"), MANIFESTS, ids=str)
def test_a_damaged_manifest(index: Path, changes: dict[str, object], message: str) -> None:
    values = json.loads((index / "index.json").read_text())
    (index / "index.json").write_text(json.dumps(values | changes))
    with pytest.raises(InputError) as caught:
        retrieve(open_index(index), QUERIES)
    assert str(caught.value).startswith(f"{index}: {message}")


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b"\xff\xfe", b'{"format": ' + b"9" * 5000 + b"}"])
def test_a_manifest_that_is_not_json(index: Path, content: bytes) -> None:
    (index / "index.json").write_bytes(content)
    # Told by its other files.
    assert is_index(index)
    with pytest.raises(InputError, match=r": the index is damaged: index.json is not JSON$"):
        retrieve(index, QUERIES)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "scores.npy has 139 bytes, expected 140"),
        (lambda path: path.unlink(), "scores.npy: No such file or directory"),
        (lambda path: path.replace(path.with_name("y")) and path.symlink_to("y"), "scores.npy is not a plain file"),
        (lambda path: path.unlink() or os.mkfifo(path), "scores.npy is not a plain file"),
    ],
)
def test_a_damaged_file(tmp_path: Path, damage: Callable[[Path], object], message: str) -> None:
    index = tmp_path / "index"
    build_index({"d1": "cat dog", "d2": "dog"}, out=index, quiet=True)
    damage(index / "scores.npy")
    with pytest.raises(InputError) as caught:
        retrieve(index, QUERIES)
    assert str(caught.value) == f"{index}: the index is damaged: {message}"


def test_where_no_index_is_built(tmp_path: Path) -> None:
    def refused(out: Path, collection: object = COLLECTION) -> str:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(EvenrankError) as caught:
            build_index(collection, out=out, quiet=True)
        assert sorted(tmp_path.rglob("*")) == before
        return str(caught.value).removeprefix(f"{out}: ")

    file, folder = tmp_path / "c.tsv", tmp_path / "folder"
    file.write_text("d1\tcat\n")
    assert refused(file) == "expected a folder, found a file"
    folder.mkdir()
    (folder / "c.tsv").write_text("d1\tcat\n")
    assert refused(folder / "index", folder) == f"cannot be written: it lies in an input ({folder})"
    assert refused(tmp_path / "new", {"d1": "cat", "": "dog"}) != ""
    (folder / "index.json").write_text("{}")
    assert refused(folder) == "contains another index.json; remove it, or choose another output"
    with pytest.raises(InputError, match=r"^memory://index: an index is built in a local folder$"):
        build_index(COLLECTION, out="memory://index")


def test_work_is_resumed_for_the_same_collection_and_settings_only(tmp_path: Path) -> None:
    folder, of = tmp_path / "index", {"collection": "one", "model": "m"}
    with suppress(ZeroDivisionError), IndexWriter(folder, "dense", {"a": 1}, made_from=of) as writer:
        writer.file("vectors.npy").write_text("half")
        writer.work.keep(0, {})
        raise ZeroDivisionError
    for settings, made_from in (({"a": 2}, of), ({"a": 1}, {**of, "collection": "two"}), ({"a": 1}, None)):
        with (
            pytest.raises(EvenrankError, match=r"begun with another input or setting \("),
            IndexWriter(folder, "dense", settings, made_from=made_from),
        ):
            pass
    with IndexWriter(folder, "dense", {"a": 1}, made_from=of) as writer:
        assert list(writer.work.done) == [0]
        manifest = writer.finish(1, {}, versions={})
    assert sorted(os.listdir(folder)) == ["index.json", "vectors.npy"]
    assert read_manifest(folder) == manifest


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def batches() -> Any:
        yield pl.DataFrame({"doc_id": ["d1"], "text": ["cat"]})
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"index: cannot be written: No space left on device$"):
        build_index(batches(), out=tmp_path / "index", quiet=True)
    assert list(tmp_path.iterdir()) == []


def test_a_collection_that_changes_is_no_index(tmp_path: Path) -> None:
    path = tmp_path / "c.tsv"
    path.write_text("d1\tcat\n")
    digest = begin_digest(path)
    path.write_text("d1\tcat and dog\n")
    with pytest.raises(EvenrankError, match=r"c.tsv: changed while it was read$"):
        digest()
