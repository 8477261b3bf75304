"""A recipe's ranker, new or trained before."""

from __future__ import annotations

from pathlib import Path

from evenrank.io import EvenrankError, InputError, read_queries
from evenrank.rankers.protocol import Ranker, config_file, ranker_class

from .recipes import DataRecipe, RankerRecipe


def build_ranker(
    wanted: RankerRecipe, data: DataRecipe | None = None, seed: int = 0, *, texts: object = None
) -> Ranker:
    """The ranker that a recipe starts from; the same seed gives the same weights.

    If ``wanted.model`` is the ``model`` folder of a training run, that ranker is trained further, as it is (transfer);
    otherwise ``cat`` and ``dot`` start from its encoder, and kernel rankers from word vectors of ``data``, or from
    vectors trained on ``texts`` (a collection or a frame of one).

    Raises InputError for a folder without weights.
    """
    length = wanted.query_length + wanted.passage_length
    if wanted.kind == "cat":
        from evenrank.rankers.cat import CatRanker

        assert wanted.model is not None
        if _ours(wanted.model):
            return CatRanker.load(wanted.model)
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
    if wanted.model is not None:
        if not config_file(wanted.model).is_file():
            raise EvenrankError(f"ranker.model: {wanted.model} contains no {wanted.kind} ranker of evenrank")
        return ranker_class(wanted.kind).load(wanted.model)
    return _from_vectors(wanted, data, seed, texts)


def continues(wanted: RankerRecipe) -> bool:
    """Whether a recipe continues the training of a ranker, rather than that of an encoder or of nothing."""
    return wanted.model is not None and (wanted.kind not in ("cat", "dot") or _ours(wanted.model))


def ranker_at(model: str) -> Ranker:
    """A ranker trained before: its folder, or a folder or hub name that sentence-transformers loads.

    Raises InputError or EvenrankError for a model that cannot be used.
    """
    from evenrank.rankers.cat import CatRanker
    from evenrank.rankers.dot import DotRanker
    from evenrank.rankers.models import find_model, load_encoder, load_kernel_ranker

    found = find_model(model)
    if found.architecture == "kernel":
        return load_kernel_ranker(found)
    if found.architecture not in ("cross", "bi"):
        raise InputError(found.path, "cannot be trained further: expected a cross-encoder or a bi-encoder")
    encoder = load_encoder(found, "float32")
    return CatRanker(encoder) if found.architecture == "cross" else DotRanker(encoder)


def _ours(model: str) -> bool:
    """Whether a folder is a training run's result rather than a checkpoint to start from."""
    return (Path(model).parent / "result.json").is_file()


def _from_vectors(wanted: RankerRecipe, data: DataRecipe | None, seed: int, texts: object) -> Ranker:
    from evenrank.rankers.word_ranker import WordRanker, collection_vectors, file_vectors

    if texts is None and data is None:
        raise EvenrankError(f"`ranker`: a {wanted.kind} ranker needs a model (a folder of one)")
    if texts is not None or data is None:
        vectors = collection_vectors(texts, dimensions=wanted.vector_size, seed=seed)
    elif wanted.vectors == "train":
        vectors = collection_vectors(data.collection, dimensions=wanted.vector_size, seed=seed)
    else:
        vectors = file_vectors(wanted.vectors, data.collection, read_queries(data.queries))
    kind = ranker_class(wanted.kind)
    if not issubclass(kind, WordRanker):
        raise EvenrankError(f"ranker.model: a {wanted.kind} ranker needs one (a folder)")
    settings = {"query_length": wanted.query_length, "passage_length": wanted.passage_length, **wanted.settings}
    return kind.from_vectors(vectors, settings, seed)
