"""What a scan finds of retrievers whose blind spots are planted, and its figures against loops."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.calibration.scan import World, world
from hypothesis import given
from hypothesis import strategies as st

import evenrank
from evenrank import EvenrankError, Run, ScanResult, cut_passages, retrieve, scan, scan_queries
from evenrank.files.types import holm
from evenrank.measures.retrievability import gini
from evenrank.models.scorers import FunctionScorer
from evenrank.probes.retrieving import Passages
from evenrank.probes.scan import AT, Asked, contrasts_of, edge_of, matched, own_ranks, within
from evenrank.stats.compare import Comparison, intersection_union


@pytest.fixture(scope="module")
def made() -> World:
    return world(117, (16,))


def asked_of(made: World) -> pl.DataFrame:
    return made.items.queries.select("query_id", "text")


def searched(texts: pl.DataFrame, made: World, name: str = "planted") -> Run:
    return retrieve(texts, asked_of(made), k=100, name=name, quiet=True)


def contrast(found: ScanResult, by: str) -> Any:
    return next(one for one in found.contrasts if one.by == by)


def test_a_retriever_that_reads_the_first_words_is_found_with_its_edge(made: World) -> None:
    cut = made.texts.with_columns(pl.col("text").map_elements(lambda text: " ".join(text.split()[:64]), pl.String))
    found = scan(made.texts, run=searched(cut, made), sample=117)
    depth = contrast(found, "depth")
    assert depth.verdict == "shown"
    assert depth.of_last == 0 < depth.of_first
    assert depth.bm25[1] > 0.4
    # Sentences have 12 words.
    assert found.edge is not None
    assert abs(found.edge - 64) <= 12
    assert found.findings[0].key == "depth"
    assert found.findings[0].text.startswith("planted finds a passage by its first tenth in ")
    assert f"falls most steeply around word {found.edge} of a passage" in " ".join(found.table().split())
    assert next(name for name, _ in found.page().next).startswith("evenrank passages COLLECTION --tokens 6")


def test_a_retriever_that_lacks_a_group_is_found(made: World) -> None:
    ids = made.items.queries["doc_id"].unique(maintain_order=True)
    labels = {doc: "ab"[row % 2] for row, doc in enumerate(ids)}
    lacking = made.texts.filter(~pl.col("doc_id").is_in([doc for doc, group in labels.items() if group == "b"]))
    run = searched(lacking, made)
    found = scan(made.texts, run=run, sample=117, labels=labels, poles="a,b")
    group = contrast(found, "group")
    assert (group.verdict, group.first, group.last) == ("shown", "a", "b")
    assert group.of_last == pytest.approx(0, abs=1e-12)
    assert group.found.mean == pytest.approx(group.of_first, abs=0.1)
    assert contrast(found, "depth").verdict == "no difference shown"
    lost = [one.doc_id for one in found.lost]
    assert {one for one, group in labels.items() if group == "b"} <= {*lost}
    assert all(one.group == labels[one.doc_id] for one in found.lost)
    assert len(lost) == pytest.approx(found.retrievers[0].lost.mean * 117)
    said = {one.key: one.text for one in found.findings}
    first = "Passages of a are found in 68% of cases, those of b of the same length and depth in 0%: +.68 ["
    assert [one.text for one in found.findings if one.place == "answer"] == [said["group_differs"]]
    assert said["group_differs"].startswith(first)
    assert next(one.place for one in found.findings if one.key == "depth_same") == "finding"
    bm25 = sum(1 for one in scan(made.texts, model="bm25", sample=117).lost)
    assert 0 < bm25 < len(lost)
    assert said["lost"] == f"Found by none of their sentences: {len(lost)} of 117 passages (BM25: {bm25}), such as p2."


def test_what_is_lost_and_won_between_two_retrievers(made: World) -> None:
    ids = made.items.queries["doc_id"].unique(maintain_order=True).to_list()
    whole = searched(made.texts, made, "old")
    without = whole.table.filter(~pl.col("doc_id").is_in(ids[:40]))
    found = scan(made.texts, run=Run.from_table(without, "new"), against=whole, sample=117)
    change = contrast(found, "retriever")
    assert (change.verdict, change.first, change.last) == ("shown", "new", "old")
    assert change.found.mean == pytest.approx(change.of_first - change.of_last)
    assert set(found.gone) <= set(ids[:40])
    assert len(found.gone) >= 30
    assert found.won == ()
    assert [one.name for one in found.retrievers] == ["new", "old", "bm25"]
    assert found.findings[1].text.endswith(f"(passages lost: {len(found.gone)}, won: 0).")
    assert found.findings[1].key == "change_worse"
    turned = scan(made.texts, run=whole, against=Run.from_table(without, "new"), sample=117)
    assert (turned.won, turned.gone) == (found.gone, ())
    assert turned.findings[1].key == "change_better"
    same = scan(made.texts, run=Run.from_table(whole.table, "new"), against=whole, sample=117)
    assert contrast(same, "retriever").verdict == "no difference shown"
    assert same.findings[1].text == "It finds as much of each passage as old."


def test_figures_are_those_of_a_loop(made: World) -> None:
    run = searched(made.texts, made)
    found = scan(made.texts, run=run, sample=117, k=50)
    ranks: dict[str, float] = {}
    exposure = dict.fromkeys(made.texts["doc_id"], 0.0)
    for query, doc, rank in run.table.select("query_id", "doc_id", "rank").iter_rows():
        if rank <= 50:
            exposure[doc] += 1 / np.log(1 + rank)
            if query.rpartition("@")[0] == doc:
                ranks[query] = rank
    whole = found.retrievers[0].whole
    queries = made.items.queries
    of = np.array([ranks.get(query, np.inf) for query in queries["query_id"]])
    assert found.same == 0
    assert (whole.queries, whole.at10.n) == (queries.height, 117)
    assert whole.at1.mean == pytest.approx((of <= 1).mean())
    assert whole.at10.mean == pytest.approx((of <= 10).mean())
    assert whole.at_k.mean == pytest.approx((of <= 50).mean())
    assert whole.rr.mean == pytest.approx((1 / of).mean())
    values = np.array(list(exposure.values()))
    shown = found.retrievers[0].exposure
    assert shown.gini == pytest.approx(gini(values))
    assert shown.unseen == (values == 0).sum()
    assert [value for _, value in shown.hubs] == pytest.approx(sorted(values, reverse=True)[:10])
    # Each passage counts once, with all its queries of a tenth.
    depth = contrast(found, "depth")
    both_ends = [[], []]
    for _, own in queries.with_columns(found=pl.Series(of <= 10)).group_by("doc_id"):
        ends = own.filter(pl.col("place") < 0.1)["found"], own.filter(pl.col("place") >= 0.9)["found"]
        if all(map(len, ends)):
            for part, end in zip(both_ends, ends, strict=True):
                part.append(end.mean())
    assert (depth.of_first, depth.of_last) == pytest.approx(tuple(np.mean(part) for part in both_ends))
    parts = {(one.by, one.part): one for one in found.retrievers[0].parts}
    first = of[(queries["place"] < 0.1).to_numpy()]
    assert parts["depth", "first tenth"].at10.mean == pytest.approx((first <= 10).mean())
    assert parts["length", "101–200 words"].queries == queries.height
    # BM25 is what was given here, and stands beside it.
    assert found.retrievers[1].whole == whole
    assert found.sentences is not None
    assert found.sentences["rank_planted"].to_list() == [None if np.isinf(one) else one for one in of]


TEXTS = {
    "a": "alpha beta gamma delta epsilon zeta eta theta iota kappa",
    "copy": "alpha beta gamma delta epsilon zeta eta theta iota kappa",
    "near": "alpha beta gamma delta epsilon zeta eta theta iota lambda",
    "all": "alpha beta gamma delta epsilon zeta eta theta iota kappa nu xi omicron",
    "other": "alpha beta gamma delta epsilon zeta eta theta nu xi",
}


@pytest.mark.parametrize(
    ("order", "rank", "other"),
    [
        ("a copy near other", 1, False),
        ("other copy a near", 2, True),
        ("other near a copy", 2, True),
        ("other a copy near", 2, False),
        ("other", np.inf, False),
        ("near", 1, True),
        # It holds the sentence, "theta iota kappa".
        ("all a", 1, True),
    ],
)
def test_a_passage_with_the_same_words_stands_for_another(order: str, rank: float, other: bool) -> None:
    passages = Passages.of(TEXTS, True)
    items = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "start": [40], "end": [56]})
    names = order.split()
    run = Run.from_table({"q": {doc: float(-place) for place, doc in enumerate(names)}}, "r")
    found, by_other = own_ranks(run, items, passages, None)
    assert (found[0], by_other[0]) == (rank, other)


CELLS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.booleans(), st.booleans(), st.floats(0, 1)),
    min_size=1,
    max_size=30,
)


@given(CELLS)
def test_contrasts_are_loops(cells: list[tuple[int, int, bool, bool, float]]) -> None:
    passage, strata, first, last, values = map(np.array, zip(*cells, strict=True))
    last &= ~first
    own = within(values, passage, first, last)
    expected = []
    for one in range(5):
        parts = [values[(passage == one) & side] for side in (first, last)]
        if all(map(len, parts)):
            expected.append([part.mean() for part in parts])
    assert pytest.approx(np.array(expected).reshape(-1, 2)) == np.array(own).T
    # A group is of whole passages.
    inside = passage < 2
    found = matched(values, passage, inside, ~inside, strata)
    total = weights = 0.0
    for one in range(3):
        a, b = values[inside & (strata == one)], values[~inside & (strata == one)]
        if len(a) and len(b):
            weight = len(a) * len(b) / (len(a) + len(b))
            total, weights = total + weight * (a.mean() - b.mean()), weights + weight
    if weights:
        assert found[0].mean() - found[1].mean() == pytest.approx(total / weights, abs=1e-9)
    else:
        assert [len(one) for one in found] == [0, 0]


def test_what_bm25_does_as_well_is_not_shown() -> None:
    rng = np.random.default_rng(5)
    place = np.tile([0.0, 1.0], 200)
    queries = pl.DataFrame(
        {"doc_id": np.repeat([f"d{row}" for row in range(200)], 2), "place": place, "words": np.full(400, 90)}
    )
    asked = Asked.of(queries, np.zeros(200, int), ("a", "b"))
    falls = (rng.random(400) < 0.9 - 0.5 * place).astype(float)
    as_well = (rng.random(400) < 0.9 - 0.5 * place).astype(float)
    never = np.ones(400)
    by = {}
    for name, control in (("as well", as_well), ("never", never), ("none", None)):
        by[name] = contrasts_of(["r"], [falls], control, asked, [None])[0]
    assert [one.verdict for one in by.values()] == ["no difference shown", "shown", "shown"]
    assert by["as well"].alone.shown
    assert by["as well"].bm25 == pytest.approx((as_well[::2].mean(), as_well[1::2].mean()))
    assert by["never"].found.mean == pytest.approx(0.5, abs=0.08)
    # The group has no passage at all.
    group = contrasts_of(["r"], [falls], None, asked, [None])[1]
    assert group.found.reason == "only 0 passages of b have queries, where 15 are needed"


def passages_of(number: int, words: Any = 90) -> pl.DataFrame:
    """Two queries of each passage, of its first and of its last sentence."""
    ids = np.repeat([f"d{row}" for row in range(number)], 2)
    return pl.DataFrame(
        {"doc_id": ids, "place": np.tile([0.0, 1.0], number), "words": np.broadcast_to(words, 2 * number)}
    )


def test_a_group_that_bm25_finds_less_of_as_well_is_not_shown() -> None:
    rng = np.random.default_rng(3)
    group = np.arange(300) % 2
    asked = Asked.of(passages_of(300), group, ("a", "b"))
    less = np.repeat(np.where(group == 1, 0.4, 0.8), 2)
    found, as_well = (rng.random(600) < less).astype(float), (rng.random(600) < less).astype(float)
    own, beside, perfect = (
        contrasts_of(["r"], [found], control, asked, [None])[1] for control in (None, as_well, np.ones(600))
    )
    assert [one.verdict for one in (own, beside, perfect)] == ["shown", "no difference shown", "shown"]
    of = np.repeat(group, 2)
    assert own.found.mean == pytest.approx(found[of == 0].mean() - found[of == 1].mean(), abs=0.01)
    assert (own.first, own.last, own.found.mean > 0) == ("a", "b", True)
    assert beside.bm25 == pytest.approx((as_well[of == 0].mean(), as_well[of == 1].mean()), abs=0.02)


def test_groups_are_compared_at_the_same_length_and_depth() -> None:
    length = np.repeat(np.arange(300) % 3, 2)
    # Half of the long passages are of b, a tenth of the short ones; most of b have no query of their end.
    group = (np.arange(300) % 20 < np.array([2, 6, 12])[np.arange(300) % 3]).astype(int)
    kept = np.tile([True, False], 300) | (np.repeat(group, 2) == 0) | (np.arange(600) % 8 == 3)
    queries = passages_of(300, np.array([40, 90, 150])[length]).filter(pl.Series(kept))
    length = length[kept]
    asked = Asked.of(queries, group, ("a", "b"))
    by_part = 0.9 - 0.25 * length - 0.2 * queries["place"].to_numpy()
    found = contrasts_of(["r"], [by_part], None, asked, [None])[1]
    assert found.found.mean == pytest.approx(0, abs=1e-12)
    assert found.verdict == "no difference shown"
    # Without a like in length nothing can be compared.
    asked = Asked.of(queries, (np.arange(300) % 3 == 2).astype(int), ("a", "b"))
    why = contrasts_of(["r"], [by_part], None, asked, [None])[1].found.reason
    assert why == "only 0 passages of a have their like in length and depth, where 15 are needed"


def test_a_group_of_which_nothing_is_found() -> None:
    group = np.arange(60) % 2
    asked = Asked.of(passages_of(60), group, ("a", "b"))
    found = contrasts_of(["r"], [np.repeat(1.0 - group, 2)], None, asked, [None])[1]
    assert (found.verdict, found.found.mean, found.of_first, found.of_last) == ("shown", 1.0, 1.0, 0.0)


def test_several_groups_are_each_compared_with_all_others() -> None:
    group = np.tile([0, 1, 2, -1, -2], 40)
    asked = Asked.of(passages_of(200), group, ("a", "b", "c"))
    values = np.repeat(np.select([group == 1, group < 0], [0.2, 0.9], 0.6), 2) + 0.01 * np.tile([1, -1], 200)
    found = {one.first: one for one in contrasts_of(["r"], [values], None, asked, [None]) if one.by == "group"}
    assert [found[name].found.mean for name in "abc"] == pytest.approx([0.2, -0.4, 0.2])
    assert [one.last for one in found.values()] == ["others"] * 3


def test_all_contrasts_are_corrected_together() -> None:
    rng = np.random.default_rng(2)
    asked = Asked.of(passages_of(100), np.arange(100) % 2, ("a", "b"))
    values = [(rng.random(200) < 0.6 - 0.1 * asked.tenth / 9).astype(float) for _ in range(2)]
    read = asked.tenth == 0
    found = contrasts_of(["new", "old"], values, None, asked, [read, None])
    assert [(one.name, one.by) for one in found] == [
        ("new", "depth"),
        ("new", "read"),
        ("new", "group"),
        ("old", "depth"),
        ("old", "group"),
        ("new", "retriever"),
    ]
    assert [one.found.holm_p for one in found] == holm([one.found.p for one in found])
    assert found[1].of_first == found[0].of_first
    assert found[5].found.mean == pytest.approx(values[0].mean() - values[1].mean())


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        ((0.3, 0.2), (0.4, 0.01), 0.2),
        ((0.3, 0.01), (0.4, 0.2), 0.2),
        ((0.3, 0.01), (-0.4, 0.02), 1.0),
        ((-1, 0.01), (-2, 0.02), 0.02),
    ],
)
def test_both_have_to_be_shown_on_the_same_side(first: tuple[float, float], second: Any, p: float) -> None:
    one, other = (Comparison(mean, None, 50, p=value, mde=0.1) for mean, value in (first, second))
    assert (intersection_union(one, other).mean, intersection_union(one, other).p) == (first[0], p)
    untested = replace(other, p=None, mde=None, reason="too few")
    assert (intersection_union(one, untested).p, intersection_union(one, untested).reason) == (None, "too few")


class ReadsSome(FunctionScorer):
    """Counts a query's words among the first 64 of a passage, and says that it reads no more."""

    def facts(self) -> dict[str, object]:
        return {**super().facts(), "reads": 64}

    def reads_to(self, queries: Any, passages: Any) -> list[int]:
        return [[*re.finditer(r"\S+", text)][63].end() for text in passages]


def test_a_model_that_cuts_passages_off(made: World) -> None:
    def within_64(query: str, passages: list[str]) -> list[float]:
        return [float(sum(f"{word}" in text.split()[:64] for word in query.split())) for text in passages]

    found = scan(made.texts, model=ReadsSome(within_64, "short"), sample=117)
    read = contrast(found, "read")
    assert (read.verdict, read.first, read.last) == ("shown", "read", "cut off")
    assert read.of_first > 0.5 > 0.3 > read.of_last
    parts = {one.part: one.queries for one in found.retrievers[0].parts if one.by == "read"}
    # Sentences have 12 words: the fifth ends with the 60th.
    whole = int((made.items.queries["word"] <= 48).sum())
    assert parts == {"read": whole, "cut off": found.queries - whole}
    assert found.retrievers[0].read == pytest.approx(64 / (16 * 12))
    answer = found.findings[0]
    assert answer.key == "depth_read"
    assert answer.text.endswith(": 67% of words are beyond the 64 tokens that it reads.")
    (name, chips), *_ = found.page().verdicts.rows  # type: ignore[union-attr]
    assert (name, chips[0].text) == ("short", "falls")
    turned = replace(
        found.contrasts[0], found=found.contrasts[0].found.__class__(-0.4, None, 90, p=0.001, holm_p=0.001)
    )
    assert replace(found, contrasts=(turned,)).findings[0].key == "depth"


def test_the_lost_are_listed_with_what_bm25_finds(made: World) -> None:
    run = searched(made.texts.head(400), made)
    found = scan(made.texts, run=run, sample=117)
    bm25 = dict(found.sentences.select("query_id", "rank_bm25").iter_rows())  # type: ignore[union-attr]
    texts = dict(made.texts.iter_rows())
    ranks = []
    for one in found.lost:
        for sentence in one.sentences:
            assert sentence.bm25 == bm25[f"{one.doc_id}@{sentence.start}-{sentence.end}"]
            assert sentence.text == texts[one.doc_id][sentence.start : sentence.end]
        ranks.append(min((sentence.bm25 or 999) for sentence in one.sentences))
    assert ranks == sorted(ranks)
    assert len(ranks) > 20
    exposure = next(one.text for one in found.findings if one.key == "exposure")
    theirs = found.retrievers[1].exposure
    own = found.retrievers[0].exposure
    assert exposure.startswith(f"In no list of 100: {own.unseen} of 600 passages (BM25: {theirs.unseen}).")
    assert own.unseen > theirs.unseen + 150


def test_queries_without_a_list_are_said(made: World) -> None:
    whole = searched(made.texts, made)
    some = whole.table.filter(pl.col("query_id").is_in(whole.queries.head(500).implode()))
    found = scan(made.texts, run=Run.from_table(some, "planted"), sample=117)
    said = next(one for one in found.findings if one.key == "unlisted")
    assert (said.place, said.text) == (
        "warning",
        f"Queries of which planted has no list, which count as not found: {found.queries - 500} of {found.queries}.",
    )


def test_a_short_run_shortens_all_lists(made: World) -> None:
    whole = searched(made.texts, made)
    found = scan(made.texts, run=Run.from_table(whole.table.filter(pl.col("rank") <= 20), "planted"), sample=117)
    assert found.k == 20
    assert found.retrievers[0].exposure == found.retrievers[1].exposure
    assert found.retrievers[0].whole == found.retrievers[1].whole


def test_a_passage_that_overlaps_holds_the_sentence_too(tmp_path: Path, made: World) -> None:
    texts = made.texts.gather_every(30)
    cut = cut_passages(texts, tokens=72, overlap=24, out=tmp_path / "cut")
    found = scan(tmp_path / "cut" / "passages.jsonl", model="bm25", sample=30)
    assert cut.passages > 60
    assert found.same > 10
    assert found.retrievers[0].whole.at1.mean == 1.0
    # The documents are what is to be cut anew.
    assert all("DOCUMENTS" in command for command, _ in found.page().next if "passages" in command)


def test_a_collection_that_is_all_found(made: World) -> None:
    with pytest.raises(EvenrankError, match="`collection`: expected more than 10 passages, found 8"):
        scan(made.texts.head(8), model="bm25")


def test_the_sample_is_drawn_with_the_seed(made: World) -> None:
    one, same, other = (scan_queries(made.texts, sample=20, seed=seed)["doc_id"].unique().sort() for seed in (1, 1, 2))
    assert one.equals(same)
    assert not one.equals(other)


def test_the_edge_is_the_step_that_fits_best() -> None:
    rng = np.random.default_rng(1)
    word = np.sort(rng.integers(0, 300, 500))
    values = np.where(word < 120, 0.9, 0.1) + 0.05 * rng.standard_normal(500)
    assert edge_of(values, word) == (word[word < 120].max() + word[word >= 120].min()) // 2
    # A slope has none, nor has what rises.
    assert edge_of(0.9 - word / 600, word) is None
    assert edge_of(1 - values, word) is None


def test_another_search_by_the_command(made: World, tmp_path: Path, evenrank: Any) -> None:
    docs = tmp_path / "docs.tsv"
    made.texts.write_csv(docs, separator="\t", include_header=False)
    done = evenrank("scan", docs, "--save-queries", tmp_path / "known.tsv", "--sample", 60)
    assert (done.status, done.out.split(";")[0]) == (0, f"{tmp_path / 'known.tsv'}: 300 queries")
    done = evenrank("retrieve", docs, tmp_path / "known.tsv", "--k", 100, "--out", tmp_path / "found.run")
    assert done.status == 0
    own = evenrank("scan", docs, "--run", tmp_path / "found.run", "--sample", 60, "--json", "-")
    bm25 = evenrank("scan", docs, "--model", "bm25", "--sample", 60, "--json", "-")
    found, expected = (json.loads(one.out) for one in (own, bm25))
    assert found["retrievers"][0]["whole"] == found["retrievers"][1]["whole"] == expected["retrievers"][0]["whole"]
    assert len(expected["retrievers"]) == 1
    assert (found["documents"], found["passages"], found["queries"]) == (600, 60, 300)
    shown = evenrank("scan", docs, "--run", tmp_path / "found.run", "--sample", 60)
    assert max(map(len, shown.out.splitlines())) <= 80
    assert shown.out.count("\n") <= 25
    done = evenrank("scan", docs, "--run", tmp_path / "found.run", "--sample", 50)
    assert done.status == 2
    assert re.fullmatch(
        r"evenrank: run found: its query 'p\d+@\d+-\d+' is not one of the 250 that are asked: --sample,"
        r" --sentences and --seed have to be those that they were made with\n",
        done.err,
    )


def test_a_ranker_that_cannot_search_ranks_bm25s_first(made: World) -> None:
    def shortest(query: str, passages: list[str]) -> list[float]:
        return [float(passage.count(query.split()[0])) for passage in passages]

    found = scan(made.texts, model=shortest, sample=20, k=20)
    assert found.notes == (f"{found.name} cannot search by itself: it ranks BM25's first 20.",)
    assert found.retrievers[0].whole.at_k == found.retrievers[1].whole.at_k


def test_real_questions_are_placed_by_their_answers() -> None:
    texts = {f"p{row}": f"Start{row} of it. Middle{row} of it. End{row} of it." for row in range(40)}
    questions = {f"q{row}": f"end{row}" for row in range(40)}
    qrels = {f"q{row}": {f"p{row}": 1} for row in range(40)}
    spans = pl.DataFrame(
        {
            "query_id": list(questions),
            "doc_id": list(texts),
            "answer_start": [text.index("End") for text in texts.values()],
            "answer_end": [text.index("End") + 3 for text in texts.values()],
        }
    )
    found = scan(texts, model="bm25", questions=questions, qrels=qrels, answers=spans)
    assert [(one.part, one.queries) for one in found.retrievers[0].parts if one.by == "depth"] == [("last tenth", 40)]
    assert found.retrievers[0].whole.at1.mean == 1.0
    without = scan(texts, model="bm25", questions=questions, qrels=qrels)
    assert without.findings[0].key == "depth_unknown"
    assert without.findings[0].text.startswith("bm25 finds 100% of the passages that the questions should find")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "expected `model`, `index` or `run`"),
        ({"model": "bm25", "run": {"q": {"a": 1.0}}}, "`run`: not with `model`"),
        ({"model": "bm25", "k": 5}, "`k`: expected 10 or more, found 5"),
        (
            {"model": "bm25", "qrels": {"q": {"a": 1}}},
            "`qrels` needs `questions`",
        ),
        ({"model": "bm25", "answers": "a.json"}, "`answers` needs `questions`"),
        ({"model": "bm25", "against": "bm25"}, "`against`: BM25 stands beside in any case"),
        ({"run": {"q": {"a": 1.0}}}, "its query 'q' is not one of the"),
        ({"model": "bm25", "sentences": 0}, "`sentences`: expected"),
        ({"run": "nosuch.run"}, "nosuch.run: no such file"),
        ({"index": "nosuch"}, "nosuch: expected an index"),
        ({"model": "bm25", "index": "kept"}, "`index`: for the vectors of a model, and bm25 has none"),
    ],
)
def test_mistakes_are_one_line(given: dict[str, Any], message: str, made: World) -> None:
    with pytest.raises(EvenrankError) as error:
        scan(made.texts, sample=20, **given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_run_of_another_collection_is_refused(made: World) -> None:
    query = scan_queries(made.texts, sample=20)["query_id"][0]
    with pytest.raises(EvenrankError, match=r"run r: 1 document of its lists is not in the collection: 'elsewhere'"):
        scan(made.texts, run=Run.from_table({query: {"elsewhere": 1.0}}, "r"), sample=20)


def test_a_models_vectors_are_kept(tmp_path: Path, made: World) -> None:
    pytest.importorskip("sentence_transformers")
    from planted_encoders import planted_encoder

    words = {word: np.eye(8)[row % 8].tolist() for row, word in enumerate(" ".join(made.texts["text"]).split())}
    model = planted_encoder(tmp_path / "model", words)
    docs = tmp_path / "docs.tsv"
    made.texts.write_csv(docs, separator="\t", include_header=False)
    given: dict[str, Any] = {"model": model, "sample": 20, "index": tmp_path / "kept"}
    first = scan(docs, **given)
    stamp = (tmp_path / "kept" / "vectors.bin").stat().st_mtime_ns
    again = scan(docs, **given)
    assert (tmp_path / "kept" / "vectors.bin").stat().st_mtime_ns == stamp
    assert again.to_dict() == first.to_dict()
    index = scan(docs, index=tmp_path / "kept", sample=20)
    assert index.retrievers[0].whole == scan(docs, model=model, sample=20).retrievers[0].whole
    for other, message in (
        ({"collection": docs, "document_prompt": "passage: "}, "was made with another `document_prompt`"),
        ({"collection": made.texts}, "`index` with `model`: expected a collection in a file and a model in a folder"),
    ):
        with pytest.raises(EvenrankError, match=re.escape(message)):
            scan(**{**given, **other})
    made.texts.with_columns(text=pl.col("text").reverse()).write_csv(docs, separator="\t", include_header=False)
    with pytest.raises(EvenrankError, match="kept: is an index of another collection"):
        scan(docs, index=tmp_path / "kept", sample=20)
    with pytest.raises(EvenrankError, match="gives no vectors of passages that could be kept"):
        scan(docs, model=lambda _, passages: [0.0] * len(passages), index=tmp_path / "new", sample=20)


def test_a_run_that_is_called_like_bm25(made: World) -> None:
    whole = searched(made.texts, made, "bm25")
    found = scan(made.texts, run=whole, against=Run.from_table(whole.table, "bm25"), sample=117)
    assert [one.name for one in found.retrievers] == ["bm25′′", "bm25′", "bm25"]
    assert [one.name for one in found.contrasts if one.by == "depth"] == ["bm25′′", "bm25′"]


def test_public_names() -> None:
    assert evenrank.scan is scan
    assert AT == 10
