"""Time and memory of lexicons with a hundred thousand, a million and ten million words.

    python benchmarks/lexicon_scale.py [--words 100000 1000000 10000000] [--characters 1000000] [--dimension 50]

The words are generated: two to five characters, with character frequencies similar to Chinese. Half of the
characters of the text belong to words of the lexicon, frequent words more often, and the other half are random
characters. Building is measured in one process, and opening and matching in another, each with one thread.

``build`` is the time from a word list to the compiled file, and the peak memory. ``open`` is the time until the
lexicon can be used. ``own`` is the private memory of the process, and ``after`` the same after it has matched the
text. ``shared`` is memory that all processes which read the file share. Rates are in CPU time, the best of nine
rounds; ``us/50`` is the time for one sentence of 50 characters, in microseconds.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

SENTENCE = 50  # characters
CHARACTERS = (0x4E00 + np.random.default_rng(7).permutation(7000)[:4095]).astype(np.uint32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--characters", type=int, default=1_000_000, help="characters to match")
    parser.add_argument(
        "--dimension", type=int, default=50, help="dimension of the float16 word vectors; 0 for no vectors"
    )
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        name, *arguments = options.step
        print(json.dumps(STEPS[name](*arguments)))
        return
    print(f"{'words':>12}{'build s':>9}{'build MB':>10}{'file MB':>9}{'open ms':>9}{'own MB':>8}{'after':>7}"
          f"{'shared':>8}{'Mchar/s':>9}{'ratio':>7}{'us/50':>7}")  # fmt: skip
    first, vectors = None, []
    for n in options.words:
        with tempfile.TemporaryDirectory() as folder:
            words, text, compiled = (
                str(Path(folder) / name) for name in ("words.txt", "text.txt", "words.lexicon")
            )
            in_process("write", words, text, str(n), str(options.characters))
            built = in_process("build", words, compiled)
            read = in_process("read", compiled, text)
            first = first or read["rate"]
            if options.dimension:
                in_process("vectors", words, str(Path(folder) / "vectors"), str(options.dimension))
                vectors.append((built["words"], in_process("read_vectors", str(Path(folder) / "vectors"))))
            print(
                f"{built['words']:12,}{built['seconds']:9.1f}{built['megabytes']:10,.0f}"
                f"{Path(compiled).stat().st_size / 1e6:9,.0f}{1e3 * read['open']:9.1f}{read['own']:8,.0f}"
                f"{read['own_after']:7,.0f}{read['shared']:8,.0f}{read['rate'] / 1e6:9.2f}"
                f"{read['rate'] / first:7.2f}{read['single']:7.1f}",
                flush=True,
            )
    if vectors:
        print(f"\n{'vectors':>12}{'file MB':>9}{'open ms':>9}{'own MB':>8}{'after':>7}   after: a thousand rows")
    for n, read in vectors:
        print(f"{n:12,}{read['file']:9,.0f}{1e3 * read['open']:9.1f}{read['own']:8,.0f}{read['own_after']:7,.0f}")


def in_process(*step: str) -> dict[str, float]:
    """Run one of ``STEPS`` with its arguments in a new process, and return its measurements."""
    done = subprocess.run([sys.executable, __file__, "--step", *step], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def write(words: str, text: str, n: str, characters: str) -> dict[str, float]:
    """Write the word list, in order of falling frequency, and the text."""
    rng = np.random.default_rng(1)
    codes, offsets = invented_words(int(n), rng)
    lines = np.insert(codes, offsets[1:], ord("\n"))
    Path(words).write_bytes(lines.astype("<u4").tobytes().decode("utf-32-le").encode())
    wanted = int(characters)
    rank = (len(offsets) - 1) * rng.random(wanted // 2) ** 3  # frequent words more often
    picked = rank.astype(np.int64)
    others = CHARACTERS[ranks(rng, wanted)]
    parts = []
    for i, word in enumerate(picked.tolist()):
        parts.append(codes[offsets[word] : offsets[word + 1]])
        parts.append(others[3 * i % wanted : 3 * i % wanted + 3])
    joined = np.concatenate(parts)[:wanted]
    Path(text).write_text(joined.astype("<u4").tobytes().decode("utf-32-le"), encoding="utf-8")
    return {}


def invented_words(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """``n`` different words.

    Returns:
        the code points of all words, concatenated, and the offset of each word, n + 1
    """
    keys = np.empty(0, np.uint64)
    while len(keys) < n:
        more = int((n - len(keys)) * 1.3) + 1000
        sizes = rng.choice([2, 3, 4, 5], more, p=[0.25, 0.3, 0.35, 0.1])
        drawn = np.zeros(more, np.uint64)
        for place in range(5):  # twelve bits a character
            chosen = np.where(place < sizes, ranks(rng, more) + 1, 0).astype(np.uint64)
            drawn |= chosen << np.uint64(12 * place)
        keys = np.concatenate([keys, drawn])
        _, kept = np.unique(keys, return_index=True)
        keys = keys[np.sort(kept)]
    keys = keys[:n]
    found = np.stack([(keys >> np.uint64(12 * place)) & np.uint64(4095) for place in range(5)], 1).astype(np.uint16)
    offsets = np.concatenate([[0], np.cumsum((found != 0).sum(1))])
    return CHARACTERS[found[found != 0] - 1], offsets


def ranks(rng: np.random.Generator, n: int) -> np.ndarray:
    """``n`` indices into ``CHARACTERS``, drawn from a Zipf-Mandelbrot distribution."""
    share = 1 / (np.arange(len(CHARACTERS)) + 60.0)
    return np.searchsorted(np.cumsum(share / share.sum()), rng.random(n)).clip(0, len(CHARACTERS) - 1)


def build(words: str, compiled: str) -> dict[str, float]:
    """Compile a word list: number of words, seconds and peak megabytes."""
    from hanlattice.lexicon import Lexicon

    started = time.perf_counter()
    lexicon = Lexicon.from_files(words)
    lexicon.save(compiled)
    seconds = time.perf_counter() - started
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {"words": len(lexicon), "seconds": seconds, "megabytes": most}


def read(compiled: str, text: str) -> dict[str, float]:
    """Open a compiled lexicon and match the text: times, memory in megabytes, and characters per second."""
    from hanlattice.lexicon import Lexicon

    sentences = Path(text).read_text(encoding="utf-8")
    before, _ = memory()
    started = time.perf_counter()
    lexicon = Lexicon.open(compiled)
    opened = time.perf_counter() - started
    own, _ = memory()
    whole = best(lambda: lexicon.match(sentences))
    own_after, shared = memory()
    single_sentences = [sentences[i : i + SENTENCE] for i in range(0, min(len(sentences), 100_000), SENTENCE)]
    single = best(lambda: [lexicon.match(sentence) for sentence in single_sentences]) / len(single_sentences)
    return {
        "open": opened,
        "own": own - before,
        "own_after": own_after - before,
        "shared": shared,
        "rate": len(sentences) / whole,
        "single": single * 1e6,
    }


def vectors(words: str, path: str, dimension: str) -> dict[str, float]:
    """Write a vector file with vectors of these words and no characters, in the format of the library."""
    from safetensors.numpy import save_file

    from hanlattice.vectors.storage import HEADER

    names = np.fromfile(words, np.uint8)[:-1]
    n = int((names == ord("\n")).sum()) + 1
    rows = np.zeros((n, int(dimension)), np.float16)
    rows[:] = np.random.default_rng(1).normal(size=int(dimension))
    none = {"chars": rows[:0], "bigrams": rows[:0]}
    tensors: dict[str, np.ndarray] = {f"{kind}.rows": of_kind for kind, of_kind in none.items()} | {
        "words.rows": rows
    }
    tensors |= {f"{kind}.names": names[:0] for kind in none} | {"words.names": names}
    save_file(tensors, path, {HEADER: json.dumps({"version": 1, "meta": {}})})
    return {}


def read_vectors(path: str) -> dict[str, float]:
    """Open a vector file and read a thousand rows: seconds, and sizes in megabytes."""
    from hanlattice.vectors import VectorSet

    before, _ = memory()
    started = time.perf_counter()
    loaded = VectorSet.load(path).words
    opened = time.perf_counter() - started
    own, _ = memory()
    loaded.at(np.random.default_rng(2).integers(0, len(loaded), 1000))
    own_after, _ = memory()
    return {
        "file": Path(path).stat().st_size / 1e6,
        "open": opened,
        "own": own - before,
        "own_after": own_after - before,
    }


def memory() -> tuple[float, float]:
    """Memory of this process in megabytes: private memory, and pages of files."""
    text = Path(f"/proc/{os.getpid()}/smaps_rollup").read_text(encoding="ascii")
    sizes = {line.split(":")[0]: int(line.split()[-2]) / 1e3 for line in text.splitlines()[1:]}
    return sizes["Anonymous"], sizes["Rss"] - sizes["Anonymous"]


def best(run: Callable[[], object], rounds: int = 9) -> float:
    """The lowest CPU time of several rounds, in seconds."""
    times = []
    for _ in range(rounds):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    return min(times)


STEPS: dict[str, Callable[..., dict[str, float]]] = {
    "write": write,
    "build": build,
    "read": read,
    "vectors": vectors,
    "read_vectors": read_vectors,
}

if __name__ == "__main__":
    main()
