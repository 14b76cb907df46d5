"""Training that begins with the weights of another model, as far as the two agree."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from hanlattice.build import own_parts
from hanlattice.config.files import load_config, located
from hanlattice.config.settings import Config, DataConfig
from hanlattice.decoders.base import Decoder
from hanlattice.decoders.tagging import CRF, Softmax
from hanlattice.errors import ConfigError
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.model.folder import CONFIG, DEFAULT, LEXICON
from hanlattice.pipeline import NER
from hanlattice.tagger import Tagger

# Unless the caller says otherwise: a model that knows its task needs fewer and smaller steps, but enough of them.
EPOCHS, BATCH_SIZE, LEAST_STEPS, RATE_SHARE = 10, 8, 400, 0.5

# Parameters whose rows stand for names: how they end, whose names, and how many rows come before the first.
NAMED_ROWS = (
    (".chars.weight", "chars", 2),
    (".bigrams.weight", "bigrams", 2),
    (".words.table.weight", "words", 1),
    (".composition.label.weight", "word_kinds", 1),
)


def settings_to_go_on(start: str, *, trust: bool = False) -> Config:
    """The settings of a trained model, its lexicon and its weights, to train on with other corpora.

    Raises:
        ConfigError: ``start`` is no folder of a model, or names parts of its own and is not trusted.
    """
    folder = folder_of(start)
    settings = load_config(folder / CONFIG)
    data, training = settings.data, settings.training
    if (own := own_parts(settings)) and not trust:
        raise ConfigError(
            f"{start} names {min(own)!r}, code from outside this library; if you trust it, start with --trust"
        )
    return replace(
        settings,
        data=DataConfig(
            outermost=data.outermost, unpunctuated=data.unpunctuated, noise=data.noise, user_words=data.user_words
        ),
        conventions={},
        auxiliary={},
        lexicon=replace(settings.lexicon, files=(str(folder / LEXICON),), vector_words=False),
        training=replace(
            training,
            start=start,
            epochs=EPOCHS,
            least_steps=LEAST_STEPS,
            batch_size=min(training.batch_size, BATCH_SIZE),
            learning_rate=training.learning_rate * RATE_SHARE,
        ),
    )


def folder_of(start: str) -> Path:
    """The folder of a model, or that of the packaged one where ``start`` is ``default``."""
    return DEFAULT if start == "default" else Path(located(start))


@torch.no_grad()
def begin_with(start: NER, tagger: Tagger, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Take the weights of ``start`` over into ``tagger``, rows of tables by their names.

    Names that ``start`` does not know keep what they have. Tags of entity labels that both know take over their
    scores where both decode by tags of one scheme; another decoder starts afresh unless all labels are the same.

    Returns:
        The entity labels whose weights in the decoder were taken over.

    Raises:
        ConfigError: the two are not of one kind and size.
    """
    given, labels = start.tagger.state_dict(), start.vocabulary.labels
    same_labels = labels == vocabulary.labels
    for name, weight in tagger.state_dict().items():
        if name.startswith(("conventions.", "decoder.")) and (name.startswith("c") or not same_labels):
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
    if same_labels:
        return labels
    return _copy_tags(start.tagger.decoder, tagger.decoder)


def _copy_tags(given: Decoder, decoder: Decoder) -> tuple[str, ...]:
    """Take the scores of tags over that two decoders share; the labels of these tags."""
    shared = tuple(label for label in decoder.labels if label in given.labels)
    if not isinstance(given, CRF | Softmax) or not isinstance(decoder, type(given)) or not shared:
        return ()
    row_of = {name: row for row, name in enumerate(given.tag_set.rules.names)}
    known = [(row, row_of[name]) for row, name in enumerate(decoder.tag_set.rules.names) if name in row_of]
    to, of = torch.tensor(known).unbind(1)
    old = given.state_dict()
    for name, weight in decoder.state_dict().items():
        if name == "transitions":
            weight[to[:, None], to] = old[name][of[:, None], of].to(weight.device)
        elif name in old and weight.shape[1:] == old[name].shape[1:]:
            weight[to] = old[name][of].to(weight.device)
    return shared


def _copy_rows(weight: Tensor, names: Sequence[str], given: Tensor, given_names: Sequence[str], first: int) -> None:
    """The rows before the first name, and those of all names that both know."""
    weight[:first] = given[:first]
    row_of = {name: row for row, name in enumerate(given_names, first)}
    known = [(row, row_of[name]) for row, name in enumerate(names, first) if name in row_of]
    if known:
        to, of = torch.tensor(known).unbind(1)
        weight[to.to(weight.device)] = given[of].to(weight.device)
