"""From a name to a loaded model: a folder, a name on the hub, a model that is loaded already, or a function.

The kind of a folder's model is told from its own files:

1. With ``evenrank.json``: a kernel ranker of this library;
2. with ``modules.json``: the ``model_type`` in ``config_sentence_transformers.json``; older models have none and are
   bi-encoders, or late-interaction encoders saved by PyLate, which has settings of its own in that file;
3. else ``architectures`` in ``config.json``: ``…ForSequenceClassification`` is a cross-encoder, ``HF_ColBERT`` a
   late-interaction encoder;
4. anything else needs the caller's choice: a ``…ForMaskedLM`` can score as a sparse encoder (SPLADE), a
   ``…ForCausalLM`` as a cross-encoder (its "yes" against its "no"), and any of them, like a plain encoder, as a
   bi-encoder (mean pooling).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from evenrank.files import EvenrankError, InputError
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, quoted, readable, require_neural, shown

from .endpoints import Endpoint
from .scorers import (
    FunctionScorer,
    KeptVectorScorer,
    RankerScorer,
    ScoreFunction,
    Scorer,
    encoder_scorer,
    is_causal,
)

if TYPE_CHECKING:
    import torch
    from sentence_transformers import CrossEncoder
    from torch import nn

    from .protocol import Ranker
    from .scorers import Model

Kind = Literal["cross", "bi", "sparse", "late"]
"""The kinds that a caller can choose."""
Architecture = Literal[Kind, "kernel"]
Precision = Literal["auto", "float32", "bfloat16"]
Backend = Literal["torch", "onnx", "openvino"]
RankerLike: TypeAlias = "str | os.PathLike[str] | Model | Ranker | Scorer | ScoreFunction | Endpoint"
"""Whatever :func:`load_ranker` makes a scorer of."""


@checked
def load_ranker(
    model: RankerLike,
    *,
    kind: Kind | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    backend: Backend = "torch",
    query_prompt: str | None = None,
    document_prompt: str | None = None,
) -> Scorer:
    """The scorer of a model, with which :func:`evenrank.rerank` and position sensitivity score pairs.

    ``model``: a folder of a ranker trained here; a folder or a name on the hub that sentence-transformers loads, with
    ``kind`` ("cross", "bi", "sparse" or "late") if its files do not show which it is; a loaded ``CrossEncoder``,
    ``SentenceTransformer``, ``SparseEncoder`` or ``MultiVectorEncoder``; a :class:`Ranker`; an ``Endpoint``; or a
    function of a query and its passages that returns a score for each passage. ``query_prompt``, ``document_prompt``:
    in place of the prompts in the model's configuration ("" for none); a cross-encoder has the first only. The other
    settings are those of :func:`evenrank.rerank`, and only for a folder or a name.

    Raises EvenrankError for a setting out of range, a prompt for a model without prompts, and anything else as
    ``model``; InputError for a folder that cannot be used; MissingExtraError without the extra [neural].
    """
    prompts = {"query_prompt": query_prompt, "document_prompt": document_prompt}
    if isinstance(model, str | os.PathLike):
        if backend != "torch":
            from .export import check_backend

            check_backend(backend, precision, device)
        return load_folder(find_model(os.fspath(model), kind), device, precision, backend, **prompts)
    changed = {
        "kind": kind is not None,
        "device": device is not None,
        "precision": precision != "auto",
        "backend": backend != "torch",
    }
    arguments = [arg(name) for name, wrong in changed.items() if wrong]
    if arguments:
        raise EvenrankError(f"{', '.join(arguments)}: only for a model given by its folder or its name on the hub")
    return _given(model, **prompts)


def load_folder(
    folder: ModelFolder,
    device: str | None = None,
    precision: Precision = "auto",
    backend: Backend = "torch",
    query_prompt: str | None = None,
    document_prompt: str | None = None,
) -> Scorer:
    """The scorer of a folder's model, as :func:`load_ranker` makes it."""
    if precision not in ("auto", "float32", "bfloat16"):
        raise EvenrankError(f"{arg.precision}: expected auto, float32 or bfloat16, found {quoted(precision)}")
    scorer: Scorer
    if folder.architecture == "kernel":
        if backend != "torch" or precision == "bfloat16":
            raise EvenrankError(f"{folder.path}: kernel rankers need the backend torch and float32")
        _no_prompts("a kernel ranker", query_prompt, document_prompt)
        scorer = RankerScorer(load_kernel_ranker(folder, device), folder.name)
    elif backend == "torch":
        encoder = load_encoder(folder, precision, device)
        scorer = encoder_scorer(encoder, folder.name, query_prompt, document_prompt)
    else:
        from .export import use_backend

        encoder = load_encoder(folder, "float32", "cpu")
        use_backend(encoder, folder, backend, precision)
        computed = "bfloat16" if precision == "bfloat16" else "float32"
        scorer = encoder_scorer(encoder, folder.name, query_prompt, document_prompt)
        scorer.backend, scorer.precision = backend, computed
    scorer.digest = cache(folder.digest)
    return scorer


def _given(model: Any, query_prompt: str | None, document_prompt: str | None) -> Scorer:
    """The scorer of an object. Raises EvenrankError if it is no model, or takes no prompts."""
    if isinstance(model, Endpoint):
        return model.prompted(query_prompt, document_prompt).scorer()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return _module_scorer(model, query_prompt, document_prompt)
    if isinstance(model, Scorer):
        _no_prompts("a model that is a scorer already", query_prompt, document_prompt)
        return model
    if callable(model) and not isinstance(model, type):
        _no_prompts("a function", query_prompt, document_prompt)
        name = getattr(model, "__name__", type(model).__name__)
        return FunctionScorer(model, "function" if name == "<lambda>" else name)
    raise _no_model(model)


def _module_scorer(model: nn.Module, query_prompt: str | None, document_prompt: str | None) -> Scorer:
    """The scorer of a module of PyTorch: a model of sentence-transformers, or a ranker."""
    from .encoders import CatRanker, DotRanker
    from .protocol import Ranker

    if isinstance(model, DotRanker) and model.frozen and query_prompt is None is document_prompt:
        return KeptVectorScorer(model, model.kind)
    if isinstance(model, CatRanker | DotRanker):
        # As its folder is scored.
        return encoder_scorer(model.model, model.kind, query_prompt, document_prompt)
    if isinstance(model, Ranker):
        _no_prompts(f"a {'sparse' if model.kind == 'sparse' else 'kernel'} ranker", query_prompt, document_prompt)
        return RankerScorer(model, model.kind)
    from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer, SparseEncoder

    if isinstance(model, CrossEncoder | MultiVectorEncoder | SentenceTransformer | SparseEncoder):
        return encoder_scorer(model, _encoder_name(model), query_prompt, document_prompt)
    raise _no_model(model)


def _no_prompts(what: str, query_prompt: str | None, document_prompt: str | None) -> None:
    """Raises EvenrankError if there is a prompt, for a kind of model that has none."""
    both = {"query_prompt": query_prompt, "document_prompt": document_prompt}
    arguments = [arg(name) for name, prompt in both.items() if prompt is not None]
    if arguments:
        raise EvenrankError(f"{', '.join(arguments)}: {what} takes no prompts")


def _no_model(model: object) -> EvenrankError:
    accepted = "a folder, a name on the hub, a model of sentence-transformers, a ranker, an Endpoint or a function"
    return EvenrankError(f"{arg.model}: expected {accepted}, found {shown(model)}")


def _encoder_name(model: Model) -> str:
    """The name of the folder or of the hub's model that an encoder was loaded from, else that of its class."""
    for module in model.modules():
        source = getattr(getattr(module, "config", None), "name_or_path", "")
        if source:
            return readable(model_name(str(Path(source))))
    return type(model).__name__


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
        for revision in _revisions(model):
            folder = snapshot_download(model, revision=revision, allow_patterns=READ, ignore_patterns=_NOT_READ)
            path = Path(folder)
            if any(path.rglob("*.safetensors")):
                break
    return path


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
    from huggingface_hub import snapshot_download

    with _explained(model):
        for revision in _revisions(model):
            files = snapshot_download(
                model, revision=revision, allow_patterns=READ, ignore_patterns=_NOT_READ, dry_run=True
            )
            if any(file.filename.endswith(".safetensors") for file in files):
                return sum(file.file_size or 0 for file in files)
    raise EvenrankError(f"{model}: the hub has no weights of it as model.safetensors, and pickled ones are not loaded")


def _revisions(model: str) -> Iterator[str | None]:
    """The main revision of a model (None), and then the hub's own conversions to safe weights."""
    from huggingface_hub import HfApi

    yield None
    for offer in HfApi().get_repo_discussions(model, author=_CONVERTER, discussion_type="pull_request"):
        if offer.status in ("open", "merged"):
            yield f"refs/pr/{offer.num}"


@contextmanager
def _explained(model: str) -> Iterator[None]:
    """Turns the errors of the hub's client into EvenrankError."""
    if not _NAME.fullmatch(model):
        raise EvenrankError(f"{model}: no such folder (and models on the hub are named OWNER/NAME or NAME)")
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        yield
    except Exception as error:  # they have no common base
        if RepositoryNotFoundError in {type(error), type(error.__cause__)}:
            raise EvenrankError(f"{model}: no such folder, and the hub has no public model of this name") from None
        reason = _first_line(error)
        raise EvenrankError(f"{model}: no such folder, and it cannot be downloaded from the hub ({reason})") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


ENCODERS: dict[str, Kind] = {"cat": "cross", "dot": "bi", "sparse": "sparse"}
"""The rankers of this library whose folders are those of sentence-transformers, and their architectures."""
_SAVED: dict[str, Kind] = {
    "CrossEncoder": "cross",
    "SentenceTransformer": "bi",
    "SparseEncoder": "sparse",
    "MultiVectorEncoder": "late",
    "ColBERT": "late",  # by PyLate
}
# As in protocol.config_file, which imports PyTorch.
_KERNEL = "evenrank.json"


def read_object(path: Path) -> dict[str, object]:
    """The JSON object in a file, empty if there is no such file. Raises InputError for a file with anything else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (ValueError, RecursionError):
        content = None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from None
    if not isinstance(content, dict):
        raise InputError(path, "expected a JSON object")
    return content


class UnclearKindError(InputError):
    """A model whose files do not say what kind of ranker it is."""


def architecture_of(path: Path, wanted: Kind | None) -> Architecture:
    """The kind of the model in a folder: what its files say, else ``wanted``.

    Raises InputError if its files say otherwise than ``wanted``, lack what that needs, or say nothing.
    """
    if (path / _KERNEL).is_file():
        if wanted is not None:
            raise InputError(path, f"a ranker of this library ({_KERNEL}) has no other {arg.kind}")
        return "kernel"
    if (path / "modules.json").is_file():
        return _saved(path, wanted)
    classes = read_object(path / "config.json").get("architectures") or []
    if not isinstance(classes, list):
        raise InputError(path / "config.json", f"expected a list of architectures, found {quoted(classes)}")
    name = str(next(iter(classes), "none"))
    if name == "HF_ColBERT":
        return _agreed(path, "late", wanted)
    if name.endswith("ForSequenceClassification") and wanted in (None, "cross", "bi"):
        return wanted or "cross"
    needed = {
        "cross": (name.endswith("ForCausalLM"), "an architecture with a head that scores pairs"),
        "sparse": (name.endswith("ForMaskedLM"), "an architecture with a head that predicts words"),
        "late": (False, "a model with a projection for late interaction"),
    }
    if wanted is None:
        possible = "cross or bi" if needed["cross"][0] else "sparse or bi" if needed["sparse"][0] else "bi"
        raise UnclearKindError(path, f"not clear what kind of ranker this is ({name}): set {arg.kind} to {possible}")
    fits, expected = needed.get(wanted, (True, ""))
    if not fits:
        raise InputError(path, f"expected {expected}, found {name}")
    return wanted


def _saved(path: Path, wanted: Kind | None) -> Kind:
    """The kind of a model that sentence-transformers saved."""
    config = read_object(path / "config_sentence_transformers.json")
    older = "ColBERT" if "query_prefix" in config else "SentenceTransformer"
    saved = config.get("model_type", older)
    if not isinstance(saved, str) or saved not in _SAVED:
        known = "a cross-encoder, bi-encoder, sparse encoder or late-interaction encoder"
        raise InputError(path, f"expected {known}, found {str(saved)[:60]}")
    return _agreed(path, _SAVED[saved], wanted)


def _agreed(path: Path, found: Kind, wanted: Kind | None) -> Kind:
    # Without its head, a cross-encoder is an encoder.
    if wanted is None or wanted == found or (found, wanted) == ("cross", "bi"):
        return wanted or found
    raise InputError(path, f"{arg.kind}: expected {found}, as its files say, found {wanted}")


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


def find_model(model: str, kind: Kind | None = None) -> ModelFolder:
    """The folder of ``model`` (a local folder, or a name on the hub, which is downloaded) and its architecture.

    Raises InputError for a folder without weights, with pickled weights only, or of a model that cannot score pairs;
    EvenrankError for a name that is neither a folder nor a model that can be downloaded; MissingExtraError without the
    extra [neural].
    """
    require_neural("re-ranking")
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
    _refuse_pickles(path)
    return path


def states_settings(model: str, kind: Kind) -> bool:
    """Whether the folder of ``model`` is sentence-transformers' own of this kind, and so states how texts are read."""
    path = find_folder(model)
    older = kind == "cross" and "sentence_transformers" in read_object(path / "config.json")
    return ((path / "modules.json").is_file() or older) and architecture_of(path, None) == kind


def model_bytes(model: str) -> int:
    """The size of the files that loading ``model`` reads; of a name on the hub without downloading them.

    Raises EvenrankError as :func:`find_folder`.
    """
    path = Path(model) if Path(model).is_dir() else downloaded_model(model)
    if path is None:
        return bytes_on_hub(model)
    _refuse_pickles(path)
    return sum(file.stat().st_size for pattern in READ for file in path.rglob(pattern) if file.is_file())


def _refuse_pickles(path: Path) -> None:
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
        kind = torch.accelerator.current_accelerator(check_available=True)
        others = [f"{kind.type}:{number}" for number in range(torch.accelerator.device_count())] if kind else []
        available = ", ".join(("cpu", *others))
        raise EvenrankError(f"{arg.device}: {quoted(device)} cannot be used; this machine has {available}") from None
    return device


def load_encoder(
    folder: ModelFolder,
    precision: Precision = "auto",
    device: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> Model:
    """The sentence-transformers model of a folder, in evaluation mode; ``settings`` are of its transformer's config.

    With ``precision="auto"`` it computes in bf16 on a GPU that supports it (what makes a cross-encoder's score stays in
    float32), else in float32. Raises InputError for a model that cannot be loaded, whose scores would be random, or
    that gives several scores per pair.
    """
    import sentence_transformers
    import torch

    device = chosen_device(device)
    supported = device.startswith("cuda") and torch.cuda.is_bf16_supported(including_emulation=False)
    rough = precision == "bfloat16" or (precision == "auto" and supported)
    options = {"use_safetensors": True, "dtype": torch.bfloat16 if rough else torch.float32}
    names = {"cross": "CrossEncoder", "bi": "SentenceTransformer", "sparse": "SparseEncoder"}
    load = getattr(sentence_transformers, names.get(folder.architecture, "MultiVectorEncoder"))
    try:
        with quiet_loading() as missing:
            model: Model = load(
                str(folder.path),
                device=device,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs=options,
                config_kwargs=dict(settings or {}),
            )
    except Exception as error:  # tokenizers raises Exception itself for a damaged file
        raise loading_problem(folder.path, error) from None
    if folder.architecture == "cross":
        _prepare_head(folder.path, model)
    # Without a head for pairs nothing reads a pooler.
    check_weights(folder.path, [name for name in missing if folder.architecture == "cross" or "pooler" not in name])
    if folder.architecture == "cross":
        check_tokeniser(folder.path, model.preprocess, ["a", RARE_WORDS])
    else:
        for task in ("query", "document"):
            check_tokeniser(folder.path, partial(model.preprocess, task=task), RARE_WORDS)
    return model.eval()


def load_kernel_ranker(folder: ModelFolder, device: str | None = None) -> Ranker:
    """The kernel ranker of a folder. Raises InputError if the folder names none or lacks its weights."""
    from .protocol import RANKERS, REGISTERED, config_file, ranker_class

    kind = read_object(config_file(folder.path)).get("kind")
    if not isinstance(kind, str) or kind not in {*RANKERS, *REGISTERED} or kind in ENCODERS:
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


class _LoadReport(logging.Filter):
    """Takes from transformers' report of a checkpoint's weights those that are missing; the report is not shown."""

    def __init__(self, shown: int) -> None:
        super().__init__()
        self.shown = shown
        self.missing: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is shown."""
        text = re.sub(r"\x1b\[[0-9;]*m", "", record.getMessage())
        if "LOAD REPORT" not in text:
            return record.levelno >= self.shown
        lines = [line for line in text.splitlines() if re.search(r"\|\s*MISSING\b", line)]
        self.missing += [line.partition("|")[0].strip() for line in lines]
        return False


def check_weights(path: Path, missing: Sequence[str]) -> None:
    """Raises InputError if ``missing`` names weights of the folder ``path``: they would start at random."""
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise InputError(path, f"the weights lack {min(missing)}{more}: its scores would be random")


def of_encoder(missing: Sequence[str]) -> list[str]:
    """The names of ``missing`` weights that are no head's or pooler's, which training begins anew."""
    return [name for name in missing if re.search(r"(^|[._])(embeddings?|layers?|h|blocks?)[._]", name)]


@contextmanager
def quiet_loading() -> Iterator[list[str]]:
    """Without the loaders' progress bars and reports; yields the names of the weights that a checkpoint lacks."""
    from transformers.utils import logging as transformers_logging

    enabled = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    loader, disabled = logging.getLogger("transformers.modeling_utils"), logging.root.manager.disable
    level, report = loader.level, _LoadReport(max(loader.getEffectiveLevel(), disabled + 1))
    loader.addFilter(report)
    # The report is a warning, which a program may have turned off; at just that level transformers says more.
    if loader.getEffectiveLevel() > logging.WARNING:
        loader.setLevel(logging.INFO)
    logging.disable(min(disabled, logging.INFO))
    try:
        yield report.missing
    finally:
        logging.disable(disabled)
        loader.setLevel(level)
        loader.removeFilter(report)
        if enabled:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _prepare_head(path: Path, model: CrossEncoder) -> None:
    """Has what makes a cross-encoder's score computed in float32: in bf16 scores have three digits, and many are equal.

    Raises InputError for several scores per pair, and for a tokeniser without the words whose logits make the score.
    """
    import torch
    from sentence_transformers.cross_encoder.modules import LogitScore

    if model.num_labels != 1:
        raise InputError(path, f"expected a model with one score per pair, found {model.num_labels}")
    if not is_causal(model):
        heads = [n for n, part in model.named_modules() if type(part) is torch.nn.Linear and part.out_features == 1]
        if heads and model.dtype != torch.float32:
            model.set_keep_in_fp32_modules(heads[-1:])
        return
    score = next(part for part in model if isinstance(part, LogitScore))
    words = [word for word in (score.true_token_id, score.false_token_id) if word is not None]
    # A language model's tokeniser gives an unknown word the number of any other unknown one, or none.
    unknown = getattr(model.tokenizer, "unk_token_id", None)
    if len(set(words)) < len(words) or (unknown is not None and unknown in words):
        raise InputError(path, "the tokeniser lacks the words whose logits make the score (yes and no by default)")
    head: nn.Module | None = model.transformers_model.get_output_embeddings() if model.transformers_model else None
    if model.dtype == torch.float32 or type(head) is not torch.nn.Linear:
        return

    def exact(layer: nn.Linear, given: tuple[torch.Tensor, ...], found: torch.Tensor) -> torch.Tensor:
        bias = None if layer.bias is None else layer.bias[words].float()
        logits = found.float()
        logits[..., words] = torch.nn.functional.linear(given[0].float(), layer.weight[words].float(), bias)
        return logits

    head.register_forward_hook(exact)
