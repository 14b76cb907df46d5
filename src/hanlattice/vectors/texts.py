"""Reads the texts to train vectors on: normalises them, and drops duplicates and texts of test sets."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path

from hanlattice.compressed import decompressed_lines
from hanlattice.errors import DataError

OVERLAP = 20  # a paragraph that shares this many consecutive characters with an excluded text is left out
MAX_LINE = 5_000  # maximum number of tokens of a line; word2vec reads at most 10,000
CUT = "\t"  # ends a line whose paragraph continues in the next one


@dataclass
class Counts:
    """What happened to the paragraphs.

    Args:
        kept: paragraphs to train on.
        duplicates: paragraphs left out because an equal one was kept.
        excluded: paragraphs left out because of an excluded text.
        characters: characters of the kept paragraphs, without whitespace.
    """

    kept: int = 0
    duplicates: int = 0
    excluded: int = 0
    characters: int = 0


def normalise(text: str) -> str:
    """The text in NFKC and lower case, without whitespace at its ends."""
    return unicodedata.normalize("NFKC", text).lower().strip()


def ngrams(texts: Iterable[str]) -> set[str]:
    """All substrings of ``OVERLAP`` characters of the normalised texts without white space."""
    return {
        text[start : start + OVERLAP] for text in map(unspaced, texts) for start in range(len(text) - OVERLAP + 1)
    }


def unspaced(text: str) -> str:
    """The normalised text without white space."""
    return "".join(normalise(text).split())


def training_lines(
    paths: Sequence[str | Path],
    excluded: set[str],
    counts: Counts,
    progress: Callable[[float], None] = lambda done: None,
) -> Iterator[str]:
    """The paragraphs of text files, normalised, without whitespace, and cut after ``MAX_LINE`` characters.

    A paragraph is a line of a file. Empty ones, exact duplicates and those with an excluded n-gram are left out.
    Only a hash of each is kept in memory. A piece that is not the last one of its paragraph ends with ``CUT``.

    Args:
        paths: text files with one paragraph per line; see :func:`hanlattice.compressed.decompressed_lines`.
        excluded: the result of :func:`ngrams` for the excluded texts.
        counts: counts the paragraphs.
        progress: receives the share that has been read, 0 to 1.

    Raises:
        DataError: a file cannot be read or decompressed, or is not UTF-8.
    """
    seen = set()
    for line in _lines(paths, progress):
        paragraph = normalise(line)
        if not paragraph:
            continue
        digest = blake2b(paragraph.encode(), digest_size=8).digest()
        if digest in seen:
            counts.duplicates += 1
            continue
        seen.add(digest)
        text = "".join(paragraph.split())
        if excluded and any(text[at : at + OVERLAP] in excluded for at in range(len(text) - OVERLAP + 1)):
            counts.excluded += 1
            continue
        counts.kept += 1
        counts.characters += len(text)
        for start in range(0, len(text), MAX_LINE):
            end = start + MAX_LINE
            yield text[start:end] + (CUT if end < len(text) else "")


def _lines(paths: Sequence[str | Path], progress: Callable[[float], None]) -> Iterator[str]:
    try:
        sizes = {path: Path(path).stat().st_size for path in paths}
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", error.filename) from None
    whole, before = sum(sizes.values()) or 1, 0
    for path in paths:
        yield from decompressed_lines(path, partial(_report, progress, before, whole))
        before += sizes[path]
        progress(before / whole)


def _report(progress: Callable[[float], None], before: int, whole: int, n: int) -> None:
    progress((before + n) / whole)
