"""For the trainers of sentence-transformers: IBBR losses, and an evaluator that reports bias beside effectiveness.

>>> trainer = SentenceTransformerTrainer(  # doctest: +SKIP
...     model, args, with_group_labels(dataset), loss=IBBRLoss(model, weight=0.1), evaluator=BiasEvaluator(...)
... )
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import polars as pl
import torch
from ir_measures import Measure
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.util import batch_to_device
from torch import Tensor, distributed, nn
from torch.nn import functional
from transformers import TrainerCallback

from evenrank.groups import Lexicon, Scoring, label_texts, load_lexicon, score_in_memory
from evenrank.io import MAGNITUDES, EvenrankError, Run, Scores, write_text
from evenrank.io.errors import shown
from evenrank.io.tables import IdIndex
from evenrank.measures import Background, Evaluation, is_bias, parse_measure, parse_measures
from evenrank.measures.evaluate import BACKGROUND_DEPTH, DELTA
from evenrank.measures.pairwise import delta_aprf
from evenrank.mitigation import ibbr
from evenrank.training.losses import LOSSES

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

RankLoss = Literal["nll", "hinge", "bce", "ranknet"]
Weight = float | Literal["auto", "dual"] | ibbr.FixedWeight
OneLexicon = str | os.PathLike[str] | Lexicon | Scoring
Attributes = OneLexicon | Mapping[str, OneLexicon]
"""One lexicon (a built-in name, a file, a Lexicon or a Scoring), or one for each of several named attributes."""
Texts = Mapping[str, str] | pl.DataFrame

_LABEL_COLUMNS = ("label", "labels", "score", "scores", "dataset_name")
_SIMILARITIES = 1 << 14
_CITATION = """
@inproceedings{li2022debiasing,
    title = "Debiasing Neural Retrieval via In-batch Balancing Regularization",
    author = "Li, Yuantong and Wei, Xiaokai and Wang, Zijian and Wang, Shen and Bhatia, Parminder and Ma, Xiaofei and Arnold, Andrew",
    booktitle = "Proceedings of the 4th Workshop on Gender Bias in Natural Language Processing",
    year = "2022",
}
"""  # noqa: E501


# --- group labels -----------------------------------------------------------------------------------------------------


def _scorings(lexicon: Attributes) -> dict[str, Scoring]:
    """How each attribute's texts are labelled, by its name; the name of one alone is empty."""
    named = lexicon if isinstance(lexicon, Mapping) else {"": lexicon}
    found = {}
    for name, one in named.items():
        if not isinstance(one, Scoring):
            one = Scoring(one if isinstance(one, Lexicon) else load_lexicon(one), magnitudes=("tf_words",))
        if one.lexicon.poles is None:
            groups = ", ".join(one.lexicon.groups)
            raise EvenrankError(
                f"the lexicon {one.lexicon.name} has the groups {groups}: load_lexicon(…, poles='a,b') says which two"
                " to balance"
            )
        found[name] = Scoring(one.lexicon, one.tokens, ("tf_words",), one.threshold)
    if not found:
        raise EvenrankError("lexicon: expected at least one attribute")
    return found


def with_group_labels(dataset: Any, lexicon: Attributes = "gender-en") -> Any:
    """A dataset (query, positive, negative_1 … negative_n) with the column ``label`` that :class:`IBBRLoss` reads.

    ``label`` [K] holds for each passage, the positive first, +1 for the lexicon's first pole, −1 for its second, 0 for
    neither [IBBR §2.2]; [A, K] where ``lexicon`` names A attributes. ``dataset``: a Dataset, an IterableDataset whose
    columns are known, or a DatasetDict of either. Raises EvenrankError for fewer than three text columns, and where
    there is a label already.
    """
    if isinstance(dataset, Mapping):
        kind: Any = type(dataset)
        return kind({name: with_group_labels(part, lexicon) for name, part in dataset.items()})
    columns = list(dataset.column_names or ())
    taken = [name for name in columns if name in _LABEL_COLUMNS]
    if taken:
        raise EvenrankError(f"the dataset has a column {taken[0]}, which would be taken for the group labels")
    if len(columns) < 3:
        raise EvenrankError(f"expected the columns query, positive and negatives, found {', '.join(columns) or 'none'}")
    scorings = _scorings(lexicon)

    def label(batch: Mapping[str, list[str]]) -> dict[str, list[Any]]:
        texts = [text for name in columns[1:] for text in batch[name]]
        labels = [label_texts(texts, one).reshape(len(columns) - 1, -1).T for one in scorings.values()]
        table = np.stack(labels, axis=1) if isinstance(lexicon, Mapping) else labels[0]
        return {"label": table.tolist()}

    return dataset.map(label, batched=True)


# --- losses -----------------------------------------------------------------------------------------------------------


class _BalancedLoss(nn.Module):
    """A ranking loss and the IBBR term of each attribute, as a dict of weighted parts."""

    def __init__(
        self,
        model: nn.Module,
        weight: Weight,
        term: ibbr.Term,
        form: ibbr.Form,
        score: ibbr.Score,
        rank_loss: RankLoss,
        attributes: Sequence[str],
    ) -> None:
        super().__init__()
        if rank_loss not in get_args(RankLoss):
            raise ValueError(f"rank_loss: expected {', '.join(get_args(RankLoss))}, found {rank_loss!r}")
        self.model: Any = model
        self.ibbr = ibbr.IBBR(term, form, score)
        self.rank_loss = rank_loss
        self.weight = _weight(weight)
        self.parts = [f"fair_{name}" if name else "fair" for name in attributes]
        if len(set(self.parts)) < len(self.parts):
            raise ValueError("attributes: two have the same name")

    def weighed(self, scores: Tensor, labels: Tensor, groups: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """``rank`` and ``fair`` of score matrices [B, K]; ``groups`` [A, B, K].

        The nPRF of all processes are gathered (see :class:`evenrank.mitigation.ibbr.Whole`). A piece's share of the
        gradient is multiplied by the number of processes, over which the trainer averages.
        """
        scores = scores.float()
        found = [self.ibbr.pairwise(scores, labels, signs, mask) for signs in groups]
        local = ibbr.stacked(found)
        values, start, processes = _gathered(local)
        rank_weight, weights = self.weight.weights(len(self.parts))
        whole = ibbr.Whole.of(self.ibbr, values, weights)
        gradient = processes * whole.gradient[start : start + len(local)]
        rank = LOSSES[self.rank_loss](scores, labels, mask)
        parts = {"rank": rank_weight * rank}
        for a, name in enumerate(self.parts):
            share = (found[a].nprf * gradient[:, a].T).sum()
            parts[name] = weights[a] * (whole.terms[a] or 0.0) + share - share.detach()
        # Evaluation has no gradient, and must not move the weight.
        if torch.is_grad_enabled() and self.model.training:
            self.weight.update(_mean_of_processes(rank), whole.terms, whole.delta)
        return parts

    def get_config_dict(self) -> dict[str, Any]:
        """The settings, for the model card."""
        kind = type(self.weight)
        weight = self.weight.weight if kind is ibbr.FixedWeight else kind.__name__
        term = {"term": self.ibbr.term, "form": self.ibbr.form, "score": self.ibbr.score}
        return {"weight": weight, **term, "rank_loss": self.rank_loss}

    @property
    def citation(self) -> str:
        """The paper, for the model card."""
        return _CITATION


class IBBRLoss(_BalancedLoss):
    """In-batch balancing regularization of a bi-encoder: a ranking loss plus ``weight`` times ``term``.

    Li et al. 2022 [IBBR], eq. 5–7; :mod:`evenrank.mitigation.ibbr` defines the terms, :mod:`evenrank.training.losses`
    the ranking losses.

    Columns: query, positive, negative_1 … negative_n, in this order, and ``label`` [K] with K = n + 1: each passage's
    group, +1, −1 or 0, the positive first (:func:`with_group_labels` makes it); [A, K] where ``attributes`` names A.

    Returns the parts ``rank`` and ``fair`` (``fair_NAME`` for each of ``attributes``), weighted as they are summed by
    the trainer, which logs each. ``weight``: a number, ``"auto"``, ``"dual"``, or one of the classes of
    :mod:`evenrank.mitigation.ibbr` for other settings; it changes after each training step, and
    :class:`KeepWeight` keeps it in checkpoints, which do not hold the state of losses otherwise. With ``"auto"`` the
    parts leave out what has no gradient (a + b).

    A score is ``scale`` times the model's similarity of query and passage. Default: 1 for the inner product, 20 for the
    cosine. ``score``: R in nPRF.

    The term looks at a step's batch in all processes. Gradient accumulation does not enlarge it: it is the mean of the
    terms of the smaller batches.

    Raises ValueError for a setting out of range and for a batch of another shape.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        weight: Weight = 0.1,
        term: ibbr.Term = "ibbr-ts",
        *,
        form: ibbr.Form = "squared",
        score: ibbr.Score = "softmax",
        rank_loss: RankLoss = "nll",
        scale: float | None = None,
        attributes: Sequence[str] = (),
    ) -> None:
        similarity = model.similarity_fn_name
        if similarity not in ("dot", "cosine"):
            raise ValueError(f"similarity: expected dot or cosine, found {similarity!r}")
        cosine = similarity == "cosine"
        super().__init__(model, weight, term, form, score, rank_loss, tuple(attributes) or ("",))
        self.cosine = cosine
        self.several = bool(attributes)
        self.scale = (20.0 if cosine else 1.0) if scale is None else scale
        if not self.scale > 0:
            raise ValueError(f"scale: expected more than 0, found {scale}")

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None) -> dict[str, Tensor]:
        """The parts of the loss of the columns' features and of their group labels [B, K] or [B, A, K]."""
        columns = list(sentence_features)
        if len(columns) < 3:
            raise ValueError(f"IBBRLoss needs the columns query, positive and negatives, found {len(columns)} columns")
        shape = (len(self.parts), len(columns) - 1) if self.several else (len(columns) - 1,)
        if labels is None:
            raise ValueError("IBBRLoss needs the column label with the passages' groups: see with_group_labels")
        if tuple(labels.shape[1:]) != shape:
            raise ValueError(f"label: expected {shape} group labels a query, found {tuple(labels.shape[1:])}")
        _check_groups(labels)
        query, *documents = (self.model(column)["sentence_embedding"].float() for column in columns)
        stacked = torch.stack(documents, dim=1)
        if self.cosine:
            query, stacked = functional.normalize(query, dim=-1), functional.normalize(stacked, dim=-1)
        scores = self.scale * (query[:, None] * stacked).sum(2)
        groups = labels.transpose(0, 1) if self.several else labels[None]
        relevance = torch.zeros_like(scores)
        relevance[:, 0] = 1
        return self.weighed(scores, relevance, groups.to(scores.device), torch.ones_like(scores, dtype=torch.bool))

    def get_config_dict(self) -> dict[str, Any]:
        """The settings, for the model card."""
        return {**super().get_config_dict(), "scale": self.scale}


class CrossEncoderIBBRLoss(_BalancedLoss):
    """In-batch balancing regularization of a cross-encoder with one score a pair; otherwise as :class:`IBBRLoss`.

    Columns: query, docs (a list), in this order, and ``labels`` (a list; relevant from 1 on). Lists may be ragged. The
    passages' groups come from ``lexicon`` (a lexicon, or one for each of several named attributes: the parts are then
    ``fair_NAME``), or from a third column: a list of +1, −1 and 0 for each query, a list of such lists where there are
    several attributes.

    Raises ValueError for a setting out of range and for a batch of another shape, EvenrankError for a lexicon.
    """

    def __init__(
        self,
        model: CrossEncoder,
        weight: Weight = 0.1,
        term: ibbr.Term = "ibbr-ts",
        *,
        form: ibbr.Form = "squared",
        score: ibbr.Score = "softmax",
        rank_loss: RankLoss = "nll",
        lexicon: Attributes = "gender-en",
    ) -> None:
        if model.num_labels != 1:
            raise ValueError(f"expected a model with one score a pair, found {model.num_labels}")
        scorings = _scorings(lexicon)
        super().__init__(model, weight, term, form, score, rank_loss, tuple(scorings))
        self.scorings = scorings
        self.several = isinstance(lexicon, Mapping)

    def forward(
        self,
        inputs: list[list[Any]],
        labels: Sequence[Tensor] | None,
        prompt: str | None = None,
        task: str | None = None,
    ) -> dict[str, Tensor]:
        """The parts of the loss of the columns [B] and of the relevance [K_b] of each query's passages."""
        try:
            return self._forward(inputs, labels, prompt, task)
        except TypeError as error:
            # The trainer takes it for a loss without prompt and task, and would call again without them.
            raise RuntimeError(f"CrossEncoderIBBRLoss: {error}") from error

    def _forward(
        self, inputs: list[list[Any]], labels: Sequence[Tensor] | None, prompt: str | None, task: str | None
    ) -> dict[str, Tensor]:
        documents, relevant = _check_lists(inputs, labels)
        lengths = torch.tensor([len(row) for row in documents])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        groups = self._groups(documents, inputs[2] if len(inputs) == 3 else None)
        pairs = [(query, text) for query, row in zip(inputs[0], documents, strict=True) for text in row]
        features = batch_to_device(self.model.preprocess(pairs, prompt=prompt, task=task), self.model.device)
        found = self.model(features)["scores"].view(-1).float()
        place = mask.to(found.device)

        def laid(values: Tensor) -> Tensor:
            # Pairs stand query by query, as the True of the mask do.
            return torch.zeros(mask.shape, device=found.device).masked_scatter(place, values.to(found))

        signs = torch.stack([laid(one) for one in groups])
        return self.weighed(laid(found), laid(torch.cat(relevant)), signs, place)

    def _groups(self, documents: list[list[str]], given: list[Any] | None) -> Tensor:
        """Group labels [A, pairs]."""
        if given is None:
            texts = [text for row in documents for text in row]
            return torch.from_numpy(np.stack([label_texts(texts, one) for one in self.scorings.values()]))
        rows = [np.asarray(row if self.several else [row]) for row in given]
        if [row.shape for row in rows] != [(len(self.parts), len(row)) for row in documents]:
            raise ValueError("the third column: expected a group label for each passage (and each attribute)")
        signs = torch.from_numpy(np.concatenate(rows, axis=1))
        _check_groups(signs)
        return signs


def _weight(weight: Weight) -> ibbr.FixedWeight:
    if isinstance(weight, ibbr.FixedWeight):
        return weight
    if weight == "auto":
        return ibbr.AutoWeight()
    if weight == "dual":
        return ibbr.DualWeight()
    if isinstance(weight, str) or not weight >= 0:
        raise ValueError(f'weight: expected 0 or more, "auto" or "dual", found {weight!r}')
    return ibbr.FixedWeight(float(weight))


def _check_groups(groups: Tensor) -> None:
    if not bool(((groups == 0) | (groups.abs() == 1)).all()):
        raise ValueError("group labels: expected +1, -1 and 0 alone")


def _check_lists(inputs: Sequence[Any], labels: Any) -> tuple[list[list[str]], list[Tensor]]:
    """The passages and the relevance of each query, where they have the form that they should have."""
    if len(inputs) not in (2, 3):
        raise ValueError(f"expected the columns query and docs, and perhaps one of group labels, found {len(inputs)}")
    if labels is None or isinstance(labels, Tensor):
        raise ValueError("expected the column labels with a list of relevance grades for each query")
    queries, documents = inputs[0], inputs[1]
    if not all(isinstance(query, str) for query in queries):
        raise ValueError("the first column: expected a text for each query")
    if not all(isinstance(row, (list, tuple)) and all(isinstance(text, str) for text in row) for row in documents):
        raise ValueError("the second column: expected a list of texts for each query")
    if [len(row) for row in documents] != [one.numel() for one in labels]:
        raise ValueError("labels: expected as many grades as there are passages, for each query")
    if not any(documents):
        raise ValueError("the second column: no query of the batch has a passage")
    return [list(row) for row in documents], list(labels)


def _processes() -> int:
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def _gathered(local: Tensor) -> tuple[Tensor, int, int]:
    """The rows of all processes, where this one's start, and how many processes there are. Rows of 0 may stand between.

    A row of 0 is a query without a value.
    """
    processes = _processes()
    if processes == 1:
        return local, 0, 1
    size = torch.tensor(len(local), device=local.device)
    distributed.all_reduce(size, distributed.ReduceOp.MAX)
    padded = torch.cat([local, local.new_zeros(int(size) - len(local), *local.shape[1:])])
    parts = [torch.empty_like(padded) for _ in range(processes)]
    distributed.all_gather(parts, padded)
    return torch.cat(parts), distributed.get_rank() * int(size), processes


def _mean_of_processes(value: Tensor) -> float:
    if _processes() == 1:
        return float(value.detach())
    total = value.detach().clone()
    distributed.all_reduce(total)
    return float(total) / _processes()


class KeepWeight(TrainerCallback):
    """Keeps a loss's changing weight (``"auto"``, ``"dual"``) in the trainer's checkpoints: ``fairness_weight.json``.

    Give it to the trainer as a callback; a training resumed from one of its ``checkpoint-STEP`` folders then goes on
    with that weight. Raises EvenrankError where such a folder holds none.
    """

    def __init__(self, loss: _BalancedLoss) -> None:
        self.loss = loss

    @staticmethod
    def _file(args: Any, state: Any) -> Path:
        return Path(args.output_dir) / f"checkpoint-{state.global_step}" / "fairness_weight.json"

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Writes the weight into the checkpoint."""
        if state.is_world_process_zero:
            write_text(self._file(args, state), json.dumps(self.loss.weight.state()))

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Takes the weight of the checkpoint that the training goes on from."""
        if not state.global_step:
            return
        try:
            self.loss.weight.restore(json.loads(self._file(args, state).read_text(encoding="utf-8")))
        except (OSError, ValueError, LookupError, TypeError):
            raise EvenrankError(f"{self._file(args, state)}: no weight to go on with") from None


# --- evaluator --------------------------------------------------------------------------------------------------------


class BiasEvaluator(BaseEvaluator):  # type: ignore[misc]
    """Re-ranks candidates with a model and reports bias beside effectiveness; for both trainers, and by itself.

    ``queries``: the texts of the queries to evaluate, by id; ``corpus``: those of at least the candidates.
    ``relevant``: each query's relevant documents (a set, or document → grade). ``candidates``: each query's documents,
    best first, or a Run; the first ``depth`` are re-ranked. Tables with evenrank's own columns (``query_id``,
    ``doc_id``, ``text``, ``relevance``) do too. What belongs to other queries is left out; a judged query without
    candidates counts 0 in effectiveness.

    The documents are scored once, with ``lexicon`` (or come scored in ``scores``). NFaiRR's background is the first
    ``background_depth`` candidates. Figures are those of :func:`evenrank.audit` with the candidates as baseline; those
    of the candidates as they come are in ``first_stage``.

    Called with a SentenceTransformer or a CrossEncoder, it returns the figures by the measures' names, with ``name_``
    before them; |ΔA-PRF| is spelled ``AbsoluteDeltaAPRF``, since ``|`` parts cells in a model card. The trainers log
    them, and the model card lists them. With an ``output_path`` it adds a line to a CSV file there.
    ``primary_metric`` is nDCG@10, or else the first measure of effectiveness.

    Raises EvenrankError for measures without one of effectiveness (a model that ranks at random is fair), and for
    queries or documents without a text.
    """

    def __init__(
        self,
        queries: Texts,
        corpus: Texts,
        relevant: Mapping[str, Mapping[str, int] | AbstractSet[str] | Sequence[str]] | pl.DataFrame,
        candidates: Mapping[str, Sequence[str]] | Run | pl.DataFrame,
        *,
        lexicon: OneLexicon = "gender-en",
        scores: Scores | None = None,
        measures: str | Sequence[str | Measure] = "nDCG@10 NFaiRR@10 ARaB@10 |DeltaAPRF|",
        depth: int = 100,
        background_depth: int = BACKGROUND_DEPTH,
        batch_size: int = 32,
        name: str = "",
        write_csv: bool = True,
        show_progress_bar: bool = False,
    ) -> None:
        super().__init__()
        if min(depth, background_depth, batch_size) < 1:
            raise EvenrankError("depth, background_depth and batch_size: expected 1 or more")
        chosen = parse_measures(measures) if isinstance(measures, str) else [parse_measure(one) for one in measures]
        self.measures = {_key(measure): measure for measure in chosen}
        effective = [key for key, measure in self.measures.items() if not is_bias(measure)]
        if not effective:
            raise EvenrankError("measures: none is of effectiveness, and a ranking at random is fair: add nDCG@10")
        self.primary_metric = "nDCG@10" if "nDCG@10" in effective else effective[0]
        self.name = name
        self.depth = depth
        self.batch_size = batch_size
        self.write_csv = write_csv
        self.show_progress_bar = show_progress_bar
        self.csv_file = "_".join(["BiasEvaluator", *([name] if name else []), "results.csv"])

        texts = _text_table(queries, "query_id")
        everything = _candidates(candidates)
        asked = everything.table.filter(pl.col("query_id").is_in(texts["query_id"].implode()))
        if not asked.height:
            raise EvenrankError("candidates: none of the queries has any")
        candidate_run = Run(everything.name, asked)
        documents = _text_table(corpus, "doc_id", asked["doc_id"].unique(maintain_order=True))
        self._qrels = _judgements(relevant).filter(pl.col("query_id").is_in(texts["query_id"].implode()))
        if scores is None:
            one = lexicon
            if not isinstance(one, Scoring):
                one = Scoring(one if isinstance(one, Lexicon) else load_lexicon(one))
            kinds = tuple(kind for kind in MAGNITUDES if kind != "count")
            scores = score_in_memory(documents, Scoring(one.lexicon, one.tokens, kinds, one.threshold))
        self._scores = scores
        first = Evaluation(candidate_run, scores, self._qrels)
        self._background = first.background = Background.of(first, candidate_run.name, background_depth)
        self.first_stage = _figures(first, self.measures)

        self._table = asked.filter(pl.col("rank") <= depth)
        query_ids, document_ids = (self._table[n].unique(maintain_order=True) for n in ("query_id", "doc_id"))
        self._query = IdIndex([query_ids]).places(self._table["query_id"]).astype(np.int64)
        self._document = IdIndex([document_ids]).places(self._table["doc_id"]).astype(np.int64)
        self._queries = _in_order(texts, query_ids)
        self._documents = _in_order(documents, document_ids)

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """The figures of the model's re-ranking."""
        training = model.training
        scores = self._scored(model)
        model.train(training)
        run = Run.from_table(self._table.with_columns(pl.Series("score", scores)), self.name or "model")
        evaluation = Evaluation(run, self._scores, self._qrels, background=self._background)
        figures = _figures(evaluation, self.measures)
        if output_path is not None and self.write_csv:
            self._add_line(Path(output_path) / self.csv_file, [epoch, steps, *figures.values()])
        metrics: dict[str, float] = self.prefix_name_to_metrics(figures, self.name)
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)
        return metrics

    def _scored(self, model: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The model's score of each candidate, its logit or its similarity of query and document."""
        options = {"batch_size": self.batch_size, "show_progress_bar": self.show_progress_bar}
        if not hasattr(model, "encode_query"):
            pairs = [(self._queries[q], self._documents[d]) for q, d in zip(self._query, self._document, strict=True)]
            return np.asarray(model.predict(pairs, activation_fn=nn.Identity(), **options), np.float64)
        queries = model.encode_query(self._queries, convert_to_tensor=True, **options).float()
        documents = model.encode_document(self._documents, convert_to_tensor=True, **options).float()
        scores = np.empty(len(self._query))
        with torch.inference_mode():
            for start in range(0, len(scores), _SIMILARITIES):
                part = slice(start, start + _SIMILARITIES)
                rows = [torch.from_numpy(numbers[part]).to(queries.device) for numbers in (self._query, self._document)]
                similarity = model.similarity_pairwise(queries[rows[0]], documents[rows[1]])
                scores[part] = similarity.cpu().numpy()
        return scores

    def _add_line(self, path: Path, values: list[float]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        if path.exists():
            lines.write(path.read_text(encoding="utf-8"))
        else:
            writer.writerow(["epoch", "steps", *self.measures])
        writer.writerow(values)
        write_text(path, lines.getvalue())

    @property
    def description(self) -> str:
        """What the model card calls it."""
        return "Effectiveness and Bias"

    def get_config_dict(self) -> dict[str, Any]:
        """The settings, for the model card."""
        settings = {key: self._scores.settings.get(key) for key in ("lexicon", "poles", "tokens", "threshold")}
        return {
            **settings,
            "queries": len(self._queries),
            "depth": self.depth,
            "background": f"the candidates, {self._background.depth} a query",
            "first stage": {key: round(value, 4) for key, value in self.first_stage.items()},
        }


def _key(measure: Measure) -> str:
    """A measure's name without bars."""
    text = str(measure)
    if not text.startswith("|"):
        return text
    _, name, rest = text.split("|", 2)
    return ("AbsoluteMean" if name == "ARaB" else "Absolute") + name + rest


def _figures(evaluation: Evaluation, measures: Mapping[str, Measure]) -> dict[str, float]:
    """The run's figure on each measure; NaN where no query (of a group) has a value."""
    figures = {}
    for key, measure in measures.items():
        if measure.NAME in DELTA:
            figure = delta_aprf(*evaluation.poles_prf(measure))
        else:
            values = evaluation.values(measure)
            figure = float("nan") if np.isnan(values).all() else float(np.nanmean(values))
        figures[key] = abs(figure) if measure.NAME.startswith("|") else figure
    return figures


def _text_table(texts: Texts, name: str, ids: pl.Series | None = None) -> pl.DataFrame:
    """Texts as a table with the ids ``name``; with ``ids``, theirs alone, all of which must be there."""
    if isinstance(texts, Mapping):
        wanted = texts if ids is None else {id_: texts[id_] for id_ in ids if id_ in texts}
        table = pl.DataFrame({name: list(wanted), "text": list(wanted.values())}, {name: pl.String, "text": pl.String})
    else:
        table = texts.select(pl.col(name).cast(pl.String), "text").unique(name, keep="first", maintain_order=True)
        table = table if ids is None else table.filter(pl.col(name).is_in(ids.implode()))
    table = table.drop_nulls("text")
    if ids is not None and table.height < len(ids):
        lacking = ids.filter(~ids.is_in(table[name].implode()))
        raise EvenrankError(f"candidates: {len(lacking)} documents without a text, such as {shown(lacking[0])}")
    return table


def _in_order(texts: pl.DataFrame, ids: pl.Series) -> list[str]:
    """The texts of ``ids``, in their order."""
    return ids.to_frame().join(texts, on=ids.name, how="left", maintain_order="left")["text"].to_list()


def _candidates(given: Mapping[str, Sequence[str]] | Run | pl.DataFrame) -> Run:
    if isinstance(given, Run):
        return given
    if isinstance(given, pl.DataFrame):
        return Run.from_table(given, "candidates")
    rows = [(query, document, 0.0) for query, documents in given.items() for document in documents]
    table = pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")
    return Run.from_table(table, "candidates", order="file")


def _judgements(given: Mapping[str, Any] | pl.DataFrame) -> pl.DataFrame:
    if isinstance(given, pl.DataFrame):
        return given.select(pl.col("query_id", "doc_id").cast(pl.String), pl.col("relevance").cast(pl.Int64))
    rows = [
        (query, document, int(documents[document]) if isinstance(documents, Mapping) else 1)
        for query, documents in given.items()
        for document in documents
    ]
    return pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row")
