"""Time of a training step of FLAT on a CPU, compared with a plain Transformer-CRF of the same size.

    python benchmarks/training_step.py [--threads 1] [--clock cpu|wall] [--rounds 9] [--paper flat/weibo]

A step includes everything from ids to updated weights: embeddings, encoder, CRF, backward, clipping and optimiser,
with the settings of --paper. "plain" has copies of FLAT's tables, projections and CRF. Instead of FLAT's layer it
has torch.nn.TransformerEncoderLayer with the same width, heads and feed-forward size, over the same padded
characters and words, without dropout, so that torch fuses attention. "plain, 0.1" has torch's default dropout.

With HANLATTICE_DATA the sentences are from the corpus of the settings, in batches of similar length as in training.
Without it, lattices with 50 characters are generated. All models take turns on the same batches within each round,
and ratios are medians over the rounds.
"""

import argparse
import os
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor, nn

import hanlattice
from flat_layer import Lattices, ratio
from hanlattice.build import build
from hanlattice.config.files import load_config
from hanlattice.config.settings import Config
from hanlattice.embeddings.initial_weights import Rows, Tables
from hanlattice.encoders.base import Encoder
from hanlattice.encoders.flat import Flat, FlatLayer
from hanlattice.inputs.batch import Batch, Words, collate
from hanlattice.kernels.allocator import keep_freed_memory
from hanlattice.spans import Span
from hanlattice.tagger import Tagger
from hanlattice.training import Silent
from hanlattice.training.examples import batches
from hanlattice.training.optimiser import clip_gradients, initialise, optimisers, set_learning_rate
from hanlattice.training.prepare import prepare

PAPERS = Path(hanlattice.__file__).parent / "papers"
BATCH_SIZES = (10, 16)
BATCHES = 8  # per size and round
LABELS = ("LOC", "ORG", "PER")
N_CHARS, N_BIGRAMS, N_WORDS, WIDTH = 4_000, 40_000, 15_000, 50  # sizes of the generated tables, similar to Weibo
Gold = list[tuple[Span, ...]]
Step = tuple[Batch, Gold]


class Plain(Encoder):
    """FLAT with torch's encoder layer instead of its own layer, so without relative positions."""

    def __init__(self, flat: Flat, *, dropout: float):
        super().__init__()
        first = flat.layers[0]
        assert isinstance(first, FlatLayer)
        heads, d_hidden = first.attention.heads, first.feed_forward.inner.out_features
        self.d_out, self.words = flat.d_out, flat.words
        self.char_projection, self.word_projection = flat.char_projection, flat.word_projection
        self.layer = nn.TransformerEncoderLayer(flat.d_out, heads, d_hidden, dropout, batch_first=True)
        self.dropout = flat.dropout

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        words = self.words(x, batch.words)
        mask = torch.cat([batch.mask, words.mask], 1)
        h = torch.cat([self.char_projection(x), self.word_projection(words.vectors)], 1)
        return self.dropout(self.layer(h, src_key_padding_mask=~mask)[:, : x.shape[1]])


class Contender:
    """A tagger with its optimisers."""

    def __init__(self, tagger: Tagger, config: Config):
        self.tagger, self.settings = tagger.train(), config.training
        self.parameters = [p for p in tagger.parameters() if p.requires_grad]
        self.optimisers = optimisers(tagger, self.settings)
        set_learning_rate(self.optimisers, 1.0)

    def step(self, batch: Batch, gold: Gold) -> None:
        """One training step."""
        self.tagger.loss(batch, gold).backward()
        clip_gradients(self.parameters, self.settings)
        for optimiser in self.optimisers:
            optimiser.step()
            optimiser.zero_grad()


def contenders(tagger: Tagger, config: Config) -> dict[str, Contender]:
    """The tagger, and copies with torch's encoder layer without and with dropout."""
    taggers = {"FLAT": tagger}
    for name, dropout in (("plain", 0.0), ("plain, 0.1", 0.1)):
        other = deepcopy(tagger)
        assert isinstance(other.encoder, Flat)
        taggers[name] = Tagger(other.embedding, Plain(other.encoder, dropout=dropout), other.decoder)
    return {name: Contender(each, config) for name, each in taggers.items()}


def random_tagger(config: Config) -> Tagger:
    """A tagger with random tables."""
    chars, bigrams, words = (torch.randn(n, WIDTH) for n in (N_CHARS, N_BIGRAMS, N_WORDS))
    counts = Rows.of(torch.ones(N_WORDS, dtype=torch.long))
    tables = Tables(Rows.of(chars), Rows.of(bigrams), Rows.of(words), counts, 0)
    tagger = build(config, tables, LABELS)
    initialise(tagger, config.training.initialisation)
    return tagger


def random_step(size: int) -> Step:
    """A batch of random lattices with 50 characters, and gold entities for it."""
    lattices = Lattices(size, n=50, low=20, high=40)
    chars, bigrams = (torch.randint(2, n, (size, 50)) for n in (N_CHARS, N_BIGRAMS))
    ids = torch.randint(1, N_WORDS, lattices.head.shape)
    words = Words(ids, lattices.head, lattices.tail, torch.zeros_like(ids), lattices.mask[:, 50:])
    gold: Gold = [(Span(3, 5, "LOC"), Span(20, 23, "PER"), Span(40, 44, "ORG"))] * size
    return Batch(chars, bigrams, lattices.mask[:, :50], words), gold


def prepared(config: Config) -> tuple[Tagger, Callable[[int], list[Step]]]:
    """The tagger, and a function that returns training batches of a given size."""
    if not os.environ.get("HANLATTICE_DATA"):
        return random_tagger(config), lambda size: [random_step(size) for _ in range(BATCHES)]
    run = prepare(config, "cpu", Silent())
    examples = run.tasks[0].examples

    def steps(size: int) -> list[Step]:
        chosen = batches(examples, size, config.training.bucket, np.random.default_rng(0))[:BATCHES]
        read = [[examples[i] for i in indices] for indices in chosen]
        return [(collate([e.encoded for e in batch]), [e.spans for e in batch]) for batch in read]

    return run.ner.tagger, steps


def measure(
    each: dict[str, Contender], steps: list[Step], rounds: int, clock: Callable[[], float]
) -> list[dict[str, float]]:
    """Seconds of each contender for all steps in every round; excludes the warm-up round."""
    rows = []
    for _ in range(rounds + 1):
        row = dict.fromkeys(each, 0.0)
        for step in steps:
            for name, contender in each.items():
                started = clock()
                contender.step(*step)
                row[name] += clock() - started
        rows.append(row)
    return rows[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--paper", default="flat/weibo", help="packaged settings of a FLAT with one layer")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    keep_freed_memory()  # as in training, for all contenders
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    config = load_config(PAPERS / f"{options.paper}.toml")
    tagger, steps_of = prepared(config)
    each = contenders(tagger, config)
    print("| batch | characters | nodes, padded | " + " | ".join(f"{name}, ms" for name in each), end=" | ")
    print(" | ".join(f"FLAT / {name}" for name in each if name != "FLAT") + " |")
    print("|---|---|---|" + "---|" * (2 * len(each) - 1))
    for size in BATCH_SIZES:
        steps = steps_of(size)
        rows = measure(each, steps, options.rounds, clock)
        characters = sum(int(batch.mask.sum()) for batch, _ in steps)
        padded = sum(batch.mask.numel() + batch.words.mask.numel() for batch, _ in steps)
        times = [f"{1e3 * median(row[name] for row in rows) / len(steps):.1f}" for name in each]
        ratios = [ratio(rows, "FLAT", name) for name in each if name != "FLAT"]
        print(f"| {size} | {characters:,} | {padded:,} | " + " | ".join([*times, *ratios]) + " |", flush=True)


if __name__ == "__main__":
    main()
