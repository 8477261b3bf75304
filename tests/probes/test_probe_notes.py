"""What a probe says of its variants and of its list: notes, counts of edits, samples."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank.files import EvenrankError, as_qrels, as_run
from evenrank.probes.variant_figures import run_figures
from evenrank.probes.variant_files import ProbedList, edits_by_passage, spread

TEXTS = {f"d{i}": f"{'he and his uncle' if i % 2 else 'she'} wrote it, but the tea was big {i}" for i in range(8)}
SWAP = {doc: re.sub("she|he|his|uncle", lambda m: {"she": "he", "his": "her"}.get(m[0], "she"), text)
        for doc, text in TEXTS.items()}  # fmt: skip
PLACEBO = {doc: text.replace("big", "large") for doc, text in TEXTS.items()}
RUN = {query: {doc: 9.0 - i for i, doc in enumerate(TEXTS)} for query in ("q1", "q2", "q3")}
QUERIES = {"q1": "who", "q2": "what", "q3": "it"}


def lengths(query: str, passages: list[str]) -> list[float]:
    return [float(len(passage) + passage.count(query) + ord(passage[-1]) / 70) for passage in passages]


def probe(variants: object, **options: object) -> evenrank.ProbeResult:
    given = {"collection": TEXTS, "queries": QUERIES, "run": RUN}
    return evenrank.probe(lengths, variants=variants, **{**given, **options})  # type: ignore[arg-type]


def test_the_notes_of_a_manifest_are_kept(tmp_path: Path) -> None:
    texts = {doc: f"{text}, Madam" for doc, text in TEXTS.items()}
    evenrank.variants(texts, kind="swap", out=tmp_path / "a.jsonl", lexicon=LEXICON)
    noted = json.loads((tmp_path / "a.jsonl.manifest.json").read_text())["notes"]
    assert len(noted) == 1
    found = probe({"mine": tmp_path / "a.jsonl"}, collection=texts, lexicon=LEXICON)
    assert f"mine: {noted[0]}" in found.notes
    made = probe("swap", collection=texts, lexicon=LEXICON)
    assert f"swap: {noted[0]}" in made.notes
    # Notes that are no texts are nobody's notes.
    manifest = tmp_path / "a.jsonl.manifest.json"
    for notes in ("odd", [1, None], None):
        manifest.write_text(json.dumps({"kind": "swap", "notes": notes}))
        found = probe({"mine": tmp_path / "a.jsonl"}, collection=texts)
        assert not any(note.startswith("mine") for note in found.notes)


LEXICON = evenrank.Lexicon(
    "two", ("m", "f"), (("he", "m"), ("she", "f"), ("madam", "f")), (0.5, 0.5), ("m", "f"),
    pairs=(("he", "she"),),
)  # fmt: skip


def test_what_was_made_and_fewer_edits_are_told_once() -> None:
    found = probe(["swap", "neutral"])
    made = [note for note in found.notes if "made of the listed passages" in note]
    names = "swap, placebo of swap, neutral, placebo of neutral"
    assert made == [f"{names}: made of the listed passages (8 passages), seed 0"]
    # Two of nine places have a synonym.
    texts = {doc: text.replace("uncle", "uncle, his son, his father") for doc, text in TEXTS.items()}
    notes = [note for note in probe("swap", collection=texts).notes if "ewer" in note]
    assert notes == ["swap: in 4 of 8 passages placebo of swap changes fewer places"]


def test_a_placebo_with_fewer_edits(tmp_path: Path) -> None:
    def table(texts: dict[str, str], edits: list[int]) -> pl.DataFrame:
        return pl.DataFrame({"doc_id": list(texts), "text": list(texts.values()), "edits": edits})

    swap, placebo = table(SWAP, [1, 3] * 4), table(PLACEBO, [1] * 8)
    said = "swap: in 4 of 8 passages placebo of swap changes fewer places"
    assert said in probe({"swap": swap}, placebos={"swap": placebo}).notes
    files = {}
    for name, one in (("s", swap), ("p", placebo)):
        one.write_parquet(tmp_path / f"{name}.parquet")
        one.write_ndjson(tmp_path / f"{name}.jsonl")
        one.drop("edits").write_csv(tmp_path / f"{name}.tsv", include_header=False, separator="\t")
        one.drop("text").write_csv(tmp_path / f"{name}.tsv.edits.tsv", include_header=False, separator="\t")
        files[name] = [tmp_path / f"{name}.{form}" for form in ("parquet", "jsonl", "tsv")]
    for first, second in zip(files["s"], reversed(files["p"]), strict=True):
        assert said in probe({"swap": first}, placebos={"swap": second}).notes
    for first, second in ((SWAP, placebo), (swap, PLACEBO), (swap, swap)):
        assert not any("fewer" in note for note in probe({"swap": first}, placebos={"swap": second}).notes)


@pytest.mark.parametrize("counts", ["d0\tmany\n", "d0\n", "\udcff\n", ""])
def test_odd_counts_of_edits_are_left_out(tmp_path: Path, counts: str) -> None:
    listed = ProbedList.of(as_run(RUN), None, 8, TEXTS, QUERIES)
    path = tmp_path / "a.tsv"
    path.write_text("d0\ttext\n")
    assert edits_by_passage(path, listed) is None
    Path(f"{path}.edits.tsv").write_text(counts, errors="surrogateescape")
    assert edits_by_passage(path, listed) is None
    Path(f"{path}.edits.tsv").write_text("d1\t3\n")
    found = edits_by_passage(path, listed)
    assert found is not None
    assert found.to_list() == [None, 3, *[None] * 6] * 3


def test_a_variant_in_memory() -> None:
    swap, placebo = evenrank.variants(TEXTS, kind="swap"), evenrank.variants(TEXTS, kind="placebo", of="swap")
    found, made = probe({"mine": swap, "p": placebo}), probe("swap")
    one = found["mine"]
    assert (one.kind, one.placebo, one.poles, one.means) == ("swap", "p", ("m", "f"), made["swap"].means)
    assert probe({"swap": SWAP}, placebos={"swap": placebo})["swap"].placebo == "placebo of swap"


# --- samples ----------------------------------------------------------------------------------------------------------


def test_a_sample_of_queries() -> None:
    judged = {query: {"d0": 1} for query in QUERIES}
    asked: set[str] = set()

    def model(query: str, passages: list[str]) -> list[float]:
        asked.add(query)
        return lengths(query, passages)

    given = {"collection": TEXTS, "queries": QUERIES, "run": RUN, "qrels": judged}
    found = evenrank.probe(model, variants={"swap": SWAP}, sample=2, **given)  # type: ignore[arg-type]
    assert len(asked) == 2
    assert (found.queries, found.pairs) == (2, 16)
    assert "A sample: 2 of 3 queries, drawn with seed 0" in found.notes
    assert ("queries", "2 of 3") in found.page().facts
    assert (found.settings["sample"], found.settings["sampled_from"]) == (2, 3)
    # Queries that were not drawn do not count as 0.
    whole = evenrank.probe(lengths, variants={"swap": SWAP}, sample=3, **given)  # type: ignore[arg-type]
    assert (whole.queries, whole.settings["sampled_from"], whole.notes) == (3, None, ())
    assert found.original["nDCG@10"].mean == pytest.approx(whole.original["nDCG@10"].mean)
    run, qrels = as_run(RUN), as_qrels(judged)
    lists = [ProbedList.of(run, qrels, 8, TEXTS, QUERIES, 1, seed).table["query_id"].unique() for seed in range(20)]
    assert {tuple(drawn) for drawn in lists} == {("q1",), ("q2",), ("q3",)}
    assert ProbedList.of(None, qrels, 8, TEXTS, QUERIES, 2, 0).size == 2


# --- scores that do not vary ------------------------------------------------------------------------------------------


def test_scores_that_differ_by_rounding_alone_do_not_vary() -> None:
    query = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    # As much as 64-bit sums differ in another order; a little more; around 0; nothing but 0.
    scores = np.array([1e6, 1e6 + 1e-4, 1e6, 1e6 + 1e-2, -1e-12, 1e-12, 0.0, 0.0])
    assert np.isnan(spread(scores, query)).tolist() == [True, False, False, True]
    assert spread(scores, query)[1] == pytest.approx(5e-3, rel=1e-6)

    # Such a query is left out.
    def model(query: str, passages: list[str]) -> list[float]:
        return [0.3, 0.1 + 0.2] * (len(passages) // 2) if query == "it" else lengths(query, passages)

    found = evenrank.probe(model, variants={"swap": SWAP}, collection=TEXTS, queries=QUERIES, run=RUN)
    assert (found.still, found["swap"].counts.still, found["swap"].counts.compared) == (1, 8, 16)


def test_a_list_tells_its_file(tmp_path: Path) -> None:
    qrels, same = tmp_path / "odd.txt", tmp_path / "same.tsv"
    qrels.write_text("q8 0 d0 1\n")
    with pytest.raises(EvenrankError, match=r"^run run: none of its .* is judged in .*odd\.txt: the run has "):
        probe({"swap": SWAP}, qrels=qrels)
    same.write_text("".join(f"{doc}\t{text}\n" for doc, text in TEXTS.items()))
    with pytest.raises(EvenrankError, match=r"^swap: no passage of the list was changed in .*same\.tsv$"):
        probe({"swap": same})


def test_progress_says_what_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, bool]] = []

    @contextmanager
    def noting(what: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
        seen.append((what, quiet))
        yield lambda _: None

    monkeypatch.setattr("evenrank.models.rerank.progress", noting)
    probe({"swap": SWAP}, quiet=False)
    probe({"swap": SWAP})
    assert seen == [("probing lengths", False), ("probing lengths", True)]


def test_one_group_word_alone_is_neutral() -> None:
    """Of the list he-and-his, she only the second passage is neutral: 1/log2(3), where the best order would have 1."""
    texts = pl.DataFrame({"doc_id": ["a", "b"], "text": ["he and his tea", "she wrote"]})
    run = as_run({"q": {"a": 2.0, "b": 1.0}})
    found = run_figures(run, texts, None, evenrank.load_lexicon("gender-en"), 0)
    assert found["NFaiRR@10"].mean == pytest.approx(1 / np.log2(3))
