"""The position experiment's collections, as they are and rotated, and their first-stage lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from evenrank.datasets.squad_collection import squad_collection
from evenrank.io import EvenrankError, make_folder, read_queries, scan_collection
from evenrank.mitigation.rotation import rotate_collection
from evenrank.position.answers import load_answer_positions

from .checks import Options
from .corpora import Lists, Part, Source, built_in, draw, judged_queries
from .position_setup import BIASED, DEBIASED, ORIGINAL, OTHER, Settings, slug
from .real_text import squad_files, squad_text

ANSWERS = "irds:msmarco-qna/train"
"""The data set with the answers to MS MARCO's questions."""
_MSMARCO = {"train": "train/judged", "valid": "dev/small", "test": "dev/judged"}


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection as it is and rotated, with its parts.

    texts: by version. answers: by version, SQuAD files or names of data sets. parts: ``train``, ``valid``, ``test``.
    groups: a file of training lists, where the training queries have no run.
    """

    texts: Mapping[str, str]
    answers: Mapping[str, str]
    parts: Mapping[str, Part]
    documents: int
    groups: str | None = None


def prepare(
    settings: Settings, folder: Path, seed: int, name: str, say: Callable[[str], None] = lambda _: None
) -> Collection:
    """One collection of a seed; published data are the same for every seed, a built-in collection is its own."""
    if settings.planted is not None:
        return _planted(settings, folder, seed, name, say)
    home = make_folder(folder / slug(name))
    if settings.early is not None:
        return _real(settings, folder, home, say)
    return _published(settings, folder, home, name, say)


def _planted(settings: Settings, folder: Path, seed: int, name: str, say: Callable[[str], None]) -> Collection:
    """The built-in collection in a published one's place. Its entities are divided among the parts."""
    assert settings.planted is not None
    planted = settings.planted[name]
    home = folder / f"{slug(name)}-{seed}"
    source = built_in(home, replace(planted, seed=planted.seed + seed), clicks=False)
    _, qrels = judged_queries(source.queries, source.qrels)
    answers = str(home / "answers.json")
    texts, moved = rotated(source.collection, home, answers)
    say(f"first-stage lists: {home}")
    lists, parts = Lists(source.collection, home), {}
    for part, size in settings.sizes[name].items():
        table = draw(read_queries(home / f"queries.{part}.tsv"), {part: size}, seed)[part]
        parts[part] = lists.part(part, table, qrels, depth=settings.depth[name])
    return Collection(texts, moved, parts, planted.passages)


def _real(settings: Settings, folder: Path, home: Path, say: Callable[[str], None]) -> Collection:
    """SQuAD divided by article; it trains on the questions whose answer begins in the first part of the passage."""
    assert settings.early is not None
    text = squad_text(Options(squad=settings.squad), folder, home, seed=settings.split)
    splits = dict(text.splits)
    if settings.within_training:
        # Development sees no test article: the training articles are divided once more.
        splits = divided(text.splits["train"], text.articles, seed=settings.split)
    places = answer_places(text.answers)
    early = places.filter(pl.col("place") < settings.early)
    splits["train"] = splits["train"].join(early, on="query_id", how="semi", maintain_order="left")
    sizes = settings.sizes[OTHER]
    for part, size in sizes.items():
        if size:
            splits[part] = draw(splits[part], {part: min(size, splits[part].height)}, settings.split)[part]
    _, qrels = judged_queries(text.source.queries, text.source.qrels)
    texts, moved = rotated(text.source.collection, home, text.answers)
    say(f"first-stage lists: {home}")
    lists = Lists(text.source.collection, home)
    parts = {
        part: lists.part(f"{part}-lists", splits[part], qrels, depth=settings.depth[OTHER])
        for part in ("train", "valid", "test")
    }
    return Collection(texts, moved, parts, text.documents)


def divided(
    queries: pl.DataFrame, articles: pl.DataFrame, *, seed: int, shares: tuple[float, float] = (0.6, 0.15)
) -> dict[str, pl.DataFrame]:
    """Training questions divided by article, once more: training, validation and test."""
    known = queries.join(articles, on="query_id", how="left", maintain_order="left")
    names = known["article"].unique(maintain_order=True).sample(fraction=1.0, shuffle=True, seed=seed)
    first, second = round(shares[0] * len(names)), round(sum(shares) * len(names))
    parts = {"train": names[:first], "valid": names[first:second], "test": names[second:]}
    return {part: known.filter(pl.col("article").is_in(own.implode())).drop("article") for part, own in parts.items()}


def answer_places(answers: str) -> pl.DataFrame:
    """Where the first annotated answer of each question begins: ``query_id``, ``doc_id``, ``place`` (0 to 1)."""
    table = load_answer_positions(answers, annotated=True).table.sort("query_id", "token")
    first = table.unique("query_id", keep="first", maintain_order=True)
    return first.select("query_id", "doc_id", pl.col("position").alias("place"))


def _published(settings: Settings, folder: Path, home: Path, name: str, say: Callable[[str], None]) -> Collection:
    source, answers, tables = msmarco() if name == BIASED else squad_source(settings, folder, home)
    say(f"rotated collection and first-stage lists: {home}")
    # The answers of a data set stay in its own texts: for the rotated version, its passages are read from there.
    known = None if name == BIASED else answers
    texts, moved = rotated(source.collection, home, known)
    if name == BIASED:
        moved = {ORIGINAL: answers}
    lists = Lists(source.collection, home, k1=0.82, b=0.68)
    _, qrels = judged_queries(source.queries, source.qrels)
    depth = settings.depth[name]
    parts = {part: lists.part(part, tables[part], qrels, depth=depth) for part in ("valid", "test")}
    # No run of the training queries, which would fill 77 GB: negatives are drawn while BM25 searches.
    parts["train"] = lists.judged("train", tables["train"], qrels)
    groups = home / "train.parquet"
    lists.negatives(parts["train"], {groups: 0.0}, n=settings.drawn, depth=depth, seed=0)
    documents = sum(batch.height for batch in scan_collection(source.collection, unique=False))
    return Collection(texts, moved, parts, documents, str(groups))


def rotated(collection: str, home: Path, answers: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """The collection by version, rotated once into ``home``, and its answers."""
    out = home / "rotated.tsv"
    moved = home / "rotated.answers.json"
    if not out.is_file():
        rotate_collection(collection, out, answers=answers, answers_out=None if answers is None else moved)
    texts = {ORIGINAL: collection, DEBIASED: str(out)}
    return texts, {} if answers is None else {ORIGINAL: answers, DEBIASED: str(moved)}


def msmarco() -> tuple[Source, str, dict[str, pl.DataFrame]]:
    """MS MARCO: train; dev small validates; the other judged queries of dev test."""
    names = {part: f"irds:msmarco-passage/{name}" for part, name in _MSMARCO.items()}
    tables = {part: judged_queries([name], [name])[0] for part, name in names.items()}
    return msmarco_parts(names, tables)


def msmarco_parts(
    names: Mapping[str, str], tables: Mapping[str, pl.DataFrame]
) -> tuple[Source, str, dict[str, pl.DataFrame]]:
    """The parts by the names of their data sets: the test queries are those of dev that do not validate."""
    test = tables["test"].join(tables["valid"], on="query_id", how="anti", maintain_order="left")
    every = (names["train"], names["test"])
    return Source("irds:msmarco-passage", every, every, ""), ANSWERS, {**tables, "test": test}


def squad_source(settings: Settings, folder: Path, home: Path) -> tuple[Source, str, dict[str, pl.DataFrame]]:
    """SQuAD 2.0 with the official split: 5,000 training questions, drawn by article, validate."""
    files = squad_files(Options(squad=settings.squad), folder)
    absent = [file.name for file in files if not file.is_file()]
    if absent:
        raise EvenrankError(f"{folder}: put SQuAD 2.0 there first ({' and '.join(absent)}, from its site)")
    if not (home / "counts.json").is_file():
        squad_collection(files, validation=settings.sizes[OTHER]["valid"]).write(home)
    queries, qrels = (str(home / "queries.tsv"),), (str(home / "qrels.txt"),)
    tables = {part: read_queries(home / f"queries.{part}.tsv") for part in ("train", "valid", "test")}
    return Source(str(home / "collection.tsv"), queries, qrels, ""), str(home / "answers.json"), tables
