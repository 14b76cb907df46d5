"""Peak memory of the FLAT layer, of the paper's formula and of a plain encoder layer, in training and prediction.

    python benchmarks/memory.py [--threads 1] [--limit 12]

Training is forward and backward of one layer over characters and 0.45 words per character. Prediction is forward
without gradients. "ours", "naive" and "plain" are defined in flat_layer.py; "plain" is torch's encoder layer
without dropout, for which torch fuses attention. "plain, 0.1" has torch's default dropout, which also applies to
attention weights, so torch stores them.

Every figure is from a separate process, in MB: peak resident memory (VmHWM of Linux) minus resident memory (VmRSS)
after a small warm-up step with an optimiser. The system's allocator has its default settings.
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
NAIVE_COPIES = 8  # tensors of B L L D floats that the formula holds at once: four parts, and their concatenation


class WithDropout(EncoderLayer):
    """torch.nn.TransformerEncoderLayer with its default dropout."""

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
    """Resident memory of this process in MB, on Linux: VmRSS is the current value, VmHWM the peak.

    resource.getrusage is not used, because a new process inherits the peak of the process that started it.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


def peak(work: str, name: str, n: int, batch: int) -> float:
    """Peak memory of one layer in this process, in MB above the memory before.

    Args:
        work: "training" or "prediction"
        name: one of ``MODULES``
        n: characters of a sentence
        batch: number of sentences
    """
    module = MODULES[name]()
    torch.optim.SGD(module.parameters())
    WORK[work](module, Lattices(1, 4, 1, 1))
    n_words = int(n * WORDS_A_CHARACTER)
    lattices = Lattices(batch, n, n_words, n_words)
    idle = resident("VmRSS")
    WORK[work](module, lattices)
    return resident("VmHWM") - idle


def peak_of_process(work: str, name: str, n: int, batch: int, options: argparse.Namespace) -> str:
    """The peak memory in a new process; "—" where the formula would need more memory than the limit."""
    n_nodes = n + int(n * WORDS_A_CHARACTER)
    if name == "naive" and NAIVE_COPIES * 4 * D * batch * n_nodes**2 / 1e9 > options.limit:
        return "—"
    command = [sys.executable, __file__, "--threads", str(options.threads), "--one", work, name, str(n), str(batch)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "failed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--limit", type=float, default=12.0, help="GB; the naive formula is skipped if it needs more"
    )
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
            cells = [peak_of_process(work, name, n, batch, options) for name in MODULES]
            n_words = int(n * WORDS_A_CHARACTER)
            print(f"| {work} | {n} | {n_words} | {batch} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
