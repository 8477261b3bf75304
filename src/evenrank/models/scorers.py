"""The one way to score pairs of a query and a passage, whatever computes the scores; and how many texts it cuts."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from evenrank.files import EvenrankError, read_texts
from evenrank.files.errors import quoted
from evenrank.files.tokens import word_spans
from evenrank.files.wording import are, counted, plural

if TYPE_CHECKING:
    from .protocol import Ranker

Rows = NDArray[np.int64]
Unit = Literal["pair", "document", "query"]
"""What a window never splits: a pair, all pairs of a document, or all pairs of a query."""


@dataclass(frozen=True, slots=True)
class TextPairs:
    """Pairs to score: ``query`` and ``document`` [pairs] are rows of the texts ``queries`` and ``documents``."""

    query: Rows
    document: Rows
    queries: pl.Series
    documents: pl.Series

    @property
    def size(self) -> int:
        """The number of pairs."""
        return len(self.query)

    @classmethod
    def of_run(
        cls, run: str, table: pl.DataFrame, collection: str | os.PathLike[str] | pl.DataFrame, queries: pl.DataFrame
    ) -> TextPairs:
        """The pairs of a run's ``table``; of a collection on disk only the texts that it needs are kept.

        ``run``: what messages call the run. Raises EvenrankError if a query or a document of the run has no text.
        """
        query_texts = _texts_of(table["query_id"], queries, f"{run}: ", " of its queries have no text")
        place = "the collection"
        if not isinstance(collection, pl.DataFrame):
            place = f"the collection {os.fspath(collection)}"
            collection = read_texts(collection, table["doc_id"])
        document_texts = _texts_of(table["doc_id"], collection, f"{run}: ", f" of its documents are not in {place}")
        rows = _rows_of(table, query_texts), _rows_of(table, document_texts)
        return cls(*rows, query_texts["text"], document_texts["text"])

    @classmethod
    def of_texts(cls, queries: Sequence[str], passages: Sequence[str]) -> TextPairs:
        """The pairs (queries[i], passages[i])."""
        return cls(*_distinct(queries, passages))

    def transformed(self, transform: Callable[[pl.Series], pl.Series]) -> TextPairs:
        """The same pairs with ``transform`` applied to the texts of queries and of documents, each [N]."""
        return TextPairs(self.query, self.document, transform(self.queries), transform(self.documents))

    def texts(self, rows: Rows) -> tuple[list[str], list[str]]:
        """The queries and the passages of some rows."""
        query, document = self.queries.gather(self.query[rows]), self.documents.gather(self.document[rows])
        return query.to_list(), document.to_list()

    def windows(self, unit: Unit, size: int) -> list[Rows]:
        """The rows of each window: ``size`` pairs, all pairs of ``size`` documents, or all pairs of one query."""
        if unit == "pair":
            return np.split(np.arange(self.size), range(size, self.size, size))
        number = self.query if unit == "query" else self.document
        rows = np.argsort(number, kind="stable")
        window = number[rows] if unit == "query" else number[rows] // size
        return np.split(rows, np.flatnonzero(np.diff(window)) + 1)


def _distinct(queries: Sequence[str], passages: Sequence[str]) -> tuple[Rows, Rows, pl.Series, pl.Series]:
    numbers: list[Rows] = []
    texts: list[pl.Series] = []
    for side in (queries, passages):
        rows: dict[str, int] = {}
        numbers.append(np.array([rows.setdefault(text, len(rows)) for text in side], np.int64))
        texts.append(pl.Series(list(rows), dtype=pl.String))
    return numbers[0], numbers[1], texts[0], texts[1]


def _texts_of(ids: pl.Series, texts: pl.DataFrame, before: str, problem: str) -> pl.DataFrame:
    """The distinct ``ids`` in order of first appearance, with their ``text``.

    Raises EvenrankError if some have none, with ``before``, their number, ``problem`` and the first five.
    """
    known = texts.select(ids.name, "text").unique(ids.name, keep="first")
    table = ids.unique(maintain_order=True).to_frame().join(known, on=ids.name, how="left", maintain_order="left")
    missing = table.filter(pl.col("text").is_null())[ids.name]
    if len(missing):
        first = ", ".join(quoted(value) for value in missing.head(5))
        raise EvenrankError(f"{before}{len(missing)}{problem}: {first}{', …' if len(missing) > 5 else ''}")
    return table


def _rows_of(table: pl.DataFrame, texts: pl.DataFrame) -> Rows:
    """The row in ``texts`` of each row of ``table``."""
    name = texts.columns[0]
    numbered = texts.select(name).with_row_index("row")
    rows = table.select(name).join(numbered, on=name, how="left", maintain_order="left")["row"]
    return rows.to_numpy().astype(np.int64)


Scores = NDArray[np.float64]
ScoreFunction = Callable[[str, list[str]], ArrayLike]
"""A query and n passages → their n scores."""


class Scorer(ABC):
    """Scores pairs of a query and a passage; :func:`load_ranker` makes one of any model.

    ``name``: the name of the runs that it ranks. ``settings``: what the scores depend on besides the model's files.
    ``progress_bar``: whether sentence-transformers shows its own. ``truncated``: how many of the passages or pairs
    scored so far the model cut, each distinct one counted once per call; None if it does not show it.
    ``digest``: what computes the SHA-256 of the model's files, if it has any.
    """

    unit: ClassVar[Unit] = "pair"
    settings = ""
    progress_bar = False
    truncated: Truncation | None = None
    digest: Callable[[], str] | None = None

    @property
    def answers(self) -> str | os.PathLike[str] | None:
        """The file that keeps what a server has answered; None if there is none."""
        return None

    def __init__(self, name: str) -> None:
        self.name = name

    def facts(self) -> dict[str, object]:
        """What the model is, as JSON values: ``kind``, ``model`` (its name), ``sha256`` (None for one in memory) and,
        where they mean something, ``query_prompt``, ``document_prompt``, ``reads`` (tokens), ``precision``,
        ``similarity``, ``backend`` and ``device``.
        """
        return {"kind": type(self).__name__, "model": self.name, "sha256": self.digest and self.digest()}

    @abstractmethod
    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        """A function from rows of ``pairs`` to their scores; computes first what all rows share."""

    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        """The scores of each window of rows, in order; a scorer may work ahead of the window that is wanted."""
        yield from map(self.bind(pairs, batch_size), windows)

    def notes(self) -> tuple[str, ...]:
        """What is to be said of the calls since the last time, besides their scores."""
        return ()

    def keeping_beside(self, out: str | os.PathLike[str] | None) -> Scorer:
        """The scorer for runs written to ``out``; one that keeps ``answers`` may keep them beside it."""
        return self

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        """How many characters of each passage [pairs] the model reads before it truncates; None if unknown."""
        return None

    def tokens(self, texts: Sequence[str]) -> list[int] | None:
        """How many tokens the model's own tokenizer makes of each text, uncut; None if it has none."""
        return None

    def score(self, queries: Sequence[str], passages: Sequence[str], batch_size: int = 32) -> Scores:
        """The scores [pairs] of the pairs (queries[i], passages[i]); a bi-encoder encodes each distinct text once.

        Raises EvenrankError if a score is not finite.
        """
        pairs = TextPairs.of_texts(queries, passages)
        scores = self.bind(pairs, batch_size)(np.arange(pairs.size)) if pairs.size else np.empty(0)
        check_finite(scores, self.name)
        return scores


def check_finite(scores: Scores, model: str) -> None:
    """Raises EvenrankError, which names the model, if a score is infinite or NaN."""
    bad = int((~np.isfinite(scores)).sum())
    if bad:
        raise EvenrankError(f"{model}: {bad} of {len(scores)} scores are not finite")


class RankerScorer(Scorer):
    """The scores of a :class:`Ranker` of this library."""

    def __init__(self, ranker: Ranker, name: str) -> None:
        super().__init__(name)
        self.ranker = ranker

    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        def score(rows: Rows) -> Scores:
            return self.ranker.score(*pairs.texts(rows), batch_size).numpy().astype(np.float64)

        return score

    def facts(self) -> dict[str, object]:
        parameter = next(self.ranker.parameters())
        precision = str(parameter.dtype).removeprefix("torch.")
        computed = {"precision": precision, "backend": "torch", "device": str(parameter.device)}
        return {**super().facts(), "kind": self.ranker.kind, **computed}

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        return self.ranker.reads_to(queries, passages)

    def tokens(self, texts: Sequence[str]) -> list[int] | None:
        found = token_counts(getattr(self.ranker, "model", None), texts)
        # The others read words.
        return [len(word_spans(text)) for text in texts] if found is None else found


class SparseRankerScorer(RankerScorer):
    """A ranker that encodes each passage once for all its queries."""

    unit = "document"


def token_counts(model: object, texts: Sequence[str]) -> list[int] | None:
    """How many tokens a model's ``tokenizer`` makes of each text; None if it has none."""
    tokenizer: Any = getattr(model, "tokenizer", None)
    if hasattr(tokenizer, "encode_batch"):
        return [len(row.ids) for row in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
    if not callable(tokenizer):
        return None
    found = tokenizer(list(texts), add_special_tokens=False, truncation=False, verbose=False)
    return [len(row) for row in found["input_ids"]]


class FunctionScorer(Scorer):
    """The scores of a function of a query and its passages, called once for each query of a call."""

    unit = "query"

    def __init__(self, function: ScoreFunction, name: str) -> None:
        super().__init__(name)
        self.function = function

    def facts(self) -> dict[str, object]:
        return {"kind": "function", "model": self.name}

    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        def score(rows: Rows) -> Scores:
            scores = np.empty(len(rows))
            order = np.argsort(pairs.query[rows], kind="stable")
            for places in np.split(order, np.flatnonzero(np.diff(pairs.query[rows][order])) + 1):
                query = str(pairs.queries[int(pairs.query[rows[places[0]]])])
                passages = pairs.documents.gather(pairs.document[rows[places]]).to_list()
                scores[places] = self._checked(self.function(query, passages), query, len(passages))
            return scores

        return score

    def _checked(self, scores: ArrayLike, query: str, expected: int) -> Scores:
        """The scores as an array [expected]. Raises EvenrankError for anything but so many real numbers."""
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(scores, torch.Tensor):
            scores = scores.detach().cpu().double().numpy()
        try:
            values = np.asarray(scores)
        except (TypeError, ValueError):  # lists of different lengths
            values = np.asarray(None)
        place = f"{self.name}: expected {expected} scores for the query {quoted(query)}"
        if values.ndim != 1 or (len(values) and values.dtype.kind not in "iuf"):
            shape = f" of shape {values.shape}" if values.ndim > 1 else ""
            raise EvenrankError(f"{place}, as a list of real numbers, found {_described(scores)}{shape}")
        if len(values) != expected:
            raise EvenrankError(f"{place}, found {len(values)}")
        return values.astype(np.float64)


def _described(value: object) -> str:
    """A type, with that of the first entry in a list."""
    name = type(value).__name__
    if isinstance(value, list | tuple) and value:
        odd = next((entry for entry in value if isinstance(entry, bool) or not isinstance(entry, int | float)), None)
        return f"{name} with {type(odd).__name__} {quoted(odd)}" if odd is not None or None in value else name
    return name


if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer, SparseEncoder

    Model: TypeAlias = "CrossEncoder | SentenceTransformer | SparseEncoder | MultiVectorEncoder"

_NO_LIMIT = 10**9
"""Tokenisers without a limit have a larger one."""


SHORTER = " (evenrank passages COLLECTION --model MODEL --out FOLDER cuts them)"
"""What can be done about texts that are longer than a model reads."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """``cut`` of ``of`` distinct passages or pairs (``unit``) are longer than the ``reads`` tokens that a model reads.

    ``lost_end``: of those cut, how many lost the end of the prompt, from which a causal language model's score is read.
    """

    unit: Literal["passage", "pair"]
    reads: int | None = None
    cut: int = 0
    of: int = 0
    lost_end: int = 0

    def __add__(self, other: Truncation) -> Truncation:
        return self.plus(other.cut, other.of, other.lost_end)

    def __sub__(self, other: Truncation) -> Truncation:
        return self.plus(-other.cut, -other.of, -other.lost_end)

    def plus(self, cut: int, of: int, lost_end: int = 0) -> Truncation:
        """With so many more."""
        return replace(self, cut=self.cut + cut, of=self.of + of, lost_end=self.lost_end + lost_end)

    def notes(self, model: str) -> tuple[str, ...]:
        """What to tell of it, in sentences; none if nothing was cut."""
        if not self.cut:
            return ()
        limit = "it reads" if self.reads is None else f"the {counted(self.reads, 'token')} that it reads"
        found = f"{model}: {self.cut:,} of {counted(self.of, self.unit)} {are(self.cut)} longer than {limit}{SHORTER}"
        if not self.lost_end:
            return (found,)
        lost = self.unit if self.lost_end == 1 else plural(self.unit)
        return found, f"{model}: {self.lost_end:,} {lost} lost the end of the prompt, from which the score is read"


def truncated_between(before: Truncation | None, after: Truncation | None) -> dict[str, Any] | None:
    """What was truncated between two counts, as JSON values; None if it is unknown."""
    return None if before is None or after is None else asdict(after - before)


def truncated_in_all(counts: Sequence[Mapping[str, Any] | None]) -> Truncation | None:
    """The sum of counts in JSON values; None if there are none, or if one is unknown."""
    known = [Truncation(**count) for count in counts if count is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(counts) else None


class TruncationCounter:
    """Counts the rows that a model truncates while it is watched; ``known``: whether its tokeniser shows them."""

    def __init__(self) -> None:
        self.known = True
        self.cut = self.of = self.lost_end = 0

    @contextmanager
    def watching(self, model: Model) -> Iterator[None]:
        """Looks at what ``model`` tokenises inside, at no more cost than a look."""
        tokenise, own = model.preprocess, vars(model)

        def looked_at(inputs: Sequence[object], *args: object, **settings: object) -> dict[str, object]:
            features: dict[str, object] = tokenise(inputs, *args, **settings)
            self._look(model, inputs, features)
            return features

        before = own.get("preprocess")
        own["preprocess"] = looked_at
        try:
            yield
        finally:
            own.pop("preprocess")
            if before is not None:
                own["preprocess"] = before

    def _look(self, model: Model, inputs: Sequence[object], features: dict[str, object]) -> None:
        rows = truncated_rows(features)
        if "offsets" in features:
            # The texts of static embeddings are joined, so that it does not show which were cut.
            rows = None if max_tokens(model) else [False] * len(inputs)
        if rows is None:
            self.known = False
            return
        self.of += len(rows)
        self.cut += sum(rows)
        if features.get("modality") == "message" and any(rows):
            self.lost_end += _without_end(features, rows)


def truncated_rows(features: object) -> list[bool] | None:
    """Which rows of a tokenised batch were truncated; None if its tokeniser does not show it."""
    encodings = getattr(features, "encodings", None)
    if not encodings:
        return None
    lengths = features["attention_mask"].sum(1)  # type: ignore[index]
    # Encodings have the overflow too, but copy it at each look: only the longest rows can have any.
    longest = (lengths == lengths.max()).tolist()
    return [full and bool(row.overflowing) for full, row in zip(longest, encodings, strict=True)]


def _without_end(features: dict[str, object], rows: list[bool]) -> int:
    """How many of the truncated rows end in another token than the whole text does: sentence-transformers puts the end
    of a chat template back where it can tell what that is.
    """
    ids, encodings = features["input_ids"], getattr(features, "encodings")  # noqa: B009
    ends = (encodings[row].overflowing[-1].ids[-1] != int(ids[row, -1]) for row, cut in enumerate(rows) if cut)  # type: ignore[index]
    return sum(ends)


def is_static(model: Model) -> bool:
    """Whether a text's vector is the mean of its tokens' own."""
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    return isinstance(model[0], StaticEmbedding)


def max_tokens(model: Model) -> int | None:
    """How many tokens of a passage (of a pair) a model reads, prompts included; None for no limit."""
    module = model[0]
    routes = getattr(module, "sub_modules", None)
    if routes is not None:
        module = routes["document" if "document" in routes else module.default_route][0]
    if is_static(model):
        limit = (module.tokenizer.truncation or {}).get("max_length")
    else:
        given = getattr(module, "processing_kwargs", {}).get("text", {}).get("max_length")
        limit = given or getattr(module, "document_length", None) or getattr(module, "max_seq_length", None)
    return int(limit) if limit is not None and limit < _NO_LIMIT else None
