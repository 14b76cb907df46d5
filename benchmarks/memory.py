"""Peak memory of the FLAT layer, of its paper's formula and of a plain encoder layer, in training and prediction.

python benchmarks/memory.py [--threads 1] [--limit 12]

Training: forward and backward of one layer over characters and 0.45 words a character. Prediction: forward of the
same without gradients. "ours" and "naive" are those of flat_layer.py, and so is "plain", the encoder layer of torch
without dropout, whose attention is fused; "plain, 0.1" has torch's own default, dropout also of attention weights,
for which torch keeps them all.

Every figure is of a process of its own, in MB: the most it ever held (VmHWM of Linux) above what it held before
(VmRSS), when it had an optimiser, with all that torch loads for one, and had done a small step. The allocator is
left as the system has it; nothing is set for it.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from flat_layer import CONTENDERS, D_HIDDEN, HEADS, D, EncoderLayer, Lattices, forward, forward_and_backward

SIZES = ((50, 10), (100, 10), (200, 10), (300, 10), (500, 1), (1000, 1))  # characters, batch
WORDS_A_CHARACTER = 0.45
NAIVE_COPIES = 8  # of B L L D floats that the formula holds at once: the four parts, and them in a row


class WithDropout(EncoderLayer):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(D, HEADS, D_HIDDEN, batch_first=True)


MODULES: dict[str, Callable[[], nn.Module]] = {
    "ours": CONTENDERS["ours"],
    "naive": CONTENDERS["naive"],
    "plain": EncoderLayer,
    "plain, 0.1": WithDropout,
}
WORK = {"training": forward_and_backward, "prediction": forward}


def resident(field: str) -> float:
    """Megabytes of this process, of Linux: VmRSS is what it holds, VmHWM the most it ever held.

    resource.getrusage would do elsewhere, but a new process begins with the peak of the one that started it.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


def peak(work: str, name: str, n: int, batch: int) -> float:
    module = MODULES[name]()
    torch.optim.SGD(module.parameters())
    WORK[work](module, Lattices(1, 4, 1, 1))
    n_words = int(n * WORDS_A_CHARACTER)
    lattices = Lattices(batch, n, n_words, n_words)
    idle = resident("VmRSS")
    WORK[work](module, lattices)
    return resident("VmHWM") - idle


def apart(work: str, name: str, n: int, batch: int, options: argparse.Namespace) -> str:
    """The peak of a new process; — where the formula alone would hold too much."""
    n_nodes = n + int(n * WORDS_A_CHARACTER)
    if name == "naive" and NAIVE_COPIES * 4 * D * batch * n_nodes**2 / 1e9 > options.limit:
        return "—"
    command = [sys.executable, __file__, "--threads", str(options.threads), "--one", work, name, str(n), str(batch)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "failed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, default=12.0, help="GB; the naive formula is left out beyond")
    parser.add_argument("--one", nargs=4, metavar=("WORK", "NAME", "CHARACTERS", "BATCH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.one:
        work, name, n, batch = options.one
        print(f"{peak(work, name, int(n), int(batch)):.0f}")
        return
    print("| | characters | words | batch | " + " | ".join(MODULES) + " |")
    print("|---|---|---|---|" + "---|" * len(MODULES))
    for work, sizes in (("training", SIZES), ("prediction", SIZES[-1:])):
        for n, batch in sizes:
            cells = [apart(work, name, n, batch, options) for name in MODULES]
            n_words = int(n * WORDS_A_CHARACTER)
            print(f"| {work} | {n} | {n_words} | {batch} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
