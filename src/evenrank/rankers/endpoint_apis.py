"""What servers are asked and what they answer: Cohere's and Text Embeddings Inference's rerank, OpenAI's embeddings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evenrank.io.wording import counted

Api = Literal["cohere", "tei", "openai"]
APIS: tuple[Api, ...] = get_args(Api)
ENDINGS: Mapping[Api, str] = {"cohere": "rerank", "tei": "rerank", "openai": "embeddings"}
"""The last part of each one's address."""


class WrongAnswerError(Exception):
    """An answer that cannot be put right: what was expected, and what was found, whole if it is the server's own."""

    def __init__(self, expected: str, found: str, *, own: bool = True) -> None:
        super().__init__(expected, found)
        self.expected, self.found, self.own = expected, found, own


def rerank_question(api: Api, model: str | None, query: str, passages: Sequence[str]) -> bytes:
    """The JSON that asks for the scores of all ``passages``."""
    if api == "cohere":
        asked = {"query": query, "documents": list(passages), "top_n": len(passages)}
    else:
        # As they are: the sigmoid makes ties of high scores.
        asked = {"query": query, "texts": list(passages), "raw_scores": True, "truncate": True}
    return _json(asked, model)


def embedding_question(model: str | None, texts: Sequence[str]) -> bytes:
    """The JSON that asks for the vectors of ``texts``."""
    return _json({"input": list(texts), "encoding_format": "float"}, model)


def _json(asked: Mapping[str, object], model: str | None) -> bytes:
    return json.dumps(({} if model is None else {"model": model}) | dict(asked)).encode()


def scores_in(answer: object, api: Api, size: int) -> NDArray[np.float64]:
    """The scores [size] in a server's answer, in the order of the question.

    Raises WrongAnswerError unless each passage has exactly one score, a finite number.
    """
    name = "relevance_score" if api == "cohere" else "score"
    rows = _entry(answer, "results") if api == "cohere" else answer
    values = _by_index(rows, size, name, "score")
    wrong = next((value for value in values if not _is_number(value)), None)
    if wrong is not None or None in values:
        raise WrongAnswerError("finite numbers as scores", _text(wrong))
    return np.array(values, np.float64)


def vectors_in(answer: object, size: int) -> NDArray[np.float32]:
    """The vectors [size, dimensions] in a server's answer, in the order of the question.

    Raises WrongAnswerError unless each text has one vector, of finite numbers and not of zeros alone, all of a length.
    """
    values = _by_index(_entry(answer, "data"), size, "embedding", "vector")
    for value in values:
        if not isinstance(value, list) or not value:
            raise WrongAnswerError("vectors as lists of numbers", _text(value))
        if not all(map(_is_number, value)):
            wrong = next(number for number in value if not _is_number(number))
            raise WrongAnswerError("finite numbers in vectors", _text(wrong))
    lengths = sorted({len(value) for value in values if isinstance(value, list)})
    if len(lengths) > 1:
        raise WrongAnswerError("vectors of one length", f"{lengths[0]} and {lengths[-1]} numbers", own=False)
    vectors = np.array(values, np.float64)
    if (np.abs(vectors) > np.finfo(np.float32).max).any():
        raise WrongAnswerError("numbers of 32 bits in vectors", "larger ones", own=False)
    single = vectors.astype(np.float32)
    if not single.any(axis=1).all():
        raise WrongAnswerError("vectors with a direction", "zeros only", own=False)
    return single


def _entry(answer: object, name: str) -> object:
    if not isinstance(answer, dict) or name not in answer:
        raise WrongAnswerError(f"an object with {name!r}", _text(answer))
    return answer[name]


def _by_index(rows: object, size: int, name: str, noun: str) -> list[object]:
    """The value ``name`` of each of ``size`` things, wherever in the answer it stands."""
    if not isinstance(rows, list):
        raise WrongAnswerError(f"a list of {noun}s", _text(rows))
    values: dict[int, object] = {}
    for row in rows:
        if not isinstance(row, dict) or not {"index", name} <= row.keys():
            raise WrongAnswerError(f"entries with 'index' and {name!r}", _text(row))
        index = row["index"]
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < size:
            raise WrongAnswerError(f"an index from 0 to {size - 1}", _text(index))
        if index in values:
            raise WrongAnswerError(f"one {noun} for each text", f"two for the index {index}", own=False)
        values[index] = row[name]
    if len(values) < size:
        raise WrongAnswerError(counted(size, noun), str(len(values)), own=False)
    return [values[index] for index in range(size)]


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    except RecursionError:
        return "lists in lists in lists"
