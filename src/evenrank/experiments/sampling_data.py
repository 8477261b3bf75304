"""The sampling experiment's queries, lists and texts: built in, real text, or MS MARCO."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from evenrank.datasets.public import fetch
from evenrank.groups import GroupTable, Scoring, load_lexicon, score_texts
from evenrank.io import atomic_path, make_folder, read_queries, read_run, read_texts, scan_collection
from evenrank.measures import Evaluation, parse_measure

from .corpora import Lists, Part, all_texts, built_in, draw, judged_queries, msmarco, neutral_queries
from .encoder import make_encoder
from .real_text import grepbiasir_text, small_encoder, squad_text
from .work import LEXICON

if TYPE_CHECKING:
    from .sampling_setup import Settings

QUERY_SETS = ("QS1", "QS2")
LEXICON_SET, RUNS_SET, SENSITIVE_SET, ANNOTATED_SET = (
    "gender-representative", "runs-dev", "queries-fairness-sensitive", "queries-gender-annotated"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Data:
    """One seed's parts (``train``, ``valid``, ``dev``, ``QS1``, ``QS2``) and what the rankers start from."""

    collection: str
    parts: Mapping[str, Part]
    lists: Lists
    """Of the collection that training lists are drawn from."""
    encoder: str | None = None
    """In place of the published checkpoints."""
    lexicon: str = LEXICON
    """Of the published measures."""
    runs: tuple[str, ...] = ()
    """The authors' own runs for QS2."""


def prepare(settings: Settings, folder: Path, seed: int, say: Callable[[str], None]) -> Data:
    """The data of a seed; only a built-in collection is the seed's own."""
    if settings.planted is not None:
        return _built_in(settings, folder / f"data-{seed}", seed, say)
    home = make_folder(folder / "data")
    say(f"first-stage lists: {home}")
    return _real(settings, folder, home) if settings.options is not None else _published(settings, home)


def _built_in(settings: Settings, home: Path, seed: int, say: Callable[[str], None]) -> Data:
    assert settings.planted is not None
    source = built_in(home, replace(settings.planted, seed=seed), clicks=False)
    encoder = make_encoder(all_texts(source), home / "encoder", settings.small_bert, seed)
    say(f"first-stage lists: {home}")
    queries, qrels = judged_queries(source.queries, source.qrels)
    drawn = draw(queries, dict(settings.sizes), seed)
    lists = Lists(source.collection, home)
    parts = {
        name: lists.part(name, table, qrels, depth=settings.listed) for name, table in drawn.items() if name != "train"
    }
    parts["train"] = lists.judged("train", drawn["train"], qrels)
    # All built-in queries are neutral.
    parts["QS1"] = parts["dev"]
    leaning = most_leaning(parts["QS1"], source.collection, drawn["dev"].height // 4)
    sensitive = drawn["dev"].join(leaning, on="query_id", how="semi")
    parts["QS2"] = lists.part("QS2", sensitive, qrels, depth=settings.listed)
    return Data(source.collection, parts, lists, str(encoder))


def most_leaning(part: Part, collection: str, count: int) -> pl.DataFrame:
    """The queries whose first-stage lists lean most to one group (|RaB@10|): the built-in stand-in for the published
    set of queries that are sensitive to fairness. It depends on the first stage alone, never on a ranker."""
    run = read_run(part.run)
    texts = read_texts(collection, run.table["doc_id"].unique())
    scoring = Scoring(load_lexicon(LEXICON))
    scores = GroupTable.of(score_texts(texts, scoring), scoring.describe())
    lean = Evaluation(run, scores).values(parse_measure("RaB@10"))
    table = pl.DataFrame({"query_id": run.queries, "lean": abs(lean)})
    return table.sort("lean", descending=True, maintain_order=True).head(count).select("query_id")


def _real(settings: Settings, folder: Path, home: Path) -> Data:
    """SQuAD's questions without a group word, divided by article; in QS2's place the queries of Grep-BiasIR.

    The division is another for development seeds, and the same for all seeds of a run.
    """
    assert settings.options is not None
    split = min(settings.seeds)
    squad = squad_text(settings.options, folder, home / f"squad-{split}", seed=split)
    grep = grepbiasir_text(settings.options, home / "grepbiasir")
    theirs = home / "grepbiasir.tsv"
    whole = home / f"squad-{split}-grepbiasir.tsv"
    own = pl.concat(list(scan_collection(grep.source.collection)))
    own = own.select(_renamed("doc_id"), "text")
    _write_texts(own, theirs)
    _write_texts(pl.concat([*scan_collection(squad.source.collection), own]), whole)
    _, qrels = judged_queries(squad.source.queries, squad.source.qrels)
    lists = Lists(squad.source.collection, home / f"lists-{split}")
    scoring = Scoring(load_lexicon(LEXICON))
    parts = {}
    for part, name in (("train", "train"), ("valid", "valid"), ("dev", "test")):
        questions = draw(_neutral(squad.splits[name], scoring), {part: settings.sizes[part]}, split)[part]
        parts[part] = (
            lists.judged(part, questions, qrels)
            if part == "train"
            else lists.part(part, questions, qrels, depth=settings.listed)
        )
    parts["QS1"] = parts["dev"]
    renamed = grep.qrels.with_columns(_renamed("query_id"), _renamed("doc_id"))
    asked = grep.queries.select(_renamed("query_id"), "text")
    parts["QS2"] = Lists(str(theirs), home / f"lists-{split}").part("QS2", asked, renamed, depth=settings.listed)
    return Data(str(whole), parts, lists, small_encoder(settings.options))


def _renamed(column: str) -> pl.Expr:
    """Ids that no id of SQuAD equals."""
    return pl.format("grep-{}", pl.col(column)).alias(column)


def _neutral(queries: pl.DataFrame, scoring: Scoring) -> pl.DataFrame:
    found = score_texts(queries.rename({"query_id": "doc_id"}), scoring)
    words = found.select(pl.sum_horizontal(pl.col(f"count_{group}") for group in scoring.lexicon.groups)).to_series()
    return queries.filter(words == 0)


def _write_texts(texts: pl.DataFrame, file: Path) -> None:
    with atomic_path(file) as part:
        flat = texts.select("doc_id", pl.col("text").str.replace_all(r"[\t\r\n]", " "))
        flat.write_csv(part, include_header=False, separator="\t", quote_style="never")


def _published(settings: Settings, home: Path) -> Data:
    """MS MARCO: train, dev small, the 1,765 neutral annotated queries and the 215 fairness-sensitive ones. Validation
    is on dev/2, which shares no query with dev small; queries of QS1 and QS2 are left out of it."""
    source = msmarco(home)
    (sensitive,) = fetch(SENSITIVE_SET, home)
    (lexicon,) = fetch(LEXICON_SET, home)
    runs = tuple(str(file) for file in fetch(RUNS_SET, home / "public-runs"))
    sets = {"QS1": neutral_queries(source.annotated), "QS2": read_queries(sensitive)}
    names = {"train": "train/judged", "valid": "dev/2", "dev": "dev/small"}
    lists = Lists("irds:msmarco-passage", home, k1=0.82, b=0.68)
    parts = published_parts(
        {part: f"irds:msmarco-passage/{name}" for part, name in names.items()},
        "irds:msmarco-passage/dev",
        sets,
        lists,
        settings,
    )
    return Data("irds:msmarco-passage", parts, lists, None, str(lexicon), runs)


def published_parts(
    names: Mapping[str, str], qrels_of_sets: str, sets: Mapping[str, pl.DataFrame], lists: Lists, settings: Settings
) -> dict[str, Part]:
    """The parts by the names of their queries and judgements, and the query sets with judgements of their own.

    Training queries get no lists: their negatives are drawn while the first stage searches.
    """
    parts = {}
    tested = pl.concat([table.select("query_id") for table in sets.values()])
    for part, name in names.items():
        queries, qrels = judged_queries([name], [name])
        if part == "valid":
            queries = queries.join(tested, on="query_id", how="anti", maintain_order="left")
        if part == "train" and settings.sizes["train"]:
            queries = draw(queries, {"train": settings.sizes["train"]}, 0)["train"]
        if part == "train":
            parts[part] = lists.judged(part, queries, qrels)
        else:
            parts[part] = lists.part(part, queries, qrels, depth=settings.listed)
    _, qrels = judged_queries([names["dev"]], [qrels_of_sets])
    for part, queries in sets.items():
        parts[part] = lists.part(part, queries, qrels, depth=settings.listed)
    return parts
