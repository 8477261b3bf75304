"""Word vectors: read from the usual files, taken from a transformer, or trained on a collection."""

from .vectors import Vectors, from_keyed_vectors, from_transformer, read_vectors, train_vectors

__all__ = ["Vectors", "from_keyed_vectors", "from_transformer", "read_vectors", "train_vectors"]
