"""Build a tagger from its settings, the initial weights of its tables, and its entity labels.

Three tables map the name of a part in the settings to its builder: ``EMBEDDINGS``, ``ENCODERS`` and ``DECODERS``. A
builder is a class or a function; its keyword-only arguments are the settings of the part. A part named
``package.module:Class`` is a user's own: it is imported, and called like the builders of its table.

=================  ======================================  ==============================
table              called with                             returns
=================  ======================================  ==============================
``EMBEDDINGS``     ``(tables, **settings)``                x ``[B N D_in]`` for a batch
``ENCODERS``       ``(d_in, tables, **settings)``          h ``[B N D]``
``DECODERS``       ``(d_in, labels, **settings)``          scores, a loss and spans
=================  ======================================  ==============================
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from torch import nn

from hanlattice.build.decoders import DECODERS
from hanlattice.build.embeddings import EMBEDDINGS
from hanlattice.build.encoders import ENCODERS
from hanlattice.build.settings import choose, construct, library_paths, trusting
from hanlattice.config.linear import linear_settings
from hanlattice.config.parts import Part
from hanlattice.config.settings import AuxiliaryConfig, Config, ConventionConfig
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.encoders.base import Encoder, WordEncoder
from hanlattice.errors import ConfigError
from hanlattice.tagger import Head, Tagger, WordTagger

__all__ = ["DECODERS", "EMBEDDINGS", "ENCODERS", "build", "build_head", "check", "own_parts"]


def build(
    config: Config,
    tables: Tables,
    labels: tuple[str, ...],
    conventions: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    *,
    trust: bool = True,
) -> Tagger:
    """The tagger that a configuration describes.

    Args:
        config: names the parts and their settings.
        tables: initial weights of the embedding tables.
        labels: entity labels of the default convention.
        conventions: entity labels of every further convention.
        trust: parts named ``package.module:Class`` may be imported, which runs their code. Pass False for settings
            from elsewhere, such as those of a downloaded model.

    Raises:
        ConfigError: a part or one of its settings does not exist, or a value does not fit.
    """
    with trusting(trust):
        embedding = construct("embedding", config.embedding, EMBEDDINGS, tables.within("embedding"))
        encoder = construct("encoder", config.encoder, ENCODERS, embedding.d_out, tables.within("encoder"))
        decoder = construct("decoder", config.decoder, DECODERS, encoder.d_out, labels)
        heads = {}
        for name, its_labels in conventions.items():
            settings = _convention(config, name)
            heads[name] = build_head(f"conventions.{name}", settings.decoder, embedding.d_out, encoder, its_labels)
    tagger = WordTagger if isinstance(encoder, WordEncoder) else Tagger
    return tagger(embedding, encoder, decoder, heads)


def build_head(setting: str, decoder: Part, d_in: int, encoder: Encoder, labels: tuple[str, ...]) -> Head:
    """The head of a convention or of an auxiliary corpus.

    Args:
        setting: the place of its settings in the configuration, such as ``conventions.msra``; for error messages.
        decoder: names the decoder and its settings.
        d_in: width of the embedding.
        encoder: the encoder that the head reads.
        labels: its entity labels.

    Raises:
        ConfigError: see :func:`build`.
    """
    return Head(d_in, construct(f"{setting}.decoder", decoder, DECODERS, encoder.d_out, labels))


def check(config: Config) -> None:
    """Check the names of all parts, and the names and types of their settings. Nothing is read or built.

    Raises:
        ConfigError: a part or one of its settings does not exist, a value is of the wrong type, or an auxiliary
            corpus has a decoder that it does not train.
    """
    if linear_settings(config) is not None:
        return
    choose("embedding", config.embedding, EMBEDDINGS)
    choose("encoder", config.encoder, ENCODERS)
    choose("decoder", config.decoder, DECODERS)
    for name in config.conventions:
        _convention(config, name)
    for kind, corpora in (("conventions", config.conventions), ("auxiliary", config.auxiliary)):
        for name, settings in corpora.items():
            choose(f"{kind}.{name}.decoder", settings.decoder, DECODERS)
            if settings.same_convention and settings.decoder != AuxiliaryConfig().decoder:
                raise ConfigError(
                    f"auxiliary.{name} trains the decoder of train, as same_convention is set; remove"
                    f" auxiliary.{name}.decoder, or set auxiliary.{name}.same_convention = false"
                )


def _convention(config: Config, name: str) -> ConventionConfig:
    """The settings of a convention.

    Raises:
        ConfigError: there are none, or PyTorch cannot have a module with this name.
    """
    if name not in config.conventions:
        raise ConfigError(f"there are no settings conventions.{name}")
    if hasattr(nn.ModuleDict(), name):
        raise ConfigError(f"conventions.{name}: {name!r} means something else inside a model; rename it")
    return config.conventions[name]


def own_parts(config: Config) -> set[str]:
    """Names of the user's own parts that a model needs (``package.module:Class``), also inside other parts."""
    heads = (convention.decoder for convention in config.conventions.values())
    parts = (config.embedding, config.encoder, config.decoder, *heads)
    return {name for part in parts for name in _own_names({"name": part.name, **part.settings})}


def _own_names(part: Mapping[str, Any]) -> Iterator[str]:
    name = str(part.get("name", ""))
    if ":" in name and name not in _LIBRARY_PATHS:
        yield name
    inner, parts = part.get("inner"), part.get("parts")
    for each in (inner, *(parts.values() if isinstance(parts, Mapping) else ())):
        if isinstance(each, Mapping):
            yield from _own_names(each)


_LIBRARY_PATHS = library_paths(EMBEDDINGS) | library_paths(ENCODERS) | library_paths(DECODERS)
