"""The contract of every position encoding, and the relative shift that most of them rest on."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


class Position(nn.Module):
    """How a Transformer knows where its characters stand. This one does not: it is the kind ``none``.

    There are three places where order can enter, and a kind overrides those that it uses: the input, the score of
    a query and a key, and what is read from the values. One object serves all layers of a Transformer; what each
    layer has of its own is looked up by the number of the layer. ``terms`` says of how many products a score is
    the sum, by which DeBERTa divides.
    """

    terms: int = 1

    def __init__(self, d_model: int, heads: int, layers: int):
        super().__init__()

    def encode(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        """The input of the first layer."""
        return x

    def score(
        self, q: Float[Tensor, "B A N d"], k: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N N"]:
        """Scores of all queries with all keys, not yet scaled."""
        return q @ k.mT

    def read(
        self, weights: Float[Tensor, "B A N N"], v: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N d"]:
        """What attention with these weights brings."""
        return weights @ v


def distances(n: int, like: Tensor) -> Int[Tensor, "S"]:
    """From a query to a key, ``j - i``, in the order of the ``2 n`` columns of :func:`by_pair`: -n to n - 1."""
    return torch.arange(-n, n, device=like.device)


def by_pair(scores: Float[Tensor, "*S N W"]) -> Float[Tensor, "*S N N"]:
    """The relative shift: from a column for each distance to a column for each key.

    Row ``i`` of the result is ``scores[i, j - i + N]`` for all keys ``j``. Written one after another, the rows of
    ``2 N`` columns need only be cut at every ``2 N - 1`` to slide each of them by one against the one before.
    """
    n = scores.shape[-2]
    return scores.flatten(-2)[..., n:].view(*scores.shape[:-1], 2 * n - 1)[..., :n]


def by_distance(weights: Float[Tensor, "*S N N"]) -> Float[Tensor, "*S N W"]:
    """The way back of :func:`by_pair`, with zeros at distances that no key has."""
    n = weights.shape[-1]
    rows = nn.functional.pad(weights, (0, n - 1)).flatten(-2)
    return nn.functional.pad(rows, (n, 0)).view(*weights.shape[:-1], 2 * n)
