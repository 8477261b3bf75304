"""Run cards: written beside a run, read with it, and ignored where they are not its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

import evenrank
from evenrank.files import Provenance, Run, read_run, write_run
from evenrank.files.provenance import card_path, made_by_text, ranker_note, write_card

RUN = Run.from_table({"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d2": 1.0}}, "a")
MADE = {"stage": "rerank", "ranker": {"kind": "bi-encoder", "model": "MiniLM"}, "depth": 100}


def written(folder: Path) -> Path:
    path = folder / "a.run"
    write_run(RUN, path)
    write_card(MADE, path, Provenance("f").add("queries", {"q1": "x"}))
    return path


def test_a_card_says_what_made_the_run_and_is_read_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    path = written(tmp_path)
    saved = json.loads(Path(f"{path}.card.json").read_text())
    assert list(saved) == [
        *("evenrank", "command", "date", "versions", "run_bytes", "run_sha256", "made_by", "inputs"),
    ]
    assert saved["made_by"] == MADE
    assert saved["run_bytes"] == path.stat().st_size
    assert saved["date"] == "1970-01-01T00:00:00Z"
    assert saved["inputs"] == [{"role": "queries", "path": None, "rows": 1, "note": "in memory"}]
    run = read_run(path)
    assert run.notes == ()
    assert run.table.equals(RUN.table)
    outer = {key: saved[key] for key in ("evenrank", "command", "date", "versions", "inputs")}
    assert run.card == {**MADE, **outer}
    assert read_run(tmp_path / "a.run", name="other").card == run.card


def test_a_run_without_a_card_is_not_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.run"
    write_run(RUN, path)
    monkeypatch.setattr("evenrank.files.provenance.file_digest", lambda _: pytest.fail("hashed"))
    assert read_run(path).card is None
    # Nor one whose card is of a file of another size.
    Path(f"{path}.card.json").write_text(json.dumps({"made_by": MADE, "run_bytes": 1, "run_sha256": "0" * 64}))
    assert read_run(path).card is None


def test_a_card_of_another_run_is_ignored_with_a_note(tmp_path: Path) -> None:
    path = written(tmp_path)
    # Of the same size.
    path.write_text(path.read_text().replace("d1", "d3"))
    assert read_run(path).card is None
    for name in (None, "B"):
        note = f"{name or 'a.run'}: its card a.run.card.json is of another run and was ignored"
        assert read_run(path, name=name).notes == (note,)


NOT_MADE = [b'{"made_by": 3}', b'{"made_by": {"stage": 1}, "run_bytes": 0}', b" " * (1 << 22) + b"{}"]


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b"{}", *NOT_MADE], ids=len)
def test_a_damaged_card_is_ignored_with_a_note(tmp_path: Path, damage: bytes) -> None:
    path = written(tmp_path)
    Path(f"{path}.card.json").write_bytes(damage)
    run = read_run(path)
    assert run.card is None
    assert run.notes == ("a.run: its card a.run.card.json is damaged and was ignored",)


def test_what_is_no_local_file_has_no_card(tmp_path: Path) -> None:
    assert card_path(None) is None
    assert card_path("/dev/stdout") is None
    assert card_path("memory://a.run") is None
    assert card_path(tmp_path / "a.run") == str(tmp_path / "a.run.card.json")
    write_card(MADE, "/dev/null", Provenance("f"))


def test_made_by_in_words(snapshot: SnapshotAssertion) -> None:
    ranker = {"kind": "bi-encoder", "model": "MiniLM", "precision": "float32", "reads": 256, "document_prompt": None}
    ranker |= {"query_prompt": "query: "}
    endpoint = {"kind": "endpoint", "model": None, "api": "tei", "url": "http://127.0.0.1:8080/rerank"}
    named = {**endpoint, "model": "org/m", "query_prompt": "q: "}
    reranked = {"stage": "rerank", "ranker": ranker}
    weighted = {"stage": "retrieve", "index": {"kind": "bm25", "settings": {"weighted": True}}}
    of_index = {**ranker, "kind": "dense", "query_prompt": "INDEXQ: ", "document_prompt": "D: "}
    encoder = {**ranker, "query_prompt": "SEARCHQ: "}
    dense = {"stage": "retrieve", "index": {"kind": "dense", "model": of_index}, "query_encoder": encoder}
    cards: list[dict[str, object]] = [
        {**reranked, "truncated": {"cut": 12, "of": 702, "unit": "passage"}},
        {**reranked, "truncated": {"cut": 0, "of": 702}},
        {"stage": "rerank", "ranker": endpoint},
        {"stage": "?"},
        {"stage": "retrieve", "index": {"kind": "bm25", "settings": {"k1": 0.9, "rm3": False, "more": {"x": 1}}}},
        {**weighted, "rm3": {"fb_docs": 5, "fb_terms": 20}},
        {**weighted, "rm3": None},
        dense,
        # A prompt of the index that the search did not have.
        {**dense, "query_encoder": {**encoder, "query_prompt": None}},
        {**dense, "query_encoder": {**encoder, "precision": "bfloat16"}},
        {**dense, "index": {"kind": ["x\n"]}, "query_encoder": 3},
        {"stage": "rerank", "ranker": {"kind": ["x\n"] * 1000, "model": "a\x1b[31m"}},
    ]
    texts = [made_by_text(card) for card in cards]
    assert texts == snapshot
    assert all(text.isprintable() and len(text) < 200 for text in texts)
    rankers = {"127.0.0.1": endpoint, "m": named, "MiniLM": ranker, "f": {"kind": "function", "model": "f"}}
    rankers["knrm"] = {"kind": "knrm", "model": "knrm", "precision": "float32"}
    assert [ranker_note(name, of) for name, of in rankers.items()] == snapshot


def test_an_audit_shows_cards(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    write_run(RUN, path)
    write_card({"stage": "rerank", "ranker": {"kind": "<b>", "model": "m"}}, path, Provenance("made <i>"))
    result = evenrank.audit({"A": path}, collection={"d1": "he", "d2": "she"})
    assert "A: re-ranked by <b> m." in result.notes
    [file, *_] = json.loads(result.to_json())["provenance"]["files"]
    assert file["role"] == "run A"
    assert file["card"]["ranker"] == {"kind": "<b>", "model": "m"}
    assert file["card"]["command"] == "made <i>"
    page = result.html()
    assert "re-ranked by &lt;b&gt; m" in page
    assert "made &lt;i&gt;" in page
    assert "made <i>" not in page


def test_commands_write_cards_and_never_over_an_input(tmp_path: Path, evenrank, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.tsv").write_text("d1\tred fox\nd2\tblue fox\n")
    Path("q.tsv").write_text("q1\tfox\n")
    assert evenrank("retrieve", "c.tsv", "q.tsv", "--out", "-", "--quiet").status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.tsv", "q.tsv"]
    assert evenrank("retrieve", "c.tsv", "q.tsv", "--out", "a.run", "--quiet").status == 0
    card = read_run("a.run").card
    assert card is not None
    assert card["stage"] == "retrieve"
    assert [entry["path"] for entry in card["inputs"]] == ["c.tsv", "q.tsv"]  # type: ignore[index]
    assert str(card["command"]).endswith("--out a.run --quiet")
    Path("b.run.card.json").write_text("q1\tfox\n")
    ended = evenrank("retrieve", "c.tsv", "b.run.card.json", "--out", "b.run", "--quiet")
    assert ended.status == 2
    assert ended.err == "evenrank: b.run.card.json: cannot be written: it is an input\n"
    assert not Path("b.run").exists()


def test_a_run_that_was_re_ranked_passes_its_card_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="needs the extra [neural]")
    path = written(tmp_path)
    out = tmp_path / "b.run"
    texts = {"d1": "he", "d2": "she"}

    def long(query: str, passages: list[str]) -> list[int]:
        return list(map(len, passages))

    result = evenrank.rerank(
        path, model=long, collection=texts, queries={"q1": "x", "q2": "y"}, depth=1, out=out, quiet=True
    )
    assert result.card is not None
    assert result.card["depth"] == 1
    card = read_run(out).card
    assert card is not None
    assert card["ranker"] == result.card["ranker"]
    [first, *_] = card["inputs"]  # type: ignore[misc]
    assert first["role"] == "run"
    assert first["card"]["ranker"] == MADE["ranker"]
