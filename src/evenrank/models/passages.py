"""Long documents cut into passages at the ends of sentences, with their judgements and answers.

A model reads so many tokens of a text, and what stands behind them is never found. Passages of that length are read
whole, and a document is then as good as its best passage (:func:`evenrank.files.passages.best_passages`).

>>> from evenrank.models.passages import passage_spans
>>> text = "Tea is old. It came from China. We like it. Do you like it too?"
>>> [text[start:end] for start, end in passage_spans(text, 8)]
['Tea is old. It came from China.', 'We like it. Do you like it too?']
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl

from evenrank import options as opt
from evenrank._version import __version__
from evenrank.files import (
    EvenrankError,
    InputError,
    Provenance,
    as_batches,
    as_qrels,
    atomic_path,
    check_apart,
    check_outputs,
    make_folder,
)
from evenrank.files.arguments import checked
from evenrank.files.convert import first_of, is_path
from evenrank.files.errors import arg, quoted, require_neural
from evenrank.files.progress import progress
from evenrank.files.sentences import Span, sentence_starts, word_places
from evenrank.files.squad import (
    SquadAnswer,
    SquadArticle,
    SquadData,
    SquadParagraph,
    load_squad,
    paragraphs,
    question_id,
)
from evenrank.files.streams import TableWriter
from evenrank.files.wording import are, counted

if TYPE_CHECKING:
    from evenrank.files.convert import QrelsLike

    from .load import RankerLike
    from .scorers import Scorer

__all__ = ["CutCollection", "cut_passages", "passage_spans"]

Counter = Callable[[list[str]], list[int]]
"""The lengths of texts."""
WORDS = 200
"""The words of a passage, if nothing is said."""
_QUERY = 64
"""Tokens left for the query, of a model that reads it with the passage."""
_LONGEST = 1 << 16
"""The longest text, in words, with which is tried how far a model reads."""
PASSAGES, DOCUMENTS, QRELS, ANSWERS, MANIFEST = (
    "passages.jsonl",
    "documents.csv",
    "qrels.txt",
    "answers.json",
    "manifest.json",
)


# --- where texts are cut ----------------------------------------------------------------------------------------------


def count_words(texts: list[str]) -> list[int]:
    """The numbers of words, which white space separates."""
    return [len(text.split()) for text in texts]


def passage_spans(text: str, tokens: int, overlap: int = 0, count: Counter = count_words) -> list[Span]:
    """The passages of a text: the first character of each and the one behind its last.

    A text of at most ``tokens`` (as ``count`` counts them) is one passage, with the white space around it. Of another
    each passage has as many whole sentences as fit. A sentence that does not fit alone is cut between words, and a word
    that does not, into halves. The next passage begins behind it, or with those of its last sentences whose length
    together is nearest to ``overlap``, if another sentence fits behind them; within a sentence that was cut, with as
    many of the last words as are at most ``overlap``.

    >>> text = "Tea is old. It came from China. We like it. Do you?"
    >>> [text[start:end] for start, end in passage_spans(text, 8)]
    ['Tea is old. It came from China.', 'We like it. Do you?']
    >>> [text[start:end] for start, end in passage_spans(text, 8, 3)]
    ['Tea is old. It came from China.', 'It came from China. We like it.', 'We like it. Do you?']
    >>> text = "one two three four five six"
    >>> [text[start:end] for start, end in passage_spans(text, 4, 2)]
    ['one two three four', 'three four five six']
    """
    limit = tokens
    while True:
        spans = _cut(text, limit, min(overlap, limit - 1), tokens, count)
        excess = max(count([text[start:end] for start, end in spans])) - tokens
        # Words together may be more tokens than one by one.
        if excess <= 0 or limit == 1:
            return spans
        limit = max(1, limit - excess)


def _cut(text: str, limit: int, overlap: int, tokens: int, count: Counter) -> list[Span]:
    """The passages of at most ``limit``, as the sum of their words; the whole text, if that is at most ``tokens``."""
    if count([text])[0] <= tokens:
        return [(0, len(text))]
    places = word_places(text)
    first = sentence_starts([text[start:end] for start, end in places])
    sizes = _sizes(text, places, count)
    parts = [_halves(text, place, size, limit, count) for place, size in zip(places, sizes, strict=True)]
    words = [part for of_word in parts for part in of_word]
    total = [0, *accumulate(_sizes(text, words, count))]
    at = [0, *accumulate(map(len, parts))]
    begins = [at[number] for number in first]
    ends = [*begins[1:], len(words)]
    spans: list[Span] = []
    begin = end = 0
    while end < len(words):
        reach = bisect_right(total, total[begin] + limit) - 1
        last = bisect_right(ends, reach) - 1
        # A word that is too long even as one character is a passage of its own.
        end = ends[last] if last >= 0 and ends[last] > end else max(reach, end + 1)
        spans.append((words[begin][0], words[end - 1][1]))
        if end < len(words):
            begin = _next(begin, end, total, begins, ends, limit, overlap)
    return spans


def _next(begin: int, end: int, total: list[int], begins: list[int], ends: list[int], limit: int, overlap: int) -> int:
    """The word with which the passage behind that of the words ``begin`` to ``end`` begins."""
    place = bisect_left(ends, end)
    if ends[place] != end:
        # Within a sentence.
        return bisect_left(total, max(total[end] - overlap, total[end + 1] - limit), begin + 1, end)
    following = total[ends[place + 1]]
    sentences = begins[bisect_right(begins, begin) : place + 2]
    fitting = [word for word in sentences if following - total[word] <= limit]
    return min(fitting, key=lambda word: (abs(total[end] - total[word] - overlap), -word), default=end)


def _sizes(text: str, places: list[Span], count: Counter) -> list[int]:
    return count([text[start:end] for start, end in places])


def _halves(text: str, place: Span, size: int, limit: int, count: Counter) -> list[Span]:
    """A word, or its parts if it is longer than the limit."""
    start, end = place
    if size <= limit or end - start == 1:
        return [place]
    middle = (start + end) // 2
    parts = [(start, middle), (middle, end)]
    return [halve for part in parts for halve in _halves(text, part, count([text[slice(*part)]])[0], limit, count)]


class _Pieces:
    """Counts a model's tokens; those of words once."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self._known: dict[str, int] = {}

    def learn(self, texts: list[str]) -> None:
        """Counts the words of a batch at once, which is much faster than text by text."""
        if len(self._known) > _KEPT:
            self._known = {}
        words = dict.fromkeys(word for text in texts for word in text.split())
        self([word for word in words if word not in self._known], keep=True)

    def __call__(self, texts: list[str], *, keep: bool = False) -> list[int]:
        missing = list(dict.fromkeys(text for text in texts if text not in self._known))
        counts = dict(zip(missing, self.scorer.tokens(missing) or [], strict=True)) if missing else {}
        if keep:
            self._known |= counts
        return [self._known[text] if text in self._known else counts[text] for text in texts]


_KEPT = 1 << 21


# --- the command ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CutCollection:
    """Result of cutting a collection into passages.

    ``documents``, of which ``cut`` became several passages; ``passages``, each of at most ``tokens`` of a ``unit``
    (``word``, or ``token`` of ``model``), with about ``overlap`` of the one before. ``judgements``: the rows of
    ``qrels.txt``; ``answers``: those of the SQuAD file, of which ``lost`` are in no passage as a whole, and
    ``lost_answers`` the question and the document of each; None without. ``notes``: what else is to be said.
    """

    folder: str
    documents: int
    cut: int
    passages: int
    tokens: int
    overlap: int
    unit: Literal["word", "token"]
    model: str | None = None
    judgements: int | None = None
    answers: int | None = None
    lost: int | None = None
    lost_answers: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """Summary of the cut, in one sentence."""
        size = counted(self.tokens, self.unit) + (f" of {self.model}" if self.model else "")
        counts = f"{counted(self.documents, 'document')} {are(self.documents)} now {counted(self.passages, 'passage')}"
        text = f"{counts} of at most {size}"
        if self.answers is None or self.lost is None:
            return f"{text}."
        answers = f"{self.lost:,} of {counted(self.answers, 'answer')} {are(self.lost)}"
        return f"{text}; {answers} in no passage as a whole."


@checked
def cut_passages(
    collection: opt.TheCollection,
    *,
    out: Annotated[opt.File, opt.Option("The folder to write.", metavar="FOLDER", panel="Output")],
    tokens: Annotated[
        int | None,
        opt.Option(
            "Words of a passage, at most; with --model its word pieces. Default: 200, or what the model reads.",
            range=opt.COUNT,
        ),
    ] = None,
    overlap: Annotated[
        int | None,
        opt.Option(
            "About how many of the passage before are repeated, in whole sentences. Default: a fifth.", range=opt.FROM_0
        ),
    ] = None,
    model: Annotated[
        RankerLike | None,
        opt.Option("Count as this model does (a folder or a hub name).", metavar="MODEL", typed=str, panel="Model"),
    ] = None,
    qrels: Annotated[
        QrelsLike | None, opt.Option("Judgements of the documents, for those of the passages.", reads=True)
    ] = None,
    answers: Annotated[
        opt.File | None,
        opt.Option("Answers in these documents; they move along.", metavar="SQUAD.json", reads=True),
    ] = None,
    quiet: bool = True,
) -> CutCollection:
    """Cut long documents into passages that a model reads whole. They end with a sentence, and a table says which
    document each is of.

    ``collection``: a path, ``{id: text}``, a frame or records; one on disk is read in one pass, batch by batch. Each
    document becomes passages of at most ``tokens`` words (white space separates them), or word pieces of ``model``,
    without the special ones that it adds. Without ``tokens``: 200 words, or as many word pieces as the model reads of a
    passage beside its special ones and its prompt (a model that reads query and passage together: beside a query of
    64, too). A passage has whole sentences; a sentence that does not fit alone is cut between words, and a word that
    does not, into halves. Each begins with whole sentences of the one before, about ``overlap`` together (by default a
    fifth of ``tokens``), within a sentence that was cut with its last words. A document that fits stays as it is, byte
    for byte, and every passage is a verbatim part of its document's text.

    The folder ``out`` holds

    - ``passages.jsonl``: a collection, with the ids ``DOC#1``, ``DOC#2``, … (also of a document that fits: so no two
      can be the same), ``doc_id`` and ``text``.
    - ``documents.csv``: ``passage_id``, ``doc_id``, ``start``, ``end``: the passage is text[start:end] of its document,
      in characters. It is what ``passages`` means in :func:`evenrank.rerank`, :func:`evenrank.retrieve` and
      :func:`evenrank.best_passages`, which take the best passage of a document back to it.
    - ``qrels.txt`` with ``qrels``: every passage has the grade of its document. That says too much of a long document,
      most of whose passages may be about something else; with ``answers``, a passage of a relevant document keeps the
      grade only if it holds one of the query's answers as a whole, and has 0 otherwise.
    - ``answers.json`` with ``answers`` (in SQuAD's form, with documents of the collection as paragraphs): each passage
      of these documents with the questions that it answers as a whole, and where. Two passages may hold the same
      answer. Questions without an answer are left out.
    - ``manifest.json``: the settings, the counts, the answers that no passage holds, and how it was made.

    >>> import evenrank, tempfile
    >>> tea = {"tea": "Tea is old. It came from China. We like it.", "milk": "Milk is white."}
    >>> folder = tempfile.TemporaryDirectory()
    >>> print(evenrank.cut_passages(tea, tokens=7, overlap=0, out=folder.name).summary())
    2 documents are now 3 passages of at most 7 words.
    >>> print(open(f"{folder.name}/documents.csv").read())
    passage_id,doc_id,start,end
    tea#1,tea,0,31
    tea#2,tea,32,43
    milk#1,milk,0,14
    <BLANKLINE>

    Files appear whole or not at all. Raises EvenrankError for a setting out of range, and for a model that does not
    show its tokens; InputError for input that cannot be read, for a paragraph of ``answers`` that the collection lacks
    or has with another text, and for a folder that has ``qrels.txt`` or ``answers.json`` of an earlier cut that this
    one would not replace.
    """
    folder = Path(out)
    optional = {QRELS: qrels, ANSWERS: answers}
    written = [name for name in (PASSAGES, DOCUMENTS, QRELS, ANSWERS, MANIFEST) if optional.get(name, out) is not None]
    check_apart([folder / name for name in written], [collection, qrels, answers, model if is_path(model) else None])
    for name in sorted({QRELS, ANSWERS} - set(written)):
        if (folder / name).exists():
            raise InputError(folder / name, "is of an earlier cut, and this one would not replace it: remove it first")
    count, tokens, overlap, named, notes = _lengths(model, tokens, overlap)
    provenance = Provenance("evenrank.cut_passages").add("collection", collection)
    provenance.add("qrels", qrels).add("answers", answers)
    if is_path(model):
        provenance.add_model("model", model)
    moved = None if answers is None else _Answers(answers)
    judged = None if qrels is None else as_qrels(qrels)
    make_folder(folder)
    check_outputs([folder / name for name in written])
    provenance.ahead(True)
    counts: dict[str, Any] = {"documents": 0, "cut": 0, "passages": 0}
    wanted = pl.concat(
        [
            pl.Series(dtype=pl.String),
            *([] if judged is None else [judged["doc_id"]]),
            *([] if moved is None else [moved.ids]),
        ]
    ).unique()
    tables = []
    with ExitStack() as files:
        part = {name: files.enter_context(atomic_path(folder / name)) for name in written}
        with (
            progress("documents", quiet=quiet) as advance,
            TableWriter(part[PASSAGES], "jsonl") as passages,
            part[DOCUMENTS].open("wb") as documents,
        ):
            documents.write(b"passage_id,doc_id,start,end\n")
            for batch in as_batches(collection):
                table = _passages(batch, tokens, overlap, count)
                passages.write(table.select(doc_id="passage_id", text="text"))
                table.drop("text").write_csv(documents, include_header=False)
                tables.append(table.drop("text").filter(pl.col("doc_id").is_in(wanted.implode())))
                if moved is not None:
                    moved.check(batch)
                counts["documents"] += batch.height
                counts["passages"] += table.height
                counts["cut"] += table.filter(pl.col("doc_id").is_duplicated())["doc_id"].n_unique()
                advance(batch.height)
        unit: Literal["word", "token"] = "word" if model is None else "token"
        fields: dict[str, Any] = {}
        places = pl.concat(tables)
        if moved is not None:
            moved.move(places)
            part[ANSWERS].write_text(json.dumps(moved.data, ensure_ascii=False), encoding="utf-8")
            fields = {"answers": moved.count, "lost": len(moved.lost), "lost_answers": tuple(moved.lost)}
            notes += moved.notes
        if judged is not None:
            lines, judgement_notes = _judgements(judged, places, None if moved is None else moved.holding)
            _write_qrels(lines, part[QRELS], folder / QRELS)
            fields["judgements"] = lines.height
            notes += judgement_notes
        done = CutCollection(
            os.fspath(out), **counts, tokens=tokens, overlap=overlap, unit=unit, model=named, notes=notes, **fields
        )
        values = {"evenrank": __version__, **asdict(done), "provenance": provenance.to_dict()}
        part[MANIFEST].write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    return done


def _lengths(
    model: RankerLike | None, tokens: int | None, overlap: int | None
) -> tuple[Counter, int, int, str | None, tuple[str, ...]]:
    """What counts, ``tokens`` and ``overlap`` with their defaults, the model's name, and what is to be said of it."""
    count: Counter = count_words
    name: str | None = None
    notes: tuple[str, ...] = ()
    if model is not None:
        require_neural("counting a model's tokens")
        from .load import load_ranker

        scorer = load_ranker(model)
        if scorer.tokens(["a"]) is None:
            raise EvenrankError(f"{arg.model}: {scorer.name} does not show its tokens: leave it out to count words")
        count, name, room = _Pieces(scorer), scorer.name, _room(scorer)
        if tokens is None and room is None:
            raise EvenrankError(f"{arg.tokens}: expected a number, as {name} shows no limit of what it reads")
        if tokens is not None and room is not None and tokens > room:
            notes = (f"{name}: passages of {tokens:,} tokens will be cut off, as it reads {room:,}",)
        tokens = room if tokens is None else tokens
    tokens = WORDS if tokens is None else tokens
    overlap = tokens // 5 if overlap is None else overlap
    if overlap >= tokens:
        raise EvenrankError(f"{arg.overlap}: expected less than {arg.tokens} ({tokens}), found {overlap}")
    return count, tokens, overlap, name, notes


def _room(scorer: Scorer) -> int | None:
    """How many tokens of a passage a model reads, beside a query of 64 if it reads that too; None: unknown, or all."""
    longest = "a " * _LONGEST
    read = scorer.reads_to(["a " * _QUERY], [longest])
    if read is None or read[0] >= len(longest) - 1:
        return None
    tokens = scorer.tokens([longest[: read[0]]])
    return tokens[0] if tokens and tokens[0] else None


def _passages(batch: pl.DataFrame, tokens: int, overlap: int, count: Counter) -> pl.DataFrame:
    """``passage_id``, ``doc_id``, ``start``, ``end``, ``text`` of the passages of a batch's documents."""
    texts = batch["text"].to_list()
    lengths = count(texts)
    if isinstance(count, _Pieces):
        count.learn([text for text, length in zip(texts, lengths, strict=True) if length > tokens])
    rows = []
    for doc_id, text, length in zip(batch["doc_id"], texts, lengths, strict=True):
        spans = [(0, len(text))] if length <= tokens else passage_spans(text, tokens, overlap, count)
        rows += [(f"{doc_id}#{n}", doc_id, start, end, text[start:end]) for n, (start, end) in enumerate(spans, 1)]
    schema = {"passage_id": pl.String, "doc_id": pl.String, "start": pl.Int64, "end": pl.Int64, "text": pl.String}
    return pl.DataFrame(rows, schema, orient="row")


class _Answers:
    """The answers of a SQuAD file, moved to the passages of its paragraphs.

    ``data``: the file's values; ``count``: its answers, and ``lost``, the question and the document of each that no
    passage holds; ``holding``: ``query_id`` and ``passage_id`` of the others. All but ``count``: by :meth:`move`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        squad = load_squad(path)
        self.data: SquadData = squad.data
        self.notes = squad.alignment.notes()
        self.count = squad.answers().height
        self.lost: list[tuple[str, str]] = []
        self.holding = pl.DataFrame(schema={"query_id": pl.String, "passage_id": pl.String})
        self._texts = dict(squad.passages().iter_rows())
        self._met: set[str] = set()
        self.ids = pl.Series(list(self._texts), dtype=pl.String)

    def check(self, batch: pl.DataFrame) -> None:
        """Compares a batch of the collection with the paragraphs. Raises InputError for another text."""
        for doc_id, text in batch.filter(pl.col("doc_id").is_in(self.ids.implode())).iter_rows():
            if self._texts[doc_id] != text:
                raise InputError(self.path, f"the paragraph {quoted(doc_id)} has another text in the collection")
            self._met.add(doc_id)

    def move(self, places: pl.DataFrame) -> None:
        """Puts passages (``passage_id``, ``doc_id``, ``start``, ``end``) in place of the paragraphs.

        Raises InputError for paragraphs that the collection lacks.
        """
        absent = [doc_id for doc_id in self._texts if doc_id not in self._met]
        if absent:
            count = counted(len(absent), "paragraph")
            raise InputError(self.path, f"{count} {are(len(absent))} not in the collection: {first_of(absent)}")
        by_document: dict[str, list[tuple[str, int, int]]] = {}
        for passage_id, doc_id, start, end in places.iter_rows():
            by_document.setdefault(doc_id, []).append((passage_id, start, end))
        ids = (doc_id for doc_id, _ in paragraphs(self.data))
        pairs: dict[tuple[str, str], None] = {}
        articles: list[SquadArticle] = []
        for article in self.data["data"]:
            passages: list[SquadParagraph] = []
            for paragraph in article["paragraphs"]:
                passages += self._cut(next(ids), paragraph, by_document, pairs)
            articles.append({**article, "paragraphs": passages})
        self.data = {**self.data, "data": articles}
        self.holding = pl.DataFrame(list(pairs), self.holding.schema, orient="row")

    def _cut(
        self,
        doc_id: str,
        paragraph: SquadParagraph,
        by_document: dict[str, list[tuple[str, int, int]]],
        held: dict[tuple[str, str], None],
    ) -> list[SquadParagraph]:
        """The passages of a paragraph, each with the questions that it answers."""
        context, by_id = paragraph["context"], {}
        for passage_id, start, end in by_document[doc_id]:
            by_id[passage_id] = SquadParagraph(doc_id=passage_id, context=context[start:end], qas=[])
        for question in paragraph["qas"]:
            query_id = question_id(question)
            moved: dict[str, list[SquadAnswer]] = {}
            for answer in question["answers"]:
                text = answer["text"].strip()
                first = answer["answer_start"] + len(answer["text"]) - len(answer["text"].lstrip())
                own = [(p, start) for p, start, end in by_document[doc_id] if start <= first <= end - len(text)]
                for passage_id, start in own:
                    moved.setdefault(passage_id, []).append({**answer, "text": text, "answer_start": first - start})
                self.lost += [] if own else [(query_id, doc_id)]
            for passage_id, answers in moved.items():
                held[query_id, passage_id] = None
                # The id of a question is its own, in every passage.
                named = {"id": f"{query_id}_{passage_id}", "query_id": query_id, "answers": answers}
                by_id[passage_id]["qas"].append({**question, **named})  # type: ignore[typeddict-item]
        return list(by_id.values())


def _judgements(
    judged: pl.DataFrame, places: pl.DataFrame, holding: pl.DataFrame | None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """``query_id``, ``passage_id``, ``relevance`` of the passages of judged documents, and what is to be said of them.

    ``holding``: ``query_id`` and ``passage_id`` of the passages with an answer, if answers are known.
    """
    known = judged.join(places.select("doc_id").unique(), on="doc_id", how="semi", maintain_order="left")
    absent, notes = judged.height - known.height, []
    if not known.height:
        raise EvenrankError(f"{arg.qrels}: none of the judged documents is in the collection")
    if absent:
        notes.append(f"{counted(absent, 'judgement')} of documents that the collection lacks left out")
    lines = known.join(places.select("doc_id", "passage_id"), on="doc_id", how="left", maintain_order="left_right")
    if holding is not None:
        own = holding.with_columns(holds=pl.lit(True))
        lines = lines.join(own, on=["query_id", "passage_id"], how="left", maintain_order="left")
        grade = pl.when(pl.col("holds").is_null() & (pl.col("relevance") > 0)).then(0).otherwise(pl.col("relevance"))
        lines = lines.with_columns(relevance=grade)
        relevant = known.filter(pl.col("relevance") > 0)
        answered = lines.filter(pl.col("relevance") > 0).select("query_id", "doc_id").unique().height
        if answered < relevant.height:
            without = relevant.height - answered
            notes.append(
                f"{without:,} of {counted(relevant.height, 'relevant judgement')} {are(without)} of documents none of"
                " whose passages holds an answer: none of them is relevant"
            )
    return lines.select("query_id", "passage_id", "relevance"), tuple(notes)


def _write_qrels(lines: pl.DataFrame, part: Path, path: Path) -> None:
    """Writes judgements in TREC's form. Raises InputError for an id that this form does not allow."""
    for column in ("query_id", "passage_id"):
        bad = lines[column].filter(lines[column].str.contains(r"^$|\s"))
        if len(bad):
            raise InputError(path, f"cannot be written: {quoted(bad[0])} as {column} is empty or contains white space")
    ordered = lines.select("query_id", pl.lit("0").alias("iteration"), "passage_id", "relevance")
    ordered.write_csv(part, include_header=False, separator=" ", quote_style="never")
