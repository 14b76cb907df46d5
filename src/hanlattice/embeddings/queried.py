"""A language model that reads the query of each label together with the text."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from hanlattice.embeddings.base import Embedding
from hanlattice.embeddings.pretrained import Pretrained
from hanlattice.inputs.batch import Batch

# Minimum number of subwords of the text that a window has beside a query.
LEAST_TEXT = 8


class Queried(Embedding):
    """For each label the vectors of the characters, read together with the label's query, concatenated.

    Li et al. 2020, https://aclanthology.org/2020.acl-main.519: the input is ``[CLS] query [SEP] text [SEP]``, where
    the text is the second segment. It is read once for each of the T queries, so ``d_out`` is T times the width of
    the language model; :class:`~hanlattice.decoders.mrc.JointMRC` takes it apart. A query shortens the window.

    Args:
        pretrained: The language model.
        queries: One query for each label, in the order of the labels.

    Raises:
        ValueError: There is no query, or a query is so long that no text fits beside it.
    """

    def __init__(self, pretrained: Pretrained, queries: Sequence[str]):
        super().__init__()
        if not queries:
            raise ValueError("a corpus without labels has no queries")
        self.pretrained, self.queries = pretrained, tuple(queries)
        start, end = pretrained.marks
        tokens = pretrained.subwords(self.queries)
        self.before = [[*start, *subwords.ids.tolist(), *end] for subwords in tokens]
        for query, before in zip(self.queries, self.before, strict=True):
            if pretrained.window + len(start) - len(before) < LEAST_TEXT:
                raise ValueError(f"the query {query[:20]!r} of {len(before)} tokens leaves no room for the text")
        self.d_out = pretrained.d_out * len(self.queries)

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        after = self.pretrained.marks[1]
        return torch.cat([self.pretrained.read(batch, before, after, second=True) for before in self.before], -1)
