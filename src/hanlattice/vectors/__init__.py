"""Vectors of characters, bigrams and words.

`storage` holds them in memory and in a compact file, and looks them up by name. `training` trains them with
word2vec from plain text, which `texts` reads and cleans.
"""

from hanlattice.vectors.storage import Vectors, VectorSet, default_vectors
from hanlattice.vectors.training import train_vectors

__all__ = ["VectorSet", "Vectors", "default_vectors", "train_vectors"]
