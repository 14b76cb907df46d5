"""Your own encoder, named in the settings: a convolution over characters and the words that contain them.

Run: python examples/own_encoder.py
"""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import hanlattice
from hanlattice import Document, Entity, corpus
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import Composition, WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch


class WordConvolution(Encoder):
    """``x [B N D_in]`` to ``h [B N D_out]``; every argument after the star is a setting."""

    def __init__(self, d_in: int, tables: Tables, *, d_hidden: int = 64, width: int = 3):
        super().__init__()
        table = Table(tables.words)
        # Saved models also store rows of words not seen in training; they are found under this name.
        self.words = WordEmbedding(table, Composition(d_in, table.d_out, tables.n_word_kinds))
        self.convolution = nn.Conv1d(d_in + table.d_out, d_hidden, width, padding=width // 2)
        self.d_out = d_hidden

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        words = self.words(x, batch.words)
        position = torch.arange(x.shape[1], device=x.device)[:, None]  # [N 1]
        over = (batch.words.head[:, None] <= position) & (position <= batch.words.tail[:, None])  # [B N M]
        weights = (over & words.mask[:, None]).to(x.dtype)
        both = torch.cat([x, weights @ words.vectors], -1) * batch.mask[..., None]  # without padding
        return torch.relu(self.convolution(both.mT).mT)


NAMES = {"李明": "PER", "王小红": "PER", "重庆": "LOC", "渝中区": "LOC", "人和药店": "ORG", "东方公司": "ORG"}


def sentence(pattern: str, name: str) -> Document:
    start = pattern.index("…")
    entity = Entity(name, NAMES[name], start, start + len(name))
    return Document(pattern.replace("…", name), (entity,))


def main() -> None:
    patterns = ["昨天…很好", "我们说到…了。", "…今天开业", "他想…"]
    with tempfile.TemporaryDirectory() as place:
        train = Path(place) / "train.jsonl"
        corpus.write((sentence(pattern, name) for pattern in patterns for name in NAMES), train, "jsonl")
        run = hanlattice.train(
            train=str(train),
            dev=str(train),  # only to show that it learns
            output=Path(place) / "model",
            settings={
                "vectors": {"bigrams": 5000, "words": 5000},
                "encoder": {"name": "own_encoder:WordConvolution", "d_hidden": 48},
                "training": {"epochs": 12, "optimiser": "adamw", "learning_rate": 0.003},
            },
        )
        print(run.dev)
        print(hanlattice.load(run.folder, trust=True)("昨天王小红很好").to_dict())


if __name__ == "__main__":
    main()
