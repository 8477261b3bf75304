"""The IBBR experiment's queries and lists: the built-in collection, real text, and MS MARCO."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evenrank.datasets.collection_folder import write_collection
from evenrank.datasets.public import fetch
from evenrank.groups import Scoring, Tokens, load_lexicon, score_texts
from evenrank.io import make_folder, read_qrels, read_queries, scan_collection

from .corpora import Lists, Part, Source, all_texts, built_in, draw, judged_queries, msmarco, neutral_queries
from .encoder import make_encoder
from .real_text import grepbiasir_text, squad_text
from .work import LEXICON

if TYPE_CHECKING:
    from .ibbr_setup import Settings

LEXICON_SET = "gender-representative"
"""The published lexicon, read by whitespace."""
MSMARCO_BM25 = {"k1": 0.82, "b": 0.68}
FAIR = ("train", "dev", "test")
"""The parts of the fairness set."""


@dataclass(frozen=True, slots=True)
class Data:
    """One seed's parts, and the encoder of each published model.

    clicks: the test queries with their clicks for judgements, where ``parts`` judges them by relevance.
    """

    collection: str
    parts: Mapping[str, Part]
    encoders: Mapping[str, str]
    clicks: Part | None = None
    lexicon: str = LEXICON
    tokens: Tokens = "word"
    """Of the term and of the measures."""
    first_stage: Mapping[str, float] = field(default_factory=dict)
    """Settings of BM25."""


def prepare(settings: Settings, folder: Path, seed: int, say: Callable[[str], None]) -> Data:
    """The parts of a seed: published data are the same for all seeds, a built-in collection is generated for each, and
    real text is divided anew."""
    if settings.planted is not None:
        home = folder / f"data-{seed}"
        source = built_in(home, replace(settings.planted, seed=seed), clicks=True)
        made = make_encoder(all_texts(source), home / "encoder", settings.small_bert, seed)
        found = planted(source, settings, home, seed, {name: str(made) for name in settings.encoders})
    elif settings.options is not None:
        home = folder / f"data-{seed}"
        found = real(settings, folder, home, seed)
    else:
        home = make_folder(folder / "data")
        source = msmarco(home)
        (lexicon,) = fetch(LEXICON_SET, home)
        parts = split(source, settings, home, 0)
        found = Data(
            source.collection,
            parts,
            dict(settings.encoders),
            lexicon=str(lexicon),
            tokens="whitespace",
            first_stage=MSMARCO_BM25,
        )
    say(f"first-stage lists: {home}")
    return found


def planted(source: Source, settings: Settings, home: Path, seed: int, encoders: Mapping[str, str]) -> Data:
    """The built-in collection: training queries with their skewed clicks; the others, about other entities, with every
    relevant passage, and the test queries with their unskewed clicks too."""
    sizes, lists = settings.sizes, Lists(source.collection, home)
    clicks, relevant = (read_qrels(home / name) for name in ("clicks.txt", "qrels.txt"))
    pools = {name: read_queries(home / f"queries.{name}.tsv") for name in ("train", "valid", "test")}
    drawn = draw(pools["train"], {name: sizes[name] for name in ("dpr", "train")}, seed)
    drawn |= draw(pools["valid"], {name: sizes[name] for name in ("dpr_dev", "dev")}, seed)
    drawn |= draw(pools["test"], {"test": sizes["test"]}, seed)
    parts = {
        name: lists.part(
            name,
            table,
            clicks if name in ("dpr", "train") else relevant,
            depth=settings.depth,
            listed=settings.listed,
        )
        for name, table in drawn.items()
    }
    return Data(source.collection, parts, encoders, _clicked(lists, parts["test"], drawn["test"], clicks))


def split(source: Source, settings: Settings, home: Path, seed: int) -> dict[str, Part]:
    """Draws the five parts and writes their lists. The fairness set is drawn from the judged neutral queries."""
    sizes = settings.sizes
    queries, qrels = judged_queries(source.queries, source.qrels)
    neutral = queries.join(neutral_queries(source.annotated).select("query_id"), on="query_id", how="semi")
    fair = draw(neutral, {name: sizes[name] for name in FAIR}, seed)
    others = queries
    for table in fair.values():
        others = others.join(table, on="query_id", how="anti", maintain_order="left")
    drawn = draw(others, {name: sizes[name] for name in ("dpr", "dpr_dev")}, seed) | fair
    lists = Lists(source.collection, home, **MSMARCO_BM25)
    return {
        name: lists.part(name, table, qrels, depth=settings.depth, listed=settings.listed)
        for name, table in drawn.items()
    }


def real(settings: Settings, folder: Path, home: Path, seed: int) -> Data:
    """SQuAD's questions for the ranker itself, Grep-BiasIR's neutral queries for the fairness set.

    A training query of the fairness set has one click, on the relevant document in male or female wording, male in
    ``settings.click_male_share``; development and test queries are judged by relevance.
    """
    assert settings.options is not None
    squad = squad_text(settings.options, folder, folder / "squad", seed=0)
    grep = grepbiasir_text(settings.options, folder / "grepbiasir")
    home = make_folder(home)
    collection = pl.concat(
        pl.concat(list(scan_collection(name))).select(*_marked(mark, "doc_id"), "text")
        for mark, name in (("s", squad.source.collection), ("g", grep.source.collection))
    )
    asked = squad.splits["train"].select(*_marked("s", "query_id"), "text")
    if not (home / "collection.tsv").is_file():
        write_collection(home, collection, asked.with_columns(split=pl.lit(None, dtype=pl.String)))
    judged = read_qrels(squad.source.qrels[0]).with_columns(_marked("s", "query_id", "doc_id"))
    fair = grep.queries.with_columns(_marked("g", "query_id"))
    relevant = grep.qrels.with_columns(_marked("g", "query_id", "doc_id"))
    relevant = relevant.filter(pl.col("relevance") >= 1)
    sizes, lists = settings.sizes, Lists(str(home / "collection.tsv"), home)
    drawn = draw(asked, {name: sizes[name] for name in ("dpr", "dpr_dev")}, 0)
    drawn |= draw(fair, {name: sizes[name] for name in FAIR}, seed)
    clicks = skewed_clicks(drawn["train"], relevant, collection, settings.click_male_share, seed)
    judgements = {"dpr": judged, "dpr_dev": judged, "train": clicks, "dev": relevant, "test": relevant}
    parts = {
        name: lists.part(name, table, judgements[name], depth=settings.depth, listed=settings.listed)
        for name, table in drawn.items()
    }
    even = skewed_clicks(drawn["test"], relevant, collection, 0.5, seed)
    return Data(
        str(home / "collection.tsv"),
        parts,
        dict(settings.encoders),
        _clicked(lists, parts["test"], drawn["test"], even),
    )


def skewed_clicks(
    queries: pl.DataFrame, relevant: pl.DataFrame, texts: pl.DataFrame, male_share: float, seed: int
) -> pl.DataFrame:
    """One click a query, among its relevant documents: a male one for ``male_share`` of the queries, a female one for
    the others; queries without both wordings are left out."""
    scoring = Scoring(load_lexicon(LEXICON), magnitudes=("tf_words",))
    found = relevant.join(queries.select("query_id"), on="query_id", how="semi", maintain_order="left")
    scores = score_texts(texts.join(found.select("doc_id").unique(), on="doc_id", how="semi"), scoring)
    side = scores.select("doc_id", side=(pl.col("count_m").cast(pl.Int64) - pl.col("count_f").cast(pl.Int64)).sign())
    found = found.join(side, on="doc_id", how="left", maintain_order="left")
    both = found.filter(pl.col("side") != 0).group_by("query_id").agg(pl.col("side").n_unique())
    able = queries.join(both.filter(pl.col("side") == 2), on="query_id", how="semi", maintain_order="left")["query_id"]
    order = np.random.default_rng([seed, 11]).permutation(len(able))
    male = set(able.gather(order[: round(len(able) * male_share)]).to_list())
    wanted = pl.DataFrame({"query_id": able, "side": [1 if query in male else -1 for query in able]})
    wanted = wanted.with_columns(pl.col("side").cast(found.schema["side"]))
    rows = wanted.join(found, on=["query_id", "side"], how="inner", maintain_order="left")
    return rows.unique("query_id", keep="first", maintain_order=True).select("query_id", "doc_id", "relevance")


def _clicked(lists: Lists, part: Part, queries: pl.DataFrame, clicks: pl.DataFrame) -> Part:
    """The same queries and lists, judged by clicks."""
    return replace(lists.judged("test-clicks", queries, clicks), run=part.run)


def _marked(mark: str, *names: str) -> list[pl.Expr]:
    """Ids of one of two collections that are to be one."""
    return [(pl.lit(mark) + pl.col(name)).alias(name) for name in names]
