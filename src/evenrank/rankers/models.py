"""Finds a model's folder and loads it, without running its code or unpickling anything."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from evenrank.io import EvenrankError, InputError
from evenrank.io.errors import quoted, readable

from .hub import READ, bytes_on_hub, download_model, downloaded_model
from .kinds import CHOICES, Architecture, architecture_of, read_object

if TYPE_CHECKING:
    from .protocol import Ranker
    from .truncation import Model

Precision = Literal["auto", "float32", "bfloat16"]
RARE_WORDS = "\u16b1\u16a2\u16be \u2603"
"""Words that few vocabularies contain."""
Text = TypeVar("Text", str, list[str])


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder with weights that sentence-transformers loads, or this library (``architecture`` "kernel")."""

    name: str
    path: Path
    architecture: Architecture

    def digest(self) -> str:
        """SHA-256 over the names and bytes of the files that loading reads."""
        total = hashlib.sha256()
        for file in sorted(
            file
            for pattern in READ
            for file in self.path.rglob(pattern)
            # Names with a leading dot: what an interrupted save left.
            if not any(part.startswith(".") for part in file.relative_to(self.path).parts) and file.is_file()
        ):
            with file.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            total.update(f"{file.relative_to(self.path).as_posix()} {content}\n".encode())
        return total.hexdigest()


def find_model(model: str, kind: Architecture | None = None) -> ModelFolder:
    """The folder of ``model`` (a local folder, or a name on the hub, which is downloaded) and its architecture.

    Raises InputError for a folder without weights, with pickled weights only, or of a model that cannot score pairs;
    EvenrankError for a name that is neither a folder nor a model that can be downloaded.
    """
    if kind not in (None, *CHOICES):
        raise EvenrankError(f"`kind`: expected {', '.join(CHOICES[:-1])} or {CHOICES[-1]}, found {quoted(kind)}")
    path = find_folder(model)
    return ModelFolder(readable(model_name(model)), path, architecture_of(path, kind))


def model_name(model: str) -> str:
    """The last part of a path or of a name on the hub; of ``runs/my-dot/model``, as trainings write it, my-dot."""
    path = os.path.abspath(model)
    above, name = os.path.split(path)
    return os.path.basename(above) or name if name == "model" else name


def find_folder(model: str) -> Path:
    """The folder of ``model``, as :func:`find_model` finds it, with weights of any architecture."""
    path = Path(model)
    if not path.is_dir():
        path = download_model(model)
    _check_weights(path)
    return path


def model_bytes(model: str) -> int:
    """The size of the files that loading ``model`` reads; of a name on the hub without downloading them.

    Raises EvenrankError as :func:`find_folder`.
    """
    path = Path(model) if Path(model).is_dir() else downloaded_model(model)
    if path is None:
        return bytes_on_hub(model)
    _check_weights(path)
    return sum(file.stat().st_size for pattern in READ for file in path.rglob(pattern) if file.is_file())


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def _check_weights(path: Path) -> None:
    safe = {file.parent for file in path.rglob("*.safetensors")}
    for file in sorted(path.rglob("pytorch_model*.bin")):
        inside = file.relative_to(path).parts[:-1]
        # Checkpoints of a trainer are not part of the model.
        if file.parent not in safe and not any(part.startswith(("checkpoint-", ".")) for part in inside):
            raise InputError(
                file, "pickled weights are not loaded, because they can run code: save the model as model.safetensors"
            )
    if not safe:
        raise InputError(path, "the folder has no weights: expected model.safetensors")


def chosen_device(device: str | None) -> str:
    """``device``, or the fastest one available. Raises EvenrankError for a device that cannot be used."""
    import torch
    from sentence_transformers.util import get_device_name

    if device is None:
        return str(get_device_name())
    try:
        # Creating a tensor is not enough: "meta" can do that, but not compute.
        torch.ones(1, device=device).sum().item()
    except (RuntimeError, AssertionError, ImportError):
        available = ", ".join(("cpu", *_accelerators()))
        raise EvenrankError(f"`device`: {quoted(device)} cannot be used; this machine has {available}") from None
    return device


def _accelerators() -> list[str]:
    import torch

    kind = torch.accelerator.current_accelerator(check_available=True)
    return [f"{kind.type}:{number}" for number in range(torch.accelerator.device_count())] if kind else []


def load_encoder(folder: ModelFolder, precision: Precision = "auto", device: str | None = None) -> Model:
    """The sentence-transformers model of a folder, in evaluation mode.

    With ``precision="auto"`` it computes in bf16 on a GPU that supports it (what makes a cross-encoder's score stays in
    float32), else in float32. Raises InputError for a model that cannot be loaded, whose scores would be random, or
    that gives several scores per pair.
    """
    import torch

    from .heads import check_head

    device = chosen_device(device)
    dtype = torch.bfloat16 if precision == "bfloat16" or (precision == "auto" and _has_bf16(device)) else torch.float32
    options = {"use_safetensors": True, "dtype": dtype}
    load = _loader(folder.architecture)
    try:
        with quiet_loading():
            model = load(
                str(folder.path), device=device, trust_remote_code=False, local_files_only=True, model_kwargs=options
            )
    except Exception as error:  # tokenizers raises Exception itself for a damaged file
        raise loading_problem(folder.path, error) from None
    check_head(folder.path, model)
    if folder.architecture == "cross":
        check_tokeniser(folder.path, model.preprocess, ["a", RARE_WORDS])
    else:
        for task in ("query", "document"):
            check_tokeniser(folder.path, partial(model.preprocess, task=task), RARE_WORDS)
    return model.eval()


def _loader(architecture: Architecture) -> Callable[..., Model]:
    import sentence_transformers

    names = {"cross": "CrossEncoder", "sparse": "SparseEncoder", "late": "MultiVectorEncoder"}
    loader: Callable[..., Model] = getattr(sentence_transformers, names.get(architecture, "SentenceTransformer"))
    return loader


def load_kernel_ranker(folder: ModelFolder, device: str | None = None) -> Ranker:
    """The kernel ranker of a folder. Raises InputError if the folder names none or lacks its weights."""
    from .protocol import RANKERS, REGISTERED, config_file, ranker_class

    kind = read_object(config_file(folder.path)).get("kind")
    if not isinstance(kind, str) or kind not in {*RANKERS, *REGISTERED} or kind in ("cat", "dot"):
        raise InputError(config_file(folder.path), f"expected the kind of a kernel ranker, found {quoted(kind)}")
    return ranker_class(kind).load(folder.path).to(chosen_device(device)).eval()


def check_tokeniser(path: Path, tokenise: Callable[[list[Text]], object], text: Text) -> None:
    """Raises InputError if a tokeniser cannot read ``text``, with a word that it does not know: it is damaged."""
    try:
        tokenise([text])
    except Exception as error:  # tokenizers raises Exception itself
        raise InputError(path, f"the tokeniser cannot read an unknown word ({_first_line(error)})") from None


def loading_problem(path: Path, error: Exception) -> InputError:
    """A loader's error as one line that names the folder."""
    return InputError(path, f"the model cannot be loaded ({type(error).__name__}: {_first_line(error)})")


def _has_bf16(device: str) -> bool:
    import torch

    return device.startswith("cuda") and torch.cuda.is_bf16_supported(including_emulation=False)


class _LoadReport(logging.Filter):
    """Shortens transformers' report of a checkpoint's weights to what a user must know.

    A missing head or pooler is usual, and so are layers that were not asked for; missing weights of the encoder, which
    would start at random, are not.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is shown."""
        text = re.sub(r"\x1b\[[0-9;]*m", "", record.getMessage())
        if "LOAD REPORT" not in text:
            return True
        missing = [line.partition("|")[0].strip() for line in text.splitlines() if re.search(r"\|\s*MISSING\b", line)]
        encoder = [name for name in missing if re.search(r"(^|[._])(embeddings?|layers?|h|blocks?)[._]", name)]
        record.msg = f"weights missing from the checkpoint are initialised at random: {', '.join(encoder)}"
        record.args = ()
        return bool(encoder)


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Without the loaders' progress bars, and with a shorter report of a checkpoint's weights."""
    from transformers.utils import logging as transformers_logging

    enabled = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    loader, report = logging.getLogger("transformers.modeling_utils"), _LoadReport()
    loader.addFilter(report)
    try:
        yield
    finally:
        loader.removeFilter(report)
        if enabled:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
