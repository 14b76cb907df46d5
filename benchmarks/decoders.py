"""Every decoder beside the CRF: speed of prediction, and memory on a long text, on a CPU.

python benchmarks/decoders.py [--corpus FILE] [--texts 80] [--epochs 30] [--rounds 9] [--clock cpu|wall]
    [--no-speed] [--no-memory]

Speed: every decoder with its settings in decoders/NAME, on the encoder that they share there (a small FLAT), learns
some texts of CMeEE by heart, so that it finds entities in realistic numbers, on which the time of many decoders
depends. Then all of them read these texts, turn by turn within each round. Ratios are medians over the rounds; the
CPU clock leaves out what else runs on the machine. "whole model" is from text to entities, "alone" the decoder from
the vectors of characters to spans.

Memory: each decoder, in a fresh process, reads one text of 10,000 characters in one piece, with as many labels as
CMeEE has; peak resident memory of the process, torch included. These decoders are untrained, so that far more spans
seem entities to them than to any trained one.
"""

import argparse
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor

import hanlattice
from hanlattice import corpus
from hanlattice.build import DECODERS
from hanlattice.config.files import load_config, located
from hanlattice.config.settings import Config
from hanlattice.inputs.batch import collate
from hanlattice.kernels.allocator import keep_freed_memory
from hanlattice.training import Silent
from hanlattice.training.prepare import prepare

PAPERS = Path(hanlattice.__file__).parent / "papers" / "decoders"
REFERENCE = "crf"
NAMES = (REFERENCE, *(name for name in DECODERS if name != REFERENCE))
LABELS = ("bod", "dep", "dis", "dru", "equ", "ite", "mic", "pro", "sym")
LENGTH, D = 10_000, 128
BATCH = 32


def settings_of(name: str) -> Config:
    return load_config(PAPERS / f"{name}.toml")


class Contender:
    """A model that has learnt a little, its texts, and the vectors of their characters."""

    def __init__(self, config: Config):
        run = prepare(config, "cpu", Silent())
        for _ in run.loop(config.training).epochs():
            pass
        self.ner, self.tagger = run.ner, run.ner.tagger.eval()
        self.texts, self.n_gold = [d.text for d in run.test], sum(len(d.entities) for d in run.test)
        self.n_characters = sum(map(len, self.texts))
        self.vectors = list(self._vectors())
        self.n_found = sum(len(d.entities) for d in self.ner.pipe(self.texts))

    @torch.inference_mode()
    def _vectors(self) -> list[tuple[Tensor, Tensor]]:
        texts = sorted((self.ner.normaliser(text).text for text in self.texts), key=len)
        encoded = self.ner.reader.read(texts, self.ner.lexicon)
        batches = [collate(encoded[i : i + BATCH]) for i in range(0, len(encoded), BATCH)]
        return [(self.tagger.encoder(self.tagger.embedding(batch), batch), batch.mask) for batch in batches]

    def whole(self) -> None:
        for _ in self.ner.pipe(self.texts):
            pass

    @torch.inference_mode()
    def alone(self) -> None:
        decoder = self.tagger.decoder
        for h, mask in self.vectors:
            decoder.decode(decoder.scores(h), mask)


def report_speed(options: argparse.Namespace) -> None:
    keep_freed_memory()
    contenders = {}
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "texts.jsonl"
        documents = list(corpus.read(options.corpus or located(settings_of(REFERENCE).data.test)))
        chosen = np.random.default_rng(0).permutation(len(documents))[: options.texts]
        corpus.write([documents[i] for i in chosen], texts, "jsonl")
        data = {"train": [str(texts)], "dev": str(texts), "test": str(texts)}
        training = {"epochs": options.epochs, "batch_size": 8, "learning_rate": 4e-3}
        for name in NAMES:
            print(f"learning: {name}", file=sys.stderr)
            torch.manual_seed(0)
            contenders[name] = Contender(settings_of(name).with_settings({"data": data, "training": training}))
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    works: dict[str, Callable[[Contender], None]] = {"whole": Contender.whole, "alone": Contender.alone}
    rows: list[dict[tuple[str, str], float]] = []
    for i in range(options.rounds + 1):
        print(f"round {i} of {options.rounds}", file=sys.stderr)
        row = {}
        for name, contender in contenders.items():
            for kind, work in works.items():
                began = clock()
                work(contender)
                row[name, kind] = clock() - began
        rows.append(row)
    rows = rows[1:]  # the first was for warming up
    first = contenders[REFERENCE]
    thousands = first.n_characters / 1000
    print(
        f"{len(first.texts)} texts of {first.n_characters:,} characters with {first.n_gold / thousands:.1f} gold"
        f" entities in 1,000; {options.epochs} epochs, {options.rounds} rounds\n"
    )
    print("| decoder | found in 1,000 | alone, ms in 1,000 | alone, speed | whole model, speed |")
    print("|---|---|---|---|---|")
    for name, contender in contenders.items():
        best = 1000 * min(row[name, "alone"] for row in rows) / thousands
        speeds = (median(row[REFERENCE, kind] / row[name, kind] for row in rows) for kind in ("alone", "whole"))
        found = contender.n_found / thousands
        print(f"| `{name}` | {found:.1f} | {best:.2f} | " + " | ".join(f"{speed:.2f}" for speed in speeds) + " |")


def resident(field: str) -> float:
    """Megabytes of this process, of Linux: VmRSS is what it holds, VmHWM the most it ever held."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


@torch.inference_mode()
def read_long_text(name: str) -> str:
    torch.manual_seed(0)
    decoder = DECODERS[name](D, LABELS, **settings_of(name).decoder.settings).eval()
    for parameter in decoder.parameters():
        if not parameter.any():  # or nothing would be found
            parameter.normal_(std=0.1)
    h, mask = torch.randn(1, LENGTH, D), torch.ones(1, LENGTH, dtype=torch.bool)
    idle, began = resident("VmRSS"), time.process_time()
    (spans,) = decoder.decode(decoder.scores(h), mask)
    seconds = time.process_time() - began
    return f"{len(spans):,} | {seconds:.1f} | {resident('VmHWM') - idle:.0f} | {resident('VmHWM'):.0f}"


def report_memory(threads: int) -> None:
    print(f"\n{LENGTH:,} characters in one piece, {len(LABELS)} labels, untrained.\n")
    print("| decoder | spans found | s | MB above idle | MB of the process |")
    print("|---|---|---|---|---|")
    for name in NAMES:
        command = [sys.executable, __file__, "--threads", str(threads), "--long", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(f"| `{name}` | {done.stdout.strip() if done.returncode == 0 else done.stderr.strip()} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", help="the test corpus of decoders/common by default")
    parser.add_argument("--texts", type=int, default=80, help="that are drawn from it")
    parser.add_argument("--epochs", type=int, default=30, help="in which each decoder learns them")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--no-speed", action="store_true")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--long", choices=NAMES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    logging.getLogger("hanlattice").setLevel(logging.ERROR)
    if options.long:
        print(read_long_text(options.long))
        return
    if not options.no_speed:
        report_speed(options)
    if not options.no_memory:
        report_memory(options.threads)


if __name__ == "__main__":
    main()
