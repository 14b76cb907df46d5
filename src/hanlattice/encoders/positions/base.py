"""The contract of position encodings, and the relative shift that most of them use."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.inputs.batch import Batch


class Position(nn.Module):
    """The base class of position encodings; used itself, it is the encoding ``none``, without positions.

    Order can enter a Transformer in three places, each of which is a method here: the input, the score of a query
    and a key, and the reading of values. A subclass overrides the methods that it needs. One object serves all
    layers of a Transformer; weights of a single layer are looked up by its number. Scaled attention divides scores
    by the square root of ``d * terms``; ``terms`` is 1, except in DeBERTa's positions.

    Args:
        d_model: D, the width of the Transformer.
        heads: A; the width of a head is d = D / A.
        layers: number of layers.
    """

    terms: int = 1

    def __init__(self, d_model: int, heads: int, layers: int):
        super().__init__()

    def of(self, batch: Batch) -> "Position":
        """The encoding for the sentences of a batch: the same object, unless it depends on more than places."""
        return self

    def encode(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        """The input of the first layer, from the vectors ``x`` of the characters."""
        return x

    def score(
        self, q: Float[Tensor, "B A N d"], k: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N N"]:
        """Scores of all queries and all keys, before scaling."""
        return q @ k.mT

    def read(
        self, weights: Float[Tensor, "B A N N"], v: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N d"]:
        """The values, weighted by attention."""
        return weights @ v


def distances(n: int, like: Tensor) -> Int[Tensor, "S"]:
    """Distances ``j - i`` from a query to a key: -n to n - 1, the ``2 n`` columns of :func:`by_pair`."""
    return torch.arange(-n, n, device=like.device)


def by_pair(scores: Float[Tensor, "*S N W"]) -> Float[Tensor, "*S N N"]:
    """The relative shift: from one column for each distance to one column for each key.

    Row ``i`` of the result is ``scores[i, j - i + N]`` for all keys ``j``. In memory the rows have ``2 N`` columns.
    If the same memory, without its first N numbers, is read as rows of ``2 N - 1`` columns, each row begins one
    column further left than the row before. The first N columns of these rows are the result. For N = 3::

        distance  -3 -2 -1  0  1  2              key 0  1  2
        query 0    .  .  .  a  b  c                  a  b  c
        query 1    .  .  d  e  f  .      becomes     d  e  f
        query 2    .  g  h  i  .  .                  g  h  i
    """
    n = scores.shape[-2]
    return scores.flatten(-2)[..., n:].view(*scores.shape[:-1], 2 * n - 1)[..., :n]


def by_distance(weights: Float[Tensor, "*S N N"]) -> Float[Tensor, "*S N W"]:
    """The inverse of :func:`by_pair`: one column for each distance, zero where no key has that distance."""
    n = weights.shape[-1]
    rows = nn.functional.pad(weights, (0, n - 1)).flatten(-2)
    return nn.functional.pad(rows, (n, 0)).view(*weights.shape[:-1], 2 * n)
