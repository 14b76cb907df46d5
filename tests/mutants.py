"""Plants faults in a copy of the package, one by one, and shows that a test notices each.

python tests/mutants.py [FAULT ...]

A fault that no test notices is a test that is missing. Nothing outside a temporary folder is written.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "hanlattice"


class Fault(NamedTuple):
    """In ``file``, ``right`` is replaced by ``wrong``; ``test`` ought to notice."""

    file: str
    right: str
    wrong: str
    test: str


FLAT, CRF, READER = (f"tests/oracles/test_{name}.py" for name in ("flat", "linear_chain", "reader"))
CHAIN = "structs/linear_chain.py"

FAULTS = {
    "a word ends one character late": Fault("reader.py", ".astype(np.int64) - 1,", ".astype(np.int64),", READER),
    "padding marked as real": Fault("batch.py", "< lengths[:, None]", "<= lengths[:, None]", READER),
    "node lengths off by one": Fault("encoders/positions/lattice.py", "tail - head + 1", "tail - head", FLAT),
    "distances with the other sign": Fault(
        "encoders/positions/lattice.py", "torch.arange(-reach, reach + 1,", "-torch.arange(-reach, reach + 1,", FLAT
    ),
    "two of the four distances swapped": Fault(
        "encoders/positions/lattice.py", '("hh", "ht", "th", "tt")', '("hh", "th", "ht", "tt")', FLAT
    ),
    "sines and cosines swapped": Fault(
        "encoders/positions/absolute.py",
        "torch.cat([angles.sin(), angles.cos()]",
        "torch.cat([angles.cos(), angles.sin()]",
        FLAT,
    ),
    "rare lengths left unmended": Fault("encoders/flat.py", "if not len(sentence):", "if True:", FLAT),
    "mask ignored in attention": Fault(
        "encoders/flat.py", ".masked_fill_(~mask[:, None, None], torch.finfo(bias.dtype).min)", "", FLAT
    ),
    "keys and values swapped": Fault(
        "encoders/flat.py",
        "k, v = self._by_head(self.key(x)), self._by_head(self.value(x))",
        "v, k = self._by_head(self.key(x)), self._by_head(self.value(x))",
        FLAT,
    ),
    "biases u and v swapped": Fault("encoders/flat.py", "(q + self.u, k, v)", "(q + self.v, k, v)", FLAT),
    "residual forgotten": Fault(
        "encoders/flat.py",
        'attended + (asked if self.residual == "input" else attended)',
        "attended",
        FLAT,
    ),
    "transitions transposed in the score of gold": Fault(
        CHAIN,
        "chain.transitions[tags[:, :-1], tags[:, 1:]]",
        "chain.transitions[tags[:, 1:], tags[:, :-1]]",
        CRF,
    ),
    "transitions transposed in the partition": Fault(CHAIN, "(state @ a) * e[t]", "(state @ a.T) * e[t]", CRF),
    "transitions transposed in Viterbi": Fault(
        CHAIN, "state.unsqueeze(2) + chain.transitions", "state.unsqueeze(2) + chain.transitions.T", CRF
    ),
    "gradient of transitions transposed": Fault(CHAIN, '"tbi,tbj->ij"', '"tbi,tbj->ji"', CRF),
    "Viterbi runs into padding": Fault(
        CHAIN, "state = torch.where(mask[t], best + emissions[t], state)", "state = best + emissions[t]", CRF
    ),
    "confidence includes longer entities": Fault(CHAIN, "@ between.T", "@ m.transitions.T", CRF),
    "offset map shifted": Fault(
        "text.py", "int(self.ends[end - 1])", "int(self.starts[end - 1])", "tests/test_text.py"
    ),
    "lexicon matches end early": Fault(
        "lexicon/trie.py",
        "found.append((start, end, (value >> 1) - 1))",
        "found.append((start, end - 1, (value >> 1) - 1))",
        "tests/test_lexicon.py",
    ),
    "tags of a span end early": Fault(
        "spans.py", "tags[span.end - 1] =", "tags[max(span.end - 2, 0)] =", "tests/test_spans.py"
    ),
}


def noticed_by(fault: Fault) -> str | None:
    """The first test that fails on the package with the fault, or None.

    Raises:
        ValueError: the text to replace is not there exactly once, so the fault must be written anew.
        RuntimeError: pytest could not run, which is no proof of anything.
    """
    with tempfile.TemporaryDirectory(prefix="hanlattice-mutant-") as folder:
        copy = Path(folder) / "hanlattice"
        shutil.copytree(PACKAGE, copy, copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__"))
        source = (PACKAGE / fault.file).read_text(encoding="utf-8")
        if source.count(fault.right) != 1:
            raise ValueError(f"{fault.file} holds {fault.right!r} {source.count(fault.right)} times, not once")
        (copy / fault.file).unlink()
        (copy / fault.file).write_text(source.replace(fault.right, fault.wrong), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", fault.test]
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    failed = re.search(r"^FAILED [^:]+::(.+?)(?: - |$)", done.stdout, re.MULTILINE)
    if failed is None:
        raise RuntimeError(f"pytest on {fault.test} did not get as far as a test:\n{done.stdout}{done.stderr}")
    return failed[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fault", nargs="*", choices=[*FAULTS, []], help="only these, by name")
    names = parser.parse_args().fault or list(FAULTS)
    missed = 0
    print(f"| {'fault':45} | caught by |\n|{'-' * 47}|---|")
    for name in names:
        test = noticed_by(FAULTS[name])
        missed += test is None
        print(f"| {name:45} | {test or 'NOTHING'} |", flush=True)
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
