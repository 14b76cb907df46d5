"""Masked language modelling: some characters are hidden, and the body learns to predict them from the rest.

Devlin et al. 2019, https://arxiv.org/abs/1810.04805: of the chosen characters 80 % become the mask, 10 % another
character, 10 % stay. Each row is divided into units, and a unit is chosen as a whole: characters, words (Cui et al.
2019, https://arxiv.org/abs/1906.08101) or spans (Joshi et al. 2020, https://arxiv.org/abs/1907.10529).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from hanlattice.embeddings.body import Body, Linear
from hanlattice.embeddings.body_files import BOUNDARY, FIRST, MASK, Characters
from hanlattice.lexicon import Lexicon
from hanlattice.lexicon.segmentation import segment
from hanlattice.training.distributed import Group
from hanlattice.training.pretrain.settings import Masking

LONGEST = 6  # characters of a span
MASKED, REPLACED = 0.8, 0.1  # shares of the chosen characters

Ids = NDArray[np.int64]
Cut = Callable[[Ids, np.random.Generator], Ids]
"""``cut(ids [B, N], draw)`` gives ``[B, N]``: the number of the unit at each position, rising from 0."""


@dataclass(frozen=True)
class Masked:
    """A masked batch.

    Attributes:
        ids: ``[B, N]``, as the body reads them.
        places: ``[K]``, the positions of the chosen characters, counted over all rows.
        targets: ``[K]``, the original ids there.
    """

    ids: Ids
    places: Ids
    targets: Ids


def into_characters(ids: Ids, draw: np.random.Generator) -> Ids:
    """Every character is a unit."""
    return np.arange(ids.size).reshape(ids.shape)


def into_spans(ids: Ids, draw: np.random.Generator) -> Ids:
    """Spans of 1 to `LONGEST` characters, all lengths equally likely; none crosses a boundary or a row."""
    lengths = draw.integers(1, LONGEST + 1, ids.size)  # more spans than needed
    begins = np.zeros(ids.size + 1, bool)
    ends = np.cumsum(lengths)
    begins[ends[ends < ids.size]] = True
    return _numbered(begins[:-1].reshape(ids.shape), ids)


@dataclass(frozen=True)
class IntoWords:
    """The fewest words of a lexicon that cover a row; every other character is a separate unit."""

    lexicon: Lexicon
    characters: Characters

    def __call__(self, ids: Ids, draw: np.random.Generator) -> Ids:
        scores = np.full(self.lexicon.id_count, -1.0)
        words = segment(self.lexicon, [self.characters.text(row) for row in ids], scores, -1.0)
        begins = np.zeros(ids.shape, bool)
        for row, found in zip(begins, words, strict=True):
            row[np.cumsum([0, *map(len, found)])[:-1]] = True
        return _numbered(begins, ids)


def _numbered(begins: NDArray[np.bool_], ids: Ids) -> Ids:
    """Numbers of units, given where they begin; a unit also begins with each row and each boundary."""
    is_boundary = ids == BOUNDARY
    begins = begins | is_boundary
    begins[:, 0] = True
    begins[:, 1:] |= is_boundary[:, :-1]
    return np.cumsum(begins.ravel()).reshape(ids.shape) - 1


def cut_of(mask: Masking, lexicon: Callable[[], Lexicon], characters: Characters) -> Cut:
    """The function that divides rows for a kind of masking; ``lexicon`` is called only for words."""
    if mask == "words":
        return IntoWords(lexicon(), characters)
    return into_spans if mask == "spans" else into_characters


def masked(ids: Ids, cut: Cut, share: float, size: int, draw: np.random.Generator) -> Masked:
    """Choose units with the probability ``share``, at least one, and hide them; ``size`` is the number of ids.

    A boundary is never chosen, so nothing is in a batch that has nothing else.
    """
    units = cut(ids, draw)
    is_text = ids != BOUNDARY
    chosen = (draw.random(int(units.max()) + 1) < share)[units] & is_text
    if not chosen.any():
        chosen = (units == units.ravel()[is_text.argmax()]) & is_text
    places = np.flatnonzero(chosen)
    targets = ids.ravel()[places]
    chance = draw.random(len(places))
    others = draw.integers(min(FIRST, size - 1), size, len(places))
    given = np.where(chance < MASKED, MASK, np.where(chance < MASKED + REPLACED, others, targets))
    read = ids.copy()
    read.ravel()[places] = given
    return Masked(read, places, targets)


def share(batch: Masked, group: Group) -> Masked:
    """The rows of a batch that this process of the group reads."""
    n = batch.ids.shape[1]
    row, column = np.divmod(batch.places, n)
    own = row % group.size == group.rank
    places = row[own] // group.size * n + column[own]
    return Masked(batch.ids[group.rank :: group.size], places, batch.targets[own])


class Learner(nn.Module):
    """A body, and a head that predicts characters: one layer, then products with the body's character table."""

    def __init__(self, body: Body):
        super().__init__()
        width = body.shape.width
        self.body, self.transform, self.norm = body, Linear(width, width), nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(len(body.embedding.weight)))
        nn.init.normal_(self.transform.weight, std=width**-0.5)
        nn.init.zeros_(self.transform.bias)
        self.in_bfloat16 = False

    def head_state(self) -> dict[str, Tensor]:
        """The weights that only predict masked characters: all but the body."""
        return {name: tensor for name, tensor in self.state_dict().items() if not name.startswith("body.")}

    def load_head(self, state: Mapping[str, Tensor]) -> None:
        """Load what :meth:`head_state` gave.

        Raises:
            RuntimeError: names or shapes differ.
        """
        body = {f"body.{name}": tensor for name, tensor in self.body.state_dict().items()}
        self.load_state_dict({**body, **state})

    def forward(
        self, ids: Int[Tensor, "B N"], places: Int[Tensor, "K"], targets: Int[Tensor, "K"]
    ) -> Float[Tensor, ""]:
        """The mean loss per chosen character, in nats; only chosen characters are projected to the vocabulary."""
        h = self.body(ids).flatten(0, 1)[places]
        h = self.norm(torch.relu(self.transform(h)).float())
        return functional.cross_entropy(self._logits(h), targets)

    def _logits(self, h: Float[Tensor, "K D"]) -> Float[Tensor, "K V"]:
        table = self.body.embedding.weight
        if not self.in_bfloat16:
            return functional.linear(h, table, self.bias)
        return functional.linear(h.bfloat16(), table.bfloat16()).float() + self.bias
