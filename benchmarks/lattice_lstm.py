"""Training throughput of the Lattice LSTM on a CPU: batches compared with loops over sentences.

    python benchmarks/lattice_lstm.py [--batch 16] [--threads 1] [--clock cpu|wall] [--rounds 9] [--coupled]

Forward and backward of the encoder, with the gradients of all weights, for sentences with 45 to 55 characters and
20 to 40 words; 50 input features, 100 features per direction, as in the paper. All contenders have the same weights
and take turns within each round, and ratios are medians over the rounds. CPU time excludes other programs on the
machine; with several threads use ``--clock wall``.

- "batch": the encoder of this library, all sentences in one call;
- "one by one": the same encoder, one call per sentence, with summed gradients;
- "loop": a loop over the characters of one sentence with autograd instead of the hand-written gradient; all words
  that end at a character are computed together;
- "word by word": the paper's formula (tests/oracles/naive_lattice_lstm.py), one word after another, as in the
  authors' code; two sentences per round.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.lattice_lstm import Direction, LatticeLSTM
from hanlattice.inputs.batch import Batch, Words
from hanlattice.kernels.allocator import keep_freed_memory

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import oracles.naive_lattice_lstm as naive_lattice_lstm

D, V = 50, 1000
WORD_LENGTHS, SHARES = (2, 3, 4, 5, 6, 7, 8), (0.60, 0.20, 0.13, 0.03, 0.02, 0.01, 0.01)
WORD_BY_WORD = 2  # sentences

Read = tuple[Tensor, Batch]  # character vectors (B N D), and the batch
Encode = Callable[[LatticeLSTM, Tensor, Batch], Tensor]


def sentences(count: int) -> list[Read]:
    """Sentences with random vectors and words; each is a batch of one."""
    draw = torch.Generator().manual_seed(0)
    found = []
    for _ in range(count):
        n, m = (int(torch.randint(low, high + 1, (), generator=draw)) for low, high in ((45, 55), (20, 40)))
        chosen = torch.multinomial(torch.tensor(SHARES), m, replacement=True, generator=draw)
        length = torch.tensor(WORD_LENGTHS)[chosen]
        head = (torch.rand(m, generator=draw) * (n - length + 1)).long()
        spans = torch.stack([head, head + length - 1], -1).unique(dim=0)[None]  # [1 M 2]
        head, tail = spans.unbind(-1)
        ids = torch.randint(1, V, head.shape, generator=draw)
        words = Words(ids, head, tail, torch.zeros_like(ids), torch.ones_like(ids, dtype=torch.bool))
        chars = torch.zeros(1, n, dtype=torch.long)
        found.append((torch.randn(1, n, D, generator=draw), Batch(chars, chars, chars == 0, words)))
    return found


def in_one_batch(alone: list[Read]) -> Read:
    """All sentences as one padded batch."""

    def padded(rows: list[Tensor]) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence([row[0] for row in rows], batch_first=True)

    words = Words(*(padded([vars(b.words)[name] for _, b in alone]) for name in vars(alone[0][1].words)))
    chars, mask = padded([b.chars for _, b in alone]), padded([b.mask for _, b in alone])
    return padded([x for x, _ in alone]), Batch(chars, chars, mask, words)


def encoded(encoder: LatticeLSTM, x: Tensor, batch: Batch) -> Tensor:
    """Outputs of all characters of the batch (characters of all sentences, D_out)."""
    h: Tensor = encoder(x, batch)[batch.mask]
    return h


def looped(encoder: LatticeLSTM, x: Tensor, batch: Batch) -> Tensor:
    """Outputs of one sentence: first projections of all characters and words, then one step per character."""
    vectors, words, n = encoder.words(x, batch.words).vectors[0], batch.words, x.shape[1]
    ahead = _looped(encoder.ahead, x[0], vectors, words.head[0], words.tail[0])
    back = _looped(encoder.back, x[0].flip(0), vectors, n - 1 - words.tail[0], n - 1 - words.head[0])
    return torch.cat([ahead, back.flip(0)], -1)


def _looped(weights: Direction, x: Tensor, vectors: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """One direction of one sentence, N D_out.

    Args:
        weights: the weights of the direction
        x: character vectors, N D
        vectors: word vectors, M D
        first: first character of each word in the order of reading, M
        last: last character of each word in the order of reading, M
    """
    d, n = weights.merge_state.out_features, len(x)
    order = last.argsort()
    starts = (first[order] + 1).split(torch.bincount(last, minlength=n).tolist())
    inputs = weights.word_input(vectors[order]).split([len(s) for s in starts])
    merges = weights.merge_input(x)
    h, c = [x.new_zeros(1, d)], [x.new_zeros(1, d)]
    for t, z in enumerate(weights.char_input(x).unbind()):
        gates = z + weights.char_state(h[t])
        o, i, *f, _ = gates.sigmoid().split(d, -1)
        g = gates[:, -d:].tanh()
        if len(starts[t]):
            before_h, before_c = (torch.cat([of[s] for s in starts[t].tolist()]) for of in (h, c))
            word = inputs[t] + weights.word_state(before_h)
            word_i, word_f, _ = word.sigmoid().split(d, -1)
            word_c = word_f * before_c + word_i * word[:, -d:].tanh()
            s = torch.sigmoid(merges[t] + weights.merge_state(word_c))
            c.append((torch.cat([i, s]).softmax(0) * torch.cat([g, word_c])).sum(0, keepdim=True))
        else:
            c.append((f[0] if f else 1 - i) * c[t] + i * g)
        h.append(o * c[-1].tanh())
    return torch.cat(h[1:])


def word_by_word(encoder: LatticeLSTM, x: Tensor, batch: Batch) -> Tensor:
    """Outputs by the paper's formula."""
    return torch.cat(naive_lattice_lstm.lattice_lstm(encoder, x, batch))


def train(encode: Encode, encoder: LatticeLSTM, reads: list[Read]) -> dict[str, Tensor]:
    """The gradients of all weights, for the sum of the losses of all sentences."""
    encoder.zero_grad(set_to_none=True)
    for x, batch in reads:
        encode(encoder, x, batch).square().sum().backward()
    return {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}


def difference(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    """The largest difference of any gradient, relative to the largest component of that gradient."""
    return max(float((a[name] - b[name]).abs().max() / b[name].abs().max()) for name in a)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--coupled", action="store_true", help="the forget gate of the authors' code")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()  # as in training, for all contenders
    torch.manual_seed(0)
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    words = WordEmbedding(Table(torch.randn(V, D) * 0.1), dropout=0.0)
    encoder = LatticeLSTM(D, words, coupled=options.coupled, output_dropout=0.0)
    alone = sentences(options.batch)
    contenders: dict[str, tuple[Encode, list[Read]]] = {
        "batch": (encoded, [in_one_batch(alone)]),
        "one by one": (encoded, alone),
        "loop": (looped, alone),
        "word by word": (word_by_word, alone[:WORD_BY_WORD]),
    }
    counts = {name: WORD_BY_WORD if name == "word by word" else len(alone) for name in contenders}

    chars, n_words = (
        sum(of) for of in zip(*((b.chars.numel(), b.words.ids.numel()) for _, b in alone), strict=True)
    )
    print(f"{len(alone)} sentences, {chars} characters, {n_words} words; {torch.get_num_threads()} thread(s)")
    reference = train(word_by_word, encoder, alone)
    print("gradients compared with word by word, largest relative difference:", end=" ")
    for name in ("batch", "one by one", "loop"):
        print(
            f"{name} {difference(train(contenders[name][0], encoder, contenders[name][1]), reference):.0e}",
            end="; ",
        )
    rows = []
    for _ in range(options.rounds):
        row = {}
        for name, (encode, reads) in contenders.items():
            started = clock()
            train(encode, encoder, reads)
            row[name] = (clock() - started) / counts[name]
        rows.append(row)
    print("\n\n| | best, ms per sentence | median, ms per sentence | sentences per second | this / batch |")
    print("|---|---|---|---|---|")
    for name in contenders:
        seconds = [row[name] for row in rows]
        ratio = median(row[name] / row["batch"] for row in rows)
        middle = median(seconds)
        print(f"| {name} | {min(seconds) * 1e3:.2f} | {middle * 1e3:.2f} | {1 / middle:.0f} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
