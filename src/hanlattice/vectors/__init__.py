"""Vectors of characters, bigrams and words: stored compactly, looked up by name, trained from plain text."""

from hanlattice.vectors.storage import Vectors, VectorSet, default_vectors
from hanlattice.vectors.training import train_vectors

__all__ = ["VectorSet", "Vectors", "default_vectors", "train_vectors"]
