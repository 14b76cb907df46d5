"""Which part of the entities a lexicon covers, by corpus and label. Nothing is trained."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from experiments.arms import Setup
from experiments.corpora import Parts, read_source
from experiments.lexicons import SIZES, word_lists
from experiments.tables import markdown
from hanlattice.cli.config_options import preset
from hanlattice.config.files import load_config, overridden
from hanlattice.document import Document
from hanlattice.errors import DataError
from hanlattice.lexicon import Lexicon
from hanlattice.text.normalise import Normaliser

SHORTEST = 2  # characters of a matched word, as in most settings


def report(setup: Setup) -> str:
    """A table for each corpus: the share of the entities of each label that is a word of each lexicon.

    ``boundaries``: the entity starts where a word of the full lexicon starts, and ends where one ends. The entities
    of train, dev and test count, each as often as it occurs.
    """
    config = overridden(load_config(preset("equal/flat")), setup.settings)
    normaliser = Normaliser.of(config.text)
    lexicons = {
        size: Lexicon(Lexicon.open(path).entries(), normaliser.words)
        for size, path in word_lists(setup, config).items()
    }
    sizes = ", ".join(f"{size} {len(lexicon):,}" for size, lexicon in lexicons.items())
    tables = [f"Words: {sizes}.\n"]
    for name in ["files"] if setup.files else setup.corpus.split(","):
        parts = read_source(name, setup.files)
        if not any(document.entities for document in _all(parts)):
            raise DataError(f"{name}: no document has an entity; name an annotated corpus")
        rows = covered(_all(parts), [lexicons[size] for size in SIZES], normaliser)
        head = ["label", "entities", *SIZES, "boundaries"]
        tables.append(f"**{name}**\n\n" + markdown(head, rows))
    return "\n".join(tables)


def _all(parts: Parts) -> list[Document]:
    return [*parts.train, *parts.dev, *parts.test]


def covered(documents: Sequence[Document], lexicons: Sequence[Lexicon], normaliser: Normaliser) -> list[list[str]]:
    """A row for each label, and one for all: gold entities, and the share covered by each lexicon in percent.

    Args:
        lexicons: the boundaries are those of the second one.
    """
    gold: Counter[str] = Counter()
    found: list[Counter[str]] = [Counter() for _ in (*lexicons, "boundaries")]
    documents = [_normalised(document, normaliser) for document in documents]
    words_of = [frozenset(lexicon) for lexicon in lexicons]
    matches = lexicons[1].match_batch([d.text for d in documents], SHORTEST)
    for i, document in enumerate(documents):
        words = matches[i]
        starts, ends = set(words.start.tolist()), set(words.end.tolist())
        for e in document.entities:
            gold[e.label] += 1
            for counter, known in zip(found, words_of, strict=False):
                counter[e.label] += len(e.text) >= SHORTEST and e.text in known
            found[-1][e.label] += e.start in starts and e.end in ends
    return [*(_row(label, [label], gold, found) for label in sorted(gold)), _row("all", gold, gold, found)]


def _normalised(document: Document, normaliser: Normaliser) -> Document:
    """The document as a model with this normalisation reads it.

    Normalisation that changes the length of a text would need its map of offsets; such texts stay as they are.
    """
    text = normaliser(document.text).text
    if len(text) != len(document.text):
        return document
    entities = tuple(replace(e, text=text[e.start : e.end]) for e in document.entities)
    return Document(text, entities)


def _row(title: str, labels: Iterable[str], gold: Counter[str], found: Sequence[Counter[str]]) -> list[str]:
    labels = list(labels)
    n = sum(gold[label] for label in labels)
    shares = (100 * sum(counter[label] for label in labels) / n for counter in found)
    return [title, f"{n:,}", *(f"{share:.1f}" for share in shares)]
