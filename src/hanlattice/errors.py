"""Errors that a user can mend: each prints as one line saying what, where and what to do."""

from pathlib import Path


class HanlatticeError(ValueError):
    """Base of every error whose message is meant for the user."""


class DataError(HanlatticeError):
    """A file that does not hold what it should; the message starts with ``file:line:``."""

    def __init__(self, message: str, file: str | Path | None = None, line: int | None = None):
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(where + message)
        self.file, self.line = file, line


class ConfigError(HanlatticeError):
    """A setting that does not exist, has the wrong type, or contradicts another one."""


class UnknownConvention(ConfigError):
    """An annotation convention that the model did not learn; the message lists those that it did."""


class ModelError(HanlatticeError):
    """A model folder that is broken, foreign or of another version."""


class EngineError(ModelError):
    """A model with nothing wrong that this engine does not run, or not here; another engine may."""
