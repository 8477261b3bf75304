"""Do sentences say of a model what real questions do? The table of docs/guides/scan.md.

python docs/scan.py DATA MODEL measures on SQuAD's articles (DATA/squad2) with all-MiniLM-L6-v2 in the folder MODEL, cut
into passages of 400 words, into docs/scan.json, in some ten minutes on two cores, and makes the table; without
arguments it makes the table anew from the figures that are kept. A question's depth is that of its answer.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "guides" / "scan.md"
KEPT = Path(__file__).with_name("scan.json")
START, END = "<!-- table: python docs/scan.py DATA MODEL -->", "<!-- end of sentences and questions -->"
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


def page(text: str, rows: list[dict[str, Any]]) -> str:
    """The page with its table made anew."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{table(rows)}\n\n{END}{after}"


def main(arguments: list[str]) -> None:
    """Measures if DATA and MODEL are given, and makes the table."""
    if arguments:
        import evenrank

        data, model = arguments
        kept = {"evenrank": evenrank.__version__, "rows": measured(Path(data), model)}
        KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    rows = json.loads(KEPT.read_text(encoding="utf-8"))["rows"]
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
