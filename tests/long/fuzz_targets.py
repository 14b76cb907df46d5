"""What is fuzzed: functions of some bytes that raise an error if something is wrong with the package."""

import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path

import hanlattice
from hanlattice import corpus
from hanlattice.config.files import load_config
from hanlattice.config.settings import TextConfig
from hanlattice.lexicon import Lexicon
from hanlattice.text.edges import trimmed
from hanlattice.text.normalise import Normaliser
from hanlattice.text.windows import windows

PLACE = Path(tempfile.mkdtemp(prefix="hanlattice-fuzz-"))
LONGEST = 100  # characters of a word


def read_corpus(data: bytes) -> None:
    """A file of a corpus, its format detected."""
    path = PLACE / "corpus"
    path.write_bytes(data)
    for document in corpus.read(path, on_defect=lambda defect: None):
        for e in document.entities:
            assert document.text[e.start : e.end] == e.text or e.fragments, e


def read_settings(data: bytes) -> None:
    """A settings file."""
    path = PLACE / "settings.toml"
    path.write_bytes(data)
    load_config(path)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def normalise(data: bytes) -> None:
    """The map of offsets of a normalised text, and its windows."""
    text = _text(data)
    for simplify in (False, True):
        normal = Normaliser.of(TextConfig(simplify=simplify, tidy=True))(text)
        before = 0
        for start in range(len(normal.text)):
            given = normal.original(start, start + 1)
            assert before <= given[0] < given[1] <= len(text), (start, given)
            before = given[0]
        found = list(windows(normal.text, 16, 4))
        assert not normal.text or (found[0].start, found[-1].end) == (0, len(normal.text))
        assert all(a.start < b.start <= a.end < b.end for a, b in pairwise(found))


def _words_and_text(data: bytes) -> tuple[list[str], str]:
    words, _, text = _text(data).partition("\n\n")
    return [w for w in words.split("\n") if 0 < len(w) < LONGEST and w == w.strip() and "\0" not in w], text


def match(data: bytes) -> None:
    """Every occurrence of every word, found by the kernel, by definition."""
    words, text = _words_and_text(data)
    found = Lexicon(words).match(text)
    pairs = set(zip(found.start.tolist(), found.end.tolist(), strict=True))
    shortest = min((end - start for start, end in pairs), default=1)
    known = set(words)
    lengths = {len(word) for word in known}
    every = {(i, i + n) for n in lengths for i in range(len(text) - n + 1) if text[i : i + n] in known}
    assert pairs <= every, sorted(pairs - every)
    missing = {pair for pair in every - pairs if pair[1] - pair[0] >= max(2, shortest)}
    assert not missing, sorted(missing)


def open_lexicon(data: bytes) -> None:
    """A file of a lexicon, compiled or a list of words, damaged or not, and its search."""
    path = PLACE / "words"
    path.write_bytes(data)
    lexicon = Lexicon.open(path)
    for text in ("昨天李明去了人和药店", _text(data)[-200:]):
        found = lexicon.match(text)
        for start, end in zip(found.start.tolist(), found.end.tolist(), strict=True):
            assert 0 <= start < end <= len(text), (start, end)
    for _ in lexicon.entries():
        pass


def edges(data: bytes) -> None:
    """Edges of entities."""
    text = _text(data)
    for start in range(min(len(text), 8)):
        found = trimmed(text, start, len(text), "punctuation")
        assert found is None or start <= found[0] < found[1] <= len(text), found


@cache
def _packaged() -> hanlattice.NER:
    return hanlattice.load(engine="native")


def predict(data: bytes) -> None:
    """The packaged model with words of its own: all kernels of prediction."""
    words, text = _words_and_text(data)
    ner = _packaged()
    lexicon = ner.lexicon.copy()
    lexicon.update(words)
    with ner.using(lexicon=lexicon) as with_words:
        for document in with_words.pipe([text, text[::-1], text[:20]]):
            before = 0
            for e in document.entities:
                assert document.text[e.start : e.end] == e.text, e
                assert before <= e.start < e.end, e
                assert e.score is not None, e
                assert 0 <= e.score <= 1, e
                before = e.end


TARGETS: dict[str, Callable[[bytes], None]] = {
    "corpus": read_corpus,
    "settings": read_settings,
    "normalise": normalise,
    "match": match,
    "lexicon": open_lexicon,
    "edges": edges,
    "predict": predict,
}


def seeds(target: str) -> Iterable[bytes]:
    """Inputs to begin with, all of them right."""
    import tiny
    from long.texts import text

    match target:
        case "corpus":
            for name in corpus.writable():
                path = PLACE / f"seed.{name}"
                corpus.write(tiny.documents()[:4], path, name)
                if path.is_file():
                    yield path.read_bytes()
        case "settings":
            papers = Path(hanlattice.__file__).parent / "papers"
            yield from (path.read_bytes() for path in sorted(papers.rglob("*.toml")))
        case "lexicon":
            path = PLACE / "seed.lexicon"
            Lexicon((w, "LOC" if i % 3 == 0 else None, None) for i, w in enumerate(tiny.WORDS)).save(path)
            yield path.read_bytes()
            yield "".join(f"{word}\n" for word in tiny.WORDS).encode()
        case _:
            words = "\n".join(tiny.WORDS) + "\n\n" if target in ("match", "predict") else ""
            yield from (f"{words}{text(i)}".encode("utf-8", "replace") for i in range(50))
