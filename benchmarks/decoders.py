"""Every decoder compared with the CRF: speed of prediction, and memory on a long text, on a CPU.

    python benchmarks/decoders.py [--corpus FILE] [--texts 80] [--epochs 30] [--rounds 9] [--clock cpu|wall]
        [--no-speed] [--no-memory]

Speed: every decoder has its settings in papers/decoders/NAME.toml and runs on the same encoder, a small FLAT. Each
model is overfitted to some texts of CMeEE, so that it finds a realistic number of entities: the time of many
decoders depends on it. Then all models read these texts, in turns within each round. Ratios are medians over the
rounds. CPU time excludes other programs on the machine. "whole model" is the time from text to entities, "alone"
the time of the decoder from character vectors to spans.

Memory: each decoder decodes one text of 10,000 characters without windows in a new process, with the labels of
CMeEE. The table shows peak resident memory of the process, including torch. These decoders are untrained and find
far more spans than trained ones.
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
    """The settings file of a decoder."""
    return load_config(PAPERS / f"{name}.toml")


class Contender:
    """A trained model, its texts, and their character vectors."""

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
        """The encoder output (B N D) and the mask (B N) of each batch."""
        texts = sorted((self.ner.normaliser(text).text for text in self.texts), key=len)
        encoded = self.ner.reader.read(texts, self.ner.lexicon)
        batches = [collate(encoded[i : i + BATCH]) for i in range(0, len(encoded), BATCH)]
        return [(self.tagger.encoder(self.tagger.embedding(batch), batch), batch.mask) for batch in batches]

    def whole(self) -> None:
        """Predict all texts with the whole model."""
        for _ in self.ner.pipe(self.texts):
            pass

    @torch.inference_mode()
    def alone(self) -> None:
        """Decode the character vectors of all texts."""
        decoder = self.tagger.decoder
        for h, mask in self.vectors:
            decoder.decode(decoder.scores(h), mask)


def trained(options: argparse.Namespace) -> dict[str, Contender]:
    """Train a model for each decoder on the same texts."""
    contenders = {}
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "texts.jsonl"
        documents = list(corpus.read(options.corpus or located(settings_of(REFERENCE).data.test)))
        chosen = np.random.default_rng(0).permutation(len(documents))[: options.texts]
        corpus.write([documents[i] for i in chosen], texts, "jsonl")
        data = {"train": [str(texts)], "dev": str(texts), "test": str(texts)}
        training = {"epochs": options.epochs, "batch_size": 8, "learning_rate": 4e-3}
        for name in NAMES:
            print(f"training: {name}", file=sys.stderr)
            torch.manual_seed(0)
            contenders[name] = Contender(settings_of(name).with_settings({"data": data, "training": training}))
    return contenders


def measured(
    contenders: dict[str, Contender], rounds: int, clock: Callable[[], float]
) -> list[dict[tuple[str, str], float]]:
    """Seconds of every decoder in every round, by its name and "whole" or "alone"; excludes the warm-up round."""
    works: dict[str, Callable[[Contender], None]] = {"whole": Contender.whole, "alone": Contender.alone}
    rows: list[dict[tuple[str, str], float]] = []
    for i in range(rounds + 1):
        print(f"round {i} of {rounds}", file=sys.stderr)
        row = {}
        for name, contender in contenders.items():
            for kind, work in works.items():
                started = clock()
                work(contender)
                row[name, kind] = clock() - started
        rows.append(row)
    return rows[1:]


def report_speed(options: argparse.Namespace) -> None:
    """Train all decoders, measure them, and print the table of speeds."""
    keep_freed_memory()
    contenders = trained(options)
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    rows = measured(contenders, options.rounds, clock)
    first = contenders[REFERENCE]
    thousands = first.n_characters / 1000
    print(
        f"{len(first.texts)} texts with {first.n_characters:,} characters and {first.n_gold / thousands:.1f} gold"
        f" entities per 1,000 characters; {options.epochs} epochs, {options.rounds} rounds\n"
    )
    print("| decoder | found per 1,000 | alone, ms per 1,000 | alone, speed | whole model, speed |")
    print("|---|---|---|---|---|")
    for name, contender in contenders.items():
        best = 1000 * min(row[name, "alone"] for row in rows) / thousands
        speeds = (median(row[REFERENCE, kind] / row[name, kind] for row in rows) for kind in ("alone", "whole"))
        found = contender.n_found / thousands
        print(f"| `{name}` | {found:.1f} | {best:.2f} | " + " | ".join(f"{speed:.2f}" for speed in speeds) + " |")


def resident(field: str) -> float:
    """Resident memory of this process in MB, on Linux: VmRSS is the current value, VmHWM the peak."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


@torch.inference_mode()
def decode_long_text(name: str) -> str:
    """Decode random vectors of a long text; returns the cells of the memory table."""
    torch.manual_seed(0)
    decoder = DECODERS[name](D, LABELS, **settings_of(name).decoder.settings).eval()
    for parameter in decoder.parameters():
        if not parameter.any():  # otherwise the decoder finds no spans
            parameter.normal_(std=0.1)
    h, mask = torch.randn(1, LENGTH, D), torch.ones(1, LENGTH, dtype=torch.bool)
    idle, started = resident("VmRSS"), time.process_time()
    (spans,) = decoder.decode(decoder.scores(h), mask)
    seconds = time.process_time() - started
    return f"{len(spans):,} | {seconds:.1f} | {resident('VmHWM') - idle:.0f} | {resident('VmHWM'):.0f}"


def report_memory(threads: int) -> None:
    """Measure each decoder in a new process, and print the table of memory."""
    print(f"\n{LENGTH:,} characters without windows, {len(LABELS)} labels, untrained.\n")
    print("| decoder | spans found | s | MB above idle | MB of the process |")
    print("|---|---|---|---|---|")
    for name in NAMES:
        command = [sys.executable, __file__, "--threads", str(threads), "--long", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(f"| `{name}` | {done.stdout.strip() if done.returncode == 0 else done.stderr.strip()} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", help="corpus of the texts (default: the test set of decoders/common)")
    parser.add_argument("--texts", type=int, default=80, help="number of texts, drawn at random")
    parser.add_argument("--epochs", type=int, default=30, help="training epochs of each decoder")
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
        print(decode_long_text(options.long))
        return
    if not options.no_speed:
        report_speed(options)
    if not options.no_memory:
        report_memory(options.threads)


if __name__ == "__main__":
    main()
