"""Files damaged at random: a model's folder, lexicons, corpora of every format, vectors, and checkpoints.

    python tests/long/files.py [--cases 100000]            a tiny model and what belongs to it
    python tests/long/files.py --packaged [--cases 1000]   the packaged model

Each case damages one file (bytes changed, cut, repeated, inserted or exchanged for a number at a border) and opens
it as a user would: load and predict with engines that run without torch, open and match, read and check,
resume. The file is read as if nothing were wrong, or refused in one line. Anything else fails: another exception,
an answer outside its text, more than 30 seconds of processor time or 5 minutes, more than 4 GiB, or a crash. Cases
run in forked processes. About 60 CPU minutes for 100,000.
"""

import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import hanlattice
import tiny
from hanlattice import api, corpus
from hanlattice.api import EngineName
from hanlattice.corpus.checking import check
from hanlattice.engines.export import export
from hanlattice.errors import HanlatticeError
from hanlattice.lexicon import Lexicon
from hanlattice.model.digests import CHECKPOINT
from hanlattice.model.folder import DEFAULT
from hanlattice.vectors import VectorSet
from long.progress import arguments, numbers

GROUP = 50  # cases of one child process
SECONDS, MEMORY = 30, 4 << 30
TEXTS = ["李明在北京工作。", "昨天王小红去了人和药店,很好", "", "光明集团的长江大桥局"]
BORDERS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1]


@dataclass(frozen=True)
class Target:
    """A file to damage, inside a folder that is copied first, and how it is used then."""

    folder: Path
    file: str
    use: Callable[[Path], None]


def damaged(content: bytes, draw: np.random.Generator) -> bytes:
    """The bytes with one to three kinds of damage."""
    data = bytearray(content)
    for _ in range(int(draw.integers(1, 4))):
        # Headers and small files are worth more than the middle of a weight.
        near = (
            int(draw.integers(min(len(data), 512) + 1))
            if draw.random() < 0.5
            else int(draw.integers(len(data) + 1))
        )
        size = int(draw.integers(1, 17))
        match int(draw.integers(7)):
            case 0:
                data[near : near + 1] = bytes([int(draw.integers(256))])
            case 1:
                del data[near:]
            case 2:
                del data[near : near + size]
            case 3:
                data[near:near] = bytes(draw.integers(256, size=size, dtype=np.uint8))
            case 4:
                data[near:near] = data[near : near + 64 * size]
            case 5:
                other = int(draw.integers(len(data) + 1))
                data[near : near + size] = data[other : other + size]
            case _:
                width = int(draw.choice([1, 2, 4, 8]))
                value = BORDERS[int(draw.integers(len(BORDERS)))] & ((1 << 8 * width) - 1)
                data[near : near + width] = value.to_bytes(width, "little")
    return bytes(data)


def use_model(folder: Path, engines: Sequence[EngineName] = ("native", "onnx")) -> None:
    """Load by every engine, and predict.

    Raises:
        HanlatticeError: no engine loads it.
    """
    refused: list[HanlatticeError] = []
    for engine in engines:
        try:
            ner = hanlattice.load(folder, engine=engine)
        except HanlatticeError as error:
            _one_line(error)
            refused.append(error)
            continue
        for document in ner.pipe(TEXTS):
            for e in document.entities:
                if document.text[e.start : e.end] != e.text:
                    raise AssertionError(f"{e} does not lie in its text")
    if len(refused) == len(engines):
        raise refused[0]


def use_lexicon(path: Path) -> None:
    """Open, match and list a lexicon."""
    lexicon = Lexicon.open(path)
    for text in TEXTS:
        for start, end in zip(*(m.tolist() for m in lexicon.match(text)[:2]), strict=True):
            if not 0 <= start < end <= len(text):
                raise AssertionError(f"a match at {start}, {end} of {len(text)} characters")
    for _ in lexicon.entries():
        pass


def use_corpus(path: Path) -> None:
    """Read and check a corpus, its format detected."""
    for document in corpus.read(path, on_defect=lambda defect: None):
        for e in document.entities:
            if document.text[e.start : e.end] != e.text:
                raise AssertionError(f"{e} does not lie in its text")
    check([path])


def use_corpus_of(name: str, folder: Path) -> None:
    use_corpus(folder / name)


def use_vectors(path: Path) -> None:
    VectorSet.load(path)


def use_checkpoint(folder: Path) -> None:
    """Resume a finished run with one epoch more."""
    settings = tiny.config().with_settings({"training": {"epochs": tiny.config().training.epochs + 1}})
    api.train(settings, output=folder, resume=True)


def targets(place: Path, *, packaged: bool) -> list[Target]:
    """All files that are damaged, in a fixed order."""
    if packaged:
        use = partial(use_model, engines=("native", "ensemble", "cascade"))
        return [Target(DEFAULT, p.name, use) for p in sorted(DEFAULT.iterdir())]
    model = place / "model"
    shutil.copytree(tiny.two_conventions(), model, ignore=shutil.ignore_patterns(CHECKPOINT))
    exported = export(tiny.trained(), place / "exported").folder
    found = [Target(f, p.name, use_model) for f in (model, exported) for p in sorted(f.iterdir()) if p.is_file()]
    single = place / "single"
    single.mkdir()
    for name in corpus.FORMATS:
        if corpus.FORMATS[name].write is not None:
            corpus.write(tiny.documents(), single / f"corpus.{name}", name)
            found.append(Target(single, f"corpus.{name}", partial(use_corpus_of, f"corpus.{name}")))
    words = Lexicon((w, "LOC" if i % 3 == 0 else None, None) for i, w in enumerate(tiny.WORDS))
    words.save(single / "words.lexicon")
    tiny.vectors().save(single / "vectors.safetensors")
    found += [Target(single, "words.lexicon", lambda f: use_lexicon(f / "words.lexicon"))] * 4
    found += [Target(single, "vectors.safetensors", lambda f: use_vectors(f / "vectors.safetensors"))]
    run = place / "run"
    shutil.copytree(tiny.trained(), run)
    found += [Target(run, name, use_checkpoint) for name in (CHECKPOINT, "log.jsonl")]
    return found


def _one_line(error: BaseException) -> None:
    if "\n" in str(error) or not str(error):
        raise AssertionError(f"not one line: {error!r}") from None


def case(number: int, known: list[Target]) -> str:
    """Run one case; the name of its outcome."""
    draw = np.random.default_rng([2027, number])
    target = known[number % len(known)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "copy"
        folder.mkdir()
        for path in target.folder.iterdir():
            if path.is_file():
                (folder / path.name).symlink_to(path.resolve())
        changed = folder / target.file
        content = changed.read_bytes()
        changed.unlink()
        changed.write_bytes(damaged(content, draw))
        if target.use is use_checkpoint:
            for path in folder.iterdir():  # a run writes into its folder
                if path.is_symlink():
                    source = path.resolve()
                    path.unlink()
                    shutil.copy(source, path)
        try:
            target.use(folder)
        except HanlatticeError as error:
            _one_line(error)
            return "refused"
        return "read"


def child(pipe: Connection, some: range, known: list[Target]) -> None:
    # Besides what this process has from its parent, such as the libraries of torch.
    most = MEMORY + int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for number in some:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of processor time
        signal.alarm(10 * SECONDS)  # should it wait for something
        try:
            pipe.send((number, case(number, known), ""))
        except BaseException as error:
            pipe.send((number, "", f"{known[number % len(known)].file}: {type(error).__name__}: {error}"[:500]))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    pipe.close()
    os._exit(0)


def group(some: range, known: list[Target]) -> list[tuple[int, str, str]]:
    """Run cases in a child process; where it dies, that case failed, and another child runs the rest."""
    done: list[tuple[int, str, str]] = []
    context = multiprocessing.get_context("fork")
    while len(done) < len(some):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=child, args=(theirs, some[len(done) :], known))
        process.start()
        theirs.close()
        try:
            while True:
                done.append(ours.recv())
        except EOFError:
            process.join()
        if len(done) < len(some):
            at = some[len(done)]
            what = f"{known[at % len(known)].file}: the process ended with {process.exitcode}"
            done.append((at, "", what))
    return done


def main() -> int:
    parser = arguments(__doc__, "files", 100_000)
    parser.add_argument("--packaged", action="store_true", help="damage the packaged model")
    options = parser.parse_args()
    if options.packaged and options.record.name == "files.json":
        options.record = options.record.with_name("packaged.json")
    with tempfile.TemporaryDirectory() as name:
        known = targets(Path(name), packaged=options.packaged)
        if options.case is not None:
            print(known[options.case % len(known)].file, case(options.case, known))
            return 0
        failed = 0
        for progress, some in numbers(options, GROUP):
            for number, outcome, failure in group(some, known):
                if failure:
                    progress.failures.append((number, failure))
                else:
                    progress.outcomes[outcome] = progress.outcomes.get(outcome, 0) + 1
            failed = len(progress.failures)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
