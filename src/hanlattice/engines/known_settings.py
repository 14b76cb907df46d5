"""Settings of the parts that engines without torch can run.

``EMBEDDINGS`` and ``ENCODERS`` repeat the settings of the builders in :mod:`hanlattice.build`, which cannot be
imported without torch; a test keeps both equal.
"""

from collections.abc import Mapping
from typing import Any, Literal

from hanlattice.config.parts import Kinds, Part, settings_of
from hanlattice.errors import ConfigError, EngineError
from hanlattice.model.folder import TAGS, ModelFolder, decoder_prefix

_WORDS: Kinds = {
    "composition": (bool, True),
    "word_dropout": (float, 0.5),
    "forget": (float, 0.1),
    "drop": (float, 0.1),
    "words_trainable": (bool, True),
    "sparse": (bool, False),
}
EMBEDDINGS: Mapping[str, Kinds] = {
    "characters": {
        "bigrams": (bool, True),
        "segmentation": (Literal["none", "softword", "exsoftword"], "none"),
        "d_segmentation": (int, 20),
        "dropout": (float, 0.5),
        "unknown_rate": (float, 0.01),
        "trainable": (bool, True),
        "bigrams_trainable": (bool, True),
        "sparse": (bool, False),
    },
    "soft_lexicon": {
        "bigrams": (bool, True),
        "segmentation": (Literal["none", "softword", "exsoftword"], "none"),
        "d_segmentation": (int, 20),
        "dropout": (float, 0.5),
        "unknown_rate": (float, 0.01),
        "trainable": (bool, True),
        "bigrams_trainable": (bool, True),
        "sparse": (bool, False),
        **_WORDS,
        "none": (bool, True),
    },
    "own": {
        "path": (str, ""),
        "mode": (Literal["frozen", "tuned"], "frozen"),
        "bigrams": (bool, True),
        "dropout": (float, 0.5),
        "body_dropout": (float, 0.1),
        "unknown_rate": (float, 0.01),
        "sparse": (bool, False),
        "precision": (Literal["float32", "bfloat16"], "float32"),
    },
}
ENCODERS: Mapping[str, Kinds] = {
    "flat": {
        **_WORDS,
        "d_model": (int, 160),
        "heads": (int, 8),
        "d_feed_forward": (int, 480),
        "layers": (int, 1),
        "distances": (Literal["four", "ends", "heads"], "four"),
        "origin": (int, 0),
        "trained_distances": (int, 0),
        "fusion": (Literal["relu", "linear", "attention", "gate"], "relu"),
        "hidden": (Literal["nothing", "self_matched", "distant"], "nothing"),
        "hidden_beyond": (int, 10),
        "residual": (Literal["input", "self"], "input"),
        "key_projection": (bool, True),
        "output_projection": (bool, False),
        "scaled": (bool, False),
        "feed_forward_dropout": (float, 0.15),
        "attention_dropout": (float, 0.0),
        "layer_dropout": (float, 0.0),
        "output_dropout": (float, 0.3),
    },
    "bilstm": {
        "d_hidden": (int, 100),
        "layers": (int, 1),
        "input_dropout": (float, 0.0),
        "layer_dropout": (float, 0.0),
        "output_dropout": (float, 0.5),
    },
    "lattice_lstm": {
        **_WORDS,
        "d_hidden": (int, 100),
        "coupled": (bool, False),
        "output_dropout": (float, 0.5),
    },
    "idcnn": {
        "d_hidden": (int, 300),
        "dilations": (tuple[int, ...], (1, 2, 1)),
        "repeats": (int, 1),
        "share": (bool, True),
        "output": (Literal["last", "concat"], "last"),
        "loss": (Literal["last", "sum", "mean"], "last"),
        "first": (Literal["relu", "linear"], "relu"),
        "init": (Literal["identity", "xavier"], "identity"),
        "dropout": (float, 0.15),
    },
}

# The values that C kernels and numpy support, of the settings of which they do not support all, by part.
SUPPORTED: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "characters": {"segmentation": ("none",)},
    "soft_lexicon": {"segmentation": ("none",)},
    "flat": {
        "layers": (1,),
        "distances": ("four", "ends"),
        "trained_distances": (0,),
        "fusion": ("relu",),
        "hidden": ("nothing",),
    },
}


def folder_settings(folder: ModelFolder) -> dict[str, dict[str, Any]]:
    """The settings of each part of a model, with defaults filled in.

    The keys are ``embedding``, ``encoder``, ``decoder`` and, for each further convention,
    ``conventions.NAME.decoder``.

    Raises:
        EngineError: parts with these names or settings need another engine.
        ConfigError: a setting does not exist, or its value does not fit.
    """
    parts: dict[str, tuple[Part, Mapping[str, Kinds]]] = {
        "embedding": (folder.config.embedding, EMBEDDINGS),
        "encoder": (folder.config.encoder, ENCODERS),
        **{decoder_name(convention): (folder.decoder(convention), TAGS) for convention in folder.conventions},
    }
    for name, (part, kinds) in parts.items():
        if part.name not in kinds:
            raise EngineError(f"neither C kernels nor numpy run the {name} {part.name!r}; use another engine")
    found = {name: settings_of(name, part, kinds) for name, (part, kinds) in parts.items()}
    for name, (part, _) in parts.items():
        for key, values in SUPPORTED.get(part.name, {}).items():
            if found[name][key] not in values:
                only, given = " or ".join(map(repr, values)), found[name][key]
                raise EngineError(
                    f"C kernels and numpy run {name}.{key} = {only} only, not {given!r}; use another engine"
                )
    if not found["embedding"]["bigrams"] and folder.config.embedding.name == "own":
        raise EngineError("C kernels do not run the embedding 'own' without bigrams; use another engine")
    encoder = found["encoder"]
    if "heads" in encoder and encoder["d_model"] % encoder["heads"]:
        raise ConfigError(
            f"encoder 'flat': d_model ({encoder['d_model']}) must be a multiple of heads ({encoder['heads']})"
        )
    return found


def decoder_name(convention: str) -> str:
    """The name of a convention's decoder, in the settings and in the weights."""
    return decoder_prefix(convention).removesuffix(".")
