"""Settings: dataclasses, their TOML files, and the ranges of their values."""

from hanlattice.config.files import load_config, located, overridden, read_toml, save_config, to_dict
from hanlattice.config.parts import Part, part_setting, settings_of
from hanlattice.config.settings import (
    DEFAULT_CONVENTION,
    AuxiliaryConfig,
    Config,
    ConventionConfig,
    DataConfig,
    LexiconConfig,
    PredictionConfig,
    TextConfig,
    TrainingConfig,
    VectorsConfig,
)
from hanlattice.config.values import coerced, suggestion

__all__ = [
    "DEFAULT_CONVENTION",
    "AuxiliaryConfig",
    "Config",
    "ConventionConfig",
    "DataConfig",
    "LexiconConfig",
    "Part",
    "PredictionConfig",
    "TextConfig",
    "TrainingConfig",
    "VectorsConfig",
    "coerced",
    "load_config",
    "located",
    "overridden",
    "part_setting",
    "read_toml",
    "save_config",
    "settings_of",
    "suggestion",
    "to_dict",
]
