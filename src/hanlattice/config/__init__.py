"""Settings: dataclasses, their TOML files, and the ranges of their values."""

from hanlattice.config.files import load_config, save_config
from hanlattice.config.parts import Part
from hanlattice.config.settings import Config

__all__ = ["Config", "Part", "load_config", "save_config"]
