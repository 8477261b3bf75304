"""The rankers with a transformer: ``cat``, query and passage together, and ``dot``, each by itself.

Cross-encoder: Nogueira & Cho 2019; Hofstätter et al., ECIR 2021 [POS], eq. 2. Bi-encoder: Karpukhin et al. 2020 (DPR);
[POS], eq. 3. What they share: checkpoints, tokenisation, saving.
"""

from __future__ import annotations

import itertools
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from evenrank import options as opt
from evenrank.files import EvenrankError, InputError
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, quoted
from evenrank.files.outputs import usual_mode
from evenrank.files.types import Array
from evenrank.files.work import alone

from .kept_vectors import KeptVectors, VectorFile, digest_of
from .load import (
    ENCODERS,
    RARE_WORDS,
    check_tokeniser,
    check_weights,
    find_folder,
    find_model,
    load_encoder,
    loading_problem,
    of_encoder,
    quiet_loading,
    states_settings,
)
from .protocol import CandidateLists, Inputs, Ranker
from .scorers import is_static, truncated_rows

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from sentence_transformers.base.modules import Module, Transformer

    from .scorers import Model

    Encoder: TypeAlias = "CrossEncoder | SentenceTransformer | Transformer"

_LOG = logging.getLogger(__name__)
_BATCH = 256
Task = Literal["sequence-classification", "feature-extraction"]


def start_encoder(model: str, task: Task, layers: int | None, max_length: int, **settings: int) -> Transformer:
    """A transformer and its tokeniser from a checkpoint: a folder, or a name on the hub.

    Weights missing from the checkpoint (a head, a pooler) come from the current random state. ``layers``: the number
    of layers kept, from the first; ``max_length``: tokens of a text or pair, at most the model's positions. Raises
    EvenrankError for a setting out of range or an unknown name; InputError for a folder that cannot be loaded.
    """
    from sentence_transformers.base.modules import Transformer

    path = find_folder(model)
    local: dict[str, object] = {"trust_remote_code": False, "local_files_only": True}
    config = _settings(path, task, layers)
    with quiet_loading() as missing:
        try:
            encoder = Transformer(
                str(path),
                transformer_task=task,
                model_kwargs={"use_safetensors": True, "dtype": torch.float32, **local},
                processor_kwargs=dict(local),
                config_kwargs={**config, **local},
                **settings,
            )
        except Exception as error:  # as in load_encoder
            raise loading_problem(path, error) from None
    check_weights(path, of_encoder(missing))
    if encoder.tokenizer is None:
        raise InputError(path, "the model has no tokeniser")
    check_tokeniser(path, encoder.tokenizer, RARE_WORDS)
    encoder.tokenizer.model_max_length = min(max_length, encoder.tokenizer.model_max_length)
    return encoder


def _settings(path: Path, task: Task, layers: int | None) -> dict[str, object]:
    """What replaces the settings in a folder: one output for ``task``, the first ``layers``."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(path, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # as in load_encoder
        raise loading_problem(path, error) from None
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


def trimmed(inputs: Inputs, side: str) -> Inputs:
    """Of the tensors of a batch those of a side's tokens, without its prefix, up to the longest text of this part."""
    own = {name.removeprefix(side): value for name, value in inputs.items() if name.startswith(side)}
    own.pop("cut", None)
    length = int(own["attention_mask"].any(0).nonzero().max()) + 1
    return {name: value[:, :length] for name, value in own.items()}


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


def _move_files(part: Path, target: Path) -> None:
    for file in sorted(path for path in part.rglob("*") if path.is_file()):
        place = target / file.relative_to(part)
        place.parent.mkdir(parents=True, exist_ok=True)
        # safetensors creates files that only their owner can read.
        file.chmod(usual_mode(place))
        file.replace(place)


@contextmanager
def saving(folder: str | os.PathLike[str]) -> Iterator[str]:
    """A temporary folder whose files replace those of the same name in ``folder`` once all are written.

    Raises InputError if ``folder`` cannot be written.
    """
    target = Path(folder)
    try:
        with alone(target), quiet_loading():
            # Of killed processes.
            for left in target.glob(".saving.*"):
                shutil.rmtree(left)
            with TemporaryDirectory(prefix=".saving.", dir=target) as part:
                yield part
                _move_files(Path(part), target)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error).split("\n")[0]
        raise InputError(target, f"cannot be written: {reason}") from None


class EncoderRanker(Ranker):
    """A ranker around a model of sentence-transformers, which loads its folder too."""

    model: Encoder
    replaced = ""
    """Which settings of its model's folder the caller's own have replaced, in words."""

    def _note(self, model: str, changes: Iterable[str]) -> Self:
        """Notes and logs what the caller's settings have replaced."""
        if listed := ", ".join(dict.fromkeys(changes)):
            self.replaced = f"settings in place of those of {model}: {listed}"
            _LOG.warning(self.replaced)
        return self

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """A ranker from a folder of :meth:`save`, or of another model of its kind that sentence-transformers loads.

        Raises InputError for a folder without weights or with a model that is not of its kind or does not fit.
        """
        wanted = ENCODERS[cls.kind]
        # A SPLADE model's own files may not say that it is one.
        model = find_model(os.fspath(folder), wanted if wanted == "sparse" else None)
        if model.architecture != wanted:
            raise InputError(model.path, f"expected a {wanted}-encoder, found a {model.architecture} model")
        return cls._around(load_encoder(model, "float32", "cpu"), model.path)

    @classmethod
    def _around(cls, model: Any, folder: str | os.PathLike[str]) -> Self:
        """A ranker around the model of a folder. Raises InputError, which names it, for a model that does not fit."""
        try:
            return cls(model)
        except InputError:
            raise
        except EvenrankError as error:
            raise InputError(folder, str(error)) from None

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """``embeddings``, ``encoder`` (its layers), ``head`` (pooler, classifier, projection, maps), if not empty."""
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


class CatRanker(EncoderRanker):
    """[CLS] query [SEP] passage [SEP] through a transformer and a head with one output, whose logit is the score.

    The head is that of ``AutoModelForSequenceClassification(num_labels=1)``: a linear layer on [CLS], after the
    architecture's own pooler if it has one (BERT: a layer with tanh; DistilBERT: a layer with ReLU; RoBERTa and
    ELECTRA: a layer in the head itself). Pairs that are too long lose tokens of the longer text. :meth:`save` writes a
    folder of sentence-transformers' ``CrossEncoder``.
    """

    kind = "cat"

    def __init__(self, model: CrossEncoder) -> None:
        """A ranker around a CrossEncoder with one score per pair; sets its activation to the identity."""
        super().__init__()
        self.model = model
        model.activation_fn = torch.nn.Identity()
        self.eval()

    @classmethod
    @checked
    def from_pretrained(
        cls,
        model: str | os.PathLike[str],
        *,
        layers: int | None = None,
        max_length: Annotated[int | None, opt.COUNT] = None,
        seed: int = 0,
    ) -> CatRanker:
        """A ranker that starts from a checkpoint: a folder, or a name on the hub.

        ``layers``: the number of layers kept, from the first; ``max_length``: tokens of a pair (default: 512, or as a
        folder of a ``CrossEncoder`` says, whose prompts stay too); ``seed``: for weights missing from the checkpoint,
        usually those of the head. Raises EvenrankError for a setting out of range or an unknown name; InputError for a
        folder without weights or with a head for several scores.
        """
        from sentence_transformers import CrossEncoder

        model = os.fspath(model)
        if states_settings(model, "cross"):
            ranker = cls(_stored(model, layers))
            own = ranker.max_length
            if max_length in (None, own):
                return ranker
            encoder = ranker.model[0]
            encoder.tokenizer.model_max_length = min(max_length, positions(encoder))
            return ranker._note(model, [f"max_length ({ranker.max_length}, was {own})"])
        with seeded(seed):
            encoder = start_encoder(model, "sequence-classification", layers, max_length or 512)
        return cls(CrossEncoder(modules=[encoder], num_labels=1, device="cpu"))

    @property
    def max_length(self) -> int:
        """The greatest number of tokens of a pair."""
        return int(self.model.max_seq_length)

    def encode(self, lists: CandidateLists) -> Inputs:
        """``input_ids`` and the other tensors [ΣK_b, L] of all pairs, query by query, and ``mask`` [B, K].

        L is the longest pair of the batch. ``cut`` [ΣK_b] bool: pairs longer than ``max_length``.
        """
        pairs = [[query, text] for query, row in zip(lists.queries, lists.passages, strict=True) for text in row]
        prompt = self.model.prompts.get(self.model.default_prompt_name)
        return {**tokenise(self.model, pairs, prompt), "mask": lists.mask}

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        """How many characters of each passage [pairs] are read; a long query leaves less room for its passage."""
        prompt = self.model.prompts.get(self.model.default_prompt_name)
        return reads_to(self.model, [[q, p] for q, p in zip(queries, passages, strict=True)], prompt)

    def forward(self, **inputs: Tensor) -> Tensor:
        """Scores [B, K], float32."""
        mask = inputs.pop("mask")
        inputs.pop("cut", None)
        scores = torch.zeros(mask.shape, device=mask.device)
        if not inputs:
            return scores
        # Pairs are ordered by query, as the True values of the mask are.
        return scores.masked_scatter(mask, self.model(inputs)["scores"].float())


Pooling = Literal["cls", "mean"]
Similarity = Literal["dot", "cosine"]
Freeze = Literal["encoder"]
_QUERY, _PASSAGE = "query_", "passage_"
_TASKS = {_QUERY: "query", _PASSAGE: "document"}
# The prompts of a loaded model, in the order in which sentence-transformers takes the first that there is.
_PROMPTS = {_QUERY: ("query",), _PASSAGE: ("document", "passage", "corpus")}


class _Digest:
    """The digest of an encoder, and how often its weights had been written to by then."""

    def __init__(self, encoder: list[nn.Module]) -> None:
        self.encoder = encoder
        # To list them takes longer than a step.
        self._weights = [value for part in encoder for value in part.parameters()]
        self.writes, self.digest = self.written(), digest_of(encoder)

    def written(self) -> int:
        """How often the weights have been written to."""
        return sum(value._version for value in self._weights)


class DotRanker(EncoderRanker):
    """The inner product of a query's vector and a passage's, from one encoder or from two (towers).

    A vector is the encoder's output at [CLS] or the mean over the tokens, optionally projected by a linear layer, and
    normalised if the similarity is the cosine, so that a score is always an inner product. :meth:`save` writes a folder
    of sentence-transformers' ``SentenceTransformer`` (with its ``Router`` for two encoders), whose ``encode_query`` and
    ``encode_document`` return the vectors.

    With *maps*, each side's vector v [d] becomes W v (then normalised, if the similarity is the cosine), where W [d, d]
    is the side's own matrix, the identity before training: a linear adapter, and no published method. A saved folder
    has the encoder once, and the maps in a ``Router`` behind it, which ``encode`` without a side sends through the
    passages' map. Behind a frozen encoder (:meth:`freeze_encoder`) the maps or the projection alone are trained, and
    each text is encoded once (:meth:`keep_vectors`).

    For example:

        ranker = DotRanker.from_pretrained(
            "sentence-transformers/all-MiniLM-L6-v2", map=True, freeze="encoder", similarity="cosine"
        )
        ranker.keep_vectors("kept")
        evenrank.train(ranker, lists, learning_rate=1e-3, out="runs/map")
        SentenceTransformer("runs/map/model").encode_query(["a question"])
    """

    kind = "dot"
    frozen = False
    """Whether the encoder is frozen."""

    def __init__(self, model: SentenceTransformer) -> None:
        """A ranker around a SentenceTransformer with a transformer in it, whose similarity is ``dot`` or ``cosine``."""
        from sentence_transformers.base.modules import Normalize

        super().__init__()
        if is_static(model):
            raise EvenrankError("a model of static embeddings is not supported: a dot ranker needs a transformer")
        similarity = model.similarity_fn_name
        if similarity not in ("dot", "cosine"):
            raise EvenrankError(f"`similarity`: expected dot or cosine, found {quoted(similarity)}")
        if model.truncate_dim is not None:
            raise EvenrankError("a model that truncates its vectors (truncate_dim) is not supported")
        if similarity == "cosine" and not isinstance(model[-1], Normalize):
            model.append(Normalize())
        self.model = model
        self._file: VectorFile | None = None
        self._kept: dict[tuple[object, ...], KeptVectors] = {}
        self._digests: dict[str, _Digest] = {}
        self.prompts = {
            side: next((model.prompts[name] for name in names if name in model.prompts), "")
            for side, names in _PROMPTS.items()
        }
        if any(self.prompts.values()) and not all(getattr(part, "include_prompt", True) for part in model.modules()):
            raise EvenrankError("a model that leaves its prompt out of the mean is not supported")
        for name, parameter in model.named_parameters():
            # BERT's pooler is for another task, and no vector depends on it.
            if ".pooler." in name:
                parameter.requires_grad_(False)
        self.eval()

    @classmethod
    @checked
    def from_pretrained(
        cls,
        model: str | os.PathLike[str],
        *,
        passage_model: str | None = None,
        shared: bool = True,
        pooling: Pooling | None = None,
        projection: Annotated[int | None, opt.COUNT] = None,
        similarity: Similarity | None = None,
        layers: int | None = None,
        query_length: Annotated[int | None, opt.COUNT] = None,
        passage_length: Annotated[int | None, opt.COUNT] = None,
        seed: int = 0,
        map: bool = False,
        freeze: Freeze | None = None,
    ) -> DotRanker:
        """A ranker that starts from a checkpoint: a folder, or a name on the hub.

        A folder of a ``SentenceTransformer`` states its ``pooling``, ``similarity`` and lengths, and keeps its other
        modules and its prompts. A setting that is passed replaces the folder's, which is logged. For other checkpoints
        the defaults are ``"cls"``, ``"dot"`` and 100 tokens.

        Queries and passages share one encoder, unless the folder has two, ``shared`` is False (two copies) or
        ``passage_model`` is set. ``projection``: output size d of a linear layer after pooling, one per encoder, unless
        the folder ends with one of this size; ``layers``: the number of layers kept, from the first; ``query_length``,
        ``passage_length``: in tokens; ``seed``: for weights missing from the checkpoint.

        ``map``: a matrix [d, d] for each side's vectors, the identity at first, so that scores begin as the encoder's;
        ``freeze="encoder"``: as :meth:`freeze_encoder`. In front of either, a folder's normalisation stays whatever the
        ``similarity``; else ``similarity="dot"`` leaves it out.

        Raises EvenrankError for a setting out of range, an unknown name, encoders whose vectors differ in size, ``map``
        beside ``projection``, and ``freeze`` with nothing to train; InputError for a folder without weights, and for
        one that a ``dot`` ranker cannot represent.
        """
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.base.modules import Router

        model = os.fspath(model)
        if map and projection is not None:
            raise EvenrankError("`map`: not beside a projection, which is a map too")
        lengths = {"query_length": query_length, "passage_length": passage_length}
        settings = _DotSettings(pooling, similarity, layers, lengths, projection, behind=map or freeze is not None)
        with seeded(seed):
            encoder, changes = settings.tower(model)
            routed = any(isinstance(part, Router) for part in encoder)
            if passage_model is not None or not (shared or routed):
                if routed:
                    raise EvenrankError(f"`passage_model`: {model} has modules for each side already")
                second, more = settings.tower(passage_model or model)
                sizes = _size(encoder), _size(second)
                if sizes[0] != sizes[1]:
                    raise EvenrankError(f"vectors of {sizes[0]} and {sizes[1]} numbers: project both to one size")
                if encoder.similarity_fn_name != second.similarity_fn_name:
                    both = f"{encoder.similarity_fn_name} and {second.similarity_fn_name}"
                    raise EvenrankError(f"`similarity`: the two models state {both}: name one")
                changes += [f"{change} of {passage_model}" for change in more if passage_model is not None]
                encoder = SentenceTransformer(
                    modules=[Router.for_query_document(list(encoder), list(second))],
                    similarity_fn_name=encoder.similarity_fn_name,
                    prompts=encoder.prompts | {"document": second.prompts.get("document", "")},
                    default_prompt_name=encoder.default_prompt_name,
                    device="cpu",
                )
        if map:
            _add_maps(encoder)
        ranker = cls._around(encoder, model)
        if freeze is not None:
            ranker.freeze_encoder()
        return ranker._note(model, changes)

    def freeze_encoder(self) -> None:
        """From now on only what follows the encoder is trained: the maps, or the projection.

        The encoder computes without dropout and in float32, in training too, and each text goes through it once
        (:meth:`keep_vectors`): :meth:`encode` then gives vectors [·, d] in place of tokens. There is no way back but to
        load the ranker again. Raises EvenrankError if nothing follows the encoder.
        """
        heads = [self._split(side)[1] for side in _TASKS]
        if not all(heads):
            raise EvenrankError(
                f"{arg.freeze}: only the encoder has weights to train: add {arg.map} or {arg.dimensions}"
            )
        self.model.requires_grad_(False)
        for part in itertools.chain(*heads):
            part.requires_grad_(True)
        self.model.eval()
        self.frozen = True
        self.train(self.training)

    def keep_vectors(self, folder: str | os.PathLike[str] | None = None) -> None:
        """Where a frozen encoder's vectors are kept: in memory, or in ``folder`` too, which many trainings may share.

        There, one after another or at once, they find each other's vectors by the digest of the encoder, the side, its
        prompt and limit of length, and the text. What is kept are the vectors [d] before the maps or the projection,
        in float32: 4 d bytes a text, in ``folder``'s file ``vectors.sqlite`` and, of those that this ranker has read,
        in memory, where they stay. The folder is made if there is none.

        Raises EvenrankError if the encoder is not frozen; InputError for a folder that cannot be written, or whose file
        of that name another program made. A damaged vector is an InputError when it is read.
        """
        if not self.frozen:
            raise EvenrankError("`folder`: only the vectors of a frozen encoder are kept")
        if self._file is not None:
            self._file.close()
        self._file = None if folder is None else VectorFile(folder)
        self._kept = {}

    def train(self, mode: bool = True) -> DotRanker:
        """Sets training or evaluation; a frozen encoder stays in evaluation."""
        if not self.frozen:
            return super().train(mode)
        # A step calls this twice: an encoder has hundreds of modules.
        self.training = mode
        for side in _TASKS:
            for part in self._split(side)[1]:
                part.train(mode)
        return self

    @property
    def loss_scale(self) -> float:
        """20 for the cosine, as in sentence-transformers' ``MultipleNegativesRankingLoss``; 1 for the inner product.

        Over [−1, 1] a softmax is flat: to a passage at 1 beside nineteen at −1 it gives no more than .28.
        """
        return 20.0 if self.model.similarity_fn_name == "cosine" else 1.0

    @property
    def reads(self) -> str:
        """How much it reads of a query and of a passage, and how it pools, in words."""
        from sentence_transformers.sentence_transformer.modules import Pooling as Pool

        query, passage = map(self._limit, _TASKS)
        pools = dict.fromkeys(str(part.pooling_mode) for part in self.model.modules() if isinstance(part, Pool))
        pooling = f"; pooling: {', '.join(pools)}" if pools else ""
        return f"reads {query} tokens of a query, and {passage} of a passage{pooling}"

    def _limit(self, side: str) -> int:
        """How many tokens of a side's texts are read."""
        return int(getattr(self._split(side)[0][0], f"{_TASKS[side]}_length", None) or self.model.max_seq_length)

    @property
    def keeps_vectors(self) -> bool:
        """Whether the encoder is frozen."""
        return self.frozen

    def _split(self, side: str) -> tuple[list[nn.Module], list[nn.Module]]:
        """The modules of a side's encoder, and those from its last linear layer on, if none but that is behind it."""
        from sentence_transformers.base.modules import Dense, Normalize, Router

        path: list[nn.Module] = []
        for part in self.model:
            path += part.sub_modules[_TASKS[side]] if isinstance(part, Router) else [part]
        end = len(path)
        while end and isinstance(path[end - 1], Normalize):
            end -= 1
        return (path[: end - 1], path[end - 1 :]) if end and isinstance(path[end - 1], Dense) else (path, [])

    def _kept_vectors(self, side: str, texts: Sequence[str]) -> Inputs:
        """``vectors`` [n, d] of a frozen encoder and ``cut`` [n]; nothing for n = 0."""
        if not texts:
            return {}
        key = (side, self._digest(side), self.prompts[side], self._limit(side))
        if key not in self._kept:
            self._kept[key] = KeptVectors(key, partial(self._encoded, side), self._file)
        vectors, cut = self._kept[key](texts)
        return {"vectors": vectors, "cut": cut}

    def _digest(self, side: str) -> str:
        """The digest of a side's encoder, computed again where it is another, or its weights were written to."""
        encoder = self._split(side)[0]
        known = self._digests.get(side)
        if known is None or known.encoder != encoder or known.writes != known.written():
            known = self._digests[side] = _Digest(encoder)
        return known.digest

    @torch.no_grad()
    def _encoded(self, side: str, texts: list[str]) -> tuple[Array, Array]:
        """The vectors [n, d] of texts before the maps or the projection, in float32, and which [n] were cut."""
        device = next(self.parameters()).device
        tokens = tokenise(self.model, texts, self.prompts[side], task=_TASKS[side])
        cut = tokens.pop("cut").numpy()
        features = {name: value.to(device) for name, value in tokens.items()}
        with torch.autocast(device.type, enabled=False):
            for part in self._split(side)[0]:
                features = part.eval()(features)
        return features["sentence_embedding"].float().cpu().numpy(), cut

    def encode(self, lists: CandidateLists) -> Inputs:
        """``query_input_ids`` and so on [B, L], ``passage_input_ids`` and so on [ΣK_b, L'], and ``mask`` [B, K].

        Passages are ordered by query. ``query_cut`` [B] and ``passage_cut`` [ΣK_b] bool: truncated texts. Of a frozen
        encoder ``query_vectors`` [B, d] and ``passage_vectors`` [ΣK_b, d] in place of tokens.
        """
        texts = {_QUERY: lists.queries, _PASSAGE: [text for row in lists.passages for text in row]}
        inputs = {
            side + name: value
            for side, side_texts in texts.items()
            for name, value in self._inputs(side, side_texts).items()
        }
        return {**inputs, "mask": lists.mask}

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        """How many characters of each passage [pairs] are read."""
        return reads_to(self.model, passages, self.prompts[_PASSAGE], task=_TASKS[_PASSAGE])

    def forward(self, **inputs: Tensor) -> Tensor:
        """Scores [B, K], float32; without ``mask``, the vectors [B + ΣK_b, d] of the given texts.

        Cached gradients use the second form, so that a wrapper around this module sees every forward pass.
        """
        mask = inputs.pop("mask", None)
        sides = [side for side in _TASKS if side + "input_ids" in inputs or side + "vectors" in inputs]
        vectors = [self._embed(side, inputs) for side in sides]
        if mask is None:
            return torch.cat(vectors)
        return self.scores(vectors[0], vectors[1], mask) if len(vectors) == 2 else torch.zeros(mask.shape)

    def scores(self, queries: Tensor, passages: Tensor, mask: Tensor) -> Tensor:
        """Scores [B, K] of the vectors of queries [B, d] and passages [ΣK_b, d]; 0 where ``mask`` [B, K] is False."""
        products = (queries[mask.nonzero()[:, 0]] * passages).sum(1)
        return torch.zeros(mask.shape, device=mask.device).masked_scatter(mask, products)

    def embed_queries(self, **inputs: Tensor) -> Tensor:
        """The vectors [B, d] of the queries, given as the ``query_…`` tensors of :meth:`encode`."""
        return self._embed(_QUERY, inputs)

    def embed_passages(self, **inputs: Tensor) -> Tensor:
        """The vectors [ΣK_b, d] of the passages, given as the ``passage_…`` tensors of :meth:`encode`."""
        return self._embed(_PASSAGE, inputs)

    @torch.inference_mode()
    def score(self, queries: Sequence[str], passages: Sequence[str], batch_size: int = 32) -> Tensor:
        """Scores [pairs], computed on the ranker's device; each distinct text is encoded once."""
        training = self.training
        self.eval()
        query_vectors, query = self._vectors(_QUERY, queries, batch_size)
        passage_vectors, passage = self._vectors(_PASSAGE, passages, batch_size)
        self.train(training)
        steps = [slice(start, start + (1 << 14)) for start in range(0, len(query), 1 << 14)]
        products = [(query_vectors[query[part]] * passage_vectors[passage[part]]).sum(1) for part in steps]
        return torch.cat(products).cpu() if products else torch.empty(0)

    def _vectors(self, side: str, texts: Sequence[str], batch_size: int) -> tuple[Tensor, Tensor]:
        """The vectors of the distinct texts, encoded in batches sorted by length, and the row [texts] of each text."""
        rows = {text: row for row, text in enumerate(sorted(set(texts), key=lambda text: (-len(text), text)))}
        distinct = list(rows)
        device = next(self.parameters()).device
        vectors = []
        for start in range(0, len(distinct), batch_size):
            inputs = self._inputs(side, distinct[start : start + batch_size])
            vectors.append(self._embed(side, {side + name: value.to(device) for name, value in inputs.items()}))
        numbers = torch.tensor([rows[text] for text in texts], device=device, dtype=torch.long)
        return torch.cat(vectors) if vectors else torch.empty(0, 0), numbers

    def _inputs(self, side: str, texts: Sequence[str]) -> Inputs:
        if self.frozen:
            return self._kept_vectors(side, texts)
        return tokenise(self.model, texts, self.prompts[side], task=_TASKS[side])

    def _embed(self, side: str, inputs: Inputs) -> Tensor:
        if side + "vectors" in inputs:
            features = {"sentence_embedding": inputs[side + "vectors"]}
            for part in self._split(side)[1]:
                features = part(features)
            return features["sentence_embedding"].float()
        return self.model(trimmed(inputs, side), task=_TASKS[side])["sentence_embedding"].float()  # type: ignore[no-any-return]


def _stored(model: str, layers: int | None) -> Model:
    """The model of a folder of sentence-transformers, with its first ``layers``."""
    model_folder = find_model(model)
    settings: dict[str, object] = {}
    if layers is not None:
        if not (model_folder.path / "config.json").is_file():
            raise EvenrankError(f"`layers`: {model} has an encoder for each side, and these stay whole: leave it out")
        settings = _settings(model_folder.path, "feature-extraction", layers)
    return load_encoder(model_folder, "float32", "cpu", settings)


@dataclass(frozen=True, slots=True)
class _DotSettings:
    """What a caller asks of a bi-encoder; None where it may be as its folder states.

    ``behind``: whether a map or a trained projection stands behind the encoder, whose vectors stay as they are then.
    """

    pooling: Pooling | None
    similarity: Similarity | None
    layers: int | None
    lengths: Mapping[str, int | None]
    projection: int | None
    behind: bool

    def tower(self, model: str) -> tuple[SentenceTransformer, list[str]]:
        """One encoder with its pooling and projection, and which settings of its folder were replaced, in words."""
        from sentence_transformers.base.modules import Dense, Normalize, Router

        stated = states_settings(model, "bi")
        tower, changes = self._loaded(model) if stated else self._started(model)
        if self.projection is not None and not _ends_with(tower, self.projection):
            if any(isinstance(part, Router) for part in list(tower)[1:]):
                raise EvenrankError(f"`dimensions`: {model} has a map for each side already: leave it out")
            if stated:
                changes.append(f"dimensions ({self.projection}, was {_size(tower)})")
            end = None if self.behind or not isinstance(tower[-1], Normalize) else tower.pop(-1)
            tower.append(Dense(_size(tower), self.projection, activation_function=None))
            if end is not None:
                tower.append(end)
        return tower, changes

    def _started(self, model: str) -> tuple[SentenceTransformer, list[str]]:
        """A new bi-encoder on a checkpoint, and which lengths it cannot have."""
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling as Pool

        limits = {_LIMITS[side]: length or 100 for side, length in self.lengths.items()}
        encoder = start_encoder(model, "feature-extraction", self.layers, max(limits.values()), **limits)
        limit_lengths(encoder, limits)
        pool = Pool(encoder.get_embedding_dimension(), self.pooling or "cls")
        function = self.similarity or "dot"
        started = SentenceTransformer(modules=[encoder, pool], similarity_fn_name=function, device="cpu")
        return started, _beyond(self.lengths, {side: getattr(encoder, name) for side, name in _LIMITS.items()})

    def _loaded(self, model: str) -> tuple[SentenceTransformer, list[str]]:
        """The bi-encoder of a folder, and what of it was replaced. Raises EvenrankError for what cannot be replaced."""
        from sentence_transformers.base.modules import Normalize
        from sentence_transformers.sentence_transformer.modules import Pooling as Pool

        tower: SentenceTransformer = _stored(model, self.layers)
        changes = set_lengths(tower, self.lengths)
        if self.layers is not None:
            changes.append(f"layers (the first {self.layers})")
        pools = [part for part in tower.modules() if isinstance(part, Pool)]
        if self.pooling is not None and not (pools and all(isinstance(pool.pooling_mode, str) for pool in pools)):
            raise EvenrankError(f"`pooling`: {model} pools in a way that cannot be replaced: leave it out")
        for pool in pools:
            if self.pooling not in (None, pool.pooling_mode):
                changes.append(f"pooling ({self.pooling}, was {pool.pooling_mode})")
                pool.pooling_mode = self.pooling
        stated = tower.similarity_fn_name
        if self.similarity not in (None, stated):
            changes.append(f"similarity ({self.similarity}, was {stated})")
            tower.similarity_fn_name = self.similarity
            if stated == "cosine" and not self.behind and isinstance(tower[-1], Normalize):
                del tower[-1]
        return tower, changes


_LIMITS = {"query_length": "query_length", "passage_length": "document_length"}
"""What sentence-transformers calls the length of each side's texts."""


def set_lengths(model: Model, lengths: Mapping[str, int | None]) -> list[str]:
    """Replaces a model's own limits by those that are given; what was replaced, in words."""
    changes = []
    for part in model.modules():
        if not hasattr(part, "document_length"):
            continue
        own = {side: getattr(part, _LIMITS[side]) or part.max_seq_length for side in lengths}
        new = {side: own[side] if length is None else min(length, positions(part)) for side, length in lengths.items()}
        if new != own:
            part.tokenizer.model_max_length = max(new.values())
            limit_lengths(part, {_LIMITS[side]: length for side, length in new.items()})
            changes += [f"{side} ({new[side]}, was {own[side]})" for side in new if new[side] != own[side]]
        changes += _beyond(lengths, new)
    return changes


def _beyond(asked: Mapping[str, int | None], limits: Mapping[str, int]) -> list[str]:
    """The lengths that a model cannot have, in words: it has no more positions."""
    return [
        f"{limits[side]} in place of {side} {length} (the model has no more positions)"
        for side, length in asked.items()
        if length is not None and length > limits[side]
    ]


def positions(encoder: Transformer) -> int:
    """How many tokens a transformer can read."""
    for name, part in encoder.model.named_modules():
        if name.endswith("position_embeddings") and isinstance(part, nn.Embedding):
            # RoBERTa's positions begin behind that of padding.
            return part.num_embeddings - (0 if part.padding_idx is None else part.padding_idx + 1)
    return int(getattr(encoder.model.config, "max_position_embeddings", None) or encoder.max_seq_length)


def _ends_with(model: SentenceTransformer, size: int) -> bool:
    """Whether a linear layer gives the vectors their size already, if it is this one."""
    from sentence_transformers.base.modules import Dense, Normalize, Router

    path = [part for part in model if not isinstance(part, Normalize)]
    while isinstance(path[-1], Router):
        path = [part for part in path[-1].sub_modules["query"] if not isinstance(part, Normalize)]
    return isinstance(path[-1], Dense) and path[-1].out_features == size


def limit_lengths(encoder: Transformer, lengths: dict[str, int]) -> None:
    """Sets how many tokens of each side's texts are read: no more than the model has positions."""
    encoder.tokenizer.model_max_length = min(max(lengths.values()), encoder.tokenizer.model_max_length)
    for name, length in lengths.items():
        setattr(encoder, name, min(length, encoder.tokenizer.model_max_length))


def _size(modules: Iterable[Module]) -> int:
    """How many numbers the vectors of an encoder have; a normalisation has no size of its own."""
    return int([part.get_embedding_dimension() for part in modules if hasattr(part, "get_embedding_dimension")][-1])


def _add_maps(model: SentenceTransformer) -> None:
    """Adds a map for each side, the identity, behind all that there is, unless there are maps."""
    from sentence_transformers.base.modules import Dense, Router

    if any(isinstance(part, Router) for part in list(model)[1:]):
        return
    size = _size(model)
    # A new layer draws random weights first.
    with seeded(0):
        maps = [[Dense(size, size, bias=False, activation_function=None, init_weight=torch.eye(size))] for _ in _TASKS]
    model.append(Router.for_query_document(*maps))
