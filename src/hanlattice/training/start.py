"""Training that begins with the weights of another model, as far as the two agree."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from hanlattice.build import own_parts
from hanlattice.config import Config, DataConfig, load_config, located
from hanlattice.errors import ConfigError
from hanlattice.model_folder import CONFIG, DEFAULT, LEXICON
from hanlattice.pipeline import NER
from hanlattice.tagger import Tagger
from hanlattice.vocab import Vocabulary

EPOCHS = 10  # unless said otherwise: a model that knows its task needs fewer

# Parameters whose rows stand for names: how they end, whose names, and how many rows come before the first.
NAMED_ROWS = (
    (".chars.weight", "chars", 2),
    (".bigrams.weight", "bigrams", 2),
    (".words.table.weight", "words", 1),
    (".composition.label.weight", "word_labels", 1),
)


def settings_to_go_on(start: str, *, trust: bool = False) -> Config:
    """The settings of a trained model, its lexicon and its weights, to train on with other corpora.

    Raises:
        ConfigError: ``start`` is no folder of a model, or names parts of its own and is not trusted.
    """
    folder = folder_of(start)
    settings = load_config(folder / CONFIG)
    if (own := own_parts(settings)) and not trust:
        raise ConfigError(
            f"{start} names {min(own)!r}, code from outside this library; if you trust it, start with --trust"
        )
    return replace(
        settings,
        data=DataConfig(),
        lexicon=replace(settings.lexicon, files=(str(folder / LEXICON),), vector_words=False),
        training=replace(settings.training, start=start, epochs=EPOCHS),
    )


def folder_of(start: str) -> Path:
    """The folder of a model, or that of the packaged one where ``start`` is ``default``."""
    return DEFAULT if start == "default" else Path(located(start))


@torch.no_grad()
def begin_with(start: NER, tagger: Tagger, vocabulary: Vocabulary) -> bool:
    """Take the weights of ``start`` over into ``tagger``, rows of tables by their names.

    Names that ``start`` does not know keep what they have. So does the decoder where the entity types are others;
    whether they are the same is returned.

    Raises:
        ConfigError: the two are not of one kind and size.
    """
    given, same_types = start.tagger.state_dict(), start.vocabulary.labels == vocabulary.labels
    own = tagger.state_dict()
    for name, weight in own.items():
        if name.startswith("decoder.") and not same_types:
            continue
        if name not in given:
            raise ConfigError(f"training.start: that model has no weight {name!r}; take its settings over too")
        rows = next((kind for kind in NAMED_ROWS if name.endswith(kind[0])), None)
        if rows is None and weight.shape == given[name].shape:
            weight.copy_(given[name])
        elif rows is not None and weight.shape[1:] == given[name].shape[1:]:
            _, field, first = rows
            _copy_rows(weight, getattr(vocabulary, field), given[name], getattr(start.vocabulary, field), first)
        else:
            raise ConfigError(
                f"training.start: {name!r} has the shape {tuple(given[name].shape)} in that model and"
                f" {tuple(weight.shape)} here; take its settings over too"
            )
    return same_types


def _copy_rows(weight: Tensor, names: Sequence[str], given: Tensor, given_names: Sequence[str], first: int) -> None:
    """The rows before the first name, and those of all names that both know."""
    weight[:first] = given[:first]
    row_of = {name: row for row, name in enumerate(given_names, first)}
    known = [(row, row_of[name]) for row, name in enumerate(names, first) if name in row_of]
    if known:
        to, of = torch.tensor(known).unbind(1)
        weight[to.to(weight.device)] = given[of].to(weight.device)
