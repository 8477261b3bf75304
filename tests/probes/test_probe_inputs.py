"""What a probe refuses, in one line each, and what it says of what it reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank
from evenrank.files import EvenrankError, as_qrels, as_run
from evenrank.probes.variant_files import ProbedList, spread
from evenrank.probes.variants import Varied

TEXTS = {f"d{i}": f"{'he' if i % 2 else 'she'} wrote it {i}" for i in range(8)}
SWAP = {doc: text.replace("she", "x").replace("he", "she").replace("x", "he") for doc, text in TEXTS.items()}
PLACEBO = {doc: text.replace("wrote", "typed") for doc, text in TEXTS.items()}
RUN = {query: {doc: 9.0 - i for i, doc in enumerate(TEXTS)} for query in ("q1", "q2", "q3")}
QUERIES = {"q1": "who", "q2": "what", "q3": "it"}


def lengths(query: str, passages: list[str]) -> list[float]:
    return [float(len(passage) + passage.count(query) + ord(passage[-1]) / 70) for passage in passages]


def probe(variants: object = None, model: object = lengths, **options: object) -> Any:
    given = {"collection": TEXTS, "queries": QUERIES, "run": RUN}
    chosen = {"swap": SWAP} if variants is None else variants
    return evenrank.probe(model, variants=chosen, **{**given, **options})  # type: ignore[arg-type]


SHORT = "lengths: the scores of the passages of a query do not vary, for any query; a list needs two passages or more"
LISTED = "swap: 6 of 8 passages of the list are not in the variant: 'd2', 'd3', 'd4', 'd5', 'd6', …"


@pytest.mark.parametrize(
    ("variants", "options", "problem"),
    [
        ({"swap": {"d0": "a", "d1": "b"}}, {}, LISTED),
        ({"swap": TEXTS}, {}, "swap: no passage of the list was changed"),
        ("rotate", {}, "rotate: no passage could be changed"),
        ({"mine": Varied("swap", {}, 8, 8, 8, {}, {})}, {},
         "variant mine: its table is not in memory, but in a file: give that file (`out`)"),
        (None, {"placebos": {"swap": Varied("swap", {}, 8, 8, 8, {}, {})}},
         "variant placebo of swap: its table is not in memory"),
        (None, {"qrels": {"q8": {"d0": 1}}}, "run run: none of its "),
        (None, {"depth": 1}, f"{SHORT}: take a larger `depth`"),
        (None, {"run": None, "qrels": {"q1": {"d0": 1}}}, SHORT),
        (None, {"queries": TEXTS, "collection": QUERIES},
         "run run: none of its 3 queries has a text: are they of another list, or `queries` and `collection` exch"),
        ({"swap": 3}, {},
         "variant swap: expected a path, {document: text} or a table with doc_id and text, found 3"),
        ("shout", {},
         "`variants`: expected one of swap, neutral, rotate, or NAME=FILE, found 'shout'"),
        (["swap", "swap"], {}, "`variants`: two variants are named 'swap'"),
        ([], {}, "`variants`: expected one variant at least, found none"),
        (3, {}, "`variants`: expected a dict, a list of strings or a string, found 3"),
        (None, {"placebos": {"other": PLACEBO}},
         "`placebos`: no variant 'other' to be a placebo of (the variants are swap)"),
        (None, {"placebos": {"swap": {"d0": "a"}}}, "placebo of swap: 7 of 8 passages of the list are not in"),
        ("swap", {"lexicon": None}, "`lexicon`: expected one for the kind swap"),
        (None, {"run": None}, "expected a `run` or `qrels`, whose passages are probed"),
        (None, {"model": lambda q, p: [1.0] * len(p)},
         "function: the scores of the passages of a query do not vary, for any query"),
        (None, {"model": lambda q, p: [np.nan if "he wrote it 2" in t else len(t) for t in p]},
         "function: the score of the passage 'd2' for the query 'q1', as it is, is not finite, and 2 more"),
        (None, {"model": lambda q, p: [np.inf if t == "he wrote it 2" and q == "it" else len(t) for t in p]},
         "function: the score of the passage 'd2' for the query 'q3', in the variant swap, is not finite"),
        (None, {"queries": {"q1": "who"}}, "run run: 2 of its queries have no text: 'q2', 'q3'"),
        (None, {"collection": {"d0": "he"}}, "run run: 7 of its documents are not in the collection: "),
            (None, {"device": "cpu"}, "`device`: only for a model given by its folder or its name on the hub"),
    ],
)  # fmt: skip
def test_one_line_for_what_cannot_be_probed(variants: object, options: dict[str, object], problem: str) -> None:
    with pytest.raises(EvenrankError) as caught:
        probe(variants, **options)
    assert str(caught.value).startswith(problem)
    assert problem.endswith("`depth`") == str(caught.value).endswith("`depth`")
    assert "\n" not in str(caught.value)


# --- files and manifests ----------------------------------------------------------------------------------------------


def write(path: Path, texts: dict[str, str], **manifest: object) -> Path:
    path.write_text("".join(f"{doc}\t{text}\n" for doc, text in texts.items()))
    if manifest:
        Path(f"{path}.manifest.json").write_text(json.dumps(manifest))
    return path


def test_a_manifest_says_the_kind_and_whose_placebo_it_is(tmp_path: Path) -> None:
    mine = write(tmp_path / "a.tsv", SWAP, kind="swap", of=None, lexicon="gender-en")
    other = write(tmp_path / "b.tsv", PLACEBO, kind="placebo", of="swap", form="synonym")
    one = probe({"mine": mine, "p": other})["mine"]
    named = probe({"swap": SWAP}, placebos={"swap": PLACEBO})["swap"]
    assert (one.kind, one.placebo, one.poles) == ("swap", "p", ("m", "f"))
    assert one.means == named.means
    assert [variant.name for variant in probe({"mine": mine, "p": other}).variants] == ["mine"]
    # Alone, it is a variant as any other.
    assert probe({"p": other})["p"].kind == "placebo"
    with pytest.raises(EvenrankError, match=r"^`variants`: p and p2 are both placebos of swap; expected one$"):
        probe({"mine": mine, "p": other, "p2": other})
    mine = write(tmp_path / "a.tsv", SWAP, kind="swap", lexicon="other")
    assert "mine: made with the lexicon other, oriented by gender-en" in probe({"mine": mine}).notes


@pytest.mark.parametrize("content", ["{", "[]", '{"kind": "shout"}', "", '{"kind": 3}', "\udcff", "[" * 100_000])
def test_a_damaged_manifest_is_ignored(tmp_path: Path, content: str) -> None:
    mine = write(tmp_path / "a.tsv", SWAP)
    Path(f"{mine}.manifest.json").write_text(content, errors="surrogateescape")
    found = probe({"mine": mine})
    assert found["mine"].kind is None
    assert "mine: its manifest a.tsv.manifest.json is damaged and was ignored" in found.notes


def test_variants_that_were_written_are_as_those_made_in_memory(tmp_path: Path) -> None:
    texts = {doc: f"{text}, but the tea was big" for doc, text in TEXTS.items()}
    for name in ("swap.tsv", "swap.jsonl"):
        evenrank.variants(texts, kind="swap", out=tmp_path / name)
    evenrank.variants(texts, kind="placebo", out=tmp_path / "placebo.parquet", of="swap")
    placebo = tmp_path / "placebo.parquet"
    made = probe(["swap"], collection=texts)["swap"]
    in_memory = evenrank.variants(texts, kind="swap")
    for given in (tmp_path / "swap.tsv", tmp_path / "swap.jsonl", in_memory):
        one = probe({"mine": given, "other": placebo}, collection=texts)["mine"]
        assert (one.kind, one.placebo, one.means) == ("swap", "other", made.means)


# --- what is said of variants and of the list -----------------------------------------------------------------------


EIGHT = {f"d{i}": f"{'he and his uncle' if i % 2 else 'she'} wrote it, but the tea was big {i}" for i in range(8)}
SWAPPED = {doc: re.sub("she|he|his|uncle", lambda m: {"she": "he", "his": "her"}.get(m[0], "she"), text)
        for doc, text in EIGHT.items()}  # fmt: skip


# --- samples ----------------------------------------------------------------------------------------------------------


def test_a_sample_of_queries() -> None:
    judged = {query: {"d0": 1} for query in QUERIES}
    asked: set[str] = set()

    def model(query: str, passages: list[str]) -> list[float]:
        asked.add(query)
        return lengths(query, passages)

    given = {"collection": EIGHT, "queries": QUERIES, "run": RUN, "qrels": judged}
    found = evenrank.probe(model, variants={"swap": SWAPPED}, sample=2, **given)  # type: ignore[arg-type]
    assert (len(asked), found.queries, found.pairs) == (2, 2, 16)
    assert "A sample: 2 of 3 queries, drawn with seed 0" in found.notes
    assert ("queries", "2 of 3") in found.page().facts
    # Queries that were not drawn do not count as 0.
    assert found.original["nDCG@10"].mean == pytest.approx(1 / np.log2(9))
    run, qrels = as_run(RUN), as_qrels(judged)
    lists = [ProbedList.of(run, qrels, 8, EIGHT, QUERIES, 1, seed).table["query_id"].unique() for seed in range(20)]
    assert {tuple(drawn) for drawn in lists} == {("q1",), ("q2",), ("q3",)}
    assert ProbedList.of(None, qrels, 8, EIGHT, QUERIES, 2, 0).table.height == 2


# --- scores that do not vary ------------------------------------------------------------------------------------------


def test_scores_that_differ_by_rounding_alone_do_not_vary() -> None:
    query = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    # As much as 64-bit sums differ in another order; a little more; around 0; nothing but 0.
    scores = np.array([1e6, 1e6 + 1e-4, 1e6, 1e6 + 1e-2, -1e-12, 1e-12, 0.0, 0.0])
    assert np.isnan(spread(scores, query)).tolist() == [True, False, False, True]
    assert spread(scores, query)[1] == pytest.approx(5e-3, rel=1e-6)
