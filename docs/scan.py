"""The tables of docs/guides/scan.md: what sentences and real questions find, and what scans say of public reports.

python docs/scan.py DATA MODEL measures on SQuAD's articles (DATA/squad2) with all-MiniLM-L6-v2 in the folder MODEL, cut
into passages of 400 words, in some ten minutes on two cores. A question's depth is that of its answer. python
docs/scan.py DATA rebuilds the indexes of the reports of SQuAD's paragraphs, beside retrieval-fairness and corpus-canary
where they are installed, in a minute. Both write docs/scan.json, as python -m benchmarks.planted --write does, and make
the tables; without arguments they are made anew from the figures that are kept.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "guides" / "scan.md"
KEPT = Path(__file__).with_name("scan.json")
START, END = "<!-- table: python docs/scan.py DATA MODEL -->", "<!-- end of sentences and questions -->"
START_REPORTS, END_REPORTS = "<!-- table: python docs/scan.py DATA -->", "<!-- end of reports -->"
START_PLANTED = "<!-- table: python -m benchmarks.planted --encoder minilm --collection squad --seeds 100 --write -->"
END_PLANTED = "<!-- end of planted losses -->"
TOKENS, FIFTHS, RANK = 400, 5, 3
COLUMNS = ("sentences", "BM25", "rare words", "real questions")


def measured(data: Path, model: str) -> list[dict[str, Any]]:
    """A row for each fifth of the passages: the share that each kind of query finds."""
    import polars as pl

    import evenrank

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        whole = folder / "whole.json"
        whole.write_text(json.dumps({"version": "v2.0", "data": joined(data)}), encoding="utf-8")
        evenrank.write_squad_collection([whole], out=folder / "articles")
        articles, cut = folder / "articles", folder / "cut"
        files = {"qrels": articles / "qrels.txt", "answers": articles / "answers.json"}
        evenrank.cut_passages(articles / "collection.tsv", tokens=TOKENS, overlap=0, out=cut, **files)
        result = evenrank.scan(cut / "passages.jsonl", model=model, index=folder / "vectors")
        run = evenrank.retrieve(folder / "vectors", articles / "queries.tsv", k=100, quiet=True)
        spans = evenrank.files.squad.load_squad(cut / "answers.json").answers().unique("query_id", maintain_order=True)
        texts = pl.read_ndjson(cut / "passages.jsonl").select("doc_id", length=pl.col("text").str.len_chars())
    asked = spans.join(texts, on="doc_id").select("query_id", "doc_id", place=pl.col("answer_start") / pl.col("length"))
    ranked = asked.join(run.table.select("query_id", "doc_id", "rank"), on=["query_id", "doc_id"], how="left")
    curves = {"real questions": by_fifth(ranked, "rank")}
    name = f"rank_{result.name}"
    for heading, whole_sentence, column in (
        ("sentences", True, name),
        ("BM25", True, "rank_bm25"),
        ("rare words", False, name),
    ):
        own = result.asked.filter(pl.col("whole") == whole_sentence).drop_nulls("place")
        curves[heading] = by_fifth(own, column)
    return [{"fifth": row + 1, **{name: curves[name][row] for name in COLUMNS}} for row in range(FIFTHS)]


def joined(data: Path) -> list[dict[str, Any]]:
    """The paragraphs of each article as one, with its questions."""
    articles = []
    for name in ("answered", "unanswered"):
        for article in json.loads((data / "squad2" / f"{name}.json").read_text(encoding="utf-8"))["data"]:
            text, questions = "", []
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    for answer in question["answers"]:
                        answer["answer_start"] += len(text)
                    questions.append(question)
                text += paragraph["context"] + " "
            articles.append({"title": article["title"], "paragraphs": [{"context": text, "qas": questions}]})
    return articles


def by_fifth(queries: Any, column: str) -> list[float]:
    """The share of queries whose passage is found, by fifths of ``place``."""
    import polars as pl

    fifth = (pl.col("place") * FIFTHS).floor().clip(0, FIFTHS - 1)
    found = queries.group_by(fifth.alias("fifth")).agg(share=(pl.col(column).fill_null(101) <= RANK).mean())
    return found.sort("fifth")["share"].to_list()


def table(rows: list[dict[str, Any]]) -> str:
    """The table in Markdown."""
    lines = [f"| fifth of the passage | {' | '.join(COLUMNS)} |", "| --- |" + " --: |" * len(COLUMNS)]
    lines += [f"| {row['fifth']} | {' | '.join(f'{row[name]:.0%}' for name in COLUMNS)} |" for row in rows]
    return "\n".join(lines)


def reports() -> list[dict[str, str]]:
    """A row for each public report, and one for the index as it should be: what each program says first."""
    import numpy as np

    sys.path.insert(0, str(Path(__file__).parents[1]))
    from benchmarks import planted

    collection = planted.squad()
    sound = planted.sound(collection, planted.Hashed(collection))
    rows = []
    for name, spoil in {"as it should be": None, **planted.PUBLIC}.items():
        engine = sound if spoil is None else spoil(sound, np.random.default_rng(0))
        with tempfile.TemporaryDirectory() as folder:
            result = engine.scan(Path(folder), 0)
        # What stands in the store: of a graph that cannot be walked to its end all documents.
        stored = engine.collection["doc_id"].to_list() if "lucene" in name else engine.ids
        lists = [ids[:10] for ids in engine.lists(result.asked["text"].to_list())]
        named = "; ".join(f"{loss.cause} {loss.share:.0%}: {loss.count:,}" for loss in result.named)
        rows.append({"report": name, "evenrank scan": named or "nothing is lost", **others(stored, lists)})
    return rows


def others(stored: list[str], lists: list[list[str]]) -> dict[str, str]:
    """What retrieval-fairness and corpus-canary say of the same store and lists."""
    from retrieval_fairness import metrics

    counts = metrics.retrieval_frequencies(lists, stored)
    dark, five, gini = metrics.dark_matter(counts), metrics.hub_capture(counts, 5), metrics.gini(counts)
    return {
        "retrieval-fairness": f"{dark:.0%} never retrieved, five hold {five:.0%}, Gini {gini:.2f}",
        "corpus-canary": f"{dead_weight(stored, lists)} of {len(stored):,} dead weight",
    }


def dead_weight(stored: list[str], lists: list[list[str]]) -> int:
    """How many chunks of the store corpus-canary calls dead weight, as no trace has them."""
    import datetime

    from corpus_canary.detectors.obsolescence import ObsolescenceDetector
    from corpus_canary.schemas.corpus import Chunk, ChunkMetadata

    now = datetime.datetime.now(datetime.UTC)

    class Store:
        def iter_chunks(self) -> Iterator[Any]:
            for doc_id in stored:
                yield Chunk(chunk_id=doc_id, text="", metadata=ChunkMetadata(indexed_at=now))

    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as log:
        for number, ids in enumerate(lists):
            chunks = [{"chunk_id": doc_id, "score": 1, "text": ""} for doc_id in ids]
            trace = {"trace_id": f"{number}", "query": "", "retrieved_chunks": chunks, "answer": ""}
            log.write(json.dumps({**trace, "timestamp": now.isoformat()}) + "\n")
        log.flush()
        issues = ObsolescenceDetector(trace_log=log.name).run(Store())
    return sum(issue.reason == "dead_weight" for issue in issues)


def table_of_reports(rows: list[dict[str, str]]) -> str:
    """The table in Markdown."""
    lines = [f"| {' | '.join(rows[0])} |", "| --- " * len(rows[0]) + "|"]
    lines += [f"| {' | '.join(row.values())} |" for row in rows]
    return "\n".join(lines)


def table_of_planted(rows: list[dict[str, Any]]) -> str:
    """The table in Markdown."""
    lines = ["| planted | named first | its documents that are right |", "| --- | --: | --: |"]
    for row in rows:
        right = "" if row["documents"] is None else f"{row['documents']:.1%}"
        lines.append(f"| {row['planted']} | {row['first']} of {row['scans']} | {right} |")
    return "\n".join(lines)


def page(text: str, kept: dict[str, Any]) -> str:
    """The page with its tables made anew."""
    for start, end, made in (
        (START, END, table(kept["rows"])),
        (START_REPORTS, END_REPORTS, table_of_reports(kept["reports"])),
        (START_PLANTED, END_PLANTED, table_of_planted(kept["planted"])),
    ):
        before, rest = text.split(start)
        text = f"{before}{start}\n\n{made}\n\n{end}{rest.split(end)[1]}"
    return text


def main(arguments: list[str]) -> None:
    """Measures if DATA, or DATA and MODEL, are given, and makes the tables."""
    import evenrank

    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    if len(arguments) == 2:
        kept |= {"evenrank": evenrank.__version__, "rows": measured(Path(arguments[0]), arguments[1])}
    elif arguments:
        kept |= {"evenrank": evenrank.__version__, "reports": reports()}
    if arguments:
        KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), kept), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
