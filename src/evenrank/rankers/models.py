"""Which kind of model a folder holds, and how it is loaded: no code of the model's, nothing unpickled.

The kind, from the model's own files:
1. with ``evenrank.json``: a kernel ranker of this library;
2. with ``modules.json``: the ``model_type`` of ``config_sentence_transformers.json``, a bi-encoder where it says none
   (as models saved before it did);
3. else from ``architectures`` in ``config.json``: ``…ForSequenceClassification`` is a cross-encoder;
4. anything else is refused until the caller names the kind: a plain encoder scores as a bi-encoder (mean pooling), a
   ``…ForCausalLM`` as a cross-encoder (its "yes" against its "no").
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evenrank.io import EvenrankError, InputError, MissingExtraError
from evenrank.io.errors import readable, shown

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

    from .protocol import Ranker

Kind = Literal["cross", "bi", "kernel"]
Precision = Literal["auto", "float32", "bfloat16"]
# Some of the oldest models have no owner (bert-base-uncased).
_HUB_NAME = re.compile(r"(\w[\w.-]*/)?\w[\w.-]*", re.ASCII)
_KINDS: dict[str, Kind] = {"CrossEncoder": "cross", "SentenceTransformer": "bi"}
_READ = ["*.json", "*.txt", "*.model", "*.safetensors"]
# The same weights again, for programs that this one does not use.
_NOT_READ = ["onnx/*", "openvino/*"]
# The name that protocol.config_file gives; that module brings PyTorch along.
_KERNEL = "evenrank.json"
_STRANGE = "\u16b1\u16a2\u16be \u2603"
"""Words that few vocabularies hold."""
CACHE = ".evenrank"
"""Where, beside a model, what this program derives from it is kept: no part of the model."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder with weights that sentence-transformers loads, or this library (``kind`` "kernel")."""

    name: str
    path: Path
    kind: Kind

    def digest(self) -> str:
        """SHA-256 over the names and bytes of the files that loading reads."""
        total = hashlib.sha256()
        for file in sorted(
            file
            for pattern in _READ
            for file in self.path.rglob(pattern)
            # A name with a dot before it: exports, and what a killed save left.
            if not any(part.startswith(".") for part in file.relative_to(self.path).parts) and file.is_file()
        ):
            with file.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            total.update(f"{file.relative_to(self.path).as_posix()} {content}\n".encode())
        return total.hexdigest()


def require_extra() -> None:
    """Raises MissingExtraError where the libraries for neural models are missing."""
    require("re-ranking", "neural", "torch", "transformers", "sentence_transformers")


def require(what: str, extra: str, *names: str) -> None:
    """Raises MissingExtraError where a module that ``what`` needs is missing."""
    # Only looked for: importing them takes seconds, too long before a mistake in the input is told.
    if any(find_spec(name) is None for name in names):
        raise MissingExtraError(what, extra)


def find_model(model: str, kind: Kind | None = None) -> ModelFolder:
    """The folder of ``model`` (a local folder, else a name on the hub, fetched) and its kind.

    Raises InputError for a folder without weights, with weights only in a form that has to be unpickled, or of a kind
    that cannot score pairs; EvenrankError for a name that is neither a folder nor a model that can be fetched.
    """
    if kind not in (None, "cross", "bi"):
        raise EvenrankError(f"kind: expected cross or bi, found {shown(kind)}")
    path = find_folder(model)
    return ModelFolder(readable(_model_name(model)), path, _kind(path, kind))


def _model_name(model: str) -> str:
    """A model's own name: of ``runs/my-dot/model``, where trainings leave theirs, that of the folder above."""
    path = os.path.abspath(model)
    above, name = os.path.split(path)
    return os.path.basename(above) or name if name == "model" else name


def find_folder(model: str) -> Path:
    """The folder of ``model``, as :func:`find_model` finds it, with weights of whatever kind."""
    path = Path(model)
    if not path.is_dir():
        path = _fetch(model)
    _check_weights(path)
    return path


def _fetch(model: str) -> Path:
    if not _HUB_NAME.fullmatch(model):
        raise EvenrankError(f"{model}: no such folder (and a model on the hub is written OWNER/NAME or NAME)")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, allow_patterns=_READ, ignore_patterns=_NOT_READ))
    except Exception as error:  # the hub's client raises many kinds; each means that there is no model
        reason = str(error).strip().split("\n")[0]
        raise EvenrankError(f"{model}: no such folder, and no model that the hub gives ({reason})") from None


def _check_weights(path: Path) -> None:
    safe = {file.parent for file in path.rglob("*.safetensors")}
    for file in sorted(path.rglob("pytorch_model*.bin")):
        inside = file.relative_to(path).parts[:-1]
        # What a trainer left behind is not part of the model.
        if file.parent not in safe and not any(part.startswith(("checkpoint-", ".")) for part in inside):
            raise InputError(
                file, "these weights are not opened, because that can run code: save the model as model.safetensors"
            )
    if not safe:
        raise InputError(path, "the folder holds no weights: expected model.safetensors")


def _json(path: Path) -> dict[str, Any]:
    """The JSON object in a file, empty where there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (ValueError, RecursionError):
        content = None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from None
    if not isinstance(content, dict):
        raise InputError(path, "expected a JSON object")
    return content


def _kind(path: Path, wanted: Kind | None) -> Kind:
    if (path / _KERNEL).is_file():
        if wanted is not None:
            raise InputError(path, f"this is a ranker of this library ({_KERNEL}): it has no other kind")
        return "kernel"
    if (path / "modules.json").is_file():
        saved = _json(path / "config_sentence_transformers.json").get("model_type", "SentenceTransformer")
        if not isinstance(saved, str) or saved not in _KINDS:
            raise InputError(path, f"expected a cross-encoder or a bi-encoder, found a {str(saved)[:60]}")
        if wanted == "cross" and _KINDS[saved] == "bi":
            raise InputError(path, "this is a bi-encoder: it has no head that scores a pair")
        return wanted or _KINDS[saved]
    architectures = _json(path / "config.json").get("architectures") or []
    if not isinstance(architectures, list):
        raise InputError(path / "config.json", f"expected a list of architectures, found {shown(architectures)}")
    architecture = str(next(iter(architectures), "none"))
    if architecture.endswith("ForSequenceClassification"):
        return wanted or "cross"
    if wanted == "cross" and not architecture.endswith("ForCausalLM"):
        raise InputError(path, f"expected an architecture with a head that scores a pair, found {architecture}")
    if wanted is None:
        raise InputError(
            path,
            f"cannot tell a cross-encoder from a bi-encoder (architecture {architecture}): set `kind` to bi or cross",
        )
    return wanted


def chosen_device(device: str | None) -> str:
    """``device``, or the fastest that there is. Raises EvenrankError for one that is not there."""
    import torch
    from sentence_transformers.util import get_device_name

    if device is None:
        return str(get_device_name())
    try:
        # Not only made there, but computed with and brought back: "meta" cannot.
        torch.ones(1, device=device).sum().item()
    except Exception:  # each kind of device has errors of its own
        there = ", ".join(("cpu", *_accelerators()))
        raise EvenrankError(f"`device`: {shown(device)} cannot be used; this machine has {there}") from None
    return device


def _accelerators() -> list[str]:
    import torch

    kind = torch.accelerator.current_accelerator(check_available=True)
    return [f"{kind.type}:{number}" for number in range(torch.accelerator.device_count())] if kind else []


def load(folder: ModelFolder, precision: Precision = "auto", device: str | None = None) -> Any:
    """The sentence-transformers model of a folder: a CrossEncoder or a SentenceTransformer.

    bf16 where a GPU computes in it (``precision="auto"``), the head of a cross-encoder in float32 still; else float32.
    Raises InputError for a model that cannot be loaded or that gives more than one score a pair.
    """
    import torch
    from sentence_transformers import CrossEncoder, SentenceTransformer

    device = chosen_device(device)
    dtype = torch.bfloat16 if precision == "bfloat16" or (precision == "auto" and _has_bf16(device)) else torch.float32
    options = {"use_safetensors": True, "dtype": dtype}
    chosen = CrossEncoder if folder.kind == "cross" else SentenceTransformer
    try:
        with hushed():
            model = chosen(
                str(folder.path), device=device, trust_remote_code=False, local_files_only=True, model_kwargs=options
            )
    except Exception as error:  # the loaders raise many kinds; each means that this folder is no usable model
        raise loading_problem(folder.path, error) from None
    if folder.kind == "cross":
        _check_head(folder.path, model)
    check_tokeniser(folder.path, model.preprocess, ["a", _STRANGE] if folder.kind == "cross" else _STRANGE)
    return model.eval()


def load_kernel(folder: ModelFolder, device: str | None = None) -> Ranker:
    """The kernel ranker of a folder. Raises InputError where the folder names none, or holds no weights of it."""
    from .protocol import RANKERS, config_file, ranker_class

    kind = _json(config_file(folder.path)).get("kind")
    if not isinstance(kind, str) or kind not in RANKERS or kind in ("cat", "dot"):
        raise InputError(config_file(folder.path), f"expected the kind of a kernel ranker, found {shown(kind)}")
    return ranker_class(kind).load(folder.path).to(chosen_device(device)).eval()


def check_tokeniser(path: Path, tokenise: Callable[[list[Any]], object], text: Any = _STRANGE) -> None:
    """Raises InputError where a tokeniser cannot read a word that it does not know: its vocabulary is damaged."""
    try:
        tokenise([text])
    except Exception as error:  # the tokenisers' own kinds
        reason = str(error).strip().split("\n")[0]
        raise InputError(path, f"its tokeniser cannot read a word that it does not know ({reason})") from None


def loading_problem(path: Path, error: Exception) -> InputError:
    """What a loader's error is to the user: one line that names the folder."""
    reason = str(error).strip().split("\n")[0]
    return InputError(path, f"the model cannot be loaded ({type(error).__name__}: {reason})")


def _check_head(path: Path, model: CrossEncoder) -> None:
    import torch

    if model.num_labels != 1:
        raise InputError(path, f"expected a model with one score a pair, found {model.num_labels}")
    linear = [(name, part) for name, part in model.named_modules() if type(part) is torch.nn.Linear]
    heads = [name for name, part in linear if part.out_features == 1]
    if heads and not any(key.endswith(f"{heads[-1].split('.')[-1]}.weight") for key in _weight_names(path)):
        raise InputError(path, f"the weights lack the head {heads[-1]}: its scores would be random")
    # In bf16 a score has three digits: a list would be full of ties.
    if heads and model.dtype != torch.float32:
        model.set_keep_in_fp32_modules(heads[-1:])


def _weight_names(path: Path) -> Iterator[str]:
    from safetensors import safe_open

    for file in path.rglob("*.safetensors"):
        with safe_open(file, "numpy") as weights:
            yield from weights.keys()


def _has_bf16(device: str) -> bool:
    import torch

    return device.startswith("cuda") and torch.cuda.is_bf16_supported(including_emulation=False)


class _LoadReport(logging.Filter):
    """Of transformers' report of a checkpoint's weights leaves what a user must know.

    A head or a pooler that is not there is usual, layers that are not asked for too; an encoder that starts at random
    is not.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is shown."""
        text = re.sub(r"\x1b\[[0-9;]*m", "", record.getMessage())
        if "LOAD REPORT" not in text:
            return True
        missing = [line.partition("|")[0].strip() for line in text.splitlines() if re.search(r"\|\s*MISSING\b", line)]
        body = [name for name in missing if re.search(r"(^|[._])(embeddings?|layers?|h|blocks?)[._]", name)]
        record.msg = f"weights that the checkpoint lacks start at random: {', '.join(body)}"
        record.args = ()
        return bool(body)


@contextmanager
def hushed() -> Iterator[None]:
    """Without the loaders' own progress bars, and with no more of their report of weights than a user must know."""
    from transformers.utils import logging as own

    shown_before = own.is_progress_bar_enabled()
    own.disable_progress_bar()  # type: ignore[no-untyped-call]
    loader, report = logging.getLogger("transformers.modeling_utils"), _LoadReport()
    loader.addFilter(report)
    try:
        yield
    finally:
        loader.removeFilter(report)
        if shown_before:
            own.enable_progress_bar()  # type: ignore[no-untyped-call]
