"""The longest window of a language model: what its tables of positions and its tokenizer allow."""

from types import SimpleNamespace

import pytest
from torch import nn

from hanlattice.embeddings.pretrained import LONGEST, _longest


class Model(nn.Module):
    def __init__(self, *tables: nn.Embedding):
        super().__init__()
        self.layers = nn.ModuleList()
        for table in tables:
            layer = nn.Module()
            layer.position_embeddings = table
            layer.word_embeddings = nn.Embedding(7, 2)
            self.layers.append(layer)


@pytest.mark.parametrize(
    ("tables", "of_tokenizer", "longest"),
    [
        ([nn.Embedding(64, 2)], 10**30, 64),
        ([nn.Embedding(66, 2, padding_idx=1)], 10**30, 64),  # RoBERTa: positions start after the padding
        ([nn.Embedding(64, 2, padding_idx=0)], 10**30, 63),
        ([nn.Embedding(64, 2), nn.Embedding(48, 2)], 10**30, 48),
        ([nn.Embedding(64, 2)], 32, 32),
        ([nn.Embedding(LONGEST + 100, 2)], 10**30, LONGEST),
        ([], 10**30, LONGEST),
    ],
)
def test_the_longest_window(tables: list[nn.Embedding], of_tokenizer: int, longest: int) -> None:
    assert _longest(Model(*tables), SimpleNamespace(model_max_length=of_tokenizer)) == longest
