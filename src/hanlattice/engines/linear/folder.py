"""Writes the folder of a linear tagger."""

from collections.abc import Mapping
from pathlib import Path

from safetensors.numpy import save

from hanlattice.atomic import atomic_write
from hanlattice.config.files import save_config
from hanlattice.config.settings import Config
from hanlattice.engines.linear.tables import Tables, stored
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.model.digests import forget, record
from hanlattice.model.folder import CARD, CONFIG, LEXICON, VOCABULARY, WEIGHTS, save_lexicon


def save_linear(
    folder: str | Path,
    tables: Mapping[str, Tables],
    vocabulary: Vocabulary,
    lexicon: Lexicon,
    config: Config,
    *,
    card: str,
) -> None:
    """Write the folder of a linear tagger. Every file is written atomically; settings and digests come last.

    ``tables`` are those of each convention; the default one has an empty name. ``card`` is the text of the model
    card.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    forget(folder)
    weights = {name: array for convention, x in tables.items() for name, array in stored(x, convention).items()}
    with atomic_write(folder / WEIGHTS, "wb") as stream:
        stream.write(save(weights, {"format": "hanlattice linear 1"}))
    vocabulary.save(folder / VOCABULARY)
    save_lexicon(lexicon, folder / LEXICON)
    with atomic_write(folder / CARD) as stream:
        stream.write(card)
    save_config(config, folder / CONFIG)
    record(folder)
