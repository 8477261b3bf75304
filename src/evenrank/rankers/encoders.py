"""What ``cat`` and ``dot`` share: starting from a checkpoint, tokenising, saving a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from evenrank.io import EvenrankError, InputError
from evenrank.io.written import folder_within, remove_unlocked, usual_mode

from .models import check_tokeniser, find_folder, hushed, loading_problem
from .protocol import Ranker

if TYPE_CHECKING:
    from sentence_transformers.base.modules import Transformer

_BATCH = 256
Array = np.ndarray[Any, Any]
Task = Literal["sequence-classification", "feature-extraction"]


def start_encoder(model: str, task: Task, layers: int | None, max_length: int, **settings: Any) -> Transformer:
    """A transformer and its tokeniser from a checkpoint: a folder, or a name on the hub.

    Weights that the checkpoint lacks (a head, a pooler) come from the current random state. ``layers``: only so many
    of the first layers; ``max_length``: tokens of a text or pair, or fewer where the model has fewer positions.
    Raises EvenrankError for a setting out of range or a name that is no model; InputError for a folder without
    weights, or of a form that cannot be loaded.
    """
    from sentence_transformers.base.modules import Transformer
    from transformers import AutoConfig

    if max_length < 1:
        raise EvenrankError(f"length: expected 1 or more, found {max_length}")
    path = find_folder(model)
    local = {"trust_remote_code": False, "local_files_only": True}
    try:
        config = AutoConfig.from_pretrained(path, **local)
    except Exception as error:  # as in models.load
        raise loading_problem(path, error) from None
    with hushed():
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
    if encoder.tokenizer is None:
        raise InputError(path, "the model has no tokeniser")
    check_tokeniser(path, encoder.tokenizer)
    encoder.tokenizer.model_max_length = min(max_length, encoder.tokenizer.model_max_length)
    return encoder


def _settings(path: Path, config: Any, task: Task, layers: int | None) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if task == "sequence-classification":
        classifier = str(next(iter(config.architectures or ()), "")).endswith("ForSequenceClassification")
        if classifier and config.num_labels != 1:
            raise InputError(path, f"expected a model with one score a pair, found {config.num_labels}")
        settings["num_labels"] = 1
    if layers is not None:
        known = config.num_hidden_layers
        if not 1 <= layers <= known:
            raise EvenrankError(f"layers: expected 1 to {known}, found {layers}")
        settings["num_hidden_layers"] = layers
        # One entry a layer, where an architecture has layers of several kinds.
        if getattr(config, "layer_types", None):
            settings["layer_types"] = list(config.layer_types[:layers])
    return settings


def tokenise(model: Any, texts: Sequence[Any], prompt: str | None = None, **settings: Any) -> dict[str, Tensor]:
    """The tensors [n, ·] of n texts or pairs as ``model`` itself makes them, padded to the longest; none for no text.

    Among them ``cut`` [n] bool: where tokens beyond the greatest length were left out.
    """
    features = model.preprocess(list(texts), prompt=prompt or None, **settings)
    tensors = {name: value for name, value in features.items() if isinstance(value, Tensor)}
    encodings = getattr(features, "encodings", None)
    if tensors and encodings:
        # What was left out is kept beside what was kept, and only there where a row is as long as the batch.
        full = (tensors["attention_mask"].sum(1) == tensors["attention_mask"].shape[1]).tolist()
        cut = [longest and bool(row.overflowing) for longest, row in zip(full, encodings, strict=True)]
        tensors["cut"] = torch.tensor(cut)
    return tensors


class TokenCache:
    """:func:`tokenise` for single texts that come again, as they do in every epoch: each is taken apart once.

    For one model, prompt and task. Keeps the texts that come first, up to ``limit`` tokens (4 bytes each, 8 with token
    types); gives the same tensors.
    """

    def __init__(self, model: Any, prompt: str, task: str, limit: int = 1 << 23) -> None:
        self._tokenise = partial(tokenise, model, prompt=prompt, task=task)
        self._room = limit
        self._rows: dict[str, tuple[Array, bool]] = {}
        # What a text is padded with, and on which side.
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
        here = {text: self._rows.get(text) for text in texts}
        new = [text for text, row in here.items() if row is None]
        if new:
            here.update(self._taken_apart(new))
        return self._padded([row for row in map(here.__getitem__, texts) if row is not None])

    def _taken_apart(self, texts: Sequence[str]) -> dict[str, tuple[Array, bool]]:
        tensors = self._tokenise(texts)
        values = torch.stack([tensors[name] for name in self._padding]).to(torch.int32).numpy()
        read, cut = tensors["attention_mask"].bool().numpy(), tensors["cut"].tolist()
        found = {text: (values[:, row, read[row]], cut[row]) for row, text in enumerate(texts)}
        for text, row in found.items():
            if self._room > 0:
                self._room -= row[0].shape[1]
                self._rows[text] = row
        return found

    def _padded(self, rows: Sequence[tuple[Array, bool]]) -> dict[str, Tensor]:
        lengths = np.array([tokens.shape[1] for tokens, _ in rows])
        place = np.arange(lengths.max())
        read = (place[::-1] if self._left else place) < lengths[:, None]
        found = {"attention_mask": torch.from_numpy(read.astype(np.int64))}
        tokens = np.concatenate([tokens for tokens, _ in rows], axis=1)
        for (name, padding), values in zip(self._padding.items(), tokens, strict=True):
            whole = np.full(read.shape, padding, dtype=np.int64)
            whole[read] = values
            found[name] = torch.from_numpy(whole)
        return {**found, "cut": torch.tensor([cut for _, cut in rows])}


def reads_to(model: Any, texts: Sequence[Any], prompt: str | None = None, **settings: Any) -> list[int]:
    """How many characters of each of n texts (of the second of each pair) ``model`` reads before it cuts."""
    ends = []
    for start in range(0, len(texts), _BATCH):
        features = model.preprocess(list(texts[start : start + _BATCH]), prompt=prompt or None, **settings)
        for text, row in zip(texts[start : start + _BATCH], features.encodings, strict=True):
            pair = not isinstance(text, str)
            last = max(
                (e for (_, e), s in zip(row.offsets, row.sequence_ids, strict=True) if s == int(pair)), default=0
            )
            # The prompt stands before a single text; a pair's stands before its query.
            ends.append(last if pair else max(0, last - len(prompt or "")))
    return ends


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random numbers on the CPU from ``seed``, and as if nothing had been drawn afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def saving(folder: str | os.PathLike[str]) -> Iterator[str]:
    """A folder to write into, whose files move to ``folder`` when all are written; those of the same name go.

    Raises InputError where ``folder`` cannot be written.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        # What other machines left too: a folder is saved to by one process at a time.
        for left in target.glob(".saving.*.part"):
            remove_unlocked(left)
        with folder_within(target, "saving") as part, hushed():
            yield str(part)
            for file in sorted(path for path in part.rglob("*") if path.is_file()):
                place = target / file.relative_to(part)
                place.parent.mkdir(parents=True, exist_ok=True)
                # safetensors makes private files.
                file.chmod(usual_mode(place))
                file.replace(place)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error).split("\n")[0]
        raise InputError(target, f"cannot be written: {reason}") from None


class EncoderRanker(Ranker):
    """A ranker around a model of sentence-transformers, as which its folder loads."""

    model: Any

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """``embeddings``, ``encoder`` (its layers) and ``head`` (pooler, classifier, projection), those there are."""
        groups: dict[str, list[nn.Parameter]] = {"embeddings": [], "encoder": [], "head": []}
        for name, parameter in self.model.named_parameters():
            in_layers = ".layer" in name or ".encoder." in name
            groups["embeddings" if ".embed" in name else "encoder" if in_layers else "head"].append(parameter)
        return {name: parameters for name, parameters in groups.items() if parameters}

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes a folder that sentence-transformers loads, and scores the same with.

        Raises InputError where it cannot be written.
        """
        with saving(folder) as part:
            self.model.save_pretrained(part, create_model_card=False)
