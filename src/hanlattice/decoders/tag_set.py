"""The tags of some labels in a scheme, as indices of score tensors."""

from collections.abc import Collection, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.decoders.structs.linear_chain import Chain
from hanlattice.decoders.tag_rules import TagRules
from hanlattice.spans import ScoredSpan, Span, to_tags


class TagSet(nn.Module):
    """The :class:`TagRules` of some labels in a scheme, as tensors.

    ``start``, ``pair`` and ``end`` are 0 where the scheme allows a tag to begin a text, follow another (from, to)
    and end a text, and minus infinity where it does not; all 0 unless ``constrained``. ``joined`` and ``begins``
    are those of the rules.
    """

    start: Float[Tensor, "Y"]
    pair: Float[Tensor, "Y Y"]
    end: Float[Tensor, "Y"]
    joined: Bool[Tensor, "Y Y"]
    begins: Bool[Tensor, "Y"]

    def __init__(self, labels: Sequence[str], scheme: str, *, constrained: bool, extra: int = 0):
        super().__init__()
        self.rules = TagRules(labels, scheme, extra=extra)
        self.id_of = {tag: i for i, tag in enumerate(self.rules.names)}
        for name in ("start", "pair", "end"):
            forbidden = ~torch.from_numpy(getattr(self.rules, name)) & constrained
            self._fixed(name, torch.zeros(forbidden.shape).masked_fill(forbidden, -torch.inf))
        self._fixed("joined", torch.from_numpy(self.rules.joined))
        self._fixed("begins", torch.from_numpy(self.rules.begins))

    def _fixed(self, name: str, value: Tensor) -> None:
        self.register_buffer(name, value, persistent=False)

    def __len__(self) -> int:
        return len(self.rules.names)

    def targets(self, gold: Sequence[Collection[Span]], n: int) -> Int[Tensor, "B N"]:
        """Ids of the gold tags.

        Raises:
            ValueError: entities of a sentence overlap, which tags cannot express.
        """
        rows = [[self.id_of[tag] for tag in to_tags(spans, n, self.rules.scheme)] for spans in gold]
        return torch.tensor(rows) if n else torch.zeros((len(rows), 0), dtype=torch.long)

    def best(self, chain: Chain) -> list[list[ScoredSpan]]:
        """The spans of the best sequence, each with its probability: see :meth:`TagRules.confidence`."""
        return self.rules.best(chain.potentials())
