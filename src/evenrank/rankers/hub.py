"""Models on the hub: what loading one reads, its size, and its download."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evenrank.io import EvenrankError

READ = ["*.json", "*.txt", "*.model", "*.jinja", "artifact.metadata", "*.safetensors"]
"""The files that loading reads: among them chat templates, and ColBERT's settings."""
_NOT_READ = ["onnx/*", "openvino/*"]
"""The same weights in formats for other programs."""
# Some of the oldest models have no owner (bert-base-uncased).
_NAME = re.compile(r"(\w[\w.-]*/)?\w[\w.-]*", re.ASCII)
_CONVERTER = "SFconvertbot"
"""The hub's own account, which offers safe weights of models that have pickled ones, as pull requests."""


def download_model(model: str) -> Path:
    """The folder of a model on the hub, downloaded if needed.

    Where the model has pickled weights only, those that the hub's converter offers are taken. Raises EvenrankError for
    a name that cannot be downloaded.
    """
    from huggingface_hub import snapshot_download

    with _explained(model):
        path = Path(snapshot_download(model, allow_patterns=READ, ignore_patterns=_NOT_READ))
        if any(path.rglob("*.safetensors")):
            return path
        revision = _converted(model)
        if revision is None:
            return path
        return Path(snapshot_download(model, revision=revision, allow_patterns=READ, ignore_patterns=_NOT_READ))


def downloaded_model(model: str) -> Path | None:
    """The folder of a model on the hub that was downloaded before, without asking the hub; None if there is none."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    with _explained(model):
        try:
            path = Path(snapshot_download(model, local_files_only=True))
        except LocalEntryNotFoundError:
            return None
    return path if any(path.rglob("*.safetensors")) else None


def bytes_on_hub(model: str) -> int:
    """The bytes that a download of a model would bring, without downloading it.

    Raises EvenrankError for an unknown name, and for a model without safe weights.
    """
    with _explained(model):
        size = _safe_bytes(model, None)
        revision = _converted(model) if size is None else None
        if revision is not None:
            size = _safe_bytes(model, revision)
    if size is None:
        raise EvenrankError(
            f"{model}: the hub has no weights of it as model.safetensors, and pickled ones are not loaded"
        )
    return size


def _safe_bytes(model: str, revision: str | None) -> int | None:
    """The bytes that loading a revision reads (None: the main one); None if it has no safe weights."""
    from fnmatch import fnmatch

    from huggingface_hub import HfApi

    files = HfApi().model_info(model, revision=revision, files_metadata=True).siblings or []
    read = {
        file.rfilename: file.size or 0
        for file in files
        if any(fnmatch(file.rfilename, one) for one in READ)
        and not any(fnmatch(file.rfilename, one) for one in _NOT_READ)
    }
    return sum(read.values()) if any(name.endswith(".safetensors") for name in read) else None


def _converted(model: str) -> str | None:
    """The revision of the hub's own conversion to safe weights; None if there is none."""
    from huggingface_hub import HfApi

    offers = HfApi().get_repo_discussions(model, author=_CONVERTER, discussion_type="pull_request")
    number = next((offer.num for offer in offers if offer.status in ("open", "merged")), None)
    return None if number is None else f"refs/pr/{number}"


@contextmanager
def _explained(model: str) -> Iterator[None]:
    """Turns the client's errors, which have no common base, into EvenrankError."""
    if not _NAME.fullmatch(model):
        raise EvenrankError(f"{model}: no such folder (and models on the hub are named OWNER/NAME or NAME)")
    from huggingface_hub import errors

    client = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    problems: tuple[type[Exception], ...] = (OSError, ValueError, RuntimeError, *client)
    try:
        yield
    except EvenrankError:
        raise
    except errors.RepositoryNotFoundError:
        raise EvenrankError(f"{model}: no such folder, and the hub has no public model of this name") from None
    except problems as error:
        reason = str(error).strip().split("\n")[0]
        raise EvenrankError(f"{model}: no such folder, and it cannot be downloaded from the hub ({reason})") from None
