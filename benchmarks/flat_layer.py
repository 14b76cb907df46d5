"""Time of the FLAT layer on a CPU, compared with the formula of its paper and with plain attention.

    python benchmarks/flat_layer.py [--threads 1] [--clock cpu|wall] [--rounds 9]

One layer (attention and feed-forward) on a batch of 16 lattices with 50 characters and 20 to 40 words each; width
160, 8 heads, feed-forward size 480. All contenders take turns within each round, and ratios are medians over the
rounds. CPU time excludes other programs on the machine; with several threads use ``--clock wall``. "naive" is the
paper's formula (tests/oracles/naive_flat.py) with the same weights as "ours". "encoder layer" is
torch.nn.TransformerEncoderLayer, and "plain attention" is the same layer written around
scaled_dot_product_attention. Both compute outputs for all padded characters and words. For memory see
benchmarks/memory.py.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from torch import Tensor, nn

from hanlattice.encoders.flat import FlatLayer, LatticeAttention
from hanlattice.encoders.positions import FourDistances, Nodes
from hanlattice.layers.feed_forward import FeedForward

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import oracles.naive_flat as naive_flat

D, HEADS, D_HIDDEN = 160, 8, 480
WORD_LENGTHS, SHARES = (2, 3, 4, 5, 6, 7, 8), (0.60, 0.20, 0.13, 0.03, 0.02, 0.01, 0.01)
CALLS = 5  # calls per measurement; one for the naive formula, which is slow


class Lattices:
    """Random vectors for the nodes of ``batch`` sentences of ``n`` characters and ``low`` to ``high`` words."""

    def __init__(self, batch: int, n: int, low: int, high: int):
        draw = torch.Generator().manual_seed(0)
        counts = torch.randint(low, high + 1, (batch, 1), generator=draw)
        counts[0] = high
        word_mask = torch.arange(high) < counts
        chosen = torch.multinomial(torch.tensor(SHARES), batch * high, replacement=True, generator=draw)
        length = torch.tensor(WORD_LENGTHS)[chosen].view(batch, high)
        first = (torch.rand(batch, high, generator=draw) * (n - length + 1)).long()
        head, tail = first * word_mask, (first + length - 1) * word_mask
        order = torch.where(word_mask, head * (n + 1) + tail, n * n + n).argsort(1)
        self.n, self.words = n, int(counts.sum())
        self.head, self.tail = head.gather(1, order), tail.gather(1, order)
        self.mask = torch.cat([torch.ones(batch, n, dtype=torch.bool), word_mask], 1)
        self.x = torch.randn(batch, n + high, D, generator=draw)

    def with_chars(self, ends: Tensor) -> Tensor:
        """Heads or tails of all nodes (B L), characters first, from those of the words (B M)."""
        return torch.cat([torch.arange(self.n).expand(len(ends), -1), ends], 1)


class Ours(nn.Module):
    """The layer of this library as the last one of an encoder: only characters are queries."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = FlatLayer(LatticeAttention(D, HEADS), FeedForward(D, D_HIDDEN, 0.0), D)
        self.distances = FourDistances(D)

    def forward(self, lattices: Lattices) -> Tensor:
        nodes = Nodes.of(lattices.head, lattices.tail, lattices.n)
        return self.layer(lattices.x, nodes, lattices.mask, self.distances, only_chars=True)


class Naive(Ours):
    """The paper's formula, computed for all nodes; returns the outputs of the characters."""

    def forward(self, lattices: Lattices) -> Tensor:
        head, tail = lattices.with_chars(lattices.head), lattices.with_chars(lattices.tail)
        h = naive_flat.layer(self.layer, lattices.x, head, tail, lattices.mask, self.distances)
        return h[:, : lattices.n]


class EncoderLayer(nn.Module):
    """torch.nn.TransformerEncoderLayer over all nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(D, HEADS, D_HIDDEN, dropout=0.0, batch_first=True)

    def forward(self, lattices: Lattices) -> Tensor:
        return self.layer(lattices.x, src_key_padding_mask=~lattices.mask)


class PlainAttention(nn.Module):
    """An encoder layer around ``scaled_dot_product_attention``, over all nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.output = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.inner, self.outer = nn.Linear(D, D_HIDDEN), nn.Linear(D_HIDDEN, D)
        self.norms = nn.ModuleList([nn.LayerNorm(D), nn.LayerNorm(D)])

    def forward(self, lattices: Lattices) -> Tensor:
        x, mask = lattices.x, lattices.mask[:, None, None]
        q, k, v = self.project(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        h = self.norms[0](x + self.output(attended.transpose(1, 2).flatten(2)))
        return self.norms[1](h + self.outer(torch.relu(self.inner(h))))


CONTENDERS: dict[str, Callable[[], nn.Module]] = {
    "ours": Ours,
    "naive": Naive,
    "encoder layer": EncoderLayer,
    "plain attention": PlainAttention,
}


def forward(module: nn.Module, lattices: Lattices) -> None:
    """One prediction, without gradients."""
    module.eval()
    with torch.no_grad():
        module(lattices)


def forward_and_backward(module: nn.Module, lattices: Lattices) -> None:
    """Gradients of all weights and of the input, for a loss over the characters."""
    module.train()
    lattices.x.grad = None
    module.zero_grad()
    lattices.x.requires_grad_()
    module(lattices)[:, : lattices.n].square().mean().backward()
    lattices.x.requires_grad_(False)


WORK = {"forward": forward, "forward and backward": forward_and_backward}


def check_agreement(ours: nn.Module, lattices: Lattices) -> float:
    """The largest difference between the outputs of our layer and of the paper's formula."""
    with torch.no_grad():
        naive = Naive()
        naive.load_state_dict(ours.state_dict())
        return float((ours(lattices) - naive(lattices)).abs().max())


def ratio(rows: list[dict[str, float]], a: str, b: str) -> str:
    """The median over rounds of the time of ``a`` divided by the time of ``b``."""
    return f"{median(row[a] / row[b] for row in rows):.2f}"


def report_time(rounds: int, clock: Callable[[], float]) -> None:
    """Time all contenders, and print the table."""
    torch.manual_seed(0)
    lattices = Lattices(batch=16, n=50, low=20, high=40)
    modules = {name: make() for name, make in CONTENDERS.items()}
    modules["naive"].load_state_dict(modules["ours"].state_dict())
    difference = check_agreement(modules["ours"], lattices)
    print(f"{len(lattices.x)} lattices with {lattices.n} characters each, {lattices.words} words in total;")
    print(
        f"ours and naive differ by at most {difference:.1e}; {rounds} rounds, {torch.get_num_threads()} thread(s)\n"
    )
    print("| | | best, ms | median, ms | naive / this | this / encoder layer | this / plain attention |")
    print("|---|---|---|---|---|---|---|")
    for kind, work in WORK.items():
        for module in modules.values():  # warm-up
            work(module, lattices)
        rows = []
        for _ in range(rounds):
            row = {}
            for name, module in modules.items():
                calls = 1 if name == "naive" else CALLS
                started = clock()
                for _ in range(calls):
                    work(module, lattices)
                row[name] = (clock() - started) / calls
            rows.append(row)
        for name in modules:
            seconds = [row[name] for row in rows]
            print(
                f"| {kind} | {name} | {min(seconds) * 1e3:.1f} | {median(seconds) * 1e3:.1f} "
                f"| {ratio(rows, 'naive', name)} "
                f"| {ratio(rows, name, 'encoder layer')} | {ratio(rows, name, 'plain attention')} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    report_time(options.rounds, time.process_time if options.clock == "cpu" else time.perf_counter)


if __name__ == "__main__":
    main()
