"""The end of a training run: the model, its validation run, its figures and its card."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evenrank.groups import Scoring, load_lexicon
from evenrank.io import Provenance, write_run, write_text
from evenrank.io.atomic import json_text
from evenrank.io.types import Array
from evenrank.rankers.protocol import Ranker

from .passage_groups import ADVERSARY
from .recipes import Recipe, named_as
from .trainer import RankingTrainer
from .validation import Validation


def finish(trainer: RankingTrainer, recipe: Recipe, known: dict[str, object], made: Provenance) -> None:
    """Writes what a finished run contains; ``known``: what is already known of its result."""
    from .card import write_card

    folder, ranker, validation = recipe.folder, trainer.ranker, trainer.validation
    assert validation is not None
    ranker.eval()
    scores = validation.scores(ranker)
    depth, value = validation.best_depth(scores, recipe.validation.depths or (recipe.validation.depth,))
    before = validation.value(validation.run)
    run = validation.reranked(scores, depth, recipe.name)
    ranker.save(folder / "model")
    write_run(run, folder / "validation.run")
    queries, p = validation.tested(run)
    result: dict[str, object] = {
        "measure": validation.measure,
        "first_stage": before,
        "value": value,
        "depth": depth,
        "queries": queries,
        "p": p,
        "steps": trainer.state.global_step,
        "best_checkpoint": Path(trainer.state.best_model_checkpoint or "").name,
        **known,
    }
    if recipe.fairness is not None:
        result["delta_aprf"] = validation.delta_aprf(run)
        result["delta_aprf_first_stage"] = validation.delta_aprf(validation.run)
    labels = known_by_labels(known["groups"], validation)  # type: ignore[arg-type]
    if labels:
        result["labels"] = labels
    if "leakage" in result:
        result["leakage"] = {**known["leakage"], "after": leakage(recipe, ranker, validation)}  # type: ignore[dict-item]
    result["cut"] = _cut(recipe, ranker, validation)
    write_card(recipe, folder, result, validation, run, made)
    # Last: it marks the run as finished.
    write_text(folder / "result.json", json_text(result | {"provenance": made.to_dict()}))


def known_by_labels(counts: Mapping[str, int], validation: Validation) -> dict[str, dict[str, int]]:
    """For each attribute with labels, how many passages of the lists and documents of the validation have one."""
    tables = dict(validation.attributes)
    if validation.target is not None:
        tables[ADVERSARY] = validation.target
    documents = validation.run.table["doc_id"].unique()
    found = {}
    for name, labels in tables.items():
        if labels.labelled:
            found[name] = {
                "passages": counts["passages"],
                "known": counts[f"known_{name}"],
                "relevant": counts["relevant"],
                "known_relevant": counts[f"known_relevant_{name}"],
                "validated": len(documents),
                "known_validated": int(documents.is_in(labels.table["doc_id"].implode()).sum()),
            }
    return found


def base_value(trainer: RankingTrainer, recipe: Recipe) -> float:
    """The validation measure of the ranker that a training is to continue from, found as that of the trained one is."""
    validation = trainer.validation
    assert validation is not None
    scores = validation.scores(trainer.ranker)
    return validation.best_depth(scores, recipe.validation.depths or (recipe.validation.depth,))[1]


def with_adversary(
    recipe: Recipe, ranker: Ranker, validation: Validation, main: bool
) -> tuple[Ranker, dict[str, object]]:
    """The ranker with the adversary that its recipe asks for, and what a fresh one finds before training."""
    wanted = recipe.adversary
    if wanted is None:
        return ranker, {}
    from evenrank.mitigation.adversarial import AdversarialRanker

    scoring = None
    if wanted.lexicon is not None:
        with named_as(lexicon="adversary.lexicon"):
            scoring = Scoring(load_lexicon(wanted.lexicon))
    both = AdversarialRanker(ranker, scoring, label=wanted.label, factor=wanted.factor, seed=recipe.training.seed)
    return both, {"leakage": {"before": leakage(recipe, both, validation)}} if wanted.attack and main else {}


def leakage(recipe: Recipe, ranker: Ranker, validation: Validation) -> dict[str, object]:
    """How well a fresh adversary tells gendered pairs of the validation run."""
    from evenrank.mitigation.adversarial import AdversarialRanker, attack, gendered_by_label

    assert isinstance(ranker, AdversarialRanker)
    known: Scoring | Array | None = ranker.scoring
    if known is None:
        assert validation.target is not None
        known = gendered_by_label(validation.pairs["doc_id"], validation.target, ranker.label)
    found = attack(ranker.ranker, *validation.read, known, label=ranker.label, seed=recipe.training.seed)
    return found.as_json()


def _cut(recipe: Recipe, ranker: Ranker, validation: Validation) -> dict[str, int]:
    """How many validation passages are longer than the ranker reads, and how many answers are lost by that."""
    queries, passages = validation.read
    read = ranker.reads_to(queries, passages)
    counts = {"pairs": len(passages), "passages": sum(r < len(t.rstrip()) for r, t in zip(read, passages, strict=True))}
    if recipe.validation.answers is not None:
        from evenrank.io.squad import load_squad

        found = load_squad(recipe.validation.answers)
        spans = validation.pairs.join(found.answers(), on=["query_id", "doc_id"], how="inner")
        counts["answers"] = spans.height
        counts["answers_realigned"] = found.alignment.realigned
        counts["answers_left_out"] = len(found.alignment.left_out)
        counts["answers_lost"] = ranker.lost_spans(
            spans["query"].to_list(), spans["text"].to_list(), spans["answer_end"].to_list()
        )
    return counts
