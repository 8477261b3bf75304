"""How many texts a model cuts, counted on what it tokenises anyway."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from evenrank.io.wording import are, counted, plural

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer, SparseEncoder

    Model: TypeAlias = "CrossEncoder | SentenceTransformer | SparseEncoder | MultiVectorEncoder"

_NO_LIMIT = 10**9
"""Tokenisers without a limit have a larger one."""


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

    def to_dict(self) -> dict[str, str | int | None]:
        """As JSON values."""
        return asdict(self)

    def notes(self, model: str) -> tuple[str, ...]:
        """What to tell of it, in sentences; none if nothing was cut."""
        if not self.cut:
            return ()
        limit = "it reads" if self.reads is None else f"the {counted(self.reads, 'token')} that it reads"
        found = f"{model}: {self.cut:,} of {counted(self.of, self.unit)} {are(self.cut)} longer than {limit}"
        if not self.lost_end:
            return (found,)
        lost = self.unit if self.lost_end == 1 else plural(self.unit)
        return found, f"{model}: {self.lost_end:,} {lost} lost the end of the prompt, from which the score is read"


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
            self._look(model, inputs, str(settings.get("prompt") or ""), features)
            return features

        before = own.get("preprocess")
        own["preprocess"] = looked_at
        try:
            yield
        finally:
            own.pop("preprocess")
            if before is not None:
                own["preprocess"] = before

    def _look(self, model: Model, inputs: Sequence[object], prompt: str, features: dict[str, object]) -> None:
        static = "offsets" in features
        rows = _static_rows(model, inputs, prompt, features) if static else truncated_rows(features)
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


def _static_rows(model: Model, inputs: Sequence[object], prompt: str, features: dict[str, object]) -> list[bool] | None:
    """As :func:`truncated_rows` for static embeddings, whose texts are joined and seldom truncated at all."""
    import torch

    tokeniser = getattr(model[0], "tokenizer", None)
    limits = getattr(tokeniser, "truncation", None)
    ids, offsets = features["input_ids"], features["offsets"]
    if (
        limits is None
        or tokeniser is None
        or not isinstance(ids, torch.Tensor)
        or not isinstance(offsets, torch.Tensor)
    ):
        return [False] * len(inputs)
    lengths = torch.diff(offsets, append=torch.tensor([len(ids)])).tolist()
    # Only a text of the greatest length can have been longer.
    full = [row for row, length in enumerate(lengths) if length >= limits["max_length"]]
    rows = [False] * len(inputs)
    again = tokeniser.encode_batch([f"{prompt}{inputs[row]}" for row in full], add_special_tokens=False)
    for row, encoding in zip(full, again, strict=True):
        rows[row] = bool(encoding.overflowing)
    return rows


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
