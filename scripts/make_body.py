"""Pretrain the body of the large model on the raw text of the data folder and on the texts of the training corpora.

    HANLATTICE_DATA=… python scripts/make_body.py [--work runs/default] [--output runs/body] [--hours 10]
        [--processes 2]

``HANLATTICE_DATA`` is described in training_data.py, which also makes the corpora in the working folder.
Held-out texts, and those that choose the packaged models, are left out. A run that was stopped is resumed; --hours
counts the time of all its parts. `hanlattice pretrain --output runs/body --finish 0.1` makes a body of a run that
was stopped.
"""

import argparse
import os
import sys
from pathlib import Path

from hanlattice import corpus
from hanlattice.atomic import atomic_write
from training_data import corpora_in, in_processes

CORPORA = (
    *("open", "msra", "cluener", "weibo", "resume", "medical", "news1998"),
    *("novel", "products", "queries", "video"),
)


def texts_of(corpora: Path, output: Path) -> Path:
    """Write the texts of the training corpora, one per line."""
    if not output.exists():
        with atomic_write(output) as stream:
            for name in CORPORA:
                for document in corpus.read(corpora / f"{name}.jsonl"):
                    stream.write(" ".join(document.text.split()) + "\n")
    return output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("runs/default"), help="folder with the prepared corpora")
    parser.add_argument("--output", type=Path, default=Path("runs/body"), help="folder of the run")
    parser.add_argument("--hours", type=float, default=10.0, help="hours of training")
    parser.add_argument("--processes", type=int, default=2, help="processes that train together")
    a = parser.parse_args()
    corpora = corpora_in(a.work.resolve())
    output = a.output.resolve()
    output.parent.mkdir(parents=True, exist_ok=True)
    common = ("--output", output, "--hours", a.hours, "--threads", 1)
    if (output / "checkpoint.safetensors").exists():
        in_processes(a.processes, "pretrain", *common, "--resume")
        return
    texts = texts_of(corpora, corpora / "texts.txt")
    raw = sorted((Path(os.environ["HANLATTICE_DATA"]) / "rawtext").glob("*.xz"))
    held_out = ("--held-out", Path(__file__).with_name("left_out.py"))
    in_processes(
        a.processes, "pretrain", *raw, texts, *common, *held_out, "--mask", "words", "--precision", "bfloat16"
    )


if __name__ == "__main__":
    if "HANLATTICE_DATA" not in os.environ:
        sys.exit("error: set HANLATTICE_DATA to the folder of the corpora")
    main()
