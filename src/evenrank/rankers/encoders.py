"""What ``cat`` and ``dot`` share: checkpoints, tokenisation, saving."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from evenrank.io import EvenrankError, InputError
from evenrank.io.outputs import folder_within, remove_unlocked, usual_mode
from evenrank.io.types import Array

from .models import (
    RARE_WORDS,
    check_tokeniser,
    check_weights,
    find_folder,
    loading_problem,
    of_encoder,
    quiet_loading,
)
from .protocol import Ranker
from .scorers import truncated_rows

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from transformers import PretrainedConfig

    from .scorers import Model

    Encoder: TypeAlias = "CrossEncoder | SentenceTransformer | Transformer"

_BATCH = 256
Task = Literal["sequence-classification", "feature-extraction"]


def start_encoder(model: str, task: Task, layers: int | None, max_length: int, **settings: int) -> Transformer:
    """A transformer and its tokeniser from a checkpoint: a folder, or a name on the hub.

    Weights missing from the checkpoint (a head, a pooler) come from the current random state. ``layers``: the number
    of layers kept, from the first; ``max_length``: tokens of a text or pair, at most the model's positions. Raises
    EvenrankError for a setting out of range or an unknown name; InputError for a folder that cannot be loaded.
    """
    from sentence_transformers.base.modules import Transformer
    from transformers import AutoConfig

    if max_length < 1:
        raise EvenrankError(f"`max_length`: expected 1 or more, found {max_length}")
    path = find_folder(model)
    local: dict[str, object] = {"trust_remote_code": False, "local_files_only": True}
    try:
        config = AutoConfig.from_pretrained(path, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # as in load_encoder
        raise loading_problem(path, error) from None
    with quiet_loading() as missing:
        try:
            encoder = Transformer(
                str(path),
                transformer_task=task,
                model_kwargs={"use_safetensors": True, "dtype": torch.float32, **local},
                processor_kwargs=dict(local),
                config_kwargs={**_settings(path, config, task, layers), **local},
                **settings,
            )
        except EvenrankError:
            raise
        except Exception as error:
            raise loading_problem(path, error) from None
    check_weights(path, of_encoder(missing))
    if encoder.tokenizer is None:
        raise InputError(path, "the model has no tokeniser")
    check_tokeniser(path, encoder.tokenizer, RARE_WORDS)
    encoder.tokenizer.model_max_length = min(max_length, encoder.tokenizer.model_max_length)
    return encoder


def _settings(path: Path, config: PretrainedConfig, task: Task, layers: int | None) -> dict[str, object]:
    settings: dict[str, object] = {}
    if task == "sequence-classification":
        classifier = str(next(iter(config.architectures or ()), "")).endswith("ForSequenceClassification")
        if classifier and config.num_labels != 1:
            raise InputError(path, f"expected a model with one score per pair, found {config.num_labels}")
        settings["num_labels"] = 1
    if layers is not None:
        known = config.num_hidden_layers
        if not 1 <= layers <= known:
            raise EvenrankError(f"`layers`: expected 1 to {known}, found {layers}")
        settings["num_hidden_layers"] = layers
        # One entry per layer, if an architecture has layers of several types.
        if getattr(config, "layer_types", None):
            settings["layer_types"] = list(config.layer_types[:layers])
    return settings


def tokenise(
    model: Encoder, texts: Sequence[str] | Sequence[list[str]], prompt: str | None = None, **settings: str
) -> dict[str, Tensor]:
    """The tensors [n, ·] of n texts or pairs as ``model`` tokenises them, padded to the longest; none for n = 0.

    Among them ``cut`` [n] bool: whether a text was truncated.
    """
    features = model.preprocess(list(texts), prompt=prompt or None, **settings)
    tensors = {name: value for name, value in features.items() if isinstance(value, Tensor)}
    cut = truncated_rows(features) if tensors else None
    if cut is not None:
        tensors["cut"] = torch.tensor(cut)
    return tensors


class TokenCache:
    """:func:`tokenise` for single texts that return in every epoch: each is tokenised once.

    For one model, prompt and task. Keeps the first texts, up to ``limit`` tokens (4 bytes each, 8 with token types);
    returns the same tensors.
    """

    def __init__(self, model: Encoder, prompt: str, task: str, limit: int = 1 << 23) -> None:
        self._tokenise = partial(tokenise, model, prompt=prompt, task=task)
        self._room = limit
        self._rows: dict[str, tuple[Array, bool]] = {}
        # The padding of each tensor, and its side.
        probe = self._tokenise(["", "a text that is longer than no text"])
        unread = probe["attention_mask"][0] == 0
        self._left = bool(unread[0])
        self._padding = {
            name: int(value[0][unread][0]) if unread.any() else 0
            for name, value in probe.items()
            if name not in ("attention_mask", "cut")
        }
        self._usable = all(value.shape == unread.shape for value in (probe[name][0] for name in self._padding))

    def __call__(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """The tensors [n, ·] of n texts, padded to the longest."""
        if not texts or not self._usable:
            return self._tokenise(texts)
        rows = {text: self._rows.get(text) for text in texts}
        new = [text for text, row in rows.items() if row is None]
        if new:
            rows.update(self._new_rows(new))
        return self._padded([row for row in map(rows.__getitem__, texts) if row is not None])

    def _new_rows(self, texts: Sequence[str]) -> dict[str, tuple[Array, bool]]:
        tensors = self._tokenise(texts)
        values = torch.stack([tensors[name] for name in self._padding]).to(torch.int32).numpy()
        read, cut = tensors["attention_mask"].bool().numpy(), tensors["cut"].tolist()
        rows = {text: (values[:, row, read[row]], cut[row]) for row, text in enumerate(texts)}
        for text, tokens in rows.items():
            if self._room > 0:
                self._room -= tokens[0].shape[1]
                self._rows[text] = tokens
        return rows

    def _padded(self, rows: Sequence[tuple[Array, bool]]) -> dict[str, Tensor]:
        lengths = np.array([tokens.shape[1] for tokens, _ in rows])
        place = np.arange(lengths.max())
        read = (place[::-1] if self._left else place) < lengths[:, None]
        tensors = {"attention_mask": torch.from_numpy(read.astype(np.int64))}
        tokens = np.concatenate([tokens for tokens, _ in rows], axis=1)
        for (name, padding), values in zip(self._padding.items(), tokens, strict=True):
            whole = np.full(read.shape, padding, dtype=np.int64)
            whole[read] = values
            tensors[name] = torch.from_numpy(whole)
        return {**tensors, "cut": torch.tensor([cut for _, cut in rows])}


def gives_offsets(model: Model, probe: str | list[str], **settings: str) -> bool:
    """Whether the tokeniser of ``model`` shows where in a text each token comes from; ``probe``: a text or a pair."""
    return getattr(model.preprocess([probe], **settings), "encodings", None) is not None


def reads_to(
    model: Model, texts: Sequence[str] | Sequence[list[str]], prompt: str | None = None, **settings: str
) -> list[int]:
    """How many characters of each of n texts (of the second of each pair) ``model`` reads before it truncates."""
    ends = []
    for start in range(0, len(texts), _BATCH):
        features = model.preprocess(list(texts[start : start + _BATCH]), prompt=prompt or None, **settings)
        for text, row in zip(texts[start : start + _BATCH], features.encodings, strict=True):
            pair = not isinstance(text, str)
            last = max(
                (e for (_, e), s in zip(row.offsets, row.sequence_ids, strict=True) if s == int(pair)), default=0
            )
            # The prompt precedes a single text; that of a pair precedes the query.
            ends.append(last if pair else max(0, last - len(prompt or "")))
    return ends


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds the random numbers of the CPU, and restores their state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def saving(folder: str | os.PathLike[str]) -> Iterator[str]:
    """A temporary folder whose files replace those of the same name in ``folder`` once all are written.

    Raises InputError if ``folder`` cannot be written.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        # Also those of other machines: only one process saves to a folder at a time.
        for left in target.glob(".saving.*.part"):
            remove_unlocked(left)
        with folder_within(target, "saving") as part, quiet_loading():
            yield str(part)
            for file in sorted(path for path in part.rglob("*") if path.is_file()):
                place = target / file.relative_to(part)
                place.parent.mkdir(parents=True, exist_ok=True)
                # safetensors creates files that only their owner can read.
                file.chmod(usual_mode(place))
                file.replace(place)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error).split("\n")[0]
        raise InputError(target, f"cannot be written: {reason}") from None


class EncoderRanker(Ranker):
    """A ranker around a model of sentence-transformers, which loads its folder too."""

    model: Encoder

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """``embeddings``, ``encoder`` (its layers) and ``head`` (pooler, classifier, projection), if not empty."""
        groups: dict[str, list[nn.Parameter]] = {"embeddings": [], "encoder": [], "head": []}
        for name, parameter in self.model.named_parameters():
            in_layers = ".layer" in name or ".encoder." in name
            groups["embeddings" if ".embed" in name else "encoder" if in_layers else "head"].append(parameter)
        return {name: parameters for name, parameters in groups.items() if parameters}

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes a folder that sentence-transformers loads, with the same scores.

        Raises InputError if it cannot be written.
        """
        for module in self.model.modules():
            fast = getattr(getattr(module, "tokenizer", None), "backend_tokenizer", None)
            if fast is not None:
                # Settings of the last call, which no later one reads; a resumed training's last call may be another.
                fast.no_truncation()
                fast.no_padding()
        with saving(folder) as part:
            self.model.save_pretrained(part, create_model_card=False)
