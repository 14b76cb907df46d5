"""From text files to 16-bit ids on disk: normalised, without duplicates and held-out lines.

``train.u16`` and ``held_out.u16`` hold the paragraphs, with a boundary before the first and after each one.
``text.json`` is written last: if it is missing, the preparation starts over.
"""

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hanlattice.atomic import atomic_write
from hanlattice.compressed import decompressed_lines
from hanlattice.embeddings.body_files import BOUNDARY, UNKNOWN, Characters
from hanlattice.errors import ConfigError, DataError, WriteError
from hanlattice.text.code_points import code_points
from hanlattice.text.normalise import Normaliser
from hanlattice.training.held_out import IsHeldOut, load_held_out
from hanlattice.training.pretrain.interrupt import Stop
from hanlattice.training.pretrain.watcher import Watcher

FOLDER, SUMMARY = "text", "text.json"
PARTS = ("train", "held_out")
FILES = (SUMMARY, *(f"{part}.{kind}" for part in PARTS for kind in ("u16", "codes")))
LINES = 4096  # per block
CHUNK = 1 << 22  # code points per block
HELD_OUT_EVERY = 1000  # one line of this many is kept for the held-out loss
MESSAGE_EVERY = 30.0  # seconds
END = 0x110000  # stands for a boundary among code points

NORMALISER = Normaliser(nfkc=True, simplify=True, tidy=True)


@dataclass
class Summary:
    """Counts of the lines that were read.

    ``characters`` and ``unknown`` count the characters of ``train``; ``digest`` is of its ids.
    """

    lines: int = 0
    duplicates: int = 0
    left_out: int = 0
    for_loss: int = 0
    characters: int = 0
    unknown: int = 0
    digest: str = ""

    def __str__(self) -> str:
        return (
            f"{self.characters:,} characters in {self.lines:,} lines; {self.left_out:,} held-out lines and"
            f" {self.duplicates:,} duplicates left out; {self.for_loss:,} lines kept for the held-out loss;"
            f" {self.unknown:,} characters unknown"
        )


def prepare(
    texts: Iterable[str | Path],
    held_out: str,
    size: int,
    folder: Path,
    watcher: Watcher,
    stop: Stop,
    characters: Characters | None = None,
) -> tuple[Characters, Summary]:
    """Write the ids of text files into a folder.

    The vocabulary is ``characters`` if given, else at most ``size`` of the most frequent characters.

    Raises:
        ConfigError: the file of held-out texts has no class ``HeldOut``.
        DataError: a file cannot be read or holds no text, or the disk is full.
        Stopped: a signal arrived.
    """
    is_held_out = load_held_out(Path(held_out)) if held_out else None
    texts = list(texts)
    if not texts:
        raise ConfigError("no text to learn from: name text files")
    summary = Summary()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        counts = _write_codes(texts, is_held_out, folder, summary, watcher, stop)
        if not summary.lines:
            raise DataError("holds no text to learn from; name files with one paragraph per line", texts[0])
        characters = characters or most_frequent(counts, size)
        summary.digest, summary.unknown = _write_ids(folder, "train", characters)
        _write_ids(folder, "held_out", characters)
    except OSError as error:
        raise WriteError(f"cannot be written: {error.strerror or error}", folder) from error
    finally:
        for part in PARTS:
            (folder / f"{part}.codes").unlink(missing_ok=True)
    with atomic_write(folder / SUMMARY) as stream:
        json.dump(asdict(summary), stream)
    return characters, summary


def remove(folder: Path) -> None:
    """Remove what a preparation that failed has written; other files in the folder stay."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):  # it may have other files
        folder.rmdir()


def load_summary(folder: Path) -> Summary | None:
    """The summary of a finished preparation; None if there is none.

    Raises:
        DataError: its file is broken.
    """
    try:
        return Summary(**json.loads((folder / SUMMARY).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"broken ({error}); remove it, and resume with the texts", folder / SUMMARY) from None


def most_frequent(counts: NDArray[np.int64], size: int) -> Characters:
    """The ``size`` most frequent code points; equally frequent ones in their order."""
    counts = counts[:END]
    order = np.argsort(-counts, kind="stable")[:size]
    return Characters("".join(map(chr, order[counts[order] > 0].tolist())))


def is_for_loss(text: str) -> bool:
    """Whether a normalised line is kept for the held-out loss, by a hash of it."""
    return int.from_bytes(_digest(text), "little") % HELD_OUT_EVERY == 0


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _write_codes(
    texts: Iterable[str | Path],
    is_held_out: IsHeldOut | None,
    folder: Path,
    summary: Summary,
    watcher: Watcher,
    stop: Stop,
) -> NDArray[np.int64]:
    """Write normalised code points; ``[END + 1]``: how often each occurs in ``train``."""
    (folder / SUMMARY).unlink(missing_ok=True)
    counts = np.zeros(END + 1, np.int64)
    seen: set[bytes] = set()
    reported = time.monotonic()
    with ExitStack() as stack:
        files = {part: stack.enter_context(open(folder / f"{part}.codes", "wb")) for part in PARTS}
        for stream in files.values():
            _write_paragraphs(stream, [""])
        for path in texts:
            for block in _blocks(decompressed_lines(path)):
                stop.check()
                kept = _kept(block, is_held_out, seen, summary)
                chosen: dict[str, list[str]] = {part: [] for part in PARTS}
                for text in kept:
                    chosen["held_out" if is_for_loss(text) else "train"].append(text)
                summary.for_loss += len(chosen["held_out"])
                summary.lines += len(chosen["train"])
                summary.characters += sum(map(len, chosen["train"]))
                codes = _write_paragraphs(files["train"], chosen["train"])
                counts += np.bincount(codes, minlength=END + 1)
                _write_paragraphs(files["held_out"], chosen["held_out"])
                if time.monotonic() - reported > MESSAGE_EVERY:
                    reported = time.monotonic()
                    watcher.say(f"preparing {Path(path).name}: {summary.characters:,} characters so far")
    return counts


def _blocks(found: Iterable[str]) -> Iterator[list[str]]:
    found = iter(found)
    while block := list(islice(found, LINES)):
        yield block


def _kept(block: list[str], is_held_out: IsHeldOut | None, seen: set[bytes], summary: Summary) -> list[str]:
    """The normalised lines of a block, without empty lines, held-out lines and duplicates."""
    kept = []
    for given, normal in zip(block, NORMALISER.all(block), strict=True):
        text = normal.text.strip()
        if not text:
            continue
        digest = _digest(text)
        if digest in seen:
            summary.duplicates += 1
        elif is_held_out is not None and (is_held_out(given) or (text != given and is_held_out(text))):
            summary.left_out += 1
        else:
            seen.add(digest)
            kept.append(text)
    return kept


def _write_paragraphs(stream: IO[bytes], paragraphs: list[str]) -> NDArray[np.uint32]:
    """Write the code points of paragraphs, with a boundary after each one."""
    if not paragraphs:
        return np.zeros(0, np.uint32)
    ends = np.cumsum([len(text) + 1 for text in paragraphs]) - 1
    codes = code_points("\0".join(paragraphs) + "\0").copy()
    codes[ends] = END
    stream.write(codes.tobytes())
    return codes


def _write_ids(folder: Path, part: str, characters: Characters) -> tuple[str, int]:
    """Convert the code points of a part to ids; the digest of the ids, and how many are unknown."""
    table = np.append(characters.table, np.uint16(BOUNDARY))
    digest, n_unknown = blake2b(digest_size=8), 0
    with open(folder / f"{part}.codes", "rb") as source, atomic_write(folder / f"{part}.u16", "wb") as target:
        while raw := source.read(4 * CHUNK):
            ids = table[np.frombuffer(raw, np.uint32)]
            digest.update(ids.tobytes())
            target.write(ids.tobytes())
            n_unknown += int((ids == UNKNOWN).sum())
    return digest.hexdigest(), n_unknown


def load_ids(folder: Path, part: str) -> NDArray[np.uint16]:
    """The ids of a part, mapped into memory.

    Raises:
        DataError: the file is missing or cut short.
    """
    path = folder / f"{part}.u16"
    try:
        ids: Any = np.memmap(path, np.uint16, "r")
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be read: {error}; remove its folder, and resume with the texts", path) from None
    return ids


def digest_of(ids: NDArray[np.uint16]) -> str:
    """The digest of ids, as in :class:`Summary`."""
    digest = blake2b(digest_size=8)
    for start in range(0, len(ids), CHUNK):
        digest.update(ids[start : start + CHUNK].tobytes())
    return digest.hexdigest()
