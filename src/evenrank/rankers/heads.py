"""What turns a model's last vectors into scores: that a checkpoint has it, and that it computes in float32."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evenrank.io import InputError

if TYPE_CHECKING:
    import torch
    from sentence_transformers import CrossEncoder
    from torch import nn

    from .truncation import Model


def check_head(path: Path, model: Model) -> None:
    """Raises InputError if the weights in a folder lack the head of ``model``, loaded from them, or score otherwise.

    The last layer of a cross-encoder computes in float32 from now on: in bf16 scores have three digits, so rankings
    would be full of ties.
    """
    from sentence_transformers import CrossEncoder, SparseEncoder

    if isinstance(model, CrossEncoder):
        if model.num_labels != 1:
            raise InputError(path, f"expected a model with one score per pair, found {model.num_labels}")
        if is_causal(model):
            _check_words(path, model)
            _require(path, model)
            _keep_words_exact(model)
        else:
            _check_layer(path, model)
    elif isinstance(model, SparseEncoder):
        _require(path, model)


def is_causal(model: Model) -> bool:
    """Whether the score is a causal language model's: the logit of one word, often less that of another."""
    from sentence_transformers.cross_encoder.modules import LogitScore

    return any(isinstance(part, LogitScore) for part in model)


def _words(model: CrossEncoder) -> list[int]:
    """The numbers of the words whose logits make the score."""
    from sentence_transformers.cross_encoder.modules import LogitScore

    score = next(part for part in model if isinstance(part, LogitScore))
    return [word for word in (score.true_token_id, score.false_token_id) if word is not None]


def _check_layer(path: Path, model: CrossEncoder) -> None:
    """A linear layer with one output."""
    import torch

    linear = [(name, part) for name, part in model.named_modules() if type(part) is torch.nn.Linear]
    heads = [name for name, part in linear if part.out_features == 1]
    if heads and not any(key.endswith(f"{heads[-1].split('.')[-1]}.weight") for key in _weight_names(path)):
        raise InputError(path, f"the weights lack the head {heads[-1]}: its scores would be random")
    if heads and model.dtype != torch.float32:
        model.set_keep_in_fp32_modules(heads[-1:])


def _check_words(path: Path, model: CrossEncoder) -> None:
    """A language model's tokeniser gives an unknown word the number of any other unknown one, or none."""
    words = _words(model)
    unknown = getattr(model.tokenizer, "unk_token_id", None)
    if len(set(words)) < len(words) or (unknown is not None and unknown in words):
        raise InputError(path, "the tokeniser lacks the words whose logits make the score (yes and no by default)")


def _require(path: Path, model: Model) -> None:
    """Raises InputError if linear layers behind a language model's encoder would start at random.

    Those that share the weights of its embeddings are not in the checkpoint by themselves.
    """
    import torch
    from transformers import PreTrainedModel

    names = set(_weight_names(path))
    seen: set[int] = set()
    for whole in (part for part in model.modules() if isinstance(part, PreTrainedModel)):
        if id(whole) in seen:  # part of another
            continue
        seen |= {id(part) for part in whole.modules()}
        inside = {id(part) for part in whole.base_model.modules()}
        embeddings = whole.get_input_embeddings()
        for name, part in whole.named_modules():
            if type(part) is not torch.nn.Linear or id(part) in inside or part.weight is embeddings.weight:
                continue
            if not any(key == f"{name}.weight" or key.endswith(f".{name}.weight") for key in names):
                raise InputError(path, f"the weights lack the head {name}: its scores would be random")


def _keep_words_exact(model: CrossEncoder) -> None:
    """Has the logits that make the score computed from a float32 vector and float32 weights."""
    import torch
    from torch.nn import functional

    head: nn.Module | None = model.transformers_model.get_output_embeddings() if model.transformers_model else None
    if model.dtype == torch.float32 or type(head) is not torch.nn.Linear:
        return
    words = _words(model)

    def exact(layer: nn.Linear, given: tuple[torch.Tensor, ...], found: torch.Tensor) -> torch.Tensor:
        bias = None if layer.bias is None else layer.bias[words].float()
        logits = found.float()
        logits[..., words] = functional.linear(given[0].float(), layer.weight[words].float(), bias)
        return logits

    head.register_forward_hook(exact)


def _weight_names(path: Path) -> Iterator[str]:
    from safetensors import safe_open

    for file in path.rglob("*.safetensors"):
        with safe_open(file, "numpy") as weights:
            yield from weights.keys()
