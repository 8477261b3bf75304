"""A recipe's ranker, new or to be gone on with."""

from __future__ import annotations

from pathlib import Path

from evenrank.io import EvenrankError, read_queries
from evenrank.rankers.protocol import Ranker, config_file, ranker_class

from .recipes import Recipe


def build_ranker(recipe: Recipe) -> Ranker:
    """The ranker that a recipe starts from, the same weights for the same seed.

    A training run's ``model`` folder in ``ranker.model`` is gone on with, as it is (transfer); else ``cat`` and ``dot``
    start from its encoder, kernel rankers from word vectors. Raises InputError for a folder without weights.
    """
    wanted, seed = recipe.ranker, recipe.training.seed
    if wanted.kind == "cat":
        from evenrank.rankers.cat import CatRanker

        assert wanted.model is not None
        if _ours(wanted.model):
            return CatRanker.load(wanted.model)
        length = wanted.query_length + wanted.passage_length
        return CatRanker.from_pretrained(wanted.model, layers=wanted.layers, max_length=length, seed=seed)
    if wanted.kind == "dot":
        from evenrank.rankers.dot import DotRanker

        assert wanted.model is not None
        if _ours(wanted.model):
            return DotRanker.load(wanted.model)
        return DotRanker.from_pretrained(
            wanted.model,
            shared=wanted.towers == "shared",
            pooling=wanted.pooling,
            projection=wanted.dimensions,
            similarity=wanted.similarity,
            layers=wanted.layers,
            query_length=wanted.query_length,
            passage_length=wanted.passage_length,
            seed=seed,
        )
    form = ranker_class(wanted.kind)
    if wanted.model is not None:
        if not config_file(wanted.model).is_file():
            raise EvenrankError(f"ranker.model: {wanted.model} holds no {wanted.kind} ranker of evenrank")
        return form.load(wanted.model)
    return _from_vectors(recipe)


def _ours(model: str) -> bool:
    """Whether a folder is a training run's result rather than a checkpoint to start from."""
    return (Path(model).parent / "result.json").is_file()


def _from_vectors(recipe: Recipe) -> Ranker:
    from evenrank.embeddings.vectors import read_vectors
    from evenrank.rankers.vocabulary import collection_vectors, collection_words

    wanted, seed = recipe.ranker, recipe.training.seed
    if wanted.vectors == "train":
        vectors = collection_vectors(recipe.data.collection, dimensions=wanted.vector_size, seed=seed)
    else:
        # The words of the collection and of the questions, not the millions that a public file holds.
        known = {*collection_words(recipe.data.collection), *collection_words(read_queries(recipe.data.queries))}
        vectors = read_vectors(wanted.vectors, keep=known)
    form = ranker_class(wanted.kind)
    settings = {"query_length": wanted.query_length, "passage_length": wanted.passage_length, **wanted.settings}
    return form.from_vectors(vectors, settings, seed)  # type: ignore[attr-defined,no-any-return]
