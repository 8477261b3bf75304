"""From a model to the scores of pairs of a query and a passage, and how many of them it cuts."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from evenrank.files import EvenrankError, arg, read_texts
from evenrank.files.errors import quoted, shown
from evenrank.files.tokens import word_spans
from evenrank.files.wording import are, counted, plural

if TYPE_CHECKING:
    import torch
    from scipy.sparse import csr_matrix
    from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer, SparseEncoder

    from .encoders import DotRanker
    from .protocol import Ranker

    Model: TypeAlias = CrossEncoder | SentenceTransformer | SparseEncoder | MultiVectorEncoder

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
        table = pl.DataFrame(
            {"query_id": queries, "doc_id": passages}, dict.fromkeys(("query_id", "doc_id"), pl.String)
        )
        query_texts, passage_texts = (table.select(name, pl.col(name).alias("text")) for name in table.columns)
        return cls.of_run("the pairs", table, passage_texts, query_texts)

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

    ``name``: the name of the runs that it ranks. ``unit``: what a window of pairs never splits.
    ``progress_bar``: whether sentence-transformers shows its own. ``truncated``: how many of the passages or pairs
    scored so far the model cut, each distinct one counted once per call; None if it does not show it.
    ``digest``: what computes the SHA-256 of the model's files, if it has any.
    """

    unit: Unit = "pair"
    progress_bar = False
    truncated: Truncation | None = None
    digest: Callable[[], str] | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def facts(self) -> dict[str, object]:
        """What the model is, as JSON values: ``kind``, ``model`` (its name), ``sha256`` (None for one in memory) and,
        where they mean something, ``query_prompt``, ``document_prompt``, ``reads`` (tokens), ``precision``,
        ``similarity``, ``backend`` and ``device``.
        """
        return {"kind": type(self).__name__, "model": self.name, "sha256": self.digest and self.digest()}

    @abstractmethod
    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        """The scores of each window of rows of ``pairs``, in order; a scorer may work ahead of the wanted window."""

    def notes(self) -> tuple[str, ...]:
        """What is to be said of the calls since the last time, besides their scores."""
        return ()

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
        scores = self.scores_of(pairs, batch_size) if pairs.size else np.empty(0)
        check_finite(scores, self.name)
        return scores

    def scores_of(self, pairs: TextPairs, batch_size: int) -> Scores:
        """The scores [pairs]."""
        windows = pairs.windows("query", 1) if self.unit == "query" else [np.arange(pairs.size)]
        scores = np.empty(pairs.size)
        for rows, window_scores in zip(windows, self.each(pairs, batch_size, windows), strict=True):
            scores[rows] = window_scores
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
        if ranker.kind == "sparse":  # which encodes each passage once for all its queries
            self.unit = "document"

    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        for rows in windows:
            yield self.ranker.score(*pairs.texts(rows), batch_size).numpy().astype(np.float64)

    def facts(self) -> dict[str, object]:
        parameter = next(self.ranker.parameters())
        precision = str(parameter.dtype).removeprefix("torch.")
        computed = {"precision": precision, "backend": "torch", "device": str(parameter.device)}
        return {**super().facts(), "kind": self.ranker.kind, **computed}

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        return self.ranker.reads_to(queries, passages)

    def tokens(self, texts: Sequence[str]) -> list[int] | None:
        counts = token_counts(getattr(self.ranker, "model", None), texts)
        # The others read words.
        return [len(word_spans(text)) for text in texts] if counts is None else counts


def token_counts(model: object, texts: Sequence[str]) -> list[int] | None:
    """How many tokens a model's ``tokenizer`` makes of each text; None if it has none."""
    tokenizer: Any = getattr(model, "tokenizer", None)
    if hasattr(tokenizer, "encode_batch"):
        return [len(row.ids) for row in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
    if not callable(tokenizer):
        return None
    encoding = tokenizer(list(texts), add_special_tokens=False, truncation=False, verbose=False)
    return [len(row) for row in encoding["input_ids"]]


class FunctionScorer(Scorer):
    """The scores of a function of a query and its passages, called once for each query."""

    unit = "query"

    def __init__(self, function: ScoreFunction, name: str) -> None:
        super().__init__(name)
        self.function = function

    def facts(self) -> dict[str, object]:
        return {"kind": "function", "model": self.name}

    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        for rows in windows:
            query = str(pairs.queries[int(pairs.query[rows[0]])])
            passages = pairs.documents.gather(pairs.document[rows]).to_list()
            yield self._checked(self.function(query, passages), query, len(passages))

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
            raise EvenrankError(f"{place}, as a list of real numbers, found {shown(scores)}{shape}")
        if len(values) != expected:
            raise EvenrankError(f"{place}, found {len(values)}")
        return values.astype(np.float64)


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
        note = f"{model}: {self.cut:,} of {counted(self.of, self.unit)} {are(self.cut)} longer than {limit}{SHORTER}"
        if not self.lost_end:
            return (note,)
        lost = self.unit if self.lost_end == 1 else plural(self.unit)
        return note, f"{model}: {self.lost_end:,} {lost} lost the end of the prompt, from which the score is read"


def truncated_between(before: Truncation | None, after: Truncation | None) -> dict[str, Any] | None:
    """What was truncated between two counts, as JSON values; None if it is unknown."""
    return None if before is None or after is None else asdict(after - before)


def truncated_in_all(counts: Sequence[Mapping[str, Any] | None]) -> Truncation | None:
    """The sum of counts in JSON values; None if there are none, or if one is unknown."""
    known = [Truncation(**count) for count in counts if count is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(counts) else None


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


def is_causal(model: Model) -> bool:
    """Whether the score is a causal language model's: the logit of one word, often less that of another."""
    from sentence_transformers.cross_encoder.modules import LogitScore

    return any(isinstance(part, LogitScore) for part in model)


def max_tokens(model: Model) -> int | None:
    """How many tokens of a passage (of a pair) a model reads, prompts included; None for no limit."""
    module = model[0]
    routes = getattr(module, "sub_modules", None)
    if routes is not None:
        module = routes["document" if "document" in routes else module.default_route][0]
    if is_static(model):
        limit = (module.tokenizer.truncation or {}).get("max_length")
    else:
        max_length = getattr(module, "processing_kwargs", {}).get("text", {}).get("max_length")
        limit = max_length or getattr(module, "document_length", None) or getattr(module, "max_seq_length", None)
    return int(limit) if limit is not None and limit < _NO_LIMIT else None


# Similarities computed at once.
_SIMILARITIES = 1 << 14
# Batches whose passages' vectors are kept at once, if they are large.
_BATCHES = 16
Vectors = TypeVar("Vectors")


def encoder_scorer(
    model: Model, name: str, query_prompt: str | None = None, document_prompt: str | None = None
) -> EncoderScorer:
    """The scorer of a model of sentence-transformers.

    Raises EvenrankError for a cross-encoder with several scores per pair, or a prompt that it has no place for.
    """
    from sentence_transformers import CrossEncoder, MultiVectorEncoder, SparseEncoder

    if isinstance(model, CrossEncoder):
        if document_prompt is not None:
            place = f"a cross-encoder has one prompt, {arg.query_prompt}, before the whole pair"
            raise EvenrankError(f"{arg.document_prompt}: {place}")
        if model.num_labels != 1:
            raise EvenrankError(
                f"{arg.model}: expected a CrossEncoder with one score per pair, found {model.num_labels}"
            )
        return CrossEncoderScorer(model, name, query_prompt)
    if isinstance(model, SparseEncoder):
        return SparseScorer(model, name, query_prompt, document_prompt)
    scorer = LateScorer if isinstance(model, MultiVectorEncoder) else BiEncoderScorer
    return scorer(model, name, query_prompt, document_prompt)


class EncoderScorer(Scorer):
    """What the models of sentence-transformers share: prompts, how far they read, what they cut.

    ``query_prompt``, ``document_prompt``: in place of those in the model's configuration. ``backend``, ``precision``:
    how it computes, if not as PyTorch does in the type of its weights.
    """

    backend = "torch"
    precision: str | None = None
    _counts: Literal["passage", "pair"] = "passage"
    _query_prompts: Sequence[str] = ("query",)

    def __init__(
        self, model: Model, name: str, query_prompt: str | None = None, document_prompt: str | None = None
    ) -> None:
        super().__init__(name)
        self.model = model
        self.query_prompt = self._prompt(query_prompt, self._query_prompts)
        self.document_prompt = self._prompt(document_prompt, ("document", "passage", "corpus"))
        self.reads = max_tokens(model)
        self.truncated = Truncation(self._counts, self.reads)

    def tokens(self, texts: Sequence[str]) -> list[int] | None:
        return token_counts(self.model, texts) if texts else []

    def _prompt(self, given: str | None, names: Sequence[str]) -> str:
        """What is given, else the prompt of the model's configuration that sentence-transformers would take."""
        prompts = self.model.prompts or {}
        name = next((name for name in names if name in prompts), self.model.default_prompt_name)
        return (prompts.get(name) or "") if given is None else given

    def facts(self) -> dict[str, object]:
        # Others than the largest weights may be kept in another type.
        largest = max(self.model.parameters(), key=lambda parameter: parameter.numel(), default=None)
        own = "float32" if largest is None else str(largest.dtype).removeprefix("torch.")
        return {
            **super().facts(),
            "query_prompt": self.query_prompt or None,
            "document_prompt": self.document_prompt or None,
            "reads": self.reads,
            "precision": self.precision or own,
            "backend": self.backend,
            "device": str(self.model.device),
        }

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Counts what the model cuts meanwhile, at no more cost than a look, and leaves its mode as it was."""
        training, own = self.model.training, vars(self.model)
        tokenise, before = self.model.preprocess, own.get("preprocess")

        def looked_at(inputs: Sequence[object], *args: object, **settings: object) -> dict[str, object]:
            features: dict[str, object] = tokenise(inputs, *args, **settings)
            self._count(len(inputs), features)
            return features

        own["preprocess"] = looked_at
        try:
            yield
        finally:
            own.pop("preprocess")
            if before is not None:
                own["preprocess"] = before
            self.model.train(training)

    def _count(self, size: int, features: dict[str, object]) -> None:
        rows = truncated_rows(features)
        if "offsets" in features:
            # The texts of static embeddings are joined, so that it does not show which were cut.
            rows = None if self.reads else [False] * size
        if rows is None or self.truncated is None:
            self.truncated = None
            return
        lost = _without_end(features, rows) if features.get("modality") == "message" and any(rows) else 0
        self.truncated = self.truncated.plus(sum(rows), len(rows), lost)


class CrossEncoderScorer(EncoderScorer):
    """The logits of a cross-encoder, or the difference of two logits of a causal language model.

    Its one prompt, an instruction, precedes the query of a pair; in a chat template it is the system's message.
    """

    model: CrossEncoder
    _counts = "pair"
    _query_prompts = ()

    def __init__(self, model: CrossEncoder, name: str, query_prompt: str | None = None) -> None:
        super().__init__(model, name, query_prompt, "")

    def facts(self) -> dict[str, object]:
        facts = super().facts() | {"kind": "causal language model" if is_causal(self.model) else "cross-encoder"}
        del facts["document_prompt"]
        return facts

    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        from torch.nn import Identity

        from .export import pair_scores, scores_pairs

        for rows in windows:
            texts = list(zip(*pairs.texts(rows), strict=True))
            with self._watched():
                if scores_pairs(self.model):
                    scores = pair_scores(self.model, texts, self.query_prompt, batch_size)
                else:
                    # It sorts its pairs by length, pads each batch to its longest and works in inference mode.
                    scores = self.model.predict(
                        texts,
                        prompt=self.query_prompt,
                        batch_size=batch_size,
                        activation_fn=Identity(),
                        show_progress_bar=self.progress_bar,
                    )
            yield np.asarray(scores, np.float64)

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        from .encoders import gives_offsets, reads_to

        # A chat template's offsets are those of the text that it makes.
        if "message" in self.model.modalities or not gives_offsets(self.model, ["a", "a"]):
            return None
        return reads_to(self.model, [list(pair) for pair in zip(queries, passages, strict=True)], self.query_prompt)


class VectorScorer(EncoderScorer, Generic[Vectors]):
    """A model's own similarity of the vectors of query and passage; each text is encoded once.

    ``large``: whether vectors are so large that those of few passages are kept at a time.
    """

    unit = "document"
    kind = ""
    large = True

    def queries(self, texts: list[str], batch_size: int) -> Vectors:
        """The vectors of queries, in at least float32."""
        training = self.model.training
        vectors = self._encoded(self.model.encode_query, texts, self.query_prompt, batch_size)
        self.model.train(training)
        return vectors

    def passages(self, texts: list[str], batch_size: int) -> Vectors:
        """The vectors of passages, in at least float32; counts those that are cut."""
        with self._watched():
            return self._encoded(self.model.encode_document, texts, self.document_prompt, batch_size)

    @abstractmethod
    def _encoded(self, encode: Callable[..., Any], texts: list[str], prompt: str, batch_size: int) -> Vectors:
        """The vectors of texts by a method of the model."""

    @abstractmethod
    def similarities(self, queries: Vectors, query: Rows, passages: Vectors, passage: Rows) -> Scores:
        """The similarities of the vectors ``queries[query[i]]`` and ``passages[passage[i]]``."""

    def facts(self) -> dict[str, object]:
        return super().facts() | {"kind": self.kind, "similarity": self.model.similarity_fn_name}

    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        from torch import inference_mode

        queries = self.queries(pairs.queries.to_list(), batch_size)
        for rows in windows:
            distinct, place = np.unique(pairs.document[rows], return_inverse=True)
            step = _BATCHES * batch_size if self.large else max(len(distinct), 1)
            scores = np.empty(len(rows))
            for start in range(0, len(distinct), step):
                passages = self.passages(pairs.documents.gather(distinct[start : start + step]).to_list(), batch_size)
                inside = np.flatnonzero((place >= start) & (place < start + step))
                with inference_mode():
                    for part in np.split(inside, range(_SIMILARITIES, len(inside), _SIMILARITIES)):
                        query, passage = pairs.query[rows[part]], place[part] - start
                        scores[part] = self.similarities(queries, query, passages, passage)
            yield scores

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        from .encoders import gives_offsets, reads_to

        if not gives_offsets(self.model, "a", task="document"):
            return None
        return reads_to(self.model, passages, self.document_prompt, task="document")

    def _options(self, prompt: str, batch_size: int) -> dict[str, object]:
        return {"prompt": prompt, "batch_size": batch_size, "show_progress_bar": self.progress_bar}


class BiEncoderScorer(VectorScorer["torch.Tensor"]):
    """One vector a text: a bi-encoder, or static embeddings."""

    model: SentenceTransformer
    kind = "bi-encoder"
    large = False

    def facts(self) -> dict[str, object]:
        return super().facts() | ({"kind": "static embeddings"} if is_static(self.model) else {})

    def _encoded(self, encode: Callable[..., Any], texts: list[str], prompt: str, batch_size: int) -> torch.Tensor:
        vectors: torch.Tensor = encode(texts, convert_to_tensor=True, **self._options(prompt, batch_size))
        return vectors.float()

    def similarities(self, queries: torch.Tensor, query: Rows, passages: torch.Tensor, passage: Rows) -> Scores:
        scores: Scores = self.model.similarity_pairwise(queries[query], passages[passage]).cpu().numpy()
        return scores

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        if not is_static(self.model):
            return super().reads_to(queries, passages)
        if self.reads is None:
            return [len(passage) for passage in passages]
        texts = [self.document_prompt + passage for passage in passages]
        encodings = self.model.tokenizer.encode_batch(texts, add_special_tokens=False)
        return [max(0, (row.offsets[-1][1] if row.offsets else 0) - len(self.document_prompt)) for row in encodings]


class KeptVectorScorer(BiEncoderScorer):
    """A dot ranker with a frozen encoder: what it has encoded before, it does not encode again."""

    def __init__(self, ranker: DotRanker, name: str) -> None:
        super().__init__(ranker.model, name)
        self.ranker = ranker

    def queries(self, texts: list[str], batch_size: int) -> torch.Tensor:
        return self._embedded(self.ranker.embed_queries, texts, [[] for _ in texts])

    def passages(self, texts: list[str], batch_size: int) -> torch.Tensor:
        return self._embedded(self.ranker.embed_passages, [], [texts])

    def _embedded(
        self, embed: Callable[..., torch.Tensor], queries: list[str], passages: list[list[str]]
    ) -> torch.Tensor:
        from torch import inference_mode

        from .protocol import CandidateLists

        encoded = self.ranker.encode(CandidateLists(queries, passages))
        inputs = {name: value.to(self.model.device) for name, value in encoded.items()}
        cut = inputs.get("passage_cut")
        if cut is not None and self.truncated is not None:
            self.truncated = self.truncated.plus(int(cut.sum()), len(cut))
        with inference_mode():
            return embed(**inputs)


class SparseScorer(VectorScorer["csr_matrix"]):
    """A weight for each word of a vocabulary: SPLADE, or one without a neural network for queries."""

    model: SparseEncoder
    kind = "sparse encoder"

    def _encoded(self, encode: Callable[..., Any], texts: list[str], prompt: str, batch_size: int) -> csr_matrix:
        from scipy.sparse import csr_matrix, vstack

        # By length, as a call encodes a piece of them; what is kept is sparse.
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        parts = []
        for start in range(0, len(order), _BATCHES * batch_size):
            piece = [texts[row] for row in order[start : start + _BATCHES * batch_size]]
            dense = encode(piece, convert_to_sparse_tensor=False, **self._options(prompt, batch_size))
            parts.append(csr_matrix(dense.float().cpu().numpy()))
        return vstack(parts, format="csr")[np.argsort(order)].astype(np.float64)

    def similarities(self, queries: csr_matrix, query: Rows, passages: csr_matrix, passage: Rows) -> Scores:
        first, second = queries[query], passages[passage]
        name = self.model.similarity_fn_name
        if name in ("dot", "cosine"):
            dots = first.multiply(second).sum(1)
            lengths = 1.0 if name == "dot" else _lengths(first) * _lengths(second)
            return np.asarray(dots).ravel() / lengths
        apart = first - second
        distances = _lengths(apart, 0.0) if name == "euclidean" else np.asarray(abs(apart).sum(1)).ravel()
        return np.asarray(-distances)


def _lengths(rows: csr_matrix, least: float = 1e-12) -> Scores:
    lengths: Scores = np.sqrt(np.asarray(rows.multiply(rows).sum(1)).ravel())
    return np.maximum(lengths, least)


class LateScorer(VectorScorer["list[torch.Tensor]"]):
    """A vector for each token, and the sum (or mean) over the query's of the greatest similarity: MaxSim."""

    model: MultiVectorEncoder
    kind = "late interaction"

    def _encoded(
        self, encode: Callable[..., Any], texts: list[str], prompt: str, batch_size: int
    ) -> list[torch.Tensor]:
        return [vectors.float() for vectors in encode(texts, **self._options(prompt, batch_size))]

    def similarities(
        self, queries: list[torch.Tensor], query: Rows, passages: list[torch.Tensor], passage: Rows
    ) -> Scores:
        first, second = [queries[row] for row in query], [passages[row] for row in passage]
        scores: Scores = self.model.similarity_pairwise(first, second).cpu().numpy()
        return scores
