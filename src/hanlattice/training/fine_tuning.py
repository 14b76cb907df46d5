"""Fine-tuning: training starts from the weights of another model, as far as the two agree."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from hanlattice.build import own_parts
from hanlattice.config.files import load_resolved, located
from hanlattice.config.settings import Config, DataConfig
from hanlattice.decoders.base import Decoder
from hanlattice.decoders.tagging import CRF, Softmax
from hanlattice.embeddings.initial_weights import further_rows, with_all_rows
from hanlattice.errors import ConfigError
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.model.folder import CONFIG, EDITS, LEXICON, located_model
from hanlattice.pipeline import NER
from hanlattice.tagger import Tagger

# Defaults of fine-tuning, which needs fewer and smaller steps than training, but a minimum number of them. The
# batch size is a maximum. The learning rate is that of the model's own training, times RATE_SHARE if that training
# started from random weights; with AdamW over tables of vectors it is at least LEAST_RATE.
EPOCHS, BATCH_SIZE, LEAST_STEPS, RATE_SHARE, LEAST_RATE = 20, 8, 1000, 0.5, 1e-3

# Parameters with a row per name: the end of their path, the field of the vocabulary, and its first row.
NAMED_ROWS = (
    (".chars.weight", "chars", 2),
    (".bigrams.weight", "bigrams", 2),
    (".words.table.weight", "words", 1),
    (".composition.label.weight", "word_kinds", 1),
)


def settings_for_fine_tuning(start: str, *, trust: bool = False) -> Config:
    """The settings of a trained model with its lexicon and its weights, to be fine-tuned on other corpora.

    Words that a user of the model added to the lexicon, or removed from it, are added or removed here too.

    ``start`` is a model folder, or ``default`` for the model in the package.

    Raises:
        ConfigError: ``start`` is not a model folder, or it names code from outside this library without ``trust``.
    """
    folder = model_folder(start)
    settings = load_resolved(folder / CONFIG)
    data, training = settings.data, settings.training
    lists = [folder / LEXICON, *([folder / EDITS] if (folder / EDITS).is_file() else [])]
    if (own := own_parts(settings)) and not trust:
        raise ConfigError(
            f"{start} names {min(own)!r}, code from outside this library; if you trust it, start with --trust"
        )
    return replace(
        settings,
        data=DataConfig(
            outermost=data.outermost,
            unpunctuated=data.unpunctuated,
            noise=data.noise,
            user_words=data.user_words,
            joined=data.joined,
            joined_length=data.joined_length,
            joined_with=data.joined_with,
            replaced_names=data.replaced_names,
            names_from=data.names_from,
        ),
        conventions={},
        auxiliary={},
        lexicon=replace(settings.lexicon, files=tuple(map(str, lists)), vector_words=False),
        vectors=replace(settings.vectors, bigram_frequency=1),  # most bigrams of a small corpus are rare in it
        training=replace(
            training,
            start=start,
            epochs=EPOCHS,
            least_steps=LEAST_STEPS,
            batch_size=min(training.batch_size, BATCH_SIZE),
            learning_rate=_rate(settings),
        ),
    )


def _rate(start: Config) -> float:
    """The learning rate of fine-tuning a model with these settings."""
    rate = start.training.learning_rate * (1 if start.training.start else RATE_SHARE)
    has_tables = start.embedding.name == "characters" and start.training.optimiser == "adamw"
    return max(rate, LEAST_RATE) if has_tables else rate


def model_folder(start: str) -> Path:
    """The model folder that ``training.start`` names, which may be a packaged model such as ``default``."""
    return located_model(located(start))


@torch.no_grad()
def copy_weights(start: NER, tagger: Tagger, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Copy the weights of ``start`` into ``tagger``.

    The row of a character, bigram or word is copied from the row of the same name. Names that ``start`` does not
    have keep their rows. If all entity labels and the kind of decoder are the same, the decoder's weights are
    copied too. If only some labels are, or the settings of the decoders differ, and both are CRFs or both are
    softmax decoders with the same tag scheme, the scores of tags with the same name are copied. In all other cases
    the decoder keeps its initial weights. The head of another annotation convention is copied if both models have
    the convention with the same labels and a head of the same kind.

    Args:
        start: the trained model.
        tagger: the tagger to initialise.
        vocabulary: has the names of all rows of ``tagger``, trained or not.

    Returns:
        The entity labels whose weights in the decoder were copied.

    Raises:
        ConfigError: the models differ in kind or size.
    """
    given, untrained = start.tagger.state_dict(), further_rows(tagger).keys()
    heads = _shared_heads(start, tagger, vocabulary)
    with with_all_rows(tagger):
        for name, weight in tagger.state_dict().items():
            if (convention := _convention_of(name)) is not None and convention not in heads:
                continue
            if name not in given:
                raise ConfigError(f"training.start: that model has no weight {name!r}; use its settings too")
            rows = next((kind for kind in NAMED_ROWS if name.endswith(kind[0])), None)
            if rows is None and weight.shape == given[name].shape and name not in untrained:
                weight.copy_(given[name])
            elif rows is not None and weight.shape[1:] == given[name].shape[1:]:
                _, field, first = rows
                names, given_names = getattr(vocabulary, field), getattr(start.vocabulary, field)
                _copy_rows(weight, names, given[name], given_names, first)
            else:
                raise ConfigError(
                    f"training.start: {name!r} has the shape {tuple(given[name].shape)} in that model and"
                    f" {tuple(weight.shape)} here; use its settings too"
                )
    if "" in heads:
        return vocabulary.labels
    return _copy_tags(start.tagger.decoder, tagger.decoder)


def _convention_of(weight: str) -> str | None:
    """The convention whose head has this weight; empty for the default one, None outside the heads."""
    part, _, rest = weight.partition(".")
    return {"decoder": "", "conventions": rest.partition(".")[0]}.get(part)


def _shared_heads(start: NER, tagger: Tagger, vocabulary: Vocabulary) -> set[str]:
    """The conventions whose heads can be copied; the default convention is the empty string."""
    shared = set()
    if start.vocabulary.labels == vocabulary.labels and _are_alike(start.tagger.decoder, tagger.decoder):
        shared.add("")
    for name, head in tagger.conventions.items():
        has_labels = start.vocabulary.conventions.get(name) == vocabulary.conventions[name]
        if has_labels and _are_alike(start.tagger.conventions[name], head):
            shared.add(name)
    return shared


def _are_alike(one: nn.Module, other: nn.Module) -> bool:
    """Whether two modules have weights with the same names and shapes."""
    first, second = ({name: w.shape for name, w in module.state_dict().items()} for module in (one, other))
    return first == second


def _copy_tags(given: Decoder, decoder: Decoder) -> tuple[str, ...]:
    """Copy the scores of the tags that both decoders have; returns the labels of these tags.

    Nothing is copied between tag schemes: the B of BIO begins names that BMES would tag as S.
    """
    shared = tuple(label for label in decoder.labels if label in given.labels)
    if not isinstance(given, CRF | Softmax) or not isinstance(decoder, type(given)) or not shared:
        return ()
    if given.tag_set.rules.scheme != decoder.tag_set.rules.scheme:
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
    """Copy the rows of the names that both have, and the ``first`` rows, which have no name, such as padding."""
    weight[:first] = given[:first]
    row_of = {name: row for row, name in enumerate(given_names, first)}
    known = [(row, row_of[name]) for row, name in enumerate(names, first) if name in row_of]
    if known:
        to, of = torch.tensor(known).unbind(1)
        weight[to.to(weight.device)] = given[of].to(weight.device)
