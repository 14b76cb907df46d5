"""Make the OntoNotes 4 files of the papers on Chinese NER from the release of the LDC (LDC2011T03).

    python scripts/ontonotes4.py build RELEASE --output FOLDER
    python scripts/ontonotes4.py check FOLDER

``build`` reads the ``.name`` files of the Chinese part and writes ``train.char.bmes``, ``dev.char.bmes`` and
``test.char.bmes`` with the split of Che et al. 2013 (https://aclanthology.org/N13-1006): of the parallel documents,
chtb 1 to 325 and 1001 to 1078, odd numbers are dev and even numbers are test. All other documents are train. Names
of four types are kept. ``check`` compares the numbers of sentences, characters and entities of three such files
with the files of the papers, whose exact counts are at https://bbs.hankcs.com/t/topic/4357 (the papers round them).
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hanlattice import corpus
from hanlattice.corpus.losses import carried
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError

LABELS = ("PER", "ORG", "LOC", "GPE")
TOLERANCE = 0.01  # relative; the files of the papers contain a few tags as text, a rebuilt copy does not


class Counts(NamedTuple):
    """The size of one file."""

    sentences: int
    characters: int
    entities: int


PUBLISHED = {
    "train": Counts(15_724, 491_903, 13_372),
    "dev": Counts(4_301, 200_505, 6_950),
    "test": Counts(4_346, 208_066, 7_684),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    builder = commands.add_parser("build", help="make the three files from the release")
    builder.add_argument("release", type=Path)
    builder.add_argument("--output", type=Path, required=True)
    checker = commands.add_parser("check", help="count three files and compare with the published counts")
    checker.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    try:
        if arguments.command == "build":
            build(arguments.release, arguments.output)
            arguments.folder = arguments.output
        sys.exit(0 if check(arguments.folder) else 1)
    except HanlatticeError as error:
        sys.exit(f"error: {error}")


def build(release: Path, output: Path) -> None:
    """Write the three files.

    Raises:
        DataError: there are no ``.name`` files of the Chinese part, or one cannot be read.
    """
    paths = sorted(path for path in release.rglob("*.name") if "chinese" in path.parts)
    if not paths:
        raise DataError("holds no chinese/…/*.name; name the folder of the unpacked release", release)
    output.mkdir(parents=True, exist_ok=True)
    for split in PUBLISHED:
        chosen = [path for path in paths if split_of(path.stem) == split]
        if not chosen:
            raise DataError(f"holds no document of {split}; is the release complete?", release)
        corpus.write((d for path in chosen for d in sentences(path)), _file(output, split), "bmes")


def split_of(name: str) -> str:
    """The split of a document such as ``chtb_0325``."""
    match = re.fullmatch(r"chtb_(\d+)", name)
    number = int(match[1]) if match else 0
    if not (1 <= number <= 325 or 1001 <= number <= 1078):
        return "train"
    return "dev" if number % 2 else "test"


def sentences(path: Path) -> Iterator[Document]:
    """The sentences of a file without spaces and placeholders, with entities of the four types."""
    for document in corpus.read(path, "ontonotes"):
        if document.text != "EMPTY":
            kept, _ = carried(_characters(document), corpus.carries("bmes"))
            assert kept is not None
            yield kept


def _characters(document: Document) -> Document:
    """The document without the characters between its words, and with the four labels alone."""
    kept = [i for start, end in document.tokens or () for i in range(start, end)]
    new = {old: i for i, old in enumerate(kept)}
    text = "".join(document.text[i] for i in kept)
    spans = [(new[e.start], new[e.end - 1] + 1, e.label) for e in document.entities if e.label in LABELS]
    return Document(text, tuple(Entity(text[start:end], label, start, end) for start, end, label in spans))


def check(folder: Path) -> bool:
    """Print the counts of three files and the published counts.

    Returns:
        whether all counts differ by at most ``TOLERANCE``

    Raises:
        DataError: a file is missing or broken.
    """
    good = True
    for split, published in PUBLISHED.items():
        found = _count(_file(folder, split))
        for what, n, expected in zip(Counts._fields, found, published, strict=True):
            off = abs(n - expected) / expected
            good = good and off <= TOLERANCE
            verdict = "as published" if not off else f"{n - expected:+,} ({off:.2%} off)"
            print(f"{split:6}{what:11}{n:>9,}  published {expected:>9,}  {verdict}")
    if not good:
        print(f"not the corpus of the papers: more than {TOLERANCE:.0%} off", file=sys.stderr)
    return good


def _count(path: Path) -> Counts:
    """The sentences, characters and entities of one file."""
    found = Counts(0, 0, 0)
    for document in corpus.read(path, "bmes"):
        found = Counts(
            found.sentences + 1, found.characters + len(document.text), found.entities + len(document.entities)
        )
    return found


def _file(folder: Path, split: str) -> Path:
    """The file of a split."""
    return folder / f"{split}.char.bmes"


if __name__ == "__main__":
    main()
