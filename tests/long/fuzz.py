"""Coverage-guided fuzzing of readers, normalisation, the matcher and edges, by atheris (libFuzzer for Python).

    pip install atheris
    python tests/long/fuzz.py TARGET [--minutes 10] [--corpus runs/long/fuzz]

TARGET is one of corpus, settings, normalise, lexicon, edges. Inputs that reach new code are kept in the folder of
``--corpus``, from which the next run resumes. An exception that is not a HanlatticeError ends the run, and the
input that raised it is written beside them.
"""

import argparse
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["hanlattice"]):
    from hanlattice import corpus
    from hanlattice.config.files import load_config
    from hanlattice.config.settings import TextConfig
    from hanlattice.errors import HanlatticeError
    from hanlattice.lexicon import Lexicon
    from hanlattice.text.edges import trimmed
    from hanlattice.text.normalise import Normaliser
    from hanlattice.text.windows import windows

PLACE = Path(tempfile.mkdtemp(prefix="hanlattice-fuzz-"))


def read_corpus(data: bytes) -> None:
    path = PLACE / "corpus"
    path.write_bytes(data)
    for document in corpus.read(path, on_defect=lambda defect: None):
        for e in document.entities:
            assert document.text[e.start : e.end] == e.text


def read_settings(data: bytes) -> None:
    path = PLACE / "settings.toml"
    path.write_bytes(data)
    load_config(path)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape").encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def normalise(data: bytes) -> None:
    text = _text(data)
    for simplify in (False, True):
        normal = Normaliser.of(TextConfig(simplify=simplify, tidy=True))(text)
        for start in range(0, len(normal.text), 3):
            given = normal.original(start, min(start + 2, len(normal.text)))
            assert 0 <= given[0] <= given[1] <= len(text)
        for window in windows(normal.text, 16, 4):
            assert 0 <= window.start <= window.end <= len(normal.text)


def match(data: bytes) -> None:
    words, _, text = _text(data).partition("\n\n")
    lexicon = Lexicon(w for w in words.split("\n") if w.strip() and len(w) < 100)
    found = lexicon.match(text)
    known = set(words.split("\n"))
    for start, end in zip(found.start.tolist(), found.end.tolist(), strict=True):
        assert text[start:end] in known


def edges(data: bytes) -> None:
    text = _text(data)
    for start in range(min(len(text), 8)):
        found = trimmed(text, start, len(text), "punctuation")
        assert found is None or start <= found[0] < found[1] <= len(text)


TARGETS = {
    "corpus": read_corpus,
    "settings": read_settings,
    "normalise": normalise,
    "lexicon": match,
    "edges": edges,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--corpus", type=Path, default=Path("runs/long/fuzz"))
    a = parser.parse_args()
    kept = a.corpus / a.target
    kept.mkdir(parents=True, exist_ok=True)

    def one(data: bytes) -> None:
        with suppress(HanlatticeError):
            TARGETS[a.target](data)

    libfuzzer = [
        f"-max_total_time={a.minutes * 60:.0f}",
        "-max_len=2048",
        "-timeout=20",
        f"-artifact_prefix={kept}/",
    ]
    atheris.Setup([sys.argv[0], str(kept), *libfuzzer], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
