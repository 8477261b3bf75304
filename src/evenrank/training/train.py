"""Training from Python: a ranker, lists, a loss, and a fairness term."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

import tomli_w
import torch
from accelerate import PartialState
from transformers import TrainerCallback

from evenrank import options as opt
from evenrank.files import EvenrankError, Provenance, arg, make_folder
from evenrank.files.arguments import checked
from evenrank.files.convert import is_path
from evenrank.groups import as_labels
from evenrank.mitigation.attributes import Attributes, attributes_of, described
from evenrank.mitigation.ibbr import IBBR, FunctionTerm, TermFunction, as_weight, term_named, term_settings
from evenrank.models.load import ENCODERS
from evenrank.models.protocol import Ranker

from .card import Origin
from .choice import Choice, Validation
from .fairness import FairTerm
from .lists import as_lists
from .losses import Loss
from .recipes import RankerRecipe, TrainingSettings, parse_training
from .run import build_ranker, finish, ranker_at, settled
from .trainer import Line, Objective, RankingTrainer, kept_random_state, read_log


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """A trained ranker, the folder it is kept in (if one was given), the log (what was logged at which step), and which
    checkpoint the ranker is of, and why."""

    ranker: Ranker
    folder: Path | None
    log: list[Line] = field(repr=False)
    choice: Choice


@checked
def train(
    ranker: Ranker | RankerRecipe | str | os.PathLike[str],
    lists: object,
    *,
    loss: str | Loss = "nll",
    scale: float | None = None,
    in_batch: bool = False,
    fairness: IBBR | FunctionTerm | TermFunction | str | None = None,
    lexicon: Attributes | None = None,
    labels: opt.Labels = None,
    validation: Validation | None = None,
    out: str | os.PathLike[str] | None = None,
    callbacks: Sequence[TrainerCallback] = (),
    **settings: Unpack[TrainingSettings],
) -> TrainingResult:
    """Trains a ranker on lists of passages.

    ``ranker``: a :class:`Ranker` (trained in place), the folder of one, a folder or hub name that sentence-transformers
    loads as a ranker, or a :class:`RankerRecipe` for a new one on an encoder, or on word vectors: those in a file of
    the words of the lists, or vectors trained on the lists' texts. With ``freeze="encoder"`` and ``map=True`` it trains
    a matrix [d, d] behind a frozen encoder on each side, and encodes each text once.

    ``lists``: records, a frame or a file (JSONL, Parquet) with ``query``, ``passages``, ``relevance`` and perhaps
    ``sides`` and ``values`` (see :func:`as_lists`), or what :func:`training_lists` makes of a run, qrels and texts.

    ``loss``: a name of :mod:`evenrank.training.losses`, or a function of (scores, relevance, mask), each [B, K].
    ``scale``: what scores are multiplied by before the loss and the fairness term (default: 20 for a ``dot`` ranker by
    the cosine, whose scores lie in [−1, 1], else 1); the ranker's own scores stay as they are.
    ``in_batch``: the passages of the batch's other lists are negatives too, for a ``dot`` ranker and ``nll``, as in
    MultipleNegativesRankingLoss; the fairness term still sees each query's own list.
    ``fairness``: :class:`IBBR`, a registered term's name, or a function of (scores, relevance, sides, mask), computed
    over the whole batch of a step. ``lexicon`` (default: gender-en): one, or one for each named attribute, for sides
    that the lists lack; or ``labels``, those that :func:`training_lists` was given.

    ``validation``: a run to re-rank (:meth:`Validation.of`), which chooses the checkpoint; beside a fairness term, only
    with ``attributes``, else the last is kept. ``out``: a folder for the ``model`` with its card, the log
    (``log.jsonl``), ``checkpoints``, ``result.json``, and, of a validation, ``validation.run`` and ``audit.json``, as
    :func:`train_recipe` writes them. ``callbacks``: those of transformers, which are called beside evenrank's own.
    ``settings`` are those of a recipe's ``[training]``: ``epochs``, ``batch``, … (:class:`TrainingSettings`).

    Raises EvenrankError for input and settings that cannot be used, and for a folder with a training in it;
    TrainingError if the loss is not a number. A recipe (:func:`train_recipe`) also resumes.
    """
    training = parse_training(settings)
    chosen = (lexicon if labels is None else as_labels(labels)) or "gender-en"
    attributes = attributes_of(chosen) if fairness is not None else {}
    dataset = as_lists(lists, list(attributes.values()))
    names = [name or described(attribute) for name, attribute in attributes.items()]
    if scale is not None and not 0 < scale < math.inf:
        raise EvenrankError(f"{arg.scale}: expected more than 0, found {scale:g}")
    objective = Objective(
        loss, None if fairness is None else _fair_term(fairness, names), scale=scale, in_batch=in_batch
    )
    state = PartialState(cpu=not torch.cuda.is_available())
    folder = None if out is None else Path(out)
    _check_folder(folder, state)
    began, base = ranker, ranker.model if isinstance(ranker, RankerRecipe) else ranker
    base = os.fspath(base) if isinstance(base, str | os.PathLike) else None
    provenance = Provenance("evenrank.train")
    if folder is not None:
        provenance.add_model("model", base).add("lists", lists if is_path(lists) else None).ahead(state.is_main_process)
    if isinstance(ranker, RankerRecipe):
        has_words = ranker.kind not in ENCODERS and ranker.model is None
        ranker = build_ranker(ranker, seed=training.seed, texts=dataset.texts() if has_words else None)
    ranker = ranker if isinstance(ranker, Ranker) else ranker_at(os.fspath(ranker))
    with contextlib.ExitStack() as stack:
        stack.enter_context(kept_random_state())
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        trainer = RankingTrainer(
            ranker, dataset, objective, training, place, validation, validation.depth if validation else 1
        )
        for callback in callbacks:
            trainer.add_callback(callback)
        choice = trainer.fit()
        if folder is not None and state.is_main_process:
            ranked_by = {"name": getattr(loss, "__name__", str(loss)), "scale": trainer.scale, "in_batch": in_batch}
            sections = {"loss": ranked_by, "training": training.model_dump(exclude_none=True)}
            if objective.fair is not None:
                sections["fairness"] = term_settings(objective.fair.batch.term, objective.fair.batch.weight)
            finish(trainer, choice, _origin(folder.resolve().name, ranker, began, base, sections), {}, provenance)
        state.wait_for_everyone()
        return TrainingResult(ranker, folder, read_log(trainer.log_path), choice)


def _check_folder(folder: Path | None, state: PartialState) -> None:
    """Makes the folder. Raises EvenrankError if a training is in it, and if several processes have none to share."""
    if folder is None and state.num_processes > 1:
        raise EvenrankError(f"{arg.out}: several processes need a folder to share")
    if folder is not None and state.is_main_process:
        if (folder / "model").exists() or (folder / "log.jsonl").exists():
            raise EvenrankError(f"{arg.out}: {folder} contains a training already")
        make_folder(folder)
    state.wait_for_everyone()


def _origin(name: str, ranker: Ranker, began: object, base: str | None, sections: Mapping[str, object]) -> Origin:
    """What the card of a training from Python says that its model was made from."""
    chosen = {"kind": ranker.kind} | ({} if base is None else {"model": base})
    if isinstance(began, RankerRecipe):
        chosen = settled(began).model_dump(exclude_none=True)
    return Origin(name, ranker.kind, base, tomli_w.dumps({"ranker": chosen, **sections}))


def _fair_term(given: IBBR | FunctionTerm | TermFunction | str, names: list[str]) -> FairTerm:
    if isinstance(given, str):
        given = term_named(given)
    elif not isinstance(given, IBBR | FunctionTerm):
        given = FunctionTerm(given)
    return FairTerm(given, as_weight(given.weight), names)
