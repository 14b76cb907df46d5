"""The rules of a tag scheme as tensors: see :class:`hanlattice.decoders.tag_rules.TagRules`."""

from collections.abc import Collection, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.decoders.structs.linear_chain import Chain
from hanlattice.decoders.tag_rules import TagRules
from hanlattice.spans import ScoredSpan, Span, to_tags


class TagSet(nn.Module):
    """The tags of some labels in a scheme: their ids, and scores that forbid what the scheme does not allow.

    Args:
        labels: The T entity labels.
        scheme: The tag scheme.
        constrained: Whether the scores forbid what the scheme does not allow. Otherwise they are all 0.
        extra: Number of unnamed tags before the others, which are read as O.

    Attributes:
        start: 0 where a text may begin with a tag, minus infinity elsewhere, ``[Y]``.
        pair: 0 where a tag (column) may follow another one (row), minus infinity elsewhere, ``[Y, Y]``.
        end: 0 where a text may end with a tag, minus infinity elsewhere, ``[Y]``.
        joined: Whether two neighbouring tags belong to one entity, ``[Y, Y]``.
        begins: Whether a tag begins an entity, ``[Y]``.
        id_of: The id of each tag, by its name.
        rules: The same rules as arrays.
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
        """The ids of the gold tags; O for padding.

        Args:
            gold: The spans of each of the B sentences.
            n: The number of columns N.

        Raises:
            ValueError: Entities of a sentence overlap, which tags cannot express.
        """
        rows = [[self.id_of[tag] for tag in to_tags(spans, n, self.rules.scheme)] for spans in gold]
        return torch.tensor(rows) if n else torch.zeros((len(rows), 0), dtype=torch.long)

    def best(self, chain: Chain) -> list[list[ScoredSpan]]:
        """The spans of the best tag sequence of each sentence, with their confidence."""
        return self.rules.best(chain.potentials())
